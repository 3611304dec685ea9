"""The sockets: what can be swapped. You import the implementation that you plug in; there is no registry."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.types import Camera, Gaussians, Rendering, RiggedAsset


@runtime_checkable
class Rasterizer(Protocol):
    """Draws splats; differentiable in every field of `Gaussians`."""

    def __call__(self, gaussians: Gaussians, camera: Camera) -> Rendering:
        """Render each scene of the batch with the camera of the same batch place."""
        ...


@runtime_checkable
class VideoPrior(Protocol):
    """A text-to-video diffusion model, spoken to through its estimate of the clean video."""

    def embed(self, prompt: str) -> Tensor:
        """Encode a prompt once; the result goes to `denoise`."""
        ...

    def encode(self, video: Float[Tensor, "views frames height width 3"]) -> Tensor:
        """Pixels in 0..1 to the model's latents, differentiable."""
        ...

    def noise(self, latents: Tensor, level: float, generator: torch.Generator) -> Tensor:
        """Latents at a noise level in 0..1: alpha x0 + sigma epsilon."""
        ...

    def denoise(self, noisy: Tensor, level: float, texts: Sequence[Tensor]) -> list[Tensor]:
        """One estimate of the clean latents per text."""
        ...


@runtime_checkable
class PhysicsEngine(Protocol):
    """Steps articulated rigid bodies; differentiable in the controls."""

    def step(self, state: Tensor, controls: Float[Tensor, "substeps dofs"]) -> Tensor:
        """Advance the state by a chunk of substeps under joint targets."""
        ...


@runtime_checkable
class TextTo3D(Protocol):
    """Makes a character from words."""

    def __call__(self, prompt: str, *, seed: int = 0) -> RiggedAsset:
        """The same prompt and seed give the same character."""
        ...
