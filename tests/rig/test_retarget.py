"""Motions of one rig on another, and DeepMimic's motion files."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from jigdoll.errors import FileFormatError, RepairWarning, RigError
from jigdoll.formats import bvh, deepmimic
from jigdoll.formats.rest import motion_asset
from jigdoll.kinematics import forward, make_skeleton, rest_pose, rest_transforms
from jigdoll.math.rotations import quaternion_to_matrix
from jigdoll.math.transforms import transform, translation
from jigdoll.motion import trim_false_start
from jigdoll.rig.anatomy import anatomy_of
from jigdoll.rig.limits import with_default_limits
from jigdoll.rig.reparent import reparent
from jigdoll.rig.retarget import decode, encode, retarget, retarget_with_report
from jigdoll.rig.retarget.bounds import PLAY, SOFT
from jigdoll.types import Motion, Pose, RiggedAsset, Skeleton
from jigdoll.zoo.gaits import reference_motion
from jigdoll.zoo.skeleton import build_skeleton
from jigdoll.zoo.species import species_named

NAMES = ("pelvis", "spine_1", "chest", "neck_1", "head", "head_tip")
SIDE = ("hip", "knee", "ankle", "toe", "toe_tip", "clavicle", "shoulder", "elbow", "wrist", "hand_tip")


def person(*, arms: float = 0.9, size: float = 1.0) -> Skeleton:
    """A person of about 1.75 m times `size`, whose arms leave the vertical by an angle [rad]."""
    names, parents, places = list(NAMES), [-1, 0, 1, 2, 3, 4], [(0.0, 0.95 + 0.15 * i, 0.0) for i in range(6)]
    for side, sign in (("left", 1.0), ("right", -1.0)):
        leg = [(0.1, 0.9, 0.0), (0.1, 0.5, 0.02), (0.1, 0.08, 0.0), (0.1, 0.02, 0.12), (0.1, 0.02, 0.18)]
        reach = (math.sin(arms), -math.cos(arms))
        arm = [(0.04, 1.42, 0.0)]
        arm += [(0.18 + r * reach[0], 1.42 + r * reach[1], 0.0) for r in (0.0, 0.28, 0.53, 0.7)]
        for start, chain in ((0, leg), (2, arm)):
            above = start
            for x, y, z in chain:
                names.append(f"{side}_{SIDE[len(names) - 6 - (10 if side == 'right' else 0)]}")
                parents.append(above)
                places.append((sign * x, y, z))
                above = len(names) - 1
    P = size * torch.tensor(places)
    offsets = torch.stack([p - (P[parents[i]] if parents[i] >= 0 else 0 * p) for i, p in enumerate(P)])
    return make_skeleton(tuple(names), tuple(parents), translation(offsets))


def wave(skeleton: Skeleton, seed: int = 0, frames: int = 24) -> Motion:
    """Smooth turns of all joints that move a bone, with both feet on the ground at first."""
    generator = torch.Generator().manual_seed(seed)
    axes = 0.35 * torch.randn(len(skeleton), 3, generator=generator)
    axes[[joint for joint, kids in enumerate(skeleton.children) if not kids]] = 0
    axes[0] = 0
    vectors = torch.linspace(0, math.pi, frames).sin()[:, None, None] * axes
    half = vectors.norm(dim=-1, keepdim=True) / 2
    rotations = torch.cat([half.cos(), half.sin() * torch.nn.functional.normalize(vectors, dim=-1)], -1)
    return Motion(Pose(torch.zeros(frames, 3), rotations), 30.0, "wave")


def body(skeleton: Skeleton, name: str = "body") -> RiggedAsset:
    """A skeleton without a skin."""
    return motion_asset(name, skeleton, {})


def zoo_walk(name: str, seconds: float = 1.0) -> tuple[RiggedAsset, Motion]:
    skeleton = build_skeleton(species_named(name))
    return body(skeleton, name), reference_motion(skeleton, "walk", seconds=seconds, name=name)


def directions(skeleton: Skeleton, pose: Pose) -> torch.Tensor:
    places = forward(skeleton, pose)[..., :3, 3]
    return torch.nn.functional.normalize(places[:, 1:] - places[:, list(skeleton.parents[1:])], dim=-1)


def degrees(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.rad2deg(torch.linalg.cross(a, b).norm(dim=-1).atan2((a * b).sum(-1)))


LIMB_BONES = [f"{side}_{name}" for side in ("left", "right") for name in ("knee", "ankle", "elbow", "wrist")]
"""Joints at which the bones of arms and legs end."""


@pytest.mark.parametrize("lock", [True, False])
def test_a_motion_on_its_own_rig_stays_the_same(lock: bool) -> None:
    skeleton = person()
    motion = wave(skeleton)
    again = retarget(motion, body(skeleton), body(skeleton), lock=lock)
    apart = degrees(directions(skeleton, again.pose), directions(skeleton, motion.pose))
    assert float(apart.mean()) < (1.0 if lock else 0.5)
    if not lock:
        assert float(apart.max()) < 2.0
        torch.testing.assert_close(again.pose.root, motion.pose.root, atol=1e-4, rtol=0)


def test_a_rig_with_other_joint_frames_moves_the_same_in_the_world() -> None:
    source = person()
    generator = torch.Generator().manual_seed(5)
    turns = torch.nn.functional.normalize(torch.randn(len(source), 4, generator=generator), dim=-1)
    world = transform(quaternion_to_matrix(turns), rest_transforms(source)[:, :3, 3])
    above = torch.stack([torch.eye(4) if p < 0 else world[p] for p in source.parents])
    target = make_skeleton(source.names, source.parents, torch.linalg.inv(above) @ world)
    motion = wave(source)
    moved = retarget(motion, body(source), body(target), lock=False)
    plain = retarget(motion, body(source), body(source), lock=False)
    expected = forward(source, plain.pose)[..., :3, 3]
    torch.testing.assert_close(forward(target, moved.pose)[..., :3, 3], expected, atol=1e-4, rtol=0)


def test_a_smaller_rig_makes_smaller_steps() -> None:
    source, target = person(), person(size=0.5)
    motion = wave(source)
    motion = replace(motion, pose=replace(motion.pose, root=torch.linspace(0, 1, len(motion))[:, None].repeat(1, 3)))
    moved = retarget(motion, body(source), body(target), lock=False)
    plain = retarget(motion, body(source), body(source), lock=False)
    expected = 0.5 * forward(source, plain.pose)[..., :3, 3]
    torch.testing.assert_close(forward(target, moved.pose)[..., :3, 3], expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize("arms", [0.1, math.pi / 2])
def test_limbs_point_where_the_sources_limbs_point_whatever_the_rest_pose(arms: float) -> None:
    source, target = person(arms=arms), person(arms=0.9)
    motion = wave(source, seed=2)
    moved = retarget(motion, body(source), body(target), lock=False)
    bones = [target.index(name) - 1 for name in LIMB_BONES]
    apart = degrees(directions(target, moved.pose)[:, bones], directions(source, motion.pose)[:, bones])
    assert float(apart.max()) < 1.0


def test_feet_spine_and_head_that_are_drawn_differently_rest_while_the_source_rests() -> None:
    source = person()
    local = source.T_parent_joint.clone()
    places = {"left_toe": (0.0, -0.03, 0.15), "head_tip": (0.0, 0.1, 0.12), "spine_1": (0.0, 0.14, -0.05)}
    for name, place in places.items():
        local[source.index(name), :3, 3] = torch.tensor(place)
    target = make_skeleton(source.names, source.parents, local)
    moved = retarget(Motion(rest_pose(source, frames=4), 30.0), body(source), body(target), lock=False)
    middle = [target.index(name) for name in ("pelvis", "spine_1", "chest", "neck_1", "head", "left_ankle", "left_toe")]
    identity = torch.tensor([1.0, 0, 0, 0]).expand(4, len(middle), 4)
    torch.testing.assert_close(moved.pose.rotations[:, middle].abs(), identity, atol=1e-3, rtol=0)


def test_a_mapping_of_limbs_overrules_the_matching() -> None:
    skeleton = person()
    motion = wave(skeleton)
    swap = {"left arm 0": "right arm 0"}
    moved, report = retarget_with_report(motion, body(skeleton), body(skeleton), mapping=swap, lock=False)
    ours, theirs = directions(skeleton, moved.pose), directions(skeleton, motion.pose)
    left, right = skeleton.index("left_wrist") - 1, skeleton.index("right_wrist") - 1
    mirrored = theirs[:, right] * torch.tensor([-1.0, 1.0, 1.0])
    assert float(degrees(ours[:, left], mirrored).max()) < 1.0
    assert float(degrees(ours[:, right], theirs[:, right]).max()) < 1.0
    took = {match.target: (match.source, match.note) for match in report.matches}
    assert took["left arm 0"] == ("right arm 0", "mirrored")
    assert took["left leg 0"] == ("left leg 0", "")
    assert report.dropped == ("left arm 0",)


@pytest.mark.parametrize(
    ("mapping", "who"), [({"left wing 0": "left arm 0"}, "target"), ({"left arm 0": "left wing 0"}, "source")]
)
def test_a_mapping_that_names_no_limb_is_refused_with_the_limbs_that_there_are(mapping: dict, who: str) -> None:
    skeleton = person()
    with pytest.raises(RigError, match=rf"the {who} has no limb called 'left wing 0'; .*right leg 0"):
        retarget(wave(skeleton), body(skeleton), body(skeleton), mapping=mapping)


def test_rigs_without_common_limbs_are_refused_by_name() -> None:
    names = tuple(f"spine_{i}" for i in range(7))
    eel = make_skeleton(names, (-1, *range(6)), translation(torch.tensor([[0.0, 0.5, 0.0]] + 6 * [[0.0, 0.0, 0.2]])))
    with pytest.raises(RigError, match=r"no limbs in common: the source has .*left leg 0.*the target"):
        retarget(wave(person()), body(person()), body(eel))


def test_empty_clips_are_refused() -> None:
    skeleton = person()
    with pytest.raises(RigError, match=r"wave: the clip is empty"):
        retarget(replace(wave(skeleton), pose=rest_pose(skeleton, frames=0)), body(skeleton), body(skeleton))


def test_numbers_that_are_not_finite_are_refused_with_their_frame() -> None:
    skeleton = person()
    motion = wave(skeleton)
    motion.pose.rotations[7, 3, 1] = math.nan
    with pytest.raises(RigError, match=r"wave: frame 7 .*not finite"):
        retarget(motion, body(skeleton), body(skeleton))


@pytest.mark.parametrize("who", ["source", "target"])
def test_a_body_of_two_joints_is_refused(who: str) -> None:
    stick = make_skeleton(("a", "b"), (-1, 0), translation(torch.tensor([[0.0, 1, 0], [0, 1, 0]])))
    pair = (stick, person()) if who == "source" else (person(), stick)
    with pytest.raises(RigError, match=rf"stick: the {who} has 2 joints"):
        names = ("stick", "person") if who == "source" else ("person", "stick")
        motion = Motion(rest_pose(pair[0], frames=3), 30.0)
        retarget(motion, body(pair[0], names[0]), body(pair[1], names[1]))


def test_one_frame_is_a_clip() -> None:
    skeleton = person()
    motion = wave(skeleton)
    one = Motion(Pose(motion.pose.root[12:13], motion.pose.rotations[12:13]), 30.0)
    moved = retarget(one, body(skeleton), body(person(size=0.7)), lock=False)
    bones = [skeleton.index(name) - 1 for name in LIMB_BONES]
    apart = degrees(directions(skeleton, moved.pose)[:, bones], directions(skeleton, one.pose)[:, bones])
    assert float(apart.max()) < 1.0


@pytest.mark.parametrize(("name", "slip"), [("02_01", 0.05), ("02_03", 0.16), ("16_05", 0.05)])
def test_cmu_people_walk_on_another_person(assets_dir: Path, name: str, slip: float) -> None:
    source, motion = bvh.read(assets_dir / "motion" / "cmu" / f"{name}.bvh")
    motion = trim_false_start(motion)
    target = person(size=0.6)
    moved, report = retarget_with_report(motion, body(source), body(target))
    assert {match.target: match.source for match in report.matches} == {
        limb: limb for limb in ("left leg 0", "right leg 0", "left arm 0", "right arm 0")
    }
    ours, theirs = directions(target, moved.pose), directions(source, motion.pose)
    heading = theirs.new_tensor([0.0, 1.0, 0.0])
    for mine, their, most in [("left_knee", "LeftLeg", 6.0), ("left_wrist", "LeftHand", 1.0)]:
        a, b = ours[:, target.index(mine) - 1], theirs[:, source.index(their) - 1]
        # How far they leave the vertical is the same, whichever way the clip faces.
        apart = degrees(a, heading.expand_as(a)) - degrees(b, heading.expand_as(b))
        assert float(apart.abs().mean()) < most
    # Nobody slides: while the source's toe stands still, the target's toe hardly moves.
    toe, twin = target.index("left_toe"), source.index("LeftToeBase")
    here, there = forward(target, moved.pose)[:, toe, :3, 3], forward(source, motion.pose)[:, twin, :3, 3]
    still = (there[1:] - there[:-1]).norm(dim=-1) * motion.fps < 0.1
    assert int(still.sum()) > 3
    assert float(((here[1:] - here[:-1]).norm(dim=-1) * motion.fps)[still].mean()) < slip


def test_legs_that_share_a_partner_take_turns() -> None:
    (fox, walk), (spider, _) = zoo_walk("fox"), zoo_walk("spider")
    moved, report = retarget_with_report(walk, fox, spider)
    took = {match.target: match.source for match in report.matches}
    row = [took[f"left leg {rank}"] for rank in range(4)]
    assert row[0] == row[2] != row[1] == row[3]
    assert {name.split()[0] for name in (row[0], row[1])} == {"left", "right"}
    assert bool(torch.isfinite(moved.pose.rotations).all())


def test_arms_that_the_source_lacks_hang_and_this_is_said() -> None:
    fox, walk = zoo_walk("fox")
    target = person(arms=math.pi / 2)
    moved, report = retarget_with_report(walk, fox, body(target))
    arm = next(match for match in report.matches if match.target == "left arm 0")
    assert (arm.source, arm.note) == (None, "hangs relaxed")
    upper = directions(target, moved.pose)[:, target.index("left_elbow") - 1]
    assert float(upper[:, 1].max()) < -0.9


def test_deepmimic_walks_ahead_on_the_ground(assets_dir: Path) -> None:
    skeleton, motion = deepmimic.read(assets_dir / "motion" / "deepmimic" / "humanoid3d_walk.txt")
    assert (len(motion), motion.fps) == (39, 30.0)
    places = forward(skeleton, motion.pose)[..., :3, 3]
    assert float(places[-1, 0, 2] - places[0, 0, 2]) == pytest.approx(1.2386, abs=1e-3)  # towards +Z
    assert abs(float(places[-1, 0, 0] - places[0, 0, 0])) < 0.05
    assert -0.02 < float(places[..., 1].min()) < 0.05
    left, right = skeleton.index("left_shoulder"), skeleton.index("right_shoulder")
    assert bool((places[:, left, 0] > places[:, right, 0]).all())
    # Knees bend backwards: the ankle stays behind the line through the thigh.
    hip, knee, ankle = (places[:, skeleton.index(f"left_{name}")] for name in ("hip", "knee", "ankle"))
    bend = torch.linalg.cross(knee - hip, ankle - knee)[:, 0]
    assert float(bend.min()) > -1e-3


@pytest.mark.parametrize("text", ["", "[]", '{"Frames": []}', '{"Frames": [[1, 2]]}', '{"Frames": [["x"]]}'])
def test_damaged_deepmimic_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "broken.txt"
    path.write_text(text)
    with pytest.raises(FileFormatError, match=r"broken\.txt"):
        deepmimic.read(path)


def test_deepmimic_numbers_must_be_finite(tmp_path: Path) -> None:
    path = tmp_path / "broken.txt"
    path.write_text(json.dumps({"Frames": [[math.nan] * 44]}))
    with pytest.raises(FileFormatError, match="NaN"):
        deepmimic.read(path)
    path.write_text(json.dumps({"Frames": [[0.5] * 44]}))
    assert deepmimic.read(path)[1].pose.rotations.shape == (1, 18, 4)


def test_joints_stay_within_the_limits_of_their_body() -> None:
    source = with_default_limits(person())
    stiff = replace(source, limits=0.1 * source.limits)
    wrist = source.names.index("left_wrist")
    angle = torch.linspace(0, 1.2, 24)
    rotations = wave(source).pose.rotations[:1].repeat(24, 1, 1)
    rotations[:, wrist] = torch.stack([(angle / 2).cos(), 0 * angle, 0 * angle, (angle / 2).sin()], -1)
    motion = Motion(Pose(torch.zeros(24, 3), rotations), 30.0, "bend")
    own, moved = (retarget(motion, body(source), body(other), lock=False) for other in (source, stiff))
    made = [2 * m.pose.rotations[:, wrist, 0].abs().clamp(max=1).acos() for m in (own, moved)]
    limit = float(stiff.limits[wrist, :2].abs().max()) + PLAY
    assert float((made[0] - angle).abs().max()) < 0.02  # within its limits it does what the source does
    assert limit < float(made[1].max()) <= limit + SOFT  # beyond them it hardly goes on
    within = angle < limit - 0.01
    assert float((made[1] - angle).abs()[within].max()) < 0.02


def test_knees_fold_as_they_are_built() -> None:
    skeleton = person()
    knee, hip = skeleton.names.index("left_knee"), skeleton.names.index("left_hip")
    rotations = wave(skeleton).pose.rotations[:1].repeat(12, 1, 1)
    half = torch.linspace(0, 0.6, 12) / 2
    rotations[:, knee] = torch.stack([half.cos(), -half.sin(), 0 * half, 0 * half], -1)  # against the knee
    anatomy = anatomy_of(reparent(body(skeleton)).asset)
    motion = Motion(Pose(torch.zeros(12, 3), rotations), 30.0, "broken")
    made = decode(encode(anatomy, motion), anatomy, lock=False)
    before, after = (forward(skeleton, m.pose)[..., :3, 3] for m in (motion, made))
    ankle = skeleton.names.index("left_ankle")
    line = 0.5 * (before[-1, hip] + before[-1, ankle])
    assert float(before[-1, knee, 2]) < float(line[2]) - 0.05  # the source's knee is behind the leg
    assert float(after[-1, knee, 2]) > float(line[2]) + 0.05
    torch.testing.assert_close(after[:, ankle], before[:, ankle], atol=1e-3, rtol=0)
    same = retarget(motion, body(skeleton), body(skeleton), lock=False)  # whose knee was broken may stay so
    torch.testing.assert_close(forward(skeleton, same.pose)[..., :3, 3], before, atol=1e-3, rtol=0)


def test_scales_of_the_source_turn_nothing() -> None:
    human, walk = zoo_walk("human", seconds=0.5)
    scales = torch.ones(*walk.pose.rotations.shape[:-1], 3)
    scales[:, 4, 1] = 1.05
    scaled = replace(walk, pose=replace(walk.pose, scales=scales))
    plain = retarget(walk, human, human, lock=False)
    with pytest.warns(RepairWarning, match=r"without what is scaled \(1 of \d+ joints\)"):
        again = retarget(scaled, human, human, lock=False)
    apart = degrees(directions(human.skeleton, again.pose), directions(human.skeleton, plain.pose))
    assert float(apart.max()) < 3.0


def test_bones_that_stretch_are_followed_by_where_they_end() -> None:
    skeleton = person()
    motion = Motion(rest_pose(skeleton, frames=3), 30.0)
    offsets = torch.zeros(3, len(skeleton), 3)
    offsets[:, skeleton.index("left_wrist")] = torch.tensor([0.0, 0.2, 0.3])
    moved = retarget(replace(motion, pose=replace(motion.pose, offsets=offsets)), body(skeleton), body(skeleton))
    stretched = forward(skeleton, replace(motion.pose, offsets=offsets))[..., :3, 3]
    elbow, wrist = skeleton.index("left_elbow"), skeleton.index("left_wrist")
    wanted = torch.nn.functional.normalize(stretched[:, wrist] - stretched[:, elbow], dim=-1)
    assert float(degrees(directions(skeleton, moved.pose)[:, wrist - 1], wanted).max()) < 1.0
