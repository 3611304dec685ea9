"""The verb read: what is understood of a sentence."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tyro.conf import Positional

from jigdoll.cli.shared import Json, answering, escaped

if TYPE_CHECKING:
    from jigdoll.types import Request, RequestedAction


def read(prompt: Positional[str], /, *, as_json: Json = False) -> None:
    """What is understood of a sentence: who moves, what they do in which order, how, and what is not understood.

    Args:
        prompt: For instance "a fox trots, then sits".
    """
    from jigdoll.language import explain
    from jigdoll.language import read as understand

    request = understand(prompt)
    note = explain(request)
    kin = request.species or request.family
    body = "" if kin in (None, request.noun) else f" (moves like: {str(kin).replace('_', ' ')})"
    rows = [("who", f"{request.noun or 'nobody is named'}{body}")]
    rows += [("does" if i == 0 else "then", in_words(action)) for i, action in enumerate(request.actions)]
    rows += [("how", ", ".join(request.style)), ("looks", ", ".join(request.looks)), ("note", note or "")]
    with answering(as_json) as answer:
        answer.add(as_dict(request) | {"note": note})
        for name, text in rows:
            if text:
                answer.show(f"[bold]{name:<6}[/]{escaped(text)}", highlight=False, soft_wrap=True)


def as_dict(request: "Request") -> dict[str, Any]:
    """The request as plain data; of the single words only what they add up to."""
    content = asdict(request)
    content.pop("words")
    content["action"] = request.action.name if request.action else None
    return content


def in_words(action: "RequestedAction") -> str:
    """One action on one line."""
    tempo = "" if not action.tempo else "fast" if action.tempo > 0 else "slow"
    way = {"circle": "in circles", "backward": "backwards"}.get(action.way or "", action.way or "")
    times = f"{action.times} times" if action.times > 1 else ""
    how = ", ".join(word for word in (tempo, action.side, way, times) if word)
    return action.name.replace("_", " ") + (f" ({how})" if how else "")
