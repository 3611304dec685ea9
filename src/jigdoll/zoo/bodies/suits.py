"""Robot and astronaut: boxes, rings, lamps and a visor."""

import numpy as np

from jigdoll.zoo.bodies.shapes import collar, torso
from jigdoll.zoo.bodies.shapes_people import arms, hand, shoes, shoulders
from jigdoll.zoo.paint import Canvas, smooth
from jigdoll.zoo.sculpt import Sculptor, moved


def _bone_box(
    s: Sculptor,
    a: np.ndarray,
    b: np.ndarray,
    half: tuple[float, float],
    owner: str,
    region: str,
    *,
    inset: float,
    rounding: float,
) -> None:
    """A box around a bone on both sides, its corners along the bone."""
    axis = (b - a) / np.linalg.norm(b - a)
    across = np.cross(axis, [0.0, 0.0, 1.0])
    across /= np.linalg.norm(across)
    frame = np.stack([across, np.cross(axis, across), axis])
    size = (half[0], half[1], 0.5 * float(np.linalg.norm(b - a)) * inset)
    s.box(0.5 * (a + b), size, owner, region, rounding=rounding, k=0.006, frame=frame, both=True)


def sculpt_robot(s: Sculptor) -> None:
    """Boxes on ball joints: a lamp-eyed head with an aerial, a dial on the chest."""
    g, f = s.girth.torso, s.girth.feature
    spine = ("pelvis", *s.line("spine"), "chest")
    s.box(s.at("pelvis", (0, 0.0, 0)), (0.17 * g, 0.085, 0.11 * g), "pelvis", "metal", rounding=0.035)
    s.cone(s.at("pelvis", (0, 0.06, 0)), s.at("spine_2", (0, 0.04, 0)), 0.095 * g, 0.095 * g, spine, "joint", k=0.01)
    for y in (0.0, 0.055):
        collar(
            s,
            s.at("spine_1", (0, y, 0)),
            s.at("spine_2", (0, y, 0)),
            0.112 * g,
            width=0.022,
            owner="spine_1",
            region="dark",
        )
    s.box(
        s.at("chest", (0, 0.04, 0)), (0.225 * g, 0.155, 0.135 * g), ("spine_2", "chest"), "metal", rounding=0.05, k=0.01
    )
    s.box(s.at("chest", (0, 0.05, 0.125 * g)), (0.115, 0.075, 0.022), "chest", "panel", rounding=0.015, k=0.004)
    s.ball(s.at("chest", (0.055, 0.07, 0.148 * g)), (0.028, 0.028, 0.016), "chest", "lamp", k=0.0)
    s.ball(s.at("chest", (-0.055, 0.07, 0.148 * g)), (0.028, 0.028, 0.016), "chest", "button", k=0.0)
    s.cone(s.at("chest", (0, 0.15, 0)), s.at("head", (0, 0.02, 0)), 0.06, 0.06, ("chest", "neck_1"), "joint", k=0.01)
    collar(s, s.at("neck_1", (0, 0.03, 0)), s.at("head", (0, 0.2, 0)), 0.078, width=0.02, owner="neck_1", region="dark")
    s.head_ball((0, 0.10, 0), (0.2, 0.12, 0.2), "joint", k=0.02)
    h = s.head_length
    s.box(s.on_head(0, 0.45, 0), (0.52 * h, 0.36 * h, 0.44 * h), "head", "metal", rounding=0.12 * h, k=0.01)
    s.box(s.on_head(0, 0.50, 0.38), (0.40 * h, 0.20 * h, 0.10 * h), "head", "dark", rounding=0.06 * h, k=0.006)
    s.ball(s.on_head(0.19, 0.52, 0.475), (0.105 * h, 0.105 * h, 0.06 * h), "head", "lamp", k=0.0, both=True)
    for x in (-0.18, -0.06, 0.06, 0.18):
        s.box(s.on_head(x, 0.19, 0.44), (0.035 * h, 0.055 * h, 0.03 * h), "head", "dark", rounding=0.012 * h)
    s.cone(s.on_head(0.50, 0.46, 0), s.on_head(0.60, 0.46, 0), 0.14 * h, 0.10 * h, "head", "accent", k=0.01, both=True)
    s.cone(s.on_head(0, 0.78, 0), s.on_head(0, 0.78 + 0.28 * f, 0), 0.035 * h, 0.030 * h, "head", "joint", k=0.01)
    s.ball(s.on_head(0, 0.82 + 0.30 * f, 0), (0.075 * h,) * 3, "head", "button", k=0.0)
    _robot_limbs(s)


def _robot_limbs(s: Sculptor) -> None:
    g = s.girth.legs
    for joint, radius in (("left_hip", 0.085), ("left_knee", 0.068), ("left_shoulder", 0.085), ("left_elbow", 0.056)):
        s.ball(s.at(joint), (radius * g,) * 3, joint, "joint", k=0.01, both=True)
    s.cone(s.at("left_clavicle"), s.at("left_shoulder"), 0.06, 0.06, "left_clavicle", "joint", k=0.01, both=True)
    for a, b, half in (("left_hip", "left_knee", (0.070, 0.078)), ("left_knee", "left_ankle", (0.074, 0.082))):
        _bone_box(
            s,
            s.at(a),
            s.at(b),
            (half[0] * g, half[1] * g),
            a,
            "metal" if a == "left_hip" else "accent",
            inset=0.72,
            rounding=0.03,
        )
    s.cone(s.at("left_knee"), s.at("left_ankle"), 0.045 * g, 0.045 * g, "left_knee", "joint", k=0.01, both=True)
    s.cone(s.at("left_hip"), s.at("left_knee"), 0.045 * g, 0.045 * g, "left_hip", "joint", k=0.01, both=True)
    for a, b, half, shade in (
        ("left_shoulder", "left_elbow", 0.056, "metal"),
        ("left_elbow", "left_wrist", 0.062, "accent"),
    ):
        _bone_box(s, s.at(a), s.at(b), (half * g, half * g), a, shade, inset=0.66, rounding=0.025)
        s.cone(s.at(a), s.at(b), 0.034 * g, 0.034 * g, a, "joint", k=0.01, both=True)
    ankle, toe, tip = s.at("left_ankle"), s.at("left_toe"), s.at("left_toe_tip")
    s.ball(ankle, (0.055 * g,) * 3, "left_ankle", "joint", k=0.01, both=True)
    s.box(
        (ankle[0], 0.05, 0.5 * (ankle[2] - 0.07 + toe[2])),
        (0.085 * g, 0.05, 0.5 * (toe[2] - ankle[2] + 0.09)),
        "left_ankle",
        "metal",
        rounding=0.025,
        k=0.01,
        both=True,
    )
    s.box(
        (toe[0], 0.042, 0.5 * (toe[2] + tip[2])),
        (0.083 * g, 0.042, 0.5 * (tip[2] - toe[2]) + 0.03),
        "left_toe",
        "metal",
        rounding=0.025,
        k=0.006,
        both=True,
    )
    wrist, end = s.at("left_wrist"), s.at("left_hand_tip")
    along = (end - wrist) / np.linalg.norm(end - wrist)
    s.ball(wrist + 0.02 * along, (0.058 * g,) * 3, "left_wrist", "metal", k=0.01, both=True)
    for x, z in ((0.0, 0.038), (0.033, -0.02), (-0.033, -0.02)):
        start = wrist + 0.04 * along + np.array([x, 0.0, z])
        bend = start + 0.055 * along + 0.5 * np.array([x, 0.0, z])
        s.tube(
            [(start, 0.021 * g), (bend, 0.019 * g), (wrist + 0.150 * along + 0.6 * np.array([x, 0.0, z]), 0.013 * g)],
            "left_wrist",
            "dark",
            k=0.008,
            both=True,
        )


def paint_robot(c: Canvas) -> None:
    """Glowing lamps, and screws that need no drawing."""
    c.shade(1 - 0.06 * c.region("metal") * smooth(-c.normals[:, 1], 0.2, 0.8))
    for i, shape in enumerate(c.sculptor.shapes):
        if shape.region == "lamp" and shape.owner == ("head",):
            away = np.linalg.norm((c.points - shape.origin)[:, :2], axis=1) / shape.scale[0]
            c.brush(c.shares[:, i] * smooth(-away, -0.45, -0.25), (0.95, 1.0, 1.0))


def sculpt_astronaut(s: Sculptor) -> None:
    """A pressure suit: a globe of a helmet, a backpack, rings at the joints."""
    torso(
        s,
        [
            ("pelvis", -0.02, 0.0, 0.185, 0.150),
            ("spine_1", 0.0, 0.0, 0.180, 0.150),
            ("spine_2", 0.02, 0.0, 0.200, 0.160),
            ("chest", 0.04, 0.0, 0.215, 0.165),
        ],
        region="suit",
    )
    g = s.girth.legs
    shoulders(s, 0.105, inset=0.04, region="suit", k=0.06)
    hip, knee, ankle = (s.at(f"left_{part}") for part in ("hip", "knee", "ankle"))
    s.cone(hip, knee, 0.125 * g, 0.098 * g, "left_hip", "suit", k=0.04, both=True)
    s.cone(knee, ankle, 0.102 * g, 0.090 * g, "left_knee", "suit", k=0.03, both=True)
    arms(s, [0.092, 0.078, 0.078, 0.064], ["suit", "suit"], k=0.04)
    for a, b, t, radius in (
        ("left_hip", "left_knee", 0.50, 0.128),
        ("left_knee", "left_ankle", 0.45, 0.112),
        ("left_shoulder", "left_elbow", 0.50, 0.098),
    ):
        point = s.at(a) + t * (s.at(b) - s.at(a))
        _band(s, point, s.at(b) - s.at(a), radius * g, 0.030, a, "stripe" if "shoulder" in a else "fold")
    _band(s, s.at("left_wrist"), s.at("left_hand_tip") - s.at("left_wrist"), 0.078 * g, 0.022, "left_elbow", "ring")
    hand(s, 1.45, "glove", fingers=1.35)
    shoes(s, 0.075, 0.105, "boot", "sole")
    _band(s, moved(ankle, 0, 0.055, 0.005), np.array([0.0, 1.0, 0.0]), 0.104 * g, 0.026, "left_knee", "ring")
    s.box(s.at("chest", (0, -0.02, -0.20)), (0.19, 0.25, 0.095), ("spine_2", "chest"), "pack", rounding=0.05, k=0.01)
    s.box(s.at("chest", (0, 0.18, -0.20)), (0.13, 0.07, 0.07), "chest", "pack", rounding=0.03, k=0.01)
    s.box(s.at("chest", (0, -0.01, 0.160)), (0.105, 0.075, 0.030), "chest", "panel", rounding=0.018, k=0.005)
    s.ball(s.at("chest", (0.05, 0.02, 0.19)), (0.020, 0.020, 0.012), "chest", "button", k=0.0)
    s.ball(s.at("chest", (0.0, 0.02, 0.19)), (0.020, 0.020, 0.012), "chest", "lamp", k=0.0)
    s.box(s.at("chest", (0.0, -0.04, 0.19)), (0.06, 0.014, 0.010), "chest", "fold", rounding=0.006)
    hose = [
        (s.at("chest", (0.09, -0.03, 0.17)), 0.022),
        (s.at("chest", (0.18, -0.10, 0.17)), 0.022),
        (s.at("chest", (0.235, -0.12, 0.03)), 0.022),
        (s.at("chest", (0.19, -0.10, -0.16)), 0.022),
    ]
    s.tube(hose, "chest", "fold", k=0.004, both=True)
    collar(
        s, s.at("neck_1", (0, 0.035, 0)), s.at("head", (0, 0.2, 0)), 0.155, width=0.035, owner="neck_1", region="ring"
    )
    h = s.head_length
    s.ball(s.on_head(0, 0.50, 0.0), (0.58 * h, 0.57 * h, 0.58 * h), "head", "helmet", k=0.01)
    s.ball(s.on_head(0, 0.51, 0.15), (0.49 * h, 0.40 * h, 0.475 * h), "head", "visor", k=0.0)
    s.ball(s.on_head(0.57, 0.48, 0.02), (0.06 * h, 0.15 * h, 0.15 * h), "head", "ring", k=0.01, both=True)


def _band(
    s: Sculptor, point: np.ndarray, axis: np.ndarray, radius: float, width: float, owner: str, region: str
) -> None:
    """A ring around a limb on both sides."""
    for sign, side in ((1.0, "left_"), (-1.0, "right_")):
        flip = np.array([sign, 1.0, 1.0])
        collar(
            s,
            point * flip,
            (point + axis) * flip,
            radius,
            width=width,
            owner=owner.replace("left_", side),
            region=region,
        )


def paint_astronaut(c: Canvas) -> None:
    """White, a gold visor with the sky in it."""
    s = c.sculptor
    x, y, z = c.head_coordinates()
    rim = np.hypot(x / 0.47, (y - 0.51) / 0.38)
    visor = c.region("visor", "helmet") * smooth(z, 0.05, 0.12) * smooth(-rim, -1.03, -0.97)
    c.brush(c.region("visor"), "helmet")
    c.brush(c.region("helmet", "visor") * smooth(z, 0.05, 0.12) * smooth(-rim, -1.17, -1.11), "ring")
    c.brush(visor, "visor")
    c.brush(visor * smooth(y, 0.45, 0.85) * 0.75, "sky")
    c.brush(visor * smooth(-np.hypot(x - 0.22, (y - 0.68)), -0.14, -0.06), (1.0, 0.98, 0.92))
    c.shade(1 - 0.10 * c.region("suit") * smooth(-c.normals[:, 1], 0.2, 0.8))
    badge = np.linalg.norm((c.points - s.at("chest", (-0.12, 0.09, 0.16)))[:, :2], axis=1)
    c.brush(c.region("suit") * smooth(c.z, 0.05, 0.1) * smooth(-badge, -0.034, -0.024), "badge")
