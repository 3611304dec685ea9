"""Polygons to triangles, many at once, and the normals of triangles."""

import numpy as np

MAX_EARS = 64
"""Larger polygons stay fans: cutting ears costs the square of the size and more."""
MAX_DENTED = 4096


def triangulate(points: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Triangles [triangles 3] of corner indices, and the polygon of each; polygons in order.

    `points` are the corners [corners 3] of all polygons one after the other, `counts` how many each polygon has. A
    polygon becomes a fan from its most reflex corner, which is right for convex ones and for one dent; with more
    dents its ears are cut one by one.
    """
    if not len(counts):
        return np.zeros((0, 3), np.int64), np.zeros(0, np.int64)
    starts = np.cumsum(counts) - counts
    triangles: list[np.ndarray] = []
    owners: list[np.ndarray] = []
    for size in np.unique(counts):
        polygons = np.flatnonzero(counts == size)
        corners = starts[polygons][:, None] + np.arange(size)
        if size == 3:
            triangles.append(corners)
            owners.append(polygons)
            continue
        turn = _turns(points[corners])
        apex = turn.argmin(1)
        rolled = corners[np.arange(len(corners))[:, None], (apex[:, None] + np.arange(size)) % size]
        fan = np.stack([np.repeat(rolled[:, :1], size - 2, 1), rolled[:, 1:-1], rolled[:, 2:]], -1)
        dented = np.flatnonzero((turn < -1e-9).sum(1) > 1) if size <= MAX_EARS else []
        for i in dented[:MAX_DENTED]:
            fan[i] = corners[i][_cut_ears(points[corners[i]])]
        triangles.append(fan.reshape(-1, 3))
        owners.append(np.repeat(polygons, size - 2))
    owner = np.concatenate(owners)
    order = np.argsort(owner, kind="stable")
    return np.concatenate(triangles)[order], owner[order]


def _turns(p: np.ndarray) -> np.ndarray:
    """How each corner turns about its polygon's normal: negative where the polygon is dented (sine, [n size])."""
    before, after = p - np.roll(p, 1, axis=1), np.roll(p, -1, axis=1) - p
    origin = p - p[:, :1]  # near the polygon, so that far away places lose no digits
    normal = np.cross(origin, np.roll(origin, -1, axis=1)).sum(1)
    cross = np.cross(before, after)
    scale = np.linalg.norm(before, axis=-1) * np.linalg.norm(after, axis=-1) * np.linalg.norm(normal, axis=-1)[:, None]
    turn = (cross * normal[:, None]).sum(-1) / np.maximum(scale, 1e-30)
    # A convex polygon has no dent: fan from its first corner, as everybody does.
    return np.where((turn < -1e-9).any(1, keepdims=True), turn, np.arange(p.shape[1]) * 1e-12)


def _cut_ears(p: np.ndarray) -> np.ndarray:
    """Ear clipping of one polygon [size 3], in the plane of its normal; a fan of the rest where no ear is found."""
    normal = np.cross(p, np.roll(p, -1, axis=0)).sum(0)
    drop = int(np.abs(normal).argmax())
    flat = np.delete(p, drop, axis=1)
    # Dropping Y mirrors the plane (x, z), so the sign of the area is taken from the polygon itself.
    x, y = flat[:, 0], flat[:, 1]
    sign = np.sign((x * np.roll(y, -1) - y * np.roll(x, -1)).sum()) or 1.0

    def area(a: int, b: int, c: np.ndarray) -> np.ndarray:
        return sign * ((x[b] - x[a]) * (y[c] - y[a]) - (y[b] - y[a]) * (x[c] - x[a]))

    left = list(range(len(p)))
    out: list[tuple[int, int, int]] = []
    while len(left) > 3:
        for i in range(len(left)):
            a, b, c = left[i - 1], left[i], left[(i + 1) % len(left)]
            others = np.array([j for j in left if j not in (a, b, c)])
            inside = (area(a, b, others) >= 0) & (area(b, c, others) >= 0) & (area(c, a, others) >= 0)
            if area(a, b, np.array([c]))[0] > 0 and not inside.any():
                out.append((a, b, c))
                left.pop(i)
                break
        else:
            break
    out.extend((left[0], left[i], left[i + 1]) for i in range(1, len(left) - 1))
    return np.array(out)


def smooth_normals(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Smooth unit normals [vertices 3]; vertices at the same place share one, so seams do not show."""
    _, place = np.unique(vertices.round(7), axis=0, return_inverse=True)
    place = place.reshape(-1)
    corners = vertices[faces]
    flat = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    total = np.zeros((place.max(initial=0) + 1, 3))
    for corner in range(3):
        np.add.at(total, place[faces[:, corner]], flat)
    length = np.linalg.norm(total, axis=1, keepdims=True)
    unit = np.where(length > 1e-20, total / np.maximum(length, 1e-20), [0.0, 1.0, 0.0])
    return unit[place]
