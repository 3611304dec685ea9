"""How a motion gets along on a body: as fast as its feet carry it, straight ahead, on a curve, along a path."""

from dataclasses import replace

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from jigdoll.language.actions import ACTIONS
from jigdoll.memory.find import TURNS
from jigdoll.memory.loops import go_on
from jigdoll.memory.paths import beyond, circle, follow, path_length, straight, up_to
from jigdoll.memory.shape import STANDING, at_speed, speed_of
from jigdoll.rig.anatomy import Anatomy
from jigdoll.rig.retarget.decode import decode
from jigdoll.rig.retarget.limb_motion import LimbMotion
from jigdoll.types import RequestedAction

CIRCLE_RADIUS = 2.5
"""Of who goes in circles [leg lengths]."""
FITS, NEAR_END = 4, 0.1
"""A speed that brings it to the end of a path in time is looked for so often, or until it is so near [leg lengths]."""


def unit_of(anatomy: Anatomy, motion: LimbMotion) -> float:
    """What places of a motion in limb space are counted in [m]."""
    return anatomy.leg_length if motion.grounded else anatomy.body_length


def gets_along(action: RequestedAction, motion: LimbMotion) -> bool:
    """Whether an action is a way to get somewhere, in a line of its own choice."""
    row = ACTIONS.get(action.name)
    travels = row is not None and row.gait in ("walk", "run", "fly") and action.name not in TURNS
    return travels and speed_of(motion) > STANDING


def gripping(motion: LimbMotion, anatomy: Anatomy) -> LimbMotion:
    """Settled, and once more: where feet hardly stand the first way is only half of it."""
    return settled(settled(motion, anatomy), anatomy)


def settled(motion: LimbMotion, anatomy: Anatomy) -> LimbMotion:
    """The motion with the way over the ground on which this body's feet do not slip."""
    if not (motion.grounded and anatomy.legs) or len(motion) < 3:
        return motion
    made = decode(motion, anatomy, apart=False).pose.root.double().numpy()[:, [0, 2]] / unit_of(anatomy, motion)
    place = motion.place.copy()
    place[:, [0, 2]] = made - made[0] + motion.place[0, [0, 2]]
    return replace(motion, place=place)


def along(
    motion: LimbMotion,
    path: Float[ndarray, "points 2"],
    anatomy: Anatomy,
    *,
    seconds: float | None,
    speed: float | None,
) -> LimbMotion:
    """The motion along a path [leg lengths] to its end, at the speed that brings it there where a time is given and no
    speed."""
    behind = anatomy.T_rest[anatomy.pelvis, [0, 2], 3] / unit_of(anatomy, motion)
    if seconds is None:
        return up_to(follow(motion, path, behind=behind), path[-1])
    made = follow(motion, path, behind=behind)
    if speed is not None:
        return made
    time, wanted = (len(motion) - 1) / motion.fps, path_length(path)
    for _ in range(FITS):
        made = follow(go_on([at_speed(motion, wanted / time)], time), path, behind=behind)
        over = beyond(settled(made, anatomy), path)
        if abs(over) < NEAR_END:
            break
        wanted = max(wanted - over, 0.2 * wanted)  # corners are cut
    return made


def on_course(motion: LimbMotion, action: RequestedAction) -> LimbMotion:
    """The motion straight ahead, in a circle, or turning to a side by a quarter of a turn."""
    way, to_the_left = speed_of(motion) * (len(motion) - 1) / motion.fps, action.side != "right"
    if action.way == "circle":
        rounds = way / (2 * np.pi * CIRCLE_RADIUS) + 0.5
        return follow(motion, circle(CIRCLE_RADIUS, to_the_left=to_the_left, rounds=rounds))
    if action.way == "turning":
        return follow(motion, circle(2 * way / np.pi, to_the_left=to_the_left, rounds=0.25))
    return straight(motion)
