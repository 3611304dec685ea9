"""Target angles over the simulation steps: the reference as a start, and a smooth basis for what is added to it."""

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.math.rotations import (
    matrix_to_quaternion,
    quaternion_inverse,
    quaternion_multiply,
    quaternion_to_compound,
    quaternion_to_matrix,
)
from jigdoll.physics.bodies import Bodies
from jigdoll.physics.gains import Gains
from jigdoll.physics.reference import Reference, local_rotations

MOST_LOAD = 0.3
"""How much too far a drive aims at most for its load [rad]."""


def base_controls(
    reference: Reference,
    gains: Gains,
    substeps: int,
    *,
    lead: bool = True,
    torques: Float[Tensor, "frames bodies 3"] | None = None,
) -> Float[Tensor, "steps dofs"]:
    """The reference at every simulation step, in the engine's layout.

    A drive with damping lags behind; `lead` aims ahead by kd / ke times the rate, which makes up for it. A drive under
    load gives way; with the `torques` that the clip asks for (about the drives' axes) it aims as much too far.
    """
    angles = reference.angles
    if lead:
        rates = torch.gradient(angles, spacing=1 / reference.fps, dim=0)[0]
        angles = angles + gains.target_kd / gains.target_ke * rates
    if torques is not None:
        angles = angles + (torques / gains.target_ke).clamp(-MOST_LOAD, MOST_LOAD)
    place = reference.T_world_body[:, 0, :3, 3]
    turn = matrix_to_quaternion(reference.T_world_body[:, 0, :3, :3])
    flips = torch.where((turn[1:] * turn[:-1]).sum(-1) < 0, -1.0, 1.0).to(turn.dtype).cumprod(0)
    turn = torch.cat([turn[:1], turn[1:] * flips[:, None]])
    rows = between(torch.cat([place, turn, angles[:, 1:].flatten(1)], 1), substeps)
    rows[:, 3:7] = torch.nn.functional.normalize(rows[:, 3:7], dim=-1)
    return rows.float()


def about_axes(
    bodies: Bodies, reference: Reference, torques: Float[Tensor, "frames bodies 3"]
) -> Float[Tensor, "frames bodies 3"]:
    """Torques in the world as what the three drives of each joint give together."""
    R = reference.T_world_body[..., :3, :3]
    axes = torch.stack(_drive_axes(bodies, reference.neutral, R, reference.angles), -1)
    return torch.linalg.solve(axes, torques)


def between(values: Float[Tensor, "frames n"], substeps: int) -> Float[Tensor, "steps n"]:
    """Catmull-Rom curves through the frames, at the end of each substep."""
    padded = torch.cat([2 * values[:1] - values[1:2], values, 2 * values[-1:] - values[-2:-1]])
    u = ((torch.arange(substeps, dtype=values.dtype) + 1) / substeps)[:, None]
    p0, p1, p2, p3 = (padded[i : i + len(values) - 1, None] for i in range(4))
    curve = p1 + 0.5 * u * (p2 - p0 + u * (2 * p0 - 5 * p1 + 4 * p2 - p3 + u * (3 * (p1 - p2) + p3 - p0)))
    return curve.flatten(0, 1)


def spline_basis(frames: int, substeps: int, knots: int) -> Float[Tensor, "steps knots"]:
    """Uniform cubic B-splines with so many knots per frame, at the end of each substep."""
    steps = (frames - 1) * substeps
    at = (torch.arange(steps, dtype=torch.float64) + 1) / substeps * knots
    centres = torch.arange(-1, (frames - 1) * knots + 2, dtype=torch.float64)
    x = (at[:, None] - centres).abs()
    near, far = 2 / 3 - x**2 + x**3 / 2, (2 - x).clamp_min(0) ** 3 / 6
    return torch.where(x < 1, near, far).float()


def drive_torques(
    bodies: Bodies,
    neutral: Float[Tensor, "bodies 3 3"],
    gains: Gains,
    rows: Float[Tensor, "frames bodies 13"],
    controls: Float[Tensor, "frames dofs"],
) -> Float[Tensor, "frames bodies 3"]:
    """What the joints' drives do [N m] (AKD Eq. 12); the first body has none."""
    rows = rows.double()
    R = quaternion_to_matrix(rows[..., 3:7])
    T = torch.eye(4, dtype=torch.float64).repeat(*rows.shape[:2], 1, 1)
    T[..., :3, :3] = R
    local = neutral.mT @ local_rotations(bodies, T)
    angles = quaternion_to_compound(matrix_to_quaternion(local), bodies.axes)
    axes = _drive_axes(bodies, neutral, R, angles)
    parents = [max(p, 0) for p in bodies.parents]
    spin = rows[..., 10:] - rows[:, parents, 10:]
    rates = torch.stack([(axis * spin).sum(-1) for axis in axes], -1)
    aims = controls[:, 7:].double().unflatten(-1, (len(bodies) - 1, 3))
    torque = torch.zeros_like(angles)
    torque[:, 1:] = gains.target_ke[1:] * (aims - angles[:, 1:]) - gains.target_kd[1:] * rates[:, 1:]
    return torque


def _drive_axes(
    bodies: Bodies,
    neutral: Float[Tensor, "bodies 3 3"],
    R: Float[Tensor, "frames bodies 3 3"],
    angles: Float[Tensor, "frames bodies 3"],
) -> list[Float[Tensor, "frames bodies 3"]]:
    """The axes of the compound angles in the world."""
    frame = R[:, [max(p, 0) for p in bodies.parents]] @ bodies.T_parent_body[:, :3, :3] @ neutral @ bodies.axes
    c, s = angles[..., 0].cos(), angles[..., 0].sin()
    return [frame[..., 0], c[..., None] * frame[..., 1] + s[..., None] * frame[..., 2], (R @ bodies.axes)[..., 2]]


def help_torques(
    gains: Gains,
    rows: Float[Tensor, "frames bodies 13"],
    wished: Float[Tensor, "frames 7"],
    *,
    upright: float,
    heading: float,
) -> Float[Tensor, "frames 3"]:
    """The virtual torque on the first body [N m], as the engine gives it."""
    first = rows[:, 0].double()
    off = quaternion_multiply(wished[:, 3:7].double(), quaternion_inverse(first[:, 3:7]))
    off = torch.where(off[:, :1] < 0, -off, off)
    part = off.new_tensor([1.0, heading, 1.0])
    return part * (
        2 * upright * gains.upright_ke * off[:, 1:] - min(upright, 1.0) ** 0.5 * gains.upright_kd * first[:, 10:]
    )
