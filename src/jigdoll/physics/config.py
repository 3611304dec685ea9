"""How a clip is tracked."""

from dataclasses import dataclass

from jigdoll.errors import JigdollError


@dataclass(frozen=True)
class TrackConfig:
    """How a clip is tracked."""

    iterations: int = 200
    """Steps of Adam per window."""
    substeps: int | None = None
    """Simulation steps per frame; by default a hundred or more, from the character's size and the clip's rate."""
    chunk: int = 32
    """Steps that go back as one, with the gradient clipped at the end."""
    clip: float | None = 1.0
    """Largest norm of the gradient at the end of a chunk; none does not clip."""
    clip_at_end: bool = False
    """Clip only the whole gradient, after the way back: what is usual, and what the paper improves on."""
    learning_rate: float = 0.002
    """Of the target angles [rad]."""
    knots: int = 2
    """Control points of the targets per frame."""
    growing: float = 0.5
    """Share of the iterations in which only a growing first part of the window is simulated: what comes late in a
    clip cannot be right before what comes early is. The first iteration sees all."""
    smooth: float = 0.2
    """Weight of the controls' second difference (lambda_3)."""
    upright: float = 1.0
    """Torque that keeps the first body as upright as the clip has it, in weights times leg lengths per radian."""
    friction: float = 1.0
    ground: bool = True
    """Without it there is no gravity either: for what swims or flies."""
    window: int = 48
    """Frames that are optimised at a time; longer clips are tracked window after window."""
    overlap: int = 12
    """Frames that a window looks beyond what is kept of it."""
    travel: bool = True
    """Give clips that walk in place their ground speed back, so that feet that slid can stand."""
    in_place: bool = False
    """Take that speed out again when the clip is done."""
    stances: bool = True
    """Bring standing feet to rest and onto the ground before the clip is simulated."""
    loose: tuple[str, ...] = ()
    """Joints whose names hold one of these words swing by themselves: ears, tails, straps. Only the robust path can."""
    paper: bool = False
    """The paper's loss (Eq. 13), one control per simulation step, help only towards the initial upright."""

    def __post_init__(self) -> None:
        if self.iterations < 0 or self.chunk < 1 or self.knots < 1:
            raise JigdollError("tracking needs iterations >= 0, and at least one step per chunk and knot per frame")
        if self.substeps is not None and self.substeps < 1:
            raise JigdollError(f"{self.substeps} simulation steps per frame; at least one is needed")
        if not 0 <= self.overlap < self.window:
            raise JigdollError(f"windows of {self.window} frames cannot overlap by {self.overlap}")
