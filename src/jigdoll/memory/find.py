"""Find real motion by words: what a sentence asks for, on a body like this one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from jigdoll.language.actions import ACTIONS
from jigdoll.language.meaning import action_likeness
from jigdoll.language.nouns import SWIMMING_MAMMALS
from jigdoll.language.sizes import LEG_LENGTHS
from jigdoll.math import GRAVITY
from jigdoll.memory.segments import Memory, Words
from jigdoll.protocols import TextEncoder
from jigdoll.rig.anatomy import Anatomy, BodyKind
from jigdoll.rig.retarget.limb_motion import LimbMotion
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
SERVES: dict[str, dict[str, float]] = {
    "run": {"gallop": 0.85, "trot": 0.7},
    "trot": {"run": 0.65, "walk": 0.62},
    "gallop": {"run": 0.85},
    "walk": {"slither": 0.62, "crawl": 0.62},
    "crawl": {"walk": 0.74},
    "slither": {"walk": 0.8, "crawl": 0.8},
    "creep": {"sneak": 0.9},
    "bite": {"attack": 0.75},
    "pounce": {"attack": 0.68},
    "attack": {"bite": 0.8, "punch": 0.65, "swordplay": 0.7, "kick": 0.62},
    "punch": {"attack": 0.65},
    "flap": {"fly": 0.85},
    "take_off": {"fly": 0.7},
    "land": {"fly": 0.62},
    "dive": {"swim": 0.65},
    "fall": {"die": 0.65},
    "die": {"fall": 0.65},
    "lie": {"sleep": 0.75},
    "sleep": {"lie": 0.75},
    "groom": {"scratch": 0.65},
    "squat": {"crouch": 0.7, "exercise": 0.65},
    "crouch": {"squat": 0.65},
    "jumping_jacks": {"exercise": 0.65},
    "push_up": {"exercise": 0.65},
    "spin": {"pirouette": 0.75, "turn": 0.65},
    "turn_around": {"turn": 0.75},
}
"""What real motion of one action may be shown for another."""
FRAGMENTS = {"start", "end", "landing", "toidle", "to", "loop"}
"""Words of clips that show only a part of an action."""
STRANGE = ("robot", "monster")
"""Who is no model for others of its kind."""
MANNERS = {"zombie"}
"""Who moves in a manner of their own."""
IMPLIED = {"stagger": ("drunk", "zombie"), "limp": ("injured",)}
"""Manners that some actions have by themselves."""
STYLED_WALK = 0.85
"""How well a walk in the manner that is asked for serves for another way to step."""
TURNS = ("turn", "turn_around", "circle", "spin", "pirouette", "dance", "cartwheel", "flip", "fall", "die")
"""Actions that may end facing another way."""
FITTING = 0.3
"""For an action that follows another, segments that fit that much worse than the best are looked at, ..."""
TRANSITION = 0.25
"""... and how badly they follow the one before counts that much."""
ANSWER = 0.6
"""What fits less well than this is no answer."""
ALIKE = 0.8
"""A segment whose text is that near to the sentence answers it, whatever its action is called."""
FASTEST_WALK = 3.5
"""No walk is faster than this [leg lengths / s]."""
PACE, UNUSUAL, MOST_UNUSUAL = 1.45, 0.4, 0.3
"""A gait may be that many times faster or slower than usual for legs of that length; what goes beyond counts that much,
at most so much: who walks does not stroll."""
FAST, SLOW = 1.25, 0.8
"""What "quickly" and "slowly" do to the tempo."""
STYLE_TEMPO = {"sad": 0.88, "tired": 0.85, "excited": 1.1, "happy": 1.06, "angry": 1.08, "careful": 0.88, "weak": 0.88}
"""What moods do to it."""
OTHER_BODY = 0.6
"""What a body of quite another kind costs."""
OTHER_STROKE = 0.3
"""What it costs where one beats its tail up and down, as whales do, and the other to the sides, as fish do."""
SEEDS = 0.12
"""Segments that fit that much worse than the best are as good: another seed takes another one."""


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
    style: bool
    """Whether it is done in the manner that is asked for, if any is."""


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
    count: int = 12,
) -> list[Found]:
    """The segments that fit an action of a sentence on a body, the best first; none where nothing does."""
    likeness = memory.vectors @ np.asarray(encoder([_sentence(request, action)]))[0]
    named, kin, styles = _names(action.name), KIN[anatomy.kind], _styles(request, action)
    steps = action.name in ACTIONS and ACTIONS[action.name].gait == "walk"
    found = []
    for index, words in enumerate(memory.words):
        unlike = kin.get(words.kind)
        if unlike is None or (words.legs and not anatomy.parts):  # who has no limbs follows nobody who has some
            continue
        alike = float(likeness[index])
        styled = bool(styles & set(words.style)) or words.noun in styles
        fits = max(named.get(words.action, 0.0), 0.8 * alike if alike > ALIKE else 0.0)
        if styled and words.action == "walk" and steps:
            fits = max(fits, STYLED_WALK)
        if fits < ANSWER:
            continue
        score = fits - OTHER_BODY * unlike + _manner(request, action, words, styled) + 0.25 * alike
        score += _body_fit(words, anatomy, request) + _quality(words) + 1.0 * words.own
        found.append(Found(index, words, round(score, 4), fits, unlike, styled or not request.style))
    return sorted(found, key=lambda f: -f.score)[:count]


def refusal(memory: Memory, request: Request, action: RequestedAction, anatomy: Anatomy, encoder: TextEncoder) -> str:
    """That nothing is known, and what comes nearest."""
    known = known_actions(memory, anatomy.kind)
    near = action_likeness(action, encoder)
    close = sorted(known, key=lambda name: -near.get(name, -1.0))[:4]
    listed = ", ".join(name.replace("_", " ") for name in close) or "nothing"
    return (
        f"{request.prompt!r}: no real motion of a body like this ({anatomy.kind}) is known for {action.word!r}; "
        f"nearest are {listed}; `jigdoll memory list` shows all, `jigdoll library add` takes clips of your own"
    )


def pick(found: Sequence[Found], seed: int, worse: float = SEEDS) -> Found:
    """One of the segments that fit at most so much worse than the best: another seed, another one."""
    near = [f for f in found if f.score > found[0].score - worse]
    return near[seed % len(near)]


def pick_after(
    memory: Memory,
    found: Sequence[Found],
    seed: int,
    end: Callable[[LimbMotion], float] | None,
    worse: float = SEEDS,
) -> Found:
    """The one to take after another action: of those that fit, the one that goes on best from there."""
    if end is None:
        return pick(found, seed, worse)
    near = [f for f in found if f.score > found[0].score - FITTING]
    ranked = sorted(near, key=lambda f: -f.score + TRANSITION * end(memory.segment(f.index).motion))
    return ranked[0] if seed == 0 else ranked[seed % min(len(ranked), 3)]


def tempo_of(action: RequestedAction, styles: Sequence[str] = ()) -> float:
    """How much faster than the segment an action is wanted."""
    mood = float(np.prod([STYLE_TEMPO.get(style, 1.0) for style in styles]))
    return mood * float(np.interp(action.tempo, [-0.7, 0.0, 0.7], [SLOW, 1.0, FAST]))


def _sentence(request: Request, action: RequestedAction) -> str:
    """Who does what and how, in a few plain words, as the texts of segments are."""
    who = request.noun or "person"
    told = action.word if len(action.word.split()) > 2 else f"a {who} {action.word}"
    way = {"backward": "backwards", "sideways": "sideways", "circle": "in a circle"}.get(action.way or "", "")
    return " ".join(word for word in (told, way, *request.style) if word)


def _styles(request: Request, action: RequestedAction) -> set[str]:
    """The styles of a request in the words of segments: "like an old robot" is old, and a robot."""
    words = {word for style in request.style for word in style.split()} - {"like", "a", "an", "the"}
    words |= {request.noun or ""} & MANNERS
    return words or set(IMPLIED.get(action.name, ()))


def _names(name: str) -> dict[str, float]:
    """Actions that serve for one that is asked for: itself, what it is a kind of, its kinds, what looks like it."""
    fits = {name: 1.0}
    row = ACTIONS.get(name)
    if row is not None and row.general:
        fits[row.general] = 0.75
    for other in ACTIONS.values():
        if other.general == name:
            fits.setdefault(other.name, 0.65)
    for other, value in SERVES.get(name, {}).items():
        fits[other] = max(fits.get(other, 0.0), value)
    return fits


def _manner(request: Request, action: RequestedAction, words: Words, styled: bool) -> float:
    """How well the manner fits: who only walks does not walk drunk, nor backwards."""
    if request.style or styled:
        score = 0.5 if styled else -0.1 * len(words.style)
    else:
        score = -0.3 * bool(words.style)
        score -= 0.03 * max(len(words.text.split()) - 4, 0)  # a long text tells of something special
    if action.name not in TURNS:
        score -= (0.05 if words.cyclic else 0.2) * min(abs(words.turn), 2.0)  # a way that goes on can be straightened
    if not action.tempo and not request.style:
        score -= _unusual_pace(words)
    wanted = {"backward": "back", "sideways": "side"}.get(action.way or "")
    for way in ("back", "side"):
        there = any(word.startswith(way) for word in words.text.lower().split())
        score += 0.4 * (there and way == wanted) - 0.25 * (there and way != wanted)
    return score


def _unusual_pace(words: Words) -> float:
    """How much too fast or too slow a gait is for who is known to have legs of some length (Alexander: v^2 / (g L))."""
    row, length = ACTIONS.get(words.action), LEG_LENGTHS.get(words.noun)
    if row is None or length is None or row.gait not in ("walk", "run") or row.froude <= 0 or words.speed <= 0:
        return 0.0
    usual = (row.froude * GRAVITY / length) ** 0.5
    beyond = abs(np.log(words.speed / usual)) - np.log(PACE)
    return float(np.clip(UNUSUAL * beyond, 0.0, MOST_UNUSUAL))


def _body_fit(words: Words, anatomy: Anatomy, request: Request) -> float:
    """How well the one who moved fits the one who shall: who it is, how many legs, wings."""
    same = words.noun in (request.noun, request.species)
    same = same or (words.noun == "person" and request.species in (None, "human"))
    same = same or (len(words.noun) > 2 and words.noun in anatomy.asset.name.lower())
    legs = abs(words.legs - len(anatomy.legs)) / 8
    machine = words.noun in STRANGE and not same
    strokes = words.noun in SWIMMING_MAMMALS, bool({request.noun, request.species} & SWIMMING_MAMMALS)
    other = words.kind == "fish" and strokes[0] != strokes[1]
    score = 0.3 * same - 0.3 * legs - 0.1 * (words.wings != _winged(anatomy)) - 0.25 * machine
    return score - OTHER_STROKE * other


def _quality(words: Words) -> float:
    """Usual ones first; very short pieces show little; what slides, and what is only procedural, comes last."""
    score = 0.2 * words.typical - stuck(words) - (0.5 if words.seconds < 0.5 and not words.cyclic else 0.0)
    score -= 0.2 * bool(FRAGMENTS & set(words.text.lower().split()))
    return score - 0.4 * words.source.startswith("zoo")


def _winged(anatomy: Anatomy) -> bool:
    return any(part.limb.kind == "wing" for part in anatomy.parts)


def stuck(words: Words) -> float:
    """Legs that should get along and do not, or much too fast: a walk whose ground speed was not found slides."""
    row = ACTIONS.get(words.action)
    travels = row is not None and row.gait in ("walk", "run") and row.froude > 0 and words.legs > 0
    return 0.6 if travels and (words.speed < 0.3 or (words.action == "walk" and words.speed > FASTEST_WALK)) else 0.0
