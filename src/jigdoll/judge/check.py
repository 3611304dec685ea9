"""Whether a clip is a walk: its numbers beside those of a reference gait."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from jigdoll.errors import JigdollError
from jigdoll.judge.verdict import PairVerdict, Verdict

ALTERNATION = 0.25
"""Each pair's left-right correlation may differ from the reference's by this much."""
SKATE = 0.15
PENETRATION = 0.01
"""[body lengths]."""
AMPLITUDE = (0.5, 1.8)
"""Swing of each pair as a multiple of the reference's."""
STANDING = 0.25
"""Feet must stand at least this share of the time that they stand in the reference: skating needs a standing foot."""
STILL = 3.0
"""A pair that swings less than this in the reference is not held to anything [degrees]."""


@dataclass(frozen=True)
class Check:
    """One thing that was checked."""

    name: str
    passed: bool
    value: float
    bound: str
    """What would pass, in words."""


@dataclass(frozen=True)
class WalkCheck:
    """All that was checked on a clip."""

    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        return all(check.passed for check in self.checks)

    @property
    def failures(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if not check.passed)


def walk_check(
    verdict: Verdict, reference: Verdict, *, kinds: Sequence[Literal["leg", "arm", "wing"]] = ("leg",)
) -> WalkCheck:
    """Hold a clip to a reference gait of the same body: rhythm, direction, feet, ground, size of the swing.

    `kinds` names the pairs of limbs that count.
    """
    if [pair.name for pair in verdict.pairs] != [pair.name for pair in reference.pairs]:
        raise JigdollError("the two verdicts are of different bodies; judge the reference on the same asset")
    checks: list[Check] = []
    for pair, wanted in zip(verdict.pairs, reference.pairs, strict=True):
        if pair.kind in kinds and wanted.amplitude >= STILL:
            checks += _check_pair(pair, wanted)
    for leg, wanted_leg in zip(verdict.legs, reference.legs, strict=True):
        if wanted_leg.direction > 0:
            checks.append(Check(f"direction {leg.name}", leg.direction > 0, leg.direction, "> 0"))
    if abs(reference.heading) > 0.5:
        same = verdict.heading * reference.heading > 0
        checks.append(Check("heading", same, verdict.heading, "as the reference's"))
    checks.append(Check("skate ratio", verdict.skate_ratio <= SKATE, verdict.skate_ratio, f"<= {SKATE:g}"))
    least = STANDING * reference.duty
    checks.append(Check("standing", verdict.duty >= least, verdict.duty, f">= {least:.2f} of the time"))
    sunk = verdict.penetration
    checks.append(Check("penetration", sunk <= PENETRATION, sunk, f"<= {PENETRATION:g} body lengths"))
    return WalkCheck(tuple(checks))


def _check_pair(pair: PairVerdict, wanted: PairVerdict) -> list[Check]:
    low, high = wanted.alternation - ALTERNATION, wanted.alternation + ALTERNATION
    ratio = pair.amplitude / max(wanted.amplitude, 1e-9)
    least, most = AMPLITUDE
    return [
        Check(
            f"alternation {pair.name}", low <= pair.alternation <= high, pair.alternation, f"{low:.2f} .. {high:.2f}"
        ),
        Check(f"swing {pair.name}", least <= ratio <= most, ratio, f"{least:g} .. {most:g} of the reference"),
    ]
