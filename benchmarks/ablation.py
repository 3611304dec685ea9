"""What each part of the recipe from rest brings: AKD's ablations on our prior, and the losses that know gaits.

    python benchmarks/ablation.py [--quick] [--json FILE] [--sheet FILE] [--species fox human] [--other-prior NAME]
        [--losses-only] [--variants "no symmetry"]

Distils the same sentence from rest with one thing changed at a time and judges the clips without any model. What a
draft brings is in `benchmarks/drafts.py`. The rows follow the
paper: no ground in the picture, no ground loss, one value per frame with and without smoothness, other bases, SDS
against CSD; and ours: no negative text, sides that need not match, jerks, no foot losses, no prior at all; and both
with and without the prior, no loss that says which leg goes when.
`--other-prior` adds a row with another video model (a name or file that `jigdoll animate --prior` takes). `--sheet`
draws the clips, one row each.
"""

import json as json_module
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
import tyro
from rich.console import Console
from rich.table import Table

from jigdoll import zoo
from jigdoll.distill.foot_lock import foot_lock
from jigdoll.distill.loop import distill
from jigdoll.distill.options import AnimateOptions, CameraOptions, CurveOptions, GuidanceOptions, LossWeights
from jigdoll.distill.scene import make_scene
from jigdoll.distill.trajectory import to_motion
from jigdoll.errors import JigdollError
from jigdoll.formats.video import write_picture
from jigdoll.judge import judge, walk_check
from jigdoll.language import read
from jigdoll.motion import resample
from jigdoll.prior.open import open_prior
from jigdoll.prior.pocket.prior import open_pocket
from jigdoll.render.draw import ClipStyle, contact_sheet, draw_clip, to_uint8
from jigdoll.rig.anatomy import anatomy_of
from jigdoll.types import Motion, RiggedAsset
from jigdoll.zoo.gaits import reference_motion

NO_ORDER = LossWeights(alternation=0.0, symmetry=0.0)
NO_FEET = replace(NO_ORDER, contact=0.0, support=0.0, swing_height=0.0, momentum=0.0)
NO_PRIOR = GuidanceOptions(scale=0.0)


def per_frame(smooth: float) -> AnimateOptions:
    """One value per frame, as in the paper."""
    return AnimateOptions(curves=CurveOptions(basis="frames"), losses=LossWeights(smooth=smooth))


VARIANTS = {
    "the recipe": AnimateOptions(),
    "no ground in the picture": AnimateOptions(cameras=CameraOptions(ground=False)),
    "no ground loss": AnimateOptions(losses=LossWeights(ground=0.0)),
    "per frame, smooth": per_frame(3000.0),
    "per frame, not smooth": per_frame(0.0),
    "cosines (dct)": AnimateOptions(curves=CurveOptions(basis="dct")),
    "splines": AnimateOptions(curves=CurveOptions(basis="spline")),
    "sds, scale 7.5": AnimateOptions(guidance=GuidanceOptions(form="sds", scale=7.5)),
    "sds, scale 100": AnimateOptions(guidance=GuidanceOptions(form="sds", scale=100.0)),
    "no negative text": AnimateOptions(guidance=GuidanceOptions(negative_prompt="")),
    **{
        f"no {name.replace('_', ' ')}": AnimateOptions(losses=LossWeights(**{name: 0.0}))
        for name in ("symmetry", "alternation", "swing_height", "support", "momentum", "jerk", "leg_length", "root")
    },
    "no foot losses": AnimateOptions(losses=NO_FEET),
    "no prior": AnimateOptions(guidance=NO_PRIOR),
    "no loss for the legs' order": AnimateOptions(losses=NO_ORDER),
    "neither that nor a prior": AnimateOptions(losses=NO_ORDER, guidance=NO_PRIOR),
}


@dataclass(frozen=True)
class Options:
    """What to run."""

    quick: bool = False
    """Three rows of few steps."""
    json: Path | None = None
    sheet: Path | None = None
    species: tuple[str, ...] = ("fox",)
    other_prior: str | None = None
    variants: tuple[str, ...] = ()
    """All by default."""
    losses_only: bool = False
    """Every row without the prior: seconds instead of minutes."""
    weights: Path | None = None
    """Of another pocket prior than the shipped one."""
    seed: int = 0


@dataclass(frozen=True)
class Row:
    """One variant on one character."""

    variant: str
    species: str
    alternation: tuple[float, ...]
    """Of each pair of legs; -1 is exactly out of step."""
    direction: float
    skate: float
    penetration: float
    jerk: float
    swing: tuple[float, ...]
    """Against the reference gait."""
    passed: bool
    seconds: float
    """CPU."""


def run(variant: str, settings: AnimateOptions, name: str, options: Options) -> tuple[Row, np.ndarray]:
    """Distil one variant and judge it."""
    asset, start = zoo.make(name), time.process_time()
    if options.quick:
        settings = replace(settings, iterations=10, refine_steps=30)
    other = variant == "another prior"
    prior = open_prior(options.other_prior or "") if other else open_pocket(options.weights)
    words, unwanted = prior.texts(read(f"a {name.replace('_', ' ')} walks"))
    guidance = settings.guidance
    if guidance.negative_prompt is None:
        guidance = replace(guidance, negative_prompt=unwanted)
    if options.losses_only:
        guidance = replace(guidance, form="csd", scale=0.0)
    settings = replace(settings, seed=options.seed, guidance=guidance)
    anatomy = anatomy_of(asset)
    made = distill(make_scene(anatomy, words, prior, settings))
    smooth = made.trajectory.basis != "frames"
    motion = to_motion(made.trajectory, made.theta, fps=24.0) if smooth else resample(made.motion, 24.0)
    motion = foot_lock(anatomy, motion)
    seconds = time.process_time() - start
    reference, verdict = judge(asset, reference_motion(asset, "walk", seconds=2.0, fps=24.0)), judge(asset, motion)
    legs, truth = ([pair for pair in v.pairs if pair.kind == "leg"] for v in (verdict, reference))
    row = Row(
        variant,
        name,
        tuple(pair.alternation for pair in legs),
        min(leg.direction for leg in verdict.legs),
        verdict.skate_ratio,
        verdict.penetration,
        verdict.angle_jerk,
        tuple(a.amplitude / b.amplitude for a, b in zip(legs, truth, strict=True)),
        walk_check(verdict, reference).passed,
        seconds,
    )
    return row, picture(asset, motion)


def picture(asset: RiggedAsset, motion: Motion) -> np.ndarray:
    """Eight frames in a row."""
    frames = draw_clip(asset, motion, style=ClipStyle("mesh", 160, 120, azimuth=(70.0,)))[0]
    return np.concatenate(list(to_uint8(frames[:: max(1, len(frames) // 8)][:8])), axis=1)


def show(rows: list[Row], console: Console) -> None:
    """The table."""
    table = Table(title="One thing changed at a time")
    for column in ("variant", "species", "alternation", "direction", "skate", "through the floor", "jerk", "swing"):
        table.add_column(column)
    table.add_column("passes")
    table.add_column("CPU s")
    for row in rows:
        numbers = (f"{row.direction:.2f}", f"{row.skate:.2f}", f"{row.penetration:.2%}", f"{row.jerk:.2f}")
        table.add_row(
            row.variant,
            row.species,
            " ".join(f"{a:+.2f}" for a in row.alternation),
            *numbers,
            " ".join(f"{a:.2f}" for a in row.swing),
            "yes" if row.passed else "no",
            f"{row.seconds:.0f}",
        )
    console.print(table)


def main(options: Options) -> None:
    """Run the variants, print the table."""
    torch.set_num_threads(1)
    console = Console(width=140)
    try:
        open_pocket(options.weights)
    except JigdollError as error:
        console.print(f"nothing to measure: {error}", highlight=False)
        return
    variants = dict(VARIANTS)
    if options.other_prior:
        variants["another prior"] = AnimateOptions()
    if options.variants:
        variants = {name: variants[name] for name in options.variants}
    elif options.quick:
        variants = {name: variants[name] for name in ("the recipe", "no foot losses", "no prior")}
    rows, pictures = [], []
    for name in options.species:
        for variant, settings in variants.items():
            row, drawn = run(variant, settings, name, options)
            rows.append(row)
            pictures.append(drawn)
            console.print(row, highlight=False)
            if options.json:
                options.json.write_text(json_module.dumps([asdict(row) for row in rows], indent=1))
    show(rows, console)
    if options.sheet:
        labels = [f"{row.species}: {row.variant}" for row in rows]
        write_picture(options.sheet, contact_sheet(pictures, 1, labels))


if __name__ == "__main__":
    main(tyro.cli(Options))
