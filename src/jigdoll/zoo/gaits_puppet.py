"""A body that is posed by world-axis turns: curves go in, legs reach their feet, a Motion comes out.

Every joint turns by d along the rest pose's world axes: D_j = D_parent @ d_j. In these axes a bend about +X lowers what
points forwards, a turn about +Y leads to the left, a roll about +Z lifts the left side, on every rig.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from jigdoll.math.rotations import (
    matrix_to_quaternion,
    quaternion_to_matrix,
    quaternion_to_rotvec,
    rotvec_to_quaternion,
)
from jigdoll.rig.ik import Chain, rotation_between, solve
from jigdoll.types import Motion, Pose
from jigdoll.zoo.gaits_anatomy import Anatomy, Leg
from jigdoll.zoo.gaits_feet import Feet

Curve = Float[Tensor, " frames"]
Turns = Float[Tensor, "frames 3 3"]

REACH = 0.985
"""Share of a leg's full length that a stance may use: the last bit of straightening would pop the knee."""


class Puppet:
    """Turns of all joints over the frames of a clip, filled in from the root outwards."""

    def __init__(self, anatomy: Anatomy, frames: int) -> None:
        self.anatomy = anatomy
        self.root = torch.zeros(frames, 3, dtype=torch.float64)
        self.turns = torch.eye(3, dtype=torch.float64).repeat(frames, len(anatomy.skeleton), 1, 1)
        self._world: tuple[Tensor, Tensor] | None = None

    def turn(self, joint: int, d: Turns) -> None:
        """Add a turn to a joint, after those it has."""
        self.turns[:, joint] = self.turns[:, joint] @ d
        self._world = None

    def world(self) -> tuple[Float[Tensor, "frames joints 3 3"], Float[Tensor, "frames joints 3"]]:
        """The world turn D and the place of every joint."""
        if self._world is None:
            points, parents = self.anatomy.points, self.anatomy.skeleton.parents
            D, P = [self.turns[:, 0]], [points[0] + self.root]
            for joint in range(1, len(parents)):
                above = parents[joint]
                D.append(D[above] @ self.turns[:, joint])
                P.append(P[above] + D[above] @ (points[joint] - points[above]))
            self._world = torch.stack(D, 1), torch.stack(P, 1)
        return self._world

    def above(self, joint: int) -> Turns:
        """The world turn of a joint's parent."""
        parent = self.anatomy.skeleton.parents[joint]
        return (
            self.world()[0][:, parent]
            if parent >= 0
            else torch.eye(3, dtype=torch.float64).expand(len(self.root), 3, 3)
        )

    def lead(self, joints: tuple[int, ...], D: Turns) -> None:
        """Turn the last of these joints to D, each of them doing an equal share."""
        if not joints:
            return
        rest = self.above(joints[0]).transpose(-1, -2) @ D
        share = power(rest, 1 / len(joints))
        for joint in joints:
            self.turns[:, joint] = share
        self._world = None

    def aim(self, joint: int, child: int, direction: Float[Tensor, "frames 3"]) -> None:
        """Turn a joint so that its bone to a child points along a world direction."""
        bone = self.anatomy.points[child] - self.anatomy.points[joint]
        local = (self.above(joint).transpose(-1, -2) @ direction[..., None])[..., 0]
        self.turns[:, joint] = rotation_between(bone.expand_as(local), local)
        self._world = None

    def lower_to(self, feet: Feet) -> float:
        """Lower the body, all along the clip alike, until every standing foot is within reach; how far [m]."""
        drop = 0.0
        for i, leg in enumerate(self.anatomy.legs):
            offset = ankle_targets(self.anatomy, leg, feet, i) - self.world()[1][:, leg.joints[0]]
            reach = REACH * leg.chain.reach[1]
            flat = offset[:, [0, 2]].norm(dim=-1)
            allowed = (reach**2 - flat.square()).clamp_min(1e-6).sqrt()
            excess = -offset[:, 1] - allowed
            excess = torch.where(flat < reach, excess, flat)[feet.stance[:, i]]
            drop = max(drop, float(excess.max()) if len(excess) else 0.0)
        self.root[:, 1] -= drop
        self._world = None
        return drop

    def stand(self, feet: Feet) -> Float[Tensor, "frames legs"]:
        """Bend every leg so that its foot is where it shall be; what is missing [m]."""
        gaps = []
        for i, leg in enumerate(self.anatomy.legs):
            target = ankle_targets(self.anatomy, leg, feet, i)
            D, P = self.world()
            above = self.above(leg.joints[0])
            local = above.transpose(-1, -2) @ (target - P[:, leg.joints[0]])[..., None]
            solution = solve(leg.chain, local[..., 0], prefer=_preferred(leg.chain, feet.swing[:, i]))
            for bone, joint in enumerate(leg.joints[:-1]):
                self.turns[:, joint] = solution.turns[:, bone]
            gaps.append(solution.gap)
            self._world = None
        self._place_feet(feet)
        return torch.stack(gaps, 1)

    def _place_feet(self, feet: Feet) -> None:
        """Turn ankles and toes as the steps ask."""
        for i, leg in enumerate(self.anatomy.legs):
            steered = [(leg.foot, feet.foot_pitch[:, i])] if leg.foot is not None else []
            if leg.tip is not None:
                steered.append((leg.toe, feet.toe_pitch[:, i]))
            for joint, pitch in steered:
                D = about_y(feet.yaw[:, i]) @ about_x(pitch)
                self.turns[:, joint] = self.above(joint).transpose(-1, -2) @ D
                self._world = None

    def motion(self, fps: float, name: str) -> Motion:
        """The clip, in the joints' own frames."""
        R = self.anatomy.R_world_joint
        rotations = continuous(matrix_to_quaternion(R.transpose(-1, -2) @ self.turns @ R))
        return Motion(Pose(self.root.float(), rotations.float()), fps, name)


def ankle_targets(anatomy: Anatomy, leg: Leg, feet: Feet, i: int) -> Float[Tensor, "frames 3"]:
    """Where the end of a leg's chain goes: the toe, or the ankle that a flat foot on that toe holds up."""
    if leg.foot is None:
        return feet.toe[:, i]
    D = about_y(feet.yaw[:, i]) @ about_x(feet.foot_pitch[:, i])
    return feet.toe[:, i] - D @ (anatomy.points[leg.toe] - anatomy.points[leg.foot])


def about_x(angle: Curve) -> Turns:
    """Positive lowers what points forwards."""
    return _about(angle, 1, 2)


def about_y(angle: Curve) -> Turns:
    """Positive turns to the left."""
    return _about(angle, 2, 0)


def about_z(angle: Curve) -> Turns:
    """Positive lifts the left side."""
    return _about(angle, 0, 1)


def euler(yaw: Curve, roll: Curve, pitch: Curve) -> Turns:
    """Pitch first, then roll, then yaw."""
    return about_y(yaw) @ about_z(roll) @ about_x(pitch)


def power(R: Turns, share: float) -> Turns:
    """A share of a rotation, the short way round."""
    rotvec = quaternion_to_rotvec(matrix_to_quaternion(R))
    return quaternion_to_matrix(rotvec_to_quaternion(share * rotvec))


def continuous(q: Float[Tensor, "frames joints 4"]) -> Float[Tensor, "frames joints 4"]:
    """The same rotations with signs chosen so that no component jumps from frame to frame."""
    flips = torch.where((q[1:] * q[:-1]).sum(-1, keepdim=True) < 0, -1.0, 1.0).cumprod(0)
    return torch.cat([q[:1], q[1:] * flips])


def _preferred(chain: Chain, swing: Curve) -> Float[Tensor, "frames bends"] | None:
    """A swinging foot folds the lower joints of its leg first."""
    if len(chain.hinges) < 2:
        return None
    ramp = torch.linspace(0.0, 0.35, len(chain.hinges), dtype=torch.float64)
    lifted = torch.sin(math.pi * swing.clamp(0, 1)).square()
    return chain.rest + lifted[:, None] * ramp


def _about(angle: Curve, i: int, j: int) -> Turns:
    R = torch.eye(3, dtype=angle.dtype).repeat(len(angle), 1, 1)
    c, s = angle.cos(), angle.sin()
    R[:, i, i], R[:, j, j], R[:, i, j], R[:, j, i] = c, c, -s, s
    return R


Stance = Bool[Tensor, "frames legs"]
