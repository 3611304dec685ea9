"""What a person may ask of a distillation: nested options that hold None wherever nothing was asked.

`distill.config.resolve` turns them into a plan. `paper_options` are AKD's constants; `changed` puts what somebody asks
on top of such a recipe. This file loads nothing heavy: the command line shows it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

Form = Literal["sds", "csd", "flow"]
Basis = Literal["frames", "dct", "spline", "fourier", "stride"]
Follow = Literal["path", "shape"]
Range = tuple[float, float]
T = TypeVar("T")


@dataclass(frozen=True)
class GuidanceOptions:
    """How the prior is asked; by default what suits it."""

    form: Form | None = None
    """sds: the paper's. csd: wanted against unwanted text. flow: for flow matching."""
    scale: float | None = None
    """Scale of the guidance at the start."""
    scale_end: float | None = None
    """... and at the end."""
    level_low: float | None = None
    """Lowest noise level, in 0..1."""
    level_high: float | None = None
    """Highest noise level at the start."""
    level_high_end: float | None = None
    """... and from the middle of the steps on."""
    annealed: bool | None = None
    """Walk down the levels instead of drawing them at random."""
    negative_prompt: str | None = None
    """What the prompt is set against."""


@dataclass(frozen=True)
class CameraOptions:
    """What the prior is shown."""

    views: int | None = None
    """Random cameras per step; 2 by default."""
    azimuth: Range | None = None
    """Range of the cameras [degrees], and the same on the other side; 90 sees the left side; 62 to 118 by default."""
    elevation: Range | None = None
    """8 to 18 degrees by default."""
    margin: Range | None = None
    """Free share of the picture around the character; 0.08 to 0.2 by default."""
    follow: Follow | None = None
    """What the camera follows. path: the way at the start speed, so that each move of the body shows in the picture and
    returns as a gradient (the default). shape: the box of the deformed shape (the paper), which hides slow ones."""
    splats: int | None = None
    """1000 for a prior that sees shaded or motion colours, 12000 for one that sees real ones."""
    fit_steps: int | None = None
    """Steps that fit the splats to pictures of the mesh; 1000 for a prior that sees real colours, else none."""
    ground: bool | None = None
    """Show the checkerboard ground; yes by default."""
    shadow: bool | None = None
    """Show a shadow on it; yes by default."""
    width: int | None = None
    """[px]; the prior's own by default."""
    height: int | None = None
    """[px]."""
    frames: int | None = None
    """Frames that the prior sees at once; its own number by default."""


@dataclass(frozen=True)
class CurveOptions:
    """What the motion may be; by default what suits the words and the legs."""

    basis: Basis | None = None
    """frames: one value per frame (the paper). dct, spline: smooth curves. fourier: a loop. stride: harmonics of the
    stride."""
    speed: float | None = None
    """Forward speed to start from [m/s]."""
    period: float | None = None
    """Of one stride [s]."""
    coarse: float | None = None
    """The share of the terms that the motion starts with; 0.6 by default."""
    stiffness: float | None = None
    """How far joints outside the legs follow, against 1 for legs."""
    arms: float | None = None
    """The same for arms."""
    sideways: float | None = None
    """How far swing and twist follow, against 1 for the bend; 0.3 by default."""
    root_move: float | None = None
    """How far the root moves [leg lengths]; 0.1 by default."""
    root_turn: float | None = None
    """How far the root turns [rad]; 0.1 by default."""
    bend_bound: float | None = None
    """How far a joint may bend away from rest [rad], besides its own limits."""
    side_bound: float | None = None
    """How far a joint may swing and twist away from rest [rad]."""
    limited: bool | None = None
    """Keep joints within the rig's limits by construction; yes by default."""
    start_noise: float | None = None
    """Deviation of the first coefficients; 0.05 by default."""


@dataclass(frozen=True)
class LossWeights:
    """How much each loss counts (the functions of `distill.losses`); 0 is off.

    By default what suits the words and the legs. From `support` on they are about gaits that start from rest.
    """

    smooth: float | None = None
    """AKD's Eq. 9: all values change evenly from frame to frame."""
    ground: float | None = None
    """AKD's Eq. 10: nothing goes below the ground."""
    contact: float | None = None
    """Feet that stand in the draft stay; without a draft, the lower foot of a pair."""
    near: float | None = None
    """The motion stays near the draft (as much less as the noise has fallen); without one, near rest."""
    limits: float | None = None
    """Joints stay within their limits; without a draft they do anyway."""
    collision: float | None = None
    """Limbs do not go through each other."""
    naturalness: float | None = None
    """Poses are natural, where a pose model says how natural they are."""
    loop: float | None = None
    """The clip ends as it began."""
    support: float | None = None
    """The lower foot of a pair is on the ground."""
    swing_height: float | None = None
    """A foot that swings ahead is up, one that goes back is down."""
    alternation: float | None = None
    """Feet of a pair take turns."""
    symmetry: float | None = None
    """The left does what the right does, mirrored and a share of a stride later."""
    jerk: float | None = None
    """Nothing jerks."""
    momentum: float | None = None
    """The body does not spin about the vertical: arms swing against legs."""
    leg_length: float | None = None
    """Legs do not curl up."""
    root: float | None = None
    """The body stays near its path."""


PAPER = LossWeights(**{**{f.name: 0.0 for f in fields(LossWeights)}, "smooth": 2e5, "ground": 1e7})
"""lambda_1 and lambda_2 of AKD, appendix D; Eq. 8 has no other term."""


@dataclass(frozen=True)
class AnimateOptions:
    """How a motion is distilled."""

    seconds: float | None = None
    """Length of the clip; what the prior sees at once by default. Longer ones are shown to it window by window."""
    loop: bool = False
    """Let the clip end in the pose it began with."""
    seed: int = 0
    """Another seed gives another motion, the same one the same motion."""
    tries: int = 1
    """Seeds to run; the best one is kept."""
    iterations: int | None = None
    """Steps that ask the prior; what the prior needs by default: from a draft far fewer than from rest."""
    refine_steps: int | None = None
    """Steps after those, by the losses alone: they put the gait on its feet and cost little; 300 by default, 60
    from a draft."""
    rate: float | None = None
    """Adam's step; 0.02 by default."""
    decay: float | None = None
    """The share of all steps, at the end, over which the rate falls to a tenth; 0.3 by default."""
    checkpoint_seconds: float = 20.0
    """Time between two checkpoints."""
    preview_seconds: float = 5.0
    """Time between two previews."""
    guidance: GuidanceOptions = field(default_factory=GuidanceOptions)
    cameras: CameraOptions = field(default_factory=CameraOptions)
    curves: CurveOptions = field(default_factory=CurveOptions)
    losses: LossWeights = field(default_factory=LossWeights)

    @property
    def distils(self) -> bool:
        """Whether something is asked that only a distillation can do."""
        plain = AnimateOptions(seconds=self.seconds, loop=self.loop, seed=self.seed, tries=self.tries)
        return self != plain


def paper_options() -> AnimateOptions:
    """AKD's recipe: its losses and constants (4.4 and appendix D), one view, one value per frame, nothing else."""
    return AnimateOptions(
        iterations=10_000,
        refine_steps=0,
        decay=0.0,
        guidance=GuidanceOptions(
            form="sds",
            scale=100.0,
            scale_end=100.0,
            level_low=0.02,
            level_high=0.98,
            level_high_end=0.5,
            annealed=False,
            negative_prompt="",
        ),
        cameras=CameraOptions(views=1, follow="shape", shadow=False),
        curves=CurveOptions(
            basis="frames",
            coarse=1.0,
            stiffness=1.0,
            arms=1.0,
            sideways=1.0,
            root_move=1.0,
            root_turn=1.0,
            limited=False,
            start_noise=0.0,
        ),
        losses=PAPER,
    )


def changed(recipe: T, asked: T) -> T:
    """The recipe with everything that was asked (that differs from what options are without a word) in its place."""
    plain = type(asked)()
    changes: dict[str, Any] = {}
    for f in fields(asked):  # type: ignore[arg-type]
        before, wish = getattr(recipe, f.name), getattr(asked, f.name)
        if is_dataclass(wish):
            changes[f.name] = changed(before, wish)
        elif wish != getattr(plain, f.name):
            changes[f.name] = wish
    return replace(recipe, **changes)  # type: ignore[type-var]


def options_from(stored: Mapping[str, Any], kind: type[T] = AnimateOptions) -> T:
    """Options from what JSON makes of them (`dataclasses.asdict`); a ValueError names what does not fit."""
    kinds = get_type_hints(kind)
    values: dict[str, Any] = {}
    for f in fields(kind):  # type: ignore[arg-type]
        if f.name not in stored:
            continue
        value, expected = stored[f.name], kinds[f.name]
        nested = isinstance(expected, type) and is_dataclass(expected)
        values[f.name] = options_from(value, expected) if nested else _fitting(value, expected, f.name)
    return kind(**values)


def _fitting(value: Any, kind: Any, name: str) -> Any:
    """The value as that type has it."""
    if get_origin(kind) in (Union, UnionType):
        for choice in get_args(kind):
            try:
                return _fitting(value, choice, name)
            except ValueError:
                continue
    elif get_origin(kind) is Literal and value in get_args(kind):
        return value
    elif get_origin(kind) is tuple and isinstance(value, list | tuple) and len(value) == len(get_args(kind)):
        return tuple(_fitting(item, part, name) for item, part in zip(value, get_args(kind), strict=True))
    elif kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    elif isinstance(kind, type) and isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
        return value
    raise ValueError(f"{name} cannot be {value!r}")
