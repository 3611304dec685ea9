"""A warm process that forks for each file that readers unpack apart: fuzzing does not start Python for every case.

What runs in the fork is what runs in a process of its own (`formats/apart.py`, `main`), limits included; only the start
of Python and the loading of libraries are done before, once.
"""

import json
import os
import runpy
import subprocess
import sys
from typing import Any


def unpack_in_forks() -> None:
    """From now on, what this process unpacks apart is unpacked in forks of one warm process."""
    from jigdoll.formats import apart

    start, warm = subprocess.run, _Warm(str(apart.__file__))

    def run(words: Any, **options: Any) -> "subprocess.CompletedProcess[Any]":
        if list(words[:3]) != [sys.executable, "-P", apart.__file__]:
            return start(words, **options)
        return subprocess.CompletedProcess(words, warm.run(list(words[2:])))

    subprocess.run = run  # type: ignore[assignment]


class _Warm:
    """The warm process and the lines to and from it: out goes a list of words, back comes an exit code."""

    def __init__(self, file: str) -> None:
        self.file, self.process = file, self._start(file)

    @staticmethod
    def _start(file: str) -> "subprocess.Popen[str]":
        environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PXR_WORK_THREAD_LIMIT": "1"}
        words = [sys.executable, "-P", __file__, file]
        return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def run(self, words: list[str]) -> int:
        into, out = self.process.stdin, self.process.stdout
        assert into is not None and out is not None
        into.write(json.dumps(words) + "\n")
        into.flush()
        return int(out.readline())


def serve(file: str) -> None:
    """The warm process: a fork for each line that comes, with its exit code as the answer."""
    import numpy  # noqa: F401
    import ufbx  # noqa: F401

    try:
        from pxr import Tf, Usd, UsdGeom, UsdSkel, UsdUtils  # noqa: F401
    except ImportError:
        pass
    out = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(1, 2)
    for line in sys.stdin:
        if (child := os.fork()) == 0:
            sys.argv = json.loads(line)
            runpy.run_path(file)["main"]()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out.write(f"{code}\n")
        out.flush()


if __name__ == "__main__":
    serve(sys.argv[1])
