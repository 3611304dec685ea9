"""The bytes of a binary FBX file: named records that hold values and other records.

Version 7.4: offsets have 32 bits, so a file stays below 4 GB. Nothing here knows what a mesh is.
"""

import struct
import zlib
from dataclasses import dataclass, field

import numpy as np

from jigdoll.errors import JigdollError

VERSION = 7400
FILE_ID = bytes.fromhex("28b32aebb624ccc2bfc8b02aa92bfcf1")
CREATION_TIME = "1970-01-01 10:00:00:000"
"""The time that FILE_ID and the foot belong to: readers may check one against the other."""
_HEAD = b"Kaydara FBX Binary  \x00\x1a\x00"
_FOOT = bytes.fromhex("fabcab09d0c8d466b176fb831cf7267e")
_END = bytes.fromhex("f85a8c6adef5d97eece90ce3758f290b")
_NO_RECORD = b"\0" * 13
_MAX_BYTES = 2**32 - 1
_PACK_FROM = 128
"""Arrays of more bytes are compressed."""
_ALWAYS_CLOSED = ("AnimationStack", "AnimationLayer")
"""Records whose list of children is closed even where it is empty."""

Value = bool | int | float | str | bytes | np.int64 | np.ndarray
"""An int is stored in 32 bits, a np.int64 in 64; arrays hold int32, int64, float32 or float64."""


@dataclass(eq=False)
class Record:
    """A name, values, and records below it."""

    name: str
    values: tuple[Value, ...] = ()
    children: list["Record"] = field(default_factory=list)

    def add(self, name: str, *values: Value) -> "Record":
        """Add a record below this one, and give it."""
        child = Record(name, values)
        self.children.append(child)
        return child

    def set(self, name: str, kind: str, label: str, flags: str, *values: Value) -> None:
        """Add an entry to the property table of this record, which is made with the first one."""
        table = next((child for child in self.children if child.name == "Properties70"), None)
        (table or self.add("Properties70")).add("P", name, kind, label, flags, *values)


def pack(records: list[Record]) -> bytes:
    """The whole file."""
    out = bytearray(_HEAD + struct.pack("<I", VERSION))
    for record in records:
        _append(out, record)
    out += _NO_RECORD + _FOOT + b"\0" * 4
    out += b"\0" * (16 - len(out) % 16)
    out += struct.pack("<I", VERSION) + b"\0" * 120 + _END
    return bytes(out)


def _append(out: bytearray, record: Record) -> None:
    start, name = len(out), record.name.encode()
    values = b"".join(_packed(value) for value in record.values)
    out += b"\0" * 12 + struct.pack("<B", len(name)) + name + values
    for child in record.children:
        _append(out, child)
    if record.children or not record.values or record.name in _ALWAYS_CLOSED:
        out += _NO_RECORD
    if len(out) > _MAX_BYTES:
        raise JigdollError("an FBX file of more than 4 GB cannot be written; use smaller textures or fewer clips")
    struct.pack_into("<III", out, start, len(out), len(record.values), len(values))


def _packed(value: Value) -> bytes:
    """One value with the letter of its kind before it."""
    if isinstance(value, np.ndarray):
        return _packed_array(value)
    if isinstance(value, bool):
        return b"C" + struct.pack("<B", value)
    if isinstance(value, np.integer):
        return b"L" + struct.pack("<q", int(value))
    if isinstance(value, int):
        return b"I" + struct.pack("<i", value)
    if isinstance(value, float):
        return b"D" + struct.pack("<d", value)
    letter, data = (b"S", value.encode()) if isinstance(value, str) else (b"R", value)
    if len(data) > _MAX_BYTES:
        raise JigdollError("more than 4 GB in one value cannot be written as FBX; use smaller textures")
    return letter + struct.pack("<I", len(data)) + data


def _packed_array(values: np.ndarray) -> bytes:
    letter = {"<i4": b"i", "<i8": b"l", "<f4": b"f", "<f8": b"d"}[values.dtype.str]
    data, packed = np.ascontiguousarray(values).tobytes(), 0
    if len(data) > _PACK_FROM:
        data, packed = zlib.compress(data, 6), 1
    return letter + struct.pack("<III", values.size, packed, len(data)) + data
