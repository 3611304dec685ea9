"""Does the program still write the same bytes? Short fixed runs of the main verbs, held against a record.

    python benchmarks/golden.py [--record] [--quick] [--json FILE]

Animate, track, rig and judge six characters with fixed seeds through the command line and take a hash of every file
that comes out. `--record` writes `benchmarks/golden.json`; without it the run is compared with that record. For
refactoring: a move must not change a byte. The record is of one machine; another one rounds differently, so record
before the change and compare after it on the same machine.
"""

import hashlib
import json as json_module
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import tyro

RECORD = Path(__file__).with_name("golden.json")
SOURCES = Path(__file__).resolve().parents[1] / "src"
ASSETS = Path(__file__).resolve().parents[2] / "shared" / "assets" / "rigged"
FOX, HORSE = ASSETS / "khronos/Fox.glb", ASSETS / "mesh2motion/horse-animations.glb"
ANIMATE = {
    "human": ("zoo:human", "a human walks"),
    "fox": ("zoo:fox", "a fox runs"),
    "ostrich": ("zoo:ostrich", "an ostrich turns left"),
    "spider": ("zoo:spider", "a spider walks"),
    "Fox.glb": (str(FOX), "a fox walks"),
    "horse.glb": (str(HORSE), "a horse jumps"),
}
TRACK = {"human": "walk", "fox": "run", "ostrich": "walk", "t_rex": "walk", "dog": "jump", "spider": "walk"}
JUDGE = {
    "zoo:human": "walk",
    "zoo:fox": "run",
    "zoo:penguin": "walk",
    "zoo:spider": "walk",
    str(FOX): "Walk",
    str(HORSE): "Walk",
}
RIG = ("human", "fox", "ostrich", "spider", "dragon", "t_rex")


@dataclass(frozen=True)
class Options:
    """What to run."""

    record: bool = False
    """Write the record instead of comparing with it."""
    quick: bool = False
    """One character per verb."""
    json: Path | None = None


def run(*words: str, folder: Path) -> str:
    """What the command prints."""
    # The sources beside this file, wherever the command runs and whatever is installed.
    paths = {"cwd": folder, "env": os.environ | {"PYTHONPATH": str(SOURCES)}}
    done = subprocess.run(
        [sys.executable, "-m", "jigdoll", *words], capture_output=True, text=True, check=False, **paths
    )
    if done.returncode:
        raise SystemExit(f"jigdoll {' '.join(words)}\n{done.stderr[-2000:]}")
    return done.stdout


def mark(data: bytes) -> str:
    """A short hash."""
    return hashlib.sha256(data).hexdigest()[:16]


def golden(options: Options, folder: Path) -> dict[str, str]:
    """A hash per run and file."""
    few = 1 if options.quick else 99
    marks: dict[str, str] = {}
    for name, (character, words) in list(ANIMATE.items())[:few]:
        if character.startswith("zoo:") or Path(character).exists():
            out = folder / f"animate-{name}"
            run("animate", character, words, "--iterations", "6", "--out", str(out), folder=folder)
            for file in ("motion.glb", "motion.bvh"):
                marks[f"animate {name} {file}"] = mark((out / file).read_bytes())
    for name, clip in list(TRACK.items())[:few]:
        out = folder / f"track-{name}.glb"
        run("track", f"zoo:{name}", clip, "--iterations", "3", "--out", str(out), folder=folder)
        marks[f"track {name} {clip}"] = mark(out.read_bytes())
    for name in RIG[:few]:
        out = folder / f"rig-{name}.glb"
        run("rig", f"zoo:{name}", str(out), folder=folder)
        marks[f"rig {name}"] = mark(out.read_bytes())
    for character, clip in list(JUDGE.items())[:few]:
        if character.startswith("zoo:") or Path(character).exists():
            out = folder / "judge.json"
            out.write_text(run("judge", character, clip, "--json", folder=folder))
            marks[f"judge {Path(character).name} {clip}"] = mark(out.read_bytes())
    return marks


def main(options: Options) -> None:
    with tempfile.TemporaryDirectory() as folder:
        marks = golden(options, Path(folder))
    if options.record:
        RECORD.write_text(json_module.dumps(marks, indent=1) + "\n")
        print(f"{len(marks)} marks recorded")
        return
    known = json_module.loads(RECORD.read_text())
    differ = [name for name, found in marks.items() if known.get(name) != found]
    for name in differ:
        print(f"differs: {name}")
    print(f"{len(marks) - len(differ)} of {len(marks)} as recorded")
    if options.json:
        options.json.write_text(json_module.dumps({"same": len(marks) - len(differ), "differ": differ}))
    sys.exit(bool(differ))


if __name__ == "__main__":
    main(tyro.cli(Options))
