"""Where the mirror plane of a character is: from joints whose names have a twin, else from the shape itself."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.spatial import KDTree
from torch import Tensor

from jigdoll.errors import JigdollError

Array = np.ndarray

_SAMPLES = 12000
_TRIALS = 1500
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


@dataclass(frozen=True, eq=False)
class Surface:
    """Points spread evenly over the surface, with the outward normals of their faces."""

    points: Array
    normals: Array
    diagonal: float
    tree: KDTree

    @property
    def spacing(self) -> float:
        return float(np.median(self.tree.query(self.points[:500], k=2)[0][:, 1]))


@dataclass(frozen=True, eq=False)
class NamedJoints:
    names: tuple[str, ...]
    positions: Array | None

    def mean(self, pattern: re.Pattern[str]) -> Array | None:
        """The middle of all joints whose name matches."""
        if self.positions is None:
            return None
        hits = [i for i, name in enumerate(self.names) if pattern.search(name)]
        return self.positions[hits].mean(0) if hits else None

    def right_to_left(self) -> tuple[Array, Array] | None:
        """The mean step from a right joint to its left twin (same words but for the side), and the point between."""
        if self.positions is None:
            return None
        sides: dict[tuple[str, ...], dict[str, list[Array]]] = {}
        for name, place in zip(self.names, self.positions, strict=True):
            words = [word.lower() for word in _WORD.findall(name)]
            side = next((word[0] for word in words if word in ("l", "r", "left", "right")), None)
            if side is not None:
                key = tuple(word for word in words if word not in ("l", "r", "left", "right"))
                sides.setdefault(key, {"l": [], "r": []})[side].append(place)
        twins = [pair for pair in sides.values() if pair["l"] and len(pair["l"]) == len(pair["r"])]
        if not twins:
            return None
        left = np.mean([np.mean(pair["l"], 0) for pair in twins], axis=0)
        right = np.mean([np.mean(pair["r"], 0) for pair in twins], axis=0)
        return left - right, (left + right) / 2


def mirror_plane(
    surface: Surface, joints: NamedJoints, up: Array | None, forward: Array | None, reasons: list[str]
) -> tuple[Array, Array, float]:
    """The plane (normal, point) that maps the surface to itself best, and how badly it does."""
    if up is not None and forward is not None:
        normal = unit(np.cross(up, forward))
        return normal, *_plane_offset(surface, normal)
    twins = joints.right_to_left()
    if twins is not None:
        across = twins[0] if up is None else twins[0] - (twins[0] @ up) * up
        if np.linalg.norm(across) > 0.02 * surface.diagonal:
            normal = _snap(unit(across))
            reasons.append("the names of the joints tell left from right")
            found = _plane_offset(surface, normal, place=float(twins[1] @ normal))
            axis = _near_axis(normal)
            if axis is not None:  # twins of a bent body, or of one that is no mirror image, may be askew
                straight = _plane_offset(surface, axis)
                if straight[1] < found[1]:
                    return axis, *straight
            return normal, *found

    candidates = list(np.eye(3)) + list(_principal_axes(surface.points))
    if up is not None:
        candidates = [c - (c @ up) * up for c in candidates]
        candidates = [unit(c) for c in candidates if np.linalg.norm(c) > 0.3]
    best, best_score, origin, asymmetry = candidates[0], np.inf, np.zeros(3), np.inf
    for normal in candidates:
        refined = normal if np.abs(normal).max() > 0.9999 else _refine_normal(surface, normal, up)
        place, error = _plane_offset(surface, refined)
        score = error + _plane_habit(refined)
        if score < best_score:
            best, best_score, origin, asymmetry = refined, score, place, error
        if best_score < 5e-4:
            break
    if asymmetry < 0.012:
        reasons.append("the two halves mirror each other")
    return best, origin, asymmetry


def _plane_habit(normal: Array) -> float:
    """A small handicap for planes that files seldom have: left is mostly X, and almost never Y."""
    axis = int(np.abs(normal).argmax())
    tilted = 0.0 if np.abs(normal).max() > 0.999 else 0.002
    return (0.0, 0.004, 0.002)[axis] + tilted


def _plane_offset(surface: Surface, normal: Array, *, place: float | None = None) -> tuple[Array, float]:
    """The best place of a mirror plane with that normal (or the given one), and the distance between the halves."""
    trial = surface.points[:: max(1, len(surface.points) // _TRIALS)]
    height = surface.points @ normal
    low, high = height.min(), height.max()
    middle = (surface.points.min(0) + surface.points.max(0)) / 2
    # The middle of the box is right for a symmetric pose, the middle of the mass where one limb reaches further.
    starts = (0.0, (low + high) / 2, float(height.mean()), float(np.median(height))) if place is None else (place,)
    error, place = np.inf, starts[0]
    for start in starts:
        for _ in range(4 if len(starts) > 1 else 1):
            mirrored = trial - 2 * ((trial @ normal) - start)[:, None] * normal
            distance, nearest = surface.tree.query(mirrored)
            here = _trimmed(distance)
            if here < error:
                error, place = here, start
            keep = distance <= np.quantile(distance, 0.8)
            start = float(((trial[keep] + surface.points[nearest[keep]]) @ normal).mean() / 2)
    point = middle + (place - middle @ normal) * normal
    return point, max(error - surface.spacing, 0.0) / surface.diagonal


def _refine_normal(surface: Surface, normal: Array, up: Array | None) -> Array:
    """Turn a plane until mirrored points lie on the surface: the mean direction between partners, iterated."""
    trial = surface.points[:: max(1, len(surface.points) // _TRIALS)]
    center = surface.points.mean(0)
    for _ in range(12):
        mirrored = trial - 2 * ((trial - center) @ normal)[:, None] * normal
        distance, nearest = surface.tree.query(mirrored)
        keep = distance <= np.quantile(distance, 0.8)
        a, b = trial[keep] - trial[keep].mean(0), surface.points[nearest[keep]]
        b = b - b.mean(0)
        # The best reflection I - 2nn' takes the smallest eigenvector of the symmetric part of the covariance.
        moment = a.T @ b
        if up is not None:
            moment = moment + 1e3 * np.trace(np.abs(moment)) * np.outer(up, up)
        _, vectors = np.linalg.eigh(moment + moment.T)
        turned = vectors[:, 0] * np.sign(vectors[:, 0] @ normal or 1.0)
        if turned @ normal > 1 - 1e-9:
            break
        normal = turned
    return _snap(unit(normal))


def sample_surface(vertices: Float[Tensor, "vertices 3"], faces: Int[Tensor, "faces 3"]) -> Surface:
    """Even samples of the surface; complains about shapes that have none."""
    v, f = array(vertices), faces.detach().cpu().numpy()
    if len(v) == 0 or len(f) == 0:
        raise JigdollError("the mesh has no faces, so it has no up and no front; give a mesh with triangles")
    if not np.isfinite(v).all():
        raise JigdollError("some vertices are NaN or infinite; mend the mesh before orienting it")
    corners = v[f]
    cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = np.linalg.norm(cross, axis=1)
    if area.sum() <= 0 or np.ptp(v, axis=0).max() <= 0:
        raise JigdollError("the mesh has no area; give a mesh with triangles that are not degenerate")
    rng = np.random.default_rng(0)
    edges = np.cumsum(area) / area.sum()
    picked = np.minimum(np.searchsorted(edges, rng.random(_SAMPLES)), len(f) - 1)
    r = np.sqrt(rng.random(_SAMPLES))[:, None]
    s = rng.random(_SAMPLES)[:, None]
    a, b, c = corners[picked].transpose(1, 0, 2)
    points = (1 - r) * a + r * (1 - s) * b + r * s * c
    normals = cross[picked] / np.maximum(area[picked], 1e-30)[:, None]
    return Surface(points, normals, float(np.linalg.norm(np.ptp(points, axis=0))), KDTree(points))


def _principal_axes(points: Array) -> Array:
    return np.linalg.eigh(np.cov(points.T))[1].T


def _trimmed(distance: Array) -> float:
    """The mean without the worst tenth: one raised paw does not spoil a mirror plane."""
    return float(np.sort(distance)[: max(1, int(0.9 * len(distance)))].mean())


def _snap(direction: Array) -> Array:
    """A direction within three degrees of a file axis is that axis."""
    axis = int(np.abs(direction).argmax())
    if abs(direction[axis]) > np.cos(np.deg2rad(3)):
        return np.eye(3)[axis] * np.sign(direction[axis])
    return direction


def _near_axis(direction: Array) -> Array | None:
    """The file axis within 25 degrees of a direction that is none itself."""
    axis = int(np.abs(direction).argmax())
    if not np.cos(np.deg2rad(25)) < abs(direction[axis]) < 0.9999:
        return None
    return np.eye(3)[axis] * np.sign(direction[axis])


def unit(v: Array) -> Array:
    return v / max(float(np.linalg.norm(v)), 1e-30)


def array(x: Tensor | Sequence[float | int]) -> Array:
    return np.asarray(x.detach().cpu() if isinstance(x, Tensor) else x, dtype=np.float64)
