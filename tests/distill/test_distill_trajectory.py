"""The learnable motion and the pace that a sentence asks for."""

import math

import pytest
import torch

from jigdoll import zoo
from jigdoll.distill.trajectory import (
    basis_functions,
    curve_values,
    leaps,
    make_trajectory,
    pose_of,
    squash,
    start_pose,
    to_motion,
)
from jigdoll.errors import JigdollError
from jigdoll.kinematics import forward, rest_transforms
from jigdoll.language import read
from jigdoll.math import GRAVITY
from jigdoll.rig.anatomy import anatomy_of
from jigdoll.rig.bones import bones_of
from jigdoll.rig.limits import compound_angles
from jigdoll.types import RiggedAsset, Skeleton
from jigdoll.zoo.gaits import reference_motion
from jigdoll.zoo.gaits.pace import Pace, pace_of


def tempo_of(prompt: str, skeleton: Skeleton) -> Pace:
    return pace_of(read(prompt), skeleton)


@pytest.fixture(scope="module")
def dog() -> RiggedAsset:
    return zoo.make("dog")


def some_theta(shape: tuple[int, int, int], size: float = 1.0) -> torch.Tensor:
    return size * torch.randn(shape, generator=torch.Generator().manual_seed(3))


def test_one_value_per_frame_is_the_papers_parameterisation(dog: RiggedAsset) -> None:
    free = {"stiffness": 1.0, "arms": 1.0, "sideways": 1.0, "root_turn": 1.0, "limited": False}
    trajectory = make_trajectory(anatomy_of(dog), frames=5, fps=10.0, basis="frames", **free)
    theta = some_theta(trajectory.shape, 0.3)
    moved = curve_values(trajectory, theta)
    locked = trajectory.skeleton.limits[..., 0] == trajectory.skeleton.limits[..., 1]
    assert trajectory.terms == 5 and bool(locked.any()) and not bool(locked.all())
    torch.testing.assert_close(moved.turns, theta[:, :-1].masked_fill(locked, 0.0))
    again = compound_angles(trajectory.skeleton, pose_of(trajectory, moved))
    torch.testing.assert_close(again, moved.turns, rtol=0, atol=1e-5)


def test_the_start_glides_ahead_at_constant_speed(dog: RiggedAsset) -> None:
    trajectory = make_trajectory(anatomy_of(dog), frames=9, fps=12.0, speed=1.5)
    pose = start_pose(trajectory, trajectory.times())
    # T_z = v i
    torch.testing.assert_close(pose.root, torch.tensor([0.0, 0.0, 1.5]) * torch.arange(9)[:, None] / 12)
    assert torch.equal(pose.rotations, torch.tensor([1.0, 0, 0, 0]).expand_as(pose.rotations))


def test_a_turning_start_runs_along_a_circle_and_looks_where_it_goes(dog: RiggedAsset) -> None:
    v, w = 1.2, 0.8
    trajectory = make_trajectory(anatomy_of(dog), frames=25, fps=12.0, speed=v, turn=w)
    pose = start_pose(trajectory, trajectory.times())
    # A circle of radius v / w whose centre is to the left (+X).
    away = pose.root - torch.tensor([v / w, 0.0, 0.0])
    torch.testing.assert_close(away.norm(dim=-1), torch.full((25,), v / w))
    R = forward(trajectory.skeleton, pose)[:, 0, :3, :3] @ rest_transforms(trajectory.skeleton)[0, :3, :3].T
    t = torch.arange(25) / 12
    ahead = torch.stack([torch.sin(w * t), 0 * t, torch.cos(w * t)], -1)
    torch.testing.assert_close(R[..., 2], ahead, rtol=0, atol=1e-5)


def test_no_coefficient_leads_beyond_the_limits(dog: RiggedAsset) -> None:
    trajectory = make_trajectory(anatomy_of(dog), frames=9, fps=12.0, bend_bound=0.7, side_bound=0.2)
    angles = curve_values(trajectory, some_theta(trajectory.shape, 40.0)).turns[:, 1:]
    low, high = dog.skeleton.limits[1:].unbind(-1)
    assert bool((angles >= low - 1e-6).all()) and bool((angles <= high + 1e-6).all())
    assert float(angles[..., 0].abs().max()) <= 0.7 + 1e-6 and float(angles[..., 1:].abs().max()) <= 0.2 + 1e-6
    assert float(angles[..., 0].abs().max()) > 0.69
    locked = (low == high).expand_as(angles)
    assert bool((angles[locked] == 0).all())


def test_squashing_has_slope_one_at_rest_and_ends_at_the_bounds() -> None:
    bounds = torch.tensor([[[-0.5, 1.0], [0.0, 0.8], [-math.inf, math.inf]]])
    x = torch.linspace(-0.6, 0.9, 31)[:, None, None].expand(31, 1, 3).clone().requires_grad_()
    y = squash(x, bounds)
    room = torch.where(x[..., 0] < 0, 0.5, 1.0)
    torch.testing.assert_close(y[..., 0], room * torch.tanh(x[..., 0] / room))
    assert bool((y[..., 1] >= 0).all()) and torch.equal(y[..., 2], x[..., 2])
    small = torch.full((1, 1, 3), 1e-6, requires_grad=True)
    (slope,) = torch.autograd.grad(squash(small, bounds).sum(), small)
    torch.testing.assert_close(slope, torch.ones(1, 1, 3))
    (slopes,) = torch.autograd.grad(y.sum(), x)
    assert bool(slopes.isfinite().all())


def test_loops_end_in_the_pose_they_began_with(dog: RiggedAsset) -> None:
    trajectory = make_trajectory(anatomy_of(dog), frames=13, fps=12.0, basis="fourier", terms=7, speed=1.0)
    pose = pose_of(trajectory, curve_values(trajectory, some_theta(trajectory.shape)))
    torch.testing.assert_close(pose.rotations[-1], pose.rotations[0], rtol=0, atol=1e-5)
    torch.testing.assert_close(pose.root[-1] - pose.root[0], torch.tensor([0.0, 0.0, 1.0]), rtol=0, atol=1e-5)
    # Also in speed: the curves go on into the next round.
    once, again = (
        curve_values(trajectory, some_theta(trajectory.shape), at=trajectory.times() + later).turns for later in (0, 1)
    )
    torch.testing.assert_close(again, once, rtol=0, atol=1e-4)


def test_the_cosines_are_orthogonal_and_the_splines_add_up_to_one(dog: RiggedAsset) -> None:
    cosines = make_trajectory(anatomy_of(dog), frames=16, fps=12.0, basis="dct", terms=9)
    columns = basis_functions(cosines, cosines.times()).double()
    # DCT-II: sum_i cos(pi k (i + 1/2) / F) cos(pi l (i + 1/2) / F) = F/2 for k = l > 0, F for k = l = 0, else 0.
    truth = torch.diag(torch.tensor([16.0] + [8.0] * 8)).double()
    torch.testing.assert_close(columns.T @ columns, truth, rtol=0, atol=1e-5)
    splines = make_trajectory(anatomy_of(dog), frames=16, fps=12.0, basis="spline", terms=9)
    columns = basis_functions(splines, splines.times())
    torch.testing.assert_close(columns[:, :4].sum(1), torch.ones(16))
    torch.testing.assert_close(columns[:, 4:9].sum(1), torch.ones(16))


def test_fewer_active_terms_leave_the_later_ones_out(dog: RiggedAsset) -> None:
    trajectory = make_trajectory(anatomy_of(dog), frames=9, fps=12.0, terms=7)
    theta = some_theta(trajectory.shape)
    cut = theta.clone()
    cut[4] *= 0.25
    cut[5:] = 0
    torch.testing.assert_close(curve_values(trajectory, theta, active=4.25).turns, curve_values(trajectory, cut).turns)
    torch.testing.assert_close(curve_values(trajectory, theta, active=7.0).shift, curve_values(trajectory, theta).shift)


@pytest.mark.parametrize("basis", ["dct", "spline", "stride"])
def test_smooth_curves_pass_through_the_same_poses_at_any_rate(dog: RiggedAsset, basis) -> None:
    trajectory = make_trajectory(anatomy_of(dog), frames=9, fps=12.0, basis=basis, speed=1.0, period=0.6)
    theta = some_theta(trajectory.shape)
    slow, quick = to_motion(trajectory, theta), to_motion(trajectory, theta, fps=36.0)
    assert len(quick) == 25 and quick.fps == 36.0
    torch.testing.assert_close(quick.pose.rotations[::3], slow.pose.rotations, rtol=0, atol=1e-5)
    torch.testing.assert_close(quick.pose.root[::3], slow.pose.root, rtol=0, atol=1e-5)


def test_values_per_frame_have_one_rate_only(dog: RiggedAsset) -> None:
    trajectory = make_trajectory(anatomy_of(dog), frames=5, fps=12.0, basis="frames")
    with pytest.raises(JigdollError, match="resample"):
        to_motion(trajectory, torch.zeros(trajectory.shape), fps=24.0)


def test_legs_follow_freely_and_all_else_is_stiff(dog: RiggedAsset) -> None:
    trajectory = make_trajectory(anatomy_of(dog), frames=5, fps=12.0, stiffness=0.2, sideways=0.3, root_move=0.1)
    names = dog.skeleton.names
    torch.testing.assert_close(trajectory.scales[names.index("left_hind_knee")], torch.tensor([1.0, 0.3, 0.3]))
    torch.testing.assert_close(trajectory.scales[names.index("neck_1")], torch.tensor([0.2, 0.06, 0.06]))
    torch.testing.assert_close(trajectory.scales[-1], torch.full((3,), 0.1 * anatomy_of(dog).leg_length))


def test_speed_follows_from_the_verb_and_the_legs(dog: RiggedAsset) -> None:
    bones = bones_of(dog.skeleton)
    length, sprawled = bones.leg_length, bones.sprawled
    walk = tempo_of("a dog walks", dog.skeleton)
    # Fr = v^2 / (g L), and Alexander's stride v T = 2.4 L Fr^0.34.
    assert not sprawled and walk.family == "walk"
    assert math.isclose(walk.speed**2 / (GRAVITY * length), 0.15, rel_tol=1e-6)
    assert math.isclose(walk.speed * walk.period, 2.4 * length * 0.15**0.34, rel_tol=1e-6)
    assert math.isclose(tempo_of("a dog walks slowly", dog.skeleton).speed, 0.7 * walk.speed)
    assert tempo_of("the dog is running", dog.skeleton).speed > 2.5 * walk.speed
    dance = tempo_of("a dog dances", dog.skeleton)
    assert dance.speed == 0 and dance.family == "dance" and dance.period > 0
    left, right = (tempo_of(f"a dog turns {side}", dog.skeleton).turn for side in ("left", "right"))
    assert left > 0 and right == -left


@pytest.mark.parametrize("period", [1.8, 0.7])
def test_a_leap_flies_by_gravity_and_neither_starts_nor_lands_with_a_jerk(period: float) -> None:
    dt, rise = 1e-4, 0.2 * period
    t = torch.arange(0, 2 * period, dt, dtype=torch.float64)
    y = leaps(t, height=rise, period=period)
    speed, flying = y.diff() / dt, y[1:-1] > 1e-4
    acceleration = y.diff(n=2) / dt**2
    assert math.isclose(float(y.max()), rise, rel_tol=1e-3) and -2 * rise < float(y.min()) < -0.05 * rise
    assert bool((acceleration[flying] + GRAVITY).abs().max() < 0.05)
    assert float(speed.diff().abs().max()) < 0.05, "the speed has no step"
    torch.testing.assert_close(y[: len(t) // 2], y[len(t) // 2 :][: len(t) // 2], rtol=0, atol=1e-3)


def test_a_jump_starts_from_a_path_that_leaps(dog: RiggedAsset) -> None:
    jump, hop, walk = (tempo_of(f"a dog {verb}", dog.skeleton) for verb in ("jumps", "hops", "walks"))
    assert jump.rise > 2 * hop.rise > 0 and walk.rise == 0 and jump.period > 2 * hop.period
    trajectory = make_trajectory(anatomy_of(dog), frames=25, fps=12.0, period=jump.period, jump_height=jump.rise)
    path = curve_values(trajectory, torch.zeros(trajectory.shape)).start.root
    assert float(path[:, 1].max()) > 0.8 * jump.rise and float(path[:, 1].min()) < 0


def test_the_words_say_how_the_sides_follow_each_other(dog: RiggedAsset) -> None:
    human, kangaroo = zoo.make("human").skeleton, zoo.make("kangaroo").skeleton
    lags = {
        ("a dog walks", dog.skeleton): 0.5,
        ("a dog trots", dog.skeleton): 0.5,
        ("a dog runs", dog.skeleton): 0.12,
        ("a rhino runs", dog.skeleton): 0.5,
        ("a man runs", human): 0.5,
        ("a man jumps", human): 0.0,
        ("a man limps", human): None,
        ("a man waves", human): None,
        ("a kangaroo walks", kangaroo): 0.0,
    }
    for (prompt, skeleton), lag in lags.items():
        assert tempo_of(prompt, skeleton).lag == lag, prompt
    assert tempo_of("a kangaroo walks", kangaroo).family == "run", "there is flight in each hop"


@pytest.mark.parametrize("species", ["human", "crocodile"])
def test_the_walking_speed_is_that_of_the_animal_within_a_factor(species) -> None:
    asset = zoo.make(species)
    want = reference_motion(asset, "walk", seconds=1.0, fps=8.0).pose.root[-1, 2]
    assert 0.6 < tempo_of(f"a {species} walks", asset.skeleton).speed / float(want) < 1.6


def test_a_motion_needs_two_frames(dog: RiggedAsset) -> None:
    with pytest.raises(JigdollError, match="two frames"):
        make_trajectory(anatomy_of(dog), frames=1, fps=12.0)
