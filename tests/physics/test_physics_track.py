"""From clips to performances: tracking, physical metrics, bad input."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from jigdoll import zoo
from jigdoll.errors import JigdollError, MissingExtra, RepairWarning
from jigdoll.kinematics import forward, rest_pose
from jigdoll.math import GRAVITY
from jigdoll.math.rotations import (
    matrix_to_quaternion,
    quaternion_to_compound,
    quaternion_to_matrix,
)
from jigdoll.physics.bodies import bodies_of
from jigdoll.physics.checkpoint import Checkpoint
from jigdoll.physics.controls import base_controls
from jigdoll.physics.gains import choose_gains
from jigdoll.physics.metrics import physical_verdict
from jigdoll.physics.optimise import windows
from jigdoll.physics.reference import check_clip, local_rotations, make_reference
from jigdoll.physics.track import TrackConfig, track
from jigdoll.types import Motion, Pose
from jigdoll.zoo.gaits import reference_motion


@pytest.fixture(scope="module")
def fox():
    return zoo.make("fox")


@pytest.fixture(scope="module")
def bodies(fox):
    return bodies_of(fox)


@pytest.fixture(scope="module")
def walk(fox):
    return reference_motion(fox, "walk", seconds=0.5, fps=24.0)


def standing(asset, *, frames=8, fps=24.0, lift=0.0):
    pose = rest_pose(asset.skeleton, frames=frames)
    return Motion(Pose(pose.root + torch.tensor([0.0, lift, 0.0]), pose.rotations), fps, "stand")


# Metrics.


def test_a_body_that_stands_needs_no_hand_and_one_that_hovers_needs_its_weight(fox, bodies):
    stands = physical_verdict(bodies, fox.skeleton, standing(fox))
    assert stands.root_force < 0.01 and stands.root_torque < 0.01 and stands.in_cone == 1.0 and stands.flight == 0.0
    assert math.isinf(stands.transport) and not stands.fell
    hovers = physical_verdict(bodies, fox.skeleton, standing(fox, lift=0.5))
    assert math.isclose(hovers.root_force, 1.0, rel_tol=1e-6) and hovers.flight == 1.0
    assert math.isclose(hovers.ballistic, 1.0, rel_tol=1e-6)


def test_a_thrown_body_is_ballistic(fox, bodies):
    t = torch.arange(8) / 24.0
    motion = standing(fox, lift=0.5)
    height = 1.0 * t - 0.5 * GRAVITY * t**2
    root = motion.pose.root + torch.stack([0 * t, height, 0.6 * t], -1)
    verdict = physical_verdict(bodies, fox.skeleton, Motion(Pose(root, motion.pose.rotations), 24.0))
    assert verdict.flight == 1.0 and verdict.ballistic < 1e-3


def test_a_standing_body_that_is_dragged_too_fast_leaves_the_friction_cone(fox, bodies):
    t = torch.arange(12) / 24.0
    motion = standing(fox, frames=12)
    for pull, inside in ((0.5, 1.0), (2.0, 0.0)):  # horizontal acceleration in g against a friction of one
        root = motion.pose.root + torch.stack([0 * t, 0 * t, 0.5 * pull * GRAVITY * t**2], -1)
        verdict = physical_verdict(bodies, fox.skeleton, Motion(Pose(root, motion.pose.rotations), 24.0))
        assert verdict.in_cone == inside
    assert verdict.root_force > 0.5


def test_a_body_on_its_side_has_fallen(fox, bodies):
    motion = standing(fox)
    motion.pose.rotations[4:, 0] = torch.tensor([0.7071068, 0.0, 0.0, 0.7071068])
    assert physical_verdict(bodies, fox.skeleton, motion).fell


# Tracking.

newton = pytest.mark.skipif(
    __import__("importlib.util").util.find_spec("newton") is None, reason="the physics extra is not installed"
)
QUICK = TrackConfig(iterations=4, substeps=96, chunk=32)


def make_engine(*args, **options):
    from jigdoll.physics.engine_newton import NewtonEngine

    return NewtonEngine(*args, **options)


@newton
def test_tracking_comes_nearer_and_never_ends_worse_than_it_began(fox, walk):
    start = track(fox, walk, make_engine, replace(QUICK, iterations=0))
    done = track(fox, walk, make_engine, QUICK)
    assert done.losses[0] == start.losses[0] and min(done.losses) < 0.97 * done.losses[0]
    assert done.error < start.error < 0.05
    assert len(done.motion) == len(walk) and done.motion.fps == walk.fps and done.motion.name == walk.name
    assert not physical_verdict(done.bodies, fox.skeleton, done.motion).fell
    before = forward(fox.skeleton, start.motion.pose)
    assert bool(torch.isfinite(before).all())


@newton
def test_an_interrupted_run_goes_on_to_the_same_end(fox, walk, tmp_path):
    short = Motion(Pose(walk.pose.root[:4], walk.pose.rotations[:4]), walk.fps, walk.name)
    config = replace(QUICK, iterations=24)
    whole = track(fox, short, make_engine, config)

    class Stop(Exception):
        pass

    def stop(fraction, what):
        if fraction > 0.9:
            raise Stop

    file = tmp_path / "run.npz"
    with pytest.raises(Stop):
        track(fox, short, make_engine, config, checkpoint=file, progress=stop)
    resumed = track(fox, short, make_engine, config, checkpoint=file)
    assert resumed.losses == whole.losses
    assert torch.equal(resumed.motion.pose.rotations, whole.motion.pose.rotations)
    with pytest.raises(JigdollError, match="belongs to another tracking run"):
        track(fox, short, make_engine, replace(config, friction=0.5), checkpoint=file)
    other = replace(short, pose=replace(short.pose, root=short.pose.root * 1.01))  # of the same name and length
    with pytest.raises(JigdollError, match="belongs to another tracking run"):
        track(fox, other, make_engine, config, checkpoint=file)


@newton
def test_the_papers_loss_is_eq_13(fox, walk):
    short = Motion(Pose(walk.pose.root[:4], walk.pose.rotations[:4]), walk.fps, walk.name)
    done = track(fox, short, make_engine, replace(QUICK, iterations=0, paper=True))
    reference = make_reference(done.bodies, fox.skeleton, check_clip(fox.skeleton, short))
    T = reference.T_world_body[1:]
    q = matrix_to_quaternion(T[..., :3, :3])
    rows = done.rows[1:].double()
    sign = (rows[..., 3:7] * q).sum(-1, keepdim=True).sign()
    away = (rows[..., :3] - T[..., :3, 3]).abs().sum() + (sign * rows[..., 3:7] - q).abs().sum()
    theta = base_controls(reference, done.gains, 96, lead=False)[:, 7:].double()
    wiggle = (theta[2:] - 2 * theta[1:-1] + theta[:-2]).abs().mean()
    assert math.isclose(done.losses[0], float(away / 3 + 0.2 * wiggle), rel_tol=1e-4)


@newton
def test_a_clip_that_floats_comes_down(fox, walk):
    up = Motion(Pose(walk.pose.root + torch.tensor([0.0, 0.05, 0.0]), walk.pose.rotations), walk.fps)
    done = track(fox, up, make_engine, replace(QUICK, iterations=0))
    low = forward(fox.skeleton, done.motion.pose)[..., 1, 3].amin(1)
    wanted = forward(fox.skeleton, walk.pose)[..., 1, 3].amin(1)
    assert float((low - wanted).abs().max()) < 0.02 * done.bodies.length


@newton
def test_a_body_without_a_ground_swims_where_it_likes(fox, walk):
    done = track(fox, walk, make_engine, replace(QUICK, iterations=0, ground=False))
    assert done.error < 0.05 and float(done.help.abs().max()) == 0.0


@newton
def test_a_step_that_blows_up_is_halved(fox, walk):
    short = Motion(Pose(walk.pose.root[:3], walk.pose.rotations[:3]), walk.fps)
    seen = []

    def fragile(bodies, gains, **options):
        seen.append(gains.dt)
        engine = make_engine(bodies, gains, **options)
        if gains.dt > 1 / 3000:
            engine.step = lambda state, controls: state * math.nan
        return engine

    done = track(fox, short, fragile, replace(QUICK, iterations=0, substeps=64))
    assert math.isclose(seen[1], seen[0] / 2) and math.isclose(done.gains.dt, seen[0] / 2)


def test_windows_cover_a_ten_minute_clip_without_gaps():
    frames, config = 14400, TrackConfig()
    spans = list(windows(frames, config))
    assert spans[0][0] == 0 and spans[-1][2] == frames - 1
    assert all(last - first <= config.window for first, last, _ in spans)
    assert all(after[0] == before[2] for before, after in pairwise(spans))


@newton
def test_a_long_clip_is_tracked_window_after_window_without_a_seam(fox, walk):
    config = replace(QUICK, iterations=1, window=5, overlap=2)
    done = track(fox, walk, make_engine, config)
    assert len(done.motion) == len(walk)
    step = torch.diff(forward(fox.skeleton, done.motion.pose)[..., :3, 3], dim=0).norm(dim=-1)
    wanted = torch.diff(forward(fox.skeleton, walk.pose)[..., :3, 3], dim=0).norm(dim=-1)
    assert float(step.max()) < 1.6 * float(wanted.max())


# Bad input.


def test_clips_that_cannot_be_simulated_are_refused_with_the_reason(fox, walk):
    bad = Motion(Pose(walk.pose.root.clone(), walk.pose.rotations.clone()), 24.0, "walk")
    bad.pose.root[3, 1] = math.nan
    with pytest.raises(JigdollError, match="not finite in 1 frames, first in frame 3"):
        check_clip(fox.skeleton, bad)
    with pytest.raises(JigdollError, match=r"0\.0 frames per second"):
        check_clip(fox.skeleton, replace(walk, fps=0.0))
    with pytest.raises(JigdollError, match="needs at least two"):
        check_clip(fox.skeleton, Motion(Pose(walk.pose.root[:1], walk.pose.rotations[:1]), 24.0))
    with pytest.raises(JigdollError, match="moves 31 joints, the character has 32"):
        check_clip(fox.skeleton, Motion(Pose(walk.pose.root, walk.pose.rotations[:, 1:]), 24.0))
    loose = Motion(Pose(walk.pose.root, walk.pose.rotations, torch.full((len(walk), 32, 3), 0.1)), 24.0)
    with pytest.warns(RepairWarning, match="moves joints apart"):
        check_clip(fox.skeleton, loose)


def test_a_clip_that_leaps_out_of_a_t_pose_begins_with_its_second_frame(walk, fox):
    turned = walk.pose.rotations.clone()
    turned[0] = torch.tensor([0.8, 0.6, 0.0, 0.0])
    with pytest.warns(RepairWarning, match="leaps out of its first frame"):
        mended = check_clip(fox.skeleton, Motion(Pose(walk.pose.root, turned), walk.fps, "walk"))
    assert torch.equal(mended.pose.rotations[0], walk.pose.rotations[1])
    assert torch.equal(mended.pose.rotations[1:], walk.pose.rotations[1:])
    assert check_clip(fox.skeleton, walk).pose.rotations is walk.pose.rotations


def test_settings_that_make_no_sense_are_refused():
    for wrong in ({"iterations": -1}, {"substeps": 0}, {"overlap": 48}, {"chunk": 0}):
        with pytest.raises(JigdollError):
            TrackConfig(**wrong)


def test_a_file_that_is_no_run_is_not_taken_for_one(tmp_path):
    file = tmp_path / "run.npz"
    file.write_bytes(b"not a run")
    with pytest.raises(JigdollError, match="no tracking run"):
        Checkpoint(file, key=("x",))


def test_without_the_extra_it_says_what_to_install(monkeypatch):
    import sys

    from jigdoll.physics.engine_newton import load_newton

    monkeypatch.setitem(sys.modules, "warp", None)
    with pytest.raises(MissingExtra, match=r"jigdoll\[physics\]"):
        load_newton()


def test_the_ghost_film_shows_both_clips_beside_each_other(fox, walk):
    from jigdoll.render.sheets import overlay

    other = Motion(Pose(walk.pose.root + torch.tensor([0.0, 0.1, 0.0]), walk.pose.rotations), walk.fps)
    first = Motion(Pose(walk.pose.root[:2], walk.pose.rotations[:2]), walk.fps)
    second = Motion(Pose(other.pose.root[:2], other.pose.rotations[:2]), walk.fps)
    film = overlay(fox, first, second, size=(96, 80))
    assert film.shape == (2, 80, 192, 3)
    assert not torch.equal(film[:, :, :96], film[:, :, 96:])
    same = overlay(fox, first, first, size=(96, 80))
    assert int((same[:, :, :96].int() - same[:, :, 96:].int()).abs().max()) <= 1


@newton
def test_the_verb_writes_a_clip_and_tells_before_and_after(tmp_path, monkeypatch, capsys):
    import json
    import sys

    from jigdoll.asset.load import load
    from jigdoll.cli import main

    out = tmp_path / "fox.glb"
    words = ["track", "zoo:fox", "walk", "--out", str(out), "--iterations", "1", "--seconds", "0.25", "--json"]
    words += ["--html", str(tmp_path / "fox.html")]
    monkeypatch.setattr(sys, "argv", ["jigdoll", *words])
    main()
    facts = json.loads(capsys.readouterr().out)
    assert facts["files"] == [str(out), str(tmp_path / "fox.html")]
    assert facts["bodies"] == 26 and facts["error"] < 0.05
    assert facts["after"]["fell"] is False and facts["before"].keys() == facts["after"].keys()
    (clip,) = load(out, fps=24.0).clips.values()
    assert clip.name == "walk" and clip.seconds == pytest.approx(0.25)
    page = (tmp_path / "fox.html").read_text()
    assert "before physics" in page and "root force" in page and "skate ratio" in page


@newton
def test_joints_are_held_at_their_limits(fox, bodies):
    """A tail that is driven far beyond its limit stops near it, and goes on where there is none."""
    reference = make_reference(bodies, fox.skeleton, standing(fox))
    gains = choose_gains(bodies, 1 / (24 * 96))
    tail = bodies.names.index("tail_1")
    reached = []
    for limits in (None, reference.limits):
        engine = make_engine(bodies, gains, ground=False, gravity=False, limits=limits)
        controls = base_controls(reference, gains, 96)[:32].clone()
        controls[:, 7 + 3 * (tail - 1)] = 2.0
        state = engine.start(reference.T_world_body[0], torch.zeros(len(bodies), 6, dtype=torch.float64))
        with torch.no_grad():
            for _ in range(24):
                state = engine.step(state, controls)
        T = torch.eye(4, dtype=torch.float64).repeat(1, len(bodies), 1, 1)
        T[0, :, :3, :3] = quaternion_to_matrix(engine.rows(state)[:, 3:7].double())
        local = matrix_to_quaternion(local_rotations(bodies, T))
        reached.append(float(quaternion_to_compound(local, bodies.axes)[0, tail, 0]))
    bound = float(bodies.limits[tail, 0, 1])
    # Two springs of one stiffness, one to 2 rad and one to the limit, meet half way.
    assert reached[0] > 1.9
    assert bound < reached[1] < (2.0 + bound) / 2 + 0.05


@newton
def test_compiling_is_announced_with_its_time_and_only_where_it_happens(tmp_path, monkeypatch):
    import warp

    from jigdoll.physics.engine_newton import compile_kernels

    def load(module, device, block_dim):
        (tmp_path / module.get_module_identifier(block_dim)).mkdir()

    said = []
    compile_kernels(said.append)
    said.clear()
    compile_kernels(said.append)
    assert said == []
    monkeypatch.setattr(warp.config, "kernel_cache_dir", str(tmp_path))
    monkeypatch.setattr(type(warp.get_module("jigdoll.physics.kernels_newton")), "load", load)
    compile_kernels(said.append)
    assert len(said) == 2 and "once on this machine" in said[0]
    assert said[1].endswith(f" s; Warp keeps them in {tmp_path}")
    compile_kernels(said.append)
    assert len(said) == 2
