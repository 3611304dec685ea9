"""Skinning weights from the shapes that a body is made of.

Each shape belongs to a joint, or to several in line that share it. A surface point belongs to the shapes whose surface
it is nearest to, fading over a width that grows with the shape's thickness: two parts of a leg that share a knee blend
over about the knee's radius, and a leg does not reach the belly beyond its hip.
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray

from jigdoll.types import Skeleton, Weights
from jigdoll.zoo.implicit import Shape
from jigdoll.zoo.polygonize import neighbours
from jigdoll.zoo.skeleton import joint_points


def skin_weights(
    skeleton: Skeleton,
    shapes: Sequence[Shape],
    distances: Float[ndarray, "vertices shapes"],
    vertices: Float[ndarray, "vertices 3"],
    faces: Int[ndarray, "faces 3"],
    *,
    smoothing: int = 4,
) -> Weights:
    """At most four influences per vertex, smooth along the surface, with no leak across the middle plane."""
    joints = joint_points(skeleton).numpy()
    dense = np.zeros((len(vertices), len(skeleton)), dtype=np.float32)
    solid = [i for i, shape in enumerate(shapes) if not shape.carve]
    nearest = distances[:, solid].min(1)
    shares: dict[tuple[str, ...], ndarray] = {}
    for i in solid:
        shape = shapes[i]
        width = max(0.6 * shape.thickness * shape.soft, 1e-6)
        belongs = np.maximum(1 - (distances[:, i] - nearest) / width, 0) ** 2
        if shape.owner not in shares:
            shares[shape.owner] = _shares(skeleton, joints, shape.owner, vertices)
        columns = [skeleton.index(name) for name in shape.owner]
        dense[:, columns] = np.maximum(dense[:, columns], belongs[:, None] * shares[shape.owner])
    average = neighbours(len(vertices), faces)
    for _ in range(smoothing):
        dense = 0.4 * dense + 0.6 * (average @ dense)
    dense *= _own_side(skeleton, vertices)
    dense /= dense.sum(1, keepdims=True)
    dense[dense < 0.01] = 0
    return Weights.from_dense(torch.from_numpy(dense), influences=4)


def _shares(skeleton: Skeleton, joints: ndarray, owner: tuple[str, ...], vertices: ndarray) -> ndarray:
    """How the joints of one owner share each vertex: hats along the line of their bones."""
    if len(owner) == 1:
        return np.ones((len(vertices), 1), dtype=np.float32)
    line = joints[[skeleton.index(name) for name in owner]]
    last = skeleton.children[skeleton.index(owner[-1])]
    end = joints[last[0]] if last else 2 * line[-1] - line[-2]
    line = np.concatenate([line, end[None]])
    lengths = np.linalg.norm(np.diff(line, axis=0), axis=1)
    before = np.concatenate([[0.0], np.cumsum(lengths)])
    best, along = np.full(len(vertices), np.inf), np.zeros(len(vertices))
    for i, length in enumerate(lengths):
        direction = (line[i + 1] - line[i]) / max(length, 1e-9)
        t = np.clip((vertices - line[i]) @ direction, 0, length)
        gap = np.linalg.norm(vertices - line[i] - t[:, None] * direction, axis=1)
        along = np.where(gap < best, before[i] + t, along)
        best = np.minimum(best, gap)
    middles = 0.5 * (before[1:] + before[:-1])
    place = np.interp(along, middles, np.arange(len(middles)))
    linear = np.maximum(1 - np.abs(place[:, None] - np.arange(len(middles))), 0)
    return (linear * linear * (3 - 2 * linear)).astype(np.float32)


def _own_side(skeleton: Skeleton, vertices: ndarray) -> ndarray:
    """One on a limb's own side of the middle plane, zero across it."""
    width = 0.02 * float(np.ptp(vertices[:, 0]))
    left = np.clip(0.5 + vertices[:, 0] / width, 0.001, 1)
    right = np.clip(0.5 - vertices[:, 0] / width, 0.001, 1)
    middle = np.ones_like(left)
    sides = [left if n.startswith("left_") else right if n.startswith("right_") else middle for n in skeleton.names]
    return np.stack(sides, 1).astype(np.float32)
