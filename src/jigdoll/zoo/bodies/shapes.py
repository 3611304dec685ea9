"""Parts that many bodies share: torsos, thighs, paws, hooves, ears, tails."""

import itertools
from collections.abc import Sequence

import numpy as np

from jigdoll.zoo.sculpt import Sculptor, Triple

Station = tuple[str, float, float, float, float]
"""A joint, an offset (y, z) from it, and half width and half height there [m]."""


def torso(s: Sculptor, stations: Sequence[Station], *, region: str = "coat", k: float | None = None) -> None:
    """A trunk of elliptic sections along the spine, which its joints share smoothly."""
    owner = ("pelvis", *s.line("spine"), "chest")
    g = s.girth.torso
    blend = 0.5 * g * min(station[4] for station in stations) if k is None else k
    for i, ((name_a, ya, za, wa, ha), (name_b, yb, zb, wb, hb)) in enumerate(itertools.pairwise(stations)):
        a, b = s.at(name_a, (0.0, ya, za)), s.at(name_b, (0.0, yb, zb))
        s.cone(a, b, g * ha, g * hb, owner, region, flat=((wa + wb) / (ha + hb), 1.0), k=blend, joined=i > 0)


def neck(
    s: Sculptor, radii: Sequence[float], *, region: str = "coat", width: float = 0.85, k: float | None = None
) -> None:
    """From the chest to the head joint, with a radius at each joint."""
    names = ("chest", *s.line("neck"), "head")
    s.chain(names, radii, names, region, flat=(width, 1.0), k=k)


def tail(s: Sculptor, radii: Sequence[float], *, region: str = "coat", k: float | None = None) -> None:
    """From the pelvis to the tip, with a radius at each joint; the pelvis' first."""
    joints = s.line("tail")
    s.chain(("pelvis", *joints, "tail_tip")[-len(radii) :], radii, ("pelvis", *joints), region, k=k)


def thigh(
    s: Sculptor, stem: str, radii: Triple, *, offset: Triple = (0.0, 0.0, 0.0), region: str = "coat", tip: float = 0.0
) -> None:
    """A muscle around the hip, half way into the body; `tip` leans it forward [rad]."""
    hip = f"left_{stem}hip"
    g = s.girth.legs
    c, n = np.cos(tip), np.sin(tip)
    frame = np.array([[1.0, 0.0, 0.0], [0.0, c, n], [0.0, -n, c]])
    size = g * np.asarray(radii)
    s.ball(s.at(hip, offset), size, hip, region, frame=frame, k=0.9 * float(size.min()), both=True)


def paws(s: Sculptor, stem: str, width: float, *, height: float, length: float, region: str = "paw") -> None:
    """A pad of a foot with toes before it."""
    toe, tip = f"left_{stem}toe", f"left_{stem}toe_tip"
    a, b = s.at(toe), s.at(tip)
    g = s.girth.legs
    middle = 0.5 * (a + b)
    s.ball((middle[0], g * height * 0.85, middle[2]), g * np.array([width, height, length]), toe, region, both=True)
    for x in (-0.55, 0.0, 0.55):
        center = (middle[0] + x * g * width, 0.62 * g * height, middle[2] + g * length * (0.78 - 0.25 * abs(x)))
        size = g * np.array([0.33 * width, 0.55 * height, 0.42 * length])
        s.ball(center, size, toe, region, k=0.12 * g * width, both=True)


def hooves(s: Sculptor, stem: str, radius: float, *, height: float, region: str = "hoof") -> None:
    """A pastern and a hoof."""
    toe, tip = f"left_{stem}toe", f"left_{stem}toe_tip"
    g = s.girth.legs
    a, b = s.at(toe), s.at(tip)
    s.cone(a, (b[0], height, b[2]), 0.62 * g * radius, 0.75 * g * radius, toe, "foot", k=0.3 * g * radius, both=True)
    s.cone(
        (b[0], height * 0.85, b[2]),
        (b[0], -0.2 * height, b[2] + 0.25 * radius),
        0.85 * g * radius,
        1.15 * g * radius,
        toe,
        region,
        k=0.1 * g * radius,
        both=True,
    )


def ear(
    s: Sculptor,
    base: Triple,
    tip: Triple,
    width: float,
    *,
    facing: Triple = (0.35, 0.0, 1.0),
    thickness: float = 0.42,
    point: float = 0.24,
    hollow: bool = True,
    region: str = "ear",
    owner: str | tuple[str, ...] = "head",
) -> None:
    """A pair of ears, in head lengths: a leaf from base to tip whose hollow side faces `facing`."""
    h = s.head_length * s.girth.feature
    a = s.on_head(*base)
    b = a + h * ((np.asarray(tip) - np.asarray(base)) @ s.head_frame)
    axis = (b - a) / np.linalg.norm(b - a)
    toward = np.asarray(facing) @ s.head_frame
    side = np.cross(toward, axis)
    s.cone(
        a,
        b,
        h * width,
        h * width * point,
        owner,
        region,
        flat=(1.0, thickness),
        side=side,
        k=0.25 * h * width,
        both=True,
    )
    if hollow:
        front = toward - (toward @ axis) * axis
        lift = front / np.linalg.norm(front) * h * width * thickness
        inner_a, inner_b = a + 0.45 * (b - a) + 1.0 * lift, a + 0.78 * (b - a) + 0.75 * lift
        s.cone(
            inner_a,
            inner_b,
            0.55 * h * width,
            0.55 * h * width * max(point, 0.3),
            owner,
            region,
            flat=(1.0, thickness),
            side=side,
            k=0.15 * h * width,
            both=True,
            carve=True,
        )


def collar(s: Sculptor, a: Triple, b: Triple, radius: float, *, width: float, owner: str, region: str) -> None:
    """A band across the line from a to b, at a."""
    axis = np.asarray(b, dtype=float) - np.asarray(a, dtype=float)
    axis /= np.linalg.norm(axis)
    across = np.array([1.0, 0.0, 0.0])
    frame = np.stack([across, np.cross(axis, across), axis])
    s.ball(a, (radius, radius, width), owner, region, frame=frame, k=0.0)


def crest(
    s: Sculptor,
    stations: Sequence[tuple[Triple, float]],
    owner: str | tuple[str, ...],
    region: str,
    *,
    thin: float = 0.4,
) -> None:
    """A ridge in the middle plane: a mane, a fin."""
    largest = max(radius for _, radius in stations)
    s.tube(stations, owner, region, flat=(thin, 1.0), k=0.25 * thin * largest)


def hoofed_legs(
    s: Sculptor, front: list[float], hind: list[float], *, hoof: float, height: float, thighs: float, shoulders: float
) -> None:
    """Slim legs under strong thighs; sizes are the half depth of the muscles [m]."""
    thigh(
        s,
        "hind_",
        (0.60 * thighs, 1.25 * thighs, 0.95 * thighs),
        offset=(0.0, -0.45 * thighs, 0.10 * thighs),
        tip=-0.25,
    )
    thigh(
        s,
        "front_",
        (0.62 * shoulders, 1.40 * shoulders, 0.95 * shoulders),
        offset=(0.0, 0.05 * shoulders, -0.2 * shoulders),
    )
    s.leg("front_", front)
    s.leg("hind_", hind)
    for stem in ("front_", "hind_"):
        hooves(s, stem, hoof, height=height)


def toes(
    s: Sculptor,
    spread: Sequence[float],
    length: float,
    radius: float,
    *,
    region: str,
    claw: float = 0.0,
    back: bool = False,
) -> None:
    """Toes fanned out from the toe joint, with claws."""
    toe, tip = s.at("left_toe"), s.at("left_toe_tip")
    g = s.girth.legs
    forward = np.array([tip[0] - toe[0], 0.0, tip[2] - toe[2]])
    forward /= np.linalg.norm(forward)
    angles = [*spread, np.pi] if back else list(spread)
    for angle in angles:
        c, n = np.cos(angle), np.sin(angle)
        way = np.array([c * forward[0] + n * forward[2], 0.0, -n * forward[0] + c * forward[2]])
        reach = length * (0.45 if angle == np.pi else 1 - 0.35 * abs(angle))
        knuckle = toe + 0.5 * reach * way
        knuckle[1] = max(0.9 * g * radius, 0.5 * toe[1])
        end = toe + reach * way
        end[1] = 0.70 * g * radius
        s.tube(
            [(toe, g * radius), (knuckle, 0.95 * g * radius), (end, 0.8 * g * radius)],
            "left_toe",
            region,
            k=0.5 * radius,
            both=True,
        )
        if claw > 0:
            s.cone(
                end,
                end + claw * way - [0, 0.5 * end[1], 0],
                0.55 * g * radius,
                0.15 * g * radius,
                "left_toe",
                "claw",
                k=0.1 * radius,
                both=True,
            )
