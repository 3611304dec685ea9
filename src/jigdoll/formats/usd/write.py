"""UsdSkel out: mesh, skeleton, weights, colours and one clip, in metres, Y-up.

A joint's USD name is its path from the root (`pelvis/spine_1`); joint names that USD does not allow are made valid, and
the originals are kept as custom data.
"""

import os
import re
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from jigdoll.errors import FileFormatError, MissingExtra, RepairWarning
from jigdoll.formats.files import atomic_write
from jigdoll.formats.joints import unique_names
from jigdoll.kinematics import world_rest
from jigdoll.math.colors import srgb_to_linear
from jigdoll.math.rotations import matrix_to_quaternion, quaternion_to_matrix
from jigdoll.types import Motion, RiggedAsset, Skeleton

_SUFFIXES = (".usd", ".usda", ".usdc", ".usdz")


def _pxr() -> Any:
    """OpenUSD's modules; its stubs know half of them, so they pass as Any."""
    try:
        from pxr import Gf, Sdf, Usd, UsdGeom, UsdSkel, UsdUtils, Vt
    except ImportError as error:
        raise MissingExtra("writing USD", "usd") from error
    return SimpleNamespace(Gf=Gf, Sdf=Sdf, Usd=Usd, UsdGeom=UsdGeom, UsdSkel=UsdSkel, UsdUtils=UsdUtils, Vt=Vt)


def write(path: str | os.PathLike[str], asset: RiggedAsset, motion: Motion | None = None) -> Path:
    """Write a character, with a clip if one is given, as .usda (text), .usdc or .usd (binary), or .usdz (packed)."""
    pxr = _pxr()
    path = Path(path)
    if path.suffix.lower() not in _SUFFIXES:
        raise FileFormatError(f"{path}: USD files end in {', '.join(_SUFFIXES)}; choose one of these")
    if not asset.has_mesh:
        raise FileFormatError(
            f"{path}: {asset.name} is motion without a body, which a character in USD needs; "
            "write .bvh or .glb, or give a character and use this as its clip"
        )
    if motion is not None and not all(bool(torch.isfinite(x).all()) for x in (motion.pose.root, motion.pose.rotations)):
        raise FileFormatError(f"{path}: the motion {motion.name!r} holds NaN or infinity; nothing was written")
    with atomic_write(path) as temporary:
        packed = path.suffix.lower() == ".usdz"
        layer = temporary.with_suffix(".usdc") if packed else temporary
        layer.unlink(missing_ok=True)  # USD wants to make the file itself
        stage = pxr.Usd.Stage.CreateNew(str(layer))
        pxr.UsdGeom.SetStageMetersPerUnit(stage, 1.0)
        pxr.UsdGeom.SetStageUpAxis(stage, pxr.UsdGeom.Tokens.y)
        root = pxr.UsdSkel.Root.Define(stage, "/character")
        stage.SetDefaultPrim(root.GetPrim())
        skeleton = _define_skeleton(stage, asset)
        _define_mesh(stage, asset, skeleton)
        if motion is not None:
            _define_animation(stage, asset.skeleton, motion, skeleton)
        stage.GetRootLayer().Save()
        if packed:
            made = pxr.UsdUtils.CreateNewUsdzPackage(pxr.Sdf.AssetPath(str(layer)), str(temporary))
            layer.unlink(missing_ok=True)
            if not made:
                raise FileFormatError(f"{path}: the package could not be made; write .usdc instead")
    return path


def joint_paths(skeleton: Skeleton) -> list[str]:
    """The USD name of each joint: its path from the root, of names that USD allows."""
    plain = [re.sub(r"\W", "_", name, flags=re.ASCII) for name in skeleton.names]
    plain = [f"_{name}" if not name or name[0].isdigit() else name for name in plain]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RepairWarning)  # the original names are kept beside
        plain = list(unique_names(plain))
    paths: list[str] = []
    for name, parent in zip(plain, skeleton.parents, strict=True):
        paths.append(name if parent < 0 else f"{paths[parent]}/{name}")
    return paths


def _define_skeleton(stage: Any, asset: RiggedAsset) -> Any:
    pxr = _pxr()
    skeleton = pxr.UsdSkel.Skeleton.Define(stage, "/character/skeleton")
    local = asset.skeleton.T_parent_joint.double()
    world = world_rest(asset.skeleton.parents, local)
    skeleton.CreateJointsAttr(joint_paths(asset.skeleton))
    skeleton.CreateJointNamesAttr(list(asset.skeleton.names))
    # USD's matrices act on rows: they are the transposes of ours.
    skeleton.CreateRestTransformsAttr(pxr.Vt.Matrix4dArray([pxr.Gf.Matrix4d(m.T.tolist()) for m in local]))
    skeleton.CreateBindTransformsAttr(pxr.Vt.Matrix4dArray([pxr.Gf.Matrix4d(m.T.tolist()) for m in world]))
    pxr.UsdSkel.BindingAPI.Apply(skeleton.GetPrim())
    return skeleton


def _define_mesh(stage: Any, asset: RiggedAsset, skeleton: Any) -> None:
    pxr = _pxr()
    mesh = pxr.UsdGeom.Mesh.Define(stage, "/character/body")
    faces = asset.mesh.faces.cpu().numpy().astype(np.int32)
    vertices = asset.mesh.vertices.detach().float().cpu().numpy()
    mesh.CreatePointsAttr(pxr.Vt.Vec3fArray.FromNumpy(vertices))
    mesh.CreateFaceVertexCountsAttr(pxr.Vt.IntArray.FromNumpy(np.full(len(faces), 3, np.int32)))
    mesh.CreateFaceVertexIndicesAttr(pxr.Vt.IntArray.FromNumpy(faces.reshape(-1).copy()))
    mesh.CreateSubdivisionSchemeAttr(pxr.UsdGeom.Tokens.none)
    mesh.CreateExtentAttr(pxr.Vt.Vec3fArray.FromNumpy(np.stack([vertices.min(0), vertices.max(0)])))
    linear = srgb_to_linear(asset.mesh.colors.detach().cpu().numpy()).astype(np.float32)
    colors = mesh.CreateDisplayColorPrimvar(pxr.UsdGeom.Tokens.vertex)
    colors.Set(pxr.Vt.Vec3fArray.FromNumpy(linear))
    if asset.mesh.uvs is not None:
        st = asset.mesh.uvs.detach().float().cpu().numpy() * [1, -1] + [0, 1]  # USD's v = 0 is the lowest row
        primvar = pxr.UsdGeom.PrimvarsAPI(mesh).CreatePrimvar("st", pxr.Sdf.ValueTypeNames.TexCoord2fArray, "vertex")
        primvar.Set(pxr.Vt.Vec2fArray.FromNumpy(st.astype(np.float32)))
    binding = pxr.UsdSkel.BindingAPI.Apply(mesh.GetPrim())
    binding.CreateSkeletonRel().SetTargets([skeleton.GetPath()])
    binding.CreateGeomBindTransformAttr(pxr.Gf.Matrix4d(1.0))
    influences = asset.weights.joints.shape[1]
    joints = asset.weights.joints.cpu().numpy().astype(np.int32).reshape(-1)
    values = asset.weights.values.detach().float().cpu().numpy().reshape(-1)
    binding.CreateJointIndicesPrimvar(False, influences).Set(pxr.Vt.IntArray.FromNumpy(joints.copy()))
    binding.CreateJointWeightsPrimvar(False, influences).Set(pxr.Vt.FloatArray.FromNumpy(values.copy()))


def _define_animation(stage: Any, skeleton: Skeleton, motion: Motion, target: Any) -> None:
    pxr = _pxr()
    name = re.sub(r"\W", "_", motion.name, flags=re.ASCII) or "motion"
    animation = pxr.UsdSkel.Animation.Define(stage, f"/character/skeleton/{'_' + name if name[0].isdigit() else name}")
    animation.GetPrim().SetCustomDataByKey("name", motion.name)
    animation.CreateJointsAttr(joint_paths(skeleton))
    stage.SetTimeCodesPerSecond(motion.fps)
    stage.SetFramesPerSecond(motion.fps)
    stage.SetStartTimeCode(0)
    stage.SetEndTimeCode(len(motion) - 1)
    rest = skeleton.T_parent_joint.double()
    pose = motion.pose
    rotations = matrix_to_quaternion(rest[:, :3, :3] @ quaternion_to_matrix(pose.rotations.detach().double()))
    translations = rest[:, :3, 3].expand(len(motion), -1, -1).clone()
    if pose.offsets is not None:
        translations += (rest[:, :3, :3] @ pose.offsets.detach().double()[..., None])[..., 0]
    translations[:, 0] += pose.root.detach().double()
    scales = torch.ones_like(translations) if pose.scales is None else pose.scales.detach().double()
    turn, move, size = (
        animation.CreateRotationsAttr(),
        animation.CreateTranslationsAttr(),
        animation.CreateScalesAttr(),
    )
    for frame in range(len(motion)):
        quats = [pxr.Gf.Quatf(w, x, y, z) for w, x, y, z in rotations[frame].tolist()]
        turn.Set(pxr.Vt.QuatfArray(quats), frame)
        move.Set(pxr.Vt.Vec3fArray.FromNumpy(translations[frame].float().numpy()), frame)
        if frame == 0 or pose.scales is not None:
            size.Set(pxr.Vt.Vec3hArray.FromNumpy(scales[frame].numpy().astype(np.float16)), frame)
    pxr.UsdSkel.BindingAPI(target.GetPrim()).CreateAnimationSourceRel().SetTargets([animation.GetPath()])
