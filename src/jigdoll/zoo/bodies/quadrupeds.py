"""Elephant, rhino, rabbit and turtle: four legs that look like nobody else's."""

import numpy as np

from jigdoll.zoo.bodies.shapes import ear, neck, paws, tail, thigh, torso
from jigdoll.zoo.paint import Canvas, smooth
from jigdoll.zoo.sculpt import Sculptor, moved


def _pillars(s: Sculptor, stem: str, radii: list[float], foot: float, height: float) -> None:
    """A column of a leg with nails around its sole."""
    s.leg(stem, radii, k=0.8)
    ankle, toe, tip = (s.at(f"left_{stem}{part}") for part in ("ankle", "toe", "toe_tip"))
    g = s.girth.legs
    center = 0.5 * (toe + tip)
    middle = np.array([ankle[0], height, 0.4 * ankle[2] + 0.6 * center[2]])
    s.cone(
        middle,
        (middle[0], 0.0, middle[2]),
        g * foot * 0.92,
        g * foot,
        f"left_{stem}toe",
        "coat",
        k=0.4 * foot,
        both=True,
    )
    for angle in (-0.75, -0.25, 0.25, 0.75):
        x, z = np.sin(angle) * foot * g, np.cos(angle) * foot * g
        s.ball(
            (middle[0] + x, 0.30 * height, middle[2] + z),
            (0.20 * foot, 0.42 * height, 0.13 * foot),
            f"left_{stem}toe",
            "nail",
            k=0.02 * foot,
            both=True,
        )


def sculpt_elephant(s: Sculptor) -> None:
    """Columns of legs, fans of ears, a trunk between tusks."""
    torso(
        s,
        [
            ("pelvis", -0.10, -0.10, 0.62, 0.66),
            ("spine_1", -0.12, 0.0, 0.76, 0.80),
            ("spine_2", -0.12, 0.0, 0.76, 0.80),
            ("chest", -0.06, 0.0, 0.62, 0.68),
        ],
    )
    neck(s, [0.62, 0.58, 0.46], width=0.9)
    thigh(s, "hind_", (0.34, 0.62, 0.48), offset=(0.0, -0.05, 0.0))
    thigh(s, "front_", (0.30, 0.60, 0.42), offset=(0.0, 0.05, 0.0))
    _pillars(s, "front_", [0.32, 0.26, 0.22, 0.22], 0.27, 0.16)
    _pillars(s, "hind_", [0.36, 0.29, 0.22, 0.22], 0.27, 0.16)
    tail(s, [0.12, 0.075, 0.055, 0.042, 0.040])
    s.tube(
        [(s.at("tail_3", (0, -0.25, 0)), 0.04), (s.at("tail_tip"), 0.08), (s.at("tail_tip", (0, -0.15, 0)), 0.02)],
        "tail_3",
        "tuft",
        k=0.03,
    )
    s.ball(s.at("head", (0, 0.05, 0.12)), (0.44, 0.50, 0.46), "head", "coat", k=0.20)
    s.ball(s.at("head", (0.17, 0.36, 0.08)), (0.24, 0.22, 0.26), "head", "coat", k=0.15, both=True)
    s.ball(s.at("head", (0, -0.40, 0.10)), (0.24, 0.22, 0.26), "head", "coat", k=0.15)
    joints = s.line("trunk")
    trunk = [
        (s.at("head", (0, -0.05, 0.34)), 0.34),
        (s.at("trunk_1"), 0.27),
        (s.at("trunk_2"), 0.205),
        (s.at("trunk_3"), 0.165),
        (s.at("trunk_4"), 0.135),
        (s.at("trunk_tip"), 0.115),
    ]
    s.tube(trunk, ("head", *joints), "trunk", k=0.12)
    tusk = [
        (s.at("head", (0.22, -0.42, 0.30)), 0.085),
        (s.at("head", (0.27, -0.78, 0.52)), 0.075),
        (s.at("head", (0.26, -0.92, 0.86)), 0.055),
        (s.at("head", (0.22, -0.86, 1.14)), 0.02),
    ]
    s.tube(tusk, "head", "tusk", k=0.03, both=True)
    f = s.girth.feature
    facing = np.array([0.62, 0.05, 0.78])
    for center, radii in (((0.74, 0.08, -0.02), (0.46, 0.54, 0.09)), ((0.70, -0.28, 0.0), (0.33, 0.46, 0.085))):
        frame = _facing(facing)
        s.ball(s.at("head", np.array(center)), f * np.array(radii), "head", "ear", frame=frame, k=0.07, both=True)
    s.eyes(0.615, 0.30, 0.54, 0.062, look=(0.8, 0.1, 0.6))


def _facing(toward: np.ndarray) -> np.ndarray:
    """Rows: across, up-ish, and the direction itself."""
    toward = toward / np.linalg.norm(toward)
    across = np.cross([0.0, 1.0, 0.0], toward)
    across /= np.linalg.norm(across)
    return np.stack([across, np.cross(toward, across), toward])


def paint_elephant(c: Canvas) -> None:
    """Grey, pinkish inside the ears and at the trunk's end."""
    front = smooth(c.normals[:, 2], 0.2, 0.6)
    c.brush(c.region("ear") * front * 0.8, "inner_ear")
    rings = 0.5 + 0.5 * np.sin(2 * np.pi * c.y / 0.11)
    c.shade(1 - 0.14 * c.region("trunk") * rings * smooth(c.normals[:, 2], -0.2, 0.5))
    c.shade(1 - 0.10 * (c.noise(0.25) - 0.5) * c.region("coat"))
    c.eyes(rim=(0.25, 0.22, 0.22), ring=0.7, pupil=0.4)


def sculpt_rhino(s: Sculptor) -> None:
    """Armour plates and two horns on a low head."""
    torso(
        s,
        [
            ("pelvis", -0.03, -0.08, 0.46, 0.47),
            ("spine_1", -0.10, 0.0, 0.56, 0.57),
            ("spine_2", -0.10, 0.0, 0.56, 0.58),
            ("chest", -0.02, 0.0, 0.47, 0.53),
        ],
    )
    neck(s, [0.50, 0.42, 0.31], width=0.88)
    s.ball(s.at("chest", (0, 0.22, 0.12)), (0.30, 0.32, 0.36), ("spine_2", "chest"), "coat", k=0.2)
    thigh(s, "hind_", (0.25, 0.44, 0.36), offset=(0.03, -0.10, 0.02))
    thigh(s, "front_", (0.22, 0.40, 0.32), offset=(0.03, 0.05, 0.0))
    _pillars(s, "front_", [0.22, 0.18, 0.145, 0.145], 0.165, 0.10)
    _pillars(s, "hind_", [0.25, 0.20, 0.145, 0.145], 0.165, 0.10)
    tail(s, [0.10, 0.055, 0.04, 0.03])
    s.ball(s.at("tail_tip", (0, 0.02, 0)), (0.05, 0.10, 0.05), "tail_2", "tuft", k=0.02)
    s.head_ball((0, 0.02, 0.18), (0.30, 0.31, 0.34), "coat", k=0.12)
    s.head_cone((0, -0.02, 0.35), (0, -0.02, 0.80), 0.25, 0.19, "coat", k=0.12, flat=(0.9, 1.0))
    s.head_ball((0, -0.06, 0.88), (0.20, 0.21, 0.17), "coat", k=0.08)
    h, f = s.head_length, s.girth.feature
    up, forward = s.head_frame[1], s.head_frame[2]
    for z, y, size in ((0.86, 0.13, 1.0), (0.56, 0.18, 0.5)):
        base = s.on_head(0, y, z)
        tips = [
            (base, 0.115),
            (base + f * size * h * (0.32 * up + 0.13 * forward), 0.082),
            (base + f * size * h * (0.68 * up + 0.10 * forward), 0.018),
        ]
        s.tube([(p, r * h * (0.6 + 0.4 * size)) for p, r in tips], "head", "horn", k=0.03 * h)
    s.head_ball((0.12, -0.02, 0.985), (0.04, 0.035, 0.03), "nostril", both=True, k=0.015)
    ear(s, (0.19, 0.26, 0.02), (0.32, 0.54, -0.02), 0.105, facing=(0.5, 0.0, 1.0), thickness=0.5)
    s.eyes(0.255, 0.07, 0.44, 0.050, look=(0.9, 0.1, 0.4))
    for joint, z in (("spine_2", 0.14), ("spine_1", -0.12)):
        s.ball(
            s.at(joint, (0, -0.06, z)),
            (0.585 * s.girth.torso, 0.60 * s.girth.torso, 0.10),
            ("pelvis", *s.line("spine"), "chest"),
            "plate",
            k=0.05,
        )


def paint_rhino(c: Canvas) -> None:
    """Slate grey with darker folds."""
    c.shade(1 - 0.16 * (c.noise(0.10) - 0.4) * c.region("coat", "plate"))
    c.shade(1 - 0.14 * c.region("coat") * smooth(-c.normals[:, 1], 0.0, 0.8))
    c.inner_ears()
    c.eyes(rim=(0.22, 0.20, 0.20), ring=0.7, pupil=0.4)


def sculpt_rabbit(s: Sculptor) -> None:
    """Crouched on long feet, long ears up, a tuft of a tail."""
    torso(
        s,
        [
            ("pelvis", -0.012, -0.018, 0.056, 0.066),
            ("spine_1", -0.020, 0.0, 0.056, 0.066),
            ("spine_2", -0.016, 0.0, 0.048, 0.056),
            ("chest", -0.012, 0.008, 0.042, 0.050),
        ],
    )
    neck(s, [0.046, 0.042, 0.038])
    thigh(s, "hind_", (0.030, 0.058, 0.060), offset=(0.0, -0.022, 0.018))
    s.leg("front_", [0.024, 0.018, 0.013, 0.012])
    s.leg("hind_", [0.038, 0.026, 0.014, 0.013])
    paws(s, "front_", 0.014, height=0.013, length=0.020)
    paws(s, "hind_", 0.017, height=0.014, length=0.030)
    s.ball(s.at("tail_1", (0, 0.004, -0.016)), (0.028, 0.028, 0.026), "tail_1", "tail", k=0.006)
    s.head_ball((0, 0.10, 0.30), (0.48, 0.50, 0.54), "coat", k=0.15)
    s.head_ball((0, -0.06, 0.70), (0.30, 0.28, 0.30), "coat", k=0.20)
    s.head_ball((0.13, -0.14, 0.84), (0.17, 0.15, 0.15), "muzzle", k=0.08, both=True)
    s.head_ball((0, -0.26, 0.74), (0.13, 0.10, 0.14), "muzzle", k=0.06)
    s.head_ball((0, -0.02, 0.99), (0.075, 0.05, 0.045), "nose", k=0.02)
    s.head_ball((0.28, -0.12, 0.44), (0.22, 0.22, 0.24), "coat", k=0.12, both=True)
    f = s.girth.feature
    base, middle, tip = s.at("left_ear_1"), s.at("left_ear_2"), s.at("left_ear_tip")
    owner = ("left_ear_1", "left_ear_2")
    side = np.cross([0.25, 0.0, 1.0], tip - base)
    s.tube(
        [
            (base - 0.15 * (tip - base), 0.014),
            (0.5 * (base + middle), 0.0195 * f),
            (middle, 0.022 * f),
            (0.4 * middle + 0.6 * tip, 0.019 * f),
            (tip, 0.009 * f),
        ],
        owner,
        "ear",
        flat=(1.0, 0.42),
        side=side,
        k=0.006,
        both=True,
    )
    s.eyes(0.385, 0.17, 0.52, 0.125, look=(0.85, 0.1, 0.5))


def paint_rabbit(c: Canvas) -> None:
    """Warm grey-brown, white below, a white tail, pink in the ears."""
    c.below(0.45, 0.3)
    x, y, z = c.head_coordinates()
    c.brush(c.region("coat") * c.moved_by("head") * smooth(-y, 0.12, 0.25), "belly")
    ring = np.hypot(np.hypot(np.abs(x) - 0.40, y - 0.17), z - 0.52)
    c.brush(c.region("coat") * smooth(-ring, -0.24, -0.17) * 0.7, "belly")
    c.brush(c.region("ear") * smooth(c.normals[:, 2], 0.35, 0.6), "inner_ear")
    c.eyes(ring=0.82, pupil=0.5)


def sculpt_turtle(s: Sculptor) -> None:
    """A tortoise: a domed shell over stout bowed legs."""
    g, f = s.girth.torso, s.girth.feature
    owner = ("pelvis", *s.line("spine"), "chest")
    body = s.at("spine_1", (0, -0.045, 0.0))
    s.ball(moved(body, 0, 0.05, 0), (0.285 * g, 0.215 * f, 0.385), owner, "shell", k=0.0, soft=0.3)
    for x, z in _scutes():
        y = np.sqrt(max(0.0, 1 - x * x - z * z))
        point = body + np.array([0.285 * g * x, 0.05 + 0.215 * f * y, 0.385 * z])
        s.ball(moved(point, -0.02 * x, -0.025, -0.02 * z), (0.070 * g, 0.036, 0.086), owner, "scute", k=0.02, soft=0.3)
    s.box(moved(body, 0, -0.25, 0), (0.6 * g, 0.25, 0.8), owner, "belly", rounding=0.01, k=0.03, carve=True)
    s.ball(moved(body, 0, 0.03, 0), (0.315 * g, 0.050, 0.415), owner, "rim", k=0.01, soft=0.3)
    s.ball(body, (0.245 * g, 0.085 * g, 0.36), owner, "belly", k=0.03)
    neck(s, [0.075, 0.070, 0.058], region="skin")
    thigh(s, "front_", (0.09, 0.075, 0.085), region="skin")
    thigh(s, "hind_", (0.09, 0.075, 0.085), region="skin")
    for stem in ("front_", "hind_"):
        s.leg(stem, [0.072, 0.065, 0.056, 0.050], region="skin", k=0.6)
        toe, tip = s.at(f"left_{stem}toe"), s.at(f"left_{stem}toe_tip")
        s.ball(
            (toe[0], 0.03, 0.5 * (toe[2] + tip[2])), (0.060, 0.042, 0.062), f"left_{stem}toe", "skin", k=0.03, both=True
        )
        for x in (-0.035, 0.0, 0.035):
            s.cone(
                (toe[0] + x, 0.018, tip[2] + 0.018),
                (toe[0] + 1.2 * x, 0.008, tip[2] + 0.045),
                0.014,
                0.006,
                f"left_{stem}toe",
                "claw",
                k=0.004,
                both=True,
            )
    tail(s, [0.06, 0.042, 0.012], region="skin")
    s.head_ball((0, 0.05, 0.38), (0.42, 0.40, 0.50), "skin", k=0.15)
    s.head_ball((0, -0.08, 0.78), (0.30, 0.27, 0.30), "skin", k=0.15)
    s.head_ball((0, -0.06, 1.02), (0.13, 0.14, 0.10), "beak", k=0.05)
    s.eyes(0.32, 0.20, 0.58, 0.115, look=(0.75, 0.15, 0.6))


def _scutes() -> list[tuple[float, float]]:
    """Where the plates of a shell sit, in shell radii seen from above."""
    middle = [(0.0, z) for z in (-0.72, -0.36, 0.0, 0.36, 0.72)]
    sides = [(x, z) for x in (-0.48, 0.48) for z in (-0.55, -0.18, 0.18, 0.55)]
    edge = [(x, z) for x in (-0.82, 0.82) for z in (-0.36, 0.0, 0.36)]
    return middle + sides + edge


def paint_turtle(c: Canvas) -> None:
    """A brown shell with pale-edged plates, olive skin."""
    s = c.sculptor
    body = s.at("spine_1", (0, -0.045, 0.0))
    x = (c.x - body[0]) / (0.285 * s.girth.torso)
    z = (c.z - body[2]) / 0.385
    centers = np.array(_scutes())
    gaps = np.sort(np.hypot(x[:, None] - centers[:, 0], (z[:, None] - centers[:, 1])), axis=1)
    seam = smooth(-(gaps[:, 1] - gaps[:, 0]), -0.10, -0.04)
    top = c.region("shell", "scute")
    c.brush(top * smooth(-gaps[:, 0], -0.16, -0.08), "scute_heart")
    c.brush(top * seam, "seam")
    c.shade(1 - 0.2 * (c.noise(0.03) - 0.4) * c.region("skin"))
    c.eyes(ring=0.7, pupil=0.4)
