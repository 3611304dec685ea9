"""From skins and nodes to joints: which nodes move the body, and where they stand in the bind pose."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from jigdoll.formats.gltf.document import Document
from jigdoll.formats.gltf.nodes import NodeTree, check_places
from jigdoll.formats.gltf.primitives import Primitive

_MAX_JOINTS = 4096
_MIRROR_SLACK = 0.03
"""Joints that miss their mirror image by less than this part of the size make a body with two like sides."""
_SKEWNESS = 2.0
"""Outweighs what a body's rest pose gains by a bind pose that is turned with it (all glTF rigs of the corpus)."""


@dataclass(frozen=True, eq=False)
class Skin:
    """A checked skin: its joint nodes and inverse bind matrices."""

    joints: tuple[int, ...]
    inverse_bind: np.ndarray


@dataclass(frozen=True, eq=False)
class Part:
    """A primitive that hangs at a node, with its skin if it has one."""

    primitive: Primitive
    node: int
    skin: int | None


@dataclass(frozen=True, eq=False)
class Joints:
    """The nodes that become joints, in an order with parents first, and their bind transforms in the file's world."""

    nodes: tuple[int, ...]
    """-1 for a root that we add."""
    parents: tuple[int, ...]
    bind: np.ndarray
    """[joints 4 4], scale included."""


def read_skins(document: Document, tree: NodeTree) -> list[Skin]:
    """Every skin of the file."""
    skins = []
    for index, entry in enumerate(document.items("skins")):
        joints = entry.get("joints")
        if not isinstance(joints, list) or not joints or len(joints) > _MAX_JOINTS:
            raise document.fail(f"skins[{index}] should list between 1 and {_MAX_JOINTS} joints")
        for joint in joints:
            document.item("nodes", joint)
        if "inverseBindMatrices" in entry:
            flat = document.vectors(entry["inverseBindMatrices"], 16)
            if len(flat) < len(joints):
                raise document.fail(f"skins[{index}] has {len(flat)} inverse bind matrices for {len(joints)} joints")
            inverse = flat[: len(joints)].reshape(-1, 4, 4).transpose(0, 2, 1).copy()
            inverse[:, 3] = [0, 0, 0, 1]  # rounding in some exporters leaves 0.9999
            if (np.abs(np.linalg.det(inverse[:, :3, :3])) < 1e-30).any():
                raise document.fail(f"skins[{index}] has an inverse bind matrix that cannot be inverted")
            check_places(document, np.linalg.inv(inverse))
        else:
            inverse = np.tile(np.eye(4), (len(joints), 1, 1))
        skins.append(Skin(tuple(joints), inverse))
    return skins


def choose_joints(tree: NodeTree, skins: list[Skin], parts: list[Part], moved: set[int], repairs: list[str]) -> Joints:
    """The joints of the skeleton: what carries weight, what lies between, and the tips below; one root.

    Weightless joints that hang beside the body (IK targets, poles) stay in the file and are not ours to move. In a file
    without a body every joint of a skin and every node that a clip moves counts.
    """
    skin_nodes = {node for skin in skins for node in skin.joints}
    carried = _carried(tree, skins, parts, moved) if parts else dict.fromkeys(skin_nodes | moved, 1.0)
    carrying = set(carried)
    chosen = set(carrying)
    for node in carrying:
        chain = tree.ancestors(node)
        tops = [i for i, above in enumerate(chain) if above in skin_nodes or above in moved]
        chosen.update(chain[: tops[-1] + 1] if tops else [])
    for node in tree.order:
        below = tree.parents[node]
        if node in skin_nodes and below in chosen and (below in carrying or below not in _spine(tree, carrying)):
            chosen.add(node)
    dropped = sorted(skin_nodes - chosen)
    if dropped and carrying:
        names = ", ".join(tree.names[node] for node in dropped[:6])
        repairs.append(f"{len(dropped)} weightless joints beside the body are left alone ({names})")
    ordered = [node for node in tree.order if node in chosen]
    tops = [node for node in ordered if tree.parents[node] not in chosen]
    if len(tops) == 1:
        nodes = ordered
    else:
        common = _common_ancestor(tree, tops)
        nodes = [common, *ordered]
        if ordered:
            where = f"their common ancestor {tree.names[common]!r}" if common >= 0 else "a new root"
            repairs.append(f"{len(tops)} joint roots were gathered under {where}")
    place = {node: i for i, node in enumerate(nodes)}
    parents = tuple(-1 if i == 0 else place.get(tree.parents[node], 0) for i, node in enumerate(nodes))
    return Joints(tuple(nodes), parents, _bind(tree, skins, parts, nodes, parents, _loads(tree, carried)))


def _carried(tree: NodeTree, skins: list[Skin], parts: list[Part], moved: set[int]) -> dict[int, float]:
    """Nodes that some vertex follows, and how many vertices each of them carries."""
    carried: dict[int, float] = {}
    skin_nodes = {node for skin in skins for node in skin.joints}
    for part in parts:
        joints, weights = part.primitive.joints, part.primitive.weights
        if part.skin is not None and joints is not None and weights is not None:
            nodes = skins[part.skin].joints
            weights = np.where((joints >= 0) & (joints < len(nodes)), np.nan_to_num(weights), 0.0).clip(0, 1)
            sums = np.bincount(joints.clip(0, len(nodes) - 1).reshape(-1), weights.reshape(-1), len(nodes))
            found = {nodes[j]: float(sums[j]) for j in np.flatnonzero(sums)}
        else:
            above = [part.node, *tree.ancestors(part.node)]
            found = {n: float(len(part.primitive.vertices)) for n in above if n in skin_nodes or n in moved}
            found = dict(list(found.items())[:1])
        for node, count in found.items():
            carried[node] = carried.get(node, 0.0) + count
    return carried


def _loads(tree: NodeTree, carried: dict[int, float]) -> np.ndarray:
    """For each node, the part of the body that moves with it: what it carries itself and what hangs below it."""
    loads = np.zeros(len(tree.names))
    loads[list(carried)] = list(carried.values())
    for node in reversed(tree.order):
        if tree.parents[node] >= 0:
            loads[tree.parents[node]] += loads[node]
    return loads / max(loads.max(initial=0.0), 1e-12)


def _spine(tree: NodeTree, carrying: set[int]) -> set[int]:
    """Nodes that have a carrying node below them."""
    return {above for node in carrying for above in tree.ancestors(node)}


def _common_ancestor(tree: NodeTree, tops: list[int]) -> int:
    """The lowest node above all tops, -1 where there is none."""
    if not tops:
        return -1
    chains = [tree.ancestors(top) for top in tops]
    return next((node for node in chains[0] if all(node in chain for chain in chains[1:])), -1)


def _bind(
    tree: NodeTree,
    skins: list[Skin],
    parts: list[Part],
    nodes: list[int],
    parents: tuple[int, ...],
    loads: np.ndarray,
) -> np.ndarray:
    """Where each joint stands in the bind pose, in the file's world: from the skin that moves most vertices."""
    use = {} if parts else {index: len(skin.joints) for index, skin in enumerate(skins)}
    mesh_world: dict[int, np.ndarray] = {}
    for part in parts:
        if part.skin is not None:
            use[part.skin] = use.get(part.skin, 0) + len(part.primitive.vertices)
            mesh_world.setdefault(part.skin, tree.world[part.node])
    bind: dict[int, np.ndarray] = {}
    for index in sorted(use, key=lambda s: -use[s]):
        to_world = _skin_to_world(tree, skins[index], mesh_world.get(index, np.eye(4)), loads)
        for node, inverse in zip(skins[index].joints, skins[index].inverse_bind, strict=True):
            bind.setdefault(node, to_world @ np.linalg.inv(inverse))
    out = np.zeros((len(nodes), 4, 4))
    for i, node in enumerate(nodes):
        if node in bind:
            out[i] = bind[node]
        elif node < 0:
            out[i] = np.eye(4)
        elif i == 0:
            out[i] = tree.world[node]
        else:
            above = nodes[parents[i]]
            seen = tree.world[above] if above >= 0 else np.eye(4)
            out[i] = out[parents[i]] @ _safe_inverse(seen) @ tree.world[node]
    return out


def _skin_to_world(tree: NodeTree, skin: Skin, mesh_world: np.ndarray, loads: np.ndarray) -> np.ndarray:
    """The transform that carries a skin's bind space into the file's world.

    Bind matrices may hold an armature's unit and turn. The true one makes the bind pose look most like the nodes'
    rest pose: tried are nothing, the mesh node's own transform, and the skin matrices of the trunk's joints. Joints
    count by their loads, because a raised arm with its many fingers says nothing about how the body stands. A body
    that is its own mirror image should not lean to a side, and one that was bound straight in its space stays so.
    """
    joints = list(skin.joints)
    bind = np.linalg.inv(skin.inverse_bind)
    rest = tree.world[joints]
    load = loads[joints] + 1e-6
    trunk = np.flatnonzero(load >= 0.5 * load.max())
    trunk = trunk[np.argsort(-load[trunk], kind="stable")][:64]
    candidates = [np.eye(4), mesh_world, *(rest @ skin.inverse_bind)[trunk]]
    size = np.linalg.norm(rest[:, :3, 3] - rest[:, :3, 3].mean(0), axis=1).mean() + 1e-9
    mirror_axes = _mirror_axes(bind[:, :3, 3])
    straight = _turns(np.stack([np.eye(4), mesh_world]))

    def misfit(T: np.ndarray) -> float:
        moved = T @ bind
        if np.linalg.det(T[:3, :3]) <= 0:
            return np.inf
        turn = np.linalg.norm(moved[:, :3, :3] - rest[:, :3, :3], axis=(1, 2))
        norm = np.linalg.norm(rest[:, :3, :3], axis=(1, 2)) + 1e-9
        away = np.linalg.norm((moved - rest)[:, :3, 3], axis=1) / size
        # Medians: a few posed limbs must not pull the whole body.
        posed = _median(away, load) + 0.2 * _median(turn / norm, load)
        return posed + _lean(T, mirror_axes) + _SKEWNESS * _skew(T, straight)

    scores = [misfit(T) for T in candidates]
    # The first that is as good as the best: plain answers win over fitted ones.
    return next(T for T, score in zip(candidates, scores, strict=True) if score <= min(scores) * 1.05 + 1e-6)


def _median(values: np.ndarray, loads: np.ndarray) -> float:
    """The value that half of the loads lie below."""
    order = np.argsort(values, kind="stable")
    total = np.cumsum(loads[order])
    return float(values[order][np.searchsorted(total, 0.5 * total[-1])])


def _mirror_axes(points: np.ndarray) -> np.ndarray:
    """The axes [axes 3] of the bind space across which the joints are their own mirror image."""
    points = points[:: max(1, len(points) // 512)]
    middle = (points.max(0) + points.min(0)) / 2
    size = float(np.ptp(points, axis=0).max()) + 1e-12
    axes = []
    for axis in np.eye(3):
        mirrored = points - 2 * ((points - middle) @ axis)[:, None] * axis
        apart = np.linalg.norm(mirrored[:, None] - points[None], axis=-1).min(1)
        if apart.mean() < _MIRROR_SLACK * size:
            axes.append(axis)
    return np.array(axes).reshape(-1, 3)


def _turns(matrices: np.ndarray) -> np.ndarray:
    """The rotations [... 3 3] of matrices, without their scale."""
    return matrices[..., :3, :3] / (np.linalg.norm(matrices[..., :3, :3], axis=-2, keepdims=True) + 1e-12)


def _skew(T: np.ndarray, straight: np.ndarray) -> float:
    """How far T is from quarter turns of every straight frame: 0 for files' changes of axes, up to 0.5 for poses."""
    between = np.abs(straight.transpose(0, 2, 1) @ _turns(T))
    return float(np.sqrt((1 - between.max(-1).min(-1).clip(0, 1) ** 2).min()).clip(0, 0.5))


def _lean(T: np.ndarray, mirror_axes: np.ndarray) -> float:
    """How far the body would stand higher on one side: the sine of the mirror axis' slope, 0 for a body without."""
    across = mirror_axes @ T[:3, :3].T
    slopes = np.abs(across[:, 1]) / (np.linalg.norm(across, axis=1) + 1e-12)
    return float(slopes.min(initial=1.0)) if len(slopes) else 0.0


def _safe_inverse(matrix: np.ndarray) -> np.ndarray:
    return np.linalg.inv(matrix) if abs(np.linalg.det(matrix[:3, :3])) > 1e-30 else np.linalg.pinv(matrix)


def rest_vertices(
    document: Document, tree: NodeTree, skins: list[Skin], joints: Joints, part: Part, repairs: list[str]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A part's vertices in the bind pose of the file's world, with joint indices and normalised weights."""
    place = {node: i for i, node in enumerate(joints.nodes)}
    vertices = np.concatenate([part.primitive.vertices, np.ones((len(part.primitive.vertices), 1))], 1)
    if part.skin is None or part.primitive.joints is None or part.primitive.weights is None:
        above = next((n for n in [part.node, *tree.ancestors(part.node)] if n in place), -1)
        joint = place.get(above, 0)
        seen = tree.world[above] if above >= 0 else np.eye(4)
        T = joints.bind[joint] @ _safe_inverse(seen) @ tree.world[part.node]
        count = len(vertices)
        return (vertices @ T.T)[:, :3], np.full((count, 1), joint), np.ones((count, 1))
    skin = skins[part.skin]
    indices, weights = _clean(document, part.primitive, len(skin.joints), repairs)
    to_joint = np.array([place.get(node, -1) for node in skin.joints])
    weights = np.where(to_joint[indices] >= 0, weights, 0.0)
    empty = weights.sum(1) <= 0
    if empty.any():
        repairs.append(f"{int(empty.sum())} vertices without any weight follow the root")
    root = int(np.argmax(to_joint == 0)) if (to_joint == 0).any() else int(np.argmax(to_joint >= 0))
    indices[empty, 0], weights[empty, 0] = root, 1.0
    weights = weights / weights.sum(1, keepdims=True)
    bones = joints.bind[np.maximum(to_joint, 0)] @ skin.inverse_bind
    moved = np.zeros((len(vertices), 3))
    for k in range(indices.shape[1]):
        moved += weights[:, k, None] * np.einsum("vab,vb->va", bones[indices[:, k]][:, :3], vertices)
    final = np.maximum(to_joint[indices], 0)
    return moved, np.where(weights > 0, final, 0), weights


def _clean(document: Document, primitive: Primitive, count: int, repairs: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Influences with known joints and finite, non-negative weights."""
    assert primitive.joints is not None and primitive.weights is not None
    indices, weights = primitive.joints.copy(), primitive.weights.copy()
    bad = ~np.isfinite(weights) | (weights < 0)
    if bad.any():
        repairs.append(f"{int(bad.any(1).sum())} vertices had weights that are negative or not finite; taken as 0")
        weights[bad] = 0.0
    outside = (indices < 0) | (indices >= count)
    if (outside & (weights > 0)).any():
        raise document.fail(f"a vertex follows joint {int(indices[outside & (weights > 0)][0])} of a skin with {count}")
    indices[outside] = 0
    sums = weights.sum(1)
    off = np.abs(sums - 1)[sums > 0]
    if len(off) and off.max() > 0.01:
        low, high = sums[sums > 0].min(), sums.max()
        repairs.append(f"weight sums from {low:.2f} to {high:.2f} were normalised to 1")
    return indices, weights


def moved_nodes(document: Document) -> set[int]:
    """The nodes that any clip turns, moves or scales."""
    moved = set()
    for animation in document.items("animations"):
        channels: Any = animation.get("channels", [])
        for channel in channels if isinstance(channels, list) else []:
            target = channel.get("target") if isinstance(channel, dict) else None
            if isinstance(target, dict) and type(target.get("node")) is int and target.get("path") != "weights":
                moved.add(target["node"])
    return moved
