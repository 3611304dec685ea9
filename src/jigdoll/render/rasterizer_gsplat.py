"""The rasterizer for CUDA: gsplat behind our socket.

Its arguments are tested against a stand-in; it has not been run on a GPU yet.
"""

import math
from typing import Any

import torch
from torch import Tensor

from jigdoll.errors import JigdollError, MissingExtra
from jigdoll.render.rasterizer import BLUR, NEAR, batch_shape, plain_colors
from jigdoll.types import Camera, Gaussians, Rendering


def rasterize_gsplat(gaussians: Gaussians, camera: Camera) -> Rendering:
    """Draw splats on a CUDA device with gsplat; differentiable in means, covariances, opacities and colours."""
    _refuse_cpu(gaussians.means)
    try:
        import gsplat
    except ImportError as error:
        raise MissingExtra("drawing splats on CUDA", "cuda") from error
    shape = (*batch_shape(gaussians, camera), camera.height, camera.width)
    colors, alphas, _ = gsplat.rasterization(**gsplat_arguments(gaussians, camera))
    colors, alphas = colors.reshape(*shape, 4), alphas.reshape(*shape, 1)
    return Rendering(torch.cat([colors[..., :3], alphas], -1), colors[..., 3])


def _refuse_cpu(means: Tensor) -> None:
    if means.device.type != "cuda":
        raise JigdollError(
            f"gsplat draws on CUDA, these Gaussians are on {means.device}; use rasterize_cpu, or move them"
        )


def gsplat_arguments(gaussians: Gaussians, camera: Camera) -> dict[str, Any]:
    """What `gsplat.rasterization` takes: each picture of the batch is a scene with one camera.

    gsplat reads the upper triangle of a covariance only, so that it gets the mean of both: then the gradient comes back
    symmetric. Depth is asked for as a fourth channel, weighted by alpha ("RGB+D").
    """
    batch = batch_shape(gaussians, camera)
    count = gaussians.means.shape[-2]

    def one_per_picture(tensor: Tensor, *tail: int) -> Tensor:
        return tensor.to(gaussians.means).expand(*batch, *tail).reshape(math.prod(batch), *tail).contiguous()

    covariances = (gaussians.covariances + gaussians.covariances.transpose(-1, -2)) / 2
    return {
        "means": one_per_picture(gaussians.means, count, 3),
        "quats": None,
        "scales": None,
        "opacities": one_per_picture(gaussians.opacities, count),
        "colors": one_per_picture(plain_colors(gaussians, camera), count, 3),
        "covars": one_per_picture(covariances, count, 3, 3),
        "viewmats": one_per_picture(camera.T_camera_world, 4, 4)[:, None],
        "Ks": one_per_picture(camera.K, 3, 3)[:, None],
        "width": camera.width,
        "height": camera.height,
        "near_plane": NEAR,
        "eps2d": BLUR,
        "render_mode": "RGB+D",
        "packed": False,
    }
