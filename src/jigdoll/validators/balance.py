"""Whether a body that stands would fall."""

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.math import GRAVITY
from jigdoll.math.transforms import apply
from jigdoll.validators.body import PosedBody, ValidatedBody

DIRECTIONS = 16
"""Directions over the ground in which the support is looked at."""
STANDS = 0.02
"""A point that stands is at most so far above the ground [body lengths]."""
SLOPE = 8.0
"""How much farther in a point counts for each length that it is too high: 1 cm too high is 8 cm farther in."""
LIGHT = 0.3
"""A body that falls freely but for this share of its weight is in the air and owes no balance."""
SPAN = 0.1
"""Accelerations are taken over steps of this length [s]."""


def balance(body: ValidatedBody, posed: PosedBody) -> Float[Tensor, "frames joints"]:
    """How far the point that carries the weight lies outside the standing feet [body lengths], said of the root.

    Without time this point is below the centre of mass; in a motion it is the zero moment point,
    c - c_y c''_xz / (c''_y + g), so that whoever runs into a curve may lean. While the feet carry less than the weight
    it counts by the share that they carry, and in the air nobody owes balance.
    """
    found = torch.zeros_like(posed.joints[..., 0])
    if not len(body.soles):
        return found
    center = (posed.skin * body.masses[:, None]).sum(1)
    push = acceleration(center, posed.fps)
    load = (push[:, 1] + GRAVITY).clamp_min(LIGHT * GRAVITY)
    carried = center[:, [0, 2]] - center[:, 1:2] * push[:, [0, 2]] / load[:, None]
    outside = outside_support(body, posed, carried) * (load / GRAVITY).clamp_max(1)
    soles = _soles(body, posed)
    lands = (soles[..., 1].amin(1) <= STANDS * body.length) & (push[:, 1] + GRAVITY > LIGHT * GRAVITY)
    return torch.cat([(outside / body.length * lands)[:, None], found[:, 1:]], 1)


def outside_support(
    body: ValidatedBody, posed: PosedBody, points: Float[Tensor, "frames 2"]
) -> Float[Tensor, " frames"]:
    """How far points on the ground lie outside the hull of what stands [m]: the largest miss over all directions."""
    turn = torch.arange(DIRECTIONS, dtype=points.dtype, device=points.device) * (2 * torch.pi / DIRECTIONS)
    ways = torch.stack([torch.sin(turn), torch.cos(turn)])
    soles = _soles(body, posed)
    high = (soles[..., 1] - STANDS * body.length).clamp_min(0)
    hull = (soles[..., [0, 2]] @ ways - SLOPE * high[..., None]).amax(1)
    return (points @ ways - hull).amax(-1).clamp_min(0)


def acceleration(places: Float[Tensor, "frames 3"], fps: float | None) -> Float[Tensor, "frames 3"]:
    """Second differences over a tenth of a second [m/s^2]; zero without time, at the ends as in the nearest frame."""
    step = 0 if fps is None else min(max(round(SPAN * fps), 1), (len(places) - 1) // 2)
    if not step or fps is None:
        return torch.zeros_like(places)
    inner = (places[2 * step :] - 2 * places[step:-step] + places[: -2 * step]) * (fps / step) ** 2
    return torch.cat([inner[:1].expand(step, 3), inner, inner[-1:].expand(step, 3)])


def _soles(body: ValidatedBody, posed: PosedBody) -> Float[Tensor, "frames soles 3"]:
    """What may stand [m], world."""
    return apply(posed.T_world_joint[:, body.sole_joints], body.soles[:, None])[:, :, 0]
