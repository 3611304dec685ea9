"""The network of the pose space: one transformer over the parts of a body and the frames of a clip.

A token is one part over two frames. Each kind of part has its own way in and out; what a part is like (bones, where it
hangs, side, flesh) is added to its tokens; time of the diffusion, words and the body's shape steer every layer. The
network answers with its estimate of the clean clip.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from jigdoll.posespace.figure import BODY_FEATURES, CHANNELS, KINDS, PART_FEATURES, REST_FEATURES, Sticks

PATCH = 2
"""Frames of a token."""
KNOWN = 7
"""Per part and frame: whether turns are known, whether ends and root are, whether values are filled in between known
ones, whether a handle is, and the handle's place."""
SKIP = 0.04
"""At a noise variance of this size, relative to the signal, half of the noisy input goes past the network."""


@dataclass(frozen=True)
class NetConfig:
    """The shape of the network."""

    width: int = 192
    layers: int = 6
    heads: int = 3
    hidden: int = 576
    text: int = 192

    def __post_init__(self) -> None:
        for name, most in (("width", 2048), ("layers", 48), ("heads", 64), ("hidden", 8192), ("text", 4096)):
            if not 1 <= getattr(self, name) <= most:
                raise ValueError(f"{getattr(self, name)} {name} are not within 1 and {most}")
        if self.width % (4 * self.heads):
            raise ValueError(f"a width of {self.width} is not a multiple of four times {self.heads} heads")


@dataclass(frozen=True, eq=False)
class Known:
    """What is given beforehand, in the network's units."""

    values: Float[Tensor, "batch parts frames channels"]
    """Known values, and between known frames what lies between them."""
    marks: Float[Tensor, "batch parts frames known"]
    """See `KNOWN`."""


class KindLinear(nn.Module):
    """A linear layer of its own for each kind of part."""

    def __init__(self, inner: int, outer: int) -> None:
        super().__init__()
        self.each = nn.ModuleList(nn.Linear(inner, outer) for _ in KINDS)
        self.outer = outer

    def forward(
        self, x: Float[Tensor, "batch parts tokens inner"], kinds: Int[Tensor, "batch parts"]
    ) -> Float[Tensor, "batch parts tokens outer"]:
        flat, which = x.flatten(0, 1), kinds.flatten()
        out = x.new_zeros(flat.shape[0], x.shape[2], self.outer, dtype=torch.float32)
        for kind in which.unique().tolist():
            if kind >= 0:
                mine = (which == kind).nonzero()[:, 0]
                out = out.index_copy(0, mine, self.each[kind](flat[mine]).float())
        return out.unflatten(0, x.shape[:2])


class Block(nn.Module):
    """Attention over all parts and frames, then a network per token; both steered."""

    def __init__(self, config: NetConfig) -> None:
        super().__init__()
        d = config.width
        self.heads = config.heads
        self.mix_in, self.mix_out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.think_in, self.think_out = nn.Linear(d, config.hidden), nn.Linear(config.hidden, d)
        self.steer = nn.Linear(d, 6 * d)
        for out in (self.mix_out, self.think_out):
            nn.init.normal_(out.weight, std=0.3 / math.sqrt(3 * out.in_features))
        nn.init.zeros_(self.steer.weight)
        nn.init.zeros_(self.steer.bias)

    def forward(
        self,
        x: Float[Tensor, "batch tokens width"],
        steer: Float[Tensor, "batch width"],
        turn: tuple[Tensor, Tensor],
        mask: Tensor | None,
    ) -> Float[Tensor, "batch tokens width"]:
        a, b, c, d, e, f = self.steer(steer).float()[:, None].chunk(6, -1)
        y = F.layer_norm(x, x.shape[-1:]) * (1 + a) + b
        query, key, value = (p.unflatten(-1, (self.heads, -1)).transpose(1, 2) for p in self.mix_in(y).chunk(3, -1))
        query, key = rotate(query, turn), rotate(key, turn)
        # Written out: four times faster on one core, forwards and backwards, than the fused kernel.
        scores = (query * query.shape[-1] ** -0.5) @ key.transpose(-1, -2)
        if mask is not None:
            scores = scores.masked_fill(~mask, -1e4)
        mixed = scores.softmax(-1).to(value.dtype) @ value
        x = x + (1 + c) * self.mix_out(mixed.transpose(1, 2).flatten(2)).float()
        y = F.layer_norm(x, x.shape[-1:]) * (1 + d) + e
        return x + (1 + f) * self.think_out(F.gelu(self.think_in(y), approximate="tanh")).float()


def rotate(x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    """Half of each head's numbers turned by the token's time, so that attention sees how far apart two times are."""
    half = x.shape[-1] // 2
    moved, still = x[..., :half], x[..., half:]
    a, b = moved.chunk(2, -1)
    cosine, sine = (part.to(x.dtype) for part in turn)
    return torch.cat([a * cosine - b * sine, a * sine + b * cosine, still], -1)


class PoseNet(nn.Module):
    """Noisy clips to clean ones."""

    def __init__(self, config: NetConfig) -> None:
        super().__init__()
        d = config.width
        self.config = config
        self.way_in = KindLinear(PATCH * (2 * CHANNELS + KNOWN), d)
        self.way_out = KindLinear(d, PATCH * CHANNELS)
        self.part = nn.Sequential(nn.Linear(PART_FEATURES + REST_FEATURES, d), nn.GELU(), nn.Linear(d, d))
        self.body = nn.Sequential(nn.Linear(BODY_FEATURES, d), nn.GELU(), nn.Linear(d, d))
        self.level = nn.Sequential(nn.Linear(128, d), nn.GELU(), nn.Linear(d, d))
        self.text = nn.Linear(config.text, d)
        self.no_text = nn.Parameter(torch.zeros(d))
        self.is_pose = nn.Parameter(torch.zeros(d))
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        for each in self.way_out.each:
            nn.init.zeros_(each.weight)  # pyright: ignore[reportArgumentType]
            nn.init.zeros_(each.bias)  # pyright: ignore[reportArgumentType]

    def forward(
        self,
        noisy: Float[Tensor, "batch parts frames channels"],
        level: Float[Tensor, " batch"],
        sticks: Sticks,
        text: Float[Tensor, "batch vector"],
        known: Known,
    ) -> Float[Tensor, "batch parts frames channels"]:
        """The estimate of the clean clip at a noise level in 0..1; a zero text vector means that nothing is said."""
        batch, parts, frames, _ = noisy.shape
        alpha, _ = signal_and_noise(level[:, None, None, None])
        seen = torch.cat([alpha * noisy, known.values, known.marks], -1)
        tokens = frames // PATCH
        seen = seen.reshape(batch, parts, tokens, -1)
        part = self.part(torch.cat([sticks.features, sticks.rest], -1)).float()
        x = self.way_in(seen, sticks.kinds) + part[:, :, None]
        steer = self.level(level_waves(level)) + self.body(sticks.body)
        steer = steer + torch.where(text.abs().sum(-1, keepdim=True) > 0, self.text(text) * 4, self.no_text)
        if frames == PATCH:
            steer = steer + self.is_pose
        steer = F.layer_norm(F.gelu(steer.float()), steer.shape[-1:])
        pad = sticks.kinds < 0
        mask = None
        if bool(pad.any()):
            mask = ~pad[:, None, None, :, None].expand(-1, 1, 1, -1, tokens).flatten(3)
        turn = time_turns(tokens, parts, self.config)
        x = x.flatten(1, 2)
        for block in self.blocks:
            x = block(x, steer, turn, mask)
        x = F.layer_norm(x, x.shape[-1:]).unflatten(1, (parts, tokens))
        out = self.way_out(x, sticks.kinds).reshape(batch, parts, frames, CHANNELS)
        filled = known.marks[..., 2:3]
        return out + filled * known.values


def time_turns(tokens: int, parts: int, config: NetConfig) -> tuple[Tensor, Tensor]:
    """Cosines and sines by which the tokens of each time are turned; parts come first, then times."""
    quarter = config.width // config.heads // 4
    speed = 0.5 ** torch.linspace(0, 6, quarter)
    angle = (torch.arange(tokens)[:, None] * speed).repeat(parts, 1)
    return angle.cos(), angle.sin()


def level_waves(level: Float[Tensor, " batch"]) -> Float[Tensor, "batch waves"]:
    """A noise level as waves of unit size."""
    angle = level[:, None] * torch.exp(torch.linspace(0, math.log(200.0), 64)) * math.pi
    return torch.cat([angle.sin(), angle.cos()], -1)


def signal_and_noise(level: Tensor) -> tuple[Tensor, Tensor]:
    """The factors of signal and noise: a quarter of a circle."""
    return torch.cos(level * (math.pi / 2)), torch.sin(level * (math.pi / 2))


def clean_estimate(noisy: Tensor, answer: Tensor, level: Float[Tensor, " batch"], *, skip: bool = True) -> Tensor:
    """The network's answer, blended at low noise with the input itself, which then knows better."""
    if not skip:
        return answer
    alpha, sigma = signal_and_noise(level[:, None, None, None])
    ratio = (sigma / alpha.clamp_min(1e-3)).square()
    share = SKIP / (SKIP + ratio)
    return share * noisy / alpha.clamp_min(1e-3) + (1 - share) * answer
