"""The plain pool keeps the runner's promise, and its workers end with whoever started them."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from jigdoll.jobs.pool import ProcessPool
from jigdoll.types import Job, Outcome
from runner_conformance import LONG, QUICK, check_runner, ended, job


@pytest.mark.slow
def test_the_pool_keeps_the_promise_of_a_runner(tmp_path: Path) -> None:
    pool = ProcessPool(2, gpus=0)
    try:
        check_runner(pool, tmp_path)
    finally:
        pool.close()
    assert pool.processes() == []


def test_jobs_take_their_processors_and_none_starves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pool, now, most, order = ProcessPool(2, gpus=0), [0.0], [0.0], []

    def outcome(handle) -> Outcome:
        now[0] += handle.job.cpus
        most[0] = max(most[0], now[0])
        order.append(handle.job.name)
        time.sleep(0.05)
        now[0] -= handle.job.cpus
        return Outcome("done")

    monkeypatch.setattr(pool, "_outcome", outcome)
    wishes = [1.0, 2.0, 0.5, 0.5, 1.0, 2.0]
    handles = [
        pool.submit(Job(f"job{i}", "render", {}, tmp_path / str(i), "mark", cpus=c)) for i, c in enumerate(wishes)
    ]
    assert [ended(handle) for handle in handles] == ["done"] * 6
    assert most[0] == 2.0 and sorted(order) == [f"job{i}" for i in range(6)]
    assert order.index("job1") < order.index("job2")


@pytest.mark.slow
def test_a_worker_ends_when_whoever_started_it_is_killed(tmp_path: Path) -> None:
    code = (
        "import sys, time\n"
        "from jigdoll.jobs.pool import ProcessPool\n"
        "from jigdoll.jobs.perform import make_job\n"
        "from pathlib import Path\n"
        "pool = ProcessPool(1, gpus=0)\n"
        f"pool.submit(make_job('long', 'render', {LONG!r}, Path(sys.argv[1]) / 'long'))\n"
        "while not (Path(sys.argv[1]) / 'long' / 'config.json').exists(): time.sleep(0.05)\n"
        "print(pool.processes()[0], flush=True)\ntime.sleep(600)\n"
    )
    driver = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert driver.stdout is not None
    worker = Path(f"/proc/{int(driver.stdout.readline())}")
    assert worker.exists()
    driver.kill()
    driver.wait()
    driver.stdout.close()
    until = time.monotonic() + 60
    while worker.exists() and time.monotonic() < until:
        time.sleep(0.1)
    assert not worker.exists()
    pool = ProcessPool(1, gpus=0)
    assert ended(pool.submit(job(tmp_path, "quick", QUICK))) == "done"
    pool.close()
