"""Blender's side of the skinning benchmark: bone heat ("automatic weights") on a mesh and bones from a file.

    python benchmarks/parts/blender_heat.py IN.npz OUT.npz

Runs under an interpreter that has bpy. IN holds vertices, faces, heads, tails; OUT gets weights [vertices bones] and
the CPU seconds of the one operator.
"""

import sys
import time

import bpy
import numpy as np


def main(source: str, target: str) -> None:
    """Build the scene, run the operator, write what it found."""
    data = np.load(source)
    bpy.ops.wm.read_factory_settings(use_empty=True)
    mesh = bpy.data.meshes.new("skin")
    mesh.from_pydata(data["vertices"].tolist(), [], data["faces"].tolist())
    mesh.update()
    body = bpy.data.objects.new("body", mesh)
    armature = bpy.data.objects.new("rig", bpy.data.armatures.new("rig"))
    for thing in (body, armature):
        bpy.context.collection.objects.link(thing)
    bpy.context.view_layer.objects.active = armature
    bpy.ops.object.mode_set(mode="EDIT")
    for i, (head, tail) in enumerate(zip(data["heads"], data["tails"], strict=True)):
        bone = armature.data.edit_bones.new(f"bone_{i}")
        bone.head, bone.tail = head.tolist(), tail.tolist()
    bpy.ops.object.mode_set(mode="OBJECT")
    for thing in (body, armature):
        thing.select_set(True)
    bpy.context.view_layer.objects.active = armature
    start = time.process_time()
    bpy.ops.object.parent_set(type="ARMATURE_AUTO")
    seconds = time.process_time() - start
    weights = np.zeros((len(data["vertices"]), len(data["heads"])))
    column = {group.index: int(group.name.removeprefix("bone_")) for group in body.vertex_groups}
    for vertex in body.data.vertices:
        for entry in vertex.groups:
            weights[vertex.index, column[entry.group]] = entry.weight
    np.savez(target, weights=weights, seconds=seconds)


if __name__ == "__main__":
    main(*sys.argv[1:])
