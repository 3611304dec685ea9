"""Jobs on Ray: the same workers as in the plain pool, on one machine or on a cluster (extra `batch`).

A job is a Ray task that asks for its processors and GPUs and hands the job to a worker process that stays warm on its
machine. So a job that dies ends its own process only, time limits work as in the pool, and results are the same bytes.
Jobs and outcomes travel as JSON text. Files that jobs name (characters, clips, weights of priors) are put into the
object store once, by content, and each machine lays them down once. Results are written into the job's folder where a
machine sees the disk of whoever drives, and come back through the object store where it does not.
"""

import getpass
import hashlib
import importlib.util
import json
import os
import secrets
import shutil
import socket
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from jigdoll.errors import JigdollError, MissingExtra
from jigdoll.formats.files import write_bytes
from jigdoll.jobs.perform import RESULT, digest, input_files
from jigdoll.jobs.pool import ProcessPool
from jigdoll.jobs.worker import decode, encode, one_line
from jigdoll.types import Job, Outcome

TELL_EVERY = 500
"""Messages about progress that the board takes a second without falling behind; more jobs speak less often."""
KNOCK_SECONDS = 5.0
"""How long a cluster may take to answer at its address."""
STORE_BYTES = 512 * 1024**2
"""Of the object store that is made on one machine; a cluster has its own."""


def is_installed() -> bool:
    """Whether Ray is here."""
    return importlib.util.find_spec("ray") is not None


class RayRunner:
    """Does jobs on a Ray cluster: the one at `address`, or one of `workers` processors made on this machine.

    `shared_disk` says whether all machines see the folders of the jobs; by default each looks. Those that do not keep
    files in `cache`, which is in their folder for temporary files by default.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        workers: int | None = None,
        shared_disk: bool | None = None,
        cache: Path | None = None,
    ) -> None:
        if not is_installed():
            raise MissingExtra("running jobs on Ray", "batch")
        self._ray = _start(address, workers)
        self._shared_disk, self._cache = shared_disk, cache
        self._board = _make_board(self._ray)
        self._task = self._ray.remote(max_retries=0)(_perform)
        self._files: dict[str, Any] = {}
        self._marks: dict[tuple[Path, int, int], str] = {}
        self._probes: set[Path] = set()
        self._word = secrets.token_hex(16)
        self.bytes_put = 0
        """Of files, into the object store."""
        self._pending: dict[Any, RayHandle] = {}
        self._lock, self._closed = threading.Lock(), threading.Event()
        self._told: dict[str, tuple[float, str]] = {}
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    @property
    def slots(self) -> int:
        """How many jobs of one processor run at the same time."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def submit(self, job: Job) -> "RayHandle":
        """Queue a job; one that no machine of the cluster could hold ends as failed."""
        handle = RayHandle(job, self)
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        if not any(node.get("CPU", 0) >= job.cpus and node.get("GPU", 0) >= job.gpus for node in nodes):
            most = max((node.get("CPU", 0) for node in nodes), default=0)
            here = f"no machine here has that (the largest has {most:g} processors)"
            handle.end(Outcome("failed", f"it wants {job.cpus:g} processors and {job.gpus:g} GPUs, and {here}"))
            return handle
        roots = input_files(job.options)
        order = list(dict.fromkeys(roots.values()))
        files, refs = [], []
        for file, root in roots.items():
            mark, ref = self._put(file)
            files.append({"file": str(file), "mark": mark, "place": f"{order.index(root)}/{file.relative_to(root)}"})
            refs.append([ref])  # in a list, so that it is fetched only where it is missing
        request = {"job": encode(job), "files": files, "disk": self._disk(job.folder.parent)}
        request |= {"cache": None if self._cache is None else str(self._cache)}
        request |= {"tell_seconds": max(2.0, len(self._pending) / TELL_EVERY)}
        handle.started = time.monotonic()
        task = self._task.options(num_cpus=job.cpus, num_gpus=job.gpus, name=f"jigdoll {job.verb}")
        handle.ref = task.remote(json.dumps(request), self._board, *refs)
        with self._lock:
            self._pending[handle.ref] = handle
        return handle

    def close(self) -> None:
        """Cancel what is left and leave the cluster; the one that was made here ends."""
        with self._lock:
            left = list(self._pending.values())
        for handle in left:
            handle.cancel()
        self._closed.set()
        self._watcher.join(10.0)
        for handle in left:
            if handle.outcome() is None:
                handle.end(Outcome("cancelled", "cancelled"))
        for probe in self._probes:
            probe.unlink(missing_ok=True)
        self._ray.shutdown()

    def stop(self, handle: "RayHandle") -> None:
        """End a job's task, with its process."""
        with suppress(Exception):
            self._ray.cancel(handle.ref, force=True)

    def told(self, job: Job) -> tuple[float, str]:
        """The last that a job said."""
        return self._told.get(job.name, (0.0, ""))

    def _put(self, file: Path) -> tuple[str, Any]:
        """A file's mark, and its bytes in the object store, where they are put once."""
        import numpy as np

        about = file.stat()
        now = (file, about.st_mtime_ns, about.st_size)
        mark = self._marks[now] = self._marks.get(now) or digest(file)
        if mark not in self._files:
            self._files[mark] = self._ray.put(np.fromfile(file, dtype=np.uint8))
            self.bytes_put += about.st_size
        return mark, self._files[mark]

    def _disk(self, folder: Path) -> list[str] | bool:
        """Whether machines see the folder: told, or a file with a word that only those find who do."""
        if self._shared_disk is not None:
            return self._shared_disk
        probe = (folder / ".disk").resolve()
        if probe not in self._probes:
            write_bytes(probe, self._word.encode())
            self._probes.add(probe)
        return [str(probe), self._word]

    def _watch(self) -> None:
        """One look at all jobs at a time: who has ended, and what the others say."""
        asked, answer = 0.0, None
        while not self._closed.is_set():
            with self._lock:
                refs = list(self._pending)
            if not refs:
                self._closed.wait(0.02)
                continue
            try:
                ready, _ = self._ray.wait(refs, num_returns=1, timeout=0.2, fetch_local=False)
                if ready:
                    ready, _ = self._ray.wait(refs, num_returns=len(refs), timeout=0.0, fetch_local=False)
            except Exception as error:
                self._lose_all(f"Ray does not answer any more ({_first_line(error)})")
                continue
            if answer is None and time.monotonic() - asked > 1.0:
                asked, answer = time.monotonic(), self._board.all.remote()
            with suppress(Exception):  # the board may be on its way to another machine; what it says is not needed
                if answer is not None and self._ray.wait([answer], timeout=0.0)[0]:
                    said, answer = answer, None
                    self._told = self._ray.get(said)
            for ref in ready:
                with self._lock:
                    handle = self._pending.pop(ref)
                handle.end(self._outcome(handle))

    def _outcome(self, handle: "RayHandle") -> Outcome:
        """How a task ended: as its job says, or with the death of its process or machine."""
        seconds = time.monotonic() - handle.started
        try:
            text, files = self._ray.get(handle.ref)
        except Exception as error:
            if handle.cancelled:
                return Outcome("cancelled", "cancelled while it ran", seconds)
            return Outcome("died", f"its Ray worker or machine was lost ({_first_line(error)})", seconds)
        answer = Outcome(**json.loads(text))
        if answer.state != "done":
            return answer
        try:
            for name, data in sorted(files.items(), key=lambda item: item[0] == RESULT):  # the result last
                write_bytes(handle.job.folder / name, data.tobytes())
        except JigdollError as error:
            return replace(answer, state="failed", reason=one_line(error))
        return answer

    def _lose_all(self, reason: str) -> None:
        with self._lock:
            left, self._pending = list(self._pending.values()), {}
        for handle in left:
            handle.end(Outcome("died", reason))


class RayHandle:
    """A job on the cluster."""

    def __init__(self, job: Job, runner: RayRunner) -> None:
        self._job, self._runner = job, runner
        self._ended, self._result = threading.Event(), Outcome("failed")
        self.ref: Any = None
        self.started = time.monotonic()
        self.cancelled = False

    @property
    def job(self) -> Job:
        """What was submitted."""
        return self._job

    def progress(self) -> tuple[float, str]:
        """The last that the job said."""
        return self._runner.told(self._job)

    def outcome(self, timeout: float = 0.0) -> Outcome | None:
        """How it ended, None if it has not."""
        return self._result if self._ended.wait(timeout) else None

    def cancel(self) -> None:
        """End it, running or not."""
        if not self._ended.is_set():
            self.cancelled = True
            self._runner.stop(self)

    def end(self, outcome: Outcome) -> None:
        """Keep how it ended."""
        self._result = outcome
        self._ended.set()


def _make_board(ray: Any) -> Any:
    """The board, on the machine of whoever drives, and made anew where that one is lost."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
    return ray.remote(num_cpus=0, max_restarts=-1, scheduling_strategy=here)(_Board).remote()


class _Board:
    """An actor: the last that each job said."""

    def __init__(self) -> None:
        self._told: dict[str, tuple[float, str]] = {}

    def tell(self, name: str, fraction: float, what: str) -> None:
        self._told[name] = (fraction, what)

    def all(self) -> dict[str, tuple[float, str]]:
        return self._told


_pools: dict[str, ProcessPool] = {}
"""The warm worker of a Ray worker's process, by the GPUs that it sees; tasks run one at a time there."""


def _perform(text: str, board: Any, *refs: list[Any]) -> tuple[str, dict[str, Any]]:
    """A Ray task: lay down the files that are missing here, let the worker do the job, and bring its results."""
    request = json.loads(text)
    job, disk = decode(request["job"]), request["disk"]
    remote = not disk if isinstance(disk, bool) else not _sees(*disk)
    here = Path(request["cache"] or Path(tempfile.gettempdir()) / f"jigdoll-{getpass.getuser()}")
    moved = _lay_down(here, request["files"], refs) if remote else {}
    local = replace(
        job,
        options={name: _moved(value, moved) for name, value in job.options.items()},
        folder=here / "jobs" / f"{job.name}-{job.mark}" if remote else job.folder,
    )
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "all")
    if visible not in _pools:
        _pools[visible] = ProcessPool(workers=1_000_000, gpus=1_000_000)  # what fits is Ray's to decide
    handle = _pools[visible].submit(local)
    while (outcome := handle.outcome(request["tell_seconds"])) is None:
        board.tell.remote(job.name, *handle.progress())
    answer = {"state": outcome.state, "reason": outcome.reason}
    answer |= {"seconds": outcome.seconds, "cpu_seconds": outcome.cpu_seconds}
    return json.dumps(answer), _results(local, moved) if remote and outcome.state == "done" else {}


def _results(local: Job, moved: dict[str, Path]) -> dict[str, Any]:
    """The files of a job that was done in a folder of this machine, as if it had been done with the original files."""
    import numpy as np

    text = (local.folder / RESULT).read_text()
    for name, place in moved.items():
        text = text.replace(json.dumps(str(place))[1:-1], json.dumps(name)[1:-1])
    files = {name: np.fromfile(local.folder / name, dtype=np.uint8) for name in json.loads(text)["files"]}
    shutil.rmtree(local.folder, ignore_errors=True)
    return files | {RESULT: np.frombuffer(text.encode(), np.uint8)}


def _lay_down(here: Path, files: list[dict[str, str]], refs: tuple[list[Any], ...]) -> dict[str, Path]:
    """Files of the object store on this machine's disk, each content written once; those of one folder together."""
    import ray

    group = hashlib.sha256(json.dumps(files).encode()).hexdigest()[:32]
    moved = {}
    for about, [ref] in zip(files, refs, strict=True):
        stored, place = here / "files" / about["mark"], here / "groups" / group / about["place"]
        if not stored.is_file():
            content: Any = ray.get(ref)
            write_bytes(stored, content.tobytes())
        if not place.is_file():
            write_bytes(place, stored.read_bytes())
        moved[about["file"]] = place
    return moved


def _moved(value: Any, moved: dict[str, Path]) -> Any:
    """An option with the place of its file on this machine."""
    if not isinstance(value, str):
        return value
    for name, place in moved.items():
        if value == name or value.startswith((f"{name}:", f"{name}@")):
            return str(place) + value[len(name) :]
        folder = value.rstrip("/") + "/"
        if name.startswith(folder):  # a model's folder
            return str(place)[: -len(name[len(folder) :])]
    return value


def _sees(probe: str, word: str) -> bool:
    """Whether this machine has the disk of whoever drives."""
    try:
        return Path(probe).read_text() == word
    except OSError:
        return False


def _start(address: str | None, workers: int | None) -> Any:
    """Ray, joined to a cluster or with one made here."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_worker_niceness", "0")  # as the pool: a job is what the machine is asked for
    import ray

    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "include_dashboard": False}
    if address is None:
        options |= {"num_cpus": workers or os.cpu_count(), "object_store_memory": STORE_BYTES}
    else:
        _knock(address)
        options = {"address": address, "log_to_driver": False, "logging_level": "ERROR"}
    try:
        ray.init(**options)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise JigdollError(f"Ray cannot be reached at {address or 'this machine'} ({_first_line(error)})") from error
    return ray


def _knock(address: str) -> None:
    """Refuse at once an address where nobody listens; Ray itself would try for minutes."""
    host, sign, port = address.removeprefix("ray://").rpartition(":")
    if sign and port.isdigit():
        try:
            socket.create_connection((host, int(port)), timeout=KNOCK_SECONDS).close()
        except (OSError, OverflowError) as error:
            raise JigdollError(
                f"Ray cannot be reached at {address} ({error}); start it with: ray start --head"
            ) from error


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__
