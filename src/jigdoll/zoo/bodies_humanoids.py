"""Human, child, robot and astronaut."""

from collections.abc import Sequence

import numpy as np

from jigdoll.zoo.anatomy import collar, torso
from jigdoll.zoo.paint import Canvas, smooth
from jigdoll.zoo.sculpt import Sculptor, moved

_ARM = ("left_shoulder", "left_elbow", "left_wrist")


def _arms(s: Sculptor, radii: Sequence[float], regions: Sequence[str], *, k: float = 0.02) -> None:
    """Upper arm and forearm, with radii at shoulder, elbow (twice) and wrist."""
    g = s.girth.legs
    upper, lower, wrist = (s.at(name) for name in _ARM)
    s.cone(upper, lower, g * radii[0], g * radii[1], "left_shoulder", regions[0], k=k, both=True)
    s.cone(lower, wrist, g * radii[2], g * radii[3], "left_elbow", regions[1], k=0.5 * k, both=True)


def _shoulders(s: Sculptor, radius: float, *, inset: float, region: str, k: float) -> None:
    """A bar across the top of the chest, which the collar bones carry."""
    inner, outer = s.at("left_clavicle"), s.at("left_shoulder", (-inset, 0.0, 0.0))
    s.cone(inner, outer, radius, radius, "left_clavicle", region, k=k, both=True)


def _hand(s: Sculptor, size: float, region: str, *, fingers: float = 1.0) -> None:
    """A palm, four fingers and a thumb, flat towards the thigh."""
    wrist, tip = s.at("left_wrist"), s.at("left_hand_tip")
    along = (tip - wrist) / np.linalg.norm(tip - wrist)
    across = np.cross(along, np.cross([0.0, 0.0, 1.0], along))
    across /= np.linalg.norm(across)  # From the little finger to the thumb.
    palm = wrist + 0.30 * (tip - wrist)
    g = size * s.girth.legs
    s.cone(
        wrist + 0.12 * (tip - wrist),
        palm + 0.16 * (tip - wrist),
        0.028 * g,
        0.034 * g,
        "left_wrist",
        region,
        flat=(1.25, 0.62),
        side=across,
        k=0.012 * g,
        both=True,
    )
    reach = float(np.linalg.norm(tip - wrist))
    for i, offset in enumerate((-0.032, -0.0105, 0.0105, 0.032)):
        start = palm + across * offset * g + along * 0.02 * g
        end = wrist + along * (reach * (0.96 - 0.07 * abs(i - 1.8))) + across * 1.15 * offset * g
        s.cone(start, end, 0.0125 * g * fingers, 0.0105 * g * fingers, "left_wrist", region, k=0.006 * g, both=True)
    thumb = palm + across * 0.030 * g - along * 0.02 * g
    s.cone(
        thumb,
        thumb + (0.6 * along + 0.8 * across) * 0.048 * g,
        0.016 * g,
        0.0115 * g,
        "left_wrist",
        region,
        k=0.01 * g,
        both=True,
    )


def _shoes(s: Sculptor, width: float, height: float, region: str, sole: str) -> None:
    """A shoe from heel to toe with a sole under it; the toes bend."""
    ankle, toe, tip = s.at("left_ankle"), s.at("left_toe"), s.at("left_toe_tip")
    g = s.girth.legs
    heel = np.array([ankle[0], 0.55 * height, ankle[2] - 0.3 * width])
    ball = np.array([toe[0], 0.55 * height, toe[2]])
    s.cone(
        heel,
        ball,
        0.80 * g * width,
        g * width,
        "left_ankle",
        region,
        flat=(1.0, 0.8 * height / width),
        k=0.4 * height,
        both=True,
    )
    s.cone(
        ball,
        (tip[0], 0.5 * height, tip[2]),
        g * width,
        0.85 * g * width,
        "left_toe",
        region,
        flat=(1.0, 0.72 * height / width),
        k=0.2 * height,
        both=True,
    )
    s.cone(
        (ankle[0], 0.3 * height, heel[2]),
        (toe[0], 0.3 * height, toe[2]),
        0.90 * g * width,
        1.08 * g * width,
        "left_ankle",
        sole,
        flat=(1.0, 0.34 * height / width),
        k=0.0,
        both=True,
    )
    s.cone(
        (toe[0], 0.3 * height, toe[2]),
        (tip[0], 0.3 * height, tip[2] + 0.1 * width),
        1.08 * g * width,
        0.92 * g * width,
        "left_toe",
        sole,
        flat=(1.0, 0.34 * height / width),
        k=0.0,
        both=True,
    )


def _face(s: Sculptor, *, eye: float, nose: float, width: float = 1.0) -> None:
    """Skull, jaw, nose, ears, brows and eyes, in head heights."""
    s.head_ball((0, 0.57, 0.08), (0.385 * width, 0.46, 0.46), "skin", k=0.1)
    s.head_ball((0, 0.26, 0.17), (0.27 * width, 0.28, 0.29), "skin", k=0.16)
    s.head_cone((0, 0.50, 0.49), (0, 0.36, 0.50 + 0.10 * nose), 0.045, 0.066 * (0.5 + 0.5 * nose), "skin", k=0.05)
    s.head_cone((0.04, 0.345, 0.50), (0.055, 0.345, 0.49), 0.04, 0.03, "skin", k=0.03, both=True)
    s.head_ball((0.385 * width, 0.45, 0.03), (0.045, 0.13, 0.085), "skin", k=0.03, both=True)
    s.head_cone((-0.085, 0.20, 0.43), (0.085, 0.20, 0.43), 0.036, 0.036, "lips", k=0.03)
    s.eyes(0.155 * width, 0.49, 0.415, eye, look=(0.12, 0.0, 1.0))
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
    _shoulders(s, 0.068, inset=0.03, region="shirt", k=0.06)
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
    _shoes(s, 0.046, 0.062, "shoe", "sole")
    _arms(s, [0.060, 0.046, 0.043, 0.030], ["sleeve", "skin"])
    _hand(s, 1.05, "skin")
    _face(s, eye=0.072, nose=1.0)
    s.head_ball((0, 0.70, -0.03), (0.425, 0.42, 0.475), "hair", k=0.01)
    s.head_cone((0, 0.62, -0.22), (0, 0.30, -0.26), 0.29, 0.20, "hair", k=0.02)
    s.head_cone((-0.16, 0.90, 0.34), (0.20, 0.93, 0.32), 0.13, 0.11, "hair", k=0.08)


def paint_human(c: Canvas) -> None:
    """Cloth keeps to its hems; cheeks are warm."""
    _dress(c, sleeve=0.62, collar=True)
    belt = np.abs(c.y - c.sculptor.at("pelvis")[1] - 0.035)
    c.brush(c.region("shirt", "jeans") * smooth(-belt, -0.022, -0.014) * (1 - c.moved_by("shoulder")), "belt")
    _blush(c)
    c.eyes(rim=(0.97, 0.96, 0.95), ring=0.55, pupil=0.27)


def _dress(c: Canvas, *, sleeve: float, collar: bool) -> None:
    """Bare forearms below the sleeves, trousers below the waist."""
    s = c.sculptor
    upper, lower = s.at("left_shoulder"), s.at("left_elbow")
    arm = lower - upper
    mirrored = np.stack([np.abs(c.x), c.y, c.z], 1)
    along = (mirrored - upper) @ arm / (arm @ arm)
    c.brush(c.region("sleeve") * smooth(along, sleeve, sleeve + 0.04), "skin")
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
    _shoulders(s, 0.044, inset=0.02, region="shirt", k=0.04)
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
    _shoes(s, 0.037, 0.052, "shoe", "sole")
    _arms(s, [0.043, 0.034, 0.031, 0.025], ["sleeve", "skin"], k=0.015)
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
    _hand(s, 0.74, "skin", fingers=1.1)
    _face(s, eye=0.090, nose=0.45, width=1.12)
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
    c.eyes(rim=(0.97, 0.96, 0.95), ring=0.58, pupil=0.30)


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
    _shoulders(s, 0.105, inset=0.04, region="suit", k=0.06)
    hip, knee, ankle = (s.at(f"left_{part}") for part in ("hip", "knee", "ankle"))
    s.cone(hip, knee, 0.125 * g, 0.098 * g, "left_hip", "suit", k=0.04, both=True)
    s.cone(knee, ankle, 0.102 * g, 0.090 * g, "left_knee", "suit", k=0.03, both=True)
    _arms(s, [0.092, 0.078, 0.078, 0.064], ["suit", "suit"], k=0.04)
    for a, b, t, radius in (
        ("left_hip", "left_knee", 0.50, 0.128),
        ("left_knee", "left_ankle", 0.45, 0.112),
        ("left_shoulder", "left_elbow", 0.50, 0.098),
    ):
        point = s.at(a) + t * (s.at(b) - s.at(a))
        _band(s, point, s.at(b) - s.at(a), radius * g, 0.030, a, "stripe" if "shoulder" in a else "fold")
    _band(s, s.at("left_wrist"), s.at("left_hand_tip") - s.at("left_wrist"), 0.078 * g, 0.022, "left_elbow", "ring")
    _hand(s, 1.45, "glove", fingers=1.35)
    _shoes(s, 0.075, 0.105, "boot", "sole")
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
