"""Human and child."""

from collections.abc import Sequence

import numpy as np

from jigdoll.zoo.bodies.shapes import torso
from jigdoll.zoo.bodies.shapes_people import arms, hand, shoes, shoulders
from jigdoll.zoo.paint import Canvas, smooth
from jigdoll.zoo.sculpt import Sculptor, moved


def _face(s: Sculptor, *, eye: float, nose: float, width: float = 1.0) -> None:
    """Skull, jaw, nose, ears, brows and eyes, in head heights."""
    s.head_ball((0, 0.57, 0.08), (0.385 * width, 0.46, 0.46), "skin", k=0.1)
    s.head_ball((0, 0.26, 0.17), (0.27 * width, 0.28, 0.29), "skin", k=0.16)
    s.head_cone((0, 0.50, 0.49), (0, 0.36, 0.50 + 0.10 * nose), 0.045, 0.066 * (0.5 + 0.5 * nose), "skin", k=0.05)
    s.head_cone((0.04, 0.345, 0.50), (0.055, 0.345, 0.49), 0.04, 0.03, "skin", k=0.03, both=True)
    s.head_ball((0.385 * width, 0.45, 0.03), (0.045, 0.13, 0.085), "skin", k=0.03, both=True)
    s.head_cone((-0.085, 0.20, 0.43), (0.085, 0.20, 0.43), 0.036, 0.036, "lips", k=0.03)
    s.eyes(0.160 * width, 0.49, 0.420, eye, look=(0.14, -0.02, 1.0))
    s.head_cone(
        (0.085, 0.50 + 1.35 * eye, 0.52),
        (0.25 * width, 0.49 + 1.35 * eye, 0.44),
        0.026,
        0.020,
        "brow",
        k=0.01,
        both=True,
    )


def _person_legs(s: Sculptor, radii: Sequence[float], upper: str, lower: str, *, calf: float) -> None:
    hip, knee, ankle = (s.at(f"left_{part}") for part in ("hip", "knee", "ankle"))
    g = s.girth.legs
    s.cone(hip, knee, g * radii[0], g * radii[1], "left_hip", upper, k=0.4 * radii[1], both=True)
    s.cone(knee, ankle, g * radii[1] * 0.98, g * radii[2], "left_knee", lower, k=0.3 * radii[2], both=True)
    belly = knee + 0.30 * (ankle - knee) + np.array([0.0, 0.0, -0.35 * calf])
    s.ball(belly, g * np.array([calf, 2.2 * calf, calf]), "left_knee", lower, k=0.4 * calf, both=True)


def sculpt_human(s: Sculptor) -> None:
    """A grown person in a shirt, jeans and shoes."""
    torso(
        s,
        [
            ("pelvis", -0.03, -0.005, 0.155, 0.105),
            ("pelvis", 0.03, 0.0, 0.158, 0.108),
            ("spine_1", 0.02, 0.0, 0.135, 0.098),
            ("spine_2", 0.03, 0.005, 0.155, 0.108),
            ("chest", 0.04, 0.01, 0.175, 0.112),
        ],
        region="shirt",
        k=0.02,
    )
    shoulders(s, 0.068, inset=0.03, region="shirt", k=0.06)
    s.cone(
        s.at("chest", (0, 0.10, -0.01)),
        s.at("neck_1", (0, 0.02, 0)),
        0.07,
        0.055,
        ("chest", "neck_1", "head"),
        "skin",
        k=0.04,
    )
    s.cone(s.at("neck_1"), s.at("head", (0, 0.04, 0)), 0.055, 0.052, ("chest", "neck_1", "head"), "skin", k=0.02)
    s.ball(s.at("pelvis", (0.045, -0.055, -0.035)), (0.082, 0.09, 0.085), "pelvis", "jeans", k=0.03, both=True)
    s.ball(s.at("pelvis", (0, -0.04, 0.0)), (0.160, 0.085, 0.112), "pelvis", "jeans", k=0.01)
    _person_legs(s, [0.092, 0.060, 0.045], "jeans", "jeans", calf=0.048)
    shoes(s, 0.046, 0.062, "shoe", "sole")
    arms(s, [0.060, 0.046, 0.043, 0.030], ["sleeve", "skin"])
    hand(s, 1.05, "skin")
    _face(s, eye=0.082, nose=1.0)
    s.head_ball((0, 0.70, -0.03), (0.425, 0.42, 0.475), "hair", k=0.01)
    s.head_cone((0, 0.62, -0.22), (0, 0.30, -0.26), 0.29, 0.20, "hair", k=0.02)
    s.head_cone((-0.16, 0.90, 0.34), (0.20, 0.93, 0.32), 0.13, 0.11, "hair", k=0.08)


def paint_human(c: Canvas) -> None:
    """Cloth keeps to its hems; cheeks are warm."""
    _dress(c, sleeve=0.62, collar=True)
    belt = np.abs(c.y - c.sculptor.at("pelvis")[1] - 0.035)
    c.brush(c.region("shirt", "jeans") * smooth(-belt, -0.022, -0.014) * (1 - c.moved_by("shoulder")), "belt")
    _blush(c)
    c.eyes(rim=(0.97, 0.96, 0.95), ring=0.42, pupil=0.23, lash=0.40)


def _dress(c: Canvas, *, sleeve: float, collar: bool) -> None:
    """Bare forearms below the sleeves, trousers below the waist."""
    s = c.sculptor
    upper, lower = s.at("left_shoulder"), s.at("left_elbow")
    arm = lower - upper
    mirrored = np.stack([np.abs(c.x), c.y, c.z], 1)
    along = (mirrored - upper) @ arm / (arm @ arm)
    c.brush(c.region("sleeve", "skin") * c.moved_by("shoulder", "elbow") * smooth(along, sleeve, sleeve + 0.04), "skin")
    waist = s.at("pelvis")[1] + 0.02
    c.brush(c.region("shirt") * smooth(-(c.y - waist), 0.0, 0.012) * (1 - c.moved_by("shoulder")), "jeans")
    if collar:
        line = s.at("neck_1")[1] - 0.028 + 0.45 * (c.z - s.at("neck_1")[2]) * -1.0
        c.brush(c.region("skin") * c.moved_by("neck", "chest") * smooth(line - c.y, 0.0, 0.008), "shirt")


def _blush(c: Canvas) -> None:
    x, y, z = c.head_coordinates()
    cheek = np.hypot(np.abs(x) - 0.20, y - 0.32)
    c.brush(c.region("skin") * c.moved_by("head") * smooth(z, 0.2, 0.3) * smooth(-cheek, -0.14, 0.0) * 0.5, "blush")


def sculpt_child(s: Sculptor) -> None:
    """A big head on a small body: T-shirt, shorts and a cap of hair."""
    torso(
        s,
        [
            ("pelvis", -0.02, 0.0, 0.098, 0.078),
            ("pelvis", 0.03, 0.002, 0.102, 0.082),
            ("spine_1", 0.02, 0.006, 0.100, 0.082),
            ("spine_2", 0.02, 0.004, 0.100, 0.078),
            ("chest", 0.02, 0.004, 0.102, 0.072),
        ],
        region="shirt",
        k=0.02,
    )
    shoulders(s, 0.044, inset=0.02, region="shirt", k=0.04)
    s.cone(
        s.at("chest", (0, 0.06, 0)),
        s.at("head", (0, 0.03, 0)),
        0.042,
        0.038,
        ("chest", "neck_1", "head"),
        "skin",
        k=0.025,
    )
    s.ball(s.at("pelvis", (0, -0.025, 0.0)), (0.108, 0.065, 0.088), "pelvis", "jeans", k=0.01)
    hip, knee = s.at("left_hip"), s.at("left_knee")
    s.cone(hip, hip + 0.62 * (knee - hip), 0.066, 0.066, "left_hip", "jeans", k=0.015, both=True)
    _person_legs(s, [0.058, 0.042, 0.034], "skin", "skin", calf=0.034)
    ankle = s.at("left_ankle")
    s.cone(moved(ankle, 0, 0.035, 0), moved(ankle, 0, -0.01, 0), 0.037, 0.037, "left_knee", "sock", k=0.004, both=True)
    shoes(s, 0.037, 0.052, "shoe", "sole")
    arms(s, [0.043, 0.034, 0.031, 0.025], ["sleeve", "skin"], k=0.015)
    s.cone(
        s.at("left_shoulder"),
        s.at("left_shoulder") + 0.55 * (s.at("left_elbow") - s.at("left_shoulder")),
        0.047,
        0.050,
        "left_shoulder",
        "shirt",
        k=0.006,
        both=True,
    )
    hand(s, 0.74, "skin", fingers=1.1)
    _face(s, eye=0.102, nose=0.45, width=1.12)
    s.head_ball((0, 0.68, -0.02), (0.475, 0.43, 0.485), "hair", k=0.01)
    s.head_cone((0, 0.60, -0.22), (0, 0.36, -0.24), 0.31, 0.24, "hair", k=0.02)
    s.head_cone((-0.24, 0.84, 0.34), (0.24, 0.84, 0.34), 0.12, 0.12, "hair", k=0.08)
    s.head_cone((0, 1.08, -0.02), (0.05, 1.22, -0.05), 0.05, 0.02, "hair", k=0.05)


def paint_child(c: Canvas) -> None:
    """Bright clothes with a stripe across the shirt."""
    _dress(c, sleeve=0.0, collar=False)
    chest = c.sculptor.at("spine_2")[1]
    c.brush(
        c.region("shirt") * smooth(-np.abs(c.y - chest - 0.01), -0.030, -0.022) * (1 - c.moved_by("shoulder")), "stripe"
    )
    _blush(c)
    c.eyes(rim=(0.97, 0.96, 0.95), ring=0.44, pupil=0.24, lash=0.36)
