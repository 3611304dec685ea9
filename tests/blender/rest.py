"""Run inside Blender's Python: where the bones of files stand in their armatures' rest, before any clip.

    python rest.py OUT.json FILE...

Writes, for each file, the world places of all bone heads by name, in glTF's axes (Y up); an error is written in words.
"""

import contextlib
import io
import json
import sys
from pathlib import Path

import bpy
from evaluate import _load


def bones(path: str) -> dict[str, list[float]]:
    """Bone heads at rest; a name that two armatures share is left out."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    _load(path)
    found: dict[str, list[float]] = {}
    twice: set[str] = set()
    for armature in (o for o in bpy.context.scene.objects if o.type == "ARMATURE"):
        for bone in armature.data.bones:
            if bone.name in found:
                twice.add(bone.name)
            x, y, z = armature.matrix_world @ bone.head_local
            found[bone.name] = [x, z, -y]
    return {name: place for name, place in found.items() if name not in twice}


def main(out: str, files: list[str]) -> None:
    result: dict[str, object] = {}
    for file in files:
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                result[file] = bones(file)
        except Exception as error:  # one file that Blender refuses must not hide the others
            result[file] = str(error)[-300:]
        Path(out).write_text(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
