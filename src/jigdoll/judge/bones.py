"""Whether bones run into each other, joints stay within their limits, and poses are what real bodies do."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray

from jigdoll.judge.anatomy import JudgedBody
from jigdoll.judge.trace import Trace
from jigdoll.math.segments import closest_on_segments, segment_distances
from jigdoll.rig.fleshed_bones import tree_distances
from jigdoll.rig.remember import remembered
from jigdoll.types import Motion, Pose, Skeleton
from jigdoll.validators import VALIDATORS, ValidatedBody, check, prepare
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


def self_intersection(body: JudgedBody, trace: Trace) -> float:
    """How deep two bones run into each other at worst, beyond what the rest pose has [body lengths]."""
    capsules = _capsules(body)
    if not len(capsules.pairs):
        return 0.0
    depth = _overlap(capsules.heads, capsules.tails, capsules.radii, capsules.pairs, trace.joints)
    return max(0.0, float((depth - capsules.rest).max())) / body.length


def limit_violations(skeleton: Skeleton, motion: Motion) -> tuple[float, float]:
    """The share of joints and frames beyond the limits, and the largest excess [rad]."""
    excess = limit_excess(skeleton, motion.pose).detach()[:, 1:]
    if not excess.numel():
        return 0.0, 0.0
    return float((excess > EXCESS).float().mean()), float(excess.max())


def validity(body: JudgedBody, motion: Motion, *, ground: float = 0.0) -> dict[str, float]:
    """By validator, the share of frames that are wronger than its tolerance; the motion is one of the working copy."""
    pose = motion.pose
    offsets, scales = (None if x is None else x.detach().float() for x in (pose.offsets, pose.scales))
    floor = torch.tensor([0.0, ground, 0.0])
    above = Pose(pose.root.detach().float() - floor, pose.rotations.detach().float(), offsets, scales)
    with torch.no_grad():
        values = check(_prepared(body), Motion(above, motion.fps, motion.name))
    return {row.name: float((values[row.name] > row.tolerance).double().mean()) for row in VALIDATORS}


@remembered
def _prepared(body: JudgedBody) -> ValidatedBody:
    return prepare(body.anatomy)


@remembered
def _capsules(body: JudgedBody) -> Capsules:
    """Bones along the limbs, as thick as their skin allows."""
    joints = body.anatomy.T_rest[:, :3, 3]
    limbs = body.anatomy.limbs
    bones = sorted({pair for limb in limbs for pair in zip(limb.joints[:-1], limb.joints[1:], strict=True)})
    bones = [(a, b) for a, b in bones if np.linalg.norm(joints[a] - joints[b]) > SHORT * body.length]
    heads, tails = (np.array([bone[end] for bone in bones], np.int64) for end in (0, 1))
    radii = np.array([_radius(body, joints, a, b) for a, b in bones])
    near, _ = tree_distances(body.anatomy.skeleton, joints)
    pairs = [
        (i, k)
        for i in range(len(bones))
        for k in range(i)
        if min(near[a, b] for a in bones[i] for b in bones[k]) > RELATED
    ]
    pairs_array = np.array(pairs, np.int64).reshape(-1, 2)
    rest = np.maximum(_overlap(heads, tails, radii, pairs_array, joints[None]), 0)[0]
    return Capsules(heads, tails, radii, pairs_array, rest)


def _radius(body: JudgedBody, joints: Float[ndarray, "joints 3"], head: int, tail: int) -> float:
    """From the skin that the bone's joint moves."""
    skin = body.asset.mesh.vertices.detach().double().numpy()[body.anatomy.owners == head]
    if not len(skin):
        return 0.0
    _, gap = closest_on_segments(torch.from_numpy(skin), torch.from_numpy(joints[[head, tail]]))
    return THIN * float(np.median(gap.numpy()))


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
