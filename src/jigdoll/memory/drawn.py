"""Motion that was made up because none was found, spoken of as what is found."""

from collections.abc import Callable

from jigdoll.language.actions import ACTIONS
from jigdoll.memory.find import Found
from jigdoll.memory.segments import Words
from jigdoll.memory.shape import speed_of
from jigdoll.rig.anatomy import Anatomy
from jigdoll.rig.retarget.limb_motion import LimbMotion
from jigdoll.types import Request, RequestedAction

DRAWN = 0.5
"""How well words fit what is drawn and not found: real motion that fits well comes before it."""

Draw = Callable[[Request, RequestedAction], LimbMotion]
"""Makes up an action that is not found, in limb space, at the rate of the clip."""


def as_found(motion: LimbMotion, request: Request, action: RequestedAction, anatomy: Anatomy) -> Found:
    """What was drawn, spoken of as what is found."""
    row = ACTIONS.get(action.name)
    goes_on = row is not None and row.gait in ("walk", "run", "dance", "fly")
    words = Words(
        text=f"a {request.noun or request.species or anatomy.kind}: {action.name.replace('_', ' ')}",
        action=action.name,
        noun=request.noun or "",
        kind=anatomy.kind,
        legs=len(anatomy.legs),
        wings=any(part.limb.kind == "wing" for part in anatomy.parts),
        seconds=(len(motion) - 1) / motion.fps,
        speed=speed_of(motion),
        cyclic=goes_on or action.name in ("idle", "swim", "eat"),
        typical=0.0,
        source="the pose space",
        licence="",
        style=request.style,
    )
    return Found(-1, words, DRAWN, DRAWN, 0.0, style=True)
