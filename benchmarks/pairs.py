"""Pairs of a character and a sentence to look at: a row of pictures each, films on request.

    python benchmarks/pairs.py --corpus FOLDER --out FOLDER [--films] [--only wolf sit] [--json FILE]

People from T- and A-poses in ten actions, animals of all kinds, ten-second clips, loops, paths, two actions in a
sentence, hands on the ground. Each is what `animate` shows by default. Sheets of six rows are written to the folder,
with grade, source and faults as the judge names them: what a person thinks of them stands in `RESULTS.md`.
"""

import json as json_module
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
import tyro
from rich.console import Console

import jigdoll
from jigdoll.candidates import choose
from jigdoll.directions import DirectionOptions
from jigdoll.errors import JigdollError
from jigdoll.formats import video
from jigdoll.judge.report import draw_film
from jigdoll.render.draw import contact_sheet

PICTURES, ROWS = 9, 6


@dataclass(frozen=True)
class Pair:
    """Who does what."""

    file: str
    prompt: str
    seconds: float | None = None
    loop: bool = False
    path: str = ""
    """Points on the ground, a line each."""
    directions: dict = field(default_factory=dict)


_Q = "quaternius"
PAIRS = (
    Pair(f"{_Q}/modular_women/Witch.glb", "a witch walks"),
    Pair(f"{_Q}/modular_men/Farmer.glb", "a man runs"),
    Pair("100avatars/100Avatars_021_Polydancer.fbx", "a woman dances"),
    Pair("rocketbox/people/Male_Adult_14.fbx", "a man punches"),
    Pair("mesh2motion/human-male.glb", "a man waves"),
    Pair("khronos/CesiumMan.glb", "a man jumps"),
    Pair(f"{_Q}/modular_women/Casual.glb", "a woman sits down"),
    Pair("rocketbox/people/Female_Adult_16.fbx", "a woman kicks"),
    Pair(f"{_Q}/modular_men/Punk.glb", "a man throws a ball"),
    Pair("mesh2motion/human-zombie.glb", "a zombie falls down and dies"),
    Pair("rocketbox/people/Male_Child_01.fbx", "a child crawls"),
    Pair("100avatars/100Avatars_007_Observer.fbx", "a person does a cartwheel"),
    Pair("kenney/mini_characters/character-male-a.glb", "a man runs"),
    Pair(f"{_Q}/robot/RobotExpressive.glb", "a robot walks"),
    Pair(f"{_Q}/mech_pack/Stan.glb", "a robot walks"),
    Pair(f"{_Q}/animals_pack/Wolf.glb", "a wolf runs"),
    Pair("mesh2motion/horse-animations.glb", "a horse gallops"),
    Pair("mesh2motion/horse-animations.glb", "a horse eats"),
    Pair(f"{_Q}/dinosaurs_pack/Triceratops.glb", "a triceratops attacks"),
    Pair(f"{_Q}/dinosaurs_pack/Trex.glb", "a t-rex walks"),
    Pair(f"{_Q}/easy_enemies_pack/Spider.glb", "a spider walks"),
    Pair("mesh2motion/bird-eagle.glb", "an eagle flies"),
    Pair("mesh2motion/bird-eagle.glb", "an eagle lands"),
    Pair(f"{_Q}/easy_enemies_pack/Snake.glb", "a snake crawls"),
    Pair("mesh2motion/snake-animations.glb", "a snake slithers"),
    Pair(f"{_Q}/fish_pack/Shark.glb", "a shark swims"),
    Pair(f"{_Q}/fish_pack/Fish2.glb", "a fish swims"),
    Pair(f"{_Q}/animated_monsters/Dragon.glb", "a dragon flies"),
    Pair("elceejo/draconis/fire_dragon.glb", "a dragon walks"),
    Pair("elceejo/draconis/fire_dragon.glb", "a dragon flaps its wings"),
    Pair(f"{_Q}/modular_women/Witch.glb", "a witch walks", seconds=10.0),
    Pair(f"{_Q}/animals_pack/Husky.glb", "a dog walks", seconds=10.0),
    Pair(f"{_Q}/modular_men/Farmer.glb", "a man walks", loop=True),
    Pair("khronos/Fox.glb", "a fox runs", loop=True),
    Pair("khronos/CesiumMan.glb", "a man walks", path="0 0\n0 2\n2 4\n4 4\n"),
    Pair(f"{_Q}/animals_pack/Husky.glb", "a dog runs", path="0 0\n0 4\n4 8\n"),
    Pair("mesh2motion/human-male.glb", "a man walks up, stops and waves"),
    Pair(f"{_Q}/modular_women/Casual.glb", "a woman runs, then jumps"),
    Pair("khronos/Fox.glb", "a fox walks, then sits down"),
    Pair("liil/marinaramobs/Octopus.glb", "an octopus walks"),
    Pair(f"{_Q}/animated_monsters/Slime.glb", "a slime jumps"),
    Pair("godot/platformer_enemy.glb", "an enemy walks"),
)


@dataclass(frozen=True)
class Options:
    """What to show."""

    corpus: Path
    out: Path
    films: bool = False
    only: tuple[str, ...] = ()
    """Pairs whose file or sentence has one of these words."""
    json: Path | None = None


def shown(pair: Pair, options: Options) -> tuple[np.ndarray, str, dict]:
    """Pictures of a pair in a row, a line about it, and the same as figures."""
    directions = DirectionOptions()
    if pair.path:
        file = options.out / "path.csv"
        file.write_text(pair.path)
        directions = DirectionOptions(path=str(file))
    start = time.process_time()
    made = jigdoll.animate(
        options.corpus / "characters" / pair.file,
        pair.prompt,
        seconds=pair.seconds,
        loop=pair.loop,
        directions=directions,
    )
    took = time.process_time() - start
    best, natural = made.candidates[choose(made.candidates)], made.verdict.natural
    assert natural is not None
    film = draw_film(made.asset, made.motion, size=(224, 168))
    stem = f"{Path(pair.file).stem}-{pair.prompt}".replace(" ", "-").replace(",", "")
    if options.films:
        video.write(options.out / f"{stem}.mp4", film, fps=made.motion.fps)
    places = np.linspace(0, len(film) - 1, PICTURES).round().astype(int)
    faults = [fault.message for fault in natural.faults]
    extra = " loop" * pair.loop + " path" * bool(pair.path)
    line = f"{Path(pair.file).stem}: {pair.prompt}{extra}, {made.motion.seconds:.1f} s, {natural.grade:.2f}"
    facts = {"pair": line, "origin": best.origin, "faults": faults, "CPU s": round(took, 1)}
    return contact_sheet([film[int(i)].numpy() for i in places], PICTURES), line, facts


def main(options: Options) -> None:
    """All pairs, sheet by sheet."""
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    console, rows, lines, told = Console(width=200), [], [], []
    chosen = [p for p in PAIRS if not options.only or any(w in f"{p.file} {p.prompt}" for w in options.only)]
    for i, pair in enumerate(chosen):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                picture, line, facts = shown(pair, options)
            except JigdollError as error:
                console.print(f"{pair.file}: {pair.prompt}: refused: {error}", markup=False)
                continue
        facts["said"] = sorted({str(w.message) for w in said})
        rows.append(picture)
        lines.append(line)
        told.append(facts)
        console.print(facts, markup=False)
        if len(rows) == ROWS or i == len(chosen) - 1:
            sheet = contact_sheet(rows, 1, lines)
            video.write_picture(options.out / f"sheet-{i // ROWS:02d}.png", sheet)
            rows, lines = [], []
    if options.json:
        options.json.write_text(json_module.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main(tyro.cli(Options))
