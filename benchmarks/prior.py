"""Does the pocket prior know how species that it never saw move?

    python benchmarks/prior.py [--quick] [--json FILE] [--weights FILE] [--samples] [--sheet FILE] [--no-auc]
                               [--trained]

Reference walks of the held-out species, and the same clips spoiled, are noised; the prior denoises them with the right
prompt and with the negative one (for another action's clip: with that action's prompt). The gap between the two errors,
as a share of the error (a large dark body is harder to denoise than a slim one, by any prompt), ought to tell a walk
from everything else: the tables give the area under the ROC curve by noise level. `--samples`
draws videos from noise for the held-out species and asks a separately trained classifier what they show. Whoever trains
looks at new individuals of the trained species (`--trained`), so that the others stay unseen until the end. `--sheet`
draws a sample of each action of four characters.
"""

import json as json_module
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import tyro
from rich.console import Console
from rich.table import Table
from torch import Tensor

from classifier import CLASS_OF, load_classifier, name_actions
from jigdoll import zoo
from jigdoll.errors import JigdollError
from jigdoll.formats.video import write_picture
from jigdoll.language.inflect import inflect
from jigdoll.language.nouns import HOPPERS
from jigdoll.language.read import read
from jigdoll.prior.pocket.data import Recipe, bind, draw, legs_of, long_clip, spoil, take
from jigdoll.prior.pocket.prior import PocketPrior, open_pocket
from jigdoll.prior.pocket.vocabulary import HELD_OUT_SPECIES, TRAINED_SPECIES, VERBS
from jigdoll.prior.sample import reference_image_of, sample, sheet
from jigdoll.render.draw import contact_sheet
from jigdoll.zoo.gaits import actions

LEVELS = (0.2, 0.3, 0.45, 0.6, 0.75, 0.9)
USED = (0.2, 0.3, 0.45, 0.6, 0.75)
"""Distillation draws its levels from this range."""
SPOILED = ("glide", "reversed", "moonwalk", "wrong_phase", "wrong_speed", "random", "jitter")
APART = ("wrong_step", "wrong_order")
"""What a wrong phase is made of: a leg out of step with the one across, or pairs in step but in another order."""
OTHERS = {
    "run": "runs",
    "jump": "jumps",
    "idle": "stands still",
    "turn_left": "turns left",
    "turn_right": "turns right",
}
CORE = {"walk": "walks"} | OTHERS
FRESH = 500
"""Seed of the first individual of a trained species to look at."""
SIDES = ("turn_left", "turn_right")
FOUR = ("horse", "child", "ostrich", "spider")
"""Whose samples are drawn: one of each kind of body."""


@dataclass(frozen=True)
class Options:
    """What to measure."""

    quick: bool = False
    """One individual of four species instead of several of eight."""
    json: Path | None = None
    weights: Path | None = None
    """Of another pocket prior than the shipped one."""
    individuals: int = 3
    """Of each species: itself and variations."""
    views: int = 2
    auc: bool = True
    """What it can tell apart; takes a quarter of an hour."""
    trained: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Tell apart clips of trained species, of individuals that were not trained on, instead of the held-out ones."""
    samples: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Also sample videos and have them named."""
    sheet: Path | None = None
    """Also draw samples of all actions, three of the four characters of held-out species."""


@dataclass(frozen=True, eq=False)
class Shown:
    """A clip of a species, held out or not."""

    kind: str
    species: str
    video: Tensor
    reference_image: Tensor


def show(options: Options) -> list[Shown]:
    """Walks, the same walks spoiled, and other actions, each pair from random views."""
    generator, other = (torch.Generator().manual_seed(seed) for seed in (99, 98))
    recipe, shown = Recipe(), []
    names = sorted(set(TRAINED_SPECIES) - set(HOPPERS) if options.trained else HELD_OUT_SPECIES)
    first = FRESH if options.trained else 0
    for name in names[:: 2 if options.quick else 1]:
        for individual in range(first, first + (1 if options.quick else options.individuals)):
            asset = zoo.make(name, seed=individual)
            splats = bind(asset, count=1000)
            legs = legs_of(asset)
            for view in range(options.views):
                seed = 100 * individual + view + 1
                walk = long_clip(asset, "walk", recipe, tempo=0.0, seed=seed)
                poses = {"walk": take(walk, recipe, generator)}
                poses |= {kind: spoil(asset, walk, legs, kind, recipe, generator) for kind in SPOILED}
                for action in OTHERS:
                    clip = long_clip(asset, action, recipe, tempo=0.0, seed=seed)
                    poses[action] = take(clip, recipe, generator)
                for kind, pose in poses.items():
                    shown.append(Shown(kind, name, *draw(splats, asset, pose, recipe, generator)))
                for kind in APART if len(legs) > 2 else APART[:1]:
                    pose = spoil(asset, walk, legs, kind, recipe, other)
                    shown.append(Shown(kind, name, *draw(splats, asset, pose, recipe, other)))
    return shown


def errors(prior: PocketPrior, clip: Shown, prompts: list[str], level: float, seed: int) -> list[float]:
    """The denoising error of a clip under each prompt, with the same noise."""
    clean = prior.encode(clip.video[None])
    noisy = prior.noise(clean, level, torch.Generator().manual_seed(seed))
    guesses = prior.denoise(noisy, level, [prior.embed(prompt) for prompt in prompts], clip.reference_image[None])
    return [float((guess - clean).square().mean()) for guess in guesses]


def gap(right: float, other: float) -> float:
    """How much better the right prompt explains a clip than the other one, as a share of the error."""
    return 2 * (other - right) / (other + right)


def area(right: list[float], wrong: list[float]) -> float:
    """The chance that a right clip scores above a wrong one (AUC)."""
    a, b = torch.tensor(right)[:, None], torch.tensor(wrong)[None]
    return float(((a > b).float() + 0.5 * (a == b).float()).mean())


def knowledge(prior: PocketPrior, clips: list[Shown]) -> dict[str, dict[str, float]]:
    """AUC of walks against each other kind, and of left turns against right ones, by level and over the used levels."""
    gaps: dict[tuple[str, str, float], list[float]] = {}
    for i, clip in enumerate(clips):
        noun = clip.species.replace("_", " ")
        walk = f"a {noun} walks"
        asked = tuple(OTHERS) if clip.kind == "walk" else SIDES if clip.kind in SIDES else (clip.kind,)
        other = {action: OTHERS[action] for action in asked if action in OTHERS}
        prompts = [walk, prior.texts(read(walk))[1], *(f"a {noun} {words}" for words in other.values())]
        for level in LEVELS:
            right, negative, *rest = errors(prior, clip, prompts, level, seed=i)
            gaps.setdefault((clip.kind, "negative", level), []).append(gap(right, negative))
            by_action = dict(zip(other, rest, strict=True))
            for action, error in by_action.items():
                gaps.setdefault((clip.kind, action, level), []).append(gap(right, error))
            if clip.kind in SIDES:
                gaps.setdefault((clip.kind, "side", level), []).append(gap(*(by_action[side] for side in SIDES)))
    pairs = {kind: ("walk", kind, kind if kind in OTHERS else "negative") for kind in (*SPOILED, *APART, *OTHERS)}
    pairs["left from right"] = (*SIDES, "side")
    table = {}
    for name, (kind, wrong, against) in pairs.items():
        curves = {level: (gaps[kind, against, level], gaps[wrong, against, level]) for level in LEVELS}
        together = [
            [sum(scores) for scores in zip(*(_scaled(curves[level])[side] for level in USED), strict=True)]
            for side in (0, 1)
        ]
        table[name] = {f"{level:g}": area(*curves[level]) for level in LEVELS} | {
            "used": area(together[0], together[1])
        }
    return table


def _scaled(pair: tuple[list[float], list[float]]) -> tuple[list[float], list[float]]:
    """Gaps of one level in units of their own spread, so that no level drowns the others."""
    spread = float(torch.tensor(pair[0] + pair[1]).std()) + 1e-12
    return [gap / spread for gap in pair[0]], [gap / spread for gap in pair[1]]


def named(prior: PocketPrior, *, count: int) -> dict[str, dict[str, float]]:
    """How often the classifier finds the prompted action in samples, by action and by species."""
    net, hits = load_classifier(), {}
    for name in sorted(HELD_OUT_SPECIES):
        asset = zoo.make(name)
        able, drawn = actions(asset), reference_image_of(asset, prior)
        for action, words in CORE.items():
            if action not in able:
                continue
            prompt = f"a {name.replace('_', ' ')} {words}"
            negative = prior.texts(read(prompt))[1]
            videos = sample(prior, prompt, negative=negative, reference_image=drawn, seed=7, count=count, steps=24)
            found, _ = name_actions(net, videos)
            hits[name, action] = sum(CLASS_OF[action] == f for f in found) / count
    by_action = {action: _mean([v for (_, a), v in hits.items() if a == action]) for action in CORE}
    by_species = {name: _mean([v for (n, _), v in hits.items() if n == name]) for name in sorted(HELD_OUT_SPECIES)}
    return {"action": by_action, "species": by_species, "all": {"all": _mean(list(hits.values()))}}


def draw_samples(prior: PocketPrior, names: tuple[str, ...]) -> np.ndarray:
    """Eight frames of a sample of each action that each character can do."""
    rows, prompts = [], []
    for name in names:
        asset = zoo.make(name)
        drawn = reference_image_of(asset, prior)
        for action in actions(asset):
            (deed, _, side), article = action.partition("_"), "an" if name[0] in "aeiou" else "a"
            prompts.append(f"{article} {name} {inflect(VERBS[deed][0])[1]} {side}".strip())
            negative = prior.texts(read(prompts[-1]))[1]
            video = sample(prior, prompts[-1], negative=negative, reference_image=drawn, seed=7, steps=24)
            rows.append(sheet(video, every=3, scale=1))
    return contact_sheet(rows, 2, prompts)


def _mean(values: list[float]) -> float:
    return sum(values) / max(1, len(values))


def cost(prior: PocketPrior) -> float:
    """CPU seconds of one guided denoise of one clip on one thread: the best of a few."""
    config = prior.net.config
    noisy = torch.randn(1, config.frames, config.height, config.width, 3)
    texts = [prior.embed("a fox walks"), prior.embed("unnatural motion")]
    times = []
    for _ in range(6):
        start = time.process_time()
        prior.denoise(noisy, 0.6, texts, noisy[:, 0])
        times.append(time.process_time() - start)
    return min(times)


def main(options: Options) -> None:
    """Print the tables."""
    torch.set_num_threads(1)
    console = Console()
    try:
        prior = open_pocket(options.weights)
    except JigdollError as error:
        console.print(f"nothing to measure: {error}", highlight=False)
        return
    facts: dict = {"guided_denoise_seconds": cost(prior)}
    if options.auc:
        facts["auc"] = knowledge(prior, show(options))
        levels, who = (f"t={level:g}" for level in LEVELS), "trained" if options.trained else "held-out"
        table = Table("walk against", *levels, "levels used", title=f"AUC, {who} species")
        for kind, row in facts["auc"].items():
            table.add_row(kind, *(f"{value:.2f}" for value in row.values()))
        console.print(table)
    console.print(f"a guided denoise of one clip: {facts['guided_denoise_seconds']:.3f} CPU s on one core")
    if options.samples:
        facts["named"] = named(prior, count=1 if options.quick else 4)
        table = Table("samples of", "named as prompted", title="Samples for held-out species")
        for group in facts["named"].values():
            for name, share in group.items():
                table.add_row(name, f"{share:.0%}")
        console.print(table)
    if options.sheet:
        write_picture(options.sheet, draw_samples(prior, FOUR[:1] if options.quick else FOUR))
    if options.json:
        options.json.write_text(json_module.dumps(facts, indent=1))


if __name__ == "__main__":
    main(tyro.cli(Options))
