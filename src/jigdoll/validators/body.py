"""What the validators need to know about a body, measured once from its Anatomy; and the body in a pose."""

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from torch import Tensor

from jigdoll.kinematics import forward, motion_to_world
from jigdoll.math.segments import closest_on_segments
from jigdoll.math.transforms import apply
from jigdoll.rig.anatomy import Anatomy
from jigdoll.rig.fleshed_bones import flesh_at, fleshed_bones, related, spread_points
from jigdoll.rig.limits import HINGES, straightest_child
from jigdoll.skin.deform import deform
from jigdoll.types import Motion, Pose, Skeleton, Weights

EDGES_PER_JOINT = 10
"""Edges of the mesh between differently weighted vertices that are followed for each joint."""
STRAIGHT = 0.06
"""A hinge that is folded less than this does not show which way it folds [rad]."""
CLIPS = 6
"""The asset's own clips that are asked which way such a hinge folds."""


@dataclass(frozen=True, eq=False)
class ValidatedBody:
    """What stays the same about a body while it moves, as tensors."""

    skeleton: Skeleton
    """With limits and axes by role."""
    T_joint_rest: Float[Tensor, "joints 4 4"]
    """The inverse of the world rest transforms."""
    length: float
    """Of the body [m]."""
    points: Float[Tensor, "points 3"]
    """Skin at rest [m]: spread over the flesh of every joint, then the ends of the edges."""
    weights: Weights
    owners: Int[Tensor, " points"]
    """The joint that moves each point most."""
    spread: int
    """The first so many points are spread over the body; the others are the ends of edges."""
    masses: Float[Tensor, " points"]
    """The share of the body's mass that each of the spread points stands for; zero for the ends of edges."""
    edges: Int[Tensor, "edges 2"]
    edge_joints: Int[Tensor, " edges"]
    edge_rest: Float[Tensor, " edges"]
    """[m]."""
    bone_joints: Int[Tensor, " bones"]
    bones: Float[Tensor, "bones 2 3"]
    """The ends of each bone in its joint's frame [m]."""
    radii: Float[Tensor, "bones knots"]
    """How far the flesh reaches at both ends and in the middle [m]."""
    strangers: Bool[Tensor, "points bones"]
    """Which skin must not be inside which flesh."""
    inside_rest: Float[Tensor, "points bones"]
    """How deep it is inside already at rest [m]."""
    hinges: Int[Tensor, "hinges 3"]
    """The parent, the joint and the child of every knee, elbow and joint of a wing."""
    hinge_axes: Float[Tensor, "hinges 3"]
    """The axis about which each folds, in its parent's frame."""
    waists: Int[Tensor, " waists"]
    """Spread points that follow two joints or more: the skin around a joint."""
    waist_joints: Int[Tensor, " waists"]
    waist_rest: Float[Tensor, " waists"]
    """Their distance from that joint at rest [m]."""
    soles: Float[Tensor, "soles 3"]
    """What may stand on the ground, in the frames of its joints [m]."""
    sole_joints: Int[Tensor, " soles"]


@dataclass(frozen=True, eq=False)
class PosedBody:
    """A body in one pose per frame."""

    pose: Pose
    T_world_joint: Float[Tensor, "frames joints 4 4"]
    skin: Float[Tensor, "frames points 3"]
    """Where the followed skin is [m], world."""
    fps: float | None
    """None where the poses do not follow each other in time."""

    @property
    def joints(self) -> Float[Tensor, "frames joints 3"]:
        """Where the joints are [m], world."""
        return self.T_world_joint[..., :3, 3]


def pose_body(body: ValidatedBody, motion: Motion | Pose) -> PosedBody:
    """Pose the skeleton and the skin; a Pose's batch axis is read as unrelated frames."""
    pose, fps = (motion.pose, motion.fps) if isinstance(motion, Motion) else (motion, None)
    T = forward(body.skeleton, pose)
    return PosedBody(pose, T, deform(body.points, body.weights, T @ body.T_joint_rest), fps)


def prepare(anatomy: Anatomy, *, dtype: torch.dtype = torch.float32) -> ValidatedBody:
    """Measure a body for the validators; keep the result where many motions of one body are checked."""
    T = anatomy.T_rest
    vertices = anatomy.asset.mesh.vertices.detach().double().numpy()
    bones, ends, radii = fleshed_bones(anatomy)
    spread = spread_points(anatomy)
    edges, edge_joints = _edges(anatomy, vertices)
    rows = np.concatenate([spread, edges.reshape(-1)])
    points, weights, owners = _rows(anatomy, vertices, rows)
    skeleton = anatomy.skeleton
    fleshed = torch.from_numpy(ends)
    share, gap = closest_on_segments(torch.from_numpy(points)[:, None], fleshed[None])
    reach = flesh_at(share, torch.from_numpy(radii))
    strangers = ~related(skeleton, T[:, :3, 3], owners, bones, radii)
    strangers[len(spread) :] = False
    masses = _masses(anatomy, vertices, spread, ends, bones)
    waists, waist_joints, waist_rest = _waists(anatomy, points[: len(spread)], weights)
    hinges, axes = _hinges(anatomy)
    local = np.linalg.inv(T)
    sole_joints = np.concatenate([leg.contact_joints for leg in anatomy.legs] or [np.zeros(0, int)])
    soles = np.concatenate([leg.contact_points for leg in anatomy.legs] or [np.zeros((0, 3))])
    ends_local = np.einsum("bij,bkj->bki", local[bones, :3, :3], ends) + local[bones, None, :3, 3]

    def tensor(array: ndarray | Tensor) -> Tensor:
        return torch.as_tensor(array).to(dtype)

    return ValidatedBody(
        skeleton=replace(
            skeleton,
            T_parent_joint=tensor(skeleton.T_parent_joint),
            axes=tensor(skeleton.axes),
            limits=tensor(skeleton.limits),
        ),
        T_joint_rest=tensor(local),
        length=anatomy.body_length,
        points=tensor(points),
        weights=Weights(weights.joints, tensor(weights.values)),
        owners=torch.as_tensor(owners),
        spread=len(spread),
        masses=tensor(np.concatenate([masses, np.zeros(edges.size)])),
        edges=len(spread) + torch.arange(edges.size).reshape(-1, 2),
        edge_joints=torch.as_tensor(edge_joints),
        edge_rest=tensor(np.linalg.norm(points[len(spread) :: 2] - points[len(spread) + 1 :: 2], axis=1)),
        bone_joints=torch.as_tensor(bones),
        bones=tensor(ends_local),
        radii=tensor(radii),
        strangers=torch.as_tensor(strangers),
        inside_rest=tensor((reach - gap).clamp_min(0)),
        hinges=torch.as_tensor(hinges),
        hinge_axes=tensor(axes),
        waists=torch.as_tensor(waists),
        waist_joints=torch.as_tensor(waist_joints),
        waist_rest=tensor(waist_rest),
        soles=tensor(soles),
        sole_joints=torch.as_tensor(sole_joints),
    )


def posed_bones(body: ValidatedBody, posed: PosedBody) -> Float[Tensor, "frames bones 2 3"]:
    """The ends of the bones [m], world."""
    return apply(posed.T_world_joint[:, body.bone_joints], body.bones)


def _edges(
    anatomy: Anatomy, vertices: Float[ndarray, "vertices 3"]
) -> tuple[Int[ndarray, "edges 2"], Int[ndarray, " edges"]]:
    """Edges between vertices that follow different joints (no other can stretch), evenly drawn for each joint."""
    faces = anatomy.asset.mesh.faces.long().numpy()
    if not len(faces):
        return np.zeros((0, 2), np.int64), np.zeros(0, np.int64)
    edges = np.unique(np.sort(np.concatenate([faces[:, list(pair)] for pair in combinations(range(3), 2)]), 1), axis=0)
    size = np.linalg.norm(vertices[edges[:, 0]] - vertices[edges[:, 1]], axis=1)
    edges = edges[size > 1e-4 * anatomy.body_length]
    values, joints = (x.numpy() for x in (anatomy.asset.weights.values.double(), anatomy.asset.weights.joints.long()))
    differ = _weight_gap(values, joints, edges) > 0.05
    edges = edges[differ]
    owner, found = anatomy.owners[edges[:, 0]], []
    for joint in np.unique(owner):
        mine = np.flatnonzero(owner == joint)
        found.append(mine[np.linspace(0, len(mine) - 1, min(EDGES_PER_JOINT, len(mine))).astype(int)])
    rows = np.concatenate(found) if found else np.zeros(0, np.int64)
    return edges[rows], owner[rows]


def _weight_gap(
    values: Float[ndarray, "vertices influences"],
    joints: Int[ndarray, "vertices influences"],
    edges: Int[ndarray, "e 2"],
) -> Float[ndarray, " e"]:
    """How differently the ends of edges are weighted, 0 to 1: one minus what their weights have in common."""
    a, b = edges.T
    same = joints[a][:, :, None] == joints[b][:, None, :]
    return 1 - np.where(same, np.minimum(values[a][:, :, None], values[b][:, None, :]), 0).sum((1, 2))


def _rows(
    anatomy: Anatomy, vertices: Float[ndarray, "vertices 3"], rows: Int[ndarray, " rows"]
) -> tuple[Float[ndarray, "rows 3"], Weights, Int[ndarray, " rows"]]:
    """Points, weights and owners of these vertices; of the joints themselves where there is no skin (-1 - joint)."""
    if not len(vertices):
        joints = -1 - rows
        weights = Weights(torch.as_tensor(joints)[:, None], torch.ones(len(joints), 1))
        return anatomy.T_rest[joints, :3, 3], weights, joints
    index, old = torch.as_tensor(rows), anatomy.asset.weights
    return vertices[rows], Weights(old.joints[index], old.values[index].detach()), anatomy.owners[rows]


def _masses(
    anatomy: Anatomy,
    vertices: Float[ndarray, "vertices 3"],
    spread: Int[ndarray, " points"],
    ends: Float[ndarray, "bones 2 3"],
    bones: Int[ndarray, " bones"],
) -> Float[ndarray, " points"]:
    """The share of the mass at each spread point: of its joint's flesh (skin area times distance from the bone)."""
    faces = anatomy.asset.mesh.faces.long().numpy()
    if not len(faces) or not len(bones):
        return np.full(len(spread), 1 / max(len(spread), 1))
    a, b, c = (vertices[faces[:, i]] for i in range(3))
    area = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    middle, owner = (a + b + c) / 3, anatomy.owners[faces[:, 0]]
    flesh = np.zeros(len(anatomy.skeleton))
    for joint in np.unique(owner):
        mine, own = owner == joint, ends[bones == joint]
        if len(own):
            gap = closest_on_segments(torch.tensor(middle[mine])[:, None], torch.tensor(own)[None])[1].amin(1).numpy()
        else:
            gap = np.linalg.norm(middle[mine] - anatomy.T_rest[joint, :3, 3], axis=1)
        flesh[joint] = (area[mine] * gap).sum()
    owners = anatomy.owners[spread]
    shares = flesh[owners] / np.bincount(owners, minlength=len(flesh))[owners]
    return shares / max(float(shares.sum()), 1e-12)


def _waists(
    anatomy: Anatomy, points: Float[ndarray, "points 3"], weights: Weights
) -> tuple[Int[ndarray, " waists"], Int[ndarray, " waists"], Float[ndarray, " waists"]]:
    """Skin that a joint and its parent share, and its distance from that joint: what a twist pinches."""
    dense = weights.dense(len(anatomy.skeleton))[: len(points)].double().numpy()
    parents, P = anatomy.skeleton.parents, anatomy.T_rest[:, :3, 3]
    found = []
    for point, row in enumerate(dense):
        first, second = np.argsort(row)[::-1][:2] if len(row) > 1 else (0, 0)
        if row[second] < 0.2:
            continue
        child = second if parents[second] == first else first if parents[first] == second else -1
        if child >= 0:
            found.append((point, child, float(np.linalg.norm(points[point] - P[child]))))
    found = [row for row in found if row[2] > 1e-4 * anatomy.body_length]
    columns = tuple(zip(*found, strict=True)) if found else ((), (), ())
    return np.array(columns[0], np.int64), np.array(columns[1], np.int64), np.array(columns[2], np.float64)


def _hinges(anatomy: Anatomy) -> tuple[Int[ndarray, "hinges 3"], Float[ndarray, "hinges 3"]]:
    """Joints that fold one way, and the axis of each in its parent's frame, where it does not turn with the joint."""
    skeleton, P = anatomy.skeleton, anatomy.T_rest[:, :3, 3]
    triples, axes = [], []
    for joint, role in enumerate(anatomy.roles):
        parent, child = skeleton.parents[joint], straightest_child(skeleton, torch.tensor(P), joint)
        if role not in HINGES or parent < 0 or child is None:
            continue
        triples.append((parent, joint, child))
        turn = skeleton.T_parent_joint[joint, :3, :3] @ skeleton.axes[joint, :, 0]
        axes.append(turn.detach().double().numpy())
    hinges, directions = np.array(triples, np.int64).reshape(-1, 3), np.array(axes).reshape(-1, 3)
    rest = hinge_angles(torch.tensor(anatomy.T_rest)[None], torch.tensor(hinges), torch.tensor(directions))[0]
    straight = rest.abs().numpy() < STRAIGHT
    if straight.any():
        directions[straight & _folds_the_other_way(anatomy, hinges, directions)] *= -1
    return hinges, directions


def _folds_the_other_way(
    anatomy: Anatomy, hinges: Int[ndarray, "hinges 3"], axes: Float[ndarray, "hinges 3"]
) -> Bool[ndarray, " hinges"]:
    """Which hinges the asset's own clips fold against these axes: a straight leg does not show how it folds."""
    clips = list(anatomy.asset.clips.values())[:CLIPS]
    if not clips:
        return np.zeros(len(hinges), bool)
    worlds = [motion_to_world(anatomy.skeleton, replace(clip, pose=clip.pose[::5])) for clip in clips]
    angles = [hinge_angles(torch.tensor(T), torch.tensor(hinges), torch.tensor(axes)).mean(0) for T in worlds]
    return torch.stack(angles).mean(0).numpy() < -STRAIGHT


def hinge_angles(
    T_world_joint: Float[Tensor, "frames joints 4 4"], hinges: Int[Tensor, "hinges 3"], axes: Float[Tensor, "hinges 3"]
) -> Float[Tensor, "frames hinges"]:
    """The angle from the bone before a hinge to the bone after it, seen along its axis [rad]; 0 is straight."""
    parent, joint, child = hinges.T
    P = T_world_joint[..., :3, 3]
    before, after = P[:, joint] - P[:, parent], P[:, child] - P[:, joint]
    axis = (T_world_joint[:, parent, :3, :3] @ axes[..., None])[..., 0]
    axis = axis / axis.norm(dim=-1, keepdim=True).clamp_min(1e-9)
    flat_before = before - (before * axis).sum(-1, keepdim=True) * axis
    flat_after = after - (after * axis).sum(-1, keepdim=True) * axis
    sine = (torch.linalg.cross(flat_before, flat_after) * axis).sum(-1)
    return torch.atan2(sine, (flat_before * flat_after).sum(-1))
