"""What the verbs share: how characters are opened, progress is shown and things are said."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from jigdoll.errors import JigdollError, RepairWarning

if TYPE_CHECKING:
    from collections.abc import Callable

    from jigdoll.types import Motion, RiggedAsset

Axis = Literal["+x", "-x", "+y", "-y", "+z", "-z"]
Up = Annotated[Axis | None, tyro.conf.arg(help="The file's axis that points up; guessed where it is not given.")]
Forward = Annotated[Axis | None, tyro.conf.arg(help="The file's axis that the character faces; guessed.")]
Scale = Annotated[float | None, tyro.conf.arg(help="Metres per unit of the file; guessed.")]
Json = Annotated[bool, tyro.conf.arg(name="json", help="Print JSON for machines instead of tables.")]


def open_character(
    source: str, *, up: Axis | None, forward: Axis | None, scale: float | None, fps: float = 30.0
) -> "RiggedAsset":
    """A character from a file or, as zoo:NAME, from the built-in ones."""
    if source.startswith("zoo:"):
        from jigdoll import zoo

        return zoo.make(source.removeprefix("zoo:"))
    from jigdoll.asset.load import load

    return load(Path(source), up=up, forward=forward, scale=scale, fps=fps)


def open_clips(
    source: str, *, up: Axis | None, forward: Axis | None, scale: float | None, fps: float = 30.0
) -> "RiggedAsset":
    """A character, or motion alone: a BVH file, a glTF or FBX file without a mesh, one clip as FILE:CLIP."""
    if source.startswith("zoo:"):
        return open_character(source, up=up, forward=forward, scale=scale, fps=fps)
    from jigdoll.asset.load import load_clips

    return load_clips(source, up=up, forward=forward, scale=scale, fps=fps)


def clip_for(asset: "RiggedAsset", clip: str, *, fps: float) -> "Motion":
    """A clip of the asset by name, or the clip of another file brought onto the asset's skeleton."""
    from jigdoll.asset.load import find_clip, load_clips
    from jigdoll.rig.retarget import retarget

    if is_motion_file(asset, clip):
        source = load_clips(clip, fps=fps)
        return retarget(find_clip(source), source, asset)
    return find_clip(asset, clip)


def is_motion_file(asset: "RiggedAsset", clip: str) -> bool:
    """Whether the word names a file (or FILE:CLIP) rather than one of the asset's clips."""
    from jigdoll.asset.load import MOTION_SUFFIXES, split_clip

    return split_clip(clip)[0].suffix.lower() in MOTION_SUFFIXES and clip not in asset.clips


def clips_that_fit(asset: "RiggedAsset", target: Path) -> "list[Motion]":
    """The asset's clips, or the first one for formats that hold only one."""
    clips = list(asset.clips.values())
    return clips if target.suffix.lower() in (".glb", ".vrm") else clips[:1]


def check_target(target: Path, known: tuple[str, ...]) -> None:
    """Refuse a target that cannot be written before any work is done."""
    if target.suffix.lower() not in known:
        what = target.suffix or "without a suffix"
        raise JigdollError(f"{target.name}: cannot write {what}; known are {', '.join(known)}")


def motion_of(
    asset: "RiggedAsset", source: str, *, clip: str | None, action: str | None, fps: float, seconds: float
) -> "Motion | None":
    if clip is not None:
        return clip_for(asset, clip, fps=fps)
    if action is not None:
        from jigdoll.zoo.gaits import reference_motion

        if not source.startswith("zoo:"):
            raise JigdollError("--action is for built-in characters (zoo:NAME); name a clip of the file instead")
        return reference_motion(asset, action, seconds=seconds, fps=fps)
    return next(iter(asset.clips.values()), None)


@contextmanager
def progress_bar() -> "Iterator[Callable[[float, str], None]]":
    """A bar with the time that is left; the library calls it as progress(fraction, what)."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(error=True), transient=True) as live:
        task = live.add_task("", total=1.0)

        def report(fraction: float, what: str = "") -> None:
            live.update(task, completed=fraction, description=what)

        yield report


def console(*, error: bool = False) -> Any:
    from rich.console import Console

    return Console(stderr=error)


def said(path: Path, note: str = "") -> None:
    """Name a written file."""
    console().print(f"{path}{f'  ({note})' if note else ''}", highlight=False, markup=False, soft_wrap=True)


def escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def show_warning(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
    label = "repaired" if issubclass(category, RepairWarning) else "warning"
    console(error=True).print(f"[yellow]{label}:[/] {escaped(str(message))}", highlight=False, soft_wrap=True)


def clip_or_gait(asset: "RiggedAsset", word: str, *, fps: float, seconds: float) -> "Motion":
    """A motion file, a clip of the asset, or a gait that its body can do."""
    from jigdoll.zoo.gaits import actions, reference_motion

    near = [name for name in asset.clips if word.lower() in name.lower()]
    if is_motion_file(asset, word) or word in asset.clips or len(near) == 1:
        return clip_for(asset, word, fps=fps)
    try:
        gaits = actions(asset)
    except JigdollError:
        gaits = ()
    if word in gaits and not near:
        return reference_motion(asset, word, fps=fps, seconds=seconds)
    if len(near) > 1:
        raise JigdollError(
            f"{asset.name}: {word!r} may be any of the clips {', '.join(near)}; name one of them in full"
        )
    clips = f"the clips are {', '.join(asset.clips)}" if asset.clips else "the file holds no clips"
    could = f"; gaits for this body are {', '.join(gaits)}" if gaits else ""
    raise JigdollError(f"{asset.name}: no clip is called {word!r}; {clips}{could}; a .bvh or .glb file serves as well")
