"""Which feet stand when and where, and how fast the ground runs under a clip that walks in place.

Artists' clips mostly walk on the spot, and ease a foot into its stance and out of it: within one stance its speed
varies tenfold. Their toes dip through the floor as they roll off and hang down while they swing, so the lowest skin
does not tell a stance from a swing; the foot's joint does. The ground's speed is the mean of the joint's velocity over
the lowest fifth of its heights: the way that a foot sweeps in a stance over the time that it takes. A median finds
the slow ends of the stance instead.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from jigdoll.types import Motion

LOWEST = 0.2
"""A foot is down while its joint is in this lowest share of the heights that it goes through."""
HARDLY = 0.01
"""A joint that rises by less than this stays down all the time [body lengths]."""
NEAR = 0.02
"""A foot that stands is at most so far above the level on which it stands [body lengths]."""
IN_PLACE = 0.1
"""A body that travels less than this from end to end stays on the spot [body lengths / s]."""
LEAST_SPEED = 0.08
"""Slower ground does not run: feet shift their weight [body lengths / s]."""
AGREEMENT = 0.8
"""Feet that are down must agree: this share of their way goes the way of the ground."""
LIKENESS, SWEEP = 0.4, 0.08
"""How well heights and velocities of feet that step go together, at least (a correlation), and how far such feet sweep
the ground [body lengths]."""
TO_AND_FRO = 0.3
"""Feet that walk on the spot go ahead as far as back, at least by this share; the feet of one who sits down do not."""
STILL = 0.3
"""A foot stands while it is slower than this over the ground [body lengths / s], slow walkers' feet while they are
slower than `SLOW` of their own fast steps ..."""
SLOW = 0.5
EASED = (-1.5, 0.75)
"""... or while it goes the body's way at these shares of its speed: stances that are eased in and out."""
ASIDE = 0.5
"""How fast such a foot may go sideways, as a share of the body's speed."""


@dataclass(frozen=True, eq=False)
class Feet:
    """The feet of a clip, in the world."""

    joints: Float[Tensor, "frames feet 3"]
    """The joint of each foot: its ankle, or the ball of a foot that has toes [m]."""
    soles: Float[Tensor, "frames feet points 3"]
    """Skin that can touch the ground [m]."""
    fps: float
    length: float
    """Of the body [m]."""


def down_phases(feet: Feet) -> Bool[Tensor, "frames feet"]:
    """When each foot is at the bottom of its way: its joint in the lowest fifth of its heights."""
    height = feet.joints[..., 1]
    low = height.amin(0)
    span = height.amax(0) - low
    return (height <= low + LOWEST * span) | (span < HARDLY * feet.length)


def standing_levels(feet: Feet) -> Float[Tensor, " feet"]:
    """The height of the skin on which each foot stands [m]: the median over the bottom of its way."""
    height = feet.soles[..., 1].amin(-1)
    return torch.where(down_phases(feet), height, torch.nan).nanmedian(0).values


def ground_velocity(feet: Feet) -> Float[Tensor, "2"]:
    """How the ground runs under a body that walks on the spot [m/s], along x and z; zero where nobody walks.

    Feet walk only if at least two (or the only one) leave the ground, and if they agree on where the ground goes while
    they are down, and are higher while they go ahead; the feet of a dance or a blow do not.
    """
    zero = feet.joints.new_zeros(2)
    frames, count = feet.joints.shape[:2]
    if frames < 3 or not count:
        return zero
    height = feet.joints[..., 1]
    walking = height.amax(0) - height.amin(0) > HARDLY * feet.length
    if int(walking.sum()) < min(2, count):
        return _shuffled_ground(feet)
    down = down_phases(feet)
    steps = torch.diff(feet.joints[..., [0, 2]], dim=0) * feet.fps
    both = down[1:] & down[:-1]
    slides = steps[both]
    if not len(slides):
        return zero
    mean = slides.mean(0)
    speed = float(mean.norm())
    agreed = float((slides @ mean).sum() / speed / slides.norm(dim=-1).sum().clamp_min(1e-12)) if speed else 0.0
    if speed > LEAST_SPEED * feet.length and agreed > AGREEMENT:
        steps_ahead = float((_higher_ahead(feet) @ -mean).mean()) / speed
        along = steps @ mean
        returns = float(-along.clamp(max=0).sum()) > TO_AND_FRO * float(along.clamp_min(0).sum())
        return mean if returns and steps_ahead > 0.75 * LIKENESS else zero
    return _shuffled_ground(feet)


def _shuffled_ground(feet: Feet) -> Float[Tensor, "2"]:
    """How the ground runs under feet that hardly leave it, or dip through it, but are higher while they swing.

    The ground runs as fast as feet go back.
    """
    zero = feet.joints.new_zeros(2)
    places = feet.joints[..., [0, 2]]
    sweeps = (places.amax(0) - places.amin(0)).norm(dim=-1) > SWEEP * feet.length
    if 2 * int(sweeps.sum()) <= len(sweeps):
        return zero
    likeness = _higher_ahead(feet)[sweeps]
    way = likeness.mean(0)
    if float(way.norm()) < LIKENESS:
        return zero
    way = way / way.norm()
    back = torch.diff(places[:, sweeps], dim=0) @ way * feet.fps
    speed = float(-back[back < 0].mean())
    return -speed * way if speed > LEAST_SPEED * feet.length else zero


def _higher_ahead(feet: Feet) -> Float[Tensor, "feet 2"]:
    """How well each foot's height goes together with its velocity along x and z: what steps is higher as it swings."""
    steps = torch.diff(feet.joints[..., [0, 2]], dim=0)
    steps = steps - steps.mean(0)
    height = (feet.joints[1:, :, 1] + feet.joints[:-1, :, 1]) / 2
    height = height - height.mean(0)
    spread = (height.square().mean(0) * steps.square().sum(-1).mean(0)).sqrt()
    return (height[..., None] * steps).mean(0) / spread.clamp_min(1e-12)[:, None]


def find_stances(feet: Feet, *, travel: Float[Tensor, "2"] | None = None) -> Bool[Tensor, "frames feet"]:
    """When each foot stands: its skin is near the level on which it stands and does not swing.

    `travel` is the body's own velocity [m/s], along x and z.
    """
    above = feet.soles[..., 1].amin(-1) - standing_levels(feet)
    velocity = foot_velocities(feet)
    speeds = velocity.norm(dim=-1)
    own = torch.minimum(SLOW * speeds.quantile(0.9, dim=0), torch.full_like(speeds[0], STILL * feet.length))
    stays = speeds < own.clamp_min(LEAST_SPEED / 2 * feet.length)
    if travel is not None and float(travel.norm()) > STILL * feet.length:
        speed = travel.norm()
        along = velocity @ travel / speed
        aside = (velocity.square().sum(-1) - along.square()).clamp_min(0).sqrt()
        stays = stays | ((along > EASED[0] * speed) & (along < EASED[1] * speed) & (aside < ASIDE * speed))
    both = torch.cat([stays, stays[-1:]]) & torch.cat([stays[:1], stays])
    return (above <= NEAR * feet.length) & both


def foot_velocities(feet: Feet) -> Float[Tensor, "steps feet 2"]:
    """How the lowest skin of each foot moves over the ground from frame to frame [m/s], along x and z."""
    height = feet.soles[..., 1]
    depth = torch.minimum(height[1:], height[:-1])
    share = torch.softmax(-(depth - depth.amin(-1, keepdim=True)) / (0.005 * feet.length), -1)
    steps = torch.diff(feet.soles[..., [0, 2]], dim=0) * feet.fps
    return (share[..., None] * steps).sum(-2)


def stays_in_place(root: Float[Tensor, "frames 3"], fps: float, *, length: float) -> bool:
    """Whether a body ends where it began, for all that matters."""
    way = (root[-1] - root[0])[[0, 2]].norm()
    return bool(way * fps <= IN_PLACE * length * max(len(root) - 1, 1))


def with_travel(motion: Motion, velocity: Float[Tensor, "2"]) -> Motion:
    """The clip with a steady velocity over the ground [m/s] added, along x and z: minus the ground's makes it walk."""
    root = motion.pose.root
    time = torch.arange(len(motion), dtype=torch.float64) / motion.fps
    way = (time[:, None] * velocity.double()).to(root.dtype)
    moved = root + torch.stack([way[:, 0], torch.zeros_like(way[:, 0]), way[:, 1]], -1)
    return replace(motion, pose=replace(motion.pose, root=moved))
