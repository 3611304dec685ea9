"""Horse, cow, pig and sheep: hooves, manes, udders, snouts and wool."""

import numpy as np

from jigdoll.zoo.bodies.shapes import crest, ear, hoofed_legs, hooves, neck, tail, thigh, torso
from jigdoll.zoo.paint import Canvas, smooth
from jigdoll.zoo.sculpt import Sculptor


def sculpt_horse(s: Sculptor) -> None:
    """Deep chest, arched neck with a mane, a flowing tail."""
    torso(
        s,
        [
            ("pelvis", -0.02, -0.06, 0.230, 0.260),
            ("spine_1", -0.06, 0.0, 0.245, 0.265),
            ("spine_2", -0.07, 0.0, 0.245, 0.280),
            ("chest", -0.05, 0.06, 0.215, 0.290),
        ],
    )
    neck(s, [0.270, 0.235, 0.170, 0.125], width=0.62)
    hoofed_legs(
        s,
        [0.11, 0.078, 0.056, 0.044],
        [0.15, 0.105, 0.062, 0.046],
        hoof=0.068,
        height=0.07,
        thighs=0.21,
        shoulders=0.17,
    )
    joints = s.line("tail")
    line = [
        (s.at("tail_1", (0, 0.0, 0.06)), 0.05),
        (s.at("tail_1"), 0.075),
        (s.at("tail_2"), 0.105),
        (s.at("tail_3"), 0.10),
        (s.at("tail_tip"), 0.03),
    ]
    s.tube(line, ("pelvis", *joints), "mane", k=0.04, flat=(0.75, 1.0))
    s.head_ball((0, 0.00, 0.16), (0.155, 0.20, 0.24), "coat", k=0.08)
    s.head_cone((0, -0.02, 0.20), (0, -0.055, 0.86), 0.165, 0.105, "coat", k=0.08, flat=(0.82, 1.0))
    s.head_ball((0, -0.085, 0.92), (0.100, 0.105, 0.12), "muzzle", k=0.05)
    s.head_ball((0, -0.14, 0.26), (0.10, 0.13, 0.19), "coat", k=0.06)
    s.head_ball((0.060, -0.045, 0.985), (0.022, 0.028, 0.022), "nostril", both=True, k=0.01)
    ear(s, (0.085, 0.17, 0.02), (0.12, 0.40, 0.03), 0.070, facing=(0.4, 0.0, 1.0), thickness=0.55)
    s.eyes(0.115, 0.065, 0.30, 0.048, look=(0.85, 0.1, 0.5))
    back, h = s.head_frame[1] * 0.0 + np.array([0.0, 0.62, -0.78]), s.girth.feature
    stations = [
        (s.at("head") + 0.10 * back, 0.075 * h),
        (s.at("neck_2") + 0.19 * back, 0.105 * h),
        (s.at("neck_1") + 0.25 * back, 0.11 * h),
        (s.at("neck_1", (0, 0.20, -0.32)), 0.05 * h),
    ]
    crest(s, stations, ("chest", *s.line("neck"), "head"), "mane", thin=0.45)
    s.head_cone((0, 0.20, 0.04), (0, 0.12, 0.30), 0.07, 0.03, "mane", k=0.02, flat=(0.7, 1.0))


def paint_horse(c: Canvas) -> None:
    """Chestnut with black points, a white blaze and socks."""
    x, y, z = c.head_coordinates()
    head = c.region("coat", "muzzle") * c.moved_by("head")
    c.brush(head * smooth(-np.abs(x), -0.06, -0.03) * smooth(y, -0.02, 0.05) * smooth(z, 0.15, 0.25), "blaze")
    c.brush(c.moved_by("ankle", "toe") * c.region("coat", "foot") * smooth(-c.y, -0.32, -0.26), "sock")
    c.shade(1 - 0.12 * c.region("coat") * smooth(-c.normals[:, 1], 0.2, 0.8))
    c.inner_ears()
    c.eyes(ring=0.8, pupil=0.5)


def sculpt_cow(s: Sculptor) -> None:
    """A barrel on legs with a square muzzle, horns and an udder."""
    torso(
        s,
        [
            ("pelvis", -0.02, -0.12, 0.270, 0.275),
            ("spine_1", -0.08, 0.0, 0.310, 0.330),
            ("spine_2", -0.09, 0.0, 0.305, 0.340),
            ("chest", -0.07, 0.06, 0.250, 0.330),
        ],
    )
    neck(s, [0.290, 0.250, 0.180], width=0.68)
    s.ball(s.at("neck_1", (0, -0.26, 0.02)), (0.06, 0.16, 0.20), ("chest", "neck_1"), "coat", k=0.10)
    hoofed_legs(
        s,
        [0.115, 0.085, 0.062, 0.052],
        [0.15, 0.11, 0.066, 0.054],
        hoof=0.072,
        height=0.07,
        thighs=0.20,
        shoulders=0.165,
    )
    s.ball(s.at("pelvis", (0, -0.42, 0.18)), (0.15, 0.13, 0.17), "pelvis", "udder", k=0.05)
    for x in (-0.07, 0.07):
        for z in (0.12, 0.26):
            s.cone(s.at("pelvis", (x, -0.50, z)), s.at("pelvis", (x, -0.60, z)), 0.028, 0.02, "pelvis", "udder", k=0.02)
    tail(s, [0.06, 0.036, 0.030, 0.026, 0.026])
    s.tube(
        [
            (s.at("tail_3", (0, -0.16, 0)), 0.04),
            (s.at("tail_tip", (0, 0.02, 0)), 0.062),
            (s.at("tail_tip", (0, -0.10, 0)), 0.02),
        ],
        "tail_3",
        "tuft",
        k=0.03,
    )
    s.head_ball((0, 0.02, 0.18), (0.215, 0.215, 0.27), "coat", k=0.08)
    s.head_cone((0, -0.02, 0.25), (0, -0.055, 0.80), 0.195, 0.150, "coat", k=0.08, flat=(0.92, 1.0))
    s.head_ball((0, -0.07, 0.88), (0.185, 0.145, 0.135), "muzzle", k=0.05)
    s.head_ball((0.085, -0.01, 0.985), (0.038, 0.032, 0.026), "nostril", both=True, k=0.015)
    ear(s, (0.18, 0.12, 0.04), (0.56, 0.10, 0.02), 0.105, facing=(0.1, -0.3, 1.0), thickness=0.5)
    horn = [
        (s.on_head(0.13, 0.19, 0.06), 0.062),
        (s.on_head(0.27, 0.29, 0.06), 0.05),
        (s.on_head(0.33, 0.46, 0.10), 0.018),
    ]
    s.tube([(p, r * s.head_length * s.girth.feature) for p, r in horn], "head", "horn", k=0.015, both=True)
    s.eyes(0.178, 0.085, 0.32, 0.055, look=(0.85, 0.1, 0.5))


def paint_cow(c: Canvas) -> None:
    """White with black patches and a pink muzzle."""
    x, _y, z = c.head_coordinates()
    patches = smooth(c.noise(0.46, octave=4) + 0.22 * (c.noise(0.16, octave=5) - 0.5), 0.51, 0.55)
    head = c.moved_by("head")
    body = c.region("coat") * (1 - c.moved_by("knee", "ankle", "toe"))
    c.brush(body * (1 - head) * patches, "patch")
    c.brush(c.region("coat") * head * smooth(np.abs(x), 0.06, 0.09) * smooth(-z, -0.62, -0.5), "patch")
    c.inner_ears()
    c.eyes(ring=0.8, pupil=0.5)


def sculpt_pig(s: Sculptor) -> None:
    """Round, short-legged, a disc of a snout, a curled tail."""
    torso(
        s,
        [
            ("pelvis", 0.0, -0.04, 0.185, 0.200),
            ("spine_1", -0.04, 0.0, 0.215, 0.235),
            ("spine_2", -0.05, 0.0, 0.215, 0.235),
            ("chest", -0.02, 0.02, 0.190, 0.215),
        ],
    )
    neck(s, [0.205, 0.200, 0.185], width=0.9)
    hoofed_legs(
        s,
        [0.080, 0.062, 0.046, 0.042],
        [0.10, 0.072, 0.048, 0.042],
        hoof=0.050,
        height=0.045,
        thighs=0.125,
        shoulders=0.105,
    )
    p = s.at("tail_1", (0, 0, 0.04))
    curl = [(p, 0.030), (s.at("tail_1", (0.0, 0.02, -0.02)), 0.022)]
    for i in range(1, 12):
        t = 2 * np.pi * i / 8
        curl.append(
            (s.at("tail_1", (0.045 * np.sin(t), 0.03 + 0.045 * (1 - np.cos(t)), -0.03 - 0.011 * i)), 0.019 - 0.0007 * i)
        )
    s.tube(curl, ("tail_1", "tail_2"), "coat", k=0.012)
    s.head_ball((0, 0.04, 0.18), (0.42, 0.42, 0.42), "coat", k=0.12)
    s.head_ball((0.18, -0.12, 0.22), (0.22, 0.24, 0.26), "coat", k=0.12, both=True)
    s.head_cone((0, 0.00, 0.45), (0, 0.04, 0.84), 0.26, 0.20, "coat", k=0.12)
    frame = s.head_frame
    h = s.head_length
    s.ball(s.on_head(0, 0.05, 0.98), (0.225 * h, 0.20 * h, 0.085 * h), "head", "snout", frame=frame, k=0.02 * h)
    s.head_cone((0.085, 0.055, 1.12), (0.085, 0.055, 1.0), 0.042, 0.042, "nostril", both=True, carve=True, k=0.02)
    s.head_cone((0, -0.20, 0.40), (0, -0.18, 0.72), 0.16, 0.09, "coat", k=0.06)
    ear(s, (0.27, 0.36, 0.06), (0.50, 0.66, 0.38), 0.23, facing=(0.1, -0.9, 0.7), thickness=0.34, point=0.22)
    s.eyes(0.25, 0.22, 0.46, 0.062, look=(0.55, 0.1, 0.8))


def paint_pig(c: Canvas) -> None:
    """Pink."""
    x, y, z = c.head_coordinates()
    c.shade(1 - 0.10 * c.region("coat") * smooth(-c.normals[:, 1], 0.1, 0.8))
    hole = np.hypot(np.abs(x) - 0.085, y - 0.055)
    c.brush(c.region("snout") * smooth(z, 0.95, 1.0) * smooth(-hole, -0.06, -0.04), "nostril")
    c.inner_ears()
    c.eyes(rim=(0.35, 0.18, 0.18), ring=0.75, pupil=0.5)


def sculpt_sheep(s: Sculptor) -> None:
    """A cloud of wool with a dark face and dark legs."""
    torso(
        s,
        [("pelvis", 0.02, -0.04, 0.17, 0.18), ("spine_1", 0.0, 0.0, 0.18, 0.19), ("chest", 0.01, 0.02, 0.165, 0.19)],
        region="wool",
    )
    neck(s, [0.17, 0.13, 0.075], region="wool")
    owner = ("pelvis", *s.line("spine"), "chest")
    middle = 0.5 * (s.at("pelvis") + s.at("chest")) + np.array([0.0, 0.0, 0.0])
    reach = 0.5 * float(np.linalg.norm(s.at("chest") - s.at("pelvis")))
    count = 110
    g, f = s.girth.torso, s.girth.feature
    for i in range(count):
        up = 1 - 2 * (i + 0.5) / count
        turn = np.pi * (1 + np.sqrt(5)) * i
        flat = np.sqrt(1 - up * up)
        unit = np.array([flat * np.cos(turn), up, flat * np.sin(turn)])
        point = middle + unit * np.array([0.185 * g, 0.195 * g, reach + 0.15])
        s.ball(point, (0.058 * f,) * 3, owner, "wool", k=0.035)
    for i in range(26):
        t = np.pi * (1 + np.sqrt(5)) * i
        z = -0.40 + 0.62 * (i + 0.5) / 26
        axis = s.at("neck_1") + (0.5 + z) * (s.at("head") - s.at("neck_1"))
        s.ball(
            axis + 0.10 * (1 - 0.9 * z) * np.array([np.cos(t), 0.5 * np.sin(t), np.sin(t) * 0.7]),
            (0.05 * f,) * 3,
            ("chest", "neck_1", "head"),
            "wool",
            k=0.03,
        )
    s.leg("front_", [0.055, 0.040, 0.029, 0.025], region="face")
    s.leg("hind_", [0.065, 0.048, 0.031, 0.026], region="face")
    for stem in ("front_", "hind_"):
        thigh(s, stem, (0.06, 0.11, 0.08), offset=(0, 0.0, 0), region="wool")
        hooves(s, stem, 0.034, height=0.036)
    tail(s, [0.05, 0.06, 0.055, 0.035], region="wool")
    s.head_ball((0, 0.02, 0.18), (0.26, 0.28, 0.30), "face", k=0.08)
    s.head_cone((0, -0.02, 0.30), (0, -0.07, 0.85), 0.22, 0.13, "face", k=0.08, flat=(0.85, 1.0))
    s.head_ball((0, -0.09, 0.92), (0.125, 0.11, 0.10), "muzzle", k=0.04)
    for x, y, z, r in (
        (0, 0.27, 0.0, 0.17),
        (0.12, 0.23, -0.04, 0.14),
        (-0.12, 0.23, -0.04, 0.14),
        (0, 0.27, 0.16, 0.11),
    ):
        s.head_ball((x, y, z), (r * f, r * f, r * f), "wool", k=0.05)
    ear(s, (0.22, 0.06, 0.10), (0.68, -0.08, 0.10), 0.125, facing=(0.1, -0.3, 1.0), thickness=0.5)
    s.eyes(0.185, 0.085, 0.40, 0.056, look=(0.8, 0.1, 0.6))


def paint_sheep(c: Canvas) -> None:
    """Cream wool shaded in its curls."""
    c.shade(1 - c.region("wool") * 0.22 * smooth(-c.normals[:, 1], -0.1, 0.9))
    c.shade(1 - c.region("wool") * 0.12 * (c.noise(0.05) - 0.4))
    c.inner_ears()
    c.eyes(rim=(0.75, 0.68, 0.45), iris=(0.80, 0.66, 0.30), ring=0.9, pupil=0.45)
