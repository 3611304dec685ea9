"""Cameras that look at a character: fixed, orbiting, following, and how far away they stand.

Azimuth 0 looks the character in the face (the camera stands on +Z), 90 degrees sees its left side (+X).
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.errors import JigdollError
from jigdoll.math.transforms import transform
from jigdoll.types import Camera


def look_at(
    eye: Float[Tensor, "*batch 3"],
    target: Float[Tensor, "*batch 3"],
    *,
    up: tuple[float, float, float] = (0.0, 1.0, 0.0),
) -> Float[Tensor, "*batch 4 4"]:
    """`T_camera_world` of a camera at `eye` that sees `target` in the middle of its picture, `up` upwards."""
    forward = torch.nn.functional.normalize(target - eye, dim=-1)
    upward = eye.new_tensor(up).expand_as(forward)
    right = torch.linalg.cross(forward, upward)
    # Straight up or down there is no horizon to level: +Z at the bottom (or the top) is as good as anything.
    steep = right.norm(dim=-1, keepdim=True) < 1e-5
    fallback = torch.linalg.cross(forward, eye.new_tensor([0.0, 0.0, -1.0]).expand_as(forward))
    right = torch.nn.functional.normalize(torch.where(steep, fallback, right), dim=-1)
    down = torch.linalg.cross(forward, right)
    R_camera_world = torch.stack([right, down, forward], dim=-2)
    return transform(R_camera_world, -(R_camera_world @ eye[..., None])[..., 0])


def intrinsics(width: int, height: int, *, field_of_view: float = 35.0) -> Float[Tensor, "3 3"]:
    """The pinhole matrix [px] whose shorter side spans `field_of_view` [degrees], the axis in the middle."""
    if width < 1 or height < 1:
        raise JigdollError(f"a picture of {width} x {height} pixels cannot be drawn; both sides must be at least 1")
    if not 0 < field_of_view < 180:
        raise JigdollError(f"a field of view of {field_of_view} degrees cannot be drawn; it lies between 0 and 180")
    focal = 0.5 * min(width, height) / math.tan(math.radians(field_of_view) / 2)
    return torch.tensor([[focal, 0.0, width / 2], [0.0, focal, height / 2], [0.0, 0.0, 1.0]])


def orbit_direction(
    azimuth: float | Float[Tensor, "*#batch"], elevation: float | Float[Tensor, "*#batch"]
) -> Float[Tensor, "*batch 3"]:
    """The unit vector from the target to a camera at these angles [degrees]."""
    turn, rise = (torch.deg2rad(torch.as_tensor(angle, dtype=torch.float32)) for angle in (azimuth, elevation))
    turn, rise = torch.broadcast_tensors(turn, rise)
    return torch.stack([turn.sin() * rise.cos(), rise.sin(), turn.cos() * rise.cos()], dim=-1)


def orbit(
    target: Float[Tensor, "*#batch 3"],
    distance: float | Float[Tensor, "*#batch"],
    *,
    azimuth: float | Float[Tensor, "*#batch"],
    elevation: float | Float[Tensor, "*#batch"] = 15.0,
    width: int,
    height: int,
    field_of_view: float = 35.0,
) -> Camera:
    """A camera on a sphere around the target; every argument may carry a batch."""
    direction = orbit_direction(azimuth, elevation).to(target)
    away = direction * torch.as_tensor(distance, dtype=torch.float32).to(target)[..., None]
    target, away = torch.broadcast_tensors(target, away)
    K = intrinsics(width, height, field_of_view=field_of_view).to(target)
    return Camera(look_at(target + away, target), K.expand(*target.shape[:-1], 3, 3), width, height)


def fitting_distance(
    points: Float[Tensor, "*batch points 3"],
    center: Float[Tensor, "*#batch 3"],
    direction: Float[Tensor, "*#batch 3"],
    *,
    width: int,
    height: int,
    field_of_view: float = 35.0,
    margin: float = 0.12,
) -> Float[Tensor, ""]:
    """The shortest distance [m] at which a camera that looks along -direction at `center` sees all points.

    A share `margin` of the half picture stays free on each side. No gradient.
    """
    points = points.detach()
    if points.numel() == 0:
        return points.new_tensor(1.0)
    K = intrinsics(width, height, field_of_view=field_of_view).to(points)
    center, direction = torch.broadcast_tensors(center, direction)
    in_axes = (points - center[..., None, :]) @ look_at(direction, torch.zeros_like(direction))[..., :3, :3].mT
    # |x| f <= (1 - margin) w/2 (z + distance) for each point, and the same for y.
    tangent = (1 - margin) * torch.stack([width / 2 / K[0, 0], height / 2 / K[1, 1]])
    needed = (in_axes[..., :2].abs() / tangent).amax(-1) - in_axes[..., 2]
    return needed.max().clamp_min(1e-3)


def box_center(points: Float[Tensor, "*batch points 3"]) -> Float[Tensor, "*batch 3"]:
    """The centre of the axis-aligned bounding box; the origin where there are no points."""
    if points.shape[-2] == 0:
        return points.new_zeros(*points.shape[:-2], 3)
    return 0.5 * (points.amin(-2) + points.amax(-2))


def low_pass(path: Float[Tensor, "frames 3"], *, radius: float) -> Float[Tensor, "frames 3"]:
    """A path over time, smoothed by a Gaussian of standard deviation `radius` [frames]; even motion stays as it is.

    The straight line that fits best is set aside and what is left is mirrored at both ends, so straight, constant-speed
    motion is a fixed point and neither end sticks to its first or last wobble.
    """
    frames = path.shape[0]
    if frames < 3 or radius <= 0:
        return path
    times = torch.linspace(-1, 1, frames, dtype=path.dtype, device=path.device)[:, None]
    line = path.mean(0) + times * (times * path).sum(0) / times.square().sum()
    reach = min(math.ceil(3 * radius), frames)
    rest = path - line
    padded = torch.cat([rest[:reach].flip(0), rest, rest[-reach:].flip(0)])
    steps = torch.arange(-reach, reach + 1, dtype=path.dtype, device=path.device)
    kernel = torch.exp(-0.5 * (steps / radius).square())
    return line + padded.unfold(0, 2 * reach + 1, 1) @ (kernel / kernel.sum())


def follow(
    points: Float[Tensor, "frames points 3"],
    *,
    azimuth: float | Float[Tensor, " views"] = 60.0,
    elevation: float | Float[Tensor, " views"] = 12.0,
    width: int,
    height: int,
    field_of_view: float = 35.0,
    smoothing: float = 4.0,
    distance: float | Float[Tensor, ""] | None = None,
    margin: float = 0.12,
) -> Camera:
    """Cameras `[views frames]` that smoothly follow the box centre of the deformed shape (AKD 4.2).

    The centre's path is low-passed over `smoothing` frames; every view keeps one distance for the whole clip, by
    default the shortest that keeps all points in every frame of every view. No gradient flows into the camera.
    """
    points = points.detach()
    centers = low_pass(box_center(points), radius=smoothing)
    directions = orbit_direction(azimuth, elevation).reshape(-1, 3).to(points)
    if distance is None:
        sizes = {"width": width, "height": height, "field_of_view": field_of_view, "margin": margin}
        near = [fitting_distance(points, centers, direction[None], **sizes) for direction in directions]
        distance = torch.stack(near).max()
    eyes = centers + distance * directions[:, None]
    K = intrinsics(width, height, field_of_view=field_of_view).to(points)
    return Camera(look_at(eyes, centers.expand_as(eyes)), K.expand(*eyes.shape[:-1], 3, 3), width, height)


def fit_orbit(
    points: Float[Tensor, "points 3"],
    *,
    azimuth: float | Float[Tensor, "*#batch"] = 60.0,
    elevation: float | Float[Tensor, "*#batch"] = 12.0,
    width: int,
    height: int,
    field_of_view: float = 35.0,
    margin: float = 0.12,
) -> Camera:
    """A camera (or a batch) around the box centre of the points, as near as keeps all of them in the picture."""
    center = box_center(points)
    directions = orbit_direction(azimuth, elevation).to(points)
    sizes = {"width": width, "height": height, "field_of_view": field_of_view}
    distances = [
        fitting_distance(points, center, direction, margin=margin, **sizes) for direction in directions.reshape(-1, 3)
    ]
    distance = torch.stack(distances or [points.new_zeros(0)]).reshape(directions.shape[:-1])
    return orbit(center, distance, azimuth=azimuth, elevation=elevation, **sizes)
