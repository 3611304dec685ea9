"""What the losses need of an Anatomy, as tensors: feet, cuboids and capsules of the bones at rest."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from jigdoll.math import GRAVITY
from jigdoll.math.segments import segment_distances
from jigdoll.math.transforms import apply, rigid_inverse
from jigdoll.rig.anatomy import Anatomy
from jigdoll.types import Limb, Skeleton
from jigdoll.validators.skin import capsule_overlap
from jigdoll.zoo.gaits.pace import Pace

_BOX_QUANTILE = 0.02
"""Cuboids leave out this share of the vertices at each side: skin weights bleed over the joints."""


@dataclass(frozen=True, eq=False)
class Body:
    """What stays the same about a character while it moves."""

    skeleton: Skeleton
    legs: tuple[Limb, ...]
    hips: list[int]
    """The first joint of each foot's leg."""
    feet: list[int]
    """The joints that stand: the end of each leg, and the joint before it where that is as low."""
    across: list[int]
    """For each foot the same foot of the other side (itself where there is none)."""
    lefts: list[tuple[int, int]]
    """Each joint of a left leg or arm after the first one of that limb; in even-sided gaits also joints of the middle
    after the root."""
    rights: list[tuple[int, int]]
    """The same of the limbs across; joints of the middle are their own."""
    period: float
    """Of one stride [s]."""
    phase_offset: float | None
    """How long after the right legs the left ones do the same [s]; None where that is open."""
    flight: bool
    """Whether there are moments without any foot on the ground."""
    feet_rest: Float[Tensor, " feet"]
    """Height of the feet at rest [m]."""
    reach_rest: Float[Tensor, " feet"]
    """From hip to foot at rest [m]."""
    leg_length: float
    """[m]."""
    pace: float
    """The speed that foot speeds are measured by [m/s]."""
    least_reach: float
    """How short a leg may become, as a share of its length at rest."""
    step_height: float
    """How high a foot is lifted [leg lengths]."""
    root_height: float
    """How far the root may rise or sink [leg lengths]."""
    masses: Float[Tensor, " joints"]
    """The share of the skin that each joint moves most."""
    cuboid_joints: list[int]
    cuboids: Float[Tensor, "cuboids corners 3"]
    """The corners of each bone's cuboid in its joint's frame [m]."""
    capsule_joints: Int[Tensor, " bones"]
    capsules: Float[Tensor, "bones 2 3"]
    """The ends of each bone's capsule in its joint's frame [m]."""
    pairs: Int[Tensor, "pairs 2"]
    """Which capsules must not meet."""
    pair_reach: Float[Tensor, " pairs"]
    """The least distance of their axes [m]."""


def body_of(anatomy: Anatomy, skeleton: Skeleton, pace: Pace) -> Body:
    """What the losses need of a character; `skeleton` is its own with the limits and axes that the motion uses."""
    T = torch.from_numpy(anatomy.T_rest).float()
    points, length = T[:, :3, 3], anatomy.leg_length
    hips, feet, keys = [], [], []
    for leg in anatomy.legs:
        limb = leg.parts.limb
        low = [j for j in limb.joints[-2:] if j in leg.foot] or [limb.joints[-1]]
        for place, joint in enumerate(reversed(low)):
            hips.append(leg.parts.root)
            feet.append(joint)
            keys.append((limb.rank, limb.side, place))
    other = {"left": "right", "right": "left"}
    across = [
        keys.index((rank, other[side], place)) if (rank, other.get(side), place) in keys else i
        for i, (rank, side, place) in enumerate(keys)
    ]
    matches = _matches(anatomy.limbs, pace)
    cuboid_joints, cuboids = _cuboids(anatomy, T)
    capsule_joints, capsules, radii = _capsules(anatomy, T)
    pairs, reach = _pairs(anatomy.limbs, T, capsule_joints, capsules, radii)
    return Body(
        skeleton=skeleton,
        legs=tuple(leg.parts.limb for leg in anatomy.legs),
        hips=hips,
        feet=feet,
        across=across,
        lefts=[left for left, _ in matches],
        rights=[right for _, right in matches],
        period=pace.period,
        phase_offset=None if pace.lag is None else pace.lag * pace.period,
        flight=pace.family in ("run", "jump"),
        feet_rest=points[feet, 1],
        reach_rest=(points[feet] - points[hips]).norm(dim=-1),
        leg_length=length,
        pace=max(pace.speed, 0.1 * (GRAVITY * length) ** 0.5),
        least_reach=0.55 if pace.family == "jump" else 0.72,
        step_height={"run": 0.16, "dance": 0.2}.get(pace.family, 0.1),
        root_height={"walk": 0.12, "run": 0.2}.get(pace.family, 0.25),
        masses=_masses(anatomy),
        cuboid_joints=cuboid_joints,
        cuboids=cuboids,
        capsule_joints=capsule_joints,
        capsules=capsules,
        pairs=pairs,
        pair_reach=reach,
    )


def _matches(limbs: tuple[Limb, ...], pace: Pace) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Joints with where they reach from, left and right: what does the same by turns."""
    sides = [limb for limb in limbs if limb.kind in ("leg", "arm")]
    matches = [
        ((left, a.joints[0]), (right, b.joints[0]))
        for a in sides
        for b in sides
        if (a.kind, a.rank, a.side, b.side) == (b.kind, b.rank, "left", "right")
        for left, right in zip(a.joints[1:], b.joints[1:], strict=False)
    ]
    if pace.lag in (0.0, 0.5) and not pace.turn:
        middle = [joint for limb in limbs if limb.side == "middle" for joint in limb.joints if joint]
        matches += [((joint, 0), (joint, 0)) for joint in middle]
    return matches


def capsule_overlaps(T_world_joint: Float[Tensor, "frames joints 4 4"], body: Body) -> Float[Tensor, "frames pairs"]:
    """How deep each pair of capsules overlaps [m]."""
    ends = apply(T_world_joint[:, body.capsule_joints], body.capsules)
    return capsule_overlap(ends[:, body.pairs[:, 0]], ends[:, body.pairs[:, 1]], body.pair_reach)


def _masses(anatomy: Anatomy) -> Float[Tensor, " joints"]:
    """Skin area by joint, as a share of all."""
    mesh, owners = anatomy.asset.mesh, torch.from_numpy(anatomy.owners)
    a, b, c = mesh.vertices[mesh.faces.long()].unbind(1)
    area = torch.linalg.cross(b - a, c - a).norm(dim=-1)
    masses = torch.zeros(len(anatomy.skeleton)).index_add(0, owners[mesh.faces[:, 0].long()], area)
    return masses / masses.sum().clamp_min(1e-12)


def _cuboids(
    anatomy: Anatomy, T_world_joint: Float[Tensor, "joints 4 4"]
) -> tuple[list[int], Float[Tensor, "bones 8 3"]]:
    """For each joint that moves skin, the box of its vertices along the joint's own axes."""
    owners, joints, boxes = torch.from_numpy(anatomy.owners), [], []
    inverse = rigid_inverse(T_world_joint)
    corner = torch.cartesian_prod(*[torch.tensor([0, 1])] * 3)
    for joint in range(len(T_world_joint)):
        mine = anatomy.asset.mesh.vertices[owners == joint]
        if len(mine) < 4:
            continue
        local = apply(inverse[joint], mine)
        span = torch.stack([local.quantile(_BOX_QUANTILE, 0), local.quantile(1 - _BOX_QUANTILE, 0)])
        box = span[corner, torch.arange(3)]
        # At rest the character stands on the ground: a cuboid that reaches below it there would push it up for ever.
        world = apply(T_world_joint[joint], box)
        world = torch.cat([world[:, :1], world[:, 1:2].clamp_min(0), world[:, 2:]], 1)
        joints.append(joint)
        boxes.append(apply(inverse[joint], world))
    if not boxes:
        return [0], torch.zeros(1, 8, 3)
    return joints, torch.stack(boxes)


def _capsules(
    anatomy: Anatomy, T_world_joint: Float[Tensor, "joints 4 4"]
) -> tuple[Int[Tensor, " bones"], Float[Tensor, "bones 2 3"], Float[Tensor, " bones"]]:
    """A capsule per bone: from a joint to its child, as thick as the flesh around it is on average."""
    points, owners = T_world_joint[:, :3, 3], torch.from_numpy(anatomy.owners)
    inverse = rigid_inverse(T_world_joint)
    joints, ends, radii = [], [], []
    for child, parent in enumerate(anatomy.skeleton.parents):
        if parent < 0:
            continue
        way = points[child] - points[parent]
        flesh = anatomy.asset.mesh.vertices[owners == parent]
        if float(way.norm()) < 1e-5 or len(flesh) < 4:
            continue
        along = ((flesh - points[parent]) @ way / (way @ way)).clamp(0, 1)
        off = (flesh - points[parent] - along[:, None] * way).norm(dim=-1)
        joints.append(parent)
        ends.append(apply(inverse[parent], torch.stack([points[parent], points[child]])))
        radii.append(off.median())
    if not ends:
        return torch.zeros(0, dtype=torch.long), torch.zeros(0, 2, 3), torch.zeros(0)
    return torch.tensor(joints), torch.stack(ends), torch.stack(radii)


def _pairs(
    limbs: tuple[Limb, ...],
    T_world_joint: Float[Tensor, "joints 4 4"],
    joints: Int[Tensor, " bones"],
    capsules: Float[Tensor, "bones 2 3"],
    radii: Float[Tensor, " bones"],
) -> tuple[Int[Tensor, "pairs 2"], Float[Tensor, " pairs"]]:
    """Capsules of different limbs, at least one of them a leg or an arm, that do not touch at rest."""
    owner = {j: i for i, limb in enumerate(limbs) for j in limb.joints}
    moving = {i for i, limb in enumerate(limbs) if limb.kind in ("leg", "arm")}
    ends = apply(T_world_joint[joints], capsules)
    pairs, reach = [], []
    for i in range(len(joints)):
        for k in range(i + 1, len(joints)):
            a, b = owner.get(int(joints[i]), -1), owner.get(int(joints[k]), -1)
            if a == b or not ({a, b} & moving):
                continue
            gap = float(segment_distances(ends[i], ends[k]))
            least = 0.8 * float(radii[i] + radii[k])
            if gap > least:
                pairs.append((i, k))
                reach.append(least)
    if not pairs:
        return torch.zeros(0, 2, dtype=torch.long), torch.zeros(0)
    return torch.tensor(pairs), torch.tensor(reach)
