"""A motion held against all validators: values by name for a person, one number for a training loss."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.rig.anatomy import Anatomy
from jigdoll.types import Motion, Pose
from jigdoll.validators.body import PosedBody, ValidatedBody, pose_body, prepare
from jigdoll.validators.table import VALIDATORS


@dataclass(frozen=True)
class Finding:
    """A validator that a motion violates, where it is worst."""

    name: str
    sentence: str
    value: float
    unit: str
    frame: int
    joint: str
    share: float
    """Of the frames that violate it."""


def faults(body: ValidatedBody, posed: PosedBody) -> dict[str, Float[Tensor, "frames joints"]]:
    """How wrong each joint is in each frame, by validator; differentiable."""
    return {row.name: row.find(body, posed) for row in VALIDATORS}


def check(anatomy: Anatomy | ValidatedBody, motion: Motion | Pose) -> dict[str, Float[Tensor, " frames"]]:
    """How wrong each frame is at its worst joint, by validator; differentiable where the motion holds gradients.

    `motion` is one of the working copy that the Anatomy was measured on. A Pose has a batch axis of unrelated frames.
    """
    body = prepare(anatomy) if isinstance(anatomy, Anatomy) else anatomy
    return {name: values.amax(1) for name, values in faults(body, pose_body(body, motion)).items()}


def penalty(values: Mapping[str, Float[Tensor, "frames ..."]]) -> Float[Tensor, " frames"]:
    """One number per frame for a loss: the sum of (value / tolerance - 1)^2 of all that is beyond its tolerance.

    No weights: the tolerances are what real motion does, in units that are the same for every body.
    """
    parts = [(values[row.name] / row.tolerance - 1).clamp_min(0).square() for row in VALIDATORS if row.name in values]
    return torch.stack([part.reshape(len(part), -1).sum(1) for part in parts]).sum(0)


def findings(anatomy: Anatomy | ValidatedBody, motion: Motion | Pose) -> tuple[Finding, ...]:
    """What is wrong with a motion, the worst first, each with its frame and joint; nothing where all is right."""
    body = prepare(anatomy) if isinstance(anatomy, Anatomy) else anatomy
    with torch.no_grad():
        values = faults(body, pose_body(body, motion))
    found = []
    for row in VALIDATORS:
        worst, joint = values[row.name].max(1)
        frame = int(worst.argmax())
        if float(worst[frame]) > row.tolerance:
            name = body.skeleton.names[int(joint[frame])]
            share = float((worst > row.tolerance).double().mean())
            facts = (row.name, row.sentence, float(worst[frame]), row.unit, frame, name, share)
            found.append((float(worst[frame]) / row.tolerance, Finding(*facts)))
    return tuple(finding for _, finding in sorted(found, key=lambda pair: -pair[0]))
