"""Help that is as small as it can be: paths that the ground can carry, joints that know their contacts."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from jigdoll import zoo
from jigdoll.errors import RepairWarning
from jigdoll.kinematics import rest_pose
from jigdoll.math import GRAVITY
from jigdoll.physics.balance import _cross
from jigdoll.physics.bodies import bodies_of
from jigdoll.physics.config import TrackConfig
from jigdoll.physics.gains import choose_gains, ideal_gains
from jigdoll.physics.possible import _beyond, possible_path
from jigdoll.physics.prepare import prepare, sized
from jigdoll.physics.reference import make_reference
from jigdoll.physics.robust import make_plan, step_of, with_loose
from jigdoll.physics.stability import stabilised
from jigdoll.rig.anatomy import anatomy_of
from jigdoll.types import Motion, Pose

pytest.importorskip("mujoco")

FPS = 24.0
ASK = {"length": 1.0, "friction": 0.8, "most": 0.05}


@pytest.fixture(scope="module")
def fox():
    return zoo.make("fox")


@pytest.fixture(scope="module")
def bodies(fox):
    return bodies_of(fox)


def accelerations(path: torch.Tensor) -> torch.Tensor:
    return (path[2:] - 2 * path[1:-1] + path[:-2]) * FPS**2


def upwards(height: torch.Tensor) -> torch.Tensor:
    return torch.stack([torch.zeros_like(height), height, torch.zeros_like(height)], 1)


# Paths that the ground can carry.


def test_a_thrown_body_and_a_standing_one_stay_on_their_paths_and_need_no_hand():
    t = torch.arange(13, dtype=torch.float64) / FPS
    thrown = upwards(1 + 2 * t - 0.5 * GRAVITY * t**2)
    flies = possible_path(thrown, torch.zeros(13, dtype=torch.bool), FPS, **ASK)
    torch.testing.assert_close(flies.centre, thrown, atol=1e-9, rtol=0)
    sways = upwards(torch.ones_like(t))
    sways[:, 0] = 0.02 * torch.sin(6 * t)  # at most 0.08 g sideways
    stands = possible_path(sways, torch.ones(13, dtype=torch.bool), FPS, **ASK)
    torch.testing.assert_close(stands.centre, sways, atol=1e-9, rtol=0)
    assert float(flies.hand.abs().max()) < 1e-6 and float(stands.hand.abs().max()) < 1e-6


def test_a_leap_that_is_drawn_too_slow_falls_as_gravity_wants_between_its_feet():
    t = torch.arange(25, dtype=torch.float64) / FPS
    air = (t > 0.4) & (t < 0.6)
    drawn = upwards(1 + 0.03 * torch.sin(math.pi * (t - 0.4) / 0.2) * air)
    before = possible_path(drawn, ~air, FPS, **(ASK | {"most": 0.0}))
    after = possible_path(drawn, ~air, FPS, **ASK)
    inner = air[1:-1]
    falls = accelerations(after.centre)[inner, 1] + GRAVITY
    assert float(falls.abs().mean()) < 0.1 * GRAVITY
    assert float((after.centre - drawn).norm(dim=1).mean()) <= 0.05
    assert float(after.hand.norm(dim=1).sum()) < 0.1 * float(before.hand.norm(dim=1).sum())


def test_what_nothing_touches_for_long_needs_its_weight_from_the_hand():
    hangs = upwards(torch.ones(49, dtype=torch.float64))
    done = possible_path(hangs, torch.zeros(49, dtype=torch.bool), FPS, **(ASK | {"most": 0.01}))
    assert float(done.hand[10:-10, 1].median()) == pytest.approx(GRAVITY, rel=0.2)


def test_what_lies_outside_the_friction_cone_is_the_way_to_its_nearest_point():
    rng = np.random.default_rng(0)
    push, friction = rng.normal(size=(200, 3)), 0.7
    lacking, _ = _beyond(push, np.ones(200, bool), friction)
    near = push - lacking
    side = np.hypot(near[:, 0], near[:, 2])
    assert (side <= friction * near[:, 1] + 1e-9).all()
    # Nearest points of a convex cone: what is left is at a right angle to it, and no point of the cone is nearer.
    np.testing.assert_allclose((lacking * near).sum(1), 0, atol=1e-9)
    turn = rng.uniform(0, 2 * np.pi, 200)
    others = np.stack([friction * np.cos(turn), np.ones(200), friction * np.sin(turn)], 1)
    assert ((lacking * others).sum(1) <= 1e-9).all()
    free, _ = _beyond(push, np.zeros(200, bool), friction)
    np.testing.assert_array_equal(free, push)


# Joints that know their contacts.


def test_the_quick_cross_product_is_numpys():
    generator = np.random.default_rng(0)
    for shapes in (((3,), (3,)), ((5, 1, 3), (5, 4, 3)), ((7, 3), (3,))):
        a, b = (generator.normal(size=shape) for shape in shapes)
        np.testing.assert_array_equal(_cross(a, b), np.cross(a, b))


def test_a_body_that_stands_is_carried_by_the_ground_alone(fox, bodies):
    from jigdoll.physics.engine_mujoco import MujocoEngine

    stands = make_reference(bodies, fox.skeleton, Motion(rest_pose(fox.skeleton, frames=9), FPS, "stand"))
    plan = replace(make_plan(bodies, stands, ground=True, friction=1.0), balanced=True, hand=0.0, upright=0.0)
    engine = MujocoEngine(bodies, ideal_gains(bodies, step_of(bodies, FPS)))
    done = engine.perform(plan)
    assert not bool(done.hand.any())
    weight = bodies.total_mass * GRAVITY
    assert float(engine.data.qfrc_constraint[1]) == pytest.approx(weight, rel=0.15)
    away = (done.rows[..., :3] - stands.T_world_body[..., :3, 3]).norm(dim=-1)
    assert float(away.max()) < 0.02 * bodies.length


def test_in_the_air_the_hand_gives_what_it_may_and_no_more(fox, bodies):
    from jigdoll.physics.engine_mujoco import MujocoEngine

    up = rest_pose(fox.skeleton, frames=5)
    hangs = make_reference(bodies, fox.skeleton, Motion(up, FPS, "hang"))
    T = hangs.T_world_body.clone()
    T[..., 1, 3] += 1.0
    plan = make_plan(bodies, replace(hangs, T_world_body=T), ground=True, friction=1.0)
    weight = bodies.total_mass * GRAVITY
    gains = ideal_gains(bodies, step_of(bodies, FPS))
    for most in (0.3, 3.0):
        done = MujocoEngine(bodies, gains).perform(replace(plan, balanced=True, hand=most, upright=1.0))
        force = done.hand[1:, :3].norm(dim=1) / weight
        assert float(force.max()) <= most + 1e-9
        assert float(force.mean()) == pytest.approx(min(most, 1.0), rel=0.05)


@pytest.mark.parametrize("fps", [5.0, 24.0, 120.0])
def test_loose_parts_swing_without_exploding_at_any_frame_rate(fox, bodies, fps):
    from jigdoll.physics.engine_mujoco import MujocoEngine

    frames = max(4, round(fps / 4))
    stands = make_reference(bodies, fox.skeleton, Motion(rest_pose(fox.skeleton, frames=frames), fps, "stand"))
    loose = tuple(i for i, name in enumerate(bodies.names) if "tail" in name)
    gains = with_loose(bodies, ideal_gains(bodies, step_of(bodies, fps)), loose)
    plan = make_plan(bodies, stands, ground=True, friction=1.0, loose=loose)
    for balanced in (False, True):
        start = replace(plan, balanced=balanced, upright=1.0, hand=1.0)
        start.twists[0, list(loose), 3:] = 3.0  # a flick [rad/s]
        rows = MujocoEngine(bodies, gains).perform(start).rows
        assert len(rows) == frames and bool(torch.isfinite(rows).all())
        assert float(rows[:, :, 10:].abs().max()) < 30.0
        turned = 1 - (rows[-1, list(loose), 3:7] * rows[0, list(loose), 3:7]).sum(-1).abs()
        assert float(turned.max()) > 1e-5


# Bodies and sizes.


def test_skin_that_is_far_from_the_ground_softens_no_spring(fox, bodies):
    rest = make_reference(bodies, fox.skeleton, Motion(rest_pose(fox.skeleton, frames=4), FPS, "rest")).T_world_body[:1]
    high = rest.clone()
    high[..., 1, 3] += 2.0
    gains = choose_gains(bodies, 1 / 3072)
    free = stabilised(bodies, gains, high, ground=False)
    over = stabilised(bodies, gains, high, ground=True)
    for name in ("attach_ke", "target_ke", "ground_ke"):
        assert torch.equal(getattr(over, name), getattr(free, name))


def test_a_giant_is_simulated_at_our_size_and_its_clip_comes_back_at_its_own(fox):
    T = fox.skeleton.T_parent_joint.clone()
    T[:, :3, 3] *= 12
    mesh = replace(fox.mesh, vertices=fox.mesh.vertices * 12)
    giant = replace(fox, mesh=mesh, skeleton=replace(fox.skeleton, T_parent_joint=T))
    with pytest.warns(RepairWarning, match="simulated as if it were"):
        ready = sized(anatomy_of(giant))
    assert ready.anatomy.leg_length == pytest.approx(1.2, rel=1e-3)
    assert ready.bodies.length == pytest.approx(ready.scale * anatomy_of(giant).body_length, rel=1e-3)
    pose = rest_pose(giant.skeleton, frames=3)
    clip = Motion(Pose(pose.root + torch.tensor([0.0, 0.0, 2.0]), pose.rotations), FPS, "walk")
    torch.testing.assert_close(ready.back(ready.clip(clip)).pose.root, clip.pose.root)
    assert float(ready.clip(clip).pose.root[0, 2]) == pytest.approx(2.0 * ready.scale)


def test_what_flies_or_swims_by_its_name_has_no_ground(fox):
    ready = prepare(fox)
    clip = Motion(rest_pose(fox.skeleton, frames=3), FPS, "")
    for name, ground in (("Armature|Dragon_Flying", False), ("swim", False), ("Walk", True), ("Jump_Land", True)):
        assert ready.config(TrackConfig(), replace(clip, name=name)).ground is ground
