"""A seat where a clip rests in the air: people sit on chairs that their file does not hold."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.math import GRAVITY
from jigdoll.math.transforms import apply
from jigdoll.physics.bodies import Bodies
from jigdoll.physics.metrics import TOUCH, root_residuals
from jigdoll.physics.reference import Reference
from jigdoll.physics.stances import centre_of_mass

LONG = 0.25
"""A body rests that hardly moves for so long [s] ..."""
SLOW = 0.15
"""... with its bodies no faster than this on average [body lengths / s] ..."""
LACKING = 0.25
"""... while the ground cannot give this much of what holds it [weights], ..."""
BESIDE = 0.2
"""... or has its feet this far beside its centre of mass [leg lengths], so that it would tip over, ..."""
SUNK = 0.85
"""... while its first body is below this share of its height at rest: who stands so leans, who sits so sits."""
LEAST = 0.08
"""Lower seats are not made: the body sits on the ground [body lengths]."""


@dataclass(frozen=True, eq=False)
class Chair:
    """A box that stands on the ground."""

    centre: Float[Tensor, "3"]
    half: Float[Tensor, "3"]
    """Half extents [m]."""
    bodies: tuple[int, ...]
    """What meets it."""

    @property
    def top(self) -> float:
        """Its height [m]."""
        return float(self.centre[1] + self.half[1])


def find_chair(bodies: Bodies, reference: Reference, *, friction: float = 1.0) -> Chair | None:
    """A seat under the first body where it rests without enough to rest on; none where nothing lacks it."""
    fps, T = reference.fps, reference.T_world_body
    if len(reference) < max(4, round(LONG * fps) + 2):
        return None
    force, _ = root_residuals(bodies, T, fps, friction=friction)
    weight = bodies.total_mass * GRAVITY
    sunk = T[1:-1, 0, 1, 3] < SUNK * bodies.T_parent_body[0, 1, 3]
    tips = _beside(bodies, T[1:-1]) > BESIDE * bodies.leg_length
    lacking = (force[:, 1] > LACKING * weight) | (tips & sunk)
    slow = reference.twists[1:-1, :, :3].norm(dim=2).mean(1) < SLOW * bodies.length
    rests = _longest(lacking & slow)
    if rests is None or rests[1] - rests[0] + 1 < LONG * fps:
        return None
    frames = slice(rests[0] + 1, rests[1] + 2)
    skin = apply(T[frames, 0], bodies.contacts[0])
    top = float(skin[..., 1].amin(1).median())
    if top < LEAST * bodies.length:
        return None
    middle = 0.5 * (skin.flatten(0, 1).amin(0) + skin.flatten(0, 1).amax(0))
    wide = 0.12 * bodies.length
    half = torch.tensor([wide, 0.5 * top, wide], dtype=torch.float64)
    centre = torch.tensor([float(middle[0]), 0.5 * top, float(middle[2])], dtype=torch.float64)
    return Chair(centre, half, (0,))


def _beside(bodies: Bodies, T: Float[Tensor, "frames bodies 4 4"]) -> Float[Tensor, " frames"]:
    """How far the centre of mass is beside all that touches the ground [m]; infinite where nothing does."""
    angle = torch.arange(32, dtype=torch.float64) * (2 * math.pi / 32)
    ways = torch.stack([angle.cos(), angle.sin()], 1)
    points = apply(T, bodies.contacts.expand(len(T), -1, -1, -1)).flatten(1, 2)
    reach = torch.where(points[..., 1:2] < TOUCH * bodies.length, points[..., [0, 2]] @ ways.T, -math.inf)
    return (centre_of_mass(bodies, T)[:, [0, 2]] @ ways.T - reach.amax(1)).amax(1).clamp_min(0.0)


def _longest(flags: Tensor) -> tuple[int, int] | None:
    """First and last place of the longest stretch that is on."""
    best, start = None, None
    for place, on in enumerate([*flags.tolist(), False]):
        if on and start is None:
            start = place
        if not on and start is not None:
            if best is None or place - 1 - start > best[1] - best[0]:
                best = (start, place - 1)
            start = None
    return best
