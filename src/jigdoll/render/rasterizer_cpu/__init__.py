"""The fast rasterizer for CPUs: numba kernels, forward and backward, batched and multi-threaded, deterministic.

It uses as many threads as torch does (`torch.set_num_threads`). The thread count does not change a bit of the result.
It computes in float32 (the projection in float64); float64 tensors are accepted and lose those digits: for float64
truth use `rasterizer_reference`. It can be differentiated once. Opacities are meant to lie in 0..1.
"""

import logging
import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from jigdoll.errors import JigdollError
from jigdoll.render.rasterizer import batch_shape, plain_colors, refuse_nonfinite
from jigdoll.types import Camera, Gaussians, Rendering

log = logging.getLogger(__name__)


def rasterize_cpu(gaussians: Gaussians, camera: Camera) -> Rendering:
    """Draw splats on the CPU; differentiable in means, covariances, opacities and colours (not in the camera)."""
    batch = batch_shape(gaussians, camera)
    if gaussians.means.device.type != "cpu":
        raise JigdollError(
            f"rasterize_cpu draws on the CPU, these Gaussians are on {gaussians.means.device}; see default_rasterizer"
        )
    if 0 in batch or gaussians.means.shape[-2] == 0:
        empty = gaussians.means.new_zeros(*batch, camera.height, camera.width, 5) + gaussians.means.sum() * 0
        return Rendering(empty[..., :4], empty[..., 4])
    colors = plain_colors(gaussians, camera)
    return Rendering(
        *_Rasterize.apply(gaussians.means, gaussians.covariances, gaussians.opacities, colors, camera, batch)
    )


def _camera_arrays(camera: Camera, batch: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Per picture: T_camera_world, and fx fy cx cy with gsplat's bounds of the tangents x / z and y / z."""
    views, lenses = np.empty((*batch, 4, 4)), np.empty((*batch, 8))
    views[...] = camera.T_camera_world.detach().numpy()
    width, height = camera.width, camera.height
    rows = []
    for fx, _, cx, _, fy, cy, *_ in camera.K.detach().reshape(-1, 9).tolist():
        if not (fx > 0 and fy > 0 and math.isfinite(fx + fy + cx + cy)):
            raise JigdollError(
                f"a camera has focal lengths {fx}, {fy} and centre {cx}, {cy}: none of that can be drawn"
            )
        left, right = -(cx + 0.15 * width) / fx, (1.15 * width - cx) / fx
        top, bottom = -(cy + 0.15 * height) / fy, (1.15 * height - cy) / fy
        rows.append((fx, fy, cx, cy, left, right, top, bottom))
    lenses[...] = np.array(rows).reshape(*camera.K.shape[:-2], 8)
    if not math.isfinite(views.sum()):
        raise JigdollError("T_camera_world of a camera has numbers that are not finite")
    return views.reshape(-1, 16), lenses.reshape(-1, 8)


@dataclass(frozen=True, eq=False)
class _Drawing:
    """What the backward pass needs of the forward pass."""

    fields: tuple[np.ndarray, ...]
    views: np.ndarray
    lenses: np.ndarray
    width: int
    height: int
    records: np.ndarray
    starts: np.ndarray
    slot_ranges: np.ndarray
    entries: np.ndarray
    tile_starts: np.ndarray
    ends: np.ndarray
    stops: np.ndarray


def _draw(
    fields: tuple[np.ndarray, ...], views: np.ndarray, lenses: np.ndarray, width: int, height: int
) -> tuple[_Drawing, Tensor, Tensor]:
    """Project, sort, blend."""
    from jigdoll.render.rasterizer_cpu import layout
    from jigdoll.render.rasterizer_cpu import project as projecting
    from jigdoll.render.rasterizer_cpu import sort as sorting
    from jigdoll.render.rasterizer_cpu import tiles as tiling

    _announce_compilation()
    images, count = len(views), fields[0].shape[1]
    records = torch.empty(images, count, layout.RECORD).numpy()  # torch aligns to cache lines
    depths, boxes = np.empty((images, count), np.float32), np.empty((images, count), np.int32)
    trouble = np.zeros(images, np.int64)
    _on_all_threads(projecting.project, *fields, views, lenses, width, height, records, depths, boxes, trouble)
    if trouble.any():
        picture = int(trouble.nonzero()[0][0])
        raise refuse_nonfinite(int(trouble[picture]) - 1, picture)

    starts = np.zeros(images + 1, np.int64)
    np.cumsum(boxes.sum(axis=1, dtype=np.int64), out=starts[1:])
    total = int(starts[-1])
    _check_memory(total * layout.ENTRY_BYTES)
    tiles = -(-width // layout.LANES) * -(-height // layout.ROWS)
    chunks = min(max(count // 1024, 1), 16)
    orders, seen = np.empty((images, count), np.int32), np.empty(images, np.int64)
    slot_ranges = np.empty((images, count, 2), np.int32)
    staged, tile_counts = np.empty(2 * total, np.uint32), np.empty((images, chunks, tiles), np.int32)
    entries, tile_starts = np.empty(total * layout.ENTRY, np.uint32), np.empty((images, tiles + 1), np.int64)
    _on_all_threads(sorting.sort_depths, depths, boxes, orders, seen, slot_ranges)
    _on_all_threads(sorting.list_tiles, records, orders, seen, starts, width, staged, tile_counts, slot_ranges)
    _on_all_threads(sorting.place_entries, orders, seen, starts, slot_ranges, staged, tile_counts, entries, tile_starts)

    rgba, depth = torch.empty(images, height, width, 4), torch.empty(images, height, width)
    ends, stops = (np.empty((images, tiles, layout.PIXELS), np.float32) for _ in range(2))
    _on_all_threads(
        tiling.draw_tiles, records, entries, tile_starts, width, height, rgba.numpy(), depth.numpy(), ends, stops
    )
    drawing = _Drawing(
        fields, views, lenses, width, height, records, starts, slot_ranges, entries, tile_starts, ends, stops
    )
    return drawing, rgba, depth


def _undraw(drawing: _Drawing, g_rgba: np.ndarray, g_depth: np.ndarray) -> list[np.ndarray]:
    """The gradients of the fields, one per picture."""
    from jigdoll.render.rasterizer_cpu import layout
    from jigdoll.render.rasterizer_cpu import project as projecting
    from jigdoll.render.rasterizer_cpu import tiles as tiling

    d = drawing
    sums = torch.empty(int(d.starts[-1]) * layout.SUMS).numpy()  # torch aligns to cache lines
    _on_all_threads(
        tiling.undraw_tiles, d.records, d.entries, d.tile_starts, d.starts, d.width, d.height, d.ends, d.stops,
        g_rgba, g_depth, sums,
    )  # fmt: skip
    gradients = [np.empty((len(d.views), *field.shape[1:]), np.float32) for field in d.fields]
    _on_all_threads(projecting.unproject, *d.fields[:3], d.views, d.lenses, d.slot_ranges, d.starts, sums, *gradients)
    return gradients


class _Rasterize(torch.autograd.Function):
    """The numba kernels as one differentiable step."""

    @staticmethod
    def forward(
        ctx: Any, means: Tensor, covariances: Tensor, opacities: Tensor, colors: Tensor, camera: Camera, batch: tuple
    ) -> tuple[Tensor, Tensor]:
        given = (means, covariances, opacities, colors)
        fields = tuple(_flat(t.detach().numpy(), batch, tail) for t, tail in zip(given, (2, 3, 1, 2), strict=True))
        drawing, rgba, depth = _draw(fields, *_camera_arrays(camera, batch), camera.width, camera.height)
        ctx.set_materialize_grads(False)
        ctx.drawing, ctx.batch = drawing, batch
        ctx.shapes, ctx.dtype = [tensor.shape for tensor in given], means.dtype
        size = (camera.height, camera.width)
        return rgba.to(means.dtype).view(*batch, *size, 4), depth.to(means.dtype).view(*batch, *size)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g_rgba: Tensor | None, g_depth: Tensor | None) -> tuple[Tensor | None, ...]:  # pyright: ignore
        drawing: _Drawing = ctx.drawing
        size = (len(drawing.views), drawing.height, drawing.width)
        gradients = _undraw(
            drawing,
            # What nobody asked about is an empty array.
            np.empty((0, 0, 0, 4), np.float32)
            if g_rgba is None
            else g_rgba.float().contiguous().view(*size, 4).numpy(),
            np.empty((0, 0, 0), np.float32) if g_depth is None else g_depth.float().contiguous().view(*size).numpy(),
        )
        wanted = zip(gradients, ctx.shapes, ctx.needs_input_grad[:4], strict=True)
        fields = (_like(g, ctx.batch, shape).to(ctx.dtype) if needed else None for g, shape, needed in wanted)
        return *fields, None, None


def _flat(field: np.ndarray, batch: tuple[int, ...], trailing: int) -> np.ndarray:
    """One leading axis: the pictures of the batch, or a single place where all of them share the same values."""
    tail = field.shape[field.ndim - trailing :]
    if field.size != math.prod(tail):
        field = np.broadcast_to(field, (*batch, *tail))
    return np.ascontiguousarray(field, np.float32).reshape(-1, *tail)


def _like(gradient: np.ndarray, batch: tuple[int, ...], shape: tuple[int, ...]) -> Tensor:
    """The gradient of a field as it was given: what several pictures share adds up."""
    full = torch.from_numpy(gradient.reshape(*batch, *gradient.shape[1:]))
    return full if full.shape == shape else full.sum_to_size(shape)


def _on_all_threads(kernel: Any, *arguments: Any) -> None:
    """Run a kernel on as many threads as torch uses; the threads draw their jobs from one ticket counter."""
    ticket = np.zeros(1, np.int64)
    helpers = [_pool().submit(kernel, *arguments, ticket) for _ in range(_thread_count() - 1)]
    kernel(*arguments, ticket)
    for helper in helpers:
        if not helper.cancel():  # one that has not begun finds no tickets left
            helper.result()


def _thread_count() -> int:
    return torch.get_num_threads()


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=max(os.cpu_count() or 1, _thread_count()), thread_name_prefix="splat")


if hasattr(os, "register_at_fork"):  # a forked child inherits the pool, but not its threads
    os.register_at_fork(after_in_child=_pool.cache_clear)


@cache
def _announce_compilation() -> None:
    """Say why the first call takes its time, unless the machine code is on disk already."""
    from jigdoll.render.rasterizer_cpu import tiles

    for kernel in (tiles.draw_tiles, tiles.undraw_tiles):
        folder = getattr(getattr(kernel, "_cache", None), "cache_path", None)
        if folder is None or not any(Path(folder).glob(f"*.{kernel.__name__}-*.nbi")):
            log.warning(
                "compiling the CPU rasterizer, once per installation: about 10 seconds, a minute on a busy machine"
            )
            return


def _check_memory(bytes_wanted: int) -> None:
    """Say how much memory a call wants rather than being killed for it."""
    try:
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not every system tells
        return
    if bytes_wanted > there:
        raise JigdollError(
            f"these Gaussians touch so many tiles that drawing them wants {bytes_wanted / 2**30:.1f} GiB of memory; "
            f"this machine has {there / 2**30:.1f} GiB: draw fewer or smaller pictures at a time, or smaller Gaussians"
        )
