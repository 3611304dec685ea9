"""A path to a character, by suffix."""

from dataclasses import replace
from pathlib import Path

from jigdoll.asset.axes import Axis
from jigdoll.asset.normalize import normalize
from jigdoll.errors import FileFormatError
from jigdoll.formats.rest import motion_asset
from jigdoll.formats.table import MOTIONS, format_of, read_character
from jigdoll.motion import check_rate
from jigdoll.types import Motion, RiggedAsset, Skeleton


def read(path: str | Path, *, fps: float = 30.0) -> RiggedAsset:
    """Read a character in its file's own frame and unit; clips are sampled at `fps`.

    A glTF or FBX file of motion alone gives an asset with an empty mesh.
    """
    check_rate(fps)
    return read_character(Path(path), fps=fps)


def load(
    path: str | Path,
    *,
    up: Axis | None = None,
    forward: Axis | None = None,
    scale: float | None = None,
    fps: float = 30.0,
) -> RiggedAsset:
    """Load a character into our frame: metres, +Y up, facing +Z, feet on y = 0."""
    path = Path(path)
    asset = read(path, fps=fps)
    if not asset.has_mesh:
        raise FileFormatError(
            f"{path.name}: the file holds motion and no body; give a character and use this as its clip"
        )
    return normalize(asset, up=_up_of(path, up), forward=forward, scale=scale, faces_z=_faces_z(path))


def load_clips(
    path: str | Path,
    *,
    up: Axis | None = None,
    forward: Axis | None = None,
    scale: float | None = None,
    fps: float = 30.0,
) -> RiggedAsset:
    """Load a file for its clips: a character, or motion alone (its mesh is empty) from BVH, DeepMimic, glTF, FBX.

    One BVH file of an archive is named as FILE.zip:NAME.
    """
    path, member = split_clip(path)
    if (row := format_of(path)) is not None and row.motion is not None:
        skeleton, motion = row.motion(path, member, scale)
        return motion_asset(motion.name, skeleton, {motion.name: motion})
    asset = read(path, fps=fps)
    asset = normalize(asset, up=_up_of(path, up), forward=forward, scale=scale, faces_z=_faces_z(path))
    if member is None:
        return asset
    clip = find_clip(asset, member)
    return replace(asset, clips={clip.name: clip})


def load_motion(path: str | Path, clip: str | None = None, *, fps: float = 30.0) -> tuple[Skeleton, Motion]:
    """Load a clip and the skeleton that it moves, from any file of `load_clips`; `path` may be FILE:CLIP as well."""
    path, named = split_clip(path)
    wanted = named if clip is None else clip
    if (row := format_of(path)) is not None and row.motion is not None:
        return row.motion(path, wanted, None)
    asset = load_clips(path, fps=fps)
    if wanted is None and len(asset.clips) > 1 and not asset.has_mesh:
        shown = ", ".join(asset.clips)
        raise FileFormatError(f"{path.name}: which of its clips? Name one as {path.name}:CLIP ({shown})")
    return asset.skeleton, find_clip(asset, wanted)


def split_clip(word: str | Path) -> tuple[Path, str | None]:
    """The file and the clip that FILE:CLIP names; without a clip, or where a file has that very name, only the file."""
    text = str(word)
    for at, sign in enumerate(text):
        file = Path(text[:at])
        if sign == ":" and file.suffix.lower() in MOTIONS and not Path(text).exists():
            return file, text[at + 1 :]
    return Path(text), None


def _up_of(path: Path, up: Axis | None) -> Axis | None:
    """+Y where the format says so: glTF's standard does, and the readers of FBX and USD turn what their files name."""
    row = format_of(path)
    return "+y" if up is None and row is not None and row.y_is_up else up


def clips_called(asset: RiggedAsset, name: str) -> list[str]:
    """The clips that a name may mean: in full, after the armature's bar, or as a part; the first of these that fits."""
    if name in asset.clips:
        return [name]
    # Blender writes ARMATURE|CLIP.
    near = [clip for clip in asset.clips if clip.rpartition("|")[2].lower() == name.lower()]
    return near or [clip for clip in asset.clips if name.lower() in clip.lower()]


def _faces_z(path: Path) -> bool:
    """Whether the format's standard says that +Z is the front."""
    row = format_of(path)
    return row is not None and row.faces_z


def find_clip(asset: RiggedAsset, name: str | None = None) -> Motion:
    """A clip of the asset by its name (or a part of it), the first one where no name is given."""
    if not asset.clips:
        raise FileFormatError(f"{asset.name}: the file holds no clips")
    if name is None:
        return next(iter(asset.clips.values()))
    near = clips_called(asset, name)
    if len(near) == 1:
        return asset.clips[near[0]]
    raise FileFormatError(f"{asset.name}: no clip is called {name!r}; the clips are {', '.join(asset.clips)}")
