"""The robust engine for the same bodies: native MuJoCo, in generalised coordinates, implicit, without gradients.

Joints are balls: there is no lock of axes, and nothing can come apart. Drives are stable proportional-derivative
controllers: their stiffness acts on where the joint will be after the step, so they cannot explode, however light
what they drive. It is also the referee of mass, inertia, kinematics and falls for the differentiable engine.
"""

import math
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from jigdoll.errors import MissingExtra
from jigdoll.math import GRAVITY
from jigdoll.math.rotations import (
    compound_to_quaternion,
    matrix_to_quaternion,
    quaternion_multiply,
    quaternion_to_matrix,
)
from jigdoll.math.transforms import transform
from jigdoll.physics.balance import Balancer
from jigdoll.physics.bodies import Bodies
from jigdoll.physics.chair import Chair
from jigdoll.physics.controls import between
from jigdoll.physics.gains import Gains
from jigdoll.physics.reference import local_rotations
from jigdoll.physics.robust import Performance, Plan

TOUCH = 1e-3
"""Radius of the balls that stand for points of skin [body lengths]; they lie inside and end at the skin."""
ARMATURE = 1e-3
"""Inertia that each joint has for itself, as a share of the whole body's: keeps bare links from being massless."""
HAND_REACH = 0.02
"""The hand pulls with all its strength where the centre of mass is so far from the clip's [body lengths]."""
SLIP = 0.1
"""How much of the friction is left to feet that slip."""
FASTEST = 1e4
"""A body that moves faster [lengths / s] has exploded."""


class MujocoEngine:
    """Steps the bodies of one character with MuJoCo; states and controls as in the differentiable engine.

    There are no anchors in its states: MuJoCo solves friction itself. It has no joint limits: its drives stop where
    they aim.
    """

    def __init__(
        self,
        bodies: Bodies,
        gains: Gains,
        *,
        ground: bool = True,
        gravity: bool = True,
        neutral: Float[Tensor, "bodies 3 3"] | None = None,
        limits: Float[Tensor, "bodies 3 2"] | None = None,
        drives: bool = True,
        chair: Chair | None = None,
    ) -> None:
        try:
            import mujoco
        except ImportError as error:
            raise MissingExtra("the MuJoCo engine", "physics") from error
        self._mujoco: Any = mujoco
        self._mujoco.set_mju_user_warning(lambda message: None)  # else it writes a log file into the working folder
        self.bodies, self.gains, self.clip, self.limits = bodies, gains, None, limits
        self.neutral = torch.eye(3, dtype=torch.float64).expand(len(bodies), 3, 3) if neutral is None else neutral
        self._gravity = np.array([0.0, -GRAVITY if gravity else 0.0, 0.0])
        self.model: Any = self._mujoco.MjModel.from_xml_string(self._xml(ground, drives, chair))
        self.data: Any = self._mujoco.MjData(self.model)
        # MuJoCo numbers depth first.
        self._body = np.array([self.model.body(str(i)).id for i in range(len(bodies))])
        order = np.array([self.model.joint(str(i)).id for i in range(1, len(bodies))], dtype=int)
        self._q = self.model.jnt_qposadr[order][:, None] + np.arange(4)
        self._v = self.model.jnt_dofadr[order][:, None] + np.arange(3)
        rates = drives * gains.target_kd.mean(1).numpy(), drives * gains.target_ke.mean(1).numpy()
        self._kd, self._ke = rates[0][1:, None], rates[1][1:, None]
        self.set_help(upright=float(drives))

    @property
    def dofs(self) -> int:
        """Numbers in a row of controls."""
        return 7 + 3 * (len(self.bodies) - 1)

    def start(
        self, T_world_body: Float[Tensor, "bodies 4 4"], twists: Float[Tensor, "bodies 6"]
    ) -> Float[Tensor, " state"]:
        """The state of bodies in these places with these velocities."""
        rows = torch.cat([T_world_body[:, :3, 3], matrix_to_quaternion(T_world_body[:, :3, :3]), twists], 1)
        return rows.double().flatten()

    def rows(self, state: Float[Tensor, "*batch state"]) -> Float[Tensor, "*batch bodies 13"]:
        """The bodies' part of a state, which is all of it."""
        return state.unflatten(-1, (len(self.bodies), 13))

    def set_help(self, *, upright: float = 1.0, heading: float = 1.0) -> None:
        """Scale the torque that turns the first body upright, and how much of it also turns its heading."""
        g = self.gains
        self._up_ke = upright * g.upright_ke * np.array([1.0, heading, 1.0])
        self._up_kd = min(upright, 1.0) ** 0.5 * g.upright_kd
        # Damping of drives and help is implicit: MuJoCo takes it at the end of the step.
        self.model.dof_damping[3:6] = self._up_kd + g.dt * self._up_ke.max()
        self.model.dof_damping[self._v] = np.repeat(self._kd + g.dt * self._ke, 3, 1)

    def step(self, state: Float[Tensor, " state"], controls: Float[Tensor, "substeps dofs"]) -> Float[Tensor, " state"]:
        """Advance by a chunk of substeps."""
        self._put(self.rows(state).double())
        self.model.opt.gravity[:] = self._gravity
        angles = controls[:, 7:].double().unflatten(-1, (len(self.bodies) - 1, 3))
        local = compound_to_quaternion(angles, self.bodies.axes[1:])
        turns = quaternion_multiply(matrix_to_quaternion(self.neutral[1:]).expand_as(local), local)
        none, still = np.zeros((len(self.bodies) - 1, 3)), np.zeros(3)
        for aims, first in zip(turns.numpy(), controls[:, 3:7].double().numpy(), strict=True):
            self._mujoco.mj_step1(self.model, self.data)
            self._drive(aims, none, none)
            self._help(first, still)
            self._mujoco.mj_step2(self.model, self.data)
        self._mujoco.mj_forward(self.model, self.data)
        return torch.from_numpy(self._get()).flatten()

    def perform(self, plan: Plan) -> Performance:
        """Roll out a whole plan from its first frame; it ends early where the bodies explode or lose the clip."""
        b, d, model, mujoco = self.bodies, self.data, self.model, self._mujoco
        substeps = max(1, round(1 / (plan.fps * self.gains.dt)))
        self.set_help(upright=plan.upright)
        tracks = _Tracks(plan, substeps)
        rows, torques = np.zeros((len(plan.aims), len(b), 13)), np.zeros((len(plan.aims), len(b), 3))
        hand, places = np.zeros((len(plan.aims), 6)), plan.T_world_body[..., :3, 3].numpy()
        model.opt.gravity[:] = self._gravity
        self._put(self.rows(self.start(plan.T_world_body[0], plan.twists[0])))
        rows[0] = self._get()
        weight = b.total_mass
        balancer = Balancer(self, plan, tracks) if plan.balanced else None
        for frame in range(1, len(plan.aims)):
            for k in range((frame - 1) * substeps, frame * substeps):
                mujoco.mj_step1(model, d)
                if balancer is not None:
                    torque, help = balancer.step(k)
                    torques[frame, 1:] += torque
                    hand[frame] += help
                    mujoco.mj_step2(model, d)
                    continue
                torques[frame, 1:] += self._drive(tracks.aims[k], tracks.rates[k], tracks.torques[k])
                hand[frame, 3:] += self._help(tracks.first[k], tracks.spin[k])
                off, slip = self._away(tracks.centre[k], tracks.way[k])
                pull = self._pull(off, slip, plan.hand * GRAVITY)
                hand[frame, :3] += weight * pull
                model.opt.gravity[:] = self._gravity + pull
                mujoco.mj_step2(model, d)
            mujoco.mj_forward(model, d)
            rows[frame] = self._get()
            away = np.linalg.norm(rows[frame, :, :3] - places[frame], axis=1).mean()
            wild = not np.isfinite(rows[frame]).all() or np.abs(rows[frame, :, 7:10]).max() > FASTEST * b.length
            if wild or away > plan.lost:
                return Performance(*map(torch.from_numpy, (rows[:frame], torques[:frame], hand[:frame])))
        found = (rows, torques / substeps, hand / substeps)
        return Performance(*map(torch.from_numpy, found))

    def pose(self, first: Float[Tensor, "7"], angles: Float[Tensor, "bodies 3"]) -> Float[Tensor, "bodies 3"]:
        """Set the first body's place and quaternion and all compound angles; where the bodies' frames then are."""
        turns = quaternion_multiply(
            matrix_to_quaternion(self.neutral), compound_to_quaternion(angles, self.bodies.axes)
        )
        self._place(first, turns)
        return torch.from_numpy(self._get()[:, :3])

    def _drive(self, aims: ndarray, rates: ndarray, torques: ndarray) -> ndarray:
        """Give all joints their torques; what the drives do besides the torques that the plan asks for."""
        d = self.data
        pull = self._ke * self._off(aims)
        damping = self._kd + self.gains.dt * self._ke
        d.qfrc_applied[self._v] = torques + pull + damping * rates
        return pull + self._kd * (rates - d.qvel[self._v])

    def _off(self, aims: ndarray) -> ndarray:
        """The turn that is left for each joint to where it aims, in the body's frame."""
        q = self.data.qpos[self._q]
        w, x, y, z = q[:, 0], q[:, 1], q[:, 2], q[:, 3]
        W, X, Y, Z = aims[:, 0], aims[:, 1], aims[:, 2], aims[:, 3]
        # The vector part of inverse(q) * aim, twice, on the shorter way.
        off = np.stack([w * X - x * W - y * Z + z * Y, w * Y + x * Z - y * W - z * X, w * Z - x * Y + y * X - z * W], 1)
        return off * np.where(w * W + x * X + y * Y + z * Z < 0, -2.0, 2.0)[:, None]

    def _help(self, first: ndarray, spin: ndarray) -> ndarray:
        """Turn the first body towards a wished quaternion; the torque in the world."""
        d = self.data
        R = d.xmat[self._body[0]].reshape(3, 3)
        torque = self._up_ke * self._tilt(first)
        damping = self.model.dof_damping[3]
        d.qfrc_applied[3:6] = R.T @ (torque + damping * spin)
        return torque + self._up_kd * (spin - R @ d.qvel[3:6])

    def _tilt(self, first: ndarray) -> ndarray:
        """The turn that is left for the first body to a wished quaternion, in the world."""
        off = np.zeros(4)
        self._mujoco.mju_negQuat(off, self.data.qpos[3:7])
        self._mujoco.mju_mulQuat(off, first, off)
        return 2 * off[1:] * (1.0 if off[0] >= 0 else -1.0)

    def _away(self, centre: ndarray, way: ndarray) -> tuple[ndarray, ndarray]:
        """How far the centre of mass is from where it should be, and how much too slow."""
        self._mujoco.mj_subtreeVel(self.model, self.data)
        at = self._body[0]
        return centre - self.data.subtree_com[at], way - self.data.subtree_linvel[at]

    def _pull(self, off: ndarray, slip: ndarray, most: float) -> ndarray:
        """The acceleration of all bodies alike with which the hand brings the centre of mass back."""
        if not most:
            return np.zeros(3)
        stiffness = most / (HAND_REACH * self.bodies.length)
        pull = stiffness * off + 2 * math.sqrt(stiffness) * slip  # critically damped
        return pull * min(1.0, most / max(float(np.linalg.norm(pull)), 1e-12))

    def _xml(self, ground: bool, drives: bool, chair: Chair | None) -> str:
        """The bodies as MJCF."""
        b, children = (
            self.bodies,
            [[i for i, p in enumerate(self.bodies.parents) if p == k] for k in range(len(self.bodies))],
        )
        radius = TOUCH * b.length
        armature = ARMATURE * b.total_mass * (0.1 * b.length) ** 2 if drives else 0.0

        def body(i: int) -> str:
            T = b.T_parent_body[i]
            joint = f'<joint name="{i}" type="ball" armature="{armature!r}"/>' if i else "<freejoint/>"
            I = b.inertia[i]
            full = _words(torch.stack([I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]]))
            inertial = f'<inertial pos="{_words(b.com[i])}" mass="{float(b.mass[i])!r}" fullinertia="{full}"/>'
            skin = "".join(f'<geom pos="{_words(p)}" {touches(i)}/>' for p in _inside(b.contacts[i], b.com[i], radius))
            inside = "".join(body(child) for child in children[i])
            where = f'pos="{_words(T[:3, 3])}" quat="{_words(matrix_to_quaternion(T[:3, :3]))}"'
            return f'<body name="{i}" {where}>{joint}{inertial}{skin}{inside}</body>'

        def touches(i: int) -> str:
            # Skin meets the ground only, as in the paper; a seat meets what sits on it.
            grip = f' friction="{SLIP * self.gains.friction!r} 0.005 0.0001"' if i in b.slips else ""
            return f'contype="{5 if chair is not None and i in chair.bodies else 1}" conaffinity="0"{grip}'

        # Of two that touch, the larger friction counts: that of the skin.
        bare = 'friction="0 0 0" contype="0"'
        floor = f'<geom type="plane" size="0 0 1" zaxis="0 1 0" {bare} conaffinity="1"/>' if ground else ""
        if chair is not None:
            floor += (
                f'<geom type="box" size="{_words(chair.half)}" pos="{_words(chair.centre)}" {bare} conaffinity="4"/>'
            )
        give = max(3 * self.gains.dt, 0.006)
        return (
            '<mujoco><compiler angle="radian" autolimits="false" boundmass="0" inertiafromgeom="false"/>'
            f'<option timestep="{self.gains.dt!r}" integrator="implicitfast" cone="elliptic" impratio="5">'
            '<flag autoreset="disable"/></option>'
            f'<default><geom type="sphere" size="{radius!r}" friction="{self.gains.friction} 0.005 0.0001" '
            f'solref="{give!r} 1" condim="3"/></default>'
            f"<worldbody>{floor}{body(0)}</worldbody></mujoco>"
        )

    def _put(self, rows: Float[Tensor, "bodies 13"]) -> None:
        """Maximal to generalised coordinates."""
        b, d = self.bodies, self.data
        R = quaternion_to_matrix(rows[:, 3:7])
        parents = [max(p, 0) for p in b.parents]
        spin = rows[:, 10:]
        rates = (R.mT @ (spin - spin[parents])[..., None])[..., 0]
        origin = rows[0, 7:10] - torch.linalg.cross(spin[0], R[0] @ b.com[0])
        d.qvel[:6] = torch.cat([origin, R[0].T @ spin[0]]).numpy()
        d.qvel[self._v] = rates[1:].numpy()
        d.qacc_warmstart[:] = 0
        d.time = 0
        T = transform(R, rows[:, :3])
        self._place(rows[0, :7], matrix_to_quaternion(local_rotations(b, T[None])[0]))

    def _place(self, first: Float[Tensor, "7"], turns: Float[Tensor, "bodies 4"]) -> None:
        self.data.qpos[:7] = first.numpy()
        self.data.qpos[self._q] = turns[1:].numpy()
        self._mujoco.mj_forward(self.model, self.data)

    def _get(self) -> Float[ndarray, "bodies 13"]:
        """Generalised to maximal coordinates."""
        d, body = self.data, self._body
        spin = d.cvel[body, :3]
        # MuJoCo's velocities are about the centre of the whole tree.
        arm = d.xipos[body] - d.subtree_com[body[0]]
        return np.concatenate([d.xpos[body], d.xquat[body], d.cvel[body, 3:] + np.cross(spin, arm), spin], 1)


class _Tracks:
    """A plan at every simulation step."""

    def __init__(self, plan: Plan, substeps: int) -> None:
        joints = plan.aims.shape[1]
        turns = _continuous(torch.cat([matrix_to_quaternion(plan.T_world_body[:, :1, :3, :3]), plan.aims[:, 1:]], 1))
        rows = torch.nn.functional.normalize(between(turns.flatten(1), substeps).unflatten(1, (joints, 4)), dim=-1)
        self.first, self.aims = rows[:, 0].numpy(), rows[:, 1:].numpy()

        def spread(values: Tensor) -> ndarray:
            return between(values.flatten(1), substeps).unflatten(1, values.shape[1:]).numpy()

        self.rates = spread(plan.rates)[:, 1:]
        self.torques = np.repeat(plan.torques[1:, 1:].numpy(), substeps, 0)
        self.spin, self.centre, self.way = (spread(v) for v in (plan.twists[:, 0, 3:], plan.centre, plan.way))
        self.place = spread(plan.T_world_body[:, 0, :3, 3])


def _continuous(q: Float[Tensor, "frames n 4"]) -> Float[Tensor, "frames n 4"]:
    """Quaternions whose signs do not flip from frame to frame."""
    flips = torch.where((q[1:] * q[:-1]).sum(-1) < 0, -1.0, 1.0).to(q.dtype).cumprod(0)
    return torch.cat([q[:1], q[1:] * flips[..., None]])


def _inside(points: Float[Tensor, "n 3"], com: Float[Tensor, "3"], radius: float) -> Float[Tensor, "n 3"]:
    """The points, moved towards the middle by a radius."""
    way = com - points
    return points + way * (radius / way.norm(dim=-1, keepdim=True).clamp_min(radius))


def _words(values: Tensor) -> str:
    return " ".join(repr(float(value)) for value in values)
