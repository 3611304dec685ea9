"""Joints on a centre line: straight bones that follow it, in the shares that animals have."""

from dataclasses import dataclass

import numpy as np

Array = np.ndarray
MIRROR = np.array([-1.0, 1.0, 1.0])

_FOLLOW = 0.02
"""How far a bone may leave the centre line, in shares of the limb's length."""
_LOOSE = 0.06
"""How far a joint may lie from its usual share."""


@dataclass(frozen=True)
class PlacedJoint:
    """A joint before it becomes part of a skeleton."""

    name: str
    parent: str | None
    point: tuple[float, float, float]


class JointTree:
    """Joints in the order in which they were added: parents first."""

    def __init__(self) -> None:
        self.joints: list[PlacedJoint] = []

    def add(self, name: str, parent: str | None, point: Array) -> str:
        self.joints.append(joint_at(name, parent, point))
        return name

    def chain(self, names: list[str], parent: str, points: Array) -> str:
        for name, point in zip(names, points, strict=True):
            parent = self.add(name, parent, point)
        return parent

    def point(self, name: str) -> Array:
        return np.array(next(joint.point for joint in self.joints if joint.name == name))


def joint_at(name: str, parent: str | None, point: Array) -> PlacedJoint:
    x, y, z = (float(c) for c in point)
    return PlacedJoint(name, parent, (x, y, z))


def along(line: Array, styles: dict[str, tuple[float, ...]]) -> Array:
    """The joints on a centre line: ends fixed, those between where straight bones fit it and the shares are usual."""
    line = resampled(line, 49)
    n = len(line) - 1
    length = np.linalg.norm(np.diff(line, axis=0), axis=1).sum()
    gap = _chord_errors(line) / (n * (_FOLLOW * length) ** 2)
    inner = np.arange(1, n)
    best, chosen = np.inf, (n // 3, 2 * n // 3)
    for shares in styles.values():
        wish = [((inner / n - share) / _LOOSE) ** 2 / len(shares) for share in shares]
        # Cheapest way through the joints in order, one after the other.
        total = gap[0, inner] + wish[0]
        before = []
        for k in range(1, len(shares)):
            step = total[:, None] + gap[np.ix_(inner, inner)]
            step[np.tril_indices(len(inner))] = np.inf
            before.append(step.argmin(0))
            total = step.min(0) + wish[k]
        total = total + gap[inner, n]
        end = int(total.argmin())
        if total[end] < best:
            picks = [end]
            for table in reversed(before):
                picks.append(int(table[picks[-1]]))
            best, chosen = float(total[end]), tuple(int(inner[p]) for p in reversed(picks))
    return line[[0, *chosen, n]]


def _chord_errors(line: Array) -> Array:
    """[n n] sum of squared distances of the points between i and j from the straight bone i-j."""
    n = len(line)
    errors = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 2, n):
            bone = line[j] - line[i]
            rest = line[i + 1 : j] - line[i]
            t = np.clip(rest @ bone / (bone @ bone + 1e-12), 0, 1)
            errors[i, j] = np.square(rest - t[:, None] * bone).sum()
    return errors


def resampled(line: Array, count: int) -> Array:
    """The same line with points at equal distances."""
    step = np.r_[0.0, np.cumsum(np.linalg.norm(np.diff(line, axis=0), axis=1))]
    where = np.linspace(0, step[-1], count)
    return np.stack([np.interp(where, step, line[:, k]) for k in range(3)], 1)
