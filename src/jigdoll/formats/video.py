"""Frames to files that play anywhere: H.264 MP4, GIF, WebP; and single pictures as PNG."""

import math
import os
import subprocess
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from jigdoll.errors import FileFormatError
from jigdoll.formats.files import atomic_write
from jigdoll.formats.table import FILMS

Frames = Float[Tensor, "frames height width 3"] | UInt8[Tensor, "frames height width 3"]


def write(path: str | os.PathLike[str], frames: Frames, *, fps: float = 24.0, quality: int = 20) -> Path:
    """Write frames (bytes, or floats in 0..1) as .mp4, .gif or .webp, by suffix.

    `quality` is x264's constant rate factor for MP4: 0 is lossless, 20 is hard to tell from the original.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in FILMS:
        raise FileFormatError(f"{path}: video is written as .mp4, .gif or .webp, not {suffix or 'without a suffix'!r}")
    if not 0 < fps <= 1000 or not math.isfinite(fps):
        raise FileFormatError(f"{path}: {fps} frames a second cannot be played; give something up to 1000")
    if not 0 <= quality <= 51:
        raise FileFormatError(f"{path}: quality goes from 0 to 51, not {quality}")
    pixels = _to_bytes(path, frames)
    with atomic_write(path) as temporary:
        if suffix == ".mp4":
            _write_mp4(path, temporary, pixels, fps, quality)
        else:
            _write_animation(temporary, pixels, fps, suffix[1:])
    return path


def write_picture(path: str | os.PathLike[str], pixels: UInt8[np.ndarray, "height width 3"]) -> Path:
    """Write one picture as PNG."""
    from PIL import Image

    with atomic_write(path) as temporary:
        Image.fromarray(pixels).save(temporary, format="PNG")
    return Path(path)


def _to_bytes(path: Path, frames: Frames) -> np.ndarray:
    if frames.shape[0] == 0 or frames.shape[1] == 0 or frames.shape[2] == 0:
        raise FileFormatError(f"{path}: there are no frames to write")
    if frames.dtype == torch.uint8:
        return frames.detach().cpu().numpy()
    if not bool(torch.isfinite(frames).all()):
        raise FileFormatError(f"{path}: some pixels are NaN or infinite; nothing was written")
    return (frames.detach().clamp(0, 1) * 255).round().to(torch.uint8).cpu().numpy()


def _write_mp4(path: Path, temporary: Path, pixels: np.ndarray, fps: float, quality: int) -> None:
    """Pipe raw frames through the ffmpeg binary that imageio-ffmpeg carries."""
    import imageio_ffmpeg

    # Players expect 4:2:0 chroma, which needs even sizes: repeat the last row or column.
    pixels = np.pad(pixels, ((0, 0), (0, pixels.shape[1] % 2), (0, pixels.shape[2] % 2), (0, 0)), mode="edge")
    height, width = pixels.shape[1:3]
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24"]
    command += ["-s", f"{width}x{height}", "-r", f"{fps:g}", "-i", "-", "-an", "-c:v", "libx264", "-pix_fmt", "yuv420p"]
    command += ["-vf", "scale=out_color_matrix=bt709:out_range=tv", "-colorspace", "bt709", "-color_primaries", "bt709"]
    command += ["-color_trc", "bt709", "-crf", str(quality), "-movflags", "+faststart", "-f", "mp4", str(temporary)]
    try:
        done = subprocess.run(command, input=pixels.tobytes(), capture_output=True, check=False, timeout=3600)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise FileFormatError(f"{path}: the video encoder could not run ({error}); write a .gif or .webp") from error
    if done.returncode:
        reason = done.stderr.decode("utf-8", "replace").strip()[-300:]
        raise FileFormatError(f"{path}: the video encoder failed ({reason}); write a .gif or .webp")


def _write_animation(temporary: Path, pixels: np.ndarray, fps: float, kind: str) -> None:
    """GIF and WebP through Pillow; they store whole milliseconds (GIF: hundredths), so rounding is spread evenly."""
    from PIL import Image

    unit = 10 if kind == "gif" else 1
    stamps = np.round(np.arange(len(pixels) + 1) * 1000 / fps / unit) * unit
    durations = np.maximum(np.diff(stamps), unit).astype(int).tolist()
    images = [Image.fromarray(frame) for frame in pixels]
    if kind == "gif":
        # One palette for all frames, from a few of them side by side: per-frame palettes flicker.
        sample = pixels[np.linspace(0, len(pixels) - 1, min(8, len(pixels))).astype(int)]
        palette = Image.fromarray(np.concatenate(list(sample), 1)).quantize(256, method=Image.Quantize.MEDIANCUT)
        images = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images]
    options = {"quality": 85, "method": 2} if kind == "webp" else {"optimize": False}
    images[0].save(
        temporary, format=kind.upper(), save_all=True, append_images=images[1:], duration=durations, loop=0, **options
    )
