"""The loop: render the motion, ask the prior, pay the losses, step; and survive whatever happens on the way."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from jigdoll.distill.checkpoint import Finished, Record, State, read_record, write_record
from jigdoll.distill.config import DistillPlan, Guidance
from jigdoll.distill.guidance import guide, surrogate
from jigdoll.distill.losses import RAMP, PosedClip, losses
from jigdoll.distill.scene import Scene, render_window, sample_camera
from jigdoll.distill.trajectory import Trajectory, curve_values, pose_of, to_motion
from jigdoll.errors import JigdollError
from jigdoll.kinematics import forward
from jigdoll.math.devices import to_device
from jigdoll.render.draw import contact_sheet, to_uint8
from jigdoll.types import Motion

BETAS = (0.9, 0.99)
ANCHOR_EVERY = 25
"""Steps between the places that a diverged run returns to."""
MOST_BACKOFFS = 8
MOST_CURVE = 60.0
"""A coefficient beyond this is no motion any more."""
LEVELS_UNTIL = 0.5
"""The share of the steps with the prior over which the highest noise level comes down (AKD, appendix D)."""
COARSE_UNTIL = 0.7
"""The share from which on all terms of the curves take part."""


@dataclass(frozen=True, eq=False)
class StepReport:
    """What a running distillation says about itself."""

    fraction: float
    """Of all the work, 0..1."""
    seconds_left: float
    step: int
    attempt: int
    losses: dict[str, float]
    message: str = ""
    """What went wrong and what was done about it, where something did."""
    picture: UInt8[np.ndarray, "height width 3"] | None = None
    """A preview, now and then."""


@dataclass(frozen=True, eq=False)
class Distilled:
    """A motion, and how it came about; on the host, whatever the prior's device."""

    motion: Motion
    theta: Float[Tensor, "terms rows 3"]
    trajectory: Trajectory
    plan: DistillPlan
    seed: int
    score: float
    """By the caller's measure; 0 without one."""
    scores: tuple[float, ...]
    """Of all tries."""
    history: dict[str, list[float]] = field(default_factory=dict)
    """Each loss at each step."""


@dataclass(frozen=True, eq=False)
class Terms:
    """What one step has to pay; nothing in it has left the prior's device."""

    losses: dict[str, Float[Tensor, ""]]
    """They add up to what is differentiated."""
    prior: Float[Tensor, ""]
    """The size of the prior's gradient: the value of its own term means nothing."""
    video: Float[Tensor, "views frames height width 3"] | None
    """What the prior was shown."""


def distill(
    scene: Scene,
    *,
    checkpoint: Path | None = None,
    watch: Callable[[StepReport], None] = lambda _: None,
    score: Callable[[Distilled], float] | None = None,
) -> Distilled:
    """The motion that the scene's prior takes for its prompt; of several seeds the one with the highest `score`.

    With a `checkpoint` path the run can be killed at any moment: called again with the same scene it goes on where it
    was and ends in the same motion, bit for bit.
    """
    plan = scene.plan
    record = (read_record(checkpoint, scene) if checkpoint is not None else None) or Record(begin(scene, 0), ())
    clock = _Clock(plan)
    while len(record.finished) < plan.tries:
        attempt, state = len(record.finished), record.state
        while state.step < plan.steps:
            state, message, video = advance(scene, state)
            record = Record(state, record.finished)
            watch(clock.report(state, attempt, message, video))
            if checkpoint is not None and clock.due():
                write_record(checkpoint, scene, record)
        done = Finished(state.theta, state.history, 0.0)
        if score is not None:
            done = replace(done, score=float(score(_distilled(scene, (*record.finished, done), attempt))))
        record = Record(begin(scene, attempt + 1), (*record.finished, done))
        if checkpoint is not None:
            write_record(checkpoint, scene, record)
    best = max(range(len(record.finished)), key=lambda i: record.finished[i].score)
    return _distilled(scene, record.finished, best)


def begin(scene: Scene, attempt: int) -> State:
    """Small random curves around the motion that it starts from."""
    generator = torch.Generator().manual_seed(scene.plan.seed + 1000 * attempt)
    theta = scene.plan.curves.start_noise * torch.randn(scene.trajectory.shape, generator=generator)
    theta = theta.to(scene.trajectory.device)
    zeros = torch.zeros_like(theta)
    return State(theta, zeros, zeros, theta, 0, 0, generator.get_state(), {})


def advance(scene: Scene, state: State) -> tuple[State, str, Float[Tensor, "views frames height width 3"] | None]:
    """One step of the optimiser; what went wrong, if anything did; and what the prior was shown."""
    generator = torch.Generator()
    generator.set_state(state.random)
    theta = state.theta.clone().requires_grad_()
    terms = evaluate(scene, theta, state.step, generator)
    torch.stack([theta.sum() * 0, *terms.losses.values()]).sum().backward()
    assert theta.grad is not None
    # All values leave the device together. A loss that has yet to come in counts nothing so far.
    values = torch.stack([*terms.losses.values(), terms.prior]).tolist()
    paid = {name: 0.0 for name, weight in scene.plan.losses.items() if weight}
    paid |= dict(zip((*terms.losses, "prior"), values, strict=True))
    state, message = take_step(scene, state, theta.grad, paid)
    return replace(state, random=generator.get_state()), message, terms.video


def evaluate(scene: Scene, theta: Float[Tensor, "terms rows 3"], step: int, generator: torch.Generator) -> Terms:
    """Pose the body, add up the losses and, while it is the prior's turn, show it the motion and ask."""
    sample = sample_camera(scene, generator, step)
    level = choose_level(scene.plan, step, generator)
    values = curve_values(scene.trajectory, theta, active=active_terms(scene, step))
    pose = pose_of(scene.trajectory, values)
    T_world_joint = forward(scene.trajectory.skeleton, pose)
    clip = PosedClip(values, pose, T_world_joint, scene.trajectory.fps, scene.draft, scene.naturalness)
    ramp, hold = (_ramp(scene.plan, step), 1.0) if scene.draft is None else (1.0, _hold(scene.plan, step))
    paid = losses(scene.body, clip, scene.plan.losses, ramp=ramp, hold=hold)
    if step >= scene.plan.iterations or _silent(scene.plan.guidance):
        return Terms(paid, theta.new_zeros(()), None)
    video, reference_image = render_window(scene, T_world_joint, sample)
    latents = scene.prior.encode(video)
    guidance, now = scene.plan.guidance, _share(scene.plan, step)
    gradient = guide(
        scene.prior,
        latents,
        scene.texts,
        form=guidance.form,
        level=level,
        scale=guidance.scale + (guidance.scale_end - guidance.scale) * now,
        generator=generator,
        reference_image=reference_image,
    )
    paid = {**paid, "prior": surrogate(latents, gradient)}
    return Terms(paid, gradient.square().mean().sqrt().to(theta), video.detach())


def _silent(guidance: Guidance) -> bool:
    """Whether the prior's answer counts nothing, so that nobody need ask."""
    return guidance.form == "csd" and guidance.scale == guidance.scale_end == 0


def choose_level(plan: DistillPlan, step: int, generator: torch.Generator) -> float:
    """t ~ U[low, high] with a high end that comes down (AKD, appendix D), or a walk down from high to low."""
    guidance, high = plan.guidance, highest_level(plan, step)
    u = float(torch.rand((), generator=generator))
    return high if guidance.annealed else guidance.level_low + (high - guidance.level_low) * u


def highest_level(plan: DistillPlan, step: int) -> float:
    """The highest noise level that the step may be asked at."""
    guidance, now = plan.guidance, _share(plan, step)
    if guidance.annealed:
        return guidance.level_high + (guidance.level_low - guidance.level_high) * now
    way = min(now / LEVELS_UNTIL, 1.0)
    return guidance.level_high + (guidance.level_high_end - guidance.level_high) * way


def active_terms(scene: Scene, step: int) -> float | None:
    """How many basis functions take part: few at first, all later."""
    curves, terms, now = scene.plan.curves, scene.trajectory.terms, _share(scene.plan, step)
    if curves.coarse >= 1 or curves.basis == "frames" or now >= COARSE_UNTIL:
        return None
    first = max(3.0, curves.coarse * terms)
    if curves.basis == "stride":
        return 3.0  # one swing per stride: a leg that learns two at first keeps them
    return min(first + (terms - first) * now / COARSE_UNTIL, float(terms))


def _share(plan: DistillPlan, step: int) -> float:
    """How far the part with the prior has come, 0..1."""
    return min(step / plan.iterations, 1.0) if plan.iterations else 1.0


def _ramp(plan: DistillPlan, step: int) -> float:
    """How far the late losses have come in, 0..1."""
    start, end = RAMP
    return min(max((_share(plan, step) - start) / (end - start), 0.0), 1.0)


def _hold(plan: DistillPlan, step: int) -> float:
    """How hard a draft is held, 0..1: at much noise the prior hardly sees the motion that it pulls at."""
    return highest_level(plan, step) / plan.guidance.level_high


def take_step(scene: Scene, state: State, grad: Tensor, terms: dict[str, float]) -> tuple[State, str]:
    """Adam; a step that is not finite is not taken and one that leads nowhere is undone, both at half the rate."""
    history = {name: [*state.history.get(name, []), value] for name, value in terms.items()}
    plan, zeros = scene.plan, torch.zeros_like(state.theta)
    after_trouble = replace(state, mean=zeros, square=zeros, backoffs=state.backoffs + 1, history=history)
    if not (bool(grad.isfinite().all()) and all(math.isfinite(value) for value in terms.values())):
        return _backed_off(after_trouble, "a gradient that is not a number")
    step = state.step + 1
    mean = BETAS[0] * state.mean + (1 - BETAS[0]) * grad
    square = BETAS[1] * state.square + (1 - BETAS[1]) * grad.square()
    left = (1 - state.step / plan.steps) / plan.decay if plan.decay > 0 else 1.0
    rate = plan.rate * max(min(left, 1.0), 0.1) * 0.5**state.backoffs
    count = step - state.restarted
    ahead = mean / (1 - BETAS[0] ** count) / ((square / (1 - BETAS[1] ** count)).sqrt() + 1e-8)
    theta = state.theta - rate * ahead
    if float(theta.abs().max()) > MOST_CURVE:
        return _backed_off(replace(after_trouble, theta=state.anchor), "a motion beyond all bounds")
    anchor = theta if step % ANCHOR_EVERY == 0 else state.anchor
    return replace(state, theta=theta, mean=mean, square=square, anchor=anchor, step=step, history=history), ""


def _backed_off(state: State, what: str) -> tuple[State, str]:
    """The state after trouble, one step further so that the loop ends whatever happens."""
    if state.backoffs > MOST_BACKOFFS:
        raise JigdollError(
            f"distillation met {what} {state.backoffs} times although the rate was halved each time; "
            "try another seed, a smaller --rate or --guidance.scale, or check the prior and the character"
        )
    state = replace(state, step=state.step + 1, restarted=state.step + 1)
    return state, f"step {state.step}: {what}; going on at half the rate"


def _distilled(scene: Scene, finished: tuple[Finished, ...], best: int) -> Distilled:
    done = finished[best]
    return Distilled(
        motion=to_device(to_motion(scene.trajectory, done.theta, name=scene.prompt), "cpu"),
        theta=done.theta.cpu(),
        trajectory=to_device(scene.trajectory, "cpu"),
        plan=scene.plan,
        seed=scene.plan.seed + 1000 * best,
        score=done.score,
        scores=tuple(each.score for each in finished),
        history=done.history,
    )


class _Clock:
    """When to write a checkpoint, when to show a picture, how long it will still take."""

    def __init__(self, plan: DistillPlan) -> None:
        self.plan = plan
        self.start = self.saved = self.shown = time.monotonic()
        self.steps = 0

    def due(self) -> bool:
        """Whether a checkpoint should be written now."""
        now = time.monotonic()
        if now - self.saved < self.plan.checkpoint_seconds:
            return False
        self.saved = now
        return True

    def report(self, state: State, attempt: int, message: str, video: Tensor | None) -> StepReport:
        """Where the run stands."""
        now = time.monotonic()
        self.steps += 1
        total = self.plan.steps * self.plan.tries
        done = attempt * self.plan.steps + state.step
        picture = None
        if video is not None and now - self.shown > self.plan.preview_seconds:
            self.shown = now
            picture = contact_sheet(list(to_uint8(video[0, :: max(1, video.shape[1] // 8)])), 8)
        return StepReport(
            fraction=min(done / total, 1.0),
            seconds_left=(now - self.start) / self.steps * max(total - done, 0),
            step=state.step,
            attempt=attempt,
            losses={name: values[-1] for name, values in state.history.items() if values},
            message=message,
            picture=picture,
        )
