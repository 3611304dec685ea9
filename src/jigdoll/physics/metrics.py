"""How physical a clip is, from the clip alone: what forces it would need, and whether a ground could give them.

Momenta of the bodies are differenced over the frames; what gravity does not explain must come from contacts inside
their friction cones, and what these cannot give is the root residual: the hand that holds a puppet.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from jigdoll.kinematics import forward
from jigdoll.math import GRAVITY
from jigdoll.math.rotations import (
    matrix_to_quaternion,
    quaternion_inverse,
    quaternion_multiply,
    quaternion_to_matrix,
    quaternion_to_rotvec,
    rotvec_to_quaternion,
)
from jigdoll.math.transforms import apply
from jigdoll.physics.bodies import Bodies
from jigdoll.physics.reference import in_double, nearest_rigid, pose_in_double
from jigdoll.types import Motion, Skeleton

TOUCH = 0.008
"""Corners nearer to the ground than this share of the length can be pushed by it."""
TILTED = 60.0
"""A first body that leans further than this from where it began [degrees] has fallen ..."""
LOW = 0.45
"""... and so has one whose height is less than this share of its height at rest."""


@dataclass(frozen=True)
class PhysicalVerdict:
    """What a clip would need."""

    flight: float
    """Share of frames without a contact."""
    ballistic: float
    """Mean deviation of the centre of mass from free fall in flight [g]; 0 without flight."""
    in_cone: float
    """Share of frames with contact in which the whole push on the body lies within the friction cone."""
    root_force: float
    """Mean force that no contact can give [weights]."""
    root_torque: float
    """Mean torque that no contact can give [weights x leg lengths]."""
    torque_peak: float
    """Largest torque of a joint [weights x leg lengths]."""
    transport: float
    """Cost of transport: work of the joints, counted positive, per weight and way; infinite on the spot."""
    fell: bool


def physical_verdict(
    bodies: Bodies, skeleton: Skeleton, motion: Motion, *, friction: float = 1.0, ground: float = 0.0
) -> PhysicalVerdict:
    """Measure a clip of at least four frames; `ground` is the floor's height [m]."""
    T = nearest_rigid(bodies, forward(in_double(skeleton), pose_in_double(motion.pose))[:, list(bodies.joints)])
    T[..., 1, 3] -= ground
    found = _inverse_dynamics(bodies, T, motion.fps, friction=friction)
    total, standing, M = found.total, found.standing, bodies.total_mass * GRAVITY
    residual = total - found.contact.sum(1)
    force, torque = residual[:, :3], residual[:, 3:] - torch.linalg.cross(found.middle, residual[:, :3])
    side = total[:, [0, 2]].norm(dim=1)
    inside = (total[:, 1] >= 0) & (side <= friction * total[:, 1] + 1e-9)
    torques = found.torques
    power = (torques * (found.spin - found.spin[:, [max(p, 0) for p in bodies.parents]])).sum(-1)
    way = float(torch.diff(T[:, 0, :3, 3], dim=0)[:, [0, 2]].norm(dim=1).sum())
    work = float(power.abs().sum()) / motion.fps
    return PhysicalVerdict(
        flight=float((~standing).double().mean()),
        ballistic=float(total[~standing, :3].norm(dim=1).mean() / M) if bool((~standing).any()) else 0.0,
        in_cone=float(inside[standing].double().mean()) if bool(standing.any()) else 1.0,
        root_force=float(force.norm(dim=1).mean() / M),
        root_torque=float(torque.norm(dim=1).mean() / (M * bodies.leg_length)),
        torque_peak=float(torques.norm(dim=-1).max() / (M * bodies.leg_length)),
        transport=work / (M * way) if way > 0.02 * bodies.length else float("inf"),
        fell=has_fallen(bodies, T),
    )


def root_residuals(
    bodies: Bodies, T_world_body: Float[Tensor, "frames bodies 4 4"], fps: float, *, friction: float
) -> tuple[Float[Tensor, "inner 3"], Float[Tensor, "inner 3"]]:
    """Force [N] and torque about the centre of mass [N m] that no contact can give, at all but the end frames."""
    found = _inverse_dynamics(bodies, T_world_body, fps, friction=friction)
    residual = found.total - found.contact.sum(1)
    return residual[:, :3], residual[:, 3:] - torch.linalg.cross(found.middle, residual[:, :3])


def joint_torques(
    bodies: Bodies, T_world_body: Float[Tensor, "frames bodies 4 4"], fps: float, *, friction: float, ground: bool
) -> Float[Tensor, "frames bodies 3"]:
    """What the joints have to do in a clip [N m], world; the first body's is zero. The end frames repeat the next."""
    found = _inverse_dynamics(bodies, T_world_body, fps, friction=friction, ground=ground)
    return torch.cat([found.torques[:1], found.torques, found.torques[-1:]])


@dataclass(frozen=True, eq=False)
class _Dynamics:
    """What moves the bodies at all but the end frames; wrenches are about the origin."""

    total: Float[Tensor, "inner 6"]
    """What the whole body needs besides gravity."""
    contact: Float[Tensor, "inner bodies 6"]
    standing: Bool[Tensor, " inner"]
    middle: Float[Tensor, "inner 3"]
    """The centre of mass [m]."""
    spin: Float[Tensor, "inner bodies 3"]
    torques: Float[Tensor, "inner bodies 3"]
    """Of the joints, on what hangs on them [N m]."""


def _inverse_dynamics(
    bodies: Bodies, T: Float[Tensor, "frames bodies 4 4"], fps: float, *, friction: float, ground: bool = True
) -> _Dynamics:
    """From motion to forces; without a ground there is no gravity either."""
    needed, spin = _momentum_rates(bodies, T, fps)
    inner = T[1:-1]
    centres = (inner[..., :3, :3] @ bodies.com[:, :, None])[..., 0] + inner[..., :3, 3]
    weight = bodies.mass[:, None] * bodies.mass.new_tensor([0.0, -GRAVITY if ground else 0.0, 0.0])
    pull = torch.cat([weight.expand_as(centres), torch.linalg.cross(centres, weight.expand_as(centres))], -1)
    push = needed - pull  # what joints and ground must give to each body
    corners = apply(inner, bodies.contacts.expand(len(inner), -1, -1, -1))
    touching = (corners[..., 1] < TOUCH * bodies.length) & ground
    total = push.sum(1)
    contact = _contact_wrenches(corners, touching, total, friction)
    middle = (bodies.mass[:, None] * centres).sum(1) / bodies.total_mass
    torques = _joint_torques(bodies, inner, push - contact)
    return _Dynamics(total, contact, touching.flatten(1).any(1), middle, spin, torques)


def has_fallen(bodies: Bodies, T_world_body: Float[Tensor, "frames bodies 4 4"]) -> bool:
    """Whether the first body tips over or comes down in any frame."""
    first = T_world_body[:, 0]
    up = (first[:, :3, :3] @ first[0, :3, :3].mT)[:, 1, 1].clamp(-1, 1)
    tilt = float(torch.rad2deg(torch.acos(up)).max())
    rest = float(bodies.T_parent_body[0, 1, 3])
    return tilt > TILTED or float(first[:, 1, 3].min()) < LOW * rest


def _momentum_rates(
    bodies: Bodies, T: Float[Tensor, "frames bodies 4 4"], fps: float
) -> tuple[Float[Tensor, "inner bodies 6"], Float[Tensor, "inner bodies 3"]]:
    """Rates of linear and angular momentum about the origin, and angular velocities, at all but the end frames."""
    com = (T[..., :3, :3] @ bodies.com[:, :, None])[..., 0] + T[..., :3, 3]
    velocity = torch.diff(com, dim=0) * fps
    q = matrix_to_quaternion(T[..., :3, :3])
    turn = quaternion_to_rotvec(quaternion_multiply(q[1:], quaternion_inverse(q[:-1])))
    halfway = quaternion_to_matrix(quaternion_multiply(rotvec_to_quaternion(0.5 * turn), q[:-1]))
    spin = turn * fps
    inertia = halfway @ bodies.inertia @ halfway.mT
    linear = bodies.mass[:, None] * velocity
    about = (inertia @ spin[..., None])[..., 0] + torch.linalg.cross(0.5 * (com[1:] + com[:-1]), linear)
    return torch.diff(torch.cat([linear, about], -1), dim=0) * fps, 0.5 * (spin[1:] + spin[:-1])


def _contact_wrenches(
    corners: Float[Tensor, "inner bodies points 3"], touching: Tensor, total: Float[Tensor, "inner 6"], friction: float
) -> Float[Tensor, "inner bodies 6"]:
    """The pushes inside friction pyramids that come nearest to the whole wrench (non-negative least squares)."""
    from scipy.optimize import nnls

    edges = np.array([[np.cos(a) * friction, 1.0, np.sin(a) * friction] for a in np.arange(8) * np.pi / 4])
    out = torch.zeros(*corners.shape[:2], 6, dtype=torch.float64)
    for frame in range(len(corners)):
        places = corners[frame][touching[frame]].numpy()
        if not len(places):
            continue
        owners = touching[frame].nonzero()[:, 0]
        force = np.repeat(edges[None], len(places), 0)
        moment = np.cross(places[:, None], force)
        columns = np.concatenate([force, moment], -1).reshape(-1, 6).T
        # A little preference for small pushes spreads the load and keeps the system well posed.
        small = 1e-4 * np.abs(columns).max() * np.eye(columns.shape[1])
        share, _ = nnls(np.vstack([columns, small]), np.concatenate([total[frame].numpy(), np.zeros(len(small))]))
        wrench = torch.from_numpy((columns * share).T.reshape(len(places), 8, 6).sum(1))
        out[frame].index_add_(0, owners, wrench)
    return out


def _joint_torques(
    bodies: Bodies, T: Float[Tensor, "inner bodies 4 4"], push: Float[Tensor, "inner bodies 6"]
) -> Float[Tensor, "inner bodies 3"]:
    """Torques at the joints, for all that hangs on each; the first body has none."""
    below = push.clone()
    order: Sequence[int] = range(len(bodies) - 1, 0, -1)
    for body in order:
        below[:, bodies.parents[body]] += below[:, body]
    place = T[..., :3, 3]
    torque = below[..., 3:] - torch.linalg.cross(place, below[..., :3])
    torque[:, 0] = 0
    return torque
