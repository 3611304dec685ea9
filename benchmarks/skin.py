"""Skinning weights: against artists, against Blender, their growth, and bends of the built-in characters.

    python benchmarks/skin.py [--quick] [--json FILE] [--assets DIR] [--blender-python PYTHON]

L1 is the mean over welded vertices of sum_j |w_j - artist_j| (0 to 2); a vertex agrees where the joint with the largest
weight is the artist's. A bone's weight counts for the joint that moves it, a leaf's weight for its parent. Seconds are
CPU time. The figures of the original Pinocchio were measured once on a machine with two 2.8 GHz cores.
"""

import json as json_module
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
import tyro
from rich.console import Console
from rich.table import Table

from jigdoll.asset.load import load
from jigdoll.errors import RepairWarning
from jigdoll.kinematics import make_skeleton
from jigdoll.math.transforms import translation
from jigdoll.skin.bones import bones_of
from jigdoll.skin.rays import Rays
from jigdoll.skin.surface import Surface, surface_of
from jigdoll.skin.weights import PAPER, REFINED, HeatOptions, heat_weights
from jigdoll.types import Mesh, RiggedAsset, Skeleton

REPOSITORY = Path(__file__).resolve().parents[1]
ARTISTS = {
    "horse": "mesh2motion/horse-animations.glb",
    "CesiumMan": "khronos/CesiumMan.glb",
    "Fox": "khronos/Fox.glb",
    "Wolf": "quaternius/animals_pack/Wolf.glb",
    "RiggedFigure": "khronos/RiggedFigure.glb",
    "bird": "mesh2motion/bird-animations.glb",
}
PINOCCHIO = {"horse": (0.306, 0.872, 0.38), "CesiumMan": (0.116, 0.961, 0.93), "Fox": (0.399, 0.862, 0.19)}
VARIANTS: dict[str, HeatOptions] = {
    "paper (default)": PAPER,
    "+ next visible bone": replace(PAPER, next_visible=True),
    "+ soft ties": replace(PAPER, soft_ties=REFINED.soft_ties),
    "+ facing": replace(PAPER, facing=REFINED.facing),
    "+ leaf bones": replace(PAPER, leaf_bones=True),
    "+ outer bones": replace(PAPER, outer_bones=True),
    "+ hidden parts": replace(PAPER, hidden_parts=True),
    "+ heat 4": replace(PAPER, heat=4.0),
    "refined (all of these)": REFINED,
}


@dataclass(frozen=True)
class Row:
    """One measurement against an artist."""

    character: str
    method: str
    l1: float
    agreement: float
    seconds: float


def folded(weights: np.ndarray, skeleton: Skeleton) -> np.ndarray:
    """Leaf weights given to the parent, rows summing to one."""
    out = weights / weights.sum(1, keepdims=True)
    for joint, kids in enumerate(skeleton.children):
        if not kids and joint:
            out[:, skeleton.parents[joint]] += out[:, joint]
            out[:, joint] = 0
    return out


def compare(weights: np.ndarray, artist: np.ndarray, skeleton: Skeleton) -> tuple[float, float]:
    """L1 and agreement."""
    ours, theirs = folded(weights, skeleton), folded(artist, skeleton)
    return float(np.abs(ours - theirs).sum(1).mean()), float((ours.argmax(1) == theirs.argmax(1)).mean())


def seconds_of(function: Callable[[], object], repeat: int) -> float:
    """Best CPU time of a few calls."""
    best = float("inf")
    for _ in range(repeat):
        start = time.process_time()
        function()
        best = min(best, time.process_time() - start)
    return best


def against_artist(name: str, asset: RiggedAsset, repeat: int, blender: Path | None) -> list[Row]:
    """One row per method."""
    surface = surface_of(asset.mesh)
    _, first = np.unique(surface.of_mesh, return_index=True)
    joints = len(asset.skeleton)
    artist = asset.weights.dense(joints).double().numpy()[first]
    rows = [Row(name, "Pinocchio (recorded)", *PINOCCHIO[name])] if name in PINOCCHIO else []
    for method, options in VARIANTS.items():
        got = heat_weights(asset.mesh, asset.skeleton, options=options).dense(joints).double().numpy()[first]
        seconds = seconds_of(lambda o=options: heat_weights(asset.mesh, asset.skeleton, options=o), repeat)
        rows.append(Row(name, method, *compare(got, artist, asset.skeleton), seconds))
    if blender:
        weights, seconds = blender_heat(surface, asset.skeleton, blender)
        seen = weights.sum(1) > 0
        if seen.any():
            note = "" if seen.all() else f", {(~seen).mean():.0%} unweighted left out"
            rows.append(
                Row(name, f"Blender bone heat{note}", *compare(weights[seen], artist[seen], asset.skeleton), seconds)
            )
        else:
            rows.append(Row(name, "Blender bone heat: found no solution", float("nan"), float("nan"), seconds))
    return rows


def blender_heat(surface: Surface, skeleton: Skeleton, python: Path) -> tuple[np.ndarray, float]:
    """Blender's automatic weights on the same welded mesh and bones, per joint."""
    bones = bones_of(skeleton, Rays(surface.vertices, surface.faces), carriers=None, leaf_bones=False)
    real = np.linalg.norm(bones.tails - bones.heads, axis=1) > 1e-6
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.npz", Path(folder) / "out.npz"
        heads, tails = bones.heads[real], bones.tails[real]
        np.savez(source, vertices=surface.vertices, faces=surface.faces, heads=heads, tails=tails)
        script = Path(__file__).parent / "parts" / "blender_heat.py"
        subprocess.run([python, script, source, target], check=True, capture_output=True, timeout=280)
        out = np.load(target)
        weights = np.zeros((len(surface.vertices), len(skeleton)))
        np.add.at(weights.T, bones.joints[real], out["weights"].T)
        return weights, float(out["seconds"])


def worm(vertices: int, bones: int) -> tuple[Mesh, Skeleton]:
    """A long closed tube with so many vertices (nearly) and a chain of so many bones."""
    rings = max(4, round((vertices * 4) ** 0.5))
    sections = max(8, vertices // rings)
    x, angle = np.linspace(0, 10, rings), np.arange(sections) * 2 * np.pi / sections
    radius = 0.3 + 0.05 * np.sin(7 * x)
    side = np.stack([np.repeat(x, sections), *(np.outer(radius, f(angle)).ravel() for f in (np.cos, np.sin))], 1)
    ring, spoke = np.meshgrid(np.arange(rings - 1), np.arange(sections), indexing="ij")
    a, b = ring * sections + spoke, ring * sections + (spoke + 1) % sections
    quads = np.stack([a, b + sections, b, a, a + sections, b + sections], -1).reshape(-1, 3)
    spokes, last = np.arange(sections), len(side) - sections
    caps = [np.stack([np.full(sections, len(side)), spokes, np.roll(spokes, -1)], 1)]
    caps.append(np.stack([np.full(sections, len(side) + 1), last + np.roll(spokes, -1), last + spokes], 1))
    points = torch.tensor(np.concatenate([side, [[0, 0, 0], [10, 0, 0]]]), dtype=torch.float32)
    faces = np.concatenate([quads, *caps])
    corners = points.double().numpy()[faces]
    if (corners[:, 0] * np.cross(corners[:, 1], corners[:, 2])).sum() < 0:
        faces = faces[:, ::-1].copy()
    steps = torch.zeros(bones + 1, 3)
    steps[0, 0], steps[1:, 0] = 0.1, 9.8 / bones
    names = tuple(f"joint_{i}" for i in range(bones + 1))
    skeleton = make_skeleton(names, tuple(range(-1, bones)), translation(steps))
    return Mesh(points, torch.from_numpy(faces), torch.full((len(points), 3), 0.5)), skeleton


def grow(vertices: int, bones: int) -> dict[str, float]:
    """Weigh one worm in a process of its own, so that its peak of memory is its own."""
    command = [sys.executable, __file__, "--grow", str(vertices), str(bones)]
    found = subprocess.run(command, check=True, capture_output=True, text=True, timeout=280)
    return json_module.loads(found.stdout.splitlines()[-1])


def grow_here(vertices: int, bones: int) -> None:
    """The child's side of `grow`."""
    warm_mesh, warm_skeleton = worm(2000, 4)
    heat_weights(warm_mesh, warm_skeleton, options=replace(REFINED, max_faces=3000))  # loads and compiles
    mesh, skeleton = worm(vertices, bones)
    start = time.process_time()
    heat_weights(mesh, skeleton, options=REFINED)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json_module.dumps({"vertices": len(mesh.vertices), "bones": bones, "seconds": seconds, "gib": peak}))


def print_artists(console: Console, rows: list[Row]) -> None:
    """A table for each character."""
    for name in dict.fromkeys(row.character for row in rows):
        table = Table(title=f"{name}: weights against the artist's")
        for column in ("", "L1", "main joint agrees", "CPU s"):
            table.add_column(column, justify="left" if not column else "right")
        for row in rows:
            if row.character == name:
                table.add_row(row.method, f"{row.l1:.3f}", f"{row.agreement:.1%}", f"{row.seconds:.3f}")
        console.print(table)


def print_bends(console: Console, species: list[str]) -> list[dict[str, float | str]]:
    """Bend every limb joint of the built-in characters by 45 degrees, with computed weights and with their own."""
    from jigdoll import zoo
    from parts.skin_bends import bend_report

    table = Table(title="Joints bent by 45 degrees, the worst of each character: volume change and newly cut faces")
    columns = (
        "",
        "limb joints",
        "volume",
        "at",
        "cut",
        "at",
        "freer side",
        "heads: volume",
        "cut",
        "own weights: volume",
        "cut",
    )
    for column in columns:
        table.add_column(column, justify="right" if column else "left")
    reports = []
    for name in species:
        asset = zoo.make(name)
        ours = replace(asset, weights=heat_weights(asset.mesh, asset.skeleton, options=REFINED))
        report, own = bend_report(ours), bend_report(asset)
        reports.append({"species": name, **report, **{f"own_{key}": value for key, value in own.items()}})
        limbs = (f"{report['volume']:.1%}", str(report["volume_at"]), f"{report['cut']:.2%}", str(report["cut_at"]))
        limbs += (f"{report['cut_free']:.2%}",)
        heads = (f"{report['head_volume']:.1%}", f"{report['head_cut']:.2%}")
        table.add_row(name, f"{report['joints']:.0f}", *limbs, *heads, f"{own['volume']:.1%}", f"{own['cut']:.2%}")
    console.print(table)
    return reports


def blender_or_none(console: Console, asked: Path | None) -> Path | None:
    """The interpreter that has bpy, if there is one."""
    default = os.environ.get("JIGDOLL_BLENDER_PYTHON", REPOSITORY / ".venv-blender" / "bin" / "python")
    python = Path(asked or default)
    if python.is_file():
        return python
    console.print(f"Blender's row is left out: no interpreter with bpy at {python} (--blender-python names one)")
    return None


def main(
    quick: bool = False,
    json: Path | None = None,
    assets: Path = REPOSITORY.parent / "shared" / "assets",
    blender_python: Path | None = None,
    species: tuple[str, ...] = (),
) -> None:
    """Print the tables; --quick takes three characters, smaller worms and two species.

    With `--species` only those are bent, and nothing else runs.
    """
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", RepairWarning)
    console = Console(width=150)
    if species:
        bends = print_bends(console, list(species))
        if json:
            json.write_text(json_module.dumps({"bends": bends}, indent=1))
        return
    blender = blender_or_none(console, blender_python)
    rows: list[Row] = []
    for name, file in list(ARTISTS.items())[: 3 if quick else None]:
        path = assets / "rigged" / file
        if path.is_file():
            rows += against_artist(name, load(path), 2 if quick else 5, blender)
        else:
            console.print(f"{name} is left out: {path.name} is not in {assets}")
    print_artists(console, rows)
    sizes = [(v, b) for v in ((5_000, 50_000) if quick else (5_000, 50_000, 500_000)) for b in (20, 60)]
    growth = [grow(*size) for size in sizes]
    table = Table(title="Growth of refined weights (above 60,000 faces on a decimated copy)")
    for column in ("vertices", "bones", "CPU s", "peak GiB of the process"):
        table.add_column(column, justify="right")
    for found in growth:
        table.add_row(f"{found['vertices']:,}", f"{found['bones']}", f"{found['seconds']:.2f}", f"{found['gib']:.2f}")
    console.print(table)
    from jigdoll.zoo import SPECIES

    bends = print_bends(console, list(SPECIES)[:2] if quick else list(SPECIES))
    if json:
        everything = {"artists": [asdict(row) for row in rows], "growth": growth, "bends": bends}
        json.write_text(json_module.dumps(everything, indent=1))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--grow"]:
        grow_here(*map(int, sys.argv[2:]))
    else:
        tyro.cli(main)
