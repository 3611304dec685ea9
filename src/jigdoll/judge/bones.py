"""Whether bones run into each other, and whether joints stay within their limits."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray

from jigdoll.judge.anatomy import Body, remembered, study
from jigdoll.judge.trace import Trace
from jigdoll.kinematics import rest_transforms
from jigdoll.math.segments import segment_distances
from jigdoll.rig.limits import with_default_limits
from jigdoll.types import Motion, RiggedAsset, Skeleton
from jigdoll.validators.joints import limit_excess

THIN = 0.5
"""A bone's capsule has this share of the middle distance between the bone and its skin."""
SHORT = 0.02
"""Bones shorter than this are left out [body lengths]."""
RELATED = 1
"""Bones whose joints are at most so many steps apart in the tree may touch."""
EXCESS = np.radians(2.0)
"""Limits may be overstepped this far [rad]."""


@dataclass(frozen=True, eq=False)
class Capsules:
    """The bones of the limbs as capsules, and which pairs must not meet."""

    heads: Int[ndarray, " bones"]
    tails: Int[ndarray, " bones"]
    radii: Float[ndarray, " bones"]
    """[m]."""
    pairs: Int[ndarray, "pairs 2"]
    rest: Float[ndarray, " pairs"]
    """How deep each pair overlaps at rest already [m]."""


def self_intersection(asset: RiggedAsset, trace: Trace, length: float) -> float:
    """How deep two bones run into each other at worst, beyond what the rest pose has [body lengths]."""
    capsules = _capsules(asset)
    if not len(capsules.pairs):
        return 0.0
    depth = _overlap(capsules.heads, capsules.tails, capsules.radii, capsules.pairs, trace.joints)
    return max(0.0, float((depth - capsules.rest).max())) / length


def limit_violations(skeleton: Skeleton, motion: Motion) -> tuple[float, float]:
    """The share of joints and frames beyond the limits, and the largest excess [rad].

    A skeleton of a file that knows no limits is held to the default ones of its roles.
    """
    skeleton = _limited(skeleton)
    excess = limit_excess(skeleton, motion.pose).detach()[:, 1:]
    if not excess.numel():
        return 0.0, 0.0
    return float((excess > EXCESS).float().mean()), float(excess.max())


def _limited(skeleton: Skeleton) -> Skeleton:
    free = bool((skeleton.limits.abs() > 3.1).all())
    return with_default_limits(skeleton) if free and len(skeleton) > 1 else skeleton


@remembered
def _capsules(asset: RiggedAsset) -> Capsules:
    """Bones along the limbs, as thick as their skin allows."""
    body, skeleton = study(asset), asset.skeleton
    joints = rest_transforms(skeleton)[:, :3, 3].detach().double().numpy()
    bones = sorted({pair for limb in body.limbs for pair in zip(limb.joints[:-1], limb.joints[1:], strict=True)})
    bones = [(a, b) for a, b in bones if np.linalg.norm(joints[a] - joints[b]) > SHORT * body.length]
    heads, tails = (np.array([bone[end] for bone in bones], np.int64) for end in (0, 1))
    radii = np.array([_radius(asset, body, joints, a, b) for a, b in bones])
    near = _steps_apart(skeleton)
    pairs = [
        (i, k)
        for i in range(len(bones))
        for k in range(i)
        if min(near[a, b] for a in bones[i] for b in bones[k]) > RELATED
    ]
    pairs_array = np.array(pairs, np.int64).reshape(-1, 2)
    rest = np.maximum(_overlap(heads, tails, radii, pairs_array, joints[None]), 0)[0]
    return Capsules(heads, tails, radii, pairs_array, rest)


def _radius(asset: RiggedAsset, body: Body, joints: Float[ndarray, "joints 3"], head: int, tail: int) -> float:
    """From the skin that the bone's joint moves."""
    skin = asset.mesh.vertices.detach().double().numpy()[body.owners == head]
    if not len(skin):
        return 0.0
    way = joints[tail] - joints[head]
    share = np.clip((skin - joints[head]) @ way / max(float(way @ way), 1e-12), 0, 1)
    return THIN * float(np.median(np.linalg.norm(skin - joints[head] - share[:, None] * way, axis=1)))


def _steps_apart(skeleton: Skeleton) -> Int[ndarray, "joints joints"]:
    """How many bones lie between two joints."""
    count = len(skeleton)
    steps = np.zeros((count, count), np.int64)
    for joint in range(1, count):
        parent = skeleton.parents[joint]
        steps[joint, :joint] = steps[:joint, joint] = steps[parent, :joint] + 1
    return steps


def _overlap(
    heads: Int[ndarray, " bones"],
    tails: Int[ndarray, " bones"],
    radii: Float[ndarray, " bones"],
    pairs: Int[ndarray, "pairs 2"],
    joints: Float[ndarray, "frames joints 3"],
) -> Float[ndarray, "frames pairs"]:
    """Radii minus the distance of the two segments [m]: positive where the capsules overlap."""
    bones = torch.from_numpy(np.stack([joints[:, heads], joints[:, tails]], 2))
    i, k = pairs[:, 0], pairs[:, 1]
    return radii[i] + radii[k] - segment_distances(bones[:, i], bones[:, k]).numpy()
