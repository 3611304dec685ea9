"""A motion of one rig for another: limbs are matched, bones point where the source's bones point.

For each matched joint, with G the world rotation and D = G_source(t) inverse(G_source(rest)) what the source has turned
since its rest, the target gets G_target(t) = D A G_target(rest). In arms, wings and legs A turns the target's resting
bone onto the source's, so that a T pose and an A pose mean the same. In the spine, the head, the tail and the feet it
only turns the whole body: their bones are drawn differently in every rig, but at rest all look ahead and stand flat.
"""

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.errors import RepairWarning, RigError
from jigdoll.kinematics import forward, rest_transforms
from jigdoll.math.rotations import matrix_to_quaternion
from jigdoll.rig.limbs import find_limbs
from jigdoll.types import Limb, Motion, Pose, Skeleton

_MIDDLE = {
    "arm": re.compile(r"elbow|fore_?arm|lower_?arm|arm_?lower|radius|ulna", re.IGNORECASE),
    "leg": re.compile(r"knee|calf|shin|lower_?leg|leg_?lower|tibia|(?<!up)(?<!upper)(?<!up_)leg$", re.IGNORECASE),
}
"""What the joint in the middle of a limb (elbow, knee) is called."""
_SHIFT = 0.01
"""Joints that move less than this part of the body, or grow by less, lose nothing that a person sees."""


@dataclass(frozen=True)
class Pair:
    """A joint of the target, the joint of the source that it follows, and how their rest poses are compared."""

    target: int
    source: int
    target_end: int = -1
    """Where the bone of the joint ends; -1 where it is unknown, then a limb goes on as the bone before."""
    source_end: int = -1
    by_bone: bool = True
    """Whether the bones should point the same way; otherwise the joint turns as much as its twin from rest."""


def retarget(
    motion: Motion,
    source: Skeleton,
    target: Skeleton,
    *,
    mapping: Mapping[str, str] | None = None,
    ground: bool = True,
) -> Motion:
    """The motion of the source on the target; both stand on y = 0 with +Y up.

    Joints are matched by limb and role, or as `mapping` (target's name to source's name) says. The way of the root is
    scaled by the ratio of leg lengths and begins at the target's rest place. With `ground`, the lowest foot of the clip
    stands as high as the target's feet at rest.
    """
    pairs = match_limbs(source, target) if mapping is None else _pairs_by_name(source, target, mapping)
    if len(pairs) < 2:
        raise RigError("the two rigs have no limbs in common; give a mapping of joint names")
    _say_what_is_dropped(motion, source)
    source_rest, target_rest = rest_transforms(source).double(), rest_transforms(target).double()
    precise = replace(source, T_parent_joint=source.T_parent_joint.double())
    posed = forward(precise, _in_double(motion.pose))
    turned = posed[..., :3, :3] @ source_rest[:, :3, :3].transpose(-1, -2)
    aligned = _alignments(pairs, source, target, source_rest[:, :3, 3], target_rest[:, :3, 3])

    by_target = {pair.target: pair for pair in pairs}
    world: list[Tensor] = []
    local: list[Tensor] = []
    for joint, parent in enumerate(target.parents):
        rest = target.T_parent_joint[joint, :3, :3].double()
        above = torch.eye(3, dtype=torch.float64).expand(len(motion), 3, 3) if parent < 0 else world[parent]
        if joint in by_target:
            here = turned[:, by_target[joint].source] @ aligned[joint] @ target_rest[joint, :3, :3]
        else:
            here = above @ rest
        world.append(here)
        local.append(matrix_to_quaternion((above @ rest).transpose(-1, -2) @ here))
    rotations = torch.stack(local, 1)
    root = _root_way(posed[:, 0, :3, 3], source, target)
    motion = Motion(Pose(root.float(), rotations.float()), motion.fps, motion.name)
    return _put_on_ground(motion, target) if ground else motion


def match_limbs(source: Skeleton, target: Skeleton) -> tuple[Pair, ...]:
    """Pairs of joints that play the same part: root with root, then limb by limb of the same kind, side and rank."""
    pairs: dict[int, Pair] = {0: Pair(0, 0)}
    known = {(limb.kind, limb.side, limb.rank): limb for limb in _limbs(source)}
    for limb in _limbs(target):
        twin = known.get((limb.kind, limb.side, limb.rank))
        if twin is not None:
            for pair in _match_limb(limb, target, twin, source):
                pairs.setdefault(pair.target, pair)
    return tuple(pairs.values())


def leg_length(skeleton: Skeleton) -> float | None:
    """Mean length of the legs from the hip to the ankle [m], None without legs."""
    P = rest_transforms(skeleton)[:, :3, 3]
    legs = [_roles(limb, skeleton)[1] for limb in find_limbs(skeleton) if limb.kind == "leg"]
    lengths = [sum(float((P[b] - P[a]).norm()) for a, b in _steps(leg)) for leg in legs if len(leg) > 1]
    return sum(lengths) / len(lengths) if lengths else None


# Matching


def _limbs(skeleton: Skeleton) -> list[Limb]:
    """The limbs, with the spine's last bone going on to the neck."""
    found = find_limbs(skeleton)
    neck = next((limb.joints[0] for limb in found if limb.kind == "head"), -1)
    return [
        replace(limb, joints=(*limb.joints, neck))
        if limb.kind == "spine" and neck >= 0 and skeleton.parents[neck] == limb.joints[-1]
        else limb
        for limb in found
    ]


def _steps(chain: Sequence[int]) -> list[tuple[int, int]]:
    return list(pairwise(chain))


def _match_limb(limb: Limb, target: Skeleton, twin: Limb, source: Skeleton) -> list[Pair]:
    if limb.kind == "spine" and len(limb.joints) > 2 and len(twin.joints) > 2:
        # The joint that carries the arms and the neck follows its twin, however short the bone above it is.
        chest = Pair(limb.joints[-2], twin.joints[-2])
        return _by_body([chest, *_match_by_length(limb.joints, target, twin.joints, source)])
    if limb.kind not in ("leg", "arm", "wing"):
        return _by_body(_match_by_length(limb.joints, target, twin.joints, source))
    ours, theirs = _roles(limb, target), _roles(twin, source)
    if len(ours[1]) != 3 or len(theirs[1]) != 3:
        return _match_by_length(limb.joints, target, twin.joints, source)
    # What comes before the limb's root (clavicles), the limb itself, what comes after its end (toes, fingers).
    before = _match_by_length([*ours[0], ours[1][0]], target, [*theirs[0], theirs[1][0]], source) if ours[0] else []
    before = [pair for pair in before if pair.target in ours[0]] if theirs[0] else []
    middle = [Pair(a, b, c, d) for (a, c), (b, d) in zip(_steps(ours[1]), _steps(theirs[1]), strict=True)]
    end, twin_end = [ours[1][2], *ours[2]], [theirs[1][2], *theirs[2]]
    after = _match_by_length(end, target, twin_end, source) if len(end) > 1 and len(twin_end) > 1 else []
    if not after:
        after = [Pair(ours[1][2], theirs[1][2])]
    return [*before, *middle, *(_by_body(after) if limb.kind == "leg" else after)]


def _by_body(pairs: Sequence[Pair]) -> list[Pair]:
    return [replace(pair, by_bone=False) for pair in pairs]


def _roles(limb: Limb, skeleton: Skeleton) -> tuple[list[int], list[int], list[int]]:
    """A limb in three parts: before its root; root, middle and end (hip, knee, ankle); after its end.

    The middle joint is known by its name, else it lies between the two longest bones in a row.
    """
    P = rest_transforms(skeleton)[:, :3, 3]
    chain = _without_doubles(limb.joints, P)
    if len(chain) < 3:
        return [], chain, []
    pattern = _MIDDLE.get(limb.kind)
    named = [i for i in range(1, len(chain) - 1) if pattern and pattern.search(skeleton.names[chain[i]])]
    lengths = [float((P[b] - P[a]).norm()) for a, b in _steps(chain)]
    middle = named[0] if named else 1 + max(range(len(lengths) - 1), key=lambda i: lengths[i] + lengths[i + 1])
    return chain[: middle - 1], chain[middle - 1 : middle + 2], chain[middle + 2 :]


def _without_doubles(joints: Sequence[int], P: Float[Tensor, "joints 3"]) -> list[int]:
    """The chain without joints that stand where the next one stands: the last of them turns the bone."""
    size = float((P.amax(0) - P.amin(0)).max())
    keep = [a for a, b in _steps(joints) if float((P[b] - P[a]).norm()) > 1e-3 * size]
    return [*keep, joints[-1]]


def _match_by_length(ours: Sequence[int], target: Skeleton, theirs: Sequence[int], source: Skeleton) -> list[Pair]:
    """Each bone of ours with the bone of theirs that lies at the same part of the chain's length."""
    P, Q = rest_transforms(target)[:, :3, 3], rest_transforms(source)[:, :3, 3]
    ours, theirs = _without_doubles(ours, P), _without_doubles(theirs, Q)
    if len(ours) < 2 or len(theirs) < 2:
        return [Pair(a, b) for a, b in zip(ours[:1], theirs[:1], strict=True)]
    marks = [torch.tensor([float((X[b] - X[a]).norm()) for a, b in _steps(c)]) for X, c in ((P, ours), (Q, theirs))]
    cut = [torch.cumsum(mark, 0) / mark.sum() for mark in marks]
    middles = cut[0] - 0.5 * marks[0] / marks[0].sum()
    found = torch.searchsorted(cut[1], middles).clamp_max(len(theirs) - 2).tolist()
    return [Pair(a, theirs[i], b, theirs[i + 1]) for (a, b), i in zip(_steps(ours), found, strict=True)]


def _pairs_by_name(source: Skeleton, target: Skeleton, mapping: Mapping[str, str]) -> tuple[Pair, ...]:
    """Pairs from names; a bone ends at the first mapped joint below, and counts in arms, wings and legs only."""
    by_bone = {0}
    for limb in find_limbs(target):
        before, middle, after = _roles(limb, target)
        if limb.kind in ("arm", "wing"):
            by_bone.update([*before, *middle, *after])
        elif limb.kind == "leg":
            by_bone.update([*before, *middle[:2]])
    known = {target.index(mine): source.index(theirs) for mine, theirs in mapping.items()}
    pairs = []
    for joint, twin in known.items():
        below = [kid for kid in known if kid > joint and _next_mapped(target, kid, known) == joint]
        end = below[0] if len(below) == 1 else -1
        pairs.append(Pair(joint, twin, end, known.get(end, -1), joint in by_bone))
    return tuple(pairs)


def _next_mapped(skeleton: Skeleton, joint: int, known: Mapping[int, int]) -> int:
    """The nearest joint above that has a twin, -1 where there is none."""
    joint = skeleton.parents[joint]
    while joint >= 0 and joint not in known:
        joint = skeleton.parents[joint]
    return joint


def _say_what_is_dropped(motion: Motion, source: Skeleton) -> None:
    """Name the joints that move or grow within their parents: only turns and the way of the root are carried over."""
    pose, lost = motion.pose, []
    if pose.offsets is not None:
        way = pose.offsets.norm(dim=-1).amax(0)
        most, count = int(way.argmax()), int((way > _SHIFT * _extent(source)).sum())
        if count:
            who = f"{count} of {len(source)} joints, {source.names[most]!r} by {float(way[most]):.2g} m"
            lost.append(f"what moves within its parent ({who})")
    if pose.scales is not None:
        count = int(((pose.scales - 1).abs().amax((0, 2)) > _SHIFT).sum())
        lost += [f"what is scaled ({count} of {len(source)} joints)"] if count else []
    if lost:
        warnings.warn(f"{motion.name!r} is retargeted without {' and '.join(lost)}", RepairWarning, stacklevel=3)


# Geometry


def _in_double(pose: Pose) -> Pose:
    """The pose without its scales: a scaled joint points where an unscaled one does."""
    offsets = None if pose.offsets is None else pose.offsets.detach().double()
    return Pose(pose.root.detach().double(), pose.rotations.detach().double(), offsets)


def _alignments(
    pairs: Sequence[Pair],
    source: Skeleton,
    target: Skeleton,
    P_source: Float[Tensor, "source 3"],
    P_target: Float[Tensor, "target 3"],
) -> dict[int, Float[Tensor, "3 3"]]:
    """For each target joint the rotation A of its resting bone onto the source's resting bone."""
    whole = _body_frame(source, P_source) @ _body_frame(target, P_target).T
    out: dict[int, Tensor] = {}
    for pair in sorted(pairs, key=lambda pair: pair.target):
        above = next((out[j] for j in _above(target, pair.target) if j in out), whole)
        if pair.target == 0 or not pair.by_bone:
            out[pair.target] = whole
        elif pair.target_end < 0 or pair.source_end < 0:
            out[pair.target] = above  # a hand without fingers goes on as the fore arm does
        else:
            bone = whole @ (P_target[pair.target_end] - P_target[pair.target])
            out[pair.target] = _shortest(bone, P_source[pair.source_end] - P_source[pair.source]) @ whole
    return out


def _above(skeleton: Skeleton, joint: int) -> list[int]:
    chain = []
    while (joint := skeleton.parents[joint]) >= 0:
        chain.append(joint)
    return chain


def _body_frame(skeleton: Skeleton, P: Float[Tensor, "joints 3"]) -> Float[Tensor, "3 3"]:
    """Columns left, up, ahead of the resting body, from a pair of limbs; the world's axes where there is none."""
    limbs = find_limbs(skeleton)
    pairs = [(a, b) for a in limbs for b in limbs if a.kind == b.kind and a.rank == b.rank]
    sides = [P[a.joints[1]] - P[b.joints[1]] for a, b in pairs if (a.side, b.side) == ("left", "right")]
    across = torch.stack(sides).sum(0) if sides else torch.zeros(3, dtype=P.dtype)
    across = across * across.new_tensor([1.0, 0.0, 1.0])  # the ground is level
    if float(across.norm()) < 1e-6:
        return torch.eye(3, dtype=P.dtype)
    left = across / across.norm()
    up = left.new_tensor([0.0, 1.0, 0.0])
    return torch.stack([left, up, torch.linalg.cross(left, up)], 1)


def _shortest(a: Float[Tensor, "3"], b: Float[Tensor, "3"]) -> Float[Tensor, "3 3"]:
    """The rotation by the smallest angle that turns direction a to direction b."""
    a, b = a / a.norm().clamp_min(1e-12), b / b.norm().clamp_min(1e-12)
    v, c = torch.linalg.cross(a, b), float(a @ b)
    eye = torch.eye(3, dtype=a.dtype)
    if c < -1 + 1e-9:  # opposite: half a turn about anything at a right angle
        axis = torch.linalg.cross(a, eye[int(a.abs().argmin())])
        axis = axis / axis.norm()
        return 2 * torch.outer(axis, axis) - eye
    K = torch.linalg.cross(v.expand(3, 3), eye).T  # K x = v cross x
    return eye + K + K @ K / (1 + c)


def _root_way(places: Float[Tensor, "frames 3"], source: Skeleton, target: Skeleton) -> Float[Tensor, "frames 3"]:
    """Displacement of the target's root: the source's way, scaled by the legs, from the target's rest place."""
    theirs, ours = leg_length(source), leg_length(target)
    if theirs is None or ours is None:
        theirs, ours = _extent(source), _extent(target)
    way = ours / max(theirs, 1e-9) * places
    rest = rest_transforms(target)[0, :3, 3].double()
    start = torch.stack([way[0, 0], rest[1], way[0, 2]])  # heights are absolute: both stand on y = 0
    return way - start


def _extent(skeleton: Skeleton) -> float:
    P = rest_transforms(skeleton)[:, :3, 3]
    return float((P.amax(0) - P.amin(0)).max())


def _put_on_ground(motion: Motion, target: Skeleton) -> Motion:
    """The motion, lifted as a whole so that its lowest foot is where the feet are at rest."""
    feet = sorted({joint for limb in find_limbs(target) if limb.kind == "leg" for joint in limb.joints[1:]})
    if not feet:
        return motion
    low = forward(target, motion.pose)[:, feet, 1, 3].min()
    rest = rest_transforms(target)[feet, 1, 3].min()
    root = motion.pose.root + torch.stack([0 * low, rest - low, 0 * low])
    return Motion(Pose(root, motion.pose.rotations), motion.fps, motion.name)
