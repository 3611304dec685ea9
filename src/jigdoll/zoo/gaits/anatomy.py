"""A skeleton as a gait sees it: legs with their feet, the trunk that carries them, and all that swings along."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from jigdoll.errors import RigError
from jigdoll.rig.bones import SPRAWLED, bones_of
from jigdoll.rig.ik import Chain, make_chain
from jigdoll.rig.names import read_name
from jigdoll.rig.remember import remembered
from jigdoll.types import Limb, Skeleton

Plan = Literal["biped", "quadruped", "hexapod", "octopod"]


@dataclass(frozen=True, eq=False)
class Leg:
    """A leg: the chain that inverse kinematics bends, and the foot that stands on the ground."""

    side: Literal["left", "right"]
    rank: int
    chain: Chain
    """From the hip to the ankle of a flat foot, else to the toe (or to the end of a leg without one)."""
    joints: tuple[int, ...]
    """The joints of the chain."""
    foot: int | None
    """The ankle of a flat foot, whose pitch is steered."""
    toe: int
    """The joint that stays planted through a stance."""
    tip: int | None
    """Where the toe ends; it stays planted too."""
    heel: Float[Tensor, "3"]
    """The heel of a flat foot at rest [m], world; the toe of any other."""
    reach: tuple[float, float]
    """Shortest and longest distance between the ends of the chain [m]."""
    sprawled: bool
    """Whether the foot stands well outside the hip."""

    @property
    def sign(self) -> float:
        """+1 on the left (+X), -1 on the right."""
        return 1.0 if self.side == "left" else -1.0


@dataclass(frozen=True, eq=False)
class Anatomy:
    """What a gait needs to know about a body, besides what `rig.anatomy` measures."""

    skeleton: Skeleton
    points: Float[Tensor, "joints 3"]
    """The joints at rest [m], world."""
    offsets: Float[Tensor, "joints 3"]
    """From each joint's parent to it at rest [m], world."""
    levels: tuple[tuple[Int[Tensor, " _"], Int[Tensor, " _"]], ...]
    """The joints of each level of the tree below the root, and their parents."""
    R_world_joint: Float[Tensor, "joints 3 3"]
    """The joints' frames at rest."""
    plan: Plan
    legs: tuple[Leg, ...]
    spine: tuple[int, ...]
    """After the root, up to the chest."""
    neck: tuple[int, ...]
    """Up to the head itself."""
    tail: tuple[int, ...]
    arms: tuple[Limb, ...]
    wings: tuple[Limb, ...]
    loose: tuple[tuple[int, ...], ...]
    """Chains that belong to no limb: ears, trunk, antennae."""
    leg_length: float
    """Mean distance from hip to planted toe at rest [m]."""
    body_length: float
    """Largest extent of the joints at rest [m]."""

    @property
    def sprawled(self) -> bool:
        return all(leg.sprawled for leg in self.legs)

    @property
    def chest(self) -> int:
        return self.spine[-1] if self.spine else 0

    @property
    def upright(self) -> bool:
        """Whether the trunk stands on end, as a human's does."""
        if self.plan != "biped" or not self.spine:
            return False
        trunk = self.points[self.chest] - self.points[0]
        return bool(trunk[1] > trunk[2].abs())

    def pair(self, leg: Leg) -> Leg:
        """The leg across."""
        return next(other for other in self.legs if other.rank == leg.rank and other.side != leg.side)


@remembered
def study(skeleton: Skeleton) -> Anatomy:
    """Find legs, feet and trunk; a body without pairs of legs cannot walk and is refused."""
    bones = bones_of(skeleton)
    T = torch.from_numpy(bones.T_rest)
    points = T[:, :3, 3]
    by_kind = {kind: [limb for limb in bones.limbs if limb.kind == kind] for kind in ("leg", "arm", "wing")}
    left, right = ([limb for limb in by_kind["leg"] if limb.side == side] for side in ("left", "right"))
    plans: dict[int, Plan] = {1: "biped", 2: "quadruped", 3: "hexapod", 4: "octopod"}
    if len(left) != len(right) or len(left) not in plans:
        raise RigError(
            f"a gait needs one to four pairs of legs; this rig shows {len(left)} left and {len(right)} right legs, "
            "so name its joints left_hip, left_knee ... or use another rig"
        )
    legs = tuple(_leg(skeleton, points, limb, pairs=len(left)) for limb in (*left, *right))
    short = [skeleton.names[leg.toe] for leg in legs if points[leg.toe, 1] > 0.35 * points[leg.joints[0], 1]]
    if short:
        raise RigError(
            f"the legs of this rig end above the ground, at {', '.join(short)}: their feet hang on other joints "
            "(controls of an artist's tool); bake the feet into the legs or rig the mesh anew"
        )
    lengths = [float((points[leg.toe] - points[leg.joints[0]]).norm()) for leg in legs]
    return Anatomy(
        skeleton=skeleton,
        points=points,
        offsets=points - points[[max(parent, 0) for parent in skeleton.parents]],
        levels=_levels(skeleton),
        R_world_joint=T[:, :3, :3],
        plan=plans[len(left)],
        legs=legs,
        spine=tuple(j for j in bones.trunk if j),
        neck=bones.neck,
        tail=bones.tail,
        arms=tuple(by_kind["arm"]),
        wings=tuple(by_kind["wing"]),
        loose=_loose(skeleton, bones.limbs),
        leg_length=sum(lengths) / len(lengths),
        body_length=float((points.amax(0) - points.amin(0)).max()),
    )


def _levels(skeleton: Skeleton) -> tuple[tuple[Int[Tensor, " _"], Int[Tensor, " _"]], ...]:
    """The tree, level by level."""
    levels, above = [], {0}
    while True:
        joints = [joint for joint, parent in enumerate(skeleton.parents) if parent in above]
        if not joints:
            return tuple(levels)
        levels.append((torch.tensor(joints), torch.tensor([skeleton.parents[joint] for joint in joints])))
        above = set(joints)


def _leg(skeleton: Skeleton, points: Float[Tensor, "joints 3"], limb: Limb, *, pairs: int) -> Leg:
    """Split a leg into what bends and what stands."""
    joints = list(limb.joints)
    # Joints that lie on top of each other (a leg's helper bones) leave nothing to bend between them.
    joints = [j for i, j in enumerate(joints) if not i or float((points[j] - points[joints[i - 1]]).norm()) > 1e-6]
    height = float(points[joints[0], 1] - points[joints[-1], 1])
    tip, toe = None, joints[-1]
    if len(joints) >= 4 and float(points[joints[-2], 1] - points[joints[-1], 1]) < 0.15 * height:
        tip, toe = joints[-1], joints[-2]
        joints = joints[:-1]
    foot, heel = None, points[toe].clone()
    if len(joints) >= 4:
        bone = points[toe] - points[joints[-2]]
        low = float(points[joints[-2], 1] - points[toe, 1]) < 0.13 * height
        if low or float(bone[1].abs()) < 0.6 * float(bone[[0, 2]].norm()):
            foot = joints[-2]
            joints = joints[:-1]
            heel = points[foot] - 0.3 * torch.tensor([float(bone[0]), 0.0, float(bone[2])], dtype=bone.dtype)
            heel[1] = points[tip if tip is not None else toe, 1]
    out = points[toe] - points[joints[0]]
    sprawled = float(out[0].abs()) > SPRAWLED * abs(float(out[1]))
    front = pairs > 1 and limb.rank == 0
    folds = {} if sprawled else _wrist(points, joints)
    chain = make_chain(skeleton, joints, hint=(-1.0, 0.0, 0.0) if front else (1.0, 0.0, 0.0), folds=folds)
    assert limb.side != "middle"
    return Leg(limb.side, limb.rank, chain, tuple(joints), foot, toe, tip, heel, chain.reach, sprawled)


def _wrist(points: Float[Tensor, "joints 3"], joints: list[int]) -> dict[int, tuple[float, float, float]]:
    """A nearly straight joint below an elbow that points back folds the other way, as every wrist does."""
    if len(joints) != 4:
        return {}
    upper, lower, last = points[joints].diff(dim=0)
    elbow, wrist = torch.linalg.cross(upper, lower), torch.linalg.cross(lower, last)
    bend = float(torch.atan2(wrist.norm(), lower @ last))
    if bend > 0.45 or float(elbow @ wrist) <= 0:
        return {}
    x, y, z = (float(v) for v in -elbow / elbow.norm())
    return {joints[2]: (x, y, z)}


def _loose(skeleton: Skeleton, limbs: tuple[Limb, ...]) -> tuple[tuple[int, ...], ...]:
    """Chains of joints that no limb claims, without their weightless ends."""
    claimed = {joint for limb in limbs for joint in limb.joints} | {0}
    chains = []
    for start, parent in enumerate(skeleton.parents):
        if start in claimed or parent not in claimed:
            continue
        chain = [start]
        while len(skeleton.children[chain[-1]]) == 1:
            chain.append(skeleton.children[chain[-1]][0])
        if len(chain) > 1 and "jaw" not in read_name(skeleton.names[start]).tokens:
            chains.append(tuple(chain[:-1]))
    return tuple(chains)
