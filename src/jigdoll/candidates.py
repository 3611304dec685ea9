"""Drafts of a sentence on a body, and which of them is shown: the one that fits the words and looks natural."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from jigdoll.character import open_motion
from jigdoll.directions import DirectionOptions, read_path, split_frame
from jigdoll.distill.foot_lock import foot_lock
from jigdoll.distill.options import AnimateOptions
from jigdoll.errors import JigdollError, PromptWarning
from jigdoll.judge.grade import graded
from jigdoll.judge.naturalness import Naturalness
from jigdoll.judge.verdict import Verdict, judge
from jigdoll.kinematics import rest_pose
from jigdoll.language import explain
from jigdoll.language.actions import general_of
from jigdoll.language.encoder import open_encoder
from jigdoll.memory.draft import Directions, Draft, draft
from jigdoll.memory.drawn import Draw
from jigdoll.memory.find import SERVES
from jigdoll.memory.library import open_memories
from jigdoll.memory.segments import Memory
from jigdoll.motion import close_loop, slice_motion
from jigdoll.protocols import PoseModel, Progress, TextEncoder, VideoPrior, part, quiet
from jigdoll.rig.anatomy import Anatomy
from jigdoll.rig.reparent import Reparented, to_reparented
from jigdoll.rig.retarget.limb_motion import LimbMotion, encode
from jigdoll.types import Motion, Request, RequestedAction, RiggedAsset

DraftSource = Literal["auto", "memory", "pose", "mixed", "none"]
"""Where a motion begins: real motion where it is known and what the pose space draws where not (auto), one of them
alone (memory, pose), both and mixtures of them (mixed), or the rest pose (none)."""
WIDE = 0.4
"""How much worse than the best the words of a draft may fit: the judge has something to choose from."""
DRAFTS = 3
"""Drafts to choose from, where nobody says how many."""
WORDS, GRADE = 0.5, 1.0
"""What it counts how well the words fit, and how natural it looks."""
PROJECTED = 0.3
"""How much of a draft the pose space makes anew where it cleans it: the noise level, 0 to 1."""
AIMS, MISSED = 2, 0.03
"""A speed that is missed by more than this share, once the feet are locked, is aimed at anew so many times."""
MOST_MIXTURES = 3
"""Of a sentence of several actions so many mixtures are made, each with another action drawn."""


@dataclass(frozen=True, eq=False)
class Performer:
    """Whom a sentence is shown on: the artist's rig, its working copy and its measures."""

    asset: RiggedAsset
    reparented: Reparented
    anatomy: Anatomy


@dataclass(frozen=True, eq=False)
class Candidate:
    """One way to show a sentence on a body."""

    motion: Motion
    """On the working copy."""
    origin: str
    """Where it comes from, for people: the clips that it is made of."""
    seed: int
    fit: float
    """How well words and body fit what was found."""
    verdict: Verdict
    notes: tuple[str, ...] = ()
    """What was wished for and is not quite met."""

    @property
    def natural(self) -> Naturalness:
        """How natural it looks."""
        assert self.verdict.natural is not None
        return self.verdict.natural

    def facts(self) -> dict[str, Any]:
        """What a report says of it."""
        faults = [fault.message for fault in self.natural.faults]
        return {
            "origin": self.origin,
            "seed": self.seed,
            "fit": self.fit,
            "grade": self.natural.grade,
            "faults": faults,
            "notes": list(self.notes),
        }

    @property
    def score(self) -> float:
        """What it is chosen by."""
        return WORDS * self.fit + GRADE * self.natural.grade


@dataclass(frozen=True, eq=False)
class Makers:
    """Who may make the motion, beside the memory."""

    source: DraftSource
    pose_model: PoseModel | Path | None
    """A pose model, the file of its weights, or none: then the weights that ship, where some do."""
    prior: VideoPrior | None

    @cached_property
    def pose(self) -> PoseModel | None:
        """The pose model, opened where it is asked for the first time."""
        from jigdoll.posespace.network import NetworkPoseModel
        from jigdoll.posespace.weights import has_weights, open_space

        if self.pose_model is None and not has_weights():
            return None
        if self.pose_model is None or isinstance(self.pose_model, Path):
            return NetworkPoseModel(open_space(self.pose_model))
        return self.pose_model

    def check(self) -> None:
        """Refuse at once a source that is not there."""
        from jigdoll.posespace.weights import has_weights

        if isinstance(self.pose_model, Path) and not self.pose_model.exists():
            raise JigdollError(f"{self.pose_model}: there is no such file; weights of the pose space were named")
        if self.source in ("pose", "mixed") and self.pose_model is None and not has_weights():
            raise JigdollError(
                f"a draft of the kind {self.source!r} needs the pose space, and no weights of it are installed; name a "
                "file (--pose-weights), or take --draft memory"
            )
        if self.source == "none" and self.prior is None:
            raise JigdollError(
                "without a draft somebody must make the motion: name a prior to distil from (--prior pocket)"
            )


@dataclass(frozen=True, eq=False)
class Sketching:
    """What every draft of a sentence is made with."""

    memory: Memory
    request: Request
    anatomy: Anatomy
    encoder: TextEncoder
    pose: PoseModel | None = None


def make_candidates(
    who: Performer,
    asked: Request,
    options: AnimateOptions,
    wishes: DirectionOptions,
    makers: Makers,
    *,
    fps: float,
    progress: Progress,
) -> list[Candidate]:
    """Motion for the sentence, in several ways; none where distillation begins at rest."""
    if makers.source == "none":
        return []
    count = max(options.tries, DRAFTS)
    first = Directions(
        seconds=options.seconds,
        fps=fps,
        loop=options.loop,
        speed=wishes.speed,
        path=None if wishes.path is None else read_path(wishes.path),
        start=None if wishes.start is None else _pose_of(who, wishes.start, fps, last=True),
        end=None if wishes.end is None else _pose_of(who, wishes.end, fps, last=False),
        in_place=wishes.in_place,
        worse=WIDE,
    )
    every = [replace(first, seed=options.seed * count + i) for i in range(count)]
    encoder = open_encoder()
    sketching = Sketching(open_memories(encoder), asked, who.anatomy, encoder)
    try:
        found = _by_source(sketching, makers, every, progress=progress)
    except JigdollError:
        if makers.source != "auto" or makers.prior is None:
            raise
        return []  # what is not known is distilled from rest
    for note in dict.fromkeys(filter(None, [explain(asked), *(note for each in found for note in each.notes)])):
        warnings.warn(f"{asked.prompt!r}: {note}", PromptWarning, stacklevel=4)
    return found


def _by_source(
    sketching: Sketching, makers: Makers, every: Sequence[Directions], *, progress: Progress
) -> list[Candidate]:
    """Drafts from where they are wanted from; what the memory does not know is drawn, if anybody can draw it."""
    if makers.source in ("pose", "mixed"):
        sketching = replace(sketching, pose=makers.pose)
    if makers.source == "pose":
        return from_pose_model(sketching, every, progress=progress)
    if makers.source == "mixed":
        return mixed(sketching, every, progress=progress)
    try:
        return from_memory(sketching, every, progress=progress)
    except JigdollError:
        if makers.source == "memory" or makers.pose is None or not seen_somewhere(sketching.memory, sketching.request):
            raise
    return from_memory(replace(sketching, pose=makers.pose), every, progress=progress)


def seen_somewhere(memory: Memory, request: Request) -> bool:
    """Whether some body was seen doing all that is asked, or something that serves for it: the pose space learned from
    the same clips, and its words mean nothing beyond them."""
    seen = {words.action for words in memory.words}
    serves = [{*general_of(action.name), *SERVES.get(action.name, ())} for action in request.actions]
    return bool(serves) and all(names & seen for names in serves)


def _pose_of(who: Performer, word: str, fps: float, *, last: bool) -> LimbMotion:
    """The clip that a draft goes on from (up to a frame of it) or leads into (from a frame of it on)."""
    name, frame = split_frame(word)
    if name == "rest":
        motion = Motion(rest_pose(who.asset.skeleton, frames=2), fps, "rest")
    else:
        motion = open_motion(who.asset, name, fps=fps)
    if frame is not None and not -len(motion) <= frame < len(motion):
        raise JigdollError(f"{word!r}: the clip has {len(motion)} frames, numbered from 0")
    at = (len(motion) - 1 if last else 0) if frame is None else frame % len(motion)
    chosen = slice(0, at + 1) if last else slice(at, len(motion))
    return encode(who.anatomy, to_reparented(who.reparented, slice_motion(motion, chosen)), travel=False)


def from_memory(
    sketching: Sketching, directions: Sequence[Directions], *, progress: Progress = quiet
) -> list[Candidate]:
    """One candidate per direction, made of real motion, and of what the pose model draws where none is known."""
    found = []
    for i, direction in enumerate(directions):
        progress(i / len(directions), "finding real motion")
        found.append(_sketched(sketching, direction))
    return found


def from_pose_model(
    sketching: Sketching, directions: Sequence[Directions], *, progress: Progress = quiet
) -> list[Candidate]:
    """One candidate per direction, all of it drawn from a model of poses."""
    found = []
    for i, direction in enumerate(directions):
        progress(i / len(directions), "drawing from the pose space")
        found.append(_sketched(sketching, direction, drawn=range(len(sketching.request.actions))))
    return found


def mixed(sketching: Sketching, directions: Sequence[Directions], *, progress: Progress = quiet) -> list[Candidate]:
    """Real motion, drawn motion, real motion that the pose space has cleaned, and sentences half found, half drawn."""
    actions, first = sketching.request.actions, directions[0]
    found = from_memory(sketching, directions, progress=part(progress, 0.0, 0.4))
    found += from_pose_model(sketching, directions, progress=part(progress, 0.4, 0.7))
    progress(0.7, "mixing")
    found.append(_projected(sketching, found[choose(found[: len(directions)])], first))
    if len(actions) > 1:
        found += [_sketched(sketching, first, drawn=(i,)) for i in range(min(len(actions), MOST_MIXTURES))]
    return found


def _sketched(sketching: Sketching, direction: Directions, *, drawn: Sequence[int] = ()) -> Candidate:
    """A draft with its feet locked and its verdict."""
    best = _sketch(sketching, direction, drawn)
    for _ in range(AIMS if direction.speed is not None and len(sketching.request.actions) == 1 else 0):
        made, wanted = ground_speed(best.motion), direction.speed or 0.0
        if direction.in_place or made < 0.2 * wanted or abs(made / wanted - 1) < MISSED:
            break
        direction = replace(direction, pace=float(np.clip(direction.pace * wanted / made, 0.5, 2.0)))
        again = _sketch(sketching, direction, drawn)
        if abs(ground_speed(again.motion) - wanted) >= abs(made - wanted):
            break
        best = again
    return best


def _sketch(sketching: Sketching, direction: Directions, drawn: Sequence[int]) -> Candidate:
    """One attempt at a draft."""
    request, anatomy, pose = sketching.request, sketching.anatomy, sketching.pose
    draw = None if pose is None else drawing(pose, anatomy, direction)
    made = draft(sketching.memory, request, anatomy, sketching.encoder, direction, draw=draw, drawn=drawn)
    return _finished(sketching, made.motion, direction, _origin(made), made.fit, made.notes, made.limb_motion.grounded)


def ground_speed(motion: Motion) -> float:
    """How fast a motion gets along over the ground, sway left out [m/s]: from second to second or a little more."""
    if len(motion) < 2:
        return 0.0
    at = np.linspace(0, len(motion) - 1, max(int(motion.seconds), 1) + 1).round().astype(int)
    root = motion.pose.root.detach().double().numpy()[at][:, [0, 2]]
    return float(np.linalg.norm(np.diff(root, axis=0), axis=1).sum() / motion.seconds)


def _projected(sketching: Sketching, best: Candidate, direction: Directions) -> Candidate:
    """A candidate as the pose space would have it."""
    assert sketching.pose is not None
    motion = sketching.pose.project(sketching.anatomy, best.motion, strength=PROJECTED, seed=direction.seed)
    if direction.loop:
        motion = close_loop(motion, sketching.anatomy.skeleton)
    origin = f"{best.origin}, cleaned by the pose space"
    return _finished(sketching, motion, direction, origin, best.fit, best.notes, sketching.anatomy.grounded)


def _finished(
    sketching: Sketching,
    motion: Motion,
    direction: Directions,
    origin: str,
    fit: float,
    notes: tuple[str, ...],
    grounded: bool,
) -> Candidate:
    anatomy = sketching.anatomy
    if grounded and anatomy.legs and not direction.in_place:
        motion = foot_lock(anatomy, motion, loop=direction.loop)
    verdict = graded(judge(anatomy.asset, motion), anatomy, motion, request=sketching.request)
    return Candidate(motion, origin, direction.seed, fit, verdict, notes)


def drawing(model: PoseModel, anatomy: Anatomy, direction: Directions) -> Draw:
    """How a pose model draws one action of a sentence, in limb space."""

    def draw(request: Request, action: RequestedAction) -> LimbMotion:
        alone = replace(request, actions=(action,))
        made = model.draft(alone, anatomy, seconds=None, fps=direction.fps, seed=direction.seed)
        return encode(anatomy, made, travel=False)

    return draw


def choose(candidates: Sequence[Candidate]) -> int:
    """The index of the candidate that is shown; the first one of equals."""
    return max(range(len(candidates)), key=lambda i: candidates[i].score)


def _origin(made: Draft) -> str:
    return "; ".join(f"{found.words.text} ({found.words.source})" for found in made.found)
