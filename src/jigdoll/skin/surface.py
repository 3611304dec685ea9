"""The surface that heat flows on: a mesh of any quality, welded and cleaned, with the way back to its own vertices."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from jigdoll.errors import RigError
from jigdoll.types import Mesh

WELD = 1e-6
"""Vertices nearer than this share of the mesh's size are one."""


@dataclass(frozen=True, eq=False)
class Surface:
    """Triangles without seams, repeats or slivers; every vertex belongs to a face."""

    vertices: Float[ndarray, "vertices 3"]
    faces: Int[ndarray, "faces 3"]
    of_mesh: Int[ndarray, " mesh_vertices"]
    """The vertex behind each vertex of the mesh, -1 where it has none."""
    parts: Int[ndarray, " vertices"]
    """The connected component of each vertex, counted from 0."""
    repairs: tuple[str, ...]
    """What had to be left out or turned."""

    @property
    def size(self) -> float:
        """The longest side of the bounding box [m]."""
        return float(np.ptp(self.vertices, axis=0).max())


def surface_of(mesh: Mesh) -> Surface:
    """Weld the seams of a mesh and leave out what carries no area; raises where nothing is left."""
    vertices = mesh.vertices.detach().cpu().double().numpy()
    faces = mesh.faces.detach().cpu().long().numpy()
    if not len(vertices):
        raise RigError("the mesh is empty; there is nothing to weigh")
    if not np.isfinite(vertices).all():
        bad = int((~np.isfinite(vertices).all(1)).sum())
        raise RigError(f"{bad} of {len(vertices)} vertices are not finite numbers; repair the mesh before weighing it")
    if not len(faces):
        raise RigError(
            f"the mesh is a cloud of {len(vertices)} points without faces, and heat needs a surface: "
            "reconstruct one, or transfer weights from a mesh of the same shape"
        )
    if faces.min() < 0 or faces.max() >= len(vertices):
        raise RigError(f"faces name vertex {max(-faces.min(), faces.max())}, and there are {len(vertices)}")
    repairs: list[str] = []
    kept, of_mesh = _weld(vertices)
    welded = vertices[kept]
    faces = _clean(welded, of_mesh[faces], repairs)
    if not len(faces):
        raise RigError("no face of the mesh has an area; there is no surface to weigh")
    if _volume(welded, faces) < 0:
        faces = faces[:, ::-1]
        repairs.append("the faces point inwards and were turned around")
    used = np.unique(faces)
    place = np.full(len(welded), -1)
    place[used] = np.arange(len(used))
    of_mesh = place[of_mesh]
    stray = int((of_mesh < 0).sum())
    if stray:
        repairs.append(f"{stray} vertices without a face take the weights of the nearest surface point")
    faces = np.ascontiguousarray(place[faces])
    return Surface(welded[used], faces, of_mesh, parts_of(len(used), faces), tuple(repairs))


def decimated(surface: Surface, max_faces: int) -> Surface:
    """The same shape with at most about so many faces; its `of_mesh` is empty, weights come back by transfer."""
    import fast_simplification

    simple = fast_simplification.simplify(
        surface.vertices, surface.faces.astype(np.int32), target_count=max_faces, agg=5.0
    )
    vertices, faces = np.asarray(simple[0], np.float64), np.asarray(simple[1], np.int64)
    kept, merged = _weld(vertices)
    faces = _clean(vertices[kept], merged[faces], [])
    used, faces = np.unique(faces, return_inverse=True)
    faces = np.ascontiguousarray(faces.reshape(-1, 3))
    return Surface(vertices[kept][used], faces, np.zeros(0, np.int64), parts_of(len(used), faces), surface.repairs)


def parts_of(count: int, faces: Int[ndarray, "faces 3"]) -> Int[ndarray, " vertices"]:
    """The connected component of each vertex."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    ends = np.concatenate([faces[:, :2], faces[:, 1:]])
    graph = coo_matrix((np.ones(len(ends), np.int8), (ends[:, 0], ends[:, 1])), (count, count))
    return connected_components(graph, directed=False)[1].astype(np.int64)


def vertex_normals(surface: Surface) -> Float[ndarray, "vertices 3"]:
    """Unit normals, outwards; zero where the faces around a vertex cancel."""
    v, f = surface.vertices, surface.faces
    normals = np.cross(v[f[:, 1]] - v[f[:, 0]], v[f[:, 2]] - v[f[:, 0]])
    out = np.stack([np.bincount(f.ravel(), np.repeat(normals[:, i], 3), len(v)) for i in range(3)], 1)
    length = np.linalg.norm(out, axis=1, keepdims=True)
    return out / np.where(length > 0, length, 1)


def _weld(vertices: Float[ndarray, "vertices 3"]) -> tuple[Int[ndarray, " welded"], Int[ndarray, " vertices"]]:
    """One vertex of each place, and the place of each vertex."""
    low = vertices.min(0)
    size = max(float((vertices.max(0) - low).max()), 1e-300)
    grid = np.round((vertices - low) / (size * WELD)).astype(np.int64)
    code = (grid[:, 0] << 42) | (grid[:, 1] << 21) | grid[:, 2]
    _, kept, place = np.unique(code, return_index=True, return_inverse=True)
    return kept, place


def _clean(
    vertices: Float[ndarray, "vertices 3"], faces: Int[ndarray, "faces 3"], repairs: list[str]
) -> Int[ndarray, "kept 3"]:
    """Without faces that have no area or that repeat another."""
    edges = np.stack([vertices[faces[:, (i + 1) % 3]] - vertices[faces[:, i]] for i in range(3)], 1)
    longest = (edges**2).sum(-1).max(1)
    area = np.linalg.norm(np.cross(edges[:, 0], edges[:, 1]), axis=1)
    solid = area > 1e-10 * longest
    if not solid.all():
        repairs.append(f"{int((~solid).sum())} faces without area were left out")
    faces = faces[solid]
    corners = np.sort(faces, axis=1)
    # Numbers instead of rows, so that the search for repeats sorts integers.
    _, pair = np.unique(corners[:, 0] * len(vertices) + corners[:, 1], return_inverse=True)
    _, first = np.unique(pair * len(vertices) + corners[:, 2], return_index=True)
    if len(first) < len(faces):
        repairs.append(f"{len(faces) - len(first)} faces that repeat another were left out")
        faces = faces[np.sort(first)]
    return faces


def _volume(vertices: Float[ndarray, "vertices 3"], faces: Int[ndarray, "faces 3"]) -> float:
    a, b, c = (vertices[faces[:, i]] - vertices.mean(0) for i in range(3))
    return float((a * np.cross(b, c)).sum() / 6)
