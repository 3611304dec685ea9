"""Crocodile and dragon: scales, ridges, jaws and wings."""

import numpy as np

from jigdoll.zoo.bodies.shapes import neck, paws, tail, thigh, torso
from jigdoll.zoo.paint import Canvas, smooth
from jigdoll.zoo.sculpt import Sculptor, moved


def _along(s: Sculptor, names: list[str], count: int) -> list[tuple[np.ndarray, str, float]]:
    """Evenly spaced points on the line through joints: the point, the joint it belongs to, and its share of the way."""
    points = np.stack([s.at(name) for name in names])
    ends = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    places = np.linspace(0, ends[-1], count)
    owners = np.clip(np.searchsorted(ends, places, side="right") - 1, 0, len(names) - 2)
    moved = [np.array([np.interp(place, ends, points[:, axis]) for axis in range(3)]) for place in places]
    return [(point, names[i], place / ends[-1]) for point, i, place in zip(moved, owners, places, strict=True)]


def sculpt_crocodile(s: Sculptor) -> None:
    """Low and long: a toothed snout, a ridged back, a keeled tail."""
    torso(
        s,
        [
            ("pelvis", -0.01, -0.06, 0.200, 0.150),
            ("spine_1", -0.03, 0.0, 0.255, 0.175),
            ("spine_2", -0.03, 0.0, 0.260, 0.180),
            ("chest", -0.02, 0.0, 0.215, 0.165),
        ],
    )
    neck(s, [0.155, 0.145, 0.130], width=1.2)
    joints = s.line("tail")
    stations = zip(("pelvis", *joints, "tail_tip"), (0.150, 0.145, 0.125, 0.102, 0.080, 0.060, 0.026), strict=True)
    s.tube(
        [(s.at(name), s.girth.torso * r) for name, r in stations], ("pelvis", *joints), "coat", k=0.05, flat=(0.85, 1.0)
    )
    for stem in ("front_", "hind_"):
        thigh(s, stem, (0.10, 0.085, 0.10))
        s.leg(stem, [0.095, 0.076, 0.056, 0.046])
        toe, tip = s.at(f"left_{stem}toe"), s.at(f"left_{stem}toe_tip")
        way = tip - toe
        s.ball(
            (toe[0], 0.028, toe[2] + 0.3 * way[2]), (0.06, 0.028, 0.06), f"left_{stem}toe", "coat", k=0.02, both=True
        )
        for x in (-0.7, -0.25, 0.2, 0.65):
            end = toe + way * (1.05 - 0.15 * abs(x)) + [0.075 * x, 0.0, 0.0]
            s.cone(
                (toe[0] + 0.04 * x, 0.025, toe[2] + 0.02),
                (end[0], 0.015, end[2]),
                0.022,
                0.012,
                f"left_{stem}toe",
                "coat",
                k=0.008,
                both=True,
            )
    f = s.girth.feature
    spine = ["tail_tip", *reversed(joints), "pelvis", *s.line("spine"), "chest", "neck_1", "head"]
    for point, owner, share in _along(s, spine, 44)[2:-1]:
        height = float(np.interp(share, [0, 0.2, 0.52, 0.75, 1], [0.045, 0.095, 0.152, 0.160, 0.125])) * s.girth.torso
        chain = (owner,) if owner != "tail_tip" else (joints[-1],)
        if share < 0.36:
            s.cone(
                moved(point, 0, height - 0.02, 0),
                moved(point, 0, height + 0.035 * f, -0.012),
                0.030,
                0.008,
                chain,
                "ridge",
                flat=(0.5, 1.0),
                k=0.01,
            )
            continue
        rows = (0.045,) if share > 0.9 or share < 0.5 else (0.04, 0.12)
        for x in rows:
            drop = 0.13 * x if x < 0.1 else 0.035
            s.cone(
                moved(point, x, height - 0.020 - drop, 0),
                moved(point, x * 1.05, height + 0.022 * f - drop, -0.012),
                0.026,
                0.010,
                chain,
                "ridge",
                flat=(0.8, 1.2),
                k=0.012,
                both=True,
            )
    _crocodile_head(s)


def _crocodile_head(s: Sculptor) -> None:
    h = s.head_length
    s.head_ball((0, 0.04, 0.12), (0.225, 0.135, 0.24), "coat", k=0.06)
    s.head_cone((0, 0.03, 0.26), (0, -0.005, 0.90), 0.135, 0.070, "coat", k=0.06, flat=(1.25, 0.75))
    s.head_ball((0, 0.015, 0.95), (0.115, 0.075, 0.085), "coat", k=0.04)
    s.head_ball((0.045, 0.075, 0.965), (0.03, 0.025, 0.03), "coat", both=True, k=0.02)
    s.head_ball((0.115, 0.135, 0.22), (0.075, 0.060, 0.10), "coat", both=True, k=0.03)
    jaw, tip = s.at("jaw"), s.at("jaw_tip")
    s.cone(jaw, tip, 0.115 * h, 0.065 * h, "jaw", "jaw", flat=(1.35, 0.55), k=0.04 * h)
    along = (tip - jaw) / np.linalg.norm(tip - jaw)
    up = np.cross(along, [1.0, 0.0, 0.0])
    for i in range(11):
        t = 0.34 + 0.62 * i / 10
        size = 1.0 + 0.35 * np.sin(2.7 * i)
        width = 0.165 - 0.075 * t + 0.02 * np.clip(5 * t - 4, 0, 1)
        root = s.on_head(float(width), -0.045 + 0.02 * t, t)
        s.cone(
            root,
            root - s.head_frame[1] * 0.055 * h * size,
            0.016 * h,
            0.006 * h,
            "head",
            "tooth",
            k=0.004 * h,
            both=True,
        )
        if i % 2:
            base = jaw + t * (tip - jaw) + up * 0.035 * h + np.array([(0.145 - 0.07 * t) * h, 0.0, 0.0])
            s.cone(base, base + up * 0.05 * h * size, 0.015 * h, 0.006 * h, "jaw", "tooth", k=0.004 * h, both=True)
    s.eyes(0.135, 0.165, 0.255, 0.052, look=(0.75, 0.25, 0.55))


def paint_crocodile(c: Canvas) -> None:
    """Swamp green, blotched, a cream belly and a pink mouth."""
    c.below(0.2, 0.35)
    c.brush(c.region("jaw") * smooth(-c.normals[:, 1], 0.0, 0.4), "belly")
    blotch = smooth(c.noise(0.14) + 0.4 * (c.noise(0.05, octave=1) - 0.5), 0.52, 0.66)
    c.brush(c.region("coat", "ridge") * blotch * smooth(c.normals[:, 1], -0.1, 0.3) * 0.75, "stripe")
    s = c.sculptor
    _x, _y, z = c.head_coordinates()
    along = s.at("jaw_tip") - s.at("jaw")
    up = np.cross(along / np.linalg.norm(along), [1.0, 0.0, 0.0])
    c.brush(c.region("jaw") * smooth(c.normals @ up, 0.4, 0.7), "mouth")
    c.brush(
        c.region("coat")
        * c.moved_by("head")
        * smooth(-(c.normals @ s.head_frame[1]), 0.6, 0.8)
        * smooth(z, 0.25, 0.35),
        "mouth",
    )
    c.eyes(iris=(0.85, 0.75, 0.15), ring=0.82, pupil=0.24)


def sculpt_dragon(s: Sculptor) -> None:
    """Horns, a spiked back, bat wings and a spade on the tail."""
    torso(
        s,
        [
            ("pelvis", -0.01, -0.12, 0.215, 0.255),
            ("spine_1", -0.05, 0.0, 0.250, 0.290),
            ("spine_2", -0.08, 0.0, 0.275, 0.330),
            ("chest", -0.06, 0.04, 0.260, 0.335),
        ],
    )
    neck(s, [0.30, 0.235, 0.175, 0.150, 0.140], width=0.85)
    tail(s, [0.25, 0.205, 0.165, 0.128, 0.098, 0.072, 0.045], k=0.08)
    thigh(s, "hind_", (0.165, 0.32, 0.26), offset=(0.0, -0.11, 0.04), tip=-0.3)
    thigh(s, "front_", (0.135, 0.27, 0.20), offset=(0.0, 0.0, -0.05))
    s.leg("front_", [0.145, 0.105, 0.080, 0.075])
    s.leg("hind_", [0.19, 0.135, 0.082, 0.075])
    for stem in ("front_", "hind_"):
        paws(s, stem, 0.098, height=0.072, length=0.115, region="coat")
        tip = s.at(f"left_{stem}toe_tip")
        for x in (-0.058, 0.0, 0.058):
            s.cone(
                (tip[0] + x, 0.05, tip[2] + 0.06),
                (tip[0] + 1.1 * x, 0.02, tip[2] + 0.155),
                0.030,
                0.009,
                f"left_{stem}toe",
                "claw",
                k=0.008,
                both=True,
            )
    _dragon_wings(s)
    _dragon_head(s)
    f = s.girth.feature
    joints = s.line("tail")
    names = ["tail_tip", *reversed(joints), "pelvis", *s.line("spine"), "chest", *s.line("neck"), "head"]
    for point, owner, share in _along(s, names, 30)[2:-1]:
        height = (
            float(np.interp(share, [0, 0.2, 0.48, 0.68, 0.80, 1], [0.05, 0.12, 0.25, 0.29, 0.20, 0.14])) * s.girth.torso
        )
        size = f * float(np.interp(share, [0, 0.4, 0.7, 1], [0.09, 0.17, 0.18, 0.10]))
        lean = np.array([0.0, 1.0, -0.55]) if share < 0.75 else np.array([0.0, 0.75, -0.9])
        way = lean / np.linalg.norm(lean)
        s.cone(
            point + (height - 0.05) * way,
            point + (height + size) * way,
            0.065,
            0.016,
            (owner if owner != "tail_tip" else joints[-1],),
            "spike",
            flat=(0.55, 1.0),
            k=0.03,
        )
    end, before = s.at("tail_tip"), s.at(joints[-1])
    way = (end - before) / np.linalg.norm(end - before)
    s.cone(end - 0.05 * way, end + 0.30 * f * way, 0.15 * f, 0.02, joints[-1], "spike", flat=(1.0, 0.30), k=0.03)


def _dragon_wings(s: Sculptor) -> None:
    """An arm, three fingers, and the skin between them and the flank."""
    names = ("left_wing_shoulder", "left_wing_elbow", "left_wing_wrist")
    shoulder, elbow, wrist, tip = (s.at(name) for name in (*names, "left_wing_tip"))
    g = s.girth.legs
    root = s.at("spine_1", (0.17, 0.14, 0.05))
    span = tip - wrist
    first = wrist + 0.74 * span + np.array([-0.10, -0.55, -0.62])
    second = wrist + 0.10 * span + np.array([-0.10, -0.78, -1.02])
    third = elbow + np.array([0.02, -0.52, -0.95])
    sheets = (
        ((wrist, tip, first), names[2]),
        ((wrist, first, second), names[2]),
        ((elbow, wrist, second), names[1]),
        ((elbow, second, third), names[1]),
        ((shoulder, elbow, root), names[0]),
        ((elbow, third, root), names[0]),
    )
    for corners, owner in sheets:
        s.sheet(corners, 0.075, owner, "membrane", k=0.02)
    for a, b, from_ in ((tip, first, wrist), (first, second, wrist), (second, third, elbow)):
        # A bite out of the hem between two fingers: a ball that cuts it a sixth of its length deep.
        hem, out = b - a, 0.5 * (a + b) - from_
        out = out - (out @ hem) / (hem @ hem) * hem
        reach = 0.80 * float(np.linalg.norm(hem))
        center = 0.5 * (a + b) + (reach - 0.16 * float(np.linalg.norm(hem))) * out / np.linalg.norm(out)
        s.ball(center, (reach,) * 3, names[2], "membrane", carve=True, k=0.02, both=True)
    s.cone(shoulder, elbow, 0.125 * g, 0.080 * g, names[0], "coat", k=0.08, both=True)
    s.cone(elbow, wrist, 0.082 * g, 0.062 * g, names[1], "coat", k=0.03, both=True)
    s.cone(wrist, tip, 0.060 * g, 0.038 * g, names[2], "coat", k=0.02, both=True)
    s.cone(wrist, first, 0.062 * g, 0.042 * g, names[2], "coat", k=0.02, both=True)
    s.cone(wrist, second, 0.052 * g, 0.036 * g, (names[1], names[2]), "coat", k=0.02, both=True)
    s.cone(elbow, third, 0.064 * g, 0.042 * g, names[1], "coat", k=0.02, both=True)
    s.cone(wrist, wrist + np.array([0.03, 0.20, 0.10]), 0.045, 0.010, names[2], "claw", k=0.01, both=True)


def _dragon_head(s: Sculptor) -> None:
    h, f = s.head_length, s.girth.feature
    s.head_ball((0, 0.05, 0.16), (0.23, 0.22, 0.28), "coat", k=0.08)
    s.head_cone((0, 0.02, 0.28), (0, -0.01, 0.84), 0.175, 0.105, "coat", k=0.08, flat=(0.95, 0.9))
    s.head_ball((0, 0.0, 0.88), (0.13, 0.10, 0.12), "coat", k=0.05)
    s.head_ball((0.07, 0.085, 0.93), (0.045, 0.04, 0.05), "coat", k=0.03, both=True)
    s.head_ball((0.075, 0.10, 0.975), (0.022, 0.02, 0.02), "nostril", k=0.005, both=True)
    s.head_cone((0.12, 0.20, 0.20), (0.13, 0.13, 0.50), 0.055, 0.035, "coat", k=0.03, both=True)
    horn = [
        ((0.12, 0.17, 0.08), 0.075),
        ((0.21, 0.36, -0.12), 0.058),
        ((0.25, 0.48, -0.36), 0.040),
        ((0.24, 0.56, -0.58), 0.012),
    ]
    base = s.on_head(*horn[0][0])
    s.tube([(base + f * (s.on_head(*p) - base), r * h * f) for p, r in horn], "head", "horn", k=0.02 * h, both=True)
    for y, z, reach in ((-0.02, 0.04, 0.24), (-0.12, 0.10, 0.18)):
        root = s.on_head(0.17, y, z)
        s.cone(
            root,
            root + f * h * reach * np.array([0.75, 0.10, -0.75]),
            0.045 * h,
            0.012 * h,
            "head",
            "horn",
            k=0.02 * h,
            both=True,
        )
    jaw, tip = s.at("jaw"), s.at("jaw_tip")
    s.cone(jaw, tip, 0.135 * h, 0.075 * h, "jaw", "jaw", flat=(1.1, 0.65), k=0.05 * h)
    along = (tip - jaw) / np.linalg.norm(tip - jaw)
    up = np.cross(along, [1.0, 0.0, 0.0])
    s.cone(
        jaw + 0.4 * (tip - jaw) + 0.04 * h * up,
        tip + 0.04 * h * up,
        0.05 * h,
        0.035 * h,
        "jaw",
        "tongue",
        flat=(1.0, 0.5),
        k=0.01 * h,
    )
    for i, t in enumerate((0.46, 0.58, 0.70, 0.82, 0.92)):
        root = s.on_head(0.165 - 0.075 * t, -0.075, t)
        s.cone(
            root,
            root - s.head_frame[1] * (0.11 if i % 2 else 0.075) * h,
            0.026 * h,
            0.008 * h,
            "head",
            "tooth",
            k=0.005 * h,
            both=True,
        )
        base = jaw + (t - 0.03) * (tip - jaw) + up * 0.04 * h + np.array([(0.125 - 0.05 * t) * h, 0.0, 0.0])
        if i % 2:
            s.cone(base, base + up * 0.08 * h, 0.022 * h, 0.007 * h, "jaw", "tooth", k=0.005 * h, both=True)
    s.eyes(0.175, 0.125, 0.38, 0.062, look=(0.75, 0.05, 0.65))


def paint_dragon(c: Canvas) -> None:
    """Red scales, a plated golden belly, dark spikes, an orange skin in the wings."""
    s = c.sculptor
    under = smooth(-c.normals[:, 1] + 0.35 * np.maximum(c.normals[:, 2], 0), 0.30, 0.55)
    trunk = c.region("coat") * (1 - c.moved_by("knee", "ankle", "toe", "hip", "wing", "head"))
    plates = 0.5 + 0.5 * np.sin(2 * np.pi * (c.z + 0.5 * c.y) / 0.10)
    c.brush(trunk * under, "belly")
    c.shade(1 - 0.22 * trunk * under * smooth(plates, 0.7, 1.0))
    near, second = c.cells(0.075)
    c.shade(1 - 0.22 * c.region("coat", "jaw") * (1 - under) * smooth(-(second - near), -0.14, -0.02))
    _x, _y, z = c.head_coordinates()
    along = s.at("jaw_tip") - s.at("jaw")
    up = np.cross(along / np.linalg.norm(along), [1.0, 0.0, 0.0])
    c.brush(c.region("jaw") * smooth(c.normals @ up, 0.4, 0.7), "mouth")
    c.brush(
        c.region("coat") * c.moved_by("head") * smooth(-(c.normals @ s.head_frame[1]), 0.6, 0.8) * smooth(z, 0.3, 0.4),
        "mouth",
    )
    wrist = np.linalg.norm(np.stack([np.abs(c.x), c.y, c.z], 1) - s.at("left_wing_wrist"), axis=1)
    c.brush(c.region("membrane") * smooth(wrist, 0.35, 1.3) * 0.8, "membrane_edge")
    c.eyes(iris=(0.98, 0.85, 0.15), ring=0.85, pupil=0.22)
