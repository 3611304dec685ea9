"""Bring an asset into our frame (metres, +Y up, facing +Z, feet on y = 0) in a way that export can undo."""

import math
import warnings
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.asset.axes import Axis
from jigdoll.asset.orientation import guess_frame
from jigdoll.errors import JigdollError, RepairWarning
from jigdoll.formats.joints import free_skeleton
from jigdoll.kinematics import world_rest
from jigdoll.math.transforms import apply, transform
from jigdoll.types import Motion, Pose, RiggedAsset, Skeleton

_LARGEST, _SMALLEST, _USUAL = 20.0, 0.02, 2.0
"""Beyond these sizes [m] a file's unit is not metres, and the power of ten is taken that makes the body most usual.

Of the 305 characters of the corpus 68 are larger than 20 units: animals drawn in tenths of a metre (a tiger of 25, a
giraffe of 38) and a fox in centimetres.
"""
_SURE = 0.25
"""Below this confidence the guess of the frame is announced."""


def direction(axis: Axis) -> Float[Tensor, "3"]:
    """The unit vector that an axis name means."""
    out = torch.zeros(3)
    out["xyz".index(axis[1])] = 1.0 if axis[0] == "+" else -1.0
    return out


def normalize(
    asset: RiggedAsset,
    *,
    up: Axis | None = None,
    forward: Axis | None = None,
    scale: float | None = None,
    faces_z: bool = False,
) -> RiggedAsset:
    """The asset in our frame; `up` and `forward` name axes of the file, `scale` is metres per unit of the file.

    `faces_z` says that +Z is the front of the file's format, which counts where nothing better tells.
    """
    if scale is not None and not 0 < scale < float("inf"):
        raise JigdollError(f"a scale of {scale:g} metres per unit makes no body; give a number above 0")
    if not asset.has_mesh:
        return _normalize_motion(asset, up=up, forward=forward, scale=scale)
    rest = world_rest(asset.skeleton.parents, asset.skeleton.T_parent_joint)
    guess = guess_frame(
        asset.mesh.vertices,
        asset.mesh.faces,
        up=None if up is None else direction(up),
        forward=None if forward is None else direction(forward),
        joint_names=asset.skeleton.names,
        joint_positions=rest[:, :3, 3],
        faces_z=faces_z,
    )
    if guess.confidence < _SURE:
        warnings.warn(
            f"{asset.name}: which way it faces is a guess ({'; '.join(guess.reasons[-2:])}); "
            "overrule it with --up and --forward",
            RepairWarning,
            stacklevel=2,
        )
    turned = apply(guess.T_world_file, asset.mesh.vertices)
    size = float((turned.amax(0) - turned.amin(0)).max())
    unit, repairs = _unit(asset.name, size, scale)
    lift = torch.tensor([0.0, -unit * float(turned[:, 1].min()), 0.0])
    T = transform(unit * guess.T_world_file[:3, :3], unit * guess.T_world_file[:3, 3] + lift)
    return _with_repairs(transform_asset(asset, T), repairs)


def _normalize_motion(asset: RiggedAsset, *, up: Axis | None, forward: Axis | None, scale: float | None) -> RiggedAsset:
    """Motion without a body: in metres, and turned only as it is told; the ground stays where the file has it."""
    joints = world_rest(asset.skeleton.parents, asset.skeleton.T_parent_joint)[:, :3, 3]
    size = float((joints.amax(0) - joints.amin(0)).max())
    unit, repairs = _unit(asset.name, size, scale)
    y = direction(up or "+y")
    z = direction(forward) if forward is not None else direction("+z" if (up or "+y")[1] != "z" else "-y")
    if abs(float(y @ z)) > 0.5:
        raise JigdollError("forward and up point the same way; give two directions at a right angle")
    turn = torch.stack([torch.linalg.cross(y, z), y, z])
    return _with_repairs(transform_asset(asset, transform(unit * turn, torch.zeros(3))), repairs)


def _with_repairs(asset: RiggedAsset, repairs: tuple[str, ...]) -> RiggedAsset:
    if asset.source is None or not repairs:
        return asset
    return replace(asset, source=replace(asset.source, repairs=(*asset.source.repairs, *repairs)))


def transform_asset(asset: RiggedAsset, T_new_old: Float[Tensor, "4 4"]) -> RiggedAsset:
    """The same asset in another frame: mesh, skeleton, clips, and the way back to its file."""
    unit = float(torch.linalg.det(T_new_old[:3, :3]).pow(1 / 3))
    turn = T_new_old[:3, :3] / unit
    source = asset.source
    if source is not None:
        shrink = torch.diag(torch.tensor([unit, unit, unit, 1.0]))
        source = replace(
            source, T_world_file=T_new_old @ source.T_world_file, T_joint_node=shrink @ source.T_joint_node
        )
    return replace(
        asset,
        mesh=replace(asset.mesh, vertices=apply(T_new_old, asset.mesh.vertices)),
        skeleton=_transform_skeleton(asset.skeleton, T_new_old, unit),
        clips={name: _transform_motion(clip, turn, unit) for name, clip in asset.clips.items()},
        source=source,
    )


def _transform_skeleton(skeleton: Skeleton, T_new_old: Float[Tensor, "4 4"], unit: float) -> Skeleton:
    local = skeleton.T_parent_joint.clone()
    local[0] = T_new_old @ local[0]
    local[0, :3, :3] /= unit
    local[1:, :3, 3] *= unit
    return free_skeleton(skeleton.names, skeleton.parents, local)


def _transform_motion(motion: Motion, turn: Float[Tensor, "3 3"], unit: float) -> Motion:
    pose = motion.pose
    offsets = None if pose.offsets is None else unit * pose.offsets
    return replace(motion, pose=Pose(unit * pose.root @ turn.T, pose.rotations, offsets, pose.scales))


def _unit(name: str, size: float, scale: float | None) -> tuple[float, tuple[str, ...]]:
    """Metres per unit: 1 for anything that could be a creature in metres, else the power of ten that makes it one."""
    if scale is not None:
        return scale, ()
    if _SMALLEST <= size <= _LARGEST or size <= 0:
        return 1.0, ()
    unit = 10.0 ** -round(math.log10(size / _USUAL))
    repair = (
        f"{size:.3g} units is no size for a creature in metres; taken as {unit:g} m a unit, "
        f"which makes {size * unit:.2g} m (--scale overrules)"
    )
    warnings.warn(f"{name}: {repair}", RepairWarning, stacklevel=4)
    return unit, (repair,)
