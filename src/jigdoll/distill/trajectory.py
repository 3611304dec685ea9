"""The learnable motion: compound angles per joint and a 6-DoF root, per frame (AKD 4.4) or in smooth curves over time.

All that is learned is one tensor `theta [terms rows 3]`: a row of three curves per joint (the root's row is its turn
about its vertical, forward and sideways axis), and a last row for the root's shift. A curve is a sum of temporal basis
functions; with the basis "frames" it is the value at each frame, as in the paper. Curves are a residual around a motion
to start from, and `start_pose` is the one place that says which: a draft, or the rest pose carried along a path.
Rotations are composed with those of the start and the root is added, so that curves of zero give the start itself.
"""

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.distill.options import Basis
from jigdoll.errors import JigdollError
from jigdoll.kinematics import rest_transforms
from jigdoll.math import GRAVITY
from jigdoll.math.rotations import compound_to_quaternion, quaternion_multiply, slerp
from jigdoll.rig.anatomy import Anatomy
from jigdoll.rig.limits import compound_angles, with_default_limits
from jigdoll.types import Motion, Pose, Skeleton

DRAFT_BEAT = 1.0
"""A residual has two harmonics per so much time [s]: less than the draft's own motion, which it is to keep."""


@dataclass(frozen=True, eq=False)
class Trajectory:
    """What a motion may be: everything about the learnable clip but its coefficients."""

    skeleton: Skeleton
    """With limits, and the root's axes along the world's Y, Z and X."""
    basis: Basis
    terms: int
    frames: int
    """Of the clip as the prior sees it."""
    fps: float
    seconds: float
    """Length of the clip; a prior may see more: a short draft goes on, or stands."""
    period: float
    """Of the stride basis [s]."""
    speed: float
    """T_z = v i: the forward speed that the motion starts from [m/s]."""
    turn: float
    """How fast the heading of that path changes [rad/s]."""
    jump_height: float
    """How high each leap of that path flies, one per period [m]; 0 stays on the ground."""
    scales: Float[Tensor, "rows 3"]
    """What one unit of a curve means: radians for joints, metres for the last row. Small is stiff."""
    bounds: Float[Tensor, "joints 3 2"]
    """Turns stay within these [rad] by construction; infinite bounds leave them free."""
    draft: Motion | None = None
    """What the curves are a residual around, at its own rate; None is the rest pose on the path."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of `theta`."""
        return self.terms, len(self.skeleton) + 1, 3

    @property
    def device(self) -> torch.device:
        """Where its curves and poses live."""
        return self.scales.device

    def times(self) -> Float[Tensor, " frames"]:
        """The moments of the frames that the prior sees [s]."""
        return torch.arange(self.frames, device=self.device) / self.fps


@dataclass(frozen=True, eq=False)
class CurveValues:
    """The paper's Theta: what the curves say at each frame, and where they start from."""

    turns: Float[Tensor, "frames joints 3"]
    """Compound angles [rad] that each joint turns on from the start; the root's about Y, Z and X."""
    shift: Float[Tensor, "frames 3"]
    """Of the root from the start [m], world."""
    start: Pose
    heading: Float[Tensor, " frames"]
    """Of the path [rad], positive to the left; 0 with a draft, which has a heading of its own."""


def make_trajectory(
    anatomy: Anatomy,
    *,
    frames: int,
    fps: float,
    basis: Basis = "dct",
    terms: int | None = None,
    period: float = 1.0,
    speed: float = 0.0,
    turn: float = 0.0,
    jump_height: float = 0.0,
    stiffness: float = 0.2,
    arms: float = 0.4,
    sideways: float = 0.3,
    root_move: float = 0.1,
    root_turn: float = 0.1,
    bend_bound: float = math.inf,
    side_bound: float = math.inf,
    limited: bool = True,
    draft: Motion | None = None,
    seconds: float | None = None,
) -> Trajectory:
    """A trajectory for a body: legs move freely, other joints are stiffer, bending is easier than swing and twist.

    `stiffness`, `arms`: scale of joints that belong to no leg, and to an arm. `sideways`: scale of swing and twist.
    `root_move` is in leg lengths, `root_turn` in radians per unit. `bend_bound` and `side_bound` [rad] narrow the
    rig's own limits, which hold where `limited`; locked axes stay locked. Around a `draft` of this body limits cannot
    hold by construction: there the skeleton's limits are widened to what the draft does, for a loss to hold.
    `seconds` is the length of the clip where the frames show more than that.
    """
    if frames < 2 or not fps > 0:
        raise JigdollError(f"a motion needs at least two frames and a positive rate, not {frames} at {fps} per second")
    skeleton = _with_world_root(_with_limits(anatomy))
    scales = _scales(anatomy, stiffness=stiffness, arms=arms, sideways=sideways)
    for limb in anatomy.limbs:
        if draft is not None and limb.side == "middle":
            scales[list(limb.joints)] /= len(limb.joints)  # a turn at each of eight tail bones turns its tip eightfold
    scales[0] = root_turn
    scales[-1] = root_move * anatomy.leg_length
    seconds = (frames - 1) / fps if seconds is None else seconds
    if terms is None and draft is None:
        terms = default_terms(basis, seconds=seconds, fps=fps, period=period)
    elif terms is None:
        terms = default_terms("fourier" if basis == "stride" else basis, seconds=seconds, fps=fps, period=DRAFT_BEAT)
    if basis == "frames":
        terms = frames
    narrow = torch.tensor([bend_bound, side_bound, side_bound])
    locked = skeleton.limits[..., :1] == skeleton.limits[..., 1:]
    free = torch.tensor([-math.inf, math.inf]).expand_as(skeleton.limits)
    bounds = torch.where(locked, 0.0, skeleton.limits if limited and draft is None else free)
    bounds = torch.maximum(torch.minimum(bounds, narrow[:, None]), -narrow[:, None])
    bounds[0] = torch.tensor([-math.inf, math.inf])
    if draft is not None:
        skeleton = _that_allows(skeleton, draft)
    path = (period, speed, turn, jump_height)
    return Trajectory(skeleton, basis, terms, frames, fps, seconds, *path, scales, bounds, draft)


def default_terms(basis: Basis, *, seconds: float, fps: float, period: float) -> int:
    """Two harmonics of the stride (three in its own basis), and no more than the frames can show."""
    strides = seconds / max(period, 1e-6)
    most = round(seconds * fps) + 1
    if basis == "stride":
        return 1 + 2 * max(1, min(3, int(0.5 * period * fps)))
    wanted = {"frames": most, "fourier": 4 * math.ceil(strides) + 1}.get(basis, math.ceil(4 * strides) + 1)
    return max(3, min(wanted, most))


def curve_values(
    trajectory: Trajectory,
    theta: Float[Tensor, "terms rows 3"],
    *,
    active: float | None = None,
    at: Float[Tensor, " frames"] | None = None,
) -> CurveValues:
    """Where the motion starts from and what the curves add, at the frames that the prior sees or at other moments [s].

    Of the first `active` terms only. Turns stay within their bounds whatever the curves say.
    """
    t = trajectory.times() if at is None else at
    columns = basis_functions(trajectory, t)
    if active is not None:
        columns = columns * (active - torch.arange(trajectory.terms, device=t.device)).clamp(0, 1)
    curves = torch.einsum("ft,trc->frc", columns, theta) * trajectory.scales
    turns = squash(curves[:, :-1], trajectory.bounds)
    heading = trajectory.turn * t if trajectory.draft is None else 0 * t
    return CurveValues(turns, curves[:, -1], start_pose(trajectory, t), heading)


def start_pose(trajectory: Trajectory, t: Float[Tensor, " frames"]) -> Pose:
    """What curves of zero give: the draft, or the rest pose on the path, facing along it."""
    if trajectory.draft is not None:
        return _pose_at(trajectory.draft, t)
    about = torch.stack([trajectory.turn * t, 0 * t, 0 * t], -1)
    others = about.new_zeros(len(t), len(trajectory.skeleton) - 1, 3)
    angles = torch.cat([about[:, None], others], 1)
    return Pose(path_at(trajectory, t), compound_to_quaternion(angles, trajectory.skeleton.axes))


def _pose_at(motion: Motion, t: Float[Tensor, " frames"]) -> Pose:
    """The motion at these moments, exact at its own frames; after its end it stands."""
    at = (t * motion.fps).clamp(0, len(motion) - 1)
    at = torch.where((at - at.round()).abs() < 1e-3, at.round(), at)
    left = at.floor().long()
    right, share = (left + 1).clamp_max(len(motion) - 1), at - left

    def between(values: Tensor) -> Tensor:
        return torch.lerp(values[left], values[right], share.reshape(-1, *[1] * (values.ndim - 1)).to(values))

    pose = motion.pose
    return Pose(
        root=between(pose.root),
        rotations=slerp(pose.rotations[left], pose.rotations[right], share[:, None].to(pose.rotations)),
        offsets=None if pose.offsets is None else between(pose.offsets),
        scales=None if pose.scales is None else between(pose.scales),
    )


def pose_of(trajectory: Trajectory, values: CurveValues) -> Pose:
    """The pose of each frame."""
    start, turned = values.start, compound_to_quaternion(values.turns, trajectory.skeleton.axes)
    return replace(start, root=start.root + values.shift, rotations=quaternion_multiply(start.rotations, turned))


def to_motion(
    trajectory: Trajectory, theta: Float[Tensor, "terms rows 3"], *, fps: float | None = None, name: str = "motion"
) -> Motion:
    """The clip at any rate: smooth curves have a value at every moment. By default at the draft's, else the prior's."""
    own = trajectory.fps if trajectory.draft is None else trajectory.draft.fps
    if trajectory.basis == "frames" and fps not in (None, trajectory.fps):
        raise JigdollError("a motion with one value per frame has no other rate; resample the clip instead")
    rate = fps or (trajectory.fps if trajectory.basis == "frames" else own)
    count = int(trajectory.seconds * rate + 1e-4) + 1
    with torch.no_grad():
        t = torch.arange(count, device=trajectory.device) / rate
        pose = pose_of(trajectory, curve_values(trajectory, theta, at=t))
    return Motion(pose, rate, name)


def path_at(trajectory: Trajectory, t: Float[Tensor, " frames"]) -> Float[Tensor, "frames 3"]:
    """The way of a body at constant speed that turns at a constant rate; straight ahead it is T_z = v i (AKD 4.4)."""
    v, w = trajectory.speed, trajectory.turn
    y = leaps(t, height=trajectory.jump_height, period=trajectory.period) if trajectory.jump_height else 0 * t
    if w == 0:
        return torch.stack([0 * t, y, v * t], -1)
    return torch.stack([v / w * (1 - torch.cos(w * t)), y, v / w * torch.sin(w * t)], -1)


def leaps(t: Float[Tensor, " frames"], *, height: float, period: float) -> Float[Tensor, " frames"]:
    """Height over time of a body that crouches, flies by gravity alone and lands, once per period [m].

    It stands at the beginning of each period; the crouch ends with the speed of the take-off, so that nothing jerks. A
    period too short for that is one bounce: a dip that catches and throws.
    """
    speed = math.sqrt(2 * GRAVITY * height)
    flight = min(2 * speed / GRAVITY, 0.8 * period)
    stance = period - flight
    now = t % period
    air = now - 0.5 * stance
    flying = speed * air - 0.5 * GRAVITY * air.square()
    share = torch.where(air < 0, now, period - now) / (0.5 * stance)
    crouch = share.square() * (1 - share) if stance > 2 * flight else torch.cos(0.5 * math.pi * share) * 2 / math.pi
    return torch.where((air < 0) | (air > flight), -0.5 * stance * speed * crouch, flying)


def basis_functions(trajectory: Trajectory, t: Float[Tensor, " frames"]) -> Float[Tensor, "frames terms"]:
    """The value of each temporal basis function at each moment, coarse ones first."""
    seconds, n = trajectory.seconds, trajectory.terms
    if trajectory.basis == "frames":
        return torch.eye(trajectory.frames, device=t.device)[: len(t)]
    if trajectory.basis == "dct":
        # DCT-II: half-sample shifted cosines, so that neither end is bound to stand still.
        u = (t * trajectory.fps + 0.5) / (seconds * trajectory.fps + 1)
        return torch.cos(math.pi * u[:, None] * torch.arange(n, device=t.device))
    if trajectory.basis == "spline":
        return _splines(t / seconds, n)
    period = seconds if trajectory.basis == "fourier" else trajectory.period
    return _harmonics(t / period, n)


def squash(
    x: Float[Tensor, "*batch joints 3"], bounds: Float[Tensor, "*#batch joints 3 2"]
) -> Float[Tensor, "*batch joints 3"]:
    """Angles bent smoothly into their bounds, which contain 0: slope 1 at rest, the bound far out."""
    low, high = bounds.unbind(-1)
    room = torch.where(x < 0, -low, high)
    free = torch.isinf(room)
    safe = torch.where(free | (room <= 0), 1.0, room)
    return torch.where(free, x, torch.where(room <= 0, 0.0, safe * torch.tanh(x / safe)))


def _harmonics(cycles: Float[Tensor, " frames"], terms: int) -> Float[Tensor, "frames terms"]:
    """1, cos, sin, cos 2, sin 2 ... of the cycle."""
    order = torch.arange(terms, device=cycles.device)
    angle = 2 * math.pi * cycles[:, None] * ((order + 1) // 2)
    return torch.where(order % 2 == 0, torch.sin(angle), torch.cos(angle)) + (order == 0)


def _splines(u: Float[Tensor, " frames"], terms: int) -> Float[Tensor, "frames terms"]:
    """Cubic B-splines in layers, each with twice the knots of the one before, until there are enough terms."""
    layers, spans = [], 1
    while sum(layer.shape[1] for layer in layers) < terms:
        layers.append(_cubic(u[:, None] * spans - torch.arange(-1, spans + 2, device=u.device)))
        spans *= 2
    return torch.cat(layers, 1)[:, :terms]


def _cubic(x: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """The cubic B-spline with knots at -2 .. 2."""
    a = x.abs()
    near = 2 / 3 - a.square() + a**3 / 2
    return torch.where(a < 1, near, (2 - a).clamp_min(0) ** 3 / 6)


def _scales(anatomy: Anatomy, *, stiffness: float, arms: float, sideways: float) -> Float[Tensor, "rows 3"]:
    scales = torch.full((len(anatomy.skeleton) + 1, 3), stiffness)
    for limb in anatomy.limbs:
        share = {"leg": 1.0, "arm": arms}.get(limb.kind)
        if share is not None:
            scales[list(limb.joints)] = share
    scales[:, 1:] *= sideways
    return scales


def _with_limits(anatomy: Anatomy) -> Skeleton:
    """Rigs from files come without limits: then limits by role."""
    skeleton = anatomy.skeleton
    return with_default_limits(skeleton, anatomy.limbs) if bool((skeleton.limits.abs() > 3.1).all()) else skeleton


def _with_world_root(skeleton: Skeleton) -> Skeleton:
    """The root turns about the world's Y, then Z, then X: heading, roll and pitch keep their meaning on every rig."""
    turn = rest_transforms(skeleton)[0, :3, :3].T[:, [1, 2, 0]]
    return replace(skeleton, axes=torch.cat([turn[None], skeleton.axes[1:]]))


def _that_allows(skeleton: Skeleton, draft: Motion) -> Skeleton:
    """The skeleton with limits as wide as the draft needs."""
    angles = compound_angles(skeleton, draft.pose).float()
    low = torch.minimum(skeleton.limits[..., 0], angles.amin(0))
    high = torch.maximum(skeleton.limits[..., 1], angles.amax(0))
    return replace(skeleton, limits=torch.stack([low, high], -1))
