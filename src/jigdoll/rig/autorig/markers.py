"""Joints pinned by hand: a JSON file that names joints and says where they lie."""

import json
import math
from collections.abc import Mapping
from pathlib import Path

from jigdoll.errors import FileFormatError
from jigdoll.formats.files import read_limited, write_bytes

Markers = dict[str, tuple[float, float, float]]


def read_markers(path: Path) -> Markers:
    """Read `{"left_knee": [x, y, z], ...}`, in the frame and unit of the mesh that is rigged."""
    try:
        content = json.loads(read_limited(path, 1 << 20).decode("utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise FileFormatError(f"{path}: the markers are not JSON: {error}") from error
    if not isinstance(content, dict):
        raise FileFormatError(f'{path}: markers are one object, {{"joint name": [x, y, z]}}')
    markers: Markers = {}
    for name, point in content.items():
        numbers = isinstance(point, list) and all(
            isinstance(c, int | float) and not isinstance(c, bool) and math.isfinite(c) for c in point
        )
        if not numbers or len(point) != 3:
            raise FileFormatError(f"{path}: the marker {name!r} needs three numbers, [x, y, z], not {str(point)[:80]}")
        markers[name] = (float(point[0]), float(point[1]), float(point[2]))
    return markers


def write_markers(path: Path, markers: Mapping[str, tuple[float, float, float]]) -> None:
    """Write markers for a person to edit, one joint per line."""
    lines = [f"  {json.dumps(name)}: {json.dumps([round(c, 5) for c in point])}" for name, point in markers.items()]
    write_bytes(path, ("{\n" + ",\n".join(lines) + "\n}\n").encode())
