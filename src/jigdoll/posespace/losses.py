"""What a clean estimate is measured by: numbers, bone directions, ends of limbs, their velocities, feet that stand."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.posespace.faults import fault_energy, faults_of
from jigdoll.posespace.figure import Places, Sticks, stick_places
from jigdoll.posespace.layout import CONTACT, EXTRA, RATE
from jigdoll.posespace.model import PATCH
from jigdoll.posespace.windows import Batch, Units

FAR = 2.0
"""Gaps larger than this are large [spreads of a channel]."""


@dataclass(frozen=True)
class LossWeights:
    """How much each counts."""

    root: float = 5.0
    """Of the root's channels among all numbers."""
    middle: float = 0.5
    """Of the turns of trunk, neck and tail."""
    bones: float = 1.0
    ends: float = 1.5
    motion: float = 5.0
    """Of the ends' steps from frame to frame."""
    planted: float = 6.0
    """Of steps over the ground of feet that stand."""
    faults: float = 0.15
    """Of limbs in the ground or in the trunk and of hinges bent over, beyond what the true clip does."""
    change: float = 1.0
    """Of the numbers' change from frame to frame."""


def denoising_loss(
    batch: Batch,
    estimate: Float[Tensor, "batch parts frames channels"],
    units: Units,
    weights: LossWeights,
    trust: Float[Tensor, " batch"] | None = None,
    weight: Float[Tensor, " batch"] | None = None,
) -> tuple[Tensor, Float[Tensor, " batch"]]:
    """The loss, and per window the mean square error of the numbers.

    `trust` is how much the geometry of each window counts: under much noise an estimate is a mean of many poses, and
    where its limbs point means little. `weight` is how much each window counts.
    """
    trust = torch.ones(len(estimate)) if trust is None else trust
    share = channel_weights(batch, weights)
    gap = estimate - batch.clean
    plain = ((gap.square() * share[:, :, None]).sum((1, 3)) / share.sum((1, 2))[:, None]).mean(1)
    total = ((_robust(gap) * share[:, :, None]).sum((1, 3)) / share.sum((1, 2))[:, None]).mean(1)
    raw = units.out_of(estimate, batch.sticks)
    places = stick_places(batch.sticks, raw)
    there = (batch.sticks.kinds >= 0).float()[:, :, None]
    large = body_size(batch.sticks)
    geometry = _geometry(batch, places, there, large, weights)
    theirs = faults_of(batch.sticks, batch.places, batch.raw)
    energy = fault_energy(faults_of(batch.sticks, places, raw), theirs).mean(1)
    geometry = geometry + weights.faults * energy.clamp_max(20.0)
    if estimate.shape[2] > PATCH:
        step = _robust(gap.diff(dim=2)) * share[:, :, None]
        total = total + weights.change * (step.sum((1, 3)) / share.sum((1, 2))[:, None]).mean(1)
        moved = (places.ends - batch.places.ends).diff(dim=2).square().sum(-1)
        geometry = geometry + weights.motion * _mean(moved, there) / large
        geometry = geometry + weights.planted * _planted(batch, places, raw)
    every = total + trust * geometry
    return (every if weight is None else every * weight).mean(), plain.detach()


def channel_weights(batch: Batch, weights: LossWeights) -> Float[Tensor, "batch parts channels"]:
    """How much each channel counts."""
    share = batch.counts.clone()
    kinds = batch.sticks.kinds[..., None]
    share[..., : EXTRA.start] *= torch.where(kinds < 3, weights.middle, 1.0)
    share[..., EXTRA] *= torch.where(kinds == 0, weights.root, 1.0)
    return share


def _geometry(
    batch: Batch, places: Places, there: Tensor, large: Tensor, weights: LossWeights
) -> Float[Tensor, " batch"]:
    sizes = batch.sticks.bones.norm(dim=-1)[:, :, None]
    marked = (sizes > 1e-3).float() * there[..., None]
    gap = (places.bones - batch.places.bones).square().sum(-1) / sizes.clamp_min(0.05).square()
    bones = (gap * marked).sum((1, 3)).mean(1) / marked.sum((1, 2, 3)).clamp_min(1)
    ends = (places.ends - batch.places.ends).square().sum(-1)
    return weights.bones * bones + weights.ends * _mean(ends, there) / large


def _robust(gap: Tensor) -> Tensor:
    """The square of small gaps, in proportion to large ones: a few wild poses must not lead."""
    return 2 * FAR**2 * ((1 + (gap / FAR).square()).sqrt() - 1)


def body_size(sticks: Sticks) -> Float[Tensor, " batch"]:
    """The square of a body's largest part, at least of a leg: wings of short-legged bodies are many legs long."""
    return sticks.bones.norm(dim=-1).sum(-1).amax(-1).clamp_min(1.0).square()


def _mean(values: Float[Tensor, "batch parts frames"], there: Tensor) -> Float[Tensor, " batch"]:
    return (values * there).sum((1, 2)) / (there.sum((1, 2)) * values.shape[2]).clamp_min(1)


def _planted(
    batch: Batch, places: Places, raw: Float[Tensor, "batch parts frames channels"]
) -> Float[Tensor, " batch"]:
    """How far feet that stand move over the ground, against how far they truly do."""
    stands = batch.raw[..., CONTACT] > 0
    both = ((batch.sticks.kinds == 3)[..., None] & stands[..., 1:] & stands[..., :-1]).float()
    ours = ground_steps(batch.sticks, places, raw)
    theirs = ground_steps(batch.sticks, batch.places, batch.raw)
    gap = (ours - theirs).square().sum(-1)
    return (gap * both).sum((1, 2)) / both.sum((1, 2)).clamp_min(1)


def ground_steps(
    sticks: Sticks, places: Places, raw: Float[Tensor, "batch parts frames channels"]
) -> Float[Tensor, "batch parts steps 3"]:
    """How far each end moves over the ground from frame to frame, in the frame of the heading [leg lengths]."""
    root = raw[:, 0, :, EXTRA]
    turn = root[:, :-1, 3] / RATE
    c, s = turn.cos()[:, None], turn.sin()[:, None]
    x, y, z = places.ends[:, :, 1:].unbind(-1)
    turned = torch.stack([c * x + s * z, y, c * z - s * x], -1)
    rise = root[:, 1:, 2] - root[:, :-1, 2]
    way = torch.stack([root[:, :-1, 0] / RATE, rise * sticks.rise[:, None], root[:, :-1, 1] / RATE], -1)
    return turned + way[:, None] - places.ends[:, :, :-1]
