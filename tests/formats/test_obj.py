"""OBJ and MTL reading."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from jigdoll.errors import FileFormatError, RepairWarning
from jigdoll.formats import obj
from jigdoll.formats.polygons import triangulate
from jigdoll.types import Mesh

SQUARE = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\n"


def put(folder: Path, text: str, name: str = "thing.obj") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def area(mesh: Mesh) -> float:
    a, b, c = (mesh.vertices[mesh.faces[:, i]] for i in range(3))
    return float(torch.linalg.cross(b - a, c - a).norm(dim=-1).sum() / 2)


def test_a_quad_becomes_two_triangles_of_one_joint(tmp_path: Path) -> None:
    asset = obj.read(put(tmp_path, SQUARE + "f 1 2 3 4\n"))
    assert asset.mesh.faces.tolist() == [[0, 1, 2], [0, 2, 3]]
    assert asset.skeleton.names == ("root",)
    assert not asset.is_rigged
    assert asset.weights.values.tolist() == [[1.0]] * 4
    assert asset.mesh.uvs is None


@pytest.mark.parametrize(
    "faces",
    [
        "f 1 2 3\nf 1 3 4\n",
        "f -4 -3 -2\nf -4 -2 -1\n",
        "f 1// 2// 3//\nf 1 3 4\n",
        "f 1 2\\\n 3\r\nf  1\t3 4 # the other half\r\n",
        "  f 1 2 3\n\tf 1 3 4\n",
        "vn 0 0 1\nf 1//1 2//1 3//1\nf 1//-1 3//-1 4//-1\n",
        "o one\nf 1 2 3\ng two\ns off\nf 1 3 4\n",
    ],
)
def test_every_way_to_write_two_triangles_reads_the_same(tmp_path: Path, faces: str) -> None:
    assert obj.read(put(tmp_path, SQUARE + faces)).mesh.faces.tolist() == [[0, 1, 2], [0, 2, 3]]


def test_negative_indices_count_from_the_line_of_the_face(tmp_path: Path) -> None:
    text = "v 0 0 0\nv 1 0 0\nv 0 1 0\nf -3 -2 -1\nv 0 0 1\nv 1 0 1\nv 0 1 1\nf -3 -2 -1\n"
    assert obj.read(put(tmp_path, text)).mesh.faces.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_vertices_split_at_texture_seams_only(tmp_path: Path) -> None:
    text = SQUARE + "vt 0 0\nvt 1 0\nvt 1 1\nvt 0.5 0.25\nvn 0 0 1\nvn 0 1 0\n"
    asset = obj.read(put(tmp_path, text + "f 1/1/1 2/2/1 3/3/1\nf 1/4/2 3/3/2 4/1/2\n"))
    assert asset.mesh.vertices.shape == (5, 3)  # vertex 1 has two coordinates; the two normals of 3 do not split it
    assert asset.mesh.uvs is not None
    # v = 0 is the first row for us, the last row for OBJ.
    assert sorted(asset.mesh.uvs.tolist()) == sorted([[0, 1], [1, 1], [1, 0], [0.5, 0.75], [0, 1]])


def test_vertex_colours_are_read(tmp_path: Path) -> None:
    asset = obj.read(put(tmp_path, "v 0 0 0 1 0 0\nv 1 0 0 0 1 0\nv 0 1 0 0 0 0.5\nf 1 2 3\n"))
    torch.testing.assert_close(asset.mesh.colors, torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 0, 0.5]]))


def test_materials_and_textures_paint_the_vertices(tmp_path: Path) -> None:
    pixels = np.zeros((2, 2, 3), np.uint8)
    pixels[0] = [255, 0, 0]  # the upper row of the picture is v = 1 in OBJ
    pixels[1] = [0, 0, 255]
    Image.fromarray(pixels).save(tmp_path / "a b.png")
    put(tmp_path, "newmtl flat\nKd 0 1 0\nd 0.5\nnewmtl drawn\nKd 1 1 1\nmap_Kd -s 1 1 1 a b.png\n", "m.mtl")
    text = SQUARE + "v 5 0 0\nv 6 0 0\nv 5 1 0\nvt 0.25 0.75\nvt 0.75 0.25\n"
    text = "mtllib m.mtl\n" + text + "usemtl drawn\nf 1/1 2/2 3/1\nusemtl flat\nf 5 6 7\n"
    with pytest.warns(RepairWarning, match="1 vertices that no face uses"):
        mesh = obj.read(put(tmp_path, text)).mesh
    assert [material.name for material in mesh.materials] == ["drawn", "flat"]
    assert mesh.face_materials is not None
    assert mesh.face_materials.tolist() == [0, 1]
    assert mesh.materials[1].color == (0.0, 1.0, 0.0, 0.5)
    assert mesh.materials[0].texture is not None
    assert mesh.materials[0].texture[0, 0].tolist() == [255, 0, 0, 255]
    expected = torch.tensor([[1.0, 0, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 1, 0]])
    torch.testing.assert_close(mesh.colors, expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", ["../secret.png", "/etc/secret.png", "..\\secret.png", "sub/../../secret.png"])
def test_textures_outside_the_folder_are_not_opened(tmp_path: Path, name: str) -> None:
    Image.new("RGB", (2, 2), (9, 9, 9)).save(tmp_path / "secret.png")
    folder = tmp_path / "model"
    folder.mkdir()
    put(folder, f"newmtl a\nmap_Kd {name}\n", "m.mtl")
    with pytest.warns(RepairWarning, match=r"secret\.png' was left out"):
        asset = obj.read(put(folder, f"mtllib m.mtl\n{SQUARE}usemtl a\nvt 0 0\nf 1/1 2/1 3/1 4/1\n"))
    assert asset.mesh.materials[0].texture is None


def test_a_library_outside_the_folder_is_not_opened(tmp_path: Path) -> None:
    put(tmp_path, "newmtl a\nKd 1 0 0\n", "m.mtl")
    folder = tmp_path / "model"
    folder.mkdir()
    with pytest.warns(RepairWarning, match="outside its own folder"):
        asset = obj.read(put(folder, f"mtllib ../m.mtl\n{SQUARE}usemtl a\nf 1 2 3 4\n"))
    assert asset.mesh.materials[0].color != (1.0, 0.0, 0.0, 1.0)


def test_an_absolute_texture_path_finds_the_file_beside_the_model(tmp_path: Path) -> None:
    Image.new("RGB", (2, 2), (255, 0, 0)).save(tmp_path / "skin.png")
    put(tmp_path, "newmtl a\nKd 1 1 1\nmap_Kd C:\\Users\\me\\skin.png\n", "m.mtl")
    asset = obj.read(put(tmp_path, f"mtllib m.mtl\n{SQUARE}usemtl a\nvt 0 0\nf 1/1 2/1 3/1 4/1\n"))
    torch.testing.assert_close(asset.mesh.colors[0], torch.tensor([1.0, 0, 0]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SQUARE + "f 1 2 5\n", r"line 5: a face uses vertex 5 of 4"),
        (SQUARE + "f 1 2 0\n", r"line 5"),
        (SQUARE + "f 1 2 -5\n", r"line 5: a negative index reaches before"),
        (SQUARE + "f 1 2 x\n", r"line 5: 'x' is no corner"),
        (SQUARE + "f 1/1 2/1 3/1\n", r"line 5: a face uses texture coordinate 1 of 0"),
        ("v 0 0 nan\n" + SQUARE + "f 1 2 3\n", r"line 1: '0 0 nan' should be 3 finite numbers"),
        ("v 0 0 1e400\n" + SQUARE + "f 1 2 3\n", r"line 1"),
        ("v 0 0\n" + SQUARE + "f 1 2 3\n", r"line 1"),
        (SQUARE, "no face"),
        ("", "no vertex"),
        ("glTF\0\0\0\2", "binary"),
        (SQUARE + "f 1 1 1\n", "no triangle"),
        ("v 0v1 0 0\n" + SQUARE + "f 1 2 3\n", r"line 1"),
        (SQUARE + "f 1 2 3f 4\n", r"line 5: '3f' is no corner"),
        (SQUARE + "f 1 2 99999999999999999999999\n", r"line 5"),
    ],
)
def test_damage_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FileFormatError, match=message):
        obj.read(put(tmp_path, text))


def test_faces_without_three_corners_are_no_mesh(tmp_path: Path) -> None:
    with pytest.warns(RepairWarning, match="2 faces of fewer"), pytest.raises(FileFormatError, match="no triangle"):
        obj.read(put(tmp_path, SQUARE + "f 1 2\nf 3\n"))


def test_rows_of_different_styles_read_as_uniform_ones(tmp_path: Path) -> None:
    even = SQUARE + "vt 0 0\nvt 1 0\nvt 1 1\nf 1/1/1 2/2/1 3/3/1\nf 1/1/1 3/3/1 4/2/1\n"
    odd = "v 0 0 0 1\nv 1 0 0\nv 1 1 0 0 0 0\nv 0 1 0\nvt 0 0 0\nvt 1\nvt 1 1\nf 1/1 2/2/1 3/3\nf 1/1/1 3/3 4/2/1\n"
    ours, theirs = obj.read(put(tmp_path, even)).mesh, obj.read(put(tmp_path, odd, "odd.obj")).mesh
    assert torch.equal(ours.vertices, theirs.vertices)
    assert torch.equal(ours.faces, theirs.faces)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=r"nothing\.obj: there is no such file"):
        obj.read(tmp_path / "nothing.obj")


def test_dented_polygons_keep_their_area(tmp_path: Path) -> None:
    # An arrow head (one dent) and a cross (four dents): areas 0.5 * 2 * 2 - 0.5 * 2 * 1 = 1 and 5.
    arrow = "v 0 0 0\nv 1 1 0\nv 2 0 0\nv 1 2 0\nf 1 2 3 4\n"
    assert area(obj.read(put(tmp_path, arrow)).mesh) == pytest.approx(1.0)
    cross = [(1, 0), (2, 0), (2, 1), (3, 1), (3, 2), (2, 2), (2, 3), (1, 3), (1, 2), (0, 2), (0, 1), (1, 1)]
    for plane in range(3):
        text = "".join("v " + " ".join(map(str, np.insert([x, y], plane, 7))) + "\n" for x, y in cross)
        text += "f " + " ".join(map(str, range(1, 13))) + "\n"
        assert area(obj.read(put(tmp_path, text)).mesh) == pytest.approx(5.0)


@settings(max_examples=30, deadline=None)
@given(sizes=st.lists(st.integers(3, 9), min_size=1, max_size=6), seed=st.integers(0, 1000))
def test_triangles_of_regular_polygons_fill_them(sizes: list[int], seed: int) -> None:
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
    angles = [2 * np.pi * np.arange(size) / size for size in sizes]
    points = np.concatenate([np.stack([np.cos(a), np.sin(a), 0 * a], 1) @ turn for a in angles])
    triangles, owner = triangulate(points, np.array(sizes))
    a, b, c = (points[triangles[:, i]] for i in range(3))
    areas = np.linalg.norm(np.cross(b - a, c - a), axis=1) / 2
    # A regular polygon of n corners on the unit circle: n / 2 sin(2 pi / n).
    expected = [n / 2 * np.sin(2 * np.pi / n) for n in sizes]
    np.testing.assert_allclose(np.bincount(owner, areas), expected)


@pytest.mark.parametrize(("name", "vertices", "faces"), [("penguin", 3362, 6720), ("spot_low_resolution", 829, 1654)])
def test_real_meshes_load_whole_and_closed(assets_dir: Path, name: str, vertices: int, faces: int) -> None:
    mesh = obj.read(assets_dir / "unrigged" / "odedstein" / f"{name}.obj").mesh
    assert (len(mesh.vertices), len(mesh.faces)) == (vertices, faces)
    edges = torch.cat([mesh.faces[:, [0, 1]], mesh.faces[:, [1, 2]], mesh.faces[:, [2, 0]]])
    # Closed and consistently wound: every directed edge is there once, and once in the other direction.
    forward = set(map(tuple, edges.tolist()))
    assert len(forward) == len(edges)
    assert forward == {(b, a) for a, b in forward}
