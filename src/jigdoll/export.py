"""Write characters and clips, by suffix."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jigdoll.errors import JigdollError
from jigdoll.motion import close_loop, in_place, resample
from jigdoll.types import Motion, RiggedAsset

WRITABLE = (".glb", ".vrm", ".fbx", ".bvh", ".usd", ".usda", ".usdc")


@dataclass(frozen=True)
class ExportOptions:
    """How a clip is written."""

    fps: float | None = None
    """Frames per second; the clip's own where none is given."""
    in_place: bool = False
    """Take the steady travel out, so that the game engine moves the character."""
    loop: bool = False
    """Make the end meet the start."""


def save(
    path: str | Path, asset: RiggedAsset, motions: Sequence[Motion] = (), *, options: ExportOptions = ExportOptions()
) -> Path:
    """Write a character with clips; a GLB that came from a GLB keeps everything that the original holds."""
    path = Path(path)
    suffix = path.suffix.lower()
    motions = [prepare(motion, options) for motion in motions]
    if suffix in (".glb", ".vrm"):
        from jigdoll.formats import gltf

        return gltf.write(path, asset, motions)
    if suffix == ".fbx":
        from jigdoll.formats import fbx

        return fbx.write(path, asset, motions)
    if suffix == ".bvh":
        from jigdoll.formats import bvh

        if len(motions) != 1:
            raise JigdollError(f"{path.name}: a BVH file holds exactly one clip, not {len(motions)}; choose one")
        bvh.write(path, asset.skeleton, motions[0])
        return path
    if suffix in (".usd", ".usda", ".usdc"):
        from jigdoll.formats import usd

        if len(motions) > 1:
            raise JigdollError(f"{path.name}: a USD file holds at most one clip, not {len(motions)}; choose one")
        usd.write(path, asset, motions[0] if motions else None)
        return path
    raise JigdollError(f"{path.name}: cannot write {suffix or 'without a suffix'}; known are {', '.join(WRITABLE)}")


def prepare(motion: Motion, options: ExportOptions) -> Motion:
    """The clip as the options want it."""
    if options.fps is not None and options.fps != motion.fps:
        motion = resample(motion, options.fps)
    if options.loop:
        motion = close_loop(motion)  # after resampling, which may cut off a part of the last frame
    if options.in_place:
        motion = in_place(motion)
    return motion
