"""Between the joints of a rig and the arrays of the pose space."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from jigdoll.errors import RigError
from jigdoll.kinematics import forward
from jigdoll.math.rotations import matrix_to_quaternion
from jigdoll.posespace.figure import STATIONS, Figure, figure_of
from jigdoll.posespace.layout import RATE, STANDS, STILL, pack, unpack
from jigdoll.rig.anatomy import Anatomy
from jigdoll.rig.retarget.decode import decode
from jigdoll.rig.retarget.limb_motion import NECK, TAIL, TRUNK, chain_centres, encode, limb_bones, trunk_of
from jigdoll.rig.retarget.turns import station_shares
from jigdoll.types import Motion, Pose

NEAR_GROUND = 0.12
"""An ankle no higher than this above its height at rest may stand [leg lengths]."""


@dataclass(frozen=True, eq=False)
class Body:
    """A body and its stick figure."""

    anatomy: Anatomy
    figure: Figure

    @property
    def unit(self) -> float:
        """The length in which the pose space measures this body [m]."""
        return self.anatomy.leg_length if self.anatomy.grounded else self.anatomy.body_length


def body_of(anatomy: Anatomy) -> Body:
    """The body of an anatomy; refused where a rest pose is broken."""
    if not np.isfinite(anatomy.T_rest).all():
        raise RigError(f"{anatomy.asset.name}: the rest pose holds numbers that are not finite; repair the file")
    if float(np.ptp(anatomy.T_rest[:, :3, 3], axis=0).max()) < 1e-9:
        raise RigError(f"{anatomy.asset.name}: all joints are at one place; there is nothing to pose")
    return Body(anatomy, figure_of(anatomy))


def natural_pose(body: Body) -> Pose:
    """The pose in which the body carries itself, over the origin."""
    joints = len(body.anatomy.skeleton)
    return from_world(body, Pose(torch.zeros(3), torch.zeros(joints, 4)), body.anatomy.R_neutral)


def from_world(body: Body, pose: Pose, R_world: Float[ndarray, "joints 3 3"]) -> Pose:
    """A pose with its joints turned as told, in the world."""
    rest = body.anatomy.T_rest[:, :3, :3]
    local = np.empty_like(R_world)
    for joint, parent in enumerate(body.anatomy.skeleton.parents):
        above, still = (np.eye(3), rest[joint]) if parent < 0 else (R_world[parent], rest[parent].T @ rest[joint])
        local[joint] = (above @ still).T @ R_world[joint]
    return Pose(pose.root, matrix_to_quaternion(torch.from_numpy(local)).to(pose.rotations))


def to_array(body: Body, motion: Motion, *, travel: bool = False) -> Float[ndarray, "parts frames channels"]:
    """A motion of the rig as the pose space sees it, at the pose space's rate."""
    if motion.pose.rotations.shape[1] != len(body.anatomy.skeleton):
        count = motion.pose.rotations.shape[1]
        raise RigError(f"{motion.name}: the clip moves {count} joints, the rig has {len(body.anatomy.skeleton)}")
    if not all(bool(part.isfinite().all()) for part in (motion.pose.root, motion.pose.rotations)):
        raise RigError(f"{motion.name}: the clip holds numbers that are not finite; cut those frames out")
    values = pack(encode(body.anatomy, motion, travel=travel), body.figure)
    return resampled(values, motion.fps, RATE)


def resampled(values: Float[ndarray, "parts frames channels"], fps: float, rate: float) -> ndarray:
    """An array at another rate, along straight lines between frames."""
    frames = values.shape[1]
    if frames == 1 or fps == rate:
        return values
    count = round((frames - 1) / fps * rate) + 1
    at = np.linspace(0, frames - 1, count)
    left = np.minimum(at.astype(int), frames - 2)
    share = (at - left)[None, :, None]
    return values[:, left] * (1 - share) + values[:, left + 1] * share


def to_motion(
    body: Body,
    values: Float[ndarray, "parts frames channels"],
    *,
    rate: float = RATE,
    fps: float = 30.0,
    name: str = "pose",
    lock: bool = True,
) -> Motion:
    """An array at its own rate on the joints of the rig; with `lock` feet that stand stay where they stand."""
    limb_motion = unpack(np.asarray(values), body.figure, rate=rate, fps=fps, name=name)
    return decode(limb_motion, body.anatomy, lock=lock and len(limb_motion) > 2)


def to_poses(body: Body, values: Float[ndarray, "poses parts channels"]) -> Pose:
    """Single poses on the joints of the rig, each over the origin, none below the ground."""
    poses = [decode(unpack(one[:, None], body.figure), body.anatomy, lock=False).pose for one in values]
    root = torch.cat([pose.root for pose in poses])
    pose = Pose(root, torch.cat([pose.rotations for pose in poses]))
    if not body.anatomy.legs:
        return pose
    world = forward(body.anatomy.skeleton, pose)
    low = torch.stack([_soles(body, leg, world) for leg in range(len(body.anatomy.legs))], 1).amin(1)
    lift = torch.zeros_like(pose.root)
    lift[:, 1] = (-low).clamp_min(0)
    return Pose(pose.root + lift, pose.rotations)


def _soles(body: Body, number: int, world: Float[Tensor, "poses joints 4 4"]) -> Float[Tensor, " poses"]:
    leg = body.anatomy.legs[number]
    T = world[:, torch.from_numpy(np.asarray(leg.contact_joints)).long()]
    points = torch.from_numpy(np.asarray(leg.contact_points)).to(T)
    return ((T[..., :3, :3] @ points[..., None])[..., 0] + T[..., :3, 3])[..., 1].amin(1)


def pose_array(body: Body, pose: Pose) -> Float[Tensor, "parts frames channels"]:
    """Poses as the pose space sees them, each for itself; differentiable.

    The same numbers as `to_array` gives, but for the root's velocities (none) and the heading (of each pose alone).
    """
    anatomy, figure = body.anatomy, body.figure
    T = forward(anatomy.skeleton, pose if pose.root.ndim > 1 else pose[None])
    R, P = T[..., :3, :3], T[..., :3, 3]
    neutral = torch.from_numpy(anatomy.R_neutral).to(R)
    since = R @ neutral.transpose(-1, -2)
    ahead = since[:, anatomy.pelvis, :, 2].detach()
    angle = torch.atan2(ahead[:, 0], ahead[:, 2])
    H = _yaw(angle)
    free = H.transpose(-1, -2)[:, None] @ since
    rest = torch.from_numpy(anatomy.T_rest[:, :3, :3]).to(R)
    since_rest = H.transpose(-1, -2)[:, None] @ R @ rest.transpose(-1, -2)
    root = free[:, anatomy.pelvis]
    trunk = _stations(anatomy, trunk_of(anatomy), free, TRUNK)
    rows = [_row(torch.cat([root[:, None], trunk], 1), None)]
    rows[0] = torch.cat([rows[0], _root_channels(body, P)], -1)
    for kind, chain, count, base in (("neck", anatomy.neck, NECK, trunk[:, -1]), ("tail", anatomy.tail, TAIL, root)):
        if kind in figure.kinds:
            turns = _row(_stations(anatomy, chain, free, count), base)
            rows.append(torch.cat([turns, turns.new_zeros(len(turns), 4)], -1))
    lead = len(rows)
    for i in range(len(figure.limbs)):
        base = trunk[:, -1] if figure.on_chest[lead + i] else root
        rows.append(_limb_row(body, i, lead + i, since_rest, P, H, base))
    return torch.stack(rows)


def _yaw(angle: Float[Tensor, " frames"]) -> Float[Tensor, "frames 3 3"]:
    c, s, o, e = angle.cos(), angle.sin(), torch.zeros_like(angle), torch.ones_like(angle)
    return torch.stack([c, o, s, o, e, o, -s, o, c], -1).unflatten(-1, (3, 3))


def _nearest(matrices: Float[Tensor, "*batch 3 3"]) -> Float[Tensor, "*batch 3 3"]:
    """The rotations nearest to matrices that are rotations almost (Newton's steps of the polar decomposition)."""
    for _ in range(5):
        matrices = 0.5 * (matrices + torch.linalg.inv(matrices).transpose(-1, -2))
    return matrices


def _stations(anatomy: Anatomy, chain: tuple[int, ...], turns: Tensor, count: int) -> Tensor:
    """The turns along a chain at evenly spread places."""
    shares = station_shares(chain_centres(anatomy, chain), count)
    return _nearest(torch.einsum("sk,fkab->fsab", torch.from_numpy(shares).to(turns), turns[:, list(chain)]))


def _row(turns: Float[Tensor, "frames stations 3 3"], base: Tensor | None) -> Float[Tensor, "frames columns"]:
    """Each station seen from the one before, as two columns; stations that are not there do not turn."""
    first = turns[:, :1] if base is None else base.transpose(-1, -2)[:, None] @ turns[:, :1]
    local = torch.cat([first, turns[:, :-1].transpose(-1, -2) @ turns[:, 1:]], 1)
    columns = torch.cat([local[..., 0], local[..., 1]], -1).flatten(1)
    still = torch.from_numpy(STILL[: 6 * STATIONS]).to(columns)
    return torch.cat([columns, still[columns.shape[1] :].expand(len(columns), -1)], -1)


def _root_channels(body: Body, P: Float[Tensor, "frames joints 3"]) -> Float[Tensor, "frames 4"]:
    out = P.new_zeros(len(P), 4)
    height = P[:, body.anatomy.pelvis, 1] / body.unit
    out[:, 2] = 1 + (height - body.figure.hip) / body.figure.rise
    return out


def _limb_row(
    body: Body, limb: int, part: int, since_rest: Tensor, P: Tensor, H: Tensor, base: Float[Tensor, "frames 3 3"]
) -> Float[Tensor, "frames channels"]:
    figure, parts = body.figure, body.anatomy.parts[limb]
    rests = torch.from_numpy(figure.rests[limb]).to(P)
    turns, last = [], base
    for station, bone in enumerate(limb_bones(parts)):
        if bone is not None:
            last = since_rest[:, bone[0]] @ rests[station]
        turns.append(last)
    end = base.transpose(-1, -2) @ H.transpose(-1, -2) @ (P[:, parts.end] - P[:, parts.root])[..., None] / parts.length
    stacked, end = torch.stack(turns, 1), end[..., 0]
    if figure.mirrored[part]:
        M = torch.diag(P.new_tensor([-1.0, 1.0, 1.0]))
        stacked, base, end = M @ stacked @ M, M @ base @ M, end * P.new_tensor([-1.0, 1.0, 1.0])
    contact = P.new_full((len(P), 1), -STANDS)
    if parts.limb.kind == "leg":
        rise = P[:, parts.end, 1] - float(body.anatomy.T_rest[parts.end, 1, 3])
        contact = torch.where(rise.detach() < NEAR_GROUND * body.unit, STANDS, -STANDS)[:, None].to(P)
    return torch.cat([_row(stacked, base), end, contact], -1)
