"""The middle line of a body: back bone, neck, head, trunk and tail."""

import numpy as np

from jigdoll.rig.autorig.bones import MIRROR, JointTree, along, resampled
from jigdoll.rig.autorig.curve import Branch, Curve
from jigdoll.rig.autorig.solid import Solid
from jigdoll.rig.autorig.template import BodyPlan

Array = np.ndarray

_HEAD_SHARES = (0.5, 0.65, 0.8)
"""Where the head begins on the way from the chest to its tip: for short, middling and long necks."""
_LIFT = 0.22
"""How far a back bone lies above the middle of the trunk, in parts of the trunk's half thickness."""


class Trunk:
    """The axis of the body on the mirror plane, from the rump to the tip of the head, by arc length."""

    def __init__(self, solid: Solid, curve: Curve, plan: BodyPlan) -> None:
        head = plan.head.curve if plan.head is not None else _front_line(solid, curve, plan)
        line = np.concatenate([_rear_line(curve, plan)[:-1], head[::-1]])
        line = line * (0, 1, 1)
        line = line[np.r_[True, np.linalg.norm(np.diff(line, axis=0), axis=1) > 1e-9]]
        for _ in range(3):
            line[1:-1] = 0.25 * line[:-2] + 0.5 * line[1:-1] + 0.25 * line[2:]
        self.line = line
        self.arc = np.r_[0.0, np.cumsum(np.linalg.norm(np.diff(line, axis=0), axis=1))]
        slope = np.gradient(line, axis=0)
        level = np.abs(slope[:, 2]) / (np.linalg.norm(slope, axis=1) + 1e-12)
        # A back bone lies above the middle of a level trunk.
        self.lift = np.minimum(_LIFT * solid.depth_at(line), 0.03 * solid.length) * level
        self.head_base = self.nearest(plan.head.base) if plan.head is not None else 0.8 * float(self.arc[-1])

    @property
    def end(self) -> float:
        return float(self.arc[-1])

    def at(self, s: float) -> Array:
        return np.array([np.interp(s, self.arc, self.line[:, k]) for k in range(3)])

    def back(self, s: float) -> Array:
        """The back bone there."""
        return self.at(s) + np.array([0.0, np.interp(s, self.arc, self.lift), 0.0])

    def nearest(self, point: Array) -> float:
        flat = (self.line - point) * (0, 1, 1)
        return float(self.arc[int(np.linalg.norm(flat, axis=1).argmin())])


def _rear_line(curve: Curve, plan: BodyPlan) -> Array:
    """From the rump to the middle of the body."""
    if plan.tail is not None:
        return plan.tail.curve[plan.tail.own :]
    if plan.legs:
        hind = plan.legs[-1]
        lines = [resampled(b.curve[b.own :], 40) for b in hind.branches]
        return 0.5 * (lines[0] + lines[1] * MIRROR)
    return curve.center[None] + np.array([[0.0, 0.0, -1e-3], [0.0, 0.0, 0.0]])


def _front_line(solid: Solid, curve: Curve, plan: BodyPlan) -> Array:
    """A straight line to the front of a body whose head does not stand out."""
    voxels = solid.points(np.argwhere(solid.filled))
    voxels = voxels[np.abs(voxels[:, 0]) < 1.5 * solid.size]
    arrow = np.array([0.0, 1.0, 0.15]) if plan.template == "biped" else np.array([0.0, 0.3, 1.0])
    tip = voxels[(voxels @ arrow).argmax()]
    return np.linspace(tip, curve.center, 30)


def trunk_ends(
    trunk: Trunk, plan: BodyPlan, legs: list[Array], arms: Array | None, wings: Array | None, solid: Solid
) -> tuple[float, float]:
    """Where on the trunk the pelvis and the chest lie."""
    pelvis = trunk.nearest(legs[-1][0]) if legs else 0.35 * trunk.head_base
    if len(legs) == 1:
        pelvis += 0.015 * solid.length
    front = [limb[0] for limb in (arms, wings) if limb is not None] + ([legs[0][0]] if len(legs) > 1 else [])
    if front:
        chest = trunk.nearest(np.mean(front, axis=0))
        chest -= (0.15 if plan.template == "biped" else 0.05) * (chest - pelvis)
    else:
        chest = pelvis + 0.65 * (trunk.head_base - pelvis)
    return pelvis, max(chest, pelvis + 0.04 * solid.length)


def add_head(tree: JointTree, trunk: Trunk, plan: BodyPlan, chest: float, necks: int, solid: Solid) -> None:
    """Neck, head, the tip of the head, and the trunk of an elephant."""
    start = tree.point("chest")
    inner = trunk.line[trunk.arc > chest]
    tip = _head_tip(plan, trunk)
    # The way may lead on to a horn or an ear: leave it where it passes the snout.
    stop = int(np.linalg.norm(inner - tip, axis=1).argmin()) if len(inner) else 0
    line = resampled(np.concatenate([start[None], inner[:stop], tip[None]]), 65)
    hangs = _hanging_from(line, solid)
    hose = line[hangs:]
    line = line[: hangs + 1]
    starts = _neck_ends(line, solid)
    styles = {f"{h}": (*(h * (k + 1) / (necks + 1) for k in range(necks)), h) for h in starts}
    joints = along(line, styles)[1:]
    tree.chain([f"neck_{k + 1}" for k in range(necks)] + ["head", "head_tip"], "chest", joints)
    if len(hose) > 1:
        names = [f"trunk_{k + 1}" for k in range(4)] + ["trunk_tip"]
        tree.chain(names, "head", resampled(hose, 6)[1:])


def _neck_ends(line: Array, solid: Solid) -> tuple[float, ...]:
    """Where the head may begin, in shares of the way to its tip: at the narrowest place of a neck that shows one."""
    line = resampled(line, 65)
    thick = solid.depth_at(line)
    narrow = 13 + int(thick[13:49].argmin())
    if thick[narrow] < 0.75 * thick[narrow:].max() and thick[narrow] < 0.75 * thick[:narrow].max():
        return (narrow / 64 + 0.02,)
    return _HEAD_SHARES


def _hanging_from(line: Array, solid: Solid) -> int:
    """Where a trunk begins that hangs down from the face by more than a fifth of the body; the end where none does."""
    slope = np.diff(line[:, 1]) / (np.linalg.norm(np.diff(line, axis=0), axis=1) + 1e-12)
    # The longest steep descent; the tip of a trunk may curl up again.
    breaks = np.flatnonzero(np.r_[True, slope > -0.7, True])
    k = int(np.diff(breaks).argmax())
    first, last = int(breaks[k]), int(breaks[k + 1]) - 1
    return first if first > 0 and line[first, 1] - line[last, 1] > 0.2 * solid.length else len(line) - 1


def _head_tip(plan: BodyPlan, trunk: Trunk) -> Array:
    """The snout of a beast, the crown of someone upright with a flat face."""
    if plan.head is None:
        return trunk.line[-1]
    voxels = plan.head.voxels[np.abs(plan.head.voxels[:, 0]) < 0.35 * np.abs(plan.head.voxels[:, 0]).max() + 1e-6]
    if plan.template == "biped":
        # Upright, what is foremost may be the breast.
        voxels = voxels[voxels[:, 1] > voxels[:, 1].min() + 0.4 * np.ptp(voxels[:, 1])]
    snout = voxels[voxels[:, 2] >= np.quantile(voxels[:, 2], 0.994)].mean(0)
    if plan.template == "biped":
        crown = voxels[voxels[:, 1] >= np.quantile(voxels[:, 1], 0.985)].mean(0)
        face = voxels[np.abs(voxels[:, 1] - snout[1]) < 0.1 * np.ptp(voxels[:, 1])]
        middle, nape = np.median(face[:, 2]), np.quantile(face[:, 2], 0.02)
        if snout[2] - middle < 1.2 * (middle - nape):
            return crown * (0, 1, 1)
    return snout * (0, 1, 1)


def add_tail(tree: JointTree, trunk: Trunk, tail: Branch, root: float, count: int) -> None:
    """Joints at equal distances from the root of the tail, a little behind the pelvis, to its tip."""
    inside = np.array([trunk.at(s) for s in np.linspace(root, 0.0, 12)[:-1]]) if root > 0 else np.zeros((0, 3))
    line = np.concatenate([inside, tail.curve[: tail.own + 1][::-1]]) * (0, 1, 1)
    points = resampled(line, count + 1)
    tree.chain([f"tail_{k + 1}" for k in range(count)] + ["tail_tip"], "pelvis", points)
