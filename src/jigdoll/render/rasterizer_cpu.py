"""The fast rasterizer for CPUs: numba kernels, forward and backward, batched and multi-threaded, deterministic.

It uses as many threads as torch does (`torch.set_num_threads`). The thread count does not change a bit of the result.
It computes in float32 (the projection in float64); float64 tensors are accepted and lose those digits: for float64
truth use `rasterizer_reference`.
"""

import logging
import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jigdoll.errors import JigdollError
from jigdoll.render.rasterizer import batch_shape, flatten_batch, plain_colors, refuse_nonfinite
from jigdoll.types import Camera, Gaussians, Rendering

log = logging.getLogger(__name__)


def rasterize_cpu(gaussians: Gaussians, camera: Camera) -> Rendering:
    """Draw splats on the CPU; differentiable in means, covariances, opacities and colours (not in the camera)."""
    batch = batch_shape(gaussians, camera)
    images = int(np.prod(batch, dtype=np.int64))
    dtype = gaussians.means.dtype
    count, height, width = gaussians.means.shape[-2], camera.height, camera.width
    if images == 0 or count == 0:
        empty = gaussians.means.new_zeros(*batch, height, width, 5) + gaussians.means.sum() * 0
        return Rendering(empty[..., :4], empty[..., 4])
    fields = (
        flatten_batch(gaussians.means, batch, 2),
        flatten_batch(gaussians.covariances, batch, 3),
        flatten_batch(gaussians.opacities, batch, 1),
        flatten_batch(plain_colors(gaussians, camera), batch, 2),
    )
    views, lenses = _camera_arrays(camera, batch, images)
    rgba, depth = _Rasterize.apply(*(f.float() for f in fields), views, lenses, width, height)
    return Rendering(
        rgba.reshape(*batch, height, width, 4).to(dtype), depth.reshape(*batch, height, width).to(dtype)
    )


def _camera_arrays(camera: Camera, batch: tuple[int, ...], images: int) -> tuple[np.ndarray, np.ndarray]:
    """Per picture: the rows of T_camera_world, and fx fy cx cy with gsplat's bounds of the tangents."""
    views = camera.T_camera_world.detach().double().expand(*batch, 4, 4).reshape(images, 16).numpy()
    K = camera.K.detach().double().expand(*batch, 3, 3).reshape(images, 3, 3).numpy()
    fx, fy, cx, cy = K[:, 0, 0], K[:, 1, 1], K[:, 0, 2], K[:, 1, 2]
    if not (np.isfinite(views).all() and np.isfinite(K).all() and (fx > 0).all() and (fy > 0).all()):
        raise JigdollError("a camera has numbers that are not finite, or a focal length that is not positive")
    margin_x, margin_y = 0.15 * camera.width / fx, 0.15 * camera.height / fy
    bounds = (-cx / fx - margin_x, (camera.width - cx) / fx + margin_x)
    bounds += (-cy / fy - margin_y, (camera.height - cy) / fy + margin_y)
    return np.ascontiguousarray(views), np.stack([fx, fy, cx, cy, *bounds], axis=1)


class _Rasterize(torch.autograd.Function):
    """The numba kernels as one differentiable step."""

    @staticmethod
    def forward(ctx: Any, means: Tensor, covariances: Tensor, opacities: Tensor, colors: Tensor,
                views: np.ndarray, lenses: np.ndarray, width: int, height: int) -> tuple[Tensor, Tensor]:  # fmt: skip
        from jigdoll.render import rasterizer_cpu_layout as layout
        from jigdoll.render import rasterizer_cpu_project as projection
        from jigdoll.render import rasterizer_cpu_tiles as tiling

        _announce_compilation()
        inputs = tuple(t.detach().contiguous().numpy() for t in (means, covariances, opacities, colors))
        images, count = views.shape[0], means.shape[-2]
        records = np.empty((images, count, layout.RECORD), np.float32)
        depths = np.empty((images, count), np.float32)
        boxes = np.empty((images, count), np.int32)
        trouble = np.zeros(images, np.int64)
        _on_all_threads(projection.project, *inputs, views, lenses, width, height, records, depths, boxes, trouble)
        if trouble.any():
            picture = int(trouble.nonzero()[0][0])
            raise refuse_nonfinite(int(trouble[picture]) - 1, picture)
        starts = np.concatenate([[0], boxes.sum(axis=1, dtype=np.int64).cumsum()])
        _check_memory(int(starts[-1]) * layout.ENTRY_BYTES)
        tiles = -(-width // layout.LANES) * -(-height // layout.ROWS)
        entries = np.empty(int(starts[-1]) * layout.ENTRY, np.uint32)
        tile_starts = np.empty((images, tiles + 1), np.int64)
        slot_ranges = np.zeros((images, count, 2), np.int32)
        _on_all_threads(
            projection.bin_tiles, records, depths, starts, width, height, entries, tile_starts, slot_ranges
        )
        rgba, depth = torch.zeros(images, height, width, 4), torch.zeros(images, height, width)
        ends = np.empty((images, tiles, layout.PIXELS), np.float32)
        stops = np.empty((images, tiles, layout.PIXELS), np.float32)
        _on_all_threads(
            tiling.draw_tiles, records, entries, tile_starts, width, height, rgba.numpy(), depth.numpy(), ends, stops
        )
        ctx.state = (inputs, views, lenses, width, height, records, entries, tile_starts, starts, slot_ranges, ends, stops)
        return rgba, depth

    @staticmethod
    def backward(ctx: Any, g_rgba: Tensor, g_depth: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore
        from jigdoll.render import rasterizer_cpu_layout as layout
        from jigdoll.render import rasterizer_cpu_project as projection
        from jigdoll.render import rasterizer_cpu_tiles as tiling

        inputs, views, lenses, width, height, records, entries, tile_starts, starts, slot_ranges, ends, stops = ctx.state
        means, covariances, opacities, colors = inputs
        images, count = views.shape[0], means.shape[1]
        sums = np.empty(int(starts[-1]) * layout.SUMS, np.float32)
        _on_all_threads(
            tiling.undraw_tiles, records, entries, tile_starts, starts, width, height, ends, stops,
            g_rgba.contiguous().numpy(), g_depth.contiguous().numpy(), sums,
        )  # fmt: skip
        shapes = (count, 3), (count, 3, 3), (count,), (count, 3)
        gradients = tuple(np.empty((images, *shape), np.float32) for shape in shapes)
        _on_all_threads(
            projection.unproject, means, covariances, opacities, views, lenses, slot_ranges, starts, sums, *gradients
        )
        shared = [len(field) < images for field in inputs]
        tensors = [torch.from_numpy(g) for g in gradients]
        return *(t.sum(0, keepdim=True) if one else t for t, one in zip(tensors, shared, strict=True)), *[None] * 4


def _on_all_threads(kernel: Any, *arguments: Any) -> None:
    """Run a kernel on as many threads as torch uses; the threads draw their jobs from one ticket counter."""
    ticket = np.zeros(1, np.int64)
    helpers = [_pool().submit(kernel, *arguments, ticket) for _ in range(torch.get_num_threads() - 1)]
    kernel(*arguments, ticket)
    for helper in helpers:
        helper.result()


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=max(os.cpu_count() or 1, torch.get_num_threads()), thread_name_prefix="splat")


@cache
def _announce_compilation() -> None:
    log.info("compiling the CPU rasterizer (once per installation, then cached)")


def _check_memory(bytes_wanted: int) -> None:
    """Say how much memory a call wants rather than being killed for it."""
    try:
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not every system tells
        return
    if bytes_wanted > there:
        raise JigdollError(
            f"these Gaussians touch so many tiles that drawing them wants {bytes_wanted / 2**30:.1f} GiB of memory, and "
            f"this machine has {there / 2**30:.1f} GiB; draw fewer pictures at a time, smaller ones, or smaller Gaussians"
        )
