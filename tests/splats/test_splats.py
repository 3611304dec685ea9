"""Splats follow their skeleton exactly as the equations say."""

import math

import pytest
import torch

from jigdoll.errors import RigError
from jigdoll.kinematics import make_skeleton, rest_pose
from jigdoll.math.rotations import axis_angle_to_quaternion, quaternion_to_matrix
from jigdoll.math.transforms import transform, translation
from jigdoll.splats.pose import (
    covariances,
    covariances_reference,
    pose_by_transforms,
    pose_reference,
    pose_splats,
    rest_splats,
)
from jigdoll.types import Pose, SkinnedGaussians, Weights


def some_splats(
    count: int, joints: int, *, seed: int = 0, influences: int = 4, dtype: torch.dtype = torch.float32
) -> SkinnedGaussians:
    generator = torch.Generator().manual_seed(seed)

    def random(*shape: int) -> torch.Tensor:
        return torch.rand(*shape, generator=generator, dtype=dtype)

    values = random(count, influences)
    values = values * (values > 0.3) + 1e-3
    joint_ids = torch.stack([torch.randperm(joints, generator=generator)[:influences] for _ in range(count)])
    weights = Weights(joint_ids, values / values.sum(1, keepdim=True))
    quats = torch.nn.functional.normalize(random(count, 4) - 0.5, dim=-1)
    return SkinnedGaussians(
        random(count, 3), quats, 0.01 + 0.1 * random(count, 3), random(count), random(count, 3), weights
    )


def some_transforms(*batch: int, joints: int, seed: int = 1, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    quats = torch.randn(*batch, joints, 4, generator=generator, dtype=dtype)
    return transform(quaternion_to_matrix(quats), torch.randn(*batch, joints, 3, generator=generator, dtype=dtype))


@pytest.mark.parametrize("batch", [(), (5,), (2, 3)])
def test_compiled_posing_equals_the_reference(batch: tuple[int, ...]):
    splats, transforms = some_splats(40, 6), some_transforms(*batch, joints=6)
    fast, slow = pose_by_transforms(splats, transforms), pose_reference(splats, transforms)
    assert fast.means.shape == (*batch, 40, 3)
    torch.testing.assert_close(fast.means, slow.means, atol=2e-6, rtol=1e-5)
    torch.testing.assert_close(fast.covariances, slow.covariances, atol=1e-7, rtol=1e-5)


def test_compiled_gradients_equal_the_reference():
    grads = []
    for how in (pose_by_transforms, pose_reference):
        splats = some_splats(30, 5, dtype=torch.float64)
        transforms = some_transforms(4, joints=5, dtype=torch.float64).requires_grad_()
        for leaf in (splats.means, splats.quats, splats.scales):
            leaf.requires_grad_()
        posed = how(splats, transforms)
        generator = torch.Generator().manual_seed(7)
        pull = torch.randn(4, 30, 3, generator=generator, dtype=torch.float64)
        squeeze = torch.randn(4, 30, 3, 3, generator=generator, dtype=torch.float64)  # not symmetric on purpose
        loss = (posed.means * pull).sum() + (posed.covariances * squeeze).sum()
        grads.append(torch.autograd.grad(loss, [transforms, splats.means, splats.quats, splats.scales]))
    for fast, slow in zip(*grads, strict=True):
        torch.testing.assert_close(fast, slow, atol=1e-12, rtol=1e-10)


@pytest.mark.parametrize("how", [pose_by_transforms, pose_reference])
def test_gradients_equal_finite_differences(how):
    splats = some_splats(3, 4, dtype=torch.float64)

    def moved(transforms: torch.Tensor, means: torch.Tensor, quats: torch.Tensor, scales: torch.Tensor):
        posed = how(SkinnedGaussians(means, quats, scales, splats.opacities, splats.colors, splats.weights), transforms)
        return posed.means, posed.covariances

    leaves = (some_transforms(2, joints=4, dtype=torch.float64), splats.means, splats.quats, splats.scales)
    assert torch.autograd.gradcheck(moved, [leaf.clone().requires_grad_() for leaf in leaves])


def test_gradients_reach_the_joint_angles():
    skeleton = make_skeleton(("root", "tip"), (-1, 0), translation(torch.tensor([[0.0, 0, 0], [0.0, 1.0, 0.0]])))
    weights = Weights(torch.tensor([[1]]), torch.ones(1, 1))
    splat = SkinnedGaussians(
        torch.tensor([[0.0, 2.0, 0.0]]), torch.tensor([[1.0, 0, 0, 0]]), torch.full((1, 3), 0.1), torch.ones(1),
        torch.ones(1, 3), weights,
    )  # fmt: skip
    angle = torch.tensor(0.0, requires_grad=True)
    turn = axis_angle_to_quaternion(torch.tensor([0.0, 0.0, 1.0]), angle)
    pose = Pose(torch.zeros(3), torch.stack([torch.tensor([1.0, 0, 0, 0]), turn]))
    # One metre above the joint, a turn about z moves the splat by -x per radian.
    (slope,) = torch.autograd.grad(pose_splats(splat, skeleton, pose).means[0, 0], angle)
    torch.testing.assert_close(slope, torch.tensor(-1.0))


def test_rest_is_rest():
    splats = some_splats(20, 2, influences=2)
    skeleton = make_skeleton(("root", "tip"), (-1, 0), translation(torch.tensor([[0.0, 0.3, 0], [0.1, 1.0, 0.0]])))
    posed, rest = pose_splats(splats, skeleton, rest_pose(skeleton)), rest_splats(splats)
    torch.testing.assert_close(posed.means, rest.means, atol=1e-6, rtol=0)
    torch.testing.assert_close(posed.covariances, rest.covariances, atol=1e-7, rtol=0)


def test_a_rigid_motion_of_all_joints_turns_the_covariance():
    splats = some_splats(20, 3, influences=3)
    T = some_transforms(joints=1).expand(3, 4, 4)
    posed, rest = pose_by_transforms(splats, T), rest_splats(splats)
    R = T[0, :3, :3]
    torch.testing.assert_close(posed.means, rest.means @ R.T + T[0, :3, 3], atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(posed.covariances, R @ rest.covariances @ R.T, atol=1e-7, rtol=1e-4)
    torch.testing.assert_close(
        torch.linalg.eigvalsh(posed.covariances), splats.scales.square().sort(-1).values, atol=1e-6, rtol=1e-4
    )


def test_a_blend_of_two_rotations_is_not_a_rotation():
    # Half of a turn by +90 and half of a turn by -90 degrees about z: grad phi = diag(0, 0, 1), a flat splat.
    half = torch.tensor([math.pi / 2, -math.pi / 2])
    R = quaternion_to_matrix(axis_angle_to_quaternion(torch.tensor([[0.0, 0.0, 1.0]]), half))
    weights = Weights(torch.tensor([[0, 1]]), torch.full((1, 2), 0.5))
    splat = SkinnedGaussians(
        torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([[1.0, 0, 0, 0]]), torch.tensor([[0.1, 0.2, 0.3]]), torch.ones(1),
        torch.ones(1, 3), weights,
    )  # fmt: skip
    posed = pose_by_transforms(splat, transform(R, torch.zeros(2, 3)))
    torch.testing.assert_close(posed.means, torch.tensor([[0.0, 0.0, 3.0]]), atol=1e-6, rtol=0)
    torch.testing.assert_close(posed.covariances[0], torch.diag(torch.tensor([0.0, 0.0, 0.09])), atol=1e-6, rtol=0)


def test_covariances_have_the_squared_scales_along_the_splats_axes():
    quats = axis_angle_to_quaternion(torch.tensor([0.0, 0.0, 1.0]), torch.tensor([math.pi / 2]))
    sigma = covariances(quats, torch.tensor([[1.0, 2.0, 3.0]]))
    torch.testing.assert_close(sigma[0], torch.diag(torch.tensor([4.0, 1.0, 9.0])), atol=1e-6, rtol=0)


def test_no_splats_and_no_frames_are_fine():
    splats = some_splats(4, 3, influences=2)
    assert pose_by_transforms(splats, some_transforms(0, joints=3)).means.shape == (0, 4, 3)
    none = SkinnedGaussians(
        torch.zeros(0, 3), torch.zeros(0, 4), torch.zeros(0, 3), torch.zeros(0), torch.zeros(0, 3),
        Weights(torch.zeros(0, 2, dtype=torch.long), torch.zeros(0, 2)),
    )  # fmt: skip
    assert pose_by_transforms(none, some_transforms(5, joints=3)).covariances.shape == (5, 0, 3, 3)


def test_weights_that_do_not_fit_are_refused():
    splats = some_splats(4, 3, influences=2)
    with pytest.raises(RigError, match="outside the 2"):
        pose_by_transforms(splats, some_transforms(5, joints=2))


def test_compiled_covariances_equal_the_reference_with_their_gradients():
    splats = some_splats(50, 4, dtype=torch.float64)
    quats, scales = (3 * splats.quats).requires_grad_(), splats.scales.clone().requires_grad_()
    pull = torch.randn(50, 3, 3, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    results = []
    for how in (covariances, covariances_reference):
        sigma = how(quats, scales)
        results.append((sigma, *torch.autograd.grad((sigma * pull).sum(), [quats, scales])))
    for fast, slow in zip(*results, strict=True):
        torch.testing.assert_close(fast, slow, atol=1e-12, rtol=1e-10)
