"""Score distillation, written once on clean estimates.

A prior's answer is its estimate of the clean latents for a text, so every form of guidance is arithmetic on estimates
and gives the gradient of the latents: `sds` is AKD's Eq. 7, `csd` the difference between the wanted and the unwanted
text alone, `flow` the same in the velocities of flow matching.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from jigdoll.distill.options import Form
from jigdoll.math.diffusion import guided
from jigdoll.protocols import VideoPrior


@dataclass(frozen=True, eq=False)
class Texts:
    """What the prior is asked, embedded once."""

    wanted: Tensor
    unwanted: Tensor
    """The negative prompt, or the null text where there is none."""
    null: Tensor


def embed_texts(prior: VideoPrior, prompt: str, negative_prompt: str) -> Texts:
    """The prompt, its opposite and the empty text."""
    null = prior.embed("")
    return Texts(prior.embed(prompt), prior.embed(negative_prompt) if negative_prompt else null, null)


def guide(
    prior: VideoPrior,
    latents: Tensor,
    texts: Texts,
    *,
    form: Form,
    level: float,
    scale: float,
    generator: torch.Generator,
    reference_image: Tensor | None = None,
) -> Tensor:
    """The gradient of the latents at one noise level, without gradient itself.

    sds: z - z_hat with classifier-free guidance against the null text, weight 1 (AKD Eq. 17).
    csd: the part of it that the guidance scale multiplies, set against the negative text: the limit of a large scale.
    flow: the difference of velocities v_hat - v = (z - z_hat) / sigma, guided against the negative text.
    """
    clean = latents.detach()
    noisy = prior.noise(clean, level, generator)
    if form == "sds":
        wanted, null = prior.denoise(noisy, level, [texts.wanted, texts.null], reference_image)
        return clean - guided(wanted, null, scale)
    wanted, unwanted = prior.denoise(noisy, level, [texts.wanted, texts.unwanted], reference_image)
    if form == "csd":
        return scale * (unwanted - wanted)
    _, sigma = prior.signal_and_noise(level)
    return (clean - guided(wanted, unwanted, scale)) / max(sigma, 1e-3)


def surrogate(latents: Tensor, gradient: Tensor) -> Tensor:
    """A scalar whose gradient by the latents is `gradient` divided by the number of views."""
    return (gradient.detach() * latents).sum() / latents.shape[0]
