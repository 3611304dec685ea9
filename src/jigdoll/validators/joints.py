"""What is wrong with the joints: knees that fold the wrong way, twisted bones, angles beyond the limits."""

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.rig.limits import clamp_angles, compound_angles
from jigdoll.types import Pose, Skeleton
from jigdoll.validators.body import PosedBody, ValidatedBody, hinge_angles


def hyperextension(body: ValidatedBody, posed: PosedBody) -> Float[Tensor, "frames joints"]:
    """How far each knee, elbow or joint of a wing is folded the wrong way [rad].

    The fold is the angle between the bones before and after the joint, seen along the hinge's axis.
    """
    found = torch.zeros_like(posed.joints[..., 0])
    if not len(body.hinges):
        return found
    fold = hinge_angles(posed.T_world_joint, body.hinges, body.hinge_axes)
    return found.index_add(1, body.hinges[:, 1], (-fold).clamp_min(0))


def twist(body: ValidatedBody, posed: PosedBody) -> Float[Tensor, "frames joints"]:
    """How far each joint is turned about its own bone beyond the limit of its role [rad] (swing and twist apart)."""
    q = posed.pose.rotations
    along = (q[..., 1:] * body.skeleton.axes[:, :, 2]).sum(-1)
    sign = torch.where(q[..., 0] < 0, -1.0, 1.0).detach()
    angle = 2 * torch.atan2(sign * along, sign * q[..., 0] + 1e-9)
    low, high = body.skeleton.limits[:, 2].unbind(-1)
    excess = (angle - high).clamp_min(0) + (low - angle).clamp_min(0)
    return torch.cat([torch.zeros_like(excess[:, :1]), excess[:, 1:]], 1)


def limits(body: ValidatedBody, posed: PosedBody) -> Float[Tensor, "frames joints"]:
    """How far each joint but the root is beyond its limits, the worst of its three angles [rad]."""
    excess = limit_excess(body.skeleton, posed.pose)
    return torch.cat([torch.zeros_like(excess[:, :1]), excess[:, 1:]], 1)


def limit_excess(skeleton: Skeleton, pose: Pose) -> Float[Tensor, "*batch joints"]:
    """How far each joint is beyond its limits, the worst of its three angles [rad]."""
    angles = compound_angles(skeleton, pose)
    return (angles - clamp_angles(skeleton, angles)).abs().amax(-1)
