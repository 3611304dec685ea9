"""Between a clip and the bodies that are to perform it: places, angles, velocities, and the way back."""

import math
import warnings
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.contacts import Feet, standing_levels
from jigdoll.errors import JigdollError, RepairWarning
from jigdoll.kinematics import forward
from jigdoll.math.rotations import (
    matrix_to_quaternion,
    quaternion_inverse,
    quaternion_multiply,
    quaternion_to_compound,
    quaternion_to_matrix,
    quaternion_to_rotvec,
)
from jigdoll.math.transforms import apply, polar, transform
from jigdoll.physics.bodies import Bodies
from jigdoll.types import Motion, Pose, Skeleton

LEAP = 0.12
"""Mean turn of the joints from the first frame to the second [rad] above which it may be a leap."""
NEAR_LOCK = 1.1
"""Where the middle angle of a joint goes beyond this [rad], its angles are counted from its mean pose instead."""

OWN_TURN = 0.3
"""How much a body's own turn in a clip counts against where its joints are, when the clip moves joints apart."""

UNEVEN = 0.02
"""Levels of feet that differ by less than this are one ground [body lengths]."""
FREE = 1e3
"""A limit that no joint meets [rad]."""


@dataclass(frozen=True, eq=False)
class Reference:
    """What the bodies are to do, frame by frame, lifted or lowered as a whole so that it stands on the ground."""

    fps: float
    T_world_body: Float[Tensor, "frames bodies 4 4"]
    neutral: Float[Tensor, "bodies 3 3"]
    """The rotation of each joint from rest at which its angles are zero."""
    angles: Float[Tensor, "frames bodies 3"]
    """Compound angles about the bodies' axes from neutral [rad], continuous in time."""
    twists: Float[Tensor, "frames bodies 6"]
    """Velocity of the centres of mass [m/s] and angular velocity [rad/s], world."""
    limits: Float[Tensor, "bodies 3 2"]
    """How far the joints turn [rad], from neutral: as the skeleton says, but never less than in the clip."""
    lift: float
    """How far the clip was raised [m]."""

    def __len__(self) -> int:
        return self.T_world_body.shape[0]


def check_clip(skeleton: Skeleton, motion: Motion) -> Motion:
    """Refuse what cannot be simulated; drop what rigid bodies cannot do, and say so."""
    pose, name = motion.pose, motion.name
    if not (math.isfinite(motion.fps) and motion.fps > 0):
        raise JigdollError(f"clip {name!r}: {motion.fps} frames per second; a positive rate is needed to know its time")
    if pose.rotations.shape[-2] != len(skeleton):
        raise JigdollError(f"clip {name!r} moves {pose.rotations.shape[-2]} joints, the character has {len(skeleton)}")
    if len(motion) < 2:
        raise JigdollError(f"clip {name!r} has {len(motion)} frame; tracking needs at least two")
    bad = ~torch.isfinite(pose.root).all(-1) | ~torch.isfinite(pose.rotations).all(-1).all(-1)
    if bool(bad.any()):
        first = int(bad.nonzero()[0])
        raise JigdollError(f"clip {name!r} is not finite in {int(bad.sum())} frames, first in frame {first}; repair it")
    loose = pose.offsets is not None and float(pose.offsets.abs().max()) > 1e-4
    scaled = pose.scales is not None and float((pose.scales - 1).abs().max()) > 1e-4
    if loose or scaled:
        what = " and ".join(word for word, on in (("moves joints apart", loose), ("scales joints", scaled)) if on)
        warnings.warn(
            f"clip {name!r} {what}: rigid bodies cannot, they follow as near as they can", RepairWarning, stacklevel=3
        )
    return _without_false_start(motion)


def _without_false_start(motion: Motion) -> Motion:
    """The clip with its second pose in the place of a first one that it leaps out of: mocap files begin in a T-pose."""
    q, root = motion.pose.rotations, motion.pose.root
    steps = quaternion_to_rotvec(quaternion_multiply(q[1:], quaternion_inverse(q[:-1]))).norm(dim=-1).mean(-1)
    if len(steps) < 4 or not float(steps[0]) > max(LEAP, 8 * float(steps[1:].median())):
        return motion
    warnings.warn(
        f"clip {motion.name!r} leaps out of its first frame (a T-pose?); the second one stands in for it",
        RepairWarning,
        stacklevel=4,
    )
    order = torch.arange(len(motion)).clamp_min(1)
    more = (motion.pose.offsets, motion.pose.scales)
    pose = Pose(root[order], q[order], *(None if part is None else part[order] for part in more))
    return Motion(pose, motion.fps, motion.name)


def make_reference(bodies: Bodies, skeleton: Skeleton, motion: Motion, *, ground: bool = True) -> Reference:
    """The clip as the bodies see it: where they are in it, as near as joints that hold together allow."""
    T = nearest_rigid(bodies, forward(in_double(skeleton), pose_in_double(motion.pose))[:, list(bodies.joints)])
    lift = 0.0
    if ground:
        lift = -_ground_level(bodies, T, motion.fps)
        T = T.clone()
        T[..., 1, 3] += lift
    neutral = torch.eye(3, dtype=T.dtype).expand(len(bodies), 3, 3)
    angles = torch.zeros(len(T), len(bodies), 3, dtype=T.dtype)
    bare = Reference(motion.fps, T, neutral, angles, twists(bodies, T, motion.fps), bodies.limits, lift)
    return with_angles(bodies, bare)


def feet_of(
    bodies: Bodies, T: Float[Tensor, "frames bodies 4 4"], fps: float, feet: tuple[tuple[int, ...], ...]
) -> Feet:
    """These feet in a clip; feet of fewer bodies than others repeat their last one."""
    places = apply(T, bodies.contacts.expand(len(T), -1, -1, -1))
    most = max(len(foot) for foot in feet)
    soles = [places[:, [*foot, *[foot[-1]] * (most - len(foot))]].flatten(1, 2) for foot in feet]
    return Feet(T[:, [foot[-1] for foot in feet], :3, 3], torch.stack(soles, 1), fps, bodies.length)


def _ground_level(bodies: Bodies, T: Float[Tensor, "frames bodies 4 4"], fps: float) -> float:
    """The height of the ground under a clip [m]: what feet stand on, or, where it is lower, what the body lies on."""
    low = apply(T, bodies.contacts.expand(len(T), -1, -1, -1))[..., 1].amin(-1)
    if not bodies.feet:
        return float(torch.quantile(low.amin(1), 0.1))
    levels = standing_levels(feet_of(bodies, T, fps, bodies.feet))
    level = float(levels[levels <= levels.min() + UNEVEN * bodies.length].mean())
    feet = {body for foot in bodies.feet for body in foot}
    others = [body for body in range(len(bodies)) if body not in feet and (body in bodies.parents or not body)]
    lies = float(low[:, others].amin(1).median()) if others else level
    return lies if lies < level - UNEVEN * bodies.length else level


def with_angles(bodies: Bodies, reference: Reference) -> Reference:
    """The reference with the joints' angles and limits as its places have them."""
    neutral, angles = _angles(bodies, local_rotations(bodies, reference.T_world_body))
    return replace(reference, neutral=neutral, angles=angles, limits=_limits(bodies, neutral, angles))


def nearest_rigid(
    bodies: Bodies, T_world_joint: Float[Tensor, "frames bodies 4 4"]
) -> Float[Tensor, "frames bodies 4 4"]:
    """The bodies, joined at their joints, as near as they come to a clip whose joints move apart or are scaled.

    From the first body outwards each one turns so that the joints which it carries come nearest to where the clip has
    them, from where the body itself came to be; what these leave open follows the clip's own turn. A clip of rigid
    bones stays exactly what it is.
    """
    R, place = polar(T_world_joint[..., :3, :3])[0], T_world_joint[..., :3, 3]
    children: list[list[int]] = [[] for _ in range(len(bodies))]
    for body, parent in enumerate(bodies.parents):
        if parent >= 0:
            children[parent].append(body)
    turns, places = list(R.unbind(1)), list(place.unbind(1))
    for body, below in enumerate(children):
        if body:
            parent = bodies.parents[body]
            places[body] = places[parent] + turns[parent] @ bodies.T_parent_body[body, :3, 3]
        if below:
            arms = bodies.T_parent_body[below, :3, 3]
            wished = place[:, below] - places[body][:, None]
            own = OWN_TURN * arms.square().sum().clamp_min((1e-3 * bodies.length) ** 2)
            turns[body] = polar(wished.mT @ arms + own * R[:, body])[0]
    return transform(torch.stack(turns, 1), torch.stack(places, 1))


def twists(bodies: Bodies, T: Float[Tensor, "frames bodies 4 4"], fps: float) -> Float[Tensor, "frames bodies 6"]:
    """Velocities by central differences, one-sided at the ends."""
    com = (T[..., :3, :3] @ bodies.com[:, :, None])[..., 0] + T[..., :3, 3]
    linear = torch.gradient(com, spacing=1 / fps, dim=0)[0]
    q = matrix_to_quaternion(T[..., :3, :3])
    before, after = torch.cat([q[:1], q[:-1]]), torch.cat([q[1:], q[-1:]])
    span = torch.full((len(T), 1, 1), 2.0, dtype=T.dtype)
    span[[0, -1]] = 1.0
    angular = quaternion_to_rotvec(quaternion_multiply(after, quaternion_inverse(before))) / span * fps
    return torch.cat([linear, angular], -1)


def lowest(bodies: Bodies, rows: Float[Tensor, "frames bodies 13"]) -> Float[Tensor, "frames bodies"]:
    """Height of each cuboid's lowest corner [m]."""
    T = transform(quaternion_to_matrix(rows[..., 3:7]), rows[..., :3])
    return apply(T, bodies.contacts.to(rows.dtype).expand(len(rows), -1, -1, -1))[..., 1].amin(-1)


def local_rotations(bodies: Bodies, T: Float[Tensor, "frames bodies 4 4"]) -> Float[Tensor, "frames bodies 3 3"]:
    """What each joint does to its rest: R_parent T_parent_body R = R_body."""
    above = T[:, [max(p, 0) for p in bodies.parents], :3, :3].clone()
    above[:, 0] = torch.eye(3, dtype=T.dtype)
    return (above @ bodies.T_parent_body[:, :3, :3]).mT @ T[..., :3, :3]


def _angles(
    bodies: Bodies, local: Float[Tensor, "frames bodies 3 3"]
) -> tuple[Float[Tensor, "bodies 3 3"], Float[Tensor, "frames bodies 3"]]:
    """Angles from rest, or from a joint's mean pose where they come near the lock of the compound axes."""
    quats = matrix_to_quaternion(local)
    angles = quaternion_to_compound(quats, bodies.axes)
    near = angles[..., 1].abs().amax(0) > NEAR_LOCK
    U, _, Vh = torch.linalg.svd(local.sum(0))
    U = U * torch.linalg.det(U @ Vh).sign()[:, None, None]
    neutral = torch.where(near[:, None, None], U @ Vh, torch.eye(3, dtype=local.dtype))
    angles = quaternion_to_compound(matrix_to_quaternion(neutral.mT @ local), bodies.axes)
    jumps = torch.round(torch.diff(angles, dim=0) / (2 * math.pi)).cumsum(0) * (2 * math.pi)
    return neutral, torch.cat([angles[:1], angles[1:] - jumps])


def _limits(
    bodies: Bodies, neutral: Float[Tensor, "bodies 3 3"], angles: Float[Tensor, "frames bodies 3"]
) -> Float[Tensor, "bodies 3 2"]:
    """The skeleton's limits; a joint that is counted from another pose than rest has none: they say nothing there."""
    at_rest = (neutral == torch.eye(3, dtype=neutral.dtype)).all(-1).all(-1)[:, None]
    lower = torch.where(at_rest, torch.minimum(bodies.limits[..., 0], angles.amin(0)), -FREE)
    upper = torch.where(at_rest, torch.maximum(bodies.limits[..., 1], angles.amax(0)), FREE)
    return torch.stack([lower, upper], -1)


def pose_in_double(pose: Pose) -> Pose:
    """The pose with twice the digits."""
    more = (pose.offsets, pose.scales)
    return Pose(
        pose.root.double(), pose.rotations.double(), *(None if part is None else part.double() for part in more)
    )


def in_double(skeleton: Skeleton) -> Skeleton:
    """The skeleton with twice the digits: differences over time need them."""
    return Skeleton(
        skeleton.names,
        skeleton.parents,
        skeleton.T_parent_joint.double(),
        skeleton.axes.double(),
        skeleton.limits.double(),
    )
