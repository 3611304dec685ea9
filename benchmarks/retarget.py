"""How true is retargeting, and do feet stay where they stand?

    python benchmarks/retarget.py --corpus FOLDER [--quick] [--json FILE] [--only sisters]

Angles are means over frames and over the bones of limbs, trunk, neck and tail: between the direction of a bone and its
direction in the truth, both in the frame of the body's heading.

- `same`: encode and decode on one rig, 50 clips.
- `changed`: one rig with other proportions, rest pose, joint count, joint frames and no names; its own clip is true.
- `people`: CMU clips on six humanoid skeletons and back.
- `sisters`: clips of one animal on another whose artist made the same action: each pose against the nearest one of the
  artist's clip, both ways. Beside it plain copying: each joint turns as much since rest as the joint at its place in
  the other body's limb, which is what one writes first.
- `far`: rigs that have little in common, beside their rest pose.

Feet are measured on every retargeted clip: how far a foot's pivot goes within a stance, how deep a sole is below the
ground, and how high above it where the source stands, all in leg lengths.
"""

import json as json_module
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np
import torch
import tyro
from rich.console import Console
from rich.table import Table

from jigdoll.asset.load import load, load_clips
from jigdoll.errors import JigdollError, RepairWarning
from jigdoll.formats.rest import motion_asset, skeleton_of
from jigdoll.kinematics import motion_to_world, rest_pose
from jigdoll.math.rotations import matrix_to_quaternion
from jigdoll.rig.anatomy import Anatomy, anatomy_of
from jigdoll.rig.reparent import Reparented, reparent, to_reparented
from jigdoll.rig.retarget import decode, encode
from jigdoll.rig.retarget.decode import stances
from jigdoll.rig.retarget.feet import runs
from jigdoll.rig.retarget.limb_motion import LimbMotion, heading_of, yaw
from jigdoll.rig.retarget.standing import feet_of
from jigdoll.rig.retarget.turns import from_rotvec
from jigdoll.types import Motion, Pose, RiggedAsset

HERE = Path(__file__).resolve().parent
ANIMALS, DINOSAURS = "quaternius/animals_pack", "quaternius/dinosaurs_pack"
SISTERS = {
    ANIMALS: (
        ("Wolf", "Fox", "Husky", "Horse", "Cow", "Deer", "Bull", "Donkey"),
        ("Walk", "Gallop", "Death", "Eating"),
    ),
    DINOSAURS: (("Triceratops", "Stegosaurus", "Apatosaurus"), ("Walk", "Run", "Attack", "Death")),
}
PEOPLE = (
    "khronos/CesiumMan.glb",
    "khronos/RiggedFigure.glb",
    "mesh2motion/human-male.glb",
    "quaternius/single_knight_pack/KnightCharacter.glb",
    "quaternius/modular_men/Farmer.glb",
    "quaternius/cyberpunk_pack/Character.glb",
)
CMU = ("cmu_001_021.zip:07_05", "cmu_001_021.zip:13_17", "cmu_001_021.zip:16_08", "cmu_001_021.zip:13_30")
CHANGED = (
    f"{ANIMALS}/Wolf.glb:Gallop",
    f"{ANIMALS}/Horse.glb:Walk",
    f"{DINOSAURS}/Trex.glb:Run",
    f"{DINOSAURS}/Stegosaurus.glb:Walk",
    "quaternius/easy_enemies_pack/Spider.glb:Walk",
    "quaternius/single_knight_pack/KnightCharacter.glb:Walk",
    "quaternius/cyberpunk_pack/Character.glb:Run",
    "quaternius/fish_pack/Shark.glb:Swim",
)
FAR = (
    ("khronos/Fox.glb", "Walk", f"{ANIMALS}/Wolf.glb:Walk"),
    ("mesh2motion/horse-animations.glb", "Run", f"{ANIMALS}/Horse.glb:Gallop"),
    ("quaternius/robot/RobotExpressive.glb", "Walking", "cmu:cmu_001_021.zip:07_05"),
    ("khronos/CesiumMan.glb", "", "cmu:cmu_001_021.zip:07_05"),
    ("kenney/mini_characters/character-female-a.glb", "walk", "cmu:cmu_001_021.zip:07_05"),
    ("quaternius/fish_pack/Shark.glb", "Swim", "quaternius/cute_fish_pack/Shark.glb:Swimming_Normal"),
    ("quaternius/fish_pack/Fish1.glb", "Swim", "quaternius/cute_fish_pack/Anglerfish.glb:Swimming_Normal"),
)
Section = Literal["same", "changed", "people", "sisters", "far"]


@dataclass(frozen=True)
class Options:
    """What to measure."""

    corpus: Path = HERE.parents[1] / "shared" / "corpus"
    """The folder with `characters` and `motion`."""
    quick: bool = False
    """A few cases of each kind."""
    only: tuple[Section, ...] = ("same", "changed", "people", "sisters", "far")
    json: Path | None = None
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Body:
    """A character with its working copy and its measures."""

    asset: RiggedAsset
    copy: Reparented
    anatomy: Anatomy


# Measures


def bones(anatomy: Anatomy) -> list[tuple[int, int]]:
    """The bones of limbs, trunk, neck and tail that are long enough to have a direction."""
    P = anatomy.T_rest[:, :3, 3]
    chains = [limb.joints for limb in anatomy.limbs]
    found = {pair for chain in chains for pair in pairwise(chain)}
    return sorted((a, b) for a, b in found if np.linalg.norm(P[b] - P[a]) > 0.02 * anatomy.body_length)


def directions(anatomy: Anatomy, motion: Motion, pairs: list[tuple[int, int]]) -> np.ndarray:
    """Unit directions [frames bones 3] in the frame of the heading."""
    world = motion_to_world(anatomy.skeleton, motion)
    hub = anatomy.pelvis
    turned = world[:, hub, :3, :3] @ anatomy.R_neutral[hub].T
    H = yaw(heading_of(turned, motion.fps))
    P = world[..., :3, 3]
    way = np.stack([P[:, b] - P[:, a] for a, b in pairs], 1)
    way = np.einsum("fba,fjb->fja", H, way)
    return way / np.maximum(np.linalg.norm(way, axis=-1, keepdims=True), 1e-12)


def degrees(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Angles between directions."""
    return np.degrees(np.arctan2(np.linalg.norm(np.cross(a, b), axis=-1), (a * b).sum(-1)))


def nearest(a: np.ndarray, b: np.ndarray) -> float:
    """Mean angle between each pose and the nearest one of the other clip, both ways."""
    cross = np.stack([degrees(a[i][None], b).mean(-1) for i in range(len(a))])
    return float(0.5 * (cross.min(1).mean() + cross.min(0).mean()))


def feet(body: Body, limb_motion: LimbMotion, motion: Motion) -> dict[str, float]:
    """Worst drift in a stance, deepest sole, highest standing sole [leg lengths]."""
    anatomy = body.anatomy
    if not anatomy.legs or not limb_motion.grounded:
        return {}
    world = motion_to_world(anatomy.skeleton, motion)
    found = feet_of(anatomy, world, motion.fps)
    stands = stances(limb_motion, anatomy)
    low = found.soles[..., 1].amin(-1).numpy()
    joints = found.joints.numpy()
    drift = 0.0
    for i in range(len(anatomy.legs)):
        for first, last in runs(stands[:, i]):
            place = joints[first:last, i][:, [0, 2]]
            drift = max(drift, float(np.linalg.norm(place - place.mean(0), axis=1).max()))
    unit = anatomy.leg_length
    floating = low[stands].max() if stands.any() else 0.0
    return {"drift": drift / unit, "depth": max(-float(low.min()), 0.0) / unit, "float": max(floating, 0.0) / unit}


# Cases


class Corpus:
    """The files, opened once each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.body = lru_cache(maxsize=64)(self._body)

    def _body(self, name: str) -> Body:
        if name.startswith("cmu:"):
            asset = load_clips(f"{self.folder}/motion/cmu/{name[4:]}")
        else:
            asset = load(self.folder / "characters" / name)
        return whole(asset)

    def clip(self, word: str) -> tuple[Body, Motion]:
        """A body and its clip: FILE:CLIP, or cmu:ZIP:NAME."""
        if word.startswith("cmu:"):
            body = self.body(word)
            return body, next(iter(body.asset.clips.values()))
        file, _, name = word.rpartition(":")
        body = self.body(file)
        return body, named_clip(body.asset, name)


def whole(asset: RiggedAsset) -> Body:
    copy = reparent(asset)
    return Body(asset, copy, anatomy_of(copy.asset))


def named_clip(asset: RiggedAsset, name: str) -> Motion:
    """The clip whose name ends so, else the first that holds the word."""
    clips = asset.clips
    ends = [clip for key, clip in clips.items() if key.replace("|", "_").split("_")[-1].lower() == name.lower()]
    holds = [clip for key, clip in clips.items() if name.lower() in key.lower()]
    if not ends and not holds:
        raise JigdollError(f"{asset.name} has no clip {name!r}; its clips are {', '.join(clips)}")
    return (ends or holds)[0]


def same(corpus: Corpus, options: Options) -> Iterator[dict]:
    """Encode and decode on one rig."""
    files = sorted((corpus.folder / "characters" / "quaternius").glob("*/*.glb"))
    wanted, done = (6, 0) if options.quick else (50, 0)
    for file in files[:: max(len(files) // wanted, 1)]:
        body = corpus.body(str(file.relative_to(corpus.folder / "characters")))
        for clip in list(body.asset.clips.values())[: 1 if options.quick else 2]:
            if len(clip) < 4 or done >= wanted:
                continue
            moved = to_reparented(body.copy, clip)
            limb_motion = encode(body.anatomy, moved)
            again = decode(limb_motion, body.anatomy)
            pairs = bones(body.anatomy)
            angle = degrees(directions(body.anatomy, moved, pairs), directions(body.anatomy, again, pairs))
            done += 1
            name = f"{file.stem}:{clip.name.split('|')[-1]}"
            yield {"case": name, "degrees": float(angle.mean()), **feet(body, limb_motion, again)}


def changed(corpus: Corpus, options: Options) -> Iterator[dict]:
    """One rig, changed at random, with its own clip."""
    rng = np.random.default_rng(options.seed)
    for word in CHANGED[:3] if options.quick else CHANGED:
        body, clip = corpus.clip(word)
        motion = to_reparented(body.copy, clip)
        bare = anatomy_of(replace(body.copy.asset, clips={}))  # the other rig has no idle clip to show its carriage
        body = replace(body, anatomy=bare)
        for case in range(1 if options.quick else 4):
            skeleton, joints = change(body.anatomy, rng)
            other = whole(motion_asset("changed", skeleton, {}))
            limb_motion = encode(body.anatomy, motion)
            moved = decode(limb_motion, other.anatomy)
            pairs = bones(body.anatomy)
            where = {j: i for i, j in enumerate(other.copy.joints)}
            theirs = [(where[joints[a]], where[joints[b]]) for a, b in pairs]
            truth, ours = directions(body.anatomy, motion, pairs), directions(other.anatomy, moved, theirs)
            angle = degrees(truth, ours).mean()
            yield {"case": f"{word} {case}", "degrees": float(angle), **feet(other, limb_motion, moved)}


def change(anatomy: Anatomy, rng: np.random.Generator):
    """Another skeleton of the same body, and where its joints went."""
    skeleton, T = anatomy.skeleton, anatomy.T_rest
    P, kids = T[:, :3, 3], skeleton.children
    factor = np.ones(len(skeleton))
    lengths = {kind: rng.uniform(0.75, 1.3) for kind in ("leg", "arm", "wing", "fin", "head", "tail", "spine")}
    for limb in anatomy.limbs:
        factor[list(limb.joints[1:])] = lengths[limb.kind]
    turn = np.tile(np.eye(3), (len(skeleton), 1, 1))
    lift = rng.uniform(-0.6, 0.9)
    for parts in anatomy.parts:
        if parts.limb.kind == "arm" and anatomy.kind == "person":  # towards a T pose, or down
            side = 1.0 if parts.limb.side == "left" else -1.0
            below = [parts.root]
            for joint in below:
                below += kids[joint]
            turn[below] = from_rotvec(np.array([0.0, 0.0, side * lift]))
    new = P.copy()
    for joint, parent in enumerate(skeleton.parents):
        if parent >= 0:
            new[joint] = new[parent] + factor[joint] * turn[parent] @ (P[joint] - P[parent])
    new[:, 1] += P[:, 1].min() - new[:, 1].min()
    parents, places, joints = [], [], []
    for joint, parent in enumerate(skeleton.parents):
        above = joints[parent] if parent >= 0 else -1
        if parent >= 0 and len(kids[parent]) == 1 and rng.random() < 0.25:
            parents.append(above)
            places.append(0.5 * (new[parent] + new[joint]))
            above = len(parents) - 1
        parents.append(above)
        places.append(new[joint])
        joints.append(len(parents) - 1)
    world = np.tile(np.eye(4), (len(parents), 1, 1))
    world[:, :3, :3] = from_rotvec(rng.normal(size=(len(parents), 3)))
    world[:, :3, 3] = places
    names = [f"bone_{i}" for i in rng.permutation(len(parents))]
    return skeleton_of(names, tuple(parents), world), joints


def people(corpus: Corpus, options: Options) -> Iterator[dict]:
    """CMU clips on other people and back."""
    for word in CMU[:1] if options.quick else CMU:
        body, clip = corpus.clip(f"cmu:{word}")
        motion = to_reparented(body.copy, clip)
        pairs = bones(body.anatomy)
        there = encode(body.anatomy, motion)
        for name in PEOPLE:
            other = corpus.body(name)
            moved = decode(there, other.anatomy)
            back = decode(encode(other.anatomy, moved), body.anatomy)
            angle = degrees(directions(body.anatomy, motion, pairs), directions(body.anatomy, back, pairs))
            case = f"{word.split(':')[1]} on {Path(name).stem}"
            yield {"case": case, "degrees": float(angle.mean()), **feet(other, there, moved)}


def sisters(corpus: Corpus, options: Options) -> Iterator[dict]:
    """One animal's clip on another whose artist made the same."""
    for folder, (names, actions) in SISTERS.items():
        for mine, theirs in pairwise((*names, names[0])):
            for action in actions[:1] if options.quick else actions:
                source, clip = corpus.clip(f"{folder}/{theirs}.glb:{action}")
                target, own = corpus.clip(f"{folder}/{mine}.glb:{action}")
                yield against(f"{mine} < {theirs} {action}", target, own, source, clip)


def far(corpus: Corpus, options: Options) -> Iterator[dict]:
    """Rigs with little in common."""
    for name, action, word in FAR[:2] if options.quick else FAR:
        source, clip = corpus.clip(word)
        target = corpus.body(name)
        yield against(
            f"{Path(name).stem} < {word.split('/')[-1]}", target, named_clip(target.asset, action), source, clip
        )


def against(case: str, target: Body, own: Motion, source: Body, clip: Motion) -> dict:
    """A retargeted clip against the artist's own, beside plain copying and the rest pose."""
    anatomy, pairs = target.anatomy, bones(target.anatomy)
    limb_motion = encode(source.anatomy, to_reparented(source.copy, clip))
    moved = decode(limb_motion, anatomy)
    truth = directions(anatomy, to_reparented(target.copy, own), pairs)
    still = Motion(rest_pose(anatomy.skeleton, frames=2), 30.0)
    plain = copied(source, to_reparented(source.copy, clip), target)
    return {
        "case": case,
        "degrees": nearest(directions(anatomy, moved, pairs), truth),
        "plain": nearest(directions(anatomy, plain, pairs), truth),
        "rest": nearest(directions(anatomy, still, pairs), truth),
        **feet(target, limb_motion, moved),
    }


def copied(source: Body, motion: Motion, target: Body) -> Motion:
    """The rival: each joint turns as much since rest as the joint at its place in the other body's limb."""
    world = motion_to_world(source.anatomy.skeleton, motion)[..., :3, :3]
    turned = world @ source.anatomy.T_rest[:, :3, :3].transpose(0, 2, 1)
    twins = {0: 0}
    known = {(limb.kind, limb.side, limb.rank): limb.joints for limb in source.anatomy.limbs}
    for limb in target.anatomy.limbs:
        theirs = known.get((limb.kind, limb.side, limb.rank), ())
        for i, joint in enumerate(limb.joints if theirs else ()):
            twins.setdefault(joint, theirs[round(i / max(len(limb.joints) - 1, 1) * (len(theirs) - 1))])
    skeleton, R = target.anatomy.skeleton, target.anatomy.T_rest[:, :3, :3]
    G = np.empty((len(motion), len(skeleton), 3, 3))
    local = np.empty_like(G)
    for joint, parent in enumerate(skeleton.parents):
        above = np.eye(3) if parent < 0 else G[:, parent] @ R[parent].T
        G[:, joint] = turned[:, twins[joint]] @ R[joint] if joint in twins else above @ R[joint]
        local[:, joint] = np.swapaxes(above @ R[joint], -1, -2) @ G[:, joint]
    scale = target.anatomy.leg_length / source.anatomy.leg_length
    rotations = matrix_to_quaternion(torch.from_numpy(local)).float()
    return Motion(Pose(scale * motion.pose.root, rotations), motion.fps, motion.name)


SECTIONS: dict[Section, Callable[[Corpus, Options], Iterator[dict]]] = {
    "same": same,
    "changed": changed,
    "people": people,
    "sisters": sisters,
    "far": far,
}


def main(options: Options) -> None:
    """Print the tables."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", RepairWarning)
    console, corpus, facts = Console(width=110), Corpus(options.corpus), {}
    if not (options.corpus / "characters").is_dir():
        console.print(f"nothing to measure: {options.corpus} has no characters", highlight=False)
        return
    for section in options.only:
        start, rows = time.process_time(), []
        try:
            for row in SECTIONS[section](corpus, options):
                rows.append(row)
        except JigdollError as error:
            console.print(f"{section}: {error}", style="red", highlight=False)
        facts[section] = rows
        show(console, section, rows, time.process_time() - start)
    if options.json:
        options.json.write_text(json_module.dumps(facts, indent=1))


def show(console: Console, section: str, rows: list[dict], seconds: float) -> None:
    columns = ("degrees", "plain", "rest", "drift", "depth", "float")
    columns = [column for column in columns if any(column in row for row in rows)]
    table = Table("case", *columns, title=f"{section}: {len(rows)} clips, {seconds:.0f} CPU s")
    for row in rows:
        table.add_row(row["case"], *(f"{row[c]:.3f}" if c in row else "" for c in columns))
    mean = [f"{np.mean([row[c] for row in rows if c in row]):.3f}" for c in columns]
    worst = [f"{np.max([row[c] for row in rows if c in row]):.3f}" for c in columns]
    table.add_section()
    table.add_row("mean", *mean)
    table.add_row("worst", *worst)
    console.print(table)


if __name__ == "__main__":
    main(tyro.cli(Options))
