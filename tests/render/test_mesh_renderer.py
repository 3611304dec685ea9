"""The triangle rasteriser against closed forms."""

import numpy as np
import pytest
import torch

from jigdoll.errors import JigdollError
from jigdoll.render.camera import fit_orbit, intrinsics, orbit
from jigdoll.render.mesh import render_mesh, vertex_normals
from jigdoll.types import Camera, Material, Mesh


def plain(vertices: list | torch.Tensor, faces: list, colors: torch.Tensor | None = None, **more) -> Mesh:
    points = torch.as_tensor(vertices, dtype=torch.float32).reshape(-1, 3)
    colors = torch.full_like(points, 0.5) if colors is None else colors
    return Mesh(points, torch.tensor(faces, dtype=torch.long).reshape(-1, 3), colors, **more)


def straight_camera(width: int = 64, height: int = 64, focal: float = 64.0) -> Camera:
    """At the origin, looking along +Z (OpenCV axes are the world's)."""
    K = torch.tensor([[focal, 0.0, width / 2], [0.0, focal, height / 2], [0.0, 0.0, 1.0]])
    return Camera(torch.eye(4), K, width, height)


SQUARE = [[-1.0, -1.0, 2.0], [1.0, -1.0, 2.0], [1.0, 1.0, 2.0], [-1.0, 1.0, 2.0]]
TWO = [[0, 1, 2], [0, 2, 3]]


def test_a_square_covers_exactly_its_pixels_at_its_depth():
    # f / z = 32 px per metre, so the square spans [0, 64] of 64 pixels; of 128 pixels the middle half.
    picture = render_mesh(plain(SQUARE, TWO), straight_camera(128, 128), look="unlit", samples=1)
    expected = torch.zeros(128, 128)
    expected[32:96, 32:96] = 1
    assert torch.equal(picture.rgba[..., 3], expected)
    torch.testing.assert_close(picture.depth, 2 * expected)
    torch.testing.assert_close(picture.rgba[..., :3], 0.5 * expected[..., None].expand(-1, -1, 3))


def test_attributes_are_perspective_correct_on_a_tilted_plane():
    # Colour = position: on the plane z = 2 + x the hit of ray (u, v, 1) is x = 2u / (1 - u), y = v z.
    corners = torch.tensor([[x, y, 2 + x] for x in (-1.0, 1.0) for y in (-1.0, 1.0)])
    mesh = plain(corners, [[0, 1, 2], [1, 3, 2]], colors=(corners * torch.tensor([1, 1, 0.0]) + 1) / 2)
    picture = render_mesh(mesh, straight_camera(), look="unlit", samples=1)
    u = ((torch.arange(64) + 0.5 - 32) / 64).expand(64, 64)
    x, z = 2 * u / (1 - u), 2 / (1 - u)
    y = u.T * z
    inside = (x.abs() < 0.999) & (y.abs() < 0.999)
    assert int(inside.sum()) > 1000
    torch.testing.assert_close(picture.rgba[..., 0][inside], (x[inside] + 1) / 2, atol=1e-5, rtol=0)
    torch.testing.assert_close(picture.rgba[..., 1][inside], (y[inside] + 1) / 2, atol=1e-5, rtol=0)
    torch.testing.assert_close(picture.depth[inside], z[inside], atol=1e-4, rtol=0)


def test_the_nearer_surface_wins_whatever_the_order_of_faces():
    near = torch.tensor(SQUARE) * torch.tensor([0.5, 0.5, 0.5])
    vertices = torch.cat([torch.tensor(SQUARE), near])
    colors = torch.cat([torch.tensor([[1.0, 0, 0]]).expand(4, 3), torch.tensor([[0, 1.0, 0]]).expand(4, 3)])
    faces = TWO + [[i + 4 for i in face] for face in TWO]
    for order in (faces, faces[::-1]):
        picture = render_mesh(plain(vertices, order, colors), straight_camera(), look="unlit", samples=1)
        assert torch.equal(picture.rgba[32, 32], torch.tensor([0.0, 1.0, 0.0, 1.0]))


def test_a_triangle_that_passes_through_the_camera_is_cut_at_the_near_plane():
    # The floor y = 1 (below, y points down) from z = -10 to z = 10: it fills the rows below v = 1 / 10 and no others.
    floor = [[-99.0, 1.0, -10.0], [99.0, 1.0, -10.0], [99.0, 1.0, 10.0], [-99.0, 1.0, 10.0]]
    picture = render_mesh(plain(floor, TWO), straight_camera(), look="unlit", samples=1)
    v = (torch.arange(64) + 0.5 - 32) / 64
    assert torch.equal(picture.rgba[..., 3], (v > 0.1).float()[:, None].expand(64, 64))
    torch.testing.assert_close(picture.depth[60], (1 / v[60]).expand(64), atol=1e-5, rtol=1e-5)


def test_triangles_behind_the_camera_are_not_drawn():
    picture = render_mesh(plain([[x, y, -z] for x, y, z in SQUARE], TWO), straight_camera())
    assert float(picture.rgba.abs().sum()) == 0.0


def test_a_camera_inside_a_box_sees_wall_everywhere():
    corners = [[x, y, z] for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)]
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    faces = [triangle for a, b, c, d in quads for triangle in ([a, b, c], [a, c, d])]
    camera = orbit(torch.zeros(3), 0.2, azimuth=37.0, elevation=20.0, width=48, height=32, field_of_view=120.0)
    picture = render_mesh(plain(corners, faces), camera, samples=1)
    assert torch.equal(picture.rgba[..., 3], torch.ones(32, 48))


@pytest.mark.parametrize("faces", [[], [[0, 0, 0]], [[0, 1, 1]], [[0, 1, 4]]], ids=["none", "point", "edge", "line"])
def test_nothing_to_draw_gives_an_empty_picture(faces: list):
    mesh = plain([*SQUARE, [3.0, -1.0, 2.0]], faces)
    for look in ("lit", "unlit", "clay"):
        picture = render_mesh(mesh, straight_camera(8, 8), look=look)
        assert bool(torch.isfinite(picture.rgba).all())
        assert float(picture.rgba.abs().sum()) == 0.0


def test_a_mesh_without_vertices_gives_an_empty_picture():
    picture = render_mesh(plain([], []), fit_orbit(torch.zeros(0, 3), width=5, height=3))
    assert picture.rgba.shape == (3, 5, 4)
    assert float(picture.rgba.abs().sum()) == 0.0


@pytest.mark.parametrize("face", [[0, 1, 4], [0, -1, 2]])
def test_a_face_that_names_a_missing_vertex_is_refused(face: list):
    with pytest.raises(JigdollError, match="there are 4 vertices"):
        render_mesh(plain(SQUARE, [face]), straight_camera(8, 8))


def test_a_vertex_that_is_not_a_number_spoils_its_own_faces_only():
    vertices = torch.tensor([*SQUARE, [float("nan"), 0.0, 2.0]])
    picture = render_mesh(plain(vertices, [*TWO, [0, 1, 4]]), straight_camera(), look="unlit")
    assert torch.equal(picture.rgba, render_mesh(plain(SQUARE, TWO), straight_camera(), look="unlit").rgba)


def test_a_picture_of_one_pixel_is_the_mean_of_its_samples():
    # The half-plane x < 0 covers half of the samples of the only pixel.
    half = [[-9.0, -9.0, 2.0], [0.0, -9.0, 2.0], [0.0, 9.0, 2.0], [-9.0, 9.0, 2.0]]
    picture = render_mesh(plain(half, TWO), straight_camera(1, 1, 1.0), look="unlit", samples=4)
    torch.testing.assert_close(picture.rgba[0, 0], torch.tensor([0.25, 0.25, 0.25, 0.5]))
    torch.testing.assert_close(picture.depth[0, 0], torch.tensor(1.0))


def test_a_texture_is_read_with_v_zero_in_the_first_row():
    texels = torch.zeros(2, 2, 4, dtype=torch.uint8)
    texels[0, 0], texels[0, 1] = torch.tensor([255, 0, 0, 255]), torch.tensor([0, 255, 0, 255])
    texels[1, 0], texels[1, 1] = torch.tensor([0, 0, 255, 255]), torch.tensor([255, 255, 255, 255])
    mesh = plain(
        SQUARE, TWO, uvs=torch.tensor([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]),
        materials=(Material("m", (1.0, 1.0, 1.0, 1.0), texels),), face_materials=torch.zeros(2, dtype=torch.long),
    )  # fmt: skip
    rgb = render_mesh(mesh, straight_camera(), look="unlit", samples=1).rgba[..., :3]
    # Texel centres lie at a quarter and three quarters; image rows run along +Y of this camera, like v.
    for row, column in ((0, 0), (0, 1), (1, 0), (1, 1)):
        patch = rgb[15 + 32 * row : 17 + 32 * row, 15 + 32 * column : 17 + 32 * column].mean((0, 1))
        torch.testing.assert_close(patch, texels[row, column, :3].float() / 255, atol=0.035, rtol=0)


def test_a_materials_colour_multiplies_its_texture_as_light():
    texels = torch.full((4, 4, 4), 188, dtype=torch.uint8)  # sRGB 188 is half of white's light
    mesh = plain(
        SQUARE, TWO, uvs=torch.zeros(4, 2), materials=(Material("m", (0.5, 1.0, 0.0, 1.0), texels),),
        face_materials=torch.zeros(2, dtype=torch.long),
    )  # fmt: skip
    rgb = render_mesh(mesh, straight_camera(), look="unlit").rgba[32, 32, :3]
    torch.testing.assert_close(rgb, torch.tensor([0.5371, 188 / 255, 0.0]), atol=3e-3, rtol=0)


def test_a_distant_fine_texture_turns_into_its_mean():
    texels = torch.zeros(256, 256, 4, dtype=torch.uint8)
    texels[::2, ::2] = texels[1::2, 1::2] = 255
    square = torch.tensor(SQUARE) * torch.tensor([1.0, 1.0, 8.0])  # 8 px wide: 32 texels per pixel
    mesh = plain(
        square, TWO, uvs=torch.tensor([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]),
        materials=(Material("m", (1.0, 1.0, 1.0, 1.0), texels),), face_materials=torch.zeros(2, dtype=torch.long),
    )  # fmt: skip
    rgb = render_mesh(mesh, straight_camera(), look="unlit", samples=1).rgba[29:35, 29:35, :3]
    torch.testing.assert_close(rgb, torch.full_like(rgb, 0.5), atol=1e-3, rtol=0)


def test_a_batch_of_poses_and_views_equals_the_pictures_one_by_one():
    generator = torch.Generator().manual_seed(3)
    mesh = plain(torch.rand(30, 3, generator=generator), torch.randint(0, 30, (40, 3), generator=generator).tolist())
    poses = torch.rand(2, 30, 3, generator=generator)
    camera = orbit(torch.full((3,), 0.5), 3.0, azimuth=torch.tensor([[10.0], [100.0], [200.0]]), width=24, height=20)
    together = render_mesh(mesh, camera, vertices=poses)
    assert together.rgba.shape == (3, 2, 20, 24, 4)
    for view in range(3):
        for pose in range(2):
            alone = Camera(camera.T_camera_world[view, 0], camera.K[view, 0], 24, 20)
            single = render_mesh(mesh, alone, vertices=poses[pose])
            assert torch.equal(together.rgba[view, pose], single.rgba)
            assert torch.equal(together.depth[view, pose], single.depth)


def test_vertices_split_along_a_seam_share_their_normal():
    # A roof: two squares that meet at a right angle along an edge whose vertices are stored twice.
    left = [[0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    right = [[1.0, 0.0, 0.0], [1.0, 0.0, 1.0], [1.0, -1.0, 1.0], [1.0, -1.0, 0.0]]
    normals = vertex_normals(plain(left + right, [[0, 1, 2], [0, 2, 3], [4, 5, 6], [4, 6, 7]]))
    torch.testing.assert_close(normals[3], normals[4])
    torch.testing.assert_close(normals[0], torch.tensor([0.0, 1.0, 0.0]))
    torch.testing.assert_close(normals.norm(dim=-1), torch.ones(8))


def test_front_and_back_of_a_surface_are_lit_towards_the_camera():
    mesh = plain(SQUARE, TWO)
    turned = plain(SQUARE, [face[::-1] for face in TWO])
    pictures = [render_mesh(m, straight_camera()).rgba for m in (mesh, turned)]
    torch.testing.assert_close(pictures[0], pictures[1])


def test_lit_surfaces_keep_the_hue_and_unlit_ones_the_value():
    colors = torch.tensor([[0.6, 0.3, 0.15]]).expand(4, 3)
    mesh = plain(SQUARE, TWO, colors=colors)
    lit = render_mesh(mesh, straight_camera()).rgba[32, 32]
    unlit = render_mesh(mesh, straight_camera(), look="unlit").rgba[32, 32]
    torch.testing.assert_close(unlit, torch.tensor([0.6, 0.3, 0.15, 1.0]))
    torch.testing.assert_close(lit[:3] / lit[0], unlit[:3] / unlit[0])
    assert np.isclose(float(intrinsics(64, 64, field_of_view=53.130102)[0, 0]), 64, atol=1e-3)
