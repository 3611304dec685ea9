"""The robust path: random bodies that never explode, stances, seats, loose parts, clips as artists draw them."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from jigdoll import zoo
from jigdoll.contacts import Feet, ground_velocity
from jigdoll.kinematics import forward, rest_pose
from jigdoll.math import GRAVITY
from jigdoll.math.rotations import matrix_to_quaternion, quaternion_to_matrix, rotvec_to_quaternion
from jigdoll.math.transforms import transform
from jigdoll.physics.bodies import Bodies, bodies_of
from jigdoll.physics.chair import find_chair
from jigdoll.physics.config import TrackConfig
from jigdoll.physics.gains import choose_gains, ideal_gains
from jigdoll.physics.optimise import Window, find_stable_step
from jigdoll.physics.prepare import prepare, running_ground
from jigdoll.physics.reference import Reference, make_reference, nearest_rigid, twists, with_angles
from jigdoll.physics.robust import NEAR, make_plan, perform_clip
from jigdoll.physics.stability import ROOM, _springs, _stiffest, stabilised
from jigdoll.physics.stances import with_stances
from jigdoll.physics.track import track
from jigdoll.types import Motion, Pose
from jigdoll.zoo.gaits import reference_motion

pytest.importorskip("mujoco")
pytest.importorskip("newton")

BESIDE = [folder / "shared" / "corpus" / "characters" for folder in Path(__file__).parents]
CORPUS = next((folder for folder in BESIDE if folder.exists()), BESIDE[0])


def random_bodies(count: int, seed: int) -> Bodies:
    """A tree of cuboids with masses from 1 to 1000 and lengths from 1 to 500."""
    g = torch.Generator().manual_seed(seed)

    def uniform(*shape: int) -> torch.Tensor:
        return torch.rand(*shape, generator=g, dtype=torch.float64)

    parents = [-1, *(int(uniform(1) * min(i, 8)) + max(0, i - 8) for i in range(1, count))]
    size, weight = uniform(count, 1), uniform(count)
    # The extremes are always there.
    size[int(uniform(1) * count)], size[-1], weight[int(uniform(1) * (count - 1))], weight[-1] = 0.0, 1.0, 0.0, 1.0
    half = 0.3 * 500**-size * (0.2 + 0.8 * uniform(count, 3))
    mass = 30.0 * 1000**-weight
    turn = quaternion_to_matrix(rotvec_to_quaternion(2 * uniform(count, 3) - 1))
    place = torch.stack([(2 * uniform(3) - 1) * half[max(p, 0)] for p in parents])
    T = transform(turn, place)
    T[0, :3, 3] = torch.tensor([0.0, 1.0, 0.0])
    squares = half.square()
    inertia = torch.diag_embed(mass[:, None] / 3 * (squares.sum(1, keepdim=True) - squares))
    box = torch.eye(4, dtype=torch.float64).repeat(count, 1, 1)
    box[:, :3, 3] = (2 * uniform(count, 3) - 1) * half
    signs = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0], dtype=torch.float64)] * 3)
    limits = torch.tensor([-math.pi, math.pi], dtype=torch.float64).expand(count, 3, 2)
    return Bodies(
        names=tuple(f"part_{i}" for i in range(count)),
        joints=tuple(range(count)),
        parents=tuple(parents),
        carriers=tuple(range(count)),
        T_parent_body=T,
        axes=torch.eye(3, dtype=torch.float64).repeat(count, 1, 1),
        limits=limits,
        mass=mass,
        inertia=inertia,
        T_body_box=box,
        half=half,
        contacts=signs * half[:, None] + box[:, None, :3, 3],
        feet=(),
        length=1.0,
        leg_length=0.5,
    )


def tree(bodies: Bodies, local: torch.Tensor) -> torch.Tensor:
    """Places of the bodies with these rotations of their joints."""
    T = []
    for body, parent in enumerate(bodies.parents):
        here = bodies.T_parent_body[body] @ transform(local[:, body], local.new_zeros(len(local), 3))
        T.append(here if parent < 0 else T[parent] @ here)
    return torch.stack(T, 1)


def random_clip(bodies: Bodies, seed: int, *, frames: int = 13, swing: float = 1.0) -> Reference:
    g = torch.Generator().manual_seed(seed)
    start, end = (torch.randn(len(bodies), 3, generator=g, dtype=torch.float64) for _ in range(2))
    t = torch.linspace(0, 1, frames, dtype=torch.float64)[:, None, None]
    local = quaternion_to_matrix(rotvec_to_quaternion(swing * ((1 - t) * start + t * end)))
    T = tree(bodies, local)
    eye = torch.eye(3, dtype=torch.float64).expand(len(bodies), 3, 3)
    angles = torch.zeros(frames, len(bodies), 3, dtype=torch.float64)
    bare = Reference(24.0, T, eye, angles, twists(bodies, T, 24.0), bodies.limits, 0.0)
    return with_angles(bodies, bare)


def kinetic(bodies: Bodies, rows: torch.Tensor) -> torch.Tensor:
    R = quaternion_to_matrix(rows[..., 3:7].double())
    spin = rows[..., 10:].double()
    turning = (spin * (R @ bodies.inertia @ R.mT @ spin[..., None])[..., 0]).sum(-1)
    return 0.5 * (bodies.mass * rows[..., 7:10].double().square().sum(-1) + turning).sum(-1)


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("count", [3, 20, 120])
def test_random_bodies_with_random_targets_stay_finite_bounded_and_the_same(
    count: int, seed: int, balanced: bool
) -> None:
    from jigdoll.physics.engine_mujoco import MujocoEngine

    bodies = random_bodies(count, seed)
    assert math.isclose(float(bodies.mass.max() / bodies.mass.min()), 1000, rel_tol=1e-9)
    clip = random_clip(bodies, seed, frames=9)
    gains = ideal_gains(bodies, 1 / 480)
    plan = replace(make_plan(bodies, clip, ground=True, friction=1.0), hand=1.0, upright=5.0, balanced=balanced)
    ends = [MujocoEngine(bodies, gains).perform(plan).rows for _ in range(2)]
    assert len(ends[0]) == len(clip) and bool(torch.isfinite(ends[0]).all())
    assert torch.equal(*ends)
    # No faster than the clip itself moves, and a fall from its height.
    wished = torch.cat(
        [clip.T_world_body[..., :3, 3], matrix_to_quaternion(clip.T_world_body[..., :3, :3]), clip.twists], -1
    )
    asked = kinetic(bodies, wished).max()
    height = clip.T_world_body[..., 1, 3].max() - clip.T_world_body[..., 1, 3].min() + 2.0
    assert float(kinetic(bodies, ends[0]).max()) < 20 * float(asked + bodies.total_mass * GRAVITY * height)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("count", [6, 40])
def test_rings_that_were_cut_stay_finite_bounded_and_nearly_closed(count: int, seed: int) -> None:
    """A loop of links (a chain, a strap, a linkage), cut at one joint: its ends are held together by the clip alone."""
    from jigdoll.physics.engine_mujoco import MujocoEngine

    bodies, side = random_bodies(count, seed), 2 * math.pi / count
    turn = rotvec_to_quaternion(torch.tensor([0.0, 0.0, side], dtype=torch.float64))
    T = transform(quaternion_to_matrix(turn), torch.tensor([0.1, 0.0, 0.0], dtype=torch.float64)).repeat(count, 1, 1)
    T[0] = transform(torch.eye(3, dtype=torch.float64), torch.tensor([0.0, 2.0, 0.0], dtype=torch.float64))
    half = torch.tensor([0.05, 0.01, 0.01], dtype=torch.float64).expand(count, 3)
    squares = half.square()
    inertia = torch.diag_embed(bodies.mass[:, None] / 3 * (squares.sum(1, keepdim=True) - squares))
    ring = replace(bodies, parents=tuple(range(-1, count - 1)), T_parent_body=T, half=half, inertia=inertia)
    ring.T_body_box[:, :3, 3] = torch.tensor([0.05, 0.0, 0.0], dtype=torch.float64)
    still = tree(ring, torch.eye(3, dtype=torch.float64).expand(9, count, 3, 3))
    end = still[0, -1] @ torch.tensor([0.1, 0.0, 0.0, 1.0], dtype=torch.float64)
    torch.testing.assert_close(end[:3], still[0, 0, :3, 3], atol=1e-9, rtol=0)  # it is a ring
    eye = torch.eye(3, dtype=torch.float64).expand(count, 3, 3)
    none = torch.zeros(9, count, 3, dtype=torch.float64)
    clip = with_angles(ring, Reference(24.0, still, eye, none, twists(ring, still, 24.0), ring.limits, 0.0))
    plan = replace(make_plan(ring, clip, ground=False, friction=1.0), upright=5.0)
    ends = [MujocoEngine(ring, ideal_gains(ring, 1 / 480), gravity=False).perform(plan).rows for _ in range(2)]
    assert len(ends[0]) == len(clip) and torch.equal(*ends) and bool(torch.isfinite(ends[0]).all())
    R = quaternion_to_matrix(ends[0][:, -1, 3:7])
    tip = ends[0][:, -1, :3] + R @ torch.tensor([0.1, 0.0, 0.0], dtype=torch.float64)
    assert float((tip - ends[0][:, 0, :3]).norm(dim=-1).max()) < 0.02 * 0.1 * count
    assert float(kinetic(ring, ends[0]).max()) < 1e-3 * ring.total_mass


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("count", [3, 16])
def test_random_targets_stay_finite_bounded_and_the_same_in_the_differentiable_engine(count: int, seed: int) -> None:
    from jigdoll.physics.engine_newton import NewtonEngine

    bodies = random_bodies(count, seed)
    clip = random_clip(bodies, seed, frames=9, swing=0.5)
    config = TrackConfig(ground=False)
    gains, substeps = find_stable_step(clip, bodies, config, NewtonEngine)

    def rolled() -> torch.Tensor:
        window = Window(clip, bodies, gains, substeps, config, NewtonEngine)
        with torch.no_grad():
            return torch.stack([window.engine.rows(s) for s in window.rollout(window.start, window.base)])

    rows = rolled()
    assert bool(torch.isfinite(rows).all()) and torch.equal(rows, rolled())
    T = clip.T_world_body
    wished = torch.cat([T[..., :3, 3], matrix_to_quaternion(T[..., :3, :3]), clip.twists], -1)
    assert float(kinetic(bodies, rows).max()) < 20 * float(kinetic(bodies, wished).max())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("count", [3, 16])
def test_a_pose_held_in_the_air_never_explodes_in_the_differentiable_engine(count: int, seed: int) -> None:
    from jigdoll.physics.engine_newton import NewtonEngine

    bodies = random_bodies(count, seed)
    pose = random_clip(bodies, seed, frames=6, swing=0.3).T_world_body[:1].expand(6, -1, -1, -1).clone()
    eye = torch.eye(3, dtype=torch.float64).expand(count, 3, 3)
    none = torch.zeros(6, count, 3, dtype=torch.float64)
    still = with_angles(bodies, Reference(24.0, pose, eye, none, twists(bodies, pose, 24.0), bodies.limits, 0.0))
    gains = stabilised(bodies, choose_gains(bodies, 1 / (24 * 128)), pose[:1], ground=False)
    window = Window(still, bodies, gains, 128, TrackConfig(ground=False), NewtonEngine)
    with torch.no_grad():
        states = window.rollout(window.start, window.base)
    rows = torch.stack([window.engine.rows(state) for state in states])
    assert bool(torch.isfinite(rows).all())
    assert float((rows[..., :3].double() - pose[..., :3, 3]).norm(dim=-1).max()) < 0.02 * bodies.length
    assert float(kinetic(bodies, rows).max()) < 1e-2 * bodies.total_mass


def test_springs_of_a_light_body_that_carries_many_are_softened_and_those_of_the_others_are_not() -> None:
    bodies = random_bodies(8, 1)
    mass = torch.full((8,), 10.0, dtype=torch.float64)
    mass[1] = 0.1
    parents = (-1, 0, 1, 1, 1, 1, 1, 0)
    half = torch.full((8, 3), 0.1, dtype=torch.float64)
    inertia = torch.eye(3, dtype=torch.float64) * (mass * 0.02 / 3)[:, None, None]
    bodies = replace(bodies, mass=mass, parents=parents, half=half, inertia=inertia)
    pose = tree(bodies, torch.eye(3, dtype=torch.float64).expand(1, 8, 3, 3))
    before = choose_gains(bodies, 1 / 2400)
    after = stabilised(bodies, before, pose, ground=False)
    one = torch.ones(24, dtype=torch.float64)
    assert _stiffest(_springs(bodies, before, pose[0], ground=False), one)[0] > 4
    assert _stiffest(_springs(bodies, after, pose[0], ground=False), one)[0] < 1.1 * ROOM
    soft = after.attach_ke / before.attach_ke
    assert float(soft[2:7].max()) < 0.8 and float(soft[7]) > 0.9


# Clips.


@pytest.fixture(scope="module")
def human():
    return zoo.make("human")


@pytest.fixture(scope="module")
def bodies(human):
    return bodies_of(human)


def test_rigid_clips_stay_what_they_are_and_stretched_ones_come_as_near_as_bones_allow(human, bodies) -> None:
    walk = reference_motion(human, "walk", seconds=0.5, fps=24.0)
    T = forward(human.skeleton, walk.pose)[:, list(bodies.joints)].double()
    torch.testing.assert_close(nearest_rigid(bodies, T), T, atol=2e-6, rtol=0)
    apart = T.clone()
    apart[:, 1:, :3, 3] += 0.03 * torch.randn(len(bodies) - 1, 3, generator=torch.Generator().manual_seed(0)).double()
    near = nearest_rigid(bodies, apart)
    arms = torch.stack([near[:, b, :3, 3] - near[:, p, :3, 3] for b, p in enumerate(bodies.parents) if p >= 0], 1)
    torch.testing.assert_close(
        arms.norm(dim=-1), bodies.T_parent_body[1:, :3, 3].norm(dim=-1).expand(len(T), -1), atol=1e-9, rtol=0
    )
    naive = (T - apart)[..., :3, 3].norm(dim=-1).mean()
    assert float((near - apart)[..., :3, 3].norm(dim=-1).mean()) < 1.2 * float(naive)


def test_feet_that_creep_and_sink_stand_still_on_the_ground_afterwards(human, bodies) -> None:
    rest = rest_pose(human.skeleton, frames=24)
    slow = torch.linspace(0, 0.03, 24)[:, None] * torch.tensor([0.0, -0.3, 1.0])
    clip = make_reference(bodies, human.skeleton, Motion(Pose(rest.root + slow, rest.rotations), 24.0, "creep"))
    done = with_stances(bodies, clip)
    feet = [body for foot in bodies.feet for body in foot]

    def creep(reference: Reference) -> float:
        place = reference.T_world_body[:, feet, :3, 3]
        return float((place[-3] - place[2]).norm(dim=-1).max())

    assert creep(clip) > 0.02 and creep(done) < 0.3 * creep(clip)
    torch.testing.assert_close(done.T_world_body[:, 0, :3, 3], clip.T_world_body[:, 0, :3, 3], atol=5e-3, rtol=0)


def test_a_walk_without_its_travel_gets_it_back(human, bodies) -> None:
    walk = reference_motion(human, "walk", seconds=2.0, fps=24.0)
    time = torch.arange(len(walk)) / 24.0
    way = walk.pose.root[-1] - walk.pose.root[0]
    speed = way[[0, 2]] / float(time[-1])
    root = walk.pose.root - time[:, None] / time[-1] * way * torch.tensor([1.0, 0.0, 1.0])
    spot = replace(walk, pose=replace(walk.pose, root=root))
    assert not bool(running_ground(bodies, human.skeleton, walk).any())
    ground = running_ground(bodies, human.skeleton, spot)
    torch.testing.assert_close(-ground.float(), speed, atol=0.08 * float(speed.norm()), rtol=0)


def test_feet_that_slide_one_way_sit_down_and_do_not_walk(human, bodies) -> None:
    """Both feet come down a little ahead and are then drawn in along the ground: once, not to and fro."""
    lands, slides = torch.arange(5).double() / 4, torch.arange(1, 21).double() / 20
    feet = torch.zeros(25, 2, 3, dtype=torch.float64)
    feet[..., 2] = bodies.length * torch.cat([0.05 * lands, 0.05 - 0.8 * slides])[:, None]
    feet[:5, :, 1] = 0.1 * bodies.length * (1 - lands)[:, None]
    soles = feet[:, :, None].expand(-1, -1, 4, -1)
    assert not bool(ground_velocity(Feet(feet, soles, 24.0, bodies.length)).any())
    # The same feet lifted back ahead, and down again, do walk.
    again = torch.cat([feet, feet.flip(0)[::4] + bodies.length * torch.tensor([0.0, 0.1, 0.0])])
    assert bool(ground_velocity(Feet(again, again[:, :, None].expand(-1, -1, 4, -1), 24.0, bodies.length)).any())


def test_a_body_that_rests_in_the_air_gets_a_seat_and_one_that_stands_or_jumps_does_not(human, bodies) -> None:
    rest = rest_pose(human.skeleton, frames=24)
    stands = make_reference(bodies, human.skeleton, Motion(rest, 24.0, "stand"))
    assert find_chair(bodies, stands) is None
    up = torch.tensor([0.0, 0.5, 0.0])
    floats = replace(stands, T_world_body=stands.T_world_body.clone())
    floats.T_world_body[..., 1, 3] += 0.5
    seat = find_chair(bodies, floats)
    skin = floats.T_world_body[0, 0, :3, 3] + bodies.contacts[0] @ floats.T_world_body[0, 0, :3, :3].mT
    assert seat is not None and math.isclose(seat.top, float(skin[:, 1].min()), abs_tol=1e-3)
    time = torch.arange(24) / 24.0
    arc = rest.root + (up / 0.5) * (4.0 * time - 0.5 * GRAVITY * time**2).clamp_min(0)[:, None]
    assert find_chair(bodies, make_reference(bodies, human.skeleton, Motion(Pose(arc, rest.rotations), 24.0))) is None


def test_what_cannot_be_held_alone_is_held_by_a_hand_and_standing_needs_none(human, bodies) -> None:
    from jigdoll.physics.engine_mujoco import MujocoEngine

    rest = rest_pose(human.skeleton, frames=13)
    stands = make_reference(bodies, human.skeleton, Motion(rest, 24.0, "stand"))
    still = perform_clip(bodies, stands, MujocoEngine)
    assert still.strength == 0 and still.error < NEAR and not still.fell and not bool(still.hand[:, :3].any())
    way = torch.linspace(0, 1, 13)[:, None] ** 2 * torch.tensor([0.0, 1.5, 0.0])
    rises = make_reference(bodies, human.skeleton, Motion(Pose(rest.root + way, rest.rotations), 24.0, "rise"))
    rises = replace(rises, T_world_body=rises.T_world_body)
    lifted = perform_clip(bodies, rises, MujocoEngine)
    weights = lifted.hand[:, :3].norm(dim=1).mean() / (bodies.total_mass * GRAVITY)
    assert lifted.strength >= 1.0 and 0.5 < float(weights) < 10 and lifted.error < 0.1


def test_loose_parts_swing_where_the_clip_leaves_them_stiff_and_the_rest_follows_it() -> None:
    from jigdoll.physics.engine_mujoco import MujocoEngine
    from jigdoll.physics.engine_newton import NewtonEngine

    fox = zoo.make("fox")
    walk = reference_motion(fox, "walk", seconds=1.0, fps=24.0)
    tail = [j for j, name in enumerate(fox.skeleton.names) if "tail" in name]
    turns = walk.pose.rotations.clone()
    turns[:, tail] = torch.tensor([1.0, 0.0, 0.0, 0.0])
    stiff = replace(walk, pose=replace(walk.pose, rotations=turns))
    moved = []
    for loose in ((), ("tail",)):
        config = TrackConfig(iterations=0, loose=loose)
        done = track(fox, stiff, NewtonEngine, config, make_robust=MujocoEngine)
        assert done.path == "robust" and done.error < 0.05
        own = [j for j in tail if j in done.bodies.joints]
        moved.append(float((1 - done.motion.pose.rotations[:, own, 0].abs()).max()))
    assert moved[1] > 2 * moved[0]


@pytest.mark.skipif(not CORPUS.exists(), reason="the corpus of artists' files is not beside the repository")
@pytest.mark.parametrize(
    ("file", "clip"),
    [
        ("khronos/Fox.glb", "Walk"),
        ("quaternius/dinosaurs_pack/Triceratops.glb", "Armature|Triceratops_Walk"),
        ("quaternius/farm_animals/Llama.gltf", "Walk"),
    ],
)
@pytest.mark.filterwarnings("ignore::jigdoll.errors.RepairWarning")
def test_artists_clips_that_used_to_explode_are_tracked_by_both_paths(file: str, clip: str) -> None:
    from jigdoll.asset.load import load
    from jigdoll.physics.engine_mujoco import MujocoEngine
    from jigdoll.physics.engine_newton import NewtonEngine

    asset = load(CORPUS / file, fps=24.0)
    ready = prepare(asset)
    motion = ready.clip(asset.clips[clip])
    motion = replace(motion, pose=Pose(*(None if v is None else v[:13] for v in vars(motion.pose).values())))
    done = track(
        ready.asset, motion, NewtonEngine, TrackConfig(iterations=1), bodies=ready.bodies, make_robust=MujocoEngine
    )
    assert done.errors["robust"] < 0.05 and math.isfinite(done.errors["gradients"])
    back = ready.back(done.motion)
    assert back.pose.rotations.shape[1] == len(asset.skeleton) and bool(torch.isfinite(back.pose.root).all())
