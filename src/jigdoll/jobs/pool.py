"""The plain runner: a pool of worker processes on this machine, with nothing but the standard library."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from jigdoll.jobs.worker import encode
from jigdoll.types import Job, Outcome


class ProcessPool:
    """Does jobs in worker processes, as many at a time as their processors and shares of GPUs allow.

    A worker does one job after another and stays warm. One that dies, or whose job is cancelled or late, is replaced.
    """

    def __init__(self, workers: int | None = None, *, gpus: int | None = None) -> None:
        self.cpus = max(1, os.cpu_count() or 1 if workers is None else workers)
        self.gpus = _gpu_count() if gpus is None else gpus
        self._free = [float(self.cpus), float(self.gpus)]
        self._lock = threading.Lock()
        self._queue: deque[PoolHandle] = deque()
        self._running: set[PoolHandle] = set()
        self._idle: list[Worker] = []
        self._closed = False

    @property
    def slots(self) -> int:
        """How many jobs of one processor run at the same time."""
        return self.cpus

    def submit(self, job: Job) -> "PoolHandle":
        """Queue a job; one that wants more than the machine has ends as failed."""
        handle = PoolHandle(job, self)
        if job.cpus > self.cpus or job.gpus > self.gpus:
            here = f"there are {self.cpus} and {self.gpus} here"
            handle.end(Outcome("failed", f"it wants {job.cpus:g} processors and {job.gpus:g} GPUs, and {here}"))
            return handle
        with self._lock:
            self._queue.append(handle)
        self._start_what_fits()
        return handle

    def close(self) -> None:
        """Cancel what is left and end all processes."""
        with self._lock:
            self._closed = True
            left = [*self._queue, *self._running]
        for handle in left:
            handle.cancel()
        for handle in left:
            handle.outcome(10.0)
        with self._lock:
            workers, self._idle = self._idle, []
        for worker in workers:
            worker.kill()

    def processes(self) -> list[int]:
        """The ids of the worker processes."""
        with self._lock:
            busy = [handle.worker for handle in self._running if handle.worker is not None]
            return [worker.process.pid for worker in (*self._idle, *busy)]

    def forget(self, handle: "PoolHandle") -> bool:
        """Take a job out of the queue; False if it has left it already."""
        with self._lock:
            if handle in self._queue:
                self._queue.remove(handle)
                return True
        return False

    def _start_what_fits(self) -> None:
        """Start jobs in their order; one that does not fit yet is waited for, so that no large one starves."""
        while True:
            with self._lock:
                if not self._queue:
                    return
                job = self._queue[0].job
                if job.cpus > self._free[0] + 1e-9 or job.gpus > self._free[1] + 1e-9:
                    return
                handle = self._queue.popleft()
                self._free = [self._free[0] - job.cpus, self._free[1] - job.gpus]
                self._running.add(handle)
            threading.Thread(target=self._run, args=(handle,), daemon=True).start()

    def _run(self, handle: "PoolHandle") -> None:
        """Let a worker do a job, and see how it ends."""
        started = time.monotonic()
        try:
            outcome = self._outcome(handle)
        except Exception as error:
            outcome = Outcome("failed", f"no process could be started for it ({error})")
        job = handle.job
        with self._lock:
            self._running.discard(handle)
            self._free = [self._free[0] + job.cpus, self._free[1] + job.gpus]
            worker, handle.worker = handle.worker, None
            # A worker that is being ended may not be seen as dead yet: only one that answered is kept.
            answered = outcome.state in ("done", "failed")
            keep = worker is not None and answered and worker.process.poll() is None and not self._closed
            if keep and worker is not None:
                self._idle.append(worker)
        if worker is not None and not keep:
            worker.kill()
        handle.end(Outcome(outcome.state, outcome.reason, time.monotonic() - started, outcome.cpu_seconds))
        self._start_what_fits()

    def _outcome(self, handle: "PoolHandle") -> Outcome:
        worker = self._take_worker()
        with handle.lock:
            handle.worker = worker
            if handle.cancelled:
                return Outcome("cancelled", "cancelled before it began")
        alarm = threading.Timer(handle.job.limit or 1e9, handle.be_late)
        alarm.daemon = True
        if handle.job.limit is not None:
            alarm.start()
        try:
            for fact in worker.talk(encode(handle.job)):
                if "progress" in fact:
                    handle.told = (float(fact["progress"][0]), str(fact["progress"][1]))
                else:
                    return Outcome(**fact["outcome"])
        finally:
            alarm.cancel()
        if handle.cancelled:
            return Outcome("cancelled", "cancelled while it ran")
        if handle.late:
            return Outcome("late", f"not done in {handle.job.limit:g} s")
        return Outcome("died", f"its process ended ({_ending(worker.process)}) while {handle.told[1] or 'starting'}")

    def _take_worker(self) -> "Worker":
        with self._lock:
            while self._idle:
                worker = self._idle.pop()
                if worker.process.poll() is None:
                    return worker
        return Worker()


class PoolHandle:
    """A job in the pool."""

    def __init__(self, job: Job, pool: ProcessPool) -> None:
        self._job, self._pool = job, pool
        self._ended, self._result = threading.Event(), Outcome("failed")
        self.lock = threading.Lock()
        self.worker: Worker | None = None
        self.told: tuple[float, str] = (0.0, "")
        self.cancelled = self.late = False

    @property
    def job(self) -> Job:
        """What was submitted."""
        return self._job

    def progress(self) -> tuple[float, str]:
        """The last that the job said."""
        return self.told

    def outcome(self, timeout: float = 0.0) -> Outcome | None:
        """How it ended, None if it has not."""
        return self._result if self._ended.wait(timeout) else None

    def cancel(self) -> None:
        """End it, running or not."""
        with self.lock:
            self.cancelled = True
            worker = self.worker
        if self._pool.forget(self):
            self.end(Outcome("cancelled", "cancelled before it began"))
        elif worker is not None and not self._ended.is_set():
            worker.kill()

    def be_late(self) -> None:
        """End it because its time is over."""
        self.late = True
        if self.worker is not None:
            self.worker.kill()

    def end(self, outcome: Outcome) -> None:
        """Keep how it ended."""
        self._result = outcome
        self._ended.set()


class Worker:
    """A worker process and the lines to and from it."""

    def __init__(self) -> None:
        # One thread by default: a job that may take more sets it, and libraries that start threads of their own do not.
        environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "jigdoll.jobs.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            text=True,
            encoding="utf-8",
            start_new_session=os.name != "nt",  # so that what it starts (encoders, readers) ends with it
        )

    def talk(self, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Send a job and give the facts that come back, up to its outcome or the process's end."""
        into, out = self.process.stdin, self.process.stdout
        assert into is not None and out is not None
        with suppress(OSError, ValueError):
            into.write(json.dumps(request) + "\n")
            into.flush()
            yield from _facts(out)

    def kill(self) -> None:
        """End the process and all that it started."""
        with suppress(OSError):
            if os.name == "nt":
                self.process.kill()
            else:
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(OSError, ValueError):
                if pipe is not None:
                    pipe.close()


def _facts(out: Iterable[str]) -> Iterator[dict[str, Any]]:
    for line in out:
        with suppress(ValueError):
            fact = json.loads(line)
            if isinstance(fact, dict):
                yield fact
                if "outcome" in fact:
                    return


def _ending(process: "subprocess.Popen[str]") -> str:
    code = process.wait()
    if code < 0:
        with suppress(ValueError):
            return signal.Signals(-code).name
    return f"exit code {code}"


def _gpu_count() -> int:
    """CUDA devices of this machine; torch is loaded only where a driver is there."""
    if not os.path.exists("/dev/nvidia0") and os.name != "nt":
        return 0
    import torch

    return torch.cuda.device_count()
