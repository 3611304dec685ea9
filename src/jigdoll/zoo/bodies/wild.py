"""Deer, giraffe and camel: long legs and what they carry on head or back."""

import numpy as np

from jigdoll.zoo.bodies.shapes import crest, ear, hoofed_legs, neck, tail, torso
from jigdoll.zoo.paint import Canvas, smooth
from jigdoll.zoo.sculpt import Sculptor


def sculpt_deer(s: Sculptor) -> None:
    """A stag: fine legs and branching antlers."""
    torso(
        s,
        [
            ("pelvis", -0.01, -0.05, 0.125, 0.150),
            ("spine_1", -0.03, 0.0, 0.135, 0.150),
            ("spine_2", -0.05, 0.0, 0.140, 0.170),
            ("chest", -0.04, 0.04, 0.125, 0.180),
        ],
    )
    neck(s, [0.160, 0.130, 0.090, 0.080], width=0.75)
    hoofed_legs(
        s,
        [0.066, 0.048, 0.031, 0.025],
        [0.09, 0.062, 0.035, 0.026],
        hoof=0.034,
        height=0.045,
        thighs=0.135,
        shoulders=0.105,
    )
    s.tube(
        [(s.at("tail_1", (0, 0, 0.04)), 0.04), (s.at("tail_2"), 0.05), (s.at("tail_tip"), 0.02)],
        ("pelvis", *s.line("tail")),
        "tail",
        k=0.02,
    )
    s.head_ball((0, 0.03, 0.16), (0.21, 0.22, 0.26), "coat", k=0.08)
    s.head_cone((0, -0.02, 0.28), (0, -0.07, 0.84), 0.185, 0.105, "coat", k=0.10, flat=(0.85, 1.0))
    s.head_ball((0, -0.075, 0.88), (0.105, 0.10, 0.10), "muzzle", k=0.04)
    s.head_ball((0, -0.03, 0.965), (0.062, 0.05, 0.04), "nose", k=0.01)
    ear(s, (0.17, 0.17, 0.02), (0.48, 0.34, -0.06), 0.115, facing=(0.2, -0.2, 1.0), thickness=0.42, point=0.3)
    h = s.head_length * s.girth.feature

    def antler(points: list[tuple[float, float, float]], radii: list[float]) -> None:
        base = s.on_head(0.10, 0.20, 0.10)
        up = [base + h * np.array(p) for p in points]
        s.tube([(p, r * h) for p, r in zip(up, radii, strict=True)], "head", "antler", k=0.035 * h, both=True)

    antler(
        [(0.0, -0.05, 0.0), (0.18, 0.35, -0.16), (0.42, 0.75, -0.26), (0.50, 1.15, -0.10), (0.40, 1.50, 0.10)],
        [0.065, 0.055, 0.05, 0.045, 0.025],
    )
    antler([(0.10, 0.18, -0.08), (0.16, 0.34, 0.18), (0.15, 0.54, 0.30)], [0.05, 0.042, 0.024])
    antler([(0.32, 0.60, -0.22), (0.36, 0.80, 0.04), (0.32, 1.02, 0.16)], [0.05, 0.042, 0.024])
    antler([(0.49, 1.08, -0.14), (0.66, 1.30, -0.26), (0.72, 1.52, -0.26)], [0.046, 0.040, 0.024])
    s.eyes(0.170, 0.075, 0.36, 0.062, look=(0.8, 0.1, 0.6))


def paint_deer(c: Canvas) -> None:
    """Red-brown, white throat, belly and rump."""
    c.below(0.55, 0.3)
    _x, y, z = c.head_coordinates()
    s = c.sculptor
    rump = np.linalg.norm((c.points - s.at("tail_2", (0, -0.05, 0.02))) * [1.0, 0.8, 1.0], axis=1)
    c.brush(c.region("coat") * smooth(-rump, -0.15, -0.11), "belly")
    c.brush(c.region("tail") * smooth(-c.normals[:, 1] - c.normals[:, 2], 0.3, 0.7), "belly")
    c.brush(c.moved_by("head") * c.region("coat", "muzzle") * smooth(-y, 0.10, 0.16), "belly")
    c.brush(
        c.moved_by("neck", "head") * c.region("coat") * smooth(c.normals[:, 2], 0.6, 0.8) * smooth(-z, 0.0, 0.2) * 0.8,
        "belly",
    )
    c.inner_ears()
    c.eyes(ring=0.8, pupil=0.5)


def sculpt_giraffe(s: Sculptor) -> None:
    """A neck as long as its legs."""
    torso(
        s,
        [
            ("pelvis", -0.05, -0.06, 0.270, 0.300),
            ("spine_1", -0.10, 0.0, 0.300, 0.340),
            ("spine_2", -0.16, 0.0, 0.315, 0.380),
            ("chest", -0.16, 0.04, 0.290, 0.400),
        ],
    )
    neck(s, [0.360, 0.290, 0.205, 0.165, 0.140], width=0.7)
    hoofed_legs(
        s,
        [0.155, 0.105, 0.080, 0.062],
        [0.19, 0.13, 0.082, 0.064],
        hoof=0.088,
        height=0.12,
        thighs=0.25,
        shoulders=0.22,
    )
    tail(s, [0.07, 0.045, 0.035, 0.030, 0.030])
    s.tube(
        [(s.at("tail_3", (0, -0.25, 0)), 0.04), (s.at("tail_tip"), 0.085), (s.at("tail_tip", (0, -0.22, 0)), 0.02)],
        "tail_3",
        "tuft",
        k=0.04,
    )
    s.head_ball((0, 0.05, 0.14), (0.20, 0.22, 0.25), "coat", k=0.08)
    s.head_cone((0, 0.0, 0.25), (0, -0.07, 0.85), 0.20, 0.125, "coat", k=0.10, flat=(0.85, 1.0))
    s.head_ball((0, -0.08, 0.90), (0.125, 0.11, 0.12), "muzzle", k=0.05)
    s.head_ball((0.06, -0.02, 0.99), (0.03, 0.025, 0.02), "nostril", both=True, k=0.01)
    ear(s, (0.17, 0.16, 0.0), (0.50, 0.26, -0.08), 0.105, facing=(0.2, -0.2, 1.0), thickness=0.45, point=0.3)
    h = s.head_length * s.girth.feature
    base = s.on_head(0.09, 0.20, 0.08)
    s.cone(base, base + h * np.array([0.02, 0.24, -0.06]), 0.045 * h, 0.045 * h, "head", "coat", k=0.02 * h, both=True)
    s.ball(base + h * np.array([0.02, 0.27, -0.07]), (0.068 * h,) * 3, "head", "tuft", k=0.01 * h, both=True)
    s.eyes(0.160, 0.10, 0.32, 0.060, look=(0.85, 0.1, 0.5))
    back = np.array([0.0, 0.35, -0.93])
    line = [
        (s.at("head") + 0.08 * back, 0.06),
        (s.at("neck_3") + 0.13 * back, 0.08),
        (s.at("neck_2") + 0.16 * back, 0.085),
        (s.at("neck_1") + 0.26 * back, 0.085),
    ]
    crest(s, line, ("chest", *s.line("neck"), "head"), "mane", thin=0.5)


def paint_giraffe(c: Canvas) -> None:
    """Cream with a net of brown patches, pale legs."""
    _x, _y, z = c.head_coordinates()
    near, second = c.cells(0.27)
    patch = smooth(second - near, 0.10, 0.19)
    body = c.region("coat") * (1 - c.moved_by("ankle", "toe")) * smooth(c.y, 0.75, 1.0)
    head = c.moved_by("head") * smooth(z, 0.0, 0.15)
    c.brush(body * patch * (1 - head), "patch")
    c.brush(head * c.region("coat") * smooth(-z, -0.8, -0.3) * 0.4, "patch")
    c.inner_ears()
    c.eyes(ring=0.8, pupil=0.5)


def sculpt_camel(s: Sculptor) -> None:
    """Two humps and a neck that dips before it rises."""
    torso(
        s,
        [
            ("pelvis", -0.06, -0.06, 0.200, 0.230),
            ("spine_1", -0.08, 0.0, 0.245, 0.270),
            ("spine_2", -0.10, 0.0, 0.255, 0.290),
            ("chest", -0.10, 0.04, 0.225, 0.290),
        ],
    )
    neck(s, [0.250, 0.200, 0.150, 0.120, 0.105], width=0.75)
    owner = ("pelvis", *s.line("spine"), "chest")
    f = s.girth.feature
    for joint, z in (("spine_1", -0.06), ("spine_2", 0.16)):
        s.cone(
            s.at(joint, (0, 0.12, z)),
            s.at(joint, (0, 0.14 + 0.27 * f, z - 0.02)),
            0.22 * f,
            0.115 * f,
            owner,
            "hump",
            k=0.10,
        )
    hoofed_legs(
        s,
        [0.095, 0.075, 0.060, 0.046],
        [0.12, 0.085, 0.058, 0.046],
        hoof=0.080,
        height=0.045,
        thighs=0.175,
        shoulders=0.15,
    )
    tail(s, [0.05, 0.036, 0.028, 0.026, 0.026])
    s.tube(
        [
            (s.at("tail_3", (0, -0.12, 0)), 0.035),
            (s.at("tail_tip", (0, 0.02, 0)), 0.055),
            (s.at("tail_tip", (0, -0.08, 0)), 0.02),
        ],
        "tail_3",
        "tuft",
        k=0.03,
    )
    s.head_ball((0, 0.04, 0.16), (0.21, 0.22, 0.27), "coat", k=0.08)
    s.head_cone((0, -0.02, 0.30), (0, -0.05, 0.84), 0.19, 0.145, "coat", k=0.08, flat=(0.85, 1.0))
    s.head_ball((0, -0.02, 0.90), (0.135, 0.13, 0.11), "muzzle", k=0.05)
    s.head_ball((0, -0.16, 0.82), (0.10, 0.07, 0.12), "muzzle", k=0.05)
    s.head_ball((0.055, 0.03, 0.985), (0.028, 0.03, 0.02), "nostril", both=True, k=0.01)
    ear(s, (0.15, 0.20, 0.0), (0.25, 0.36, -0.04), 0.075, facing=(0.5, 0.0, 1.0), thickness=0.6, hollow=False)
    s.ball(s.on_head(0, 0.24, 0.08), np.array([0.13, 0.09, 0.16]) * s.head_length * f, "head", "hump", k=0.03)
    for joint in ("neck_1", "neck_2"):
        s.ball(s.at(joint, (0, -0.14, 0.02)), (0.07, 0.10, 0.14), ("chest", *s.line("neck"), "head"), "hump", k=0.08)
    s.eyes(0.165, 0.095, 0.33, 0.056, look=(0.85, 0.1, 0.5))


def paint_camel(c: Canvas) -> None:
    """Sand, shaggier and darker on humps and throat."""
    c.shade(1 - 0.12 * c.noise(0.08) * c.region("hump"))
    c.shade(1 - 0.12 * c.region("coat") * smooth(-c.normals[:, 1], 0.1, 0.8))
    c.eyes(ring=0.8, pupil=0.5)
