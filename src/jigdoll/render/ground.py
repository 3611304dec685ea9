"""The ground of a scene: a checkerboard by ray casting, fog to the sky, and a soft shadow (AKD 4.2 and appendix C).

The ground is the plane y = 0 and a layer behind the asset; no gradient flows into it.
"""

import math
from dataclasses import dataclass
from typing import no_type_check

import numba
import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

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
    clip = np.ascontiguousarray(points.detach().cpu().numpy(), dtype=np.float32)
    frames = clip.shape[0]
    darkness = np.zeros((frames, resolution, resolution), np.float32)
    corner, cell = np.zeros((frames, 2), np.float32), np.ones(frames, np.float32)
    border = 3 + math.ceil(2 * ground.shadow_softness)
    if clip.shape[1] and frames:
        low, high = clip[:, :, ::2].min(1), clip[:, :, ::2].max(1)
        cell = np.maximum((high - low).max(-1) / (resolution - 2 * border), 1e-6)
        corner = 0.5 * (low + high) - 0.5 * resolution * cell[:, None]
        triangles = np.zeros((0, 3), np.int64) if faces is None else faces.cpu().numpy().astype(np.int64)
        strength = (ground.shadow_decay, ground.shadow_softness)
        on_torch_threads(_darken, clip, triangles, corner, cell, *strength, darkness)
    return Shadow(torch.from_numpy(darkness), torch.from_numpy(corner), torch.from_numpy(cell))


def draw_ground(
    camera: Camera, *, ground: Ground = Ground(), shadow: Shadow | None = None
) -> Float[Tensor, "*batch height width 3"]:
    """The ground and the sky as each camera sees them; the last axis of the camera's batch is the shadow's frames.

    Each pixel is the mean of the checkerboard over its footprint, so edges are smooth and the distance is grey. The
    ground's colour is weighted by s(P) = 1 - s_max exp(-beta d(P)).
    """
    batch = camera.T_camera_world.shape[:-2]
    count = math.prod(batch)
    T = camera.T_camera_world.detach().cpu().double().reshape(count, 4, 4).numpy()
    K = camera.K.detach().cpu().double().expand(*batch, 3, 3).reshape(count, 3, 3).numpy()
    if shadow is None or ground.shadow == 0:
        shadow = Shadow(torch.zeros(1, 1, 1), torch.zeros(1, 2), torch.ones(1))
    frames = shadow.darkness.shape[0]
    which = torch.arange(frames).expand(batch).reshape(count) if frames > 1 else torch.zeros(count, dtype=torch.long)
    colors = np.array([ground.light, ground.dark, ground.sky], np.float32)
    numbers = np.array([ground.cell, *ground.phase, ground.fog, ground.shadow])
    picture = np.empty((count, camera.height, camera.width, 3), np.float32)
    maps = (shadow.darkness.numpy(), shadow.corner.double().numpy(), shadow.cell.double().numpy())
    on_torch_threads(_cast_rays, T, K, which.numpy(), colors, numbers, *maps, picture)
    return torch.from_numpy(picture).reshape(*batch, camera.height, camera.width, 3).to(camera.T_camera_world.device)


def composite(
    rendering: Rendering, background: Float[Tensor, "*#batch height width 3"]
) -> Float[Tensor, "*batch height width 3"]:
    """The asset over a background."""
    rgb, alpha = rendering.rgba[..., :3], rendering.rgba[..., 3:]
    return rgb + (1 - alpha) * background.to(rgb)


def hide_below_ground(gaussians: Gaussians) -> Gaussians:
    """The same splats, those whose centre lies below the ground with zero opacity (AKD 4.2)."""
    above = gaussians.means[..., 1].detach() >= 0
    if bool(above.all()):
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


@numba.njit(parallel=True, fastmath=True, cache=True, error_model="numpy")
@no_type_check
def _cast_rays(T_camera_world, K, which, colors, numbers, darkness, corner, shadow_cell, picture):
    """Fill the pictures: one ray per pixel, its footprint on the ground from its two neighbours."""
    cell, phase_x, phase_z, fog, s_max = numbers
    images, height, width, _ = picture.shape
    for row in numba.prange(images * height):
        image, y = row // height, row % height
        T, lens, frame = T_camera_world[image], K[image], which[image]
        eye_x = -(T[0, 0] * T[0, 3] + T[1, 0] * T[1, 3] + T[2, 0] * T[2, 3])
        eye_y = -(T[0, 1] * T[0, 3] + T[1, 1] * T[1, 3] + T[2, 1] * T[2, 3])
        eye_z = -(T[0, 2] * T[0, 3] + T[1, 2] * T[1, 3] + T[2, 2] * T[2, 3])
        v = (y + 0.5 - lens[1, 2]) / lens[1, 1]
        for x in range(width):
            u = (x + 0.5 - lens[0, 2]) / lens[0, 0]
            dx = T[0, 0] * u + T[1, 0] * v + T[2, 0]
            dy = T[0, 1] * u + T[1, 1] * v + T[2, 1]
            dz = T[0, 2] * u + T[1, 2] * v + T[2, 2]
            t = -eye_y / dy if dy != 0 else -1.0
            if not 0 < t < 1e9:
                for c in range(3):
                    picture[image, y, x, c] = colors[2, c]
                continue
            px, pz = eye_x + t * dx, eye_z + t * dz
            # dP/du = t (column - d column_y / d_y), and the same for v: the footprint of a pixel in each direction.
            du, dv = t / lens[0, 0], t / lens[1, 1]
            wide_x = abs(du * (T[0, 0] - dx * T[0, 1] / dy)) + abs(dv * (T[1, 0] - dx * T[1, 1] / dy))
            wide_z = abs(du * (T[0, 2] - dz * T[0, 1] / dy)) + abs(dv * (T[1, 2] - dz * T[1, 1] / dy))
            stripes = _stripe((px - phase_x) / cell, wide_x / cell) * _stripe((pz - phase_z) / cell, wide_z / cell)
            light = 0.5 + 0.5 * stripes
            clear = math.exp(-((t * math.sqrt(dx * dx + dy * dy + dz * dz) / fog) ** 2))
            map_x = (px - corner[frame, 0]) / shadow_cell[frame]
            map_z = (pz - corner[frame, 1]) / shadow_cell[frame]
            s = 1 - s_max * _read_map(darkness[frame], map_x, map_z)
            for c in range(3):
                board = (light * colors[0, c] + (1 - light) * colors[1, c]) * s
                picture[image, y, x, c] = clear * board + (1 - clear) * colors[2, c]


@numba.njit(fastmath=True, cache=True)
@no_type_check
def _stripe(place, wide):
    """The mean over [place - wide/2, place + wide/2] of the function that is 1 on [0, 1), -1 on [1, 2), and so on.

    Its integral from 0 is the triangle wave |2 fract(p / 2) - 1| turned over.
    """
    wide = max(wide, 1e-6)
    a, b = (place - 0.5 * wide) / 2, (place + 0.5 * wide) / 2
    low, high = 1 - abs(2 * (a - math.floor(a)) - 1), 1 - abs(2 * (b - math.floor(b)) - 1)
    return min(max((high - low) / wide, -1.0), 1.0)


@numba.njit(fastmath=True, cache=True)
@no_type_check
def _read_map(values, x, z):
    """Bilinear, zero outside; the centre of cell (0, 0) is at (0.5, 0.5)."""
    x, z = x - 0.5, z - 0.5
    rows, columns = values.shape
    if not (0 <= x < columns - 1 and 0 <= z < rows - 1):
        return 0.0
    i, j = int(x), int(z)
    fx, fz = x - i, z - j
    upper = values[j, i] * (1 - fx) + values[j, i + 1] * fx
    return upper * (1 - fz) + (values[j + 1, i] * (1 - fx) + values[j + 1, i + 1] * fx) * fz


@numba.njit(parallel=True, cache=True, error_model="numpy")
@no_type_check
def _darken(clip, faces, corner, cell, decay, softness, darkness):
    """The lowest height over each cell by triangles (or by points as discs of two cells), then exp, then the blur."""
    frames, rows, columns = darkness.shape
    for frame in numba.prange(frames):
        lowest = np.full((rows, columns), np.inf, np.float32)
        xs = (clip[frame, :, 0] - corner[frame, 0]) / cell[frame] - 0.5
        zs = (clip[frame, :, 2] - corner[frame, 1]) / cell[frame] - 0.5
        ys = clip[frame, :, 1]
        if faces.shape[0] == 0:
            for p in range(xs.shape[0]):
                for j in range(max(int(np.ceil(zs[p] - 2)), 0), min(int(np.floor(zs[p] + 2)), rows - 1) + 1):
                    for i in range(max(int(np.ceil(xs[p] - 2)), 0), min(int(np.floor(xs[p] + 2)), columns - 1) + 1):
                        if (i - xs[p]) ** 2 + (j - zs[p]) ** 2 <= 4:
                            lowest[j, i] = min(lowest[j, i], ys[p])
        for f in range(faces.shape[0]):
            a, b, c = faces[f]
            area = (xs[b] - xs[a]) * (zs[c] - zs[a]) - (xs[c] - xs[a]) * (zs[b] - zs[a])
            if area == 0:
                continue
            left, right = np.ceil(min(xs[a], xs[b], xs[c])), np.floor(max(xs[a], xs[b], xs[c]))
            near, far = np.ceil(min(zs[a], zs[b], zs[c])), np.floor(max(zs[a], zs[b], zs[c]))
            for j in range(max(int(near), 0), min(int(far), rows - 1) + 1):
                for i in range(max(int(left), 0), min(int(right), columns - 1) + 1):
                    v = ((i - xs[a]) * (zs[c] - zs[a]) - (xs[c] - xs[a]) * (j - zs[a])) / area
                    w = ((xs[b] - xs[a]) * (j - zs[a]) - (i - xs[a]) * (zs[b] - zs[a])) / area
                    if v >= 0 and w >= 0 and v + w <= 1:
                        height = (1 - v - w) * ys[a] + v * ys[b] + w * ys[c]
                        lowest[j, i] = min(lowest[j, i], np.float32(height))
        dark = np.exp(-decay * np.maximum(lowest, 0))  # exp(-inf) = 0: nothing above, no shadow
        if softness > 0:
            reach = int(np.ceil(2 * softness))
            kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / softness) ** 2)
            kernel /= kernel.sum()
            across = np.zeros((rows, columns))
            for step in range(-reach, reach + 1):
                for j in range(rows):
                    for i in range(max(0, -step), min(columns, columns - step)):
                        across[j, i] += kernel[step + reach] * dark[j, i + step]
            dark = np.zeros((rows, columns))
            for step in range(-reach, reach + 1):
                for j in range(max(0, -step), min(rows, rows - step)):
                    for i in range(columns):
                        dark[j, i] += kernel[step + reach] * across[j + step, i]
        darkness[frame] = dark
