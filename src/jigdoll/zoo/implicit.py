"""Blended implicit shapes: the clay that bodies are made of.

A shape is a signed distance (negative inside). A body folds its shapes in order with a smooth minimum, or a smooth
maximum for shapes that carve, so a later shape with a small blend keeps its edge on what came before.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

FAR = 1e3


@dataclass(frozen=True, eq=False)
class Shape:
    """One lump of clay, which joint moves it, and what it is painted as."""

    kind: Literal["cone", "box", "sheet"]
    origin: Float[ndarray, "3"]
    """One end of a rounded cone, the centre of a box, a corner of a sheet [m]."""
    frame: Float[ndarray, "3 3"]
    """Rows: the shape's own axes; a cone runs along the last. A sheet: its other two corners, then unused."""
    scale: Float[ndarray, "3"]
    """Stretch along the own axes (a cone), or half sizes (a box)."""
    length: float
    """Of a cone's axis, in its own stretched units; zero is a ball or an ellipsoid."""
    radii: tuple[float, float]
    """At both ends of a cone; the rounding of a box; half the thickness of a sheet."""
    blend: float
    """Width of the smooth union [m]."""
    owner: tuple[str, ...]
    """The joint that moves it, or several in line that share it."""
    region: str
    """What it is painted as."""
    carve: bool = False
    soft: float = 1.0
    """Multiplies the width over which its weights fade into its neighbours'."""
    joined: bool = False
    """Continues the shape before it (the next piece of a limb): their union is tight, and they blend as one."""

    @property
    def thickness(self) -> float:
        """The mean radius across its thin direction [m]."""
        if self.kind == "box":
            return float(self.scale.min())
        return 0.5 * sum(self.radii) * (1.0 if self.kind == "sheet" else float(self.scale[:2].min()))

    def bounds(self) -> tuple[Float[ndarray, "3"], Float[ndarray, "3"]]:
        """A box that surely holds it."""
        if self.kind == "sheet":
            corners = np.stack([self.origin, self.frame[0], self.frame[1]])
            return corners.min(0) - self.radii[0], corners.max(0) + self.radii[0]
        if self.kind == "box":
            reach = np.abs(self.frame.T * self.scale).sum(1) + self.radii[0]
            return self.origin - reach, self.origin + reach
        ends = np.stack([self.origin, self.origin + self.frame[2] * self.length * self.scale[2]])
        reach = [radius * np.sqrt(((self.frame.T * self.scale) ** 2).sum(1)) for radius in self.radii]
        low, high = ends - np.stack(reach), ends + np.stack(reach)
        return low.min(0), high.max(0)


def thickened(shape: Shape, least: float) -> Shape:
    """The shape, nowhere thinner than so much to each side [m]: what a grid of that spacing cannot miss."""
    if shape.kind == "box":
        return replace(shape, scale=np.maximum(shape.scale, least))
    if shape.kind == "sheet":
        return replace(shape, radii=(max(shape.radii[0], least),) * 2)
    if shape.length == 0:
        return replace(shape, scale=np.maximum(shape.scale, least / shape.radii[0]))
    wide = float(shape.scale[:2].max())
    radii = (max(shape.radii[0], least / wide), max(shape.radii[1], least / wide))
    scale = np.array([*np.maximum(shape.scale[:2], least / max(radii)), shape.scale[2]])
    return replace(shape, radii=radii, scale=scale)


def distance(shape: Shape, points: Float[ndarray, "*batch 3"]) -> Float[ndarray, "*batch"]:
    """Signed distance to one shape [m], first-order exact where the shape is stretched."""
    if shape.kind == "sheet":
        return _sheet_distance(shape, points)
    away = points - shape.origin.astype(points.dtype)
    if shape.kind == "box":
        half = (shape.scale - shape.radii[0]).astype(points.dtype)
        outside = np.abs(away @ shape.frame.T.astype(points.dtype)) - half
        return np.sqrt((np.maximum(outside, 0) ** 2).sum(-1)) + np.minimum(outside.max(-1), 0) - shape.radii[0]
    if shape.scale.min() == shape.scale.max() and (shape.length == 0 or shape.scale[0] == 1):
        # Nothing is stretched: only the way along the axis and the distance from it matter.
        reach2 = np.einsum("...i,...i->...", away, away)
        if shape.length == 0:
            return np.sqrt(reach2) - float(shape.scale[0]) * shape.radii[0]
        z = away @ shape.frame[2].astype(points.dtype)
        across2 = np.maximum(reach2 - z * z, 0)
        share = _share(shape, np.sqrt(across2), z)
        z = z - share * shape.length
        return np.sqrt(across2 + z * z) - (shape.radii[0] + (shape.radii[1] - shape.radii[0]) * share)
    scale = shape.scale.astype(points.dtype)
    local = (away @ shape.frame.T.astype(points.dtype)) / scale
    x, y, z = local[..., 0], local[..., 1], local[..., 2]
    across2 = x * x + y * y
    radius: float | ndarray = shape.radii[0]
    if shape.length > 0:
        share = _share(shape, np.sqrt(across2), z)
        z = z - share * shape.length
        radius = shape.radii[0] + (shape.radii[1] - shape.radii[0]) * share
    reach = np.sqrt(across2 + z * z) + np.float32(1e-9)
    # The slope of the stretched field turns its value into a length.
    slope = np.sqrt((x / scale[0]) ** 2 + (y / scale[1]) ** 2 + (z / scale[2]) ** 2) / reach
    return (reach - radius) / np.maximum(slope, np.float32(1e-3))


def _share(shape: Shape, across: ndarray, along: ndarray) -> ndarray:
    """Which of the spheres strung on a rounded cone's axis is nearest, from 0 at one end to 1 at the other."""
    sine = float(np.clip((shape.radii[0] - shape.radii[1]) / shape.length, -0.97, 0.97))
    return np.clip((along - across * (sine / np.sqrt(1 - sine * sine))) / shape.length, 0, 1)


def _sheet_distance(shape: Shape, points: Float[ndarray, "*batch 3"]) -> Float[ndarray, "*batch"]:
    """Distance to a triangle, less half its thickness."""
    a, b, c = (corner.astype(points.dtype) for corner in (shape.origin, shape.frame[0], shape.frame[1]))
    normal = np.cross(b - a, c - a)
    inside = np.ones(points.shape[:-1], dtype=bool)
    nearest2 = np.full(points.shape[:-1], np.inf, dtype=points.dtype)
    for start, end in ((a, b), (b, c), (c, a)):
        edge, away = end - start, points - start
        inside &= away @ np.cross(normal, edge) >= 0
        along = np.clip((away @ edge) / (edge @ edge), 0, 1)
        nearest2 = np.minimum(nearest2, ((away - along[..., None] * edge) ** 2).sum(-1))
    plane2 = ((points - a) @ normal) ** 2 / (normal @ normal)
    return np.sqrt(np.where(inside, plane2, nearest2)) - shape.radii[0]


def groups(shapes: Sequence[Shape]) -> list[list[int]]:
    """The shapes that blend as one, in order."""
    parts: list[list[int]] = []
    for i, shape in enumerate(shapes):
        if shape.joined and parts:
            parts[-1].append(i)
        else:
            parts.append([i])
    return parts


def field_at(
    shapes: Sequence[Shape],
    points: Float[ndarray, "*batch 3"],
    near: Sequence[Int[ndarray, " _"]] | None = None,
) -> Float[ndarray, "*batch"]:
    """The body's field at points; `near` names, per shape, the points that it can touch (along the first axis)."""
    everything = np.arange(len(points))
    field = np.full(points.shape[:-1], FAR, dtype=points.dtype)
    for part in groups(shapes):
        first = shapes[part[0]]
        if len(part) == 1:
            mine = everything if near is None else near[part[0]]
            field[mine] = _fold(field[mine], distance(first, points[mine]), first)
            continue
        limb = np.full(points.shape[:-1], FAR, dtype=points.dtype)
        touched = np.zeros(len(points), dtype=bool)
        for i in part:
            mine = everything if near is None else near[i]
            tight = 0.3 * shapes[i].thickness
            limb[mine] = _smooth_minimum(limb[mine], distance(shapes[i], points[mine]), tight)
            touched[mine] = True
        field[touched] = _fold(field[touched], limb[touched], first)
    # The ground flattens every sole.
    return np.maximum(field, -points[..., 1])


def _fold(field: ndarray, value: ndarray, shape: Shape) -> ndarray:
    """The field after a shape with these distances is added to it, or carved from it."""
    if shape.carve:
        return -_smooth_minimum(-field, value, shape.blend)
    return _smooth_minimum(field, value, shape.blend)


def _smooth_minimum(a: ndarray, b: ndarray, blend: float) -> ndarray:
    near = np.maximum(blend - np.abs(a - b), 0)
    return np.minimum(a, b) - near * near * np.float32(0.25 / max(blend, 1e-9))
