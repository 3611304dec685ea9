"""The verdict with its grade: how natural the clip looks, beside what was measured on it."""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from jigdoll.judge.naturalness import Facts, naturalness
from jigdoll.judge.postures import PoseBank, memory_bank
from jigdoll.judge.referee import Referee, open_referee
from jigdoll.judge.verdict import Verdict
from jigdoll.language import read
from jigdoll.memory.segments import Memory, open_memory
from jigdoll.rig.anatomy import Anatomy, BodyKind, anatomy_of
from jigdoll.rig.reparent import reparent, to_reparented
from jigdoll.types import Motion, Request, RiggedAsset


def graded(
    verdict: Verdict,
    anatomy: Anatomy,
    motion: Motion,
    *,
    request: Request | None = None,
    memory: Memory | None = None,
    referee: Referee | None = None,
) -> Verdict:
    """The verdict on a clip of a working copy with `natural` filled in; `request` is what was asked for.

    Real poses come from the memory (the one that ships, if none is given).
    """
    pairs = [pair for pair in verdict.pairs if pair.kind == "leg"]
    facts = Facts(
        travel_speed=verdict.travel_speed,
        leg_swing=verdict.amplitude,
        alternation=pairs[-1].alternation if pairs else 0.0,
        floating=verdict.floating,
        penetration=verdict.penetration,
        skate_ratio=verdict.skate_ratio,
    )
    bank = _bank(None if memory is None else memory.path, anatomy.kind)
    heard = open_referee() if referee is None else referee
    natural = naturalness(anatomy, motion, facts, bank=bank, referee=heard, request=request)
    return replace(verdict, natural=natural)


def grade_clip(verdict: Verdict, asset: RiggedAsset, motion: Motion, prompt: str) -> Verdict:
    """The verdict on a clip of an artist's rig, graded against the sentence that it is meant to show."""
    work = reparent(asset)
    return graded(verdict, anatomy_of(work.asset), to_reparented(work, motion), request=read(prompt))


@lru_cache(maxsize=4)
def _bank(path: Path | None, kind: BodyKind) -> PoseBank:
    """Banks hold numbers only and are the same for every character of a kind."""
    return memory_bank(open_memory(path), kind)
