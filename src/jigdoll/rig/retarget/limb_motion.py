"""Limb space: a motion described by what limbs do, the same for every rig of a kind of body.

Rotations are turns since a canonical rest, seen in the frame of the body's heading. Bones of arms, legs, wings and fins
are brought to one direction each first (arms and legs hang down, wings reach out), so that a T pose and an A pose mean
the same; the legs of animals are brought under the hip as they are bent; feet that lie flat, the trunk, the neck and
the tail turn since the pose in which the body carries itself. Lengths are in leg lengths of the body, or in lengths of
the limb.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from jigdoll.rig.anatomy import FLAT, Anatomy, BodyKind, LimbParts
from jigdoll.rig.retarget.standing import Standing, standing_of
from jigdoll.rig.retarget.turns import bone_centres, fit_turns, nearest_turns, shortest_turns
from jigdoll.types import Limb, Motion

MiddlePart = Literal["trunk", "neck", "tail"]
TRUNK, NECK, TAIL = 6, 5, 8
"""Stations along the middle line at which its turns are kept."""
STATIONS = ("before", "upper", "lower", "end", "after")
"""Stations of a limb: collar or shoulder blade, upper bone, lower bone, foot or hand, toes or fingers."""
STANDING: tuple[BodyKind, ...] = ("quadruped", "biped", "bird")
"""Bodies whose legs stand under them, bent as they are built."""
HEADING_SECONDS = 0.4
"""A heading is smoothed over this time: a stride's sway is no turn."""


@dataclass(frozen=True, eq=False)
class LimbTrack:
    """What one limb does."""

    limb: Limb
    turns: Float[ndarray, "frames 5 3 3"]
    """At each station the turn since the canonical rest, in the heading's frame."""
    has: Bool[ndarray, " 5"]
    """Which stations the source has; the others go on as the one before."""
    rest: Float[ndarray, "5 3 3"]
    """What turns the canonical bone into the source's resting bone; identity for flat bones."""
    end: Float[ndarray, "frames 3"]
    """From the limb's root to its end, in lengths of the limb, in the heading's frame."""
    contact: Bool[ndarray, " frames"]
    """When it stands on the ground."""


@dataclass(frozen=True, eq=False)
class LimbMotion:
    """A motion in limb space."""

    kind: BodyKind
    fps: float
    name: str
    place: Float[ndarray, "frames 3"]
    """Of the pelvis: over the ground since the first frame in leg lengths, above it in hip heights. Of what swims,
    flies or creeps in body lengths; its height is 1 where the pelvis is as high as at rest."""
    heading: Float[ndarray, " frames"]
    """About the vertical since the first frame [rad]."""
    root: Float[ndarray, "frames 3 3"]
    """The root's turn since it stood, in the heading's frame."""
    trunk: Float[ndarray, "frames trunk_stations 3 3"]
    neck: Float[ndarray, "frames neck_stations 3 3"] | None
    tail: Float[ndarray, "frames tail_stations 3 3"] | None
    limbs: tuple[LimbTrack, ...]
    grounded: bool
    """Whether it goes on legs: a bird in flight does not."""
    centres: Mapping[MiddlePart, Float[ndarray, " joints"]] = field(default_factory=dict)
    """Where along trunk, neck and tail the bones of the source lie, where that is known: a chain of as many joints
    takes them joint by joint, as artists do who build many bodies alike."""

    def __len__(self) -> int:
        return len(self.place)


def encode(anatomy: Anatomy, motion: Motion, *, travel: bool = True) -> LimbMotion:
    """The motion of a working copy in limb space.

    With `travel` a clip that walks on the spot is given the speed back with which its feet sweep the ground, and one
    that flies on the ground is lifted.
    """
    standing = standing_of(anatomy, motion, travel=travel)
    world = standing.world
    rotation = _unscaled(world[..., :3, :3])
    P = world[..., :3, 3]
    since = rotation @ anatomy.R_neutral.transpose(0, 2, 1)
    hub = anatomy.pelvis
    heading = heading_of(since[:, hub], motion.fps)
    H = yaw(heading)
    free = np.einsum("fba,fjbc->fjac", H, since)
    place = to_units(anatomy, P[:, hub], grounded=standing.grounded)
    place[:, [0, 2]] = (place[:, [0, 2]] - place[0, [0, 2]]) @ yaw(heading[:1])[0][np.ix_([0, 2], [0, 2])]
    since_rest = np.einsum("fba,fjbc,jdc->fjad", H, rotation, anatomy.T_rest[:, :3, :3])
    tracks = [_track(anatomy, part, since_rest, P, H, standing) for part in anatomy.parts]
    return LimbMotion(
        kind=anatomy.kind,
        fps=motion.fps,
        name=motion.name,
        place=place,
        heading=heading - heading[0],
        root=free[:, hub],
        trunk=_stations(anatomy, trunk_of(anatomy), free, TRUNK),
        neck=_stations(anatomy, anatomy.neck, free, NECK) if anatomy.neck else None,
        tail=_stations(anatomy, anatomy.tail, free, TAIL) if anatomy.tail else None,
        limbs=tuple(tracks),
        grounded=standing.grounded,
        centres={part: chain_centres(anatomy, chain) for part, chain in middle_parts(anatomy).items()},
    )


def middle_parts(anatomy: Anatomy) -> dict[MiddlePart, tuple[int, ...]]:
    """The chains of the middle line that the body has."""
    chains: dict[MiddlePart, tuple[int, ...]] = {
        "trunk": trunk_of(anatomy),
        "neck": anatomy.neck,
        "tail": anatomy.tail,
    }
    return {part: chain for part, chain in chains.items() if chain}


def pelvis_height(anatomy: Anatomy) -> float:
    """Of the pelvis above the ground at rest [m]."""
    hub = anatomy.pelvis
    if hub == 0:
        return anatomy.hip_height
    return max(anatomy.hip_height + float(anatomy.T_rest[hub, 1, 3] - anatomy.T_rest[0, 1, 3]), 0.05 * anatomy.height)


def to_units(anatomy: Anatomy, places: Float[ndarray, "frames 3"], *, grounded: bool) -> Float[ndarray, "frames 3"]:
    """Places of the pelvis [m] in the units of limb space."""
    if grounded:
        return places / [anatomy.leg_length, pelvis_height(anatomy), anatomy.leg_length]
    return (places - [0.0, float(anatomy.T_rest[anatomy.pelvis, 1, 3]), 0.0]) / anatomy.body_length + [0.0, 1.0, 0.0]


def to_metres(anatomy: Anatomy, places: Float[ndarray, "frames 3"], *, grounded: bool) -> Float[ndarray, "frames 3"]:
    """The inverse of `to_units`."""
    if grounded:
        return places * [anatomy.leg_length, pelvis_height(anatomy), anatomy.leg_length]
    return (places - [0.0, 1.0, 0.0]) * anatomy.body_length + [0.0, float(anatomy.T_rest[anatomy.pelvis, 1, 3]), 0.0]


def trunk_of(anatomy: Anatomy) -> tuple[int, ...]:
    """The trunk from the pelvis on."""
    return anatomy.trunk[anatomy.trunk.index(anatomy.pelvis) :]


def chain_centres(anatomy: Anatomy, chain: Sequence[int]) -> Float[ndarray, " joints"]:
    """Where along a chain of the middle line the middle of each joint's bone lies, 0 to 1."""
    return bone_centres(anatomy.T_rest[[*chain, chain_end(anatomy, chain)], :3, 3])


def chain_end(anatomy: Anatomy, chain: Sequence[int]) -> int:
    """The joint where the last bone of a chain of the middle line ends; its last joint where nothing follows."""
    P, last = anatomy.T_rest[:, :3, 3], chain[-1]
    middle = {joint for limb in anatomy.limbs if limb.side == "middle" for joint in limb.joints}
    kids = anatomy.skeleton.children[last]
    ahead = [kid for kid in kids if kid in middle and kid not in chain] or list(kids)
    return max(ahead, key=lambda kid: float(np.linalg.norm(P[kid] - P[last])), default=last)


def heading_of(turns: Float[ndarray, "frames 3 3"], fps: float) -> Float[ndarray, " frames"]:
    """The smoothed heading of a body [rad]; where it looks up or down the heading goes on from its neighbours."""
    ahead = turns[:, :, 2][:, [0, 2]]
    sure = np.linalg.norm(ahead, axis=1) > 0.35
    if not sure.any():
        return np.zeros(len(turns))
    frames = np.arange(len(turns))
    angle = np.unwrap(np.arctan2(ahead[sure, 0], ahead[sure, 1]))
    angle = np.interp(frames, frames[sure], angle)
    width = max(int(HEADING_SECONDS * fps), 1)
    padded = np.concatenate([np.full(width, angle[0]), angle, np.full(width, angle[-1])])
    kernel = np.hanning(2 * width + 1)
    return np.convolve(padded, kernel / kernel.sum(), mode="valid")


def yaw(angle: Float[ndarray, " frames"]) -> Float[ndarray, "frames 3 3"]:
    """Turns about the vertical that bring +Z to the heading."""
    c, s, o, e = np.cos(angle), np.sin(angle), np.zeros_like(angle), np.ones_like(angle)
    return np.stack([np.stack([c, o, s], -1), np.stack([o, e, o], -1), np.stack([-s, o, c], -1)], -2)


def limb_bones(parts: LimbParts) -> list[tuple[int, int] | None]:
    """The joint that turns each station's bone and the joint where that bone ends; -1 where no joint marks the end."""
    if parts.root == parts.middle:  # one bone
        return [_before(parts), (parts.root, parts.end), None, None, None]
    after = parts.after
    end = (parts.end, after[0] if after else -1)
    toes = (after[0], after[1] if len(after) > 1 else -1) if after else None
    return [_before(parts), (parts.root, parts.middle), (parts.middle, parts.end), end, toes]


def _before(parts: LimbParts) -> tuple[int, int] | None:
    return (parts.before[-1], parts.root) if parts.before else None


def canonical_turn(anatomy: Anatomy, parts: LimbParts, station: int) -> Float[ndarray, "3 3"]:
    """What turns the canonical bone of a station into this body's resting bone; identity where it lies flat."""
    bone = limb_bones(parts)[station]
    P = anatomy.T_rest[:, :3, 3]
    if parts.limb.kind == "leg" and station in (1, 2) and anatomy.kind in STANDING:
        way = (P[parts.pivot] - P[parts.root]) * [0.0, 1.0, 1.0]
        return shortest_turns(canonical_direction(parts.limb)[None], way[None])[0]
    if bone is None or bone[1] < 0 or station == 0 or not is_straightened(anatomy, parts):
        return np.eye(3)
    way = P[bone[1]] - P[bone[0]]
    way = way / max(float(np.linalg.norm(way)), 1e-9)
    if parts.limb.kind == "leg" and station >= 3 and -way[1] < FLAT:
        return np.eye(3)
    return shortest_turns(canonical_direction(parts.limb)[None], way[None])[0]


def is_straightened(anatomy: Anatomy, parts: LimbParts) -> bool:
    """Whether a limb's rest says little: people rest in T and A poses, wings rest spread or folded.

    The legs of animals rest as they stand, and how they are built shows there: they are turned as wholes, such that
    the foot is below the hip.
    """
    return anatomy.kind == "person" or parts.limb.kind == "wing"


def canonical_direction(limb: Limb) -> Float[ndarray, " 3"]:
    """Where the bones of a limb point at the canonical rest."""
    if limb.kind in ("leg", "arm"):
        return np.array([0.0, -1.0, 0.0])
    return np.array([1.0 if limb.side == "left" else -1.0, 0.0, 0.0])


def _track(
    anatomy: Anatomy,
    parts: LimbParts,
    since_rest: Float[ndarray, "frames joints 3 3"],
    P: Float[ndarray, "frames joints 3"],
    H: Float[ndarray, "frames 3 3"],
    standing: Standing,
) -> LimbTrack:
    """One limb's turns; a bone that stretches is followed by where its end really is."""
    frames = len(P)
    turns = np.tile(np.eye(3), (frames, len(STATIONS), 1, 1))
    rest = np.tile(np.eye(3), (len(STATIONS), 1, 1))
    has = np.zeros(len(STATIONS), bool)
    for station, bone in enumerate(limb_bones(parts)):
        if bone is None:
            if station:
                turns[:, station], rest[station] = turns[:, station - 1], rest[station - 1]
            continue
        joint, end = bone
        turn = since_rest[:, joint]
        if end >= 0:
            way = np.einsum("fba,fb->fa", H, P[:, end] - P[:, joint])
            still = anatomy.T_rest[end, :3, 3] - anatomy.T_rest[joint, :3, 3]
            turn = shortest_turns(turn @ still, way) @ turn
        rest[station] = canonical_turn(anatomy, parts, station)
        turns[:, station] = turn @ rest[station]
        has[station] = True
    reach = np.einsum("fba,fb->fa", H, P[:, parts.end] - P[:, parts.root]) / parts.length
    return LimbTrack(parts.limb, turns, has, rest, reach, standing.of(parts))


def _stations(
    anatomy: Anatomy, chain: Sequence[int], turns: Float[ndarray, "frames joints 3 3"], count: int
) -> Float[ndarray, "frames stations 3 3"]:
    """The turns along a chain at evenly spread places."""
    return fit_turns(turns[:, list(chain)], chain_centres(anatomy, chain), count)


def _unscaled(linear: Float[ndarray, "frames joints 3 3"]) -> Float[ndarray, "frames joints 3 3"]:
    """The rotations in matrices that may scale."""
    lengths = np.linalg.norm(linear, axis=-2, keepdims=True)
    if np.allclose(lengths, 1.0, atol=1e-5):
        return linear
    return nearest_turns(linear)


def named(limb_motion: LimbMotion, name: str) -> LimbMotion:
    """The same motion under another name."""
    return replace(limb_motion, name=name)


def cut(motion: LimbMotion, start: int, end: int) -> LimbMotion:
    """The frames from start up to end; place and heading go on from where they were."""
    part = slice(start, end)
    return replace(
        motion,
        place=motion.place[part],
        heading=motion.heading[part],
        root=motion.root[part],
        trunk=motion.trunk[part],
        neck=None if motion.neck is None else motion.neck[part],
        tail=None if motion.tail is None else motion.tail[part],
        limbs=tuple(replace(t, turns=t.turns[part], end=t.end[part], contact=t.contact[part]) for t in motion.limbs),
    )
