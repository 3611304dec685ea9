"""Motion in limb space as one array per clip: parts, frames, channels."""

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from jigdoll.posespace.figure import CHANNELS, STATIONS, Figure
from jigdoll.rig.retarget.limb_motion import LimbMotion
from jigdoll.rig.retarget.tokens import (
    ROOT_CHANNELS,
    STATION_COUNT,
    LimbFacts,
    Token,
    Tokens,
    limb_motion_from,
    to_6d,
    tokens_of,
)

RATE = 15.0
"""Frames per second of the pose space."""
EXTRA = slice(6 * STATIONS, CHANNELS)
"""The root's channels of the trunk; a limb's end and contact."""
CONTACT = CHANNELS - 1
STANDS = 0.5
"""A limb that stands has this contact, one that does not the opposite."""
STILL = np.concatenate([np.tile(to_6d(np.eye(3)), STATIONS), np.zeros(4)])
"""What a part without any turn holds."""


def pack(motion: LimbMotion, figure: Figure) -> Float[ndarray, "parts frames channels"]:
    """A motion of this body as an array, at the motion's own rate."""
    tokens = tokens_of(motion, count=len(motion))
    rows = list(tokens.rows)
    lead = len(figure) - len(figure.limbs)
    rows = rows[: lead + len(figure.limbs)]
    values = np.tile(STILL, (len(figure), len(motion), 1))
    for i, row in enumerate(rows):
        turns = 6 * STATION_COUNT[row.kind]
        shift = ROOT_CHANNELS if row.kind == "trunk" else 0
        values[i, :, :turns] = row.values[:, shift : shift + turns]
        if row.kind == "trunk":
            values[i, :, EXTRA] = row.values[:, :ROOT_CHANNELS]
            if figure.grounded and not motion.grounded:  # flights of bodies with legs are told in body lengths
                values[i, :, EXTRA.start : EXTRA.start + 2] *= figure.span
                values[i, :, EXTRA.start + 2] = 1 + (values[i, :, EXTRA.start + 2] - 1) * figure.span / figure.rise
        elif i >= lead:
            values[i, :, EXTRA.start : CONTACT] = row.values[:, turns:]
            values[i, :, CONTACT] = np.where(tokens.limbs[i - lead].contact, STANDS, -STANDS)
            missing = np.repeat(~figure.has[i], 6)
            values[i][:, : 6 * STATIONS][:, missing] = STILL[: 6 * STATIONS][missing]
    return values


def unpack(
    values: Float[ndarray, "parts frames channels"],
    figure: Figure,
    *,
    rate: float = RATE,
    fps: float = 30.0,
    name: str = "pose",
) -> LimbMotion:
    """The motion that an array tells of, at a rate of one's own."""
    frames, lead = values.shape[1], len(figure) - len(figure.limbs)
    values = values.astype(float)
    rows, facts = [], []
    for i, kind in enumerate(figure.kinds):
        turns = values[i, :, : 6 * STATION_COUNT[kind]]
        if kind == "trunk":
            own = np.concatenate([values[i, :, EXTRA], turns], -1)
        elif i >= lead:
            own = np.concatenate([turns, values[i, :, EXTRA.start : CONTACT]], -1)
            facts.append(LimbFacts(figure.limbs[i - lead], figure.rests[i - lead], values[i, :, CONTACT] > 0))
        else:
            own = turns
        rows.append(Token(kind, own, figure.has[i, : STATION_COUNT[kind]]))
    tokens = Tokens(
        kind=figure.kind,
        fps=rate,
        frames=frames,
        name=name,
        grounded=figure.grounded,
        start=np.zeros(3),
        rows=tuple(rows),
        limbs=tuple(facts),
    )
    return limb_motion_from(tokens, fps=fps if frames > 1 else None)
