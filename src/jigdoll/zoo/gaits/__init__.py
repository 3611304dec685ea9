"""Reference gaits drawn by hand from what is known of animals: test truth and training data, never a distilled result.

Feet stand still in the world for as long as they stand, legs reach them by inverse kinematics, and the body rides on
them; speeds follow from the leg's length (Froude number), strides from Alexander's law for walking vertebrates.
"""

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from jigdoll.errors import JigdollError
from jigdoll.language.nouns import FLIGHTLESS
from jigdoll.language.read import read_name
from jigdoll.math import GRAVITY
from jigdoll.types import Motion, RiggedAsset, Skeleton
from jigdoll.zoo.gaits.actions import flap, fly, idle, leap
from jigdoll.zoo.gaits.anatomy import Anatomy, study
from jigdoll.zoo.gaits.body import ride
from jigdoll.zoo.gaits.feet import Curve, Feet, Stepping, arc, step_feet, straight
from jigdoll.zoo.gaits.gestures import can_use_arms, kick, punch, wave_hand
from jigdoll.zoo.gaits.pace import TURN_PER_STRIDE
from jigdoll.zoo.gaits.puppet import Puppet
from jigdoll.zoo.gaits.style import (
    Style,
    build_of,
    creep_style,
    dance_style,
    gallop_style,
    hop_style,
    leg_phases,
    limp_style,
    march_style,
    run_style,
    stomp_style,
    trot_style,
    varied,
    walk_style,
)

MOST_TRIES = 16
MOST_DROP = 0.06
"""How much of the leg length the body may be lowered for a long stride; longer ones are shortened."""


@dataclass(frozen=True, eq=False)
class Clip:
    """A reference motion and what is known about it."""

    motion: Motion
    stance: Bool[Tensor, "frames legs"]
    """Which feet stand, the legs ordered left before right and front to back."""
    legs: tuple[str, ...]
    """`left_0`, `left_1` ...: the side and the rank of each leg."""
    period: float
    """Of one stride [s]."""
    speed: float
    """[m/s]."""
    gap: Float[Tensor, "frames legs"]
    """How far swinging feet miss where they would be, for legs that are too short [m]; zero in stance."""


def actions(asset: RiggedAsset | Skeleton, *, name: str | None = None) -> tuple[str, ...]:
    """What this body can do, the core actions first."""
    return _actions(_study(asset), name or _name(asset))


def reference_motion(
    asset: RiggedAsset | Skeleton,
    action: str,
    *,
    seconds: float = 2.0,
    fps: float = 24.0,
    seed: int = 0,
    speed: float | None = None,
    loop: bool = False,
    name: str | None = None,
) -> Motion:
    """A reference clip of an action: `round(seconds * fps) + 1` frames of root motion and rotations.

    Seed 0 is the plain gait, others vary tempo, stride, lift, phase and carriage. `speed` [m/s] overrules what follows
    from the leg's length. A `loop` ends in the pose it began with, displaced (and turned, after a turn) at the root.
    The name of the asset picks species habits (a penguin waddles); `name` stands in for it.
    """
    return reference_clip(asset, action, seconds=seconds, fps=fps, seed=seed, speed=speed, loop=loop, name=name).motion


def reference_clip(
    asset: RiggedAsset | Skeleton,
    action: str,
    *,
    seconds: float = 2.0,
    fps: float = 24.0,
    seed: int = 0,
    speed: float | None = None,
    loop: bool = False,
    name: str | None = None,
) -> Clip:
    """The reference motion of an action together with which feet stand when."""
    a, name = _study(asset), name or _name(asset)
    if action not in _actions(a, name):
        raise JigdollError(f"{name} cannot {action}; it can {', '.join(_actions(a, name))}")
    if not (seconds > 0 and fps > 0 and math.isfinite(seconds * fps)):
        raise JigdollError(f"a clip needs a positive length and rate, not {seconds} s at {fps} frames per second")
    frames = max(1, round(seconds * fps))
    t = torch.arange(frames + 1, dtype=torch.float64) / fps
    lasts = frames / fps if loop else None
    puppet, feet, period, pace = _perform(a, name, action, t, seed=seed, speed=speed, loop=lasts)
    puppet.keep_off_ground()
    gap = puppet.stand(feet)
    legs = tuple(f"{leg.side}_{leg.rank}" for leg in a.legs)
    return Clip(puppet.motion(fps, action), feet.stance, legs, period, pace, gap)


def _perform(
    a: Anatomy, name: str, action: str, t: Curve, *, seed: int, speed: float | None, loop: float | None
) -> tuple[Puppet, Feet, float, float]:
    """The body and the feet of an action, its period and its speed."""
    if action in _ON_THE_SPOT:
        return *_settled(*_ON_THE_SPOT[action](a, t, seed=seed, loop=loop)), 0.0
    if action == "fly":
        return fly(a, t, seed=seed, loop=loop, speed=speed)
    if action == "jump":
        height = 0.28 if build_of(a, name) == "heavy" else 0.4
        dip = {"heavy": 0.15, "hoofed": 0.15, "waddler": 0.1}.get(build_of(a, name), 0.24)
        return leap(a, t, seed=seed, loop=loop, speed=speed, height=height, dip=dip)
    style = _styles(a, name)[action]
    turn = {"turn_left": 1.0, "turn_right": -1.0}.get(action, 0.0)
    puppet, feet, stepping, pace = locomote(a, style, t, speed=speed, turn=turn, seed=seed, loop=loop)
    return puppet, feet, stepping.period, pace


def _settled(puppet: Puppet, feet: Feet, period: float) -> tuple[Puppet, Feet, float]:
    """Lowered until all feet that stand are within reach."""
    puppet.lower_to(feet)
    return puppet, feet, period


def _styles(a: Anatomy, name: str) -> dict[str, Style]:
    """The actions that a style alone tells."""
    walk, run, build = walk_style(a, name), run_style(a, name), build_of(a, name)
    slow = replace(walk, froude=walk.froude * 0.45, lean=walk.lean * 0.5)
    styles = {"walk": walk, "run": run, "turn_left": slow, "turn_right": slow}
    if a.plan == "quadruped" and build != "crawler":
        styles["trot"] = trot_style(a, name)
        if read_name(name).species != "elephant":
            styles["gallop"] = gallop_style(a, name)
    if build != "hopper":
        styles |= {"creep": creep_style(walk, a), "march": march_style(walk, a), "limp": limp_style(walk)}
    if build not in ("hopper", "heavy"):
        styles["hop"] = hop_style(a, walk)
    styles |= {"stomp": stomp_style(walk, a), "dance": dance_style(walk, a)}
    return styles


def _actions(a: Anatomy, name: str) -> tuple[str, ...]:
    core = ("walk", "run", "jump", "idle", "turn_left", "turn_right")
    more = [action for action in _styles(a, name) if action not in core]
    if can_use_arms(a):
        more.append("punch")
    hind = max(a.legs, key=lambda leg: leg.rank)
    hooves = a.plan == "quadruped" and not a.sprawled and hind.foot is None
    if hooves or (a.upright and can_use_arms(a) and build_of(a, name) == "human"):
        more.append("kick")
    if can_use_arms(a) or a.plan != "biped":
        more.append("wave")
    if a.wings:
        more.append("flap")
        if read_name(name).noun not in FLIGHTLESS:
            more.append("fly")
    return (*core, *more)


_ON_THE_SPOT = {"idle": idle, "flap": flap, "wave": wave_hand, "punch": punch, "kick": kick}


def _study(asset: RiggedAsset | Skeleton) -> Anatomy:
    return study(asset if isinstance(asset, Skeleton) else asset.skeleton)


def _name(asset: RiggedAsset | Skeleton) -> str:
    return "this body" if isinstance(asset, Skeleton) else asset.name


def locomote(
    a: Anatomy, style: Style, t: Curve, *, speed: float | None, turn: float, seed: int, loop: float | None
) -> tuple[Puppet, Feet, Stepping, float]:
    """Walk, run, creep ...: whatever is told by a style alone; `turn` +1 to the left, -1 to the right."""
    style, tempo, start = varied(style, seed)
    shrink, tries = 1.0, 0
    while True:
        stepping, pace = _stepping(a, style, speed=speed, tempo=tempo, start=start, shrink=shrink, loop=loop)
        course = straight(pace) if not turn else arc(pace, turn * TURN_PER_STRIDE / stepping.period)
        puppet = Puppet(a, len(t))
        ride(puppet, style, stepping, course, t)
        feet = step_feet(a, stepping, course, t)
        drop, squeeze = puppet.lower_to(feet)
        too_long, too_deep = drop > MOST_DROP * a.leg_length, squeeze > 0
        tries += 1
        if tries == MOST_TRIES or not (too_long or too_deep):
            return puppet, feet, stepping, pace
        if too_long:
            shrink *= 0.94
        if too_deep:
            style = _shallower(style)


def _shallower(style: Style) -> Style:
    """The same with less up and down, for legs that cannot fold so far."""
    less = {name: 0.88 * getattr(style, name) for name in ("bob", "crouch", "lift", "push")}
    return replace(style, **less)


def _stepping(
    a: Anatomy,
    style: Style,
    *,
    speed: float | None,
    tempo: float,
    start: float,
    shrink: float,
    loop: float | None,
) -> tuple[Stepping, float]:
    """Rhythm and speed of a style on these legs; a stride that was shortened is also taken more slowly."""
    L = a.leg_length
    froude = style.froude if speed is None else max(speed, 1e-3) ** 2 / (GRAVITY * L)
    stride = 2.4 * L * froude**0.34 * style.stride * shrink
    pace = math.sqrt(style.froude * GRAVITY * L * shrink) * tempo if speed is None else speed
    period = stride / max(pace, 1e-6)
    if style.beat is not None:
        pace = stride = 0.0
        period = style.beat * math.sqrt(L / GRAVITY) / tempo
    if loop is not None:
        period = loop / max(1, round(loop / period))
        if speed is None:
            pace = stride / period
    lame = [style.limp * (leg.side == "left" and leg.rank == max(other.rank for other in a.legs)) for leg in a.legs]
    duties = tuple(min(max(style.duty - 0.16 * spared, 0.2), 0.85) for spared in lame)
    # A spared leg comes down late and leaves early.
    phases = tuple((p + 0.06 * spared) % 1 for p, spared in zip(leg_phases(style.pattern, a), lame, strict=True))
    lifts = tuple(style.lift * L * (1 - 0.35 * spared) for spared in lame)
    stepping = Stepping(
        period, phases, duties, lifts, heel=style.heel, push=style.push, curl=style.curl, width=style.width, start=start
    )
    return stepping, pace
