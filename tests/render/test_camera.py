"""Cameras see what they should, from where they should."""

import math

import pytest
import torch

from jigdoll.errors import JigdollError
from jigdoll.math.transforms import apply, rigid_inverse
from jigdoll.render.camera import box_center, fit_orbit, follow, intrinsics, look_at, low_pass, orbit
from jigdoll.types import Camera


def project(points: torch.Tensor, camera: Camera) -> torch.Tensor:
    seen = apply(camera.T_camera_world, points) @ camera.K.mT
    return seen[..., :2] / seen[..., 2:]


def test_the_target_lands_in_the_middle_at_its_distance():
    eye, target = torch.tensor([3.0, 2.0, -1.0]), torch.tensor([0.5, 0.25, 0.0])
    seen = apply(look_at(eye, target), target[None])[0]
    torch.testing.assert_close(seen, torch.tensor([0.0, 0.0, float((target - eye).norm())]), atol=1e-6, rtol=0)


def test_look_at_is_a_proper_rotation_with_up_at_the_top():
    T = look_at(torch.tensor([3.0, 2.0, -1.0]), torch.zeros(3))
    torch.testing.assert_close(T[:3, :3] @ T[:3, :3].T, torch.eye(3), atol=1e-6, rtol=0)
    assert float(torch.linalg.det(T[:3, :3])) == pytest.approx(1.0, abs=1e-5)
    assert float(apply(T, torch.tensor([[0.0, 1.0, 0.0]]))[0, 1]) < float(apply(T, torch.zeros(1, 3))[0, 1])


def test_looking_straight_down_is_still_a_rotation():
    T = look_at(torch.tensor([0.0, 5.0, 0.0]), torch.zeros(3))
    torch.testing.assert_close(T[:3, :3] @ T[:3, :3].T, torch.eye(3), atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("azimuth", "place"), [(0.0, (0.0, 0.0, 2.0)), (90.0, (2.0, 0.0, 0.0)), (180.0, (0.0, 0.0, -2.0))]
)
def test_azimuth_counts_from_the_face_to_the_left_side(azimuth: float, place: tuple[float, float, float]):
    camera = orbit(torch.zeros(3), 2.0, azimuth=azimuth, elevation=0.0, width=8, height=8)
    eye = rigid_inverse(camera.T_camera_world)[:3, 3]
    torch.testing.assert_close(eye, torch.tensor(place), atol=1e-6, rtol=0)


def test_the_characters_left_is_on_the_right_of_a_picture_of_its_face():
    camera = orbit(torch.zeros(3), 2.0, azimuth=0.0, elevation=0.0, width=100, height=100)
    assert float(project(torch.tensor([[0.3, 0.0, 0.0]]), camera)[0, 0]) > 50


def test_the_field_of_view_spans_the_shorter_side():
    K = intrinsics(200, 100, field_of_view=90.0)
    assert float(K[0, 0]) == pytest.approx(50.0, rel=1e-6)  # tan(45 deg) = 1, so f = 100 / 2


@pytest.mark.parametrize("width", [0, -3])
def test_a_picture_without_pixels_is_refused(width: int):
    with pytest.raises(JigdollError, match="at least 1"):
        intrinsics(width, 10)


def test_a_fitted_camera_touches_the_margin_and_never_crosses_it():
    points = torch.rand(200, 3, generator=torch.Generator().manual_seed(0)) * torch.tensor([1.0, 0.4, 2.5])
    azimuths = torch.arange(0.0, 360.0, 30.0)
    camera = fit_orbit(points, azimuth=azimuths, elevation=20.0, width=120, height=80, margin=0.1)
    pixels = project(points, camera)
    reach = ((pixels - torch.tensor([60.0, 40.0])).abs() / torch.tensor([60.0, 40.0])).amax((-1, -2))
    torch.testing.assert_close(reach, torch.full_like(reach, 0.9), atol=1e-4, rtol=0)


def test_the_low_pass_leaves_even_motion_alone_and_damps_shaking():
    frames = torch.arange(24.0)
    even = torch.stack([0.1 * frames, torch.zeros(24), -0.05 * frames + 2], -1)
    torch.testing.assert_close(low_pass(even, radius=4.0), even, atol=1e-5, rtol=0)
    shaking = even.clone()
    shaking[:, 1] += torch.where(frames % 2 == 0, 0.1, -0.1)
    assert float(low_pass(shaking, radius=4.0)[:, 1].abs().max()) < 0.02


def test_a_following_camera_keeps_an_evenly_moving_shape_still_in_the_picture():
    shape = torch.rand(50, 3, generator=torch.Generator().manual_seed(1))
    clip = shape + 0.2 * torch.arange(10.0)[:, None, None] * torch.tensor([0.0, 0.0, 1.0])
    camera = follow(clip, azimuth=torch.tensor([30.0, 120.0]), width=64, height=48)
    assert camera.T_camera_world.shape == (2, 10, 4, 4)
    pixels = project(clip[None], camera)
    torch.testing.assert_close(pixels, pixels[:, :1].expand_as(pixels), atol=1e-2, rtol=0)
    center = project(box_center(clip)[None, :, None], camera)
    torch.testing.assert_close(center, torch.tensor([32.0, 24.0]).expand_as(center), atol=1e-2, rtol=0)


def test_no_points_still_give_a_camera():
    camera = fit_orbit(torch.zeros(0, 3), width=4, height=4)
    assert bool(torch.isfinite(camera.T_camera_world).all())
    assert math.isclose(float(rigid_inverse(camera.T_camera_world)[:3, 3].norm()), 1.0, rel_tol=1e-5)
