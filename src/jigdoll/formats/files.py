"""Files at the border: bounded reading, writing that never leaves half a file, paths that stay in their folder."""

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from jigdoll.errors import FileFormatError

MAX_BYTES = 2 * 1024**3


def read_limited(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> bytes:
    """The bytes of a regular file that is not larger than allowed."""
    path = Path(path)
    try:
        if not path.exists():
            raise FileFormatError(f"{path}: there is no such file; check the path")
        if not path.is_file():
            raise FileFormatError(f"{path}: this is a folder or a device, not a file; name a file")
        size = path.stat().st_size
        with path.open("rb") as file:
            # One byte more than there should be tells a file that grows while we read.
            data = file.read(min(size, max_bytes) + 1) if size <= max_bytes else b""
        size = max(size, len(data))
    except (OSError, ValueError) as error:
        raise FileFormatError(f"{path}: cannot be read ({error}); check the path and its permissions") from error
    if size > max_bytes:
        raise FileFormatError(f"{path}: {size:,} bytes are more than the {max_bytes:,} allowed; use a smaller file")
    return data


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path in the same folder, which takes the place of `path` if the block ends well.

    Whoever looks at `path` sees the old file or the whole new one. The temporary name keeps the suffix, because
    encoders choose their container by it.
    """
    path = Path(path)
    if path.is_dir():
        raise FileFormatError(f"{path}: this is a folder; name a file to write")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.stem[:40]}-{secrets.token_hex(6)}{path.suffix}")
        # Opened here and not by tempfile, which gives it to its owner alone: so it gets what the user's umask says.
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except (OSError, ValueError) as error:
        raise FileFormatError(f"{path}: cannot be written ({error}); choose another folder") from error
    try:
        yield temporary
        os.replace(temporary, path)
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be written ({error}); choose another folder") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def is_temporary(path: Path) -> bool:
    """Whether the path is one that `atomic_write` gave: after a kill it may be left over."""
    return re.fullmatch(r"\..{0,40}-[0-9a-f]{12}(\.\w*)?", path.name) is not None


def write_bytes(path: str | os.PathLike[str], data: bytes) -> Path:
    """Write a whole file or nothing."""
    with atomic_write(path) as temporary:
        temporary.write_bytes(data)
    return Path(path)


def inside_folder(folder: Path, name: str, *, of: Path) -> Path:
    """The path of a file that `of` names, refused if it leaves the folder (also through a symbolic link)."""
    try:
        inside = (folder / name).resolve()
        stays = inside.is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError) as error:
        raise FileFormatError(f"{of}: names a file {name[:80]!r} that is no path ({error})") from error
    if not stays:
        raise FileFormatError(f"{of}: names a file outside its own folder ({name[:80]!r}); move the file beside it")
    return inside
