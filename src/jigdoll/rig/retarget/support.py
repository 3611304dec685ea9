"""How a body goes where its standing legs can carry it: no leg too short for its foot's place, none too long.

Over all frames at once the body is moved (and, on legs that cannot bend, tilted) by as little and as smoothly as may be
such that every standing leg reaches its foot's place: a banded least squares, a few Gauss-Newton steps. What is still
out of reach then, as feet that stand farther apart than legs can, is moved on the ground.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray
from scipy.linalg import solveh_banded

from jigdoll.rig.retarget.turns import from_rotvec

STEPS, STEPS_OF_BODY = 14, 6
"""Gauss-Newton steps; after the first ones places on the ground give way too."""
HOLD, HOLD_STIFF = 1e6, 300.0
"""How much a leg that does not reach counts beside the smoothness of the way; and for bodies on many legs that cannot
bend, which can stand on three of them at most."""
COST = np.array([10.0, 1.0, 10.0])
"""How much the size of the way counts [1 / square leg lengths]."""
COST_STIFF = np.array([3.0, 0.01, 3.0, 1.0, 1.0])
"""The same and of the tilts, where legs cannot bend: such a body rises and tilts before it leans on its legs."""
BENT = np.array([1.0, 1.0, 1.0, 1.0, 1.0])
"""How much the smoothness of ways and tilts counts."""
REACHED = 1e-3
"""Legs that miss by less than this reach [leg lengths]."""
ACTIVE = 8
"""How often a step looks which legs it leans on."""
FARTHEST = 0.5
"""No place on the ground moves by more than this [leg lengths]."""


@dataclass(frozen=True, eq=False)
class Standing:
    """Legs as the solver sees them, all places in the world [m]."""

    hips: Float[ndarray, "frames legs 3"]
    ends: Float[ndarray, "frames legs 3"]
    """Where the ends of the legs shall be."""
    shortest: Float[ndarray, "frames legs"]
    longest: Float[ndarray, "frames legs"]
    stands: Bool[ndarray, "frames legs"]
    stance: ndarray
    """Of each frame and leg the number of its stance, -1 while it swings."""
    soles: Float[ndarray, "frames legs 3"]
    """The lowest skin of legs that cannot bend; not a number for others."""
    centre: Float[ndarray, "frames 3"]
    """About which the body tilts."""


def support(
    legs: Standing, *, unit: float, smooth: float, tilts: bool
) -> tuple[Float[ndarray, "frames 3"], Float[ndarray, "frames 3 3"], Float[ndarray, "stances 2"]]:
    """How the body moves [m] and tilts, and how places on the ground move along x and z.

    `smooth` is the time over which the way is smooth [frames], `unit` the length of a leg.
    """
    x = np.zeros((len(legs.hips), 5 if tilts else 3))
    moved = np.zeros((int(legs.stance.max(initial=-1)) + 1, 2))
    stiff = _stiffness(len(x), smooth)
    for step in range(STEPS):
        if np.abs(_bounds(legs, x, moved, unit).miss).max(initial=0.0) < REACHED:
            break
        if step >= STEPS_OF_BODY:
            _give_way(legs, x, moved, unit)
        x = _better(legs, x, moved, unit, stiff)
    return x[:, :3] * unit, _tilt(x), moved * unit


def _better(legs: Standing, x: ndarray, moved: ndarray, unit: float, stiff: ndarray) -> ndarray:
    """The way after a step, or after a part of it where all of it would make things worse."""
    bounds = _bounds(legs, x, moved, unit)
    before, step = _loss(x, bounds.miss, stiff), _step(x, bounds, stiff)
    for share in (1.0, 0.5, 0.25, 0.1):
        after = x - share * step
        if _loss(after, _bounds(legs, after, moved, unit).miss, stiff) < before:
            return after
    return x


def _weights(size: int) -> tuple[float, ndarray]:
    return (HOLD, COST) if size == 3 else (HOLD_STIFF, COST_STIFF)


def _loss(x: ndarray, miss: ndarray, stiff: ndarray) -> float:
    hold, cost = _weights(x.shape[1])
    bends = (BENT[: x.shape[1]] * x * (stiff @ x)).sum()
    return float(hold * (miss**2).sum() + (cost * x**2).sum() + bends)


def _stiffness(frames: int, smooth: float) -> Float[ndarray, "frames frames"]:
    """The matrix that squares second differences."""
    bends = np.diff(np.eye(frames), 2, axis=0) if frames > 2 else np.zeros((0, frames))
    return smooth**4 * (bends.T @ bends)


def _tilt(x: Float[ndarray, "frames size"]) -> Float[ndarray, "frames 3 3"]:
    if x.shape[1] < 5:
        return np.tile(np.eye(3), (len(x), 1, 1))
    return from_rotvec(np.stack([x[:, 3], np.zeros(len(x)), x[:, 4]], -1))


def _carried(legs: Standing, x: ndarray, points: Float[ndarray, "frames legs 3"], unit: float) -> ndarray:
    """Points of the body where it has been moved and tilted to."""
    from_centre = points - legs.centre[:, None]
    return legs.centre[:, None] + np.einsum("fab,flb->fla", _tilt(x), from_centre) + unit * x[:, None, :3]


@dataclass(frozen=True, eq=False)
class _Bounds:
    """What shall lie between bounds, in leg lengths: how long legs are, and how high the soles of stiff ones."""

    values: Float[ndarray, "frames rows"]
    low: Float[ndarray, "frames rows"]
    high: Float[ndarray, "frames rows"]
    J: Float[ndarray, "frames rows size"]
    """How the values change with the body's way and tilt."""

    @property
    def miss(self) -> Float[ndarray, "frames rows"]:
        return self.values - np.clip(self.values, self.low, self.high)


def _bounds(legs: Standing, x: ndarray, moved: ndarray, unit: float) -> _Bounds:
    hips = _carried(legs, x, legs.hips, unit)
    way = hips - _ends(legs, moved, unit)
    far = np.maximum(np.linalg.norm(way, axis=-1), 1e-9)
    J = _gradient(way / far[..., None], hips - legs.centre[:, None], x.shape[1], unit)
    bare = np.isnan(legs.soles[..., 0])
    soles = _carried(legs, x, np.where(bare[..., None], legs.hips, legs.soles), unit)
    K = _gradient(np.broadcast_to([0.0, 1.0, 0.0], soles.shape), soles - legs.centre[:, None], x.shape[1], unit)
    low = np.where(legs.stands, legs.shortest / unit, -np.inf), np.where(bare | legs.stands, -np.inf, 0.0)
    high = np.where(legs.stands, legs.longest / unit, np.inf), np.full(far.shape, np.inf)
    values = np.concatenate([far, soles[..., 1]], 1) / unit
    return _Bounds(values, np.concatenate(low, 1), np.concatenate(high, 1), np.concatenate([J, K], 1))


def _gradient(u: ndarray, arm: ndarray, size: int, unit: float) -> ndarray:
    """How the place of a point along u changes with the body's way and tilt, in leg lengths."""
    J = np.zeros((*u.shape[:2], size))
    J[..., :3] = u
    if size > 3:
        turn = np.cross(arm / unit, u)
        J[..., 3], J[..., 4] = turn[..., 0], turn[..., 2]
    return J


def _ends(legs: Standing, moved: ndarray, unit: float) -> ndarray:
    ends = legs.ends.copy()
    if len(moved):
        ends[..., [0, 2]] += unit * np.where(legs.stance[..., None] >= 0, moved[legs.stance], 0.0)
    return ends


def _give_way(legs: Standing, x: ndarray, moved: ndarray, unit: float) -> None:
    """Move each place on the ground by the most that its leg misses it."""
    way = (_carried(legs, x, legs.hips, unit) - _ends(legs, moved, unit))[..., [0, 2]]
    miss = _bounds(legs, x, moved, unit).miss[:, : legs.hips.shape[1]]
    flat = way / np.maximum(np.linalg.norm(way, axis=-1, keepdims=True), 1e-9)
    for stance in np.unique(legs.stance[np.abs(miss) > REACHED]):
        mine = legs.stance == stance
        worst = np.abs(np.where(mine, miss, 0.0)).argmax()
        place = moved[stance] + 0.5 * miss.reshape(-1)[worst] * flat.reshape(-1, 2)[worst]
        moved[stance] = place * min(1.0, FARTHEST / max(float(np.linalg.norm(place)), 1e-9))


def _step(x: ndarray, bounds: _Bounds, stiff: Float[ndarray, "frames frames"]) -> ndarray:
    """A Gauss-Newton step, with the bounds that hold it found as it goes: off one leg the body leans on the next."""
    step, active = np.zeros_like(x), np.zeros(bounds.values.shape, bool)
    for _ in range(ACTIVE):
        after = bounds.values - np.einsum("frk,fk->fr", bounds.J, step)
        old, active = active, (after < bounds.low) | (after > bounds.high)
        if (old == active).all():
            break
        edge = np.where(after > bounds.high, bounds.high, bounds.low)
        miss = np.where(active, bounds.values - np.where(active, edge, 0.0), 0.0)
        step = _solve(x, miss, bounds.J * active[..., None], stiff)
    return step


def _solve(x: ndarray, miss: ndarray, J: ndarray, stiff: Float[ndarray, "frames frames"]) -> ndarray:
    """The step that takes the misses away and leaves a short and smooth way."""
    frames, size = x.shape
    hold, cost = _weights(size)
    blocks = hold * np.einsum("flk,flm->fkm", J, J)
    blocks[:, np.arange(size), np.arange(size)] += cost
    right = hold * np.einsum("flk,fl->fk", J, miss) + cost * x + BENT[:size] * (stiff @ x)
    band = np.zeros((2 * size + 1, frames * size))
    for k in range(size):
        for m in range(k + 1):
            band[k - m, m::size] += blocks[:, k, m]
    for lag in range(min(3, frames)):
        diagonal = np.repeat(np.diagonal(stiff, -lag), size) * np.tile(BENT[:size], frames - lag)
        band[lag * size, : len(diagonal)] += diagonal
    return solveh_banded(band, right.reshape(-1), lower=True, check_finite=False).reshape(frames, size)
