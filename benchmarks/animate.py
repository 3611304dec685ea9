"""Does `animate` move rigs that nobody tuned on as their artists do?

    python benchmarks/animate.py --corpus FOLDER [--quick] [--json FILE] [--only poses] [--draft mixed --weights FILE]

- `poses`: artists' rigs and actors that are kept out (near and far), every action that the artist made and we know:
  each of our poses against the nearest pose of the artist's clip and back, in degrees per bone (direction in the frame
  of the heading), beside the rest pose and beside how far the artist's poses are from their own mean.
- `feet`: UniMate's Skate and Slide (toes near the ground that go on; see the manual), worst drift within a stance,
  deepest skin below the ground, jerk; ours beside the artist's own clip, the same script for both.
- `names`: 12 actions on 12 rigs, and usual actions on the 29 built-in characters: does the referee name the action?
- `nameless`: twelve rigs of all kinds as they are and with joints called bone_0, bone_1 ...: kind of body, legs, grade.
- `time`: CPU seconds of a two-second clip after start-up.
"""

import json as json_module
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
import torch
import tyro
from rich.console import Console
from rich.table import Table

from jigdoll.candidates import (
    DRAFTS,
    WIDE,
    Sketching,
    choose,
    drawing,
    from_memory,
    from_pose_model,
    mixed,
)
from jigdoll.contacts import find_stances
from jigdoll.corpus import takes
from jigdoll.distill.foot_lock import foot_lock
from jigdoll.errors import JigdollError
from jigdoll.judge.grade import graded
from jigdoll.judge.referee import name_action, open_referee
from jigdoll.judge.verdict import judge
from jigdoll.kinematics import motion_to_world, rest_pose
from jigdoll.language import read
from jigdoll.language.actions import ACTIONS, general_of
from jigdoll.language.encoder import open_encoder
from jigdoll.language.inflect import inflect
from jigdoll.memory.draft import Directions, draft
from jigdoll.memory.segments import open_memory
from jigdoll.posespace.network import NetworkPoseModel
from jigdoll.posespace.weights import open_space
from jigdoll.rig.anatomy import Anatomy, anatomy_of
from jigdoll.rig.reparent import reparent
from jigdoll.rig.retarget.feet import runs
from jigdoll.rig.retarget.limb_motion import encode
from jigdoll.rig.retarget.standing import feet_of
from jigdoll.types import Motion
from jigdoll.zoo import SPECIES, make
from retarget_measures import bones, degrees, directions

Section = Literal["poses", "feet", "names", "nameless", "time"]
TWELVE_ACTIONS = (
    "walk",
    "run",
    "jump",
    "dance",
    "punch",
    "wave",
    "sit",
    "kick",
    "throw",
    "pick_up",
    "die",
    "swordplay",
)
TWELVE_RIGS = (
    "quaternius/modular_women/Witch.glb",
    "quaternius/modular_women/Casual.glb",
    "quaternius/modular_men/Farmer.glb",
    "quaternius/modular_men/Punk.glb",
    "quaternius/robot/RobotExpressive.glb",
    "khronos/CesiumMan.glb",
    "khronos/RiggedFigure.glb",
    "mesh2motion/human-male.glb",
    "mesh2motion/human-zombie.glb",
    "100avatars/100Avatars_021_Polydancer.fbx",
    "100avatars/100Avatars_007_Observer.fbx",
    "kenney/mini_characters/character-male-a.glb",
)


NAMELESS = {
    "quaternius/modular_women/Witch.glb": "a woman walks",
    "quaternius/modular_men/Farmer.glb": "a man punches",
    "quaternius/robot/RobotExpressive.glb": "a robot waves",
    "khronos/CesiumMan.glb": "a man runs",
    "100avatars/100Avatars_021_Polydancer.fbx": "a person dances",
    "mesh2motion/horse-animations.glb": "a horse gallops",
    "quaternius/animals_pack/Husky.glb": "a dog walks",
    "quaternius/dinosaurs_pack/Trex.glb": "a t-rex walks",
    "mesh2motion/bird-eagle.glb": "an eagle flies",
    "quaternius/animated_monsters/Dragon.glb": "a dragon flies",
    "quaternius/easy_enemies_pack/Spider.glb": "a spider walks",
    "quaternius/fish_pack/Shark.glb": "a shark swims",
}


@dataclass(frozen=True)
class Options:
    """What to measure."""

    corpus: Path
    quick: bool = False
    """A few cases of each."""
    every: int = 1
    """Only every so manieth case of `poses` and `feet`."""
    draft: Literal["memory", "pose", "mixed"] = "memory"
    """Where drafts come from."""
    weights: Path | None = None
    """Of the pose space; else those that ship."""
    json: Path | None = None
    only: tuple[Section, ...] = ("poses", "feet", "names", "nameless", "time")


def sentence(noun: str, action: str) -> str:
    """An action in plain words."""
    return f"a {noun} {inflect(ACTIONS[action].verbs[0].replace('~', 'its'))[1]}"


def ours(anatomy: Anatomy, prompt: str, options: "Options") -> Motion:
    """What `animate` shows, on the working copy; actors without a skin get their first draft."""
    count = DRAFTS if anatomy.asset.has_mesh else 1
    every = [Directions(seed=i, fps=30.0, worse=WIDE) for i in range(count)]
    pose = None if options.draft == "memory" else pose_model(options.weights)
    sketching = Sketching(open_memory(), read(prompt), anatomy, open_encoder(), pose)
    if count == 1:
        drawn = range(len(sketching.request.actions)) if options.draft == "pose" else ()
        draw = None if pose is None else drawing(pose, anatomy, every[0])
        made = draft(open_memory(), sketching.request, anatomy, open_encoder(), every[0], draw=draw, drawn=drawn)
        return foot_lock(anatomy, made.motion) if made.limb_motion.grounded else made.motion
    make = {"memory": from_memory, "pose": from_pose_model, "mixed": mixed}[options.draft]
    found = make(sketching, every)
    return found[choose(found)].motion


@cache
def pose_model(weights: Path | None) -> NetworkPoseModel:
    """The pose space, opened once."""
    return NetworkPoseModel(open_space(weights))


def held_out(options: Options) -> Iterator[tuple[str, str, str, Anatomy, Motion]]:
    """Case, noun, action, body and the artist's clip; one file of each rig, one actor's clip of each action."""
    seen: set[tuple[str, str]] = set()
    for take in takes(options.corpus, ("near", "far")):
        who = take.source.split(":")[-1].strip() if ":" in take.source else f"cmu {take.rig.split()[-1]}"
        rig = take.rig.split("-")[0] if "kenney" in take.rig else who
        if (rig, take.action) in seen or len(take.joints) < 6:
            continue
        seen.add((rig, take.action))
        yield f"{who} {take.action}", take.noun, take.action, take.anatomy, take.joints


def poses(options: Options) -> Iterator[dict]:
    for i, (case, noun, action, anatomy, artist) in enumerate(held_out(options)):
        if i % (8 if options.quick else options.every):
            continue
        try:
            made = ours(anatomy, sentence(noun, action), options)
        except JigdollError as error:
            yield {"case": case, "kind": anatomy.kind, "refused": str(error)[:80]}
            continue
        pairs = bones(anatomy)
        still = Motion(rest_pose(anatomy.skeleton, frames=1), 30.0, "rest")
        a, b, rest = (directions(anatomy, motion, pairs) for motion in (made, artist, still))
        cross = np.stack([degrees(pose[None], b).mean(-1) for pose in a])
        mean = b.mean(0) / np.maximum(np.linalg.norm(b.mean(0), axis=-1, keepdims=True), 1e-9)
        yield {
            "case": case,
            "kind": anatomy.kind,
            "ours to artist": float(cross.min(1).mean()),
            "artist to ours": float(cross.min(0).mean()),
            "rest": float(degrees(rest, b).mean()),
            "spread": float(degrees(mean[None], b).mean()),
        }


def feet(options: Options) -> Iterator[dict]:
    for i, (case, noun, action, anatomy, artist) in enumerate(held_out(options)):
        if (
            i % (8 if options.quick else options.every)
            or not anatomy.legs
            or ACTIONS[action].gait not in ("walk", "run", "dance", "still")
        ):
            continue
        try:
            made = ours(anatomy, sentence(noun, action), options)
        except JigdollError:
            continue
        mine, theirs = foot_figures(anatomy, made), foot_figures(anatomy, artist)
        row: dict = {"case": case, "kind": anatomy.kind}
        row |= mine | {f"{name}, artist": value for name, value in theirs.items()}
        yield row


def foot_figures(anatomy: Anatomy, motion: Motion) -> dict[str, float]:
    """Skate and Slide as UniMate defines them, and what they do not see."""
    world = motion_to_world(anatomy.skeleton, motion)
    found = feet_of(anatomy, world, motion.fps)
    toes = found.soles.numpy().mean(2)
    unit = anatomy.hip_height
    low = found.soles[..., 1].amin(-1).numpy()
    ground = np.quantile(low.min(1), 0.02)
    height = (low - ground)[:-1]
    step = np.linalg.norm(np.diff(toes[..., [0, 2]], axis=0), axis=-1) * motion.fps / 30.0
    near = height < 0.05 * unit
    weight = np.clip(2 - 2 ** (np.maximum(height, 0) / (0.05 * unit)), 0, 1) * near
    way = torch.from_numpy(world[-1, anatomy.pelvis, [0, 2], 3] - world[0, anatomy.pelvis, [0, 2], 3])
    stands = find_stances(found, travel=way * motion.fps / max(len(motion) - 1, 1)).numpy()
    pivots = found.joints.numpy()[..., [0, 2]]
    drift = [
        float(np.linalg.norm(pivots[first:last, k] - pivots[first:last, k].mean(0), axis=1).max())
        for k in range(pivots.shape[1])
        for first, last in runs(stands[:, k])
        if last - first >= 3
    ]
    jerk = np.linalg.norm(np.diff(world[..., :3, 3], n=3, axis=0), axis=-1).mean() * motion.fps**3
    return {
        "skate": float((step[near] > 0.025 * unit).mean()) if near.any() else 0.0,
        "slide": float((step * weight).sum() / max(weight.sum(), 1e-9) / unit),
        "drift": max(drift, default=0.0) / anatomy.leg_length,
        "below": float(max(-low.min(), 0.0)) / anatomy.body_length,
        "jerk": float(jerk) / anatomy.body_length,
    }


def names(options: Options) -> Iterator[dict]:
    from jigdoll.asset.load import load

    characters = options.corpus / "characters"
    for i, file in enumerate(TWELVE_RIGS):
        if options.quick and i % 6:
            continue
        anatomy = anatomy_of(reparent(load(characters / file)).asset)
        yield from _named(Path(file).stem, "person", anatomy, TWELVE_ACTIONS, options)
    for i, species in enumerate(SPECIES):
        if options.quick and i % 10:
            continue
        anatomy = anatomy_of(reparent(make(species)).asset)
        flies = anatomy.kind in ("bird", "flyer")
        yield from _named(
            f"zoo:{species}", species, anatomy, ("walk", "run", "jump", "idle", *(("fly",) if flies else ())), options
        )


def _named(who: str, noun: str, anatomy: Anatomy, actions: tuple[str, ...], options: Options) -> Iterator[dict]:
    for action in actions:
        try:
            made = ours(anatomy, sentence(noun, action), options)
        except JigdollError as error:
            yield {"case": f"{who} {action}", "right": False, "heard": f"refused: {str(error)[:60]}", "grade": 0.0}
            continue
        heard = next(iter(name_action(open_referee(), encode(anatomy, made))))
        right = (
            heard in general_of(action) or action in general_of(heard) or {heard, action} <= {"run", "gallop", "trot"}
        )
        verdict = graded(judge(anatomy.asset, made), anatomy, made, request=read(sentence(noun, action)))
        assert verdict.natural is not None
        faults = ", ".join(fault.name for fault in verdict.natural.faults)
        yield {
            "case": f"{who} {action}",
            "right": right,
            "heard": heard,
            "grade": verdict.natural.grade,
            "faults": faults,
        }


def nameless(options: Options) -> Iterator[dict]:
    from jigdoll.asset.load import load

    for i, (file, prompt) in enumerate(NAMELESS.items()):
        if options.quick and i % 6:
            continue
        asset = load(options.corpus / "characters" / file)
        row: dict = {"case": f"{Path(file).stem}: {prompt}"}
        for what, names in (("named", asset.skeleton.names), ("nameless", None)):
            named = names or tuple(f"bone_{k}" for k in range(len(asset.skeleton)))
            other = replace(asset, skeleton=replace(asset.skeleton, names=named))
            anatomy = anatomy_of(reparent(other).asset)
            every = [Directions(seed=k, worse=WIDE, seconds=2.0) for k in range(DRAFTS)]
            found = from_memory(Sketching(open_memory(), read(prompt), anatomy, open_encoder()), every)
            row |= {f"{what} body": f"{anatomy.kind}, {len(anatomy.legs)} legs"}
            row |= {f"{what} grade": found[choose(found)].natural.grade}
        yield row


def times(options: Options) -> Iterator[dict]:
    import jigdoll

    for prompt, character in (
        ("a fox walks", "zoo:fox"),
        ("a man waves", "zoo:human"),
        ("a spider walks", "zoo:spider"),
    ):
        jigdoll.animate(character, prompt, seconds=2.0)
        start = time.process_time()
        jigdoll.animate(character, prompt, seconds=2.0)
        yield {"case": prompt, "CPU s": time.process_time() - start}


def main(options: Options) -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    console, results = Console(), {}
    sections = {"poses": poses, "feet": feet, "names": names, "nameless": nameless, "time": times}
    for name in options.only:
        start = time.process_time()
        rows = results[name] = list(sections[name](options))
        show(console, name, rows, time.process_time() - start)
    if options.json:
        options.json.write_text(json_module.dumps(results, indent=1) + "\n")


def show(console: Console, section: str, rows: list[dict], seconds: float) -> None:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    table = Table(*columns, title=f"{section} ({seconds:.0f} CPU s)")
    for row in rows:
        table.add_row(*(f"{row[c]:.3g}" if isinstance(row.get(c), float) else str(row.get(c, "")) for c in columns))
    console.print(table)
    for kind in sorted({str(row.get("kind")) for row in rows if "kind" in row}) or [""]:
        mine = [row for row in rows if not kind or row.get("kind") == kind]
        numbers = {c: [row[c] for row in mine if isinstance(row.get(c), float)] for c in columns}
        line = ", ".join(f"{c} {np.mean(v):.3g}" for c, v in numbers.items() if v)
        if any("right" in row for row in mine):
            line = f"right {np.mean([row['right'] for row in mine]):.2f}, {line}"
        console.print(f"{section} {kind}: {len(mine)} cases: {line}")


if __name__ == "__main__":
    main(tyro.cli(Options))
