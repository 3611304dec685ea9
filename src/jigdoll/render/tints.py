"""Colours for guidance: what a prior looks at need not be what the artist painted."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from jigdoll.math.rotations import quaternion_to_matrix
from jigdoll.render.camera import box_center
from jigdoll.render.mesh import CLAY, light_on
from jigdoll.skin.deform import deform
from jigdoll.types import Camera, Gaussians, SkinnedGaussians

LEFT_TINT = (0.12, 0.38, 0.85)
RIGHT_TINT = (0.85, 0.16, 0.14)
PACE = 0.04
"""Way per frame, in body diagonals, at which the colours of motion are most sensitive."""
TURN = 0.05
"""Turn per frame [rad] that shows most."""
UNHURRIED = 25
"""Frames over which a turn is averaged: the sway of a stride is none."""


def in_clay(
    splats: SkinnedGaussians,
    gaussians: Gaussians,
    transforms: Float[Tensor, "frames joints 4 4"],
    camera: Camera,
    *,
    depth_cue: float = 0.35,
) -> Gaussians:
    """The posed splats as one warm material under fixed lights, near parts brighter than far ones.

    Parts left and right of the middle are tinted, and what stands on the ground is deep in its tint: which leg is
    which, and what the foot does, can then be read from a picture of 50 pixels. A splat's own z axis is its outward
    normal (see `splats.bind`); it is carried along by the blended rotations. The colours hold no gradient: guidance
    moves the shape, not the shading.
    """
    with torch.no_grad():
        turns = transforms.detach().clone()
        turns[..., :3, 3] = 0
        rest_normals = quaternion_to_matrix(splats.quats.detach())[:, :, 2]
        bright = light_on(deform(rest_normals, splats.weights, turns))
        means = gaussians.means.detach()
        size = float((splats.means.amax(0) - splats.means.amin(0)).norm()) if means.shape[-2] else 1.0
        T = camera.T_camera_world
        relative = means - box_center(means)[..., None, :]
        nearer = -(T[..., 2, None, :3] * relative).sum(-1) / max(size, 1e-9)
        bright = bright * (1 + depth_cue * torch.tanh(6 * nearer))
        colors = (bright[..., None] * _clay_of(splats.means.detach())).clamp(0, 1)
    shape = colors.shape[:-1]
    return Gaussians(
        gaussians.means.expand(*shape, 3), gaussians.covariances.expand(*shape, 3, 3), gaussians.opacities, colors
    )


def _clay_of(means: Float[Tensor, "gaussians 3"]) -> Float[Tensor, "gaussians 3"]:
    """The material of each splat by where it lies at rest: left bluish, right reddish, deeper towards the feet."""
    side = _side(means)[:, None]
    tint = torch.where(side > 0, means.new_tensor(LEFT_TINT), means.new_tensor(RIGHT_TINT))
    return torch.lerp(means.new_tensor(CLAY).expand_as(tint), tint, side.abs())


def by_motion(splats: SkinnedGaussians, gaussians: Gaussians) -> Gaussians:
    """The posed splats coloured by side and turn (red), speed ahead (green) and speed upwards (blue) over the ground.

    What is planted is grey wherever the camera goes, what swings forward is green: a foot that slides, a cycle that
    runs backwards and legs out of step can be read from a single small picture. The colours hold the gradient of the
    motion, so guidance can ask a foot to stand still and need not wait for its outline to move. Ahead is where the
    body faces in each frame. Who turns right is redder for it, all but the feet, which keep the colour of their side:
    from the side, and in outline alone, a turn to the left looks much like one to the right.
    """
    means, rest = gaussians.means, splats.means.detach()
    heading = heading_of(rest, means)
    if means.shape[0] < 2 or rest.shape[0] == 0:
        way, turn = torch.zeros_like(means), means.new_zeros(())
    else:
        way, turn = torch.gradient(means, dim=0)[0], _turn(heading)[:, None]
    diagonal = (rest.amax(0) - rest.amin(0)).norm().clamp(min=1e-9) if rest.shape[0] else means.new_ones(())
    ahead = (way * heading.detach()[:, None]).sum(-1) / (PACE * diagonal)
    up = way[..., 1] / (0.5 * PACE * diagonal)
    side = _side(rest).expand(ahead.shape)
    red = -side - torch.tanh(turn / TURN) * (1 - side.abs())
    colors = 0.5 + 0.45 * torch.stack([red, torch.tanh(ahead), torch.tanh(up)], -1)
    return Gaussians(means, gaussians.covariances, gaussians.opacities, colors)


def heading_of(
    rest: Float[Tensor, "gaussians 3"], means: Float[Tensor, "frames gaussians 3"]
) -> Float[Tensor, "frames 3"]:
    """The horizontal direction in which the body faces: its rest faces +z, and turns with it about the vertical."""
    a, b = rest[:, [2, 0]], means[..., [2, 0]]
    a, b = a - a.mean(-2, keepdim=True), b - b.mean(-2, keepdim=True)
    cos, sin = (a * b).sum((-2, -1)), (a[:, 0] * b[..., 1] - a[:, 1] * b[..., 0]).sum(-1)
    angle = torch.atan2(sin, cos + 1e-12)  # a body without width faces ahead
    return torch.stack([angle.sin(), torch.zeros_like(angle), angle.cos()], -1)


def _turn(heading: Float[Tensor, "frames 3"]) -> Float[Tensor, " frames"]:
    """How far the heading comes round to the left per frame [rad], over the frames around each."""
    left = torch.stack([heading[:, 2], torch.zeros_like(heading[:, 0]), -heading[:, 0]], -1)
    turn = (torch.gradient(heading, dim=0)[0] * left).sum(-1)
    return F.avg_pool1d(turn[None, None], UNHURRIED, 1, UNHURRIED // 2, count_include_pad=False)[0, 0]


def _side(means: Float[Tensor, "gaussians 3"]) -> Float[Tensor, " gaussians"]:
    """-1 (right) to 1 (left) by where a splat lies at rest: faint on the body, full at the feet."""
    if means.shape[0] == 0:
        return means[:, 0]
    low, high = means.amin(0), means.amax(0)
    size = (high - low).norm().clamp(min=1e-9)
    side = torch.tanh((means[:, 0] - 0.5 * (low[0] + high[0])) / (0.04 * size))
    height = (means[:, 1] - low[1]) / (high[1] - low[1]).clamp(min=1e-9)
    foot = torch.sigmoid((0.14 - height) / 0.03)
    leg = torch.sigmoid((0.45 - height) / 0.06)
    return side * (0.25 + 0.25 * leg + 0.5 * foot)
