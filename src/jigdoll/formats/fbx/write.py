"""Characters and clips to binary FBX, in centimetres and Y up: what Unity, Maya, MotionBuilder and Blender open.

Every file is written anew, whatever the asset came from: mesh, skin, joints, base colours with their textures, clips.
Other parts of a material (metal, gloss, normal maps) are not carried over, because assets do not hold them.

A joint's rest rotation is its PreRotation, so that all angles are zero at rest, as in Maya.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from jigdoll.errors import JigdollError
from jigdoll.formats.angles import euler_angles
from jigdoll.formats.fbx.binary import Record
from jigdoll.formats.fbx.document import ROOT, SECOND, Document, plain_name
from jigdoll.formats.fbx.looks import add_materials
from jigdoll.formats.files import write_bytes
from jigdoll.formats.joints import check_motion, unique_names
from jigdoll.formats.polygons import smooth_normals
from jigdoll.kinematics import world_rest
from jigdoll.math.rotations import quaternion_to_matrix
from jigdoll.types import Motion, RiggedAsset, Skeleton

CENTIMETRES = 100.0
_XYZ = (2, 1, 0)
"""FBX's order XYZ turns about X first: R = Rz Ry Rx."""
_SAME_PLACE = 1e-6
_SAME_SCALE = 1e-5
_NUDGE = 3e-6, 5e-6
"""How far sliding joints are set off the line of their parent: [m], and a part of the body's length more."""
_LINEAR = 24836
"""Flags of a key: linear to the next one, with the tangents that such keys usually carry."""
_TANGENTS = np.array([0, 0, 0x0D050D05, 0], "<u4").view("<f4")
"""No slopes, and the usual weights of a third each (two 16 bit numbers in the place of a float)."""


def write(path: str | os.PathLike[str], asset: RiggedAsset, motions: Sequence[Motion] = ()) -> Path:
    """Write a new FBX file with the character and these clips; an asset without a mesh becomes joints and clips."""
    path = Path(path)
    _check(asset, motions)
    document = Document()
    rig = _rig(asset, motions)
    joints = _add_joints(document, rig) if asset.is_rigged or motions else []
    if asset.has_mesh:
        _add_body(document, asset, rig, joints)
    names = unique_names([plain_name(motion.name) for motion in motions], what="clip", where=path.name)
    for name, motion in zip(names, motions, strict=True):
        _add_clip(document, rig, joints, name, motion)
    return write_bytes(path, document.finish(motions[0].fps if motions else 30.0))


def _check(asset: RiggedAsset, motions: Sequence[Motion]) -> None:
    if not asset.has_mesh and not motions:
        raise JigdollError("there is neither a mesh nor a clip to write; choose a clip")
    for motion in motions:
        check_motion(asset.skeleton, motion)
    numbers = {
        "vertices": asset.mesh.vertices,
        "colours": asset.mesh.colors,
        "texture coordinates": asset.mesh.uvs,
        "materials' colours": torch.tensor([material.color for material in asset.mesh.materials]),
        "skin weights": asset.weights.values,
        "joints at rest": asset.skeleton.T_parent_joint,
    }
    for what, values in numbers.items():
        if values is not None and not bool(values.isfinite().all()):
            raise JigdollError(f"{asset.name}: the {what} hold NaN or infinity; nothing was written")


# ------------------------------------------------------------------------------------------------------------ joints


@dataclass(frozen=True, eq=False)
class _Rig:
    """The joints as the file holds them: `nudge` aside from ours, so that T_file = T_ours @ translation(nudge)."""

    skeleton: Skeleton
    nudge: np.ndarray
    """[m], in each joint's own frame; skinning does not see it."""
    rest: np.ndarray
    """T_parent_joint [joints 4 4]."""


def _rig(asset: RiggedAsset, motions: Sequence[Motion]) -> _Rig:
    """Joints that some clip slides and that rest where their parent points are nudged aside.

    Blender draws a joint's bone along its Y axis, connects a child that begins where it ends, and then plays no
    translation of that child; a joint a few micrometres beside the end stays free.
    """
    skeleton = asset.skeleton
    rest = skeleton.T_parent_joint.double().numpy().copy()
    world = world_rest(skeleton.parents, skeleton.T_parent_joint.double()).numpy()
    points = np.concatenate([asset.mesh.vertices.double().numpy(), world[:, :3, 3]])
    size = _NUDGE[0] + _NUDGE[1] * float(np.ptp(points, axis=0).max())
    slides = np.zeros(len(skeleton), bool)
    for motion in motions:
        if motion.pose.offsets is not None:
            slides |= motion.pose.offsets.double().abs().amax((0, 2)).numpy() > _SAME_PLACE
    in_line = (np.hypot(rest[:, 0, 3], rest[:, 2, 3]) < size) & (rest[:, 1, 3] > 0)
    nudge = np.where((slides & in_line)[:, None], size * rest[:, 0, :3], 0.0)  # along the parent's X axis
    nudge[0] = 0.0
    above = nudge[[max(parent, 0) for parent in skeleton.parents]]
    rest[:, :3, 3] += (rest[:, :3, :3] @ nudge[..., None])[..., 0] - above
    return _Rig(skeleton, nudge, rest)


def _add_joints(document: Document, rig: _Rig) -> list[int]:
    """One LimbNode per joint at its rest; their numbers."""
    names = unique_names([plain_name(name) for name in rig.skeleton.names])
    turn = np.degrees(euler_angles(rig.rest[None, :, :3, :3], _XYZ))[0, :, ::-1]
    place = rig.rest[:, :3, 3] * CENTIMETRES
    numbers: list[int] = []
    for joint, parent in enumerate(rig.skeleton.parents):
        number, model = document.add("Model", names[joint], "Model", "LimbNode")
        _set_model(model, place[joint], turn[joint])
        attribute, about = document.add("NodeAttribute", names[joint], "NodeAttribute", "LimbNode")
        about.set("Size", "double", "Number", "", 1.0)
        about.add("TypeFlags", "Skeleton")
        document.connect(attribute, number)
        document.connect(number, ROOT if parent < 0 else numbers[parent])
        numbers.append(number)
    return numbers


def _set_model(model: Record, place: np.ndarray, turn: np.ndarray) -> None:
    """Where a node rests in its parent; scales are handed down as products of matrices do (inherit type 1)."""
    model.add("Version", 232)
    model.set("RotationActive", "bool", "", "", 1)
    model.set("PreRotation", "Vector3D", "Vector", "", *turn.tolist())
    model.set("InheritType", "enum", "", "", 1)
    model.set("DefaultAttributeIndex", "int", "Integer", "", 0)
    model.set("Lcl Translation", "Lcl Translation", "", "A", *place.tolist())
    model.set("Lcl Rotation", "Lcl Rotation", "", "A", 0.0, 0.0, 0.0)
    model.set("Lcl Scaling", "Lcl Scaling", "", "A", 1.0, 1.0, 1.0)
    model.add("Shading", True)
    model.add("Culling", "CullingOff")


# -------------------------------------------------------------------------------------------------- mesh and skin


def _add_body(document: Document, asset: RiggedAsset, rig: _Rig, joints: list[int]) -> None:
    """The mesh at the origin of the scene, its looks, and its skin where there are joints."""
    name = plain_name(asset.name) or "body"
    node, model = document.add("Model", name, "Model", "Mesh")
    _set_model(model, np.zeros(3), np.zeros(3))
    document.connect(node)
    geometry, record = document.add("Geometry", name, "Geometry", "Mesh")
    document.connect(geometry, node)
    mesh = asset.mesh
    faces = mesh.faces.numpy()
    vertices = mesh.vertices.double().numpy()
    ends = faces.astype("<i4")
    ends[:, 2] = ~ends[:, 2]  # the last corner of a polygon is marked so
    record.add("GeometryVersion", 124)
    record.add("Vertices", (vertices * CENTIMETRES).reshape(-1))
    record.add("PolygonVertexIndex", ends.reshape(-1))
    corners = faces.reshape(-1).astype("<i4")
    normals = _layer(record, "LayerElementNormal", "", "ByPolygonVertex", "Direct")
    normals.add("Normals", smooth_normals(vertices, faces)[corners].reshape(-1))
    layers = ["LayerElementNormal"]
    if mesh.uvs is not None:
        coordinates = _layer(record, "LayerElementUV", "UVMap", "ByPolygonVertex", "IndexToDirect")
        coordinates.add("UV", (mesh.uvs.double().numpy() * [1, -1] + [0, 1]).reshape(-1))
        coordinates.add("UVIndex", corners)
        layers.append("LayerElementUV")
    face_materials, painted = add_materials(document, node, mesh, name)
    if painted.any():
        _paint(record, mesh.colors.double().numpy(), faces, painted)
        layers.append("LayerElementColor")
    _layer(record, "LayerElementMaterial", "", "ByPolygon", "IndexToDirect").add("Materials", face_materials)
    layer = record.add("Layer", 0)
    layer.add("Version", 100)
    for kind in [*layers, "LayerElementMaterial"]:
        element = layer.add("LayerElement")
        element.add("Type", kind)
        element.add("TypedIndex", 0)
    if joints:
        _add_skin(document, asset, rig, joints, geometry=geometry, node=node)


def _layer(geometry: Record, kind: str, name: str, mapping: str, reference: str) -> Record:
    layer = geometry.add(kind, 0)
    layer.add("Version", 101)
    layer.add("Name", name)
    layer.add("MappingInformationType", mapping)
    layer.add("ReferenceInformationType", reference)
    return layer


def _paint(geometry: Record, colors: np.ndarray, faces: np.ndarray, painted: np.ndarray) -> None:
    """Colours of the vertices, sRGB as everybody reads them; white on faces that have their colour elsewhere."""
    rgba = np.ones((len(colors) + 1, 4))
    rgba[:-1, :3] = colors
    layer = _layer(geometry, "LayerElementColor", "Color", "ByPolygonVertex", "IndexToDirect")
    layer.add("Colors", rgba.reshape(-1))
    layer.add("ColorIndex", np.where(painted[:, None], faces, len(colors)).reshape(-1).astype("<i4"))


def _add_skin(
    document: Document, asset: RiggedAsset, rig: _Rig, joints: list[int], *, geometry: int, node: int
) -> None:
    """Deformer, one cluster per joint that carries weight (all influences as they are), and the bind pose of all."""
    bind = world_rest(rig.skeleton.parents, torch.from_numpy(rig.rest)).numpy()
    bind[:, :3, 3] *= CENTIMETRES
    skin, record = document.add("Deformer", "", "Deformer", "Skin")
    record.add("Version", 101)
    record.add("Link_DeformAcuracy", 50.0)
    document.connect(skin, geometry)
    influences = asset.weights.joints.numpy(), asset.weights.values.double().numpy()
    rows = np.nonzero(influences[1] > 0)
    owners, weights = influences[0][rows], influences[1][rows]
    for joint, number in enumerate(joints):
        mine = owners == joint
        if not mine.any():
            continue
        cluster, record = document.add("Deformer", asset.skeleton.names[joint], "SubDeformer", "Cluster")
        record.add("Version", 100)
        record.add("UserData", "", "")
        record.add("Indexes", rows[0][mine].astype("<i4"))
        record.add("Weights", weights[mine])
        record.add("Transform", _flat(np.linalg.inv(bind[joint])))
        record.add("TransformLink", _flat(bind[joint]))
        document.connect(cluster, skin)
        document.connect(number, cluster)
    _, pose = document.add("Pose", "bind", "Pose", "BindPose")
    pose.add("Type", "BindPose")
    pose.add("Version", 100)
    pose.add("NbPoseNodes", len(joints) + 1)
    for number, place in zip([node, *joints], [np.eye(4), *bind], strict=True):
        entry = pose.add("PoseNode")
        entry.add("Node", np.int64(number))
        entry.add("Matrix", _flat(place))


def _flat(T: np.ndarray) -> np.ndarray:
    """A matrix column after column."""
    return T.T.astype("<f8").reshape(-1)


# ------------------------------------------------------------------------------------------------------------- clips


def _add_clip(document: Document, rig: _Rig, joints: list[int], name: str, motion: Motion) -> None:
    """One stack with one layer: a key per frame, rotations of all joints, places and scales where they change."""
    times = np.round(np.arange(len(motion)) * (SECOND / motion.fps)).astype("<i8")
    stop = int(times[-1])
    stack, record = document.add("AnimationStack", name, "AnimStack")
    for span, time in (("LocalStart", 0), ("LocalStop", stop), ("ReferenceStart", 0), ("ReferenceStop", stop)):
        record.set(span, "KTime", "Time", "", np.int64(time))
    layer, _ = document.add("AnimationLayer", name, "AnimLayer")
    document.connect(layer, stack)
    document.takes.append((name, stop))
    places, turned, scales = _local(rig, motion)
    angles = np.degrees(euler_angles(turned, _XYZ))[..., ::-1]
    for joint, number in enumerate(joints):
        moves = np.abs(places[:, joint] - rig.rest[joint, :3, 3]).max() > _SAME_PLACE
        _add_curves(document, layer, number, times, "R", "Lcl Rotation", angles[:, joint])
        if joint == 0 or moves:
            _add_curves(document, layer, number, times, "T", "Lcl Translation", places[:, joint] * CENTIMETRES)
        if np.abs(scales[:, joint] - 1).max() > _SAME_SCALE:
            _add_curves(document, layer, number, times, "S", "Lcl Scaling", scales[:, joint])


def _local(rig: _Rig, motion: Motion) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What moves in each frame: places in the parent [m], rotations after the rest, scales [frames joints ...]."""
    pose, skeleton = motion.pose, rig.skeleton
    rest = skeleton.T_parent_joint.double().numpy()
    turned = quaternion_to_matrix(pose.rotations.double()).numpy()
    scales = np.ones(turned.shape[:-1]) if pose.scales is None else pose.scales.double().numpy()
    within = ((turned * scales[..., None, :]) @ rig.nudge[..., None])[..., 0]
    if pose.offsets is not None:
        within = within + pose.offsets.double().numpy()
    above = rig.nudge[[max(parent, 0) for parent in skeleton.parents]]
    places = rest[:, :3, 3] + (rest[:, :3, :3] @ within[..., None])[..., 0] - above
    places[:, 0] += pose.root.double().numpy()
    return places, turned, scales


def _add_curves(
    document: Document, layer: int, joint: int, times: np.ndarray, letter: str, path: str, values: np.ndarray
) -> None:
    """Three curves [frames 3] that drive one property of a joint."""
    node, record = document.add("AnimationCurveNode", letter, "AnimCurveNode")
    document.connect(node, layer)
    document.connect(node, joint, path)
    for axis, column in zip("XYZ", values.T, strict=True):
        record.set(f"d|{axis}", "Number", "", "A", float(column[0]))
        number, curve = document.add("AnimationCurve", "", "AnimCurve")
        curve.add("Default", float(column[0]))
        curve.add("KeyVer", 4009)
        curve.add("KeyTime", times)
        curve.add("KeyValueFloat", column.astype("<f4"))
        curve.add("KeyAttrFlags", np.array([_LINEAR], "<i4"))
        curve.add("KeyAttrDataFloat", _TANGENTS)
        curve.add("KeyAttrRefCount", np.array([len(times)], "<i4"))
        document.connect(number, node, f"d|{axis}")
