"""The verb track: a clip becomes one that a simulated body can perform."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tyro.conf import Positional

from jigdoll.cli.shared import Answer, Forward, Json, Scale, Up, answering, character, console, progress_bar
from jigdoll.errors import JigdollError

if TYPE_CHECKING:
    from jigdoll.judge import Verdict
    from jigdoll.physics.track import Tracked
    from jigdoll.types import Motion, RiggedAsset

FAR = 0.3
"""A clip whose joints are on average further than this from those of the clip that was asked for, as a share of the
body's length, is another one: the body fell, flew off or lost its way."""


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
    loose: tuple[str, ...] = (),
    in_place: bool = False,
    robust: bool = True,
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
        clip: Its name in the file, another FILE or FILE:CLIP, or a gait (walk, run, jump ...).
        out: What to write: .glb, .fbx, .bvh, .usd ...; by default NAME_tracked.glb here.
        iterations: Steps of the optimiser for each two seconds of the clip.
        paper: The paper's exact loss, a control per simulation step, help only towards the initial upright.
        ground: --no-ground simulates without gravity and floor; so is what flies or swims by its name or its body.
        friction: Of the floor.
        upright: Strength of the torque that keeps the first body upright, in weights times leg lengths per radian.
        loose: Joints whose names hold one of these words swing by themselves: ears, tails, straps.
        in_place: Take the ground speed out again that a clip which walks in place was given.
        robust: --no-robust leaves out the second engine, which helps with a hand where the first cannot hold the clip.
        substeps: Simulation steps per frame; chosen automatically.
        video: Film the reference beside the simulated body with its ghost: .mp4, .gif, .webp; .png is a contact sheet.
        html: Write a report: the clip before and after, with all numbers of the judge.
        resume: A file that keeps the run, so that it can go on after an interruption.
        fps: Frames per second that the clip is brought to.
        seconds: Length of a built-in gait.
    """
    from jigdoll.character import open_motion
    from jigdoll.export import save
    from jigdoll.formats.table import FILMS, PAGES, PICTURES, check_target
    from jigdoll.judge.report import write_report
    from jigdoll.motion import resample
    from jigdoll.physics.config import TrackConfig
    from jigdoll.physics.engine_mujoco import MujocoEngine
    from jigdoll.physics.engine_newton import NewtonEngine, compile_kernels
    from jigdoll.physics.prepare import prepare
    from jigdoll.physics.track import track as follow

    config = TrackConfig(
        iterations=iterations,
        paper=paper,
        ground=ground,
        friction=friction,
        upright=upright,
        loose=loose,
        in_place=in_place,
        substeps=substeps,
    )
    if video is not None:
        check_target(video, (*FILMS, *PICTURES))
    if html is not None:
        check_target(html, PAGES)
    if out is not None:
        check_target(out)
    asset = character(file, up=up, forward=forward, scale=scale, fps=fps)
    motion = open_motion(asset, clip, fps=fps, seconds=seconds)
    motion = motion if motion.fps == fps else resample(motion, fps)
    out = Path(f"{asset.name}_tracked.glb") if out is None else out
    robust = robust and not paper
    ready = prepare(asset, needs_legs=ground and not robust, keep=loose)
    motion = ready.clip(motion)
    config = ready.config(config, motion)
    compile_kernels(lambda text: console(error=True).print(text, highlight=False, markup=False))
    with progress_bar() as progress:
        done = follow(
            ready.asset,
            motion,
            NewtonEngine,
            config,
            bodies=ready.bodies,
            make_robust=MujocoEngine if robust else None,
            checkpoint=resume,
            progress=progress,
        )
        if video is not None:
            progress(1.0, "filming")
            _film(video, ready.asset, done)
        verdict = _verdict(ready.asset, motion, done, friction)
        if html is not None:
            losses = {"tracking": done.losses} if done.losses else {}
            write_report(html, ready.asset, done.motion, verdict=verdict, losses=losses, progress=progress)
    with answering(as_json) as answer:
        written = save(out, asset, [ready.back(done.motion)])
        error = written_error(written, asset, ready.back(done.reference), size=done.bodies.length / ready.scale)
        facts = _facts(done, verdict, error)
        answer.add(facts)
        _print(answer, facts)
        answer.wrote(written, f"{100 * error:.1f} % of the body's length off the clip")
        for path in (video, html):
            if path is not None:
                answer.wrote(path)
    if done.fell or not error <= FAR:
        why = "it falls" if done.fell else f"it is {100 * error:.0f} % of its length off"
        raise JigdollError(
            f"{written}: the simulated body does not do the clip, {why}; try "
            "more --iterations or --substeps, a stronger --upright, --no-ground for what swims, or another clip"
        )


def written_error(path: Path, asset: "RiggedAsset", wanted_clip: "Motion", *, size: float) -> float:
    """How far the joints of the clip in a written file are from the clip that was tracked, as a share of the body.

    The mean over joints and frames, of what another program would read: what was simulated but cannot be written
    counts as well.
    """
    import torch

    from jigdoll.asset.load import read
    from jigdoll.asset.normalize import transform_asset
    from jigdoll.cli.files import keeps_original
    from jigdoll.formats.table import format_of
    from jigdoll.kinematics import forward

    row = format_of(path)
    if row is not None and row.motion is not None:
        skeleton, clip = row.motion(path, None, 1.0)
    else:  # a file of our own is in our frame, an extended one in that of the original
        source = asset.source if keeps_original(asset, path) else None
        found = read(path, fps=wanted_clip.fps)
        found = transform_asset(found, torch.eye(4) if source is None else source.T_world_file)
        skeleton, clip = found.skeleton, list(found.clips.values())[-1]
    names = [name for name in asset.skeleton.names if name in skeleton.names]
    there, wanted = (
        forward(own, motion.pose)[:, [own.index(name) for name in names], :3, 3]
        for own, motion in ((skeleton, clip), (asset.skeleton, wanted_clip))
    )
    frames = min(len(there), len(wanted))
    return float((there[:frames] - wanted[:frames]).norm(dim=-1).mean()) / size


def _film(video: Path, asset: "RiggedAsset", done: "Tracked") -> None:
    from jigdoll.formats import video as films
    from jigdoll.formats.table import is_picture
    from jigdoll.render.draw import contact_sheet
    from jigdoll.render.sheets import overlay

    frames = overlay(asset, done.reference, done.motion)
    if is_picture(video):
        films.write_picture(video, contact_sheet(frames[:: max(1, len(frames) // 12)].numpy(), 3))
    else:
        films.write(video, frames, fps=done.motion.fps)


def _verdict(asset: "RiggedAsset", motion: "Motion", done: "Tracked", friction: float) -> "Verdict":
    """What the judge says of the performance, with the clip as it was beside it."""
    from dataclasses import replace

    from jigdoll.judge import judge

    before = replace(motion, name="before physics")
    return judge(asset, done.motion, reference=before, bodies=done.bodies, friction=friction)


def _facts(done: "Tracked", verdict: "Verdict", error: float) -> dict[str, Any]:
    """The numbers that physics changes, before and after."""
    from jigdoll.math import GRAVITY

    facts: dict[str, Any] = {"error": error, "bodies": len(done.bodies), "mass": done.bodies.total_mass}
    facts |= {"path": done.path, "fell": done.fell}
    facts |= {"hand": float(done.hand.norm(dim=1).mean()) / (done.bodies.total_mass * GRAVITY)}
    facts |= {"notes": list(done.notes)}
    for word, seen in (("before", verdict.reference), ("after", verdict)):
        facts[word] = {key: getattr(seen, key) for key in ("skate_ratio", "penetration", "floating", "angle_jerk")}
        if seen is not None and seen.physical is not None:
            facts[word] |= vars(seen.physical)
    return facts


def _print(answer: Answer, facts: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table("", "before", "after", title=f"{facts['bodies']} bodies, {facts['mass']:.1f} kg")
    for key, before in facts["before"].items():
        after = facts["after"][key]
        table.add_row(key.replace("_", " "), _number(before), _number(after))
    answer.show(table)
    for note in facts["notes"]:
        answer.show(note)


def _number(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:.3g}"
