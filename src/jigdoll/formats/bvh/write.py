"""A skeleton and a motion to BVH."""

import os
import warnings
from pathlib import Path

import numpy as np
import torch

from jigdoll.errors import FileFormatError, RepairWarning
from jigdoll.formats.angles import euler_angles
from jigdoll.formats.bvh.read import bvh_names
from jigdoll.formats.files import write_bytes
from jigdoll.kinematics import world_rest
from jigdoll.math.rotations import quaternion_to_matrix
from jigdoll.types import Motion, Pose, Skeleton


def write(path: str | os.PathLike[str], skeleton: Skeleton, motion: Motion) -> Path:
    """Write a motion as BVH in metres, at full precision; what the joints do in the world is kept.

    Rest rotations go into the channels. Joints that move within their parent (offsets, scales) get position channels.
    A leaf called `<parent>_tip` that never moves is written as its parent's end site.
    """
    path = Path(path)
    if len(motion) == 0:
        raise FileFormatError(f"{path}: a motion without frames cannot be written; give it at least one")
    rotations, places, offsets = _locals_in_world_axes(skeleton, motion)
    if not (np.isfinite(rotations).all() and np.isfinite(places).all()):
        raise FileFormatError(f"{path}: the motion {motion.name!r} holds NaN or infinity; nothing was written")
    moving = np.abs(places - offsets).max(axis=(0, 2)) > 1e-6
    moving[0] = True
    turning = np.abs(rotations - np.eye(3)).max(axis=(0, 2, 3)) > 1e-6
    children = skeleton.children
    ends = {
        joint
        for joint, parent in enumerate(skeleton.parents)
        if parent >= 0 and not children[joint] and len(children[parent]) == 1 and not (moving[joint] or turning[joint])
        if skeleton.names[joint] == f"{skeleton.names[parent]}_tip"
    }
    order: list[int] = []
    text = "HIERARCHY\n" + "".join(_hierarchy_lines(skeleton, offsets, moving, ends, order))
    angles = np.degrees(euler_angles(rotations, (2, 0, 1)))
    columns = [np.concatenate([places[:, j], angles[:, j]], 1) if moving[j] else angles[:, j] for j in order]
    rows = np.concatenate(columns, axis=1)
    line = " ".join(["%.7f"] * rows.shape[1]) + "\n"
    table = "".join(line % tuple(row) for row in rows)
    text += f"MOTION\nFrames: {len(rows)}\nFrame Time: {1 / motion.fps:.9g}\n{table}"
    return write_bytes(path, text.encode())


def _locals_in_world_axes(skeleton: Skeleton, motion: Motion) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What BVH stores: local rotations and places of joints whose frames are parallel to the world at rest."""
    pose = motion.pose
    rest = skeleton.T_parent_joint.detach().double()
    W = world_rest(skeleton.parents, rest)[:, :3, :3]
    W_parent = torch.stack([W[p] if p >= 0 else torch.eye(3, dtype=W.dtype) for p in skeleton.parents])
    R = quaternion_to_matrix(pose.rotations.detach().double())
    rotations = W @ R @ W.transpose(-1, -2)
    offsets = (W_parent @ rest[:, :3, 3:])[..., 0]
    places = offsets.expand(len(motion), -1, -1).clone()
    if pose.offsets is not None:
        places += (W @ pose.offsets.detach().double()[..., None])[..., 0]
    if pose.scales is not None:
        places = _scaled_places(skeleton, pose, R, W, places)
    places[:, 0] += pose.root.detach().double()
    return rotations.numpy(), places.numpy(), offsets.numpy()


def _scaled_places(
    skeleton: Skeleton, pose: Pose, R: torch.Tensor, W: torch.Tensor, places: torch.Tensor
) -> torch.Tensor:
    """Local places that keep every joint where scaled parents put it, though BVH itself has no scale."""
    assert pose.scales is not None
    scales = pose.scales.detach().double()
    turned: list[torch.Tensor] = []  # world rotations (world-parallel frames) without and with scale
    shaped: list[torch.Tensor] = []
    out = places.clone()
    for joint, parent in enumerate(skeleton.parents):
        B = W[joint] @ R[:, joint] @ W[joint].T
        S = W[joint] @ (R[:, joint] * scales[:, joint, None, :]) @ W[joint].T
        if parent >= 0:
            out[:, joint] = (turned[parent].transpose(-1, -2) @ shaped[parent] @ places[:, joint, :, None])[..., 0]
            B, S = turned[parent] @ B, shaped[parent] @ S
        turned.append(B)
        shaped.append(S)
    if float((scales - 1).abs().max()) > 1e-3:
        warnings.warn("BVH has no scale: joints keep their places, but nothing grows", RepairWarning, stacklevel=5)
    return out


def _hierarchy_lines(
    skeleton: Skeleton, offsets: np.ndarray, moving: np.ndarray, ends: set[int], order: list[int]
) -> list[str]:
    """The text of the hierarchy; `order` receives the joints in the order of their channels (depth first)."""
    names = bvh_names(skeleton)
    children = skeleton.children
    out: list[str] = []
    stack: list[tuple[int, int]] = [(0, 0)]  # joint (or -1: only close a brace), level
    while stack:
        joint, level = stack.pop()
        indent = "\t" * level
        if joint < 0:
            out.append(f"{indent}}}\n")
            continue
        x, y, z = offsets[joint]
        place = f"{x:.7f} {y:.7f} {z:.7f}"
        if joint in ends:
            out.append(f"{indent}End Site\n{indent}{{\n{indent}\tOFFSET {place}\n{indent}}}\n")
            continue
        order.append(joint)
        channels = "6 Xposition Yposition Zposition" if moving[joint] else "3"
        keyword = "ROOT" if joint == 0 else "JOINT"
        out.append(f"{indent}{keyword} {names[joint]}\n{indent}{{\n{indent}\tOFFSET {place}\n")
        out.append(f"{indent}\tCHANNELS {channels} Zrotation Xrotation Yrotation\n")
        if not children[joint]:
            out.append(f"{indent}\tEnd Site\n{indent}\t{{\n{indent}\t\tOFFSET 0 0 0\n{indent}\t}}\n")
        stack.append((-1, level))
        stack.extend((child, level + 1) for child in reversed(children[joint]))
    return out
