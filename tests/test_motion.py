"""What is done to whole motions: slices, rates, loops that keep a turn, mirror images, joints between clips."""

from dataclasses import replace
from math import pi

import numpy as np
import pytest
import torch
from torch import Tensor

from jigdoll import zoo
from jigdoll.errors import JigdollError
from jigdoll.kinematics import forward, make_skeleton, rest_pose
from jigdoll.math.rotations import quaternion_multiply, quaternion_to_matrix, quaternion_to_rotvec, rotvec_to_quaternion
from jigdoll.motion import (
    blend,
    close_loop,
    headings,
    in_place,
    join,
    kept_turn,
    mirror,
    place,
    resample,
    slice_motion,
    trim_false_start,
)
from jigdoll.types import Motion, Pose, RiggedAsset, Skeleton
from jigdoll.zoo.gaits import reference_motion


def lying_root(angle: float = pi / 2) -> Skeleton:
    """A root whose own axes lie on their side at rest, as in many artists' files, and one joint above it."""
    T = torch.eye(4).repeat(2, 1, 1)
    T[0, :3, :3] = quaternion_to_matrix(rotvec_to_quaternion(torch.tensor([0.0, 0.0, angle])))
    T[0, 1, 3] = 1.0
    T[1, 0, 3] = 0.5
    return make_skeleton(("root", "tip"), (-1, 0), T)


def steady_turn(frames: int, fps: float) -> Motion:
    """A root that tips by one radian a second about X and walks a metre a second along Z, with a bounce."""
    t = torch.arange(frames) / fps
    rotations = rotvec_to_quaternion(torch.stack([t, 0 * t, 0 * t], -1))[:, None]
    root = torch.stack([0 * t, 0.1 * torch.sin(6.28318530718 * t), t], -1)
    return Motion(Pose(root, rotations), fps, "turn")


def walk_round(skeleton: Skeleton, turn: float, *, frames: int = 33, sway: float = 0.0) -> Motion:
    """A walk along an arc of two metres radius that faces the way it goes, and sways sideways once."""
    t = torch.linspace(0, 1, frames)
    heading = turn * t
    root = torch.stack([2 * (1 - heading.cos()), 0 * t, 2 * heading.sin()], -1) * (1 if turn >= 0 else -1)
    root = root + sway * torch.stack([(2 * pi * t).sin(), 0 * t, 0 * t], -1)
    world = rotvec_to_quaternion(torch.stack([0 * t, heading, 0 * t], -1))
    rest = rotvec_to_quaternion(torch.tensor([0.0, 0.0, pi / 2])) * torch.tensor([1.0, -1, -1, -1])
    local = quaternion_multiply(quaternion_multiply(rest.expand(frames, 4), world), _inverse(rest).expand(frames, 4))
    rotations = rest_pose(skeleton, frames=frames).rotations.clone()
    rotations[:, 0] = local
    return Motion(Pose(root, rotations), 24.0, "round")


def _inverse(q: Tensor) -> Tensor:
    return q * torch.tensor([1.0, -1, -1, -1])


def slip(skeleton: Skeleton, motion: Motion) -> float:
    """The largest angle between where it faces and where it goes [rad]."""
    facing = headings(skeleton, motion.pose)
    way = torch.diff(motion.pose.root, dim=0)
    going = torch.atan2(way[:, 0], way[:, 2])
    between = facing[:-1] + 0.5 * torch.diff(facing) - going
    return float(torch.atan2(between.sin(), between.cos()).abs().max())


@pytest.fixture(scope="module")
def fox() -> RiggedAsset:
    return zoo.make("fox")


def test_a_pose_is_sliced_with_all_its_fields() -> None:
    count, joints = 7, 3
    pose = Pose(
        torch.randn(count, 3),
        torch.randn(count, joints, 4),
        torch.randn(count, joints, 3),
        torch.rand(count, joints, 3),
    )
    for index in (slice(2, 5), 3, torch.tensor([6, 0]), None):
        part = pose[index]
        for name in ("root", "rotations", "offsets", "scales"):
            assert torch.equal(getattr(part, name), getattr(pose, name)[index])
    assert Pose(pose.root, pose.rotations)[1:3].offsets is None


@pytest.mark.parametrize("fps", [12.0, 24.0, 30.0, 60.0])
def test_a_steady_turn_is_the_same_at_every_rate(fps: float) -> None:
    again = resample(steady_turn(25, 24.0), fps)
    t = torch.arange(len(again)) / fps
    assert len(again) == int(1.0 * fps + 1e-4) + 1
    torch.testing.assert_close(quaternion_to_rotvec(again.pose.rotations)[:, 0, 0], t, atol=1e-5, rtol=0)
    torch.testing.assert_close(again.pose.root[:, 2], t, atol=1e-5, rtol=0)


def test_a_rate_of_nothing_is_refused() -> None:
    for fps in (0.0, -1.0, float("nan")):
        with pytest.raises(JigdollError, match="frames per second"):
            resample(steady_turn(5, 24.0), fps)


def test_in_place_takes_the_travel_and_keeps_the_bounce() -> None:
    motion = steady_turn(25, 24.0)
    still = in_place(motion)
    torch.testing.assert_close(still.pose.root[:, 2], torch.zeros(25), atol=1e-6, rtol=0)
    torch.testing.assert_close(still.pose.root[:, 1], motion.pose.root[:, 1])


def test_a_straight_loop_ends_as_it_began_but_for_the_travel() -> None:
    motion = steady_turn(20, 24.0)  # ends in the middle of a bounce, tipped over
    upright = make_skeleton(("root",), (-1,), torch.eye(4)[None])
    loop = close_loop(motion, upright)
    torch.testing.assert_close(loop.pose.rotations[-1], loop.pose.rotations[0], atol=1e-6, rtol=0)
    assert float((loop.pose.root[-1] - loop.pose.root[0])[1]) == pytest.approx(0, abs=1e-6)
    assert float((loop.pose.root[-1] - loop.pose.root[0])[2]) == pytest.approx(19 / 24, abs=1e-5)
    torch.testing.assert_close(loop.pose.rotations[0], motion.pose.rotations[0])


@pytest.mark.parametrize("turn", [pi / 2, -pi / 2, 0.4, 3.0, 2 * pi])
def test_a_loop_that_turns_faces_the_way_it_goes(turn: float) -> None:
    skeleton = lying_root()
    motion = walk_round(skeleton, turn)
    loop = close_loop(motion, skeleton)
    assert slip(skeleton, loop) < 0.02
    assert float(headings(skeleton, loop.pose)[-1]) == pytest.approx(turn, abs=1e-4)


def test_a_loop_that_turns_goes_on_in_its_own_frame() -> None:
    skeleton = lying_root()
    motion = walk_round(skeleton, pi / 2)
    tipped = motion.pose.rotations.clone()
    lean = rotvec_to_quaternion(torch.linspace(0, 0.3, len(motion))[:, None] * torch.tensor([[0.0, 0.0, 1.0]]))
    tipped[:, 0] = quaternion_multiply(tipped[:, 0], lean)  # a lean that the loop must close
    loop = close_loop(replace(motion, pose=replace(motion.pose, rotations=tipped)), skeleton)
    again = place(loop, skeleton, like=loop.pose[-1])
    torch.testing.assert_close(
        forward(skeleton, again.pose[0]), forward(skeleton, loop.pose[len(loop) - 1]), atol=1e-4, rtol=0
    )


def test_a_straight_walk_closes_the_heading_that_it_ends_with() -> None:
    skeleton = lying_root()
    straight = walk_round(skeleton, 1e-4, sway=0.02)
    straight = replace(straight, pose=replace(straight.pose, root=straight.pose.root + torch.linspace(0, 3, 33)[:, None]
        * torch.tensor([0.0, 0.0, 1.0])))  # fmt: skip
    glance = walk_round(skeleton, 0.5).pose.rotations  # it looks aside while it goes straight on
    motion = replace(straight, pose=replace(straight.pose, rotations=glance))
    assert kept_turn(motion, skeleton) == 0.0
    assert float(headings(skeleton, close_loop(motion, skeleton).pose)[-1]) == pytest.approx(0, abs=1e-5)


def test_a_turn_on_the_spot_stays() -> None:
    skeleton = lying_root()
    motion = walk_round(skeleton, pi / 2)
    spot = replace(motion, pose=replace(motion.pose, root=0.01 * motion.pose.root))
    assert kept_turn(spot, skeleton) == pytest.approx(pi / 2, abs=1e-4)


def test_a_mirrored_walk_has_left_and_right_exchanged(fox: RiggedAsset) -> None:
    skeleton, motion = fox.skeleton, reference_motion(fox, "turn_left", seconds=1.0, fps=12.0)
    other = {"left": "right", "right": "left"}
    partners = [skeleton.index("_".join(other.get(word, word) for word in name.split("_"))) for name in skeleton.names]
    twin = mirror(motion, skeleton, partners)
    flip = torch.tensor([-1.0, 1.0, 1.0])
    there = forward(skeleton, motion.pose)[..., partners, :3, 3] * flip
    torch.testing.assert_close(forward(skeleton, twin.pose)[..., :3, 3], there, atol=1e-5, rtol=0)
    assert float((twin.pose.root - motion.pose.root).abs().max()) > 0.01
    back = mirror(twin, skeleton, partners)
    torch.testing.assert_close(forward(skeleton, back.pose), forward(skeleton, motion.pose), atol=1e-5, rtol=0)
    with pytest.raises(JigdollError, match="partners"):
        mirror(motion, skeleton, [0] * len(skeleton))


def test_a_blend_begins_as_one_and_ends_as_the_other() -> None:
    skeleton = lying_root()
    first, second = walk_round(skeleton, 0.5), walk_round(skeleton, -1.0)
    mixed = blend(first, second, torch.linspace(0, 1, len(first)))
    torch.testing.assert_close(mixed.pose.root[0], first.pose.root[0])
    torch.testing.assert_close(mixed.pose.root[-1], second.pose.root[-1])
    half = blend(first, second, 0.5)
    torch.testing.assert_close(headings(skeleton, half.pose)[-1], torch.tensor(-0.25), atol=1e-4, rtol=0)
    with pytest.raises(JigdollError, match="resample and cut"):
        blend(first, slice_motion(second, slice(0, 5)), 0.5)


def test_joined_walks_go_on_without_a_jump() -> None:
    skeleton = lying_root()
    first, second = walk_round(skeleton, pi / 2), walk_round(skeleton, 1.0)
    both = join(first, second, skeleton, overlap=6)
    assert len(both) == len(first) + len(second) - 6
    step = torch.diff(both.pose.root, dim=0).norm(dim=-1)
    longest = max(float(torch.diff(m.pose.root, dim=0).norm(dim=-1).max()) for m in (first, second))
    assert float(step.max()) < 1.5 * longest
    assert slip(skeleton, both) < 0.15
    start = float(headings(skeleton, first.pose)[len(first) - 6])
    assert float(headings(skeleton, both.pose)[-1]) == pytest.approx(start + 1.0, abs=1e-3)
    np.testing.assert_allclose(both.pose.root[:20], first.pose.root[:20], atol=1e-6)


def test_a_first_frame_that_does_not_belong_is_cut() -> None:
    skeleton = lying_root()
    motion = walk_round(skeleton, 0.5)
    false = motion.pose.rotations.clone()
    false[0] = rotvec_to_quaternion(torch.tensor([1.0, 0.0, 0.0]))
    spoiled = replace(motion, pose=replace(motion.pose, rotations=false))
    cut = trim_false_start(spoiled)
    assert torch.equal(cut.pose.rotations, motion.pose.rotations[1:])
    assert trim_false_start(motion) is motion


def test_children_are_counted_once() -> None:
    skeleton = lying_root()
    assert skeleton.children == ((1,), ()) and skeleton.children is skeleton.children
