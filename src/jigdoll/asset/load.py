"""A path to a character, by suffix."""

from dataclasses import replace
from pathlib import Path

from jigdoll.asset.normalize import Axis, normalize
from jigdoll.errors import FileFormatError, JigdollError
from jigdoll.formats.rest import motion_asset
from jigdoll.types import Motion, RiggedAsset, Skeleton

CHARACTER_SUFFIXES = (".glb", ".gltf", ".vrm", ".fbx", ".obj", ".usd", ".usda", ".usdc", ".usdz")
MOTION_SUFFIXES = (".bvh", ".txt", ".zip", *CHARACTER_SUFFIXES)
"""Files that hold clips; one of several is named as FILE:CLIP (`split_clip`)."""


def read(path: str | Path, *, fps: float = 30.0) -> RiggedAsset:
    """Read a character in its file's own frame and unit; clips are sampled at `fps`.

    A glTF or FBX file of motion alone gives an asset with an empty mesh.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if not 0 < fps <= 1000:
        raise JigdollError(f"{fps:g} frames per second is not a rate; give a number above 0, at most 1000")
    if suffix in (".glb", ".gltf", ".vrm"):
        from jigdoll.formats import gltf

        return gltf.read(path, fps=fps)
    if suffix == ".fbx":
        from jigdoll.formats import fbx

        return fbx.read(path, fps=fps)
    if suffix == ".obj":
        from jigdoll.formats import obj

        return obj.read(path)
    if suffix in (".usd", ".usda", ".usdc", ".usdz"):
        from jigdoll.formats import usd

        return usd.read(path)
    if suffix == ".bvh":
        raise FileFormatError(f"{path.name}: BVH holds motion and no body; give a character and use this as its clip")
    known = ", ".join(CHARACTER_SUFFIXES)
    raise FileFormatError(f"{path.name}: cannot tell what {suffix or 'a file without suffix'} is; known are {known}")


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
    return normalize(asset, up=_up_of(path, up), forward=forward, scale=scale)


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
    suffix = path.suffix.lower()
    if suffix in (".bvh", ".txt", ".zip"):
        skeleton, motion = _one_motion(path, member, scale=scale)
        return motion_asset(motion.name, skeleton, {motion.name: motion})
    asset = normalize(read(path, fps=fps), up=_up_of(path, up), forward=forward, scale=scale)
    if member is None:
        return asset
    clip = find_clip(asset, member)
    return replace(asset, clips={clip.name: clip})


def load_motion(path: str | Path, clip: str | None = None, *, fps: float = 30.0) -> tuple[Skeleton, Motion]:
    """Load a clip and the skeleton that it moves, from any file of `load_clips`; `path` may be FILE:CLIP as well."""
    path, named = split_clip(path)
    wanted = named if clip is None else clip
    if path.suffix.lower() in (".bvh", ".txt", ".zip"):
        return _one_motion(path, wanted)
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
        if sign == ":" and file.suffix.lower() in MOTION_SUFFIXES and not Path(text).exists():
            return file, text[at + 1 :]
    return Path(text), None


def _one_motion(path: Path, member: str | None, *, scale: float | None = None) -> tuple[Skeleton, Motion]:
    """The clip of a file that holds one, or of one file in an archive."""
    if path.suffix.lower() == ".txt":
        from jigdoll.formats import deepmimic

        return deepmimic.read(path)
    from jigdoll.formats import archive, bvh

    if path.suffix.lower() == ".zip":
        name, data = archive.read_member(path, member, suffixes=(".bvh",))
        return bvh.read(path / name, scale=scale, data=data)
    return bvh.read(path, scale=scale)


def _up_of(path: Path, up: Axis | None) -> Axis | None:
    """+Y where the format says so: glTF's standard does, and the readers of FBX and USD turn what their files name."""
    return "+y" if up is None and path.suffix.lower() != ".obj" else up


def find_clip(asset: RiggedAsset, name: str | None = None) -> Motion:
    """A clip of the asset by its name (or a part of it), the first one where no name is given."""
    if not asset.clips:
        raise FileFormatError(f"{asset.name}: the file holds no clips")
    if name is None:
        return next(iter(asset.clips.values()))
    if name in asset.clips:
        return asset.clips[name]
    near = [clip for clip in asset.clips if name.lower() in clip.lower()]
    if len(near) == 1:
        return asset.clips[near[0]]
    raise FileFormatError(f"{asset.name}: no clip is called {name!r}; the clips are {', '.join(asset.clips)}")
