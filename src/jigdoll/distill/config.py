"""The one flat configuration of a distillation, what suits each prior and sentence, and the paper's own constants."""

from dataclasses import dataclass, fields, replace
from typing import Literal

from jigdoll.distill.guidance import Form
from jigdoll.distill.losses import PAPER, Weights
from jigdoll.distill.tempo import Family, Tempo
from jigdoll.distill.trajectory import Basis
from jigdoll.types import PriorDefaults


@dataclass(frozen=True)
class DistillConfig:
    """How a motion is distilled; None means what suits the prior, the sentence and the legs."""

    iterations: int = 120
    """Steps that ask the prior."""
    settle: int = 300
    """Steps after those, by the losses alone: they put the gait on its feet and cost little."""
    views: int = 2
    """Random cameras per step."""
    seed: int = 0
    """Other seeds give other motions; the same one the same motion."""
    tries: int = 1
    """Seeds to run, the best kept."""
    seconds: float | None = None
    """Length of the clip; the prior's own by default. Longer clips are shown to the prior window by window."""
    loop: bool = False
    """Let the clip end in the pose it began with."""
    freeze_first: bool = False
    """Start in the rest pose."""

    speed: float | None = None
    """Forward speed to start from [m/s], instead of what the verb and the legs say."""
    period: float | None = None
    """Of one stride [s], instead of what the verb and the legs say."""
    basis: Basis | None = None
    """frames: one value per frame (the paper). dct, spline: smooth curves. fourier: a loop. stride: harmonics of the
    stride."""
    terms: int | None = None
    """How many basis functions; by default enough for two harmonics of the stride."""
    coarse: float = 0.6
    """The share of the terms that the motion starts with; all of them from `coarse_until` on."""
    coarse_until: float = 0.7
    stiffness: float | None = None
    """How far joints outside the legs follow, against 1 for legs."""
    arms: float | None = None
    sideways: float = 0.3
    """How far swing and twist follow, against 1 for the bend."""
    root_move: float = 0.1
    """[leg lengths]."""
    root_turn: float = 0.1
    bend_bound: float | None = None
    """How far a joint may bend away from rest [rad], besides its own limits."""
    side_bound: float | None = None
    """How far a joint may swing and twist away from rest [rad]."""
    limited: bool = True
    """Keep joints within the rig's limits by construction."""
    start_noise: float = 0.05
    """Deviation of the first coefficients."""

    form: Form | None = None
    """sds: the paper's. csd: wanted against unwanted text. flow: for flow matching. fit: towards finished clips."""
    guidance: float | None = None
    """Scale of the guidance at the start."""
    guidance_end: float | None = None
    """... and at the end."""
    level_low: float | None = None
    """Lowest noise level."""
    level_high: float | None = None
    """Highest noise level at the start."""
    level_high_end: float | None = None
    """... and from `level_until` on."""
    level_until: float = 0.5
    annealed: bool | None = None
    """Walk down the levels instead of drawing them at random."""
    negative_prompt: str | None = None
    subtract_still: bool = False
    """Take off what the prior would change about the same character at rest."""
    fit_steps: int = 8
    """fit: denoising steps of a target."""
    fit_repeat: int = 15
    """fit: optimiser steps towards a target."""

    rate: float = 0.02
    """Adam's step."""
    decay: float = 0.3
    """The share of all steps, at the end, over which the rate falls to a tenth."""
    ramp_start: float = 0.4
    """When contact, support, lift and relay begin to count ..."""
    ramp_end: float = 0.9
    """... and when they count in full."""
    smooth: float | None = None
    ground: float | None = None
    limits: float | None = None
    contact: float | None = None
    support: float | None = None
    lift: float | None = None
    relay: float | None = None
    tread: float | None = None
    sides: float | None = None
    ease: float | None = None
    momentum: float | None = None
    leg_length: float | None = None
    root: float | None = None
    energy: float | None = None
    collision: float | None = None
    closure: float | None = None
    """Weight of the loop's closure."""

    azimuth: tuple[float, float] = (62.0, 118.0)
    """Range of the cameras [degrees]; 90 sees the left side."""
    elevation: tuple[float, float] = (8.0, 18.0)
    margin: tuple[float, float] = (0.08, 0.2)
    """Free share of the picture around the character."""
    follow: Literal["course", "shape"] = "course"
    """What the camera follows: the way at the start speed, so that each move of the body shows in the picture and
    returns as a gradient; or the box of the deformed shape (the paper), which hides slow ones."""
    mirror: bool = True
    """Look from the right side in half of the views."""
    splats: int = 1000
    board: bool = True
    """Show the checkerboard ground."""
    shadow: bool = True
    width: int | None = None
    """[px]; the prior's own by default."""
    height: int | None = None
    frames: int | None = None
    """Frames that the prior sees at once; its own number by default."""

    checkpoint_seconds: float = 20.0
    preview_seconds: float = 5.0

    @property
    def steps(self) -> int:
        """All steps of the optimiser."""
        return self.iterations + self.settle


def paper_config(**changes: object) -> DistillConfig:
    """AKD's recipe: its losses and constants (4.4 and appendix D), one view, one value per frame, nothing else."""
    config = DistillConfig(
        iterations=10_000,
        settle=0,
        views=1,
        basis="frames",
        coarse=1.0,
        stiffness=1.0,
        arms=1.0,
        sideways=1.0,
        root_move=1.0,
        root_turn=1.0,
        limited=False,
        start_noise=0.0,
        form="sds",
        guidance=100.0,
        guidance_end=100.0,
        level_low=0.02,
        level_high=0.98,
        level_high_end=0.5,
        level_until=0.5,
        annealed=False,
        negative_prompt="",
        decay=0.0,
        shadow=False,
        follow="shape",
        **{"closure" if name == "loop" else name: getattr(PAPER, name) for name in _WEIGHTS},
    )
    return replace(config, **changes)  # type: ignore[arg-type]


def weights_of(config: DistillConfig) -> Weights:
    """The weights of a settled configuration."""
    return Weights(**{name: getattr(config, "closure" if name == "loop" else name) or 0.0 for name in _WEIGHTS})


def settle(config: DistillConfig, prior: PriorDefaults, tempo: Tempo, *, legs: int) -> DistillConfig:
    """The configuration with every None filled in by what suits the prior, the verb's family and the number of legs."""
    form = config.form or prior.form
    low, high = prior.levels
    guidance = prior.guidance if config.guidance is None else config.guidance
    suits: dict[str, object] = {
        "form": form,
        "basis": "fourier" if config.loop else "stride" if tempo.family in ("walk", "run", "dance") else "dct",
        "guidance": {"flow": 25.0, "fit": 2.5}.get(form, guidance),
        "guidance_end": {"flow": 12.0, "fit": 2.5}.get(form, guidance),
        "level_low": low,
        "level_high": high,
        "level_high_end": low + 0.5 * (high - low),
        "annealed": form in ("flow", "fit"),
        "negative_prompt": prior.negative_prompt,
        "width": prior.width,
        "height": prior.height,
        "frames": prior.frames,
        "bend_bound": _BEND[tempo.family],
        "side_bound": 0.8 if tempo.family in _GESTURES else 0.25,
        "stiffness": 0.4 if tempo.family in _GESTURES else 0.2,
        "arms": 1.0 if tempo.family in _GESTURES else 0.3,
        **_weights(tempo.family, legs, loop=config.loop and config.basis not in (None, "fourier")),
    }
    missing = {f.name: suits[f.name] for f in fields(config) if f.name in suits and getattr(config, f.name) is None}
    return replace(config, **missing)  # type: ignore[arg-type]


_GESTURES: tuple[Family, ...] = ("dance", "fly", "still")
"""Families whose meaning lies in arms, wings and trunk as much as in the legs."""
_WEIGHTS = tuple(f.name for f in fields(Weights))
_BEND: dict[Family, float] = {"walk": 0.9, "run": 1.3, "jump": 1.5, "dance": 1.2, "fly": 1.2, "still": 1.2}


def _weights(family: Family, legs: int, *, loop: bool) -> dict[str, float]:
    """Support holds four legs harder than two, whose alternation it can undo; flight is free of it."""
    return {
        "smooth": 0.0,
        "ground": 3000.0,
        "limits": 0.0,
        "contact": {"walk": 400.0, "fly": 0.0}.get(family, 150.0),
        "support": 0.0 if family in ("run", "fly") else 3000.0 if legs > 2 else 1500.0,
        "lift": {"walk": 60.0, "run": 40.0}.get(family, 0.0),
        "relay": {"walk": 200.0}.get(family, 0.0),
        "tread": {"dance": 300.0}.get(family, 0.0),
        "sides": 300.0,
        "ease": {"walk": 30.0, "run": 10.0}.get(family, 3.0),
        "momentum": {"walk": 2e4, "run": 5e3}.get(family, 0.0),
        "leg_length": 3000.0,
        "root": 6000.0,
        "energy": 1.0,
        "collision": 1000.0,
        "closure": 1000.0 if loop else 0.0,
    }
