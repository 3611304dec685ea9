"""The nearest point of a triangle mesh, for many points at once: a tree of boxes over the faces, in compiled code."""

from dataclasses import dataclass
from typing import no_type_check

import numba
import numpy as np
from jaxtyping import Float, Int, Shaped
from numpy import ndarray

LEAF = 4
"""Faces of one leaf."""


@dataclass(frozen=True, eq=False)
class Tree:
    """Boxes around the faces of a mesh: node i holds nodes 2i + 1 and 2i + 2, the last level holds the faces."""

    corners: Float[ndarray, "faces 3 3"]
    """Of the faces, in the order of the leaves."""
    order: Int[ndarray, " faces"]
    """The mesh's face behind each of them."""
    boxes: Float[ndarray, "nodes 6"]
    """Lower corner, upper corner; an empty node has an endless distance."""


def build_tree(vertices: Float[ndarray, "vertices 3"], faces: Int[ndarray, "faces 3"]) -> Tree:
    """Sort the faces along a space-filling curve and box them from the bottom up."""
    corners = np.ascontiguousarray(vertices[faces], np.float64)
    order = np.argsort(morton_codes(corners.mean(1)), kind="stable")
    corners = corners[order]
    leaves = 1 << max(0, -(-len(faces) // LEAF) - 1).bit_length()
    lower = np.full((leaves * LEAF, 3), np.inf)
    upper = np.full((leaves * LEAF, 3), -np.inf)
    lower[: len(faces)], upper[: len(faces)] = corners.min(1), corners.max(1)
    lower, upper = lower.reshape(leaves, LEAF, 3).min(1), upper.reshape(leaves, LEAF, 3).max(1)
    levels = [np.concatenate([lower, upper], 1)]
    while len(levels[-1]) > 1:
        pairs = levels[-1].reshape(-1, 2, 6)
        levels.append(np.concatenate([pairs[..., :3].min(1), pairs[..., 3:].max(1)], 1))
    return Tree(corners, order, np.concatenate(levels[::-1]))


def closest_points(
    points: Float[ndarray, "points 3"], vertices: Float[ndarray, "vertices 3"], faces: Int[ndarray, "faces 3"]
) -> tuple[Int[ndarray, " points"], Float[ndarray, "points 3"], Float[ndarray, " points"]]:
    """For each point the nearest face, the barycentric coordinates there, and the distance [m]."""
    tree = build_tree(vertices, faces)
    points = np.ascontiguousarray(points, np.float64)
    # Neighbours in the queue share their path through the tree, and one's answer bounds the search of the next.
    queue = np.argsort(morton_codes(points), kind="stable")
    found = np.empty(len(points), np.int64)
    barycentric = np.empty((len(points), 3))
    squared = np.empty(len(points))
    _search(points, queue, tree.corners, tree.boxes, found, barycentric, squared)
    return tree.order[found], barycentric, np.sqrt(squared)


def morton_codes(points: Float[ndarray, "points 3"]) -> Shaped[ndarray, " points"]:
    """The place of each point on a curve that keeps neighbours together (30 bits)."""
    low = points.min(0, initial=np.inf)
    size = max(float((points.max(0, initial=-np.inf) - low).max(initial=0)), 1e-300)
    code = np.zeros(len(points), np.uint64)
    grid = np.clip((points - low) / size * 1023, 0, 1023).astype(np.uint64)
    for bit in range(10):
        for axis in range(3):
            code |= ((grid[:, axis] >> np.uint64(bit)) & np.uint64(1)) << np.uint64(3 * bit + axis)
    return code


@numba.njit(cache=True, inline="always")
@no_type_check
def _box_distance(box, x, y, z):
    dx = max(box[0] - x, 0.0, x - box[3])
    dy = max(box[1] - y, 0.0, y - box[4])
    dz = max(box[2] - z, 0.0, z - box[5])
    return dx * dx + dy * dy + dz * dz


@numba.njit(cache=True)
@no_type_check
def triangle_point(t, x, y, z):
    """Barycentric coordinates of the point of triangle `t` nearest to (x, y, z), and its squared distance.

    By the region that the point falls in: a corner, an edge or the inside. A triangle without area is its longest edge.
    """
    best, b0, b1, b2 = np.inf, 1.0, 0.0, 0.0
    ux, uy, uz = t[1, 0] - t[0, 0], t[1, 1] - t[0, 1], t[1, 2] - t[0, 2]
    vx, vy, vz = t[2, 0] - t[0, 0], t[2, 1] - t[0, 1], t[2, 2] - t[0, 2]
    px, py, pz = x - t[0, 0], y - t[0, 1], z - t[0, 2]
    uu, uv, vv = ux * ux + uy * uy + uz * uz, ux * vx + uy * vy + uz * vz, vx * vx + vy * vy + vz * vz
    up, vp = ux * px + uy * py + uz * pz, vx * px + vy * py + vz * pz
    area = uu * vv - uv * uv
    if area > 1e-14 * uu * vv:
        b = (vv * up - uv * vp) / area
        c = (uu * vp - uv * up) / area
        if b >= 0 and c >= 0 and b + c <= 1:
            dx, dy, dz = px - b * ux - c * vx, py - b * uy - c * vy, pz - b * uz - c * vz
            return 1 - b - c, b, c, dx * dx + dy * dy + dz * dz
    for i in range(3):
        j = (i + 1) % 3
        ex, ey, ez = t[j, 0] - t[i, 0], t[j, 1] - t[i, 1], t[j, 2] - t[i, 2]
        qx, qy, qz = x - t[i, 0], y - t[i, 1], z - t[i, 2]
        length = ex * ex + ey * ey + ez * ez
        s = 0.0
        if length > 0:
            s = min(max((ex * qx + ey * qy + ez * qz) / length, 0.0), 1.0)
        dx, dy, dz = qx - s * ex, qy - s * ey, qz - s * ez
        d = dx * dx + dy * dy + dz * dz
        if d < best:
            best = d
            b0 = (1 - s) if i == 0 else (s if j == 0 else 0.0)
            b1 = (1 - s) if i == 1 else (s if j == 1 else 0.0)
            b2 = (1 - s) if i == 2 else (s if j == 2 else 0.0)
    return b0, b1, b2, best


@numba.njit(cache=True, nogil=True)
@no_type_check
def _search(points, queue, corners, boxes, found, barycentric, squared):
    """Depth first, the nearer child first, skipping boxes that are farther than the best face so far."""
    first_leaf = len(boxes) // 2
    stack = np.empty(128, np.int64)
    guess = 0
    for place in range(len(queue)):
        p = queue[place]
        x, y, z = points[p, 0], points[p, 1], points[p, 2]
        b0, b1, b2, best = triangle_point(corners[guess], x, y, z)
        face = guess
        stack[0] = 0
        top = 1
        while top > 0:
            top -= 1
            node = stack[top]
            if _box_distance(boxes[node], x, y, z) >= best:
                continue
            if node >= first_leaf:
                start = (node - first_leaf) * LEAF
                for f in range(start, min(start + LEAF, len(corners))):
                    c0, c1, c2, d = triangle_point(corners[f], x, y, z)
                    if d < best:
                        best, face, b0, b1, b2 = d, f, c0, c1, c2
            else:
                left, right = 2 * node + 1, 2 * node + 2
                near = _box_distance(boxes[left], x, y, z)
                far = _box_distance(boxes[right], x, y, z)
                if near > far:
                    left, right, near, far = right, left, far, near
                if far < best:
                    stack[top] = right
                    top += 1
                if near < best:
                    stack[top] = left
                    top += 1
        guess = face
        found[p], squared[p] = face, best
        barycentric[p, 0], barycentric[p, 1], barycentric[p, 2] = b0, b1, b2
