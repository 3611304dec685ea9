"""Faults of the original file that would make what we write invalid, mended and named."""

import warnings
from typing import Any

import numpy as np

from jigdoll.errors import RepairWarning
from jigdoll.formats.gltf.builder import ARRAY_BUFFER, Builder
from jigdoll.formats.gltf.document import Document
from jigdoll.formats.gltf.nodes import NodeTree

_ROUNDING = 2e-7
"""How far a sum of float32 weights may be from one, per weight (the Khronos validator's own measure)."""


def mend(builder: Builder, document: Document, tree: NodeTree) -> None:
    """Mend what the standard forbids and every importer mends in silence: skeleton roots and weight sums."""
    for index, skin in enumerate(builder.json.get("skins", [])):
        root = skin.get("skeleton")
        if root is not None and not all(root in (joint, *tree.ancestors(joint)) for joint in skin["joints"]):
            del skin["skeleton"]
            _warn(document, f"skins[{index}].skeleton is not above all its joints; the entry was left out")
    done: dict[tuple[int, ...], list[int]] = {}
    for mesh in builder.json.get("meshes", []):
        for primitive in mesh["primitives"]:
            if "KHR_draco_mesh_compression" not in primitive.get("extensions", {}):
                _normalise_weights(builder, document, primitive["attributes"], done)
    if done:
        _warn(document, f"weights that did not sum to one were normalised in {len(done)} meshes")


def _normalise_weights(
    builder: Builder, document: Document, attributes: dict[str, Any], done: dict[tuple[int, ...], list[int]]
) -> None:
    names = [f"WEIGHTS_{n}" for n in range(16) if f"WEIGHTS_{n}" in attributes]
    sets = tuple(attributes[name] for name in names)
    if not sets or any(document.item("accessors", index).get("componentType") != 5126 for index in sets):
        return
    if sets not in done:
        values = np.concatenate([document.accessor(index) for index in sets], 1).astype(np.float64)
        values = np.where(np.isfinite(values) & (values > 0), values, 0.0)
        sums = values.sum(1)
        if (np.abs(sums - 1) <= _ROUNDING * np.maximum((values > 0).sum(1), 1)).all():
            return
        values[sums <= 0, 0] = 1.0
        values = (values / values.sum(1, keepdims=True)).astype("<f4")
        parts = np.split(values, len(sets), axis=1)
        done[sets] = [builder.accessor(part, target=ARRAY_BUFFER) for part in parts]
    attributes.update(zip(names, done[sets], strict=True))


def _warn(document: Document, message: str) -> None:
    warnings.warn(f"{document.path.name}: {message}", RepairWarning, stacklevel=4)
