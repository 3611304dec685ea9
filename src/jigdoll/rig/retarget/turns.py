"""Rotations of many bones over many frames, in numpy: shortest turns, means and in-betweens."""

import numpy as np
from jaxtyping import Float
from numpy import ndarray

_SMOOTH = 3e-3
"""How much the smoothness of a chain's stations counts beside their truth."""


def shortest_turns(a: Float[ndarray, "*batch 3"], b: Float[ndarray, "*batch 3"]) -> Float[ndarray, "*batch 3 3"]:
    """The rotations by the smallest angle that turn directions a to directions b."""
    a = a / np.maximum(np.linalg.norm(a, axis=-1, keepdims=True), 1e-12)
    b = b / np.maximum(np.linalg.norm(b, axis=-1, keepdims=True), 1e-12)
    v = np.cross(a, b)
    c = np.sum(a * b, -1)
    opposite = c < -1 + 1e-7
    # Opposite directions: half a turn about anything at a right angle.
    other = np.eye(3)[np.abs(a).argmin(-1)]
    axis = np.cross(a, other)
    axis /= np.maximum(np.linalg.norm(axis, axis=-1, keepdims=True), 1e-12)
    half = 2 * axis[..., :, None] * axis[..., None, :] - np.eye(3)
    K = cross_matrix(v)
    turn = np.eye(3) + K + K @ K / np.maximum(1 + c, 1e-9)[..., None, None]
    return np.where(opposite[..., None, None], half, turn)


def cross_matrix(v: Float[ndarray, "*batch 3"]) -> Float[ndarray, "*batch 3 3"]:
    """K with K x = v cross x."""
    x, y, z = v[..., 0], v[..., 1], v[..., 2]
    o = np.zeros_like(x)
    return np.stack([np.stack([o, -z, y], -1), np.stack([z, o, -x], -1), np.stack([-y, x, o], -1)], -2)


def to_rotvec(R: Float[ndarray, "*batch 3 3"]) -> Float[ndarray, "*batch 3"]:
    """The axis times the angle of rotations."""
    axis = np.stack([R[..., 2, 1] - R[..., 1, 2], R[..., 0, 2] - R[..., 2, 0], R[..., 1, 0] - R[..., 0, 1]], -1)
    sine = 0.5 * np.linalg.norm(axis, axis=-1)
    cosine = 0.5 * (np.trace(R, axis1=-2, axis2=-1) - 1)
    angle = np.arctan2(sine, cosine)
    scale = np.where(sine > 1e-8, angle / np.maximum(2 * sine, 1e-12), 0.5)
    vector = axis * scale[..., None]
    flat = (sine <= 1e-6) & (cosine < 0)
    if flat.any():  # half a turn: the axis is the column of R + 1 that is longest
        S = (R + np.eye(3))[flat]
        column = np.take_along_axis(S, np.linalg.norm(S, axis=-2).argmax(-1)[:, None, None], -1)[..., 0]
        vector[flat] = np.pi * column / np.linalg.norm(column, axis=-1, keepdims=True)
    return vector


def from_rotvec(v: Float[ndarray, "*batch 3"]) -> Float[ndarray, "*batch 3 3"]:
    """Rotations by an axis times an angle (Rodrigues)."""
    angle = np.linalg.norm(v, axis=-1)[..., None, None]
    K = cross_matrix(v)
    small = angle < 1e-6
    a = np.where(small, 1.0, np.sin(angle) / np.where(small, 1.0, angle))
    b = np.where(small, 0.5, (1 - np.cos(angle)) / np.where(small, 1.0, angle**2))
    return np.eye(3) + a * K + b * (K @ K)


def blend_turns(
    a: Float[ndarray, "*batch 3 3"], b: Float[ndarray, "*batch 3 3"], share: Float[ndarray, "*batch"] | float
) -> Float[ndarray, "*batch 3 3"]:
    """From a towards b along the shortest way."""
    way = to_rotvec(np.swapaxes(a, -1, -2) @ b)
    return a @ from_rotvec(np.asarray(share)[..., None] * way)


def bone_centres(points: Float[ndarray, "ends 3"]) -> Float[ndarray, " bones"]:
    """Where along its chain the middle of each bone lies, 0 to 1, from the joints and the end of the last bone.

    A joint turns the bone behind it: a bone cut in two then has, at its two halves' centres, the turn of the whole.
    """
    way = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    if way[-1] < 1e-9:
        way = np.linspace(0, 1, len(points))
    return (way[1:] + way[:-1]) / (2 * way[-1])


def nearest_turns(matrices: Float[ndarray, "*batch 3 3"]) -> Float[ndarray, "*batch 3 3"]:
    """The rotations nearest to matrices."""
    u, _, v = np.linalg.svd(matrices)
    u[..., -1] *= np.sign(np.linalg.det(u @ v))[..., None]
    return u @ v


def fit_turns(
    turns: Float[ndarray, "frames known 3 3"], at: Float[ndarray, " known"], stations: int
) -> Float[ndarray, "frames stations 3 3"]:
    """Turns at evenly spread stations between which the known ones lie: as true as may be, then as smooth as may be.

    Least squares over matrices; first and second differences of the stations count by `_SMOOTH`.
    """
    return nearest_turns(np.einsum("sk,fkab->fsab", station_shares(at, stations), turns))


def station_shares(at: Float[ndarray, " known"], stations: int) -> Float[ndarray, "stations known"]:
    """How much each known turn counts at each station, before `nearest_turns`."""
    if len(at) == 1:
        return np.ones((stations, 1))
    grid = np.linspace(0, 1, stations)
    A = np.maximum(1 - np.abs(at[:, None] - grid) * (stations - 1), 0.0)
    bends, steps = np.diff(np.eye(stations), 2, axis=0), np.diff(np.eye(stations), axis=0)
    normal = A.T @ A + _SMOOTH * bends.T @ bends + _SMOOTH * steps.T @ steps
    return np.linalg.solve(normal, A.T)


def interpolate_turns(
    turns: Float[ndarray, "frames known 3 3"], at: Float[ndarray, " known"], wanted: Float[ndarray, " wanted"]
) -> Float[ndarray, "frames wanted 3 3"]:
    """The turns at wanted places along a chain, between those that are known."""
    if len(at) == 1:
        return np.repeat(turns, len(wanted), axis=1)
    right = np.clip(np.searchsorted(at, wanted), 1, len(at) - 1)
    left = right - 1
    gap = np.maximum(at[right] - at[left], 1e-9)
    share = np.clip((wanted - at[left]) / gap, 0, 1)
    return blend_turns(turns[:, left], turns[:, right], np.broadcast_to(share, (len(turns), len(wanted))))
