"""What is wrong with a stick figure's pose, by name, differentiable: the training's and the sampling's own validators.

The validators of `validators/` look at the skin and are what is reported; these look at the same faults on bones with
the flesh around them, for thousands of poses at once. Nothing is set per body: flesh is measured, and what a true pose
or the rest pose does is allowed.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.posespace.figure import BODY_KINDS, CHANNELS, KINDS, Places, Sticks, pelvis_heights, stick_places
from jigdoll.posespace.layout import EXTRA, STILL
from jigdoll.rig.retarget.limb_motion import TRUNK

FLESH = 0.8
"""Flesh gives way by the rest of its thickness."""
STRAIGHT = 0.08
"""A hinge whose bones lie straighter than this at rest (sine of its bend) tells no side."""
GROUNDED = len(BODY_KINDS)
"""The body's feature that tells whether it stands on the ground."""
DEEP = 0.05
"""What counts as one fault: this deep in the ground or in flesh, this much bent backwards [leg lengths, sine]."""

Faults = dict[str, Float[Tensor, "batch parts frames"]]


def faults_of(sticks: Sticks, places: Places, raw: Float[Tensor, "batch parts frames channels"]) -> Faults:
    """Per part and frame: how deep a limb's end is in the ground, its lower half in the trunk, how far a hinge is over.

    [leg lengths], and the sine of the angle for hinges.
    """
    limb = ((sticks.kinds == 3) | (sticks.kinds == 4)).float()[:, :, None]
    height = pelvis_heights(sticks, raw[:, 0, :, EXTRA.start + 2])
    standing = (sticks.body[:, GROUNDED] > 0.5).float()[:, None, None]
    ground = (-(height[:, None] + places.ends[..., 1])).relu() * limb * standing
    return {
        "ground": ground,
        "hinge": _overstretched(sticks, places) * limb,
        "flesh": _in_trunk(sticks, places) * limb,
    }


def fault_energy(ours: Faults, allowed: dict[str, Float[Tensor, "batch parts _"]]) -> Float[Tensor, "batch frames"]:
    """One number per frame: squares of what goes beyond what is allowed, in faults per part."""
    total = [((ours[name] - allowed[name]).relu() / DEEP).square().mean(1) for name in ours]
    return torch.stack(total).sum(0)


def corrected(
    sticks: Sticks, raw: Float[Tensor, "batch parts frames channels"], *, steps: int = 2, most: float = 0.1
) -> Float[Tensor, "batch parts frames channels"]:
    """The poses moved out of faults that the rest pose has not: half of the way a step, no number by more than `most`.

    The step is Polyak's: as long as the energy over its slope tells, for each frame.
    """
    still = resting(sticks)
    with torch.no_grad():
        allowed = faults_of(sticks, stick_places(sticks, still), still)
    moved = raw
    for _ in range(steps):
        with torch.enable_grad():
            free = moved.detach().requires_grad_(True)
            energy = fault_energy(faults_of(sticks, stick_places(sticks, free), free), allowed)
            (slope,) = torch.autograd.grad(energy.sum(), free)
        steep = slope.square().sum((1, 3)).clamp_min(1e-12)
        moved = moved - (slope * (energy.detach() / steep)[:, None, :, None]).clamp(-most, most)
    return moved.detach()


def resting(sticks: Sticks) -> Float[Tensor, "batch parts 1 channels"]:
    """The rest pose, but for limbs whose rest says little: those of people hang, wings are spread."""
    still = torch.from_numpy(STILL).float().expand(*sticks.kinds.shape, 1, CHANNELS).clone()
    person = (sticks.body[:, BODY_KINDS.index("person")] > 0)[:, None]
    still[:, :, 0, : EXTRA.start] += sticks.rest * ~(person | (sticks.kinds == KINDS.index("wing")))[..., None]
    still[:, 0, :, EXTRA.start + 2] = 1.0
    return still


def _overstretched(sticks: Sticks, places: Places) -> Float[Tensor, "batch parts frames"]:
    """How far knees and elbows bend against the way in which they are bent at rest (sine)."""
    upper, lower = sticks.bones[:, :, 1], sticks.bones[:, :, 2]
    axis = torch.linalg.cross(upper, lower)
    size = axis.norm(dim=-1)
    sine = size / (upper.norm(dim=-1) * lower.norm(dim=-1)).clamp_min(1e-6)
    told = (sine > STRAIGHT).float()[:, :, None]
    axis = (places.turns[..., 1, :, :] @ (axis / size.clamp_min(1e-9)[..., None])[:, :, None, :, None])[..., 0]
    a = torch.nn.functional.normalize(places.bones[..., 1, :], dim=-1, eps=1e-6)
    b = torch.nn.functional.normalize(places.bones[..., 2, :], dim=-1, eps=1e-6)
    return (-(torch.linalg.cross(a, b) * axis).sum(-1)).relu() * told


def _in_trunk(sticks: Sticks, places: Places) -> Float[Tensor, "batch parts frames"]:
    """How deep the lower half of a limb is in the flesh between pelvis and chest."""
    chest = places.bones[:, :1, :, 1 : 1 + TRUNK].sum(-2)
    radius = FLESH * (sticks.features[:, :1, 52] + sticks.features[..., 52]) * sticks.features[..., 53]
    deepest = torch.zeros(())
    for point in (places.ends, (places.ends + places.mids) / 2):
        along = (point * chest).sum(-1) / chest.square().sum(-1).clamp_min(1e-6)
        gap = (point - along.clamp(0, 1)[..., None] * chest).square().sum(-1).clamp_min(1e-9).sqrt()
        deepest = torch.maximum(deepest, (radius[..., None] - gap).relu())
    return deepest
