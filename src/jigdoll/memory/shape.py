"""Shaping motion in limb space: other rates and tempos, mirrors, loops of any length, one action after another."""

from dataclasses import replace

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from jigdoll.errors import JigdollError
from jigdoll.rig.names import Side
from jigdoll.rig.retarget.limb_motion import LimbMotion, LimbTrack, yaw
from jigdoll.rig.retarget.turns import blend_turns, from_rotvec, to_rotvec
from jigdoll.types import Limb

BLEND_SECONDS = 0.35
"""How long one motion takes to become the next."""
SEAM_SECONDS = 0.2
"""How long the seam of a loop is blended over."""
SHORTEST_CYCLE = 0.35
"""A shorter piece is no cycle [s]."""


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


def join(first: LimbMotion, second: LimbMotion, *, seconds: float = BLEND_SECONDS) -> LimbMotion:
    """One motion and then the other: the second begins where the first one ends, facing the same way."""
    if first.fps != second.fps:
        second = resample(second, first.fps)
    overlap = int(np.clip(round(seconds * first.fps), 1, max(min(len(first), len(second)) - 1, 1)))
    start = len(first) - overlap
    moved = _placed(second, first, start)
    share = np.linspace(0, 1, overlap + 2)[1:-1]
    share = share * share * (3 - 2 * share)
    return _crossfade(first, moved, start, share)


def looped(lm: LimbMotion) -> tuple[int, int]:
    """The first and the last frame of the piece whose ends meet best in pose and velocity."""
    features = _features(lm)
    count = len(lm)
    least = max(int(SHORTEST_CYCLE * lm.fps), 2)
    if count <= least + 1:
        return 0, count - 1
    velocity = np.gradient(features, axis=0) * lm.fps * 0.15
    both = np.concatenate([features, velocity], 1)
    gap = np.linalg.norm(both[:, None] - both[None], axis=-1)
    i, j = np.meshgrid(np.arange(count), np.arange(count), indexing="ij")
    spread = float(np.median(gap)) + 1e-9
    cost = gap / spread - 0.3 * (j - i) / count
    cost[(j - i) < least] = np.inf
    best = int(np.argmin(cost))
    return best // count, best % count


def extend(lm: LimbMotion, seconds: float, *, seed: int = 0, closed: bool = False) -> LimbMotion:
    """The motion for so long: its best cycle again and again, slightly varied in pace so that no period shows.

    `closed` gives whole cycles only, so that the end meets the beginning.
    """
    wanted = max(round(seconds * lm.fps), 1)
    if not closed and len(lm) > wanted:  # long enough as it is
        first = (len(lm) - 1 - wanted) // 2
        return at_frames(lm, np.arange(first, first + wanted + 1, dtype=float))
    first, last = looped(lm)
    cycle = at_frames(lm, np.arange(first, last + 1, dtype=float))
    cycle = _closed(cycle)
    length = len(cycle) - 1
    rounds = max(round(wanted / length), 1) if closed else int(np.ceil(wanted / length)) + 1
    generator = np.random.default_rng(seed)
    out = cycle
    for _ in range(rounds - 1):
        pace = 1.0 if closed else float(np.clip(generator.normal(1.0, 0.03), 0.92, 1.08))
        again = cycle if pace == 1.0 else at_frames(cycle, np.linspace(0, length, max(round(length / pace), 2) + 1))
        out = _append(out, again)
    return out if closed else at_frames(out, np.arange(min(wanted + 1, len(out)), dtype=float))


def _closed(cycle: LimbMotion) -> LimbMotion:
    """The cycle with its last frame equal to its first, but for the way it has gone."""
    count = len(cycle)
    ramp = np.linspace(-0.5, 0.5, count)

    def turned(values: ndarray) -> ndarray:
        gap = to_rotvec(np.swapaxes(values[-1], -1, -2) @ values[0])
        shares = ramp.reshape(-1, *[1] * (values.ndim - 2))
        return values @ from_rotvec(shares * gap[None])

    place = cycle.place.copy()
    place[:, 1] += ramp * (place[0, 1] - place[-1, 1])
    return replace(
        cycle,
        place=place,
        root=turned(cycle.root),
        trunk=turned(cycle.trunk),
        neck=None if cycle.neck is None else turned(cycle.neck),
        tail=None if cycle.tail is None else turned(cycle.tail),
        limbs=tuple(
            replace(t, turns=turned(t.turns), end=t.end + ramp[:, None] * (t.end[0] - t.end[-1])) for t in cycle.limbs
        ),
    )


def _append(first: LimbMotion, second: LimbMotion) -> LimbMotion:
    """The second right after the first, whose last frame is the second's first."""
    moved = _placed(second, first, len(first) - 1)
    return _crossfade(first, moved, len(first) - 1, np.array([0.5]))


def _placed(second: LimbMotion, first: LimbMotion, frame: int) -> LimbMotion:
    """The second motion, begun where the first one is at a frame, facing as it does."""
    turn = first.heading[frame] - second.heading[0]
    R = yaw(np.array([turn]))[0]
    flat = second.place * [1.0, 0.0, 1.0]
    place = (flat - flat[0]) @ R.T + first.place[frame] * [1.0, 0.0, 1.0]
    place[:, 1] = second.place[:, 1]
    return replace(second, place=place, heading=second.heading + turn)


def _crossfade(first: LimbMotion, second: LimbMotion, start: int, share: Float[ndarray, " overlap"]) -> LimbMotion:
    """First up to `start`, then a blend by `share`, then the rest of the second."""
    overlap = len(share)

    def straight(a: ndarray, b: ndarray) -> ndarray:
        t = share.reshape(-1, *[1] * (a.ndim - 1))
        return np.concatenate([a[:start], (1 - t) * a[start : start + overlap] + t * b[:overlap], b[overlap:]])

    def turned(a: ndarray | None, b: ndarray | None) -> ndarray | None:
        if a is None or b is None:
            return None
        t = np.broadcast_to(share.reshape(-1, *[1] * (a.ndim - 3)), a[start : start + overlap].shape[:-2])
        return np.concatenate([a[:start], blend_turns(a[start : start + overlap], b[:overlap], t), b[overlap:]])

    theirs = {(t.limb.kind, t.limb.side, t.limb.rank): t for t in second.limbs}
    limbs = []
    for track in first.limbs:
        other = theirs.get((track.limb.kind, track.limb.side, track.limb.rank))
        if other is None:
            continue
        early = share < 0.5
        both = np.where(early, track.contact[start : start + overlap], other.contact[:overlap])
        # Turns are of canonical bones, so two sources with other rest poses blend; feet count since their own rest.
        limbs.append(
            replace(
                track,
                turns=turned(track.turns, other.turns),
                end=straight(track.end, other.end),
                has=track.has & other.has,
                contact=np.concatenate([track.contact[:start], both, other.contact[overlap:]]),
            )
        )
    root, trunk = turned(first.root, second.root), turned(first.trunk, second.trunk)
    assert root is not None and trunk is not None
    return replace(
        first,
        place=straight(first.place, second.place),
        heading=straight(first.heading, second.heading),
        root=root,
        trunk=trunk,
        neck=turned(first.neck, second.neck),
        tail=turned(first.tail, second.tail),
        limbs=tuple(limbs),
        grounded=first.grounded and second.grounded,
    )


def _features(lm: LimbMotion) -> Float[ndarray, "frames features"]:
    """What tells one pose from another: where limbs end and how body and limbs are turned."""
    rows = [lm.root.reshape(len(lm), -1), lm.place[:, 1:2], lm.trunk[:, -1].reshape(len(lm), -1)]
    for track in lm.limbs:
        rows += [track.end, track.turns[:, 1:3].reshape(len(lm), -1) * 0.5]
    if lm.tail is not None and not lm.limbs:
        rows.append(lm.tail.reshape(len(lm), -1))
    return np.concatenate(rows, 1)
