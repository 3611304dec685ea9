"""Ways over the ground: a motion that gets along is led along a line of points, or straight ahead."""

from dataclasses import replace

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from scipy.ndimage import gaussian_filter1d

from jigdoll.errors import JigdollError
from jigdoll.memory.shape import STANDING, at_frames, speed_of
from jigdoll.rig.retarget.limb_motion import LimbMotion, yaw

SWAY_SECONDS = 0.35
"""What changes faster than this (one standard deviation) is a body's sway on its way, and is kept."""
LOOK_AHEAD = 0.9
"""A walker aims that many leg lengths ahead on the path."""
TURN_RATE = 2.4
"""How fast it turns at most [rad/s]."""
TURN_PER_LENGTH = 1.1
"""And how far per leg length of way [rad]."""
ASIDE = 0.5
"""Who is turned farther than this from the way goes sideways or backwards [rad]."""
MOST_POINTS = 10_000


def checked_path(points: Float[ndarray, "points 2"]) -> Float[ndarray, "points 2"]:
    """The points of a path without repetitions; refused where they are no path."""
    points = np.asarray(points, float)
    if points.ndim != 2 or points.shape[1] != 2 or not np.isfinite(points).all() or len(points) > MOST_POINTS:
        raise JigdollError("a path is a list of points x, z on the ground in metres, all of them finite")
    far = np.concatenate([[True], np.linalg.norm(np.diff(points, axis=0), axis=1) > 1e-6])
    if far.sum() < 2:
        raise JigdollError("a path needs two points or more that are not the same")
    return points[far]


def path_length(points: Float[ndarray, "points 2"]) -> float:
    """From the first point to the last."""
    return float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())


def beyond(lm: LimbMotion, points: Float[ndarray, "points 2"]) -> float:
    """How far a motion goes on after the end of its path; less than nothing where it does not get there."""
    last = points[-1] - points[-2]
    return float((lm.place[-1, [0, 2]] - points[-1]) @ last / np.linalg.norm(last))


def circle(radius: float, *, to_the_left: bool, rounds: float = 1.0) -> Float[ndarray, "points 2"]:
    """A circle that begins at the origin, going ahead."""
    angle = np.linspace(0, 2 * np.pi * rounds, max(int(48 * rounds), 8))
    side = 1.0 if to_the_left else -1.0
    return np.stack([side * radius * (1 - np.cos(angle)), radius * np.sin(angle)], -1)


def follow(
    lm: LimbMotion, points: Float[ndarray, "points 2"], *, behind: Float[ndarray, " 2"] | None = None
) -> LimbMotion:
    """The motion along a path [leg lengths], as far as it gets: it faces where it goes, and turns only so fast.

    Sway, and how the body is turned against its way, stay as they were. `behind` is where the pelvis rests, seen from
    the middle of the body, which is what keeps to the path: it swings round with the body.
    """
    frames = len(lm)
    if frames < 3 or speed_of(lm) < STANDING:
        return lm
    ground, heading = lm.place[:, [0, 2]], lm.heading
    base, course = _smooth(ground, lm.fps), _smooth(heading[:, None], lm.fps)[:, 0]
    step = np.linalg.norm(np.diff(base, axis=0), axis=1)
    way, facing = _pursue(points, step, lm.fps)
    facing = facing + _aside(base, course)
    old, new = yaw(course), yaw(facing)
    sway = np.einsum("fab,fcb,fc->fa", new[:, [0, 2]][:, :, [0, 2]], _flipped(old), ground - base)
    place = lm.place.copy()
    place[:, [0, 2]] = way + sway
    if behind is not None:
        place[:, [0, 2]] += new[:, [0, 2]][:, :, [0, 2]] @ behind - behind
    return replace(lm, place=place, heading=facing + heading - course)


def up_to(lm: LimbMotion, point: Float[ndarray, " 2"]) -> LimbMotion:
    """The motion until it is nearest to a point, looked for in its second half."""
    half = len(lm) // 2
    far = np.linalg.norm(lm.place[half:, [0, 2]] - point, axis=1)
    return at_frames(lm, np.arange(half + int(far.argmin()) + 1, dtype=float))


def straight(lm: LimbMotion) -> LimbMotion:
    """The motion in a straight line, however it wandered; who goes sideways or backwards faces ahead."""
    if len(lm) < 3:
        return lm
    base = _smooth(lm.place[:, [0, 2]], lm.fps)
    far, aside = max(path_length(base), 1.0), _aside(base, _smooth(lm.heading[:, None], lm.fps)[:, 0])
    aside = aside if abs(aside) > ASIDE else 0.0
    return follow(lm, np.array([[0.0, 0.0], [-2 * far * np.sin(aside), 2 * far * np.cos(aside)]]))


def _aside(base: Float[ndarray, "frames 2"], course: Float[ndarray, " frames"]) -> float:
    """How far the body is turned from where it goes, on the whole: 0 for most, half a turn for who goes backwards."""
    step = np.diff(base, axis=0)
    angle = course[:-1] - np.arctan2(step[:, 0], step[:, 1])
    size = np.linalg.norm(step, axis=1)
    return float(np.arctan2((size * np.sin(angle)).sum(), (size * np.cos(angle)).sum()))


def _flipped(R: Float[ndarray, "frames 3 3"]) -> Float[ndarray, "frames 2 2"]:
    """Over the ground, such that `fcb,fc` turns back."""
    return R[:, [0, 2]][:, :, [0, 2]]


def _smooth(values: Float[ndarray, "frames n"], fps: float) -> Float[ndarray, "frames n"]:
    """Without sway; ends go on as they were going."""
    width = min(int(4 * SWAY_SECONDS * fps), len(values) - 1)
    before = 2 * values[:1] - values[width:0:-1]
    after = 2 * values[-1:] - values[-2 : -width - 2 : -1]
    longer = np.concatenate([before, values, after])
    return gaussian_filter1d(longer, SWAY_SECONDS * fps, axis=0, mode="nearest")[width : width + len(values)]


def _pursue(
    points: Float[ndarray, "points 2"], steps: Float[ndarray, " steps"], fps: float
) -> tuple[Float[ndarray, "frames 2"], Float[ndarray, " frames"]]:
    """Places and headings of a walker who makes these steps and aims at a place ahead on the path."""
    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    last = points[-1] - points[-2]
    last = last / np.linalg.norm(last)

    def at(s: float) -> ndarray:
        if s > along[-1]:
            return points[-1] + (s - along[-1]) * last
        return np.array([np.interp(s, along, points[:, 0]), np.interp(s, along, points[:, 1])])

    aim = at(min(LOOK_AHEAD, 0.5 * along[-1])) - points[0]
    place, heading, s = points[0].copy(), float(np.arctan2(aim[0], aim[1])), 0.0
    places, headings = [place.copy()], [heading]
    for step in steps:
        s += step
        # Who is behind or ahead of the point that it should have reached aims at the path all the same.
        way = at(s + LOOK_AHEAD) - place
        wanted = float(np.arctan2(way[0], way[1]))
        most = min(TURN_RATE / fps, TURN_PER_LENGTH * float(step) + 1e-4)
        turn = (wanted - heading + np.pi) % (2 * np.pi) - np.pi
        heading += float(np.clip(turn, -most, most)) if step > 1e-6 else 0.0
        place = place + step * np.array([np.sin(heading), np.cos(heading)])
        s = _nearest(at, place, s)
        places.append(place.copy())
        headings.append(heading)
    smooth = gaussian_filter1d(np.array(headings), 0.08 * fps, mode="nearest")
    return np.array(places), smooth


def _nearest(at, place: Float[ndarray, " 2"], s: float) -> float:
    """The place along the path nearest to where the walker is, looked for near the last one."""
    tries = s + np.linspace(-0.3, 0.3, 7)
    far = [float(np.linalg.norm(at(max(t, 0.0)) - place)) for t in tries]
    return max(float(tries[int(np.argmin(far))]), 0.0)
