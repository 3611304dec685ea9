"""Skinning weights by heat diffusion over the surface (AKD appendix A, after Pinocchio)."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from jigdoll.errors import RepairWarning, RigError
from jigdoll.skin.bones import Bones, bones_of
from jigdoll.skin.rays import Rays
from jigdoll.skin.surface import Surface, decimated, surface_of, vertex_normals
from jigdoll.skin.transfer import transfer
from jigdoll.types import Mesh, Skeleton, Weights


@dataclass(frozen=True)
class HeatOptions:
    """How heat finds its bones; the defaults are the paper's formula."""

    heat: float = 3.0
    """The constant c of H = c / d^2: more gives stiffer parts, less gives wider bends."""
    next_visible: bool = False
    """A vertex that cannot see its nearest bone is warmed by the nearest that it sees, not by its neighbours alone."""
    soft_ties: float = 0.0
    """Bones that are nearly as near share the vertex by (nearest / distance)^soft_ties; 0 shares exact ties only."""
    facing: float = 0.0
    """Prefer the bone under the skin: distances are divided by cos(normal, way to the bone)^facing."""
    leaf_bones: bool = False
    """A leaf joint with flesh beyond it gets a bone of its own, so that a head can follow its joint."""
    outer_bones: bool = False
    """A bone that lies outside the flesh (in a thin ear, say) warms what is nearest to it without being seen."""
    hidden_parts: bool = False
    """A part that hardly sees a bone (a coat over a body) follows the part next to it."""
    max_faces: int = 60_000
    """A finer mesh is decimated to so many faces, weighed, and the weights are transferred back."""


PAPER = HeatOptions()
REFINED = HeatOptions(heat=4.0, soft_ties=40.0, facing=0.2, leaf_bones=True, outer_bones=True, hidden_parts=True)
"""What agrees best with weights that artists painted."""


@dataclass(frozen=True, eq=False)
class _Sources:
    """Where heat enters."""

    strength: Float[ndarray, " vertices"]
    """H: zero where a vertex only takes from its neighbours."""
    shares: Float[ndarray, "vertices bones"]
    """p: rows sum to one where there is heat."""


def heat_weights(
    mesh: Mesh,
    skeleton: Skeleton,
    *,
    options: HeatOptions = PAPER,
    max_influences: int = 4,
    carriers: Sequence[bool] | None = None,
) -> Weights:
    """Weights for each vertex of a mesh, from the places of the joints alone.

    Solves (-L + H) w = H p for all bones with one factorisation: L is the cotangent Laplacian (of the intrinsic
    Delaunay triangulation, which dirty meshes have too), H = c / d^2 where the nearest bone is visible inside the mesh,
    p marks that bone. `carriers` says which joints may carry weight; by default every joint with a bone in the flesh.
    """
    surface = surface_of(mesh)
    repairs = list(surface.repairs)
    coarse = decimated(surface, options.max_faces) if len(surface.faces) > options.max_faces else surface
    rays = Rays(coarse.vertices, coarse.faces)
    mask = None if carriers is None else _carrier_mask(carriers, skeleton)
    bones = bones_of(skeleton, rays, carriers=mask, leaf_bones=options.leaf_bones)
    _refuse_distant(bones, coarse)
    dense = _joint_weights(coarse, bones, rays, options, len(skeleton), repairs)
    if repairs:
        warnings.warn("; ".join(repairs), RepairWarning, stacklevel=2)
    weights = prune(Weights.from_dense(torch.from_numpy(dense).float()), max_influences=max_influences)
    if coarse is surface and (surface.of_mesh >= 0).all():
        index = torch.from_numpy(surface.of_mesh)
        return Weights(weights.joints[index], weights.values[index])
    where, faces = torch.from_numpy(coarse.vertices), torch.from_numpy(coarse.faces)
    return transfer(mesh.vertices.cpu().double(), where, faces, weights, max_influences=max_influences)


def prune(weights: Weights, *, max_influences: int = 4, least: float = 1e-3) -> Weights:
    """The strongest influences of each row, none below `least`, summing to one again."""
    if max_influences < 1:
        raise RigError(f"a vertex needs at least one influence, not {max_influences}")
    values, slots = weights.values.topk(min(max_influences, weights.values.shape[1]), dim=1)
    values = torch.where(values >= torch.clamp(values[:, :1], max=least), values, 0)
    values = values / values.sum(1, keepdim=True)
    used = max(1, int((values > 0).sum(1).max())) if len(values) else 1
    values, joints = values[:, :used], weights.joints.gather(1, slots)[:, :used]
    return Weights(torch.where(values > 0, joints, 0), values)


def _carrier_mask(carriers: Sequence[bool], skeleton: Skeleton) -> Bool[ndarray, " joints"]:
    mask = np.array(list(carriers), bool)
    if len(mask) != len(skeleton) or not mask.any():
        raise RigError(f"carriers must say yes or no for each of {len(skeleton)} joints, and yes for one of them")
    return mask


def _refuse_distant(bones: Bones, surface: Surface) -> None:
    """A skeleton that is not in its mesh is a mistake of units or of place, not something to diffuse."""
    if not (np.isfinite(bones.heads).all() and np.isfinite(bones.tails).all()):
        raise RigError("some joints of the skeleton are not at finite places")
    gap = float(bones.nearest(surface.vertices)[0].min())
    low, high = surface.vertices.min(0), surface.vertices.max(0)
    around = ((bones.heads > low) & (bones.heads < high)).all(1).any()
    if gap > 0.25 * surface.size and not around:
        raise RigError(
            f"the skeleton is {gap:.3g} m away from the mesh, whose size is {surface.size:.3g} m: "
            "bring both into the same place and unit"
        )


def _joint_weights(
    surface: Surface, bones: Bones, rays: Rays, options: HeatOptions, num_joints: int, repairs: list[str]
) -> Float[ndarray, "vertices joints"]:
    """Find where heat enters, let it flow, and add up the bones of each joint."""
    distance, at = bones.nearest(surface.vertices)
    sources = _find_sources(surface, bones, rays, options, distance, at)
    copies = _parts_that_follow(surface, sources) if options.hidden_parts else np.zeros(0, np.int64)
    sources = _warm_blind_parts(surface, sources, distance, options, copies, repairs)
    of_joint = np.zeros((len(bones), num_joints))
    of_joint[np.arange(len(bones)), bones.joints] = 1
    dense = _diffuse(surface, sources.strength, sources.shares @ of_joint)
    if len(copies):
        _follow(surface, dense, copies)
    return dense


def _find_sources(
    surface: Surface,
    bones: Bones,
    rays: Rays,
    options: HeatOptions,
    distance: Float[ndarray, "vertices bones"],
    at: Float[ndarray, "vertices bones 3"],
) -> _Sources:
    """H and p: each vertex looks at its nearest bones, inside the mesh."""
    v = surface.vertices
    cosine = np.einsum("vbi,vi->vb", v[:, None] - at, vertex_normals(surface)) / np.maximum(distance, 1e-12)
    free = options.outer_bones & (bones.inside < 0.3)
    cosine[:, free] = 1
    far = distance / np.clip(cosine, 0.1, 1) ** options.facing
    # Bones farther than this share of the nearest have no say: soft ties fall below a thousandth.
    reach = 1e-3 ** (-1 / options.soft_ties) if options.soft_ties else 1 + 1e-4
    sees = np.zeros(distance.shape, bool)
    asked = np.zeros(distance.shape, bool)
    active = np.ones(len(bones), bool)
    while True:
        nearest = np.where(active, far, np.inf).min(1, keepdims=True)
        vertex, bone = np.nonzero((far <= nearest * reach) & active & ~asked)
        asked[vertex, bone] = True
        inward = cosine[vertex, bone] > 0
        clear = free[bone].copy()
        test = inward & ~clear
        clear[test] = rays.reaches(at[vertex[test], bone[test]], v[vertex[test]])
        sees[vertex, bone] = inward & clear
        # A bone that nobody sees is no one's nearest; those who waited for it look again.
        blind = active & asked.any(0) & ~sees.any(0)
        if not blind.any() or blind.sum() == active.sum():
            break
        active &= ~blind
    if options.next_visible:
        _look_on(v, at, far, cosine, free, active, rays, sees)
        nearest = np.where(sees, far, np.inf).min(1, keepdims=True)
    return _shares(sees & active, far, nearest, distance, options)


def _look_on(
    v: Float[ndarray, "vertices 3"],
    at: Float[ndarray, "vertices bones 3"],
    far: Float[ndarray, "vertices bones"],
    cosine: Float[ndarray, "vertices bones"],
    free: Bool[ndarray, " bones"],
    active: Bool[ndarray, " bones"],
    rays: Rays,
    sees: Bool[ndarray, "vertices bones"],
) -> None:
    """Let the vertices that see nothing try their bones in order of distance; writes into `sees`."""
    order = np.argsort(np.where(active, far, np.inf), axis=1)
    todo = np.nonzero(~sees.any(1))[0]
    for rank in range(int(active.sum())):
        bone = order[todo, rank]
        ok = cosine[todo, bone] > 0
        test = ok & ~free[bone]
        ok[test] = rays.reaches(at[todo[test], bone[test]], v[todo[test]])
        sees[todo[ok], bone[ok]] = True
        todo = todo[~ok]
        if not len(todo):
            return


def _shares(
    sees: Bool[ndarray, "vertices bones"],
    far: Float[ndarray, "vertices bones"],
    nearest: Float[ndarray, "vertices 1"],
    distance: Float[ndarray, "vertices bones"],
    options: HeatOptions,
) -> _Sources:
    """Turn what each vertex sees into the strength and the shares of its heat."""
    first = np.where(sees, far, np.inf).min(1, keepdims=True)
    warm = np.isfinite(first[:, 0]) & (first[:, 0] <= nearest[:, 0] * (1 + 1e-4))
    first = np.where(np.isfinite(first), first, 1)
    ratio = np.maximum(first, 1e-12) / np.maximum(far, 1e-12)
    if options.soft_ties:
        shares = np.where(sees, np.minimum(ratio, 1) ** options.soft_ties, 0.0)
    else:
        shares = np.where(sees & (ratio >= 1 / (1 + 1e-4)), 1.0, 0.0)
    shares[~warm] = 0
    total = shares.sum(1)
    d = np.where(sees, distance, np.inf).min(1)
    d = np.maximum(np.where(np.isfinite(d), d, 1), 1e-4 * distance.max())
    # Bones that tie each bring their heat.
    strength = np.where(warm, options.heat * total / d**2, 0)
    return _Sources(strength, shares / np.where(total > 0, total, 1)[:, None])


def _warm_blind_parts(
    surface: Surface,
    sources: _Sources,
    distance: Float[ndarray, "vertices bones"],
    options: HeatOptions,
    copies: Int[ndarray, " followers"],
    repairs: list[str],
) -> _Sources:
    """AKD's extension: a connected component that sees no bone is tied to its nearest one.

    Without it the system would be singular there. The nearest bone is the one with the least mean distance.
    """
    count = int(surface.parts.max()) + 1
    blind = np.bincount(surface.parts, sources.strength > 0, count) == 0
    followers = np.isin(np.arange(count), np.unique(surface.parts[copies]))
    if not blind.any():
        return sources
    if (blind & ~followers).any():
        repairs.append(f"{int((blind & ~followers).sum())} of {count} parts see no bone and follow their nearest one")
    sizes = np.bincount(surface.parts, minlength=count)
    mean = np.stack([np.bincount(surface.parts, d, count) for d in distance.T], 1) / sizes[:, None]
    bone = mean.argmin(1)[surface.parts]
    cold = blind[surface.parts]
    d = np.maximum(distance[np.arange(len(bone)), bone], 1e-4 * distance.max())
    strength = np.where(cold, options.heat / d**2, sources.strength)
    shares = sources.shares.copy()
    shares[cold] = 0
    shares[cold, bone[cold]] = 1
    return _Sources(strength, shares)


def _parts_that_follow(surface: Surface, sources: _Sources) -> Int[ndarray, " followers"]:
    """The vertices of parts that hardly see a bone, where another part sees well."""
    count = int(surface.parts.max()) + 1
    if count == 1:
        return np.zeros(0, np.int64)
    sizes = np.bincount(surface.parts, minlength=count)
    lit = np.bincount(surface.parts, sources.strength > 0, count) / sizes
    dim = lit < 0.3
    return np.nonzero(dim[surface.parts])[0] if (lit >= 0.5).any() else np.zeros(0, np.int64)


def _follow(surface: Surface, dense: Float[ndarray, "vertices joints"], copies: Int[ndarray, " followers"]) -> None:
    """Give followers the weights of the nearest point of the other parts, if one is near; writes into `dense`."""
    from jigdoll.skin.closest import closest_points

    lead = np.ones(len(surface.vertices), bool)
    lead[copies] = False
    faces = surface.faces[lead[surface.faces].all(1)]
    face, barycentric, distance = closest_points(surface.vertices[copies], surface.vertices, faces)
    near = distance < 0.1 * surface.size
    dense[copies[near]] = (dense[faces[face[near]]] * barycentric[near][..., None]).sum(1)


def _diffuse(
    surface: Surface, strength: Float[ndarray, " vertices"], shares: Float[ndarray, "vertices joints"]
) -> Float[ndarray, "vertices joints"]:
    """Solve (-L + H) w = H p on the surface, times the mass of each vertex, which makes the matrix symmetric."""
    import robust_laplacian
    from scipy.sparse import diags

    laplacian, mass = robust_laplacian.mesh_laplacian(surface.vertices, surface.faces)
    area = np.asarray(mass.diagonal())
    area = np.maximum(area, 1e-9 * area.mean())
    used = np.nonzero(shares.any(0))[0]
    matrix = (laplacian + diags(area * strength)).tocsc()
    solved = solve_spd(matrix, (area * strength)[:, None] * shares[:, used])
    out = np.zeros(shares.shape)
    out[:, used] = np.clip(solved, 0, 1)
    total = out.sum(1, keepdims=True)
    lost = ~(total[:, 0] > 1e-9)
    if lost.any():
        raise RigError(f"the heat did not reach {int(lost.sum())} vertices; the mesh has faces of extreme shape")
    return out / total


def solve_spd(matrix, right: Float[ndarray, "rows columns"]) -> Float[ndarray, "rows columns"]:
    """Solve a sparse symmetric positive definite system for many right-hand sides with one factorisation."""
    from scipy.sparse.linalg import splu

    right = np.ascontiguousarray(right)
    try:
        from cholespy import CholeskySolverD, MatrixType  # type: ignore[attr-defined]

        # As triplets: cholespy 2.2 reallocates the arrays of a compressed matrix, which belong to numpy.
        triplets = matrix.tocoo()
        rows, columns = triplets.row.astype(np.int32), triplets.col.astype(np.int32)
        solver = CholeskySolverD(matrix.shape[0], rows, columns, triplets.data, MatrixType.COO)
        out = np.zeros_like(right)
        solver.solve(right, out)
        if np.isfinite(out).all():
            return out
    except (ImportError, ValueError, RuntimeError):
        pass  # a matrix that is not quite definite, or a platform without the wheel
    return splu(matrix.tocsc()).solve(right)
