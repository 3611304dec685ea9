"""A skeleton measured for its limbs: where flesh is, on which side each joint is, what leaves the middle line."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from jigdoll.kinematics import rest_transforms
from jigdoll.rig.flesh import THIN, Outline
from jigdoll.rig.names import JointName, LimbKind, Side, read_name
from jigdoll.types import Skeleton

MIDDLE = 0.02
"""A joint nearer than this to the middle plane is on it [body sizes]."""
STRADDLES = 0.4
"""Flesh whose centre is nearer to the middle plane than this share of its half width is on both sides."""
ANCHOR = 0.45
"""Joints that carry several limbs branch before this share of the longest limb's length; fingers branch later."""


@dataclass(frozen=True, eq=False)
class Body:
    """A skeleton with everything that is asked about it again and again. Boxes are of flesh; of bare joints a point."""

    skeleton: Skeleton
    P: Float[ndarray, "joints 3"]
    said: list[JointName]
    children: tuple[tuple[int, ...], ...]
    skinned: bool
    """Whether there is skin to tell what is flesh."""
    fleshy: Bool[ndarray, " joints"]
    """Joints that carry flesh; all of them where there is no skin."""
    flatness: Float[ndarray, " joints"]
    """How thick each joint's flesh is as a share of its width."""
    low: Float[ndarray, "joints 3"]
    high: Float[ndarray, "joints 3"]
    """The box of each joint's own flesh."""
    below_low: Float[ndarray, "joints 3"]
    below_high: Float[ndarray, "joints 3"]
    """The box of the flesh of each joint and of all joints below it."""
    outlines: Float[ndarray, "joints 26 3"]
    """The outermost points of each joint's own flesh; not a number where there is none."""
    ways: Float[ndarray, " joints"]
    """The longest way from each joint's parent through it to an end, without fingers and controls [m]."""
    bones: Float[ndarray, " joints"]
    """How far each joint is from its parent [m]."""
    size: float
    """The larger of height and length [m]."""
    height: float
    ground: float
    middle: float
    """Where the middle plane is [m]."""

    def below(self, joint: int) -> list[int]:
        """A joint and all its descendants."""
        found = [joint]
        for here in found:
            found += self.children[here]
        return found

    def path(self, joint: int) -> list[int]:
        """From the root to a joint."""
        path = [joint]
        while self.skeleton.parents[path[-1]] >= 0:
            path.append(self.skeleton.parents[path[-1]])
        return path[::-1]

    def limb_kids(self, joint: int) -> list[int]:
        """The children of a joint that may continue a limb: no fingers, ears or controls."""
        return [c for c in self.children[joint] if not (self.said[c].ignored or self.said[c].finger)]

    def is_sheet(self, joint: int, *, thin: float = THIN, share: float = 0.5) -> bool:
        """Whether most of the flesh from a joint on is thin sheets."""
        joints = [j for j in self.below(joint) if self.fleshy[j]]
        areas = ((self.high[joints] - self.low[joints]) ** 2).sum(1)
        return bool((areas * (self.flatness[joints] < thin)).sum() > share * areas.sum()) if joints else False

    def spread(self, joint: int) -> tuple[float, float]:
        """How wide all flesh from a joint on is as a share of its length, and how thick as a share of its width."""
        joints = [j for j in self.below(joint) if self.fleshy[j]]
        if not joints or not self.skinned:
            return 0.0, 1.0
        points = self.outlines[joints].reshape(-1, 3)
        length, width, depth = np.linalg.svd(points - points.mean(0), compute_uv=False)
        return float(width / max(length, 1e-12)), float(depth / max(width, 1e-12))

    def is_stiff(self, joint: int) -> bool:
        """Whether all flesh from a joint on moves as one piece."""
        return self.skinned and sum(bool(self.fleshy[j]) for j in self.below(joint)) == 1

    def extent(self, joint: int) -> float:
        """The diagonal of the box of all flesh from a joint on [m]."""
        return float(np.linalg.norm(self.below_high[joint] - self.below_low[joint]))

    def direction(self, joint: int) -> Float[ndarray, " 3"]:
        """From a joint to the middle of the flesh from it on."""
        way = (self.below_low[joint] + self.below_high[joint]) / 2 - self.P[joint]
        return way / max(float(np.linalg.norm(way)), 1e-9)


@dataclass
class Chain:
    """A sided chain before it has a kind."""

    side: Side
    joints: list[int]
    parent: int
    twin: int | None = None
    kind: LimbKind | None = None

    @property
    def first(self) -> int:
        """Where it leaves the body."""
        return self.joints[0]


def measured(skeleton: Skeleton, outline: Outline | None) -> Body:
    """Measure a skeleton at rest, with the outline of its flesh where it has skin."""
    T = rest_transforms(skeleton).detach().double().numpy()
    P, count = T[:, :3, 3], len(skeleton)
    fleshy, flatness = np.ones(count, bool), np.ones(count)
    low, high = P.copy(), P.copy()
    outlines = np.full((count, 26, 3), np.nan)
    skinned = outline is not None and bool(np.isfinite(outline.points).any())
    if outline is not None and skinned:
        fleshy, flatness = np.isfinite(outline.points[:, 0, 0]), outline.flatness
        points = np.einsum("jab,jpb->jpa", T[fleshy, :3, :3], outline.points[fleshy]) + P[fleshy, None]
        low[fleshy], high[fleshy] = points.min(1), points.max(1)
        outlines[fleshy] = points
    said = [read_name(name) for name in skeleton.names]
    parents, children = skeleton.parents, skeleton.children
    bones = np.linalg.norm(P - P[np.maximum(parents, 0)], axis=1)
    below_low, below_high = np.where(fleshy[:, None], low, np.inf), np.where(fleshy[:, None], high, -np.inf)
    ways = bones.copy()
    for joint in range(count - 1, 0, -1):
        parent = parents[joint]
        below_low[parent] = np.minimum(below_low[parent], below_low[joint])
        below_high[parent] = np.maximum(below_high[parent], below_high[joint])
        if not (said[joint].ignored or said[joint].finger):
            ways[parent] = max(ways[parent], bones[parent] + ways[joint])
    bare = ~np.isfinite(below_low[:, 0])
    below_low[bare], below_high[bare] = P[bare], P[bare]
    extent = high[fleshy].max(0) - low[fleshy].min(0)
    return Body(
        skeleton=skeleton,
        P=P,
        said=said,
        children=children,
        skinned=skinned,
        fleshy=fleshy,
        flatness=flatness,
        low=low,
        high=high,
        below_low=below_low,
        below_high=below_high,
        outlines=outlines,
        ways=ways,
        bones=bones,
        size=max(float(extent[1]), float(extent[2]), 0.25 * float(extent[0]), 1e-9),
        height=float(extent[1]),
        ground=float(low[fleshy, 1].min()),
        middle=_middle(P, said, low, high, fleshy),
    )


def _middle(
    P: Float[ndarray, "joints 3"],
    said: Sequence[JointName],
    low: Float[ndarray, "joints 3"],
    high: Float[ndarray, "joints 3"],
    fleshy: Bool[ndarray, " joints"],
) -> float:
    """The middle plane: where joints without a side are, or the root, or the skin's middle, whatever mirrors best."""
    unsided = [float(P[j, 0]) for j in range(len(P)) if said[j].side is None] or [float(P[0, 0])]
    candidates = [float(np.median(unsided))]
    centres = ((low + high) / 2)[fleshy]
    candidates += [float(low[fleshy, 0].min() + high[fleshy, 0].max()) / 2, float(low[0, 0] + high[0, 0]) / 2]

    boxes = np.concatenate([centres, (high - low)[fleshy]], axis=1)

    def miss(x: float) -> float:
        """How far each piece of flesh is from being the mirror image of one of its size."""
        mirrored = boxes * [-1.0, 1.0, 1.0, 1.0, 1.0, 1.0] + [2 * x, 0.0, 0.0, 0.0, 0.0, 0.0]
        return float(np.linalg.norm(boxes[:, None] - mirrored[None], axis=-1).min(1).mean())

    if len(centres) > 200:  # so many joints are a well made rig
        return candidates[0]
    misses = [miss(x) for x in candidates]
    best = min(misses)
    return next(x for x, m in zip(candidates, misses, strict=True) if m < 1.02 * best + 1e-9)


def sides_of(body: Body) -> list[Side]:
    """Left, right or middle for every joint: where it is, what hangs below it, and its name where it is on the line."""
    centre, half = (body.low + body.high)[:, 0] / 2 - body.middle, (body.high - body.low)[:, 0] / 2
    near = np.maximum(MIDDLE * body.size, STRADDLES * half)
    here: list[Side] = [
        "middle" if abs(x) < n else "left" if x > 0 else "right" for x, n in zip(centre, near, strict=True)
    ]
    both = body.fleshy & (np.abs(centre) < 0.25 * half) & (half > 0.03 * body.size)
    across = body.fleshy & (np.abs(centre) < 0.7 * half) & (half > 0.03 * body.size)
    carries = np.isin(np.arange(len(here)), [j for leaf in np.flatnonzero(body.fleshy) for j in body.path(int(leaf))])
    sides: list[Side] = []
    for joint, parent in enumerate(body.skeleton.parents):
        words = body.said[joint]
        if joint == 0 or (words.side is None and words.kind in ("spine", "head", "tail")):
            sides.append("middle")
        elif parent > 0 and sides[parent] != "middle":
            sides.append(sides[parent])
        elif not carries[joint] and words.side is None:
            sides.append(sides[parent])  # a bare tip is where its bone is
        elif both[joint] and sum(carries[kid] for kid in body.children[joint]) == 0:
            sides.append("middle")  # one joint moves both legs
        elif words.side is not None and (here[joint] in ("middle", words.side)):
            sides.append(words.side)
        elif here[joint] != "middle" and not _has_twin(body, joint):
            # Off the middle without anyone across: a bent tail, a trunk that looks aside.
            sides.append("middle" if words.side is None else words.side)
        else:
            sides.append(here[joint])
    for joint in reversed(range(1, len(sides))):
        # A collar bone begins on the middle line but carries one side only.
        below: set[Side] = {sides[child] for child in body.children[joint]}
        loose = sides[joint] == "middle" and body.said[joint].kind is None and not across[joint]
        if loose and below in ({"left"}, {"right"}):
            sides[joint] = below.pop()
    return sides


def _has_twin(body: Body, joint: int) -> bool:
    """Whether the flesh of another joint, of like size and on no line with this one, is near the mirror image."""
    centres = (body.low + body.high) / 2
    mirrored = centres[joint] * [-1.0, 1.0, 1.0] + [2 * body.middle, 0.0, 0.0]
    far = np.linalg.norm(centres - mirrored, axis=1)
    sizes = np.linalg.norm(body.high - body.low, axis=1)
    far[[*body.path(joint), *body.below(joint)]] = np.inf
    far[(sizes > 1.7 * sizes[joint]) | (1.7 * sizes < sizes[joint])] = np.inf
    aside, own = np.abs(centres[:, 0] - body.middle), abs(float(centres[joint, 0] - body.middle))
    far[(aside > 3 * own) | (3 * aside < own)] = np.inf
    return bool(far.min() < 0.12 * body.size)


def chains_of(body: Body, sides: Sequence[Side]) -> list[Chain]:
    """Every chain that leaves the middle line, paired left and right; limbs that share an anchor are one chain each."""
    chains: list[Chain] = []
    for start, parent in enumerate(body.skeleton.parents):
        if sides[start] != "middle" and (parent < 0 or sides[parent] != sides[start]) and not body.said[start].ignored:
            for first in _limb_starts(body, start):
                joints = _main_path(body, first)
                if len(joints) > 1:  # a lone sided joint is a control or a decoration
                    chains.append(Chain(sides[start], joints, body.skeleton.parents[first]))
    _match_twins(body, chains)
    return chains


def _limb_starts(body: Body, start: int) -> list[int]:
    """The first joints of the limbs below a sided joint: itself, or its branches where it is an anchor."""
    found: list[int] = []
    pending = [start]
    while pending:
        first = pending.pop(0)
        way, joint = 0.0, first
        while True:
            kids = body.limb_kids(joint)
            longest = max((float(body.ways[kid]) for kid in kids), default=0.0)
            long_ones = [kid for kid in kids if body.ways[kid] > 0.55 * longest]
            # Fingers that leave one place leave it at the end of this bone.
            shared = float(body.bones[long_ones].min()) if _begin_together(body, long_ones) else 0.0
            if not kids or way + shared > ANCHOR * (longest - shared):
                found.append(first)
                break
            if len(long_ones) > 1 and longest > 0.12 * body.size:
                pending += long_ones
                break
            joint = max(kids, key=lambda kid: float(body.ways[kid]))
            way += float(body.bones[joint])
    return found


def _begin_together(body: Body, joints: Sequence[int]) -> bool:
    """Whether several joints lie at one place, away from their parent."""
    if len(joints) < 2:
        return False
    apart = float(np.linalg.norm(np.ptp(body.P[joints], axis=0)))
    return apart < 0.3 * float(body.bones[joints].min())


def beside(body: Body) -> dict[int, int]:
    """Joints that hang on a limb but are limbs beside it, and the joint that carries both: an ant's second leg.

    Such a joint begins where its parent begins, its flesh lies beside its parent's and is as long.
    """
    centres = (body.low + body.high) / 2
    found: dict[int, int] = {}
    for kid, joint in enumerate(body.skeleton.parents):
        if joint <= 0 or not body.skinned or body.said[kid].finger or not (body.fleshy[joint] and body.fleshy[kid]):
            continue
        own, other = centres[joint] - body.P[joint], centres[kid] - body.P[kid]
        length, reach = float(np.linalg.norm(own)), float(np.linalg.norm(other))
        like = 0.07 * body.size < length and 0.5 * length < reach < 2 * length
        aside = min(abs(float(centres[j, 0] - body.middle)) for j in (joint, kid)) > MIDDLE * body.size
        ends = np.stack([body.below_low[kid], body.below_high[kid]]) - body.P[joint]
        like = like and float(np.linalg.norm(ends, axis=1).max()) < 3 * length
        if like and aside and body.bones[kid] < 0.5 * length and own @ other > 0.2 * length * reach:
            found[kid] = body.skeleton.parents[joint]
    return found


def _main_path(body: Body, start: int) -> list[int]:
    """From a limb's first joint along its longest way, leaving fingers, feathers and controls aside."""
    path = [start]
    while kids := body.limb_kids(path[-1]):
        path.append(max(kids, key=lambda kid: float(body.ways[kid])))
    # The fingers of a dragon's wing are half of it.
    way = sum(float(body.bones[joint]) for joint in path[1:])
    fingers = [c for c in body.children[path[-1]] if body.said[c].finger and _bone_below(body, c) > 0.5 * way]
    while fingers:
        path.append(max(fingers, key=lambda kid: _bone_below(body, kid)))
        fingers = list(body.children[path[-1]])
    return path


def without_props(body: Body, chain: Chain, twin: Chain) -> list[int]:
    """A chain without what its twin has not: a weapon goes on where the other hand ends."""
    last = [joint for joint in twin.joints if body.fleshy[joint]][-1:] or twin.joints[-1:]
    across = body.P[last[0]] * [-1.0, 1.0, 1.0] + [2 * body.middle, 0.0, 0.0]
    far = np.linalg.norm(body.P[chain.joints] - across, axis=1)
    end = int(far.argmin())
    beyond = sum(bool(body.fleshy[joint]) for joint in chain.joints[end + 1 :])
    return chain.joints[: end + 1] if beyond and 2 <= end and far[end] < MIDDLE * body.size else chain.joints


def to_hand(body: Body, chain: Sequence[int], *, whole: bool = False) -> list[int]:
    """An arm without its fingers: to the first joint beyond the elbow where several short chains leave.

    Fingers longer than half of the arm are followed, along the one that reaches furthest; short ones of a wing
    (`whole`) stay as they are.
    """
    way = 0.0
    for i, joint in enumerate(chain):
        way += float(body.bones[joint]) if i else 0.0
        kids = [kid for kid in body.limb_kids(joint) if body.children[kid] or body.fleshy[kid]]
        if i < 1 + (not whole) or len(kids) < 2:
            continue
        path = list(chain[: i + 1])
        reaches = [_bone_below(body, kid) for kid in kids]
        if max(reaches) < 0.5 * way:
            return list(chain) if whole else path
        while kids:
            path.append(max(kids, key=lambda kid: _bone_below(body, kid)))
            kids = body.limb_kids(path[-1])
        return path
    return list(chain)


def _bone_below(body: Body, joint: int) -> float:
    """How far the farthest joint below a joint's parent is from that parent."""
    parent = body.skeleton.parents[joint]
    return float(np.linalg.norm(body.P[body.below(joint)] - body.P[parent], axis=1).max())


def _match_twins(body: Body, chains: list[Chain]) -> None:
    """Pair chains left and right: nearest to each other's mirror image, names that differ by the side counting too."""
    costs = []
    for i, a in enumerate(chains):
        for k, b in enumerate(chains):
            if a.side == "left" and b.side == "right":
                flip = np.array([-1.0, 1.0, 1.0])
                apart = _ends(body, a) - _ends(body, b) * flip - [2 * body.middle, 0.0, 0.0]
                gap = float(np.linalg.norm(apart, axis=1).sum())
                same = body.said[a.first].tokens - {"l", "left"} == body.said[b.first].tokens - {"r", "right"}
                costs.append((gap / body.size - 0.2 * same, i, k))
    for cost, i, k in sorted(costs):
        if chains[i].twin is None and chains[k].twin is None and cost < 0.6:
            chains[i].twin, chains[k].twin = k, i


def _ends(body: Body, chain: Chain) -> Float[ndarray, "2 3"]:
    """Where a chain begins, and the middle of its flesh."""
    return np.stack([body.P[chain.first], (body.below_low[chain.first] + body.below_high[chain.first]) / 2])
