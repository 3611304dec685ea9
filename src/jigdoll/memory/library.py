"""The user's own library: clips of your files at full fidelity in your cache folder, found by the same words.

Every clip is one file in limb space, named by the content of what it was made from, so that adding a folder again only
adds what is new, and a kill loses at most the clip at hand. Nothing leaves the machine.
"""

import csv
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy import ndarray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from jigdoll.asset.load import load_clips
from jigdoll.errors import FileFormatError, JigdollError
from jigdoll.formats.archive import member_names, read_member
from jigdoll.formats.files import is_temporary, read_limited, write_bytes
from jigdoll.language.meaning import SURE, nearest_meaning
from jigdoll.language.read import read, read_name
from jigdoll.memory.labels import plain, styles_of
from jigdoll.memory.segments import Memory, Words, both, open_memory, words_of
from jigdoll.memory.shape import resample, speed_of
from jigdoll.protocols import Progress, TextEncoder, quiet
from jigdoll.rig.anatomy import Anatomy, anatomy_of
from jigdoll.rig.reparent import reparent, to_reparented
from jigdoll.rig.retarget.limb_motion import LimbMotion, LimbTrack, encode
from jigdoll.rig.retarget.tokens import to_6d, to_turns
from jigdoll.types import Limb, Motion

SUFFIXES = (".bvh", ".glb", ".gltf", ".fbx")
"""Files whose clips are taken, also out of zips."""
LEAST_FRAMES = 5
MOST_SECONDS = 120.0
"""Longer clips are cut to this."""
MOST_FILES = 50_000
MOST_BYTES = 64_000_000
"""Of one clip in the library."""
VERSION = "1"
NAMELESS = ("", "mixamo.com", "take 001", "armature|mixamo.com", "armature|armatureaction", "armatureaction")
"""Names of clips that say nothing."""
SIDECAR = "words.tsv"
"""A table beside the clips, with the columns `file`, `clip` (may be empty), `text` and `action` (may be empty)."""


@dataclass(frozen=True)
class OwnClip:
    """A clip of the library."""

    key: str
    """The name of its file in the library."""
    file: str
    """Where it came from."""
    clip: str
    words: Words


@dataclass(frozen=True)
class Added:
    """What adding files to a library did."""

    new: tuple[OwnClip, ...]
    known: int
    """Clips that were in it already."""
    skipped: tuple[tuple[str, str], ...]
    """What could not be taken, and why."""


def cache_folder() -> Path:
    """The user's cache folder of jigdoll: `JIGDOLL_CACHE`, or where the platform keeps such things."""
    if chosen := os.environ.get("JIGDOLL_CACHE"):
        return Path(chosen)
    home = Path.home()
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "jigdoll"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "jigdoll" / "Cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "jigdoll"


def library_folder(folder: Path | None = None) -> Path:
    """Where the clips of the library are."""
    return (cache_folder() if folder is None else folder) / "library"


def add(source: Path, encoder: TextEncoder, *, folder: Path | None = None, progress: Progress = quiet) -> Added:
    """Add the clips of a file, a zip or a folder (with all in it); what cannot be read is skipped and named."""
    if not source.exists():
        raise FileFormatError(f"{source}: there is no such file or folder; check the path")
    files = _files(source)
    if not files:
        raise FileFormatError(f"{source}: there is nothing to add; clips are in {', '.join((*SUFFIXES, '.zip'))} files")
    words = _sidecar(source if source.is_dir() else source.parent)
    new, skipped, known = [], [], 0
    for i, file in enumerate(files):
        progress(i / len(files), f"reading {file.name}")
        for name, data, problem in _opened(file):
            if problem:
                skipped.append((name, problem))
                continue
            try:
                for clip in _clips(file, name, data, words, encoder, library_folder(folder)):
                    new += [clip] if clip is not None else []
                    known += clip is None
            except JigdollError as error:
                skipped.append((name, str(error)))
            except (ValueError, IndexError, KeyError, TypeError, ArithmeticError, RecursionError) as error:
                # One odd file must not keep the other thousand out.
                skipped.append((name, f"cannot be understood ({type(error).__name__}: {error})"))
    progress(1.0, "done")
    return Added(tuple(new), known, tuple(skipped))


def clips(folder: Path | None = None) -> list[OwnClip]:
    """What is in the library; files that are none of its clips are passed over."""
    place = library_folder(folder)
    found = []
    for path in sorted(place.glob("*.safetensors")) if place.is_dir() else []:
        if not is_temporary(path):
            try:
                found.append(_about(path))
            except FileFormatError:
                continue
    return found


def remove(what: str, folder: Path | None = None) -> list[OwnClip]:
    """Remove the clips whose key, file, clip or text contains a word (`all` removes everything); which they were."""
    wanted = what.lower()
    if not wanted.strip():
        raise JigdollError("say which clips to remove: a part of their name, file or text, or all")
    gone = []
    for clip in clips(folder):
        texts = (clip.key, clip.file, clip.clip, clip.words.text)
        if wanted == "all" or any(wanted in text.lower() for text in texts):
            (library_folder(folder) / f"{clip.key}.safetensors").unlink(missing_ok=True)
            gone.append(clip)
    return gone


def open_library(encoder: TextEncoder, folder: Path | None = None) -> Memory:
    """The library as a memory."""
    own = clips(folder)
    texts = [clip.words.text for clip in own]
    vectors = np.asarray(encoder(texts)) if texts else np.zeros((0, np.asarray(encoder(["walk"])).shape[1]), np.float32)
    place = library_folder(folder)

    def motion(index: int, fps: float | None) -> LimbMotion:
        found = read_motion(place / f"{own[index].key}.safetensors")
        return found if fps is None else resample(found, fps)

    return Memory([clip.words for clip in own], vectors, motion)


def open_memories(encoder: TextEncoder, folder: Path | None = None) -> Memory:
    """The user's own library and the memory that ships, as one; own clips come first where they fit."""
    shipped = open_memory()
    own = open_library(encoder, folder)
    return both(own, shipped) if len(own) else shipped


def _files(source: Path) -> list[Path]:
    """The files to look at; hidden ones and links that lead out of the folder are left alone."""
    if source.is_file():
        return [source]
    inside = source.resolve()
    found = []
    for path in sorted(source.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(source).parts)
        if path.suffix.lower() in (*SUFFIXES, ".zip") and not hidden and path.resolve().is_relative_to(inside):
            found.append(path)
        if len(found) > MOST_FILES:
            raise FileFormatError(f"{source}: more than {MOST_FILES} files; add its folders one by one")
    return [path for path in found if path.is_file()]


def _opened(file: Path) -> Iterator[tuple[str, bytes | None, str]]:
    """The files of a zip, or the file itself: its name, the bytes where it came out of a zip, and what is wrong."""
    if file.suffix.lower() != ".zip":
        known = file.suffix.lower() in SUFFIXES
        yield str(file), None, "" if known else f"a {file.suffix or 'file without suffix'} holds no clips"
        return
    try:
        names = member_names(file, suffixes=SUFFIXES)
    except JigdollError as error:
        yield str(file), None, str(error)
        return
    if not names:
        yield str(file), None, f"there is no {' or '.join(SUFFIXES)} file in the archive"
    for name in names:
        try:
            yield f"{file}:{name}", read_member(file, name, suffixes=SUFFIXES)[1], ""
        except JigdollError as error:
            yield f"{file}:{name}", None, str(error)


def _clips(
    file: Path, name: str, data: bytes | None, words: Mapping, encoder: TextEncoder, place: Path
) -> Iterator[OwnClip | None]:
    """The clips of one file, written into the library; None for each that it has already."""
    mark = hashlib.sha256(read_limited(file) if data is None else data).hexdigest()
    with tempfile.TemporaryDirectory(prefix="jigdoll-") as folder:
        path = file
        if data is not None:
            path = Path(folder) / f"clip{Path(name).suffix.lower()}"
            path.write_bytes(data)
        asset = load_clips(path)
        work = reparent(asset)
        anatomy = anatomy_of(work.asset)
        if not asset.clips:
            raise FileFormatError("the file holds no clips")
        for clip, motion in asset.clips.items():
            if len(motion) < LEAST_FRAMES:
                continue
            key = hashlib.sha256(f"{VERSION} {mark} {clip}".encode()).hexdigest()[:20]
            if (place / f"{key}.safetensors").exists():
                yield None
                continue
            yield _keep(place, key, name, clip, to_reparented(work, motion), anatomy, words, encoder)


def _keep(
    place: Path, key: str, name: str, clip: str, motion: Motion, anatomy: Anatomy, words: Mapping, encoder: TextEncoder
) -> OwnClip:
    """Write one clip with its words."""
    most = round(MOST_SECONDS * motion.fps) + 1
    if len(motion) > most:
        motion = replace(motion, pose=motion.pose[:most])
    limb_motion = encode(anatomy, motion)
    if not np.isfinite(limb_motion.place).all():
        raise FileFormatError("the clip holds numbers that are not finite")
    own = OwnClip(key, name, clip, _words(name, clip, limb_motion, anatomy, words, encoder))
    header = {"version": VERSION, "about": json.dumps(asdict(own)), "limbs": json.dumps(_limb_rows(limb_motion))}
    facts: dict[str, Any] = {"kind": limb_motion.kind, "fps": limb_motion.fps, "grounded": limb_motion.grounded}
    facts["centres"] = {part: [float(x) for x in at] for part, at in limb_motion.centres.items()}
    write_bytes(
        place / f"{key}.safetensors", save(_arrays(limb_motion), metadata=header | {"facts": json.dumps(facts)})
    )
    return own


def _words(name: str, clip: str, motion: LimbMotion, anatomy: Anatomy, told: Mapping, encoder: TextEncoder) -> Words:
    """What a clip is, from the names of its file and of itself, or from the table beside it."""
    from jigdoll.memory.build import CYCLIC

    stem = Path(name.rsplit(":", 1)[-1]).stem
    row = told.get((stem.lower(), clip.lower())) or told.get((stem.lower(), "")) or {}
    spoken = "" if clip.lower() in (stem.lower(), *NAMELESS) else clip
    text = row.get("text") or plain(" ".join(word for word in (stem, spoken.split("|")[-1]) if word))
    action = row.get("action") or ""
    actions = [a.name for a in read(text).actions] or [a.name for a in read_name(spoken or stem).actions]
    if not action and actions:
        action = actions[0]
    if not action:
        meaning, likeness = nearest_meaning(text, encoder)
        action = meaning.action if likeness > SURE else "other"
    noun = read(text).noun or ("person" if anatomy.kind == "person" else anatomy.kind)
    return Words(
        text, action, noun, anatomy.kind, len(anatomy.legs), any(t.limb.kind == "wing" for t in motion.limbs),
        round((len(motion) - 1) / motion.fps, 2), round(speed_of(motion), 3), action in CYCLIC, 1.0,
        f"own: {Path(name).name}", "yours", styles_of(text), round(float(motion.heading[-1]), 2), True,
    )  # fmt: skip


def _sidecar(folder: Path) -> dict[tuple[str, str], dict[str, str]]:
    """The table of words beside the clips, where there is one."""
    path = folder / SIDECAR
    if not path.is_file():
        return {}
    text = read_limited(path, 16_000_000).decode(errors="replace")
    rows = csv.DictReader(text.splitlines(), delimiter="\t")
    if not {"file", "text"} <= set(rows.fieldnames or ()):
        raise FileFormatError(f"{path}: a table of words has the columns file, clip, text, action, parted by tabs")
    return {(Path(row["file"] or "").stem.lower(), (row.get("clip") or "").lower()): row for row in rows}


def _about(path: Path) -> OwnClip:
    """What a file of the library is."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ValueError("too large")
        with safe_open(path, framework="numpy") as file:
            header = file.metadata() or {}
        row = json.loads(header["about"])
        if header["version"] != VERSION:
            raise ValueError("another version")
        return OwnClip(path.stem, str(row["file"]), str(row["clip"]), words_of(row["words"]))
    except (SafetensorError, OSError, ValueError, TypeError, KeyError) as error:
        raise FileFormatError(f"{path.name}: this is no clip of a library ({error}); remove it") from error


def read_motion(path: Path) -> LimbMotion:
    """The motion of a file of the library."""
    try:
        with safe_open(path, framework="numpy") as file:
            header = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}
        facts, rows = json.loads(header["facts"]), json.loads(header["limbs"])
        turns = {name: to_turns(value.astype(float)) for name, value in arrays.items() if name.startswith("turns.")}
        limbs = tuple(
            LimbTrack(
                Limb(kind, side, int(rank), ()),
                turns[f"turns.limb{k}"],
                np.array(has, bool),
                turns[f"turns.rest{k}"],
                arrays[f"end{k}"].astype(float),
                arrays[f"contact{k}"].astype(bool),
            )
            for k, (kind, side, rank, has) in enumerate(rows)
        )
        return LimbMotion(
            kind=facts["kind"],
            fps=float(facts["fps"]),
            name="",
            place=arrays["place"].astype(float),
            heading=arrays["heading"].astype(float),
            root=turns["turns.root"],
            trunk=turns["turns.trunk"],
            neck=turns.get("turns.neck"),
            tail=turns.get("turns.tail"),
            limbs=limbs,
            grounded=bool(facts["grounded"]),
            centres={part: np.array(at, float) for part, at in facts["centres"].items()},
        )
    except (SafetensorError, OSError, ValueError, TypeError, KeyError) as error:
        raise FileFormatError(f"{path.name}: this clip of your library is damaged ({error}); remove it") from error


def _limb_rows(motion: LimbMotion) -> Sequence:
    return [[t.limb.kind, t.limb.side, t.limb.rank, [bool(x) for x in t.has]] for t in motion.limbs]


def _arrays(motion: LimbMotion) -> dict[str, ndarray]:
    middle = {"root": motion.root, "trunk": motion.trunk, "neck": motion.neck, "tail": motion.tail}
    arrays = {f"turns.{name}": to_6d(value) for name, value in middle.items() if value is not None}
    for k, track in enumerate(motion.limbs):
        arrays |= {f"turns.limb{k}": to_6d(track.turns), f"turns.rest{k}": to_6d(track.rest), f"end{k}": track.end}
    arrays |= {"place": motion.place, "heading": motion.heading}
    flags = {f"contact{k}": track.contact.astype(np.uint8) for k, track in enumerate(motion.limbs)}
    return {name: np.ascontiguousarray(value, np.float32) for name, value in arrays.items()} | flags
