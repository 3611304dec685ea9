"""How near to a clip the ground alone can carry the centre of mass, and how much of a hand is needed beyond that.

The ground pushes only where the body touches it, only upwards, and sideways no more than friction allows; in the air
nothing pushes. A clip that asks for more is drawn faster than bodies fall. Here its centre of mass is moved as little
as makes the pushes possible: the mean square of the shift is traded against the sum of what no ground can give.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy import ndarray
from torch import Tensor

from jigdoll.math import GRAVITY

ROUNDS = 24
"""Steps of Gauss and Newton."""
SMALL = 0.05
"""Pushes that are smaller than this count by their square [g]."""
PRICES = (1e-5, 4e-5, 1.6e-4, 6.4e-4, 2.5e-3, 1e-2)
"""What a hand of 1 g costs for a frame, against a shift by a body length: tried in this order."""
NONE = 0.01
"""A mean hand below this is none [g]."""


@dataclass(frozen=True, eq=False)
class PossiblePath:
    """A centre of mass that the ground can carry, or nearly."""

    centre: Float[Tensor, "frames 3"]
    """[m]."""
    hand: Float[Tensor, "frames 3"]
    """What the ground cannot give to it, as an acceleration [m/s^2]; the end frames have none."""


def possible_path(
    centre: Float[Tensor, "frames 3"],
    stands: Bool[Tensor, " frames"],
    fps: float,
    *,
    length: float,
    friction: float,
    most: float,
) -> PossiblePath:
    """The path of the centre of mass nearest to a clip's that needs hardly a hand, shifted by at most about `most`.

    `stands` tells when the body touches the ground; `most` is the mean shift that is allowed [body lengths].
    """
    if len(centre) < 4:
        return PossiblePath(centre, torch.zeros_like(centre))
    wished, ground = centre.numpy(), stands.numpy()[1:-1]
    best = _solve(wished, ground, fps, length, friction, 0.0)
    for price in PRICES:
        found = _solve(wished, ground, fps, length, friction, price)
        if np.linalg.norm(found[0] - wished, axis=1).mean() > most * length:
            break
        best = found
        if np.linalg.norm(found[1], axis=1).mean() < NONE:
            break
    hand = np.zeros_like(wished)
    hand[1:-1] = GRAVITY * best[1]
    return PossiblePath(torch.from_numpy(best[0]), torch.from_numpy(hand))


def _solve(
    wished: Float[ndarray, "frames 3"],
    ground: Bool[ndarray, " inner"],
    fps: float,
    length: float,
    friction: float,
    price: float,
) -> tuple[Float[ndarray, "frames 3"], Float[ndarray, "inner 3"]]:
    """The best path at a price, and what the ground cannot give to it [g]."""
    frames = len(wished)
    second = np.zeros((frames - 2, frames))
    rows = np.arange(frames - 2)
    second[rows, rows], second[rows, rows + 1], second[rows, rows + 2] = 1.0, -2.0, 1.0
    second *= fps**2 / GRAVITY
    up = np.array([0.0, 1.0, 0.0])
    path = wished.copy()
    lacking, turn = _beyond(second @ path + up, ground, friction)
    if not price:
        return path, lacking

    def cost(path: ndarray, lacking: ndarray) -> float:
        size = np.linalg.norm(lacking, axis=1)
        huber = np.where(size < SMALL, 0.5 * size**2 / SMALL, size - 0.5 * SMALL)
        return float(0.5 * ((path - wished) ** 2).sum() / length**2 + price * huber.sum())

    now = cost(path, lacking)
    for _ in range(ROUNDS):
        weight = price / np.maximum(np.linalg.norm(lacking, axis=1), SMALL)
        inner = np.einsum("tji,t,tjk->tik", turn, weight, turn)
        curve = np.einsum("ta,tik,tb->aibk", second, inner, second, optimize=True).reshape(3 * frames, 3 * frames)
        curve += np.eye(3 * frames) / length**2
        pull = np.einsum("tji,t,tj->ti", turn, weight, lacking)
        slope = (path - wished) / length**2 + second.T @ pull
        step = np.linalg.solve(curve, slope.reshape(-1)).reshape(frames, 3)
        for share in (1.0, 0.5, 0.2, 0.05):
            tried = path - share * step
            left, way = _beyond(second @ tried + up, ground, friction)
            then = cost(tried, left)
            if then < now:
                break
        else:
            break
        gain, path, lacking, turn, now = now - then, tried, left, way, then
        if gain < 1e-4 * now:
            break
    return path, lacking


def _beyond(
    push: Float[ndarray, "inner 3"], ground: Bool[ndarray, " inner"], friction: float
) -> tuple[Float[ndarray, "inner 3"], Float[ndarray, "inner 3 3"]]:
    """What of a push lies outside the friction cone (all of it in the air), and how that changes with the push."""
    side = push[:, [0, 2]]
    size = np.linalg.norm(side, axis=1)
    way = side / np.maximum(size, 1e-9)[:, None]
    steep = 1 / np.sqrt(1 + friction**2)
    edge = np.stack([friction * steep * way[:, 0], np.full_like(size, steep), friction * steep * way[:, 1]], 1)
    across = np.stack([-way[:, 1], np.zeros_like(size), way[:, 0]], 1)
    along = (edge * push).sum(1)
    inside = ground & (size <= friction * push[:, 1])
    none = ~ground | (along <= 0)
    eye = np.eye(3)
    turn = eye - edge[:, :, None] * edge[:, None]
    slip = np.clip(along * friction * steep / np.maximum(size, 1e-9), 0, 1)
    turn = turn - slip[:, None, None] * across[:, :, None] * across[:, None]
    lacking = push - along[:, None] * edge
    lacking = np.where(none[:, None], push, np.where(inside[:, None], 0.0, lacking))
    return lacking, np.where(none[:, None, None], eye, np.where(inside[:, None, None], 0.0, turn))
