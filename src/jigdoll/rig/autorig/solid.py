"""From triangles to a solid made of voxels: the flesh that bones have to lie in.

Real meshes are open, doubled, self-crossing and in pieces, so nothing here trusts their topology: the surface is
painted into a grid, what the outside cannot reach is flesh, holes are bridged by a Poisson indicator, and loose parts
are joined to the nearest flesh.
"""

import warnings
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy import fft, ndimage
from scipy.spatial import KDTree
from torch import Tensor

from jigdoll.asset.orientation import FrameGuess
from jigdoll.errors import RepairWarning, RigError
from jigdoll.types import Mesh

Array = np.ndarray

_MOST_FACES = 40_000
"""Above that many faces a mesh is decimated before it is painted: the grid is coarser than the triangles anyway."""


@dataclass(frozen=True, eq=False)
class Solid:
    """A character as voxels, in the rig frame: left +X, up +Y, forward +Z, mirror plane at x = 0, feet at y = 0."""

    filled: Array
    """[nx ny nz] bool."""
    depth: Array
    """[nx ny nz] distance to the outside [m], zero outside."""
    origin: Array
    """[3] centre of voxel (0, 0, 0) [m]."""
    size: float
    """Edge of a voxel [m]."""
    mirrored: bool
    """Whether the voxels were made exactly symmetric."""

    @property
    def length(self) -> float:
        """The longest side of the bounding box [m]: what the word body length means here."""
        inside = np.argwhere(self.filled)
        return float((np.ptp(inside, axis=0).max() + 1) * self.size)

    def points(self, voxels: Array) -> Array:
        """Where voxels lie [m]."""
        return self.origin + self.size * np.asarray(voxels, dtype=float)

    def depth_at(self, points: Array) -> Array:
        """Distance to the outside at any points [m], trilinear, zero outside."""
        where = (np.atleast_2d(points) - self.origin) / self.size
        return ndimage.map_coordinates(self.depth, where.T, order=1, mode="constant", cval=0.0)


def check_mesh(mesh: Mesh) -> None:
    """Refuse what has no inside: no faces, no volume, numbers that are not numbers."""
    if mesh.faces.shape[0] == 0:
        raise RigError(
            "this is a point cloud or an empty mesh: it has no faces to put a skeleton into; give a mesh with triangles"
        )
    if not bool(torch.isfinite(mesh.vertices).all()):
        bad = int((~torch.isfinite(mesh.vertices)).any(1).sum())
        raise RigError(f"{bad} vertices are NaN or infinite; mend the mesh before rigging it")
    if int(mesh.faces.min()) < 0 or int(mesh.faces.max()) >= mesh.vertices.shape[0]:
        raise RigError("a face names a vertex that the mesh does not have")
    if mesh.faces.shape[0] < 4:
        raise RigError(f"{mesh.faces.shape[0]} triangles enclose nothing; a skeleton needs a mesh with a volume")
    extent = np.ptp(_array(mesh.vertices), axis=0)
    if extent.max() <= 0 or np.sort(extent)[1] < 1e-4 * extent.max():
        raise RigError("the mesh is flat or a line; a skeleton needs a mesh with a volume")


def build_solid(mesh: Mesh, frame: FrameGuess, *, voxels: int = 70_000, longest: int = 176) -> Solid:
    """Paint a mesh into voxels: about `voxels` of flesh, at most `longest` along the longest side."""
    vertices, faces = _simplified(mesh.vertices, mesh.faces)
    T = _array(frame.T_world_file)
    vertices = vertices @ T[:3, :3].T + T[:3, 3]
    vertices[:, 1] -= vertices[:, 1].min()
    extent = float(np.ptp(vertices, axis=0).max())
    # A first coarse painting tells the volume, hence the voxel size that gives the wanted number.
    coarse, _ = _painted(vertices, faces, extent / 48)
    size = max(extent / longest, extent / 48 * (coarse.sum() / voxels) ** (1 / 3))
    filled, origin = _painted(vertices, faces, size)
    overlap = (filled & filled[::-1]).sum() / max(1, filled.sum())
    mirrored = bool(frame.is_symmetric and overlap > 0.97)
    if mirrored:
        filled = filled | filled[::-1]
    filled = _joined(filled)
    if filled.sum() < 30:
        raise RigError("the mesh encloses almost no volume; a skeleton needs flesh to lie in")
    # A voxel's centre lies half a voxel inside the boundary that the transform measures to.
    depth = np.maximum(np.asarray(ndimage.distance_transform_edt(filled)) - 0.5, 0.0) * size
    return Solid(filled, depth.astype(np.float32), origin, size, mirrored)


def _simplified(vertices: Float[Tensor, "vertices 3"], faces: Int[Tensor, "faces 3"]) -> tuple[Array, Array]:
    """Points and triangles as numpy, few enough to paint quickly."""
    v, f = _array(vertices), faces.detach().cpu().numpy().astype(np.int64)
    if len(f) <= _MOST_FACES:
        return v, f
    import fast_simplification

    used, f = np.unique(f, return_inverse=True)
    f = f.reshape(-1, 3)
    v_small, f_small = fast_simplification.simplify(v[used], f.astype(np.int32), target_count=_MOST_FACES)[:2]
    return np.asarray(v_small, dtype=np.float64), np.asarray(f_small, dtype=np.int64)


def _painted(vertices: Array, faces: Array, size: float) -> tuple[Array, Array]:
    """The voxels that the surface touches or encloses; the middle layer in x lies on the mirror plane."""
    points, normals = _surface_samples(vertices, faces, 0.45 * size)
    if float((points * normals).sum()) < 0:
        normals = -normals  # the volume is negative: the faces are inside out
    reach = np.abs(points).max(0)[0]
    half = int(np.ceil(reach / size)) + 3
    low = points.min(0) - 3 * size
    count = np.ceil((points.max(0) + 3 * size - low) / size).astype(int) + 1
    origin = np.array([-half * size, low[1], low[2]])
    shape = (2 * half + 1, int(count[1]), int(count[2]))
    where = np.round((points - origin) / size).astype(int)
    shell = np.zeros(shape, dtype=bool)
    shell[tuple(where.T)] = True
    regions = _labels(~shell)
    filled = regions != regions[0, 0, 0]
    filled &= ~_mostly_air(points, normals, where, origin, size, shell)
    if filled.sum() < 4 * shell.sum():
        # Much skin and little flesh: the outside may have leaked in through a hole.
        indicator = _poisson_indicator(where, normals, shape)
        guess = indicator > 0.5
        if guess.sum() > 1.1 * (filled & ~shell).sum():
            filled = filled | guess
    return filled, origin


def _mostly_air(points: Array, normals: Array, where: Array, origin: Array, size: float, shell: Array) -> Array:
    """Voxels of the shell whose centre lies outside the surface: without them an arm stays apart from the flank.

    A voxel with both sides of a thin sheet in it has no clear side and stays.
    """
    flat = np.ravel_multi_index(tuple(where.T), shell.shape)
    voxels, inverse = np.unique(flat, return_inverse=True)
    area = np.linalg.norm(normals, axis=1)
    total = np.bincount(inverse, area) + 1e-30
    normal = np.stack([np.bincount(inverse, normals[:, k]) for k in range(3)], 1) / total[:, None]
    place = np.stack([np.bincount(inverse, area * points[:, k]) for k in range(3)], 1) / total[:, None]
    center = origin + size * np.stack(np.unravel_index(voxels, shell.shape), 1)
    clear = np.linalg.norm(normal, axis=1) > 0.6
    beyond = ((center - place) * normal).sum(1)
    air = np.zeros(shell.shape, dtype=bool)
    air.ravel()[voxels[clear & (beyond > 0.05 * size)]] = True
    return air


def _surface_samples(vertices: Array, faces: Array, spacing: float) -> tuple[Array, Array]:
    """Points at most about `spacing` apart on every triangle, with the piece of area (a vector) behind each."""
    corners = vertices[faces]
    cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    edges = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max(1)
    steps = np.clip(np.ceil(edges / spacing).astype(int), 1, 400)
    points, normals = [], []
    for n in np.unique(steps):
        which = steps == n
        i, j = np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij")
        keep = i + j <= n
        a, b = i[keep] / n, j[keep] / n
        bary = np.stack([1 - a - b, a, b], 1)
        points.append(np.einsum("kb,fbd->fkd", bary, corners[which]).reshape(-1, 3))
        normals.append(np.repeat(0.5 * cross[which] / len(bary), len(bary), axis=0))
    return np.concatenate(points), np.concatenate(normals)


def _poisson_indicator(where: Array, normals: Array, shape: tuple[int, ...]) -> Array:
    """About 1 inside and 0 outside even of a surface with holes: the potential whose gradient is the inward normals."""
    flat = np.ravel_multi_index(tuple(where.T), shape)
    size = int(np.prod(shape))
    parts = [np.bincount(flat, -normals[:, k], minlength=size).reshape(shape) for k in range(3)]
    field = np.stack([ndimage.gaussian_filter(part, 1.0) for part in parts]).astype(np.float32)
    waves = np.meshgrid(*[np.fft.fftfreq(n) for n in shape[:-1]], np.fft.rfftfreq(shape[-1]), indexing="ij")
    waves = [2 * np.pi * w.astype(np.float32) for w in waves]
    square = np.square(np.stack(waves)).sum(0)
    square[0, 0, 0] = 1.0
    spectrum = np.stack([-1j * w * np.asarray(fft.rfftn(part)) for w, part in zip(waves, field, strict=True)]).sum(0)
    spectrum /= square
    spectrum[0, 0, 0] = 0.0
    potential = np.asarray(fft.irfftn(spectrum, s=shape), dtype=np.float32)
    potential -= np.median(potential[0])
    on_surface = potential[tuple(where.T)].mean()
    return potential / (2 * on_surface) if on_surface > 0 else np.zeros(shape, dtype=np.float32)


def _joined(filled: Array) -> Array:
    """One piece: every loose part of some size is tied to its nearest neighbour by a line of voxels."""
    labels = _labels(filled, corners=True)
    if labels.max() <= 1:
        return filled
    sizes = np.bincount(labels.ravel())[1:]
    kept = [k + 1 for k in np.argsort(sizes)[::-1] if sizes[k] >= max(4, 2e-4 * sizes.sum())]
    pieces = {k: np.argwhere(labels == k) for k in kept}
    joined = np.isin(labels, kept)
    body = pieces.pop(kept[0])
    widest = 0.0
    while pieces:
        tree = KDTree(body)
        gaps, k, start, stop = np.inf, 0, body[0], body[0]
        for key, points in pieces.items():
            distance, nearest = (np.asarray(part) for part in tree.query(points))
            i = int(distance.argmin())
            if distance[i] < gaps:
                gaps, k, start, stop = float(distance[i]), key, points[i], body[int(nearest[i])]
        widest = max(widest, gaps)
        line = np.linspace(start, stop, int(np.abs(stop - start).max()) + 1).round().astype(int)
        joined[tuple(line.T)] = True
        body = np.concatenate([body, pieces.pop(k), line])
    if widest > 0.05 * max(filled.shape):
        share = widest / max(filled.shape)
        warnings.warn(
            f"loose parts of the mesh, up to {100 * share:.0f} % of its size away, were tied to the body for rigging",
            RepairWarning,
            stacklevel=2,
        )
    return joined


def _labels(mask: Array, *, corners: bool = False) -> Array:
    """Number the connected pieces of a mask from 1; corners touch on request."""
    labels = np.zeros(mask.shape, dtype=np.int32)
    ndimage.label(mask, structure=np.ones((3, 3, 3)) if corners else None, output=labels)
    return labels


def _array(x: Tensor) -> Array:
    return np.asarray(x.detach().cpu(), dtype=np.float64)
