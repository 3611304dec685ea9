"""From the concepts of a prompt to the vector that the pocket prior is told."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from jigdoll.language.lexicon import CONCEPTS, WORDS
from jigdoll.language.read import MOST_TOKENS, Reading, read


def to_ids(prompts: Sequence[Reading] | Sequence[str]) -> Int[Tensor, "batch tokens 2"]:
    """Concept and word ids of a batch of prompts, padded with zeros to the longest."""
    readings = [read(prompt) if isinstance(prompt, str) else prompt for prompt in prompts]
    ids = torch.zeros(len(readings), max([1, *(len(reading.concepts) for reading in readings)]), 2, dtype=torch.int64)
    for row, reading in zip(ids, readings, strict=True):
        row[: len(reading.concepts)] = torch.tensor(list(zip(reading.concepts, reading.words, strict=True))).view(-1, 2)
    return ids


class TextEncoder(nn.Module):
    """Concepts in order to one vector: a learned query looks at them through two small attention layers.

    Words only colour their concepts: they start smaller and are dropped at random in training, so that a word which was
    never written in training speaks through its concept as well as any other.
    """

    def __init__(self, width: int, *, layers: int = 2, heads: int = 4) -> None:
        super().__init__()
        self.concept = nn.Embedding(len(CONCEPTS) + 1, width, padding_idx=0)
        self.word = nn.Embedding(len(WORDS) + 1, width, padding_idx=0)
        self.position = nn.Parameter(0.1 * torch.randn(MOST_TOKENS, width))
        self.query = nn.Parameter(torch.randn(width))
        self.null = nn.Parameter(0.5 * torch.randn(width))
        self.layers = nn.ModuleList([_Layer(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(2 * width, width)
        with torch.no_grad():
            self.word.weight *= 0.3

    def forward(
        self, ids: Int[Tensor, "batch tokens 2"], *, drop: float = 0.0, generator: torch.Generator | None = None
    ) -> Float[Tensor, "batch width"]:
        """One vector per caption; an empty caption (all padding) gives the learned null. `drop` forgets words."""
        concepts, words = ids.unbind(-1)
        if drop > 0:
            words = words * (torch.rand(words.shape, generator=generator).to(words.device) >= drop)
        known = concepts > 0
        tokens = self.concept(concepts) + self.word(words) + self.position[: ids.shape[1]]
        query = self.query.expand(ids.shape[0], 1, -1)
        x = torch.cat([query, tokens], 1)
        # The query always takes part, so that no row of attention is empty.
        mask = torch.cat([known.new_ones(known.shape[0], 1), known], 1)
        for layer in self.layers:
            x = layer(x, mask)
        x = self.norm(x)
        weight = known.unsqueeze(-1).to(x.dtype)
        mean = (x[:, 1:] * weight).sum(1) / weight.sum(1).clamp_min(1)
        vector = self.out(torch.cat([x[:, 0], mean], -1))
        return torch.where(known.any(1, keepdim=True), vector, self.null.to(vector.dtype))


class _Layer(nn.Module):
    """Pre-norm attention and a small network."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.mix = nn.Linear(width, width)
        self.network = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x: Float[Tensor, "batch tokens width"], mask: Tensor) -> Float[Tensor, "batch tokens width"]:
        """`mask` tells which tokens may be looked at."""
        q, k, v = self.qkv(self.before_attention(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        seen = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :])
        x = x + self.mix(seen.transpose(1, 2).flatten(2))
        return x + self.network(x)
