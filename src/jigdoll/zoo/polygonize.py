"""From implicit shapes to a closed triangle mesh, finer around the head."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from jigdoll.errors import JigdollError
from jigdoll.zoo.implicit import Shape, distance, field_at, groups, thickened

_BLOCK = 8
_FINE = ("tooth", "nostril")
"""Regions that a coarse grid may miss: thickened, the teeth of both jaws would grow together."""


@dataclass(frozen=True, eq=False)
class Lens:
    """A smooth map of space that magnifies what lies around a point, so a face gets more triangles than a flank."""

    center: Float[ndarray, "3"]
    radius: float
    """[m]."""
    shrink: float
    """Cell size at the centre, as a share of the cell size far away."""

    def to_world(self, points: Float[ndarray, "*batch 3"]) -> Float[ndarray, "*batch 3"]:
        """From the even grid to the world: radially, r - (1 - shrink) R tanh(r / R)."""
        away = points - self.center.astype(points.dtype)
        reach = np.sqrt((away * away).sum(-1, keepdims=True)) + np.float32(1e-9)
        pull = (1 - self.shrink) * self.radius * np.tanh(reach / self.radius) / reach
        return points - away * pull.astype(points.dtype)

    def cell(self, point: Float[ndarray, "3"]) -> float:
        """The radial size of a cell near a point of the world, as a share of the cell size far away."""
        reach = float(np.linalg.norm(point - self.center)) + (1 - self.shrink) * self.radius
        return 1 - (1 - self.shrink) / np.cosh(reach / self.radius) ** 2


def polygonize(
    shapes: Sequence[Shape], lens: Lens, *, vertices: int, relax: int = 3
) -> tuple[Float[ndarray, "vertices 3"], Int[ndarray, "faces 3"], Float[ndarray, "vertices 3"]]:
    """Vertices, faces and unit normals of the body's surface, of about so many vertices."""
    low, high = _bounds(shapes)
    spacing = float(np.prod(high - low) ** (1 / 3)) / 24
    rough, _ = _march(_resolvable(shapes, lens, spacing), lens, low, high, spacing)
    # Vertices grow with the square of the resolution; a rough pass tells how many there are.
    spacing *= float(np.sqrt(len(rough) / vertices))
    points, faces = _march(_resolvable(shapes, lens, spacing), lens, low, high, spacing)
    points, faces = _largest_part(points, faces)
    points = lens.to_world(points)
    near = _touching(shapes, points, 4 * spacing)
    points, normals = _project(shapes, points, near, 0.5 * spacing)
    for _ in range(relax):
        points = _relax(points, faces, normals)
        points, normals = _project(shapes, points, near, 0.5 * spacing)
    points[:, 1] = np.maximum(points[:, 1], 0)
    return points.astype(np.float64), faces, normals


def _resolvable(shapes: Sequence[Shape], lens: Lens, spacing: float) -> list[Shape]:
    """The shapes as the grid can see them: thin ones thickened, fine carvings left for the projection to press in."""
    seen = []
    for shape in shapes:
        cell = spacing * lens.cell(shape.origin)
        if shape.carve and shape.thickness < 3 * cell:
            continue
        kept = shape.carve or shape.region in _FINE
        seen.append(shape if kept else thickened(shape, 0.87 * cell))
    return seen


def _bounds(shapes: Sequence[Shape]) -> tuple[Float[ndarray, "3"], Float[ndarray, "3"]]:
    boxes = [shape.bounds() for shape in shapes if not shape.carve]
    low, high = np.min([box[0] for box in boxes], 0), np.max([box[1] for box in boxes], 0)
    low[1] = 0.0
    reach = max(abs(low[0]), abs(high[0]))
    low[0], high[0] = -reach, reach
    return low, high


def _march(
    shapes: Sequence[Shape], lens: Lens, low: ndarray, high: ndarray, spacing: float
) -> tuple[Float[ndarray, "vertices 3"], Int[ndarray, "faces 3"]]:
    """Marching cubes in the lens's even space; the grid is symmetric about x = 0."""
    from skimage.measure import marching_cubes

    margin = (1 - lens.shrink) * lens.radius + 2.5 * spacing + 0.25 * max(shape.blend for shape in shapes)
    cells = np.ceil((high - low + 2 * margin) / (spacing * _BLOCK)).astype(int)
    counts = cells * _BLOCK
    start = 0.5 * (low + high) - 0.5 * (counts - 1) * spacing
    axes = [(start[i] + spacing * np.arange(counts[i])).astype(np.float32) for i in range(3)]
    field = _field_on_grid(shapes, lens, axes, cells, spacing)
    tiny = np.float32(0.02 * spacing)
    field = np.where(np.abs(field) < tiny, np.where(field < 0, -tiny, tiny), field)
    if not (field < 0).any():
        raise JigdollError("the shapes of this body enclose nothing")
    points, faces, _, _ = marching_cubes(field, 0.0, spacing=(spacing,) * 3, gradient_direction="descent")
    return (points + start).astype(np.float32), faces.astype(np.int64)


def _field_on_grid(
    shapes: Sequence[Shape], lens: Lens, axes: list[ndarray], cells: ndarray, spacing: float
) -> Float[ndarray, "nx ny nz"]:
    """The body's field on the grid; each shape is evaluated only in the blocks that it can reach."""
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), -1)
    blocks = grid.reshape(cells[0], _BLOCK, cells[1], _BLOCK, cells[2], _BLOCK, 3)
    blocks = blocks.transpose(0, 2, 4, 1, 3, 5, 6).reshape(-1, _BLOCK**3, 3)
    centers = lens.to_world(0.5 * (blocks[:, 0] + blocks[:, -1]))
    blocks = lens.to_world(blocks)
    radius = 0.5 * spacing * _BLOCK * np.sqrt(3)
    reached = _touching(shapes, centers, 1.3 * radius)
    field = field_at(shapes, blocks, reached)
    shape6 = (cells[0], cells[1], cells[2], _BLOCK, _BLOCK, _BLOCK)
    return field.reshape(shape6).transpose(0, 3, 1, 4, 2, 5).reshape(tuple(cells * _BLOCK))


def _largest_part(points: ndarray, faces: ndarray) -> tuple[ndarray, ndarray]:
    """The biggest connected piece; crumbs are artefacts of the grid."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ones = np.ones(2 * len(faces), dtype=np.int8)
    edges = (np.concatenate([faces[:, 0], faces[:, 1]]), np.concatenate([faces[:, 1], faces[:, 2]]))
    count, part = connected_components(coo_array((ones, edges), shape=(len(points),) * 2), directed=False)
    if count == 1:
        return points, faces
    keep = part == np.bincount(part).argmax()
    index = np.cumsum(keep) - 1
    return points[keep], index[faces[keep[faces[:, 0]]]]


def _touching(shapes: Sequence[Shape], points: ndarray, margin: float) -> list[Int[ndarray, " _"]]:
    """Per shape, the points close enough to feel it."""
    blends = [shape.blend for shape in shapes]
    for part in groups(shapes):
        for i in part:
            blends[i] = shapes[part[0]].blend
    return [np.flatnonzero(distance(shape, points) < margin + k) for shape, k in zip(shapes, blends, strict=True)]


def neighbours(count: int, faces: Int[ndarray, "faces 3"]):
    """The mesh's averaging matrix: each row holds one over the number of neighbours."""
    from scipy.sparse import coo_array, diags_array

    rows = np.concatenate([faces[:, 0], faces[:, 1], faces[:, 2]])
    columns = np.concatenate([faces[:, 1], faces[:, 2], faces[:, 0]])
    links = coo_array((np.ones(len(rows), dtype=np.float32), (rows, columns)), shape=(count, count)).tocsr()
    links = ((links + links.T) > 0).astype(np.float32)
    return (diags_array(1.0 / np.maximum(links.sum(1), 1)) @ links).tocsr()


def edge_lengths(points: Float[ndarray, "vertices 3"], faces: Int[ndarray, "faces 3"]) -> Float[ndarray, " vertices"]:
    """The mean length of the edges at each vertex [m]."""
    lengths = np.linalg.norm(points[faces] - points[np.roll(faces, -1, axis=1)], axis=-1).ravel()
    corners = faces.ravel()
    return np.bincount(corners, lengths, len(points)) / np.maximum(np.bincount(corners, minlength=len(points)), 1)


def _relax(points: ndarray, faces: ndarray, normals: ndarray) -> ndarray:
    """Move each vertex towards the middle of its neighbours, along the surface: it evens out the triangles."""
    step = neighbours(len(points), faces) @ points - points
    step -= (step * normals).sum(1, keepdims=True) * normals
    return (points + 0.6 * step).astype(np.float32)


def _project(
    shapes: Sequence[Shape], points: ndarray, near: Sequence[ndarray], reach: float
) -> tuple[ndarray, ndarray]:
    """One Newton step onto the surface, and the unit normals there, by central tetrahedron differences."""
    corners = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]], dtype=np.float32)
    width = np.float32(0.15 * reach)
    slope = np.zeros_like(points)
    mean = np.zeros(len(points), dtype=np.float32)
    for corner in corners:
        value = field_at(shapes, points + width * corner, near)
        slope += value[:, None] * corner / (4 * width)
        mean += 0.25 * value
    size2 = np.maximum((slope * slope).sum(1), 0.05)
    step = np.clip(mean / size2, -reach, reach)
    normals = slope / np.sqrt((slope * slope).sum(1, keepdims=True) + 1e-12)
    return (points - step[:, None] * slope).astype(np.float32), normals.astype(np.float32)
