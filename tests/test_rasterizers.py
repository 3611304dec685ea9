"""The rasterizers agree with each other, with gsplat's own torch code and with finite differences."""

import math
import sys
import types as python_types

import pytest
import torch
from torch import Tensor

from jigdoll.errors import JigdollError, MissingExtra
from jigdoll.protocols import Rasterizer
from jigdoll.render import harmonics
from jigdoll.render.rasterizer import default_rasterizer
from jigdoll.render.rasterizer_cpu import rasterize_cpu
from jigdoll.render.rasterizer_gsplat import gsplat_arguments, rasterize_gsplat
from jigdoll.render.rasterizer_reference import rasterize_reference
from jigdoll.types import Camera, Gaussians, Rendering

FIELDS = ("means", "covariances", "opacities", "colors")
KINDS = ("round", "thin", "huge", "behind", "transparent")


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
        opacities[::4] = 1.0
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
