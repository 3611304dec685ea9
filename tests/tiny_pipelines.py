"""Tiny latent video pipelines of the real classes, random weights from a seed, saved as ordinary folders."""

from pathlib import Path
from typing import Any

import torch

WORDS = "a an the horse robot dog walks runs jumps idles slowly quickly blurry , .".split()
LATENTS = 4


def save_tiny_pipeline(name: str, folder: Path) -> Path:
    """Build one of `TINY` and save it with `save_pretrained`; the weights are the same every time."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        pipeline = TINY[name]()
    _shake_zero_weights(pipeline)
    pipeline.save_pretrained(folder)
    return folder


def _shake_zero_weights(pipeline: Any) -> None:
    """Fresh weights hold zeros where training starts from nothing (biases, gates): then a mistake there is silent."""
    generator = torch.Generator().manual_seed(8)
    for name in ("vae", "transformer", "transformer_2", "unet", "text_encoder"):
        part = getattr(pipeline, name, None)
        for parameter in [] if part is None else part.parameters():
            if not parameter.data.any():
                parameter.data.normal_(0, 0.05, generator=generator)


def _tokenizer(length: int) -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import T5Tokenizer

    vocabulary = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", -10.0)]
    vocabulary += [("▁" + word, -2.0) for word in WORDS] + [("▁", -3.0)]
    vocabulary += [(letter, -6.0) for letter in "abcdefghijklmnopqrstuvwxyz"]
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=2))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return T5Tokenizer(tokenizer_object=tokenizer, extra_ids=0, model_max_length=length)


def _text_encoder(kind: str = "T5") -> Any:
    import transformers

    sizes: dict[str, Any] = {"vocab_size": 64, "d_model": 32, "d_kv": 8, "d_ff": 32, "num_layers": 1, "num_heads": 2}
    config = getattr(transformers, f"{kind}Config")(**sizes, feed_forward_proj="gated-gelu", dropout_rate=0.0)
    return getattr(transformers, f"{kind}EncoderModel")(config).eval()


def _cog(*, patch_size_t: int | None = None, rotary: bool = True) -> Any:
    import diffusers

    vae = diffusers.AutoencoderKLCogVideoX(
        block_out_channels=(8, 8, 8, 8),
        layers_per_block=1,
        norm_num_groups=2,
        latent_channels=LATENTS,
        scaling_factor=0.7,
    )
    transformer = diffusers.CogVideoXTransformer3DModel(
        num_attention_heads=2,
        attention_head_dim=16,
        in_channels=LATENTS,
        out_channels=LATENTS,
        time_embed_dim=8,
        text_embed_dim=32,
        num_layers=1,
        sample_width=8,
        sample_height=6,
        sample_frames=9,
        patch_size_t=patch_size_t,
        patch_bias=patch_size_t is None,
        max_text_seq_length=16,
        use_rotary_positional_embeddings=rotary,
    )
    scheduler = diffusers.CogVideoXDDIMScheduler(
        beta_start=0.00085,
        beta_end=0.012,
        beta_schedule="scaled_linear",
        prediction_type="v_prediction",
        rescale_betas_zero_snr=True,
        timestep_spacing="trailing",
        set_alpha_to_one=True,
        clip_sample=False,
        snr_shift_scale=1.0,
    )
    return diffusers.CogVideoXPipeline(_tokenizer(16), _text_encoder(), vae, transformer, scheduler)


def _wan(*, stages: int = 1, expand_timesteps: bool = False, scheduler: Any = None) -> Any:
    import diffusers

    patched = expand_timesteps  # Wan 2.2's small model comes with a VAE that folds 2x2 pixels before it starts
    vae = diffusers.AutoencoderKLWan(
        base_dim=4,
        z_dim=LATENTS,
        dim_mult=[1, 1, 1, 1],
        num_res_blocks=1,
        latents_mean=[0.1, -0.2, 0.3, 0.05],
        latents_std=[0.5, 0.8, 1.2, 0.9],
        in_channels=12 if patched else 3,
        out_channels=12 if patched else 3,
        patch_size=2 if patched else None,
        is_residual=patched,
        scale_factor_spatial=16 if patched else 8,
    )

    def transformer() -> Any:
        return diffusers.WanTransformer3DModel(
            num_attention_heads=2,
            attention_head_dim=12,
            in_channels=LATENTS,
            out_channels=LATENTS,
            text_dim=32,
            freq_dim=16,
            ffn_dim=32,
            num_layers=1,
            rope_max_seq_len=32,
        )

    return diffusers.WanPipeline(
        tokenizer=_tokenizer(512),
        text_encoder=_text_encoder("UMT5"),
        vae=vae,
        scheduler=scheduler or diffusers.FlowMatchEulerDiscreteScheduler(shift=3.0),
        transformer=transformer(),
        transformer_2=transformer() if stages == 2 else None,
        boundary_ratio=0.875 if stages == 2 else None,
        expand_timesteps=expand_timesteps,
    )


def _ltx() -> Any:
    import diffusers

    vae = diffusers.AutoencoderKLLTXVideo(
        latent_channels=LATENTS,
        block_out_channels=(8, 8, 8, 8),
        decoder_block_out_channels=(8, 8, 8, 8),
        layers_per_block=(1, 1, 1, 1, 1),
        decoder_layers_per_block=(1, 1, 1, 1, 1),
    )
    vae.latents_mean.copy_(torch.tensor([0.1, -0.2, 0.3, 0.05]))
    vae.latents_std.copy_(torch.tensor([0.5, 0.8, 1.2, 0.9]))
    transformer = diffusers.LTXVideoTransformer3DModel(
        in_channels=LATENTS,
        out_channels=LATENTS,
        num_attention_heads=2,
        attention_head_dim=8,
        cross_attention_dim=16,
        num_layers=1,
        caption_channels=32,
    )
    return diffusers.LTXPipeline(
        diffusers.FlowMatchEulerDiscreteScheduler(), vae, _text_encoder(), _tokenizer(16), transformer
    )


def _image_vae() -> Any:
    import diffusers

    return diffusers.AutoencoderKL(
        down_block_types=("DownEncoderBlock2D",) * 4,
        up_block_types=("UpDecoderBlock2D",) * 4,
        block_out_channels=(8, 8, 8, 8),
        latent_channels=LATENTS,
        norm_num_groups=2,
    )


def _clip() -> tuple[Any, Any]:
    from transformers import CLIPTextConfig, CLIPTextModel

    config = CLIPTextConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=16,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=2,
    )
    return _tokenizer(16), CLIPTextModel(config).eval()


def _epsilon_scheduler() -> Any:
    import diffusers

    return diffusers.DDIMScheduler(
        beta_start=0.00085,
        beta_end=0.012,
        beta_schedule="scaled_linear",
        clip_sample=False,
        timestep_spacing="trailing",
    )


def _modelscope() -> Any:
    import diffusers

    tokenizer, text_encoder = _clip()
    unet = diffusers.UNet3DConditionModel(
        sample_size=8,
        in_channels=LATENTS,
        out_channels=LATENTS,
        down_block_types=("CrossAttnDownBlock3D", "DownBlock3D"),
        up_block_types=("UpBlock3D", "CrossAttnUpBlock3D"),
        block_out_channels=(8, 16),
        layers_per_block=1,
        norm_num_groups=2,
        cross_attention_dim=32,
        attention_head_dim=4,
    )
    return diffusers.TextToVideoSDPipeline(_image_vae(), text_encoder, tokenizer, unet, _epsilon_scheduler())


def _animatediff() -> Any:
    import diffusers

    tokenizer, text_encoder = _clip()
    unet = diffusers.UNetMotionModel(
        sample_size=8,
        in_channels=LATENTS,
        out_channels=LATENTS,
        down_block_types=("CrossAttnDownBlockMotion", "DownBlockMotion"),
        up_block_types=("UpBlockMotion", "CrossAttnUpBlockMotion"),
        block_out_channels=(8, 16),
        layers_per_block=1,
        norm_num_groups=2,
        cross_attention_dim=32,
        num_attention_heads=2,
        motion_num_attention_heads=2,
        motion_max_seq_length=16,
    )
    return diffusers.AnimateDiffPipeline(_image_vae(), text_encoder, tokenizer, unet, None, _epsilon_scheduler())  # type: ignore[arg-type]


def _wan_unipc() -> Any:
    import diffusers

    return _wan(
        scheduler=diffusers.UniPCMultistepScheduler(
            prediction_type="flow_prediction", use_flow_sigmas=True, flow_shift=3.0
        )
    )


TINY = {
    "cogvideox": _cog,
    "cogvideox-sincos": lambda: _cog(rotary=False),
    "cogvideox-1.5": lambda: _cog(patch_size_t=2),
    "wan": _wan,
    "wan-unipc": _wan_unipc,
    "wan-2.2-14b": lambda: _wan(stages=2),
    "wan-2.2-5b": lambda: _wan(expand_timesteps=True),
    "ltx": _ltx,
    "modelscope": _modelscope,
    "animatediff": _animatediff,
}
