"""How bodies of each build move: leg phases, duty factors, strides, and how trunk, head, arms and tail go along.

Lengths are shares of the leg length, angles radians, speeds Froude numbers v^2 / (g L).
"""

from dataclasses import dataclass, replace
from typing import Literal

import torch

from jigdoll.language.nouns import HEAVY, HOPPERS
from jigdoll.language.read import read_name
from jigdoll.zoo.gaits.anatomy import Anatomy

Build = Literal["human", "bird", "hopper", "waddler", "cursorial", "hoofed", "heavy", "crawler", "insect"]

# Touchdown of the left legs from front to back, and by how much the right ones follow, as shares of the period.
PATTERNS: dict[str, tuple[tuple[float, ...], float]] = {
    "alternate": ((0.0,), 0.5),
    "together": ((0.0, 0.0, 0.0, 0.0), 0.0),
    "lateral_walk": ((0.25, 0.0), 0.5),  # each hind foot is followed by the fore foot of its side
    "amble": ((0.2, 0.0), 0.5),
    "pace": ((0.08, 0.0), 0.5),
    "trot": ((0.5, 0.0), 0.5),
    "sprawled_walk": ((0.42, 0.0), 0.5),
    "gallop": ((0.48, 0.0), 0.12),
    "bound": ((0.42, 0.0), 0.04),
    "tripod": ((0.0, 0.5, 0.0), 0.5),
    "tetrapod": ((0.05, 0.5, 0.95, 0.45), 0.5),
}


@dataclass(frozen=True)
class Style:
    """One way to get along."""

    pattern: str
    froude: float
    duty: float
    stride: float = 1.0
    """Times Alexander's stride length 2.4 L Fr^0.34."""
    lift: float = 0.12
    crouch: float = 0.0
    """How much lower than at rest the body is carried."""
    bob: float = 0.02
    """Up and down, half of the range; high over a standing leg, or low over it when `bounce`."""
    bounce: bool = False
    sway: float = 0.02
    """Towards the standing leg."""
    roll: float = 0.03
    """The pelvis drops on the swinging side; negative leans the body over the standing leg, a waddle."""
    yaw: float = 0.05
    """The pelvis follows the swinging leg."""
    chest_yaw: float = 0.06
    """The chest goes with the forelegs, or against the pelvis of a biped."""
    chest_roll: float = 0.0
    lean: float = 0.0
    """Pitch of the trunk, positive forwards."""
    flex: float = 0.0
    """The back rounds and stretches once per stride."""
    pitch: float = 1.0
    """Share of the pitch that follows from fore and hind legs bobbing in turn."""
    nod: float = 0.03
    head: float = 0.0
    """How far the head is held lower than at rest [rad]."""
    tail_sway: float = 0.12
    tail_lift: float = 0.0
    arm_swing: float = 0.45
    elbow: float = 0.25
    heel: float = 0.0
    push: float = 0.0
    curl: float = 0.5
    width: float = 1.0
    ear: float = 0.06
    wing: float = 0.02
    beat: float | None = None
    """Steps on the spot with a period of so many pendulum times sqrt(L / g)."""
    limp: float = 0.0
    """How much one leg is spared: it stands for a shorter time and the body comes down on it less."""
    arms_up: float = 0.0
    """How far the arms are raised sideways in time with the steps [rad]."""
    rigid: bool = False
    """Whether the trunk is one piece, as under a turtle's shell."""


_HOOFED = ("horse", "cow", "deer", "sheep", "pig", "camel", "giraffe")
_PAWED = ("fox", "dog", "cat", "lion", "tiger", "rabbit", "dragon")


def build_of(anatomy: Anatomy, name: str) -> Build:
    """Which build a body has: its name says it for those whose bones look like another's, else its bones do."""
    species = read_name(name).species
    if species in HOPPERS:
        return "hopper"
    if species == "penguin":
        return "waddler"
    if species in HEAVY:
        return "heavy"
    if anatomy.plan == "biped":
        return _biped_build(anatomy)
    if anatomy.plan != "quadruped":
        return "insect"
    if anatomy.sprawled:
        return "crawler"
    if species in _HOOFED:
        return "hoofed"
    if species in _PAWED:
        return "cursorial"
    hind = max(anatomy.legs, key=lambda leg: leg.rank)
    ankle = hind.joints[-2] if hind.foot is None else hind.foot
    height = float(anatomy.points[ankle, 1] / anatomy.points[hind.joints[0], 1].clamp_min(1e-6))
    return "hoofed" if height > 0.34 else "cursorial" if height > 0.2 else "heavy"


def _biped_build(anatomy: Anatomy) -> Build:
    """Upright on flat feet, or hung between two bird's legs."""
    leg = anatomy.legs[0]
    if leg.foot is None and not anatomy.upright:
        return "bird"
    short = anatomy.leg_length < 0.3 * anatomy.body_length
    return "waddler" if short and anatomy.wings else "human"


_WALK = {
    "human": Style(
        "alternate", 0.2, 0.61, lift=0.04, bob=0.018, sway=0.02, roll=0.05, yaw=0.09, chest_yaw=0.1, lean=0.02,
        heel=0.32, push=0.75, curl=0.2, width=0.75, arm_swing=0.42, elbow=0.2, nod=0.01,
    ),
    "bird": Style(
        "alternate", 0.18, 0.6, lift=0.16, bob=0.025, sway=0.05, roll=0.03, yaw=0.08, chest_yaw=0.03, nod=0.06,
        curl=0.9, width=0.75, tail_sway=0.07, crouch=0.0,
    ),
    "hopper": Style(
        "together", 0.5, 0.4, stride=0.8, lift=0.12, bob=0.12, bounce=True, sway=0.0, roll=0.0, yaw=0.0, chest_yaw=0.0,
        push=0.6, lean=0.12, nod=0.05, tail_sway=0.0, tail_lift=0.12, crouch=0.05,
    ),
    "waddler": Style(
        "alternate", 0.1, 0.62, stride=1.0, lift=0.18, bob=0.03, sway=0.18, roll=-0.16, yaw=0.2, chest_yaw=-0.12,
        chest_roll=0.1, heel=0.1, push=0.22, nod=0.02, tail_sway=0.15, width=0.9, curl=0.2,
    ),
    "cursorial": Style(
        "lateral_walk", 0.14, 0.64, lift=0.11, bob=0.018, sway=0.02, roll=0.03, yaw=0.06, chest_yaw=0.05, nod=0.05,
        curl=0.7, width=0.8, tail_sway=0.14,
    ),
    "hoofed": Style(
        "lateral_walk", 0.13, 0.64, lift=0.09, bob=0.015, sway=0.015, roll=0.025, yaw=0.04, chest_yaw=0.03, nod=0.07,
        curl=0.8, width=0.85, tail_sway=0.12,
    ),
    "heavy": Style(
        "lateral_walk", 0.08, 0.68, lift=0.06, bob=0.012, sway=0.03, roll=0.03, yaw=0.03, chest_yaw=0.03, nod=0.06,
        push=0.4, curl=0.3, width=0.85, tail_sway=0.1,
    ),
    "crawler": Style(
        "sprawled_walk", 0.03, 0.68, stride=1.25, lift=0.2, bob=0.01, sway=0.05, roll=0.03, yaw=0.16, chest_yaw=0.16,
        nod=0.0, tail_sway=0.2, curl=0.0,
    ),
    "insect": Style(
        "tripod", 0.07, 0.58, stride=0.85, lift=0.2, bob=0.012, sway=0.02, roll=0.015, yaw=0.04, chest_yaw=0.02,
        nod=0.02, tail_sway=0.04, ear=0.18, curl=0.0,
    ),
}  # fmt: skip

_RUN = {
    "human": Style(
        "alternate", 1.2, 0.34, stride=0.92, lift=0.2, bob=0.035, bounce=True, sway=0.01, roll=0.05, yaw=0.14,
        chest_yaw=0.16, lean=0.14, heel=0.05, push=0.95, curl=0.2, width=0.45, arm_swing=0.75, elbow=1.35, nod=0.02,
        crouch=0.03,
    ),
    "bird": Style(
        "alternate", 1.2, 0.36, lift=0.3, bob=0.05, bounce=True, sway=0.02, roll=0.03, yaw=0.08, chest_yaw=0.03,
        lean=0.06, nod=0.03, curl=1.1, width=0.6, tail_sway=0.06, crouch=0.05, elbow=0.3,
    ),
    "hopper": Style(
        "together", 1.6, 0.3, stride=0.95, lift=0.2, bob=0.2, bounce=True, sway=0.0, roll=0.0, yaw=0.0, chest_yaw=0.0,
        push=0.75, lean=0.3, nod=0.06, tail_sway=0.0, tail_lift=0.22, crouch=0.06,
    ),
    "waddler": Style(
        "alternate", 0.3, 0.48, stride=0.9, lift=0.25, bob=0.05, bounce=True, sway=0.12, roll=-0.14, yaw=0.22,
        chest_yaw=-0.1, chest_roll=0.08, lean=0.1, heel=0.05, push=0.25, nod=0.02, width=0.8, curl=0.2, wing=0.15,
    ),
    "cursorial": Style(
        "gallop", 2.4, 0.27, lift=0.22, bob=0.08, bounce=True, sway=0.0, roll=0.0, yaw=0.0, chest_yaw=0.0, flex=0.4,
        pitch=0.8, nod=0.06, curl=1.1, width=0.7, tail_sway=0.06, tail_lift=0.25, crouch=0.04,
    ),
    "hoofed": Style(
        "gallop", 2.2, 0.27, lift=0.22, bob=0.06, bounce=True, sway=0.0, roll=0.0, yaw=0.0, chest_yaw=0.0, flex=0.14,
        pitch=0.8, nod=0.12, curl=1.2, width=0.75, tail_sway=0.06, tail_lift=0.3, crouch=0.02,
    ),
    "heavy": Style(
        "amble", 0.4, 0.52, lift=0.1, bob=0.02, bounce=True, sway=0.03, roll=0.03, yaw=0.05, chest_yaw=0.04, nod=0.08,
        push=0.5, curl=0.3, width=0.8, tail_sway=0.08, tail_lift=0.2,
    ),
    "crawler": Style(
        "trot", 0.25, 0.5, stride=0.95, lift=0.28, bob=0.03, bounce=True, sway=0.04, roll=0.04, yaw=0.24,
        chest_yaw=0.24, nod=0.0, tail_sway=0.28, curl=0.0,
    ),
    "insect": Style(
        "tripod", 0.3, 0.5, stride=0.8, lift=0.25, bob=0.02, bounce=True, sway=0.02, roll=0.02, yaw=0.05,
        chest_yaw=0.02, nod=0.02, tail_sway=0.05, ear=0.2, curl=0.0,
    ),
}  # fmt: skip


def walk_style(anatomy: Anatomy, name: str) -> Style:
    """The walk of a build, and what single species are known for."""
    build, species = build_of(anatomy, name), read_name(name).species
    style = _WALK[build]
    if species in ("camel", "giraffe"):
        return replace(style, pattern="pace" if species == "camel" else "amble", nod=0.08)
    if species == "turtle":
        return replace(
            style, froude=0.008, duty=0.76, stride=1.25, yaw=0.06, chest_yaw=0.0, sway=0.08, roll=0.05, tail_sway=0.1
        )
    if species == "robot":
        return replace(style, roll=0.02, sway=0.03, heel=0.12, push=0.4, chest_yaw=0.04, arm_swing=0.3, elbow=0.5)
    if species == "astronaut":
        return replace(style, froude=0.14, lift=0.09, bob=0.025, arm_swing=0.3, elbow=0.45, width=0.9, sway=0.035)
    if species == "child":
        return replace(style, froude=0.3, bob=0.022, arm_swing=0.5, elbow=0.4, nod=0.02)
    if species == "t_rex":
        return replace(style, froude=0.13, lift=0.16, sway=0.06, roll=0.05, nod=0.05, tail_sway=0.1)
    if species in ("cat", "lion", "tiger"):
        return replace(style, lift=0.1, flex=0.0, sway=0.02, roll=0.04, yaw=0.07, chest_yaw=0.07, head=0.05)
    return replace(style, pattern="tetrapod") if anatomy.plan == "octopod" else style


def run_style(anatomy: Anatomy, name: str) -> Style:
    """The fast gait that a build takes to of itself."""
    build, species = build_of(anatomy, name), read_name(name).species
    style = _RUN[build]
    if species == "rabbit":
        return replace(style, pattern="bound", flex=0.55, froude=2.0, bob=0.12)
    if species == "rhino":
        return replace(gallop_style(anatomy, name), flex=0.08, bob=0.04, froude=1.4, lift=0.18)
    if species in ("pig", "sheep", "cow", "dragon"):
        return trot_style(anatomy, name)
    if species == "camel":
        return replace(trot_style(anatomy, name), pattern="pace", sway=0.04, roll=0.04)
    if species == "turtle":
        return replace(style, rigid=True, froude=0.03, stride=1.25, yaw=0.08, tail_sway=0.1, duty=0.6)
    if species in ("robot", "astronaut"):
        return replace(style, froude=0.9, arm_swing=0.6)
    return replace(style, pattern="tetrapod") if anatomy.plan == "octopod" else style


def trot_style(anatomy: Anatomy, name: str) -> Style:
    """Diagonal legs together, with a moment in the air."""
    base = _WALK[build_of(anatomy, name)]
    return replace(
        base, pattern="trot", froude=0.75, duty=0.42, lift=0.2, bob=0.03, bounce=True, sway=0.0, roll=0.02,
        yaw=0.03, chest_yaw=0.02, nod=0.02, curl=1.1, width=0.75, tail_lift=0.12, crouch=0.02,
    )  # fmt: skip


def gallop_style(anatomy: Anatomy, name: str) -> Style:
    """Hind pair, fore pair, and a gathered flight."""
    build = build_of(anatomy, name)
    return _RUN[build] if _RUN[build].pattern == "gallop" else _RUN["hoofed"]


def creep_style(walk: Style, anatomy: Anatomy) -> Style:
    """Low and slow, the head down."""
    low = anatomy.sprawled
    lean = 0.0 if low else 0.12 if anatomy.upright else 0.04
    return replace(
        walk, froude=walk.froude * 0.22, stride=walk.stride * 1.15, duty=min(walk.duty + 0.1, 0.8), bounce=False,
        crouch=0.06 if low else 0.2, lift=walk.lift * 0.9, bob=walk.bob * 0.4, sway=walk.sway * 0.6, nod=0.01,
        head=0.0 if low else 0.1, lean=walk.lean + lean, heel=walk.heel * 0.3, push=walk.push * 0.5, arm_swing=0.25,
        elbow=0.9, tail_sway=walk.tail_sway * 0.5,
    )  # fmt: skip


def march_style(walk: Style, anatomy: Anatomy) -> Style:
    """Knees high, in strict time."""
    four = anatomy.plan == "quadruped"
    return replace(
        walk, pattern="trot" if four else walk.pattern, froude=walk.froude * 0.7, duty=0.56, lift=0.3 if four else 0.32,
        bob=0.02, sway=0.01, roll=0.02, yaw=0.03, chest_yaw=0.04, heel=0.0, push=walk.push * 0.6, nod=0.02,
        arm_swing=0.75, elbow=0.1, head=-0.04, curl=0.8, stride=walk.stride * 0.9,
    )  # fmt: skip


def limp_style(walk: Style) -> Style:
    """One leg spared."""
    return replace(walk, limp=1.0, froude=walk.froude * 0.5, duty=walk.duty + 0.02, bob=walk.bob * 0.5)


def stomp_style(walk: Style, anatomy: Anatomy) -> Style:
    """On the spot, each foot lifted high and set down hard."""
    pattern = {"biped": "alternate", "quadruped": "trot"}.get(anatomy.plan, walk.pattern)
    return replace(
        walk, pattern=pattern, beat=4.6, duty=0.66, lift=0.36 if anatomy.plan == "biped" else 0.28, bob=0.035,
        bounce=True, sway=0.06, roll=-0.06, yaw=0.04, chest_yaw=0.03, heel=0.0, push=0.15, nod=0.08, arm_swing=0.25,
        elbow=1.0, lean=0.06, width=1.1, crouch=0.03, curl=0.3,
    )  # fmt: skip


def dance_style(walk: Style, anatomy: Anatomy) -> Style:
    """On the spot, side to side with a twist, arms and tail along."""
    pattern = {"biped": "alternate", "quadruped": "trot"}.get(anatomy.plan, walk.pattern)
    if anatomy.sprawled:
        return replace(
            walk, pattern=pattern, beat=4.0, duty=0.6, lift=0.25, bob=0.04, bounce=True, sway=0.08, roll=-0.04,
            yaw=0.12, chest_yaw=0.12, nod=0.08, tail_sway=0.3, ear=0.3,
        )  # fmt: skip
    return replace(
        walk, pattern=pattern, beat=4.0, duty=0.6, lift=0.16, bob=0.045, bounce=True, sway=0.1, roll=-0.1, yaw=0.28,
        chest_yaw=0.22, chest_roll=0.1, heel=0.0, push=0.35, nod=0.16, tail_sway=0.35, arm_swing=0.3, elbow=1.1,
        arms_up=1.1, width=1.25, crouch=0.04, ear=0.2, curl=0.3,
    )  # fmt: skip


def hop_style(anatomy: Anatomy, walk: Style) -> Style:
    """Both feet, or all, at once, again and again."""
    return replace(
        walk, pattern="together", froude=0.22, duty=0.46, stride=0.75, lift=0.12, bob=0.08, bounce=True, sway=0.0,
        roll=0.0, yaw=0.0, chest_yaw=0.0, heel=0.0, push=0.55, nod=0.04, arm_swing=0.1, elbow=0.9, crouch=0.06,
        tail_sway=0.04, lean=walk.lean + 0.05 * anatomy.upright, wing=0.1,
    )  # fmt: skip


def leg_phases(pattern: str, anatomy: Anatomy) -> tuple[float, ...]:
    """Touchdown of every leg of a body within the period."""
    left, across = PATTERNS[pattern]
    return tuple(
        (left[min(leg.rank, len(left) - 1)] + (across if leg.side == "right" else 0.0)) % 1 for leg in anatomy.legs
    )


def varied(style: Style, seed: int) -> tuple[Style, float, float]:
    """The style as another individual has it, with a tempo and a starting phase; seed 0 is the table's own."""
    if seed == 0:
        return style, 1.0, 0.0
    g = torch.Generator().manual_seed(seed)

    def about(value: float, spread: float) -> float:
        return value * (1 + spread * (2 * float(torch.rand((), generator=g, dtype=torch.float64)) - 1))

    changed = {
        "froude": 0.3, "stride": 0.1, "lift": 0.35, "bob": 0.4, "sway": 0.5, "roll": 0.5, "yaw": 0.4, "chest_yaw": 0.4,
        "flex": 0.3, "nod": 0.8, "tail_sway": 0.7, "arm_swing": 0.35, "elbow": 0.35, "push": 0.2, "heel": 0.4,
        "curl": 0.3, "duty": 0.05, "width": 0.12,
    }  # fmt: skip
    style = replace(style, **{field: about(getattr(style, field), spread) for field, spread in changed.items()})
    more = 2 * torch.rand(4, generator=g, dtype=torch.float64) - 1
    style = replace(
        style,
        head=style.head + 0.12 * float(more[0]),
        tail_lift=style.tail_lift + 0.15 * float(more[1]),
        crouch=style.crouch + 0.04 * max(float(more[2]), 0.0),
    )
    return style, 1 + 0.1 * float(more[3]), float(torch.rand((), generator=g, dtype=torch.float64))
