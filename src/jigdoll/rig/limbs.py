"""Which joints are a leg, an arm, a wing, a fin, the head, a tail: by where they are; names only break ties.

A chain of joints that leaves the middle line is a leg if it and its twin across reach the ground and the body stands on
them. What does not reach the ground is an arm, a wing (a thin sheet of skin, or so called) or a fin; ears, horns and
feelers are none. Names decide where geometry cannot: an arm that touches the ground, a body that floats.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from jigdoll.rig.chains import Body, Chain, chains_of, measured, sides_of, to_hand, without_props
from jigdoll.rig.flesh import THIN, Outline
from jigdoll.rig.middle_line import head_of, spine_of, tail_of
from jigdoll.rig.names import LimbKind, Side
from jigdoll.types import Limb, Skeleton

ON_GROUND = 0.07
"""A limb reaches the ground if its lowest point is below this share of the height."""
UPRIGHT = 0.7
"""A trunk is upright if the way from its hind limbs to its fore limbs rises by more than this sine."""
FIN = 0.37
"""On a body without legs a sheet smaller than this is a fin, a larger one a wing [body sizes]."""


def find_limbs(skeleton: Skeleton, outline: Outline | None = None) -> tuple[Limb, ...]:
    """All limbs of a rig: sided chains that leave the middle line, the neck with the head, the tail, the spine.

    `outline` (`rig.flesh.flesh_of(asset).outline`) tells where the flesh of each joint is and what is a thin sheet, as
    wings are; without it joints alone tell, and a wing is known by name only. Joints that only carry ears, fingers,
    feathers or controls belong to no limb. A rig without any of these has none.
    """
    body = measured(skeleton, outline)
    sides = sides_of(body)
    chains = chains_of(body, sides)
    stance = _stance(body, sides, chains)
    standing = {chain.first for chain, stands in zip(chains, stance.stands, strict=True) if stands}
    _classify(body, chains, stance, set(head_of(body, sides, standing)))
    for chain in chains:
        if chain.kind in ("arm", "wing"):
            chain.joints = to_hand(body, chain.joints, whole=chain.kind == "wing")
    for chain in chains:
        if chain.kind == "arm" and chain.twin is not None and len(chain.joints) > len(chains[chain.twin].joints):
            chain.joints = without_props(body, chain, chains[chain.twin])
    limbs = _ranked([chain for chain in chains if chain.kind is not None], body.P)
    starts = {limb.joints[0] for limb in limbs}
    attached = {skeleton.parents[start] for start in starts}
    head = head_of(body, sides, starts)
    tail = tail_of(body, sides, attached, head)
    if tail and not head:
        head = _head_at_root(body)
    spine = spine_of(body, limbs, head)
    middle = (Limb("spine", "middle", 0, tuple(spine)), Limb("head", "middle", 0, tuple(head)))
    middle = (*middle, Limb("tail", "middle", 0, tuple(tail)))
    return (*limbs, *(limb for limb in middle if limb.joints))


@dataclass(frozen=True)
class _Stance:
    """How a body stands."""

    stands: list[bool]
    """Of each chain."""
    upright: bool
    hips: float
    """The height of the lowest hips [m]."""
    front: float
    """How far ahead the foremost hips are [m]."""
    legs: int
    lies: bool
    """Whether the body is longer than high."""

    @property
    def on_all_fours(self) -> bool:
        return self.legs >= 4 and not self.upright


def _classify(body: Body, chains: list[Chain], stance: _Stance, head: set[int]) -> None:
    """Legs, arms, wings and fins, each pair together; chains that are ears or decoration keep no kind."""
    for i, chain in enumerate(chains):
        pair = [chain] if chain.twin is None else [chain, chains[chain.twin]]
        votes: list[LimbKind | None] = [body.said[j].kind for c in pair for j in c.joints]
        if chain.kind is None and not _decoration(body, chains, i, votes, stance, head):
            sheet = all(body.is_sheet(member.first) for member in pair)
            kind = _kind(body, chain, _majority(votes), stance, stands=stance.stands[i], sheet=sheet)
            for member in pair:
                member.kind = kind


def _kind(body: Body, chain: Chain, named: LimbKind | None, stance: _Stance, *, stands: bool, sheet: bool) -> LimbKind:
    if named in ("wing", "fin"):
        return named
    start = float(body.P[chain.first, 1])
    if stands:
        # Arms may hang to the ground beside the legs of an upright body; a horse's "arm" is a foreleg.
        raised = named != "leg" and start > stance.hips + 0.2 * body.height
        return "arm" if stance.upright and (named == "arm" or raised) else "leg"
    if named == "leg" and (stance.legs == 0 or _nearly_down(body, chain)):
        return "leg"
    if stance.legs >= 4 and _points_forward(body, chain, stance.front):
        return "arm"
    extent = body.extent(chain.first)
    swims = stance.legs == 0 and stance.lies and _pieces(body, chain) < 3
    vane = named is None and stance.legs < 4 and _pieces(body, chain) > 2 and _vane(body, chain)
    if swims or sheet or vane or _folded(body, chain, stance):
        return "fin" if stance.legs == 0 and extent < FIN * body.size else "wing"
    return "arm"


def _vane(body: Body, chain: Chain) -> bool:
    """Whether all its flesh together is a wide and thin sheet that reaches far out, thinner where it lies ahead."""
    width, depth = body.spread(chain.first)
    thin = 0.4 if float(body.direction(chain.first)[2]) < -0.3 else 0.3
    return 0.25 < width < 0.7 and depth < thin and body.extent(chain.first) > 0.4 * body.size


def _pieces(body: Body, chain: Chain) -> int:
    """How many joints of a chain carry flesh."""
    return sum(bool(body.fleshy[j]) for j in chain.joints)


def _majority(votes: Sequence[LimbKind | None]) -> LimbKind | None:
    limb = [v for v in votes if v in ("leg", "arm", "wing", "fin")]
    for strong in ("wing", "fin"):
        if strong in limb:
            return strong
    return max(("leg", "arm"), key=limb.count) if limb else None


def _folded(body: Body, chain: Chain, stance: _Stance) -> bool:
    """Whether it lies along the body to the back, or has feathers far behind its joints, as a folded wing does."""
    if stance.upright or not body.skinned:
        return False
    joints = body.below(chain.first)
    feathers = float(body.P[joints, 2].min() - body.below_low[chain.first, 2])
    along = float(body.direction(chain.first)[2]) < -0.7
    return feathers > 0.2 * body.size or along


# What stands


def _stance(body: Body, sides: Sequence[Side], chains: Sequence[Chain]) -> _Stance:
    """Which chains stand on the ground, and whether the trunk is upright over them."""
    trunk = [j for j, side in enumerate(sides) if side == "middle" and body.fleshy[j]] or [0]
    belly = float(body.low[max(trunk, key=lambda j: float(np.linalg.norm(body.high[j] - body.low[j]))), 1])
    stands = _standing(body, chains, belly, ON_GROUND)
    upright = _upright(body, chains, stands)
    if not upright and any(stands):  # what stands on four legs may lift a foot
        front = max(float(body.P[c.first, 2]) for c, s in zip(chains, stands, strict=True) if s)
        lifted = _standing(body, chains, belly, 2 * ON_GROUND)
        lifted = [up and not _points_forward(body, c, front) for up, c in zip(lifted, chains, strict=True)]
        lifted = [up and float(body.direction(c.first)[1]) < 0.3 for up, c in zip(lifted, chains, strict=True)]
        stands = [s or up for s, up in zip(stands, lifted, strict=True)]
    if not any(stands):
        stands = _hanging(body, chains)
        upright = upright and not any(stands)
    many = _many_legs(body, chains, stands)
    stands = [s or m for s, m in zip(stands, many, strict=True)]
    if sum(stands) >= 8:
        stands = [s and not _claw(body, chains, i, stands) for i, s in enumerate(stands)]
    starts = [body.P[c.first] for c, s in zip(chains, stands, strict=True) if s] or [np.zeros(3)]
    hips, front = min(float(p[1]) for p in starts), max(float(p[2]) for p in starts)
    length = float(body.high[body.fleshy, 2].max() - body.low[body.fleshy, 2].min())
    return _Stance(stands, upright, hips, front, sum(stands), length > body.height)


def _claw(body: Body, chains: Sequence[Chain], index: int, stands: Sequence[bool]) -> bool:
    """Whether the foremost of many pairs is held ahead, a little above the ground: claws or feelers, no legs."""
    chain = chains[index]
    pair = (index, chain.twin)
    front = max(float(body.P[c.first, 2]) for i, c in enumerate(chains) if stands[i] and i not in pair)
    lifted = float(body.below_low[chain.first, 1]) > body.ground + 0.04 * body.height
    return lifted and _points_forward(body, chain, front)


def _points_forward(body: Body, chain: Chain, front: float) -> bool:
    """Whether a chain leaves the body before all legs and points ahead, as claws and feelers do."""
    return float(body.P[chain.first, 2]) > front - 0.03 * body.size and float(body.direction(chain.first)[2]) > 0.5


def _standing(body: Body, chains: Sequence[Chain], belly: float, share: float) -> list[bool]:
    """Whether each chain and its twin reach the ground; one alone must be called a leg to count."""
    low = [_reaches_ground(body, chain, share) for chain in chains]
    called = [any(body.said[j].kind == "leg" for j in chain.joints) for chain in chains]
    stands = [low[i] and (called[i] if c.twin is None else low[c.twin]) for i, c in enumerate(chains)]
    if sum(stands) >= 6 and belly > body.ground + 0.03 * body.height:
        return stands
    pair = sum(stands) == 2
    fins = [s and not called[i] and _flipper(body, chains[i], belly, alone=pair) for i, s in enumerate(stands)]
    fins = [fin or (c.twin is not None and fins[c.twin]) for fin, c in zip(fins, chains, strict=True)]
    return [s and not fin for s, fin in zip(stands, fins, strict=True)]


def _reaches_ground(body: Body, chain: Chain, share: float) -> bool:
    """Whether the chain, with its toes, comes down to the ground and starts above that."""
    low = float(body.below_low[chain.first, 1])
    beyond = [joint for joint in body.below(chain.first)[1:] if body.fleshy[joint]]
    sits = float(body.low[chain.parent, 1]) <= float(body.low[chain.first, 1]) + 0.01 * body.height
    if (
        body.skinned and sits and len(beyond) > 2 and float(body.direction(chain.first)[1]) > 0
    ):  # where the trunk is as low, a leg stands on its end
        low = float(body.low[beyond, 1].min())
    reach = share * max(body.height, 0.4 * body.size)
    falls = max(float(body.P[chain.first, 1]), float(body.high[chain.first, 1])) - low
    return low < body.ground + reach and falls > 0.1 * reach


def _flipper(body: Body, chain: Chain, belly: float, *, alone: bool) -> bool:
    """Whether a thin sheet touches the ground beside a belly that is nearly as low: nothing that bears a body.

    Where no other pair is down (`alone`), the belly may be a little higher.
    """
    above = (belly - body.ground) / max(body.height, 1e-9)
    thin = 0.52 if above < (2 * ON_GROUND if alone else ON_GROUND) else THIN
    return above < 0.5 and body.is_sheet(chain.first, thin=thin, share=0.8)


def _hanging(body: Body, chains: Sequence[Chain]) -> list[bool]:
    """Of a body that is held in the air: two pairs or more that point down, the legs of a beast."""
    down = []
    for chain in chains:
        way = body.P[chain.joints[-1]] - body.P[chain.first]
        lies = _reaches_ground(body, chain, ON_GROUND)  # and was not found to stand
        down.append(chain.twin is not None and not lies and float(-way[1]) > 0.3 * float(np.linalg.norm(way)))
    both = [d and chain.twin is not None and down[chain.twin] for d, chain in zip(down, chains, strict=True)]
    sheets = [b and body.is_sheet(chain.first) for b, chain in zip(both, chains, strict=True)]
    both = [b and not s for b, s in zip(both, sheets, strict=True)]
    return both if sum(both) >= 4 and not _upright(body, chains, both) else [False] * len(chains)


def _many_legs(body: Body, chains: Sequence[Chain], stands: Sequence[bool]) -> list[bool]:
    """Chains of a body with three pairs or more that all end low and beside it: legs, though some are lifted."""
    front = max((float(body.P[c.first, 2]) for c, s in zip(chains, stands, strict=True) if s), default=np.inf)
    low = []
    for chain in chains:
        end = float(body.below_low[chain.first, 1])
        low.append(
            chain.twin is not None
            and not body.is_sheet(chain.first)
            and float(body.P[chain.first, 1]) > end
            and end < body.ground + 0.4 * body.height
            and body.ways[chain.first] > 0.12 * body.size
            and float(body.P[chain.joints[-1], 1]) < float(body.P[chain.first, 1])
            and not _points_forward(body, chain, front)
        )
    return low if sum(low) >= 6 and any(stands) else [False] * len(chains)


def _nearly_down(body: Body, chain: Chain) -> bool:
    """Whether the chain points down and ends not far above the ground, as a raised foot does."""
    way = body.P[chain.joints[-1]] - body.P[chain.first]
    down = float(-way[1]) > 0.6 * float(np.linalg.norm(way))
    return down and float(body.P[chain.joints[-1], 1]) < body.ground + 0.25 * body.height


def _upright(body: Body, chains: Sequence[Chain], stands: Sequence[bool]) -> bool:
    """Whether the trunk rises from the hind pair of limbs to the fore pair as a person's does."""
    starts = [body.P[c.first] for c in chains if c.twin is not None]
    low = [body.P[c.first] for c, s in zip(chains, stands, strict=True) if s and c.twin is not None]
    if not low:
        return True
    hip = min(low, key=lambda p: float(p[1]))
    chest = max(low if len(low) > 2 else starts, key=lambda p: float(p[1]))  # not the ears of a hare
    way = (chest - hip) * [0.0, 1.0, 1.0]
    return float(way[1]) > max(UPRIGHT * float(np.linalg.norm(way)), 0.1 * body.height)


# What is no limb


def _decoration(
    body: Body,
    chains: Sequence[Chain],
    index: int,
    votes: Sequence[LimbKind | None],
    stance: _Stance,
    head: set[int],
) -> bool:
    """Ears, horns, feelers, tail feathers: what does not reach the ground and sits where no arm or wing does."""
    chain = chains[index]
    stiff = body.is_stiff(chain.first)
    if any(v in ("head", "tail") for v in votes) or (stiff and _cover(body, chains, chain)):
        return True
    if any(votes):
        return False
    if any(body.said[j].tokens & {"head", "skull", "jaw", "face"} for j in body.path(chain.parent)):
        return True
    if stance.stands[index]:
        return False
    if chain.twin is None or max(float(body.ways[chain.first]), body.extent(chain.first)) < 0.06 * body.size:
        return True
    small = body.extent(chain.first) < 0.25 * body.size
    fins = small and stance.legs == 0 and stance.lies and body.is_sheet(chain.first)
    if chain.parent in head and not fins and (stance.on_all_fours or _short_line(body, chain.parent, head)):
        return True
    return stiff and _feeler(body, chains, chain, stance)


def _short_line(body: Body, joint: int, head: set[int]) -> bool:
    """Whether the head goes on by at most one bone from a joint that is not the root: ears sit there, arms do not."""
    kids = [kid for kid in body.children[joint] if kid in head]
    return joint > 0 and not any(below in head for kid in kids for below in body.children[kid])


def _feeler(body: Body, chains: Sequence[Chain], chain: Chain, stance: _Stance) -> bool:
    """A stiff piece that points up, or forward before all legs, or back behind them; ears and jaws before the legs."""
    way = body.direction(chain.first)
    legs = [c for c, stands in zip(chains, stance.stands, strict=True) if stands]
    starts = [float(body.P[c.first, 2]) for c in legs]
    start, extent = float(body.P[chain.first, 2]), body.extent(chain.first)
    if legs and start < min(starts) and way[2] < -0.6:
        return True
    if body.is_sheet(chain.first):
        return stance.on_all_fours and float(way[1]) > 0.5
    if way[1] > 0.5 or (legs and start > max(starts) and way[2] > 0.5):
        return True
    if len(legs) >= 6:
        return extent < 0.5 * max(body.extent(c.first) for c in legs)
    return stance.on_all_fours and start > max(starts) and extent < 0.25 * body.size


def _cover(body: Body, chains: Sequence[Chain], chain: Chain) -> bool:
    """A piece that sits on the first joint of a longer limb, as a robot's shoulder does."""
    others = [c for c in chains if c is not chain and c.side == chain.side]
    near = [c for c in others if float(np.linalg.norm(body.P[c.first] - body.P[chain.first])) < 0.01 * body.size]
    return any(
        body.ways[c.first] - body.bones[c.first] > 2 * (body.ways[chain.first] - body.bones[chain.first]) for c in near
    )


def _ranked(chains: Sequence[Chain], P: Float[ndarray, "joints 3"]) -> list[Limb]:
    """The limbs, numbered from front to back within their kind and side, left before right."""
    ranked: list[Limb] = []
    kinds: tuple[Literal["leg", "arm", "wing", "fin"], ...] = ("leg", "arm", "wing", "fin")
    for kind in kinds:
        for side in ("left", "right"):
            row = [chain for chain in chains if chain.kind == kind and chain.side == side]
            row.sort(key=lambda chain: -float(P[chain.joints[0], 2] + 0.5 * P[chain.joints[-1], 2]))
            ranked += [Limb(kind, side, rank, tuple(chain.joints)) for rank, chain in enumerate(row)]
    return ranked


def _head_at_root(body: Body) -> list[int]:
    """The root where it is the foremost third of a body that goes on behind it."""
    length = float(np.ptp(np.concatenate([body.low[body.fleshy, 2], body.high[body.fleshy, 2]])))
    foremost = float(body.high[0, 2]) >= float(body.high[body.fleshy, 2].max()) - 0.01 * body.size
    small = float(body.high[0, 2] - body.low[0, 2]) < 0.36 * length
    return [0] if foremost and small and body.fleshy[0] and body.skinned else []
