"""Shaping motion in limb space: other rates and tempos, mirrors, another stride, another speed."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from jigdoll.errors import JigdollError
from jigdoll.rig.names import Side
from jigdoll.rig.retarget.limb_motion import LimbMotion, LimbTrack
from jigdoll.rig.retarget.turns import blend_turns, from_rotvec
from jigdoll.types import Limb

STRIDES = (0.8, 1.25)
"""Strides are made shorter or longer down and up to this, before steps come slower or faster."""
RATES = (0.4, 2.5)
"""Nothing is played slower or faster than this: real motion would no longer look real."""
SWING_FRAMES = 3.5
"""A foot is in the air for so many frames at least."""
STANDING = 0.05
"""What gets along by less than this [leg lengths / s] has no speed to change."""


def at_frames(lm: LimbMotion, at: Float[ndarray, " wanted"], *, fps: float | None = None) -> LimbMotion:
    """The motion at these places between its frames."""
    count = len(lm)
    left = np.clip(np.floor(at).astype(int), 0, max(count - 2, 0))
    right = np.minimum(left + 1, count - 1)
    share = np.clip(at - left, 0, 1)

    def straight(values: ndarray) -> ndarray:
        t = share.reshape(-1, *[1] * (values.ndim - 1))
        return (1 - t) * values[left] + t * values[right]

    def turned(values: ndarray) -> ndarray:
        t = np.broadcast_to(share.reshape(-1, *[1] * (values.ndim - 3)), values[left].shape[:-2])
        return blend_turns(values[left], values[right], t)

    near = np.where(share < 0.5, left, right)
    return replace(
        lm,
        fps=lm.fps if fps is None else fps,
        place=straight(lm.place),
        heading=straight(lm.heading),
        root=turned(lm.root),
        trunk=turned(lm.trunk),
        neck=None if lm.neck is None else turned(lm.neck),
        tail=None if lm.tail is None else turned(lm.tail),
        limbs=tuple(replace(t, turns=turned(t.turns), end=straight(t.end), contact=t.contact[near]) for t in lm.limbs),
    )


def resample(lm: LimbMotion, fps: float, *, tempo: float = 1.0) -> LimbMotion:
    """The motion at another rate, and faster or slower by a factor."""
    if not 0 < fps <= 1000 or not tempo > 0:
        raise JigdollError(f"{fps:g} frames per second at {tempo:g} times the speed is no rate for a clip")
    seconds = max(len(lm) - 1, 0) / lm.fps / tempo
    count = max(round(seconds * fps) + 1, 1)
    return at_frames(lm, np.linspace(0, len(lm) - 1, count), fps=fps)


def mirror(lm: LimbMotion) -> LimbMotion:
    """Left and right exchanged."""
    M = np.diag([-1.0, 1.0, 1.0])

    def turned(values: ndarray | None) -> ndarray | None:
        return None if values is None else M @ values @ M

    across: dict[Side, Side] = {"left": "right", "right": "left", "middle": "middle"}
    limbs = tuple(
        LimbTrack(
            Limb(t.limb.kind, across[t.limb.side], t.limb.rank, t.limb.joints),
            M @ t.turns @ M,
            t.has,
            M @ t.rest @ M,
            t.end * [-1.0, 1.0, 1.0],
            t.contact,
        )
        for t in lm.limbs
    )
    trunk = M @ lm.trunk @ M
    return replace(
        lm,
        place=lm.place * [-1.0, 1.0, 1.0],
        heading=-lm.heading,
        root=M @ lm.root @ M,
        trunk=trunk,
        neck=turned(lm.neck),
        tail=turned(lm.tail),
        limbs=limbs,
    )


def speed_of(lm: LimbMotion) -> float:
    """How fast the motion gets along over the ground, sway left out [leg lengths / s]."""
    if len(lm) < 2:
        return 0.0
    count = max(min(len(lm) - 1, round(0.5 * lm.fps)), 1)
    steps = lm.place[count:, [0, 2]] - lm.place[:-count, [0, 2]]
    return float(np.linalg.norm(steps, axis=1).mean() * lm.fps / count)


def at_speed(lm: LimbMotion, speed: float) -> LimbMotion:
    """The motion at another speed [leg lengths / s]: longer or shorter strides first, then faster or slower ones."""
    now = speed_of(lm)
    if now < STANDING or not speed > 0:
        return lm
    ratio = speed / now
    stride = float(np.clip(ratio, *STRIDES))
    rate = float(np.clip(ratio / stride, RATES[0], min(RATES[1], fastest(lm))))
    return resample(with_stride(lm, stride), lm.fps, tempo=rate)


def fastest(lm: LimbMotion) -> float:
    """How much faster legs may step: a swing that is over within a frame or two is none."""
    swings = []
    for track in lm.limbs:
        if track.limb.kind == "leg":
            edges = np.flatnonzero(np.diff(track.contact.astype(int)))
            swings += [b - a for a, b in pairwise(edges) if not track.contact[a + 1]]
    return max(float(np.median(swings)) / SWING_FRAMES, 1.0) if swings else RATES[1]


def with_stride(lm: LimbMotion, factor: float) -> LimbMotion:
    """The motion with longer or shorter strides: legs swing farther about their middle, the body gets farther."""
    if factor == 1.0:
        return lm
    place = lm.place.copy()
    place[:, [0, 2]] = place[0, [0, 2]] + factor * (place[:, [0, 2]] - place[0, [0, 2]])
    return replace(lm, place=place, limbs=tuple(_swung(t, factor) if t.limb.kind == "leg" else t for t in lm.limbs))


def _swung(track: LimbTrack, factor: float) -> LimbTrack:
    """The leg with a wider or narrower swing forwards and backwards; the foot stays as flat as it was."""
    swing = np.arctan2(track.end[:, 2], np.maximum(-track.end[:, 1], 0.2))
    more = (factor - 1) * (swing - swing.mean())
    R = from_rotvec(np.stack([-more, 0 * more, 0 * more], -1))
    turns = track.turns.copy()
    turns[:, 1:3] = R[:, None] @ turns[:, 1:3]
    return replace(track, turns=turns, end=np.einsum("fab,fb->fa", R, track.end))
