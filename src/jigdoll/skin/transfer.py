"""Weights for any points: barycentric interpolation at the nearest point of the surface (AKD appendix A)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from jigdoll.errors import RigError
from jigdoll.types import Weights


def transfer(
    points: Float[Tensor, "points 3"],
    mesh_vertices: Float[Tensor, "vertices 3"],
    mesh_faces: Int[Tensor, "faces 3"],
    weights: Weights,
    *,
    max_influences: int | None = None,
) -> Weights:
    """The weights of the surface point nearest to each point, cut to the strongest influences if asked.

    For splats, which lie near the surface, and for meshes of another resolution. Not differentiable in the points.
    """
    from jigdoll.skin.closest import closest_points

    if weights.values.shape[0] != mesh_vertices.shape[0]:
        raise RigError(f"{weights.values.shape[0]} rows of weights for a mesh of {mesh_vertices.shape[0]} vertices")
    if not points.shape[0]:
        return Weights(weights.joints[:0], weights.values[:0])
    if not mesh_faces.shape[0]:
        raise RigError("weights can only be transferred from a mesh with faces, and this one has none")
    for what, x in (("points", points), ("vertices of the mesh", mesh_vertices)):
        if not bool(torch.isfinite(x).all()):
            raise RigError(f"some {what} are not finite numbers; remove them before transferring weights")
    vertices, faces = mesh_vertices.detach().cpu().double().numpy(), mesh_faces.detach().cpu().numpy()
    face, barycentric, _ = closest_points(points.detach().cpu().double().numpy(), vertices, faces)
    corners = mesh_faces.cpu().long()[torch.from_numpy(face)]
    return interpolate(weights, corners, torch.from_numpy(barycentric), max_influences=max_influences)


def interpolate(
    weights: Weights,
    corners: Int[Tensor, "points corners"],
    shares: Float[Tensor, "points corners"],
    *,
    max_influences: int | None = None,
) -> Weights:
    """The mean of the rows of `weights` that each point names, in the given shares."""
    values = weights.values.detach().cpu()
    mixed = (values.double()[corners] * shares.double()[..., None]).flatten(1)
    joints = weights.joints.cpu()[corners].flatten(1)
    return merge(joints, mixed, max_influences=max_influences, dtype=values.dtype)


def merge(
    joints: Int[Tensor, "points slots"],
    values: Float[Tensor, "points slots"],
    *,
    max_influences: int | None = None,
    dtype: torch.dtype = torch.float32,
) -> Weights:
    """Weights from slots that may name a joint several times: summed, the strongest kept, rows sum to one."""
    joints, order = joints.sort(dim=1, stable=True)
    values = values.gather(1, order).clamp_min(0)
    total = values.cumsum(1)
    last = torch.ones_like(joints, dtype=torch.bool)
    last[:, :-1] = joints[:, 1:] != joints[:, :-1]
    # The sum of a run of equal joints is its last running total less that of the run before.
    before = torch.where(last, total, 0).cummax(1).values.roll(1, 1)
    before[:, 0] = 0
    summed = torch.where(last, total - before, 0).clamp_min(0)
    summed = torch.where(summed > 1e-9 * total[:, -1:], summed, 0)
    most = int((summed > 0).sum(1).max())
    count = max(1, min(most, max_influences or most))
    kept, slots = summed.topk(count, dim=1)
    sums = kept.sum(1, keepdim=True)
    if bool((sums <= 0).any()):
        raise RigError("some points have no weight at all; every row of weights needs a positive sum")
    kept = (kept / sums).to(dtype)
    return Weights(torch.where(kept > 0, joints.gather(1, slots), 0), kept)
