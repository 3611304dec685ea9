"""Texture files beside a model: found without leaving its folder, decoded within bounds, sampled at the vertices."""

import io
import os
import warnings
from pathlib import Path, PurePosixPath

import numpy as np

from jigdoll.errors import FileFormatError, RepairWarning
from jigdoll.formats.files import inside_folder, read_limited
from jigdoll.math.colors import linear_to_srgb, srgb_to_linear

MAX_FILE = 256 * 1024**2
MAX_PIXELS = 8192 * 8192


def decode_image(data: bytes, *, max_pixels: int = MAX_PIXELS) -> np.ndarray:
    """An image file as RGBA bytes [height width 4], refused if it is too large before it is unpacked."""
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's own size warning: the check below is ours
            with Image.open(io.BytesIO(data), formats=("PNG", "JPEG", "WEBP", "BMP", "TGA", "TIFF")) as image:
                if image.width * image.height > max_pixels:
                    raise FileFormatError(f"an image of {image.width} x {image.height} pixels is too large; shrink it")
                return np.asarray(image.convert("RGBA")).copy()
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        raise FileFormatError(f"the image cannot be decoded ({error}); save it as PNG") from error


def encode_png(texture: np.ndarray) -> bytes:
    """RGBA bytes [height width 4] as a PNG file."""
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(texture).save(stream, "PNG")
    return stream.getvalue()


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


def sample(texture: np.ndarray, uvs: np.ndarray) -> np.ndarray:
    """Bilinear lookup with repeat, as floats in 0..1."""
    height, width = texture.shape[:2]
    x, y = uvs[:, 0] * width - 0.5, uvs[:, 1] * height - 0.5
    x0, y0 = np.floor(x).astype(np.int64), np.floor(y).astype(np.int64)
    fx, fy = (x - x0)[:, None], (y - y0)[:, None]

    def at(xi: np.ndarray, yi: np.ndarray) -> np.ndarray:
        return texture[yi % height, xi % width].astype(np.float64) / 255.0

    top = at(x0, y0) * (1 - fx) + at(x0 + 1, y0) * fx
    bottom = at(x0, y0 + 1) * (1 - fx) + at(x0 + 1, y0 + 1) * fx
    return top * (1 - fy) + bottom * fy


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
