"""The verb judge: what the metrics say about a clip."""

from pathlib import Path
from typing import TYPE_CHECKING

from tyro.conf import Positional

from jigdoll.cli.shared import Answer, Forward, Json, Scale, Up, answering, character, escaped, progress_bar
from jigdoll.errors import JigdollError

if TYPE_CHECKING:
    from jigdoll.judge import Verdict
    from jigdoll.types import RiggedAsset


def judge(
    file: Positional[str],
    clip: Positional[str],
    /,
    *,
    against: str | None = None,
    asked: str | None = None,
    physics: bool = False,
    html: Path | None = None,
    as_json: Json = False,
    title: str | None = None,
    fps: float = 24.0,
    seconds: float = 2.0,
    up: Up = None,
    forward: Forward = None,
    scale: Scale = None,
) -> None:
    """Measure a clip: feet, ground, gait, jerk, loop, limits; beside another clip or a reference gait on request.

    Args:
        file: A character file, or zoo:NAME.
        clip: Its name in the file, another FILE or FILE:CLIP, or a gait (walk, run, jump ...).
        against: The clip to compare with, named in the same way.
        asked: What it is meant to show, in words: then it is graded as well, how natural it looks and what is wrong.
        physics: Measure as well what forces the clip would need, and whether a floor could give them.
        html: Write a report with the film, curves and all numbers.
        title: Title of the report.
        fps: Frames per second of gaits and of motion in files.
        seconds: Length of a gait.
    """
    from jigdoll.character import open_motion
    from jigdoll.formats.table import PAGES, check_target
    from jigdoll.judge import as_dict
    from jigdoll.judge import judge as measure
    from jigdoll.physics.bodies import bodies_of

    if html is not None:
        check_target(html, PAGES)
    asset = character(file, up=up, forward=forward, scale=scale, fps=fps)
    if not asset.is_rigged:
        raise JigdollError(f"{file}: there is no skeleton, so nothing moves; jigdoll rig gives it one")
    motion = open_motion(asset, clip, fps=fps, seconds=seconds)
    reference = None if against is None else open_motion(asset, against, fps=fps, seconds=seconds)
    bodies = bodies_of(asset) if physics else None
    verdict = measure(asset, motion, reference=reference, bodies=bodies)
    if asked is not None:
        from jigdoll.judge.grade import grade_clip

        verdict = grade_clip(verdict, asset, motion, asked)
    with answering(as_json) as answer:
        answer.add(as_dict(verdict))
        _print(answer, asset, verdict)
        if html is not None:
            from jigdoll.judge.report import write_report

            with progress_bar() as progress:
                written = write_report(
                    html, asset, motion, verdict=verdict, reference=reference, title=title, progress=progress
                )
            answer.wrote(written)


def _print(answer: Answer, asset: "RiggedAsset", verdict: "Verdict") -> None:
    from rich.table import Table

    from jigdoll.judge.table import natural_lines, rows_of

    beside = verdict.reference
    frames = f"{verdict.frames} frames at {verdict.fps:g}/s"
    travel = ", in place" if verdict.in_place else ""
    title = (
        f"{escaped(asset.name)}: {escaped(verdict.name)}  ({frames}, body length {verdict.body_length:.2f} m{travel})"
    )
    table = Table(title=title)
    table.add_column("", no_wrap=True)
    table.add_column("clip", justify="right", no_wrap=True)
    if beside is not None:
        table.add_column(escaped(beside.name), justify="right")
    table.add_column("", no_wrap=True)
    table.add_column("", style="dim")
    group = ""
    for row in rows_of(verdict):
        if group and row.group != group:
            table.add_section()
        group = row.group
        value = f"[red]{row.value}[/]" if row.worse else row.value
        table.add_row(row.label, value, *([] if beside is None else [row.reference]), row.unit, row.meaning)
    answer.show(table)
    if verdict.natural is not None:
        for line in natural_lines(verdict.natural):
            answer.say(line)
    if not verdict.legs:
        answer.show("no legs were found on this rig: nothing is said about feet and gait", style="yellow")
