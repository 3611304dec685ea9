"""Libraries that may die on a damaged file unpack it in a process of their own: both ends of that process.

    python -P apart.py SCRIPT IN OUT BYTES [WORDS ...]

The process runs the `unpack(path, *words)` of a script, which gives values for JSON and plain arrays, and writes them
as one .npz; nothing is pickled. It has a limit of memory and of time. Whatever happens to it, the caller gets the
arrays or a FileFormatError with the reason, and lives on. Nothing of jigdoll is imported there, so it starts fast.
"""

import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

SECONDS = 120
"""How long a file may take to unpack."""
Unpacked = tuple[dict[str, Any], dict[str, np.ndarray]]
"""Values, and arrays by name."""


def unpack_apart(script: Path, path: Path, *words: str, kind: str, memory: int, seconds: float = SECONDS) -> Unpacked:
    """What the `unpack` of a script says of a file; `memory` is what it may take beyond its libraries [bytes]."""
    from jigdoll.errors import FileFormatError

    with tempfile.TemporaryDirectory(prefix="jigdoll-unpack-") as folder:
        out = Path(folder) / "scene.npz"
        command = [sys.executable, "-P", __file__, str(script), str(path.resolve()), str(out), str(memory), *words]
        # Threads reserve memory that counts, and a file is too little work for several.
        threads = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}
        environment = os.environ | threads | {"PXR_WORK_THREAD_LIMIT": "1"}
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,  # its end is noticed at once; a process alone is asked 20 times a second
                stderr=subprocess.DEVNULL,  # libraries talk there; reasons come in a file
                timeout=seconds,
                check=False,
                env=environment,
            )
        except subprocess.TimeoutExpired as error:
            raise FileFormatError(f"{path}: not unpacked in {seconds:g} s; it is too large or damaged") from error
        except OSError as error:
            raise FileFormatError(f"{path}: the {kind} reader could not be started ({error})") from error
        try:
            if done.returncode:
                raise FileFormatError(f"{path}: this {kind} file cannot be read ({_reason(out, done.returncode)})")
            with np.load(out, allow_pickle=False) as data:
                arrays = {key: data[key] for key in data.files}
        except (OSError, ValueError, zipfile.BadZipFile) as error:
            raise FileFormatError(f"{path}: what was unpacked cannot be read ({error}); is the disk full?") from error
    return json.loads(bytes(arrays.pop("about"))), arrays


def _reason(out: Path, code: int) -> str:
    """Why the process ended: in its own words, or by what ended it."""
    written = out.with_suffix(".txt")
    if written.is_file():
        return f"{written.read_text('utf-8', 'replace')}; export it again, or as GLB"
    how = f"exit code {code}"
    if code < 0:
        how = next((known.name for known in signal.Signals if known == -code), f"signal {-code}")
    return f"its library died of it, {how}; the file is damaged: export it again, or as GLB"


def main() -> None:
    """The process: unpack IN into OUT, or write the reason beside it."""
    script, path, out, memory, *words = sys.argv[1:]
    try:
        unpack = runpy.run_path(script)["unpack"]
        _limit(int(memory))
        about, arrays = unpack(path, *words)
        arrays["about"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
        with open(out, "wb") as file:
            np.savez(file, allow_pickle=False, **arrays)  # pyright: ignore[reportArgumentType]
    except Exception as error:
        text = "it needs more memory than it may have" if isinstance(error, MemoryError) else _words(error)
        Path(out).with_suffix(".txt").write_text(text, "utf-8", "replace")
        os._exit(3)
    os._exit(0)  # without tearing down: libraries crash there too


def _words(error: Exception) -> str:
    """An error in one line; its text may quote the file and be no text at all."""
    try:
        return " ".join(f"{type(error).__name__}: {error}".split())[:300]
    except UnicodeDecodeError:
        return "there are bytes in it that are no text"


def _limit(memory: int) -> None:
    """Take no more memory than the libraries that are loaded by now and `memory` bytes, and leave no core dump."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + memory
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, ValueError, OSError):
        pass  # no such limit on this system: the caller's time limit remains


if __name__ == "__main__":
    main()
