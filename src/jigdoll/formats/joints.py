"""Joints as files give them: names made unique, skeletons without limits, clips that fit."""

import math
import warnings
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.errors import JigdollError, RepairWarning
from jigdoll.kinematics import world_rest
from jigdoll.types import Motion, Skeleton


def free_skeleton(
    names: Sequence[str], parents: Sequence[int], T_parent_joint: Float[Tensor, "joints 4 4"]
) -> Skeleton:
    """A skeleton as a file describes it: no limits, compound axes along the world's X, Y and Z at rest."""
    rest = T_parent_joint.float()
    axes = world_rest(parents, T_parent_joint)[:, :3, :3].transpose(-1, -2).float()
    limits = torch.pi * rest.new_tensor([-1.0, 1.0]).expand(len(names), 3, 2)
    return Skeleton(tuple(names), tuple(parents), rest, axes, limits.clone())


def unique_names(names: Sequence[str], *, what: str = "joint", where: str = "") -> tuple[str, ...]:
    """The names, each one given once: empty and repeated ones get a number, announced by one warning."""
    taken = set(names)
    seen: set[str] = set()
    out: list[str] = []
    changed: list[str] = []
    next_number: dict[str, int] = {}
    for name in names:
        new = name
        if not name or name in seen:
            number = next_number.get(name, 2 if name else 1)
            while not new or new in taken or new in seen:
                new = f"{name or what}_{number}"
                number += 1
            next_number[name] = number
            changed.append(f"{name!r} -> {new!r}")
        seen.add(new)
        out.append(new)
    if changed:
        more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
        lead = f"{where}: " if where else ""
        warnings.warn(
            f"{lead}{what} names must be unique: renamed {', '.join(changed[:3])}{more}", RepairWarning, stacklevel=2
        )
    return tuple(out)


def check_motion(skeleton: Skeleton, motion: Motion) -> None:
    """Refuse a clip that does not fit the joints, has no frames, or holds numbers that no file may hold."""
    joints = motion.pose.rotations.shape[-2]
    if joints != len(skeleton):
        raise JigdollError(f"the motion {motion.name!r} moves {joints} joints, the character has {len(skeleton)}")
    if not len(motion):
        raise JigdollError(f"the motion {motion.name!r} has no frames")
    if not 0 < motion.fps < math.inf:
        raise JigdollError(f"the motion {motion.name!r} has {motion.fps:g} frames per second, which is no rate")
    fields = (motion.pose.root, motion.pose.rotations, motion.pose.offsets, motion.pose.scales)
    if not all(bool(field.isfinite().all()) for field in fields if field is not None):
        raise JigdollError(f"the motion {motion.name!r} holds numbers that are not finite")
