"""Retargeting: the motion of any rig on any other, through limb space."""

from jigdoll.rig.anatomy import anatomy_of
from jigdoll.rig.reparent import reparent, to_original, to_reparented
from jigdoll.rig.retarget.decode import decode, report
from jigdoll.rig.retarget.limb_motion import LimbMotion, encode
from jigdoll.types import Motion, RiggedAsset

__all__ = ["LimbMotion", "decode", "encode", "report", "retarget"]


def retarget(motion: Motion, source: RiggedAsset, target: RiggedAsset, *, lock: bool = True) -> Motion:
    """The motion of the source on the target: limbs do what the source's limbs do, feet stand where they stand."""
    theirs, ours = reparent(source), reparent(target)
    limb_motion = encode(anatomy_of(theirs.asset), to_reparented(theirs, motion))
    return to_original(ours, decode(limb_motion, anatomy_of(ours.asset), lock=lock))
