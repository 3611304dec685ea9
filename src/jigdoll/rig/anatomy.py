"""A character's body, measured once and passed on: limbs and their parts, feet, sizes, flesh, limits.

`anatomy_of` takes the working copy of a rig (`rig.reparent`). Nothing further down measures again.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from jigdoll.kinematics import motion_to_world, rest_transforms
from jigdoll.rig.flesh import FEW, flesh_of
from jigdoll.rig.limbs import find_limbs
from jigdoll.rig.limits import Role, joint_roles
from jigdoll.rig.names import read_name
from jigdoll.rig.remember import remembered
from jigdoll.types import Limb, Motion, RiggedAsset, Skeleton

BodyKind = Literal["person", "biped", "bird", "quadruped", "insect", "spider", "flyer", "fish", "snake", "other"]
FOOT = 0.3
"""A foot begins at the first joint below this share of the hip's height."""
SPRAWLED = 0.4
"""A leg sprawls where its foot stands outside its hip by more than this share of the hip's height."""
FLAT = 0.6
"""A bone that falls by less than this sine lies flat: feet and hands on the ground."""
_MIDDLE_WORDS = {
    "arm": {"elbow", "forearm", "lowerarm", "radius", "ulna"},
    "leg": {"knee", "calf", "shin", "lowerleg", "lowleg", "tibia", "stifle"},
}
_STRAIGHT, _CLEARLY, _PER_CUT = 0.998, 1.15, 0.85
"""The cosine from which two bones are pieces of one; by how much such bones must be longer, and less for each cut."""
_LIKE = 0.03
"""Twins' joints are mirror images of each other to this share of the body."""
_CALM = ("idle", "stand", "breath")


@dataclass(frozen=True, eq=False)
class LimbParts:
    """A leg, an arm, a wing or a fin in parts: what carries it, upper and lower bone, what follows its end."""

    limb: Limb
    before: tuple[int, ...]
    """Collar bones and shoulder blades, from the body outwards."""
    root: int
    """Hip or shoulder."""
    middle: int
    """Knee or elbow; the root where the limb is one bone."""
    end: int
    """Ankle or wrist; the last joint where the limb is shorter."""
    after: tuple[int, ...]
    """Foot or hand beyond the end: balls, toes, tips."""
    length: float
    """Along the bones from the root to the end [m]."""
    reach: float
    """From the root to the very tip at rest [m]."""

    @property
    def name(self) -> str:
        """`left leg`, `right hind leg`, `left arm` ...: told by side, rank and kind."""
        return f"{self.limb.side} {self.limb.kind} {self.limb.rank}"


@dataclass(frozen=True, eq=False)
class Leg:
    """A leg and the foot that stands on the ground."""

    parts: LimbParts
    foot: tuple[int, ...]
    """The joints of the foot, its ball or ankle first."""
    contact_joints: Int[ndarray, " points"]
    """The joint that carries each point that may touch the ground."""
    contact_points: Float[ndarray, "points 3"]
    """Those points in the frames of their joints [m]."""


@dataclass(frozen=True, eq=False)
class Anatomy:
    """What stays the same about a character while it moves."""

    asset: RiggedAsset
    """The working copy."""
    kind: BodyKind
    limbs: tuple[Limb, ...]
    parts: tuple[LimbParts, ...]
    """Legs, arms, wings and fins."""
    legs: tuple[Leg, ...]
    trunk: tuple[int, ...]
    """From the pelvis (the root) to the joint that carries the fore limbs or the neck."""
    neck: tuple[int, ...]
    """The neck with the head, without its bare tip."""
    tail: tuple[int, ...]
    roles: tuple[Role, ...]
    owners: Int[ndarray, " vertices"]
    sheets: Bool[ndarray, " joints"]
    T_rest: Float[ndarray, "joints 4 4"]
    """World rest transforms."""
    R_neutral: Float[ndarray, "joints 3 3"]
    """World rotations as the body carries itself: from the file's idle clip where it has one, else at rest."""
    body_length: float
    """The larger of height and length at rest [m]; arms and wings that reach sideways do not count."""
    height: float
    leg_length: float
    """From hip to the end of the toes at rest, mean over the legs [m]; half of the height without legs."""
    leg_bones: float
    """Along the bones from hip to ankle, mean over the legs [m]."""
    hip_height: float
    """Of the root above the ground at rest [m]; of the body's middle without legs."""

    @property
    def skeleton(self) -> Skeleton:
        """The skeleton of the working copy, with limits and axes by role."""
        return self.asset.skeleton

    @property
    def pelvis(self) -> int:
        """The joint of the trunk that carries the hindmost legs; the root joint of many rigs lies on the ground."""
        return find_pelvis(self.trunk, self.legs, self.skeleton)

    @property
    def grounded(self) -> bool:
        """Whether it stands on legs."""
        return bool(self.legs)


@dataclass(frozen=True, eq=False)
class Bones:
    """What a skeleton alone says about a body, without its skin."""

    limbs: tuple[Limb, ...]
    parts: tuple[LimbParts, ...]
    trunk: tuple[int, ...]
    neck: tuple[int, ...]
    tail: tuple[int, ...]
    T_rest: Float[ndarray, "joints 4 4"]
    leg_length: float
    """From hip to the end of the toes at rest, mean over the legs [m]; half of the height without legs."""
    sprawled: bool
    """Whether all feet stand well outside their hips."""

    @property
    def leg_count(self) -> int:
        return sum(limb.kind == "leg" for limb in self.limbs)


@remembered
def bones_of(skeleton: Skeleton) -> Bones:
    """Measure a skeleton that comes without a skin; a second call finds what the first one measured."""
    return _bones(skeleton, find_limbs(skeleton))


def _bones(skeleton: Skeleton, limbs: tuple[Limb, ...]) -> Bones:
    """The parts of a body whose limbs are known."""
    T = rest_transforms(skeleton).detach().double().numpy()
    P, children = T[:, :3, 3], skeleton.children
    parts = tuple(split_limb(limb, skeleton, P) for limb in limbs if limb.kind in ("leg", "arm", "wing", "fin"))
    parts = match_twins(parts, P)
    ways = np.array([P[part.limb.joints[-1]] - P[part.root] for part in parts if part.limb.kind == "leg"])
    middle = {limb.kind: limb.joints for limb in limbs if limb.side == "middle"}
    head, tail = middle.get("head", ()), middle.get("tail", ())
    length = float(np.linalg.norm(ways, axis=1).mean()) if len(ways) else 0.5 * float(np.ptp(P[:, 1]))
    return Bones(
        limbs=limbs,
        parts=parts,
        trunk=middle.get("spine", (0,)),
        neck=tuple(j for j in head if children[j]) or head[:1],
        tail=_whole_tail(tail, skeleton, limbs),
        T_rest=T,
        leg_length=max(length, 1e-3),
        sprawled=bool(len(ways)) and bool((np.abs(ways[:, 0]) > SPRAWLED * np.abs(ways[:, 1])).all()),
    )


@remembered
def anatomy_of(asset: RiggedAsset) -> Anatomy:
    """Measure the working copy of a character; a second call finds what the first one measured."""
    skeleton = asset.skeleton
    flesh = flesh_of(asset)
    bones = _bones(skeleton, find_limbs(skeleton, flesh.outline))
    limbs, parts, trunk, T = bones.limbs, bones.parts, bones.trunk, bones.T_rest
    P = T[:, :3, 3]
    vertices = asset.mesh.vertices.detach().double().numpy()
    legs = tuple(_leg(part, skeleton, T, vertices, flesh.owners) for part in parts if part.limb.kind == "leg")
    shape = vertices if len(vertices) else P
    extent = np.ptp(shape, axis=0)
    height = max(float(extent[1]), 1e-6)
    floor = float(shape[:, 1].min())
    return Anatomy(
        asset=asset,
        kind=_kind(limbs, parts, P, trunk[trunk.index(find_pelvis(trunk, legs, skeleton)) :]),
        limbs=limbs,
        parts=parts,
        legs=legs,
        trunk=trunk,
        neck=bones.neck,
        tail=bones.tail,
        roles=joint_roles(skeleton, limbs),
        owners=flesh.owners,
        sheets=flesh.sheets,
        T_rest=T,
        R_neutral=_neutral(asset, T),
        body_length=max(height, float(extent[2]), 1e-6),
        height=height,
        leg_length=bones.leg_length if legs else 0.5 * height,
        leg_bones=float(np.mean([leg.parts.length for leg in legs])) if legs else 0.5 * height,
        hip_height=max(float(P[0, 1]) - floor, 0.05 * height),
    )


def _whole_tail(tail: Sequence[int], skeleton: Skeleton, limbs: Sequence[Limb]) -> tuple[int, ...]:
    """The tail without its bare tip, from where it leaves the trunk: much of a shark is called spine."""
    found = [j for j in tail if skeleton.children[j]] or list(tail[:1])
    if not found:
        return ()
    taken = {joint for limb in limbs if limb.kind != "tail" for joint in limb.joints}
    legs = any(limb.kind == "leg" for limb in limbs)
    carriers = {skeleton.parents[limb.joints[0]] for limb in limbs if legs and limb.kind != "tail"}
    while (above := skeleton.parents[found[0]]) > 0 and above not in taken and above not in carriers:
        found.insert(0, above)
    return tuple(found)


def find_pelvis(trunk: Sequence[int], legs: Sequence[Leg], skeleton: Skeleton) -> int:
    """The joint of the trunk that carries the hindmost legs, the trunk's first one without legs."""
    last = max((leg.parts.limb.rank for leg in legs), default=-1)
    found = []
    for leg in legs:
        joint = leg.parts.limb.joints[0]
        while joint >= 0 and joint not in trunk:
            joint = skeleton.parents[joint]
        if leg.parts.limb.rank == last and joint >= 0:
            found.append(trunk.index(joint))
    return trunk[min(found)] if found else trunk[0]


def split_limb(limb: Limb, skeleton: Skeleton, P: Float[ndarray, "joints 3"]) -> LimbParts:
    """A limb in parts; the middle joint is known by its name, else it lies between the two longest bones in a row."""
    size = float(np.ptp(P, axis=0).max())
    steps = list(pairwise(limb.joints))
    chain = [a for a, b in steps if float(np.linalg.norm(P[b] - P[a])) > 1e-3 * size] + [limb.joints[-1]]
    reach = float(np.linalg.norm(P[chain[-1]] - P[chain[0]]))
    if len(chain) < 3:
        root, end = chain[0], chain[-1]
        return LimbParts(limb, (), root, root, end, (), max(reach, 1e-6), max(reach, 1e-6))
    named = middle_by_name(limb, skeleton)
    at = chain.index(named) if named in chain[1:-1] else None
    lengths = [float(np.linalg.norm(P[b] - P[a])) for a, b in pairwise(chain)]
    counts = lengths
    if limb.kind == "leg":  # a long foot is no shin
        counts = [max(float(P[a, 1] - P[b, 1]), 0.2 * n) for (a, b), n in zip(pairwise(chain), lengths, strict=True)]
    if at is not None:
        first, middle, last = at - 1, at, at + 1
    else:
        first, middle, last = _longest_bones(P[chain], counts)
    return parts_at(limb, chain, first, middle, last, P)


def middle_by_name(limb: Limb, skeleton: Skeleton) -> int | None:
    """The joint of a limb that is called a knee or an elbow, or carries the bone beyond it."""
    words = _MIDDLE_WORDS.get(limb.kind, set())
    return next((joint for joint in limb.joints[1:-1] if _joined(skeleton.names[joint]) & words), None)


def parts_at(
    limb: Limb, chain: Sequence[int], first: int, middle: int, last: int, P: Float[ndarray, "joints 3"]
) -> LimbParts:
    """The parts of a limb from where on its chain its root, its middle and its end are."""
    way = P[list(chain[first : last + 1])]
    return LimbParts(
        limb=limb,
        before=tuple(chain[:first]),
        root=chain[first],
        middle=chain[middle],
        end=chain[last],
        after=tuple(chain[last + 1 :]),
        length=max(float(np.linalg.norm(np.diff(way, axis=0), axis=1).sum()), 1e-6),
        reach=max(float(np.linalg.norm(P[chain[-1]] - P[chain[first]])), 1e-6),
    )


def _longest_bones(points: Float[ndarray, "joints 3"], lengths: Sequence[float]) -> tuple[int, int, int]:
    """Where the two longest bones in a row begin, meet and end.

    Joints that lie on the straight line between two others may be cuts of one bone: two bones of such pieces are
    taken where the shorter of them is clearly longer than the shorter of the two longest.
    """
    ways = np.diff(points, axis=0)
    ways = ways / np.maximum(np.linalg.norm(ways, axis=1, keepdims=True), 1e-12)
    straight = np.concatenate([[False], (ways[1:] * ways[:-1]).sum(1) > _STRAIGHT, [False]])
    at = np.concatenate([[0.0], np.cumsum(lengths)])
    best = 1 + max(range(len(lengths) - 1), key=lambda i: lengths[i] + lengths[i + 1])
    found, score = (best - 1, best, best + 1), _CLEARLY * min(lengths[best - 1], lengths[best])
    count = len(points)
    for first in range(count - 2):
        for middle in range(first + 1, count - 1):
            for last in range(middle + 1, count):
                inner = [*range(first + 1, middle), *range(middle + 1, last)]
                if not inner or not straight[inner].all():
                    continue
                shorter = min(at[middle] - at[first], at[last] - at[middle]) * _PER_CUT ** len(inner)
                if shorter > score:
                    found, score = (first, middle, last), shorter
    return found


def match_twins(parts: Sequence[LimbParts], P: Float[ndarray, "joints 3"]) -> tuple[LimbParts, ...]:
    """Limbs whose twins are split elsewhere are split as the twin with fewer joints: a hand may hold a sword."""
    size = float(np.ptp(P, axis=0).max())
    done = list(parts)
    for i, one in enumerate(parts):
        key = one.limb.kind, one.limb.rank
        twin = next((p for p in parts if (p.limb.kind, p.limb.rank) == key and p.limb.side != one.limb.side), None)
        if twin is None or len(twin.limb.joints) >= len(one.limb.joints) or twin.root == twin.middle:
            continue
        chain = list(one.limb.joints)
        wanted = P[[twin.root, twin.middle, twin.end]] * [-1.0, 1.0, 1.0] + [2 * float(P[0, 0]), 0.0, 0.0]
        far = np.linalg.norm(P[chain][None] - wanted[:, None], axis=-1)
        first, middle, last = far.argmin(1).tolist()
        if first < middle < last and float(far.min(1).max()) < _LIKE * size:
            done[i] = parts_at(one.limb, chain, first, middle, last, P)
    return tuple(done)


def _joined(name: str) -> set[str]:
    """The words of a name, and each two neighbours as one: lower arm is a lowerarm."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    words = [w for w in re.split(r"[^a-z]+", apart.lower()) if w]
    return set(read_name(name).tokens) | set(words) | {a + b for a, b in pairwise(words)}


def _leg(
    parts: LimbParts,
    skeleton: Skeleton,
    T: Float[ndarray, "joints 4 4"],
    vertices: Float[ndarray, "vertices 3"],
    owners: Int[ndarray, " vertices"],
) -> Leg:
    """The foot of a leg: its joints from where it comes near the ground, and the skin that it puts there."""
    P = T[:, :3, 3]
    chain = [parts.root, parts.middle, parts.end, *parts.after]
    floor = float(vertices[:, 1].min()) if len(vertices) else float(P[:, 1].min())
    hip = float(P[parts.root, 1]) - floor
    low = [j for j in chain[1:] if float(P[j, 1]) - floor < FOOT * max(hip, 1e-6)]
    foot = tuple(low) or (chain[-1],)
    below = [foot[0]]
    for joint in below:
        below += skeleton.children[joint]
    return Leg(parts, foot, *_contact_points(below, T, vertices, owners))


def _contact_points(
    joints: Sequence[int],
    T: Float[ndarray, "joints 4 4"],
    vertices: Float[ndarray, "vertices 3"],
    owners: Int[ndarray, " vertices"],
) -> tuple[Int[ndarray, " points"], Float[ndarray, "points 3"]]:
    """Of the lower part of a foot's skin the points farthest in eight directions; its joints without skin."""
    mine = np.flatnonzero(np.isin(owners, joints)) if len(vertices) else np.zeros(0, int)
    if len(mine) < FEW:
        at = np.array(joints)
        return at, np.zeros((len(at), 3))
    skin = vertices[mine]
    low = mine[skin[:, 1] <= np.quantile(skin[:, 1], 0.35) + 1e-6]
    turn = np.arange(8) * (np.pi / 4)
    compass = np.stack([np.sin(turn), -np.ones(8), np.cos(turn)])
    chosen = np.unique(low[(vertices[low] @ compass).argmax(0)])
    carriers = owners[chosen]
    inverse = np.linalg.inv(T[carriers])
    return carriers, np.einsum("pab,pb->pa", inverse[:, :3, :3], vertices[chosen]) + inverse[:, :3, 3]


def _kind(
    limbs: Sequence[Limb], parts: Sequence[LimbParts], P: Float[ndarray, "joints 3"], trunk: Sequence[int]
) -> BodyKind:
    """What kind of body it is, by its limbs and by how its trunk stands."""
    count = {kind: sum(limb.kind == kind for limb in limbs) for kind in ("leg", "arm", "wing", "fin")}
    way = P[trunk[-1]] - P[trunk[0]]
    extent = np.ptp(P, axis=0)
    tall = float(extent[1]) > float(extent[2])
    upright = tall if len(trunk) < 2 else float(way[1]) > 0.6 * float(np.linalg.norm(way))
    legs = count["leg"]
    if legs >= 7:
        return "spider"
    if legs >= 5:
        return "insect"
    if legs >= 3:
        return "quadruped"
    if legs:
        return "bird" if count["wing"] else "person" if upright and tall and count["arm"] else "biped"
    if count["wing"]:
        return "flyer"
    if count["arm"] and upright:
        return "other"
    chain = [limb for limb in limbs if limb.side == "middle"]
    line = sum(len(limb.joints) for limb in chain)
    if not tall and line and (count["fin"] or (line <= 8 and not parts)):
        return "fish"
    return "snake" if line >= 6 and not parts else "other"


def _neutral(asset: RiggedAsset, T: Float[ndarray, "joints 4 4"]) -> Float[ndarray, "joints 3 3"]:
    """How the body carries itself: the mean of its calmest clip's joint rotations, else the rest pose."""
    calm = next((clip for word in _CALM for name, clip in asset.clips.items() if word in name.lower()), None)
    if calm is None:
        return T[:, :3, :3]
    return _mean_rotations(asset.skeleton, calm)


def _mean_rotations(skeleton: Skeleton, clip: Motion) -> Float[ndarray, "joints 3 3"]:
    world = motion_to_world(skeleton, clip)[..., :3, :3]
    u, _, v = np.linalg.svd(world.mean(0))
    flip = np.sign(np.linalg.det(u @ v))
    u[..., -1] *= flip[..., None]
    return u @ v
