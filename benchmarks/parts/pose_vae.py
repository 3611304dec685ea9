"""A peer of the pose space: a variational autoencoder over poses with the same network on both sides.

    python benchmarks/parts/pose_vae.py CACHE OUT.safetensors [--seconds 300]

The encoder is the pose space's transformer, pooled to a code of 32 numbers; the decoder is the same transformer, which
is told the code where the pose space is told a sentence. Same data, same units, same variations of bodies.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from jigdoll.posespace.dataset import open_dataset, spread_of
from jigdoll.posespace.figure import CHANNELS, Figure, Sticks, stack_figures
from jigdoll.posespace.model import PATCH, NetConfig, PoseNet
from jigdoll.posespace.windows import Units, Windows, channel_counts, nothing_known

CODE = 32
BETA = 0.01
"""How much the code's distance from a unit Gaussian counts."""


class PoseVAE(nn.Module):
    """Poses to codes and back."""

    def __init__(self, config: NetConfig) -> None:
        super().__init__()
        self.encoder, self.decoder = PoseNet(config), PoseNet(config)
        self.squeeze = nn.Linear(CHANNELS, 2 * CODE)
        self.spread = nn.Linear(CODE, config.text)
        for each in self.encoder.way_out.each:
            nn.init.normal_(each.weight, std=0.05)

    def encode(self, clean: Tensor, sticks: Sticks) -> tuple[Tensor, Tensor]:
        """Mean and log variance of the code."""
        level, text = torch.zeros(len(clean)), torch.zeros(len(clean), self.encoder.config.text)
        out = self.encoder(clean, level, sticks, text, nothing_known(clean))
        there = (sticks.kinds >= 0).float()[:, :, None, None]
        pooled = (out * there).sum((1, 2)) / (there.sum((1, 2)) * PATCH)
        return self.squeeze(pooled).chunk(2, -1)

    def decode(self, code: Float[Tensor, "batch code"], sticks: Sticks) -> Tensor:
        """The pose of a code, in the network's units."""
        empty = torch.zeros(*sticks.kinds.shape, PATCH, CHANNELS)
        level = torch.full((len(code),), 0.985)
        return self.decoder(empty, level, sticks, self.spread(code), nothing_known(empty))


def sample(vae: PoseVAE, units: Units, figure: Figure, count: int, seed: int) -> Float[Tensor, "poses parts channels"]:
    """Poses of codes from a unit Gaussian."""
    sticks = stack_figures([figure] * count)
    code = torch.randn(count, CODE, generator=torch.Generator().manual_seed(seed))
    with torch.no_grad():
        return units.out_of(vae.decode(code, sticks) * channel_counts(sticks)[:, :, None], sticks)[:, :, 0]


def train(cache: Path, seconds: float) -> tuple[PoseVAE, Units]:
    """Learn from single poses for so many processor seconds."""
    data = open_dataset(cache).of(("train",))
    mean, spread = spread_of(data)
    units = Units(torch.from_numpy(mean).float(), torch.from_numpy(spread).float())
    none = {text: np.zeros(192, np.float32) for clip in data.clips for text in clip.texts}
    windows = Windows(data, units, none)
    torch.manual_seed(0)
    vae = PoseVAE(NetConfig(width=144, layers=4, heads=3, hidden=432))
    optimiser = torch.optim.AdamW(vae.parameters(), lr=1e-3, betas=(0.9, 0.99))
    start = time.process_time()
    while (done := (time.process_time() - start) / seconds) < 1:
        for group in optimiser.param_groups:
            group["lr"] = 1e-3 * min(1.0, 4 * (1 - done))
        batch = windows.draw(1, 200, given=0.0)
        counts = batch.counts[:, :, None]
        mean_, log = vae.encode(batch.clean, batch.sticks)
        code = mean_ + torch.randn_like(mean_) * (0.5 * log).exp()
        gap = (vae.decode(code, batch.sticks) - batch.clean).square() * counts
        loss = (gap.sum((1, 2, 3)) / counts.expand_as(gap).sum((1, 2, 3))).mean()
        away = 0.5 * (mean_.square() + log.exp() - 1 - log).mean()
        optimiser.zero_grad(set_to_none=True)
        (loss + BETA * away).backward()
        nn.utils.clip_grad_norm_(vae.parameters(), 1.0)
        optimiser.step()
    sys.stdout.write(f"error {float(loss.detach()):.3f}, codes {float(away.detach()):.3f} from a Gaussian\n")
    return vae, units


def open_vae(path: Path) -> tuple[PoseVAE, Units]:
    """A trained one."""
    from safetensors.torch import load_file

    stored = load_file(path)
    vae = PoseVAE(NetConfig(width=144, layers=4, heads=3, hidden=432))
    units = Units(stored.pop("units.mean"), stored.pop("units.spread"))
    vae.load_state_dict(stored)
    return vae.eval(), units


def main() -> None:
    from safetensors.torch import save_file

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cache", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=300.0)
    words = parser.parse_args()
    torch.set_num_threads(1)
    vae, units = train(words.cache, words.seconds)
    save_file(vae.state_dict() | {"units.mean": units.mean, "units.spread": units.spread}, words.out)


if __name__ == "__main__":
    main()
