"""Known words and phrases in a sentence, however they are spelled."""

import re
from collections.abc import Mapping
from typing import TypeVar

Meaning = TypeVar("Meaning")

LONGEST = 5
"""Words in the longest phrase that is looked for."""
_DIGITS = {"2": "two", "4": "four", "6": "six", "8": "eight"}


def tokens_of(sentence: str) -> list[str]:
    """The words of a sentence in lower case, without punctuation, hyphens and possessives."""
    plain = re.sub(r"['’]s?\b", "", sentence.lower()).replace("_", " ")
    words: list[str] = re.findall(r"\w+", plain)
    return [_DIGITS.get(word, word) for word in words]


def find_phrases(tokens: list[str], known: Mapping[str, Meaning]) -> tuple[list[tuple[str, Meaning]], list[str]]:
    """Known phrases in order with their meanings, the longest first where several fit, and the words left over."""
    found: list[tuple[str, Meaning]] = []
    rest: list[str] = []
    place = 0
    while place < len(tokens):
        for length in range(min(LONGEST, len(tokens) - place), 0, -1):
            form = " ".join(tokens[place : place + length])
            if form in known:
                found.append((form, known[form]))
                place += length
                break
        else:
            rest.append(tokens[place])
            place += 1
    return found, rest
