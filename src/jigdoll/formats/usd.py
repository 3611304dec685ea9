"""UsdSkel in both directions: mesh, skeleton, weights, colours and one clip, in metres, Y-up.

usd-core is an optional library. A joint's USD name is its path from the root (`pelvis/spine_1`); joint names that USD
does not allow are made valid, and the originals are kept as custom data.
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
from jigdoll.formats.files import atomic_write, read_limited
from jigdoll.formats.joints import free_skeleton, unique_names
from jigdoll.formats.polygons import triangulate
from jigdoll.formats.rest import rigid_rest, skeleton_of, world_to_motion
from jigdoll.kinematics import world_rest
from jigdoll.math.colors import linear_to_srgb, srgb_to_linear
from jigdoll.math.rotations import matrix_to_quaternion, quaternion_to_matrix
from jigdoll.types import Mesh, Motion, RiggedAsset, Skeleton, Source, Weights

MAX_BYTES = 1024**3
MAX_FRAMES = 100_000
_SUFFIXES = (".usd", ".usda", ".usdc", ".usdz")


def _pxr() -> Any:
    """OpenUSD's modules; its stubs know half of them, so they pass as Any."""
    try:
        from pxr import Gf, Sdf, Tf, Usd, UsdGeom, UsdSkel, UsdUtils, Vt
    except ImportError as error:
        raise MissingExtra("reading and writing USD", "usd") from error
    return SimpleNamespace(Gf=Gf, Sdf=Sdf, Tf=Tf, Usd=Usd, UsdGeom=UsdGeom, UsdSkel=UsdSkel, UsdUtils=UsdUtils, Vt=Vt)


# Writing


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


# Reading


def read(path: str | os.PathLike[str]) -> RiggedAsset:
    """Read the first skeleton of a USD file with the meshes bound to it, or a bare mesh, in metres and Y-up."""
    pxr = _pxr()
    path = Path(path)
    read_limited(path, MAX_BYTES)
    quiet = pxr.UsdUtils.CoalescingDiagnosticDelegate()  # USD talks to stderr by itself
    try:
        stage = pxr.Usd.Stage.Open(str(path))
        T_world_file = _to_metres(stage)
        meshes = [pxr.UsdGeom.Mesh(prim) for prim in stage.Traverse() if prim.IsA(pxr.UsdGeom.Mesh)]
        skeletons = [pxr.UsdSkel.Skeleton(prim) for prim in stage.Traverse() if prim.IsA(pxr.UsdSkel.Skeleton)]
        if not meshes:
            raise FileFormatError(f"{path}: there is no mesh in the file; export the character with its mesh")
        if len(skeletons) > 1:
            warnings.warn(f"{path}: {len(skeletons)} skeletons; the first one is used", RepairWarning, stacklevel=2)
        with np.errstate(all="ignore"):  # what is not finite is refused at the end
            return _read_character(path, stage, meshes, skeletons[0] if skeletons else None, T_world_file)
    except pxr.Tf.ErrorException as error:
        raise FileFormatError(f"{path}: this USD file cannot be read ({_reason(error)}); export it again") from error
    except (ValueError, IndexError, TypeError, RuntimeError) as error:
        raise FileFormatError(f"{path}: the file is damaged ({type(error).__name__}: {error})") from error
    finally:
        quiet.TakeUncoalescedDiagnostics()


def _reason(error: Exception) -> str:
    """The first thing that USD says, which quotes the file and may therefore be no text at all."""
    try:
        told = re.findall(r": '([^']{3,})", str(error))
    except UnicodeDecodeError:
        return "there are bytes in it that are no text"
    return told[0].strip()[:300] if told else type(error).__name__


def _to_metres(stage: Any) -> np.ndarray:
    """The similarity from the stage's unit and up axis to ours."""
    pxr = _pxr()
    T = np.eye(4)
    if pxr.UsdGeom.GetStageUpAxis(stage) == pxr.UsdGeom.Tokens.z:
        T[:3, :3] = [[1, 0, 0], [0, 0, 1], [0, -1, 0]]
    T[:3] *= pxr.UsdGeom.GetStageMetersPerUnit(stage)
    return T


def _read_character(path: Path, stage: Any, meshes: list[Any], skeleton: Any, T_world_file: np.ndarray) -> RiggedAsset:
    pxr = _pxr()
    placed = pxr.UsdGeom.XformCache(pxr.Usd.TimeCode.EarliestTime())
    if skeleton is None:
        joints, rest, stretch = free_skeleton(("root",), (-1,), torch.eye(4)[None]), np.eye(4)[None], np.eye(4)[None]
        paths: list[str] = []
        clips: dict[str, Motion] = {}
    else:
        paths, parents, names = _joint_tree(path, skeleton)
        T_file_skeleton = _matrix(placed.GetLocalToWorldTransform(skeleton.GetPrim()))
        bind = np.array([_matrix(m) for m in skeleton.GetBindTransformsAttr().Get() or []])
        if len(bind) != len(paths):
            raise FileFormatError(f"{path}: {len(bind)} bind transforms for {len(paths)} joints; export it again")
        rest, stretch, _ = rigid_rest(T_world_file @ T_file_skeleton @ bind)
        joints = skeleton_of(names, parents, rest)
        clips = _read_clips(path, stage, skeleton, paths, parents, rest, stretch, T_world_file @ T_file_skeleton)
    mesh, weights = _read_meshes(path, meshes, paths, T_world_file, placed)
    T = torch.tensor(T_world_file, dtype=torch.float32)
    source = Source(path, "usd", T, tuple(range(len(joints))), torch.tensor(stretch, dtype=torch.float32))
    return RiggedAsset(path.stem, mesh, joints, weights, clips, source)


def _joint_tree(path: Path, skeleton: Any) -> tuple[list[str], tuple[int, ...], list[str]]:
    """Joint paths, parents and names; the tree must have one root and come parents first, as USD demands."""
    paths = [str(joint) for joint in skeleton.GetJointsAttr().Get() or []]
    place = {joint: i for i, joint in enumerate(paths)}
    parents = []
    for joint in paths:
        above = joint.rpartition("/")[0]
        while above and above not in place:
            above = above.rpartition("/")[0]
        parents.append(place[above] if above else -1)
    if not paths or parents.count(-1) != 1 or parents[0] != -1 or any(p >= i for i, p in enumerate(parents)):
        raise FileFormatError(f"{path}: the skeleton needs one root that comes first; export it with a single root")
    names = [str(name) for name in skeleton.GetJointNamesAttr().Get() or []]
    if len(names) != len(paths):
        names = [joint.rpartition("/")[2] for joint in paths]
    return paths, tuple(parents), list(unique_names(names, where=str(path)))


def _matrix(m: Any) -> np.ndarray:
    """A USD matrix (rows) as ours (columns)."""
    return np.array(m, dtype=np.float64).reshape(4, 4).T


def _read_clips(
    path: Path,
    stage: Any,
    skeleton: Any,
    paths: list[str],
    parents: tuple[int, ...],
    rest: np.ndarray,
    stretch: np.ndarray,
    T_world_skeleton: np.ndarray,
) -> dict[str, Motion]:
    """The clip that drives the skeleton, sampled at the stage's rate."""
    pxr = _pxr()
    query = pxr.UsdSkel.Cache().GetSkelQuery(skeleton)
    animation = query.GetAnimQuery() if query else None
    if not animation or not animation.JointTransformsMightBeTimeVarying():
        return {}
    times = animation.GetJointTransformTimeSamples()
    fps = float(stage.GetTimeCodesPerSecond())
    count = round(times[-1] - times[0]) + 1 if len(times) else 0
    if not 1 <= count <= MAX_FRAMES or not 0 < fps <= 1e4:
        raise FileFormatError(f"{path}: a clip of {count} frames at {fps:g} a second cannot be read")
    world = np.zeros((count, len(paths), 4, 4))
    for frame in range(count):
        locals_ = query.ComputeJointLocalTransforms(times[0] + frame)
        for joint, parent in enumerate(parents):
            local = _matrix(locals_[joint])
            world[frame, joint] = local if parent < 0 else world[frame, parent] @ local
    prim = animation.GetPrim()
    name = str(prim.GetCustomDataByKey("name") or prim.GetName())
    motion = world_to_motion(parents, rest, T_world_skeleton @ world, stretch, fps=fps, name=name)
    return {name: motion}


def _read_meshes(
    path: Path, meshes: list[Any], paths: list[str], T_world_file: np.ndarray, placed: Any
) -> tuple[Mesh, Weights]:
    """All meshes as one, in the bind pose of our world."""
    parts = [_read_mesh(path, mesh, paths, T_world_file, placed) for mesh in meshes]
    starts = np.cumsum([0, *(len(points) for points, *_ in parts)])
    widest = max(part[4].shape[1] for part in parts)
    pad = [np.pad(part[k], ((0, 0), (0, widest - part[4].shape[1]))) for k in (3, 4) for part in parts]
    faces = np.concatenate([part[1] + start for part, start in zip(parts, starts, strict=False)])
    vertices = np.concatenate([part[0] for part in parts])
    if not len(faces) or not (np.abs(vertices) < 1e9).all():
        raise FileFormatError(f"{path}: the mesh is empty, or larger than any real character; export it again")
    mesh = Mesh(
        vertices=torch.tensor(vertices, dtype=torch.float32),
        faces=torch.tensor(faces, dtype=torch.int64),
        colors=torch.tensor(np.concatenate([part[2] for part in parts]), dtype=torch.float32),
    )
    joints, values = np.concatenate(pad[: len(parts)]), np.concatenate(pad[len(parts) :])
    return mesh, Weights(torch.tensor(joints, dtype=torch.int64), torch.tensor(values, dtype=torch.float32))


def _read_mesh(
    path: Path, mesh: Any, paths: list[str], T_world_file: np.ndarray, placed: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Points in our world, triangles, sRGB colours, joints and weights of one mesh."""
    pxr = _pxr()
    points = np.array(mesh.GetPointsAttr().Get() or [], dtype=np.float64).reshape(-1, 3)
    counts = np.array(mesh.GetFaceVertexCountsAttr().Get() or [], dtype=np.int64)
    indices = np.array(mesh.GetFaceVertexIndicesAttr().Get() or [], dtype=np.int64)
    where = f"{path}, {mesh.GetPath()}"
    if counts.sum() != len(indices) or (len(indices) and not 0 <= indices.min() <= indices.max() < len(points)):
        raise FileFormatError(f"{where}: faces name points that are not there; export the file again")
    keep = counts >= 3
    corners = indices[np.repeat(keep, counts)]
    flat, _ = triangulate(points[corners], counts[keep]) if keep.any() else (np.zeros((0, 3), int), None)
    faces = corners[flat]
    if mesh.GetOrientationAttr().Get() == pxr.UsdGeom.Tokens.leftHanded:
        faces = faces[:, ::-1]
    colors = np.tile([[0.8, 0.8, 0.8]], (len(points), 1))
    painted = np.array(mesh.GetDisplayColorPrimvar().ComputeFlattened() or [], dtype=np.float64).reshape(-1, 3)
    if len(painted) in (1, len(points)):
        colors = linear_to_srgb(np.broadcast_to(painted, (len(points), 3)))
    binding = pxr.UsdSkel.BindingAPI(mesh.GetPrim())
    T = _matrix(placed.GetLocalToWorldTransform(mesh.GetPrim()))
    joints, weights = np.zeros((len(points), 1), np.int64), np.ones((len(points), 1))
    if paths and binding.GetJointIndicesPrimvar().HasValue():
        geometry = binding.GetGeomBindTransformAttr().Get()
        T = _matrix(geometry) if geometry is not None else np.eye(4)
        joints, weights = _read_weights(where, binding, paths, len(points))
    T = T_world_file @ T
    return points @ T[:3, :3].T + T[:3, 3], faces, colors, joints, weights


def _read_weights(where: str, binding: Any, paths: list[str], count: int) -> tuple[np.ndarray, np.ndarray]:
    influences = binding.GetJointIndicesPrimvar().GetElementSize()
    joints = np.array(binding.GetJointIndicesPrimvar().ComputeFlattened() or [], dtype=np.int64)
    values = np.array(binding.GetJointWeightsPrimvar().ComputeFlattened() or [], dtype=np.float64)
    if len(joints) == len(values) == influences:  # one set for the whole mesh
        joints, values = np.tile(joints, count), np.tile(values, count)
    if influences < 1 or len(joints) != len(values) or len(joints) != count * influences:
        raise FileFormatError(f"{where}: joint indices and weights do not fit the points; export the file again")
    order = [str(joint) for joint in binding.GetJointsAttr().Get() or paths]
    to_joint = np.array([paths.index(joint) if joint in paths else -1 for joint in order])
    joints, values = joints.reshape(count, influences), values.reshape(count, influences)
    known = (joints >= 0) & (joints < len(order)) & np.isfinite(values) & (values > 0)
    mapped = np.where(known, to_joint[np.where(known, joints, 0)], 0)
    values = np.where(known & (mapped >= 0), values, 0.0)
    lost = values.sum(1) <= 0
    if lost.any():
        message = f"{where}: {int(lost.sum())} points without any weight follow the root"
        warnings.warn(message, RepairWarning, stacklevel=6)
        mapped[lost, 0], values[lost, 0] = 0, 1.0
    return np.where(values > 0, mapped, 0), values / values.sum(1, keepdims=True)
