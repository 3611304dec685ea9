"""What the parts of a body weigh: by volume, as far as an integrator can hold them, and what was changed for that."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.types import RiggedAsset

DENSITY = 1000.0
"""Of flesh [kg/m^3]."""
LEAST_MASS = 0.01
"""No body is lighter than this share of the whole: an explicit integrator pays for light parts with tiny steps."""
MOST_END = 0.15
"""No end of the body (a head, a hand with its weapon) is heavier than this share of the whole."""
FEW = 5
"""With fewer bodies than this, all of them count as the trunk."""
LEAST_ROUND = 0.25
"""No principal inertia is smaller than this share of the body's largest one, for the same reason."""


def mesh_volume(asset: RiggedAsset) -> float:
    """The volume that the surface encloses [m^3]: a sixth of the sum of the faces' triple products."""
    a, b, c = asset.mesh.vertices.double()[asset.mesh.faces.long()].unbind(1)
    return abs(float((torch.linalg.cross(a, b) * c).sum())) / 6


def masses(
    asset: RiggedAsset, half: Float[Tensor, "bodies 3"], parents: Sequence[int], *, density: float
) -> tuple[Float[Tensor, " bodies"], Float[Tensor, " bodies"]]:
    """Shares of the whole by volume, none below the least; the whole by the mesh if it is closed, else by cuboids.

    Heads of cartoons, and what a hand holds, are hollow: an end of the body weighs no more than a share of the whole.
    Beside them stands what they would be by volume alone.
    """
    volume = 8 * half.prod(1)
    whole, enclosed = float(volume.sum()), mesh_volume(asset)
    if 0.2 * whole < enclosed < 1.5 * whole:
        whole = enclosed
    plain = density * whole * volume / volume.sum()
    below = volume.clone()
    for body in range(len(parents) - 1, 0, -1):
        below[parents[body]] += below[body]
    ends = below < 1.5 * volume  # little hangs on them: ears on a head
    ends[0] = False
    ends &= len(ends) >= FEW
    for _ in range(8):  # what an end gives up goes to the others
        share = volume / volume.sum()
        volume = torch.where(ends & (share > MOST_END), MOST_END * volume.sum(), volume)
    share = (volume / volume.sum()).clamp_min(LEAST_MASS)
    return density * whole * share / share.sum(), plain


def inertias(
    mass: Float[Tensor, " bodies"], half: Float[Tensor, "bodies 3"], R_body_box: Float[Tensor, "bodies 3 3"]
) -> Float[Tensor, "bodies 3 3"]:
    """Of cuboids: m (b^2 + c^2) / 3 about the axis of half extent a, slender ones thickened."""
    squares = half.square()
    principal = mass[:, None] / 3 * (squares.sum(1, keepdim=True) - squares)
    principal = torch.maximum(principal, LEAST_ROUND * principal.amax(1, keepdim=True))
    return R_body_box @ torch.diag_embed(principal) @ R_body_box.mT


def repairs(
    names: Sequence[str],
    joints: int,
    mass: Float[Tensor, " bodies"],
    plain: Float[Tensor, " bodies"],
    half: Float[Tensor, "bodies 3"],
) -> tuple[str, ...]:
    """What was merged, weighed anew and made rounder; `plain` are the masses by volume alone."""
    said = []
    if joints > len(names):
        said.append(f"{joints - len(names)} of {joints} joints are carried by others")
    share = plain / plain.sum()
    light = [name for name, part in zip(names, share, strict=True) if part < LEAST_MASS]
    if light:
        said.append(f"{len(light)} light parts weigh at least {LEAST_MASS:.0%} ({_some(light)})")
    cut = (mass / mass.sum() < 0.9 * share) & (share > MOST_END)
    heavy = [f"{name} {part:.0%}" for name, part, on in zip(names, share, cut, strict=True) if on]
    if heavy:
        said.append(f"ends of the body weigh at most {MOST_END:.0%} ({_some(heavy)})")
    squares = half.square()
    about = squares.sum(1, keepdim=True) - squares
    thin = int((about.amin(1) < LEAST_ROUND * about.amax(1)).sum())
    if thin:
        said.append(f"{thin} slender parts turn as if they were thicker")
    return tuple(said)


def _some(names: Sequence[str]) -> str:
    """A few of many names."""
    return ", ".join(names[:3]) + (" ..." if len(names) > 3 else "")
