"""Distances of points and segments, differentiable."""

import torch
from jaxtyping import Float
from torch import Tensor


def segment_distances(one: Float[Tensor, "*batch 2 3"], other: Float[Tensor, "*batch 2 3"]) -> Float[Tensor, "*batch"]:
    """The distance between segments; the places of the closest points hold no gradient (by the envelope theorem).

    The minimum of |p + s u - q - t v| over the unit square lies inside it or with s or t at a bound.
    """
    p, q = one[..., 0, :], other[..., 0, :]
    u, v = one[..., 1, :] - p, other[..., 1, :] - q
    with torch.no_grad():
        w = p - q
        a, b, c = (u * u).sum(-1), (u * v).sum(-1), (v * v).sum(-1)
        d, e = (u * w).sum(-1), (v * w).sum(-1)
        cross = a * c - b * b
        s = torch.where(cross > 1e-9 * a * c, (b * e - c * d) / cross.clamp_min(1e-20), 0.0).clamp(0, 1)
        t = ((b * s + e) / c.clamp_min(1e-12)).clamp(0, 1)
        s = ((b * t - d) / a.clamp_min(1e-12)).clamp(0, 1)
    gap = p + s[..., None] * u - q - t[..., None] * v
    return (gap.square().sum(-1) + 1e-12).sqrt()


def closest_on_segments(
    points: Float[Tensor, "*#batch 3"], segments: Float[Tensor, "*#batch 2 3"]
) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "*batch"]]:
    """Where along each segment its closest point to a point lies (0 to 1, without a gradient), and how far that is."""
    start = segments[..., 0, :]
    way, off = segments[..., 1, :] - start, points - start
    with torch.no_grad():
        share = ((off * way).sum(-1) / way.square().sum(-1).clamp_min(1e-12)).clamp(0, 1)
    gap = off - share[..., None] * way
    return share, (gap.square().sum(-1) + 1e-12).sqrt()
