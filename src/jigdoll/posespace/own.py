"""Training on clips of one's own: a folder of characters in, weights out."""

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

from jigdoll.asset.load import load
from jigdoll.corpus import LEAST_FRAMES, Take, action_named, character_takes, mocap_takes
from jigdoll.errors import JigdollError
from jigdoll.formats.table import CHARACTERS
from jigdoll.language.read import read_name
from jigdoll.posespace.dataset import dataset_of, save_clips
from jigdoll.posespace.model import NetConfig
from jigdoll.posespace.train import TrainOptions, train
from jigdoll.posespace.weights import export_weights, has_weights, shipped, stored
from jigdoll.rig.anatomy import anatomy_of
from jigdoll.rig.reparent import reparent
from jigdoll.rig.retarget.limb_motion import encode


def own_takes(folder: Path) -> Iterator[Take]:
    """Every clip of every character file of a folder; what a clip shows is read from its name."""
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in CHARACTERS)
    if not files:
        raise JigdollError(f"{folder}: there are no character files to learn from ({', '.join(sorted(CHARACTERS))})")
    for path in files:
        try:
            work = reparent(load(path))
            anatomy = anatomy_of(work.asset)
        except JigdollError as error:
            sys.stderr.write(f"left out: {path}: {error}\n")
            continue
        noun = read_name(path.stem).noun or path.stem.lower()
        for name, motion in work.asset.clips.items():
            word = name.replace("_", " ").split("|")[-1].strip()
            asked = read_name(word).action
            action = (asked.name if asked else None) or action_named(word.lower()) or "idle"
            if len(motion) >= LEAST_FRAMES:
                yield Take(
                    f"a {noun} {word}", action, noun, path.name, "your own", "train", path.stem,
                    motion, encode(anatomy, motion), anatomy,
                )  # fmt: skip


def train_on(data: Path, out: Path, *, start: str = "shipped", hours: float = 1.0, seed: int = 0) -> Path:
    """Learn from a folder of characters or from a corpus, and write weights; the same call goes on with a run."""
    if start not in ("shipped", "fresh") and not Path(start).is_file():
        raise JigdollError(f"start {start!r}: say shipped, fresh, or name a file of weights")
    if start == "shipped" and not has_weights():
        raise JigdollError("no weights ship with this installation; start fresh, or name a file of weights")
    out.mkdir(parents=True, exist_ok=True)
    shard = out / "data" / "own.npz"
    if not shard.exists():
        shard.parent.mkdir(exist_ok=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            corpus = (data / "sources.tsv").is_file()
            takes = (*character_takes(data), *mocap_takes(data)) if corpus else own_takes(data)
            found = dataset_of(takes)
        if not found.clips:
            raise JigdollError(f"{data}: no clip in it can be learned from")
        save_clips(shard, found)
    run, config = out / "run", NetConfig()
    options = TrainOptions(hours=hours, seed=seed, rate=1e-3 if start == "fresh" else 2e-4)
    weights = {"fresh": None, "shipped": shipped()}.get(start, Path(start))
    if weights is not None:
        config = NetConfig(**stored(weights)[0]["net"])
    train(shard.parent, run, config, options, start=weights)
    lines = (run / "log.jsonl").read_text().splitlines()
    return export_weights(run / "state.safetensors", out / "posespace.safetensors", log="\n".join(lines[-200:]))

