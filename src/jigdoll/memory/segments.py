"""Segments of real motion with words, and the file that holds them."""

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from jigdoll.errors import FileFormatError
from jigdoll.formats.files import write_bytes
from jigdoll.memory.codes import TOLERANCE, Codec, PackedCodes, open_codec, pack
from jigdoll.rig.anatomy import BodyKind
from jigdoll.rig.retarget.limb_motion import LimbMotion

MOST_BYTES = 64_000_000
VERSION = "2"


@dataclass(frozen=True)
class Words:
    """What is known about a segment."""

    text: str
    """In words: who does what."""
    action: str
    """A row of `language.actions`."""
    noun: str
    """Who moves: person, wolf, trex ..."""
    kind: BodyKind
    legs: int
    wings: bool
    seconds: float
    speed: float
    """Over the ground [leg lengths / s]."""
    cyclic: bool
    """Whether it can go on for ever."""
    typical: float
    """How usual it is for its kind of body and action, 0 to 1."""
    source: str
    licence: str
    style: tuple[str, ...] = ()
    """In which manner: drunk, sad, like a robot ..."""
    turn: float = 0.0
    """How far it turns to the left on the whole [rad]."""
    own: bool = False
    """Whether it is of the user's own library."""


@dataclass(frozen=True, eq=False)
class Segment:
    """A piece of real motion in limb space."""

    words: Words
    motion: LimbMotion


def shipped() -> Path:
    """The memory that ships with the package."""
    return Path(str(resources.files("jigdoll.memory") / "weights" / "memory.safetensors"))


def save_segments(
    path: Path,
    segments: Sequence[Segment],
    vectors: Float[ndarray, "segments width"],
    codec: Codec,
    *,
    tolerance: float = TOLERANCE,
) -> None:
    """Write segments as codes, with their words and the vectors of their texts."""
    nameless = [replace(segment.motion, name="") for segment in segments]
    arrays = pack([codec.encode(motion, tolerance=tolerance) for motion in nameless])
    header = {"version": VERSION, "segments": json.dumps([asdict(segment.words) for segment in segments])}
    write_bytes(path, save(arrays | {"vectors": vectors.astype(np.float16)}, metadata=header))


class Memory:
    """Segments with words; motions are unpacked when they are asked for."""

    def __init__(
        self,
        words: Sequence[Words],
        vectors: Float[ndarray, "segments width"],
        motion: Callable[[int, float | None], LimbMotion],
        *,
        path: Path | None = None,
    ) -> None:
        self.words = list(words)
        self.vectors = vectors
        """Of their texts, by the sentence encoder."""
        self.path = path
        """The file that it was read from, where it was one."""
        self._motion = motion

    def __len__(self) -> int:
        return len(self.words)

    def segment(self, index: int, *, fps: float | None = None) -> Segment:
        """One segment with its motion, at its own rate or at another, where a few frames are enough."""
        words = self.words[index]
        return Segment(words, replace(self._motion(index, fps), name=words.text))


def both(first: Memory, second: Memory) -> Memory:
    """Two memories as one."""

    def motion(index: int, fps: float | None) -> LimbMotion:
        inner = (first, index) if index < len(first) else (second, index - len(first))
        return inner[0].segment(inner[1], fps=fps).motion

    return Memory([*first.words, *second.words], np.concatenate([first.vectors, second.vectors]), motion)


def open_memory(path: Path | None = None, *, codec: Codec | None = None) -> Memory:
    """The given memory, or the one that ships."""
    path = shipped() if path is None else path
    if not path.is_file():
        raise FileFormatError(f"{path}: there is no memory of motion here")
    if path.stat().st_size > MOST_BYTES:
        raise FileFormatError(f"{path.name}: larger than any memory of motion")
    try:
        with safe_open(path, framework="numpy") as file:
            header = file.metadata() or {}
            rows = json.loads(header.get("segments", "null"))
            arrays = {name: file.get_tensor(name) for name in file.keys()}
        vectors = arrays.pop("vectors").astype(np.float32)
        if header.get("version") != VERSION or len(rows) != len(vectors) or len(rows) != len(arrays["kind"]):
            raise ValueError("another version")
        words = [words_of(row) for row in rows]
    except (SafetensorError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise FileFormatError(f"{path.name}: this is not a memory of motion ({error})") from error
    codes, opened = PackedCodes(arrays), codec or open_codec()
    out_of = excluded() if path == shipped() else set()
    kept = [i for i, row in enumerate(words) if (row.source, row.text) not in out_of]
    return Memory(
        [words[i] for i in kept],
        vectors[kept],
        lambda index, fps: opened.decode(codes[kept[index]], fps=fps),
        path=path,
    )


def excluded() -> set[tuple[str, str]]:
    """Source and text of the segments that looked wrong; those that the shipped file holds are not shown."""
    path = Path(str(resources.files("jigdoll.memory") / "excluded.tsv"))
    with path.open(newline="") as file:
        return {(row["source"], row["text"]) for row in csv.DictReader(file, delimiter="\t")}


def words_of(row: dict[str, Any]) -> Words:
    """Words from plain data."""
    known: dict[str, Any] = {name: value for name, value in row.items() if name in Words.__dataclass_fields__}
    known["style"] = tuple(known.get("style", ()))
    return Words(**known)
