"""Which way is up, which way a character faces and where its mirror plane is, from its shape and joint names.

Evidence is counted, not decided by one rule: each sign (feet, head, tail, names, the habit of files) adds to a score,
and what was seen is kept in words so that a person can judge and overrule the guess.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.spatial import KDTree
from torch import Tensor

from jigdoll.asset.mirror_plane import Array, NamedJoints, Surface, array, mirror_plane, sample_surface, unit
from jigdoll.errors import JigdollError

_HEAD = re.compile(r"head|skull|nose|snout|jaw|mouth|beak|eye|neck", re.I)
_TAIL = re.compile(r"tail", re.I)
_TOE = re.compile(r"toe|ball", re.I)
_ANKLE = re.compile(r"ankle|foot|heel|paw|hoof", re.I)
_STANDARD = 1.5
"""What a format's standard front weighs; of 270 nameless glTF files it turns 60 that shape alone would turn round."""
_LOW = re.compile(r"toe|ball|ankle|foot|heel|paw|hoof", re.I)


@dataclass(frozen=True, eq=False)
class FrameGuess:
    """How a character stands in its file: the axes are unit vectors of the file's frame."""

    up: Float[Tensor, "3"]
    forward: Float[Tensor, "3"]
    left: Float[Tensor, "3"]
    """Normal of the mirror plane; left x up = forward."""
    origin: Float[Tensor, "3"]
    """A point of the mirror plane, at the middle of the shape."""
    asymmetry: float
    """Mean distance of the mirrored surface from the surface, in parts of the bounding box's diagonal."""
    confidence: float
    """0..1 for the whole frame: the weaker of up and forward."""
    reasons: tuple[str, ...]
    """What spoke for the choice, in words."""

    @property
    def is_symmetric(self) -> bool:
        """Whether the two halves agree well enough to average them."""
        return self.asymmetry < 0.012

    @property
    def T_world_file(self) -> Float[Tensor, "4 4"]:
        """Turns the file's frame into ours: left +X, up +Y, forward +Z, the mirror plane at x = 0."""
        T = torch.eye(4, dtype=self.up.dtype)
        T[:3, :3] = torch.stack([self.left, self.up, self.forward])
        T[:3, 3] = -T[:3, :3] @ self.origin
        return T


def guess_frame(
    vertices: Float[Tensor, "vertices 3"],
    faces: Int[Tensor, "faces 3"],
    *,
    up: Float[Tensor, "3"] | Sequence[float | int] | None = None,
    forward: Float[Tensor, "3"] | Sequence[float | int] | None = None,
    joint_names: Sequence[str] = (),
    joint_positions: Float[Tensor, "joints 3"] | None = None,
    faces_z: bool = False,
) -> FrameGuess:
    """Guess up, forward and the mirror plane; `up` and `forward` overrule, joints (where there are any) help.

    `faces_z` says that the file's format calls +Z its front, as glTF's standard does: that counts where no joint's name
    tells the front.
    """
    surface = sample_surface(vertices, faces)
    joints = NamedJoints(tuple(joint_names), None if joint_positions is None else array(joint_positions))
    reasons: list[str] = []
    fixed_up = None if up is None else unit(array(up))
    fixed_forward = None if forward is None else unit(array(forward))

    normal, origin, asymmetry = mirror_plane(surface, joints, fixed_up, fixed_forward, reasons)
    if fixed_up is not None:
        chosen_up, up_confidence = fixed_up, 1.0
    else:
        chosen_up, up_confidence = _guess_up(surface, normal, joints, fixed_forward, reasons)
    if fixed_forward is not None:
        ahead = fixed_forward - (fixed_forward @ chosen_up) * chosen_up
        if np.linalg.norm(ahead) < 0.1:
            raise JigdollError("forward and up point the same way; give two directions at a right angle")
        chosen_forward, forward_confidence = unit(ahead), 1.0
    else:
        chosen_forward, forward_confidence = _guess_forward(
            surface, normal, chosen_up, joints, reasons, faces_z=faces_z
        )
    left = np.cross(chosen_up, chosen_forward)
    return FrameGuess(
        up=_tensor(chosen_up),
        forward=_tensor(chosen_forward),
        left=_tensor(left),
        origin=_tensor(origin),
        asymmetry=float(asymmetry),
        confidence=float(min(up_confidence, forward_confidence)),
        reasons=tuple(reasons),
    )


# -------------------------------------------------------------------------------------------------------- up


def _guess_up(
    surface: Surface, normal: Array, joints: NamedJoints, forward: Array | None, reasons: list[str]
) -> tuple[Array, float]:
    """Of the file's six axes that lie in the mirror plane, the one the character stands along."""
    candidates = []
    for axis in (*np.eye(3), *-np.eye(3)):
        flat = axis - (axis @ normal) * normal
        if np.linalg.norm(flat) > 0.7 and (forward is None or abs(axis @ forward) < 0.5):
            candidates.append(unit(flat))
    feet, head = joints.mean(_LOW), joints.mean(_HEAD)
    scores = []
    for up in candidates:
        score = _up_habit(up) + 1.2 * _stands_well(surface, up, normal)
        if feet is not None:
            low, high = (surface.points @ up).min(), (surface.points @ up).max()
            score += 2.0 * (1 - (feet @ up - low) / (high - low))
        if feet is not None and head is not None:
            score += 0.5 * float(unit(head - feet) @ up)
        scores.append(score)
    order = np.argsort(scores)[::-1]
    margin = scores[order[0]] - scores[order[1]] if len(scores) > 1 else 1.0
    up = candidates[order[0]]
    by_name = ", where its foot joints are low" if feet is not None else ""
    reasons.append(f"it stands best along {_axis_name(up)}{by_name}")
    return up, _confidence(margin)


def _up_habit(up: Array) -> float:
    """Files are written with +Y up, some with +Z."""
    if up[1] > 0.9:
        return 0.6
    return 0.35 if up[2] > 0.9 else 0.0


def _stands_well(surface: Surface, up: Array, normal: Array) -> float:
    """0..1: soles that lie flat, left and right of the middle, below the mass, and little bulk low down."""
    height = surface.points @ up
    low, high = height.min(), height.max()
    share = (height - low) / (high - low)
    ground = share < 0.04
    if ground.sum() < 3:
        return 0.0
    flat = surface.points - np.outer(height, up)
    soles, middle = flat[ground], flat.mean(0)
    reach = np.linalg.norm(np.ptp(flat, axis=0))
    center = (soles.min(0) + soles.max(0)) / 2
    balance = 1 - min(1.0, float(np.linalg.norm(center - middle) / (0.25 * reach)))
    spread = min(1.0, float(np.linalg.norm(np.ptp(soles, axis=0)) / (0.5 * reach)))
    down = float((surface.normals[ground] @ -up > 0.7).mean())
    up_top = float((surface.normals[share > 0.96] @ up > 0.7).mean()) if (share > 0.96).any() else 0.0
    # Legs are thin: the lower third of a standing animal holds less surface spread than its upper part.
    bulk = float(share.mean())
    covered = len(np.unique(np.round((soles - soles.min(0)) / (0.04 * reach)), axis=0))
    whole = len(np.unique(np.round((flat - flat.min(0)) / (0.04 * reach)), axis=0))
    slender = 1 - min(1.0, covered / max(1, whole) / 0.5)
    # Feet stand in pairs: between the left and the right one nothing touches the ground.
    side = (soles - middle) @ normal
    gap = np.abs(side) / max(float(np.abs(side).max()), 1e-9)
    paired = 1 - min(1.0, 4 * float((gap < 0.25).mean()))
    bulk = float(np.clip(2 * bulk - 0.5, 0, 1))
    return 0.2 * balance + 0.15 * spread + 0.1 * (down - up_top) + 0.15 * bulk + 0.1 * slender + 0.3 * paired


# -------------------------------------------------------------------------------------------------------- forward


def _guess_forward(
    surface: Surface, normal: Array, up: Array, joints: NamedJoints, reasons: list[str], *, faces_z: bool
) -> tuple[Array, float]:
    """Of the two ways along the mirror plane, the one the head looks and the toes point."""
    ahead = unit(np.cross(normal, up))
    score = 0.0
    named = _joint_signs(joints, up, ahead, surface)
    if faces_z and not named and abs(float(ahead[2])) > 0.5:
        named = [("the format faces +Z", _STANDARD, float(ahead[2]))]
    for name, weight, value in (*named, *_shape_signs(surface, up, ahead)):
        score += weight * value
        if abs(weight * value) > 0.15:
            reasons.append(f"{name} ({'+' if value > 0 else '-'}{abs(weight * value):.1f} for {_axis_name(ahead)})")
    habit = ahead[2] if up[1] > 0.9 else -ahead[1]
    score += 0.15 * float(habit)
    return (ahead if score >= 0 else -ahead), _confidence(abs(score))


def _joint_signs(joints: NamedJoints, up: Array, ahead: Array, surface: Surface) -> list[tuple[str, float, float]]:
    """What the names of the joints say about `ahead`: (sign, weight, -1..1)."""
    signs: list[tuple[str, float, float]] = []
    if joints.positions is None:
        return signs
    everything = joints.positions.mean(0)
    scale = 0.05 * surface.diagonal

    def vote(name: str, weight: float, arrow: Array | None) -> None:
        if arrow is not None:
            signs.append((name, weight, float(np.clip(arrow @ ahead / scale, -1, 1))))

    twins = joints.right_to_left()
    if twins is not None:
        vote("left and right by name", 3.0, np.cross(twins[0], up))
    toe, ankle = joints.mean(_TOE), joints.mean(_ANKLE)
    if toe is not None and ankle is not None:
        vote("toes by name", 1.0, 3 * (toe - ankle))
    head, tail = joints.mean(_HEAD), joints.mean(_TAIL)
    if head is not None:
        vote("the head by name", 1.0, head - everything)
    if tail is not None:
        vote("the tail by name", 1.0, everything - tail)
    return signs


def _shape_signs(surface: Surface, up: Array, ahead: Array) -> list[tuple[str, float, float]]:
    """What the shape says about `ahead`: (sign, weight, -1..1)."""
    height = surface.points @ up
    along = surface.points @ ahead
    low, tall = height.min(), np.ptp(height)
    back, long = along.min(), np.ptp(along)
    side = surface.points @ np.cross(up, ahead)
    share = (along - back) / long

    def end(front: bool, depth: float) -> Array:
        return share > 1 - depth if front else share < depth

    def thickness(front: bool) -> float:
        part = (share > 0.75) & (share < 0.95) if front else (share < 0.25) & (share > 0.05)
        return float(np.std(height[part])) if part.sum() > 5 else 0.0

    lift = (height[end(True, 0.15)].mean() - height[end(False, 0.15)].mean()) / tall
    thick = (thickness(True) - thickness(False)) / (thickness(True) + thickness(False) + 1e-9)
    width_front, width_back = (float(np.std(side[end(f, 0.08)])) for f in (True, False))
    blunt = (width_front - width_back) / (width_front + width_back + 1e-9)
    lengthwise = np.clip((long / tall - 0.35) / 0.3, 0, 1)
    signs = [
        ("one end is carried higher, like a head", 1.1 * lengthwise, float(np.clip(3 * lift, -1, 1))),
        ("one end is deeper, like a head", 0.5 * lengthwise, float(np.clip(1.5 * thick, -1, 1))),
        ("one end is blunter than a tail", 0.2 * lengthwise, float(blunt)),
    ]
    top = along[height > low + 0.75 * tall]
    nose = (float(np.quantile(top, 0.998)) + float(np.quantile(top, 0.002))) / 2 - float(np.median(top))
    signs.append(("a nose sticks out", 0.6 * (1 - lengthwise), float(np.clip(nose / (0.04 * tall), -1, 1))))
    plane = np.stack([side, along], 1)
    soles = _soles(plane, (height - low) / tall)
    if len(soles) >= 6:
        # Beasts with six legs and more carry their bulk, the abdomen, behind the legs and the head close before them.
        stand = float(np.mean([sole[:, 1].mean() for sole in soles]))
        middle = along[np.abs(side - np.median(side)) < 0.1 * np.ptp(side)]
        overhang = (stand - middle.min()) - (middle.max() - stand)
        return [("the abdomen hangs out behind", 1.5, float(np.clip(4 * overhang / long, -1, 1)))]
    feet = _toes_ahead(plane, soles, (height - low) / tall)
    if feet is not None:
        signs.append(("toes reach out", 1.2, float(np.clip(feet / (0.02 * surface.diagonal), -1, 1))))
    return signs


def _soles(plane: Array, share: Array) -> list[Array]:
    """The patches of surface near the ground, seen from above as (side, along)."""
    ground = plane[share < 0.05]
    if len(ground) < 5:
        return []
    radius = 0.06 * float(np.linalg.norm(np.ptp(plane, axis=0)))
    labels = _clusters(ground, radius)
    patches = [ground[labels == label] for label in range(labels.max() + 1)]
    most = max(len(patch) for patch in patches)
    return [patch for patch in patches if len(patch) >= max(3, 0.1 * most)]


def _toes_ahead(plane: Array, soles: list[Array], share: Array) -> float | None:
    """How far the soles reach ahead of the ankles above them, minus how far they reach behind [file units]."""
    above = plane[(share > 0.07) & (share < 0.14)]
    margin = 0.03 * float(np.linalg.norm(np.ptp(plane, axis=0)))
    total, weight = 0.0, 0.0
    for sole in soles:
        low, high = sole.min(0) - margin, sole.max(0) + margin
        length = high[1] - low[1]
        beside = above[(above[:, 0] >= low[0]) & (above[:, 0] <= high[0])]
        beside = beside[(beside[:, 1] >= low[1] - length) & (beside[:, 1] <= high[1] + length)]
        shin = beside[(beside[:, 1] >= low[1]) & (beside[:, 1] <= high[1])]
        # What is longer than the foot below it is no shin but a belly.
        if len(shin) < 3 or len(shin) < 0.6 * len(beside):
            continue
        middle = float(np.median(shin[:, 1]))
        reach = (float(np.quantile(sole[:, 1], 0.95)) - middle) - (middle - float(np.quantile(sole[:, 1], 0.05)))
        total, weight = total + reach * len(sole), weight + len(sole)
    return total / weight if weight else None


# -------------------------------------------------------------------------------------------------------- small parts


def _clusters(points: Array, radius: float) -> Array:
    """Single-linkage clusters."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    pairs = KDTree(points).query_pairs(radius / 3, output_type="ndarray")
    ones = np.ones(len(pairs))
    graph = coo_matrix((ones, (pairs[:, 0], pairs[:, 1])), shape=(len(points), len(points)))
    return connected_components(graph, directed=False)[1]


def _confidence(margin: float) -> float:
    return float(1 - 0.5 * np.exp(-3 * max(margin, 0.0)))


def _axis_name(direction: Array) -> str:
    axis = int(np.abs(direction).argmax())
    return ("+" if direction[axis] > 0 else "-") + "XYZ"[axis]


def _tensor(x: Array) -> Tensor:
    return torch.tensor(np.asarray(x), dtype=torch.float32)
