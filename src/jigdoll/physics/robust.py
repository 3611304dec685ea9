"""The robust path: a clip performed by drives that cannot explode, with as small a hand as holds it.

Where the clip asks for more than contacts can give (and artists' clips mostly do), a hand helps: it pulls all bodies
alike towards the clip's centre of mass, as a second gravity would, and turns the first body upright. It is never
stronger than it must be: the clip is learned with a strong one, which is then taken away step by step for as long as
the clip still holds. Learning is a few passes: what the drives had to add in one is given ahead in the next.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.math import GRAVITY
from jigdoll.math.rotations import (
    matrix_to_quaternion,
    quaternion_to_matrix,
)
from jigdoll.math.transforms import transform
from jigdoll.physics.bodies import Bodies
from jigdoll.physics.chair import Chair
from jigdoll.physics.gains import Gains, ideal_gains, subtree_inertia
from jigdoll.physics.metrics import has_fallen, joint_torques
from jigdoll.physics.reference import Reference, local_rotations
from jigdoll.protocols import Progress, quiet

HANDS = (0.0, 0.05, 0.15, 0.4, 1.0, 3.0, 10.0, 30.0)
"""The strongest pull of the hand that is tried [g], in this order. Jumps of cartoons want the last ones."""
ENOUGH = 0.4
"""Stronger hands than this are only tried where none so far holds the clip [g]."""
NEAR = 0.034
"""A clip holds while its bodies are nearer to it than this on average [body lengths] ..."""
SLACK = 1.2
"""... or than this many times the nearest that any hand comes to."""
PASSES = 2
"""Rollouts in which torques are learned, with the hand that holds the clip and with the next weaker one."""
UPRIGHT = 5.0
"""How much stiffer the torque is that turns the first body than what `upright` means elsewhere: drives without
gradients cannot make up for a trunk that leans."""
MOST_TORQUE = 5.0
"""The largest torque that is given ahead [weights x leg lengths]."""
WEAK = 0.1
"""The hand with which the speed of a clip that walks in place is found [g]."""
LEARNED = 0.3
"""How much of what the drives added in a pass is given ahead in the next one."""

LOOSE_RATE = 2.0
"""How fast loose parts swing [1/s] ..."""
LOOSE_DAMPING = 0.25
"""... and how much of critical damping they have."""


@dataclass(frozen=True, eq=False)
class Plan:
    """What a rollout is asked to do, frame by frame."""

    fps: float
    T_world_body: Float[Tensor, "frames bodies 4 4"]
    """The clip; the first frame is where the rollout begins, the first body's turns are what help aims at."""
    twists: Float[Tensor, "frames bodies 6"]
    aims: Float[Tensor, "frames bodies 4"]
    """What the joints' drives aim at: rotations from rest."""
    rates: Float[Tensor, "frames bodies 3"]
    """Angular velocities of the joints that go with it, in the bodies' frames [rad/s]."""
    torques: Float[Tensor, "frames bodies 3"]
    """What the joints give besides, in the bodies' frames [N m]."""
    centre: Float[Tensor, "frames 3"]
    """Where the centre of mass is in the clip [m]."""
    way: Float[Tensor, "frames 3"]
    """Its velocity [m/s]."""
    hand: float
    """The strongest acceleration with which the hand pulls all bodies towards it [g]."""
    upright: float
    """Scale of the torque that turns the first body as the clip has it."""


@dataclass(frozen=True, eq=False)
class Performance:
    """What came of a plan; fewer frames than it has where the bodies exploded."""

    rows: Float[Tensor, "frames bodies 13"]
    drives: Float[Tensor, "frames bodies 3"]
    """What the drives gave besides the plan's torques, mean over the frame before [N m], in the bodies' frames."""
    hand: Float[Tensor, "frames 6"]
    """Force [N] and torque [N m] of the help, mean over the frame before, world."""


@runtime_checkable
class Performer(Protocol):
    """An engine that rolls out whole plans and never explodes."""

    def perform(self, plan: Plan) -> Performance:
        """Roll out a plan from its first frame."""
        ...


MakePerformer = Callable[..., Performer]


@dataclass(frozen=True, eq=False)
class Robust:
    """The best performance, and what it took."""

    rows: Float[Tensor, "frames bodies 13"]
    torques: Float[Tensor, "frames bodies 3"]
    """Of the joints [N m], world."""
    hand: Float[Tensor, "frames 6"]
    ahead: Float[Tensor, "frames bodies 3"]
    """The torques that were given ahead [N m], in the bodies' frames."""
    strength: float
    """The strongest pull that the hand was allowed [g]."""
    error: float
    """Mean distance of the bodies to the clip [body lengths]."""
    fell: bool
    passes: int
    chair: Chair | None


def perform_clip(
    bodies: Bodies,
    reference: Reference,
    make_performer: MakePerformer,
    *,
    clip: Float[Tensor, "frames bodies 4 4"] | None = None,
    ground: bool = True,
    friction: float = 1.0,
    upright: float = 1.0,
    loose: tuple[int, ...] = (),
    passes: int = PASSES,
    chair: Chair | None = None,
    progress: Progress = quiet,
) -> Robust:
    """The clip as the bodies perform it, with the least hand that holds it.

    `clip` is what counts as near where the reference is not the clip itself (its stances were put in place).
    """
    clip = reference.T_world_body if clip is None else clip
    gains = with_loose(bodies, ideal_gains(bodies, step_of(bodies, reference.fps), friction=friction), loose)
    engine = make_performer(bodies, gains, ground=ground, gravity=ground, chair=chair)
    plan = make_plan(bodies, reference, ground=ground, friction=friction, loose=loose)
    falls = ground and has_fallen(bodies, clip)
    tried: list[Robust] = []

    def attempt(plan: Plan) -> Performance:
        done = engine.perform(plan)
        tried.append(_judged(bodies, clip, plan, done, ground=ground, count=len(tried) + 1, chair=chair))
        progress(min(0.95, len(tried) / (len(HANDS) + 2 * passes)), f"performing, hand {plan.hand:g} g")
        return done

    for hand in HANDS:
        for ahead in (1.0, 0.0):  # torques given ahead help a blow, and may hinder a gait
            attempt(
                replace(plan, hand=hand, upright=_upright(upright, hand), torques=_some(plan.torques, ahead, loose))
            )
        if hand >= ENOUGH and _holds(tried, falls):
            break
    chosen = _least(tried, falls)
    weaker = [hand for hand in HANDS if hand < chosen.strength][-1:]
    for hand in (chosen.strength, *weaker):
        learned = replace(plan, hand=hand, upright=_upright(upright, hand), torques=chosen.ahead)
        for _ in range(passes):
            learned = replace(learned, torques=_learned(learned.torques, attempt(learned).drives, loose))
    return replace(_least(tried, falls), passes=len(tried))


def _some(torques: Float[Tensor, "frames bodies 3"], share: float, loose: tuple[int, ...]) -> Tensor:
    """A share of the torques; loose joints keep theirs, which hold them up."""
    less = share * torques
    less[:, list(loose)] = torques[:, list(loose)]
    return less


def _upright(upright: float, hand: float) -> float:
    """How strongly the first body is turned: a hand that pulls harder also turns harder."""
    return UPRIGHT * upright * (1 + 2 * hand)


def _holds(tried: list[Robust], falls: bool) -> bool:
    """Whether one of these is near enough and does not fall."""
    return any(seen.error <= NEAR and (falls or not seen.fell) for seen in tried)


def _least(tried: list[Robust], falls: bool) -> Robust:
    """The performance with the weakest hand among those that hold the clip about as well as the best does."""
    standing = [seen for seen in tried if falls or not seen.fell] or tried
    nearest = min(seen.error for seen in standing)
    good = [seen for seen in standing if seen.error <= max(NEAR, SLACK * nearest)]
    weakest = min(seen.strength for seen in good) if good else math.inf
    return min((seen for seen in good if seen.strength == weakest), key=lambda seen: seen.error, default=tried[0])


def drift(
    bodies: Bodies,
    reference: Reference,
    make_performer: MakePerformer,
    *,
    clip: Float[Tensor, "frames bodies 4 4"],
    friction: float = 1.0,
) -> tuple[float, Float[Tensor, "2"]]:
    """How far a performance with a weak hand is off the clip [body lengths], and how fast it leaves it [m/s]."""
    gains = ideal_gains(bodies, step_of(bodies, reference.fps), friction=friction)
    engine = make_performer(bodies, gains, ground=True, gravity=True)
    plan = replace(make_plan(bodies, reference, ground=True, friction=friction), hand=WEAK, upright=UPRIGHT)
    done = engine.perform(plan)
    if len(done.rows) < len(clip):
        return math.inf, torch.zeros(2, dtype=torch.float64)
    away = done.rows[..., :3] - clip[..., :3, 3]
    centre = (bodies.mass[:, None] * away).sum(1) / bodies.total_mass
    time = torch.arange(len(clip), dtype=torch.float64)[:, None] / reference.fps
    slip = (time * centre).sum(0) / time.square().sum()
    return float(away.norm(dim=-1).mean()) / bodies.length, slip[[0, 2]]


def make_plan(
    bodies: Bodies, reference: Reference, *, ground: bool, friction: float, loose: tuple[int, ...] = ()
) -> Plan:
    """The clip as a plan, with the torques that inverse dynamics finds for it; loose joints only hold their weight."""
    T, fps = reference.T_world_body, reference.fps
    R = T[..., :3, :3]
    parents = [max(p, 0) for p in bodies.parents]
    spin = reference.twists[..., 3:]
    rates = (R.mT @ (spin - spin[:, parents])[..., None])[..., 0]
    com = (R @ bodies.com[:, :, None])[..., 0] + T[..., :3, 3]
    share = bodies.mass[:, None] / bodies.total_mass
    torques = torch.zeros_like(rates)
    if len(reference) >= 4:
        world = joint_torques(bodies, T, fps, friction=friction, ground=ground)
        torques = (R.mT @ world[..., None])[..., 0]
        # Inverse dynamics over frames rings at touchdowns: drives take what is beyond.
        most = MOST_TORQUE * bodies.total_mass * GRAVITY * bodies.leg_length
        torques = _smoothed(torques * (most / torques.norm(dim=-1, keepdim=True).clamp_min(most)))
    if loose:
        torques[:, list(loose)] = _holding(bodies, T, com, ground=ground)[:, list(loose)]
    return Plan(
        fps=fps,
        T_world_body=T,
        twists=reference.twists,
        aims=matrix_to_quaternion(local_rotations(bodies, T)),
        rates=rates,
        torques=torques,
        centre=(share * com).sum(1),
        way=(share * reference.twists[..., :3]).sum(1),
        hand=0.0,
        upright=1.0,
    )


def _holding(
    bodies: Bodies, T: Float[Tensor, "frames bodies 4 4"], com: Float[Tensor, "frames bodies 3"], *, ground: bool
) -> Float[Tensor, "frames bodies 3"]:
    """The torque of each joint that only holds up what hangs on it, in the bodies' frames."""
    mass, moment = bodies.mass.expand(len(T), -1).clone(), bodies.mass[:, None] * com
    for body in range(len(bodies) - 1, 0, -1):
        mass[:, bodies.parents[body]] += mass[:, body]
        moment[:, bodies.parents[body]] += moment[:, body]
    arm = moment - mass[..., None] * T[..., :3, 3]
    up = arm.new_tensor([0.0, GRAVITY if ground else 0.0, 0.0]).expand_as(arm)
    return (T[..., :3, :3].mT @ torch.linalg.cross(arm, up)[..., None])[..., 0]


def step_of(bodies: Bodies, fps: float) -> float:
    """The simulation step [s]: shorter for small bodies, which move faster in their own measure."""
    longest = min(1 / 480, 0.012 * math.sqrt(bodies.leg_length / GRAVITY))
    return 1 / (fps * min(64, math.ceil(1 / (fps * longest))))


def with_loose(bodies: Bodies, gains: Gains, loose: tuple[int, ...]) -> Gains:
    """Gains whose loose joints swing by themselves: slow springs, lightly damped, as their own inertia asks."""
    if not loose:
        return gains
    ke, kd = gains.target_ke.clone(), gains.target_kd.clone()
    inertia = subtree_inertia(bodies)[list(loose)]
    rate = 2 * math.pi * LOOSE_RATE
    ke[list(loose)], kd[list(loose)] = rate**2 * inertia, 2 * LOOSE_DAMPING * rate * inertia
    return replace(gains, target_ke=ke, target_kd=kd)


def _judged(
    bodies: Bodies,
    clip: Float[Tensor, "frames bodies 4 4"],
    plan: Plan,
    done: Performance,
    *,
    ground: bool,
    count: int,
    chair: Chair | None,
) -> Robust:
    """How near a performance is; one that exploded is not near at all, and keeps the clip where it has no frames."""
    rows, missing = done.rows, len(clip) - len(done.rows)
    if missing:
        T = plan.T_world_body
        rest = torch.cat([T[..., :3, 3], matrix_to_quaternion(T[..., :3, :3]), plan.twists], -1)
        rows = torch.cat([rows, rest[-missing:]])
    pad = (0, 0) * (done.drives.ndim - 1) + (0, missing)
    own = plan.torques + torch.nn.functional.pad(done.drives, pad)
    R = quaternion_to_matrix(rows[..., 3:7])
    gap = (rows[..., :3] - clip[..., :3, 3]).norm(dim=-1).mean() / bodies.length
    return Robust(
        rows=rows,
        torques=(R @ own[..., None])[..., 0],
        hand=torch.nn.functional.pad(done.hand, (0, 0, 0, missing)),
        ahead=plan.torques,
        strength=plan.hand,
        error=math.inf if missing else float(gap),
        fell=ground and has_fallen(bodies, transform(R, rows[..., :3])),
        passes=count,
        chair=chair,
    )


def _learned(
    torques: Float[Tensor, "frames bodies 3"], drives: Float[Tensor, "_ bodies 3"], loose: tuple[int, ...]
) -> Float[Tensor, "frames bodies 3"]:
    """What the drives had to add is given ahead the next time, smoothed; loose joints learn nothing."""
    more = torch.zeros_like(torques)
    more[: len(drives)] = LEARNED * drives
    more[:, list(loose)] = 0
    return torques + _smoothed(more)


def _smoothed(values: Float[Tensor, "frames bodies 3"]) -> Float[Tensor, "frames bodies 3"]:
    """The mean over three frames, the middle one twice."""
    padded = torch.cat([values[:1], values, values[-1:]])
    return 0.25 * padded[:-2] + 0.5 * padded[1:-1] + 0.25 * padded[2:]
