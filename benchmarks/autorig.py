"""Automatic rigging against skeletons that it has not seen: the built-in characters' and two artists'.

Distances are in percent of the longest side of the bounding box. "near" is the mean distance from each true joint to
the nearest automatic one, "same" to the joint of the same name, "legs" the nearest distance for hips, knees, ankles and
toes only. The mesh goes in without its skeleton, and its frame is guessed.
"""

import argparse
import json
import re
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from jigdoll.errors import RepairWarning
from jigdoll.kinematics import rest_transforms
from jigdoll.rig.autorig import AutoRig, autorig
from jigdoll.rig.limbs import find_limbs
from jigdoll.types import RiggedAsset, Skeleton
from jigdoll.zoo import SPECIES, make

ASSETS = Path(__file__).resolve().parents[2] / "shared" / "assets"
QUICK = ("fox", "human", "ostrich", "crocodile", "spider", "dragon")
LEG = re.compile(r"hip$|knee|ankle|toe$")
ARTIST_LEG = re.compile(r"leg_(upper|lower|ankle|foot)|humerus|(Upper|Lower|Ankle)Leg|^Foot")
NOT_BODY = re.compile(r"ear_|antenna|jaw|trunk")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="six characters only")
    parser.add_argument("--json", type=Path, help="also write the rows there")
    options = parser.parse_args()
    warnings.simplefilter("ignore", RepairWarning)
    rows = [zoo_row(name) for name in (QUICK if options.quick else SPECIES)]
    rows += real_rows(options.quick)
    print_table(rows)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2))


def zoo_row(species: str) -> dict:
    """One built-in character: its own skeleton is the truth."""
    asset = make(species)
    rig, seconds = timed(asset)
    keep = [j for j, name in enumerate(asset.skeleton.names) if not NOT_BODY.search(name)]
    legs = [j for j in keep if LEG.search(asset.skeleton.names[j])]
    return row(species, asset, asset.skeleton, rig, seconds, keep, legs)


def real_rows(quick: bool) -> list[dict]:
    """The horse and the bird: the bare mesh goes in, the artist's joints of the rigged twin are the truth."""
    from jigdoll.asset.load import load

    rows = []
    for name in ("horse", "bird"):
        bare = ASSETS / "unrigged" / "mesh2motion" / f"model-{name}.glb"
        rigged = ASSETS / "rigged" / "mesh2motion" / f"{name}-animations.glb"
        if not bare.exists():
            continue
        asset, artist = load(bare), load(rigged)
        # Each file is normalised on its own; the same vertices in the same order tell how they lie to each other.
        a, b = asset.mesh.vertices.double(), artist.mesh.vertices.double()
        scale = float((a - a.mean(0)).norm() / (b - b.mean(0)).norm())
        rig, seconds = timed(asset)
        truth = rest_transforms(artist.skeleton)[:, :3, 3].double()
        truth = (truth - b.mean(0)) * scale + a.mean(0)
        legs = [j for j, joint in enumerate(artist.skeleton.names) if ARTIST_LEG.search(joint)]
        rows.append(row(f"{name} (artist)", asset, artist.skeleton, rig, seconds, legs, legs, truth=truth))
    for name in () if quick else ("spot_low_resolution", "penguin"):
        path = ASSETS / "unrigged" / "odedstein" / f"{name}.obj"
        if path.exists():
            asset = load(path)
            rig, seconds = timed(asset)
            rows.append({"name": name, "template": rig.plan.template, "found": found(rig.limbs), "seconds": seconds})
    return rows


def timed(asset: RiggedAsset) -> tuple[AutoRig, float]:
    start = time.process_time()
    rig = autorig(asset.mesh)
    return rig, time.process_time() - start


def row(
    name: str,
    asset: RiggedAsset,
    truth_skeleton: Skeleton,
    rig: AutoRig,
    seconds: float,
    keep: list[int],
    legs: list[int],
    *,
    truth: torch.Tensor | None = None,
) -> dict:
    """Errors of one rig against a true skeleton."""
    true = (rest_transforms(truth_skeleton)[:, :3, 3].double() if truth is None else truth).numpy()
    mine = rest_transforms(rig.skeleton)[:, :3, 3].double().numpy()
    length = float(np.ptp(asset.mesh.vertices.numpy(), axis=0).max())
    near = 100 * np.linalg.norm(true[:, None] - mine[None], axis=2).min(1) / length
    names = {joint: k for k, joint in enumerate(rig.skeleton.names)}
    shared = [(j, names[truth_skeleton.names[j]]) for j in keep if truth_skeleton.names[j] in names]
    same = [100 * np.linalg.norm(true[j] - mine[k]) / length for j, k in shared] if truth is None else []
    wanted, got = counts(find_limbs(truth_skeleton)), counts(rig.limbs)
    return {
        "name": name,
        "template": rig.plan.template,
        "facing": bool(rig.frame.forward[2] > 0.99 and rig.frame.up[1] > 0.99),
        "limbs": wanted == got,
        "found": found(rig.limbs),
        "near": float(near[keep].mean()),
        "legs": float(near[legs].mean()),
        "same": float(np.mean(same)) if same else None,
        "seconds": seconds,
    }


def counts(limbs: tuple) -> Counter:
    """How many of each kind; wings count as arms, since the table has a column for names."""
    return Counter({"wing": "arm"}.get(limb.kind, limb.kind) for limb in limbs if limb.kind != "spine")


def found(limbs: tuple) -> str:
    number = Counter(limb.kind for limb in limbs if limb.kind != "spine")
    return ", ".join(f"{count} {kind}" for kind, count in sorted(number.items()))


def print_table(rows: list[dict]) -> None:
    table = Table(title="automatic rigs against true skeletons (distances in % of body length)")
    for column in ("character", "template", "faces", "limbs", "found", "near", "legs", "same name", "cpu s"):
        table.add_column(column, justify="right" if column in ("near", "legs", "same name", "cpu s") else "left")

    def number(value: float | None) -> str:
        return "" if value is None else f"{value:.2f}"

    for r in rows:
        marks = [{True: "ok", False: "WRONG", None: ""}[r.get(key)] for key in ("facing", "limbs")]
        numbers = [number(r.get(key)) for key in ("near", "legs", "same", "seconds")]
        table.add_row(r["name"], r["template"], *marks, r["found"], *numbers)
    zoo = [r for r in rows if r.get("same") is not None]
    means = [number(float(np.mean([r[key] for r in zoo]))) for key in ("near", "legs", "same", "seconds")]
    right = f"{sum(r['limbs'] for r in zoo)}/{len(zoo)}"
    facing = f"{sum(r['facing'] for r in zoo)}/{len(zoo)}"
    table.add_section()
    table.add_row("built-in characters", "", facing, right, "", *means)
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
