"""Segments of real motion with words, and the file that holds them."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from importlib import resources
from pathlib import Path

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from jigdoll.errors import FileFormatError
from jigdoll.formats.files import write_bytes
from jigdoll.rig.anatomy import BodyKind
from jigdoll.rig.retarget.limb_motion import LimbMotion, LimbTrack
from jigdoll.types import Limb

FPS = 15.0
"""Frames per second at which segments are kept."""
MOST_BYTES = 64_000_000
VERSION = "1"


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


def save_segments(path: Path, segments: Sequence[Segment], vectors: Float[ndarray, "segments width"]) -> None:
    """Write segments with their words and the vectors of their texts; turns are kept to half a degree."""
    arrays: dict[str, ndarray] = {"vectors": vectors.astype(np.float16)}
    rows = []
    for i, segment in enumerate(segments):
        row, parts = _packed(segment.motion)
        rows.append(asdict(segment.words) | row)
        arrays |= {f"{i}.{name}": value for name, value in parts.items()}
    header = {"version": VERSION, "segments": json.dumps(rows)}
    write_bytes(path, save(arrays, metadata=header))


class Memory:
    """A file of segments; motions are unpacked when they are asked for."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise FileFormatError(f"{path}: there is no memory of motion here")
        if path.stat().st_size > MOST_BYTES:
            raise FileFormatError(f"{path.name}: larger than any memory of motion")
        self.path = path
        try:
            with safe_open(path, framework="numpy") as file:
                header = file.metadata() or {}
                rows = json.loads(header.get("segments", "null"))
                self.vectors = file.get_tensor("vectors").astype(np.float32)
            if header.get("version") != VERSION or len(rows) != len(self.vectors):
                raise ValueError("another version")
            names = set(Words.__dataclass_fields__)
            self.words = [Words(**{k: tuple(v) if k == "style" else v for k, v in row.items() if k in names}) for row in rows]
        except (SafetensorError, ValueError, TypeError, KeyError) as error:
            raise FileFormatError(f"{path.name}: this is not a memory of motion ({error})") from error
        self._rows = rows

    def __len__(self) -> int:
        return len(self.words)

    def segment(self, index: int) -> Segment:
        """One segment with its motion."""
        row = self._rows[index]
        with safe_open(self.path, framework="numpy") as file:
            keys = [key for key in file.keys() if key.startswith(f"{index}.")]
            parts = {key.partition(".")[2]: file.get_tensor(key) for key in keys}
        return Segment(self.words[index], replace(_unpacked(row, parts), name=self.words[index].text))


def open_memory(path: Path | None = None) -> Memory:
    """The given memory, or the one that ships."""
    return Memory(shipped() if path is None else path)


def _packed(lm: LimbMotion) -> tuple[dict, dict[str, ndarray]]:
    turns = {"root": lm.root, "trunk": lm.trunk, "neck": lm.neck, "tail": lm.tail}
    parts = {name: _bytes(value) for name, value in turns.items() if value is not None}
    parts["place"] = lm.place.astype(np.float16)
    parts["heading"] = lm.heading.astype(np.float16)
    limbs = []
    for k, track in enumerate(lm.limbs):
        parts[f"limb{k}.turns"] = _bytes(track.turns)
        parts[f"limb{k}.rest"] = _bytes(track.rest)
        parts[f"limb{k}.end"] = np.clip(np.round(track.end * 64), -127, 127).astype(np.int8)
        parts[f"limb{k}.contact"] = np.packbits(track.contact)
        limbs.append([track.limb.kind, track.limb.side, track.limb.rank, [bool(x) for x in track.has]])
    return {"fps": lm.fps, "frames": len(lm), "limbs": limbs, "grounded": lm.grounded}, parts


def _unpacked(row: dict, parts: dict[str, ndarray]) -> LimbMotion:
    frames = int(row["frames"])
    limbs = []
    for k, (kind, side, rank, has) in enumerate(row["limbs"]):
        contact = np.unpackbits(parts[f"limb{k}.contact"], count=frames).astype(bool)
        limbs.append(
            LimbTrack(
                Limb(kind, side, int(rank), ()),
                _turns(parts[f"limb{k}.turns"]),
                np.array(has),
                _turns(parts[f"limb{k}.rest"]),
                parts[f"limb{k}.end"].astype(float) / 64,
                contact,
            )
        )
    return LimbMotion(
        kind=row["kind"],
        fps=float(row["fps"]),
        name=row["text"],
        place=parts["place"].astype(float),
        heading=parts["heading"].astype(float),
        root=_turns(parts["root"]),
        trunk=_turns(parts["trunk"]),
        neck=_turns(parts["neck"]) if "neck" in parts else None,
        tail=_turns(parts["tail"]) if "tail" in parts else None,
        limbs=tuple(limbs),
        grounded=bool(row["grounded"]),
    )


def _bytes(turns: Float[ndarray, "*batch 3 3"]) -> ndarray:
    """Two columns of each rotation, in 127ths."""
    return np.clip(np.round(turns[..., :2] * 127), -127, 127).astype(np.int8)


def _turns(kept: ndarray) -> Float[ndarray, "*batch 3 3"]:
    """Rotations from two columns (Gram-Schmidt)."""
    a, b = kept[..., 0].astype(float), kept[..., 1].astype(float)
    a = a / np.maximum(np.linalg.norm(a, axis=-1, keepdims=True), 1e-9)
    b = b - (a * b).sum(-1, keepdims=True) * a
    b = b / np.maximum(np.linalg.norm(b, axis=-1, keepdims=True), 1e-9)
    return np.stack([a, b, np.cross(a, b)], -1)
