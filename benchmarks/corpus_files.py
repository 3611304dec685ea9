"""Does every file of a folder load, as a character or as motion, and what had to be repaired?

    python benchmarks/corpus_files.py --corpus FOLDER [--quick] [--json FILE]

Loads each glTF, VRM and FBX file below the folder as a person would (in metres, upright, clips included) and counts
characters, motion and refusals, and the repairs by kind: numbers and names are taken out of what is said, so that like
repairs count together. The largest and smallest bodies show where a unit may be wrong.
"""

import json as json_module
import re
import time
import warnings
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

import tyro
from rich.console import Console
from rich.table import Table

from jigdoll.asset.load import load_clips
from jigdoll.errors import JigdollError, RepairWarning
from jigdoll.formats.joints import world_rest

SUFFIXES = (".glb", ".gltf", ".vrm", ".fbx")


@dataclass(frozen=True)
class Options:
    """What to load."""

    corpus: Path = Path(__file__).resolve().parents[2] / "shared" / "corpus"
    """The folder of the files."""
    quick: bool = False
    """Every tenth file."""
    json: Path | None = None
    only: str = ""
    """Part of the path of the files to load."""


@dataclass(frozen=True)
class Row:
    """One file."""

    file: str
    kind: str
    """character, bare mesh, motion or refused."""
    joints: int
    clips: int
    size: float
    """Largest extent at rest [m]."""
    seconds: float
    repairs: tuple[str, ...]
    """What was said; for a refused file the reason."""


def run(file: Path, name: str) -> Row:
    """Load one file."""
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            asset = load_clips(file)
        except JigdollError as error:
            return Row(name, "refused", 0, 0, 0.0, time.perf_counter() - start, (str(error),))
    kind = "motion" if not asset.has_mesh else "character" if asset.is_rigged else "bare mesh"
    joints = world_rest(asset.skeleton.parents, asset.skeleton.T_parent_joint)[:, :3, 3]
    spread = asset.mesh.vertices if asset.has_mesh else joints
    size = float((spread.amax(0) - spread.amin(0)).max())
    said = tuple(dict.fromkeys(str(w.message) for w in caught if issubclass(w.category, RepairWarning)))
    seconds = time.perf_counter() - start
    return Row(name, kind, len(asset.skeleton), len(asset.clips), size, seconds, said)


def like(message: str, file: str) -> str:
    """A message without what differs from file to file."""
    message = message.split(": ", 1)[-1] if Path(file).stem in message.split(": ", 1)[0] else message
    message = re.sub(r"\([^)]*\)", "(…)", re.sub(r"'[^']*'|\"[^\"]*\"", "…", message))
    return re.sub(r"-?\d+(\.\d+)?(e-?\d+)?", "N", message)


def main(options: Options) -> None:
    """Load all files, print the tables."""
    console = Console(width=150)
    files = [f for f in sorted(options.corpus.rglob("*")) if f.suffix.lower() in SUFFIXES and options.only in str(f)]
    files = files[:: 10 if options.quick else 1]
    if not files:
        console.print(
            f"nothing to load: no file of {', '.join(SUFFIXES)} in {options.corpus} (--corpus names the folder)"
        )
        return
    rows = [run(file, str(file.relative_to(options.corpus))) for file in files]
    if options.json:
        options.json.write_text(json_module.dumps([asdict(row) for row in rows], indent=1))
    kinds = Counter(row.kind for row in rows)
    clips = sum(row.clips for row in rows)
    console.print(f"{len(rows)} files, {clips} clips: " + ", ".join(f"{n} {kind}" for kind, n in kinds.most_common()))
    for title, chosen in (
        ("repairs", lambda row: row.kind != "refused"),
        ("refusals", lambda row: row.kind == "refused"),
    ):
        counted = Counter(
            text for row in rows if chosen(row) for text in {like(said, row.file) for said in row.repairs}
        )
        table = Table("files", "what", title=title)
        for text, count in counted.most_common():
            table.add_row(str(count), text)
        console.print(table)
    bodies = sorted((row for row in rows if row.kind in ("character", "bare mesh")), key=lambda row: row.size)
    for label, some in (("smallest", bodies[:5]), ("largest", bodies[-5:])):
        console.print(
            f"{label}: " + ", ".join(f"{Path(row.file).stem} {row.size:.3g} m" for row in some), highlight=False
        )
    slowest = max(rows, key=lambda row: row.seconds)
    console.print(
        f"{sum(row.seconds for row in rows):.0f} s in all, the slowest {slowest.file} {slowest.seconds:.1f} s"
    )


if __name__ == "__main__":
    main(tyro.cli(Options))
