"""From a species to its skeleton: names, rest transforms, compound axes and joint limits.

Rest rotations are all the identity, so a joint's frame is the world's at rest. A joint's axes are (bend, swing,
twist): twist runs along its bone, bend is the hinge. A positive bend of a knee, elbow, ankle or toe folds it further
than at rest; a positive bend of a hip or shoulder whose limb lies in a fore-and-aft plane turns about +X (the limb
swings back), as does one of the spine, neck, head and jaw (nose down). On the right side bends keep the sign of the
left; swings and twists have the opposite sign.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.rig.limits import DEGREES, HINGES, hinge_bounds
from jigdoll.types import Skeleton
from jigdoll.zoo.species import Chain, Line, Species

Point = tuple[float, float, float]
_RANKS = {1: ("",), 2: ("front_", "hind_"), 3: ("front_", "middle_", "hind_"), 4: ("1_", "2_", "3_", "4_")}
_LIMITS = DEGREES | {
    "stiff": ((-2, 2), (-2, 2), (-2, 2)),
    "soft": DEGREES["free"],
    "jaw": ((-15, 35), (0, 0), (0, 0)),
}
"""By kind of joint: the limits of every rig's roles, and those that only a species knows."""


class _Tree:
    """Joints as they are added, with where they stand in the world."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.parents: list[int] = []
        self.points: list[Point] = []
        self.kinds: list[str] = []

    def add(self, name: str, parent: str | None, point: Point, kind: str) -> None:
        self.names.append(name)
        self.parents.append(-1 if parent is None else self.names.index(parent))
        self.points.append(point)
        self.kinds.append(kind)

    def line(self, names: list[str], parent: str, points: Chain, kinds: list[str]) -> None:
        for name, point, kind in zip(names, points, kinds, strict=True):
            self.add(name, parent, point, kind)
            parent = name


def build_skeleton(species: Species) -> Skeleton:
    """The skeleton of a species at rest, with compound axes and limits."""
    tree = _Tree()
    _add_middle(tree, species)
    for sign, side in ((1.0, "left"), (-1.0, "right")):
        _add_side(tree, species, sign, side)
    points = torch.tensor(tree.points, dtype=torch.float64)
    offsets = points.clone()
    offsets[1:] -= points[tree.parents[1:]]
    T_parent_joint = torch.eye(4).repeat(len(tree.names), 1, 1)
    T_parent_joint[:, :3, 3] = offsets.float()
    axes, limits = _axes_and_limits(tree, points)
    return Skeleton(tuple(tree.names), tuple(tree.parents), T_parent_joint, axes.float(), limits.float())


def joint_points(skeleton: Skeleton) -> Float[Tensor, "joints 3"]:
    """Where the joints of a skeleton with identity rest rotations stand [m], world."""
    points = skeleton.T_parent_joint[:, :3, 3].double().clone()
    for joint, parent in enumerate(skeleton.parents):
        if parent >= 0:
            points[joint] += points[parent]
    return points


def _add_middle(tree: _Tree, species: Species) -> None:
    """Pelvis, spine, neck, head, tail and what hangs on the head's middle line."""
    inner = [f"spine_{i}" for i in range(1, len(species.spine) - 1)]
    names = ["pelvis", *inner, "chest"]
    tree.add("pelvis", None, (0.0, *species.spine[0]), "root")
    kind = "stiff" if species.stiff else "spine"
    tree.line(names[1:], "pelvis", _in_plane(species.spine[1:]), [kind] * (len(names) - 1))
    cervicals = [f"neck_{i}" for i in range(1, len(species.neck) - 1)]
    kinds = ["neck"] * len(cervicals) + ["head", "tip"]
    tree.line([*cervicals, "head", "head_tip"], "chest", _in_plane(species.neck), kinds)
    for stem, line, parent in (("tail", species.tail, "pelvis"), ("trunk", species.trunk, "head")):
        joints = [f"{stem}_{i}" for i in range(1, len(line))] + [f"{stem}_tip"] * bool(line)
        tree.line(joints, parent, _in_plane(line), ["tail"] * (len(line) - 1) + ["tip"] * bool(line))
    if species.jaw:
        tree.line(["jaw", "jaw_tip"], "head", _in_plane(species.jaw), ["jaw", "tip"])


def _add_side(tree: _Tree, species: Species, sign: float, side: str) -> None:
    """The limbs and ears of one side."""

    def mirrored(chain: Chain) -> Chain:
        return tuple((sign * x, y, z) for x, y, z in chain)

    for stem, chain in (("ear", species.ears), ("antenna", species.antennae)):
        names = [f"{side}_{stem}_{i}" for i in range(1, len(chain))] + [f"{side}_{stem}_tip"] * bool(chain)
        tree.line(names, "head", mirrored(chain), ["soft"] * (len(chain) - 1) + ["tip"] * bool(chain))
    if species.arms:
        names = [f"{side}_{part}" for part in ("clavicle", "shoulder", "elbow", "wrist", "hand_tip")]
        kinds = ["clavicle", "shoulder", "elbow", "wrist", "tip"]
        first = 5 - len(species.arms)
        tree.line(names[first:], "chest", mirrored(species.arms), kinds[first:])
    if species.wings:
        names = [f"{side}_wing_{part}" for part in ("shoulder", "elbow", "wrist", "tip")]
        kinds = ["wing_shoulder", "wing_hinge", "wing_hinge", "tip"]
        tree.line(names, "chest", mirrored(species.wings), kinds)
    for rank, chain, parent in zip(_RANKS[len(species.legs)], species.legs, _leg_parents(species), strict=True):
        names = [f"{side}_{rank}{part}" for part in ("hip", "knee", "ankle", "toe", "toe_tip")]
        sprawled = abs(chain[1][0] - chain[0][0]) > 0.5 * abs(chain[1][1] - chain[0][1])
        kinds = ["sprawled_hip" if sprawled else "hip", "knee", "ankle", "toe", "tip"]
        tree.line(names, parent, mirrored(chain), kinds)


def _leg_parents(species: Species) -> tuple[str, ...]:
    """What each pair of legs hangs on: the foremost of several on the chest, the last on the pelvis."""
    return {
        1: ("pelvis",),
        2: ("chest", "pelvis"),
        3: ("chest", "chest" if len(species.spine) < 3 else "spine_1", "pelvis"),
        4: ("chest", "chest", "pelvis", "pelvis"),
    }[len(species.legs)]


def _in_plane(line: Line) -> Chain:
    return tuple((0.0, y, z) for y, z in line)


def _axes_and_limits(
    tree: _Tree, points: Float[Tensor, "joints 3"]
) -> tuple[Float[Tensor, "joints 3 3"], Float[Tensor, "joints 3 2"]]:
    """Compound axes as columns, and the bounds of their angles [rad]."""
    axes = torch.zeros(len(points), 3, 3, dtype=torch.float64)
    limits = torch.zeros(len(points), 3, 2, dtype=torch.float64)
    for joint, kind in enumerate(tree.kinds):
        bone, bend = _bone(tree, points, joint), _bend_axis(tree, points, joint)
        bend = torch.nn.functional.normalize(bend - (bend @ bone) * bone, dim=0)
        axes[joint] = torch.stack([bend, torch.linalg.cross(bone, bend), bone], dim=1)
        degrees = torch.tensor(_LIMITS[kind], dtype=torch.float64)
        if kind in HINGES:
            rest = math.degrees(_rest_angle(points, tree.parents[joint], joint, bone))
            degrees[0] = hinge_bounds(rest)
        if tree.names[joint].startswith("right_"):
            # A mirrored rotation keeps its angle about the mirrored bend and reverses it about swing and twist.
            degrees[1:] = -degrees[1:].flip(-1)
        limits[joint] = degrees.deg2rad()
    return axes, limits


def _bone(tree: _Tree, points: Float[Tensor, "joints 3"], joint: int) -> Float[Tensor, "3"]:
    """The direction of a joint's bone: to its first child, or on from its parent at a tip."""
    child = next((c for c, parent in enumerate(tree.parents) if parent == joint), None)
    start, end = (joint, child) if child is not None else (tree.parents[joint], joint)
    return torch.nn.functional.normalize(points[end] - points[start], dim=0)


def _bend_axis(tree: _Tree, points: Float[Tensor, "joints 3"], joint: int) -> Float[Tensor, "3"]:
    """The hinge's axis: across the plane of the limb; the world's X on the middle line and for a straight limb."""
    lateral = torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)
    kind, bone = tree.kinds[joint], _bone(tree, points, joint)
    if kind in ("hip", "shoulder", "wing_shoulder", "sprawled_hip"):
        child = tree.parents.index(joint)
        normal = torch.linalg.cross(bone, _bone(tree, points, child))
        if kind == "hip" or (kind == "shoulder" and abs(normal[0]) > 0.5 * normal.norm()):
            return lateral
    elif kind in ("knee", "elbow", "wing_hinge", "ankle", "toe"):
        normal = torch.linalg.cross(points[joint] - points[tree.parents[joint]], bone)
    else:
        return lateral
    return torch.nn.functional.normalize(normal, dim=0) if normal.norm() > 1e-6 else lateral


def _rest_angle(points: Float[Tensor, "joints 3"], parent: int, joint: int, bone: Float[Tensor, "3"]) -> float:
    """How far a hinge is folded at rest [rad away from straight]."""
    upper = torch.nn.functional.normalize(points[joint] - points[parent], dim=0)
    return math.acos(max(-1.0, min(1.0, float(upper @ bone))))
