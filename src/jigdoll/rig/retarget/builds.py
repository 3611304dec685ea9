"""Hind legs of three long bones: rigs call the knee the middle of some and the hock of others.

Thigh, shin and metatarsus are upper bone, lower bone and foot where the middle is the knee, and blade, upper and lower
bone where it is the hock. Followed by name a shin would do what a thigh does, and such animals walk crouched. Which of
the two the middle is, is seen from the side to which it folds.
"""

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from jigdoll.rig.anatomy import Anatomy, LimbParts
from jigdoll.rig.retarget.limb_motion import STANDING, LimbMotion, LimbTrack, canonical_direction
from jigdoll.rig.retarget.turns import shortest_turns

CLEAR = 0.12
"""A leg that is bent by less than this sine does not show to which side it folds."""
LONG = 0.5
"""The third bone is at least so long, as a share of the shorter one of the two others."""
SEEN = 1e-4
"""How much it counts that bones lie along the leg, where its motion hardly tells where they lie."""


def crossed_build(lm: LimbMotion, anatomy: Anatomy, parts: LimbParts, track: LimbTrack) -> int:
    """1 where the middle is the source's knee and the target's hock, -1 the other way about, 0 where they are alike."""
    if lm.kind not in STANDING or anatomy.kind not in STANDING or parts.root == parts.middle or not track.has[2]:
        return 0
    if not _is_last(anatomy, parts) or not _is_last_of(lm, track):
        return 0
    theirs, mine = fold_of(track), _fold_at_rest(anatomy, parts)
    if theirs > CLEAR and mine < -CLEAR and parts.before and _is_long(anatomy, parts, parts.before[-1], parts.root):
        return 1
    if theirs < -CLEAR and mine > CLEAR and parts.after and _is_long(anatomy, parts, parts.end, parts.after[0]):
        return -1
    return 0


def crossed_turns(
    anatomy: Anatomy, parts: LimbParts, track: LimbTrack, build: int
) -> dict[int, Float[ndarray, "frames 3 3"]]:
    """World rotations, in the heading's frame, of a leg whose middle is another joint than the source's.

    Thigh and metatarsus of such legs stay about parallel, so that one stands in for the other where it is not known.
    """
    T = track.turns
    if build > 0:
        hip = parts.before[-1]
        rest = _canonical(anatomy, parts, hip, parts.end)
        ways = {hip: T[:, 1] @ rest.T, parts.root: T[:, 2] @ rest.T, parts.middle: T[:, 1] @ rest.T}
        if track.has[3]:
            ways[parts.end] = T[:, 3]
    else:
        rest = _canonical(anatomy, parts, parts.middle, parts.after[:2][-1])
        thigh = T[:, 0] if track.has[0] else T[:, 2] @ rest.T
        ways = {parts.root: thigh, parts.middle: T[:, 1] @ rest.T, parts.end: T[:, 2] @ rest.T}
        if track.has[3]:
            ways[parts.after[0]] = T[:, 3]
    return {joint: way @ anatomy.T_rest[joint, :3, :3] for joint, way in ways.items()}


def fold_of(track: LimbTrack) -> float:
    """To which side a leg is folded at its rest: the sine at its middle, positive for knees, negative for hocks.

    Limb space does not keep where the bones of a rest lie; but they are what the turns bring to the leg's end in every
    frame: `end = upper_turn @ upper + lower_turn @ lower`, solved by least squares.
    """
    A = np.concatenate([track.turns[:, 1], track.turns[:, 2]], 2).reshape(-1, 6)
    along = np.tile(0.5 * canonical_direction(track.limb), 2)
    held = SEEN * len(track.end)
    bones = np.linalg.solve(A.T @ A + held * np.eye(6), A.T @ track.end.reshape(-1) + held * along)
    return _sine(bones[:3], bones[3:])


def _fold_at_rest(anatomy: Anatomy, parts: LimbParts) -> float:
    P = anatomy.T_rest[:, :3, 3]
    return _sine(P[parts.middle] - P[parts.root], P[parts.end] - P[parts.middle])


def _sine(upper: Float[ndarray, " 3"], lower: Float[ndarray, " 3"]) -> float:
    size = float(np.linalg.norm(upper) * np.linalg.norm(lower))
    return float(np.cross(upper, lower)[0]) / max(size, 1e-9)


def _is_long(anatomy: Anatomy, parts: LimbParts, start: int, end: int) -> bool:
    """Whether a bone is as long as the bones of a leg are."""
    P = anatomy.T_rest[:, :3, 3]
    bones = [float(np.linalg.norm(P[b] - P[a])) for a, b in ((parts.root, parts.middle), (parts.middle, parts.end))]
    return float(np.linalg.norm(P[end] - P[start])) > LONG * min(bones)


def _is_last(anatomy: Anatomy, parts: LimbParts) -> bool:
    return parts.limb.kind == "leg" and parts.limb.rank == max(leg.parts.limb.rank for leg in anatomy.legs)


def _is_last_of(lm: LimbMotion, track: LimbTrack) -> bool:
    return track.limb.rank == max(t.limb.rank for t in lm.limbs if t.limb.kind == "leg")


def _canonical(anatomy: Anatomy, parts: LimbParts, top: int, pivot: int) -> Float[ndarray, "3 3"]:
    """What turns a leg that hangs down from a joint into the resting one; the pivot is where the source has it."""
    way = (anatomy.T_rest[pivot, :3, 3] - anatomy.T_rest[top, :3, 3]) * [0.0, 1.0, 1.0]
    return shortest_turns(canonical_direction(parts.limb)[None], way[None])[0]
