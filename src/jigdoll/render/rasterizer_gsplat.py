"""The rasterizer for CUDA: gsplat behind our socket.

Its arguments are tested against a stand-in; it has not been run on a GPU yet.
"""

from typing import Any

import torch
from torch import Tensor

from jigdoll.errors import JigdollError, MissingExtra
from jigdoll.render.rasterizer import BLUR, NEAR, batch_shape, plain_colors
from jigdoll.types import Camera, Gaussians, Rendering


def rasterize_gsplat(gaussians: Gaussians, camera: Camera) -> Rendering:
    """Draw splats on a CUDA device with gsplat; differentiable in means, covariances, opacities and colours."""
    if gaussians.means.device.type != "cuda":
        raise JigdollError(
            f"gsplat draws on CUDA, these Gaussians are on {gaussians.means.device}; use rasterize_cpu, or move them"
        )
    try:
        import gsplat
    except ImportError as error:
        raise MissingExtra("drawing splats on CUDA", "cuda") from error
    batch = batch_shape(gaussians, camera)
    colors, alphas, _ = gsplat.rasterization(**gsplat_arguments(gaussians, camera))
    colors, alphas = colors.reshape(*batch, camera.height, camera.width, 4), alphas.reshape(*batch, camera.height, camera.width, 1)
    return Rendering(torch.cat([colors[..., :3], alphas], -1), colors[..., 3])


def gsplat_arguments(gaussians: Gaussians, camera: Camera) -> dict[str, Any]:
    """What `gsplat.rasterization` takes: each picture of the batch is a scene with one camera.

    gsplat reads the upper triangle of a covariance only, so that it gets the mean of both: then the gradient comes back
    symmetric. Depth is asked for as a fourth channel, weighted by alpha ("RGB+D").
    """
    batch = batch_shape(gaussians, camera)
    count = gaussians.means.shape[-2]

    def one_per_picture(tensor: Tensor, *tail: int) -> Tensor:
        return tensor.expand(*batch, *tail).reshape(-1, *tail).to(gaussians.means).contiguous()

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
