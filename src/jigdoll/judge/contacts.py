"""When feet stand, and whether they stay where they stand.

A foot stands while its lowest skin is near the lowest level that this foot reaches in the clip, so a body that floats
or sinks as a whole keeps its contacts (float and penetration tell of that). Speed decides only on the way up and down:
a foot that slides on the ground is a contact that skates.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from jigdoll.judge.trace import Trace

LEVEL = 0.1
"""Quantile of a foot's height that counts as its lowest level: a single deep frame does not."""
NEAR, FAR = 0.012, 0.024
"""A foot comes down below the first height and leaves above the second [body lengths above its lowest level]."""
DOWN = 0.005
"""A foot this low stands whatever it does [body lengths above its lowest level]."""
DOWN_OF_LIFT, NEAR_OF_LIFT, FAR_OF_LIFT = 0.1, 0.25, 0.35
"""The same heights as shares of how far the foot lifts, whichever is less: small steps lift little."""
LEAST_LIFT = 0.002
"""Foot heights that differ by less than this are the same [body lengths]."""
STILL = 0.05
"""A foot that rises or falls faster than this does not stand yet [body lengths / s]."""
SWINGING = 0.2
"""A foot that overtakes the body faster than this swings, however low it is carried [body lengths / s]."""
PATCH = 0.008
"""Skin this close to a foot's lowest point touches the ground [body lengths]."""
SKATE = 0.03
"""A standing foot skates above this speed [body lengths / s] ..."""
SKATE_OF_TRAVEL = 0.2
"""... or above this share of the body's own speed, whichever is more."""
IN_PLACE = 0.02
"""A body that travels less than this stays on the spot [body lengths / s]."""


@dataclass(frozen=True, eq=False)
class Footing:
    """How one foot meets the ground over a clip."""

    height: Float[ndarray, " frames"]
    """Of its lowest point [m]."""
    contact: Bool[ndarray, " frames"]
    velocity: Float[ndarray, "steps 2"]
    """Of the skin that touches the ground, from each frame to the next [m/s], along x and z."""

    @property
    def standing(self) -> Bool[ndarray, " steps"]:
        """The steps from frame to frame at both ends of which the foot stands."""
        return self.contact[:-1] & self.contact[1:]


def find_contacts(trace: Trace, length: float) -> tuple[Footing, ...]:
    """Height, contact and sliding of every foot."""
    return tuple(_footing(trace, sole, length) for sole in trace.feet)


def ground_velocity(trace: Trace, feet: tuple[Footing, ...], length: float) -> Float[ndarray, "2"]:
    """How the ground moves under the body [m/s]: not at all, except under a clip that walks on the spot.

    Artists' clips often walk in place, as on a treadmill: there the standing feet tell how fast the belt runs.
    """
    if not feet or not stays_in_place(trace, length):
        return np.zeros(2)
    slides = np.concatenate([foot.velocity[foot.standing] for foot in feet])
    return np.median(slides, axis=0) if len(slides) else np.zeros(2)


def stays_in_place(trace: Trace, length: float) -> bool:
    """Whether the body ends where it began, for all that matters."""
    way = trace.center[-1, [0, 2]] - trace.center[0, [0, 2]]
    return bool(np.linalg.norm(way) * trace.fps / (len(trace.center) - 1) <= IN_PLACE * length)


def skate_speed(travel: float, length: float) -> float:
    """Above this speed a standing foot skates [m/s]."""
    return max(SKATE * length, SKATE_OF_TRAVEL * travel)


def _footing(trace: Trace, sole: Float[ndarray, "frames points 3"], length: float) -> Footing:
    height = sole[..., 1].min(1)
    touching = sole[..., 1] < height[:, None] + PATCH * length
    both = touching[:-1] & touching[1:]
    # A foot that rolls on fast has no skin that touches in both frames: then what touched before tells.
    both = np.where(both.any(1, keepdims=True), both, touching[:-1])
    steps = np.diff(sole[..., [0, 2]], axis=0) * trace.fps
    velocity = (steps * both[..., None]).sum(1) / both.sum(1)[:, None]
    body = np.diff(trace.center[:, [0, 2]], axis=0) * trace.fps
    backwards = not stays_in_place(trace, length) and (body * trace.facing[1:]).sum() < 0
    ahead = -trace.facing[1:] if backwards else trace.facing[1:]
    advance = ((velocity - body) * ahead).sum(1)
    rise = np.abs(np.diff(height)) * trace.fps
    holds = rise < STILL * length
    stays = advance < SWINGING * length
    # Both steps around a frame hold the height, and one of them does not swing.
    may_stand = (
        np.append(holds, True) & np.insert(holds, 0, True) & (np.append(stays, False) | np.insert(stays, 0, False))
    )
    return Footing(height, _contact(height, may_stand, length), velocity)


def _contact(
    height: Float[ndarray, " frames"], may_stand: Bool[ndarray, " frames"], length: float
) -> Bool[ndarray, " frames"]:
    """Hysteresis on the height above the foot's lowest level; well above it only a foot that holds still stands."""
    above = height - float(np.quantile(height, LEVEL))
    lift = float(above.max())
    down = min(max(LEAST_LIFT * length, DOWN_OF_LIFT * lift), DOWN * length)
    near = max(min(NEAR * length, NEAR_OF_LIFT * lift), down)
    far = max(min(FAR * length, FAR_OF_LIFT * lift), down)
    # What comes before the first frame is unknown: begin as if the foot had been standing.
    contact, stands = np.empty(len(height), bool), True
    for frame, here in enumerate(above):
        stands = bool(here <= down or (may_stand[frame] and here <= (far if stands else near)))
        contact[frame] = stands
    return contact
