"""Inverse kinematics of limbs: a chain bends about its own hinges until its end reaches, then turns to aim.

All joints of a chain share one variable, from straight to folded, and each follows its own curve through its rest bend.
So a knee never flips, a hock folds together with its knee, and the reach is one equation per frame: closed form for
two bones, a bracketed search for more. Rotations are deltas along the rest pose's world axes: the world turn of joint j
is D_j = D_parent @ d_j, and a bone that points along b at rest points along D_j b.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from jigdoll.errors import RigError
from jigdoll.kinematics import rest_transforms
from jigdoll.math.rotations import matrix_to_quaternion
from jigdoll.types import Skeleton

STRAIGHT = math.radians(3.0)
"""Below this bend the geometry does not tell which way a joint folds."""
LEAST_BEND = math.radians(1.0)
MOST_BEND = math.radians(150.0)
MOST_BONES = 12


@dataclass(frozen=True, eq=False)
class Chain:
    """A limb as inverse kinematics sees it: its bones at rest and the hinge between each two; or several, stacked."""

    bones: Float[Tensor, "*chains bones 3"]
    """From each joint to the next [m], world axes, rest."""
    hinges: Float[Tensor, "*chains bends 3"]
    """Unit axis about which each inner joint folds further, world axes, rest."""
    rest: Float[Tensor, "*chains bends"]
    """How far each inner joint is bent at rest [rad]."""
    lowest: Float[Tensor, "*chains bends"]
    highest: Float[Tensor, "*chains bends"]
    most: Float[Tensor, "*chains"]
    """Where in the shared range 0 .. 1 folding stops to bring the ends closer (a folded zigzag opens again)."""

    @property
    def reach(self) -> tuple[float, float]:
        """The shortest and the longest distance between the ends of a single chain [m]."""
        ends = [end_offset(self, bends) for bends in (_bends(self, self.rest, self.most), self.lowest)]
        return float(ends[0].norm()), float(ends[1].norm())


@dataclass(frozen=True, eq=False)
class Solution:
    """How a chain turns to reach its targets."""

    turns: Float[Tensor, "*batch bones 3 3"]
    """d of each joint that starts a bone."""
    bends: Float[Tensor, "*batch bends"]
    """Bend of each inner joint [rad]."""
    gap: Float[Tensor, "*batch"]
    """Distance that is left between end and target [m]: zero wherever the target is within reach."""


def make_chain(
    skeleton: Skeleton,
    joints: Sequence[int],
    *,
    hint: Sequence[float] | None = None,
    folds: Mapping[int, Sequence[float]] | None = None,
) -> Chain:
    """The chain through these joints, the last one being the end that reaches.

    A joint that is straight at rest folds about its own bend axis, towards the wider side of its limits, or about
    `hint` (world axes) where it has no limits. Limits count where the bend axis is the hinge that the geometry shows.
    `folds` names the axis of single joints and overrules what their rest bend shows (a wrist that is bent a little
    back at rest still folds forwards).
    """
    if not 2 <= len(joints) <= MOST_BONES + 1:
        raise RigError(f"a chain for inverse kinematics has 2 to {MOST_BONES + 1} joints, this one has {len(joints)}")
    T = rest_transforms(skeleton).double()
    points = T[list(joints), :3, 3]
    bones = points.diff(dim=0)
    if bool((bones.norm(dim=-1) < 1e-9).any()):
        raise RigError("a bone of the chain has no length; drop the joint that ends where it starts")
    hinges, rest, lowest, highest = [], [], [], []
    for i, joint in enumerate(joints[1:-1]):
        before, after = bones[i], bones[i + 1]
        cross = torch.linalg.cross(before, after)
        bend = float(torch.atan2(cross.norm(), before @ after))
        axis = (T[joint, :3, :3] @ skeleton.axes[joint].double())[:, 0]
        low, high = (float(x) for x in skeleton.limits[joint, 0])
        limited = low > -3.1 or high < 3.1
        if folds and joint in folds:
            hinge = _perpendicular(axis.new_tensor(folds[joint]), after)
            bend = float(torch.atan2(cross @ hinge, before @ after))
        elif bend > STRAIGHT:
            hinge = cross / cross.norm()
        else:
            wanted = axis * (1.0 if high >= -low else -1.0) if limited or hint is None else axis.new_tensor(hint)
            hinge = _perpendicular(wanted, after)
        along = float(hinge @ axis)
        if not limited or abs(along) < 0.8:
            low, high = -math.inf, math.inf
        elif along < 0:
            low, high = -high, -low
        lowest.append(min(max(bend + low, LEAST_BEND), bend if folds and joint in folds else max(bend, LEAST_BEND)))
        highest.append(max(min(bend + high, MOST_BEND), lowest[-1] + 1e-3, bend))
        hinges.append(hinge)
        rest.append(bend)
    chain = Chain(
        bones=bones,
        hinges=torch.stack(hinges) if hinges else bones.new_zeros(0, 3),
        rest=bones.new_tensor(rest),
        lowest=bones.new_tensor(lowest),
        highest=bones.new_tensor(highest),
        most=bones.new_tensor(1.0),
    )
    return replace(chain, most=_most(chain))


def stack_chains(chains: Sequence[Chain]) -> Chain:
    """Chains with the same number of bones as one, for targets with the axes (chains, frames)."""
    return Chain(*(torch.stack([getattr(c, f.name) for c in chains])[:, None] for f in fields(Chain)))


def solve(
    chain: Chain, target: Float[Tensor, "*batch 3"], *, prefer: Float[Tensor, "*#batch bends"] | None = None
) -> Solution:
    """The turns that bring the chain's end to the target, given from the chain's start in its parent's axes.

    `prefer` is the bend of each joint in the middle of the shared range (default: at rest): it shares the folding out
    among the joints and changes nothing about the reach. Out of reach, the chain stretches or folds towards the target.
    """
    target = target.to(chain.bones)
    distance = target.norm(dim=-1)
    bends = _solve_bends(chain, distance, chain.rest if prefer is None else prefer.to(chain.bones))
    end = end_offset(chain, bends)
    # First undo how folding tilts the chain, within its own plane; then swing to the target the shortest way.
    at_rest = end_offset(chain, chain.rest).expand_as(end)
    first = rotation_between(at_rest, target) @ rotation_between(end, at_rest)
    turns = [first]
    for i in range(chain.hinges.shape[-2]):
        turns.append(axis_matrix(chain.hinges[..., i, :], bends[..., i] - chain.rest[..., i]))
    gap = (end.norm(dim=-1) - distance).abs()
    return Solution(torch.stack(turns, dim=-3), bends, gap)


def end_offset(chain: Chain, bends: Float[Tensor, "*batch bends"]) -> Float[Tensor, "*batch 3"]:
    """From the chain's start to its end when the first bone keeps its rest direction [m]."""
    offset = chain.bones[..., -1, :].expand(*bends.shape[:-1], 3)
    for i in reversed(range(chain.hinges.shape[-2])):
        offset = chain.bones[..., i, :] + _rotate(offset, chain.hinges[..., i, :], bends[..., i] - chain.rest[..., i])
    return offset


def two_bone_bend(
    upper: Float[Tensor, "*#batch"], lower: Float[Tensor, "*#batch"], distance: Float[Tensor, "*#batch"]
) -> Float[Tensor, "*batch"]:
    """The bend between two bones whose far ends are so far apart (law of cosines), clamped to what they reach [rad]."""
    cosine = (distance.square() - upper.square() - lower.square()) / (2 * upper * lower)
    return torch.acos(cosine.clamp(-1, 1))


def local_quaternions(
    turns: Float[Tensor, "*batch 3 3"], R_world_joint: Float[Tensor, "3 3"]
) -> Float[Tensor, "*batch 4"]:
    """The pose's local rotation of a joint from its delta d along world axes: R_rest^T d R_rest."""
    return matrix_to_quaternion(R_world_joint.T @ turns @ R_world_joint)


def rotation_between(a: Float[Tensor, "*batch 3"], b: Float[Tensor, "*batch 3"]) -> Float[Tensor, "*batch 3 3"]:
    """The shortest rotation that turns direction a into direction b (about any axis where they are opposite)."""
    a = torch.nn.functional.normalize(a, dim=-1)
    b = torch.nn.functional.normalize(b, dim=-1)
    cosine = (a * b).sum(-1)[..., None, None]
    K = cross_matrix(torch.linalg.cross(a, b))
    eye = torch.eye(3, dtype=a.dtype, device=a.device)
    near = eye + K + K @ K / (1 + cosine).clamp_min(1e-9)
    if bool((cosine > -1 + 1e-7).all()):
        return near
    across = torch.nn.functional.one_hot(a.abs().argmin(-1), 3).to(a)
    across = torch.nn.functional.normalize(across - (across * a).sum(-1, keepdim=True) * a, dim=-1)
    opposite = 2 * across[..., :, None] * across[..., None, :] - eye
    return torch.where(cosine > -1 + 1e-7, near, opposite)


def cross_matrix(v: Float[Tensor, "*batch 3"]) -> Float[Tensor, "*batch 3 3"]:
    """The matrix K with K x = v cross x."""
    x, y, z = v.unbind(-1)
    zero = torch.zeros_like(x)
    return torch.stack([zero, -z, y, z, zero, -x, -y, x, zero], dim=-1).unflatten(-1, (3, 3))


def axis_matrix(axis: Float[Tensor, "*#batch 3"], angle: Float[Tensor, "*#batch"]) -> Float[Tensor, "*batch 3 3"]:
    """The rotation by an angle [rad] about a unit axis."""
    K = cross_matrix(axis)
    s, c = angle.sin()[..., None, None], angle.cos()[..., None, None]
    return torch.eye(3, dtype=axis.dtype, device=axis.device) + s * K + (1 - c) * (K @ K)


def _solve_bends(
    chain: Chain, distance: Float[Tensor, "*batch"], middle: Float[Tensor, "*#batch bends"]
) -> Float[Tensor, "*batch bends"]:
    """The bends that put the ends so far apart."""
    count = chain.hinges.shape[-2]
    if count == 0:
        return distance.new_zeros(*distance.shape, 0)
    if count == 1:
        upper, lower = chain.bones.norm(dim=-1).unbind(-1)
        return two_bone_bend(upper, lower, distance)[..., None].clamp(chain.lowest, chain.highest)

    def excess(fold: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        return end_offset(chain, _bends(chain, middle, fold)).norm(dim=-1) - distance

    low = torch.zeros_like(distance)
    high = low + chain.most
    at_low, at_high = excess(low), excess(high)
    # Out of reach there is no bracket: stay at the end that comes closest.
    high = torch.where(at_low <= 0, low, high)
    low = torch.where(at_high >= 0, high, low)
    was_above = at_low > 0
    for step in range(50):
        # Bisection to get into the basin, then false position with halved weights (Illinois).
        fraction = 0.5 if step < 3 else (at_low / (at_low - at_high).clamp_min(1e-300)).clamp(0.0, 1.0)
        fold = low + fraction * (high - low)
        now = excess(fold)
        if step >= 3 and bool(((now.abs() < 1e-13 + 1e-12 * distance) | (high <= low)).all()):
            return _bends(chain, middle, fold)
        above = now > 0
        weight = torch.where((above == was_above) & (step > 0), 0.5, 1.0)
        at_low, at_high = torch.where(above, now, weight * at_low), torch.where(above, weight * at_high, now)
        low, high, was_above = torch.where(above, fold, low), torch.where(above, high, fold), above
    return _bends(chain, middle, 0.5 * (low + high))


def _bends(
    chain: Chain, middle: Float[Tensor, "*#batch bends"], fold: Float[Tensor, "*batch"]
) -> Float[Tensor, "*batch bends"]:
    """The bends at a place 0 (straight) .. 1 (folded) of the shared range: a power curve, `middle` at one half."""
    room = chain.highest - chain.lowest
    share = ((middle - chain.lowest) / room).clamp(0.002, 0.998)
    power = share.log() / math.log(0.5)
    return chain.lowest + room * fold[..., None].clamp_min(1e-12) ** power


def _most(chain: Chain) -> Float[Tensor, ""]:
    """Where folding stops to bring the ends of a single chain closer."""
    if len(chain.hinges) < 2:
        return chain.most
    u = torch.linspace(0.0, 1.0, 201, dtype=chain.bones.dtype)
    distances = end_offset(chain, _bends(chain, chain.rest.expand(201, -1), u)).norm(dim=-1)
    # A wrist that starts beyond straight may first lengthen the chain a little: look from its longest place on.
    start = int(distances.argmax())
    rising: Bool[Tensor, " steps"] = distances[start:].diff() > 0
    return u[start + int(rising.float().argmax())] if bool(rising.any()) else chain.most


def _rotate(
    v: Float[Tensor, "*batch 3"], axis: Float[Tensor, "*#batch 3"], angle: Float[Tensor, "*batch"]
) -> Float[Tensor, "*batch 3"]:
    """Rodrigues' formula."""
    s, c = angle.sin()[..., None], angle.cos()[..., None]
    axis = axis.expand_as(v)
    return v * c + torch.linalg.cross(axis, v) * s + axis * (axis * v).sum(-1, keepdim=True) * (1 - c)


def _perpendicular(v: Float[Tensor, "3"], bone: Float[Tensor, "3"]) -> Float[Tensor, "3"]:
    """The unit vector nearest to v that is perpendicular to a bone."""
    bone = bone / bone.norm()
    flat = v - (v @ bone) * bone
    if float(flat.norm()) < 1e-3:
        flat = torch.eye(3, dtype=v.dtype)[int(bone.abs().argmin())]
        flat = flat - (flat @ bone) * bone
    return flat / flat.norm()
