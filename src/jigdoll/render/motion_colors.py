"""Colours for guidance: what a prior looks at need not be what the artist painted.

They are computed where the splats live; only which leg lies across from which is looked up once, by `find_legs`.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from scipy.spatial import KDTree
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
"""Frames over which a turn is averaged, for the sway of a stride is none, and the rhythm of legs."""
SWINGS = 0.01
"""Variance of a speed beside which it counts as a swing: a foot has about .15, a belly a hundredth of that."""


@dataclass(frozen=True, eq=False)
class LegSplats:
    """What by_motion knows of a body's legs, from where its splats lie at rest."""

    share: Float[Tensor, " gaussians"]
    """How much of a leg each splat is, 0..1."""
    across: Int[Tensor, " gaussians"]
    """What lies across from it, on the other side."""
    along: Int[Tensor, " gaussians"]
    """What lies along from it, fore or aft."""


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
        T = camera.T_camera_world
        relative = means - box_center(means)[..., None, :]
        nearer = -(T[..., 2, None, :3] * relative).sum(-1) / _size(splats.means.detach())
        bright = bright * (1 + depth_cue * torch.tanh(6 * nearer))
        colors = (bright[..., None] * _clay_of(splats.means.detach())).clamp(0, 1)
    shape = colors.shape[:-1]
    return Gaussians(
        gaussians.means.expand(*shape, 3), gaussians.covariances.expand(*shape, 3, 3), gaussians.opacities, colors
    )


def _clay_of(means: Float[Tensor, "gaussians 3"]) -> Float[Tensor, "gaussians 3"]:
    """The material of each splat by where it lies at rest: left bluish, right reddish, deeper towards the feet."""
    height, side = _height(means), _side(means)
    foot, leg = torch.sigmoid((0.14 - height) / 0.03), torch.sigmoid((0.45 - height) / 0.06)
    depth = (side.abs() * (0.25 + 0.25 * leg + 0.5 * foot))[:, None]
    tint = torch.where(side[:, None] > 0, means.new_tensor(LEFT_TINT), means.new_tensor(RIGHT_TINT))
    return torch.lerp(means.new_tensor(CLAY).expand_as(tint), tint, depth)


def by_motion(splats: SkinnedGaussians, gaussians: Gaussians, *, legs: LegSplats | None = None) -> Gaussians:
    """The posed splats coloured by how they move over the ground.

    Green is the speed ahead, of body and legs: what is planted shows none wherever the camera goes, what swings forward
    much, and a foot that slides or a cycle that runs backwards can be read from a single small picture. On the body,
    blue is the speed upwards and red tells that it turns right, with a trace of which side it is: in outline alone a
    turn to the left looks much like one to the right. On a leg, blue tells whether the leg across swings with it or in
    turn (a walk has hardly any), and red whether the swing passes from hind to fore legs or the other way. Both are
    told of some seconds at a time, so each foot shows in all frames whether its legs are in step, also where half a
    body hides the others, and neither two places nor two moments have to be compared. The colours hold the gradient of
    the motion: guidance can ask a foot to stand still and need not wait for its outline to move. Ahead is where the
    body faces in each frame. `legs` are those of the splats' rest (`find_legs`), for whoever draws them often.
    """
    means, rest = gaussians.means, splats.means.detach()
    heading = heading_of(rest, means)
    if means.shape[0] < 2 or rest.shape[0] == 0:
        way, turn = torch.zeros_like(means), means.new_zeros(())
    else:
        way, turn = torch.gradient(means, dim=0)[0], _turn(heading)[:, None]
    pace = PACE * _size(rest)
    ahead = torch.tanh((way * heading.detach()[:, None]).sum(-1) / pace)
    up = torch.tanh(2 * way[..., 1] / pace)
    legs = find_legs(rest) if legs is None else legs
    together, _ = rhythm(ahead, legs.across)
    _, passes = rhythm(ahead, legs.along)
    forward = torch.tanh((rest[legs.along, 2] - rest[:, 2]) / (0.1 * _size(rest)))
    red = torch.lerp(-0.25 * _side(rest) - 0.75 * torch.tanh(turn / TURN), forward * passes, legs.share)
    blue = torch.lerp(up, together, legs.share)
    colors = 0.5 + 0.45 * torch.stack([red, ahead, blue], -1)
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
    return _steady((torch.gradient(heading, dim=0)[0] * left).sum(-1))


def rhythm(
    ahead: Float[Tensor, "frames gaussians"], partner: Int[Tensor, " gaussians"]
) -> tuple[Float[Tensor, "frames gaussians"], Float[Tensor, "frames gaussians"]]:
    """How each splat swings beside its partner: 1 together to -1 in turn; and 1 shortly before it to -1 shortly after.

    The covariance of the two speeds, and that of each with the other's change, as shares of what they vary: for sines
    that lag by an angle its cosine, and its sine times the radians per frame. Zero where hardly anything swings.
    """
    if ahead.shape[0] < 2:
        return torch.zeros_like(ahead), torch.zeros_like(ahead)
    swing = ahead - _steady(ahead)
    change, other = torch.gradient(swing, dim=0)[0], swing[:, partner]
    varies = 0.5 * _steady(swing**2 + other**2) + SWINGS
    together = _steady(swing * other) / varies
    passes = 0.5 * _steady(swing * change[:, partner] - other * change) / varies
    return together, torch.tanh(6 * passes)


def _steady(values: Float[Tensor, "frames ..."]) -> Float[Tensor, "frames ..."]:
    """The mean over the frames around each; all of them, where the clip is short."""
    width = min(values.shape[0], UNHURRIED)
    means = F.avg_pool1d(values.reshape(len(values), -1).T[:, None], width, 1)
    means = F.pad(means, (width // 2, (width - 1) // 2), mode="replicate")
    return means[:, 0].T.reshape(values.shape)


def find_legs(rest: Float[Tensor, "gaussians 3"]) -> LegSplats:
    """How much of a leg each splat is, and what lies across from it (on the other side) and along (fore or aft)."""
    height = _height(rest)
    leg = torch.sigmoid((0.4 - height) / 0.05)
    low = (leg > 0.02).nonzero()[:, 0]
    feet = rest[(height < 0.1) & ((rest[:, 0] - _middle(rest, 0)).abs() > 0.02 * _size(rest))]  # and no tail
    across = _mirrored(rest, low, axis=0, about=_middle(rest, 0))
    along = _mirrored(rest, low, axis=2, about=_middle(feet if len(feet) else rest, 2))
    return LegSplats(leg, across, along)


def _mirrored(
    rest: Float[Tensor, "gaussians 3"], some: Int[Tensor, " some"], *, axis: int, about: Float[Tensor, ""]
) -> Int[Tensor, " gaussians"]:
    """What lies where each of some splats has its image in a plane across an axis; all others are their own."""
    images = rest[some].clone()
    images[:, axis] = 2 * about - images[:, axis]
    found = torch.arange(rest.shape[0], device=rest.device)
    if len(some):
        found[some] = some[_nearest(images, rest[some])]
    return found


def _nearest(places: Float[Tensor, "some 3"], points: Float[Tensor, "points 3"]) -> Int[Tensor, " some"]:
    """The point next to each place."""
    if points.device.type != "cpu":
        return nearest_reference(places, points)
    _, nearest = KDTree(points.numpy()).query(places.numpy())
    return torch.from_numpy(nearest)


def nearest_reference(places: Float[Tensor, "some 3"], points: Float[Tensor, "points 3"]) -> Int[Tensor, " some"]:
    """The point next to each place by all distances: what runs on a GPU, and the truth for the tree."""
    return torch.cat([(some[:, None] - points).square().sum(-1).argmin(1) for some in places.split(1024)])


def _side(rest: Float[Tensor, "gaussians 3"]) -> Float[Tensor, " gaussians"]:
    """-1 (right) to 1 (left) by where a splat lies at rest."""
    return torch.tanh((rest[:, 0] - _middle(rest, 0)) / (0.04 * _size(rest)))


def _height(rest: Float[Tensor, "gaussians 3"]) -> Float[Tensor, " gaussians"]:
    """0 at the ground to 1 at the top."""
    low, high = _ends(rest)
    return (rest[:, 1] - low[1]) / (high[1] - low[1]).clamp(min=1e-9)


def _middle(rest: Float[Tensor, "gaussians 3"], axis: int) -> Float[Tensor, ""]:
    low, high = _ends(rest)
    return 0.5 * (low[axis] + high[axis])


def _size(rest: Float[Tensor, "gaussians 3"]) -> Float[Tensor, ""]:
    """The diagonal of the body."""
    low, high = _ends(rest)
    return (high - low).norm().clamp(min=1e-9)


def _ends(rest: Float[Tensor, "gaussians 3"]) -> tuple[Float[Tensor, " 3"], Float[Tensor, " 3"]]:
    """The corners of the box around it; of nothing, the origin."""
    return (rest.amin(0), rest.amax(0)) if rest.shape[0] else (rest.new_zeros(3), rest.new_zeros(3))
