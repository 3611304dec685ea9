"""The materials of a Wavefront file: MTL, its colours and its colour textures."""

import re
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jigdoll.errors import FileFormatError, RepairWarning
from jigdoll.formats.files import inside_folder, read_limited
from jigdoll.formats.textures import find_texture

MAX_MTL_BYTES = 16 * 1024**2
MAX_MATERIALS = 4096


@dataclass
class MtlLook:
    name: str
    color: tuple[float, float, float, float] = (0.8, 0.8, 0.8, 1.0)
    texture: np.ndarray | None = None


def read_materials(path: Path, files: list[str]) -> dict[str, MtlLook]:
    """The materials of all libraries that the file names and that lie in its folder."""
    library: dict[str, MtlLook] = {}
    for name in dict.fromkeys(files[:64]):
        try:
            file = inside_folder(path.parent, name.strip('"').replace("\\", "/"), of=path)
            text = read_limited(file, MAX_MTL_BYTES).decode("utf-8", "replace")
        except FileFormatError as error:
            warnings.warn(f"{path}: the materials {name[:80]!r} were left out ({error})", RepairWarning, stacklevel=3)
            continue
        _parse_mtl(file, text, library)
    return library


def _parse_mtl(file: Path, text: str, library: dict[str, MtlLook]) -> None:
    look: MtlLook | None = None
    images: dict[str, np.ndarray | None] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        keyword = words[0].lower() if words else ""
        if keyword == "newmtl" and len(library) < MAX_MATERIALS:
            look = library.setdefault(" ".join(words[1:]), MtlLook(" ".join(words[1:])))
        elif look is None:
            continue
        elif keyword in ("kd", "d"):
            try:
                values = tuple(float(word) for word in words[1:4])
            except ValueError:
                values = ()
            if not values or len(values) != (3 if keyword == "kd" else 1) or not all(0 <= v <= 1e3 for v in values):
                warnings.warn(f"{file}, line {number}: {line.strip()[:60]!r} is ignored", RepairWarning, stacklevel=4)
                continue
            bounded = [min(value, 1.0) for value in values]
            r, g, b = bounded if keyword == "kd" else look.color[:3]
            look.color = (r, g, b, look.color[3] if keyword == "kd" else bounded[0])
        elif keyword == "map_kd" and len(words) > 1:
            name = _texture_name(line.split(None, 1)[1])
            if name not in images:
                images[name] = find_texture(file, name) if len(images) < 64 else None
            look.texture = images[name]


def _texture_name(text: str) -> str:
    """The file name after the options of a map_ line, which each begin with a dash and take numbers or on/off."""
    words = text.split()
    at = 0
    while at < len(words) - 1 and words[at].startswith("-"):
        at += 1
        while at < len(words) - 1 and re.fullmatch(r"[-+]?[0-9.]+(e[-+]?\d+)?|on|off", words[at], re.IGNORECASE):
            at += 1
    return " ".join(words[at:])
