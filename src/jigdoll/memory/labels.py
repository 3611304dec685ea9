"""What the words of a corpus's clips say: which actions in which order, and in which manner."""

import re
from functools import cache

from jigdoll.corpus import UNNAMED, action_named
from jigdoll.language.adverbs import STYLES
from jigdoll.language.meaning import SURE, meanings, nearest_meaning
from jigdoll.language.read import read
from jigdoll.protocols import TextEncoder

STYLE_WORDS = {
    "mummy": "zombie", "zombie": "zombie", "frankenstein": "zombie", "drunk": "drunk", "old man": "old",
    "teen": "child", "graceful": "graceful", "sexy": "sexy", "extremefemale": "sexy", "strong man": "strong",
    "lavish": "proud", "stern": "angry", "attitude": "proud", "cool": "confident", "self assured": "confident",
    "injured": "injured", "bruised": "injured", "wounded": "injured", "hurt": "injured", "mope": "sad", "sad": "sad",
    "elated": "happy", "happy": "happy", "joy": "happy", "clumsy": "heavy", "relaxed": "relaxed", "rushed": "excited",
    "sneaky": "quiet", "nervous": "scared", "funny": "playful", "on toes": "light", "angry": "angry",
    "scared": "scared", "tired": "tired",
}  # fmt: skip
"""Manners that clips of the corpus are named after."""
IMITATED = (
    "cat", "chicken", "dinosaur", "tyrannosaurus", "bear", "dog", "elephant", "mouse", "snake", "monkey", "prairie dog",
    "whale", "fish", "hummingbird", "pterosaur", "genie", "flamingo", "quail",
)  # fmt: skip
"""Animals whom people imitate."""
REFINED = {
    "accept": "nod", "deny": "shake_head", "reject": "shake_head", "claphands": "clap", "coffee mug": "drink",
    "thoughtful": "think", "thinker": "think", "textmessage": "type", "dialing phone": "type", "headbutt": "attack",
    "hitreact": "hit_reaction", "hit react": "hit_reaction", "hit recieve": "hit_reaction", "pushup": "push_up",
    "curtsey": "bow", "motorcycle": "ride", "stairs": "climb_stairs", "lindy": "dance", "cold": "tremble",
    "ranged": "shoot", "lift legs": "walk", "gestures": "talk", "putting on": "work", "sword slash": "swordplay",
    "break stroke": "swim", "breast stroke": "swim", "fly stroke": "swim", "free style": "swim", "story": "talk",
}  # fmt: skip
"""What some words of the corpus mean, whatever else is said."""
NAMED = {"yes": "nod", "no": "shake_head", "hello": "wave", "listen": "talk", "duck": "dodge", "mug": "drink"}
"""The same, where they are all that is said."""
SILENT = (
    "signals", "sequesnce", "hang out", "stares down", "passes soda", "channel surfing", "moving a stool", "vacation",
    "ring around", "ready stance", "whip", "freezing", "confused", "pesky bug", "range of motion", "taking a movie",
    "pulls up", "try door", "interact",
)  # fmt: skip
"""Texts that do not tell what is to be seen."""


def plain(text: str) -> str:
    """A clip's text in plain words: no digits, no joined words, nothing in brackets."""
    text = re.sub(r"\(.*?\)", " ", text)
    text = re.sub(r"(?<=[a-z])(?=[A-Z])|[_/\\]|\d+", " ", text)
    text = re.sub(r"\b(a man|a woman|gestic|human-animations|RM|In ?place)\b:?", " ", text, flags=re.IGNORECASE)
    return re.sub(r"\s+", " ", text.replace(" - ", ", ")).strip(" ,-").lower()


def styles_of(text: str) -> tuple[str, ...]:
    """In which manner, by the words of a clip."""
    words = f" {plain(text)} ".replace(",", " ").replace("-", " ")
    found = [style for word, style in STYLE_WORDS.items() if f" {word} " in words]
    return tuple(dict.fromkeys([*found, *(style for style in read(plain(text)).style if style in STYLES)]))


def imitated(text: str) -> tuple[str, ...]:
    """Whom a person imitates."""
    words = f" {plain(text)} ".replace(",", " ")
    return tuple(name for name in IMITATED if f" {name} " in words)


def actions_of(text: str, named: str, encoder: TextEncoder) -> tuple[str, ...]:
    """The actions of a clip in order: part by part where its text has commas, else what the corpus calls it."""
    words = plain(text)
    if any(word in words for word in SILENT):
        return ()
    for name in IMITATED:
        words = re.sub(rf"\b{name}( rex)?\b", "", words)
    parts = [part.strip() for part in words.split(",") if part.strip()]
    if not parts:
        return ()
    found: list[str] = []
    for part in parts:
        actions = _part(part, named if len(parts) == 1 else UNNAMED, encoder)
        found += [action for action in actions if not found or found[-1] != action]
    if not found and named != UNNAMED:
        return (named,)
    return tuple(found)


def _part(part: str, named: str, encoder: TextEncoder) -> list[str]:
    """The actions of one part of a text."""
    for word, action in REFINED.items():
        if re.search(rf"\b{word}\b", part):
            return [action]
    if part.rsplit(maxsplit=1)[-1] in NAMED:
        return [NAMED[part.rsplit(maxsplit=1)[-1]]]
    told = [action.name for action in read(part).actions]
    known = action_named(named) if named != UNNAMED else None
    if known is None:
        if told:
            return told
        meaning, likeness = nearest_meaning(part, encoder)
        return [meaning.action] if likeness > SURE + 0.05 and len(part.split()) < 6 else []
    if not told or (known in told and len(told) == 1):
        return [known]
    if known in told:
        return told
    if len(told) > 1:
        return [known]
    # The corpus and the reader differ: the description nearer to the text wins.
    return [max((known, told[0]), key=lambda action: _likeness(part, action, encoder))]


def _likeness(text: str, action: str, encoder: TextEncoder) -> float:
    texts = _texts(action)
    return float((encoder([text]) @ encoder(list(texts)).T).max()) if texts else 0.0


@cache
def _texts(action: str) -> tuple[str, ...]:
    return tuple(row.text for row in meanings() if row.action == action)
