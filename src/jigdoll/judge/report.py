"""The report on a clip: one HTML file that opens anywhere, with the film, the pictures, the curves and the numbers."""

import base64
import io
import tempfile
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from jigdoll.formats import video
from jigdoll.formats.files import write_bytes
from jigdoll.judge import svg
from jigdoll.judge.anatomy import study
from jigdoll.judge.check import WalkCheck
from jigdoll.judge.page import PAGE
from jigdoll.judge.story import Story, story_blocks
from jigdoll.judge.table import leg_label, natural_lines, pair_label, rows_of
from jigdoll.judge.verdict import Verdict, judge
from jigdoll.protocols import Progress, quiet
from jigdoll.render.draw import ClipStyle, contact_sheet, draw_clip_in_pieces
from jigdoll.rig.limits import compound_angles
from jigdoll.rig.reparent import to_reparented
from jigdoll.types import Motion, RiggedAsset

LEFT, RIGHT = "var(--left)", "var(--right)"
COLORS = ("var(--c0)", "var(--c1)", "var(--c2)", "var(--c3)", "var(--c4)", "var(--c5)", "var(--c6)")
SHEET = 12
"""Pictures on the contact sheet."""

Frames = UInt8[Tensor, "frames height width 3"] | Float[Tensor, "frames height width 3"]


def write_report(
    path: str | Path,
    asset: RiggedAsset,
    motion: Motion,
    *,
    verdict: Verdict | None = None,
    reference: Motion | None = None,
    title: str | None = None,
    prompt: str | None = None,
    facts: Mapping[str, str] | None = None,
    losses: Mapping[str, Sequence[float]] | None = None,
    check: WalkCheck | None = None,
    story: Story | None = None,
    film: Frames | None = None,
    film_file: Path | None = None,
    progress: Progress = quiet,
) -> Path:
    """Write everything that is known about a clip into one HTML file.

    `verdict` and `film` are made where they are not given; `film_file` is the film as an MP4, where there is one
    already. `reference` is a clip of the same asset (an artist's, or
    a reference gait); its numbers stand beside those of the clip. `facts` are shown under the title (seed, prior ...),
    `losses` are curves by name, `check` is a list of what passed, `story` tells how the clip came about.
    """
    progress(0.0, "judging")
    verdict = judge(asset, motion, reference=reference) if verdict is None else verdict
    progress(0.2, "drawing")
    pixels = draw_film(asset, motion) if film is None else film
    progress(0.8, "writing")
    title = title or f"{asset.name}: {motion.name}"
    checked = "" if check is None else _check_block(check)
    blocks = [
        _head(title, prompt, asset, verdict, facts or {}),
        _film_block(pixels, motion, film_file),
        *([] if story is None else story_blocks(story)),
        f'<div class="stack">{_natural_block(verdict)}{_table_block(verdict)}{checked}</div>',
        f'<div class="stack">{_feet_block(verdict)}{_swing_block(verdict)}</div>',
        _angles_block(asset, motion),
        _losses_block(losses or {}),
        _words_block(verdict),
    ]
    page = PAGE.replace("{{title}}", escape(title)).replace("{{body}}", "\n".join(filter(None, blocks)))
    return write_bytes(path, page.encode())


def draw_film(asset: RiggedAsset, motion: Motion, *, size: tuple[int, int] = (480, 360)) -> Frames:
    """The clip on the ground, as the report shows it."""
    style = ClipStyle(width=size[0], height=size[1])
    pieces = [torch.from_numpy(piece[0]) for piece in draw_clip_in_pieces(asset, motion, style=style)]
    return torch.cat(pieces)


def _head(title: str, prompt: str | None, asset: RiggedAsset, verdict: Verdict, facts: Mapping[str, str]) -> str:
    chips = {
        "character": asset.name,
        "clip": f"{verdict.frames} frames, {verdict.frames / verdict.fps:.2f} s at {verdict.fps:g} fps",
        "joints": str(len(asset.skeleton)),
        "body length": f"{verdict.body_length:.2f} m",
        **facts,
    }
    if verdict.in_place:
        chips["travel"] = "in place, judged as on a treadmill"
    said = f'<p class="prompt">“{escape(prompt)}”</p>' if prompt else ""
    items = "".join(f"<li><b>{escape(key)}</b> {escape(str(value))}</li>" for key, value in chips.items())
    return f'<header><h1>{escape(title)}</h1>{said}<ul class="chips">{items}</ul></header>'


def _film_block(pixels: Frames, motion: Motion, written: Path | None) -> str:
    """The film, and pictures of it side by side."""
    raw = pixels if pixels.dtype == torch.uint8 else (pixels.detach().clamp(0, 1) * 255).round().to(torch.uint8)
    with tempfile.TemporaryDirectory() as folder:
        written = video.write(Path(folder) / "film.mp4", raw, fps=motion.fps) if written is None else written
        film = base64.b64encode(written.read_bytes()).decode()
    places = np.unique(np.linspace(0, len(raw) - 1, min(SHEET, len(raw))).round().astype(int))
    chosen = [_small(raw[i].numpy()) for i in places]
    labels = [f"{i / motion.fps:.2f} s" for i in places]
    sheet = _png(contact_sheet(chosen, 4 if len(chosen) > 6 else max(len(chosen), 1), labels))
    return (
        '<section class="wide"><h2>Film</h2><div class="films">'
        f'<video autoplay loop muted playsinline controls src="data:video/mp4;base64,{film}"></video>'
        f'<img alt="pictures of the clip in order" src="data:image/png;base64,{sheet}"></div></section>'
    )


def _small(pixels: UInt8[np.ndarray, "height width 3"], width: int = 240) -> np.ndarray:
    from PIL import Image

    picture = Image.fromarray(np.ascontiguousarray(pixels))
    return np.asarray(picture.resize((width, max(1, round(width * picture.height / picture.width)))))


def _png(pixels: UInt8[np.ndarray, "height width 3"]) -> str:
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="PNG", optimize=True)
    return base64.b64encode(buffer.getvalue()).decode()


def _natural_block(verdict: Verdict) -> str:
    """How natural it looks and what is wrong with it."""
    if verdict.natural is None:
        return ""
    lines = natural_lines(verdict.natural)
    rows = "".join(f'<li{" class=worse" if line.startswith("fault") else ""}>{escape(line)}</li>' for line in lines)
    return f"<section><h2>Looks</h2><ul>{rows}</ul></section>"


def _table_block(verdict: Verdict) -> str:
    beside = verdict.reference
    head = "" if beside is None else f"<th>{escape(beside.name)} <small>reference</small></th>"
    lines, group = [], ""
    for row in rows_of(verdict):
        if row.group != group:
            group = row.group
            lines.append(f'<tr class="group"><th colspan="{2 if beside is None else 3}">{escape(group)}</th></tr>')
        other = "" if beside is None else f"<td>{escape(row.reference)}</td>"
        mark = ' class="worse"' if row.worse else ""
        label = f"{escape(row.label)} <small>{escape(row.unit)}</small>"
        lines.append(
            f'<tr><td class="label" title="{escape(row.meaning, quote=True)}">{label}</td>'
            f"<td{mark}>{escape(row.value)}</td>{other}</tr>"
        )
    return (
        '<section><h2>Numbers</h2><div class="scroll"><table>'
        f"<thead><tr><th></th><th>{escape(verdict.name)}</th>{head}</tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table></div></section>"
    )


def _check_block(check: WalkCheck) -> str:
    lines = [
        f"<tr><td>{'✓' if c.passed else '✗'} {escape(c.name)}</td>"
        f'<td class="{"" if c.passed else "worse"}">{c.value:.3g}</td><td>{escape(c.bound)}</td></tr>'
        for c in check.checks
    ]
    word = "passed" if check.passed else f"{len(check.failures)} of {len(check.checks)} failed"
    return (
        f'<section><h2>Walk check: {word}</h2><div class="scroll"><table><tbody>{"".join(lines)}</tbody></table></div>'
        "</section>"
    )


def _feet_block(verdict: Verdict) -> str:
    if not verdict.legs:
        return ""
    beside = verdict.reference
    order = sorted(range(len(verdict.legs)), key=lambda i: verdict.legs[i].name.rsplit("_", 1)[::-1])
    bars = []
    for i in order:
        leg = verdict.legs[i]
        other = None if beside is None or i >= len(beside.legs) else beside.legs[i].contact
        color = LEFT if leg.name.startswith("left") else RIGHT
        fps = 1.0 if beside is None else beside.fps
        bars.append(svg.Bars(leg_label(verdict, leg.name), leg.contact, color, other, fps))
    chart = svg.timeline(bars, fps=verdict.fps, frames=verdict.frames, x_label="s")
    heights = [
        svg.Line(leg_label(verdict, leg.name), 100 * leg.height, COLORS[i % len(COLORS)])
        for i, leg in enumerate(verdict.legs)
    ]
    seconds = (verdict.frames - 1) / verdict.fps
    lift = svg.line_chart(heights, end=seconds, x_label="s", y_label="height [% of body]")
    note = "" if beside is None else " The thin bars are the reference's."
    return (
        f"<section><h2>Feet</h2><p>Bars: the foot stands.{note}</p>{chart}"
        f"<p>Lowest skin of each foot above the ground.</p>{lift}</section>"
    )


def _swing_block(verdict: Verdict) -> str:
    """The swing of each pair of legs, left and right."""
    seconds = (verdict.frames - 1) / verdict.fps
    charts = []
    legs = {leg.name: leg for leg in verdict.legs}
    for i, pair in enumerate(verdict.pairs):
        rank = pair.name.rsplit("_", 1)[1]
        if pair.kind != "leg":
            continue
        left, right = legs[f"left_{rank}"], legs[f"right_{rank}"]
        lines = [svg.Line("left", left.swing, LEFT), svg.Line("right", right.swing, RIGHT)]
        charts.append(
            f"<figure><figcaption>{escape(pair_label(verdict, i))}: correlation {pair.alternation:+.2f}</figcaption>"
            f"{svg.line_chart(lines, end=seconds, x_label='s', y_label='swing ahead [°]', height=170)}</figure>"
        )
    return f"<section><h2>Leg swing</h2>{''.join(charts)}</section>" if charts else ""


def _angles_block(asset: RiggedAsset, motion: Motion) -> str:
    """Bend of the joints of every limb."""
    body = study(asset)
    skeleton, pose = body.anatomy.skeleton, to_reparented(body.work, motion).pose
    angles = np.degrees(compound_angles(skeleton, pose).detach().double().numpy()[..., 0])
    angles = np.degrees(np.unwrap(np.radians(angles), axis=0))
    charts = []
    for limb in body.anatomy.limbs:
        moving = [j for j in limb.joints if np.ptp(angles[:, j]) > 1.0]
        if not moving:
            continue
        name = f"{limb.side} {limb.kind}".removeprefix("middle ") + (f" {limb.rank + 1}" if limb.rank else "")
        lines = [svg.Line(skeleton.names[j], angles[:, j], COLORS[k % len(COLORS)]) for k, j in enumerate(moving[:7])]
        chart = svg.line_chart(lines, end=motion.seconds, x_label="s", y_label="bend [°]", height=170)
        charts.append(f"<figure><figcaption>{escape(name)}</figcaption>{chart}</figure>")
    if not charts:
        return ""
    return (
        '<section class="wide"><details><summary><h2>Joint angles</h2></summary>'
        f'<div class="charts">{"".join(charts)}</div></details></section>'
    )


def _losses_block(losses: Mapping[str, Sequence[float]]) -> str:
    """One chart per loss over all steps; all end together, so a loss that set in later begins where it did."""
    charts = []
    steps = max((len(values) for values in losses.values()), default=0)
    for i, (name, values) in enumerate(losses.items()):
        paid = np.asarray(list(values), np.float64)
        if not len(paid):
            continue
        curve = np.concatenate([np.full(steps - len(paid), np.nan), paid])
        positive = bool((paid > 0).all() and paid.max() > 50 * paid.min())
        line = svg.Line(name, curve, COLORS[i % len(COLORS)])
        chart = svg.line_chart(
            [line], end=float(steps - 1) or 1.0, x_label="step", y_label="", height=150, log=positive
        )
        charts.append(f"<figure><figcaption>{escape(name)}</figcaption>{chart}</figure>")
    if not charts:
        return ""
    return f'<section class="wide"><h2>Losses</h2><div class="charts">{"".join(charts)}</div></section>'


def _words_block(verdict: Verdict) -> str:
    meanings = {row.label: row.meaning for row in rows_of(verdict)}
    words = "".join(f"<dt>{escape(label)}</dt><dd>{escape(text)}</dd>" for label, text in meanings.items())
    return (
        '<section class="wide"><details><summary><h2>What the numbers mean</h2></summary>'
        "<p>Lengths are shares of the body length. A foot stands while it is near its own lowest level; it skates when "
        "it slides faster than a fifth of the body's speed meanwhile. Red numbers are clearly worse than the "
        f"reference, or than what ought to be zero.</p><dl>{words}</dl></details></section>"
    )
