"""Handles: what a person drags or pins, by name, and how a rig is bent so that they are hit.

The finishing steps are damped least squares over all joints above a handle: small turns that share the way to go, none
larger than a few degrees at a time, so that the pose they start from is kept where it can be.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray

from jigdoll.errors import JigdollError
from jigdoll.math.rotations import matrix_to_quaternion, quaternion_to_matrix
from jigdoll.posespace.rigged import Body
from jigdoll.rig.retarget.turns import from_rotvec
from jigdoll.types import Pose

Mode = Literal["active", "pinned", "free"]
PINNED = 4.0
"""How much more a pinned handle counts than an active one."""
DAMPING = 1e-3
MOST_TURN = 0.25
"""The largest turn of a joint in one step [rad]."""
CLOSE = 1e-3
"""A handle is hit at this distance [body lengths]."""
STEPS = 24
TRUNK_SHARE, ROOT_SHARE = 0.35, 0.3
"""How readily the trunk bends and the root moves, against limbs."""


@dataclass(frozen=True)
class Handle:
    """Where a joint has to be."""

    name: str
    """A joint's name, or what it is: left_hand, right_foot, left_front_foot, head, tail, chest, hips."""
    target: tuple[float, float, float]
    """[m], world."""
    mode: Mode = "active"
    """`active` is reached for, `pinned` outweighs active ones, `free` is left alone."""
    tolerance: float = 0.0
    """How near is near enough [m]."""

    def __post_init__(self) -> None:
        if not all(np.isfinite(self.target)):
            raise JigdollError(f"handle {self.name}: {self.target} is no place; give three finite numbers")
        if self.tolerance < 0:
            raise JigdollError(f"handle {self.name}: a tolerance of {self.tolerance} m is below zero")


def handle_joints(body: Body) -> dict[str, int]:
    """The names of a body's own handles and their joints."""
    anatomy, named = body.anatomy, {"hips": body.anatomy.pelvis}
    if len(anatomy.trunk) > 1:
        named["chest"] = anatomy.trunk[-1]
    if anatomy.neck:
        named["head"] = anatomy.neck[-1]
    if anatomy.tail:
        named["tail"] = anatomy.tail[-1]
    ends = {"leg": "foot", "arm": "hand", "wing": "wing", "fin": "fin"}
    for parts in anatomy.parts:
        limb = parts.limb
        ranks = sorted({p.limb.rank for p in anatomy.parts if p.limb.kind == limb.kind and p.limb.side == limb.side})
        word = {1: [""], 2: ["front_", "hind_"], 3: ["front_", "middle_", "hind_"]}.get(len(ranks))
        place = word[ranks.index(limb.rank)] if word else f"{limb.rank}_"
        named[f"{limb.side}_{place}{ends[limb.kind]}"] = parts.end
    return named


def joint_of(body: Body, name: str) -> int:
    """The joint behind a handle's name."""
    own = handle_joints(body)
    if name in own:
        return own[name]
    if name in body.anatomy.skeleton.names:
        return body.anatomy.skeleton.index(name)
    raise JigdollError(f"no handle and no joint is called {name!r}; the handles are {', '.join(own)}")


def reach_handles(body: Body, pose: Pose, handles: Sequence[Handle], *, root: bool = False, steps: int = STEPS) -> Pose:
    """The pose, bent until the handles are hit or as near as they get; `root` lets the whole body move too."""
    wanted = [handle for handle in handles if handle.mode != "free"]
    if not wanted:
        return pose
    skeleton = body.anatomy.skeleton
    joints = [joint_of(body, handle.name) for handle in wanted]
    targets = np.array([handle.target for handle in wanted], float)
    weights = np.array([PINNED if handle.mode == "pinned" else 1.0 for handle in wanted])
    rest = skeleton.T_parent_joint.double().numpy()
    local = quaternion_to_matrix(pose.rotations.double()).numpy()
    place = pose.root.double().numpy().copy()
    paths = [_path(skeleton.parents, joint) for joint in joints]
    ease = _ease(body, root=root)
    scale = body.anatomy.body_length
    best, best_gap = (local, place), np.inf
    for _ in range(steps + 1):
        G, P = _forward(skeleton.parents, rest, local, place)
        error = targets - P[joints]
        gaps = np.maximum(np.linalg.norm(error, axis=1) - [handle.tolerance for handle in wanted], 0)
        if float((weights * gaps).max()) < best_gap:
            best, best_gap = (local.copy(), place.copy()), float((weights * gaps).max())
        if gaps.max() < 0.25 * CLOSE * scale:
            break
        J = _jacobian(P, joints, paths, ease, root=root)
        step = _damped(J, (weights[:, None] * error).ravel(), np.repeat(weights, 3), scale)
        turn = step[: 3 * len(P)].reshape(-1, 3) * ease[: len(P), None]
        size = np.linalg.norm(turn, axis=1).max()
        turn *= min(1.0, MOST_TURN / max(size, 1e-9))
        if root:
            place = place + ease[-1] * step[-3:] * min(1.0, MOST_TURN / max(size, 1e-9))
        local = _turned(skeleton.parents, rest, local, G, turn)
    local, place = best
    return Pose(torch.from_numpy(place).to(pose.root), matrix_to_quaternion(torch.from_numpy(local)).to(pose.rotations))


def _path(parents: Sequence[int], joint: int) -> list[int]:
    """The joints that move a joint, the nearest first."""
    path, above = [], parents[joint]
    while above >= 0:
        path.append(above)
        above = parents[above]
    return path


def _ease(body: Body, *, root: bool) -> Float[ndarray, " joints"]:
    """How readily each joint turns; the last entry is the root's place."""
    anatomy = body.anatomy
    ease = np.full(len(anatomy.skeleton) + 1, 1.0)
    ease[list(anatomy.trunk)] = TRUNK_SHARE
    ease[0] = ease[anatomy.pelvis] = TRUNK_SHARE if root else 0.1
    ease[-1] = ROOT_SHARE
    return ease


def _forward(parents: Sequence[int], rest: ndarray, local: ndarray, root: ndarray) -> tuple[ndarray, ndarray]:
    """World rotations and places of all joints."""
    G, P = np.empty((len(parents), 3, 3)), np.empty((len(parents), 3))
    for joint, parent in enumerate(parents):
        if parent < 0:
            G[joint], P[joint] = rest[joint, :3, :3] @ local[joint], rest[joint, :3, 3] + root
        else:
            G[joint] = G[parent] @ rest[joint, :3, :3] @ local[joint]
            P[joint] = P[parent] + G[parent] @ rest[joint, :3, 3]
    return G, P


def _jacobian(P: ndarray, joints: Sequence[int], paths: Sequence[list[int]], ease: ndarray, *, root: bool) -> ndarray:
    """How handles move when joints turn about the world's axes, and when the root moves."""
    J = np.zeros((3 * len(joints), 3 * len(P) + 3))
    for row, (joint, path) in enumerate(zip(joints, paths, strict=True)):
        for above in path:
            x, y, z = (P[joint] - P[above]) * ease[above]
            J[3 * row : 3 * row + 3, 3 * above : 3 * above + 3] = [[0, z, -y], [-z, 0, x], [y, -x, 0]]
        if root:
            J[3 * row : 3 * row + 3, -3:] = np.eye(3) * ease[-1]
    return J


def _damped(J: ndarray, error: ndarray, weights: ndarray, scale: float) -> ndarray:
    """The shortest step towards the targets, damped where they are hard to reach."""
    W = J * weights[:, None]
    A = W @ W.T
    A[np.diag_indices_from(A)] += max(DAMPING * scale**2 * weights.max() ** 2, 1e-9 * np.trace(A), 1e-12)
    return W.T @ np.linalg.solve(A, error)


def _turned(parents: Sequence[int], rest: ndarray, local: ndarray, G: ndarray, turn: ndarray) -> ndarray:
    """Local rotations after small turns about the world's axes."""
    moving = np.flatnonzero(np.linalg.norm(turn, axis=1) > 1e-9)
    out = local.copy()
    R = from_rotvec(turn[moving])
    for joint, delta in zip(moving.tolist(), R, strict=True):
        parent = parents[joint]
        above = rest[joint, :3, :3] if parent < 0 else G[parent] @ rest[joint, :3, :3]
        out[joint] = above.T @ delta @ above @ local[joint]
    return out


def handle_gaps(body: Body, pose: Pose, handles: Sequence[Handle]) -> dict[str, float]:
    """How far each handle is from where it has to be [m]."""
    skeleton = body.anatomy.skeleton
    local = quaternion_to_matrix(pose.rotations.double()).numpy()
    _, P = _forward(skeleton.parents, skeleton.T_parent_joint.double().numpy(), local, pose.root.double().numpy())
    return {h.name: float(np.linalg.norm(P[joint_of(body, h.name)] - np.array(h.target))) for h in handles}
