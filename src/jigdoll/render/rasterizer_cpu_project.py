"""Projection and sorting for the CPU rasterizer, and the gradient of the projection.

A picture is cut into tiles of 8 x ROWS pixels. Each Gaussian is listed in the tiles that its 1/255 ellipse touches, with
the rows it touches there. The backward pass over the tiles leaves the gradient sums of each (Gaussian, tile) entry in a
slot of its own; the slots of one Gaussian are contiguous and are added in a fixed order, so that no thread count changes
a bit of any result.

The exponent of a Gaussian is kept as a sum of two squares, p^2 + q^2 with (p, q) = M^T (pixel - mean) and M M^T the
inverse covariance: unlike the usual a dx^2 + 2 b dx dy + c dy^2 it does not cancel, so that long and thin kernels keep
their digits in float32.
"""

import math
from typing import no_type_check

import numpy as np
from numba import njit

from jigdoll.render.rasterizer import ALPHA_MIN, BLUR, NEAR
from jigdoll.render.rasterizer_cpu_layout import (
    DEPTH, ENTRY, FALL, INVERSE_XX, INVERSE_YX, INVERSE_YY, LEFT, MEAN_X, MEAN_Y, PEAK, RED, RIGHT, ROWS, RUN, SUMS,
    UNIT,
)  # fmt: skip
from jigdoll.render.rasterizer_cpu_simd import LANES, load, prefetch, splat, store, take_ticket

_LOG2_ALPHA_MIN = math.log2(ALPHA_MIN)
_CHUNK = 1024
_RUN_MAX = 16

_compile = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})


@_compile
@no_type_check
def _flatten(mean, covariance, view, lens):
    """Project one Gaussian: camera-space mean, tangents (clamped as gsplat does), A = J R, A C and the blurred A C A^T."""
    m0, m1, m2 = np.float64(mean[0]), np.float64(mean[1]), np.float64(mean[2])
    x = view[0] * m0 + view[1] * m1 + view[2] * m2 + view[3]
    y = view[4] * m0 + view[5] * m1 + view[6] * m2 + view[7]
    z = view[8] * m0 + view[9] * m1 + view[10] * m2 + view[11]
    iz = 1.0 / z
    u = min(max(x * iz, lens[4]), lens[5])
    v = min(max(y * iz, lens[6]), lens[7])
    fx, fy = lens[0] * iz, lens[1] * iz
    a00, a01, a02 = fx * (view[0] - u * view[8]), fx * (view[1] - u * view[9]), fx * (view[2] - u * view[10])
    a10, a11, a12 = fy * (view[4] - v * view[8]), fy * (view[5] - v * view[9]), fy * (view[6] - v * view[10])
    c00, c11, c22 = np.float64(covariance[0, 0]), np.float64(covariance[1, 1]), np.float64(covariance[2, 2])
    c01 = 0.5 * (np.float64(covariance[0, 1]) + np.float64(covariance[1, 0]))
    c02 = 0.5 * (np.float64(covariance[0, 2]) + np.float64(covariance[2, 0]))
    c12 = 0.5 * (np.float64(covariance[1, 2]) + np.float64(covariance[2, 1]))
    b00, b01, b02 = a00 * c00 + a01 * c01 + a02 * c02, a00 * c01 + a01 * c11 + a02 * c12, a00 * c02 + a01 * c12 + a02 * c22
    b10, b11, b12 = a10 * c00 + a11 * c01 + a12 * c02, a10 * c01 + a11 * c11 + a12 * c12, a10 * c02 + a11 * c12 + a12 * c22
    xx = b00 * a00 + b01 * a01 + b02 * a02 + BLUR
    xy = b00 * a10 + b01 * a11 + b02 * a12
    yy = b10 * a10 + b11 * a11 + b12 * a12 + BLUR
    return (x, y, z), (u, v), (a00, a01, a02, a10, a11, a12), (b00, b01, b02, b10, b11, b12), (xx, xy, yy)


@_compile
@no_type_check
def project(means, covariances, opacities, colors, views, lenses, width, height, records, depths, boxes, trouble, ticket):
    """Fill the records of all Gaussians of all images; `boxes` counts the tiles that each may touch.

    A Gaussian that cannot be seen gets depth infinity. A number that is not finite is reported in `trouble`.
    """
    images, count = depths.shape
    chunks = (count + _CHUNK - 1) // _CHUNK
    while True:
        job = take_ticket(ticket)
        if job >= images * chunks:
            return
        image = job // chunks
        first = (job % chunks) * _CHUNK
        mean_image = image if means.shape[0] > 1 else 0
        covariance_image = image if covariances.shape[0] > 1 else 0
        opacity_image = image if opacities.shape[0] > 1 else 0
        color_image = image if colors.shape[0] > 1 else 0
        view = views[image]
        lens = lenses[image]
        for n in range(first, min(first + _CHUNK, count)):
            depths[image, n] = np.inf
            boxes[image, n] = 0
            opacity = opacities[opacity_image, n]
            color = colors[color_image, n]
            (x, y, z), _, _, _, (xx, xy, yy) = _flatten(means[mean_image, n], covariances[covariance_image, n], view, lens)
            if not np.isfinite(x + y + z + xx + xy + yy + opacity + color[0] + color[1] + color[2]):
                # z = 0 divides by zero, which is no fault of the input.
                if not (z == 0.0 and np.isfinite(x + y)):
                    trouble[image] = n + 1
                continue
            det = xx * yy - xy * xy
            if z < NEAR or opacity < ALPHA_MIN or det <= 0.0:
                continue
            mx = lens[0] * x / z + lens[2]
            my = lens[1] * y / z + lens[3]
            peak = math.log2(opacity)
            reach = math.sqrt(peak - _LOG2_ALPHA_MIN) * (1.0001 / UNIT) + 1e-3
            rx, ry = reach * math.sqrt(xx), reach * math.sqrt(yy)
            left, right = max(math.ceil(mx - rx - 0.5), 0.0), min(math.floor(mx + rx - 0.5), width - 1.0)
            top, bottom = max(math.ceil(my - ry - 0.5), 0.0), min(math.floor(my + ry - 0.5), height - 1.0)
            if left > right or top > bottom:
                continue
            columns = np.int64(right) // LANES - np.int64(left) // LANES + 1
            boxes[image, n] = columns * (np.int64(bottom) // ROWS - np.int64(top) // ROWS + 1)
            depths[image, n] = z
            record = records[image, n]
            record[MEAN_X], record[MEAN_Y] = mx, my
            shear, squash = -UNIT * xy / math.sqrt(yy * det), UNIT / math.sqrt(yy)
            record[INVERSE_XX], record[INVERSE_YX], record[INVERSE_YY] = UNIT * math.sqrt(yy / det), shear, squash
            record[PEAK] = peak
            record[RED], record[RED + 1], record[RED + 2], record[DEPTH] = color[0], color[1], color[2], z
            record[FALL] = math.exp((-2.0 * math.log(2.0)) * (shear * shear + squash * squash))
            # Along a run p changes by no more than 6: no lane that is visible in it is below 2^-90 at either end.
            record[RUN] = min(1.0 + math.floor(6.0 / max(abs(shear), 1e-3)), _RUN_MAX)
            record[LEFT], record[RIGHT] = left, right


@_compile
@no_type_check
def _depth_order(depths):
    """The visible Gaussians of one image, nearest first, ties by index: a radix sort of the float's bits."""
    keys = depths.view(np.uint32)
    infinity = np.uint32(0x7F800000)
    order = np.empty(keys.size, np.int32)
    histogram = np.zeros((3, 2048), np.int64)
    visible = 0
    for n in range(keys.size):
        key = keys[n]
        if key != infinity:
            order[visible] = n
            visible += 1
            histogram[0, key & 2047] += 1
            histogram[1, (key >> 11) & 2047] += 1
            histogram[2, key >> 22] += 1
    order = order[:visible]
    other = np.empty_like(order)
    for digit in range(3):
        before = 0
        for bucket in range(2048):
            here = histogram[digit, bucket]
            histogram[digit, bucket] = before
            before += here
        for i in range(visible):
            n = order[i]
            bucket = (keys[n] >> np.uint32(11 * digit)) & 2047
            other[histogram[digit, bucket]] = n
            histogram[digit, bucket] += 1
        order, other = other, order
    return order


@_compile
@no_type_check
def bin_tiles(records, depths, starts, width, height, entries, tile_starts, slot_ranges, ticket):
    """List in each tile of each image the Gaussians that touch it, nearest first.

    An entry is (Gaussian, first row | end row << 16, slot, 0). The slots of a Gaussian are `slot_ranges[image, n]`,
    which come filled with zeros.
    """
    images = depths.shape[0]
    tiles_x, tiles_y = (width + LANES - 1) // LANES, (height + ROWS - 1) // ROWS
    while True:
        image = take_ticket(ticket)
        if image >= images:
            return
        order = _depth_order(depths[image])
        capacity = starts[image + 1] - starts[image]
        owners, tiles, rows = np.empty(capacity, np.int32), np.empty(capacity, np.int32), np.empty(capacity, np.int32)
        fill = np.zeros(tiles_x * tiles_y + 1, np.int64)
        slots = 0
        for i in range(order.size):
            n = order[i]
            record = records[image, n]
            mx, my = record[MEAN_X], record[MEAN_Y]
            mxx, myx, myy = record[INVERSE_XX], record[INVERSE_YX], record[INVERSE_YY]
            slot_ranges[image, n, 0] = slots
            # The pixels that count lie in the ellipse p^2 + q^2 <= reach^2, a little widened against rounding.
            reach2 = (record[PEAK] - np.float32(_LOG2_ALPHA_MIN)) * np.float32(1.0002) + np.float32(1e-3)
            # Its highest and lowest point, where p = 0 and q = +-reach, are at +-tip; the vertical line at dx cuts it at
            # dy = slope dx +- sqrt(lean - (bend dx)^2).
            tip = -myx / (mxx * myy) * math.sqrt(reach2)
            scale = np.float32(1.0) / (myx * myx + myy * myy)
            slope, bend, lean = -mxx * myx * scale, mxx * myy * scale, reach2 * scale
            for column in range(np.int64(record[LEFT]) // LANES, np.int64(record[RIGHT]) // LANES + 1):
                near_x = np.float32(column * LANES) + np.float32(0.5) - mx
                far_x = near_x + np.float32(LANES - 1)
                # The highest point within the strip of this column: the tip, or the border that is nearest to it.
                up, down = min(max(tip, near_x), far_x), min(max(-tip, near_x), far_x)
                high = slope * up + math.sqrt(lean - bend * bend * up * up)
                low = slope * down - math.sqrt(lean - bend * bend * down * down)
                if not (high >= low):  # NaN: the ellipse ends beside this strip.
                    continue
                y0 = np.int64(min(max(math.ceil(my + low - np.float32(0.501)), 0.0), height))
                y1 = np.int64(min(max(math.floor(my + high - np.float32(0.499)) + 1.0, 0.0), height))
                while y0 < y1:
                    tile_y = y0 // ROWS
                    end = min(y1, (tile_y + 1) * ROWS)
                    tile = tile_y * tiles_x + column
                    owners[slots], tiles[slots] = n, tile
                    rows[slots] = (y0 - tile_y * ROWS) | ((end - tile_y * ROWS) << 16)
                    fill[tile + 1] += 1
                    slots += 1
                    y0 = end
            slot_ranges[image, n, 1] = slots
        base = starts[image]
        for tile in range(tiles_x * tiles_y):
            fill[tile + 1] += fill[tile]
            tile_starts[image, tile] = base + fill[tile]
        tile_starts[image, tiles_x * tiles_y] = base + slots
        for slot in range(slots):
            place = (base + fill[tiles[slot]]) * ENTRY
            fill[tiles[slot]] += 1
            entries[place], entries[place + 1], entries[place + 2] = owners[slot], rows[slot], slot


@_compile
@no_type_check
def unproject(
    means, covariances, opacities, views, lenses, slot_ranges, starts, sums,
    g_means, g_covariances, g_opacities, g_colors, ticket,
):  # fmt: skip
    """The backward of `project`: add up each Gaussian's slots and carry the sums to its mean, covariance, opacity, colour."""
    images, count = g_opacities.shape
    chunks = (count + _CHUNK - 1) // _CHUNK
    acc = np.empty(SUMS, np.float32)
    while True:
        job = take_ticket(ticket)
        if job >= images * chunks:
            return
        image = job // chunks
        first = (job % chunks) * _CHUNK
        mean_image = image if means.shape[0] > 1 else 0
        covariance_image = image if covariances.shape[0] > 1 else 0
        opacity_image = image if opacities.shape[0] > 1 else 0
        for n in range(first, min(first + _CHUNK, count)):
            slot, end = slot_ranges[image, n, 0] + starts[image], slot_ranges[image, n, 1] + starts[image]
            ahead = starts[image] + slot_ranges[image, min(n + 6, count - 1), 0]
            prefetch(sums, ahead * SUMS)
            prefetch(sums, ahead * SUMS + 16)
            prefetch(sums, ahead * SUMS + 32)
            if slot == end:
                g_means[image, n] = 0.0
                g_covariances[image, n] = 0.0
                g_opacities[image, n] = 0.0
                g_colors[image, n] = 0.0
                continue
            low, high = splat(0.0), splat(0.0)
            for s in range(slot, end):
                low, high = low + load(sums, s * SUMS), high + load(sums, s * SUMS + LANES)
            store(acc, 0, low)
            store(acc, LANES, high)
            for k in range(3):
                g_colors[image, n, k] = acc[k]
            g_opacities[image, n] = acc[4] / opacities[opacity_image, n]
            _lift(
                means[mean_image, n], covariances[covariance_image, n], views[image], lenses[image], acc,
                g_means[image, n], g_covariances[image, n],
            )  # fmt: skip


@_compile
@no_type_check
def _lift(mean, covariance, view, lens, acc, g_mean, g_covariance):
    """From the gradient sums in whitened picture coordinates to the mean and covariance in the world."""
    (x, y, z), (u, v), (a00, a01, a02, a10, a11, a12), (b00, b01, b02, b10, b11, b12), (xx, xy, yy) = _flatten(
        mean, covariance, view, lens
    )
    det = xx * yy - xy * xy
    mxx, myx, myy = math.sqrt(yy / det), -xy / math.sqrt(yy * det), 1.0 / math.sqrt(yy)
    # log(alpha) = log(opacity) - |M^T d|^2 / 2, so dL/dmean = M sum(g w) and dL/dcovariance = M sum(g w w^T) M^T / 2.
    sp, sq = acc[5] / UNIT, acc[6] / UNIT
    g_u, g_v = mxx * sp, myx * sp + myy * sq
    half = 0.5 / (UNIT * UNIT)
    wpp, wpq, wqq = half * acc[7], half * acc[8], half * acc[9]
    gxx = mxx * mxx * wpp
    gxy = mxx * (myx * wpp + myy * wpq)
    gyy = myx * myx * wpp + 2.0 * myx * myy * wpq + myy * myy * wqq
    # dL/dC = A^T G A.
    t00, t01, t02 = gxx * a00 + gxy * a10, gxx * a01 + gxy * a11, gxx * a02 + gxy * a12
    t10, t11, t12 = gxy * a00 + gyy * a10, gxy * a01 + gyy * a11, gxy * a02 + gyy * a12
    g_covariance[0, 0] = a00 * t00 + a10 * t10
    g_covariance[1, 1] = a01 * t01 + a11 * t11
    g_covariance[2, 2] = a02 * t02 + a12 * t12
    g_covariance[0, 1] = g_covariance[1, 0] = a00 * t01 + a10 * t11
    g_covariance[0, 2] = g_covariance[2, 0] = a00 * t02 + a10 * t12
    g_covariance[1, 2] = g_covariance[2, 1] = a01 * t02 + a11 * t12
    # dL/dA = 2 G A C, then to the entries of J through A = J R.
    h00, h01, h02 = 2.0 * (gxx * b00 + gxy * b10), 2.0 * (gxx * b01 + gxy * b11), 2.0 * (gxx * b02 + gxy * b12)
    h10, h11, h12 = 2.0 * (gxy * b00 + gyy * b10), 2.0 * (gxy * b01 + gyy * b11), 2.0 * (gxy * b02 + gyy * b12)
    iz = 1.0 / z
    fx, fy = lens[0] * iz, lens[1] * iz
    g_j00 = h00 * view[0] + h01 * view[1] + h02 * view[2]
    g_j02 = h00 * view[8] + h01 * view[9] + h02 * view[10]
    g_j11 = h10 * view[4] + h11 * view[5] + h12 * view[6]
    g_j12 = h10 * view[8] + h11 * view[9] + h12 * view[10]
    g_z = acc[3] - iz * (fx * g_j00 + fy * g_j11 - fx * u * g_j02 - fy * v * g_j12)
    g_z -= iz * iz * (lens[0] * x * g_u + lens[1] * y * g_v)
    g_x, g_y = fx * g_u, fy * g_v
    if u == x * iz:
        g_x -= fx * g_j02 * iz
        g_z += fx * g_j02 * u * iz
    if v == y * iz:
        g_y -= fy * g_j12 * iz
        g_z += fy * g_j12 * v * iz
    g_mean[0] = view[0] * g_x + view[4] * g_y + view[8] * g_z
    g_mean[1] = view[1] * g_x + view[5] * g_y + view[9] * g_z
    g_mean[2] = view[2] * g_x + view[6] * g_y + view[10] * g_z
