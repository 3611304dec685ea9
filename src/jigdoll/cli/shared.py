"""What the verbs share: options, how progress is shown, and how things are said to people and to machines."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from jigdoll.asset.axes import Axis
from jigdoll.errors import RepairWarning

if TYPE_CHECKING:
    from jigdoll.protocols import Progress
    from jigdoll.types import Motion, RiggedAsset

Up = Annotated[Axis | None, tyro.conf.arg(help="The file's axis that points up; guessed where it is not given.")]
Forward = Annotated[Axis | None, tyro.conf.arg(help="The file's axis that the character faces; guessed.")]
Scale = Annotated[float | None, tyro.conf.arg(help="Metres per unit of the file; guessed.")]
Json = Annotated[bool, tyro.conf.arg(name="json", help="Print one JSON object for machines, and nothing else.")]


class Answer:
    """What a verb has to say: line by line to people, or one JSON object at the end to machines."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self.facts: dict[str, Any] = {}
        """What machines get."""
        self.files: list[str] = []

    def wrote(self, path: Path, note: str = "") -> None:
        """Name a written file."""
        self.files.append(str(path))
        self.say(f"{path}{f'  ({note})' if note else ''}")

    def say(self, text: str) -> None:
        """A line for people."""
        self.show(text, highlight=False, markup=False, soft_wrap=True)

    def show(self, what: Any, **style: Any) -> None:
        """A table or a line with a style, for people."""
        if not self.as_json:
            console().print(what, **style)

    def add(self, facts: Mapping[str, Any]) -> None:
        """Facts for machines."""
        self.facts.update(facts)

    def end(self) -> None:
        """Print the object, if machines asked for it; with the names of all files where some were written."""
        from jigdoll.formats.json_text import json_text

        if self.as_json:
            sys.stdout.write(json_text(self.facts | ({"files": self.files} if self.files else {})) + "\n")


@contextmanager
def answering(as_json: bool) -> Iterator[Answer]:
    """The answer of a verb; it is complete at the end of the block."""
    answer = Answer(as_json=as_json)
    yield answer
    answer.end()


def character(
    source: str, *, up: Axis | None, forward: Axis | None, scale: float | None, fps: float = 30.0
) -> "RiggedAsset":
    """The character of a file or zoo:NAME, read as the options say."""
    from jigdoll.asset.axes import AxisHints
    from jigdoll.character import open_character

    return open_character(source, axes=AxisHints(up, forward, scale), fps=fps)


def clips_that_fit(asset: "RiggedAsset", target: Path) -> "list[Motion]":
    """The asset's clips, or the first ones for formats that hold only so many."""
    from jigdoll.formats.table import format_of

    row = format_of(target)
    return list(asset.clips.values())[: row.clips if row else None]


@contextmanager
def progress_bar() -> "Iterator[Progress]":
    """A bar with the time that is left."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(error=True), transient=True) as live:
        task = live.add_task("", total=1.0)

        def report(fraction: float, what: str, /) -> None:
            live.update(task, completed=fraction, description=what)

        yield report


def console(*, error: bool = False) -> Any:
    from rich.console import Console

    return Console(stderr=error)


def escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def show_warning(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
    label = "repaired" if issubclass(category, RepairWarning) else "warning"
    console(error=True).print(f"[yellow]{label}:[/] {escaped(str(message))}", highlight=False, soft_wrap=True)
