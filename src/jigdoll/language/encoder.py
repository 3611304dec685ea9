"""The small sentence encoder: phrases to unit vectors whose dot product says how alike their meanings are.

It ships with the package (a few MB, no download): pieces of words, a small transformer and a weighted mean, distilled
from all-MiniLM-L6-v2 on phrases about motion by `train_encoder`. Phrases that tell of the same action lie close
together whoever moves, which is what finding a motion by words asks for.
"""

import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from importlib import resources
from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from jigdoll.errors import FileFormatError, first_line

PAD, START, UNKNOWN = "[PAD]", "[START]", "[UNKNOWN]"
"""The first three pieces of every vocabulary: filler, the beginning of a phrase, a character that no piece spells."""
MOST_BYTES = 32_000_000
MOST_LETTERS = 40
"""Longer words are taken for noise: one unknown piece."""
BATCH = 256


@dataclass(frozen=True)
class EncoderConfig:
    """The shape of the network."""

    pieces: int = 16000
    width: int = 192
    layers: int = 1
    heads: int = 6
    hidden: int = 384
    vector: int = 192
    """Numbers per phrase."""
    longest: int = 64
    """Pieces of a phrase that are read, with the start; what follows is not."""

    def __post_init__(self) -> None:
        for field in fields(self):
            if type(getattr(self, field.name)) is not int:
                raise ValueError(f"{field.name} is no whole number")
        if self.heads < 1 or self.width % self.heads or not 1 <= self.longest <= 10**5:
            raise ValueError(f"{self.heads} heads do not share a width of {self.width}, or no piece is read")
        for name, most in (("pieces", 10**6), ("layers", 24), ("width", 4096), ("hidden", 16384), ("vector", 4096)):
            if not 0 <= getattr(self, name) <= most:
                raise ValueError(f"{getattr(self, name)} {name} are not within 0 and {most}")


class Tokenizer:
    """Cuts phrases into the longest pieces of a vocabulary, from left to right; pieces within a word begin with ##."""

    def __init__(self, pieces: Sequence[str]) -> None:
        self.pieces = tuple(pieces)
        self.ids = {piece: place for place, piece in enumerate(self.pieces)}
        self.reach = max((len(piece) for piece in self.pieces), default=1)

    def __call__(self, phrase: str) -> list[int]:
        """The places of a phrase's pieces after the start."""
        return [1, *(place for word in words_of(phrase) for place in self.word(word))]

    def word(self, word: str) -> list[int]:
        """The pieces of a word; a character that the vocabulary lacks becomes the unknown piece."""
        if len(word) > MOST_LETTERS:
            return [2]
        found, start = [], 0
        while start < len(word):
            mark = "##" if start else ""
            for end in range(min(len(word), start + self.reach), start, -1):
                place = self.ids.get(mark + word[start:end])
                if place is not None:
                    break
            else:
                place, end = 2, start + 1
            found.append(place)
            start = end
        return found


def words_of(phrase: str) -> list[str]:
    """Lower-case words without accents; each mark of punctuation, symbol or emoji is a word of its own."""
    plain = unicodedata.normalize("NFD", phrase.lower())
    spaced: list[str] = []
    for letter in plain:
        kind = unicodedata.category(letter)
        if kind[0] == "M":
            continue
        spaced.append(letter if kind[0] in "LN" else f" {letter} " if kind[0] in "PS" else " ")
    return "".join(spaced).split()


class Layer(nn.Module):
    """One transformer layer, normalised before each part."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.norm_mix, self.norm_think = nn.LayerNorm(config.width), nn.LayerNorm(config.width)
        self.mix_in, self.mix_out = nn.Linear(config.width, 3 * config.width), nn.Linear(config.width, config.width)
        self.think_in, self.think_out = nn.Linear(config.width, config.hidden), nn.Linear(config.hidden, config.width)

    def forward(self, x: Float[Tensor, "phrases pieces width"], mask: Tensor) -> Float[Tensor, "phrases pieces width"]:
        query, key, value = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.mix_in(self.norm_mix(x)).chunk(3, -1)
        )
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask[:, None, None])
        x = x + self.mix_out(mixed.transpose(1, 2).flatten(2))
        return x + self.think_out(F.gelu(self.think_in(self.norm_think(x))))


class EncoderNet(nn.Module):
    """Pieces, layers, and a mean weighted by what the network finds telling."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.pieces = nn.Embedding(config.pieces, config.width)
        self.places = nn.Embedding(config.longest, config.width)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        self.gate = nn.Linear(config.width, 1)
        self.head = nn.Linear(config.width, config.vector)

    def forward(self, ids: Int[Tensor, "phrases pieces"]) -> Float[Tensor, "phrases vector"]:
        """Unit vectors; id 0 is filler."""
        mask = ids != 0
        x = self.pieces(ids) + self.places.weight[: ids.shape[1]]
        for layer in self.layers:
            x = layer(x, mask)
        x = self.norm(x)
        share = self.gate(x).squeeze(-1).masked_fill(~mask, -torch.inf).softmax(-1)
        return F.normalize(self.head((share.unsqueeze(-1) * x).sum(1)), dim=-1)


class SentenceEncoder:
    """Phrases to unit vectors; an implementation of `protocols.TextEncoder`."""

    def __init__(self, net: EncoderNet, tokenizer: Tokenizer) -> None:
        self.net, self.tokenizer = net.eval().requires_grad_(False), tokenizer

    def __call__(self, phrases: Sequence[str]) -> Float[Tensor, "phrases width"]:
        """The same as `encode`."""
        return self.encode(phrases)

    def encode(self, phrases: Sequence[str]) -> Float[Tensor, "phrases width"]:
        """One unit vector per phrase, also for an empty one or one of unknown signs; read are the first 63 pieces."""
        ids = [self.tokenizer(phrase) for phrase in phrases]
        parts = [
            self.net(padded(ids[i : i + BATCH], self.net.places.num_embeddings)) for i in range(0, len(ids), BATCH)
        ]
        return torch.cat(parts) if parts else torch.zeros(0, self.net.head.out_features)


def padded(ids: Sequence[Sequence[int]], longest: int) -> Int[Tensor, "phrases pieces"]:
    """Places of pieces as one tensor, filled up with 0, cut at the longest length."""
    width = min(max(map(len, ids)), longest)
    return torch.tensor([[*row[:width], *[0] * (width - len(row))] for row in ids])


def open_encoder(path: Path | None = None) -> SentenceEncoder:
    """The encoder that ships with the package, or one that you trained; keep it, for each call reads the file anew."""
    file = path or Path(str(resources.files("jigdoll.language") / "weights" / "encoder.safetensors"))
    facts, tensors = stored(file)
    try:
        config, pieces = EncoderConfig(**facts["model"]), tuple(map(str, facts["pieces"]))
        if pieces[:3] != (PAD, START, UNKNOWN) or len(set(pieces)) != config.pieces:
            raise ValueError("its vocabulary does not fit its network")
        with torch.device("meta"):
            net = EncoderNet(config)
        net.load_state_dict(unpack(tensors), assign=True)
        if not all(bool(p.isfinite().all()) for p in net.parameters()):
            raise ValueError("some weights are not finite")
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise FileFormatError(
            f"{file}: these are no weights of a sentence encoder ({first_line(error)}); install them anew"
        ) from error
    return SentenceEncoder(net, Tokenizer(pieces))


def stored(file: Path) -> tuple[dict, dict[str, Tensor]]:
    """What a file says of its weights, and the weights as they are stored."""
    from safetensors import SafetensorError, safe_open

    if not file.is_file():
        raise FileFormatError(f"{file}: there are no weights of a sentence encoder; install jigdoll anew")
    if file.stat().st_size > MOST_BYTES:
        raise FileFormatError(f"{file}: {file.stat().st_size / 1e6:.0f} MB are too many for the sentence encoder")
    try:
        with safe_open(file, "pt") as opened:
            facts = json.loads((opened.metadata() or {})["facts"])
            return dict(facts), {key: opened.get_tensor(key) for key in opened.keys()}
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise FileFormatError(
            f"{file}: these are no weights of a sentence encoder ({first_line(error)}); install them anew"
        ) from error


def pack(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Half precision, and one byte per number of the pieces with a scale per piece: they are most of the file."""
    pieces = weights["pieces.weight"].float()
    scale = (pieces.abs().amax(1, keepdim=True) / 127).clamp_min(1e-7).half()
    packed = {name: value.half().contiguous() for name, value in weights.items() if name != "pieces.weight"}
    return packed | {
        "pieces.bytes": (pieces / scale.float()).round().clamp(-127, 127).to(torch.int8),
        "pieces.scale": scale,
    }


def unpack(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The inverse of `pack`, in single precision."""
    weights = {name: value.float() for name, value in tensors.items() if not name.startswith("pieces.")}
    return weights | {"pieces.weight": tensors["pieces.bytes"].float() * tensors["pieces.scale"].float()}
