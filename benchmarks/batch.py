"""Many jobs on Ray: same bytes as the plain pool, what kills do, what a job costs, and how it grows.

    python benchmarks/batch.py [--quick] [--json FILE] [--sections whole cost cluster unplugged]

whole: built-in characters x three prompts on Ray with two workers; a worker is killed when a third is done, whoever
drives when two thirds are, and the same command goes on. Then the same table in the plain pool; all files are compared.
cost: the same few jobs on one and on two workers. On a machine that does other work as well the clock says little, so
efficiency is the product of two ratios of the same run: how much of the time the slots were at a job, and the processor
time of the jobs on one worker against that on two. Jobs that are done already show what the runner itself costs.
cluster: simulated machines on this one (`ray.cluster_utils`): tasks a second, messages a second, a file fetched by all.
unplugged: one of two simulated machines is taken away while both are at work.
"""

import hashlib
import json as json_module
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import tyro
from rich.console import Console

from jigdoll.jobs.drive import Batch, run_jobs
from jigdoll.jobs.perform import RESULT, make_job
from jigdoll.jobs.pool import ProcessPool
from jigdoll.jobs.read import read_jobs
from jigdoll.protocols import JobRunner
from jigdoll.types import Job

PROMPTS = ["it walks", "it looks around", "it jumps"]
TINY = {"verb": "render", "clip": "walk", "seconds": 0.5, "width": 96, "height": 72}


@dataclass(frozen=True)
class Options:
    """What to measure."""

    quick: bool = False
    """Two characters instead of 29, few empty jobs, two simulated machines."""
    sections: tuple[Literal["whole", "cost", "cluster", "unplugged"], ...] = ("whole", "cost", "cluster", "unplugged")
    json: Path | None = None


def contents(out: Path) -> dict[str, str]:
    """Every file of every job and the page, with a mark of its bytes."""
    files = [file for file in (*out.glob("jobs/*/*"), out / "index.html") if not file.name.startswith(".")]
    return {str(file.relative_to(out)): hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(files)}


def whole(options: Options, folder: Path) -> dict[str, Any]:
    """Both runners over the same table, the first one with kills."""
    who: Any = ["zoo:ant", "zoo:penguin"] if options.quick else "zoo:*"
    row = {"character": who, "prompt": PROMPTS[: 2 if options.quick else 3]}
    table = folder / "jobs.jsonl"
    table.write_text(json_module.dumps(row if not options.quick else row | {"seconds": 1}) + "\n")
    count = len(read_jobs(table, folder))
    command = [sys.executable, "-m", "jigdoll", "batch", str(table), "--workers", "2", "--json"]
    ray, pool = folder / "ray", folder / "pool"
    driver = subprocess.Popen([*command, "--out", str(ray), "--runner", "ray"], stdout=subprocess.DEVNULL)
    _wait(ray, count // 3, driver)
    worker = _kill_worker(ray)
    _wait(ray, 2 * count // 3, driver)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    before = len(list(ray.glob(f"jobs/*/{RESULT}")))
    told = {}
    for name, out in (("ray", ray), ("pool", pool)):
        done = subprocess.run(
            [*command, "--out", str(out), "--runner", name], capture_output=True, text=True, check=False
        )
        told[name] = json_module.loads(done.stdout)
    one, two = contents(ray), contents(pool)
    summary = json_module.loads((pool / "summary.json").read_text())
    return {
        "jobs": count,
        "worker_killed": worker,
        "done_when_driver_was_killed": before,
        "kept": told["ray"]["kept"],
        "ray": {key: told["ray"][key] for key in ("done", "failures")},
        "pool": {key: told["pool"][key] for key in ("done", "failures")},
        "files": len(one),
        "differ": [name for name in one.keys() | two.keys() if one.get(name) != two.get(name)],
        "cpu_seconds_per_job": sum(job["cpu_seconds"] for job in summary["jobs"]) / count,
    }


def _wait(out: Path, count: int, driver: "subprocess.Popen[bytes]") -> None:
    while len(list(out.glob(f"jobs/*/{RESULT}"))) < count:
        if driver.poll() is not None:
            raise SystemExit("the batch ended before it was to be killed")
        time.sleep(0.2)


def _kill_worker(out: Path) -> bool:
    """Kill a process that is at a job right now, as the lock of a folder without a result names it."""
    for _ in range(100):
        for lock in out.glob("jobs/*/.lock"):
            words = lock.read_text().split()
            if not (lock.parent / RESULT).exists() and len(words) == 2:
                os.kill(int(words[1]), signal.SIGKILL)
                return True
        time.sleep(0.1)
    return False


def cost(options: Options, folder: Path) -> dict[str, Any]:
    """One worker against two, and what an empty job costs."""
    from jigdoll.batch import RayRunner

    species = ("ant", "penguin") if options.quick else ("ant", "penguin", "fox", "cat", "dog", "turtle")
    angles = (0.0, 60.0) if options.quick else (0.0, 40.0, 80.0, 120.0)
    rows = [TINY | {"character": f"zoo:{name}", "azimuth": angle} for name in species for angle in angles]
    found: dict[str, Any] = {"jobs": len(rows)}
    for kind in ("ray", "pool"):
        spent: dict[int, float] = {}
        for workers in (1, 2):
            runner: JobRunner = RayRunner(workers=workers) if kind == "ray" else ProcessPool(workers)
            warm = [
                _job(folder / f"{kind}{workers}" / "warm", f"w{i}", TINY | {"character": "zoo:ant"}) for i in range(2)
            ]
            run_jobs(warm, runner, folder / f"{kind}{workers}" / "warm")
            out = folder / f"{kind}{workers}" / "jobs"
            jobs = [_job(out, f"j{i}", row) for i, row in enumerate(rows)]
            started = time.monotonic()
            batch = run_jobs(jobs, runner, out)
            clock = time.monotonic() - started
            ended = [batch.outcomes[job.name] for job in jobs]
            assert all(outcome.state == "done" for outcome in ended), batch.failures()
            spent[workers] = sum(outcome.cpu_seconds for outcome in ended)
            busy = sum(outcome.seconds for outcome in ended) / (workers * clock)
            found[f"{kind}_{workers}"] = {"slots_busy": busy, "cpu_seconds": spent[workers], "clock": clock}
            if workers == 2:
                found[f"{kind}_empty_job"] = _empty(runner, jobs[0], 20 if options.quick else 200)
            runner.close()
        ratio = spent[1] / spent[2]
        found[f"{kind}_efficiency"] = ratio * found[f"{kind}_2"]["slots_busy"]
    return found


def _job(out: Path, name: str, row: dict[str, Any]) -> Job:
    options = {key: value for key, value in row.items() if key != "verb"}
    return make_job(name, row["verb"], options, out / "jobs" / name)


def _empty(runner: JobRunner, done: Job, count: int) -> dict[str, float]:
    """A job that is done already, many times: what the runner itself takes."""
    cpu, clock = time.process_time(), time.monotonic()
    handles = [runner.submit(done) for _ in range(count)]
    while any(handle.outcome(1.0) is None for handle in handles):
        pass
    return {
        "driver_cpu_ms": 1e3 * (time.process_time() - cpu) / count,
        "clock_ms": 1e3 * (time.monotonic() - clock) / count,
    }


def cluster(options: Options, folder: Path) -> list[dict[str, Any]]:
    """Simulated machines of one processor each, which share no disk: files go there, results come back."""
    from ray.cluster_utils import Cluster

    from jigdoll.batch import RayRunner

    payload = folder / "weights.safetensors"
    payload.write_bytes(os.urandom(16 * 2**20))
    rows = []
    for machines in (1, 2) if options.quick else (1, 2, 4, 8):
        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": 128 * 2**20})
        for _ in range(machines - 1):
            made.add_node(num_cpus=1, object_store_memory=128 * 2**20)
        made.wait_for_nodes()
        cache = folder / f"cache{machines}"
        runner = RayRunner(made.address, shared_disk=False, cache=cache)
        options_of_job = {
            "character": "zoo:ant",
            "clip": "walk",
            "seconds": 0.25,
            "width": 48,
            "height": 36,
            "fps": 8.0,
        }
        first = make_job("first", "render", options_of_job, folder / f"m{machines}" / "first")
        started = time.monotonic()
        jobs = [replace(first, name=f"m{i}", folder=folder / f"m{machines}" / f"m{i}") for i in range(machines)]
        handles = [runner.submit(job) for job in jobs]
        while any(handle.outcome(1.0) is None for handle in handles):
            pass
        warm = time.monotonic() - started
        row: dict[str, Any] = {"machines": machines, "first_jobs_s": warm, "driver_rss_mb": _rss()}
        row |= _throughput(machines, 40 if options.quick else 200)
        row |= _spread(payload, machines)
        rows.append(row)
        runner.close()
        made.shutdown()
    return rows


def unplugged(options: Options, folder: Path) -> dict[str, Any]:
    """Two simulated machines, one of which is taken away while both are at work: all jobs are done nevertheless."""
    from ray.cluster_utils import Cluster

    from jigdoll.batch import RayRunner

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": 128 * 2**20})
    second = made.add_node(num_cpus=1, object_store_memory=128 * 2**20)
    made.wait_for_nodes()
    runner = RayRunner(made.address)
    rows = [TINY | {"character": "zoo:ant", "seconds": 2.0, "azimuth": 10.0 * i} for i in range(4)]
    jobs = [_job(folder, f"j{i}", row) for i, row in enumerate(rows)]
    found: dict[str, Any] = {"jobs": len(jobs)}

    def watch(batch: Batch) -> None:
        at_work = [job for job in jobs if (job.folder / ".lock").exists() and not (job.folder / RESULT).exists()]
        if "at_work_when_unplugged" not in found and len(at_work) == 2:
            found["at_work_when_unplugged"] = 2
            made.remove_node(second, allow_graceful=False)

    batch = run_jobs(jobs, runner, folder, watch=watch)
    runner.close()
    made.shutdown()
    tries = sum(batch.tries.values())
    return found | {"done": batch.count("done"), "starts": tries, "failures": batch.failures()}


def _throughput(machines: int, count: int) -> dict[str, float]:
    """Empty tasks and messages to one actor, a second; this machine has to do all of it."""
    import ray

    @ray.remote(num_cpus=1)
    def nothing(text: str) -> str:
        return text

    @ray.remote(num_cpus=0)
    class Board:
        def tell(self, name: str, fraction: float, what: str) -> None:
            self.last = (name, fraction, what)

        def ping(self) -> int:
            return 0

    text = "x" * 500
    ray.get([nothing.remote(text) for _ in range(machines)])
    started, cpu = time.monotonic(), time.process_time()
    ray.get([nothing.remote(text) for _ in range(count)])
    tasks = count / (time.monotonic() - started)
    driver = 1e3 * (time.process_time() - cpu) / count
    board = Board.remote()
    ray.get(board.ping.remote())
    started = time.monotonic()
    for i in range(5 * count):
        board.tell.remote("job", 0.5, f"step {i}")
    ray.get(board.ping.remote())
    return {
        "tasks_per_s": tasks,
        "task_driver_cpu_ms": driver,
        "messages_per_s": 5 * count / (time.monotonic() - started),
    }


def _spread(payload: Path, machines: int) -> dict[str, float]:
    """One file of 16 MiB: put once, fetched by every machine."""
    import numpy as np
    import ray

    @ray.remote(num_cpus=1, scheduling_strategy="SPREAD")
    def fetch(refs: list[Any]) -> tuple[str, int]:
        return ray.get_runtime_context().get_node_id(), len(ray.get(refs[0]))

    started = time.monotonic()
    ref = ray.put(np.fromfile(payload, dtype=np.uint8))
    put = time.monotonic() - started
    started = time.monotonic()
    nodes = {node for node, _ in ray.get([fetch.remote([ref]) for _ in range(3 * machines)])}
    return {"put_ms": 1e3 * put, "fetched_by": len(nodes), "fetch_all_ms": 1e3 * (time.monotonic() - started)}


def _rss() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def main(options: Options) -> None:
    """Run it."""
    found: dict[str, Any] = {}
    for name in options.sections:
        with tempfile.TemporaryDirectory(prefix="jigdoll-batch-") as folder:
            measure = {"whole": whole, "cost": cost, "cluster": cluster, "unplugged": unplugged}[name]
            found[name] = measure(options, Path(folder))
        Console().print(name, found[name])
        if options.json:
            options.json.write_text(json_module.dumps(found, indent=1))
    if found.get("whole", {}).get("differ"):
        raise SystemExit("results of the two runners differ")


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
