"""How stiff springs between light and heavy bodies may be: the largest eigenvalue of all of them together.

A spring between two bodies is stable under symplectic Euler while ke w dt^2 + 2 kd w dt < 4, w the inverse effective
mass. A small body that carries many others belongs to many springs, and together they are too stiff where each alone
is not. Here all springs of a character are put into one matrix, for several poses, and those that drive its largest
eigenvalue are softened until the integrator can hold it; the others stay what they are.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.physics.bodies import Bodies
from jigdoll.physics.gains import Gains

ROOM = 3.4
"""The largest eigenvalue of (K dt^2 + 2 D dt) / M that is allowed; 4 is where springs explode."""
TOUCHES = 0.02
"""Skin that is no higher than this may touch the ground [body lengths]: a knee in the air softens nothing."""
ROUNDS = 30
"""How often springs are softened before what is left is scaled as a whole."""


@dataclass(frozen=True, eq=False)
class _Springs:
    """Every spring as rows of a Jacobian, divided by the square root of mass, in one pose."""

    rows: Float[Tensor, "rows dofs"]
    strength: Float[Tensor, " rows"]
    """ke dt^2 + 2 kd dt of each row."""
    group: Float[Tensor, " rows"]
    """What is softened together: the attachment of a body, its drives, its ground."""


def stabilised(bodies: Bodies, gains: Gains, poses: Float[Tensor, "poses bodies 4 4"], *, ground: bool = True) -> Gains:
    """The gains, softened as little as lets the integrator hold the bodies in all these poses."""
    springs = [_springs(bodies, gains, pose, ground=ground) for pose in poses]
    soft = torch.ones(3 * len(bodies), dtype=torch.float64)
    for _ in range(ROUNDS):
        worst = max((_stiffest(each, soft) for each in springs), key=lambda found: found[0])
        if worst[0] <= ROOM:
            break
        share = worst[1] / worst[1].max()
        soft = soft * (1 - share * min(0.6, 1.5 * (1 - 0.97 * ROOM / worst[0])))
    left = max(_stiffest(each, soft)[0] for each in springs)
    soft = soft * min(1.0, 1.1 * ROOM / left)
    attach, drive, floor = soft.split(len(bodies))
    return replace(
        gains,
        attach_ke=gains.attach_ke * attach,
        attach_kd=gains.attach_kd * attach,
        target_ke=gains.target_ke * drive[:, None],
        target_kd=gains.target_kd * drive[:, None],
        ground_ke=gains.ground_ke * floor,
        grip_ke=gains.grip_ke * floor,
        grip_kd=gains.grip_kd * floor,
    )


def _stiffest(springs: _Springs, soft: Float[Tensor, " groups"]) -> tuple[float, Float[Tensor, " groups"]]:
    """The largest eigenvalue, and what each group of springs has in it."""
    strength = springs.strength * soft[springs.group.long()]
    matrix = springs.rows.T @ (strength[:, None] * springs.rows)
    values, vectors = torch.linalg.eigh(matrix)
    part = strength * (springs.rows @ vectors[:, -1]).square()
    return float(values[-1]), torch.zeros_like(soft).index_add_(0, springs.group.long(), part)


def _springs(bodies: Bodies, gains: Gains, T: Float[Tensor, "bodies 4 4"], *, ground: bool) -> _Springs:
    count, dt = len(bodies), gains.dt
    R, place = T[:, :3, :3], T[:, :3, 3]
    com = (R @ bodies.com[:, :, None])[..., 0] + place
    # Velocities in units in which the mass matrix is one.
    light = bodies.mass.rsqrt()
    values, vectors = torch.linalg.eigh(R @ bodies.inertia @ R.mT)
    turns = vectors @ torch.diag_embed(values.rsqrt()) @ vectors.mT
    rows, strength, group = [], [], []

    def add(jacobian: Tensor, ke: Tensor, kd: Tensor, which: int) -> None:
        rows.append(jacobian)
        strength.append((ke * dt**2 + 2 * kd * dt).expand(len(jacobian)))
        group.append(torch.full((len(jacobian),), float(which)))

    def moves(body: int, point: Tensor, sign: float) -> Tensor:
        """How a point of a body moves with its velocities."""
        jacobian = torch.zeros(3, 6 * count, dtype=torch.float64)
        arm = point - com[body]
        cross = torch.linalg.cross(torch.eye(3, dtype=torch.float64), arm.expand(3, 3))
        jacobian[:, 6 * body : 6 * body + 3] = sign * light[body] * torch.eye(3, dtype=torch.float64)
        jacobian[:, 6 * body + 3 : 6 * body + 6] = sign * cross.T @ turns[body]
        return jacobian

    for body, parent in enumerate(bodies.parents):
        if parent >= 0:
            add(
                moves(body, place[body], 1.0) + moves(parent, place[body], -1.0),
                gains.attach_ke[body],
                gains.attach_kd[body],
                body,
            )
            axes = R[body] @ bodies.axes[body]
            about = torch.zeros(3, 6 * count, dtype=torch.float64)
            about[:, 6 * body + 3 : 6 * body + 6] = axes.T @ turns[body]
            about[:, 6 * parent + 3 : 6 * parent + 6] = -axes.T @ turns[parent]
            add(about, gains.target_ke[body], gains.target_kd[body], count + body)
        if ground:
            share = 1 / bodies.crowds[body]
            for point, part in zip(bodies.contacts[body] @ R[body].T + place[body], share, strict=True):
                if float(point[1]) < TOUCHES * bodies.length:
                    skin = moves(body, point, 1.0)
                    add(skin, part * gains.ground_ke[body], part * gains.grip_kd[body], 2 * count + body)
    return _Springs(torch.cat(rows), torch.cat(strength), torch.cat(group))
