"""The ground of a scene: a checkerboard by ray casting, fog to the sky, and a soft shadow (AKD 4.2 and appendix C).

The ground is the plane y = 0 and a layer behind the asset; no gradient flows into it. It is drawn where the camera and
the asset live: by compiled kernels on a CPU (`render.ground_cpu`), in plain torch elsewhere.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from jigdoll.render import ground_cpu
from jigdoll.skin.threads import on_torch_threads
from jigdoll.types import Camera, Gaussians, Rendering


@dataclass(frozen=True)
class Ground:
    """How the ground and the sky look; colours are sRGB in 0..1."""

    light: tuple[float, float, float] = (0.80, 0.81, 0.80)
    dark: tuple[float, float, float] = (0.52, 0.54, 0.56)
    sky: tuple[float, float, float] = (0.86, 0.91, 0.96)
    """The colour of rays that never meet the ground, and of the far ground."""
    cell: float = 0.5
    """Side of a square of the checkerboard [m]."""
    phase: tuple[float, float] = (0.0, 0.0)
    """Where the corner of a light square lies in x and z [m]."""
    fog: float = 12.0
    """Distance at which the ground has faded by 63 % [m]."""
    shadow: float = 0.6
    """s_max: how dark the shadow is where the asset touches the ground; 0 draws none."""
    shadow_decay: float = 3.0
    """beta: how fast the shadow fades with the height above [1/m]."""
    shadow_softness: float = 1.5
    """Blur of the shadow's outline [cells of the shadow map]; 0 keeps the heuristic exact."""


def fitting_ground(points: Float[Tensor, "*batch points 3"], *, like: Ground = Ground()) -> Ground:
    """The same ground at the asset's own scale: squares of about a third of its size, a shadow that fades within it."""
    if points.shape[-2] == 0:
        return like
    size = float((points.amax(-2) - points.amin(-2)).norm(dim=-1).mean())
    size = size if math.isfinite(size) and size > 0 else 1.0
    fields = {**like.__dict__, "cell": 0.35 * size, "fog": 7.0 * size, "shadow_decay": 3.0 / size}
    return Ground(**fields)


def quiet_ground(points: Float[Tensor, "*batch points 3"]) -> Ground:
    """The fitting ground with faint squares that fade early: a small prior then has eyes for the character."""
    ground = fitting_ground(points)
    return Ground(
        **{**ground.__dict__, "light": (0.75, 0.76, 0.76), "dark": (0.63, 0.65, 0.66), "fog": 0.5 * ground.fog}
    )


@dataclass(frozen=True, eq=False)
class Shadow:
    """How dark the ground is under the asset: one map per frame, seen from above."""

    darkness: Float[Tensor, "frames rows columns"]
    """exp(-beta d), d = the height of the asset's lowest part above the place; rows run along z, columns along x."""
    corner: Float[Tensor, "frames 2"]
    """x and z of the map's first corner [m]."""
    cell: Float[Tensor, " frames"]
    """Side of a cell [m]."""


def cast_shadow(
    points: Float[Tensor, "frames points 3"],
    *,
    faces: Int[Tensor, "faces 3"] | None = None,
    ground: Ground = Ground(),
    resolution: int = 96,
) -> Shadow:
    """The shadow of the deformed asset under light from straight above: of its triangles, or of the points as discs.

    The part of the asset below the ground counts as touching it. Not differentiable.
    """
    points = points.detach()
    frames = points.shape[0]
    if not points.shape[1] or not frames:
        empty = points.new_zeros(frames, resolution, resolution, dtype=torch.float32)
        return Shadow(empty, empty.new_zeros(frames, 2), empty.new_ones(frames))
    if points.device.type != "cpu":
        return cast_shadow_reference(points, faces=faces, ground=ground, resolution=resolution)
    clip = np.ascontiguousarray(points.numpy(), dtype=np.float32)
    corner, cell = (part.numpy() for part in _map_frame(torch.from_numpy(clip), ground, resolution))
    darkness = np.zeros((frames, resolution, resolution), np.float32)
    triangles = np.zeros((0, 3), np.int64) if faces is None else faces.cpu().numpy().astype(np.int64)
    strength = (ground.shadow_decay, ground.shadow_softness)
    on_torch_threads(ground_cpu.darken, clip, triangles, corner, cell, *strength, darkness)
    return Shadow(torch.from_numpy(darkness), torch.from_numpy(corner), torch.from_numpy(cell))


def cast_shadow_reference(
    points: Float[Tensor, "frames points 3"],
    *,
    faces: Int[Tensor, "faces 3"] | None = None,
    ground: Ground = Ground(),
    resolution: int = 96,
) -> Shadow:
    """The same in plain torch: what runs on a GPU, and the truth for the compiled form."""
    points = points.detach().float()
    corner, cell = _map_frame(points, ground, resolution)
    x, z = ((points[..., ::2] - corner[:, None]) / cell[:, None, None] - 0.5).unbind(-1)
    lowest = _lowest_points if faces is None else partial(_lowest_triangles, faces=faces.long())
    darkness = torch.exp(-ground.shadow_decay * lowest(x, z, points[..., 1], resolution=resolution).clamp_min(0))
    if ground.shadow_softness > 0:
        reach = math.ceil(2 * ground.shadow_softness)
        steps = torch.arange(-reach, reach + 1, dtype=points.dtype, device=points.device)
        kernel = torch.exp(-0.5 * (steps / ground.shadow_softness).square())
        kernel = (kernel / kernel.sum()).reshape(1, 1, 1, -1)
        darkness = torch.nn.functional.conv2d(darkness[:, None], kernel, padding=(0, reach))
        darkness = torch.nn.functional.conv2d(darkness, kernel.mT, padding=(reach, 0))[:, 0]
    return Shadow(darkness, corner, cell)


def _map_frame(
    points: Float[Tensor, "frames points 3"], ground: Ground, resolution: int
) -> tuple[Float[Tensor, "frames 2"], Float[Tensor, " frames"]]:
    """The first corner and the cells of a map that holds the asset and the blur around it."""
    border = 3 + math.ceil(2 * ground.shadow_softness)
    low, high = points[..., ::2].amin(1), points[..., ::2].amax(1)
    cell = ((high - low).amax(-1) / (resolution - 2 * border)).clamp_min(1e-6)
    return 0.5 * (low + high) - 0.5 * resolution * cell[:, None], cell


def _lowest_points(x: Tensor, z: Tensor, y: Tensor, *, resolution: int) -> Float[Tensor, "frames rows columns"]:
    """The lowest point over each cell, points as discs of two cells; infinity over the others."""
    lowest = torch.full((x.shape[0], resolution * resolution), torch.inf, device=x.device)
    for down in range(-2, 3):
        for right in range(-2, 3):
            # The cells around the point, counted from the one whose centre is next below it.
            column, row = x.floor() + right, z.floor() + down
            inside = (column >= 0) & (column < resolution) & (row >= 0) & (row < resolution)
            inside = inside & ((column - x).square() + (row - z).square() <= 4)
            index = torch.where(inside, row * resolution + column, 0).long()
            lowest = lowest.scatter_reduce(1, index, torch.where(inside, y, torch.inf), "amin")
    return lowest.reshape(-1, resolution, resolution)


def _lowest_triangles(
    x: Tensor, z: Tensor, y: Tensor, *, faces: Int[Tensor, "faces 3"], resolution: int
) -> Float[Tensor, "frames rows columns"]:
    """The lowest surface over the centre of each cell; infinity where there is none."""
    rows, columns = (torch.arange(resolution, device=x.device, dtype=x.dtype) for _ in range(2))
    lowest = torch.full((x.shape[0], resolution, resolution), torch.inf, device=x.device)
    for some in faces.split(64):
        corners = [[part[:, some[:, i], None, None] for i in range(3)] for part in (x, z, y)]
        (xa, xb, xc), (za, zb, zc), (ya, yb, yc) = corners
        area = (xb - xa) * (zc - za) - (xc - xa) * (zb - za)
        i, j = columns, rows[:, None]
        v = ((i - xa) * (zc - za) - (xc - xa) * (j - za)) / area
        w = ((xb - xa) * (j - za) - (i - xa) * (zb - za)) / area
        inside = (v >= 0) & (w >= 0) & (v + w <= 1) & (area != 0)
        height = torch.where(inside, (1 - v - w) * ya + v * yb + w * yc, torch.inf)
        lowest = torch.minimum(lowest, height.amin(1))
    return lowest


def draw_ground(
    camera: Camera, *, ground: Ground = Ground(), shadow: Shadow | None = None
) -> Float[Tensor, "*batch height width 3"]:
    """The ground and the sky as each camera sees them; the last axis of the camera's batch is the shadow's frames.

    Each pixel is the mean of the checkerboard over its footprint, so edges are smooth and the distance is grey. The
    ground's colour is weighted by s(P) = 1 - s_max exp(-beta d(P)).
    """
    batch, T = camera.T_camera_world.shape[:-2], camera.T_camera_world.detach()
    K, count = camera.K.detach().expand(*batch, 3, 3).reshape(-1, 3, 3), math.prod(batch)
    if shadow is None or ground.shadow == 0:
        shadow = Shadow(T.new_zeros(1, 1, 1), T.new_zeros(1, 2), T.new_ones(1))
    frames = shadow.darkness.shape[0]
    which = (torch.arange(frames).expand(batch) if frames > 1 else torch.zeros(batch, dtype=torch.long)).reshape(count)
    if T.device.type != "cpu":
        seen = Camera(T.reshape(count, 4, 4), K, camera.width, camera.height)
        return draw_ground_reference(seen, which.tolist(), ground=ground, shadow=shadow).unflatten(0, batch)
    colors = np.array([ground.light, ground.dark, ground.sky], np.float32)
    numbers = np.array([ground.cell, *ground.phase, ground.fog, ground.shadow])
    picture = np.empty((count, camera.height, camera.width, 3), np.float32)
    maps = (shadow.darkness.float().numpy(), shadow.corner.double().numpy(), shadow.cell.double().numpy())
    lenses = (T.double().reshape(count, 4, 4).numpy(), K.double().numpy())
    on_torch_threads(ground_cpu.cast_rays, *lenses, which.numpy(), colors, numbers, *maps, picture)
    return torch.from_numpy(picture).reshape(*batch, camera.height, camera.width, 3)


def draw_ground_reference(
    camera: Camera, which: Sequence[int], *, ground: Ground, shadow: Shadow
) -> Float[Tensor, "pictures height width 3"]:
    """The same in plain torch, picture by picture: what runs on a GPU, and the truth for the compiled form.

    `camera` has one batch axis, `which` names the map of the shadow that each picture shows.
    """
    T = camera.T_camera_world
    light, dark, sky = (T.new_tensor(color) for color in (ground.light, ground.dark, ground.sky))
    columns = torch.arange(camera.width, device=T.device, dtype=T.dtype) + 0.5
    rows = (torch.arange(camera.height, device=T.device, dtype=T.dtype) + 0.5)[:, None]
    pictures = []
    for view, K, frame in zip(T, camera.K.expand(len(T), 3, 3), which, strict=True):
        R, focal = view[:3, :3], K.diagonal()[:2]
        eye = -(R.T @ view[:3, 3])
        u, v = torch.broadcast_tensors((columns - K[0, 2]) / focal[0], (rows - K[1, 2]) / focal[1])
        ray = u[..., None] * R[0] + v[..., None] * R[1] + R[2]
        t = -eye[1] / ray[..., 1]
        meets = (t > 0) & (t < 1e9)
        t = torch.where(meets, t, 1.0)
        slope = torch.where(meets, ray[..., 1], -1.0)[..., None]
        place = eye[[0, 2]] + t[..., None] * ray[..., [0, 2]]
        # dP/du = t (row - d row_y / d_y), and the same for v: the footprint of a pixel in each direction.
        spread = [R[i, [0, 2]] - ray[..., [0, 2]] * R[i, 1] / slope for i in (0, 1)]
        wide = t[..., None] * (spread[0].abs() / focal[0] + spread[1].abs() / focal[1])
        stripes = _stripe((place - place.new_tensor(ground.phase)) / ground.cell, wide / ground.cell).prod(-1)
        share = (0.5 + 0.5 * stripes)[..., None]
        clear = torch.exp(-(t * ray.norm(dim=-1) / ground.fog).square())[..., None]
        over = (place - shadow.corner[frame].to(place)) / shadow.cell[frame].to(place)
        s = 1 - ground.shadow * _read_map(shadow.darkness[frame].to(place), over)[..., None]
        board = (share * light + (1 - share) * dark) * s
        pictures.append(torch.where(meets[..., None], clear * board + (1 - clear) * sky, sky))
    return torch.stack(pictures) if pictures else T.new_zeros(0, camera.height, camera.width, 3)


def _stripe(place: Float[Tensor, "*batch"], wide: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """The mean over [place - wide/2, place + wide/2] of the function that is 1 on [0, 1), -1 on [1, 2), and so on."""
    wide = wide.clamp_min(1e-6)
    ends = torch.stack([place - 0.5 * wide, place + 0.5 * wide]) / 2
    low, high = 1 - (2 * (ends - ends.floor()) - 1).abs()
    return ((high - low) / wide).clamp(-1, 1)


def _read_map(
    values: Float[Tensor, "rows columns"], place: Float[Tensor, "height width 2"]
) -> Float[Tensor, "height width"]:
    """Bilinear, zero outside; the centre of cell (0, 0) is at (0.5, 0.5)."""
    rows, columns = values.shape
    x, z = (place - 0.5).unbind(-1)
    inside = (x >= 0) & (x < columns - 1) & (z >= 0) & (z < rows - 1)
    i, j = torch.where(inside, x, 0).long(), torch.where(inside, z, 0).long()
    right, below = (i + 1).clamp_max(columns - 1), (j + 1).clamp_max(rows - 1)
    fx, fz = x - i, z - j
    upper = values[j, i] * (1 - fx) + values[j, right] * fx
    lower = values[below, i] * (1 - fx) + values[below, right] * fx
    return torch.where(inside, upper * (1 - fz) + lower * fz, 0.0)


def composite(
    rendering: Rendering, background: Float[Tensor, "*#batch height width 3"]
) -> Float[Tensor, "*batch height width 3"]:
    """The asset over a background."""
    rgb, alpha = rendering.rgba[..., :3], rendering.rgba[..., 3:]
    return rgb + (1 - alpha) * background.to(rgb)


def hide_below_ground(gaussians: Gaussians) -> Gaussians:
    """The same splats, those whose centre lies below the ground with zero opacity (AKD 4.2)."""
    above = gaussians.means[..., 1].detach() >= 0
    if above.device.type == "cpu" and bool(above.all()):  # elsewhere the answer would be waited for
        return gaussians
    return Gaussians(gaussians.means, gaussians.covariances, gaussians.opacities * above, gaussians.colors)


def cut_below_ground(rendering: Rendering, camera: Camera, *, tolerance: float = 0.01) -> Rendering:
    """A rendering without the surfaces deeper than `tolerance` [m] below the ground, for a camera above it.

    For opaque triangles, where each pixel has one depth. The tolerance keeps soles that touch the ground.
    """
    alpha = rendering.rgba[..., 3]
    depth = rendering.depth / alpha.clamp_min(1e-6)
    rays = _ray_heights(camera)
    height = _eye_heights(camera)[..., None, None] + depth * rays
    keep = (height >= -tolerance).to(rendering.rgba)
    return Rendering(rendering.rgba * keep[..., None], rendering.depth * keep)


def _eye_heights(camera: Camera) -> Float[Tensor, "*batch"]:
    T = camera.T_camera_world
    return -(T[..., :3, 1] * T[..., :3, 3]).sum(-1)


def _ray_heights(camera: Camera) -> Float[Tensor, "*batch height width"]:
    """The world y of each pixel's ray at camera depth 1."""
    T, K = camera.T_camera_world, camera.K
    columns = torch.arange(camera.width, device=T.device, dtype=T.dtype) + 0.5
    rows = torch.arange(camera.height, device=T.device, dtype=T.dtype) + 0.5
    x = (columns - K[..., 0, 2, None]) / K[..., 0, 0, None]
    y = (rows - K[..., 1, 2, None]) / K[..., 1, 1, None]
    part = x[..., None, :] * T[..., 0, 1, None, None] + y[..., :, None] * T[..., 1, 1, None, None]
    return part + T[..., 2, 1, None, None]
