"""What a sentence says: who, which actions in which order, how fast, to which side, and what was not understood."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Literal, cast

from jigdoll.language import fillers
from jigdoll.language.actions import ACTIONS, general_of
from jigdoll.language.lexicon import NAMED_TEMPO, Sense, lexicon, word_of
from jigdoll.language.nouns import family_of
from jigdoll.language.phrases import Found, find_phrases, tokens_of
from jigdoll.types import KnownWord, Request, RequestedAction, Side

Piece = Found[tuple[Sense, ...]]

_ADJECTIVES = ("look", "tempo", "style", "side", "times")
"""Kinds of words that stand between an article and its noun."""
_WEAK_VERBS = ("go", "move", "come", "travel", "proceed", "throw", "land")
"""Verbs that give way to the action after them: "goes swimming", "throws a kick"."""
_PASSIVES = ("is", "are", "was", "were", "get", "gets")
"""What a thing at the beginning of a sentence is followed by."""
_ENDINGS = ("stop", "halt", "stop moving")
"""What comes after is over: "stops walking"."""


def read(prompt: str, *, also: Mapping[str, Sense] | None = None) -> Request:
    """Find the known words of a sentence and what they ask for; a pure function of the sentence.

    `also` are words of the caller's own, which come first wherever they occur.
    """
    known = lexicon() if not also else lexicon() | {form: (sense,) for form, sense in also.items()}
    pieces = find_phrases(tokens_of(prompt, breaks=True), known)
    words = _resolved(pieces)
    actions = _actions(words, pieces)
    nouns = [word for word in words if word is not None and word.kind == "noun"]
    noun, meaning = _who(words)
    species = meaning.removeprefix("species:") if meaning.startswith("species:") else None
    species = "human" if meaning == "pronoun" else species
    family = family_of(species) if species else meaning.partition(":")[2] or None
    if family is None:
        groups = (word.meaning.partition(":")[2] for word in nouns if word.meaning.startswith("group:"))
        family = next(groups, None)
    kept = [word for word in words if word is not None]
    return Request(
        prompt=prompt,
        words=tuple(kept),
        noun=noun,
        species=species,
        family=family,
        actions=actions,
        action=_leading(actions),
        style=tuple(dict.fromkeys(word.meaning for word in kept if word.kind == "style")),
        looks=_looks(words),
        unknown=tuple(
            piece.form for piece, word in zip(pieces, words, strict=True) if piece.meaning is None and word is None
        ),
    )


@cache
def read_name(name: str) -> Request:
    """What the name of a file or a character says: `DeerStag_v2` is a deer."""
    return read(re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=\D)(?=\d)|(?<=\d)(?=\D)", " ", name))


def turn_of(request: Request) -> Side | Literal["open"] | None:
    """To which side the sentence asks to turn or circle: open where it does not say, None where it does not ask."""
    turns = [a for a in request.actions if general_of(a.name)[-1] == "turn" or a.way == "circle"]
    travels = [a for a in request.actions if ACTIONS[a.name].gait != "still"]
    sides: list[Side] = [a.side for a in (*turns, *travels) if a.side]
    if not turns:
        return None
    return sides[0] if sides else "open"


def _resolved(pieces: Sequence[Piece]) -> list[KnownWord | None]:
    """One word per piece in the sense that its neighbours leave it; None for what is unknown or part of another."""
    words: list[KnownWord | None] = []
    while len(words) < len(pieces):
        place = len(words)
        piece = pieces[place]
        if piece.meaning is None:
            words.append(None)
        elif piece.form == "like" and (likeness := _likeness(pieces, words)):
            words += likeness
        else:
            words.append(word_of(piece.form, _sense(pieces, words)))
    if any(word is not None and word.kind == "noun" and word.meaning != "pronoun" for word in words):
        words = [word and (replace(word, kind="filler") if word.meaning == "pronoun" else word) for word in words]
    return _without_bywords(words, pieces)


def _likeness(pieces: Sequence[Piece], words: Sequence[KnownWord | None]) -> list[KnownWord | None]:
    """After an action "like a tired robot" is one word of style, however many pieces it has; none where it is not."""
    if not _has(words, "action"):
        return []
    place, form = len(words) + 1, "like"
    while place < len(pieces):
        piece = pieces[place]
        form += f" {piece.form}"
        senses = {sense.kind: sense for sense in piece.meaning or ()}
        following = pieces[place + 1].meaning if place + 1 < len(pieces) else None
        if "noun" in senses and not ("look" in senses and following and following[0].kind == "noun"):
            if senses["noun"].meaning == "pronoun":
                return []
            style = KnownWord(form, form, "style", form)
            return [
                style,
                *(KnownWord(pieces[i].form, pieces[i].form, "filler") for i in range(len(words) + 1, place + 1)),
            ]
        if not (piece.form in fillers.DETERMINERS or senses.keys() & {"look", "style", "tempo"}):
            return []
        place += 1
    return []


def _sense(pieces: Sequence[Piece], words: Sequence[KnownWord | None]) -> Sense:
    """What a piece means where it stands, given the words before it and the pieces after."""
    place = len(words)
    senses = {sense.kind: sense for sense in pieces[place].meaning or ()}
    following = [{sense.kind for sense in piece.meaning or ()} for piece in pieces[place + 1 :]]
    article = _article(words, pieces)
    if "noun" in senses:
        if "look" in senses and _before_noun(following):
            return senses["look"]
        if _is_noun(senses, pieces, words, named=article is not None):
            # Whom something is done to is no more than a thing.
            met = _has(words, "noun") and _has(words, "action") and "thing" not in senses
            return replace(senses["noun"], kind="thing") if met else senses["noun"]
        senses.pop("noun")
    if "action" in senses:
        other = next((senses[kind] for kind in ("thing", "filler", "side", "way", "look") if kind in senses), None)
        if _is_action(senses["action"], other, words, pieces, article):
            return senses["action"]
        return other or replace(senses["action"], kind="thing")
    return next(iter(senses.values()))


def _is_noun(senses: Mapping, pieces: Sequence[Piece], words: Sequence[KnownWord | None], *, named: bool) -> bool:
    """Whether a form that may be somebody is: "the ducks", "ducks walking", but not "a boxer ducks"."""
    if len(senses) == 1 or named:
        return True
    if "thing" in senses and _has(words, "action"):
        return False
    if not senses.keys() & {"action", "filler"}:
        return True
    after = pieces[len(words) + 1].form if len(words) + 1 < len(pieces) else ""
    return not _has(words, "noun") and after not in fillers.DETERMINERS


def _is_action(
    action: Sense,
    other: Sense | None,
    words: Sequence[KnownWord | None],
    pieces: Sequence[Piece],
    article: int | None,
) -> bool:
    """Whether a form that may be an action is: "dodges a punch" is no punch, "does a kick" is a kick."""
    before = words[-1] if words else None
    if before is not None and before.base in fillers.NEGATORS:
        return False
    if article is None:
        # "Picks up boxes", "throws punches": what directly follows a verb without an article may be a thing too.
        direct = before is not None and before.kind == "action" and not pieces[len(words)].after_break
        after = pieces[len(words) + 1].form if len(words) + 1 < len(pieces) else ""
        suffers = not _has(words, "noun") and after in _PASSIVES
        return not ((direct or suffers) and other is not None and other.kind == "thing" and not action.ing)
    if action.ing and not (other and other.kind == "thing"):
        return True
    if " " in action.base and other is None:
        return True
    if other is not None and other.kind != "side":
        return False
    governor = words[article - 1] if article else None
    if not _has(words, "action"):
        return True
    light = governor is not None and _is_light(governor)
    return governor is not None and (light or governor.base in (*fillers.PREPOSITIONS, "and", *_WEAK_VERBS))


def _is_light(word: KnownWord) -> bool:
    return word.kind == "filler" and word.base in fillers.LIGHT_VERBS


def _article(words: Sequence[KnownWord | None], pieces: Sequence[Piece]) -> int | None:
    """Where the article of the next word is, adjectives between them or not; None if it has none."""
    if len(words) < len(pieces) and pieces[len(words)].after_break:
        return None
    for place in range(len(words) - 1, -1, -1):
        word = words[place]
        if word is None:
            return None
        if word.kind == "filler" and word.form in fillers.DETERMINERS:
            return place
        if word.kind not in _ADJECTIVES and word.base not in ("high", "low", "long", "full", "very", "little bit"):
            return None
    return None


def _before_noun(following: Sequence[set]) -> bool:
    """Whether the next word that is more than an adjective is somebody."""
    for kinds in following:
        if kinds <= {"noun", "look"} and "noun" in kinds:
            return True
        if not kinds or not kinds & {"look", "style", "tempo"}:
            return False
    return False


def _has(words: Sequence[KnownWord | None], kind: str) -> bool:
    return any(word is not None and word.kind == kind for word in words)


def _without_bywords(words: list[KnownWord | None], pieces: Sequence[Piece]) -> list[KnownWord | None]:
    """Without verbs that only describe or lead over: a dancing bear that walks, going swimming, stopping to walk."""
    places = [place for place, word in enumerate(words) if word is not None and word.kind == "action"]
    for number, place in enumerate(places):
        word, later = words[place], places[number + 1 :]
        assert word is not None
        ing = _is_ing(pieces[place], word)
        before = words[place - 1] if place else None
        after = words[place + 1] if place + 1 < len(words) else None
        described = ing and after is not None and after.kind in ("noun", "look", "thing") and len(places) > 1
        articled = before is not None and (before.form in fillers.DETERMINERS or before.kind in _ADJECTIVES)
        if described and articled:
            words[place] = replace(word, kind="filler")
        elif word.base in _WEAK_VERBS and later and _leads_over(words, pieces, place, later[0]):
            words[place] = replace(word, kind="filler")
        elif ing and before is not None and before.kind == "action" and before.base in _ENDINGS:
            words[place] = replace(word, kind="filler")
    return words


def _leads_over(words: Sequence[KnownWord | None], pieces: Sequence[Piece], weak: int, strong: int) -> bool:
    """Whether only fillers lie between a weak verb and an action that is a noun or an -ing form."""
    between = words[weak + 1 : strong]
    if any(
        word is None or word.kind not in ("filler", *_ADJECTIVES) or word.form in ("and", "then") for word in between
    ):
        return False
    if any(piece.after_break for piece in pieces[weak + 1 : strong + 1]):
        return False
    following = words[strong]
    assert following is not None
    return _is_ing(pieces[strong], following) or any(word and word.form in fillers.DETERMINERS for word in between)


def _is_ing(piece: Piece, word: KnownWord) -> bool:
    return any(sense.ing for sense in piece.meaning or () if sense.kind == "action" and sense.base == word.base)


def _who(words: Sequence[KnownWord | None]) -> tuple[str | None, str]:
    """Who moves and what that means: a species before a kind of body, both before a pronoun and "a creature".

    Of nouns in a row the last one counts: a robot dog is a dog.
    """
    nouns = [(place, word) for place, word in enumerate(words) if word is not None and word.kind == "noun"]
    for wanted in ("species:", "body:", "group:", "pronoun", "any"):
        for place, word in nouns:
            if not word.meaning.startswith(wanted):
                continue
            run = place
            while run + 1 < len(words) and (after := words[run + 1]) is not None and after.kind == "noun":
                same = after.meaning.startswith(wanted)
                generic = wanted == "group:" and after.meaning == "any"
                if not (same or generic):
                    break
                run += 1
            chosen = words[run]
            assert chosen is not None
            if chosen.meaning == "any" and run > place:
                return f"{word.base} {chosen.base}", word.meaning
            name = chosen.base.removeprefix("a ").removeprefix("the ")
            return ("person" if chosen.meaning == "pronoun" else name), chosen.meaning
    return None, ""


def _looks(words: Sequence[KnownWord | None]) -> tuple[str, ...]:
    """Adjectives, but not those of things: who kicks a red ball is not red."""
    looks = []
    for place, word in enumerate(words):
        if word is not None and word.kind == "look":
            after = next((w for w in words[place + 1 :] if w is None or w.kind != "look"), None)
            if after is None or after.kind != "thing":
                looks.append(word.base)
    return tuple(looks)


def _actions(words: Sequence[KnownWord | None], pieces: Sequence[Piece]) -> tuple[RequestedAction, ...]:
    """The actions in order, each with the words that belong to it."""
    places = [place for place, word in enumerate(words) if word is not None and word.kind == "action"]
    made = {place: _requested(cast(KnownWord, words[place])) for place in places}
    paces = {place: cast(KnownWord, words[place]).tempo for place in places}
    for place, word in enumerate(words):
        if word is None or word.kind not in ("side", "tempo", "way", "times") or not places:
            continue
        home = _home(place, places, words, pieces)
        action = made[home]
        if word.kind == "tempo":
            paces[home] += NAMED_TEMPO if word.meaning == "fast" else -NAMED_TEMPO
        elif word.kind == "side":
            made[home] = replace(action, side=action.side or cast(Side, word.meaning))
            if action.way is None and _is_course(word, action):
                made[home] = replace(made[home], way="turning")
        elif word.kind == "way":
            made[home] = replace(action, way=word.meaning)
        else:
            made[home] = replace(action, times=int(word.meaning))
    actions: list[RequestedAction] = []
    for place in places:
        action = replace(made[place], tempo=NAMED_TEMPO * _sign(paces[place]))
        if actions and actions[-1].name == action.name:
            last = actions[-1]
            action = replace(
                last,
                tempo=last.tempo or action.tempo,
                side=last.side or action.side,
                way=last.way or action.way,
                times=max(last.times, action.times),
            )
            actions.pop()
        actions.append(action)
    return tuple(actions)


def _home(place: int, places: Sequence[int], words: Sequence[KnownWord | None], pieces: Sequence[Piece]) -> int:
    """The action that an adverb belongs to: the one before it, or the next one where a new clause has begun."""
    before = [p for p in places if p < place]
    after = [p for p in places if p > place]
    if not before or not after:
        return (before or after)[-1 if before else 0]
    new_clause = any(
        (word is not None and word.form in ("and", "then", "while", "before", "but")) or pieces[p].after_break
        for p, word in enumerate(words[: place + 1])
        if p > before[-1]
    )
    return after[0] if new_clause else before[-1]


def _is_course(word: KnownWord, action: RequestedAction) -> bool:
    """Whether a side is where somebody goes: "walks to the left", not "limps on the left leg"."""
    goes = ACTIONS[action.name].gait in ("walk", "run", "fly") and general_of(action.name)[-1] != "turn"
    return goes and word.base.split()[-1].startswith(("left", "right"))


def _requested(word: KnownWord) -> RequestedAction:
    """The action behind a word; "looks left" and "right hook" name their side themselves."""
    sides = [side for side in ("left", "right") if side in word.base.split()]
    return RequestedAction(word.meaning, word.form, side=cast(Side, sides[0]) if len(sides) == 1 else None)


def _leading(actions: Sequence[RequestedAction]) -> RequestedAction | None:
    """The one action to show where only one can be: who walks and turns, turns; who stands and waves, waves."""

    def rank(action: RequestedAction) -> int:
        root = general_of(action.name)[-1]
        return {"turn": 0, "idle": 2, "walk": 2}.get(root, 1)

    return min(actions, key=rank) if actions else None


def _sign(number: float) -> int:
    return (number > 0) - (number < 0)
