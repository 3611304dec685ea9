"""What `benchmarks/retarget.py` measures: angles of bones, feet, flesh; the rival, and rigs changed at random."""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch

from jigdoll.formats.rest import skeleton_of
from jigdoll.kinematics import motion_to_world
from jigdoll.math.rotations import matrix_to_quaternion
from jigdoll.rig.anatomy import Anatomy, anatomy_of
from jigdoll.rig.reparent import Reparented, reparent
from jigdoll.rig.retarget.decode import stances
from jigdoll.rig.retarget.feet import runs
from jigdoll.rig.retarget.limb_motion import LimbMotion, heading_of, yaw
from jigdoll.rig.retarget.standing import feet_of
from jigdoll.rig.retarget.turns import from_rotvec
from jigdoll.types import Motion, Pose, RiggedAsset, Weights
from jigdoll.validators.body import pose_body, prepare
from jigdoll.validators.skin import self_contact


@dataclass(frozen=True, eq=False)
class Body:
    """A character with its working copy and its measures."""

    asset: RiggedAsset
    copy: Reparented
    anatomy: Anatomy


def whole(asset: RiggedAsset) -> Body:
    """Measure a character."""
    copy = reparent(asset)
    return Body(asset, copy, anatomy_of(copy.asset))


def bones(anatomy: Anatomy) -> list[tuple[int, int]]:
    """The bones of limbs, trunk, neck and tail that are long enough to have a direction."""
    P = anatomy.T_rest[:, :3, 3]
    chains = [limb.joints for limb in anatomy.limbs]
    found = {pair for chain in chains for pair in pairwise(chain)}
    return sorted((a, b) for a, b in found if np.linalg.norm(P[b] - P[a]) > 0.02 * anatomy.body_length)


def directions(anatomy: Anatomy, motion: Motion, pairs: list[tuple[int, int]]) -> np.ndarray:
    """Unit directions [frames bones 3] in the frame of the heading."""
    world = motion_to_world(anatomy.skeleton, motion)
    hub = anatomy.pelvis
    turned = world[:, hub, :3, :3] @ anatomy.R_neutral[hub].T
    H = yaw(heading_of(turned, motion.fps))
    P = world[..., :3, 3]
    way = np.stack([P[:, b] - P[:, a] for a, b in pairs], 1)
    way = np.einsum("fba,fjb->fja", H, way)
    return way / np.maximum(np.linalg.norm(way, axis=-1, keepdims=True), 1e-12)


def degrees(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Angles between directions."""
    return np.degrees(np.arctan2(np.linalg.norm(np.cross(a, b), axis=-1), (a * b).sum(-1)))


def nearest(a: np.ndarray, b: np.ndarray) -> float:
    """Mean angle between each pose and the nearest one of the other clip, both ways."""
    cross = np.stack([degrees(a[i][None], b).mean(-1) for i in range(len(a))])
    return float(0.5 * (cross.min(1).mean() + cross.min(0).mean()))


def feet(body: Body, limb_motion: LimbMotion, motion: Motion) -> dict[str, float]:
    """Worst drift in a stance and highest standing sole [leg lengths], deepest sole [body lengths]."""
    anatomy = body.anatomy
    if not anatomy.legs or not limb_motion.grounded:
        return {}
    world = motion_to_world(anatomy.skeleton, motion)
    found = feet_of(anatomy, world, motion.fps)
    stands = stances(limb_motion, anatomy)
    low = found.soles[..., 1].amin(-1).numpy()
    joints = found.joints.numpy()
    drift = 0.0
    for i in range(len(anatomy.legs)):
        for first, last in runs(stands[:, i]):
            place = joints[first:last, i][:, [0, 2]]
            drift = max(drift, float(np.linalg.norm(place - place.mean(0), axis=1).max()))
    unit = anatomy.leg_length
    floating = low[stands].max() if stands.any() else 0.0
    depth = max(-float(low.min()), 0.0) / anatomy.body_length
    return {"drift": drift / unit, "depth": depth, "float": max(floating, 0.0) / unit}


def flesh(body: Body, motion: Motion) -> float:
    """How deep skin is inside other flesh, beyond rest, at its worst place, mean over frames [body lengths]."""
    if not body.asset.has_mesh:
        return 0.0
    validated = prepare(body.anatomy)
    with torch.no_grad():
        return float(self_contact(validated, pose_body(validated, motion)).amax(1).mean())


def copied(source: Body, motion: Motion, target: Body) -> Motion:
    """The rival: each joint turns as much since rest as the joint at its place in the other body's limb."""
    world = motion_to_world(source.anatomy.skeleton, motion)[..., :3, :3]
    turned = world @ source.anatomy.T_rest[:, :3, :3].transpose(0, 2, 1)
    twins = {0: 0}
    known = {(limb.kind, limb.side, limb.rank): limb.joints for limb in source.anatomy.limbs}
    for limb in target.anatomy.limbs:
        theirs = known.get((limb.kind, limb.side, limb.rank), ())
        for i, joint in enumerate(limb.joints if theirs else ()):
            twins.setdefault(joint, theirs[round(i / max(len(limb.joints) - 1, 1) * (len(theirs) - 1))])
    skeleton, R = target.anatomy.skeleton, target.anatomy.T_rest[:, :3, :3]
    G = np.empty((len(motion), len(skeleton), 3, 3))
    local = np.empty_like(G)
    for joint, parent in enumerate(skeleton.parents):
        above = np.eye(3) if parent < 0 else G[:, parent] @ R[parent].T
        G[:, joint] = turned[:, twins[joint]] @ R[joint] if joint in twins else above @ R[joint]
        local[:, joint] = np.swapaxes(above @ R[joint], -1, -2) @ G[:, joint]
    scale = target.anatomy.leg_length / source.anatomy.leg_length
    rotations = matrix_to_quaternion(torch.from_numpy(local)).float()
    return Motion(Pose(scale * motion.pose.root, rotations), motion.fps, motion.name)


def change(anatomy: Anatomy, rng: np.random.Generator) -> tuple[RiggedAsset, list[int]]:
    """The same body with other proportions, rest pose, joint count, joint frames and no names; where its joints went.

    Arms of people and wings rest higher or lower, legs a little ahead or behind. The skin goes along.
    """
    skeleton, asset = anatomy.skeleton, anatomy.asset
    P, kids = anatomy.T_rest[:, :3, 3], skeleton.children
    factor, size = np.ones(len(skeleton)), np.ones(len(skeleton))
    lengths = {kind: rng.uniform(0.75, 1.3) for kind in ("leg", "arm", "wing", "fin", "head", "tail", "spine")}
    for limb in anatomy.limbs:
        factor[list(limb.joints[1:])] = lengths[limb.kind]
        size[list(limb.joints)] = lengths[limb.kind]
    turn = np.tile(np.eye(3), (len(skeleton), 1, 1))
    lift, swing = rng.uniform(-0.6, 0.9), rng.uniform(-0.15, 0.15)
    for parts in anatomy.parts:
        below = [parts.root]
        for joint in below:
            below += kids[joint]
        side = 1.0 if parts.limb.side == "left" else -1.0
        if parts.limb.kind == "wing" or (parts.limb.kind == "arm" and anatomy.kind == "person"):
            turn[below] = from_rotvec(np.array([0.0, 0.0, side * lift]))
        elif parts.limb.kind == "leg" and anatomy.kind not in ("spider", "insect"):
            turn[below] = from_rotvec(np.array([swing, 0.0, 0.0]))
    new = P.copy()
    for joint, parent in enumerate(skeleton.parents):
        if parent >= 0:
            new[joint] = new[parent] + factor[joint] * turn[parent] @ (P[joint] - P[parent])
    skin = _moved_skin(asset, P, new, turn, size)
    ground = (skin if len(skin) else new)[:, 1].min() - (asset.mesh.vertices.numpy() if len(skin) else P)[:, 1].min()
    new[:, 1] -= ground
    skin = skin - [0.0, ground, 0.0]
    parents, places, joints = [], [], []
    for joint, parent in enumerate(skeleton.parents):
        above = joints[parent] if parent >= 0 else -1
        if parent >= 0 and len(kids[parent]) == 1 and rng.random() < 0.25:
            parents.append(above)
            places.append(0.5 * (new[parent] + new[joint]))
            above = len(parents) - 1
        parents.append(above)
        places.append(new[joint])
        joints.append(len(parents) - 1)
    world = np.tile(np.eye(4), (len(parents), 1, 1))
    world[:, :3, :3] = from_rotvec(rng.normal(size=(len(parents), 3)))
    world[:, :3, 3] = places
    names = [f"bone_{i}" for i in rng.permutation(len(parents))]
    weights = Weights(
        torch.tensor(joints)[asset.weights.joints.long()].to(asset.weights.joints.dtype), asset.weights.values
    )
    mesh = replace(asset.mesh, vertices=torch.from_numpy(skin).to(asset.mesh.vertices.dtype))
    other = skeleton_of(names, tuple(parents), world)
    return replace(asset, name="changed", mesh=mesh, skeleton=other, weights=weights, clips={}, source=None), joints


def _moved_skin(asset: RiggedAsset, P: np.ndarray, new: np.ndarray, turn: np.ndarray, size: np.ndarray) -> np.ndarray:
    """The skin on joints that were moved, turned and scaled."""
    vertices = asset.mesh.vertices.double().numpy()
    joints, values = asset.weights.joints.long().numpy(), asset.weights.values.double().numpy()
    out = np.zeros_like(vertices)
    for k in range(joints.shape[1]):
        j = joints[:, k]
        moved = new[j] + size[j, None] * np.einsum("vab,vb->va", turn[j], vertices - P[j])
        out += values[:, k, None] * moved
    return out
