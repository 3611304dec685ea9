"""What a sentence says: who, which actions, how fast, to which side, and what was not understood."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from jigdoll.language.lexicon import ACTIONS, CONCEPTS, LEXICON, UNNATURAL, WORDS, Word, surface_forms
from jigdoll.language.phrases import find_phrases, tokens_of

MOST_TOKENS = 24
NAMED_TEMPO = 0.7
"""The tempo of "slowly" (negative) and "quickly"."""

_CONCEPT_IDS = {concept: place + 1 for place, concept in enumerate(CONCEPTS)}
_WORD_IDS = {word: place + 1 for place, word in enumerate(WORDS)}


def _forms(words: Sequence[Word]) -> dict[str, Word]:
    """Every surface form with its word; where two words share a form, the first one of the lexicon has it."""
    forms: dict[str, Word] = {}
    for word in words:
        for form in surface_forms(word):
            forms.setdefault(form, word)
    return forms


_PLAIN = _forms([word for word in LEXICON if word.kind != "negative"])
_IN_NEGATIVE = _PLAIN | _forms([word for word in LEXICON if word.kind == "negative"])
_LOOKS = _forms([word for word in LEXICON if word.kind == "look"])


@dataclass(frozen=True)
class Reading:
    """What was understood of a prompt."""

    prompt: str
    concepts: tuple[int, ...]
    """Ids of the concepts in order; a word may carry several."""
    words: tuple[int, ...]
    """The word behind each concept, 0 if it has no place in `WORDS`."""
    unknown: tuple[str, ...]
    """Words that are not known."""
    unused: tuple[str, ...]
    """Words that are known to say how it moves, but that the prior has not learned."""
    noun: str | None
    """Who moves, in the prompt's word."""
    species: str | None
    """A species that the prior was trained on."""
    family: str | None
    actions: tuple[str, ...]
    """All actions named, the leading one first."""
    tempo: float
    """-1..1, below zero for slow; zero where nothing is said."""
    side: str | None
    """`left` or `right`."""
    negative: bool
    """Whether it asks for unnatural motion."""

    @property
    def action(self) -> str | None:
        """The leading action, one of `lexicon.ACTIONS`; None where no action is named."""
        return self.actions[0] if self.actions else None


def read(prompt: str) -> Reading:
    """Find the known words of a prompt and the concepts that they carry; a pure function of the prompt."""
    found, unknown = _split(prompt)
    words = [word for _, word in found]
    pairs = [(concept, word) for word in words for concept in word.concepts][:MOST_TOKENS]
    named = [concept for concept, _ in pairs]

    def first(kind: str) -> str | None:
        return next((name.partition(":")[2] for name in named if name.startswith(f"{kind}:")), None)

    families = [name.partition(":")[2] for name in named if name.startswith("family:")]
    nouns = [word.base for word in words if word.kind == "noun"]
    nouns.sort(key=lambda noun: noun.endswith("legged"))
    side = first("direction")
    verbs = dict.fromkeys(name.partition(":")[2] for name in named if name.startswith("action:"))
    return Reading(
        prompt=prompt,
        concepts=tuple(_CONCEPT_IDS[concept] for concept in named),
        words=tuple(_WORD_IDS.get(word.base, 0) if word.written else 0 for _, word in pairs),
        unknown=tuple(unknown),
        unused=tuple(word.base for word in words if word.kind == "manner"),
        noun=nouns[0] if nouns else None,
        species=first("species"),
        family=next((name for name in families if name != "any"), None),
        actions=_leading(tuple(verbs), side),
        tempo=NAMED_TEMPO * _sign(named.count("tempo:fast") - named.count("tempo:slow")),
        side=side,
        negative="negative:unnatural" in named,
    )


def phrases_of(prompt: str) -> list[tuple[str, Word]]:
    """The known words of a prompt in order, each as it is written there."""
    return _split(prompt)[0]


def _split(prompt: str) -> tuple[list[tuple[str, Word]], list[str]]:
    """The known words in order, and what is left over."""
    tokens = tokens_of(prompt)
    found, unknown = find_phrases(tokens, _IN_NEGATIVE if UNNATURAL in " ".join(tokens) else _PLAIN)
    # "A giant walks" names a giant, but "a giant spider" a spider.
    last = max((i for i, (_, word) in enumerate(found) if word.kind == "noun"), default=-1)
    words = [(form, _LOOKS[form] if i < last and form in _LOOKS else word) for i, (form, word) in enumerate(found)]
    return words, unknown


def _leading(verbs: tuple[str, ...], side: str | None) -> tuple[str, ...]:
    """The actions named, the one that leads first: who walks and turns, turns; who stands and waves, waves."""
    weak = [verb for verb in ("idle", "walk") if verb in verbs]
    strong = [verb for verb in verbs if verb not in weak]
    if "turn" in strong:
        strong = ["turn", *(verb for verb in strong if verb != "turn")]
    ordered = strong + [verb for verb in verbs if verb in weak]
    return tuple(f"turn_{side or 'left'}" if verb == "turn" else verb for verb in ordered)


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


_MEANINGS: dict[str, tuple[str, ...]] = {
    "swim": ("fly", "walk"),
    "dive": ("jump", "fly"),
    "climb": ("creep", "walk"),
    "sit": ("idle",),
    "sleep": ("idle",),
    "lie": ("idle",),
    "eat": ("idle",),
    "drink": ("idle",),
    "graze": ("idle", "walk"),
    "attack": ("punch", "kick"),
    "fight": ("punch", "kick"),
    "throw": ("punch", "wave"),
    "catch": ("jump", "wave"),
    "fall": ("limp", "jump"),
    "roll": ("dance", "hop"),
    "flip": ("jump",),
    "backflip": ("jump",),
    "somersault": ("jump",),
    "clap": ("wave", "dance"),
    "bow": ("idle", "wave"),
    "nod": ("idle",),
    "roar": ("idle", "stomp"),
    "bark": ("idle",),
    "play": ("hop", "dance"),
    "ride": ("gallop", "trot"),
    "skate": ("walk", "dance"),
    "dig": ("stomp", "creep"),
    "scratch": ("wave", "kick"),
    "shake": ("dance", "wave"),
    "backwards": ("walk",),
    "backward": ("walk",),
    "sideways": ("turn_left", "turn_right"),
    "back": ("walk",),
    "slither": ("creep",),
    "land": ("fly", "jump"),
    "push": ("punch", "walk"),
    "pull": ("walk", "creep"),
    "lift": ("wave",),
    "cry": ("idle",),
    "laugh": ("idle", "dance"),
    "talk": ("idle", "wave"),
    "sing": ("idle", "dance"),
    "juggle": ("wave", "dance"),
    "howl": ("idle",),
    "rear": ("jump", "kick"),
    "wag": ("idle", "dance"),
    "pirouette": ("dance", "turn_left"),
    "sniff": ("idle", "creep"),
    "stretch": ("idle",),
    "bite": ("idle", "punch"),
    "cartwheel": ("jump", "dance"),
    "skateboard": ("walk", "run"),
    "slide": ("walk", "run"),
    "kneel": ("idle", "creep"),
    "crouch": ("creep", "idle"),
}
"""Words that name a motion the prior does not have, with what comes nearest."""


def explain(reading: Reading) -> str | None:
    """A sentence about everything in the prompt that will not be obeyed; None if there is nothing."""
    notes = [_about(word) for word in dict.fromkeys(reading.unknown)]
    if reading.action is None and not reading.negative and reading.prompt.strip():
        notes.append(f"no action was found; the actions are {', '.join(ACTIONS)}")
    if len(reading.actions) > 1:
        first, *others = reading.actions
        notes.append(f"one clip shows one action: {first} leads, and {' and '.join(others)} may be lost")
    if reading.side is None and any(action.startswith("turn") for action in reading.actions):
        notes.append("no side to turn to was found, left is taken")
    if reading.side and reading.action and not reading.action.startswith("turn"):
        notes.append(f"{reading.side!r} counts only with a turn, and {reading.action} goes straight ahead")
    if reading.unused:
        notes.append(f"{_quoted(reading.unused)}: understood, but not learned, so the motion will not show it")
    return "; ".join(notes) or None


def _about(word: str) -> str:
    """What to say about an unknown word."""
    base = next((form for form in _stems(word) if form in _MEANINGS), None)
    if base:
        return f"{word!r} is not an action that it knows (closest: {', '.join(_MEANINGS[base])})"
    close = get_close_matches(word, [form for form in _PLAIN if len(form) > 3 and " " not in form], n=2, cutoff=0.75)
    return f"{word!r} is unknown" + (f" (did you mean {' or '.join(close)}?)" if close else "")


def _stems(word: str) -> tuple[str, ...]:
    """Guesses at the base form of an inflected verb."""
    stems = [word]
    for ending in ("s", "es", "ing", "ed"):
        if word.endswith(ending):
            stem = word.removesuffix(ending)
            stems += [stem, f"{stem}e", stem[:-1] if stem[-1:] == stem[-2:-1] else stem]
    return tuple(stems)


def _quoted(words: Sequence[str]) -> str:
    return ", ".join(repr(word) for word in dict.fromkeys(words))
