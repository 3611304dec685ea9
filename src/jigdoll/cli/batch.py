"""The verb batch: a table of jobs, on all processors of this machine or on a cluster."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tyro.conf import Positional

from jigdoll.cli.shared import Json, answering, console, escaped
from jigdoll.errors import JigdollError

if TYPE_CHECKING:
    from jigdoll.jobs.drive import Batch
    from jigdoll.protocols import JobRunner

SHOWN = 12
"""Running jobs that the table shows at most."""


def batch(
    jobs: Positional[Path],
    /,
    *,
    out: Path,
    runner: Literal["auto", "ray", "pool"] = "auto",
    address: str | None = None,
    workers: int | None = None,
    as_json: Json = False,
) -> None:
    """Do many jobs: any mix of animate, rig, track, render and retarget over characters, prompts and seeds.

    The same command again goes on where it was stopped and does what failed once more; what is done stays.

    Args:
        jobs: A table, .csv or .jsonl: a row per job, or per grid ("zoo:fox | zoo:dog", 0..4, zoo:*); see docs/batch.md.
        out: Folder for the results of all jobs, with index.html that shows them.
        runner: Ray (needs the extra batch), or a plain pool of processes on this machine with the same results; by
            default Ray where it is installed.
        address: Of a Ray cluster; without one, this machine is all of it.
        workers: Processors to use on this machine; all by default.
    """
    from jigdoll.jobs.drive import run_jobs
    from jigdoll.jobs.read import read_jobs

    if workers is not None and workers < 1:
        raise JigdollError(f"--workers {workers}: give at least one")
    rows = read_jobs(jobs, out)
    opened = open_runner(runner, address=address, workers=workers)
    try:
        with progress_table(len(rows)) as watch:
            made = run_jobs(rows, opened, out, watch=watch)
    finally:
        opened.close()
    failures = made.failures()
    with answering(as_json) as answer:
        answer.add({"jobs": len(rows), "done": made.count("done"), "kept": len(made.kept), "failures": failures})
        for name, reason in failures.items():
            answer.say(f"{name}: {reason}")
        answer.say(f"{made.count('done')} of {len(rows)} jobs done, {len(made.kept)} of them before")
        answer.wrote(out / "index.html")
        answer.wrote(out / "summary.json")
    if failures:
        sys.exit(1)


def open_runner(kind: str, *, address: str | None, workers: int | None) -> "JobRunner":
    """The runner that is meant."""
    from jigdoll.batch import RayRunner, is_installed
    from jigdoll.jobs.pool import ProcessPool

    if address is not None and (kind == "pool" or workers is not None):
        raise JigdollError("--address is for a Ray cluster, which has its own processors; leave out --workers and pool")
    if kind == "ray" or address is not None or (kind == "auto" and is_installed()):
        return RayRunner(address, workers=workers)
    return ProcessPool(workers)


@contextmanager
def progress_table(total: int) -> "Iterator[Callable[[Batch], None]]":
    """A table that stands still in a terminal; elsewhere a line per job that has ended."""
    out = console(error=True)
    if not out.is_terminal:
        yield _lines(out)
        return
    from rich.live import Live

    with Live(console=out, refresh_per_second=4, transient=True) as live:
        last = -1.0

        def watch(now: "Batch") -> None:
            nonlocal last
            if time.monotonic() - last > 0.25:
                last = time.monotonic()
                live.update(_table(now, total))

        yield watch


def _table(now: "Batch", total: int) -> Any:
    from rich.table import Table

    lost = len(now.failures())
    table = Table("job", "", "is at", title=f"{now.count('done')} of {total} done, {lost} not")
    for name, handle in list(now.running.items())[:SHOWN]:
        fraction, what = handle.progress()
        full = round(20 * fraction)
        table.add_row(escaped(name), f"[green]{'━' * full}[/]{'─' * (20 - full)}", escaped(what or "waiting"))
    return table


def _lines(out: Any) -> "Callable[[Batch], None]":
    said: set[str] = set()

    def watch(now: "Batch") -> None:
        for name in [name for name in now.outcomes if name not in said]:
            said.add(name)
            ended = now.outcomes[name]
            if name not in now.kept:
                text = f"{len(now.outcomes)}/{len(now.jobs)} {name}: {ended.state} {ended.reason}".rstrip()
                out.print(text, highlight=False, markup=False, soft_wrap=True)

    return watch
