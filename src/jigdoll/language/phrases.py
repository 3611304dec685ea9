"""Sentences cut into words, and known phrases found in them however they are spelled."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

Meaning = TypeVar("Meaning")

LONGEST = 7
"""Words in the longest phrase that is looked for."""
BREAK = ","
"""The token that stands for a comma, a colon or a semicolon."""
_DIGITS = {"2": "two", "3": "three", "4": "four", "5": "five", "6": "six", "8": "eight", "10": "ten"}


@dataclass(frozen=True)
class Found(Generic[Meaning]):
    """A piece of a sentence."""

    form: str
    meaning: Meaning | None
    """None where the word is not known."""
    after_break: bool = False
    """Whether a comma stands before it."""


def tokens_of(sentence: str, *, breaks: bool = False) -> list[str]:
    """The words of a sentence in lower case, without hyphens and possessives; with `breaks` commas are kept."""
    plain = re.sub(r"['’](?:s\b)?", "", sentence.lower()).replace("_", " ")
    words: list[str] = re.findall(r"\w+|[,;:]" if breaks else r"\w+", plain)
    return [BREAK if word in ",;:" else _DIGITS.get(word, word) for word in words]


def find_phrases(tokens: list[str], known: Mapping[str, Meaning]) -> list[Found[Meaning]]:
    """The pieces of a sentence in order: known phrases, the longest first where several fit, and unknown words."""
    found: list[Found[Meaning]] = []
    place, after_break = 0, False
    while place < len(tokens):
        if tokens[place] == BREAK:
            place, after_break = place + 1, True
            continue
        for length in range(min(LONGEST, len(tokens) - place), 0, -1):
            form = " ".join(tokens[place : place + length])
            if form in known:
                found.append(Found(form, known[form], after_break))
                place += length
                break
        else:
            found.append(Found(tokens[place], None, after_break))
            place += 1
        after_break = False
    return found
