"""The rest of a glTF character: its bind pose, standing as its artist stood it, whatever the nodes do at rest."""

import json
import os
import re
import subprocess
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from jigdoll.asset.load import read
from jigdoll.errors import RepairWarning
from jigdoll.formats import gltf
from jigdoll.formats.gltf.document import pack_glb, read_document
from jigdoll.kinematics import make_skeleton, rest_pose, world_rest
from jigdoll.skin.deform import deform_mesh
from jigdoll.types import Mesh, Motion, RiggedAsset, Weights

ROLLED = (
    "robot/RobotExpressive.glb",
    "ultimate_space_pack/Astronaut_BarbaraTheBee-transformed.glb",
    "ultimate_space_pack/Astronaut_FernandoTheFlamingo-transformed.glb",
    "ultimate_space_pack/Enemy_Large-transformed.glb",
    "cyberpunk_pack/Enemy_Large.glb",
    "easy_enemies_pack/Spider.glb",
    "dinosaurs_pack/Triceratops.glb",
    *(f"monsters/{name}.glb" for name in "demon demonalt dragonevolved frog ghost orc tribal yetialt".split()),
)
"""Files of Quaternius whose rest once rolled to a side, and the two that Blender itself lays down."""
HEAD, FOOT = re.compile(r"head|gun|neck", re.I), re.compile(r"^foot|foot\.|leg3", re.I)


def quiet_read(path: Path) -> RiggedAsset:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RepairWarning)
        return read(path)


def rest_places(asset: RiggedAsset) -> dict[str, np.ndarray]:
    places = world_rest(asset.skeleton.parents, asset.skeleton.T_parent_joint.double())[:, :3, 3].numpy()
    return dict(zip(asset.skeleton.names, places, strict=True))


def figure(left_fingers: int = 12) -> RiggedAsset:
    """A person of sticks in a T pose with many fingers; each joint carries squares as large as its part."""
    rows: list[tuple[str, int, tuple[float, float, float], float]] = [
        ("hips", -1, (0, 1.0, 0), 0.3),
        ("chest", 0, (0, 0.4, 0), 0.4),
        ("head", 1, (0, 0.4, 0), 0.2),
    ]
    for side, x, fingers in (("L", 1.0, left_fingers), ("R", -1.0, 12)):
        rows.append((f"leg.{side}", 0, (0.15 * x, -0.1, 0), 0.2))
        rows.append((f"foot.{side}", len(rows) - 1, (0, -0.85, 0), 0.2))
        rows.append((f"arm.{side}", 1, (0.2 * x, 0.2, 0), 0.2))
        hand = len(rows) - 1
        rows += [(f"finger{i}.{side}", hand, (0.6 * x, 0.0, 0.01 * (i - fingers / 2)), 0.02) for i in range(fingers)]
    T = torch.eye(4).repeat(len(rows), 1, 1)
    T[:, :3, 3] = torch.tensor([row[2] for row in rows])
    skeleton = make_skeleton(tuple(row[0] for row in rows), tuple(row[1] for row in rows), T)
    places = world_rest(skeleton.parents, T)[:, :3, 3]
    square = torch.tensor([[-1.0, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]])
    copies = [25 if row[3] > 0.1 else 1 for row in rows]  # the trunk has more vertices than a finger
    joints = torch.repeat_interleave(torch.arange(len(rows)), torch.tensor(copies))
    sizes = torch.tensor([row[3] for row in rows])[joints]
    vertices = (places[joints][:, None] + sizes[:, None, None] * square).reshape(-1, 3)
    faces = (4 * torch.arange(len(joints))[:, None, None] + torch.tensor([[0, 1, 2], [0, 2, 3]])).reshape(-1, 3)
    weights = Weights(joints.repeat_interleave(4)[:, None], torch.ones(len(vertices), 1))
    return RiggedAsset("figure", Mesh(vertices, faces, torch.ones_like(vertices)), skeleton, weights)


def with_posed_nodes(path: Path, turns: dict[str, tuple[float, float, float, float]]) -> Path:
    """The file with some nodes turned (xyzw) at rest, as exporters leave them in the middle of a clip."""
    document = read_document(path)
    for node in document.json["nodes"]:
        if node.get("name") in turns:
            node["rotation"] = list(turns[node["name"]])
    assert document.binary is not None
    path.write_bytes(pack_glb(document.json, document.binary))
    return path


def about(axis: str, degrees: float) -> tuple[float, float, float, float]:
    half = np.radians(degrees) / 2
    x, y, z = (float(np.sin(half)) * (axis == a) for a in "xyz")
    return x, y, z, float(np.cos(half))


def test_raised_arms_with_many_fingers_do_not_roll_the_body(tmp_path: Path) -> None:
    asset = figure(left_fingers=40)
    path = gltf.write(tmp_path / "figure.glb", asset)
    posed = with_posed_nodes(path, {"arm.L": about("z", -50), "arm.R": about("z", 60), "chest": about("x", 8)})
    read_back, wanted = rest_places(quiet_read(posed)), rest_places(asset)
    for name, place in wanted.items():
        np.testing.assert_allclose(read_back[name], place, atol=1e-5, err_msg=name)


def test_a_root_that_leans_at_rest_does_not_lean_the_bind_pose(tmp_path: Path) -> None:
    path = gltf.write(tmp_path / "figure.glb", figure())
    posed = with_posed_nodes(path, {"hips": about("z", 25)})
    places = rest_places(quiet_read(posed))
    assert abs(places["foot.L"][1] - places["foot.R"][1]) < 1e-5


def test_a_character_that_was_bound_lying_stands_as_its_nodes_do(tmp_path: Path) -> None:
    asset = figure()
    path = gltf.write(tmp_path / "figure.glb", asset)
    document = read_document(path)
    lying = np.diag([100.0, 100.0, 100.0, 1.0]) @ np.array([[1, 0, 0, 0], [0, 0, 1, 0], [0, -1, 0, 0], [0, 0, 0, 1]])
    entry = document.json["accessors"][document.json["skins"][0]["inverseBindMatrices"]]
    start = document.json["bufferViews"][entry["bufferView"]]["byteOffset"]
    inverse = (
        document.vectors(document.json["skins"][0]["inverseBindMatrices"], 16).reshape(-1, 4, 4).transpose(0, 2, 1)
    )
    changed = (inverse @ lying).transpose(0, 2, 1).astype("<f4").tobytes()
    assert document.binary is not None
    path.write_bytes(
        pack_glb(document.json, document.binary[:start] + changed + document.binary[start + len(changed) :])
    )
    posed = with_posed_nodes(path, {"arm.L": about("z", -70), "head": about("y", 30)})
    read_back, wanted = rest_places(quiet_read(posed)), rest_places(asset)
    for name, place in wanted.items():
        np.testing.assert_allclose(read_back[name], place, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("name", ROLLED)
def test_real_rigs_stand_upright_with_their_feet_at_one_height(name: str, corpus_dir: Path) -> None:
    places = rest_places(quiet_read(corpus_dir / "characters" / "quaternius" / name))
    height = float(np.ptp([place[1] for place in places.values()]))
    for joint, place in places.items():
        twin = re.sub(r"(?<=[._])L(?=$|[._])", "R", joint)
        if twin != joint and twin in places:
            assert abs(place[1] - places[twin][1]) < 0.02 * height, joint
    feet = [place for joint, place in places.items() if FOOT.search(joint)]
    heads = [place for joint, place in places.items() if HEAD.search(joint)]
    if feet and heads:
        above = np.mean(heads, 0) - np.mean(feet, 0)
        assert above[1] > 0.2 * height and abs(above[0]) < 0.1 * height


@pytest.fixture(scope="module")
def blender() -> Path:
    default = Path(__file__).resolve().parents[2] / ".venv-blender" / "bin" / "python"
    python = Path(os.environ.get("JIGDOLL_BLENDER_PYTHON", default))
    if not python.is_file():
        pytest.skip("Blender's Python module is not installed: make test-blender")
    return python


@pytest.mark.parametrize("name", ["ultimate_space_pack/Astronaut_BarbaraTheBee-transformed.glb", "monsters/orc.glb"])
def test_the_rest_joints_are_blenders_up_to_scale_and_place(
    name: str, corpus_dir: Path, tmp_path: Path, blender: Path
) -> None:
    file = corpus_dir / "characters" / "quaternius" / name
    script = Path(__file__).parents[1] / "blender" / "rest.py"
    subprocess.run([blender, script, tmp_path / "rest.json", file], capture_output=True, check=True)
    theirs = json.loads((tmp_path / "rest.json").read_text())[str(file)]
    ours = rest_places(quiet_read(file))
    shared = sorted(set(ours) & set(theirs))
    assert len(shared) > 30
    a, b = np.array([ours[joint] for joint in shared]), np.array([theirs[joint] for joint in shared])
    a, b = a - a.mean(0), b - b.mean(0)
    scale = (a * b).sum() / (a * a).sum()
    assert np.abs(scale * a - b).max() < 1e-3 * np.ptp(b, axis=0).max()


def test_clips_play_the_same_whatever_the_rest_is(tmp_path: Path) -> None:
    asset = figure()
    still = Motion(rest_pose(asset.skeleton, frames=3), 30.0, "still")
    path = gltf.write(tmp_path / "figure.glb", asset, [still])
    seen = deform_mesh(asset, still.pose)
    posed = with_posed_nodes(path, {"arm.L": about("z", -50), "hips": about("z", 25)})
    again = quiet_read(posed)
    torch.testing.assert_close(deform_mesh(again, again.clips["still"].pose), seen, atol=1e-5, rtol=0)
