"""How fast a sentence asks a body to move, under the names of this room; the numbers are in `zoo.gaits.pace`."""

from jigdoll.language.actions import GaitKind as Family
from jigdoll.language.read import read
from jigdoll.types import Request, Skeleton
from jigdoll.zoo.gaits.pace import GRAVITY, TURN_PER_STRIDE, leg_length, pace_of
from jigdoll.zoo.gaits.pace import Pace as Tempo

__all__ = ["GRAVITY", "TURN_PER_STRIDE", "Family", "Tempo", "leg_length", "tempo_of"]


def tempo_of(prompt: str | Request, skeleton: Skeleton) -> Tempo:
    """The pace of a sentence on these legs."""
    return pace_of(read(prompt) if isinstance(prompt, str) else prompt, skeleton)
