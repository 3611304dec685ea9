"""Ground speed for gaits that walk in place, where the soles do not tell it.

Many artists' legs are pendulums of one bone: a foot is no lower while it pushes than while it swings. Then what moves
backwards is what stands, and its mean speed is the speed of the body.
"""

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy import ndarray

from jigdoll.posespace.figure import Figure, stack_figures, stick_places
from jigdoll.posespace.layout import CONTACT, EXTRA, STANDS

GAITS = ("walk", "run", "trot", "gallop", "creep", "sneak", "march", "limp", "stagger", "stomp", "crawl")
"""Actions that get a body along on its legs."""
STUCK = 0.05
"""A gait slower than this does not get along [leg lengths / s]."""
SWING = 0.2
"""Feet that swing less far than this tell nothing [leg lengths]."""
LOW = 0.2
"""The share of a foot's range of heights that is near the ground."""
BACKWARDS = -0.5
"""A gait whose body goes backwards at this speed is of a rig that faces the other way [leg lengths / s]."""
TOO_FAST = 6.0
"""A walk as fast as this was measured wrongly [leg lengths / s]."""


def with_ground_speed(
    values: Float[ndarray, "parts frames channels"], figure: Figure, fps: float
) -> Float[ndarray, "parts frames channels"]:
    """The clip with a speed ahead and with stances, where it has none and its feet tell of one."""
    legs = [i for i, kind in enumerate(figure.kinds) if kind == "leg"]
    ahead = EXTRA.start + 1
    if not legs or abs(float(values[0, :, ahead].mean())) > STUCK:
        return values
    raw = torch.from_numpy(values.astype(np.float32))[None]
    ends = stick_places(stack_figures([figure]), raw).ends[0, legs].numpy()
    if np.ptp(ends[..., 2], axis=1).mean() < SWING:
        return values
    speed, stands = speed_from_feet(ends, ends[..., 1] + values[0, :, EXTRA.start + 2] * figure.rise, fps)
    if speed <= STUCK:
        return values
    values = values.copy()
    values[0, :, ahead] += speed
    values[legs, :, CONTACT] = np.where(stands, STANDS, -STANDS)
    return values


def speed_from_feet(
    ends: Float[ndarray, "legs frames 3"], heights: Float[ndarray, "legs frames"], fps: float
) -> tuple[float, Bool[ndarray, "legs frames"]]:
    """How fast feet sweep backwards while they are low, or while they sweep backwards at all; and when that is."""
    back = -np.gradient(ends[..., 2], axis=1) * fps
    low = heights <= heights.min(1, keepdims=True) + LOW * np.ptp(heights, axis=1, keepdims=True)
    slow = float(np.mean([back[i][low[i]].mean() for i in range(len(ends))]))
    pushes = back > 0
    usual = float(back[pushes].mean()) if pushes.any() else 0.0
    if slow > 0.4 * usual:
        return slow, low
    return usual, pushes
