"""Who lies, lies on the ground: neither feet nor hips tell how high a body of another build is then, its skin does."""

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray
from scipy.ndimage import gaussian_filter1d, maximum_filter1d, minimum_filter1d

from jigdoll.rig.anatomy import Anatomy
from jigdoll.rig.fleshed_bones import spread_points
from jigdoll.rig.retarget.feet import places, runs
from jigdoll.rig.retarget.limb_motion import LimbMotion

TIPPED = 0.5
"""A body lies where its up direction has turned farther from up than this cosine ..."""
UPRIGHT = 0.9
"""... and stands where it has not turned farther than this one."""
STILL_SECONDS, STILL = 0.3, 0.06
"""Who is in the air does not stay so long within so much of its height [s, hip heights]: half a leap is 0.1."""
AFLOAT = 1.2
"""Who creeps is not so high above where it rests [body lengths, from 1]."""
SMOOTH_SECONDS = 0.08
"""The way down is smoothed over this time."""


def lie_down(
    anatomy: Anatomy, G: Float[ndarray, "frames joints 3 3"], root: Float[ndarray, "frames 3"], lm: LimbMotion
) -> Float[ndarray, "frames 3"]:
    """The root's places with the lowest skin of a lying body on the ground, and an even way there and back."""
    lies = lying(lm)
    if not lies.any() or not anatomy.asset.has_mesh:
        return root
    low = _lowest_skin(anatomy, G, places(anatomy, G, root))
    lift = np.where(lies, -low, 0.0)
    stands = (lm.root[:, 1, 1] > UPRIGHT) & ~lies
    for first, last in runs(~lies & ~stands):  # on the way down, or up
        before = lift[first - 1] if first else lift[min(last, len(lift) - 1)]
        after = lift[last] if last < len(lift) else before
        t = np.linspace(0, 1, last - first + 2)[1:-1]
        way = before + t * t * (3 - 2 * t) * (after - before)
        lift[first:last] = np.maximum(way, np.minimum(-low[first:last], max(before, after)))
    moved = root.copy()
    moved[:, 1] += gaussian_filter1d(lift, SMOOTH_SECONDS * lm.fps, mode="nearest")
    return moved


def creep(
    anatomy: Anatomy, G: Float[ndarray, "frames joints 3 3"], root: Float[ndarray, "frames 3"], lm: LimbMotion
) -> Float[ndarray, "frames 3"]:
    """The root's places with the lowest skin of who creeps on the ground; who swims above it stays there."""
    if lm.kind != "snake" or anatomy.kind != "snake" or not anatomy.asset.has_mesh:
        return root
    low = _lowest_skin(anatomy, G, places(anatomy, G, root))
    lift = np.where(lm.place[:, 1] < AFLOAT, -low, 0.0)
    moved = root.copy()
    moved[:, 1] += gaussian_filter1d(lift, SMOOTH_SECONDS * lm.fps, mode="nearest")
    return moved


def lying(lm: LimbMotion) -> Bool[ndarray, " frames"]:
    """When a body on the ground has turned over or onto its side and stays at one height."""
    width = max(round(STILL_SECONDS * lm.fps), 1)
    height = lm.place[:, 1]
    span = maximum_filter1d(height, width, mode="nearest") - minimum_filter1d(height, width, mode="nearest")
    return (lm.root[:, 1, 1] < TIPPED) & (span < STILL) & lm.grounded


def _lowest_skin(
    anatomy: Anatomy, G: Float[ndarray, "frames joints 3 3"], P: Float[ndarray, "frames joints 3"]
) -> Float[ndarray, " frames"]:
    """The height of the lowest of well spread points of the skin [m]."""
    rows = spread_points(anatomy)
    T, points = anatomy.T_rest, anatomy.asset.mesh.vertices.detach().double().numpy()[rows]
    owners = anatomy.owners[rows]
    offsets = np.einsum("pba,pb->pa", T[owners, :3, :3], points - T[owners, :3, 3])
    heights = np.einsum("fpb,pb->fp", G[:, owners, 1], offsets) + P[:, owners, 1]
    return heights.min(1)
