"""Blender's side of the posing benchmark: its own IK constraints on rigs from a file, from the rest pose.

    python benchmarks/parts/blender_ik.py IN.json OUT.json

Runs under an interpreter that has bpy. IN is a list of cases: joints at rest, parents, handles (joint and where it has
to be, in the frame in which the root rests). OUT gets the joints' places of each case.
"""

import json
import sys
from pathlib import Path

import bpy
from mathutils import Vector

LEAST = 1e-4


def tails(case: dict) -> list[list[float]]:
    """Where each bone ends: at a handle that hangs on it, else at its child with most below, else a little further."""
    joints, parents = case["joints"], case["parents"]
    children = [[c for c, p in enumerate(parents) if p == j] for j in range(len(joints))]
    below = [1] * len(joints)
    for j in range(len(joints) - 1, 0, -1):
        below[parents[j]] += below[j]
    handled = {handle["joint"] for handle in case["handles"]}
    ends = []
    for j, place in enumerate(joints):
        mine = sorted(children[j], key=lambda c: (c not in handled, -below[c]))
        end = joints[mine[0]] if mine else None
        if end is None or (Vector(end) - Vector(place)).length < LEAST:
            way = Vector(place) - Vector(joints[parents[j]]) if parents[j] >= 0 else Vector((0, LEAST * 100, 0))
            end = list(Vector(place) + (way * 0.3 if way.length > LEAST else Vector((0, LEAST * 100, 0))))
        ends.append(end)
    return ends


def solved(case: dict) -> list[list[float]]:
    """Build the rig, constrain the bones above the handles, read where the joints come to be."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    rig = bpy.data.objects.new("rig", bpy.data.armatures.new("rig"))
    bpy.context.collection.objects.link(rig)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    bones = []
    for j, (head, tail) in enumerate(zip(case["joints"], tails(case), strict=True)):
        bone = rig.data.edit_bones.new(f"b{j}")
        bone.head, bone.tail = head, tail
        bone.parent = bones[case["parents"][j]] if case["parents"][j] >= 0 else None
        bones.append(bone)
    bpy.ops.object.mode_set(mode="POSE")
    for handle in case["handles"]:
        target = bpy.data.objects.new("target", None)
        bpy.context.collection.objects.link(target)
        target.location = handle["place"]
        constraint = rig.pose.bones[f"b{case['parents'][handle['joint']]}"].constraints.new("IK")
        constraint.target, constraint.chain_count, constraint.iterations = target, 0, 500
    bpy.context.view_layer.update()
    posed = rig.evaluated_get(bpy.context.evaluated_depsgraph_get()).pose.bones
    return [list(posed[f"b{j}"].head) for j in range(len(case["joints"]))]


def main(source: str, target: str) -> None:
    """Solve all cases."""
    cases = json.loads(Path(source).read_text())
    Path(target).write_text(json.dumps([solved(case) for case in cases]))


if __name__ == "__main__":
    main(*sys.argv[1:])
