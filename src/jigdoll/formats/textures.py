"""Texture files beside a model: found without leaving its folder, decoded within bounds, sampled at the vertices."""

import io
import os
import warnings
from pathlib import Path, PurePosixPath

import numpy as np

from jigdoll.errors import FileFormatError, RepairWarning
from jigdoll.formats.files import inside_folder, read_limited
from jigdoll.formats.gltf.primitives import linear_to_srgb, sample, srgb_to_linear

MAX_FILE = 256 * 1024**2
MAX_PIXELS = 8192 * 8192


def decode_image(data: bytes) -> np.ndarray:
    """An image file as RGBA bytes [height width 4], refused if it is too large before it is unpacked."""
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's own size warning: the check below is ours
            with Image.open(io.BytesIO(data), formats=("PNG", "JPEG", "WEBP", "BMP", "TGA", "TIFF")) as image:
                if image.width * image.height > MAX_PIXELS:
                    raise FileFormatError(f"an image of {image.width} x {image.height} pixels is too large; shrink it")
                return np.asarray(image.convert("RGBA")).copy()
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        raise FileFormatError(f"the image cannot be decoded ({error}); save it as PNG") from error


def find_texture(model: Path, name: str) -> np.ndarray | None:
    """The image that a model names, or None and a warning; only the model's own folder is looked at."""
    plain = name.strip().strip('"').replace("\\", "/")
    beside = PurePosixPath(plain).name
    candidates = [plain, beside] if plain != beside else [plain]
    reason = "it is not there"
    for candidate in candidates:
        if not candidate or os.path.isabs(candidate):
            continue
        try:
            path = inside_folder(model.parent, candidate, of=model)
            if path.is_file():
                return decode_image(read_limited(path, MAX_FILE))
        except (FileFormatError, OSError, ValueError) as error:
            reason = str(error)
    warnings.warn(f"{model}: the texture {beside[:80]!r} was left out ({reason})", RepairWarning, stacklevel=2)
    return None


def vertex_colors(
    count: int,
    faces: np.ndarray,
    face_materials: np.ndarray,
    looks: list[tuple[tuple[float, float, float, float], np.ndarray | None]],
    uvs: np.ndarray | None,
) -> np.ndarray:
    """Base colour per vertex, sRGB in 0..1: each material's factor (linear) times its texture at the vertex."""
    owner = np.zeros(count, np.int64)
    owner[faces.reshape(-1)] = np.repeat(face_materials, 3)
    factors = np.array([color[:3] for color, _ in looks]).reshape(-1, 3)
    linear = factors[owner]
    for index, (_, texture) in enumerate(looks):
        mine = owner == index
        if texture is not None and uvs is not None and mine.any():
            linear[mine] *= srgb_to_linear(sample(texture, uvs[mine])[:, :3])
    return linear_to_srgb(linear)
