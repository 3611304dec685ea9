"""The container: GLB chunks, JSON, buffers and accessors, every index and length checked before it is used."""

import base64
import binascii
import json
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from jigdoll.errors import FileFormatError
from jigdoll.formats.files import inside_folder, read_limited

MAX_BYTES = 1 << 30
"""Files beyond this are refused."""
_EXPANSION = 256 << 20
"""A file may decode to this many bytes, or to 32 times its own size if that is more."""

_COMPONENTS: dict[int, tuple[str, float]] = {
    5120: ("<i1", 127.0),
    5121: ("<u1", 255.0),
    5122: ("<i2", 32767.0),
    5123: ("<u2", 65535.0),
    5125: ("<u4", 4294967295.0),
    5126: ("<f4", 1.0),
}
_WIDTHS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT2": 4, "MAT3": 9, "MAT4": 16}
_GLB_MAGIC, _JSON_CHUNK, _BIN_CHUNK = 0x46546C67, 0x4E4F534A, 0x004E4942


@dataclass(eq=False)
class Document:
    """A parsed glTF file: its JSON and its buffers, with checked access to both."""

    path: Path
    json: dict[str, Any]
    binary: bytes | None
    size: int
    _buffers: dict[int, bytes] = field(default_factory=dict)
    _accessors: dict[int, np.ndarray] = field(default_factory=dict)
    _decoded: int = 0

    def fail(self, message: str) -> FileFormatError:
        """The error to raise, with the file's name in front."""
        return FileFormatError(f"{self.path.name}: {message}")

    def items(self, kind: str) -> list[dict[str, Any]]:
        """A top-level list of objects ("nodes", "meshes", ...), empty where the file has none."""
        found = self.json.get(kind, [])
        if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
            raise self.fail(f"'{kind}' is not a list of objects; the file is damaged")
        return found

    def item(self, kind: str, index: Any) -> dict[str, Any]:
        """One object of a top-level list."""
        found = self.items(kind)
        if type(index) is not int or not 0 <= index < len(found):
            raise self.fail(f"{kind}[{str(index)[:40]}] does not exist (there are {len(found)})")
        return found[index]

    def number(self, holder: dict[str, Any], key: str, default: int | None = None) -> int:
        """A non-negative integer field."""
        value = holder.get(key, default)
        if type(value) is not int or not 0 <= value < 1 << 40:
            raise self.fail(f"'{key}' should be a non-negative whole number, not {str(value)[:40]!r}")
        return value

    def floats(self, holder: dict[str, Any], key: str, count: int, default: list[float]) -> list[float]:
        """A fixed-length list of finite numbers."""
        value = holder.get(key, default)
        good = isinstance(value, list) and len(value) == count and all(type(x) in (int, float) for x in value)
        if not good or not np.isfinite(np.array(value, np.float64)).all():
            raise self.fail(f"'{key}' should be {count} finite numbers, not {str(value)[:60]}")
        return [float(x) for x in value]

    def buffer(self, index: int) -> bytes:
        """The bytes of a buffer: the GLB's own chunk, a data URI, or a file beside this one."""
        if index not in self._buffers:
            entry = self.item("buffers", index)
            length = self.number(entry, "byteLength")
            uri = entry.get("uri")
            if uri is None:
                if index != 0 or self.binary is None:
                    raise self.fail(f"buffer {index} has no data: neither a uri nor a binary chunk")
                data = self.binary
            else:
                data = self.resource(uri)
            if len(data) < length:
                raise self.fail(f"buffer {index} should hold {length} bytes and has {len(data)}; is the file cut off?")
            self._buffers[index] = data[:length]
        return self._buffers[index]

    def resource(self, uri: Any) -> bytes:
        """What a URI points at; it may not leave the file's folder."""
        if not isinstance(uri, str):
            raise self.fail(f"a uri should be text, not {str(uri)[:40]!r}")
        if uri.startswith("data:"):
            head, _, body = uri.partition(",")
            if not head.endswith(";base64"):
                raise self.fail("a data uri is not base64")
            try:
                return base64.b64decode(body, validate=True)
            except (binascii.Error, ValueError) as error:
                raise self.fail(f"a data uri is not valid base64 ({error})") from None
        name = unquote(uri)
        if "://" in name:
            raise self.fail(f"{uri[:80]!r} is not a file beside this one; only local files are read")
        return read_limited(inside_folder(self.path.parent, name, of=self.path), MAX_BYTES)

    def view(self, index: Any) -> tuple[memoryview, int | None]:
        """The bytes of a buffer view and its stride."""
        entry = self.item("bufferViews", index)
        data = self.buffer(self.number(entry, "buffer"))
        start, length = self.number(entry, "byteOffset", 0), self.number(entry, "byteLength")
        if start + length > len(data):
            raise self.fail(f"bufferViews[{index}] ends at byte {start + length} of a buffer of {len(data)}")
        stride = entry.get("byteStride")
        return memoryview(data)[start : start + length], None if stride is None else self.number(entry, "byteStride")

    def accessor(self, index: Any) -> np.ndarray:
        """An accessor's elements as [count, width], normalised integers as floats, sparse values filled in."""
        if index in self._accessors:
            return self._accessors[index]
        entry = self.item("accessors", index)
        dtype, width = self._layout(entry, index)
        count = self.number(entry, "count")
        self.spend(count * width * 4)
        if "bufferView" in entry:
            out = self._strided(entry, dtype, count, width, f"accessors[{index}]")
        else:
            out = np.zeros((count, width), dtype)
        if "sparse" in entry:
            out = self._filled(out, entry["sparse"], dtype, width, index)
        if entry.get("normalized") is True and dtype != "<f4":
            out = np.maximum(out.astype(np.float32) / _COMPONENTS[entry["componentType"]][1], -1.0)
        self._accessors[index] = out
        return out

    def vectors(self, index: Any, width: int, *, count: int | None = None, finite: bool = True) -> np.ndarray:
        """An accessor as float64 [count, width], with its shape checked."""
        data = self.accessor(index).astype(np.float64)
        if data.shape[1] != width or (count is not None and data.shape[0] != count):
            raise self.fail(f"accessors[{index}] has shape {data.shape}, expected ({count or 'any'}, {width})")
        if finite and not np.isfinite(data).all():
            raise self.fail(f"accessors[{index}] holds numbers that are not finite")
        return data

    def spend(self, size: int) -> None:
        """Count decoded bytes, so that a small file cannot ask for all memory."""
        self._decoded += size
        if self._decoded > max(_EXPANSION, 32 * self.size):
            raise self.fail(f"a file of {self.size} bytes asks for more than {self._decoded >> 20} MiB; refused")

    def _layout(self, entry: dict[str, Any], index: Any) -> tuple[str, int]:
        component, kind = entry.get("componentType"), entry.get("type")
        if component not in _COMPONENTS or kind not in _WIDTHS:
            raise self.fail(f"accessors[{index}] is of unknown type {str(component)[:20]!r} {str(kind)[:20]!r}")
        return _COMPONENTS[component][0], _WIDTHS[kind]

    def _strided(self, entry: dict[str, Any], dtype: str, count: int, width: int, where: str) -> np.ndarray:
        data, stride = self.view(entry["bufferView"])
        item = np.dtype(dtype).itemsize
        stride = stride or item * width
        start = self.number(entry, "byteOffset", 0)
        if stride < item * width or (count and start + stride * (count - 1) + item * width > len(data)):
            raise self.fail(f"{where} reads past the end of its buffer view ({count} elements, stride {stride})")
        if not count:
            return np.zeros((0, width), dtype)
        return np.ndarray((count, width), dtype, buffer=data, offset=start, strides=(stride, item)).copy()

    def _filled(self, out: np.ndarray, sparse: Any, dtype: str, width: int, index: Any) -> np.ndarray:
        if not isinstance(sparse, dict) or not all(isinstance(sparse.get(k), dict) for k in ("indices", "values")):
            raise self.fail(f"accessors[{index}].sparse is not complete")
        count = self.number(sparse, "count")
        kind = sparse["indices"].get("componentType")
        if kind not in (5121, 5123, 5125):
            raise self.fail(f"accessors[{index}].sparse has indices of unknown type {str(kind)[:20]!r}")
        where = f"accessors[{index}].sparse"
        rows = self._strided(sparse["indices"], _COMPONENTS[kind][0], count, 1, where)[:, 0]
        values = self._strided(sparse["values"], dtype, count, width, where)
        if count and int(rows.max()) >= len(out):
            raise self.fail(f"{where} writes to element {int(rows.max())} of {len(out)}")
        out = out.copy()
        out[rows] = values
        return out


def read_document(path: Path) -> Document:
    """Open a .glb, .gltf or .vrm file."""
    data = read_limited(path, MAX_BYTES)
    if data[:4] == b"glTF":
        text, binary = _chunks(path, data)
    else:
        text, binary = data, None
    try:
        parsed = json.loads(text.decode("utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise FileFormatError(f"{path.name}: the JSON part cannot be read ({error}); is it a glTF file?") from None
    if not isinstance(parsed, dict) or not isinstance(parsed.get("asset"), dict):
        raise FileFormatError(f"{path.name}: no 'asset' in the JSON; this is not a glTF file")
    if not str(parsed["asset"].get("version", "")).startswith("2"):
        version = str(parsed["asset"].get("version"))[:20]
        raise FileFormatError(f"{path.name}: glTF version {version} is not supported, only 2.x; convert it first")
    return Document(path, parsed, binary, len(data))


def _chunks(path: Path, data: bytes) -> tuple[bytes, bytes | None]:
    """The JSON chunk and the binary chunk of a GLB."""
    if len(data) < 20:
        raise FileFormatError(f"{path.name}: a GLB of {len(data)} bytes is cut off")
    _, version, length = struct.unpack_from("<III", data)
    if version != 2:
        raise FileFormatError(f"{path.name}: GLB version {version} is not supported, only 2; convert it first")
    if length > len(data):
        raise FileFormatError(f"{path.name}: the GLB says {length} bytes and has {len(data)}; it is cut off")
    text, binary, at = None, None, 12
    while at + 8 <= length:
        size, kind = struct.unpack_from("<II", data, at)
        if at + 8 + size > length:
            raise FileFormatError(f"{path.name}: a GLB chunk at byte {at} runs past the end of the file")
        if kind == _JSON_CHUNK and text is None:
            text = data[at + 8 : at + 8 + size]
        elif kind == _BIN_CHUNK and binary is None:
            binary = data[at + 8 : at + 8 + size]
        at += 8 + size
    if text is None:
        raise FileFormatError(f"{path.name}: the GLB has no JSON chunk")
    return text, binary


def pack_glb(parsed: dict[str, Any], binary: bytes) -> bytes:
    """The bytes of a GLB."""
    text = json.dumps(parsed, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
    text += b" " * (-len(text) % 4)
    binary += b"\0" * (-len(binary) % 4)
    chunks = struct.pack("<II", len(text), _JSON_CHUNK) + text
    if binary:
        chunks += struct.pack("<II", len(binary), _BIN_CHUNK) + binary
    return struct.pack("<III", _GLB_MAGIC, 2, 12 + len(chunks)) + chunks
