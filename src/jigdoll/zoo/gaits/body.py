"""How the body rides on its legs: trunk, neck and head, tail, arms, wings and whatever dangles."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.types import Limb
from jigdoll.zoo.gaits.anatomy import Anatomy
from jigdoll.zoo.gaits.feet import Course, Curve, Stepping
from jigdoll.zoo.gaits.puppet import Puppet, about_x, about_y, about_z, euler
from jigdoll.zoo.gaits.style import Style

TAU = 2 * math.pi


def wave(cycle: Curve, top: float, *, times: float = 1.0) -> Curve:
    """A cosine of the cycle with its top at a given phase, so many times per cycle."""
    return torch.cos(TAU * times * (cycle - top))


def ride(puppet: Puppet, style: Style, stepping: Stepping, course: Course, t: Curve) -> None:
    """Move the trunk along the course in the rhythm of the legs, and all else with it."""
    a, cycle = puppet.anatomy, stepping.cycle(t)
    place, heading = course(t)
    hind, fore = _pair(a, stepping, last=True), _pair(a, stepping, last=False)
    L = a.leg_length
    bobs = [_bob(style, cycle, pair) for pair in (hind, fore)]
    reach = max(float((a.points[a.chest] - a.points[0])[2]), 0.5 * L)
    pitch = style.lean - style.pitch * L * (bobs[1] - bobs[0]) / reach if a.plan == "quadruped" else style.lean + 0 * t
    left = hind[0] + hind[2] / 2
    side = wave(cycle, left) if hind[1] > 0.25 else 0 * t
    gathered = _gathered(hind, fore)
    round_back = style.flex * wave(cycle, gathered)
    yaw = -style.yaw * wave(cycle, hind[0])
    chest = -style.chest_yaw * wave(cycle, fore[0]) if a.plan != "biped" else style.chest_yaw * wave(cycle, hind[0])
    D_pelvis = euler(heading + yaw, style.roll * side, pitch - 0.5 * round_back)
    D_chest = euler(heading + chest, style.chest_roll * side, pitch + 0.5 * round_back)
    D_chest = D_pelvis if style.rigid else D_chest
    spare = style.limp * wave(cycle, left)
    up = L * (0.5 * (bobs[0] + bobs[1]) - style.crouch + 0.025 * spare)
    centre = place + torch.stack(
        [L * style.sway * side * heading.cos(), up, -L * style.sway * side * heading.sin()], -1
    )
    carry(puppet, D_pelvis, D_chest, centre, heading)
    nod = style.head - 0.08 * spare + style.nod * wave(cycle, left + 0.1, times=2.0 if hind[1] > 0.25 else 1.0)
    # The head is already where the course will lead in a moment.
    look = euler(course(t + 0.6 * stepping.period)[1], 0 * t, nod)
    puppet.lead(a.neck, look)
    wag_tail(puppet, cycle, left, sway=style.tail_sway, lift=style.tail_lift, bounce=0.3 * style.bob)
    swing_arms(puppet, style, cycle, hind)
    for wing in a.wings:
        lift_wing(puppet, wing, style.wing * wave(cycle, left, times=2.0))
    dangle(puppet, cycle, style.ear)


def carry(
    puppet: Puppet,
    D_pelvis: Float[Tensor, "frames 3 3"],
    D_chest: Float[Tensor, "frames 3 3"],
    centre: Float[Tensor, "frames 3"],
    heading: Curve,
) -> None:
    """Turn pelvis and chest, the spine sharing the difference, while the middle of the body goes along `centre`."""
    a = puppet.anatomy
    # A horizontal trunk turns about its middle, an upright one about its pelvis.
    pivot = a.points[0] if a.plan == "biped" else 0.5 * (a.points[0] + a.points[a.chest])
    spot = (about_y(heading) @ pivot) + centre
    puppet.turn(0, D_pelvis)
    puppet.lead(a.spine, D_chest)
    if a.plan == "biped":
        puppet.root = spot - a.points[0]
        return
    P = puppet.world()[1]
    puppet.root = puppet.root + spot - 0.5 * (P[:, 0] + P[:, a.chest])
    puppet._world = None


def wag_tail(puppet: Puppet, cycle: Curve, top: float, *, sway: float, lift: float = 0.0, bounce: float = 0.0) -> None:
    """A wave runs down the tail; a lift straightens it out backwards."""
    tail = puppet.anatomy.tail
    for i, joint in enumerate(tail):
        lag = 0.09 * i
        share = 1.0 / math.sqrt(len(tail))
        yaw = share * sway * wave(cycle, top + 0.25 + lag) * (0.6 + 0.4 * i)
        pitch = share * (lift * (1.0 if i == 0 else 0.3) + bounce * wave(cycle, top + lag, times=2.0))
        puppet.turn(joint, about_y(yaw) @ about_x(pitch + 0 * cycle))


def swing_arms(puppet: Puppet, style: Style, cycle: Curve, pair: tuple[float, float, float]) -> None:
    """Each arm goes with the leg across; a body with short arms only keeps them from being stiff."""
    a = puppet.anatomy
    for arm in a.arms:
        across = pair[0] + (pair[1] if arm.side == "left" else 0.0)
        beat = wave(cycle, across)
        if not a.upright or arm_length(a, arm) < 0.5 * a.leg_length:
            joints = upper_arm(a, arm)
            for joint in joints[:2]:
                puppet.turn(joint, about_x(0.3 * style.arm_swing * wave(cycle, across + 0.1) * (0.5 if joint else 1.0)))
            continue
        swing = style.arm_swing * (beat + 0.15)
        bend = style.elbow * (1.0 + 0.35 * beat)
        out = 0.16 + style.arms_up * (0.75 + 0.25 * wave(cycle, across + 0.1, times=2.0))
        pose_arm(puppet, arm, forward=swing, bend=bend, out=out)


def pose_arm(
    puppet: Puppet, arm: Limb, *, forward: Curve, bend: Curve, out: Curve | float = 0.16, D: Tensor | None = None
) -> None:
    """Hang an arm, swung forwards and bent at the elbow [rad], in the chest's axes; `out` leads it sideways."""
    a = puppet.anatomy
    shoulder, elbow, wrist = upper_arm(a, arm)
    sign = 1.0 if arm.side == "left" else -1.0
    chest = puppet.world()[0][:, a.chest] if D is None else D
    out = out + 0 * forward
    upper = (chest @ _hanging(forward, sign * out)[..., None])[..., 0]
    lower = (chest @ _hanging(forward + bend, sign * (out * 0.5))[..., None])[..., 0]
    puppet.bend(shoulder, elbow, wrist, upper, lower)


def upper_arm(a: Anatomy, arm: Limb) -> tuple[int, int, int]:
    """Shoulder, elbow and wrist of an arm, whether or not it begins with a clavicle."""
    joints = arm.joints
    lengths = a.points[list(joints)].diff(dim=0).norm(dim=-1)
    first = 1 if len(joints) > 4 or (len(joints) == 4 and float(lengths[0]) < 0.75 * float(lengths[1])) else 0
    third = min(first + 2, len(joints) - 1)
    return joints[first], joints[min(first + 1, third)], joints[third]


def arm_length(a: Anatomy, arm: Limb) -> float:
    """From shoulder to wrist [m]."""
    return float(a.points[list(upper_arm(a, arm))].diff(dim=0).norm(dim=-1).sum())


def lift_wing(
    puppet: Puppet, wing: Limb, angle: Curve, *, sweep: Curve | None = None, fold: Curve | None = None
) -> None:
    """Raise a wing by an angle at the shoulder, its outer parts following."""
    sign = 1.0 if wing.side == "left" else -1.0
    puppet.turn(wing.joints[0], about_z(sign * angle) @ about_y(sign * (0 * angle if sweep is None else sweep)))
    for i, joint in enumerate(wing.joints[1:-1]):
        share = 0.35 * angle if fold is None else fold * (0.7 if i else 1.0)
        puppet.turn(joint, about_z(sign * share))


def dangle(puppet: Puppet, cycle: Curve, amount: float) -> None:
    """Ears, antennae and trunks lag behind the head."""
    for i, chain in enumerate(puppet.anatomy.loose):
        for k, joint in enumerate(chain):
            lag = 0.12 * k + 0.25 * (i % 2) * (len(chain) > 1)
            puppet.turn(
                joint, about_x(amount * wave(cycle, 0.1 + lag, times=2.0)) @ about_z(0.7 * amount * wave(cycle, lag))
            )


def _hanging(forward: Curve, out: Curve) -> Float[Tensor, "frames 3"]:
    """The direction of a bone that hangs down, swung forwards and then led to the left."""
    return torch.stack([out.sin(), -forward.cos() * out.cos(), forward.sin() * out.cos()], -1)


def _pair(a: Anatomy, stepping: Stepping, *, last: bool) -> tuple[float, float, float]:
    """Of the last or first legs: touchdown of the left, how far apart the right's is (0 .. 0.5), and the duty."""
    rank = max(leg.rank for leg in a.legs) if last else 0
    left = next(i for i, leg in enumerate(a.legs) if leg.rank == rank and leg.side == "left")
    right = next(i for i, leg in enumerate(a.legs) if leg.rank == rank and leg.side == "right")
    apart = (stepping.phases[right] - stepping.phases[left]) % 1
    return stepping.phases[left], min(apart, 1 - apart), stepping.duties[left]


def _bob(style: Style, cycle: Curve, pair: tuple[float, float, float]) -> Curve:
    """The height over one pair of legs: twice per stride where they take turns, once where they go together."""
    touchdown, apart, duty = pair
    sign = -1.0 if style.bounce else 1.0
    if apart > 0.25:
        return sign * style.bob * wave(cycle, touchdown + duty / 2, times=2.0)
    return sign * style.bob * wave(cycle, touchdown + 0.5 * (apart + duty))


def _gathered(hind: tuple[float, float, float], fore: tuple[float, float, float]) -> float:
    """When hind feet come forwards under the body while the fore feet leave it: half-way between the two events."""
    leave = fore[0] + fore[1] + fore[2]
    arrive = hind[0] + 1.0
    return 0.5 * (leave + arrive)
