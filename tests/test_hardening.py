"""What the world does to a run: no space, no permission, a second process, a clock that jumps, files of a kill."""

import ast
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jigdoll.errors import JigdollError
from jigdoll.formats.files import is_temporary, write_bytes
from jigdoll.runs import open_run, wait_until_free

ROOT = Path(__file__).resolve().parents[1]
NOWHERE = Path("/proc/self/jigdoll")
"""A folder that nobody can make, root neither."""


def run(*words: object, room: int | None = None) -> "subprocess.CompletedProcess[str]":
    """A verb in a process of its own; with `room`, no file may be larger than so many bytes."""

    def limit() -> None:
        if room is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    command = [sys.executable, "-B", "-m", "jigdoll", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=limit)


def half_written(folder: Path) -> list[Path]:
    return [path for path in folder.rglob(".*") if is_temporary(path)]


def check_refusal(done: "subprocess.CompletedProcess[str]", folder: Path, *, named: str) -> None:
    """One readable line with the file, exit code 1, and nothing half written."""
    assert done.returncode == 1, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert len(lines) == 1 and named in lines[0] and "Traceback" not in done.stderr, done.stderr
    assert half_written(folder) == []


VERBS: dict[str, Callable[[Path], tuple[object, ...]]] = {
    "animate": lambda out: ("animate", "zoo:ant", "it walks", "--seconds", "1", "--out", out / "run"),
    "rig": lambda out: ("rig", "zoo:ant", out / "rigged.glb"),
    "convert": lambda out: ("convert", "zoo:ant", out / "ant.fbx"),
    "render": lambda out: ("render", "zoo:ant", out / "ant.mp4", "walk", "--seconds", "0.5"),
}
"""Verbs that write, with what they are told."""
FIRST = {"animate": "candidates.png", "rig": "rigged.glb", "convert": "ant.fbx", "render": "ant.mp4"}
"""The file that finds no room."""


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_no_room_is_said_with_the_file_and_leaves_nothing_half_written(verb: str, tmp_path: Path) -> None:
    words = VERBS[verb](tmp_path)
    check_refusal(run(*words, room=8 * 1024), tmp_path, named=FIRST[verb])
    if verb == "animate":  # the same command goes on in the same folder
        assert run(*words).returncode == 0 and (tmp_path / "run" / "report.html").exists()


@pytest.fixture(scope="module")
def small_disk() -> Iterator[Path]:
    """A disk of 300 kB."""
    folder = Path(tempfile.mkdtemp(prefix="jigdoll-disk-"))
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        folder.rmdir()
        pytest.skip("only root can mount a small disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=False)
    folder.rmdir()


@pytest.mark.parametrize("verb", ["rig", "convert"])
def test_a_full_disk_is_said_and_is_as_full_as_before(verb: str, small_disk: Path) -> None:
    check_refusal(run(*VERBS[verb](small_disk)), small_disk, named="No space left")
    assert list(small_disk.iterdir()) == []


def test_a_full_disk_ends_a_batch_with_reasons(small_disk: Path, tmp_path: Path) -> None:
    table = tmp_path / "jobs.csv"
    table.write_text("verb,character\nrig,zoo:ant\n")
    done = run("batch", table, "--out", small_disk / "b", "--runner", "pool", "--workers", "1", "--json")
    assert done.returncode == 1 and "No space left" in done.stdout + done.stderr, done.stderr
    assert half_written(small_disk) == [] and "Traceback" not in done.stderr


@pytest.mark.parametrize("verb", ["animate", "rig", "render"])
def test_a_folder_that_cannot_be_written_is_refused(verb: str, tmp_path: Path) -> None:
    check_refusal(run(*VERBS[verb](NOWHERE)), tmp_path, named=str(NOWHERE))


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A folder that cannot be written: for root, who may write everywhere, a disk that is mounted so."""
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    mount = ["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", str(tmp_path)]
    if not root:
        tmp_path.chmod(0o555)
    elif subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("root writes everywhere here, and no disk can be mounted")
    yield tmp_path
    if root:
        subprocess.run(["umount", str(tmp_path)], check=False)
    else:
        tmp_path.chmod(0o755)


def test_a_read_only_folder_is_refused(read_only: Path) -> None:
    with pytest.raises(JigdollError, match="choose another folder"), open_run(read_only / "run", {}):
        pass
    with pytest.raises(JigdollError, match="choose another folder"):
        write_bytes(read_only / "file.glb", b"x")
    assert list(read_only.iterdir()) == []


@pytest.mark.slow
def test_a_verb_says_that_a_folder_is_read_only(read_only: Path) -> None:
    check_refusal(run(*VERBS["rig"](read_only)), read_only, named="rigged.glb")


def test_two_processes_on_one_run_folder_are_not_two(tmp_path: Path) -> None:
    with open_run(tmp_path / "run", {"seed": 1}):
        done = run("animate", "zoo:ant", "it walks", "--seconds", "1", "--out", tmp_path / "run")
        check_refusal(done, tmp_path, named=f"process {os.getpid()}")
    with open_run(tmp_path / "run", {"seed": 1}):
        pass


def test_what_a_kill_left_half_written_is_swept_and_other_hidden_files_stay(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with open_run(folder, {}):
        write_bytes(folder / "previews" / "a.png", b"whole")
        left = [folder / ".motion-0123456789ab.glb", folder / "previews" / ".a-0123456789ab.png"]
        for path in (*left, folder / ".mine-0123456789.glb", folder / ".notes"):
            path.write_bytes(b"half")
    with open_run(folder, {}):
        assert not any(path.exists() for path in left)
        assert (folder / ".notes").exists() and (folder / ".mine-0123456789.glb").exists()
        assert (folder / "previews" / "a.png").read_bytes() == b"whole"


def test_a_kill_before_the_first_file_leaves_a_folder_that_is_taken_up(tmp_path: Path) -> None:
    (tmp_path / ".lock").write_text("process 1")
    (tmp_path / ".config-0123456789ab.json").write_text("{")
    with open_run(tmp_path, {"seed": 1}) as opened:
        assert opened.fresh and not (tmp_path / ".config-0123456789ab.json").exists()


def test_waiting_for_a_folder_ends_when_it_is_free_and_when_patience_does(tmp_path: Path) -> None:
    wait_until_free(tmp_path / "nothing", 60.0)
    with open_run(tmp_path / "run", {}):
        wait_until_free(tmp_path / "run", 0.3)  # held: it gives up
    wait_until_free(tmp_path / "run", 60.0)


@pytest.mark.parametrize("file", sorted((ROOT / "src").rglob("*.py")), ids=lambda file: file.stem)
def test_nothing_reads_a_clock_that_can_jump(file: Path) -> None:
    """Times are differences of `monotonic` or of processor time; results hold no date."""
    called = {
        f"{ast.unparse(node.func.value)}.{node.func.attr}"
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    jumps = {"time.time", "time.time_ns", "time.localtime", "time.gmtime", "datetime.now", "datetime.datetime.now"}
    assert not called & jumps
