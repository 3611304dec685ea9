"""Files of motion alone: read like BVH, chosen by name, converted, and refused by name where a body is needed."""

import json
import os
import subprocess
import sys
import warnings
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from jigdoll.asset.load import load, load_clips, load_motion, split_clip
from jigdoll.errors import FileFormatError, JigdollError, RepairWarning
from jigdoll.export import save
from jigdoll.formats import bvh, gltf
from jigdoll.formats.archive import read_member
from jigdoll.formats.rest import motion_asset
from jigdoll.inspection import inspect_file
from jigdoll.kinematics import forward, make_skeleton, rest_pose
from jigdoll.rig.limbs import find_limbs
from jigdoll.types import Motion, RiggedAsset


def quiet(call, *args, **options):  # type: ignore[no-untyped-def]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RepairWarning)
        return call(*args, **options)


def waving(frames: int = 6, *, name: str = "wave", seed: int = 0) -> tuple[RiggedAsset, Motion]:
    """A chain that turns, whose second joint also slides in its parent."""
    T = torch.eye(4).repeat(4, 1, 1)
    T[:, :3, 3] = torch.tensor([[0, 1.0, 0], [0.2, 0.4, 0], [0, 0.4, 0.1], [0, 0.3, 0]])
    skeleton = make_skeleton(("hips", "spine", "neck", "head"), (-1, 0, 1, 2), T)
    generator = torch.Generator().manual_seed(seed)
    pose = rest_pose(skeleton, frames=frames)
    turned = pose.rotations + 0.3 * torch.randn(pose.rotations.shape, generator=generator)
    offsets = torch.zeros(frames, 4, 3)
    offsets[:, 1] = 0.2 * torch.randn(frames, 3, generator=generator)
    root = torch.randn(frames, 3, generator=generator)
    pose = replace(pose, root=root, rotations=torch.nn.functional.normalize(turned, dim=-1), offsets=offsets)
    motion = Motion(pose, 30.0, name)
    return motion_asset("wave", skeleton, {name: motion}), motion


def test_a_file_without_a_name_in_an_archive_is_passed_over(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "clips.zip", "w") as archive:
        for name in ("walk.bvh", ""):
            archive.writestr(zipfile.ZipInfo(name), b"HIERARCHY")
    assert read_member(tmp_path / "clips.zip", None, suffixes=(".bvh",)) == ("walk.bvh", b"HIERARCHY")


@pytest.mark.parametrize("suffix", [".glb", ".bvh"])
def test_motion_alone_survives_a_round_trip_with_joints_that_slide_in_their_parents(
    suffix: str, tmp_path: Path
) -> None:
    asset, motion = waving()
    path = save(tmp_path / f"wave{suffix}", asset, [motion])
    skeleton, again = load_motion(path)
    assert skeleton.names[: len(asset.skeleton)] == asset.skeleton.names
    ours, theirs = forward(asset.skeleton, motion.pose), forward(skeleton, again.pose)
    torch.testing.assert_close(theirs[:, :4, :3, 3], ours[..., :3, 3], atol=2e-5, rtol=0)
    assert again.pose.offsets is not None


def test_motion_of_a_file_without_a_mesh_has_an_empty_mesh_and_is_no_character(tmp_path: Path) -> None:
    asset, motion = waving()
    path = save(tmp_path / "wave.glb", asset, [motion])
    read_back = load_clips(path)
    assert not read_back.has_mesh and read_back.mesh.vertices.shape == (0, 3)
    with pytest.raises(FileFormatError, match="holds motion and no body; give a character"):
        load(path)


def test_motion_alone_is_refused_by_writers_that_need_a_body(tmp_path: Path) -> None:
    pytest.importorskip("pxr")
    asset, motion = waving()
    with pytest.raises(FileFormatError, match="motion without a body"):
        save(tmp_path / "wave.usda", asset, [motion])
    assert not (tmp_path / "wave.usda").exists()


def test_motion_alone_is_neither_judged_nor_drawn(tmp_path: Path) -> None:
    from jigdoll.judge import judge
    from jigdoll.render.sheets import film

    asset, motion = waving()
    with pytest.raises(JigdollError, match="motion without a body cannot be judged"):
        judge(asset, motion)
    with pytest.raises(JigdollError, match="motion without a body cannot be drawn"):
        film(tmp_path / "wave.png", asset, motion)


def test_one_of_several_clips_is_chosen_by_name_and_never_by_chance(tmp_path: Path) -> None:
    asset, wave = waving()
    nod = waving(name="nod", frames=4, seed=1)[1]
    path = save(tmp_path / "two.glb", asset, [wave, nod])
    assert len(load_motion(f"{path}:nod")[1]) == 4
    assert len(load_motion(path, "wave")[1]) == 6
    assert list(load_clips(f"{path}:nod").clips) == ["nod"]
    with pytest.raises(FileFormatError, match=r"which of its clips\? Name one as two.glb:CLIP \(wave, nod\)"):
        load_motion(path)
    with pytest.raises(FileFormatError, match="no clip is called 'jump'"):
        load_motion(f"{path}:jump")


def test_a_scene_without_mesh_and_motion_is_refused(tmp_path: Path) -> None:
    asset, _ = waving()
    with pytest.raises(JigdollError, match="neither a mesh nor a clip"):
        gltf.write(tmp_path / "nothing.glb", asset)
    path = tmp_path / "nothing.gltf"
    path.write_text(json.dumps({"asset": {"version": "2.0"}, "nodes": [{"name": "alone"}]}))
    with pytest.raises(FileFormatError, match="no triangle mesh in the scene, and no clip"):
        load_clips(path)


@pytest.mark.parametrize(
    ("word", "file", "clip"),
    [
        ("a/b.glb", "a/b.glb", None),
        ("a/b.glb:Walk", "a/b.glb", "Walk"),
        ("b.glb:Rig|Walk:2", "b.glb", "Rig|Walk:2"),
        ("C:/b.zip:x/02_01.bvh", "C:/b.zip", "x/02_01.bvh"),
        ("Walk", "Walk", None),
        ("mixamorig:Walk", "mixamorig:Walk", None),
    ],
)
def test_a_clip_is_named_after_its_file(word: str, file: str, clip: str | None) -> None:
    assert split_clip(word) == (Path(file), clip)


def test_a_file_whose_own_name_holds_a_colon_is_that_file(tmp_path: Path) -> None:
    path = tmp_path / "walk.bvh:copy.bvh"
    path.write_text("")
    assert split_clip(path) == (path, None)


# ------------------------------------------------------------------------------------------------------- archives


def archive_of_bvh(tmp_path: Path, kind: int = zipfile.ZIP_BZIP2) -> Path:
    asset, motion = waving()
    text = bvh.write(tmp_path / "one.bvh", asset.skeleton, motion).read_bytes()
    path = tmp_path / "many.zip"
    with zipfile.ZipFile(path, "w", kind) as archive:
        archive.writestr("walks/02_01.bvh", text)
        archive.writestr("walks/02_010.bvh", text)
        archive.writestr("index.tsv", "clip\n")
    return path


@pytest.mark.parametrize("name", ["02_01", "02_01.bvh", "walks/02_01.bvh", "2_01.b"])
def test_a_bvh_of_an_archive_is_found_by_its_name(name: str, tmp_path: Path) -> None:
    path = archive_of_bvh(tmp_path)
    plain_skeleton, plain = bvh.read(tmp_path / "one.bvh")
    skeleton, motion = load_motion(f"{path}:{name}")
    assert motion.name == "02_01"
    assert skeleton.names == plain_skeleton.names
    torch.testing.assert_close(motion.pose.rotations, plain.pose.rotations)


def test_a_name_that_an_archive_does_not_have_or_has_twice_is_refused_with_the_names(tmp_path: Path) -> None:
    path = archive_of_bvh(tmp_path)
    with pytest.raises(FileFormatError, match=r"'02' is several of its files.*walks/02_01.bvh, walks/02_010.bvh"):
        load_motion(f"{path}:02")
    with pytest.raises(FileFormatError, match="'run' is none of its files"):
        load_motion(f"{path}:run")
    with pytest.raises(FileFormatError, match="which file of it is meant"):
        load_motion(path)


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("bomb.bvh", b"\0" * 3_000_000)
    with pytest.raises(FileFormatError, match="too large"):
        read_member(path, "bomb", suffixes=(".bvh",), max_bytes=1_000_000)
    lying = bytearray(path.read_bytes())
    for sign, at in ((b"PK\x01\x02", 24), (b"PK\x03\x04", 22)):
        start = lying.find(sign) + at
        lying[start : start + 4] = (100).to_bytes(4, "little")
    path.write_bytes(bytes(lying))
    with pytest.raises(FileFormatError):
        read_member(path, "bomb", suffixes=(".bvh",), max_bytes=1_000_000)


def test_a_damaged_archive_is_refused_by_name(tmp_path: Path) -> None:
    path = archive_of_bvh(tmp_path)
    data = path.read_bytes()
    for cut in (b"", b"PK", data[: len(data) // 2], data[:60] + b"\xff" * 40 + data[100:]):
        (tmp_path / "cut.zip").write_bytes(cut)
        with pytest.raises(FileFormatError, match=r"cut\.zip"):
            load_motion(f"{tmp_path / 'cut.zip'}:02_01")


def test_nothing_of_an_archive_is_written_to_disk(tmp_path: Path) -> None:
    asset, motion = waving()
    text = bvh.write(tmp_path / "one.bvh", asset.skeleton, motion).read_bytes()
    inner = tmp_path / "inner"
    inner.mkdir()
    path = inner / "escape.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../../escaped.bvh", text)
    assert load_motion(f"{path}:escaped")[1].name == "escaped"
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["escape.zip", "inner", "one.bvh"]


# ------------------------------------------------------------------------------------------------ artists' files


def test_kaykit_motion_equals_the_same_clip_on_the_mannequin(corpus_dir: Path) -> None:
    moves = quiet(load_clips, corpus_dir / "motion" / "kaykit" / "Med_MovementBasic.glb")
    assert not moves.has_mesh and "Rig_Medium|Walking_A" in moves.clips
    bodies = [quiet(load, path) for path in sorted((corpus_dir / "characters" / "kaykit" / "mannequin").glob("*.glb"))]
    body = next(body for body in bodies if any("Walking_A" in name for name in body.clips))
    clip = next(clip for name, clip in body.clips.items() if "Walking_A" in name)
    mine = forward(moves.skeleton, moves.clips["Rig_Medium|Walking_A"].pose)
    theirs = forward(body.skeleton, clip.pose)
    shared = [name for name in moves.skeleton.names if name in body.skeleton.names]
    assert len(shared) > 15
    a = torch.stack([mine[:, moves.skeleton.index(name), :3, 3] for name in shared], 1)
    b = torch.stack([theirs[:, body.skeleton.index(name), :3, 3] for name in shared], 1)
    frames = min(len(a), len(b))
    a, b = (x[:frames] - x[:1].mean(1, keepdim=True) for x in (a, b))
    torch.testing.assert_close(a, b, atol=1e-3, rtol=0)


def test_rocketbox_fbx_moves_as_the_bvh_of_the_same_clip(corpus_dir: Path) -> None:
    folder = corpus_dir / "motion" / "rocketbox"
    skeleton, motion = quiet(load_motion, folder / "fbx" / "f_walk_fast_02.max.fbx")
    plain_skeleton, plain = quiet(load_motion, f"{folder / 'rocketbox_locomotion.zip'}:f_walk_fast_02")
    mine, theirs = forward(skeleton, motion.pose)[..., :3, 3], forward(plain_skeleton, plain.pose)[..., :3, 3]
    frames = min(len(mine), len(theirs))
    for joint in ("L Thigh", "R Foot", "L Hand", "Head"):
        a = mine[:frames, skeleton.index(f"Bip01 {joint}")] - mine[:frames, skeleton.index("Bip01 Pelvis")]
        b = theirs[:frames, plain_skeleton.index(joint.replace(" ", "_"))]
        b = b - theirs[:frames, plain_skeleton.index("Pelvis")]
        assert float((a - b).norm(dim=-1).max()) < 0.03, joint  # the BVH keeps the middle of joints that drift


def test_the_joints_of_a_face_are_no_arms(corpus_dir: Path) -> None:
    skeleton, _ = quiet(load_motion, corpus_dir / "motion" / "rocketbox" / "fbx" / "m_run_fast_02.max.fbx")
    arms = [limb for limb in find_limbs(skeleton) if limb.kind == "arm"]
    names = [[skeleton.names[joint] for joint in limb.joints[:3]] for limb in arms]
    assert names == [[f"Bip01 {side} {part}" for part in ("Clavicle", "UpperArm", "Forearm")] for side in "LR"]


def test_inspect_and_convert_take_motion_alone(corpus_dir: Path, tmp_path: Path) -> None:
    file = corpus_dir / "motion" / "kaykit" / "Med_Simulation.glb"
    facts = inspect_file(file)
    assert "mesh" not in facts and len(facts["clips"]) == 14 and facts["skeleton"]["joints"] == 24
    command = [sys.executable, "-m", "jigdoll", "convert", f"{file}:Waving", str(tmp_path / "wave.bvh")]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ}, check=False)
    assert done.returncode == 0, done.stderr
    assert len(bvh.read(tmp_path / "wave.bvh")[1]) == facts["clips"][13]["frames"]
