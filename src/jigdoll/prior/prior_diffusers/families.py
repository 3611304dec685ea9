"""What differs between the latent video models of diffusers: sizes, layouts, normalisation, calls.

Here latents always are `[views channels frames height width]`, normalised; each family turns them into what its
denoiser eats and back.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from jigdoll.prior.prior_diffusers.schedule import Prediction
from jigdoll.types import PriorDefaults

Pixels = Float[Tensor, "views 3 frames height width"]
Latents = Float[Tensor, "views channels latent_frames latent_height latent_width"]
Text = Float[Tensor, "tokens features"]
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
    """The VAE can be cut at every `chunk` frames, counted from the end of the video, without changing a value ..."""
    first: int
    """... as long as this many frames are left in front."""
    pack: int = 1
    """Latent frames come in groups of this many; the first one is repeated in front where they do not."""
    most: tuple[int, int, int] = (UNLIMITED, UNLIMITED, UNLIMITED)
    """The largest frame count, height and width that the denoiser has places for."""

    def latent_frames(self, frames: int) -> int:
        """Latent frames of a video, before `pack`."""
        return (frames - 1) // self.time + 1

    def runs(self, frames: int, latent_frames: int) -> list[tuple[int, int]]:
        """The video cut into runs of frames with about this many latent frames each."""
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
class Family:
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
    encode: Callable[[Parts, Pixels], Latents]
    """Pixels in -1..1 to normalised latents: the mode of the VAE's posterior."""
    predict: Callable[[Parts, Latents, float, Text], Latents]
    """The denoiser's output at a timestep."""


def _defaults(frames: int, fps: float, width: int, height: int, negative: str = "") -> PriorDefaults:
    # Guidance 100 and the levels are AKD's for CogVideoX-5B (appendix D); nobody has tuned them for the others.
    return PriorDefaults("color", frames, fps, width, height, 100.0, (0.02, 0.98), negative)


def _times(timestep: float, views: int, like: Tensor, *, whole: bool = False) -> Tensor:
    return torch.full((views,), timestep, device=like.device, dtype=torch.long if whole else torch.float32)


def _normalised(latents: Latents, mean: Any, std: Any, scale: float = 1.0) -> Latents:
    mean, std = (torch.as_tensor(x).to(latents).reshape(1, -1, 1, 1, 1) for x in (mean, std))
    return (latents - mean) * scale / std


def embed_prompt(pipe: Any, prompt: str, *, max_tokens: int | None, device: torch.device) -> Text:
    """Encode a prompt as the pipeline would; where it masks the padding away (LTX), the padding is cut off instead."""
    options = {"num_images_per_prompt": 1} if max_tokens is None else {"max_sequence_length": max_tokens}
    result = pipe.encode_prompt(prompt=prompt, device=device, do_classifier_free_guidance=False, **options)
    masked = len(result) == 4
    return result[0][0][result[1][0].bool()] if masked else result[0][0]


# CogVideoX: v-prediction, latents as [views frames channels height width], rotary embeddings passed in.


def _cog_grid(parts: Parts) -> Grid:
    space = 2 ** (len(parts.pipe.vae.config.block_out_channels) - 1)
    # The VAE takes eight frames at a time and its group norms see only those: cuts elsewhere would change values.
    chunk = int(parts.pipe.vae.num_sample_frames_batch_size)
    time = int(parts.pipe.vae.config.temporal_compression_ratio)
    grid = Grid(time, space, space * parts.config.patch_size, chunk, chunk)
    if parts.config.patch_size_t is None:
        return grid
    # CogVideoX 1.5 pads odd latent frames in front, as in its training, and its rotary places end at a largest size.
    most = (UNLIMITED, parts.config.sample_height * space, parts.config.sample_width * space)
    return replace(grid, pack=parts.config.patch_size_t, most=most)


def _cog_defaults(parts: Parts) -> PriorDefaults:
    config, space = parts.config, 2 ** (len(parts.pipe.vae.config.block_out_channels) - 1)
    if config.patch_size_t is not None:  # 1.5, whose config names the largest size, not the usual one
        return _defaults(config.sample_frames, 16.0, 1360, 768)
    return _defaults(config.sample_frames, 8.0, config.sample_width * space, config.sample_height * space)


def _cog_encode(parts: Parts, pixels: Pixels) -> Latents:
    return parts.pipe.vae.encode(pixels).latent_dist.mode() * parts.pipe.vae.config.scaling_factor


def _cog_predict(parts: Parts, noisy: Latents, timestep: float, text: Text) -> Latents:
    rotary = None
    if parts.config.use_rotary_positional_embeddings:
        space = parts.pipe.vae_scale_factor_spatial
        rotary = parts.pipe._prepare_rotary_positional_embeddings(
            noisy.shape[3] * space, noisy.shape[4] * space, noisy.shape[2], noisy.device
        )
    output = parts.pipe.transformer(
        hidden_states=noisy.transpose(1, 2),
        encoder_hidden_states=text.expand(len(noisy), -1, -1),
        timestep=_times(timestep, len(noisy), noisy, whole=True),
        image_rotary_emb=rotary,
        return_dict=False,
    )[0]
    return output.transpose(1, 2)


# Wan: flow matching; 2.2 comes with two denoisers for high and low noise (14B) or with a timestep per token (5B).


def _wan_grid(parts: Parts) -> Grid:
    space, time = int(parts.pipe.vae.config.scale_factor_spatial), int(parts.pipe.vae.config.scale_factor_temporal)
    return Grid(time, space, space * parts.config.patch_size[1], time, 1)


def _wan_defaults(parts: Parts) -> PriorDefaults:
    negative = "blurry, static, worst quality, deformed limbs, fused legs, walking backwards"
    if parts.pipe.config.expand_timesteps:
        return _defaults(49, 24.0, 1280, 704, negative)
    return _defaults(49, 16.0, 832, 480, negative)


def _wan_encode(parts: Parts, pixels: Pixels) -> Latents:
    vae = parts.pipe.vae
    if parts.checkpoint and torch.is_grad_enabled() and pixels.requires_grad:
        from diffusers.models.autoencoders.vae import DiagonalGaussianDistribution

        latents = DiagonalGaussianDistribution(_wan_checkpointed(vae, pixels)).mode()
    else:
        latents = vae.encode(pixels).latent_dist.mode()
    return _normalised(latents, vae.config.latents_mean, vae.config.latents_std)


def _wan_checkpointed(vae: Any, pixels: Pixels) -> Latents:
    """Wan's encoder, four frames at a time as it runs anyway, with each run's activations recomputed in the backward.

    Its class has no checkpointing, and the whole encoder in one checkpoint would keep every activation of the video in
    the backward. The encoder writes what the next run needs into a list: here that list is passed from run to run.
    """
    from diffusers.models.autoencoders.autoencoder_kl_wan import patchify

    def run(chunk: Tensor, *cache: Any) -> tuple[Any, ...]:
        memory = list(cache)
        return (vae.encoder(chunk, feat_cache=memory, feat_idx=[0]), *memory)

    if vae.config.patch_size is not None:
        pixels = patchify(pixels, patch_size=vae.config.patch_size)
    vae.clear_cache()
    memory: list[Any] = list(vae._enc_feat_map)
    latents = []
    for chunk in (pixels[:, :, :1], *pixels[:, :, 1:].split(4, 2)):
        latent, *memory = checkpoint(run, chunk, *memory, use_reentrant=False)  # type: ignore[misc]
        latents.append(latent)
    return vae.quant_conv(torch.cat(latents, 2))


def _wan_predict(parts: Parts, noisy: Latents, timestep: float, text: Text) -> Latents:
    config = parts.pipe.config
    steps = parts.pipe.scheduler.config.num_train_timesteps
    low = config.boundary_ratio is not None and timestep < config.boundary_ratio * steps
    denoiser = parts.pipe.transformer_2 if low else parts.pipe.transformer
    times = _times(timestep, len(noisy), noisy)
    if config.expand_timesteps:
        patch = parts.config.patch_size
        tokens = noisy[0, 0].numel() // (patch[0] * patch[1] * patch[2])
        times = times[:, None].expand(-1, tokens)
    return denoiser(
        hidden_states=noisy,
        timestep=times,
        encoder_hidden_states=text.expand(len(noisy), -1, -1),
        return_dict=False,
    )[0]


# LTX: flow matching; latents as a list of tokens; places in seconds and pixels, so that the frame rate matters.

LTX_FPS = 24.0


def _ltx_grid(parts: Parts) -> Grid:
    time, space = int(parts.pipe.vae.temporal_compression_ratio), int(parts.pipe.vae.spatial_compression_ratio)
    return Grid(time, space, space * parts.config.patch_size, time, 1)


def _ltx_defaults(parts: Parts) -> PriorDefaults:
    return _defaults(49, LTX_FPS, 704, 480, "worst quality, inconsistent motion, blurry, jittery, distorted")


def _ltx_encode(parts: Parts, pixels: Pixels) -> Latents:
    vae = parts.pipe.vae
    return _normalised(
        vae.encode(pixels).latent_dist.mode(), vae.latents_mean, vae.latents_std, vae.config.scaling_factor
    )


def _ltx_predict(parts: Parts, noisy: Latents, timestep: float, text: Text) -> Latents:
    patch, patch_time = parts.config.patch_size, parts.config.patch_size_t
    frames, height, width = noisy.shape[2] // patch_time, noisy.shape[3] // patch, noisy.shape[4] // patch
    space = parts.pipe.vae.spatial_compression_ratio
    output = parts.pipe.transformer(
        hidden_states=parts.pipe._pack_latents(noisy, patch, patch_time),
        encoder_hidden_states=text.expand(len(noisy), -1, -1),
        timestep=_times(timestep, len(noisy), noisy),
        encoder_attention_mask=None,  # the padding was cut off: see `embed_prompt`
        num_frames=frames,
        height=height,
        width=width,
        rope_interpolation_scale=(parts.pipe.vae.temporal_compression_ratio / (parts.fps or LTX_FPS), space, space),
        return_dict=False,
    )[0]
    return parts.pipe._unpack_latents(output, frames, height, width, patch, patch_time)


# ModelScope and AnimateDiff, for AKD's ablation over VideoCrafter: epsilon, an image VAE, a U-Net over space and time.


def _unet_grid(parts: Parts) -> Grid:
    space = 2 ** (len(parts.pipe.vae.config.block_out_channels) - 1)
    frames = getattr(parts.config, "motion_max_seq_length", UNLIMITED)  # AnimateDiff's
    return Grid(1, space, space, 1, 1, most=(frames, UNLIMITED, UNLIMITED))


def _unet_defaults(parts: Parts) -> PriorDefaults:
    size = parts.config.sample_size or 32
    height, width = (size, size) if isinstance(size, int) else size
    space = 2 ** (len(parts.pipe.vae.config.block_out_channels) - 1)
    return _defaults(16, 8.0, width * space, height * space)


def _unet_encode(parts: Parts, pixels: Pixels) -> Latents:
    pictures = pixels.transpose(1, 2).flatten(0, 1)
    latents = parts.pipe.vae.encode(pictures).latent_dist.mode() * parts.pipe.vae.config.scaling_factor
    return latents.unflatten(0, (pixels.shape[0], -1)).transpose(1, 2)


def _unet_predict(parts: Parts, noisy: Latents, timestep: float, text: Text) -> Latents:
    each = noisy.shape[2] if type(parts.pipe.unet).__name__ == "UNetMotionModel" else 1
    return parts.pipe.unet(
        noisy,
        _times(timestep, len(noisy), noisy, whole=True),
        encoder_hidden_states=text.expand(len(noisy) * each, -1, -1),
        return_dict=False,
    )[0]


COGVIDEOX = Family(
    pipelines=("CogVideoXPipeline",),
    prediction="v",
    denoisers=("transformer",),
    precise_vae=False,
    grid=_cog_grid,
    defaults=_cog_defaults,
    max_tokens=lambda config: int(config.max_text_seq_length),
    encode=_cog_encode,
    predict=_cog_predict,
)
WAN = Family(
    pipelines=("WanPipeline",),
    prediction="flow",
    denoisers=("transformer", "transformer_2"),
    precise_vae=True,
    grid=_wan_grid,
    defaults=_wan_defaults,
    max_tokens=lambda config: 512,  # encode_prompt's own default is 226, but the pipeline runs with 512
    encode=_wan_encode,
    predict=_wan_predict,
)
LTX = Family(
    pipelines=("LTXPipeline",),
    prediction="flow",
    denoisers=("transformer",),
    precise_vae=False,
    grid=_ltx_grid,
    defaults=_ltx_defaults,
    max_tokens=lambda config: 128,
    encode=_ltx_encode,
    predict=_ltx_predict,
)
UNET = Family(
    pipelines=("TextToVideoSDPipeline", "AnimateDiffPipeline"),
    prediction="epsilon",
    denoisers=("unet",),
    precise_vae=False,
    grid=_unet_grid,
    defaults=_unet_defaults,
    max_tokens=lambda config: None,
    encode=_unet_encode,
    predict=_unet_predict,
)
FAMILIES = (COGVIDEOX, WAN, LTX, UNET)
