"""The verdict with its grade: how natural the clip looks, beside what was measured on it."""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import torch

from jigdoll.errors import RigError
from jigdoll.judge.naturalness import Facts, naturalness
from jigdoll.judge.postures import PoseBank, memory_bank
from jigdoll.judge.referee import Referee, open_referee
from jigdoll.judge.verdict import Verdict
from jigdoll.language import read
from jigdoll.memory.segments import Memory, open_memory
from jigdoll.posespace.project import score_motion
from jigdoll.posespace.rigged import body_of
from jigdoll.posespace.space import PoseSpace
from jigdoll.posespace.weights import has_weights, open_space
from jigdoll.rig.anatomy import Anatomy, BodyKind, anatomy_of
from jigdoll.rig.reparent import reparent, to_reparented
from jigdoll.types import Motion, Pose, Request, RiggedAsset


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
    score = pose_score(anatomy, motion)
    natural = naturalness(anatomy, motion, facts, bank=bank, referee=heard, request=request, pose_score=score)
    return replace(verdict, natural=natural)


def pose_score(anatomy: Anatomy, motion: Motion) -> float:
    """How far a clip is from what the pose space finds natural; -1 without weights, or for what is no body to it."""
    space = _space()
    if space is None:
        return -1.0
    try:
        with torch.no_grad():
            return float(score_motion(space, body_of(anatomy), without_offsets(motion)).median())
    except RigError:
        return -1.0


def without_offsets(motion: Motion) -> Motion:
    """A clip without what moves or scales joints in their parents' frames, which limb space cannot hold."""
    return replace(motion, pose=Pose(motion.pose.root, motion.pose.rotations))


@lru_cache(maxsize=1)
def _space() -> PoseSpace | None:
    return open_space() if has_weights() else None


def grade_clip(verdict: Verdict, asset: RiggedAsset, motion: Motion, prompt: str) -> Verdict:
    """The verdict on a clip of an artist's rig, graded against the sentence that it is meant to show."""
    work = reparent(asset)
    return graded(verdict, anatomy_of(work.asset), to_reparented(work, motion), request=read(prompt))


@lru_cache(maxsize=4)
def _bank(path: Path | None, kind: BodyKind) -> PoseBank:
    """Banks hold numbers only and are the same for every character of a kind."""
    return memory_bank(open_memory(path), kind)
