"""The network of the pocket prior: a transformer over space-time patches, then convolutions for what is fine.

It answers with the clean video. That is v-prediction in other words, v = (alpha z - x0) / sigma; but the noise itself
need not squeeze through tokens that are narrower than the patches they stand for.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from jigdoll.prior.pocket.text import TextEncoder
from jigdoll.prior.pocket.vocabulary import Vocabulary

DEVIATION = 0.1
"""Of what is fine in the training videos, in -1..1: what tokens carry need not come from the noisy video."""


@dataclass(frozen=True)
class PocketConfig:
    """The shape of the network and of the video it works on."""

    frames: int = 24
    fps: float = 12.0
    height: int = 40
    width: int = 56
    patch: tuple[int, int, int] = (3, 8, 8)
    dim: int = 192
    layers: int = 8
    heads: int = 4
    head_dim: int = 48
    """Channels of the convolutional head."""
    head_blocks: int = 2
    coarse_dim: int = 96
    """Channels of the finish where its pixels are 4 x 4 of the video's."""
    fine_dim: int = 32
    """And where they are 2 x 2."""
    shift: float = 3.0
    """sigma / alpha = shift * tan(pi t / 2): more of the noise levels lie where motion is decided."""

    @property
    def grid(self) -> tuple[int, int, int]:
        """Patches in time, height and width."""
        sizes = (self.frames, self.height, self.width)
        return tuple(size // patch for size, patch in zip(sizes, self.patch, strict=True))  # type: ignore[return-value]


def signal_and_noise(level: Float[Tensor, "*batch"], *, shift: float) -> tuple[Tensor, Tensor]:
    """alpha and sigma of a level in 0..1, alpha^2 + sigma^2 = 1."""
    angle = torch.atan(shift * torch.tan(0.5 * math.pi * level.clamp(0, 1 - 1e-6)))
    return torch.cos(angle), torch.sin(angle)


class PocketNet(nn.Module):
    """Clean video from a noisy one, its noise level and a text."""

    def __init__(self, config: PocketConfig = PocketConfig(), vocabulary: Vocabulary | None = None):
        super().__init__()
        self.config, d = config, config.dim
        inside = 3 * math.prod(config.patch)
        self.text = TextEncoder(d, vocabulary)
        self.level = nn.Sequential(nn.Linear(64, d), nn.SiLU(), nn.Linear(d, d))
        self.inlet = nn.Linear(inside, d)
        self.portrait = nn.Linear(inside // config.patch[0], d, bias=False)
        self.places = nn.ParameterList([nn.Parameter(0.02 * torch.randn(n, d)) for n in config.grid])
        self.modulations = nn.ModuleList([nn.Linear(d, 6 * d) for _ in range(config.layers)])
        self.layers = nn.ModuleList([Layer(config) for _ in range(config.layers)])
        self.final = nn.Linear(d, 2 * d)
        self.outlet = nn.Linear(d, inside)
        self.head = Head(config)
        self.finish = Finish(config)
        self.register_buffer("turns", _rotary(config), persistent=False)
        for module in (self.modulations, self.final, self.outlet, self.portrait):
            for p in module.parameters():
                nn.init.zeros_(p)

    def forward(
        self,
        noisy: Float[Tensor, "batch frames height width 3"],
        level: Float[Tensor, " batch"],
        text: Float[Tensor, "batch dim"],
        reference_image: Float[Tensor, "batch height width 3"] | None = None,
    ) -> Float[Tensor, "batch frames height width 3"]:
        """`text` is what `self.text` makes of the words; `reference_image`: who moves, in -1..1, zero if unknown."""
        reference_image = torch.zeros_like(noisy[:, 0]) if reference_image is None else reference_image
        alpha, sigma = (x[:, None, None, None, None] for x in signal_and_noise(level, shift=self.config.shift))
        condition = F.silu(text + self.level(_waves(level)))
        time, rows, columns = self.places
        place = time[:, None, None] + rows[None, :, None] + columns[None, None]
        tokens = self.inlet(to_patches(noisy, self.config.patch)) + place.reshape(-1, self.config.dim)
        known = self.portrait(to_patches(reference_image[:, None], (1, *self.config.patch[1:])))
        tokens = tokens + known.repeat(1, self.config.grid[0], 1)
        for layer, modulation in zip(self.layers, self.modulations, strict=True):
            tokens = layer(tokens, modulation(condition).unflatten(-1, (6, -1))[:, :, None], self.turns)
        scale, shift = self.final(condition)[:, None].chunk(2, -1)
        tokens = F.layer_norm(tokens, tokens.shape[-1:]) * (1 + scale) + shift
        # As much of the noisy video as is signal goes straight to the answer; the network adds the rest.
        sure = alpha * DEVIATION**2 / (sigma**2 + (alpha * DEVIATION) ** 2)
        draft = sure * noisy + from_patches(self.outlet(tokens), self.config)
        draft = draft + self.head(draft, noisy, reference_image, condition)
        # What the noisy video still says against the draft, the less the more of it is noise.
        against = alpha * (noisy - alpha * draft)
        return draft + self.finish(draft, against, reference_image, tokens, condition)


class Layer(nn.Module):
    """Full attention over space and time, then an MLP, both modulated by level and text (adaLN)."""

    def __init__(self, config: PocketConfig):
        super().__init__()
        d = config.dim
        self.heads = config.heads
        self.inward = nn.Linear(d, 3 * d, bias=False)
        self.outward = nn.Linear(d, d, bias=False)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
        self.bias = nn.Parameter(torch.zeros(6, 1, d))
        self.sharpness = nn.Parameter(torch.full((config.heads, 1, 1), math.log(8.0)))
        with torch.no_grad():
            self.bias[2] = self.bias[5] = 0.2  # gates: each layer starts as a small step

    def forward(
        self, x: Float[Tensor, "batch tokens dim"], changes: Float[Tensor, "batch 6 1 dim"], turns: Tensor
    ) -> Float[Tensor, "batch tokens dim"]:
        scale, shift, gate, mlp_scale, mlp_shift, mlp_gate = (changes + self.bias).unbind(1)
        y = F.layer_norm(x, x.shape[-1:]) * (1 + scale) + shift
        q, k, v = self.inward(y).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        q = _turned(F.normalize(q, dim=-1) * self.sharpness.exp(), turns)
        k = _turned(F.normalize(k, dim=-1), turns)
        x = x + gate * self.outward(F.scaled_dot_product_attention(q, k, v, scale=1.0).transpose(1, 2).flatten(2))
        y = F.layer_norm(x, x.shape[-1:]) * (1 + mlp_scale) + mlp_shift
        return x + mlp_gate * self.down(F.silu(1.7 * self.up(y)) / 1.7)  # nearly GELU, which was half of a layer's time


class Head(nn.Module):
    """Convolutions over 4 x 4 patches that mend the seams of the tokens' large patches."""

    def __init__(self, config: PocketConfig):
        super().__init__()
        c = config.head_dim
        self.patch = (1, 4, 4)
        self.config = config
        self.inlet = nn.Linear(2 * 48, c)
        self.portrait = nn.Linear(48, c, bias=False)
        self.condition = nn.Linear(config.dim, c * config.head_blocks)
        self.spatial = nn.ModuleList([nn.Conv2d(c, c, 3, padding=1) for _ in range(config.head_blocks)])
        self.temporal = nn.ModuleList([nn.Conv1d(c, c, 3, padding=1) for _ in range(config.head_blocks)])
        self.outlet = nn.Linear(c, 48)
        nn.init.zeros_(self.outlet.weight)
        nn.init.zeros_(self.outlet.bias)
        nn.init.zeros_(self.portrait.weight)

    def forward(
        self, draft: Tensor, noisy: Tensor, reference_image: Tensor, condition: Float[Tensor, "batch dim"]
    ) -> Tensor:
        b, t, h, w = *draft.shape[:2], draft.shape[2] // 4, draft.shape[3] // 4
        x = self.inlet(to_patches(torch.cat([draft, noisy], -1), self.patch))
        x = x + self.portrait(to_patches(reference_image[:, None], self.patch)).repeat(1, t, 1)
        shifts = self.condition(condition).unflatten(-1, (len(self.spatial), -1))
        for i, (spatial, temporal) in enumerate(zip(self.spatial, self.temporal, strict=True)):
            y = F.silu(x + shifts[:, i, None]).reshape(b * t, h, w, -1).permute(0, 3, 1, 2)
            y = F.silu(spatial(y)).reshape(b, t, -1, h * w).permute(0, 3, 2, 1).reshape(b * h * w, -1, t)
            x = x + temporal(y).reshape(b, h * w, -1, t).permute(0, 3, 1, 2).reshape(b, t * h * w, -1)
        return _unfolded(self.outlet(F.silu(x)), (t, h, w), self.patch)


class Finish(nn.Module):
    """A small U of convolutions that draws what large patches cannot hold: over 2 x 2 pixels, over 4 x 4, and back.

    A leg is a few pixels wide and moves by as many in a frame: tokens tell where it is, the noisy video what it looks
    like. The answer is added to the draft, and says where the noisy video is to be believed.
    """

    def __init__(self, config: PocketConfig):
        super().__init__()
        self.grid, fine, coarse = config.grid, config.fine_dim, config.coarse_dim
        frames, rows, columns = config.patch
        self.part = (frames, rows // 4, columns // 4)
        self.inlet = nn.Conv2d(9, fine, 2, 2)
        self.narrow = nn.Conv2d(fine, coarse, 2, 2)
        self.told = nn.Linear(config.dim, math.prod(self.part) * coarse, bias=False)
        self.inside = nn.ModuleList([Block(coarse, config.dim) for _ in range(2)])
        self.widen = nn.Linear(coarse, 4 * fine)
        self.leave = Block(fine, config.dim)
        self.outlet = nn.Linear(fine, 4 * 6)
        nn.init.zeros_(self.outlet.weight)
        nn.init.zeros_(self.outlet.bias)

    def forward(
        self,
        draft: Float[Tensor, "batch frames height width 3"],
        against: Float[Tensor, "batch frames height width 3"],
        reference_image: Float[Tensor, "batch height width 3"],
        tokens: Float[Tensor, "batch tokens dim"],
        condition: Float[Tensor, "batch dim"],
    ) -> Float[Tensor, "batch frames height width 3"]:
        who = reference_image[:, None].expand_as(draft)
        fine = _over_frames(self.inlet, torch.cat([against, draft, who], -1))
        coarse = _over_frames(self.narrow, fine) + _unfolded(self.told(tokens), self.grid, self.part)
        for block in self.inside:
            coarse = block(coarse, condition)
        fine = self.leave(fine + _spread(self.widen(coarse)), condition)
        change, belief = _spread(self.outlet(fine)).chunk(2, -1)
        return change + belief * against


class Block(nn.Module):
    """Convolutions over each frame, then over three of them, modulated by level and text."""

    def __init__(self, channels: int, dim: int):
        super().__init__()
        self.condition = nn.Linear(dim, 2 * channels)
        self.spatial = nn.Conv2d(channels, channels, 3, padding=1)
        self.temporal = nn.Conv2d(channels, channels, (3, 1), padding=(1, 0))
        nn.init.zeros_(self.condition.weight)
        nn.init.zeros_(self.condition.bias)
        nn.init.kaiming_normal_(self.spatial.weight, nonlinearity="relu")
        with torch.no_grad():
            self.temporal.weight *= 0.3  # each block starts as a small step

    def forward(
        self, x: Float[Tensor, "batch frames height width channels"], condition: Float[Tensor, "batch dim"]
    ) -> Float[Tensor, "batch frames height width channels"]:
        scale, shift = self.condition(condition)[:, None, None, None].chunk(2, -1)
        y = F.silu(F.layer_norm(x, x.shape[-1:]) * (1 + scale) + shift)
        y = F.silu(_over_frames(self.spatial, y))
        return x + self.temporal(y.flatten(2, 3).permute(0, 3, 1, 2)).permute(0, 2, 3, 1).reshape(x.shape)


def _over_frames(conv: nn.Conv2d, x: Float[Tensor, "batch frames height width channels"]) -> Tensor:
    """A convolution over each frame; channels stay last, which is how it is fastest."""
    return conv(x.flatten(0, 1).permute(0, 3, 1, 2)).permute(0, 2, 3, 1).unflatten(0, x.shape[:2])


def to_patches(
    video: Float[Tensor, "batch frames height width channels"], patch: tuple[int, int, int]
) -> Float[Tensor, "batch tokens inside"]:
    """Cut a video into blocks of frames, rows and columns."""
    b, t, h, w, c = video.shape
    p, q, r = patch
    cut = video.reshape(b, t // p, p, h // q, q, w // r, r, c).permute(0, 1, 3, 5, 2, 4, 6, 7)
    return cut.reshape(b, (t // p) * (h // q) * (w // r), p * q * r * c)


def from_patches(
    tokens: Float[Tensor, "batch tokens inside"], config: PocketConfig
) -> Float[Tensor, "batch frames height width 3"]:
    """The inverse of `to_patches`."""
    return _unfolded(tokens, config.grid, config.patch)


def _unfolded(tokens: Tensor, grid: tuple[int, int, int], patch: tuple[int, int, int]) -> Tensor:
    (t, h, w), (p, q, r) = grid, patch
    blocks = tokens.reshape(tokens.shape[0], t, h, w, p, q, r, -1).permute(0, 1, 4, 2, 5, 3, 6, 7)
    return blocks.reshape(tokens.shape[0], t * p, h * q, w * r, -1)


def _spread(x: Float[Tensor, "batch frames height width channels"]) -> Tensor:
    """Four times the pixels with a quarter of the channels."""
    frames, height, width = x.shape[1:4]
    return _unfolded(x, (frames, height, width), (1, 2, 2))


def _rotary(config: PocketConfig) -> Float[Tensor, "2 tokens half"]:
    """Cosines and sines that turn queries and keys by their place: time, rows and columns share the channels."""
    half = config.dim // config.heads // 2
    shares = (half - 2 * (half // 3), half // 3, half // 3)
    places = torch.meshgrid(*[torch.arange(n, dtype=torch.float32) for n in config.grid], indexing="ij")
    angles = [
        place.reshape(-1, 1) * math.pi / n * torch.logspace(0, math.log2(max(2, n)) - 1, share, base=2.0)
        for place, n, share in zip(places, config.grid, shares, strict=True)
    ]
    angle = torch.cat(angles, -1)
    return torch.stack([angle.cos(), angle.sin()])


def _turned(x: Float[Tensor, "batch heads tokens channels"], turns: Float[Tensor, "2 tokens half"]) -> Tensor:
    a, b = x.chunk(2, -1)
    cos, sin = turns
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


def _waves(level: Float[Tensor, " batch"]) -> Float[Tensor, "batch 64"]:
    angles = level[:, None] * torch.logspace(0, 2, 32, device=level.device) * math.pi
    return torch.cat([angles.cos(), angles.sin()], -1)
