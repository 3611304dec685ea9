"""FBX reading: a hand-written text file with known answers, and real files."""

import math
import os
import subprocess
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.spatial import cKDTree

from jigdoll.errors import FileFormatError, RepairWarning
from jigdoll.formats import fbx
from jigdoll.formats.apart import unpack_apart
from jigdoll.formats.gltf.read import read as read_gltf
from jigdoll.kinematics import forward, rest_transforms
from jigdoll.math.rotations import quaternion_to_rotvec
from jigdoll.skin.deform import deform_mesh

SECOND = 46186158000  # FBX counts time in these

# Centimetres, Z up. A bar along Z from 0 to 200 cm: the bone `low` at the origin, `high` at 100 cm. The clip turns
# `high` by 90 degrees about X within one second, linearly.
TEXT = f"""; FBX 7.4.0 project file
FBXHeaderExtension:  {{
	FBXHeaderVersion: 1003
	FBXVersion: 7400
}}
GlobalSettings:  {{
	Version: 1000
	Properties70:  {{
		P: "UpAxis", "int", "Integer", "",2
		P: "UpAxisSign", "int", "Integer", "",1
		P: "FrontAxis", "int", "Integer", "",1
		P: "FrontAxisSign", "int", "Integer", "",-1
		P: "CoordAxis", "int", "Integer", "",0
		P: "CoordAxisSign", "int", "Integer", "",1
		P: "UnitScaleFactor", "double", "Number", "",1
	}}
}}
Objects:  {{
	Geometry: 10, "Geometry::bar", "Mesh" {{
		Vertices: *12 {{
			a: 0,0,0,10,0,100,0,0,200,-10,0,100
		}}
		PolygonVertexIndex: *4 {{
			a: 0,1,2,-4
		}}
	}}
	Model: 1, "Model::bar", "Mesh" {{
		Version: 232
	}}
	Model: 2, "Model::low", "LimbNode" {{
		Version: 232
	}}
	Model: 3, "Model::high", "LimbNode" {{
		Version: 232
		Properties70:  {{
			P: "Lcl Translation", "Lcl Translation", "", "A",0,0,100
		}}
	}}
	NodeAttribute: 4, "NodeAttribute::low", "LimbNode" {{
		TypeFlags: "Skeleton"
	}}
	NodeAttribute: 5, "NodeAttribute::high", "LimbNode" {{
		TypeFlags: "Skeleton"
	}}
	Deformer: 20, "Deformer::", "Skin" {{
		Version: 101
		Link_DeformAcuracy: 50
	}}
	Deformer: 21, "SubDeformer::", "Cluster" {{
		Version: 100
		Indexes: *3 {{
			a: 0,1,3
		}}
		Weights: *3 {{
			a: 1,0.5,0.25
		}}
		Transform: *16 {{
			a: 1,0,0,0,0,1,0,0,0,0,1,0,0,0,0,1
		}}
		TransformLink: *16 {{
			a: 1,0,0,0,0,1,0,0,0,0,1,0,0,0,0,1
		}}
	}}
	Deformer: 22, "SubDeformer::", "Cluster" {{
		Version: 100
		Indexes: *3 {{
			a: 1,2,3
		}}
		Weights: *3 {{
			a: 0.5,1,0.25
		}}
		Transform: *16 {{
			a: 1,0,0,0,0,1,0,0,0,0,1,0,0,0,-100,1
		}}
		TransformLink: *16 {{
			a: 1,0,0,0,0,1,0,0,0,0,1,0,0,0,100,1
		}}
	}}
	AnimationStack: 30, "AnimStack::bend", "" {{
		Properties70:  {{
			P: "LocalStop", "KTime", "Time", "",{SECOND}
			P: "ReferenceStop", "KTime", "Time", "",{SECOND}
		}}
	}}
	AnimationLayer: 31, "AnimLayer::base", "" {{
	}}
	AnimationCurveNode: 32, "AnimCurveNode::R", "" {{
		Properties70:  {{
			P: "d|X", "Number", "", "A",0
			P: "d|Y", "Number", "", "A",0
			P: "d|Z", "Number", "", "A",0
		}}
	}}
	AnimationCurve: 33, "AnimCurve::", "" {{
		Default: 0
		KeyVer: 4009
		KeyTime: *2 {{
			a: 0,{SECOND}
		}}
		KeyValueFloat: *2 {{
			a: 0,90
		}}
		KeyAttrFlags: *1 {{
			a: 4
		}}
		KeyAttrDataFloat: *4 {{
			a: 0,0,0,0
		}}
		KeyAttrRefCount: *1 {{
			a: 2
		}}
	}}
}}
Connections:  {{
	C: "OO",1,0
	C: "OO",2,0
	C: "OO",3,2
	C: "OO",4,2
	C: "OO",5,3
	C: "OO",10,1
	C: "OO",20,10
	C: "OO",21,20
	C: "OO",22,20
	C: "OO",2,21
	C: "OO",3,22
	C: "OO",31,30
	C: "OO",32,31
	C: "OP",32,3, "Lcl Rotation"
	C: "OP",33,32, "d|X"
}}
"""


@pytest.fixture(scope="module")
def bar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fbx") / "bar.fbx"
    path.write_text(TEXT)
    return path


@pytest.mark.filterwarnings("ignore:.*weight sums:jigdoll.errors.RepairWarning")
def test_centimetres_and_z_up_become_metres_and_y_up(bar: Path) -> None:
    asset = fbx.read(bar)
    assert asset.skeleton.names == ("low", "high")
    assert asset.skeleton.parents == (-1, 0)
    # (x, y, z) cm with Z up is (x, z, -y) / 100.
    expected = torch.tensor([[0, 0, 0], [0.1, 1, 0], [0, 2, 0], [-0.1, 1, 0]])
    torch.testing.assert_close(asset.mesh.vertices, expected, atol=1e-6, rtol=0)
    torch.testing.assert_close(rest_transforms(asset.skeleton)[1, :3, 3], torch.tensor([0.0, 1, 0]), atol=1e-6, rtol=0)
    assert asset.mesh.faces.tolist() == [[0, 1, 2], [0, 2, 3]]


def test_weights_are_normalised_and_the_repair_is_announced(bar: Path) -> None:
    with pytest.warns(RepairWarning, match=r"weight sums from 0\.50 to 1\.00"):
        asset = fbx.read(bar)
    dense = asset.weights.dense(2)
    torch.testing.assert_close(dense, torch.tensor([[1, 0], [0.5, 0.5], [0, 1], [0.5, 0.5]]))


@pytest.mark.filterwarnings("ignore:.*weight sums:jigdoll.errors.RepairWarning")
def test_the_clip_bends_the_bar_to_the_side(bar: Path) -> None:
    asset = fbx.read(bar, fps=10.0)
    motion = asset.clips["bend"]
    assert (len(motion), motion.fps) == (11, 10.0)
    turned = quaternion_to_rotvec(motion.pose.rotations)[:, 1].norm(dim=-1)
    torch.testing.assert_close(turned, torch.linspace(0, math.pi / 2, 11), atol=1e-5, rtol=0)
    # At the end, X takes +Z to -Y in the file, which is +Y to +Z for us: the tip stands 1 m up and 1 m ahead.
    torch.testing.assert_close(deform_mesh(asset, motion.pose)[-1, 2], torch.tensor([0.0, 1, 1]), atol=1e-5, rtol=0)
    torch.testing.assert_close(motion.pose.root, torch.zeros(11, 3), atol=1e-7, rtol=0)


@pytest.mark.filterwarnings("ignore:.*weight sums:jigdoll.errors.RepairWarning")
def test_the_source_gives_the_files_own_nodes_back(bar: Path) -> None:
    asset = fbx.read(bar)
    assert asset.source is not None
    T_file_world = torch.linalg.inv(asset.source.T_world_file)
    T_file_node = T_file_world @ rest_transforms(asset.skeleton) @ asset.source.T_joint_node
    expected = torch.eye(4).repeat(2, 1, 1)
    expected[1, 2, 3] = 100
    torch.testing.assert_close(T_file_node, expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize("damage", ["empty", "garbage", "cut"])
def test_damaged_files_are_refused_with_a_reason(bar: Path, tmp_path: Path, damage: str) -> None:
    data = {"empty": b"", "garbage": bytes(range(256)) * 40, "cut": bar.read_bytes()[:1500]}[damage]
    path = tmp_path / "broken.fbx"
    path.write_bytes(data)
    with pytest.raises(FileFormatError, match=r"broken\.fbx"):
        fbx.read(path)


@pytest.fixture(scope="module")
def polydancer(assets_dir: Path) -> Path:
    return assets_dir / "rigged" / "100avatars" / "100Avatars_021_Polydancer.fbx"


@pytest.mark.filterwarnings("ignore:.*Polydancer.png:jigdoll.errors.RepairWarning")
def test_the_real_character_is_a_person_in_metres_with_five_influences(polydancer: Path) -> None:
    asset = fbx.read(polydancer)
    assert len(asset.skeleton) == 58
    assert asset.skeleton.names[0] == "mixamorig:Hips"
    assert len(asset.mesh.faces) == 6288 - 2 * 1600  # corners minus two per polygon
    assert asset.weights.values.shape[1] == 5
    torch.testing.assert_close(asset.weights.values.sum(1), torch.ones(len(asset.mesh.vertices)))
    low, high = asset.mesh.vertices[:, 1].aminmax()
    assert -0.01 < float(low) < 0.01
    assert 1.8 < float(high) < 1.9
    assert asset.clips == {}


@pytest.mark.filterwarnings("ignore:.*:jigdoll.errors.RepairWarning")
def test_the_vrm_twin_has_the_same_bones(polydancer: Path) -> None:
    ours, twin = fbx.read(polydancer), read_gltf(polydancer.with_suffix(".vrm"))
    lengths = []
    for asset in (ours, twin):
        places = rest_transforms(asset.skeleton)[:, :3, 3]
        names = ("Spine", "Spine1", "Spine2", "LeftFoot", "LeftToeBase")
        joints = [asset.skeleton.index(f"mixamorig:{name}") for name in names]
        lengths.append(torch.stack([(places[j] - places[asset.skeleton.parents[j]]).norm() for j in joints]))
    # The twin was made smaller and its arms, neck and knees were set anew: the other bones keep their proportions.
    torch.testing.assert_close(lengths[1] / lengths[0], torch.full((5,), 0.9655), atol=3e-3, rtol=0)


needs_blender = pytest.mark.skipif("JIGDOLL_BLENDER_PYTHON" not in os.environ, reason="no JIGDOLL_BLENDER_PYTHON")

EXPORT = """
import sys, bpy
bpy.ops.wm.read_factory_settings(use_empty=True)
bpy.ops.import_scene.gltf(filepath=sys.argv[1])
for thing in list(bpy.data.objects):
    if thing.name.startswith("Icosphere"):  # the shape in which Blender draws the bones
        bpy.data.objects.remove(thing)
bpy.ops.export_scene.fbx(filepath=sys.argv[2], object_types={"ARMATURE", "MESH"}, add_leaf_bones=False,
    path_mode="COPY", embed_textures=True, bake_anim_simplify_factor=0.0)
"""

REST = """
import sys, bpy, numpy as np
bpy.ops.wm.read_factory_settings(use_empty=True)
bpy.ops.wm.fbx_import(filepath=sys.argv[1])
for armature in bpy.data.armatures:
    armature.pose_position = "REST"
points = []
for thing in bpy.data.objects:
    if thing.type == "MESH":
        shape = thing.evaluated_get(bpy.context.evaluated_depsgraph_get())
        points += [list(shape.matrix_world @ v.co) for v in shape.data.vertices]
np.save(sys.argv[2], np.array(points))
"""


def run_blender(script: str, folder: Path, *arguments: str) -> None:
    file = folder / "script.py"
    file.write_text(script)
    command = [os.environ["JIGDOLL_BLENDER_PYTHON"], str(file), *arguments]
    subprocess.run(command, capture_output=True, timeout=300, check=True)


@needs_blender
@pytest.mark.filterwarnings("ignore:.*Polydancer.png:jigdoll.errors.RepairWarning")
def test_blender_puts_the_real_character_into_the_same_place(polydancer: Path, tmp_path: Path) -> None:
    run_blender(REST, tmp_path, str(polydancer), str(tmp_path / "points.npy"))
    x, y, z = np.load(tmp_path / "points.npy").T  # Blender is Z-up
    distance, _ = cKDTree(np.stack([x, z, -y], 1)).query(fbx.read(polydancer).mesh.vertices.numpy())
    assert distance.max() < 1e-5


@needs_blender
@pytest.mark.filterwarnings("ignore:.*:jigdoll.errors.RepairWarning")
def test_a_clip_that_went_through_blenders_fbx_moves_as_before(assets_dir: Path, tmp_path: Path) -> None:
    original = assets_dir / "rigged" / "khronos" / "Fox.glb"
    run_blender(EXPORT, tmp_path, str(original), str(tmp_path / "fox.fbx"))
    ours, before = fbx.read(tmp_path / "fox.fbx"), read_gltf(original)
    size = float((before.mesh.vertices.amax(0) - before.mesh.vertices.amin(0)).max())
    moved = deform_mesh(ours, ours.clips["root|Survey"].pose)
    expected = deform_mesh(before, before.clips["Survey"].pose)
    for frame in range(0, 103, 10):
        distance, _ = cKDTree(expected[frame].numpy()).query(moved[frame].numpy())
        assert distance.mean() < 1e-4 * size
    assert forward(ours.skeleton, ours.clips["root|Walk"].pose).shape[:2] == (22, 24)


def test_a_long_clip_takes_little_memory(bar: Path) -> None:
    script = Path(str(fbx.__file__)).with_name("unpack.py")
    about, arrays = unpack_apart(script, bar, "2000.0", kind="FBX", memory=24 * 1024**2)
    assert arrays["clip0"].shape[:2] == (2001, len(about["names"]))


def test_a_clip_that_is_much_longer_than_its_keys_allow_is_left_out_by_name(tmp_path: Path) -> None:
    path = tmp_path / "long.fbx"
    path.write_text(TEXT.replace(str(SECOND), str(200 * SECOND)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert not fbx.read(path).clips
    assert any("clip 'bend' of 200 s was left out" in str(w.message) for w in caught)
