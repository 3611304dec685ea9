"""A batch from end to end: tries, failures, going on after a kill, one owner, one page."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jigdoll.errors import JigdollError
from jigdoll.jobs.drive import run_jobs
from jigdoll.jobs.perform import RESULT, make_job, perform, read_result
from jigdoll.types import Job, Outcome
from runner_conformance import QUICK


class Handle:
    def __init__(self, job: Job, outcome: Outcome) -> None:
        self.job, self._outcome = job, outcome

    def progress(self) -> tuple[float, str]:
        return 1.0, "done"

    def outcome(self, timeout: float = 0.0) -> Outcome | None:
        return self._outcome

    def cancel(self) -> None:
        pass


class Stand:
    """A runner that does what its script says, in this process."""

    slots = 1

    def __init__(self, script: dict[str, list[str]]) -> None:
        self.script, self.started = script, []

    def submit(self, job: Job) -> Handle:
        self.started.append(job.name)
        states = self.script.get(job.name, [])
        state = states.pop(0) if states else "done"
        if state == "done":
            perform(job)
        return Handle(job, Outcome(state, "" if state == "done" else f"it {state} here"))  # type: ignore[arg-type]

    def close(self) -> None:
        pass


def jobs_in(folder: Path, *names: str, **takes: int) -> list[Job]:
    return [make_job(name, "render", QUICK, folder / "jobs" / name, **takes) for name in names]


def test_what_died_is_tried_again_and_what_failed_is_not(tmp_path: Path) -> None:
    jobs = jobs_in(tmp_path, "a", "b", "c", "d", retries=2)
    runner = Stand({"a": ["died", "late"], "b": ["failed"], "c": ["died", "died", "died"], "d": ["cancelled"]})
    batch = run_jobs(jobs, runner, tmp_path)
    assert [batch.outcomes[name].state for name in "abcd"] == ["done", "failed", "died", "cancelled"]
    assert [runner.started.count(name) for name in "abcd"] == [3, 1, 3, 1]
    assert batch.failures() == {
        name: f"{s}: it {s} here" for name, s in (("b", "failed"), ("c", "died"), ("d", "cancelled"))
    }
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert (summary["done"], summary["of"]) == (1, 4) and summary["jobs"][0]["tries"] == 3
    page = (tmp_path / "index.html").read_text()
    assert page.count("class='reason'") == 3 and "it failed here" in page and "jobs/a/thumbnail.webp" in page
    assert json.loads((tmp_path / "progress.json").read_text())["failures"] == batch.failures()


def test_the_same_call_again_does_only_what_is_left_and_ends_in_the_same_page(tmp_path: Path) -> None:
    jobs = jobs_in(tmp_path / "whole", "a", "b", "c")
    run_jobs(jobs, Stand({}), tmp_path / "whole")
    torn = jobs_in(tmp_path / "torn", "a", "b", "c")
    run_jobs(torn, Stand({"b": ["failed"]}), tmp_path / "torn")
    (torn[2].folder / "film.mp4").write_bytes(b"cut off")
    (torn[0].folder / RESULT).write_text("{")  # no kill leaves that, but disks do
    again = Stand({})
    batch = run_jobs(torn, again, tmp_path / "torn")
    assert again.started == ["a", "b", "c"] and not batch.kept
    assert run_jobs(torn, (third := Stand({})), tmp_path / "torn").kept == {"a", "b", "c"} and not third.started
    assert (tmp_path / "torn" / "index.html").read_bytes() == (tmp_path / "whole" / "index.html").read_bytes()


def test_another_job_in_the_same_folder_is_refused_and_not_mixed(tmp_path: Path) -> None:
    first = make_job("x", "render", QUICK, tmp_path / "x")
    other = make_job("x", "render", QUICK | {"azimuth": 10.0}, tmp_path / "x")
    perform(first)
    assert read_result(other) is None
    with pytest.raises(JigdollError, match=r"belongs to another run: azimuth was 60\.0 and is now 10\.0"):
        perform(other)
    assert read_result(first) is not None


def test_a_batch_folder_has_one_owner(tmp_path: Path) -> None:
    jobs = jobs_in(tmp_path, "a")

    class Rude(Stand):
        def submit(self, job: Job) -> Handle:
            with pytest.raises(JigdollError, match="another process"):
                run_jobs(jobs, Stand({}), tmp_path)
            return super().submit(job)

    assert run_jobs(jobs, Rude({}), tmp_path).count("done") == 1


@pytest.mark.slow
def test_the_driver_is_killed_and_the_same_command_ends_in_the_same_bytes(tmp_path: Path) -> None:
    rows = [{"verb": "render", **QUICK, "azimuth": float(angle)} for angle in (0, 40, 80, 120)]
    table = tmp_path / "jobs.jsonl"
    table.write_text("\n".join(map(json.dumps, rows)))
    command = [sys.executable, "-m", "jigdoll", "batch", str(table), "--runner", "pool", "--workers", "1", "--json"]
    killed = subprocess.Popen([*command, "--out", str(tmp_path / "killed")], stdout=subprocess.DEVNULL)
    while not list((tmp_path / "killed").glob(f"jobs/*/{RESULT}")):
        time.sleep(0.05)
        assert killed.poll() is None
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    told = {}
    for name in ("killed", "whole"):
        done = subprocess.run([*command, "--out", str(tmp_path / name)], capture_output=True, text=True, check=True)
        told[name] = json.loads(done.stdout)
    assert told["whole"]["kept"] == 0 and 1 <= told["killed"]["kept"] <= 4
    assert told["killed"]["done"] == told["whole"]["done"] == 4
    one, two = (
        {p.relative_to(tmp_path / name): p.read_bytes() for p in (tmp_path / name).rglob("*") if p.is_file()}
        for name in ("killed", "whole")
    )
    own = {Path(name) for name in ("summary.json", "progress.json")}
    assert set(one) == set(two)
    assert [p for p in one if one[p] != two[p] and p not in own and p.name != ".lock"] == []
