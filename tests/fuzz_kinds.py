"""Everything that jigdoll reads: a good file of each kind that no artist gave us, and the reader of each kind."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

WEIGHTS = ("codec", "encoder", "memory", "pocket", "referee")
"""What ships; a file of weights is known by its name."""


def make_samples(folder: Path) -> list[Path]:
    """Write a small good file of each kind: USD, PLY, FBX, zip, checkpoint, run folder, weights, markers, jobs."""
    import torch

    from jigdoll.character import open_character, open_motion
    from jigdoll.checkpoint import write_checkpoint
    from jigdoll.formats import bvh, fbx, gltf, ply, usd
    from jigdoll.rig.autorig.markers import write_markers
    from jigdoll.runs import open_run
    from jigdoll.splats.bind import bind

    folder.mkdir(parents=True, exist_ok=True)
    ant = open_character("zoo:ant")
    walk = open_motion(ant, "walk", fps=12.0, seconds=0.5)
    files = [usd.write(folder / f"ant.{kind}", ant, walk) for kind in ("usda", "usdc", "usdz")]
    files += [fbx.write(folder / "ant.fbx", ant, [walk]), gltf.write(folder / "ant.vrm", ant, [walk])]
    files += [ply.write(folder / "splats.ply", bind(ant, count=200), weights=True)]
    clip = bvh.write(folder / "walk.bvh", ant.skeleton, walk)
    files.append(folder / "clips.zip")
    with zipfile.ZipFile(files[-1], "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("walk.bvh"), clip.read_bytes())
    files.append(folder / "checkpoint.npz")
    state = {"step": 3, "theta": torch.arange(6.0), "tries": [{"loss": [1.0, 0.5]}, {"best": torch.eye(3)}]}
    write_checkpoint(files[-1], state, key="key")
    with open_run(folder / "run", {"prompt": "a fox walks", "seed": 0, "losses": {"contact": 1.0}}):
        pass
    files.append(folder / "run" / "config.json")
    files.append(folder / "markers.json")
    write_markers(files[-1], {"left_knee": (0.1, 0.2, 0.3), "head": (0.0, 1.0, 0.2)})
    files += _jobs(folder)
    return files + [file for file in shipped_weights() if file.stem in WEIGHTS]


def shipped_weights() -> list[Path]:
    """The weights in the package."""
    import jigdoll

    return sorted(Path(str(jigdoll.__file__)).parent.rglob("weights/*.safetensors"))


def _jobs(folder: Path) -> list[Path]:
    table, lines = folder / "jobs.csv", folder / "jobs.jsonl"
    table.write_text("verb,character,prompt,seed\nanimate,zoo:fox,a fox walks,0..3\nrender,zoo:ant,,\n")
    rows = [
        {"verb": "animate", "character": ["zoo:fox", "zoo:ant"], "prompt": ["it walks", "it sits"], "seed": [0, 1]},
        {"verb": "rig", "character": "zoo:dog", "limit": 60, "retries": 2, "cpus": 0.5},
        {"verb": "track", "character": "zoo:fox", "clip": "walk", "iterations": 20},
    ]
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return [table, lines]


def read_any(path: Path) -> object:
    """Read a file with the reader of its kind, all of it."""
    return _reader(path)(path)


def _reader(path: Path) -> Callable[[Path], object]:
    suffix = path.suffix.lower()
    if suffix == ".safetensors":
        return _READ_WEIGHTS[next(name for name in WEIGHTS if name in path.stem)]
    if suffix == ".npz":
        return _read_checkpoint
    if suffix == ".json":
        return _read_request if path.stem == "config" else _read_markers
    if suffix in (".csv", ".jsonl"):
        return _read_jobs
    if suffix == ".ply":
        from jigdoll.formats.ply import read

        return read
    return _read_format


def _read_format(path: Path) -> object:
    from jigdoll.formats.table import format_of

    row = format_of(path)
    assert row is not None
    return row.motion(path, None, None) if row.character is None and row.motion else row.character(path, 30.0)  # type: ignore[misc]


def _read_checkpoint(path: Path) -> object:
    from jigdoll.checkpoint import read_checkpoint

    return read_checkpoint(path, key="key")


def _read_request(path: Path) -> object:
    """A run folder: what it was asked for, and taking it up again."""
    from jigdoll.runs import open_run, read_request

    request = read_request(path.parent)
    with open_run(path.parent, request):
        return request


def _read_markers(path: Path) -> object:
    from jigdoll.rig.autorig.markers import read_markers

    return read_markers(path)


def _read_jobs(path: Path) -> object:
    from jigdoll.jobs.read import read_jobs

    return read_jobs(path)


def _read_memory(path: Path) -> object:
    from jigdoll.memory.segments import open_memory

    memory = open_memory(path)
    return [memory.segment(index) for index in range(0, len(memory), max(1, len(memory) // 20))]


def _read_codec(path: Path) -> object:
    from jigdoll.memory.codes import open_codec

    return open_codec(path)


def _read_encoder(path: Path) -> object:
    from jigdoll.language.encoder import open_encoder

    return open_encoder(path)(["a fox walks"])


def _read_referee(path: Path) -> object:
    from jigdoll.judge.referee import read_referee

    return read_referee(path)


def _read_pocket(path: Path) -> object:
    from jigdoll.prior.pocket.prior import open_pocket

    return open_pocket.__wrapped__(path)  # without its cache, which would keep every case


_READ_WEIGHTS: dict[str, Callable[[Path], object]] = {
    "codec": _read_codec,
    "encoder": _read_encoder,
    "memory": _read_memory,
    "pocket": _read_pocket,
    "referee": _read_referee,
}
