"""Blender as the judge: it evaluates real files and ours, and its vertices are compared with those of our own FK."""

import os
import subprocess
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from jigdoll.asset.load import read
from jigdoll.errors import RepairWarning
from jigdoll.formats import gltf
from jigdoll.formats.gltf.document import read_document
from jigdoll.skin.deform import deform_mesh
from jigdoll.types import Motion, Pose, RiggedAsset

HERE = Path(__file__).parents[1]
FPS = 30.0
FILES = (
    "khronos/Fox.glb",
    "khronos/CesiumMan.glb",
    "khronos/RiggedFigure.glb",
    "mesh2motion/horse-animations.glb",
    "mesh2motion/bird-animations.glb",
    "quaternius/animals_pack/Wolf.glb",
    "threejs/RobotExpressive.glb",
)
MENDED = ("ultimate_space_pack/Astronaut_BarbaraTheBee-transformed.glb", "monsters/demonalt.glb", "monsters/orc.glb")
"""Files whose nodes do not rest in the bind pose: whatever rest we find, clips play as they do in Blender."""


@pytest.fixture(scope="module")
def blender() -> Path:
    python = Path(os.environ.get("JIGDOLL_BLENDER_PYTHON", HERE.parent / ".venv-blender" / "bin" / "python"))
    if not python.is_file():
        pytest.skip("Blender's Python module is not installed: make test-blender")
    return python


def evaluate(blender: Path, file: Path, out: Path) -> dict[str, np.ndarray]:
    """The vertices [frames vertices 3] of each clip as Blender sees them, in the order of the file's mesh nodes."""
    script = HERE / "blender" / "evaluate.py"
    run = subprocess.run([blender, script, file, out, str(FPS)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    data = np.load(out)
    objects = data["objects"].tolist()
    nodes = [node.get("name") for node in read_document(file).json["nodes"] if "mesh" in node]
    places = [objects.index(name) for name in nodes] if set(nodes) <= set(objects) else range(len(objects))
    clips = data["clips"].tolist()
    return {clip: np.concatenate([data[f"{i}/{p}"] for p in places], 1) for i, clip in enumerate(clips)}


def quiet_read(path: Path) -> RiggedAsset:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RepairWarning)
        return read(path, fps=FPS)


def mean_error(asset: RiggedAsset, motion: Motion, seen: np.ndarray) -> float:
    """Mean distance of our vertices from Blender's, in parts of the body's length."""
    ours = deform_mesh(asset, motion.pose).numpy()
    assert abs(len(ours) - len(seen)) <= 1 and ours.shape[1] == seen.shape[1]
    frames = min(len(ours), len(seen))
    length = float((asset.mesh.vertices.amax(0) - asset.mesh.vertices.amin(0)).max())
    return float(np.linalg.norm(ours[:frames] - seen[:frames], axis=-1).mean()) / length


@pytest.mark.parametrize("name", FILES)
def test_every_clip_of_a_real_file_is_posed_as_blender_poses_it(
    name: str, assets_dir: Path, tmp_path: Path, blender: Path
) -> None:
    file = assets_dir / "rigged" / name
    asset = quiet_read(file)
    seen = evaluate(blender, file, tmp_path / "seen.npz")
    clips = dict(asset.clips) if set(asset.clips) == set(seen) else dict(zip(seen, asset.clips.values(), strict=True))
    errors = {clip: mean_error(asset, clips[clip], vertices) for clip, vertices in seen.items()}
    assert max(errors.values()) <= 1e-4, errors


@pytest.mark.parametrize("name", MENDED)
def test_clips_of_a_file_that_rests_in_a_pose_play_as_in_blender(
    name: str, corpus_dir: Path, tmp_path: Path, blender: Path
) -> None:
    file = corpus_dir / "characters" / "quaternius" / name
    asset = quiet_read(file)
    seen = evaluate(blender, file, tmp_path / "seen.npz")
    errors = {clip: mean_error(asset, asset.clips[clip], vertices) for clip, vertices in seen.items()}
    assert max(errors.values()) <= 1e-4, errors


def strange_motion(asset: RiggedAsset) -> Motion:
    generator = torch.Generator().manual_seed(3)
    joints = len(asset.skeleton)
    keys = torch.nn.functional.normalize(
        torch.tensor([1.0, 0, 0, 0]) + 0.25 * torch.randn(12, joints, 4, generator=generator), dim=-1
    )
    size = float((asset.mesh.vertices.amax(0) - asset.mesh.vertices.amin(0)).max())
    return Motion(Pose(size * torch.randn(12, 3, generator=generator), keys), FPS, "strange")


@pytest.mark.parametrize("name", FILES)
def test_a_clip_that_we_add_plays_the_same_in_blender(
    name: str, assets_dir: Path, tmp_path: Path, blender: Path
) -> None:
    asset = quiet_read(assets_dir / "rigged" / name)
    motion = strange_motion(asset)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RepairWarning)
        file = gltf.write(tmp_path / "out.glb", asset, [motion])
    seen = evaluate(blender, file, tmp_path / "seen.npz")
    assert mean_error(asset, motion, seen["strange"]) <= 1e-4


@pytest.mark.parametrize("name", ["fox", "human", "spider"])
def test_a_built_in_character_walks_the_same_in_blender(name: str, tmp_path: Path, blender: Path) -> None:
    from jigdoll import zoo
    from jigdoll.zoo.gaits import reference_motion

    asset = zoo.make(name)
    motion = replace(reference_motion(asset, "walk", seconds=1.0, fps=FPS), name="walk")
    file = gltf.write(tmp_path / "zoo.glb", asset, [motion])
    seen = evaluate(blender, file, tmp_path / "seen.npz")
    assert mean_error(asset, motion, seen["walk"]) <= 1e-5
