"""Video files, read back with other libraries."""

import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from jigdoll.errors import FileFormatError
from jigdoll.formats import video


def moving_square(frames: int = 12, height: int = 48, width: int = 64) -> torch.Tensor:
    """A red square that moves to the right over a blue ground, one pixel a frame."""
    out = torch.zeros(frames, height, width, 3)
    out[..., 2] = 0.6
    for frame in range(frames):
        out[frame, 10:30, 5 + frame : 25 + frame] = torch.tensor([0.9, 0.1, 0.1])
    return out


def read_mp4(path: Path, height: int, width: int) -> tuple[np.ndarray, str]:
    """The frames as ffmpeg decodes them, and what it says about the file."""
    from imageio_ffmpeg import get_ffmpeg_exe

    command = [get_ffmpeg_exe(), "-hide_banner", "-i", str(path), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    done = subprocess.run(command, capture_output=True, check=True, timeout=60)
    return np.frombuffer(done.stdout, np.uint8).reshape(-1, height, width, 3) / 255.0, done.stderr.decode()


def test_mp4_is_h264_and_shows_what_was_written(tmp_path: Path) -> None:
    frames = moving_square()
    seen, about = read_mp4(video.write(tmp_path / "clip.mp4", frames, fps=12.0), 48, 64)
    assert "Video: h264" in about
    assert "yuv420p" in about
    assert "12 fps" in about
    assert "64x48" in about
    assert len(seen) == 12
    assert np.abs(seen - frames.numpy()).mean() < 0.02


def test_odd_sizes_are_padded_to_even_ones(tmp_path: Path) -> None:
    seen, about = read_mp4(video.write(tmp_path / "clip.mp4", moving_square(3, 47, 63)), 48, 64)
    assert "64x48" in about
    assert len(seen) == 3


@pytest.mark.parametrize("suffix", [".gif", ".webp"])
def test_animations_have_all_frames_and_the_right_length(tmp_path: Path, suffix: str) -> None:
    frames = moving_square()
    path = video.write(tmp_path / f"clip{suffix}", frames, fps=24.0)
    with Image.open(path) as image:
        assert image.n_frames == 12
        assert image.info["loop"] == 0
        spent = 0
        for i in range(12):
            image.seek(i)
            image.load()
            spent += image.info["duration"]
            assert np.abs(np.asarray(image.convert("RGB")) / 255.0 - frames[i].numpy()).mean() < 0.03
    assert spent == pytest.approx(500, abs=5)  # 12 frames at 24 a second, although GIF counts in 10 ms


def test_bytes_and_floats_write_the_same(tmp_path: Path) -> None:
    frames = moving_square()
    as_bytes = (frames * 255).round().to(torch.uint8)
    one = video.write(tmp_path / "a.webp", frames).read_bytes()
    assert one == video.write(tmp_path / "b.webp", as_bytes).read_bytes()


def test_a_picture_comes_back_as_it_was(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (7, 5, 3), dtype=np.uint8)
    with Image.open(video.write_picture(tmp_path / "picture.png", pixels)) as image:
        np.testing.assert_array_equal(np.asarray(image), pixels)


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    frames = moving_square(2)
    with pytest.raises(FileFormatError, match=r"\.mp4, \.gif or \.webp"):
        video.write(tmp_path / "clip.avi", frames)
    with pytest.raises(FileFormatError, match="no frames"):
        video.write(tmp_path / "clip.mp4", frames[:0])
    with pytest.raises(FileFormatError, match="NaN"):
        video.write(tmp_path / "clip.mp4", frames * torch.nan)
    with pytest.raises(FileFormatError, match="0 to 51"):
        video.write(tmp_path / "clip.mp4", frames, quality=999)
    assert list(tmp_path.iterdir()) == []
