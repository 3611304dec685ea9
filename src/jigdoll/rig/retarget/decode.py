"""From limb space to the joints of any body: turns are put on its bones, then its feet are put on the ground."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray

from jigdoll.errors import RigError
from jigdoll.math.rotations import matrix_to_quaternion
from jigdoll.rig.anatomy import Anatomy, LimbParts
from jigdoll.rig.retarget.feet import lock_feet
from jigdoll.rig.retarget.limb_motion import LimbMotion, LimbTrack, canonical_direction, canonical_turn, limb_bones, yaw
from jigdoll.rig.retarget.turns import blend_turns, chain_places, interpolate_turns, shortest_turns
from jigdoll.types import Motion, Pose

RELAXED = 0.12
"""How far relaxed arms stand off the body [rad]."""


@dataclass(frozen=True)
class Match:
    """Which limb of the source a limb of the target follows."""

    target: str
    source: str | None
    """None where nothing in the source fits; then the limb does what is natural."""


def decode(limb_motion: LimbMotion, anatomy: Anatomy, *, lock: bool = True) -> Motion:
    """The motion on the joints of a working copy; with `lock` feet that stand stay where they stand."""
    if not len(limb_motion):
        raise RigError("the clip is empty; there is nothing to retarget")
    G, root = _world_turns(limb_motion, anatomy)
    if lock and anatomy.legs and limb_motion.grounded:
        contact = _contacts(limb_motion, anatomy)
        G, root = lock_feet(anatomy, G, root, contact, limb_motion.fps)
    return to_motion(anatomy, G, root, fps=limb_motion.fps, name=limb_motion.name)


def match_limbs(limb_motion: LimbMotion, anatomy: Anatomy) -> dict[int, LimbTrack | None]:
    """For each limb of the target the source's limb that it follows: of its kind and side, at its place in the row.

    Where the numbers differ, legs are matched by their place from front to back; wings may follow arms and the other
    way round; forelegs may follow arms.
    """
    found: dict[int, LimbTrack | None] = {}
    for i, parts in enumerate(anatomy.parts):
        kinds = {"leg": ("leg",), "arm": ("arm", "wing"), "wing": ("wing",), "fin": ("fin", "wing")}[parts.limb.kind]
        found[i] = None
        for kind in kinds:
            row = [t for t in limb_motion.limbs if t.limb.kind == kind and t.limb.side == parts.limb.side]
            ours = [p for p in anatomy.parts if p.limb.kind == parts.limb.kind and p.limb.side == parts.limb.side]
            if row:
                share = parts.limb.rank / max(len(ours) - 1, 1)
                # Two legs of a person are the hind ones of an animal.
                place = share * (len(row) - 1) if len(ours) > 1 else len(row) - 1
                found[i] = row[round(place)]
                break
    return found


def report(limb_motion: LimbMotion, anatomy: Anatomy) -> list[Match]:
    """Which limb took which, for people to read."""
    pairs = match_limbs(limb_motion, anatomy)
    return [
        Match(part.name, None if track is None else f"{track.limb.side} {track.limb.kind} {track.limb.rank}")
        for part, track in ((anatomy.parts[i], track) for i, track in pairs.items())
    ]


def _world_turns(
    lm: LimbMotion, anatomy: Anatomy
) -> tuple[Float[ndarray, "frames joints 3 3"], Float[ndarray, "frames 3"]]:
    """World rotations of all joints, and the places of the root."""
    skeleton, frames = anatomy.skeleton, len(lm)
    H = yaw(lm.heading)
    R_rest = anatomy.T_rest[:, :3, :3]
    wanted: dict[int, ndarray] = {0: lm.root @ anatomy.R_neutral[0]}
    _spread(wanted, anatomy, anatomy.trunk, lm.trunk)
    if anatomy.neck:
        _spread(wanted, anatomy, anatomy.neck, lm.trunk[:, -1:] if lm.neck is None else lm.neck)
    if anatomy.tail:
        _spread(wanted, anatomy, anatomy.tail, lm.root[:, None] if lm.tail is None else lm.tail)
    wanted[0] = lm.root @ anatomy.R_neutral[0]
    for i, track in match_limbs(lm, anatomy).items():
        parts = anatomy.parts[i]
        _limb_turns(wanted, anatomy, parts, track, lm)
    world = np.empty((frames, len(skeleton), 3, 3))
    for joint, parent in enumerate(skeleton.parents):
        if joint in wanted:
            world[:, joint] = H @ wanted[joint]
        else:
            world[:, joint] = world[:, parent] @ (R_rest[parent].T @ R_rest[joint])
    unit = anatomy.leg_length if anatomy.grounded else anatomy.body_length
    root = lm.place * unit
    root[:, 1] = lm.place[:, 1] * anatomy.hip_height
    root[:, [0, 2]] += anatomy.T_rest[0, [0, 2], 3]
    return world, root


def _spread(
    wanted: dict[int, ndarray], anatomy: Anatomy, chain: tuple[int, ...], stations: Float[ndarray, "frames n 3 3"]
) -> None:
    """Put the turns of the middle line's stations on the joints of a chain."""
    places = chain_places(anatomy.T_rest[list(chain), :3, 3])
    turns = interpolate_turns(stations, np.linspace(0, 1, stations.shape[1]), places)
    for i, joint in enumerate(chain):
        wanted[joint] = turns[:, i] @ anatomy.R_neutral[joint]


def _limb_turns(
    wanted: dict[int, ndarray], anatomy: Anatomy, parts: LimbParts, track: LimbTrack | None, lm: LimbMotion
) -> None:
    """Put a limb's turns on its joints; a limb that the source lacks hangs or folds as is natural."""
    R_rest = anatomy.T_rest[:, :3, :3]
    if track is None:
        if parts.limb.kind == "arm":
            _relax(wanted, anatomy, parts, lm)
        return
    single = parts.root == parts.middle
    for station, bone in enumerate(limb_bones(parts)):
        if bone is None or (station == 0 and not track.has[0]) or (station >= 3 and not track.has[station]):
            continue  # what the source does not show goes on with the bone before
        joint, _ = bone
        rest = canonical_turn(anatomy, parts, station)
        turn = track.turns[:, station]
        if _is_flat(rest) != _is_flat(track.rest[station]):
            turn, rest = turn @ track.rest[station].T, np.eye(3)
        if single and station == 1:  # one bone points where the whole limb of the source points
            turn = shortest_turns(turn @ canonical_direction(parts.limb), track.end) @ turn
        wanted[joint] = turn @ rest.T @ R_rest[joint]


def _is_flat(rest: Float[ndarray, "3 3"]) -> bool:
    return bool(np.allclose(rest, np.eye(3)))


def _relax(wanted: dict[int, ndarray], anatomy: Anatomy, parts: LimbParts, lm: LimbMotion) -> None:
    """Arms that hang at the sides, a little bent, with the chest."""
    out = RELAXED if parts.limb.side == "left" else -RELAXED
    hang = np.array([np.sin(out), -np.cos(out), 0.05])
    chest = lm.trunk[:, -1]
    upright = blend_turns(np.broadcast_to(np.eye(3), chest.shape), chest, np.full(len(chest), 0.5))
    for station, bone in enumerate(limb_bones(parts)):
        if bone is None or station not in (1, 2):
            continue
        rest = canonical_turn(anatomy, parts, station)
        forward = hang + np.array([0.0, 0.0, 0.25 * (station - 1)])
        turn = shortest_turns(canonical_direction(parts.limb)[None], forward[None])[0]
        wanted[bone[0]] = upright @ turn @ rest.T @ anatomy.T_rest[bone[0], :3, :3]


def _contacts(lm: LimbMotion, anatomy: Anatomy) -> Float[ndarray, "frames legs"]:
    """When each leg of the target stands: when the leg that it follows does."""
    pairs = match_limbs(lm, anatomy)
    stands = np.zeros((len(lm), len(anatomy.legs)), bool)
    legs = [leg.parts for leg in anatomy.legs]
    for i, track in pairs.items():
        if anatomy.parts[i] in legs and track is not None:
            stands[:, legs.index(anatomy.parts[i])] = track.contact
    return stands.astype(float)


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
