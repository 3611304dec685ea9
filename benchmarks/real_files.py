"""Artists' own characters, animated by words, beside the artists' own clips.

    python benchmarks/real_files.py --assets FOLDER [--quick] [--json FILE] [--sheet FILE] [--only Fox]

Distils "walks" and "runs" for real rigged files and judges each clip without any model, and the artist's clip of the
same gait in the same file (on the spot, so judged as on a treadmill). A figure stands if it is within the artist's
value or 1.5 times it. `--glb FOLDER` keeps the exported files, for Blender to open.
"""

import json as json_module
import time
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
import tyro
from rich.console import Console
from rich.table import Table

from ablation import picture
from jigdoll.asset.load import load
from jigdoll.distill.options import AnimateOptions
from jigdoll.errors import JigdollError
from jigdoll.export import save
from jigdoll.formats.video import write_picture
from jigdoll.judge import Verdict, judge
from jigdoll.pipeline import animate
from jigdoll.prior.pocket.prior import open_pocket
from jigdoll.render.draw import contact_sheet
from jigdoll.rig.reparent import reparent, to_reparented

FILES: dict[str, tuple[str, str, dict[str, str]]] = {
    "Fox": ("rigged/khronos/Fox.glb", "a fox", {"walks": "Walk", "runs": "Run"}),
    "horse": ("rigged/mesh2motion/horse-animations.glb", "a horse", {"walks": "Walk", "runs": "Run"}),
    "Wolf": (
        "rigged/quaternius/animals_pack/Wolf.glb",
        "a wolf",
        {"walks": "AnimalArmature|Walk", "runs": "AnimalArmature|Gallop"},
    ),
    "CesiumMan": ("rigged/khronos/CesiumMan.glb", "a man", {"walks": "clip_0"}),
    "RiggedFigure": ("rigged/khronos/RiggedFigure.glb", "a person", {}),
    "RobotExpressive": ("rigged/threejs/RobotExpressive.glb", "a robot", {"walks": "Walking", "runs": "Running"}),
    "Polydancer": ("rigged/100avatars/100Avatars_021_Polydancer.vrm", "a woman", {}),
}
SLACK = 1.5
LEAST = {"skate": 0.05, "jerk": 5.0, "penetration": 0.002}
"""Below this a figure is good whatever the artist's is."""


@dataclass(frozen=True)
class Options:
    """What to run."""

    assets: Path = Path("assets")
    """The folder of the files."""
    quick: bool = False
    """The first file, few steps."""
    json: Path | None = None
    sheet: Path | None = None
    glb: Path | None = None
    only: tuple[str, ...] = ()
    words: tuple[str, ...] = ("walks", "runs")
    weights: Path | None = None
    """Of another pocket prior than the shipped one."""
    seed: int = 0


@dataclass(frozen=True)
class Row:
    """One clip of ours beside the artist's."""

    file: str
    words: str
    ours: dict[str, float]
    artist: dict[str, float] | None
    alternation: tuple[float, ...]
    """Of each pair of legs."""
    direction: float
    seconds: float
    """CPU."""

    @property
    def over(self) -> list[str]:
        """The figures that are worse than the artist's by more than the slack."""
        if self.artist is None:
            return []
        return [name for name, value in self.ours.items() if value > max(LEAST[name], SLACK * self.artist[name])]


def figures(verdict: Verdict) -> dict[str, float]:
    """What is compared."""
    return {"skate": verdict.skate_ratio, "jerk": verdict.position_jerk, "penetration": verdict.penetration}


def run(name: str, words: str, options: Options) -> tuple[Row, np.ndarray]:
    """Animate a file and judge it beside the artist's clip."""
    path, who, clips = FILES[name]
    asset, start = load(options.assets / path), time.process_time()
    settings = AnimateOptions(iterations=10, refine_steps=30) if options.quick else AnimateOptions()
    made = animate(asset, f"{who} {words}", prior=open_pocket(options.weights), settings=settings, seed=options.seed)
    seconds, verdict = time.process_time() - start, made.verdict
    artist = None
    if words in clips:
        reparented = reparent(asset)
        artist = figures(judge(reparented.asset, to_reparented(reparented, asset.clips[clips[words]])))
    if options.glb:
        save(options.glb / f"{name}-{words}.glb", asset, [made.motion])
    legs = tuple(pair.alternation for pair in verdict.pairs if pair.kind == "leg")
    row = Row(name, words, figures(verdict), artist, legs, verdict.direction, seconds)
    return row, picture(asset, made.motion)


def show(rows: list[Row], console: Console) -> None:
    """The table: ours / the artist's."""
    columns = ("file", "words", *LEAST, "alternation", "direction", "within the artist's x 1.5", "CPU s")
    table = Table(*columns, title="ours / the artist's")
    for row in rows:
        pairs = [
            f"{value:.3f} / " + ("-" if row.artist is None else f"{row.artist[name]:.3f}")
            for name, value in row.ours.items()
        ]
        verdict = "no clip" if row.artist is None else "yes" if not row.over else f"not {', '.join(row.over)}"
        legs = " ".join(f"{a:+.2f}" for a in row.alternation)
        table.add_row(row.file, row.words, *pairs, legs, f"{row.direction:.2f}", verdict, f"{row.seconds:.0f}")
    console.print(table)


def main(options: Options) -> None:
    """Run the files that are there, print the table."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    console = Console(width=150)
    try:
        open_pocket(options.weights)
    except JigdollError as error:
        console.print(f"nothing to measure: {error}", highlight=False)
        return
    names = options.only or tuple(FILES)
    found = [name for name in names if (options.assets / FILES[name][0]).is_file()]
    if len(found) < len(names):
        missing = ", ".join(name for name in names if name not in found)
        console.print(f"not in {options.assets}: {missing} (--assets names the folder)", highlight=False)
    rows, pictures = [], []
    for name in found[:1] if options.quick else found:
        for words in options.words[:1] if options.quick else options.words:
            row, drawn = run(name, words, options)
            rows.append(row)
            pictures.append(drawn)
            console.print(row, highlight=False)
            if options.json:
                options.json.write_text(json_module.dumps([asdict(row) | {"over": row.over} for row in rows], indent=1))
            if options.sheet:
                write_picture(options.sheet, contact_sheet(pictures, 1, [f"{row.file} {row.words}" for row in rows]))
    show(rows, console)


if __name__ == "__main__":
    main(tyro.cli(Options))
