"""Windows of a token, and the bases in which they are written.

Of every station the mean rotation over the segment is taken out in whole steps; what is left is how far the station
turns away from it, as an axis times an angle, which is nearly linear.
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Float16, Int8
from numpy import ndarray

from jigdoll.memory.tokens import HOP, ROOT_CHANNELS, STATION_COUNT, WINDOW, Token, TokenKind, to_6d, to_turns
from jigdoll.rig.retarget.limb_motion import canonical_direction
from jigdoll.rig.retarget.turns import from_rotvec, to_rotvec
from jigdoll.types import Limb

TABLES: dict[TokenKind, TokenKind] = {kind: "wing" if kind == "fin" else kind for kind in STATION_COUNT}
"""Which basis a kind of token is written in: fins are rare and move as wings do."""
BASES: tuple[TokenKind, ...] = ("trunk", "neck", "tail", "leg", "arm", "wing")
STEPS = 127
MEAN_STEP = np.pi / STEPS
"""Mean rotations are kept in steps of this size along each axis [rad]; windows make up for what is lost."""
MOVE_WEIGHTS = np.array([0.4, 0.4, 2.0, 0.4])
"""How much the root's velocities, height and heading rate count against radians of a bone."""
STATION_WEIGHTS = {"trunk": np.array([2.0, *[1.0] * (STATION_COUNT["trunk"] - 1)])}
LIMB_WEIGHTS = np.array([1.2, 1.5, 1.2, 1.0, 0.7])
"""Bones near the body carry the others and count more."""


@dataclass(frozen=True, eq=False)
class Basis:
    """How windows of one kind of token are written: coordinates that tell most come first."""

    vectors: Float[ndarray, "values values"]
    """Orthonormal columns; values are the frames of a window times the channels."""
    scale: Float[ndarray, " values"]
    """The largest coordinate that can be written."""

    def write(
        self, windows: Float[ndarray, "windows values"], *, allowed: float = 0.0
    ) -> Int8[ndarray, "windows values"]:
        """Coordinates as bytes, finer near zero; each window's last ones are zero, as long as it loses no more than
        the allowed sum of squares."""
        coordinates = windows @ self.vectors
        share = np.clip(coordinates / self.scale, -1, 1)
        codes = np.round(np.sign(share) * np.sqrt(np.abs(share)) * STEPS).astype(np.int8)
        lost = np.cumsum(np.square(coordinates)[:, ::-1], axis=1)[:, ::-1]
        return np.where(lost > allowed, codes, np.int8(0))

    def read(self, codes: Int8[ndarray, "windows values"]) -> Float[ndarray, "windows values"]:
        """The windows that bytes tell of."""
        share = codes.astype(float) / STEPS
        return (share * np.abs(share) * self.scale) @ self.vectors.T


def mean_steps(row: Token) -> Int8[ndarray, "stations 3"]:
    """The mean rotation of each station in whole steps."""
    mean = _turns_of(row).mean(0)
    u, _, v = np.linalg.svd(mean)
    u[..., -1] *= np.sign(np.linalg.det(u @ v))[..., None]
    steps = np.round(to_rotvec(u @ v) / MEAN_STEP)
    steps[~row.has] = 0
    return np.clip(steps, -STEPS, STEPS).astype(np.int8)


def away_from_mean(row: Token, mean: Int8[ndarray, "stations 3"]) -> Float[ndarray, "frames channels"]:
    """How far each station turns away from its mean, weighted; the trunk's begin with the root's moves."""
    away = np.swapaxes(from_rotvec(mean * MEAN_STEP), -1, -2) @ _turns_of(row)
    vectors = _continuous(to_rotvec(away)) * _weights(row.kind)[:, None]
    vectors[:, ~row.has] = 0
    values = vectors.reshape(len(vectors), -1)
    if row.kind != "trunk":
        return values
    return np.concatenate([row.values[:, :ROOT_CHANNELS] * MOVE_WEIGHTS, values], -1)


def from_mean(
    kind: TokenKind,
    values: Float[ndarray, "frames channels"],
    mean: Int8[ndarray, "stations 3"],
    has: Bool[ndarray, " stations"],
) -> Token:
    """The inverse of `away_from_mean`, but for the end of a limb, which is zero."""
    turning = values[:, ROOT_CHANNELS:] if kind == "trunk" else values
    vectors = turning.reshape(len(values), -1, 3) / _weights(kind)[:, None]
    columns = to_6d(from_rotvec(mean * MEAN_STEP) @ from_rotvec(vectors)).reshape(len(values), -1)
    if kind == "trunk":
        columns = np.concatenate([values[:, :ROOT_CHANNELS] / MOVE_WEIGHTS, columns], -1)
    elif kind not in ("neck", "tail"):
        columns = np.concatenate([columns, np.zeros((len(values), 3))], -1)
    return Token(kind, columns, has)


def windows_of(values: Float[ndarray, "frames channels"]) -> Float[ndarray, "windows values"]:
    """The overlapping windows of a token."""
    starts = np.arange((len(values) - WINDOW) // HOP + 1) * HOP
    return values[starts[:, None] + np.arange(WINDOW)].reshape(len(starts), -1)


def joined(windows: Float[ndarray, "windows values"]) -> Float[ndarray, "frames channels"]:
    """The inverse of `windows_of`: neighbours fade into each other where they overlap."""
    shared = WINDOW - HOP
    fade = np.minimum(1.0, np.minimum(np.arange(1, WINDOW + 1), np.arange(WINDOW, 0, -1)) / (shared + 1))[:, None]
    parts = windows.reshape(len(windows), WINDOW, -1)
    total = np.zeros((HOP * (len(parts) - 1) + WINDOW, parts.shape[2]))
    share = np.zeros((len(total), 1))
    for i, part in enumerate(parts):
        place = slice(i * HOP, i * HOP + WINDOW)
        total[place] += part * fade
        share[place] += fade
    return total / share


def values_per_window(kind: TokenKind) -> int:
    """Numbers of a window before it is written."""
    return WINDOW * (3 * STATION_COUNT[kind] + (ROOT_CHANNELS if kind == "trunk" else 0))


def channels_told(row: Token) -> int:
    """How many channels of a token mean something."""
    return 3 * int(row.has.sum()) + (ROOT_CHANNELS if row.kind == "trunk" else 0)


def _weights(kind: TokenKind) -> Float[ndarray, " stations"]:
    if kind in ("trunk", "neck", "tail"):
        return STATION_WEIGHTS.get(kind, np.ones(STATION_COUNT[kind]))
    return LIMB_WEIGHTS


def _turns_of(row: Token) -> Float[ndarray, "frames stations 3 3"]:
    first = ROOT_CHANNELS if row.kind == "trunk" else 0
    values = row.values[:, first : first + 6 * STATION_COUNT[row.kind]]
    return to_turns(values.reshape(len(values), -1, 6))


def _continuous(vectors: Float[ndarray, "frames stations 3"]) -> Float[ndarray, "frames stations 3"]:
    """Axes times angles without jumps over time: whole turns are added where a station turns past half a turn."""
    if np.linalg.norm(vectors, axis=-1).max(initial=0.0) < 0.8 * np.pi:
        return vectors
    vectors = vectors.copy()
    for f in range(1, len(vectors)):
        angle = np.linalg.norm(vectors[f], axis=-1, keepdims=True)
        axis = vectors[f] / np.maximum(angle, 1e-9)
        before = np.sum(vectors[f - 1] * axis, -1, keepdims=True)
        turns = np.where(angle > 1e-6, np.round((before - angle) / (2 * np.pi)), 0)
        vectors[f] += 2 * np.pi * turns * axis
    return vectors


def limb_bones(row: Token, limb: Limb) -> Float[ndarray, "frames 3 2"]:
    """Where upper and lower bone of a limb point, seen from what carries it."""
    turns = _turns_of(row)
    if not row.has[0]:
        turns[:, 0] = np.eye(3)
    if not row.has[2]:
        turns[:, 2] = np.eye(3)
    # Tokens of right limbs are mirrored, so all limbs point as left ones do.
    way = canonical_direction(replace(limb, side="left") if limb.side == "right" else limb)
    upper = turns[:, 0] @ turns[:, 1]
    return np.stack([upper @ way, upper @ turns[:, 2] @ way], -1)


def bone_lengths(row: Token, limb: Limb) -> Float16[ndarray, " 2"]:
    """The lengths of upper and lower bone with which a limb reaches its end best."""
    ways, end = limb_bones(row, limb), row.values[:, -3:]
    if not row.has[2]:
        return np.array([np.sum(ways[..., 0] * end, -1).mean(), 0.0], np.float16)
    # A little of an even share, for limbs that never bend.
    A = np.concatenate([ways.reshape(-1, 2), 1e-3 * np.eye(2)])
    b = np.concatenate([end.reshape(-1), 1e-3 * np.full(2, 0.5)])
    return np.linalg.lstsq(A, b, rcond=None)[0].clip(-8, 8).astype(np.float16)
