"""The models that have a short name, what each of them takes, and how one is opened."""

import re
from dataclasses import dataclass
from pathlib import Path

import torch

from jigdoll.errors import JigdollError
from jigdoll.prior.prior_diffusers.adapter import DiffusersPrior, family_of, import_diffusers, quiet

SLOW_ON_CPU_GB = 4.0
"""Weights from this size on are not run on a CPU unless it is asked for."""


@dataclass(frozen=True)
class Entry:
    """A model on the hub and what it takes; the figures are reckoned, not measured on a GPU."""

    hub_id: str
    download_gb: int
    """All parts, the text encoder included, by their parameter counts."""
    vram_gb: int
    """To distil from 49 frames of the model's own size: denoiser, VAE, what the checkpointed graph of the VAE keeps,
    and its largest piece recomputed, counted on tensor shapes. `offload` saves most of the denoiser's share,
    `backward_latent_frames` most of the graph's, smaller videos some of both."""


CATALOGUE = {
    "cogvideox-5b": Entry("zai-org/CogVideoX-5b", 21, 32),
    "cogvideox-2b": Entry("zai-org/CogVideoX-2b", 14, 24),
    "wan-2.2": Entry("Wan-AI/Wan2.2-TI2V-5B-Diffusers", 34, 64),
    "wan-2.1-1.3b": Entry("Wan-AI/Wan2.1-T2V-1.3B-Diffusers", 29, 52),
    "ltx": Entry("Lightricks/LTX-Video", 28, 12),
    "modelscope": Entry("ali-vilab/text-to-video-ms-1.7b", 7, 10),
}


def open_prior(
    name: str,
    *,
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
    offload: bool = False,
    backward_latent_frames: int | None = None,
    fps: float | None = None,
    seed: int = 0,
) -> DiffusersPrior:
    """Open a video model by its short name (`CATALOGUE`), its folder, or its id on the Hugging Face hub.

    Weights that are not here are downloaded. `device` is CUDA where there is one; a big model runs on a CPU only when
    `device="cpu"` asks for it. The other options are those of `DiffusersPrior`.
    """
    import_diffusers()
    entry, folder = CATALOGUE.get(name), Path(name).expanduser()
    local = entry is None and folder.is_dir()
    if entry is None and not local and not re.fullmatch(r"[\w.-]+/[\w.-]+", name):
        raise JigdollError(
            f"no video prior is called {name!r}: give {', '.join(CATALOGUE)}, the folder of a diffusers pipeline, or a "
            "hub id like owner/name"
        )
    saving = offload or backward_latent_frames is not None
    chosen = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    if entry is not None:
        check_device(name, entry.vram_gb, chosen, asked=device is not None, saving=saving)
    if not local:
        folder = _fetch(entry.hub_id if entry else name, entry)
    if entry is None:
        check_device(name, weights_gb(folder), chosen, asked=device is not None, saving=saving)
    return DiffusersPrior(
        folder,
        device=chosen,
        dtype=dtype,
        offload=offload,
        backward_latent_frames=backward_latent_frames,
        fps=fps,
        seed=seed,
    )


def weights_gb(folder: Path) -> float:
    """Size of the denoiser's and the VAE's weight files, the least that has to fit into memory."""
    family, _ = family_of(folder)
    files = [file for part in (*family.denoisers, "vae") for file in (folder / part).glob("*.safetensors")]
    return sum(file.stat().st_size for file in files) / 1e9


def check_device(name: str, need_gb: float | int, device: torch.device, *, asked: bool, saving: bool) -> None:
    """Refuse a device that the model would not fit on, or would take forever on, and say what it takes.

    Whoever asks for a way of `saving` memory is trusted to know.
    """
    download = f" and a download of {CATALOGUE[name].download_gb} GB" if name in CATALOGUE else ""
    if device.type == "cpu":
        if not asked and need_gb >= SLOW_ON_CPU_GB:
            raise JigdollError(
                f"{name} takes a CUDA GPU with about {need_gb:.0f} GB{download}, and there is no such GPU here. The "
                "pocket prior runs on a CPU. To run this one there all the same (minutes a step), give --device cpu"
            )
    elif device.type == "cuda":
        if not torch.cuda.is_available():
            raise JigdollError(f"{name} was to run on {device}, but this PyTorch sees no CUDA GPU")
        total_gb = torch.cuda.get_device_properties(device).total_memory / 1e9
        if total_gb < need_gb and not saving:
            raise JigdollError(
                f"{name} takes about {need_gb:.0f} GB of GPU memory, {device} has {total_gb:.0f} GB: try "
                "--offload (slower), --vae-frames 2, a smaller video, or a smaller model"
            )


def _fetch(hub_id: str, entry: Entry | None) -> Path:
    """The folder of a model in the hub's cache, downloaded first if need be."""
    diffusers = import_diffusers()
    from huggingface_hub.errors import HfHubHTTPError

    try:
        with quiet(bars=True):
            return Path(diffusers.DiffusionPipeline.download(hub_id))
    except (OSError, ValueError, HfHubHTTPError) as error:
        takes = f", about {entry.download_gb} GB (and then {entry.vram_gb} GB of GPU memory)" if entry else ""
        raise JigdollError(
            f"the weights of {hub_id}{takes}, are not on this machine and could not be fetched. With a network, run "
            f"`hf download {hub_id}` and try again; or give the folder of a copy"
        ) from error
