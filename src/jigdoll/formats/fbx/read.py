"""FBX reading: mesh, skin, bind pose, materials and clips, unpacked by ufbx in a process of its own.

A file of motion alone (Mixamo's "without skin") becomes an asset with an empty mesh.

The bind pose is the truth: joints rest where the clusters' bind matrices put them, vertices where those joints carry
them. Unit and axes of the file are converted to metres and Y-up; `Source.T_world_file` holds that conversion.
"""

import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from jigdoll.errors import FileFormatError, RepairWarning
from jigdoll.formats.apart import unpack_apart
from jigdoll.formats.files import read_limited
from jigdoll.formats.joints import unique_names
from jigdoll.formats.polygons import triangulate
from jigdoll.formats.rest import motion_asset, rigid_rest, skeleton_of, world_to_motion
from jigdoll.formats.textures import decode_image, find_texture, vertex_colors
from jigdoll.types import Material, Mesh, Motion, RiggedAsset, Source, Weights

MAX_BYTES = 512 * 1024**2
MAX_JOINTS = 4096
MEMORY = 1024**3
"""What ufbx may take for any file; a large one may take more, `MEMORY_PER_BYTE` for each of its bytes."""
MEMORY_PER_BYTE = 100
"""Long clips of many nodes are packed: sampled, each node of each frame takes some 800 bytes."""


def read(path: str | os.PathLike[str], *, fps: float = 30.0) -> RiggedAsset:
    """Read an FBX file, binary or text, version 3.0 to 7.7; clips are sampled at `fps`."""
    path = Path(path)
    size = len(read_limited(path, MAX_BYTES))
    scene = _unpack(path, fps, memory=max(MEMORY, MEMORY_PER_BYTE * size))
    repairs = list(dict.fromkeys(scene.about["notes"]))
    if not scene.about["parts"] and not _moved_nodes(scene):
        why = "".join(f" ({repair})" for repair in repairs[:1])
        raise FileFormatError(
            f"{path}: there is no mesh in the file and no clip{why}; export the mesh with its skeleton"
        )
    T_world_file = _to_metres(scene.about, repairs)
    nodes, parents = _choose_joints(scene, repairs)
    bind = _bind(scene, nodes, parents)
    parts = [_part(path, scene, part, nodes, bind, repairs) for part in scene.about["parts"]]

    rest, stretch, uneven = rigid_rest(T_world_file @ bind)
    if uneven:
        repairs.append("joints are scaled unevenly at rest; clips are matched as well as rotation and scale allow")
    names = unique_names([_name(scene, node) for node in nodes], where=str(path))
    source = Source(
        path=path,
        format="fbx",
        T_world_file=torch.tensor(T_world_file, dtype=torch.float32),
        nodes=nodes,
        T_joint_node=torch.tensor(stretch, dtype=torch.float32),
        repairs=tuple(dict.fromkeys(repairs)),
    )
    for repair in source.repairs:
        warnings.warn(f"{path.name}: {repair}", RepairWarning, stacklevel=2)
    clips = _clips(scene, nodes, parents, rest, stretch, T_world_file, fps)
    skeleton = skeleton_of(names, parents, rest)
    if not parts:
        return motion_asset(path.stem, skeleton, clips, source)
    mesh, weights = _assemble(path, scene, parts, T_world_file)
    return RiggedAsset(path.stem, mesh, skeleton, weights, clips, source)


@dataclass(frozen=True, eq=False)
class _Scene:
    about: dict[str, Any]
    arrays: dict[str, np.ndarray]

    def ancestors(self, node: int) -> list[int]:
        """From the node's parent up to the scene's own root."""
        chain = []
        while (node := self.about["parents"][node]) >= 0:
            chain.append(node)
        return chain


@dataclass(frozen=True, eq=False)
class _Part:
    """A mesh with its vertices split at texture seams, in the file's world, bind pose."""

    vertices: np.ndarray
    faces: np.ndarray
    face_materials: np.ndarray
    uvs: np.ndarray | None
    painted: np.ndarray | None
    joints: np.ndarray
    weights: np.ndarray


def _unpack(path: Path, fps: float, *, memory: int) -> _Scene:
    """Run ufbx apart and check what it says."""
    script = Path(__file__).with_name("unpack.py")
    about, arrays = unpack_apart(script, path, repr(float(fps)), kind="FBX", memory=memory)
    for key, array in arrays.items():
        if array.dtype.kind == "f" and not (np.abs(array) < 1e30).all():
            raise FileFormatError(f"{path}: {key.split('_', 1)[-1]} hold NaN or infinity; export the file again")
    return _Scene(about, arrays)


def _to_metres(about: dict[str, Any], repairs: list[str]) -> np.ndarray:
    """The similarity from the file's axes and unit to right-handed Y-up metres."""
    T = np.eye(4)
    axes, unit = about["axes"], about["unit"]
    if sorted(axis // 2 for axis in axes) == [0, 1, 2]:
        T[:3, :3] = 0
        for row, axis in enumerate(axes):
            T[row, axis // 2] = -1.0 if axis % 2 else 1.0
        if np.linalg.det(T[:3, :3]) < 0:
            repairs.append("the file's axes are left-handed; the character was mirrored to ours")
    if not 1e-6 < unit < 1e6:
        repairs.append(f"a unit of {unit:g} m makes no sense; taken as centimetres")
        unit = 0.01
    T[:3] *= unit
    return T


def _name(scene: _Scene, node: int) -> str:
    return (scene.about["names"][node] if node > 0 else "") or "root"


def _choose_joints(scene: _Scene, repairs: list[str]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Nodes that carry weight, what lies between them, the bones above and below; one root (-1 for one we add)."""
    bones = set(scene.about["bones"])
    carrying = {cluster["node"] for part in scene.about["parts"] for cluster in part["clusters"]}
    if not scene.about["parts"]:  # no body: the bones move, or whatever the clips move
        carrying = bones or _moved_nodes(scene)
    elif not carrying:  # no skin: parts follow the nodes that clips move
        moved = _moved_nodes(scene)
        chains = [[part["node"], *scene.ancestors(part["node"])] for part in scene.about["parts"]]
        carrying = {node for chain in chains for node in chain if node in moved}
    chosen = set(carrying)
    for node in carrying:
        chain = scene.ancestors(node)
        tops = [i for i, above in enumerate(chain) if above in bones or above in carrying]
        chosen.update(chain[: tops[-1] + 1] if tops else [])
    for node, parent in enumerate(scene.about["parents"]):  # parents come before children in ufbx's list
        if node in bones and parent in chosen:
            chosen.add(node)
    chosen.discard(0)
    ordered = sorted(chosen)
    if len(ordered) > MAX_JOINTS:
        raise FileFormatError(f"{len(ordered)} joints are more than {MAX_JOINTS}; simplify the rig")
    tops = [node for node in ordered if scene.about["parents"][node] not in chosen]
    nodes = tuple(ordered) if len(tops) == 1 else (-1, *ordered)
    if len(tops) > 1:
        repairs.append(f"{len(tops)} joint roots were gathered under a new root")
    place = {node: i for i, node in enumerate(nodes)}
    parents = tuple(-1 if i == 0 else place.get(scene.about["parents"][node], 0) for i, node in enumerate(nodes))
    return nodes, parents


def _moved_nodes(scene: _Scene) -> set[int]:
    moved: set[int] = set()
    for index in range(len(scene.about["clips"])):
        world = scene.arrays[f"clip{index}"]
        spread = np.abs(world - scene.arrays["world"]).max(axis=(0, 2, 3))
        moved.update(np.flatnonzero(spread > 1e-5 * (1 + np.abs(world).max())).tolist())
    return moved


def _bind(scene: _Scene, nodes: tuple[int, ...], parents: tuple[int, ...]) -> np.ndarray:
    """Where each joint stands in the bind pose, in the file's world: the largest mesh decides, rest is relative."""
    known: dict[int, np.ndarray] = {}
    for part in sorted(scene.about["parts"], key=lambda part: -len(scene.arrays[f"{part['key']}_points"])):
        for cluster in part["clusters"]:
            matrix = np.array(cluster["bind_to_world"])
            if abs(np.linalg.det(matrix[:3, :3])) > 1e-30:
                known.setdefault(cluster["node"], matrix)
    world = scene.arrays["world"]
    out = np.tile(np.eye(4), (len(nodes), 1, 1))
    for i, node in enumerate(nodes):
        if node in known:
            out[i] = known[node]
        elif node >= 0:
            above = nodes[parents[i]] if parents[i] >= 0 else -1
            relative = np.linalg.pinv(world[above]) @ world[node] if above >= 0 else world[node]
            out[i] = out[parents[i]] @ relative if parents[i] >= 0 else relative
            if abs(np.linalg.det(out[i][:3, :3])) < 1e-30:
                out[i][:3, :3] = np.eye(3)
    if nodes[0] < 0 and len(nodes) > 1:
        out[0][:3, 3] = out[1:][np.array(parents[1:]) == 0][:, :3, 3].mean(0)
    return out


def _part(
    path: Path, scene: _Scene, part: dict[str, Any], nodes: tuple[int, ...], bind: np.ndarray, repairs: list[str]
) -> _Part:
    """One mesh instance: split at seams, triangulated, carried to the bind pose."""
    key, arrays = part["key"], scene.arrays
    counts, begins = arrays[f"{key}_counts"], arrays[f"{key}_begins"]
    keep = counts >= 3
    counts, begins, materials = counts[keep], begins[keep], arrays[f"{key}_materials"][keep]
    starts = np.cumsum(counts) - counts
    rows = np.repeat(begins - starts, counts) + np.arange(int(counts.sum()))
    corners = arrays[f"{key}_corners"][rows]
    points = arrays[f"{key}_points"]
    uv_index = _attribute(arrays, f"{key}_uv", rows)
    color_index = _attribute(arrays, f"{key}_color", rows)
    stacked = np.stack([corners, *(x for x in (uv_index, color_index) if x is not None)], 1)
    unique, place = np.unique(stacked, axis=0, return_inverse=True)
    flat, polygon = triangulate(points[corners], counts) if len(counts) else (np.zeros((0, 3), int), np.zeros(0, int))
    faces = place.reshape(-1)[flat]
    good = (faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 2] != faces[:, 0])
    uvs = arrays[f"{key}_uv_values"][unique[:, 1]] * [1, -1] + [0, 1] if uv_index is not None else None
    painted = arrays[f"{key}_color_values"][unique[:, -1], :3].clip(0, 1) if color_index is not None else None
    known = np.array([*part["materials"], len(scene.about["materials"])])  # the last one stands for "none"
    face_materials = known[np.minimum(materials, len(known) - 1)][polygon[good]]
    vertices, joints, weights = _carried(path, scene, part, nodes, bind, repairs)
    source = unique[:, 0]
    return _Part(vertices[source], faces[good], face_materials, uvs, painted, joints[source], weights[source])


def _attribute(arrays: dict[str, np.ndarray], key: str, rows: np.ndarray) -> np.ndarray | None:
    if f"{key}_indices" not in arrays or not len(arrays[f"{key}_values"]):
        return None
    index = arrays[f"{key}_indices"][rows]
    return np.where(index < len(arrays[f"{key}_values"]), index, 0)


def _carried(
    path: Path, scene: _Scene, part: dict[str, Any], nodes: tuple[int, ...], bind: np.ndarray, repairs: list[str]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The mesh's own points in the bind pose of the file's world, with joints and normalised weights."""
    points = scene.arrays[f"{part['key']}_points"]
    homogeneous = np.concatenate([points, np.ones((len(points), 1))], 1)
    place = {node: i for i, node in enumerate(nodes)}
    world = scene.arrays["world"]
    joints, weights, clusters = _influences(scene, part, len(points))
    above = next((node for node in [part["node"], *scene.ancestors(part["node"])] if node in place and node >= 0), -1)
    carrier = place.get(above, 0)
    follow = bind[carrier] @ np.linalg.pinv(world[above]) if above >= 0 else np.eye(4)
    rigid = (homogeneous @ (follow @ np.array(part["geometry_to_world"])).T)[:, :3]
    if not len(clusters):
        return rigid, np.full((len(points), 1), carrier), np.ones((len(points), 1))
    sums = weights.sum(1)
    off = np.abs(sums - 1)[sums > 0]
    if len(off) and off.max() > 0.01:
        repairs.append(f"weight sums from {sums[sums > 0].min():.2f} to {sums.max():.2f} were normalised to 1")
    lost = sums <= 0
    if lost.any():
        repairs.append(f"{int(lost.sum())} vertices of {part['name']!r} without any weight follow the root")
    weights = weights / np.where(lost, 1, sums)[:, None]
    to_joint = np.array([place[cluster["node"]] for cluster in clusters])
    carry = bind[to_joint] @ np.array([cluster["geometry_to_bone"] for cluster in clusters])
    moved = np.zeros((len(points), 3))
    for k in range(weights.shape[1]):
        moved += weights[:, k, None] * np.einsum("vab,vb->va", carry[joints[:, k], :3], homogeneous)
    moved[lost] = rigid[lost]
    weights[lost, 0] = 1.0
    mapped = np.where(weights > 0, to_joint[joints], 0)
    mapped[lost, 0] = 0
    return moved, mapped, weights


def _influences(scene: _Scene, part: dict[str, Any], count: int) -> tuple[np.ndarray, np.ndarray, list[dict[str, Any]]]:
    """Cluster indices and weights [points influences], strongest first, as many columns as the busiest point needs."""
    clusters = part["clusters"]
    if not clusters:
        return np.zeros((count, 1), np.int64), np.zeros((count, 1)), clusters
    vertex = np.concatenate([scene.arrays[f"{cluster['key']}_vertices"] for cluster in clusters])
    weight = np.concatenate([scene.arrays[f"{cluster['key']}_weights"] for cluster in clusters])
    cluster = np.repeat(np.arange(len(clusters)), [len(scene.arrays[f"{c['key']}_vertices"]) for c in clusters])
    good = (vertex >= 0) & (vertex < count) & np.isfinite(weight) & (weight > 0)
    vertex, weight, cluster = vertex[good], weight[good], cluster[good]
    order = np.lexsort((-weight, vertex))
    vertex, weight, cluster = vertex[order], weight[order], cluster[order]
    rank = np.arange(len(vertex)) - np.searchsorted(vertex, vertex)
    columns = int(min(rank.max() + 1, 64)) if len(rank) else 1
    vertex, weight, cluster, rank = (x[rank < columns] for x in (vertex, weight, cluster, rank))
    joints, weights = np.zeros((count, columns), np.int64), np.zeros((count, columns))
    joints[vertex, rank], weights[vertex, rank] = cluster, weight
    return joints, weights, clusters


def _assemble(path: Path, scene: _Scene, parts: list[_Part], T_world_file: np.ndarray) -> tuple[Mesh, Weights]:
    """One mesh out of all parts, in our axes and metres."""
    starts = np.cumsum([0, *(len(part.vertices) for part in parts)])
    vertices = np.concatenate([part.vertices for part in parts]) @ T_world_file[:3, :3].T + T_world_file[:3, 3]
    faces = np.concatenate([part.faces + start for part, start in zip(parts, starts, strict=False)]).astype(np.int64)
    if not len(faces) or not (np.abs(vertices) < 1e9).all():
        raise FileFormatError(f"{path}: the mesh is empty or larger than any real character; export it again")
    if np.linalg.det(T_world_file[:3, :3]) < 0:
        faces = faces[:, ::-1].copy()
    materials = _materials(path, scene)
    face_materials = np.concatenate([part.face_materials for part in parts]).astype(np.int64)
    uvs = None
    if any(part.uvs is not None for part in parts):
        uvs = np.concatenate([np.zeros((len(p.vertices), 2)) if p.uvs is None else p.uvs for p in parts])
    looks = [(m.color, None if m.texture is None else m.texture.numpy()) for m in materials]
    colors = vertex_colors(len(vertices), faces, face_materials, looks, uvs)
    for part, start in zip(parts, starts, strict=False):
        if part.painted is not None:
            colors[start : start + len(part.vertices)] *= part.painted
    widest = max(part.weights.shape[1] for part in parts)
    joints, weights = (
        np.concatenate([np.pad(getattr(p, name), ((0, 0), (0, widest - p.weights.shape[1]))) for p in parts])
        for name in ("joints", "weights")
    )
    mesh = Mesh(
        vertices=torch.tensor(vertices, dtype=torch.float32),
        faces=torch.from_numpy(faces),
        colors=torch.tensor(colors, dtype=torch.float32),
        uvs=None if uvs is None else torch.tensor(uvs, dtype=torch.float32),
        materials=materials,
        face_materials=torch.from_numpy(face_materials),
    )
    return mesh, Weights(torch.from_numpy(joints.astype(np.int64)), torch.tensor(weights, dtype=torch.float32))


def _materials(path: Path, scene: _Scene) -> tuple[Material, ...]:
    """The file's materials and one more for faces that have none. An FBX texture replaces the colour."""
    out: list[Material] = []
    for index, entry in enumerate(scene.about["materials"]):
        texture = None
        if entry["embedded"]:
            try:
                texture = decode_image(scene.arrays[f"image{index}"].tobytes())
            except FileFormatError as error:
                warnings.warn(f"{path}: an embedded texture was left out ({error})", RepairWarning, stacklevel=4)
        elif entry["file"]:
            texture = find_texture(path, entry["file"])
        r, g, b, a = (min(max(value, 0.0), 1.0) for value in entry["color"])
        if texture is not None:
            r = g = b = 1.0
        out.append(Material(entry["name"], (r, g, b, a), None if texture is None else torch.from_numpy(texture)))
    return (*out, Material("default", (0.8, 0.8, 0.8, 1.0)))


def _clips(
    scene: _Scene,
    nodes: tuple[int, ...],
    parents: tuple[int, ...],
    rest: np.ndarray,
    stretch: np.ndarray,
    T_world_file: np.ndarray,
    fps: float,
) -> dict[str, Motion]:
    clips: dict[str, Motion] = {}
    names = unique_names(scene.about["clips"], what="clip") if scene.about["clips"] else ()
    for index, name in enumerate(names):
        world = T_world_file @ scene.arrays[f"clip{index}"].astype(np.float64)[:, [max(node, 0) for node in nodes]]
        if nodes[0] < 0:
            world[:, 0] = rest[0] @ stretch[0]
        clips[name] = world_to_motion(parents, rest, world, stretch, fps=fps, name=name)
    return clips
