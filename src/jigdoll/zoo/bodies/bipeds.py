"""T-Rex, velociraptor and kangaroo: strong legs, small arms, a tail for balance."""

from collections.abc import Sequence

import numpy as np

from jigdoll.zoo.bodies.shapes import ear, neck, tail, thigh, toes, torso
from jigdoll.zoo.paint import Canvas, smooth
from jigdoll.zoo.sculpt import Sculptor, moved


def _saurian_head(s: Sculptor, *, teeth: int, depth: float, brow: float) -> None:
    """A long skull over a hinged lower jaw with teeth between, in head lengths."""
    s.head_ball((0, 0.06, 0.15), (0.22 * depth, 0.24 * depth, 0.28), "coat", k=0.08)
    s.head_cone((0, 0.05, 0.25), (0, 0.01, 0.84), 0.20 * depth, 0.135 * depth, "coat", k=0.08, flat=(0.82, 1.0))
    s.head_ball((0, 0.01, 0.88), (0.11 * depth, 0.12 * depth, 0.13), "coat", k=0.06)
    s.head_cone(
        (0.10 * depth, 0.22 * depth, 0.22),
        (0.085 * depth, 0.17 * depth, 0.52),
        0.055 * brow,
        0.035 * brow,
        "coat",
        k=0.05,
        both=True,
    )
    s.head_ball((0.05, 0.10 * depth, 0.955), (0.022, 0.02, 0.02), "nostril", both=True, k=0.01)
    jaw, tip = s.at("jaw"), s.at("jaw_tip")
    h = s.head_length
    s.cone(jaw, tip, 0.135 * depth * h, 0.085 * depth * h, "jaw", "jaw", flat=(1.05, 0.75), k=0.05 * h)
    along = (tip - jaw) / np.linalg.norm(tip - jaw)
    up = np.cross(along, [1.0, 0.0, 0.0])
    s.cone(
        jaw + 0.35 * (tip - jaw) + 0.045 * h * up,
        tip - 0.06 * h * along + 0.045 * h * up,
        0.07 * h * depth,
        0.05 * h * depth,
        "jaw",
        "tongue",
        flat=(1.0, 0.5),
        k=0.01 * h,
    )
    for i in range(teeth):
        t = 0.40 + 0.56 * i / max(teeth - 1, 1)
        size = 0.75 + 0.35 * np.sin(2.4 * i)
        width = (0.165 - 0.075 * t) * depth
        root = s.on_head(width, -0.11 * depth + 0.03 * t, t)
        s.cone(
            root,
            root - s.head_frame[1] * 0.10 * h * size,
            0.026 * h,
            0.008 * h,
            "head",
            "tooth",
            k=0.005 * h,
            both=True,
        )
        base = jaw + (t - 0.02) * (tip - jaw) + up * 0.05 * h + np.array([(0.135 - 0.05 * t) * depth * h, 0.0, 0.0])
        if i % 2:
            s.cone(base, base + up * 0.075 * h * size, 0.022 * h, 0.007 * h, "jaw", "tooth", k=0.005 * h, both=True)
    for z, r in ((1.0, 0.04), (1.0, -0.04)):
        root = s.on_head(r, -0.07 * depth, 0.93 * z)
        s.cone(root, root - s.head_frame[1] * 0.08 * h, 0.024 * h, 0.008 * h, "head", "tooth", k=0.005 * h)


def sculpt_t_rex(s: Sculptor) -> None:
    """A head that is mostly jaws, tiny arms, a tail to balance them."""
    torso(
        s,
        [
            ("pelvis", 0.0, -0.25, 0.48, 0.62),
            ("spine_1", -0.10, 0.0, 0.58, 0.72),
            ("spine_2", -0.12, 0.0, 0.58, 0.72),
            ("chest", -0.05, 0.0, 0.46, 0.58),
        ],
    )
    neck(s, [0.56, 0.46, 0.38, 0.34], width=0.8)
    tail(s, [0.58, 0.50, 0.40, 0.30, 0.21, 0.13, 0.04], k=0.2)
    thigh(s, "", (0.32, 0.66, 0.54), offset=(0.02, -0.30, 0.18), tip=-0.5)
    s.leg("", [0.42, 0.27, 0.165, 0.15])
    toes(s, (-0.5, 0.0, 0.5), 0.62, 0.12, region="coat", claw=0.16, back=False)
    _small_arms(s, [0.15, 0.11, 0.09, 0.07], claws=(-0.06, 0.06), size=0.16)
    _saurian_head(s, teeth=8, depth=1.18, brow=1.1)
    s.eyes(0.175, 0.19, 0.37, 0.050, look=(0.8, 0.1, 0.6))


def _small_arms(s: Sculptor, radii: Sequence[float], *, claws: Sequence[float], size: float) -> None:
    g = s.girth.legs
    names = ("left_shoulder", "left_elbow", "left_wrist", "left_hand_tip")
    for i in range(3):
        s.cone(
            s.at(names[i]),
            s.at(names[i + 1]),
            g * radii[i],
            g * radii[i + 1],
            names[i],
            "coat",
            k=0.4 * radii[i + 1],
            both=True,
        )
    wrist, tip = s.at("left_wrist"), s.at("left_hand_tip")
    along = (tip - wrist) / np.linalg.norm(tip - wrist)
    for x in claws:
        start = tip + np.array([x, 0.0, 0.0])
        s.cone(
            start,
            start + along * size + np.array([0.0, -0.3 * size, 0.0]),
            0.55 * g * radii[3],
            0.12 * g * radii[3],
            "left_wrist",
            "claw",
            k=0.1 * radii[3],
            both=True,
        )


def _lizard_paint(c: Canvas, band: float) -> None:
    """A pale underside and dark bands across the back."""
    c.below(0.25, 0.35)
    back = smooth(c.normals[:, 1], 0.0, 0.6)
    bend = 0.35 * (2 * c.noise(2 * band) - 1)
    wave = smooth(np.sin(2 * np.pi * (c.z / band + bend)), 0.1, 0.5)
    c.brush(c.region("coat") * back * wave * (1 - c.moved_by("knee", "ankle", "toe", "head")) * 0.85, "stripe")
    c.shade(1 - 0.18 * (c.noise(0.25 * band, octave=2) - 0.45) * c.region("coat"))


def paint_t_rex(c: Canvas) -> None:
    """Moss green, banded, a red mouth."""
    _lizard_paint(c, 0.62)
    _mouth(c)
    c.eyes(iris=(0.95, 0.75, 0.15), ring=0.78, pupil=0.26)


def _mouth(c: Canvas) -> None:
    """The roof and the floor of the mouth, red where upper and lower jaw face each other."""
    s = c.sculptor
    x, _y, z = c.head_coordinates()
    roof = (
        smooth(-(c.normals @ s.head_frame[1]), 0.5, 0.8) * smooth(z, 0.2, 0.3) * c.moved_by("head") * c.region("coat")
    )
    c.brush(roof * smooth(-np.abs(x), -0.16, -0.12), "mouth")
    along = s.at("jaw_tip") - s.at("jaw")
    up = np.cross(along / np.linalg.norm(along), [1.0, 0.0, 0.0])
    c.brush(c.region("jaw") * smooth(c.normals @ up, 0.4, 0.7), "mouth")


def sculpt_velociraptor(s: Sculptor) -> None:
    """Slim and quick: long hands, a sickle claw, feathers on the arms and at the tail's end."""
    torso(
        s,
        [
            ("pelvis", 0.0, -0.03, 0.060, 0.078),
            ("spine_1", -0.012, 0.0, 0.066, 0.086),
            ("spine_2", -0.015, 0.0, 0.066, 0.086),
            ("chest", -0.008, 0.0, 0.056, 0.072),
        ],
    )
    neck(s, [0.066, 0.054, 0.046, 0.044], width=0.85)
    tail(s, [0.070, 0.055, 0.042, 0.032, 0.024, 0.012], k=0.02)
    thigh(s, "", (0.048, 0.095, 0.075), offset=(0.0, -0.050, 0.025), tip=-0.5)
    s.leg("", [0.062, 0.038, 0.023, 0.021])
    toes(s, (-0.35, 0.30), 0.105, 0.017, region="coat", claw=0.026)
    toe = s.at("left_toe", (-0.018, 0.0, 0.0))
    sickle = [
        (toe, 0.014),
        (moved(toe, -0.006, 0.022, 0.040), 0.013),
        (moved(toe, -0.006, 0.040, 0.062), 0.009),
        (moved(toe, -0.006, 0.022, 0.082), 0.003),
    ]
    s.tube(sickle[:3], "left_toe", "coat", k=0.006, both=True)
    s.tube(sickle[2:], "left_toe", "claw", k=0.002, both=True)
    _small_arms(s, [0.030, 0.021, 0.016, 0.012], claws=(-0.010, 0.004, 0.016), size=0.038)
    f = s.girth.feature
    elbow, wrist = s.at("left_elbow"), s.at("left_wrist")
    for t in (0.15, 0.45, 0.75):
        root = elbow + t * (wrist - elbow)
        s.cone(
            root,
            root + f * np.array([0.012, -0.050, -0.065]),
            0.016,
            0.006,
            "left_elbow",
            "feather",
            flat=(0.4, 1.0),
            k=0.006,
            both=True,
        )
    for x in (-0.02, 0.0, 0.02):
        s.cone(
            s.at("tail_4", (0, 0.004, -0.08)),
            s.at("tail_tip", (2.2 * x, 0.01, -0.04 + 0.5 * abs(x))),
            0.022,
            0.010,
            "tail_4",
            "feather",
            flat=(1.2, 0.5),
            k=0.01,
        )
    _saurian_head(s, teeth=6, depth=0.80, brow=0.9)
    for i in range(5):
        root = s.on_head(0, 0.20 - 0.05 * i, 0.06 - 0.13 * i)
        s.cone(
            root,
            root + f * s.head_length * np.array([0.0, 0.10, -0.24]),
            0.020,
            0.006,
            "head",
            "feather",
            flat=(0.7, 1.0),
            k=0.016,
        )
    s.eyes(0.150, 0.125, 0.34, 0.068, look=(0.75, 0.1, 0.65))


def paint_velociraptor(c: Canvas) -> None:
    """Ochre with dark bands, blue-black feathers."""
    _lizard_paint(c, 0.085)
    _mouth(c)
    c.eyes(iris=(0.98, 0.80, 0.10), ring=0.82, pupil=0.26)


def sculpt_kangaroo(s: Sculptor) -> None:
    """Sitting back on long feet and a heavy tail, a joey looking out of the pouch."""
    owner = ("pelvis", *s.line("spine"), "chest")
    g, f = s.girth.torso, s.girth.feature
    line = [
        (s.at("pelvis", (0, -0.04, 0.0)), 0.165),
        (s.at("spine_1"), 0.170),
        (s.at("spine_2"), 0.140),
        (s.at("chest", (0, -0.02, 0.0)), 0.112),
        (s.at("neck_1"), 0.082),
    ]
    s.tube([(p, g * r) for p, r in line], owner, "coat", k=0.04, flat=(0.92, 1.0))
    neck(s, [0.095, 0.080, 0.062])
    tail(s, [0.145, 0.125, 0.100, 0.080, 0.060, 0.025], k=0.05)
    thigh(s, "", (0.105, 0.185, 0.155), offset=(0.01, -0.06, 0.07), tip=-0.7)
    s.leg("", [0.13, 0.095, 0.048, 0.042])
    foot = [(s.at("left_ankle", (0, -0.06, -0.01)), 0.045), (s.at("left_toe"), 0.042)]
    s.tube(foot, "left_ankle", "coat", k=0.02, both=True)
    s.cone(s.at("left_toe"), s.at("left_toe_tip"), 0.044, 0.030, "left_toe", "paw", k=0.01, flat=(1.0, 1.05), both=True)
    for x in (-0.022, 0.022):
        s.cone(
            s.at("left_toe_tip", (x, -0.005, 0.01)),
            s.at("left_toe_tip", (x, -0.012, 0.055)),
            0.016,
            0.006,
            "left_toe",
            "claw",
            k=0.004,
            both=True,
        )
    _small_arms(s, [0.055, 0.042, 0.032, 0.028], claws=(-0.018, 0.0, 0.018), size=0.03)
    s.ball(s.at("pelvis", (0, 0.05, 0.16)), (0.115 * g, 0.115, 0.070), ("pelvis", "spine_1"), "pouch", k=0.03)
    joey, size, mother = s.at("pelvis", (0, 0.20, 0.215)), 1.45 * f, ("pelvis", "spine_1")
    for center, radii, region in (
        ((0.0, 0.0, 0.0), (0.052, 0.050, 0.055), "joey"),
        ((0.0, -0.015, 0.055), (0.028, 0.026, 0.040), "joey"),
        ((0.0, -0.006, 0.094), (0.012, 0.010, 0.009), "nose"),
    ):
        s.ball(joey + size * np.array(center), size * np.array(radii), mother, region, k=0.012 * size)
    s.ball(joey + size * np.array([0.036, 0.014, 0.034]), (0.0125 * size,) * 3, mother, "joey_eye", k=0.0, both=True)
    leaf = [joey + size * np.array(point) for point in ((0.030, 0.035, -0.005), (0.056, 0.105, -0.015))]
    s.cone(leaf[0], leaf[1], 0.022 * size, 0.010 * size, mother, "joey", flat=(1.0, 0.5), k=0.006 * size, both=True)
    s.head_ball((0, 0.04, 0.14), (0.28, 0.28, 0.34), "coat", k=0.1)
    s.head_cone((0, -0.03, 0.34), (0, -0.08, 0.86), 0.22, 0.125, "coat", k=0.1, flat=(0.85, 1.0))
    s.head_ball((0, -0.09, 0.88), (0.115, 0.10, 0.10), "muzzle", k=0.04)
    s.head_ball((0, -0.035, 0.965), (0.062, 0.05, 0.04), "nose", k=0.01)
    ear(s, (0.15, 0.20, 0.02), (0.30, 0.78, -0.04), 0.145, facing=(0.5, 0.0, 1.0), thickness=0.40, point=0.35)
    s.eyes(0.205, 0.085, 0.38, 0.072, look=(0.8, 0.1, 0.6))


def paint_kangaroo(c: Canvas) -> None:
    """Fawn, a pale belly and pouch, dark paws."""
    s = c.sculptor
    front = smooth(c.normals[:, 2], 0.45, 0.7) * smooth(-(c.y - s.at("neck_1")[1]), 0.0, 0.05) * smooth(c.y, 0.35, 0.45)
    c.brush(c.region("coat") * front * (1 - c.moved_by("hip", "knee", "shoulder", "elbow", "wrist", "tail")), "belly")
    _x, y, _z = c.head_coordinates()
    c.brush(c.moved_by("head") * c.region("coat") * smooth(-y, 0.12, 0.2), "belly")
    c.brush(c.moved_by("wrist") * c.region("coat"), "paw")
    lip = np.abs(c.y - s.at("pelvis")[1] - 0.145 + 0.2 * np.abs(c.x))
    c.brush(c.region("pouch") * smooth(-lip, -0.016, -0.008), "seam")
    tip = np.linalg.norm(c.points - s.at("tail_tip"), axis=1)
    c.brush(c.moved_by("tail") * smooth(-tip, -0.25, -0.1) * 0.7, "paw")
    c.inner_ears()
    c.eyes(ring=0.8, pupil=0.5)
