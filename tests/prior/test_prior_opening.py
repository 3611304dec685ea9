"""Opening the big video models: published sizes without memory behind them, and what is refused."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from jigdoll.errors import JigdollError, MissingExtra
from jigdoll.prior.prior_diffusers import CATALOGUE, DiffusersPrior, open_prior
from jigdoll.prior.prior_diffusers.catalogue import check_device
from jigdoll.prior.prior_diffusers.families import COGVIDEOX, LTX, WAN
from jigdoll.prior.prior_diffusers.family import Parts

os.environ["HF_HUB_OFFLINE"] = "1"
pytestmark = pytest.mark.skipif(importlib.util.find_spec("diffusers") is None, reason="the extra 'video' is missing")


def real_parts(name: str) -> tuple[Any, Parts]:
    """The published configurations (but for the depth of the denoiser), without memory behind them."""
    import diffusers

    nothing: dict[str, Any] = {"tokenizer": None, "text_encoder": None}
    with torch.device("meta"):
        match name:
            case "cogvideox-5b":
                vae: Any = diffusers.AutoencoderKLCogVideoX(scaling_factor=0.7)
                denoiser: Any = diffusers.CogVideoXTransformer3DModel(
                    num_attention_heads=48, num_layers=1, use_rotary_positional_embeddings=True
                )
                scheduler: Any = diffusers.CogVideoXDDIMScheduler()
                pipe: Any = diffusers.CogVideoXPipeline(vae=vae, transformer=denoiser, scheduler=scheduler, **nothing)
            case "wan-2.2":
                vae = diffusers.AutoencoderKLWan(
                    base_dim=160,
                    decoder_base_dim=256,
                    z_dim=48,
                    is_residual=True,
                    patch_size=2,
                    in_channels=12,
                    out_channels=12,
                    scale_factor_spatial=16,
                    latents_mean=[0.0] * 48,
                    latents_std=[1.0] * 48,
                )
                denoiser = diffusers.WanTransformer3DModel(
                    num_attention_heads=24, ffn_dim=14336, in_channels=48, out_channels=48, num_layers=1
                )
                scheduler = diffusers.FlowMatchEulerDiscreteScheduler()
                pipe = diffusers.WanPipeline(
                    vae=vae, transformer=denoiser, scheduler=scheduler, expand_timesteps=True, **nothing
                )
            case _:
                vae, denoiser = diffusers.AutoencoderKLLTXVideo(), diffusers.LTXVideoTransformer3DModel(num_layers=1)
                scheduler = diffusers.FlowMatchEulerDiscreteScheduler()
                pipe = diffusers.LTXPipeline(vae=vae, transformer=denoiser, scheduler=scheduler, **nothing)
    return {"cogvideox-5b": COGVIDEOX, "wan-2.2": WAN, "ltx": LTX}[name], Parts(pipe, denoiser.config, checkpoint=True)


@pytest.mark.parametrize(
    ("name", "defaults", "shape"),
    [
        ("cogvideox-5b", (49, 720, 480), (1, 16, 3, 60, 90)),
        ("wan-2.2", (49, 1280, 704), (1, 48, 3, 44, 80)),
        ("ltx", (49, 704, 480), (1, 128, 2, 15, 22)),
    ],
)
def test_the_published_sizes_pass_through_vae_and_denoiser(
    name: str, defaults: tuple[int, int, int], shape: tuple[int, ...]
) -> None:
    family, parts = real_parts(name)
    told, grid = family.defaults(parts), family.grid(parts)
    assert (told.frames, told.width, told.height) == defaults
    assert grid.nearest(told.frames, told.height, told.width) == (told.frames, told.height, told.width)
    pixels = torch.empty(1, 3, 9, told.height, told.width, device="meta", requires_grad=True)
    latents = family.encode(parts, pixels, None)
    assert latents.shape == shape and latents.requires_grad
    assert (grid.latent_frames(9), told.height // grid.space, told.width // grid.space) == shape[2:]
    text = torch.empty(128, 4096, device="meta")
    assert family.predict(parts, latents, 500.0, text).shape == shape


def changed_copy(folder: Path, target: Path, file: str, **values: Any) -> Path:
    shutil.copytree(folder, target)
    path = target / file
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    return target


def test_a_scheduler_that_contradicts_its_model_is_refused(tiny: Any, tmp_path: Path) -> None:
    file = "scheduler/scheduler_config.json"
    folder = changed_copy(tiny("cogvideox"), tmp_path / "epsilon", file, prediction_type="epsilon")
    with pytest.raises(JigdollError, match=r"predicts v, but.*epsilon.*scheduler_config.json"):
        DiffusersPrior(folder)


def test_what_is_no_usable_pipeline_is_refused_by_name(tiny: Any, tmp_path: Path) -> None:
    folder = changed_copy(tiny("ltx"), tmp_path / "other", "model_index.json", _class_name="MochiPipeline")
    with pytest.raises(JigdollError, match=r"MochiPipeline.*CogVideoXPipeline, WanPipeline, LTXPipeline"):
        open_prior(str(folder))
    (tmp_path / "empty").mkdir()
    with pytest.raises(JigdollError, match=r"model_index\.json"):
        open_prior(str(tmp_path / "empty"))
    with pytest.raises(JigdollError, match=r"no video prior is called 'cogvideo'.*cogvideox-5b.*wan-2.2.*ltx"):
        open_prior("cogvideo")


@pytest.mark.parametrize("file", ["vae/diffusion_pytorch_model.safetensors", "transformer/config.json"])
def test_a_folder_with_a_hole_is_refused_by_name(tiny: Any, tmp_path: Path, file: str) -> None:
    folder = changed_copy(tiny("wan"), tmp_path / "holed", "model_index.json")
    (folder / file).unlink()
    with pytest.raises(JigdollError, match=r"holed.*cannot be read"):
        DiffusersPrior(folder)


def test_naming_the_prior_imports_no_heavy_library() -> None:
    code = "import sys, jigdoll.prior.prior_diffusers; print({'diffusers', 'transformers'} & sys.modules.keys())"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_big_model_without_a_gpu_says_what_it_takes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    entry = CATALOGUE[name]
    with pytest.raises(JigdollError, match=f"{entry.vram_gb:.0f} GB and a download of {entry.download_gb:.0f} GB"):
        open_prior(name)
    with pytest.raises(JigdollError, match="no CUDA GPU"):
        open_prior(name, device="cuda")


def test_missing_weights_say_what_to_fetch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(JigdollError, match=r"CogVideoX-5b, about 21 GB.*32 GB.*hf download zai-org/CogVideoX-5b"):
        open_prior("cogvideox-5b", device="cpu")
    with pytest.raises(JigdollError, match="hf download nobody/nothing"):
        open_prior("nobody/nothing", device="cpu")


def test_a_gpu_that_is_too_small_is_refused_unless_memory_is_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(total_memory=8e9))
    with pytest.raises(JigdollError, match="24 GB of GPU memory, cuda has 8 GB"):
        check_device("cogvideox-5b", 24, torch.device("cuda"), asked=False, saving=False)
    check_device("cogvideox-5b", 24, torch.device("cuda"), asked=False, saving=True)
    check_device("small", 6, torch.device("cuda"), asked=False, saving=False)


def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "diffusers", None)
    with pytest.raises(MissingExtra, match=r"pip install 'jigdoll\[video\]'"):
        open_prior("cogvideox-5b")
