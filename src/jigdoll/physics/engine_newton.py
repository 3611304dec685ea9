"""The differentiable engine: Newton's bodies and integrator, our forces, chunks of substeps as captured graphs.

A chunk is recorded once, forward and adjoint, and replayed for every chunk of every rollout. What a chunk went through
is kept for the way back: about 15 MB for a second of a character with 26 bodies.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.errors import MissingExtra
from jigdoll.math import GRAVITY
from jigdoll.math.rotations import matrix_to_quaternion
from jigdoll.physics.bodies import Bodies
from jigdoll.physics.gains import Gains

CPU_BLOCK = 1
"""Threads of a block, as Warp launches kernels on a CPU."""


class NewtonEngine:
    """Steps the bodies of one character; differentiable in the state and in the controls.

    A state is one flat tensor: per body 13 numbers (place of its frame [m], quaternion wxyz, velocity of its centre of
    mass [m/s], angular velocity [rad/s], all in the world), then where each corner holds to the ground. Controls have
    Newton's coordinate layout: 7 for the first body (a place, and the quaternion wxyz that help turns it to), then
    three target angles per joint.
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
    ) -> None:
        """`neutral` is the rotation of each joint at which its angles are zero (none: at rest).

        Beyond its `limits` an angle is pulled back by a spring as stiff as its drive.
        """
        self.bodies, self.gains, self.ground = bodies, gains, ground
        self.clip: float | None = None
        """Largest norm of a gradient that leaves a chunk backwards; none: no clipping."""
        self.neutral = torch.eye(3, dtype=torch.float64).expand(len(bodies), 3, 3) if neutral is None else neutral
        self.corners = bodies.contacts.shape[0] * bodies.contacts.shape[1] if ground else 0
        self._chunks: dict[int, _Chunk] = {}
        self._warp, self._newton = load_newton()
        self._model, self._solver = self._build(gravity)
        self._arrays = self._constants(limits)

    @property
    def dofs(self) -> int:
        """Numbers in a row of controls."""
        return 7 + 3 * (len(self.bodies) - 1)

    @property
    def size(self) -> int:
        """Numbers in a state."""
        return 13 * len(self.bodies) + 3 * self.corners

    def start(
        self, T_world_body: Float[Tensor, "bodies 4 4"], twists: Float[Tensor, "bodies 6"]
    ) -> Float[Tensor, " state"]:
        """The state of bodies at rest on nothing yet: places, and velocities of their centres of mass."""
        rotation = matrix_to_quaternion(T_world_body[:, :3, :3])
        rows = torch.cat([T_world_body[:, :3, 3], rotation, twists], 1)
        corners = self.bodies.contacts.to(rows.dtype) @ T_world_body[:, :3, :3].mT + T_world_body[:, None, :3, 3]
        anchors = corners * corners.new_tensor([1.0, 0.0, 1.0])
        return torch.cat([rows.flatten(), anchors.flatten()[: 3 * self.corners]]).float()

    def rows(self, state: Float[Tensor, "*batch state"]) -> Float[Tensor, "*batch bodies 13"]:
        """The bodies' part of a state."""
        return state[..., : 13 * len(self.bodies)].unflatten(-1, (len(self.bodies), 13))

    def set_help(self, *, upright: float = 1.0, heading: float = 1.0) -> None:
        """Scale the torque that turns the first body upright, and how much of it also turns its heading."""
        g = self.gains
        values = [upright * g.upright_ke, min(upright, 1.0) ** 0.5 * g.upright_kd, heading]
        self._warp.to_torch(self._arrays["help"]).copy_(torch.tensor(values))

    def step(self, state: Float[Tensor, " state"], controls: Float[Tensor, "substeps dofs"]) -> Float[Tensor, " state"]:
        """Advance by a chunk of substeps."""
        return _Step.apply(state, controls, self)  # type: ignore[return-value]

    def chunk(self, substeps: int) -> "_Chunk":
        """The recorded graphs for so many substeps."""
        if substeps not in self._chunks:
            self._chunks[substeps] = _Chunk(self, substeps)
        return self._chunks[substeps]

    def plain_step(self, chunk: "_Chunk", k: int) -> None:
        """One substep: forces on the state k, and the state after it."""
        wp, a = self._warp, self._arrays
        from jigdoll.physics import kernels_newton as kernels

        q, qd, f = chunk.q[k], chunk.qd[k], chunk.f[k]
        count = len(self.bodies)
        joints = [q, qd, a["com"], a["parent"], a["X_p"], a["X_c"], a["attach_ke"], a["attach_kd"]]
        joints += [a["target_ke"], a["target_kd"], a["lower"], a["upper"], a["limit_ke"], chunk.targets, k]
        wp.launch(kernels.joint_forces, count - 1, inputs=joints, outputs=[f], device="cpu")
        wp.launch(kernels.root_help, 1, inputs=[q, qd, a["help"], chunk.targets, k], outputs=[f], device="cpu")
        if self.ground:
            contact = [q, qd, a["com"], a["corner_body"], a["corner_place"], a["ground"], chunk.anchors[k]]
            wp.launch(
                kernels.ground_forces, self.corners, inputs=contact, outputs=[chunk.anchors[k + 1], f], device="cpu"
            )
        now, then = chunk.states[k], chunk.states[k + 1]
        self._solver.integrate_bodies(self._model, now, then, self.gains.dt, 0.0)

    def _build(self, gravity: bool) -> tuple[Any, Any]:
        """The bodies in Newton."""
        wp, newton, b = self._warp, self._newton, self.bodies
        builder = newton.ModelBuilder(up_axis=newton.Axis.Y, gravity=(0.0, -GRAVITY if gravity else 0.0, 0.0))
        builder.validate_inertia_detailed = True  # in Python: the check on the device is one more kernel to compile
        for i in range(len(b)):
            builder.add_body(
                mass=float(b.mass[i]),
                com=wp.vec3(*b.com[i].tolist()),
                inertia=wp.mat33(*b.inertia[i].flatten().tolist()),
                label=b.names[i],
            )
        model = builder.finalize(device="cpu", requires_grad=True)
        return model, newton.solvers.SolverSemiImplicit(model)

    def _constants(self, limits: Tensor | None) -> dict[str, Any]:
        """Everything that does not change over a rollout, as Warp arrays."""
        wp, b, g = self._warp, self.bodies, self.gains
        T_joint = torch.eye(4, dtype=torch.float64).repeat(len(b), 1, 1)
        T_joint[:, :3, :3] = b.axes
        T_parent = b.T_parent_body.clone()
        T_parent[:, :3, :3] = b.T_parent_body[:, :3, :3] @ self.neutral @ b.axes
        bounds = torch.full((len(b), 3, 2), 1e3) * torch.tensor([-1.0, 1.0]) if limits is None else limits
        limit_ke = 0 * g.target_ke if limits is None else g.target_ke

        def vectors(values: Tensor) -> Any:
            return wp.array(values.float().numpy(), dtype=wp.vec3, device="cpu")

        def floats(values: Tensor) -> Any:
            return wp.array(values.float().numpy(), dtype=float, device="cpu")

        share = 1 / b.crowds
        even = torch.ones_like(share)
        columns = [g.ground_ke[:, None] * share, g.ground_give * even, g.friction * even]
        columns += [
            g.grip_ke[:, None] * share,
            g.grip_kd[:, None] * share,
            g.ground_soft * even,
            g.ground_margin * even,
        ]
        ground = torch.stack(columns, -1)
        return {
            "com": vectors(b.com),
            "parent": wp.array(list(b.parents), dtype=int, device="cpu"),
            "X_p": wp.array(_poses(T_parent).numpy(), dtype=wp.transform, device="cpu"),
            "X_c": wp.array(_poses(T_joint).numpy(), dtype=wp.transform, device="cpu"),
            "attach_ke": floats(g.attach_ke),
            "attach_kd": floats(g.attach_kd),
            "target_ke": vectors(g.target_ke),
            "target_kd": vectors(g.target_kd),
            "lower": vectors(bounds[..., 0]),
            "upper": vectors(bounds[..., 1]),
            "limit_ke": vectors(limit_ke),
            "help": floats(torch.tensor([g.upright_ke, g.upright_kd, 1.0])),
            "ground": floats(ground.flatten()),
            "corner_body": wp.array(
                torch.arange(len(b)).repeat_interleave(b.contacts.shape[1]).tolist(), dtype=int, device="cpu"
            ),
            "corner_place": vectors(b.contacts.flatten(0, 1)),
        }


class _Chunk:
    """The buffers and the two recorded graphs of so many substeps."""

    def __init__(self, engine: NewtonEngine, substeps: int) -> None:
        wp = engine._warp
        count, corners = len(engine.bodies), max(engine.corners, 1)

        def grid(rows: int, columns: int, kind: Any) -> Any:
            return wp.zeros((rows, columns), dtype=kind, device="cpu", requires_grad=True)

        self.substeps = substeps
        self.q = grid(substeps + 1, count, wp.transform)
        self.qd = grid(substeps + 1, count, wp.spatial_vector)
        self.f = grid(substeps, count, wp.spatial_vector)
        self.anchors = grid(substeps + 1, corners, wp.vec3)
        self.targets = grid(substeps, engine.dofs, float)
        self.states = []
        for k in range(substeps + 1):
            state = engine._model.state()
            state.body_q, state.body_qd = self.q[k], self.qd[k]
            if k < substeps:
                state.body_f = self.f[k]
            self.states.append(state)
        self._buffers = (self.q, self.qd, self.f, self.anchors, self.targets)
        self.passed = [wp.to_torch(array, requires_grad=False) for array in self._buffers]
        self._seeds = tuple(wp.zeros_like(array[0], requires_grad=False) for array in (self.q, self.qd, self.anchors))
        self._record(engine)
        last = (self.q[substeps], self.qd[substeps], self.anchors[substeps])
        first = (self.q[0], self.qd[0], self.anchors[0])
        self.inputs = [wp.to_torch(array, requires_grad=False) for array in (*first, self.targets)]
        self.outputs = [wp.to_torch(array, requires_grad=False) for array in last]
        self.seeds = [wp.to_torch(array, requires_grad=False) for array in self._seeds]
        self.grads = [wp.to_torch(array.grad) for array in (*first, self.targets)]
        self._launch = wp.capture_launch

    def _record(self, engine: NewtonEngine) -> None:
        wp = engine._warp

        def forward() -> None:
            self.f.zero_()
            for k in range(self.substeps):
                engine.plain_step(self, k)

        with wp.ScopedCapture(device="cpu") as there:
            forward()
        tape = wp.Tape()
        with tape:
            forward()
        with wp.ScopedCapture(device="cpu") as back:
            for array in self._buffers:
                array.grad.zero_()
            for array, seed in zip((self.q, self.qd, self.anchors), self._seeds, strict=True):
                wp.copy(array.grad[self.substeps], seed)
            tape.backward()
        self._there, self._back, self._tape = there.graph, back.graph, tape

    def run(self) -> None:
        self._launch(self._there)

    def run_back(self) -> None:
        self._launch(self._back)


class _Step(torch.autograd.Function):
    """A chunk as one differentiable operation (AKD appendix D), its gradient clipped as it leaves."""

    @staticmethod
    def forward(ctx: Any, state: Tensor, controls: Tensor, engine: NewtonEngine) -> Tensor:
        chunk = engine.chunk(controls.shape[0])
        _load(engine, chunk, state, controls)
        chunk.run()
        ctx.engine, ctx.chunk = engine, chunk
        if any(ctx.needs_input_grad):
            ctx.passed = [buffer.clone() for buffer in chunk.passed]
        return _flat(engine, *chunk.outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None]:
        engine: NewtonEngine = ctx.engine
        chunk: _Chunk = ctx.chunk
        for buffer, value in zip(chunk.passed, ctx.passed, strict=True):
            buffer.copy_(value)
        q, qd, anchors = _split(engine, grads[0])
        for seed, value in zip(chunk.seeds, (q, qd, anchors), strict=True):
            if value.numel():
                seed.copy_(value)
        chunk.run_back()
        g_q, g_qd, g_anchors, g_targets = chunk.grads
        g_state = _flat(engine, g_q, g_qd, g_anchors)
        g_controls = _reordered(g_targets, _TO_WXYZ)
        if engine.clip is not None:
            g_state = _clipped(g_state, engine.clip)
            g_controls = _clipped(g_controls, engine.clip)
        return g_state, g_controls, None


_TO_WXYZ = torch.tensor([0, 1, 2, 6, 3, 4, 5])
_TO_XYZW = torch.tensor([0, 1, 2, 4, 5, 6, 3])


def _reordered(rows: Float[Tensor, "*batch n"], order: Tensor) -> Float[Tensor, "*batch n"]:
    """With the first seven numbers, a place and a quaternion, in another order."""
    return torch.cat([rows[..., :7].index_select(-1, order), rows[..., 7:]], -1)


def _load(engine: NewtonEngine, chunk: _Chunk, state: Tensor, controls: Tensor) -> None:
    parts = _split(engine, state.detach())
    for buffer, value in zip(chunk.inputs, parts, strict=False):
        if value.numel():
            buffer.copy_(value)
    chunk.inputs[3].copy_(_reordered(controls.detach(), _TO_XYZW))


def _split(engine: NewtonEngine, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    rows = engine.rows(state)
    anchors = state[13 * len(engine.bodies) :].unflatten(0, (engine.corners, 3)) if engine.corners else state[:0]
    return rows[:, :7].index_select(1, _TO_XYZW), rows[:, 7:], anchors


def _flat(engine: NewtonEngine, q: Tensor, qd: Tensor, anchors: Tensor) -> Tensor:
    rows = torch.cat([q.index_select(1, _TO_WXYZ), qd], 1).flatten()
    return torch.cat([rows, anchors.flatten()]) if engine.corners else rows


def _clipped(grad: Tensor, most: float) -> Tensor:
    """No longer than allowed, and nothing at all where it is not finite."""
    size = grad.norm()
    if not bool(torch.isfinite(size)):
        return torch.zeros_like(grad)
    return grad * (most / size) if float(size) > most else grad


def _poses(T: Float[Tensor, "bodies 4 4"]) -> Float[Tensor, "bodies 7"]:
    """Place and quaternion xyzw."""
    return _reordered(torch.cat([T[:, :3, 3], matrix_to_quaternion(T[:, :3, :3])], 1), _TO_XYZW).float()


def load_newton() -> "tuple[Any, Any]":
    """Warp and Newton, quiet; the first use compiles the kernels, which Warp keeps for the next time."""
    try:
        import warp

        warp.config.log_level = warp.LOG_ERROR
        with _without_notes():
            warp.init()
        import newton
    except ImportError as error:
        raise MissingExtra("physics", "physics") from error
    return warp, newton


def compile_kernels(say: Callable[[str], None]) -> None:
    """Compile the kernels that Warp does not keep yet, and say what takes so long: it happens once on a machine."""
    wp, newton = load_newton()
    from jigdoll.physics import kernels_newton

    names = (kernels_newton.__name__, newton.solvers.SolverSemiImplicit.integrate_bodies.__module__)
    modules = [wp.get_module(name) for name in names]
    kept = Path(wp.config.kernel_cache_dir)
    missing = [module for module in modules if not (kept / module.get_module_identifier(CPU_BLOCK)).exists()]
    if not missing:
        return
    say("compiling the kernels of the physics, once on this machine; that takes up to a minute")
    start = time.monotonic()
    for module in missing:
        module.load("cpu", CPU_BLOCK)
    say(f"compiled the kernels of the physics in {time.monotonic() - start:.0f} s; Warp keeps them in {kept}")


@contextmanager
def _without_notes() -> Iterator[None]:
    """Keep Warp's native code from noting on every machine without an NVIDIA driver that there is none."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
