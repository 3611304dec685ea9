"""What a motion loses on its way through limb space and the codes of the memory.

Clips of characters and people that the codec never saw go to limb space, to codes and back onto the same rig. Reported
are degrees between local rotations of bones before and after: the middle line, legs and arms (with wings and fins)
apart, slow and fast moments apart, beside the same way without codes; the worst clips; bytes per second.
`python benchmarks/codes.py --corpus FOLDER [--quick] [--json]`.
"""

import json
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import tyro
from numpy import ndarray

from jigdoll.corpus import takes
from jigdoll.math.rotations import (
    matrix_to_quaternion,
    quaternion_inverse,
    quaternion_multiply,
    quaternion_to_matrix,
    quaternion_to_rotvec,
    rotvec_to_quaternion,
)
from jigdoll.memory.codes import Codec, open_codec, pack
from jigdoll.memory.train_codes import segments_of
from jigdoll.rig.anatomy import Anatomy
from jigdoll.rig.retarget import decode, encode
from jigdoll.types import Motion

SLOW, FAST = 60.0, 300.0
"""Bones that turn slower, or faster [degrees / s]."""


@dataclass(frozen=True)
class Options:
    corpus: Path = Path("../shared/corpus")
    quick: bool = False
    """A tenth of the clips."""
    json: bool = False
    """Print one JSON object."""


def main(options: Options) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    codec, rows = open_codec(), []
    for i, take in enumerate(takes(options.corpus, ("near", "far"), mixed=True)):
        if options.quick and i % 10:
            continue
        facts = {"split": take.split, "clip": f"{take.source}: {take.text}", "action": take.action}
        rows += [facts | row for row in measure(codec, take.anatomy, take.joints)]
    table = summary(rows)
    sys.stdout.write(json.dumps(table) + "\n" if options.json else text_of(table))


def measure(codec: Codec, anatomy: Anatomy, truth: Motion) -> Iterator[dict]:
    """Degrees per bone of each segment of a clip, with and without codes."""
    if len(truth) < 2:
        return
    whole, start = encode(anatomy, truth, travel=False), 0
    aside = heading_between(decode(whole, anatomy, lock=False), truth, anatomy)
    for segment in segments_of(whole, 4.0):
        frames = slice(start, start + len(segment))
        start += len(segment)
        began = time.perf_counter()
        codes = codec.encode(segment)
        middle = time.perf_counter()
        again = codec.decode(codes)
        ended = time.perf_counter()
        true = truth.pose.rotations[frames]
        plain = degrees(true, turned(decode(segment, anatomy, lock=False), aside, anatomy))
        coded = degrees(true, turned(decode(again, anatomy, lock=False), aside, anatomy))
        speed = degrees(true[1:], true[:-1]) * truth.fps
        speed = np.concatenate([speed, speed[-1:]])
        kept = {name: joints for name, joints in groups(anatomy).items() if joints}
        told = sorted({joint for joints in kept.values() for joint in joints})
        row = {name: float(coded[:, joints].mean()) for name, joints in kept.items()}
        slow, fast = speed[:, told] < SLOW, speed[:, told] > FAST
        if slow.any():
            row["slow"] = float(coded[:, told][slow].mean())
        if fast.any():
            row["fast"] = float(coded[:, told][fast].mean())
        yield row | {
            "codes": float(coded[:, told].mean()),
            "plain": float(plain[:, told].mean()),
            "all joints": float(coded.mean()),
            "all joints plain": float(plain.mean()),
            "ends": float(coded[[0, -1]][:, told].mean()),
            "place": float(np.linalg.norm(again.place - segment.place, axis=1).max()),
            "bytes": sum(array.nbytes for array in pack([codes]).values()),
            "seconds": len(segment) / segment.fps,
            "encode ms": 1e3 * (middle - began),
            "decode ms": 1e3 * (ended - middle),
        }


def groups(anatomy: Anatomy) -> dict[str, list[int]]:
    """The joints that limb space tells of."""
    found: dict[str, set[int]] = {
        "middle": {0, *anatomy.trunk, *anatomy.neck, *anatomy.tail},
        "legs": set(),
        "arms": set(),
    }
    for part in anatomy.parts:
        found["legs" if part.limb.kind == "leg" else "arms"] |= {part.root, part.middle, part.end} | set(
            part.before[-1:]
        )
    return {name: sorted(joints) for name, joints in found.items()}


def heading_between(a: Motion, b: Motion, anatomy: Anatomy) -> float:
    """By how much the first frame of b is turned about the vertical against a's: limb space starts straight on."""
    rest = torch.from_numpy(anatomy.T_rest[0, :3, :3]).double()
    first, second = (rest @ quaternion_to_matrix(m.pose.rotations[0, 0].double()) for m in (a, b))
    turn = second @ first.T
    return float(torch.atan2(turn[0, 2] - turn[2, 0], turn[0, 0] + turn[2, 2]))


def turned(motion: Motion, angle: float, anatomy: Anatomy) -> torch.Tensor:
    """The local rotations of a motion that is turned about the vertical as a whole."""
    rest = torch.from_numpy(anatomy.T_rest[0, :3, :3]).double()
    yaw = quaternion_to_matrix(rotvec_to_quaternion(torch.tensor([0.0, angle, 0.0], dtype=torch.float64)))
    rotations = motion.pose.rotations.double().clone()
    root = rest.T @ yaw @ rest @ quaternion_to_matrix(rotations[:, 0])
    rotations[:, 0] = matrix_to_quaternion(root)
    return rotations


def degrees(a: torch.Tensor, b: torch.Tensor) -> ndarray:
    """Angles between rotations."""
    turn = quaternion_multiply(quaternion_inverse(a.double()), b.double())
    return np.degrees(quaternion_to_rotvec(turn).norm(dim=-1).numpy())


def summary(rows: list[dict]) -> dict:
    """Means over segments by split, actions by their loss, the worst clips."""
    table: dict = {"segments": len(rows)}
    for split in ("near", "far"):
        here = [row for row in rows if row["split"] == split]
        names = ("codes", "plain", "middle", "legs", "arms", "slow", "fast", "ends", "all joints")
        known = {name: [row[name] for row in here if name in row] for name in names}
        means = {name: round(float(np.mean(values)), 2) for name, values in known.items() if values}
        means["95 %"] = round(float(np.percentile([r["codes"] for r in here], 95)), 2)
        means["place"] = round(float(np.mean([r["place"] for r in here])), 4)
        means["bytes/s"] = round(sum(r["bytes"] for r in here) / sum(r["seconds"] for r in here))
        means["encode ms"] = round(float(np.mean([r["encode ms"] for r in here])), 1)
        means["decode ms"] = round(float(np.mean([r["decode ms"] for r in here])), 1)
        table[split] = means
    actions = defaultdict(list)
    for row in rows:
        actions[row["action"]].append(row["codes"] - row["plain"])
    ranked = sorted(((float(np.mean(v)), k, len(v)) for k, v in actions.items()), reverse=True)
    table["worst actions"] = {k: round(v, 2) for v, k, _ in ranked[:8]}
    worst = sorted(rows, key=lambda row: row["plain"] - row["codes"])[:8]
    table["worst clips"] = {row["clip"]: [round(row["plain"], 2), round(row["codes"], 2)] for row in worst}
    return table


def text_of(table: dict) -> str:
    lines = [f"{table['segments']} segments; degrees per bone between the clip and what comes back"]
    lines += [f"{split}: " + ", ".join(f"{k} {v:g}" for k, v in table[split].items()) for split in ("near", "far")]
    lines += ["lost by codes alone: " + ", ".join(f"{k} {v:g}" for k, v in table["worst actions"].items())]
    lines += ["worst (without, with): " + ", ".join(f"{k} {a:g}, {b:g}" for k, (a, b) in table["worst clips"].items())]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main(tyro.cli(Options))
