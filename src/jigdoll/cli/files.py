"""Verbs on files: inspect, convert, render."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tyro.conf import Positional

from jigdoll.cli.shared import (
    Forward,
    Json,
    Scale,
    Up,
    answering,
    character,
    clips_that_fit,
    console,
    escaped,
    progress_bar,
)
from jigdoll.errors import JigdollError

if TYPE_CHECKING:
    from jigdoll.types import Motion, RiggedAsset


def inspect(
    file: Positional[Path],
    /,
    *,
    up: Up = None,
    forward: Forward = None,
    scale: Scale = None,
    as_json: Json = False,
) -> None:
    """Tell what is in a file, what is wrong with it and what is repaired on loading."""
    from jigdoll.inspection import inspect_file

    facts = inspect_file(file, up=up, forward=forward, scale=scale)
    with answering(as_json) as answer:
        answer.add(facts)
        if not as_json:
            print_facts(facts)


def convert(
    source: Positional[str],
    target: Positional[Path],
    /,
    *,
    clip: str | None = None,
    seconds: float = 2.0,
    clips: bool = True,
    fps: float | None = None,
    in_place: bool = False,
    loop: bool = False,
    up: Up = None,
    forward: Forward = None,
    scale: Scale = None,
    fresh: bool = False,
    as_json: Json = False,
) -> None:
    """Write a character (a file or zoo:NAME) or motion alone in another format, with its clips.

    Args:
        source: A character file, zoo:NAME, or a file of motion (BVH, glTF or FBX without a mesh, FILE.zip:NAME).
        target: What to write: .glb, .fbx, .bvh, .usd, .usda, .usdc.
        clip: Only this clip (BVH and USD hold one): its name in the file, another FILE or FILE:CLIP to retarget, or a
            gait of the body (walk, run, jump ...).
        seconds: Length of a gait.
        clips: Whether clips are written at all.
        fps: Frames per second of the written clips.
        in_place: Take the steady travel out.
        loop: Make the end of each clip meet its start.
        fresh: Write a clean new file even if the source is glTF. By default the original is kept, and a motion file
            is added to it; changing or choosing among its own clips makes a new file.
    """
    from jigdoll.asset.axes import AxisHints
    from jigdoll.character import open_clips, open_motion
    from jigdoll.export import ExportOptions, save
    from jigdoll.formats.table import check_target

    check_target(target)
    asset = open_clips(source, axes=AxisHints(up, forward, scale), fps=fps or 30.0)
    chosen = None if clip is None else open_motion(asset, clip, fps=fps or 30.0, seconds=seconds)
    foreign = chosen is not None and all(chosen is not own for own in asset.clips.values())
    fresh = fresh or (not foreign and (clip is not None or not clips or fps is not None or in_place or loop))
    kept = keeps_original(asset, target) and not fresh
    motions: list[Motion] = []
    if chosen is not None:
        motions = [chosen]
    elif clips and not kept:
        motions = clips_that_fit(asset, target)
    options = ExportOptions(fps=fps, in_place=in_place, loop=loop)
    written = save(target, asset if kept else replace(asset, source=None), motions, options=options)
    count = f"{len(motions)} clip{'' if len(motions) == 1 else 's'}"
    with answering(as_json) as answer:
        answer.add({"clips": [motion.name for motion in motions], "original_kept": kept})
        answer.wrote(written, f"the original, {count} added" if kept else count)


def render(
    source: Positional[str],
    target: Positional[Path],
    clip: Positional[str | None] = None,
    /,
    *,
    action: str | None = None,
    mode: Literal["mesh", "splats", "clay", "motion"] = "mesh",
    size: tuple[int, int] = (480, 360),
    azimuth: float = 60.0,
    elevation: float = 12.0,
    fps: float = 24.0,
    seconds: float = 2.0,
    ground: bool = True,
    shadow: bool = True,
    skeleton: bool = False,
    frames: int = 12,
    as_json: Json = False,
    up: Up = None,
    forward: Forward = None,
    scale: Scale = None,
) -> None:
    """Draw a character and its clip with ground, shadow and a camera that follows.

    Args:
        source: A character file, or zoo:NAME.
        target: .mp4, .gif or .webp for a film, .png for a contact sheet.
        clip: Its name in the file, another FILE or FILE:CLIP, or a gait (walk, run, jump ...); without one the first
            clip of the file, or a turntable.
        action: The same as clip, as an option.
        mode: Textured triangles, Gaussian splats, splats in clay, or splats coloured by how they move.
        size: Width and height [px].
        azimuth: Where the camera stands [degrees]: 0 sees the face, 90 the left side.
        elevation: How high it stands [degrees].
        fps: Frames per second.
        seconds: Length of a reference gait.
        ground: Draw the checkerboard.
        shadow: Draw the shadow.
        skeleton: Draw the bones over the picture.
        frames: Pictures on a contact sheet.
    """
    from jigdoll.character import open_motion
    from jigdoll.render.sheets import film

    if clip is not None and action is not None:
        raise JigdollError(f"{clip} or {action}? Name one clip")
    asset = character(source, up=up, forward=forward, scale=scale, fps=fps)
    wanted = clip or action or next(iter(asset.clips), None)
    motion = None if wanted is None else open_motion(asset, wanted, fps=fps, seconds=seconds)
    with progress_bar() as progress:
        written = film(
            target,
            asset,
            motion,
            mode=mode,
            size=size,
            azimuth=azimuth,
            elevation=elevation,
            fps=fps,
            ground=ground,
            shadow=shadow,
            skeleton=skeleton,
            frames=frames,
            progress=progress,
        )
    with answering(as_json) as answer:
        answer.add({"clip": None if motion is None else motion.name})
        answer.wrote(written)


def keeps_original(asset: "RiggedAsset", target: Path) -> bool:
    """Whether the target can be the original file, extended."""
    from jigdoll.formats.table import format_of

    row = format_of(target)
    return asset.source is not None and asset.source.format == "gltf" and row is not None and row.name == "glTF"


def print_facts(facts: dict[str, Any]) -> None:
    from rich.table import Table

    out = console()
    if "mesh" not in facts:
        out.print("motion alone: no mesh in the file", style="yellow", highlight=False)
    table = Table(show_header=False, title=f"{escaped(facts['file'])}  ({facts['bytes'] / 1e6:.2f} MB)")
    if "mesh" in facts:
        mesh = facts["mesh"]
        state = "watertight" if mesh["watertight"] else f"{mesh['open_edges']} open edges"
        crowded = f", {mesh['crowded_edges']} non-manifold edges" if mesh["crowded_edges"] else ""
        flat = f", {mesh['flat_faces']} flat faces" if mesh["flat_faces"] else ""
        table.add_row("mesh", f"{mesh['vertices']} vertices at {mesh['places']} places, {mesh['faces']} faces")
        table.add_row("", f"{mesh['components']} components, {state}{crowded}{flat}")
        table.add_row("size", " x ".join(f"{x:.2f}" for x in facts["size_m"]) + " m (left-right, up, forward)")
        if "frame" in facts:
            frame = facts["frame"]
            table.add_row(
                "file's frame", f"up {frame['up']}, faces {frame['forward']}, {frame['metres_per_unit']:g} m a unit"
            )
        names = [escaped(m["name"]) + (" (textured)" if m["texture"] else "") for m in facts["materials"]]
        table.add_row("materials", ", ".join(names) or "none")
    if "skeleton" in facts:
        skeleton = facts["skeleton"]
        table.add_row("skeleton", f"{skeleton['joints']} joints, root {escaped(skeleton['root'])}")
        limbs = [f"{limb['side']} {limb['kind']}".removeprefix("middle ") for limb in skeleton["limbs"]]
        table.add_row("limbs", ", ".join(limbs) or "none found")
        if "weights" in facts:
            weights = facts["weights"]
            most, without = weights["most_influences"], weights["joints_without"]
            table.add_row("weights", f"at most {most} joints a vertex, {without} joints without weight")
    elif "mesh" in facts:
        table.add_row("skeleton", "none: a bare mesh (jigdoll rig gives it one)")
    for clip in facts["clips"]:
        way = sum(x * x for x in clip["travel_m"]) ** 0.5
        extra = [f"travels {way:.2f} m"] if way > 0.01 else []
        extra += ["moves joints apart"] if clip["moves_joints_apart"] else []
        extra += ["scales joints"] if clip["scales_joints"] else []
        what = f"{clip['seconds']:.2f} s, {clip['frames']} frames, {clip['moving_joints']} joints move"
        table.add_row(f"clip {escaped(clip['name'])}", ", ".join([what, *extra]))
    for repair in facts["repairs"]:
        table.add_row("[yellow]repaired[/]", escaped(repair))
    if not facts["repairs"]:
        table.add_row("repairs", "[green]none needed[/]")
    out.print(table)
