"""Splats lie on their surface, keep its weights, and learn what it looks like."""

import math

import pytest
import torch

from jigdoll.errors import JigdollError
from jigdoll.kinematics import make_skeleton
from jigdoll.math.rotations import quaternion_to_matrix
from jigdoll.math.transforms import translation
from jigdoll.render.rasterizer_cpu import rasterize_cpu
from jigdoll.render.splat_asset import capture, likeness, splat_asset
from jigdoll.splats.bind import bind, quats_facing, rebind, sample_colors, sample_surface
from jigdoll.splats.fit import FitConfig, Views, fit
from jigdoll.splats.image_loss import image_loss, image_loss_reference, psnr, ssim_map
from jigdoll.types import Camera, Material, Mesh, RiggedAsset, SkinnedGaussians, Weights


def ball(rings: int = 10) -> RiggedAsset:
    """A unit sphere painted by position, whose weight for the second joint is the height (y + 1) / 2."""
    segments = 2 * rings
    angles = [(math.pi * i / rings, 2 * math.pi * j / segments) for i in range(rings + 1) for j in range(segments)]
    points = torch.tensor([[math.sin(a) * math.cos(b), math.cos(a), math.sin(a) * math.sin(b)] for a, b in angles])
    grid = torch.arange((rings + 1) * segments).reshape(rings + 1, segments)
    corners = (grid[:-1], grid[:-1].roll(-1, 1), grid[1:].roll(-1, 1), grid[1:])
    quads = torch.stack(corners, -1).reshape(-1, 4).tolist()
    faces = torch.tensor([triangle for a, b, c, d in quads for triangle in ((a, b, c), (a, c, d))])
    up = ((points[:, 1] + 1) / 2).clamp(0, 1)
    skeleton = make_skeleton(("pelvis", "head"), (-1, 0), translation(torch.tensor([[0.0, 0, 0], [0.0, 1.0, 0.0]])))
    weights = Weights.from_dense(torch.stack([1 - up, up], -1))
    return RiggedAsset("ball", Mesh(points, faces, (points + 1) / 2), skeleton, weights)


def test_splats_lie_on_the_surface_facing_outwards():
    asset = ball(20)
    splats = bind(asset, count=500)
    radius = splats.means.norm(dim=-1)
    assert float(radius.min()) > 0.98 and float(radius.max()) <= 1 + 1e-5
    normals = quaternion_to_matrix(splats.quats)[:, :, 2]
    assert float((normals * splats.means).sum(-1).min()) > 0.98
    assert bool((splats.scales[:, 2] < splats.scales[:, :2].amin(-1)).all())


def test_splats_take_the_artists_weights_and_colours_within_their_face():
    splats = bind(ball(20), count=500)
    up = splats.weights.dense(2)[:, 1]
    torch.testing.assert_close(up, (splats.means[:, 1] + 1) / 2, atol=1e-5, rtol=0)
    torch.testing.assert_close(splats.colors, (splats.means + 1) / 2, atol=1e-5, rtol=0)


def test_samples_are_spread_by_area():
    # Two triangles, one three times as large: a stratified sample gives it three quarters, to the point.
    vertices = torch.tensor([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [3, 0, 1], [0, 1, 1]])
    mesh = Mesh(vertices, torch.tensor([[0, 1, 2], [3, 4, 5]]), torch.zeros(6, 3))
    face, shares = sample_surface(mesh, 400, seed=3)
    assert int((face == 1).sum()) == 300
    torch.testing.assert_close(shares.sum(-1), torch.ones(400))
    assert float(shares.min()) >= 0
    # Within the face the mean of a uniform spread is the centroid.
    torch.testing.assert_close(shares[face == 1].mean(0), torch.full((3,), 1 / 3), atol=0.01, rtol=0)


def test_degenerate_faces_get_no_splats_and_a_mesh_of_them_is_refused():
    vertices = torch.tensor([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]])
    mesh = Mesh(vertices, torch.tensor([[0, 0, 1], [0, 1, 2], [2, 2, 2]]), torch.zeros(3, 3))
    assert set(sample_surface(mesh, 50)[0].tolist()) == {1}
    for faces in (torch.zeros(0, 3, dtype=torch.long), torch.tensor([[0, 0, 1]])):
        with pytest.raises(JigdollError, match="no face of any area"):
            sample_surface(Mesh(vertices, faces, torch.zeros(3, 3)), 10)


def test_colours_come_from_the_texture_where_there_is_one():
    texels = torch.zeros(2, 2, 4, dtype=torch.uint8)
    texels[0, 0], texels[1, 1] = torch.tensor([255, 0, 0, 255]), torch.tensor([0, 0, 255, 255])
    uvs = torch.tensor([[0.1, 0.1], [0.4, 0.1], [0.1, 0.4], [0.6, 0.6], [0.9, 0.6], [0.6, 0.9]])
    mesh = Mesh(
        torch.zeros(6, 3), torch.tensor([[0, 1, 2], [3, 4, 5], [0, 1, 2]]), torch.full((6, 3), 0.25), uvs,
        (Material("picture", (1.0, 1.0, 1.0, 1.0), texels), Material("plain", (1.0, 1.0, 1.0, 1.0))),
        torch.tensor([0, 0, 1]),
    )  # fmt: skip
    colors = sample_colors(mesh, torch.tensor([0, 1, 2]), torch.full((3, 3), 1 / 3))
    torch.testing.assert_close(colors, torch.tensor([[1.0, 0, 0], [0, 0, 1.0], [0.25, 0.25, 0.25]]))


def test_the_z_axis_of_a_facing_splat_is_the_normal():
    normals = torch.randn(200, 3, generator=torch.Generator().manual_seed(0))
    normals = torch.cat([torch.nn.functional.normalize(normals, dim=-1), torch.eye(3), -torch.eye(3)])
    torch.testing.assert_close(quaternion_to_matrix(quats_facing(normals))[:, :, 2], normals, atol=1e-5, rtol=0)


def test_rebinding_reads_the_weights_of_the_nearest_surface():
    asset = ball(20)
    splats = bind(asset, count=100)
    lifted = SkinnedGaussians(
        1.1 * splats.means, splats.quats, splats.scales, splats.opacities, splats.colors,
        Weights(torch.zeros(100, 1, dtype=torch.long), torch.ones(100, 1)),
    )  # fmt: skip
    again = rebind(lifted, asset)
    torch.testing.assert_close(again.weights.dense(2), splats.weights.dense(2), atol=0.01, rtol=0)


def test_views_are_cameras_around_the_mesh_that_see_all_of_it():
    asset = ball()
    views = capture(asset.mesh, 6, size=32, seed=1)
    alpha = views.rgba[..., 3]
    border = torch.cat([alpha[:, 0], alpha[:, -1], alpha[:, :, 0], alpha[:, :, -1]], 1)
    assert float(border.abs().max()) == 0.0
    share = alpha.mean((1, 2))  # a disc that leaves 12 % free covers pi/4 0.88^2 of the picture, perspective aside
    torch.testing.assert_close(share, torch.full((6,), math.pi / 4 * 0.88**2), atol=0.05, rtol=0)
    assert not torch.equal(capture(asset.mesh, 6, size=32, seed=2).rgba, views.rgba)


QUICK = FitConfig(iterations=60, max_gaussians=400, splits=(0.3, 0.6))


def test_a_fit_makes_the_splats_look_like_the_mesh_on_unseen_views():
    asset = ball()
    start = bind(asset, count=250)
    losses = []
    views = capture(asset.mesh, 20, size=48)
    fitted = fit(
        start, views, asset.mesh, rasterizer=rasterize_cpu, config=QUICK,
        progress=lambda fraction, what: losses.append((fraction, float(what.split()[-1]))),
    )  # fmt: skip
    assert [fraction for fraction, _ in losses] == [i / 60 for i in range(1, 61)]
    assert losses[-1][1] < losses[0][1]
    before, after = likeness(asset, start, views=5, size=48), likeness(asset, fitted, views=5, size=48)
    assert after > before + 7 and after > 25


def test_fitted_splats_stay_near_the_surface_flat_and_few():
    asset = ball()
    start = bind(asset, count=250)
    fitted = fit(start, capture(asset.mesh, 10, size=40), asset.mesh, rasterizer=rasterize_cpu, config=QUICK)
    assert 250 < fitted.means.shape[0] <= 400
    leash = float(start.scales[:, :2].mean())
    assert float((fitted.means.norm(dim=-1) - 1).max()) <= leash + 1e-4
    assert bool((fitted.scales[:, 2] < fitted.scales[:, :2].amax(-1)).all())
    torch.testing.assert_close(fitted.quats.norm(dim=-1), torch.ones(len(fitted.quats)))
    assert float(fitted.colors.min()) >= 0 and float(fitted.colors.max()) <= 1


def test_the_same_seed_gives_the_same_splats_bound_to_the_skeleton():
    asset = ball()
    config = FitConfig(iterations=12, max_gaussians=300, splits=(0.5,))
    first, second = (splat_asset(asset, count=150, views=4, size=32, config=config) for _ in range(2))
    assert torch.equal(first.means, second.means) and torch.equal(first.colors, second.colors)
    assert torch.equal(first.weights.values, second.weights.values)
    height = first.means[:, 1] / first.means.norm(dim=-1)
    torch.testing.assert_close(first.weights.dense(2)[:, 1], (height + 1) / 2, atol=0.05, rtol=0)


def test_nothing_to_fit_is_refused():
    asset = ball()
    views = capture(asset.mesh, 1, size=8)
    none = Views(views.rgba[:0], Camera(views.camera.T_camera_world[:0], views.camera.K[:0], 8, 8))
    with pytest.raises(JigdollError, match="0 views"):
        fit(bind(asset, count=10), none, asset.mesh, rasterizer=rasterize_cpu)


def test_psnr_of_a_uniform_error_is_its_logarithm():
    assert psnr(torch.zeros(10), torch.full((10,), 0.1)) == pytest.approx(20.0, abs=1e-4)


def test_ssim_is_one_for_equal_pictures_and_matches_skimage():
    from skimage.metrics import structural_similarity

    generator = torch.Generator().manual_seed(0)
    a = torch.rand(40, 30, 3, generator=generator)
    b = (a + 0.2 * torch.randn(40, 30, 3, generator=generator)).clamp(0, 1)
    torch.testing.assert_close(ssim_map(a, a), torch.ones(40, 30, 3), atol=1e-5, rtol=0)
    _, full = structural_similarity(
        a.numpy(), b.numpy(), channel_axis=-1, data_range=1.0, gaussian_weights=True, sigma=1.5,
        use_sample_covariance=False, full=True,
    )  # fmt: skip
    inner = (slice(8, -8), slice(8, -8))  # away from the border both see whole windows
    torch.testing.assert_close(ssim_map(a, b)[inner], torch.from_numpy(full)[inner].float(), atol=1e-4, rtol=0)


@pytest.mark.parametrize("size", [(1, 1), (4, 7), (30, 20)])
@pytest.mark.parametrize("share", [0.0, 0.2, 1.0])
def test_the_compiled_loss_equals_the_reference_with_its_gradient(size: tuple[int, int], share: float):
    generator = torch.Generator().manual_seed(0)
    target = torch.rand(*size, 4, generator=generator)
    drawn = (target + 0.3 * torch.rand(*size, 4, generator=generator) - 0.1).requires_grad_()
    fast, slow = image_loss(drawn, target, share=share), image_loss_reference(drawn, target, share=share)
    torch.testing.assert_close(fast, slow, atol=1e-6, rtol=1e-5)
    (fast_grad,), (slow_grad,) = torch.autograd.grad(3 * fast, drawn), torch.autograd.grad(3 * slow, drawn)
    torch.testing.assert_close(fast_grad, slow_grad, atol=1e-4 * float(slow_grad.abs().max()), rtol=1e-3)


def test_the_reference_loss_has_the_slope_of_finite_differences():
    generator = torch.Generator().manual_seed(1)
    target = torch.rand(6, 5, 2, generator=generator, dtype=torch.float64)
    drawn = torch.rand(6, 5, 2, generator=generator, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: image_loss_reference(x, target, share=0.4), (drawn,))
