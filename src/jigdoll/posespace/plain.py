"""The pose model without anything learned: limits of joints and hand-drawn gaits. It stands in where no weights are."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.errors import JigdollError
from jigdoll.math.rotations import compound_to_quaternion
from jigdoll.rig.anatomy import Anatomy
from jigdoll.rig.limits import clamp_pose, compound_angles, limit_penalty
from jigdoll.types import Motion, Pose, Request
from jigdoll.zoo.gaits import actions, reference_motion

FREE = 1.0
"""A joint without limits is turned by at most this much [rad]."""


@dataclass(frozen=True)
class PlainPoseModel:
    """Anything within the limits is as good as anything else; an implementation of `protocols.PoseModel`."""

    share: float = 0.5
    """Of the range of each joint that poses are drawn from."""

    def sample(self, anatomy: Anatomy, *, words: str | None = None, count: int = 1, seed: int = 0) -> Pose:
        """Poses drawn evenly from the limits; words say nothing to it."""
        skeleton = anatomy.skeleton
        generator = torch.Generator().manual_seed(seed)
        low, high = (skeleton.limits[..., i].clamp(-FREE, FREE) for i in range(2))
        angles = low + (high - low) * torch.rand(count, len(skeleton), 3, generator=generator)
        angles[:, 0] = 0.0
        rotations = compound_to_quaternion(self.share * angles, skeleton.axes)
        return Pose(torch.zeros(count, 3), rotations)

    def draft(
        self, request: Request, anatomy: Anatomy, *, seconds: float | None = None, fps: float = 30.0, seed: int = 0
    ) -> Motion:
        """The hand-drawn gait of the leading action, or idling where it knows none."""
        if request.action is None:
            raise JigdollError(f"{request.prompt!r}: no action was found in it; say what it does")
        asset = replace(anatomy.asset, clips={})
        able = actions(asset)
        name = request.action.name if request.action.name in able else "idle"
        return reference_motion(asset, name, seconds=seconds or 2.0, fps=fps, seed=seed)

    def project(self, anatomy: Anatomy, motion: Motion, *, strength: float = 0.3, seed: int = 0) -> Motion:
        """The motion with every joint turned back to its limits."""
        return Motion(clamp_pose(anatomy.skeleton, motion.pose), motion.fps, motion.name)

    def score(self, anatomy: Anatomy, pose: Pose) -> Float[Tensor, " frames"]:
        """How far joints are beyond their limits [rad^2]; differentiable."""
        pose = pose if pose.root.ndim > 1 else pose[None]
        return limit_penalty(anatomy.skeleton, compound_angles(anatomy.skeleton, pose))
