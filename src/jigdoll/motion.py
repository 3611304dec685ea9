"""Everything that is done to a motion as a whole: resample, join, blend, mirror, take the travel out, close the loop.

A single stretch or frame is `pose[3:9]` or `pose[5]`. What needs to know which way is up or what is across takes the
skeleton as well, because a root bone may lie in any direction at rest.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import pi, radians

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.errors import JigdollError
from jigdoll.kinematics import forward, rest_transforms
from jigdoll.math.rotations import (
    axis_angle_to_quaternion,
    matrix_to_quaternion,
    quaternion_inverse,
    quaternion_multiply,
    quaternion_to_matrix,
    quaternion_to_rotvec,
    rotvec_to_quaternion,
    slerp,
)
from jigdoll.types import Motion, Pose, Skeleton

TURN = radians(15)
"""A heading that ends nearer than this to where it began is that of a straight walk [rad]."""
COURSE = 0.2
"""A way over the ground that is shorter than this share of the skeleton is no course."""
LEAP = 0.12
"""A first frame is false if the joints turn by more than this on average to the second [rad], and far more than ever
after; found on the CMU files, which begin in a T-pose that somebody added."""


def slice_motion(motion: Motion, frames: slice) -> Motion:
    """A stretch of the motion."""
    return replace(motion, pose=motion.pose[frames])


def check_rate(fps: float) -> None:
    """Refuse what is no number of frames per second."""
    if not 0 < fps <= 1000:
        raise JigdollError(f"{fps:g} frames per second is not a rate; give a number above 0, at most 1000")


def resample(motion: Motion, fps: float) -> Motion:
    """The same motion at another rate: rotations turn the shorter way, the rest runs straight."""
    check_rate(fps)
    if len(motion) < 2:
        return replace(motion, fps=fps)
    count = int(motion.seconds * fps + 1e-4) + 1
    at = torch.arange(count, dtype=torch.float64) * (motion.fps / fps)
    left = at.floor().long().clamp(0, len(motion) - 2)
    t = (at - left).clamp(0, 1).to(motion.pose.root.dtype)
    return replace(motion, fps=fps, pose=_between(motion.pose[left], motion.pose[left + 1], t))


def blend(first: Motion, second: Motion, share: float | Float[Tensor, " frames"]) -> Motion:
    """A motion between two of the same length and rate: share 0 is the first, 1 the second, for all frames or each."""
    if len(first) != len(second) or first.fps != second.fps:
        raise JigdollError(
            f"{first.name!r} has {len(first)} frames at {first.fps:g}/s, {second.name!r} {len(second)} at "
            f"{second.fps:g}/s; resample and cut them to the same length before they are blended"
        )
    share = torch.as_tensor(share, dtype=first.pose.root.dtype).expand(len(first))
    return replace(first, pose=_between(first.pose, second.pose, share))


def join(first: Motion, second: Motion, skeleton: Skeleton, *, overlap: int = 8) -> Motion:
    """One motion after the other: the second goes on where the first ends, in its place and heading.

    Over so many frames the first fades into the second; the result is as much shorter.
    """
    overlap = min(overlap, len(first), len(second))
    if overlap < 1:
        raise JigdollError(f"{first.name!r} and {second.name!r} need at least one frame in common to be joined")
    second = resample(second, first.fps) if second.fps != first.fps else second
    start = len(first) - overlap
    moved = place(second, skeleton, like=first.pose[start])
    ramp = torch.linspace(0, 1, overlap + 2, dtype=first.pose.root.dtype)[1:-1]
    middle = _between(first.pose[start:], moved.pose[:overlap], ramp)
    return replace(first, pose=_joined([first.pose[:start], middle, moved.pose[overlap:]]))


def place(motion: Motion, skeleton: Skeleton, *, like: Pose) -> Motion:
    """The motion moved over the ground and turned about the vertical, so that it begins where a pose stands."""
    turn = headings(skeleton, _joined([motion.pose[:1], like[None]]))[1]
    about = _vertical(skeleton, turn)
    rotations = motion.pose.rotations.clone()
    rotations[:, 0] = quaternion_multiply(about.expand(len(motion), 4), rotations[:, 0])
    # The root's displacement is counted from its rest place, which need not be above the origin.
    rest = skeleton.T_parent_joint[0, :3, 3].to(motion.pose.root.dtype)
    matrix = quaternion_to_matrix(axis_angle_to_quaternion(rest.new_tensor([0.0, 1.0, 0.0]), turn.to(rest.dtype)))
    way = motion.pose.root + rest
    ground = rest.new_tensor([1.0, 0.0, 1.0])
    goal = (like.root + rest) * ground + way[0] * (1 - ground)
    root = (way - way[0] * ground) @ matrix.T + goal * ground - rest
    return replace(motion, pose=replace(motion.pose, root=root, rotations=rotations))


def mirror(motion: Motion, skeleton: Skeleton, partners: Sequence[int]) -> Motion:
    """Left and right exchanged: each joint does what the one across did. `partners`: the joint across, or itself."""
    if sorted(partners) != list(range(len(skeleton))):
        raise JigdollError(f"mirroring needs each of the {len(skeleton)} joints once among the partners")
    pose, across = motion.pose, list(partners)
    flip = torch.diag(pose.root.new_tensor([-1.0, 1.0, 1.0]))
    rest = rest_transforms(skeleton)[:, :3, :3].to(pose.root.dtype)
    still = replace(pose, offsets=None, scales=None)
    turned = forward(skeleton, still)[..., :3, :3] @ rest.mT
    world = flip @ turned[..., across, :, :] @ flip @ rest
    above = world[..., [max(parent, 0) for parent in skeleton.parents], :, :].clone()
    above[..., 0, :, :] = torch.eye(3, dtype=world.dtype)
    local = (above @ skeleton.T_parent_joint[:, :3, :3].to(world.dtype)).mT @ world
    onto = rest.mT @ flip @ rest[across]  # the axes of the joint across, mirrored, in this joint's rest frame
    offsets = None if pose.offsets is None else (onto @ pose.offsets[..., across, :, None])[..., 0]
    scales = None if pose.scales is None else (onto.square() @ pose.scales[..., across, :, None])[..., 0]
    return replace(motion, pose=Pose(pose.root @ flip, matrix_to_quaternion(local), offsets, scales))


def has_false_start(motion: Motion) -> bool:
    """Whether the motion leaps out of its first frame: many captured files begin with an added T-pose."""
    q = motion.pose.rotations
    steps = quaternion_to_rotvec(quaternion_multiply(q[1:], quaternion_inverse(q[:-1]))).norm(dim=-1).mean(-1)
    return len(steps) >= 4 and float(steps[0]) > max(LEAP, 8 * float(steps[1:].median()))


def trim_false_start(motion: Motion) -> Motion:
    """The motion without a first frame that does not belong to it."""
    return slice_motion(motion, slice(1, None)) if has_false_start(motion) else motion


def in_place(motion: Motion) -> Motion:
    """The motion without its steady travel over the ground; sway and bounce stay."""
    if len(motion) < 2:
        return motion
    travel = _travel(motion)
    ramp = torch.linspace(0, 1, len(motion), dtype=travel.dtype)[:, None]
    return replace(motion, pose=replace(motion.pose, root=motion.pose.root - ramp * travel))


def close_loop(motion: Motion, skeleton: Skeleton) -> Motion:
    """The motion with its last frame equal to the first, but for the travel and a turn.

    The gap is spread over the whole clip. A heading that turns with the course over the ground stays (a closed one
    would let the feet slide sideways): each round then begins where and as the one before ended.
    """
    if len(motion) < 3:
        return motion
    pose = motion.pose
    ramp = torch.linspace(0, 1, len(motion), dtype=pose.root.dtype)
    goal = pose.rotations[0]
    if (turn := kept_turn(motion, skeleton)) != 0.0:
        about = _vertical(skeleton, torch.tensor(turn))
        goal = torch.cat([quaternion_multiply(about, goal[0])[None], goal[1:]])
    gap = quaternion_to_rotvec(quaternion_multiply(quaternion_inverse(pose.rotations[-1]), goal))
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


def kept_turn(motion: Motion, skeleton: Skeleton) -> float:
    """The turn about the vertical that belongs to the motion [rad]: 0 where it goes straight and only sways.

    A turn on the spot belongs to it, and one that the course over the ground follows at least half of the way.
    """
    turn = float(headings(skeleton, motion.pose)[-1])
    if abs(turn) < TURN:
        return 0.0
    root = motion.pose.root.detach().double().numpy()[:, [0, 2]]
    quarters = np.diff(root[np.linspace(0, len(root) - 1, 5).round().astype(int)], axis=0)
    lengths = np.linalg.norm(quarters, axis=1)
    rest = rest_transforms(skeleton)[:, :3, 3]
    if lengths.sum() < COURSE * float((rest.amax(0) - rest.amin(0)).norm()):
        return turn
    bearing = np.unwrap(np.arctan2(quarters[:, 0], quarters[:, 1]))
    course = (bearing[-1] - bearing[0]) * 4 / 3  # from the middle of the first quarter to that of the last
    return turn if course * np.sign(turn) >= 0.5 * abs(turn) else 0.0


def headings(skeleton: Skeleton, pose: Pose) -> Float[Tensor, " frames"]:
    """How far the root has turned about the vertical since the first frame [rad], counted through whole turns."""
    rest = matrix_to_quaternion(skeleton.T_parent_joint[0, :3, :3]).to(pose.rotations.dtype)
    world = quaternion_multiply(*torch.broadcast_tensors(rest, pose.rotations[..., 0, :].detach()))
    turned = quaternion_multiply(*torch.broadcast_tensors(world, quaternion_inverse(world[0])))
    angles = 2 * np.arctan2(turned[..., 2].double().numpy(), turned[..., 0].double().numpy())
    return torch.from_numpy(np.unwrap(angles - angles[0], period=2 * pi)).to(pose.rotations.dtype)


def _vertical(skeleton: Skeleton, turn: Float[Tensor, ""]) -> Float[Tensor, "4"]:
    """A turn about the world's vertical as it goes before the root's own rotation."""
    axis = skeleton.T_parent_joint[0, :3, :3].mT @ skeleton.T_parent_joint.new_tensor([0.0, 1.0, 0.0])
    return axis_angle_to_quaternion(axis, turn.to(axis.dtype))


def _between(a: Pose, b: Pose, t: Float[Tensor, " frames"]) -> Pose:
    """Poses a share of the way from one to the other; offsets and scales that only one has fade."""

    def straight(x: Tensor, y: Tensor) -> Tensor:
        return torch.lerp(x, y, t.reshape(-1, *[1] * (x.ndim - 1)))

    offsets, scales = _paired(a.offsets, b.offsets, 0.0), _paired(a.scales, b.scales, 1.0)
    return Pose(
        root=straight(a.root, b.root),
        rotations=slerp(a.rotations, b.rotations, t[:, None]),
        offsets=None if offsets is None else straight(*offsets),
        scales=None if scales is None else straight(*scales),
    )


def _joined(poses: Sequence[Pose]) -> Pose:
    """Stretches of poses, one after the other."""

    def extra(name: str, neutral: float) -> Tensor | None:
        found = [getattr(pose, name) for pose in poses]
        if all(values is None for values in found):
            return None
        plain = [torch.full_like(pose.rotations[..., :3], neutral) for pose in poses]
        return torch.cat([like if values is None else values for values, like in zip(found, plain, strict=True)])

    return Pose(
        torch.cat([pose.root for pose in poses]),
        torch.cat([pose.rotations for pose in poses]),
        extra("offsets", 0.0),
        extra("scales", 1.0),
    )


def _paired(a: Tensor | None, b: Tensor | None, neutral: float) -> tuple[Tensor, Tensor] | None:
    if a is None:
        return None if b is None else (torch.full_like(b, neutral), b)
    return a, torch.full_like(a, neutral) if b is None else b


def _travel(motion: Motion) -> Float[Tensor, "3"]:
    """The way over the ground from the first frame to the last."""
    way = motion.pose.root[-1] - motion.pose.root[0]
    return way * way.new_tensor([1.0, 0.0, 1.0])
