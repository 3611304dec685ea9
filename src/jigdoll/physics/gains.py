"""How stiff everything is: from mass, inertia and step size, so that an explicit integrator stays stable."""

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.math import GRAVITY
from jigdoll.physics.bodies import Bodies

QUICK = 8.0
"""How fast drives swing what hangs on them, where the integrator allows it [1/s]."""
LONGEST_LAG = 0.04
"""A drive's damping over its stiffness [s]: how far it may lag behind a steady motion."""


@dataclass(frozen=True, eq=False)
class Gains:
    """Stiffness (ke) and damping (kd) of all springs, for one size of step."""

    dt: float
    """[s]."""
    attach_ke: Float[Tensor, " bodies"]
    """Holds a body to its parent [N/m]."""
    attach_kd: Float[Tensor, " bodies"]
    target_ke: Float[Tensor, "bodies 3"]
    """Drives the compound angles [N m / rad]."""
    target_kd: Float[Tensor, "bodies 3"]
    ground_ke: Float[Tensor, " bodies"]
    """Of each corner of a body against the ground [N/m]."""
    ground_give: float
    """Damping of the ground: the push grows by this share per speed of approach [s/m]."""
    ground_soft: float
    """Depth over which the push sets in [m]."""
    ground_margin: float
    """Skin this far above the ground already touches it [m]: about what the load then presses in."""
    friction: float
    grip_ke: Float[Tensor, " bodies"]
    """Holds a corner to where it touched down [N/m]."""
    grip_kd: Float[Tensor, " bodies"]
    upright_ke: float
    """Turns the first body upright [N m / rad]."""
    upright_kd: float


@dataclass(frozen=True)
class Stiffness:
    """How stiff the body is to be, in its own units."""

    sag: float = 0.08
    """A joint of a leg that carries the whole weight on half the leg's length gives way by this much [rad]."""
    sink: float = 0.0008
    """The whole weight on two corners presses them so deep into the ground, as a share of the body's length."""
    friction: float = 1.0
    upright: float = 1.0
    """Torque per radian that turns the first body upright, in weights times leg lengths."""


def choose_gains(bodies: Bodies, dt: float, stiffness: Stiffness = Stiffness()) -> Gains:
    """Gains that hold the weight where the step size allows it, and are as stiff as is stable where it does not.

    A spring between free bodies of inverse mass w is stable under symplectic Euler while ke w dt^2 + 2 kd w dt < 4;
    chains of springs share that room, so each takes a fraction.
    """
    w_attach, w_turn, w_corner = _inverse_masses(bodies)
    weight = bodies.total_mass * GRAVITY
    target_ke, target_kd = _drives(bodies, stiffness, most=0.2 / (w_turn * dt**2))
    target_kd = torch.minimum(0.4 / (w_turn * dt), target_kd)
    ground_ke = torch.minimum(
        torch.full_like(w_corner, weight / (2 * stiffness.sink * bodies.length)), 0.5 / (w_corner * dt**2)
    )
    room = weight * bodies.leg_length * stiffness.upright
    inertia = float(bodies.total_mass * (0.3 * bodies.length) ** 2)
    return Gains(
        dt=dt,
        attach_ke=0.5 / (w_attach * dt**2),
        attach_kd=0.3 / (w_attach * dt),
        target_ke=target_ke,
        target_kd=target_kd,
        ground_ke=ground_ke,
        ground_give=1.0 / (0.5 * (GRAVITY * bodies.leg_length) ** 0.5),
        ground_soft=0.5 * stiffness.sink * bodies.length,
        ground_margin=3 * stiffness.sink * bodies.length,
        friction=stiffness.friction,
        grip_ke=0.7 * ground_ke,
        grip_kd=0.1 / (w_corner * dt),
        upright_ke=room,
        upright_kd=min(0.2 * float(torch.linalg.eigvalsh(bodies.inertia[0]).min()) / dt, (room * inertia) ** 0.5),
    )


def ideal_gains(bodies: Bodies, dt: float, *, friction: float = 1.0) -> Gains:
    """Gains for an implicit integrator: drives as stiff as load and inertia ask, whatever the step.

    A blow that lasts a tenth of a second needs drives that follow at `QUICK`, whatever hangs on them.
    """
    stiffness = Stiffness(friction=friction)
    ke, kd = _drives(bodies, stiffness, most=math.inf)
    inertia = subtree_inertia(bodies)
    ke = torch.maximum(ke, (2 * math.pi * QUICK) ** 2 * inertia)
    kd = torch.maximum(kd, 1.2 * torch.sqrt(ke * inertia))
    room = bodies.total_mass * GRAVITY * bodies.leg_length * stiffness.upright
    about = float(bodies.total_mass * (0.3 * bodies.length) ** 2)
    bounds = choose_gains(bodies, dt, stiffness)
    return replace(bounds, target_ke=ke, target_kd=kd, upright_ke=room, upright_kd=(room * about) ** 0.5)


def _drives(
    bodies: Bodies, stiffness: Stiffness, *, most: Float[Tensor, "bodies 3"] | float
) -> tuple[Float[Tensor, "bodies 3"], Float[Tensor, "bodies 3"]]:
    """Stiffness and damping of the joints' drives: what the load asks, or the most that is allowed."""
    weight = bodies.total_mass * GRAVITY
    lever = 0.5 * bodies.leg_length
    below = _subtree_mass(bodies)
    share = (below / bodies.total_mass).clamp_min(0.15)
    on_leg = torch.zeros(len(bodies), dtype=torch.bool)
    for foot in bodies.feet:
        joint = foot[-1]
        while bodies.parents[joint] >= 0 and float(below[joint]) < 0.4 * bodies.total_mass:
            on_leg[joint] = True
            joint = bodies.parents[joint]
    share = torch.where(on_leg, torch.ones_like(share), share)
    ke = (share * weight * lever / stiffness.sag)[:, None].expand(-1, 3).clamp(max=most)
    # Over half of critical damping for all that hangs on a joint; a leg carries the rest of the body as well.
    hanging = torch.where(on_leg[:, None], math.inf, 1.2 * torch.sqrt(ke * subtree_inertia(bodies)))
    return ke, torch.minimum(hanging, LONGEST_LAG * ke)


def _inverse_masses(
    bodies: Bodies,
) -> tuple[Float[Tensor, " bodies"], Float[Tensor, "bodies 3"], Float[Tensor, " bodies"]]:
    """What a unit impulse does at each joint, about each joint axis, and at the worst corner of each body."""
    inverse = torch.linalg.inv(bodies.inertia)
    eye = torch.eye(3, dtype=bodies.mass.dtype)

    def at(body: int, place: Tensor) -> Tensor:
        arm = place - bodies.com[body]
        K = torch.linalg.cross(arm.expand(3, 3), eye).T
        return eye / bodies.mass[body] - K @ inverse[body] @ K

    attach, turn, corner = [], [], []
    for body, parent in enumerate(bodies.parents):
        zero = bodies.com.new_zeros(3)
        about = bodies.axes[body].T @ inverse[body] @ bodies.axes[body]
        whole = at(body, zero)
        if parent >= 0:
            R = bodies.T_parent_body[body, :3, :3]
            about = about + bodies.axes[body].T @ R.T @ inverse[parent] @ R @ bodies.axes[body]
            whole = whole + R.T @ at(parent, bodies.T_parent_body[body, :3, 3]) @ R
        attach.append(torch.linalg.eigvalsh(whole).max())
        turn.append(about.diagonal())
        corner.append(torch.stack([torch.linalg.eigvalsh(at(body, c)).max() for c in bodies.contacts[body]]).max())
    return torch.stack(attach), torch.stack(turn), torch.stack(corner)


def _subtree_mass(bodies: Bodies) -> Float[Tensor, " bodies"]:
    below = bodies.mass.clone()
    for body in reversed(range(1, len(bodies))):
        below[bodies.parents[body]] += below[body]
    return below


def subtree_inertia(bodies: Bodies) -> Float[Tensor, "bodies 3"]:
    """Inertia at rest of all that hangs on each joint, about each of its axes [kg m^2]."""
    T = [bodies.T_parent_body[0]]
    for body in range(1, len(bodies)):
        T.append(T[bodies.parents[body]] @ bodies.T_parent_body[body])
    T_world = torch.stack(T)
    R = T_world[:, :3, :3]
    com = (R @ bodies.com[:, :, None])[..., 0] + T_world[:, :3, 3]
    own = R @ bodies.inertia @ R.mT
    about = torch.zeros(len(bodies), 3, dtype=bodies.mass.dtype)
    for body in range(len(bodies)):
        axes = R[body] @ bodies.axes[body]
        for other in range(body, len(bodies)):
            at = other
            while at > body:
                at = bodies.parents[at]
            if at != body:
                continue
            arm = com[other] - T_world[body, :3, 3]
            steiner = bodies.mass[other] * (arm @ arm * torch.eye(3, dtype=arm.dtype) - torch.outer(arm, arm))
            about[body] += ((own[other] + steiner) @ axes * axes).sum(0)
    return about
