"""The ground on a CPU: compiled kernels behind `render.ground`, whose torch forms are the truth for them."""

import math
from typing import no_type_check

import numba
import numpy as np


@numba.njit(parallel=True, fastmath=True, cache=True, error_model="numpy")
@no_type_check
def cast_rays(T_camera_world, K, which, colors, numbers, darkness, corner, shadow_cell, picture):
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
def darken(clip, faces, corner, cell, decay, softness, darkness):
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
