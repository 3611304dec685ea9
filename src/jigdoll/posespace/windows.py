"""Batches for training: windows of clips, varied in body and time, some of their values given beforehand."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from torch import Tensor

from jigdoll.posespace.dataset import Clip, Dataset
from jigdoll.posespace.faults import resting
from jigdoll.posespace.figure import (
    BODY_KINDS,
    CHANNELS,
    KINDS,
    STATIONS,
    Places,
    Sticks,
    stack_figures,
    stick_places,
)
from jigdoll.posespace.layout import CONTACT, EXTRA, RATE, STILL
from jigdoll.posespace.model import KNOWN, PATCH, Known

SPEED = (0.85, 1.2)
"""How much faster than it was recorded a clip may be shown."""
GAITS = {"walk": 3.0, "run": 2.5, "trot": 1.5, "gallop": 1.5, "swim": 1.5, "fly": 1.5, "jump": 1.5}
"""Actions that are shown more often than others."""
KIND_SHARE = {"person": 1.4, "other": 0.4}
"""How much more often a kind of body is shown than its rigs tell: people do most actions, the others are odd ones."""
ZOO_SHARE = 0.35
"""How much less often a rig of the zoo is shown than an artist's."""
KEYS = 0.12
"""The share of windows told by keys among those of which something is told."""
ROOT_WAY = 0.35
"""How often the root's way is told besides."""
_FLIP = torch.tensor([1.0, -1.0, -1.0, -1.0, 1.0, 1.0])
"""What mirroring does to the two columns of a turn."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Windows of clips of one kind of body."""

    clean: Float[Tensor, "batch parts frames channels"]
    """In the network's units."""
    counts: Float[Tensor, "batch parts channels"]
    """1 for channels that mean something, 0 for others."""
    places: Places
    """Of the true clip."""
    raw: Float[Tensor, "batch parts frames channels"]
    sticks: Sticks
    text: Float[Tensor, "batch vector"]
    known: Known


@dataclass(frozen=True, eq=False)
class Units:
    """Mean and spread of each channel per kind of part."""

    mean: Float[Tensor, "kinds channels"]
    spread: Float[Tensor, "kinds channels"]

    def into(self, raw: Float[Tensor, "batch parts frames channels"], sticks: Sticks) -> Tensor:
        """Limb space to the network's units."""
        kinds = sticks.kinds.clamp_min(0)
        return (raw - self.mean[kinds][:, :, None]) / self.spread[kinds][:, :, None]

    def out_of(self, values: Float[Tensor, "batch parts frames channels"], sticks: Sticks) -> Tensor:
        """The network's units to limb space."""
        kinds = sticks.kinds.clamp_min(0)
        return values * self.spread[kinds][:, :, None] + self.mean[kinds][:, :, None]


class Windows:
    """Draws batches from a data set: kinds of body, rigs and actions balanced by square roots, never by seconds."""

    def __init__(self, data: Dataset, units: Units, vectors: Mapping[str, ndarray], *, seed: int = 0) -> None:
        self.data, self.units, self.vectors = data, units, vectors
        self.dice = np.random.default_rng(seed)
        self.groups: dict[str, list[Clip]] = defaultdict(list)
        for clip in data.clips:
            self.groups[clip.kind].append(clip)
        self.kinds = sorted(self.groups)
        shares = share_of_kinds(data)
        self.odds = np.array([shares[kind] for kind in self.kinds])
        self.chances = {kind: _shares(self.groups[kind])[0] for kind in self.kinds}

    def draw(
        self, frames: int, count: int, *, kind: str | None = None, given: float = 0.35, vary: bool = True
    ) -> Batch:
        """Windows of so many frames (1 is a pose) of clips of one kind of body, `given` of them with known values."""
        clips = self.choose(count, kind)
        length = max(frames, PATCH)
        values = [self._window(clip, frames, vary=vary) for clip in clips]
        most = max(len(v) for v in values)
        raw = np.zeros((count, most, length, CHANNELS), np.float32)
        for i, v in enumerate(values):
            raw[i, : len(v)] = v
        sticks = stack_figures([self.data.figures[clip.figure] for clip in clips])
        text = torch.from_numpy(np.stack([self.text_of(clip, vary=vary) for clip in clips]))
        return self.finish(torch.from_numpy(raw), sticks, text, given=given, vary=vary)

    def choose(self, count: int, kind: str | None = None) -> list[Clip]:
        """So many clips of one kind of body, each as often as its rig and action are shown."""
        kind = kind or self.kinds[self.dice.choice(len(self.kinds), p=self.odds)]
        return [self.groups[kind][i] for i in self.dice.choice(len(self.groups[kind]), count, p=self.chances[kind])]

    def finish(self, raw: Tensor, sticks: Sticks, text: Tensor, *, given: float, vary: bool) -> Batch:
        """A batch of windows, varied, in the network's units, with known values."""
        if vary:
            raw, sticks = mirrored(raw, sticks, torch.from_numpy(self.dice.random(len(raw)) < 0.5))
            raw, sticks = reproportioned(raw, sticks, self.dice)
            raw, sticks = other_rest(raw, sticks, self.dice)
            sticks = less_told(sticks, self.dice)
        places = stick_places(sticks, raw)
        if vary:  # ends follow from the new proportions
            limb = (sticks.kinds >= 3)[:, :, None, None]
            raw[..., EXTRA.start : CONTACT] = torch.where(limb, places.reach, raw[..., EXTRA.start : CONTACT])
        clean = self.units.into(raw, sticks)
        counts = channel_counts(sticks)
        clean = clean * counts[:, :, None]
        known = draw_known(clean, places, sticks, self.dice, given)
        return Batch(clean, counts, places, raw, sticks, text, known)

    def _window(self, clip: Clip, frames: int, *, vary: bool) -> Float[ndarray, "parts frames channels"]:
        """A stretch of a clip at our rate; loops go on, others hold their first or last pose."""
        speed = float(self.dice.uniform(*SPEED)) if vary else 1.0
        step = clip.fps / RATE * speed
        last = clip.frames - 1
        span = (frames - 1) * step
        low = -0.15 * span if not clip.loop and span > last else 0.0
        high = max(last - span, 0.0) if not clip.loop else float(last)
        at = self.dice.uniform(low, high) + np.arange(frames) * step
        if frames == 1:
            at = np.repeat(at, PATCH)
        held = (at < 0) | (at > last)
        at = at % last if clip.loop else at.clip(0, last)
        left = np.minimum(at.astype(int), last - 1)
        share = (at - left).astype(np.float32)[None, :, None]
        values = (
            clip.values[:, left].astype(np.float32) * (1 - share) + clip.values[:, left + 1].astype(np.float32) * share
        )
        moves = np.array([EXTRA.start, EXTRA.start + 1, EXTRA.start + 3])
        values[0][:, moves] *= speed
        if not clip.loop and held.any():
            values[0][np.ix_(np.flatnonzero(held), moves)] = 0.0
        return values

    def text_of(self, clip: Clip, *, vary: bool) -> Float[ndarray, " vector"]:
        """One of a clip's phrases as a vector; now and then none."""
        phrase = clip.texts[self.dice.choice(len(clip.texts), p=_text_odds(len(clip.texts)))] if vary else clip.texts[0]
        vector = self.vectors[phrase]
        return np.zeros_like(vector) if vary and self.dice.random() < 0.12 else vector


def share_of_kinds(data: Dataset) -> dict[str, float]:
    """How often windows of each kind of body are drawn."""
    groups: dict[str, list[Clip]] = defaultdict(list)
    for clip in data.clips:
        groups[clip.kind].append(clip)
    sizes = {kind: np.sqrt(sum(_shares(mine)[1])) * KIND_SHARE.get(kind, 1.0) for kind, mine in groups.items()}
    return {kind: float(size / sum(sizes.values())) for kind, size in sizes.items()}


def _text_odds(count: int) -> Float[ndarray, " texts"]:
    odds = np.array([0.4, 0.3] + [0.3] * max(count - 2, 0))[:count]
    if count > 2:
        odds[2:] /= count - 2
    return odds / odds.sum()


def _shares(clips: Sequence[Clip]) -> tuple[Float[ndarray, " clips"], list[float]]:
    """How often each clip of a kind of body is shown, and the weight of each rig: by the root of its clips."""
    rigs: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for i, clip in enumerate(clips):
        rigs[clip.rig][clip.action].append(i)
    chance = np.zeros(len(clips))
    weights = []
    for rig, by_action in rigs.items():
        weight = np.sqrt(sum(map(len, by_action.values()))) * (ZOO_SHARE if rig.startswith("zoo ") else 1.0)
        weights.append(float(weight))
        shares = {action: GAITS.get(action, 1.0) * np.sqrt(len(mine)) for action, mine in by_action.items()}
        for action, mine in by_action.items():
            chance[mine] = weight * shares[action] / sum(shares.values()) / len(mine)
    return chance / chance.sum(), weights


def channel_counts(sticks: Sticks) -> Float[Tensor, "batch parts channels"]:
    """Which channels of each part mean something."""
    turns = sticks.has.repeat_interleave(6, -1)
    kinds = sticks.kinds[..., None]
    extra = torch.cat([((kinds == 0) | (kinds >= 3)).expand(-1, -1, 3), (kinds == 0) | (kinds == 3) | (kinds == 4)], -1)
    return (torch.cat([turns, extra], -1) & (kinds >= 0)).float()


def mirrored(raw: Tensor, sticks: Sticks, which: Tensor) -> tuple[Tensor, Sticks]:
    """Left and right swapped: limbs change sides, what lies in the middle is reflected."""
    middle = (sticks.kinds < 3) & which[:, None]
    flip = torch.where(middle[:, :, None, None], torch.cat([_FLIP.repeat(STATIONS), torch.ones(4)]), torch.ones(()))
    root = torch.tensor([-1.0, 1.0, 1.0, -1.0])
    flip = flip.clone()
    flip[..., EXTRA] = torch.where(((sticks.kinds == 0) & which[:, None])[:, :, None, None], root, torch.ones(()))
    across = torch.where(middle, -1.0, 1.0)
    bones, attach, features = sticks.bones.clone(), sticks.attach.clone(), sticks.features.clone()
    bones[..., 0] *= across[..., None]
    attach[..., 0] *= across
    features[..., 9] *= across
    features[..., 20:44:3] *= across[..., None]
    features[..., :2] = torch.where(which[:, None, None], features[..., [1, 0]], features[..., :2])
    sign = torch.where(which[:, None], -sticks.sign, sticks.sign)
    sign = torch.where(sticks.kinds < 3, torch.ones(()), sign)
    return raw * flip, replace(sticks, bones=bones, attach=attach, features=features, sign=sign)


def reproportioned(raw: Tensor, sticks: Sticks, dice: np.random.Generator) -> tuple[Tensor, Sticks]:
    """Bones longer and shorter, twins and rows of legs alike; in half of the samples.

    Legs stay as long as they were, because all lengths are told in theirs, and the pelvis stands on them.
    """
    count = len(raw)
    some = torch.from_numpy((dice.random(count) < 0.5).astype(np.float32))[:, None, None]
    factors = torch.from_numpy(np.exp(dice.normal(0, 0.16, (count, 8, STATIONS))).astype(np.float32))
    factors = 1 + some * (factors - 1)
    mine = torch.take_along_dim(factors, (sticks.kinds % 8)[..., None].expand(-1, -1, STATIONS), 1)
    bones = sticks.bones * mine[..., None]
    before, after = sticks.bones.norm(dim=-1).sum(-1), bones.norm(dim=-1).sum(-1)
    same = torch.where(sticks.kinds == 3, before / after.clamp_min(1e-6), torch.ones(()))
    bones = bones * same[..., None, None]
    sizes = bones.norm(dim=-1)
    length = torch.where(sticks.kinds >= 3, sizes[..., 1:3].sum(-1).clamp_min(1e-3), sticks.length)
    features = sticks.features.clone()
    features[..., 12:20] = sizes.clamp(max=4)
    features[..., 54] = sizes.sum(-1).clamp(max=4)
    changed = replace(sticks, bones=bones, length=length, features=features)
    legs = (sticks.kinds == 3).float()
    sunk = (_resting_ends(sticks) - _resting_ends(changed))[..., 1] * legs
    return raw, replace(changed, hip=sticks.hip + sunk.sum(1) / legs.sum(1).clamp_min(1))


def _resting_ends(sticks: Sticks) -> Float[Tensor, "batch parts 3"]:
    """The ends of all parts when nothing is turned."""
    return stick_places(sticks, resting(sticks)).ends[:, :, 0]


def other_rest(raw: Tensor, sticks: Sticks, dice: np.random.Generator) -> tuple[Tensor, Sticks]:
    """Another rest pose for legs, necks and tails of animals: crouched, stretched, a tail held up.

    With the rest bone b turned by Q to Q b, each turn T becomes T Q^T, and nothing else changes.
    """
    count = len(raw)
    if dice.random() < 0.6:
        return raw, sticks
    angles = dice.normal(0, 0.25, (count, 8, STATIONS)) * (dice.random((count, 8, 1)) < 0.5)
    angles[:, [0, 4, 5, 6, 7]] = 0.0
    angles[:, 1:3] = angles[:, 1:3, :1]
    angles[:, :, 0] *= 1.0
    angles[:, 3, 0] = 0.0
    person = sticks.body[:, BODY_KINDS.index("person")] > 0
    angle = torch.from_numpy(angles.astype(np.float32)) * ~person[:, None, None]
    mine = torch.take_along_dim(angle, (sticks.kinds % 8)[..., None].expand(-1, -1, STATIONS), 1) * sticks.has
    c, s, o = mine.cos(), mine.sin(), torch.zeros_like(mine)
    Q = torch.stack([o + 1, o, o, o, c, -s, o, s, c], -1).unflatten(-1, (3, 3))
    still = sticks.rest[:, :, None] + torch.from_numpy(STILL[: 6 * STATIONS]).float()
    columns = torch.cat([raw[..., : 6 * STATIONS], still], 2).unflatten(-1, (STATIONS, 2, 3))
    a, b = columns[..., 0, :], columns[..., 1, :]
    local = torch.stack([a, b, torch.linalg.cross(a, b)], -1)
    before = torch.cat([torch.eye(3).expand(*Q.shape[:2], 1, 3, 3), Q[:, :, :-1]], 2)
    local = before[:, :, None] @ local @ Q.transpose(-1, -2)[:, :, None]
    turned = torch.cat([local[..., 0], local[..., 1]], -1).flatten(-2)
    bones = (Q @ sticks.bones[..., None])[..., 0]
    features = sticks.features.clone()
    features[..., 20:44] = torch.nn.functional.normalize(bones, dim=-1, eps=1e-6).flatten(-2)
    rest = turned[:, :, -1] - torch.from_numpy(STILL[: 6 * STATIONS]).float()
    varied = replace(sticks, bones=bones, features=features, rest=rest)
    return torch.cat([turned[:, :, :-1], raw[..., EXTRA]], -1), varied


def less_told(sticks: Sticks, dice: np.random.Generator) -> Sticks:
    """Now and then the kind of body, flesh, rest or size is not told, and a tail, neck or arm is not there."""
    count = len(sticks.body)
    body, features, kinds = sticks.body.clone(), sticks.features.clone(), sticks.kinds.clone()
    quiet = torch.from_numpy(dice.random(count) < 0.35)
    body[:, : len(BODY_KINDS)] *= ~quiet[:, None]
    body[:, -1] += torch.from_numpy(dice.normal(0, 0.1, count).astype(np.float32))
    bare = torch.from_numpy(dice.random(count) < 0.3)
    features[..., 52:54] *= ~bare[:, None, None]
    rest = _rest_told(sticks, dice)
    gone = torch.from_numpy(dice.random((count, 8)) < 0.06)
    gone[:, [0, 3]] = False
    mine = torch.take_along_dim(gone, kinds % 8, 1) & (kinds >= 0)
    if bool((mine.sum(1) < (kinds >= 0).sum(1) - 1).all()):
        kinds[mine] = -1
    return replace(sticks, body=body, features=features, rest=rest, kinds=kinds)


def _rest_told(sticks: Sticks, dice: np.random.Generator) -> Float[Tensor, "batch parts rest_features"]:
    """Rests as they are told: not at all now and then; people's arms often as in another T or A pose."""
    count = len(sticks.body)
    person = sticks.body[:, BODY_KINDS.index("person")] > 0
    limit = torch.where(person, 0.4, 0.2)
    luck = torch.from_numpy(dice.random(count))
    angle = torch.from_numpy(dice.uniform(0.3, 1.7, count).astype(np.float32))
    spread = torch.zeros(count, STATIONS, 6)
    c, s, o = angle.cos() - 1, angle.sin(), torch.zeros(count)
    spread[:, 1] = torch.stack([c, s, o, -s, c, o], -1)
    other = person & (luck > 0.4) & (luck < 0.75)
    arms = (sticks.kinds == KINDS.index("arm")) & other[:, None]
    rest = torch.where(arms[..., None], spread.flatten(1)[:, None], sticks.rest)
    return rest * (luck >= limit)[:, None, None]


def draw_known(clean: Tensor, places: Places, sticks: Sticks, dice: np.random.Generator, share: float) -> Known:
    """What is given of each window: nothing, keys, a beginning, some parts, handles, the root's way."""
    batch, parts, frames, _ = clean.shape
    turns, extra = np.zeros((batch, parts, frames), bool), np.zeros((batch, parts, frames), bool)
    handle = np.zeros((batch, parts, frames), bool)
    for i in np.flatnonzero(dice.random(batch) < share):
        way = dice.random()
        if frames > PATCH and dice.random() < KEYS:
            at = draw_keys(frames, dice)
            turns[i][:, at] = extra[i][1:, at] = True
        elif frames > PATCH and way < 0.17:  # a beginning
            first = dice.integers(1, frames // 2)
            turns[i, :, :first] = extra[i, :, :first] = True
        elif way < 0.6:  # some parts
            some = dice.random(parts) < dice.uniform(0.2, 0.9)
            turns[i, some] = extra[i, some] = True
        else:  # handles
            some = dice.random(parts) < dice.uniform(0.15, 0.9)
            handle[i, some] = True
            if frames > PATCH and dice.random() < 0.4:
                handle[i] &= dice.random(frames)[None] < 0.2
        if dice.random() < ROOT_WAY:
            extra[i, 0] = True
    return known_from(
        clean, places.ends, sticks, torch.from_numpy(turns), torch.from_numpy(extra), torch.from_numpy(handle)
    )


def draw_keys(frames: int, dice: np.random.Generator) -> Int[ndarray, " keys"]:
    """Frames of keys, the first and the last among them: about evenly spaced, or a few anywhere."""
    if dice.random() < 0.7:
        gap = int(dice.integers(2, 17))
        inner = np.arange(int(dice.integers(1, gap + 1)), frames - 1, gap)
        inner = inner + dice.integers(-1, 2, len(inner)) * (dice.random() < 0.5)
    else:
        inner = dice.integers(0, frames, dice.integers(0, 4))
    return np.unique(np.concatenate([[0, frames - 1], inner.clip(0, frames - 1)]))


def keyed(known: Known) -> Float[Tensor, " batch"]:
    """1 for windows that are told by keys from their first frame to their last, 0 for others."""
    told = known.marks[:, 0, :, 0]
    ends, most = told[:, 0] * told[:, -1], told.mean(1) < 0.9
    return ends * most * float(told.shape[1] > PATCH)


def known_from(clean: Tensor, ends: Tensor, sticks: Sticks, turns: Tensor, extra: Tensor, handle: Tensor) -> Known:
    """Known values with their marks; between known frames turns are filled in along straight lines.

    Where the body's pose is known and its root's way is not, the root goes straight from key to key: how far apart
    keys lie is known, how the body gets from one to the next is not.
    """
    there = (sticks.kinds >= 0)[:, :, None]
    turns, extra, handle = turns & there, extra & there, handle & there
    values = torch.zeros_like(clean)
    filled = fill_between(clean, turns)
    any_key = turns.any(-1, keepdim=True)
    values[..., : EXTRA.start] = torch.where(any_key[..., None], filled[..., : EXTRA.start], 0.0)
    between = fill_between(clean, extra)
    values[..., EXTRA] = torch.where(extra.any(-1, keepdim=True)[..., None], between[..., EXTRA], 0.0)
    open_way = (turns[:, 0].any(-1) & ~extra[:, 0].any(-1))[:, None, None]
    values[:, 0, :, EXTRA] = torch.where(
        open_way, straight_way(clean[:, 0, :, EXTRA], turns[:, 0]), values[:, 0, :, EXTRA]
    )
    marks = torch.zeros(*clean.shape[:3], KNOWN)
    marks[..., 0], marks[..., 1], marks[..., 2] = turns.float(), extra.float(), any_key.float()
    marks[..., 3] = handle.float()
    marks[..., 4:] = ends * handle[..., None]
    return Known(values, marks)


def straight_way(
    root: Float[Tensor, "batch frames 4"], keys: Bool[Tensor, "batch frames"]
) -> Float[Tensor, "batch frames 4"]:
    """The root's channels when it goes straight from key to key: mean velocities between them, its height in a line."""
    span = keys.cumsum(1)  # frames from a key up to the next one; the velocity of a frame leads to the next frame
    span[:, -1] -= keys[:, -1].long()
    inner, there = root[:, :-1], span[:, :-1, None]
    total = torch.zeros_like(root).scatter_add(1, there.expand_as(inner), inner)
    count = torch.zeros_like(root[..., :1]).scatter_add(1, there, torch.ones_like(inner[..., :1]))
    mean = torch.take_along_dim(total / count.clamp_min(1), span[..., None], 1)
    height = fill_between(root[:, None], keys[:, None])[:, 0, :, 2]
    return torch.stack([mean[..., 0], mean[..., 1], height, mean[..., 3]], -1)


def fill_between(clean: Tensor, known: Tensor) -> Tensor:
    """Each frame between its two known neighbours in time; held before the first and after the last."""
    frames = clean.shape[2]
    at = torch.arange(frames)
    left = torch.where(known, at, -1).cummax(-1).values
    right = torch.where(known, at, frames).flip(-1).cummin(-1).values.flip(-1)
    a = torch.where(left < 0, right, left).clamp(0, frames - 1)
    b = torch.where(right >= frames, left, right).clamp(0, frames - 1)
    share = ((at - a) / (b - a).clamp_min(1)).clamp(0, 1)[..., None]
    first = torch.take_along_dim(clean, a[..., None], 2)
    second = torch.take_along_dim(clean, b[..., None], 2)
    return first * (1 - share) + second * share


def nothing_known(clean: Tensor) -> Known:
    """Nothing is given."""
    return Known(torch.zeros_like(clean), torch.zeros(*clean.shape[:3], KNOWN))
