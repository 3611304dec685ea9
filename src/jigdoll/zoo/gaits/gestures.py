"""Actions on the spot: wave, kick and punch."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.math import GRAVITY
from jigdoll.math.curves import keyframes, smoothstep
from jigdoll.types import Limb
from jigdoll.zoo.gaits.actions import Chances, whole_cycles
from jigdoll.zoo.gaits.anatomy import Anatomy
from jigdoll.zoo.gaits.body import arm_length, carry, dangle, pose_arm, upper_arm, wag_tail, wave
from jigdoll.zoo.gaits.feet import Curve, Feet, planted_feet
from jigdoll.zoo.gaits.puppet import Puppet, euler


def can_use_arms(a: Anatomy) -> bool:
    """Whether there are two arms that reach anything."""
    return a.plan == "biped" and len(a.arms) == 2 and arm_length(a, a.arms[0]) > 0.3 * a.leg_length


def wave_hand(a: Anatomy, t: Curve, *, seed: int, loop: float | None) -> tuple[Puppet, Feet, float]:
    """Raise a hand, or a forefoot, and wave it."""
    chance = Chances.of(seed)
    period = whole_cycles(1.9 * chance.tempo * max(a.leg_length, 0.1) ** 0.25, loop)
    now = torch.remainder(t / period + chance.start, 1.0)
    up = smoothstep(now / 0.2) * smoothstep((1 - now) / 0.2)
    beat = torch.sin(3 * math.tau * now)
    puppet, feet, zero, L = Puppet(a, len(t)), planted_feet(a, len(t)), 0 * t, a.leg_length
    if can_use_arms(a):
        tilt = 0.05 * chance.liveliness * up * beat
        carry(puppet, euler(zero, zero, zero), euler(zero, tilt, zero), _at(zero, -0.01 * L + zero, zero), zero)
        puppet.lead(a.neck, euler(zero, 0.08 * up, zero))
        left, right = sorted(a.arms, key=lambda arm: arm.side)
        pose_arm(puppet, left, forward=0.05 + zero, bend=0.25 + zero)
        _wave_arm(puppet, right, up, beat * chance.height)
        dangle(puppet, now, 0.04)
        return puppet, feet, period
    i = next(k for k, leg in enumerate(a.legs) if leg.rank == 0 and leg.side == "right")
    lean = 0.05 * L * up * (a.plan == "quadruped")
    carry(puppet, euler(zero, zero, -0.06 * up), euler(zero, 0.04 * up, -0.12 * up), _at(lean, zero, -0.8 * lean), zero)
    puppet.lead(a.neck, euler(-0.15 * up, zero, zero))
    wag_tail(puppet, now, 0.0, sway=0.25 * chance.liveliness)
    leg = a.legs[i]
    out = a.points[leg.toe] - a.points[leg.joints[0]]
    ahead = 0.45 if not leg.sprawled else 0.35
    air = torch.stack(
        [float(out[0]) * (1 + 0.2 * beat), (0.42 + 0.14 * beat) * float(out[1]), float(out[2]) + ahead * L + zero], -1
    )
    return puppet, lift_foot(puppet, feet, i, up, air, pitch=-0.8 if leg.foot is not None else 0.1 + 0.3 * beat), period


def _wave_arm(puppet: Puppet, arm: Limb, up: Curve, beat: Curve) -> None:
    """From hanging to a raised elbow with the forearm swinging above it."""
    a = puppet.anatomy
    shoulder, elbow, wrist = upper_arm(a, arm)
    sign = 1.0 if arm.side == "left" else -1.0
    D = puppet.world()[0][:, a.chest]
    out, over = 0.16 + 1.5 * up, 0.12 + (2.75 + 0.42 * beat) * up
    ahead = 0.18 + 0.1 * up
    upper = torch.stack([sign * out.sin(), -out.cos(), ahead], -1)
    lower = torch.stack([sign * over.sin(), -over.cos(), ahead + 0.25 * (1 - up) + 0.15], -1)
    puppet.bend(shoulder, elbow, wrist, (D @ upper[..., None])[..., 0], (D @ lower[..., None])[..., 0])


def punch(a: Anatomy, t: Curve, *, seed: int, loop: float | None) -> tuple[Puppet, Feet, float]:
    """From a guard, one fist after the other goes straight ahead, the body turning behind it."""
    chance = Chances.of(seed)
    period = whole_cycles(1.25 * chance.tempo * max(a.leg_length, 0.1) ** 0.25, loop)
    cycle = t / period + chance.start
    jabs = {}
    for side, start in (("left", 0.05), ("right", 0.55)):
        now = torch.remainder(cycle - start, 1.0)
        jabs[side] = keyframes(now, (0.0, 0.08, 0.2, 0.26, 0.42, 1.0), (0.0, -0.15, 1.0, 1.0, 0.0, 0.0))
    twist = jabs["right"] - jabs["left"]
    puppet, zero, L = Puppet(a, len(t)), 0 * t, a.leg_length
    feet = planted_feet(a, len(t), width=1.4)
    lunge = 0.5 * (jabs["left"] + jabs["right"])
    D_pelvis, D_chest = (
        euler(0.12 * twist, zero, 0.06 + zero),
        euler(0.38 * chance.size * twist, zero, 0.12 + 0.08 * lunge),
    )
    bounce = 0.012 * wave(cycle, 0.0, times=4.0)
    carry(puppet, D_pelvis, D_chest, _at(zero, L * (-0.07 + bounce), L * 0.08 * lunge), zero)
    puppet.lead(a.neck, euler(zero, zero, 0.06 + zero))
    wag_tail(puppet, cycle, 0.0, sway=0.1)
    D = puppet.world()[0][:, a.chest]
    for arm in a.arms:
        jab = jabs[arm.side]
        sign = 1.0 if arm.side == "left" else -1.0
        # The guard: elbows down, fists before the chin; the blow: all of it ahead at shoulder height.
        upper = _mix(jab, (0.35 * sign, -0.85, 0.35), (-0.12 * sign, -0.05, 1.0))
        lower = _mix(jab, (-0.3 * sign, 0.8, 0.6), (-0.22 * sign, 0.0, 1.0))
        puppet.bend(*upper_arm(a, arm), (D @ upper[..., None])[..., 0], (D @ lower[..., None])[..., 0])
    return puppet, feet, period


def kick(a: Anatomy, t: Curve, *, seed: int, loop: float | None) -> tuple[Puppet, Feet, float]:
    """A biped kicks ahead with one foot; a quadruped lashes out behind with both."""
    chance = Chances.of(seed)
    period = whole_cycles(5.5 * chance.tempo * math.sqrt(a.leg_length / GRAVITY), loop)
    now = torch.remainder(t / period + 0.9 + chance.start, 1.0)
    return (_kick_ahead if a.plan == "biped" else _kick_behind)(a, now, chance, period)


def _kick_ahead(a: Anatomy, now: Curve, chance: Chances, period: float) -> tuple[Puppet, Feet, float]:
    """Draw up the knee, straighten it ahead, draw it in, put it down."""
    puppet, zero, L = Puppet(a, len(now)), 0 * now, a.leg_length
    off = keyframes(now, (0.0, 0.12, 0.3, 0.8, 0.95, 1.0), (0.0, 0.0, 1.0, 1.0, 0.0, 0.0))
    out = keyframes(now, (0.0, 0.32, 0.45, 0.52, 0.68, 1.0), (0.0, 0.0, 1.0, 1.0, 0.0, 0.0))
    i = next(k for k, leg in enumerate(a.legs) if leg.side == "right")
    stance_x = float(a.points[a.legs[i].toe, 0].abs())
    lean = -0.1 * off - 0.22 * out
    carry(
        puppet, euler(-0.25 * out, 0.04 * off, lean), euler(0.15 * out, zero, 0.6 * lean + 0.1 * off),
        _at(0.75 * stance_x * off, -0.02 * L + zero, -0.03 * L * out), zero,
    )  # fmt: skip
    puppet.lead(a.neck, euler(zero, zero, 0.05 * off))
    wag_tail(puppet, now, 0.0, sway=0.05)
    if can_use_arms(a):
        for arm in a.arms:
            fore = 0.7 * off * (1.0 if arm.side == "left" else -0.3)
            pose_arm(puppet, arm, forward=0.05 + fore - 0.3 * out, bend=0.25 + 1.1 * off, out=0.17 + 0.3 * off)
    height = 0.34 - 0.25 * (chance.height - 1)
    air = _mix(out, (0.0, -0.52 * L, 0.3 * L), (0.0, -height * L, 0.97 * L))
    return puppet, lift_foot(puppet, planted_feet(a, len(now)), i, off, air, pitch=0.5 - 1.1 * out), period


def _kick_behind(a: Anatomy, now: Curve, chance: Chances, period: float) -> tuple[Puppet, Feet, float]:
    """Weight on the forelegs, the croup up, both hind feet out behind."""
    puppet, zero, L = Puppet(a, len(now)), 0 * now, a.leg_length
    off = keyframes(now, (0.0, 0.14, 0.36, 0.7, 0.92, 1.0), (0.0, 0.0, 1.0, 1.0, 0.0, 0.0))
    out = keyframes(now, (0.0, 0.3, 0.46, 0.54, 0.76, 1.0), (0.0, 0.0, 1.0, 1.0, 0.0, 0.0))
    ready = keyframes(now, (0.0, 0.12, 0.26, 1.0), (0.0, 1.0, 0.0, 0.0))
    pitch = chance.height * (0.2 * off + 0.16 * out) - 0.04 * ready
    half = 0.5 * float((a.points[a.chest] - a.points[0])[2])
    # Turning about the middle lowers the chest: lift the middle by as much, so the forelegs keep their length.
    rise = 0.85 * half * pitch.sin()
    carry(
        puppet,
        euler(zero, zero, pitch + 0.06 * out),
        euler(zero, zero, pitch),
        _at(zero, rise - 0.05 * L * ready, 0.06 * L * off),
        zero,
    )
    puppet.lead(a.neck, euler(zero, zero, 0.35 * off))
    wag_tail(puppet, now, 0.0, sway=0.05, lift=0.0)
    for joint in a.tail[:1]:
        puppet.turn(joint, euler(zero, zero, 0.5 * out))
    feet = planted_feet(a, len(now))
    last = max(leg.rank for leg in a.legs)
    for i, leg in enumerate(a.legs):
        if leg.rank == last:
            x = float(a.points[leg.toe, 0] - a.points[leg.joints[0], 0])
            far = 0.96 * leg.reach[1]
            air = _mix(out, (x, -0.55 * L, -0.1 * L), (x, -0.2 * far, -0.98 * far))
            feet = lift_foot(puppet, feet, i, off, air, pitch=0.6 + 0.9 * out)
    return puppet, feet, period


def lift_foot(
    puppet: Puppet, feet: Feet, i: int, up: Curve, air: Float[Tensor, "frames 3"], *, pitch: Curve | float
) -> Feet:
    """Take one foot from where it stands to a place in the air, given from its hip in the body's axes."""
    leg = puppet.anatomy.legs[i]
    D, P = puppet.world()
    hip, parent = leg.joints[0], puppet.anatomy.skeleton.parents[leg.joints[0]]
    there = P[:, hip] + (D[:, parent] @ air[..., None])[..., 0]
    share = up[:, None]
    parts = {name: getattr(feet, name).clone() for name in ("toe", "foot_pitch", "toe_pitch", "stance", "swing")}
    # It first leaves the ground and then travels, so it never drags.
    low = feet.toe[:, i]
    moved = low + share * (there - low)
    parts["toe"][:, i] = torch.stack([moved[:, 0], torch.maximum(moved[:, 1], low[:, 1]), moved[:, 2]], -1)
    tipped = up * (torch.as_tensor(pitch).to(up) + 0 * up)
    parts["foot_pitch"][:, i] = tipped
    parts["toe_pitch"][:, i] = 0.0 if leg.sprawled else tipped
    parts["stance"][:, i] = up <= 0
    parts["swing"][:, i] = 0.5 * up
    tip = leg.tip if leg.tip is not None else leg.toe
    reach = float((puppet.anatomy.points[tip] - puppet.anatomy.points[leg.toe]).norm())
    parts["toe"][:, i, 1] += reach * tipped.sin().clamp_min(0) * smoothstep(up / 0.2)
    return Feet(parts["toe"], parts["foot_pitch"], parts["toe_pitch"], feet.yaw, parts["stance"], parts["swing"])


def _at(x: Curve, y: Curve, z: Curve) -> Float[Tensor, "frames 3"]:
    return torch.stack([x, y, z], -1)


def _mix(share: Curve, a: tuple[float, float, float], b: tuple[float, float, float]) -> Float[Tensor, "frames 3"]:
    """From one vector to another."""
    first, second = share.new_tensor(a), share.new_tensor(b)
    return first + share[:, None] * (second - first)
