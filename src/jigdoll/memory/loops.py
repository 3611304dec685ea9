"""Motion that goes on: a cycle cut where its ends meet, closed without a seam, or continued for any time."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from scipy.ndimage import gaussian_filter1d

from jigdoll.memory.joins import features, joined_at, placed, spring, unlikeness
from jigdoll.memory.parts import Parts, alike, motion_of, parts_of
from jigdoll.memory.shape import at_frames
from jigdoll.rig.retarget.limb_motion import LimbMotion
from jigdoll.rig.retarget.turns import from_rotvec, to_rotvec

SHORTEST_CYCLE = 0.35
"""A shorter piece is no cycle [s]."""
WHOLE = 0.8
"""A cycle goes at least so far from where it begins, as a share of how far apart the poses of the motion are."""
LEAVE_SECONDS = 0.8
"""A motion that goes on is left for the next one within so long before its end, where they fit best."""
LONG_ENOUGH = 1.6
"""Shorter pieces are repeated as they are before others join them [s]."""
AS_GOOD = 1.2
"""Ways to go on that fit that many times worse than the best are still taken."""
PACE, SWING = 0.04, 0.07
"""How much pace and swing of what goes on for long vary (one standard deviation), so that no period shows."""
VARY_SECONDS = 1.2
"""How slowly they vary."""
STRETCH = 0.15
"""A loop is played so much slower or faster at most to be as long as is wished."""


def best_cycle(lm: LimbMotion, *, seconds: float | None = None) -> tuple[int, int]:
    """The first and the last frame of the piece whose ends meet best in pose, velocity and contacts.

    A piece of which whole rounds fill the `seconds` is taken before one that does not.
    """
    count = len(lm)
    least = max(int(SHORTEST_CYCLE * lm.fps), 2)
    if count <= least + 1:
        return 0, count - 1
    rows = features(lm)
    gap = unlikeness(rows, rows)
    i, j = np.meshgrid(np.arange(count), np.arange(count), indexing="ij")
    spread = float(np.median(gap)) + 1e-9
    cost = gap / spread - 0.3 * (j - i) / count
    # A cycle shows the whole of what is done: a moment of it meets itself best of all.
    farthest = np.maximum.accumulate(np.where(j >= i, gap, 0.0), axis=1)
    cost += 3.0 * np.maximum(WHOLE - farthest / (np.percentile(gap, 95) + 1e-9), 0)
    if seconds is not None:
        rounds = seconds * lm.fps / np.maximum(j - i, 1)
        cost += 2.0 * np.abs(np.log(rounds / np.maximum(np.round(rounds), 1)))
    cost[(j - i) < least] = np.inf
    best = int(np.argmin(cost))
    return best // count, best % count


def loop(lm: LimbMotion, seconds: float) -> LimbMotion:
    """Whole cycles of about so long, whose last frame is their first but for the way: pose and velocity meet."""
    first, last = best_cycle(lm, seconds=seconds)
    cycle = closed(at_frames(lm, np.arange(first, last + 1, dtype=float)))
    wanted = max(round(seconds * lm.fps), 2)
    out = repeated(cycle, max(round(wanted / (len(cycle) - 1)), 1))
    if abs(wanted / (len(out) - 1) - 1) <= STRETCH:
        return at_frames(out, np.linspace(0, len(out) - 1, wanted + 1))
    return out


def repeated(cycle: LimbMotion, rounds: int) -> LimbMotion:
    """A closed cycle again and again."""
    parts = parts_of(cycle)
    places = [parts.place]
    for _ in range(rounds - 1):
        places.append(placed(parts.place, places[-1][-1], 0)[1:])
    again = np.concatenate([np.arange(len(parts)), *([np.arange(1, len(parts))] * (rounds - 1))])
    whole = Parts(parts.turns[again], parts.reach[again], np.concatenate(places), parts.contact[again])
    return motion_of(whole, cycle)


def closed(cycle: LimbMotion) -> LimbMotion:
    """The cycle with its last frame equal to its first, but for the way it has gone; velocities meet there too."""
    if len(cycle) < 4:
        return cycle
    parts, fps = parts_of(cycle), cycle.fps
    t = np.arange(len(parts)) / fps
    half_life = min(0.2, 0.1 * t[-1])
    gap = to_rotvec(np.swapaxes(parts.turns[0], -1, -2) @ parts.turns[-1])
    ahead = to_rotvec(np.swapaxes(parts.turns[0], -1, -2) @ parts.turns[1]) * fps
    behind = to_rotvec(np.swapaxes(parts.turns[-2], -1, -2) @ parts.turns[-1]) * fps
    spare = parts.reach[-1] - parts.reach[0]
    speed = (parts.reach[-1] - parts.reach[-2] - parts.reach[1] + parts.reach[0]) * fps
    begin = spring(0.5 * gap, 0.5 * (behind - ahead), t, half_life=half_life)
    finish = spring(-0.5 * gap, 0.5 * (behind - ahead), t[::-1], half_life=half_life)
    reach = parts.reach + spring(0.5 * spare, 0.5 * speed, t, half_life=half_life)
    reach += spring(-0.5 * spare, 0.5 * speed, t[::-1], half_life=half_life)
    turns = parts.turns @ from_rotvec(begin + finish)
    shut = replace(parts, turns=turns, reach=reach)
    return motion_of(_exactly_shut(shut), cycle)


def _exactly_shut(parts: Parts) -> Parts:
    """The last frame as the first one: what the two springs left of each other's ends is spread over the clip."""
    ramp = np.linspace(-0.5, 0.5, len(parts))
    gap = to_rotvec(np.swapaxes(parts.turns[-1], -1, -2) @ parts.turns[0])
    turns = parts.turns @ from_rotvec(ramp[:, None, None] * gap)
    turns[-1] = turns[0]
    reach = parts.reach + ramp[:, None] * (parts.reach[0] - parts.reach[-1])
    return replace(parts, turns=turns, reach=reach)


def go_on(pieces: Sequence[LimbMotion], seconds: float, *, seed: int = 0) -> LimbMotion:
    """Motion for so long, of pieces that show the same: left and entered where they fit, without a period.

    The first piece leads; what is longer than wished is cut from its middle.
    """
    pieces = [long_enough(piece) for piece in pieces]
    lead = pieces[0]
    wanted = max(round(seconds * lead.fps), 1)
    if len(lead) > wanted:
        first = (len(lead) - 1 - wanted) // 2
        return at_frames(lead, np.arange(first, first + wanted + 1, dtype=float))
    generator = np.random.default_rng(seed)
    slack = int(0.2 * wanted) + 2
    out = lead
    while len(out) < wanted + slack:
        longer = _longer(out, pieces, generator)
        if len(longer) <= len(out):
            break
        out = longer
    out = varied(out, generator)
    return at_frames(out, np.arange(min(wanted + 1, len(out)), dtype=float))


def long_enough(piece: LimbMotion, seconds: float = LONG_ENOUGH) -> LimbMotion:
    """A piece that is only a beat or a stride long, repeated: where it is left and entered its phase must be clear."""
    least = seconds * piece.fps
    if len(piece) > least or len(piece) < 4:
        return piece
    first, last = best_cycle(piece)
    cycle = closed(at_frames(piece, np.arange(first, last + 1, dtype=float)))
    return repeated(cycle, int(np.ceil(least / (len(cycle) - 1))))


def _longer(out: LimbMotion, pieces: Sequence[LimbMotion], generator: np.random.Generator) -> LimbMotion:
    """The motion with one more piece, at one of the places that fit best."""
    ways = []
    for piece in pieces:
        head, tail = alike(out, piece)
        leave = min(int(LEAVE_SECONDS * out.fps), len(piece) // 3)
        ends = np.arange(max(len(out) - 1 - leave, 1), len(out))
        starts = np.arange(max(len(piece) // 2, 1))
        recent = at_frames(head, np.arange(max(ends[0] - 1, 0), len(out), dtype=float))
        rows = features(recent)[len(recent) - len(ends) :]
        cost = unlikeness(rows, features(tail)[starts]) + 0.05
        i, j = np.unravel_index(int(cost.argmin()), cost.shape)
        ways.append((float(cost[i, j]), head, tail, int(ends[i]), int(starts[j])))
    best = min(way[0] for way in ways)
    good = [way for way in ways if way[0] <= AS_GOOD * best + 0.1]
    _, head, tail, a, b = good[int(generator.integers(len(good)))]
    return joined_at(head, tail, a, b)


def varied(lm: LimbMotion, generator: np.random.Generator) -> LimbMotion:
    """The motion with a pace and a swing of trunk, neck, tail and arms that vary a little and slowly."""
    frames = len(lm)
    if frames < 2 * lm.fps:
        return lm
    pace = np.clip(1 + PACE * _slow_noise(frames, lm.fps, generator), 0.88, 1.12)
    at = np.concatenate([[0.0], np.cumsum(pace[:-1])])
    moved = at_frames(lm, at[at <= frames - 1])
    parts = parts_of(moved)
    legs = 5 * sum(track.limb.kind == "leg" for track in moved.limbs)
    turns = parts.turns.copy()
    chosen = [i for i in range(1, turns.shape[1]) if not _is_leg(moved, i)]
    if legs < turns.shape[1] and chosen:
        mean = _mean_turn(turns[:, chosen])
        away = to_rotvec(np.swapaxes(mean, -1, -2) @ turns[:, chosen])
        more = 1 + SWING * _slow_noise(len(parts), lm.fps, generator)
        turns[:, chosen] = mean @ from_rotvec(more[:, None, None] * away)
    return motion_of(replace(parts, turns=turns), moved)


def _is_leg(lm: LimbMotion, joint: int) -> bool:
    """Whether a joint of its parts is a leg's, which must meet the ground as it did."""
    before = 1 + lm.trunk.shape[1]
    before += 0 if lm.neck is None else lm.neck.shape[1]
    before += 0 if lm.tail is None else lm.tail.shape[1]
    return joint >= before and lm.limbs[(joint - before) // 5].limb.kind == "leg"


def _mean_turn(turns: Float[ndarray, "frames joints 3 3"]) -> Float[ndarray, "joints 3 3"]:
    u, _, v = np.linalg.svd(turns.mean(0))
    u[..., -1] *= np.sign(np.linalg.det(u @ v))[..., None]
    return u @ v


def _slow_noise(frames: int, fps: float, generator: np.random.Generator) -> Float[ndarray, " frames"]:
    """Noise of standard deviation 1 that takes seconds to change."""
    noise = gaussian_filter1d(generator.normal(size=frames), VARY_SECONDS * fps, mode="reflect")
    return noise / max(float(noise.std()), 1e-9) if frames > 4 * fps else noise * np.sqrt(VARY_SECONDS * fps)
