"""How a file's axes and unit are to be read, in words that the command line shares; nothing heavy is imported here."""

from dataclasses import dataclass
from typing import Literal

Axis = Literal["+x", "-x", "+y", "-y", "+z", "-z"]


@dataclass(frozen=True)
class AxisHints:
    """How a file's axes and unit are to be read; None is a guess."""

    up: Axis | None = None
    """The file's axis that points up."""
    forward: Axis | None = None
    """The file's axis that the character faces."""
    scale: float | None = None
    """Metres per unit of the file."""
