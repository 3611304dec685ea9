"""Does somebody who never saw our rigs read our people as we meant them? An outside pose estimator looks at the films.

    python benchmarks/outside_pose.py --corpus FOLDER --wheel mediapipe-0.10.21-*.whl [--quick] [--sheet FILE]

The estimator is BlazePose (Apache-2.0). Its weights are in PyPI's wheels of mediapipe 0.10.5 to 0.10.21 (`pip download
--no-deps mediapipe==0.10.21`; from 0.10.30 on they are not); the wheel is read, not installed. It runs on PyPI's
`ai-edge-litert`. Where one of the two is absent the benchmark says so and measures nothing.

Each frame is shown to the landmark network in a square around the body (where the body is, is ours: no detector). Its
shoulders, elbows, wrists, hips, knees and ankles are held against the rig's joints in the picture: as named, and with
left and right exchanged. A frame agrees where the names fit better than the exchange; frames in which left and right
of the rig fall together (by less than a twentieth of its height) tell nothing and are counted apart.
"""

import importlib.util
import json as json_module
import warnings
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tyro
from PIL import Image
from rich.console import Console

import jigdoll
from jigdoll.errors import JigdollError
from jigdoll.formats import video
from jigdoll.kinematics import forward, skin_transforms
from jigdoll.motion import resample
from jigdoll.render.camera import follow
from jigdoll.render.draw import ClipStyle, contact_sheet, draw_clip
from jigdoll.rig.anatomy import anatomy_of
from jigdoll.rig.reparent import reparent, to_reparented
from jigdoll.skin.deform import deform
from jigdoll.types import Camera, Motion, RiggedAsset

MODEL = "mediapipe/modules/pose_landmark/pose_landmark_full.tflite"
LANDMARKS = {
    "left": {"arm": (11, 13, 15), "leg": (23, 25, 27)},
    "right": {"arm": (12, 14, 16), "leg": (24, 26, 28)},
}
"""BlazePose's numbers of shoulder, elbow, wrist and hip, knee, ankle."""
SIZE, CROP = 320, 256
TOGETHER = 0.05
PEOPLE = (
    ("quaternius/modular_women/Casual.glb", "a woman walks"),
    ("quaternius/modular_men/Farmer.glb", "a man runs"),
    ("quaternius/modular_men/Punk.glb", "a man waves"),
    ("mesh2motion/human-male.glb", "a man dances"),
    ("quaternius/modular_women/Casual.glb", "a woman kicks"),
    ("quaternius/modular_men/Farmer.glb", "a man punches"),
    ("mesh2motion/human-male.glb", "a man jumps"),
    ("quaternius/modular_men/Punk.glb", "a man throws a ball"),
    ("rocketbox/people/Male_Adult_14.fbx", "a man walks"),
    ("quaternius/modular_women/Witch.glb", "a woman sits down"),
)
VIEWS = (25.0, -35.0)
"""Where the camera stands, from the front [degrees]."""


@dataclass(frozen=True)
class Options:
    """What to show, and to whom."""

    corpus: Path
    wheel: Path | None = None
    """A wheel of mediapipe that holds the weights."""
    quick: bool = False
    json: Path | None = None
    sheet: Path | None = None
    """Pictures with the estimator's left in red and its right in blue."""


def missing(options: Options) -> str | None:
    """Why nothing can be measured; None where everything is here."""
    if options.wheel is None or not options.wheel.is_file():
        return "no wheel of mediapipe (pip download --no-deps mediapipe==0.10.21, then --wheel FILE)"
    if importlib.util.find_spec("ai_edge_litert") is None:
        return "ai-edge-litert is not installed (pip install ai-edge-litert)"
    with zipfile.ZipFile(options.wheel) as wheel:
        return None if MODEL in wheel.namelist() else f"{options.wheel.name} holds no {MODEL}; take 0.10.21"


class Estimator:
    """BlazePose's landmark network."""

    def __init__(self, wheel: Path) -> None:
        from ai_edge_litert.interpreter import Interpreter  # pyright: ignore[reportMissingImports]

        with zipfile.ZipFile(wheel) as opened:
            self.net = Interpreter(model_content=opened.read(MODEL), num_threads=1)
        self.net.allocate_tensors()
        self.output = next(o["index"] for o in self.net.get_output_details() if o["shape"][-1] == 195)

    def __call__(self, crop: np.ndarray) -> np.ndarray:
        """Places of 33 points in a square picture of bytes, 0 to 1."""
        values = np.asarray(Image.fromarray(crop).resize((CROP, CROP)), np.float32)[None] / 255.0
        self.net.set_tensor(self.net.get_input_details()[0]["index"], values)
        self.net.invoke()
        return self.net.get_tensor(self.output).reshape(39, 5)[:33, :2] / CROP


def film(asset: RiggedAsset, motion: Motion, azimuth: float) -> tuple[np.ndarray, Camera]:
    """Pictures from nearly the front, and the camera."""
    shape = deform(asset.mesh.vertices, asset.weights, skin_transforms(asset.skeleton, motion.pose))
    camera = follow(
        shape, azimuth=torch.tensor([azimuth]), elevation=8.0, width=SIZE, height=SIZE, smoothing=1.0, margin=0.1
    )
    style = ClipStyle(width=SIZE, height=SIZE, samples=1)
    return (draw_clip(asset, motion, style=style, camera=camera)[0] * 255).byte().numpy(), camera


def joints_in_picture(asset: RiggedAsset, motion: Motion, camera: Camera) -> dict[str, dict[str, np.ndarray]]:
    """Where the limbs' joints are [pixels]: side and kind to `[frames 3 2]`."""
    work = reparent(asset)
    anatomy, inner = anatomy_of(work.asset), to_reparented(work, motion)
    P = forward(anatomy.skeleton, inner.pose)[..., :3, 3]
    T, K = camera.T_camera_world[0], camera.K[0]
    seen = torch.einsum("fab,fjb->fja", T[:, :3, :3], P) + T[:, None, :3, 3]
    flat = torch.einsum("fab,fjb->fja", K, seen)
    pixels = (flat[..., :2] / flat[..., 2:]).numpy()
    found: dict[str, dict[str, np.ndarray]] = {"left": {}, "right": {}}
    for parts in anatomy.parts:
        if parts.limb.side in found and parts.limb.kind in ("arm", "leg"):
            found[parts.limb.side][parts.limb.kind] = pixels[:, [parts.root, parts.middle, parts.end]]
    return found


def read_frame(estimator: Estimator, picture: np.ndarray, rig: dict[str, dict[str, np.ndarray]], i: int) -> dict:
    """What the estimator sees in a frame, against the rig: as named and exchanged [shares of the body's height]."""
    own = np.concatenate([rig[side][kind][i] for side in rig for kind in rig[side]])
    low, high = own.min(0), own.max(0)
    side = int(1.45 * (high - low).max()) + 1
    x, y = ((low + high) / 2 - [side / 2, 0.55 * side]).astype(int)  # the head is above the shoulders
    canvas = np.full((side, side, 3), 200, np.uint8)
    x0, y0, x1, y1 = max(x, 0), max(y, 0), min(x + side, SIZE), min(y + side, SIZE)
    canvas[y0 - y : y1 - y, x0 - x : x1 - x] = picture[y0:y1, x0:x1]
    points = estimator(canvas) * side + [x, y]
    same, swapped, apart = [], [], []
    for here, there in (("left", "right"), ("right", "left")):
        for kind in rig[here]:
            mine = points[list(LANDMARKS[here][kind])]
            same.append(np.linalg.norm(mine - rig[here][kind][i], axis=1))
            swapped.append(np.linalg.norm(mine - rig[there][kind][i], axis=1))
            apart.append(np.linalg.norm(rig[here][kind][i] - rig[there][kind][i], axis=1))
    height = float((high - low).max())
    return {
        "same": float(np.mean(same)) / height,
        "swapped": float(np.mean(swapped)) / height,
        "apart": float(np.mean(apart)) / height,
        "points": points,
    }


def measured(estimator: Estimator, file: Path, prompt: str) -> tuple[dict[str, Any], list[np.ndarray]]:
    """A sentence on a person, seen from two sides."""
    made = jigdoll.animate(file, prompt)
    short = resample(made.motion, 6.0)
    tells = agrees = together = 0
    errors, pictures = [], []
    for azimuth in VIEWS:
        shots, camera = film(made.asset, short, azimuth)
        rig = joints_in_picture(made.asset, short, camera)
        for i, picture in enumerate(shots):
            seen = read_frame(estimator, picture, rig, i)
            if seen["apart"] < TOGETHER:
                together += 1
                continue
            tells, agrees = tells + 1, agrees + (seen["same"] < seen["swapped"])
            errors.append(seen["same"])
            if i % 4 == 0:
                pictures.append(marked(picture, seen["points"]))
    row = {"case": f"{file.stem}: {prompt}", "frames": tells, "agree": agrees / max(tells, 1), "together": together}
    return row | {"off [heights]": float(np.median(errors)) if errors else float("nan")}, pictures[:10]


def marked(picture: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The picture with the estimator's left in red and its right in blue."""
    out = picture.copy()
    for side, color in (("left", (220, 40, 30)), ("right", (40, 80, 220))):
        for number in (*LANDMARKS[side]["arm"], *LANDMARKS[side]["leg"]):
            x, y = np.clip(points[number].astype(int), 2, SIZE - 3)
            out[y - 2 : y + 3, x - 2 : x + 3] = color
    return out


def main(options: Options) -> None:
    """Print a row per sentence and the share over all frames."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    console = Console(width=160)
    if (reason := missing(options)) is not None:
        console.print(f"skipped: {reason}", markup=False)
        return
    assert options.wheel is not None
    estimator, rows, sheets = Estimator(options.wheel), [], []
    for file, prompt in PEOPLE[:: 5 if options.quick else 1]:
        try:
            row, pictures = measured(estimator, options.corpus / "characters" / file, prompt)
        except JigdollError as error:
            console.print(f"{file}: {error}", markup=False)
            continue
        rows.append(row)
        sheets += pictures + [np.full((SIZE, SIZE, 3), 255, np.uint8)] * (10 - len(pictures))
        console.print(row, markup=False)
    frames = sum(row["frames"] for row in rows)
    right = sum(row["agree"] * row["frames"] for row in rows) / max(frames, 1)
    console.print(f"left and right agree in {right:.1%} of {frames} frames of {len(rows)} clips")
    if options.sheet:
        video.write_picture(options.sheet, contact_sheet(sheets, 10))
    if options.json:
        options.json.write_text(json_module.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main(tyro.cli(Options))
