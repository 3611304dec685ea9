"""What limb space leaves out and two rigs may share: fingers, jaw, ears, and further joints of limbs built alike.

Details pass from rig to rig directly; they are no part of a `LimbMotion`, whose rows mean the same on every rig.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from jigdoll.kinematics import motion_to_world
from jigdoll.rig.anatomy import Anatomy
from jigdoll.rig.bones import LimbParts, middle_by_name, parts_at
from jigdoll.rig.names import read_name
from jigdoll.rig.retarget.apart import depths
from jigdoll.rig.retarget.bounds import Excess, excess_of
from jigdoll.rig.retarget.limb_motion import MiddlePart, canonical_turn, heading_of, middle_parts, trunk_of, yaw
from jigdoll.rig.retarget.touch import Touches, touches_of
from jigdoll.rig.retarget.turns import nearest_turns
from jigdoll.types import Motion

FINGERS = {"thumb": "thumb", "index": "index", "middle": "middle", "ring": "ring", "pinky": "little"}
"""What names call the fingers; `little` is the pinky too."""
_NEAR = 0.06
"""Places along limbs within this share of the limb are the same."""
_BORDER = 0.3
"""Trunks whose shares of the line with the neck differ by more than this end elsewhere."""
FACE = {"jaw": "jaw", "mandible": "jaw", "mouth": "jaw", "beak": "jaw", "ear": "ear", "ears": "ear", "tongue": "tongue"}


@dataclass(frozen=True, eq=False)
class Details:
    """How small parts turn, by what they are called on every rig (`left index 1`, `jaw 0`)."""

    turns: Mapping[str, Float[ndarray, "frames 3 3"]]
    """Since rest and since the joint before, in the canonical frame of the limb that carries the part."""
    middle: Mapping[MiddlePart, Float[ndarray, "frames joints 3 3"]]
    """Trunk, neck and tail joint by joint, as limb space has them at its stations: a snake has more joints."""
    splits: Mapping[str, Float[ndarray, "3"]]
    """Of each limb where along its chain its root, its middle and its end are, 0 to 1."""
    reaches: Mapping[str, Float[ndarray, "3"]]
    """Of each limb the way from its root to its end at rest."""
    trunk_share: float
    """How much of the way along trunk and neck is the trunk."""
    depths: Mapping[str, Float[ndarray, " frames"]]
    """How deep each arm and leg is in other flesh [body lengths]."""
    excess: Excess
    """How far joints are beyond their limits."""
    touches: Touches | None = None
    """What the hands touch."""


def details_of(anatomy: Anatomy, motion: Motion) -> Details:
    """The details of a motion of a working copy."""
    T = motion_to_world(anatomy.skeleton, motion)
    world = nearest_turns(T[..., :3, :3])
    R_rest = anatomy.T_rest[:, :3, :3]
    turns = {}
    for name, joint in detail_joints(anatomy).items():
        parent = anatomy.skeleton.parents[joint]
        local = R_rest[parent] @ np.swapaxes(world[:, parent], -1, -2) @ world[:, joint] @ R_rest[joint].T
        C = carrier_turn(anatomy, joint)
        turns[name] = C.T @ local @ C
    since = world @ anatomy.R_neutral.transpose(0, 2, 1)
    H = yaw(heading_of(since[:, anatomy.pelvis], motion.fps))
    free = np.einsum("fba,fjbc->fjac", H, since)
    middle: dict[MiddlePart, ndarray] = {part: free[:, list(chain)] for part, chain in middle_parts(anatomy).items()}
    splits = {parts.name: _split(anatomy, parts) for parts in anatomy.parts}
    P = anatomy.T_rest[:, :3, 3]
    reaches = {parts.name: P[parts.end] - P[parts.root] for parts in anatomy.parts}
    inside, excess = depths(anatomy, world, T[..., :3, 3]), excess_of(anatomy, world, T[..., :3, 3])
    return Details(turns, middle, splits, reaches, trunk_share(anatomy), inside, excess, touches_of(anatomy, motion))


def split_like(details: Details, anatomy: Anatomy, pairs: Mapping[int, str]) -> Anatomy:
    """The anatomy with limbs split where their partners are: names that one rig lacks tell where its knees are.

    `pairs` names the partner of each limb. A limb is split anew only if its own names say nothing and its chain has
    joints at all three places.
    """
    parts, pivots = list(anatomy.parts), {leg.parts.name: leg.pivot for leg in anatomy.legs}
    for i, name in pairs.items():
        theirs = details.splits.get(name)
        own = parts[i]
        if theirs is None or own.root == own.middle or middle_by_name(own.limb, anatomy.skeleton) is not None:
            continue
        chain = own.limb.joints
        far = np.abs(_along(anatomy, chain)[None] - theirs[:, None])
        first, middle, last = far.argmin(1).tolist()
        if first < middle < last and float(far.min(1).max()) < _NEAR:
            new = parts_at(own.limb, chain, first, middle, last, anatomy.T_rest[:, :3, 3])
            if pivots.get(own.name, new.end) in (new.end, *new.after):  # a foot still rolls where it rolled
                parts[i] = new
    legs = tuple(replace(leg, parts=parts[anatomy.parts.index(leg.parts)]) for leg in anatomy.legs)
    return replace(anatomy, parts=tuple(parts), legs=legs)


def same_line(anatomy: Anatomy, centres: Mapping[MiddlePart, Float[ndarray, " joints"]], share: float) -> bool:
    """Whether trunk and neck must be read as one line: without names their border is elsewhere than the source's."""
    named = any(read_name(anatomy.skeleton.names[joint]).kind == "head" for joint in anatomy.neck)
    both = "neck" in centres and bool(anatomy.neck)
    return both and not named and abs(trunk_share(anatomy) - share) > _BORDER


def trunk_share(anatomy: Anatomy) -> float:
    """How much of the way from the pelvis along trunk and neck is the trunk."""
    P = anatomy.T_rest[:, :3, 3]
    trunk, line = trunk_of(anatomy), [*trunk_of(anatomy), *anatomy.neck]
    ways = [
        float(np.linalg.norm(np.diff(P[list(chain)], axis=0), axis=1).sum()) for chain in (line[: len(trunk) + 1], line)
    ]
    return ways[0] / max(ways[1], 1e-9)


def _split(anatomy: Anatomy, parts: LimbParts) -> Float[ndarray, "3"]:
    at = _along(anatomy, parts.limb.joints)
    return at[[parts.limb.joints.index(joint) for joint in (parts.root, parts.middle, parts.end)]]


def _along(anatomy: Anatomy, chain: Sequence[int]) -> Float[ndarray, " joints"]:
    """Where along its chain each joint is, 0 to 1."""
    steps = np.linalg.norm(np.diff(anatomy.T_rest[list(chain), :3, 3], axis=0), axis=1)
    way = np.concatenate([[0.0], np.cumsum(steps)])
    return way / max(float(way[-1]), 1e-9)


def put_details(
    details: Details, anatomy: Anatomy, joints: Mapping[str, int]
) -> dict[int, Float[ndarray, "frames 3 3"]]:
    """For joints of the target that have a namesake: their turns since rest and since the joint before."""
    found = {}
    for name, joint in joints.items():
        if name in details.turns:
            C = carrier_turn(anatomy, joint)
            found[joint] = C @ details.turns[name] @ C.T
    return found


def detail_joints(anatomy: Anatomy) -> dict[str, int]:
    """The joints of a body that are details, by what they are called on every rig."""
    found: dict[str, int] = {}
    parents = anatomy.skeleton.parents
    main = _stations(anatomy)
    for parts in anatomy.parts:
        for where, chain in (("before", parts.before[:-1]), ("after", parts.after[1:])):
            for i, joint in enumerate(chain):
                if anatomy.skeleton.children[joint]:
                    found[f"{parts.name} {where} {i} of {len(chain)}"] = joint
    row: dict[str, int] = {}
    for joint, name in enumerate(anatomy.skeleton.names):
        words = read_name(name)
        what = next((FINGERS[w] for w in FINGERS if w in words.tokens), None) if words.finger else None
        what = what or ("little" if words.finger and "little" in words.tokens else None)
        what = what or next((FACE[w] for w in sorted(words.tokens) if w in FACE), None)
        if what is None or joint in main or not parents[joint] >= 0:
            continue
        label = f"{words.side or 'middle'} {what}"
        found.setdefault(f"{label} {row.setdefault(label, 0)}", joint)
        row[label] += 1
    return found


def carrier_turn(anatomy: Anatomy, joint: int) -> Float[ndarray, "3 3"]:
    """What turns the canonical limb that carries a joint into the resting one; identity off the limbs."""
    parents = anatomy.skeleton.parents
    carriers = {parts.end: parts for parts in anatomy.parts}
    while joint >= 0 and joint not in carriers:
        joint = parents[joint]
    if joint < 0:
        return np.eye(3)
    parts: LimbParts = carriers[joint]
    return canonical_turn(anatomy, parts, 2)


def _stations(anatomy: Anatomy) -> set[int]:
    """Joints that limb space speaks of."""
    limbs = {joint for p in anatomy.parts for joint in (*p.before[-1:], p.root, p.middle, p.end, *p.after[:1])}
    return limbs | set(anatomy.trunk) | set(anatomy.neck) | set(anatomy.tail)
