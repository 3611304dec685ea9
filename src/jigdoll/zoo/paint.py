"""Vertex paint: regions, gradients, spots and stripes, and eyes that look somewhere."""

from collections.abc import Mapping

import numpy as np
from numpy import ndarray

from jigdoll.math.colors import Color
from jigdoll.zoo.sculpt import Sculptor

__all__ = ["Canvas", "Color", "Palette"]

Palette = Mapping[str, Color]
"""Colours by region, sRGB in 0..1; `coat` paints what has no colour of its own."""


class Canvas:
    """A body under the brush: where its vertices are, which shape each is part of, and its colours so far."""

    def __init__(
        self,
        sculptor: Sculptor,
        points: ndarray,
        normals: ndarray,
        distances: ndarray,
        palette: Palette,
        *,
        blur: ndarray,
        seed: int,
    ) -> None:
        self.sculptor = sculptor
        self.points = points
        self.normals = normals
        self.palette = palette
        self._rng_seed = seed
        solid = np.array([not shape.carve for shape in sculptor.shapes])
        gaps = np.where(solid, distances - distances[:, solid].min(1, keepdims=True), np.inf)
        # A little blur, about half an edge wide, keeps the borders of regions from following the triangles.
        shares = np.exp(-gaps / np.maximum(blur, 1e-9)[:, None])
        self.shares = shares / shares.sum(1, keepdims=True)
        self._regions = np.array([shape.region for shape in sculptor.shapes])
        # Joints in line are named by their second: the first is where the line grows from (pelvis, chest).
        self._owners = [shape.owner[min(1, len(shape.owner) - 1)] for shape in sculptor.shapes]
        self.colors = self.shares @ np.stack([self.color(region) for region in self._regions])

    @property
    def x(self) -> ndarray:
        """[m], the character's left."""
        return self.points[:, 0]

    @property
    def y(self) -> ndarray:
        """[m], up."""
        return self.points[:, 1]

    @property
    def z(self) -> ndarray:
        """[m], forward."""
        return self.points[:, 2]

    def color(self, name: str) -> ndarray:
        """The palette's colour of that name, or the coat's."""
        return np.array(self.palette.get(name, self.palette["coat"]))

    def region(self, *names: str) -> ndarray:
        """How much a vertex is part of such a region, in 0..1."""
        return self.shares[:, np.isin(self._regions, names)].sum(1)

    def moved_by(self, *parts: str) -> ndarray:
        """How much a vertex is part of shapes whose joint has one of these words in its name, in 0..1."""
        mine = np.array([any(part in owner for part in parts) for owner in self._owners])
        return self.shares[:, mine].sum(1)

    def head_coordinates(self) -> tuple[ndarray, ndarray, ndarray]:
        """Left, up and forward of the head joint, in head lengths."""
        sculptor = self.sculptor
        local = (self.points - sculptor.at("head")) @ sculptor.head_frame.T / sculptor.head_length
        return local[:, 0], local[:, 1], local[:, 2]

    def brush(self, mask: ndarray, color: str | Color) -> None:
        """Mix a colour in where the mask is above zero."""
        target = self.color(color) if isinstance(color, str) else np.array(color)
        mask = np.clip(mask, 0, 1)[:, None]
        self.colors = self.colors * (1 - mask) + target * mask

    def shade(self, amount: ndarray | float) -> None:
        """Multiply the brightness."""
        self.colors = np.clip(self.colors * np.reshape(amount, (-1, 1)), 0, 1)

    def below(self, edge: float, width: float, *, of: str = "coat") -> None:
        """A pale underside: where the surface faces down past an edge (-1 straight down)."""
        facing = smooth(-self.normals[:, 1], edge, edge + width)
        self.brush(facing * self.region(of), "belly")

    def noise(self, size: float, *, octave: int = 0) -> ndarray:
        """Smooth random values in 0..1 over space, with features of that size [m]; mirrored left and right."""
        points = np.abs(self.points * [1.0, 0.0, 0.0]) + self.points * [0.0, 1.0, 1.0]
        return value_noise(points / size, self._rng_seed * 17 + octave)

    def cells(self, size: float, *, octave: int = 0) -> tuple[ndarray, ndarray]:
        """Distances to the nearest and to the second nearest of scattered points, in units of their spacing."""
        return cell_distances(self.points / size, self._rng_seed * 29 + octave)

    def eyes(
        self,
        *,
        rim: Color = (0.07, 0.05, 0.05),
        iris: Color | None = None,
        pupil: float = 0.36,
        ring: float = 0.72,
        lash: float = 0.0,
    ) -> None:
        """Paint eyes: a pupil about the gaze, the iris around it, a rim (a dark lid, or white); shares of the eye.

        `lash` darkens the top of the eye by that share of its radius.
        """
        iris = self.palette.get("iris", (0.25, 0.14, 0.06)) if iris is None else iris
        for i, shape in enumerate(self.sculptor.shapes):
            if shape.region != "eye":
                continue
            local = (self.points - shape.origin) @ shape.frame.T / shape.scale
            mine = self.shares[:, i]
            toward = local[:, 2] / np.maximum(np.linalg.norm(local, axis=1), 1e-9)
            angle = np.arccos(np.clip(toward, -1, 1)) / (0.5 * np.pi)
            self.brush(mine, rim)
            self.brush(mine * smooth(-angle, -ring - 0.08, -ring + 0.08), iris)
            self.brush(mine * smooth(-angle, -pupil - 0.08, -pupil + 0.08), (0.02, 0.02, 0.03))
            if lash > 0:
                height = (self.points - shape.origin)[:, 1] / shape.scale[1]
                self.brush(mine * smooth(height, 1 - lash - 0.12, 1 - lash + 0.12), (0.10, 0.07, 0.06))
            spark = shape.frame[2] + 0.42 * np.array([0.0, 1.0, 0.0]) + 0.12 * np.array([0.0, 0.0, 1.0])
            away = np.linalg.norm(self.points - shape.origin - shape.scale[0] * spark / np.linalg.norm(spark), axis=1)
            self.brush(mine * smooth(-away / shape.scale[0], -0.34, -0.18), (1.0, 1.0, 1.0))

    def inner_ears(self, color: str = "inner_ear") -> None:
        """Paint the hollow side of the ears."""
        for i, shape in enumerate(self.sculptor.shapes):
            if shape.region == "ear" and shape.kind == "cone":
                facing = self.normals @ shape.frame[1]
                self.brush(self.shares[:, i] * smooth(facing, 0.1, 0.35), color)


def smooth(value: ndarray, low: float, high: float) -> ndarray:
    """Zero below, one above, a smooth step between."""
    t = np.clip((value - low) / (high - low), 0, 1)
    return t * t * (3 - 2 * t)


def value_noise(points: ndarray, seed: int) -> ndarray:
    """Smoothly interpolated random values on the integer lattice, in 0..1."""
    base = np.floor(points).astype(np.int64)
    part = points - base
    part = part * part * (3 - 2 * part)
    total = np.zeros(len(points))
    for corner in np.ndindex(2, 2, 2):
        weight = np.prod(np.where(corner, part, 1 - part), axis=1)
        total += weight * _hash(base + corner, seed)
    return total


def cell_distances(points: ndarray, seed: int) -> tuple[ndarray, ndarray]:
    """Worley noise: distances to the nearest and second nearest of one jittered point per unit cell."""
    base = np.floor(points).astype(np.int64)
    reaches = []
    for corner in np.ndindex(3, 3, 3):
        cell = base + np.array(corner) - 1
        jitter = np.stack([_hash(cell, seed + 101 * axis + 1) for axis in range(3)], 1)
        reaches.append(np.linalg.norm(points - cell - jitter, axis=1))
    nearest = np.partition(np.stack(reaches, 1), 1, axis=1)
    return nearest[:, 0], nearest[:, 1]


def _hash(cells: ndarray, seed: int) -> ndarray:
    """A random number in 0..1 for each integer cell."""
    mixed = cells[:, 0] * 374761393 + cells[:, 1] * 668265263 + cells[:, 2] * 2147483647 + seed * 974634541
    mixed = (mixed ^ (mixed >> 13)) * 1274126177
    mixed ^= mixed >> 16
    return (mixed & 0xFFFFFF) / float(0x1000000)
