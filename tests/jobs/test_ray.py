"""Ray keeps the same promise with the same bytes, also where machines share no disk."""

import importlib.util
from pathlib import Path

import pytest

from jigdoll.jobs.perform import RESULT, make_job, perform
from runner_conformance import QUICK, check_runner, ended, reason

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed (the extra `batch`)"),
    # Ray leaves sockets and files to the garbage collector, and warns of its own future.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::FutureWarning", "ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_ray_keeps_the_promise_of_a_runner(tmp_path: Path) -> None:
    from jigdoll.batch import RayRunner

    runner = RayRunner(workers=2)
    try:
        check_runner(runner, tmp_path)
    finally:
        runner.close()


def test_files_go_to_machines_once_and_results_come_back(tmp_path: Path) -> None:
    from jigdoll.batch import RayRunner
    from stand_ins import jigdoll

    ant = tmp_path / "ant.glb"
    assert jigdoll("zoo", "make", "ant", ant, "--action", "walk", "--seconds", "0.5").returncode == 0
    options = QUICK | {"character": str(ant), "clip": f"{ant}:walk"}
    here = make_job("here", "render", options, tmp_path / "here" / "job")
    perform(here)
    runner = RayRunner(workers=2, shared_disk=False, cache=tmp_path / "machine")
    try:
        jobs = [make_job(f"there{i}", "render", options, tmp_path / f"there{i}" / "job") for i in range(3)]
        handles = [runner.submit(job) for job in jobs]
        assert [ended(handle) for handle in handles] == ["done"] * 3, [reason(handle) for handle in handles]
        assert runner.bytes_put == ant.stat().st_size
        for job in jobs:
            assert (job.folder / RESULT).read_bytes() == (here.folder / RESULT).read_bytes()
            assert {path.name for path in job.folder.iterdir()} == {
                path.name for path in here.folder.iterdir() if path.name not in ("config.json", ".lock")
            }
    finally:
        runner.close()
    laid = list((tmp_path / "machine").rglob("ant.glb"))
    assert len(laid) == 1 and laid[0].read_bytes() == ant.read_bytes()


def test_no_cluster_at_an_address_is_said(tmp_path: Path) -> None:
    from jigdoll.batch import RayRunner
    from jigdoll.errors import JigdollError

    with pytest.raises(JigdollError, match="cannot be reached at"):
        RayRunner("127.0.0.1:1")
