"""Train the network for in-betweens on one core.

    python -m jigdoll.posespace.train_tween CACHE RUN --hours 0.8

CACHE is the data set of the pose space (`python -m jigdoll.posespace.dataset`). RUN holds `tween.safetensors`
(averaged weights, half precision, written every few minutes and at the end) and `log.jsonl`. The rate falls like a
cosine over the hours, which are hours of this process' own computing.
"""

import argparse
import copy
import json
import math
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from jigdoll.posespace.dataset import Clip, open_dataset, spread_of
from jigdoll.posespace.figure import CHANNELS, Sticks, pelvis_heights, stack_figures, stick_places
from jigdoll.posespace.layout import CONTACT, EXTRA
from jigdoll.posespace.train import sources_of, text_vectors
from jigdoll.posespace.tween import (
    KEYS,
    LONGEST_SPAN,
    Spans,
    TweenConfig,
    TweenNet,
    beside,
    open_tween,
    root_way,
    save_tween,
    seen_from,
    straight_between,
)
from jigdoll.posespace.windows import Units, Windows, channel_counts, less_told, mirrored, other_rest, reproportioned

TIMES = 7
"""Places within a span at which the way is compared."""
SHORTEST_SPAN = 0.13
ALONE = 0.12
"""How often the key before, or after, is not there though the clip has one."""
QUIET = 0.5
"""How often nothing is said."""
SOFT = 0.01
"""Errors smaller than this hardly count [leg lengths]."""
NUMBERS = 0.05
"""How much the numbers themselves count beside places."""


@dataclass(frozen=True, eq=False)
class SpanBatch:
    """Spans of clips with what truly lies between their keys."""

    spans: Spans
    sticks: Sticks
    at: Float[Tensor, "spans times"]
    truth: Float[Tensor, "spans parts times channels"]


class SpanSampler:
    """Draws spans of clips, balanced as the windows of the pose space are."""

    def __init__(self, windows: Windows) -> None:
        self.windows, self.dice = windows, windows.dice

    def draw(self, count: int, *, kind: str | None = None, vary: bool = True, gap: float | None = None) -> SpanBatch:
        """Spans of one kind of body; with `gap` all of about so many seconds, with their neighbours alike."""
        clips = self.windows.choose(count, kind)
        rows = [self._span(clip, vary=vary, gap=gap) for clip in clips]
        most = max(len(values) for values, _, _ in rows)
        raw = np.zeros((count, most, KEYS + TIMES, CHANNELS), np.float32)
        for i, (values, _, _) in enumerate(rows):
            raw[i, : len(values)] = values
        sticks = stack_figures([self.windows.data.figures[clip.figure] for clip in clips])
        raw = torch.from_numpy(raw)
        if vary:
            raw = calmed(raw, self.dice)
            raw, sticks = mirrored(raw, sticks, torch.from_numpy(self.dice.random(count) < 0.5))
            raw, sticks = reproportioned(raw, sticks, self.dice)
            raw, sticks = other_rest(raw, sticks, self.dice)
            sticks = less_told(sticks, self.dice)
            limb = (sticks.kinds >= 3)[:, :, None, None]
            reach = stick_places(sticks, raw).reach
            raw[..., EXTRA.start : CONTACT] = torch.where(limb, reach, raw[..., EXTRA.start : CONTACT])
        text = np.stack([self.windows.text_of(clip, vary=vary) for clip in clips])
        text[self.dice.random(count) < (QUIET if vary else 1.0)] = 0.0
        seconds = torch.tensor(np.stack([seconds for _, seconds, _ in rows]), dtype=torch.float32)
        at = torch.tensor(np.stack([at for _, _, at in rows]), dtype=torch.float32)
        return SpanBatch(Spans(raw[:, :, :KEYS], seconds, torch.from_numpy(text)), sticks, at, raw[:, :, KEYS:])

    def _span(self, clip: Clip, *, vary: bool, gap: float | None) -> tuple[ndarray, ndarray, ndarray]:
        """Values at the keys and in between, seconds of the three spans, shares of the span."""
        dice = self.dice
        speed = float(dice.uniform(0.75, 1.3)) if vary else 1.0
        rate, last = clip.fps * speed, clip.frames - 1
        if gap is None:
            long = SHORTEST_SPAN + (LONGEST_SPAN - SHORTEST_SPAN) * float(dice.random()) ** 1.6
            others = long * np.exp(dice.normal(0, 0.35, 2)) * (dice.random(2) > ALONE)
        else:
            long, others = gap, np.array([gap, gap])
        if not clip.loop:
            room = last / rate
            long = min(long, room)
            start = float(dice.uniform(0, room - long))
            others = np.where(others <= (start, room - long - start), others, 0.0)
        else:
            start = float(dice.uniform(0, last / rate))
        edges = np.sort(dice.random(TIMES)) if vary else np.linspace(0, 1, TIMES + 2)[1:-1]
        keys = [start, start + long, start - others[0], start + long + others[1]]
        frames = np.array([*keys, *(start + long * edges)]) * rate
        return values_at(clip, frames), np.array([long, *others]), edges


def calmed(raw: Tensor, dice: np.random.Generator) -> Tensor:
    """The same motion, smaller, in half of the spans: around its mean pose, and on a shorter way."""
    size = np.where(dice.random(len(raw)) < 0.5, dice.uniform(0.2, 1.2, len(raw)), 1.0)
    share = torch.from_numpy(size.astype(np.float32))[:, None, None, None]
    middle = raw.mean(2, keepdim=True)
    out = middle + share * (raw - middle)
    out[:, 0, :, [EXTRA.start, EXTRA.start + 1, CHANNELS - 1]] = (
        share[:, 0] * raw[:, 0, :, [EXTRA.start, EXTRA.start + 1, CHANNELS - 1]]
    )
    return out


def values_at(clip: Clip, frames: Float[ndarray, " times"]) -> Float[ndarray, "parts times channels"]:
    """A clip at these frames, the first of which is where the root's way is seen from; loops go on, backwards too."""
    low = math.floor(frames.min())
    count = math.ceil(frames.max()) - low + 1
    rows = low + np.arange(count + 1)
    last = clip.frames - 1
    rows = rows % last if clip.loop else rows.clip(0, last)
    window = clip.values[:, rows].astype(np.float32)
    at = frames - low
    left = at.astype(int)
    share = (at - left).astype(np.float32)[None, :, None]
    values = window[:, left] * (1 - share) + window[:, left + 1] * share
    way = root_way(window[0, :, EXTRA], clip.fps)
    way = way[left] * (1 - share[0]) + way[left + 1] * share[0]
    values[0, :, EXTRA] = seen_from(way, way[0])
    return values


def world_ends(sticks: Sticks, raw: Tensor) -> Float[Tensor, "spans parts times two 3"]:
    """Where ends and middles of all parts are, seen from where the root was at the first key [leg lengths]."""
    places = stick_places(sticks, raw)
    root = raw[:, 0, :, EXTRA]
    c, s = root[..., 3].cos()[:, None, :, None], root[..., 3].sin()[:, None, :, None]
    x, y, z = torch.stack([places.ends, places.mids], -2).unbind(-1)
    height = pelvis_heights(sticks, root[..., 2])
    base = torch.stack([root[..., 0], height, root[..., 1]], -1)
    return torch.stack([c * x + s * z, y, c * z - s * x], -1) + base[:, None, :, None]


def errors(batch: SpanBatch, raw: Tensor) -> Float[Tensor, " spans"]:
    """How far off ends and middles are in the mean [leg lengths]."""
    gap = (world_ends(batch.sticks, raw) - world_ends(batch.sticks, batch.truth)).square().sum(-1)
    gap = (gap + SOFT**2).sqrt() - SOFT
    there = (batch.sticks.kinds >= 0).float()[:, :, None, None]
    return (gap * there).sum((1, 2, 3)) / (there.sum((1, 2, 3)) * gap.shape[2] * 2).clamp_min(1)


def tween_loss(net: TweenNet, batch: SpanBatch, units: Units) -> tuple[Tensor, float]:
    """The loss, and how far off places are as a share of the straight way's error."""
    straight = straight_between(batch.spans, batch.at)
    made = straight + beside(net(batch.sticks, batch.spans, units), batch.at, batch.sticks, units)
    ours, plain = errors(batch, made), errors(batch, straight)
    weight = 1 / (plain.mean() + plain).clamp_min(1e-3)
    counts = channel_counts(batch.sticks)
    off = (made - batch.truth) / units.spread[batch.sticks.kinds.clamp_min(0)][:, :, None]
    off[:, 0, :, EXTRA] = 0.0
    off[..., CONTACT] = 0.0
    numbers = ((1 + off.square()).sqrt() - 1).mean(2) * counts
    numbers = numbers.sum((1, 2)) / counts.sum((1, 2))
    loss = (weight * ours).mean() + NUMBERS * numbers.mean()
    return loss, float((ours.sum() / plain.sum().clamp_min(1e-9)).detach())


def check(net: TweenNet, sampler: SpanSampler, units: Units, *, count: int = 96) -> dict[str, list[float]]:
    """Per kind of body the error as a share of the straight way's, at 0.2, 0.4 and 0.8 s."""
    table = {}
    for kind in sampler.windows.kinds:
        sampler.dice = sampler.windows.dice = np.random.default_rng(3)
        shares = []
        for gap in (0.2, 0.4, 0.8):
            batch = sampler.draw(count, kind=kind, vary=False, gap=gap)
            with torch.no_grad():
                shares.append(round(tween_loss(net, batch, units)[1], 3))
        table[kind] = shares
    return table


@dataclass(frozen=True)
class TweenOptions:
    """How to train."""

    hours: float = 0.8
    rate: float = 1.5e-3
    batch: int = 192
    average: float = 0.999
    seed: int = 0


def train(cache: Path, out: Path, config: TweenConfig, options: TweenOptions, *, start: Path | None = None) -> TweenNet:
    """Train until the hours are over, from fresh weights or those of `start`; what is written is their average."""
    out.mkdir(parents=True, exist_ok=True)
    every = open_dataset(cache)
    data, vectors = every.of(("train",)), text_vectors(every)
    units = Units(*(torch.from_numpy(part).float() for part in spread_of(data)))
    torch.manual_seed(options.seed)
    known = None if start is None else open_tween(start)
    net = TweenNet(config if known is None else known.net.config)
    if known is not None:
        units = known.units
        net.load_state_dict(known.net.state_dict())
    average = copy.deepcopy(net).requires_grad_(False)
    optimiser = torch.optim.AdamW(net.parameters(), lr=options.rate, betas=(0.9, 0.99), weight_decay=0.02)
    sampler = SpanSampler(Windows(data, units, vectors, seed=options.seed))
    unseen = {
        name: SpanSampler(Windows(every.of((name,)), units, vectors))
        for name in ("near", "far")
        if every.of((name,)).clips
    }
    sources = sorted(sources_of(data))
    clips = dict(Counter(clip.kind for clip in data.clips))
    clock, seconds, checked, updates, sums = time.process_time(), 0.0, 0.0, 0, []
    while seconds < 3600 * options.hours:
        done = seconds / (3600 * options.hours)
        rate = options.rate * min(1.0, (updates + 1) / 200) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * done)))
        for group in optimiser.param_groups:
            group["lr"] = rate
        loss, share = tween_loss(net, sampler.draw(options.batch), units)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimiser.step()
        updates += 1
        follow = min(options.average, updates / (updates + 20))
        with torch.no_grad():
            for mine, new in zip(average.parameters(), net.parameters(), strict=True):
                mine.lerp_(new, 1 - follow)
        sums.append((float(loss.detach()), share))
        now = time.process_time()
        seconds, clock = seconds + now - clock, now
        if updates % 100 == 0:
            means = np.mean(sums, 0).round(4).tolist()
            note(out, {"update": updates, "hours": round(seconds / 3600, 4), "loss": means[0], "share": means[1]})
            sums = []
        if seconds - checked > 240 or seconds >= 3600 * options.hours:
            checked = seconds
            shares = {name: check(average, each, units) for name, each in unseen.items()}
            note(out, {"update": updates, "hours": round(seconds / 3600, 4)} | shares)
            facts = {
                "updates": updates,
                "seconds": seconds,
                "options": vars(options),
                "sources": sources,
                "clips": clips,
            }
            facts["before"] = (
                None if known is None else {k: known.facts.get(k) for k in ("updates", "seconds", "before")}
            )
            facts["log"] = "\n".join((out / "log.jsonl").read_text().splitlines()[-40:])
            save_tween(out / "tween.safetensors", average, units, facts)
            clock = time.process_time()
    return average


def note(out: Path, row: dict) -> None:
    """One line into the log."""
    with (out / "log.jsonl").open("a") as file:
        file.write(json.dumps(row) + "\n")


def main() -> None:
    """Train from the command line."""
    parser = argparse.ArgumentParser(description="Train the network for in-betweens.")
    parser.add_argument("cache", type=Path)
    parser.add_argument("out", type=Path)
    for name, kind in (("hours", float), ("rate", float), ("batch", int), ("seed", int)):
        parser.add_argument(f"--{name}", type=kind, default=getattr(TweenOptions, name))
    for name in ("width", "layers", "hidden"):
        parser.add_argument(f"--{name}", type=int, default=getattr(TweenConfig, name))
    parser.add_argument("--start", type=Path, help="weights to begin with")
    words = parser.parse_args()
    torch.set_num_threads(1)
    config = TweenConfig(words.width, words.layers, hidden=words.hidden)
    options = TweenOptions(words.hours, words.rate, words.batch, seed=words.seed)
    train(words.cache, words.out, config, options, start=words.start)


if __name__ == "__main__":
    main()
