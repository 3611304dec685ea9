"""The pocket prior: our own tiny text-to-video diffusion model behind the same socket as the large ones."""

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.errors import JigdollError, first_line
from jigdoll.prior.pocket.captions import in_plain_words, negative_of
from jigdoll.prior.pocket.model import PocketConfig, PocketNet
from jigdoll.prior.pocket.text import by_habit, read_caption, to_ids
from jigdoll.prior.pocket.vocabulary import UNNATURAL, vocabulary_in
from jigdoll.types import PriorDefaults, Request

MOST_BYTES = 200_000_000
MOST_SIZE = 4096
"""Of any side of the network."""
LEVELS = (0.2, 0.75)
"""Where the prior tells a gait from its mistakes (`benchmarks/prior.py`)."""


class PocketPrior:
    """A `VideoPrior` whose latents are the pixels themselves, in -1..1."""

    def __init__(self, net: PocketNet):
        self.net = net.eval().requires_grad_(False)

    @property
    def device(self) -> torch.device:
        """Where its weights are."""
        return self.net.inlet.weight.device

    @property
    def defaults(self) -> PriorDefaults:
        """The colours of motion on a checkerboard, as in training."""
        config = self.net.config
        return PriorDefaults(
            look="motion",
            frames=config.frames,
            fps=config.fps,
            width=config.width,
            height=config.height,
            guidance=3.0,
            levels=LEVELS,
            negative_prompt=UNNATURAL,
            form="csd",
            reference_image=True,
            actions=self.net.text.vocabulary.actions,
        )

    def texts(self, request: Request) -> tuple[str, str]:
        """What is wanted in the words that it learned best, and unnatural motion of the same body as its opposite."""
        can = self.net.text.vocabulary.own_actions
        return in_plain_words(request, can), negative_of(request, can)

    @torch.no_grad()
    def embed(self, prompt: str) -> Float[Tensor, " dim"]:
        """Words that it does not know are left out here; `language.explain` names them.

        It saw few that hop instead of walking, and more of what hops are: so it is asked for those.
        """
        ids = to_ids([by_habit(read_caption(prompt))], self.net.text.vocabulary)
        return self.net.text(ids.to(self.device))[0]

    def encode(
        self, video: Float[Tensor, "views frames height width 3"]
    ) -> Float[Tensor, "views frames height width 3"]:
        """Pixels in 0..1 to -1..1."""
        config = self.net.config
        if video.shape[1:] != (config.frames, config.height, config.width, 3):
            raise JigdollError(
                f"the pocket prior looks at {config.frames} frames of {config.width} x {config.height}, "
                f"not at {video.shape[1]} of {video.shape[3]} x {video.shape[2]}; render at its own size"
            )
        return 2 * video - 1

    def signal_and_noise(self, level: float) -> tuple[float, float]:
        """sigma / alpha = 3 tan(pi level / 2), alpha^2 + sigma^2 = 1."""
        if not 0 <= level <= 1:
            raise JigdollError(f"a noise level lies in 0..1, not at {level}")
        angle = math.atan(self.net.config.shift * math.tan(0.5 * math.pi * min(level, 1 - 1e-6)))
        return math.cos(angle), math.sin(angle)

    def noise(self, latents: Tensor, level: float, generator: torch.Generator) -> Tensor:
        """Latents at a level."""
        alpha, sigma = self.signal_and_noise(level)
        return alpha * latents + sigma * torch.randn(latents.shape, generator=generator).to(latents)

    @torch.no_grad()
    def denoise(
        self,
        noisy: Tensor,
        level: float,
        texts: Sequence[Tensor],
        reference_image: Float[Tensor, "views height width 3"] | None = None,
    ) -> list[Tensor]:
        """One estimate of the clean video per text, all in one pass."""
        self.signal_and_noise(level)
        if not texts:
            return []
        views = len(noisy)
        text = torch.stack(list(texts)).repeat_interleave(views, 0)
        levels = torch.full((len(text),), level, device=noisy.device)
        seen = None if reference_image is None else (2 * reference_image.detach() - 1).repeat(len(texts), 1, 1, 1)
        clean = self.net(noisy.detach().repeat(len(texts), 1, 1, 1, 1), levels, text, seen)
        return list(clean.split(views))


def weights_path(path: Path | None = None) -> Path:
    """The given weights, or those that ship with the package."""
    file = (
        Path(str(resources.files("jigdoll.prior.pocket") / "weights" / "pocket.safetensors")) if path is None else path
    )
    if not file.is_file():
        raise JigdollError(
            f"{file}: there are no weights of the pocket prior; train some (python -m jigdoll.prior.pocket.train) and "
            "name their file"
        )
    return file


def facts_of(path: Path | None = None) -> dict:
    """What made the weights: the network's shape, the data recipe, the training, the held-out species."""
    return stored(weights_path(path))[0]


@cache
def open_pocket(path: Path | None = None, *, device: torch.device | str = "cpu") -> PocketPrior:
    """The pocket prior that ships with the package, or one that you trained."""
    file = weights_path(path)
    facts, tensors = stored(file)
    vocabulary = vocabulary_in(facts, source=file)
    try:
        config = PocketConfig(**(facts["model"] | {"patch": tuple(facts["model"]["patch"])}))
        _check_size(config, tensors)
        net = PocketNet(config, vocabulary)
        net.load_state_dict(tensors)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise JigdollError(f"{file}: these are no weights of a pocket prior ({first_line(error)})") from error
    return PocketPrior(net.to(device))


def _check_size(config: PocketConfig, tensors: Mapping[str, Tensor]) -> None:
    """Refuse a network that is larger than its weights, before it takes memory: blocks have squares of numbers."""
    sizes = [*(size for name, size in vars(config).items() if name not in ("patch", "fps", "shift")), *config.patch]
    if not all(type(size) is int for size in sizes):
        raise TypeError("a size of its network is no whole number")
    numbers = sum(tensor.numel() for tensor in tensors.values())
    blocks = config.layers * config.dim**2 + config.head_blocks * config.head_dim**2
    if min(sizes) < 1 or max(sizes) > MOST_SIZE or max(blocks, config.coarse_dim**2, config.fine_dim**2) > numbers:
        raise ValueError("its network has an impossible size")


def stored(file: Path) -> tuple[dict, dict[str, Tensor]]:
    """What made the weights in a file, and the weights."""
    from safetensors import SafetensorError, safe_open

    if file.stat().st_size > MOST_BYTES:
        raise JigdollError(f"{file}: {file.stat().st_size / 1e6:.0f} MB are too many for a pocket prior")
    try:
        with safe_open(file, "pt") as opened:
            facts = json.loads((opened.metadata() or {})["facts"])
            return dict(facts), {key: opened.get_tensor(key).float() for key in opened.keys()}
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise JigdollError(f"{file}: these are no weights of a pocket prior ({first_line(error)})") from error
