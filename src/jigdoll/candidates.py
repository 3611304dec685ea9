"""Drafts of a sentence on a body, and which of them is shown: the one that fits the words and looks natural."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

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
from jigdoll.language.encoder import open_encoder
from jigdoll.memory.draft import Directions, Draft, draft
from jigdoll.memory.library import open_memories
from jigdoll.memory.segments import Memory
from jigdoll.motion import slice_motion
from jigdoll.protocols import PoseModel, Progress, TextEncoder, VideoPrior, quiet
from jigdoll.rig.anatomy import Anatomy
from jigdoll.rig.reparent import Reparented, to_reparented
from jigdoll.rig.retarget.limb_motion import LimbMotion, encode
from jigdoll.types import Motion, Request, RiggedAsset

DraftSource = Literal["auto", "memory", "pose", "none"]
"""Where a motion begins: real motion where it is known and what comes next where not, real motion, what a pose model
draws, or the rest pose."""
WIDE = 0.4
"""How much worse than the best the words of a draft may fit: the judge has something to choose from."""
DRAFTS = 3
"""Drafts to choose from, where nobody says how many."""
WORDS, GRADE = 0.5, 1.0
"""What it counts how well the words fit, and how natural it looks."""
DRAWN = 0.5
"""How well words fit what is drawn from a pose model: real motion that fits well comes before it."""


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
        }

    @property
    def score(self) -> float:
        """What it is chosen by."""
        return WORDS * self.fit + GRADE * self.natural.grade


@dataclass(frozen=True, eq=False)
class Makers:
    """Who may make the motion, beside the memory."""

    source: DraftSource
    pose_model: PoseModel | None
    prior: VideoPrior | None


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
    if makers.source == "pose" and makers.pose_model is not None:
        return from_pose_model(makers.pose_model, asked, who.anatomy, every, progress=progress)
    try:
        encoder = open_encoder()
        found = from_memory(open_memories(encoder), asked, who.anatomy, encoder, every, progress=progress)
    except JigdollError:
        if makers.source != "auto" or (makers.pose_model is None and makers.prior is None):
            raise
        if makers.pose_model is None:
            return []  # what is not known is distilled from rest
        found = from_pose_model(makers.pose_model, asked, who.anatomy, every, progress=progress)
    for note in dict.fromkeys(filter(None, [explain(asked), *(note for each in found for note in each.notes)])):
        warnings.warn(f"{asked.prompt!r}: {note}", PromptWarning, stacklevel=4)
    return found


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
    memory: Memory,
    request: Request,
    anatomy: Anatomy,
    encoder: TextEncoder,
    directions: Sequence[Directions],
    *,
    progress: Progress = quiet,
) -> list[Candidate]:
    """One candidate per direction, made of real motion."""
    found = []
    for i, direction in enumerate(directions):
        progress(i / len(directions), "finding real motion")
        made = draft(memory, request, anatomy, encoder, direction)
        motion = made.motion
        if made.limb_motion.grounded and anatomy.legs and not direction.in_place:
            motion = foot_lock(anatomy, motion, loop=direction.loop)
        verdict = graded(judge(anatomy.asset, motion), anatomy, motion, request=request)
        found.append(Candidate(motion, _origin(made), direction.seed, made.fit, verdict, made.notes))
    return found


def from_pose_model(
    model: PoseModel,
    request: Request,
    anatomy: Anatomy,
    directions: Sequence[Directions],
    *,
    progress: Progress = quiet,
) -> list[Candidate]:
    """One candidate per direction, drawn from a model of poses; only its length and its seed can be directed."""
    found = []
    for i, direction in enumerate(directions):
        progress(i / len(directions), "drawing from the pose space")
        motion = model.draft(request, anatomy, seconds=direction.seconds, fps=direction.fps, seed=direction.seed)
        verdict = graded(judge(anatomy.asset, motion), anatomy, motion, request=request)
        found.append(Candidate(motion, "the pose space", direction.seed, DRAWN, verdict))
    return found


def choose(candidates: Sequence[Candidate]) -> int:
    """The index of the candidate that is shown; the first one of equals."""
    return max(range(len(candidates)), key=lambda i: candidates[i].score)


def _origin(made: Draft) -> str:
    return "; ".join(f"{found.words.text} ({found.words.source})" for found in made.found)
