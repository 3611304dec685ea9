"""The ground is where rays meet y = 0, the shadow is AKD's formula, and clips come out whole."""

import math

import numpy as np
import pytest
import torch

from jigdoll.errors import JigdollError
from jigdoll.kinematics import make_skeleton, rest_pose
from jigdoll.math.transforms import translation
from jigdoll.render.camera import look_at, orbit
from jigdoll.render.draw import (
    ClipStyle,
    contact_sheet,
    draw_clip,
    draw_clip_in_pieces,
    draw_turntable,
    picture_of,
    to_uint8,
)
from jigdoll.render.ground import (
    Ground,
    cast_shadow,
    cast_shadow_reference,
    composite,
    cut_below_ground,
    draw_ground,
    draw_ground_reference,
    fitting_ground,
    hide_below_ground,
)
from jigdoll.splats.bind import bind
from jigdoll.splats.pose import rest_splats
from jigdoll.types import Camera, Gaussians, Mesh, Motion, Pose, Rendering, RiggedAsset, Weights

PLAIN = Ground(light=(1.0, 1.0, 1.0), dark=(0.0, 0.0, 0.0), sky=(0.2, 0.4, 0.8), cell=0.5, fog=1e9)


def from_above(size: int = 40, height: float = 2.0) -> Camera:
    """Looks straight down on [-1, 1]^2: size / 2 pixels per metre."""
    eye = torch.tensor([0.0, height, 0.0])
    focal = size / 2 * height
    K = torch.tensor([[focal, 0.0, size / 2], [0.0, focal, size / 2], [0.0, 0.0, 1.0]])
    return Camera(look_at(eye, torch.zeros(3)), K, size, size)


def box_asset(*, lift: float = 0.0) -> RiggedAsset:
    """A box of 0.4 x 1 x 0.4 m whose lower half follows the root and whose upper half follows `head`."""
    corners = torch.tensor([[x, y + lift, z] for y in (0.0, 0.5, 1.0) for x in (-0.2, 0.2) for z in (-0.2, 0.2)])
    ring = [(0, 1), (1, 3), (3, 2), (2, 0)]
    faces = [[b + 4 * k, a + 4 * k, a + 4 * k + 4] for k in (0, 1) for a, b in ring]
    faces += [[b + 4 * k, a + 4 * k + 4, b + 4 * k + 4] for k in (0, 1) for a, b in ring]
    faces += [[0, 2, 1], [1, 2, 3], [8, 9, 10], [9, 11, 10]]
    dense = torch.tensor([[1.0, 0.0]] * 4 + [[0.5, 0.5]] * 4 + [[0.0, 1.0]] * 4)
    skeleton = make_skeleton(("pelvis", "head"), (-1, 0), translation(torch.tensor([[0.0, lift, 0], [0.0, 0.5, 0.0]])))
    mesh = Mesh(corners, torch.tensor(faces), corners.clamp(0, 1))
    return RiggedAsset("box", mesh, skeleton, Weights.from_dense(dense))


def test_the_checkerboard_lies_where_its_corners_say():
    camera = from_above()
    picture = draw_ground(camera, ground=PLAIN)[..., 0]
    # The hit of the ray d of each pixel is eye - d eye_y / d_y; even squares are light.
    rays = (torch.arange(40) + 0.5 - 20) / camera.K[0, 0]
    R = camera.T_camera_world[:3, :3]
    u, v = torch.meshgrid(rays, rays, indexing="xy")
    d = torch.stack([u, v, torch.ones_like(u)], -1) @ R
    hits = torch.tensor([0.0, 2.0, 0.0]) - d * (2.0 / d[..., 1:2])
    expected = ((torch.floor(hits[..., 0] / 0.5) + torch.floor(hits[..., 2] / 0.5)) % 2 == 0).float()
    torch.testing.assert_close(picture, expected, atol=1e-4, rtol=0)


def test_a_pixel_is_the_mean_of_the_board_over_its_footprint():
    coarse = draw_ground(from_above(10), ground=PLAIN)
    fine = draw_ground(from_above(200), ground=PLAIN)
    mean = fine.unflatten(0, (10, 20)).unflatten(2, (10, 20)).mean((1, 3))
    torch.testing.assert_close(coarse, mean, atol=1e-3, rtol=0)


def test_rays_above_the_horizon_have_the_sky_colour_and_the_far_ground_is_even():
    camera = orbit(torch.tensor([0.0, 1.0, 0.0]), 3.0, azimuth=30.0, elevation=0.0, width=32, height=32)
    picture = draw_ground(camera, ground=PLAIN)
    torch.testing.assert_close(picture[:16], torch.tensor(PLAIN.sky).expand(16, 32, 3))
    torch.testing.assert_close(picture[16, :, 0], torch.full((32,), 0.5), atol=0.2, rtol=0)
    assert float(picture[-1, :, 0].std()) > 0.2


def test_fog_turns_the_ground_into_the_sky():
    camera = orbit(torch.tensor([0.0, 1.0, 0.0]), 3.0, azimuth=30.0, elevation=40.0, width=8, height=8)
    picture = draw_ground(camera, ground=Ground(fog=1e-3))
    torch.testing.assert_close(picture, torch.tensor(Ground().sky).expand(8, 8, 3))


@pytest.mark.parametrize("height", [0.0, 0.3, 1.0])
def test_the_shadow_is_the_papers_formula(height: float):
    # A square plate at one height: s = 1 - s_max exp(-beta d) under it and 1 elsewhere.
    white = Ground(light=(1.0,) * 3, dark=(1.0,) * 3, fog=1e9, shadow=0.7, shadow_decay=2.0, shadow_softness=0.0)
    plate = torch.tensor([[-0.4, height, -0.4], [0.4, height, -0.4], [0.4, height, 0.4], [-0.4, height, 0.4]])
    shadow = cast_shadow(plate[None], faces=torch.tensor([[0, 1, 2], [0, 2, 3]]), ground=white)
    picture = draw_ground(from_above(), ground=white, shadow=shadow)[..., 0]
    expected = 1 - 0.7 * math.exp(-2.0 * height)
    torch.testing.assert_close(picture[14:26, 14:26], torch.full((12, 12), expected), atol=1e-5, rtol=0)
    torch.testing.assert_close(picture[:10], torch.ones(10, 40), atol=1e-6, rtol=0)


def test_the_lowest_surface_casts_the_shadow_and_depth_below_the_ground_counts_as_contact():
    square = torch.tensor([[-0.4, 0.0, -0.4], [0.4, 0.0, -0.4], [0.4, 0.0, 0.4], [-0.4, 0.0, 0.4]])
    faces = torch.tensor([[0, 1, 2], [0, 2, 3]])
    sharp = Ground(shadow_softness=0.0)
    up = torch.tensor([0.0, 1.0, 0.0])
    two = torch.cat([square + 0.9 * up, square + 0.2 * up])[None]
    both = cast_shadow(two, faces=torch.cat([faces, faces + 4]), ground=sharp)
    low = cast_shadow((square + 0.2 * up)[None], faces=faces, ground=sharp)
    torch.testing.assert_close(both.darkness, low.darkness)
    sunk = cast_shadow((square - 0.5 * up)[None], faces=faces, ground=sharp)
    torch.testing.assert_close(sunk.darkness.amax(), torch.tensor(1.0))


def test_shadows_of_points_and_of_triangles_agree_under_a_dense_cloud():
    generator = torch.Generator().manual_seed(0)
    cloud = (torch.rand(20000, 3, generator=generator) - 0.5) * torch.tensor([0.8, 0.0, 0.8])
    cloud[:, 1] = 0.25
    plate = torch.tensor([[-0.4, 0.25, -0.4], [0.4, 0.25, -0.4], [0.4, 0.25, 0.4], [-0.4, 0.25, 0.4]])
    ground = Ground(light=(1.0,) * 3, dark=(1.0,) * 3, fog=1e9)
    pictures = [
        draw_ground(from_above(), ground=ground, shadow=cast_shadow(points[None], faces=faces, ground=ground))
        for points, faces in ((cloud, None), (plate, torch.tensor([[0, 1, 2], [0, 2, 3]])))
    ]
    torch.testing.assert_close(pictures[0][14:26, 14:26], pictures[1][14:26, 14:26], atol=1e-5, rtol=0)


def test_the_shadow_follows_its_frame():
    plate = torch.tensor([[-0.2, 0.1, -0.2], [0.2, 0.1, -0.2], [0.2, 0.1, 0.2], [-0.2, 0.1, 0.2]])
    clip = torch.stack([plate, plate + torch.tensor([0.5, 0.0, 0.0])])
    faces = torch.tensor([[0, 1, 2], [0, 2, 3]])
    view = from_above()
    camera = Camera(view.T_camera_world.expand(3, 2, 4, 4), view.K, 40, 40)
    pictures = draw_ground(camera, shadow=cast_shadow(clip, faces=faces))
    assert pictures.shape == (3, 2, 40, 40, 3)
    alone = draw_ground(view, shadow=cast_shadow(clip[1:], faces=faces))
    torch.testing.assert_close(pictures[2, 1], alone)
    assert not torch.allclose(pictures[0, 0], pictures[0, 1])


def test_an_asset_without_points_casts_no_shadow():
    assert float(cast_shadow(torch.zeros(2, 0, 3)).darkness.abs().sum()) == 0.0


def test_splats_below_the_ground_are_invisible_and_the_rest_untouched():
    splats = rest_splats(bind(box_asset(lift=-0.5), count=200))
    hidden = hide_below_ground(splats)
    below = splats.means[:, 1] < 0
    assert 0 < int(below.sum()) < 200
    assert float(hidden.opacities[below].abs().sum()) == 0.0
    assert torch.equal(hidden.opacities[~below], splats.opacities[~below])
    above = Gaussians(splats.means + torch.tensor([0.0, 1.0, 0.0]), *list(splats.__dict__.values())[1:])
    assert hide_below_ground(above) is above


def test_surfaces_below_the_ground_are_cut_out_of_a_picture():
    # From height 1, a wall at depth 2 is below the ground where the ray falls by more than 1/2.
    camera = Camera(look_at(torch.tensor([0.0, 1.0, 0.0]), torch.tensor([0.0, 1.0, -1.0])),
                    torch.tensor([[32.0, 0, 32], [0, 32.0, 32], [0, 0, 1]]), 64, 64)  # fmt: skip
    wall = Rendering(torch.ones(64, 64, 4), torch.full((64, 64), 2.0))
    kept = cut_below_ground(wall, camera, tolerance=0.0).rgba[..., 3]
    falls = (torch.arange(64) + 0.5 - 32) / 32
    assert torch.equal(kept, (falls <= 0.5).float()[:, None].expand(64, 64))


def test_compositing_is_premultiplied():
    picture = Rendering(torch.tensor([0.2, 0.1, 0.0, 0.4]).expand(2, 2, 4), torch.zeros(2, 2))
    blended = composite(picture, torch.full((2, 2, 3), 0.5))
    torch.testing.assert_close(blended[0, 0], torch.tensor([0.5, 0.4, 0.3]))


def test_the_ground_scales_with_the_asset():
    points = torch.rand(3, 50, 3, generator=torch.Generator().manual_seed(0))
    small, large = fitting_ground(points), fitting_ground(10 * points)
    assert large.cell == pytest.approx(10 * small.cell)
    assert large.shadow_decay == pytest.approx(small.shadow_decay / 10)


def nodding(frames: int) -> Motion:
    asset = box_asset()
    angle = torch.linspace(0, 1, frames)
    turns = torch.zeros(frames, 2, 4)
    turns[:, 0, 0] = 1
    turns[:, 1, 0], turns[:, 1, 1] = (angle / 2).cos(), (angle / 2).sin()
    return Motion(Pose(torch.stack([0 * angle, 0 * angle, angle], -1), turns), 12.0, asset.name)


@pytest.mark.parametrize("mode", ["mesh", "splats", "clay", "motion"])
def test_a_clip_has_the_asked_shape_and_shows_the_asset_on_the_ground(mode):
    style = ClipStyle(mode=mode, width=40, height=32, azimuth=(30.0, 120.0))
    frames = draw_clip(box_asset(), nodding(3), style=style)
    assert frames.shape == (2, 3, 32, 40, 3)
    assert bool(torch.isfinite(frames).all()) and float(frames.min()) >= 0 and float(frames.max()) <= 1 + 1e-5
    empty = draw_clip(box_asset(), nodding(3), style=style, splats=None, ground=Ground(shadow=0.0))
    sky = torch.tensor(Ground().sky)
    assert float((empty[:, :, 0] - sky).abs().max()) < 1e-3  # the asset does not touch the upper border
    middle = frames[:, :, 14:18, 18:22].mean((2, 3))
    assert float((middle - sky).abs().sum(-1).min()) > 0.1


@pytest.mark.parametrize("mode", ["splats", "clay", "motion"])
def test_gradients_of_a_clip_reach_the_pose(mode):
    motion, asset = nodding(2), box_asset()
    rotations = motion.pose.rotations.clone().requires_grad_()
    root = motion.pose.root.clone().requires_grad_()
    splats = bind(asset, count=300)
    style = ClipStyle(mode=mode, width=32, height=32)
    frames = draw_clip(asset, Pose(root, rotations), style=style, splats=splats)
    grads = torch.autograd.grad(frames[:, :, :, :16].sum(), [rotations, root])
    assert all(bool(torch.isfinite(grad).all()) and float(grad.abs().max()) > 0 for grad in grads)


def test_a_single_pose_and_rest_are_clips_of_one_frame():
    style = ClipStyle(width=16, height=16)
    asset = box_asset()
    rest = draw_clip(asset, style=style)
    assert rest.shape == (1, 1, 16, 16, 3)
    torch.testing.assert_close(draw_clip(asset, rest_pose(asset.skeleton), style=style), rest)
    with pytest.raises(JigdollError, match="one axis of frames"):
        draw_clip(asset, Pose(torch.zeros(2, 3, 3), torch.zeros(2, 3, 2, 4)), style=style)


@pytest.mark.parametrize("mode", ["mesh", "clay", "motion"])
def test_a_clip_in_pieces_is_the_whole_clip(mode):
    style = ClipStyle(mode=mode, width=24, height=20, azimuth=(30.0, 120.0))
    asset, motion = box_asset(), nodding(5)
    pieces = list(draw_clip_in_pieces(asset, motion, style=style, piece=2))
    assert [piece.shape[1] for piece in pieces] == [2, 2, 1]
    whole = to_uint8(draw_clip(asset, motion, style=style)).astype(int)
    together = np.concatenate(pieces, axis=1).astype(int)
    # The clay's depth cue measures the size over the frames at hand, hence the small tolerance.
    assert np.abs(together - whole).max() <= (0 if mode == "mesh" else 4)


def test_a_character_without_a_mesh_is_a_clip_of_the_bare_ground():
    skeleton = box_asset().skeleton
    empty = RiggedAsset(
        "nobody", Mesh(torch.zeros(0, 3), torch.zeros(0, 3, dtype=torch.long), torch.zeros(0, 3)), skeleton,
        Weights(torch.zeros(0, 1, dtype=torch.long), torch.zeros(0, 1)),
    )  # fmt: skip
    frames = draw_clip(empty, nodding(2), style=ClipStyle(width=8, height=8))
    assert frames.shape == (1, 2, 8, 8, 3) and bool(torch.isfinite(frames).all())
    with pytest.raises(JigdollError, match="no face of any area"):
        draw_clip(empty, nodding(2), style=ClipStyle(mode="splats", width=8, height=8))


def test_bones_are_drawn_where_the_joints_are():
    style = ClipStyle(width=64, height=64, ground=False)
    plain = draw_clip(box_asset(), style=style)
    with_bones = draw_clip(box_asset(), style=ClipStyle(width=64, height=64, ground=False, skeleton=True))
    changed = (plain - with_bones).abs().sum(-1)[0, 0] > 0.05
    rows, columns = torch.nonzero(changed, as_tuple=True)
    assert len(rows) > 10
    assert int(columns.min()) >= 28 and int(columns.max()) <= 36  # the bone stands on the camera's axis


def test_a_turntable_shows_all_sides_at_one_distance():
    frames = draw_turntable(box_asset(), style=ClipStyle(width=24, height=24, ground=False), frames=4)
    assert frames.shape == (1, 4, 24, 24, 3)
    # The box is square in plan and painted by position: opposite sides have other colours, the same outline.
    background = frames[0, 0, 0, 0]
    outlines = [(frame - background).abs().sum(-1) > 0.05 for frame in frames[0]]
    assert all(torch.equal(outlines[0], outline) for outline in outlines[1:])
    assert not torch.allclose(frames[0, 0], frames[0, 2])


def test_a_contact_sheet_holds_every_picture_in_reading_order():
    pictures = [np.full((4, 6, 3), 10 * k, np.uint8) for k in range(5)]
    sheet = contact_sheet(pictures, 3, gap=1)
    assert sheet.shape == (2 * 5 + 1, 3 * 7 + 1, 3)
    for k in range(5):
        row, column = divmod(k, 3)
        assert (sheet[1 + 5 * row : 5 + 5 * row, 1 + 7 * column : 7 + 7 * column] == 10 * k).all()
    assert contact_sheet(pictures, 5, labels=list("abcde")).shape[0] > 4 + 10
    assert contact_sheet([], 3).shape == (1, 1, 3)


def test_a_picture_of_an_asset_is_square_and_shows_it():
    picture = picture_of(box_asset(), size=32)
    assert picture.shape == (32, 32, 3) and picture.dtype == np.uint8
    assert picture[16, 16].tolist() != picture[0, 0].tolist()
    assert picture_of(box_asset(), nodding(3).pose, size=16).shape == (3, 16, 16, 3)


def test_the_ground_in_torch_is_the_compiled_one():
    azimuth = torch.tensor([[20.0, 80.0, 200.0], [60.0, 150.0, 300.0]])
    seen = orbit(torch.tensor([0.1, 0.3, 0.2]), 2.5, azimuth=azimuth, elevation=9.0, width=60, height=44)
    points = torch.rand(3, 50, 3, generator=torch.Generator().manual_seed(0)) - torch.tensor([0.5, 0.1, 0.5])
    ground = Ground(phase=(0.1, 0.3), cell=0.3, fog=5.0)
    shadow = cast_shadow(points, ground=ground)
    compiled = draw_ground(seen, ground=ground, shadow=shadow)
    flat = Camera(seen.T_camera_world.reshape(6, 4, 4).double(), seen.K.reshape(6, 3, 3).double(), 60, 44)
    plain = draw_ground_reference(flat, [0, 1, 2] * 2, ground=ground, shadow=shadow)
    torch.testing.assert_close(compiled.flatten(0, 1), plain.float(), rtol=0, atol=1e-5)
    quick = Camera(flat.T_camera_world.float(), flat.K.float(), 60, 44)
    single = draw_ground_reference(quick, [0, 1, 2] * 2, ground=ground, shadow=shadow)
    torch.testing.assert_close(single, plain.float(), rtol=0, atol=2e-3)


@pytest.mark.parametrize("softness", [0.0, 1.5])
@pytest.mark.parametrize("triangles", [True, False])
def test_the_shadow_in_torch_is_the_compiled_one(triangles: bool, softness: float):
    generator = torch.Generator().manual_seed(1)
    points = torch.rand(2, 90, 3, generator=generator) - torch.tensor([0.5, 0.2, 0.5])
    faces = torch.randint(90, (70, 3), generator=generator) if triangles else None
    ground = Ground(shadow_softness=softness)
    compiled, plain = (cast(points, faces=faces, ground=ground) for cast in (cast_shadow, cast_shadow_reference))
    assert torch.equal(compiled.corner, plain.corner) and torch.equal(compiled.cell, plain.cell)
    wrong = (compiled.darkness - plain.darkness).abs() > 1e-4
    # A cell whose centre lies on an outline to the last digit may fall to either side.
    assert float(compiled.darkness.max()) > 0.5 and float(wrong.float().mean()) < (2e-3 if triangles else 1e-9)
