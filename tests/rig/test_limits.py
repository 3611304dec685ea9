"""Joint limits: by role, by rest geometry, clamped and penalised."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jigdoll.kinematics import forward, make_skeleton, rest_pose, rest_transforms
from jigdoll.math.rotations import compound_to_quaternion
from jigdoll.rig.limbs import find_limbs
from jigdoll.rig.limits import (
    clamp_angles,
    clamp_pose,
    compound_angles,
    joint_roles,
    limit_penalty,
    with_default_limits,
)
from jigdoll.types import Pose, Skeleton


def walker() -> Skeleton:
    """Two legs, two arms in a T, a head: knees and elbows slightly bent, all numbers chosen by hand."""
    joints: list[tuple[str, str | None, tuple[float, float, float]]] = [
        ("pelvis", None, (0, 1.0, 0)),
        ("spine_1", "pelvis", (0, 1.2, 0)),
        ("chest", "spine_1", (0, 1.4, 0)),
        ("neck_1", "chest", (0, 1.55, 0)),
        ("head", "neck_1", (0, 1.65, 0)),
        ("head_tip", "head", (0, 1.85, 0)),
    ]
    for side, s in (("left", 1.0), ("right", -1.0)):
        joints += [
            (f"{side}_shoulder", "chest", (0.2 * s, 1.45, 0)),
            (f"{side}_elbow", f"{side}_shoulder", (0.5 * s, 1.45, -0.02)),
            (f"{side}_wrist", f"{side}_elbow", (0.8 * s, 1.45, 0.04)),
            (f"{side}_hand_tip", f"{side}_wrist", (0.95 * s, 1.45, 0.06)),
            (f"{side}_hip", "pelvis", (0.1 * s, 0.95, 0)),
            (f"{side}_knee", f"{side}_hip", (0.1 * s, 0.5, 0.04)),
            (f"{side}_ankle", f"{side}_knee", (0.1 * s, 0.08, 0)),
            (f"{side}_toe", f"{side}_ankle", (0.1 * s, 0.03, 0.12)),
            (f"{side}_toe_tip", f"{side}_toe", (0.1 * s, 0.03, 0.2)),
        ]
    names = tuple(name for name, _, _ in joints)
    parents = tuple(-1 if parent is None else names.index(parent) for _, parent, _ in joints)
    T = torch.eye(4).repeat(len(joints), 1, 1)
    places = torch.tensor([place for _, _, place in joints])
    T[:, :3, 3] = places
    T[1:, :3, 3] -= places[list(parents[1:])]
    return make_skeleton(names, parents, T)


@pytest.fixture(scope="module")
def skeleton() -> Skeleton:
    return with_default_limits(walker())


def bent(skeleton: Skeleton, name: str, degrees: tuple[float, float, float]) -> Pose:
    """Rest, but for one joint turned about its compound axes."""
    pose = rest_pose(skeleton)
    joint = skeleton.index(name)
    angles = torch.tensor(degrees).deg2rad()
    pose.rotations[joint] = compound_to_quaternion(angles, skeleton.axes[joint])
    return pose


def test_roles_follow_the_limbs(skeleton: Skeleton) -> None:
    roles = dict(zip(skeleton.names, joint_roles(skeleton, find_limbs(skeleton)), strict=True))
    assert roles["pelvis"] == "root" and roles["chest"] == "spine" and roles["head"] == "head"
    assert [roles[f"left_{part}"] for part in ("hip", "knee", "ankle", "toe", "toe_tip")] == [
        "hip",
        "knee",
        "ankle",
        "toe",
        "tip",
    ]
    assert [roles[f"right_{part}"] for part in ("shoulder", "elbow", "wrist", "hand_tip")] == [
        "shoulder",
        "elbow",
        "wrist",
        "tip",
    ]


def test_axes_are_right_handed_frames_with_the_twist_along_the_bone(skeleton: Skeleton) -> None:
    eye = torch.eye(3).expand(len(skeleton), 3, 3)
    torch.testing.assert_close(skeleton.axes.transpose(1, 2) @ skeleton.axes, eye, atol=1e-5, rtol=0)
    torch.testing.assert_close(torch.linalg.det(skeleton.axes), torch.ones(len(skeleton)))
    knee, ankle = skeleton.index("left_knee"), skeleton.index("left_ankle")
    bone = torch.nn.functional.normalize(skeleton.T_parent_joint[ankle, :3, 3], dim=0)
    torch.testing.assert_close(skeleton.axes[knee, :, 2], bone)


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_positive_bend_folds_knees_back_and_elbows_forward(skeleton: Skeleton, side: str) -> None:
    rest = rest_transforms(skeleton)[:, :3, 3]
    for hinge, end, ahead in (("knee", "ankle", -1.0), ("elbow", "wrist", 1.0)):
        joint = skeleton.index(f"{side}_{end}")
        moved = forward(skeleton, bent(skeleton, f"{side}_{hinge}", (40.0, 0.0, 0.0)))[joint, :3, 3]
        assert float((moved - rest[joint])[2]) * ahead > 0.1


def test_a_hinge_opens_until_straight_and_folds_to_150_degrees(skeleton: Skeleton) -> None:
    # Thigh (0, -0.45, 0.04) and shin (0, -0.42, -0.04): the knee rests atan(0.04/0.45) + atan(0.04/0.42) from straight.
    rest = math.degrees(math.atan2(0.04, 0.45) + math.atan2(0.04, 0.42))
    low, high = skeleton.limits[skeleton.index("left_knee"), 0].rad2deg().tolist()
    assert low == pytest.approx(2.0 - rest, abs=1e-3)
    assert high == pytest.approx(150.0 - rest, abs=1e-3)


def test_the_rest_pose_is_within_all_limits(skeleton: Skeleton) -> None:
    angles = compound_angles(skeleton, rest_pose(skeleton))
    assert float(limit_penalty(skeleton, angles)) == 0.0
    torch.testing.assert_close(clamp_pose(skeleton, rest_pose(skeleton)).rotations, rest_pose(skeleton).rotations)


def test_tips_are_locked(skeleton: Skeleton) -> None:
    tips = [j for j, name in enumerate(skeleton.names) if name.endswith("_tip")]
    assert len(tips) == 5
    assert float(skeleton.limits[tips].abs().max()) == 0.0


def test_a_knee_bent_the_wrong_way_is_brought_back_to_straight(skeleton: Skeleton) -> None:
    knee = skeleton.index("left_knee")
    clamped = clamp_pose(skeleton, bent(skeleton, "left_knee", (-70.0, 0.0, 0.0)))
    angles = compound_angles(skeleton, clamped)[knee]
    torch.testing.assert_close(angles[0], skeleton.limits[knee, 0, 0], atol=1e-5, rtol=0)
    torch.testing.assert_close(angles[1:], torch.zeros(2), atol=1e-5, rtol=0)


def test_mirrored_limbs_have_mirrored_limits(skeleton: Skeleton) -> None:
    for name in skeleton.names:
        if name.startswith("left_"):
            left = skeleton.limits[skeleton.index(name)]
            right = skeleton.limits[skeleton.index(name.replace("left_", "right_"))]
            torch.testing.assert_close(left[0], right[0])
            torch.testing.assert_close(left[1:], -right[1:].flip(-1))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31 - 1))
def test_clamping_is_idempotent_and_ends_the_penalty(seed: int) -> None:
    skeleton = with_default_limits(walker())
    angles = 2.5 * torch.randn(4, len(skeleton), 3, generator=torch.Generator().manual_seed(seed))
    once = clamp_angles(skeleton, angles)
    assert torch.equal(clamp_angles(skeleton, once), once)
    assert float(limit_penalty(skeleton, once).max()) == 0.0
    assert bool((limit_penalty(skeleton, angles) > 0).all())


def test_the_penalty_is_the_squared_excess_and_its_gradient_twice_the_excess(skeleton: Skeleton) -> None:
    knee = skeleton.index("right_knee")
    angles = torch.zeros(len(skeleton), 3)
    angles[knee, 0] = skeleton.limits[knee, 0, 1] + 0.3
    angles.requires_grad_()
    penalty = limit_penalty(skeleton, angles)
    assert penalty.item() == pytest.approx(0.09, rel=1e-4)
    penalty.backward()
    assert angles.grad is not None
    expected = torch.zeros(len(skeleton), 3)
    expected[knee, 0] = 0.6
    torch.testing.assert_close(angles.grad, expected, atol=1e-5, rtol=0)


def test_the_penalty_keeps_the_batch_and_passes_gradcheck(skeleton: Skeleton) -> None:
    double = Skeleton(
        skeleton.names,
        skeleton.parents,
        skeleton.T_parent_joint.double(),
        skeleton.axes.double(),
        skeleton.limits.double(),
    )
    generator = torch.Generator().manual_seed(3)
    angles = torch.randn(2, 3, len(skeleton), 3, generator=generator, dtype=torch.float64, requires_grad=True)
    assert limit_penalty(double, angles).shape == (2, 3)
    assert torch.autograd.gradcheck(lambda a: limit_penalty(double, a), (angles[0, :1].detach().requires_grad_(),))


def test_a_straight_knee_folds_the_shin_backwards() -> None:
    names = ("pelvis", "left_hip", "left_knee", "left_ankle", "left_toe")
    T = torch.eye(4).repeat(5, 1, 1)
    T[:, :3, 3] = torch.tensor([[0, 1, 0], [0.1, 0, 0], [0, -0.45, 0], [0, -0.45, 0], [0, -0.05, 0.1]])
    skeleton = with_default_limits(make_skeleton(names, (-1, 0, 1, 2, 3), T))
    torch.testing.assert_close(skeleton.axes[2, :, 0], torch.tensor([1.0, 0.0, 0.0]))
    assert skeleton.limits[2, 0].rad2deg().tolist() == pytest.approx([0.0, 150.0], abs=1e-3)
