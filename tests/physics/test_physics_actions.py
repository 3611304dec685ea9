"""Clips of many kinds through the whole tracker: on the spot, on a seat, too short, leaping, in the air, falling."""

import math
from dataclasses import replace

import pytest
import torch
import trimesh

from jigdoll import zoo
from jigdoll.kinematics import make_skeleton, rest_pose
from jigdoll.math import GRAVITY
from jigdoll.math.rotations import quaternion_to_rotvec, rotvec_to_quaternion
from jigdoll.math.transforms import translation
from jigdoll.physics.bodies import Bodies, bodies_of
from jigdoll.physics.config import TrackConfig
from jigdoll.physics.optimise import windows
from jigdoll.physics.track import Tracked, _falls_anew, _made_ready, track
from jigdoll.types import Mesh, Motion, Pose, RiggedAsset, Weights
from jigdoll.zoo.gaits import reference_motion

pytest.importorskip("mujoco")
pytest.importorskip("newton")

ANSWER = TrackConfig(iterations=0)
"""Only the first answer, by the robust path."""


@pytest.fixture(scope="module")
def human():
    return zoo.make("human")


@pytest.fixture(scope="module")
def bodies(human):
    return bodies_of(human)


@pytest.fixture(scope="module")
def walk(human):
    return reference_motion(human, "walk", seconds=1.0, fps=24.0)


def performed(
    asset: RiggedAsset, motion: Motion, config: TrackConfig = ANSWER, bodies: Bodies | None = None
) -> Tracked:
    from jigdoll.physics.engine_mujoco import MujocoEngine
    from jigdoll.physics.engine_newton import NewtonEngine

    return track(asset, motion, NewtonEngine, config, bodies=bodies, make_robust=MujocoEngine)


def pull(done: Tracked) -> float:
    """The mean pull of the hand [weights]."""
    return float(done.hand.norm(dim=1).mean()) / (done.bodies.total_mass * GRAVITY)


def part(motion: Motion, frames: int) -> Motion:
    return replace(motion, pose=Pose(motion.pose.root[:frames], motion.pose.rotations[:frames]))


def test_a_walk_on_the_spot_travels_and_goes_back_to_the_spot_on_request(human, walk) -> None:
    way = walk.pose.root[-1] - walk.pose.root[0]
    steady = torch.linspace(0, 1, len(walk))[:, None] * way * torch.tensor([1.0, 0.0, 1.0])
    spot = replace(walk, pose=replace(walk.pose, root=walk.pose.root - steady))
    done = performed(human, spot)
    gone = float((done.motion.pose.root[-1] - done.motion.pose.root[0])[[0, 2]].norm())
    assert 0.8 < gone / float(way[[0, 2]].norm()) < 1.2 and any("walks in place" in note for note in done.notes)
    back = performed(human, spot, replace(ANSWER, in_place=True))
    left = float((back.motion.pose.root[-1] - back.motion.pose.root[0])[[0, 2]].norm())
    assert left < 0.1 * gone and math.isclose(back.error, done.error, abs_tol=1e-9)
    # What was tracked comes back to the clip that came in, but for the height of the ground.
    moved = (back.reference.pose.root - spot.pose.root)[:, [0, 2]]
    torch.testing.assert_close(moved, torch.zeros_like(moved), atol=1e-5, rtol=0)


def test_who_sits_on_air_is_carried_by_a_seat_and_not_by_the_hand(human) -> None:
    names, frames = human.skeleton.names, 25
    rest = rest_pose(human.skeleton, frames=frames)
    turns, quarter = rest.rotations.clone(), math.pi / 2
    for side in ("left", "right"):
        for joint, angle in ((f"{side}_hip", -quarter), (f"{side}_knee", quarter)):
            turns[:, names.index(joint)] = rotvec_to_quaternion(torch.tensor([angle, 0.0, 0.0]))
    thigh = float(human.skeleton.T_parent_joint[names.index("left_knee"), :3, 3].norm())
    sits = Motion(Pose(rest.root - torch.tensor([0.0, thigh, 0.0]), turns), 24.0, "sit")
    done = performed(human, sits)
    assert any("a seat of" in note for note in done.notes) and not any("a hand helps" in note for note in done.notes)
    assert pull(done) == 0 and done.error < 0.04 and not done.fell


@pytest.mark.parametrize("frames", [2, 3, 5])
def test_a_clip_of_a_fifth_of_a_second_is_tracked_by_both_paths(human, walk, frames) -> None:
    done = performed(human, part(walk, frames), TrackConfig(iterations=1))
    assert len(done.motion) == frames and max(done.errors.values()) < 0.04


def test_a_clip_that_leaps_between_two_frames_comes_back_finite_with_what_help_it_took(human, walk) -> None:
    root = walk.pose.root.clone()
    root[12:] += torch.tensor([0.6, 0.4, 0.0])
    done = performed(human, replace(walk, pose=replace(walk.pose, root=root)))
    assert bool(torch.isfinite(done.motion.pose.root).all()) and math.isfinite(done.error)
    assert pull(done) > 0 and any("a hand helps" in note for note in done.notes)


def test_a_clip_that_begins_below_the_floor_or_in_the_air_stands_on_the_ground(human, walk) -> None:
    heights = [
        performed(human, replace(walk, pose=replace(walk.pose, root=walk.pose.root + torch.tensor([0.0, up, 0.0]))))
        for up in (-0.4, 0.0, 0.4)
    ]
    roots = torch.stack([done.motion.pose.root[:, 1] for done in heights])
    torch.testing.assert_close(roots, roots[1:2].expand(3, -1), atol=1e-4, rtol=0)


def test_what_has_no_ground_keeps_its_height_without_a_fall_of_its_own(human, walk) -> None:
    done = performed(human, walk, replace(ANSWER, ground=False))
    assert done.error < 0.02 and not done.fell and any("no ground and no weight" in note for note in done.notes)


def test_a_performance_that_tips_over_is_told_from_a_clip_that_does(human, bodies, walk) -> None:
    none = torch.zeros(2, dtype=torch.float64)
    angle = torch.linspace(0, math.pi / 2, len(walk))[:, None] * torch.tensor([1.0, 0.0, 0.0])
    turns = walk.pose.rotations.clone()
    turns[:, 0] = rotvec_to_quaternion(angle)
    tips = replace(walk, pose=replace(walk.pose, rotations=turns))
    task = _made_ready(human, walk, bodies, ANSWER, none)
    assert _falls_anew(task, tips) and not _falls_anew(task, walk)
    assert not _falls_anew(replace(task, config=replace(ANSWER, ground=False)), tips)
    assert not _falls_anew(_made_ready(human, tips, bodies, ANSWER, none), tips)


def test_a_window_that_explodes_late_is_caught_before_the_first_is_optimised(human, walk) -> None:
    from jigdoll.physics.engine_newton import NewtonEngine

    config = TrackConfig(iterations=1, substeps=32, window=6, overlap=2)
    spans = list(windows(len(walk), config))
    assert len(spans) > 3
    made: list[float] = []
    went_back: list[int] = []

    def fragile(bodies, gains, **options):
        """Explodes in the third window unless the step is halved."""
        made.append(gains.dt)
        late = sum(dt == gains.dt for dt in made) == 3 and math.isclose(gains.dt, made[0])
        engine = NewtonEngine(bodies, gains, **options)
        step = engine.step

        def counted(state, controls):
            if controls.requires_grad:
                went_back.append(len(made))
            return state * math.nan if late else step(state, controls)

        engine.step = counted
        return engine

    done = track(human, walk, fragile, config)
    assert made[2] == made[0] and math.isclose(made[3], made[0] / 2) and math.isclose(done.gains.dt, made[0] / 2)
    # No window was optimised before all had been tried.
    assert min(went_back) > 3 + len(spans)
    assert done.error < 0.2 and len(done.motion) == len(walk)


def test_what_was_done_to_the_flesh_is_said(human) -> None:
    assert any("joints are carried by others" in word for word in bodies_of(human).repairs)
    mesh, names = human.mesh, human.skeleton.names
    head = human.weights.dense(len(names))[:, names.index("head")] > 0.5
    vertices = mesh.vertices.clone()
    middle = vertices[head].mean(0)
    vertices[head] = middle + 4 * (vertices[head] - middle)
    toy = bodies_of(replace(human, mesh=replace(mesh, vertices=vertices)))
    said = " ".join(toy.repairs)
    assert "ends of the body weigh at most 15% (head" in said
    assert float(toy.mass[toy.names.index("head")] / toy.mass.sum()) < 0.2


def test_legs_of_one_bone_swing_on_as_drawn_and_do_not_stick(human) -> None:
    boxes = [trimesh.creation.box((0.3, 0.2, 0.6)).apply_translation((0.0, 0.5, 0.0))]
    hips = [(x, 0.4, z) for x in (-0.2, 0.2) for z in (-0.2, 0.2)]
    boxes += [trimesh.creation.box((0.06, 0.4, 0.06)).apply_translation((x, 0.2, z)) for x, _, z in hips]
    vertices = torch.cat([torch.tensor(box.vertices).float() for box in boxes])
    faces = torch.cat([torch.tensor(box.faces) + 8 * i for i, box in enumerate(boxes)])
    owner = torch.arange(5).repeat_interleave(8)[:, None]
    names = ("pelvis", "right_hind_hip", "right_front_hip", "left_hind_hip", "left_front_hip")
    places = torch.tensor([[0.0, 0.5, 0.0], *([x, -0.1, z] for x, _, z in hips)])
    skeleton = make_skeleton(names, (-1, 0, 0, 0, 0), translation(places))
    table = RiggedAsset("table", Mesh(vertices, faces, torch.ones(40, 3)), skeleton, Weights(owner, torch.ones(40, 1)))
    rest = rest_pose(skeleton, frames=25)
    turns = rest.rotations.clone()
    angle = 0.5 * torch.sin(torch.arange(25) / 24 * 4 * math.pi)
    for leg, sign in zip(range(1, 5), (1, -1, -1, 1), strict=True):
        turns[:, leg] = rotvec_to_quaternion(sign * angle[:, None] * torch.tensor([1.0, 0.0, 0.0]))
    stands = replace(bodies_of(table, needs_legs=False), feet=((1,), (2,), (3,), (4,)))
    done = performed(table, Motion(Pose(rest.root, turns), 24.0, "walk"), bodies=stands)
    assert len(done.bodies.feet) == 4 and len(done.bodies.slips) == 4 and any("feet slide" in n for n in done.notes)
    swing = quaternion_to_rotvec(done.motion.pose.rotations[:, 1:])[..., 0]
    wished = quaternion_to_rotvec(turns[:, 1:])[..., 0]
    assert float((swing.amax(0) - swing.amin(0)).min()) > 0.7 * float(wished.amax() - wished.amin())
    assert not bodies_of(human).slips
