"""glTF: what is read is what the file says, what is written is valid, and damage is refused by name."""

import base64
import json
import shutil
import subprocess
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from jigdoll.asset.load import load, read
from jigdoll.errors import FileFormatError, JigdollError, RepairWarning
from jigdoll.formats import gltf
from jigdoll.formats.gltf.builder import Builder
from jigdoll.formats.gltf.clips import interpolate
from jigdoll.formats.gltf.document import pack_glb, read_document
from jigdoll.kinematics import forward, rest_pose
from jigdoll.skin.deform import deform_mesh
from jigdoll.types import Motion, Pose, RiggedAsset
from stand_ins import two_link_arm

RIGGED = (
    "khronos/Fox.glb",
    "khronos/CesiumMan.glb",
    "khronos/RiggedFigure.glb",
    "khronos/RiggedFigure-draco/RiggedFigure.gltf",
    "mesh2motion/horse-animations.glb",
    "mesh2motion/bird-animations.glb",
    "quaternius/animals_pack/Wolf.glb",
    "threejs/RobotExpressive.glb",
    "100avatars/100Avatars_021_Polydancer.vrm",
)
VALIDATOR = Path(__file__).parents[1] / "validator"


def quiet_load(path: Path) -> RiggedAsset:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RepairWarning)
        return load(path)


def quiet_write(path: Path, asset: RiggedAsset, motions: list[Motion]) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RepairWarning)
        return gltf.write(path, asset, motions)


def wiggle(asset: RiggedAsset, *, frames: int = 7, seed: int = 0, name: str = "wiggle") -> Motion:
    generator = torch.Generator().manual_seed(seed)
    pose = rest_pose(asset.skeleton, frames=frames)
    turned = pose.rotations + 0.4 * torch.randn(pose.rotations.shape, generator=generator)
    root = torch.randn(frames, 3, generator=generator)
    return Motion(Pose(root, torch.nn.functional.normalize(turned, dim=-1)), 24.0, name)


def minimal(**extra: object) -> tuple[dict, bytes]:
    """One triangle in a file of its own."""
    builder = Builder({"asset": {"version": "2.0"}, "scene": 0, "scenes": [{"nodes": [0]}], "nodes": [{"mesh": 0}]})
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], "<f4")
    builder.append("meshes", {"primitives": [{"attributes": {"POSITION": builder.accessor(corners, bounds=True)}}]})
    parsed, binary = builder.finish()
    return parsed | extra, binary


def stored(tmp_path: Path, parsed: dict, binary: bytes) -> Path:
    path = tmp_path / "made.glb"
    path.write_bytes(pack_glb(parsed, binary))
    return path


# ------------------------------------------------------------------------------------------------------ round trips


def test_a_new_file_reads_back_as_the_same_character_and_motion(tmp_path: Path) -> None:
    asset = two_link_arm()
    motion = wiggle(asset)
    again = gltf.read(gltf.write(tmp_path / "arm.glb", asset, [motion]), fps=24.0)
    assert again.skeleton.names == asset.skeleton.names
    assert again.skeleton.parents == asset.skeleton.parents
    torch.testing.assert_close(again.mesh.vertices, asset.mesh.vertices)
    torch.testing.assert_close(again.mesh.faces, asset.mesh.faces)
    torch.testing.assert_close(again.mesh.colors, asset.mesh.colors, atol=1e-3, rtol=0)
    clip = again.clips["wiggle"]
    assert len(clip) == len(motion)
    torch.testing.assert_close(clip.pose.root, motion.pose.root, atol=1e-5, rtol=0)
    torch.testing.assert_close(
        forward(again.skeleton, clip.pose), forward(asset.skeleton, motion.pose), atol=1e-5, rtol=0
    )
    assert clip.pose.offsets is None and clip.pose.scales is None


def test_offsets_and_scales_survive_a_round_trip(tmp_path: Path) -> None:
    asset = two_link_arm()
    motion = wiggle(asset)
    generator = torch.Generator().manual_seed(1)
    offsets = 0.1 * torch.randn(7, 3, 3, generator=generator)
    offsets[:, 0] = 0
    pose = replace(motion.pose, offsets=offsets, scales=0.5 + torch.rand(7, 3, 1, generator=generator).expand(7, 3, 3))
    again = gltf.read(gltf.write(tmp_path / "arm.glb", asset, [replace(motion, pose=pose)]), fps=24.0)
    moved = deform_mesh(again, again.clips["wiggle"].pose)
    torch.testing.assert_close(moved, deform_mesh(asset, pose), atol=1e-4, rtol=0)


@pytest.mark.parametrize("name", RIGGED)
def test_a_clip_added_to_a_real_file_plays_the_same_when_read_back(name: str, assets_dir: Path, tmp_path: Path) -> None:
    asset = quiet_load(assets_dir / "rigged" / name)
    motion = replace(wiggle(asset), fps=30.0)
    again = quiet_load(quiet_write(tmp_path / "out.glb", asset, [motion]))
    assert list(again.clips) == [*asset.clips, "wiggle"]
    size = float((asset.mesh.vertices.amax(0) - asset.mesh.vertices.amin(0)).max())
    error = (deform_mesh(again, again.clips["wiggle"].pose) - deform_mesh(asset, motion.pose)).norm(dim=-1)
    assert float(error.mean()) < 1e-5 * size


def test_adding_a_clip_keeps_every_byte_and_entry_of_the_original(assets_dir: Path, tmp_path: Path) -> None:
    original = assets_dir / "rigged" / "khronos" / "Fox.glb"
    asset = quiet_load(original)
    written = gltf.write(tmp_path / "fox.glb", asset, [wiggle(asset)])
    before, after = read_document(original), read_document(written)
    assert before.binary is not None and after.binary is not None
    length = before.json["buffers"][0]["byteLength"]
    assert after.binary[:length] == before.binary[:length]
    for kind in ("nodes", "meshes", "materials", "textures", "images", "samplers", "skins", "scenes", "asset"):
        assert after.json[kind] == before.json[kind], kind
    for kind in ("animations", "accessors", "bufferViews"):
        assert after.json[kind][: len(before.json[kind])] == before.json[kind], kind
    assert after.json["animations"][-1]["name"] == "wiggle"


def test_a_clip_of_a_taken_name_is_numbered(assets_dir: Path, tmp_path: Path) -> None:
    asset = quiet_load(assets_dir / "rigged" / "khronos" / "Fox.glb")
    written = gltf.write(tmp_path / "fox.glb", asset, [wiggle(asset, name="Walk"), wiggle(asset, name="Walk")])
    assert list(quiet_load(written).clips) == ["Survey", "Walk", "Run", "Walk_2", "Walk_3"]


@pytest.mark.parametrize("name", RIGGED)
def test_what_is_written_passes_the_khronos_validator(name: str, assets_dir: Path, tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None or not (VALIDATOR / "node_modules").is_dir():
        pytest.skip("the Khronos validator is not installed: npm install in tests/validator")
    asset = quiet_load(assets_dir / "rigged" / name)
    motion = wiggle(asset)
    files = [
        quiet_write(tmp_path / "added.glb", asset, [motion]),
        quiet_write(tmp_path / "new.glb", replace(asset, source=None), [motion]),
    ]
    run = subprocess.run([node, VALIDATOR / "validate.js", *files], capture_output=True, text=True, check=True)
    reports = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(reports) == 2
    assert [report["errors"] for report in reports] == [0, 0], reports
    assert reports[1]["warnings"] == 0, reports


def test_a_new_file_has_four_normalised_influences_and_no_helper_nodes(assets_dir: Path, tmp_path: Path) -> None:
    asset = replace(quiet_load(assets_dir / "rigged" / "mesh2motion" / "horse-animations.glb"), source=None)
    document = read_document(gltf.write(tmp_path / "horse.glb", asset))
    assert len(document.json["nodes"]) == len(asset.skeleton) + 1
    attributes = document.json["meshes"][0]["primitives"][0]["attributes"]
    weights, joints = document.accessor(attributes["WEIGHTS_0"]), document.accessor(attributes["JOINTS_0"])
    np.testing.assert_allclose(weights.sum(1), 1.0, atol=1e-6)
    assert weights.shape[1] == 4 and (joints[weights == 0] == 0).all()


# ------------------------------------------------------------------------------------------- what real files contain


def test_the_wolf_stands_in_its_bind_pose_and_leaves_its_targets_alone(assets_dir: Path) -> None:
    with pytest.warns(RepairWarning) as caught:
        wolf = read(assets_dir / "rigged" / "quaternius" / "animals_pack" / "Wolf.glb")
    text = " ".join(str(w.message) for w in caught)
    assert "weightless joints" in text and "joint roots were gathered" in text
    assert not any("PoleTarget" in name for name in wolf.skeleton.names)
    low, high = wolf.mesh.vertices.amin(0), wolf.mesh.vertices.amax(0)
    # Upright in the file's world, not lying as the raw vertices do (the armature turns them by 90 degrees).
    assert float(high[1] - low[1]) > 2.0 and abs(float(high[0] + low[0])) < 0.01


def test_weights_that_sum_to_more_than_one_are_normalised_by_name(assets_dir: Path) -> None:
    with pytest.warns(RepairWarning) as caught:
        robot = read(assets_dir / "rigged" / "threejs" / "RobotExpressive.glb")
    assert any("weight sums from 1.00 to 1.76 were normalised to 1" in str(w.message) for w in caught)
    torch.testing.assert_close(robot.weights.values.sum(1), torch.ones(len(robot.mesh.vertices)))


def test_draco_and_plain_files_hold_the_same_figure(assets_dir: Path) -> None:
    plain = quiet_load(assets_dir / "rigged" / "khronos" / "RiggedFigure.glb")
    packed = quiet_load(assets_dir / "rigged" / "khronos" / "RiggedFigure-draco" / "RiggedFigure.gltf")
    assert packed.skeleton.names == plain.skeleton.names
    assert len(packed.mesh.faces) == len(plain.mesh.faces)
    gaps = torch.cdist(packed.mesh.vertices, plain.mesh.vertices).amin(1)
    assert float(gaps.max()) < 2e-3  # Draco rounds to a grid


def test_bare_and_rigged_horse_share_their_vertices(assets_dir: Path) -> None:
    bare = quiet_load(assets_dir / "unrigged" / "mesh2motion" / "model-horse.glb")
    rigged = quiet_load(assets_dir / "rigged" / "mesh2motion" / "horse-animations.glb")
    assert not bare.is_rigged and rigged.is_rigged
    torch.testing.assert_close(bare.mesh.faces, rigged.mesh.faces)
    torch.testing.assert_close(bare.mesh.vertices, rigged.mesh.vertices, atol=2e-3, rtol=0)


def test_texture_colours_reach_the_vertices(assets_dir: Path) -> None:
    fox = quiet_load(assets_dir / "rigged" / "khronos" / "Fox.glb")
    assert fox.mesh.materials[0].texture is not None and fox.mesh.uvs is not None
    red, _, blue = fox.mesh.colors.mean(0).tolist()
    assert red > blue + 0.2  # a fox is orange


# ------------------------------------------------------------------------------------------------- accessors, samplers


def test_sparse_values_replace_the_base(tmp_path: Path) -> None:
    builder = Builder({"asset": {"version": "2.0"}, "scene": 0, "scenes": [{"nodes": [0]}], "nodes": [{"mesh": 0}]})
    base = builder.accessor(np.zeros((3, 3), "<f4"))
    entry = builder.json["accessors"][base]
    entry["sparse"] = {
        "count": 2,
        "indices": {"bufferView": builder.view(np.array([1, 2], "<u2").tobytes()), "componentType": 5123},
        "values": {"bufferView": builder.view(np.array([[1, 0, 0], [0, 1, 0]], "<f4").tobytes())},
    }
    builder.append("meshes", {"primitives": [{"attributes": {"POSITION": base}}]})
    asset = gltf.read(stored(tmp_path, *builder.finish()))
    assert asset.mesh.vertices.tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0]]


def test_strips_and_fans_become_triangles(tmp_path: Path) -> None:
    for mode, expected in ((5, [[0, 1, 2], [3, 2, 1]]), (6, [[0, 1, 2], [0, 2, 3]])):
        builder = Builder({"asset": {"version": "2.0"}, "scene": 0, "scenes": [{"nodes": [0]}], "nodes": [{"mesh": 0}]})
        corners = builder.accessor(np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], "<f4"))
        builder.append("meshes", {"primitives": [{"attributes": {"POSITION": corners}, "mode": mode}]})
        assert gltf.read(stored(tmp_path, *builder.finish())).mesh.faces.tolist() == expected


def test_a_matrix_node_places_its_mesh(tmp_path: Path) -> None:
    parsed, binary = minimal()
    # Column-major: x -> 2y, y -> 2x is mirrored; here a turn by 90 degrees about Z, scale 2, moved by (5, 6, 7).
    parsed["nodes"][0]["matrix"] = [0, 2, 0, 0, -2, 0, 0, 0, 0, 0, 2, 0, 5, 6, 7, 1]
    asset = gltf.read(stored(tmp_path, parsed, binary))
    torch.testing.assert_close(asset.mesh.vertices, torch.tensor([[5.0, 6, 7], [5, 8, 7], [3, 6, 7]]))


@pytest.mark.parametrize("smile", [0.0, 1.0])
def test_clips_that_move_morph_targets_are_said(tmp_path: Path, smile: float) -> None:
    builder = Builder({"asset": {"version": "2.0"}, "scene": 0, "scenes": [{"nodes": [0]}], "nodes": [{"mesh": 0}]})
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], "<f4")
    places = builder.accessor(corners, bounds=True)
    builder.append("meshes", {"primitives": [{"attributes": {"POSITION": places}, "targets": [{"POSITION": places}]}]})
    times = builder.accessor(np.array([0.0, 1.0], "<f4"), bounds=True)
    keys = builder.accessor(np.array([0.0, smile], "<f4"))
    moves = builder.accessor(np.array([[0, 0, 0], [0, 0, 1]], "<f4"))
    channels = [
        {"sampler": i, "target": {"node": 0, "path": path}} for i, path in enumerate(("weights", "translation"))
    ]
    samplers = [{"input": times, "output": output} for output in (keys, moves)]
    builder.append("animations", {"name": "grin", "channels": channels, "samplers": samplers})
    path = stored(tmp_path, *builder.finish())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert len(read(path).clips["grin"]) == 31
    said = [str(w.message) for w in caught if "morph" in str(w.message)]
    assert [("1 clips" in text, "grin" in text, "keeps them" in text) for text in said] == [(True,) * 3] * bool(smile)


def test_step_holds_linear_runs_and_cubic_follows_hermite() -> None:
    clock, times = np.array([0.0, 0.25, 0.5, 1.0, 2.0]), np.array([0.0, 1.0])
    keys = np.array([[0.0], [8.0]])
    np.testing.assert_allclose(interpolate(clock, times, keys, "STEP", rotation=False)[:, 0], [0, 0, 0, 8, 8])
    np.testing.assert_allclose(interpolate(clock, times, keys, "LINEAR", rotation=False)[:, 0], [0, 2, 4, 8, 8])
    # in-tangent, value, out-tangent; with tangents m0 = 4, m1 = 0: h(t) = (t^3 - 2t^2 + t) 4 + (3t^2 - 2t^3) 8
    cubic = np.array([[0.0], [0.0], [4.0], [0.0], [8.0], [0.0]])
    t = clock.clip(0, 1)
    expected = (t**3 - 2 * t**2 + t) * 4 + (3 * t**2 - 2 * t**3) * 8
    np.testing.assert_allclose(interpolate(clock, times, cubic, "CUBICSPLINE", rotation=False)[:, 0], expected)


def test_rotations_turn_the_shorter_way() -> None:
    half = np.sqrt(0.5)
    keys = np.array([[0.0, 0, 0, 1], [0, 0, -half, -half]])  # 90 degrees about Z, written with the opposite sign
    middle = interpolate(np.array([0.5]), np.array([0.0, 1.0]), keys, "LINEAR", rotation=True)[0]
    np.testing.assert_allclose(np.abs(middle), [0, 0, np.sin(np.pi / 8), np.cos(np.pi / 8)], atol=1e-12)


# ------------------------------------------------------------------------------------------------------- bad input


def broken(**changes: object) -> dict:
    parsed, _ = minimal()
    return {**parsed, **changes}


@pytest.mark.parametrize(
    ("parsed", "reason"),
    [
        (broken(asset={"version": "1.0"}), "version"),
        (broken(nodes=[{"mesh": 0, "children": [0]}]), "cycle"),
        (broken(nodes=[{"mesh": 0}, {"children": [2]}, {"children": [2]}, {}][:4]) | {}, "does not exist|two parents"),
        (broken(nodes=[{"mesh": 3}]), r"meshes\[3\] does not exist"),
        (broken(nodes=[{"mesh": 0, "translation": [1, 2]}]), "translation"),
        (broken(nodes=[{"mesh": 0, "matrix": [None] * 16}]), "matrix"),
        (broken(bufferViews=[{"buffer": 0, "byteLength": 10**6}]), "ends at byte"),
        (broken(bufferViews="no"), "not a list"),
        (broken(buffers=[{"byteLength": 10**9}]), "bytes"),
        (broken(meshes=[{"primitives": [{"attributes": {}}]}]), "no triangle mesh"),
    ],
)
def test_damage_is_refused_by_name(parsed: dict, reason: str, tmp_path: Path) -> None:
    _, binary = minimal()
    with pytest.raises(FileFormatError, match=reason):
        gltf.read(stored(tmp_path, parsed, binary))


def test_an_accessor_cannot_ask_for_all_memory(tmp_path: Path) -> None:
    parsed, binary = minimal()
    parsed["accessors"][0] = {"componentType": 5126, "count": 10**10, "type": "VEC3"}
    with pytest.raises(FileFormatError, match="refused"):
        gltf.read(stored(tmp_path, parsed, binary))


def test_a_resource_outside_the_folder_is_refused(tmp_path: Path) -> None:
    secret = tmp_path / "secret.bin"
    secret.write_bytes(bytes(36))
    folder = tmp_path / "model"
    folder.mkdir()
    parsed, _ = minimal()
    for uri in ("../secret.bin", "%2e%2e/secret.bin", str(secret), "https://example.com/a.bin"):
        parsed["buffers"] = [{"byteLength": 36, "uri": uri}]
        (folder / "m.gltf").write_text(json.dumps(parsed))
        with pytest.raises(FileFormatError, match=r"outside|local files"):
            gltf.read(folder / "m.gltf")


def test_a_data_uri_is_read(tmp_path: Path) -> None:
    parsed, binary = minimal()
    parsed["buffers"][0]["uri"] = "data:application/octet-stream;base64," + base64.b64encode(binary).decode()
    (tmp_path / "m.gltf").write_text(json.dumps(parsed))
    assert len(gltf.read(tmp_path / "m.gltf").mesh.faces) == 1


def test_a_truncated_glb_says_that_it_is_cut_off(tmp_path: Path) -> None:
    parsed, binary = minimal()
    path = stored(tmp_path, parsed, binary)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(FileFormatError, match="cut off"):
        gltf.read(path)


def test_a_motion_that_does_not_fit_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    asset = two_link_arm(3)
    for motion, reason in (
        (wiggle(two_link_arm(4)), "4 joints"),
        (replace(wiggle(asset), pose=replace(wiggle(asset).pose, root=torch.full((7, 3), torch.nan))), "finite"),
    ):
        with pytest.raises(JigdollError, match=reason):
            gltf.write(tmp_path / "out.glb", asset, [motion])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["fox", "dragon", "robot", "spider"])
def test_a_built_in_character_is_written_without_errors_or_warnings(name: str, tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None or not (VALIDATOR / "node_modules").is_dir():
        pytest.skip("the Khronos validator is not installed: npm install in tests/validator")
    from jigdoll import zoo
    from jigdoll.zoo.gaits import reference_motion

    asset = zoo.make(name)
    file = gltf.write(tmp_path / "zoo.glb", asset, [reference_motion(asset, "walk", seconds=1.0, loop=True)])
    run = subprocess.run([node, VALIDATOR / "validate.js", file], capture_output=True, text=True, check=True)
    report = json.loads(run.stdout)
    assert (report["errors"], report["warnings"]) == (0, 0), report
