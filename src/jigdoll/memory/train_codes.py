"""Learns the codec of the motion memory: `python -m jigdoll.memory.train_codes --corpus FOLDER`, in one file.

What ships was made by

    nice python -m jigdoll.memory.train_codes --corpus ../shared/corpus

It reads clips of the corpus (only the split `train`), writes them as windows of tokens,
and finds for each kind of token the basis that keeps most of them, every family of bodies counting by the square root
of its windows. With `--form network` a small autoencoder is trained on the same windows for the same number of bytes
instead, and what both lose is printed; it is not written, for it gained too little (see `codes`). Minutes on one core.
"""

import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
import tyro
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from safetensors.numpy import save_file
from torch import Tensor, nn

from jigdoll.corpus import takes
from jigdoll.errors import JigdollError
from jigdoll.memory.windows import BASES, TABLES, Basis, away_from_mean, mean_steps, values_per_window, windows_of
from jigdoll.rig.retarget.limb_motion import LimbMotion, cut
from jigdoll.rig.retarget.tokens import HOP, WINDOW, TokenKind, tokens_of

SPARE = 1.25
"""Coordinates may be that much larger than any in training, ..."""
LEAST_SCALE = 1.0
"""... and at least this large [rad]."""


@dataclass(frozen=True)
class TrainConfig:
    """How the codec is learned."""

    corpus: Path
    """A folder that `jigdoll.corpus` reads."""
    out: Path = Path("src/jigdoll/memory/weights/codec.safetensors")
    form: Literal["linear", "network"] = "linear"
    people: float = 0.3
    """Share of the takes of mocap."""
    clips: int = 8
    """Of each character, at most."""
    seconds: float = 4.0
    """Of a segment; longer clips are cut."""
    seed: int = 0
    numbers: int = 24
    """Bytes per window and token at which a network is compared."""
    minutes: float = 6.0
    """Of training a network."""
    width: int = 320
    """Of a network's layers."""


@dataclass(frozen=True, eq=False)
class Windows:
    """Windows of one basis."""

    values: Float[ndarray, "windows values"]
    weight: Float[ndarray, " windows"]
    rig: Int[ndarray, " windows"]


def main(config: TrainConfig) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(config.seed)
    data = collect(config)
    if config.form == "network":
        compare(data, config)
        return
    bases: dict[TokenKind, Basis] = {kind: fit_basis(data[kind]) for kind in BASES}
    for kind in BASES:
        losses = ", ".join(f"{lost(data[kind], bases[kind], n):.2f} with {n}" for n in (12, 24, 48))
        say(f"{kind}: {len(data[kind].values)} windows; degrees lost: {losses} bytes")
    write(bases, config.out)
    say(f"wrote {config.out}: {config.out.stat().st_size / 1e3:.0f} kB")


def collect(config: TrainConfig) -> dict[TokenKind, Windows]:
    """The windows of all training clips by basis."""
    values: dict[TokenKind, list[ndarray]] = defaultdict(list)
    families: dict[TokenKind, list[str]] = defaultdict(list)
    rigs: dict[TokenKind, list[int]] = defaultdict(list)
    numbers: dict[str, int] = {}
    for count, (family, rig, motion) in enumerate(training_motions(config)):
        if count % 200 == 0:
            say(f"{count} clips read")
        number = numbers.setdefault(rig, len(numbers))
        for segment in segments_of(motion, config.seconds):
            for row in tokens_of(segment).rows:
                windows = windows_of(centred(away_from_mean(row, mean_steps(row)), row.kind))
                kinds: list[TokenKind] = [TABLES[row.kind], "wing"] if row.kind == "arm" else [TABLES[row.kind]]
                for kind in kinds:
                    values[kind].append(windows)
                    families[kind] += [family if kind == TABLES[row.kind] else "arms"] * len(windows)
                    rigs[kind] += [number] * len(windows)
    found: dict[TokenKind, Windows] = {}
    for kind in BASES:
        if not values[kind]:
            raise JigdollError(f"{config.corpus}: no clip has a {kind}; the codec cannot be learned from it")
        counts = Counter(families[kind])
        # Wings are few: what arms do helps, and counts for little.
        weight = np.array([counts[f] ** -0.5 * (0.1 if f == "arms" else 1.0) for f in families[kind]])
        found[kind] = Windows(np.concatenate(values[kind]), weight / weight.sum(), np.array(rigs[kind]))
    return found


def centred(values: Float[ndarray, "frames channels"], kind: TokenKind) -> Float[ndarray, "frames channels"]:
    """The numbers of a token as the codec writes them: the mean of the root's moves is kept apart."""
    if kind == "trunk":
        values[:, :4] -= values[:, :4].mean(0)
    return values


def segments_of(motion: LimbMotion, seconds: float) -> Iterator[LimbMotion]:
    """A clip in pieces of a length; a short rest is left out."""
    count = int(seconds * motion.fps) + 1
    for start in range(0, max(len(motion) - count // 2, 1), count):
        yield cut(motion, start, min(start + count, len(motion)))


def training_motions(config: TrainConfig) -> Iterator[tuple[str, str, LimbMotion]]:
    """Kind of body, rig and motion of the clips to learn from."""
    generator = np.random.default_rng(config.seed)
    taken: Counter[str] = Counter()
    for take in takes(config.corpus, mixed=True):
        recorded = take.source.startswith(("cmu ", "rocketbox "))
        if recorded and generator.random() > config.people:
            continue
        if not recorded and taken[take.source] >= config.clips:
            continue
        taken[take.source] += 1
        yield take.anatomy.kind, take.rig, take.motion


def fit_basis(data: Windows) -> Basis:
    """The orthonormal basis whose first vectors keep most of the weighted windows."""
    covariance = (data.values * data.weight[:, None]).T @ data.values
    vectors = np.linalg.eigh(covariance)[1][:, ::-1].astype(np.float16).astype(float)
    scale = SPARE * np.abs(data.values @ vectors).max(0)
    return Basis(vectors, np.maximum(scale, LEAST_SCALE))


def lost(data: Windows, basis: Basis, numbers: int) -> float:
    """Root of the weighted mean square of what so many bytes per window lose, per axis of a bone [degrees]."""
    codes = basis.write(data.values)
    codes[:, numbers:] = 0
    miss = basis.read(codes) - data.values
    return float(np.degrees(np.sqrt((np.square(miss).mean(1) * data.weight).sum() / data.weight.sum())))


def write(bases: dict[TokenKind, Basis], out: Path) -> None:
    """Half precision, one file."""
    arrays = {
        f"{kind}.vectors": np.ascontiguousarray(basis.vectors.astype(np.float16)) for kind, basis in bases.items()
    }
    arrays |= {f"{kind}.scale": basis.scale.astype(np.float32) for kind, basis in bases.items()}
    out.parent.mkdir(parents=True, exist_ok=True)
    save_file(arrays, out, metadata={"facts": json.dumps({"window": WINDOW, "hop": HOP})})


class Network(nn.Module):
    """An autoencoder for all kinds of tokens: the bases, bent by layers that all kinds share and are told the kind."""

    scale: Tensor

    def __init__(self, bases: dict[TokenKind, Basis], numbers: int, width: int) -> None:
        super().__init__()
        self.values = max(values_per_window(kind) for kind in BASES)
        vectors = torch.zeros(len(BASES), self.values, numbers)
        scale = torch.ones(len(BASES), numbers)
        for i, kind in enumerate(BASES):
            vectors[i, : values_per_window(kind)] = torch.from_numpy(bases[kind].vectors[:, :numbers]).float()
            scale[i] = torch.from_numpy(bases[kind].scale[:numbers]).float()
        self.into, self.out = nn.Parameter(vectors.clone()), nn.Parameter(vectors.clone())
        self.register_buffer("scale", scale)
        self.kind = nn.Embedding(len(BASES), 16)
        self.bend_in, self.bend_out = (
            _layers(self.values + 16, width, numbers),
            _layers(numbers + 16, width, self.values),
        )

    def forward(self, x: Float[Tensor, "batch values"], kind: Int[Tensor, " batch"], noise: bool) -> Tensor:
        told, scale = self.kind(kind), self.scale[kind]
        code = torch.einsum("bv,bvn->bn", x, self.into[kind]) + self.bend_in(torch.cat([x, told], -1))
        share = (code / scale).clamp(-1, 1)
        byte = share.sign() * (share.abs() + 1e-12).sqrt() * 127
        byte = byte + torch.rand_like(byte) - 0.5 if noise else byte.round()
        code = (byte / 127) * (byte / 127).abs() * scale
        return torch.einsum("bn,bvn->bv", code, self.out[kind]) + self.bend_out(torch.cat([code, told], -1))


def _layers(inside: int, width: int, outside: int) -> nn.Sequential:
    last = nn.Linear(width, outside)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    return nn.Sequential(nn.Linear(inside, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), last)


def compare(data: dict[TokenKind, Windows], config: TrainConfig) -> None:
    """Train bases and a network on nine rigs of ten and print what each loses on the tenth, for the same bytes."""
    count = config.numbers
    seen = {kind: _chosen(windows, windows.rig % 10 > 0) for kind, windows in data.items()}
    new = {kind: _chosen(windows, windows.rig % 10 == 0) for kind, windows in data.items()}
    bases: dict[TokenKind, Basis] = {kind: fit_basis(seen[kind]) for kind in BASES}
    net = Network(bases, count, config.width)
    x, kind, weight = (
        torch.cat(parts) for parts in zip(*(_rows(seen[k], i, net.values) for i, k in enumerate(BASES)), strict=True)
    )
    optimizer = torch.optim.AdamW(net.parameters(), 1e-3, weight_decay=1e-3)
    start, step = time.monotonic(), 0
    while (done := (time.monotonic() - start) / (60 * config.minutes)) < 1:
        for group in optimizer.param_groups:
            group["lr"] = 1e-3 * min(1, step / 200) * (1 - done)
        pick = torch.multinomial(weight, 512, replacement=True)
        loss = (net(x[pick], kind[pick], True) - x[pick]).square().sum(-1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % 500 == 0:
            say(f"step {step}: {loss.item():.4f}")
    for i, k in enumerate(BASES):
        rows, kinds, _ = _rows(new[k], i, net.values)
        with torch.no_grad():
            miss = (net(rows, kinds, False) - rows)[:, : values_per_window(k)].square().mean(1).double().numpy()
        bent = np.degrees(np.sqrt((miss * new[k].weight).sum() / new[k].weight.sum()))
        say(f"{k}, {count} bytes: basis loses {lost(new[k], bases[k], count):.2f} degrees, network {bent:.2f}")


def _chosen(data: Windows, which: Bool[ndarray, " windows"]) -> Windows:
    return Windows(data.values[which], data.weight[which], data.rig[which])


def _rows(data: Windows, kind: int, values: int) -> tuple[Tensor, Tensor, Tensor]:
    rows = torch.zeros(len(data.values), values)
    rows[:, : data.values.shape[1]] = torch.from_numpy(data.values)
    return rows, torch.full((len(rows),), kind), torch.from_numpy(data.weight)


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(tyro.cli(TrainConfig))
