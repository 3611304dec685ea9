"""Train the pose space on one core.

    python -m jigdoll.posespace.dataset ../shared/corpus CACHE
    python -m jigdoll.posespace.train CACHE RUN --hours 12

RUN holds `state.safetensors` (weights, their average, the optimiser; written every few minutes, whole or not at all),
`log.jsonl` and sheets of samples. The same command goes on where it was stopped; more `--hours` prolong the run: the
rate stays constant and falls over the last quarter of the hours, which are hours of this process' own computing.
`python -m jigdoll.posespace.weights RUN OUT.safetensors` writes what ships.
"""

import argparse
import copy
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from jigdoll.language.encoder import open_encoder
from jigdoll.posespace.dataset import Dataset, open_dataset, spread_of
from jigdoll.posespace.layout import RATE
from jigdoll.posespace.losses import LossWeights, denoising_loss
from jigdoll.posespace.model import NetConfig, PoseNet, clean_estimate, signal_and_noise
from jigdoll.posespace.sheet import draw_sticks
from jigdoll.posespace.space import PoseSpace
from jigdoll.posespace.weights import open_space, stored
from jigdoll.posespace.windows import Batch, Units, Windows, keyed

SIZES = ((48, 14, 0.5), (24, 28, 0.2), (12, 48, 0.1), (1, 200, 0.2))
"""Frames of a window, windows of a batch, and how often such a batch is drawn."""
KEYED = 2.0
"""How much more a window between keys counts: it can be told finely, and its errors are small beside the others'."""
NOISY_KEYS = 0.3
"""Windows between keys are noised by this share of the range, at its noisy end: elsewhere the noisy clip tells more."""
UNSEEN = 0.5
"""How often a window of which something is told is not shown at all, not even noised: the network then has to say what
is likeliest from what is told alone."""
CHECK_LEVELS = (0.05, 0.3, 0.6, 0.9, 0.98)
SAVE_SECONDS, CHECK_SECONDS, SHEET_SECONDS = 120.0, 300.0, 1800.0


@dataclass(frozen=True)
class TrainOptions:
    """How to train."""

    hours: float = 12.0
    """In all, of this process' own computing."""
    rate: float = 1.2e-3
    warm: int = 300
    """Updates until the full rate is reached."""
    fall: float = 0.25
    """The share of the hours over which the rate falls to nothing."""
    average: float = 0.9995
    """How slowly the averaged weights follow."""
    given: float = 0.4
    """Share of windows with known values, from the second half hour on."""
    seed: int = 0


@dataclass(eq=False)
class Run:
    """All that changes while training."""

    net: PoseNet
    average: PoseNet
    optimiser: torch.optim.AdamW
    updates: int = 0
    seconds: float = 0.0


def start_run(config: NetConfig, options: TrainOptions) -> Run:
    """Fresh weights."""
    torch.manual_seed(options.seed)
    net = PoseNet(config)
    optimiser = torch.optim.AdamW(net.parameters(), lr=options.rate, betas=(0.9, 0.99), weight_decay=0.01)
    return Run(net, copy.deepcopy(net).requires_grad_(False), optimiser)


def rate_at(seconds: float, updates: int, options: TrainOptions) -> float:
    """The learning rate: warmed up, constant, falling at the end."""
    done = seconds / (3600 * options.hours)
    fall = min(1.0, max(1.0 - done, 0.0) / max(options.fall, 1e-6))
    return options.rate * min(1.0, (updates + 1) / options.warm) * (0.02 + 0.98 * fall)


def noised(batch: Batch, level: Tensor, generator: torch.Generator) -> Tensor:
    """The clean windows at these noise levels."""
    alpha, sigma = signal_and_noise(level[:, None, None, None])
    noise = torch.randn(batch.clean.shape, generator=generator)
    if batch.clean.shape[2] == 2:  # a pose is one frame, twice
        noise = noise[:, :, :1].expand_as(batch.clean)
    return alpha * batch.clean + sigma * noise


def estimate_of(net: PoseNet, batch: Batch, noisy: Tensor, level: Tensor) -> Tensor:
    """The network's clean estimate, in half precision inside."""
    with torch.autocast("cpu", torch.bfloat16):
        answer = net(noisy, level, batch.sticks, batch.text, batch.known)
    return clean_estimate(noisy, answer.float(), level)


def update(
    run: Run,
    batch: Batch,
    units: Units,
    options: TrainOptions,
    generator: torch.Generator,
    weights: LossWeights = LossWeights(),
) -> dict[str, float]:
    """One step of learning."""
    told = keyed(batch.known)
    level = 1 - torch.rand(len(batch.clean), generator=generator) * (1 - told * (1 - NOISY_KEYS))
    level = level.clamp(0.01, 0.995)
    luck = torch.rand(len(level), generator=generator) < UNSEEN
    unseen = luck & (batch.known.marks[..., [0, 3]].sum((1, 2, 3)) > 0)
    noisy = noised(batch, level, generator) * ~unseen[:, None, None, None]
    level = torch.where(unseen, 1.0, level)
    estimate = estimate_of(run.net, batch, noisy, level)
    trust = torch.maximum(signal_and_noise(level)[0].square(), torch.maximum(told, unseen.float()))
    loss, errors = denoising_loss(batch, estimate, units, weights, trust, 1 + KEYED * told)
    rate = rate_at(run.seconds, run.updates, options)
    for group in run.optimiser.param_groups:
        group["lr"] = rate
    run.optimiser.zero_grad(set_to_none=True)
    loss.backward()
    size = float(nn.utils.clip_grad_norm_(run.net.parameters(), 1.0))
    if np.isfinite(size):
        run.optimiser.step()
    run.updates += 1
    follow = min(options.average, 1 - 1 / (1 + run.updates / 4))
    with torch.no_grad():
        for mean, value in zip(run.average.parameters(), run.net.parameters(), strict=True):
            mean.lerp_(value, 1 - follow)
    return {"loss": float(loss.detach()), "error": float(errors.mean()), "gradient": size, "rate": rate}


def check(run: Run, windows: Windows, units: Units, *, count: int = 24) -> dict[str, dict[str, float]]:
    """The averaged weights' error of the numbers by noise level, per kind of body, on fixed windows."""
    table: dict[str, dict[str, float]] = {}
    for kind in windows.kinds:
        windows.dice = np.random.default_rng(1)
        generator = torch.Generator().manual_seed(1)
        batch = windows.draw(48, count, kind=kind, given=0.0, vary=False)
        row = {}
        for level in CHECK_LEVELS:
            at = torch.full((count,), level)
            with torch.no_grad():
                estimate = estimate_of(run.average, batch, noised(batch, at, generator), at)
            row[str(level)] = round(float(denoising_loss(batch, estimate, units, LossWeights())[1].mean()), 4)
        table[kind] = row
    return table


def text_vectors(data: Dataset) -> dict[str, np.ndarray]:
    """The vector of every phrase of the data set."""
    phrases = sorted({text for clip in data.clips for text in clip.texts})
    return dict(zip(phrases, open_encoder()(phrases).numpy().astype(np.float32), strict=True))


def save_run(path: Path, run: Run, units: Units, facts: dict) -> None:
    """Write the whole state or nothing."""
    from safetensors.torch import save_file

    tensors = {f"net.{name}": value for name, value in run.net.state_dict().items()}
    tensors |= {f"average.{name}": value for name, value in run.average.state_dict().items()}
    names = [name for name, _ in run.net.named_parameters()]
    for number, state in run.optimiser.state_dict()["state"].items():
        for key in ("exp_avg", "exp_avg_sq", "step"):
            tensors[f"{key}.{names[number]}"] = state[key].detach().clone()
    tensors |= {"units.mean": units.mean, "units.spread": units.spread}
    facts = facts | {"updates": run.updates, "seconds": run.seconds}
    temporary = path.with_suffix(".part")
    save_file({k: v.contiguous() for k, v in tensors.items()}, temporary, metadata={"facts": json.dumps(facts)})
    temporary.replace(path)


def read_run(path: Path, run: Run) -> tuple[Units, dict]:
    """Take up the state that was written: its units and what it says of itself."""
    from safetensors import safe_open

    with safe_open(path, "pt") as file:
        facts = json.loads(file.metadata()["facts"])
        tensors = {key: file.get_tensor(key) for key in file.keys()}
    run.net.load_state_dict({k[4:]: v for k, v in tensors.items() if k.startswith("net.")})
    run.average.load_state_dict({k[8:]: v for k, v in tensors.items() if k.startswith("average.")})
    state = {}
    for number, (name, _) in enumerate(run.net.named_parameters()):
        if f"exp_avg.{name}" in tensors:
            state[number] = {key: tensors[f"{key}.{name}"] for key in ("exp_avg", "exp_avg_sq", "step")}
    full = run.optimiser.state_dict()
    run.optimiser.load_state_dict({"state": state, "param_groups": full["param_groups"]})
    run.updates, run.seconds = facts["updates"], facts["seconds"]
    return Units(tensors["units.mean"], tensors["units.spread"]), facts


def take_up(weights: Path, run: Run) -> tuple[Units, dict]:
    """Begin with weights that were exported: their units and what they say of themselves."""
    space = open_space(weights)
    for net in (run.net, run.average):
        net.load_state_dict(space.net.state_dict())
    before = {name: space.facts.get(name) for name in ("updates", "seconds", "options", "before")}
    return space.units, {"sources": space.facts["sources"], "before": before}


def train(cache: Path, out: Path, config: NetConfig, options: TrainOptions, *, start: Path | None = None) -> Run:
    """Train until the hours are over; take up what is there, or begin with the weights of `start`."""
    out.mkdir(parents=True, exist_ok=True)
    every = open_dataset(cache)
    data = every.of(("train",))
    run, state = start_run(config, options), out / "state.safetensors"
    if state.exists():
        units, known = read_run(state, run)
    elif start is not None:
        units, known = take_up(start, run)
    else:
        mean, spread = spread_of(data)
        units, known = Units(torch.from_numpy(mean).float(), torch.from_numpy(spread).float()), {}
    sources, before = sources_of(data) | set(known.get("sources", ())), known.get("before")
    vectors = text_vectors(every)
    windows = Windows(data, units, vectors, seed=options.seed + run.updates)
    unseen = {name: Windows(every.of((name,)), units, vectors) for name in ("near", "far") if every.of((name,)).clips}
    generator = torch.Generator().manual_seed(options.seed + run.updates)
    facts = {"net": asdict(config), "options": asdict(options), "sources": sorted(sources), "before": before}
    saved = checked = drawn = run.seconds
    clock, sums = time.process_time(), []
    while run.seconds < 3600 * options.hours:
        frames, count, _ = SIZES[windows.dice.choice(len(SIZES), p=[size[2] for size in SIZES])]
        given = options.given if before or run.seconds > 1200 else 0.15
        sums.append(update(run, windows.draw(frames, count, given=given), units, options, generator))
        now = time.process_time()
        run.seconds, clock = run.seconds + now - clock, now
        if run.updates % 50 == 0:
            note(out, run, {key: round(float(np.mean([row[key] for row in sums])), 5) for key in sums[0]})
            sums = []
        if run.seconds - checked > CHECK_SECONDS:
            checked = run.seconds
            for name, those in unseen.items():
                note(out, run, {name: check(run, those, units)})
        if run.seconds - drawn > SHEET_SECONDS:
            drawn = run.seconds
            draw_samples(out / f"samples_{run.updates}.png", run, units, every)
        if run.seconds - saved > SAVE_SECONDS:
            saved = run.seconds
            save_run(state, run, units, facts)
    save_run(state, run, units, facts)
    note(out, run, {"ended": True})
    return run


def draw_samples(target: Path, run: Run, units: Units, data: Dataset, *, most: int = 12) -> None:
    """A sheet of clips that the averaged weights make on rigs they never saw, each above the true one."""
    space = PoseSpace(run.average, units, open_encoder(), {})
    figures, clips, titles, seen = [], [], [], set()
    for clip in data.of(("near", "far")).clips:
        name = clip.rig if clip.action in ("walk", "swim", "fly") else clip.action
        if name in seen or len(seen) == most:
            continue
        seen.add(name)
        figure = data.figures[clip.figure]
        dice = torch.Generator().manual_seed(0)
        made = space.draw([figure], 48, space.words(clip.texts[0]), generator=dice)[0].numpy()
        figures += [figure, figure]
        clips += [made, clip.values[:, : round(48 / RATE * clip.fps)]]
        titles += [clip.texts[0], f"true: {clip.source[:40]}"]
    if clips:
        draw_sticks(target, figures, clips, titles)


def note(out: Path, run: Run, facts: dict) -> None:
    """A line in the run's log."""
    line = {"update": run.updates, "hours": round(run.seconds / 3600, 4), **facts}
    with (out / "log.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


def sources_of(data: Dataset) -> set[str]:
    """Who made what was learned from, and under which licence."""
    return {f"{clip.source.split(':')[0].split(' ')[0]} ({clip.licence})" for clip in data.clips}


def main() -> None:
    """Train from the command line."""
    parser = argparse.ArgumentParser(description="Train the pose space.")
    parser.add_argument("cache", type=Path)
    parser.add_argument("out", type=Path)
    for name, kind in (("hours", float), ("rate", float), ("seed", int), ("fall", float)):
        parser.add_argument(f"--{name}", type=kind, default=getattr(TrainOptions, name))
    for name in ("width", "layers", "heads", "hidden"):
        parser.add_argument(f"--{name}", type=int, default=getattr(NetConfig, name))
    parser.add_argument("--start", type=Path, help="exported weights to begin with")
    words = parser.parse_args()
    torch.set_num_threads(1)
    config = NetConfig(words.width, words.layers, words.heads, words.hidden)
    if words.start:
        config = NetConfig(**stored(words.start)[0]["net"])
    options = TrainOptions(words.hours, words.rate, fall=words.fall, seed=words.seed)
    train(words.cache, words.out, config, options, start=words.start)


if __name__ == "__main__":
    main()
