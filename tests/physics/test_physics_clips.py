"""From clips to bodies and back, and the controls that drive them."""

import math
from dataclasses import replace

import pytest
import torch

from jigdoll import zoo
from jigdoll.kinematics import forward, rest_pose
from jigdoll.math import GRAVITY
from jigdoll.math.rotations import (
    compound_to_quaternion,
    matrix_to_quaternion,
)
from jigdoll.physics.bodies import bodies_of
from jigdoll.physics.bodies_to_motion import to_motion
from jigdoll.physics.controls import MOST_LOAD, about_axes, base_controls, between, spline_basis
from jigdoll.physics.gains import choose_gains
from jigdoll.physics.metrics import joint_torques
from jigdoll.physics.reference import make_reference
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
    from jigdoll.kinematics import make_skeleton
    from jigdoll.types import Weights

    old = fox.skeleton
    T = torch.cat([torch.eye(4)[None], old.T_parent_joint])
    names, parents = ("armature", *old.names), (-1, *(p + 1 for p in old.parents))
    eye = torch.eye(3)[None]
    limits = torch.cat([old.limits[:1], old.limits])
    skeleton = make_skeleton(names, parents, T, axes=torch.cat([eye, old.axes]), limits=limits)
    asset = replace(fox, skeleton=skeleton, weights=Weights(fox.weights.joints + 1, fox.weights.values))
    bodies = bodies_of(asset)
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


def test_feet_of_the_clip_are_where_they_were_simulated_even_where_loaded_joints_gave_way(fox, bodies, walk):
    reference = make_reference(bodies, fox.skeleton, walk)
    rows = rows_of(reference)
    feet = [foot[-1] for foot in bodies.feet]
    rows[:, feet, 1] += 0.01 * bodies.length  # every leg is shorter by a hundredth of the length than its bones allow
    back = to_motion(bodies, fox.skeleton, rows, walk)
    T = forward(fox.skeleton, back.pose)[:, list(bodies.joints)].double()
    off = (T[..., :3, 3] - rows[..., :3]).norm(dim=-1) / bodies.length
    assert float(off[:, feet].max()) < 1e-3 and float(off.max()) < 0.03
    turn = T[:, feet, :3, :3] @ reference.T_world_body[:, feet, :3, :3].mT
    torch.testing.assert_close(turn, torch.eye(3).double().expand_as(turn), atol=1e-5, rtol=0)


def test_joints_keep_the_skeletons_limits_unless_the_clip_goes_beyond_them(fox, bodies, walk):
    knee = bodies.names.index("left_hind_knee")
    far = Motion(Pose(walk.pose.root, walk.pose.rotations.clone()), walk.fps)
    turned = torch.tensor([[1.0, 0.0, 0.0]]) * float(bodies.limits[knee, 0, 1] + 0.2)
    axes = fox.skeleton.axes[bodies.joints[knee]][None]
    far.pose.rotations[3, bodies.joints[knee]] = compound_to_quaternion(turned, axes)[0]
    kept, wider = (make_reference(bodies, fox.skeleton, clip).limits for clip in (walk, far))
    inside = make_reference(bodies, fox.skeleton, walk).angles[:, knee, 0]
    assert float(inside.max()) < float(bodies.limits[knee, 0, 1])
    torch.testing.assert_close(kept[knee, 0], bodies.limits[knee, 0])
    torch.testing.assert_close(wider[knee, 0, 1], bodies.limits[knee, 0, 1] + 0.2, atol=1e-5, rtol=0)
    assert bool((wider[..., 0] <= kept[..., 0]).all() and (wider[..., 1] >= kept[..., 1]).all())


def test_a_clip_is_lifted_or_lowered_onto_the_ground(fox, bodies):
    for lift in (0.05, -0.2, 0.0):
        reference = make_reference(bodies, fox.skeleton, standing(fox, lift=lift))
        corners = reference.T_world_body[0, :, None, :3, 3] + bodies.contacts @ reference.T_world_body[0, :, :3, :3].mT
        assert abs(float(corners[..., 1].min())) < 1e-3 * bodies.length


def test_angles_near_the_lock_are_counted_from_the_mean_pose_and_stay_continuous():
    human = zoo.make("human")
    bodies = bodies_of(human)
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


def test_drives_aim_too_far_by_what_their_load_makes_them_give_way(fox, bodies):
    still = standing(fox)
    reference = make_reference(bodies, fox.skeleton, still)
    gains = choose_gains(bodies, 1 / (24 * 64))
    torques = joint_torques(bodies, reference.T_world_body, 24.0, friction=1.0, ground=True)
    # Hips carry what the spine does not: a head that hangs on its neck needs its weight times its lever.
    head = bodies.names.index("head")
    below = [i for i in range(len(bodies)) if head in _path(bodies, i)]
    com = (reference.T_world_body[0, :, :3, :3] @ bodies.com[:, :, None])[..., 0] + reference.T_world_body[0, :, :3, 3]
    arm = com[below] - reference.T_world_body[0, head, :3, 3]
    weight = bodies.mass[below, None] * torch.tensor([0.0, -GRAVITY, 0.0], dtype=torch.float64)
    torch.testing.assert_close(torques[0, head], -torch.linalg.cross(arm, weight).sum(0), atol=1e-6, rtol=1e-4)
    load = about_axes(bodies, reference, torques)
    plain = base_controls(reference, gains, 64)
    loaded = base_controls(reference, gains, 64, torques=load)
    wanted = (load / gains.target_ke).clamp(-MOST_LOAD, MOST_LOAD)[1, 1:].flatten().float()
    torch.testing.assert_close((loaded - plain)[63, 7:], wanted, atol=1e-5, rtol=0)


def _path(bodies, body):
    path = [body]
    while bodies.parents[path[-1]] >= 0:
        path.append(bodies.parents[path[-1]])
    return path
