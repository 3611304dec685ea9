"""Sorting for the CPU rasterizer: which Gaussians touch which tile, nearest first.

A picture is cut into tiles of 8 x ROWS pixels. Each Gaussian is listed in the tiles that its 1/255 ellipse touches,
with the rows it touches there. The backward pass over the tiles leaves the gradient sums of each (Gaussian, tile) entry
in a slot of its own; the slots of one Gaussian are contiguous and are added in a fixed order, so that no thread count
changes a bit of any result.
"""

import math
from typing import no_type_check

import numpy as np
from numba import njit

from jigdoll.render.rasterizer import ALPHA_MIN
from jigdoll.render.rasterizer_cpu.layout import (
    BOTTOM,
    ENTRY,
    INVERSE_XX,
    INVERSE_YX,
    INVERSE_YY,
    LEFT,
    MEAN_X,
    MEAN_Y,
    PEAK,
    RECORD,
    RIGHT,
    ROWS,
    TOP,
    WIDEN,
    WIDEN_BY,
)  # fmt: skip
from jigdoll.render.rasterizer_cpu.simd import (
    LANES,
    ceiling,
    fma,
    fnma,
    lanes,
    larger,
    prefetch,
    smaller,
    splat,
    square_root,
    store,
    take_ticket,
)  # fmt: skip

_LOG2_ALPHA_MIN = math.log2(ALPHA_MIN)
_DIGIT = 12

_compile = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})


@_compile
@no_type_check
def sort_depths(depths, boxes, orders, seen, slot_ranges, ticket):
    """Order the visible Gaussians of each image, nearest first, and give each as many slots as it may need.

    `seen[image]` is how many there are. A Gaussian that cannot be seen has no slots.
    """
    images, count = depths.shape
    other = np.empty(count, np.int32)
    while True:
        image = take_ticket(ticket)
        if image >= images:
            return
        order, ranges = orders[image], slot_ranges[image]
        visible = _depth_order(depths[image].view(np.uint32), order, other)
        seen[image] = visible
        ranges[:, :] = 0
        slots = 0
        for i in range(visible):
            n = order[i]
            ranges[n, 0] = ranges[n, 1] = slots
            slots += boxes[image, n]


@_compile
@no_type_check
def _depth_order(keys, order, other):
    """Sort by the bits of positive floats, ties by index: a radix sort over as many bits as the range of depths has."""
    infinity = np.uint32(0x7F800000)
    least, most = infinity, np.uint32(0)
    visible = 0
    for n in range(keys.size):
        key = keys[n]
        if key != infinity:
            order[visible] = n
            visible += 1
            least, most = min(least, key), max(most, key)
    shift = 0
    counts = np.empty(1 << _DIGIT, np.int32)
    while visible and (most - least) >> np.uint32(shift):
        counts[:] = 0
        for i in range(visible):
            counts[((keys[order[i]] - least) >> np.uint32(shift)) & ((1 << _DIGIT) - 1)] += 1
        before = 0
        for bucket in range(counts.size):
            here = counts[bucket]
            counts[bucket] = before
            before += here
        for i in range(visible):
            n = order[i]
            bucket = ((keys[n] - least) >> np.uint32(shift)) & ((1 << _DIGIT) - 1)
            other[counts[bucket]] = n
            counts[bucket] += 1
        for i in range(visible):
            order[i] = other[i]
        shift += _DIGIT
    return visible


@_compile
@no_type_check
def list_tiles(records, orders, seen, starts, width, staged, tile_counts, slot_ranges, ticket):
    """Stage (tile, rows) of each tile that a Gaussian touches in the Gaussian's slots, and count them per tile.

    The jobs are runs of Gaussians in the order of depth, `tile_counts.shape[1]` of them per image.
    """
    images, chunks = tile_counts.shape[0], tile_counts.shape[1]
    tiles_x = (width + LANES - 1) // LANES
    highs, lows = np.empty(LANES, np.float32), np.empty(LANES, np.float32)
    while True:
        job = take_ticket(ticket)
        if job >= images * chunks:
            return
        image, chunk = job // chunks, job % chunks
        counts = tile_counts[image, chunk]
        counts[:] = 0
        flat = records[image].reshape(-1)
        here = staged[starts[image] * 2 : starts[image + 1] * 2]
        for i in range(seen[image] * chunk // chunks, seen[image] * (chunk + 1) // chunks):
            n = orders[image, i]
            prefetch(flat, np.int64(orders[image, min(i + 8, seen[image] - 1)]) * RECORD)
            record = records[image, n]
            slot = slot_ranges[image, n, 0]
            first, last = np.int64(record[LEFT]) // LANES, np.int64(record[RIGHT]) // LANES
            for block in range(first, last + 1, LANES):
                _row_ranges(record, block, lows, highs)
                for column in range(block, min(block + LANES, last + 1)):
                    y0, y1 = np.int64(lows[column - block]), np.int64(highs[column - block])
                    while y0 < y1:
                        tile_y = y0 // ROWS
                        end = min(y1, (tile_y + 1) * ROWS)
                        tile = tile_y * tiles_x + column
                        here[2 * slot] = tile
                        here[2 * slot + 1] = (y0 - tile_y * ROWS) | ((end - tile_y * ROWS) << 16)
                        counts[tile] += 1
                        slot += 1
                        y0 = end
            slot_ranges[image, n, 1] = slot


@_compile
@no_type_check
def _row_ranges(record, block, lows, highs):
    """First and end row of the pixels that a Gaussian touches in each of eight columns of tiles.

    The pixels that count lie in the ellipse p^2 + q^2 <= reach^2, a little widened against rounding. Its highest and
    lowest point, where p = 0 and q = +-reach, are at dx = +-tip; a vertical line cuts it at
    dy = slope dx +- sqrt(lean - (bend dx)^2).
    """
    mxx, myx, myy = record[INVERSE_XX], record[INVERSE_YX], record[INVERSE_YY]
    reach2 = (record[PEAK] - np.float32(_LOG2_ALPHA_MIN)) * np.float32(WIDEN) + np.float32(WIDEN_BY)
    tip = -myx / (mxx * myy) * math.sqrt(reach2)
    scale = np.float32(1.0) / (myx * myx + myy * myy)
    slope, bend, lean = splat(-mxx * myx * scale), splat(mxx * myy * scale), splat(reach2 * scale)
    near_x = fma(lanes(), splat(np.float32(LANES)), splat(np.float32(block * LANES) + np.float32(0.5) - record[MEAN_X]))
    far_x = near_x + splat(np.float32(LANES - 1))
    # The highest point within the strip of a column: the tip, or the border that is nearest to it.
    up = smaller(larger(splat(tip), near_x), far_x)
    down = smaller(larger(splat(-tip), near_x), far_x)
    bent_up, bent_down = bend * up, bend * down
    my, top, bottom = splat(record[MEAN_Y]), splat(record[TOP]), splat(record[BOTTOM] + np.float32(1.0))
    high = fma(slope, up, square_root(fnma(bent_up, bent_up, lean))) + my
    low = fma(slope, down, my - square_root(fnma(bent_down, bent_down, lean)))
    # A column beside the ellipse has the root of a negative number: NaN becomes an empty range.
    store(lows, 0, larger(smaller(ceiling(low - splat(0.501)), bottom), top))
    store(highs, 0, smaller(larger(ceiling(high - splat(0.499)), top), bottom))


@_compile
@no_type_check
def place_entries(orders, seen, starts, slot_ranges, staged, tile_counts, entries, tile_starts, ticket):
    """Move what is staged to the tiles: entries (Gaussian, first row | end row << 16, slot), nearest first."""
    images, chunks, tiles = tile_counts.shape
    places = np.empty(tiles, np.int64)
    while True:
        job = take_ticket(ticket)
        if job >= images * chunks:
            return
        image, chunk = job // chunks, job % chunks
        place = starts[image]
        for tile in range(tiles):
            if chunk == 0:
                tile_starts[image, tile] = place
            for other in range(chunks):
                if other == chunk:
                    places[tile] = place
                place += tile_counts[image, other, tile]
        if chunk == 0:
            tile_starts[image, tiles] = place
        here = staged[starts[image] * 2 : starts[image + 1] * 2]
        for i in range(seen[image] * chunk // chunks, seen[image] * (chunk + 1) // chunks):
            n = orders[image, i]
            for slot in range(slot_ranges[image, n, 0], slot_ranges[image, n, 1]):
                tile = here[2 * slot]
                entry = places[tile] * ENTRY
                places[tile] += 1
                entries[entry], entries[entry + 1], entries[entry + 2] = n, here[2 * slot + 1], slot
