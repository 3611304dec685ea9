"""From limb space to the joints of any body: turns are put on its bones, then its feet are put on the ground."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy import ndarray

from jigdoll.errors import RigError
from jigdoll.math.rotations import matrix_to_quaternion
from jigdoll.rig.anatomy import Anatomy, BodyKind, Leg, LimbParts
from jigdoll.rig.flesh import flesh_of
from jigdoll.rig.retarget.apart import keep_apart
from jigdoll.rig.retarget.bounds import fold_rightly, uncurled, within_limits
from jigdoll.rig.retarget.builds import crossed_build, crossed_turns
from jigdoll.rig.retarget.details import Details, detail_joints, put_details, same_line, split_like
from jigdoll.rig.retarget.feet import lock_feet, long_runs, places, reach
from jigdoll.rig.retarget.level import level_trunk
from jigdoll.rig.retarget.limb_motion import (
    LimbMotion,
    LimbTrack,
    MiddlePart,
    canonical_direction,
    canonical_turn,
    chain_centres,
    limb_bones,
    middle_parts,
    to_metres,
    yaw,
)
from jigdoll.rig.retarget.lying import creep, lie_down
from jigdoll.rig.retarget.match import Follow, match_limbs, source_name, wave_of
from jigdoll.rig.retarget.natural import relaxed_fingers, rest_limb
from jigdoll.rig.retarget.touch import keep_touches
from jigdoll.rig.retarget.turns import interpolate_turns, shortest_turns
from jigdoll.types import Motion, Pose

APART = 25.0
"""Legs that reach out and rest farther apart than this from the source's are built otherwise [degrees]."""
STRIDE = 0.8
"""Legs that reach out sideways, and legs that follow them, step by this share of what their lengths would make it."""
BENT_AWAY = (0.2, 0.6)
"""From how far below the hip on [limb lengths] a leg of one bone stands straight over the source's foot."""


def decode(
    limb_motion: LimbMotion,
    anatomy: Anatomy,
    *,
    lock: bool = True,
    apart: bool = True,
    mapping: Mapping[str, str] | None = None,
    details: Details | None = None,
) -> Motion:
    """The motion on the joints of a working copy; with `lock` feet that stand stay where they stand.

    Without `apart` arms and legs may be in other flesh: where only the way over the ground is asked for.

    `mapping` (target's limb to source's limb, as `left arm 0`) corrects which limb follows which. `details` are what
    limb space leaves out, for joints that have a namesake; fingers without one are relaxed.
    """
    if not len(limb_motion):
        raise RigError("the clip is empty; there is nothing to retarget")
    pairs = match_limbs(limb_motion, anatomy, mapping)
    if details is not None:
        anatomy = split_like(details, anatomy, {i: source_name(f) for i, f in pairs.items() if f is not None})
    G, root = _world_turns(limb_motion, anatomy, pairs, details)
    if other_build(limb_motion, anatomy, pairs, details):
        G = _step_by_feet(limb_motion, anatomy, pairs, G, root)
    partners = {anatomy.parts[i].name: source_name(follow) for i, follow in pairs.items() if follow is not None}
    excess = None if details is None else details.excess
    G = within_limits(anatomy, G, partners, excess)
    G = fold_rightly(anatomy, G, root, partners, excess)
    if details is None:
        G = uncurled(anatomy, G, yaw(limb_motion.heading))
    allowed = {} if details is None else {m: details.depths[t] for m, t in partners.items() if t in details.depths}
    if apart:
        G = keep_apart(anatomy, G, root, limb_motion.fps, kind="leg", allowed=allowed)
    on_ground: set[str] = set()
    if lock and anatomy.legs and limb_motion.grounded:
        standing = with_hands(anatomy, pairs)
        on_ground = {leg.parts.name for leg in standing.legs}
        stands = stances(limb_motion, standing, pairs)
        G = level_trunk(anatomy, G, root, stands, yaw(limb_motion.heading), limb_motion.fps)
        G, root = lock_feet(standing, G, root, stands, limb_motion.fps)
        root = lie_down(anatomy, G, root, limb_motion)
    elif lock:
        root = creep(anatomy, G, root, limb_motion)
    if details is not None and details.touches is not None:
        straight = {anatomy.parts[i].name: source_name(f) for i, f in pairs.items() if f is not None and not f.crossed}
        straight = {mine: theirs for mine, theirs in straight.items() if mine not in on_ground}
        G = keep_touches(details.touches, anatomy, G, root, straight)
    if apart:
        G = keep_apart(anatomy, G, root, limb_motion.fps, kind="arm", allowed=allowed, leave=on_ground)
    return to_motion(anatomy, G, root, fps=limb_motion.fps, name=limb_motion.name)


def _world_turns(
    lm: LimbMotion, anatomy: Anatomy, pairs: Mapping[int, Follow | None], details: Details | None
) -> tuple[Float[ndarray, "frames joints 3 3"], Float[ndarray, "frames 3"]]:
    """World rotations of all joints, and the places of the root."""
    skeleton, frames = anatomy.skeleton, len(lm)
    H = yaw(lm.heading)
    R_rest = anatomy.T_rest[:, :3, :3]
    hub = anatomy.pelvis
    wanted: dict[int, ndarray] = {}
    _middle_turns(wanted, lm, anatomy, details)
    for joint in {0, hub, *anatomy.trunk[: anatomy.trunk.index(hub)]}:  # what lies below the pelvis goes with it
        wanted[joint] = lm.root @ anatomy.R_neutral[joint]
    by_feet = other_build(lm, anatomy, pairs, details)
    for i, follow in pairs.items():
        if by_feet and anatomy.parts[i].limb.kind == "leg":
            continue  # stepped by its foot
        _limb_turns(wanted, anatomy, anatomy.parts[i], None if follow is None else follow.track, lm)
    small = _small_parts(anatomy, details)
    world = np.empty((frames, len(skeleton), 3, 3))
    for joint, parent in enumerate(skeleton.parents):
        if joint in wanted:
            world[:, joint] = H @ wanted[joint]
        else:
            world[:, joint] = world[:, parent] @ R_rest[parent].T @ small.get(joint, np.eye(3)) @ R_rest[joint]
    root = to_metres(anatomy, lm.place, grounded=lm.grounded)
    root[:, [0, 2]] += anatomy.T_rest[hub, [0, 2], 3]
    return world, root - places(anatomy, world, np.zeros((frames, 3)))[:, hub]


def _middle_turns(wanted: dict[int, ndarray], lm: LimbMotion, anatomy: Anatomy, details: Details | None) -> None:
    """Put the turns of trunk, neck and tail on the joints of the target."""
    stations: dict[MiddlePart, ndarray | None] = {"trunk": lm.trunk, "neck": lm.neck, "tail": lm.tail}
    if details is not None and same_line(anatomy, lm.centres, details.trunk_share):
        _spread_line(wanted, anatomy, lm.centres, details)
    for part, chain in middle_parts(anatomy).items():
        if chain[0] in wanted:
            continue
        theirs = wave_of(lm, part)
        turns = stations[theirs] if theirs is not None else None
        if theirs is None or turns is None:
            still = lm.trunk[:, -1:] if part == "neck" else lm.root[:, None]
            _spread(wanted, anatomy, chain, still, np.zeros(1), None)
            continue
        centres = lm.centres.get(theirs)
        if details is not None and theirs in details.middle and centres is not None:
            _spread(wanted, anatomy, chain, details.middle[theirs], centres, centres)
        else:
            _spread(wanted, anatomy, chain, turns, np.linspace(0, 1, turns.shape[1]), centres)


def _small_parts(anatomy: Anatomy, details: Details | None) -> dict[int, ndarray]:
    """Turns of fingers and other small parts since the joints before them: the source's, else relaxed fingers."""
    shown = {} if details is None else put_details(details, anatomy, detail_joints(anatomy))
    return relaxed_fingers(anatomy) | shown


def other_build(lm: LimbMotion, anatomy: Anatomy, pairs: Mapping[int, Follow | None], details: Details | None) -> bool:
    """Whether the source's legs are built otherwise, so that their turns mean nothing: then feet alone are followed.

    Legs that hang down against legs that reach out; and legs that reach out rest in as many ways as there are rigs: if
    they rest otherwise than the source's, or the source's rest is not known, feet are followed.
    """
    if not sprawls(anatomy.kind) or not sprawls(lm.kind):
        return sprawls(anatomy.kind) != sprawls(lm.kind)
    if details is None:
        return True
    apart = []
    for i, follow in pairs.items():
        parts = anatomy.parts[i]
        theirs = None if follow is None else details.reaches.get(source_name(follow))
        if follow is None or theirs is None or parts.limb.kind != "leg":
            continue
        theirs = theirs * [-1.0, 1.0, 1.0] if follow.crossed else theirs
        ours = anatomy.T_rest[parts.end, :3, 3] - anatomy.T_rest[parts.root, :3, 3]
        cosine = theirs @ ours / max(float(np.linalg.norm(theirs) * np.linalg.norm(ours)), 1e-9)
        apart.append(float(np.degrees(np.arccos(np.clip(cosine, -1, 1)))))
    return bool(apart) and float(np.mean(apart)) > APART


def sprawls(kind: BodyKind) -> bool:
    """Whether legs reach out sideways, so that the turns of legs that hang down mean nothing to them."""
    return kind in ("insect", "spider")


def _step_by_feet(
    lm: LimbMotion,
    anatomy: Anatomy,
    pairs: Mapping[int, Follow | None],
    G: Float[ndarray, "frames joints 3 3"],
    root: Float[ndarray, "frames 3"],
) -> Float[ndarray, "frames joints 3 3"]:
    """Legs that stand as at rest, with feet that leave their places as the source's feet do."""
    H = yaw(lm.heading)
    P = places(anatomy, G, root)
    for i, follow in pairs.items():
        parts = anatomy.parts[i]
        if follow is None or parts.limb.kind != "leg":
            continue
        track = follow.track
        middle = track.end[track.contact].mean(0) if track.contact.any() else track.end.mean(0)
        step = np.einsum("fab,fb->fa", H, track.end - middle)
        G = reach(anatomy, G, P, parts, P[:, parts.end] + STRIDE * parts.length * step)
    return G


def _spread(
    wanted: dict[int, ndarray],
    anatomy: Anatomy,
    chain: tuple[int, ...],
    known: Float[ndarray, "frames known 3 3"],
    at: Float[ndarray, " known"],
    theirs: Float[ndarray, " joints"] | None,
) -> None:
    """Put turns that are known at places of the middle line on the joints of a chain.

    A chain of as many joints as the source's takes them joint by joint (`theirs` are the places of those).
    """
    centres = theirs if theirs is not None and len(theirs) == len(chain) else chain_centres(anatomy, chain)
    turns = interpolate_turns(known, at, centres)
    for i, joint in enumerate(chain):
        wanted[joint] = turns[:, i] @ anatomy.R_neutral[joint]


def _spread_line(
    wanted: dict[int, ndarray],
    anatomy: Anatomy,
    centres: Mapping[MiddlePart, Float[ndarray, " joints"]],
    details: Details,
) -> None:
    """Put the turns of trunk and neck on a body whose names do not tell where its neck begins: along one line."""
    share = details.trunk_share
    at = np.concatenate([centres["trunk"] * share, share + centres["neck"] * (1 - share)])
    turns = np.concatenate([details.middle["trunk"], details.middle["neck"]], 1)
    line = (*middle_parts(anatomy)["trunk"], *anatomy.neck)
    _spread(wanted, anatomy, line, turns, at, None)


def _limb_turns(
    wanted: dict[int, ndarray], anatomy: Anatomy, parts: LimbParts, track: LimbTrack | None, lm: LimbMotion
) -> None:
    """Put a limb's turns on its joints; a limb that the source lacks hangs or folds as is natural."""
    R_rest = anatomy.T_rest[:, :3, :3]
    if track is None:
        rest_limb(wanted, anatomy, parts, lm)
        return
    if parts.limb.kind == "leg" and (build := crossed_build(lm, anatomy, parts, track)):
        wanted |= crossed_turns(anatomy, parts, track, build)
        return
    single = parts.root == parts.middle and track.has[2]  # the source's limb bends, this one cannot
    if parts.limb.kind == "arm" and track.limb.kind == "wing":  # a wing that is not known as one
        parts = replace(parts, limb=replace(parts.limb, kind="wing"))
    for station, bone in enumerate(limb_bones(parts)):
        if bone is None or (station == 0 and not track.has[0]) or (station >= 3 and not track.has[station]):
            continue  # what the source does not show goes on with the bone before
        joint, _ = bone
        rest = canonical_turn(anatomy, parts, station)
        turn = track.turns[:, station]
        if _is_flat(rest) != _is_flat(track.rest[station]):
            turn, rest = turn @ track.rest[station].T, np.eye(3)
        if single and station == 1 and not _is_flat(rest):  # one bone points where the source's whole limb points
            turn = shortest_turns(turn @ canonical_direction(parts.limb), _one_bone(parts, track)) @ turn
        wanted[joint] = turn @ rest.T @ R_rest[joint]


def _one_bone(parts: LimbParts, track: LimbTrack) -> Float[ndarray, "frames 3"]:
    """Where a limb of one bone points: a leg that cannot bend stands over the source's foot, it does not spread."""
    if parts.limb.kind != "leg":
        return track.end
    flat = np.clip(np.linalg.norm(track.end[:, [0, 2]], axis=1), 0, 0.95)
    stiff = np.stack([track.end[:, 0], -np.sqrt(1 - flat**2), track.end[:, 2]], -1)
    low, high = BENT_AWAY
    t = np.clip((-track.end[:, 1] - low) / (high - low), 0, 1)[:, None]
    t = t * t * (3 - 2 * t)
    return (1 - t) * track.end + t * stiff


def _is_flat(rest: Float[ndarray, "3 3"]) -> bool:
    return bool(np.allclose(rest, np.eye(3)))


def with_hands(anatomy: Anatomy, pairs: Mapping[int, Follow | None]) -> Anatomy:
    """The anatomy with arms among its legs whose hands stand on the ground: who crawls or turns a cartwheel."""
    arms = [
        anatomy.parts[i]
        for i, follow in pairs.items()
        if follow is not None and anatomy.parts[i].limb.kind == "arm" and long_runs(follow.track.contact).any()
    ]
    if not arms:
        return anatomy
    outline = flesh_of(anatomy.asset).outline.points
    hands = []
    for parts in arms:
        joints = [parts.end, *parts.after]
        points = [outline[j] if np.isfinite(outline[j]).all() else np.zeros((1, 3)) for j in joints]
        carriers = np.repeat(joints, [len(p) for p in points])
        hands.append(Leg(parts, parts.pivot, (parts.end,), carriers, np.concatenate(points)))
    return replace(anatomy, legs=(*anatomy.legs, *hands))


def stances(
    lm: LimbMotion, anatomy: Anatomy, pairs: Mapping[int, Follow | None] | None = None
) -> Bool[ndarray, "frames legs"]:
    """When each leg of the target stands: when the leg that it follows does, without flicker."""
    pairs = match_limbs(lm, anatomy) if pairs is None else pairs
    stands = np.zeros((len(lm), len(anatomy.legs)), bool)
    legs = [leg.parts for leg in anatomy.legs]
    for i, follow in pairs.items():
        if anatomy.parts[i] in legs and follow is not None:
            stands[:, legs.index(anatomy.parts[i])] = follow.track.contact
    return np.stack([long_runs(stands[:, i]) for i in range(stands.shape[1])], 1)


def to_motion(
    anatomy: Anatomy, G: Float[ndarray, "frames joints 3 3"], root: Float[ndarray, "frames 3"], *, fps: float, name: str
) -> Motion:
    """Local rotations from world ones."""
    skeleton = anatomy.skeleton
    R_rest = anatomy.T_rest[:, :3, :3]
    local = np.empty_like(G)
    for joint, parent in enumerate(skeleton.parents):
        above = np.eye(3) if parent < 0 else G[:, parent]
        still = R_rest[joint] if parent < 0 else R_rest[parent].T @ R_rest[joint]
        local[:, joint] = np.swapaxes(above @ still, -1, -2) @ G[:, joint]
    rotations = matrix_to_quaternion(torch.from_numpy(local)).float()
    moved = torch.from_numpy(root - anatomy.T_rest[0, :3, 3]).float()
    return Motion(Pose(moved, rotations), fps, name)
