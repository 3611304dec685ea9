"""Model-free metrics of a clip on any rig, in one call.

Lengths are shares of the body's length, so that a mouse and a dragon are held to the same rule.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from jigdoll.errors import JigdollError
from jigdoll.judge import cycle, smoothness
from jigdoll.judge.anatomy import JudgedBody, study
from jigdoll.judge.bones import limit_violations, self_intersection, validity
from jigdoll.judge.contacts import (
    IN_PLACE,
    Footing,
    find_contacts,
    ground_velocity,
    skate_speed,
    stays_in_place,
)
from jigdoll.judge.naturalness import Fault, Naturalness
from jigdoll.judge.trace import Trace, follow, refuse_what_cannot_be_judged
from jigdoll.math import GRAVITY
from jigdoll.physics.bodies import Bodies
from jigdoll.physics.metrics import PhysicalVerdict, physical_verdict
from jigdoll.rig.reparent import to_reparented
from jigdoll.types import Motion, RiggedAsset

STEP = 0.01
"""Feet that move less than this have no cycle [body lengths]."""


@dataclass(frozen=True, eq=False)
class LegVerdict:
    """One leg over a clip."""

    name: str
    """`left_0`, `right_0` ...: side and rank from front to back."""
    duty: float
    """Share of frames in which the foot stands."""
    skate_ratio: float
    """Share of standing steps (from frame to frame) in which the foot slides."""
    skate_distance: float
    """How far the foot slides while it stands, per stride (or in all, without a rhythm) [body lengths]."""
    direction: float
    """+1: the foot lifts while it swings in the direction of travel; -1: a moonwalk; 0: it has no cycle."""
    amplitude: float
    """Of the swing [degrees]."""
    contact: Bool[ndarray, " frames"]
    height: Float[ndarray, " frames"]
    """Of the lowest skin of the foot above the ground [body lengths]."""
    swing: Float[ndarray, " frames"]
    """How far the leg is swung ahead [degrees]."""


@dataclass(frozen=True, eq=False)
class PairVerdict:
    """A left and a right limb together."""

    name: str
    """`leg_0`, `leg_1`, `arm_0` ...: kind and rank from front to back."""
    kind: Literal["leg", "arm", "wing"]
    alternation: float
    """Correlation of the two swings: -1 alternate, +1 together, 0 where they hardly move."""
    phase: float
    """How far the left limb is ahead of the right one [turns]: 0.5 alternate, 0 together (or no cycle)."""
    lead: float
    """How far the left limb is ahead of the left limb of the first pair of its kind [turns]: the order of the steps."""
    amplitude: float
    """Of the swing, the mean of both [degrees]."""


@dataclass(frozen=True, eq=False)
class Verdict:
    """What the judge has measured on a clip. Every field is a plain fact, none is a grade."""

    name: str
    frames: int
    fps: float
    body_length: float
    """[m]."""
    in_place: bool
    """Whether the body stays on the spot; the ground then runs under it as fast as its standing feet do."""
    travel_speed: float
    """Over the ground [body lengths / s]."""
    heading: float
    """+1: it travels where it faces; -1: backwards; 0: it does not travel."""
    stride_frequency: float
    """[1/s]; 0 where the legs have no rhythm."""
    duty: float
    """Mean share of frames in which a foot stands."""
    direction: float
    """Mean direction of the leg cycle against the travel, -1 .. 1."""
    amplitude: float
    """Mean swing of the legs [degrees]."""
    skate_ratio: float
    skate_distance: float
    """Per stride [body lengths]."""
    penetration: float
    """Deepest skin below the ground [body lengths]."""
    floating: float
    """Mean height of the lowest skin above the ground in frames where a foot ought to stand [body lengths]."""
    foot_contact: float
    """Physical foot contact after EDGE (Tseng et al. 2023): how much the body is pushed [g] while a left and a right
    foot move [body lengths / s] and nothing can push it; 0 is physical."""
    angle_jerk: float
    """[rad / s^3]."""
    position_jerk: float
    """[body lengths / s^3]."""
    motion_amount: float
    """Mean speed of the joints against the body [body lengths / s]."""
    loop_error: float
    """RMS distance between last and first frame [body lengths]."""
    self_intersection: float
    """Deepest overlap of two bones' capsules beyond that at rest [body lengths]."""
    limit_violations: float
    """Share of joints and frames beyond the joint limits."""
    limit_excess: float
    """Largest angle beyond a limit [degrees]."""
    legs: tuple[LegVerdict, ...]
    pairs: tuple[PairVerdict, ...]
    physical: PhysicalVerdict | None = None
    """What forces the clip would need, where rigid bodies were given to measure them with."""
    reference: "Verdict | None" = None
    """The same for the clip that this one is compared with."""
    validity: Mapping[str, float] = field(default_factory=dict)
    """By validator, the share of frames that are wronger than 95 % of real ones (`jigdoll.validators`)."""
    natural: Naturalness | None = None
    """How natural it looks and what is wrong with it, by name, where it was graded (`judge.grade`)."""


def judge(
    asset: RiggedAsset,
    motion: Motion,
    *,
    reference: Motion | None = None,
    bodies: Bodies | None = None,
    friction: float = 1.0,
    ground: float = 0.0,
) -> Verdict:
    """Measure a clip of an asset; a reference clip of the same asset is measured too and kept beside it.

    `ground` is the height of the floor [m], world. A body without legs is judged without the metrics of feet. With the
    asset's rigid `bodies` the forces that the clip would need are measured as well, on a floor with that friction.
    """
    if not asset.has_mesh:
        raise JigdollError(f"{asset.name}: motion without a body cannot be judged; retarget it to a character first")
    refuse_what_cannot_be_judged(asset, motion)
    beside = None if reference is None else judge(asset, reference, bodies=bodies, friction=friction, ground=ground)
    physical = None
    if bodies is not None and len(motion) >= 4:
        physical = physical_verdict(bodies, asset.skeleton, motion, friction=friction, ground=ground)
    body = study(asset)
    motion = to_reparented(body.work, motion)
    trace = follow(body, motion, ground=ground)
    feet = find_contacts(trace, body.length)
    belt = ground_velocity(trace, feet, body.length)
    travel, heading, in_place = _travel(trace, belt, body.length)
    course = trace.facing if in_place else cycle.travel_direction(trace, least=IN_PLACE * body.length)
    swings = np.stack([cycle.swing_angle(trace, leg.hip, leg.ankle) for leg in body.legs]) if body.legs else None
    frequency = 0.0 if swings is None else cycle.stride_frequency(swings, trace.fps)
    strides = max(frequency * motion.seconds, 1.0)
    legs = tuple(
        _judge_leg(trace, body, i, feet[i], belt, course, travel=travel, strides=strides, swing=swings[i])
        for i in range(len(body.legs))
        if swings is not None
    )
    share, excess = limit_violations(body.anatomy.skeleton, motion)
    standing = np.any([foot.contact for foot in feet], axis=0) if feet else np.ones(len(motion), bool)
    return Verdict(
        name=motion.name,
        frames=len(motion),
        fps=motion.fps,
        body_length=body.length,
        in_place=in_place,
        travel_speed=travel / body.length,
        heading=heading,
        stride_frequency=frequency,
        duty=_mean([leg.duty for leg in legs]),
        direction=_mean([leg.direction for leg in legs]),
        amplitude=_mean([leg.amplitude for leg in legs]),
        skate_ratio=_mean([leg.skate_ratio for leg in legs], [int(foot.standing.sum()) for foot in feet]),
        skate_distance=_mean([leg.skate_distance for leg in legs]),
        penetration=max(0.0, -float(trace.lowest.min())) / body.length,
        floating=float(np.maximum(trace.lowest[standing], 0).mean()) / body.length if standing.any() else 0.0,
        foot_contact=_foot_contact(trace, body, feet, belt),
        angle_jerk=smoothness.angle_jerk(motion),
        position_jerk=smoothness.position_jerk(trace, body.length),
        motion_amount=smoothness.motion_amount(trace, body.length),
        loop_error=smoothness.loop_error(trace, body.length),
        self_intersection=self_intersection(body, trace),
        limit_violations=share,
        limit_excess=float(np.degrees(excess)),
        legs=legs,
        pairs=_judge_pairs(trace, body, frequency),
        physical=physical,
        reference=beside,
        validity=validity(body, motion, ground=ground),
    )


def as_dict(verdict: Verdict) -> dict[str, Any]:
    """The verdict as plain numbers, lists and dictionaries, ready for JSON; what is infinite is left out as None."""
    return {each.name: _plain(getattr(verdict, each.name)) for each in fields(verdict)}


def _plain(value: Any) -> Any:
    if isinstance(value, LegVerdict | PairVerdict | PhysicalVerdict | Verdict | Naturalness | Fault):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, ndarray):
        return value.astype(int).tolist() if value.dtype == bool else np.round(value, 4).tolist()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value.item() if isinstance(value, np.generic) else value


def _travel(trace: Trace, belt: Float[ndarray, "2"], length: float) -> tuple[float, float, bool]:
    """Speed over the ground [m/s], its direction against where the body faces, and whether it stays on the spot."""
    seconds = (len(trace.center) - 1) / trace.fps
    steps = np.diff(trace.center[:, [0, 2]], axis=0) * trace.fps
    in_place = stays_in_place(trace, length)
    velocity = steps - belt
    if in_place:
        speed = float(np.linalg.norm(belt))
        velocity = np.broadcast_to(-belt, steps.shape)
    else:
        speed = _course_length(trace) / seconds
    if speed <= IN_PLACE * length:
        return speed, 0.0, in_place
    ahead = float((velocity * trace.facing[1:]).sum(1).mean())
    aside = float((velocity * trace.facing[1:, ::-1] * [1, -1]).sum(1).mean())
    return speed, ahead / max(float(np.hypot(ahead, aside)), 1e-9), in_place


def _course_length(trace: Trace) -> float:
    """How far the body goes [m], measured every half second so that sway does not count."""
    stops = np.unique(np.append(np.arange(0, len(trace.center), max(1, round(trace.fps / 2))), len(trace.center) - 1))
    return float(np.linalg.norm(np.diff(trace.center[stops][:, [0, 2]], axis=0), axis=1).sum())


def _judge_leg(
    trace: Trace,
    body: JudgedBody,
    place: int,
    foot: Footing,
    belt: Float[ndarray, "2"],
    course: Float[ndarray, "frames 2"],
    *,
    travel: float,
    strides: float,
    swing: Float[ndarray, " frames"],
) -> LegVerdict:
    leg, length = body.legs[place], body.length
    slide = np.linalg.norm(foot.velocity - belt, axis=1)[foot.standing]
    skating = slide > skate_speed(travel, length)
    distance = float(slide.sum()) / trace.fps / strides
    return LegVerdict(
        name=leg.name,
        duty=float(foot.contact.mean()),
        skate_ratio=float(skating.mean()) if len(skating) else 0.0,
        skate_distance=distance / length,
        direction=cycle.cycle_direction(trace, leg.hip, trace.feet[place], course, least=STEP * length),
        amplitude=float(np.degrees(cycle.amplitude(swing))),
        contact=foot.contact,
        height=foot.height / length,
        swing=np.degrees(swing),
    )


def _judge_pairs(trace: Trace, body: JudgedBody, frequency: float) -> tuple[PairVerdict, ...]:
    found: list[PairVerdict] = []
    first: dict[str, Float[ndarray, " frames"]] = {}
    for pair in body.pairs:
        left, right = (cycle.swing_angle(trace, *ends) for ends in (pair.left, pair.right))
        lead = cycle.relative_phase(left, first.setdefault(pair.kind, left), frequency, trace.fps)
        found.append(
            PairVerdict(
                name=pair.name,
                kind=pair.kind,
                alternation=cycle.alternation(left, right),
                phase=cycle.relative_phase(left, right, frequency, trace.fps),
                lead=lead,
                amplitude=float(np.degrees(0.5 * (cycle.amplitude(left) + cycle.amplitude(right)))),
            )
        )
    return tuple(found)


def _foot_contact(trace: Trace, body: JudgedBody, feet: tuple[Footing, ...], belt: Float[ndarray, "2"]) -> float:
    """EDGE's score for any number of legs: the slowest foot of each side counts."""
    sides = [[i for i, leg in enumerate(body.legs) if leg.side == side] for side in ("left", "right")]
    if not all(sides) or len(trace.mass) < 3:
        return 0.0
    push = np.diff(trace.mass, n=2, axis=0) * trace.fps**2
    push[:, 1] = np.maximum(push[:, 1], 0)  # falling needs no foot
    speed = [np.linalg.norm(foot.velocity - belt, axis=1)[1:] / body.length for foot in feet]
    left, right = (np.min([speed[i] for i in side], axis=0) for side in sides)
    return float((np.linalg.norm(push, axis=1) / GRAVITY * left * right).mean())


def _mean(values: list[float], weights: list[int] | None = None) -> float:
    return float(np.average(values, weights=weights)) if values and (weights is None or any(weights)) else 0.0
