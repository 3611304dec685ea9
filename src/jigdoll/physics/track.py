"""Physics-based motion tracking (AKD 4.5): how simulated bodies come nearest to a clip.

Two paths: gradients through the differentiable engine (`optimise`), and the robust one (`robust`), which gives the
first answer within seconds and stands in where the other cannot hold the bodies or comes out worse.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.kinematics import forward
from jigdoll.math import GRAVITY
from jigdoll.math.rotations import matrix_to_quaternion
from jigdoll.physics.bodies import Bodies, bodies_of
from jigdoll.physics.bodies_to_motion import to_motion
from jigdoll.physics.chair import find_chair
from jigdoll.physics.checkpoint import Checkpoint
from jigdoll.physics.config import TrackConfig
from jigdoll.physics.controls import help_torques
from jigdoll.physics.gains import Gains, ideal_gains
from jigdoll.physics.metrics import has_fallen
from jigdoll.physics.optimise import MakeEngine, NotFinite, Window, cut, find_stable_step, help_of, optimise, windows
from jigdoll.physics.prepare import on_its_way, on_the_spot, running_ground
from jigdoll.physics.reference import Reference, check_clip, make_reference
from jigdoll.physics.robust import BROKEN, MakePerformer, Robust, drift, perform_clip, step_of
from jigdoll.physics.stances import with_slips, with_stances, without_ghosts
from jigdoll.protocols import Progress, quiet
from jigdoll.types import Motion, Pose, RiggedAsset

GOOD = 0.04
"""A clip that gradients brought this near [body lengths] is kept even where the robust path, with a hand, is nearer."""
SPEEDS = 4
"""Rollouts in which the ground speed of a clip that walks in place is found."""


@dataclass(frozen=True, eq=False)
class Tracked:
    """What came out."""

    motion: Motion
    """The clip that the bodies performed."""
    reference: Motion
    """The clip as it was tracked: lifted so that it stands on the ground, walking where it walked in place."""
    bodies: Bodies
    gains: Gains
    rows: Float[Tensor, "frames bodies 13"]
    """States of the bodies at the frames."""
    torques: Float[Tensor, "frames bodies 3"]
    """Of the joints' drives at the frames [N m]."""
    help: Float[Tensor, "frames 3"]
    """The torque of the upright help at the frames [N m]."""
    hand: Float[Tensor, "frames 3"]
    """The force of the hand that helped at the frames [N]; zero where none was needed."""
    losses: tuple[float, ...]
    """Per iteration, each over the frames that it simulated."""
    error: float
    """Mean distance of the joints to the reference, as a share of the body's length."""
    fell: bool
    """Whether the body fell where the clip does not."""
    path: str
    """Which path it came by: gradients, or robust."""
    notes: tuple[str, ...]
    """What was done to the clip, what help was needed and where, in plain sentences."""
    errors: Mapping[str, float]
    """How near each path that was tried came; infinite where it did not stay finite."""


@dataclass(frozen=True, eq=False)
class _Task:
    """A clip made ready."""

    asset: RiggedAsset
    motion: Motion
    """As it came, but for its false start."""
    bodies: Bodies
    config: TrackConfig
    ground: Float[Tensor, "2"]
    """How the ground runs under it [m/s]."""
    clip: Reference
    """What counts as near."""
    aim: Reference
    """What the bodies are asked to do: the clip with its stances put in place."""

    @property
    def moving(self) -> Motion:
        return on_its_way(self.motion, self.ground)


def track(
    asset: RiggedAsset,
    motion: Motion,
    make_engine: MakeEngine,
    config: TrackConfig = TrackConfig(),
    *,
    bodies: Bodies | None = None,
    make_robust: MakePerformer | None = None,
    checkpoint: Path | None = None,
    progress: Progress = quiet,
) -> Tracked:
    """The nearest motion to a clip that the character's bodies can perform under gravity, contact and friction.

    With `make_robust` (the MuJoCo engine) a clip is never refused for stiffness: it comes back with what could be
    kept, and `notes` say what help it took. With a `checkpoint` file an interrupted run goes on where it was.
    """
    motion = check_clip(asset.skeleton, motion)
    progress(0.0, "measuring the body")
    if bodies is None:
        bodies = bodies_of(asset, needs_legs=config.ground and make_robust is None, keep=config.loose)
    ground = torch.zeros(2, dtype=torch.float64)
    if config.travel and config.ground and not config.paper:
        ground = running_ground(bodies, asset.skeleton, motion)
    task = _made_ready(asset, motion, bodies, config, ground)
    robust = None
    if make_robust is not None and not config.paper:
        task, robust = _robustly(task, make_robust, progress)
        progress(0.1, _first_answer(robust, task))
    done, errors = None, {} if robust is None else {"robust": _clips(task, robust.rows)[2]}
    chair, loose = robust is not None and robust.chair is not None, bool(config.loose) and robust is not None
    if robust is None or (config.iterations and not chair and not loose):
        try:
            done = _by_gradients(task, make_engine, checkpoint, progress)
            errors["gradients"] = done.error
        except NotFinite:
            errors["gradients"] = math.inf
            if robust is None:
                raise
    if robust is not None and (done is None or not _better(done, robust, task)):
        done = _gathered_robust(task, robust)
    assert done is not None
    done = replace(done, errors=errors)
    if config.in_place:
        done = replace(
            done, motion=on_the_spot(done.motion, task.ground), reference=on_the_spot(done.reference, task.ground)
        )
    return done


def _made_ready(
    asset: RiggedAsset, motion: Motion, bodies: Bodies, config: TrackConfig, ground: Float[Tensor, "2"]
) -> _Task:
    clip = make_reference(bodies, asset.skeleton, on_its_way(motion, ground), ground=config.ground)
    bodies = with_slips(without_ghosts(bodies, clip), clip) if config.ground else bodies
    plants = config.stances and config.ground and not config.paper
    return _Task(asset, motion, bodies, config, ground, clip, with_stances(bodies, clip) if plants else clip)


def _robustly(task: _Task, make_robust: MakePerformer, progress: Progress) -> tuple[_Task, Robust]:
    """The robust performance; a clip that walks in place is given the speed at which its feet carry it."""
    config, bodies = task.config, task.bodies
    loose = tuple(
        i for i, name in enumerate(bodies.names) if i and any(w.lower() in name.lower() for w in config.loose)
    )
    options = {"ground": config.ground, "friction": config.friction, "upright": config.upright, "loose": loose}
    if bool(task.ground.any()):
        tried = []
        for _ in range(SPEEDS):
            progress(0.0, "finding its speed")
            off, slip = drift(bodies, task.aim, make_robust, clip=task.clip.T_world_body, friction=config.friction)
            tried.append((off, task))
            task = _made_ready(task.asset, task.motion, bodies, config, task.ground - 0.7 * slip)
        task = min(tried, key=lambda pair: pair[0])[1]
        bodies = task.bodies
    chair = find_chair(bodies, task.aim, friction=config.friction) if config.ground else None
    clip = task.clip.T_world_body
    robust = perform_clip(bodies, task.aim, make_robust, clip=clip, chair=chair, progress=progress, **options)
    return task, robust


def _first_answer(robust: Robust, task: _Task) -> str:
    """Whether the clip can be performed, and where it breaks if not."""
    return f"{100 * robust.error:.1f} % off; " + "; ".join(_help_notes(robust, task)[-1:])


def _clip_notes(task: _Task) -> tuple[str, ...]:
    """What was done to the character and the clip before anything was simulated."""
    notes = []
    if task.bodies.repairs:
        notes.append("bodies: " + "; ".join(task.bodies.repairs))
    if not task.config.ground:
        notes.append("flies or swims: air or water carries it, there is no ground and no weight")
    if task.bodies.slips:
        notes.append(f"{len(task.bodies.slips)} feet slide: their legs are one bone each and cannot lift them")
    if bool(task.ground.any()):
        notes.append(f"walks in place: it was given {float(task.ground.norm()):.2f} m/s over the ground")
    return tuple(notes)


def _help_notes(robust: Robust, task: _Task) -> tuple[str, ...]:
    """What it took, and where it breaks."""
    bodies, fps, notes = task.bodies, task.clip.fps, []
    if robust.chair is not None:
        notes.append(f"rests in the air: a seat of {float(robust.chair.top):.2f} m was put under it")
    weight = bodies.total_mass * GRAVITY
    force = robust.hand[:, :3].norm(dim=1) / weight
    if robust.strength:
        worst = int(force.argmax())
        notes.append(
            f"a hand helps with {float(force.mean()):.2f} weights on average, most ({float(force.max()):.2f}) at "
            f"{worst / fps:.2f} s"
        )
    gap = (robust.rows[..., :3] - task.clip.T_world_body[..., :3, 3]).norm(dim=-1).mean(1) / bodies.length
    broken = (gap > BROKEN).nonzero()
    if len(broken):
        notes.append(f"it breaks at {int(broken[0, 0]) / fps:.2f} s: the bodies are more than 10 % off there")
    turn = float(robust.hand[:, 3:].norm(dim=1).mean()) / (weight * bodies.leg_length)
    if turn > 0:
        notes.append(f"a hand turns it with {turn:.2f} weights times leg lengths on average")
    elif not len(broken) and not robust.strength:
        notes.append("it needs no hand")
    return tuple(notes)


def _better(done: Tracked, robust: Robust, task: _Task) -> bool:
    """Whether what gradients found is kept: it has no hand, so it may be a little farther off, but must not fall."""
    falls = has_fallen(task.bodies, task.clip.T_world_body)
    if done.fell != (robust.fell and not falls):
        return not done.fell
    return done.error <= max(GOOD, robust.error)


def _by_gradients(task: _Task, make_engine: MakeEngine, checkpoint: Path | None, progress: Progress) -> Tracked:
    """Window after window through the differentiable engine."""
    bodies, config, aim = task.bodies, task.config, task.aim
    progress(0.1, "preparing the simulation")
    gains, substeps = find_stable_step(aim, bodies, config, make_engine)
    motion = task.motion
    saved = Checkpoint(checkpoint, key=(bodies, task.asset.skeleton, motion, substeps, config))
    parts = saved.parts
    spans = list(windows(len(aim), config))
    for index, (first, last, keep) in enumerate(spans):
        if index < len(parts):
            continue

        def report(fraction: float, what: str, index: int = index) -> None:
            where = f", window {index + 1} of {len(spans)}" if len(spans) > 1 else ""
            progress(0.1 + 0.9 * (index + fraction) / len(spans), what + where)

        window = Window(cut(aim, first, last + 1), bodies, gains, substeps, config, make_engine)
        state = parts[-1]["end"] if parts else window.start
        knots, spin, losses = optimise(window, state, config, saved, report)
        parts.append(window.keep(state, knots, spin, keep - first) | {"losses": losses})
        saved.write()
    return _gathered(task, gains, parts)


def _gathered(task: _Task, gains: Gains, parts: list[dict[str, Any]]) -> Tracked:
    """The kept frames of all windows as one clip."""

    def joined(key: str) -> Tensor:
        return torch.cat([part[key] if i == 0 else part[key][1:] for i, part in enumerate(parts)])

    rows = joined("rows")
    upright, heading = help_of(task.config)
    performed, reference, error = _clips(task, rows)
    return Tracked(
        motion=performed,
        reference=reference,
        bodies=task.bodies,
        gains=gains,
        rows=rows,
        torques=joined("torques"),
        help=help_torques(gains, rows, joined("aims"), upright=upright, heading=heading),
        hand=torch.zeros(len(rows), 3, dtype=torch.float64),
        losses=tuple(loss for part in parts for loss in part["losses"]),
        error=error,
        fell=_falls_anew(task, performed),
        path="gradients",
        notes=_clip_notes(task),
        errors={},
    )


def _gathered_robust(task: _Task, robust: Robust) -> Tracked:
    performed, reference, error = _clips(task, robust.rows)
    return Tracked(
        motion=performed,
        reference=reference,
        bodies=task.bodies,
        gains=ideal_gains(task.bodies, step_of(task.bodies, task.clip.fps), friction=task.config.friction),
        rows=robust.rows,
        torques=robust.torques,
        help=robust.hand[:, 3:],
        hand=robust.hand[:, :3],
        losses=(),
        error=error,
        fell=_falls_anew(task, performed),
        path="robust",
        notes=(*_clip_notes(task), *_help_notes(robust, task)),
        errors={},
    )


def _falls_anew(task: _Task, performed: Motion) -> bool:
    """Whether a performance falls where the clip does not; what has no ground cannot."""
    if not task.config.ground or has_fallen(task.bodies, task.clip.T_world_body):
        return False
    T = make_reference(task.bodies, task.asset.skeleton, performed, ground=False).T_world_body
    return has_fallen(task.bodies, T)


def _clips(task: _Task, rows: Float[Tensor, "frames bodies 13"]) -> tuple[Motion, Motion, float]:
    """What the bodies did and what they were to do, as clips of the skeleton, and how far apart these are."""
    skeleton, bodies, moving = task.asset.skeleton, task.bodies, task.moving
    root = moving.pose.root + moving.pose.root.new_tensor([0.0, task.clip.lift, 0.0])
    bare = Motion(Pose(root, moving.pose.rotations), moving.fps, moving.name)
    reference = bare
    if moving.pose.offsets is not None or moving.pose.scales is not None:
        T = task.clip.T_world_body
        wished = torch.cat([T[..., :3, 3], matrix_to_quaternion(T[..., :3, :3]), task.clip.twists], -1)
        reference = to_motion(bodies, skeleton, wished, bare, stiff_feet=False)
    performed = to_motion(bodies, skeleton, rows, bare)
    places = [forward(skeleton, clip.pose)[..., :3, 3] for clip in (performed, reference)]
    return performed, reference, float((places[0] - places[1]).norm(dim=-1).mean()) / bodies.length
