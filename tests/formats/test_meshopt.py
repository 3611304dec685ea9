"""Meshopt streams: what the reference encoder packed comes out as it was, and damage is refused by name."""

import base64
import json
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from jigdoll.asset.load import read
from jigdoll.errors import FileFormatError, JigdollError, RepairWarning
from jigdoll.formats import gltf
from jigdoll.formats.gltf.document import Document, pack_glb, read_document
from jigdoll.formats.gltf.meshopt import attributes, sequence, triangles, unpack
from jigdoll.types import RiggedAsset

# Packed by meshoptimizer's own encoder (npm meshoptimizer 1.3, `encodeGltfBuffer`) from the formulas below.
GRID = (
    "4f4eEA4QDhAOEA4QDhAOEA7+HhAOEA4QDhAOEA4QDhAO/h4QDhAOEA4QDhAOEA4QDv4eEA4QDhAOEA4QDhAOEA7+HhAOEA4QDhAO"
    "EA4QDhAO/h4QDhAOEA4QDhAOEA4QDv4eEA4QDhAOEA4QDhAOEA7+HhAOEA4QDhAOEA4QDhAODxIPAg8CDwIPAg8CDwIPAgB2h1Zn"
    "eKmGZYlomAFpAAA="
)
SCATTERED = (
    "4f7//////////////////////////2D0Af+IA5wEsAX/nQnYB/UG/+EFlAu5A/+lApEBAv+WAaoCvgP/jwvmBfoG/9MHogmrBf+X"
    "BIMD7wH/WzjMAf/gAvQDiAX/xQmwB50H/9gJ9QThA//NArkBJf9uggKWA/+qBKMK0gb/+wf6CNMF/6ILqwOXAv+DARCkAf+4AswD"
    "gQsAdodWZ3iphmWJaJgBaQAA"
)
SEQUENCE = (
    "0QDBAagF+QnIDpkT2geLA8QBrxnkCrUPvgvvBgUMgQfQC6MP0grBGbIBnQPsB4cTtg7nCZYFcNEC2AipDfgR+wiqBCX0BMUJrhHf"
    "DI4ISuMB4AWxCoAP8wuiB9MC/AHNBpwL7Q+GC7cGIWC5B4gM6w4AAAAA"
)
ATTRIBUTES = (
    "oFUBKqqqqqqqqqqqqqqqqqqqqqqqAACqAgRERERERERERERERERERERERERERERERERERERERERERERERAAAAACqAgZmZmZmZmZm"
    "ZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZgAAAAD6AQACIiRERmZoiIqqrMzO7u8QEBAQEhISEhQUFBQWFhYWGBgYGBoaGhoc"
    "HBwcHh4eHiD//wAAICAgIiIiIiSpAQCKqu8EBARERGRmZmaGiIiIqKqqqsrMzMzs7u7u/v8QEBD//wAAEBAQEBIQEhKpAgAIiKoi"
    "IiJCQkJERERERGRkZGZmZmZmhoaGiIiIiIioAAAAAFUBMAPAD3Z1dnV2ADwA8HV2dXYDwA8AdXZ1djwA8AN1dnV2dcAPAAB2dXZV"
    "ATADwA92dXZ1dgA8APB1dnV2A8APAHV2dXY8APADdXZ1dnXADwAAdnV2VQEwA8APdnV2dXYAPADwdXZ1dgPADwB1dnV2PADwA3V2"
    "dXZ1wA8AAHZ1dgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAyMjIBQUF"
)
QUATERNION = (
    "oAE/wAAA5xHbTwE/wAAAIqoMCwE/wAAAXLLCTQE/wAAA612h4gE/wAAAQ9BXSgE/wAAAKdWPNgEYQAAAAAAAAAAAAAAAAAAAAAAA"
    "AAAAAAAAAAAAAASv2DlaYf1/"
)
OCTAHEDRAL = "oAE/wAAAbi6fwgE/QAAABAcLAT/AAABBGIWKAT/AAAARBRYJAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAANoEWQX/B/9/"
EXPONENTIAL = "oAEzkAAAktsBMwAAANtKAT/wAAC1wM3YoQEu8AAABAQEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAEmSJOg="


def scattered() -> np.ndarray:
    i = np.arange(60)
    return (37 * i * i + 11 * i) % 1009


def grid(side: int = 8) -> np.ndarray:
    """Two triangles for each square of a grid, row by row."""
    corner = np.arange(side)[:, None] * (side + 1) + np.arange(side)
    steps = np.array([0, 1, side + 1, 1, side + 2, side + 1])
    return (corner[..., None] + steps).reshape(-1)


def elements() -> np.ndarray:
    """Bytes that count, that run away, that jump and that stay."""
    i, k = np.arange(72)[:, None], np.arange(12)[None]
    jumping = np.where(i % 7 == 0, 200, 3) + 0 * k
    value = np.where(k < 3, i * (k + 1), np.where(k < 6, (i * i) >> k, np.where(k < 9, jumping, 5)))
    return (value & 255).astype(np.uint8)


def vectors() -> np.ndarray:
    i = np.arange(5)
    return np.stack([np.sin(i + 1), np.cos(2 * i), 0.3 * i - 0.7, np.full(5, 0.5)], 1)


def document(
    tmp_path: Path, stream: str | bytes, *, count: int, stride: int, mode: str, kind: str = "NONE"
) -> Document:
    """A file with one packed buffer view beside a fallback buffer that has no data."""
    data = base64.b64decode(stream) if isinstance(stream, str) else stream
    packing = {"buffer": 0, "byteLength": len(data), "byteStride": stride, "count": count, "mode": mode, "filter": kind}
    view = {"buffer": 1, "byteLength": count * stride, "extensions": {"EXT_meshopt_compression": packing}}
    parsed = {
        "asset": {"version": "2.0"},
        "extensionsUsed": ["EXT_meshopt_compression"],
        "extensionsRequired": ["EXT_meshopt_compression"],
        "buffers": [{"byteLength": len(data)}, {"byteLength": count * stride}],
        "bufferViews": [view],
    }
    path = tmp_path / "packed.glb"
    path.write_bytes(pack_glb(parsed, data))
    return read_document(path)


def plain(packed: Document, dtype: str) -> np.ndarray:
    return np.frombuffer(unpack(packed).view(0)[0], dtype)


def sorted_corners(indices: np.ndarray) -> list[tuple[int, ...]]:
    """Triangles from their smallest corner on: the encoder may turn a triangle, never flip it."""
    out = []
    for triangle in indices.reshape(-1, 3).tolist():
        start = triangle.index(min(triangle))
        out.append(tuple(triangle[start:] + triangle[:start]))
    return out


def test_triangles_come_out_in_their_order_and_turn(tmp_path: Path) -> None:
    for stream, wanted in ((GRID, grid()), (SCATTERED, scattered())):
        packed = document(tmp_path, stream, count=len(wanted), stride=4, mode="TRIANGLES")
        assert sorted_corners(plain(packed, "<u4")) == sorted_corners(wanted)


def test_a_sequence_of_indices_comes_out_as_it_was(tmp_path: Path) -> None:
    for stride in (2, 4):
        packed = document(tmp_path, SEQUENCE, count=60, stride=stride, mode="INDICES")
        np.testing.assert_array_equal(plain(packed, f"<u{stride}"), scattered())


def test_attributes_come_out_byte_for_byte(tmp_path: Path) -> None:
    packed = document(tmp_path, ATTRIBUTES, count=72, stride=12, mode="ATTRIBUTES")
    np.testing.assert_array_equal(plain(packed, "<u1").reshape(72, 12), elements())


def test_the_example_of_the_specification_decodes_as_it_says() -> None:
    group = bytes([0x17, 0x5F, 0xF0, 0xBC, 0x77, 0xA9, 0x21, 0x00, 0x34, 0xB5])
    stream = bytes([0xA0, 2]) + group + 3 * bytes([0]) + bytes(32)
    deltas = np.array([-1, -4, -3, 26, -91, 0, -6, 6, -4, -4, 5, -5, 1, -1, 0, 0])
    np.testing.assert_array_equal(attributes(stream, 16, 4)[:, 0], np.cumsum(deltas) & 255)


def test_elements_of_several_blocks_go_on_from_the_block_before() -> None:
    values = np.random.default_rng(0).integers(0, 256, (200, 64), dtype=np.uint8)
    steps = (values - np.concatenate([values[:1], values[:-1]])).astype(np.int8).astype(np.int64)
    zigzag = (steps << 1 ^ steps >> 63).astype(np.uint8)
    stream = b"\xa0"
    for first, size in ((0, 128), (128, 72)):
        groups = -(-size // 16)
        for byte in range(64):
            raw = np.zeros(groups * 16, np.uint8)
            raw[:size] = zigzag[first : first + size, byte]
            stream += b"\xff" * -(-groups // 4) + raw.tobytes()
    np.testing.assert_array_equal(attributes(stream + values[0].tobytes(), 200, 64), values)


def test_filters_give_back_unit_vectors_quaternions_and_floats(tmp_path: Path) -> None:
    v = vectors()
    packed = document(tmp_path, QUATERNION, count=5, stride=8, mode="ATTRIBUTES", kind="QUATERNION")
    q, wanted = plain(packed, "<i2").reshape(5, 4) / 32767, v / np.linalg.norm(v, axis=1, keepdims=True)
    np.testing.assert_allclose(np.abs((q * wanted).sum(1)), 1, atol=1e-4)
    packed = document(tmp_path, OCTAHEDRAL, count=5, stride=8, mode="ATTRIBUTES", kind="OCTAHEDRAL")
    n, wanted = plain(packed, "<i2").reshape(5, 4) / 32767, v[:, :3] / np.linalg.norm(v[:, :3], axis=1, keepdims=True)
    np.testing.assert_allclose(n[:, :3], wanted, atol=2e-3)
    packed = document(tmp_path, EXPONENTIAL, count=6, stride=4, mode="ATTRIBUTES", kind="EXPONENTIAL")
    np.testing.assert_allclose(plain(packed, "<f4"), (-3.0) ** np.arange(6) / 7, rtol=1e-6)


def test_an_unpacked_document_needs_no_extension_and_one_buffer(tmp_path: Path) -> None:
    loose = unpack(document(tmp_path, SEQUENCE, count=60, stride=4, mode="INDICES"))
    assert "extensionsRequired" not in loose.json and "extensionsUsed" not in loose.json
    assert loose.json["buffers"] == [{"byteLength": 240}] and loose.json["bufferViews"] == [
        {"buffer": 0, "byteOffset": 0, "byteLength": 240}
    ]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"mode": "SECRET"}, "packed in an unknown way"),
        ({"filter": "BLUR"}, "packed in an unknown way"),
        ({"byteStride": 3}, "should unpack to"),
        ({"byteLength": 10**6}, "ends at byte"),
        ({"count": 61}, "should unpack to"),
        ({"buffer": 7}, "does not exist"),
        ({"mode": "TRIANGLES"}, "the packed data is damaged"),
    ],
)
def test_packing_that_does_not_fit_is_refused_by_name(change: dict, reason: str, tmp_path: Path) -> None:
    packed = document(tmp_path, SEQUENCE, count=60, stride=4, mode="INDICES")
    packed.json["bufferViews"][0]["extensions"]["EXT_meshopt_compression"].update(change)
    with pytest.raises(FileFormatError, match=reason):
        unpack(packed)


def test_a_small_stream_cannot_ask_for_all_memory(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="asks for more than"):
        unpack(document(tmp_path, ATTRIBUTES, count=1 << 30, stride=256, mode="ATTRIBUTES"))


@pytest.mark.parametrize("name", ["GRID", "SCATTERED", "SEQUENCE", "ATTRIBUTES"])
def test_damaged_streams_end_in_an_error_or_in_the_right_number_of_values(name: str) -> None:
    whole = base64.b64decode(globals()[name])
    generator = np.random.default_rng(1)
    refused = 0
    for _ in range(400):
        data = bytearray(whole[: generator.integers(0, len(whole) + 1)] if generator.random() < 0.3 else whole)
        for at in generator.integers(0, max(len(data), 1), 3) if data else ():
            data[at] = generator.integers(0, 256)
        try:
            if name == "ATTRIBUTES":
                assert attributes(bytes(data), 72, 12).shape == (72, 12)
            elif name == "SEQUENCE":
                assert sequence(bytes(data), 60).shape == (60,)
            else:
                count = 384 if name == "GRID" else 60
                assert triangles(bytes(data), count).shape == (count,)
        except (ValueError, IndexError):
            refused += 1
    assert refused > 100


def packed_copy(source: Path, target: Path) -> Path:
    """The GLB with every buffer view of vertices and keys packed in the plainest way: groups of sixteen whole bytes."""
    document = read_document(source)
    assert document.binary is not None
    views, parts, size, fallback = [], [], 0, 0
    strides = {a["bufferView"]: _stride(a) for a in document.json["accessors"]}
    for index, view in enumerate(document.json["bufferViews"]):
        data = bytes(document.view(index)[0])
        stride = view.get("byteStride", strides.get(index, 3))
        if stride % 4 or len(data) % stride or index not in strides:
            views.append({**view, "buffer": 0, "byteOffset": size})
        else:
            count, length = len(data) // stride, len(data)
            data = _packed(np.frombuffer(data, np.uint8).reshape(-1, stride))
            packing = {"buffer": 0, "byteOffset": size, "byteLength": len(data), "byteStride": stride, "count": count}
            extensions = {"EXT_meshopt_compression": {**packing, "mode": "ATTRIBUTES"}}
            views.append({**view, "buffer": 1, "byteOffset": fallback, "extensions": extensions})
            fallback += length
        parts += [data, bytes(-len(data) % 4)]
        size += len(data) + -len(data) % 4
    parsed = {**document.json, "bufferViews": views, "buffers": [{"byteLength": size}, {"byteLength": fallback}]}
    parsed["extensionsRequired"] = parsed["extensionsUsed"] = ["EXT_meshopt_compression"]
    target.write_bytes(pack_glb(json.loads(json.dumps(parsed)), b"".join(parts)))
    return target


def _stride(accessor: dict) -> int:
    size = {5120: 1, 5121: 1, 5122: 2, 5123: 2, 5125: 4, 5126: 4}[accessor["componentType"]]
    return size * {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT4": 16}[accessor["type"]]


def _packed(values: np.ndarray) -> bytes:
    count, stride = values.shape
    before = np.concatenate([values[:1], values[:-1]])
    steps = (values - before).astype(np.int8).astype(np.int64)
    zigzag = (steps << 1 ^ steps >> 63).astype(np.uint8)
    block, out = min(8192 // stride & ~15, 256), [b"\xa0"]
    for first in range(0, count, block):
        size = min(block, count - first)
        groups = -(-size // 16)
        raw = np.zeros((stride, groups * 16), np.uint8)
        raw[:, :size] = zigzag[first : first + size].T
        out += [b"\xff" * -(-groups // 4) + row.tobytes() for row in raw]
    return b"".join(out) + bytes(max(32 - stride, 0)) + values[0].tobytes()


def quiet_read(path: Path) -> RiggedAsset:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RepairWarning)
        return read(path)


def test_a_real_file_that_was_packed_reads_and_takes_clips_as_before(assets_dir: Path, tmp_path: Path) -> None:
    source = assets_dir / "rigged" / "khronos" / "Fox.glb"
    path = packed_copy(source, tmp_path / "fox.glb")
    with pytest.raises(JigdollError, match="has no data"):
        read_document(path).view(0)
    ours, wanted = quiet_read(path), quiet_read(source)
    torch.testing.assert_close(ours.mesh.vertices, wanted.mesh.vertices)
    torch.testing.assert_close(ours.mesh.faces, wanted.mesh.faces)
    for name, clip in wanted.clips.items():
        torch.testing.assert_close(ours.clips[name].pose.rotations, clip.pose.rotations)
    written = quiet_read(gltf.write(tmp_path / "out.glb", ours, [ours.clips["Walk"]]))
    assert set(written.clips) == {*wanted.clips, "Walk_2"}
    torch.testing.assert_close(written.mesh.vertices, wanted.mesh.vertices)
