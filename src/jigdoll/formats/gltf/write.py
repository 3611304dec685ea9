"""Clips into the file that they were made for, and characters into new files."""

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jigdoll import __version__
from jigdoll.errors import JigdollError
from jigdoll.formats.files import write_bytes
from jigdoll.formats.gltf.builder import ARRAY_BUFFER, ELEMENT_BUFFER, Builder
from jigdoll.formats.gltf.document import Document, pack_glb, read_document
from jigdoll.formats.gltf.mend import mend
from jigdoll.formats.gltf.meshopt import unpack
from jigdoll.formats.gltf.nodes import NodeTree, decompose, read_nodes
from jigdoll.formats.joints import check_motion
from jigdoll.formats.polygons import smooth_normals
from jigdoll.formats.textures import encode_png
from jigdoll.kinematics import motion_to_world
from jigdoll.math.colors import srgb_to_linear
from jigdoll.types import Material, Motion, RiggedAsset, Skeleton, Weights

_SAME_PLACE = 1e-6
_SAME_SCALE = 1e-5


def write(path: str | Path, asset: RiggedAsset, motions: Sequence[Motion] = ()) -> Path:
    """Write a GLB: the asset's own file with the motions added, or a new file for an asset that has none.

    What the original holds (materials, textures, names, clips, extras) is kept as it is; faults that would make the
    result invalid are mended and named in a warning.
    """
    path = Path(path)
    if path.suffix.lower() not in (".glb", ".vrm"):
        raise JigdollError(f"{path.name}: glTF is written as one binary file; give it the suffix .glb")
    for motion in motions:
        check_motion(asset.skeleton, motion)
    if asset.source is not None and asset.source.format == "gltf":
        parsed, binary = _with_clips(asset, motions)
    else:
        parsed, binary = _new_file(asset, motions)
    return write_bytes(path, pack_glb(parsed, binary))


# ------------------------------------------------------------------------------------- clips into the original file


def _with_clips(asset: RiggedAsset, motions: Sequence[Motion]) -> tuple[dict[str, Any], bytes]:
    assert asset.source is not None
    document = unpack(read_document(asset.source.path))
    tree = read_nodes(document)
    builder = Builder(*_one_buffer(document))
    mend(builder, document, tree)
    for motion in motions:
        _add_clip(builder, tree, asset, motion)
    return builder.finish()


def _one_buffer(document: Document) -> tuple[dict[str, Any], bytes]:
    """The document with all its data in one buffer; a GLB's chunk comes through byte for byte."""
    parsed = copy.deepcopy(document.json)
    buffers = document.items("buffers")
    parts, starts, size = [], [], 0
    for index in range(len(buffers)):
        data = document.buffer(index)
        parts += [data, b"\0" * (-len(data) % 4)]
        starts.append(size)
        size += len(data) + -len(data) % 4
    for view in parsed.get("bufferViews", []):
        start = starts[view["buffer"]]
        if start:
            view["byteOffset"] = view.get("byteOffset", 0) + start
        view["buffer"] = 0
    parsed["buffers"] = [{k: v for k, v in (buffers[0] if buffers else {}).items() if k != "uri"}]
    builder = Builder(parsed, b"".join(parts))
    for image in parsed.get("images", []):
        uri = image.get("uri")
        if isinstance(uri, str) and not uri.startswith("data:"):
            data = document.resource(uri)
            del image["uri"]
            image["bufferView"] = builder.view(data)
            image["mimeType"] = "image/png" if data[:4] == b"\x89PNG" else "image/jpeg"
    return builder.finish()


def _add_clip(builder: Builder, tree: NodeTree, asset: RiggedAsset, motion: Motion) -> None:
    """One animation whose channels move the file's own nodes."""
    source = asset.source
    assert source is not None
    T_file_world = np.linalg.inv(source.T_world_file.double().numpy())
    world = T_file_world @ motion_to_world(asset.skeleton, motion) @ source.T_joint_node.double().numpy()
    placed = {node: world[:, joint] for joint, node in enumerate(source.nodes) if node >= 0}
    size = float(np.ptp(tree.world[list(placed), :3, 3], axis=0).max()) + 1e-12
    tracks: list[tuple[int, str, np.ndarray]] = []
    for node, T_file_node in placed.items():
        local = np.linalg.solve(_world_of(tree, tree.parents[node], placed, len(motion)), T_file_node)
        translation, rotation, scale = decompose(local)
        tracks.append((node, "rotation", rotation))
        if np.abs(translation - tree.translation[node]).max() > _SAME_PLACE * size:
            tracks.append((node, "translation", translation))
        if np.abs(scale - tree.scale[node]).max() > _SAME_SCALE * np.abs(tree.scale[node]).max():
            tracks.append((node, "scale", scale))
    for node in placed:
        _use_trs(builder.json["nodes"][node], tree, node)
    add_animation(builder, motion, tracks)


def _world_of(tree: NodeTree, node: int, placed: dict[int, np.ndarray], frames: int) -> np.ndarray:
    """Where a node is in each frame: it hangs still below the first placed node above it."""
    if node in placed:
        return placed[node]
    here = tree.world[node] if node >= 0 else np.eye(4)
    above = next((n for n in (tree.ancestors(node) if node >= 0 else []) if n in placed), None)
    if above is None:
        return np.broadcast_to(here, (frames, 4, 4))
    return placed[above] @ np.linalg.inv(tree.world[above]) @ here


def _use_trs(node: dict[str, Any], tree: NodeTree, index: int) -> None:
    """Replace a matrix: an animated node must have separate translation, rotation and scale."""
    if "matrix" in node:
        del node["matrix"]
        node["translation"] = tree.translation[index].tolist()
        node["rotation"] = tree.rotation[index].tolist()
        node["scale"] = tree.scale[index].tolist()


def add_animation(builder: Builder, motion: Motion, tracks: Sequence[tuple[int, str, np.ndarray]]) -> None:
    """Add a clip of linear keys, one per frame."""
    times = builder.accessor((np.arange(len(motion)) / motion.fps).astype("<f4"), bounds=True)
    samplers, channels = [], []
    for node, path, values in tracks:
        if path == "rotation":
            values = _continuous(values)
        samplers.append({"input": times, "interpolation": "LINEAR", "output": builder.accessor(values.astype("<f4"))})
        channels.append({"sampler": len(samplers) - 1, "target": {"node": node, "path": path}})
    taken = {entry.get("name") for entry in builder.json.get("animations", [])}
    name, number = motion.name, 2
    while name in taken:
        name, number = f"{motion.name}_{number}", number + 1
    builder.append("animations", {"name": name, "samplers": samplers, "channels": channels})


def _continuous(q: np.ndarray) -> np.ndarray:
    """The same rotations with signs that never jump from key to key."""
    flips = np.sign((q[1:] * q[:-1]).sum(-1))
    flips = np.where(flips == 0, 1.0, flips)
    return q * np.concatenate([[1.0], np.cumprod(flips)])[:, None]


# ----------------------------------------------------------------------------------------------------- a new file


def _new_file(asset: RiggedAsset, motions: Sequence[Motion]) -> tuple[dict[str, Any], bytes]:
    builder = Builder({"asset": {"version": "2.0", "generator": f"jigdoll {__version__}"}, "scene": 0})
    skinned = asset.is_rigged or bool(motions)
    if skinned:
        _add_joints(builder, asset.skeleton)
    if not asset.has_mesh:
        return _motion_alone(builder, asset.skeleton, motions)
    body: dict[str, Any] = {"name": asset.name, "mesh": _add_mesh(builder, asset, skinned=skinned)}
    if skinned:
        body["skin"] = _add_skin(builder, asset.skeleton)
    index = builder.append("nodes", body)
    builder.append("scenes", {"nodes": [0, index] if skinned else [index]})
    for motion in motions:
        _add_new_clip(builder, asset.skeleton, motion)
    return builder.finish()


def _motion_alone(builder: Builder, skeleton: Skeleton, motions: Sequence[Motion]) -> tuple[dict[str, Any], bytes]:
    """A file of joints and clips for an asset that has no body."""
    if not motions:
        raise JigdollError("there is neither a mesh nor a clip to write; choose a clip")
    builder.append("scenes", {"nodes": [0]})
    for motion in motions:
        _add_new_clip(builder, skeleton, motion)
    return builder.finish()


def _add_joints(builder: Builder, skeleton: Skeleton) -> None:
    translation, rotation, _ = decompose(skeleton.T_parent_joint.double().numpy())
    for joint, children in enumerate(skeleton.children):
        node: dict[str, Any] = {"name": skeleton.names[joint], "translation": translation[joint].tolist()}
        if np.abs(rotation[joint][:3]).max() > 1e-9:
            node["rotation"] = rotation[joint].tolist()
        if children:
            node["children"] = list(children)
        builder.append("nodes", node)


def _add_skin(builder: Builder, skeleton: Skeleton) -> int:
    world = skeleton.T_parent_joint.double().numpy().copy()
    for joint, parent in enumerate(skeleton.parents):
        if parent >= 0:
            world[joint] = world[parent] @ world[joint]
    inverse = np.linalg.inv(world).transpose(0, 2, 1).astype("<f4")
    inverse[:, :, 3] = [0, 0, 0, 1]
    entry = {"joints": list(range(len(skeleton))), "skeleton": 0, "inverseBindMatrices": builder.accessor(inverse)}
    return builder.append("skins", entry)


def _add_mesh(builder: Builder, asset: RiggedAsset, *, skinned: bool) -> int:
    """The mesh, one primitive per material, each with the vertices that it uses."""
    mesh = asset.mesh
    faces = mesh.faces.numpy()
    groups = np.zeros(len(faces), int) if mesh.face_materials is None else mesh.face_materials.numpy()
    arrays = _vertex_arrays(asset, skinned=skinned)
    primitives = []
    for group in np.unique(groups):
        material = mesh.materials[group] if mesh.materials else None
        used, indices = np.unique(faces[groups == group], return_inverse=True)
        if len(np.unique(groups)) == 1:
            used, indices = np.arange(len(mesh.vertices)), faces
        textured = material is not None and material.texture is not None and mesh.uvs is not None
        attributes = {
            name: builder.accessor(
                values[used], target=ARRAY_BUFFER, bounds=name == "POSITION", normalized=name == "COLOR_0"
            )
            for name, values in arrays.items()
            if name != "COLOR_0" or not textured
        }
        primitives.append(
            {
                "attributes": attributes,
                "indices": builder.accessor(indices.astype("<u4").reshape(-1), target=ELEMENT_BUFFER),
                "material": _add_material(builder, material if textured else None),
            }
        )
    return builder.append("meshes", {"name": asset.name, "primitives": primitives})


def _vertex_arrays(asset: RiggedAsset, *, skinned: bool) -> dict[str, np.ndarray]:
    mesh = asset.mesh
    linear = srgb_to_linear(mesh.colors.double().numpy())
    rgba = np.concatenate([linear, np.ones((len(linear), 1))], 1)
    arrays = {
        "POSITION": mesh.vertices.numpy().astype("<f4"),
        "NORMAL": smooth_normals(mesh.vertices.double().numpy(), mesh.faces.numpy()).astype("<f4"),
        "COLOR_0": (rgba * 65535).round().astype("<u2"),
    }
    if mesh.uvs is not None:
        arrays["TEXCOORD_0"] = mesh.uvs.numpy().astype("<f4")
    if skinned:
        kept = Weights.from_dense(asset.weights.dense(len(asset.skeleton)), influences=4)
        joints, values = _four(kept)
        arrays["JOINTS_0"] = joints.astype("<u1" if len(asset.skeleton) <= 256 else "<u2")
        arrays["WEIGHTS_0"] = values
    return arrays


def _add_material(builder: Builder, material: Material | None) -> int:
    surface: dict[str, Any] = {"metallicFactor": 0.0, "roughnessFactor": 0.8}
    if material is not None and material.texture is not None:
        view = builder.view(encode_png(material.texture.numpy()))
        image = builder.append("images", {"bufferView": view, "mimeType": "image/png"})
        surface["baseColorTexture"] = {"index": builder.append("textures", {"source": image})}
        surface["baseColorFactor"] = list(material.color)
    name = "painted" if material is None else material.name
    return builder.append("materials", {"name": name, "pbrMetallicRoughness": surface})


def _four(weights: Weights) -> tuple[np.ndarray, np.ndarray]:
    """Exactly four influences whose float32 weights sum to one; unused slots name joint 0."""
    count = weights.joints.shape[1]
    joints = np.pad(weights.joints.numpy(), ((0, 0), (0, 4 - count)))
    values = np.pad(weights.values.numpy().astype("<f4"), ((0, 0), (0, 4 - count)))
    values[values < 1e-5] = 0.0
    values /= values.sum(1, keepdims=True)
    return np.where(values > 0, joints, 0), values


def _add_new_clip(builder: Builder, skeleton: Skeleton, motion: Motion) -> None:
    world = motion_to_world(skeleton, motion)
    tracks: list[tuple[int, str, np.ndarray]] = []
    rest = skeleton.T_parent_joint.double().numpy()
    for joint, parent in enumerate(skeleton.parents):
        local = world[:, joint] if parent < 0 else np.linalg.solve(world[:, parent], world[:, joint])
        translation, rotation, scale = decompose(local)
        tracks.append((joint, "rotation", rotation))
        if parent < 0 or np.abs(translation - rest[joint, :3, 3]).max() > _SAME_PLACE:
            tracks.append((joint, "translation", translation))
        if np.abs(scale - 1).max() > _SAME_SCALE:
            tracks.append((joint, "scale", scale))
    add_animation(builder, motion, tracks)
