"""Single metrics against closed forms, on a body of sticks."""

import math

import numpy as np
import pytest
import torch

from jigdoll.judge import judge
from jigdoll.judge.cycle import alternation, relative_phase, stride_frequency
from jigdoll.judge.smoothness import angle_jerk
from jigdoll.kinematics import make_skeleton, rest_pose
from jigdoll.math.rotations import rotvec_to_quaternion
from jigdoll.types import Mesh, Motion, Pose, RiggedAsset, Weights


def sticks() -> RiggedAsset:
    """Two straight legs of 1 m under a root; skin at the feet, and 10 cm before and behind each thigh; no limits."""
    names = ("root", "left_hip", "left_knee", "left_foot", "right_hip", "right_knee", "right_foot")
    parents = (-1, 0, 1, 2, 0, 4, 5)
    places = [(0, 1, 0), (0.2, 0, 0), (0, -0.5, 0), (0, -0.5, 0), (-0.2, 0, 0), (0, -0.5, 0), (0, -0.5, 0)]
    T = torch.eye(4).repeat(7, 1, 1)
    T[:, :3, 3] = torch.tensor(places, dtype=torch.float32)
    corners = torch.tensor([(0.0, 0.0, 0.0), (0.02, 0.0, 0.0), (0.0, 0.0, 0.02)])
    vertices = torch.cat([corners + torch.tensor([x, 0.0, 0.0]) for x in (0.2, -0.2)])
    thighs = torch.tensor([(x, 0.75, z) for x in (0.2, -0.2) for z in (0.1, -0.1)])
    vertices = torch.cat([vertices, thighs, torch.tensor([[0.0, 1.0, 0.0]])])
    joints = torch.tensor([[3], [3], [3], [6], [6], [6], [1], [1], [4], [4], [0]])
    mesh = Mesh(vertices, torch.tensor([[0, 1, 2], [3, 4, 5]]), torch.ones(11, 3))
    return RiggedAsset("sticks", mesh, make_skeleton(names, parents, T), Weights(joints, torch.ones(11, 1)))


def swinging(left: np.ndarray, right: np.ndarray, fps: float) -> Motion:
    """Both hips turned about the lateral axis by these angles [rad]; a positive angle swings the foot ahead."""
    asset = sticks()
    pose = rest_pose(asset.skeleton, frames=len(left))
    for joint, angle in ((1, left), (4, right)):
        turn = torch.zeros(len(left), 3)
        turn[:, 0] = -torch.from_numpy(angle).float()
        pose.rotations[:, joint] = rotvec_to_quaternion(turn)
    return Motion(pose, fps, "swing")


@pytest.mark.parametrize("phase", [0.0, 0.25, 0.5, 0.8])
def test_swing_amplitude_frequency_and_phase_of_a_sine(phase: float) -> None:
    # 60 frames hold two whole periods, so that corr(sin(a), sin(a + p)) = cos(p).
    turn = 2 * math.pi * 2 * np.arange(60) / 60
    motion = swinging(0.4 * np.sin(turn + 2 * math.pi * phase), 0.4 * np.sin(turn), 30.0)
    verdict = judge(sticks(), motion)
    (pair,) = verdict.pairs
    assert pair.amplitude == pytest.approx(math.degrees(0.4), rel=1e-3)
    assert verdict.stride_frequency == pytest.approx(1.0, rel=0.01)
    assert pair.alternation == pytest.approx(math.cos(2 * math.pi * phase), abs=1e-3)
    assert (pair.phase - phase + 0.5) % 1 - 0.5 == pytest.approx(0.0, abs=0.01)


def test_jerk_of_a_sine_is_that_of_its_third_difference() -> None:
    # The third difference of A sin(w t) has the amplitude A (2 sin(w dt / 2))^3; |cos| has the mean 2 / pi.
    fps, w, A = 30.0, 2 * math.pi, 0.4
    t = np.arange(0, 601) / fps
    motion = swinging(A * np.sin(w * t), A * np.sin(w * t + 1), fps)
    expected = A * (2 * math.sin(w / fps / 2) * fps) ** 3 * 2 / math.pi
    assert angle_jerk(motion) == pytest.approx(expected, rel=0.01)


def test_a_steady_turn_has_no_jerk_even_across_a_half_turn() -> None:
    t = np.arange(40) * 0.2
    assert angle_jerk(swinging(t, t, 30.0)) < 1.0  # rounding of single precision, times 30^3


def test_motion_amount_is_the_mean_speed_of_the_joints() -> None:
    # Each leg turns at 1 rad/s: its foot moves at 1 m/s, its knee at 0.5 m/s, the other three joints not at all.
    t = np.arange(11) / 100
    verdict = judge(sticks(), swinging(t, t, 100.0))
    assert verdict.motion_amount * verdict.body_length == pytest.approx((1 + 0.5) * 2 / 7, rel=1e-3)


def test_a_drop_in_one_frame_is_penetration_and_not_a_new_ground() -> None:
    still = swinging(np.zeros(30), np.zeros(30), 30.0)
    root = still.pose.root.clone()
    root[12, 1] = -0.03
    verdict = judge(sticks(), Motion(Pose(root, still.pose.rotations), 30.0))
    assert verdict.penetration * verdict.body_length == pytest.approx(0.03, abs=1e-6)
    assert verdict.duty == 1


def test_the_floor_may_lie_elsewhere() -> None:
    verdict = judge(sticks(), swinging(np.zeros(9), np.zeros(9), 30.0), ground=-0.25)
    assert verdict.floating * verdict.body_length == pytest.approx(0.25, abs=1e-6)


def test_legs_that_pass_through_each_other_are_told() -> None:
    # Hips 0.4 m apart, legs turned inwards about the forward axis until the thighs cross: their distance is zero, and
    # a capsule has half the distance to the skin, 5 cm.
    asset = sticks()
    pose = rest_pose(asset.skeleton, frames=8)
    for joint, sign in ((1, -1.0), (4, 1.0)):
        pose.rotations[:, joint] = rotvec_to_quaternion(torch.tensor([0.0, 0.0, sign * 0.5]))
    apart, crossed = judge(asset, swinging(np.zeros(8), np.zeros(8), 30.0)), judge(asset, Motion(pose, 30.0))
    assert apart.self_intersection == 0
    assert crossed.self_intersection * crossed.body_length == pytest.approx(0.05 + 0.05, rel=1e-3)


def test_joints_beyond_their_limits_are_counted() -> None:
    asset = sticks()
    limits = torch.zeros(7, 3, 2)
    limits[..., 0], limits[..., 1] = -0.5, 0.5
    skeleton = make_skeleton(asset.skeleton.names, asset.skeleton.parents, asset.skeleton.T_parent_joint, limits=limits)
    bound = RiggedAsset("sticks", asset.mesh, skeleton, asset.weights)
    angle = np.array([0.4, 0.49, 0.51, 0.7])  # up to 2 degrees are forgiven
    verdict = judge(bound, swinging(angle, np.zeros(4), 30.0))
    assert verdict.limit_excess == pytest.approx(math.degrees(0.2), rel=1e-3)
    assert verdict.limit_violations == pytest.approx(1 / (4 * 6))


def test_a_rig_without_legs_is_judged_without_feet() -> None:
    T = torch.eye(4).repeat(3, 1, 1)
    T[1:, 2, 3] = 0.5
    mesh = Mesh(
        torch.rand(5, 3, generator=torch.Generator().manual_seed(0)), torch.tensor([[0, 1, 2]]), torch.ones(5, 3)
    )
    snake = RiggedAsset(
        "snake",
        mesh,
        make_skeleton(("a", "b", "c"), (-1, 0, 1), T),
        Weights(torch.zeros(5, 1).long(), torch.ones(5, 1)),
    )
    pose = rest_pose(snake.skeleton, frames=10)
    verdict = judge(snake, Motion(Pose(pose.root + torch.arange(10.0)[:, None] * 0.1, pose.rotations), 10.0))
    assert verdict.legs == () and verdict.pairs == () and verdict.skate_ratio == 0 and verdict.duty == 0
    assert verdict.travel_speed * verdict.body_length == pytest.approx(math.sqrt(2), rel=1e-3)


def test_noise_has_no_rhythm_and_stillness_no_alternation() -> None:
    noise = np.random.default_rng(0).normal(size=(2, 60)) * 0.3
    assert stride_frequency(noise, 30.0) == 0
    assert alternation(np.zeros(60), noise[0]) == 0
    assert relative_phase(noise[0], noise[1], 0.0, 30.0) == 0


def test_a_stride_with_strong_overtones_keeps_its_own_frequency() -> None:
    # A short kick once a second: most of its power lies in the overtones.
    t = np.arange(72) / 24
    kick = np.exp(3 * (np.cos(2 * np.pi * t) - 1))
    assert stride_frequency(np.stack([kick, np.roll(kick, 12)]), 24.0) == pytest.approx(1.0, rel=0.03)


def test_a_body_is_measured_once_for_the_judge_and_everyone_else() -> None:
    from jigdoll import zoo
    from jigdoll.judge.anatomy import study
    from jigdoll.rig.anatomy import anatomy_of
    from jigdoll.rig.reparent import reparent

    work = reparent(zoo.make("ant"))
    anatomy = anatomy_of(work.asset)
    assert study(work.asset).anatomy is anatomy and anatomy_of(work.asset) is anatomy


def test_a_judged_character_is_not_kept_alive() -> None:
    import gc
    import weakref

    from jigdoll import zoo
    from jigdoll.judge import judge
    from jigdoll.judge.anatomy import study
    from jigdoll.zoo.gaits import reference_motion

    ant = zoo.make("ant")
    judge(ant, reference_motion(ant, "walk", seconds=0.5, fps=12.0))
    assert study(ant) is study(ant)
    mesh = weakref.ref(ant.mesh)
    del ant
    gc.collect()
    assert mesh() is None


def test_what_real_motion_never_does_is_told_by_name() -> None:
    from jigdoll import zoo
    from jigdoll.judge.table import rows_of
    from jigdoll.zoo.gaits import reference_motion

    fox = zoo.make("fox")
    walk = reference_motion(fox, "walk", seconds=0.5, fps=12.0)
    assert set(judge(fox, walk).validity.values()) == {0.0}
    sunk = Motion(Pose(walk.pose.root - torch.tensor([0.0, 0.2, 0.0]), walk.pose.rotations), 12.0)
    verdict = judge(fox, sunk)
    assert {name for name, share in verdict.validity.items() if share} == {"ground"}
    assert verdict.validity["ground"] == 1.0 and judge(fox, sunk, ground=-0.2).validity["ground"] == 0.0
    (row,) = (row for row in rows_of(verdict) if row.group == "Validity" and row.label == "ground")
    assert row.value == "100" and row.meaning == "Skin is below the ground."
