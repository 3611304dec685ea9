"""A motion in limb space as tokens: one row of numbers over time per part of the body, alike for every kind of body.

The first token is the root with the trunk, then come the neck and the tail where there are any, then each leg, arm,
wing and fin. Right limbs are mirrored, so that a limb's numbers mean the same on both sides. Rotations are the first
two columns of their matrices, each station seen from what carries it. The root is kept by how it moves: velocities in
the frame of its heading, so that the same step is the same numbers wherever it is made.
"""

from dataclasses import dataclass
from math import ceil
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray
from scipy.interpolate import CubicSpline

from jigdoll.errors import RigError
from jigdoll.rig.anatomy import BodyKind
from jigdoll.rig.retarget.limb_motion import NECK, STATIONS, TAIL, TRUNK, LimbMotion, LimbTrack, yaw
from jigdoll.types import Limb

TokenKind = Literal["trunk", "neck", "tail", "leg", "arm", "wing", "fin"]
RATE = 15.0
"""Frames per second of tokens, at least: as many more as whole windows from the first to the last frame ask for."""
HOP, WINDOW = 8, 10
"""Frames from one window to the next, and frames of a window: neighbours share two, over which they fade; a motion's
first and last window reach one frame beyond it."""
ROOT_CHANNELS = 4
"""Before the root's turn: velocity to the left, ahead [leg lengths / s], height [hip heights], heading rate [rad/s]."""
MIRROR = np.diag([-1.0, 1.0, 1.0])
STATION_COUNT: dict[TokenKind, int] = {
    "trunk": 1 + TRUNK,
    "neck": NECK,
    "tail": TAIL,
    "leg": len(STATIONS),
    "arm": len(STATIONS),
    "wing": len(STATIONS),
    "fin": len(STATIONS),
}


@dataclass(frozen=True, eq=False)
class Token:
    """One part of a body over time."""

    kind: TokenKind
    values: Float[ndarray, "frames channels"]
    """The trunk: `ROOT_CHANNELS`, the root's turn and the stations' turns. A limb: its turns and its end's place."""
    has: Bool[ndarray, " stations"]
    """Which stations there are; values of the others mean nothing."""


@dataclass(frozen=True, eq=False)
class LimbFacts:
    """What of a limb does not change over time, and when it stands."""

    limb: Limb
    rest: Float[ndarray, "5 3 3"]
    contact: Bool[ndarray, " frames"]
    """In frames of the source."""


@dataclass(frozen=True, eq=False)
class Tokens:
    """A motion as tokens, with all that the tokens do not say."""

    kind: BodyKind
    fps: float
    """Of the source."""
    frames: int
    """Of the source."""
    name: str
    grounded: bool
    start: Float[ndarray, " 3"]
    """Place over the ground (x, z) [leg lengths] and heading [rad] in the first frame."""
    rows: tuple[Token, ...]
    limbs: tuple[LimbFacts, ...]
    """Of the last rows, one each."""

    def __len__(self) -> int:
        return len(self.rows[0].values)

    @property
    def rate(self) -> float:
        """Frames of the tokens per second."""
        seconds = (self.frames - 1) / self.fps
        return (len(self) - 1) / seconds if seconds > 0 else RATE


def channels_of(kind: TokenKind) -> int:
    """How many numbers a token of a kind has per frame."""
    extra = {"trunk": ROOT_CHANNELS, "neck": 0, "tail": 0}.get(kind, 3)
    return 6 * STATION_COUNT[kind] + extra


def window_count(frames: int, fps: float) -> int:
    """How many windows cover a clip."""
    return max(ceil(((frames - 1) / fps * RATE + 1) / HOP - 1e-6), 1)


def tokens_of(motion: LimbMotion, *, count: int | None = None) -> Tokens:
    """The tokens of a motion; the first and the last of their frames are the motion's own.

    They have as many frames as whole windows ask for, or `count`.
    """
    if not len(motion):
        raise RigError("the clip is empty; there is nothing to remember")
    count = count or HOP * window_count(len(motion), motion.fps)
    at = np.linspace(0, len(motion) - 1, count)
    rate = (count - 1) * motion.fps / max(len(motion) - 1, 1) if len(motion) > 1 else RATE
    root = turns_at(motion.root, at)
    trunk = turns_at(motion.trunk, at)
    place, heading = values_at(motion.place, at), values_at(motion.heading, at)
    rows = [Token("trunk", _trunk_values(place, heading, root, trunk, rate), np.ones(1 + TRUNK, bool))]
    if motion.neck is not None:
        rows.append(_chain_token("neck", turns_at(motion.neck, at), trunk[:, -1]))
    if motion.tail is not None:
        rows.append(_chain_token("tail", turns_at(motion.tail, at), root))
    for track, base in zip(motion.limbs, _bases(motion.limbs, root, trunk), strict=True):
        rows.append(_limb_token(track, base, at))
    return Tokens(
        kind=motion.kind,
        fps=motion.fps,
        frames=len(motion),
        name=motion.name,
        grounded=motion.grounded,
        start=np.array([place[0, 0], place[0, 2], heading[0]]),
        rows=tuple(rows),
        limbs=tuple(
            LimbFacts(Limb(t.limb.kind, t.limb.side, t.limb.rank, ()), t.rest, t.contact) for t in motion.limbs
        ),
    )


def limb_motion_from(tokens: Tokens, *, fps: float | None = None) -> LimbMotion:
    """The motion that tokens tell of, at the source's rate or another one."""
    rate = fps or tokens.fps
    seconds = (tokens.frames - 1) / tokens.fps
    frames = tokens.frames if fps is None else int(seconds * rate + 1e-4) + 1
    at = np.clip(np.arange(frames) / rate * tokens.rate, 0, len(tokens) - 1)
    place, heading = root_path(tokens)
    trunk_values = tokens.rows[0].values
    spine = _from_parents(trunk_values[:, ROOT_CHANNELS:])
    root, trunk = spine[:, 0], spine[:, 1:]
    middle: dict[str, ndarray] = {}
    for row in tokens.rows[1:]:
        if row.kind in ("neck", "tail"):
            base = trunk[:, -1] if row.kind == "neck" else root
            middle[row.kind] = turns_at(_from_parents(row.values, base), at)
    limbs = tuple(fact.limb for fact in tokens.limbs)
    rows = tokens.rows[len(tokens.rows) - len(limbs) :]
    stood = np.clip(np.round(np.arange(frames) / rate * tokens.fps).astype(int), 0, tokens.frames - 1)
    tracks = [
        _limb_track(row, fact, base, at, fact.contact[stood])
        for row, fact, base in zip(rows, tokens.limbs, _bases(tokens.limbs, root, trunk), strict=True)
    ]
    return LimbMotion(
        kind=tokens.kind,
        fps=rate,
        name=tokens.name,
        place=values_at(place, at),
        heading=values_at(heading, at),
        root=turns_at(root, at),
        trunk=turns_at(trunk, at),
        neck=middle.get("neck"),
        tail=middle.get("tail"),
        limbs=tuple(tracks),
        grounded=tokens.grounded,
    )


def root_path(tokens: Tokens) -> tuple[Float[ndarray, "frames 3"], Float[ndarray, " frames"]]:
    """Places and headings of the root, added up from its velocities."""
    values, rate = tokens.rows[0].values, tokens.rate
    heading = tokens.start[2] + np.concatenate([[0.0], np.cumsum(values[:-1, 3]) / rate])
    ahead = np.stack([values[:, 0], np.zeros(len(values)), values[:, 1]], -1)
    step = np.einsum("fab,fb->fa", yaw(heading), ahead)[:-1] / rate
    place = np.concatenate([np.zeros((1, 3)), np.cumsum(step, 0)])
    place[:, [0, 2]] += tokens.start[:2]
    place[:, 1] = values[:, 2]
    return place, heading


def values_at(values: Float[ndarray, "frames ..."], at: Float[ndarray, " wanted"]) -> Float[ndarray, "wanted ..."]:
    """Values between frames, along smooth curves through the frames."""
    if len(values) == 1:
        return np.repeat(values, len(at), 0)
    if len(values) == 2:
        share = at.reshape(-1, *[1] * (values.ndim - 1))
        return values[0] * (1 - share) + values[1] * share
    whole = np.round(at).astype(int)
    if np.abs(at - whole).max(initial=0.0) < 1e-9:
        return values[whole]
    return CubicSpline(np.arange(len(values)), values)(at)


def turns_at(
    turns: Float[ndarray, "frames *rest 3 3"], at: Float[ndarray, " wanted"]
) -> Float[ndarray, "wanted *rest 3 3"]:
    """Turns between frames."""
    return to_turns(values_at(to_6d(turns), at))


def to_6d(turns: Float[ndarray, "*batch 3 3"]) -> Float[ndarray, "*batch 6"]:
    """The first two columns of rotations."""
    return np.concatenate([turns[..., 0], turns[..., 1]], -1)


def to_turns(values: Float[ndarray, "*batch 6"]) -> Float[ndarray, "*batch 3 3"]:
    """The rotations nearest to two columns: both give way alike until they stand at a right angle."""
    a = values[..., :3] / np.maximum(np.linalg.norm(values[..., :3], axis=-1, keepdims=True), 1e-9)
    b = values[..., 3:] / np.maximum(np.linalg.norm(values[..., 3:], axis=-1, keepdims=True), 1e-9)
    middle, across = a + b, a - b
    middle = middle / np.maximum(np.linalg.norm(middle, axis=-1, keepdims=True), 1e-9)
    across = across - np.sum(across * middle, -1, keepdims=True) * middle
    across = across / np.maximum(np.linalg.norm(across, axis=-1, keepdims=True), 1e-9)
    x, y = (middle + across) * np.sqrt(0.5), (middle - across) * np.sqrt(0.5)
    return np.stack([x, y, np.cross(x, y)], -1)


def _trunk_values(
    place: Float[ndarray, "frames 3"],
    heading: Float[ndarray, " frames"],
    root: Float[ndarray, "frames 3 3"],
    trunk: Float[ndarray, "frames stations 3 3"],
    rate: float,
) -> Float[ndarray, "frames channels"]:
    step = np.diff(place, axis=0, append=place[-1:]) * rate
    turning = np.diff(heading, append=heading[-1:]) * rate
    if len(step) > 1:
        step[-1], turning[-1] = step[-2], turning[-2]
    step = np.einsum("fba,fb->fa", yaw(heading), step)
    moves = np.stack([step[:, 0], step[:, 2], place[:, 1], turning], -1)
    return np.concatenate([moves, _to_parents(np.concatenate([root[:, None], trunk], 1))], -1)


def _chain_token(kind: TokenKind, turns: ndarray, base: ndarray) -> Token:
    return Token(kind, _to_parents(turns, base), np.ones(turns.shape[1], bool))


def _to_parents(turns: Float[ndarray, "frames stations 3 3"], base: ndarray | None = None) -> ndarray:
    """Each station seen from the one before, the first one from the base, as two columns each."""
    first = turns[:, :1] if base is None else np.swapaxes(base, -1, -2)[:, None] @ turns[:, :1]
    others = np.swapaxes(turns[:, :-1], -1, -2) @ turns[:, 1:]
    return to_6d(np.concatenate([first, others], 1)).reshape(len(turns), -1)


def _from_parents(values: Float[ndarray, "frames channels"], base: ndarray | None = None) -> ndarray:
    """The inverse of `_to_parents`."""
    turns = to_turns(values.reshape(len(values), -1, 6))
    if base is not None:
        turns[:, 0] = base @ turns[:, 0]
    for i in range(1, turns.shape[1]):
        turns[:, i] = turns[:, i - 1] @ turns[:, i]
    return turns


def _bases(
    limbs: tuple[LimbTrack, ...] | tuple[LimbFacts, ...], root: ndarray, trunk: Float[ndarray, "frames stations 3 3"]
) -> list[Float[ndarray, "frames 3 3"]]:
    """What carries each limb: the chest for arms, wings and all legs but a side's last, the root for the others."""
    last = {}
    for each in limbs:
        key = each.limb.kind, each.limb.side
        last[key] = max(each.limb.rank, last.get(key, 0))
    return [
        trunk[:, -1]
        if each.limb.kind in ("arm", "wing")
        or (each.limb.kind == "leg" and each.limb.rank < last[each.limb.kind, each.limb.side])
        else root
        for each in limbs
    ]


def _limb_token(track: LimbTrack, base: Float[ndarray, "frames 3 3"], at: Float[ndarray, " wanted"]) -> Token:
    turns = turns_at(track.turns, at)
    end = np.einsum("fba,fb->fa", base, values_at(track.end, at))
    if not track.has[0]:
        turns[:, 0] = base
    if track.limb.side == "right":
        turns, base, end = MIRROR @ turns @ MIRROR, MIRROR @ base @ MIRROR, end @ MIRROR
    kind: TokenKind = track.limb.kind  # pyright: ignore[reportAssignmentType]
    return Token(kind, np.concatenate([_to_parents(turns, base), end], -1), track.has)


def _limb_track(
    row: Token, fact: LimbFacts, base: Float[ndarray, "frames 3 3"], at: ndarray, contact: Bool[ndarray, " wanted"]
) -> LimbTrack:
    values = row.values[:, :-3].reshape(len(row.values), -1, 6).copy()
    values[:, ~row.has] = to_6d(np.eye(3))
    end, right = row.values[:, -3:], fact.limb.side == "right"
    if right:
        base, end = MIRROR @ base @ MIRROR, end @ MIRROR
    turns = _from_parents(values.reshape(len(values), -1), base)
    if right:
        turns, base = MIRROR @ turns @ MIRROR, MIRROR @ base @ MIRROR
    if not row.has[0]:
        turns[:, 0] = np.eye(3)
    end = np.einsum("fab,fb->fa", base, end)
    return LimbTrack(fact.limb, turns_at(turns, at), row.has, fact.rest, values_at(end, at), contact)
