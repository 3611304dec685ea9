"""Flights and swims through space: artists animate them on the spot, and every beat is given the way it makes."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from jigdoll.language.actions import ACTIONS
from jigdoll.memory.find import known_actions
from jigdoll.memory.segments import Memory
from jigdoll.memory.shape import STANDING, speed_of
from jigdoll.rig.anatomy import Anatomy
from jigdoll.rig.retarget.limb_motion import LimbMotion, to_metres, to_units
from jigdoll.rig.retarget.lying import TIPPED
from jigdoll.types import RequestedAction

WAY_PER_BEAT = {"fly": 2.5, "glide": 4.0, "swim": 0.7}
"""How far a beat of the wings or of the tail brings a body [body lengths]. Fish make 0.6 to 0.8 of their length at any
speed (Bainbridge 1958); birds make more than this, but then a viewer sees nothing but the landscape."""
SLOWEST, FASTEST = 0.3, 4.0
"""[body lengths / s]."""
WAY_PER_WAVE = 0.4
"""How far a wave of the body brings who goes without legs over the ground [body lengths]: snakes, slugs, slimes."""
ABOVE = 0.35
"""How far from where they rest they are at least: there is no ground in the water, nor in the air [body lengths]."""

HEIGHT, AHEAD = 1.0, 1.5
"""From how high and from how far a body comes down when it lands [body lengths]."""


def through_space(lm: LimbMotion, action: str) -> LimbMotion:
    """The motion with a course straight ahead, where it flies, swims or goes without legs on the spot; who has a
    course keeps it."""
    if lm.grounded or len(lm) < 3:
        return lm
    creeps = action in ACTIONS and ACTIONS[action].gait in ("walk", "run") and action not in WAY_PER_BEAT
    gone = float(np.linalg.norm(lm.place[-1, [0, 2]] - lm.place[0, [0, 2]])) * lm.fps / (len(lm) - 1)
    if creeps and gone < STANDING and not any(track.limb.kind == "leg" for track in lm.limbs):
        return replace(lm, place=lm.place + _ahead(lm, WAY_PER_WAVE * beats_per_second(lm)))
    if action not in WAY_PER_BEAT or speed_of(lm) > STANDING:
        return lm
    place = lm.place + _ahead(lm, float(np.clip(WAY_PER_BEAT[action] * beats_per_second(lm), SLOWEST, FASTEST)))
    place[:, 1] += max(1.0 + ABOVE - float(place[:, 1].mean()), 0.0)
    return replace(lm, place=place)


def _ahead(lm: LimbMotion, speed: float) -> Float[ndarray, "frames 3"]:
    """The way straight ahead at a speed."""
    return speed * np.arange(len(lm))[:, None] / lm.fps * np.array([0.0, 0.0, 1.0])


def to_the_ground(lm: LimbMotion, action: str) -> LimbMotion:
    """A landing that comes down to the ground, a start that leaves it: games move such clips themselves."""
    if lm.grounded or action not in ("land", "take_off") or len(lm) < 3:
        return lm
    left = np.linspace(1, 0, len(lm)) if action == "land" else np.linspace(0, 1, len(lm))
    touch = lm.place[-1 if action == "land" else 0]
    place = lm.place.copy()
    place[:, 1] = 1.0 + np.minimum(4 * left, 1) * (lm.place[:, 1] - touch[1]) + HEIGHT * left**1.5
    way = AHEAD * (1 - left**2) if action == "land" else AHEAD * left**2
    place[:, 2] += way
    return replace(lm, place=place)


def beats_per_second(lm: LimbMotion) -> float:
    """The frequency at which most of the body's parts move; what beats within the clip once, beats once."""
    parts = [lm.trunk, *(part for part in (lm.neck, lm.tail) if part is not None), *(t.turns for t in lm.limbs)]
    curves = np.concatenate([part.reshape(len(lm), -1) for part in parts], 1)
    curves = curves - curves.mean(0)
    power = (np.abs(np.fft.rfft(curves, axis=0)) ** 2).sum(1)[1:]
    return float((1 + power.argmax()) * lm.fps / len(lm))


def afloat(motion: LimbMotion, action: RequestedAction, anatomy: Anatomy) -> LimbMotion:
    """Who swims on dry land, lying on nothing before a camera, in the water, with the way that each stroke makes."""
    if action.name != "swim" or not motion.grounded or float((motion.root[:, 1, 1] < TIPPED).mean()) < 0.5:
        return motion
    place = to_units(anatomy, to_metres(anatomy, motion.place, grounded=True), grounded=False)
    tracks = tuple(replace(track, contact=np.zeros_like(track.contact)) for track in motion.limbs)
    return through_space(replace(motion, place=place, limbs=tracks, grounded=False), action.name)


def on_the_ground(actions: Sequence[RequestedAction], memory: Memory, anatomy: Anatomy) -> list[RequestedAction]:
    """Who lands stands then, and who takes off stood before, where nothing else is said."""
    actions, idle = list(actions), RequestedAction("idle", "stands")
    if "idle" in known_actions(memory, anatomy.kind) and anatomy.legs:
        if actions[-1].name == "land":
            actions.append(idle)
        if actions[0].name == "take_off":
            actions.insert(0, idle)
    return actions
