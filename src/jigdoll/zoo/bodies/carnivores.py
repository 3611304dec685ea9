"""Fox, dog, cat, lion and tiger: paws, whiskers' worth of muzzle, tails that speak."""

import numpy as np
from numpy import ndarray

from jigdoll.zoo.bodies.shapes import collar, ear, neck, paws, tail, thigh, torso
from jigdoll.zoo.paint import Canvas, smooth
from jigdoll.zoo.sculpt import Sculptor


def sculpt_fox(s: Sculptor) -> None:
    """Slim, a pointed snout, big ears, a brush of a tail."""
    torso(
        s,
        [
            ("pelvis", 0.0, -0.03, 0.050, 0.058),
            ("spine_1", -0.01, 0.0, 0.052, 0.060),
            ("spine_2", -0.02, 0.0, 0.058, 0.070),
            ("chest", -0.025, 0.02, 0.058, 0.076),
        ],
    )
    neck(s, [0.072, 0.066, 0.056])
    s.ball(s.at("chest", (0, -0.040, 0.070)), (0.046, 0.065, 0.045), "chest", "coat", k=0.03)
    thigh(s, "hind_", (0.034, 0.078, 0.056), offset=(0.0, -0.040, 0.012), tip=-0.3)
    thigh(s, "front_", (0.028, 0.062, 0.044), offset=(-0.002, -0.005, -0.015))
    s.leg("front_", [0.032, 0.022, 0.0155, 0.0155], foot="sock")
    s.leg("hind_", [0.042, 0.031, 0.0165, 0.0155], foot="sock")
    for stem in ("front_", "hind_"):
        paws(s, stem, 0.021, height=0.017, length=0.029)
    tail(s, [0.030, 0.030, 0.045, 0.060, 0.058, 0.016], k=0.03)
    s.head_ball((0, 0.02, 0.10), (0.30, 0.27, 0.33), "coat", k=0.12)
    s.head_cone((0, -0.07, 0.28), (0, -0.15, 0.90), 0.17, 0.065, "snout", k=0.14)
    s.head_cone((0.14, -0.12, 0.10), (0.33, -0.20, 0.00), 0.15, 0.045, "cheek", both=True, k=0.10)
    s.head_ball((0, -0.11, 0.96), (0.070, 0.060, 0.06), "nose", k=0.01)
    ear(s, (0.17, 0.20, -0.02), (0.29, 0.68, -0.06), 0.175, facing=(0.4, 0.0, 1.0))
    s.eyes(0.15, 0.055, 0.345, 0.078, look=(0.55, 0.15, 0.75))


def paint_fox(c: Canvas) -> None:
    """Rust above, white below and on the cheeks and the tail's tip, black socks."""
    c.below(0.55, 0.3)
    x, y, z = c.head_coordinates()
    face = c.region("snout", "cheek") + c.region("coat") * c.moved_by("head")
    c.brush(face * smooth(-(y + 0.12 - 0.05 * (z - 0.3)), 0.0, 0.05) * smooth(z, -0.4, -0.1), "belly")
    c.brush(c.region("cheek") * smooth(np.abs(x), 0.16, 0.26), "belly")
    bib = smooth(c.normals[:, 2] - 0.5 * c.normals[:, 1], 0.35, 0.7) * smooth(c.z, 0.10, 0.16) * smooth(-z, -0.4, 0.0)
    c.brush(c.region("coat") * bib * (1 - c.moved_by("front")), "belly")
    c.brush(c.moved_by("knee", "ankle", "toe") * smooth(-c.y, -0.17, -0.11), "sock")
    tip = np.linalg.norm(c.points - c.sculptor.at("tail_tip"), axis=1)
    c.brush(c.moved_by("tail") * smooth(-tip, -0.15, -0.12), "belly")
    c.inner_ears()
    c.brush(c.region("ear") * smooth(-c.normals[:, 2], 0.2, 0.5), "sock")
    c.eyes()


def sculpt_dog(s: Sculptor) -> None:
    """A hound with hanging ears, a square muzzle and a collar."""
    torso(
        s,
        [
            ("pelvis", -0.01, -0.05, 0.080, 0.085),
            ("spine_1", -0.02, 0.0, 0.082, 0.088),
            ("spine_2", -0.04, 0.0, 0.095, 0.112),
            ("chest", -0.05, 0.03, 0.095, 0.125),
        ],
    )
    neck(s, [0.115, 0.095, 0.075])
    thigh(s, "hind_", (0.055, 0.115, 0.085), offset=(0.0, -0.05, 0.015), tip=-0.3)
    thigh(s, "front_", (0.045, 0.095, 0.068), offset=(-0.003, 0.0, -0.02))
    s.leg("front_", [0.050, 0.036, 0.026, 0.026])
    s.leg("hind_", [0.065, 0.048, 0.027, 0.026])
    for stem in ("front_", "hind_"):
        paws(s, stem, 0.036, height=0.028, length=0.046)
    tail(s, [0.045, 0.034, 0.028, 0.022, 0.012])
    s.head_ball((0, 0.05, 0.14), (0.31, 0.29, 0.34), "coat", k=0.12)
    s.head_cone((0, -0.08, 0.36), (0, -0.10, 0.78), 0.20, 0.165, "muzzle", k=0.12)
    s.head_cone((0, -0.20, 0.36), (0, -0.23, 0.66), 0.13, 0.09, "muzzle", k=0.06)
    s.head_ball((0, 0.01, 0.94), (0.095, 0.075, 0.07), "nose", k=0.02)
    s.head_cone((0, -0.20, 0.66), (0, -0.34, 0.80), 0.065, 0.06, "tongue", k=0.02, flat=(1.0, 0.4))
    ear(
        s,
        (0.24, 0.20, 0.08),
        (0.42, -0.36, 0.10),
        0.15,
        facing=(-1.0, -0.2, 0.3),
        thickness=0.35,
        point=1.15,
        hollow=False,
    )
    s.eyes(0.15, 0.10, 0.40, 0.075, look=(0.45, 0.15, 0.85))
    middle = 0.62 * s.at("neck_1") + 0.38 * s.at("head")
    collar(s, middle, s.at("head"), 0.094 * s.girth.torso, width=0.022, owner="neck_1", region="collar")


def paint_dog(c: Canvas) -> None:
    """Golden brown, a white chest, muzzle and socks, dark ears, a red collar."""
    c.below(0.45, 0.3)
    x, y, z = c.head_coordinates()
    c.brush(c.region("coat") * c.moved_by("head") * smooth(-np.abs(x), -0.10, -0.05) * smooth(y, 0.0, 0.1), "belly")
    bib = smooth(c.normals[:, 2], 0.5, 0.75) * smooth(c.z, 0.2, 0.3) * smooth(-z, -0.2, 0.1)
    c.brush(c.region("coat") * bib, "belly")
    c.brush(c.moved_by("ankle", "toe") * c.region("coat") * smooth(-c.y, -0.12, -0.08), "belly")
    tip = np.linalg.norm(c.points - c.sculptor.at("tail_tip"), axis=1)
    c.brush(c.moved_by("tail") * smooth(-tip, -0.09, -0.06), "belly")
    c.eyes()


def _cat_head(s: Sculptor, *, ears: float) -> None:
    """A round skull with a short muzzle, as cats of all sizes have."""
    s.head_ball((0, 0.06, 0.22), (0.44, 0.40, 0.42), "coat", k=0.12)
    s.head_ball((0.14, -0.13, 0.62), (0.19, 0.15, 0.19), "muzzle", k=0.10, both=True)
    s.head_ball((0, -0.22, 0.56), (0.15, 0.12, 0.18), "muzzle", k=0.08)
    s.head_cone((0, 0.16, 0.52), (0, 0.0, 0.74), 0.13, 0.09, "bridge", k=0.10)
    s.head_ball((0, -0.015, 0.82), (0.075, 0.05, 0.05), "nose", k=0.02)
    s.head_cone((0.28, -0.10, 0.20), (0.42, -0.16, 0.15), 0.18, 0.10, "cheek", both=True, k=0.12)
    if ears > 0:
        ear(s, (0.26, 0.34, 0.16), (0.40, 0.34 + ears, 0.12), 0.20, facing=(0.35, 0.0, 1.0), point=0.12)


def sculpt_cat(s: Sculptor) -> None:
    """A house cat: pointed ears on a round head, a long tail held up."""
    torso(
        s,
        [
            ("pelvis", -0.002, -0.02, 0.040, 0.044),
            ("spine_1", -0.008, 0.0, 0.042, 0.046),
            ("spine_2", -0.010, 0.0, 0.042, 0.047),
            ("chest", -0.012, 0.01, 0.040, 0.049),
        ],
    )
    neck(s, [0.045, 0.040, 0.036])
    thigh(s, "hind_", (0.026, 0.055, 0.042), offset=(0.0, -0.025, 0.010), tip=-0.3)
    thigh(s, "front_", (0.020, 0.044, 0.030), offset=(-0.002, 0.0, -0.01))
    s.leg("front_", [0.022, 0.017, 0.0135, 0.0135])
    s.leg("hind_", [0.030, 0.024, 0.0135, 0.0135])
    for stem in ("front_", "hind_"):
        paws(s, stem, 0.0175, height=0.0145, length=0.022)
    tail(s, [0.020, 0.0165, 0.0155, 0.0150, 0.0140, 0.010])
    _cat_head(s, ears=0.40)
    s.eyes(0.20, 0.10, 0.535, 0.105, look=(0.35, 0.08, 0.9))


def paint_cat(c: Canvas) -> None:
    """A grey tabby with a white bib and paws and green eyes."""
    stripes = _stripes(c, 0.042, warp=0.5)
    c.brush(stripes * (c.region("coat") + c.region("bridge")), "stripe")
    c.below(0.5, 0.3)
    _x, _y, z = c.head_coordinates()
    bib = smooth(c.normals[:, 2], 0.35, 0.6) * smooth(c.z, 0.08, 0.13) * smooth(-z, -0.3, 0.0)
    c.brush(c.region("coat") * bib * (1 - c.moved_by("front")), "belly")
    c.brush(c.moved_by("ankle", "toe") * smooth(-c.y, -0.035, -0.02), "belly")
    c.inner_ears()
    c.eyes(pupil=0.30, ring=0.82)


def _stripes(c: Canvas, period: float, *, warp: float, width: float = 0.1) -> ndarray:
    """Bands around trunk and limbs: across z on the body, across y on the legs, pinched out towards the belly."""
    legs = c.moved_by("knee", "ankle") + 0.6 * c.moved_by("hip")
    bend = warp * (2 * c.noise(2.2 * period) - 1) + 0.5 * warp * (2 * c.noise(0.9 * period, octave=1) - 1)
    place = np.where(legs > 0.5, 1.15 * c.y, c.z) / period
    wave = np.sin(2 * np.pi * (place + bend))
    thinning = 0.35 * smooth(-c.normals[:, 1], -0.3, 0.7)
    return smooth(wave - thinning, width, width + 0.3)


def _big_cat(s: Sculptor) -> None:
    """The body of a lion or a tiger."""
    torso(
        s,
        [
            ("pelvis", -0.01, -0.08, 0.155, 0.170),
            ("spine_1", -0.03, 0.0, 0.160, 0.175),
            ("spine_2", -0.05, 0.0, 0.170, 0.200),
            ("chest", -0.06, 0.05, 0.175, 0.225),
        ],
    )
    neck(s, [0.20, 0.185, 0.165])
    thigh(s, "hind_", (0.105, 0.22, 0.165), offset=(0.0, -0.09, 0.03), tip=-0.3)
    thigh(s, "front_", (0.095, 0.20, 0.145), offset=(0.0, 0.0, -0.04))
    s.leg("front_", [0.105, 0.080, 0.060, 0.058])
    s.leg("hind_", [0.130, 0.098, 0.060, 0.056])
    for stem in ("front_", "hind_"):
        paws(s, stem, 0.078, height=0.058, length=0.098)


def sculpt_lion(s: Sculptor) -> None:
    """A great mane and a tasselled tail."""
    _big_cat(s)
    tail(s, [0.070, 0.050, 0.038, 0.034, 0.030, 0.026])
    s.tube(
        [
            (s.at("tail_4", (0, 0, -0.10)), 0.045),
            (s.at("tail_tip"), 0.068),
            (s.at("tail_tip", (0, 0.02, -0.10)), 0.018),
        ],
        "tail_4",
        "mane",
        k=0.03,
    )
    _cat_head(s, ears=0.0)
    h, f = s.head_length, s.girth.feature
    for ring, (z, radius, lump, owner) in enumerate(
        [
            (0.10, 0.50, 0.25, "head"),
            (-0.22, 0.58, 0.29, "head"),
            (-0.58, 0.60, 0.30, "neck_1"),
            (-0.90, 0.46, 0.28, "neck_1"),
        ]
    ):
        count = 11
        for i in range(count):
            t = 2 * np.pi * (i + 0.5 * (ring % 2)) / count
            drop = 0.10 * (ring + 1) * max(0.0, -np.sin(t))
            point = s.at("head") + h * (np.array([radius * np.cos(t), radius * np.sin(t) - drop, z]) @ s.head_frame)
            s.ball(point, np.array([0.85, 0.85, 1.15]) * f * h * lump, owner, "mane", k=0.12 * h)
    s.head_ball((0.36, 0.46, 0.14), (0.14, 0.15, 0.08), "ear", both=True, k=0.03)
    s.eyes(0.190, 0.115, 0.570, 0.085, look=(0.3, 0.05, 0.95))


def paint_lion(c: Canvas) -> None:
    """Sand, with a dark mane that lightens towards the face."""
    c.below(0.5, 0.3)
    _x, y, z = c.head_coordinates()
    c.brush(c.region("mane") * (1 - c.moved_by("tail")) * smooth(z, -0.35, 0.25), "mane_light")
    c.shade(1 - c.region("mane") * 0.30 * (c.noise(0.10) - 0.3))
    c.brush(c.region("muzzle") * smooth(-y, 0.16, 0.26), "belly")
    c.brush(c.region("ear") * smooth(c.normals @ c.sculptor.head_frame[2], 0.3, 0.6), "inner_ear")
    c.eyes(ring=0.66, pupil=0.32)


def sculpt_tiger(s: Sculptor) -> None:
    """As a lion without the mane: stripes, whiskered cheeks, round ears."""
    _big_cat(s)
    tail(s, [0.070, 0.052, 0.045, 0.044, 0.042, 0.030])
    _cat_head(s, ears=0.0)
    s.head_cone((0.30, -0.12, 0.12), (0.52, -0.26, 0.06), 0.20, 0.07, "cheek", both=True, k=0.10)
    s.head_ball((0.30, 0.42, 0.14), (0.13, 0.15, 0.07), "ear", both=True, k=0.03)
    s.eyes(0.190, 0.115, 0.570, 0.085, look=(0.3, 0.05, 0.95))


def paint_tiger(c: Canvas) -> None:
    """Orange with black stripes, white below and around the eyes."""
    c.below(0.35, 0.3)
    x, y, z = c.head_coordinates()
    head = c.moved_by("head")
    c.brush(c.region("cheek") * smooth(np.abs(x), 0.34, 0.42), "belly")
    c.brush(head * smooth(-np.hypot(np.abs(x) - 0.20, y - 0.24), -0.10, -0.06) * smooth(z, 0.3, 0.4), "belly")
    coat = c.region("coat", "cheek", "bridge")
    face = smooth(np.sin(2 * np.pi * (1.6 * z + 2.6 * np.abs(x) + 0.9 * y)), 0.25, 0.5) * smooth(
        np.abs(x) + y, 0.25, 0.4
    )
    c.brush((1 - head) * coat * _stripes(c, 0.155, warp=0.55, width=0.15), "stripe")
    c.brush(head * coat * face * smooth(-z, -0.62, -0.5), "stripe")
    tip = np.linalg.norm(c.points - c.sculptor.at("tail_tip"), axis=1)
    c.brush(c.moved_by("tail") * smooth(-tip, -0.14, -0.10), "stripe")
    front = smooth(c.normals @ c.sculptor.head_frame[2], 0.3, 0.6)
    c.brush(c.region("ear") * (1 - front), "stripe")
    c.brush(c.region("ear") * front, "belly")
    c.eyes(ring=0.66, pupil=0.32)
