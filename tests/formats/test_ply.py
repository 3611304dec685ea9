"""Splat PLY in both directions."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jigdoll.errors import FileFormatError
from jigdoll.formats import ply
from jigdoll.types import SkinnedGaussians, Weights


def random_splats(seed: int, count: int = 7, bands: int | None = None) -> SkinnedGaussians:
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator)

    colors = torch.rand(count, 3, generator=generator) if bands is None else normal(count, bands, 3)
    return SkinnedGaussians(
        means=normal(count, 3),
        quats=torch.nn.functional.normalize(normal(count, 4), dim=-1),
        scales=normal(count, 3).exp() * 0.01,
        opacities=torch.rand(count, generator=generator) * 0.98 + 0.01,
        colors=colors,
        weights=Weights.from_dense(torch.rand(count, 5, generator=generator), influences=3),
    )


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), bands=st.sampled_from([None, 4, 9, 16]), weights=st.booleans())
def test_splats_survive_the_round_trip(
    tmp_path_factory: pytest.TempPathFactory, seed: int, bands: int | None, weights: bool
) -> None:
    splats = random_splats(seed, bands=bands)
    path = ply.write(tmp_path_factory.mktemp("ply") / "splats.ply", splats, weights=weights)
    back = ply.read(path)
    for name in ("means", "quats", "opacities", "colors"):
        torch.testing.assert_close(getattr(back, name), getattr(splats, name), atol=2e-6, rtol=2e-6)
    torch.testing.assert_close(back.scales, splats.scales, atol=0, rtol=3e-6)
    if weights:
        torch.testing.assert_close(back.weights.dense(5), splats.weights.dense(5))
    else:
        assert back.weights.values.tolist() == [[1.0]] * 7


def test_the_columns_are_those_of_the_original_layout(tmp_path: Path) -> None:
    splats = random_splats(0, count=1, bands=16)
    data = ply.write(tmp_path / "splats.ply", splats).read_bytes()
    header, body = data.split(b"end_header\n")
    names = [line.split()[2].decode() for line in header.splitlines() if line.startswith(b"property float")]
    assert names[:9] == ["x", "y", "z", "nx", "ny", "nz", "f_dc_0", "f_dc_1", "f_dc_2"]
    assert names[9:54] == [f"f_rest_{i}" for i in range(45)]
    assert names[54:] == ["opacity", "scale_0", "scale_1", "scale_2", "rot_0", "rot_1", "rot_2", "rot_3"]
    row = dict(zip(names, np.frombuffer(body, "<f4"), strict=True))
    colors = splats.colors[0]
    # All red coefficients come first, then green, then blue.
    assert row["f_rest_0"] == pytest.approx(float(colors[1, 0]))
    assert row["f_rest_15"] == pytest.approx(float(colors[1, 1]))
    p = float(splats.opacities[0])
    assert row["opacity"] == pytest.approx(np.log(p / (1 - p)), rel=1e-5)
    assert row["scale_1"] == pytest.approx(np.log(float(splats.scales[0, 1])), rel=1e-5)


def test_plain_colours_become_the_constant_harmonic(tmp_path: Path) -> None:
    splats = random_splats(1, count=1)
    data = ply.write(tmp_path / "splats.ply", splats).read_bytes()
    red = np.frombuffer(data.split(b"end_header\n")[1], "<f4")[6]
    assert 0.5 + 0.28209479 * red == pytest.approx(float(splats.colors[0, 0]), abs=1e-6)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"element vertex 7", b"element vertex 8", "8 splats promised, 7 are there"),
        (b"element vertex 7", b"element vertex 999999999", "damaged"),
        (b"element vertex 7", b"element vertex -7", "line 3"),
        (b"element vertex 7", b"element face 7", "line 3"),
        (b"binary_little_endian", b"ascii", "binary little-endian"),
        (b"float opacity", b"float opacitx", "no property 'opacity'"),
        (b"float rot_0", b"list uchar int rot_0", "no property of a splat"),
        (b"float rot_0", b"float rot_1", "named twice"),
        (b"ply\n", b"plx\n", "no PLY"),
    ],
)
def test_damage_is_refused(tmp_path: Path, old: bytes, new: bytes, message: str) -> None:
    path = ply.write(tmp_path / "splats.ply", random_splats(2))
    path.write_bytes(path.read_bytes().replace(old, new, 1))
    with pytest.raises(FileFormatError, match=message):
        ply.read(path)


def test_nan_is_neither_written_nor_read(tmp_path: Path) -> None:
    splats = random_splats(3)
    path = ply.write(tmp_path / "splats.ply", splats)
    start = path.read_bytes().index(b"end_header\n") + len(b"end_header\n")
    data = bytearray(path.read_bytes())
    data[start : start + 4] = np.float32(np.nan).tobytes()
    path.write_bytes(data)
    with pytest.raises(FileFormatError, match="NaN"):
        ply.read(path)
    splats.means[0, 0] = torch.nan
    with pytest.raises(FileFormatError, match="NaN"):
        ply.write(tmp_path / "nan.ply", splats)
    assert not (tmp_path / "nan.ply").exists()
