"""Arms, hands and shoes of everyone who walks upright."""

from collections.abc import Sequence

import numpy as np

from jigdoll.zoo.sculpt import Sculptor

_ARM = ("left_shoulder", "left_elbow", "left_wrist")


def arms(s: Sculptor, radii: Sequence[float], regions: Sequence[str], *, k: float = 0.02) -> None:
    """Upper arm and forearm, with radii at shoulder, elbow (twice) and wrist."""
    g = s.girth.legs
    upper, lower, wrist = (s.at(name) for name in _ARM)
    s.cone(upper, lower, g * radii[0], g * radii[1], "left_shoulder", regions[0], k=k, both=True)
    s.cone(lower, wrist, g * radii[2], g * radii[3], "left_elbow", regions[1], k=0.5 * k, both=True)


def shoulders(s: Sculptor, radius: float, *, inset: float, region: str, k: float) -> None:
    """A bar across the top of the chest, which the collar bones carry."""
    inner, outer = s.at("left_clavicle"), s.at("left_shoulder", (-inset, 0.0, 0.0))
    s.cone(inner, outer, radius, radius, "left_clavicle", region, k=k, both=True)


def hand(s: Sculptor, size: float, region: str, *, fingers: float = 1.0) -> None:
    """A palm, four fingers and a thumb, flat towards the thigh."""
    wrist, tip = s.at("left_wrist"), s.at("left_hand_tip")
    along = (tip - wrist) / np.linalg.norm(tip - wrist)
    across = np.cross(along, np.cross([0.0, 0.0, 1.0], along))
    across /= np.linalg.norm(across)  # From the little finger to the thumb.
    palm = wrist + 0.30 * (tip - wrist)
    g = size * s.girth.legs
    s.cone(
        wrist + 0.12 * (tip - wrist),
        palm + 0.16 * (tip - wrist),
        0.028 * g,
        0.034 * g,
        "left_wrist",
        region,
        flat=(1.25, 0.62),
        side=across,
        k=0.012 * g,
        both=True,
    )
    reach = float(np.linalg.norm(tip - wrist))
    for i, offset in enumerate((-0.032, -0.0105, 0.0105, 0.032)):
        start = palm + across * offset * g + along * 0.02 * g
        end = wrist + along * (reach * (0.96 - 0.07 * abs(i - 1.8))) + across * 1.15 * offset * g
        s.cone(start, end, 0.0125 * g * fingers, 0.0105 * g * fingers, "left_wrist", region, k=0.006 * g, both=True)
    thumb = palm + across * 0.030 * g - along * 0.02 * g
    s.cone(
        thumb,
        thumb + (0.6 * along + 0.8 * across) * 0.048 * g,
        0.016 * g,
        0.0115 * g,
        "left_wrist",
        region,
        k=0.01 * g,
        both=True,
    )


def shoes(s: Sculptor, width: float, height: float, region: str, sole: str) -> None:
    """A shoe from heel to toe with a sole under it; the toes bend."""
    ankle, toe, tip = s.at("left_ankle"), s.at("left_toe"), s.at("left_toe_tip")
    g = s.girth.legs
    heel = np.array([ankle[0], 0.55 * height, ankle[2] - 0.3 * width])
    ball = np.array([toe[0], 0.55 * height, toe[2]])
    s.cone(
        heel,
        ball,
        0.80 * g * width,
        g * width,
        "left_ankle",
        region,
        flat=(1.0, 0.8 * height / width),
        k=0.4 * height,
        both=True,
    )
    s.cone(
        ball,
        (tip[0], 0.5 * height, tip[2]),
        g * width,
        0.85 * g * width,
        "left_toe",
        region,
        flat=(1.0, 0.72 * height / width),
        k=0.2 * height,
        both=True,
    )
    s.cone(
        (ankle[0], 0.3 * height, heel[2]),
        (toe[0], 0.3 * height, toe[2]),
        0.90 * g * width,
        1.08 * g * width,
        "left_ankle",
        sole,
        flat=(1.0, 0.34 * height / width),
        k=0.0,
        both=True,
    )
    s.cone(
        (toe[0], 0.3 * height, toe[2]),
        (tip[0], 0.3 * height, tip[2] + 0.1 * width),
        1.08 * g * width,
        0.92 * g * width,
        "left_toe",
        sole,
        flat=(1.0, 0.34 * height / width),
        k=0.0,
        both=True,
    )
