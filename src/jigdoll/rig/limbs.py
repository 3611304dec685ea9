"""Which joints are a leg, an arm, a wing, a fin, the head, a tail: by where they are; names only break ties.

A chain of joints that leaves the middle line is a leg if it and its twin across reach the ground and the body stands on
them. What does not reach the ground is an arm, a wing (a thin sheet of skin, or so called) or a fin. Names decide where
geometry cannot: an ape's arms that hang to the ground, a body that floats.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from jigdoll.kinematics import rest_transforms
from jigdoll.rig.names import JointName, LimbKind, Side, read_name
from jigdoll.types import Limb, Skeleton

MIDDLE = 0.02
"""A joint nearer than this to the middle plane is on it [body sizes]."""
ON_GROUND = 0.07
"""A limb reaches the ground if its lowest point is below this share of the height."""
ANCHOR = 0.45
"""Joints that carry several limbs branch before this share of the longest limb's length; fingers branch later."""
UPRIGHT = 0.7
"""A trunk is upright if the way from its hind limbs to its fore limbs rises by more than this sine."""


@dataclass(frozen=True, eq=False)
class _Rig:
    """A skeleton with everything that is asked about it again and again."""

    skeleton: Skeleton
    P: Float[ndarray, "joints 3"]
    said: list[JointName]
    children: tuple[tuple[int, ...], ...]
    size: float
    """The larger of height and length [m]."""
    height: float
    ground: float
    middle: float
    """Where the middle plane is [m]."""
    sheets: Bool[ndarray, " joints"]
    """Joints that move a thin sheet of skin."""


@dataclass
class _Chain:
    """A sided chain before it has a kind."""

    side: Side
    joints: list[int]
    parent: int
    twin: "int | None" = None
    kind: LimbKind | None = None


def find_limbs(skeleton: Skeleton, sheets: Bool[ndarray, " joints"] | None = None) -> tuple[Limb, ...]:
    """All limbs of a rig: sided chains that leave the middle line, the neck with the head, the tail, the spine.

    `sheets` tells which joints move a thin sheet of skin, as wings are; without it a wing is known by name only. Joints
    that only carry ears, fingers, feathers or controls belong to no limb. A rig without any of these has none.
    """
    rig = _rig(skeleton, sheets)
    sides = _sides(rig)
    chains = _chains(rig, sides)
    _match_twins(rig, chains)
    _classify(rig, sides, chains)
    limbs = _ranked([chain for chain in chains if chain.kind is not None], rig.P)
    attached = {skeleton.parents[limb.joints[0]] for limb in limbs}
    head = _head(rig, sides, attached)
    tail = _tail(rig, sides, set(head))
    spine = _spine(rig, limbs, head)
    middle = (Limb("spine", "middle", 0, tuple(spine)), Limb("head", "middle", 0, tuple(head)))
    middle = (*middle, Limb("tail", "middle", 0, tuple(tail)))
    return (*limbs, *(limb for limb in middle if limb.joints))


def _rig(skeleton: Skeleton, sheets: Bool[ndarray, " joints"] | None) -> _Rig:
    P = rest_transforms(skeleton)[:, :3, 3].detach().double().numpy()
    extent = np.ptp(P, axis=0)
    said = [read_name(name) for name in skeleton.names]
    ends = [float(P[j, 0]) for j in range(len(P)) if said[j].side is None] or [float(P[0, 0])]
    size = max(float(extent[1]), float(extent[2]), 0.25 * float(extent[0]), 1e-9)
    flat = np.zeros(len(P), bool) if sheets is None else sheets
    return _Rig(
        skeleton, P, said, skeleton.children, size, float(extent[1]), float(P[:, 1].min()), float(np.median(ends)), flat
    )


# Sides


def _sides(rig: _Rig) -> list[Side]:
    """Left, right or middle for every joint: where it is, what hangs below it, and its name where it is on the line."""
    off = rig.P[:, 0] - rig.middle
    here: list[Side] = ["middle" if abs(x) < MIDDLE * rig.size else "left" if x > 0 else "right" for x in off]
    parents = rig.skeleton.parents
    sides: list[Side] = []
    for joint, parent in enumerate(parents):
        words = rig.said[joint]
        if joint == 0 or (words.side is None and words.kind in ("spine", "head", "tail")):
            sides.append("middle")
        elif parent > 0 and sides[parent] != "middle":
            sides.append(sides[parent])
        elif words.side is not None and (here[joint] in ("middle", words.side)):
            sides.append(words.side)
        elif here[joint] != "middle" and not _has_twin(rig, joint):
            # Off the middle without anyone across: a bent tail, a trunk that looks aside.
            sides.append("middle" if words.side is None else words.side)
        else:
            sides.append(here[joint])
    for joint in reversed(range(1, len(sides))):
        # A collar bone begins on the middle line but carries one side only.
        below: set[Side] = {sides[child] for child in rig.children[joint]}
        if sides[joint] == "middle" and rig.said[joint].kind is None and below in ({"left"}, {"right"}):
            sides[joint] = below.pop()
    return sides


def _has_twin(rig: _Rig, joint: int) -> bool:
    """Whether another joint stands near the mirror image of this one."""
    mirrored = rig.P[joint] * [-1.0, 1.0, 1.0] + [2 * rig.middle, 0.0, 0.0]
    far = np.linalg.norm(rig.P - mirrored, axis=1)
    far[joint] = np.inf
    return bool(far.min() < 0.12 * rig.size)


# Chains


def _chains(rig: _Rig, sides: Sequence[Side]) -> list[_Chain]:
    """Every chain that leaves the middle line; limbs that share an anchor bone are one chain each."""
    chains: list[_Chain] = []
    for start, parent in enumerate(rig.skeleton.parents):
        if sides[start] != "middle" and (parent < 0 or sides[parent] != sides[start]) and not rig.said[start].ignored:
            for first in _limb_starts(rig, start):
                joints = _main_path(rig, first)
                if len(joints) > 1:  # a lone sided joint is a control or a decoration
                    chains.append(_Chain(sides[start], joints, rig.skeleton.parents[first]))
    return chains


def _limb_starts(rig: _Rig, start: int) -> list[int]:
    """The first joints of the limbs below a sided joint: itself, or its branches where it is an anchor."""
    way, joint = 0.0, start
    while True:
        kids = _limb_kids(rig, joint)
        if not kids:
            return [start]
        lengths = {kid: _length(rig, kid) for kid in kids}
        longest = max(lengths.values())
        long_ones = [kid for kid in kids if lengths[kid] > 0.55 * longest]
        if way > ANCHOR * longest:
            return [start]
        if len(long_ones) > 1 and longest > 0.12 * rig.size:
            return [first for kid in long_ones for first in _limb_starts(rig, kid)]
        joint = max(kids, key=lambda kid: lengths[kid])
        way += _bone(rig, joint)


def _bone(rig: _Rig, joint: int) -> float:
    parent = rig.skeleton.parents[joint]
    return float(np.linalg.norm(rig.P[joint] - rig.P[parent])) if parent >= 0 else 0.0


def _limb_kids(rig: _Rig, joint: int) -> list[int]:
    return [c for c in rig.children[joint] if not (rig.said[c].ignored or rig.said[c].finger)]


def _length(rig: _Rig, joint: int) -> float:
    """The longest way from a joint's parent through it to an end, without fingers and controls."""
    best, stack = 0.0, [(joint, _bone(rig, joint))]
    while stack:
        here, way = stack.pop()
        best = max(best, way)
        stack += [(kid, way + _bone(rig, kid)) for kid in _limb_kids(rig, here)]
    return best


def _main_path(rig: _Rig, start: int) -> list[int]:
    """From a limb's first joint along its longest way, leaving fingers, feathers and controls aside."""
    path = [start]
    while kids := _limb_kids(rig, path[-1]):
        path.append(max(kids, key=lambda kid: _length(rig, kid)))
    # The fingers of a dragon's wing are half of it.
    way = sum(_bone(rig, joint) for joint in path[1:])
    fingers = [c for c in rig.children[path[-1]] if rig.said[c].finger and _bone_below(rig, c) > 0.5 * way]
    while fingers:
        path.append(max(fingers, key=lambda kid: _bone_below(rig, kid)))
        fingers = list(rig.children[path[-1]])
    return path


def _bone_below(rig: _Rig, joint: int) -> float:
    """How far the farthest joint below a joint's parent is from that parent."""
    parent = rig.skeleton.parents[joint]
    return max(float(np.linalg.norm(rig.P[j] - rig.P[parent])) for j in _below(rig, joint))


def _match_twins(rig: _Rig, chains: list[_Chain]) -> None:
    """Pair chains left and right: nearest to each other's mirror image, names that differ by the side counting too."""
    costs = []
    for i, a in enumerate(chains):
        for k, b in enumerate(chains):
            if a.side == "left" and b.side == "right":
                flip = np.array([-1.0, 1.0, 1.0])
                gap = sum(
                    float(np.linalg.norm((rig.P[a.joints[e]] - rig.P[b.joints[e]] * flip) - [2 * rig.middle, 0, 0]))
                    for e in (0, -1)
                )
                same = rig.said[a.joints[0]].tokens - {"l", "left"} == rig.said[b.joints[0]].tokens - {"r", "right"}
                costs.append((gap / rig.size - 0.2 * same, i, k))
    for cost, i, k in sorted(costs):
        if chains[i].twin is None and chains[k].twin is None and cost < 0.9:
            chains[i].twin, chains[k].twin = k, i


# Kinds


def _classify(rig: _Rig, sides: Sequence[Side], chains: list[_Chain]) -> None:
    """Legs, arms, wings and fins, each pair together; chains that are ears or decoration keep no kind."""
    stands = _standing(rig, chains, ON_GROUND)
    upright = _upright(rig, chains, stands)
    if not upright and any(stands):  # what stands on four legs may lift a foot
        stands = _standing(rig, chains, 2 * ON_GROUND)
    many = _many_legs(rig, chains, stands)
    stands = [s or m for s, m in zip(stands, many, strict=True)]
    floats = not any(stands)
    for i, chain in enumerate(chains):
        pair = [chain] if chain.twin is None else [chain, chains[chain.twin]]
        votes: list[LimbKind | None] = [rig.said[j].kind for c in pair for j in c.joints]
        named = _majority(votes)
        if chain.kind is None and not _decoration(rig, sides, chain, votes, stands=stands[i]):
            kind = _kind(rig, chain, named, stands=stands[i], upright=upright, floats=floats)
            for member in pair:
                member.kind = kind


def _kind(rig: _Rig, chain: _Chain, named: LimbKind | None, *, stands: bool, upright: bool, floats: bool) -> LimbKind:
    if named in ("wing", "fin"):
        return named
    sheet = bool(rig.sheets[_below(rig, chain.joints[0])].mean() > 0.3)
    if stands:
        # Arms may hang to the ground beside legs that are called legs; a horse's "arm" is a foreleg.
        return "arm" if named == "arm" and upright else "leg"
    if named == "leg" and (floats or _nearly_down(rig, chain)):
        return "leg"
    if sheet:
        return "wing"
    return "arm"


def _majority(votes: Sequence[LimbKind | None]) -> LimbKind | None:
    limb = [v for v in votes if v in ("leg", "arm", "wing", "fin")]
    for strong in ("wing", "fin"):
        if strong in limb:
            return strong
    return max(("leg", "arm"), key=limb.count) if limb else None


def _standing(rig: _Rig, chains: Sequence[_Chain], share: float) -> list[bool]:
    """Whether each chain and its twin reach the ground; one alone must be called a leg to count."""
    low = [_reaches_ground(rig, chain, share) for chain in chains]
    called = [any(rig.said[j].kind == "leg" for j in chain.joints) for chain in chains]
    return [low[i] and (called[i] if c.twin is None else low[c.twin]) for i, c in enumerate(chains)]


def _reaches_ground(rig: _Rig, chain: _Chain, share: float) -> bool:
    """Whether the chain, with its toes, comes down to the ground and starts above that."""
    low = min(float(rig.P[j, 1]) for j in _below(rig, chain.joints[0]))
    reach = share * max(rig.height, 0.4 * rig.size)
    falls = float(rig.P[chain.joints[0], 1]) - low
    return low < rig.ground + reach and falls > 0.1 * reach


def _many_legs(rig: _Rig, chains: Sequence[_Chain], stands: Sequence[bool]) -> list[bool]:
    """Chains of a body with three pairs or more that all end low and beside it: legs, though some are lifted."""
    low = []
    for chain in chains:
        end = rig.P[chain.joints[-1]]
        drop = float(rig.P[chain.joints[0], 1] - end[1])
        low.append(
            chain.twin is not None
            and not rig.sheets[_below(rig, chain.joints[0])].mean() > 0.3
            and drop > 0
            and float(end[1]) < rig.ground + 0.4 * rig.height
            and _length(rig, chain.joints[0]) > 0.12 * rig.size
        )
    return low if sum(low) >= 6 and any(stands) else [False] * len(chains)


def _nearly_down(rig: _Rig, chain: _Chain) -> bool:
    """Whether the chain points down and ends not far above the ground, as a raised foot does."""
    way = rig.P[chain.joints[-1]] - rig.P[chain.joints[0]]
    down = float(-way[1]) > 0.6 * float(np.linalg.norm(way))
    return down and float(rig.P[chain.joints[-1], 1]) < rig.ground + 0.25 * rig.height


def _upright(rig: _Rig, chains: Sequence[_Chain], stands: Sequence[bool]) -> bool:
    """Whether the trunk rises from the hind pair of limbs to the fore pair as a person's does."""
    starts = [rig.P[c.joints[0]] for c in chains if c.twin is not None]
    low = [rig.P[c.joints[0]] for c, s in zip(chains, stands, strict=True) if s and c.twin is not None]
    if not low:
        return True
    hip = min(low, key=lambda p: float(p[1]))
    chest = max(starts, key=lambda p: float(p[1]))
    way = (chest - hip) * [0.0, 1.0, 1.0]
    return float(way[1]) > UPRIGHT * max(float(np.linalg.norm(way)), 1e-9)


def _decoration(
    rig: _Rig, sides: Sequence[Side], chain: _Chain, votes: Sequence[LimbKind | None], *, stands: bool
) -> bool:
    """Ears, horns, antennae: what hangs on the end of the middle line and does not reach the ground."""
    if any(v in ("head", "tail") for v in votes):
        return True
    if stands or any(votes):
        return False
    if chain.twin is None or _length(rig, chain.joints[0]) < 0.06 * rig.size:
        return True
    if any(rig.said[j].tokens & {"head", "skull", "jaw", "face"} for j in _path(rig, chain.parent)):
        return True
    return _ends_middle(rig, sides, chain.parent)


def _ends_middle(rig: _Rig, sides: Sequence[Side], joint: int) -> bool:
    """Whether the middle line ends right after a joint that is not the first of it."""
    if joint <= 0 or sides[joint] != "middle":
        return False
    middle = [child for child in rig.children[joint] if sides[child] == "middle"]
    return not any(sides[below] == "middle" for child in middle for below in rig.children[child])


def _ranked(chains: Sequence[_Chain], P: Float[ndarray, "joints 3"]) -> list[Limb]:
    """The limbs, numbered from front to back within their kind and side, left before right."""
    ranked: list[Limb] = []
    kinds: tuple[Literal["leg", "arm", "wing", "fin"], ...] = ("leg", "arm", "wing", "fin")
    for kind in kinds:
        for side in ("left", "right"):
            row = [chain for chain in chains if chain.kind == kind and chain.side == side]
            row.sort(key=lambda chain: -float(P[chain.joints[0], 2] + 0.5 * P[chain.joints[-1], 2]))
            ranked += [Limb(kind, side, rank, tuple(chain.joints)) for rank, chain in enumerate(row)]
    return ranked


# The middle line


def _head(rig: _Rig, sides: Sequence[Side], attached: set[int]) -> list[int]:
    """The neck with the head: from above the last joint that carries a limb on the way to the head."""
    skeleton, said, P = rig.skeleton, rig.said, rig.P
    named = [j for j, words in enumerate(said) if words.tokens & {"head", "skull"}]
    necks = [j for j, words in enumerate(said) if words.kind == "head" and sides[j] == "middle" and j not in named]
    if named or necks:
        end = next((j for j in named if skeleton.names[j].lower().endswith("head")), (named or necks[-1:])[0])
        tip = [c for c in _below(rig, end)[1:] if sides[c] == "middle" and not said[c].ignored]
        last = max(tip, key=lambda j: float(np.linalg.norm(P[j] - P[end])), default=end)
    else:
        leaves = [j for j in _leaves(rig) if sides[j] == "middle" and not said[j].ignored and said[j].kind != "tail"]
        leaves = [j for j in leaves if P[j, 1] + P[j, 2] > P[0, 1] + P[0, 2] + 1e-6]
        if not leaves:
            return []
        last = max(leaves, key=lambda j: float(P[j, 1] + P[j, 2]))
    path = _path(rig, last)
    neck = [i for i, j in enumerate(path) if said[j].tokens & {"neck", "cervical"}]
    carriers = [i + 1 for i, j in enumerate(path[:-1]) if j in attached]
    head = [i for i, j in enumerate(path) if said[j].kind == "head"]
    # Without a neck by name it begins where the last limb leaves; a horse's spine may run up to its head.
    first = (neck or carriers[-1:] or head or [1])[0]
    return path[first:]


def _tail(rig: _Rig, sides: Sequence[Side], head: set[int]) -> list[int]:
    """The chain that is called tail, else the middle chain that leads furthest back."""
    said, P = rig.said, rig.P
    named = [j for j, words in enumerate(said) if words.kind == "tail" and sides[j] == "middle"]
    if named:
        last = max(named, key=lambda j: len(_path(rig, j)))
        return [j for j in _path(rig, last) if j in named]
    for leaf in sorted(_leaves(rig), key=lambda j: float(P[j, 2])):
        path = [j for j in _path(rig, leaf) if j and j not in head]
        plain = all(sides[j] == "middle" and said[j].kind is None and not said[j].ignored for j in path)
        if path and plain and float(P[0, 2] - P[leaf, 2]) > 0.04 * rig.size:
            return path
    return []


def _spine(rig: _Rig, limbs: Sequence[Limb], head: Sequence[int]) -> list[int]:
    """From the root to where the neck or the last limb leaves."""
    parents = rig.skeleton.parents
    if head:
        return _path(rig, parents[head[0]]) if head[0] else []
    starts = [parents[limb.joints[0]] for limb in limbs if limb.joints[0]]
    return max((_path(rig, joint) for joint in starts if joint >= 0), key=len, default=[])


def _path(rig: _Rig, joint: int) -> list[int]:
    """From the root to a joint."""
    path = [joint]
    while rig.skeleton.parents[path[-1]] >= 0:
        path.append(rig.skeleton.parents[path[-1]])
    return path[::-1]


def _leaves(rig: _Rig) -> list[int]:
    return [joint for joint, kids in enumerate(rig.children) if not kids]


def _below(rig: _Rig, joint: int) -> list[int]:
    """A joint and all its descendants."""
    found = [joint]
    for here in found:
        found += rig.children[here]
    return found
