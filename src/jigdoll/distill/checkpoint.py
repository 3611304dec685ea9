"""Where a distillation stands, kept in a file that a kill cannot break: plain arrays, no pickle."""

import hashlib
import io
import json
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from jigdoll.distill.scene import Scene
from jigdoll.errors import JigdollError
from jigdoll.formats.files import atomic_write, read_limited


@dataclass(frozen=True, eq=False)
class State:
    """All that a step needs and changes."""

    theta: Float[Tensor, "terms rows 3"]
    mean: Float[Tensor, "terms rows 3"]
    """Adam's first clip."""
    square: Float[Tensor, "terms rows 3"]
    """Adam's second clip."""
    anchor: Float[Tensor, "terms rows 3"]
    """The last place known to be good."""
    step: int
    restarted: int
    """The step at which the moments were last cleared."""
    random: UInt8[Tensor, " bytes"]
    """Of the generator."""
    history: dict[str, list[float]]
    backoffs: int = 0


@dataclass(frozen=True, eq=False)
class Finished:
    """A try that ran to its end."""

    theta: Float[Tensor, "terms rows 3"]
    history: dict[str, list[float]]
    score: float


@dataclass(frozen=True, eq=False)
class Record:
    """The tries that are done and the one that is running."""

    state: State
    finished: tuple[Finished, ...]


def write_record(path: Path, scene: Scene, record: Record) -> None:
    """Write the whole record or nothing."""
    state = record.state
    arrays = {name: getattr(state, name).cpu().numpy() for name in ("theta", "mean", "square", "anchor", "random")}
    arrays |= {f"theta_{i}": done.theta.cpu().numpy() for i, done in enumerate(record.finished)}
    notes = {
        "run": fingerprint(scene),
        "step": state.step,
        "restarted": state.restarted,
        "backoffs": state.backoffs,
        "history": state.history,
        "finished": [{"score": done.score, "history": done.history} for done in record.finished],
    }
    with atomic_write(path) as temporary, temporary.open("wb") as file:
        np.savez(file, notes=np.frombuffer(json.dumps(notes).encode(), np.uint8), **arrays)


def read_record(path: Path, scene: Scene) -> Record | None:
    """The record of this very run, or None where there is no file yet."""
    if not path.exists():
        return None
    try:
        with np.load(io.BytesIO(read_limited(path)), allow_pickle=False) as file:
            arrays = {name: torch.from_numpy(file[name]) for name in file.files if name != "notes"}
            notes = json.loads(file["notes"].tobytes())
        if notes["run"] != fingerprint(scene):
            raise JigdollError(
                f"{path}: this checkpoint belongs to another run (other words, character or settings); "
                "name another file or remove it"
            )
        device = scene.trajectory.device
        tensors = {name: arrays[name].to(device) for name in ("theta", "mean", "square", "anchor")}
        state = State(
            **tensors,
            random=arrays["random"],
            step=notes["step"],
            restarted=notes["restarted"],
            backoffs=notes["backoffs"],
            history=notes["history"],
        )
        finished = [
            Finished(arrays[f"theta_{i}"].to(device), each["history"], each["score"])
            for i, each in enumerate(notes["finished"])
        ]
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise JigdollError(f"{path}: this is no checkpoint that can be read ({error}); remove it") from error
    return Record(state, tuple(finished))


def fingerprint(scene: Scene) -> str:
    """What must be the same for a run to go on."""
    settings = {
        name: value
        for name, value in asdict(scene.plan).items()
        if name not in ("tries", "checkpoint_seconds", "preview_seconds")
    }
    skeleton = scene.trajectory.skeleton
    known = json.dumps([scene.prompt, settings, skeleton.names, skeleton.T_parent_joint.tolist()], sort_keys=True)
    return hashlib.sha256(known.encode()).hexdigest()
