"""Find real motion by words: what a sentence asks for, on a body like this one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jigdoll.language.actions import ACTIONS
from jigdoll.memory.segments import Memory, Segment, Words
from jigdoll.protocols import TextEncoder
from jigdoll.rig.anatomy import Anatomy, BodyKind
from jigdoll.types import Request, RequestedAction

KIN: dict[BodyKind, dict[BodyKind, float]] = {
    "person": {"person": 0.0, "biped": 0.6},
    "biped": {"biped": 0.0, "bird": 0.2, "person": 0.6},
    "bird": {"bird": 0.0, "biped": 0.3, "flyer": 0.3, "person": 0.9},
    "quadruped": {"quadruped": 0.0},
    "insect": {"insect": 0.0, "spider": 0.3, "quadruped": 0.6},
    "spider": {"spider": 0.0, "insect": 0.3, "quadruped": 0.7},
    "flyer": {"flyer": 0.0, "bird": 0.2, "insect": 0.5},
    "fish": {"fish": 0.0, "snake": 0.5},
    "snake": {"snake": 0.0, "fish": 0.6},
    "other": {"other": 0.0, "person": 0.5, "biped": 0.7, "flyer": 0.6, "fish": 0.8},
}
"""How unlike two kinds of body are, 0 to 1; kinds that are not named lend each other nothing."""
UNLIKE = 0.45
"""A text nearer than this to no segment's is not understood."""
FAST, SLOW = 1.25, 0.8
"""What "quickly" and "slowly" do to the tempo."""


@dataclass(frozen=True, eq=False)
class Found:
    """A segment that fits, and how well."""

    index: int
    words: Words
    score: float
    """Higher is better; the best that can be is about 1."""
    action: float
    """How well the action fits, 0 to 1."""
    body: float
    """How unlike the body is, 0 to 1."""


def known_actions(memory: Memory, kind: BodyKind) -> frozenset[str]:
    """The actions that a kind of body can be shown doing."""
    return frozenset(words.action for words in memory.words if words.kind in KIN[kind])


def find(
    memory: Memory,
    request: Request,
    action: RequestedAction,
    anatomy: Anatomy,
    encoder: TextEncoder,
    *,
    count: int = 8,
) -> list[Found]:
    """The segments that fit an action of a sentence on a body, the best first; none where nothing does."""
    sentence = _sentence(request, action)
    query = np.asarray(encoder([sentence]))[0]
    likeness = memory.vectors @ query
    named = _names(action.name)
    wanted = request.noun or ""
    found = []
    for index, words in enumerate(memory.words):
        unlike = KIN[anatomy.kind].get(words.kind)
        fits = named.get(words.action, 0.0)
        if unlike is None or (not fits and likeness[index] < 0.75):
            continue
        fits = max(fits, 0.6 * float(likeness[index]))
        legs = abs(words.legs - len(anatomy.legs)) / 8
        same = 0.3 * (words.noun == wanted or words.noun in anatomy.asset.name.lower())
        style = 0.25 * float(likeness[index])
        score = fits - 0.6 * unlike - 0.3 * legs + same + style - 0.1 * (words.wings != _winged(anatomy))
        # A long text tells of something special: who only walks does not walk drunk.
        special = 0.0 if request.style else 0.04 * max(len(words.text.split()) - 3, 0)
        score += _length_fit(words) + 0.2 * words.typical - special - stuck(words)
        found.append(Found(index, words, round(score, 4), fits, unlike))
    return sorted(found, key=lambda f: -f.score)[:count]


def pick(found: Sequence[Found], seed: int) -> Found:
    """One of the segments that fit about as well as the best: another seed, another one."""
    near = [f for f in found if f.score > found[0].score - 0.12]
    return near[seed % len(near)]


def tempo_of(action: RequestedAction) -> float:
    """How much faster than the segment an action is wanted."""
    return float(np.interp(action.tempo, [-0.7, 0.0, 0.7], [SLOW, 1.0, FAST]))


def segment_of(memory: Memory, found: Found) -> Segment:
    """The segment with its motion."""
    return memory.segment(found.index)


def _sentence(request: Request, action: RequestedAction) -> str:
    """Who does what and how, in a few plain words, as the texts of segments are."""
    who = request.noun or "person"
    return " ".join([f"a {who} {action.word}", *request.style])


def _names(name: str) -> dict[str, float]:
    """Actions that serve for one that is asked for: itself, what it is a kind of, its kinds, what comes nearest."""
    fits = {name: 1.0}
    row = ACTIONS.get(name)
    if row is not None:
        for near in row.nearest:
            fits.setdefault(near, 0.35)
        if row.general:
            fits[row.general] = 0.75
        if row.gait in ACTIONS:
            fits.setdefault(row.gait, 0.4)
    for other in ACTIONS.values():
        if other.general == name:
            fits.setdefault(other.name, 0.7)
    return fits


def _winged(anatomy: Anatomy) -> bool:
    return any(part.limb.kind == "wing" for part in anatomy.parts)


def stuck(words: Words) -> float:
    """Legs that should get along and do not: a walk whose ground speed was not found slides."""
    row = ACTIONS.get(words.action)
    travels = row is not None and row.gait in ("walk", "run") and row.froude > 0 and words.legs > 0
    return 0.6 if travels and words.speed < 0.3 else 0.0


def _length_fit(words: Words) -> float:
    """Very short pieces show little."""
    return -0.15 if words.seconds < 0.4 else 0.0
