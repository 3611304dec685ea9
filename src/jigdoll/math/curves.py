"""Curves over time: eases and keyframes from which motions are drawn by hand."""

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor


def smoothstep(x: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """From 0 to 1 over 0..1, flat at both ends up to the second derivative."""
    x = x.clamp(0, 1)
    return x * x * x * (x * (6 * x - 15) + 10)


def ease(x: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """From 0 to 1 over 0..1 along half a cosine, with no speed at either end: how a foot swings forwards."""
    return 0.5 - 0.5 * torch.cos(math.pi * x.clamp(0, 1))


def keyframes(
    t: Float[Tensor, "*batch"],
    times: Sequence[float],
    values: Sequence[float],
    *,
    slopes: Sequence[float] | None = None,
) -> Float[Tensor, "*batch"]:
    """The cubic Hermite curve through keys at rising times; held before the first and after the last.

    Without slopes they follow the keys as Fritsch and Carlson do it: no overshoot, flat at turning points and ends.
    """
    x, y = t.new_tensor(times), t.new_tensor(values)
    m = t.new_tensor(slopes if slopes is not None else _monotone_slopes(times, values))
    t = t.clamp(float(times[0]), float(times[-1]))
    i = (torch.searchsorted(x, t.contiguous(), right=True) - 1).clamp(0, len(times) - 2)
    width = x[i + 1] - x[i]
    u = (t - x[i]) / width
    h00, h10 = (1 + 2 * u) * (1 - u) ** 2, u * (1 - u) ** 2
    h01, h11 = u * u * (3 - 2 * u), u * u * (u - 1)
    return h00 * y[i] + h10 * width * m[i] + h01 * y[i + 1] + h11 * width * m[i + 1]


def _monotone_slopes(times: Sequence[float], values: Sequence[float]) -> list[float]:
    """Weighted harmonic means of the neighbouring secants; zero where they disagree in sign, and at the ends."""
    widths = [b - a for a, b in pairwise(times)]
    secants = [(b - a) / w for (a, b), w in zip(pairwise(values), widths, strict=True)]
    slopes = [0.0]
    for w0, w1, s0, s1 in zip(widths, widths[1:], secants, secants[1:], strict=False):
        if s0 * s1 <= 0:
            slopes.append(0.0)
        else:
            a, b = 2 * w1 + w0, w1 + 2 * w0
            slopes.append((a + b) / (a / s0 + b / s1))
    return [*slopes, 0.0]
