"""The verb track: a clip becomes one that a simulated body can perform."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tyro.conf import Positional

from jigdoll.cli.shared import (
    Forward,
    Json,
    Scale,
    Up,
    check_target,
    clip_or_gait,
    console,
    open_character,
    progress_bar,
    said,
)

if TYPE_CHECKING:
    from jigdoll.judge import Verdict
    from jigdoll.physics.track import Tracked
    from jigdoll.types import Motion, RiggedAsset


def track(
    file: Positional[str],
    clip: Positional[str],
    /,
    *,
    out: Path | None = None,
    iterations: int = 200,
    paper: bool = False,
    ground: bool = True,
    friction: float = 1.0,
    upright: float = 1.0,
    substeps: int | None = None,
    video: Path | None = None,
    html: Path | None = None,
    resume: Path | None = None,
    fps: float = 24.0,
    seconds: float = 1.0,
    as_json: Json = False,
    up: Up = None,
    forward: Forward = None,
    scale: Scale = None,
) -> None:
    """Simulate a character so that it performs a clip under gravity, contact and friction, and write what it does.

    Args:
        file: A character file, or zoo:NAME.
        clip: A clip of the file by name, a motion file, or a gait of the built-in ones (walk, run, jump ...).
        out: What to write: .glb, .bvh, .usd ...; by default NAME_tracked.glb here.
        iterations: Steps of the optimiser for each two seconds of the clip.
        paper: The paper's exact loss, a control per simulation step, help only towards the initial upright.
        ground: --no-ground simulates without gravity and floor, for what swims or flies.
        friction: Of the floor.
        upright: Strength of the torque that keeps the first body upright, in weights times leg lengths per radian.
        substeps: Simulation steps per frame; chosen automatically.
        video: Film the reference beside the simulated body with its ghost: .mp4, .gif, .webp; .png is a contact sheet.
        html: Write a report: the clip before and after, with all numbers of the judge.
        resume: A file that keeps the run, so that it can go on after an interruption.
        fps: Frames per second that the clip is brought to.
        seconds: Length of a built-in gait.
    """
    from jigdoll.export import WRITABLE, save
    from jigdoll.judge.report import write_report
    from jigdoll.motion import resample
    from jigdoll.physics.engine_newton import NewtonEngine, compile_kernels
    from jigdoll.physics.track import TrackConfig
    from jigdoll.physics.track import track as follow

    config = TrackConfig(
        iterations=iterations, paper=paper, ground=ground, friction=friction, upright=upright, substeps=substeps
    )
    if video is not None:
        check_target(video, (".mp4", ".gif", ".webp", ".png"))
    if html is not None:
        check_target(html, (".html", ".htm"))
    if out is not None:
        check_target(out, WRITABLE)
    asset = open_character(file, up=up, forward=forward, scale=scale, fps=fps)
    motion = clip_or_gait(asset, clip, fps=fps, seconds=seconds)
    motion = motion if motion.fps == fps else resample(motion, fps)
    out = Path(f"{asset.name}_tracked.glb") if out is None else out
    compile_kernels(lambda text: console(error=True).print(text, highlight=False, markup=False))
    with progress_bar() as progress:
        done = follow(asset, motion, NewtonEngine, config, checkpoint=resume, progress=progress)
        if video is not None:
            progress(1.0, "filming")
            _film(video, asset, done)
        verdict = _verdict(asset, motion, done, friction)
        if html is not None:
            write_report(html, asset, done.motion, verdict=verdict, losses={"tracking": done.losses}, progress=progress)
    facts = _facts(done, verdict)
    if as_json:
        from jigdoll.formats.json_text import json_text

        sys.stdout.write(json_text(facts) + "\n")
    else:
        _print(facts)
    said(save(out, asset, [done.motion]), f"{100 * done.error:.1f} % of the body's length off the clip")
    for path in (video, html):
        if path is not None:
            said(path)


def _film(video: Path, asset: "RiggedAsset", done: "Tracked") -> None:
    from jigdoll.formats import video as films
    from jigdoll.render.draw import contact_sheet
    from jigdoll.render.sheets import overlay

    frames = overlay(asset, done.reference, done.motion)
    if video.suffix.lower() == ".png":
        films.write_picture(video, contact_sheet(frames[:: max(1, len(frames) // 12)].numpy(), 3))
    else:
        films.write(video, frames, fps=done.motion.fps)


def _verdict(asset: "RiggedAsset", motion: "Motion", done: "Tracked", friction: float) -> "Verdict":
    """What the judge says of the performance, with the clip as it was beside it."""
    from dataclasses import replace

    from jigdoll.judge import judge

    before = replace(motion, name="before physics")
    return judge(asset, done.motion, reference=before, bodies=done.bodies, friction=friction)


def _facts(done: "Tracked", verdict: "Verdict") -> dict[str, Any]:
    """The numbers that physics changes, before and after."""
    facts: dict[str, Any] = {"error": done.error, "bodies": len(done.bodies), "mass": done.bodies.total_mass}
    for word, seen in (("before", verdict.reference), ("after", verdict)):
        facts[word] = {key: getattr(seen, key) for key in ("skate_ratio", "penetration", "floating", "angle_jerk")}
        if seen is not None and seen.physical is not None:
            facts[word] |= vars(seen.physical)
    return facts


def _print(facts: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table("", "before", "after", title=f"{facts['bodies']} bodies, {facts['mass']:.1f} kg")
    for key, before in facts["before"].items():
        after = facts["after"][key]
        table.add_row(key.replace("_", " "), _number(before), _number(after))
    console().print(table)


def _number(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:.3g}"
