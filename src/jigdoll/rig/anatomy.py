"""A character's body, measured once and passed on: limbs and their parts, feet, sizes, flesh, limits.

`anatomy_of` takes the working copy of a rig (`rig.reparent`). Nothing further down measures again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from jigdoll.kinematics import motion_to_world
from jigdoll.rig.bones import LimbParts, measure_bones
from jigdoll.rig.flesh import FEW, flesh_of
from jigdoll.rig.limbs import find_limbs
from jigdoll.rig.limits import Role, joint_roles
from jigdoll.rig.remember import remembered
from jigdoll.types import Limb, Motion, RiggedAsset, Skeleton

BodyKind = Literal["person", "biped", "bird", "quadruped", "insect", "spider", "flyer", "fish", "snake", "other"]
FOOT = 0.3
"""A foot begins at the first joint below this share of the hip's height."""
FLAT = 0.6
"""A bone that falls by less than this sine lies flat: feet and hands on the ground."""
_CALM = ("idle", "stand", "breath")


@dataclass(frozen=True, eq=False)
class Leg:
    """A leg and the foot that stands on the ground."""

    parts: LimbParts
    pivot: int
    """The joint about which the foot rolls: its ball, or the end of the leg."""
    foot: tuple[int, ...]
    """The joints of the foot, its ball or ankle first."""
    contact_joints: Int[ndarray, " points"]
    """The joint that carries each point that may touch the ground."""
    contact_points: Float[ndarray, "points 3"]
    """Those points in the frames of their joints [m]."""


@dataclass(frozen=True, eq=False)
class Anatomy:
    """What stays the same about a character while it moves."""

    asset: RiggedAsset
    """The working copy."""
    kind: BodyKind
    limbs: tuple[Limb, ...]
    parts: tuple[LimbParts, ...]
    """Legs, arms, wings and fins."""
    legs: tuple[Leg, ...]
    trunk: tuple[int, ...]
    """From the pelvis (the root) to the joint that carries the fore limbs or the neck."""
    neck: tuple[int, ...]
    """The neck with the head, without its bare tip."""
    tail: tuple[int, ...]
    roles: tuple[Role, ...]
    owners: Int[ndarray, " vertices"]
    sheets: Bool[ndarray, " joints"]
    T_rest: Float[ndarray, "joints 4 4"]
    """World rest transforms."""
    R_neutral: Float[ndarray, "joints 3 3"]
    """World rotations as the body carries itself: from the file's idle clip where it has one, else at rest."""
    body_length: float
    """The larger of height and length at rest [m]; arms and wings that reach sideways do not count."""
    height: float
    leg_length: float
    """From hip to the end of the toes at rest, mean over the legs [m]; half of the height without legs."""
    leg_bones: float
    """Along the bones from hip to ankle, mean over the legs [m]."""
    hip_height: float
    """Of the root above the ground at rest [m]; of the body's middle without legs."""

    @property
    def skeleton(self) -> Skeleton:
        """The skeleton of the working copy, with limits and axes by role."""
        return self.asset.skeleton

    @property
    def pelvis(self) -> int:
        """The joint of the trunk that carries the hindmost legs; the root joint of many rigs lies on the ground."""
        return find_pelvis(self.trunk, self.legs, self.skeleton)

    @property
    def grounded(self) -> bool:
        """Whether it stands on legs."""
        return bool(self.legs)


@remembered
def anatomy_of(asset: RiggedAsset) -> Anatomy:
    """Measure the working copy of a character; a second call finds what the first one measured."""
    skeleton = asset.skeleton
    flesh = flesh_of(asset)
    bones = measure_bones(skeleton, find_limbs(skeleton, flesh.outline))
    limbs, parts, trunk, T = bones.limbs, bones.parts, bones.trunk, bones.T_rest
    P = T[:, :3, 3]
    vertices = asset.mesh.vertices.detach().double().numpy()
    legs = tuple(_leg(part, skeleton, T, vertices, flesh.owners) for part in parts if part.limb.kind == "leg")
    shape = vertices if len(vertices) else P
    extent = np.ptp(shape, axis=0)
    height = max(float(extent[1]), 1e-6)
    floor = float(shape[:, 1].min())
    return Anatomy(
        asset=asset,
        kind=_kind(limbs, parts, P, trunk[trunk.index(find_pelvis(trunk, legs, skeleton)) :]),
        limbs=limbs,
        parts=parts,
        legs=legs,
        trunk=trunk,
        neck=bones.neck,
        tail=bones.tail,
        roles=joint_roles(skeleton, limbs),
        owners=flesh.owners,
        sheets=flesh.sheets,
        T_rest=T,
        R_neutral=_neutral(asset, T),
        body_length=max(height, float(extent[2]), 1e-6),
        height=height,
        leg_length=bones.leg_length if legs else 0.5 * height,
        leg_bones=float(np.mean([leg.parts.length for leg in legs])) if legs else 0.5 * height,
        hip_height=max(float(P[0, 1]) - floor, 0.05 * height),
    )


def find_pelvis(trunk: Sequence[int], legs: Sequence[Leg], skeleton: Skeleton) -> int:
    """The joint of the trunk that carries the hindmost legs, the trunk's first one without legs."""
    last = max((leg.parts.limb.rank for leg in legs), default=-1)
    found = []
    for leg in legs:
        joint = leg.parts.limb.joints[0]
        while joint >= 0 and joint not in trunk:
            joint = skeleton.parents[joint]
        if leg.parts.limb.rank == last and joint >= 0:
            found.append(trunk.index(joint))
    return trunk[min(found)] if found else trunk[0]


def _leg(
    parts: LimbParts,
    skeleton: Skeleton,
    T: Float[ndarray, "joints 4 4"],
    vertices: Float[ndarray, "vertices 3"],
    owners: Int[ndarray, " vertices"],
) -> Leg:
    """The foot of a leg: its joints from where it comes near the ground, and the skin that it puts there."""
    P = T[:, :3, 3]
    chain = [parts.root, parts.middle, parts.end, *parts.after]
    floor = float(vertices[:, 1].min()) if len(vertices) else float(P[:, 1].min())
    hip = float(P[parts.root, 1]) - floor
    low = [j for j in chain[1:] if float(P[j, 1]) - floor < FOOT * max(hip, 1e-6)]
    foot = tuple(low) or (chain[-1],)
    below = [foot[0]]
    for joint in below:
        below += skeleton.children[joint]
    return Leg(parts, parts.pivot, foot, *_contact_points(below, T, vertices, owners))


def _contact_points(
    joints: Sequence[int],
    T: Float[ndarray, "joints 4 4"],
    vertices: Float[ndarray, "vertices 3"],
    owners: Int[ndarray, " vertices"],
) -> tuple[Int[ndarray, " points"], Float[ndarray, "points 3"]]:
    """Of the lower part of a foot's skin the points farthest in eight directions; its joints without skin."""
    mine = np.flatnonzero(np.isin(owners, joints)) if len(vertices) else np.zeros(0, int)
    if len(mine) < FEW:
        at = np.array(joints)
        return at, np.zeros((len(at), 3))
    skin = vertices[mine]
    low = mine[skin[:, 1] <= np.quantile(skin[:, 1], 0.35) + 1e-6]
    turn = np.arange(8) * (np.pi / 4)
    compass = np.stack([np.sin(turn), -np.ones(8), np.cos(turn)])
    chosen = np.unique(low[(vertices[low] @ compass).argmax(0)])
    carriers = owners[chosen]
    inverse = np.linalg.inv(T[carriers])
    return carriers, np.einsum("pab,pb->pa", inverse[:, :3, :3], vertices[chosen]) + inverse[:, :3, 3]


def _kind(
    limbs: Sequence[Limb], parts: Sequence[LimbParts], P: Float[ndarray, "joints 3"], trunk: Sequence[int]
) -> BodyKind:
    """What kind of body it is, by its limbs and by how its trunk stands."""
    count = {kind: sum(limb.kind == kind for limb in limbs) for kind in ("leg", "arm", "wing", "fin")}
    way = P[trunk[-1]] - P[trunk[0]]
    extent = np.ptp(P, axis=0)
    tall = float(extent[1]) > float(extent[2])
    upright = tall if len(trunk) < 2 else float(way[1]) > 0.6 * float(np.linalg.norm(way))
    legs = count["leg"]
    if legs >= 7:
        return "spider"
    if legs >= 5:
        return "insect"
    if legs >= 3:
        return "quadruped"
    if legs:
        return "bird" if count["wing"] else "person" if upright and tall and count["arm"] else "biped"
    if count["wing"]:
        return "flyer"
    if count["arm"] and upright:
        return "other"
    chain = [limb for limb in limbs if limb.side == "middle"]
    line = sum(len(limb.joints) for limb in chain)
    if not tall and line and (count["fin"] or (line <= 8 and not parts)):
        return "fish"
    return "snake" if line >= 6 and not parts else "other"


def _neutral(asset: RiggedAsset, T: Float[ndarray, "joints 4 4"]) -> Float[ndarray, "joints 3 3"]:
    """How the body carries itself: the mean of its calmest clip's joint rotations, else the rest pose."""
    calm = next((clip for word in _CALM for name, clip in asset.clips.items() if word in name.lower()), None)
    if calm is None:
        return T[:, :3, :3]
    return _mean_rotations(asset.skeleton, calm)


def _mean_rotations(skeleton: Skeleton, clip: Motion) -> Float[ndarray, "joints 3 3"]:
    world = motion_to_world(skeleton, clip)[..., :3, :3]
    u, _, v = np.linalg.svd(world.mean(0))
    flip = np.sign(np.linalg.det(u @ v))
    u[..., -1] *= flip[..., None]
    return u @ v
