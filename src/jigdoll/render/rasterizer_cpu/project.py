"""The projection of the CPU rasterizer, eight Gaussians at a time, and the gradient of it.

The exponent of a Gaussian is kept as a sum of two squares, p^2 + q^2 with (p, q) = M^T (pixel - mean) and M M^T the
inverse covariance: unlike the usual a dx^2 + 2 b dx dy + c dy^2 it does not cancel, so that long and thin kernels keep
their digits in float32.
"""

import math
from typing import no_type_check

import numpy as np
from numba import njit

from jigdoll.render.rasterizer import ALPHA_MIN, BLUR, NEAR
from jigdoll.render.rasterizer_cpu.double8 import (
    exp2_wide,
    gather,
    log2_wide,
    lower,
    pick,
    root,
    round_down,
    round_up,
    scatter,
    scatter_rows,
    upper,
)  # fmt: skip
from jigdoll.render.rasterizer_cpu.layout import RECORD, ROWS, SUMS, UNIT, WIDEN, WIDEN_BY
from jigdoll.render.rasterizer_cpu.simd import LANES, bits, both, load, prefetch, splat, store, take_ticket

_LOG2_ALPHA_MIN = math.log2(ALPHA_MIN)
_CHUNK = 1024
_RUN_MAX = 16

_compile = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})


@_compile
@no_type_check
def _gather_inputs(means, covariances, n, last):
    """Means and covariances of eight Gaussians from n on, the covariances made symmetric."""
    mean = (gather(means, n, last, 3, 0), gather(means, n, last, 3, 1), gather(means, n, last, 3, 2))
    xx, yy, zz = (
        gather(covariances, n, last, 9, 0),
        gather(covariances, n, last, 9, 4),
        gather(covariances, n, last, 9, 8),
    )
    xy = 0.5 * (gather(covariances, n, last, 9, 1) + gather(covariances, n, last, 9, 3))
    xz = 0.5 * (gather(covariances, n, last, 9, 2) + gather(covariances, n, last, 9, 6))
    yz = 0.5 * (gather(covariances, n, last, 9, 5) + gather(covariances, n, last, 9, 7))
    return mean, (xx, xy, xz, yy, yz, zz)


@_compile
@no_type_check
def _flatten(mean, covariance, view, lens):
    """Camera-space means, tangents (clamped as gsplat does), A = J R, A C, and the blurred A C A^T."""
    m0, m1, m2 = mean
    x = view[0] * m0 + view[1] * m1 + view[2] * m2 + view[3]
    y = view[4] * m0 + view[5] * m1 + view[6] * m2 + view[7]
    z = view[8] * m0 + view[9] * m1 + view[10] * m2 + view[11]
    iz = 1.0 / z
    u = lower(upper(x * iz, lens[4]), lens[5])
    v = lower(upper(y * iz, lens[6]), lens[7])
    fx, fy = lens[0] * iz, lens[1] * iz
    a00, a01, a02 = fx * (view[0] - u * view[8]), fx * (view[1] - u * view[9]), fx * (view[2] - u * view[10])
    a10, a11, a12 = fy * (view[4] - v * view[8]), fy * (view[5] - v * view[9]), fy * (view[6] - v * view[10])
    c00, c01, c02, c11, c12, c22 = covariance
    b00, b10 = a00 * c00 + a01 * c01 + a02 * c02, a10 * c00 + a11 * c01 + a12 * c02
    b01, b11 = a00 * c01 + a01 * c11 + a02 * c12, a10 * c01 + a11 * c11 + a12 * c12
    b02, b12 = a00 * c02 + a01 * c12 + a02 * c22, a10 * c02 + a11 * c12 + a12 * c22
    xx = b00 * a00 + b01 * a01 + b02 * a02 + BLUR
    xy = b00 * a10 + b01 * a11 + b02 * a12
    yy = b10 * a10 + b11 * a11 + b12 * a12 + BLUR
    return (x, y, z), (u, v), (a00, a01, a02, a10, a11, a12), (b00, b01, b02, b10, b11, b12), (xx, xy, yy)


@_compile
@no_type_check
def project(
    means, covariances, opacities, colors, views, lenses, width, height, records, depths, boxes, trouble, ticket
):
    """Fill the records of all Gaussians of all images; `boxes` counts the tiles that each may touch.

    A Gaussian that cannot be seen gets depth infinity. One whose numbers are not finite is named in `trouble`.
    """
    images, count = depths.shape
    chunks = (count + _CHUNK - 1) // _CHUNK
    while True:
        job = take_ticket(ticket)
        if job >= images * chunks:
            return
        image = job // chunks
        first = (job % chunks) * _CHUNK
        last = min(first + _CHUNK, count) - 1
        for n in range(first, last + 1, LANES):
            finite = _project_eight(
                _of_image(means, image), _of_image(covariances, image), _of_image(opacities, image),
                _of_image(colors, image), views[image], lenses[image], width, height, n, last,
                records[image].reshape(-1), depths[image], boxes[image],
            )  # fmt: skip
            if finite != 255:
                lane = 0
                while (finite >> lane) & 1:
                    lane += 1
                trouble[image] = n + lane + 1


@_compile
@no_type_check
def _of_image(field, image):
    """The numbers of one image, or those that all images share, in a row."""
    return field[image if field.shape[0] > 1 else 0].reshape(-1)


@_compile
@no_type_check
def _project_eight(means, covariances, opacities, colors, view, lens, width, height, n, last, records, depths, boxes):
    """Project eight Gaussians; tells which of them have finite numbers, one bit each."""
    mean, covariance = _gather_inputs(means, covariances, n, last)
    (x, y, z), _, _, _, (xx, xy, yy) = _flatten(mean, covariance, view, lens)
    opacity = gather(opacities, n, last, 1, 0)
    red, green, blue = gather(colors, n, last, 3, 0), gather(colors, n, last, 3, 1), gather(colors, n, last, 3, 2)
    everything = mean[0] + mean[1] + mean[2] + opacity + red + green + blue
    everything = everything + covariance[0] + covariance[1] + covariance[2]
    everything = everything + covariance[3] + covariance[4] + covariance[5]
    det = xx * yy - xy * xy
    mx, my = lens[0] * x / z + lens[2], lens[1] * y / z + lens[3]
    peak = log2_wide(opacity)
    reach = root((peak - _LOG2_ALPHA_MIN) * WIDEN + WIDEN_BY) * (1.0 / UNIT)
    root_yy = root(yy)
    rx, ry = reach * root(xx), reach * root_yy
    left, right = upper(round_up(mx - rx - 0.5), 0.0), lower(round_down(mx + rx - 0.5), width - 1.0)
    top, bottom = upper(round_up(my - ry - 0.5), 0.0), lower(round_down(my + ry - 0.5), height - 1.0)
    seen = both(both(NEAR <= z, ALPHA_MIN <= opacity), both(0.0 < det, both(left <= right, top <= bottom)))
    columns = round_down(right / LANES) - round_down(left / LANES) + 1.0
    scatter(boxes, n, last, 1, 0, pick(seen, columns * (round_down(bottom / ROWS) - round_down(top / ROWS) + 1.0), 0.0))
    scatter(depths, n, last, 1, 0, pick(seen, z, np.inf))
    squash = UNIT / root_yy
    slant = squash / root(det)
    shear, stretch = -1.0 * xy * slant, yy * slant
    fall = exp2_wide(upper(-2.0 * (shear * shear + squash * squash), -500.0))
    # Along a run p changes by no more than 6: no lane that is visible in it is below 2^-90 at either end.
    run = lower(1.0 + round_down(6.0 / root(shear * shear + 1e-6)), _RUN_MAX)
    scatter_rows(records, n, last, RECORD, 0, mx, my, stretch, shear, squash, peak, red, green)
    scatter_rows(records, n, last, RECORD, LANES, blue, z, fall, run, left, right, top, bottom)
    return bits((everything - everything) <= 0.0)


@_compile
@no_type_check
def unproject(
    means, covariances, opacities, views, lenses, slot_ranges, starts, sums,
    g_means, g_covariances, g_opacities, g_colors, ticket,
):  # fmt: skip
    """The backward of `project`: add up each Gaussian's slots and carry the sums to its fields."""
    images, count = g_opacities.shape
    chunks = (count + _CHUNK - 1) // _CHUNK
    # Per lane: the sums of its slots, and whether it has any.
    gathered = np.zeros(LANES * SUMS, np.float32)
    while True:
        job = take_ticket(ticket)
        if job >= images * chunks:
            return
        image = job // chunks
        first = (job % chunks) * _CHUNK
        last = min(first + _CHUNK, count) - 1
        ranges = slot_ranges[image]
        slots = sums[starts[image] * SUMS : starts[image + 1] * SUMS]
        for n in range(first, last + 1, LANES):
            for lane in range(LANES):
                owner = min(n + lane, last)
                ahead = ranges[min(owner + LANES, last), 0] * SUMS
                prefetch(slots, ahead)
                prefetch(slots, ahead + SUMS)
                low, high = splat(0.0), splat(0.0)
                for slot in range(ranges[owner, 0], ranges[owner, 1]):
                    low, high = low + load(slots, slot * SUMS), high + load(slots, slot * SUMS + LANES)
                store(gathered, lane * SUMS, low)
                store(gathered, lane * SUMS + LANES, high)
                gathered[lane * SUMS + SUMS - 1] = ranges[owner, 1] - ranges[owner, 0]
            _lift_eight(
                _of_image(means, image), _of_image(covariances, image), _of_image(opacities, image),
                views[image], lenses[image], gathered, n, last, g_means[image].reshape(-1),
                g_covariances[image].reshape(-1), g_opacities[image], g_colors[image].reshape(-1),
            )  # fmt: skip


@_compile
@no_type_check
def _lift_eight(
    means, covariances, opacities, view, lens, sums, n, last, g_means, g_covariances, g_opacities, g_colors
):
    """From the gradient sums in whitened picture coordinates to the means and covariances in the world."""
    mean, covariance = _gather_inputs(means, covariances, n, last)
    (x, y, z), (u, v), a, (b00, b01, b02, b10, b11, b12), (xx, xy, yy) = _flatten(mean, covariance, view, lens)
    a00, a01, a02, a10, a11, a12 = a
    seen = 0.5 < gather(sums, 0, 7, SUMS, SUMS - 1)
    for k in range(3):
        scatter(g_colors, n, last, 3, k, gather(sums, 0, 7, SUMS, k))
    scatter(g_opacities, n, last, 1, 0, pick(seen, gather(sums, 0, 7, SUMS, 4) / gather(opacities, n, last, 1, 0), 0.0))
    # log(alpha) = log(opacity) - |M^T d|^2 / 2, so dL/dmean = M sum(g w) and dL/dcovariance = M sum(g w w^T) M^T / 2.
    myy = 1.0 / root(yy)
    slant = myy / root(xx * yy - xy * xy)
    mxx, myx = yy * slant, -1.0 * xy * slant
    sp, sq = gather(sums, 0, 7, SUMS, 5) * (1.0 / UNIT), gather(sums, 0, 7, SUMS, 6) * (1.0 / UNIT)
    g_u, g_v = mxx * sp, myx * sp + myy * sq
    half = 0.5 / (UNIT * UNIT)
    wpp, wpq = half * gather(sums, 0, 7, SUMS, 7), half * gather(sums, 0, 7, SUMS, 8)
    wqq = half * gather(sums, 0, 7, SUMS, 9)
    gxx, gxy = mxx * mxx * wpp, mxx * (myx * wpp + myy * wpq)
    gyy = myx * (myx * wpp + 2.0 * myy * wpq) + myy * myy * wqq
    # dL/dC = A^T G A.
    t00, t01, t02 = gxx * a00 + gxy * a10, gxx * a01 + gxy * a11, gxx * a02 + gxy * a12
    t10, t11, t12 = gxy * a00 + gyy * a10, gxy * a01 + gyy * a11, gxy * a02 + gyy * a12
    g00, g11, g22 = (
        pick(seen, a00 * t00 + a10 * t10, 0.0),
        pick(seen, a01 * t01 + a11 * t11, 0.0),
        a02 * t02 + a12 * t12,
    )
    g01, g02 = pick(seen, a00 * t01 + a10 * t11, 0.0), pick(seen, a00 * t02 + a10 * t12, 0.0)
    g12 = pick(seen, a01 * t02 + a11 * t12, 0.0)
    scatter_rows(g_covariances, n, last, 9, 0, g00, g01, g02, g01, g11, g12, g02, g12)
    scatter(g_covariances, n, last, 9, 8, pick(seen, g22, 0.0))
    # dL/dA = 2 G A C, then to the entries of J through A = J R.
    h00, h01, h02 = 2.0 * (gxx * b00 + gxy * b10), 2.0 * (gxx * b01 + gxy * b11), 2.0 * (gxx * b02 + gxy * b12)
    h10, h11, h12 = 2.0 * (gxy * b00 + gyy * b10), 2.0 * (gxy * b01 + gyy * b11), 2.0 * (gxy * b02 + gyy * b12)
    iz = 1.0 / z
    fx, fy = lens[0] * iz, lens[1] * iz
    g_j00 = h00 * view[0] + h01 * view[1] + h02 * view[2]
    g_j11 = h10 * view[4] + h11 * view[5] + h12 * view[6]
    g_j02 = fx * iz * (h00 * view[8] + h01 * view[9] + h02 * view[10])
    g_j12 = fy * iz * (h10 * view[8] + h11 * view[9] + h12 * view[10])
    g_z = gather(sums, 0, 7, SUMS, 3) - iz * (fx * g_j00 + fy * g_j11) + u * g_j02 + v * g_j12
    g_z = g_z - iz * iz * (lens[0] * x * g_u + lens[1] * y * g_v)
    # A clamped tangent does not move with x and y.
    free_u, free_v = (
        pick(_within(x * iz, lens[4], lens[5]), g_j02, 0.0),
        pick(_within(y * iz, lens[6], lens[7]), g_j12, 0.0),
    )
    g_x, g_y = fx * g_u - free_u, fy * g_v - free_v
    g_z = g_z + u * free_u + v * free_v
    for k in range(3):
        scatter(g_means, n, last, 3, k, pick(seen, view[k] * g_x + view[4 + k] * g_y + view[8 + k] * g_z, 0.0))


@_compile
@no_type_check
def _within(value, least, most):
    """Whether a value is between two bounds."""
    return both(least <= value, value <= most)
