"""KHR_mesh_quantization: whole numbers for places and normals, put right by the bind matrices or by the node."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from jigdoll.asset.load import read
from jigdoll.formats import gltf
from jigdoll.formats.gltf.document import pack_glb, read_document
from stand_ins import two_link_arm


def quantized(path: Path, target: Path, *, kind: int, normalized: bool, skinned: bool) -> float:
    """The file with its places as whole numbers; how large one step is [m]."""
    document = read_document(path)
    tree: dict[str, Any] = document.json
    data = bytearray(document.buffer(0))
    most = {5121: 255, 5123: 65535, 5122: 32767}[kind]
    primitive = tree["meshes"][0]["primitives"][0]
    places = document.accessor(primitive["attributes"]["POSITION"]).astype(float)
    low, extent = places.min(0), float(np.ptp(places, 0).max())
    whole = np.round((places - low) / extent * most).astype({5121: "u1", 5123: "<u2", 5122: "<i2"}[kind])
    padded = np.zeros((len(whole), 4), whole.dtype)  # rows start at multiples of four bytes, as the standard wants
    padded[:, :3] = whole
    tree["bufferViews"].append(
        {"buffer": 0, "byteOffset": len(data), "byteLength": padded.nbytes, "byteStride": 4 * whole.itemsize}
    )
    data += padded.tobytes()
    tree["accessors"].append(
        {"bufferView": len(tree["bufferViews"]) - 1, "componentType": kind, "count": len(whole), "type": "VEC3"}
        | {"normalized": normalized, "min": whole.min(0).tolist(), "max": whole.max(0).tolist()}
    )
    primitive["attributes"]["POSITION"] = len(tree["accessors"]) - 1
    size = extent if normalized else extent / most
    if skinned:
        entry = tree["accessors"][tree["skins"][0]["inverseBindMatrices"]]
        view = tree["bufferViews"][entry["bufferView"]]
        start = view.get("byteOffset", 0) + entry.get("byteOffset", 0)
        inverse = np.frombuffer(bytes(data), "<f4", 16 * entry["count"], start).reshape(-1, 4, 4).transpose(0, 2, 1)
        put_right = np.diag([size, size, size, 1.0])
        put_right[:3, 3] = low
        data[start : start + 64 * entry["count"]] = (inverse @ put_right).transpose(0, 2, 1).astype("<f4").tobytes()
    else:
        tree.pop("skins")
        node = next(node for node in tree["nodes"] if "mesh" in node)
        node.pop("skin")
        for name in ("JOINTS_0", "WEIGHTS_0"):
            primitive["attributes"].pop(name)
        node |= {"translation": low.tolist(), "scale": [size] * 3}
    data += b"\0" * (-len(data) % 4)
    tree["buffers"] = [{"byteLength": len(data)}]
    tree["extensionsUsed"] = tree["extensionsRequired"] = ["KHR_mesh_quantization"]
    target.write_bytes(pack_glb(tree, bytes(data)))
    return extent / most


@pytest.mark.parametrize(("kind", "normalized"), [(5123, False), (5123, True), (5122, True), (5121, False)])
@pytest.mark.parametrize("skinned", [True, False])
def test_places_in_whole_numbers_are_where_they_were(
    kind: int, normalized: bool, skinned: bool, tmp_path: Path
) -> None:
    arm = two_link_arm()
    plain = gltf.write(tmp_path / "plain.glb", arm)
    step = quantized(plain, tmp_path / "small.glb", kind=kind, normalized=normalized, skinned=skinned)
    one, two = read(plain), read(tmp_path / "small.glb")
    torch.testing.assert_close(two.mesh.vertices, one.mesh.vertices, atol=0.6 * step + 1e-5, rtol=0)
    assert two.mesh.faces.equal(one.mesh.faces)
    if skinned:
        torch.testing.assert_close(two.skeleton.T_parent_joint, one.skeleton.T_parent_joint, atol=1e-4, rtol=0)
        torch.testing.assert_close(two.weights.values, one.weights.values)
