"""The robust path: a clip performed by joints that cannot explode, with as small a hand as holds it.

Joints follow the clip by inverse dynamics at every step, with the contacts that are there (`balance`), and the body
goes where the ground can carry it (`possible`). Where the clip asks for more than contacts can give, a hand helps: at
first none, then one that may turn the first body, then one that pulls all bodies alike, as a second gravity would,
stronger and stronger until the clip holds; then it is taken back as far as it still does. Drives that only aim at
the clip are tried where that fails.
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
from jigdoll.physics.stances import with_possible_path
from jigdoll.protocols import Progress, quiet

HELP = ((0.0, 0.0), (0.0, 0.3), (0.0, 1.0), (0.1, 1.0), (0.3, 1.0), (1.0, 2.0), (3.0, 4.0), (10.0, 10.0), (30.0, 30.0))
"""The most that a hand may pull [weights] and turn [weights x leg lengths], in the order in which it is tried."""
NEAR = 0.034
"""A clip holds while its bodies are nearer to it than this on average [body lengths] ..."""
SLACK = 1.2
"""... or than this many times the nearest that any hand comes to."""
BROKEN = 0.1
"""Bodies that are so far from the clip in any frame [body lengths, mean] do another one there."""
LOST = 0.3
"""A rollout ends where they are so far off: it will not come back ..."""
STRONG = 10.0
"""... unless its hand may pull this hard [g]: such ones are always seen to the end."""
SHIFT = 0.02
"""How far the centre of mass is moved at most on average to where the ground can carry it [body lengths]."""
LESS = (0.5, 0.7)
"""Shares of the help that holds a clip which are tried after it, the smaller first."""
UPRIGHT = 5.0
"""How much stiffer the torque is that turns the first body than what `upright` means elsewhere: drives without
gradients cannot make up for a trunk that leans."""
MOST_TORQUE = 5.0
"""The largest torque that is given ahead [weights x leg lengths]."""
WEAK = 0.1
"""The hand with which the speed of a clip that walks in place is found [g]."""

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
    loose: tuple[int, ...] = ()
    """Bodies that swing by themselves."""
    lost: float = math.inf
    """The rollout ends where the bodies are further off the clip than this on average [m]."""
    balanced: bool = False
    """Whether joints do what the clip asks by inverse dynamics at every step, with the ground that is there."""


@dataclass(frozen=True, eq=False)
class Performance:
    """What came of a plan; fewer frames than it has where the bodies exploded or were lost."""

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
    plan: Plan
    """What was asked for."""
    error: float
    """Mean distance of the bodies to the clip [body lengths]."""
    worst: float
    """The same in the frame where it is largest."""
    fell: bool
    passes: int
    chair: Chair | None

    @property
    def strength(self) -> float:
        """The strongest pull that the hand was allowed [g]."""
        return self.plan.hand


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
    chair: Chair | None = None,
    progress: Progress = quiet,
) -> Robust:
    """The clip as the bodies perform it, with the least hand that holds it.

    `clip` is what counts as near where the reference is not the clip itself (its stances were put in place).
    """
    clip = reference.T_world_body if clip is None else clip
    gains = with_loose(bodies, ideal_gains(bodies, step_of(bodies, reference.fps), friction=friction), loose)
    falls = ground and has_fallen(bodies, clip)
    tried: list[Robust] = []
    options = {"ground": ground, "friction": friction, "loose": loose}

    def attempt(plan: Plan) -> bool:
        engine = make_performer(bodies, gains, ground=ground, gravity=ground, chair=chair)
        plan = replace(plan, lost=LOST * bodies.length if plan.hand < STRONG else math.inf)
        done = engine.perform(plan)
        tried.append(_judged(bodies, clip, plan, done, ground=ground, count=len(tried) + 1, chair=chair))
        progress(min(0.95, len(tried) / 30), f"performing, hand {plan.hand:g} g")
        return _holds(tried[-1], falls)

    driven = make_plan(bodies, reference, **options)
    plans = []
    if ground:
        plans.append(replace(driven, balanced=True))
        aim = with_possible_path(bodies, reference, friction=friction, most=SHIFT, seated=chair is not None)
        plans.insert(0, replace(make_plan(bodies, aim, **options), balanced=True))
    for hand, turn in HELP:
        held = [attempt(replace(plan, hand=hand, upright=upright * turn)) for plan in plans]
        if not any(held) and (hand or turn >= 1.0):
            held = [attempt(plan) for plan in _driven(driven, hand, upright)]
        if any(held):
            break
    chosen = _least(tried, falls)
    if chosen.plan.balanced and (chosen.plan.hand or chosen.plan.upright):
        for share in LESS:
            less = replace(chosen.plan, hand=share * chosen.plan.hand, upright=share * chosen.plan.upright)
            if attempt(less):
                break
    return replace(_least(tried, falls), passes=len(tried))


def _driven(plan: Plan, hand: float, upright: float) -> list[Plan]:
    """The plan for drives that only aim at the clip: torques given ahead help a blow, and may hinder a gait."""
    less = torch.zeros_like(plan.torques)
    less[:, list(plan.loose)] = plan.torques[:, list(plan.loose)]  # which hold them up
    plan = replace(plan, hand=hand, upright=_upright(upright, hand))
    return [plan, replace(plan, torques=less)]


def _upright(upright: float, hand: float) -> float:
    """How strongly the first body is turned: a hand that pulls harder also turns harder."""
    return UPRIGHT * upright * (1 + 2 * hand)


def _holds(seen: Robust, falls: bool) -> bool:
    """Whether a performance is near enough all the time and does not fall."""
    return seen.error <= NEAR and seen.worst <= BROKEN and (falls or not seen.fell)


def _least(tried: list[Robust], falls: bool) -> Robust:
    """The performance with the weakest hand among those that hold the clip about as well as the best does."""
    standing = [seen for seen in tried if falls or not seen.fell] or tried
    nearest = min(seen.error for seen in standing)
    good = [seen for seen in standing if _holds(seen, falls)]
    good = good or [seen for seen in standing if seen.error <= max(NEAR, SLACK * nearest)]
    weakest = min((seen.strength for seen in good), default=math.inf)
    good = [seen for seen in good if seen.strength <= weakest]
    turned = min((seen.plan.upright for seen in good if seen.plan.balanced), default=math.inf)
    good = [seen for seen in good if seen.plan.balanced and seen.plan.upright <= turned] or good
    return min(good, key=lambda seen: seen.error, default=tried[0])


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
        loose=loose,
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
    """How near a performance is; one that ended early is not near at all, and keeps the clip where it has no frames."""
    rows, missing = done.rows, len(clip) - len(done.rows)
    if missing:
        T = plan.T_world_body
        rest = torch.cat([T[..., :3, 3], matrix_to_quaternion(T[..., :3, :3]), plan.twists], -1)
        rows = torch.cat([rows, rest[-missing:]])
    pad = (0, 0) * (done.drives.ndim - 1) + (0, missing)
    own = (0.0 if plan.balanced else plan.torques) + torch.nn.functional.pad(done.drives, pad)
    R = quaternion_to_matrix(rows[..., 3:7])
    gap = (rows[..., :3] - clip[..., :3, 3]).norm(dim=-1).mean(1) / bodies.length
    return Robust(
        rows=rows,
        torques=(R @ own[..., None])[..., 0],
        hand=torch.nn.functional.pad(done.hand, (0, 0, 0, missing)),
        plan=plan,
        error=math.inf if missing else float(gap.mean()),
        worst=math.inf if missing else float(gap.max()),
        fell=ground and has_fallen(bodies, transform(R, rows[..., :3])),
        passes=count,
        chair=chair,
    )


def _smoothed(values: Float[Tensor, "frames bodies 3"]) -> Float[Tensor, "frames bodies 3"]:
    """The mean over three frames, the middle one twice."""
    padded = torch.cat([values[:1], values, values[-1:]])
    return 0.25 * padded[:-2] + 0.5 * padded[1:-1] + 0.25 * padded[2:]
