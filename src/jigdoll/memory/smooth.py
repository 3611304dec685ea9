"""Motion in limb space without the grain that codes leave on it, and at other rates without kinks.

Codes are true to about a degree, and what they add changes from frame to frame: nothing in a run, and most of what
moves in somebody who only breathes. Of all curves that are as near as the codes the smoothest one is taken.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from scipy.ndimage import gaussian_filter1d

from jigdoll.errors import JigdollError
from jigdoll.memory.shape import at_frames
from jigdoll.rig.retarget.limb_motion import LimbMotion
from jigdoll.rig.retarget.turns import nearest_turns

GRAIN = np.radians(0.7)
"""How far curves may leave what is stored, as a root mean square; lengths by the same share [rad]."""
WIDTHS = (0.015, 0.025, 0.04, 0.06, 0.09, 0.13)
"""Standard deviations of the smoothing that are tried [s]."""


def smoothed(lm: LimbMotion) -> LimbMotion:
    """The motion with every curve as smooth as it may be within the grain."""
    if len(lm) < 5:
        return lm
    return _mapped(lm, lm, lambda values: _smoothest(values, lm.fps, turns=False), lambda values: _each(values, lm.fps))


def resample_smooth(lm: LimbMotion, fps: float, *, tempo: float = 1.0) -> LimbMotion:
    """The motion at another rate, and faster or slower by a factor, along cubic curves."""
    if not 0 < fps <= 1000 or not tempo > 0:
        raise JigdollError(f"{fps:g} frames per second at {tempo:g} times the speed is no rate for a clip")
    count = max(round(max(len(lm) - 1, 0) / lm.fps / tempo * fps) + 1, 1)
    at = np.linspace(0, len(lm) - 1, count)
    plain = at_frames(lm, at, fps=fps)  # contacts, and everything of a clip that is too short for curves
    if len(lm) < 4 or np.allclose(at, np.round(at)):
        return plain
    return _mapped(lm, plain, lambda values: _cubic(values, at), lambda values: nearest_turns(_cubic(values, at)))


def _mapped(
    lm: LimbMotion, target: LimbMotion, lengths: Callable[[ndarray], ndarray], turns: Callable[[ndarray], ndarray]
) -> LimbMotion:
    """The target with all its curves made from those of a motion: places and angles, and rotations."""
    return replace(
        target,
        place=lengths(lm.place),
        heading=lengths(lm.heading[:, None])[:, 0],
        root=turns(lm.root),
        trunk=turns(lm.trunk),
        neck=None if lm.neck is None else turns(lm.neck),
        tail=None if lm.tail is None else turns(lm.tail),
        limbs=tuple(
            replace(new, turns=turns(t.turns), end=lengths(t.end))
            for t, new in zip(lm.limbs, target.limbs, strict=True)
        ),
    )


def _each(values: Float[ndarray, "frames *stations 3 3"], fps: float) -> ndarray:
    """Each station for itself: a tail that swings does not stiffen the trunk."""
    if values.ndim == 3:
        return _smoothest(values, fps, turns=True)
    rows = [_smoothest(values[:, k], fps, turns=True) for k in range(values.shape[1])]
    return np.stack(rows, 1) if rows else values


def _smoothest(values: ndarray, fps: float, *, turns: bool) -> ndarray:
    """The curve smoothed as widely as the grain allows."""
    best = values
    for width in WIDTHS:
        wide = _blurred(values, width * fps)
        off = (wide - values).reshape(len(values), -1)
        # Two rotations an angle apart differ by about the square root of two times it, as matrices.
        if float(np.sqrt((off**2).sum(1).mean())) > GRAIN * (np.sqrt(2) if turns else 1.0):
            break
        best = wide
    return nearest_turns(best) if turns and best is not values else best


def _blurred(values: ndarray, sigma: float) -> ndarray:
    """Smoothed along time; beyond its ends a curve goes on as it came, turned by half a turn, so that ends stay."""
    pad = min(int(4 * sigma) + 1, len(values) - 1)
    before = 2 * values[:1] - values[pad:0:-1]
    after = 2 * values[-1:] - values[-2 : -pad - 2 : -1]
    return gaussian_filter1d(np.concatenate([before, values, after]), sigma, axis=0)[pad : pad + len(values)]


def _cubic(values: ndarray, at: Float[ndarray, " wanted"]) -> ndarray:
    """Values between frames along Catmull and Rom's curves, which go through every frame; ends go on as parabolas."""
    before = 3 * values[0] - 3 * values[1] + values[2]
    after = 3 * values[-1] - 3 * values[-2] + values[-3]
    padded = np.concatenate([before[None], values, after[None]])
    left = np.clip(np.floor(at).astype(int), 0, len(values) - 2)
    t = (at - left).reshape(-1, *[1] * (values.ndim - 1))
    a, b, c, d = (padded[left + k] for k in range(4))
    slope_b, slope_c = 0.5 * (c - a), 0.5 * (d - b)
    t2, t3 = t * t, t * t * t
    return (2 * t3 - 3 * t2 + 1) * b + (t3 - 2 * t2 + t) * slope_b + (3 * t2 - 2 * t3) * c + (t3 - t2) * slope_c
