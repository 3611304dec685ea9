"""The node tree of a glTF file: parents, local transforms, world transforms at rest and over time."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from jigdoll.formats.gltf.document import Document

_LARGEST = 1e9


@dataclass(frozen=True, eq=False)
class NodeTree:
    """Every node's place in the tree and its rest transform, as float64 numpy arrays."""

    names: tuple[str, ...]
    parents: tuple[int, ...]
    order: tuple[int, ...]
    """Parents before children."""
    translation: np.ndarray
    rotation: np.ndarray
    """xyzw, glTF's order."""
    scale: np.ndarray
    world: np.ndarray
    """[nodes 4 4] at rest."""
    visible: frozenset[int]
    """The nodes that the scene shows."""

    def ancestors(self, node: int) -> list[int]:
        """From the node's parent up to the top."""
        chain = []
        while (node := self.parents[node]) >= 0:
            chain.append(node)
        return chain


def read_nodes(document: Document) -> NodeTree:
    """Read and check the node tree."""
    nodes = document.items("nodes")
    parents = _parents(document, nodes)
    order = _order(document, parents)
    local = [_local(document, node) for node in nodes]
    translation = np.array([t for t, _, _ in local]).reshape(-1, 3)
    rotation = np.array([r for _, r, _ in local]).reshape(-1, 4)
    scale = np.array([s for _, _, s in local]).reshape(-1, 3)
    names = tuple(_name(node, i) for i, node in enumerate(nodes))
    world = world_matrices(parents, order, compose(translation, rotation, scale))
    check_places(document, world)
    return NodeTree(names, parents, order, translation, rotation, scale, world, _visible(document, parents, order))


def check_places(document: Document, world: np.ndarray) -> None:
    """Refuse transforms that no scene has: what follows could only overflow."""
    if not np.isfinite(world).all() or np.abs(world).max(initial=0.0) > _LARGEST:
        raise document.fail(f"a node is placed or scaled beyond {_LARGEST:g} units; the file is damaged")


def compose(translation: np.ndarray, rotation: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """4x4 matrices [..., 4, 4] from translation, rotation (xyzw) and scale."""
    x, y, z, w = np.moveaxis(rotation / np.linalg.norm(rotation, axis=-1, keepdims=True).clip(1e-12), -1, 0)
    out = np.zeros((*rotation.shape[:-1], 4, 4))
    out[..., 0, 0], out[..., 0, 1], out[..., 0, 2] = 1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)
    out[..., 1, 0], out[..., 1, 1], out[..., 1, 2] = 2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)
    out[..., 2, 0], out[..., 2, 1], out[..., 2, 2] = 2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)
    out[..., :3, :3] *= scale[..., None, :]
    out[..., :3, 3] = translation
    out[..., 3, 3] = 1
    return out


def decompose(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Translation, rotation (xyzw) and scale of 4x4 matrices; a mirroring makes all three scales negative."""
    from scipy.spatial.transform import Rotation

    linear = matrix[..., :3, :3]
    scale = np.linalg.norm(linear, axis=-2)
    scale = np.where(np.linalg.det(linear)[..., None] < 0, -scale, scale)
    safe = np.where(np.abs(scale) < 1e-12, 1e-12, scale)
    U, _, Vh = np.linalg.svd(linear / safe[..., None, :])
    rotation = U @ Vh
    flat = rotation.reshape(-1, 3, 3)
    quaternion = Rotation.from_matrix(flat).as_quat().reshape(*rotation.shape[:-2], 4)
    return matrix[..., :3, 3], quaternion, scale


def world_matrices(parents: tuple[int, ...], order: tuple[int, ...], local: np.ndarray) -> np.ndarray:
    """World transforms [..., nodes, 4, 4] from local ones."""
    world = local.copy()
    for node in order:
        if parents[node] >= 0:
            world[..., node, :, :] = world[..., parents[node], :, :] @ local[..., node, :, :]
    return world


def _name(node: dict[str, Any], index: int) -> str:
    name = node.get("name")
    return name if isinstance(name, str) and name else f"node_{index}"


def _parents(document: Document, nodes: list[dict[str, Any]]) -> tuple[int, ...]:
    parents = [-1] * len(nodes)
    for index, node in enumerate(nodes):
        children = node.get("children", [])
        if not isinstance(children, list):
            raise document.fail(f"nodes[{index}].children is not a list")
        for child in children:
            document.item("nodes", child)
            if parents[child] >= 0:
                raise document.fail(f"nodes[{child}] has two parents, {parents[child]} and {index}")
            parents[child] = index
    return tuple(parents)


def _order(document: Document, parents: tuple[int, ...]) -> tuple[int, ...]:
    children: list[list[int]] = [[] for _ in parents]
    for node, parent in enumerate(parents):
        if parent >= 0:
            children[parent].append(node)
    order = [node for node, parent in enumerate(parents) if parent < 0]
    for node in order:
        order.extend(children[node])
    if len(order) != len(parents):
        raise document.fail("the nodes form a cycle instead of a tree")
    return tuple(order)


def _local(document: Document, node: dict[str, Any]) -> tuple[Any, Any, Any]:
    if "matrix" in node:
        matrix = np.array(document.floats(node, "matrix", 16, [])).reshape(4, 4).T
        return decompose(matrix)
    return (
        document.floats(node, "translation", 3, [0.0, 0.0, 0.0]),
        document.floats(node, "rotation", 4, [0.0, 0.0, 0.0, 1.0]),
        document.floats(node, "scale", 3, [1.0, 1.0, 1.0]),
    )


def _visible(document: Document, parents: tuple[int, ...], order: tuple[int, ...]) -> frozenset[int]:
    """The nodes under the default scene; all nodes where the file names none."""
    scenes = document.items("scenes")
    if not scenes:
        return frozenset(order)
    roots = document.item("scenes", document.json.get("scene", 0)).get("nodes", [])
    if not isinstance(roots, list):
        raise document.fail("scene.nodes is not a list")
    shown = {root for root in roots if document.item("nodes", root) is not None}
    for node in order:
        if parents[node] in shown:
            shown.add(node)
    return frozenset(shown)
