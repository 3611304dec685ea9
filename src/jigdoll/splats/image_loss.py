"""How alike two pictures are: PSNR, SSIM, and the loss of a fit with its gradient in one compiled pass."""

from typing import Any, no_type_check

import numba
import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.skin.threads import on_torch_threads

_STEPS = np.arange(-5, 6)
WINDOW = np.exp(-0.5 * (_STEPS / 1.5) ** 2) / np.exp(-0.5 * (_STEPS / 1.5) ** 2).sum()
"""SSIM's window: 11 pixels of a Gaussian with sigma 1.5; pictures are zero outside their borders."""
C1, C2 = 0.01**2, 0.03**2


def psnr(a: Float[Tensor, "*shape"], b: Float[Tensor, "*shape"]) -> float:
    """Peak signal-to-noise ratio [dB] of values in 0..1."""
    return float(-10 * torch.log10((a - b).square().mean().clamp_min(1e-12)))


def ssim_map(
    a: Float[Tensor, "height width channels"], b: Float[Tensor, "height width channels"]
) -> Float[Tensor, "height width channels"]:
    """Structural similarity at each pixel; plain torch, the truth for `image_loss`."""
    channels = a.shape[-1]
    x, y = a.permute(2, 0, 1), b.permute(2, 0, 1)
    window = torch.from_numpy(WINDOW).to(a).expand(5 * channels, 1, 1, 11)
    maps = torch.cat([x, y, x * x, y * y, x * y])[None]
    maps = torch.nn.functional.conv2d(maps, window, padding=(0, 5), groups=5 * channels)
    maps = torch.nn.functional.conv2d(maps, window.mT, padding=(5, 0), groups=5 * channels)[0]
    mean_x, mean_y, xx, yy, xy = maps.split(channels)
    product = mean_x * mean_y
    squares = mean_x.square() + mean_y.square()
    similar = (2 * product + C1) * (2 * (xy - product) + C2)
    return (similar / ((squares + C1) * (xx + yy - squares + C2))).permute(1, 2, 0)


def image_loss_reference(
    drawn: Float[Tensor, "height width channels"], target: Float[Tensor, "height width channels"], *, share: float
) -> Float[Tensor, ""]:
    """(1 - share) L1 + share (1 - SSIM), as 3DGS weighs them; slow, the truth for `image_loss`."""
    return (1 - share) * (drawn - target).abs().mean() + share * (1 - ssim_map(drawn, target).mean())


def image_loss(
    drawn: Float[Tensor, "height width channels"], target: Float[Tensor, "height width channels"], *, share: float
) -> Float[Tensor, ""]:
    """(1 - share) L1 + share (1 - SSIM), differentiable in the first picture; compiled on a CPU."""
    if drawn.device.type != "cpu" or drawn.dtype != torch.float32 or not drawn.numel():
        return image_loss_reference(drawn, target, share=share)
    loss: Any = _ImageLoss.apply(drawn, target.detach(), share)
    return loss


class _ImageLoss(torch.autograd.Function):
    """Value and gradient come out of one pass."""

    @staticmethod
    def forward(ctx: Any, drawn: Tensor, target: Tensor, share: float) -> Tensor:
        height, width, channels = drawn.shape
        grad = np.empty((height, width, channels), np.float32)
        sums = np.zeros(channels)
        scratch = np.empty((channels, 13, height, width + 10), np.float32)
        arrays = (drawn.detach().contiguous().numpy(), target.contiguous().numpy())
        on_torch_threads(_loss_and_grad, *arrays, np.float32(share), WINDOW.astype(np.float32), scratch, grad, sums)
        ctx.grad = torch.from_numpy(grad)
        return torch.tensor(sums.sum(), dtype=torch.float32)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        return ctx.grad * grads[0], None, None


@numba.njit(fastmath=True, cache=True, nogil=True)
@no_type_check
def _blur(image, window, across, out):
    """Both passes of the window; `image` and `out` have five columns of padding on each side, rows end in zero."""
    height, wide = image.shape
    width = wide - 10
    for y in range(height):
        for x in range(width):
            total = np.float32(0)
            for t in range(11):
                total += window[t] * image[y, x + t]
            across[y, x] = total
    for y in range(height):
        for x in range(width):
            out[y, x + 5] = 0
        for t in range(max(0, 5 - y), min(11, height + 5 - y)):
            w = window[t]
            for x in range(width):
                out[y, x + 5] += w * across[y + t - 5, x]


@numba.njit(parallel=True, fastmath=True, cache=True)
@no_type_check
def _loss_and_grad(drawn, target, share, window, scratch, grad, sums):
    """Per channel: blur x, y, xx, yy, xy; the similarity and its slopes in the blurred maps; blur the slopes back.

    The window is symmetric, so the transpose of the blur is the blur.
    """
    height, width, channels = drawn.shape
    scale = np.float32(1.0 / (height * width * channels))
    for c in numba.prange(channels):
        maps = scratch[c]
        for m in range(12):  # the padding
            for y in range(height):
                for x in range(5):
                    maps[m, y, x] = 0
                    maps[m, y, width + 5 + x] = 0
        x_, y_, xx, yy, xy = maps[0], maps[1], maps[2], maps[3], maps[4]
        for y in range(height):
            for x in range(width):
                a, b = drawn[y, x, c], target[y, x, c]
                x_[y, x + 5], y_[y, x + 5], xx[y, x + 5], yy[y, x + 5], xy[y, x + 5] = a, b, a * a, b * b, a * b
        across = maps[12]
        for m in range(5):
            _blur(maps[m], window, across, maps[m + 5])
        total = 0.0
        for y in range(height):
            for x in range(5, width + 5):
                mx, my = maps[5, y, x], maps[6, y, x]
                sxy = maps[9, y, x] - mx * my
                both = maps[7, y, x] + maps[8, y, x] - mx * mx - my * my
                n1, n2 = 2 * mx * my + np.float32(C1), 2 * sxy + np.float32(C2)
                d1, d2 = mx * mx + my * my + np.float32(C1), both + np.float32(C2)
                inverse = np.float32(1) / (d1 * d2)
                s = n1 * n2 * inverse
                total += s
                # d s: n1 by 2 my dmx; n2 by 2 (dxy - my dmx); d1 by 2 mx dmx; d2 by dxx - 2 mx dmx.
                by_xy = 2 * n1 * inverse
                by_xx = -s / d2
                maps[2, y, x] = by_xx
                maps[4, y, x] = by_xy
                maps[3, y, x] = 2 * my * (n2 * inverse) - my * by_xy - 2 * mx * s / d1 - 2 * mx * by_xx
        _blur(maps[3], window, across, maps[5])
        _blur(maps[2], window, across, maps[6])
        _blur(maps[4], window, across, maps[7])
        absolute = 0.0
        for y in range(height):
            for x in range(width):
                a, b = drawn[y, x, c], target[y, x, c]
                slope = maps[5, y, x + 5] + 2 * a * maps[6, y, x + 5] + b * maps[7, y, x + 5]
                sign = np.float32(1) if a > b else (np.float32(-1) if a < b else np.float32(0))
                absolute += abs(a - b)
                grad[y, x, c] = scale * ((np.float32(1) - share) * sign - share * slope)
        sums[c] = scale * ((1 - share) * absolute + share * (height * width - total))
