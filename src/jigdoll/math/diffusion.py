"""Diffusion on clean estimates: classifier-free guidance and deterministic sampling."""

from collections.abc import Callable, Sequence
from itertools import pairwise

from torch import Tensor


def guided(wanted: Tensor, other: Tensor, scale: float) -> Tensor:
    """Classifier-free guidance: from the estimate for the other text through the wanted one and beyond."""
    return other + scale * (wanted - other)


def ddim_sample(
    noisy: Tensor,
    levels: Sequence[float],
    *,
    estimate: Callable[[Tensor, float], Tensor],
    signal_and_noise: Callable[[float], tuple[float, float]],
) -> Tensor:
    """What a model makes of noise at the first level, in DDIM steps down to the last: its last clean estimate.

    The noise that it started with is kept: at every level x_t = alpha x0 + sigma epsilon for one epsilon, as long as
    the estimate x0 stays. `estimate` answers with the clean video behind a noisy one at a level.
    """
    clean = noisy
    for level, lower in pairwise(levels):
        clean = estimate(noisy, level)
        alpha, sigma = signal_and_noise(level)
        next_alpha, next_sigma = signal_and_noise(lower)
        noisy = next_alpha * clean + next_sigma * (noisy - alpha * clean) / max(sigma, 1e-6)
    return clean
