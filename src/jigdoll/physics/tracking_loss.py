"""What tracking minimises: how far the bodies are from the clip, and how far its standing feet slide."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.math.rotations import matrix_to_quaternion, quaternion_to_matrix
from jigdoll.physics.bodies import Bodies
from jigdoll.physics.reference import Reference

STANDS = 0.012
"""A foot of the clip that is nearer to the ground than this share of the length stands ..."""
SLIPS = 0.5
"""... unless it moves faster than this [lengths / s]: then it swings, however low."""
FEET = 4.0
"""What a foot out of place counts, against one for the other bodies: a foot that lifts too little drags."""
SLIDING = 5.0
"""Weight of the way that standing feet slide."""


class Measure:
    """How far the bodies are from the reference."""

    def __init__(self, reference: Reference, bodies: Bodies, *, paper: bool, smooth: float, ground: bool) -> None:
        T = reference.T_world_body
        self.place, self.turn = T[..., :3, 3].float(), matrix_to_quaternion(T[..., :3, :3]).float()
        self.length, self.paper, self.smooth = bodies.length, paper, smooth
        self.feet = [body for foot in bodies.feet for body in foot]
        self.soles = bodies.contacts[self.feet].float()
        share = torch.ones(len(bodies))
        share[self.feet] = FEET
        self.share = share / share.mean()
        soles = self._soles(self.place, self.turn)
        low = soles[..., 1].amin(-1) < STANDS * bodies.length
        slow = self._ways(soles) < SLIPS / reference.fps
        self.stands = (low[1:] & low[:-1] & slow & ground).float()

    def _soles(
        self, place: Float[Tensor, "frames bodies 3"], turn: Float[Tensor, "frames bodies 4"]
    ) -> Float[Tensor, "frames feet points 3"]:
        """The contacts of the feet in the world [m]."""
        R = quaternion_to_matrix(turn[:, self.feet])
        return self.soles @ R.mT + place[:, self.feet, None]

    def _ways(self, soles: Float[Tensor, "frames feet points 3"]) -> Float[Tensor, "steps feet"]:
        """How far the lowest skin of each foot moves over the ground from frame to frame [lengths]."""
        lowest = torch.softmax(-soles[..., 1].detach() / (0.003 * self.length), -1)
        step = torch.diff(soles, dim=0)[..., [0, 2]] / self.length
        way = (step.square().sum(-1) + 1e-4**2).sqrt()
        return (lowest[:-1] * way).sum(-1)

    def _slide(self, rows: Float[Tensor, "frames bodies 13"]) -> Float[Tensor, ""]:
        """The mean way of feet over the ground in a frame in which the clip has them stand [lengths]."""
        ways = self._ways(self._soles(rows[..., :3], rows[..., 3:7]))
        stands = self.stands[: len(ways)]
        return (stands * ways).sum() / stands.sum().clamp_min(1)

    def __call__(self, rows: Float[Tensor, "frames bodies 13"], base: Tensor, offsets: Tensor) -> tuple[float, Tensor]:
        """The mean distance of the bodies' frames, as a share of the length, and the loss."""
        place, turn = rows[1:, :, :3], rows[1:, :, 3:7]
        wished, facing = self.place[1 : len(rows)], self.turn[1 : len(rows)]
        gap = (place - wished).norm(dim=-1) / self.length
        near = float(gap.detach().mean())
        near = near if math.isfinite(near) else math.inf
        sign = torch.where((turn * facing).sum(-1, keepdim=True) < 0, -1.0, 1.0)
        if self.paper:
            theta = base + offsets
            wiggle = (theta[2:] - 2 * theta[1:-1] + theta[:-2]).abs().mean()
            away = (place - wished).abs().sum((1, 2)) + (sign * turn - facing).abs().sum((1, 2))
            return near, away.mean() + self.smooth * wiggle
        wiggle = (offsets[2:] - 2 * offsets[1:-1] + offsets[:-2]).abs().mean()
        tilt = 1 - (turn * facing).sum(-1).square()
        smooth_gap = self.share * (gap.square() + 1e-4**2).sqrt()
        loss = smooth_gap.mean() + 0.1 * tilt.mean() + 0.05 * self.smooth * wiggle
        return near, loss + SLIDING * self._slide(rows)
