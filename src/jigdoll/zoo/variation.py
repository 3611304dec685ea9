"""Other individuals of a species: longer legs, a shorter neck, another coat."""

import colorsys
from dataclasses import dataclass, fields, replace

import numpy as np
import torch

from jigdoll.zoo.paint import Color, Palette
from jigdoll.zoo.species import Chain, Line, Species


@dataclass(frozen=True)
class Build:
    """Factors on a species' own proportions; one changes nothing."""

    size: float = 1.0
    leg_length: float = 1.0
    torso_length: float = 1.0
    neck_length: float = 1.0
    head: float = 1.0
    tail_length: float = 1.0
    arm_length: float = 1.0
    """Of arms and wings."""
    girth: float = 1.0
    leg_girth: float = 1.0
    feature: float = 1.0
    """Size of ears, horns, humps, manes."""


_SPREAD = {
    "size": 0.12,
    "leg_length": 0.11,
    "torso_length": 0.09,
    "neck_length": 0.13,
    "head": 0.08,
    "tail_length": 0.18,
    "arm_length": 0.08,
    "girth": 0.10,
    "leg_girth": 0.10,
    "feature": 0.14,
}
"""How far individuals of one species differ: the largest change of each factor."""


def sample_build(generator: torch.Generator, *, spread: float = 1.0) -> Build:
    """A random build; `spread` widens the range of the species."""
    draws = (2 * torch.rand(len(fields(Build)), generator=generator) - 1).tolist()
    factors = {f.name: (1 + _SPREAD[f.name]) ** (spread * draw) for f, draw in zip(fields(Build), draws, strict=True)}
    return Build(**factors)


def apply_build(species: Species, build: Build) -> Species:
    """The species with these proportions, apart from its size and girths; its feet stay on the ground."""
    hips = [leg[0][1] for leg in species.legs]
    rise = (build.leg_length - 1) * min(hips)
    pelvis = np.array([species.spine[0][0] + rise, species.spine[0][1]])
    spine = _stretched(species.spine, species.spine[0], pelvis, build.torso_length)
    front = np.array(spine[-1]) - np.array(species.spine[-1])
    back = np.array([rise, 0.0])
    neck = _stretched(species.neck[:-1], species.neck[0], np.array(species.neck[0]) + front, build.neck_length)
    head, old_head = np.array(neck[-1]), species.neck[-2]

    def on_head(line: Line) -> Line:
        return tuple(
            _above_ground(point, old)
            for point, old in zip(_stretched(line, old_head, head, build.head), line, strict=True)
        )

    def on_head_sides(chain: Chain) -> Chain:
        flat = _stretched(tuple((y, z) for _, y, z in chain), old_head, head, build.head)
        return tuple((build.head * x, y, z) for (x, _, _), (y, z) in zip(chain, flat, strict=True))

    tail = species.tail
    if tail:
        grown = _stretched(tail, tail[0], np.array(tail[0]) + back, build.tail_length)
        tail = tuple(_above_ground(point, old) for point, old in zip(grown, tail, strict=True))
    shifts = [back if _hangs_on_pelvis(species, i) else front for i in range(len(hips))]
    return replace(
        species,
        spine=spine,
        neck=(*neck, *on_head(species.neck[-1:])),
        legs=tuple(_grown_leg(leg, shift) for leg, shift in zip(species.legs, shifts, strict=True)),
        tail=tail,
        arms=_grown_arm(species.arms, front, build.arm_length),
        wings=_grown_arm(species.wings, front, build.arm_length),
        trunk=on_head(species.trunk),
        jaw=on_head(species.jaw),
        ears=on_head_sides(species.ears),
        antennae=on_head_sides(species.antennae),
    )


def _hangs_on_pelvis(species: Species, leg: int) -> bool:
    return len(species.legs) == 1 or leg >= (len(species.legs) + 1) // 2


def _stretched(line: Line, origin: tuple[float, float], place: np.ndarray, factor: float) -> Line:
    """The line scaled about an origin that moves to a new place."""
    return tuple((place[0] + factor * (y - origin[0]), place[1] + factor * (z - origin[1])) for y, z in line)


def _above_ground(point: tuple[float, float], old: tuple[float, float]) -> tuple[float, float]:
    """A tail or a trunk that grew stays at least half as high over the ground as it was."""
    return (max(point[0], 0.5 * old[0]), point[1])


def _grown_leg(leg: Chain, shift: np.ndarray) -> Chain:
    """The leg under a hip that moved by (y, z): knee and ankle keep their shares, the foot its height."""
    x, y, z = leg[0]
    sole = leg[3][1]
    ratio = (y + shift[0] - sole) / (y - sole)
    grown = []
    for i, (px, py, pz) in enumerate(leg):
        height = py if i >= 3 else sole + ratio * (py - sole)
        grown.append((x + ratio * (px - x), height, z + shift[1] + ratio * (pz - z)))
    # The foot itself does not grow: toe to tip keeps its length.
    toe, old_toe = np.array(grown[3]), np.array(leg[3])
    grown[4] = tuple((toe + np.array(leg[4]) - old_toe).tolist())
    return tuple(grown)


def _grown_arm(arm: Chain, shift: np.ndarray, factor: float) -> Chain:
    if not arm:
        return arm
    start = np.array(arm[0]) + np.array([0.0, *shift])
    return tuple(tuple((start + factor * (np.array(point) - np.array(arm[0]))).tolist()) for point in arm)


_DYED = ("shirt", "jeans", "shoe", "accent", "collar", "stripe", "badge", "panel")
_KEPT = (
    "tooth",
    "nose",
    "nostril",
    "eye",
    "mouth",
    "tongue",
    "lips",
    "blush",
    "claw",
    "sole",
    "lamp",
    "button",
    "visor",
    "sky",
)


def sample_palette(
    palette: Palette, morphs: tuple[Palette, ...], generator: torch.Generator, *, dyed: bool, spread: float = 1.0
) -> Palette:
    """Another coat: one of the species' morphs, then a small shift of every colour, alike for like colours.

    `dyed` lets clothes and paint take any hue.
    """
    choice = int(torch.randint(len(morphs) + 1, (1,), generator=generator))
    chosen = {**palette, **(morphs[choice - 1] if choice else {})}
    shifts: dict[Color, Color] = {}
    coat = (2 * torch.rand(3, generator=generator) - 1).tolist()
    out: dict[str, Color] = {}
    for region, color in chosen.items():
        draw = torch.rand(4, generator=generator).tolist()
        if region in _KEPT:
            out[region] = color
            continue
        if color not in shifts:
            hue, saturation, value = colorsys.rgb_to_hsv(*color)
            if dyed and region in _DYED:
                hue = draw[0]
            hue += spread * (0.025 * coat[0] + 0.01 * (2 * draw[1] - 1))
            saturation *= (1 + 0.25 * spread) ** coat[1]
            value *= (1 + 0.16 * spread) ** (coat[2] + 0.3 * (2 * draw[2] - 1))
            shifts[color] = colorsys.hsv_to_rgb(hue % 1.0, min(saturation, 1.0), min(value, 0.98))
        out[region] = shifts[color]
    return out
