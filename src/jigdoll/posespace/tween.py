"""What lies between two keys, in one look: a small network tells how a body leaves the straight way between poses.

A span is the time from one key to the next. The network sees the poses at both ends, the keys before and after them,
how long all that takes, and the body; it answers with a few waves per number, and how much of a smooth curve through
all keys to take: shapes that are nothing at the keys, so that keys are held by construction. It is trained by
`train_tween.py`, beside the pose space and on the same clips, and knows single gaps only: what has to vary, or to be
long, is drawn by the pose space.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor, nn

from jigdoll.errors import FileFormatError
from jigdoll.posespace.figure import (
    BODY_FEATURES,
    CHANNELS,
    PART_FEATURES,
    REST_FEATURES,
    Figure,
    Sticks,
    stack_figures,
    stick_places,
)
from jigdoll.posespace.layout import CONTACT, EXTRA
from jigdoll.posespace.model import Block, KindLinear, NetConfig
from jigdoll.posespace.windows import Units, channel_counts

KEYS = 4
"""First and last pose of the span, the key before and the key after."""
WAVES = 6
"""Half waves per span that a number's way is made of."""
LONGEST_SPAN = 1.6
"""The longest span that the network learned from [s]."""
SLOW = 0.35
"""Spans shorter than this follow the smooth curve through all keys, longer ones what the network tells [s]."""
USUAL = 0.35
"""How far apart keys often are, in the network's units."""
FEW = 100
"""Of kinds of body of which fewer clips were learned from, only the share of the smooth curve is believed: the waves of
a few fish are no other fish's."""
ROOT_UNITS = (0.1, 0.1, 0.1, 0.15)
"""Of the root's way beside the straight one: x, z [leg lengths], height, heading [rad]."""
SPEED_UNITS = (1.0, 2.0, 1.0, 1.0)
"""Of the root's mean speeds along a span: x, z [leg lengths / s], height (as it is), turning [rad / s]."""


@dataclass(frozen=True)
class TweenConfig:
    """The shape of the network."""

    width: int = 128
    layers: int = 4
    heads: int = 4
    hidden: int = 384
    text: int = 192

    def net(self) -> NetConfig:
        """The same for the blocks, checked."""
        return NetConfig(**asdict(self))


@dataclass(frozen=True, eq=False)
class Spans:
    """Keys of spans of one or several bodies; the root is where it is seen from the first key of its span."""

    poses: Float[Tensor, "spans parts 4 channels"]
    """Limb space; the trunk's last channels are the root's x, z [leg lengths], height and heading [rad]."""
    seconds: Float[Tensor, "spans 3"]
    """Of the span, from the key before, to the key after; 0 where there is none."""
    text: Float[Tensor, "spans vector"]


class TweenNet(nn.Module):
    """Keys of spans to waves beside the straight way."""

    def __init__(self, config: TweenConfig) -> None:
        super().__init__()
        shape, d = config.net(), config.width
        self.config = config
        self.way_in, self.way_out = KindLinear(KEYS * CHANNELS, d), KindLinear(d, WAVES * CHANNELS)
        self.part = nn.Sequential(nn.Linear(PART_FEATURES + REST_FEATURES, d), nn.GELU(), nn.Linear(d, d))
        self.body = nn.Sequential(nn.Linear(BODY_FEATURES + 9, d), nn.GELU(), nn.Linear(d, d))
        self.text = nn.Linear(config.text, d)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(config.layers))
        self.swing = nn.Linear(d, 4)
        for each in (*self.way_out.each, self.swing):
            nn.init.zeros_(each.weight)  # pyright: ignore[reportArgumentType]
            nn.init.zeros_(each.bias)  # pyright: ignore[reportArgumentType]
        nn.init.constant_(self.swing.bias, 0.9)

    def forward(self, sticks: Sticks, spans: Spans, units: Units) -> Float[Tensor, "spans parts shapes channels"]:
        """How much of each shape every number goes beside the straight way, in the network's units."""
        seconds = spans.seconds
        there = (seconds > 0).float()
        clocks = torch.cat([seconds, there, (seconds + 0.03).log() * there], -1)
        steer = self.body(torch.cat([sticks.body, clocks], -1)) + self.text(spans.text) * 4
        steer = nn.functional.layer_norm(nn.functional.gelu(steer), steer.shape[-1:])
        part = self.part(torch.cat([sticks.features, sticks.rest], -1))
        seen = told(sticks, spans, units)
        x = (self.way_in(seen.flatten(2)[:, :, None], sticks.kinds) + part[:, :, None])[:, :, 0]
        pad = sticks.kinds < 0
        mask = ~pad[:, None, None] if bool(pad.any()) else None
        quarter = self.config.width // self.config.heads // 4
        still = torch.ones(x.shape[1], quarter), torch.zeros(x.shape[1], quarter)
        for block in self.blocks:
            x = block(x, steer, still, mask)
        x = nn.functional.layer_norm(x, x.shape[-1:])
        waves = self.way_out(x[:, :, None], sticks.kinds)[:, :, 0].unflatten(-1, (WAVES, CHANNELS))
        short = seconds[:, 0].square() / (seconds[:, 0].square() + SLOW**2)
        turns, extra = self.swing(x)[:, :, None].unflatten(-1, (2, 2)).unbind(-1)
        share = torch.cat([turns.expand(-1, -1, EXTRA.start, -1), extra.expand(-1, -1, 4, -1)], 2).transpose(2, 3)
        short = short[:, None, None, None]
        waves = waves * liveliness(sticks, seen)[:, None, None, None]
        return torch.cat([waves * short, share * (1 - short) * swings(sticks, spans, units)], 2)


def told(sticks: Sticks, spans: Spans, units: Units) -> Float[Tensor, "spans parts 4 channels"]:
    """What the network is told of the keys: the first pose, and how the others differ from it and from the last."""
    poses = units.into(spans.poses, sticks)
    first, last, before, after = poses.unbind(2)
    there = (spans.seconds > 0).float()
    rows = [first, last - first, (before - first) * there[:, 1, None, None], (after - last) * there[:, 2, None, None]]
    out = torch.stack(rows, 2)
    out[..., CONTACT] = 0.0
    out[:, 0, :, EXTRA] = root_told(spans, poses[:, 0, 0, EXTRA.start + 2])
    return out


def liveliness(sticks: Sticks, seen: Float[Tensor, "spans parts 4 channels"]) -> Float[Tensor, " spans"]:
    """1 where keys differ as they often do, next to 0 where they hardly do: who hardly moves does not move between."""
    counts = channel_counts(sticks)
    apart = (seen[:, :, 1:] * counts[:, :, None]).square().sum((1, 2, 3)) / (3 * counts.sum((1, 2))).clamp_min(1)
    size = (apart + 1e-8).sqrt()
    return 2 * size / (size + USUAL)


def root_told(spans: Spans, height: Float[Tensor, " spans"]) -> Float[Tensor, "spans 4 4"]:
    """The root's height at the first key, and its mean speeds along the three spans, each seen from its own key."""
    first, last, before, after = spans.poses[:, 0, :, EXTRA].unbind(1)
    scale = torch.tensor(SPEED_UNITS)
    rows = [torch.stack([torch.zeros_like(height), torch.zeros_like(height), height, torch.zeros_like(height)], -1)]
    for way, key, seconds in ((last - first, first, 0), (first - before, first, 1), (after - last, last, 2)):
        time = spans.seconds[:, seconds]
        c, s = key[:, 3].cos(), key[:, 3].sin()
        seen = torch.stack([c * way[:, 0] - s * way[:, 1], s * way[:, 0] + c * way[:, 1], way[:, 2], way[:, 3]], -1)
        seen = seen / torch.stack([time, time, torch.full_like(time, 0.1), time], -1).clamp_min(0.03)
        rows.append(seen / scale * (time > 0).float()[:, None])
    return torch.stack(rows, 1)


def swings(sticks: Sticks, spans: Spans, units: Units) -> Float[Tensor, "spans parts 2 channels"]:
    """How much faster than straight a smooth curve through all keys leaves the first and reaches the last one.

    The tangents are those of Catmull and Rom for keys at uneven times.
    """
    poses = spans.poses / units.spread[sticks.kinds.clamp_min(0)][:, :, None]
    poses[:, 0, :, EXTRA] = spans.poses[:, 0, :, EXTRA] / torch.tensor(ROOT_UNITS)
    poses[:, 1:, :, CONTACT] = 0.0
    first, last, before, after = poses.unbind(2)
    span, earlier, later = (part[:, None, None] for part in spans.seconds.clamp_min(1e-3).unbind(1))
    straight = last - first
    rows = [
        (away / time * span - straight) * span / (span + time) * (spans.seconds[:, i] > 0).float()[:, None, None]
        for i, (away, time) in enumerate(((first - before, earlier), (after - last, later)), 1)
    ]
    return torch.stack(rows, 2)


def straight_between(spans: Spans, at: Float[Tensor, "spans times"]) -> Float[Tensor, "spans parts times channels"]:
    """The straight way from the first to the last key, at these shares of each span."""
    first, last = spans.poses[:, :, :1], spans.poses[:, :, 1:2]
    return first + (last - first) * at[:, None, :, None]


def beside(
    shapes: Float[Tensor, "spans parts shapes channels"], at: Float[Tensor, "spans times"], sticks: Sticks, units: Units
) -> Float[Tensor, "spans parts times channels"]:
    """How far the way lies beside the straight one, in limb space, at these shares of each span."""
    order = torch.arange(1, WAVES + 1) * torch.pi
    leaving, reaching = at**3 - 2 * at**2 + at, at**3 - at**2
    curves = torch.cat([(at[..., None] * order).sin(), torch.stack([leaving, reaching], -1)], -1)
    off = torch.einsum("bts,bpsc->bptc", curves, shapes)
    kinds = sticks.kinds.clamp_min(0)
    scaled = off * units.spread[kinds][:, :, None]
    scaled[:, 0, :, EXTRA] = off[:, 0, :, EXTRA] * torch.tensor(ROOT_UNITS)
    scaled[:, 1:, :, CONTACT] = 0.0
    return scaled


def root_way(root: Float[ndarray, "frames 4"], fps: float) -> Float[ndarray, "frames 4"]:
    """Where a root comes by its velocities: x, z, height and heading, from the first frame on."""
    turned = np.concatenate([[0.0], np.cumsum(root[:-1, 3])]) / fps
    c, s = np.cos(turned), np.sin(turned)
    steps = np.stack([c * root[:, 0] + s * root[:, 1], c * root[:, 1] - s * root[:, 0]], 1) / fps
    places = np.concatenate([np.zeros((1, 2)), np.cumsum(steps[:-1], 0)])
    return np.concatenate([places, root[:, 2:3], turned[:, None]], 1).astype(np.float32)


def seen_from(way: Float[ndarray, "frames 4"], key: Float[ndarray, " 4"]) -> Float[ndarray, "frames 4"]:
    """A root's way as it is seen from where it is at a key."""
    c, s = np.cos(key[3]), np.sin(key[3])
    x, z = way[:, 0] - key[0], way[:, 1] - key[1]
    return np.stack([c * x - s * z, s * x + c * z, way[:, 2], way[:, 3] - key[3]], 1)


def root_speeds(way: Float[ndarray, "frames 4"], fps: float) -> Float[ndarray, "frames 4"]:
    """The velocities by which a root comes along a way, each leading to the next frame; `root_way` backwards."""
    steps = np.diff(way, axis=0, append=2 * way[-1:] - way[-2:-1]) * fps
    c, s = np.cos(way[:, 3]), np.sin(way[:, 3])
    ahead = [c * steps[:, 0] - s * steps[:, 1], s * steps[:, 0] + c * steps[:, 1]]
    return np.stack([*ahead, way[:, 2], steps[:, 3]], 1)


@dataclass(frozen=True, eq=False)
class Tween:
    """A trained network with its units."""

    net: TweenNet
    units: Units
    facts: dict

    def fill(
        self,
        figure: Figure,
        values: Float[ndarray, "parts frames channels"],
        keys: Sequence[int],
        fps: float,
        text: Float[Tensor, "1 vector"],
    ) -> Float[ndarray, "parts frames channels"]:
        """A clip that goes straight from key to key, as bodies go: keys stay, what lies between them is moved."""
        spans, sticks = _spans_of(figure, values, keys, fps, text)
        with torch.no_grad():
            waves = self.net(sticks, spans, self.units)
        clips = self.facts.get("clips")
        if clips is not None and clips.get(figure.kind, 0) < FEW:
            waves[:, :, :WAVES] = 0.0
        out, way = values.astype(float), root_way(values[0, :, EXTRA], fps).astype(float)
        for i, (first, last) in enumerate(pairwise(keys)):
            at = torch.linspace(0, 1, last - first + 1)[None]
            one = stack_figures([figure])
            off = beside(waves[i : i + 1], at, one, self.units)[0].numpy()
            out[:, first + 1 : last, : EXTRA.start] += off[:, 1:-1, : EXTRA.start]
            c, s, rows = np.cos(way[first, 3]), np.sin(way[first, 3]), off[0, 1:-1, EXTRA]
            turned = [c * rows[:, 0] + s * rows[:, 1], c * rows[:, 1] - s * rows[:, 0], rows[:, 2], rows[:, 3]]
            way[first + 1 : last] += np.stack(turned, 1)
        out[0, :, EXTRA] = root_speeds(way, fps)
        sticks = stack_figures([figure])
        before, after = (
            stick_places(sticks, torch.from_numpy(v).float()[None]).reach[0].numpy() for v in (values, out)
        )
        limbs = len(figure) - len(figure.limbs)
        out[limbs:, :, EXTRA.start : CONTACT] += (after - before)[limbs:]
        return out


def _spans_of(
    figure: Figure, values: Float[ndarray, "parts frames channels"], keys: Sequence[int], fps: float, text: Tensor
) -> tuple[Spans, Sticks]:
    """The spans between the keys of a clip."""
    way = root_way(values[0, :, EXTRA], fps)
    rows, seconds = [], []
    for i, (first, last) in enumerate(pairwise(keys)):
        before, after = keys[i - 1] if i else first, keys[i + 2] if i + 2 < len(keys) else last
        row = values[:, [first, last, before, after]].astype(np.float32)
        row[0, :, EXTRA] = seen_from(way[[first, last, before, after]], way[first])
        rows.append(row)
        seconds.append([last - first, first - before, after - last])
    times = torch.tensor(seconds, dtype=torch.float32) / fps
    poses = torch.from_numpy(np.stack(rows))
    return Spans(poses, times, text.expand(len(rows), -1)), stack_figures([figure] * len(rows))


def shipped_tween() -> Path:
    """Where the weights are that ship with the package."""
    return Path(str(resources.files("jigdoll.posespace") / "weights" / "tween.safetensors"))


def save_tween(target: Path, net: TweenNet, units: Units, facts: dict) -> Path:
    """Write weights in half precision, with all that tells where they came from."""
    from safetensors.torch import save_file

    tensors = {name: value.half().contiguous() for name, value in net.state_dict().items()}
    tensors |= {"units.mean": units.mean.float(), "units.spread": units.spread.float()}
    save_file(tensors, target, metadata={"facts": json.dumps(facts | {"net": asdict(net.config)})})
    return target


def open_tween(path: Path | None = None) -> Tween | None:
    """The network that ships, or another one; none where none is installed."""
    from safetensors import SafetensorError, safe_open

    file = path or shipped_tween()
    if path is None and not file.is_file():
        return None
    try:
        with safe_open(file, "pt") as opened:
            facts = json.loads((opened.metadata() or {})["facts"])
            tensors = {key: opened.get_tensor(key).float() for key in opened.keys()}
        units = Units(tensors.pop("units.mean"), tensors.pop("units.spread"))
        with torch.device("meta"):  # nothing is built that the file does not fill
            net = TweenNet(TweenConfig(**facts["net"]))
        net.load_state_dict(tensors, assign=True)
        if not all(bool(p.isfinite().all()) for p in net.parameters()):
            raise ValueError("some weights are not finite")
    except (OSError, SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise FileFormatError(f"{file}: these are no weights for in-betweens ({error}); install them anew") from error
    return Tween(net.eval().requires_grad_(False), units, facts)
