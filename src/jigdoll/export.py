"""Write characters and clips, by suffix."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jigdoll.formats.table import check_target, write_character
from jigdoll.motion import close_loop, in_place, resample
from jigdoll.types import Motion, RiggedAsset, Skeleton


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
    check_target(path)
    return write_character(path, asset, [prepare(motion, asset.skeleton, options) for motion in motions])


def prepare(motion: Motion, skeleton: Skeleton, options: ExportOptions) -> Motion:
    """The clip as the options want it."""
    if options.fps is not None and options.fps != motion.fps:
        motion = resample(motion, options.fps)
    if options.loop:
        motion = close_loop(motion, skeleton)  # after resampling, which may cut off a part of the last frame
    if options.in_place:
        motion = in_place(motion)
    return motion
