"""Bones with their flesh, and skin that is followed: what says whether one part of a body is inside another."""

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from torch import Tensor

from jigdoll.math.segments import closest_on_segments
from jigdoll.rig.anatomy import Anatomy
from jigdoll.rig.flesh import FEW
from jigdoll.types import Skeleton

POINTS_PER_JOINT = 6
"""Skin points that are followed for each joint that carries flesh."""
MOST_POINTS = 384
"""Skin points of a whole body."""
KNOTS = 3
"""Places along a bone at which its flesh is measured: both ends and the middle."""
INSIDE = 0.3
"""The flesh reaches at least this quantile of the skin's distance from the bone: a box counts as a slim cylinder."""
KIN = 1.5
"""Flesh whose bones are nearer to each other along the tree than this multiple of their radii may touch."""


def fleshed_bones(
    anatomy: Anatomy,
) -> tuple[Int[ndarray, " bones"], Float[ndarray, "bones 2 3"], Float[ndarray, "bones knots"]]:
    """Every bone with flesh around it: its joint, its ends at rest (world) and how far its flesh reaches."""
    P, children = anatomy.T_rest[:, :3, 3], anatomy.skeleton.children
    vertices = anatomy.asset.mesh.vertices.detach().double().numpy()
    joints, ends, radii = [], [], []
    for joint in range(len(P)):
        mine = vertices[anatomy.owners == joint] if len(vertices) else vertices
        kids = [kid for kid in children[joint] if np.linalg.norm(P[kid] - P[joint]) > 1e-3 * anatomy.body_length]
        if len(mine) < FEW or not kids or anatomy.sheets[joint]:
            continue
        own = np.stack([np.stack([P[joint], P[kid]]) for kid in kids])
        share, gap = (x.numpy() for x in closest_on_segments(torch.tensor(mine)[:, None], torch.tensor(own)[None]))
        nearest = gap.argmin(1)
        for place, segment in enumerate(own):
            near = nearest == place
            if near.sum() >= FEW:
                joints.append(joint)
                ends.append(segment)
                radii.append(_profile(share[near, place], gap[near, place]))
    if not joints:
        return np.zeros(0, np.int64), np.zeros((0, 2, 3)), np.zeros((0, KNOTS))
    return np.array(joints), np.stack(ends), np.stack(radii)


def _profile(share: Float[ndarray, " points"], gap: Float[ndarray, " points"]) -> Float[ndarray, " knots"]:
    """How far the flesh reaches at each knot: a low quantile of the skin near it, of all skin where there is none."""
    everywhere, found = float(np.quantile(gap, INSIDE)), []
    for place in np.linspace(0, 1, KNOTS):
        near = gap[np.abs(share - place) <= 0.5 / (KNOTS - 1)]
        found.append(float(np.quantile(near, INSIDE)) if len(near) >= FEW else everywhere)
    return np.array(found)


def spread_points(anatomy: Anatomy) -> Int[ndarray, " points"]:
    """Vertices far from each other on the flesh of every joint, the outermost first; joints where there is none."""
    vertices = anatomy.asset.mesh.vertices.detach().double().numpy()
    if not len(vertices):
        return -1 - np.arange(len(anatomy.skeleton))
    carriers = [joint for joint in range(len(anatomy.skeleton)) if (anatomy.owners == joint).any()]
    count = max(2, min(POINTS_PER_JOINT, MOST_POINTS // len(carriers)))
    chosen: list[int] = []
    for joint in carriers:
        mine = np.flatnonzero(anatomy.owners == joint)
        gap = -np.linalg.norm(vertices[mine] - vertices[mine].mean(0), axis=1)
        taken = [int(gap.argmin())]
        apart = np.linalg.norm(vertices[mine] - vertices[mine[taken[0]]], axis=1)
        while len(taken) < min(count, len(mine)) and apart.max() > 0:
            taken.append(int(apart.argmax()))
            apart = np.minimum(apart, np.linalg.norm(vertices[mine] - vertices[mine[taken[-1]]], axis=1))
        chosen += mine[taken].tolist()
    return np.array(chosen)


def related(
    skeleton: Skeleton,
    P: Float[ndarray, "joints 3"],
    owners: Int[ndarray, " points"],
    bones: Int[ndarray, " bones"],
    radii: Float[ndarray, "bones knots"],
) -> Bool[ndarray, "points bones"]:
    """Which skin belongs to the neighbourhood of which bone: next in the tree, or near along it."""
    steps, way = tree_distances(skeleton, P)
    thick = np.zeros(len(skeleton))
    np.maximum.at(thick, bones, radii.max(1, initial=0.0))
    near = way[np.ix_(owners, bones)] < KIN * (thick[owners][:, None] + thick[bones])
    return near | (steps[np.ix_(owners, bones)] <= 1)


def tree_distances(
    skeleton: Skeleton, P: Float[ndarray, "joints 3"]
) -> tuple[Int[ndarray, "joints joints"], Float[ndarray, "joints joints"]]:
    """How many bones lie between two joints, and how long the way along them is [m]."""
    count = len(skeleton)
    steps, way = np.zeros((count, count), np.int64), np.zeros((count, count))
    for joint in range(1, count):
        parent = skeleton.parents[joint]
        steps[joint, :joint] = steps[:joint, joint] = steps[parent, :joint] + 1
        way[joint, :joint] = way[:joint, joint] = way[parent, :joint] + np.linalg.norm(P[joint] - P[parent])
    return steps, way


def flesh_at(
    share: Float[Tensor, "*batch bones"], radii: Float[Tensor, "bones knots"]
) -> Float[Tensor, "*batch bones"]:
    """The radius of the flesh at a share of the way along each bone: straight lines between its knots."""
    at = share * (radii.shape[1] - 1)
    left = at.detach().floor().long().clamp(0, radii.shape[1] - 2)
    rows = radii.expand(*share.shape, radii.shape[1])
    low, high = rows.gather(-1, left[..., None])[..., 0], rows.gather(-1, left[..., None] + 1)[..., 0]
    return low + (at - left) * (high - low)
