"""How fast a sentence asks a body to move: the words' Froude number and the length of the legs."""

import math
import re
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.kinematics import rest_transforms
from jigdoll.language.nouns import HEAVY, HOPPERS
from jigdoll.rig.limbs import find_limbs
from jigdoll.types import Skeleton

GRAVITY = 9.81
Family = Literal["walk", "run", "jump", "dance", "fly", "still"]

# Froude number v^2 / (g L) of each verb's stem, and the family whose losses suit it.
_VERBS: tuple[tuple[str, Family, float], ...] = (
    ("gallop", "run", 2.0),
    ("sprint", "run", 2.2),
    ("run", "run", 1.5),
    ("jog", "run", 0.9),
    ("trot", "run", 0.75),
    ("canter", "run", 1.2),
    ("hop", "jump", 0.22),
    ("jump", "jump", 0.035),
    ("leap", "jump", 0.05),
    ("bounc", "jump", 0.03),
    ("creep", "walk", 0.03),
    ("sneak", "walk", 0.03),
    ("crawl", "walk", 0.03),
    ("limp", "walk", 0.08),
    ("march", "walk", 0.1),
    ("turn", "walk", 0.07),
    ("stroll", "walk", 0.1),
    ("prowl", "walk", 0.08),
    ("stomp", "walk", 0.08),
    ("waddl", "walk", 0.08),
    ("walk", "walk", 0.15),
    ("pac", "walk", 0.15),
    ("step", "walk", 0.12),
    ("danc", "dance", 0.0),
    ("fly", "fly", 0.5),
    ("flies", "fly", 0.5),
)
_ADVERBS = {"slow": 0.7, "slowly": 0.7, "leisurely": 0.8, "gently": 0.85, "quickly": 1.3, "fast": 1.3, "briskly": 1.25}
_HOPPING = 0.5
"""The Froude number at which a hopper gets along where others walk."""
_PERIODS: dict[Family, float] = {"jump": 6.0, "dance": 4.0, "fly": 5.6, "still": 5.6}
"""Of what is done on the spot, in pendulum times sqrt(L / g)."""
_LEAP, _HOP, _HOP_PERIOD = 0.4, 0.1, 2.3
"""How high a jump and a hop fly [leg lengths], and how soon the next hop follows [pendulum times]."""
_GALLOP = 0.12
"""How far one foot of a galloping pair follows the other, as a share of the stride."""
_TROTS = ("trot", "jog")
_SPRAWLED = 0.12
"""A sprawling body walks at this share of an upright one's Froude number."""
TURN_PER_STRIDE = 0.5
"""How far a turning body comes round in one stride [rad]."""


@dataclass(frozen=True)
class Tempo:
    """What the words and the legs say about travel and rhythm."""

    family: Family
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


def tempo_of(prompt: str, skeleton: Skeleton) -> Tempo:
    """The speed sqrt(Fr g L) of the sentence's verb on these legs, and Alexander's stride 2.4 L Fr^0.34 at that speed.

    A verb that names no travel (dances, waves, idles) stays on the spot.
    """
    words = re.findall(r"[a-z]+", prompt.lower())
    family, froude = _verb(words)
    hopper = family in ("walk", "run") and any(word.startswith(HOPPERS) for word in words)
    if hopper:
        family, froude = "run", max(froude, _HOPPING)
    length, sprawled = leg_length(skeleton)
    froude *= _SPRAWLED if sprawled and family == "walk" else 1.0
    faster = math.prod(_ADVERBS.get(word, 1.0) for word in words)
    speed = math.sqrt(froude * GRAVITY * length) * faster
    small = family == "jump" and any(word.startswith(("hop", "bounc")) for word in words)
    if family in _PERIODS or not speed:
        beat = _HOP_PERIOD if small else _PERIODS.get(family, _PERIODS["still"])
        period = beat * math.sqrt(length / GRAVITY) / faster
    else:
        period = 2.4 * length * (speed**2 / (GRAVITY * length)) ** 0.34 / speed
    side = -1.0 if "right" in words else 1.0
    turning = any(word.startswith(("turn", "circl")) for word in words)
    turn = side * TURN_PER_STRIDE / period if turning else 0.0
    rise = length * (_HOP if small else _LEAP) if family == "jump" else 0.0
    return Tempo(family, speed, period, turn, rise, 0.0 if hopper else _lag(family, words, skeleton, sprawled))


def _lag(family: Family, words: list[str], skeleton: Skeleton, sprawled: bool) -> float | None:
    """Walks and trots are even-sided (Hildebrand's symmetrical gaits); gallops and jumps put both feet down at once."""
    if family in ("fly", "still") or any(word.startswith("limp") for word in words):
        return None
    if family == "jump":
        return 0.0
    legs = sum(limb.kind == "leg" for limb in find_limbs(skeleton))
    gallops = family == "run" and legs == 4 and not sprawled
    return _GALLOP if gallops and not any(word.startswith((*_TROTS, *HEAVY)) for word in words) else 0.5


def _verb(words: list[str]) -> tuple[Family, float]:
    for word in words:
        for stem, family, froude in _VERBS:
            if word.startswith(stem):
                return family, froude
    return "still", 0.0


def leg_length(skeleton: Skeleton) -> tuple[float, bool]:
    """The mean way from hip to toe at rest [m], and whether the legs sprawl; without legs half of the height."""
    points = rest_transforms(skeleton)[:, :3, 3]
    legs = [limb.joints for limb in find_limbs(skeleton) if limb.kind == "leg"]
    if not legs:
        return max(0.5 * float(points[:, 1].max() - points[:, 1].min()), 1e-3), False
    ways: Float[Tensor, "legs 3"] = torch.stack([points[leg[-1]] - points[leg[0]] for leg in legs])
    sprawled = bool((ways[:, 0].abs() > 0.4 * ways[:, 1].abs()).all())
    return max(float(ways.norm(dim=-1).mean()), 1e-3), sprawled
