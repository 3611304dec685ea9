"""What the rasterizers share: how a batch is laid out, what is refused, and which one to take."""

import numpy as np
import torch
from torch import Tensor

from jigdoll.errors import JigdollError
from jigdoll.protocols import Rasterizer
from jigdoll.render.harmonics import shade
from jigdoll.types import Camera, Gaussians

# gsplat 1.5.3's rules, so that the three rasterizers draw the same picture.
NEAR = 0.01
"""Kernels nearer to the camera plane than this [m], or behind it, are not drawn."""
BLUR = 0.3
"""Added to both variances in the picture [px^2]: no kernel is thinner than about a pixel."""
ALPHA_MAX = 0.999
ALPHA_MIN = 1 / 255
"""A kernel is skipped in the pixels where its alpha is below this."""
LIGHT_MIN = 1e-4
"""A pixel is finished before the kernel that would leave it no more light than this."""


def default_rasterizer(device: torch.device | str = "cpu") -> Rasterizer:
    """The fastest rasterizer for tensors on a device: gsplat on CUDA, numba kernels otherwise."""
    if torch.device(device).type == "cuda":
        from jigdoll.render.rasterizer_gsplat import rasterize_gsplat

        return rasterize_gsplat
    from jigdoll.render.rasterizer_cpu import rasterize_cpu

    return rasterize_cpu


def batch_shape(gaussians: Gaussians, camera: Camera) -> tuple[int, ...]:
    """The batch of pictures: one scene seen by many cameras, many scenes by one, or one camera per scene."""
    if camera.width < 1 or camera.height < 1:
        raise JigdollError(f"a picture needs at least one pixel, this camera has {camera.width} x {camera.height}")
    shapes = {tuple(t.shape[:-2]) for t in (gaussians.means, camera.T_camera_world, camera.K)} - {()}
    if len(shapes) < 2:
        return shapes.pop() if shapes else ()
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError as error:
        raise JigdollError(
            f"the batch of the Gaussians {tuple(gaussians.means.shape[:-2])} and that of the camera "
            f"{tuple(camera.T_camera_world.shape[:-2])} do not fit together; they must be equal, or one of them 1"
        ) from error


def plain_colors(gaussians: Gaussians, camera: Camera) -> Tensor:
    """RGB per Gaussian: as given, or the harmonics as the camera sees them."""
    colors = gaussians.colors
    extra = colors.ndim - gaussians.means.ndim
    harmonics = extra > 0 or (extra < 0 and colors.ndim > 2 and colors.shape[-2] != gaussians.means.shape[-2])
    return shade(colors, gaussians.means, camera.T_camera_world) if harmonics else colors


def refuse_nonfinite(index: int, picture: int) -> JigdollError:
    """What to say about a Gaussian that cannot be drawn."""
    return JigdollError(
        f"Gaussian {index} of picture {picture} has a mean, covariance, opacity or colour that is not finite; "
        "remove it, or look for the step that made it (a learning rate that is too high, a division by zero)"
    )
