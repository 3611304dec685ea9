"""A body that is posed by world-axis turns: curves go in, legs reach their feet, a Motion comes out.

Every joint turns by d along the rest pose's world axes: D_j = D_parent @ d_j. In these axes a bend about +X lowers what
points forwards, a turn about +Y leads to the left, a roll about +Z lifts the left side, on every rig.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.math.curves import smoothstep
from jigdoll.math.rotations import (
    matrix_to_quaternion,
    quaternion_to_matrix,
    quaternion_to_rotvec,
    rotvec_to_quaternion,
)
from jigdoll.rig.ik import Chain, rotation_between, solve, stack_chains
from jigdoll.types import Motion, Pose
from jigdoll.zoo.gaits.anatomy import Anatomy, Leg
from jigdoll.zoo.gaits.feet import Feet

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
            a = self.anatomy
            D = self.turns.clone()
            P = (a.points[0] + self.root)[:, None].expand(-1, len(a.points), -1).clone()
            for joints, above in a.levels:
                D_above = D[:, above]
                D[:, joints] = D_above @ self.turns[:, joints]
                P[:, joints] = P[:, above] + (D_above @ a.offsets[joints, :, None])[..., 0]
            self._world = D, P
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

    def bend(
        self,
        shoulder: int,
        elbow: int,
        wrist: int,
        upper: Float[Tensor, "frames 3"],
        lower: Float[Tensor, "frames 3"],
    ) -> None:
        """Point an arm's two bones along world directions; the shoulder twists so that the elbow only hinges."""
        points = self.anatomy.points
        at_rest = [points[b] - points[a] for a, b in ((shoulder, elbow), (elbow, wrist))]
        if float(torch.linalg.cross(*at_rest).norm()) < 1e-3 * float(at_rest[0].norm() * at_rest[1].norm()):
            self.aim(shoulder, elbow, upper)
            self.aim(elbow, wrist, lower)
            return
        D = _frame(upper, lower) @ _frame(*(b[None] for b in at_rest)).transpose(-1, -2)
        self.turns[:, shoulder] = self.above(shoulder).transpose(-1, -2) @ D
        self._world = None
        self.aim(elbow, wrist, lower)

    def lower_to(self, feet: Feet, *, reach: float = REACH) -> tuple[float, float]:
        """Lower the body, all along the clip alike, until every standing foot is within reach.

        How far that was, and by how much some foot is now too close for its leg to fold [m].
        """
        P = self.world()[1]
        offsets, drop, squeeze = [], 0.0, 0.0
        for i, leg in enumerate(self.anatomy.legs):
            offset = ankle_targets(self.anatomy, leg, feet, i) - P[:, leg.joints[0]]
            offsets.append(offset)
            offset = offset[feet.stance[:, i]]
            if not len(offset):
                continue
            flat, most = offset[:, [0, 2]].norm(dim=-1), reach * leg.reach[1]
            allowed = (most**2 - flat.square()).clamp_min(1e-6).sqrt()
            excess = torch.where(flat < most, -offset[:, 1] - allowed, flat)
            drop = max(drop, float(excess.max()))
        for leg, offset in zip(self.anatomy.legs, offsets, strict=True):
            offset = offset + offset.new_tensor([0.0, drop, 0.0])
            squeeze = max(squeeze, leg.reach[0] * 1.01 - float(offset.norm(dim=-1).min()))
        self.root[:, 1] -= drop
        self._world = None
        return drop, squeeze

    def keep_off_ground(self) -> None:
        """Raise tails and trunks that would cut into the ground, all along the clip alike."""
        a = self.anatomy
        margin = 0.02 * a.body_length
        for chain in (a.tail, *a.loose):
            if not chain:
                continue
            below = [*chain, *a.skeleton.children[chain[-1]]]
            least = torch.minimum(a.points[below, 1], torch.tensor(margin, dtype=torch.float64))
            base = a.points[chain[0]]
            # What points backwards rises when it turns about +X, what points forwards about -X.
            way = 1.0 if float(a.points[below[-1], 2]) < float(base[2]) else -1.0
            length = float((a.points[below[-1]] - base).norm())
            for _ in range(8):
                deficit = float((least - self.world()[1][:, below, 1]).max())
                if deficit <= 1e-9:
                    break
                # Shared out along the chain, so that it curls rather than kinks.
                angle = self.root.new_full((len(self.root),), way * 1.5 * (deficit / length + 0.02) / len(chain))
                for joint in chain:
                    self.turns[:, joint] = about_x(angle) @ self.turns[:, joint]
                self._world = None

    def stand(self, feet: Feet) -> Float[Tensor, "frames legs"]:
        """Bend every leg so that its foot is where it shall be; what is missing [m]."""
        legs = self.anatomy.legs
        D, P = self.world()
        gaps = torch.zeros(len(self.root), len(legs), dtype=torch.float64)
        for bones in sorted({len(leg.joints) for leg in legs}):
            group = [i for i, leg in enumerate(legs) if len(leg.joints) == bones]
            hips = [legs[i].joints[0] for i in group]
            above = D[:, [self.anatomy.skeleton.parents[hip] for hip in hips]].transpose(0, 1)
            target = torch.stack([ankle_targets(self.anatomy, legs[i], feet, i) for i in group])
            local = (above.transpose(-1, -2) @ (target - P[:, hips].transpose(0, 1))[..., None])[..., 0]
            chain, swing = stack_chains([legs[i].chain for i in group]), feet.swing[:, group].T
            far = local.new_tensor([legs[i].reach[1] for i in group])[:, None]
            solution = solve(chain, _held_back(local, far, swing), prefer=_preferred(chain, swing))
            for bone in range(bones - 1):
                self.turns[:, [legs[i].joints[bone] for i in group]] = solution.turns[:, :, bone].transpose(0, 1)
            gaps[:, group] = solution.gap.T
        self._world = None
        self._place_feet(feet)
        return gaps

    def _place_feet(self, feet: Feet) -> None:
        """Turn ankles and toes as the steps ask."""
        D, _ = self.world()
        for i, leg in enumerate(self.anatomy.legs):
            steered = [(leg.foot, feet.foot_pitch[:, i])] if leg.foot is not None else []
            if leg.tip is not None:
                steered.append((leg.toe, feet.toe_pitch[:, i]))
            above = D[:, leg.joints[-2]]
            for joint, pitch in steered:
                wanted = about_y(feet.yaw[:, i]) @ about_x(pitch)
                self.turns[:, joint] = above.transpose(-1, -2) @ wanted
                above = wanted
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


def _held_back(
    target: Float[Tensor, "legs frames 3"], far: Float[Tensor, "legs 1"], swing: Float[Tensor, "legs frames"]
) -> Float[Tensor, "legs frames 3"]:
    """Targets of swinging feet, drawn in where they would stretch the leg straight: a straight knee pops."""
    distance = target.norm(dim=-1)
    soft, room = 0.9 * far, (REACH - 0.9) * far
    eased = torch.where(distance > soft, soft + room * (1 - torch.exp(-(distance - soft) / room)), distance)
    share = smoothstep(torch.minimum(swing, 1 - swing) / 0.12)
    return target * (1 + share * (eased / distance.clamp_min(1e-9) - 1))[..., None]


def _preferred(chain: Chain, swing: Float[Tensor, "legs frames"]) -> Float[Tensor, "legs frames bends"] | None:
    """How a leg shares out its folding: a swinging foot folds the lower joints first."""
    count = chain.hinges.shape[-2]
    if count < 2:
        return None
    last = torch.linspace(0.0, 1.0, count, dtype=torch.float64)
    wrist = (chain.rest < 0.45) & (last > 0)
    # A wrist is a strut while its leg stands and does most of the folding of a foreleg; a hock shares it with the knee.
    stiff = torch.where(wrist, chain.rest.clamp_max(0.02), chain.rest)
    lifted = torch.sin(math.pi * swing.clamp(0, 1)).square()
    return stiff + lifted[..., None] * torch.where(wrist, 1.0, 0.25) * last


def _frame(first: Float[Tensor, "frames 3"], second: Float[Tensor, "frames 3"]) -> Turns:
    """Columns: the first direction, the hinge that turns it towards the second, and what is across both."""
    x = torch.nn.functional.normalize(first, dim=-1)
    y = torch.nn.functional.normalize(torch.linalg.cross(x, second), dim=-1)
    return torch.stack([x, y, torch.linalg.cross(x, y)], -1)


def _about(angle: Curve, i: int, j: int) -> Turns:
    R = torch.eye(3, dtype=angle.dtype).repeat(len(angle), 1, 1)
    c, s = angle.cos(), angle.sin()
    R[:, i, i], R[:, j, j], R[:, i, j], R[:, j, i] = c, c, -s, s
    return R
