"""The verb read: what is understood of a sentence."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tyro.conf import Positional

from jigdoll.cli.shared import Json, answering, escaped

if TYPE_CHECKING:
    from jigdoll.types import Request


def read(prompt: Positional[str], /, *, as_json: Json = False) -> None:
    """What is understood of a sentence: who moves, what they do in which order, how, and what is not understood.

    Args:
        prompt: For instance "a fox trots, then sits".
    """
    from jigdoll.language import explain
    from jigdoll.language import read as understand
    from jigdoll.language.explain import understood_rows

    request = understand(prompt)
    note = explain(request)
    with answering(as_json) as answer:
        answer.add(as_dict(request) | {"note": note})
        for name, text in understood_rows(request):
            answer.show(f"[bold]{name:<6}[/]{escaped(text)}", highlight=False, soft_wrap=True)


def as_dict(request: "Request") -> dict[str, Any]:
    """The request as plain data; of the single words only what they add up to."""
    content = asdict(request)
    content.pop("words")
    content["action"] = request.action.name if request.action else None
    return content

