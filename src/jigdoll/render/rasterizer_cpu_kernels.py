"""The loops of the CPU rasterizer, compiled by numba on first use and cached on disk.

A picture is cut into tiles of 8 x ROWS pixels, so that a row of a tile is one vector register. Each Gaussian is listed
in the tiles that its 1/255 ellipse touches, with the rows it touches there. A tile is drawn by one thread, front to
back; the backward pass walks the same list back to front and writes the gradient sums of each (Gaussian, tile) entry to
a slot of its own. The slots of one Gaussian are contiguous and are added in a fixed order, so that no thread count
changes a bit of any result.

The exponent of a Gaussian is kept as a sum of two squares, p^2 + q^2 with (p, q) = M^T (pixel - mean) and M M^T the
inverse covariance: unlike the usual a dx^2 + 2 b dx dy + c dy^2 it cannot cancel, so that long and thin kernels keep
their digits in float32.
"""

import math
from typing import no_type_check

import numpy as np
from numba import njit

from jigdoll.render.rasterizer_cpu_simd import (
    EXP2_COEFFICIENTS,
    LANES,
    any_in_both,
    bits,
    both,
    exp2,
    fma,
    fnma,
    lanes,
    load,
    prefetch,
    smaller,
    splat,
    store,
    take_ticket,
    totals,
    where,
)

ROWS = 32
"""Height of a tile: tall enough that few Gaussians need a second one, low enough for the first-level cache."""
PIXELS = LANES * ROWS
_PAINT = 5 * LANES
"""Floats per row of a tile that is being drawn."""
_PULL = 8 * LANES
"""Floats per row of a tile in the backward pass."""
RECORD = 12
"""Floats per projected Gaussian: mean x y, factor of the inverse covariance xx yx yy, log2 opacity, r g b, depth, box."""
SUMS = 16
"""Floats per slot: gradient sums of r g b depth, then of dL/dlog(alpha) times 1, p, q, p^2, p q, q^2."""

ENTRY_BYTES = 4 * (4 + 3 + SUMS)
"""What an entry costs in memory: itself, its way through the sort, its slot."""

NEAR = 0.01
BLUR = 0.3
ALPHA_MAX = 0.999
ALPHA_MIN = 1.0 / 255.0
T_MIN = 1e-4
_LOG2_ALPHA_MIN = math.log2(ALPHA_MIN)
# exp(-(x^2) / 2) = 2^-((UNIT x)^2): the unit of p and q inside the kernels.
_UNIT = math.sqrt(0.5 / math.log(2.0))
# What the vector loops hold in registers or next to them: read from an array, it is not rebuilt in every round.
_TABLE = np.array([*EXP2_COEFFICIENTS[:5], _LOG2_ALPHA_MIN, ALPHA_MAX, T_MIN], np.float32)
_CHUNK = 2048

_compile = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
_inline = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"}, inline="never")


@_inline
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
            reach = math.sqrt(2.0 * math.log(opacity / ALPHA_MIN)) * 1.0001 + 1e-3
            rx, ry = reach * math.sqrt(xx), reach * math.sqrt(yy)
            left, right = max(math.ceil(mx - rx - 0.5), 0.0), min(math.floor(mx + rx - 0.5), width - 1.0)
            top, bottom = max(math.ceil(my - ry - 0.5), 0.0), min(math.floor(my + ry - 0.5), height - 1.0)
            if left > right or top > bottom:
                continue
            columns = np.int64(right) // LANES - np.int64(left) // LANES + 1
            boxes[image, n] = columns * (np.int64(bottom) // ROWS - np.int64(top) // ROWS + 1)
            depths[image, n] = z
            record = records[image, n]
            record[0], record[1] = mx, my
            record[2], record[3], record[4] = _UNIT * math.sqrt(yy / det), -_UNIT * xy / math.sqrt(yy * det), _UNIT / math.sqrt(yy)
            record[5] = math.log2(opacity)
            record[6], record[7], record[8], record[9] = color[0], color[1], color[2], z
            record[10], record[11] = left, right


@_inline
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
def bin_tiles(records, depths, starts, width, height, entries, tile_starts, orders, slot_starts, ticket):
    """List in each tile of each image the Gaussians that touch it, nearest first.

    An entry is (Gaussian, first row | end row << 16, slot, 0). The i-th nearest Gaussian, `orders[image, i]`, has the
    slots from `slot_starts[image, i]` to `slot_starts[image, i + 1]`.
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
        orders[image, : order.size] = order
        slots = 0
        for i in range(order.size):
            n = order[i]
            record = records[image, n]
            mx, my = record[0], record[1]
            mxx, myx, myy = record[2], record[3], record[4]
            slot_starts[image, i] = slots
            # The pixels that count lie in the ellipse p^2 + q^2 <= reach^2, a little widened against rounding.
            reach2 = (record[5] - np.float32(_LOG2_ALPHA_MIN)) * np.float32(1.0002) + np.float32(1e-3)
            # Its highest and lowest point, where p = 0 and q = +-reach, are at +-tip; the vertical line at dx cuts it at
            # dy = slope dx +- sqrt(lean - (bend dx)^2).
            tip = -myx / (mxx * myy) * math.sqrt(reach2)
            scale = np.float32(1.0) / (myx * myx + myy * myy)
            slope, bend, lean = -mxx * myx * scale, mxx * myy * scale, reach2 * scale
            for column in range(np.int64(record[10]) // LANES, np.int64(record[11]) // LANES + 1):
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
        slot_starts[image, order.size :] = slots
        base = starts[image]
        for tile in range(tiles_x * tiles_y):
            fill[tile + 1] += fill[tile]
            tile_starts[image, tile] = base + fill[tile]
        tile_starts[image, tiles_x * tiles_y] = base + slots
        for slot in range(slots):
            place = base + fill[tiles[slot]]
            fill[tiles[slot]] += 1
            entries[place, 0], entries[place, 1], entries[place, 2] = owners[slot], rows[slot], slot


@_compile
@no_type_check
def draw_tiles(records, entries, tile_starts, width, height, rgba, depth, ends, stops, ticket):
    """Blend the tiles front to back; keeps each pixel's last transmittance (`ends`) and where it became opaque (`stops`)."""
    images, tiles = ends.shape[0], ends.shape[1]
    tiles_x = (width + LANES - 1) // LANES
    paint = np.empty(ROWS * _PAINT, np.float32)
    done = np.empty(ROWS, np.bool_)
    while True:
        job = take_ticket(ticket)
        if job >= images * tiles:
            return
        image, tile = job // tiles, job % tiles
        first, end = tile_starts[image, tile], tile_starts[image, tile + 1]
        if first == end:
            continue
        x0, y0 = (tile % tiles_x) * LANES, (tile // tiles_x) * ROWS
        _blend(
            records[image], entries[first:end], x0, y0, min(width - x0, LANES), min(height - y0, ROWS), paint, done,
            ends[image, tile], stops[image, tile],
        )  # fmt: skip
        for row in range(min(height - y0, ROWS)):
            for lane in range(min(width - x0, LANES)):
                pixel = row * _PAINT + lane
                out = rgba[image, y0 + row, x0 + lane]
                out[0] = paint[pixel + LANES]
                out[1] = paint[pixel + 2 * LANES]
                out[2] = paint[pixel + 3 * LANES]
                out[3] = np.float32(1.0) - ends[image, tile, row * LANES + lane]
                depth[image, y0 + row, x0 + lane] = paint[pixel + 4 * LANES]


@_inline
@no_type_check
def _blend(records, entries, x0, y0, columns, rows, paint, done, ends, stops):
    """Draw one tile into `paint`: rows of light left, r, g, b, depth. Narrows the entries to the rows where they count."""
    c5, c4, c3, c2, c1 = splat(_TABLE[0]), splat(_TABLE[1]), splat(_TABLE[2]), splat(_TABLE[3]), splat(_TABLE[4])
    faintest, cap, opaque, zero = splat(_TABLE[5]), splat(_TABLE[6]), splat(_TABLE[7]), splat(0.0)
    lane_x = lanes() + splat(x0 + 0.5)
    for row in range(ROWS):
        here = row * _PAINT
        store(paint, here, where(lanes() < splat(columns if row < rows else 0), splat(1.0), zero))
        for plane in range(1, 5):
            store(paint, here + plane * LANES, zero)
        store(ends, row * LANES, zero)
        store(stops, row * LANES, splat(3e38))
        done[row] = False
    low, high = 0, rows
    flat = records.reshape(-1)
    for i in range(entries.shape[0]):
        if i + 4 < entries.shape[0]:
            prefetch(flat, entries[i + 4, 0] * RECORD)
        row0, row1 = max(entries[i, 1] & 0xFFFF, low), min(entries[i, 1] >> 16, high)
        if row0 >= row1:
            entries[i, 1] = 0
            continue
        entries[i, 1] = row0 | (row1 << 16)
        record = records[entries[i, 0]]
        p_lane = splat(record[2]) * (lane_x - splat(record[0]))
        dy = np.float32(y0 + row0) + np.float32(0.5) - record[1]
        shear, squash, peak = record[3], record[4], record[5]
        red, green, blue, z = splat(record[6]), splat(record[7]), splat(record[8]), splat(record[9])
        for row in range(row0, row1):
            here = row * _PAINT
            p = p_lane + splat(shear * dy)
            q = squash * dy
            dy += np.float32(1.0)
            power = fnma(p, p, splat(peak - q * q))
            alpha = where(power >= faintest, smaller(exp2(power, c5, c4, c3, c2, c1), cap), zero)
            light = load(paint, here)
            share = alpha * light
            rest = light - share
            if any_in_both(rest <= opaque, opaque < light):
                # Some pixels would become opaque with this Gaussian: it is left out there and nothing follows.
                newly = both(rest <= opaque, opaque < light)
                pixel = row * LANES
                store(ends, pixel, where(newly, light, load(ends, pixel)))
                store(stops, pixel, where(newly, splat(i), load(stops, pixel)))
                share, rest = where(newly, zero, share), where(newly, zero, rest)
                done[row] = bits(rest <= opaque) == 255
                while low < high and done[low]:
                    low += 1
                while low < high and done[high - 1]:
                    high -= 1
            store(paint, here, rest)
            store(paint, here + LANES, fma(share, red, load(paint, here + LANES)))
            store(paint, here + 2 * LANES, fma(share, green, load(paint, here + 2 * LANES)))
            store(paint, here + 3 * LANES, fma(share, blue, load(paint, here + 3 * LANES)))
            store(paint, here + 4 * LANES, fma(share, z, load(paint, here + 4 * LANES)))
    for row in range(ROWS):
        store(ends, row * LANES, load(ends, row * LANES) + load(paint, row * _PAINT))


@_compile
@no_type_check
def undraw_tiles(records, entries, tile_starts, starts, width, height, ends, stops, g_rgba, g_depth, sums, ticket):
    """The backward of `draw_tiles`: the gradient sums of each entry, into its slot."""
    images, tiles = ends.shape[0], ends.shape[1]
    tiles_x = (width + LANES - 1) // LANES
    pull = np.empty(ROWS * _PULL, np.float32)
    while True:
        job = take_ticket(ticket)
        if job >= images * tiles:
            return
        image, tile = job // tiles, job % tiles
        first, end = tile_starts[image, tile], tile_starts[image, tile + 1]
        if first == end:
            continue
        x0, y0 = (tile % tiles_x) * LANES, (tile // tiles_x) * ROWS
        pull[:] = 0.0
        for row in range(min(height - y0, ROWS)):
            for lane in range(min(width - x0, LANES)):
                pixel = row * _PULL + lane
                g = g_rgba[image, y0 + row, x0 + lane]
                for channel in range(4):
                    pull[pixel + (2 + channel) * LANES] = g[channel]
                pull[pixel + 6 * LANES] = g_depth[image, y0 + row, x0 + lane]
                pull[pixel] = ends[image, tile, row * LANES + lane]
                pull[pixel + 7 * LANES] = stops[image, tile, row * LANES + lane]
        _unblend(
            records[image], entries[first:end], x0, y0, pull,
            sums[starts[image] * SUMS : starts[image + 1] * SUMS],
        )  # fmt: skip


@_inline
@no_type_check
def _unblend(records, entries, x0, y0, pull, sums):
    """Walk one tile back to front; `pull` has rows of light, what is seen behind, dL/d r, g, b, a, depth, and the stop."""
    c5, c4, c3, c2, c1 = splat(_TABLE[0]), splat(_TABLE[1]), splat(_TABLE[2]), splat(_TABLE[3]), splat(_TABLE[4])
    faintest, cap, zero, one = splat(_TABLE[5]), splat(_TABLE[6]), splat(0.0), splat(1.0)
    lane_x = lanes() + splat(x0 + 0.5)
    flat = records.reshape(-1)
    for i in range(entries.shape[0] - 1, -1, -1):
        if i >= 4:
            prefetch(flat, entries[i - 4, 0] * RECORD)
        row0, row1 = entries[i, 1] & 0xFFFF, entries[i, 1] >> 16
        slot = np.int64(entries[i, 2]) * SUMS
        if row0 >= row1:
            store(sums, slot, zero)
            store(sums, slot + LANES, zero)
            continue
        record = records[entries[i, 0]]
        p_lane = splat(record[2]) * (lane_x - splat(record[0]))
        dy = np.float32(y0 + row0) + np.float32(0.5) - record[1]
        shear, squash, peak = record[3], record[4], record[5]
        red, green, blue, z = splat(record[6]), splat(record[7]), splat(record[8]), splat(record[9])
        sum_r, sum_g, sum_b, sum_z = zero, zero, zero, zero
        sum_1, sum_p, sum_q, sum_pp, sum_pq, sum_qq = zero, zero, zero, zero, zero, zero
        order = splat(i)
        for row in range(row0, row1):
            here = row * _PULL
            p = p_lane + splat(shear * dy)
            q = squash * dy
            dy += np.float32(1.0)
            power = fnma(p, p, splat(peak - q * q))
            raw = exp2(power, c5, c4, c3, c2, c1)
            drawn = both(power >= faintest, order < load(pull, here + 7 * LANES))
            alpha = where(drawn, smaller(raw, cap), zero)
            light = load(pull, here) / (one - alpha)
            behind = load(pull, here + LANES)
            g_r, g_g = load(pull, here + 2 * LANES), load(pull, here + 3 * LANES)
            g_b, g_z = load(pull, here + 4 * LANES), load(pull, here + 6 * LANES)
            value = fma(g_z, z, fma(g_b, blue, fma(g_g, green, fma(g_r, red, load(pull, here + 5 * LANES)))))
            gain = value - behind
            store(pull, here, light)
            store(pull, here + LANES, fma(alpha, gain, behind))
            share = alpha * light
            sum_r, sum_g = fma(share, g_r, sum_r), fma(share, g_g, sum_g)
            sum_b, sum_z = fma(share, g_b, sum_b), fma(share, g_z, sum_z)
            # dL/dlog(alpha); a capped alpha does not move.
            slope = where(raw <= cap, share * gain, zero)
            slope_p, qs = slope * p, splat(q)
            sum_1, sum_p, sum_pp = sum_1 + slope, sum_p + slope_p, fma(slope_p, p, sum_pp)
            sum_q, sum_pq, sum_qq = fma(slope, qs, sum_q), fma(slope_p, qs, sum_pq), fma(slope, qs * qs, sum_qq)
        store(sums, slot, totals(sum_r, sum_g, sum_b, sum_z, sum_1, sum_p, sum_q, sum_pp))
        store(sums, slot + LANES, totals(sum_pq, sum_qq, zero, zero, zero, zero, zero, zero))


@_compile
@no_type_check
def unproject(
    means, covariances, opacities, views, lenses, orders, slot_starts, starts, sums,
    g_means, g_covariances, g_opacities, g_colors, ticket,
):  # fmt: skip
    """The backward of `project`: add up each Gaussian's slots and carry the sums to its mean, covariance, opacity, colour.

    The gradients come filled with zeros.
    """
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
        for i in range(first, min(first + _CHUNK, count)):
            slot, end = slot_starts[image, i] + starts[image], slot_starts[image, i + 1] + starts[image]
            if slot == end:
                continue
            n = orders[image, i]
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


@_inline
@no_type_check
def _lift(mean, covariance, view, lens, acc, g_mean, g_covariance):
    """From the gradient sums in whitened picture coordinates to the mean and covariance in the world."""
    (x, y, z), (u, v), (a00, a01, a02, a10, a11, a12), (b00, b01, b02, b10, b11, b12), (xx, xy, yy) = _flatten(
        mean, covariance, view, lens
    )
    det = xx * yy - xy * xy
    mxx, myx, myy = math.sqrt(yy / det), -xy / math.sqrt(yy * det), 1.0 / math.sqrt(yy)
    # log(alpha) = log(opacity) - |M^T d|^2 / 2, so dL/dmean = M sum(g w) and dL/dcovariance = M sum(g w w^T) M^T / 2.
    sp, sq = acc[5] / _UNIT, acc[6] / _UNIT
    g_u, g_v = mxx * sp, myx * sp + myy * sq
    half = 0.5 / (_UNIT * _UNIT)
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
