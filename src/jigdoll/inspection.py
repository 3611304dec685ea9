"""What is in a file, what is wrong with it, and what was done about that."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from jigdoll.asset.axes import Axis
from jigdoll.asset.load import load_clips, read, split_clip
from jigdoll.errors import RepairWarning
from jigdoll.rig.bones import bones_of
from jigdoll.types import Mesh, Motion, RiggedAsset, Skeleton, Weights


def inspect_file(
    path: str | Path, *, up: Axis | None = None, forward: Axis | None = None, scale: float | None = None
) -> dict[str, Any]:
    """Facts about a character or motion file, ready for a table or for JSON."""
    word, path = path, split_clip(path)[0]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RepairWarning)
        asset = load_clips(word, up=up, forward=forward, scale=scale)
        if asset.has_mesh:
            facts = _character_facts(asset, read_size=_size_in_file(path))
        else:
            clips = [_clip_facts(clip) for clip in asset.clips.values()]
            facts = {"skeleton": _skeleton_facts(asset.skeleton), "clips": clips}
    repairs = [str(w.message).removeprefix(f"{path.name}: ") for w in caught if issubclass(w.category, RepairWarning)]
    return {"file": path.name, "bytes": path.stat().st_size, **facts, "repairs": list(dict.fromkeys(repairs))}


def _size_in_file(path: Path) -> list[float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RepairWarning)
        return _extent(read(path).mesh)


def _character_facts(asset: RiggedAsset, *, read_size: list[float]) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "size_m": _extent(asset.mesh),
        "size_in_file": read_size,
        "mesh": _mesh_facts(asset.mesh),
        "materials": [
            {"name": m.name, "texture": None if m.texture is None else list(m.texture.shape[1::-1])}
            for m in asset.mesh.materials
        ],
    }
    if asset.source is not None:
        turn = asset.source.T_world_file[:3, :3]
        unit = float(turn.norm(dim=0).mean())
        facts["frame"] = {
            "metres_per_unit": unit,
            "up": _axis_of((turn[1] / unit).tolist()),
            "forward": _axis_of((turn[2] / unit).tolist()),
        }
    if asset.is_rigged:
        facts["skeleton"] = _skeleton_facts(asset.skeleton)
        facts["weights"] = _weight_facts(asset.weights, len(asset.skeleton))
    facts["clips"] = [_clip_facts(clip) for clip in asset.clips.values()]
    return facts


def _extent(mesh: Mesh) -> list[float]:
    return (mesh.vertices.amax(0) - mesh.vertices.amin(0)).tolist()


def _axis_of(direction: list[float]) -> str:
    best = int(np.abs(direction).argmax())
    return ("+" if direction[best] > 0 else "-") + "xyz"[best]


def _mesh_facts(mesh: Mesh) -> dict[str, Any]:
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    vertices, faces = mesh.vertices.numpy(), mesh.faces.numpy()
    size = float(np.ptp(vertices, axis=0).max()) or 1.0
    _, place = np.unique((vertices / size).round(6), axis=0, return_inverse=True)
    welded = place.reshape(-1)[faces]
    flat = (welded[:, 0] == welded[:, 1]) | (welded[:, 1] == welded[:, 2]) | (welded[:, 2] == welded[:, 0])
    solid = welded[~flat]
    edges = np.sort(np.concatenate([solid[:, [0, 1]], solid[:, [1, 2]], solid[:, [2, 0]]]), 1)
    _, uses = np.unique(edges, axis=0, return_counts=True)
    count = int(place.max(initial=-1)) + 1
    graph = coo_matrix((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(count, count))
    used = np.unique(solid)
    labels = connected_components(graph, directed=False)[1]
    return {
        "vertices": len(vertices),
        "faces": len(faces),
        "places": count,
        "components": len(np.unique(labels[used])) if len(used) else 0,
        "open_edges": int((uses == 1).sum()),
        "crowded_edges": int((uses > 2).sum()),
        "flat_faces": int(flat.sum()),
        "watertight": bool(len(uses)) and bool((uses == 2).all()),
    }


def _skeleton_facts(skeleton: Skeleton) -> dict[str, Any]:
    limbs = bones_of(skeleton).limbs
    return {
        "joints": len(skeleton),
        "root": skeleton.names[0],
        "names": list(skeleton.names),
        "parents": list(skeleton.parents),
        "limbs": [
            {"kind": limb.kind, "side": limb.side, "joints": [skeleton.names[j] for j in limb.joints]} for limb in limbs
        ],
    }


def _weight_facts(weights: Weights, joints: int) -> dict[str, Any]:
    used = weights.values > 0
    carrying = weights.joints[used].unique()
    return {
        "most_influences": int(used.sum(1).max()) if len(used) else 0,
        "mean_influences": float(used.float().sum(1).mean()) if len(used) else 0.0,
        "joints_with_weight": len(carrying),
        "joints_without": joints - len(carrying),
    }


def _clip_facts(motion: Motion) -> dict[str, Any]:
    pose = motion.pose
    travel = (pose.root[-1] - pose.root[0]).tolist() if len(motion) else [0.0] * 3
    turned = (1 - pose.rotations.mul(pose.rotations[:1]).sum(-1).abs()).amax(0) > 1e-5
    return {
        "name": motion.name,
        "seconds": motion.seconds,
        "frames": len(motion),
        "fps": motion.fps,
        "moving_joints": int(turned.sum()),
        "travel_m": travel,
        "moves_joints_apart": pose.offsets is not None,
        "scales_joints": pose.scales is not None,
    }
