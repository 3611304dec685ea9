"""Windows of a token, and the bases in which they are written.

Of every station the mean rotation over the segment is taken out in whole steps; what is left is how far the station
turns away from it, as an axis times an angle, which is nearly linear.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Float16, Int8, Int16
from numpy import ndarray

from jigdoll.rig.retarget.tokens import HOP, ROOT_CHANNELS, STATION_COUNT, WINDOW, Token, TokenKind, to_6d, to_turns
from jigdoll.rig.retarget.turns import from_rotvec, to_rotvec

TABLES: dict[TokenKind, TokenKind] = {kind: "wing" if kind == "fin" else kind for kind in STATION_COUNT}
"""Which basis a kind of token is written in: fins are rare and move as wings do."""
BASES: tuple[TokenKind, ...] = ("trunk", "neck", "tail", "leg", "arm", "wing")
STEPS = 127
MEAN_STEP = np.pi / 32000
"""Mean rotations are kept in steps of this size along each axis [rad]."""
SPREAD = 1.5
"""Singular values of a mean rotation add up to 3 where all are alike; below this the middle frame stands for a mean."""
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


def mean_steps(row: Token) -> Int16[ndarray, "stations 3"]:
    """The mean rotation of each station in whole steps."""
    turns = _turns_of(row)
    u, spread, v = np.linalg.svd(turns.mean(0))
    u[..., -1] *= np.sign(np.linalg.det(u @ v))[..., None]
    mean = np.where((spread.sum(-1) < SPREAD)[:, None, None], turns[len(turns) // 2], u @ v)
    steps = np.round(to_rotvec(mean) / MEAN_STEP)
    steps[~row.has] = 0
    return steps.astype(np.int16)


def away_from_mean(row: Token, mean: Int16[ndarray, "stations 3"]) -> Float[ndarray, "frames channels"]:
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
    mean: Int16[ndarray, "stations 3"],
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
    """The overlapping windows of a token, of whose edges none is the first or the last frame."""
    longer = np.concatenate([2 * values[:1] - values[1:2], values, 2 * values[-1:] - values[-2:-1]])
    starts = np.arange((len(longer) - WINDOW) // HOP + 1) * HOP
    return longer[starts[:, None] + np.arange(WINDOW)].reshape(len(starts), -1)


def joined(windows: Float[ndarray, "windows values"]) -> Float[ndarray, "frames channels"]:
    """The inverse of `windows_of`: neighbours fade into each other where they overlap."""
    edge = np.minimum(np.arange(1, WINDOW + 1), np.arange(WINDOW, 0, -1))
    fade = np.minimum(1.0, edge / (WINDOW - HOP + 1))[:, None]
    parts = windows.reshape(len(windows), WINDOW, -1)
    total = np.zeros((HOP * (len(parts) - 1) + WINDOW, parts.shape[2]))
    share = np.zeros((len(total), 1))
    for i, part in enumerate(parts):
        place = slice(i * HOP, i * HOP + WINDOW)
        total[place] += part * fade
        share[place] += fade
    return (total / share)[1:-1]


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
    """The turns of a token's stations, each seen from the one before."""
    first = ROOT_CHANNELS if row.kind == "trunk" else 0
    values = row.values[:, first : first + 6 * STATION_COUNT[row.kind]]
    return to_turns(values.reshape(len(values), -1, 6))


def _continuous(vectors: Float[ndarray, "frames stations 3"]) -> Float[ndarray, "frames stations 3"]:
    """Axes times angles without jumps over time: whole turns are added where a station turns past half a turn."""
    if np.linalg.norm(vectors, axis=-1).max(initial=0.0) < 0.8 * np.pi:
        return vectors
    vectors, middle = vectors.copy(), len(vectors) // 2
    pairs = [(f, f - 1) for f in range(middle + 1, len(vectors))] + [(f, f + 1) for f in range(middle - 1, -1, -1)]
    for f, known in pairs:
        angle = np.linalg.norm(vectors[f], axis=-1, keepdims=True)
        axis = vectors[f] / np.maximum(angle, 1e-9)
        before = np.sum(vectors[known] * axis, -1, keepdims=True)
        turns = np.where(angle > 1e-6, np.round((before - angle) / (2 * np.pi)), 0)
        vectors[f] += 2 * np.pi * turns * axis
    return vectors


def bone_vectors(row: Token) -> Float16[ndarray, "2 3"]:
    """Upper and lower bone of a limb at its canonical rest, in lengths of the limb, that reach its end best."""
    turns, end = _bone_turns(row), row.values[:, -3:]
    A = np.concatenate([turns[:, 0], turns[:, 1]], -1).reshape(-1, 6)
    # Short vectors where a limb never bends and many would do.
    square = A.T @ A + 1e-3 * len(row.values) * np.eye(6)
    return np.linalg.solve(square, A.T @ end.reshape(-1)).clip(-8, 8).reshape(2, 3).astype(np.float16)


def end_of(row: Token, bones: Float16[ndarray, "2 3"]) -> Float[ndarray, "frames 3"]:
    """Where the end of a limb is, seen from what carries it."""
    return np.einsum("fbij,bj->fi", _bone_turns(row), bones.astype(float))


def _bone_turns(row: Token) -> Float[ndarray, "frames 2 3 3"]:
    """The turns of upper and lower bone, seen from what carries the limb."""
    turns = _turns_of(row)
    turns[:, ~row.has] = np.eye(3)
    upper = turns[:, 0] @ turns[:, 1]
    return np.stack([upper, upper @ turns[:, 2]], 1)
