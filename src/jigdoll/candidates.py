"""Drafts of a sentence on a body, and which of them is shown: the one that fits the words and looks natural."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jigdoll.judge.grade import graded
from jigdoll.judge.naturalness import Naturalness
from jigdoll.judge.verdict import Verdict, judge
from jigdoll.memory.draft import Directions, Draft, draft
from jigdoll.memory.segments import Memory
from jigdoll.protocols import Progress, TextEncoder, quiet
from jigdoll.rig.anatomy import Anatomy
from jigdoll.types import Motion, Request

WORDS, GRADE = 0.5, 1.0
"""What it counts how well the words fit, and how natural it looks."""


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
        verdict = graded(judge(anatomy.asset, made.motion), anatomy, made.motion, request=request)
        found.append(Candidate(made.motion, _origin(made), direction.seed, made.fit, verdict, made.notes))
    return found


def choose(candidates: Sequence[Candidate]) -> int:
    """The index of the candidate that is shown; the first one of equals."""
    return max(range(len(candidates)), key=lambda i: candidates[i].score)


def _origin(made: Draft) -> str:
    return "; ".join(f"{found.words.text} ({found.words.source})" for found in made.found)
