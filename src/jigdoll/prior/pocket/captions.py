"""The captions of training clips: many ways to say who does what, and how fast."""

from collections.abc import Sequence

import torch

from jigdoll.language.explain import nearest
from jigdoll.language.inflect import inflect
from jigdoll.language.looks import COLORS, SHAPES, SIZES
from jigdoll.language.nouns import GENERIC, GROUPS, NAMES
from jigdoll.prior.pocket.vocabulary import (
    ACTIONS,
    DIRECTIONS,
    HELD_OUT_SPECIES,
    NEGATIVE_KINDS,
    NEGATIVES,
    TEMPOS,
    TRAINED_SPECIES,
    UNNATURAL,
    VERBS,
)
from jigdoll.types import Request, RequestedAction

__all__ = [
    "ACTIONS",
    "HELD_OUT_SPECIES",
    "NEGATIVE_KINDS",
    "in_plain_words",
    "negative_of",
    "write_caption",
    "write_negative",
]

NAMED_ABOVE = 0.4
"""A tempo is worth a word beyond this."""

_GENERIC_SHARE = 0.3
_ANYONE = [noun for noun in GENERIC if noun not in ("animal", "beast", "critter", "monster")]
_GROUP_OF_SPECIES = {
    "penguin": "bird",
    "ostrich": "bird",
    "t_rex": "dinosaur",
    "velociraptor": "dinosaur",
    "kangaroo": "marsupial",
}
_ONLY_SOME = {"bird", "dinosaur", "marsupial", "mammal", "livestock"}
"""Groups that do not hold for the whole of their family."""
_ADJECTIVES = (*SIZES, *SHAPES, *COLORS, "wild", "old", "friendly", "cartoon")
_SCENES = (
    *("on the ground", "across the field", "on a checkered floor", "in a studio", "on grass", "in the snow", "ahead"),
    *("along the road", "over the sand", "on a plain background", "side view", "through the park", "forward"),
)
_STILL = ("idle", "punch", "kick", "wave", "flap", "dance")
"""Actions on the spot: no scene is crossed."""
_STANDING_SCENES = tuple(scene for scene in _SCENES if scene.startswith(("on ", "in ", "side")))
_PREFIXES = ("a video of", "an animation of", "footage of", "animation of", "a clip of")


class _Dice:
    """A handful of random numbers, drawn at once because single draws are slow."""

    def __init__(self, generator: torch.Generator) -> None:
        self._rolls = iter(torch.rand(24, generator=generator).tolist())

    def chance(self, share: float) -> bool:
        return next(self._rolls) < share

    def pick(self, options: Sequence[str]) -> str:
        return options[int(next(self._rolls) * len(options))]


def write_caption(
    generator: torch.Generator, *, species: str | None, family: str, action: str, tempo: float = 0.0
) -> str:
    """A caption of a clip in which a body of this species and family does an action.

    `tempo` in -1..1 says how slow or fast for that body; beyond 0.4 it may be named, always by a word of that side.
    Without a species, or for one that is held out of training, only the kind of body is named.
    """
    dice = _Dice(generator)
    subject = _subject(dice, species, family)
    key, verb = _verb(dice, action, tempo)
    _, third, ing, _ = inflect(verb)
    adverb = ""
    if abs(tempo) > NAMED_ABOVE and action != "idle" and " " not in key and dice.chance(0.8):
        adverb = dice.pick(TEMPOS["fast" if tempo > 0 else "slow"])
    side = ""
    if action.startswith("turn"):
        side = dice.pick(DIRECTIONS[action.partition("_")[2]])
    before = bool(adverb) and " " not in adverb and adverb != "fast" and dice.chance(0.35)
    scene = dice.pick(_STANDING_SCENES if action in _STILL else _SCENES) if dice.chance(0.2) else ""
    form = dice.pick(("third", "third", "third", "progressive", "bare", "bare", "prefixed"))
    phrase = [adverb if before else "", third if form == "third" else ing, side, "" if before else adverb, scene]
    words = [subject, "is" if form == "progressive" else "", *phrase]
    if form == "prefixed":
        words.insert(0, dice.pick(_PREFIXES))
    sentence = " ".join(word for word in words if word)
    if dice.chance(0.3):
        sentence = sentence[0].upper() + sentence[1:]
    return sentence + ("." if dice.chance(0.15) else "")


def write_negative(generator: torch.Generator, *, species: str | None, family: str, action: str, kind: str) -> str:
    """A caption of a clip that is wrong in this way: it always says "unnatural motion", and mostly who does what.

    Only against a bad walk can a prior learn what makes a walk good; against anything bad it learns what a walk is.
    """
    dice = _Dice(generator)
    if dice.chance(0.1):
        return UNNATURAL
    words = [f"{UNNATURAL} of {_subject(dice, species, family)}"]
    if dice.chance(0.8):
        _, verb = _verb(dice, action, 0.0)
        words.append(inflect(verb)[2])
        if action.startswith("turn"):
            words.append(dice.pick(DIRECTIONS[action.partition("_")[2]]))
    if dice.chance(0.25):
        words.append(dice.pick(NEGATIVES[kind]))
    return " ".join(words)


def in_plain_words(request: Request, can: frozenset[str]) -> str:
    """What a request asks for with the plainest verbs and adverbs, as captions say it most.

    An action that is none of `can` gives way to the nearest: "a fox saunters merrily" is "a fox walks slowly".
    """
    verbs = [_plain_verb(action, can) for action in request.actions]
    who = _who(request)
    return " ".join(part for part in (who and f"{_article(who)} {who}", " and ".join(filter(None, verbs))) if part)


def negative_of(request: Request, can: frozenset[str]) -> str:
    """The negative text that belongs to a request: unnatural motion of whoever moves in it, doing what it does."""
    lead = None if request.action is None else nearest(request.action.name, can)
    who = _who(request)
    if lead is None and not who:
        return UNNATURAL
    noun = who or "creature"
    words = [f"{UNNATURAL} of {_article(noun)} {noun}"]
    if lead is not None and request.action is not None:
        words += [inflect(VERBS[lead][0])[2], (request.action.side or "left") if lead == "turn" else ""]
    return " ".join(word for word in words if word)


def _plain_verb(action: RequestedAction, can: frozenset[str]) -> str:
    """The plainest verb for an action in the third person, with where it turns to and its tempo."""
    name = nearest(action.name, can)
    if name is None:
        return ""
    tempo = "" if not action.tempo else "quickly" if action.tempo > 0 else "slowly"
    circle = "in circles" if action.way == "circle" else ""
    side = (action.side or "") if name == "turn" or circle else ""
    return " ".join(word for word in (inflect(VERBS[name][0])[1], circle, side, tempo) if word)


def _who(request: Request) -> str:
    """All that is said about who moves, in nouns."""
    nouns = [word for word in request.words if word.kind == "noun"]
    if request.noun is None or any(word.meaning == "pronoun" for word in nouns):
        return request.noun or ""
    return " ".join(dict.fromkeys(word.base.removeprefix("a ").removeprefix("the ") for word in nouns))


def _verb(dice: _Dice, action: str, tempo: float) -> tuple[str, str]:
    """A verb for the action and the key of its table; verbs that are slow or fast themselves only at that tempo."""
    stem = "turn" if action.startswith("turn") else action
    key = f"{stem} {'fast' if tempo > 0 else 'slow'}"
    if key not in VERBS or abs(tempo) <= NAMED_ABOVE or not dice.chance(0.3):
        key = stem
    verbs = VERBS[key]
    # The plain word is what people write most.
    return key, verbs[0] if dice.chance(0.4) else dice.pick(verbs)


def _subject(dice: _Dice, species: str | None, family: str) -> str:
    """Who moves, with an article and perhaps an adjective."""
    if species in TRAINED_SPECIES and not dice.chance(_GENERIC_SHARE):
        names = NAMES[species]
        noun = names[0] if dice.chance(0.5) else dice.pick(names)
    else:
        noun = _generic_noun(dice, species, family)
    adjective = dice.pick(_ADJECTIVES) if dice.chance(0.25) else ""
    article = dice.pick(("a", "a", "a", "the", ""))
    if article == "a":
        article = _article(adjective or noun)
    return " ".join(word for word in (article, adjective, noun) if word)


def _generic_noun(dice: _Dice, species: str | None, family: str) -> str:
    """A noun for the kind of body, or for any body."""
    if dice.chance(0.25):
        return dice.pick([*_ANYONE, *([] if family == "humanoid" else ["animal"])])
    groups = [noun for noun, kind in GROUPS.items() if kind == family and noun not in _ONLY_SOME]
    if species in _GROUP_OF_SPECIES:
        groups += 2 * [_GROUP_OF_SPECIES[species]]
    noun = dice.pick(groups)
    return noun + dice.pick((" animal", " creature")) if noun.endswith("legged") else noun


def _article(word: str) -> str:
    return "an" if word[0] in "aeiou" else "a"
