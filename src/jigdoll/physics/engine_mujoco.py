"""An independent engine for the same bodies: native MuJoCo, in generalised coordinates, without gradients.

It is the referee of mass, inertia, kinematics and falls, and a second implementation of the socket.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.errors import MissingExtra
from jigdoll.math.rotations import matrix_to_quaternion, quaternion_to_compound, quaternion_to_matrix
from jigdoll.math.transforms import transform
from jigdoll.physics.bodies import Bodies
from jigdoll.physics.gains import GRAVITY, Gains
from jigdoll.physics.reference import local_rotations


class MujocoEngine:
    """Steps the bodies of one character with MuJoCo; states and controls as in the differentiable engine.

    There are no anchors in its states: MuJoCo solves friction itself. The upright help is left out.
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
    ) -> None:
        try:
            import mujoco
        except ImportError as error:
            raise MissingExtra("the MuJoCo engine", "physics") from error
        self.bodies, self.gains, self.clip = bodies, gains, None
        self.neutral = torch.eye(3, dtype=torch.float64).expand(len(bodies), 3, 3) if neutral is None else neutral
        self.limits = limits
        self._mujoco: Any = mujoco
        self.model: Any = self._mujoco.MjModel.from_xml_string(self._xml(ground, gravity, drives))
        self.data: Any = self._mujoco.MjData(self.model)
        self._drives = drives
        # MuJoCo numbers depth first; the joint "i_0" is the first of body i.
        first = [self.model.joint(f"{i}_0").id for i in range(1, len(bodies))]
        self._q = (self.model.jnt_qposadr[first][:, None] + range(3)).flatten()
        self._v = (self.model.jnt_dofadr[first][:, None] + range(3)).flatten()

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
        """Nothing to set: this engine gives no help."""

    def step(self, state: Float[Tensor, " state"], controls: Float[Tensor, "substeps dofs"]) -> Float[Tensor, " state"]:
        """Advance by a chunk of substeps."""
        self._put(self.rows(state).double())
        for row in controls[:, 7:].double().numpy():
            if self._drives:
                self.data.ctrl[:] = row
            self._mujoco.mj_step(self.model, self.data)
        return self._get().flatten()

    def pose(self, first: Float[Tensor, "7"], angles: Float[Tensor, "bodies 3"]) -> Float[Tensor, "bodies 3"]:
        """Set the first body's place and quaternion and all compound angles; where the bodies' frames then are."""
        self.data.qpos[:7] = first.numpy()
        self.data.qpos[self._q] = angles[1:].flatten().numpy()
        self._mujoco.mj_forward(self.model, self.data)
        return self._get()[:, :3]

    def _xml(self, ground: bool, gravity: bool, drives: bool) -> str:
        """The bodies as MJCF: a hinge per compound axis, the first one outermost."""
        b, children = (
            self.bodies,
            [[i for i, p in enumerate(self.bodies.parents) if p == k] for k in range(len(self.bodies))],
        )

        def joint(i: int, k: int) -> str:
            bound = "" if self.limits is None else f' limited="true" range="{_words(self.limits[i, k])}"'
            return f'<joint name="{i}_{k}" axis="{_words(b.axes[i, :, k])}"{bound}/>'

        def body(i: int) -> str:
            T = b.T_parent_body[i]
            place, turn = _words(T[:3, 3]), _words(matrix_to_quaternion(T[:3, :3] @ self.neutral[i]))
            if i == 0:
                joints = "<freejoint/>"
            else:
                joints = "".join(joint(i, k) for k in range(3))
            I = b.inertia[i]
            full = _words(torch.stack([I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]]))
            inertial = f'<inertial pos="{_words(b.com[i])}" mass="{float(b.mass[i])!r}" fullinertia="{full}"/>'
            box = f'pos="{_words(b.com[i])}" quat="{_words(matrix_to_quaternion(b.T_body_box[i, :3, :3]))}"'
            # Cuboids meet the ground only, as in the paper.
            geom = f'<geom type="box" size="{_words(b.half[i])}" {box} contype="1" conaffinity="2"/>'
            inside = "".join(body(child) for child in children[i])
            return f'<body name="{i}" pos="{place}" quat="{turn}">{joints}{inertial}{geom}{inside}</body>'

        floor = '<geom type="plane" size="0 0 1" zaxis="0 1 0" contype="2" conaffinity="1"/>' if ground else ""
        motors = ""
        for i in range(1, len(b)) if drives else ():
            for k in range(3):
                ke, kd = float(self.gains.target_ke[i, k]), float(self.gains.target_kd[i, k])
                motors += f'<general joint="{i}_{k}" gainprm="{ke!r}" biastype="affine" biasprm="0 {-ke!r} {-kd!r}"/>'
        down = f"0 {-GRAVITY if gravity else 0.0} 0"
        return (
            '<mujoco><compiler angle="radian" autolimits="false" boundmass="0" inertiafromgeom="false"/>'
            f'<option timestep="{self.gains.dt!r}" gravity="{down}" integrator="implicitfast"/>'
            f'<default><geom friction="{self.gains.friction} 0.005 0.0001"/></default>'
            f"<worldbody>{floor}{body(0)}</worldbody><actuator>{motors}</actuator></mujoco>"
        )

    def _put(self, rows: Float[Tensor, "bodies 13"]) -> None:
        """Maximal to generalised coordinates."""
        b, d = self.bodies, self.data
        R = quaternion_to_matrix(rows[:, 3:7])
        T = transform(R, rows[:, :3])
        local = self.neutral.mT @ local_rotations(b, T[None])[0]
        angles = quaternion_to_compound(matrix_to_quaternion(local), b.axes)
        parents = [max(p, 0) for p in b.parents]
        frame = R[parents] @ b.T_parent_body[:, :3, :3] @ self.neutral @ b.axes
        c, s = angles[:, 0].cos()[:, None], angles[:, 0].sin()[:, None]
        axes = torch.stack([frame[:, :, 0], c * frame[:, :, 1] + s * frame[:, :, 2], (R @ b.axes)[:, :, 2]], -1)
        spin = rows[:, 10:]
        rates = torch.linalg.solve(axes, (spin - spin[parents])[..., None])[..., 0]
        arm = R[0] @ b.com[0]
        origin = rows[0, 7:10] - torch.linalg.cross(spin[0], arm)
        d.qvel[:6] = torch.cat([origin, R[0].T @ spin[0]]).numpy()
        d.qvel[self._v] = rates[1:].flatten().numpy()
        self.pose(rows[0, :7], angles)

    def _get(self) -> Float[Tensor, "bodies 13"]:
        """Generalised to maximal coordinates."""
        import numpy as np

        mujoco, d = self._mujoco, self.data
        mujoco.mj_forward(self.model, d)
        rows = np.zeros((len(self.bodies), 13))
        speed = np.zeros(6)
        for i in range(len(self.bodies)):
            place = mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_BODY, str(i))
            mujoco.mj_objectVelocity(self.model, d, mujoco.mjtObj.mjOBJ_BODY, place, speed, 0)
            rows[i] = np.concatenate([d.xpos[place], d.xquat[place], speed[3:], speed[:3]])
        return torch.from_numpy(rows)


def _words(values: Tensor) -> str:
    return " ".join(repr(float(value)) for value in values)
