"""What OpenUSD finds in a file, as plain arrays: run by `formats/apart.py` in a process of its own.

The library trusts the offsets and counts inside binary files, so that a damaged one may end the process. Nothing of
jigdoll is imported, so that the process starts fast. Matrices leave here as ours: they act on columns.
"""

# pyright: reportAttributeAccessIssue=false
# USD's stubs know half of it.

import re
from typing import Any

import numpy as np
from pxr import Tf, Usd, UsdGeom, UsdSkel, UsdUtils  # noqa: TID253 (nothing of jigdoll imports this file)

MAX_FRAMES = 100_000
MAX_SAMPLES = 4_000_000
"""Joints times frames."""
FRAMES_PER_KEY = 100
"""A clip of more than `MANY_FRAMES` may not have fewer keys: a number is wrong there."""
MANY_FRAMES = 10_000


def unpack(path: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Unit, up axis, the meshes, the first skeleton and the clip that drives it, as JSON-able values and arrays."""
    quiet = UsdUtils.CoalescingDiagnosticDelegate()  # USD talks to stderr by itself
    try:
        return _unpack(path)
    except Tf.ErrorException as error:
        raise ValueError(_reason(error)) from error
    finally:
        quiet.TakeUncoalescedDiagnostics()


def _reason(error: Exception) -> str:
    """The first thing that USD says."""
    told = re.findall(r": '([^']{3,})", str(error))
    return told[0].strip()[:300] if told else type(error).__name__


def _unpack(path: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    stage: Any = Usd.Stage.Open(path)
    prims = list(stage.Traverse())
    meshes = [UsdGeom.Mesh(prim) for prim in prims if prim.IsA(UsdGeom.Mesh)]
    skeletons = [UsdSkel.Skeleton(prim) for prim in prims if prim.IsA(UsdSkel.Skeleton)]
    placed = UsdGeom.XformCache(Usd.TimeCode.EarliestTime())
    arrays: dict[str, np.ndarray] = {}
    about: dict[str, Any] = {
        "unit": UsdGeom.GetStageMetersPerUnit(stage),
        "z_up": UsdGeom.GetStageUpAxis(stage) == UsdGeom.Tokens.z,
        "skeletons": len(skeletons),
        "parts": [_part(mesh, f"part{i}", placed, arrays) for i, mesh in enumerate(meshes)],
    }
    if skeletons:
        skeleton: Any = skeletons[0]
        about["paths"] = [str(joint) for joint in skeleton.GetJointsAttr().Get() or []]
        about["names"] = [str(name) for name in skeleton.GetJointNamesAttr().Get() or []]
        arrays["T_file_skeleton"] = _matrices([placed.GetLocalToWorldTransform(skeleton.GetPrim())])[0]
        arrays["bind"] = _matrices(skeleton.GetBindTransformsAttr().Get() or [])
        about["clip"] = _clip(stage, skeleton, len(about["paths"]), arrays)
    return about, arrays


def _matrices(values: Any) -> np.ndarray:
    """USD's matrices (rows) as ours (columns), [n 4 4]."""
    return np.array(values, dtype=np.float64).reshape(-1, 4, 4).transpose(0, 2, 1)


def _part(mesh: Any, key: str, placed: Any, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """One mesh, with its binding where it has one."""
    arrays[f"{key}_points"] = np.array(mesh.GetPointsAttr().Get() or [], dtype=np.float64).reshape(-1, 3)
    arrays[f"{key}_counts"] = np.array(mesh.GetFaceVertexCountsAttr().Get() or [], dtype=np.int64)
    arrays[f"{key}_indices"] = np.array(mesh.GetFaceVertexIndicesAttr().Get() or [], dtype=np.int64)
    painted = mesh.GetDisplayColorPrimvar().ComputeFlattened() or []
    arrays[f"{key}_colors"] = np.array(painted, dtype=np.float64).reshape(-1, 3)
    arrays[f"{key}_T"] = _matrices([placed.GetLocalToWorldTransform(mesh.GetPrim())])[0]
    about: dict[str, Any] = {
        "key": key,
        "path": str(mesh.GetPath()),
        "left_handed": mesh.GetOrientationAttr().Get() == UsdGeom.Tokens.leftHanded,
    }
    binding = UsdSkel.BindingAPI(mesh.GetPrim())
    joints, weights = binding.GetJointIndicesPrimvar(), binding.GetJointWeightsPrimvar()
    if joints.HasValue():
        geometry = binding.GetGeomBindTransformAttr().Get()
        if geometry is not None:
            arrays[f"{key}_T_bind"] = _matrices([geometry])[0]
        about["influences"] = joints.GetElementSize()
        about["order"] = [str(joint) for joint in binding.GetJointsAttr().Get() or []]
        arrays[f"{key}_joints"] = np.array(joints.ComputeFlattened() or [], dtype=np.int64)
        arrays[f"{key}_weights"] = np.array(weights.ComputeFlattened() or [], dtype=np.float64)
    return about


def _clip(stage: Any, skeleton: Any, joints: int, arrays: dict[str, np.ndarray]) -> dict[str, Any] | None:
    """The clip that drives the skeleton, sampled at the stage's rate: joints in their parents' frames."""
    query: Any = UsdSkel.Cache().GetSkelQuery(skeleton)
    animation = query.GetAnimQuery() if query else None
    if not animation or not animation.JointTransformsMightBeTimeVarying():
        return None
    times = animation.GetJointTransformTimeSamples()
    fps = float(stage.GetTimeCodesPerSecond())
    count = round(times[-1] - times[0]) + 1 if len(times) else 0
    most = min(MAX_FRAMES, MAX_SAMPLES // max(joints, 1), max(MANY_FRAMES, FRAMES_PER_KEY * len(times)))
    if not 1 <= count <= most or not 0 < fps <= 1e4:
        raise ValueError(f"a clip of {count} frames at {fps:g} a second, with {len(times)} keys, cannot be read")
    local = np.zeros((count, joints, 4, 4))
    for frame in range(count):
        local[frame] = _matrices(query.ComputeJointLocalTransforms(times[0] + frame))
    arrays["clip"] = local
    prim = animation.GetPrim()
    return {"name": str(prim.GetCustomDataByKey("name") or prim.GetName()), "fps": fps}
