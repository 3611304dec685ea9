"""Run inside Blender's Python: import a file and write what Blender makes of it, frame by frame.

    python evaluate.py FILE OUT.npz FPS [legacy]

Writes, for each clip, the world positions of every mesh object's vertices at each frame from the clip's first key on.
An FBX file is read by Blender's newer importer, or by the older one (legacy); its pictures are written too.
"""

import json
import struct
import sys
import tempfile
from pathlib import Path

import bpy
import numpy as np
from mathutils import Matrix


def main(path: str, out: str, fps: float, legacy: bool = False) -> None:
    bpy.ops.wm.read_factory_settings(use_empty=True)
    if path.endswith(".fbx"):
        np.savez(out, **_fbx(path, fps, legacy=legacy))
        return
    rest = _rest_of(path) if path.endswith((".glb", ".vrm")) else {}
    bpy.ops.wm.read_factory_settings(use_empty=True)
    scene = bpy.context.scene
    scene.render.fps, scene.render.fps_base = round(fps), round(fps) / fps
    _load(path)
    meshes = [o for o in scene.objects if o.type == "MESH" and "Icosphere" not in o.name]
    found: dict[str, np.ndarray] = {"objects": np.array([o.name for o in meshes])}
    tracks = sorted({t.name for o in scene.objects if o.animation_data for t in o.animation_data.nla_tracks})
    found["clips"] = np.array(tracks)
    found["actions"] = np.array([a.name for a in bpy.data.actions])
    things = _things(scene)
    resting = [(thing, *rest[key]) for key, thing in things.items() if key in rest]
    for number, track in enumerate(tracks):
        _play(scene, track, resting)
        first, last = _span(scene, track)
        for index, obj in enumerate(meshes):
            found[f"{number}/{index}"] = np.stack(_frames(scene, obj, first, last))
    if not tracks:
        actions = list(bpy.data.actions)
        last = int(max((a.frame_range[1] for a in actions), default=0))
        first = int(min((a.frame_range[0] for a in actions), default=0))
        for index, obj in enumerate(meshes):
            found[f"0/{index}"] = np.stack(_frames(scene, obj, first, last))
    np.savez(out, **found)


def _load(path: str) -> None:
    suffix = Path(path).suffix.lower()
    if suffix in (".glb", ".gltf", ".vrm"):
        # The default heuristic places meshes parented to bones of a scaled armature wrongly (Blender 5.0).
        bpy.ops.import_scene.gltf(filepath=path, import_pack_images=False, bone_heuristic="TEMPERANCE")
    elif suffix in (".usd", ".usda", ".usdc", ".usdz"):
        bpy.ops.wm.usd_import(filepath=path)
    elif suffix == ".bvh":
        bpy.ops.import_anim.bvh(filepath=path)


def _fbx(path: str, fps: float, *, legacy: bool) -> dict[str, np.ndarray]:
    """The vertices of every clip of an FBX file (clip/object), the looks of its materials, and its joints."""
    scene = bpy.context.scene
    scene.render.fps, scene.render.fps_base = round(fps), round(fps) / fps
    (bpy.ops.import_scene.fbx if legacy else bpy.ops.wm.fbx_import)(filepath=path)
    meshes = [o for o in scene.objects if o.type == "MESH"]
    rigs = [o for o in scene.objects if o.type == "ARMATURE"]
    found = {"objects": np.array([o.name for o in meshes]), "rate": np.array(scene.render.fps / scene.render.fps_base)}
    found["joints"] = np.array([bone.name for rig in rigs for bone in rig.data.bones])
    for material in bpy.data.materials:
        found |= _look(material)
    clips = list(bpy.data.actions)
    lead = f"{rigs[0].name}|" if legacy and rigs else ""
    found["clips"] = np.array([action.name.removeprefix(lead) for action in clips])
    for number, action in enumerate(clips):
        for rig in rigs:
            rig.animation_data.action = None
            for bone in rig.pose.bones:
                bone.matrix_basis = Matrix()
            rig.animation_data.action = action
            rig.animation_data.action_slot = action.slots[0]
        first, last = action.frame_range
        for index, obj in enumerate(meshes):
            found[f"{number}/{index}"] = np.stack(_frames(scene, obj, first, last))
    if not clips:
        for index, obj in enumerate(meshes):
            found[f"0/{index}"] = np.stack(_frames(scene, obj, 0, 0))
    return found


def _look(material) -> dict[str, np.ndarray]:
    """The picture [height width 4] that a material shows, or its colour with the opacity."""
    surface = next(node for node in material.node_tree.nodes if node.type == "BSDF_PRINCIPLED")
    color = surface.inputs["Base Color"]
    if not color.is_linked:
        rgba = [*color.default_value[:3], surface.inputs["Alpha"].default_value]
        return {f"color:{material.name}": np.array(rgba)}
    image = color.links[0].from_node.image
    return {f"image:{material.name}": np.array(image.pixels[:]).reshape(image.size[1], image.size[0], 4)[::-1]}


def _things(scene) -> dict:
    """Objects and bones by name, all set to turn by quaternions."""
    found = {("object", o.name): o for o in scene.objects}
    found |= {(o.name, b.name): b for o in scene.objects if o.type == "ARMATURE" for b in o.pose.bones}
    for thing in found.values():
        thing.rotation_mode = "QUATERNION"
    return found


def _rest_of(path: str) -> dict:
    """Local transforms at rest, from a copy of the GLB without clips: an import leaves the first clip's pose behind."""
    data = Path(path).read_bytes()
    size = struct.unpack_from("<I", data, 12)[0]
    parsed = json.loads(data[20 : 20 + size])
    parsed.pop("animations", None)
    text = json.dumps(parsed).encode()
    text += b" " * (-len(text) % 4)
    rest = data[20 + size :]
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "rest.glb"
        head = struct.pack("<4sIIII", b"glTF", 2, 20 + len(text) + len(rest), len(text), 0x4E4F534A)
        copy.write_bytes(head + text + rest)
        _load(str(copy))
    things = _things(bpy.context.scene)
    return {k: (t.location.copy(), t.rotation_quaternion.copy(), t.scale.copy()) for k, t in things.items()}


def _play(scene, track: str, resting: list) -> None:
    """Let exactly one clip speak, by its actions themselves: NLA strips round their start to whole frames."""
    for obj in scene.objects:
        data = obj.animation_data
        if data is None:
            continue
        data.action = None
        for t in data.nla_tracks:
            t.mute = True
    for thing, location, rotation, scale in resting:
        thing.location, thing.rotation_quaternion, thing.scale = location, rotation, scale
    for obj in scene.objects:
        for t in obj.animation_data.nla_tracks if obj.animation_data else []:
            if t.name == track:
                obj.animation_data.action = t.strips[0].action
                obj.animation_data.action_slot = t.strips[0].action_slot


def _span(scene, track: str) -> tuple[float, float]:
    """First and last key of everything that the clip moves, morph targets aside."""
    moved = [o.animation_data for o in scene.objects if o.animation_data]
    actions = [t.strips[0].action for data in moved for t in data.nla_tracks if t.name == track]
    return min(a.frame_range[0] for a in actions), max(a.frame_range[1] for a in actions)


def _frames(scene, obj, first: float, last: float) -> list[np.ndarray]:
    out = []
    for key in obj.data.shape_keys.key_blocks if obj.data.shape_keys else []:
        key.mute = True
    count = int(np.floor(last - first + 1e-3)) + 1
    for i in range(count):
        time = first + i
        scene.frame_set(int(np.floor(time)), subframe=float(time - np.floor(time)))
        evaluated = obj.evaluated_get(bpy.context.evaluated_depsgraph_get())
        mesh = evaluated.to_mesh()
        flat = np.empty(len(mesh.vertices) * 3, np.float32)
        mesh.vertices.foreach_get("co", flat)
        world = np.array(evaluated.matrix_world)
        points = flat.reshape(-1, 3) @ world[:3, :3].T + world[:3, 3]
        out.append(np.stack([points[:, 0], points[:, 2], -points[:, 1]], 1).astype(np.float32))
        evaluated.to_mesh_clear()
    return out


if __name__ == "__main__":
    arguments = sys.argv[1:]
    main(arguments[0], arguments[1], float(arguments[2]), legacy="legacy" in arguments[3:])
