"""Rotations in the forms that rigs, files and optimisers use; all differentiable, all batched, quaternions wxyz."""

import torch
from jaxtyping import Float
from torch import Tensor


def quaternion_multiply(a: Float[Tensor, "*batch 4"], b: Float[Tensor, "*batch 4"]) -> Float[Tensor, "*batch 4"]:
    """The rotation b, then a."""
    aw, ax, ay, az = a.unbind(-1)
    bw, bx, by, bz = b.unbind(-1)
    return torch.stack(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ],
        dim=-1,
    )


def quaternion_inverse(q: Float[Tensor, "*batch 4"]) -> Float[Tensor, "*batch 4"]:
    """The inverse of a unit quaternion."""
    return q * q.new_tensor([1.0, -1.0, -1.0, -1.0])


def quaternion_to_matrix(q: Float[Tensor, "*batch 4"]) -> Float[Tensor, "*batch 3 3"]:
    """The rotation matrix of a quaternion of any length but zero."""
    two_s = 2.0 / q.square().sum(-1)
    w, x, y, z = q.unbind(-1)
    rows = [
        1 - two_s * (y * y + z * z),
        two_s * (x * y - z * w),
        two_s * (x * z + y * w),
        two_s * (x * y + z * w),
        1 - two_s * (x * x + z * z),
        two_s * (y * z - x * w),
        two_s * (x * z - y * w),
        two_s * (y * z + x * w),
        1 - two_s * (x * x + y * y),
    ]
    return torch.stack(rows, dim=-1).unflatten(-1, (3, 3))


def matrix_to_quaternion(m: Float[Tensor, "*batch 3 3"]) -> Float[Tensor, "*batch 4"]:
    """The unit quaternion (w >= 0) of a rotation matrix, stable for every angle.

    Of the four ways to solve for a quaternion, each is well conditioned where its own component is the largest.
    """
    m00, m01, m02, m10, m11, m12, m20, m21, m22 = m.flatten(-2).unbind(-1)
    squares = torch.stack([1 + m00 + m11 + m22, 1 + m00 - m11 - m22, 1 - m00 + m11 - m22, 1 - m00 - m11 + m22], -1)
    candidates = torch.stack(
        [
            torch.stack([squares[..., 0], m21 - m12, m02 - m20, m10 - m01], -1),
            torch.stack([m21 - m12, squares[..., 1], m10 + m01, m02 + m20], -1),
            torch.stack([m02 - m20, m10 + m01, squares[..., 2], m12 + m21], -1),
            torch.stack([m10 - m01, m02 + m20, m12 + m21, squares[..., 3]], -1),
        ],
        dim=-2,
    )
    best = squares.argmax(-1)
    chosen = candidates.gather(-2, best[..., None, None].expand(*best.shape, 1, 4)).squeeze(-2)
    q = torch.nn.functional.normalize(chosen, dim=-1)
    return torch.where(q[..., :1] < 0, -q, q)


def rotvec_to_quaternion(v: Float[Tensor, "*batch 3"]) -> Float[Tensor, "*batch 4"]:
    """The quaternion of a rotation vector [rad]; smooth at zero."""
    half_squared = 0.25 * v.square().sum(-1, keepdim=True)
    small = half_squared < 1e-8
    half = torch.where(small, torch.ones_like(half_squared), half_squared).sqrt()
    sinc = torch.where(small, 1 - half_squared / 6, half.sin() / half)
    cos = torch.where(small, 1 - half_squared / 2, half.cos())
    return torch.cat([cos, 0.5 * sinc * v], dim=-1)


def quaternion_to_rotvec(q: Float[Tensor, "*batch 4"]) -> Float[Tensor, "*batch 3"]:
    """The shortest rotation vector [rad] of a unit quaternion; smooth at zero."""
    q = torch.where(q[..., :1] < 0, -q, q)
    w, xyz = q[..., :1], q[..., 1:]
    sine_squared = xyz.square().sum(-1, keepdim=True)
    small = sine_squared < 1e-10
    sine = torch.where(small, torch.ones_like(sine_squared), sine_squared).sqrt()
    ratio = torch.where(small, 2 / w.clamp_min(0.5), 2 * torch.atan2(sine, w) / sine)
    return ratio * xyz


def axis_angle_to_quaternion(
    axis: Float[Tensor, "*#batch 3"], angle: Float[Tensor, "*#batch"]
) -> Float[Tensor, "*batch 4"]:
    """The rotation by an angle [rad] about a unit axis."""
    half = 0.5 * angle[..., None]
    xyz = half.sin() * axis
    return torch.cat([half.cos().expand(*xyz.shape[:-1], 1), xyz], -1)


def compound_to_quaternion(
    angles: Float[Tensor, "*#batch 3"], axes: Float[Tensor, "*#batch 3 3"]
) -> Float[Tensor, "*batch 4"]:
    """A 3-DoF compound joint (AKD 4.4): turn about the columns of `axes`, R = R0(a0) R1(a1) R2(a2)."""
    turns = [axis_angle_to_quaternion(axes[..., :, i], angles[..., i]) for i in range(3)]
    return quaternion_multiply(quaternion_multiply(turns[0], turns[1]), turns[2])


def quaternion_to_compound(
    q: Float[Tensor, "*#batch 4"], axes: Float[Tensor, "*#batch 3 3"]
) -> Float[Tensor, "*batch 3"]:
    """The compound angles [rad] of a rotation about orthonormal, right-handed `axes`; the middle one within pi/2."""
    m = axes.transpose(-1, -2) @ quaternion_to_matrix(q) @ axes
    middle = torch.asin(m[..., 0, 2].clamp(-1, 1))
    first = torch.atan2(-m[..., 1, 2], m[..., 2, 2])
    last = torch.atan2(-m[..., 0, 1], m[..., 0, 0])
    return torch.stack([first, middle, last], dim=-1)


def slerp(
    a: Float[Tensor, "*#batch 4"], b: Float[Tensor, "*#batch 4"], t: Float[Tensor, "*#batch"]
) -> Float[Tensor, "*batch 4"]:
    """The rotation a fraction t of the shorter way from a to b."""
    a, b = torch.broadcast_tensors(a, b)
    step = quaternion_to_rotvec(quaternion_multiply(quaternion_inverse(a), b))
    return quaternion_multiply(*torch.broadcast_tensors(a, rotvec_to_quaternion(t[..., None] * step)))
