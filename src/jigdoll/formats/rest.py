"""From a file's joint matrices to our skeletons and motions: rigid rest frames, and what is left as scale."""

from collections.abc import Sequence

import numpy as np
import torch

from jigdoll.formats.joints import free_skeleton, unique_names
from jigdoll.math.rotations import matrix_to_quaternion
from jigdoll.math.transforms import polar, split_scale
from jigdoll.types import Mesh, Motion, Pose, RiggedAsset, Skeleton, Source, Weights

_NEGLIGIBLE_OFFSET = 1e-6
_NEGLIGIBLE_SCALE = 1e-5


def rigid_rest(bind: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
    """Split joint matrices [joints 4 4] into rigid ones and the stretch before them; tell whether one is uneven."""
    rigid, stretch = split_scale(torch.from_numpy(bind))
    lengths = torch.linalg.eigvalsh(stretch).abs()
    uneven = bool((lengths[:, 2] > lengths[:, 0] * 1.001 + 1e-12).any())
    T_joint_node = torch.eye(4, dtype=stretch.dtype).repeat(len(bind), 1, 1)
    T_joint_node[:, :3, :3] = stretch
    return rigid.numpy(), T_joint_node.numpy(), uneven


def skeleton_of(names: Sequence[str], parents: tuple[int, ...], rest: np.ndarray) -> Skeleton:
    """A skeleton from rigid world transforms of its joints; double names get a number."""
    T_parent_joint = torch.from_numpy(local_transforms(parents, rest))
    return free_skeleton(unique_names(names), parents, T_parent_joint)


def motion_asset(name: str, skeleton: Skeleton, clips: dict[str, Motion], source: Source | None = None) -> RiggedAsset:
    """An asset of a file that holds motion and no body: its mesh is empty."""
    mesh = Mesh(torch.zeros(0, 3), torch.zeros(0, 3, dtype=torch.int64), torch.zeros(0, 3))
    weights = Weights(torch.zeros(0, 1, dtype=torch.int64), torch.zeros(0, 1))
    return RiggedAsset(name, mesh, skeleton, weights, clips, source)


def local_transforms(parents: tuple[int, ...], world: np.ndarray) -> np.ndarray:
    """Transforms in the parent's frame from world ones [... joints 4 4]; the root's stays in the world."""
    above = world[..., [max(p, 0) for p in parents], :, :].copy()
    above[..., 0, :, :] = np.eye(4)
    return np.linalg.solve(above, world)


def world_to_motion(
    parents: tuple[int, ...],
    rest: np.ndarray,
    world: np.ndarray,
    T_joint_node: np.ndarray,
    *,
    fps: float,
    name: str,
) -> Motion:
    """A motion from world transforms [frames joints 4 4] of the file's nodes."""
    shrunk = np.abs(np.linalg.det(world[..., :3, :3])) < 1e-18
    # A joint scaled to nothing has no inverse: give it a size too small to see.
    world = world.copy()
    world[..., :3, :3] += np.where(shrunk[..., None, None], 1e-6 * np.eye(3), 0.0)
    joints = world @ np.linalg.inv(T_joint_node)
    local = local_transforms(parents, joints)
    delta = np.linalg.solve(local_transforms(parents, rest), local)
    root = joints[:, 0, :3, 3] - rest[0, :3, 3]
    offsets = delta[..., :3, 3].copy()
    offsets[:, 0] = 0.0
    linear = delta[..., :3, :3]
    scales = np.linalg.norm(linear, axis=-2)
    rotations, _ = polar(torch.from_numpy(linear / scales[..., None, :]))
    size = np.ptp(rest[:, :3, 3], axis=0).max() + 1e-9
    moves = np.abs(offsets).max() > _NEGLIGIBLE_OFFSET * size
    scaled = np.abs(scales - 1).max() > _NEGLIGIBLE_SCALE
    pose = Pose(
        root=torch.tensor(root, dtype=torch.float32),
        rotations=matrix_to_quaternion(rotations).float(),
        offsets=torch.tensor(offsets, dtype=torch.float32) if moves else None,
        scales=torch.tensor(scales, dtype=torch.float32) if scaled else None,
    )
    return Motion(pose, fps, name)
