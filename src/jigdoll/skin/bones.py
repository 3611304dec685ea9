"""The segments that warm the skin, each moved by a joint."""

import re
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from jigdoll.kinematics import rest_transforms
from jigdoll.skin.rays import Rays
from jigdoll.types import Skeleton

_SAMPLES = 9
"""Points of a bone that are asked whether they are inside."""
_LEAF_RUN = 0.4
"""A leaf joint with flesh beyond it for this share of its parent's bone is no tip, it has a bone of its own."""
_TIP = re.compile(r"(tip|end|leaf|nub)([._ -]?(l|r|left|right))?$", re.IGNORECASE)
"""Names of leaf joints that only mark the end of their parent's bone."""
_LEAF_REACH = 0.8
"""The bone of a leaf ends at this share of the way to the skin."""


@dataclass(frozen=True, eq=False)
class Bones:
    """Segments in the world's rest pose [m]."""

    heads: Float[ndarray, "bones 3"]
    tails: Float[ndarray, "bones 3"]
    joints: Int[ndarray, " bones"]
    """The joint that moves each bone: the one at its head."""
    inside: Float[ndarray, " bones"]
    """The share of each bone that lies in the flesh."""

    def __len__(self) -> int:
        return len(self.joints)

    def nearest(
        self, points: Float[ndarray, "points 3"]
    ) -> tuple[Float[ndarray, "points bones"], Float[ndarray, "points bones 3"]]:
        """The distance of each point to each bone [m], and the point of the bone there."""
        way = self.tails - self.heads
        squared = (way**2).sum(1)
        share = (points @ way.T - (self.heads * way).sum(1)) / np.where(squared > 0, squared, 1)
        at = self.heads + np.clip(share, 0, 1)[..., None] * way
        return np.linalg.norm(points[:, None] - at, axis=-1), at


def bones_of(skeleton: Skeleton, rays: Rays, *, carriers: Bool[ndarray, " joints"] | None, leaf_bones: bool) -> Bones:
    """A bone from each joint to each of its children, without those of a root that stands outside the flesh.

    A file's root often lies on the ground and moves all by its children: its bones would warm the belly. A skeleton of
    one joint is a bone without length. `carriers` says which joints may carry weight, where the caller knows.
    """
    places = rest_transforms(skeleton)[:, :3, 3].detach().cpu().double().numpy()
    parents = np.array(skeleton.parents)
    if len(parents) == 1:
        return Bones(places, places, np.zeros(1, np.int64), np.ones(1))
    children = np.arange(1, len(parents))
    heads, tails, joints = places[parents[1:]], places[children], parents[1:]
    if leaf_bones:
        more = _leaf_bones(skeleton, places, rays, carriers)
        heads, tails, joints = (np.concatenate(pair) for pair in zip((heads, tails, joints), more, strict=True))
    steps = (np.arange(_SAMPLES) + 0.5) / _SAMPLES
    samples = heads[:, None] + steps[:, None] * (tails - heads)[:, None]
    inside = rays.inside(samples.reshape(-1, 3)).reshape(-1, _SAMPLES).mean(1)
    keep = ~(np.isin(joints, _handles(skeleton)) & (inside < 0.5))
    if carriers is not None:
        keep &= carriers[joints]
    if not keep.any():
        keep[:] = True
    return Bones(heads[keep], tails[keep], joints[keep], inside[keep])


def _handles(skeleton: Skeleton) -> list[int]:
    """The root, and the joints that follow it as long as there is only one."""
    handles, children = [0], skeleton.children
    while len(children[handles[-1]]) == 1:
        handles.append(children[handles[-1]][0])
    return handles


def _leaf_bones(
    skeleton: Skeleton, places: Float[ndarray, "joints 3"], rays: Rays, carriers: Bool[ndarray, " joints"] | None
) -> tuple[Float[ndarray, "leaves 3"], Float[ndarray, "leaves 3"], Int[ndarray, " leaves"]]:
    """A bone for each leaf joint that has flesh beyond it, in the direction of its parent's bone."""
    leaves = np.array([j for j, kids in enumerate(skeleton.children) if not kids and j], np.int64)
    way = places[leaves] - places[np.array(skeleton.parents)[leaves]]
    length = np.linalg.norm(way, axis=1)
    direction = way / np.where(length > 0, length, 1)[:, None]
    run, leaving = rays.exits(places[leaves], direction)
    fleshy = (length > 0) & leaving & np.isfinite(run)
    if carriers is not None:
        fleshy &= carriers[leaves]
    else:
        fleshy &= (run > _LEAF_RUN * length) & np.array([not _TIP.search(skeleton.names[j]) for j in leaves], bool)
    leaves, reach = leaves[fleshy], np.minimum(_LEAF_REACH * run[fleshy], 3 * length[fleshy])
    return places[leaves], places[leaves] + reach[:, None] * direction[fleshy], leaves
