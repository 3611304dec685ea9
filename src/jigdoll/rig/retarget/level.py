"""A trunk on four legs is as steep as its legs carry it: on other proportions the source's own steepness folds them."""

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray
from scipy.ndimage import gaussian_filter1d

from jigdoll.rig.anatomy import Anatomy
from jigdoll.rig.retarget.feet import beyond, places, soles
from jigdoll.rig.retarget.turns import from_rotvec

STEEPEST = 0.3
"""No trunk is turned by more than this [rad]."""
SELDOM = 0.3
"""Who has fore and hind feet on the ground at once for less of the time than this, gallops or leaps."""
SMOOTH_SECONDS = 0.2
"""The trunk turns as slowly as this: what a gallop does within a stride stays."""


def level_trunk(
    anatomy: Anatomy,
    G: Float[ndarray, "frames joints 3 3"],
    root: Float[ndarray, "frames 3"],
    stands: Bool[ndarray, "frames legs"],
    heading: Float[ndarray, "frames 3 3"],
    fps: float,
) -> Float[ndarray, "frames joints 3 3"]:
    """World rotations with the trunk turned about the pelvis until fore and hind feet stand equally high.

    Legs, neck and tail keep their own rotations. Whoever rears or sits, stands on hind legs alone and stays as it is.
    """
    ranks = [leg.parts.limb.rank for leg in anatomy.legs]
    if anatomy.kind != "quadruped" or len(set(ranks)) != 2:
        return G
    P = places(anatomy, G, root)
    low = np.stack([soles(leg, G, P)[..., 1].min(1) for leg in anatomy.legs], 1)
    fore, hind = (stands[:, : len(ranks)] & (np.array(ranks) == rank) for rank in (min(ranks), max(ranks)))
    both = fore.any(1) & hind.any(1)
    if both.mean() < SELDOM:
        return G
    gap = _mean(low, fore) - _mean(low, hind)
    shoulders = [leg.parts.limb.joints[0] for leg in anatomy.legs if leg.parts.limb.rank == min(ranks)]
    way = P[:, shoulders].mean(1) - P[:, anatomy.pelvis]
    ahead = np.maximum((way * heading[:, :, 2]).sum(1), 0.3 * anatomy.body_length)
    angle = np.clip(np.arctan2(gap, ahead), -STEEPEST, STEEPEST)
    frames = np.arange(len(G))
    angle = np.interp(frames, frames[both], angle[both])
    angle = gaussian_filter1d(angle, SMOOTH_SECONDS * fps, mode="nearest")
    turn = from_rotvec(heading[:, :, 0] * angle[:, None])
    kept = {j for leg in anatomy.legs for j in beyond(anatomy, leg.parts.limb.joints[0])}
    kept |= {j for chain in (anatomy.neck, anatomy.tail) if chain for j in beyond(anatomy, chain[0])}
    turned = [j for j in range(len(anatomy.skeleton)) if j not in kept]
    G = G.copy()
    G[:, turned] = turn[:, None] @ G[:, turned]
    return G


def _mean(values: Float[ndarray, "frames legs"], which: Bool[ndarray, "frames legs"]) -> Float[ndarray, " frames"]:
    return (values * which).sum(1) / np.maximum(which.sum(1), 1)
