"""Compiled loops of sparse linear blend skinning; only `skin.deform` calls them.

Frames are the innermost axis everywhere, so that one point's few influences serve a whole block of frames with vector
instructions. The work is cut into a number of chunks that does not depend on the number of threads, and partial sums
are added in the order of the chunks: the same input gives the same bits on any number of cores.
"""

from typing import no_type_check

import numba
import numpy as np

POINT_BLOCK = 16
"""Points that are gathered before they are written: long enough runs for the memory, short enough for the cache."""


@numba.njit(parallel=True, fastmath=True, cache=True, error_model="numpy")
@no_type_check
def skin_forward(points, joints, values, transforms, frames, chunks, out):
    """out[f, p] = sum_k w_pk (T_{j_pk, f} x_p), with transforms[block, joint, 12, frame in block]."""
    num_points, influences = joints.shape
    blocks, _, _, width = transforms.shape
    per_chunk = (num_points + chunks - 1) // chunks
    for task in numba.prange(blocks * chunks):
        block, chunk = task // chunks, task % chunks
        first_frame = block * width
        used = min(width, frames - first_frame)
        buffer = np.empty((width, POINT_BLOCK, 3), out.dtype)
        row = np.empty((3, width), out.dtype)
        stop = min(num_points, (chunk + 1) * per_chunk)
        for start in range(chunk * per_chunk, stop, POINT_BLOCK):
            count = min(POINT_BLOCK, stop - start)
            for q in range(count):
                p = start + q
                x, y, z = points[p, 0], points[p, 1], points[p, 2]
                row[:] = 0
                for k in range(influences):
                    w = values[p, k]
                    if w != 0:
                        wx, wy, wz = w * x, w * y, w * z
                        T = transforms[block, joints[p, k]]
                        for i in range(3):
                            a, b, c, d = T[4 * i], T[4 * i + 1], T[4 * i + 2], T[4 * i + 3]
                            to = row[i]
                            for f in range(width):
                                to[f] += wx * a[f] + wy * b[f] + wz * c[f] + w * d[f]
                for f in range(used):
                    buffer[f, q, 0] = row[0, f]
                    buffer[f, q, 1] = row[1, f]
                    buffer[f, q, 2] = row[2, f]
            for f in range(used):
                for q in range(count):
                    for i in range(3):
                        out[first_frame + f, start + q, i] = buffer[f, q, i]


@numba.njit(parallel=True, fastmath=True, cache=True, error_model="numpy")
@no_type_check
def skin_backward(points, joints, values, transforms, frames, chunks, grad, parts, grad_points, grad_values):
    """Gradients of `skin_forward`: `parts[block, chunk, joint, 12, frame]` for the transforms, then points and weights.

    `grad_points` and `grad_values` hold one slice per block of frames; an empty array says that nobody asks for it.
    """
    num_points, influences = joints.shape
    blocks, _, _, width = transforms.shape
    per_chunk = (num_points + chunks - 1) // chunks
    want_transforms, want_points, want_values = parts.size > 0, grad_points.size > 0, grad_values.size > 0
    for task in numba.prange(blocks * chunks):
        block, chunk = task // chunks, task % chunks
        first_frame = block * width
        used = min(width, frames - first_frame)
        buffer = np.zeros((POINT_BLOCK, 3, width), grad.dtype)
        stop = min(num_points, (chunk + 1) * per_chunk)
        for start in range(chunk * per_chunk, stop, POINT_BLOCK):
            count = min(POINT_BLOCK, stop - start)
            for f in range(used):
                for q in range(count):
                    for i in range(3):
                        buffer[q, i, f] = grad[first_frame + f, start + q, i]
            for q in range(count):
                p = start + q
                x, y, z = points[p, 0], points[p, 1], points[p, 2]
                for k in range(influences):
                    w = values[p, k]
                    if want_transforms and w != 0:
                        wx, wy, wz = w * x, w * y, w * z
                        part = parts[block, chunk, joints[p, k]]
                        for i in range(3):
                            a, b, c, d = part[4 * i], part[4 * i + 1], part[4 * i + 2], part[4 * i + 3]
                            g = buffer[q, i]
                            for f in range(width):
                                a[f] += wx * g[f]
                                b[f] += wy * g[f]
                                c[f] += wz * g[f]
                                d[f] += w * g[f]
                    if (want_points and w != 0) or want_values:
                        T = transforms[block, joints[p, k]]
                        gx, gy, gz, gw = grad.dtype.type(0), grad.dtype.type(0), grad.dtype.type(0), grad.dtype.type(0)
                        for i in range(3):
                            a, b, c, d = T[4 * i], T[4 * i + 1], T[4 * i + 2], T[4 * i + 3]
                            g = buffer[q, i]
                            for f in range(width):
                                gx += a[f] * g[f]
                                gy += b[f] * g[f]
                                gz += c[f] * g[f]
                                gw += d[f] * g[f]
                        if want_points:
                            grad_points[block, p, 0] += w * gx
                            grad_points[block, p, 1] += w * gy
                            grad_points[block, p, 2] += w * gz
                        if want_values:
                            grad_values[block, p, k] = gx * x + gy * y + gz * z + gw
