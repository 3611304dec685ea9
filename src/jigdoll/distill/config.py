"""The plan of a distillation: what was asked, and where nothing was, what suits the prior, the words and the legs.

`resolve` is the one function that turns options into a plan, in which nothing is None.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from jigdoll.distill.options import AnimateOptions, Basis, Follow, Form, GuidanceOptions, Range
from jigdoll.language.actions import GaitKind
from jigdoll.types import PriorDefaults
from jigdoll.zoo.gaits.actions import whole_cycles
from jigdoll.zoo.gaits.pace import Pace

T = TypeVar("T")


@dataclass(frozen=True)
class Guidance:
    """`GuidanceOptions` with everything decided."""

    form: Form
    scale: float
    scale_end: float
    level_low: float
    level_high: float
    level_high_end: float
    annealed: bool
    negative_prompt: str


@dataclass(frozen=True)
class Cameras:
    """`CameraOptions` with everything decided."""

    views: int
    azimuth: Range
    elevation: Range
    margin: Range
    follow: Follow
    splats: int
    fit_steps: int
    ground: bool
    shadow: bool
    width: int
    height: int
    frames: int


@dataclass(frozen=True)
class Curves:
    """`CurveOptions` with everything decided."""

    basis: Basis
    speed: float
    period: float
    coarse: float
    stiffness: float
    arms: float
    sideways: float
    root_move: float
    root_turn: float
    bend_bound: float
    side_bound: float
    limited: bool
    start_noise: float


@dataclass(frozen=True)
class DistillPlan:
    """`AnimateOptions` with everything decided: what a run is."""

    frames: int
    """Of the clip; no fewer than the prior sees at once."""
    fps: float
    loop: bool
    seed: int
    tries: int
    iterations: int
    refine_steps: int
    rate: float
    decay: float
    checkpoint_seconds: float
    preview_seconds: float
    guidance: Guidance
    cameras: Cameras
    curves: Curves
    losses: Mapping[str, float]
    """The weight of each loss."""

    @property
    def steps(self) -> int:
        """All steps of the optimiser."""
        return self.iterations + self.refine_steps


def resolve(
    options: AnimateOptions, prior: PriorDefaults, pace: Pace, *, legs: int, draft: float | None = None
) -> DistillPlan:
    """The plan: what was asked, and where nothing was, what suits the prior, the words and the number of legs.

    `draft` is the length of the draft that the motion starts from [s]: then neither words nor legs decide anything.
    """
    cameras = _filled(Cameras, options.cameras, _cameras(prior))
    frames = cameras.frames
    if draft is not None:
        frames = max(frames, int(draft * prior.fps + 1e-4) + 1)
    elif options.seconds is not None:
        frames = max(frames, round(options.seconds * prior.fps) + 1)
    suits = _curves(pace, loop=options.loop) if draft is None else _curves_of_draft(pace, loop=options.loop)
    curves = _filled(Curves, options.curves, suits)
    if options.loop and draft is None:
        curves = replace(curves, period=whole_cycles(curves.period, (frames - 1) / prior.fps))
    steps = {"iterations": prior.iterations, "refine_steps": 300, "rate": 0.02, "decay": 0.3}
    if draft is not None:
        steps |= {"iterations": max(1, round(DRAFT_STEPS * prior.iterations)), "refine_steps": 60}
    asked = {name: getattr(options, name) for name in steps if getattr(options, name) is not None}
    closed = curves.basis == "fourier" or (curves.basis == "stride" and draft is not None)
    weights = _weights(pace.family, legs) if draft is None else DRAFT_WEIGHTS
    weights = {**weights, "loop": 1000.0 if options.loop and not closed else 0.0}
    return DistillPlan(
        frames=frames,
        fps=prior.fps,
        guidance=_filled(Guidance, options.guidance, _guidance(options.guidance, prior, draft=draft is not None)),
        cameras=cameras,
        curves=curves,
        losses={name: weights.get(name, 0.0) if wish is None else wish for name, wish in vars(options.losses).items()},
        **{name: getattr(options, name) for name in ("loop", "seed", "tries", "checkpoint_seconds", "preview_seconds")},
        **(steps | asked),
    )


def _filled(plan: type[T], asked: Any, suits: Mapping[str, Any]) -> T:
    """The plan of a group: what was asked, and what suits where nothing was."""
    values = {name: suits[name] if value is None else value for name, value in vars(asked).items()}
    return plan(**values)


_GESTURES: tuple[GaitKind, ...] = ("dance", "fly", "still")
"""Families whose meaning lies in arms, wings and trunk as much as in the legs."""
_BEND: dict[GaitKind, float] = {"walk": 0.9, "run": 1.3, "jump": 1.5, "dance": 1.2, "fly": 1.2, "still": 1.2}


FLOW_SCALES = (25.0, 12.0)
"""Guidance of flow matching at the start and at the end, with a noise level that falls all the way: W-RFSDS (Lyu et
al., Choreographing a World of Dynamic Objects, arXiv 2601.04194)."""
DRAFT_STEPS = 0.33
"""The share of the steps from rest that a draft leaves to the prior."""
DRAFT_LEVELS = 0.6
"""The share of the prior's range of noise levels that is used from a draft: more noise would hide it."""
DRAFT_WEIGHTS: dict[str, float] = {
    "ground": 3000.0,
    "contact": 400.0,
    "near": 300.0,
    "limits": 1000.0,
    "collision": 1000.0,
    "naturalness": 1000.0,
}
"""What a residual around a draft owes; nothing of it knows a gait."""


def _guidance(asked: GuidanceOptions, prior: PriorDefaults, *, draft: bool) -> dict[str, Any]:
    form = asked.form or prior.form
    low, high = prior.levels
    high = low + DRAFT_LEVELS * (high - low) if draft else high
    scale = prior.guidance if asked.scale is None else asked.scale
    return {
        "form": form,
        "scale": FLOW_SCALES[0] if form == "flow" else scale,
        "scale_end": FLOW_SCALES[1] if form == "flow" else scale,
        "level_low": low,
        "level_high": high,
        "level_high_end": low + 0.5 * (high - low),
        "annealed": form == "flow",
        "negative_prompt": prior.negative_prompt,
    }


def _cameras(prior: PriorDefaults) -> dict[str, Any]:
    in_color = prior.look == "color"
    return {
        "views": 2,
        "azimuth": (62.0, 118.0),
        "elevation": (8.0, 18.0),
        "margin": (0.08, 0.2),
        "follow": "path",
        "splats": 12_000 if in_color else 1000,
        "fit_steps": 1000 if in_color else 0,
        "ground": True,
        "shadow": True,
        "width": prior.width,
        "height": prior.height,
        "frames": prior.frames,
    }


def _curves(pace: Pace, *, loop: bool) -> dict[str, Any]:
    gesture = pace.family in _GESTURES
    return {
        "basis": "fourier" if loop else "stride" if pace.family in ("walk", "run", "dance") else "dct",
        "speed": pace.speed,
        "period": pace.period,
        "coarse": 0.6,
        "stiffness": 0.4 if gesture else 0.2,
        "arms": 1.0 if gesture else 0.3,
        "sideways": 0.3,
        "root_move": 0.1,
        "root_turn": 0.1,
        "bend_bound": _BEND[pace.family],
        "side_bound": 0.8 if gesture else 0.25,
        "limited": True,
        "start_noise": 0.05,
    }


def _curves_of_draft(pace: Pace, *, loop: bool) -> dict[str, Any]:
    """A residual of a few smooth terms; that of a loop is periodic, so that it closes in pose and in speed."""
    return {
        "basis": "stride" if loop else "dct",
        "speed": pace.speed,
        "period": pace.period,
        "coarse": 1.0,
        "stiffness": 0.3,
        "arms": 0.5,
        "sideways": 0.5,
        "root_move": 0.05,
        "root_turn": 0.05,
        "bend_bound": 0.6,
        "side_bound": 0.4,
        "limited": False,
        "start_noise": 0.0,
    }


def _weights(family: GaitKind, legs: int) -> dict[str, float]:
    """Support holds four legs harder than two, whose alternation it can undo; flight is free of it."""
    return {
        "ground": 3000.0,
        "contact": {"walk": 400.0, "fly": 0.0}.get(family, 150.0),
        "support": 0.0 if family in ("run", "fly") else 3000.0 if legs > 2 else 1500.0,
        "swing_height": {"walk": 60.0, "run": 40.0}.get(family, 0.0),
        "alternation": {"walk": 200.0}.get(family, 0.0),
        "symmetry": 300.0,
        "jerk": {"walk": 30.0, "run": 10.0}.get(family, 3.0),
        "momentum": {"walk": 2e4, "run": 5e3}.get(family, 0.0),
        "leg_length": 3000.0,
        "root": 6000.0,
        "near": 1.0,
        "collision": 1000.0,
    }
