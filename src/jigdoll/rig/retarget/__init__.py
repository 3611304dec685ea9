"""Retargeting: the motion of any rig on any other, through limb space."""

import warnings
from collections.abc import Mapping
from dataclasses import replace

import torch

from jigdoll.errors import RepairWarning, RigError
from jigdoll.rig.anatomy import anatomy_of
from jigdoll.rig.reparent import reparent, to_original, to_reparented
from jigdoll.rig.retarget.decode import decode
from jigdoll.rig.retarget.details import Details, details_of
from jigdoll.rig.retarget.limb_motion import LimbMotion, encode
from jigdoll.rig.retarget.match import Match, Report, report
from jigdoll.rig.retarget.profiles import profile_of, with_profile
from jigdoll.types import Motion, RiggedAsset

__all__ = [
    "Details",
    "LimbMotion",
    "Match",
    "Report",
    "decode",
    "details_of",
    "encode",
    "report",
    "retarget",
    "retarget_with_report",
]

FEWEST_JOINTS = 3
"""A body of fewer joints has no limbs to speak of."""
_SHIFT = 0.01
"""Joints that move less than this part of the body, or grow by less, lose nothing that a person sees."""


def retarget(
    motion: Motion,
    source: RiggedAsset,
    target: RiggedAsset,
    *,
    mapping: Mapping[str, str] | None = None,
    lock: bool = True,
) -> Motion:
    """The motion of the source on the target: limbs do what the source's limbs do, feet stand where they stand.

    `mapping` (target's limb to source's limb, as `left arm 0`) corrects which limb follows which; without `lock` feet
    may slide.
    """
    return retarget_with_report(motion, source, target, mapping=mapping, lock=lock)[0]


def retarget_with_report(
    motion: Motion,
    source: RiggedAsset,
    target: RiggedAsset,
    *,
    mapping: Mapping[str, str] | None = None,
    lock: bool = True,
) -> tuple[Motion, Report]:
    """The motion of the source on the target, and which limb took which."""
    _check(motion, source, target)
    _say_what_is_dropped(motion, source)
    theirs, ours = reparent(source), reparent(target)
    moving, anatomy = with_profile(anatomy_of(theirs.asset)), with_profile(anatomy_of(ours.asset))
    motion = to_reparented(theirs, motion)
    limb_motion = encode(moving, motion)
    details = None if mapping else details_of(moving, motion)
    moved = decode(limb_motion, anatomy, lock=lock, mapping=mapping, details=details)
    told = report(limb_motion, anatomy, mapping)
    known = [(what, profile_of(asset.skeleton)) for what, asset in (("source", source), ("target", target))]
    notes = tuple(f"the {what} is a skeleton of {profile.name}" for what, profile in known if profile is not None)
    return to_original(ours, moved), replace(told, notes=(*told.notes, *notes))


def _check(motion: Motion, source: RiggedAsset, target: RiggedAsset) -> None:
    """Refuse what cannot be retargeted."""
    name = motion.name or "the clip"
    if not len(motion):
        raise RigError(f"{name}: the clip is empty; there is nothing to retarget")
    if motion.pose.rotations.shape[1] != len(source.skeleton):
        count = motion.pose.rotations.shape[1]
        raise RigError(f"{name}: the clip moves {count} joints, its skeleton has {len(source.skeleton)}")
    for asset, what in ((source, "source"), (target, "target")):
        if len(asset.skeleton) < FEWEST_JOINTS:
            raise RigError(f"{asset.name}: the {what} has {len(asset.skeleton)} joints; a body needs {FEWEST_JOINTS}")
        if not bool(torch.isfinite(asset.skeleton.T_parent_joint).all()):
            raise RigError(f"{asset.name}: the {what}'s rest pose holds numbers that are not finite; repair the file")
    pose = motion.pose
    parts = [pose.root, pose.rotations, *(part for part in (pose.offsets, pose.scales) if part is not None)]
    bad = torch.stack([~torch.isfinite(part.reshape(len(motion), -1)).all(1) for part in parts]).any(0)
    if bool(bad.any()):
        raise RigError(f"{name}: frame {int(bad.int().argmax())} holds numbers that are not finite; cut it out")


def _say_what_is_dropped(motion: Motion, source: RiggedAsset) -> None:
    """Name the joints that grow: a limb is followed by where its bones point, whatever their size."""
    scales = motion.pose.scales
    if scales is None:
        return
    count = int(((scales - 1).abs().amax((0, 2)) > _SHIFT).sum())
    if count:
        what = f"{motion.name!r} is retargeted without what is scaled ({count} of {len(source.skeleton)} joints)"
        warnings.warn(what, RepairWarning, stacklevel=4)
