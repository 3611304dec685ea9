"""Many jobs on a runner: those that are done already are left alone, those that died are started again.

A batch folder holds `jobs/NAME/` with the results of each job, `index.html` that shows them all, and `summary.json`
with states, reasons and times. Kill whoever drives, or a worker, at any moment: the same call goes on. What is done is
told by the jobs' own folders and by nothing else.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from jigdoll.jobs.page import write_page
from jigdoll.jobs.perform import read_result
from jigdoll.protocols import JobHandle, JobRunner
from jigdoll.runs import ProgressFile, Run, open_run
from jigdoll.types import Job, Outcome

AHEAD = 2
"""How many jobs per slot are given to the runner before they can start: none waits for the next, few are held."""
POLL_SECONDS = 0.05


@dataclass
class Batch:
    """How a batch stands; the one who watches reads it and changes nothing."""

    jobs: Sequence[Job]
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    """By the name of the job, of those that have ended for good."""
    running: dict[str, JobHandle] = field(default_factory=dict)
    tries: dict[str, int] = field(default_factory=dict)
    """How often each was started by this process."""
    kept: set[str] = field(default_factory=set)
    """What an earlier run had done."""

    def count(self, state: str) -> int:
        """How many jobs have ended so."""
        return sum(outcome.state == state for outcome in self.outcomes.values())

    def failures(self) -> dict[str, str]:
        """The reason of each job that is not done."""
        return {name: f"{o.state}: {o.reason}" for name, o in self.outcomes.items() if o.state != "done"}


def run_jobs(
    jobs: Sequence[Job], runner: JobRunner, folder: Path, *, watch: Callable[[Batch], None] | None = None
) -> Batch:
    """Bring all jobs to an end and write the page; `watch` is told some times a second how the batch stands."""
    with open_run(folder, {"batch": True}) as run:
        batch = Batch(jobs)
        waiting: deque[Job] = deque()
        for job in jobs:
            if read_result(job) is None:
                waiting.append(job)
            else:
                batch.outcomes[job.name] = Outcome("done")
                batch.kept.add(job.name)
        diary = ProgressFile(run)

        def tell(*, now: bool = False) -> None:
            diary.tell({"done": batch.count("done"), "of": len(jobs), "failures": batch.failures()}, now=now)

        while waiting or batch.running:
            while waiting and len(batch.running) < AHEAD * runner.slots + 1:
                job = waiting.popleft()
                batch.tries[job.name] = batch.tries.get(job.name, 0) + 1
                batch.running[job.name] = runner.submit(job)
            again, ended = _collect(batch)
            waiting.extendleft(again)
            if ended:
                tell()
            else:
                time.sleep(POLL_SECONDS)
            if watch is not None:
                watch(batch)
        tell(now=True)
        _write_summary(run, batch)
        write_page(run.path("index.html"), jobs, batch.outcomes)
    return batch


def _collect(batch: Batch) -> tuple[list[Job], bool]:
    """Take in what has ended: jobs that are worth another try, and whether any ended."""
    again, ended = [], False
    for name, handle in list(batch.running.items()):
        if (outcome := handle.outcome()) is None:
            continue
        ended = True
        del batch.running[name]
        if outcome.state in ("died", "late") and batch.tries[name] <= handle.job.retries:
            again.append(handle.job)
        else:
            batch.outcomes[name] = outcome
    return again, ended


def _write_summary(run: Run, batch: Batch) -> None:
    rows: list[dict[str, Any]] = []
    for job in batch.jobs:
        outcome = batch.outcomes[job.name]
        rows.append(
            {"name": job.name, "verb": job.verb, **asdict(outcome)}
            | {"tries": batch.tries.get(job.name, 0), "kept": job.name in batch.kept}
        )
    run.write_json("summary.json", {"done": batch.count("done"), "of": len(batch.jobs), "jobs": rows})
