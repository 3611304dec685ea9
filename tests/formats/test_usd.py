"""UsdSkel in both directions."""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jigdoll.errors import FileFormatError, MissingExtra
from jigdoll.formats import usd
from jigdoll.kinematics import make_skeleton
from jigdoll.math.rotations import quaternion_inverse, quaternion_multiply, quaternion_to_matrix, quaternion_to_rotvec
from jigdoll.math.transforms import transform
from jigdoll.skin.deform import deform_mesh
from jigdoll.types import Mesh, Motion, Pose, RiggedAsset, Weights

pytest.importorskip("pxr", reason="usd-core is not installed")


def random_character(seed: int, joints: int = 5, vertices: int = 12) -> RiggedAsset:
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator)

    parents = (-1, *(int(torch.randint(0, j, (1,), generator=generator)) for j in range(1, joints)))
    turns = quaternion_to_matrix(torch.nn.functional.normalize(normal(joints, 4).double(), dim=-1))
    rest = transform(turns, normal(joints, 3).double()).float()
    names = tuple(["Bip01 Hips", "left.arm", "2nd", "a:b", *(f"joint_{j}" for j in range(4, joints))][:joints])
    faces = torch.stack([torch.randperm(vertices, generator=generator)[:3] for _ in range(8)])
    mesh = Mesh(normal(vertices, 3), faces, torch.rand(vertices, 3, generator=generator))
    weights = Weights.from_dense(torch.rand(vertices, joints, generator=generator), influences=3)
    return RiggedAsset("random", mesh, make_skeleton(names, parents, rest), weights)


def random_motion(asset: RiggedAsset, seed: int, *, offsets: bool) -> Motion:
    generator = torch.Generator().manual_seed(seed)
    rotations = torch.randn(4, len(asset.skeleton), 4, generator=generator)
    moved = torch.randn(4, len(asset.skeleton), 3, generator=generator)
    moved[:, 0] = 0
    root = torch.randn(4, 3, generator=generator)
    pose = Pose(root, torch.nn.functional.normalize(rotations, dim=-1), moved if offsets else None)
    return Motion(pose, 24.0, "swing low")


@pytest.mark.parametrize("suffix", [".usda", ".usdc", ".usdz"])
@settings(max_examples=3, deadline=None)
@given(seed=st.integers(0, 10_000), offsets=st.booleans())
def test_a_character_and_its_motion_survive_the_round_trip(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, seed: int, offsets: bool
) -> None:
    asset = random_character(seed)
    motion = random_motion(asset, seed, offsets=offsets)
    folder = tmp_path_factory.mktemp("usd")
    back = usd.read(usd.write(folder / f"random{suffix}", asset, motion))
    assert [file.name for file in folder.iterdir()] == [f"random{suffix}"]
    assert back.skeleton.names == asset.skeleton.names
    assert back.skeleton.parents == asset.skeleton.parents
    torch.testing.assert_close(back.skeleton.T_parent_joint, asset.skeleton.T_parent_joint, atol=2e-6, rtol=0)
    torch.testing.assert_close(back.mesh.vertices, asset.mesh.vertices, atol=1e-6, rtol=0)
    assert torch.equal(back.mesh.faces, asset.mesh.faces)
    torch.testing.assert_close(back.mesh.colors, asset.mesh.colors, atol=1e-5, rtol=0)
    torch.testing.assert_close(back.weights.dense(5), asset.weights.dense(5), atol=1e-6, rtol=0)
    clip = back.clips["swing low"]
    assert clip.fps == 24.0
    between = quaternion_multiply(quaternion_inverse(clip.pose.rotations), motion.pose.rotations)
    assert float(quaternion_to_rotvec(between.double()).norm(dim=-1).max()) < 1e-5
    torch.testing.assert_close(clip.pose.root, motion.pose.root, atol=1e-5, rtol=0)
    torch.testing.assert_close(deform_mesh(back, clip.pose), deform_mesh(asset, motion.pose), atol=3e-5, rtol=0)


def test_the_stage_says_metres_and_y_up_and_has_one_root(tmp_path: Path) -> None:
    from pxr import Usd, UsdGeom, UsdSkel

    asset = random_character(1)
    stage = Usd.Stage.Open(str(usd.write(tmp_path / "c.usda", asset, random_motion(asset, 1, offsets=False))))
    assert UsdGeom.GetStageMetersPerUnit(stage) == 1.0
    assert UsdGeom.GetStageUpAxis(stage) == "Y"
    assert stage.GetDefaultPrim().IsA(UsdSkel.Root)
    assert (stage.GetStartTimeCode(), stage.GetEndTimeCode(), stage.GetTimeCodesPerSecond()) == (0, 3, 24)


def test_usds_own_skinning_agrees_with_ours(tmp_path: Path) -> None:
    from pxr import Usd, UsdGeom, UsdSkel

    asset = random_character(2)
    motion = random_motion(asset, 2, offsets=False)
    stage = Usd.Stage.Open(str(usd.write(tmp_path / "c.usda", asset, motion)))
    assert UsdSkel.BakeSkinning(UsdSkel.Root(stage.GetDefaultPrim()))
    points = UsdGeom.Mesh(stage.GetPrimAtPath("/character/body")).GetPointsAttr()
    baked = np.stack([np.array(points.Get(frame)) for frame in range(4)])
    np.testing.assert_allclose(baked, deform_mesh(asset, motion.pose).numpy(), atol=2e-5)


def test_centimetres_and_z_up_are_converted(tmp_path: Path) -> None:
    from pxr import Usd, UsdGeom

    asset = random_character(3)
    path = usd.write(tmp_path / "c.usda", asset)
    stage = Usd.Stage.Open(str(path))
    UsdGeom.SetStageMetersPerUnit(stage, 0.01)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    stage.GetRootLayer().Save()
    x, y, z = asset.mesh.vertices.T / 100
    torch.testing.assert_close(usd.read(path).mesh.vertices, torch.stack([x, z, -y], 1), atol=1e-7, rtol=0)


def test_a_bare_mesh_reads_with_one_joint(tmp_path: Path) -> None:
    path = tmp_path / "quad.usda"
    path.write_text(
        '#usda 1.0\n(\nmetersPerUnit = 1\nupAxis = "Y"\n)\ndef Mesh "quad" {\n'
        "int[] faceVertexCounts = [4]\nint[] faceVertexIndices = [0, 1, 2, 3]\n"
        "point3f[] points = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)]\n"
        'double3 xformOp:translate = (0, 0, 5)\nuniform token[] xformOpOrder = ["xformOp:translate"]\n}\n'
    )
    asset = usd.read(path)
    assert not asset.is_rigged
    assert asset.mesh.faces.tolist() == [[0, 1, 2], [0, 2, 3]]
    assert asset.mesh.vertices[2].tolist() == [1, 1, 5]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "#usda 1.0\n",
        '#usda 1.0\ndef Mesh "m" {',
        '#usda 1.0\ndef Mesh "m" {\nint[] faceVertexCounts = [3]\n}',
    ],
)
def test_damage_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "broken.usda"
    path.write_text(text)
    with pytest.raises(FileFormatError, match=r"broken\.usda"):
        usd.read(path)


def test_a_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pxr", None)
    with pytest.raises(MissingExtra, match=r"jigdoll\[usd\]"):
        usd.read(tmp_path / "any.usda")


def test_a_clip_of_many_frames_and_few_keys_is_refused(tmp_path: Path) -> None:
    asset = random_character(6)
    path = usd.write(tmp_path / "c.usda", asset, random_motion(asset, 6, offsets=False))
    path.write_text(path.read_text().replace("            3: [", "            60000: ["))
    with pytest.raises(FileFormatError, match="60001 frames at 24 a second, with 4 keys"):
        usd.read(path)


LOOK = """
import sys, bpy, numpy as np
bpy.ops.wm.read_factory_settings(use_empty=True)
bpy.ops.wm.usd_import(filepath=sys.argv[1])
body = next(thing for thing in bpy.data.objects if thing.type == "MESH")
out = []
for frame in range(4):
    bpy.context.scene.frame_set(frame)
    shape = body.evaluated_get(bpy.context.evaluated_depsgraph_get())
    out.append([list(shape.matrix_world @ v.co) for v in shape.data.vertices])
np.save(sys.argv[2], np.array(out))
"""


@pytest.mark.skipif("JIGDOLL_BLENDER_PYTHON" not in os.environ, reason="JIGDOLL_BLENDER_PYTHON is not set")
def test_blender_plays_the_clip_as_we_do(tmp_path: Path) -> None:
    asset = random_character(4)
    motion = random_motion(asset, 4, offsets=False)
    path = usd.write(tmp_path / "c.usdc", asset, motion)
    script = tmp_path / "look.py"
    script.write_text(LOOK)
    command = [os.environ["JIGDOLL_BLENDER_PYTHON"], str(script), str(path), str(tmp_path / "seen.npy")]
    subprocess.run(command, capture_output=True, timeout=120, check=True)
    x, y, z = np.moveaxis(np.load(tmp_path / "seen.npy"), -1, 0)  # Blender is Z-up
    np.testing.assert_allclose(np.stack([x, z, -y], -1), deform_mesh(asset, motion.pose).numpy(), atol=1e-4)
