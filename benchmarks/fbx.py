"""Do the FBX files that we write say to others what our own kinematics says?

    python benchmarks/fbx.py [--quick] [--json FILE] [--blender PYTHON]

Every built-in character with its walk, and artists' files with all their clips, are written as FBX and read back by
ufbx, and by Blender's two importers where its Python module is there. The largest distance of any vertex in any frame
from where we put it is given in parts of the body's length, for ufbx that of any joint and the largest difference of
a weight too.
"""

import json as json_module
import os
import subprocess
import tempfile
import time
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

from jigdoll import zoo
from jigdoll.asset.load import load
from jigdoll.errors import RepairWarning
from jigdoll.formats import fbx
from jigdoll.kinematics import forward
from jigdoll.skin.deform import deform_mesh
from jigdoll.types import Motion, RiggedAsset
from jigdoll.zoo.gaits import reference_motion

ROOT = Path(__file__).resolve().parents[1]
FPS = 30.0
REAL = (
    "assets/rigged/khronos/CesiumMan.glb",
    "assets/rigged/khronos/Fox.glb",
    "assets/rigged/mesh2motion/bird-animations.glb",
    "assets/rigged/quaternius/animals_pack/Wolf.glb",  # joints that move within their parents
    "corpus/characters/liil/animalworld/Seal.glb",  # joints that grow
    "assets/rigged/threejs/RobotExpressive.glb",
    "corpus/characters/kaykit/adventurers/barbarian.glb",
    "corpus/characters/quaternius/animal_pack_2/Eagle.fbx",  # seven influences
)


@dataclass(frozen=True)
class Options:
    """What to write, and who reads it."""

    quick: bool = False
    """Four characters and two real files."""
    json: Path | None = None
    shared: Path = ROOT.parent / "shared"
    """The folder of the real files."""
    blender: Path = Path(os.environ.get("JIGDOLL_BLENDER_PYTHON", ROOT / ".venv-blender" / "bin" / "python"))
    """A Python that has Blender's module."""
    only: str = ""
    """Part of the name of what to write."""


@dataclass(frozen=True)
class Row:
    """One file."""

    name: str
    clips: int
    frames: int
    bytes: int
    write_seconds: float
    joints: float
    """ufbx: largest distance of a joint, in parts of the body's length."""
    weights: float
    """ufbx: largest difference of a weight."""
    vertices: float
    """ufbx: largest distance of a vertex, in parts of the body's length."""
    blender: float | None
    blender_legacy: float | None


def measure(asset: RiggedAsset, motions: list[Motion], blender: Path, folder: Path) -> Row:
    """Write the character with its clips and let the others read it."""
    start = time.perf_counter()
    file = fbx.write(folder / "out.fbx", asset, motions)
    seconds = time.perf_counter() - start
    length = float((asset.mesh.vertices.amax(0) - asset.mesh.vertices.amin(0)).max())
    posed = [deform_mesh(asset, motion.pose).numpy() for motion in motions]
    seen = [evaluate(blender, file, posed, motions, legacy=legacy) for legacy in (False, True)]
    joints, weights, vertices = read_back(asset, motions, posed, file)
    return Row(
        name=asset.name,
        clips=len(motions),
        frames=sum(len(motion) for motion in motions),
        bytes=file.stat().st_size,
        write_seconds=seconds,
        joints=joints / length,
        weights=weights,
        vertices=vertices / length,
        blender=None if seen[0] is None else seen[0] / length,
        blender_legacy=None if seen[1] is None else seen[1] / length,
    )


def read_back(
    asset: RiggedAsset, motions: list[Motion], posed: list[np.ndarray], file: Path
) -> tuple[float, float, float]:
    """Largest differences of joints [m], weights and vertices [m] as ufbx sees them."""
    back = fbx.read(file, fps=FPS)
    order = [back.skeleton.index(name) for name in asset.skeleton.names]
    used = np.unique(asset.mesh.faces.numpy())
    ours, theirs = (a.weights.dense(len(a.skeleton)).numpy() for a in (asset, back))
    weights = float(np.abs(ours[used] - theirs[:, order]).max())
    joints = vertices = 0.0
    for motion, places in zip(motions, posed, strict=True):
        clip = back.clips[motion.name]
        assert len(clip) == len(motion), (len(clip), len(motion))
        here, there = (forward(a.skeleton, m.pose)[..., :3, 3] for a, m in ((asset, motion), (back, clip)))
        joints = max(joints, float((here - there[:, order]).norm(dim=-1).max()))
        moved = deform_mesh(back, clip.pose).numpy()
        vertices = max(vertices, float(np.linalg.norm(moved - places[:, used], axis=-1).max()))
    return joints, weights, vertices


def evaluate(
    blender: Path, file: Path, posed: list[np.ndarray], motions: list[Motion], *, legacy: bool
) -> float | None:
    """Largest distance of a vertex as Blender sees it [m]; None without Blender."""
    if not blender.is_file():
        return None
    out = file.with_suffix(".npz")
    script = ROOT / "tests" / "blender" / "evaluate.py"
    command = [blender, script, file, out, str(FPS), *(["legacy"] if legacy else [])]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise SystemExit(f"Blender failed on {file.name}: {run.stderr[-2000:]}")
    data = np.load(out)
    clips = data["clips"].tolist()
    worst = 0.0
    for motion, places in zip(motions, posed, strict=True):
        moved = data[f"{clips.index(motion.name)}/0"]
        assert moved.shape == places.shape, (moved.shape, places.shape)
        worst = max(worst, float(np.linalg.norm(moved - places, axis=-1).max()))
    return worst


def main(options: Options) -> None:
    """Write all files, print the table."""
    console = Console(width=150)
    characters = [f"zoo:{name}" for name in zoo.SPECIES]
    files = [file for file in REAL if (options.shared / file).is_file()]
    chosen = [*characters[:: 8 if options.quick else 1], *files[: 2 if options.quick else None]]
    table = Table("file", "clips", "frames", "MB", "write s", "joints", "weights", "vertices", "Blender", "legacy")
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", RepairWarning)
        for name in chosen:
            if options.only not in name:
                continue
            if name.startswith("zoo:"):
                asset = zoo.make(name[4:])
                motions = [reference_motion(asset, "walk", seconds=1.0, fps=FPS)]
            else:
                asset = load(options.shared / name, fps=FPS)
                motions = list(asset.clips.values())
            row = measure(asset, motions, options.blender, Path(folder))
            rows.append(row)
            errors = (row.joints, row.weights, row.vertices, row.blender, row.blender_legacy)
            shown = ["-" if error is None else f"{error:.1e}" for error in errors]
            size, seconds = f"{row.bytes / 1e6:.1f}", f"{row.write_seconds:.2f}"
            table.add_row(name, str(row.clips), str(row.frames), size, seconds, *shown)
    console.print(table)
    if options.json:
        options.json.write_text(json_module.dumps([asdict(row) for row in rows], indent=1))


if __name__ == "__main__":
    main(tyro.cli(Options))
