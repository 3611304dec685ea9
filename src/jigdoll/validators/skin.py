"""What is wrong on the skin: flesh inside flesh, skin that is drawn out or pinched, skin below the ground."""

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.math.segments import closest_on_segments, segment_distances
from jigdoll.rig.fleshed_bones import flesh_at
from jigdoll.validators.body import PosedBody, ValidatedBody, posed_bones


def self_contact(body: ValidatedBody, posed: PosedBody) -> Float[Tensor, "frames joints"]:
    """How deep the skin of each joint is inside the flesh of other parts, beyond rest [body lengths].

    The flesh of a bone is as thick as this asset's skin says, place by place; what is inside at rest is free.
    """
    skin = posed.skin[:, : body.spread]
    if not len(body.bone_joints):
        return _by_joint(body, posed.joints[..., :0].sum(-1)[:, :0], body.owners[:0])
    share, gap = closest_on_segments(skin[:, :, None], posed_bones(body, posed)[:, None])
    depth = flesh_at(share, body.radii) - gap - body.inside_rest[: body.spread]
    deepest = torch.where(body.strangers[: body.spread], depth, 0.0).amax(-1).clamp_min(0)
    return _by_joint(body, deepest / body.length, body.owners[: body.spread])


def stretch(body: ValidatedBody, posed: PosedBody) -> Float[Tensor, "frames joints"]:
    """How far the skin of each joint is drawn out: the mean of log(length now / at rest) over edges that grew."""
    if not len(body.edges):
        return torch.zeros_like(posed.joints[..., 0])
    ends = posed.skin[:, body.edges]
    now = ((ends[:, :, 1] - ends[:, :, 0]).square().sum(-1) + 1e-12 * body.length**2).sqrt()
    grown = (now / body.edge_rest).log().clamp_min(0)
    total = grown.new_zeros(len(grown), len(body.skeleton)).index_add(1, body.edge_joints, grown)
    count = torch.bincount(body.edge_joints, minlength=len(body.skeleton)).clamp_min(1)
    return total / count


def collapse(body: ValidatedBody, posed: PosedBody) -> Float[Tensor, "frames joints"]:
    """How far the skin around each joint has fallen in on it: 1 - distance from the joint now / at rest, the worst."""
    joints = posed.joints[:, body.waist_joints]
    now = ((posed.skin[:, body.waists] - joints).square().sum(-1) + 1e-12 * body.length**2).sqrt()
    return _by_joint(body, (1 - now / body.waist_rest).clamp_min(0), body.waist_joints)


def ground(body: ValidatedBody, posed: PosedBody) -> Float[Tensor, "frames joints"]:
    """How deep the skin of each joint is below the ground, beyond rest [body lengths]."""
    rest = depth_below_ground(body.points[: body.spread, 1])
    depth = (depth_below_ground(posed.skin[:, : body.spread, 1]) - rest).clamp_min(0)
    T = posed.T_world_joint[:, body.sole_joints]
    soles = (T[..., 1, :3] * body.soles).sum(-1) + T[..., 1, 3]
    deepest = torch.cat([depth, depth_below_ground(soles)], 1)
    return _by_joint(body, deepest / body.length, torch.cat([body.owners[: body.spread], body.sole_joints]))


def depth_below_ground(heights: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """How far below y = 0 things are."""
    return (-heights).clamp_min(0)


def capsule_overlap(
    one: Float[Tensor, "*batch 2 3"], other: Float[Tensor, "*batch 2 3"], reach: Float[Tensor, "*#batch"]
) -> Float[Tensor, "*batch"]:
    """How deep capsules overlap whose axes must stay `reach` apart [m]."""
    return (reach - segment_distances(one, other)).clamp_min(0)


def _by_joint(
    body: ValidatedBody, values: Float[Tensor, "frames parts"], joints: Tensor
) -> Float[Tensor, "frames joints"]:
    """The largest value of each joint's parts; zero where a joint has none."""
    empty = values.new_zeros(len(values), len(body.skeleton))
    return empty.scatter_reduce(1, joints.expand(len(values), -1), values, "amax")
