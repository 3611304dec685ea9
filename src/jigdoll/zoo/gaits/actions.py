"""Actions that are more than a rhythm of steps: idling, leaping, flapping and flying."""

import math
from dataclasses import dataclass, replace

import torch

from jigdoll.math import GRAVITY
from jigdoll.math.curves import keyframes
from jigdoll.types import Limb
from jigdoll.zoo.gaits.anatomy import Anatomy
from jigdoll.zoo.gaits.body import arm_length, carry, dangle, lift_wing, pose_arm, wag_tail, wave
from jigdoll.zoo.gaits.feet import Curve, Feet, Stepping, planted_feet, window_feet
from jigdoll.zoo.gaits.puppet import Puppet, euler


@dataclass(frozen=True)
class Chances:
    """What a seed changes about an action: numbers around one, and where in the cycle the clip begins."""

    tempo: float
    size: float
    height: float
    liveliness: float
    start: float

    @staticmethod
    def of(seed: int) -> "Chances":
        """Seed 0 is the plain action."""
        if seed == 0:
            return Chances(1.0, 1.0, 1.0, 1.0, 0.0)
        r = torch.rand(5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        spread = (2 * r - 1) * torch.tensor([0.15, 0.3, 0.3, 0.6, 0.5], dtype=torch.float64)
        tempo, size, height, lively, start = (float(v) for v in spread)
        return Chances(1 + tempo, 1 + size, 1 + height, 1 + lively, 0.5 + start)


def whole_cycles(period: float, seconds: float | None) -> float:
    """The period nearest to this one that fits the clip a whole number of times; the period itself for no loop."""
    return period if seconds is None else seconds / max(1, round(seconds / period))


def idle(a: Anatomy, t: Curve, *, seed: int, loop: float | None) -> tuple[Puppet, Feet, float]:
    """Stand, breathe, shift weight and look around."""
    chance = Chances.of(seed)
    period = whole_cycles(3.6 * chance.tempo * max(a.leg_length, 0.1) ** 0.25, loop)
    cycle = t / period + chance.start
    feet = planted_feet(a, len(t))
    puppet = Puppet(a, len(t))
    L, lively = a.leg_length, chance.liveliness
    shift, breath = wave(cycle, 0.2), wave(cycle, 0.0, times=2.0)
    centre = L * torch.stack([0.02 * lively * shift, -0.015 - 0.004 * breath, 0.012 * wave(cycle, 0.55)], -1)
    D_pelvis = euler(0.02 * lively * wave(cycle, 0.5), 0.01 * shift, 0.004 * breath)
    D_chest = euler(-0.03 * lively * shift, -0.012 * shift, -0.02 * breath)
    carry(puppet, D_pelvis, D_chest, centre, 0 * t)
    look = 0.35 * lively * torch.tanh(1.6 * torch.sin(math.tau * (cycle - 0.15)))
    puppet.lead(a.neck, euler(look, 0.15 * look, 0.05 * wave(cycle, 0.4) - 0.01 * breath))
    wag_tail(puppet, cycle, 0.1, sway=0.22 * lively)
    for arm in a.arms:
        if a.upright and arm_length(a, arm) > 0.5 * a.leg_length:
            pose_arm(
                puppet, arm, forward=0.04 + 0.03 * lively * shift, bend=0.22 + 0.03 * breath, out=0.17 + 0.015 * breath
            )
    for wing in a.wings:
        lift_wing(puppet, wing, 0.03 * breath)
    dangle(puppet, cycle, 0.06 * lively)
    return puppet, feet, period


@dataclass(frozen=True)
class _Leap:
    """The times of one leap [s] and its sizes [m]."""

    keys: tuple[float, ...]
    """Landing, deepest, recovered, about to crouch, crouched, take-off, next landing."""
    rise: float
    """How high the body flies above where it takes off."""
    up: float
    """Speed at take-off [m/s], and at landing downwards."""
    length: float
    dip: float
    push: float = 0.8
    """How far feet roll onto their toes at take-off [rad]."""
    pitch: float = 1.0
    """How much the trunk nods along."""

    @property
    def period(self) -> float:
        return self.keys[-1]

    @property
    def ahead(self) -> float:
        """Speed in flight [m/s]: what is covered in the air, and half of it while landing and launching."""
        k = self.keys
        return self.length / (k[6] - k[5] + 0.5 * k[1] + 0.5 * (k[5] - k[4]))


def leap(
    a: Anatomy,
    t: Curve,
    *,
    seed: int,
    loop: float | None,
    speed: float | None,
    height: float = 0.4,
    length: float = 1.1,
    dip: float = 0.24,
) -> tuple[Puppet, Feet, float, float]:
    """Crouch, take off with all legs, fly, land and recover; again and again."""
    chance = Chances.of(seed)
    plan = _plan_leap(a, height * chance.height, length * chance.size, dip, chance.tempo)
    scale = whole_cycles(plan.period, loop) / plan.period
    if speed is not None:
        plan = replace(plan, length=max(speed, 0.0) * plan.period * scale)
    # A clip begins in the quiet moment between two leaps.
    beat = t / scale + plan.keys[2] + chance.start * (plan.keys[3] - plan.keys[2])
    number = (beat / plan.period).floor()
    now = beat - number * plan.period
    first = float(_leap_ahead(plan, beat[:1], number[:1], now[:1])[0])
    if a.legs[0].foot is not None:
        # The feet of pillars and of short legs roll less than a human's.
        plan = replace(plan, push=0.15 if a.plan == "quadruped" else 0.8 if a.leg_length > 0.3 * a.body_length else 0.3)
    while True:
        feet = _leap_feet(a, plan, number, now, first)
        puppet = Puppet(a, len(t))
        _leap_body(puppet, plan, _leap_ahead(plan, beat, number, now) - first, now)
        squeeze = puppet.lower_to(feet, reach=0.96)[1]
        if squeeze <= 0 or plan.dip < 0.005 * a.leg_length:
            return puppet, feet, plan.period * scale, plan.length / (plan.period * scale)
        # Some leg cannot fold that far: dip less deep.
        plan = replace(plan, dip=0.85 * plan.dip, push=0.85 * plan.push, pitch=0.9 * plan.pitch)


def _plan_leap(a: Anatomy, height: float, length: float, dip: float, tempo: float) -> _Leap:
    """Times and sizes from the leg's length: a pendulum's tau = sqrt(L / g) sets the pace."""
    L = a.leg_length
    tau = math.sqrt(L / GRAVITY)
    # No deeper than the least foldable leg can follow.
    room = min(float((a.points[leg.joints[-1]] - a.points[leg.joints[0]]).norm()) - leg.reach[0] for leg in a.legs)
    if a.sprawled:
        room = min(room, 0.4 * float(a.points[[0, a.chest], 1].min()))  # the belly is near the ground
    up = math.sqrt(2 * GRAVITY * height * L)
    spans = (0.55 * tau, 1.3 * tau * tempo, 0.7 * tau * tempo, 1.2 * tau * tempo, 0.6 * tau, 2 * up / GRAVITY)
    keys = [0.0]
    for span in spans:
        keys.append(keys[-1] + span)
    return _Leap(tuple(keys), height * L, up, length * L, min(dip * L, 0.6 * room))


def _leap_ahead(plan: _Leap, beat: Curve, number: Curve, now: Curve) -> Curve:
    """How far the body has come: it stands over its feet from when it has landed until it launches."""
    k, v = plan.keys, plan.ahead
    land, launch = (now / k[1]).clamp(0, 1), ((now - k[4]) / (k[5] - k[4])).clamp(0, 1)
    landing = -0.5 * v * k[1] * (1 - land) ** 2
    launching = 0.5 * v * (k[5] - k[4]) * launch**2
    return number * plan.length + landing + launching + v * (now - k[5]).clamp_min(0)


def _leap_body(puppet: Puppet, plan: _Leap, ahead: Curve, now: Curve) -> None:
    """Dip, fly, dip; the trunk pitches, the arms throw."""
    a, k, L = puppet.anatomy, plan.keys, puppet.anatomy.leg_length
    top = 0.05 * L
    ground = keyframes(
        now, k[:6], (top, -plan.dip, 0.0, 0.0, -plan.dip, top), slopes=(-plan.up, 0.0, 0.0, 0.0, 0.0, plan.up)
    )
    air = (now - k[5]).clamp_min(0)
    height = torch.where(now < k[5], ground, top + plan.up * air - 0.5 * GRAVITY * air.square())
    apex = 0.5 * (k[5] + k[6])
    times = (k[0], k[1], k[2], k[3], k[4], k[5], apex, k[6])
    if a.plan == "biped":
        pitch = keyframes(now, times, (0.15, 0.35, 0.02, 0.02, 0.5, 0.12, 0.08, 0.15)) * (
            plan.pitch if a.upright else 0.5 * plan.pitch
        )
        chest = pitch * 1.15
    else:
        size = plan.pitch * (0.5 if a.sprawled or a.plan != "quadruped" else 1.0)
        pitch = size * keyframes(now, times, (0.22, 0.1, 0.0, 0.0, 0.06, -0.32, -0.02, 0.22))
        chest = pitch + size * keyframes(now, times, (0.1, 0.2, 0.0, 0.0, 0.22, -0.1, 0.0, 0.1))
    zero = 0 * now
    carry(puppet, euler(zero, zero, pitch), euler(zero, zero, chest), torch.stack([zero, height, ahead], -1), zero)
    puppet.lead(a.neck, euler(zero, zero, 0.3 * pitch))
    phase = now / plan.period
    wag_tail(puppet, phase, 0.0, sway=0.0, lift=0.15)
    for joint in a.tail[:2]:
        flick = 0.1 * keyframes(now, times, (0.6, 0.3, 0.0, 0.0, 0.2, 0.9, 0.2, 0.6))
        puppet.turn(joint, euler(zero, zero, flick - 0.6 * pitch))
    _throw_arms(puppet, times, now)
    for wing in a.wings:
        lift_wing(puppet, wing, 0.35 * keyframes(now, times, (0.6, 0.1, 0.0, 0.0, -0.1, 0.8, 1.0, 0.6)))
    for chain in a.loose:
        for joint in chain:
            puppet.turn(
                joint, euler(zero, zero, 0.25 * keyframes(now, times, (-0.8, 0.5, 0.0, 0.0, 0.3, 0.6, -0.3, -0.8)))
            )


def _throw_arms(puppet: Puppet, times: tuple[float, ...], now: Curve) -> None:
    """Back in the crouch, up with the take-off, down to steady the landing."""
    a = puppet.anatomy
    for arm in a.arms:
        if a.upright and arm_length(a, arm) > 0.5 * a.leg_length:
            forward = keyframes(now, times, (0.9, 0.4, 0.05, 0.05, -0.9, 1.7, 1.5, 0.9))
            bend = keyframes(now, times, (0.5, 0.6, 0.2, 0.2, 0.35, 0.5, 0.4, 0.5))
            out = keyframes(now, times, (0.4, 0.35, 0.17, 0.17, 0.25, 0.2, 0.35, 0.4))
            pose_arm(puppet, arm, forward=forward, bend=bend, out=out)


def _leap_feet(a: Anatomy, plan: _Leap, number: Curve, now: Curve, first: float) -> Feet:
    """All feet leave and arrive together; of four, the fore feet a moment earlier."""
    k, ends = plan.keys, []
    for leg in a.legs:
        fore = 0.1 * (k[5] - k[4]) if a.plan == "quadruped" and leg.rank == 0 else 0.0
        ends.append((k[5] - 5 * fore, k[6] - fore))
    stepping = Stepping(plan.period, (0.0,), (0.5,), (0.0,), heel=0.0, push=plan.push, curl=0.9, width=1.0)
    return window_feet(
        a, stepping, number, now, plan.period, ends,
        hold=lambda n: (torch.stack([0 * n, 0 * n, n * plan.length - first], -1), 0 * n),
        rise=plan.rise, tuck=min(0.25 * a.leg_length, 0.9 * plan.dip),
    )  # fmt: skip


def flap(a: Anatomy, t: Curve, *, seed: int, loop: float | None) -> tuple[Puppet, Feet, float]:
    """Stand and beat the wings."""
    chance = Chances.of(seed)
    span = max(float((a.points[w.joints[-1]] - a.points[w.joints[0]]).norm()) for w in a.wings)
    period = whole_cycles(0.62 * chance.tempo * math.sqrt(max(span, 0.1)), loop)
    cycle = t / period + chance.start
    puppet, feet = Puppet(a, len(t)), planted_feet(a, len(t))
    L = a.leg_length
    zero = 0 * t
    bob = torch.stack([zero, L * (-0.05 + 0.025 * wave(cycle, 0.6)), zero], -1)
    carry(puppet, euler(zero, zero, zero), euler(zero, zero, -0.06 - 0.04 * wave(cycle, 0.1)), bob, zero)
    puppet.lead(a.neck, euler(zero, zero, zero))
    beat_wings(puppet, cycle, 0.55 * chance.height)
    wag_tail(puppet, cycle, 0.0, sway=0.05, bounce=0.05)
    return puppet, feet, period


def beat_wings(puppet: Puppet, cycle: Curve, amplitude: float) -> None:
    """Down stretched and fast, up folded: the outer wing lags behind the shoulder."""
    lagging = wave(cycle, 0.2)
    beat = wave(cycle + 0.06 * torch.sin(math.tau * cycle), 0.0)
    hang = max(0.0, -min(_slope(puppet.anatomy, wing) for wing in puppet.anatomy.wings))
    for wing in puppet.anatomy.wings:
        # A wing that hangs or lies folded at rest is first lifted off the body.
        lift_wing(
            puppet,
            wing,
            amplitude * (beat + 0.15) + 0.6 * hang,
            sweep=0.15 * amplitude * wave(cycle, 0.25),
            fold=0.45 * amplitude * lagging,
        )


def _slope(a: Anatomy, wing: Limb) -> float:
    """How steeply a wing leads upwards at rest [rad]."""
    out = a.points[wing.joints[-1]] - a.points[wing.joints[0]]
    return math.atan2(float(out[1]), float(out[[0, 2]].norm()))


def fly(
    a: Anatomy, t: Curve, *, seed: int, loop: float | None, speed: float | None
) -> tuple[Puppet, Feet, float, float]:
    """Beat the wings in level flight, the legs trailing."""
    chance = Chances.of(seed)
    span = max(float((a.points[w.joints[-1]] - a.points[w.joints[0]]).norm()) for w in a.wings)
    period = whole_cycles(0.55 * chance.tempo * math.sqrt(max(span, 0.1)), loop)
    cycle = t / period + chance.start
    L = a.leg_length
    ahead = 1.6 * math.sqrt(GRAVITY * L) * chance.size if speed is None else speed
    zero = 0 * t
    puppet = Puppet(a, len(t))
    height = L * (0.9 * chance.height + 0.1 * wave(cycle, 0.6))
    carry(
        puppet,
        euler(zero, zero, 0.1 + 0 * t),
        euler(zero, zero, 0.04 * wave(cycle, 0.3)),
        torch.stack([zero, height, ahead * t], -1),
        zero,
    )
    puppet.lead(a.neck, euler(zero, zero, zero))
    beat_wings(puppet, cycle, 0.65 * chance.height)
    wag_tail(puppet, cycle, 0.0, sway=0.04, lift=0.2, bounce=0.1)
    return puppet, _trailing_feet(puppet, cycle), period, ahead


def _trailing_feet(puppet: Puppet, cycle: Curve) -> Feet:
    """Feet drawn up under the body and behind, standing on nothing."""
    a, L = puppet.anatomy, puppet.anatomy.leg_length
    D, P = puppet.world()
    toes = []
    for leg in a.legs:
        hip = leg.joints[0]
        below = a.points[leg.toe] - a.points[hip]
        drawn = torch.stack([below[0], 0.55 * below[1], below[2] - 0.45 * L + 0 * below[0]])
        sway = 0.03 * L * wave(cycle, 0.1 * leg.rank)
        above = D[:, a.skeleton.parents[hip]]
        toes.append(P[:, hip] + above @ drawn + torch.stack([0 * sway, sway, 0 * sway], -1))
    shape = (len(cycle), len(a.legs))
    none = torch.zeros(shape, dtype=torch.float64)
    pitch = torch.full(shape, 0.9, dtype=torch.float64)
    return Feet(torch.stack(toes, 1), pitch, pitch, none, none > 1, none + 0.5)
