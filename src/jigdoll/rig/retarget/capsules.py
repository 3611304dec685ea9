"""The body as capsules: what hands may touch."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from jigdoll.rig.anatomy import Anatomy
from jigdoll.rig.flesh import FEW
from jigdoll.rig.retarget.limb_motion import trunk_of

BARE = {"trunk": 0.075, "neck": 0.05, "thigh": 0.045}
"""How thick parts of a body without skin are [heights]."""
_QUANTILE = 0.6
"""Of a bone's skin this share is nearer to the bone than its capsule is thick."""


@dataclass(frozen=True, eq=False)
class Capsules:
    """Bones of trunk, neck and thighs with their flesh."""

    parts: tuple[str, ...]
    """`trunk`, `neck`, or the name of a leg."""
    joints: tuple[int, ...]
    """The joint that turns each bone."""
    ends: Float[ndarray, "bones 2 3"]
    """Both ends of each bone in the joint's frame [m]."""
    radii: Float[ndarray, " bones"]
    along: Float[ndarray, "bones 2"]
    """Where on its part each bone begins and ends, 0 to 1."""


@dataclass(frozen=True, eq=False)
class Nearest:
    """For points over time the nearest place on each capsule."""

    gap: Float[ndarray, "frames bones"]
    """From the skin, negative inside [m]."""
    along: Float[ndarray, "frames bones"]
    """Of the place on its part, 0 to 1."""
    axis: Float[ndarray, "frames bones 3"]
    """The place on the bone's axis [m]."""
    out: Float[ndarray, "frames bones 3"]
    """The direction from the axis to the point."""


def capsules_of(anatomy: Anatomy) -> Capsules:
    """The capsules of a body at rest."""
    P = anatomy.T_rest[:, :3, 3]
    chains: dict[str, list[int]] = {"trunk": [*trunk_of(anatomy), *anatomy.neck[:1]], "neck": _with_tip(anatomy)}
    chains |= {leg.parts.name: [leg.parts.root, leg.parts.middle] for leg in anatomy.legs}
    names, joints, ends, radii, along = [], [], [], [], []
    for part, chain in chains.items():
        way = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(P[chain], axis=0), axis=1))])
        for i, (a, b) in enumerate(pairwise(chain)):
            if float(np.linalg.norm(P[b] - P[a])) < 1e-4 * anatomy.height:
                continue
            inverse = anatomy.T_rest[a, :3, :3].T
            names.append(part)
            joints.append(a)
            ends.append([np.zeros(3), inverse @ (P[b] - P[a])])
            radii.append(_radius(anatomy, part, a, P[a], P[b]))
            along.append(way[[i, i + 1]] / max(float(way[-1]), 1e-9))
    shape = np.array(ends).reshape(-1, 2, 3)
    return Capsules(tuple(names), tuple(joints), shape, np.array(radii), np.array(along).reshape(-1, 2))


def nearest_places(
    capsules: Capsules,
    G: Float[ndarray, "frames joints 3 3"],
    P: Float[ndarray, "frames joints 3"],
    points: Float[ndarray, "frames 3"],
) -> Nearest:
    """Where on each capsule a moving point is nearest."""
    joints = list(capsules.joints)
    a = P[:, joints]
    way = np.einsum("fbxy,by->fbx", G[:, joints], capsules.ends[:, 1])
    t = ((points[:, None] - a) * way).sum(-1) / np.maximum((way**2).sum(-1), 1e-12)
    t = np.clip(t, 0, 1)
    axis = a + t[..., None] * way
    off = points[:, None] - axis
    far = np.linalg.norm(off, axis=-1)
    along = capsules.along[:, 0] + t * (capsules.along[:, 1] - capsules.along[:, 0])
    return Nearest(far - capsules.radii, along, axis, off / np.maximum(far, 1e-9)[..., None])


def _with_tip(anatomy: Anatomy) -> list[int]:
    """The neck to the end of the head."""
    limb = next((limb.joints for limb in anatomy.limbs if limb.kind == "head"), ())
    return list(limb) if len(limb) > 1 else list(anatomy.neck)


def _radius(anatomy: Anatomy, part: str, joint: int, a: Float[ndarray, "3"], b: Float[ndarray, "3"]) -> float:
    """How thick the flesh about a bone is [m]."""
    skin = anatomy.asset.mesh.vertices.detach().double().numpy()
    mine = skin[anatomy.owners == joint] if len(skin) else skin
    if len(mine) < FEW:
        return BARE.get(part, BARE["thigh"]) * anatomy.height
    way = b - a
    t = np.clip((mine - a) @ way / max(float(way @ way), 1e-12), 0, 1)
    far = np.linalg.norm(mine - a - t[:, None] * way, axis=1)
    return float(np.quantile(far, _QUANTILE))
