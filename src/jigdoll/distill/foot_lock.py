"""Feet put down: a finished motion with each standing foot held where it stands.

A prior that sees fifty pixels cannot place a foot to the millimetre (AKD 6.3 says so of a large one), and curves of a
few harmonics cannot hold it. Here which foot stands when is read from the motion, each stance gets one place, and
single frames are bent until the feet are there: as little as needed, smoothly, within the joint limits. No prior takes
part.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from jigdoll.distill.body import Body, body_of
from jigdoll.distill.losses import PosedClip, clearance, ground, stride_speed
from jigdoll.distill.tempo import Tempo
from jigdoll.distill.trajectory import CurveValues, Trajectory, curve_values, fit_theta, make_trajectory, pose_of
from jigdoll.kinematics import forward, rest_transforms, skin_transforms
from jigdoll.math.devices import to_device
from jigdoll.math.transforms import apply
from jigdoll.skin.deform import deform
from jigdoll.types import Motion, Pose, RiggedAsset

SHORTEST = 0.08
"""A stance is no shorter than this [s]."""
SWING = 0.6
"""How high a foot swings at least, of the step height that suits the gait."""
REACH = 3
"""Frames over which a body is raised that stands too deep."""
HOLD, KEEP, SMOOTH, OUT = 2000.0, 1.0, 20.0, 1500.0
"""Weights: feet at their places, the motion as it was, changes that are smooth over time, no skin below the ground."""


@dataclass(frozen=True, eq=False)
class Stances:
    """Which feet stand when, and where."""

    stands: Bool[Tensor, "frames feet"]
    points: Float[Tensor, "frames feet points 3"]
    """The place of the stance of each foot's joint and of the corners of its sole [m], world."""
    least: Float[Tensor, "frames feet"]
    """How high a swinging foot is at least, so that it does not drag [leg lengths]; 0 for a standing one."""


def foot_lock(asset: RiggedAsset, motion: Motion, tempo: Tempo, *, iterations: int = 150, rate: float = 0.05) -> Motion:
    """The motion with standing feet that stay in place; a body without legs, or one that flies, keeps its motion."""
    trajectory = make_trajectory(
        asset.skeleton,
        frames=len(motion),
        fps=motion.fps,
        basis="frames",
        speed=tempo.speed,
        turn=tempo.turn,
        stiffness=0.1,
        arms=0.1,
        root_move=0.3,
        root_turn=0.2,
    )
    # It all happens where the motion is.
    device = motion.pose.root.device
    body = to_device(body_of(asset, trajectory.skeleton, tempo), device)
    trajectory = to_device(trajectory, device)
    start = fit_theta(trajectory, motion)
    before = curve_values(trajectory, start)
    stances = find_stances(body, _posed(trajectory, before))
    if not bool(stances.stands.any()):
        return motion
    theta = start.clone().requires_grad_()
    optimizer = torch.optim.Adam([theta], lr=rate, betas=(0.9, 0.95))
    for step in range(iterations):
        values = curve_values(trajectory, theta)
        clip = _posed(trajectory, values)
        gap = (footprints(body, clip) - stances.points) / body.leg_length
        hold = (gap.square().sum(-1).mean(-1) * stances.stands).sum() / stances.stands.sum()
        low = (stances.least - clearance(body, clip)).clamp_min(0).square().mean()
        change = _change(before, values, body)
        bend = change[:-2] - 2 * change[1:-1] + change[2:]
        loss = HOLD * (hold + low) + KEEP * change.square().sum(-1).mean() + SMOOTH * bend.square().sum(-1).mean()
        loss = loss + OUT * ground(body, clip) / body.leg_length
        optimizer.zero_grad()
        loss.backward()
        optimizer.param_groups[0]["lr"] = rate * min(1.0, 2 * (1 - step / iterations))
        optimizer.step()
    with torch.no_grad():
        pose = pose_of(trajectory, curve_values(trajectory, theta))
        return Motion(raised(asset, pose), motion.fps, motion.name)


def raised(asset: RiggedAsset, pose: Pose) -> Pose:
    """The pose carried smoothly so much higher that no skin is below the ground: cuboids only come near to the skin."""
    device = pose.root.device
    skeleton, weights = to_device(asset.skeleton, device), to_device(asset.weights, device)
    skin = deform(asset.mesh.vertices.to(device), weights, skin_transforms(skeleton, pose))
    depth = (-skin[..., 1].amin(1)).clamp_min(0)[None]
    highest = torch.nn.functional.max_pool1d(depth, 2 * REACH + 1, 1, REACH)
    padded = torch.nn.functional.pad(highest, (REACH, REACH), "replicate")
    lift = torch.nn.functional.avg_pool1d(padded, 2 * REACH + 1, 1)[0]
    return replace(pose, root=pose.root + lift[:, None] * pose.root.new_tensor([0.0, 1.0, 0.0]))


def footprints(body: Body, clip: PosedClip) -> Float[Tensor, "frames feet points 3"]:
    """Each foot's joint and the corners of its sole [m], world."""
    return apply(clip.T_world_joint[:, body.feet], body.contact_points)


def find_stances(body: Body, clip: PosedClip) -> Stances:
    """Stances by the swing and the height of each leg's foot; one place per stance, the mean of where it was."""
    points = footprints(body, clip).detach()
    if not body.feet:
        return Stances(torch.zeros_like(points[..., 0, 0], dtype=torch.bool), points, points[..., 0, 1])
    speed, height = stride_speed(body, clip).detach(), clearance(body, clip).detach()
    sign = -2.0 * (speed + 0.25) - (height - 0.5 * body.step_height) / (0.3 * body.step_height)
    stands = torch.zeros_like(sign, dtype=torch.bool)
    shortest = max(2, round(SHORTEST * clip.fps))
    for leg in body.legs:
        feet = [i for i, hip in enumerate(body.hips) if hip == leg.joints[0]]
        stands[:, feet] = _long_runs(sign[:, feet].mean(1) > 0, shortest)[:, None]
    rest = apply(rest_transforms(body.skeleton)[body.feet], body.contact_points)[..., 1]
    places, least = points.clone(), torch.zeros_like(height)
    for foot in range(len(body.feet)):
        for first, last in _runs(~stands[:, foot]):
            least[first:last, foot] = SWING * body.step_height * _arch(first, last, len(stands)).to(least)
        for first, last in _runs(stands[:, foot]):
            places[first:last, foot] = points[first:last, foot].mean(0)
            places[first:last, foot, :, 1] = rest[foot]
    return Stances(stands, places, least)


def _arch(first: int, last: int, frames: int) -> Float[Tensor, " run"]:
    """From 0 over 1 to 0 in the course of a swing; half of it where the clip's edge cuts the swing."""
    start, end = (0.5 if first == 0 else 0.0), (0.5 if last == frames else 1.0)
    share = (torch.arange(last - first) + 1) / (last - first + 1)
    return torch.sin(torch.pi * (start + (end - start) * share))


def _runs(flags: Bool[Tensor, " frames"]) -> list[tuple[int, int]]:
    """The stretches of truth, each from its first frame to the one after its last."""
    edges = torch.diff(torch.nn.functional.pad(flags.int(), (1, 1)))
    return list(zip((edges == 1).nonzero()[:, 0].tolist(), (edges == -1).nonzero()[:, 0].tolist(), strict=True))


def _long_runs(flags: Bool[Tensor, " frames"], shortest: int) -> Bool[Tensor, " frames"]:
    """Without the gaps and then without the stretches that are too short, unless the clip's edge cut them."""
    kept = flags.clone()
    for wanted in (False, True):
        for first, last in _runs(kept == wanted):
            if last - first < shortest and first > 0 and last < len(kept):
                kept[first:last] = not wanted
    return kept


def _change(before: CurveValues, after: CurveValues, body: Body) -> Float[Tensor, "frames values"]:
    """How far the values have moved: angles in radians, the root in leg lengths."""
    angles = (after.angles - before.angles.detach()).flatten(1)
    return torch.cat([angles, 3 * (after.root - before.root.detach()) / body.leg_length], 1)


def _posed(trajectory: Trajectory, values: CurveValues) -> PosedClip:
    return PosedClip(values, forward(trajectory.skeleton, pose_of(trajectory, values)), trajectory.fps)
