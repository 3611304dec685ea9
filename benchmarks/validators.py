"""What the validators say of real clips, and of poses that nobody would strike: the numbers behind their tolerances.

    python benchmarks/validators.py CORPUS [--quick] [--json FILE]

For every validator: the share of real frames beyond its tolerance, quantiles over real frames (artists' clips of the
corpus, each character counted alike), the share of random poses within the limits of their joints, and of real poses
with every joint turned by a random 25 degrees, that are beyond it.
"""

import argparse
import json
import sys
import warnings
from itertools import groupby, islice
from pathlib import Path

import numpy as np
import torch

from jigdoll.corpus import Take, character_takes
from jigdoll.math.rotations import compound_to_quaternion, quaternion_multiply, rotvec_to_quaternion
from jigdoll.types import Motion, Pose
from jigdoll.validators import VALIDATORS, ValidatedBody, check, prepare

FRAMES = 40
"""Frames of each clip that count at most."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--quick", action="store_true", help="a dozen characters")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    rows: dict[str, dict[str, list[np.ndarray]]] = {kind: {} for kind in ("real", "random", "shaken")}
    people = groupby(character_takes(arguments.corpus, ("train", "near", "far")), key=lambda take: take.source)
    count = 0
    for _, group in islice(people, 12 if arguments.quick else None):
        takes = list(group)
        body = prepare(takes[0].anatomy)
        generator = torch.Generator().manual_seed(count)
        _keep(rows["real"], [check(body, _short(take.joints)) for take in takes[:12]])
        _keep(rows["random"], [check(body, _random(body, 40, generator))])
        _keep(rows["shaken"], [check(body, _shaken(take, generator)) for take in takes[:3]])
        count += 1
    result = {
        "characters": count,
        "validators": {row.name: _summary(rows, row.name, row.tolerance) for row in VALIDATORS},
    }
    for name, line in result["validators"].items():
        print(f"{name:15s}", "  ".join(f"{key} {value:.3f}" for key, value in line.items()))
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1))
    sys.stderr.write(f"{count} characters\n")


def _keep(rows: dict[str, list[np.ndarray]], found: list[dict[str, torch.Tensor]]) -> None:
    """One array per character and validator."""
    for name in found[0]:
        rows.setdefault(name, []).append(np.concatenate([values[name].numpy() for values in found]))


def _summary(rows: dict[str, dict[str, list[np.ndarray]]], name: str, tolerance: float) -> dict[str, float]:
    """Shares and quantiles; each character counts alike."""
    even = np.concatenate([np.quantile(x, np.linspace(0, 1, 101)) for x in rows["real"][name]])
    shares = {kind: float(np.mean([(x > tolerance).mean() for x in rows[kind][name]])) for kind in rows}
    marks = {f"q{100 * q:g}": float(np.quantile(even, q)) for q in (0.5, 0.9, 0.95, 0.99)}
    return {"tolerance": tolerance} | shares | marks


def _short(motion: Motion) -> Motion:
    pose = motion.pose[: min(len(motion), FRAMES)]
    return Motion(pose, motion.fps, motion.name)


def _random(body: ValidatedBody, count: int, generator: torch.Generator) -> Pose:
    low, high = body.skeleton.limits.unbind(-1)
    share = torch.rand((count, *low.shape), generator=generator)
    angles = low + share * (high - low)
    angles[:, 0] = 0
    return Pose(torch.zeros(count, 3), compound_to_quaternion(angles, body.skeleton.axes.expand(count, -1, -1, -1)))


def _shaken(take: Take, generator: torch.Generator) -> Pose:
    pose = take.joints.pose[: min(len(take.joints), FRAMES)]
    turn = torch.randn((*pose.rotations.shape[:-1], 3), generator=generator)
    turn = turn / turn.norm(dim=-1, keepdim=True) * np.radians(25)
    turn[:, 0] = 0
    return Pose(pose.root, quaternion_multiply(pose.rotations, rotvec_to_quaternion(turn)), pose.offsets, pose.scales)


if __name__ == "__main__":
    main()
