"""A glTF file to a RiggedAsset, in the file's own frame and unit; a file of motion alone has an empty mesh."""

import warnings
from pathlib import Path

import numpy as np
import torch

from jigdoll.errors import FileFormatError, JigdollError, RepairWarning
from jigdoll.formats.gltf.clips import clip_names, moves_shapes, sample_clip
from jigdoll.formats.gltf.document import Document, read_document
from jigdoll.formats.gltf.meshopt import unpack
from jigdoll.formats.gltf.nodes import NodeTree, read_nodes
from jigdoll.formats.gltf.primitives import PrimitiveReader
from jigdoll.formats.gltf.skins import (
    Joints,
    Part,
    choose_joints,
    moved_nodes,
    read_skins,
    rest_vertices,
)
from jigdoll.formats.rest import motion_asset, rigid_rest, skeleton_of, world_to_motion
from jigdoll.types import Material, Mesh, Motion, RiggedAsset, Source, Weights


def read(path: str | Path, *, fps: float = 30.0) -> RiggedAsset:
    """Read a .glb, .gltf or .vrm file; clips are sampled at `fps`."""
    path = Path(path)
    document = read_document(path)
    try:
        with np.errstate(all="ignore"):  # absurd numbers overflow here and are refused by the checks on the results
            return _read(unpack(document), fps)
    except JigdollError:
        raise
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        reason = f"{type(error).__name__}: {str(error)[:200]}"
        raise FileFormatError(f"{path.name}: the file is damaged ({reason})") from error


def _read(document: Document, fps: float) -> RiggedAsset:
    repairs: list[str] = []
    _check_extensions(document, repairs)
    tree = read_nodes(document)
    skins = read_skins(document, tree)
    reader = PrimitiveReader(document, repairs)
    parts = _parts(document, tree, reader, len(skins))
    moved = moved_nodes(document)
    if not parts and not moved:
        raise document.fail("there is no triangle mesh in the scene, and no clip that moves anything")
    joints = choose_joints(tree, skins, parts, moved, repairs)
    pieces = [rest_vertices(document, tree, skins, joints, part, repairs) for part in parts]
    rest, stretch, uneven = rigid_rest(joints.bind)
    if uneven:
        repairs.append("joints are scaled unevenly at rest; clips are matched as well as rotation and scale allow")
    raw = [tree.names[node] if node >= 0 else "root" for node in joints.nodes]
    skeleton = skeleton_of(raw, joints.parents, rest)
    clips = _clips(document, tree, joints, rest, stretch, fps, repairs)
    source = Source(
        path=document.path,
        format="gltf",
        T_world_file=torch.eye(4),
        nodes=joints.nodes,
        T_joint_node=torch.tensor(stretch, dtype=torch.float32),
        repairs=tuple(dict.fromkeys(repairs)),
    )
    for repair in source.repairs:
        warnings.warn(f"{document.path.name}: {repair}", RepairWarning, stacklevel=3)
    if not parts:
        return motion_asset(document.path.stem, skeleton, clips, source)
    mesh, weights = _assemble(document, reader, parts, pieces)
    return RiggedAsset(document.path.stem, mesh, skeleton, weights, clips, source)


def _check_extensions(document: Document, repairs: list[str]) -> None:
    known = {"KHR_draco_mesh_compression", "KHR_mesh_quantization", "KHR_texture_transform", "KHR_materials_unlit"}
    required = document.json.get("extensionsRequired", [])
    for name in required if isinstance(required, list) else []:
        if name not in known:
            repairs.append(f"the file requires {str(name)[:60]}, which is ignored")


def _parts(document: Document, tree: NodeTree, reader: PrimitiveReader, skins: int) -> list[Part]:
    parts = []
    for index, node in enumerate(document.items("nodes")):
        if "mesh" not in node or index not in tree.visible:
            continue
        skin = node.get("skin")
        if skin is not None:
            document.item("skins", skin)
        for primitive in reader.read(document.item("meshes", node["mesh"]), node.get("weights")):
            document.spend(primitive.vertices.nbytes * 4)
            parts.append(Part(primitive, index, skin if skins else None))
    return parts


def _assemble(
    document: Document,
    reader: PrimitiveReader,
    parts: list[Part],
    pieces: list[tuple[np.ndarray, np.ndarray, np.ndarray]],
) -> tuple[Mesh, Weights]:
    """One mesh out of all parts."""
    widest = max(weights.shape[1] for _, _, weights in pieces)
    starts = np.cumsum([0, *(len(v) for v, _, _ in pieces)])

    def padded(a: np.ndarray) -> np.ndarray:
        return np.pad(a, ((0, 0), (0, widest - a.shape[1])))

    vertices = np.concatenate([v for v, _, _ in pieces])
    if not len(vertices) or not np.isfinite(vertices).all() or np.abs(vertices).max() > 1e9:
        raise document.fail("the mesh is empty or larger than any real character")
    faces = [part.primitive.faces + start for part, start in zip(parts, starts, strict=False)]
    uvs = [part.primitive.uvs for part in parts]
    have_uvs = any(uv is not None for uv in uvs)
    filled = [np.zeros((len(p.primitive.vertices), 2)) if uv is None else uv for p, uv in zip(parts, uvs, strict=True)]
    looks = [np.full(len(part.primitive.faces), part.primitive.look) for part in parts]
    mesh = Mesh(
        vertices=torch.tensor(vertices, dtype=torch.float32),
        faces=torch.tensor(np.concatenate(faces), dtype=torch.int64),
        colors=torch.tensor(np.concatenate([part.primitive.colors for part in parts]), dtype=torch.float32),
        uvs=torch.tensor(np.concatenate(filled), dtype=torch.float32) if have_uvs else None,
        materials=tuple(
            Material(look.name, look.color, None if look.texture is None else torch.from_numpy(look.texture))
            for look in reader.looks
        ),
        face_materials=torch.tensor(np.concatenate(looks), dtype=torch.int64),
    )
    indices = np.concatenate([padded(j) for _, j, _ in pieces])
    values = np.concatenate([padded(w) for _, _, w in pieces])
    return mesh, Weights(torch.tensor(indices), torch.tensor(values, dtype=torch.float32))


def _clips(
    document: Document,
    tree: NodeTree,
    joints: Joints,
    rest: np.ndarray,
    stretch: np.ndarray,
    fps: float,
    repairs: list[str],
) -> dict[str, Motion]:
    clips, shaping = {}, []
    for index, name in enumerate(clip_names(document)):
        world = sample_clip(document, tree, index, fps)
        if moves_shapes(document, index):
            shaping.append(name)
        if len(world) < 2:
            repairs.append(f"clip {name!r} has length 0 and is kept as a single pose")
        nodes = list(joints.nodes)
        seen = world[:, nodes]
        if nodes[0] < 0:
            seen[:, 0] = np.eye(4)
        clips[name] = world_to_motion(joints.parents, rest, seen, stretch, fps=fps, name=name)
    if shaping:
        kept = "a GLB written from this file keeps them" if document.path.suffix.lower() != ".gltf" else "joints only"
        repairs.append(f"{len(shaping)} clips move morph targets ({shaping[0]!r} ...), which are left out; {kept}")
    return clips
