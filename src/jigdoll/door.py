"""What can be done with a character, one function per verb: `from jigdoll import load, animate, judge`.

A character is a file (`"wolf.glb"`), a built-in one (`"zoo:fox"`), a few words (`"a red fox"`) or an asset that is open
already. A clip is a motion, a name in the character's file, another file (`"run.bvh"`, `"pack.glb:Run"`) or a gait that
its body can do (`"walk"`). Every function takes both in the same way.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from jigdoll.asset.axes import Axis, AxisHints
from jigdoll.character import Formula, open_character, open_foreign, open_motion, rig_asset
from jigdoll.errors import JigdollError
from jigdoll.export import ExportOptions
from jigdoll.export import save as write
from jigdoll.judge.grade import grade_clip
from jigdoll.judge.verdict import Verdict
from jigdoll.judge.verdict import judge as measure
from jigdoll.motion import resample
from jigdoll.physics.bodies import bodies_of
from jigdoll.physics.track import TrackConfig, Tracked
from jigdoll.physics.track import track as follow
from jigdoll.pipeline import Animation, animate
from jigdoll.protocols import Progress, quiet
from jigdoll.render.sheets import film
from jigdoll.rig.autorig.template import TemplateName
from jigdoll.rig.retarget import retarget as transfer
from jigdoll.types import Motion, RiggedAsset

__all__ = [
    "Animation",
    "Character",
    "Clip",
    "Tracked",
    "Verdict",
    "animate",
    "judge",
    "load",
    "render",
    "retarget",
    "rig",
    "save",
    "track",
]

Character = str | Path | RiggedAsset
Clip = str | Path | Motion


def load(
    source: str | Path,
    *,
    up: Axis | None = None,
    forward: Axis | None = None,
    scale: float | None = None,
    fps: float = 30.0,
    seed: int = 0,
) -> RiggedAsset:
    """Open a character: a file, `zoo:NAME`, or words that describe one.

    Whatever the file says, the character stands in our frame: metres, +Y up, facing +Z, feet on y = 0. Where a guess is
    wrong, `up` and `forward` name axes of the file and `scale` is its metres per unit. What was repaired is warned of.

    Args:
        source: A file (.glb, .gltf, .vrm, .fbx, .obj, .usd ...), `"zoo:fox"`, or `"a red fox"`.
        up: The file's axis that points up.
        forward: The file's axis that the character faces.
        scale: Metres per unit of the file.
        fps: Frames per second at which the file's clips are sampled.
        seed: Another individual of a built-in character.

    Returns:
        The character with its mesh, skeleton, weights and clips; a bare mesh has a skeleton of one joint.
    """
    return open_character(source, axes=AxisHints(up, forward, scale), fps=fps, seed=seed)


def save(
    path: str | Path,
    character: RiggedAsset,
    clips: Motion | Sequence[Motion] = (),
    *,
    fps: float | None = None,
    in_place: bool = False,
    loop: bool = False,
) -> Path:
    """Write a character with clips, by suffix: .glb, .vrm, .bvh, .usd.

    A GLB that came from a GLB keeps everything that the original holds; the clips are added to it.

    Args:
        path: The file to write; it is written whole or not at all.
        character: Whom the clips move.
        clips: One motion, or several where the format holds them.
        fps: Frames per second; the clips' own where none is given.
        in_place: Take the steady travel out, so that a game engine moves the character.
        loop: Let each clip end as it begins (but for travel and turn).

    Returns:
        The path that was written.
    """
    motions = [clips] if isinstance(clips, Motion) else list(clips)
    return write(path, character, motions, options=ExportOptions(fps=fps, in_place=in_place, loop=loop))


def rig(
    character: Character,
    *,
    template: TemplateName | Literal["auto"] = "auto",
    joints: int | None = None,
    markers: Mapping[str, Sequence[float]] | None = None,
    weights: Formula = "refined",
    progress: Progress = quiet,
) -> RiggedAsset:
    """Give a mesh a skeleton with named joints, and skin weights; a rig that it has is replaced.

    Args:
        character: What to rig.
        template: The body plan where the guess is wrong (biped, quadruped, bird ...).
        joints: How many joints you wish.
        markers: Joints that you place yourself: name to point [m].
        weights: The refined formula, or that of the Pinocchio paper.
        progress: Told how far it is.
    """
    asset = open_character(character)
    return rig_asset(asset, template=template, joints=joints, markers=markers, formula=weights, progress=progress)[0]


def retarget(clip: Clip, character: Character, *, of: RiggedAsset | None = None, fps: float = 30.0) -> Motion:
    """Bring a clip of one character onto another, by limbs: names and proportions need not agree.

    Args:
        clip: A file, one clip of a file as `"FILE:CLIP"`, or a motion.
        character: Whom it shall move.
        of: The character that moves in the clip, where the clip is a motion.
        fps: Frames per second at which clips of files are sampled.
    """
    asset = open_character(character)
    if isinstance(clip, Motion):
        if of is None:
            raise JigdollError(f"{clip.name!r}: say whose motion it is: retarget(clip, character, of=its_character)")
        return transfer(clip, of, asset)
    return transfer(*open_foreign(clip, fps=fps), asset)


def track(
    character: Character,
    clip: Clip,
    *,
    config: TrackConfig = TrackConfig(),
    fps: float = 24.0,
    seconds: float = 1.0,
    checkpoint: str | Path | None = None,
    progress: Progress = quiet,
) -> Tracked:
    """Let simulated bodies perform a clip under gravity, contact and friction (needs the extra `physics`).

    Args:
        character: Who performs.
        clip: What to perform.
        config: Everything about the simulation and its optimiser.
        fps: Frames per second that the clip is brought to.
        seconds: Length of a gait.
        checkpoint: A file that keeps the run; the same call goes on from it.
        progress: Told how far it is.

    Returns:
        The motion that the bodies performed, with their states, torques and the error that is left.
    """
    from jigdoll.physics.engine_mujoco import MujocoEngine
    from jigdoll.physics.engine_newton import NewtonEngine, compile_kernels
    from jigdoll.physics.prepare import prepare

    asset = open_character(character, fps=fps)
    motion = open_motion(asset, clip, fps=fps, seconds=seconds)
    motion = motion if motion.fps == fps else resample(motion, fps)
    compile_kernels(lambda what: progress(0.0, what))
    saved = None if checkpoint is None else Path(checkpoint)
    ready = prepare(asset, keep=config.loose)
    own = ready.clip(motion)
    done = follow(
        ready.asset,
        own,
        NewtonEngine,
        ready.config(config, own),
        bodies=ready.bodies,
        make_robust=MujocoEngine,
        checkpoint=saved,
        progress=progress,
    )
    return replace(done, motion=ready.back(done.motion), reference=ready.back(done.reference))


def judge(
    character: Character,
    clip: Clip,
    *,
    against: Clip | None = None,
    asked: str | None = None,
    physics: bool = False,
    fps: float = 24.0,
    seconds: float = 2.0,
) -> Verdict:
    """Measure a clip: feet, ground, gait, jerk, loop, limits; and how natural it looks, where something was asked.

    Args:
        character: Who moves.
        clip: The clip to measure.
        against: Another clip to show beside it.
        asked: What it is meant to show, in words: then `natural` says how natural it looks and what is wrong with it.
        physics: Measure as well what forces it would need, and whether a floor could give them.
        fps: Frames per second of gaits and of motion in files.
        seconds: Length of a gait.
    """
    asset = open_character(character, fps=fps)
    if not asset.is_rigged:
        raise JigdollError(f"{asset.name}: there is no skeleton, so nothing moves; jigdoll.rig gives it one")
    motion = open_motion(asset, clip, fps=fps, seconds=seconds)
    reference = None if against is None else open_motion(asset, against, fps=fps, seconds=seconds)
    verdict = measure(asset, motion, reference=reference, bodies=bodies_of(asset) if physics else None)
    return verdict if asked is None else grade_clip(verdict, asset, motion, asked)


def render(
    path: str | Path,
    character: Character,
    clip: Clip | None = None,
    *,
    mode: Literal["mesh", "splats", "clay", "motion"] = "mesh",
    size: tuple[int, int] = (480, 360),
    azimuth: float = 60.0,
    elevation: float = 12.0,
    fps: float = 24.0,
    seconds: float = 2.0,
    progress: Progress = quiet,
) -> Path:
    """Draw a clip with ground, shadow and a camera that follows; without a clip, the character on a turntable.

    Args:
        path: .mp4, .gif or .webp for a film, .png for a contact sheet.
        character: Whom to draw.
        clip: What it does.
        mode: Textured triangles, Gaussian splats, splats in clay, or splats coloured by how they move.
        size: Width and height [px].
        azimuth: Where the camera stands [degrees]: 0 sees the face, 90 the left side.
        elevation: How high it stands [degrees].
        fps: Frames per second.
        seconds: Length of a gait.
        progress: Told how far it is.
    """
    asset = open_character(character, fps=fps)
    motion = None if clip is None else open_motion(asset, clip, fps=fps, seconds=seconds)
    return film(
        path, asset, motion, mode=mode, size=size, azimuth=azimuth, elevation=elevation, fps=fps, progress=progress
    )
