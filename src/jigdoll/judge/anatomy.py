"""What the judge looks at on a body: the working copy's Anatomy, with the skin of its feet and its pairs of limbs."""

import warnings
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Int
from numpy import ndarray

from jigdoll.errors import RepairWarning
from jigdoll.rig.anatomy import Anatomy, Leg, anatomy_of
from jigdoll.rig.remember import remembered
from jigdoll.rig.reparent import Reparented, reparent
from jigdoll.types import RiggedAsset


@dataclass(frozen=True, eq=False)
class JudgedLeg:
    """A leg from the hip to the foot that stands on the ground."""

    name: str
    """`left_0`, `right_0`, `left_1` ...: the side and the rank from front to back."""
    side: Literal["left", "right"]
    rank: int
    hip: int
    ankle: int
    """The first joint of the foot."""
    foot: tuple[int, ...]
    """All joints of the foot."""
    skin: Int[ndarray, " points"]
    """The vertices that follow the foot; none where it carries no skin."""


@dataclass(frozen=True, eq=False)
class LimbPair:
    """A left and a right limb of one kind and rank, each as its first and its last moving joint."""

    kind: Literal["leg", "arm", "wing"]
    rank: int
    left: tuple[int, int]
    right: tuple[int, int]

    @property
    def name(self) -> str:
        return f"{self.kind}_{self.rank}"


@dataclass(frozen=True, eq=False)
class JudgedBody:
    """A character as the judge sees it."""

    work: Reparented
    """The working copy, on which everything is measured, and the way to it."""
    anatomy: Anatomy
    legs: tuple[JudgedLeg, ...]
    pairs: tuple[LimbPair, ...]

    @property
    def asset(self) -> RiggedAsset:
        """The working copy."""
        return self.anatomy.asset

    @property
    def length(self) -> float:
        """The larger of height and length at rest [m]."""
        return self.anatomy.body_length


@remembered
def study(asset: RiggedAsset) -> JudgedBody:
    """Find legs, feet and pairs of limbs on any rig; a body without them has none, and is judged without them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RepairWarning)  # nothing is repaired here, only looked at
        work = reparent(asset)
    anatomy = anatomy_of(work.asset)
    legs = tuple(_leg(anatomy, leg) for leg in anatomy.legs if leg.parts.limb.side != "middle")
    return JudgedBody(work, anatomy, legs, _pairs(anatomy, legs))


def _leg(anatomy: Anatomy, leg: Leg) -> JudgedLeg:
    """A leg with everything that hangs on its foot, and the skin of that."""
    limb = leg.parts.limb
    assert limb.side != "middle"
    foot = [leg.foot[0]]
    for joint in foot:
        foot += anatomy.skeleton.children[joint]
    skin = np.flatnonzero(np.isin(anatomy.owners, foot))
    return JudgedLeg(
        f"{limb.side}_{limb.rank}", limb.side, limb.rank, limb.joints[0], leg.foot[0], tuple(sorted(foot)), skin
    )


def _pairs(anatomy: Anatomy, legs: tuple[JudgedLeg, ...]) -> tuple[LimbPair, ...]:
    """Limbs that have a counterpart across."""
    ends = {("leg", leg.side, leg.rank): (leg.hip, leg.ankle) for leg in legs}
    for limb in anatomy.limbs:
        if limb.kind in ("arm", "wing"):
            ends[limb.kind, limb.side, limb.rank] = (limb.joints[0], limb.joints[-1])
    kinds: tuple[Literal["leg", "arm", "wing"], ...] = ("leg", "arm", "wing")
    return tuple(
        LimbPair(kind, rank, ends[kind, "left", rank], ends[kind, "right", rank])
        for kind in kinds
        for rank in range(8)
        if (kind, "left", rank) in ends and (kind, "right", rank) in ends
    )
