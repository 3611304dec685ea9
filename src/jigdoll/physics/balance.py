"""Inverse dynamics at every step, with the contacts that are there: the ground carries what it can, a hand the rest.

Joints are to accelerate as the clip does, and back to it where they are off; so is the whole body. What the whole body
needs for that must come from what touches the ground now, inside its friction cones (a small regularised least
squares problem in six unknowns). What is left is the hand, and it is cut to what it may give. With these pushes the
torques of the joints follow exactly, whatever the masses: every joint swings back at one rate, so a light link is no
stiffer than a heavy one.
"""

import math
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from jigdoll.math import GRAVITY

JOINT_RATE = 5.0
"""How fast joints come back to the clip [1/s] ..."""
STANDING_RATE = 2.5
"""... those between the ground and the first body, which move all of it, ..."""
ROOT_RATE = 2.5
"""... and the whole body."""
SMALL_LEG = 0.25
"""Bodies with shorter legs [m] swing faster, as pendulums do, and so does all that holds them."""
EASED = 0.03
"""How long joints take from one rate to the other when a foot touches down [s]."""
SPREAD = 1e-3
"""How much pushes are spread over all that touches the ground, instead of a few points of it."""
STEEP = 0.9
"""How much of the friction cone is counted on."""
WILD = 1e9
"""Accelerations beyond this [1/s^2] are those of a body that has exploded."""
ROUNDS = 12
"""Newton steps in which pushes are found; the last step's are where they begin."""


class Balancer:
    """The joint torques of one rollout, step by step."""

    def __init__(self, engine: Any, plan: Any, tracks: Any) -> None:
        self.engine, self.model, self.data = engine, engine.model, engine.data
        self.plan, self.tracks = plan, tracks
        dt = engine.gains.dt
        self.bends = np.gradient(tracks.rates, dt, axis=0)
        self.pace = np.gradient(tracks.place, dt, axis=0)
        self.rush = np.gradient(self.pace, dt, axis=0)
        self.whirl = np.gradient(tracks.spin, dt, axis=0)
        self.weight = engine.bodies.total_mass * GRAVITY
        self.length = engine.bodies.leg_length
        self.loose = np.array([i in plan.loose for i in range(1, len(engine.bodies))])
        engine.model.dof_damping[:] = 0.0
        damping = engine._kd + dt * engine._ke
        engine.model.dof_damping[engine._v[self.loose]] = np.repeat(damping[self.loose], 3, 1)
        self.swings = engine._v[self.loose].reshape(-1)
        self.y = np.zeros(6)
        count = len(engine.bodies)
        self.above = np.zeros((count, count), bool)
        for body, parent in enumerate(engine.bodies.parents):
            self.above[body] = self.above[parent] if parent >= 0 else False
            self.above[body, body] = True
        self.number = np.zeros(self.model.nbody, int)
        self.number[engine._body] = np.arange(count)
        self.quick = max(1.0, math.sqrt(SMALL_LEG / self.length))
        self.rate = np.full(count, self.quick * JOINT_RATE)
        self.ease = min(1.0, dt / EASED)
        self.edges = np.array([[1.0, 1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, -1.0]])

    def step(self, k: int) -> tuple[Float[ndarray, "joints 3"], Float[ndarray, "6"]]:
        """Set the torques of all joints and the hand; both are returned, the hand in the world."""
        e, d, mujoco = self.engine, self.data, self.engine._mujoco
        mass = np.zeros((self.model.nv, self.model.nv))
        mujoco.mj_fullM(self.model, d, mass)
        R = d.xmat[e._body[0]].reshape(3, 3)
        wished, springs = self._wished(k, R), self._springs(k)
        if not (np.isfinite(mass).all() and np.isfinite(wished).all() and np.abs(wished).max() < WILD):
            d.qfrc_applied[:] = 0.0  # it has exploded, which whoever rolls out will see
            return np.zeros((len(e._v), 3)), np.zeros(6)
        swings, passive = self.swings, np.zeros(0)
        if len(swings):  # what swings by itself is not moved: it moves as it must
            passive = springs - self.model.dof_damping[swings] * d.qvel[swings]
            wished[swings] = _free(mass, wished, swings, passive - d.qfrc_bias[swings])
        needed = mass[:6] @ wished + d.qfrc_bias[:6]
        arm = d.subtree_com[e._body[0]] - d.qpos[:3]
        about = R @ needed[3:] - _cross(arm, needed[:3])  # about the centre of mass
        pushed, pushes = self._pushes(np.concatenate([needed[:3], about]))
        hand = self._hand(np.concatenate([needed[:3], about]) - pushed)
        given = pushed + hand
        force = np.concatenate([given[:3], R.T @ (given[3:] + _cross(arm, given[:3]))])
        if len(swings):
            force = np.concatenate([force, passive + pushes[swings]])
        free = np.concatenate([np.arange(6), swings])
        wished[free] = _free(mass, wished, free, force - d.qfrc_bias[free])
        torque = mass @ wished + d.qfrc_bias - pushes
        torque[swings] = springs
        d.qfrc_applied[e._v] = torque[e._v]
        d.qfrc_applied[:3] = hand[:3]
        d.qfrc_applied[3:6] = R.T @ (hand[3:] + _cross(arm, hand[:3]))
        return torque[e._v], hand

    def _springs(self, k: int) -> Float[ndarray, " swings"]:
        """What the springs of loose joints give, but for their damping."""
        if not len(self.swings):
            return np.zeros(0)
        e, t = self.engine, self.tracks
        pull = e._ke * e._off(t.aims[k]) + t.torques[k] + (e._kd + e.gains.dt * e._ke) * t.rates[k]
        return pull[self.loose].reshape(-1)

    def _wished(self, k: int, R: Float[ndarray, "3 3"]) -> Float[ndarray, " dofs"]:
        """The accelerations that follow the clip and come back to it."""
        e, d, t = self.engine, self.data, self.tracks
        out = np.zeros(self.model.nv)
        owners = np.unique(self.model.geom_bodyid[d.contact.geom].max(1)) if d.ncon else np.zeros(0, int)
        stands = self.above[self.number[owners]].any(0)
        self.rate += self.ease * (self.quick * np.where(stands, STANDING_RATE, JOINT_RATE) - self.rate)
        rate, slow = 2 * math.pi * self.rate[1:, None], 2 * math.pi * self.quick * ROOT_RATE
        joints = self.bends[k] + rate**2 * e._off(t.aims[k]) + 2 * rate * (t.rates[k] - d.qvel[e._v])
        out[e._v] = joints
        out[:3] = self.rush[k] + slow**2 * (t.place[k] - d.qpos[:3]) + 2 * slow * (self.pace[k] - d.qvel[:3])
        turn = self.whirl[k] + slow**2 * e._tilt(t.first[k]) + 2 * slow * (t.spin[k] - R @ d.qvel[3:6])
        out[3:6] = R.T @ turn
        return out

    def _pushes(self, needed: Float[ndarray, "6"]) -> tuple[Float[ndarray, "6"], Float[ndarray, " dofs"]]:
        """What the ground gives of a wrench about the centre of mass, and what that does to all joints."""
        d, count = self.data, self.data.ncon
        if not count:
            return np.zeros(6), np.zeros(self.model.nv)
        places, owners = d.contact.pos, self.model.geom_bodyid[d.contact.geom].max(1)
        middle = d.subtree_com[self.engine._body[0]]
        slope = STEEP * d.contact.friction[:, :1]
        edges = self.edges * np.concatenate([slope, np.ones_like(slope), slope], 1)[:, None]
        turns = _cross((places - middle)[:, None], edges)
        scale = np.array([1.0] * 3 + [1 / self.length] * 3) / self.weight
        columns = np.concatenate([edges, turns], -1).reshape(-1, 6).T
        share = self._least(columns * scale[:, None] * self.weight, needed * scale) * self.weight
        force = (edges * share.reshape(count, 4, 1)).sum(1)
        out, moves, spins = np.zeros(self.model.nv), np.zeros((3, self.model.nv)), np.zeros((3, self.model.nv))
        for body in np.unique(owners):
            mine = owners == body
            at = places[mine][0]
            self.engine._mujoco.mj_jac(self.model, d, moves, spins, at, body)
            torque = _cross(places[mine] - at, force[mine]).sum(0)
            out += force[mine].sum(0) @ moves + torque @ spins
        return columns @ share, out

    def _least(self, A: Float[ndarray, "6 n"], b: Float[ndarray, "6"]) -> Float[ndarray, " n"]:
        """The non-negative x of least |A x - b|^2 + SPREAD |x|^2: x = max(A^T y, 0) / SPREAD, y = b - A x."""
        y = self.y
        for _ in range(ROUNDS):
            on = A[:, A.T @ y > 0]
            new = np.linalg.solve(np.eye(6) + on @ on.T / SPREAD, b)
            if np.array_equal(A.T @ new > 0, A.T @ y > 0):
                y = new
                break
            y = 0.5 * (y + new) if _ > ROUNDS // 2 else new
        self.y = y
        return np.maximum(A.T @ y, 0) / SPREAD

    def _hand(self, lacking: Float[ndarray, "6"]) -> Float[ndarray, "6"]:
        """What the hand gives of what is lacking."""
        force, torque = lacking[:3], lacking[3:]
        most = self.plan.hand * self.weight
        force = force * min(1.0, most / max(float(np.linalg.norm(force)), 1e-12))
        most = self.plan.upright * self.weight * self.length
        torque = torque * min(1.0, most / max(float(np.linalg.norm(torque)), 1e-12))
        return np.concatenate([force, torque])


AFTER, BEFORE = [1, 2, 0], [2, 0, 1]


def _cross(a: Float[ndarray, "... 3"], b: Float[ndarray, "... 3"]) -> Float[ndarray, "... 3"]:
    """What `np.cross` gives, which spends most of its time on the order of axes."""
    return a[..., AFTER] * b[..., BEFORE] - a[..., BEFORE] * b[..., AFTER]


def _free(
    mass: Float[ndarray, "dofs dofs"], wished: Float[ndarray, " dofs"], free: ndarray, force: Float[ndarray, " free"]
) -> Float[ndarray, " free"]:
    """How these move under a force while all others accelerate as they wish."""
    others = wished.copy()
    others[free] = 0.0
    return np.linalg.solve(mass[np.ix_(free, free)], force - mass[free] @ others)
