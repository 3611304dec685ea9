"""From the name that a person types to a video prior."""

from pathlib import Path

import torch

from jigdoll.errors import JigdollError
from jigdoll.prior.pocket.prior import open_pocket
from jigdoll.protocols import VideoPrior


def open_prior(
    prior: str | VideoPrior, *, device: str | None = None, offload: bool = False, vae_frames: int | None = None
) -> VideoPrior:
    """The prior of that name: pocket, weights of your own for it, a large model or its folder; or the prior itself.

    `device` is the CPU for the pocket prior and CUDA for a large one by default. `offload` keeps a large model's
    denoiser in main memory and brings it in block by block; with `vae_frames` each step's gradient passes through about
    that many latent frames of the video instead of all: both save GPU memory.
    """
    if not isinstance(prior, str):
        return prior
    check_device(device)
    small = prior == "pocket" or Path(prior).suffix == ".safetensors"
    if small and (offload or vae_frames is not None):
        raise JigdollError("--offload and --vae-frames are for large video models; the pocket prior needs neither")
    if small:
        return open_pocket(None if prior == "pocket" else Path(prior), device=device or "cpu")
    from jigdoll.prior.prior_diffusers import open_prior as open_large

    return open_large(prior, device=device, offload=offload, backward_latent_frames=vae_frames)


def check_device(device: str | None) -> None:
    """Refuse a device that this machine does not have."""
    try:
        kind = None if device is None else torch.device(device).type
    except RuntimeError as error:
        raise JigdollError(f"no device is called {device!r}; give cpu, cuda or cuda:1") from error
    if kind == "cuda" and not torch.cuda.is_available():
        raise JigdollError(f"--device {device}: this PyTorch sees no CUDA GPU; leave it out to run on the CPU")
