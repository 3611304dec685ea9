"""What each part adds to a walk: memory, losses, prior, a draft with the prior; and how many steps it takes.

    python benchmarks/drafts.py [--quick] [--json FILE] [--sheet FILE] [--only fox Wolf]

Six built-in characters and four artists' rigs (skipped where `../shared/assets` is absent) are told to walk:

- `memory`: real motion found by words, the draft as it is; `pose space`: drawn by the pose space; `cleaned memory`: the
  draft, noised a little and made clean by it.
- `losses`: from rest, without any prior. `rest 20 .. 120`: from rest with so many steps that ask the pocket prior.
- `draft 0 .. 40`: a residual around the memory's draft, with so many steps; 0 is the losses alone.

Each clip is measured against the artist's own walk (for built-in characters the reference gait, from which the pocket
prior learned: there it is at home): degrees per bone to
the nearest pose, both ways; beside it left-right alternation, skating, worst drift within a stance, jerk as a multiple
of the reference's, the word of two referees (pictures: `benchmarks/classifier.py`; joints: `judge.referee`), how much
the prior itself prefers it to unnatural motion, and CPU seconds of everything after the file is open.
"""

import json as json_module
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
import tyro
from rich.console import Console
from rich.table import Table

from ablation import picture
from classifier import load_classifier, name_actions
from jigdoll import zoo
from jigdoll.asset.load import load
from jigdoll.distill.finish import preference
from jigdoll.distill.foot_lock import foot_lock
from jigdoll.distill.loop import distill
from jigdoll.distill.options import AnimateOptions, GuidanceOptions
from jigdoll.distill.scene import Scene, make_scene
from jigdoll.distill.trajectory import to_motion
from jigdoll.errors import JigdollError
from jigdoll.formats.video import write_picture
from jigdoll.judge import judge
from jigdoll.kinematics import motion_to_world, rest_pose
from jigdoll.language import read
from jigdoll.language.encoder import open_encoder
from jigdoll.memory.draft import Directions, draft
from jigdoll.memory.segments import open_memory
from jigdoll.motion import resample
from jigdoll.posespace.network import NetworkPoseModel
from jigdoll.posespace.weights import has_weights, open_space
from jigdoll.prior.pocket.prior import open_pocket
from jigdoll.protocols import PoseModel
from jigdoll.render.draw import ClipStyle, contact_sheet, draw_clip
from jigdoll.rig.anatomy import Anatomy, anatomy_of
from jigdoll.rig.reparent import reparent, to_reparented
from jigdoll.rig.retarget.decode import stances
from jigdoll.rig.retarget.feet import runs
from jigdoll.rig.retarget.limb_motion import encode
from jigdoll.rig.retarget.standing import feet_of
from jigdoll.types import Motion
from jigdoll.zoo.gaits import reference_motion
from retarget import bones, directions, nearest

SHARED = Path(__file__).resolve().parents[2] / "shared" / "assets" / "rigged"
SPECIES = ("fox", "horse", "human", "ostrich", "t_rex", "ant")
RIGS = {
    "Fox": ("khronos/Fox.glb", "fox", "Walk"),
    "Wolf": ("quaternius/animals_pack/Wolf.glb", "wolf", "Walk"),
    "Horse": ("mesh2motion/horse-animations.glb", "horse", "Walk"),
    "CesiumMan": ("khronos/CesiumMan.glb", "man", ""),
}
FPS, SECONDS = 24.0, 2.0
REST_STEPS, DRAFT_STEPS = (20, 40, 120), (0, 10, 20, 40)


@dataclass(frozen=True)
class Options:
    """What to run."""

    quick: bool = False
    """One character, few steps."""
    json: Path | None = None
    sheet: Path | None = None
    only: tuple[str, ...] = ()
    ways: tuple[str, ...] = ()
    """Only those whose name begins like this."""
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Case:
    """A body, what it is told, and how it ought to walk."""

    name: str
    anatomy: Anatomy
    prompt: str
    truth: Motion


@dataclass(frozen=True)
class Row:
    """One way on one character."""

    way: str
    character: str
    degrees: float
    """To the nearest pose of the reference, per bone, both ways."""
    alternation: float
    """Mean over the pairs of legs of |ours - the reference's|; 0 is the same order of legs."""
    skate: float
    drift: float
    """Worst within a stance [leg lengths]."""
    jerk: float
    """As a multiple of the reference's."""
    seen: str
    """What the referee of pictures says."""
    named: str
    """What the referee of joints says."""
    preference: float
    seconds: float
    """CPU."""


def cases(options: Options) -> Iterator[Case]:
    """The characters that are asked for and here."""
    wanted = options.only or (SPECIES[:1] if options.quick else (*SPECIES, *RIGS))
    for name in wanted:
        if name in RIGS:
            path, noun, clip = RIGS[name]
            if not (SHARED / path).exists():
                continue
            asset = load(SHARED / path)
            copy = reparent(asset)
            walk = next(motion for title, motion in asset.clips.items() if clip.lower() in title.lower())
            truth = resample(to_reparented(copy, walk), FPS)
            yield Case(name, anatomy_of(copy.asset), f"a {noun} walks", truth)
        else:
            asset = zoo.make(name)
            truth = reference_motion(asset, "walk", seconds=SECONDS, fps=FPS)
            yield Case(name, anatomy_of(asset), f"a {name.replace('_', ' ')} walks", truth)


def ways(case: Case, options: Options) -> Iterator[tuple[str, Callable[[], Motion]]]:
    """Each way to a walk, by name."""
    prior, anatomy = open_pocket(), case.anatomy
    words, unwanted = prior.texts(read(case.prompt))
    asked = AnimateOptions(seed=options.seed, guidance=GuidanceOptions(negative_prompt=unwanted))
    silent = replace(asked, guidance=replace(asked.guidance, scale=0.0))

    def remembered() -> Motion:
        found = draft(open_memory(), read(case.prompt), anatomy, open_encoder(), Directions(seconds=SECONDS, fps=FPS))
        return found.motion

    def from_rest(settings: AnimateOptions) -> Motion:
        made = distill(make_scene(anatomy, words, prior, settings))
        return foot_lock(anatomy, to_motion(made.trajectory, made.theta, fps=FPS))

    def from_draft(settings: AnimateOptions) -> Motion:
        made = distill(make_scene(anatomy, words, prior, settings, draft=remembered()))
        return foot_lock(anatomy, made.motion)

    model = pose_model()

    def imagined() -> Motion:
        assert model is not None
        return foot_lock(anatomy, model.draft(read(case.prompt), anatomy, seconds=SECONDS, fps=FPS))

    yield "rest pose", lambda: replace(case.truth, pose=rest_pose(anatomy.skeleton, frames=len(case.truth)))
    yield "memory", remembered
    if model is not None:
        yield "pose space", imagined
        yield "cleaned memory", lambda: foot_lock(anatomy, model.project(anatomy, remembered()))
    yield "losses", lambda: from_rest(silent)
    for steps in REST_STEPS[:1] if options.quick else REST_STEPS:
        yield f"rest {steps}", lambda steps=steps: from_rest(replace(asked, iterations=steps))
    for steps in DRAFT_STEPS[:2] if options.quick else DRAFT_STEPS:
        yield f"draft {steps}", lambda steps=steps: from_draft(replace(asked, iterations=steps))


def pose_model() -> PoseModel | None:
    """The pose space, where one is installed with its weights."""
    return NetworkPoseModel(open_space()) if has_weights() else None


def measure(case: Case, way: str, motion: Motion, scene: Scene, seconds: float) -> Row:
    """All figures of a clip."""
    anatomy = case.anatomy
    pairs = bones(anatomy)
    ours, truth = (judge(anatomy.asset, clip) for clip in (motion, case.truth))
    legs = [abs(a.alternation - b.alternation) for a, b in zip(ours.pairs, truth.pairs, strict=True) if a.kind == "leg"]
    drift = 0.0
    limb_motion = encode(anatomy, motion, travel=False)
    stands = stances(limb_motion, anatomy)
    feet = feet_of(anatomy, motion_to_world(anatomy.skeleton, motion), motion.fps).joints.numpy()[..., [0, 2]]
    for i in range(len(anatomy.legs)):
        for first, last in runs(stands[:, i]):
            place = feet[first:last, i]
            drift = max(drift, float(np.linalg.norm(place - place.mean(0), axis=1).max()))
    return Row(
        way=way,
        character=case.name,
        degrees=nearest(directions(anatomy, motion, pairs), directions(anatomy, case.truth, pairs)),
        alternation=float(np.mean(legs)) if legs else float("nan"),
        skate=ours.skate_ratio,
        drift=drift / anatomy.leg_length,
        jerk=ours.position_jerk / max(truth.position_jerk, 1e-9),
        seen=seen(anatomy, motion),
        named=named(encode(anatomy, motion)),
        preference=preference(scene, motion),
        seconds=seconds,
    )


def seen(anatomy: Anatomy, motion: Motion) -> str:
    """The word of the referee of pictures, over three views."""
    short = resample(motion, 12.0)
    short = replace(short, pose=short.pose[:24])
    style = ClipStyle("motion", 56, 40, azimuth=(90.0, 70.0, 110.0))
    words, _ = name_actions(load_classifier(), draw_clip(anatomy.asset, short, style=style))
    return max(set(words), key=words.count)


def named(limb_motion) -> str:
    """The word of the referee of joints; nothing where its weights are not here."""
    try:
        from jigdoll.judge.referee import name_action, open_referee

        return next(iter(name_action(open_referee(), limb_motion)))
    except (ImportError, JigdollError):
        return ""


def show(rows: list[Row], console: Console) -> None:
    """The mean of each way over the characters."""
    table = Table(title=f"A walk of {', '.join(dict.fromkeys(row.character for row in rows))}: means")
    columns = ("degrees per bone", "alternation off by", "skate", "worst drift", "jerk of the reference's")
    for column in ("way", *columns, "seen as walk", "named walk", "preference", "CPU s"):
        table.add_column(column, justify="left" if column == "way" else "right")
    for way in dict.fromkeys(row.way for row in rows):
        mine = [row for row in rows if row.way == way]

        def mean(name: str, mine: list[Row] = mine) -> float:
            return float(np.nanmean([getattr(row, name) for row in mine]))

        table.add_row(
            way,
            f"{mean('degrees'):.1f}",
            f"{mean('alternation'):.2f}",
            f"{mean('skate'):.2f}",
            f"{max(row.drift for row in mine):.1%}",
            f"{mean('jerk'):.2f}",
            f"{sum(row.seen == 'walk' for row in mine)} of {len(mine)}",
            f"{sum(row.named == 'walk' for row in mine)} of {len(mine)}",
            f"{mean('preference'):+.4f}",
            f"{mean('seconds'):.1f}",
        )
    console.print(table)


def main(options: Options) -> None:
    """Run every way on every character, print the means."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    console = Console(width=160)
    rows, pictures = [], []
    for case in cases(options):
        prior = open_pocket()
        words, unwanted = prior.texts(read(case.prompt))
        settings = AnimateOptions(guidance=GuidanceOptions(negative_prompt=unwanted))
        scene = make_scene(case.anatomy, words, prior, settings)
        for way, make in ways(case, options):
            if options.ways and not way.startswith(options.ways):
                continue
            start = time.process_time()
            motion = make()
            rows.append(measure(case, way, motion, scene, time.process_time() - start))
            console.print(rows[-1], highlight=False)
            pictures.append(picture(case.anatomy.asset, motion))
            if options.json:
                options.json.write_text(json_module.dumps([asdict(row) for row in rows], indent=1))
            if options.sheet:
                write_picture(options.sheet, contact_sheet(pictures, 1, [f"{r.character}: {r.way}" for r in rows]))
    for group in (RIGS, SPECIES):
        if mine := [row for row in rows if row.character in group]:
            show(mine, console)


if __name__ == "__main__":
    main(tyro.cli(Options))
