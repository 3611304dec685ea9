"""Linear blend skinning of any points (AKD Eq. 5)."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.errors import RigError
from jigdoll.kinematics import skin_transforms
from jigdoll.types import Pose, RiggedAsset, Weights


def deform(
    points: Float[Tensor, "points 3"], weights: Weights, transforms: Float[Tensor, "*batch joints 4 4"]
) -> Float[Tensor, "*batch points 3"]:
    """The points moved by their joints: phi(x) = sum_i w_i (R_i x + T_i), with gradients to all three arguments.

    Sparse: the cost grows with points, frames and influences, not with joints. On a GPU the dense form runs.
    """
    if weights.values.shape[0] != points.shape[0]:
        raise RigError(f"{weights.values.shape[0]} rows of weights for {points.shape[0]} points")
    dtype = torch.promote_types(torch.promote_types(points.dtype, weights.values.dtype), transforms.dtype)
    if points.device.type != "cpu" or dtype not in (torch.float32, torch.float64):
        return deform_reference(points, weights, transforms)
    if weights.joints.numel():
        lowest, highest, count = int(weights.joints.min()), int(weights.joints.max()), transforms.shape[-3]
        if lowest < 0 or highest >= count:
            raise RigError(f"weights name joints {lowest}..{highest}, and there are transforms for {count} only")
    batch = transforms.shape[:-3]
    # [frames joints 12] with the frames last: see skin.kernels.
    rows = transforms[..., :3, :].to(dtype).reshape(-1, transforms.shape[-3], 12).permute(1, 2, 0)
    moved: Any = _Skin.apply(points.to(dtype), weights.joints, weights.values.to(dtype), rows)
    return moved.reshape(*batch, points.shape[0], 3)


def deform_reference(
    points: Float[Tensor, "points 3"], weights: Weights, transforms: Float[Tensor, "*batch joints 4 4"]
) -> Float[Tensor, "*batch points 3"]:
    """Skinning by dense products. Exact and slow, the truth for `deform`."""
    dense = weights.dense(transforms.shape[-3])
    blended = torch.einsum("pj,...jab->...pab", dense, transforms[..., :3, :])
    return (blended[..., :3] @ points[:, :, None])[..., 0] + blended[..., 3]


def deform_mesh(asset: RiggedAsset, pose: Pose) -> Float[Tensor, "*batch vertices 3"]:
    """The asset's vertices in a pose [m], world."""
    return deform(asset.mesh.vertices, asset.weights, skin_transforms(asset.skeleton, pose))


_CHUNKS = 16
"""Pieces of the points that may run at once; fixed, so that sums do not depend on the number of threads."""
_FRAMES_AT_ONCE = 64
"""Frames of one block: 12 rows of them per joint stay in the cache."""


class _Skin(torch.autograd.Function):
    """The compiled kernels as one differentiable operation."""

    @staticmethod
    def forward(ctx: Any, points: Tensor, joints: Tensor, values: Tensor, rows: Tensor) -> Tensor:
        from jigdoll.skin import kernels
        from jigdoll.skin.threads import on_torch_threads

        ctx.save_for_backward(points, joints, values, rows)
        frames = rows.shape[2]
        out = torch.empty(frames, points.shape[0], 3, dtype=points.dtype)
        if out.numel():
            arrays = _arrays(points, joints, values)
            on_torch_threads(kernels.skin_forward, *arrays, _blocks(rows), frames, _CHUNKS, out.numpy())
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, None, Tensor | None, Tensor | None]:
        from jigdoll.skin import kernels
        from jigdoll.skin.threads import on_torch_threads

        points, joints, values, rows = ctx.saved_tensors
        (grad,) = grads
        frames, num_joints = rows.shape[2], rows.shape[0]
        blocks = _blocks(rows)
        want_points, _, want_values, want_rows = ctx.needs_input_grad
        parts_shape = (len(blocks), _CHUNKS, num_joints, 12, blocks.shape[-1])
        parts = grad.new_zeros(parts_shape if want_rows else (0,) * 5)
        grad_points = grad.new_zeros((len(blocks), *points.shape) if want_points else (0,) * 3)
        grad_values = grad.new_zeros((len(blocks), *values.shape) if want_values else (0,) * 3)
        if grad.numel():
            outputs = (parts.numpy(), grad_points.numpy(), grad_values.numpy())
            arrays = _arrays(points, joints, values)
            on_torch_threads(
                kernels.skin_backward, *arrays, blocks, frames, _CHUNKS, grad.contiguous().numpy(), *outputs
            )
        grad_rows = parts.sum(1).permute(1, 2, 0, 3).reshape(num_joints, 12, -1)[..., :frames] if want_rows else None
        return (
            grad_points.sum(0) if want_points else None,
            None,
            grad_values.sum(0) if want_values else None,
            grad_rows,
        )


def _arrays(points: Tensor, joints: Tensor, values: Tensor) -> tuple[Any, Any, Any]:
    return (
        points.detach().contiguous().numpy(),
        joints.detach().to(torch.int32).contiguous().numpy(),
        values.detach().contiguous().numpy(),
    )


def _blocks(rows: Tensor) -> Any:
    """[joints 12 frames] cut into [blocks joints 12 width], the last block filled with zeros."""
    joints, twelve, frames = rows.shape
    # A whole number of vectors where there are enough frames to fill one.
    rounded = frames if frames < 8 else -(-frames // 16) * 16
    width = max(1, min(_FRAMES_AT_ONCE, rounded))
    count = -(-frames // width)
    padded = torch.nn.functional.pad(rows.detach(), (0, count * width - frames))
    return padded.reshape(joints, twelve, count, width).permute(2, 0, 1, 3).contiguous().numpy()
