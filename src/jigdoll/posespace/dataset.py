"""What the pose space learns from: clips of a corpus and of random zoo creatures as arrays, with words and sources.

    python -m jigdoll.posespace.dataset CORPUS CACHE [--creatures 400]

writes three shards (characters, mocap, zoo) that are kept: a shard that is there is not made again. `CACHE/clips_*.png`
show a random hundred; `python -m jigdoll.posespace.contents CACHE` counts what is in it.
"""

import json
import sys
import warnings
import zlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Float16
from numpy import ndarray

from jigdoll.corpus import Take, character_takes, mocap_takes
from jigdoll.errors import FileFormatError, JigdollError
from jigdoll.formats.files import atomic_write
from jigdoll.language.actions import ACTIONS
from jigdoll.language.inflect import inflect
from jigdoll.language.nouns import HELD_OUT_SPECIES
from jigdoll.posespace.figure import CHANNELS, KINDS, STATIONS, Figure, figure_of
from jigdoll.posespace.ground_speed import BACKWARDS, GAITS, TOO_FAST, with_ground_speed
from jigdoll.posespace.layout import EXTRA, pack
from jigdoll.posespace.sheet import draw_sticks
from jigdoll.rig.anatomy import anatomy_of
from jigdoll.rig.retarget.limb_motion import encode
from jigdoll.types import Limb, Mesh, RiggedAsset, Skeleton, Weights
from jigdoll.zoo.gaits import actions, reference_motion
from jigdoll.zoo.skeleton import build_skeleton
from jigdoll.zoo.species import TABLE
from jigdoll.zoo.variation import apply_build, sample_build

MOST_FPS = 32.0
"""Clips with more frames per second are thinned out."""
LOOP = 0.12
"""A clip whose first and last frame differ by less than this share of how far it ever leaves its mean is a loop."""
FASTEST = 14.0
"""A root that ever moves faster than this is broken [leg lengths / s]."""
LEFT_OUT = ("EatingBacteria", "ExplodingBacteria", "Seamouse", "Seaurchin", "Starfish", "Slime", "Skull", "Crab.glb")
"""Files whose bodies are read as something else than they are, found by looking at the sheets."""
CREATURE_SECONDS = 4.0
LEAST_SPREAD = 0.12
"""Channels that hardly vary count as if they varied by this much."""
_GENERIC = {"quadruped": "animal", "person": "person", "insect": "bug", "bird": "bird", "fish": "fish"}


@dataclass(frozen=True, eq=False)
class Clip:
    """A clip of the data set."""

    values: Float16[ndarray, "parts frames channels"]
    figure: int
    """Index into the figures of the data set."""
    fps: float
    loop: bool
    texts: tuple[str, ...]
    action: str
    kind: str
    source: str
    licence: str
    split: str
    rig: str

    @property
    def frames(self) -> int:
        """Of the array."""
        return self.values.shape[1]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Clips and the bodies that they are of."""

    clips: tuple[Clip, ...]
    figures: tuple[Figure, ...]

    def of(self, splits: Collection[str]) -> "Dataset":
        """The clips of these splits."""
        return Dataset(tuple(clip for clip in self.clips if clip.split in splits), self.figures)


def clip_of(take: Take, figure: Figure, number: int) -> Clip | None:
    """A take as a clip; none where it is broken."""
    if any(name in take.source for name in LEFT_OUT):
        return None
    motion = take.motion
    values = pack(motion, figure)
    step = max(int(motion.fps // MOST_FPS) + (motion.fps % MOST_FPS > 0 if motion.fps > MOST_FPS else 0), 1)
    values = values[:, ::step]
    if take.action in GAITS:
        values = with_ground_speed(values, figure, motion.fps / step)
        ahead = float(values[0, :, EXTRA.start + 1].mean())
        if (ahead < BACKWARDS and "back" not in take.text.lower()) or (take.action == "walk" and ahead > TOO_FAST):
            return None
    root = values[0, :, EXTRA]
    if not np.isfinite(values).all() or np.abs(root[:, :2]).max() > FASTEST or values.shape[1] < 3:
        return None
    turns = values[..., : 6 * STATIONS]
    away = np.abs(turns - turns.mean(1, keepdims=True)).mean((0, 2)).max()
    gap = np.abs(turns[:, 0] - turns[:, -1]).mean()
    loop = bool(gap < LOOP * away) and take.noun != "person" if "cmu" in take.source else bool(gap < LOOP * away)
    return Clip(
        values.astype(np.float16), number, motion.fps / step, loop, phrases_of(take), take.action,
        take.anatomy.kind, take.source, take.licence, take.split, take.rig,
    )  # fmt: skip


def phrases_of(take: Take) -> tuple[str, ...]:
    """What may be said of a take: its own text, and plain sentences with its action."""
    verbs = ACTIONS[take.action].verbs[:2] or (take.action.replace("_", " "),)
    generic = _GENERIC.get(take.anatomy.kind, "creature")
    plain = [f"a {who} {inflect(verb)[1]}" for verb in verbs for who in dict.fromkeys((take.noun, generic))]
    text = take.text if take.noun in take.text else f"a {take.noun}: {take.text}"
    return tuple(dict.fromkeys((plain[0], text, *plain[1:])))


def creature_takes(count: int, *, seed: int = 0, held_out: bool = False) -> Iterator[Take]:
    """Reference gaits on random creatures of the zoo; with `held_out` on the species that are kept out."""
    plans = [plan for plan in TABLE if (plan.name in HELD_OUT_SPECIES) == held_out]
    families = sorted({plan.family for plan in plans})
    for number in range(count):
        generator = torch.Generator().manual_seed(seed * 100003 + number)
        mine = [plan for plan in plans if plan.family == families[number % len(families)]]
        plan = mine[int(torch.randint(len(mine), (1,), generator=generator))]
        build = sample_build(generator, spread=1.0 if held_out else 2.5)
        try:
            skeleton = build_skeleton(apply_build(plan, build))
            asset = bare_asset(plan.name, skeleton)
            able = actions(asset)
            anatomy = anatomy_of(asset)
            chosen = [able[i] for i in torch.randperm(len(able), generator=generator)[:5].tolist()]
            for action in dict.fromkeys(("walk", *chosen)):
                motion = reference_motion(asset, action, seconds=CREATURE_SECONDS, fps=30.0, seed=number)
                name = "turn" if action.startswith("turn") else action
                if name not in ACTIONS:
                    continue
                noun = plan.name.replace("_", " ")
                text = (
                    f"a {noun} {inflect(ACTIONS[name].verbs[0])[1]}{action[4:].replace('_', ' ')}"
                    if name == "turn"
                    else ""
                )
                yield Take(
                    text or f"a {noun} {inflect(ACTIONS[name].verbs[0])[1]}", name, noun, "jigdoll zoo", "own work",
                    "far" if held_out else "train", f"zoo {plan.name}", motion, encode(anatomy, motion), anatomy,
                )  # fmt: skip
        except JigdollError as error:
            sys.stderr.write(f"left out: {plan.name} {number}: {error}\n")


def bare_asset(name: str, skeleton: Skeleton) -> RiggedAsset:
    """A skeleton without skin."""
    mesh = Mesh(torch.zeros(0, 3), torch.zeros(0, 3, dtype=torch.long), torch.zeros(0, 3))
    none = Weights(torch.zeros(0, 1, dtype=torch.long), torch.zeros(0, 1))
    return RiggedAsset(name, mesh, skeleton, none)


def build_dataset(corpus: Path, cache: Path, *, creatures: int = 400) -> None:
    """Write the shards that are not there yet, and sheets to look at."""
    cache.mkdir(parents=True, exist_ok=True)
    every = ("train", "near", "far")
    sources = {
        "characters": lambda: character_takes(corpus, every),
        "mocap": lambda: mocap_takes(corpus, every),
        "zoo": lambda: (*creature_takes(creatures), *creature_takes(24, seed=7, held_out=True)),
    }
    for name, source in sources.items():
        path = cache / f"{name}.npz"
        if not path.exists():
            save_clips(path, dataset_of(source()))
    draw_some(open_dataset(cache), cache)


def draw_some(data: Dataset, folder: Path, *, count: int = 100, rows: int = 25) -> None:
    """Sheets of a random hundred clips, as many of each kind of body: to be looked at before anything is learned."""
    dice = np.random.default_rng(0)
    kinds = sorted({clip.kind for clip in data.clips})
    chosen: list[Clip] = []
    for kind in kinds:
        mine = [clip for clip in data.clips if clip.kind == kind and clip.split == "train"]
        share = min(count // len(kinds), len(mine))
        chosen += [mine[i] for i in dice.choice(len(mine), share, replace=False)] if mine else []
    for first in range(0, len(chosen), rows):
        some = chosen[first : first + rows]
        speeds = [float(np.abs(clip.values[0, :, EXTRA.start + 1].astype(float)).mean()) for clip in some]
        titles = [f"{c.kind} {c.action} {c.source[:40]} {v:.2f}/s" for c, v in zip(some, speeds, strict=True)]
        figures = [data.figures[clip.figure] for clip in some]
        draw_sticks(folder / f"clips_{first // rows}.png", figures, [clip.values for clip in some], titles)


def dataset_of(takes: Iterable[Take]) -> Dataset:
    """Takes as clips; bodies with the same numbers are kept once."""
    clips, figures, known = [], [], {}
    for take in takes:
        figure = figure_of(take.anatomy)
        mark = zlib.crc32(figure.features.tobytes()), figure.kinds, figure.limbs
        if mark not in known:
            known[mark] = len(figures)
            figures.append(figure)
        clip = clip_of(take, figure, known[mark])
        if clip is not None:
            clips.append(clip)
    return Dataset(tuple(clips), tuple(figures))


_FIGURE_ARRAYS = ("rests", "has", "bones", "attach", "on_chest", "mirrored", "length", "features", "body")
_CLIP_WORDS = tuple(f.name for f in fields(Clip) if f.name != "values")


def save_clips(path: Path, data: Dataset) -> None:
    """Write a shard: arrays and JSON, no pickle."""
    index = {
        "clips": [
            {name: getattr(clip, name) for name in _CLIP_WORDS} | {"shape": clip.values.shape} for clip in data.clips
        ],
        "figures": [
            {
                "kind": f.kind, "kinds": f.kinds, "hip": f.hip, "rise": f.rise, "span": f.span, "grounded": f.grounded,
                "limbs": [(limb.kind, limb.side, limb.rank) for limb in f.limbs],
            }
            for f in data.figures
        ],
    }  # fmt: skip
    arrays: dict[str, ndarray] = {"index": np.frombuffer(json.dumps(index).encode(), np.uint8)}
    arrays["values"] = np.concatenate([clip.values.reshape(-1, CHANNELS) for clip in data.clips])
    for name in _FIGURE_ARRAYS:
        arrays[name] = np.concatenate([np.asarray(getattr(f, name), np.float32).ravel() for f in data.figures])
    with atomic_write(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **arrays)  # pyright: ignore[reportArgumentType]


def open_dataset(cache: Path) -> Dataset:
    """The shards of a folder as one data set."""
    paths = sorted(cache.glob("*.npz"))
    if not paths:
        raise FileFormatError(f"{cache}: there are no shards of clips; make them with jigdoll.posespace.dataset")
    clips: list[Clip] = []
    figures: list[Figure] = []
    for path in paths:
        try:
            with np.load(path, allow_pickle=False) as file:
                more = _read_shard({name: file[name] for name in file.files}, len(figures))
        except (OSError, ValueError, KeyError) as error:
            raise FileFormatError(
                f"{path}: this is no shard of clips ({error}); remove it and make it again"
            ) from error
        clips += more.clips
        figures += more.figures
    return Dataset(tuple(clips), tuple(figures))


def _read_shard(arrays: dict[str, ndarray], shift: int) -> Dataset:
    index = json.loads(arrays["index"].tobytes())
    clips, at = [], 0
    for row in index["clips"]:
        parts, frames, channels = row.pop("shape")
        values = arrays["values"][at : at + parts * frames].reshape(parts, frames, channels)
        at += parts * frames
        row["texts"], row["figure"] = tuple(row["texts"]), row["figure"] + shift
        clips.append(Clip(values, **row))
    figures, ends = [], dict.fromkeys(_FIGURE_ARRAYS, 0)
    for row in index["figures"]:
        limbs = tuple(Limb(kind, side, rank, ()) for kind, side, rank in row["limbs"])
        parts = len(row["kinds"])
        shapes = _figure_shapes(parts, len(limbs), arrays, len(index["figures"]))
        found = {}
        for name in _FIGURE_ARRAYS:
            size = int(np.prod(shapes[name]))
            found[name] = arrays[name][ends[name] : ends[name] + size].reshape(shapes[name])
            ends[name] += size
        flags = {name: found[name] > 0.5 for name in ("has", "on_chest", "mirrored")}
        figures.append(
            Figure(
                kind=row["kind"], kinds=tuple(row["kinds"]), limbs=limbs, hip=row["hip"], rise=row["rise"],
                span=row["span"], grounded=row["grounded"],
                **(found | flags),
            )
        )  # fmt: skip
    return Dataset(tuple(clips), tuple(figures))


def _figure_shapes(parts: int, limbs: int, arrays: dict[str, ndarray], figures: int) -> dict[str, tuple[int, ...]]:
    return {
        "rests": (limbs, 5, 3, 3),
        "has": (parts, STATIONS),
        "bones": (parts, STATIONS, 3),
        "attach": (parts, 3),
        "on_chest": (parts,),
        "mirrored": (parts,),
        "length": (parts,),
        "features": (parts, len(arrays["features"]) // max(len(arrays["length"]), 1)),
        "body": (len(arrays["body"]) // max(figures, 1),),
    }


def spread_of(data: Dataset) -> tuple[Float[ndarray, "kinds channels"], Float[ndarray, "kinds channels"]]:
    """Mean and spread of each channel per kind of part, over all bodies alike: the network's units."""
    rows: dict[str, list[ndarray]] = defaultdict(list)
    for clip in data.clips:
        for kind, values in zip(data.figures[clip.figure].kinds, clip.values, strict=True):
            rows[kind].append(values[:: max(len(values) // 12, 1)].astype(np.float32))
    mean, spread = np.zeros((len(KINDS), CHANNELS)), np.ones((len(KINDS), CHANNELS))
    for i, kind in enumerate(KINDS):
        if rows[kind]:
            every = np.concatenate(rows[kind])
            mean[i], spread[i] = every.mean(0), np.maximum(every.std(0), LEAST_SPREAD)
    return mean, spread


def main() -> None:
    """Make the data set."""
    import argparse

    parser = argparse.ArgumentParser(description="Make the data set of the pose space from a corpus of free motion.")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("cache", type=Path)
    parser.add_argument("--creatures", type=int, default=400)
    words = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    build_dataset(words.corpus, words.cache, creatures=words.creatures)


if __name__ == "__main__":
    main()
