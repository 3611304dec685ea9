"""BVH in both directions."""

import json
import math
import os
import subprocess
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jigdoll.errors import FileFormatError, RepairWarning
from jigdoll.formats import bvh
from jigdoll.kinematics import forward, make_skeleton, rest_transforms
from jigdoll.math.rotations import quaternion_inverse, quaternion_multiply, quaternion_to_matrix, quaternion_to_rotvec
from jigdoll.math.transforms import transform
from jigdoll.motion import trim_false_start
from jigdoll.types import Motion, Pose, Skeleton

ARM = """HIERARCHY
ROOT hip
{
  OFFSET 0 1 0
  CHANNELS 6 Xposition Yposition Zposition Zrotation Yrotation Xrotation
  JOINT elbow
  {
    OFFSET 1 0 0
    CHANNELS 3 Yrotation Xrotation Zrotation
    End Site
    {
      OFFSET 0.5 0 0
    }
  }
}
MOTION
Frames: 2
Frame Time: 0.0333333
0 1 0 0 0 0 0 0 0
2 1 0 90 0 0 90 0 0
"""


def put(folder: Path, text: str, name: str = "clip.bvh") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def random_rig(seed: int, joints: int = 7) -> Skeleton:
    generator = torch.Generator().manual_seed(seed)
    turns = torch.nn.functional.normalize(torch.randn(joints, 4, generator=generator, dtype=torch.float64), dim=-1)
    places = torch.randn(joints, 3, generator=generator, dtype=torch.float64)
    parents = tuple([-1] + [int(torch.randint(0, j, (1,), generator=generator)) for j in range(1, joints)])
    rest = transform(quaternion_to_matrix(turns), places)
    return make_skeleton(tuple(f"joint {j}" for j in range(joints)), parents, rest.float())


def random_motion(skeleton: Skeleton, seed: int, frames: int = 5, *, offsets: bool = False) -> Motion:
    generator = torch.Generator().manual_seed(seed)
    rotations = torch.nn.functional.normalize(torch.randn(frames, len(skeleton), 4, generator=generator), dim=-1)
    moved = torch.randn(frames, len(skeleton), 3, generator=generator) if offsets else None
    if moved is not None:
        moved[:, 0] = 0
    return Motion(Pose(torch.randn(frames, 3, generator=generator), rotations, moved), 24.0, "random")


def largest_angle(a: torch.Tensor, b: torch.Tensor) -> float:
    between = quaternion_multiply(quaternion_inverse(a.double()), b.double())
    return float(quaternion_to_rotvec(between).norm(dim=-1).max())


def test_channels_turn_in_the_order_in_which_they_are_named(tmp_path: Path) -> None:
    skeleton, motion = bvh.read(put(tmp_path, ARM))
    assert skeleton.names == ("hip", "elbow", "elbow_tip")
    assert motion.fps == 30.0
    places = forward(skeleton, motion.pose)[..., :3, 3]
    torch.testing.assert_close(places[0], torch.tensor([[0.0, 1, 0], [1, 1, 0], [1.5, 1, 0]]))
    # Frame 1: hip at x = 2, Rz(90) takes the upper arm to +Y; the elbow's Ry(90) takes the fore arm from x to -z.
    torch.testing.assert_close(places[1], torch.tensor([[2.0, 1, 0], [2, 2, 0], [2, 2, -0.5]]), atol=1e-6, rtol=0)


def test_position_channels_replace_the_offset_of_inner_joints(tmp_path: Path) -> None:
    text = ARM.replace("CHANNELS 3 Yrotation", "CHANNELS 6 Xposition Yposition Zposition Yrotation")
    text = text.replace("0 1 0 0 0 0 0 0 0", "0 1 0 0 0 0 1 0 0 0 0 0").replace("90 0 0 90", "90 0 0 1.25 0 0 90")
    skeleton, motion = bvh.read(put(tmp_path, text))
    assert motion.pose.offsets is not None
    torch.testing.assert_close(motion.pose.offsets[1, 1], torch.tensor([0.25, 0, 0]))
    places = forward(skeleton, motion.pose)[..., :3, 3]
    torch.testing.assert_close(places[1, 1], torch.tensor([2.0, 2.25, 0]), atol=1e-6, rtol=0)


def test_position_channels_of_zeros_do_not_collapse_the_skeleton(tmp_path: Path) -> None:
    text = ARM.replace("CHANNELS 3 Yrotation", "CHANNELS 6 Xposition Yposition Zposition Yrotation")
    text = text.replace("0 1 0 0 0 0 0 0 0", "0 1 0 0 0 0 0 0 0 0 0 0").replace("90 0 0 90", "90 0 0 0 0 0 90")
    with pytest.warns(RepairWarning, match="elbow"):
        _, motion = bvh.read(put(tmp_path, text))
    assert motion.pose.offsets is None


def test_a_row_more_than_the_header_says_is_kept_and_announced(tmp_path: Path) -> None:
    with pytest.warns(RepairWarning, match="promises 2 frames, 3 are there"):
        _, motion = bvh.read(put(tmp_path, ARM + "0 0 0 0 0 0 0 0 0\n"))
    assert len(motion) == 3


def test_a_row_fewer_than_the_header_says_is_announced(tmp_path: Path) -> None:
    with pytest.warns(RepairWarning, match="promises 3 frames, 2 are there"):
        _, motion = bvh.read(put(tmp_path, ARM.replace("Frames: 2", "Frames: 3")))
    assert len(motion) == 2


def test_repeated_joint_names_are_numbered_and_announced(tmp_path: Path) -> None:
    with pytest.warns(RepairWarning, match="'hip' -> 'hip_2'"):
        skeleton, _ = bvh.read(put(tmp_path, ARM.replace("JOINT elbow", "JOINT hip")))
    assert skeleton.names == ("hip", "hip_2", "hip_tip")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("2 1 0 90", "nan 1 0 90", r"line 20: 'nan' is no finite number"),
        ("2 1 0 90", "2 1e300 0 90", r"line 20: '1e300' is no finite number"),
        ("2 1 0 90", "1 0 90", r"line 20: the last frame has 8 of 9 numbers"),
        ("OFFSET 1 0 0", "OFFSET 1 inf 0", r"line 8: OFFSET needs three finite numbers"),
        ("CHANNELS 3", "CHANNELS 2", r"line 9: CHANNELS"),
        ("Yrotation Xrotation Zrotation", "Yrotation Yrotation Zrotation", r"line 9: CHANNELS"),
        ("JOINT elbow", "ROOT elbow", r"line 6: a ROOT inside another joint"),
        ("Frames: 2", "Frames: -2", r"line 17: 'Frames: -2' is no number of frames"),
        ("Frame Time: 0.0333333", "Frame Time: nan", r"line 18"),
        ("HIERARCHY", "hello", r"no HIERARCHY"),
        ("MOTION", "}", r"a } without its {"),
    ],
)
def test_damage_is_refused_with_its_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(FileFormatError, match=message):
        bvh.read(put(tmp_path, ARM.replace(old, new)))


def test_a_file_that_nests_without_end_is_refused(tmp_path: Path) -> None:
    text = "HIERARCHY\nROOT a\n{\nOFFSET 0 0 0\n" + "JOINT b\n{\nOFFSET 0 0 0\n" * 100_000
    with pytest.raises(FileFormatError, match="levels"):
        bvh.read(put(tmp_path, text))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**20), offsets=st.booleans())
def test_any_motion_of_any_rig_survives_the_round_trip(
    tmp_path_factory: pytest.TempPathFactory, seed: int, offsets: bool
) -> None:
    skeleton = random_rig(seed)
    motion = random_motion(skeleton, seed, offsets=offsets)
    path = bvh.write(tmp_path_factory.mktemp("bvh") / "clip.bvh", skeleton, motion)
    _, back = bvh.read(path, scale=1.0, skeleton=skeleton)
    assert back.fps == motion.fps
    assert largest_angle(back.pose.rotations, motion.pose.rotations) < 2e-6
    torch.testing.assert_close(back.pose.root, motion.pose.root, atol=1e-6, rtol=0)
    if motion.pose.offsets is not None:
        assert back.pose.offsets is not None
        torch.testing.assert_close(back.pose.offsets, motion.pose.offsets, atol=2e-6, rtol=0)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**20))
def test_the_written_skeleton_moves_as_the_given_one_in_the_world(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    skeleton = random_rig(seed)
    motion = random_motion(skeleton, seed, offsets=True)
    own, back = bvh.read(bvh.write(tmp_path_factory.mktemp("bvh") / "clip.bvh", skeleton, motion), scale=1.0)
    order = [own.index(name.replace(" ", "_")) for name in skeleton.names]
    given_world, read_world = forward(skeleton, motion.pose), forward(own, back.pose)[:, order]
    torch.testing.assert_close(read_world[..., :3, 3], given_world[..., :3, 3], atol=1e-5, rtol=0)
    # World-parallel frames turn as the given frames do from their own rest: B = G inverse(W).
    turned = given_world[..., :3, :3] @ rest_transforms(skeleton)[:, :3, :3].transpose(-1, -2)
    torch.testing.assert_close(read_world[..., :3, :3], turned, atol=1e-5, rtol=0)


def test_scaled_joints_keep_their_places(tmp_path: Path) -> None:
    skeleton = random_rig(3)
    motion = random_motion(skeleton, 3)
    scales = 0.5 + torch.rand(5, len(skeleton), 1, generator=torch.Generator().manual_seed(1)).expand(-1, -1, 3)
    motion = Motion(Pose(motion.pose.root, motion.pose.rotations, None, scales), motion.fps)
    with pytest.warns(RepairWarning, match="no scale"):
        path = bvh.write(tmp_path / "clip.bvh", skeleton, motion)
    own, back = bvh.read(path, scale=1.0)
    order = [own.index(name.replace(" ", "_")) for name in skeleton.names]
    expected = forward(skeleton, motion.pose)[..., :3, 3]
    torch.testing.assert_close(forward(own, back.pose)[:, order, :3, 3], expected, atol=2e-5, rtol=0)


def test_tips_become_end_sites_and_come_back(tmp_path: Path) -> None:
    skeleton, motion = bvh.read(put(tmp_path, ARM))
    path = bvh.write(tmp_path / "again.bvh", skeleton, motion)
    assert path.read_text().count("JOINT") == 1
    again, _ = bvh.read(path)
    assert again.names == skeleton.names
    torch.testing.assert_close(again.T_parent_joint, skeleton.T_parent_joint)


def test_angles_do_not_jump_by_whole_turns(tmp_path: Path) -> None:
    # A joint that spins twice about one axis: written angles go on beyond 180 degrees instead of wrapping.
    angle = torch.linspace(0, 4 * math.pi, 50, dtype=torch.float64)
    rotations = torch.stack([torch.cos(angle / 2), 0 * angle, torch.sin(angle / 2), 0 * angle], -1)[:, None].float()
    skeleton = make_skeleton(("a",), (-1,), torch.eye(4)[None])
    path = bvh.write(tmp_path / "spin.bvh", skeleton, Motion(Pose(torch.zeros(50, 3), rotations), 30.0))
    table = np.array([line.split() for line in path.read_text().split("Frame Time")[1].splitlines()[1:]], float)
    assert np.abs(np.diff(table[:, 3:], axis=0)).max() == pytest.approx(720 / 49, abs=1e-3)


def test_nan_is_not_written_and_the_old_file_stays(tmp_path: Path) -> None:
    skeleton = random_rig(0)
    motion = random_motion(skeleton, 0)
    path = bvh.write(tmp_path / "clip.bvh", skeleton, motion)
    before = path.read_bytes()
    broken = Motion(Pose(motion.pose.root * math.nan, motion.pose.rotations), 30.0)
    with pytest.raises(FileFormatError, match="NaN"):
        bvh.write(path, skeleton, broken)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["clip.bvh"]


@pytest.mark.parametrize(("extent", "scale"), [(1.7, 1.0), (12.0, 1.0), (30.0, 0.0564), (175.0, 0.01), (1750.0, 0.001)])
def test_units_are_guessed_from_the_size(extent: float, scale: float) -> None:
    assert bvh.guess_scale(extent) == pytest.approx(scale, abs=1e-4)


@pytest.mark.parametrize(("name", "frames"), [("02_01", 344), ("02_03", 174), ("16_05", 296)])
def test_cmu_people_are_people_sized_and_keep_their_bones(assets_dir: Path, name: str, frames: int) -> None:
    skeleton, motion = bvh.read(assets_dir / "motion" / "cmu" / f"{name}.bvh")
    assert (len(motion), motion.fps, len(skeleton)) == (frames, 120.0, 38)
    assert len(trim_false_start(motion)) == frames - 1
    places = forward(skeleton, motion.pose)[..., :3, 3]
    height = places[0, :, 1].max() - places[0, :, 1].min()
    assert 1.4 < float(height) < 1.9  # from the toes to the head joint's end, below the crown
    thigh = (places[:, skeleton.index("LeftLeg")] - places[:, skeleton.index("LeftUpLeg")]).norm(dim=-1)
    torch.testing.assert_close(thigh, thigh[:1].expand(frames), atol=1e-5, rtol=0)


def test_cmu_walk_survives_the_round_trip(assets_dir: Path, tmp_path: Path) -> None:
    skeleton, motion = bvh.read(assets_dir / "motion" / "cmu" / "02_01.bvh")
    again, back = bvh.read(bvh.write(tmp_path / "walk.bvh", skeleton, motion))
    assert again.names == skeleton.names
    assert largest_angle(back.pose.rotations, motion.pose.rotations) < 2e-6
    torch.testing.assert_close(back.pose.root, motion.pose.root, atol=1e-6, rtol=0)


BLENDER_SCRIPT = """
import sys, json, bpy
bpy.ops.wm.read_factory_settings(use_empty=True)
bpy.ops.import_anim.bvh(filepath=sys.argv[1], axis_forward="Y", axis_up="Z", update_scene_duration=True)
rig = [o for o in bpy.data.objects if o.type == "ARMATURE"][0]
out = []
for frame in range(1, int(sys.argv[2]) + 1):
    bpy.context.scene.frame_set(frame)
    out.append({b.name: list(rig.matrix_world @ b.head) for b in rig.pose.bones})
print("RESULT" + json.dumps(out))
"""


@pytest.mark.skipif("JIGDOLL_BLENDER_PYTHON" not in os.environ, reason="JIGDOLL_BLENDER_PYTHON is not set")
def test_blender_sees_the_joints_where_we_put_them(tmp_path: Path) -> None:
    skeleton = random_rig(11)
    motion = random_motion(skeleton, 11, offsets=False)
    path = bvh.write(tmp_path / "clip.bvh", skeleton, motion)
    script = tmp_path / "look.py"
    script.write_text(BLENDER_SCRIPT)
    command = [os.environ["JIGDOLL_BLENDER_PYTHON"], str(script), str(path), str(len(motion))]
    out = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    seen = json.loads(out.split("RESULT")[1].splitlines()[0])
    places = forward(skeleton, motion.pose)[..., :3, 3]
    for frame, bones in enumerate(seen):
        for joint, name in enumerate(skeleton.names):
            torch.testing.assert_close(
                torch.tensor(bones[name.replace(" ", "_")]), places[frame, joint], atol=2e-4, rtol=0
            )


def test_reading_does_not_warn_without_a_reason(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bvh.read(put(tmp_path, ARM))
