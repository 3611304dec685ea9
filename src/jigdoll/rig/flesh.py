"""What the skin says about the joints under it: how much they move, where their flesh is, what is a thin sheet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from scipy.spatial import KDTree

from jigdoll.kinematics import rest_transforms
from jigdoll.types import RiggedAsset

FEW = 4
"""Fewer vertices than this say nothing about a bone."""
NEAR = 0.06
"""A point nearer than this to the skin is near the flesh [body sizes]."""
THIN, _WIDE = 0.34, 0.2
"""A sheet is thinner than this share of its width, and wider than this share of its length."""
_COMPASS = np.array([[x, y, z] for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1) if x or y or z], float)
"""The directions in which the outline of a piece of flesh is kept."""


@dataclass(frozen=True, eq=False)
class Outline:
    """The shape of the flesh of each joint; it moves with the joint."""

    flatness: Float[ndarray, " joints"]
    """How thick the flesh is as a share of its width: 0 is a sheet; 1 where it is round, a thread, or none."""
    points: Float[ndarray, "joints 26 3"]
    """The outermost points of the flesh in the joint's own frame [m]; not a number where a joint carries none."""

    def of(self, joints: Sequence[int]) -> "Outline":
        """The outline of these joints in this order; -1 is a joint without flesh."""
        own = np.array(joints)
        bare = own < 0
        return Outline(np.where(bare, 1.0, self.flatness[own]), np.where(bare[:, None, None], np.nan, self.points[own]))


@dataclass(frozen=True, eq=False)
class Flesh:
    """What each joint carries."""

    owners: Int[ndarray, " vertices"]
    """The joint that moves each vertex most."""
    weight: Float[ndarray, " joints"]
    """How much skin each joint moves, in vertices."""
    near: Bool[ndarray, " joints"]
    """Whether the joint lies in or near the skin."""
    tips: Mapping[int, Float[ndarray, " 3"]]
    """Where the flesh of each joint that carries some ends, away from the body [m], world."""
    outline: Outline

    @property
    def sheets(self) -> Bool[ndarray, " joints"]:
        """Whether the flesh is a thin sheet: a wing, a fin, a ribbon."""
        return self.outline.flatness < THIN


def owners_of(asset: RiggedAsset) -> Int[ndarray, " vertices"]:
    """The joint that moves each vertex most."""
    strongest = asset.weights.values.argmax(1, keepdim=True)
    return asset.weights.joints.long().gather(1, strongest)[:, 0].numpy()


def flesh_of(asset: RiggedAsset) -> Flesh:
    """Measure the skin at rest."""
    skeleton, joints = asset.skeleton, len(asset.skeleton)
    T = rest_transforms(skeleton).detach().double().numpy()
    P = T[:, :3, 3]
    vertices = asset.mesh.vertices.detach().double().numpy()
    owners = owners_of(asset)
    weight = asset.weights.dense(joints).sum(0).double().numpy()
    size = float(np.ptp(vertices, axis=0).max()) if len(vertices) else float(np.ptp(P, axis=0).max())
    near = np.zeros(joints, bool)
    if len(vertices):
        near = KDTree(vertices).query(P)[0] < NEAR * size
    tips: dict[int, ndarray] = {}
    flatness = np.ones(joints)
    points = np.full((joints, len(_COMPASS), 3), np.nan)
    order = np.argsort(owners, kind="stable")
    starts = np.searchsorted(owners[order], np.arange(joints + 1))
    for joint in range(joints):
        mine = vertices[order[starts[joint] : starts[joint + 1]]]
        if len(mine) < FEW:
            continue
        parent = skeleton.parents[joint]
        on_line = bool(abs(P[joint, 0]) < 0.02 * size)
        tips[joint] = _tip(mine, P[joint], P[parent] if parent >= 0 else None, middle=on_line)
        flatness[joint] = _flatness(mine)
        outermost = mine[(mine @ _COMPASS.T).argmax(0)]
        points[joint] = (outermost - P[joint]) @ T[joint, :3, :3]
    return Flesh(owners, weight, near, tips, Outline(flatness, points))


def _tip(
    mine: Float[ndarray, "points 3"],
    joint: Float[ndarray, " 3"],
    parent: Float[ndarray, " 3"] | None,
    *,
    middle: bool,
) -> Float[ndarray, " 3"]:
    """The far end of a bone's flesh, seen from the joint; on along the bone where the flesh lies around the joint."""
    way = mine.mean(0) - joint
    radius = float(np.linalg.norm(mine - mine.mean(0), axis=1).mean())
    if parent is not None and np.linalg.norm(way) < 0.35 * radius and np.linalg.norm(joint - parent) > 1e-9:
        way = joint - parent
    if middle:  # one ear must not pull the tip of a head aside
        way = way * [0.0, 1.0, 1.0]
    length = float(np.linalg.norm(way))
    if length < 1e-9:
        way, length = np.array([0.0, 1.0, 0.0]), 1.0
    way = way / length
    return joint + way * max(float(np.quantile((mine - joint) @ way, 0.95)), 1e-4)


def _flatness(mine: Float[ndarray, "points 3"]) -> float:
    """How thick a cloud of points is as a share of its width; 1 for a thread, which has no width."""
    spread = np.linalg.svd(mine - mine.mean(0), compute_uv=False)
    return float(spread[2] / spread[1]) if spread[1] > _WIDE * spread[0] else 1.0
