"""Rotations against closed forms, finite differences and their own inverses."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck

from jigdoll.math.rotations import (
    axis_angle_to_quaternion,
    compound_to_quaternion,
    matrix_to_quaternion,
    quaternion_inverse,
    quaternion_multiply,
    quaternion_to_compound,
    quaternion_to_matrix,
    quaternion_to_rotvec,
    rotvec_to_quaternion,
    slerp,
)
from jigdoll.math.transforms import apply, rigid_inverse, split_scale, transform, translation

component = st.floats(-1, 1, allow_nan=False, width=32)
vectors = st.tuples(component, component, component).map(lambda v: torch.tensor(v, dtype=torch.float64))
angles = st.floats(-math.pi, math.pi, allow_nan=False)


def unit(v: Tensor) -> Tensor:
    """A unit vector along v, or along x where v is (nearly) zero."""
    return v / v.norm() if v.norm() > 1e-3 else torch.tensor([1.0, 0.0, 0.0], dtype=v.dtype)


def random_quaternions(count: int, *, seed: int = 0) -> Tensor:
    q = torch.randn(count, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return q / q.norm(dim=-1, keepdim=True)


def test_a_quarter_turn_about_z_takes_x_to_y():
    q = torch.tensor([math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5)], dtype=torch.float64)
    expected = torch.tensor([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]], dtype=torch.float64)
    torch.testing.assert_close(quaternion_to_matrix(q), expected, atol=1e-15, rtol=0)


def test_the_length_of_a_quaternion_does_not_change_its_matrix():
    q = random_quaternions(20)
    torch.testing.assert_close(quaternion_to_matrix(3.7 * q), quaternion_to_matrix(q))


def test_a_product_of_quaternions_is_the_product_of_their_matrices():
    a, b = random_quaternions(50, seed=1), random_quaternions(50, seed=2)
    product = quaternion_to_matrix(quaternion_multiply(a, b))
    torch.testing.assert_close(product, quaternion_to_matrix(a) @ quaternion_to_matrix(b))


def test_a_quaternion_times_its_inverse_is_the_identity():
    q = random_quaternions(50)
    identity = torch.tensor([1.0, 0, 0, 0], dtype=torch.float64).expand(50, 4)
    torch.testing.assert_close(quaternion_multiply(q, quaternion_inverse(q)), identity, atol=1e-15, rtol=0)


@settings(deadline=None, max_examples=200)
@given(vectors, angles)
def test_rodrigues_formula_gives_the_same_matrix(v: Tensor, angle: float):
    # R = 1 + sin(a) K + (1 - cos(a)) K^2, with K the cross product matrix of the axis.
    x, y, z = axis = unit(v)
    zero = torch.zeros_like(x)
    K = torch.stack([zero, -z, y, z, zero, -x, -y, x, zero]).reshape(3, 3)
    expected = torch.eye(3, dtype=v.dtype) + math.sin(angle) * K + (1 - math.cos(angle)) * K @ K
    q = axis_angle_to_quaternion(axis, torch.tensor(angle, dtype=v.dtype))
    torch.testing.assert_close(quaternion_to_matrix(q), expected, atol=1e-12, rtol=0)


@settings(deadline=None, max_examples=200)
@given(vectors, angles)
def test_matrices_and_quaternions_round_trip_at_every_angle(v: Tensor, angle: float):
    q = axis_angle_to_quaternion(unit(v), torch.tensor(angle, dtype=v.dtype))
    back = matrix_to_quaternion(quaternion_to_matrix(q))
    # q and -q are the same rotation.
    torch.testing.assert_close((back * q).sum().abs(), torch.ones((), dtype=v.dtype), atol=1e-12, rtol=0)
    assert back[0] >= 0


@settings(deadline=None, max_examples=200)
@given(vectors, st.floats(0, 3.14159, allow_nan=False))
def test_rotation_vectors_round_trip_up_to_half_a_turn(v: Tensor, angle: float):
    rotvec = angle * unit(v)
    torch.testing.assert_close(quaternion_to_rotvec(rotvec_to_quaternion(rotvec)), rotvec, atol=1e-9, rtol=0)


@settings(deadline=None, max_examples=100)
@given(vectors, st.sampled_from([0.0, 1e-12, 1e-8, 1e-5, 1.9e-4, 2.1e-4, 1e-3]))
def test_tiny_rotation_vectors_keep_their_relative_precision(v: Tensor, angle: float):
    rotvec = angle * unit(v)
    error = (quaternion_to_rotvec(rotvec_to_quaternion(rotvec)) - rotvec).norm()
    assert error <= 1e-9 * angle


@settings(deadline=None, max_examples=200)
@given(angles, st.floats(-1.55, 1.55, allow_nan=False), angles, vectors)
def test_compound_angles_round_trip_about_any_right_handed_axes(a: float, b: float, c: float, v: Tensor):
    axes = quaternion_to_matrix(rotvec_to_quaternion(v))
    angle = torch.tensor([a, b, c], dtype=torch.float64)
    back = quaternion_to_compound(compound_to_quaternion(angle, axes), axes)
    # +pi and -pi are the same angle.
    torch.testing.assert_close(torch.cos(back - angle), torch.ones(3, dtype=torch.float64), atol=1e-9, rtol=0)


def test_compound_angles_turn_about_their_own_axes_in_order():
    # R = Rx(a) Ry(b) Rz(c), written out.
    a, b, c = 0.3, -0.7, 1.1
    Rx = torch.tensor([[1, 0, 0], [0, math.cos(a), -math.sin(a)], [0, math.sin(a), math.cos(a)]], dtype=torch.float64)
    Ry = torch.tensor([[math.cos(b), 0, math.sin(b)], [0, 1, 0], [-math.sin(b), 0, math.cos(b)]], dtype=torch.float64)
    Rz = torch.tensor([[math.cos(c), -math.sin(c), 0], [math.sin(c), math.cos(c), 0], [0, 0, 1]], dtype=torch.float64)
    q = compound_to_quaternion(torch.tensor([a, b, c], dtype=torch.float64), torch.eye(3, dtype=torch.float64))
    torch.testing.assert_close(quaternion_to_matrix(q), Rx @ Ry @ Rz)


def test_compound_angles_broadcast_frames_over_the_joints_axes():
    generator = torch.Generator().manual_seed(3)
    angle = torch.randn(5, 7, 3, dtype=torch.float64, generator=generator)
    axes = quaternion_to_matrix(random_quaternions(7))
    together = compound_to_quaternion(angle, axes)
    one = compound_to_quaternion(angle[3, 4], axes[4])
    assert together.shape == (5, 7, 4)
    torch.testing.assert_close(together[3, 4], one)


def test_slerp_goes_at_constant_speed_along_the_shorter_way():
    a = axis_angle_to_quaternion(torch.tensor([0.0, 1, 0]), torch.tensor(0.2))
    b = -axis_angle_to_quaternion(torch.tensor([0.0, 1, 0]), torch.tensor(1.4))  # the same rotation, other sign
    t = torch.linspace(0, 1, 9)
    between = slerp(a.expand(9, 4), b.expand(9, 4), t)
    expected = axis_angle_to_quaternion(torch.tensor([0.0, 1, 0]).expand(9, 3), 0.2 + 1.2 * t)
    torch.testing.assert_close((between * expected).sum(-1).abs(), torch.ones(9), atol=1e-6, rtol=0)
    torch.testing.assert_close(slerp(a, b, torch.tensor(0.5)), between[4])


@pytest.mark.parametrize(
    "function, shape",
    [
        (quaternion_to_matrix, (3, 4)),
        (rotvec_to_quaternion, (3, 3)),
        (lambda v: quaternion_to_rotvec(rotvec_to_quaternion(v)), (3, 3)),
        (lambda v: matrix_to_quaternion(quaternion_to_matrix(rotvec_to_quaternion(v))), (3, 3)),
        (lambda a: compound_to_quaternion(a, quaternion_to_matrix(random_quaternions(3))), (3, 3)),
        (lambda a: quaternion_to_compound(rotvec_to_quaternion(a), torch.eye(3, dtype=torch.float64)), (3, 3)),
        (lambda v: slerp(rotvec_to_quaternion(v[:1]), rotvec_to_quaternion(v[1:2]), v[2, :1]), (3, 3)),
    ],
)
def test_gradients_agree_with_finite_differences(function, shape):
    x = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(5), requires_grad=True)
    assert gradcheck(function, (x,))


@pytest.mark.parametrize("function", [rotvec_to_quaternion, lambda v: quaternion_to_rotvec(rotvec_to_quaternion(v))])
@pytest.mark.parametrize("size", [0.0, 1e-9, 1e-4])
def test_gradients_stay_finite_and_right_near_the_identity(function, size):
    v = (size * torch.tensor([[0.6, 0.0, 0.8]], dtype=torch.float64)).requires_grad_()
    assert gradcheck(function, (v,))


def test_a_rigid_transform_and_its_inverse_cancel():
    generator = torch.Generator().manual_seed(0)
    T = transform(
        quaternion_to_matrix(random_quaternions(9)), torch.randn(9, 3, dtype=torch.float64, generator=generator)
    )
    torch.testing.assert_close(
        rigid_inverse(T) @ T, torch.eye(4, dtype=torch.float64).expand(9, 4, 4), atol=1e-14, rtol=0
    )


def test_applying_a_transform_is_multiplying_homogeneous_points():
    generator = torch.Generator().manual_seed(0)
    T = torch.randn(2, 4, 4, dtype=torch.float64, generator=generator)
    T[:, 3] = torch.tensor([0.0, 0, 0, 1], dtype=torch.float64)
    points = torch.randn(2, 6, 3, dtype=torch.float64, generator=generator)
    homogeneous = torch.cat([points, torch.ones(2, 6, 1, dtype=torch.float64)], -1)
    torch.testing.assert_close(apply(T, points), torch.einsum("bij,bpj->bpi", T, homogeneous)[..., :3])


def test_splitting_off_the_scale_leaves_a_rotation_and_gives_the_transform_back():
    rotation = quaternion_to_matrix(random_quaternions(4))
    mirrored = torch.diag(torch.tensor([-2.0, 0.5, 3.0], dtype=torch.float64))
    T = transform(rotation @ mirrored, torch.ones(4, 3, dtype=torch.float64))
    rigid, stretch = split_scale(T)
    torch.testing.assert_close(torch.linalg.det(rigid[:, :3, :3]), torch.ones(4, dtype=torch.float64))
    torch.testing.assert_close(rigid[:, :3, :3] @ stretch, T[:, :3, :3])
    torch.testing.assert_close(stretch, stretch.transpose(-1, -2))
    torch.testing.assert_close(rigid[:, :3, 3], T[:, :3, 3])


def test_a_translation_moves_the_origin_to_its_vector():
    v = torch.tensor([[1.0, 2.0, 3.0]])
    torch.testing.assert_close(apply(translation(v), torch.zeros(1, 1, 3)), v[:, None])
