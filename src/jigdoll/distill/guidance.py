"""Score distillation, written once on clean estimates.

A prior's answer is its estimate of the clean latents for a text, so every form of guidance is arithmetic on estimates
and gives the gradient of the latents: `sds` is AKD's Eq. 7, `csd` the difference between the wanted and the unwanted
text alone, `flow` the same in the velocities of flow matching, `fit` the way to a clip that the prior has finished.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor

from jigdoll.protocols import VideoPrior

Form = Literal["sds", "csd", "flow", "fit"]


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
    still: Tensor | None = None,
    reference_image: Tensor | None = None,
) -> Tensor:
    """The gradient of the latents at one noise level, without gradient itself.

    `still` are the latents of the same character that does not move: what the prior would change about them has nothing
    to do with the motion and is taken off (same noise, same level).
    """
    clean, how = latents.detach(), {"form": form, "level": level, "scale": scale, "reference_image": reference_image}
    state = generator.get_state()
    noisy = prior.noise(clean, level, generator)
    gradient = gradient_of(prior, clean, noisy, texts, **how)
    if still is not None:
        after = generator.get_state()
        generator.set_state(state)
        same_noise = prior.noise(still.detach(), level, generator)
        generator.set_state(after)
        gradient = gradient - gradient_of(prior, still.detach(), same_noise, texts, **how)
    return gradient


def gradient_of(
    prior: VideoPrior,
    clean: Tensor,
    noisy: Tensor,
    texts: Texts,
    *,
    form: Form,
    level: float,
    scale: float,
    reference_image: Tensor | None = None,
) -> Tensor:
    """What each form makes of the prior's estimates.

    sds: z - z_hat with classifier-free guidance against the null text, weight 1 (AKD Eq. 17).
    csd: the part of it that the guidance scale multiplies, set against the negative text: the limit of a large scale.
    flow: the difference of velocities v_hat - v = (z - z_hat) / sigma, guided against the negative text.
    """
    if form == "sds":
        wanted, null = prior.denoise(noisy, level, [texts.wanted, texts.null], reference_image)
        return clean - guided(wanted, null, scale)
    wanted, unwanted = prior.denoise(noisy, level, [texts.wanted, texts.unwanted], reference_image)
    if form == "csd":
        return scale * (unwanted - wanted)
    _, sigma = prior.signal_and_noise(level)
    return (clean - guided(wanted, unwanted, scale)) / max(sigma, 1e-3)


def guided(wanted: Tensor, other: Tensor, scale: float) -> Tensor:
    """Classifier-free guidance on clean estimates."""
    return other + scale * (wanted - other)


def finish(
    prior: VideoPrior,
    latents: Tensor,
    texts: Texts,
    *,
    level: float,
    steps: int,
    scale: float,
    generator: torch.Generator,
    reference_image: Tensor | None = None,
) -> Tensor:
    """Noise a render to a level and let the prior finish it in guided DDIM steps: a target for `fit`."""
    noisy = prior.noise(latents.detach(), level, generator)
    levels: list[float] = torch.linspace(level, 0.0, steps + 1).tolist()
    estimate = latents.detach()
    for here, there in pairwise(levels):
        wanted, unwanted = prior.denoise(noisy, here, [texts.wanted, texts.unwanted], reference_image)
        estimate = guided(wanted, unwanted, scale)
        alpha, sigma = prior.signal_and_noise(here)
        alpha_next, sigma_next = prior.signal_and_noise(there)
        epsilon = (noisy - alpha * estimate) / max(sigma, 1e-6)
        noisy = alpha_next * estimate + sigma_next * epsilon
    return estimate


def surrogate(latents: Tensor, gradient: Tensor) -> Tensor:
    """A scalar whose gradient by the latents is `gradient` divided by the number of views."""
    return (gradient.detach() * latents).sum() / latents.shape[0]
