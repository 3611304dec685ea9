"""A tracking run on disk: the windows that are done and the one that is being worked on."""

from pathlib import Path
from typing import Any

import torch

from jigdoll.errors import FileFormatError, JigdollError
from jigdoll.formats.files import atomic_write


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
                data = torch.load(path, weights_only=True)
                found, self.parts, self.inner = data["key"], data["parts"], data["inner"]
            except Exception as error:
                raise FileFormatError(f"{path}: this is no tracking run ({error}); delete it to begin anew") from error
            if found != self._key:
                raise JigdollError(f"{path} belongs to another clip or other settings; delete it or name another file")

    def write(self, inner: dict[str, Any] | None = None) -> None:
        """Keep all of it, if there is a file to keep it in."""
        if self._path is None:
            return
        with atomic_write(self._path) as temporary:
            torch.save({"key": self._key, "parts": self.parts, "inner": inner}, temporary)
