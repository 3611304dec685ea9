"""A corpus of free motion on disk: every clip in limb space with its words, source and licence.

A corpus is a folder with `sources.tsv`, `clips.tsv`, `characters/` and `motion/`. What learns from real motion reads it
here: the memory, its codec and the pose space.
"""

import csv
import sys
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from jigdoll.asset.load import load, load_clips
from jigdoll.errors import JigdollError
from jigdoll.language.actions import ACTIONS
from jigdoll.rig.anatomy import Anatomy, anatomy_of
from jigdoll.rig.reparent import reparent, to_reparented
from jigdoll.rig.retarget.limb_motion import LimbMotion, encode
from jigdoll.types import Motion

FAR_SUBJECTS = ("02", "16", "111", "113")
"""Actors that are kept out."""
UNNAMED = "other"
"""The action of a clip whose action has no name."""
LEAST_FRAMES = 5
"""A shorter clip shows nothing."""
_NAMES = {
    "death": "die",
    "pickup": "pick_up",
    "getup": "stand_up",
    "box": "punch",
    "rest": "idle",
    "hit": "hit_reaction",
    "zombie": "stagger",
    "still": "idle",
}
"""Words of the corpus that `language.actions` calls otherwise."""


@dataclass(frozen=True, eq=False)
class Take:
    """A clip of the corpus, whole."""

    text: str
    action: str
    noun: str
    source: str
    licence: str
    split: str
    """`train`, `near` (its relatives are in train) or `far` (nothing like it is)."""
    rig: str
    """Takes of one rig have the same joints and parents."""
    joints: Motion
    """On the working copy."""
    motion: LimbMotion
    anatomy: Anatomy


def takes(corpus: Path, splits: Collection[str] = ("train",), *, mixed: bool = False) -> Iterator[Take]:
    """Every clip of these splits whose action has a name: characters first, then mocap.

    `mixed` adds mocap of more than two actions, and of what has no name.
    """
    yield from character_takes(corpus, splits)
    yield from mocap_takes(corpus, splits, mixed=mixed)


def action_named(word: str) -> str | None:
    """The action of `language.actions` behind a word of the corpus."""
    name = _NAMES.get(word, word)
    if name in ACTIONS:
        return name
    return next((action for action in ACTIONS if action.endswith(f"_{name}") or action.startswith(f"{name}_")), None)


def character_takes(corpus: Path, splits: Collection[str] = ("train",)) -> Iterator[Take]:
    """Every clip of the characters; a file that cannot be read is left out and named on stderr."""
    rows = {row["path"]: row for row in read_table(corpus / "sources.tsv") if row["split"] in splits}
    clips = defaultdict(list)
    for row in read_table(corpus / "clips.tsv"):
        if row["path"] in rows:
            clips[row["path"]].append(row)
    for path, wanted in clips.items():
        about = rows[path]
        try:
            work = reparent(load(corpus / path))
            anatomy = anatomy_of(work.asset)
        except JigdollError as error:
            sys.stderr.write(f"left out: {path}: {error}\n")
            continue
        noun = _noun(Path(path).stem, about["family"])
        for row in wanted:
            action = action_named(row["action"])
            motion = work.asset.clips.get(row["clip"])
            if action is None or motion is None or len(motion) < LEAST_FRAMES or row["motion"] == "held":
                continue
            words = row["clip"].replace("_", " ").split("|")[-1].strip()
            yield Take(
                f"a {noun} {words}", action, noun, f"{about['source']}: {Path(path).name}", about["licence"],
                about["split"], about["rig"], motion, encode(anatomy, motion), anatomy,
            )  # fmt: skip


def mocap_takes(corpus: Path, splits: Collection[str] = ("train",), *, mixed: bool = False) -> Iterator[Take]:
    """The clips of the BVH archives, then those of DeepMimic."""
    for name, licence in (("cmu", "CMU mocap, free"), ("rocketbox", "MIT")):
        for row in read_table(corpus / "motion" / name / "index.tsv"):
            subject = row.get("subject", "").zfill(2)
            split = "far" if subject in FAR_SUBJECTS else "train"
            action = action_named(row["action"])
            if split not in splits or not (mixed or (action and len(row["actions"].split(",")) <= 2)):
                continue
            yield _mocap_take(
                f"{corpus / 'motion' / name / row['zip']}:{row['clip']}.bvh",
                row["text"], action or UNNAMED, f"{name} {row['clip']}", licence, split, f"{name} {subject}",
            )  # fmt: skip
    for row in read_table(corpus / "sources.tsv"):
        action = action_named(row["actions"].split(",")[0])
        if row["path"].startswith("motion/deepmimic/") and row["split"] in splits and action:
            words = Path(row["path"]).stem.removeprefix("humanoid3d_").replace("_", " ")
            yield _mocap_take(
                str(corpus / row["path"]), f"a person: {words}", action, f"{row['source']}: {Path(row['path']).name}",
                row["licence"], row["split"], row["rig"],
            )  # fmt: skip


def _mocap_take(clip: str, text: str, action: str, source: str, licence: str, split: str, rig: str) -> Take:
    """The clip of a file of motion without a body."""
    asset = load_clips(clip)
    work = reparent(asset)
    motion = to_reparented(work, next(iter(asset.clips.values())))
    anatomy = anatomy_of(work.asset)
    return Take(text, action, "person", source, licence, split, rig, motion, encode(anatomy, motion), anatomy)


def read_table(path: Path) -> list[dict[str, str]]:
    """The rows of a table whose columns are parted by tabs."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def _noun(stem: str, family: str) -> str:
    """Who it is, from a file's name: letters only; a person where it is one of the many game characters."""
    if family in ("human", "robot", "monster"):
        return {"human": "person"}.get(family, family)
    word = "".join(c if c.isalpha() else " " for c in stem).lower().replace("animations", "").strip()
    return word.split()[-1] if word else family
