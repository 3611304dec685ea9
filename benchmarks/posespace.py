"""What the pose space knows, on rigs it was trained on, on rigs with trained relatives, and on others.

    python benchmarks/posespace.py ../shared/corpus [--weights FILE] [--quick] [--json FILE]

Poses: share of a rig's true poses that a hundred samples come near (20 degrees per bone in the mean), how far samples
are from the nearest true pose, how much they differ among each other against how much true poses do. IK: handles taken
from true poses, against damped least squares and FABRIK from rest and from the pose in which the body carries itself.
In-betweens: keys some frames apart, against shortest turns and cubic curves. Clean-up: joints shaken by 4 % of the
body's length. Clips from words: nearest poses to the artist's clip both ways, alternation of twin feet, speed.
Degrees per bone are angles between bone directions in the frame of the body's heading.
"""

import argparse
import json
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from numpy import ndarray
from scipy.interpolate import CubicSpline

from jigdoll.corpus import Take, character_takes, mocap_takes
from jigdoll.kinematics import forward, motion_to_world, rest_pose
from jigdoll.language.actions import ACTIONS
from jigdoll.language.inflect import inflect
from jigdoll.math.rotations import matrix_to_quaternion
from jigdoll.posespace.draft import DraftOptions, draft_array
from jigdoll.posespace.handles import Handle, handle_gaps, handle_joints, reach_handles
from jigdoll.posespace.inbetween import inbetween, straight
from jigdoll.posespace.network import sample_poses
from jigdoll.posespace.plain import PlainPoseModel
from jigdoll.posespace.project import project
from jigdoll.posespace.rigged import Body, body_of, to_motion
from jigdoll.posespace.solve import solve
from jigdoll.posespace.space import PoseSpace
from jigdoll.posespace.weights import open_space
from jigdoll.rig.retarget.turns import shortest_turns
from jigdoll.types import Motion, Pose
from jigdoll.validators import check, penalty

NEAR = 20.0
"""Poses so many degrees apart count as alike."""
SHAKE = 0.04
"""Noise of the clean-up test [body lengths]."""


@dataclass(frozen=True, eq=False)
class Case:
    """A true clip on a body."""

    take: Take
    body: Body
    split: str
    motion: Motion
    """Rotations and root alone."""


def cases(corpus: Path, per_split: int) -> list[Case]:
    """Clips of each split: artists' characters and actors alternately, few per rig."""
    found: list[Case] = []
    for split in ("train", "near", "far"):
        takes = [*islice(character_takes(corpus, (split,)), 40 if split == "train" else 400)]
        if split != "near":
            takes += [*islice(mocap_takes(corpus, (split,)), 0, 90 if split == "far" else 30, 6)]
        per_rig: dict[str, int] = defaultdict(int)
        kept = []
        for take in takes:
            if per_rig[take.rig] < max(per_split // 6, 2) and len(take.joints) >= 20:
                per_rig[take.rig] += 1
                kept.append(take)
        step = max(len(kept) / per_split, 1)
        for take in [kept[int(i * step)] for i in range(min(per_split, len(kept)))]:
            pose = Pose(take.joints.pose.root, take.joints.pose.rotations)
            found.append(Case(take, body_of(take.anatomy), split, Motion(pose, take.joints.fps, take.joints.name)))
    return found


def directions(body: Body, pose: Pose) -> ndarray:
    """Bone directions [poses bones 3] in the frame of the heading."""
    anatomy = body.anatomy
    T = forward(anatomy.skeleton, pose if pose.root.ndim > 1 else pose[None]).double().numpy()
    ahead = (T[:, anatomy.pelvis, :3, :3] @ anatomy.R_neutral[anatomy.pelvis].T)[:, :, 2]
    angle = np.arctan2(ahead[:, 0], ahead[:, 2])
    c, s = np.cos(angle)[:, None], np.sin(angle)[:, None]
    P = T[..., :3, 3]
    parents = np.array(anatomy.skeleton.parents)
    bones = P[:, 1:] - P[:, parents[1:]]
    long = np.linalg.norm(bones[0], axis=-1) > 0.01 * anatomy.body_length
    bones = bones[:, long]
    x, y, z = np.moveaxis(bones, -1, 0)
    turned = np.stack([c * x - s * z, y, s * x + c * z], -1)
    return turned / np.maximum(np.linalg.norm(turned, axis=-1, keepdims=True), 1e-9)


def degrees(a: ndarray, b: ndarray) -> ndarray:
    """Mean angle per bone between all pairs [deg]."""
    cosine = np.einsum("ikc,jkc->ijk", a, b).clip(-1, 1)
    return np.degrees(np.arccos(cosine)).mean(-1)


def poses(space: PoseSpace, every: Sequence[Case], count: int) -> dict:
    """Samples against true poses of the rig, beside uniform and Gaussian ones."""
    rigs: dict[tuple[str, str], list[Case]] = defaultdict(list)
    for case in every:
        rigs[case.split, case.take.rig].append(case)
    rows = defaultdict(list)
    for (split, _), mine in rigs.items():
        body = mine[0].body
        true = Pose(
            torch.cat([c.motion.pose.root[::5] for c in mine]), torch.cat([c.motion.pose.rotations[::5] for c in mine])
        )
        truth = directions(body, true)
        spread = degrees(truth, truth)[np.triu_indices(len(truth), 1)].mean()
        makers: dict[str, Callable[[], Pose]] = {
            "learned": lambda b=body: sample_poses(space, b, count=count, seed=0),
            "uniform": lambda b=body: PlainPoseModel().sample(b.anatomy, count=count, seed=0),
            "rest": lambda b=body: rest_pose(b.anatomy.skeleton, frames=1),
        }
        for name, make in makers.items():
            drawn = make()
            gap = degrees(truth, directions(body, drawn))
            own = degrees(directions(body, drawn), directions(body, drawn))
            row = {
                "coverage": float((gap.min(1) < NEAR).mean()),
                "to_nearest_true": float(gap.min(0).mean()),
                "from_true": float(gap.min(1).mean()),
                "diversity": float(own[np.triu_indices(len(own), 1)].mean() / max(spread, 1e-6))
                if len(own) > 1
                else 0.0,
            }
            if body.anatomy.asset.has_mesh and len(drawn.root) > 1:
                some = drawn[: min(len(drawn.root), 16)]
                wrong = penalty(check(body.anatomy, some)) > 0
                base = penalty(check(body.anatomy, true[: min(len(true.root), 16)])) > 0
                row |= {"violations": float(wrong.float().mean()), "true_violations": float(base.float().mean())}
            rows[split, name].append(row)
    return _means(rows)


def ik(space: PoseSpace, every: Sequence[Case], per_case: int) -> dict:
    """Other joints' error with 1, 2, 4, 6 handles of true poses."""
    rows = defaultdict(list)
    dice = np.random.default_rng(0)
    for case in every:
        body, length = case.body, case.body.anatomy.body_length
        names = [n for n in handle_joints(body) if n not in ("hips", "chest")]
        still = _natural(body)
        for frame in dice.integers(0, len(case.motion), per_case):
            pose = case.motion.pose[int(frame)]
            P = forward(body.anatomy.skeleton, pose)[..., :3, 3]
            joints = handle_joints(body)
            for count in (1, 2, 4, 6):
                if count > len(names):
                    continue
                chosen = dice.choice(len(names), count, replace=False)
                handles = [Handle(names[i], tuple(P[joints[names[i]]].tolist())) for i in chosen]
                others = [j for j in range(len(P)) if j not in {joints[h.name] for h in handles}]
                rest = Pose(pose.root, rest_pose(body.anatomy.skeleton).rotations)
                calm = Pose(pose.root, still.rotations)
                for start in (rest, calm):
                    start.rotations[0] = pose.rotations[0]
                clock = time.process_time()
                found = solve(space, body, handles, base=pose if count else None)
                took = 1000 * (time.process_time() - clock)
                answers = {
                    "learned": found.pose,
                    "DLS from rest": reach_handles(body, rest, handles),
                    "DLS from natural": reach_handles(body, calm, handles),
                    "FABRIK from natural": fabrik(body, calm, handles),
                }
                for name, answer in answers.items():
                    Q = forward(body.anatomy.skeleton, answer)[..., :3, 3]
                    row = {
                        "others": float((Q - P)[others].norm(dim=-1).mean()) / length,
                        "handles": max(handle_gaps(body, answer, handles).values()) / length,
                    }
                    rows[case.split, f"{count} handles", name].append(row | ({"ms": took} if name == "learned" else {}))
    return _means(rows)


def _natural(body: Body) -> Pose:
    """The pose in which the body carries itself."""
    anatomy = body.anatomy
    rest, R = anatomy.T_rest[:, :3, :3], anatomy.R_neutral
    local = np.empty_like(R)
    for joint, parent in enumerate(anatomy.skeleton.parents):
        above, still = (np.eye(3), rest[joint]) if parent < 0 else (R[parent], rest[parent].T @ rest[joint])
        local[joint] = (above @ still).T @ R[joint]
    return Pose(torch.zeros(3), matrix_to_quaternion(torch.from_numpy(local)).float())


def fabrik(body: Body, pose: Pose, handles: Sequence[Handle], rounds: int = 12) -> Pose:
    """FABRIK on the chain of each handle, from where it leaves the trunk."""
    anatomy, skeleton = body.anatomy, body.anatomy.skeleton
    world = motion_to_world(skeleton, Motion(pose[None], 30.0))[0]
    G, P = world[:, :3, :3].copy(), world[:, :3, 3].copy()
    fixed = set(anatomy.trunk)
    for handle in handles:
        joint = {**handle_joints(body)}.get(handle.name, 0)
        chain = [joint]
        while skeleton.parents[chain[-1]] >= 0 and chain[-1] not in fixed:
            chain.append(skeleton.parents[chain[-1]])
        chain = chain[::-1]
        if len(chain) < 2:
            continue
        X, target, start = P[chain].copy(), np.array(handle.target), P[chain[0]].copy()
        size = np.linalg.norm(np.diff(X, axis=0), axis=1)
        for _ in range(rounds):
            X[-1] = target
            for i in range(len(X) - 2, -1, -1):
                X[i] = X[i + 1] + (X[i] - X[i + 1]) * size[i] / max(np.linalg.norm(X[i] - X[i + 1]), 1e-9)
            X[0] = start
            for i in range(len(X) - 1):
                X[i + 1] = X[i] + (X[i + 1] - X[i]) * size[i] / max(np.linalg.norm(X[i + 1] - X[i]), 1e-9)
        turn = np.eye(3)
        for i in range(len(chain) - 1):
            bone = P[chain[i + 1]] - P[chain[i]]
            turn = shortest_turns((turn @ bone)[None], (X[i + 1] - X[i])[None])[0] @ turn
            G[chain[i]] = turn @ G[chain[i]]
        _carry(skeleton.parents, chain, world, G)
    return _from_world(body, pose, G)


def _carry(parents: Sequence[int], chain: list[int], world: ndarray, G: ndarray) -> None:
    """What hangs on a chain goes with it."""
    for joint, parent in enumerate(parents):
        if parent >= 0 and joint not in chain[:-1]:
            G[joint] = G[parent] @ world[parent, :3, :3].T @ world[joint, :3, :3]


def _from_world(body: Body, pose: Pose, G: ndarray) -> Pose:
    rest = body.anatomy.T_rest[:, :3, :3]
    local = np.empty_like(G)
    for joint, parent in enumerate(body.anatomy.skeleton.parents):
        above, still = (np.eye(3), rest[joint]) if parent < 0 else (G[parent], rest[parent].T @ rest[joint])
        local[joint] = (above @ still).T @ G[joint]
    return Pose(pose.root, matrix_to_quaternion(torch.from_numpy(local)).to(pose.rotations))


def inbetweens(space: PoseSpace, every: Sequence[Case], gaps: Sequence[int]) -> dict:
    """Joint error of made frames against slerp and cubic curves."""
    rows = defaultdict(list)
    for case in every:
        length = case.body.anatomy.body_length
        for gap in gaps:
            span = min(len(case.motion) - 1, 48) // gap * gap
            if span < 2 * gap:
                continue
            clip = Motion(case.motion.pose[: span + 1], case.motion.fps)
            keys = {frame: clip.pose[frame] for frame in range(0, span + 1, gap)}
            P = motion_to_world(case.body.anatomy.skeleton, clip)[..., :3, 3]
            made = {
                "learned": inbetween(space, case.body, keys, fps=clip.fps),
                "slerp": straight(keys, fps=clip.fps),
                "cubic": _cubic(keys, clip.fps),
            }
            group = "gaits" if ACTIONS[case.take.action].gait != "still" else "others"
            for name, motion in made.items():
                Q = motion_to_world(case.body.anatomy.skeleton, motion)[..., :3, 3]
                error = float(np.linalg.norm(Q - P, axis=-1).mean()) / length
                turn = float(np.mean([degrees(a, b)[0, 0] for a, b in _pairs(case.body, motion, clip)]))
                rows[case.split, f"{gap} frames", group, name].append({"joints": error, "degrees": turn})
    return _means(rows)


def _pairs(body: Body, a: Motion, b: Motion) -> Iterator[tuple[ndarray, ndarray]]:
    A, B = directions(body, a.pose), directions(body, b.pose)
    for i in range(0, len(A), 3):
        yield A[i : i + 1], B[i : i + 1]


def _cubic(keys: dict[int, Pose], fps: float) -> Motion:
    """Cubic curves through the keys' quaternions."""
    order = sorted(keys)
    q = torch.stack([keys[k].rotations for k in order]).double()
    for i in range(1, len(q)):
        q[i] = torch.where((q[i] * q[i - 1]).sum(-1, keepdim=True) < 0, -q[i], q[i])
    at = np.arange(order[0], order[-1] + 1)
    turns = torch.from_numpy(CubicSpline(order, q.numpy())(at)).float()
    root = torch.from_numpy(CubicSpline(order, torch.stack([keys[k].root for k in order]).numpy())(at)).float()
    return Motion(Pose(root, torch.nn.functional.normalize(turns, dim=-1)), fps)


def clean_up(space: PoseSpace, every: Sequence[Case]) -> dict:
    """Error of shaken clips before and after, and of limbs that were missing."""
    rows = defaultdict(list)
    for case in every:
        body, clip = case.body, Motion(case.motion.pose[:48], case.motion.fps)
        generator = torch.Generator().manual_seed(0)
        reach = 0.25 * body.anatomy.body_length
        shake = SHAKE * body.anatomy.body_length / max(reach, 1e-6)
        noise = torch.randn(*clip.pose.rotations.shape, generator=generator) * shake / 2
        shaken = Motion(
            Pose(clip.pose.root, torch.nn.functional.normalize(clip.pose.rotations + noise, dim=-1)), clip.fps
        )
        fixed = project(space, body, shaken, strength=0.3, lock=False)
        truth = directions(body, clip.pose)
        for name, motion in (("before", shaken), ("after", fixed)):
            rows[case.split, name].append(
                {"degrees": float(np.mean(np.diag(degrees(truth, directions(body, motion.pose)))))}
            )
    return _means(rows)


def clips(space: PoseSpace, every: Sequence[Case]) -> dict:
    """Clips from words beside the artist's."""
    rows = defaultdict(list)
    for case in every:
        take, body = case.take, case.body
        verb = inflect(ACTIONS[take.action].verbs[0])[1]
        clock = time.process_time()
        values = draft_array(space, body, [f"a {take.noun} {verb}"], DraftOptions(seconds=2.0))
        made = to_motion(body, values.numpy(), fps=30.0)
        took = time.process_time() - clock
        A, B = directions(body, made.pose[::3]), directions(body, case.motion.pose[::2])
        gap = degrees(A, B)
        still = degrees(B, directions(body, rest_pose(body.anatomy.skeleton, frames=1)))
        row = {
            "ours_to_artist": float(gap.min(1).mean()), "artist_to_ours": float(gap.min(0).mean()),
            "artist_to_rest": float(still.mean()), "seconds_per_clip": took,
            "speed": float(values[0, :, 49].mean()), "nearer_than_rest": float(gap.min(0).mean() < still.mean()),
        }  # fmt: skip
        twins = alternation(body, made)
        if twins is not None and ACTIONS[take.action].gait in ("walk", "run"):
            row |= {"alternation": twins, "true_alternation": alternation(body, case.motion) or 0.0}
        rows[case.split, take.anatomy.kind].append(row)
        rows[case.split, "all"].append(row)
    return _means(rows)


def alternation(body: Body, motion: Motion) -> float | None:
    """The mean correlation of twin feet along the body; -1 where they take turns."""
    P = motion_to_world(body.anatomy.skeleton, motion)[..., :3, 3]
    ends = {(leg.parts.limb.side, leg.parts.limb.rank): leg.parts.end for leg in body.anatomy.legs}
    found = []
    for (side, rank), left in ends.items():
        right = ends.get(("right", rank))
        if side == "left" and right is not None:
            a, b = (P[:, j, 2] - P[:, body.anatomy.pelvis, 2] for j in (left, right))
            if a.std() > 1e-4 and b.std() > 1e-4:
                found.append(float(np.corrcoef(a, b)[0, 1]))
    return float(np.mean(found)) if found else None


def _means(rows: dict) -> dict:
    """Means per group, with how many cases there were."""
    table = {}
    for key, mine in rows.items():
        names = sorted({name for row in mine for name in row})
        means = {name: round(float(np.mean([row[name] for row in mine if name in row])), 4) for name in names}
        table[" | ".join(key)] = means | {"n": len(mine)}
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--cases", type=int, default=24)
    parser.add_argument("--only", nargs="*", default=["poses", "ik", "inbetweens", "clean_up", "clips"])
    parser.add_argument("--json", type=Path)
    words = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    space = open_space(words.weights)
    every = cases(words.corpus, 4 if words.quick else words.cases)
    work = {
        "poses": lambda: poses(space, every, 20 if words.quick else 100),
        "ik": lambda: ik(space, every, 1 if words.quick else 3),
        "inbetweens": lambda: inbetweens(space, every, (12,) if words.quick else (6, 12, 24)),
        "clean_up": lambda: clean_up(space, every),
        "clips": lambda: clips(space, every),
    }
    facts = {key: space.facts.get(key) for key in ("updates", "seconds")}
    table: dict = {"weights": facts | {"parameters": sum(p.numel() for p in space.net.parameters())}}
    sys.stdout.write(json.dumps(table) + "\n")
    for name in words.only:
        clock = time.process_time()
        table[name] = work[name]()
        sys.stdout.write(f"\n{name} ({time.process_time() - clock:.0f} s)\n")
        for key, row in table[name].items():
            sys.stdout.write(f"  {key:40s} " + "  ".join(f"{k} {v}" for k, v in row.items()) + "\n")
        sys.stdout.flush()
    if words.json:
        words.json.write_text(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()
