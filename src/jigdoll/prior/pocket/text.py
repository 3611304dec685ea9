"""From the words of a prompt to the vector that the pocket prior is told."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from jigdoll.language.actions import among
from jigdoll.language.nouns import HOPPERS, NAMES, family_of
from jigdoll.language.phrases import tokens_of
from jigdoll.language.read import read
from jigdoll.prior.pocket.vocabulary import NEGATIVE_SENSES, UNNATURAL, Vocabulary, present_vocabulary
from jigdoll.types import KnownWord, Request

MOST_TOKENS = 24


def read_caption(prompt: str) -> Request:
    """A sentence as the prior's captions are written: beside "unnatural motion" words for mistakes count too."""
    return read(prompt, also=NEGATIVE_SENSES if is_negative(prompt) else None)


def is_negative(prompt: str) -> bool:
    """Whether it asks for unnatural motion."""
    return UNNATURAL in " ".join(tokens_of(prompt))


def concepts_of(request: Request, vocabulary: Vocabulary) -> list[tuple[str, str]]:
    """The concepts of a request in order that the vocabulary has, each with its word, empty if it has no place."""
    pairs = [
        (concept, word.base if word.base in vocabulary.word_ids else "")
        for word in request.words
        for concept in _concepts(word, vocabulary)
        if concept in vocabulary.concept_ids
    ]
    return pairs[:MOST_TOKENS]


def _concepts(word: KnownWord, vocabulary: Vocabulary) -> tuple[str, ...]:
    kind, _, name = word.meaning.partition(":")
    if word.kind == "noun":
        if kind == "species":
            exact = (word.meaning,) if word.base in NAMES[name] else ()
            return (*exact, f"family:{family_of(name)}")
        return ({"pronoun": "family:humanoid", "any": "family:any"}.get(kind, f"family:{name}"),)
    if word.kind == "action":
        action = among(word.meaning, vocabulary.own_actions)
        tempo = () if not word.tempo else ("tempo:fast" if word.tempo > 0 else "tempo:slow",)
        return () if action is None else (f"action:{action}", *tempo)
    if word.kind in ("side", "tempo"):
        return (f"{'direction' if word.kind == 'side' else 'tempo'}:{word.meaning}",)
    return (word.meaning,) if word.kind == "other" else ()


def by_habit(request: Request) -> Request:
    """The request with what such a creature does instead: where others walk or run, a kangaroo hops."""
    if request.species not in HOPPERS:
        return request
    words = tuple(
        replace(word, base="hop", meaning="hop") if word.kind == "action" and word.meaning in ("walk", "run") else word
        for word in request.words
    )
    return replace(request, words=words)


def to_ids(
    prompts: Sequence[Request] | Sequence[str], vocabulary: Vocabulary | None = None
) -> Int[Tensor, "batch tokens 2"]:
    """Concept and word ids of a batch of prompts, padded with zeros to the longest; today's vocabulary by default."""
    vocabulary = present_vocabulary() if vocabulary is None else vocabulary
    requests = [read_caption(prompt) if isinstance(prompt, str) else prompt for prompt in prompts]
    rows = [
        [(vocabulary.concept_ids[concept], vocabulary.word_ids.get(word, 0)) for concept, word in pairs]
        for pairs in (concepts_of(request, vocabulary) for request in requests)
    ]
    ids = torch.zeros(len(rows), max([1, *map(len, rows)]), 2, dtype=torch.int64)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = torch.tensor(row, dtype=torch.int64).view(-1, 2)
    return ids


class TextEncoder(nn.Module):
    """Concepts in order to one vector: a learned query looks at them through two small attention layers.

    Words only colour their concepts: they start smaller and are dropped at random in training, so that a word which was
    never written in training speaks through its concept as well as any other.
    """

    def __init__(self, width: int, vocabulary: Vocabulary | None = None, *, layers: int = 2, heads: int = 4) -> None:
        super().__init__()
        self.vocabulary = present_vocabulary() if vocabulary is None else vocabulary
        self.concept = nn.Embedding(len(self.vocabulary.concepts) + 1, width, padding_idx=0)
        self.word = nn.Embedding(len(self.vocabulary.words) + 1, width, padding_idx=0)
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
