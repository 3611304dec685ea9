"""A path to a character, by suffix."""

from pathlib import Path

from jigdoll.asset.normalize import Axis, normalize
from jigdoll.errors import FileFormatError, JigdollError
from jigdoll.types import Motion, RiggedAsset, Skeleton

CHARACTER_SUFFIXES = (".glb", ".gltf", ".vrm", ".fbx", ".obj", ".usd", ".usda", ".usdc", ".usdz")
MOTION_SUFFIXES = (".bvh", ".txt", *CHARACTER_SUFFIXES)


def read(path: str | Path, *, fps: float = 30.0) -> RiggedAsset:
    """Read a character in its file's own frame and unit; clips are sampled at `fps`."""
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
    if up is None and path.suffix.lower() != ".obj":
        up = "+y"  # glTF's standard says so, and the readers of FBX and USD turn what their files name as up
    return normalize(read(path, fps=fps), up=up, forward=forward, scale=scale)


def load_motion(path: str | Path, clip: str | None = None, *, fps: float = 30.0) -> tuple[Skeleton, Motion]:
    """Load a clip and the skeleton that it moves: a BVH file, DeepMimic's .txt, or a clip of a character file."""
    path = Path(path)
    if path.suffix.lower() == ".bvh":
        from jigdoll.formats import bvh

        return bvh.read(path)
    if path.suffix.lower() == ".txt":
        from jigdoll.formats import deepmimic

        return deepmimic.read(path)
    asset = load(path, fps=fps)
    return asset.skeleton, find_clip(asset, clip)


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
