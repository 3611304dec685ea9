"""A pack for VideoPhy's public scorer (Bansal et al. 2024), the score that AKD reports.

The scorer is a 7B model and runs where a GPU is. Its `utils/prepare_data.py` reads a table with the columns
`videopath` and `caption`; it opens the videos by those paths, seen from the folder that it is started in.
"""

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from jigdoll.errors import JigdollError
from jigdoll.formats import video
from jigdoll.formats.files import write_bytes
from jigdoll.protocols import Progress, quiet
from jigdoll.render.draw import ClipStyle, draw_clip_in_pieces
from jigdoll.types import Motion, RiggedAsset

TABLE = "captions.csv"
_GUIDE = """Score these videos with VideoPhy.

REPO is a clone of github.com/Hritikbansal/videophy, CKPT the folder of the checkpoint videophysics/videocon_physics.
Run inside this folder, on a machine with a GPU:

SCORE=REPO/videocon/training/pipeline_video/entailment_inference.py
python REPO/utils/prepare_data.py --input_csv captions.csv --output_folder .
python $SCORE --checkpoint CKPT --input_csv sa_testing.csv --output_csv sa.csv
python $SCORE --checkpoint CKPT --input_csv physics_testing.csv --output_csv pc.csv

sa.csv holds semantic adherence, pc.csv physical commonsense: video, question, score in 0 .. 1.
"""


@dataclass(frozen=True, eq=False)
class Entry:
    """One video to score."""

    asset: RiggedAsset
    motion: Motion
    caption: str
    """The prompt, one sentence."""


def write_pack(
    folder: str | Path,
    entries: Sequence[Entry],
    *,
    style: ClipStyle = ClipStyle(width=480, height=480, ground=False, shadow=False),
    progress: Progress = quiet,
) -> Path:
    """Write one video per entry (without ground, as AKD did), the table of captions, and how to run the scorer."""
    folder = Path(folder)
    if not entries:
        raise JigdollError("a VideoPhy pack needs at least one clip")
    empty = [entry.motion.name for entry in entries if not entry.caption.strip()]
    if empty:
        raise JigdollError(f"each video needs a caption to be scored by; none was given for {', '.join(empty)}")
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(["videopath", "caption"])
    for i, entry in enumerate(entries):
        progress(i / len(entries), entry.caption)
        caption = " ".join(entry.caption.split())
        name = f"videos/{i:03d}_{_plain(caption)}.mp4"
        pieces = draw_clip_in_pieces(entry.asset, entry.motion, style=style)
        frames = torch.cat([torch.from_numpy(piece[0]) for piece in pieces])
        video.write(folder / name, frames, fps=entry.motion.fps)
        writer.writerow([name, caption])
    write_bytes(folder / "README.txt", _GUIDE.encode())
    # The table comes last: whoever sees it finds all videos in place.
    return write_bytes(folder / TABLE, table.getvalue().encode())


def _plain(caption: str) -> str:
    """A file name from a caption: letters and digits only."""
    return re.sub(r"[^a-z0-9]+", "_", caption.lower()).strip("_")[:60] or "clip"
