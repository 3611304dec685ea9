"""What the pose space was trained on: clips, seconds, rigs and actions per kind of body and per source.

python -m jigdoll.posespace.contents CACHE > docs/posespace_data.md
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

from jigdoll.posespace.dataset import LEFT_OUT, Clip, Dataset, open_dataset
from jigdoll.posespace.windows import GAITS, KIND_SHARE, ZOO_SHARE, share_of_kinds

COLLECTIONS = {"cmu": "CMU mocap", "rocketbox": "Rocketbox", "jigdoll": "random creatures of the zoo, hand-drawn gaits"}


def collection(clip: Clip) -> str:
    """Which collection a clip came from."""
    name = clip.source.split(":", maxsplit=1)[0].split(" ", maxsplit=1)[0]
    return COLLECTIONS.get(name, name)


def page(data: Dataset) -> str:
    """The page of the docs."""
    train = data.of(("train",))
    odds = share_of_kinds(train)
    lines = [
        "# What the pose space learned from",
        "",
        "Written by `python -m jigdoll.posespace.contents CACHE`. Shown: how often a window of the kind is drawn.",
        "",
        "| body | clips | minutes | rigs | loops | shown | actions (clips) |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind, mine in _groups(train, lambda clip: clip.kind):
        counted = Counter(clip.action for clip in mine).most_common()
        actions = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in counted)
        lines.append(f"| {kind} | {_counts(mine)} | {sum(c.loop for c in mine)} | {odds[kind]:.0%} | {actions} |")
    lines += ["", "## Sources", "", "| source | licence | clips | minutes | rigs |", "|---|---|---|---|---|"]
    for source, mine in _groups(train, collection):
        lines.append(f"| {source} | {', '.join(sorted({c.licence for c in mine}))} | {_counts(mine)} |")
    lines += ["", "## Kept out", "", "| split | source | clips | minutes | rigs |", "|---|---|---|---|---|"]
    for split in ("near", "far"):
        for source, mine in _groups(data.of((split,)), collection):
            lines.append(f"| {split} | {source} | {_counts(mine)} |")
    weighed = ", ".join(f"{name} {share:g}" for name, share in GAITS.items())
    kinds = ", ".join(f"{kind} {share:g} times" for kind, share in KIND_SHARE.items())
    lines += [
        "",
        "Within a kind of body rigs are drawn by the square root of their clips, kinds by the square root of their"
        f" rigs' weights ({kinds} that; a creature's rig {ZOO_SHARE:g} times an artist's). Within a rig gaits come"
        f" more often ({weighed}).",
        "",
        "Left out after looking at sheets, because the body is read as something else:"
        f" {', '.join(LEFT_OUT)}. Left out by rule: held poses, clips of fewer than five frames, broken roots, gaits"
        " that go backwards without saying so, mocap of more than two actions.",
    ]
    return "\n".join(lines) + "\n"


def _groups(data: Dataset, key: Callable[[Clip], str]) -> list[tuple[str, list[Clip]]]:
    """Clips by a key, the largest group first."""
    found: dict[str, list[Clip]] = defaultdict(list)
    for clip in data.clips:
        found[key(clip)].append(clip)
    return sorted(found.items(), key=lambda item: -len(item[1]))


def _counts(clips: list[Clip]) -> str:
    minutes = sum((clip.frames - 1) / clip.fps for clip in clips) / 60
    return f"{len(clips)} | {minutes:.1f} | {len({clip.rig for clip in clips})}"


if __name__ == "__main__":
    sys.stdout.write(page(open_dataset(Path(sys.argv[1]))))
