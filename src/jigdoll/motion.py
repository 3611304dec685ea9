"""Everything that is done to a motion as a whole: resample it, take the travel out, close the loop."""

from dataclasses import replace

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
from jigdoll.types import Motion, Pose


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
