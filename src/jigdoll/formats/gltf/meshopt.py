"""EXT_meshopt_compression: packed buffer views become plain ones, every length checked before it is used.

Three streams are known (attributes, triangles, indices) with the filters of the Khronos specification, whose words
(group, sentinel, edge queue) are used here. Attributes are decoded in two steps: a scan that finds where each group of
sixteen bytes lies, which cannot be done in parallel, and one table lookup for all groups of a kind.
"""

from typing import Any

import numpy as np

from jigdoll.formats.gltf.document import Document

EXTENSIONS = ("EXT_meshopt_compression", "KHR_meshopt_compression")
_GROUP = 16
_MODES = ("ATTRIBUTES", "TRIANGLES", "INDICES")
_FILTERS = ("NONE", "OCTAHEDRAL", "QUATERNION", "EXPONENTIAL")

_BYTES = np.arange(256, dtype=np.uint8)
_PAIRS = np.stack([_BYTES >> 6 & 3, _BYTES >> 4 & 3, _BYTES >> 2 & 3, _BYTES & 3], 1)
_NIBBLES = np.stack([_BYTES >> 4, _BYTES & 15], 1)
_PAIR_SENTINELS = (_PAIRS == 3).sum(1).tolist()
_NIBBLE_SENTINELS = (_NIBBLES == 15).sum(1).tolist()


def unpack(document: Document) -> Document:
    """The document with all its buffer views plain and in one buffer; the same document where nothing is packed."""
    views = document.items("bufferViews")
    packed = [_packing(view) for view in views]
    if not any(entry is not None for entry in packed):
        return document
    parts: list[bytes] = []
    plain, size = [], 0
    for index, (view, entry) in enumerate(zip(views, packed, strict=True)):
        data = bytes(document.view(index)[0]) if entry is None else _decoded(document, index, view, entry)
        kept = {key: value for key, value in view.items() if key not in ("buffer", "byteOffset", "byteLength")}
        if entry is not None:
            kept["extensions"] = {k: v for k, v in view["extensions"].items() if k not in EXTENSIONS}
        if not kept.get("extensions"):
            kept.pop("extensions", None)
        plain.append({"buffer": 0, "byteOffset": size, "byteLength": len(data), **kept})
        parts += [data, b"\0" * (-len(data) % 4)]
        size += len(data) + -len(data) % 4
    parsed = {**document.json, "bufferViews": plain, "buffers": [{"byteLength": size}]}
    for key in ("extensionsUsed", "extensionsRequired"):
        names = [name for name in parsed.get(key, []) if name not in EXTENSIONS]
        parsed[key] = names
        if not names:
            del parsed[key]
    return Document(document.path, parsed, b"".join(parts), document.size)


def _packing(view: dict[str, Any]) -> dict[str, Any] | None:
    extensions = view.get("extensions")
    if not isinstance(extensions, dict):
        return None
    return next((extensions[name] for name in EXTENSIONS if isinstance(extensions.get(name), dict)), None)


def _decoded(document: Document, index: int, view: dict[str, Any], entry: dict[str, Any]) -> bytes:
    """The plain bytes of one packed buffer view."""
    where = f"bufferViews[{index}]"
    packed = document.buffer(document.number(entry, "buffer"))
    start, length = document.number(entry, "byteOffset", 0), document.number(entry, "byteLength")
    stride, count = document.number(entry, "byteStride"), document.number(entry, "count")
    mode, kind = entry.get("mode"), entry.get("filter", "NONE")
    if start + length > len(packed):
        raise document.fail(f"{where} ends at byte {start + length} of a buffer of {len(packed)}")
    if mode not in _MODES or kind not in _FILTERS:
        raise document.fail(f"{where} is packed in an unknown way ({str(mode)[:20]!r}, {str(kind)[:20]!r})")
    if document.number(view, "byteLength") != stride * count:
        raise document.fail(f"{where} should unpack to {view['byteLength']} bytes, not to {stride * count}")
    fits = stride % 4 == 0 and 0 < stride <= 256 if mode == "ATTRIBUTES" else stride in (2, 4) and kind == "NONE"
    if not fits or (kind == "OCTAHEDRAL" and stride not in (4, 8)) or (kind == "QUATERNION" and stride != 8):
        raise document.fail(f"{where} has a stride of {stride}, which {mode} with filter {kind} cannot have")
    document.spend(stride * count * 4)
    data = packed[start : start + length]
    try:
        if mode == "ATTRIBUTES":
            return _filtered(attributes(data, count, stride), kind).tobytes()
        indices = triangles(data, count) if mode == "TRIANGLES" else sequence(data, count)
    except (ValueError, IndexError) as error:
        raise document.fail(f"{where}: the packed data is damaged ({error})") from None
    return indices.astype("<u2" if stride == 2 else "<u4").tobytes()


# ------------------------------------------------------------------------------------------------------ attributes


def attributes(data: bytes, count: int, stride: int) -> np.ndarray:
    """Elements [count stride] of a stream of byte differences."""
    tail = max(stride, 32)
    if len(data) < 1 + tail:
        raise ValueError("the stream is too short")
    if data[0] != 0xA0:
        raise ValueError(f"version {data[0]:#x} of the attribute stream is not known; repack it for glTF's extension")
    block = min(8192 // stride & ~15, 256)
    sizes = [min(block, count - first) for first in range(0, count, block)]
    kinds, places = _groups(data, len(data) - tail, sizes, stride)
    deltas = _deltas(data, kinds, places)
    deltas = (deltas >> 1) ^ (0 - (deltas & 1)).astype(np.uint8)
    rows, at = [], 0
    for size in sizes:
        groups = -(-size // _GROUP)
        rows.append(deltas[at : at + stride * groups].reshape(stride, -1)[:, :size])
        at += stride * groups
    first = np.frombuffer(data, np.uint8, stride, len(data) - stride)
    steps = np.concatenate([np.zeros((stride, 0), np.uint8), *rows], 1)
    return (first[:, None] + np.cumsum(steps, axis=1, dtype=np.uint8)).T.astype(np.uint8)


def _groups(data: bytes, end: int, sizes: list[int], stride: int) -> tuple[np.ndarray, np.ndarray]:
    """The kind of every group (0 to 3) and where its bytes begin, by walking through the stream once."""
    padded = data + bytes(8)
    kinds, places = bytearray(), []
    at = 1
    for size in sizes:
        groups = -(-size // _GROUP)
        for _ in range(stride):
            head = at
            at += -(-groups // 4)
            if at > end:
                raise ValueError("the stream ends in the middle of a block")
            for group in range(groups):
                kind = padded[head + (group >> 2)] >> (group & 3) * 2 & 3
                kinds.append(kind)
                places.append(at)
                if kind == 1:
                    at += 4 + sum(_PAIR_SENTINELS[byte] for byte in padded[at : at + 4])
                elif kind == 2:
                    at += 8 + sum(_NIBBLE_SENTINELS[byte] for byte in padded[at : at + 8])
                elif kind == 3:
                    at += _GROUP
                if at > end:
                    raise ValueError("the stream ends in the middle of a group")
    if at != end:
        raise ValueError(f"{end - at} bytes are left over")
    return np.frombuffer(bytes(kinds), np.uint8), np.array(places, np.int64)


def _deltas(data: bytes, kinds: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The sixteen stored bytes of every group."""
    flat = np.frombuffer(data, np.uint8)
    out = np.zeros((len(kinds), _GROUP), np.uint8)
    whole = places[kinds == 3]
    out[kinds == 3] = flat[whole[:, None] + np.arange(_GROUP)]
    for kind, table, width, sentinel in ((1, _PAIRS, 4, 3), (2, _NIBBLES, 8, 15)):
        start = places[kinds == kind][:, None]
        values = table[flat[start + np.arange(width)]].reshape(-1, _GROUP)
        escaped = values == sentinel
        extra = start + width + np.cumsum(escaped, 1) - 1
        out[kinds == kind] = np.where(escaped, flat[np.where(escaped, extra, 0)], values)
    return out


def _filtered(elements: np.ndarray, kind: str) -> np.ndarray:
    """The elements after their filter."""
    if kind == "NONE" or not len(elements):
        return elements
    elements = np.ascontiguousarray(elements)
    if kind == "EXPONENTIAL":
        whole = elements.view("<i4")
        mantissa = (whole << 8) >> 8
        return np.ldexp(mantissa.astype(np.float64), (whole >> 24).clip(-100, 100)).astype("<f4")
    values = elements.view("<i1" if elements.shape[1] == 4 else "<i2")
    if kind == "QUATERNION":
        return _quaternions(values)
    most = 127.0 if elements.shape[1] == 4 else 32767.0
    x, y = (values[:, :2] / np.maximum(np.abs(values[:, 2:3].astype(np.float64)), 1)).T
    z = 1 - np.abs(x) - np.abs(y)
    x, y = (c - np.copysign(np.minimum(z, 0), c) for c in (x, y))
    unit = np.stack([x, y, z], 1) / np.maximum(np.sqrt(x * x + y * y + z * z), 1e-12)[:, None]
    out = values.copy()
    out[:, :3] = np.rint(unit * most).astype(values.dtype)
    return out


def _quaternions(values: np.ndarray) -> np.ndarray:
    """Four components from the three smaller ones; the last value tells the scale and which one was left out."""
    one = (values[:, 3] | 3).astype(np.float64)
    small = values[:, :3] / np.where(one == 0, 1, one)[:, None] * np.sqrt(0.5)
    largest = np.sqrt(np.maximum(0.0, 1 - (small**2).sum(1)))
    out = np.empty_like(values)
    rows, left_out = np.arange(len(values)), values[:, 3] & 3
    for step, component in enumerate((largest, *small.T)):
        out[rows, (left_out + step) % 4] = np.rint(component * 32767).clip(-32767, 32767).astype("<i2")
    return out


# --------------------------------------------------------------------------------------------------------- indices


class _Numbers:
    """Numbers of seven bits a byte, read in order up to an end."""

    def __init__(self, data: bytes, at: int, end: int) -> None:
        self.data, self.at, self.end = data, at, end

    def byte(self) -> int:
        """The next byte."""
        if self.at >= self.end:
            raise ValueError("the stream ends in the middle of an index")
        self.at += 1
        return self.data[self.at - 1]

    def number(self) -> int:
        """The next number of at most 32 bits."""
        value = 0
        for shift in range(0, 35, 7):
            byte = self.byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value & 0xFFFFFFFF
        raise ValueError("an index has more than 32 bits")


def _signed(value: int) -> int:
    """Undo zigzag: 0, 1, 2, 3 mean 0, -1, 1, -2."""
    return (value >> 1) ^ -(value & 1)


def sequence(data: bytes, count: int) -> np.ndarray:
    """Indices [count] as differences from one of two running values."""
    if len(data) < 5 + count or data[0] != 0xD1:
        raise ValueError("this is no index stream, or it is too short")
    numbers = _Numbers(data, 1, len(data) - 4)
    last, out = [0, 0], np.zeros(count, np.uint32)
    for i in range(count):
        value = numbers.number()
        which = value & 1
        last[which] = (last[which] + _signed(value >> 1)) & 0xFFFFFFFF
        out[i] = last[which]
    if numbers.at != numbers.end:
        raise ValueError("bytes are left over")
    return out


def triangles(data: bytes, count: int) -> np.ndarray:
    """Indices [count] of triangles, most of them one byte: an edge of a triangle before and one more vertex."""
    if count % 3 or len(data) < 17 + count // 3 or data[0] != 0xE1:
        raise ValueError("this is no triangle stream, or it is too short")
    decoder = _Triangles(data, count // 3)
    out = [decoder.next_triangle(code) for code in data[1 : 1 + count // 3]]
    if decoder.numbers.at != decoder.numbers.end:
        raise ValueError("bytes are left over")
    return np.array(out, np.uint32).reshape(-1)


class _Triangles:
    """What the decoder remembers from triangle to triangle."""

    def __init__(self, data: bytes, count: int) -> None:
        self.numbers = _Numbers(data, 1 + count, len(data) - 16)
        self.table = data[len(data) - 16 :]
        self.edges, self.edge_at = [(0, 0)] * 16, 0
        self.vertices, self.vertex_at = [0] * 16, 0
        self.next, self.last = 0, 0

    def next_triangle(self, code: int) -> tuple[int, int, int]:
        """One triangle, and what it leaves behind for the next ones."""
        high, low = code >> 4, code & 15
        if high == 15:
            return self._apart(low)
        a, b = self.edges[(self.edge_at - 1 - high) & 15]
        if 0 < low < 13:
            c = self.vertices[(self.vertex_at - 1 - low) & 15]
        else:
            if low == 0:
                c = self._new()
            elif low == 15:
                c = self._free()
            else:
                c = self.last = (self.last + (1 if low == 14 else -1)) & 0xFFFFFFFF
            self._push_vertex(c)
        self._push_edge(c, b)
        self._push_edge(a, c)
        return a, b, c

    def _apart(self, low: int) -> tuple[int, int, int]:
        """A triangle that shares no edge with those before."""
        both = self.table[low] if low < 14 else self.numbers.byte()
        second, third = both >> 4, both & 15
        if low >= 14 and both == 0:
            self.next = 0
        a = self._free() if low == 15 else self._new()
        b = self._vertex(second, explicit=low >= 14)
        c = self._vertex(third, explicit=low >= 14)
        self._push_edge(b, a)
        self._push_edge(c, b)
        self._push_edge(a, c)
        self._push_vertex(a)
        for vertex, sign in ((b, second), (c, third)):
            if sign == 0 or (sign == 15 and low >= 14):
                self._push_vertex(vertex)
        return a, b, c

    def _vertex(self, sign: int, *, explicit: bool) -> int:
        if sign == 0:
            return self._new()
        if sign == 15 and explicit:
            return self._free()
        return self.vertices[(self.vertex_at - sign) & 15]

    def _new(self) -> int:
        self.next += 1
        return self.next - 1

    def _free(self) -> int:
        self.last = (self.last + _signed(self.numbers.number())) & 0xFFFFFFFF
        return self.last

    def _push_edge(self, a: int, b: int) -> None:
        self.edges[self.edge_at] = (a, b)
        self.edge_at = (self.edge_at + 1) & 15

    def _push_vertex(self, vertex: int) -> None:
        self.vertices[self.vertex_at] = vertex
        self.vertex_at = (self.vertex_at + 1) & 15
