"""How fast the CPU rasterizer draws and differentiates, next to a matrix product of the same minute.

The scene is the one on which other CPU rasterizers were timed: Gaussians inside an ellipsoid (half axes 1, 0.6, 0.8),
a camera 4 away with 40 degrees, opacity 0.7, log-normal scales of mean 0.02 (0.01 for the large scene).

A blended pair is a Gaussian in a pixel where its alpha counts and the pixel is not full yet. One-thread times are CPU
time, the best of many; the matrix product (1024^3, float32, numpy, one thread) runs in between. The speed-up on two
threads is of the wall clock, which means something on an idle machine only; "at most" is what Amdahl's law leaves,
from the share of the one-thread CPU time that is spent in jobs that threads can share.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import math
import time
from pathlib import Path

import numpy as np
import torch
from numba import njit
from rich.console import Console
from rich.table import Table

from jigdoll.math.rotations import quaternion_to_matrix
from jigdoll.render import rasterizer_cpu
from jigdoll.render.rasterizer_cpu import rasterize_cpu
from jigdoll.render.rasterizer_reference import project, visible_order
from jigdoll.types import Camera, Gaussians


def ellipsoid(count: int, size: int, mean_scale: float, seed: int = 0) -> tuple[Gaussians, Camera]:
    """The scene; every field asks for its gradient."""
    generator = torch.Generator().manual_seed(seed)
    points = torch.nn.functional.normalize(torch.randn(count, 3, generator=generator), dim=1)
    means = points * torch.rand(count, 1, generator=generator) ** (1 / 3) * torch.tensor([1.0, 0.6, 0.8])
    spread = 0.5
    scales = mean_scale * torch.exp(spread * torch.randn(count, 3, generator=generator) - spread**2 / 2)
    quats = torch.nn.functional.normalize(torch.randn(count, 4, generator=generator), dim=1)
    factors = quaternion_to_matrix(quats) * scales[:, None, :]
    fields = (means, factors @ factors.mT, torch.full((count,), 0.7), torch.rand(count, 3, generator=generator))
    focal = size / 2 / math.tan(math.radians(20))
    T_camera_world = torch.eye(4)
    T_camera_world[2, 3] = 4
    K = torch.tensor([[focal, 0, size / 2], [0, focal, size / 2], [0, 0, 1]])
    return Gaussians(*(field.requires_grad_() for field in fields)), Camera(T_camera_world, K, size, size)


@njit(cache=True)
def _count_pairs(centers, covariances, opacities, size):
    light = np.ones((size, size))
    full = np.zeros((size, size), np.bool_)
    pairs = 0
    for n in range(centers.shape[0]):
        if opacities[n] < 1 / 255:
            continue
        xx, xy, yy = covariances[n, 0, 0], covariances[n, 0, 1], covariances[n, 1, 1]
        det = xx * yy - xy * xy
        reach = math.sqrt(2 * math.log(255 * opacities[n]))
        x, y, rx, ry = centers[n, 0], centers[n, 1], reach * math.sqrt(xx), reach * math.sqrt(yy)
        for i in range(max(0, int(y - ry - 1)), min(size, int(y + ry + 2))):
            for j in range(max(0, int(x - rx - 1)), min(size, int(x + rx + 2))):
                dx, dy = j + 0.5 - x, i + 0.5 - y
                alpha = opacities[n] * math.exp(-0.5 * (yy * dx * dx - 2 * xy * dx * dy + xx * dy * dy) / det)
                if alpha < 1 / 255 or full[i, j]:
                    continue
                if light[i, j] * (1 - min(alpha, 0.999)) <= 1e-4:
                    full[i, j] = True
                else:
                    light[i, j] *= 1 - min(alpha, 0.999)
                    pairs += 1
    return pairs


def count_pairs(scene: Gaussians, camera: Camera) -> int:
    """Blended pairs, counted by plain loops over the reference's projection."""
    with torch.no_grad():
        size = camera.width
        centers, covariances, depths = project(
            scene.means.double(), scene.covariances.double(), camera.T_camera_world.double(), camera.K.double(),
            width=size, height=size,
        )  # fmt: skip
        order = visible_order(depths)
        return _count_pairs(
            centers[order].numpy(), covariances[order].numpy(), scene.opacities.double()[order].numpy(), size
        )


def one_thread(scene: Gaussians, camera: Camera, seconds: float) -> dict[str, float]:
    """Best CPU times [ms] of the forward pass, the backward pass, both, and the matrix product run in between."""
    pull = torch.randn(camera.height, camera.width, 4, generator=torch.Generator().manual_seed(1))
    matrix = np.ones((1024, 1024), np.float32)
    times: dict[str, list[float]] = {"forward": [], "backward": [], "both": [], "matmul": []}
    torch.set_num_threads(1)
    end = time.time() + seconds
    while time.time() < end or len(times["both"]) < 5:
        for field in (scene.means, scene.covariances, scene.opacities, scene.colors):
            field.grad = None
        t0 = time.thread_time()
        picture = rasterize_cpu(scene, camera)
        t1 = time.thread_time()
        torch.autograd.backward(picture.rgba, pull)
        t2 = time.thread_time()
        _ = matrix @ matrix
        t3 = time.thread_time()
        for name, span in (("forward", t1 - t0), ("backward", t2 - t1), ("both", t2 - t0), ("matmul", t3 - t2)):
            times[name].append(span * 1e3)
    return {name: min(spans[2:]) for name, spans in times.items()}


def two_threads(step, images: int, seconds: float) -> dict[str, float]:
    """Wall-clock times of a step on one thread and on two [ms], and the bound from the share that is parallel."""
    run_kernel = rasterizer_cpu._on_all_threads
    shared = [0.0]

    def timed(kernel, *arguments):
        start = time.thread_time()
        run_kernel(kernel, *arguments)
        # The depths of one picture are sorted by one thread; everything else has many jobs.
        if images > 1 or kernel.__name__ != "sort_depths":
            shared[0] += time.thread_time() - start

    walls: dict[int, list[float]] = {1: [], 2: []}
    bounds = []
    end = time.time() + seconds
    try:
        while time.time() < end or len(walls[2]) < 5:
            for threads in (1, 2):
                torch.set_num_threads(threads)
                rasterizer_cpu._on_all_threads = timed if threads == 1 else run_kernel
                shared[0] = 0.0
                wall, cpu = time.perf_counter(), time.thread_time()
                step()
                cpu = time.thread_time() - cpu
                walls[threads].append(time.perf_counter() - wall)
                if threads == 1:
                    bounds.append((cpu, cpu / (cpu - shared[0] / 2)))
    finally:
        rasterizer_cpu._on_all_threads = run_kernel
        torch.set_num_threads(1)
    one, two = (min(walls[threads]) * 1e3 for threads in (1, 2))
    cpu, bound = min(bounds)
    return {"1 thread CPU": cpu * 1e3, "1 thread": one, "2 threads": two, "speed-up": one / two, "at most": bound}


def clip_step(frames: int = 24, count: int = 2000, size: int = 64):
    """Draw a clip and carry the gradient to every frame's means and covariances."""
    scene, camera = ellipsoid(count, size, 0.04)
    shifts = 0.02 * torch.randn(frames, 1, 3, generator=torch.Generator().manual_seed(2))
    means = (scene.means.detach() + shifts).requires_grad_()
    covariances = scene.covariances.detach().expand(frames, -1, -1, -1).contiguous().requires_grad_()
    clip = Gaussians(means, covariances, scene.opacities.detach(), scene.colors.detach())
    pull = torch.randn(frames, size, size, 4, generator=torch.Generator().manual_seed(3))

    def step() -> None:
        means.grad = covariances.grad = None
        torch.autograd.backward(rasterize_cpu(clip, camera).rgba, pull)

    return step


def measure(count: int, size: int, mean_scale: float, seconds: float) -> dict[str, float]:
    """One row of the table."""
    scene, camera = ellipsoid(count, size, mean_scale)
    pairs = count_pairs(scene, camera)
    times = one_thread(scene, camera, seconds)
    return {
        "kernels": count, "size": size, "pairs per pixel": pairs / size**2, "pairs": pairs,
        **{f"{name} ns per pair": times[name] * 1e6 / pairs for name in ("forward", "backward", "both")},
        "both ms": times["both"], "matmul ms": times["matmul"], "ratio to matmul": times["both"] / times["matmul"],
    }  # fmt: skip


def show(title: str, rows: list[dict[str, float]]) -> None:
    """Print a table of dictionaries."""
    table = Table(title=title)
    for name in rows[0]:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*(f"{v:,}" if isinstance(v, int) else f"{v:.2f}" for v in row.values()))
    Console(width=160).print(table)


def main() -> None:
    """Measure, print, and write JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="less than a minute")
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    options = parser.parse_args()
    seconds = 1.0 if options.quick else 10.0

    scene, camera = ellipsoid(100, 32, 0.02)
    start = time.perf_counter()
    rasterize_cpu(scene, camera).rgba.sum().backward()
    result: dict = {"first call s": time.perf_counter() - start}
    scenes = [measure(10_000, 256, 0.02, 3 * seconds), measure(50_000, 512, 0.01, seconds)]
    show("One thread", scenes)
    by_kernels = [measure(n * 5_000, 256, 0.02, seconds) for n in (1, 2, 4, 8)]
    show("Growth with the number of kernels (256 x 256)", by_kernels)
    by_pixels = [measure(10_000, size, 0.02, seconds) for size in (64, 128, 256, 512)]
    show("Growth with the number of pixels (10,000 kernels)", by_pixels)

    scene, camera = ellipsoid(10_000, 256, 0.02)
    pull = torch.randn(256, 256, 4, generator=torch.Generator().manual_seed(1))
    names = ("10,000 kernels, 256 x 256", "24 frames of 2,000 kernels, 64 x 64")

    def step() -> None:
        for field in (scene.means, scene.covariances, scene.opacities, scene.colors):
            field.grad = None
        torch.autograd.backward(rasterize_cpu(scene, camera).rgba, pull)

    steps = (step, clip_step())
    threads = {
        name: two_threads(step, images, 2 * seconds) for name, step, images in zip(names, steps, (1, 24), strict=True)
    }
    table = Table(title="Two threads (ms, forward and backward)")
    for name in ("scene", *threads[names[0]]):
        table.add_column(name, justify="right")
    for name, row in threads.items():
        table.add_row(name, *(f"{v:.2f}" for v in row.values()))
    Console(width=160).print(table)
    result |= {"scenes": scenes, "kernels": by_kernels, "pixels": by_pixels, "threads": threads}
    if options.json:
        options.json.write_text(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
