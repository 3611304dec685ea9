"""What is natural for limbs that the source lacks: arms hang, wings lie back or beat, fingers are a little bent."""

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from jigdoll.rig.anatomy import Anatomy, LimbParts
from jigdoll.rig.retarget.details import detail_joints
from jigdoll.rig.retarget.limb_motion import LimbMotion, canonical_direction, canonical_turn, limb_bones
from jigdoll.rig.retarget.turns import blend_turns, from_rotvec, shortest_turns

RELAXED = 0.12
"""How far relaxed arms stand off the body [rad]."""
FOLDED = (0.25, 0.0, -0.97)
"""Where a folded left wing points."""
LIES_BACK = 0.8
"""A wing that points back by more than this cosine at rest is folded already."""
BEAT = 0.7
"""How far a wing swings up and down when it beats [rad]."""
BEATS = 2.2
"""Beats per second of wings on a body of one metre; smaller bodies beat faster, with the root of their length."""
LAG = 0.9
"""How far the outer wing is behind the inner one [rad of the beat]."""
CURL = 0.35
"""How far each joint of a relaxed finger is bent [rad]."""
STRAIGHT = 0.2
"""Fingers that are bent by more than this at rest are relaxed already [rad]."""


def rest_limb(wanted: dict[int, ndarray], anatomy: Anatomy, parts: LimbParts, lm: LimbMotion) -> None:
    """Put what is natural on a limb that has nobody to follow."""
    if parts.limb.kind == "arm":
        _hang(wanted, anatomy, parts, lm)
    elif parts.limb.kind == "wing":
        _beat(wanted, anatomy, parts, lm) if beats(lm) else _fold(wanted, anatomy, parts, lm)


def beats(lm: LimbMotion) -> bool:
    """Whether wings that have nobody to follow beat: the source is off the ground."""
    return not lm.grounded and lm.kind in ("bird", "flyer", "insect", "fish")


def _hang(wanted: dict[int, ndarray], anatomy: Anatomy, parts: LimbParts, lm: LimbMotion) -> None:
    """Arms that hang at the sides, a little bent, with the chest."""
    out = RELAXED if parts.limb.side == "left" else -RELAXED
    hang = np.array([np.sin(out), -np.cos(out), 0.05])
    chest = lm.trunk[:, -1]
    upright = blend_turns(np.broadcast_to(np.eye(3), chest.shape), chest, np.full(len(chest), 0.5))
    for station in (1, 2):
        forward = hang + np.array([0.0, 0.0, 0.25 * (station - 1)])
        _point(wanted, anatomy, parts, station, upright, forward[None])


def _fold(wanted: dict[int, ndarray], anatomy: Anatomy, parts: LimbParts, lm: LimbMotion) -> None:
    """Wings that lie back along the body, turned as wholes; wings that rest so stay as they are."""
    P = anatomy.T_rest[:, :3, 3]
    first = parts.limb.joints[0]
    way = P[parts.limb.joints[-1]] - P[first]
    if float(-way[2]) > LIES_BACK * float(np.linalg.norm(way)):
        return
    turn = shortest_turns(way[None], _sided(parts, np.array([FOLDED])))[0]
    wanted[first] = lm.trunk[:, -1] @ turn @ anatomy.T_rest[first, :3, :3]


def _beat(wanted: dict[int, ndarray], anatomy: Anatomy, parts: LimbParts, lm: LimbMotion) -> None:
    """Wings that beat at the pace of a body of this size, the outer part behind the inner one."""
    phase = 2 * np.pi * BEATS / np.sqrt(max(anatomy.body_length, 0.05)) * np.arange(len(lm)) / lm.fps
    for station in (1, 2):
        angle = BEAT * np.sin(phase - LAG * (station - 1))
        way = np.stack([np.cos(angle), np.sin(angle), np.full(len(lm), -0.1)], -1)
        _point(wanted, anatomy, parts, station, lm.trunk[:, -1], _sided(parts, way))


def _sided(parts: LimbParts, way: Float[ndarray, "frames 3"]) -> Float[ndarray, "frames 3"]:
    return way if parts.limb.side == "left" else way * [-1.0, 1.0, 1.0]


def _point(
    wanted: dict[int, ndarray],
    anatomy: Anatomy,
    parts: LimbParts,
    station: int,
    frame: Float[ndarray, "frames 3 3"],
    way: Float[ndarray, "some 3"],
) -> None:
    """Let a limb's bone point along a way in a moving frame."""
    bone = limb_bones(parts)[station]
    if bone is None:
        return
    turn = shortest_turns(np.broadcast_to(canonical_direction(parts.limb), way.shape), way)
    rest = canonical_turn(anatomy, parts, station)
    wanted[bone[0]] = frame @ turn @ rest.T @ anatomy.T_rest[bone[0], :3, :3]


def relaxed_fingers(anatomy: Anatomy) -> dict[int, Float[ndarray, "3 3"]]:
    """Of each finger joint the turn since rest and since the joint before that relaxes a spread hand."""
    joints, P = detail_joints(anatomy), anatomy.T_rest[:, :3, 3]
    found: dict[int, ndarray] = {}
    for side, sign in (("left", 1.0), ("right", -1.0)):
        first, last = joints.get(f"{side} index 0"), joints.get(f"{side} little 0", joints.get(f"{side} ring 0"))
        if first is None or last is None:
            continue
        across = P[last] - P[first]
        across = across / max(float(np.linalg.norm(across)), 1e-9)
        for finger in ("index", "middle", "ring", "little"):
            chain = [joints[name] for i in range(4) if (name := f"{side} {finger} {i}") in joints]
            if len(chain) > 1 and _bent(P[chain]) < STRAIGHT:
                found |= {joint: from_rotvec(sign * CURL * across) for joint in chain}
    return found


def _bent(points: Float[ndarray, "joints 3"]) -> float:
    """The largest angle between bones in a row [rad]."""
    ways = np.diff(points, axis=0)
    ways = ways / np.maximum(np.linalg.norm(ways, axis=1, keepdims=True), 1e-9)
    return float(np.arccos(np.clip((ways[1:] * ways[:-1]).sum(1), -1, 1)).max(initial=0.0))
