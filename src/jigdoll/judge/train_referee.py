"""Trains the referee on real clips: `python -m jigdoll.judge.train_referee --corpus FOLDER`, in one file.

What ships was made by

    nice python -m jigdoll.judge.train_referee --corpus ../shared/corpus

It learns from rows of the split `train` and is held to the actors and rigs of `near` and `far`, and to an eighth of the
others, which are kept out here too. Each action counts by the square root of its clips, and each rig in it alike.
Minutes on one core.
"""

import copy
import json
import sys
import time
import warnings
import zlib
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
import tyro
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from safetensors.torch import save_file
from torch import Tensor, nn

from jigdoll.corpus import takes
from jigdoll.judge.referee import CHANNELS, WINDOW, Referee, RefereeConfig, name_values, referee_values
from jigdoll.memory.shape import mirror

LEAST_FRAMES = 4
SAME = {
    **{"gallop": "run", "trot": "run", "fall": "die", "cartwheel": "flip"},
    **dict.fromkeys(("limp", "stagger", "march", "sneak"), "walk"),
}
"""Actions that are heard as others: manners of a gait, and what hardly anybody tells apart."""
HEARD = frozenset(
    "walk run jump idle attack punch kick swordplay throw pick_up sit die dance wave swim fly eat turn crouch "
    "hit_reaction stand_up flip climb".split()
)
"""Actions that the referee names."""
KEPT_OUT = 8
"""One rig or actor of so many is kept out to see how well it does."""


@dataclass(frozen=True)
class TrainConfig:
    """How the referee is trained."""

    corpus: Path
    """A folder with `sources.tsv`, `clips.tsv`, `characters` and `motion`."""
    out: Path = Path("src/jigdoll/judge/weights/referee.safetensors")
    steps: int = 3000
    batch: int = 32
    rate: float = 2e-3
    width: int = 96
    layers: int = 4
    average: float = 0.998
    """How slowly the weights that are kept follow those that learn."""
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Clip:
    """One clip as the referee sees it, and in the mirror."""

    values: tuple[Float[ndarray, "frames channels"], Float[ndarray, "frames channels"]]
    action: str
    rig: str
    kind: str
    source: str
    split: str


def read_clips(corpus: Path) -> list[Clip]:
    """All clips of the corpus that are long enough to tell."""
    clips = []
    for take in takes(corpus, ("train", "near", "far")):
        if len(take.motion) < LEAST_FRAMES or not np.isfinite(take.motion.place).all():
            continue
        action = SAME.get(take.action, take.action)
        if action in HEARD:
            both = referee_values(take.motion), referee_values(mirror(take.motion))
            split = "held out" if take.split == "train" and _kept_out(take.rig) else take.split
            clips.append(Clip(both, action, take.rig, take.anatomy.kind, take.source, split))
    return clips


def _kept_out(rig: str) -> bool:
    return zlib.crc32(rig.encode()) % KEPT_OUT == 0


def shares(clips: list[Clip]) -> Float[ndarray, " clips"]:
    """How often each clip is drawn."""
    by_action = Counter(clip.action for clip in clips)
    by_rig = Counter((clip.action, clip.rig) for clip in clips)
    rigs = Counter(action for action, _ in by_rig)
    weight = np.array([by_action[c.action] ** 0.5 / rigs[c.action] / by_rig[c.action, c.rig] for c in clips])
    return weight / weight.sum()


def drawn(clip: Clip, generator: np.random.Generator) -> Float[ndarray, "frames channels"]:
    """A piece of a clip, faster or slower, perhaps in the mirror, with a little noise."""
    values = clip.values[int(generator.integers(2))]
    tempo = float(generator.uniform(0.75, 1.3))
    at = np.arange(0, len(values) - 1 + 1e-6, tempo)
    left = np.minimum(at.astype(int), len(values) - 2)
    values = values[left] * (1 - (at - left))[:, None] + values[left + 1] * (at - left)[:, None]
    first = int(generator.integers(max(len(values) - WINDOW, 0) + 1))
    values = values[first : first + WINDOW]
    noise = generator.normal(0, 0.03, (1, CHANNELS)) + generator.normal(0, 0.01, values.shape)
    return (values + noise).astype(np.float32)


def batch_of(pieces: list[Float[ndarray, "frames channels"]]) -> tuple[Float[Tensor, "clips frames channels"], Tensor]:
    """Pieces side by side, and which frames are there."""
    length = max(map(len, pieces))
    values = torch.zeros(len(pieces), length, CHANNELS)
    there = torch.zeros(len(pieces), length, dtype=torch.bool)
    for i, piece in enumerate(pieces):
        values[i, : len(piece)] = torch.from_numpy(piece)
        there[i, : len(piece)] = True
    return values, there


def named_rightly(referee: Referee, clips: list[Clip]) -> Bool[ndarray, " clips"]:
    """Whether the likeliest action of each clip is its own."""
    return np.array([next(iter(name_values(referee, clip.values[0]))) == clip.action for clip in clips])


def main(config: TrainConfig) -> None:
    warnings.simplefilter("ignore")
    torch.manual_seed(config.seed)
    generator = np.random.default_rng(config.seed)
    clips = read_clips(config.corpus)
    train = [clip for clip in clips if clip.split == "train"]
    actions = tuple(sorted({clip.action for clip in train}))
    held = [clip for clip in clips if clip.split != "train"]
    share = shares(train)
    referee = Referee(RefereeConfig(actions, config.width, config.layers))
    average = copy.deepcopy(referee).eval()
    optimizer = torch.optim.AdamW(referee.parameters(), config.rate, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, config.rate, config.steps, pct_start=0.05)
    began, log = time.monotonic(), []
    for step in range(config.steps):
        picked: Int[ndarray, " clips"] = generator.choice(len(train), config.batch, p=share)
        values, there = batch_of([drawn(train[i], generator) for i in picked])
        wanted = torch.tensor([actions.index(train[i].action) for i in picked])
        loss = nn.functional.cross_entropy(referee.train()(values, there), wanted, label_smoothing=0.05)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        with torch.no_grad():
            for slow, fast in zip(average.parameters(), referee.parameters(), strict=True):
                slow.lerp_(fast, 1 - config.average)
        if (step + 1) % 500 == 0:
            right = named_rightly(average, held)
            log.append({"step": step + 1, "loss": round(float(loss), 3), "held_out": round(float(right.mean()), 3)})
            sys.stdout.write(f"{log[-1]} {time.monotonic() - began:.0f} s\n")
            sys.stdout.flush()
    config.out.parent.mkdir(parents=True, exist_ok=True)
    about = {"config": json.dumps(asdict(referee.config)), "log": json.dumps(log), "clips": str(len(train))}
    about["seed"] = str(config.seed)
    save_file({key: value.half().contiguous() for key, value in average.state_dict().items()}, config.out, about)
    _report(average, held)


def _report(referee: Referee, held: list[Clip]) -> None:
    right = named_rightly(referee, held)
    for split in ("held out", "near", "far"):
        mine = np.array([clip.split == split for clip in held])
        sys.stdout.write(f"{split}: {right[mine].mean():.2f} of {int(mine.sum())}\n")
    for action in sorted({clip.action for clip in held}):
        mine = np.array([clip.action == action for clip in held])
        sys.stdout.write(f"{action}: {int(right[mine].sum())} of {int(mine.sum())}\n")


if __name__ == "__main__":
    main(tyro.cli(TrainConfig))
