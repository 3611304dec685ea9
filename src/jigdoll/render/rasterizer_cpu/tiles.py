"""Blending the tiles of the CPU rasterizer, front to back, and the gradient of it, back to front.

A row of a tile is one vector of eight pixels, so that everything here is vector arithmetic. Down the rows of a tile the
exponent of a Gaussian is a quadratic, hence its alpha is a product: each row multiplies it by a ratio, and the ratio by
a constant. That takes two exponentials per Gaussian and tile instead of one per row; a run of rows is kept short enough
(`record[RUN]`) that the product neither underflows where the Gaussian is visible nor gathers more than 4e-6 of error.
"""

from typing import no_type_check

import numpy as np
from numba import njit

from jigdoll.render.rasterizer import ALPHA_MAX, ALPHA_MIN, LIGHT_MIN
from jigdoll.render.rasterizer_cpu.layout import (
    DEPTH,
    ENTRY,
    FALL,
    INVERSE_XX,
    INVERSE_YX,
    INVERSE_YY,
    MEAN_X,
    MEAN_Y,
    PEAK,
    RECORD,
    RED,
    ROWS,
    RUN,
    SUMS,
)
from jigdoll.render.rasterizer_cpu.simd import (
    LANES,
    any_in_both,
    bits,
    both,
    exp2,
    fma,
    fnma,
    lanes,
    load,
    load_channel,
    prefetch,
    prefetch_to_write,
    smaller,
    splat,
    store,
    store_pixels,
    take_ticket,
    totals,
    where,
)

_PAINT = 5 * LANES
"""Floats per row of a tile that is being drawn: light left, r, g, b, depth."""
_PULL = 8 * LANES
"""Floats per row of a tile in the backward pass: light, what is seen behind, dL/d r g b a depth, where it stopped."""
_NEVER = 3e38
_FAINT = -90.0
"""Lanes whose log2 alpha falls below this at an end of a run are nowhere visible in it, and are cleared."""

_compile = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})


@_compile
@no_type_check
def _start_run(p, q, shear, squash, peak, rows):
    """Alpha in the first row of a run of rows, and the ratio of the second row's to it."""
    power = fnma(p, p, splat(peak - q * q))
    step = fnma(p, splat(np.float32(2.0) * shear), splat(-(shear * shear + squash * (np.float32(2.0) * q + squash))))
    far = np.float32(rows - 1)
    p_last, q_last = p + splat(far * shear), q + far * squash
    last = fnma(p_last, p_last, splat(peak - q_last * q_last))
    faint = splat(_FAINT)
    alpha = where(both(faint <= power, faint <= last), exp2(power), splat(0.0))
    return alpha, exp2(smaller(splat(100.0), where(splat(-100.0) <= step, step, splat(-100.0))))


@_compile
@no_type_check
def draw_tiles(records, entries, tile_starts, width, height, rgba, depth, ends, stops, ticket):
    """Draw all tiles of all images; keeps each pixel's last light (`ends`) and where it became opaque (`stops`)."""
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
        x0, y0 = (tile % tiles_x) * LANES, (tile // tiles_x) * ROWS
        columns, rows = min(width - x0, LANES), min(height - y0, ROWS)
        if first == end:
            for row in range(rows):
                for plane in range(5):
                    store(paint, row * _PAINT + plane * LANES, splat(0.0))
        else:
            _blend(
                records[image].reshape(-1), entries[first * ENTRY : end * ENTRY], x0, y0, columns, rows, paint, done,
                ends[image, tile], stops[image, tile],
            )  # fmt: skip
        _write(paint, rgba[image].reshape(-1), depth[image].reshape(-1), y0 * width + x0, width, columns, rows)


@_compile
@no_type_check
def _write(paint, rgba, depth, first, width, columns, rows):
    """Copy a drawn tile to the picture."""
    for row in range(rows):
        here, pixel = row * _PAINT, first + row * width
        if columns == LANES:
            red, green, blue = load(paint, here + LANES), load(paint, here + 2 * LANES), load(paint, here + 3 * LANES)
            store_pixels(rgba, 4 * pixel, red, green, blue, load(paint, here))
            store(depth, pixel, load(paint, here + 4 * LANES))
        else:
            for lane in range(columns):
                rgba[4 * (pixel + lane) + 3] = paint[here + lane]
                for channel in range(3):
                    rgba[4 * (pixel + lane) + channel] = paint[here + (channel + 1) * LANES + lane]
                depth[pixel + lane] = paint[here + 4 * LANES + lane]


@_compile
@no_type_check
def _blend(records, entries, x0, y0, columns, rows, paint, done, ends, stops):
    """Draw one tile into `paint`: rows of alpha (light left, while drawing), r, g, b, depth.

    Narrows the entries to the rows that still had light when their turn came.
    """
    zero, one, visible, cap, opaque = splat(0.0), splat(1.0), splat(ALPHA_MIN), splat(ALPHA_MAX), splat(LIGHT_MIN)
    lane_x = lanes() + splat(x0 + 0.5)
    for row in range(ROWS):
        here = row * _PAINT
        store(paint, here, where(lanes() < splat(columns if row < rows else 0), one, zero))
        for plane in range(1, 5):
            store(paint, here + plane * LANES, zero)
        store(ends, row * LANES, zero)
        store(stops, row * LANES, splat(_NEVER))
        done[row] = False
    low, high = 0, rows
    for i in range(entries.size // ENTRY):
        entry = i * ENTRY
        row, last = max(np.int64(entries[entry + 1] & 0xFFFF), low), min(np.int64(entries[entry + 1] >> 16), high)
        if row >= last:
            entries[entry + 1] = 0
            if low >= high:
                _clear(entries, entry)
                break
            continue
        entries[entry + 1] = row | (last << 16)
        record = np.uint64(entries[entry]) * RECORD
        prefetch(records, np.uint64(entries[min(entry + 4 * ENTRY, entries.size - ENTRY)]) * RECORD)
        p_lane = splat(records[record + INVERSE_XX]) * (lane_x - splat(records[record + MEAN_X]))
        dy = np.float32(y0 + row) + np.float32(0.5) - records[record + MEAN_Y]
        shear, squash, peak = records[record + INVERSE_YX], records[record + INVERSE_YY], records[record + PEAK]
        red, green = splat(records[record + RED]), splat(records[record + RED + 1])
        blue, z = splat(records[record + RED + 2]), splat(records[record + DEPTH])
        fall, run = splat(records[record + FALL]), np.int64(records[record + RUN])
        while row < last:
            count = min(run, last - row)
            raw, ratio = _start_run(p_lane + splat(shear * dy), squash * dy, shear, squash, peak, count)
            for row in range(row, row + count):  # noqa: B020
                here = row * _PAINT
                alpha = where(visible <= raw, smaller(raw, cap), zero)
                raw, ratio = raw * ratio, ratio * fall
                light = load(paint, here)
                share = alpha * light
                rest = light * (one - alpha)
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
            row += 1
            dy += np.float32(count)
    for row in range(ROWS):
        end = load(ends, row * LANES) + load(paint, row * _PAINT)
        store(ends, row * LANES, end)
        store(paint, row * _PAINT, one - end)


@_compile
@no_type_check
def _clear(entries, start):
    """Mark the entries of a tile from here on as not drawn."""
    for entry in range(start, entries.size, ENTRY):
        entries[entry + 1] = 0


@_compile
@no_type_check
def undraw_tiles(records, entries, tile_starts, starts, width, height, ends, stops, g_rgba, g_depth, sums, ticket):
    """The backward of `draw_tiles`: the gradient sums of each entry, into its slot.

    A gradient that is not there is an empty array.
    """
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
        columns, rows = min(width - x0, LANES), min(height - y0, ROWS)
        _read(
            g_rgba.reshape(-1), g_depth.reshape(-1), (image * height + y0) * width + x0, width, columns, rows,
            ends[image, tile], stops[image, tile], pull,
        )  # fmt: skip
        slots = sums[starts[image] * SUMS : starts[image + 1] * SUMS]
        _unblend(records[image].reshape(-1), entries[first * ENTRY : end * ENTRY], x0, y0, pull, slots)


@_compile
@no_type_check
def _read(g_rgba, g_depth, first, width, columns, rows, ends, stops, pull):
    """Fill `pull` with a tile of the gradients and what the forward pass left."""
    pull[:] = 0.0
    for row in range(rows):
        here, pixel = row * _PULL, first + row * width
        store(pull, here, load(ends, row * LANES))
        store(pull, here + 7 * LANES, load(stops, row * LANES))
        if columns == LANES:
            if g_rgba.size:
                store(pull, here + 2 * LANES, load_channel(g_rgba, 4 * pixel, 0))
                store(pull, here + 3 * LANES, load_channel(g_rgba, 4 * pixel, 1))
                store(pull, here + 4 * LANES, load_channel(g_rgba, 4 * pixel, 2))
                store(pull, here + 5 * LANES, load_channel(g_rgba, 4 * pixel, 3))
            if g_depth.size:
                store(pull, here + 6 * LANES, load(g_depth, pixel))
        else:
            for lane in range(columns):
                if g_rgba.size:
                    for channel in range(4):
                        pull[here + (2 + channel) * LANES + lane] = g_rgba[4 * (pixel + lane) + channel]
                if g_depth.size:
                    pull[here + 6 * LANES + lane] = g_depth[pixel + lane]


@_compile
@no_type_check
def _unblend(records, entries, x0, y0, pull, sums):
    """Walk one tile back to front: light / (1 - alpha) is the light before, and what is seen behind grows."""
    zero, one, visible, cap = splat(0.0), splat(1.0), splat(ALPHA_MIN), splat(ALPHA_MAX)
    lane_x = lanes() + splat(x0 + 0.5)
    for i in range(entries.size // ENTRY - 1, -1, -1):
        entry = i * ENTRY
        row, last = np.int64(entries[entry + 1] & 0xFFFF), np.int64(entries[entry + 1] >> 16)
        slot = np.uint64(entries[entry + 2]) * SUMS
        if row >= last:
            store(sums, slot, zero)
            store(sums, slot + LANES, zero)
            continue
        record = np.uint64(entries[entry]) * RECORD
        ahead = max(entry - 4 * ENTRY, 0)
        prefetch(records, np.uint64(entries[ahead]) * RECORD)
        prefetch_to_write(sums, np.uint64(entries[ahead + 2]) * SUMS)
        p_lane = splat(records[record + INVERSE_XX]) * (lane_x - splat(records[record + MEAN_X]))
        dy = np.float32(y0 + row) + np.float32(0.5) - records[record + MEAN_Y]
        shear, squash, peak = records[record + INVERSE_YX], records[record + INVERSE_YY], records[record + PEAK]
        red, green = splat(records[record + RED]), splat(records[record + RED + 1])
        blue, z = splat(records[record + RED + 2]), splat(records[record + DEPTH])
        fall, run = splat(records[record + FALL]), np.int64(records[record + RUN])
        sum_r, sum_g, sum_b, sum_z = zero, zero, zero, zero
        sum_1, sum_p, sum_q, sum_pp, sum_pq, sum_qq = zero, zero, zero, zero, zero, zero
        order = splat(i)
        while row < last:
            count = min(run, last - row)
            p, q = p_lane + splat(shear * dy), squash * dy
            raw, ratio = _start_run(p, q, shear, squash, peak, count)
            # Running sums of dL/dlog(alpha): at the end, sums of it times 1, k and k (k + 1) / 2, k = rows to the end.
            run_1, run_k, run_kk = zero, zero, zero
            for row in range(row, row + count):  # noqa: B020
                here = row * _PULL
                drawn = both(visible <= raw, order < load(pull, here + 7 * LANES))
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
                # A capped alpha does not move.
                run_1 = run_1 + where(raw <= cap, share * gain, zero)
                run_k = run_k + run_1
                run_kk = run_kk + run_k
                raw, ratio = raw * ratio, ratio * fall
            row += 1
            dy += np.float32(count)
            # In a row, p = p_end - k shear and q = q_end - k squash.
            run_kk = run_kk + run_kk - run_k
            shears, squashes = splat(shear), splat(squash)
            p, q = p + splat(np.float32(count) * shear), splat(q + np.float32(count) * squash)
            moment_p, moment_q = fnma(shears, run_k, p * run_1), fnma(squashes, run_k, q * run_1)
            moment_pk, moment_qk = fnma(shears, run_kk, p * run_k), fnma(squashes, run_kk, q * run_k)
            sum_1, sum_p, sum_q = sum_1 + run_1, sum_p + moment_p, sum_q + moment_q
            sum_pp = sum_pp + fnma(shears, moment_pk, p * moment_p)
            sum_pq = sum_pq + fnma(squashes, moment_pk, q * moment_p)
            sum_qq = sum_qq + fnma(squashes, moment_qk, q * moment_q)
        store(sums, slot, totals(sum_r, sum_g, sum_b, sum_z, sum_1, sum_p, sum_q, sum_pp))
        store(sums, slot + LANES, totals(sum_pq, sum_qq, zero, zero, zero, zero, zero, zero))
