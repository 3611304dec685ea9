"""Ostrich and penguin: feathers, beaks, and wings that do not fly."""

import numpy as np

from jigdoll.zoo.bodies.shapes import neck, thigh, toes
from jigdoll.zoo.paint import Canvas, smooth
from jigdoll.zoo.sculpt import Sculptor


def sculpt_ostrich(s: Sculptor) -> None:
    """A plume of a body on stilts, a bare neck, a flat beak."""
    owner = ("pelvis", *s.line("spine"), "chest")
    g, f = s.girth.torso, s.girth.feature
    s.cone(
        s.at("pelvis", (0, 0.06, -0.05)),
        s.at("chest", (0, 0.02, 0.02)),
        0.265 * g,
        0.215 * g,
        owner,
        "feather",
        k=0.05,
        flat=(0.92, 1.0),
    )
    neck(s, [0.15, 0.085, 0.055, 0.048, 0.045, 0.045], region="skin", width=0.95, k=0.08)
    for i, (x, y, z, r) in enumerate(
        (
            (0.0, 0.16, 0.0, 0.13),
            (0.07, 0.10, -0.04, 0.13),
            (0.10, 0.0, -0.02, 0.12),
            (0.0, 0.05, -0.12, 0.14),
            (0.06, 0.2, 0.1, 0.10),
        )
    ):
        s.ball(
            s.at("tail_1", (x, y, z)),
            np.array([0.8, 1.0, 1.1]) * r * f,
            ("pelvis", "tail_1"),
            "plume" if i in (1, 3) else "feather",
            k=0.05,
            both=x > 0,
        )
    s.tube(
        [
            (s.at("tail_1", (0, 0.05, 0.05)), 0.12),
            (s.at("tail_1", (0, 0.08, -0.16)), 0.13 * f),
            (s.at("tail_tip", (0, 0.04, 0.0)), 0.05 * f),
        ],
        ("pelvis", "tail_1"),
        "plume",
        k=0.06,
    )
    wing = ("left_wing_shoulder", "left_wing_elbow", "left_wing_wrist")
    points = [s.at(name) for name in (*wing, "left_wing_tip")]
    for i, (name, ra, rb) in enumerate(zip(wing, (0.10, 0.13, 0.11), (0.13, 0.11, 0.05), strict=True)):
        shade = "feather" if i < 2 else "plume"
        s.cone(points[i], points[i + 1], ra * f, rb * f, name, shade, flat=(0.45, 1.15), k=0.04, both=True)
    thigh(s, "", (0.10, 0.20, 0.15), offset=(0.01, -0.08, 0.08), tip=-0.6, region="skin")
    s.leg("", [0.12, 0.088, 0.045, 0.040], region="skin")
    s.ball(s.at("left_ankle"), (0.052, 0.06, 0.055), "left_knee", "skin", k=0.02, both=True)
    toes(s, (0.0, 0.55), 0.20, 0.040, region="skin", claw=0.05)
    s.head_ball((0, 0.10, 0.10), (0.29, 0.28, 0.36), "skin", k=0.1)
    s.head_cone((0, 0.04, 0.36), (0, -0.02, 0.92), 0.19, 0.10, "beak", k=0.05, flat=(1.15, 0.55))
    s.head_ball((0.08, 0.27, -0.06), (0.2, 0.12, 0.2), "feather", k=0.06, both=True)
    s.eyes(0.185, 0.15, 0.24, 0.115, look=(0.85, 0.15, 0.5))


def paint_ostrich(c: Canvas) -> None:
    """Black plumes, white wing tips and tail, a pink neck and legs."""
    c.shade(1 + 0.5 * c.region("feather") * (c.noise(0.05) - 0.4))
    c.shade(1 - 0.15 * c.region("plume") * c.noise(0.05))
    x, y, _z = c.head_coordinates()
    c.brush(c.region("beak") * smooth(-np.abs(y - 0.0), -0.03, -0.015) * smooth(np.abs(x), 0.05, 0.1), "mouth")
    c.eyes(ring=0.85, pupil=0.5)


def sculpt_penguin(s: Sculptor) -> None:
    """Upright and stout, flippers, a beak, webbed feet."""
    owner = ("pelvis", *s.line("spine"), "chest")
    g = s.girth.torso
    line = [
        (s.at("pelvis", (0, -0.08, 0.02)), 0.145 * g),
        (s.at("pelvis", (0, 0.04, 0.02)), 0.172 * g),
        (s.at("spine_1", (0, 0.02, 0.02)), 0.180 * g),
        (s.at("chest", (0, 0.0, 0.01)), 0.150 * g),
    ]
    s.tube(line, owner, "coat", k=0.03, flat=(1.0, 0.94))
    neck(s, [0.135, 0.108, 0.088], width=1.0)
    s.leg("", [0.075, 0.062, 0.050, 0.045], region="coat")
    toe, tip = s.at("left_toe"), s.at("left_toe_tip")
    s.ball((toe[0], 0.02, 0.5 * (toe[2] + tip[2])), (0.058, 0.022, 0.062), "left_toe", "foot", k=0.01, both=True)
    s.cone(s.at("left_ankle"), toe, 0.05, 0.032, "left_ankle", "foot", k=0.01, both=True)
    for x in (-0.042, 0.0, 0.042):
        s.cone(
            (toe[0] + 0.6 * x, 0.025, toe[2]),
            (toe[0] + 1.15 * x, 0.018, tip[2] + 0.015),
            0.022,
            0.017,
            "left_toe",
            "foot",
            k=0.008,
            both=True,
        )
    s.tube(
        [(s.at("pelvis", (0, -0.06, -0.10)), 0.07), (s.at("tail_1"), 0.06), (s.at("tail_tip"), 0.018)],
        ("pelvis", "tail_1"),
        "coat",
        k=0.05,
        flat=(1.1, 0.7),
    )
    names = ("left_wing_shoulder", "left_wing_elbow", "left_wing_wrist")
    points = [s.at(name) for name in (*names, "left_wing_tip")]
    for i, (ra, rb) in enumerate(((0.055, 0.072), (0.072, 0.064), (0.064, 0.028))):
        s.cone(
            points[i],
            points[i + 1],
            ra,
            rb,
            names[i],
            "wing",
            flat=(0.36, 1.0),
            side=(0.9, 0.35, 0.0),
            k=0.02,
            both=True,
        )
    s.head_ball((0, 0.14, 0.02), (0.66, 0.66, 0.70), "coat", k=0.2)
    s.head_cone((0, 0.06, 0.58), (0, -0.12, 1.22), 0.17, 0.055, "beak", k=0.05, flat=(0.8, 1.0))
    s.eyes(0.44, 0.26, 0.48, 0.105, look=(0.7, 0.1, 0.7))


def paint_penguin(c: Canvas) -> None:
    """Black and white with a golden patch at the ear and throat."""
    s = c.sculptor
    x, y, z = c.head_coordinates()
    front = smooth(c.normals[:, 2] - 0.25 * np.abs(c.normals[:, 0]), 0.02, 0.16)
    chest = smooth(-(c.y - s.at("neck_1")[1] - 0.035), 0.0, 0.03)
    c.brush(c.region("coat") * front * chest, "belly")
    c.brush(c.region("coat") * front * chest * smooth(c.y, s.at("neck_1")[1] - 0.10, s.at("neck_1")[1]), "throat")
    cheek = np.hypot(y - 0.02, z - 0.02)
    c.brush(
        c.moved_by("head") * c.region("coat") * smooth(np.abs(x), 0.35, 0.45) * smooth(-cheek, -0.34, -0.24), "cheek"
    )
    c.brush(c.region("wing") * smooth(-c.normals[:, 0] * np.sign(c.x), 0.2, 0.5), "belly")
    c.brush(c.region("beak") * smooth(-(y + 0.06 + 0.2 * (z - 0.9)), 0.0, 0.05), "cheek")
    c.eyes(rim=(0.42, 0.22, 0.10), iris=(0.55, 0.30, 0.12), ring=0.85, pupil=0.45)
