"""One motion after another: where they fit each other best, without a jump in pose or velocity.

Motions are not faded into each other, which would show two at once. They meet at one moment, and what they differ by
there, in pose and in velocity, dies away on both sides of it as a damped spring does ("inertialisation").
"""

from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from jigdoll.memory.parts import Parts, alike, local_velocity, motion_of, parts_of
from jigdoll.memory.shape import at_frames, resample
from jigdoll.rig.retarget.limb_motion import LimbMotion, yaw
from jigdoll.rig.retarget.turns import from_rotvec, to_rotvec

HALF_LIFE = 0.11
"""In which half of a difference has died away [s]."""
TRAVEL_HALF_LIFE = 0.18
"""The same of a difference in speed over the ground [s]."""
FASTEST = 5.0
"""Differences in velocity count up to this much [rad/s or lengths/s]: a spring would overshoot."""
EARLIEST, LATEST = (1.2, 0.4), (0.5, 0.25)
"""The first motion may be left that long before its end, the second entered that long after its beginning: seconds,
and shares of their lengths."""
MATCH_SECONDS = 0.15
"""What a velocity counts for beside a pose: where it leads in this time."""
STEP_SECONDS = 0.36
"""How long a foot takes that has to step from one stance into another."""
STEP_FROM = 0.12
"""Feet whose places differ by more than this [limb lengths] step."""
STEP_BEND = 0.42
"""How far thigh and shank bend for such a step [rad]."""


def join(first: LimbMotion, second: LimbMotion, *, search: bool = True) -> LimbMotion:
    """One motion and then the other, which begins where the first one is left, facing the same way."""
    if first.fps != second.fps:
        second = resample(second, first.fps)
    first, second = alike(first, second)
    a, b = meeting(first, second) if search else (len(first) - 1, 0)
    return joined_at(first, second, a, b)


def meeting(first: LimbMotion, second: LimbMotion) -> tuple[int, int]:
    """The frames of both motions, which have the same parts, that are most alike in pose, velocity and contacts."""
    most = int(min(EARLIEST[0] * first.fps, EARLIEST[1] * len(first)))
    late = int(min(LATEST[0] * second.fps, LATEST[1] * len(second)))
    ends = np.arange(max(len(first) - 1 - most, 0), len(first))
    starts = np.arange(late + 1)
    cost = unlikeness(features(first)[ends], features(second)[starts])
    cost = cost + 0.12 * (len(first) - 1 - ends[:, None]) / first.fps + 0.3 * starts / second.fps
    i, j = np.unravel_index(int(cost.argmin()), cost.shape)
    return int(ends[i]), int(starts[j])


def unlikeness(a: Float[ndarray, "ends features"], b: Float[ndarray, "starts features"]) -> ndarray:
    """How unlike frames are: 1 is about a radian in a joint of importance."""
    square = np.square(a).sum(1)[:, None] + np.square(b).sum(1) - 2 * a @ b.T
    return np.sqrt(np.maximum(square, 0))


def features(lm: LimbMotion) -> Float[ndarray, "frames features"]:
    """What tells one moment from another: height, tilt, where limbs are, all with their velocities, and contacts."""
    parts = parts_of(lm)
    frames = len(parts)
    middle = parts.turns[:, : 1 + lm.trunk.shape[1]].reshape(frames, -1) * 0.5
    rows = [parts.reach[:, :1] * 1.5, middle]
    at = parts.turns.shape[1] - 5 * len(lm.limbs)
    if not lm.limbs:
        rows.append(parts.turns[:, 1:].reshape(frames, -1))
    for i, track in enumerate(lm.limbs):
        weight = 1.0 if track.limb.kind == "leg" else 0.4
        rows += [
            weight * parts.reach[:, 1 + 3 * i : 4 + 3 * i],
            0.35 * weight * parts.turns[:, at + 5 * i + 1 : at + 5 * i + 3].reshape(frames, -1),
        ]
    pose = np.concatenate(rows, 1)
    moving = np.gradient(pose, axis=0) * lm.fps * MATCH_SECONDS if frames > 1 else np.zeros_like(pose)
    travel = local_velocity(parts, lm.fps) * 0.3
    return np.concatenate([pose, moving, travel, 0.25 * parts.contact], 1)


def joined_at(first: LimbMotion, second: LimbMotion, a: int, b: int) -> LimbMotion:
    """The first motion up to its frame a, then the second after its frame b; both have the same parts."""
    one, two = parts_of(first), parts_of(second)
    two = replace(two, place=placed(two.place, one.place[a], b))
    gap = to_rotvec(np.swapaxes(two.turns[b], -1, -2) @ one.turns[a])
    faster = _clipped(_spin(one.turns, a, -1, first.fps) - _spin(two.turns, b, 1, first.fps))
    before, after = np.arange(a, -1, -1) / first.fps, np.arange(1, len(two) - b) / first.fps
    spare, speed = one.reach[a] - two.reach[b], _rate(one.reach, a, -1, first.fps) - _rate(two.reach, b, 1, first.fps)
    way = _rate(one.place, a, -1, first.fps) - _rate(two.place, b, 1, first.fps)
    early = Parts(
        one.turns[: a + 1] @ from_rotvec(spring(-0.5 * gap, 0.5 * faster, before)),
        one.reach[: a + 1] + spring(-0.5 * spare, 0.5 * _clipped(speed), before),
        one.place[: a + 1] + spring(0 * way, 0.5 * _clipped(way), before, half_life=TRAVEL_HALF_LIFE),
        one.contact[: a + 1],
    )
    late = Parts(
        two.turns[b + 1 :] @ from_rotvec(spring(0.5 * gap, 0.5 * faster, after)),
        two.reach[b + 1 :] + spring(0.5 * spare, 0.5 * _clipped(speed), after),
        two.place[b + 1 :] + spring(0 * way, 0.5 * _clipped(way), after, half_life=TRAVEL_HALF_LIFE),
        two.contact[b + 1 :],
    )
    both = Parts(*(np.concatenate([getattr(early, n), getattr(late, n)]) for n in Parts.__dataclass_fields__))
    raw = Parts(
        np.concatenate([one.turns[: a + 1], two.turns[b + 1 :]]), both.reach, both.place,
        np.concatenate([one.contact[: a + 1], two.contact[b + 1 :]]),
    )  # fmt: skip
    stepped = _with_steps(both, raw, gap, spare, first, a, stands=one.contact[a] & two.contact[b])
    return motion_of(stepped, first)


def spring(x: ndarray, v: ndarray, t: Float[ndarray, " frames"], *, half_life: float = HALF_LIFE) -> ndarray:
    """How a difference x that changes by v per second dies away: a critically damped spring, exact at every t."""
    y = 2 * np.log(2) / half_life
    t = t.reshape(-1, *[1] * x.ndim)
    return np.exp(-y * t) * (x + (v + y * x) * t)


def lead_in(start: LimbMotion, motion: LimbMotion) -> LimbMotion:
    """The motion, begun in the last frame of another: that frame is its first, place and heading go on from there."""
    start, motion = alike(_last(start), motion)
    one, two = parts_of(start), parts_of(motion)
    t = np.arange(len(two)) / motion.fps
    gap = to_rotvec(np.swapaxes(two.turns[0], -1, -2) @ one.turns[0])
    slow = -_clipped(_spin(two.turns, 0, 1, motion.fps)) * min(1.0, float(np.abs(gap).max()) / 0.3)
    led = Parts(
        two.turns @ from_rotvec(spring(gap, slow, t, half_life=1.5 * HALF_LIFE)),
        two.reach + spring(one.reach[0] - two.reach[0], 0 * two.reach[0], t, half_life=1.5 * HALF_LIFE),
        placed(two.place, one.place[0], 0),
        two.contact,
    )
    spare = one.reach[0] - two.reach[0]
    stepped = _with_steps(led, led, 0 * gap, spare, motion, 0, stands=two.contact[0])
    return motion_of(stepped, motion)


def lead_out(motion: LimbMotion, end: LimbMotion) -> LimbMotion:
    """The motion, ended in the first frame of another, wherever it has got to."""
    return reversed_in_time(lead_in(reversed_in_time(_placed_at_end(end, motion)), reversed_in_time(motion)))


def reversed_in_time(lm: LimbMotion) -> LimbMotion:
    """The motion played backwards."""
    return at_frames(lm, np.arange(len(lm) - 1, -1, -1, dtype=float))


def _placed_at_end(end: LimbMotion, motion: LimbMotion) -> LimbMotion:
    """The first frame of a motion, where another one ends."""
    pose = at_frames(end, np.zeros(1))
    place = motion.place[-1:].copy()
    place[:, 1] = pose.place[:, 1]
    return replace(pose, place=place, heading=motion.heading[-1:])


def _last(lm: LimbMotion) -> LimbMotion:
    return at_frames(lm, np.array([len(lm) - 1.0]))


def _with_steps(
    parts: Parts,
    raw: Parts,
    gap: Float[ndarray, "joints 3"],
    spare: Float[ndarray, " values"],
    like: LimbMotion,
    at: int,
    *,
    stands: Bool[ndarray, " limbs"],
) -> Parts:
    """With feet that would slide from one stance into another lifted instead, one after the other."""
    limbs = [
        i
        for i, track in enumerate(like.limbs)
        if track.limb.kind == "leg" and stands[i] and np.linalg.norm(spare[1 + 3 * i : 4 + 3 * i]) > STEP_FROM
    ]
    if not limbs:
        return parts
    turns, contact = parts.turns.copy(), parts.contact.copy()
    frames = np.arange(len(parts))
    width = STEP_SECONDS * like.fps
    spread = np.linspace(-0.5, 0.5, len(limbs)) if len(limbs) > 1 else np.zeros(1)
    for i, shift in zip(limbs, spread, strict=True):
        phase = (frames - at - shift * width) / width + 0.5
        swing = (phase > 0) & (phase < 1)
        t = np.clip(phase, 0, 1)
        share = (t * t * (3 - 2 * t))[:, None, None]
        joints = slice(turns.shape[1] - 5 * (len(like.limbs) - i), turns.shape[1] - 5 * (len(like.limbs) - i) + 5)
        if gap[joints].any():
            left = np.where(frames[:, None, None] <= at, -share, 1 - share) * gap[None, joints]
            turns[:, joints] = raw.turns[:, joints] @ from_rotvec(left)
        lift = STEP_BEND * np.where(swing, np.sin(np.pi * t) ** 2, 0.0)[:, None] * np.array([[1.0, 0.0, 0.0]])
        first = joints.start
        turns[:, first + 1] = turns[:, first + 1] @ from_rotvec(-lift)
        turns[:, first + 2] = turns[:, first + 2] @ from_rotvec(2 * lift)
        turns[:, first + 3] = turns[:, first + 3] @ from_rotvec(-lift)
        contact[swing, i] = False
    return replace(parts, turns=turns, contact=contact)


def placed(place: Float[ndarray, "frames 3"], where: Float[ndarray, " 3"], frame: int) -> Float[ndarray, "frames 3"]:
    """A way over the ground, moved and turned so that at a frame it is somewhere."""
    turn = where[2] - place[frame, 2]
    R = yaw(np.array([turn]))[0][np.ix_([0, 2], [0, 2])]
    return np.concatenate([(place[:, :2] - place[frame, :2]) @ R.T + where[:2], place[:, 2:] + turn], 1)


def _spin(turns: Float[ndarray, "frames joints 3 3"], frame: int, side: int, fps: float) -> ndarray:
    """How fast joints turn at a frame, seen from one side of it [rad/s]."""
    other = frame + side
    if not 0 <= other < len(turns):
        return np.zeros(turns.shape[1:3])
    early, late = (frame, other) if side > 0 else (other, frame)
    return to_rotvec(np.swapaxes(turns[early], -1, -2) @ turns[late]) * fps


def _rate(values: Float[ndarray, "frames values"], frame: int, side: int, fps: float) -> ndarray:
    other = frame + side
    if not 0 <= other < len(values):
        return np.zeros(values.shape[1])
    return (values[other] - values[frame]) * side * fps


def _clipped(velocity: ndarray) -> ndarray:
    """Velocities no longer than `FASTEST`."""
    length = np.linalg.norm(np.atleast_2d(velocity), axis=-1, keepdims=True)
    return (np.atleast_2d(velocity) * np.minimum(1, FASTEST / np.maximum(length, 1e-9))).reshape(velocity.shape)
