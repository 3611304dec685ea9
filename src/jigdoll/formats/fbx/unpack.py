"""What ufbx finds in an FBX file, as plain arrays: run by `formats/apart.py` in a process of its own.

It runs apart because the binding (ufbx 0.0.5) counts references wrongly: an element taken from a list comes without a
reference of its own, a list read as a buffer loses one, and scenes are not kept alive by their elements; the next
garbage collection or the exit crashes. Here every wrapper gets a reference that is never given back (`_keep`), lists
are walked instead of mapped, the collector is off and the process leaves without tearing down. Nothing of jigdoll is
imported, so that the process starts fast.
"""

import ctypes
import gc
from typing import Any

import numpy as np

MAX_SAMPLES = 50_000_000
"""Nodes times frames of all clips."""
LONG = 100.0
SECONDS_PER_KEY = 5.0
"""A clip longer than `LONG` [s] has at least a key in so many seconds; where it has not, a number is wrong."""


_take_reference = ctypes.pythonapi.Py_IncRef
_take_reference.argtypes = [ctypes.py_object]


def _keep(wrapper: Any) -> Any:
    """The same object, never to be freed."""
    _take_reference(wrapper)
    return wrapper


def _items(values: Any) -> list[Any]:
    """The elements of a list of ufbx, all kept."""
    _keep(values)
    return [_keep(_keep(values[i])) for i in range(len(values))]


def _numbers(values: Any, dtype: type) -> np.ndarray:
    """A list of ufbx as an array, without its faulty buffer interface."""
    _keep(values)
    return np.array([values[i] for i in range(len(values))], dtype=dtype)


def matrix(m: Any) -> list[list[float]]:
    """A 4x4 matrix from ufbx's four columns."""
    columns = [m.c0, m.c1, m.c2, m.c3]
    return [[column[row] for column in columns] for row in range(3)] + [[0.0, 0.0, 0.0, 1.0]]


def unpack(path: str, rate: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Everything that jigdoll wants to know, as JSON-able values and arrays; clips are sampled at a rate [1/s]."""
    import ufbx

    gc.disable()
    scene = _keep(ufbx.load_file(path, load_external_files=False, node_depth_limit=512))
    nodes, materials, stacks = _items(scene.nodes), _items(scene.materials), _items(scene.anim_stacks)
    for others in (scene.textures, scene.bones, scene.skin_deformers, scene.skin_clusters, scene.anim_layers):
        _items(others)
    place = {node.typed_id: i for i, node in enumerate(nodes)}
    arrays: dict[str, np.ndarray] = {"world": np.array([matrix(node.node_to_world) for node in nodes])}
    axes = scene.settings.axes
    about: dict[str, Any] = {
        "unit": scene.settings.unit_meters,
        "axes": [int(axes.right), int(axes.up), int(axes.front)],
        "names": [node.name for node in nodes],
        "parents": [place[node.parent.typed_id] if node.parent is not None else -1 for node in nodes],
        "bones": [i for i, node in enumerate(nodes) if node.bone is not None],
        "materials": [_material(material, arrays, i) for i, material in enumerate(materials)],
        "parts": [],
        "clips": [],
        "notes": [],
    }
    material_place = {material.typed_id: i for i, material in enumerate(materials)}
    for mesh in _items(scene.meshes):
        for node in _items(mesh.instances):
            _part(mesh, node, place, material_place, about, arrays)
    _clips(ufbx, scene, stacks, float(rate), about, arrays)
    return about, arrays


def _material(material: Any, arrays: dict[str, np.ndarray], index: int) -> dict[str, Any]:
    base, factor = material.pbr.base_color, material.pbr.base_factor
    color = list(base.value_vec4) if base.has_value else [0.8, 0.8, 0.8, 1.0]
    if factor.has_value:
        color[:3] = [value * factor.value_vec4.x for value in color[:3]]
    about: dict[str, Any] = {"name": material.name, "color": color, "file": "", "embedded": False}
    texture = base.texture
    if texture is not None and base.texture_enabled:
        about["file"] = texture.relative_filename or texture.filename or ""
        if len(texture.content):
            arrays[f"image{index}"] = np.frombuffer(texture.content, np.uint8).copy()
            about["embedded"] = True
    return about


def _part(
    mesh: Any,
    node: Any,
    place: dict[int, int],
    material_place: dict[int, int],
    about: dict[str, Any],
    arrays: dict[str, np.ndarray],
) -> None:
    key = f"part{len(about['parts'])}"
    points = _numbers(mesh.vertex_position.values, np.float64).reshape(-1, 3)
    if mesh.num_faces == 0 or len(points) == 0:
        return
    faces = np.array([(face.index_begin, face.num_indices) for face in mesh.faces], dtype=np.int64).reshape(-1, 2)
    begins, counts = faces[:, 0], faces[:, 1]
    arrays[f"{key}_points"] = points
    arrays[f"{key}_counts"], arrays[f"{key}_begins"] = counts, begins
    arrays[f"{key}_corners"] = _numbers(mesh.vertex_position.indices, np.int64)
    for name, attribute, width in (("uv", mesh.vertex_uv, 2), ("color", mesh.vertex_color, 4)):
        if attribute.exists:
            arrays[f"{key}_{name}_values"] = _numbers(attribute.values, np.float64).reshape(-1, width)
            arrays[f"{key}_{name}_indices"] = _numbers(attribute.indices, np.int64)
    materials = _items(node.materials) or _items(mesh.materials)
    face_material = _numbers(mesh.face_material, np.int64)
    arrays[f"{key}_materials"] = face_material if len(face_material) == len(counts) else np.zeros(len(counts), np.int64)
    clusters = []
    skins = _items(mesh.skin_deformers)
    for i, cluster in enumerate(_items(skins[0].clusters) if skins else []):
        if cluster.bone_node is None or cluster.num_weights == 0:
            continue
        arrays[f"{key}_skin{i}_vertices"] = _numbers(cluster.vertices, np.int64)
        arrays[f"{key}_skin{i}_weights"] = _numbers(cluster.weights, np.float64)
        clusters.append(
            {
                "key": f"{key}_skin{i}",
                "node": place[cluster.bone_node.typed_id],
                "geometry_to_bone": matrix(cluster.geometry_to_bone),
                "bind_to_world": matrix(cluster.bind_to_world),
            }
        )
    if len(skins) > 1:
        about["notes"].append(f"mesh {mesh.name!r} has {len(skins)} skins; the first one is used")
    if skins and int(skins[0].skinning_method) >= 2:
        about["notes"].append(f"mesh {mesh.name!r} asks for dual quaternion skinning; it is skinned linearly")
    about["parts"].append(
        {
            "key": key,
            "name": mesh.name,
            "node": place[node.typed_id],
            "geometry_to_world": matrix(node.geometry_to_world),
            "materials": [material_place[material.typed_id] for material in materials],
            "clusters": clusters,
        }
    )


def _clips(
    ufbx: Any, scene: Any, stacks: list[Any], fps: float, about: dict[str, Any], arrays: dict[str, np.ndarray]
) -> None:
    """World matrices of all nodes over each clip [frames nodes 4 4], as ufbx evaluates it."""
    count = len(about["names"])
    spent = 0
    for stack in stacks:
        anim = _keep(stack.anim)
        begin, length = stack.time_begin, stack.time_end - stack.time_begin
        if length <= 0:  # the file does not say how long the clip is: its keys do
            baked = _keep(ufbx.bake_anim(scene, anim))
            begin, length = baked.key_time_min, baked.key_time_max - baked.key_time_min
        frames = round(length * fps) + 1 if 0 <= length < 1e6 else 0
        spent += frames * count
        stretched = length > LONG and length > SECONDS_PER_KEY * _most_keys(scene)
        if frames < 1 or spent > MAX_SAMPLES or stretched:
            about["notes"].append(f"clip {stack.name!r} of {length:g} s was left out")
            continue
        world = np.broadcast_to(np.eye(4, dtype=np.float32), (frames, count, 4, 4)).copy()
        for frame in range(frames):
            posed = _keep(ufbx.evaluate_scene(scene, anim, begin + frame / fps))
            columns = np.array([node.node_to_world for node in _items(posed.nodes)[:count]])
            world[frame, :, :3] = columns.transpose(0, 2, 1)
            posed.free()  # the wrappers stay, the scene behind them goes: a megabyte and more
        arrays[f"clip{len(about['clips'])}"] = world
        about["clips"].append(stack.name)


def _most_keys(scene: Any) -> int:
    """Keys of the curve that has most of them."""
    return max((len(_keep(curve.keyframes)) for curve in _items(scene.anim_curves)), default=0)
