"""Every form of every known word with what it may mean: the tables of this room in one dictionary."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from jigdoll.language import actions, adverbs, fillers
from jigdoll.language.actions import Action, verb_forms
from jigdoll.language.inflect import inflect
from jigdoll.language.looks import COLORS, SHAPES, SIZES
from jigdoll.language.nouns import BODILESS, GENERIC, GROUPS, KIN, NAMES, PRONOUNS, plural
from jigdoll.types import KnownWord, WordKind

NAMED_TEMPO = 0.7
"""The tempo of "slowly" (negative) and "quickly"."""


@dataclass(frozen=True)
class Sense:
    """One meaning of a form."""

    base: str
    kind: WordKind
    meaning: str = ""
    tempo: float = 0.0
    ing: bool = False
    """Whether the form is that of a running, jumping, sitting."""
    light: bool = False
    """Whether another word says what is done: a form of do, take, get ..."""


Lexicon = dict[str, tuple[Sense, ...]]


@cache
def lexicon() -> Lexicon:
    """Every known form; where two words of one kind share a form, the first of the tables has it."""
    forms: dict[str, dict[WordKind, Sense]] = {}
    for form, sense in _entries():
        forms.setdefault(form, {}).setdefault(sense.kind, sense)
    return {form: tuple(senses.values()) for form, senses in forms.items()}


def word_of(form: str, sense: Sense) -> KnownWord:
    """A word of a sentence in one of its senses."""
    return KnownWord(form, sense.base, sense.kind, sense.meaning, sense.tempo)


def _entries() -> Iterable[tuple[str, Sense]]:
    yield from _nouns()
    for row in actions.ACTIONS.values():
        yield from _action(row)
    for kind, table in _ADVERBS:
        for meaning, words in table.items():
            yield from ((word, Sense(word, kind, meaning)) for word in words)
    for word in (*SIZES, *SHAPES, *COLORS, *fillers.LOOKS):
        yield word, Sense(word, "look")
    for thing in fillers.THINGS:
        yield from ((form, Sense(thing, "thing")) for form in _both(thing))
    for verb in fillers.LIGHT_VERBS:
        base, third, ing, pasts = inflect(verb)
        yield from ((form, Sense(verb, "filler", light=True)) for form in (base, third, ing, *pasts))
    for word in (*fillers.DETERMINERS, *fillers.NEGATORS, *fillers.FILLERS):
        yield word, Sense(word, "filler")


_ADVERBS: tuple[tuple[WordKind, dict[str, tuple[str, ...]]], ...] = (
    ("side", adverbs.SIDES),
    ("tempo", adverbs.TEMPOS),
    ("way", adverbs.WAYS),
    ("times", adverbs.TIMES),
    ("style", adverbs.STYLES),
)


def _nouns() -> Iterable[tuple[str, Sense]]:
    """Nouns, singular and plural; species are meant by their name, groups and other bodies by their family."""
    for table in (NAMES, KIN):
        for species, nouns in table.items():
            yield from ((form, Sense(noun, "noun", f"species:{species}")) for noun in nouns for form in _both(noun))
    for table, group in ((GROUPS, "group"), ({n: f for f, ns in BODILESS.items() for n in ns}, "body")):
        for noun, family in table.items():
            yield from ((form, Sense(noun, "noun", f"{group}:{family}")) for form in _both(noun))
    for noun in GENERIC:
        yield from ((form, Sense(noun, "noun", "any")) for form in _both(noun))
    for word in PRONOUNS:
        yield word, Sense(word, "noun", "pronoun")


def _both(noun: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((noun, plural(noun))))


def _action(row: Action) -> Iterable[tuple[str, Sense]]:
    """All forms of an action's verbs."""
    for verbs, tempo in ((row.verbs, 0.0), (row.slow, -NAMED_TEMPO), (row.fast, NAMED_TEMPO)):
        for verb in verbs:
            base = verb.replace("~", "its")
            for form, ing in verb_forms(verb):
                yield form, Sense(base, "action", row.name, tempo, ing)
    for noun in row.nouns:
        yield noun, Sense(noun, "action", row.name)
