"""Ground-truth pictures of a mesh from random sides, and the splats that reproduce them."""

import math

import torch

from jigdoll.math.devices import to_device
from jigdoll.protocols import Progress, Rasterizer, quiet
from jigdoll.render.camera import fit_orbit
from jigdoll.render.ground import composite
from jigdoll.render.mesh import render_mesh
from jigdoll.render.rasterizer import default_rasterizer
from jigdoll.splats.bind import bind, rebind
from jigdoll.splats.fit import FitConfig, Views, fit
from jigdoll.splats.image_loss import psnr
from jigdoll.splats.pose import rest_splats
from jigdoll.types import Mesh, Rendering, RiggedAsset, SkinnedGaussians


def capture(mesh: Mesh, count: int, *, size: int = 256, samples: int = 3, seed: int = 0) -> Views:
    """Square pictures of the unlit mesh from directions that are uniform on the sphere."""
    generator = torch.Generator().manual_seed(seed)
    azimuth = 360 * torch.rand(count, generator=generator)
    elevation = torch.rad2deg(torch.asin(2 * torch.rand(count, generator=generator) - 1)).clamp(-89, 89)
    camera = fit_orbit(mesh.vertices, azimuth=azimuth, elevation=elevation, width=size, height=size)
    return Views(render_mesh(mesh, camera, look="unlit", samples=samples).rgba, camera)


def splat_asset(
    asset: RiggedAsset,
    *,
    count: int = 12000,
    views: int = 200,
    size: int = 256,
    config: FitConfig = FitConfig(),
    rasterizer: Rasterizer | None = None,
    device: torch.device | str = "cpu",
    progress: Progress = quiet,
) -> SkinnedGaussians:
    """The asset as splats fitted, on a device, to pictures of its mesh, with the weights of the nearest surface."""
    rasterizer = default_rasterizer(device) if rasterizer is None else rasterizer
    start = to_device(bind(asset, count=min(count, config.max_gaussians), seed=config.seed), device)
    shots = capture(asset.mesh, views, size=size, seed=config.seed)
    fitted = fit(start, shots, asset.mesh, rasterizer=rasterizer, config=config, progress=progress)
    return to_device(rebind(to_device(fitted, "cpu"), asset), device)


def likeness(
    asset: RiggedAsset,
    splats: SkinnedGaussians,
    *,
    views: int = 20,
    size: int = 256,
    rasterizer: Rasterizer | None = None,
    seed: int = 10_000,
) -> float:
    """PSNR [dB] of the splats against unseen pictures of the mesh, before black or before white: the worse one.

    (Before white alone, a white asset would be praised for outlines that nobody can see.)
    """
    rasterizer = default_rasterizer() if rasterizer is None else rasterizer
    shots = capture(asset.mesh, views, size=size, seed=seed)
    truth = Rendering(shots.rgba, torch.zeros(shots.rgba.shape[:-1]))
    with torch.no_grad():
        drawn = rasterizer(rest_splats(splats), shots.camera)
    means = []
    for value in (0.0, 1.0):
        background = torch.full((size, size, 3), value)
        pairs = zip(composite(drawn, background), composite(truth, background), strict=True)
        means.append(math.fsum(psnr(a, b) for a, b in pairs) / max(views, 1))
    return min(means)
