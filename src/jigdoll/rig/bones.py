"""What a skeleton alone says about a body: its limbs in parts, trunk, neck and tail, how long its legs are."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from jigdoll.kinematics import rest_transforms
from jigdoll.rig.limbs import find_limbs
from jigdoll.rig.names import read_name
from jigdoll.rig.remember import remembered
from jigdoll.types import Limb, Skeleton

SPRAWLED = 0.4
"""A leg sprawls where its foot stands outside its hip by more than this share of the hip's height."""

_MIDDLE_WORDS = {
    "arm": {"elbow", "forearm", "lowerarm", "radius", "ulna"},
    "leg": {"knee", "calf", "shin", "lowerleg", "lowleg", "tibia", "stifle"},
}

_STRAIGHT, _CLEARLY, _PER_CUT = 0.998, 1.15, 0.85
"""The cosine from which two bones are pieces of one; by how much such bones must be longer, and less for each cut."""
_PIECE = 0.55
"""Cuts of one bone are at least this share of each other: a wrist near its hand is none."""
_HIP, _LATER = 1.28, 0.1
"""How much longer two bones count that begin with the leg, and two that begin behind shoulder blade and thigh."""
_TIP = 0.4
"""How much of a limb's last bone counts where a bare tip ends it, and of a collar bone."""
_LIKE = 0.03
"""Twins' joints are mirror images of each other to this share of the body."""


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
    def pivot(self) -> int:
        """The joint about which a foot rolls: its ball, or the end of the limb."""
        return self.after[0] if self.after else self.end

    @property
    def name(self) -> str:
        """`left leg`, `right hind leg`, `left arm` ...: told by side, rank and kind."""
        return f"{self.limb.side} {self.limb.kind} {self.limb.rank}"


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
    return measure_bones(skeleton, find_limbs(skeleton))


def measure_bones(skeleton: Skeleton, limbs: tuple[Limb, ...]) -> Bones:
    """The parts of a body whose limbs are known."""
    T = rest_transforms(skeleton).detach().double().numpy()
    P, children = T[:, :3, 3], skeleton.children
    hind = max((limb.rank for limb in limbs if limb.kind == "leg"), default=0)
    kinds = ("leg", "arm", "wing", "fin")
    parts = tuple(split_limb(limb, skeleton, P, hind=limb.rank == hind) for limb in limbs if limb.kind in kinds)
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


def split_limb(limb: Limb, skeleton: Skeleton, P: Float[ndarray, "joints 3"], *, hind: bool = True) -> LimbParts:
    """A limb in parts; the middle joint is known by its name, else it lies between the two longest bones in a row.

    `hind` says whether it is of the hindmost pair, which hangs on the pelvis without a shoulder blade.
    """
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
        aside = np.abs(P[chain, 0] - P[0, 0])
        collar = limb.kind == "arm" and len(chain) > 3 and float(aside[0]) < 0.25 * float(aside[1])
        if collar:  # what begins on the middle line is no upper arm
            counts[0] *= _TIP
        if len(chain) > 3 + collar and not skeleton.children[chain[-1]] and limb.kind in ("leg", "arm"):
            counts[-1] *= _TIP  # what a bare tip ends is a foot or a hand
        first, middle, last = _longest_bones(P[chain], counts, hip=limb.kind == "leg" and hind)
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


def _longest_bones(
    points: Float[ndarray, "joints 3"], lengths: Sequence[float], *, hip: bool = False
) -> tuple[int, int, int]:
    """Where the two longest bones in a row begin, meet and end; of a leg (`hip`) rather those from its first joint on.

    Thigh, shin and the long foot of a beast are about as long as each other.
    Joints that lie on the straight line between two others may be cuts of one bone: two bones of such pieces are
    taken where the shorter of them is clearly longer than the shorter of the two longest.
    """
    ways = np.diff(points, axis=0)
    ways = ways / np.maximum(np.linalg.norm(ways, axis=1, keepdims=True), 1e-12)
    straight = np.concatenate([[False], (ways[1:] * ways[:-1]).sum(1) > _STRAIGHT, [False]])
    at = np.concatenate([[0.0], np.cumsum(lengths)])
    favour = [_HIP if hip and i == 0 else 1 + _LATER * (i - 1) * hip for i in range(len(lengths) - 1)]
    best = 1 + max(range(len(lengths) - 1), key=lambda i: favour[i] * (lengths[i] + lengths[i + 1]))
    found, score = (best - 1, best, best + 1), _CLEARLY * min(lengths[best - 1], lengths[best])
    count = len(points)
    for first in range(count - 2):
        for middle in range(first + 1, count - 1):
            for last in range(middle + 1, count):
                inner = [*range(first + 1, middle), *range(middle + 1, last)]
                pieces = [*lengths[first:middle]] if middle > first + 1 else [*lengths[middle:last]]
                if not inner or not straight[inner].all() or min(pieces) < _PIECE * max(pieces):
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
