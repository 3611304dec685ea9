"""How fast a sentence asks a body to move: the action's Froude number and the length of the legs."""

import math
from dataclasses import dataclass

from jigdoll.language.actions import ACTIONS, GaitKind, general_of
from jigdoll.language.nouns import HEAVY, HOPPERS
from jigdoll.language.read import turn_of
from jigdoll.math import GRAVITY
from jigdoll.rig.bones import bones_of
from jigdoll.types import Request, RequestedAction, Skeleton

TURN_PER_STRIDE = 0.5
"""How far a turning body comes round in one stride [rad]."""
_SLOWLY, _QUICKLY = 0.7, 1.3
"""Times the usual speed."""
_HOPPING = 0.5
"""The Froude number at which a hopper gets along where others walk."""
_PERIODS: dict[GaitKind, float] = {"jump": 6.0, "dance": 4.0, "fly": 5.6, "still": 5.6}
"""Of what is done on the spot, in pendulum times sqrt(L / g)."""
_LEAP, _HOP, _HOP_PERIOD = 0.4, 0.1, 2.3
"""How high a jump and a hop fly [leg lengths], and how soon the next hop follows [pendulum times]."""
_GALLOP = 0.12
"""How far one foot of a galloping pair follows the other, as a share of the stride."""
_SPRAWLED = 0.12
"""A sprawling body walks at this share of an upright one's Froude number."""


@dataclass(frozen=True)
class Pace:
    """What the words and the legs say about travel and rhythm."""

    family: GaitKind
    speed: float
    """Along the ground [m/s]."""
    period: float
    """Of one stride [s]."""
    turn: float
    """Heading per second [rad/s], positive to the left."""
    rise: float
    """How high each leap flies, one per period [m]; 0 stays on the ground."""
    lag: float | None
    """By which share of a stride the right legs do what the left ones do later; None where that is open."""


def pace_of(request: Request, skeleton: Skeleton) -> Pace:
    """The speed sqrt(Fr g L) of the action on these legs, and Alexander's stride 2.4 L Fr^0.34 at that speed.

    Of several actions the first that travels sets the pace; without one the body stays on the spot.
    """
    action = _travelling(request)
    row = None if action is None else ACTIONS[action.name]
    kind, froude = ("still", 0.0) if row is None else (row.gait, row.froude)
    hopper = kind in ("walk", "run") and request.species in HOPPERS
    if hopper:
        kind, froude = "run", max(froude, _HOPPING)
    bones = bones_of(skeleton)
    length, sprawled = bones.leg_length, bones.sprawled
    froude *= _SPRAWLED if sprawled and kind == "walk" else 1.0
    tempo = 0.0 if action is None else action.tempo
    faster = 1.0 if not tempo else _QUICKLY if tempo > 0 else _SLOWLY
    speed = math.sqrt(froude * GRAVITY * length) * faster
    small = action is not None and action.name == "hop"
    if kind in _PERIODS or not speed:
        beat = _HOP_PERIOD if small else _PERIODS.get(kind, _PERIODS["still"])
        period = beat * math.sqrt(length / GRAVITY) / faster
    else:
        period = 2.4 * length * (speed**2 / (GRAVITY * length)) ** 0.34 / speed
    rise = length * (_HOP if small else _LEAP) if kind == "jump" else 0.0
    lag = 0.0 if hopper else _lag(kind, action, request.species, skeleton, sprawled)
    # A turn without a side goes left.
    side = {None: 0.0, "right": -1.0}.get(turn_of(request), 1.0)
    return Pace(kind, speed, period, side * TURN_PER_STRIDE / period, rise, lag)


def _travelling(request: Request) -> RequestedAction | None:
    """The first action that is more than standing, or whichever leads."""
    return next((action for action in request.actions if ACTIONS[action.name].gait != "still"), request.action)


def _lag(
    kind: GaitKind, action: RequestedAction | None, species: str | None, skeleton: Skeleton, sprawled: bool
) -> float | None:
    """Walks and trots are even-sided (Hildebrand's symmetrical gaits); gallops and jumps put both feet down at once."""
    if action is None or kind in ("fly", "still") or general_of(action.name)[-1] == "limp":
        return None
    if kind == "jump":
        return 0.0
    legs = bones_of(skeleton).leg_count
    jogs = action.name == "trot" or (action.name == "run" and action.tempo < 0)
    gallops = kind == "run" and legs == 4 and not sprawled and not jogs and species not in HEAVY
    return _GALLOP if gallops else 0.5
