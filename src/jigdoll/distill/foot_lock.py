"""Feet put down: a finished motion with each standing foot held where it stands.

A prior that sees fifty pixels cannot place a foot to the millimetre (AKD 6.3 says so of a large one), and a few smooth
curves cannot hold it. Stances and lock are those of retargeting (`rig.retarget`): there is one way to put a foot down.
No prior takes part.
"""

from dataclasses import replace

import torch

from jigdoll.kinematics import motion_to_world, skin_transforms
from jigdoll.motion import close_loop, join, place, slice_motion
from jigdoll.rig.anatomy import Anatomy
from jigdoll.rig.retarget.decode import stances, to_motion
from jigdoll.rig.retarget.feet import lock_feet
from jigdoll.rig.retarget.limb_motion import encode
from jigdoll.skin.deform import deform
from jigdoll.types import Motion, Pose, RiggedAsset

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
    stands = stances(encode(anatomy, motion, travel=False), anatomy)
    if not stands.any():
        return motion
    world = motion_to_world(anatomy.skeleton, motion)
    G, root = lock_feet(anatomy, world[..., :3, :3], world[:, 0, :3, 3], stands, motion.fps)
    locked = to_motion(anatomy, G, root, fps=motion.fps, name=motion.name)
    return replace(locked, pose=raised(anatomy.asset, locked.pose))


def _locked_round(anatomy: Anatomy, motion: Motion) -> Motion:
    """The middle one of three rounds, locked together."""
    skeleton, steps = anatomy.skeleton, len(motion) - 1
    rounds = join(join(motion, motion, skeleton, overlap=1), motion, skeleton, overlap=1)
    locked = foot_lock(anatomy, rounds)
    if locked is rounds:
        return motion
    middle = slice_motion(locked, slice(steps, 2 * steps + 1))
    return close_loop(place(middle, skeleton, like=motion.pose[0]), skeleton)


def raised(asset: RiggedAsset, pose: Pose) -> Pose:
    """The pose carried smoothly so much higher that no skin is below the ground."""
    skin = deform(asset.mesh.vertices, asset.weights, skin_transforms(asset.skeleton, pose))
    depth = (-skin[..., 1].amin(1)).clamp_min(0)[None]
    highest = torch.nn.functional.max_pool1d(depth, 2 * REACH + 1, 1, REACH)
    padded = torch.nn.functional.pad(highest, (REACH, REACH), "replicate")
    lift = torch.nn.functional.avg_pool1d(padded, 2 * REACH + 1, 1)[0]
    return replace(pose, root=pose.root + lift[:, None] * pose.root.new_tensor([0.0, 1.0, 0.0]))
