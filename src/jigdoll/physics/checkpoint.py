"""A tracking run on disk: the windows that are done and the one that is being worked on."""

from pathlib import Path
from typing import Any

from jigdoll.checkpoint import fingerprint, read_checkpoint, write_checkpoint


class Checkpoint:
    """Reads what an earlier run with the same body, clip and settings left, and writes what this one has."""

    def __init__(self, path: Path | None, *, key: tuple[Any, ...]) -> None:
        self._path, self._key = path, fingerprint(*key)
        found = None if path is None else read_checkpoint(path, key=self._key, what="tracking run")
        self.parts: list[dict[str, Any]] = found["parts"] if found else []
        """The windows that are done."""
        self.inner: dict[str, Any] | None = found["inner"] if found else None
        """The state of the one that is not."""

    def write(self, inner: dict[str, Any] | None = None) -> None:
        """Keep all of it, if there is a file to keep it in."""
        if self._path is not None:
            write_checkpoint(self._path, {"parts": self.parts, "inner": inner}, key=self._key)
