"""How far joints turn: default limits by role and rest geometry, a hard clamp and a differentiable penalty.

A joint's compound angles are (bend, swing, twist) about the columns of its axes: twist runs along the bone, bend is the
hinge. A positive bend of a hinge folds it further than at rest. On the right side a bend keeps the sign that it has on
the left, swing and twist take the opposite one.
"""

import math
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.kinematics import rest_transforms
from jigdoll.math.rotations import compound_to_quaternion, quaternion_to_compound
from jigdoll.rig.limbs import find_limbs
from jigdoll.types import Limb, Pose, Skeleton

Role = Literal[
    "root",
    "spine",
    "neck",
    "head",
    "tail",
    "hip",
    "sprawled_hip",
    "knee",
    "ankle",
    "toe",
    "clavicle",
    "shoulder",
    "elbow",
    "wrist",
    "wing_shoulder",
    "wing_hinge",
    "tip",
    "free",
]

HINGES: tuple[Role, ...] = ("knee", "elbow", "wing_hinge")
"""Joints that fold one way only."""
STRAIGHT, FLEXED = 2.0, 150.0
"""How far a hinge opens and folds [degrees away from straight]."""
_BENT = 0.06
"""Below this sine of its angle a hinge is straight at rest and the anatomy, not the geometry, says how it folds."""
# Bend, swing and twist in degrees. A hinge's own bend comes from how far it is folded at rest.
DEGREES: dict[Role, tuple[tuple[float, float], tuple[float, float], tuple[float, float]]] = {
    "root": ((-180, 180), (-180, 180), (-180, 180)),
    "spine": ((-30, 30), (-30, 30), (-25, 25)),
    "neck": ((-50, 50), (-45, 45), (-35, 35)),
    "head": ((-60, 60), (-60, 60), (-45, 45)),
    "tail": ((-60, 60), (-60, 60), (-30, 30)),
    "hip": ((-110, 80), (-50, 50), (-45, 45)),
    "sprawled_hip": ((-70, 70), (-75, 75), (-60, 60)),
    "knee": ((0, 0), (-8, 8), (-15, 15)),
    "ankle": ((-80, 80), (-30, 30), (-25, 25)),
    "toe": ((-70, 70), (-15, 15), (-10, 10)),
    "clavicle": ((-20, 20), (-25, 25), (-15, 15)),
    "shoulder": ((-150, 90), (-110, 110), (-90, 90)),
    "elbow": ((0, 0), (-8, 8), (-80, 80)),
    "wrist": ((-75, 75), (-40, 40), (-45, 45)),
    "wing_shoulder": ((-90, 90), (-90, 90), (-60, 60)),
    "wing_hinge": ((0, 0), (-30, 30), (-30, 30)),
    "tip": ((0, 0), (0, 0), (0, 0)),
    "free": ((-60, 60), (-60, 60), (-45, 45)),
}

# The first joints of a limb, those between however many there are, and the last ones.
_CHAINS: dict[str, tuple[tuple[Role, ...], Role, tuple[Role, ...]]] = {
    "spine": ((), "spine", ()),
    "tail": ((), "tail", ()),
    "head": ((), "neck", ("head",)),
    "wing": (("wing_shoulder",), "wing_hinge", ()),
    "fin": (("wing_shoulder",), "wing_hinge", ()),
    "arm": (("shoulder", "elbow"), "wrist", ()),
    "leg": (("hip", "knee"), "knee", ("ankle", "toe")),
}


def with_default_limits(skeleton: Skeleton, limbs: tuple[Limb, ...] | None = None) -> Skeleton:
    """The same skeleton with axes that follow its limbs and limits by role; the rest pose stays what it was."""
    limbs = find_limbs(skeleton) if limbs is None else limbs
    return Skeleton(
        skeleton.names,
        skeleton.parents,
        skeleton.T_parent_joint,
        default_axes(skeleton, limbs),
        default_limits(skeleton, limbs),
    )


def joint_roles(skeleton: Skeleton, limbs: tuple[Limb, ...]) -> tuple[Role, ...]:
    """What each joint is for; joints of no limb (fingers, ears) turn freely within reason, bare leaves not at all."""
    children = skeleton.children
    roles: list[Role] = ["free" if kids else "tip" for kids in children]
    P = rest_transforms(skeleton)[:, :3, 3]
    for limb in limbs:
        chain = [joint for joint in limb.joints if children[joint] or joint == 0]
        for joint, role in zip(chain, _chain_roles(limb, chain, P), strict=True):
            roles[joint] = role
    roles[0] = "root"
    return tuple(roles)


def default_axes(skeleton: Skeleton, limbs: tuple[Limb, ...]) -> Float[Tensor, "joints 3 3"]:
    """Columns bend, swing, twist of every joint in its rest frame: twist along the bone, bend across the limb."""
    T = rest_transforms(skeleton).double()
    P, roles = T[:, :3, 3], joint_roles(skeleton, limbs)
    axes = torch.zeros(len(skeleton), 3, 3, dtype=torch.float64)
    for joint in range(len(skeleton)):
        bone = _bone(skeleton, P, joint)
        bend = _bend_axis(skeleton, P, joint, roles[joint])
        bend = bend - (bend @ bone) * bone
        if bend.norm() < 1e-3:
            # The bone runs along the wished axis: any axis across it serves.
            other = torch.eye(3, dtype=torch.float64)[int(bone.abs().argmin())]
            bend = torch.linalg.cross(bone, other)
        bend = bend / bend.norm()
        world = torch.stack([bend, torch.linalg.cross(bone, bend), bone], dim=1)
        axes[joint] = T[joint, :3, :3].T @ world
    return axes.to(skeleton.T_parent_joint.dtype)


def default_limits(skeleton: Skeleton, limbs: tuple[Limb, ...]) -> Float[Tensor, "joints 3 2"]:
    """Bounds [rad] of the angles about `default_axes`: by role, and for hinges by how far they are folded at rest."""
    P = rest_transforms(skeleton)[:, :3, 3].double()
    roles = joint_roles(skeleton, limbs)
    right = {joint for limb in limbs if limb.side == "right" for joint in limb.joints}
    limits = torch.zeros(len(skeleton), 3, 2, dtype=torch.float64)
    for joint, role in enumerate(roles):
        degrees = torch.tensor(DEGREES[role], dtype=torch.float64)
        if role in HINGES:
            rest = math.degrees(_folded(skeleton, P, joint))
            degrees[0] = hinge_bounds(rest)
        if joint in right:
            degrees[1:] = 0.0 - degrees[1:].flip(-1)
        limits[joint] = degrees.deg2rad()
    return limits.to(skeleton.T_parent_joint.dtype)


def hinge_bounds(rest: float) -> Float[Tensor, "2"]:
    """How far a hinge that is folded by `rest` [degrees] opens and folds from there [degrees]."""
    return torch.tensor([STRAIGHT - max(rest, STRAIGHT), FLEXED - rest], dtype=torch.float64)


def compound_angles(skeleton: Skeleton, pose: Pose) -> Float[Tensor, "*batch joints 3"]:
    """The compound angles [rad] of a pose about the skeleton's axes."""
    return quaternion_to_compound(pose.rotations, skeleton.axes)


def clamp_angles(skeleton: Skeleton, angles: Float[Tensor, "*batch joints 3"]) -> Float[Tensor, "*batch joints 3"]:
    """The nearest angles within the limits."""
    return torch.minimum(torch.maximum(angles, skeleton.limits[..., 0]), skeleton.limits[..., 1])


def clamp_pose(skeleton: Skeleton, pose: Pose) -> Pose:
    """The pose with every joint turned back to its limits; joints within them keep their rotation exactly."""
    angles = compound_angles(skeleton, pose)
    clamped = clamp_angles(skeleton, angles)
    moved = (clamped != angles).any(-1, keepdim=True)
    rotations = torch.where(moved, compound_to_quaternion(clamped, skeleton.axes), pose.rotations)
    return Pose(pose.root, rotations, pose.offsets, pose.scales)


def limit_penalty(skeleton: Skeleton, angles: Float[Tensor, "*batch joints 3"]) -> Float[Tensor, "*batch"]:
    """The sum over joints of squared excess beyond the limits [rad^2]: zero inside, smooth across the bound."""
    excess = angles - clamp_angles(skeleton, angles)
    return excess.square().sum((-1, -2))


def straightest_child(skeleton: Skeleton, P: Float[Tensor, "joints 3"], joint: int) -> int | None:
    """The child that goes on straightest from a joint's parent; the first one of the root; None at a tip."""
    kids = [kid for kid in skeleton.children[joint] if (P[kid] - P[joint]).norm() > 1e-9]
    parent = skeleton.parents[joint]
    before = P[joint] - P[parent] if parent >= 0 else None
    if not kids or before is None or before.norm() < 1e-9:
        return kids[0] if kids else None
    return max(kids, key=lambda kid: float((P[kid] - P[joint]) @ before / (P[kid] - P[joint]).norm()))


def _chain_roles(limb: Limb, chain: list[int], P: Float[Tensor, "joints 3"]) -> list[Role]:
    """The roles along one limb, without its bare end."""
    first, between, last = _CHAINS[limb.kind]
    roles: list[Role] = list(first)
    roles.extend(between for _ in range(len(chain) - len(first) - len(last)))
    roles.extend(last)
    if limb.kind == "arm" and len(chain) >= 4:
        roles = ["clavicle", *roles]
    if limb.kind == "leg" and len(chain) > 1:
        reach = P[chain[1]] - P[chain[0]]
        roles[0] = "sprawled_hip" if abs(reach[0]) > 0.5 * abs(reach[1]) else "hip"
    return roles[: len(chain)]


def _bone(skeleton: Skeleton, P: Float[Tensor, "joints 3"], joint: int) -> Float[Tensor, "3"]:
    """The direction of a joint's bone: to the child that goes on straightest, or on from its parent at a tip."""
    child, parent = straightest_child(skeleton, P, joint), skeleton.parents[joint]
    if child is not None:
        arrow = P[child] - P[joint]
        return arrow / arrow.norm()
    before = P[joint] - P[parent] if parent >= 0 else P.new_zeros(3)
    return P.new_tensor([0.0, 1.0, 0.0]) if before.norm() < 1e-9 else before / before.norm()


def _bend_axis(skeleton: Skeleton, P: Float[Tensor, "joints 3"], joint: int, role: Role) -> Float[Tensor, "3"]:
    """The hinge's axis in the world: across the plane of the limb; lateral on the middle line and for hips."""
    lateral = P.new_tensor([1.0, 0.0, 0.0])
    bone = _bone(skeleton, P, joint)
    forward = P.new_tensor([0.0, 0.0, 1.0])
    if role in ("knee", "elbow", "wing_hinge", "ankle", "toe"):
        before = P[joint] - P[skeleton.parents[joint]]
        normal = torch.linalg.cross(before / before.norm().clamp_min(1e-12), bone)
        if normal.norm() > _BENT:
            return normal
        # Straight at rest: a knee folds the shin backwards, an elbow the forearm forwards.
        fallback = torch.linalg.cross(bone, forward if role in ("elbow", "wing_hinge", "wrist") else -forward)
        return fallback if fallback.norm() > 0.1 else lateral
    if role in ("shoulder", "sprawled_hip", "wing_shoulder") and skeleton.children[joint]:
        normal = torch.linalg.cross(bone, _bone(skeleton, P, skeleton.children[joint][0]))
        upright = role == "shoulder" and abs(normal[0]) > 0.5 * normal.norm()
        if normal.norm() > _BENT and not upright:
            return normal
    return lateral


def _folded(skeleton: Skeleton, P: Float[Tensor, "joints 3"], joint: int) -> float:
    """How far a joint is folded at rest [rad away from straight]."""
    before = P[joint] - P[skeleton.parents[joint]]
    bone = _bone(skeleton, P, joint)
    return math.acos(max(-1.0, min(1.0, float(before @ bone / before.norm().clamp_min(1e-12)))))
