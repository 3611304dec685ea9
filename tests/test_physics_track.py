"""From clips to performances: conversions there and back, controls, tracking, physical metrics, bad input."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from jigdoll import zoo
from jigdoll.errors import JigdollError, MissingExtra, RepairWarning
from jigdoll.math.rotations import matrix_to_quaternion
from jigdoll.physics.bodies import make_bodies
from jigdoll.physics.checkpoint import Checkpoint
from jigdoll.physics.controls import base_controls, between, spline_basis
from jigdoll.physics.gains import GRAVITY, choose_gains
from jigdoll.physics.metrics import physical_verdict
from jigdoll.physics.reference import check_clip, make_reference, to_motion
from jigdoll.physics.track import TrackConfig, _windows, track
from jigdoll.rig.kinematics import forward, rest_pose
from jigdoll.types import Motion, Pose
from jigdoll.zoo.gaits import reference_motion


@pytest.fixture(scope="module")
def fox():
    return zoo.make("fox")


@pytest.fixture(scope="module")
def bodies(fox):
    return make_bodies(fox)


@pytest.fixture(scope="module")
def walk(fox):
    return reference_motion(fox, "walk", seconds=0.5, fps=24.0)


def standing(asset, *, frames=8, fps=24.0, lift=0.0):
    pose = rest_pose(asset.skeleton, frames=frames)
    return Motion(Pose(pose.root + torch.tensor([0.0, lift, 0.0]), pose.rotations), fps, "stand")


# Conversions.


def rows_of(reference):
    T = reference.T_world_body
    return torch.cat([T[..., :3, 3], matrix_to_quaternion(T[..., :3, :3]), reference.twists], -1)


def test_a_clip_that_became_bodies_comes_back_as_it_was(fox, bodies, walk):
    reference = make_reference(bodies, fox.skeleton, walk)
    back = to_motion(bodies, fox.skeleton, rows_of(reference), walk)
    wanted = forward(fox.skeleton, walk.pose)
    got = forward(fox.skeleton, back.pose)
    got[..., 1, 3] -= reference.lift
    torch.testing.assert_close(got, wanted, atol=2e-5, rtol=0)


def test_joints_above_the_first_body_are_made_up_for_at_the_root(fox):
    """A rig whose root stands on the ground without flesh, as most files have it."""
    from jigdoll.rig.kinematics import make_skeleton
    from jigdoll.types import Weights

    old = fox.skeleton
    T = torch.cat([torch.eye(4)[None], old.T_parent_joint])
    names, parents = ("armature", *old.names), (-1, *(p + 1 for p in old.parents))
    eye = torch.eye(3)[None]
    limits = torch.cat([old.limits[:1], old.limits])
    skeleton = make_skeleton(names, parents, T, axes=torch.cat([eye, old.axes]), limits=limits)
    asset = replace(fox, skeleton=skeleton, weights=Weights(fox.weights.joints + 1, fox.weights.values))
    bodies = make_bodies(asset)
    assert bodies.names[0] == "pelvis"
    walk = reference_motion(fox, "walk", seconds=0.3, fps=24.0)
    rotations = torch.cat(
        [torch.tensor([0.9998477, 0.0, 0.0174524, 0.0]).expand(len(walk), 1, 4), walk.pose.rotations], 1
    )
    motion = Motion(Pose(walk.pose.root, rotations), 24.0)
    reference = make_reference(bodies, skeleton, motion)
    back = to_motion(bodies, skeleton, rows_of(reference), motion)
    got = forward(skeleton, back.pose)[:, 1:]
    got[..., 1, 3] -= reference.lift
    torch.testing.assert_close(got, forward(skeleton, motion.pose)[:, 1:], atol=2e-5, rtol=0)


def test_a_clip_is_lifted_or_lowered_onto_the_ground(fox, bodies):
    for lift in (0.05, -0.2, 0.0):
        reference = make_reference(bodies, fox.skeleton, standing(fox, lift=lift))
        corners = reference.T_world_body[0, :, None, :3, 3] + bodies.contacts @ reference.T_world_body[0, :, :3, :3].mT
        assert abs(float(corners[..., 1].min())) < 1e-9


def test_angles_near_the_lock_are_counted_from_the_mean_pose_and_stay_continuous():
    human = zoo.make("human")
    bodies = make_bodies(human)
    motion = reference_motion(human, "wave", seconds=1.0, fps=24.0)
    reference = make_reference(bodies, human.skeleton, motion)
    assert float(torch.diff(reference.angles, dim=0).abs().max()) < 1.0
    assert float(reference.angles[..., 1].abs().max()) < math.pi / 2 - 0.05


def test_velocities_are_those_of_a_steady_turn_and_travel(fox, bodies):
    frames, fps, omega, speed = 9, 24.0, 1.5, 0.7
    t = torch.arange(frames) / fps
    pose = rest_pose(fox.skeleton, frames=frames)
    half = 0.5 * omega * t
    pose.rotations[:, 0] = torch.stack([half.cos(), 0 * t, half.sin(), 0 * t], -1)
    motion = Motion(Pose(torch.stack([0 * t, 0 * t, speed * t], -1), pose.rotations), fps)
    reference = make_reference(bodies, fox.skeleton, motion)
    torch.testing.assert_close(
        reference.twists[1:-1, :, 3:],
        torch.tensor([0.0, omega, 0.0], dtype=torch.float64).expand(frames - 2, len(bodies), 3),
        atol=1e-4,
        rtol=0,
    )
    first = reference.twists[4, 0, :3]
    arm = reference.T_world_body[4, 0, :3, :3] @ bodies.com[0]
    wanted = torch.tensor([0.0, 0.0, speed], dtype=torch.float64) + torch.linalg.cross(
        torch.tensor([0.0, omega, 0.0], dtype=torch.float64), arm
    )
    torch.testing.assert_close(first, wanted, atol=2e-3, rtol=0)


# Controls.


def test_curves_between_frames_meet_the_frames_and_keep_straight_lines():
    values = torch.randn(6, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    curve = between(values, 16)
    torch.testing.assert_close(curve[15::16], values[1:])
    line = torch.arange(5, dtype=torch.float64)[:, None]
    torch.testing.assert_close(between(line, 4)[:, 0], (torch.arange(16, dtype=torch.float64) + 1) / 4)


def test_the_spline_basis_sums_to_one_and_holds_lines():
    basis = spline_basis(5, 32, 2).double()
    torch.testing.assert_close(basis.sum(1), torch.ones(len(basis), dtype=torch.float64), atol=1e-6, rtol=0)
    line = basis @ torch.arange(-1.0, basis.shape[1] - 1, dtype=torch.float64)
    torch.testing.assert_close(line, (torch.arange(128, dtype=torch.float64) + 1) / 32 * 2, atol=1e-4, rtol=0)


def test_controls_lead_by_what_damping_makes_a_drive_lag(fox, bodies, walk):
    reference = make_reference(bodies, fox.skeleton, walk)
    gains = choose_gains(bodies, 1 / (24 * 64))
    plain, ahead = (base_controls(reference, gains, 64, lead=lead) for lead in (False, True))
    torch.testing.assert_close(plain[63::64, 7:], reference.angles[1:, 1:].flatten(1).float(), atol=1e-5, rtol=0)
    rate = (reference.angles[5] - reference.angles[3]) * 12.0
    lag = (gains.target_kd / gains.target_ke * rate)[1:].flatten().float()
    torch.testing.assert_close((ahead - plain)[64 * 4 - 1, 7:], lag, atol=1e-5, rtol=0)


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
    with pytest.raises(JigdollError, match="belongs to another clip or other settings"):
        track(fox, short, make_engine, replace(config, friction=0.5), checkpoint=file)


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
    windows = list(_windows(frames, config))
    assert windows[0][0] == 0 and windows[-1][2] == frames - 1
    assert all(last - first <= config.window for first, last, _ in windows)
    assert all(after[0] == before[2] for before, after in pairwise(windows))


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
        assert check_clip(fox.skeleton, loose).pose.offsets is None


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
    from jigdoll.physics.overlay import overlay

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
    monkeypatch.setattr(sys, "argv", ["jigdoll", *words])
    main()
    text = capsys.readouterr().out
    facts = json.loads(text[: text.rindex("}") + 1])
    assert facts["bodies"] == 26 and facts["error"] < 0.05
    assert facts["after"]["fell"] is False and facts["before"].keys() == facts["after"].keys()
    (clip,) = load(out, fps=24.0).clips.values()
    assert clip.name == "walk" and clip.seconds == pytest.approx(0.25)
