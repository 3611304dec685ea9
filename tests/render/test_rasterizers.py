"""The rasterizers agree with each other, with gsplat's own torch code and with finite differences."""

import inspect
import math
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor

from jigdoll.errors import JigdollError, MissingExtra
from jigdoll.protocols import Rasterizer
from jigdoll.render import harmonics, rasterizer_cpu, rasterizer_gsplat
from jigdoll.render.rasterizer import default_rasterizer
from jigdoll.render.rasterizer_cpu import rasterize_cpu
from jigdoll.render.rasterizer_gsplat import gsplat_arguments, rasterize_gsplat
from jigdoll.render.rasterizer_reference import rasterize_reference
from jigdoll.types import Camera, Gaussians, Rendering

FIELDS = ("means", "covariances", "opacities", "colors")
KINDS = ("round", "thin", "huge", "opaque", "behind", "transparent")


def covariances_of(quats: Tensor, scales: Tensor) -> Tensor:
    w, x, y, z = torch.nn.functional.normalize(quats, dim=-1).unbind(-1)
    rows = [
        1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
        2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
        2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y),
    ]  # fmt: skip
    M = torch.stack(rows, -1).reshape(*quats.shape[:-1], 3, 3) * scales[..., None, :]
    return M @ M.transpose(-1, -2)


def camera_at(distance: float, *, width: int, height: int, degrees: float = 40, dtype=torch.float64) -> Camera:
    focal = width / 2 / math.tan(math.radians(degrees / 2))
    T = torch.eye(4, dtype=dtype)
    T[2, 3] = distance
    K = torch.tensor([[focal, 0, width / 2], [0, focal, height / 2], [0, 0, 1]], dtype=dtype)
    return Camera(T, K, width, height)


def random_scene(seed: int, kind: str = "round", *, count: int = 40, width: int = 37, height: int = 29):
    """A float64 scene whose numbers are exact in float32, and a camera that looks at it from somewhere."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    means, quats, scales = 0.6 * normal(count, 3), normal(count, 4), 0.08 * torch.exp(0.5 * normal(count, 3))
    opacities = 0.05 + 0.94 * torch.rand(count, generator=generator)
    if kind == "thin":
        scales = scales * torch.tensor([6.0, 1.0, 0.002])
    if kind == "huge":
        scales[::3] *= 30
    if kind == "opaque":
        opacities[::2] = 1.0
    if kind == "behind":
        means[:, 2] *= 8
    if kind == "transparent":
        opacities[::2] *= 0.01
    camera = camera_at(3, width=width, height=height, dtype=torch.float32)
    T = camera.T_camera_world.clone()
    T[:3, :3] = torch.linalg.qr(normal(3, 3)).Q
    T[0, :3] *= torch.linalg.det(T[:3, :3]).sign()
    covariances = covariances_of(quats, scales)
    scene = Gaussians(
        means.double(), ((covariances + covariances.mT) / 2).double(), opacities.double(),
        torch.rand(count, 3, generator=generator).double(),
    )  # fmt: skip
    return scene, Camera(T.double(), camera.K.double(), width, height)


def cast(scene: Gaussians, dtype: torch.dtype) -> Gaussians:
    return Gaussians(*(getattr(scene, field).to(dtype) for field in FIELDS))


def leaves(scene: Gaussians) -> Gaussians:
    return Gaussians(*(getattr(scene, field).detach().clone().requires_grad_() for field in FIELDS))


def random_loss(picture: Rendering, seed: int = 1) -> Tensor:
    """A random but smooth function of all outputs, the same for every dtype."""
    generator = torch.Generator().manual_seed(seed)
    g_rgba = torch.randn(picture.rgba.shape, generator=generator, dtype=torch.float64)
    g_depth = torch.randn(picture.depth.shape, generator=generator, dtype=torch.float64)
    return (picture.rgba.double() * g_rgba).sum() + (picture.depth.double() * g_depth).sum()


def values_and_gradients(rasterizer: Rasterizer, scene: Gaussians, camera: Camera) -> dict[str, Tensor]:
    scene = leaves(scene)
    picture = rasterizer(scene, camera)
    random_loss(picture).backward()
    gradients = {field: getattr(scene, field).grad.double() for field in FIELDS}
    return {"rgba": picture.rgba.detach().double(), "depth": picture.depth.detach().double(), **gradients}


def relative_error(got: Tensor, want: Tensor) -> float:
    return float((got - want).norm() / want.norm().clamp_min(1e-12))


def gsplat_picture(scene: Gaussians, camera: Camera) -> Rendering:
    """gsplat's torch projection, composited densely by the rules of its CUDA kernels."""
    from gsplat.cuda._torch_impl import _fully_fused_projection

    radii, centers, depths, conics, _ = (
        t if t is None else t[0]
        for t in _fully_fused_projection(
            scene.means, scene.covariances, camera.T_camera_world[None], camera.K[None], camera.width, camera.height
        )
    )
    light = torch.ones(camera.height, camera.width, dtype=scene.means.dtype)
    done = torch.zeros(camera.height, camera.width, dtype=torch.bool)
    picture = torch.zeros(camera.height, camera.width, 5, dtype=scene.means.dtype)
    ys, xs = (torch.arange(n, dtype=light.dtype) + 0.5 for n in (camera.height, camera.width))
    for n in depths.argsort(stable=True).tolist():
        if not bool((radii[n] > 0).all()):
            continue
        dx, dy = centers[n, 0] - xs, (centers[n, 1] - ys)[:, None]
        a, b, c = conics[n]
        sigma = 0.5 * (a * dx * dx + c * dy * dy) + b * dx * dy
        alpha = (scene.opacities[n] * torch.exp(-sigma)).clamp_max(0.999)
        takes_part = (sigma >= 0) & (alpha >= 1 / 255) & ~done
        alpha = torch.where(takes_part, alpha, 0)
        done = done | (takes_part & (light * (1 - alpha) <= 1e-4))
        alpha = torch.where(done, 0, alpha)
        values = torch.cat([scene.colors[n], torch.ones(1, dtype=light.dtype), depths[n, None]])
        picture = picture + (alpha * light)[..., None] * values
        light = light * (1 - alpha)
    return Rendering(picture[..., :4], picture[..., 4])


@pytest.mark.parametrize("kind", KINDS)
def test_the_reference_is_gsplats_torch_code_in_values_and_gradients(kind: str) -> None:
    for seed in range(10):
        scene, camera = random_scene(seed, kind)
        got, want = (values_and_gradients(r, scene, camera) for r in (rasterize_reference, gsplat_picture))
        for name in want:
            assert relative_error(got[name], want[name]) < 1e-9, (name, seed)


@pytest.mark.parametrize("kind", KINDS)
def test_the_fast_rasterizer_is_gsplats_torch_code_in_values_and_gradients(kind: str) -> None:
    for seed in range(10):
        scene, camera = random_scene(seed, kind)
        got = values_and_gradients(rasterize_cpu, cast(scene, torch.float32), camera)
        want = values_and_gradients(gsplat_picture, scene, camera)
        for name in want:
            assert relative_error(got[name], want[name]) < 1e-4, (name, seed)


@pytest.mark.parametrize("kind", KINDS)
def test_the_fast_gradient_is_the_finite_difference_of_the_reference(kind: str) -> None:
    # No pixel of these scenes is so near to a cut (alpha at 1/255, light at 1e-4) that rounding takes it across.
    for seed in range(10, 20):
        scene, camera = random_scene(seed, kind, count=20)
        got = values_and_gradients(rasterize_cpu, cast(scene, torch.float32), camera)
        for field in FIELDS:
            # Along its own gradient g / |g| a function grows by |g|.
            direction, step = got[field] / got[field].norm(), 1e-8 * float(getattr(scene, field).square().mean().sqrt())
            ends = [
                random_loss(rasterize_reference(replace(scene, **{field: moved}), camera))
                for moved in (getattr(scene, field) - step * direction, getattr(scene, field) + step * direction)
            ]
            slope = (ends[1] - ends[0]) / (2 * step)
            assert float(slope) == pytest.approx(float(got[field].norm()), rel=1e-4), (field, seed)


@pytest.mark.parametrize("rasterizer", [rasterize_reference, rasterize_cpu])
def test_a_round_kernel_on_the_axis_has_the_alpha_of_its_formula(rasterizer: Rasterizer) -> None:
    camera = camera_at(0, width=9, height=7, dtype=torch.float32)
    sigma, z, opacity = 0.25, 2.0, 0.8
    color = torch.tensor([[0.2, 0.5, 0.9]])
    scene = Gaussians(torch.tensor([[0, 0, z]]), sigma**2 * torch.eye(3)[None], torch.tensor([opacity]), color)
    picture = rasterizer(scene, camera)
    # alpha = o exp(-d^2 / 2 v), v = (f sigma / z)^2 + 0.3; the axis meets the picture in (4.5, 3.5).
    variance = (float(camera.K[0, 0]) * sigma / z) ** 2 + 0.3
    squares = (torch.arange(9) + 0.5 - 4.5) ** 2 + ((torch.arange(7) + 0.5 - 3.5) ** 2)[:, None]
    alpha = opacity * torch.exp(-squares / (2 * variance))
    alpha = torch.where(alpha >= 1 / 255, alpha, 0)
    torch.testing.assert_close(picture.rgba[..., 3], alpha, rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(picture.rgba[..., :3], alpha[..., None] * color[0], rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(picture.depth, alpha * z, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("rasterizer", [rasterize_reference, rasterize_cpu])
def test_alpha_is_capped_cut_and_a_pixel_stops_before_it_is_black(rasterizer: Rasterizer) -> None:
    def light_through(opacities: list[float]) -> float:
        count = len(opacities)
        means = torch.tensor([[0.0, 0.0, 2.0 + 0.1 * n] for n in range(count)])
        scene = Gaussians(means, 1e-3 * torch.eye(3).expand(count, 3, 3), torch.tensor(opacities), torch.ones(count, 3))
        return 1 - float(rasterizer(scene, camera_at(0, width=1, height=1, dtype=torch.float32)).rgba[0, 0, 3])

    assert light_through([1.0]) == pytest.approx(1 - 0.999, rel=1e-3)
    assert light_through([1 / 256]) == 1
    assert light_through([1 / 254]) == pytest.approx(1 - 1 / 254, rel=1e-6)
    # 0.1 * 0.1 * 0.1 = 1e-3 is left; the next would leave 0.5e-4, so it is not drawn, nor is anything behind it.
    assert light_through([0.9, 0.9, 0.9, 0.95, 0.5]) == pytest.approx(1e-3, rel=1e-3)
    assert light_through([0.9, 0.9, 0.9, 0.5]) == pytest.approx(5e-4, rel=1e-3)


def assert_same_bits(a: Rendering, b: Rendering) -> None:
    assert torch.equal(a.rgba, b.rgba)
    assert torch.equal(a.depth, b.depth)


def test_the_order_of_the_kernels_does_not_matter_to_a_bit() -> None:
    scene, camera = random_scene(3)
    scene = cast(scene, torch.float32)
    shuffle = torch.randperm(scene.means.shape[0], generator=torch.Generator().manual_seed(0))
    shuffled = Gaussians(*(getattr(scene, field)[shuffle] for field in FIELDS))
    assert_same_bits(rasterize_cpu(scene, camera), rasterize_cpu(shuffled, camera))


def big_batch() -> tuple[Gaussians, Camera]:
    """Enough kernels for several jobs of every kind: 3 pictures of 2500."""
    scene, camera = random_scene(5, count=2500, width=90, height=70)
    scene = cast(scene, torch.float32)
    shifts = torch.tensor([[0.0, 0, 0], [0.1, 0, 0], [0, 0.1, 0.2]])[:, None]
    covariances = scene.covariances.expand(3, -1, -1, -1) * torch.tensor([0.1, 0.2, 0.3])[:, None, None, None]
    return Gaussians(scene.means + shifts, covariances, scene.opacities, scene.colors), camera


def test_the_number_of_threads_does_not_change_a_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    scene, camera = big_batch()
    results = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(rasterizer_cpu, "_thread_count", lambda threads=threads: threads)
        results.append(values_and_gradients(rasterize_cpu, scene, camera))
    for name, want in results[0].items():
        assert torch.equal(results[1][name], want), name
        assert torch.equal(results[2][name], want), name


def test_a_batch_is_its_pictures_one_by_one_and_shared_fields_add_their_gradients() -> None:
    scene, camera = big_batch()
    together = values_and_gradients(rasterize_cpu, scene, camera)
    views = camera.T_camera_world.float().expand(3, 4, 4)
    apart = leaves(scene)
    pictures = [
        rasterize_cpu(
            Gaussians(apart.means[i], apart.covariances[i], apart.opacities, apart.colors),
            Camera(views[i], camera.K.float(), camera.width, camera.height),
        )
        for i in range(3)
    ]
    joined = Rendering(torch.stack([p.rgba for p in pictures]), torch.stack([p.depth for p in pictures]))
    assert torch.equal(joined.rgba.double(), together["rgba"])
    assert torch.equal(joined.depth.double(), together["depth"])
    random_loss(joined).backward()
    for field in FIELDS:
        assert relative_error(getattr(apart, field).grad.double(), together[field]) < 1e-6, field


@pytest.mark.parametrize("rasterizer", [rasterize_reference, rasterize_cpu])
def test_one_scene_is_drawn_by_every_camera_of_a_grid(rasterizer: Rasterizer) -> None:
    scene, camera = random_scene(1, count=15)
    scene = cast(scene, torch.float32)
    turns = torch.stack([random_scene(seed)[1].T_camera_world for seed in range(6)]).reshape(2, 3, 4, 4)
    grid = leaves(scene)
    pictures = rasterizer(grid, Camera(turns, camera.K, camera.width, camera.height))
    assert pictures.rgba.shape == (2, 3, camera.height, camera.width, 4)
    one = rasterizer(scene, Camera(turns[1, 2], camera.K, camera.width, camera.height))
    assert torch.equal(pictures.rgba[1, 2], one.rgba)
    pictures.rgba.sum().backward()
    assert grid.means.grad is not None
    assert grid.means.grad.shape == (15, 3)


def test_harmonics_are_gsplats_and_color_the_picture() -> None:
    from gsplat.cuda._torch_impl import _spherical_harmonics

    scene, camera = random_scene(2)
    generator = torch.Generator().manual_seed(0)
    directions = torch.nn.functional.normalize(torch.randn(40, 3, generator=generator, dtype=torch.float64), dim=-1)
    for degree in range(4):
        bands = (degree + 1) ** 2
        coefficients = torch.randn(40, bands, 3, generator=generator, dtype=torch.float64)
        ours = (harmonics.basis(directions, degree)[..., None] * coefficients).sum(-2)
        torch.testing.assert_close(ours, _spherical_harmonics(degree, directions, coefficients), rtol=1e-9, atol=1e-9)
        colored = Gaussians(scene.means, scene.covariances, scene.opacities, 0.2 * coefficients)
        got = values_and_gradients(rasterize_cpu, cast(colored, torch.float32), camera)
        want = values_and_gradients(rasterize_reference, colored, camera)
        for name in want:
            assert relative_error(got[name], want[name]) < 1e-4, (name, degree)
    with pytest.raises(JigdollError, match="1, 4, 9 or 16"):
        harmonics.shade(torch.zeros(40, 5, 3).double(), scene.means, camera.T_camera_world)


def test_the_eye_of_the_harmonics_is_where_the_camera_stands() -> None:
    # With only the band -0.4886 x, a kernel seen along -x is brighter than 1/2 by that much.
    camera = camera_at(0, width=1, height=1)
    T = torch.tensor([[0.0, 0, 1, 0], [0, 1, 0, 0], [-1, 0, 0, 5], [0, 0, 0, 1]], dtype=torch.float64)
    coefficients = torch.zeros(1, 4, 3, dtype=torch.float64)
    coefficients[0, 3] = 1
    assert float((torch.linalg.inv(T) @ torch.tensor([0, 0, 0, 1.0]).double())[0]) == 5  # the camera is at x = 5
    seen = harmonics.shade(coefficients, torch.zeros(1, 3, dtype=torch.float64), T)
    torch.testing.assert_close(seen, torch.full((1, 3), 0.5 + 0.4886025119, dtype=torch.float64))
    assert camera.width == 1


@pytest.mark.parametrize("rasterizer", [rasterize_reference, rasterize_cpu])
def test_nothing_to_see_is_an_empty_picture_with_zero_gradients(rasterizer: Rasterizer) -> None:
    camera = camera_at(0, width=5, height=4, dtype=torch.float32)
    nothing = leaves(Gaussians(torch.zeros(0, 3), torch.zeros(0, 3, 3), torch.zeros(0), torch.zeros(0, 3)))
    behind = leaves(
        Gaussians(
            torch.tensor([[0.0, 0, -1], [0, 0, 0]]), torch.eye(3).expand(2, 3, 3), torch.ones(2), torch.ones(2, 3)
        )
    )
    for scene in (nothing, behind):
        picture = rasterizer(scene, camera)
        assert picture.rgba.shape == (4, 5, 4)
        assert not picture.rgba.any()
        assert not picture.depth.any()
        (picture.rgba.sum() + picture.depth.sum()).backward()
        assert scene.means.grad is not None
        assert not scene.means.grad.any()
    no_pictures = Gaussians(torch.zeros(0, 2, 3), torch.zeros(0, 2, 3, 3), torch.ones(2), torch.ones(2, 3))
    assert rasterizer(no_pictures, camera).rgba.shape == (0, 4, 5, 4)


@pytest.mark.parametrize("rasterizer", [rasterize_reference, rasterize_cpu])
@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("poison", [math.nan, math.inf])
def test_numbers_that_are_not_finite_are_refused_by_name(rasterizer: Rasterizer, field: str, poison: float) -> None:
    scene, camera = random_scene(0, count=11)
    fields = {f: getattr(scene, f).float().clone() for f in FIELDS}
    fields[field].view(11, -1)[9, 0] = poison
    with pytest.raises(JigdollError, match=r"Gaussian 9 of picture 0 .* not finite"):
        rasterizer(Gaussians(**fields), camera)


def test_cameras_that_cannot_see_are_refused() -> None:
    scene, camera = random_scene(0, count=3)
    scene = cast(scene, torch.float32)
    with pytest.raises(JigdollError, match="at least one pixel"):
        rasterize_cpu(scene, Camera(camera.T_camera_world, camera.K, 0, 5))
    with pytest.raises(JigdollError, match="focal length"):
        rasterize_cpu(scene, Camera(camera.T_camera_world, torch.zeros(3, 3), 5, 5))
    pair = Gaussians(scene.means.expand(2, 3, 3), scene.covariances.expand(2, 3, 3, 3), scene.opacities, scene.colors)
    with pytest.raises(JigdollError, match="do not fit together"):
        rasterize_cpu(pair, Camera(camera.T_camera_world.expand(3, 4, 4), camera.K, 5, 5))


def test_a_million_kernels_on_one_spot_are_drawn_until_the_pixel_is_full() -> None:
    count = 1_000_000
    camera = camera_at(2, width=5, height=5, dtype=torch.float32)
    scene = Gaussians(
        torch.zeros(count, 3),
        (1e-4 * torch.eye(3)).expand(count, 3, 3),
        torch.full((count,), 0.5),
        torch.ones(count, 3),
    )
    # Each takes half of the light in the middle; 2^-13 is left before the one that would leave less than 1e-4.
    assert float(rasterize_cpu(scene, camera).rgba[2, 2, 3]) == pytest.approx(1 - 2**-13, abs=1e-6)


def test_what_does_not_fit_into_memory_is_refused_with_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rasterizer_cpu.os, "sysconf", lambda name: {"SC_PAGE_SIZE": 1, "SC_PHYS_PAGES": 2**10}[name])
    scene, camera = random_scene(0, "huge")
    with pytest.raises(JigdollError, match=r"wants .* GiB of memory"):
        rasterize_cpu(cast(scene, torch.float32), camera)


def test_float64_comes_back_as_float64_with_float32_digits() -> None:
    scene, camera = random_scene(4)
    picture = rasterize_cpu(scene, camera)
    assert picture.rgba.dtype == torch.float64
    assert relative_error(picture.rgba, rasterize_reference(scene, camera).rgba) < 1e-5


def test_only_the_fields_that_ask_for_it_get_a_gradient() -> None:
    scene, camera = random_scene(4)
    scene = cast(scene, torch.float32)
    scene.colors.requires_grad_()
    rasterize_cpu(scene, camera).rgba.sum().backward()
    assert scene.colors.grad is not None
    assert scene.means.grad is None
    with torch.no_grad():
        assert not rasterize_cpu(scene, camera).rgba.requires_grad


def fake_gsplat(calls: list[dict]) -> SimpleNamespace:
    """A stand-in that draws what it was asked for with the reference, and answers in gsplat's shapes."""

    def rasterization(**arguments):
        calls.append(arguments)
        scene = Gaussians(
            arguments["means"][:, None], arguments["covars"][:, None], arguments["opacities"][:, None],
            arguments["colors"][:, None],
        )  # fmt: skip
        camera = Camera(arguments["viewmats"], arguments["Ks"], arguments["width"], arguments["height"])
        picture = rasterize_reference(scene, camera)
        colors = torch.cat([picture.rgba[..., :3], picture.depth[..., None]], -1)
        return colors, picture.rgba[..., 3:], {}

    return SimpleNamespace(rasterization=rasterization)


def test_gsplat_is_asked_for_the_same_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[dict] = []
    monkeypatch.setitem(sys.modules, "gsplat", fake_gsplat(calls))
    monkeypatch.setattr(rasterizer_gsplat, "_refuse_cpu", lambda means: None)
    scene, camera = random_scene(6, count=12)
    pair = Gaussians(
        torch.stack([scene.means, scene.means + 0.1]),
        scene.covariances.expand(2, 12, 3, 3),
        scene.opacities,
        scene.colors,
    )
    got, want = (values_and_gradients(r, pair, camera) for r in (rasterize_gsplat, rasterize_reference))
    for name in want:
        torch.testing.assert_close(got[name], want[name])
    assert len(calls) == 1
    assert calls[0]["viewmats"].shape == (2, 1, 4, 4)


def test_gsplats_own_signature_takes_our_arguments() -> None:
    import gsplat

    arguments = gsplat_arguments(*random_scene(0))
    bound = inspect.signature(gsplat.rasterization).bind(**arguments).arguments
    assert bound["render_mode"] == "RGB+D"
    assert bound["covars"].shape == (1, 40, 3, 3)


def test_without_cuda_or_gsplat_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    scene, camera = random_scene(0, count=3)
    with pytest.raises(JigdollError, match="use rasterize_cpu"):
        rasterize_gsplat(scene, camera)
    monkeypatch.setattr(rasterizer_gsplat, "_refuse_cpu", lambda means: None)
    monkeypatch.setitem(sys.modules, "gsplat", None)
    with pytest.raises(MissingExtra, match=r"jigdoll\[cuda\]"):
        rasterize_gsplat(scene, camera)


def test_the_device_chooses_the_rasterizer_and_all_fit_the_socket() -> None:
    assert default_rasterizer("cpu") is rasterize_cpu
    assert default_rasterizer(torch.device("cuda", 0)) is rasterize_gsplat
    for rasterizer in (rasterize_cpu, rasterize_gsplat, rasterize_reference):
        assert isinstance(rasterizer, Rasterizer)


def test_the_vector_exponentials_and_logarithm_keep_their_digits() -> None:
    from numba import njit

    from jigdoll.render.rasterizer_cpu.double8 import exp2_wide, gather, log2_wide, scatter
    from jigdoll.render.rasterizer_cpu.simd import exp2, load, store

    @njit
    def evaluate(x, narrow, powers, logs):
        for i in range(0, x.size, 8):
            store(narrow, i, exp2(load(x, i)))
            scatter(powers, i, x.size, 1, 0, exp2_wide(gather(x, i, x.size, 1, 0)))
            scatter(logs, i, x.size, 1, 0, log2_wide(gather(narrow, i, x.size, 1, 0)))

    x = np.linspace(-120, 120, 80_000, dtype=np.float32)
    narrow, powers, logs = np.empty_like(x), np.empty(x.size), np.empty(x.size)
    evaluate(x, narrow, powers, logs)
    truth = 2.0 ** x.astype(np.float64)
    assert np.abs(narrow / truth - 1).max() < 3e-7
    assert np.abs(powers / truth - 1).max() < 1e-11
    assert np.abs(logs - np.log2(narrow.astype(np.float64))).max() < 1e-10
