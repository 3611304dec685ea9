"""Forward kinematics: local rotations in, joint transforms out, by tree level, differentiable."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.math.rotations import quaternion_to_matrix
from jigdoll.math.transforms import rigid_inverse, transform
from jigdoll.types import Motion, Pose, Skeleton


def make_skeleton(
    names: tuple[str, ...],
    parents: tuple[int, ...],
    T_parent_joint: Float[Tensor, "joints 4 4"],
    *,
    axes: Float[Tensor, "joints 3 3"] | None = None,
    limits: Float[Tensor, "joints 3 2"] | None = None,
) -> Skeleton:
    """A skeleton whose compound axes default to the world's X (pitch), Y (yaw), Z (roll) at rest, without limits."""
    bound = torch.pi * T_parent_joint.new_tensor([-1.0, 1.0])
    bare = Skeleton(names, parents, T_parent_joint, T_parent_joint[:, :3, :3], bound.expand(len(names), 3, 2))
    if axes is None:
        axes = rest_transforms(bare)[:, :3, :3].transpose(-1, -2)
    return Skeleton(names, parents, T_parent_joint, axes, bare.limits if limits is None else limits)


def rest_pose(skeleton: Skeleton, *, frames: int | None = None) -> Pose:
    """The pose that changes nothing (for so many frames)."""
    batch = () if frames is None else (frames,)
    identity = skeleton.T_parent_joint.new_tensor([1.0, 0.0, 0.0, 0.0])
    root = skeleton.T_parent_joint.new_zeros(*batch, 3)
    return Pose(root, identity.expand(*batch, len(skeleton), 4).clone())


def forward(skeleton: Skeleton, pose: Pose) -> Float[Tensor, "*batch joints 4 4"]:
    """`T_world_joint` of every joint: T_world_parent @ T_parent_joint @ (offset, rotation, scale)."""
    rotation = quaternion_to_matrix(pose.rotations)
    if pose.scales is not None:
        rotation = rotation * pose.scales[..., None, :]
    rest = skeleton.T_parent_joint
    local_rotation = rest[:, :3, :3] @ rotation
    local_translation = rest[:, :3, 3].expand(*pose.rotations.shape[:-1], 3)
    if pose.offsets is not None:
        local_translation = local_translation + (rest[:, :3, :3] @ pose.offsets[..., None])[..., 0]

    world_rotation, world_translation = local_rotation[..., :1, :, :], local_translation[..., :1, :]
    world_translation = world_translation + pose.root[..., None, :]
    rotations, translations = [world_rotation], [world_translation]
    for joints, above in _levels(skeleton.parents)[1:]:
        # `above` indexes the previous level only, so a level costs one batched product.
        parent_rotation = world_rotation[..., above, :, :]
        moved = (parent_rotation @ local_translation[..., joints, :, None])[..., 0]
        world_translation = world_translation[..., above, :] + moved
        world_rotation = parent_rotation @ local_rotation[..., joints, :, :]
        rotations.append(world_rotation)
        translations.append(world_translation)
    order = _level_order(skeleton.parents)
    return transform(torch.cat(rotations, -3)[..., order, :, :], torch.cat(translations, -2)[..., order, :])


def rest_transforms(skeleton: Skeleton) -> Float[Tensor, "joints 4 4"]:
    """`T_world_joint` at rest."""
    return forward(skeleton, rest_pose(skeleton))


def skin_transforms(skeleton: Skeleton, pose: Pose) -> Float[Tensor, "*batch joints 4 4"]:
    """What each joint does to a point of the rest pose: T_world_joint @ inverse(T_world_joint at rest)."""
    return forward(skeleton, pose) @ rigid_inverse(rest_transforms(skeleton))


def world_rest(parents: Sequence[int], T_parent_joint: Float[Tensor, "joints 4 4"]) -> Float[Tensor, "joints 4 4"]:
    """`T_world_joint` at rest of joints that come after their parents."""
    world: list[Tensor] = []
    for joint, parent in enumerate(parents):
        world.append(T_parent_joint[joint] if parent < 0 else world[parent] @ T_parent_joint[joint])
    return torch.stack(world)


def motion_to_world(skeleton: Skeleton, motion: Motion) -> np.ndarray:
    """World transforms [frames joints 4 4] of a motion in float64: what the files of other programs are made from."""
    pose = motion.pose
    local = np.tile(np.eye(4), (len(motion), len(skeleton), 1, 1))
    linear = quaternion_to_matrix(pose.rotations.double()).numpy()
    local[..., :3, :3] = linear if pose.scales is None else linear * pose.scales.double().numpy()[..., None, :]
    if pose.offsets is not None:
        local[..., :3, 3] = pose.offsets.double().numpy()
    local = skeleton.T_parent_joint.double().numpy() @ local
    local[:, 0, :3, 3] += pose.root.double().numpy()
    world = local.copy()
    for joint, parent in enumerate(skeleton.parents):
        if parent >= 0:
            world[:, joint] = world[:, parent] @ local[:, joint]
    return world


@lru_cache(maxsize=256)
def _levels(parents: tuple[int, ...]) -> tuple[tuple[list[int], list[int]], ...]:
    """The joints of each tree level, and where in the level before the parent of each one stands."""
    levels: list[tuple[list[int], list[int]]] = [([0], [])]
    while True:
        place = {joint: i for i, joint in enumerate(levels[-1][0])}
        joints = [joint for joint, parent in enumerate(parents) if parent in place and joint]
        if not joints:
            return tuple(levels)
        levels.append((joints, [place[parents[joint]] for joint in joints]))


@lru_cache(maxsize=256)
def _level_order(parents: tuple[int, ...]) -> list[int]:
    """Where each joint stands in the concatenation of all levels."""
    flat = [joint for joints, _ in _levels(parents) for joint in joints]
    place = {joint: i for i, joint in enumerate(flat)}
    return [place[joint] for joint in range(len(parents))]
