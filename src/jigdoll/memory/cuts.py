"""Long takes cut into single actions: where the motion changes, what the text says, and what a check hears.

The check is a small classifier of how a piece moves (speed, height, tilt, what hands and feet do). It learns from takes
of one action, never from the take that it judges. A take of several actions is cut where the actions of its text, in
their order, are heard best; a piece whose own action is not among the first few that are heard is thrown away.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from scipy.ndimage import gaussian_filter1d

from jigdoll.rig.retarget.limb_motion import LimbMotion

SHORTEST, LONGEST = 0.7, 6.0
"""Of a piece [s]."""
STILL = 0.18
"""What moves less than this share of the liveliest moments is a pause before or after the action."""
UNDER_WAY = 0.65
"""A gait that is slower than this share of its usual pace starts or stops."""
GAP_COST = 0.35
"""What a second that belongs to no action costs in log probability."""
FOLDS = 5
HEARD = 4
"""A piece is kept if its action is among so many that are heard first."""
SMOOTHING = 0.25
"""Activity is smoothed over this time [s]."""


@dataclass(frozen=True, eq=False)
class Piece:
    """A stretch of a take."""

    first: int
    last: int
    """The frame after its last."""
    action: str
    rank: int
    """How many actions are heard before its own; -1 where nothing was asked."""


def frame_signs(lm: LimbMotion) -> Float[ndarray, "frames signs"]:
    """What a check looks at in each frame."""
    frames = len(lm)
    rate = lm.fps

    def speed(values: ndarray) -> ndarray:
        if frames < 2:
            return np.zeros(frames)
        return np.linalg.norm(np.gradient(values.reshape(frames, -1), axis=0), axis=1) * rate

    ground = np.stack([lm.place[:, 0], 0 * lm.place[:, 1], lm.place[:, 2]], -1)
    climb = np.gradient(lm.place[:, 1]) * rate if frames > 1 else np.zeros(frames)
    turning = np.gradient(lm.heading) * rate if frames > 1 else np.zeros(frames)
    rows = [
        np.minimum(speed(ground), 6), lm.place[:, 1], np.clip(climb, -3, 3), turning, np.abs(turning),
        lm.root[:, 1, 1], lm.root[:, 1, 2], lm.trunk[:, -1, 1, 1], lm.trunk[:, -1, 1, 2], speed(lm.trunk[:, -1]),
        speed(lm.neck[:, -1]) if lm.neck is not None else np.zeros(frames),
    ]  # fmt: skip
    for kind in ("arm", "leg"):
        tracks = [t for t in lm.limbs if t.limb.kind == kind]
        ends = np.stack([t.end for t in tracks], 1) if tracks else np.zeros((frames, 1, 3))
        speeds = np.stack([np.minimum(speed(t.end), 12) for t in tracks], 1) if tracks else np.zeros((frames, 1))
        rows += [speeds.max(1), speeds.min(1), ends[..., 1].max(1), ends[..., 1].min(1)]
        rows += [ends[..., 2].max(1), ends[..., 2].min(1), np.abs(ends[..., 0]).mean(1)]
    stands = np.stack([t.contact for t in lm.limbs if t.limb.kind == "leg"] or [np.zeros(frames, bool)], 1)
    rows += [stands.mean(1), ~stands.any(1)]
    return np.stack([np.asarray(row, float) for row in rows], -1)


def signature(signs: Float[ndarray, "frames signs"]) -> Float[ndarray, " values"]:
    """How a stretch moves, in a few numbers: means, spreads, extremes, and from where to where."""
    count = max(len(signs) // 5, 1)
    change = signs[-count:].mean(0) - signs[:count].mean(0)
    return np.concatenate([signs.mean(0), signs.std(0), signs.max(0), signs.min(0), change])


class Check:
    """Hears what a stretch of a person's motion shows: logistic regression on signatures."""

    def __init__(self, names: Sequence[str], mean: ndarray, scale: ndarray, weights: ndarray) -> None:
        self.names, self.mean, self.scale, self.weights = tuple(names), mean, scale, weights

    def log_shares(self, signatures: Float[ndarray, "stretches values"]) -> Float[ndarray, "stretches actions"]:
        """The log probability of each action."""
        x = np.clip((signatures - self.mean) / self.scale, -4, 4)
        scores = np.concatenate([x, np.ones((len(x), 1))], 1) @ self.weights
        scores -= scores.max(1, keepdims=True)
        return scores - np.log(np.exp(scores).sum(1, keepdims=True))


def learn_check(signatures: Float[ndarray, "takes values"], actions: Sequence[str], *, steps: int = 300) -> Check:
    """A check from signatures of takes that show one action each; every action counts alike."""
    names = sorted(set(actions))
    truth = np.array([names.index(action) for action in actions])
    mean, scale = signatures.mean(0), signatures.std(0) + 1e-3
    x = np.clip((signatures - mean) / scale, -4, 4)
    x = np.concatenate([x, np.ones((len(x), 1))], 1)
    weight = 1 / np.sqrt(np.bincount(truth, minlength=len(names))[truth])
    weight = weight / weight.sum()
    W, velocity = np.zeros((x.shape[1], len(names))), 0.0
    goal = np.eye(len(names))[truth]
    for _ in range(steps):
        scores = x @ W
        share = np.exp(scores - scores.max(1, keepdims=True))
        share /= share.sum(1, keepdims=True)
        gradient = x.T @ ((share - goal) * weight[:, None]) + 2e-3 * W
        velocity = 0.9 * velocity - 0.3 * gradient
        W = W + velocity
    return Check(names, mean, scale, W)


def fold_of(source: str) -> int:
    """Which fifth of the takes a source belongs to: those of one actor stay together."""
    return sum(source.split("_", maxsplit=1)[0].encode()) % FOLDS


def activity(lm: LimbMotion) -> Float[ndarray, " frames"]:
    """How much happens in each frame."""
    ends = [t.end for t in lm.limbs] or [lm.trunk.reshape(len(lm), -1)]
    values = np.concatenate([*ends, 2 * lm.place[:, 1:2], 0.5 * lm.root[:, :, 1]], 1)
    if len(lm) < 3:
        return np.zeros(len(lm))
    return gaussian_filter1d(np.linalg.norm(np.gradient(values, axis=0), axis=1) * lm.fps, SMOOTHING * lm.fps)


def trimmed(lm: LimbMotion, first: int, last: int) -> tuple[int, int]:
    """A stretch without the pauses before and after what happens in it, but for a breath."""
    lively = activity(lm)[first:last]
    loud = np.flatnonzero(lively > STILL * np.percentile(lively, 95))
    if not len(loud):
        return first, last
    breath = round(0.2 * lm.fps)
    return max(first + int(loud[0]) - breath, first), min(first + int(loud[-1]) + breath + 1, last)


def marks(lm: LimbMotion, *, most: int = 28) -> Int[ndarray, " marks"]:
    """Frames at which an action may end: both ends, and where little happens or the way of moving changes."""
    lively = activity(lm)
    signs = frame_signs(lm)
    z = gaussian_filter1d((signs - signs.mean(0)) / (signs.std(0) + 0.1), 0.3 * lm.fps, axis=0)
    change = np.linalg.norm(np.gradient(z, axis=0), axis=1)
    worth = change / (change.max() + 1e-9) - lively / (lively.max() + 1e-9)
    inner = [f for f in range(2, len(lm) - 2) if worth[f] >= worth[max(f - 4, 0) : f + 5].max()]
    inner = sorted(sorted(inner, key=lambda f: -worth[f])[: most - 2])
    return np.array([0, *inner, len(lm)])


def aligned(lm: LimbMotion, actions: Sequence[str], check: Check) -> list[Piece]:
    """The take cut into its actions, in their order, where they are heard best; what is not heard is left out."""
    cuts, signs, fps = marks(lm), frame_signs(lm), lm.fps
    known = [check.names.index(action) if action in check.names else -1 for action in actions]
    pairs = [
        (i, j)
        for i in range(len(cuts))
        for j in range(i + 1, len(cuts))
        if SHORTEST * fps <= cuts[j] - cuts[i] <= 2 * LONGEST * fps
    ]
    if not pairs:
        return []
    shares = check.log_shares(np.stack([signature(signs[cuts[i] : cuts[j]]) for i, j in pairs]))
    heard = {pair: shares[k] for k, pair in enumerate(pairs)}
    best = _best_path(cuts, heard, known, fps)
    pieces = []
    for (i, j), action, place in zip(best, actions, known, strict=False):
        if place < 0:
            continue
        rank = int((heard[i, j] > heard[i, j][place]).sum())
        first, last = trimmed(lm, int(cuts[i]), int(cuts[j]))
        if last - first >= SHORTEST * fps:
            pieces.append(Piece(first, min(last, first + round(LONGEST * fps)), action, rank))
    return pieces


def _best_path(
    cuts: Int[ndarray, " marks"], heard: dict[tuple[int, int], ndarray], known: Sequence[int], fps: float
) -> list[tuple[int, int]]:
    """The stretches of the actions, one each, in order, that are heard best; time between them costs a little."""
    count = len(cuts)
    score = -GAP_COST * (cuts - cuts[0]) / fps
    back: list[dict[int, tuple[int, int]]] = []
    for place in known:
        new, came = np.full(count, -np.inf), {}
        for (i, j), shares in heard.items():
            value = score[i] + (max(float(shares[place]), -8.0) if place >= 0 else -4.0)
            if value > new[j]:
                new[j], came[j] = value, (i, j)
        for j in range(1, count):  # a pause after it
            waited = new[j - 1] - GAP_COST * (cuts[j] - cuts[j - 1]) / fps
            if waited > new[j]:
                new[j], came[j] = waited, came[j - 1]
        score = new
        back.append(came)
    out, j = [], count - 1
    for came in reversed(back):
        if j not in came:
            return []
        out.append(came[j])
        j = came[j][0]
    return out[::-1]


def single(lm: LimbMotion, action: str, check: Check | None, *, steady: bool, most: int = 2) -> list[Piece]:
    """The pieces of a take that shows one action: its steadiest stretch, or the stretches where it is heard best."""
    longest = round(LONGEST * lm.fps)
    first, last = trimmed(lm, 0, len(lm))
    if steady:
        first, last = _under_way(lm, first, last)
        if last - first > longest:
            first = _steadiest(lm, first, last, longest)
            last = first + longest
        return [Piece(first, last, action, -1)]
    signs = frame_signs(lm)
    place = check.names.index(action) if check is not None and action in check.names else -1

    def rank(a: int, b: int) -> int:
        if check is None or place < 0:
            return -1
        shares = check.log_shares(signature(signs[a:b])[None])[0]
        return int((shares > shares[place]).sum())

    if last - first <= longest:
        return [Piece(first, last, action, rank(first, last))]
    cuts = marks(lm)
    found = []
    for i, a in enumerate(cuts):
        for b in cuts[i + 1 :]:
            if 1.2 * lm.fps <= b - a <= longest:
                start, end = trimmed(lm, int(a), int(b))
                if end - start >= SHORTEST * lm.fps:
                    found.append((rank(start, end), -(end - start), start, end))
    taken: list[Piece] = []
    for heard, _, a, b in sorted(found):
        if all(b <= piece.first or a >= piece.last for piece in taken):
            taken.append(Piece(a, b, action, heard))
        if len(taken) == most:
            break
    return taken


def _under_way(lm: LimbMotion, first: int, last: int) -> tuple[int, int]:
    """The longest stretch in which a gait is under way: neither starting nor stopping."""
    if last - first < 2 * SHORTEST * lm.fps:
        return first, last
    step = np.linalg.norm(np.gradient(lm.place[first:last, [0, 2]], axis=0), axis=1)
    pace = gaussian_filter1d(step, 0.35 * lm.fps, mode="nearest")
    flags = np.concatenate([[0], (pace > UNDER_WAY * np.percentile(pace, 80)).astype(int), [0]])
    edges = np.diff(flags)
    runs = list(zip(np.flatnonzero(edges == 1), np.flatnonzero(edges == -1), strict=True))
    a, b = max(runs, key=lambda run: run[1] - run[0], default=(0, last - first))
    return (first + int(a), first + int(b)) if b - a >= SHORTEST * lm.fps else (first, last)


def _steadiest(lm: LimbMotion, first: int, last: int, frames: int) -> int:
    """The first frame of the stretch with the steadiest pace."""
    pace = np.linalg.norm(np.diff(lm.place[:, [0, 2]], axis=0), axis=1)
    turning = np.abs(np.diff(lm.heading))
    starts = range(first, last - frames + 1, 3)
    return max(
        starts, key=lambda s: float(pace[s : s + frames - 1].min() + pace[s : s + frames - 1].mean())
        - 2 * float(turning[s : s + frames - 1].mean())
    )  # fmt: skip
