"""The fast skinning against the dense one, closed forms and finite differences."""

import math
import subprocess
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck

from jigdoll.errors import RigError
from jigdoll.kinematics import make_skeleton
from jigdoll.math.rotations import axis_angle_to_quaternion
from jigdoll.math.transforms import transform
from jigdoll.skin.deform import deform, deform_mesh, deform_reference
from jigdoll.types import Mesh, Pose, RiggedAsset, Weights


def random_case(
    points: int, joints: int, influences: int, *batch: int, dtype: torch.dtype = torch.float32, seed: int = 0
) -> tuple[Tensor, Weights, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    values = torch.rand(points, influences, generator=generator, dtype=dtype)
    values = values * (torch.rand(points, influences, generator=generator) < 0.7)
    values[:, 0] += 0.1
    values = values / values.sum(1, keepdim=True)
    names = torch.randint(0, joints, (points, influences), generator=generator)
    transforms = torch.randn(*batch, joints, 4, 4, generator=generator, dtype=dtype)
    return torch.randn(points, 3, generator=generator, dtype=dtype), Weights(names, values), transforms


def test_a_bar_bent_at_its_middle_follows_the_formula():
    # phi(x) = w1 x + w2 (R x): a point on the x axis, half of it turned by 90 degrees about z, ends at (x/2, x/2, 0).
    identity = torch.zeros(3, dtype=torch.float64)
    quarter = transform(torch.tensor([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]], dtype=torch.float64), identity)
    transforms = torch.stack([torch.eye(4, dtype=torch.float64), quarter])
    points = torch.tensor([[2.0, 0, 0], [2.0, 0, 0], [2.0, 0, 0]], dtype=torch.float64)
    weights = Weights(torch.tensor([[0, 1]] * 3), torch.tensor([[1.0, 0], [0.5, 0.5], [0, 1.0]], dtype=torch.float64))
    expected = torch.tensor([[2.0, 0, 0], [1, 1, 0], [0, 2, 0]], dtype=torch.float64)
    torch.testing.assert_close(deform(points, weights, transforms), expected, atol=1e-15, rtol=0)


@settings(deadline=None, max_examples=40)
@given(
    points=st.integers(1, 70),
    joints=st.integers(1, 9),
    influences=st.integers(1, 5),
    batch=st.sampled_from([(), (1,), (5,), (8,), (17,), (64,), (65,), (3, 4), (0,)]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    seed=st.integers(0, 10**6),
)
def test_fast_and_dense_skinning_agree_in_values_and_gradients(points, joints, influences, batch, dtype, seed):
    x, weights, transforms = random_case(points, joints, influences, *batch, dtype=dtype, seed=seed)
    grad = torch.randn(*batch, points, 3, dtype=dtype, generator=torch.Generator().manual_seed(seed + 1))
    results = []
    for function in (deform, deform_reference):
        inputs = [t.clone().requires_grad_() for t in (x, weights.values, transforms)]
        out = function(inputs[0], Weights(weights.joints, inputs[1]), inputs[2])
        out.backward(grad)
        results.append([out.detach(), *(t.grad for t in inputs)])
    tolerance = 2e-4 if dtype == torch.float32 else 1e-11
    for fast, dense in zip(*results, strict=True):
        torch.testing.assert_close(fast, dense, atol=tolerance, rtol=tolerance)


def test_gradients_to_points_weights_and_transforms_agree_with_finite_differences():
    points, weights, transforms = random_case(7, 3, 2, 2, 2, dtype=torch.float64)
    inputs = tuple(t.requires_grad_() for t in (points, weights.values, transforms))
    assert gradcheck(lambda x, w, T: deform(x, Weights(weights.joints, w), T), inputs)


def test_a_character_follows_the_gradient_of_its_pose():
    joints = transform(torch.eye(3, dtype=torch.float64), torch.tensor([[0.0, 0, 0], [1, 0, 0]], dtype=torch.float64))
    skeleton = make_skeleton(("shoulder", "elbow"), (-1, 0), joints)
    points, weights, _ = random_case(6, 2, 2, dtype=torch.float64)
    mesh = Mesh(points, torch.tensor([[0, 1, 2]]), torch.ones(6, 3))
    asset = RiggedAsset("arm", mesh, skeleton, weights)
    z = torch.tensor([0.0, 0, 1], dtype=torch.float64)

    def posed(angles: Tensor, root: Tensor) -> Tensor:
        return deform_mesh(asset, Pose(root, axis_angle_to_quaternion(z.expand(3, 2, 3), angles)))

    angles = torch.linspace(-1, 1, 6, dtype=torch.float64).reshape(3, 2).requires_grad_()
    root = torch.zeros(3, 3, dtype=torch.float64, requires_grad=True)
    assert gradcheck(posed, (angles, root))


def test_a_bent_elbow_keeps_the_distance_of_rigidly_bound_points():
    joints = transform(torch.eye(3), torch.tensor([[0.0, 0, 0], [1, 0, 0]]))
    skeleton = make_skeleton(("shoulder", "elbow"), (-1, 0), joints)
    points = torch.tensor([[1.0, 0, 0], [1.7, 0, 0], [0.3, 0, 0]])
    weights = Weights(torch.tensor([[1], [1], [0]]), torch.ones(3, 1))
    asset = RiggedAsset("arm", Mesh(points, torch.tensor([[0, 1, 2]]), torch.ones(3, 3)), skeleton, weights)
    bend = axis_angle_to_quaternion(torch.tensor([0.0, 0, 1]).expand(2, 3), torch.tensor([0.0, math.pi / 2]))
    moved = deform_mesh(asset, Pose(torch.zeros(3), bend))
    torch.testing.assert_close(moved, torch.tensor([[1.0, 0, 0], [1, 0.7, 0], [0.3, 0, 0]]), atol=1e-6, rtol=0)


def test_the_number_of_threads_does_not_change_a_bit():
    points, weights, transforms = random_case(500, 6, 4, 20)
    results = []
    before = torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            T = transforms.clone().requires_grad_()
            out = deform(points, weights, T)
            out.square().sum().backward()
            results.append((out.detach(), T.grad))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(results[0][0], results[1][0])
    assert torch.equal(results[0][1], results[1][1])


def test_no_points_give_no_points():
    weights = Weights(torch.zeros(0, 1, dtype=torch.int64), torch.zeros(0, 1))
    assert deform(torch.zeros(0, 3), weights, torch.eye(4).expand(5, 2, 4, 4)).shape == (5, 0, 3)


@pytest.mark.parametrize("joint", [2, -1])
def test_weights_that_name_a_missing_joint_are_refused(joint):
    with pytest.raises(RigError, match="weights name joints"):
        deform(torch.zeros(1, 3), Weights(torch.tensor([[joint]]), torch.ones(1, 1)), torch.eye(4).expand(2, 4, 4))


def test_weights_of_another_mesh_are_refused():
    with pytest.raises(RigError, match="2 rows of weights for 3 points"):
        deform(torch.zeros(3, 3), Weights(torch.zeros(2, 1, dtype=torch.int64), torch.ones(2, 1)), torch.eye(4)[None])


def test_importing_the_module_does_not_load_the_compiler():
    code = "import sys, jigdoll.skin.deform; assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
