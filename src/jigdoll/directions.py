"""What a person may direct besides the words: length, speed, a path, where a clip begins and ends."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from jigdoll.errors import JigdollError

MOST_POINTS = 10_000
MOST_BYTES = 4_000_000


@dataclass(frozen=True)
class DirectionOptions:
    """How the motion is to be directed."""

    speed: float | None = None
    """Over the ground, where it gets along [m/s]."""
    path: str | None = None
    """A file with points on the ground to go along: a line `x z` each [m], CSV, or a JSON list of pairs."""
    start: str | None = None
    """Go on from here: `rest`, a clip of the character (its last frame) or FILE:CLIP, with @N for a frame of it."""
    end: str | None = None
    """Lead into this: `rest`, or a clip as for start (its first frame)."""
    in_place: bool = False
    """On the spot, for engines that move the character themselves."""
    stiff: bool = False
    """No swing of tails, ears and hair after the body."""


def read_path(path: str | Path) -> Float[ndarray, "points 2"]:
    """Points x, z on the ground [m] from a file: JSON pairs, or two numbers a line."""
    path = Path(path)
    if not path.is_file():
        raise JigdollError(f"{path}: there is no such file; a path is a file with two numbers (x z) a line")
    if path.stat().st_size > MOST_BYTES:
        raise JigdollError(f"{path.name}: too large for a path; {MOST_POINTS} points are enough")
    text = path.read_text(errors="replace")
    try:
        rows = json.loads(text) if text.lstrip()[:1] == "[" else [_numbers(line) for line in text.splitlines()]
        points = np.array([row for row in rows if row], float)
    except (ValueError, TypeError) as error:
        raise JigdollError(f"{path.name}: not a path ({error}); write two numbers (x z, metres) a line") from error
    if points.ndim != 2 or points.shape[1] != 2 or not np.isfinite(points).all():
        raise JigdollError(f"{path.name}: a path has two finite numbers (x z, metres) a line")
    if not 2 <= len(points) <= MOST_POINTS:
        raise JigdollError(f"{path.name}: a path has 2 to {MOST_POINTS} points, not {len(points)}")
    if float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum()) < 1e-3:
        raise JigdollError(f"{path.name}: all its points are in one place; a path goes somewhere")
    return points


def _numbers(line: str) -> list[float]:
    """The numbers of a line; none where it is empty, a comment or a head of a table."""
    words = line.split("#", maxsplit=1)[0].replace(",", " ").replace(";", " ").split()
    if not words or all(word[:1].isalpha() and word.lower() not in ("nan", "inf", "infinity") for word in words):
        return []
    return [float(word) for word in words]


def split_frame(word: str) -> tuple[str, int | None]:
    """A clip's name and the frame after its `@`, where there is one."""
    name, mark, frame = word.rpartition("@")
    if not mark:
        return word, None
    try:
        return name, int(frame)
    except ValueError as error:
        raise JigdollError(f"{word!r}: after @ comes the number of a frame, not {frame!r}") from error
