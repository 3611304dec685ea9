"""Weights of the pose space in one file: half precision, safetensors, with all that tells where they came from.

python -m jigdoll.posespace.weights RUN OUT.safetensors
"""

import json
import sys
from importlib import resources
from pathlib import Path

import torch
from torch import Tensor

from jigdoll.errors import FileFormatError
from jigdoll.language.encoder import open_encoder
from jigdoll.posespace.model import NetConfig, PoseNet
from jigdoll.posespace.space import PoseSpace
from jigdoll.posespace.tween import open_tween
from jigdoll.posespace.windows import Units
from jigdoll.protocols import TextEncoder

MOST_BYTES = 64_000_000
VERSION = 1
"""Of the meaning of the numbers: limb space, features."""


def export_weights(state: Path, target: Path, *, log: str = "") -> Path:
    """The averaged weights of a training run as they ship."""
    from safetensors.torch import save_file

    facts, tensors = stored(state, most=None)
    kept = {name.removeprefix("average."): value for name, value in tensors.items() if name.startswith("average.")}
    kept = {name: value.half().contiguous() for name, value in kept.items()}
    kept |= {name: tensors[name].float().contiguous() for name in ("units.mean", "units.spread")}
    if not all(bool(value.isfinite().all()) for value in kept.values()):
        raise FileFormatError(f"{state}: some weights are not finite; the run went wrong")
    facts = facts | {"version": VERSION, "log": log}
    target.parent.mkdir(parents=True, exist_ok=True)
    save_file(kept, target, metadata={"facts": json.dumps(facts)})
    return target


def shipped() -> Path:
    """Where the weights are that ship with the package."""
    return Path(str(resources.files("jigdoll.posespace") / "weights" / "posespace.safetensors"))


def has_weights() -> bool:
    """Whether weights ship with this installation."""
    return shipped().is_file()


def open_space(path: Path | None = None, encoder: TextEncoder | None = None) -> PoseSpace:
    """The pose space that ships, one that you exported, or the state of a run; keep it, for each call reads anew."""
    file = path or shipped()
    if file.is_dir():
        file = file / "state.safetensors"
    facts, tensors = stored(file)
    try:
        config = NetConfig(**facts["net"])
        prefix = "average." if any(name.startswith("average.") for name in tensors) else ""
        weights = {
            name.removeprefix(prefix): value.float()
            for name, value in tensors.items()
            if name.startswith(prefix) and not name.startswith("units.")
        }
        with torch.device("meta"):  # nothing is built that the file does not fill
            net = PoseNet(config)
        net.load_state_dict(weights, assign=True)
        units = Units(tensors["units.mean"].float(), tensors["units.spread"].float())
        if not all(bool(p.isfinite().all()) for p in net.parameters()):
            raise ValueError("some weights are not finite")
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise FileFormatError(f"{file}: these are no weights of a pose space ({error}); install them anew") from error
    return PoseSpace(net.eval().requires_grad_(False), units, encoder or open_encoder(), facts, open_tween())


def stored(file: Path, *, most: int | None = None) -> tuple[dict, dict[str, Tensor]]:
    """What a file says of its weights, and the weights as they are stored."""
    from safetensors import SafetensorError, safe_open

    if not file.is_file():
        raise FileFormatError(
            f"{file}: there are no weights of a pose space; train some (jigdoll pose train) or name a file"
        )
    if most is not None and file.stat().st_size > most:
        raise FileFormatError(f"{file}: {file.stat().st_size / 1e6:.0f} MB are too many for the pose space")
    try:
        with safe_open(file, "pt") as opened:
            facts = json.loads((opened.metadata() or {})["facts"])
            return dict(facts), {key: opened.get_tensor(key) for key in opened.keys()}
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise FileFormatError(f"{file}: these are no weights of a pose space ({error}); install them anew") from error


def main() -> None:
    """Export from the command line."""
    run, target = Path(sys.argv[1]), Path(sys.argv[2])
    log = run / "log.jsonl"
    lines = log.read_text().splitlines() if log.is_file() else []
    export_weights(run / "state.safetensors", target, log="\n".join(lines[-200:]))
    sys.stdout.write(f"{target}: {target.stat().st_size / 1e6:.1f} MB\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
