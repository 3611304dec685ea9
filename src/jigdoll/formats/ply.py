"""Splat PLY in the layout of the original 3D Gaussian splatting, which most viewers read.

Per splat, all float32, little-endian: x y z, nx ny nz (zero), f_dc_0..2, f_rest_* (channel by channel), opacity as a
logit, scale_0..2 as logarithms, rot_0..3 wxyz. Skinning weights follow as `joint_k` (int32) and `weight_k` columns on
request; viewers skip columns that they do not know.
"""

import os
import re
import warnings
from pathlib import Path

import numpy as np
import torch

from jigdoll.errors import FileFormatError, RepairWarning
from jigdoll.formats.files import read_limited, write_bytes
from jigdoll.types import SkinnedGaussians, Weights

MAX_BYTES = 4 * 1024**3
MAX_SPLATS = 50_000_000
MAX_HEADER = 64 * 1024
SH_DC = 0.28209479177387814
"""The constant spherical harmonic: colour = 0.5 + SH_DC * f_dc."""

_TYPES = {
    **dict.fromkeys(("char", "int8"), "i1"),
    **dict.fromkeys(("uchar", "uint8"), "u1"),
    **dict.fromkeys(("short", "int16"), "<i2"),
    **dict.fromkeys(("ushort", "uint16"), "<u2"),
    **dict.fromkeys(("int", "int32"), "<i4"),
    **dict.fromkeys(("uint", "uint32"), "<u4"),
    **dict.fromkeys(("float", "float32"), "<f4"),
    **dict.fromkeys(("double", "float64"), "<f8"),
}


def write(path: str | os.PathLike[str], splats: SkinnedGaussians, *, weights: bool = False) -> Path:
    """Write splats at rest; with `weights`, the joints that each one follows go into extra columns."""
    colors = splats.colors.detach().double().cpu().numpy()
    bands = (colors - 0.5)[:, None] / SH_DC if colors.ndim == 2 else colors
    rest = bands[:, 1:].transpose(0, 2, 1).reshape(len(bands), -1)  # channel by channel
    opacity = splats.opacities.detach().double().cpu().clamp(1e-6, 1 - 1e-6)
    columns: dict[str, np.ndarray] = {}
    _put(columns, ["x", "y", "z"], splats.means)
    _put(columns, ["nx", "ny", "nz"], torch.zeros(len(bands), 3))
    _put(columns, [f"f_dc_{i}" for i in range(3)], torch.from_numpy(bands[:, 0]))
    _put(columns, [f"f_rest_{i}" for i in range(rest.shape[1])], torch.from_numpy(rest))
    _put(columns, ["opacity"], torch.logit(opacity)[:, None])
    _put(columns, [f"scale_{i}" for i in range(3)], splats.scales.double().clamp_min(1e-12).log())
    _put(columns, [f"rot_{i}" for i in range(4)], torch.nn.functional.normalize(splats.quats, dim=-1))
    for name, column in columns.items():
        if not np.isfinite(column).all():
            raise FileFormatError(f"{path}: {name} of some splats is NaN or infinite; nothing was written")
    if weights:
        for k in range(splats.weights.joints.shape[1]):
            columns[f"joint_{k}"] = splats.weights.joints[:, k].cpu().numpy().astype("<i4")
            columns[f"weight_{k}"] = splats.weights.values[:, k].detach().cpu().numpy().astype("<f4")
    table = np.empty(len(bands), dtype=[(name, column.dtype.str) for name, column in columns.items()])
    for name, column in columns.items():
        table[name] = column
    kind = {"<f4": "float", "<i4": "int"}
    properties = "".join(f"property {kind[column.dtype.str]} {name}\n" for name, column in columns.items())
    header = f"ply\nformat binary_little_endian 1.0\nelement vertex {len(bands)}\n{properties}end_header\n"
    return write_bytes(path, header.encode() + table.tobytes())


def read(path: str | os.PathLike[str]) -> SkinnedGaussians:
    """Read splats; without weight columns every splat follows joint 0."""
    path = Path(path)
    data = read_limited(path, MAX_BYTES)
    count, dtype, start = _parse_header(path, data)
    if count * dtype.itemsize > len(data) - start:
        there = (len(data) - start) // dtype.itemsize
        raise FileFormatError(f"{path}: {count} splats promised, {there} are there; the file is cut off")
    table = np.frombuffer(data, dtype, count, start)
    means = _take(path, table, ["x", "y", "z"])
    bands = _bands(path, table)
    opacity = torch.sigmoid(_take(path, table, ["opacity"])[:, 0])
    scales = _take(path, table, [f"scale_{i}" for i in range(3)]).clamp(-60, 30).exp()
    quats = _take(path, table, [f"rot_{i}" for i in range(4)])
    norms = quats.norm(dim=-1, keepdim=True)
    if bool((norms < 1e-9).any()):
        warnings.warn(f"{path}: splats with a zero rotation are not turned", RepairWarning, stacklevel=2)
        quats = torch.where(norms < 1e-9, quats.new_tensor([1.0, 0, 0, 0]), quats)
    colors = (0.5 + SH_DC * bands[:, 0]).clamp(0, 1) if bands.shape[1] == 1 else bands
    quats = torch.nn.functional.normalize(quats, dim=-1)
    return SkinnedGaussians(means, quats, scales, opacity, colors, _read_weights(path, table))


def _put(columns: dict[str, np.ndarray], names: list[str], values: torch.Tensor) -> None:
    array = values.detach().cpu().numpy().astype("<f4")
    columns.update({name: array[:, i] for i, name in enumerate(names)})


def _parse_header(path: Path, data: bytes) -> tuple[int, np.dtype, int]:
    """How many splats, the layout of one, and where they begin."""
    match = re.search(rb"end_header\r?\n", data[:MAX_HEADER])
    if not data.startswith(b"ply") or match is None:
        raise FileFormatError(f"{path}: no PLY header at the beginning; this is no PLY file")
    lines = data[: match.start()].decode("latin-1").splitlines()
    if not any(line.split() == ["format", "binary_little_endian", "1.0"] for line in lines):
        raise FileFormatError(f"{path}: only binary little-endian PLY is read; convert the file")
    count, fields = -1, []
    for number, line in enumerate(lines, 1):
        words = line.split()
        if words[:1] == ["element"]:
            if count >= 0:
                break  # what follows the vertices is of no use here
            if len(words) != 3 or words[1] != "vertex" or not re.fullmatch(r"\d{1,10}", words[2]):
                raise FileFormatError(f"{path}, line {number}: {line[:60]!r}; the first element must be the vertices")
            count = int(words[2])
        elif words[:1] == ["property"]:
            if len(words) != 3 or words[1] not in _TYPES or count < 0:
                raise FileFormatError(f"{path}, line {number}: {line[:60]!r} is no property of a splat")
            fields.append((words[2], _TYPES[words[1]]))
    if not 1 <= count <= MAX_SPLATS or not 1 <= len(fields) <= 1024:
        raise FileFormatError(f"{path}: {count} splats of {len(fields)} properties; the file is empty or damaged")
    if len({name for name, _ in fields}) != len(fields):
        raise FileFormatError(f"{path}: a property is named twice; the file is damaged")
    return count, np.dtype(fields), match.end()


def _take(path: Path, table: np.ndarray, names: list[str]) -> torch.Tensor:
    missing = [name for name in names if name not in (table.dtype.names or ())]
    if missing:
        raise FileFormatError(f"{path}: no property {missing[0]!r}; this PLY holds no Gaussian splats")
    with np.errstate(invalid="ignore"):  # signalling NaNs
        out = np.stack([table[name].astype(np.float64) for name in names], 1)
    if not (np.abs(out) < 1e9).all():
        raise FileFormatError(f"{path}: {names[0]} of some splats is NaN, infinite or absurd; the file is damaged")
    return torch.from_numpy(out).float()


def _bands(path: Path, table: np.ndarray) -> torch.Tensor:
    """Spherical harmonics coefficients [splats bands 3]."""
    first = _take(path, table, [f"f_dc_{i}" for i in range(3)])[:, None]
    more = sum(1 for name in table.dtype.names or () if re.fullmatch(r"f_rest_\d+", name))
    if more not in (0, 9, 24, 45, 72):
        raise FileFormatError(f"{path}: {more} f_rest columns are no whole number of harmonics; the file is damaged")
    if more == 0:
        return first
    rest = _take(path, table, [f"f_rest_{i}" for i in range(more)]).reshape(len(table), 3, -1).transpose(1, 2)
    return torch.cat([first, rest], 1)


def _read_weights(path: Path, table: np.ndarray) -> Weights:
    names = table.dtype.names or ()
    influences = 0
    while f"joint_{influences}" in names and f"weight_{influences}" in names:
        influences += 1
    if influences == 0:
        return Weights(torch.zeros(len(table), 1, dtype=torch.long), torch.ones(len(table), 1))
    joints = _take(path, table, [f"joint_{k}" for k in range(influences)]).long()
    values = _take(path, table, [f"weight_{k}" for k in range(influences)])
    total = values.sum(1, keepdim=True)
    if bool((joints < 0).any()) or bool((values < 0).any()) or bool((total <= 0).any()):
        raise FileFormatError(f"{path}: joints and weights must be positive; the file is damaged")
    return Weights(joints, values / total)
