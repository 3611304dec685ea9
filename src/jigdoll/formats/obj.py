"""Wavefront OBJ with its MTL: a bare mesh, read by columns so that half a million faces take seconds.

Number lines are joined into one text and parsed in C. A `nan` between lines and an `inf` in place of each slash let the
parsed array prove its own layout; where it does not, lines are read one by one and the first bad one is named.
"""

import os
import re
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import numpy as np
import torch

from jigdoll.errors import FileFormatError, RepairWarning
from jigdoll.formats.files import inside_folder, read_limited
from jigdoll.formats.joints import free_skeleton
from jigdoll.formats.polygons import triangulate
from jigdoll.formats.textures import find_texture, vertex_colors
from jigdoll.types import Material, Mesh, RiggedAsset, Source, Weights

MAX_BYTES = 1024**3
MAX_MTL_BYTES = 16 * 1024**2
MAX_ABSOLUTE = 1e9
MAX_MATERIALS = 4096


def read(path: str | os.PathLike[str]) -> RiggedAsset:
    """A mesh without a rig: one joint called `root` at the origin carries everything.

    All objects and groups of the file become one mesh. A vertex is split where its texture coordinates differ, not
    where only its normals do. Texture coordinates are turned to glTF's order (v = 0 is the first row of the image).
    """
    path = Path(path)
    lines = _lines(path)
    where = _classify(lines)
    points, painted = _vertices(path, lines, where["v"])
    texcoords = _texcoords(path, lines, where["vt"])
    corners, counts, face_lines = _faces(path, lines, where)
    _check_range(path, corners[:, 0], len(points), counts, face_lines, "vertex", required=True)
    _check_range(path, corners[:, 1], len(texcoords), counts, face_lines, "texture coordinate", required=False)

    library = _materials(path, lines, where["mtllib"])
    looks, polygon_looks = _assign(path, lines, where["usemtl"], face_lines, library)
    place, source, uv = _split(corners, len(points), texcoords)
    flat_faces, polygon = triangulate(points[corners[:, 0] - 1], counts)
    faces, face_looks = place[flat_faces], polygon_looks[polygon]
    good = (faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 2] != faces[:, 0])
    if not good.any():
        raise FileFormatError(f"{path}: there is no triangle in the file; export a mesh with faces")
    _announce(path, len(points) - len(np.unique(source)), int((~good).sum()))
    faces, face_looks = faces[good], face_looks[good]

    paint = [(look.color, look.texture) for look in looks]
    colors = vertex_colors(len(source), faces, face_looks, paint, uv) if painted is None else painted[source]
    mesh = Mesh(
        vertices=torch.from_numpy(points[source]).float(),
        faces=torch.from_numpy(faces),
        colors=torch.from_numpy(colors).float().clamp(0, 1),
        uvs=None if uv is None else torch.from_numpy(uv).float(),
        materials=tuple(
            Material(look.name, look.color, None if look.texture is None else torch.from_numpy(look.texture))
            for look in looks
        ),
        face_materials=torch.from_numpy(face_looks),
    )
    eye = torch.eye(4)
    return RiggedAsset(
        path.stem,
        mesh,
        free_skeleton(("root",), (-1,), eye[None]),
        Weights(torch.zeros(len(source), 1, dtype=torch.long), torch.ones(len(source), 1)),
        source=Source(path, "obj", eye, (-1,), eye[None]),
    )


@dataclass
class _Look:
    name: str
    color: tuple[float, float, float, float] = (0.8, 0.8, 0.8, 1.0)
    texture: np.ndarray | None = None


@dataclass
class _Where:
    """Line indices by keyword."""

    kinds: dict[str, list[int]] = field(default_factory=dict)

    def __getitem__(self, kind: str) -> list[int]:
        return self.kinds.get(kind, [])


def _fail(path: Path, line: int, what: str) -> NoReturn:
    raise FileFormatError(f"{path}, line {line + 1}: {what}; the file is damaged, export it again")


def _lines(path: Path) -> list[bytes]:
    """The lines of the file; a continued line is joined to its first part and leaves an empty one behind."""
    data = read_limited(path, MAX_BYTES)
    if b"\0" in data[:4096]:
        raise FileFormatError(f"{path}: this is a binary file, no OBJ; check what the exporter wrote")
    if b"\t" in data:
        data = data.replace(b"\t", b" ")
    if b"\\" not in data:
        return data.splitlines()
    lines = data.splitlines()
    for i in range(len(lines) - 2, -1, -1):
        if lines[i].endswith(b"\\"):
            lines[i], lines[i + 1] = lines[i][:-1] + b" " + lines[i + 1], b""
    return lines


def _classify(lines: list[bytes]) -> _Where:
    """Where each kind of line stands. Most lines begin with their keyword and a space; the few others are stripped."""
    kinds: dict[str, list[int]] = {"v": [], "vt": [], "f": [], "usemtl": [], "mtllib": []}
    table = {b"v ": kinds["v"], b"vt": kinds["vt"], b"f ": kinds["f"], b"vn": []}
    for i, line in enumerate(lines):
        bucket = table.get(line[:2])
        if bucket is not None:
            bucket.append(i)
        elif line[:1] in (b" ", b"u", b"m"):
            words = line.split(None, 1)
            keyword = words[0].decode("latin-1") if words else ""
            if keyword in kinds and len(words) == 2:
                lines[i] = words[0] + b" " + words[1]
                kinds[keyword].append(i)
    return _Where(kinds)


def _without_keyword(lines: list[bytes], rows: list[int], width: int) -> list[bytes]:
    """The text after the keyword, without a comment."""
    return [lines[i][width:].split(b"#", 1)[0] if b"#" in lines[i] else lines[i][width:] for i in rows]


def _parse(text: bytes) -> np.ndarray | None:
    """Numbers between blanks, or None where something is no number."""
    if re.search(rb"[^0-9eE+\-. naif]", text):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return np.fromstring(text, dtype=np.float64, sep=" ")
        except (DeprecationWarning, ValueError):
            return None


def _table(path: Path, lines: list[bytes], rows: list[int], width: int, columns: tuple[int, ...]) -> np.ndarray:
    """Equal rows of finite numbers [rows columns], as many columns as the first row has."""
    parts = _without_keyword(lines, rows, width)
    values = _parse(b" nan ".join(parts) + b" nan")
    count = len(parts[0].split())
    if values is not None and count in columns and values.size == len(rows) * (count + 1):
        table = values.reshape(len(rows), count + 1)
        if np.isnan(table[:, -1]).all() and (np.abs(table[:, :-1]) <= MAX_ABSOLUTE).all():
            return table[:, :-1]
    return _table_by_line(path, parts, rows, columns)


def _table_by_line(path: Path, parts: list[bytes], rows: list[int], columns: tuple[int, ...]) -> np.ndarray:
    """The slow way, for rows of different lengths: what is common to all is kept."""
    out: list[list[float]] = []
    for row, part in zip(rows, parts, strict=True):
        try:
            numbers = [float(word) for word in part.split()]
        except ValueError:
            numbers = []
        if len(numbers) < min(columns) or not all(abs(number) <= MAX_ABSOLUTE for number in numbers):
            _fail(path, row, f"{part.decode('latin-1').strip()[:60]!r} should be {min(columns)} finite numbers")
        out.append(numbers)
    shortest = min(len(numbers) for numbers in out)
    count = max(c for c in columns if c <= shortest)
    return np.array([numbers[:count] for numbers in out])


def _vertices(path: Path, lines: list[bytes], rows: list[int]) -> tuple[np.ndarray, np.ndarray | None]:
    """Points and, where the extension `x y z r g b` is used, their colours."""
    if not rows:
        raise FileFormatError(f"{path}: there is no vertex in the file; is it an OBJ?")
    table = _table(path, lines, rows, 2, (3, 4, 6, 7))
    painted = table[:, 3:6] if table.shape[1] == 6 else table[:, 4:7] if table.shape[1] == 7 else None
    if painted is not None and painted.max() > 1.0:
        painted = painted / 255.0  # some scanners write bytes
    return np.ascontiguousarray(table[:, :3]), painted


def _texcoords(path: Path, lines: list[bytes], rows: list[int]) -> np.ndarray:
    """Texture coordinates in glTF's order."""
    if not rows:
        return np.zeros((0, 2))
    table = _table(path, lines, rows, 2, (1, 2, 3))
    table = np.concatenate([table, np.zeros((len(table), 1))], 1)[:, :2] if table.shape[1] == 1 else table[:, :2]
    return np.stack([table[:, 0], 1.0 - table[:, 1]], 1)


def _faces(path: Path, lines: list[bytes], where: _Where) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Corners [corners 2] (vertex and texture coordinate from 1, 0 for none), corners per polygon, their lines."""
    rows = where["f"]
    if not rows:
        raise FileFormatError(f"{path}: there is no face in the file; export a mesh, not points")
    parts = _without_keyword(lines, rows, 2)
    found = _faces_fast(parts)
    corners, counts = found if found is not None else _faces_by_line(path, parts, rows)
    line_of = np.array(rows)
    short = counts < 3
    if short.any():
        keep = np.repeat(~short, counts)
        corners, counts, line_of = corners[keep], counts[~short], line_of[~short]
        warnings.warn(f"{path}: {int(short.sum())} faces of fewer than three corners left out", RepairWarning, 3)
    # Negative indices count back from the last vertex before the face.
    for column, kind in ((0, "v"), (1, "vt")):
        negative = corners[:, column] < 0
        if negative.any():
            before = np.searchsorted(np.array(where[kind], dtype=np.int64), line_of)
            corners[:, column] += np.where(negative, np.repeat(before, counts) + 1, 0)
            if (corners[negative, column] < 1).any():
                bad = negative & (corners[:, column] < 1)
                _fail(path, int(np.repeat(line_of, counts)[bad][0]), "a negative index reaches before the first vertex")
    return corners, counts, line_of


def _faces_fast(parts: list[bytes]) -> tuple[np.ndarray, np.ndarray] | None:
    """All faces at once, if every corner of the file is written in the same style (v, v/t, v//n or v/t/n)."""
    text = b" nan ".join(parts) + b" nan "
    first = parts[0].split()
    if not first or re.search(rb"[^0-9\-+ /na]", text):
        return None
    width = first[0].count(b"/") + 1
    values = _parse(text.replace(b"//", b"/0/").replace(b"/", b" inf "))
    if values is None or width > 3:
        return None
    ends = np.flatnonzero(np.isnan(values))
    numbers = np.diff(ends, prepend=-1) - 1
    stride = 2 * width - 1
    if len(ends) != len(parts) or (numbers % stride).any():
        return None
    flat = np.delete(values, ends).reshape(-1, stride)
    if not (np.isinf(flat[:, 1::2]).all() and np.isfinite(flat[:, ::2]).all() and np.abs(flat[:, ::2]).max() < 2**53):
        return None
    corners = np.zeros((len(flat), 2), np.int64)
    corners[:, : min(width, 2)] = flat[:, ::2][:, :2].astype(np.int64)
    return corners, numbers // stride


def _faces_by_line(path: Path, parts: list[bytes], rows: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """The slow way, for mixed styles."""
    corners: list[tuple[int, int]] = []
    counts: list[int] = []
    for row, part in zip(rows, parts, strict=True):
        words = part.split()
        for word in words:
            pieces = word.split(b"/")
            try:
                vertex, coordinate = int(pieces[0]), int(pieces[1]) if len(pieces) > 1 and pieces[1] else 0
            except ValueError:
                vertex, coordinate = 0, 0
            if vertex == 0 or len(pieces) > 3 or max(abs(vertex), abs(coordinate)) > 2**53:
                _fail(path, row, f"{word.decode('latin-1')[:40]!r} is no corner of a face")
            corners.append((vertex, coordinate))
        counts.append(len(words))
    return np.array(corners, dtype=np.int64).reshape(-1, 2), np.array(counts, dtype=np.int64)


def _check_range(
    path: Path, index: np.ndarray, count: int, counts: np.ndarray, lines: np.ndarray, what: str, *, required: bool
) -> None:
    bad = (index > count) | (index < (1 if required else 0))
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        line = int(np.repeat(lines, counts)[at])
        _fail(path, line, f"a face uses {what} {int(index[at])} of {count}")


def _split(
    corners: np.ndarray, num_points: int, texcoords: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Our vertex of each corner, the file's vertex behind each of ours, and its texture coordinate."""
    key = corners[:, 0] * (len(texcoords) + 1) + corners[:, 1]
    unique, place = np.unique(key, return_inverse=True)
    source = unique // (len(texcoords) + 1) - 1
    if not corners[:, 1].any():
        return place, source, None
    padded = np.concatenate([np.zeros((1, 2)), texcoords])
    return place, source, padded[unique % (len(texcoords) + 1)]


def _announce(path: Path, unused: int, flat: int) -> None:
    if unused:
        warnings.warn(f"{path}: {unused} vertices that no face uses were left out", RepairWarning, stacklevel=3)
    if flat:
        warnings.warn(f"{path}: {flat} triangles with a repeated corner were left out", RepairWarning, stacklevel=3)


# Materials


def _materials(path: Path, lines: list[bytes], rows: list[int]) -> dict[str, _Look]:
    """The materials of all libraries that the file names and that lie in its folder."""
    library: dict[str, _Look] = {}
    for name in dict.fromkeys(lines[row].decode("utf-8", "replace")[6:].strip() for row in rows[:64]):
        try:
            file = inside_folder(path.parent, name.strip('"').replace("\\", "/"), of=path)
            text = read_limited(file, MAX_MTL_BYTES).decode("utf-8", "replace")
        except FileFormatError as error:
            warnings.warn(f"{path}: the materials {name[:80]!r} were left out ({error})", RepairWarning, stacklevel=3)
            continue
        _parse_mtl(file, text, library)
    return library


def _parse_mtl(file: Path, text: str, library: dict[str, _Look]) -> None:
    look: _Look | None = None
    images: dict[str, np.ndarray | None] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        keyword = words[0].lower() if words else ""
        if keyword == "newmtl" and len(library) < MAX_MATERIALS:
            look = library.setdefault(" ".join(words[1:]), _Look(" ".join(words[1:])))
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


def _assign(
    path: Path, lines: list[bytes], rows: list[int], face_lines: np.ndarray, library: dict[str, _Look]
) -> tuple[list[_Look], np.ndarray]:
    """The materials that faces use, and the index of each polygon's own."""
    names = [lines[row].decode("utf-8", "replace")[6:].strip() for row in rows]
    missing = sorted({name for name in names if name not in library})
    if missing and library:
        warnings.warn(f"{path}: materials not found: {', '.join(missing[:5])[:200]}", RepairWarning, stacklevel=3)
    section = np.searchsorted(np.array(rows, dtype=np.int64), face_lines)  # 0: before the first usemtl
    looks: list[_Look] = []
    index: dict[str, int] = {}
    by_section = np.zeros(len(names) + 1, np.int64)
    for used in np.unique(section):
        name = names[used - 1] if used else "default"
        if name not in index:
            index[name] = len(looks)
            looks.append(library.get(name, _Look(name)))
        by_section[used] = index[name]
    return looks, by_section[section]
