"""Does every built-in character walk when it is told to? And other actions, named by a referee.

    python benchmarks/walks.py [--quick] [--json FILE] [--weights FILE] [--prior-off] [--actions]

Distils "a ... walks" for all 29 species and judges each clip against the species' reference gait: left-right
alternation of every pair of legs, direction of the leg cycle, skating, penetration, swing. `--prior-off` is the
control: the same losses of body and ground without the prior. `--actions` distils other actions for eight species and
asks the classifier of `benchmarks/classifier.py` what it sees. `--sheet FILE` draws what was made.
"""

import json as json_module
import time
from dataclasses import dataclass
from pathlib import Path

import torch
import tyro
from rich.console import Console
from rich.table import Table

from ablation import picture
from classifier import CLASS_OF, CLASSES, load_classifier, name_actions
from jigdoll import zoo
from jigdoll.distill.options import AnimateOptions, GuidanceOptions
from jigdoll.errors import JigdollError
from jigdoll.formats.video import write_picture
from jigdoll.judge import judge, walk_check
from jigdoll.pipeline import animate
from jigdoll.prior.pocket.prior import open_pocket
from jigdoll.prior.pocket.vocabulary import HELD_OUT_SPECIES
from jigdoll.render.draw import ClipStyle, contact_sheet, draw_clip
from jigdoll.types import Motion, RiggedAsset
from jigdoll.zoo.gaits import reference_motion

ACTIONS = {"run": "runs", "jump": "jumps", "turn_left": "turns left", "dance": "dances"}
EIGHT = ("fox", "horse", "elephant", "human", "ostrich", "t_rex", "ant", "spider")


@dataclass(frozen=True)
class Options:
    """What to run."""

    quick: bool = False
    """Two species, few steps."""
    json: Path | None = None
    weights: Path | None = None
    prior_off: bool = False
    actions: bool = False
    species: tuple[str, ...] = ()
    """All by default."""
    iterations: int | None = None
    seed: int = 0
    sheet: Path | None = None


def distilled(name: str, words: str, options: Options) -> tuple[RiggedAsset, Motion, float]:
    """A character, its motion and the CPU seconds it took."""
    asset, start = zoo.make(name), time.process_time()
    guidance = GuidanceOptions(scale=0.0 if options.prior_off else None)
    settings = AnimateOptions(iterations=20 if options.quick else options.iterations, guidance=guidance)
    prompt = f"a {name.replace('_', ' ')} {words}"
    made = animate(asset, prompt, prior=open_pocket(options.weights), settings=settings, seed=options.seed)
    return asset, made.motion, time.process_time() - start


def walks(options: Options, console: Console) -> list[dict]:
    """One row per species."""
    rows, pictures = [], []
    names = options.species or (("dog", "spider") if options.quick else zoo.SPECIES)
    for name in names:
        asset, motion, seconds = distilled(name, "walks", options)
        reference = judge(asset, reference_motion(asset, "walk", seconds=2.0, fps=24.0))
        verdict = judge(asset, motion)
        check = walk_check(verdict, reference)
        legs = [pair for pair in verdict.pairs if pair.kind == "leg"]
        truth = [pair for pair in reference.pairs if pair.kind == "leg"]
        rows.append(
            {
                "species": name,
                "held out": name in HELD_OUT_SPECIES,
                "alternation": [round(pair.alternation, 2) for pair in legs],
                "reference": [round(pair.alternation, 2) for pair in truth],
                "direction": round(min(leg.direction for leg in verdict.legs), 2),
                "skate": round(verdict.skate_ratio, 2),
                "penetration": round(verdict.penetration, 4),
                "swing": [round(a.amplitude / b.amplitude, 2) for a, b in zip(legs, truth, strict=True)],
                "passed": check.passed,
                "failures": list(check.failures),
                "seconds": round(seconds, 1),
            }
        )
        console.print(rows[-1], highlight=False)
        pictures.append(picture(asset, motion))
        if options.sheet:
            write_picture(options.sheet, contact_sheet(pictures, 1, [row["species"] for row in rows]))
        if options.json:
            options.json.write_text(json_module.dumps({"walks": rows}, indent=1, default=str))
    return rows


def other_actions(options: Options) -> list[dict]:
    """What a referee that never saw a distilled clip makes of each."""
    net, rows = load_classifier(), []
    for name in EIGHT[:1] if options.quick else EIGHT:
        for action, words in ACTIONS.items():
            asset, motion, _ = distilled(name, words, options)
            style = ClipStyle("motion", 56, 40, azimuth=(90.0, 70.0, 110.0))
            pose = motion.pose
            every = max(1, round(motion.fps / 12))
            short = Motion(type(pose)(pose.root[::every][:24], pose.rotations[::every][:24]), 12.0, motion.name)
            found, chances = name_actions(net, draw_clip(asset, short, style=style))
            mean = float(chances[:, [i for i, c in enumerate(CLASSES) if c == CLASS_OF[action]]].mean())
            right = max(set(found), key=found.count) == CLASS_OF[action]
            rows.append({"species": name, "action": action, "named": found, "chance": round(mean, 2), "right": right})
            print(rows[-1], flush=True)
    return rows


def main(options: Options) -> None:
    """Print the tables."""
    torch.set_num_threads(1)
    console = Console()
    try:
        open_pocket(options.weights)
    except JigdollError as error:
        console.print(f"nothing to measure: {error}", highlight=False)
        return
    rows = walks(options, console)
    columns = (
        "species",
        "held out",
        "alternation",
        "reference",
        "direction",
        "skate",
        "penetration",
        "swing",
        "passed",
    )
    table = Table(*columns, "CPU s", title="walks" + (" without the prior" if options.prior_off else ""))
    for row in rows:
        table.add_row(*(str(row[column]) for column in columns), f"{row['seconds']:.0f}")
    console.print(table)
    console.print(f"{sum(row['passed'] for row in rows)} of {len(rows)} pass all")
    facts: dict = {"walks": rows}
    if options.actions:
        facts["actions"] = other_actions(options)
        table = Table("species", "action", "named", "chance", "right", title="Other actions, named by the referee")
        for row in facts["actions"]:
            table.add_row(*(str(value) for value in row.values()))
        console.print(table)
    if options.json:
        options.json.write_text(json_module.dumps(facts, indent=1, default=str))


if __name__ == "__main__":
    main(tyro.cli(Options))
