"""What a bend does to a mesh: change of volume, and faces that come to cut others."""

import math
from typing import no_type_check

import numba
import numpy as np
import torch

from jigdoll.kinematics import rest_pose, skin_transforms
from jigdoll.math.rotations import axis_angle_to_quaternion
from jigdoll.rig.limbs import find_limbs
from jigdoll.skin.closest import LEAF, build_tree
from jigdoll.skin.deform import deform
from jigdoll.types import Pose, RiggedAsset


def joints_of(asset: RiggedAsset, kinds: tuple[str, ...]) -> list[int]:
    """The joints of these kinds of limbs that have a bone to move."""
    inner = {j for j, kids in enumerate(asset.skeleton.children) if kids and j}
    named = {j for limb in find_limbs(asset.skeleton) if limb.kind in kinds for j in limb.joints}
    return sorted(inner & named)


def bend(asset: RiggedAsset, joint: int, *, degrees: float = 45.0) -> np.ndarray:
    """The vertices with one joint turned about its bending axis, to the side that its limits allow more of."""
    lower, upper = asset.skeleton.limits[joint, 0].tolist()
    angle = math.radians(degrees if upper >= -lower else -degrees)
    pose = rest_pose(asset.skeleton)
    rotations = pose.rotations.clone()
    rotations[joint] = axis_angle_to_quaternion(asset.skeleton.axes[joint, :, 0], torch.tensor(angle))
    transforms = skin_transforms(asset.skeleton, Pose(pose.root, rotations))
    return deform(asset.mesh.vertices, asset.weights, transforms).double().numpy()


def volume(vertices: np.ndarray, faces: np.ndarray) -> float:
    """The volume that a closed mesh holds [m^3]."""
    a, b, c = (vertices[faces[:, i]] for i in range(3))
    return float((a * np.cross(b, c)).sum() / 6)


def cut_faces(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Which faces are cut by a face that shares no vertex with them."""
    tree = build_tree(vertices, faces)
    corners = np.ascontiguousarray(faces[tree.order])
    own = np.concatenate([tree.corners.min(1), tree.corners.max(1)], 1)
    cut = np.zeros(len(faces), np.bool_)
    _cut(tree.corners, corners, tree.boxes, own, cut)
    out = np.zeros(len(faces), bool)
    out[tree.order] = cut
    return out


@numba.njit(cache=True)
@no_type_check
def _crosses(p, q, t):
    """Whether the segment p q goes through the inside of triangle t (Moeller and Trumbore)."""
    d0, d1, d2 = q[0] - p[0], q[1] - p[1], q[2] - p[2]
    u0, u1, u2 = t[1, 0] - t[0, 0], t[1, 1] - t[0, 1], t[1, 2] - t[0, 2]
    v0, v1, v2 = t[2, 0] - t[0, 0], t[2, 1] - t[0, 1], t[2, 2] - t[0, 2]
    h0, h1, h2 = d1 * v2 - d2 * v1, d2 * v0 - d0 * v2, d0 * v1 - d1 * v0
    det = u0 * h0 + u1 * h1 + u2 * h2
    if abs(det) < 1e-18:
        return False
    s0, s1, s2 = p[0] - t[0, 0], p[1] - t[0, 1], p[2] - t[0, 2]
    b = (s0 * h0 + s1 * h1 + s2 * h2) / det
    if b <= 0 or b >= 1:
        return False
    r0, r1, r2 = s1 * u2 - s2 * u1, s2 * u0 - s0 * u2, s0 * u1 - s1 * u0
    c = (d0 * r0 + d1 * r1 + d2 * r2) / det
    if c <= 0 or b + c >= 1:
        return False
    along = (v0 * r0 + v1 * r1 + v2 * r2) / det
    return 0 < along < 1


@numba.njit(cache=True, inline="always")
@no_type_check
def _apart(a, b):
    return (
        a[0] > b[3] or a[3] < b[0] or a[1] > b[4] or a[4] < b[1] or a[2] > b[5] or a[5] < b[2]
    )  # fmt: skip


@numba.njit(cache=True)
@no_type_check
def _cut(points, corners, boxes, own, cut):
    """Search the tree for faces whose boxes touch, and test their edges against each other."""
    first_leaf = len(boxes) // 2
    stack = np.empty(128, np.int64)
    for f in range(len(points)):
        box = own[f]
        stack[0] = 0
        top = 1
        while top > 0:
            top -= 1
            node = stack[top]
            if _apart(boxes[node], box):
                continue
            if node < first_leaf:
                stack[top], stack[top + 1] = 2 * node + 1, 2 * node + 2
                top += 2
                continue
            start = (node - first_leaf) * LEAF
            for g in range(max(start, f + 1), min(start + LEAF, len(points))):
                if (cut[f] and cut[g]) or _apart(own[g], box):
                    continue
                shared = False
                for i in range(3):
                    for j in range(3):
                        shared = shared or corners[f, i] == corners[g, j]
                if shared:
                    continue
                for i in range(3):
                    j = (i + 1) % 3
                    if _crosses(points[f, i], points[f, j], points[g]) or _crosses(
                        points[g, i], points[g, j], points[f]
                    ):
                        cut[f] = cut[g] = True


def bend_report(asset: RiggedAsset) -> dict[str, float | str]:
    """The worst change of volume and the worst share of newly cut faces over all limb joints, with their names.

    Necks and heads, which meet the body when they bend so far, count apart. A limb that is pressed into the body cuts
    it however good its weights are: `cut_free` takes the better side of a joint that cuts more than 0.5 % of the faces.
    """
    rest, faces = asset.mesh.vertices.double().numpy(), asset.mesh.faces.numpy()
    at_rest, before = volume(rest, faces), cut_faces(rest, faces)
    report: dict[str, float | str] = {}
    for group, kinds in (("", ("leg", "arm", "wing", "tail")), ("head_", ("head",))):
        joints = joints_of(asset, kinds)
        change, fresh, free = (np.zeros(len(joints) + 1) for _ in range(3))
        for i, joint in enumerate(joints):
            posed = bend(asset, joint)
            change[i] = abs(volume(posed, faces) / at_rest - 1)
            fresh[i] = free[i] = (cut_faces(posed, faces) & ~before).mean()
            if fresh[i] > 0.005:
                other = bend(asset, joint, degrees=-45.0)
                free[i] = min(fresh[i], (cut_faces(other, faces) & ~before).mean())
        names = [*(asset.skeleton.names[j] for j in joints), "-"]
        report |= {
            f"{group}joints": float(len(joints)),
            f"{group}volume": float(change.max()),
            f"{group}volume_at": names[int(change.argmax())],
            f"{group}cut": float(fresh.max()),
            f"{group}cut_at": names[int(fresh.argmax())],
            f"{group}cut_free": float(free.max()),
        }
    return report
