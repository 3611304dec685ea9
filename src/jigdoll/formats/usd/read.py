"""UsdSkel in: mesh, skeleton, weights, colours and one clip, unpacked by OpenUSD in a process of its own."""

import importlib.util
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

from jigdoll.errors import FileFormatError, MissingExtra, RepairWarning
from jigdoll.formats.apart import unpack_apart
from jigdoll.formats.files import read_limited
from jigdoll.formats.joints import free_skeleton, unique_names
from jigdoll.formats.polygons import triangulate
from jigdoll.formats.rest import rigid_rest, skeleton_of, world_to_motion
from jigdoll.math.colors import linear_to_srgb
from jigdoll.types import Mesh, Motion, RiggedAsset, Source, Weights

MAX_BYTES = 1024**3
MEMORY = 1024**3
"""What the library may take for any file; a large one may take more, `MEMORY_PER_BYTE` for each of its bytes."""
MEMORY_PER_BYTE = 16


def read(path: str | os.PathLike[str]) -> RiggedAsset:
    """Read the first skeleton of a USD file with the meshes bound to it, or a bare mesh, in metres and Y-up."""
    if importlib.util.find_spec("pxr") is None:
        raise MissingExtra("reading USD", "usd")
    path = Path(path)
    size = len(read_limited(path, MAX_BYTES))
    memory = max(MEMORY, MEMORY_PER_BYTE * size)
    about, arrays = unpack_apart(Path(__file__).with_name("unpack.py"), path, kind="USD", memory=memory)
    if not about["parts"]:
        raise FileFormatError(f"{path}: there is no mesh in the file; export the character with its mesh")
    if about["skeletons"] > 1:
        warnings.warn(f"{path}: {about['skeletons']} skeletons; the first one is used", RepairWarning, stacklevel=2)
    try:
        with np.errstate(all="ignore"):  # what is not finite is refused at the end
            return _character(path, about, arrays)
    except (ValueError, IndexError, TypeError, RuntimeError) as error:
        raise FileFormatError(f"{path}: the file is damaged ({type(error).__name__}: {error})") from error


def _to_metres(about: dict[str, Any]) -> np.ndarray:
    """The similarity from the stage's unit and up axis to ours."""
    T = np.eye(4)
    if about["z_up"]:
        T[:3, :3] = [[1, 0, 0], [0, 0, 1], [0, -1, 0]]
    T[:3] *= about["unit"]
    return T


def _character(path: Path, about: dict[str, Any], arrays: dict[str, np.ndarray]) -> RiggedAsset:
    T_world_file = _to_metres(about)
    paths: list[str] = about.get("paths", [])
    clips: dict[str, Motion] = {}
    if "paths" not in about:
        joints, stretch = free_skeleton(("root",), (-1,), torch.eye(4)[None]), np.eye(4)[None]
    else:
        parents, names = _joint_tree(path, paths, about["names"])
        T_world_skeleton = T_world_file @ arrays["T_file_skeleton"]
        if len(arrays["bind"]) != len(paths):
            raise FileFormatError(
                f"{path}: {len(arrays['bind'])} bind transforms for {len(paths)} joints; export it again"
            )
        rest, stretch, _ = rigid_rest(T_world_skeleton @ arrays["bind"])
        joints = skeleton_of(names, parents, rest)
        if about["clip"] is not None:
            world = T_world_skeleton @ _world(arrays["clip"], parents)
            name = about["clip"]["name"]
            clips[name] = world_to_motion(parents, rest, world, stretch, fps=about["clip"]["fps"], name=name)
    mesh, weights = _meshes(path, about, arrays, T_world_file)
    T = torch.tensor(T_world_file, dtype=torch.float32)
    source = Source(path, "usd", T, tuple(range(len(joints))), torch.tensor(stretch, dtype=torch.float32))
    return RiggedAsset(path.stem, mesh, joints, weights, clips, source)


def _joint_tree(path: Path, paths: list[str], names: list[str]) -> tuple[tuple[int, ...], list[str]]:
    """Parents and names of the joints; the tree must have one root and come parents first, as USD demands."""
    place = {joint: i for i, joint in enumerate(paths)}
    parents = []
    for joint in paths:
        above = joint.rpartition("/")[0]
        while above and above not in place:
            above = above.rpartition("/")[0]
        parents.append(place[above] if above else -1)
    if not paths or parents.count(-1) != 1 or parents[0] != -1 or any(p >= i for i, p in enumerate(parents)):
        raise FileFormatError(f"{path}: the skeleton needs one root that comes first; export it with a single root")
    if len(names) != len(paths):
        names = [joint.rpartition("/")[2] for joint in paths]
    return tuple(parents), list(unique_names(names, where=str(path)))


def _world(local: np.ndarray, parents: tuple[int, ...]) -> np.ndarray:
    """Joints in the skeleton's frame from those in their parents' [frames joints 4 4]."""
    world = local.copy()
    for joint, parent in enumerate(parents):
        if parent >= 0:
            world[:, joint] = world[:, parent] @ local[:, joint]
    return world


def _meshes(
    path: Path, about: dict[str, Any], arrays: dict[str, np.ndarray], T_world_file: np.ndarray
) -> tuple[Mesh, Weights]:
    """All meshes as one, in the bind pose of our world."""
    parts = [_mesh(path, part, arrays, about.get("paths", []), T_world_file) for part in about["parts"]]
    starts = np.cumsum([0, *(len(points) for points, *_ in parts)])
    widest = max(part[4].shape[1] for part in parts)
    pad = [np.pad(part[k], ((0, 0), (0, widest - part[4].shape[1]))) for k in (3, 4) for part in parts]
    faces = np.concatenate([part[1] + start for part, start in zip(parts, starts, strict=False)])
    vertices = np.concatenate([part[0] for part in parts])
    if not len(faces) or not (np.abs(vertices) < 1e9).all():
        raise FileFormatError(f"{path}: the mesh is empty, or larger than any real character; export it again")
    mesh = Mesh(
        vertices=torch.tensor(vertices, dtype=torch.float32),
        faces=torch.tensor(faces, dtype=torch.int64),
        colors=torch.tensor(np.concatenate([part[2] for part in parts]), dtype=torch.float32),
    )
    joints, values = np.concatenate(pad[: len(parts)]), np.concatenate(pad[len(parts) :])
    return mesh, Weights(torch.tensor(joints, dtype=torch.int64), torch.tensor(values, dtype=torch.float32))


def _mesh(
    path: Path, part: dict[str, Any], arrays: dict[str, np.ndarray], paths: list[str], T_world_file: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Points in our world, triangles, sRGB colours, joints and weights of one mesh."""
    points, counts, indices, painted, T = (
        arrays[f"{part['key']}_{name}"] for name in ("points", "counts", "indices", "colors", "T")
    )
    where = f"{path}, {part['path']}"
    if counts.sum() != len(indices) or (len(indices) and not 0 <= indices.min() <= indices.max() < len(points)):
        raise FileFormatError(f"{where}: faces name points that are not there; export the file again")
    keep = counts >= 3
    corners = indices[np.repeat(keep, counts)]
    flat, _ = triangulate(points[corners], counts[keep]) if keep.any() else (np.zeros((0, 3), int), None)
    faces = corners[flat]
    if part["left_handed"]:
        faces = faces[:, ::-1]
    colors = np.tile([[0.8, 0.8, 0.8]], (len(points), 1))
    if len(painted) in (1, len(points)):
        colors = linear_to_srgb(np.broadcast_to(painted, (len(points), 3)))
    joints, weights = np.zeros((len(points), 1), np.int64), np.ones((len(points), 1))
    if paths and "influences" in part:
        T = arrays.get(f"{part['key']}_T_bind", np.eye(4))
        joints, weights = _weights(where, part, arrays, paths, len(points))
    T = T_world_file @ T
    return points @ T[:3, :3].T + T[:3, 3], faces, colors, joints, weights


def _weights(
    where: str, part: dict[str, Any], arrays: dict[str, np.ndarray], paths: list[str], count: int
) -> tuple[np.ndarray, np.ndarray]:
    influences = part["influences"]
    joints, values = arrays[f"{part['key']}_joints"], arrays[f"{part['key']}_weights"]
    if len(joints) == len(values) == influences:  # one set for the whole mesh
        joints, values = np.tile(joints, count), np.tile(values, count)
    if influences < 1 or len(joints) != len(values) or len(joints) != count * influences:
        raise FileFormatError(f"{where}: joint indices and weights do not fit the points; export the file again")
    order = part["order"] or paths
    to_joint = np.array([paths.index(joint) if joint in paths else -1 for joint in order])
    joints, values = joints.reshape(count, influences), values.reshape(count, influences)
    known = (joints >= 0) & (joints < len(order)) & np.isfinite(values) & (values > 0)
    mapped = np.where(known, to_joint[np.where(known, joints, 0)], 0)
    values = np.where(known & (mapped >= 0), values, 0.0)
    lost = values.sum(1) <= 0
    if lost.any():
        message = f"{where}: {int(lost.sum())} points without any weight follow the root"
        warnings.warn(message, RepairWarning, stacklevel=6)
        mapped[lost, 0], values[lost, 0] = 0, 1.0
    return np.where(values > 0, mapped, 0), values / values.sum(1, keepdims=True)
