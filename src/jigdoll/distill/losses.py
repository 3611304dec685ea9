"""What a motion owes to the body and to the ground, besides the prior: one function and one weight per loss.

To add a loss, write a function `name(body, clip)` here and a field `name` of `distill.options.LossWeights`;
`distill.config` says what it weighs by default, where that is not nothing. The second half of this file is about gaits:
a motion that starts from rest needs it, one that starts from a draft does not.

Lengths are measured in leg lengths and speeds in the speed of travel, so that one weight serves a cat and a giraffe;
only AKD's own two losses keep the paper's units.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.distill.body import Body, capsule_overlaps
from jigdoll.distill.options import LossWeights
from jigdoll.distill.trajectory import CurveValues
from jigdoll.rig.limits import clamp_pose
from jigdoll.types import Pose
from jigdoll.validators.skin import depth_below_ground

Naturalness = Callable[[Pose], Tensor]
"""How far each pose of a clip is from what is natural, 0 at best; differentiable (the score of a `PoseModel`)."""


@dataclass(frozen=True, eq=False)
class PosedClip:
    """A clip as the losses see it."""

    values: CurveValues
    pose: Pose
    T_world_joint: Float[Tensor, "frames joints 4 4"]
    fps: float
    draft: "DraftFeet | None" = None
    score: Naturalness | None = None

    @property
    def points(self) -> Float[Tensor, "frames joints 3"]:
        """The joints [m], world."""
        return self.T_world_joint[..., :3, 3]


@dataclass(frozen=True, eq=False)
class DraftFeet:
    """What the feet do in the draft that a clip starts from."""

    stands: Float[Tensor, "frames feet"]
    """1 where a foot stands, else 0."""
    places: Float[Tensor, "frames feet 3"]
    """[m], world."""


Loss = Callable[[Body, PosedClip], Float[Tensor, ""]]


RAMPED = ("contact", "support", "swing_height", "alternation", "jerk")
"""These come in late, once the prior has set which leg goes when: earlier they lock the legs in phase."""
RAMP = (0.4, 0.9)
"""The share of the steps with the prior at which those begin to count, and at which they count in full."""


def losses(
    body: Body, clip: PosedClip, weights: Mapping[str, float], *, ramp: float = 1.0, hold: float = 1.0
) -> dict[str, Float[Tensor, ""]]:
    """Every loss that has a weight, weighted.

    `ramp` 0..1 is how far the late ones have come in, `hold` how hard the motion is kept near its start by now.
    """
    result, now = {}, dict.fromkeys(RAMPED, ramp) | {"near": hold}
    for field in fields(LossWeights):
        weight = weights.get(field.name, 0.0) * now.get(field.name, 1.0)
        if weight:
            loss: Loss = globals()[field.name]
            result[field.name] = weight * loss(body, clip)
    return result


def smooth(body: Body, clip: PosedClip) -> Float[Tensor, ""]:
    """AKD Eq. 9: the mean absolute second difference of all control parameters over time."""
    theta = torch.cat([clip.values.turns.flatten(1), clip.values.shift], 1)
    return (theta[:-2] - 2 * theta[1:-1] + theta[2:]).abs().mean()


def ground(body: Body, clip: PosedClip) -> Float[Tensor, ""]:
    """AKD Eq. 10: the mean depth below the ground of the corners of the bones' cuboids [m]."""
    T = clip.T_world_joint[:, body.cuboid_joints]
    heights = (T[..., None, 1, :3] * body.cuboids).sum(-1) + T[..., None, 1, 3]
    return depth_below_ground(heights).mean()


def contact(body: Body, clip: PosedClip) -> Float[Tensor, ""]:
    """Feet that stand stay: u / (1 + u), u the squared speed over the ground per speed of travel.

    A draft says which feet stand, and the speed counts that they do not have there. Without one it is the lower foot of
    each pair. Bounded, because a foot that is still low at the ends of its swing moves fast and is right to do so: a
    plain square asks more of a true walk than of a body that glides.
    """
    if not body.legs:
        return clip.points.sum() * 0
    feet = clip.points[:, body.feet]
    if clip.draft is not None:
        feet = feet - clip.draft.places
    squared = ((feet[1:] - feet[:-1]) * (clip.fps / body.pace)).square().sum(-1)
    stance = stance_weights(body, clip) if clip.draft is None else clip.draft.stands
    return (0.5 * (stance[1:] + stance[:-1]) * squared / (1 + squared)).mean()


def near(body: Body, clip: PosedClip) -> Float[Tensor, ""]:
    """The motion stays near the one that it starts from: squared turns [rad] and shift of the root [leg lengths]."""
    turns, shift = clip.values.turns, clip.values.shift / body.leg_length
    return (turns.square().sum((-1, -2)) + shift.square().sum(-1)).mean()


def limits(body: Body, clip: PosedClip) -> Float[Tensor, ""]:
    """Joints stay within their limits: the squared angle to where they would be [rad^2].

    Without a draft they do by construction. Held to the clamped rotation and not to its angles, whose gradient is
    infinite where a joint swings by a right angle.
    """
    rotations, within = clip.pose.rotations, clamp_pose(body.skeleton, clip.pose).rotations.detach()
    beyond = (rotations.detach() != within).any(-1)
    return (4 * (1 - (rotations * within).sum(-1).square()) * beyond).sum(-1).mean()


def collision(body: Body, clip: PosedClip) -> Float[Tensor, ""]:
    """Squared overlap of bone capsules that are apart at rest, in leg lengths."""
    if not len(body.pairs):
        return clip.points.sum() * 0
    return (capsule_overlaps(clip.T_world_joint, body) / body.leg_length).square().sum(-1).mean()


def naturalness(body: Body, clip: PosedClip) -> Float[Tensor, ""]:
    """Poses are natural: the mean score of a pose model, where there is one."""
    return clip.points.sum() * 0 if clip.score is None else clip.score(clip.pose).mean()


def loop(body: Body, clip: PosedClip) -> Float[Tensor, ""]:
    """The clip ends as it began, in pose and in speed, but for the way it came."""
    turns, away = clip.values.turns, clip.values.shift / body.leg_length
    gaps = [x[-1] - x[0] for x in (turns, away)]
    gaps += [(x[-1] - x[-2]) - (x[1] - x[0]) for x in (turns, away)]
    return torch.stack([gap.square().sum() for gap in gaps]).sum()


# What a gait owes that starts from rest.


def stance_weights(body: Body, clip: PosedClip) -> Float[Tensor, "frames feet"]:
    """How much each foot stands, 0..1: lower than the one across, and going backwards under the body.

    No gradient: a foot does not lift to avoid a loss. Where a gait has flight, a foot only stands near the ground.
    """
    height = clearance(body, clip).detach()
    lower = (height[:, body.across] - height) / 0.02
    stands = torch.sigmoid(lower - 1.5 * stride_speed(body, clip).detach().clamp(-2, 2))
    if body.flight:
        stands = stands * torch.sigmoid((0.08 - height) / 0.02)
    return stands


def stride_speed(body: Body, clip: PosedClip) -> Float[Tensor, "frames feet"]:
    """How fast each foot goes ahead of its hip along the path, in speeds of travel: -1 while it stands."""
    way = clip.points[:, body.feet] - clip.points[:, body.hips]
    step = torch.cat([way[1:2] - way[:1], 0.5 * (way[2:] - way[:-2]), way[-1:] - way[-2:-1]])
    path = clip.values.start.root
    ahead = torch.nn.functional.normalize(torch.cat([path[1:] - path[:-1], path[-1:] - path[-2:-1]]), dim=-1)
    return (step * ahead[:, None]).sum(-1) * (clip.fps / body.pace)


def clearance(body: Body, clip: PosedClip) -> Float[Tensor, "frames feet"]:
    """The height of each foot above where it rests, in leg lengths."""
    return (clip.points[:, body.feet, 1] - body.feet_rest) / body.leg_length


def support(body: Body, clip: PosedClip) -> Float[Tensor, ""]:
    """The lower foot of each pair is on the ground, but while the path flies: its squared clearance."""
    if not body.legs:
        return clip.points.sum() * 0
    height = clearance(body, clip)
    lower = torch.minimum(height, height[:, body.across])
    return (lower.square() * (clip.values.start.root[:, 1:2] <= 0)).mean()


def swing_height(body: Body, clip: PosedClip) -> Float[Tensor, ""]:
    """A foot that swings ahead is up and one that goes back is down: squared lack and excess of height.

    The swing says when, without a gradient; so a leg's cycle turns the right way round whatever its phase is.
    """
    if not body.legs:
        return clip.points.sum() * 0
    speed, height = stride_speed(body, clip).detach().clamp(-1, 2), clearance(body, clip) / body.step_height
    return (speed.clamp_min(0) * (1 - height).clamp_min(0).square() - speed.clamp_max(0) * height.square()).mean()


def alternation(body: Body, clip: PosedClip) -> Float[Tensor, ""]:
    """Walking feet take turns: the product of the speeds at which both feet of a pair go ahead at once."""
    if not body.legs:
        return clip.points.sum() * 0
    speed = stride_speed(body, clip).clamp_min(0)
    return (speed * speed[:, body.across]).clamp_max(4.0).mean()


def symmetry(body: Body, clip: PosedClip) -> Float[Tensor, ""]:
    """Left limbs do what right ones do, mirrored and a share of a stride later: squared difference of their joints."""
    if not body.lefts or body.phase_offset is None:
        return clip.points.sum() * 0
    left, right = (_reach(clip, joints) for joints in (body.lefts, body.rights))
    late = body.phase_offset * clip.fps
    whole, part = int(late), late - int(late)
    if whole + 1 >= len(left):
        return clip.points.sum() * 0  # too short a clip for the other side's turn
    later = (1 - part) * left[whole:-1] + part * left[whole + 1 :]
    gap = (later - right[: len(later)] * right.new_tensor([-1.0, 1.0, 1.0])) / body.leg_length
    return gap.square().sum(-1).mean()


def _reach(clip: PosedClip, joints: list[tuple[int, int]]) -> Float[Tensor, "frames joints 3"]:
    """To joints from where their limb begins: to the left, up and ahead."""
    way = clip.points[:, [j for j, _ in joints]] - clip.points[:, [first for _, first in joints]]
    return _ahead(way, clip)


def _ahead(way: Float[Tensor, "frames points 3"], clip: PosedClip) -> Float[Tensor, "frames points 3"]:
    """Ways in the world as a body on the path sees them: to the left, up and ahead."""
    x, y, z = way.unbind(-1)
    cos, sin = torch.cos(clip.values.heading)[:, None], torch.sin(clip.values.heading)[:, None]
    return torch.stack([cos * x - sin * z, y, sin * x + cos * z], -1)


def jerk(body: Body, clip: PosedClip) -> Float[Tensor, ""]:
    """Nothing jerks: the mean squared jerk of all joints, in leg lengths per cubed radian of the stride."""
    points = clip.points
    change = points[3:] - 3 * points[2:-1] + 3 * points[1:-2] - points[:-3]
    rate = clip.fps * body.period / (2 * torch.pi)
    return (change * (rate**3 / body.leg_length)).square().sum(-1).mean()


def momentum(body: Body, clip: PosedClip) -> Float[Tensor, ""]:
    """The body does not spin about the vertical: its squared angular momentum per mass, leg length and speed.

    This is what arms swing against the legs for. The turn of the path itself is free.
    """
    points = clip.points
    center = (body.masses[:, None] * points).sum(1, keepdim=True)
    away = _ahead(points - center, clip)
    speed = (away[2:] - away[:-2]) * (0.5 * clip.fps / (body.pace * body.leg_length))
    spin = away[1:-1, :, 2] * speed[..., 0] - away[1:-1, :, 0] * speed[..., 2]
    return (body.masses * spin).sum(-1).square().mean()


def leg_length(body: Body, clip: PosedClip) -> Float[Tensor, ""]:
    """Legs do not curl up: squared shortening of hip to foot below a share of its length at rest."""
    if not body.legs:
        return clip.points.sum() * 0
    way = (clip.points[:, body.feet] - clip.points[:, body.hips]).norm(dim=-1)
    return (body.least_reach - way / body.reach_rest).clamp_min(0).square().mean()


def root(body: Body, clip: PosedClip) -> Float[Tensor, ""]:
    """The body stays near its path: squared excess of height, of drift sideways and along, and of tilt."""
    away = _ahead(clip.values.shift[:, None] / body.leg_length, clip)[:, 0]
    tilt = clip.values.turns[:, 0, 1:]
    across = away[:, 0].square()
    height = (away[:, 1].abs() - body.root_height).clamp_min(0).square()
    along = (away[:, 2].abs() - 0.5).clamp_min(0).square()
    return (across + height + along + (tilt.abs() - 0.3).clamp_min(0).square().sum(-1)).mean()
