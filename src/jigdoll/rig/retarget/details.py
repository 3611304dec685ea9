"""What limb space leaves out and two rigs may share: fingers, jaw, ears, and further joints of limbs built alike.

Details pass from rig to rig directly; they are no part of a `LimbMotion`, whose rows mean the same on every rig.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from jigdoll.kinematics import motion_to_world
from jigdoll.rig.anatomy import Anatomy, LimbParts
from jigdoll.rig.names import read_name
from jigdoll.rig.retarget.limb_motion import canonical_turn
from jigdoll.rig.retarget.turns import nearest_turns
from jigdoll.types import Motion

FINGERS = {"thumb": "thumb", "index": "index", "middle": "middle", "ring": "ring", "pinky": "little"}
"""What names call the fingers; `little` is the pinky too."""
FACE = {"jaw": "jaw", "mandible": "jaw", "ear": "ear", "ears": "ear", "tongue": "tongue"}


@dataclass(frozen=True, eq=False)
class Details:
    """How small parts turn, by what they are called on every rig (`left index 1`, `jaw 0`)."""

    turns: Mapping[str, Float[ndarray, "frames 3 3"]]
    """Since rest and since the joint before, in the canonical frame of the limb that carries the part."""


def details_of(anatomy: Anatomy, motion: Motion) -> Details:
    """The details of a motion of a working copy."""
    parts = detail_joints(anatomy)
    if not parts:
        return Details({})
    world = nearest_turns(motion_to_world(anatomy.skeleton, motion)[..., :3, :3])
    R_rest = anatomy.T_rest[:, :3, :3]
    turns = {}
    for name, joint in parts.items():
        parent = anatomy.skeleton.parents[joint]
        local = R_rest[parent] @ np.swapaxes(world[:, parent], -1, -2) @ world[:, joint] @ R_rest[joint].T
        C = carrier_turn(anatomy, joint)
        turns[name] = C.T @ local @ C
    return Details(turns)


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
