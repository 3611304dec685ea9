"""The families: CogVideoX, Wan, LTX, and the U-Nets over an image VAE (ModelScope, AnimateDiff).

Each turns latents `[views channels frames height width]` into what its denoiser eats, and back.
"""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from jigdoll.prior.prior_diffusers.family import (
    UNLIMITED,
    Grid,
    Latents,
    ModelFamily,
    Parts,
    Pixels,
    Run,
    Text,
    mode_of,
    walk,
)
from jigdoll.types import PriorDefaults


def _defaults(
    frames: int, fps: float, width: int, height: int, negative: str = "", *, flow: bool = False
) -> PriorDefaults:
    # Guidance 100, levels and steps are AKD's for CogVideoX-5B (appendix D); for flow matching `distill.config` has
    # those of W-RFSDS. Nobody has tuned them for the others.
    form, scale = ("flow", 25.0) if flow else ("sds", 100.0)
    return PriorDefaults("color", frames, fps, width, height, scale, (0.02, 0.98), negative, form, iterations=10_000)


def _times(timestep: float, views: int, like: Tensor, *, whole: bool = False) -> Tensor:
    return torch.full((views,), timestep, device=like.device, dtype=torch.long if whole else torch.float32)


def _normalised(latents: Latents, mean: Any, std: Any, scale: float = 1.0) -> Latents:
    mean, std = (torch.as_tensor(x).to(latents).reshape(1, -1, 1, 1, 1) for x in (mean, std))
    return (latents - mean) * scale / std


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


def _cog_encode(parts: Parts, pixels: Pixels, graded: Run | None) -> Latents:
    vae = parts.pipe.vae

    def step(chunk: Tensor, memory: Any) -> tuple[Tensor, Any]:
        moments, memory = vae.encoder(chunk, conv_cache=memory)
        return moments if vae.quant_conv is None else vae.quant_conv(moments), memory

    if graded is None:
        latents = vae.encode(pixels).latent_dist.mode()
    else:
        latents = mode_of(walk(pixels, _cog_grid(parts).runs(pixels.shape[2], 1), graded, step))
    return latents * vae.config.scaling_factor


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
        return _defaults(49, 24.0, 1280, 704, negative, flow=True)
    return _defaults(49, 16.0, 832, 480, negative, flow=True)


def _wan_encode(parts: Parts, pixels: Pixels, graded: Run | None) -> Latents:
    vae = parts.pipe.vae
    stepwise = graded is not None or (parts.checkpoint and torch.is_grad_enabled() and pixels.requires_grad)
    latents = mode_of(_wan_walk(parts, pixels, graded)) if stepwise else vae.encode(pixels).latent_dist.mode()
    return _normalised(latents, vae.config.latents_mean, vae.config.latents_std)


def _wan_walk(parts: Parts, pixels: Pixels, graded: Run | None) -> Latents:
    """Wan's encoder, four frames at a time as it runs anyway, with each step's activations recomputed in the backward.

    Its class has no checkpointing, and the whole encoder in one checkpoint would keep every activation of the video in
    the backward. The encoder writes what the next step needs into a list: here that list is passed from step to step.
    """
    from diffusers.models.autoencoders.autoencoder_kl_wan import patchify

    vae = parts.pipe.vae
    vae.clear_cache()
    empty = tuple(vae._enc_feat_map)

    def run(chunk: Tensor, *memory: Any) -> tuple[Any, ...]:
        written = list(memory)
        return (vae.encoder(chunk, feat_cache=written, feat_idx=[0]), *written)

    def step(chunk: Tensor, memory: Any) -> tuple[Tensor, Any]:
        if vae.config.patch_size is not None:
            chunk = patchify(chunk, patch_size=vae.config.patch_size)
        memory = empty if memory is None else memory
        recompute = parts.checkpoint and torch.is_grad_enabled()
        result = checkpoint(run, chunk, *memory, use_reentrant=False) if recompute else run(chunk, *memory)
        return result[0], result[1:]  # type: ignore[index]

    return vae.quant_conv(walk(pixels, _wan_grid(parts).runs(pixels.shape[2], 1), graded, step))


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
    return Grid(time, space, space * parts.config.patch_size, 0, 1)


def _ltx_defaults(parts: Parts) -> PriorDefaults:
    negative = "worst quality, inconsistent motion, blurry, jittery, distorted"
    return _defaults(49, LTX_FPS, 704, 480, negative, flow=True)


def _ltx_encode(parts: Parts, pixels: Pixels, graded: Run | None) -> Latents:
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


def _unet_encode(parts: Parts, pixels: Pixels, graded: Run | None) -> Latents:
    vae = parts.pipe.vae

    def step(chunk: Tensor, memory: Any) -> tuple[Tensor, Any]:
        latents = vae.encode(chunk.transpose(1, 2).flatten(0, 1)).latent_dist.mode() * vae.config.scaling_factor
        return latents.unflatten(0, (len(chunk), -1)).transpose(1, 2), None

    cuts = sorted({0, pixels.shape[2], *(graded or ())})
    return walk(pixels, list(pairwise(cuts)), graded, step)


def _unet_predict(parts: Parts, noisy: Latents, timestep: float, text: Text) -> Latents:
    each = noisy.shape[2] if type(parts.pipe.unet).__name__ == "UNetMotionModel" else 1
    return parts.pipe.unet(
        noisy,
        _times(timestep, len(noisy), noisy, whole=True),
        encoder_hidden_states=text.expand(len(noisy) * each, -1, -1),
        return_dict=False,
    )[0]


COGVIDEOX = ModelFamily(
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
WAN = ModelFamily(
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
LTX = ModelFamily(
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
UNET = ModelFamily(
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
