"""A process that does jobs one after another: `python -m jigdoll.jobs.worker`, spoken to in lines of JSON.

In comes a job per line; out go lines `{"progress": [fraction, what]}` and, at the end of each job, one `{"outcome":
...}`. Nothing is pickled. When the input ends, whoever started the process is gone, and it ends at once, in the middle
of a job too: the next one finds the folder free.
"""

import json
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

TELL_SECONDS = 0.25
"""How often a job tells of its progress at most."""


def main() -> None:
    """Take jobs until the input ends."""
    # Only our own lines go out: what libraries print goes to stderr.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin, waiting.put), daemon=True).start()
    while True:
        line = waiting.get()
        _tell(out, {"outcome": _outcome(json.loads(line), lambda fact: _tell(out, fact))})


def _listen(lines: TextIO, put: Callable[[str], None]) -> None:
    for line in lines:
        put(line)
    os._exit(0)


def _tell(out: TextIO, fact: Mapping[str, Any]) -> None:
    try:
        out.write(json.dumps(fact) + "\n")
        out.flush()
    except (BrokenPipeError, ValueError):
        os._exit(0)


def _outcome(request: Mapping[str, Any], tell: Callable[[Mapping[str, Any]], None]) -> dict[str, Any]:
    """Do the job and say how it ended, whatever happens in it."""
    started, last = _cpu_seconds(), -TELL_SECONDS

    def progress(fraction: float, what: str, /) -> None:
        nonlocal last
        if time.monotonic() - last >= TELL_SECONDS:
            last = time.monotonic()
            tell({"progress": [fraction, what]})

    try:
        job = decode(request)
        _use_threads(job.cpus)
        from jigdoll.jobs.perform import perform

        perform(job, progress)
        state, reason = "done", ""
    except BaseException as error:  # the process goes on with the next job
        state, reason = "failed", one_line(error)
    return {"state": state, "reason": reason, "cpu_seconds": _cpu_seconds() - started}


def one_line(error: BaseException) -> str:
    """The reason of an error in one line; what is no error of a user names its kind and place."""
    from jigdoll.errors import JigdollError

    text = " ".join(str(error).split())[:500]
    if isinstance(error, JigdollError):
        return text
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    where = "" if frame is None else f" ({Path(frame.tb_frame.f_code.co_filename).name}, line {frame.tb_lineno})"
    return f"{type(error).__name__}: {text or 'no message'}{where}"


def encode(job: Any) -> dict[str, Any]:
    """A job as JSON holds it."""
    return asdict(job) | {"folder": str(job.folder)}


def decode(request: Mapping[str, Any]) -> Any:
    """The inverse of `encode`."""
    from jigdoll.types import Job

    fields: dict[str, Any] = {**request, "folder": Path(request["folder"])}
    return Job(**fields)


def _use_threads(cpus: float) -> None:
    """As many threads as the job may take, on every machine: their number is in the last bits of results."""
    import torch

    torch.set_num_threads(max(1, int(cpus)))


def _cpu_seconds() -> float:
    """Processor time of this process and of those that it started and that ended [s]."""
    return sum(os.times()[:4])


if __name__ == "__main__":
    main()
