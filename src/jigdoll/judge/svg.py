"""Small charts as inline SVG: lines over time, and rows of bars that are on or off.

Colours are CSS variables of the page around them, so that charts follow its light or dark look.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 460, 50, 12, 10, 32
MOST_POINTS = 400
"""A line has at most so many points; a page does not show more."""
ROW = 22
LEGEND = 3
"""Names in a row of the legend."""

Box = tuple[int, int, int, int]


@dataclass(frozen=True, eq=False)
class Line:
    """One curve."""

    label: str
    y: Float[ndarray, " points"]
    color: str
    """A CSS colour."""
    dashed: bool = False


@dataclass(frozen=True, eq=False)
class Bars:
    """One row of a timeline, and the same of the reference under it."""

    label: str
    on: Bool[ndarray, " frames"]
    color: str
    reference: Bool[ndarray, " _"] | None = None
    reference_fps: float = 1.0


def line_chart(
    lines: Sequence[Line],
    *,
    end: float,
    x_label: str,
    y_label: str,
    height: int = 200,
    log: bool = False,
) -> str:
    """Curves over 0 .. `end`, with axes, ticks and a legend for two curves or more."""
    values = [_scaled(line.y, log) for line in lines]
    finite = np.concatenate([v[np.isfinite(v)] for v in values]) if values else np.zeros(0)
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    ticks = _ticks(low, high)
    low, high = min(low, ticks[0]), max(high, ticks[-1])
    span = high - low or 1.0
    legend = 18 * math.ceil(len(lines) / LEGEND) if len(lines) > 1 else 0
    box = (LEFT, TOP + legend, WIDTH - RIGHT, height + legend - BOTTOM)

    def place_y(v: float) -> float:
        return box[3] - (v - low) / span * (box[3] - box[1])

    parts = [_frame(box, end, x_label, y_label)]
    for tick in ticks:
        y = place_y(tick)
        label = f"{10**tick:.3g}" if log else f"{tick:g}"
        parts.append(f'<line class="grid" x1="{box[0]}" x2="{box[2]}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="tick" x="{box[0] - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
    for line, v in zip(lines, values, strict=True):
        parts.append(_path(line, v, box, place_y))
    if legend:
        parts.append(_legend(lines))
    return _svg(height + legend, "".join(parts), y_label)


def timeline(rows: Sequence[Bars], *, fps: float, frames: int, x_label: str) -> str:
    """One row per foot, a bar wherever it stands; a thin pale bar under it for the reference."""
    end = frames / fps
    height = TOP + ROW * len(rows) + BOTTOM
    left = LEFT + 44
    box = (left, TOP, WIDTH - RIGHT, height - BOTTOM)
    scale = (box[2] - box[0]) / end
    parts = [_frame(box, end, x_label, "")]
    for i, row in enumerate(rows):
        y = TOP + ROW * i
        parts.append(f'<text class="tick" x="{left - 8}" y="{y + 14}" text-anchor="end">{escape(row.label)}</text>')
        thick = 15 if row.reference is None else 10
        for start, stop in _runs(row.on):
            x, width = left + start / fps * scale, (stop - start) / fps * scale
            parts.append(
                f'<rect x="{x:.1f}" y="{y + 3}" width="{width:.1f}" height="{thick}" rx="2" fill="{row.color}"/>'
            )
        if row.reference is not None:
            for start, stop in _runs(row.reference):
                first, last = (min(k / row.reference_fps, end) for k in (start, stop))
                x, width = left + first * scale, (last - first) * scale
                if width > 0:
                    parts.append(f'<rect class="pale" x="{x:.1f}" y="{y + 14}" width="{width:.1f}" height="5"/>')
    return _svg(height, "".join(parts), "foot contacts")


def _svg(height: int, body: str, title: str) -> str:
    head = f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title, quote=True)}">'
    return f"{head}{body}</svg>"


def _frame(box: Box, end: float, x_label: str, y_label: str) -> str:
    """Axis line, ticks and labels along x."""
    x0, y0, x1, y1 = box
    parts = [f'<line class="axis" x1="{x0}" x2="{x1}" y1="{y1}" y2="{y1}"/>']
    for tick in _ticks(0.0, end, most=6):
        if tick <= end * 1.0001:
            x = x0 + tick / max(end, 1e-9) * (x1 - x0)
            parts.append(f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{y1}" y2="{y1 + 4}"/>')
            parts.append(f'<text class="tick" x="{x:.1f}" y="{y1 + 16}" text-anchor="middle">{tick:g}</text>')
    parts.append(f'<text class="tick" x="{x1}" y="{y1 + 29}" text-anchor="end">{escape(x_label)}</text>')
    if y_label:
        middle = (y0 + y1) / 2
        turned = f'x="12" y="{middle:.0f}" transform="rotate(-90 12 {middle:.0f})"'
        parts.append(f'<text class="tick" {turned} text-anchor="middle">{escape(y_label)}</text>')
    return "".join(parts)


def _path(line: Line, values: Float[ndarray, " points"], box: Box, place_y) -> str:
    """The curve, thinned, with gaps where it is not a number."""
    count = len(values)
    chosen = np.unique(np.linspace(0, count - 1, min(count, MOST_POINTS)).astype(int)) if count else np.zeros(0, int)
    words, pen = [], "M"
    for i in chosen:
        if not math.isfinite(values[i]):
            pen = "M"
            continue
        x = box[0] + (i / max(count - 1, 1)) * (box[2] - box[0])
        words.append(f"{pen}{x:.1f} {place_y(float(values[i])):.1f}")
        pen = "L"
    dash = ' stroke-dasharray="5 4"' if line.dashed else ""
    return f'<path class="curve" stroke="{escape(line.color, quote=True)}"{dash} d="{"".join(words)}"/>'


def _legend(lines: Sequence[Line]) -> str:
    parts = []
    for i, line in enumerate(lines):
        x, y = LEFT + (i % LEGEND) * 132, 14 + 18 * (i // LEGEND)
        dash = ' stroke-dasharray="5 4"' if line.dashed else ""
        color = escape(line.color, quote=True)
        parts.append(f'<path class="curve" stroke="{color}"{dash} d="M{x} {y - 4}L{x + 18} {y - 4}"/>')
        label = line.label if len(line.label) <= 15 else line.label[:14] + "…"
        parts.append(f'<text class="tick" x="{x + 23}" y="{y}">{escape(label)}</text>')
    return "".join(parts)


def _scaled(y: Float[ndarray, " points"], log: bool) -> Float[ndarray, " points"]:
    y = np.asarray(y, np.float64)
    if not log:
        return y
    return np.where(y > 0, np.log10(np.maximum(y, 1e-300)), np.nan)


def _ticks(low: float, high: float, *, most: int = 5) -> list[float]:
    """Round numbers from at or below `low` to at or above `high`."""
    span = max(high - low, 1e-9 + 1e-6 * abs(high))
    raw = span / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * k for k in (1, 2, 5, 10) if power * k >= raw * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(k * step, 12) for k in range(first, last + 1)]


def _runs(on: Bool[ndarray, " frames"]) -> list[tuple[int, int]]:
    """Start and end of every stretch that is on."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], on.astype(np.int8), [0]])))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]
