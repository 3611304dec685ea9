"""One adapter for the latent video models of diffusers, behind `protocols.VideoPrior`."""

import gc
import inspect
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.errors import JigdollError, MissingExtra
from jigdoll.prior.prior_diffusers.families import FAMILIES
from jigdoll.prior.prior_diffusers.family import Latents, ModelFamily, Parts, Pixels, Text, embed_prompt
from jigdoll.prior.prior_diffusers.schedule import schedule_of
from jigdoll.types import PriorDefaults, Request


class DiffusersPrior:
    """A latent video model in a folder that diffusers can read, spoken to through clean latents.

    Latents are `[views channels frames height width]`, normalised as the model was trained. The text encoder, often the
    largest part, is loaded by the first prompt and freed by the first `denoise`, which loads the denoiser: both are
    never held together. A prompt that was embedded before needs no encoder; a new one loads it again.

    Tested on a CPU with tiny models of the same classes; the CUDA paths (bfloat16, offload with a stream) are written
    from diffusers' documentation and have not been run.
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        device: torch.device | str = "cpu",
        dtype: torch.dtype | None = None,
        checkpoint: bool = True,
        backward_latent_frames: int | None = None,
        offload: bool = False,
        fps: float | None = None,
        seed: int = 0,
    ) -> None:
        """Open the folder and load the VAE.

        `dtype`: bfloat16 on CUDA and float32 elsewhere by default. `checkpoint`: recompute the VAE's activations in the
        backward instead of keeping them. `backward_latent_frames`: see `encode`. `offload`: keep the denoiser in main
        memory and bring it in block by block. `fps`: frame rate of the videos to come (LTX). `seed`: of the choice
        which frames get a gradient.
        """
        self.folder, self.device = Path(folder), torch.device(device)
        self.dtype = dtype or (torch.bfloat16 if self.device.type == "cuda" else torch.float32)
        self.family, self._index = family_of(self.folder)
        self._offload, self._backward_latent_frames = offload, backward_latent_frames
        self._choice = torch.Generator().manual_seed(seed)
        self._embedded: dict[str, Text] = {}
        self._text: Any = None
        self._has_denoisers = False
        pipe = self._load(keep=lambda name: name in ("vae", "scheduler"))
        config = _full_config(self.folder, self._denoisers[0], self._index)
        self._parts = Parts(pipe, config, checkpoint, fps)
        self._schedule = schedule_of(
            pipe.scheduler, expected=self.family.prediction, pipeline=self._index["_class_name"]
        )
        self.grid = self.family.grid(self._parts)
        if backward_latent_frames is not None and not self.grid.chunk:
            raise JigdollError(
                f"the VAE of {self._index['_class_name']} takes the video as a whole: backward_latent_frames would "
                "save nothing. Checkpointing does"
            )
        _prepare_vae(pipe.vae, checkpoint)
        pipe.vae.to(self.device)

    @property
    def defaults(self) -> PriorDefaults:
        """The size, frame count and look of the model's training videos; guidance as in AKD's appendix D."""
        return self.family.defaults(self._parts)

    def texts(self, request: Request) -> tuple[str, str]:
        """The prompt as it is, because these models read whole sentences, and the model's own negative prompt."""
        return request.prompt, self.defaults.negative_prompt

    def embed(self, prompt: str) -> Text:
        """Encode a prompt, once."""
        if prompt not in self._embedded:
            if self._text is None:
                self._free_denoisers()
                self._text = self._load(keep=_is_text).to(self.device)
            with torch.no_grad(), quiet():
                tokens = self.family.max_tokens(self._parts.config)
                text = embed_prompt(self._text, prompt, max_tokens=tokens, device=self.device)
            self._embedded[prompt] = text.detach()
        return self._embedded[prompt]

    def encode(self, video: Float[Tensor, "views frames height width 3"]) -> Latents:
        """Pixels in 0..1 to latents, the mode of the VAE's posterior, differentiable; never tiled.

        With `backward_latent_frames` the gradient passes through one random run of about that many latent frames per
        call, scaled so that its mean is that of all runs, and what earlier pixels do to later runs is dropped: memory
        for one run instead of the whole video. The latents themselves are the same.
        """
        views, frames, height, width, _ = video.shape
        self._check_size(frames, height, width)
        pixels = (2 * video - 1).permute(0, 4, 1, 2, 3).to(self.device, self._vae_dtype)
        sliced = self._backward_latent_frames is not None and torch.is_grad_enabled() and pixels.requires_grad
        latents = self._encode_sliced(pixels) if sliced else self.family.encode(self._parts, pixels, None)
        missing = -latents.shape[2] % self.grid.pack
        latents = torch.cat([latents[:, :, :1].expand(-1, -1, missing, -1, -1), latents], 2)
        small = (height // self.grid.space, width // self.grid.space)
        expected = (views, latents.shape[1], self.grid.latent_frames(frames) + missing, *small)
        if latents.shape != expected:
            raise JigdollError(
                f"the VAE of {self.folder.name} made latents of {tuple(latents.shape)} where {expected} belong: is "
                "tiling on, or does its config not fit its weights?"
            )
        return latents.to(torch.promote_types(self._vae_dtype, torch.float32))

    def signal_and_noise(self, level: float) -> tuple[float, float]:
        """The factors (alpha, sigma) of the clean latents and of the noise at a level."""
        return self._schedule.signal_and_noise(level)

    def noise(self, latents: Tensor, level: float, generator: torch.Generator) -> Tensor:
        """Latents at a noise level: alpha x0 + sigma epsilon."""
        alpha, sigma = self.signal_and_noise(level)
        epsilon = torch.randn(latents.shape, generator=generator, dtype=latents.dtype, device=generator.device)
        return alpha * latents + sigma * epsilon.to(latents.device)

    @torch.no_grad()
    def denoise(
        self, noisy: Tensor, level: float, texts: Sequence[Tensor], reference_image: Tensor | None = None
    ) -> list[Tensor]:
        """One estimate of the clean latents per text; the texts run one after the other, to save memory.

        These models know words only: a reference_image is ignored.
        """
        timestep = self._schedule.timestep(level)
        self._load_denoisers()
        eaten = noisy.to(self.device, self.dtype)
        outputs = (self.family.predict(self._parts, eaten, timestep, text.to(eaten)) for text in texts)
        return [self._schedule.clean(noisy, output.to(noisy), level) for output in outputs]

    @property
    def _denoisers(self) -> list[str]:
        return [name for name in self.family.denoisers if (self._index.get(name) or [None])[0] is not None]

    @property
    def _vae_dtype(self) -> torch.dtype:
        return torch.promote_types(self.dtype, torch.float32) if self.family.precise_vae else self.dtype

    def _check_size(self, frames: int, height: int, width: int) -> None:
        fit = self.grid.nearest(frames, height, width)
        if fit != (frames, height, width):
            rule = f"{self.grid.time}k + 1 frames, " if self.grid.time > 1 else ""
            raise JigdollError(
                f"{self._index['_class_name']} takes {rule}width and height in multiples of {self.grid.multiple}; this "
                f"video has {frames} frames of {width} x {height}. The nearest: {fit[0]} frames of {fit[2]} x {fit[1]}"
            )

    def _encode_sliced(self, pixels: Pixels) -> Latents:
        """The latents with a gradient through one run of frames; the values are those of the whole video."""
        runs = self.grid.runs(pixels.shape[2], self._backward_latent_frames or 1)
        run = runs[int(torch.randint(len(runs), (), generator=self._choice))]
        latents = self.family.encode(self._parts, pixels, run)
        return latents.detach() + len(runs) * (latents - latents.detach())

    def _load(self, *, keep: Any) -> Any:
        """The pipeline with only the parts that `keep` names."""
        diffusers = import_diffusers()
        parts = {name: value for name, value in self._index.items() if isinstance(value, list)}
        without = {name: None for name in parts if not keep(name)}
        dtypes = {"default": self.dtype, "vae": self._vae_dtype}
        with quiet(), _named(self.folder), torch.random.fork_rng(devices=[]):
            pipe = getattr(diffusers, self._index["_class_name"]).from_pretrained(
                self.folder, dtype=dtypes, local_files_only=True, **without
            )
        for name in parts:
            if isinstance(getattr(pipe, name, None), torch.nn.Module):
                getattr(pipe, name).requires_grad_(False).eval()
        return pipe

    def _load_denoisers(self) -> None:
        if self._text is not None:
            self._text = None
            _collect(self.device)
        if self._has_denoisers:
            return
        for name in self._denoisers:
            # Some classes draw their first weights while they load.
            with quiet(), _named(self.folder / name), torch.random.fork_rng(devices=[]):
                denoiser = getattr(import_diffusers(), self._index[name][1]).from_pretrained(
                    self.folder, subfolder=name, dtype=self.dtype, local_files_only=True
                )
            denoiser.requires_grad_(False).eval()
            if self._offload:
                denoiser.enable_group_offload(
                    onload_device=self.device, num_blocks_per_group=1, use_stream=self.device.type == "cuda"
                )
            else:
                denoiser.to(self.device)
            self._parts.pipe.register_modules(**{name: denoiser})
        self._has_denoisers = True

    def _free_denoisers(self) -> None:
        if self._has_denoisers:
            self._parts.pipe.register_modules(**dict.fromkeys(self._denoisers))
            self._has_denoisers = False
            _collect(self.device)


def family_of(folder: Path) -> tuple[ModelFamily, dict[str, Any]]:
    """The family of the pipeline in a folder, and the folder's index of parts."""
    path = folder / "model_index.json"
    if not path.is_file():
        raise JigdollError(f"{folder} holds no diffusers pipeline: there is no model_index.json in it")
    index = json.loads(path.read_text())
    name = index.get("_class_name")
    for family in FAMILIES:
        if name in family.pipelines:
            return family, index
    known = ", ".join(pipeline for family in FAMILIES for pipeline in family.pipelines)
    raise JigdollError(f"{folder} holds a {name}; the pipelines that can guide a motion are {known}")


def _full_config(folder: Path, part: str, index: dict[str, Any]) -> SimpleNamespace:
    """A part's configuration with its class's defaults filled in, read without its weights."""
    parameters = inspect.signature(getattr(import_diffusers(), index[part][1]).__init__).parameters
    defaults = {name: p.default for name, p in parameters.items() if p.default is not inspect.Parameter.empty}
    with _named(folder / part):
        return SimpleNamespace(**{**defaults, **json.loads((folder / part / "config.json").read_text())})


def _prepare_vae(vae: Any, checkpoint: bool) -> None:
    """No tiling, which silently changes the latents and sometimes their size; checkpointing where the class has it."""
    for flag in ("use_tiling", "use_framewise_encoding", "use_framewise_decoding"):
        if hasattr(vae, flag):
            setattr(vae, flag, False)
    if checkpoint and vae._supports_gradient_checkpointing:
        vae.enable_gradient_checkpointing()


def _is_text(name: str) -> bool:
    return name.startswith(("text_encoder", "tokenizer"))


def import_diffusers() -> Any:
    """The library, or what to install."""
    try:
        import diffusers
        import transformers  # noqa: F401
    except ImportError as error:
        raise MissingExtra("a diffusers video model as the prior", "video") from error
    return diffusers


def _collect(device: torch.device) -> None:
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


@contextmanager
def _named(folder: Path) -> Iterator[None]:
    """What goes wrong while a folder is read, with the folder's name."""
    try:
        yield
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise JigdollError(f"{folder} cannot be read, fetch it again: {first}") from error


@contextmanager
def quiet(*, bars: bool = False) -> Iterator[None]:
    """Loading without notes and (unless asked for) progress bars on stderr."""
    from diffusers.utils import logging as diffusers_logging
    from transformers.utils import logging as transformers_logging

    loggers = (diffusers_logging, transformers_logging)
    before = [(logger.get_verbosity(), logger.is_progress_bar_enabled()) for logger in loggers]
    for logger in loggers:
        logger.set_verbosity_error()
        if not bars:
            logger.disable_progress_bar()
    try:
        yield
    finally:
        for logger, (verbosity, bar) in zip(loggers, before, strict=True):
            logger.set_verbosity(verbosity)
            if bar:
                logger.enable_progress_bar()
