"""What to tell a person about a sentence: what was not understood, and what cannot be done."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from jigdoll.errors import JigdollError
from jigdoll.language.actions import ACTIONS, among, general_of
from jigdoll.language.lexicon import lexicon
from jigdoll.language.read import turn_of
from jigdoll.types import Request, RequestedAction


def explain(request: Request, can: frozenset[str] | None = None) -> str | None:
    """A sentence about everything in the prompt that will not be obeyed; None if there is nothing.

    `can` are the actions that whoever performs has learned, one per clip and in one manner; without it only what was
    not understood is named.
    """
    notes = [_about(word) for word in dict.fromkeys(request.unknown)]
    if request.action is None and request.prompt.strip():
        notes.append("no action was found" + (f"; the actions are {_listed(can)}" if can else ""))
    if turn_of(request) == "open":
        notes.append("no side to turn to was found, left is taken")
    if can is not None:
        notes += _not_learned(request, can)
    return "; ".join(notes) or None


def understood_rows(request: Request) -> list[tuple[str, str]]:
    """What was understood, as a person reads it: who, what, then what, how, looks, and what is not obeyed."""
    kin = request.species or request.family
    body = "" if kin in (None, request.noun) else f" (moves like: {str(kin).replace('_', ' ')})"
    rows = [("who", f"{request.noun or 'nobody is named'}{body}")]
    rows += [("does" if i == 0 else "then", _in_words(action)) for i, action in enumerate(request.actions)]
    rows += [("how", ", ".join(request.style)), ("looks", ", ".join(request.looks)), ("note", explain(request) or "")]
    return [(name, text) for name, text in rows if text]


def _in_words(action: RequestedAction) -> str:
    """One action on one line."""
    tempo = "" if not action.tempo else "fast" if action.tempo > 0 else "slow"
    ways = {"circle": "in circles", "backward": "backwards", "turning": "on a curve"}
    way = ways.get(action.way or "", action.way or "")
    times = f"{action.times} times" if action.times > 1 else ""
    how = ", ".join(word for word in (tempo, action.side, way, times) if word)
    return action.name.replace("_", " ") + (f" ({how})" if how else "")


def require_actions(request: Request, can: frozenset[str] | None, *, anyway: bool = False) -> None:
    """Refuse a sentence that asks for what cannot be done, before work is spent on it; None can do anything.

    A sentence whose only verb may be one of the unknown words is refused as well. `anyway` lets all pass.
    """
    if can is None or anyway:
        return
    missing = [action for action in request.actions if among(action.name, can) is None]
    if missing:
        raise JigdollError(
            f"{request.prompt!r}: {'; '.join(_missing(action, can) for action in missing)}. Ask for one of those, or "
            "for the nearest in its place with --anyway (anyway=True)"
        )
    if request.action is None and request.unknown:
        raise JigdollError(
            f"{request.prompt!r}: no action was understood; {'; '.join(map(_about, dict.fromkeys(request.unknown)))}. "
            f"The actions are {_listed(can)}; --anyway (anyway=True) goes on without one"
        )


def nearest(name: str, can: frozenset[str]) -> str | None:
    """The action to take in place of one: itself, what it is a way of, or the nearest that can be done."""
    near = (among(other, can) for other in ACTIONS[name].nearest)
    return among(name, can) or next((action for action in near if action), None)


def _missing(action: RequestedAction, can: frozenset[str]) -> str:
    close = dict.fromkeys(found for other in ACTIONS[action.name].nearest if (found := among(other, can)))
    hint = f"nearest: {', '.join(close)}" if close else f"known are {_listed(can)}"
    return f"{action.word!r} ({_spoken(action.name)}) is not an action that it knows ({hint})"


def _not_learned(request: Request, can: frozenset[str]) -> list[str]:
    """What is understood, but not in the power of whoever performs one action per clip, straight ahead."""
    notes = [_missing(action, can) for action in request.actions if among(action.name, can) is None]
    others = [action for action in request.actions if action is not request.action]
    names = dict.fromkeys(_spoken(action.name) for action in others)
    lead = request.action
    if lead is not None and names:
        notes.append(f"one clip shows one action: {_spoken(lead.name)} leads, and {' and '.join(names)} may be lost")
    for action in request.actions:
        if action.side and general_of(action.name)[-1] != "turn" and turn_of(request) != action.side:
            notes.append(f"{action.side!r} counts only with a turn, and {_spoken(action.name)} goes straight ahead")
    kinds = ("style", "way", "times")
    unused = [word.form for word in request.words if word.kind in kinds and word.meaning != "circle"]
    if unused:
        notes.append(f"{_quoted(unused)}: understood, but not learned, so the motion will not show it")
    return notes


def _about(word: str) -> str:
    """What to say about an unknown word."""
    known = [form for form in lexicon() if len(form) > 3 and " " not in form]
    close = get_close_matches(word, known, n=2, cutoff=0.75)
    return f"{word!r} is unknown" + (f" (did you mean {' or '.join(close)}?)" if close else "")


def _listed(can: frozenset[str]) -> str:
    """The actions in the order of the table, without those that are only ways of others."""
    return ", ".join(_spoken(name) for name, row in ACTIONS.items() if name in can and row.general not in can)


def _spoken(name: str) -> str:
    return name.replace("_", " ")


def _quoted(words: Iterable[str] | Sequence[str]) -> str:
    return ", ".join(repr(word) for word in dict.fromkeys(words))
