"""The medial structure of a solid: its extremities (feet, hands, head, tail ...) and the curves that lead to them.

Geodesic distance from the middle of the body peaks at the end of every limb. How far a peak stands above the level at
which its hill joins a higher hill (its prominence) is the length of the limb, so limbs of any number are counted by one
threshold. The curve of a limb runs through the centres of the level sets of the distance, and inside the body along
the path that stays deepest in the flesh.
"""

from dataclasses import dataclass
from typing import no_type_check

import numpy as np
from numba import njit
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra

from jigdoll.rig.autorig.solid import Solid

Array = np.ndarray

_HALF = [
    (x, y, z)
    for x in (-1, 0, 1)
    for y in (-1, 0, 1)
    for z in (-1, 0, 1)
    if (x, y, z) > (0, 0, 0)
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Branch:
    """A limb of the shape before anyone said what it is."""

    tip: Array
    """[3] the far end, on the surface [m]."""
    prominence: float
    """How far it stands out from where it joins a greater limb [m]."""
    curve: Array
    """[n 3] centre line from the tip to the middle of the body [m]."""
    radius: Array
    """[n] how thick the flesh is along the curve [m]."""
    own: int
    """How many points of the curve belong to this limb alone; the rest lies in the body."""
    voxels: Array
    """[m 3] the points of flesh of this limb alone [m]."""
    girth: float
    """Radius of the cross-section where it leaves the body, if it were round [m]."""
    twigs: tuple[Array, ...] = ()
    """Tips of smaller branches of this one: toes, fingers, ears."""

    @property
    def base(self) -> Array:
        """[3] where the limb leaves the body [m]."""
        return self.curve[min(self.own, len(self.curve) - 1)]

    @property
    def slenderness(self) -> float:
        """Length over thickness: a leg has 3 and more, the corner of a box less than 1."""
        return self.length / (2 * self.girth)

    @property
    def length(self) -> float:
        """Along the curve from the tip to the base [m]."""
        part = self.curve[: self.own + 1]
        return float(np.linalg.norm(np.diff(part, axis=0), axis=1).sum())


@dataclass(frozen=True, eq=False)
class Curve:
    """The curve skeleton: branches that meet in the middle of the body."""

    center: Array
    """[3] the middle of the body [m]."""
    branches: tuple[Branch, ...]
    """The most prominent first."""
    meetings: Array
    """[branches branches] how far from the middle of the body two branches meet [m]: ears meet the head far out."""


def trace_curve(solid: Solid, *, least: float = 0.03) -> Curve:
    """The limbs of a solid whose parts stand out by more than `least` of its length."""
    voxels = np.argwhere(solid.filled)
    index = np.full(solid.filled.shape, -1)
    index[tuple(voxels.T)] = np.arange(len(voxels))
    a, b, step = _edges(index, voxels)
    points = solid.points(voxels)
    depth = solid.depth[tuple(voxels.T)].astype(float)

    root = _middle(points, depth)
    away = _distances(a, b, step * solid.size, len(voxels), root)[0]
    threshold = max(least * solid.length, 3.0 * solid.size)
    offsets, neighbours = _adjacency(a, b, len(voxels))
    order = np.argsort(-away, kind="stable")
    label, peaks, joins, levels = _hills(order, away, offsets, neighbours, threshold)
    hills = _Hills(points, away, label, peaks, joins, levels)

    thick = np.maximum(0.5 * (depth[a] + depth[b]), 0.25 * solid.size)
    # Deep flesh is cheap: the way to the middle follows the medial axis.
    _, before = _distances(a, b, step * (thick.max() / thick) ** 2.5, len(voxels), root)
    limbs = {node: _branch(hills, node, depth, before, solid.size) for node in hills.limbs()}
    order = sorted(limbs, key=lambda node: -limbs[node].prominence)
    meetings = np.array([[hills.meeting(i, j) for j in order] for i in order])
    return Curve(points[root], tuple(limbs[node] for node in order), meetings)


@dataclass(frozen=True, eq=False)
class _Hills:
    """The tree in which the hills of the geodesic distance join: peaks first, then the joins."""

    points: Array
    away: Array
    label: Array
    peaks: Array
    joins: Array
    """[joins 2] the two nodes that meet in each join."""
    levels: Array
    """[joins] the distance from the middle at which they meet."""

    def below(self, node: int) -> list[int]:
        """A node and all nodes that join into it."""
        if node < len(self.peaks):
            return [node]
        first, second = self.joins[node - len(self.peaks)]
        return [node, *self.below(int(first)), *self.below(int(second))]

    def tips(self, node: int) -> list[int]:
        """The peaks of a node, as voxels, the farthest first."""
        tips = [int(self.peaks[k]) for k in self.below(node) if k < len(self.peaks)]
        return sorted(tips, key=lambda tip: -self.away[tip])

    def level(self, node: int) -> float:
        return float(self.levels[node - len(self.peaks)]) if node >= len(self.peaks) else float("inf")

    def end(self, node: int) -> float:
        """The distance from the middle at which a node joins the next one."""
        parent = next((k for k, pair in enumerate(self.joins) if node in pair), None)
        return 0.0 if parent is None else float(self.levels[parent])

    def meeting(self, first: int, second: int) -> float:
        """The distance from the middle at which two nodes come together."""
        for k, level in enumerate(self.levels):
            below = self.below(len(self.peaks) + k)
            if first in below and second in below:
                return float(level)
        return 0.0

    def limbs(self) -> list[int]:
        """The nodes that are limbs: a join whose stem is longer than its twigs is one limb with toes or ears."""
        todo, limbs = [len(self.peaks) + len(self.joins) - 1], []
        while todo:
            node = todo.pop()
            if node < len(self.peaks) or self._is_one_limb(node):
                limbs.append(node)
            else:
                todo.extend(int(k) for k in self.joins[node - len(self.peaks)])
        return limbs

    def _is_one_limb(self, node: int) -> bool:
        twig = self.away[self.tips(node)[0]] - self.level(node)
        stem = self.level(node) - self.end(node)
        if self.end(node) <= 0 or stem < 0.9 * twig:
            return False
        # Two legs of a long body are no twigs, however short they are.
        tall = np.ptp(self.points[:, 1])
        feet = [self.points[tip, 0] for tip in self.tips(node) if self.points[tip, 1] < 0.1 * tall]
        return not (feet and min(feet) < 0 < max(feet) and max(feet) - min(feet) > 0.06 * tall)


def _edges(index: Array, voxels: Array) -> tuple[Array, Array, Array]:
    """Pairs of neighbouring voxels (26 neighbours) and their distance in voxels."""
    a, b, step = [], [], []
    padded = np.pad(index, 1, constant_values=-1)
    for offset in _HALF:
        shifted = voxels + 1 + np.array(offset)
        other = padded[tuple(shifted.T)]
        hit = other >= 0
        a.append(np.flatnonzero(hit))
        b.append(other[hit])
        step.append(np.full(int(hit.sum()), np.sqrt(np.dot(offset, offset))))
    return np.concatenate(a), np.concatenate(b), np.concatenate(step)


def _adjacency(a: Array, b: Array, count: int) -> tuple[Array, Array]:
    graph = csr_matrix((np.ones(2 * len(a), dtype=np.int8), (np.r_[a, b], np.r_[b, a])), shape=(count, count))
    return graph.indptr, graph.indices


def _distances(a: Array, b: Array, cost: Array, count: int, root: int) -> tuple[Array, Array]:
    """Cheapest cost from the root to every voxel, and the voxel before each one."""
    graph = csr_matrix((cost, (a, b)), shape=(count, count))
    away, before = dijkstra(graph, directed=False, indices=root, return_predecessors=True)
    away[~np.isfinite(away)] = 0.0
    return away, before


def _middle(points: Array, depth: Array) -> int:
    """The voxel in the middle of the mass: near the centroid, deep in the flesh, on the mirror plane."""
    weight = depth**2 + 1e-12
    center = (points * weight[:, None]).sum(0) / weight.sum()
    center[0] *= 0.2
    distance = np.linalg.norm(points - center, axis=1)
    near = distance <= distance.min() + 0.6 * depth.max()
    score = np.where(near, depth / depth.max() - 0.5 * distance / depth.max(), -np.inf)
    return int(score.argmax())


@njit(cache=True)
@no_type_check
def _find(parent, i):
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@njit(cache=True)
@no_type_check
def _hills(order, height, offsets, neighbours, threshold):
    """Flood from the top: which peaks stand out by the threshold, how their hills join, which hill each voxel is of.

    Two passes of union-find over the voxels in falling order. The first finds how far below each peak its hill joins a
    higher one; the second grows only the peaks that count and makes a new node wherever two of them meet.
    """
    n = len(order)
    parent = np.full(n, -1)
    top = np.full(n, -1)
    drop = np.zeros(n)
    for i in order:
        parent[i] = i
        top[i] = i
        for k in range(offsets[i], offsets[i + 1]):
            j = neighbours[k]
            if parent[j] < 0:
                continue
            p, q = _find(parent, i), _find(parent, j)
            if p == q:
                continue
            if height[top[p]] < height[top[q]]:
                p, q = q, p
            drop[top[q]] = height[top[q]] - height[i]
            parent[q] = p
    highest = top[_find(parent, order[0])]
    drop[highest] = height[highest]

    parent[:] = -1
    mark = np.full(n, -1)  # of a hill: the node that it is so far, -1 before its first peak that counts
    label = np.full(n, -1)
    count = 0
    for i in range(n):
        count += drop[i] >= threshold
    peaks = np.empty(count, dtype=np.int64)
    joins = np.empty((max(count - 1, 0), 2), dtype=np.int64)
    levels = np.empty(max(count - 1, 0))
    found, joined = 0, 0
    for i in order:
        parent[i] = i
        if drop[i] >= threshold:
            peaks[found] = i
            mark[i] = found
            found += 1
        for k in range(offsets[i], offsets[i + 1]):
            j = neighbours[k]
            if parent[j] < 0:
                continue
            p, q = _find(parent, i), _find(parent, j)
            if p == q:
                continue
            if mark[p] < 0:
                mark[p] = mark[q]
            elif mark[q] >= 0:
                joins[joined] = (mark[p], mark[q])
                levels[joined] = height[i]
                mark[p] = count + joined
                joined += 1
            parent[q] = p
        label[i] = mark[_find(parent, i)]
    return label, peaks, joins[:joined], levels[:joined]


def _branch(hills: _Hills, node: int, depth: Array, before: Array, size: float) -> Branch:
    """The centre line of one limb: centres of its level sets, then the deepest path to the middle of the body."""
    points, away = hills.points, hills.away
    inside = np.flatnonzero(np.isin(hills.label, hills.below(node)))
    tips = hills.tips(node)
    band = np.floor((away[tips[0]] - away[inside]) / (1.5 * size)).astype(int)
    count = int(band.max()) + 1
    weight = np.bincount(band, minlength=count).astype(float)
    full = weight > 0
    center = np.stack([np.bincount(band, points[inside, k], minlength=count) for k in range(3)], 1)
    center = center[full] / weight[full, None]
    radius = np.zeros(count)
    np.maximum.at(radius, band, depth[inside])
    center = _smooth(np.concatenate([points[tips[0]][None], center]), 2)
    radius = np.concatenate([[depth[tips[0]]], radius[full]])

    # From the flesh where the limb ends, walk inwards.
    last = inside[band == band.max()]
    way = [int(last[depth[last].argmax()])]
    while before[way[-1]] >= 0:
        way.append(int(before[way[-1]]))
    inner = _smooth(points[way], 4)
    return Branch(
        tip=points[tips[0]],
        prominence=float(away[tips[0]] - hills.end(node)),
        curve=_smooth(np.concatenate([center, inner[1:]]), 2),
        radius=np.concatenate([radius, depth[way][1:]]),
        own=len(center) - 1,
        voxels=points[inside],
        girth=float(np.sqrt(max(1.0, np.median(weight[full][-4:])) / 1.5 / np.pi) * size),
        twigs=tuple(points[tip] for tip in tips[1:]),
    )


def _smooth(line: Array, times: int) -> Array:
    """Average neighbours along a line, its ends fixed."""
    line = np.array(line, dtype=float)
    for _ in range(times):
        if len(line) > 2:
            line[1:-1] = 0.25 * line[:-2] + 0.5 * line[1:-1] + 0.25 * line[2:]
    return line
