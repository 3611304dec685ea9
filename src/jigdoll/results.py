"""What a run leaves behind for people: the clip, films, pictures, figures and a report."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from jigdoll.export import save
from jigdoll.formats import video
from jigdoll.judge import Verdict
from jigdoll.judge.report import draw_film, write_report
from jigdoll.judge.story import Story
from jigdoll.protocols import Progress
from jigdoll.render.draw import contact_sheet
from jigdoll.runs import Run
from jigdoll.types import Motion, RiggedAsset

PICTURES = 8
"""Pictures of each candidate on the sheet of all."""


def write_results(
    run: Run,
    asset: RiggedAsset,
    motion: Motion,
    verdict: Verdict,
    *,
    facts: Mapping[str, str],
    numbers: Mapping[str, Any],
    losses: Mapping[str, Any] | None = None,
    story: Story | None = None,
    progress: Progress,
) -> dict[str, Path]:
    """Everything that people open: the clip in the original character, the bare motion, a film, pictures, figures."""
    progress(0.0, "writing the character")
    files = {
        "glb": save(run.path("motion.glb"), asset, [motion]),
        "bvh": save(run.path("motion.bvh"), asset, [motion]),
        "metrics": run.write_json("metrics.json", numbers),
    }
    progress(0.2, "filming")
    film = draw_film(asset, motion)
    chosen = torch.linspace(0, len(film) - 1, min(12, len(film))).round().long()
    files["mp4"] = video.write(run.path("motion.mp4"), film, fps=motion.fps)
    files["sheet"] = video.write_picture(run.path("sheet.png"), contact_sheet(list(film[chosen].numpy()), 4))
    progress(0.8, "writing the report")
    files["report"] = write_report(
        run.path("report.html"),
        asset,
        motion,
        verdict=verdict,
        prompt=motion.name,
        facts=facts,
        losses=losses,
        story=story,
        film=film,
        film_file=files["mp4"],
    )
    return files


def write_candidates(
    run: Run, asset: RiggedAsset, motions: Sequence[Motion], labels: Sequence[str], *, progress: Progress
) -> Path:
    """A sheet with one row of pictures per candidate."""
    rows, words = [], []
    for i, (motion, label) in enumerate(zip(motions, labels, strict=True)):
        progress(i / len(motions), f"drawing candidate {i + 1}")
        film = draw_film(asset, motion, size=(200, 150))
        places = np.linspace(0, len(film) - 1, PICTURES).round().astype(int)
        rows += [film[int(place)].numpy() for place in places]
        words += [label, *[""] * (PICTURES - 1)]
    return video.write_picture(run.path("candidates.png"), contact_sheet(rows, PICTURES, words))
