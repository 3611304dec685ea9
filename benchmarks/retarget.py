"""How true is retargeting, and do feet stay where they stand?

    python benchmarks/retarget.py --corpus FOLDER [--quick] [--json FILE] [--only sisters]

Angles are means over frames and over the bones of limbs, trunk, neck and tail: between the direction of a bone and its
direction in the truth, both in the frame of the body's heading.

- `same`: encode and decode on one rig, 200 clips.
- `changed`: one rig with other proportions, rest pose, joint count, joint frames and no names, 200 cases; its own clip
  is true.
- `people`: CMU clips on six humanoid skeletons and back.
- `sisters`: clips of one animal on another whose artist made the same action: each pose against the nearest one of the
  artist's clip, both ways; also without the feet's lock, as artists' feet slide. Beside it plain copying: each joint
  turns as much since rest as the joint at its place in the other body's limb, which is what one writes first.
- `far`: rigs that have little in common, beside their rest pose.

- `time`: seconds of one core for two seconds of motion, with the measuring of both bodies.

Feet are measured on every retargeted clip: how far a foot's pivot goes within a stance and how high a sole is where the
source stands [leg lengths], and how deep a sole is below the ground [body lengths]. Flesh: how deep skin is inside
other flesh, beyond rest, at its worst place, mean over frames [body lengths], beside the source's.
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
from jigdoll.kinematics import rest_pose
from jigdoll.rig.anatomy import anatomy_of
from jigdoll.rig.reparent import to_reparented
from jigdoll.rig.retarget import LimbMotion, decode, details_of, encode, retarget
from jigdoll.types import Motion, RiggedAsset
from retarget_measures import Body, bones, change, copied, degrees, directions, feet, flesh, nearest, whole

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
    f"{ANIMALS}/Cow.glb:Eating",
    f"{DINOSAURS}/Trex.glb:Run",
    f"{DINOSAURS}/Stegosaurus.glb:Walk",
    f"{DINOSAURS}/Apatosaurus.glb:Run",
    "quaternius/easy_enemies_pack/Spider.glb:Walk",
    "quaternius/easy_enemies_pack/Rat.glb:Walk",
    "quaternius/single_knight_pack/KnightCharacter.glb:Walk",
    "quaternius/cyberpunk_pack/Character.glb:Run",
    "quaternius/monsters/orc.glb:Walk",
    "quaternius/mech_pack/Stan.glb:Dance",
    "kaykit/adventurers/barbarian.glb:Walking_A",
    "quaternius/fish_pack/Shark.glb:Swim",
    "quaternius/cute_fish_pack/Anglerfish.glb:Swimming_Normal",
    "quaternius/animated_monsters/Bat.glb:Flying",
    "quaternius/animated_monsters/Dragon.glb:Flying",
    "mesh2motion/bird-animations.glb:Flap",
    "mesh2motion/snake-animations.glb:winding",
    "talmolab/mouse.glb:walk_2",
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
UNFIT = ("livingcavesmobs", "livingnether")
"""Folders of blocks and blobs."""
Section = Literal["same", "changed", "people", "sisters", "far", "time"]


@dataclass(frozen=True)
class Options:
    """What to measure."""

    corpus: Path = HERE.parents[1] / "shared" / "corpus"
    """The folder with `characters` and `motion`."""
    quick: bool = False
    """A few cases of each kind."""
    only: tuple[Section, ...] = ("same", "changed", "people", "sisters", "far", "time")
    json: Path | None = None
    seed: int = 0


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


def named_clip(asset: RiggedAsset, name: str) -> Motion:
    """The clip whose name ends so, else the first that holds the word."""
    clips = asset.clips
    ends = [clip for key, clip in clips.items() if key.replace("|", "_").split("_")[-1].lower() == name.lower()]
    holds = [clip for key, clip in clips.items() if name.lower() in key.lower()]
    if not ends and not holds:
        raise JigdollError(f"{asset.name} has no clip {name!r}; its clips are {', '.join(clips)}")
    return (ends or holds)[0]


def carried(source: Body, motion: Motion, target: Body) -> tuple[LimbMotion, Motion]:
    """A motion of one working copy on another, as `retarget` does it."""
    limb_motion = encode(source.anatomy, motion)
    details = details_of(source.anatomy, motion)
    return limb_motion, decode(limb_motion, target.anatomy, details=details)


def same(corpus: Corpus, options: Options) -> Iterator[dict]:
    """Encode and decode on one rig."""
    root = corpus.folder / "characters"
    files = [file for file in sorted(root.glob("**/*.glb")) if file.parent.name not in UNFIT]
    wanted, done = (6, 0) if options.quick else (200, 0)
    per_file = max(wanted // len(files), 1) + (not options.quick)
    for file in files[:: max(len(files) // wanted, 1)]:
        body = corpus.body(str(file.relative_to(root)))
        clips = [clip for clip in body.asset.clips.values() if len(clip) > 3]
        for clip in clips[:: max(len(clips) // per_file, 1)][:per_file]:
            if done >= wanted:
                continue
            moved = to_reparented(body.copy, clip)
            limb_motion, again = carried(body, moved, body)
            pairs = bones(body.anatomy)
            if not pairs:
                continue
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
        for case in range(1 if options.quick else 10):
            asset, joints = change(body.anatomy, rng)
            other = whole(asset)
            limb_motion, moved = carried(body, motion, other)
            where = {j: i for i, j in enumerate(other.copy.joints)}
            kept = [(a, b) for a, b in bones(body.anatomy) if joints[a] in where and joints[b] in where]
            theirs = [(where[joints[a]], where[joints[b]]) for a, b in kept]
            truth, ours = directions(body.anatomy, motion, kept), directions(other.anatomy, moved, theirs)
            angle = degrees(truth, ours).mean()
            both = {"flesh": flesh(other, moved), "source's": flesh(body, motion)}
            yield {"case": f"{word} {case}", "degrees": float(angle), **feet(other, limb_motion, moved), **both}


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
            both = {"flesh": flesh(other, moved)}
            yield {"case": case, "degrees": float(angle.mean()), **feet(other, there, moved), **both}


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
    theirs = to_reparented(source.copy, clip)
    limb_motion, moved = carried(source, theirs, target)
    truth = directions(anatomy, to_reparented(target.copy, own), pairs)
    still = Motion(rest_pose(anatomy.skeleton, frames=2), 30.0)
    plain = copied(source, theirs, target)
    free = decode(limb_motion, anatomy, lock=False, details=details_of(source.anatomy, theirs))
    return {
        "case": case,
        "degrees": nearest(directions(anatomy, moved, pairs), truth),
        "no lock": nearest(directions(anatomy, free, pairs), truth),
        "plain": nearest(directions(anatomy, plain, pairs), truth),
        "rest": nearest(directions(anatomy, still, pairs), truth),
        **feet(target, limb_motion, moved),
        "flesh": flesh(target, moved),
        "source's": flesh(source, theirs),
    }


def timed(corpus: Corpus, options: Options) -> Iterator[dict]:
    """Two seconds of motion, from assets that are open."""
    for name, _, word in FAR[:2] if options.quick else FAR:
        source, clip = corpus.clip(word)
        target = corpus.body(name)
        short = replace(clip, pose=clip.pose[: max(round(2 * clip.fps), 1)])
        start = time.process_time()
        retarget(short, source.asset, target.asset)
        seconds = (time.process_time() - start) * 2 * clip.fps / len(short)
        yield {"case": f"{Path(name).stem} < {word.split('/')[-1]}", "seconds": seconds}


SECTIONS: dict[Section, Callable[[Corpus, Options], Iterator[dict]]] = {
    "same": same,
    "changed": changed,
    "people": people,
    "sisters": sisters,
    "far": far,
    "time": timed,
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
    columns = ("degrees", "no lock", "plain", "rest", "drift", "depth", "float", "flesh", "source's", "seconds")
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
