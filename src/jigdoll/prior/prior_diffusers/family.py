"""What a family of latent video models is: sizes, parts, and the calls that differ.

Here latents always are `[views channels frames height width]`, normalised.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.errors import RepairWarning
from jigdoll.prior.prior_diffusers.schedule import Prediction
from jigdoll.types import PriorDefaults

Pixels = Float[Tensor, "views 3 frames height width"]
Latents = Float[Tensor, "views channels latent_frames latent_height latent_width"]
Text = Float[Tensor, "tokens features"]
Run = tuple[int, int]
"""First frame of a stretch of a video, and the frame after its last."""
UNLIMITED = 10**6


@dataclass(frozen=True)
class Grid:
    """How a model's VAE shrinks a video, and what sizes fit it."""

    time: int
    """Frames per latent frame; the first frame of a causal VAE stands alone: counts are time * k + 1."""
    space: int
    """Pixels per latent pixel."""
    multiple: int
    """Width and height are multiples of this [px]: latent pixels come in patches."""
    chunk: int
    """The VAE goes through the video in steps of so many frames, counted from the end; 0: it takes it as a whole."""
    first: int
    """The fewest frames of its first step."""
    pack: int = 1
    """Latent frames come in groups of this many; the first one is repeated in front where they do not."""
    most: tuple[int, int, int] = (UNLIMITED, UNLIMITED, UNLIMITED)
    """The largest frame count, height and width that the denoiser has places for."""

    def latent_frames(self, frames: int) -> int:
        """Latent frames of a video, before `pack`."""
        return (frames - 1) // self.time + 1

    def runs(self, frames: int, latent_frames: int) -> list[Run]:
        """The video cut into runs of whole steps with this many latent frames each, or a few more."""
        if not self.chunk:
            return [(0, frames)]
        cuts = range(frames % self.chunk, frames + 1, self.chunk)
        runs, start = [], 0
        for cut in cuts:
            long_enough = self.latent_frames(cut) - self.latent_frames(start) >= latent_frames
            if cut == frames or (cut >= self.first and long_enough):
                runs.append((start, cut))
                start = cut
        return runs

    def nearest(self, frames: int, height: int, width: int) -> tuple[int, int, int]:
        """The closest frame count, height and width that fit."""

        def fit(size: int, most: int) -> int:
            return min(max(round(size / self.multiple), 1), most // self.multiple) * self.multiple

        steps = min(max(round((frames - 1) / self.time), 0), (self.most[0] - 1) // self.time)
        return steps * self.time + 1, fit(height, self.most[1]), fit(width, self.most[2])


@dataclass(frozen=True, eq=False)
class Parts:
    """An opened pipeline and how it is run."""

    pipe: Any
    """A diffusers pipeline without its text encoder; its denoisers come when they are needed."""
    config: Any
    """The denoiser's configuration, known before its weights are."""
    checkpoint: bool
    """Whether the VAE's activations are recomputed in the backward instead of kept."""
    fps: float | None = None
    """Frame rate of the videos shown, for models that know time in seconds; None: the default."""


@dataclass(frozen=True)
class ModelFamily:
    """One kind of latent video pipeline."""

    pipelines: tuple[str, ...]
    """Names of its pipeline classes in diffusers."""
    prediction: Prediction
    denoisers: tuple[str, ...]
    """The pipeline's big parts, loaded last."""
    precise_vae: bool
    """Whether the VAE stays in float32 beside a bfloat16 denoiser, as its authors run it."""
    grid: Callable[[Parts], Grid]
    defaults: Callable[[Parts], PriorDefaults]
    max_tokens: Callable[[Any], int | None]
    encode: Callable[[Parts, Pixels, Run | None], Latents]
    """Pixels in -1..1 to normalised latents: the mode of the VAE's posterior. With a run (one of `Grid.runs`), only
    what its frames do to its own latents is kept for the backward."""
    predict: Callable[[Parts, Latents, float, Text], Latents]
    """The denoiser's output at a timestep."""


def mode_of(moments: Tensor) -> Latents:
    """The mean of the VAE's Gaussian, which is the first half of the channels."""
    return moments.chunk(2, dim=1)[0]


def walk(
    pixels: Pixels, steps: list[Run], graded: Run | None, encode: Callable[[Tensor, Any], tuple[Tensor, Any]]
) -> Latents:
    """A causal encoder step by step, each with the memory of the one before; a graph only of the graded run."""
    memory, latents = None, []
    for start, end in steps:
        inside = graded is None or (graded[0] <= start and end <= graded[1])
        with torch.set_grad_enabled(torch.is_grad_enabled() and inside):
            latent, memory = encode(pixels[:, :, start:end], memory)
        latents.append(latent)
    return torch.cat(latents, 2)


def embed_prompt(pipe: Any, prompt: str, *, max_tokens: int | None, device: torch.device) -> Text:
    """Encode a prompt as the pipeline would; where it masks the padding away (LTX), the padding is cut off instead."""
    length, most = len(pipe.tokenizer(prompt, verbose=False).input_ids), max_tokens or pipe.tokenizer.model_max_length
    if length > most:
        warnings.warn(
            f"the prompt has {length} tokens and this model reads {most}: what comes after "
            f"{_start_of(pipe, prompt, most)} is left out",
            RepairWarning,
            stacklevel=3,
        )
    options = {"num_images_per_prompt": 1} if max_tokens is None else {"max_sequence_length": max_tokens}
    result = pipe.encode_prompt(prompt=prompt, device=device, do_classifier_free_guidance=False, **options)
    masked = len(result) == 4
    return result[0][0][result[1][0].bool()] if masked else result[0][0]


def _start_of(pipe: Any, prompt: str, tokens: int) -> str:
    """The last words that are still read, in quotes."""
    read = pipe.tokenizer(prompt, truncation=True, max_length=tokens).input_ids
    return repr("... " + " ".join(pipe.tokenizer.decode(read, skip_special_tokens=True).split()[-4:]))
