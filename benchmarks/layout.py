"""How large the rooms are: lines of Python per room, against an earlier commit, and modules that are too long.

python benchmarks/layout.py [--before d49d406] [--json FILE]
"""

import json as json_module
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import tyro

ROOT = Path(__file__).resolve().parents[1]
SOURCES = "src/jigdoll/"
LONG = 400
"""Lines that a module may have without a reason in its first lines."""


@dataclass(frozen=True)
class Options:
    """What to compare."""

    before: str = "d49d406"
    """The commit to compare with: the last one before the rooms were sorted."""
    json: Path | None = None


def room_of(path: str) -> str:
    """The room of a file below the sources; single modules are the top level."""
    inner = path.removeprefix(SOURCES)
    return inner.split("/", 1)[0] if "/" in inner else "top level"


def git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def lines_before(commit: str) -> Counter[str]:
    """Lines per room in a commit."""
    count: Counter[str] = Counter()
    # An empty pattern matches every line; -c counts them: COMMIT:PATH:LINES.
    for row in git("grep", "-c", "", commit, "--", f"{SOURCES}*.py").splitlines():
        _, path, lines = row.rsplit(":", 2)
        count[room_of(path)] += int(lines)
    return count


def lines_now() -> dict[str, int]:
    """Lines per file in the working tree."""
    files = git("ls-files", f"{SOURCES}*.py").splitlines()
    return {path: len((ROOT / path).read_text().splitlines()) for path in files if (ROOT / path).exists()}


def main(options: Options) -> None:
    """Print the table of the rooms, and the long modules."""
    before, files = lines_before(options.before), lines_now()
    now: Counter[str] = Counter()
    for path, lines in files.items():
        now[room_of(path)] += lines
    print("| room | before | now |\n|---|---|---|")
    for room in sorted({*before, *now}, key=lambda name: (name == "top level", name)):
        was = f"{before[room]:,}" if before[room] else ""
        print(f"| {room} | {was} | {now[room]:,} |")
    print(f"| all | {sum(before.values()):,} | {sum(now.values()):,} |")
    long = {path: lines for path, lines in files.items() if lines > LONG}
    for path, lines in sorted(long.items()):
        print(f"{path} {lines}")
    if options.json:
        options.json.write_text(json_module.dumps({"before": before, "now": now, "long": long}, indent=1))


if __name__ == "__main__":
    main(tyro.cli(Options))
