"""The command line: one typed function per verb."""

import json
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from jigdoll.errors import JigdollError, RepairWarning

if TYPE_CHECKING:
    from jigdoll.types import Motion, RiggedAsset

Positional = tyro.conf.Positional
Axis = Literal["+x", "-x", "+y", "-y", "+z", "-z"]
Up = Annotated[Axis | None, tyro.conf.arg(help="The file's axis that points up; guessed where it is not given.")]
Forward = Annotated[Axis | None, tyro.conf.arg(help="The file's axis that the character faces; guessed.")]
Scale = Annotated[float | None, tyro.conf.arg(help="Metres per unit of the file; guessed.")]
Json = Annotated[bool, tyro.conf.arg(name="json", help="Print JSON for machines instead of tables.")]


def main() -> None:
    """Run a verb; errors a user can mend end with exit code 1 and one readable line."""
    warnings.showwarning = _show_warning
    try:
        words = sys.argv[1:]
        group = GROUPS.get(words[0]) if words else None
        if group is None:
            tyro.extras.subcommand_cli_from_dict(VERBS, prog="jigdoll", args=words or ["--help"])
        else:
            prog = f"jigdoll {words[0]}"
            tyro.extras.subcommand_cli_from_dict(group, prog=prog, args=words[1:] or ["--help"])
    except JigdollError as error:
        _console(error=True).print(f"[bold red]error:[/] {_escaped(str(error))}", highlight=False)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()


# ------------------------------------------------------------------------------------------------------------- verbs


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
    if as_json:
        sys.stdout.write(json.dumps(facts, indent=2) + "\n")
    else:
        _print_facts(facts)


def convert(
    source: Positional[str],
    target: Positional[Path],
    /,
    *,
    clip: str | None = None,
    clips: bool = True,
    fps: float | None = None,
    in_place: bool = False,
    loop: bool = False,
    up: Up = None,
    forward: Forward = None,
    scale: Scale = None,
    fresh: bool = False,
) -> None:
    """Write a character (a file or zoo:NAME) in another format, with its clips.

    Args:
        source: A character file, or zoo:NAME.
        target: What to write: .glb, .bvh, .usd, .usda, .usdc.
        clip: Only this clip (BVH and USD hold one), by name or a part of it; or a motion file to retarget.
        clips: Whether clips are written at all.
        fps: Frames per second of the written clips.
        in_place: Take the steady travel out.
        loop: Make the end of each clip meet its start.
        fresh: Write a clean new file even if the source is glTF (by default the original is kept and extended).
    """
    from jigdoll.export import ExportOptions, save

    asset = _open(source, up=up, forward=forward, scale=scale, fps=fps or 30.0)
    motions: list[Motion] = []
    if clip is not None:
        motions = [_clip_for(asset, clip, fps=fps or 30.0)]
    elif clips and (target.suffix.lower() == ".bvh" or not _keeps_original(asset, target, fresh)):
        motions = list(asset.clips.values())
        if target.suffix.lower() in (".bvh", ".usd", ".usda", ".usdc"):
            motions = motions[:1]
    if fresh:
        asset = replace(asset, source=None)
    options = ExportOptions(fps=fps, in_place=in_place, loop=loop)
    _said(save(target, asset, motions, options=options), f"{len(motions)} clips written")


def zoo() -> None:
    """The built-in characters: zoo list, zoo make, zoo sheet."""


def zoo_list(*, as_json: Json = False) -> None:
    """List the built-in characters and what each can do."""
    from rich.table import Table

    from jigdoll import zoo
    from jigdoll.zoo.gaits import actions
    from jigdoll.zoo.skeleton import build_skeleton
    from jigdoll.zoo.species import species_named

    rows = []
    for name in zoo.SPECIES:
        skeleton = build_skeleton(species_named(name))
        rows.append({"name": name, "joints": len(skeleton), "actions": list(actions(skeleton))})
    if as_json:
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
        return
    table = Table("name", "joints", "actions", title=f"{len(rows)} built-in characters")
    for row in rows:
        table.add_row(row["name"], str(row["joints"]), " ".join(row["actions"]))
    _console().print(table)


def zoo_make(
    name: Positional[str],
    target: Positional[Path],
    /,
    *,
    seed: int = 0,
    action: str | None = None,
    seconds: float = 2.0,
    fps: float = 24.0,
    loop: bool = False,
) -> None:
    """Make a built-in character and write it, with a reference gait on request.

    Args:
        name: Which character: see `jigdoll zoo list`.
        target: What to write: .glb, .bvh, .usd, .usda, .usdc.
        seed: 0 is the species itself, other seeds vary its proportions and colours.
        action: A reference gait: walk, run, jump, idle ...
        seconds: Length of the gait.
        fps: Frames per second of the gait.
        loop: End in the pose that it began with.
    """
    from jigdoll import zoo
    from jigdoll.export import save
    from jigdoll.zoo.gaits import reference_motion

    asset = zoo.make(name, seed=seed)
    motions = [] if action is None else [reference_motion(asset, action, seconds=seconds, fps=fps, loop=loop)]
    _said(save(target, asset, motions))


def zoo_sheet(
    target: Positional[Path], /, *, action: str = "walk", seed: int = 0, size: int = 160, columns: int = 6
) -> None:
    """Draw all built-in characters, at rest and in the middle of an action, as one picture.

    Args:
        target: The PNG to write.
        action: The action beside the rest pose.
        seed: Which variation of each character.
        size: Width and height of one picture [px].
        columns: Characters per row; each takes two pictures.
    """
    from jigdoll.gallery import zoo_sheet as draw_sheet

    with _progress() as progress:
        _said(draw_sheet(target, action=action, seed=seed, size=size, columns=columns, progress=progress))


def doctor(*, as_json: Json = False) -> None:
    """Check the installation: versions, optional parts, what each missing one would give."""
    from rich.table import Table

    from jigdoll.diagnosis import diagnose

    findings = diagnose()
    if as_json:
        sys.stdout.write(json.dumps(findings, indent=2) + "\n")
    else:
        table = Table("part", "state", "for")
        for finding in findings:
            color = {"ok": "green", "missing": "yellow", "broken": "red"}[finding["state"]]
            table.add_row(finding["part"], f"[{color}]{finding['state']}[/] {finding['detail']}", finding["purpose"])
        _console().print(table)
    if any(finding["state"] == "broken" for finding in findings):
        sys.exit(1)


def demo(*, out: Path = Path("out/demo"), name: str = "fox", action: str = "walk", seconds: float = 2.0) -> None:
    """Animate a built-in character with its reference gait (not distilled from text): GLB, BVH, video, picture.

    Args:
        out: The folder to write to.
        name: Which built-in character.
        action: Which reference gait.
        seconds: Length of the clip.
    """
    from jigdoll.gallery import demo as run_demo

    with _progress() as progress:
        written = run_demo(out, name=name, action=action, seconds=seconds, progress=progress)
    console = _console()
    console.print(
        f"A built-in {name} with its procedural reference gait [bold]{action}[/]. "
        "Motion from text is not part of this version yet."
    )
    for path in written:
        console.print(f"  {path}", highlight=False)


def render(
    source: Positional[str],
    target: Positional[Path],
    clip: Positional[str | None] = None,
    /,
    *,
    action: str | None = None,
    mode: Literal["mesh", "splats", "clay"] = "mesh",
    size: tuple[int, int] = (480, 360),
    azimuth: float = 60.0,
    elevation: float = 12.0,
    fps: float = 24.0,
    seconds: float = 2.0,
    ground: bool = True,
    shadow: bool = True,
    skeleton: bool = False,
    frames: int = 12,
    up: Up = None,
    forward: Forward = None,
    scale: Scale = None,
) -> None:
    """Draw a character and its clip with ground, shadow and a camera that follows.

    Args:
        source: A character file, or zoo:NAME.
        target: .mp4, .gif or .webp for a film, .png for a contact sheet.
        clip: A clip of the file by name, or a motion file; a turntable where the character has none.
        action: For zoo:NAME: the reference gait to show.
        mode: Textured triangles, Gaussian splats, or splats in clay.
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
    from jigdoll.gallery import film

    asset = _open(source, up=up, forward=forward, scale=scale, fps=fps)
    motion = _motion_of(asset, source, clip=clip, action=action, fps=fps, seconds=seconds)
    with _progress() as progress:
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
    _said(written)


# ------------------------------------------------------------------------------------------------------------ helpers


def _open(
    source: str, *, up: Axis | None, forward: Axis | None, scale: float | None, fps: float = 30.0
) -> "RiggedAsset":
    """A character from a file or, as zoo:NAME, from the built-in ones."""
    if source.startswith("zoo:"):
        from jigdoll import zoo

        return zoo.make(source.removeprefix("zoo:"))
    from jigdoll.asset.load import load

    return load(Path(source), up=up, forward=forward, scale=scale, fps=fps)


def _clip_for(asset: "RiggedAsset", clip: str, *, fps: float) -> "Motion":
    """A clip of the asset by name, or the clip of another file brought onto the asset's skeleton."""
    from jigdoll.asset.load import MOTION_SUFFIXES, find_clip, load_motion
    from jigdoll.rig.retarget import retarget

    path = Path(clip)
    if path.suffix.lower() in MOTION_SUFFIXES and clip not in asset.clips:
        skeleton, motion = load_motion(path, fps=fps)
        return retarget(motion, skeleton, asset.skeleton)
    return find_clip(asset, clip)


def _motion_of(
    asset: "RiggedAsset", source: str, *, clip: str | None, action: str | None, fps: float, seconds: float
) -> "Motion | None":
    if clip is not None:
        return _clip_for(asset, clip, fps=fps)
    if action is not None:
        from jigdoll.zoo.gaits import reference_motion

        if not source.startswith("zoo:"):
            raise JigdollError("--action is for built-in characters (zoo:NAME); name a clip of the file instead")
        return reference_motion(asset, action, seconds=seconds, fps=fps)
    return next(iter(asset.clips.values()), None)


def _keeps_original(asset: "RiggedAsset", target: Path, fresh: bool) -> bool:
    """Whether the written file is the original one, which holds its clips already."""
    from_gltf = asset.source is not None and asset.source.format == "gltf"
    return from_gltf and not fresh and target.suffix.lower() in (".glb", ".vrm")


def _print_facts(facts: dict[str, Any]) -> None:
    from rich.table import Table

    console = _console()
    table = Table(show_header=False, title=f"{facts['file']}  ({facts['bytes'] / 1e6:.2f} MB)")
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
        names = [m["name"] + (" (textured)" if m["texture"] else "") for m in facts["materials"]]
        table.add_row("materials", ", ".join(names) or "none")
    if "skeleton" in facts:
        skeleton = facts["skeleton"]
        table.add_row("skeleton", f"{skeleton['joints']} joints, root {_escaped(skeleton['root'])}")
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
        table.add_row(f"clip {_escaped(clip['name'])}", ", ".join([what, *extra]))
    for repair in facts["repairs"]:
        table.add_row("[yellow]repaired[/]", _escaped(repair))
    if not facts["repairs"]:
        table.add_row("repairs", "[green]none needed[/]")
    console.print(table)


def _console(*, error: bool = False) -> Any:
    from rich.console import Console

    return Console(stderr=error)


def _progress() -> Any:
    """A bar with the time that is left; the library calls it as progress(fraction, what)."""
    from contextlib import contextmanager

    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    @contextmanager
    def bar() -> Any:
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
        with Progress(*columns, console=_console(error=True), transient=True) as live:
            task = live.add_task("", total=1.0)

            def report(fraction: float, what: str = "") -> None:
                live.update(task, completed=fraction, description=what)

            yield report

    return bar()


def _said(path: Path, note: str = "") -> None:
    _console().print(f"{path}{f'  ({note})' if note else ''}", highlight=False)


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def _show_warning(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
    label = "repaired" if issubclass(category, RepairWarning) else "warning"
    _console(error=True).print(f"[yellow]{label}:[/] {_escaped(str(message))}", highlight=False)


VERBS: dict[str, Callable[..., None]] = {
    "inspect": inspect,
    "convert": convert,
    "render": render,
    "zoo": zoo,
    "demo": demo,
    "doctor": doctor,
}
GROUPS: dict[str, dict[str, Callable[..., None]]] = {"zoo": {"list": zoo_list, "make": zoo_make, "sheet": zoo_sheet}}
