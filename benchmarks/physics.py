"""The physics engine and the tracker: speed against a plain loop, gradients, clipping, clips before and after.

    python benchmarks/physics.py [--quick] [--json FILE] [--sections speed bodies gradients clipping tracking broken]

Times are CPU seconds (process time) within one process: compare within a run. `tracking` and `broken` without --quick
take up to a minute per clip; `--assets DIR` adds real mocap (its `motion/cmu` and `motion/deepmimic`). The file of
--json is written after every row; a row of `tracking` that it already holds is not measured again, others are
replaced: a table can be made in several runs.
"""

import json as json_module
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
import trimesh
import tyro
from rich.console import Console
from rich.table import Table

from jigdoll import zoo
from jigdoll.asset.load import load_motion
from jigdoll.formats.rest import motion_asset
from jigdoll.formats.video import write_picture
from jigdoll.judge import judge, svg
from jigdoll.kinematics import make_skeleton, rest_transforms
from jigdoll.math import GRAVITY
from jigdoll.math.rotations import matrix_to_quaternion
from jigdoll.math.transforms import translation
from jigdoll.motion import resample
from jigdoll.physics.bodies import Bodies, bodies_of
from jigdoll.physics.engine_mujoco import MujocoEngine
from jigdoll.physics.engine_newton import NewtonEngine
from jigdoll.physics.gains import choose_gains
from jigdoll.physics.optimise import Window, find_stable_step
from jigdoll.physics.prepare import prepare
from jigdoll.physics.reference import make_reference
from jigdoll.physics.track import TrackConfig, track
from jigdoll.render.draw import contact_sheet
from jigdoll.render.sheets import overlay
from jigdoll.rig.retarget import retarget
from jigdoll.types import Mesh, Motion, Pose, RiggedAsset, Weights
from jigdoll.zoo.gaits import actions, reference_motion

RUNNERS = ("fox", "horse", "human", "ostrich", "t_rex", "spider")
"""Characters whose run is tracked besides the first gait of every character."""
MOCAP = {"CMU walk": "cmu/02_01.bvh", "CMU run": "cmu/02_03.bvh", "CMU jump": "cmu/16_05.bvh"}
SVG = '<svg xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="12"'
LOOK = "<style>.grid{stroke:#ddd}.axis{stroke:#999}.tick{fill:#666}.curve{fill:none;stroke-width:2}</style>"
"""The chart's look where no page gives it one."""
console = Console()
FILMS: Path | None = None
"""Where contact sheets of tracked clips, and the curves of clipping, go."""
KEPT: Path | None = None
"""Where rows go as they are measured."""


def keep(section: str, row: dict[str, Any]) -> dict[str, Any]:
    """Write a row to the file at once, in the place of an earlier one of the same name."""
    if KEPT is not None:
        results = json_module.loads(KEPT.read_text()) if KEPT.exists() else {}
        others = [other for other in results.get(section, []) if other["what"] != row["what"]]
        results[section] = [*others, row]
        KEPT.write_text(json_module.dumps(results, indent=1))
    return row


def worm(bones: int) -> RiggedAsset:
    """A row of boxes on the ground, hinged end to end: a body of any number of parts."""
    box = trimesh.creation.box((0.1, 0.1, 0.18))
    vertices = torch.cat(
        [torch.tensor(box.vertices).float() + torch.tensor([0.0, 0.05, 0.2 * i + 0.1]) for i in range(bones)]
    )
    faces = torch.cat([torch.tensor(box.faces) + len(box.vertices) * i for i in range(bones)])
    T = translation(torch.tensor([[0.0, 0.05, 0.0], *[[0.0, 0.0, 0.2]] * bones]))
    owner = torch.arange(bones).repeat_interleave(len(box.vertices))[:, None]
    skeleton = make_skeleton(tuple(f"part_{i}" for i in range(bones + 1)), tuple(range(-1, bones)), T)
    weights = Weights(owner, torch.ones(len(owner), 1))
    return RiggedAsset("worm", Mesh(vertices, faces, torch.ones(len(vertices), 3)), skeleton, weights)


def standing(
    asset: RiggedAsset, substeps: int = 100, *, needs_legs: bool = True
) -> tuple[Bodies, NewtonEngine, torch.Tensor, torch.Tensor]:
    """A character on its feet, and controls that hold it."""
    bodies = bodies_of(asset, needs_legs=needs_legs)
    engine = NewtonEngine(bodies, choose_gains(bodies, 1 / (24 * substeps)))
    T = rest_transforms(asset.skeleton).double()[list(bodies.joints)]
    state = engine.start(T, torch.zeros(len(bodies), 6, dtype=torch.float64))
    row = torch.zeros(engine.dofs)
    row[:3], row[3:7] = T[0, :3, 3], matrix_to_quaternion(T[0, :3, :3])
    return bodies, engine, state, row


def rate(steps: int, function: Any, repeat: int) -> float:
    """Substeps per CPU second, the best of a few."""
    function()
    best = math.inf
    for _ in range(repeat):
        start = time.process_time()
        function()
        best = min(best, time.process_time() - start)
    return steps / best


def plain_rates(engine: NewtonEngine, state: torch.Tensor, controls: torch.Tensor) -> tuple[float, float]:
    """The same substeps launched one by one from Python, with a tape for the way back."""
    wp = engine._warp
    chunk, count = engine.chunk(len(controls)), len(controls)

    def forward() -> None:
        chunk.f.zero_()
        for k in range(count):
            engine.plain_step(chunk, k)

    def both() -> None:
        tape = wp.Tape()
        with tape:
            forward()
        chunk.q.grad.zero_()
        tape.backward()

    engine.step(state, controls)
    return rate(count, forward, 4), rate(count, both, 4)


def chunk_rates(engine: NewtonEngine, state: torch.Tensor, controls: torch.Tensor) -> tuple[float, float]:
    """Substeps per CPU second in captured chunks, there and both ways."""

    def there() -> None:
        with torch.no_grad():
            for _ in range(8):
                engine.step(state, controls)

    def both() -> None:
        aims = controls.clone().requires_grad_()
        now = state
        for _ in range(8):
            now = engine.step(now, aims)
        now.sum().backward()

    return rate(8 * len(controls), there, 4), rate(8 * len(controls), both, 4)


def growth_with_bodies(quick: bool) -> list[dict[str, Any]]:
    """How the time of a substep grows with the number of bodies."""
    rows = []
    for bones in (4, 8) if quick else (3, 6, 12, 24):
        bodies, engine, state, row = standing(worm(bones), needs_legs=False)
        there, both = chunk_rates(engine, state, row.repeat(32, 1))
        row = {"what": f"{len(bodies)} bodies", "bodies": len(bodies), "forward": 1e6 / there, "both": 1e6 / both}
        rows.append(keep("bodies", row))
    table = Table("bodies", "forward, CPU us a step", "and back", "times the row above", title="A worm of boxes")
    for before, r in zip([None, *rows], rows, strict=False):
        more = "" if before is None else f"{r['forward'] / before['forward']:.2f}, {r['both'] / before['both']:.2f}"
        table.add_row(str(r["bodies"]), f"{r['forward']:.0f}", f"{r['both']:.0f}", more)
    console.print(table)
    return rows


def speed(quick: bool) -> list[dict[str, Any]]:
    """Captured chunks against the plain loop, and how the time grows with bodies and frames."""
    rows = []
    for name in ("human", "fox") if quick else ("human", "fox", "spider", "dragon"):
        bodies, engine, state, row = standing(zoo.make(name))
        controls = row.repeat(32, 1)
        plain_there, plain_both = plain_rates(engine, state, controls)
        there, both = chunk_rates(engine, state, controls)
        row = {"what": name, "bodies": len(bodies), "forward": there, "both": both}
        rows.append(keep("speed", row | {"plain_forward": plain_there, "plain_both": plain_both}))
    table = Table(
        "",
        "bodies",
        "forward, steps/s",
        "and back",
        "plain loop",
        "and back",
        "faster",
        "and back",
        title="Substeps per CPU second",
    )
    for r in rows:
        table.add_row(
            r["what"],
            str(r["bodies"]),
            f"{r['forward']:,.0f}",
            f"{r['both']:,.0f}",
            f"{r['plain_forward']:,.0f}",
            f"{r['plain_both']:,.0f}",
            f"{r['forward'] / r['plain_forward']:.0f}x",
            f"{r['both'] / r['plain_both']:.0f}x",
        )
    console.print(table)
    asset = zoo.make("fox")
    growth = []
    for frames in (3, 6) if quick else (6, 12, 24, 48):
        motion = reference_motion(asset, "walk", seconds=frames / 24, fps=24.0)
        seconds = []
        for iterations in (0, 1, 5):  # the first one warms up
            start = time.process_time()
            track(asset, motion, NewtonEngine, TrackConfig(iterations=iterations, growing=0.0))
            seconds.append(time.process_time() - start)
        row = {"what": f"{frames} frames", "frames": frames, "iteration": (seconds[2] - seconds[1]) / 4}
        growth.append(keep("growth", row))
    table = Table("frames", "CPU s an iteration", "200 iterations, minutes", title="Tracking, fox of 26 bodies")
    for r in growth:
        table.add_row(str(r["frames"]), f"{r['iteration']:.3f}", f"{200 * r['iteration'] / 60:.1f}")
    console.print(table)
    return rows + growth


def gradients(quick: bool) -> list[dict[str, Any]]:
    """Analytic gradients against central differences, on the ground, without clipping."""
    _, engine, state, held = standing(zoo.make("fox"), 128)
    for _ in range(20):
        state = engine.step(state, held.repeat(32, 1))
    generator = torch.Generator().manual_seed(0)
    pull = torch.randn(len(engine.bodies), 3, generator=generator)
    rows = []
    for steps in (64, 320) if quick else (64, 320, 960, 3072):
        chunks = steps // 32

        def rollout(offsets: torch.Tensor, chunks: int = chunks) -> torch.Tensor:
            now = state
            for k in range(chunks):
                aims = torch.cat([held[:7], held[7:] + offsets[k * len(offsets) // chunks]]).repeat(32, 1)
                now = engine.step(now, aims)
            return (engine.rows(now)[:, :3].double() * pull).sum()

        offsets = 0.01 * torch.randn(4, engine.dofs - 7, generator=generator)
        row = compared(rollout, offsets, generator, h=0.003)
        rows.append(keep("gradients", {"what": f"{steps} steps, standing", **row}))
    walk = reference_motion(zoo.make("fox"), "walk", seconds=0.125 if quick else 1.0, fps=24.0)
    loss, offsets = clip_loss(zoo.make("fox"), walk)
    # Too small a difference drowns in single precision, too large a one bends around touchdowns: several are shown.
    for h in (0.1, 0.03, 0.01, 0.003):
        row = compared(loss, offsets, torch.Generator().manual_seed(1), h=h)
        rows.append(keep("gradients", {"what": f"walk, {128 * (len(walk) - 1)} steps, difference {h:g}", **row}))
    table = Table("", "relative error", "cosine", "norm", title="Gradient against finite differences, with contact")
    for r in rows:
        table.add_row(r["what"], f"{100 * r['error']:.2f} %", f"{r['cosine']:.5f}", f"{r['norm']:.2g}")
    console.print(table)
    return rows


def compared(function: Any, offsets: torch.Tensor, generator: torch.Generator, *, h: float) -> dict[str, float]:
    """The gradient along eight random directions against central differences."""
    offsets = offsets.requires_grad_()
    (grad,) = torch.autograd.grad(function(offsets), offsets)
    found, wanted = [], []
    for _ in range(8):
        way = torch.randn(offsets.shape, generator=generator)
        way = way / way.norm()
        with torch.no_grad():
            wanted.append(float(function(offsets + h * way) - function(offsets - h * way)) / (2 * h))
        found.append(float((grad * way).sum()))
    a, b = torch.tensor(found), torch.tensor(wanted)
    error, cosine = float((a - b).norm() / b.norm()), float(torch.cosine_similarity(a, b, 0))
    return {"error": error, "cosine": cosine, "norm": float(grad.norm())}


def clip_loss(asset: RiggedAsset, motion: Motion) -> tuple[Any, torch.Tensor]:
    """The mean distance to a whole clip, without clipping, as a function of the offsets of its controls."""
    config, bodies = TrackConfig(clip=None), bodies_of(asset)
    reference = make_reference(bodies, asset.skeleton, motion)
    gains, substeps = find_stable_step(reference, bodies, config, NewtonEngine)
    window = Window(reference, bodies, gains, substeps, config, NewtonEngine)
    wished = reference.T_world_body[1:, :, :3, 3].float()

    def loss(offsets: torch.Tensor) -> torch.Tensor:
        states = window.rollout(window.start, window.controls(offsets))[1:]
        places = torch.stack([window.engine.rows(state) for state in states])[..., :3]
        return ((places - wished).double().norm(dim=-1) / bodies.length).mean()

    return loss, torch.zeros(window.knots, window.base.shape[1] - 7)


def clipping(quick: bool, iterations: int) -> list[dict[str, Any]]:
    """Loss curves over a long rollout: clipped per chunk, only at the end, not at all, at two thresholds."""
    asset = zoo.make("fox")
    motion = reference_motion(asset, "run", seconds=0.25 if quick else 0.7, fps=24.0)
    rows = []
    ways: dict[str, dict[str, Any]] = {"none": {"clip": None}}
    for clip in (1.0, 0.1):
        ways[f"per chunk, {clip:g}"] = {"clip": clip}
        ways[f"at the end, {clip:g}"] = {"clip": clip, "clip_at_end": True}
    for name, options in ways.items():
        config = TrackConfig(iterations=6 if quick else min(60, iterations), growing=0.0, **options)
        done = track(asset, motion, NewtonEngine, config)
        rows.append(keep("clipping", {"what": name, "losses": list(done.losses)}))
    table = Table("clipping", "first loss", "half way", "last", "best", title=f"{128 * (len(motion) - 1)} steps")
    for r in rows:
        curve = r["losses"]
        table.add_row(r["what"], *(f"{v:.4f}" for v in (curve[0], curve[len(curve) // 2], curve[-1], min(curve))))
    console.print(table)
    if FILMS is not None:
        lines = [
            svg.Line(r["what"], np.array(r["losses"]), color)
            for r, color in zip(rows, ("#718096", "#2b6cb0", "#c05621", "#90cdf4", "#f6ad55"), strict=True)
        ]
        chart = svg.line_chart(lines, end=len(lines[0].y) - 1, x_label="iteration", y_label="loss", height=260)
        (FILMS / "clipping.svg").write_text(chart.replace("<svg ", f"{SVG} ", 1).replace(">", f">{LOOK}", 1))
    return rows


def measured(section: str, asset: RiggedAsset, motion: Motion, name: str, iterations: int) -> dict[str, Any]:
    """Track one clip as the verb does, by both paths, and judge it before and after."""
    start = time.process_time()
    ready = prepare(asset)
    motion = ready.clip(motion)
    config = ready.config(TrackConfig(iterations=iterations), motion)
    done = track(ready.asset, motion, NewtonEngine, config, bodies=ready.bodies, make_robust=MujocoEngine)
    row: dict[str, Any] = {"what": name, "error": done.error, "cpu": time.process_time() - start}
    row |= {"path": done.path, "errors": {path: found if found < 1e6 else None for path, found in done.errors.items()}}
    weight = done.bodies.total_mass * GRAVITY
    row |= {"hand": float(done.hand.norm(dim=1).mean()) / weight, "fell": done.fell, "iterations": iterations}
    row |= {"help": float(done.help.norm(dim=1).mean()) / (weight * done.bodies.leg_length), "ground": config.ground}
    if FILMS is not None:
        picked = torch.linspace(0, len(done.motion) - 1, 9).round().long()
        pair = [
            Motion(Pose(c.pose.root[picked], c.pose.rotations[picked]), c.fps) for c in (done.reference, done.motion)
        ]
        frames = overlay(ready.asset, *pair, size=(240, 200))
        write_picture(FILMS / f"{name.replace(' ', '_')}.png", contact_sheet(frames.numpy(), 3))
    for word, clip in (("before", motion), ("after", done.motion)):
        seen = judge(ready.asset, clip, bodies=done.bodies)
        row[word] = {
            "skate": seen.skate_ratio,
            "penetration": seen.penetration,
            "floating": seen.floating,
            "jerk": seen.angle_jerk,
            **vars(seen.physical),
        }
    return keep(section, row)


def show(title: str, rows: list[dict[str, Any]]) -> None:
    columns = ("clip", "error", "gradients", "robust", "kept", "hand", "fell", "skate", "penetration", "float")
    table = Table(*columns, "root force", "CPU s", title=title)
    for r in rows:
        pairs = [
            f"{100 * r['before'][key]:.1f} > {100 * r['after'][key]:.1f} %"
            for key in ("skate", "penetration", "floating", "root_force")
        ]
        found = [r["errors"].get(path) for path in ("gradients", "robust")]
        ways = ["-" if error is None else f"{100 * error:.1f} %" for error in found]
        fell = "yes" if r["fell"] else "no"
        cells = (f"{100 * r['error']:.1f} %", *ways, r["path"], f"{r['hand']:.2f}", fell, *pairs, f"{r['cpu']:.0f}")
        table.add_row(r["what"], *cells)
    console.print(table)


def tracking(quick: bool, iterations: int, assets: Path | None, only: tuple[str, ...]) -> list[dict[str, Any]]:
    """The first gait of all characters of the zoo, six runs, and mocap on the human."""
    rows = []
    known = json_module.loads(KEPT.read_text()).get("tracking", []) if KEPT is not None and KEPT.exists() else []
    done = {row["what"]: row for row in known}

    def add(asset: RiggedAsset, motion: Motion, name: str, steps: int) -> None:
        rows.append(done[name] if name in done else measured("tracking", asset, motion, name, steps))

    def chosen(name: str) -> bool:
        return not only or any(word in name for word in only)

    gaits = [(name, None) for name in zoo.SPECIES] + [(name, "run") for name in RUNNERS]
    for name, action in gaits[:1] if quick else gaits:
        asset = zoo.make(name)
        action = action or actions(asset)[0]
        if chosen(f"{name} {action}"):
            motion = reference_motion(asset, action, seconds=0.25 if quick else 1.0, fps=24.0)
            add(asset, motion, f"{name} {action}", 4 if quick else iterations)
    if assets is not None:
        human = zoo.make("human")
        more = sorted((assets / "motion" / "deepmimic").glob("humanoid3d_*.txt"))
        deep = {f"DeepMimic {path.stem.removeprefix('humanoid3d_')}": f"deepmimic/{path.name}" for path in more}
        for name, path in {**MOCAP, **deep}.items():
            if chosen(name) and (assets / "motion" / path).exists():
                skeleton, motion = load_motion(assets / "motion" / path)
                first = int(name.startswith("CMU"))  # these begin with a T-pose for calibration, one frame long
                pose = retarget(motion, motion_asset(motion.name, skeleton, {}), human).pose
                motion = resample(Motion(Pose(pose.root[first:], pose.rotations[first:]), motion.fps, name), 24.0)
                part = Pose(motion.pose.root[:49], motion.pose.rotations[:49])
                add(human, Motion(part, 24.0, name), name, iterations)
    show("Tracking", rows)
    return rows


def broken(quick: bool, iterations: int) -> list[dict[str, Any]]:
    """AKD's claim: what floats, slides or is half in the floor comes back grounded."""
    asset = zoo.make("fox")
    walk = reference_motion(asset, "walk", seconds=0.25 if quick else 1.0, fps=24.0)
    root = walk.pose.root
    harms = {
        "5 cm up": root + root.new_tensor([0.0, 0.05, 0.0]),
        "sliding by 20 %": root * root.new_tensor([1.0, 1.0, 1.2]),
        "half through the floor": root - root.new_tensor([0.0, 0.15, 0.0]),
    }
    rows = []
    for name, moved in harms.items():
        motion = Motion(Pose(moved, walk.pose.rotations), walk.fps, name)
        rows.append(measured("broken", asset, motion, name, 2 if quick else iterations))
    show("Broken walks of the fox", rows)
    return rows


def main(
    quick: bool = False,
    json: Path | None = None,
    sections: tuple[str, ...] = ("speed", "bodies", "gradients", "clipping", "tracking", "broken"),
    iterations: int = 200,
    assets: Path | None = None,
    only: tuple[str, ...] = (),
    films: Path | None = None,
) -> None:
    """Print the tables of the sections; `only` picks clips of `tracking` by name, `films` takes contact sheets."""
    global FILMS, KEPT
    FILMS, KEPT = films, json
    torch.set_num_threads(1)
    if films is not None:
        films.mkdir(parents=True, exist_ok=True)
    if "speed" in sections:
        speed(quick)
    if "bodies" in sections:
        growth_with_bodies(quick)
    if "gradients" in sections:
        gradients(quick)
    if "clipping" in sections:
        clipping(quick, iterations)
    if "tracking" in sections:
        tracking(quick, iterations, assets, only)
    if "broken" in sections:
        broken(quick, iterations)


if __name__ == "__main__":
    tyro.cli(main)
