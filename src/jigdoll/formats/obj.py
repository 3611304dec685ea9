"""Wavefront OBJ with its MTL: a bare mesh, read by columns so that half a million faces take a second or two.

Lines of one kind are cut out of the file as one block of bytes and parsed in C; the layout of the block is checked on
its bytes. Where the rows differ, or something is wrong, the lines are read one by one and the first bad one is named.
"""

import os
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np
import torch

from jigdoll.errors import FileFormatError, RepairWarning
from jigdoll.formats.files import read_limited
from jigdoll.formats.joints import free_skeleton
from jigdoll.formats.mtl import MtlLook, read_materials
from jigdoll.formats.polygons import triangulate
from jigdoll.formats.textures import vertex_colors
from jigdoll.types import Material, Mesh, RiggedAsset, Source, Weights

MAX_BYTES = 1024**3
MAX_ABSOLUTE = 1e9


def read(path: str | os.PathLike[str]) -> RiggedAsset:
    """A mesh without a rig: one joint called `root` at the origin carries everything.

    All objects and groups of the file become one mesh. A vertex is split where its texture coordinates differ, not
    where only its normals do. Texture coordinates are turned to glTF's order (v = 0 is the first row of the image).
    """
    path = Path(path)
    text = _text(path)
    points, painted = _vertices(path, text)
    texcoords = _texcoords(path, text)
    corners, counts, face_lines = _faces(path, text)
    _check_range(path, corners[:, 0], len(points), counts, face_lines, "vertex", required=True)
    _check_range(path, corners[:, 1], len(texcoords), counts, face_lines, "texture coordinate", required=False)

    library = read_materials(path, text.mtllib)
    looks, polygon_looks = _assign(path, text.usemtl, face_lines, library)
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


@dataclass(frozen=True, eq=False)
class _Block:
    """All lines of one kind: their bytes without the keyword, each ended by a newline, and their line indices."""

    data: bytes
    rows: np.ndarray

    def lines(self) -> list[bytes]:
        """The lines one by one."""
        return self.data.split(b"\n")[: len(self.rows)]


@dataclass(frozen=True, eq=False)
class _Text:
    v: _Block
    vt: _Block
    f: _Block
    usemtl: list[tuple[int, str]]
    """Line index and name."""
    mtllib: list[str]


def _fail(path: Path, line: int, what: str) -> NoReturn:
    raise FileFormatError(f"{path}, line {line + 1}: {what}; the file is damaged, export it again")


def _text(path: Path) -> _Text:
    """The file taken apart by keyword; what is changed on the way keeps the number of lines."""
    data = read_limited(path, MAX_BYTES)
    if b"\0" in data[:4096]:
        raise FileFormatError(f"{path}: this is a binary file, no OBJ; check what the exporter wrote")
    data = (data if b"\n" in data else data.replace(b"\r", b"\n")).translate(_BLANKS) + b"\n"
    if b"\\" in data:  # a backslash continues the line: join, and leave an empty line behind
        data = re.sub(rb"(?:[^\n]*\\ *\n)+[^\n]*", _join_continued, data)
    if b"\n " in data or data.startswith(b" "):
        data = re.sub(rb"^ +", b"", data, flags=re.MULTILINE)
    names: dict[bytes, list[tuple[int, str]]] = {b"usemtl": [], b"mtllib": []}
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == 10)
    named = b"usemtl" in data or b"mtllib" in data
    for match in re.finditer(rb"^(usemtl|mtllib) +([^\n]*)", data, re.MULTILINE) if named else ():
        row = int(np.searchsorted(ends, match.start()))
        names[match[1]].append((row, match[2].decode("utf-8", "replace").strip()))
    if b"#" in data:
        data = re.sub(rb"#[^\n]*", b"", data)
    v, vt, f = _blocks(data)
    return _Text(v, vt, f, names[b"usemtl"], [name for _, name in names[b"mtllib"]])


_BLANKS = bytes.maketrans(b"\t\r\v\f", b"    ")


def _join_continued(match: "re.Match[bytes]") -> bytes:
    joined, count = re.subn(rb"\\ *\n", b" ", match[0])
    return joined + b"\n" * count


def _blocks(data: bytes) -> tuple[_Block, _Block, _Block]:
    """The lines that begin with `v `, `vt ` and `f `."""
    letters = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(letters == 10)
    starts = np.concatenate([[0], ends[:-1] + 1])
    # A line shorter than the keyword meets its own newline, which is no letter.
    first, second = letters[starts], letters[np.minimum(starts + 1, len(letters) - 1)]
    third = letters[np.minimum(starts + 2, len(letters) - 1)]
    kinds = (
        (first == ord("v")) & (second == 32),
        (first == ord("v")) & (second == ord("t")) & (third == 32),
        (first == ord("f")) & (second == 32),
    )
    blocks = []
    for mine, length in zip(kinds, (1, 2, 1), strict=True):
        sizes = (ends + 1 - starts)[mine]
        chosen = letters[np.repeat(mine, ends + 1 - starts)]
        for letter in range(length):
            chosen[np.cumsum(sizes) - sizes + letter] = 32
        blocks.append(_Block(chosen.tobytes(), np.flatnonzero(mine)))
    return blocks[0], blocks[1], blocks[2]


def _layout(data: bytes, allowed: bytes) -> tuple[np.ndarray, np.ndarray] | None:
    """Where words begin and how many each line has, or None if there is a letter that should not be there."""
    letters = np.frombuffer(data, np.uint8)
    known = np.zeros(256, bool)
    known[list(allowed + b" \n")] = True
    if not known[letters].all():
        return None
    blank = (letters == 32) | (letters == 10)
    begins = np.flatnonzero(~blank & np.concatenate([[True], blank[:-1]]))
    return begins, np.diff(np.searchsorted(begins, np.flatnonzero(letters == 10)), prepend=0)


def _numbers(data: bytes, kind: type, count: int) -> np.ndarray | None:
    """So many numbers between blanks, or None."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            values = np.fromstring(data, dtype=kind, sep=" ")
        except (DeprecationWarning, ValueError):
            return None
    return values if values.size == count else None


def _table(path: Path, block: _Block, columns: tuple[int, ...]) -> np.ndarray:
    """Equal rows of finite numbers [rows columns], as many columns as the first row has."""
    layout = _layout(block.data, b"0123456789eE+-.")
    if layout is not None and layout[1][0] in columns and (layout[1] == layout[1][0]).all():
        values = _numbers(block.data, float, len(layout[0]))
        if values is not None and (np.abs(values) <= MAX_ABSOLUTE).all():
            return values.reshape(len(block.rows), -1)
    return _table_by_line(path, block.lines(), block.rows.tolist(), columns)


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


def _vertices(path: Path, text: _Text) -> tuple[np.ndarray, np.ndarray | None]:
    """Points and, where the extension `x y z r g b` is used, their colours."""
    if not len(text.v.rows):
        raise FileFormatError(f"{path}: there is no vertex in the file; is it an OBJ?")
    table = _table(path, text.v, (3, 4, 6, 7))
    painted = table[:, 3:6] if table.shape[1] == 6 else table[:, 4:7] if table.shape[1] == 7 else None
    if painted is not None and painted.max() > 1.0:
        painted = painted / 255.0  # some scanners write bytes
    return np.ascontiguousarray(table[:, :3]), painted


def _texcoords(path: Path, text: _Text) -> np.ndarray:
    """Texture coordinates in glTF's order."""
    if not len(text.vt.rows):
        return np.zeros((0, 2))
    table = _table(path, text.vt, (1, 2, 3))
    table = np.concatenate([table, np.zeros((len(table), 1))], 1)[:, :2] if table.shape[1] == 1 else table[:, :2]
    return np.stack([table[:, 0], 1.0 - table[:, 1]], 1)


def _faces(path: Path, text: _Text) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Corners [corners 2] (vertex and texture coordinate from 1, 0 for none), corners per polygon, their lines."""
    if not len(text.f.rows):
        raise FileFormatError(f"{path}: there is no face in the file; export a mesh, not points")
    found = _faces_fast(text.f.data)
    corners, counts = found if found is not None else _faces_by_line(path, text.f.lines(), text.f.rows.tolist())
    line_of = text.f.rows
    short = counts < 3
    if short.any():
        keep = np.repeat(~short, counts)
        corners, counts, line_of = corners[keep], counts[~short], line_of[~short]
        warnings.warn(f"{path}: {int(short.sum())} faces of fewer than three corners left out", RepairWarning, 3)
    # Negative indices count back from the last vertex before the face.
    for column, block in ((0, text.v), (1, text.vt)):
        negative = corners[:, column] < 0
        if negative.any():
            before = np.searchsorted(block.rows, line_of)
            corners[:, column] += np.where(negative, np.repeat(before, counts) + 1, 0)
            if (corners[negative, column] < 1).any():
                bad = negative & (corners[:, column] < 1)
                _fail(path, int(np.repeat(line_of, counts)[bad][0]), "a negative index reaches before the first vertex")
    return corners, counts, line_of


def _faces_fast(data: bytes) -> tuple[np.ndarray, np.ndarray] | None:
    """All faces at once, if every corner of the file is written in the same style (v, v/t, v//n or v/t/n)."""
    if b"//" in data:
        data = data.replace(b"//", b"/0/")
    layout = _layout(data, b"0123456789+-/")
    if layout is None or not len(layout[0]):
        return None
    begins, counts = layout
    places = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("/"))
    slashes = np.diff(np.searchsorted(places, begins), append=len(places))
    width = int(slashes[0]) + 1
    if width > 3 or (slashes != slashes[0]).any():
        return None
    values = _numbers(data.replace(b"/", b" "), np.int64, len(begins) * width)
    if values is None:
        return None
    corners = np.zeros((len(begins), 2), np.int64)
    corners[:, : min(width, 2)] = values.reshape(-1, width)[:, :2]
    return corners, counts


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


def _assign(
    path: Path, used: list[tuple[int, str]], face_lines: np.ndarray, library: dict[str, MtlLook]
) -> tuple[list[MtlLook], np.ndarray]:
    """The materials that faces use, and the index of each polygon's own."""
    names = [name for _, name in used]
    missing = sorted({name for name in names if name not in library})
    if missing and library:
        warnings.warn(f"{path}: materials not found: {', '.join(missing[:5])[:200]}", RepairWarning, stacklevel=3)
    rows = np.array([row for row, _ in used], dtype=np.int64)
    section = np.searchsorted(rows, face_lines)  # 0: before the first usemtl
    looks: list[MtlLook] = []
    index: dict[str, int] = {}
    by_section = np.zeros(len(names) + 1, np.int64)
    for part in np.unique(section):
        name = names[part - 1] if part else "default"
        if name not in index:
            index[name] = len(looks)
            looks.append(library.get(name, MtlLook(name)))
        by_section[part] = index[name]
    return looks, by_section[section]
