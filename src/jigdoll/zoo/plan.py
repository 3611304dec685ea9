"""What a species is: where the joints of a character lie at rest, in metres.

Every character stands at rest facing +Z with +Y up, its feet on y = 0; +X is its left. Points of the middle line are
(y, z); points of limbs are (x, y, z) of the left side, and the right side mirrors them. A limb's points name the joints
`hip, knee, ankle, toe, toe_tip` (arms and wings: `shoulder, elbow, wrist, tip`) and bend clearly, so that inverse
kinematics knows which way a knee folds.
"""

from dataclasses import dataclass

from jigdoll.language.nouns import BodyFamily

Line = tuple[tuple[float, float], ...]
"""Points (y, z) of the middle plane."""
Chain = tuple[tuple[float, float, float], ...]
"""Points (x, y, z) of the left side."""


@dataclass(frozen=True)
class Species:
    """The joints of one character at rest [m], world."""

    name: str
    family: BodyFamily
    spine: Line
    """`pelvis`, `spine_1` ..., `chest`."""
    neck: Line
    """`neck_1` ..., `head`, `head_tip`."""
    legs: tuple[Chain, ...]
    """Front to back, five points each."""
    tail: Line = ()
    """`tail_1` ..., `tail_tip`, a child of the pelvis."""
    arms: Chain = ()
    """`clavicle` (where there are five points), `shoulder`, `elbow`, `wrist`, `hand_tip`."""
    wings: Chain = ()
    """`wing_shoulder`, `wing_elbow`, `wing_wrist`, `wing_tip`."""
    trunk: Line = ()
    """`trunk_1` ..., `trunk_tip`, a child of the head."""
    jaw: Line = ()
    """`jaw`, `jaw_tip`, a child of the head."""
    ears: Chain = ()
    """`ear_1` ..., `ear_tip` of the left ear, a child of the head."""
    antennae: Chain = ()
    """`antenna_1` ..., `antenna_tip`, a child of the head."""
    stiff: bool = False
    """Whether the spine hardly bends: a shell holds it."""
