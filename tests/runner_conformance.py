"""What every JobRunner keeps; each implementation calls this once with a runner of two slots."""

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

from jigdoll.jobs.perform import RESULT, make_job, perform, read_result
from jigdoll.protocols import JobHandle, JobRunner
from jigdoll.types import Job

QUICK = {"character": "zoo:ant", "clip": "walk", "seconds": 0.25, "fps": 8.0, "width": 48, "height": 36}
LONG = QUICK | {"seconds": 120.0, "fps": 30.0, "width": 640, "height": 480}
PATIENCE = 300.0
"""Seconds on a busy machine until something that should happen has failed to."""


def job(folder: Path, name: str, options: dict[str, Any] = QUICK, **takes: Any) -> Job:
    """A job that draws, which every installation can."""
    return make_job(name, "render", options, folder / name, **takes)


def check_runner(runner: JobRunner, folder: Path) -> None:
    """The whole promise of the socket."""
    assert isinstance(runner, JobRunner) and runner.slots == 2
    _does_and_refuses(runner, folder)
    _survives_a_death(runner, folder)
    _ends_what_is_late_or_cancelled(runner, folder)


def _does_and_refuses(runner: JobRunner, folder: Path) -> None:
    good, again = runner.submit(job(folder, "good")), runner.submit(job(folder, "again"))
    bad = runner.submit(job(folder, "bad", QUICK | {"character": "nobody.glb"}))
    large = runner.submit(job(folder, "large", cpus=10_000.0))
    assert isinstance(good, JobHandle) and good.job.name == "good"
    assert ended(good) == ended(again) == "done", reason(good)
    assert ended(bad) == "failed" and "nobody.glb: there is no such file" in reason(bad)
    assert ended(large) == "failed" and "10000 processors" in reason(large)
    assert not (folder / "bad" / RESULT).exists()
    # The same bytes as in this process, without any runner.
    alone = job(folder, "alone")
    perform(alone)
    first = json.loads((folder / "good" / RESULT).read_text())
    assert first["files"] == json.loads((folder / "alone" / RESULT).read_text())["files"]
    assert (folder / "good" / RESULT).read_bytes() == (folder / "again" / RESULT).read_bytes()
    assert set(first["files"]) == {"film.mp4", "sheet.png", "thumbnail.webp"}


def _survives_a_death(runner: JobRunner, folder: Path) -> None:
    long, beside = runner.submit(job(folder, "killed", LONG)), runner.submit(job(folder, "beside"))
    os.kill(worker_of(long), signal.SIGKILL)
    assert ended(long) == "died" and "\n" not in reason(long) and len(reason(long)) > 10
    assert ended(beside) == "done"
    after = runner.submit(job(folder, "after"))
    assert ended(after) == "done" and after.outcome() is not None


def _ends_what_is_late_or_cancelled(runner: JobRunner, folder: Path) -> None:
    late = runner.submit(job(folder, "late", LONG, limit=4.0))
    assert ended(late) == "late" and "4 s" in reason(late)
    running = [runner.submit(job(folder, f"running{i}", LONG)) for i in range(2)]
    queued = runner.submit(job(folder, "queued"))
    for handle in running:
        worker_of(handle)
    until = time.monotonic() + PATIENCE
    while not all(0 < handle.progress()[0] < 1 and handle.progress()[1] for handle in running):
        assert time.monotonic() < until, [handle.progress() for handle in running]
        time.sleep(0.1)
    queued.cancel()
    for handle in running:
        handle.cancel()
    assert [ended(handle) for handle in (*running, queued)] == ["cancelled"] * 3
    assert read_result(queued.job) is None
    once_more = runner.submit(job(folder, "queued"))
    assert ended(once_more) == "done"


def ended(handle: JobHandle) -> str:
    """How a job ends."""
    outcome = handle.outcome(PATIENCE)
    assert outcome is not None, f"{handle.job.name} has not ended: {handle.progress()}"
    return outcome.state


def reason(handle: JobHandle) -> str:
    """Why it is not done."""
    outcome = handle.outcome()
    assert outcome is not None
    return outcome.reason


def worker_of(handle: JobHandle) -> int:
    """The process that is at a job, as the lock of its folder names it."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if (handle.job.folder / "config.json").is_file():  # written while the lock is held
            words = (handle.job.folder / ".lock").read_text().split()
            if len(words) == 2:
                return int(words[1])
        time.sleep(0.05)
    raise AssertionError(f"nobody began with {handle.job.name}")
