"""Ant and spider: beads on strings, and more legs than anyone."""

import numpy as np

from jigdoll.zoo.paint import Canvas, smooth
from jigdoll.zoo.sculpt import Sculptor, moved


def _jointed_legs(
    s: Sculptor, stems: tuple[str, ...], radii: tuple[float, float, float, float, float], region: str
) -> None:
    """Thin armoured legs with bead-like knees."""
    g = s.girth.legs
    parts = ("hip", "knee", "ankle", "toe", "toe_tip")
    for stem in stems:
        for i in range(4):
            a, b = f"left_{stem}{parts[i]}", f"left_{stem}{parts[i + 1]}"
            ra, rb = g * radii[i], g * radii[i + 1]
            if i == 3:
                rb = max(rb, 1.1 * float(s.at(b)[1]))  # However thin, the leg reaches the ground.
            s.cone(s.at(a), s.at(b), ra, rb, a, region, k=0.5 * rb, both=True)


def sculpt_ant(s: Sculptor) -> None:
    """Three beads on a string, six legs, elbowed feelers and pincers."""
    g, f = s.girth.torso, s.girth.feature
    s.tube(
        [(s.at("pelvis"), 0.030 * g), (s.at("spine_1", (0, 0.004, 0)), 0.036 * g), (s.at("chest"), 0.040 * g)],
        ("pelvis", "spine_1", "chest"),
        "coat",
        k=0.01,
        flat=(0.9, 1.0),
    )
    s.cone(s.at("chest"), s.at("head"), 0.022, 0.022, ("chest", "neck_1", "head"), "joint", k=0.012)
    s.ball(s.at("tail_1", (0, 0.004, 0.0)), (0.017, 0.026, 0.016), "tail_1", "coat", k=0.008)
    s.cone(s.at("pelvis"), s.at("tail_2"), 0.014, 0.016, ("pelvis", "tail_1"), "joint", k=0.012)
    middle = 0.5 * (s.at("tail_2") + s.at("tail_tip"))
    s.ball(moved(middle, 0, 0.004, 0.0), (0.068 * g, 0.064 * g, 0.092), "tail_2", "gaster", k=0.015)
    s.cone(
        moved(middle, 0, 0.0, -0.05),
        s.at("tail_tip", (0, -0.006, -0.012)),
        0.035 * g,
        0.008,
        "tail_2",
        "gaster",
        k=0.02,
    )
    _jointed_legs(s, ("front_", "middle_", "hind_"), (0.0135, 0.0105, 0.0085, 0.0075, 0.0065), "leg")
    s.head_ball((0, 0.05, 0.42), (0.53, 0.43, 0.46), "coat", k=0.08)
    s.head_ball((0.25, 0.06, 0.34), (0.26, 0.30, 0.30), "coat", k=0.1, both=True)
    h = s.head_length
    pincer = [
        ((0.22, -0.10, 0.80), 0.085),
        ((0.30, -0.16, 1.02), 0.075),
        ((0.20, -0.20, 1.20), 0.055),
        ((0.05, -0.22, 1.27), 0.025),
    ]
    s.tube([(s.on_head(*p), r * h * f) for p, r in pincer], "head", "pincer", k=0.02 * h, both=True)
    names = ("left_antenna_1", "left_antenna_2", "left_antenna_tip")
    a, b, t = (s.at(name) for name in names)
    s.cone(s.on_head(0.16, 0.25, 0.68), a, 0.008, 0.0070, names[0], "leg", k=0.004, both=True)
    s.cone(a, b, 0.0072, 0.0070, names[0], "leg", k=0.002, both=True)
    s.cone(b, t, 0.0068, 0.0080, names[1], "leg", k=0.002, both=True)
    s.eyes(0.47, 0.16, 0.52, 0.15, look=(0.85, 0.15, 0.45))


def paint_ant(c: Canvas) -> None:
    """Red-brown before, banded black behind."""
    s = c.sculptor
    along = (s.at("tail_2")[2] - c.z) / (s.at("tail_2")[2] - s.at("tail_tip")[2])
    bands = smooth(np.sin(2 * np.pi * along * 3.5), 0.55, 0.8)
    c.brush(c.region("gaster") * bands, "band")
    c.shade(1 + 0.18 * smooth(c.normals[:, 1], 0.5, 1.0) * c.region("coat", "gaster"))
    c.eyes(rim=(0.05, 0.04, 0.04), iris=(0.12, 0.10, 0.10), ring=0.9, pupil=0.3)


def sculpt_spider(s: Sculptor) -> None:
    """A tarantula: two beads, eight banded legs, eight eyes."""
    g, f = s.girth.torso, s.girth.feature
    s.ball(
        0.5 * (s.at("pelvis") + s.at("chest")) + [0, 0.0, 0.005],
        (0.062 * g, 0.040 * g, 0.072),
        ("pelvis", "chest"),
        "coat",
        k=0.015,
    )
    s.cone(s.at("pelvis"), s.at("tail_2"), 0.020, 0.022, ("pelvis", "tail_1"), "coat", k=0.012)
    middle = 0.5 * (s.at("tail_2") + s.at("tail_tip"))
    s.ball(moved(middle, 0, 0.010, 0.005), (0.088 * g * f, 0.080 * g * f, 0.108), "tail_2", "abdomen", k=0.015)
    for x in (-0.014, 0.014):
        s.cone(
            s.at("tail_tip", (x, -0.015, 0.02)),
            s.at("tail_tip", (1.4 * x, -0.018, -0.014)),
            0.013,
            0.006,
            "tail_2",
            "coat",
            k=0.006,
        )
    _jointed_legs(s, ("1_", "2_", "3_", "4_"), (0.0170, 0.0145, 0.0115, 0.0090, 0.0080), "leg")
    s.cone(s.at("chest"), s.at("head"), 0.036, 0.034, ("chest", "neck_1", "head"), "coat", k=0.01)
    s.head_ball((0, 0.10, 0.25), (0.92, 0.66, 0.80), "coat", k=0.2)
    h = s.head_length
    for points, region in (
        ([((0.30, -0.30, 0.85), 0.26), ((0.30, -0.70, 1.05), 0.22)], "coat"),
        ([((0.30, -0.80, 1.12), 0.13), ((0.24, -1.30, 1.00), 0.05)], "fang"),
        ([((0.72, -0.10, 0.75), 0.19), ((1.05, 0.35, 1.45), 0.18), ((0.95, -0.85, 2.10), 0.15)], "leg"),
    ):
        s.tube([(s.on_head(*p), r * h) for p, r in points], "head", region, k=0.04 * h, both=True)
    s.eyes(0.26, 0.44, 0.84, 0.20, look=(0.25, 0.35, 0.9))
    s.eyes(0.62, 0.42, 0.58, 0.16, look=(0.7, 0.4, 0.6))
    s.eyes(0.24, 0.70, 0.52, 0.13, look=(0.25, 0.8, 0.5))
    s.eyes(0.58, 0.66, 0.24, 0.12, look=(0.6, 0.8, 0.2))


def paint_spider(c: Canvas) -> None:
    """Near black with orange knees and a marked back."""
    s = c.sculptor
    mirrored = np.stack([np.abs(c.x), c.y, c.z], 1)
    for rank in range(1, 5):
        for joint, reach in (("knee", 0.030), ("ankle", 0.022)):
            gap = np.linalg.norm(mirrored - s.at(f"left_{rank}_{joint}"), axis=1)
            c.brush(c.region("leg") * smooth(-gap, -reach - 0.008, -reach), "band")
    middle = 0.5 * (s.at("tail_2") + s.at("tail_tip"))
    along = (c.z - middle[2]) / 0.10
    mark = 0.030 * (1 - 0.5 * along) * (0.45 + 0.55 * np.abs(np.sin(2.6 * np.pi * along)))
    c.brush(
        c.region("abdomen")
        * smooth(c.normals[:, 1], 0.2, 0.5)
        * smooth(-(np.abs(c.x) - mark), -0.004, 0.004)
        * smooth(-np.abs(along), -0.85, -0.75),
        "band",
    )
    c.shade(1 + 0.25 * (c.noise(0.012) - 0.5) * c.region("abdomen", "coat"))
    c.eyes(rim=(0.03, 0.03, 0.03), iris=(0.45, 0.10, 0.08), ring=0.80, pupil=0.45)
