"""A motion in limb space as one row of joints per frame, each seen from what carries it, so that motions can be mixed.

Seen from its parent an arm that swings on a turning body is one number that changes, and what is added to a shoulder
moves the whole arm along.
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from jigdoll.rig.retarget.limb_motion import STATIONS, LimbMotion, LimbTrack, yaw

REST = np.eye(3)


@dataclass(frozen=True, eq=False)
class Parts:
    """What a motion does, frame by frame."""

    turns: Float[ndarray, "frames joints 3 3"]
    """Of root, trunk, neck, tail and the stations of every limb, each seen from what carries it."""
    reach: Float[ndarray, "frames values"]
    """The root's height and where limbs end."""
    place: Float[ndarray, "frames 3"]
    """Over the ground: x, z and heading."""
    contact: Bool[ndarray, "frames limbs"]

    def __len__(self) -> int:
        return len(self.turns)


def parts_of(lm: LimbMotion) -> Parts:
    """The parts of a motion."""
    chains = [_from_carrier(np.concatenate([lm.root[:, None], lm.trunk], 1), None)]
    if lm.neck is not None:
        chains.append(_from_carrier(lm.neck, lm.trunk[:, -1]))
    if lm.tail is not None:
        chains.append(_from_carrier(lm.tail, lm.root))
    for track in lm.limbs:
        carrier = _carrier(track, lm.root, lm.trunk)
        turns = track.turns if track.has[0] else np.concatenate([carrier[:, None], track.turns[:, 1:]], 1)
        chains.append(_from_carrier(turns, carrier))
    return Parts(
        turns=np.concatenate(chains, 1),
        reach=np.concatenate([lm.place[:, 1:2], *(track.end for track in lm.limbs)], 1),
        place=np.stack([lm.place[:, 0], lm.place[:, 2], lm.heading], -1),
        contact=np.stack([t.contact for t in lm.limbs], 1) if lm.limbs else np.zeros((len(lm), 0), bool),
    )


def motion_of(parts: Parts, like: LimbMotion) -> LimbMotion:
    """The motion that parts tell of; what does not change over time is as in another motion of the same parts."""
    at = 1 + like.trunk.shape[1]
    spine = _to_world(parts.turns[:, :at], None)
    root, trunk = spine[:, 0], spine[:, 1:]
    neck = tail = None
    if like.neck is not None:
        neck = _to_world(parts.turns[:, at : at + like.neck.shape[1]], trunk[:, -1])
        at += like.neck.shape[1]
    if like.tail is not None:
        tail = _to_world(parts.turns[:, at : at + like.tail.shape[1]], root)
        at += like.tail.shape[1]
    limbs = []
    for i, track in enumerate(like.limbs):
        turns = _to_world(parts.turns[:, at : at + len(STATIONS)], _carrier(track, root, trunk))
        if not track.has[0]:
            turns[:, 0] = REST
        end = parts.reach[:, 1 + 3 * i : 4 + 3 * i]
        limbs.append(replace(track, turns=turns, end=end, contact=parts.contact[:, i]))
        at += len(STATIONS)
    return replace(
        like,
        place=np.stack([parts.place[:, 0], parts.reach[:, 0], parts.place[:, 1]], -1),
        heading=parts.place[:, 2],
        root=root,
        trunk=trunk,
        neck=neck,
        tail=tail,
        limbs=tuple(limbs),
    )


def alike(first: LimbMotion, second: LimbMotion) -> tuple[LimbMotion, LimbMotion]:
    """Both motions with the same parts: limbs that both have, and a neck and a tail where one has them."""
    theirs = {_key(track): track for track in second.limbs}
    ours, others = [], []
    for track in first.limbs:
        other = theirs.get(_key(track))
        if other is None:
            continue
        has = track.has & other.has
        ours.append(replace(track, has=has))
        others.append(replace(_since_rest_of(other, track), has=has))
    grounded = first.grounded and second.grounded
    kind = first.kind
    first = replace(_with_middle(first, second), limbs=tuple(ours), grounded=grounded, centres={})
    return first, replace(_with_middle(second, first), limbs=tuple(others), grounded=grounded, kind=kind, centres={})


def local_velocity(parts: Parts, fps: float) -> Float[ndarray, "frames 3"]:
    """Of the root: to the left, ahead, and how fast it turns, per second."""
    step = np.gradient(parts.place, axis=0) * fps if len(parts) > 1 else np.zeros_like(parts.place)
    H = yaw(parts.place[:, 2])[:, [0, 2]][:, :, [0, 2]]
    return np.concatenate([np.einsum("fba,fb->fa", H, step[:, :2]), step[:, 2:]], -1)


def _key(track: LimbTrack) -> tuple[str, str, int]:
    return track.limb.kind, track.limb.side, track.limb.rank


def _since_rest_of(track: LimbTrack, like: LimbTrack) -> LimbTrack:
    """The track with turns since another one's rest: bones that lie flat in one source may hang down in the other."""
    turns = track.turns.copy()
    for station in range(len(STATIONS)):
        flat, theirs = np.allclose(track.rest[station], REST), np.allclose(like.rest[station], REST)
        if theirs and not flat:
            turns[:, station] = turns[:, station] @ track.rest[station].T
        elif flat and not theirs:
            turns[:, station] = turns[:, station] @ like.rest[station]
    return replace(track, limb=like.limb, turns=turns, rest=like.rest)


def _with_middle(lm: LimbMotion, other: LimbMotion) -> LimbMotion:
    """With a neck and a tail where the other one has them, held as their carriers are."""
    neck, tail = lm.neck, lm.tail
    if neck is None and other.neck is not None:
        neck = np.repeat(lm.trunk[:, -1:], other.neck.shape[1], 1)
    if tail is None and other.tail is not None:
        tail = np.repeat(lm.root[:, None], other.tail.shape[1], 1)
    return replace(lm, neck=neck, tail=tail)


def _carrier(track: LimbTrack, root: ndarray, trunk: ndarray) -> Float[ndarray, "frames 3 3"]:
    """What carries a limb: the chest for arms and wings, the root for the others."""
    return trunk[:, -1] if track.limb.kind in ("arm", "wing") else root


def _from_carrier(
    turns: Float[ndarray, "frames stations 3 3"], carrier: Float[ndarray, "frames 3 3"] | None
) -> Float[ndarray, "frames stations 3 3"]:
    first = turns[:, :1] if carrier is None else np.swapaxes(carrier, -1, -2)[:, None] @ turns[:, :1]
    return np.concatenate([first, np.swapaxes(turns[:, :-1], -1, -2) @ turns[:, 1:]], 1)


def _to_world(
    local: Float[ndarray, "frames stations 3 3"], carrier: Float[ndarray, "frames 3 3"] | None
) -> Float[ndarray, "frames stations 3 3"]:
    turns = local.copy()
    if carrier is not None:
        turns[:, 0] = carrier @ turns[:, 0]
    for i in range(1, turns.shape[1]):
        turns[:, i] = turns[:, i - 1] @ turns[:, i]
    return turns
