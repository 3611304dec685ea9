"""Codes: a motion in limb space as a few bytes per part of the body and half second.

Each token (`tokens`) is cut into overlapping windows. Of every station the mean rotation over the segment is kept
once, in whole steps; what is left is how far it turns away from that, as an axis times an angle (`windows`).
A window of those numbers is written in a basis that was learned per kind of token (`train_codes`), one byte per
coordinate, finer near zero. Contacts are kept as they are, one bit a frame; the root's place and heading are kept at
each window's end, so that nothing drifts; a limb's end follows from its bones.

Windows are written with as many bytes as keep them within a tolerance. On rigs that were not learned from, at 24 bytes
per window on average, this loses 1.2 degrees (root mean square per axis) of legs and arms and 0.8 of the trunk. With 24
bytes for every window the same bases lose 3.0 (legs), 2.9 (arms) and 3.1 (trunk), and a network that bends them (two
hidden layers shared by all kinds of tokens, trained for five minutes with the rounding as noise) 2.9, 2.7 and 3.1: a
little better than bases, much worse than bytes spent where the motion is. So there is no network.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import get_args

import numpy as np
from jaxtyping import Bool, Float, Float16, Float32, Int, Int8, Int16
from numpy import ndarray

from jigdoll.errors import FileFormatError
from jigdoll.memory.windows import (
    BASES,
    MOVE_WEIGHTS,
    TABLES,
    Basis,
    away_from_mean,
    bone_vectors,
    channels_told,
    end_of,
    from_mean,
    joined,
    mean_steps,
    values_per_window,
    windows_of,
)
from jigdoll.rig.anatomy import BodyKind
from jigdoll.rig.retarget.limb_motion import STATIONS, LimbMotion, yaw
from jigdoll.rig.retarget.tokens import (
    HOP,
    ROOT_CHANNELS,
    STATION_COUNT,
    WINDOW,
    LimbFacts,
    TokenKind,
    Tokens,
    limb_motion_from,
    root_path,
    tokens_of,
    window_count,
)
from jigdoll.rig.retarget.turns import from_rotvec, to_rotvec
from jigdoll.types import Limb

__all__ = ["Codec", "Codes", "limb_motion_from", "open_codec", "pack", "tokens_of", "unpack"]

BODY_KINDS: tuple[BodyKind, ...] = get_args(BodyKind)
TOKEN_KINDS: tuple[TokenKind, ...] = get_args(TokenKind)
SIDES = ("left", "right", "middle")
MIDDLE_KINDS = ("trunk", "neck", "tail")
TOLERANCE = np.radians(1.0)
"""Each window is written with as many bytes as keep it that near, in the root of the mean square per axis [rad]."""
MIDDLE_TOLERANCE = 0.5
"""Trunk, neck and tail are kept that much nearer: they have more stations, and carry the limbs."""
MOST_BYTES = 8_000_000


@dataclass(frozen=True, eq=False)
class TokenCodes:
    """One token of a motion in bytes."""

    kind: TokenKind
    has: Bool[ndarray, " stations"]
    mean: Int16[ndarray, "stations 3"]
    """The mean rotation of each station, in `MEAN_STEP`s."""
    windows: Int8[ndarray, "windows values"]
    """Coordinates of each window; the last ones are zero, and cost nothing in a file."""


@dataclass(frozen=True, eq=False)
class LimbCodes:
    """What of a limb is kept besides its token."""

    limb: Limb
    rest: Float16[ndarray, "5 3"]
    """`LimbTrack.rest` as axes times angles."""
    bones: Float16[ndarray, "2 3"]
    """Upper and lower bone in lengths of the limb: where its end is follows from them."""
    contact: Bool[ndarray, " frames"]


@dataclass(frozen=True, eq=False)
class Codes:
    """A motion in bytes."""

    kind: BodyKind
    fps: float
    frames: int
    name: str
    grounded: bool
    path: Float32[ndarray, "ends 3"]
    """Place over the ground (x, z) and heading at the first frame and at the end of each window."""
    moves: Float16[ndarray, " 4"]
    """The root's mean velocities, height and heading rate."""
    tokens: tuple[TokenCodes, ...]
    limbs: tuple[LimbCodes, ...]
    """Of the last tokens, one each."""


class Codec:
    """Motions to codes and back."""

    def __init__(self, bases: Mapping[str, Basis]) -> None:
        self.bases = dict(bases)

    def encode(self, motion: LimbMotion, *, tolerance: float = TOLERANCE) -> Codes:
        """The codes of a motion of one frame or more; a smaller tolerance [rad] costs more bytes."""
        tokens = tokens_of(motion)
        place, heading = root_path(tokens)
        ends = _window_ends(len(tokens))
        coded, moves = [], np.zeros(ROOT_CHANNELS)
        for row in tokens.rows:
            mean = mean_steps(row)
            values = away_from_mean(row, mean)
            if row.kind == "trunk":
                moves = (values[:, :ROOT_CHANNELS].mean(0) / MOVE_WEIGHTS).astype(np.float16)
                values[:, :ROOT_CHANNELS] -= moves.astype(float) * MOVE_WEIGHTS
            near = tolerance * (MIDDLE_TOLERANCE if row.kind in MIDDLE_KINDS else 1.0)
            allowed = near**2 * WINDOW * channels_told(row)
            windows = self.bases[TABLES[row.kind]].write(windows_of(values), allowed=allowed)
            coded.append(TokenCodes(row.kind, row.has, mean, windows))
        return Codes(
            kind=tokens.kind,
            fps=tokens.fps,
            frames=tokens.frames,
            name=tokens.name,
            grounded=tokens.grounded,
            path=np.stack([place[ends, 0], place[ends, 2], heading[ends]], -1).astype(np.float32),
            moves=np.asarray(moves, np.float16),
            tokens=tuple(coded),
            limbs=tuple(
                LimbCodes(fact.limb, to_rotvec(fact.rest).astype(np.float16), bone_vectors(row), fact.contact)
                for row, fact in zip(tokens.rows[len(tokens.rows) - len(tokens.limbs) :], tokens.limbs, strict=True)
            ),
        )

    def decode(self, codes: Codes, *, fps: float | None = None) -> LimbMotion:
        """The motion that codes tell of, at its source's rate or another one."""
        return limb_motion_from(self.tokens(codes), fps=fps)

    def tokens(self, codes: Codes) -> Tokens:
        """The tokens that codes tell of."""
        rows = []
        for i, token in enumerate(codes.tokens):
            values = joined(self.bases[TABLES[token.kind]].read(token.windows))
            limb = i - (len(codes.tokens) - len(codes.limbs))
            if token.kind == "trunk":
                values[:, :ROOT_CHANNELS] += codes.moves.astype(float) * MOVE_WEIGHTS
            row = from_mean(token.kind, values, token.mean, token.has)
            if limb >= 0:
                end = end_of(row, codes.limbs[limb].bones)
                row = replace(row, values=np.concatenate([row.values[:, :-3], end], -1))
            rows.append(row)
        facts = tuple(LimbFacts(each.limb, from_rotvec(each.rest.astype(float)), each.contact) for each in codes.limbs)
        tokens = Tokens(
            codes.kind,
            codes.fps,
            codes.frames,
            codes.name,
            codes.grounded,
            codes.path[0].astype(float),
            tuple(rows),
            facts,
        )
        return _on_path(tokens, codes.path.astype(float))


def _window_ends(frames: int) -> ndarray:
    """The first frame, and the frames at which one window gives way to the next."""
    return np.array([*range(0, frames, HOP), frames - 1])


def _on_path(tokens: Tokens, path: Float[ndarray, "ends 3"]) -> Tokens:
    """The tokens with velocities changed by a constant in each window, so that the root meets its path."""
    ends = _window_ends(len(tokens))
    spans, values = np.diff(ends), tokens.rows[0].values.copy()

    def spread(miss: Float[ndarray, "ends ..."]) -> Float[ndarray, "frames ..."]:
        per_frame = np.repeat(np.diff(miss, axis=0) / spans.reshape(-1, *[1] * (miss.ndim - 1)), spans, axis=0)
        return np.concatenate([per_frame, per_frame[-1:]]) * tokens.rate

    rows = (replace(tokens.rows[0], values=values), *tokens.rows[1:])
    tokens = replace(tokens, rows=rows)
    values[:, 3] += spread(path[:, 2] - root_path(tokens)[1][ends])
    place, heading = root_path(tokens)
    miss = np.zeros((len(ends), 3))
    miss[:, [0, 2]] = path[:, :2] - place[ends][:, [0, 2]]
    shift = np.einsum("fba,fb->fa", yaw(heading), spread(miss))
    values[:, :2] += shift[:, [0, 2]]
    return tokens


def pack(many: Sequence[Codes]) -> dict[str, ndarray]:
    """Many motions as a few flat arrays, for safetensors."""
    names = [codes.name.encode() for codes in many]
    tokens = [token for codes in many for token in codes.tokens]
    limbs = [limb for codes in many for limb in codes.limbs]
    return {
        "kind": np.array([BODY_KINDS.index(codes.kind) for codes in many], np.uint8),
        "fps": np.array([codes.fps for codes in many], np.float64),
        "frames": np.array([codes.frames for codes in many], np.int32),
        "grounded": np.array([codes.grounded for codes in many], np.uint8),
        "name_length": np.array([len(name) for name in names], np.int32),
        "name": np.frombuffer(b"".join(names), np.uint8),
        "path": _flat([codes.path for codes in many], np.float32),
        "moves": _flat([codes.moves for codes in many], np.float16),
        "token_count": np.array([len(codes.tokens) for codes in many], np.uint8),
        "token_kind": np.array([TOKEN_KINDS.index(token.kind) for token in tokens], np.uint8),
        "token_has": np.array([np.packbits(token.has, bitorder="little")[0] for token in tokens], np.uint8),
        "mean": _flat([token.mean for token in tokens], np.int16),
        "window_length": _flat([_lengths(token.windows) for token in tokens], np.uint8),
        "window": _flat([_without_tails(token.windows) for token in tokens], np.int8),
        "side": np.array([SIDES.index(limb.limb.side) for limb in limbs], np.uint8),
        "rank": np.array([limb.limb.rank for limb in limbs], np.uint8),
        "rest": _flat([limb.rest for limb in limbs], np.float16),
        "bones": _flat([limb.bones for limb in limbs], np.float16),
        "contact": _flat([np.packbits(limb.contact) for limb in limbs], np.uint8),
    }


def unpack(arrays: Mapping[str, ndarray]) -> list[Codes]:
    """The motions in flat arrays; arrays that do not fit each other are refused."""
    packed = PackedCodes(arrays)
    return [packed[i] for i in range(len(packed))]


class PackedCodes:
    """Motions in flat arrays, of which each is read when it is asked for."""

    def __init__(self, arrays: Mapping[str, ndarray]) -> None:
        self.arrays = arrays
        try:
            self._starts = _starts(arrays)
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise _damaged(error) from error

    def __len__(self) -> int:
        return len(self.arrays["kind"])

    def __getitem__(self, index: int) -> Codes:
        try:
            return _unpack_one(_Reader(self.arrays, {name: int(rows[index]) for name, rows in self._starts.items()}))
        except (KeyError, IndexError, ValueError, UnicodeDecodeError) as error:
            raise _damaged(error) from error


def _damaged(error: Exception) -> FileFormatError:
    return FileFormatError(f"the memory: its codes of motions are damaged ({error}); install jigdoll anew")


def _starts(arrays: Mapping[str, ndarray]) -> dict[str, Int[ndarray, " motions"]]:
    """Where in each array each motion begins; arrays that are too short or too long for each other are refused."""
    count = len(arrays["kind"])
    frames, fps = arrays["frames"].astype(int), arrays["fps"].astype(float)
    if not (len(frames) == len(fps) == count and ((fps > 0) & (fps <= 1000) & (frames > 0) & (frames < 10**6)).all()):
        raise ValueError("some frames and rates are none of a motion")
    windows = np.array([window_count(int(f), float(r)) for f, r in zip(frames, fps, strict=True)], int)
    tokens = arrays["token_count"].astype(int)
    if int((tokens * windows).sum()) != len(arrays["window_length"]):  # before room is made for them
        raise ValueError("`window_length` ends too early or is too long")
    owner = np.repeat(np.arange(count), tokens)
    stations = np.array([STATION_COUNT[kind] for kind in TOKEN_KINDS])[arrays["token_kind"]]
    is_limb = np.array([kind not in MIDDLE_KINDS for kind in TOKEN_KINDS])[arrays["token_kind"]]
    limbs = np.bincount(owner, is_limb, count).astype(int)
    rows = np.repeat(np.repeat(np.arange(count), tokens), windows[owner])
    sizes = dict.fromkeys(("kind", "fps", "frames", "grounded", "name_length", "token_count"), np.ones(count, int))
    sizes |= {
        "name": arrays["name_length"].astype(int),
        "path": 3 * (windows + 1),
        "moves": 0 * windows + ROOT_CHANNELS,
    }
    sizes |= {"token_kind": tokens, "token_has": tokens, "window_length": tokens * windows}
    sizes |= {"mean": np.bincount(owner, 3 * stations, count).astype(int)}
    sizes |= {"window": np.bincount(rows, arrays["window_length"], count).astype(int)}
    sizes |= {"side": limbs, "rank": limbs, "rest": 3 * len(STATIONS) * limbs, "bones": 6 * limbs}
    sizes |= {"contact": limbs * ((frames + 7) // 8)}
    for name, size in sizes.items():
        if int(size.sum()) != len(arrays[name]):
            raise ValueError(f"`{name}` ends too early or is too long")
    return {name: np.concatenate([[0], np.cumsum(size)[:-1]]).astype(int) for name, size in sizes.items()}


class _Reader:
    """Takes numbers from the front of flat arrays."""

    def __init__(self, arrays: Mapping[str, ndarray], at: dict[str, int]) -> None:
        self.arrays, self.at = arrays, at

    def take(self, name: str, count: int) -> ndarray:
        start = self.at[name]
        if count < 0 or start + count > len(self.arrays[name]):
            raise ValueError(f"`{name}` ends too early")
        self.at[name] = start + count
        return self.arrays[name][start : start + count]

    def one(self, name: str) -> int:
        return int(self.take(name, 1)[0])


def _unpack_one(reader: _Reader) -> Codes:
    kind, fps, frames = BODY_KINDS[reader.one("kind")], float(reader.take("fps", 1)[0]), reader.one("frames")
    if not (0 < fps <= 1000 and 0 < frames < 10**6):
        raise ValueError(f"{frames} frames at {fps:g} per second are no motion")
    windows = window_count(frames, fps)
    path = reader.take("path", 3 * (windows + 1)).reshape(-1, 3)
    name = bytes(reader.take("name", reader.one("name_length"))).decode()
    tokens, limbs = [], []
    for _ in range(reader.one("token_count")):
        token_kind = TOKEN_KINDS[reader.one("token_kind")]
        stations = STATION_COUNT[token_kind]
        has = np.unpackbits(reader.take("token_has", 1), bitorder="little")[:stations].astype(bool)
        mean = reader.take("mean", 3 * stations).reshape(-1, 3)
        tokens.append(TokenCodes(token_kind, has, mean, _read_windows(reader, windows, values_per_window(token_kind))))
        if token_kind not in MIDDLE_KINDS:
            limb = Limb(token_kind, SIDES[reader.one("side")], reader.one("rank"), ())
            rest, bones = reader.take("rest", 3 * len(STATIONS)).reshape(-1, 3), reader.take("bones", 6).reshape(2, 3)
            contact = np.unpackbits(reader.take("contact", (frames + 7) // 8))[:frames].astype(bool)
            limbs.append(LimbCodes(limb, rest, bones, contact))
    moves, grounded = reader.take("moves", ROOT_CHANNELS), bool(reader.one("grounded"))
    kinds = [token.kind for token in tokens]
    if not kinds or kinds[0] != "trunk" or "trunk" in kinds[1:]:
        raise ValueError("a motion has no trunk, or two")
    if not all(np.isfinite(a).all() for a in (path, moves, *(a for each in limbs for a in (each.rest, each.bones)))):
        raise ValueError("some numbers are not finite")
    return Codes(kind, fps, frames, name, grounded, path, moves, tuple(tokens), tuple(limbs))


def _lengths(windows: Int8[ndarray, "windows values"]) -> Int[ndarray, " windows"]:
    """How many coordinates of each window come before its last zeros."""
    return ((windows != 0) * np.arange(1, windows.shape[1] + 1)).max(1, initial=0)


def _without_tails(windows: Int8[ndarray, "windows values"]) -> Int8[ndarray, " bytes"]:
    return windows[np.arange(windows.shape[1]) < _lengths(windows)[:, None]]


def _read_windows(reader: _Reader, count: int, values: int) -> Int8[ndarray, "windows values"]:
    windows = np.zeros((count, values), np.int8)
    for i, length in enumerate(reader.take("window_length", count)):
        if length > values:
            raise ValueError(f"a window of {length} coordinates is too long")
        windows[i, :length] = reader.take("window", int(length))
    return windows


def _flat(arrays: Sequence[ndarray], dtype: type) -> ndarray:
    return np.concatenate([array.reshape(-1) for array in arrays]).astype(dtype) if arrays else np.zeros(0, dtype)


def open_codec(path: Path | None = None) -> Codec:
    """The codec that ships with the package, or one that you trained."""
    from safetensors import SafetensorError, safe_open

    file = path or Path(str(resources.files("jigdoll.memory") / "weights" / "codec.safetensors"))
    if not file.is_file():
        raise FileFormatError(f"{file}: there are no weights of the motion codec; install jigdoll anew")
    if file.stat().st_size > MOST_BYTES:
        raise FileFormatError(f"{file}: {file.stat().st_size / 1e6:.0f} MB are too many for the motion codec")
    try:
        with safe_open(file, "np") as opened:
            facts = json.loads((opened.metadata() or {})["facts"])
            if (facts["window"], facts["hop"]) != (WINDOW, HOP):
                raise ValueError("its windows have another length")
            return Codec({table: _basis(opened, table) for table in BASES})
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise FileFormatError(
            f"{file}: these are no weights of the motion codec ({error}); install them anew"
        ) from error


def _basis(opened, table: TokenKind) -> Basis:
    with np.errstate(invalid="ignore"):  # what is not finite is refused below
        vectors = opened.get_tensor(f"{table}.vectors").astype(float)
        scale = opened.get_tensor(f"{table}.scale").astype(float)
    if vectors.shape != (values_per_window(table),) * 2 or scale.shape != vectors.shape[1:]:
        raise ValueError(f"the basis `{table}` has the wrong shape")
    if not (np.isfinite(vectors).all() and np.isfinite(scale).all() and (scale > 0).all()):
        raise ValueError(f"the basis `{table}` holds numbers that are not finite or not positive")
    return Basis(vectors, scale)
