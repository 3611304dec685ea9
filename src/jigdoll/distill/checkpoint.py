"""Where a distillation stands, kept in a file that a kill cannot break: plain arrays, no pickle."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path

from jaxtyping import Float, UInt8
from torch import Tensor

from jigdoll.checkpoint import fingerprint, read_checkpoint, write_checkpoint
from jigdoll.distill.scene import Scene
from jigdoll.math.devices import to_device


@dataclass(frozen=True, eq=False)
class State:
    """All that a step needs and changes."""

    theta: Float[Tensor, "terms rows 3"]
    mean: Float[Tensor, "terms rows 3"]
    """Adam's first moment."""
    square: Float[Tensor, "terms rows 3"]
    """Adam's second moment."""
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
    content = {"state": vars(record.state), "finished": [vars(done) for done in record.finished]}
    write_checkpoint(path, content, key=_key(scene))


def read_record(path: Path, scene: Scene) -> Record | None:
    """The record of this very run, or None where there is no file yet."""
    found = read_checkpoint(path, key=_key(scene), what="distillation")
    if found is None:
        return None
    device = scene.trajectory.device
    state = to_device(State(**found["state"]), device)
    finished = tuple(to_device(Finished(**done), device) for done in found["finished"])
    return Record(replace(state, random=found["state"]["random"]), finished)  # generators live on the host


def _key(scene: Scene) -> str:
    """A mark of what must be the same for a run to go on: words, plan, skeleton, skin, draft.

    The skin as the body knows it: splats that were fitted on a GPU are not the same to the last digit again.
    """
    settings = {
        name: value
        for name, value in asdict(scene.plan).items()
        if name not in ("tries", "checkpoint_seconds", "preview_seconds")
    }
    skeleton, body = scene.trajectory.skeleton, scene.body
    skin = (body.masses, body.cuboids)
    draft = () if scene.trajectory.draft is None else (scene.trajectory.draft.pose, scene.trajectory.draft.fps)
    return fingerprint(scene.prompt, settings, skeleton.names, skeleton.T_parent_joint, *skin, *draft)
