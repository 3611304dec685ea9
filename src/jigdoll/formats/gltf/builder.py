"""Appending data to a glTF document: buffer views and accessors grow, what is there stays as it is."""

from typing import Any

import numpy as np

_COMPONENT = {"u1": 5121, "u2": 5123, "u4": 5125, "f4": 5126}
_TYPE = {1: "SCALAR", 2: "VEC2", 3: "VEC3", 4: "VEC4", 16: "MAT4"}
ARRAY_BUFFER, ELEMENT_BUFFER = 34962, 34963


class Builder:
    """A glTF JSON and its one binary buffer, both of which grow."""

    def __init__(self, json: dict[str, Any], binary: bytes = b"") -> None:
        self.json = json
        self._parts = [binary]
        self._size = len(binary)

    def append(self, kind: str, entry: dict[str, Any]) -> int:
        """Add an object to a top-level list."""
        found = self.json.setdefault(kind, [])
        found.append(entry)
        return len(found) - 1

    def view(self, data: bytes, *, target: int | None = None) -> int:
        """Add bytes as a buffer view, aligned to four."""
        padding = -self._size % 4
        self._parts += [b"\0" * padding, data]
        entry = {"buffer": 0, "byteOffset": self._size + padding, "byteLength": len(data)}
        self._size += padding + len(data)
        return self.append("bufferViews", entry if target is None else {**entry, "target": target})

    def accessor(
        self, values: np.ndarray, *, target: int | None = None, bounds: bool = False, normalized: bool = False
    ) -> int:
        """Add an array [count] or [count width]."""
        flat = values.reshape(len(values), -1)
        kind = flat.dtype.str[1:]
        entry: dict[str, Any] = {
            "bufferView": self.view(np.ascontiguousarray(flat).tobytes(), target=target),
            "componentType": _COMPONENT[kind],
            "count": len(flat),
            "type": _TYPE[flat.shape[1]],
        }
        if normalized:
            entry["normalized"] = True
        if bounds:
            entry["min"], entry["max"] = flat.min(0).tolist(), flat.max(0).tolist()
        return self.append("accessors", entry)

    def finish(self) -> tuple[dict[str, Any], bytes]:
        """The JSON and the binary buffer, which the JSON now describes."""
        binary = b"".join(self._parts)
        if binary:
            buffers = self.json.setdefault("buffers", [{}])
            buffers[0] = {**buffers[0], "byteLength": len(binary)}
            buffers[0].pop("uri", None)
        return self.json, binary
