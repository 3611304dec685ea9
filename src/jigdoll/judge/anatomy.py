"""What the judge looks at on a body: its size, its legs with the skin of their feet, its pairs of limbs."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Literal, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from scipy.spatial import KDTree

from jigdoll.kinematics import rest_transforms
from jigdoll.rig.limbs import find_limbs
from jigdoll.rig.names import read_name
from jigdoll.types import Limb, RiggedAsset, Skeleton

ANKLE = 0.3
"""A foot begins at the first joint below this share of the hip's height."""
LOOSE_FOOT = 0.35
"""A leg that ends above this share of its hip's height has its foot on other joints (an artist's controls)."""
TOUCHING = 0.02
"""Skin of two joints closer than this is one piece [body lengths]."""


@dataclass(frozen=True, eq=False)
class Leg:
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
class Pair:
    """A left and a right limb of one kind and rank, each as its first and its last moving joint."""

    kind: Literal["leg", "arm", "wing"]
    rank: int
    left: tuple[int, int]
    right: tuple[int, int]

    @property
    def name(self) -> str:
        return f"{self.kind}_{self.rank}"


@dataclass(frozen=True, eq=False)
class Body:
    """A character as the judge sees it."""

    limbs: tuple[Limb, ...]
    legs: tuple[Leg, ...]
    pairs: tuple[Pair, ...]
    length: float
    """The larger of height and length at rest [m]; arms and wings that reach sideways do not count."""
    owners: Int[ndarray, " vertices"]
    """The joint that moves each vertex most."""


Found = TypeVar("Found")


def remembered(find: Callable[[RiggedAsset], Found]) -> Callable[[RiggedAsset], Found]:
    """Find something out about a character once, and forget it with the character: a server keeps no mesh alive.

    What is found must not hold the character itself.
    """
    known: WeakKeyDictionary[RiggedAsset, Found] = WeakKeyDictionary()

    @wraps(find)
    def once(asset: RiggedAsset) -> Found:
        if asset not in known:
            known[asset] = find(asset)
        return known[asset]

    return once


@remembered
def study(asset: RiggedAsset) -> Body:
    """Find legs, feet and pairs of limbs on any rig; a body without them has none, and is judged without them."""
    skeleton = asset.skeleton
    limbs = find_limbs(skeleton)
    joints = rest_transforms(skeleton)[:, :3, 3].detach().double().numpy()
    vertices = asset.mesh.vertices.detach().double().numpy()
    strongest = asset.weights.values.argmax(1, keepdim=True)
    owners = asset.weights.joints.long().gather(1, strongest)[:, 0].numpy()
    shape = vertices if len(vertices) else joints
    extent = shape.max(0) - shape.min(0)
    length = max(float(extent[1]), float(extent[2]), 1e-6)
    floor = float(shape[:, 1].min())
    legs = tuple(
        _leg(skeleton, limbs, limb, joints, vertices, owners, floor=floor, length=length)
        for limb in limbs
        if limb.kind == "leg" and limb.side != "middle"
    )
    return Body(limbs, legs, _pairs(limbs, legs), length, owners)


def _leg(
    skeleton: Skeleton,
    limbs: tuple[Limb, ...],
    limb: Limb,
    joints: Float[ndarray, "joints 3"],
    vertices: Float[ndarray, "vertices 3"],
    owners: Int[ndarray, " vertices"],
    *,
    floor: float,
    length: float,
) -> Leg:
    """Where the foot of a leg begins, and its skin."""
    heights = joints[list(limb.joints), 1] - floor
    place = len(limb.joints) - 1
    while place > 1 and heights[place - 1] < ANKLE * heights[0]:
        place -= 1
    foot = list(limb.joints[place:])
    if heights[-1] > LOOSE_FOOT * heights[0]:
        foot = _loose_foot(skeleton, limbs, limb, vertices, owners, reach=TOUCHING * length) or foot
    everything = [joint for joint in range(len(skeleton)) if _descends(skeleton, joint, foot)]
    skin = np.flatnonzero(np.isin(owners, everything))
    assert limb.side != "middle"
    return Leg(f"{limb.side}_{limb.rank}", limb.side, limb.rank, limb.joints[0], foot[0], tuple(everything), skin)


def _loose_foot(
    skeleton: Skeleton,
    limbs: tuple[Limb, ...],
    limb: Limb,
    vertices: Float[ndarray, "vertices 3"],
    owners: Int[ndarray, " vertices"],
    *,
    reach: float,
) -> list[int]:
    """The joint outside all limbs whose skin goes on where the leg's skin ends: a foot that a control holds."""
    shin = next((j for j in reversed(limb.joints) if (owners == j).any()), limb.joints[-1])
    claimed = {joint for other in limbs for joint in other.joints}
    own = vertices[owners == shin]
    if not len(own):
        return []
    tree = KDTree(own)
    found: list[tuple[float, int]] = []
    for joint in range(1, len(skeleton)):
        side = read_name(skeleton.names[joint]).side
        if joint in claimed or side not in (None, limb.side) or _descends(skeleton, joint, limb.joints):
            continue
        skin = vertices[owners == joint]
        if len(skin):
            found.append((float(tree.query(skin)[0].min()), joint))
    near = [(gap, joint) for gap, joint in found if gap < reach]
    return [min(near)[1]] if near else []


def _descends(skeleton: Skeleton, joint: int, ancestors: list[int] | tuple[int, ...]) -> bool:
    """Whether a joint is one of these or hangs on one of them."""
    while joint >= 0:
        if joint in ancestors:
            return True
        joint = skeleton.parents[joint]
    return False


def _pairs(limbs: tuple[Limb, ...], legs: tuple[Leg, ...]) -> tuple[Pair, ...]:
    """Limbs that have a counterpart across."""
    ends = {("leg", leg.side, leg.rank): (leg.hip, leg.ankle) for leg in legs}
    for limb in limbs:
        if limb.kind in ("arm", "wing"):
            ends[limb.kind, limb.side, limb.rank] = (limb.joints[0], limb.joints[-1])
    kinds: tuple[Literal["leg", "arm", "wing"], ...] = ("leg", "arm", "wing")
    return tuple(
        Pair(kind, rank, ends[kind, "left", rank], ends[kind, "right", rank])
        for kind in kinds
        for rank in range(8)
        if (kind, "left", rank) in ends and (kind, "right", rank) in ends
    )
