"""Videos from a prompt, with or without a character in mind: how a prior can be looked at."""

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from jigdoll.math.diffusion import ddim_sample, guided
from jigdoll.protocols import Progress, VideoPrior, quiet
from jigdoll.render.draw import ClipStyle, contact_sheet, draw_splats, to_uint8
from jigdoll.splats.bind import bind
from jigdoll.types import RiggedAsset

LAST = 0.06
"""The level whose estimate is the answer: what is finer than its noise is grain."""
DECIDED = 0.7
"""Above this noise level it is settled which action it will be, below it how well it is done."""
UNGUIDED = 0.25
"""Below this noise level the motion is decided and guidance only adds grain."""


def sample(
    prior: VideoPrior,
    prompt: str,
    *,
    negative: str = "",
    reference_image: Float[Tensor, "height width 3"] | None = None,
    seed: int = 0,
    count: int = 1,
    steps: int = 32,
    guidance: float = 4.0,
    progress: Progress = quiet,
) -> Float[Tensor, "count frames height width 3"]:
    """Deterministic (DDIM) sampling with classifier-free guidance, for priors whose latents are pixels in -1..1.

    A negative prompt that names the action takes the action out of what guidance amplifies; so while the noise is high,
    the prompt is set against no words at all.
    """
    defaults = prior.defaults
    generator = torch.Generator().manual_seed(seed)
    size = (count, defaults.frames, defaults.height, defaults.width, 3)
    noise = torch.randn(size, generator=generator).to(prior.device)
    wanted, unwanted, nothing = (prior.embed(words) for words in (prompt, negative, ""))
    who = None if reference_image is None else reference_image.to(noise).expand(count, *reference_image.shape)
    levels: list[float] = torch.linspace(0.98, LAST, steps + 1).tolist()

    def estimate(noisy: Tensor, level: float) -> Tensor:
        text, against = prior.denoise(noisy, level, [wanted, nothing if level > DECIDED else unwanted], who)
        progress((levels.index(level) + 1) / steps, "denoising")
        return guided(text, against, guidance if level > UNGUIDED else 1.0).clamp(-1, 1)

    clean = ddim_sample(noise, levels, estimate=estimate, signal_and_noise=prior.signal_and_noise)
    return (0.5 * clean + 0.5).cpu()


def reference_image_of(
    asset: RiggedAsset, prior: VideoPrior, *, azimuth: float = 80.0, elevation: float = 9.0
) -> Float[Tensor, "height width 3"]:
    """The character at rest as the prior likes to see it, to sample videos of it."""
    defaults = prior.defaults
    splats = bind(asset)
    mode = "splats" if defaults.look == "color" else defaults.look
    style = ClipStyle(mode, defaults.width, defaults.height, azimuth=(azimuth,), elevation=elevation)
    still = torch.eye(4).expand(1, len(asset.skeleton.names), 4, 4)
    frames, _ = draw_splats(splats, still, style=style)
    return frames[0, 0]


def sheet(
    videos: Float[Tensor, "rows frames height width 3"], *, every: int = 3, scale: int = 3
) -> UInt8[np.ndarray, "tall wide 3"]:
    """Some frames of each video side by side, one row per video."""
    frames = videos[:, ::every].repeat_interleave(scale, 2).repeat_interleave(scale, 3)
    return contact_sheet(list(to_uint8(frames.flatten(0, 1))), frames.shape[1], gap=0)
