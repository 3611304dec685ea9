"""Pictures of stick figures: what the data set holds and what the network makes, before any body is put on."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from PIL import Image, ImageDraw
from torch import Tensor

from jigdoll.posespace.figure import Figure, Sticks, pelvis_heights, stack_figures, stick_turns
from jigdoll.posespace.layout import EXTRA, RATE
from jigdoll.rig.retarget.limb_motion import TRUNK

COLORS = {
    "trunk": (60, 60, 60), "neck": (150, 60, 150), "tail": (120, 90, 40), "leg": (200, 60, 50), "arm": (50, 90, 200),
    "wing": (40, 150, 90), "fin": (40, 150, 160),
}  # fmt: skip
_LEFT = 0.55
"""Left limbs are drawn darker by this factor."""


def stick_lines(
    sticks: Sticks, raw: Float[Tensor, "batch parts frames channels"]
) -> Float[ndarray, "batch parts frames points 3"]:
    """The joints of every part over time, over the ground from where the first frame stands [leg lengths]."""
    turns = stick_turns(raw)
    bones = (turns @ sticks.bones[:, :, None, :, :, None])[..., 0]
    line = torch.cat([torch.zeros_like(bones[..., :1, :]), bones.cumsum(-2)], -2)
    mirror = torch.stack([sticks.sign, torch.ones_like(sticks.sign), torch.ones_like(sticks.sign)], -1)
    line = (line + sticks.attach[:, :, None, None]) * mirror[:, :, None, None]
    chest_place = bones[:, :1, :, 1 : 1 + TRUNK].sum(-2)
    on_chest = sticks.on_chest[:, :, None, None]
    base = torch.where(on_chest[..., None], turns[:, :1, :, TRUNK], turns[:, :1, :, 0])
    line = line @ base.transpose(-1, -2) + torch.where(on_chest, chest_place, 0.0)[..., None, :]
    line = torch.where((sticks.kinds == 0)[:, :, None, None, None], _trunk(bones), line)
    root = raw[:, 0, :, EXTRA]
    heading = torch.cat([torch.zeros(len(raw), 1), root[:, :-1, 3].cumsum(1) / RATE], 1)
    c, s = heading.cos(), heading.sin()
    step = torch.stack(
        [c * root[..., 0] + s * root[..., 1], torch.zeros_like(c), c * root[..., 1] - s * root[..., 0]], -1
    )
    place = torch.cat([torch.zeros(len(raw), 1, 3), step[:, :-1].cumsum(1) / RATE], 1)
    place[..., 1] = pelvis_heights(sticks, root[..., 2])
    c, s = c[:, None, :, None], s[:, None, :, None]
    x, y, z = line.unbind(-1)
    line = torch.stack([c * x + s * z, y, c * z - s * x], -1) + place[:, None, :, None]
    return line.detach().numpy()


def _trunk(bones: Tensor) -> Tensor:
    own = bones[:, :1]
    line = torch.cat([torch.zeros_like(own[..., :1, :]), own.cumsum(-2)], -2)
    return line.expand(-1, bones.shape[1], -1, -1, -1)


def draw_sticks(
    target: Path,
    figures: Sequence[Figure],
    clips: Sequence[ndarray],
    titles: Sequence[str],
    *,
    pictures: int = 8,
    size: int = 110,
    azimuth: float = 0.9,
) -> Path:
    """One row per clip, some of its frames side by side, seen from the side and a little from ahead."""
    sheet = Image.new("RGB", (pictures * size, len(clips) * size), "white")
    pen = ImageDraw.Draw(sheet)
    for row, (figure, clip, title) in enumerate(zip(figures, clips, titles, strict=True)):
        sticks = stack_figures([figure])
        lines = stick_lines(sticks, torch.from_numpy(np.asarray(clip, np.float32))[None])[0]
        frames = np.linspace(0, lines.shape[1] - 1, pictures).round().astype(int)
        span = float(np.abs(lines[:, frames] - lines[:1, frames, :1]).max()) + 0.2
        for column, frame in enumerate(frames):
            centre = lines[0, frame, 0] * [1, 0, 1]
            _draw_pose(pen, figure, lines[:, frame] - centre, (column * size, row * size), size, span, azimuth)
        pen.text((3, row * size + 2), title, fill=(0, 0, 0))
    sheet.save(target)
    return target


def _draw_pose(
    pen: ImageDraw.ImageDraw,
    figure: Figure,
    lines: ndarray,
    corner: tuple[int, int],
    size: int,
    span: float,
    azimuth: float,
) -> None:
    scale = 0.5 * size / span
    c, s = np.cos(azimuth), np.sin(azimuth)
    ground = corner[1] + 0.8 * size
    pen.line([(corner[0], ground), (corner[0] + size, ground)], fill=(220, 220, 220))
    for i, kind in enumerate(figure.kinds):
        x = lines[i, :, 0] * c + lines[i, :, 2] * s
        points = [
            (corner[0] + size / 2 + scale * a, ground - scale * b) for a, b in zip(x, lines[i, :, 1], strict=True)
        ]
        dark = 1.0 if figure.mirrored[i] or i < len(figure) - len(figure.limbs) else _LEFT
        pen.line(points, fill=tuple(int(dark * v) for v in COLORS[kind]), width=2)
