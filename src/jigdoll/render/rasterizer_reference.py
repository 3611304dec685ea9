"""The slow truth: splatting in plain torch, every Gaussian against every pixel, differentiable in everything.

It follows gsplat 1.5.3's rules to the letter and computes in the dtype of its input, so that float64 gives gradients
that finite differences confirm. Memory grows with Gaussians times pixels.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from jigdoll.render.rasterizer import (
    ALPHA_MAX,
    ALPHA_MIN,
    BLUR,
    LIGHT_MIN,
    NEAR,
    batch_shape,
    plain_colors,
    refuse_nonfinite,
)
from jigdoll.types import Camera, Gaussians, Rendering


def rasterize_reference(gaussians: Gaussians, camera: Camera) -> Rendering:
    """Draw splats exactly and slowly; differentiable in the Gaussians and in the camera."""
    batch = batch_shape(gaussians, camera)
    colors = plain_colors(gaussians, camera)
    count, height, width = gaussians.means.shape[-2], camera.height, camera.width

    def one_per_picture(tensor: Tensor, *tail: int) -> Tensor:
        return tensor.to(gaussians.means.dtype).expand(*batch, *tail).reshape(math.prod(batch), *tail)

    fields = (
        one_per_picture(gaussians.means, count, 3),
        one_per_picture(gaussians.covariances, count, 3, 3),
        one_per_picture(gaussians.opacities, count),
        one_per_picture(colors, count, 3),
        one_per_picture(camera.T_camera_world, 4, 4),
        one_per_picture(camera.K, 3, 3),
    )
    _refuse_nonfinite(fields[:4])
    pictures = [_rasterize_one(*one, width=width, height=height) for one in zip(*fields, strict=True)]
    picture = torch.stack(pictures) if pictures else gaussians.means.new_zeros(0, height, width, 5)
    picture = picture.reshape(*batch, height, width, 5)
    return Rendering(picture[..., :4], picture[..., 4])


def project(
    means: Float[Tensor, "gaussians 3"],
    covariances: Float[Tensor, "gaussians 3 3"],
    T_camera_world: Float[Tensor, "4 4"],
    K: Float[Tensor, "3 3"],
    *,
    width: int,
    height: int,
) -> tuple[Float[Tensor, "gaussians 2"], Float[Tensor, "gaussians 2 2"], Float[Tensor, " gaussians"]]:
    """Means [px], blurred covariances [px^2] and depths [m] in the picture: the EWA projection, as gsplat bounds it.

    The Jacobian is taken at a tangent clamped to 1.15 times the view, so that kernels beside it do not blow up.
    """
    R, t = T_camera_world[:3, :3], T_camera_world[:3, 3]
    x, y, z = (means @ R.T + t).unbind(-1)
    fx, fy, cx, cy = K[0, 0], K[1, 1], K[0, 2], K[1, 2]
    margin_x, margin_y = 0.15 * width / fx, 0.15 * height / fy
    u = (x / z).clamp(-cx / fx - margin_x, (width - cx) / fx + margin_x)
    v = (y / z).clamp(-cy / fy - margin_y, (height - cy) / fy + margin_y)
    zero = torch.zeros_like(z)
    J = torch.stack([fx / z, zero, -fx * u / z, zero, fy / z, -fy * v / z], -1).reshape(-1, 2, 3)
    A = J @ R
    symmetric = (covariances + covariances.transpose(-1, -2)) / 2
    blurred = A @ symmetric @ A.transpose(-1, -2) + BLUR * torch.eye(2, dtype=z.dtype, device=z.device)
    return torch.stack([fx * x / z + cx, fy * y / z + cy], -1), blurred, z


def visible_order(depths: Float[Tensor, " gaussians"]) -> Int[Tensor, " seen"]:
    """The Gaussians beyond the near plane, nearest first, ties in the order given."""
    order = torch.argsort(depths.detach(), stable=True)
    return order[depths.detach()[order] >= NEAR]


def _rasterize_one(
    means: Tensor, covariances: Tensor, opacities: Tensor, colors: Tensor, T_camera_world: Tensor, K: Tensor,
    *, width: int, height: int,
) -> Float[Tensor, "height width 5"]:  # fmt: skip
    """One picture: RGB, alpha, depth."""
    depths = means @ T_camera_world[2, :3] + T_camera_world[2, 3]
    order = visible_order(depths)
    centers, blurred, z = project(means[order], covariances[order], T_camera_world, K, width=width, height=height)
    opacities, values = opacities[order], torch.cat([colors[order], torch.ones_like(z)[:, None], z[:, None]], -1)
    ys = torch.arange(height, dtype=z.dtype, device=z.device) + 0.5
    xs = torch.arange(width, dtype=z.dtype, device=z.device) + 0.5
    dx, dy = xs - centers[:, 0, None, None], ys[:, None] - centers[:, 1, None, None]
    xx, xy, yy = (blurred[:, i, j, None, None] for i, j in ((0, 0), (0, 1), (1, 1)))
    det = xx * yy - xy * xy
    # The square form of d^T C^-1 d / 2: no digits are lost on long thin kernels.
    sigma = ((yy * dx - xy * dy) ** 2 / (yy * det) + dy**2 / yy) / 2
    alpha = (opacities[:, None, None] * torch.exp(-sigma)).clamp_max(ALPHA_MAX)
    alpha = torch.where((alpha >= ALPHA_MIN) & (det > 0), alpha, 0)
    light = torch.cumprod(1 - alpha, 0)
    # Light never grows with depth, so that a pixel that is finished stays so.
    alpha = torch.where(light > LIGHT_MIN, alpha, 0)
    before = torch.cat([torch.ones_like(light[:1]), light[:-1]])
    return torch.einsum("nhw,nc->hwc", alpha * before, values)


def _refuse_nonfinite(fields: tuple[Tensor, ...]) -> None:
    finite = fields[2].isfinite()  # the opacities, one number per Gaussian
    for field in fields:
        finite = finite & field.isfinite().flatten(2).all(2) if field.ndim > 2 else finite
    if not bool(finite.all()):
        picture, index = (~finite).nonzero()[0].tolist()
        raise refuse_nonfinite(index, picture)
