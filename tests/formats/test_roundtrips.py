"""Real clips through other formats and back: glTF -> BVH -> glTF and glTF -> USD, within 1e-4 rad."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from jigdoll.asset.load import load
from jigdoll.formats import bvh, gltf, usd
from jigdoll.kinematics import forward
from jigdoll.math.rotations import quaternion_inverse, quaternion_multiply, quaternion_to_rotvec
from jigdoll.types import Motion, RiggedAsset

pytestmark = pytest.mark.filterwarnings("ignore::jigdoll.errors.RepairWarning")

CLIPS = [
    ("khronos/Fox.glb", "Walk"),
    ("khronos/CesiumMan.glb", None),
    ("mesh2motion/bird-animations.glb", None),
    ("quaternius/animals_pack/Wolf.glb", None),
]


def pick(assets_dir: Path, file: str, clip: str | None) -> tuple[RiggedAsset, Motion]:
    """A real character with one of its clips, whose scales (which BVH has no word for) are left out."""
    asset = load(assets_dir / "rigged" / file)
    motion = asset.clips[clip] if clip else next(iter(asset.clips.values()))
    return asset, replace(motion, pose=replace(motion.pose, scales=None), name="the clip")


def largest_turn(a: Motion, b: Motion) -> float:
    """Largest angle between the local rotations of two motions [rad]."""
    between = quaternion_multiply(quaternion_inverse(a.pose.rotations.double()), b.pose.rotations.double())
    return float(quaternion_to_rotvec(between).norm(dim=-1).max())


def largest_shift(asset: RiggedAsset, a: Motion, b: Motion) -> float:
    """Largest distance between the joints of two motions, in parts of the body's length."""
    size = float((asset.mesh.vertices.amax(0) - asset.mesh.vertices.amin(0)).max())
    here, there = (forward(asset.skeleton, motion.pose)[..., :3, 3] for motion in (a, b))
    return float((here - there).norm(dim=-1).max()) / size


@pytest.mark.parametrize(("file", "clip"), CLIPS)
def test_a_clip_goes_from_gltf_to_bvh_and_back(assets_dir: Path, tmp_path: Path, file: str, clip: str | None) -> None:
    asset, motion = pick(assets_dir, file, clip)
    written = bvh.write(tmp_path / "clip.bvh", asset.skeleton, motion)
    _, read = bvh.read(written, scale=1.0, skeleton=asset.skeleton)
    assert read.fps == motion.fps
    assert largest_turn(read, motion) < 1e-4
    assert largest_shift(asset, read, motion) < 1e-4
    again = load(gltf.write(tmp_path / "again.glb", asset, [replace(read, name="the clip")]), up="+y", forward="+z")
    # Loaded again the file is normalised anew: a clip's local rotations do not depend on where it stands.
    assert largest_turn(again.clips["the clip"], motion) < 1e-4


@pytest.mark.parametrize(("file", "clip"), CLIPS)
def test_a_clip_goes_from_gltf_to_usd_and_back(assets_dir: Path, tmp_path: Path, file: str, clip: str | None) -> None:
    pytest.importorskip("pxr", reason="usd-core is not installed")
    asset, motion = pick(assets_dir, file, clip)
    back = usd.read(usd.write(tmp_path / "clip.usdc", asset, motion))
    assert back.skeleton.names == asset.skeleton.names
    assert largest_turn(back.clips["the clip"], motion) < 1e-4
    assert largest_shift(asset, back.clips["the clip"], motion) < 1e-4
    torch.testing.assert_close(back.mesh.vertices, asset.mesh.vertices, atol=1e-5, rtol=0)
