"""A clip as the judge sees it: where joints, skin and feet are in every frame."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray

from jigdoll.errors import JigdollError
from jigdoll.judge.anatomy import JudgedBody
from jigdoll.kinematics import forward
from jigdoll.math.transforms import rigid_inverse
from jigdoll.skin.deform import deform
from jigdoll.types import Motion, RiggedAsset, Weights

MOST_POINTS = 16000
"""Beyond so many vertices only an even share of those above the feet is followed."""
FEW_POINTS = 400
"""Skin points of one foot that are followed at most."""


@dataclass(frozen=True, eq=False)
class Trace:
    """World positions [m] over a clip, relative to the ground at y = 0."""

    fps: float
    joints: Float[ndarray, "frames joints 3"]
    lowest: Float[ndarray, " frames"]
    """Height of the lowest point of the skin."""
    mass: Float[ndarray, "frames 3"]
    """Centre of the skin."""
    feet: tuple[Float[ndarray, "frames _ 3"], ...]
    """Skin of each foot (its joints where it has none), in the order of the body's legs."""
    center: Float[ndarray, "frames 3"]
    """Middle of the hips, or the root of a body without legs."""
    facing: Float[ndarray, "frames 2"]
    """Where the body faces on the ground (x, z), unit length."""


def follow(body: JudgedBody, motion: Motion, *, ground: float) -> Trace:
    """Pose the working copy and pick what the metrics need."""
    asset = body.asset
    with torch.no_grad():
        T_world_joint = forward(asset.skeleton, motion.pose)
        joints = T_world_joint[..., :3, 3].double().numpy()
        moves = T_world_joint @ rigid_inverse(torch.from_numpy(body.anatomy.T_rest).to(T_world_joint))
        chosen, feet = _points(body, asset.mesh.vertices.shape[0])
        rows = torch.from_numpy(chosen)
        weights = Weights(asset.weights.joints[rows], asset.weights.values[rows])
        skin = deform(asset.mesh.vertices[rows], weights, moves).numpy()
    joints = joints - np.array([0.0, ground, 0.0])
    hips = [leg.hip for leg in body.legs]
    center = joints[:, hips].mean(1) if hips else joints[:, 0]
    soles = []
    for leg, places in zip(body.legs, feet, strict=True):
        sole = skin[:, places].astype(np.float64) - np.array([0.0, ground, 0.0])
        soles.append(sole if len(places) else joints[:, list(leg.foot)])
    shape = skin if skin.shape[1] else joints.astype(np.float32) + np.array([0, ground, 0], np.float32)
    return Trace(
        fps=motion.fps,
        joints=joints,
        lowest=shape[..., 1].min(1).astype(np.float64) - ground,
        mass=shape.mean(1, dtype=np.float64) - np.array([0.0, ground, 0.0]),
        feet=tuple(soles),
        center=center,
        facing=_facing(body, joints),
    )


def refuse_what_cannot_be_judged(asset: RiggedAsset, motion: Motion) -> None:
    """Say why a clip cannot be judged."""
    if motion.pose.root.ndim != 2:
        raise JigdollError(f"a clip has one axis of frames, this one has {motion.pose.root.ndim - 1}; judge one by one")
    count = motion.pose.rotations.shape[-2]
    if count != len(asset.skeleton):
        raise JigdollError(
            f"the clip {motion.name!r} moves {count} joints and {asset.name} has {len(asset.skeleton)}; retarget it"
        )
    if len(motion) < 2 or not motion.fps > 0:
        raise JigdollError(f"the clip {motion.name!r} has {len(motion)} frame(s) at {motion.fps:g}/s; nothing moves")
    for field in (motion.pose.root, motion.pose.rotations):
        if not bool(torch.isfinite(field).all()):
            raise JigdollError(f"the clip {motion.name!r} holds NaN or infinite values; it cannot be judged")


def _points(body: JudgedBody, vertices: int) -> tuple[Int[ndarray, " points"], list[Int[ndarray, " _"]]]:
    """The vertices to follow, and where the skin of each foot stands among them."""
    soles = [_thinned(leg.skin, FEW_POINTS) for leg in body.legs]
    others = _thinned(np.arange(vertices), MOST_POINTS)
    chosen = np.unique(np.concatenate([others, *soles]))
    return chosen, [np.searchsorted(chosen, sole) for sole in soles]


def _thinned(places: Int[ndarray, " points"], most: int) -> Int[ndarray, " _"]:
    """At most so many of them, evenly spread."""
    if len(places) <= most:
        return places
    return places[np.linspace(0, len(places) - 1, most).astype(np.int64)]


def _facing(body: JudgedBody, joints: Float[ndarray, "frames joints 3"]) -> Float[ndarray, "frames 2"]:
    """Ahead is square to the line between left and right hips (or shoulders), whatever the joints are called."""
    across = [joints[:, pair.left[0]] - joints[:, pair.right[0]] for pair in body.pairs if pair.kind == "leg"]
    across = across or [joints[:, pair.left[0]] - joints[:, pair.right[0]] for pair in body.pairs]
    if not across:
        return np.tile([0.0, 1.0], (len(joints), 1))
    left = np.sum(across, axis=0)[:, [0, 2]]
    # Left is +X when ahead is +Z.
    ahead = np.stack([-left[:, 1], left[:, 0]], 1)
    size = np.linalg.norm(ahead, axis=1, keepdims=True)
    return np.where(size > 1e-9, ahead / np.maximum(size, 1e-9), [0.0, 1.0])
