"""What the pose space knows, on rigs it was trained on, on rigs with trained relatives, and on others.

    python benchmarks/posespace.py ../shared/corpus [--weights FILE] [--quick] [--json FILE]

Poses: share of a rig's true poses that a hundred samples come near (20 degrees per bone in the mean), how far samples
are from the nearest true pose, how much they differ among each other (spread; of the true poses: row `true`). IK:
handles taken from true poses, against damped least squares and FABRIK from rest and from the pose in which the body
carries itself, and Blender's own. In-betweens: keys some frames apart, against shortest turns and cubic curves.
Clean-up: joints shaken by 4 % of the body's length, limbs that are missing. Clips from words: nearest poses to the
artist's clip both ways, alternation of twin feet, speed, what the referee hears. Score: true against shaken and random.
Degrees per bone are angles between bone directions in the frame of the body's heading.
"""

import argparse
import json
import os
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from numpy import ndarray

from jigdoll.corpus import Take, character_takes, mocap_takes
from jigdoll.judge.referee import name_action, open_referee
from jigdoll.kinematics import forward, motion_to_world, rest_pose
from jigdoll.language.actions import ACTIONS
from jigdoll.language.inflect import inflect
from jigdoll.memory.segments import open_memory
from jigdoll.posespace.draft import DraftOptions, draft_array
from jigdoll.posespace.handles import Handle, handle_gaps, handle_joints, reach_handles
from jigdoll.posespace.inbetween import inbetween, straight
from jigdoll.posespace.network import NetworkPoseModel, sample_poses
from jigdoll.posespace.plain import PlainPoseModel
from jigdoll.posespace.project import project, score_motion
from jigdoll.posespace.rigged import Body, body_of, natural_pose, to_motion, to_poses
from jigdoll.posespace.solve import solve
from jigdoll.posespace.space import PoseSpace
from jigdoll.posespace.weights import open_space
from jigdoll.rig.anatomy import anatomy_of
from jigdoll.rig.retarget.limb_motion import encode
from jigdoll.types import Motion, Pose
from jigdoll.validators import VALIDATORS, check, penalty, prepare
from parts.pose_peers import (
    blender_case,
    blender_places,
    cubic,
    fabrik,
    gaussian_poses,
    relatives_poses,
)
from parts.pose_vae import open_vae
from parts.pose_vae import sample as vae_sample

NEAR = 20.0
"""Poses so many degrees apart count as alike."""
SHAKE = 0.27
"""Noise of the clean-up test: about 4 % of the body's length at the end of a limb [rad]."""


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


def poses(space: PoseSpace, every: Sequence[Case], count: int, vae: Path | None) -> dict:
    """Samples against true poses of the rig, beside other ways to draw poses."""
    rigs: dict[tuple[str, str], list[Case]] = defaultdict(list)
    for case in every:
        rigs[case.split, case.take.rig].append(case)
    rows = defaultdict(list)
    memory, peer = open_memory(), open_vae(vae) if vae else None
    for (split, _), mine in rigs.items():
        body = mine[0].body
        true = Pose(
            torch.cat([c.motion.pose.root[::5] for c in mine]), torch.cat([c.motion.pose.rotations[::5] for c in mine])
        )
        truth = directions(body, true)
        makers: dict[str, Callable[[], Pose]] = {
            "learned": lambda b=body: sample_poses(space, b, count=count, seed=0),
            "nameless": lambda b=body: _nameless_poses(space, b, count),
            "uniform": lambda b=body: PlainPoseModel().sample(b.anatomy, count=count, seed=0),
            "gaussian": lambda b=body: gaussian_poses(space, b, count, 0),
            "relatives": lambda b=body: relatives_poses(memory, b, count, 0),
            "rest": lambda b=body: rest_pose(b.anatomy.skeleton, frames=1),
            "true": lambda p=true: p,
        }
        if peer:
            makers["vae"] = lambda b=body, p=peer: to_poses(b, vae_sample(*p, b.figure, count, 0).numpy())
        for name, make in makers.items():
            rows[split, name].append(_pose_row(body, truth, make()))
    return _means(rows)


def _pose_row(body: Body, truth: ndarray, drawn: Pose) -> dict[str, float]:
    ours = directions(body, drawn)
    gap, own = degrees(truth, ours), degrees(ours, ours)
    row = {
        "coverage": float((gap.min(1) < NEAR).mean()),
        "to_nearest_true": float(gap.min(0).mean()),
        "from_true": float(gap.min(1).mean()),
    }
    if len(own) > 1:
        row["spread"] = float(own[np.triu_indices(len(own), 1)].mean())
    if body.anatomy.asset.has_mesh and len(drawn.root) > 1:
        some = drawn[:: max(len(drawn.root) // 24, 1)]
        found = check(body.anatomy, some)
        contact = next(v for v in VALIDATORS if v.name == "self_contact")
        row["violations"] = float((penalty(found) > 0).float().mean())
        row["intersections"] = float((found["self_contact"] > contact.tolerance).float().mean())
    return row


def _nameless_poses(space: PoseSpace, body: Body, count: int) -> Pose:
    """Samples for the same rig with all joints called bone_0, bone_1 ...: limbs are then found by shape alone."""
    asset = body.anatomy.asset
    names = tuple(f"bone_{i}" for i in range(len(asset.skeleton)))
    bare = replace(asset, skeleton=replace(asset.skeleton, names=names))
    return sample_poses(space, body_of(anatomy_of(bare)), count=count, seed=0)


def ik(space: PoseSpace, every: Sequence[Case], per_case: int, blender: Path | None) -> dict:
    """Other joints' error with 1, 2, 4, 6 handles of true poses."""
    rows, asked = defaultdict(list), []
    dice = np.random.default_rng(0)
    for case in every:
        body, length = case.body, case.body.anatomy.body_length
        joints = handle_joints(body)
        names = [n for n in joints if n not in ("hips", "chest")]
        still = natural_pose(body)
        for frame in dice.integers(0, len(case.motion), per_case):
            pose = case.motion.pose[int(frame)]
            P = forward(body.anatomy.skeleton, pose)[..., :3, 3]
            for count in (1, 2, 4, 6):
                if count > len(names):
                    continue
                chosen = dice.choice(len(names), count, replace=False)
                handles = [Handle(names[i], tuple(P[joints[names[i]]].tolist())) for i in chosen]
                rest = Pose(pose.root, rest_pose(body.anatomy.skeleton).rotations)
                calm = Pose(pose.root, still.rotations.clone())
                for start in (rest, calm):
                    start.rotations[0] = pose.rotations[0]
                clock = time.process_time()
                found = solve(space, body, handles, base=pose)
                took = 1000 * (time.process_time() - clock)
                others = [j for j in range(len(P)) if j not in {joints[h.name] for h in handles}]
                answers = {
                    "learned": found.pose,
                    "DLS from rest": reach_handles(body, rest, handles),
                    "DLS from natural": reach_handles(body, calm, handles),
                    "FABRIK from natural": fabrik(body, calm, handles),
                }
                key = case.split, f"{count} handles"
                for name, answer in answers.items():
                    Q = forward(body.anatomy.skeleton, answer)[..., :3, 3]
                    row = {
                        "others": float((Q - P)[others].norm(dim=-1).mean()) / length,
                        "handles": max(handle_gaps(body, answer, handles).values()) / length,
                    }
                    row |= {"ms": took} if name == "learned" else {}
                    rows[*key, name].append(row)
                    rows[*key, name, case.take.anatomy.kind].append(row)
                asked.append((key, blender_case(body, pose, handles), P.numpy(), others, length))
    if blender:
        for (key, (told, _), P, others, length), Q in zip(
            asked, blender_places(blender, [one for _, one, *_ in asked]), strict=True
        ):
            off = np.linalg.norm(Q - P, axis=1) / length
            reached = max((off[h["joint"]] for h in told["handles"]), default=0.0)
            rows[*key, "Blender from rest"].append({"others": float(off[others].mean()), "handles": float(reached)})
    return _means(rows)


def inbetweens(space: PoseSpace, every: Sequence[Case], gaps: Sequence[int]) -> dict:
    """Joint error of made frames against slerp and cubic curves."""
    rows = defaultdict(list)
    for case in every:
        body = prepare(case.body.anatomy) if case.body.anatomy.asset.has_mesh else None
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
                "cubic": cubic(keys, clip.fps),
            }
            group = "gaits" if ACTIONS[case.take.action].gait != "still" else "others"
            for name, motion in made.items():
                Q = motion_to_world(case.body.anatomy.skeleton, motion)[..., :3, 3]
                error = float(np.linalg.norm(Q - P, axis=-1).mean()) / length
                turn = float(np.mean([degrees(a, b)[0, 0] for a, b in _pairs(case.body, motion, clip)]))
                row = {"joints": error, "degrees": turn}
                if body is not None:
                    row["violations"] = float((penalty(check(body, motion)) > 0).float().mean())
                rows[case.split, f"{gap} frames", group, name].append(row)
                rows[case.split, f"{gap} frames", "all", name].append(row)
    return _means(rows)


def _pairs(body: Body, a: Motion, b: Motion) -> Iterator[tuple[ndarray, ndarray]]:
    A, B = directions(body, a.pose), directions(body, b.pose)
    for i in range(0, len(A), 3):
        yield A[i : i + 1], B[i : i + 1]


def clean_up(space: PoseSpace, every: Sequence[Case]) -> dict:
    """Error of shaken clips before and after, and of limbs that were missing."""
    rows = defaultdict(list)
    for case in every:
        body, clip = case.body, Motion(case.motion.pose[:48], case.motion.fps)
        noisy = shaken(clip, SHAKE)
        fixed = project(space, body, noisy, strength=0.3, lock=False)
        truth = directions(body, clip.pose)
        for name, motion in (("before", noisy), ("after", fixed)):
            rows[case.split, name].append(
                {"degrees": float(np.mean(np.diag(degrees(truth, directions(body, motion.pose)))))}
            )
        if body.anatomy.parts:
            rows[case.split, "missing limb"].append(_made_up(space, body, clip))
    return _means(rows)


def _made_up(space: PoseSpace, body: Body, clip: Motion) -> dict[str, float]:
    """A limb that is not told, made up from the others, beside one that hangs as at rest [body lengths]."""
    parts = body.anatomy.parts[0]
    mine = list(parts.limb.joints)
    P = motion_to_world(body.anatomy.skeleton, clip)[..., :3, 3]
    hung = clip.pose.rotations.clone()
    hung[:, mine] = natural_pose(body).rotations[mine]
    made = project(space, body, clip, missing=[parts.name], lock=False)
    row = {}
    for name, motion in (("learned", made), ("hanging", Motion(Pose(clip.pose.root, hung), clip.fps))):
        Q = motion_to_world(body.anatomy.skeleton, motion)[..., :3, 3]
        here = [A[:, mine] - A[:, body.anatomy.pelvis][:, None] for A in (P[: len(Q)], Q)]
        row[name] = float(np.linalg.norm(here[0] - here[1], axis=-1).mean()) / body.anatomy.body_length
    return row


def score(space: PoseSpace, every: Sequence[Case]) -> dict:
    """How well the score tells true clips from shaken ones and true poses from random ones: area under the curve."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    model = NetworkPoseModel(space)
    for case in every:
        clip = Motion(case.motion.pose[:48], case.motion.fps)
        for angle in (10, 25):
            found[case.split, f"clips shaken by {angle} degrees"] += score_motion(
                space, case.body, shaken(clip, np.radians(angle))
            ).tolist()
        found[case.split, "clips"] += score_motion(space, case.body, clip).tolist()
        some = clip.pose[:: max(len(clip) // 6, 1)]
        drawn = PlainPoseModel().sample(case.body.anatomy, count=len(some.root), seed=0)
        found[case.split, "poses"] += model.score(case.body.anatomy, some).tolist()
        found[case.split, "poses drawn from the limits"] += model.score(case.body.anatomy, drawn).tolist()
    table = {}
    for (split, name), values in found.items():
        true = found[split, "clips" if name.startswith("clips") else "poses"]
        gap = np.subtract.outer(np.array(values), np.array(true))
        area = float((gap > 0).mean() + (gap == 0).mean() / 2)
        table[f"{split} | {name}"] = {"median": round(float(np.median(values)), 4), "AUC": round(area, 3)}
    return table


def shaken(clip: Motion, angle: float) -> Motion:
    """Every joint turned by about so much [rad] about a random axis, in every frame anew."""
    noise = torch.randn(*clip.pose.rotations.shape, generator=torch.Generator().manual_seed(0))
    turned = torch.nn.functional.normalize(clip.pose.rotations + noise * np.sin(angle / 2) / 1.7, dim=-1)
    return Motion(Pose(clip.pose.root, turned), clip.fps)


def clips(space: PoseSpace, every: Sequence[Case]) -> dict:
    """Clips from words beside the artist's."""
    rows, referee = defaultdict(list), open_referee()
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
        heard = name_action(referee, encode(body.anatomy, made))
        if take.action in heard:
            row["named"] = float(max(heard, key=lambda name: heard[name]) == take.action)
            theirs = name_action(referee, take.motion)
            row["true_named"] = float(max(theirs, key=lambda name: theirs[name]) == take.action)
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
    parser.add_argument("--only", nargs="*", default=["poses", "ik", "inbetweens", "clean_up", "clips", "score"])
    parser.add_argument("--vae", type=Path, help="made by benchmarks/parts/pose_vae.py")
    parser.add_argument("--blender", type=Path, default=os.environ.get("JIGDOLL_BLENDER_PYTHON"))
    parser.add_argument("--json", type=Path)
    words = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    space = open_space(words.weights)
    every = cases(words.corpus, 4 if words.quick else words.cases)
    work = {
        "poses": lambda: poses(space, every, 20 if words.quick else 100, words.vae),
        "ik": lambda: ik(space, every, 1 if words.quick else 3, words.blender),
        "inbetweens": lambda: inbetweens(space, every, (12,) if words.quick else (6, 12, 24)),
        "clean_up": lambda: clean_up(space, every),
        "clips": lambda: clips(space, every),
        "score": lambda: score(space, every),
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
