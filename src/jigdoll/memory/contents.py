"""What the memory holds: kinds of bodies and actions, seconds, sources and licences, and where nothing is known.

python -m jigdoll.memory.contents > docs/memory_contents.md
"""

import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import get_args

from jigdoll.language.actions import ACTIONS
from jigdoll.memory.segments import Memory, open_memory
from jigdoll.rig.anatomy import BodyKind

WANTED = ("walk", "run", "jump", "idle", "turn", "attack", "eat", "sleep", "sit", "die", "hit_reaction", "dance")
"""Actions that anybody would ask of a body that stands."""
WANTED_OF_SWIMMERS = ("swim", "idle", "attack", "turn", "die", "eat")
WANTED_OF_FLYERS = ("fly", "hover", "glide", "take_off", "land", "idle", "attack", "walk")


@dataclass(frozen=True)
class Contents:
    """What is known about one kind of body."""

    kind: BodyKind
    actions: dict[str, int]
    """Segments per action."""
    seconds: float
    sources: dict[str, int]
    """Segments per source."""
    procedural: tuple[str, ...]
    """Actions of which only the built-in characters' own gaits are known."""
    missing: tuple[str, ...]
    """Common actions of which nothing is known."""


def contents(memory: Memory) -> list[Contents]:
    """What is known, kind by kind of body."""
    rows = []
    for kind in get_args(BodyKind):
        words = [w for w in memory.words if w.kind == kind]
        if not words:
            continue
        counts = Counter(w.action for w in words)
        real = {w.action for w in words if not w.source.startswith("zoo")}
        wanted = {"fish": WANTED_OF_SWIMMERS, "flyer": WANTED_OF_FLYERS}.get(kind, WANTED)
        rows.append(
            Contents(
                kind,
                {name: counts[name] for name in ACTIONS if name in counts},
                round(sum(w.seconds for w in words), 1),
                dict(Counter(_library(w.source) for w in words).most_common()),
                tuple(sorted(counts.keys() - real)),
                tuple(name for name in wanted if name not in counts),
            )
        )
    return rows


def _library(source: str) -> str:
    """Which collection a segment came from."""
    if source.startswith(("cmu ", "rocketbox ")):
        return {"cmu": "CMU mocap", "rocketbox": "Rocketbox"}[source.split(maxsplit=1)[0]]
    return source.split(":", maxsplit=1)[0]


def page(memory: Memory) -> str:
    """The page of the docs."""
    rows, words = contents(memory), memory.words
    minutes = sum(w.seconds for w in words) / 60
    lines = [
        "# What is in the memory",
        "",
        f"{len(words)} segments, {minutes:.0f} minutes, {len({w.action for w in words})} actions. Written by "
        "`python -m jigdoll.memory.contents`; `jigdoll memory list` shows the same.",
        "",
        "| body | segments | minutes | actions (segments) | only procedural | nothing known of |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        actions = ", ".join(f"{_spoken(name)} {count}" for name, count in row.actions.items())
        lines.append(
            f"| {row.kind} | {sum(row.actions.values())} | {row.seconds / 60:.1f} | {actions} | "
            f"{', '.join(map(_spoken, row.procedural)) or '-'} | {', '.join(map(_spoken, row.missing)) or '-'} |"
        )
    styles = Counter(style for w in words for style in w.style)
    unknown = sorted(set(ACTIONS) - {w.action for w in words})
    lines += [
        "",
        f"Manners: {', '.join(f'{style} {count}' for style, count in styles.most_common())}.",
        "",
        f"Actions that no body in it does: {', '.join(map(_spoken, unknown))}.",
        "",
        "## Sources and licences",
        "",
        "| source | licence | segments | minutes |",
        "|---|---|---|---|",
    ]
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for w in words:
        found[_library(w.source), w.licence].append(w.seconds)
    for (source, licence), seconds in sorted(found.items(), key=lambda item: -len(item[1])):
        lines.append(f"| {source} | {licence} | {len(seconds)} | {sum(seconds) / 60:.1f} |")
    return "\n".join(lines) + "\n"


def _spoken(name: str) -> str:
    return name.replace("_", " ")


if __name__ == "__main__":
    sys.stdout.write(page(open_memory()))
