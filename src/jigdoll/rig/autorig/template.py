"""What the branches of a shape are: legs, arms, wings, head, tail; and which body plan explains them best.

As in Pinocchio a template is embedded by the sum of penalties, but here the limbs are already found, so the search is
over a few labels: every pair of branches gets the label that its place and shape make likely, and every template asks
for so many legs, arms and wings. The cheapest labelling under the cheapest template wins.
"""

from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np

from jigdoll.errors import RigError
from jigdoll.rig.autorig.curve import Branch, Curve
from jigdoll.rig.autorig.solid import Solid

Array = np.ndarray
Label = Literal["leg", "arm", "wing", "extra"]
TemplateName = Literal["biped", "bird", "theropod", "quadruped", "hexapod", "octopod", "serpent", "generic"]


@dataclass(frozen=True)
class Template:
    """How many pairs of limbs a body plan has."""

    name: TemplateName
    legs: int
    arms: tuple[int, int] = (0, 0)
    """Fewest and most pairs."""
    wings: tuple[int, int] = (0, 0)
    lying: float = 0.5
    """How the trunk lies: 0 upright, 1 level; 0.5 does not say."""


TEMPLATES: tuple[Template, ...] = (
    Template("biped", legs=1, arms=(1, 1), lying=0.0),
    Template("bird", legs=1, wings=(1, 1)),
    Template("theropod", legs=1, arms=(0, 1), lying=1.0),
    Template("quadruped", legs=2, wings=(0, 1)),
    Template("hexapod", legs=3, wings=(0, 1)),
    Template("octopod", legs=4),
    Template("serpent", legs=0),
)


@dataclass(frozen=True, eq=False)
class Pair:
    """Two branches that mirror each other."""

    left: Branch
    right: Branch

    @property
    def branches(self) -> tuple[Branch, Branch]:
        return self.left, self.right

    def mean(self, what: str) -> Array:
        """A point of the left branch averaged with the mirrored one of the right."""
        return 0.5 * (getattr(self.left, what) + getattr(self.right, what) * (-1, 1, 1))


@dataclass(frozen=True, eq=False)
class BodyPlan:
    """Which branch is what."""

    template: TemplateName
    legs: tuple[Pair, ...]
    """Front to back."""
    arms: Pair | None
    wings: Pair | None
    head: Branch | None
    tail: Branch | None
    extras: tuple[Branch, ...]
    """Ears, horns, antennae, and what no template has a use for."""
    cost: float
    """The sum of penalties; below about 1 the plan fits well."""


def fit_template(solid: Solid, curve: Curve, *, template: str = "auto") -> BodyPlan:
    """Name the branches under the body plan that explains them best, or under the one that is asked for."""
    pairs, singles = _pair_up(curve, solid)
    head, tail, others = _head_and_tail(singles, curve, solid)
    if template == "generic":
        return BodyPlan("generic", (), None, None, None, None, curve.branches, 0.0)
    candidates = [t for t in TEMPLATES if template in ("auto", t.name)]
    if not candidates:
        known = ", ".join(t.name for t in TEMPLATES)
        raise RigError(f"no template is called {template!r}; the templates are {known}, generic and auto")

    tall = float(np.ptp(np.flatnonzero(solid.filled.any((0, 2))))) * solid.size
    low = [float(np.mean([b.voxels[:, 1].min() for b in pair.branches])) / tall for pair in pairs]
    standing = [pair.left for pair, y in zip(pairs, low, strict=True) if y < 0.06]
    costs = [_label_costs(pair, y, head, standing, solid, curve) for pair, y in zip(pairs, low, strict=True)]
    best: tuple[float, Template, tuple[Label, ...]] | None = None
    for candidate in candidates:
        for labels in product(("leg", "arm", "wing", "extra"), repeat=len(pairs)):
            cost = _template_cost(candidate, labels, pairs, head, tail)
            cost += sum(table[label] for table, label in zip(costs, labels, strict=True))
            if best is None or cost < best[0] - 1e-9:
                best = (cost, candidate, labels)
    assert best is not None
    cost, chosen, labels = best
    blunt = all(pair.left.slenderness < 1.2 for pair in pairs)
    nothing = blunt and (head is None or (tail is None and not pairs))
    # Without a slender limb and a head nothing says that this is an animal: a ball, a box.
    if template == "auto" and (cost > 3.5 or nothing):
        return BodyPlan("generic", (), None, None, head, tail, curve.branches, cost)

    def named(label: Label) -> list[Pair]:
        return [pair for pair, given in zip(pairs, labels, strict=True) if given == label]

    extras = [*(branch for pair in named("extra") for branch in pair.branches), *others]
    legs = sorted(named("leg"), key=lambda pair: -_standing_z(pair))
    if chosen.name == "biped" and tail is not None and head is not None and legs:
        hips = legs[-1].mean("base")[1]
        if tail.voxels[:, 1].mean() > hips + 0.3 * (head.base[1] - hips):
            # Too high for a tail: a rucksack.
            extras, tail = [*extras, tail], None
    arms, wings = named("arm"), named("wing")
    return BodyPlan(
        chosen.name,
        tuple(legs),
        arms[0] if arms else None,
        wings[0] if wings else None,
        head,
        tail,
        tuple(extras),
        cost,
    )


def _pair_up(curve: Curve, solid: Solid) -> tuple[list[Pair], list[Branch]]:
    """Branches that mirror each other, the best match first; the rest are single."""
    free = list(range(len(curve.branches)))
    matches = []
    # In the middle of a step the ends of two legs are far apart, their roots are not.
    trust = 0.5 if solid.mirrored else 0.15
    for i in free:
        for j in free[i + 1 :]:
            a, b = curve.branches[i], curve.branches[j]
            if a.tip[0] * b.tip[0] >= 0 and a.base[0] * b.base[0] >= 0:
                continue
            flip = np.array([-1.0, 1.0, 1.0])
            apart = np.linalg.norm(a.base - flip * b.base) + trust * np.linalg.norm(a.tip - flip * b.tip)
            apart += trust * abs(a.prominence - b.prominence)
            matches.append((apart / solid.length, i, j))
    pairs: list[Pair] = []
    for apart, i, j in sorted(matches):
        if apart < 0.2 and i in free and j in free:
            a, b = curve.branches[i], curve.branches[j]
            swap = a.voxels[:, 0].mean() < b.voxels[:, 0].mean()
            if abs(a.voxels[:, 0].mean() - b.voxels[:, 0].mean()) < 0.02 * solid.length:
                continue
            pairs.append(Pair(b, a) if swap else Pair(a, b))
            free = [k for k in free if k not in (i, j)]
    return pairs, [curve.branches[k] for k in free]


def _head_and_tail(
    singles: list[Branch], curve: Curve, solid: Solid
) -> tuple[Branch | None, Branch | None, list[Branch]]:
    """Of the branches on the middle line: the foremost or highest is the head, one behind the body the tail."""

    def ahead(branch: Branch) -> float:
        arrow = (branch.voxels.mean(0) - curve.center) / solid.length
        return float(arrow[2] + 0.7 * arrow[1])

    middle = [b for b in singles if abs(b.voxels[:, 0].mean()) < 0.06 * solid.length]
    others = [b for b in singles if not any(b is m for m in middle)]
    heads = sorted((b for b in middle if ahead(b) > 0.03), key=lambda b: -ahead(b) - 0.5 * _bulk(b, solid))
    tails = sorted((b for b in middle if ahead(b) <= 0.03), key=lambda b: -b.prominence)
    return (heads or [None])[0], (tails or [None])[0], [*others, *heads[1:], *tails[1:]]


def _bulk(branch: Branch, solid: Solid) -> float:
    return len(branch.voxels) / max(1, int(solid.filled.sum()))


def _label_costs(
    pair: Pair, low: float, head: Branch | None, standing: list[Branch], solid: Solid, curve: Curve
) -> dict[Label, float]:
    """How unlikely each label is for a pair of branches whose lowest point is at `low` of the height."""
    prominence = float(np.mean([b.prominence for b in pair.branches])) / solid.length
    flat = float(np.mean([flatness(b) for b in pair.branches]))
    on_head = 0.0 if any(pair.left is leg for leg in standing) else _on_head(pair, head, standing, solid, curve)
    grounded = float(np.clip(1 - (low - 0.03) / 0.05, 0, 1))
    slight = float(np.clip(1 - prominence / 0.12, 0, 1))
    # A folded wing points back from the shoulder, an arm hangs or reaches ahead.
    back = (pair.mean("base")[2] - pair.mean("tip")[2]) / max(pair.left.length, 1e-9)
    folded = float(np.clip(2 * back - 0.6, 0, 1))
    return {
        "leg": 12 * max(0.0, low - 0.03) + 3 * on_head,
        "arm": 3 * grounded + 1.2 * flat + 1.0 * folded + 3 * on_head,
        "wing": 3 * grounded + (1 - max(flat, folded)) + 1.5 * slight * (1 - folded) + 3 * on_head,
        "extra": 0.25 + 8 * prominence * (0.3 if on_head else 1.0),
    }


def _on_head(pair: Pair, head: Branch | None, standing: list[Branch], solid: Solid, curve: Curve) -> float:
    """1 for ears, horns and antennae: they grow from the head, or come to it before they come to any leg."""
    if head is None:
        foremost = max((leg.base[2] for leg in standing), default=np.inf)
        return 1.0 if len(standing) >= 2 and pair.left.base[2] > foremost + 0.02 * solid.length else 0.0
    if np.linalg.norm(head.voxels - pair.left.base, axis=1).min() < 0.01 * solid.length + 1.5 * solid.size:
        return 1.0
    place = {id(branch): k for k, branch in enumerate(curve.branches)}
    mine = curve.meetings[place[id(pair.left)]]
    with_legs = max((mine[place[id(leg)]] for leg in standing if leg is not pair.left), default=0.0)
    with_head = mine[place[id(head)]]
    # An upright trunk holds the arms and the head above the legs, so only beasts on four legs are told this way.
    return 1.0 if len(standing) >= 2 and with_head > with_legs + 0.04 * solid.length else 0.0


def flatness(branch: Branch) -> float:
    """0 for a round limb, 1 for a sheet: how much wider its cross-sections are than thick."""
    curve = branch.curve[: branch.own + 1]
    nearest = np.linalg.norm(branch.voxels[:, None] - curve[None, ::2], axis=2).argmin(1)
    rest = branch.voxels - curve[::2][nearest]
    spread = np.sqrt(np.maximum(np.linalg.eigvalsh(np.cov(rest.T)), 1e-12))
    return float(np.clip((spread[2] / spread[1] - 1.6) / 1.0, 0, 1))


def _template_cost(
    template: Template, labels: tuple[Label, ...], pairs: list[Pair], head: Branch | None, tail: Branch | None
) -> float:
    """What a labelling lacks or has too much of for a template."""
    legs, arms, wings = (labels.count(k) for k in ("leg", "arm", "wing"))
    cost = 4.0 * abs(template.legs - legs)
    for count, (fewest, most) in ((arms, template.arms), (wings, template.wings)):
        cost += 1.5 * max(0, fewest - count) + 4.0 * max(0, count - most)
    standing = [pair for pair, label in zip(pairs, labels, strict=True) if label == "leg"]
    if head is not None and standing and template.lying != 0.5:
        feet = np.mean([pair.mean("base") for pair in standing], axis=0)
        trunk = head.base - feet
        level = abs(trunk[2]) / (abs(trunk[1]) + abs(trunk[2]) + 1e-9)
        cost += 0.8 * abs(level - template.lying) + (0.3 if tail is None and template.lying == 1.0 else 0.0)
    return cost


def _standing_z(pair: Pair) -> float:
    return float(pair.mean("base")[2] + 0.5 * pair.mean("tip")[2])
