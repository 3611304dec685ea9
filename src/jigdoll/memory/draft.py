"""From a sentence to a draft: real motion for each of its actions, shaped and joined, on the joints of a body."""

from dataclasses import dataclass

import numpy as np

from jigdoll.errors import JigdollError
from jigdoll.memory.find import Found, find, known_actions, pick, segment_of, tempo_of
from jigdoll.memory.segments import Memory
from jigdoll.memory.shape import at_frames, extend, join, mirror, resample
from jigdoll.protocols import TextEncoder
from jigdoll.rig.anatomy import Anatomy
from jigdoll.rig.retarget.decode import decode
from jigdoll.rig.retarget.limb_motion import LimbMotion
from jigdoll.types import Motion, Request, RequestedAction

CYCLE_SECONDS = 2.4
"""How long an action that could go on for ever is shown, where nobody says."""
REST_SECONDS = 0.8
"""How long a pause between two actions lasts."""


@dataclass(frozen=True, eq=False)
class Draft:
    """A motion made of real ones, and where they came from."""

    motion: Motion
    """On the working copy."""
    limb_motion: LimbMotion
    found: tuple[Found, ...]
    """One segment per action of the sentence."""

    @property
    def fit(self) -> float:
        """How well words and body fit, the worst action counting."""
        return min(f.score for f in self.found)


def draft(
    memory: Memory,
    request: Request,
    anatomy: Anatomy,
    encoder: TextEncoder,
    *,
    seconds: float | None = None,
    fps: float = 24.0,
    loop: bool = False,
    seed: int = 0,
) -> Draft:
    """The sentence as real motion on this body; refused by name where the memory knows nothing like it."""
    if not request.actions:
        raise JigdollError(
            f"{request.prompt!r}: no action was found in it; say what it does, such as walks, jumps, waves"
        )
    chosen: list[Found] = []
    pieces: list[LimbMotion] = []
    for action in request.actions:
        found = find(memory, request, action, anatomy, encoder)
        if not found or found[0].action < 0.3:
            known = ", ".join(sorted(known_actions(memory, anatomy.kind))) or "nothing"
            raise JigdollError(
                f"{request.prompt!r}: no real motion of a body like this ({anatomy.kind}) is known for "
                f"{action.word!r}; known are {known}"
            )
        best = pick(found, seed)
        chosen.append(best)
        pieces.append(_piece(memory, best, action, fps, seed))
    shown = _timed(request, chosen, pieces, seconds, seed=seed, loop=loop)
    limb_motion = shown[0]
    for piece in shown[1:]:
        limb_motion = join(limb_motion, piece)
    if seconds is not None and not loop:
        limb_motion = _exactly(limb_motion, seconds)
    return Draft(decode(limb_motion, anatomy), limb_motion, tuple(chosen))


def _piece(memory: Memory, best: Found, action: RequestedAction, fps: float, seed: int) -> LimbMotion:
    """The segment at the wanted rate, tempo and side."""
    motion = resample(segment_of(memory, best).motion, fps, tempo=tempo_of(action))
    turned = float(motion.heading[-1])
    if action.side and action.name in ("turn", "turn_around", "circle", "spin"):
        if (action.side == "left") != (turned > 0) and abs(turned) > 0.2:
            motion = mirror(motion)
    elif action.side and _busier(motion) not in (None, action.side):
        motion = mirror(motion)
    return motion


def _busier(motion: LimbMotion) -> str | None:
    """The side whose arm or foreleg does more."""
    ways = {}
    for track in motion.limbs:
        if track.limb.kind == "arm" or (track.limb.kind == "leg" and track.limb.rank == 0):
            way = float(np.abs(np.diff(track.end, axis=0)).sum())
            ways[track.limb.side] = ways.get(track.limb.side, 0.0) + way
    if len(ways) < 2 or max(ways.values()) < 1.3 * min(ways.values()):
        return None
    return max(ways, key=lambda side: ways[side])


def _timed(
    request: Request,
    chosen: list[Found],
    pieces: list[LimbMotion],
    seconds: float | None,
    *,
    seed: int,
    loop: bool,
) -> list[LimbMotion]:
    """Each piece as long as it should be: what goes on for ever fills the time, the rest takes the time it takes."""
    cyclic = [f.words.cyclic for f in chosen]
    fixed = sum((len(p) - 1) / p.fps for p, c in zip(pieces, cyclic, strict=True) if not c)
    endless = sum(cyclic)
    share = CYCLE_SECONDS
    if seconds is not None and endless:
        share = max((seconds - fixed) / endless + 0.3, 0.6)
    shown = []
    for action, piece, goes_on in zip(request.actions, pieces, cyclic, strict=True):
        if goes_on:
            pause = action.name == "idle" and len(pieces) > 1 and seconds is None
            closed = loop and len(pieces) == 1
            shown.append(extend(piece, REST_SECONDS if pause else share, seed=seed, closed=closed))
        else:
            shown.append(piece)
    return shown


def _exactly(motion: LimbMotion, seconds: float) -> LimbMotion:
    """Cut to the length, or held at the end."""
    count = max(round(seconds * motion.fps) + 1, 2)
    return at_frames(motion, np.minimum(np.arange(count, dtype=float), len(motion) - 1))
