"""Pictures and clips of characters, ready to look at."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from jigdoll.render.camera import fit_orbit
from jigdoll.render.mesh import Look, render_mesh
from jigdoll.skin.deform import deform_mesh
from jigdoll.types import Pose, RiggedAsset

BACKGROUND = (0.93, 0.94, 0.96)


def picture_of(
    asset: RiggedAsset,
    pose: Pose | None = None,
    *,
    azimuth: float = 60.0,
    elevation: float = 12.0,
    size: int = 256,
    look: Look = "lit",
) -> UInt8[np.ndarray, "*batch size size 3"]:
    """The asset as triangles before a plain background, at rest or in a pose (or one picture per pose of a batch)."""
    vertices = asset.mesh.vertices if pose is None else deform_mesh(asset, pose)
    camera = fit_orbit(vertices.reshape(-1, 3), azimuth=azimuth, elevation=elevation, width=size, height=size)
    rgba = render_mesh(asset.mesh, camera, vertices=vertices, look=look).rgba
    return to_uint8(rgba[..., :3] + (1 - rgba[..., 3:]) * rgba.new_tensor(BACKGROUND))


def contact_sheet(
    images: Sequence[np.ndarray] | np.ndarray, columns: int, labels: Sequence[str] | None = None, *, gap: int = 2
) -> UInt8[np.ndarray, "height width 3"]:
    """Pictures in rows, in reading order, with a caption under each one on request."""
    from PIL import Image, ImageDraw

    pictures = [np.asarray(image)[..., :3] for image in images]
    if not pictures:
        return np.full((1, 1, 3), 255, np.uint8)
    pictures = [image if image.dtype == np.uint8 else to_uint8(torch.from_numpy(image)) for image in pictures]
    height, width = max(image.shape[0] for image in pictures), max(image.shape[1] for image in pictures)
    caption = 14 if labels else 0
    rows = -(-len(pictures) // columns)
    sheet = np.full((rows * (height + caption + gap) + gap, columns * (width + gap) + gap, 3), 255, np.uint8)
    canvas = Image.fromarray(sheet)
    pen = ImageDraw.Draw(canvas)
    for place, image in enumerate(pictures):
        x, y = gap + place % columns * (width + gap), gap + place // columns * (height + caption + gap)
        canvas.paste(Image.fromarray(np.ascontiguousarray(image)), (x, y))
        if labels and place < len(labels):
            pen.text((x + 2, y + height + 1), labels[place], fill=(0, 0, 0))
    return np.asarray(canvas)


def to_uint8(picture: Float[Tensor, "*shape"]) -> np.ndarray:
    """Values in 0..1 to bytes."""
    return (picture.detach().clamp(0, 1) * 255).round().to(torch.uint8).cpu().numpy()
