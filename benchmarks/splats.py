"""Splats that move and splats that learn: the chain of guidance, its growth, and reconstruction.

    python benchmarks/splats.py [--quick] [--json FILE] [--threads N]

The chain is joint angles -> kinematics -> posed splats -> 64 x 64 pictures -> backward to the angles. Times are the
best of some repetitions [ms wall]; `matmul` is a 1024^3 float32 product in numpy on one thread, timed in the same run,
to compare machines by. Reconstruction is judged by PSNR on 20 unseen 256 x 256 views, before black or white, the worse.
"""

import json as json_module
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as `import jigdoll` does, if it comes before torch

import numpy as np
import torch
import tyro
from rich.console import Console
from rich.table import Table

from jigdoll.asset.load import load
from jigdoll.errors import RepairWarning
from jigdoll.kinematics import skin_transforms
from jigdoll.math.rotations import rotvec_to_quaternion
from jigdoll.render.camera import follow
from jigdoll.render.rasterizer import default_rasterizer
from jigdoll.render.splat_asset import capture, likeness
from jigdoll.splats.bind import bind, rebind
from jigdoll.splats.fit import FitConfig, fit
from jigdoll.splats.pose import pose_by_transforms, pose_reference
from jigdoll.types import Gaussians, Pose, RiggedAsset
from jigdoll.zoo import make

ASSETS = Path(__file__).resolve().parents[2] / "shared" / "assets"


@dataclass(frozen=True)
class Options:
    """What to run."""

    quick: bool = False
    """One asset, few iterations, under a minute on a quiet machine."""
    json: Path | None = None
    """Also write the numbers there."""
    threads: int = 2
    iterations: int = FitConfig.iterations
    """Of each fit."""


def best(work: Callable[[], object], repeat: int) -> float:
    """The shortest of some runs [ms]."""
    work()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def cpu(work: Callable[[], object], repeat: int) -> float:
    """The mean CPU time of some runs over all threads [ms]: on a busy machine the only number worth reading."""
    work()
    start = time.process_time()
    for _ in range(repeat):
        work()
    return 1e3 * (time.process_time() - start) / repeat


def matmul(repeat: int) -> float:
    """The yardstick [ms CPU]."""
    a = np.random.default_rng(0).random((1024, 1024), dtype=np.float32)
    return cpu(lambda: a @ a, repeat)


def chain(asset: RiggedAsset, *, frames: int, gaussians: int, repeat: int) -> dict[str, float]:
    """The parts of one guidance step, each forward + backward, and the whole."""
    splats = bind(asset, count=gaussians)
    generator = torch.Generator().manual_seed(0)
    angles = (0.1 * torch.randn(frames, len(asset.skeleton), 3, generator=generator)).requires_grad_()
    root, rasterizer = torch.zeros(frames, 3), default_rasterizer()

    def kinematics() -> torch.Tensor:
        return skin_transforms(asset.skeleton, Pose(root, rotvec_to_quaternion(angles)))

    transforms = kinematics().detach().requires_grad_()
    posed = pose_by_transforms(splats, transforms)
    leaves = [x.detach().requires_grad_() for x in (posed.means, posed.covariances)]
    still = Gaussians(*leaves, splats.opacities, splats.colors)
    camera = follow(still.means, width=64, height=64)
    pull = torch.randn(1, frames, 64, 64, 4, generator=generator)
    push, squeeze = (torch.randn(x.shape, generator=generator) for x in (still.means, still.covariances))

    def posing(how: Callable = pose_by_transforms) -> None:
        out = how(splats, transforms)
        torch.autograd.grad([out.means, out.covariances], transforms, [push, squeeze])

    def drawing() -> None:
        torch.autograd.grad(rasterizer(still, camera).rgba, [still.means, still.covariances], pull)

    def everything() -> None:
        torch.autograd.grad(rasterizer(pose_by_transforms(splats, kinematics()), camera).rgba, angles, pull)

    turn = torch.randn(transforms.shape, generator=generator)
    return {
        "frames": frames,
        "gaussians": gaussians,
        "kinematics": best(lambda: torch.autograd.grad(kinematics(), angles, turn), repeat),
        "pose": best(posing, repeat),
        "pose in torch": best(lambda: posing(pose_reference), max(repeat // 5, 2)),
        "draw": best(drawing, repeat),
        "whole": best(everything, repeat),
        "whole CPU": cpu(everything, repeat),
    }


def reconstruct(asset: RiggedAsset, iterations: int) -> dict[str, float | str]:
    """One asset turned into splats."""
    rasterizer = default_rasterizer()
    config = replace(FitConfig(), iterations=iterations)
    warm = bind(asset, count=100)
    fit(warm, capture(asset.mesh, 1, size=16), asset.mesh, rasterizer=rasterizer, config=replace(config, iterations=2))
    wall, cpu = time.perf_counter(), time.process_time()
    start = bind(asset, count=12000)
    fitted = fit(start, capture(asset.mesh, 200), asset.mesh, rasterizer=rasterizer, config=config)
    fitted = rebind(fitted, asset)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {
        "asset": asset.name,
        "gaussians": fitted.means.shape[0],
        "bound, dB": likeness(asset, start),
        "fitted, dB": likeness(asset, fitted),
        "seconds": wall,
        "CPU seconds": cpu,
    }


def show(console: Console, title: str, rows: list[dict]) -> None:
    table = Table(title=title)
    for column in rows[0]:
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(*(f"{v:.2f}" if isinstance(v, float) else str(v) for v in row.values()))
    console.print(table)


def main(options: Options) -> None:
    torch.set_num_threads(options.threads)
    warnings.simplefilter("ignore", RepairWarning)
    console, repeat = Console(), 10 if options.quick else 40
    fox = make("fox")
    unit = matmul(repeat)
    sizes = [(24, 2000)] if options.quick else [(24, 2000), (24, 1000), (24, 4000), (24, 8000), (6, 2000), (96, 2000)]
    chains = [chain(fox, frames=frames, gaussians=count, repeat=repeat) for frames, count in sizes]
    for row in chains:
        row["CPU / matmul"] = row["whole CPU"] / unit
    show(console, f"64 x 64, forward + backward in ms, {options.threads} threads; matmul {unit:.1f} ms", chains)
    assets = [fox]
    files = ["rigged/khronos/Fox.glb", "unrigged/odedstein/spot_low_resolution.obj"]
    if not options.quick:
        assets += [load(ASSETS / file) for file in files if (ASSETS / file).exists()]
    fits = [reconstruct(asset, 60 if options.quick else options.iterations) for asset in assets]
    show(console, "Reconstruction from 200 views", fits)
    if options.json:
        options.json.write_text(json_module.dumps({"matmul": unit, "chain": chains, "fit": fits}, indent=2))


if __name__ == "__main__":
    main(tyro.cli(Options))
