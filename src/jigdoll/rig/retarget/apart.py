"""Skin kept out of skin: arms swing away from the trunk and from legs, legs from each other and from the belly.

Flesh is what the validators measure it to be (`rig.fleshed_bones`). What is inside at rest is free, and so is what was
inside on the source.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from scipy.ndimage import gaussian_filter1d, maximum_filter1d

from jigdoll.math.segments import closest_on_segments
from jigdoll.rig.anatomy import Anatomy, BodyKind, LimbParts, anatomy_of
from jigdoll.rig.fleshed_bones import flesh_at, fleshed_bones, related, spread_points
from jigdoll.rig.remember import remembered
from jigdoll.rig.retarget.feet import beyond, limb_joints, places
from jigdoll.rig.retarget.turns import from_rotvec
from jigdoll.types import RiggedAsset

FREE = 0.01
"""Skin may be so deep in other flesh [body lengths]; half of artists' poses are deeper than 0.002, a tenth 0.03."""
THIN = 0.01
"""Bones with less flesh than this, as fingers, are not kept out of [body lengths]."""
LEVER = 0.2
"""Skin nearer to a limb's root than this is not moved by swinging the limb [limb lengths]."""
WIDEST = {"arm": 0.7, "leg": 0.25}
"""How far a limb swings away at most [rad]."""
ROUNDS = 3
"""Who is out of one part may be in the next."""
SECONDS = 0.08
"""Swings are smoothed over this time."""
SIDEWAYS = 0.3
"""A leg swings only sideways, so that its stride stays: the share of the way out that must be sideways."""
BODIES: tuple[BodyKind, ...] = ("person", "biped", "bird", "quadruped", "other")
"""Who has arms and legs that can be in the way; the legs of insects stand apart."""


@dataclass(frozen=True, eq=False)
class _Skin:
    """Followed skin and fleshed bones of a body."""

    joints: Int[ndarray, "points influences"]
    values: Float[ndarray, "points influences"]
    offsets: Float[ndarray, "points influences 3"]
    """From each joint to the skin, in the joint's frame [m]."""
    rest: Float[ndarray, "points 3"]
    """At rest, world [m]."""
    owners: Int[ndarray, " points"]
    bones: Int[ndarray, " bones"]
    ends: Float[ndarray, "bones 2 3"]
    """In the joint's frame [m]."""
    radii: Float[ndarray, "bones knots"]
    strangers: Bool[ndarray, "points bones"]
    inside: Float[ndarray, "points bones"]
    """How deep the skin is in flesh at rest [m]."""
    out: Float[ndarray, "points bones 3"]
    """The way from the bone to the skin at rest, in the bone's frame."""


@remembered
def _skin_of(asset: RiggedAsset) -> _Skin:
    anatomy = anatomy_of(asset)
    T = anatomy.T_rest
    bones, ends, radii = fleshed_bones(anatomy)
    rows = spread_points(anatomy)
    points = asset.mesh.vertices.detach().double().numpy()[rows]
    joints, values = (x.numpy()[rows] for x in (asset.weights.joints.long(), asset.weights.values.detach().double()))
    offsets = np.einsum("pkba,pkb->pka", T[joints, :3, :3], points[:, None] - T[joints, :3, 3])
    share, gap = _nearest(points[None], ends[None])
    axis = ends[:, 0] + share[0, ..., None] * (ends[:, 1] - ends[:, 0])
    out = np.einsum("bji,pbj->pbi", T[bones, :3, :3], points[:, None] - axis)
    local = np.einsum("bji,bkj->bki", T[bones, :3, :3], ends - T[bones, None, :3, 3])
    inside = np.maximum(_thickness(share, radii) - gap, 0)[0]
    owners = anatomy.owners[rows]
    strangers = ~related(anatomy.skeleton, T[:, :3, 3], owners, bones, radii)
    return _Skin(joints, values, offsets, points, owners, bones, local, radii, strangers, inside, out)


def _nearest(
    points: Float[ndarray, "frames points 3"], ends: Float[ndarray, "frames bones 2 3"]
) -> tuple[Float[ndarray, "frames points bones"], Float[ndarray, "frames points bones"]]:
    """Where along each bone it is nearest to each point, 0 to 1, and how far that is [m]."""
    share, gap = closest_on_segments(torch.from_numpy(points)[:, :, None], torch.from_numpy(ends)[:, None])
    return share.numpy(), gap.numpy()


def _thickness(share: Float[ndarray, "frames points bones"], radii: Float[ndarray, "bones knots"]) -> ndarray:
    return flesh_at(torch.from_numpy(share), torch.from_numpy(radii)).numpy()


@dataclass(frozen=True, eq=False)
class _Contact:
    """The skin of a limb that is deepest in the flesh of others, frame by frame."""

    depth: Float[ndarray, " frames"]
    """Beyond rest [m]."""
    point: Float[ndarray, "frames 3"]
    out: Float[ndarray, "frames 3"]
    """The direction in which it gets out."""
    bone: Int[ndarray, " frames"]
    """The joint whose flesh it is in."""


def _contact(anatomy: Anatomy, parts: LimbParts, G: ndarray, P: Float[ndarray, "frames joints 3"]) -> _Contact | None:
    """The skin of a limb against the flesh of everything that is not this limb; None where neither is known."""
    skin = _skin_of(anatomy.asset)
    own = beyond(anatomy, parts.root)
    far = np.linalg.norm(skin.rest - anatomy.T_rest[parts.root, :3, 3], axis=1) > LEVER * parts.length
    mine = np.flatnonzero(np.isin(skin.owners, own) & far)
    thick = skin.radii.max(1, initial=0.0) > THIN * anatomy.body_length
    theirs = np.flatnonzero(~np.isin(skin.bones, own) & thick)
    theirs = theirs[skin.strangers[mine][:, theirs].any(0)]
    if not len(mine) or not len(theirs):
        return None
    joints, bones = skin.joints[mine], skin.bones[theirs]
    posed = np.einsum("fpkab,pkb->fpka", G[:, joints], skin.offsets[mine]) + P[:, joints]
    points = (skin.values[mine][None, ..., None] * posed).sum(2)
    ends = np.einsum("fbij,bkj->fbki", G[:, bones], skin.ends[theirs]) + P[:, bones][:, :, None]
    share, gap = _nearest(points, ends)
    radii = _thickness(share, skin.radii[theirs])
    pairs = np.ix_(mine, theirs)
    depth = np.where(skin.strangers[pairs], radii - gap - skin.inside[pairs], 0.0)
    frames = np.arange(len(G))
    point, bone = np.unravel_index(depth.reshape(len(G), -1).argmax(1), depth.shape[1:])
    at, gaps = points[frames, point], gap[frames, point, bone]
    start, stop = ends[frames, bone, 0], ends[frames, bone, 1]
    out = (at - start - share[frames, point, bone, None] * (stop - start)) / np.maximum(gaps, 1e-9)[:, None]
    # Near the middle of a bone the nearest way out says nothing: out is where the skin came from.
    still = np.einsum("fij,fj->fi", G[frames, bones[bone]], skin.out[mine[point], theirs[bone]])
    still = still / np.maximum(np.linalg.norm(still, axis=-1, keepdims=True), 1e-9)
    sure = np.clip(2 * gaps / np.maximum(radii[frames, point, bone], 1e-9), 0, 1)[:, None]
    out = sure * out + (1 - sure) * still
    out = out / np.maximum(np.linalg.norm(out, axis=-1, keepdims=True), 1e-9)
    return _Contact(np.maximum(depth[frames, point, bone], 0), at, out, bones[bone])


def depths(anatomy: Anatomy, G: ndarray, P: Float[ndarray, "frames joints 3"]) -> dict[str, Float[ndarray, " frames"]]:
    """How deep each arm and leg is in other flesh, beyond rest [body lengths]; nothing for bodies without skin."""
    found: dict[str, ndarray] = {}
    for parts in _limbs(anatomy, ("arm", "leg")):
        contact = _contact(anatomy, parts, G, P)
        if contact is not None:
            found[parts.name] = contact.depth / anatomy.body_length
    return found


def keep_apart(
    anatomy: Anatomy,
    G: Float[ndarray, "frames joints 3 3"],
    root: Float[ndarray, "frames 3"],
    fps: float,
    *,
    kind: str,
    allowed: Mapping[str, Float[ndarray, " frames"]],
    leave: Set[str] = frozenset(),
) -> Float[ndarray, "frames joints 3 3"]:
    """World rotations with the limbs of a kind out of other flesh, but for what is `allowed` by limb [body lengths].

    Limbs to `leave` stand on the ground.
    """
    limbs = [parts for parts in _limbs(anatomy, (kind,)) if parts.name not in leave]
    for _ in range(ROUNDS if limbs else 0):
        moved = False
        for parts in limbs:
            P = places(anatomy, G, root)
            contact = _contact(anatomy, parts, G, P)
            free = np.maximum(allowed.get(parts.name, np.zeros(len(G))), FREE) * anatomy.body_length
            turn = None if contact is None else _way_out(anatomy, parts, contact, P[:, parts.root], G, free)
            if turn is None or not turn.any():
                continue
            turned = from_rotvec(_smooth(turn, fps, WIDEST[kind]))
            joints = beyond(anatomy, parts.root)
            if kind == "leg":  # the foot keeps its own rotation
                joints = [joint for group in limb_joints(anatomy, parts) for joint in group]
            G, moved = G.copy(), True
            G[:, joints] = turned[:, None] @ G[:, joints]
        if not moved:
            break
    return G


def _limbs(anatomy: Anatomy, kinds: Sequence[str]) -> list[LimbParts]:
    if anatomy.kind not in BODIES or not anatomy.asset.has_mesh:
        return []
    return [parts for parts in anatomy.parts if parts.limb.kind in kinds]


def _way_out(
    anatomy: Anatomy,
    parts: LimbParts,
    contact: _Contact,
    hub: Float[ndarray, "frames 3"],
    G: Float[ndarray, "frames joints 3 3"],
    free: Float[ndarray, " frames"],
) -> Float[ndarray, "frames 3"]:
    """The turn about the limb's root that brings its deepest skin out, frame by frame [rad]."""
    axis = np.cross(contact.point - hub, contact.out)
    size = np.linalg.norm(axis, axis=-1)
    if parts.limb.kind == "leg":
        ahead = (G[:, anatomy.pelvis] @ anatomy.T_rest[anatomy.pelvis, :3, :3].T)[:, :, 2]
        along = (axis * ahead).sum(-1)
        axis = np.where((np.abs(along) < SIDEWAYS * size)[:, None], 0.0, along[:, None] * ahead)
        size = np.linalg.norm(axis, axis=-1)
    excess = np.where(size > LEVER * parts.length, np.maximum(contact.depth - free, 0), 0.0)
    # Two limbs that touch make way for each other by halves.
    movable = np.isin(contact.bone, [j for other in anatomy.parts for j in beyond(anatomy, other.root)])
    return axis * (np.where(movable, 0.5, 1.0) * excess / np.maximum(size**2, 1e-12))[:, None]


def _smooth(turn: Float[ndarray, "frames 3"], fps: float, widest: float) -> Float[ndarray, "frames 3"]:
    """Turns that are there in time: as large as the largest about, and smooth."""
    width = max(round(SECONDS * fps), 1)
    size = maximum_filter1d(np.linalg.norm(turn, axis=1), 2 * width + 1, mode="nearest")
    size = np.minimum(gaussian_filter1d(size, width, mode="nearest"), widest)
    way = gaussian_filter1d(turn, width, axis=0, mode="nearest")
    return size[:, None] * way / np.maximum(np.linalg.norm(way, axis=1, keepdims=True), 1e-9)
