"""How a clip came about, for its report: the sentence as understood, the drafts, and what each stage made of it."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from jigdoll.judge.verdict import Verdict


@dataclass(frozen=True, eq=False)
class Draft:
    """One of the drafts that were chosen from."""

    origin: str
    fit: float
    """How well words and body fit."""
    grade: float
    """How natural it looks."""
    faults: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Story:
    """What there is to tell besides the verdict."""

    understood: tuple[tuple[str, str], ...]
    """Rows of `language.explain.understood_rows`."""
    drafts: tuple[Draft, ...] = ()
    chosen: int = 0
    stages: tuple[tuple[str, Verdict], ...] = ()
    """The clip after each stage, by name, in order."""
    sheet: Path | None = None
    """A picture of the drafts."""


def story_blocks(story: Story) -> list[str]:
    """The sections of the report that tell the story."""
    return [_understood(story.understood), _drafts(story), _stages(story.stages)]


def _understood(rows: Sequence[tuple[str, str]]) -> str:
    lines = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in rows)
    return f"<section><h2>As understood</h2><table><tbody>{lines}</tbody></table></section>" if rows else ""


def _drafts(story: Story) -> str:
    if not story.drafts:
        return ""
    lines = []
    for i, draft in enumerate(story.drafts):
        mark = "✓ " if i == story.chosen else ""
        faults = "; ".join(draft.faults) or "none"
        lines.append(
            f"<tr><td>{mark}{escape(draft.origin)}</td><td>{draft.fit:.2f}</td><td>{draft.grade:.2f}</td>"
            f"<td{' class=worse' if draft.faults else ''}>{escape(faults)}</td></tr>"
        )
    picture = ""
    if story.sheet is not None:
        data = base64.b64encode(story.sheet.read_bytes()).decode()
        picture = f'<img alt="the drafts, a row each" src="data:image/png;base64,{data}">'
    return (
        '<section class="wide"><h2>Drafts</h2><div class="scroll"><table><thead><tr><th>made of</th>'
        "<th>words fit</th><th>natural</th><th>faults</th></tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table></div>{picture}</section>"
    )


def _stages(stages: Sequence[tuple[str, Verdict]]) -> str:
    """The same figures after each stage, so that one sees what it brought."""
    if not stages:
        return ""
    lines = []
    for name, verdict in stages:
        cells = "".join(f"<td>{cell}</td>" for cell in _cells(verdict))
        lines.append(f"<tr><td>{escape(name)}</td>{cells}</tr>")
    heads = ("natural", "to real clips [°]", "feet slide [%]", "below ground [% of body]", "jerk", "faults")
    return (
        '<section class="wide"><h2>Stage by stage</h2><div class="scroll"><table><thead><tr><th>after</th>'
        f"{''.join(f'<th>{head}</th>' for head in heads)}</tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table></div></section>"
    )


def _cells(verdict: Verdict) -> list[str]:
    natural = verdict.natural
    away = "" if natural is None or natural.action_distance < 0 else f"{natural.action_distance:.0f}"
    faults = "" if natural is None else "; ".join(fault.name for fault in natural.faults) or "none"
    return [
        "" if natural is None else f"{natural.grade:.2f}",
        away,
        f"{100 * verdict.skate_ratio:.0f}",
        f"{100 * verdict.penetration:.1f}",
        f"{verdict.position_jerk:.0f}",
        escape(faults),
    ]
