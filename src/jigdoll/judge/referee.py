"""The referee: which action a clip shows, by how bones and limbs move, whatever rig and whatever words.

A small network over time that was trained on real clips (`judge.train_referee`); it never saw the actors and rigs that
are kept out, and never a clip that was made.
"""

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy import ndarray
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from jigdoll.errors import FileFormatError, first_line
from jigdoll.judge.postures import PLACES, SIDES, SLOTS, place_of, postures_of
from jigdoll.memory.shape import resample
from jigdoll.rig.retarget.limb_motion import LimbMotion, yaw

RATE = 15.0
"""Frames per second that the network sees."""
WINDOW = 64
"""Frames that it sees at once."""
LIMBS = tuple((side, place) for place in PLACES for side in SIDES)
CHANNELS = 3 * len(SLOTS) + 4 * len(LIMBS) + 5 + len(SLOTS)
MOST_BYTES, MOST_WIDTH, MOST_LAYERS = 8_000_000, 1024, 64


@dataclass(frozen=True)
class RefereeConfig:
    """The network."""

    actions: tuple[str, ...]
    width: int = 96
    layers: int = 4


class Referee(nn.Module):
    """From what bones do over time to how likely each action is."""

    def __init__(self, config: RefereeConfig) -> None:
        super().__init__()
        self.config = config
        width = config.width
        self.enter = nn.Linear(CHANNELS, width)
        self.over_time = nn.ModuleList(
            nn.Conv1d(width, width, 5, padding=2 * 2 ** (i % 3), dilation=2 ** (i % 3), groups=width)
            for i in range(config.layers)
        )
        self.mix = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
            for _ in range(config.layers)
        )
        self.leave = nn.Sequential(nn.LayerNorm(3 * width), nn.Dropout(0.3), nn.Linear(3 * width, len(config.actions)))

    def forward(
        self, values: Float[Tensor, "clips frames channels"], there: Bool[Tensor, "clips frames"]
    ) -> Float[Tensor, "clips actions"]:
        """Scores of the actions; frames that are not there do not count."""
        mask = there[..., None].to(values.dtype)
        x = self.enter(values) * mask
        for over_time, mix in zip(self.over_time, self.mix, strict=True):
            x = x + mix(over_time((x * mask).transpose(1, 2)).transpose(1, 2))
        count = mask.sum(1).clamp_min(1)
        mean = (x * mask).sum(1) / count
        spread = (((x - mean[:, None]) ** 2 * mask).sum(1) / count + 1e-6).sqrt()
        most = x.masked_fill(~there[..., None], -1e4).amax(1)
        return self.leave(torch.cat([mean, spread, most], -1))


def referee_values(lm: LimbMotion) -> Float[ndarray, "frames channels"]:
    """What the referee sees of a motion, at its own rate."""
    lm = resample(lm, RATE)
    frames = len(lm)
    poses = postures_of(lm)
    limbs = np.zeros((frames, len(LIMBS), 4))
    for track in lm.limbs:
        key = (track.limb.side, place_of(lm, track.limb.kind, track.limb.side, track.limb.rank))
        if key in LIMBS:
            limbs[:, LIMBS.index(key), :3] = track.end
            limbs[:, LIMBS.index(key), 3] = track.contact
    step = np.gradient(lm.place, axis=0) * RATE if frames > 1 else np.zeros((1, 3))
    step = np.einsum("fba,fb->fa", yaw(lm.heading), step)
    turning = np.gradient(lm.heading) * RATE if frames > 1 else np.zeros(1)
    root = np.stack([step[:, 0], step[:, 1], step[:, 2], lm.place[:, 1] - 1, turning], -1)
    rows = [poses.directions.reshape(frames, -1), limbs.reshape(frames, -1), np.clip(root, -5, 5)]
    return np.concatenate([*rows, np.tile(poses.has.astype(float), (frames, 1))], -1).astype(np.float32)


def name_action(referee: Referee, lm: LimbMotion) -> dict[str, float]:
    """How likely each action is, the likeliest first; long clips are heard window by window."""
    return name_values(referee, referee_values(lm))


@torch.no_grad()
def name_values(referee: Referee, values: Float[ndarray, "frames channels"]) -> dict[str, float]:
    """The same, of what the referee sees of a motion."""
    starts = range(0, max(len(values) - WINDOW // 2, 1), WINDOW // 2)
    scores = []
    for start in starts:
        window = torch.from_numpy(values[start : start + WINDOW])[None]
        scores.append(torch.log_softmax(referee(window, torch.ones(window.shape[:2], dtype=torch.bool))[0], -1))
    share = torch.stack(scores).mean(0).softmax(-1).tolist()
    pairs = sorted(zip(referee.config.actions, share, strict=True), key=lambda pair: -pair[1])
    return dict(pairs)


@cache
def open_referee() -> Referee:
    """The referee that ships."""
    return read_referee(Path(str(resources.files("jigdoll.judge") / "weights" / "referee.safetensors")))


def read_referee(path: Path) -> Referee:
    """A referee from its file."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ValueError("too large")
        with safe_open(path, framework="pt") as file:
            about = json.loads((file.metadata() or {}).get("config", "null"))
            config = RefereeConfig(tuple(about["actions"]), int(about["width"]), int(about["layers"]))
            if not (0 < config.width <= MOST_WIDTH and 0 < config.layers <= MOST_LAYERS and config.actions):
                raise ValueError("its network has an impossible size")
            referee = Referee(config)
            referee.load_state_dict({key: file.get_tensor(key).float() for key in file.keys()})
    except (OSError, SafetensorError, ValueError, TypeError, KeyError, RuntimeError) as error:
        raise FileFormatError(f"{path.name}: this is not a referee ({first_line(error)})") from error
    return referee.eval()
