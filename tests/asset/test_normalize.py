"""Any frame and unit comes in, metres and +Z come out, and the way back is exact."""

import warnings
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from jigdoll.asset.load import load
from jigdoll.asset.normalize import direction, normalize, transform_asset
from jigdoll.errors import FileFormatError, RepairWarning
from jigdoll.kinematics import make_skeleton
from jigdoll.math.rotations import quaternion_to_matrix
from jigdoll.math.transforms import apply, transform
from jigdoll.skin.deform import deform_mesh
from jigdoll.types import Mesh, RiggedAsset, Source, Weights

FACING = {
    "rigged/khronos/Fox.glb": "+z",
    "rigged/khronos/CesiumMan.glb": "+z",
    "rigged/khronos/RiggedFigure.glb": "+z",
    "rigged/mesh2motion/horse-animations.glb": "+z",
    "rigged/mesh2motion/bird-animations.glb": "+z",
    "rigged/quaternius/animals_pack/Wolf.glb": "+z",
    "rigged/threejs/RobotExpressive.glb": "+z",
    "rigged/100avatars/100Avatars_021_Polydancer.vrm": "-z",
    "unrigged/mesh2motion/model-horse.glb": "+z",
    "unrigged/mesh2motion/model-bird.glb": "+z",
    "unrigged/odedstein/spot_low_resolution.obj": "-z",
    "unrigged/odedstein/penguin.obj": "+z",
}


def quiet_load(path: Path, **options: object) -> RiggedAsset:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RepairWarning)
        return load(path, **options)


@pytest.mark.parametrize(("name", "forward"), FACING.items())
def test_real_characters_stand_on_the_ground_and_face_forward(name: str, forward: str, assets_dir: Path) -> None:
    asset = quiet_load(assets_dir / name)
    assert asset.source is not None
    turn = asset.source.T_world_file[:3, :3]
    unit = turn.norm(dim=0).mean()
    torch.testing.assert_close(turn @ direction(forward) / unit, torch.tensor([0.0, 0, 1]), atol=1e-4, rtol=0)
    torch.testing.assert_close(turn @ direction("+y") / unit, torch.tensor([0.0, 1, 0]), atol=1e-4, rtol=0)
    assert float(asset.mesh.vertices[:, 1].min()) == pytest.approx(0, abs=1e-4)


@pytest.mark.parametrize(
    ("size", "metres"),
    [(170.0, 1.7), (1700.0, 1.7), (25.0, 2.5), (44.0, 4.4), (0.017, 1.7), (0.003, 3.0), (19.0, 19.0), (0.03, 0.03)],
)
def test_only_sizes_that_no_creature_has_change_the_unit_and_that_is_said(size: float, metres: float) -> None:
    corners = torch.tensor([[x, y, z] for x in (-0.2, 0.2) for y in (0.0, 1.0) for z in (-0.1, 0.1)])
    faces = torch.tensor([[0, 2, 1], [1, 2, 3], [4, 5, 6], [5, 7, 6], [0, 1, 4], [1, 5, 4]])
    skeleton = make_skeleton(("root",), (-1,), torch.eye(4)[None])
    weights = Weights(torch.zeros(8, 1, dtype=torch.int64), torch.ones(8, 1))
    source = Source(Path("box.glb"), "gltf", torch.eye(4), (0,), torch.eye(4)[None])
    box = RiggedAsset("box", Mesh(corners, faces, torch.ones(8, 3)), skeleton, weights, source=source)
    tall = transform_asset(box, torch.diag(torch.tensor([size, size, size, 1.0])))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = normalize(tall, up="+y", forward="+z")
    assert float(made.mesh.vertices[:, 1].max()) == pytest.approx(metres, rel=1e-4)
    said = [str(w.message) for w in caught if "no size for a creature" in str(w.message)]
    assert made.source is not None
    assert bool(said) == (metres != size) == any("no size for a creature" in text for text in made.source.repairs)


def test_a_fox_of_150_units_is_taken_as_centimetres_by_name(assets_dir: Path) -> None:
    with pytest.warns(RepairWarning, match=r"taken as 0\.01 m a unit"):
        fox = load(assets_dir / "rigged/khronos/Fox.glb")
    assert 1.4 < float(fox.mesh.vertices[:, 2].max() - fox.mesh.vertices[:, 2].min()) < 1.7


def test_the_user_overrules_every_guess(assets_dir: Path) -> None:
    asset = quiet_load(assets_dir / "rigged/khronos/CesiumMan.glb", up="+z", forward="+x", scale=2.0)
    assert asset.source is not None
    turn = asset.source.T_world_file[:3, :3] / 2.0
    torch.testing.assert_close(turn @ direction("+z"), torch.tensor([0.0, 1, 0]), atol=1e-5, rtol=0)
    torch.testing.assert_close(turn @ direction("+x"), torch.tensor([0.0, 0, 1]), atol=1e-5, rtol=0)


def test_a_change_of_frame_moves_posed_vertices_with_it(assets_dir: Path) -> None:
    asset = quiet_load(assets_dir / "rigged/mesh2motion/horse-animations.glb")
    q = torch.nn.functional.normalize(torch.tensor([0.3, -0.5, 0.7, 0.4]), dim=0)
    T = transform(2.5 * quaternion_to_matrix(q), torch.tensor([3.0, -1.0, 2.0]))
    moved = transform_asset(asset, T)
    clip = asset.clips["Walk"]
    expected = apply(T, deform_mesh(asset, clip.pose))
    torch.testing.assert_close(deform_mesh(moved, moved.clips["Walk"].pose), expected, atol=2e-4, rtol=0)


def test_the_way_back_to_the_file_is_kept(assets_dir: Path) -> None:
    """T_file_node = inverse(T_world_file) T_world_joint T_joint_node must not depend on the frame we chose."""
    from jigdoll.kinematics import rest_transforms

    asset = quiet_load(assets_dir / "rigged/quaternius/animals_pack/Wolf.glb")
    turned = normalize(replace(asset), up="+y", forward="+x", scale=0.3)

    def nodes(a: RiggedAsset) -> torch.Tensor:
        assert a.source is not None
        return torch.linalg.inv(a.source.T_world_file) @ rest_transforms(a.skeleton) @ a.source.T_joint_node

    torch.testing.assert_close(nodes(turned), nodes(asset), atol=1e-3, rtol=1e-4)


def test_a_file_of_unknown_kind_says_what_is_known(tmp_path: Path) -> None:
    (tmp_path / "model.max").write_bytes(b"x")
    with pytest.raises(FileFormatError, match=r"known are \.glb"):
        load(tmp_path / "model.max")
    with pytest.raises(FileFormatError, match="no such file"):
        load(tmp_path / "missing.glb")
    with pytest.raises(FileFormatError, match="no body"):
        load(tmp_path / "motion.bvh")
