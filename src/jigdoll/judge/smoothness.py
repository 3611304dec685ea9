"""How a clip flows: jerk, amount of motion, whether it closes into a loop."""

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray

from jigdoll.judge.trace import Trace
from jigdoll.math.rotations import quaternion_inverse, quaternion_multiply, quaternion_to_rotvec
from jigdoll.types import Motion

MOVES = 1e-3
"""A joint that turns less than this in every step holds still [rad]."""


def angle_jerk(motion: Motion) -> float:
    """Mean third time derivative of the joint angles [rad / s^3], over the joints that move.

    The first difference is the exact turn between two frames, so no choice of angles and no jump at 180 degrees
    matters.
    """
    q = motion.pose.rotations.detach().double()
    q = q / q.norm(dim=-1, keepdim=True)
    turns = quaternion_to_rotvec(quaternion_multiply(quaternion_inverse(q[:-1]), q[1:]))
    moving = (turns.norm(dim=-1) > MOVES).any(0)
    if len(turns) < 3 or not bool(moving.any()):
        return 0.0
    third = torch.diff(turns[:, moving], n=2, dim=0).norm(dim=-1)
    return float(third.mean()) * motion.fps**3


def position_jerk(trace: Trace, length: float) -> float:
    """Mean third time derivative of the joint positions [body lengths / s^3]."""
    if len(trace.joints) < 4:
        return 0.0
    third = np.linalg.norm(np.diff(trace.joints, n=3, axis=0), axis=-1)
    return float(third.mean()) * trace.fps**3 / length


def motion_amount(trace: Trace, length: float) -> float:
    """Mean speed of the joints against the body's centre [body lengths / s]: zero for a body that only glides."""
    inner = trace.joints - trace.center[:, None]
    return float(np.linalg.norm(np.diff(inner, axis=0), axis=-1).mean()) * trace.fps / length


def loop_error(trace: Trace, length: float) -> float:
    """RMS distance of the joints between last and first frame [body lengths], wherever on the ground the body ends."""
    first, last = (_in_place(trace, frame) for frame in (0, -1))
    return float(np.sqrt(((last - first) ** 2).sum(-1).mean())) / length


def _in_place(trace: Trace, frame: int) -> Float[ndarray, "joints 3"]:
    """The joints of a frame above the origin, facing +Z."""
    x, z = trace.facing[frame]
    moved = trace.joints[frame] - trace.center[frame] * np.array([1.0, 0.0, 1.0])
    turn = np.array([[z, 0.0, -x], [0.0, 1.0, 0.0], [x, 0.0, z]])
    return moved @ turn.T
