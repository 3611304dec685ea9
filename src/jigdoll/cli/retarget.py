"""The verb retarget: the motion of one body on another."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from tyro.conf import Positional

from jigdoll.cli.shared import Answer, Forward, Json, Scale, Up, answering, escaped
from jigdoll.errors import JigdollError

if TYPE_CHECKING:
    from jigdoll.rig.retarget import Report


def retarget(
    source: Positional[str],
    target: Positional[str],
    /,
    *,
    out: Path,
    pairs: Annotated[tuple[str, ...], tyro.conf.arg(name="map", metavar="TARGET_LIMB=SOURCE_LIMB ...")] = (),
    lock: bool = True,
    fps: float = 30.0,
    up: Up = None,
    forward: Forward = None,
    scale: Scale = None,
    as_json: Json = False,
) -> None:
    """Bring a clip of any character, motion file or BVH onto any rig, and tell which limb took which.

    Args:
        source: Whose motion: FILE:CLIP, FILE (its first clip), FILE.zip:NAME, FILE.bvh.
        target: Who moves: a character file, or zoo:NAME.
        out: What to write: .glb, .vrm, .bvh, .usd, .usda, .usdc. A GLB that came from a GLB keeps all that it holds.
        pairs: Corrections of the matching, for instance "left arm 0=right arm 0"; the limbs are named as the report
            names them, 0 is the foremost.
        lock: Keep standing feet where they stand; --no-lock lets them slide.
        fps: Frames per second at which clips of files are read.
        up: The target's axis that points up; guessed where it is not given.
        forward: The target's axis that it faces; guessed.
        scale: Metres per unit of the target's file; guessed.
    """
    from jigdoll.asset.axes import AxisHints
    from jigdoll.character import open_character, open_foreign
    from jigdoll.export import save
    from jigdoll.formats.table import check_target
    from jigdoll.rig.retarget import retarget_with_report

    check_target(out)
    mapping = read_pairs(pairs)
    motion, theirs = open_foreign(source, fps=fps)
    ours = open_character(target, axes=AxisHints(up, forward, scale))
    moved, report = retarget_with_report(motion, theirs, ours, mapping=mapping, lock=lock)
    with answering(as_json) as answer:
        answer.add({"clip": moved.name, "frames": len(moved), "fps": moved.fps, **asdict(report)})
        show_report(answer, report)
        answer.wrote(save(out, ours, [moved]), f"{moved.name}, {len(moved)} frames")


def read_pairs(words: tuple[str, ...]) -> dict[str, str]:
    """Limb names from `TARGET_LIMB=SOURCE_LIMB`."""
    pairs = {}
    for word in words:
        mine, sign, their = word.partition("=")
        if not sign or not mine.strip() or not their.strip():
            raise JigdollError(f"--map {word!r}: write TARGET_LIMB=SOURCE_LIMB, as in 'left arm 0=right arm 0'")
        pairs[mine.strip()] = their.strip()
    return pairs


def show_report(answer: Answer, report: "Report") -> None:
    """Show which limb took which, and what was made natural or left out."""
    from rich.table import Table

    table = Table("limb", "follows", "")
    for match in report.matches:
        table.add_row(match.target, match.source or "[yellow]nobody[/]", escaped(match.note))
    answer.show(table)
    for name in report.dropped:
        answer.say(f"nobody follows the source's {name}")
    for note in report.notes:
        answer.say(note)
