"""A run folder: what was asked for, how far it is, what came out; safe to kill and to start again.

config.json       what was asked for, with the version and the seed
checkpoint.npz    where the distillation stands
progress.json     the last thing it said about itself
previews/         what the prior was shown
results           motion.glb, motion.bvh, motion.mp4, sheet.png, report.html, metrics.json
"""

import json
import os
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import jigdoll
from jigdoll.errors import JigdollError
from jigdoll.formats.files import is_temporary, write_bytes
from jigdoll.formats.json_text import json_text

PROGRESS_SECONDS = 2.0
"""How often `progress.json` is written at most."""


@dataclass(frozen=True)
class Run:
    """An open run folder; only one process has it at a time."""

    folder: Path
    fresh: bool
    """Whether nothing was here before."""

    @property
    def checkpoint(self) -> Path:
        """Where the distillation keeps its state."""
        return self.folder / "checkpoint.npz"

    def path(self, name: str) -> Path:
        """A file of the folder."""
        return self.folder / name

    def write_json(self, name: str, content: Mapping[str, Any]) -> Path:
        """Write a file of the folder, the whole of it or nothing."""
        return write_bytes(self.path(name), (json_text(content) + "\n").encode())


@contextmanager
def open_run(folder: Path | str, request: Mapping[str, Any], *, free: Collection[str] = ()) -> Iterator[Run]:
    """Open a folder for a request, for as long as the block lasts.

    A folder that holds an earlier run of the same request goes on where that one was; what is named in `free` may
    differ. One of another request is refused, and so is one that another process has open. A request that is refused
    before anything was made leaves nothing behind, so that it can be mended and asked again.
    """
    folder = Path(folder)
    there = folder.is_dir()
    wanted = _plain(request)
    if folder.exists() and not folder.is_dir():
        raise JigdollError(f"{folder}: this is a file; name a folder for the run")
    if not (folder / "config.json").exists() and folder.is_dir() and any(folder.iterdir()):
        strangers = [path.name for path in folder.iterdir() if path.name != ".lock" and not is_temporary(path)]
        if strangers:
            raise JigdollError(
                f"{folder}: this folder holds other things ({', '.join(sorted(strangers)[:3])}); name an empty one"
            )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise JigdollError(f"{folder}: cannot be made ({error}); choose another folder") from error
    with _locked(folder):
        fresh = not (folder / "config.json").exists()
        if not fresh:
            _refuse_another(folder, wanted, free)
        _sweep(folder)
        run = Run(folder, fresh)
        run.write_json("config.json", {"jigdoll": jigdoll.__version__, "request": wanted})
        try:
            yield run
        except JigdollError:
            if fresh:
                _withdraw(folder, whole=not there)
            raise


def _withdraw(folder: Path, *, whole: bool) -> None:
    """Take away a run that has made nothing; with `whole` the folder too."""
    if any(path.name not in (".lock", "config.json") for path in folder.iterdir()):
        return
    with suppress(OSError):
        (folder / "config.json").unlink()
        if whole:
            (folder / ".lock").unlink()
            folder.rmdir()


def read_request(folder: Path | str) -> dict[str, Any]:
    """What the run in a folder was asked for."""
    path = Path(folder) / "config.json"
    try:
        request = json.loads(path.read_text())["request"]
    except FileNotFoundError as error:
        raise JigdollError(f"{folder}: no run was started in this folder (there is no config.json)") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise JigdollError(f"{path}: this is not the configuration of a run ({error})") from error
    if not isinstance(request, dict):
        raise JigdollError(f"{path}: this is not the configuration of a run")
    return request


def wait_until_free(folder: Path, seconds: float) -> None:
    """Wait for a process that is just being ended to let go of a folder; after so many seconds, wait no more."""
    until = time.monotonic() + seconds
    while (folder / ".lock").is_file() and time.monotonic() < until:
        try:
            with _locked(folder):
                return
        except JigdollError:
            time.sleep(0.1)


class ProgressFile:
    """Keeps `progress.json` up to date, but not more often than anybody could read it."""

    def __init__(self, run: Run) -> None:
        self._run, self._written = run, -PROGRESS_SECONDS

    def tell(self, content: Mapping[str, Any], *, now: bool = False) -> None:
        """Write it, if it is time or `now`."""
        clock = time.monotonic()
        if now or clock - self._written >= PROGRESS_SECONDS:
            self._written = clock
            self._run.write_json("progress.json", content)


def _sweep(folder: Path) -> None:
    """Remove what a kill left half written; we hold the folder, so nobody is at it."""
    for path in (*folder.glob(".*"), *folder.glob("previews/.*")):
        if is_temporary(path):
            with suppress(OSError):
                path.unlink()


def _refuse_another(folder: Path, wanted: Mapping[str, Any], free: Collection[str]) -> None:
    """Say in which points the run in the folder differs from the one that is asked for."""
    before, wanted = _flat(read_request(folder)), _flat(wanted)
    differ = [name for name in {**wanted, **before} if wanted.get(name) != before.get(name) and name not in free]
    if differ:
        name = differ[0]
        what = f"{name} was {_short(before.get(name))} and is now {_short(wanted.get(name))}"
        more = f" (and {', '.join(differ[1:])})" if differ[1:] else ""
        raise JigdollError(f"{folder}: this folder belongs to another run: {what}{more}; name another folder")


def _flat(request: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """The request with options of options by their full names, such as losses.contact."""
    flat: dict[str, Any] = {}
    for name, value in request.items():
        flat |= _flat(value, f"{before}{name}.") if isinstance(value, Mapping) else {before + name: value}
    return flat


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _plain(request: Mapping[str, Any]) -> dict[str, Any]:
    """The request as JSON gives it back, so that it can be compared."""
    return json.loads(json_text(dict(request)))


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock; the system frees it when the process ends, however it ends."""
    path = folder / ".lock"
    try:
        file = path.open("a+")
    except OSError as error:
        raise JigdollError(f"{folder}: cannot be written ({error}); choose another folder") from error
    with file:
        if not _try_lock(file):
            file.seek(0)
            who = file.read().strip()
            raise JigdollError(
                f"{folder}: another process{f' ({who})' if who else ''} is at work in this folder; wait for it or name "
                "another folder"
            )
        file.truncate(0)
        file.write(f"process {os.getpid()}")
        file.flush()
        yield


def _try_lock(file: IO[str]) -> bool:
    """Take the lock of an open file without waiting."""
    try:
        if os.name == "nt":
            import msvcrt

            file.seek(1 << 20)  # beyond the note, which others may read
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
            file.seek(0)
        else:
            import fcntl

            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
