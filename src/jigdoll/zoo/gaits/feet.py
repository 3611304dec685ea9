"""Where the feet go: footholds that stay put in the world, and swings between them that clear the ground."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from jigdoll.math.curves import ease, keyframes, smoothstep
from jigdoll.zoo.gaits.anatomy import Anatomy, Leg

Curve = Float[Tensor, " frames"]
Course = Callable[[Curve], tuple[Float[Tensor, "frames 3"], Curve]]
"""Time [s] to how far the body has come [m], on the ground, and where it heads [rad, positive left]."""


@dataclass(frozen=True, eq=False)
class Feet:
    """What the feet do over the frames of a clip."""

    toe: Float[Tensor, "frames legs 3"]
    """Where the toe joints are [m], world."""
    foot_pitch: Float[Tensor, "frames legs"]
    """How far flat feet are tipped onto their toes (positive) or heels [rad]."""
    toe_pitch: Float[Tensor, "frames legs"]
    yaw: Float[Tensor, "frames legs"]
    stance: Bool[Tensor, "frames legs"]
    swing: Float[Tensor, "frames legs"]
    """How much of the swing is done; zero in stance."""


@dataclass(frozen=True)
class Stepping:
    """The rhythm and shape of steps, one number per leg where legs may differ."""

    period: float
    """[s]."""
    phases: tuple[float, ...]
    """Touchdown within the period."""
    duties: tuple[float, ...]
    """Share of the period on the ground."""
    lifts: tuple[float, ...]
    """How high the foot swings [m]."""
    heel: float = 0.0
    """How far a flat foot is tipped onto its heel at touchdown [rad]."""
    push: float = 0.0
    """How far it is tipped onto its toes at lift-off [rad]."""
    curl: float = 0.5
    """How far toes droop in the swing [rad]."""
    width: float = 1.0
    """Distance of the footholds from the middle, as a share of the rest pose's."""
    shift: float = 0.0
    """Footholds this much further ahead [m]."""
    start: float = 0.0
    """Where in the period the clip begins."""

    def cycle(self, t: Curve) -> Curve:
        """Time in periods."""
        return t / self.period + self.start


def straight(speed: float) -> Course:
    """Ahead along +Z at a constant speed."""
    return lambda t: (torch.stack([0 * t, 0 * t, speed * t], -1), 0 * t)


def arc(speed: float, turn: float) -> Course:
    """Along a circle at constant speed [m/s] and turn [rad/s]; positive turns are to the left (+X)."""

    def course(t: Curve) -> tuple[Float[Tensor, "frames 3"], Curve]:
        yaw = turn * t
        radius = speed / turn
        return torch.stack([radius * (1 - yaw.cos()), 0 * t, radius * yaw.sin()], -1), yaw

    return course


def step_feet(anatomy: Anatomy, stepping: Stepping, course: Course, t: Curve) -> Feet:
    """Feet that stand where the body passes over them half-way through each stance."""
    tracks = []
    for i, leg in enumerate(anatomy.legs):
        beat = stepping.cycle(t) - stepping.phases[i]
        number = beat.floor()
        done, duty = beat - number, stepping.duties[i]
        # Half-way through a stance, as clip time.
        middle = (number + stepping.phases[i] + duty / 2 - stepping.start) * stepping.period
        here, there = (_foothold(anatomy, leg, stepping, course, m) for m in (middle, middle + stepping.period))
        stand, swing = done / duty, (done - duty) / (1 - duty)
        tracks.append(_track(anatomy, leg, stepping, here, there, stand, swing, lift=stepping.lifts[i]))
    return _gather(tracks)


def window_feet(
    anatomy: Anatomy,
    stepping: Stepping,
    number: Curve,
    now: Curve,
    period: float,
    ends: Sequence[tuple[float, float]],
    *,
    hold: Course,
    rise: float,
    tuck: float,
) -> Feet:
    """Feet with one stance per cycle that ends at a time of its own: per leg, take-off and the next landing [s].

    `hold` maps the number of a cycle to where the body stands in it. A landing may come before the cycle's end.
    """
    tracks = []
    for leg, (off, on) in zip(anatomy.legs, ends, strict=True):
        landed = now >= on
        turn = number + landed
        since = torch.where(landed, now - on, now + period - on)
        here, there = (_foothold(anatomy, leg, stepping, hold, n) for n in (turn, turn + 1))
        stand, swing = since / (off + period - on), torch.where(landed, -1.0, (now - off) / (on - off))
        tracks.append(_track(anatomy, leg, stepping, here, there, stand, swing, lift=0.0, rise=rise, tuck=tuck))
    return _gather(tracks)


def planted_feet(anatomy: Anatomy, frames: int, *, width: float = 1.0, shift: float = 0.0) -> Feet:
    """Feet that never leave where they stand at rest."""
    still = torch.zeros(frames, dtype=torch.float64)
    stepping = Stepping(1.0, (0.0,), (0.5,), (0.0,), width=width, shift=shift)
    nowhere = straight(0.0)
    tracks = []
    for leg in anatomy.legs:
        here = _foothold(anatomy, leg, stepping, nowhere, still)
        tracks.append(_track(anatomy, leg, stepping, here, here, still + 0.3, still - 1, lift=0.0))
    return _gather(tracks)


def _foothold(
    anatomy: Anatomy, leg: Leg, stepping: Stepping, course: Course, t: Curve
) -> tuple[Float[Tensor, "frames 3"], Curve]:
    """The toe's place and heading when the body passes over it at time t."""
    x, y, z = (float(v) for v in anatomy.points[leg.toe])
    x, z = x * stepping.width, z + stepping.shift
    place, yaw = course(t)
    c, s = yaw.cos(), yaw.sin()
    return place + torch.stack([x * c + z * s, torch.full_like(t, y), z * c - x * s], -1), yaw


def _track(
    anatomy: Anatomy,
    leg: Leg,
    stepping: Stepping,
    here: tuple[Float[Tensor, "frames 3"], Curve],
    there: tuple[Float[Tensor, "frames 3"], Curve],
    stand: Curve,
    swing: Curve,
    *,
    lift: float,
    rise: float = 0.0,
    tuck: float = 0.0,
) -> Feet:
    """One foot between two footholds; `stand` runs 0..1 over the stance, `swing` 0..1 over the swing.

    A foot that only steps is lifted; one that flies rises along with the body's parabola and is tucked under it.
    """
    stance = swing < 0
    u = swing.clamp(0, 1)
    foot_pitch, toe_pitch = foot_shape(leg, stepping, stand, u, stance)
    yaw = here[1] + ease(u) * (there[1] - here[1])
    # A foot on its heel holds the toe off its foothold: the toe turns about the heel.
    on_heel = torch.where(stance, foot_pitch, -stepping.heel + 0 * u).clamp_max(0)
    start, end = here[0] + _about_heel(anatomy, leg, yaw, on_heel) * stance[:, None], there[0]
    end = end + _about_heel(anatomy, leg, there[1], torch.full_like(u, -stepping.heel if leg.foot is not None else 0.0))
    toe = start + ease(u)[:, None] * (end - start)
    hump = torch.sin(math.pi * u**0.85).clamp_min(0)
    flight = rise * 4 * u * (1 - u) + tuck * torch.sin(math.pi * u).square()
    arch = lift * (0.5 * hump + 0.5 * hump.square()) + flight
    level = here[0][:, 1] + ease(u) * (there[0][:, 1] - here[0][:, 1])
    raised = level + arch + _clearance(anatomy, leg, foot_pitch, toe_pitch)
    toe = torch.stack([toe[:, 0], torch.where(stance, start[:, 1], raised), toe[:, 2]], -1)
    parts = (toe, foot_pitch, toe_pitch, yaw, stance, torch.where(stance, 0.0, u))
    return Feet(*(p[:, None] for p in parts))


def foot_shape(
    leg: Leg, stepping: Stepping, stand: Curve, u: Curve, stance: Bool[Tensor, " frames"]
) -> tuple[Curve, Curve]:
    """The pitch of foot and toe: heel down, roll over, push off, droop, and level out for the next touchdown."""
    heel, push, curl = stepping.heel, stepping.push, stepping.curl
    if leg.foot is None:
        droop = keyframes(u, (0.0, 0.3, 0.75, 1.0), (0.0, curl, -0.25 * curl, 0.0))
        return 0 * u, torch.where(stance | torch.tensor(leg.sprawled), 0.0, droop)
    roll = -heel * (1 - smoothstep(stand / 0.18)) + push * smoothstep((stand - 0.45) / 0.55) * 1.0
    through = keyframes(u, (0.0, 0.15, 0.6, 0.85, 1.0), (push, 1.15 * push, 0.1 * push, -0.9 * heel, -heel))
    foot = torch.where(stance, roll, through)
    # In stance the toe lies flat; in the swing it comes back in line with the foot.
    toe = torch.where(
        stance, roll.clamp_max(0), through * smoothstep(u / 0.3) + curl * 0.3 * torch.sin(math.pi * u) ** 2
    )
    return foot, toe


def _about_heel(anatomy: Anatomy, leg: Leg, yaw: Curve, pitch: Curve) -> Float[Tensor, "frames 3"]:
    """How far the toe moves when a flat foot turns about its heel."""
    if leg.foot is None:
        return torch.zeros(len(pitch), 3, dtype=pitch.dtype)
    y, z = (anatomy.points[leg.toe] - leg.heel)[1:].unbind()
    dy, dz = y * pitch.cos() - z * pitch.sin() - y, z * pitch.cos() + y * pitch.sin() - z
    return torch.stack([dz * yaw.sin(), dy, dz * yaw.cos()], -1)


def _clearance(anatomy: Anatomy, leg: Leg, foot_pitch: Curve, toe_pitch: Curve) -> Curve:
    """How far the toe joint must rise so that neither heel nor tip of a tipped foot is below its rest height [m]."""
    drops = [torch.zeros_like(foot_pitch)]
    ends = [(leg.heel, foot_pitch)] if leg.foot is not None else []
    if leg.tip is not None:
        ends.append((anatomy.points[leg.tip], toe_pitch))
    for point, pitch in ends:
        y, z = (point - anatomy.points[leg.toe])[1:].unbind()
        drops.append(y - (y * pitch.cos() - z * pitch.sin()))
    return torch.stack(drops).amax(0)


def _gather(tracks: list[Feet]) -> Feet:
    """One column per leg."""
    names = ("toe", "foot_pitch", "toe_pitch", "yaw", "stance", "swing")
    return Feet(*(torch.cat([getattr(track, name) for track in tracks], 1) for name in names))
