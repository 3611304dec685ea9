"""A tracking run on disk: the windows that are done and the one that is being worked on."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jigdoll.errors import FileFormatError, JigdollError
from jigdoll.formats.files import atomic_write, read_limited


class Checkpoint:
    """Reads what an earlier run with the same clip and settings left, and writes what this one has."""

    def __init__(self, path: Path | None, *, key: tuple[Any, ...]) -> None:
        self._path, self._key = path, repr(key)
        self.parts: list[dict[str, Any]] = []
        """The windows that are done."""
        self.inner: dict[str, Any] | None = None
        """The state of the one that is not."""
        if path is not None and path.exists():
            try:
                with np.load(io.BytesIO(read_limited(path)), allow_pickle=False) as file:
                    arrays = [torch.from_numpy(file[f"array_{i}"]) for i in range(len(file.files) - 1)]
                    data = _full(json.loads(file["tree"].tobytes()), arrays)
                found, self.parts, self.inner = data["key"], data["parts"], data["inner"]
            except (OSError, ValueError, KeyError, TypeError, IndexError, zipfile.BadZipFile) as error:
                raise FileFormatError(f"{path}: this is no tracking run ({error}); delete it to begin anew") from error
            if found != self._key:
                raise JigdollError(f"{path} belongs to another clip or other settings; delete it or name another file")

    def write(self, inner: dict[str, Any] | None = None) -> None:
        """Keep all of it, if there is a file to keep it in."""
        if self._path is None:
            return
        arrays: list[np.ndarray] = []
        tree = _bare({"key": self._key, "parts": self.parts, "inner": inner}, arrays)
        with atomic_write(self._path) as temporary, temporary.open("wb") as file:
            named: dict[str, Any] = {f"array_{i}": array for i, array in enumerate(arrays)}
            np.savez(file, tree=np.frombuffer(json.dumps(tree).encode(), np.uint8), **named)


def _bare(value: Any, arrays: list[np.ndarray]) -> Any:
    """The value as JSON can hold it; its tensors go to the list and leave their number."""
    if isinstance(value, Tensor):
        arrays.append(value.detach().cpu().numpy())
        return {"array": len(arrays) - 1}
    if isinstance(value, dict):
        return {"dict": [[key, _bare(item, arrays)] for key, item in value.items()]}
    if isinstance(value, list | tuple):
        return [_bare(item, arrays) for item in value]
    return value


def _full(value: Any, arrays: list[Tensor]) -> Any:
    """The inverse of `_bare`, but that tuples are lists."""
    if isinstance(value, list):
        return [_full(item, arrays) for item in value]
    if isinstance(value, dict) and "array" in value:
        return arrays[value["array"]]
    if isinstance(value, dict):
        return {key: _full(item, arrays) for key, item in value["dict"]}
    return value
