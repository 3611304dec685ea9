"""One file out of a zip archive, read into memory: nothing is unpacked to disk, and nothing grows beyond its bound."""

import zipfile
import zlib
from pathlib import Path, PurePosixPath

from jigdoll.errors import FileFormatError

MAX_ARCHIVE = 2 * 1024**3
MAX_MEMBERS = 100_000
MAX_BYTES = 256 * 1024**2
"""Of one unpacked file."""
_PIECE = 4096
"""Compressed bytes at a time: bzip2 makes at most some ten megabytes out of so few."""


def read_member(
    path: Path, name: str | None, *, suffixes: tuple[str, ...], max_bytes: int = MAX_BYTES
) -> tuple[str, bytes]:
    """The name and the bytes of one file of an archive, found by its path, its name, or a part that only it has."""
    if not path.is_file() or path.stat().st_size > MAX_ARCHIVE:
        raise FileFormatError(f"{path}: there is no such file, or it is larger than {MAX_ARCHIVE >> 30} GiB")
    try:
        with zipfile.ZipFile(path) as archive:
            members = [entry for entry in archive.infolist() if entry.filename and not entry.is_dir()]
            if len(members) > MAX_MEMBERS:
                raise FileFormatError(f"{path}: {len(members)} files are more than {MAX_MEMBERS}; split the archive")
            member = _find(path, members, name, suffixes)
            if member.file_size > max_bytes:
                raise FileFormatError(f"{path}: {member.filename} unpacks to {member.file_size:,} bytes; too large")
            return member.filename, _unpacked(path, archive, member, max_bytes)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError) as error:
        raise FileFormatError(f"{path}: cannot be unpacked ({error}); pack it again as a plain zip") from error


def member_names(path: Path, *, suffixes: tuple[str, ...]) -> list[str]:
    """The files with these suffixes in an archive, by their full names."""
    if not path.is_file() or path.stat().st_size > MAX_ARCHIVE:
        raise FileFormatError(f"{path}: there is no such file, or it is larger than {MAX_ARCHIVE >> 30} GiB")
    try:
        with zipfile.ZipFile(path) as archive:
            names = [entry.filename for entry in archive.infolist() if not entry.is_dir()]
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, OSError, ValueError) as error:
        raise FileFormatError(f"{path}: cannot be unpacked ({error}); pack it again as a plain zip") from error
    if len(names) > MAX_MEMBERS:
        raise FileFormatError(f"{path}: {len(names)} files are more than {MAX_MEMBERS}; split the archive")
    return sorted(name for name in names if PurePosixPath(name).suffix.lower() in suffixes)


def _find(path: Path, members: list[zipfile.ZipInfo], name: str | None, suffixes: tuple[str, ...]) -> zipfile.ZipInfo:
    """The member that a name means."""
    known = {entry.filename: entry for entry in members if PurePosixPath(entry.filename).suffix.lower() in suffixes}
    if name is None and len(known) == 1:
        return next(iter(known.values()))
    wanted = (name or "").lower()
    exact = [entry for full, entry in known.items() if wanted in (full.lower(), *_names(full))]
    near = exact or [entry for full, entry in known.items() if name is not None and wanted in full.lower()]
    if len(near) == 1:
        return near[0]
    if not known:
        raise FileFormatError(f"{path}: there is no {' or '.join(suffixes)} file in the archive")
    found = sorted(entry.filename for entry in near or known.values())
    shown = ", ".join(found[:12]) + (f" and {len(found) - 12} more" if len(found) > 12 else "")
    problem = (
        "which file of it is meant" if name is None else f"{name!r} is {'several' if near else 'none'} of its files"
    )
    raise FileFormatError(f"{path}: {problem}? Name one as {path.name}:NAME; there are {shown}")


def _names(full: str) -> tuple[str, str]:
    inner = PurePosixPath(full.lower())
    return inner.name, inner.stem


def _unpacked(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo, max_bytes: int) -> bytes:
    pieces, size = [], 0
    with archive.open(member) as file:
        while piece := file.read(_PIECE):
            size += len(piece)
            if size > max_bytes:
                raise FileFormatError(f"{path}: {member.filename} unpacks to more than {max_bytes:,} bytes; too large")
            pieces.append(piece)
    return b"".join(pieces)
