"""Where the time of a distillation step goes, and how it grows.

    python benchmarks/distill.py [--quick] [--json FILE] [--weights FILE]

A step draws the motion, asks the prior, adds up the losses and goes back through all of it. Times are CPU seconds of
one thread, the mean over steps in one process: compare within a run. The prior is the pocket one (with fresh weights if
no file is given: they take as long). What matters is the share of everything that is not the prior.
"""

import json as json_module
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import tyro
from rich.console import Console
from rich.table import Table

from jigdoll import zoo
from jigdoll.distill import loop
from jigdoll.distill.options import AnimateOptions, CameraOptions
from jigdoll.distill.scene import make_scene
from jigdoll.prior.pocket.model import PocketConfig, PocketNet
from jigdoll.prior.pocket.prior import PocketPrior, open_pocket
from jigdoll.protocols import VideoPrior
from jigdoll.rig.anatomy import anatomy_of

PARTS = {
    "motion": ("curve_values", "pose_of", "forward"),
    "picture": ("render_window",),
    "prior": ("guide",),
    "losses": ("losses",),
    "step": ("take_step",),
}
"""The functions of the loop behind each part; the rest is the way back through them."""


@dataclass(frozen=True)
class Row:
    """One measurement."""

    character: str
    joints: int
    frames: int
    splats: int
    views: int
    milliseconds: dict[str, float]
    """CPU time of each part of a step."""

    @property
    def total(self) -> float:
        return sum(self.milliseconds.values())

    @property
    def share(self) -> float:
        """Of everything that is not the prior."""
        return 1 - self.milliseconds["prior"] / self.total


def measure(
    name: str, prior: VideoPrior, *, views: int = 2, splats: int = 1000, frames: int | None = None, steps: int = 8
) -> Row:
    """The mean time of each part over some steps, after two that warm up."""
    asset = zoo.make(name)
    options = AnimateOptions(iterations=1000, cameras=CameraOptions(views=views, splats=splats, frames=frames))
    scene = make_scene(anatomy_of(asset), f"a {name} walks", prior, options)
    state = replace(loop.begin(scene, 0), step=950)  # late enough for all losses
    for _ in range(2):
        state, _, _ = loop.advance(scene, state)
    with clocked() as spent:
        start = time.process_time()
        for _ in range(steps):
            state, _, _ = loop.advance(scene, state)
        total = time.process_time() - start
    parts = {part: 1e3 * spent[part] / steps for part in PARTS}
    parts["backward"] = 1e3 * total / steps - sum(parts.values())
    return Row(name, len(asset.skeleton), scene.plan.cameras.frames, splats, views, parts)


@contextmanager
def clocked() -> Iterator[dict[str, float]]:
    """Time spent in the loop's functions, by part, while the block runs."""
    spent: dict[str, float] = defaultdict(float)

    def timed(part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **options: Any) -> Any:
            start = time.process_time()
            try:
                return function(*arguments, **options)
            finally:
                spent[part] += time.process_time() - start

        return run

    patches = [
        mock.patch.object(loop, name, timed(part, getattr(loop, name)))
        for part, names in PARTS.items()
        for name in names
    ]
    for patch in patches:
        patch.start()
    try:
        yield spent
    finally:
        for patch in patches:
            patch.stop()


class AnyLength(PocketPrior):
    """The pocket prior for clips of another length, with fresh weights: for timing only."""

    def __init__(self, frames: int):
        super().__init__(PocketNet(PocketConfig(frames=frames)))


def main(quick: bool = False, json: Path | None = None, weights: Path | None = None) -> None:
    """Print the table.

    Args:
        quick: Less than a minute.
        json: Also write the rows to this file.
        weights: Of the pocket prior; fresh ones by default.
    """
    torch.set_num_threads(1)
    torch.manual_seed(0)
    prior: VideoPrior = PocketPrior(PocketNet()) if weights is None else open_pocket(weights)
    steps = 3 if quick else 10
    rows = [measure("dog", prior, steps=steps), measure("dog", prior, views=1, steps=steps)]
    if not quick:
        rows += [measure("dog", AnyLength(frames), frames=frames, views=1, steps=steps) for frames in (12, 48)]
        rows += [measure("dog", prior, splats=splats, views=1, steps=steps) for splats in (500, 4000)]
        rows += [measure(name, prior, views=1, steps=steps) for name in ("human", "spider", "giraffe")]
    show(rows)
    if json is not None:
        json.write_text(json_module.dumps([{**asdict(row), "share": row.share} for row in rows], indent=1))


def show(rows: list[Row]) -> None:
    """A row per case, a column per part."""
    table = Table(title="A distillation step, CPU ms")
    for column in ("character", "joints", "frames", "splats", "views", *PARTS, "backward", "all", "not the prior"):
        table.add_column(column, justify="left" if column == "character" else "right")
    for row in rows:
        times = [f"{row.milliseconds[part]:.1f}" for part in (*PARTS, "backward")]
        sizes = [str(size) for size in (row.joints, row.frames, row.splats, row.views)]
        table.add_row(row.character, *sizes, *times, f"{row.total:.0f}", f"{100 * row.share:.0f} %")
    Console(width=140).print(table)


if __name__ == "__main__":
    tyro.cli(main)
