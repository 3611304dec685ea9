"""The learned pose space on one body: noise to clips, clips to noise, and how far off a clip is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from jigdoll.errors import JigdollError
from jigdoll.math.diffusion import guided
from jigdoll.posespace.faults import corrected
from jigdoll.posespace.figure import CHANNELS, Figure, Sticks, stack_figures
from jigdoll.posespace.layout import EXTRA
from jigdoll.posespace.model import PATCH, Known, PoseNet, clean_estimate, signal_and_noise
from jigdoll.posespace.tween import Tween
from jigdoll.posespace.windows import Units, channel_counts, known_from, nothing_known
from jigdoll.protocols import TextEncoder

LONGEST = 48
"""Frames of the longest window."""
STEPS = 10
GUIDANCE = 2.5
NOISIEST, CLEANEST = 0.985, 0.02
PLAIN_STEPS = 2
CLEAR = 0.5
"""Below this noise level an estimate is a pose, not a mean of many."""
SCORE_LEVELS = (0.15, 0.3, 0.45)
"""Noise levels at which a clip is compared with what the network makes of it."""

Project = Callable[[Float[Tensor, "batch parts frames channels"]], Float[Tensor, "batch parts frames channels"]]
"""Moves a clean estimate, in the network's units, to where it has to be."""


@dataclass(frozen=True, eq=False)
class Given:
    """What is held: values in limb space and where they count."""

    values: Float[Tensor, "parts frames channels"]
    turns: Bool[Tensor, "parts frames"]
    extra: Bool[Tensor, "parts frames"]
    """Ends and contacts of limbs; of the trunk the root's way."""
    handles: Float[Tensor, "parts frames 3"] | None = None
    """Where ends have to be, seen from the pelvis [leg lengths]."""
    handled: Bool[Tensor, "parts frames"] | None = None


@dataclass(frozen=True)
class SampleOptions:
    """How to draw from the pose space."""

    steps: int = STEPS
    guidance: float = GUIDANCE
    """How much words count: 1 as learned, more exaggerates."""
    start: float = NOISIEST
    """The noise level to start from; lower ones stay near what they start with."""
    spread: float = 1.0
    """Of the noise: 1 gives all there is, 0 the likeliest."""
    plain: int = PLAIN_STEPS
    """So many last steps take the network's word alone: what goes past it carries noise into the result."""
    valid: bool = True
    """Move estimates out of the ground, out of the trunk's flesh and out of hinges bent over, once they are clear."""


@dataclass(frozen=True, eq=False)
class PoseSpace:
    """Weights, units and words; knows no body."""

    net: PoseNet
    units: Units
    encoder: TextEncoder
    facts: dict
    tween: Tween | None = None
    """What answers between keys, where its weights are there."""

    def words(self, text: str | None, count: int = 1) -> Float[Tensor, "count vector"]:
        """The vector of a sentence; zero where nothing is said."""
        if not text:
            return torch.zeros(count, self.net.config.text)
        return self.encoder([text]).float().expand(count, -1)

    def draw(
        self,
        figures: Sequence[Figure],
        frames: int,
        text: Float[Tensor, "batch vector"],
        *,
        generator: torch.Generator,
        given: Sequence[Given | None] | None = None,
        options: SampleOptions = SampleOptions(),
        start: Float[Tensor, "batch parts frames channels"] | None = None,
        project: Project | None = None,
    ) -> Float[Tensor, "batch parts frames channels"]:
        """Clips in limb space: from noise, or from `start` noised to the level where the options begin.

        1 frame is a pose. What is given is held exactly. `project` corrects the clean estimate of every step.
        """
        length = window_length(frames)
        sticks = stack_figures(figures)
        clean0 = self._start(start, sticks, frames, length)
        known, hold, held = self._given(given, sticks, frames, length)
        counts = channel_counts(sticks)[:, :, None]
        alpha, sigma = signal_and_noise(torch.tensor(options.start))
        noise = options.spread * torch.randn(clean0.shape, generator=generator)
        if frames == 1:
            noise = noise[:, :, :1].expand_as(clean0)
        noisy = (alpha * clean0 + sigma * noise) * counts
        levels = torch.linspace(options.start, CLEANEST, options.steps + 1).tolist()
        estimate = clean0
        for number, (level, lower) in enumerate(pairwise(levels)):
            estimate = self.estimate(
                noisy, level, sticks, text, known, options, skip=number < options.steps - options.plain
            )
            if options.valid and level < CLEAR:
                estimate = self.units.into(corrected(sticks, self.units.out_of(estimate, sticks)), sticks)
            estimate = torch.where(hold, held, estimate) * counts
            if project is not None:
                estimate = torch.where(hold, held, project(estimate)) * counts
            a, s = signal_and_noise(torch.tensor(level))
            b, t = signal_and_noise(torch.tensor(lower))
            noisy = (b * estimate + t * (noisy - a * estimate) / s.clamp_min(1e-4)) * counts
        return self.units.out_of(estimate, sticks)[:, :, :frames]

    def estimate(
        self,
        noisy: Tensor,
        level: float,
        sticks: Sticks,
        text: Tensor,
        known: Known,
        options: SampleOptions,
        *,
        skip: bool = True,
    ) -> Tensor:
        """The clean clip behind a noisy one, guided by words where there are any."""
        at = torch.full((len(noisy),), level)
        said = bool(text.abs().sum() > 0) and options.guidance != 1.0
        with torch.no_grad():
            if not said:
                return clean_estimate(noisy, self._net(noisy, at, sticks, text, known), at, skip=skip)
            both = [torch.cat([part, part]) for part in (noisy, at)]
            texts = torch.cat([text, torch.zeros_like(text)])
            twice = Known(torch.cat([known.values] * 2), torch.cat([known.marks] * 2))
            wanted, other = self._net(both[0], both[1], _doubled(sticks), texts, twice).chunk(2)
            return clean_estimate(noisy, guided(wanted, other, options.guidance), at, skip=skip)

    def _net(self, noisy: Tensor, level: Tensor, sticks: Sticks, text: Tensor, known: Known) -> Tensor:
        return self.net(noisy, level, sticks, text, known).float()

    def invert(
        self, figure: Figure, clip: Float[Tensor, "parts frames channels"], text: Tensor, *, steps: int = 2 * STEPS
    ) -> Float[Tensor, "1 parts length channels"]:
        """The noise that draws this clip, by deterministic steps backwards; in the network's units."""
        sticks = stack_figures([figure])
        frames = clip.shape[1]
        clean = self._start(clip[None], sticks, frames, window_length(frames))
        counts = channel_counts(sticks)[:, :, None]
        known = nothing_known(clean)
        levels = torch.linspace(CLEANEST, NOISIEST, steps + 1).tolist()
        a, _ = signal_and_noise(torch.tensor(levels[0]))
        noisy = a * clean * counts
        for level, higher in pairwise(levels):
            estimate = self.estimate(noisy, level, sticks, text, known, SampleOptions(guidance=1.0)) * counts
            a, s = signal_and_noise(torch.tensor(level))
            b, t = signal_and_noise(torch.tensor(higher))
            noise = (noisy - a * estimate) / s.clamp_min(1e-3)
            noisy = (b * estimate + t * noise) * counts
        return noisy

    def from_noise(
        self,
        figure: Figure,
        noise: Float[Tensor, "batch parts frames channels"],
        text: Tensor,
        *,
        steps: int = 2 * STEPS,
    ) -> Float[Tensor, "batch parts frames channels"]:
        """What a noise draws, by deterministic steps."""
        sticks = stack_figures([figure] * len(noise))
        known = nothing_known(noise)
        counts = channel_counts(sticks)[:, :, None]
        estimate = noisy = noise
        for level, lower in pairwise(torch.linspace(NOISIEST, CLEANEST, steps + 1).tolist()):
            estimate = self.estimate(noisy, level, sticks, text, known, SampleOptions(guidance=1.0)) * counts
            a, s = signal_and_noise(torch.tensor(level))
            b, t = signal_and_noise(torch.tensor(lower))
            noisy = (b * estimate + t * (noisy - a * estimate) / s.clamp_min(1e-4)) * counts
        return self.units.out_of(estimate, sticks)

    def score(
        self, figure: Figure, clip: Float[Tensor, "parts frames channels"], text: Tensor, *, seed: int = 0
    ) -> Float[Tensor, " frames"]:
        """How far off each frame is: the distance to what the network makes of it, noised a little; differentiable.

        About 0.05 and less for real motion, more for what no body does. Gradients flow to the clip, not through the
        network.
        """
        sticks = stack_figures([figure])
        frames = clip.shape[1]
        clean = self._start(clip[None], sticks, frames, window_length(frames))
        counts = channel_counts(sticks)[:, :, None]
        generator = torch.Generator().manual_seed(seed)
        known, total = nothing_known(clean.detach()), clean.new_zeros(clean.shape[2])
        for level in SCORE_LEVELS:
            a, s = signal_and_noise(torch.tensor(level))
            noise = torch.randn(clean.shape, generator=generator)
            noisy = (a * clean.detach() + s * noise) * counts
            estimate = self.estimate(noisy, level, sticks, text, known, SampleOptions(guidance=1.0), skip=False)
            off = (clean - estimate).square() * counts
            total = total + off.sum((0, 1, 3)) / counts.sum()
        return total[:frames] / len(SCORE_LEVELS)

    def score_poses(
        self, figure: Figure, poses: Float[Tensor, "poses parts channels"], text: Tensor, *, seed: int = 0
    ) -> Float[Tensor, " poses"]:
        """The score of single poses, all at once; the same numbers as `score` gives each of them."""
        count, levels = len(poses), len(SCORE_LEVELS)
        sticks = stack_figures([figure] * (count * levels))
        clean = self._start(poses[:, :, None].repeat(levels, 1, 1, 1), sticks, 1, PATCH)
        counts = channel_counts(sticks)[:, :, None]
        generator = torch.Generator().manual_seed(seed)
        noise = [torch.randn(1, *clean.shape[1:], generator=generator).expand(count, -1, -1, -1) for _ in SCORE_LEVELS]
        level = torch.tensor(SCORE_LEVELS).repeat_interleave(count)
        a, s = (part[:, None, None, None] for part in signal_and_noise(level))
        noisy = (a * clean.detach() + s * torch.cat(noise)) * counts
        with torch.no_grad():
            answer = self._net(noisy, level, sticks, text.expand(len(noisy), -1), nothing_known(noisy))
        off = (clean - answer).square() * counts
        return (off[:, :, 0].sum((1, 2)) / counts[:, :, 0].sum((1, 2))).unflatten(0, (levels, count)).mean(0)

    def _start(self, start: Tensor | None, sticks: Sticks, frames: int, length: int) -> Tensor:
        """A clip in the network's units and of a whole number of tokens; its last frame is repeated."""
        shape = (*sticks.kinds.shape, length, CHANNELS)
        if start is None:
            return torch.zeros(shape)
        more = start[:, :, -1:].expand(-1, -1, length - frames, -1)
        return self.units.into(torch.cat([start, more], 2).float(), sticks)

    def _given(
        self, given: Sequence[Given | None] | None, sticks: Sticks, frames: int, length: int
    ) -> tuple[Known, Tensor, Tensor]:
        """What is known as the network sees it, where it is held, and the held values."""
        empty = torch.zeros(*sticks.kinds.shape, length, CHANNELS)
        if given is None or all(one is None for one in given):
            return nothing_known(empty), torch.zeros_like(empty, dtype=torch.bool), empty
        values, (turns, extra, handled) = (
            empty.clone(),
            (torch.zeros(empty.shape[:3], dtype=torch.bool) for _ in range(3)),
        )
        ends = torch.zeros(*empty.shape[:3], 3)
        for i, one in enumerate(given):
            if one is None:
                continue
            count = len(one.values)
            if one.values.shape[1] != frames:
                raise JigdollError(f"{one.values.shape[1]} frames are given for a window of {frames}")
            at = torch.arange(length).clamp_max(frames - 1)
            values[i, :count] = one.values[:, at].float()
            turns[i, :count], extra[i, :count] = one.turns[:, at], one.extra[:, at]
            if one.handles is not None and one.handled is not None:
                ends[i, :count], handled[i, :count] = one.handles[:, at], one.handled[:, at]
        held = self.units.into(values, sticks)
        known = known_from(held, ends, sticks, turns, extra, handled)
        hold = turns[..., None].expand(-1, -1, -1, CHANNELS).clone()
        hold[..., EXTRA] = extra[..., None]
        return known, hold, held


def window_length(frames: int) -> int:
    """Frames of the whole tokens that hold so many."""
    return max(-(-frames // PATCH) * PATCH, PATCH)


def _doubled(sticks: Sticks) -> Sticks:
    return replace(sticks, **{name: torch.cat([value] * 2) for name, value in vars(sticks).items()})
