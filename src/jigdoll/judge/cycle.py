"""The rhythm of limbs: how they swing, how fast, in which order, and whether feet lift with the travel or against."""

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from jigdoll.judge.trace import Trace

LEAST_SWING = np.radians(1.0)
"""Limbs that swing less than this do not swing: correlations of noise mean nothing [rad]."""
ONE_SINE = 0.75
"""Swings of which one sine explains this share have its frequency ..."""
LEAST_CYCLE = 0.9
"""... others need three harmonics that explain this share, or they have no cycle."""
SLACK = 0.03
"""Shares of a swing that differ by less are the same."""
FREQUENCIES = 160
"""Frequencies that are tried for the stride."""
FASTEST = 8.0
"""No stride is faster [1/s]."""


def swing_angle(trace: Trace, first: int, last: int) -> Float[ndarray, " frames"]:
    """How far a limb is swung ahead [rad]: the angle of the line from its first to its last joint against the front.

    It means the same for upright legs, which swing about a lateral axis, and for sprawled ones, which swing about
    the vertical.
    """
    reach = trace.joints[:, last] - trace.joints[:, first]
    ahead = (reach[:, [0, 2]] * trace.facing).sum(1)
    return np.arcsin(np.clip(ahead / np.maximum(np.linalg.norm(reach, axis=1), 1e-9), -1, 1))


def amplitude(signal: Float[ndarray, " frames"]) -> float:
    """Half the peak-to-peak of a sine with the signal's variance."""
    return float(np.sqrt(2) * signal.std())


def correlation(a: Float[ndarray, " n"], b: Float[ndarray, " n"]) -> float:
    """Pearson's, and zero where one of them is constant."""
    a, b = a - a.mean(), b - b.mean()
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size > 1e-12 else 0.0


def alternation(left: Float[ndarray, " frames"], right: Float[ndarray, " frames"]) -> float:
    """Correlation of the two swings: -1 alternate, +1 move together, 0 where they hardly move."""
    return correlation(left, right) if min(amplitude(left), amplitude(right)) > LEAST_SWING else 0.0


def stride_frequency(swings: Float[ndarray, "limbs frames"], fps: float) -> float:
    """The frequency [1/s] of the one sine (per limb) that explains most of all swings; 0 where none does."""
    frames = swings.shape[1]
    moving = swings[swings.std(1) * np.sqrt(2) > LEAST_SWING] if len(swings) else swings
    if not len(moving) or frames < 6:
        return 0.0
    centered = moving - moving.mean(1, keepdims=True)
    slowest = 0.6 * fps / frames
    tried = np.linspace(slowest, min(FASTEST, 0.45 * fps), FREQUENCIES)
    for harmonics, enough in ((1, ONE_SINE), (3, LEAST_CYCLE)):
        left = np.array([_unexplained(centered, f / fps, harmonics) for f in tried])
        # Harmonics fit half the frequency as well: the fastest one that is nearly as good as the best is meant.
        best = int(np.flatnonzero(left <= left.min() + (SLACK if harmonics > 1 else 0))[-1])
        if left[best] > 1 - enough:
            continue
        near = np.linspace(tried[max(best - 1, 0)], tried[min(best + 1, FREQUENCIES - 1)], 21)
        return float(near[np.argmin([_unexplained(centered, f / fps, harmonics) for f in near])])
    return 0.0


def phase(swing: Float[ndarray, " frames"], frequency: float, fps: float) -> float:
    """Where in its cycle a limb is at the first frame, in turns of the fitted sine, in [0, 1)."""
    basis = _basis(len(swing), frequency / fps)
    weights = np.linalg.lstsq(basis, swing, rcond=None)[0]
    return float(np.arctan2(weights[1], weights[2]) / (2 * np.pi) % 1.0)


def relative_phase(
    left: Float[ndarray, " frames"], right: Float[ndarray, " frames"], frequency: float, fps: float
) -> float:
    """How far the left limb is ahead of the right one, in turns: 0.5 is perfect alternation, 0 is in step."""
    if frequency <= 0 or min(amplitude(left), amplitude(right)) <= LEAST_SWING:
        return 0.0
    return (phase(left, frequency, fps) - phase(right, frequency, fps)) % 1.0


def travel_direction(trace: Trace, *, least: float) -> Float[ndarray, "frames 2"]:
    """Where the body goes on the ground: its own smoothed course, or where it faces while it is slower than `least`.

    The course is smoothed over a second, so that sway does not count as travel.
    """
    ground = trace.center[:, [0, 2]]
    reach = max(1, round(0.5 * trace.fps))
    frames = np.arange(len(ground))
    late, early = np.minimum(frames + reach, len(ground) - 1), np.maximum(frames - reach, 0)
    velocity = (ground[late] - ground[early]) / ((late - early)[:, None] / trace.fps)
    speed = np.linalg.norm(velocity, axis=1, keepdims=True)
    course = velocity / np.maximum(speed, 1e-9)
    return np.where(speed > least, course, trace.facing)


def cycle_direction(
    trace: Trace,
    hip: int,
    sole: Float[ndarray, "frames points 3"],
    travel: Float[ndarray, "frames 2"],
    *,
    least: float,
) -> float:
    """Correlation of a foot's height with its velocity along the travel: +1 lifts while swinging ahead, -1 moonwalks.

    The velocity is the foot's against its hip, so that it means the same on the spot. A foot that moves less than
    `least` [m] in height or along the travel has no cycle: 0.
    """
    foot = sole.mean(1)
    height = foot[:, 1]
    reach = foot[:, [0, 2]] - trace.joints[:, hip][:, [0, 2]]
    ahead = (reach * travel).sum(1)
    if min(np.ptp(height), np.ptp(ahead)) < least:
        return 0.0
    speed = (np.diff(reach, axis=0) * 0.5 * (travel[1:] + travel[:-1])).sum(1)
    return correlation(0.5 * (height[1:] + height[:-1]), speed)


def _basis(frames: int, cycles_per_frame: float, harmonics: int = 1) -> Float[ndarray, "frames _"]:
    turn = 2 * np.pi * cycles_per_frame * np.arange(frames)
    waves = [wave(k * turn) for k in range(1, harmonics + 1) for wave in (np.cos, np.sin)]
    return np.stack([np.ones(frames), *waves], 1)


def _unexplained(centered: Float[ndarray, "limbs frames"], cycles_per_frame: float, harmonics: int) -> float:
    """The share of the signals that no wave of that frequency explains."""
    basis = np.linalg.qr(_basis(centered.shape[1], cycles_per_frame, harmonics))[0]
    return 1 - float(((centered @ basis) ** 2).sum() / (centered**2).sum())
