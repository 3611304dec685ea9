"""Rigid and similarity transforms as 4x4 matrices."""

import torch
from jaxtyping import Float
from torch import Tensor


def transform(
    rotation: Float[Tensor, "*#batch 3 3"], translation: Float[Tensor, "*#batch 3"]
) -> Float[Tensor, "*batch 4 4"]:
    """The 4x4 matrix that turns (and scales), then moves."""
    turn, column = torch.broadcast_tensors(rotation, translation[..., None])
    top = torch.cat([turn, column[..., :1]], -1)
    bottom = top.new_tensor([0.0, 0.0, 0.0, 1.0]).expand(*top.shape[:-2], 1, 4)
    return torch.cat([top, bottom], -2)


def translation(vector: Float[Tensor, "*batch 3"]) -> Float[Tensor, "*batch 4 4"]:
    """The 4x4 matrix that moves."""
    return transform(torch.eye(3, dtype=vector.dtype, device=vector.device), vector)


def rigid_inverse(T: Float[Tensor, "*batch 4 4"]) -> Float[Tensor, "*batch 4 4"]:
    """The inverse of a rigid transform."""
    R_inverse = T[..., :3, :3].transpose(-1, -2)
    return transform(R_inverse, -(R_inverse @ T[..., :3, 3:])[..., 0])


def apply(
    T: Float[Tensor, "*#batch 4 4"], points: Float[Tensor, "*#batch points 3"]
) -> Float[Tensor, "*batch points 3"]:
    """The points, mapped by the transform."""
    return points @ T[..., :3, :3].transpose(-1, -2) + T[..., None, :3, 3]


def split_scale(T: Float[Tensor, "*batch 4 4"]) -> tuple[Float[Tensor, "*batch 4 4"], Float[Tensor, "*batch 3 3"]]:
    """The rigid part of a transform and the symmetric stretch that comes before it."""
    rotation, stretch = polar(T[..., :3, :3])
    return transform(rotation, T[..., :3, 3]), stretch


def polar(linear: Float[Tensor, "*batch 3 3"]) -> tuple[Float[Tensor, "*batch 3 3"], Float[Tensor, "*batch 3 3"]]:
    """Polar decomposition: a proper rotation and the symmetric stretch before it, which takes up any mirroring."""
    U, S, Vh = torch.linalg.svd(linear)
    sign = torch.linalg.det(U @ Vh).sign()
    sign = torch.where(sign == 0, torch.ones_like(sign), sign)[..., None, None]
    return (U @ Vh) * sign, (Vh.transpose(-1, -2) @ (S[..., None] * Vh)) * sign
