"""Phrases about motion, written by a grammar out of `train_tables`: what the small sentence encoder learns from."""

import csv
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jigdoll.language.train_tables import ACTORS, DOUBLED, IRREGULAR, MOVES, PLACES, STYLES


@dataclass(frozen=True)
class Phrase:
    """A phrase with the names of its actions and of its style, where they are known."""

    text: str
    actions: tuple[str, ...] = ()
    style: str | None = None
    about: str | None = None
    """The verb of a sentence of which nothing else is known."""


@dataclass(frozen=True)
class Meaning:
    """One entry of a table."""

    anchors: tuple[str, ...]
    ways: tuple[str, ...]
    extra: tuple[str, ...]
    """Objects of an action, adjectives of a style."""


def table(text: str) -> dict[str, Meaning]:
    """Entries of `name: descriptions = ways | extra`; lines that go on are indented."""
    rows = {}
    for line in text.strip().replace("\n  ", " ").splitlines():
        name, rest = line.split(": ", 1)
        anchors, rest = rest.split(" = ")
        ways, _, extra = rest.partition(" | ")
        rows[name] = Meaning(_cells(anchors), _cells(ways), _cells(extra))
    return rows


def _cells(text: str) -> tuple[str, ...]:
    return tuple(cell.strip() for line in text.strip().splitlines() for cell in line.split(",") if cell.strip())


MOVE_TABLE, STYLE_TABLE = table(MOVES), table(STYLES)
ACTOR_LIST, PLACE_LIST = (_cells(text.replace("\n  ", " ")) for text in (ACTORS, PLACES))
_PAST = dict(pair.split() for pair in _cells(IRREGULAR.replace("\n", " ")))
_DOUBLED = frozenset(DOUBLED.split())


def third_person(verb: str) -> str:
    """walk -> walks."""
    if verb == "be":
        return "is"
    if verb == "have":
        return "has"
    if re.search(r"(s|x|z|ch|sh|o)$", verb):
        return verb + "es"
    return re.sub(r"(?<![aeiou])y$", "ie", verb) + "s"


def gerund(verb: str) -> str:
    """walk -> walking."""
    if verb == "be":
        return "being"
    if verb.endswith("ie"):
        return verb[:-2] + "ying"
    if verb in _DOUBLED:
        return verb + verb[-1] + "ing"
    return re.sub(r"(?<![eoy])e$", "", verb) + "ing"


def past(verb: str) -> str:
    """walk -> walked."""
    if verb in _PAST:
        return _PAST[verb]
    if verb in _DOUBLED:
        return verb + verb[-1] + "ed"
    return re.sub(r"(?<![aeiou])y$", "i", verb.removesuffix("e")) + "ed"


def inflect(way: str, form: str, owner: str) -> str:
    """A way to say an action with its first word in a form and with "one's" and "oneself" filled in."""
    if way.startswith("not "):
        way = f"do {way}"
    first, _, rest = way.partition(" ")
    first = {"s": third_person, "ing": gerund, "ed": past, "": str}[form](first)
    himself = {"his": "himself", "her": "herself", "its": "itself", "their": "themselves", "my": "myself"}[owner]
    rest = re.sub(r"\boneself\b", himself, re.sub(r"\bone's\b", owner, rest))
    return f"{first} {rest}".strip()


def article(noun: str) -> str:
    """a dog, an eagle."""
    return f"{'an' if noun[0].lower() in 'aeiou' and not noun.startswith('uni') else 'a'} {noun}"


def barred_words(stems: Sequence[str]) -> re.Pattern[str]:
    """Finds the inflected forms of held-out stems ("hurl", "gnaw", "takes wing")."""
    ends = "(e|s|es|ed|d|ing|ies|ied|se|ds|ate|[a-z]ed|[a-z]ing)?"
    return re.compile("|".join(rf"\b{re.escape(stem)}{ends}\b" for stem in stems))


class Grammar:
    """Writes phrases; the same seed writes the same ones."""

    def __init__(self, seed: int, *, held_out: Sequence[str] = (), nouns: Sequence[str] = ()) -> None:
        self.random = random.Random(seed)
        self.nouns = tuple(nouns)
        """Words that stand at times for who moves or what is moved, so that any noun is heard as one."""
        self.barred = barred_words(held_out) if held_out else None

    def phrases(self) -> Iterator[Phrase]:
        """Without end, none of them with a held-out word."""
        while True:
            phrase = self.phrase()
            if self.barred is None or not self.barred.search(phrase.text.lower()):
                yield phrase

    def phrase(self) -> Phrase:
        """One phrase of a kind drawn at random."""
        draw = self.random.random()
        if draw < 0.12:
            return self.bare()
        if draw < 0.24:
            return self.two()
        if draw < 0.30:
            return self.styled_name()
        return self.sentence()

    def action(self, form: str, owner: str) -> tuple[str, str]:
        name = self.random.choice(list(MOVE_TABLE))
        row = MOVE_TABLE[name]
        way = self.random.choice(row.ways if self.random.random() < 0.9 else row.anchors)
        text = inflect(way, form, owner)
        if row.extra:
            text = re.sub(r"\bO\b", self.any_noun() or self.random.choice(row.extra), text)
        return name, text

    def any_noun(self) -> str | None:
        """Now and then an object that is any word at all."""
        return f"the {self.random.choice(self.nouns)}" if self.nouns and self.random.random() < 0.25 else None

    def bare(self) -> Phrase:
        """Hopping, to hop, hops on one leg."""
        form = self.random.choice(("", "s", "ing", "ing"))
        name, text = self.action(form, self.random.choice(("his", "her", "its")))
        return Phrase(f"to {text}" if form == "" and self.random.random() < 0.5 else text, (name,))

    def styled_name(self) -> Phrase:
        """A sad walk: style before all."""
        style = self.random.choice(list(STYLE_TABLE))
        name, text = self.action("ing", "his")
        row = STYLE_TABLE[style]
        if self.random.random() < 0.5:
            return Phrase(f"{self.random.choice(row.ways)} {text}", (name,), style)
        return Phrase(f"{text} {self.random.choice(row.ways)}", (name,), style)

    def subject(self) -> tuple[str, str, str | None]:
        """Who moves, whose legs are moved, and the style that an adjective tells."""
        draw = self.random.random()
        if draw < 0.25:
            who, owner = self.random.choice((("he", "his"), ("she", "her"), ("it", "its"), ("someone", "his")))
            return who, owner, None
        noun, style = self.random.choice(self.nouns if self.nouns and self.random.random() < 0.2 else ACTOR_LIST), None
        owner = self.random.choice(("his", "her", "its"))
        if self.random.random() < 0.15:
            style = self.random.choice(list(STYLE_TABLE))
            noun = f"{self.random.choice(STYLE_TABLE[style].extra)} {noun}"
        return (f"the {noun}" if self.random.random() < 0.5 else article(noun)), owner, style

    def sentence(self) -> Phrase:
        """Who, what, how, where."""
        who, owner, style = self.subject()
        form = self.random.choice(("s", "s", "s", "ing", "ed"))
        name, text = self.action(form, owner)
        parts = [who, "is" if form == "ing" else "", text]
        if style is None and self.random.random() < 0.25:
            style = self.random.choice(list(STYLE_TABLE))
            parts.insert(3 if self.random.random() < 0.8 else 1, self.random.choice(STYLE_TABLE[style].ways))
        if self.random.random() < 0.3:
            parts.append(self.random.choice(PLACE_LIST))
        return Phrase(" ".join(part for part in parts if part), (name,), style)

    def sentences_with(self, verbs: Sequence[str], *, times: int) -> Iterator[Phrase]:
        """Any verb said of anyone: that the verb matters more than who moves is true of all of them."""
        for verb in verbs:
            for _ in range(times):
                parts = [self.subject()[0], third_person(verb)]
                if self.random.random() < 0.3:
                    parts.append(self.any_noun() or self.random.choice(PLACE_LIST))
                yield Phrase(" ".join(parts), about=verb)

    def two(self) -> Phrase:
        """Two actions in a sentence."""
        who, owner, style = self.subject()
        (one, first), (other, second) = self.action("s", owner), self.action("s", owner)
        joint = self.random.choice((" and ", " and then ", ", then ", ", stops and ", " before he ", ", "))
        return Phrase(f"{who} {first}{joint}{second}", (one, other), style)


def read_table(path: Path) -> list[dict[str, str]]:
    """The rows of a table with tabs."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def held_out_stems(rows: Sequence[dict[str, str]]) -> list[str]:
    """The words that a table holds out."""
    return sorted({stem for row in rows for stem in row.get("held_out", "").split(",") if stem})


def corpus_phrases(corpus: Path | None) -> list[Phrase]:
    """What the corpus says of its clips."""
    phrases = []
    for table in [] if corpus is None else [corpus / "clips.tsv", *sorted(corpus.glob("motion/*/index.tsv"))]:
        for row in read_table(table):
            name = Path(row["path"]).stem if "path" in row else ""
            text = row.get("text") or f"{name} {row['clip']}"
            text = " ".join(text.replace("_", " ").replace("|", " ").split())
            phrases.append(Phrase(text, (row["action"],) if row["action"] in MOVE_TABLE else ()))
    return phrases


def listed_words(words: Path | None) -> list[str]:
    """The plain lower-case words of a list."""
    listed = [] if words is None else words.read_text().split()
    return [word for word in listed if word.isascii() and word.isalpha() and word.islower() and len(word) > 2]


def verbs_among(words: Sequence[str]) -> list[str]:
    """Words whose -s, -ing and -ed forms are words too."""
    known = set(words)
    return [word for word in words if known.issuperset((third_person(word), gerund(word), past(word)))]


def common_words(vocabulary: Sequence[str], words: Path | None) -> list[str]:
    """Whole words of the teacher's vocabulary, without names where a list of words is there to tell."""
    whole = [word for word in vocabulary if word.isascii() and word.isalpha() and len(word) > 2]
    known = set(listed_words(words))
    return [word for word in whole if word in known] if known else whole


def general_phrases(vocabulary: Sequence[str], words: Path | None) -> list[str]:
    """English words alone, and the common ones as if someone did or were them."""
    common = common_words(vocabulary, words)
    framed = [frame for word in common for frame in (f"someone is {word}", f"he {third_person(word)}")]
    return [*common, *listed_words(words), *framed]
