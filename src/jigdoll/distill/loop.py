"""The loop: film the motion, ask the prior, pay the losses, step; and survive whatever happens on the way."""

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
from jigdoll.distill.config import DistillConfig
from jigdoll.distill.guidance import finish, guide, surrogate
from jigdoll.distill.losses import Moment, losses
from jigdoll.distill.scene import Shot, Stage, choose_shot, film, set_stage
from jigdoll.distill.tempo import Tempo
from jigdoll.distill.trajectory import Controls, Trajectory, controls, glide_pose, pose_of, to_motion
from jigdoll.errors import JigdollError
from jigdoll.kinematics import forward
from jigdoll.math.devices import to_device
from jigdoll.protocols import Rasterizer, VideoPrior
from jigdoll.render.draw import contact_sheet, to_uint8
from jigdoll.types import Motion, RiggedAsset, SkinnedGaussians

BETAS = (0.9, 0.99)
ANCHOR_EVERY = 25
"""Steps between the places that a diverged run returns to."""
MOST_BACKOFFS = 8
MOST_CURVE = 60.0
"""A coefficient beyond this is no motion any more."""


@dataclass(frozen=True, eq=False)
class Progress:
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
    tempo: Tempo
    """Of the sentence on this body; `plant` wants it."""
    config: DistillConfig
    seed: int
    score: float
    """By the caller's measure; 0 without one."""
    scores: tuple[float, ...]
    """Of all tries."""
    history: dict[str, list[float]] = field(default_factory=dict)
    """Each loss at each step."""


def distill(
    asset: RiggedAsset,
    prompt: str,
    prior: VideoPrior,
    config: DistillConfig = DistillConfig(),
    *,
    checkpoint: Path | None = None,
    progress: Callable[[Progress], None] = lambda _: None,
    score: Callable[[Motion], float] | None = None,
    splats: SkinnedGaussians | None = None,
    rasterizer: Rasterizer | None = None,
) -> Distilled:
    """A motion of the asset that the prior takes for the prompt; of several seeds the one with the highest `score`.

    With a `checkpoint` path the run can be killed at any moment: called again with the same arguments it goes on where
    it was and ends in the same motion, bit for bit.
    """
    stage = set_stage(asset, prompt, prior, config, splats=splats, rasterizer=rasterizer)
    record = (read_record(checkpoint, stage) if checkpoint is not None else None) or Record(begin(stage, 0), ())
    clock = _Clock(stage.config)
    while len(record.finished) < stage.config.tries:
        attempt, state = len(record.finished), record.state
        while state.step < stage.config.steps:
            state, told, video = advance(stage, state)
            record = Record(state, record.finished)
            progress(clock.report(state, attempt, told, video))
            if checkpoint is not None and clock.due():
                write_record(checkpoint, stage, record)
        motion = to_device(to_motion(stage.trajectory, state.theta, name=prompt), "cpu")
        done = Finished(state.theta, state.history, float(score(motion)) if score is not None else 0.0)
        record = Record(begin(stage, attempt + 1), (*record.finished, done))
        if checkpoint is not None:
            write_record(checkpoint, stage, record)
    best = max(range(len(record.finished)), key=lambda i: record.finished[i].score)
    return _distilled(stage, record.finished, best)


def begin(stage: Stage, attempt: int) -> State:
    """Small random curves around the rest pose that glides ahead."""
    generator = torch.Generator().manual_seed(stage.config.seed + 1000 * attempt)
    theta = stage.config.start_noise * torch.randn(stage.trajectory.shape, generator=generator)
    theta = theta.to(stage.trajectory.device)
    zeros = torch.zeros_like(theta)
    return State(theta, zeros, zeros, theta, 0, 0, generator.get_state(), {})


def advance(stage: Stage, state: State) -> tuple[State, str, Float[Tensor, "views frames height width 3"] | None]:
    """One step of the optimiser (with `fit`: one target and the steps towards it), and what the prior was shown."""
    generator = torch.Generator()
    generator.set_state(state.random)
    shot = choose_shot(stage, generator)
    level = choose_level(stage.config, state.step, generator)
    asks = state.step < stage.config.iterations
    told, target, video = "", None, None
    for _ in range(stage.config.fit_repeat if stage.config.form == "fit" and asks else 1):
        theta = state.theta.clone().requires_grad_()
        moved = controls(stage.trajectory, theta, active=active_terms(stage, state.step))
        T_world_joint = forward(stage.trajectory.skeleton, pose_of(stage.trajectory, moved))
        terms, strength = _demands(stage, moved, T_world_joint, state.step), 0.0
        if asks:
            video, reference_image = film(stage, T_world_joint, shot)
            latents = stage.prior.encode(video)
            if stage.config.form == "fit":
                target = _target(stage, latents, reference_image, level, generator) if target is None else target
                gradient = latents.detach() - target
            else:
                gradient = _gradient(stage, latents, reference_image, level, state.step, shot, generator)
            terms["prior"] = surrogate(latents, gradient)
            # The surrogate's value means nothing; the size of its gradient does.
            strength = float(gradient.square().mean().sqrt())
        torch.stack([theta.sum() * 0, *terms.values()]).sum().backward()
        assert theta.grad is not None
        paid = {name: float(term.detach()) for name, term in terms.items()} | {"prior": strength}
        state, told = take_step(stage, state, theta.grad, paid)
    return replace(state, random=generator.get_state()), told, None if video is None else video.detach()


def _gradient(
    stage: Stage,
    latents: Tensor,
    reference_image: Tensor | None,
    level: float,
    step: int,
    shot: Shot,
    generator: torch.Generator,
) -> Tensor:
    config = stage.config
    assert config.guidance is not None and config.guidance_end is not None and config.form is not None
    scale = config.guidance + (config.guidance_end - config.guidance) * _share(config, step)
    still = _still_latents(stage, shot) if config.subtract_still else None
    return guide(
        stage.prior,
        latents,
        stage.texts,
        form=config.form,
        level=level,
        scale=scale,
        generator=generator,
        still=still,
        reference_image=reference_image,
    )


def _target(
    stage: Stage, latents: Tensor, reference_image: Tensor | None, level: float, generator: torch.Generator
) -> Tensor:
    config = stage.config
    assert config.guidance is not None
    return finish(
        stage.prior,
        latents,
        stage.texts,
        level=level,
        steps=config.fit_steps,
        scale=config.guidance,
        generator=generator,
        reference_image=reference_image,
    )


def _still_latents(stage: Stage, shot: Shot) -> Tensor:
    """The latents of the character gliding at rest through the same shot."""
    with torch.no_grad():
        video, _ = film(stage, forward(stage.trajectory.skeleton, glide_pose(stage.trajectory)), shot)
        return stage.prior.encode(video)


def _demands(stage: Stage, moved: Controls, T_world_joint: Tensor, step: int) -> dict[str, Float[Tensor, ""]]:
    config = stage.config
    now = _share(config, step)
    ramp = min(max((now - config.ramp_start) / max(config.ramp_end - config.ramp_start, 1e-9), 0.0), 1.0)
    moment = Moment(moved, T_world_joint, stage.trajectory.fps)
    return losses(stage.body, moment, stage.weights, ramp=ramp, flight=stage.tempo.family in ("run", "jump"))


def choose_level(config: DistillConfig, step: int, generator: torch.Generator) -> float:
    """t ~ U[low, high] with a high end that comes down (AKD, appendix D), or a walk down from high to low."""
    assert config.level_low is not None and config.level_high is not None and config.level_high_end is not None
    now = _share(config, step)
    u = float(torch.rand((), generator=generator))
    if config.annealed:
        return config.level_high + (config.level_low - config.level_high) * now
    way = min(now / config.level_until, 1.0) if config.level_until > 0 else 1.0
    high = config.level_high + (config.level_high_end - config.level_high) * way
    return config.level_low + (high - config.level_low) * u


def _share(config: DistillConfig, step: int) -> float:
    """How far the part with the prior has come, 0..1."""
    return min(step / config.iterations, 1.0) if config.iterations else 1.0


def active_terms(stage: Stage, step: int) -> float | None:
    """How many basis functions take part: few at first, all later."""
    config, terms = stage.config, stage.trajectory.terms
    now = _share(config, step)
    if config.coarse >= 1 or config.basis == "frames" or now >= config.coarse_until:
        return None
    first = max(3.0, config.coarse * terms)
    if config.basis == "stride":
        return 3.0  # one swing per stride: a leg that learns two at first keeps them
    return min(first + (terms - first) * now / config.coarse_until, float(terms))


def take_step(stage: Stage, state: State, grad: Tensor, terms: dict[str, float]) -> tuple[State, str]:
    """Adam; a step that is not finite is not taken and one that leads nowhere is undone, both at half the rate."""
    history = {name: [*state.history.get(name, []), value] for name, value in terms.items()}
    config, zeros = stage.config, torch.zeros_like(state.theta)
    after_trouble = replace(state, mean=zeros, square=zeros, backoffs=state.backoffs + 1, history=history)
    if not (bool(grad.isfinite().all()) and all(math.isfinite(value) for value in terms.values())):
        return _backed_off(after_trouble, "a gradient that is not a number")
    step = state.step + 1
    mean = BETAS[0] * state.mean + (1 - BETAS[0]) * grad
    square = BETAS[1] * state.square + (1 - BETAS[1]) * grad.square()
    left = (1 - state.step / config.steps) / config.decay if config.decay > 0 else 1.0
    rate = config.rate * max(min(left, 1.0), 0.1) * 0.5**state.backoffs
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
            "try another seed, a smaller rate or guidance, or check the prior and the character"
        )
    state = replace(state, step=state.step + 1, restarted=state.step + 1)
    return state, f"step {state.step}: {what}; going on at half the rate"


def _distilled(stage: Stage, finished: tuple[Finished, ...], best: int) -> Distilled:
    done = finished[best]
    return Distilled(
        motion=to_device(to_motion(stage.trajectory, done.theta, name=stage.prompt), "cpu"),
        theta=done.theta.cpu(),
        trajectory=to_device(stage.trajectory, "cpu"),
        tempo=stage.tempo,
        config=stage.config,
        seed=stage.config.seed + 1000 * best,
        score=done.score,
        scores=tuple(each.score for each in finished),
        history=done.history,
    )


class _Clock:
    """When to write a checkpoint, when to show a picture, how long it will still take."""

    def __init__(self, config: DistillConfig) -> None:
        self.config = config
        self.start = self.saved = self.shown = time.monotonic()
        self.steps = 0

    def due(self) -> bool:
        """Whether a checkpoint should be written now."""
        now = time.monotonic()
        if now - self.saved < self.config.checkpoint_seconds:
            return False
        self.saved = now
        return True

    def report(self, state: State, attempt: int, told: str, video: Tensor | None) -> Progress:
        """Where the run stands."""
        now = time.monotonic()
        self.steps += 1
        total = self.config.steps * self.config.tries
        done = attempt * self.config.steps + state.step
        picture = None
        if video is not None and now - self.shown > self.config.preview_seconds:
            self.shown = now
            picture = contact_sheet(list(to_uint8(video[0, :: max(1, video.shape[1] // 8)])), 8)
        return Progress(
            fraction=min(done / total, 1.0),
            seconds_left=(now - self.start) / self.steps * max(total - done, 0),
            step=state.step,
            attempt=attempt,
            losses={name: values[-1] for name, values in state.history.items() if values},
            message=told,
            picture=picture,
        )
