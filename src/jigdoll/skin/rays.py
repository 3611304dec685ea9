"""Rays against a surface: what a bone sees of the skin from inside (embree)."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray

SIZE = 100.0
"""Rays run in single precision on a copy of the surface of this size."""


class Rays:
    """A surface that rays can be cast at."""

    def __init__(self, vertices: Float[ndarray, "vertices 3"], faces: Int[ndarray, "faces 3"]) -> None:
        from embreex.mesh_construction import TriangleMesh
        from embreex.rtcore_scene import EmbreeScene

        self._low = vertices.min(0)
        self._scale = SIZE / max(float(np.ptp(vertices, axis=0).max()), 1e-300)
        self._scene: Any = EmbreeScene()
        TriangleMesh(self._scene, self._local(vertices), faces.astype(np.int32))

    def reaches(self, origins: Float[ndarray, "rays 3"], ends: Float[ndarray, "rays 3"]) -> Bool[ndarray, " rays"]:
        """Whether nothing lies between an origin and an end; the surface at the end itself does not count."""
        if not len(origins):
            return np.zeros(0, bool)
        way = (ends - origins) * self._scale
        length = np.linalg.norm(way, axis=1)
        direction = (way / np.maximum(length, 1e-12)[:, None]).astype(np.float32)
        far = np.maximum(0.999 * length - 1e-5 * SIZE, 0).astype(np.float32)
        return self._scene.run(self._local(origins), direction, dists=far, query="OCCLUDED") != 0

    def exits(
        self, origins: Float[ndarray, "rays 3"], directions: Float[ndarray, "rays 3"]
    ) -> tuple[Float[ndarray, " rays"], Bool[ndarray, " rays"]]:
        """Distance to the first hit [m] (endless without one), and whether it is seen from inside."""
        if not len(origins):
            return np.zeros(0), np.zeros(0, bool)
        hits = self._scene.run(self._local(origins), directions.astype(np.float32), output=True)
        hit = hits["primID"] >= 0
        distance = np.where(hit, hits["tfar"].astype(np.float64) / self._scale, np.inf)
        return distance, hit & ((hits["Ng"] * directions).sum(1) > 0)

    def inside(self, points: Float[ndarray, "points 3"]) -> Bool[ndarray, " points"]:
        """Whether most directions leave the surface: a vote, so that holes and flipped faces do little harm."""
        directions = _DIRECTIONS
        origins = np.repeat(points, len(directions), axis=0)
        _, leaving = self.exits(origins, np.tile(directions, (len(points), 1)))
        return leaving.reshape(len(points), len(directions)).mean(1) > 0.5

    def _local(self, points: Float[ndarray, "points 3"]) -> Float[ndarray, "points 3"]:
        return ((points - self._low) * self._scale).astype(np.float32)


def _spread(count: int) -> Float[ndarray, "count 3"]:
    """Directions spread evenly over the sphere (a golden spiral), none of them along an axis."""
    i = np.arange(count) + 0.5
    height, angle = 1 - 2 * i / count, np.pi * (1 + 5**0.5) * i
    radius = np.sqrt(1 - height**2)
    return np.stack([radius * np.cos(angle), height, radius * np.sin(angle)], 1)


_DIRECTIONS = _spread(11)
