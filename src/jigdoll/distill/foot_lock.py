"""Feet put down: a finished motion with each standing foot held where it stands.

A prior that sees fifty pixels cannot place a foot to the millimetre (AKD 6.3 says so of a large one), and a few smooth
curves cannot hold it. Stances and lock are those of retargeting (`rig.retarget`): there is one way to put a foot down.
No prior takes part.
"""

from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy import ndarray
from scipy.interpolate import pchip_interpolate

from jigdoll.kinematics import motion_to_world, skin_transforms
from jigdoll.motion import close_loop, join, place, slice_motion
from jigdoll.rig.anatomy import Anatomy
from jigdoll.rig.retarget.decode import stances, to_motion
from jigdoll.rig.retarget.feet import lock_feet, runs
from jigdoll.rig.retarget.limb_motion import encode
from jigdoll.rig.retarget.turns import from_rotvec, nearest_turns, to_rotvec
from jigdoll.skin.deform import deform
from jigdoll.types import Motion, Pose, RiggedAsset

PASSES, MOST_PASSES = 3, 8
"""A foot that slid too much to be seen standing may be seen once the body goes with the others: stances are looked for
so many times, and on, up to the most, as long as more is found to stand."""
REACH = 3
"""Frames over which a body is raised that stands too deep."""


def foot_lock(anatomy: Anatomy, motion: Motion, *, loop: bool = False) -> Motion:
    """The motion with standing feet that stay in place; a body without legs, or one that flies, keeps its motion.

    A loop is locked as it plays, round after round, so that no stance breaks where it closes.
    """
    if not anatomy.legs or len(motion) < 3:
        return motion
    if loop:
        return _locked_round(anatomy, motion)
    held = np.zeros((len(motion), len(anatomy.legs)), bool)
    for i in range(MOST_PASSES):
        stands = stances(encode(anatomy, motion, travel=False), anatomy)
        if not stands.any() or (i >= PASSES and not (stands & ~held).any()):
            return motion
        held = stands
        world = motion_to_world(anatomy.skeleton, motion)
        G = lay_toes(anatomy, world[..., :3, :3], stands)
        G, root = lock_feet(anatomy, G, world[:, 0, :3, 3], stands, motion.fps)
        locked = to_motion(anatomy, G, root, fps=motion.fps, name=motion.name)
        motion = replace(locked, pose=raised(anatomy.asset, locked.pose))
    return motion


def _locked_round(anatomy: Anatomy, motion: Motion) -> Motion:
    """The middle one of three rounds, locked together."""
    skeleton, steps = anatomy.skeleton, len(motion) - 1
    rounds = join(join(motion, motion, skeleton, overlap=1), motion, skeleton, overlap=1)
    locked = foot_lock(anatomy, rounds)
    if locked is rounds:
        return motion
    middle = slice_motion(locked, slice(steps, 2 * steps + 1))
    return close_loop(place(middle, skeleton, like=motion.pose[0]), skeleton)


def lay_toes(
    anatomy: Anatomy, G: Float[ndarray, "frames joints 3 3"], stands: Bool[ndarray, "frames legs"]
) -> Float[ndarray, "frames joints 3 3"]:
    """World rotations with toes and hooves that lie still while they stand: each stance has one rotation of its own.

    The lock holds where a foot rolls, and what lies beyond that must not turn with the ankle's curves. A foot without
    toes may roll as a whole.
    """
    G = G.copy()
    for i, leg in enumerate(anatomy.legs):
        if not leg.parts.after or not stands[:, i].any():
            continue
        pivot = leg.parts.after[0]
        beyond = [pivot]
        for joint in beyond:
            beyond += anatomy.skeleton.children[joint]
        vectors, frames = np.zeros((len(G), 3)), np.flatnonzero(stands[:, i])
        for first, last in runs(stands[:, i]):
            still = nearest_turns(G[first:last, pivot].mean(0))
            vectors[first:last] = to_rotvec(still @ np.swapaxes(G[first:last, pivot], -1, -2))
        # While it swings, from what one stance asked to what the next one asks.
        at = np.clip(np.arange(len(G)), frames[0], frames[-1])
        vectors = np.asarray(pchip_interpolate(frames, vectors[frames], at) if len(frames) > 1 else vectors[at])
        G[:, beyond] = from_rotvec(vectors)[:, None] @ G[:, beyond]
    return G


def raised(asset: RiggedAsset, pose: Pose) -> Pose:
    """The pose carried smoothly so much higher that no skin is below the ground."""
    if not len(asset.mesh.vertices):
        return pose  # motion without a body has no skin to sink
    skin = deform(asset.mesh.vertices, asset.weights, skin_transforms(asset.skeleton, pose))
    depth = (-skin[..., 1].amin(1)).clamp_min(0)[None]
    highest = torch.nn.functional.max_pool1d(depth, 2 * REACH + 1, 1, REACH)
    padded = torch.nn.functional.pad(highest, (REACH, REACH), "replicate")
    lift = torch.nn.functional.avg_pool1d(padded, 2 * REACH + 1, 1)[0]
    return replace(pose, root=pose.root + lift[:, None] * pose.root.new_tensor([0.0, 1.0, 0.0]))
