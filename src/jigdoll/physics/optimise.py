"""The differentiable path: Adam on the target angles of a stretch of the clip, through the simulation."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.errors import JigdollError
from jigdoll.math import GRAVITY
from jigdoll.physics.bodies import Bodies
from jigdoll.physics.checkpoint import Checkpoint
from jigdoll.physics.config import TrackConfig
from jigdoll.physics.controls import about_axes, base_controls, drive_torques, spline_basis
from jigdoll.physics.gains import Gains, Stiffness, choose_gains
from jigdoll.physics.metrics import joint_torques
from jigdoll.physics.reference import Reference
from jigdoll.physics.stability import stabilised
from jigdoll.physics.tracking_loss import Measure
from jigdoll.protocols import PhysicsEngine, Progress

MakeEngine = Callable[..., PhysicsEngine]

LONGEST_STEP = 1 / 2400
"""[s]; a hundred steps per frame at 24 frames per second."""
HALVINGS = 3
"""How often the step is halved before a clip is given up."""


class NotFinite(JigdollError):
    """The differentiable engine cannot hold the bodies."""


class Window:
    """A stretch of the clip with its engine: controls in, states at the frames out."""

    def __init__(
        self,
        reference: Reference,
        bodies: Bodies,
        gains: Gains,
        substeps: int,
        config: TrackConfig,
        make_engine: MakeEngine,
    ) -> None:
        self.reference, self.bodies, self.gains, self.substeps = reference, bodies, gains, substeps
        self.chunk = min(config.chunk, substeps)
        world = {"ground": config.ground, "gravity": config.ground}
        self.engine = make_engine(bodies, gains, neutral=reference.neutral, limits=reference.limits, **world)
        self.engine.clip = None if config.clip_at_end else config.clip
        upright, heading = help_of(config)
        self.engine.set_help(upright=upright, heading=heading)
        load = None if config.paper else _load(reference, bodies, config)
        self.base = base_controls(reference, gains, substeps, lead=not config.paper, torques=load)
        if config.paper:
            self.base[:, :7] = self.base[:1, :7]
        self.per_frame = config.knots
        self.basis = None if config.paper else spline_basis(len(reference), substeps, config.knots)
        start = reference.T_world_body[0].clone()
        if config.ground:
            corners = start[:, None, :3, 3] + bodies.contacts @ start[:, :3, :3].mT
            low = float(corners[..., 1].min())
            # The paper puts the first pose on the ground; in the middle of a flight that would be wrong.
            start[:, 1, 3] -= low if config.paper else min(low, 0.0)
        self.start = self.engine.start(start, reference.twists[0])

    @property
    def knots(self) -> int:
        """Rows of the optimised offsets."""
        return len(self.base) if self.basis is None else self.basis.shape[1]

    def controls(self, offsets: Float[Tensor, "knots joints3"]) -> Float[Tensor, "steps dofs"]:
        """The reference's targets plus the optimised offsets."""
        more = offsets if self.basis is None else self.basis @ offsets
        return torch.cat([self.base[:, :7], self.base[:, 7:] + more], 1)

    def rollout(self, state: Tensor, controls: Float[Tensor, "steps dofs"]) -> list[Tensor]:
        """The states at all frames."""
        states = [state]
        for frame in controls.split(self.substeps):
            for piece in frame.split(self.chunk):
                state = self.engine.step(state, piece)
            states.append(state)
        return states

    def stays_finite(self) -> bool:
        """Whether the reference's own targets give a finite rollout; the first frame that does not ends it."""
        state = self.start
        with torch.no_grad():
            for frame in self.base.split(self.substeps):
                for piece in frame.split(self.chunk):
                    state = self.engine.step(state, piece)
                if not bool(torch.isfinite(state).all()):
                    return False
        return True

    def begin(self, state: Tensor, spin: Float[Tensor, "bodies 6"]) -> Tensor:
        """The first state with other velocities."""
        count = 13 * len(self.bodies)
        rows = state[:count].unflatten(0, (-1, 13))
        rows = torch.cat([rows[:, :7], rows[:, 7:] + spin], 1)
        return torch.cat([rows.flatten(), state[count:]])

    def keep(self, state: Tensor, offsets: Tensor, spin: Tensor, frames: int) -> dict[str, Any]:
        """What the first so many frames come to, the first of all included."""
        with torch.no_grad():
            controls = self.controls(offsets)
            states = self.rollout(self.begin(state, spin), controls)
            rows = torch.stack([self.engine.rows(s) for s in states[: frames + 1]])
            aims = torch.cat([controls[:1], controls[self.substeps - 1 :: self.substeps]])[: frames + 1]
        torques = drive_torques(self.bodies, self.reference.neutral, self.gains, rows, aims)
        done = frames * (self.substeps if self.basis is None else self.per_frame)
        return {
            "rows": rows,
            "torques": torques,
            "aims": aims[:, :7],
            "end": states[frames],
            "next": offsets[done:],
        }


def optimise(
    window: Window, state: Tensor, config: TrackConfig, saved: Checkpoint, report: Progress
) -> tuple[Tensor, Tensor, list[float]]:
    """Adam on the offsets and (in the first window) the initial velocity; the best iterate wins."""
    bodies, first = window.bodies, not saved.parts
    offsets = torch.zeros(window.knots, window.base.shape[1] - 7)
    if not first:  # what the window before found for the frames that both have
        ahead = saved.parts[-1]["next"][: window.knots]
        offsets[: len(ahead)] = ahead
    offsets.requires_grad_()
    spin = torch.zeros(len(bodies), 6, requires_grad=first)
    pace = math.sqrt(GRAVITY * bodies.leg_length)
    groups = [{"params": [offsets], "lr": config.learning_rate}]
    if first:
        groups.append({"params": [spin], "lr": config.learning_rate * pace})
    optimizer = torch.optim.Adam(groups, betas=(0.9, 0.95))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda i: 0.1 + 0.45 * (1 + math.cos(math.pi * i / max(config.iterations, 1)))
    )
    measure = Measure(window.reference, bodies, paper=config.paper, smooth=config.smooth, ground=config.ground)
    best, losses, begin = (math.inf, offsets.detach().clone(), spin.detach().clone()), [], 0
    if saved.inner is not None:
        begin, best, losses = _resume(saved.inner, offsets, spin, optimizer, schedule)
    for iteration in range(begin, config.iterations + 1):
        frames = _horizon(iteration, len(window.reference), config)
        controls = window.controls(offsets)[: (frames - 1) * window.substeps]
        states = window.rollout(window.begin(state, spin), controls)
        rows = torch.stack([window.engine.rows(s) for s in states])
        near, loss = measure(rows, window.base[:, 7:], offsets)
        losses.append(float(loss.detach()))
        if not iteration and not math.isfinite(losses[0]):
            raise NotFinite(
                "a part of the clip does not stay finite from where the part before it ended; try more --substeps"
            )
        if frames == len(window.reference) and losses[-1] < best[0]:
            best = (losses[-1], offsets.detach().clone(), spin.detach().clone())
        report(iteration / max(config.iterations, 1), f"tracking, {100 * near:.2f} % off")
        if iteration == config.iterations:
            break
        optimizer.zero_grad()
        if math.isfinite(losses[-1]):
            loss.backward()
            _tame(offsets)
            _tame(spin)
            if config.clip_at_end and config.clip is not None:
                torch.nn.utils.clip_grad_norm_([offsets, spin], config.clip)
            optimizer.step()
        else:  # back to what worked, with smaller steps
            offsets.data.copy_(best[1])
            spin.data.copy_(best[2])
            schedule.base_lrs = [0.5 * rate for rate in schedule.base_lrs]
        schedule.step()
        if iteration % 20 == 19:
            saved.write(
                {
                    "at": iteration + 1,
                    "best": best,
                    "losses": losses,
                    "offsets": offsets.detach(),
                    "spin": spin.detach(),
                    "adam": optimizer.state_dict(),
                    "schedule": schedule.state_dict(),
                }
            )
    saved.inner = None
    return best[1], best[2], losses


def _horizon(iteration: int, frames: int, config: TrackConfig) -> int:
    """How many frames of a window an iteration simulates."""
    grows = config.growing * config.iterations
    if config.paper or iteration == 0 or iteration >= grows:
        return frames
    return min(frames, max(2, math.ceil(frames * (0.25 + 0.75 * iteration / grows))))


def _tame(parameter: Tensor) -> None:
    """A gradient that is not finite somewhere is none there."""
    if parameter.grad is not None:
        parameter.grad.nan_to_num_(0.0, 0.0, 0.0)


def _resume(
    inner: dict[str, Any], offsets: Tensor, spin: Tensor, optimizer: Any, schedule: Any
) -> tuple[int, tuple[float, Tensor, Tensor], list[float]]:
    offsets.data.copy_(inner["offsets"])
    spin.data.copy_(inner["spin"])
    optimizer.load_state_dict(inner["adam"])
    schedule.load_state_dict(inner["schedule"])
    return inner["at"], tuple(inner["best"]), list(inner["losses"])


def find_stable_step(
    reference: Reference, bodies: Bodies, config: TrackConfig, make_engine: MakeEngine
) -> tuple[Gains, int]:
    """Gains and steps per frame with which the reference's own targets give a finite rollout.

    All windows are tried before any of them is optimised: one that explodes late must not cost what came before it.
    """
    step = min(LONGEST_STEP, 4e-4 * math.sqrt(bodies.leg_length / 0.3))
    substeps = config.substeps or config.chunk * math.ceil(1 / (reference.fps * step * config.chunk))
    stiffness = Stiffness(friction=config.friction)
    for halving in range(HALVINGS + 1):
        gains = choose_gains(bodies, 1 / (reference.fps * substeps), stiffness)
        gains = stabilised(bodies, gains, reference.T_world_body[:: max(1, len(reference) // 4)], ground=config.ground)
        parts = (cut(reference, first, last + 1) for first, last, _ in windows(len(reference), config))
        if all(Window(part, bodies, gains, substeps, config, make_engine).stays_finite() for part in parts):
            return gains, substeps
        if halving < HALVINGS:
            substeps *= 2
    raise NotFinite(
        f"the simulation does not stay finite even with {substeps} steps per frame; "
        "check the clip for jumps, or the character for parts of very different size"
    )


def _load(reference: Reference, bodies: Bodies, config: TrackConfig) -> Float[Tensor, "frames bodies 3"] | None:
    """The torques about the drives' axes that the clip asks for by itself; a clip of three frames tells none."""
    if len(reference) < 4:
        return None
    fps, options = reference.fps, {"friction": config.friction, "ground": config.ground}
    return about_axes(bodies, reference, joint_torques(bodies, reference.T_world_body, fps, **options))


def help_of(config: TrackConfig) -> tuple[float, float]:
    """How strong the virtual torque is, and how much of it turns the heading: the paper's knows only upright."""
    return config.upright if config.ground else 0.0, 0.0 if config.paper else 1.0


def windows(frames: int, config: TrackConfig) -> Iterator[tuple[int, int, int]]:
    """First and last frame of each window, and the last one that is kept of it."""
    first = 0
    while first < frames - 1:
        last = min(first + config.window, frames - 1)
        keep = last if last == frames - 1 else last - config.overlap
        yield first, last, keep
        first = keep


def cut(reference: Reference, first: int, end: int) -> Reference:
    return replace(
        reference,
        T_world_body=reference.T_world_body[first:end],
        angles=reference.angles[first:end],
        twists=reference.twists[first:end],
    )
