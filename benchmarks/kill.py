"""Kill -9 at random moments: does the same command, started again, end in the same bytes?

    python benchmarks/kill.py [--kills 20] [--quick] [--json FILE]

Each verb runs undisturbed, twice, so that its kernels are compiled. Then it is started in a new folder, killed with all
that it started after a random share of that time (by the clock), and started again. All files that it promises must
have the same bytes as the undisturbed run's, and no half-written file may be left in a run folder.
"""

import hashlib
import json as json_module
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import tyro
from rich.console import Console
from rich.table import Table

BATCH = (
    '{"verb": "render", "character": ["zoo:ant", "zoo:fox"], "clip": "walk", "seconds": 0.5, "width": 96}\n'
    '{"verb": "animate", "character": "zoo:cat", "prompt": "a cat walks", "seconds": 1}\n'
)
"""Three jobs of two kinds."""


@dataclass(frozen=True)
class Options:
    """How often."""

    kills: int = 20
    """Over all verbs in turn."""
    quick: bool = False
    """One kill of rig and one of batch."""
    only: str | None = None
    """One verb alone."""
    seed: int = 0
    json: Path | None = None


@dataclass(frozen=True)
class Row:
    """One verb that was killed."""

    verb: str
    share: float
    """When, as a share of the undisturbed run."""
    alive: bool
    """Whether it was still at work then."""
    starts: int
    same: bool
    files: int
    left_over: int
    """Half-written files in run folders at the end."""


Command = Callable[[Path], list[str]]
VERBS: dict[str, Command] = {
    "animate": lambda out: ["animate", "zoo:fox", "a fox walks", "--seconds", "1", "--out", str(out / "run")],
    "rig": lambda out: ["rig", "zoo:spider", str(out / "rigged.glb"), "--picture", str(out / "rig.png")],
    "track": lambda out: [
        *("track", "zoo:ant", "walk", "--seconds", "0.5", "--iterations", "8", "--no-robust"),
        *("--out", str(out / "tracked.glb"), "--resume", str(out / "state.npz")),
    ],
    "batch": lambda out: [
        *("batch", str(out / "jobs.jsonl"), "--out", str(out / "run"), "--runner", "pool", "--workers", "2")
    ],
    "distil": lambda out: [
        *("animate", "zoo:ant", "an ant walks", "--prior", "pocket", "--iterations", "6", "--refine-steps", "10"),
        *("--tries", "1", "--cameras.splats", "400", "--cameras.views", "1", "--checkpoint-seconds", "0"),
        *("--out", str(out / "run")),
    ],
}


def start(command: Command, out: Path) -> "subprocess.Popen[bytes]":
    """The verb in a session of its own, so that all of it can be killed."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "jobs.jsonl").write_text(BATCH)
    words = [sys.executable, "-m", "jigdoll", *command(out)]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)


def finish(process: "subprocess.Popen[bytes]") -> None:
    """Wait for a good end."""
    error = process.communicate()[1]
    if process.returncode:
        raise SystemExit(f"{process.args}: {error.decode()[-2000:]}")


def contents(out: Path) -> dict[str, str]:
    """Every promised file with a mark of its bytes: no locks, no diaries, no states of work."""
    own = (".lock", "progress.json", "summary.json", "state.npz", "checkpoint.npz", "jobs.jsonl")
    return {
        str(file.relative_to(out)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(out.rglob("*"))
        if file.is_file() and file.name not in own and file.parent.name != "previews" and not file.name.startswith(".")
    }


def half_written(out: Path) -> int:
    """Temporary files in run folders; beside a single file that a verb writes they may stay."""
    return sum(1 for file in (out / "run").rglob(".*") if file.name not in (".lock", ".disk"))


def kill_once(verb: str, folder: Path, whole: dict[str, str], seconds: float, rng: random.Random) -> Row:
    """Start, kill at a random moment, start again, compare."""
    share = rng.random()
    process = start(VERBS[verb], folder)
    time.sleep(share * seconds)
    alive = process.poll() is None
    if alive:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    finish(start(VERBS[verb], folder))
    found = contents(folder)
    return Row(verb, share, alive, 2, found == whole, len(found), half_written(folder))


def main(options: Options) -> None:
    """Run it."""
    rng = random.Random(options.seed)
    verbs = [options.only] if options.only else ["rig", "batch"] if options.quick else list(VERBS)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="jigdoll-kill-") as folder:
        known: dict[str, tuple[dict[str, str], float]] = {}
        for number in range(len(verbs) if options.quick else options.kills):
            verb = verbs[number % len(verbs)]
            if verb not in known:
                # Once before: a kernel that is compiled in the process itself may round otherwise than one from the
                # cache of an earlier process.
                finish(start(VERBS[verb], Path(folder) / f"{verb}-first"))
                begun = time.monotonic()
                finish(start(VERBS[verb], Path(folder) / verb))
                known[verb] = contents(Path(folder) / verb), time.monotonic() - begun
            rows.append(kill_once(verb, Path(folder) / f"{verb}{number}", *known[verb], rng))
            if options.json:
                options.json.write_text(json_module.dumps([asdict(row) for row in rows], indent=1))
    table = Table("verb", "kills", "while at work", "same bytes", "files", "half-written files left")
    for verb in verbs:
        mine = [row for row in rows if row.verb == verb]
        alive, same = sum(row.alive for row in mine), sum(row.same for row in mine)
        table.add_row(
            verb, str(len(mine)), str(alive), str(same), str(mine[0].files), str(sum(row.left_over for row in mine))
        )
    Console().print(table)
    if not all(row.same and row.left_over == 0 for row in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
