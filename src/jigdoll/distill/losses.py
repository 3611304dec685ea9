"""What a motion owes to the body and to the ground, besides the prior: one pure function per demand.

Lengths are measured in leg lengths and speeds in the speed of travel, so that one weight serves a cat and a giraffe;
only AKD's own two losses keep the paper's units.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.distill.body import Body, capsule_distances
from jigdoll.distill.trajectory import Controls


@dataclass(frozen=True, eq=False)
class Moment:
    """A clip as the losses see it."""

    moved: Controls
    T_world_joint: Float[Tensor, "frames joints 4 4"]
    fps: float

    @property
    def points(self) -> Float[Tensor, "frames joints 3"]:
        """The joints [m], world."""
        return self.T_world_joint[..., :3, 3]


@dataclass(frozen=True)
class Weights:
    """How much each demand counts."""

    smooth: float = 0.0
    ground: float = 0.0
    limits: float = 0.0
    contact: float = 0.0
    support: float = 0.0
    lift: float = 0.0
    relay: float = 0.0
    tread: float = 0.0
    sides: float = 0.0
    ease: float = 0.0
    momentum: float = 0.0
    leg_length: float = 0.0
    root: float = 0.0
    energy: float = 0.0
    collision: float = 0.0
    loop: float = 0.0


PAPER = Weights(smooth=2e5, ground=1e7)
"""lambda_1 and lambda_2 of AKD, appendix D."""
RAMPED = ("contact", "support", "lift", "relay", "ease")
"""These come in late, once the prior has set which leg goes when: earlier they lock the legs in phase."""


def losses(
    body: Body, moment: Moment, weights: Weights, *, ramp: float = 1.0, flight: bool = False
) -> dict[str, Float[Tensor, ""]]:
    """Every demand that has a weight, weighted; `ramp` 0..1 is how far the late ones have come in."""
    demands = {
        "smooth": lambda: smooth(moment),
        "ground": lambda: ground(body, moment),
        "limits": lambda: limits(body, moment),
        "contact": lambda: contact(body, moment, flight=flight),
        "support": lambda: support(body, moment),
        "lift": lambda: lift(body, moment),
        "relay": lambda: relay(body, moment),
        "tread": lambda: tread(body, moment),
        "sides": lambda: sides(body, moment),
        "ease": lambda: ease(body, moment),
        "momentum": lambda: momentum(body, moment),
        "leg_length": lambda: leg_length(body, moment),
        "root": lambda: root(body, moment),
        "energy": lambda: energy(moment),
        "collision": lambda: collision(body, moment),
        "loop": lambda: loop(body, moment),
    }
    result = {}
    for name, demand in demands.items():
        weight = getattr(weights, name) * (ramp if name in RAMPED else 1.0)
        if weight:
            result[name] = weight * demand()
    return result


def smooth(moment: Moment) -> Float[Tensor, ""]:
    """AKD Eq. 9: the mean absolute second difference of all control parameters over time."""
    theta = torch.cat([moment.moved.angles.flatten(1), moment.moved.root], 1)
    return (theta[:-2] - 2 * theta[1:-1] + theta[2:]).abs().mean()


def ground(body: Body, moment: Moment) -> Float[Tensor, ""]:
    """AKD Eq. 10: the mean depth below the ground of the corners of the bones' cuboids [m]."""
    T = moment.T_world_joint[:, body.cuboid_joints]
    heights = (T[..., None, 1, :3] * body.cuboids).sum(-1) + T[..., None, 1, 3]
    return (-heights).clamp_min(0).mean()


def limits(body: Body, moment: Moment) -> Float[Tensor, ""]:
    """Squared excess beyond the rig's joint limits [rad^2], summed over joints, the mean over frames."""
    angles = moment.moved.angles[:, 1:]
    low, high = body.skeleton.limits[1:].unbind(-1)
    excess = (low - angles).clamp_min(0) + (angles - high).clamp_min(0)
    return excess.square().sum((-1, -2)).mean()


def contact(body: Body, moment: Moment, *, flight: bool = False) -> Float[Tensor, ""]:
    """The lower foot of each pair stands still: u / (1 + u), u its squared speed over the ground per speed of travel.

    Bounded, because a foot that is still low at the ends of its swing moves fast and is right to do so: a plain square
    asks more of a true walk than of a body that glides. With `flight` a foot only owes this near the ground.
    """
    if not body.legs:
        return moment.points.sum() * 0
    feet = moment.points[:, body.feet]
    squared = ((feet[1:] - feet[:-1]) * (moment.fps / body.pace)).square().sum(-1)
    stance = stance_weights(body, moment, flight=flight)
    return (0.5 * (stance[1:] + stance[:-1]) * squared / (1 + squared)).mean()


def stance_weights(body: Body, moment: Moment, *, flight: bool = False) -> Float[Tensor, "frames feet"]:
    """How much each foot stands, 0..1: lower than the one across, and going backwards under the body.

    No gradient: a foot does not lift to avoid a loss.
    """
    height = clearance(body, moment).detach()
    lower = (height[:, body.across] - height) / 0.02
    stands = torch.sigmoid(lower - 1.5 * stride_speed(body, moment).detach().clamp(-2, 2))
    if flight:
        stands = stands * torch.sigmoid((0.08 - height) / 0.02)
    return stands


def stride_speed(body: Body, moment: Moment) -> Float[Tensor, "frames feet"]:
    """How fast each foot goes ahead of its hip along the course, in speeds of travel: -1 while it stands."""
    way = moment.points[:, body.feet] - moment.points[:, body.hips]
    step = torch.cat([way[1:2] - way[:1], 0.5 * (way[2:] - way[:-2]), way[-1:] - way[-2:-1]])
    course = moment.moved.course
    ahead = torch.nn.functional.normalize(torch.cat([course[1:] - course[:-1], course[-1:] - course[-2:-1]]), dim=-1)
    return (step * ahead[:, None]).sum(-1) * (moment.fps / body.pace)


def clearance(body: Body, moment: Moment) -> Float[Tensor, "frames feet"]:
    """The height of each foot above where it rests, in leg lengths."""
    return (moment.points[:, body.feet, 1] - body.feet_rest) / body.leg_length


def support(body: Body, moment: Moment) -> Float[Tensor, ""]:
    """The lower foot of each pair is on the ground, but while the course flies: its squared clearance."""
    if not body.legs:
        return moment.points.sum() * 0
    height = clearance(body, moment)
    lower = torch.minimum(height, height[:, body.across])
    return (lower.square() * (moment.moved.course[:, 1:2] <= 0)).mean()


def lift(body: Body, moment: Moment) -> Float[Tensor, ""]:
    """A foot that swings ahead is up and one that goes back is down: squared lack and excess of height.

    The swing says when, without a gradient; so a leg's cycle turns the right way round whatever its phase is.
    """
    if not body.legs:
        return moment.points.sum() * 0
    speed, height = stride_speed(body, moment).detach().clamp(-1, 2), clearance(body, moment) / body.step_height
    return (speed.clamp_min(0) * (1 - height).clamp_min(0).square() - speed.clamp_max(0) * height.square()).mean()


def relay(body: Body, moment: Moment) -> Float[Tensor, ""]:
    """Walking feet take turns: the product of the speeds at which both feet of a pair go ahead at once."""
    if not body.legs:
        return moment.points.sum() * 0
    speed = stride_speed(body, moment).clamp_min(0)
    return (speed * speed[:, body.across]).clamp_max(4.0).mean()


def sides(body: Body, moment: Moment) -> Float[Tensor, ""]:
    """Left limbs do what right ones do, mirrored and a share of a stride later: squared difference of their joints."""
    if not body.lefts or body.lag is None:
        return moment.points.sum() * 0
    left, right = (_reach(moment, joints) for joints in (body.lefts, body.rights))
    late = body.lag * moment.fps
    whole, part = int(late), late - int(late)
    if whole + 1 >= len(left):
        return moment.points.sum() * 0  # too short a clip for the other side's turn
    later = (1 - part) * left[whole:-1] + part * left[whole + 1 :]
    gap = (later - right[: len(later)] * right.new_tensor([-1.0, 1.0, 1.0])) / body.leg_length
    return gap.square().sum(-1).mean()


def _reach(moment: Moment, joints: list[tuple[int, int]]) -> Float[Tensor, "frames joints 3"]:
    """To joints from where their limb begins: to the left, up and ahead."""
    way = moment.points[:, [j for j, _ in joints]] - moment.points[:, [first for _, first in joints]]
    return _ahead(way, moment)


def _ahead(way: Float[Tensor, "frames points 3"], moment: Moment) -> Float[Tensor, "frames points 3"]:
    """Ways in the world as a body on the course sees them: to the left, up and ahead."""
    x, y, z = way.unbind(-1)
    cos, sin = torch.cos(moment.moved.heading)[:, None], torch.sin(moment.moved.heading)[:, None]
    return torch.stack([cos * x - sin * z, y, sin * x + cos * z], -1)


def tread(body: Body, moment: Moment) -> Float[Tensor, ""]:
    """Each foot leaves the ground at some time: squared lack of height at its highest."""
    if not body.legs:
        return moment.points.sum() * 0
    return (1 - clearance(body, moment).amax(0) / body.step_height).clamp_min(0).square().mean()


def ease(body: Body, moment: Moment) -> Float[Tensor, ""]:
    """Nothing jerks: the mean squared jerk of all joints, in leg lengths per cubed radian of the stride."""
    points = moment.points
    jerk = points[3:] - 3 * points[2:-1] + 3 * points[1:-2] - points[:-3]
    rate = moment.fps * body.period / (2 * torch.pi)
    return (jerk * (rate**3 / body.leg_length)).square().sum(-1).mean()


def momentum(body: Body, moment: Moment) -> Float[Tensor, ""]:
    """The body does not spin about the vertical: its squared angular momentum per mass, leg length and speed.

    This is what arms swing against the legs for. The turn of the course itself is free.
    """
    points = moment.points
    center = (body.masses[:, None] * points).sum(1, keepdim=True)
    away = _ahead(points - center, moment)
    speed = (away[2:] - away[:-2]) * (0.5 * moment.fps / (body.pace * body.leg_length))
    spin = away[1:-1, :, 2] * speed[..., 0] - away[1:-1, :, 0] * speed[..., 2]
    return (body.masses * spin).sum(-1).square().mean()


def leg_length(body: Body, moment: Moment) -> Float[Tensor, ""]:
    """Legs do not curl up: squared shortening of hip to foot below a share of its length at rest."""
    if not body.legs:
        return moment.points.sum() * 0
    way = (moment.points[:, body.feet] - moment.points[:, body.hips]).norm(dim=-1)
    return (body.least_reach - way / body.reach_rest).clamp_min(0).square().mean()


def root(body: Body, moment: Moment) -> Float[Tensor, ""]:
    """The body stays near its course: squared excess of height, of drift sideways and along, and of tilt."""
    away = _ahead((moment.moved.root - moment.moved.course)[:, None] / body.leg_length, moment)[:, 0]
    tilt = moment.moved.angles[:, 0, 1:]
    across = away[:, 0].square()
    height = (away[:, 1].abs() - body.root_height).clamp_min(0).square()
    along = (away[:, 2].abs() - 0.5).clamp_min(0).square()
    return (across + height + along + (tilt.abs() - 0.3).clamp_min(0).square().sum(-1)).mean()


def energy(moment: Moment) -> Float[Tensor, ""]:
    """The mean square of all joint angles [rad^2]: nothing moves without a reason."""
    return moment.moved.angles[:, 1:].square().sum((-1, -2)).mean()


def collision(body: Body, moment: Moment) -> Float[Tensor, ""]:
    """Squared overlap of bone capsules that are apart at rest, in leg lengths."""
    if not len(body.pairs):
        return moment.points.sum() * 0
    distance = capsule_distances(moment.T_world_joint, body)
    return ((body.pair_reach - distance).clamp_min(0) / body.leg_length).square().sum(-1).mean()


def loop(body: Body, moment: Moment) -> Float[Tensor, ""]:
    """The clip ends as it began, in pose and in speed, but for the way it came."""
    angles = moment.moved.angles[:, 1:]
    away = (moment.moved.root - moment.moved.course) / body.leg_length
    turn = moment.moved.angles[:, 0, 1:]
    gaps = [x[-1] - x[0] for x in (angles, away, turn)]
    gaps += [(x[-1] - x[-2]) - (x[1] - x[0]) for x in (angles, away, turn)]
    return torch.stack([gap.square().sum() for gap in gaps]).sum()
