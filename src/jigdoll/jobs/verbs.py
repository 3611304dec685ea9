"""What a job can be: one function per verb, from typed options to files in the job's own folder.

The options are those of the public door. Everything that a job writes depends on its options alone.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any, Literal

from jigdoll import door
from jigdoll.directions import DirectionOptions
from jigdoll.export import save
from jigdoll.formats import video
from jigdoll.judge import as_dict
from jigdoll.physics.config import TrackConfig
from jigdoll.protocols import Progress, part
from jigdoll.render.sheets import film, overlay, rig_sheet
from jigdoll.runs import Run, open_run
from jigdoll.types import JobVerb

Made = tuple[list[Path], dict[str, Any]]
"""The files that were written, and the numbers that are worth a table."""
Template = Literal["auto", "biped", "bird", "theropod", "quadruped", "hexapod", "octopod", "serpent", "generic"]


def animate(
    folder: Path,
    progress: Progress,
    *,
    prompt: str,
    character: str | None = None,
    draft: Literal["auto", "memory", "none"] = "auto",
    prior: str | None = None,
    device: str | None = None,
    seconds: float | None = None,
    fps: float = 24.0,
    loop: bool | None = None,
    seed: int = 0,
    character_seed: int = 0,
    tries: int | None = None,
    physics: bool = False,
    anyway: bool = False,
    speed: float | None = None,
    path: str | None = None,
    start: str | None = None,
    end: str | None = None,
    in_place: bool = False,
) -> Made:
    """A sentence becomes a clip: `jigdoll.animate`."""
    made = door.animate(
        character, prompt, out=folder, draft=draft, prior=prior, device=device, seconds=seconds, fps=fps, loop=loop,
        seed=seed, character_seed=character_seed, tries=tries, physics=physics, anyway=anyway, progress=progress,
        directions=DirectionOptions(speed=speed, path=path, start=start, end=end, in_place=in_place),
    )  # fmt: skip
    return list(made.files.values()), {"verdict": as_dict(made.verdict)}


def rig(
    folder: Path,
    progress: Progress,
    *,
    character: str,
    template: Template = "auto",
    joints: int | None = None,
    weights: Literal["refined", "paper"] = "refined",
) -> Made:
    """A mesh gets a skeleton and weights: `jigdoll.rig`."""
    with _run(folder, "rig", character=character, template=template, joints=joints, weights=weights) as run:
        made = door.rig(character, template=template, joints=joints, weights=weights, progress=part(progress, 0, 0.8))
        files = [save(run.path("rigged.glb"), made), rig_sheet(run.path("sheet.png"), made)]
    return files, {"joints": len(made.skeleton)}


def track(
    folder: Path,
    progress: Progress,
    *,
    character: str,
    clip: str,
    iterations: int = 200,
    friction: float = 1.0,
    ground: bool = True,
    fps: float = 24.0,
    seconds: float = 1.0,
) -> Made:
    """Simulated bodies perform a clip: `jigdoll.track`."""
    asked = {"iterations": iterations, "friction": friction, "ground": ground, "fps": fps, "seconds": seconds}
    with _run(folder, "track", character=character, clip=clip, **asked) as run:
        config = TrackConfig(iterations=iterations, friction=friction, ground=ground)
        asset = door.load(character, fps=fps)
        done = door.track(
            asset, clip, config=config, fps=fps, seconds=seconds, checkpoint=run.checkpoint,
            progress=part(progress, 0.0, 0.8),
        )  # fmt: skip
        verdict = as_dict(door.judge(asset, done.motion, against=done.reference))
        files = [save(run.path("tracked.glb"), asset, [done.motion])]
        pictures = overlay(asset, done.reference, done.motion)
        files.append(video.write(run.path("tracked.mp4"), pictures, fps=done.motion.fps))
        files += _sheet(run, asset, done.motion)
        files.append(run.write_json("metrics.json", {"verdict": verdict, "notes": list(done.notes)}))
    return files, {"verdict": verdict, "notes": list(done.notes)}


def render(
    folder: Path,
    progress: Progress,
    *,
    character: str,
    clip: str | None = None,
    mode: Literal["mesh", "splats", "clay", "motion"] = "mesh",
    width: int = 480,
    height: int = 360,
    azimuth: float = 60.0,
    elevation: float = 12.0,
    fps: float = 24.0,
    seconds: float = 2.0,
) -> Made:
    """A clip as a film and as a contact sheet: `jigdoll.render`."""
    view: dict[str, Any] = {"mode": mode, "size": (width, height), "azimuth": azimuth, "elevation": elevation}
    view |= {"fps": fps, "seconds": seconds}
    with _run(folder, "render", character=character, clip=clip, **view) as run:
        asset = door.load(character, fps=fps)
        files = [
            door.render(run.path(name), asset, clip, progress=part(progress, start, end), **view)
            for name, start, end in (("film.mp4", 0.0, 0.6), ("sheet.png", 0.6, 1.0))
        ]
    return files, {}


def retarget(
    folder: Path, progress: Progress, *, clip: str, character: str, fps: float = 30.0, lock: bool = True
) -> Made:
    """A clip of another body on this one, with what the judge says of it: `jigdoll.retarget`."""
    from jigdoll.character import open_foreign
    from jigdoll.rig.retarget import retarget_with_report

    with _run(folder, "retarget", clip=clip, character=character, fps=fps, lock=lock) as run:
        asset = door.load(character, fps=fps)
        progress(0.2, "retargeting")
        moved, report = retarget_with_report(*open_foreign(clip, fps=fps), asset, lock=lock)
        verdict = as_dict(door.judge(asset, moved))
        progress(0.6, "writing")
        files = [save(run.path("motion.glb"), asset, [moved]), save(run.path("motion.bvh"), asset, [moved])]
        files += _sheet(run, asset, moved)
        files.append(run.write_json("metrics.json", {"verdict": verdict, "report": asdict(report)}))
    return files, {"verdict": verdict, "notes": list(report.notes)}


VERBS: Mapping[JobVerb, Callable[..., Made]] = {
    "animate": animate,
    "rig": rig,
    "track": track,
    "render": render,
    "retarget": retarget,
}


@cache
def options_of(verb: JobVerb) -> dict[str, inspect.Parameter]:
    """The options that a verb takes, by name, with their types and defaults."""
    every = inspect.signature(VERBS[verb]).parameters
    return {name: option for name, option in every.items() if option.kind is inspect.Parameter.KEYWORD_ONLY}


def _run(folder: Path, verb: JobVerb, **asked: Any) -> Any:
    """The job's run folder, for as long as the block lasts."""
    return open_run(folder, {"verb": verb, **asked})


def _sheet(run: Run, asset: Any, motion: Any) -> list[Path]:
    return [film(run.path("sheet.png"), asset, motion, size=(240, 180), fps=motion.fps)]
