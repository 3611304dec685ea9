"""Write characters and clips: resample, take the travel out, close the loop, then by suffix."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.errors import JigdollError
from jigdoll.math.rotations import (
    quaternion_inverse,
    quaternion_multiply,
    quaternion_to_rotvec,
    rotvec_to_quaternion,
    slerp,
)
from jigdoll.types import Motion, Pose, RiggedAsset

WRITABLE = (".glb", ".vrm", ".bvh", ".usd", ".usda", ".usdc")


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


def resample(motion: Motion, fps: float) -> Motion:
    """The same motion at another rate: rotations turn the shorter way, the rest runs straight."""
    if not 0 < fps <= 1000:
        raise JigdollError(f"{fps:g} frames per second is not a rate; give a number above 0, at most 1000")
    if len(motion) < 2:
        return replace(motion, fps=fps)
    count = int(motion.seconds * fps + 1e-4) + 1
    at = torch.arange(count, dtype=torch.float64) * (motion.fps / fps)
    left = at.floor().long().clamp(0, len(motion) - 2)
    t = (at - left).clamp(0, 1).to(motion.pose.root.dtype)
    pose = motion.pose

    def straight(values: Tensor) -> Tensor:
        return torch.lerp(values[left], values[left + 1], t.reshape(-1, *[1] * (values.ndim - 1)))

    return replace(
        motion,
        fps=fps,
        pose=Pose(
            root=straight(pose.root),
            rotations=slerp(pose.rotations[left], pose.rotations[left + 1], t[:, None]),
            offsets=None if pose.offsets is None else straight(pose.offsets),
            scales=None if pose.scales is None else straight(pose.scales),
        ),
    )


def in_place(motion: Motion) -> Motion:
    """The motion without its steady travel over the ground; sway and bounce stay."""
    if len(motion) < 2:
        return motion
    travel = _travel(motion)
    ramp = torch.linspace(0, 1, len(motion), dtype=travel.dtype)[:, None]
    return replace(motion, pose=replace(motion.pose, root=motion.pose.root - ramp * travel))


def close_loop(motion: Motion) -> Motion:
    """The motion with its last frame equal to the first, but for the travel; the gap is spread over the whole clip."""
    if len(motion) < 3:
        return motion
    pose = motion.pose
    ramp = torch.linspace(0, 1, len(motion), dtype=pose.root.dtype)
    gap = quaternion_to_rotvec(quaternion_multiply(quaternion_inverse(pose.rotations[-1]), pose.rotations[0]))
    rotations = quaternion_multiply(pose.rotations, rotvec_to_quaternion(ramp[:, None, None] * gap))

    def closed(values: Tensor, keep: Float[Tensor, "..."] | float = 0.0) -> Tensor:
        miss = values[0] + keep - values[-1]
        return values + ramp.reshape(-1, *[1] * (values.ndim - 1)) * miss

    return replace(
        motion,
        pose=Pose(
            root=closed(pose.root, _travel(motion)),
            rotations=rotations,
            offsets=None if pose.offsets is None else closed(pose.offsets),
            scales=None if pose.scales is None else closed(pose.scales),
        ),
    )


def _travel(motion: Motion) -> Float[Tensor, "3"]:
    """The way over the ground from the first frame to the last."""
    way = motion.pose.root[-1] - motion.pose.root[0]
    return way * way.new_tensor([1.0, 0.0, 1.0])
