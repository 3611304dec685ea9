"""Do the characters of glTF files rest as Blender rests them?

    python benchmarks/rest_poses.py --corpus FOLDER --blender PYTHON [--quick] [--json FILE] [--only monsters/]

A file's rest is the bind pose of its skin, and the bind pose may stand in a space of its own: the reader has to find
the transform into the file's world. Blender hangs the bind pose at the root joint's node, so both are compared up to
a similarity: what is left of the shape (root mean square, in parts of the size) and how far the similarity tilts the
up axis. Twins (left and right joints of the same name) should stand at the same height: the median of their
differences, in parts of the height, needs no judge at all. Blender is no perfect judge: where the root's own node is
turned, it lays the body down (of the corpus: demonalt, the Triceratops and the cyberpunk pack's Enemy_Large).
"""

import json as json_module
import re
import subprocess
import tempfile
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

from jigdoll.asset.load import read
from jigdoll.errors import JigdollError
from jigdoll.kinematics import world_rest

HERE = Path(__file__).resolve().parent
SCRIPT = HERE.parent / "tests" / "blender" / "rest.py"
SIDE = re.compile(
    r"(?<![a-z])(left|right|l|r)(?![a-z])|(?<=[a-z])(L|R|Left|Right)(?![a-z])|(Left|Right)(?=[A-Z])", re.I
)


@dataclass(frozen=True)
class Options:
    """What to compare."""

    corpus: Path = HERE.parents[1] / "shared" / "corpus" / "characters"
    """The folder of the files."""
    blender: Path = HERE.parent / ".venv-blender" / "bin" / "python"
    """A Python that has Blender's module `bpy`."""
    quick: bool = False
    """Every tenth file."""
    json: Path | None = None
    only: str = ""
    """Part of the path of the files to compare."""
    worst: int = 15
    """Rows of the table."""


@dataclass(frozen=True)
class Row:
    """One file."""

    file: str
    joints: int
    """Joints that both know by name."""
    shape: float
    """What is left after the best similarity, in parts of the size."""
    tilt: float
    """Angle between our up and Blender's [degrees]."""
    twins: float
    """Median difference of height between left and right joints, in parts of the height."""
    twins_in_blender: float


def similarity(source: np.ndarray, target: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Scale, rotation and shift that carry source onto target best (Umeyama)."""
    a, b = source - source.mean(0), target - target.mean(0)
    U, S, Vt = np.linalg.svd(b.T @ a)
    sign = np.array([1.0, 1.0, np.sign(np.linalg.det(U @ Vt))])
    R = U @ np.diag(sign) @ Vt
    scale = float((S * sign).sum() / max((a**2).sum(), 1e-12))
    return scale, R, target.mean(0) - scale * R @ source.mean(0)


def twin_difference(places: dict[str, np.ndarray]) -> float:
    """Median difference of height between joints whose names differ only in the side."""
    sides: dict[str, dict[str, float]] = {}
    for name, place in places.items():
        hit = SIDE.search(name)
        if hit:
            sides.setdefault(name[: hit.start()] + "?" + name[hit.end() :], {})[hit.group(0)[0].lower()] = place[1]
    apart = [abs(pair["l"] - pair["r"]) for pair in sides.values() if len(pair) == 2]
    height = max(float(np.ptp([place[1] for place in places.values()])), 1e-9)
    return float(np.median(apart)) / height if apart else 0.0


def compare(name: str, ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray]) -> Row:
    """How far our rest is from Blender's."""
    shared = [joint for joint in ours if joint in theirs]
    if len(shared) < 3:
        return Row(name, len(shared), 0.0, 0.0, twin_difference(ours), twin_difference(theirs))
    a, b = np.array([ours[j] for j in shared]), np.array([theirs[j] for j in shared])
    scale, R, shift = similarity(a, b)
    left = np.sqrt(((scale * a @ R.T + shift - b) ** 2).sum(1).mean()) / max(float(np.ptp(b, axis=0).max()), 1e-9)
    # A snake's joints lie on one line, which leaves the turn about it open.
    spread = np.linalg.svd(a - a.mean(0), compute_uv=False)
    tilt = np.degrees(np.arccos(np.clip(R[1, 1], -1, 1))) if spread[1] > 0.02 * spread[0] else 0.0
    return Row(name, len(shared), float(left), float(tilt), twin_difference(ours), twin_difference(theirs))


def blender_rests(blender: Path, files: list[Path]) -> dict[str, dict[str, list[float]] | str]:
    """Bone heads of each file, by Blender."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "rests.json"
        done = subprocess.run([blender, SCRIPT, out, *files], capture_output=True, text=True, check=False)
        if not out.exists():
            raise SystemExit(f"Blender did not run: {done.stderr[-500:]}")
        return json_module.loads(out.read_text())


def our_rest(file: Path) -> dict[str, np.ndarray]:
    """Joint places at rest in the file's own frame."""
    asset = read(file)
    rest = world_rest(asset.skeleton.parents, asset.skeleton.T_parent_joint.double())[:, :3, 3].numpy()
    return dict(zip(asset.skeleton.names, rest, strict=True))


def main(options: Options) -> None:
    """Compare all files, print the worst."""
    warnings.simplefilter("ignore")
    console = Console(width=150)
    files = [f for f in sorted(options.corpus.rglob("*")) if f.suffix.lower() in (".glb", ".gltf", ".vrm")]
    files = [f for f in files if options.only in str(f)][:: 10 if options.quick else 1]
    if not files or not options.blender.is_file():
        console.print(f"nothing to compare: {len(files)} files in {options.corpus}, Blender at {options.blender}")
        return
    theirs = blender_rests(options.blender, files)
    rows, refused = [], []
    for file in files:
        name = str(file.relative_to(options.corpus))
        seen = theirs.get(str(file), "not reached")
        try:
            ours = our_rest(file)
        except JigdollError as error:
            refused.append(f"{name}: {error}")
            continue
        if isinstance(seen, str):
            refused.append(f"{name}: Blender: {seen}")
            continue
        rows.append(compare(name, ours, {joint: np.array(place) for joint, place in seen.items()}))
    rows.sort(key=lambda row: -max(row.tilt / 90, row.twins, row.shape))
    table = Table("file", "joints", "shape", "tilt", "twins", "twins in Blender", title=f"worst of {len(rows)} rigs")
    for row in rows[: options.worst]:
        figures = (f"{row.shape:.4f}", f"{row.tilt:.1f}°", f"{row.twins:.3f}", f"{row.twins_in_blender:.3f}")
        table.add_row(row.file, str(row.joints), *figures)
    console.print(table)
    tilted = sum(row.tilt > 10 for row in rows)
    uneven = sum(row.twins > 0.1 for row in rows)
    console.print(
        f"{tilted} of {len(rows)} tilted by more than 10°, {uneven} with twins apart by a tenth of the height"
    )
    for line in refused:
        console.print(f"not compared: {line}", highlight=False)
    if options.json:
        options.json.write_text(json_module.dumps([asdict(row) for row in rows], indent=1))


if __name__ == "__main__":
    main(tyro.cli(Options))
