"""What each ingredient of the pose space brings: the same short training with one thing left out at a time.

    python benchmarks/posespace_ablation.py CACHE [--seconds 180] [--only NAME ...] [--quick] [--json FILE]

CACHE is made by `python -m jigdoll.posespace.dataset`. Every variant trains for the same processor time from the same
seed and is asked about clips of rigs and actors that were kept out (near, far; the zoo's held-out species are not
among them): the error of the numbers at three noise levels, and from words and body alone (level 0.985) the angle per
bone and the root's speed.
"""

import argparse
import json
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from jigdoll.posespace.dataset import Dataset, open_dataset, spread_of
from jigdoll.posespace.figure import stick_places
from jigdoll.posespace.layout import EXTRA
from jigdoll.posespace.losses import LossWeights, denoising_loss
from jigdoll.posespace.model import NetConfig
from jigdoll.posespace.train import SIZES, Run, TrainOptions, estimate_of, noised, start_run, text_vectors, update
from jigdoll.posespace.windows import Batch, Units, Windows

LEVELS = (0.3, 0.6, 0.9)
WORDS_ALONE = 0.985


@dataclass(frozen=True)
class Variant:
    """One way to train."""

    sources: tuple[str, ...] = ("zoo", "mocap", "artists")
    vary: bool = True
    features: bool = True
    """Whether the network is told what parts are like, beyond their kind."""
    words: bool = True
    faults: bool = True
    config: NetConfig = field(default_factory=NetConfig)


VARIANTS = {
    "all": Variant(),
    "zoo only": Variant(sources=("zoo",)),
    "zoo and mocap": Variant(sources=("zoo", "mocap")),
    "artists only": Variant(sources=("artists",)),
    "bodies not varied": Variant(vary=False),
    "parts not described": Variant(features=False),
    "no words": Variant(words=False),
    "no validators in the loss": Variant(faults=False),
    "1.5 M parameters": Variant(config=NetConfig(width=120, layers=5, heads=3, hidden=360)),
    "9.3 M parameters": Variant(config=NetConfig(width=288, layers=6, heads=4, hidden=864)),
}


def source_of(source: str) -> str:
    """The group that a clip's source belongs to."""
    if source.startswith("jigdoll"):
        return "zoo"
    return "mocap" if source.split(" ", maxsplit=1)[0] in ("cmu", "rocketbox") else "artists"


def seen(batch: Batch, variant: Variant) -> Batch:
    """The batch as this variant is shown it."""
    if not variant.words:
        batch = replace(batch, text=torch.zeros_like(batch.text))
    if not variant.features:
        hidden = replace(batch.sticks, features=torch.zeros_like(batch.sticks.features))
        batch = replace(batch, sticks=hidden)
    return batch


def trained(data: Dataset, units: Units, vectors: dict, variant: Variant, seconds: float) -> Run:
    """A short training; the rate falls over its last quarter."""
    options = TrainOptions(hours=seconds / 3600, warm=100, average=0.995)
    run = start_run(variant.config, options)
    clips = tuple(clip for clip in data.clips if source_of(clip.source) in variant.sources)
    windows = Windows(Dataset(clips, data.figures), units, vectors)
    generator = torch.Generator().manual_seed(0)
    weights = LossWeights() if variant.faults else LossWeights(faults=0.0)
    clock = time.process_time()
    while run.seconds < seconds:
        frames, count, _ = SIZES[windows.dice.choice(len(SIZES), p=[size[2] for size in SIZES])]
        batch = seen(windows.draw(frames, count, given=0.15, vary=variant.vary), variant)
        update(run, batch, units, options, generator, weights)
        now = time.process_time()
        run.seconds, clock = run.seconds + now - clock, now
    return run


def measured(run: Run, windows: Windows, units: Units, variant: Variant, count: int) -> dict[str, float]:
    """Errors on clips that were kept out, each kind of body alike."""
    rows: dict[str, list[float]] = {}
    for kind in windows.kinds:
        windows.dice = np.random.default_rng(1)
        generator = torch.Generator().manual_seed(1)
        true = windows.draw(48, count, kind=kind, given=0.0, vary=False)
        batch = seen(true, variant)
        for level in (*LEVELS, WORDS_ALONE):
            at = torch.full((count,), level)
            with torch.no_grad():
                estimate = estimate_of(run.average, batch, noised(batch, at, generator), at)
            if level in LEVELS:
                error = float(denoising_loss(batch, estimate, units, LossWeights())[1].mean())
                rows.setdefault(f"error {level}", []).append(error)
            else:
                raw = units.out_of(estimate, true.sticks)
                rows.setdefault("degrees", []).append(bone_degrees(true, raw))
                gap = (raw - true.raw)[:, 0, :, EXTRA][..., :2].norm(dim=-1)
                rows.setdefault("speed", []).append(float(gap.mean()))
    return {name: round(float(np.mean(values)), 4) for name, values in rows.items()}


def bone_degrees(true: Batch, raw: Tensor) -> float:
    """The mean angle between bones and true bones, seen from what carries them."""
    a, b = stick_places(true.sticks, raw).bones, true.places.bones
    there = (true.sticks.bones.norm(dim=-1) > 1e-3) & (true.sticks.kinds >= 0)[..., None]
    cosine = torch.nn.functional.cosine_similarity(a, b, dim=-1).clamp(-1, 1)
    return float(torch.rad2deg(torch.arccos(cosine)).mean(2)[there].mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cache", type=Path)
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--only", nargs="*", choices=list(VARIANTS))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path)
    words = parser.parse_args()
    torch.set_num_threads(1)
    seconds = 8.0 if words.quick else words.seconds
    names = words.only or (["all", "bodies not varied"] if words.quick else list(VARIANTS))
    every = open_dataset(words.cache)
    data = every.of(("train",))
    mean, spread = spread_of(data)
    units = Units(torch.from_numpy(mean).float(), torch.from_numpy(spread).float())
    vectors = text_vectors(every)
    unseen = {
        split: Windows(
            Dataset(tuple(c for c in every.of((split,)).clips if source_of(c.source) != "zoo"), every.figures),
            units,
            vectors,
        )
        for split in ("near", "far")
    }
    table = {}
    for name in names:
        variant = VARIANTS[name]
        run = trained(data, units, vectors, variant, seconds)
        row: dict = {"updates": run.updates, "parameters": sum(p.numel() for p in run.net.parameters())}
        for split, windows in unseen.items():
            row[split] = measured(run, windows, units, variant, 8 if words.quick else 24)
        table[name] = row
        sys.stdout.write(f"{name}: {json.dumps(row)}\n")
        sys.stdout.flush()
    if words.json:
        words.json.write_text(json.dumps({"seconds": seconds, "variants": table}, indent=1))


if __name__ == "__main__":
    main()
