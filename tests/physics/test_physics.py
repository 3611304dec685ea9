"""Rigid bodies of characters: their mass, the engine against closed forms, finite differences, Newton and MuJoCo."""

import math
from dataclasses import replace

import pytest
import torch

from jigdoll import zoo
from jigdoll.errors import RigError
from jigdoll.kinematics import make_skeleton, rest_transforms
from jigdoll.math import GRAVITY
from jigdoll.math.rotations import matrix_to_quaternion, quaternion_to_matrix, rotvec_to_quaternion
from jigdoll.math.transforms import transform, translation
from jigdoll.physics.bodies import Bodies, bodies_of
from jigdoll.physics.gains import Gains, choose_gains
from jigdoll.physics.weighing import mesh_volume
from jigdoll.protocols import PhysicsEngine
from jigdoll.types import Mesh, RiggedAsset, Weights

pytest.importorskip("newton")
pytest.importorskip("mujoco")

DT = 1 / 2400


def box_mesh(low, high):
    """The corners and outward faces of a box."""
    x0, y0, z0 = low
    x1, y1, z1 = high
    corners = torch.tensor([[x, y, z] for x in (x0, x1) for y in (y0, y1) for z in (z0, z1)])
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    faces = [face for a, b, c, d in quads for face in ((a, b, c), (a, c, d))]
    return corners, torch.tensor(faces)


def two_boxes() -> RiggedAsset:
    """A box of 0.4 x 0.2 x 0.6 m with a smaller one in front of it; each one moved by its own joint."""
    a, faces_a = box_mesh((-0.2, 0.0, -0.3), (0.2, 0.2, 0.3))
    b, faces_b = box_mesh((-0.1, 0.0, 0.3), (0.1, 0.2, 0.7))
    vertices = torch.cat([a, b])
    faces = torch.cat([faces_a, faces_b + 8])
    T = translation(torch.tensor([[0.0, 0.1, 0.0], [0.0, 0.0, 0.3], [0.0, 0.0, 0.4]]))
    skeleton = make_skeleton(("body", "head", "tip"), (-1, 0, 1), T)
    weights = Weights(torch.tensor([[0]] * 8 + [[1]] * 8), torch.ones(16, 1))
    return RiggedAsset("boxes", Mesh(vertices, faces, torch.ones(16, 3)), skeleton, weights)


@pytest.fixture(scope="module")
def boxes() -> Bodies:
    return bodies_of(two_boxes(), needs_legs=False)


@pytest.fixture(scope="module")
def fox() -> Bodies:
    return bodies_of(zoo.make("fox"))


def places(bodies: Bodies):
    """The bodies' frames at rest."""
    T = [bodies.T_parent_body[0]]
    for body in range(1, len(bodies)):
        T.append(T[bodies.parents[body]] @ bodies.T_parent_body[body])
    return torch.stack(T)


def still(bodies: Bodies):
    return torch.zeros(len(bodies), 6, dtype=torch.float64)


def hold(engine, T, substeps):
    """Controls that hold all joints at rest."""
    row = torch.zeros(engine.dofs)
    row[:3], row[3:7] = T[0, :3, 3], matrix_to_quaternion(T[0, :3, :3])
    return row.repeat(substeps, 1)


def limp(gains: Gains) -> Gains:
    return replace(gains, target_ke=0 * gains.target_ke, target_kd=0 * gains.target_kd)


def engine_of(bodies: Bodies, gains: Gains | None = None, **options):
    from jigdoll.physics.engine_newton import NewtonEngine

    engine = NewtonEngine(bodies, choose_gains(bodies, DT) if gains is None else gains, **options)
    engine.set_help(upright=0.0)
    return engine


# Bodies.


def test_boxes_become_cuboids_of_their_own_size_mass_and_inertia(boxes):
    # 4 % of each extent is outside the quantiles of a cuboid with corners only: none, corners repeat.
    assert boxes.names == ("body", "head") and boxes.parents == (-1, 0) and boxes.carriers == (0, 1, 1)
    along = boxes.T_body_box[:, :3, :3].abs() @ boxes.half[..., None]  # half extents along the body's own axes
    wanted = torch.tensor([[0.2, 0.1, 0.3], [0.1, 0.1, 0.2]], dtype=torch.float64)
    torch.testing.assert_close(along[0, :, 0], wanted[0], atol=1e-6, rtol=0)
    torch.testing.assert_close(along[1, :, 0].sort().values, wanted[1], atol=1e-6, rtol=0)
    volumes = torch.tensor([0.4 * 0.2 * 0.6, 0.2 * 0.2 * 0.4], dtype=torch.float64)
    torch.testing.assert_close(boxes.mass, 1000 * volumes)
    # I_xx = m (h^2 + d^2) / 12 with the full extents h, d.
    m = float(boxes.mass[0])
    wanted = torch.diag(torch.tensor([0.2**2 + 0.6**2, 0.4**2 + 0.6**2, 0.4**2 + 0.2**2], dtype=torch.float64)) * m / 12
    torch.testing.assert_close(boxes.inertia[0], wanted, atol=1e-6, rtol=1e-6)


def test_the_mass_of_a_character_is_density_times_the_volume_of_its_mesh():
    asset = zoo.make("fox")
    bodies = bodies_of(asset, density=900.0)
    assert math.isclose(bodies.total_mass, 900 * mesh_volume(asset), rel_tol=1e-9)


@pytest.mark.parametrize("name", ["fox", "human", "spider", "t_rex"])
def test_a_character_has_few_bodies_the_same_on_both_sides_and_feet_on_the_ground(name):
    bodies = bodies_of(zoo.make(name))
    assert 15 <= len(bodies) <= 26
    left = sorted(word.removeprefix("left_") for word in bodies.names if word.startswith("left_"))
    right = sorted(word.removeprefix("right_") for word in bodies.names if word.startswith("right_"))
    assert left == right
    corners = bodies.contacts @ places(bodies)[:, :3, :3].mT + places(bodies)[:, None, :3, 3]
    for foot in bodies.feet:
        assert abs(float(corners[list(foot), :, 1].min())) < 0.005 * bodies.length
    assert float(bodies.mass.min()) >= 0.0099 * bodies.total_mass * 0.9
    principal = torch.linalg.eigvalsh(bodies.inertia)
    assert bool((principal[:, 0] >= 0.249 * principal[:, 2]).all())


@pytest.mark.parametrize("name", ["fox", "human", "spider", "t_rex"])
def test_however_a_foot_is_turned_its_lowest_skin_is_near_one_of_its_contacts(name):
    asset = zoo.make(name)
    bodies = bodies_of(asset)
    merged = asset.weights.dense(len(asset.skeleton)).double()
    owners = torch.tensor(bodies.carriers)[merged.argmax(1)]
    generator = torch.Generator().manual_seed(0)
    turns = quaternion_to_matrix(rotvec_to_quaternion(3 * torch.randn(200, 3, generator=generator).double()))
    for body in {body for foot in bodies.feet for body in foot}:
        T = places(bodies)[body]
        skin = (asset.mesh.vertices[owners == body].double() - T[:3, 3]) @ T[:3, :3]
        gaps = (bodies.contacts[body] @ turns.mT)[..., 1].amin(1) - (skin @ turns.mT)[..., 1].amin(1)
        assert float(gaps.quantile(0.95)) < 0.12 * float((skin.amax(0) - skin.amin(0)).norm())


def test_a_body_without_legs_is_refused_with_what_to_do():
    with pytest.raises(RigError, match=r"no legs to stand on.*--no-ground"):
        bodies_of(two_boxes())


def test_joints_without_flesh_and_bones_without_length_are_carried_by_others():
    asset = two_boxes()
    T = translation(torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.1, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.3], [0.0, 0.0, 0.0]]))
    skeleton = make_skeleton(("handle", "body", "same_place", "head", "end"), (-1, 0, 1, 2, 3), T)
    weights = Weights(torch.tensor([[1]] * 8 + [[3]] * 8), torch.ones(16, 1))
    bodies = bodies_of(replace(asset, skeleton=skeleton, weights=weights), needs_legs=False)
    assert bodies.names == ("body", "head")
    assert bodies.carriers == (0, 0, 0, 1, 1)
    torch.testing.assert_close(bodies.mass, bodies_of(asset, needs_legs=False).mass)


def test_a_part_without_volume_still_weighs_what_an_integrator_needs():
    asset = two_boxes()
    vertices = asset.mesh.vertices.clone()
    vertices[8:, 1] = 0.1  # the head is a sheet
    bodies = bodies_of(replace(asset, mesh=replace(asset.mesh, vertices=vertices)), needs_legs=False)
    assert float(bodies.mass[1]) >= 0.0099 * bodies.total_mass
    assert float(torch.linalg.eigvalsh(bodies.inertia[1]).min()) > 0
    nothing = replace(asset.mesh, vertices=torch.zeros_like(vertices))
    with pytest.raises(RigError, match="no flesh"):
        bodies_of(replace(asset, mesh=nothing), needs_legs=False)


# The engine against closed forms.


def test_the_engines_fit_the_socket(boxes):
    from jigdoll.physics.engine_mujoco import MujocoEngine

    for engine in (engine_of(boxes), MujocoEngine(boxes, choose_gains(boxes, DT))):
        assert isinstance(engine, PhysicsEngine)
        T = places(boxes)
        state = engine.step(engine.start(T, still(boxes)), hold(engine, T, 8))
        rows = engine.rows(state)
        assert rows.shape == (2, 13)
        torch.testing.assert_close(rows[:, 3:7].norm(dim=1), torch.ones(2, dtype=rows.dtype), atol=1e-5, rtol=0)


def test_a_limp_body_falls_freely(boxes):
    engine = engine_of(boxes, limp(choose_gains(boxes, DT)), ground=False)
    T = places(boxes)
    state = engine.start(T, still(boxes))
    for _ in range(10):
        state = engine.step(state, hold(engine, T, 32))
    # Symplectic Euler: v_n = -g n dt, y_n = y_0 - g dt^2 n (n + 1) / 2.
    n = 320
    fall = torch.full((2,), -GRAVITY * DT**2 * n * (n + 1) / 2)
    rows = engine.rows(state)
    torch.testing.assert_close(rows[:, 1] - T[:, 1, 3].float(), fall, atol=2e-4, rtol=0)
    torch.testing.assert_close(rows[:, 8], torch.full((2,), -GRAVITY * DT * n), atol=1e-3, rtol=0)


def test_joints_neither_make_nor_eat_momentum(fox):
    engine = engine_of(fox, ground=False, gravity=False)
    generator = torch.Generator().manual_seed(3)
    T = places(fox)
    spin = torch.tensor([0.5, 0.2, -0.3], dtype=torch.float64)
    com = T[:, :3, 3] + (T[:, :3, :3] @ fox.com[..., None])[..., 0]
    twists = torch.cat([torch.linalg.cross(spin.expand_as(com), com), spin.expand_as(com)], 1)
    state = engine.start(T, twists)
    before = momentum(fox, engine.rows(state))
    targets = hold(engine, T, 32)
    targets[:, 7:] += 0.3 * torch.randn(engine.dofs - 7, generator=generator)
    for _ in range(10):
        state = engine.step(state, targets)
    after = momentum(fox, engine.rows(state))
    assert not torch.allclose(engine.rows(state)[:, 3:7], matrix_to_quaternion(T[:, :3, :3]).float(), atol=0.02)
    torch.testing.assert_close(after, before, atol=5e-3 * float(before.abs().max()), rtol=0)


def momentum(bodies, rows):
    """Linear, and angular about the origin."""
    rows = rows.double()
    R = quaternion_to_matrix(rows[:, 3:7])
    com = rows[:, :3] + (R @ bodies.com[..., None])[..., 0]
    linear = bodies.mass[:, None] * rows[:, 7:10]
    own = (R @ bodies.inertia @ R.mT @ rows[:, 10:, None])[..., 0]
    return torch.cat([linear.sum(0), (own + torch.linalg.cross(com, linear)).sum(0)])


def test_a_sliding_body_comes_to_rest_where_friction_says_and_then_does_not_creep(boxes):
    gains = choose_gains(boxes, DT)
    gains = replace(gains, friction=0.5)
    engine = engine_of(boxes, gains)
    T, twists = places(boxes), still(boxes)
    state = engine.start(T, twists)
    for _ in range(20):
        state = engine.step(state, hold(engine, T, 48))
    start = engine.rows(state)[0, 0].item()
    push = state.clone()
    engine.rows(push)[:, 7] = 1.0  # sideways: it does not tip over its length
    state = push
    for _ in range(40):
        state = engine.step(state, hold(engine, T, 48))
    # v^2 / (2 mu g) = 0.102 m.
    stopped = engine.rows(state)[0, 0].item()
    assert math.isclose(stopped - start, 1 / (2 * 0.5 * GRAVITY), rel_tol=0.04)
    for _ in range(40):
        state = engine.step(state, hold(engine, T, 48))
    assert abs(engine.rows(state)[0, 0].item() - stopped) < 1e-4
    assert float(engine.rows(state)[:, 7:10].norm(dim=1).max()) < 1e-3


def test_the_ground_carries_exactly_the_weight(boxes):
    engine = engine_of(boxes)
    T = places(boxes)
    state = engine.start(T, still(boxes))
    for _ in range(60):
        state = engine.step(state, hold(engine, T, 48))
    rows = engine.rows(state).double()
    R = quaternion_to_matrix(rows[:, 3:7])
    height = (rows[:, None, :3] + boxes.contacts @ R.mT)[..., 1]
    depth = (engine.gains.ground_margin - height).clamp(min=0)
    push = engine.gains.ground_ke[:, None] / boxes.crowds * depth**2 / (depth + engine.gains.ground_soft)
    assert math.isclose(float(push.sum()), boxes.total_mass * GRAVITY, rel_tol=0.01)


# The engine against others.


def test_the_joints_act_as_newtons_own_do(boxes):
    import newton
    import warp as wp

    gains = choose_gains(boxes, DT)
    gains = replace(gains, attach_ke=torch.full((2,), 1e4), attach_kd=torch.full((2,), 1e2))
    engine = engine_of(boxes, gains, ground=False)
    generator = torch.Generator().manual_seed(1)
    T = places(boxes)
    T[1] = T[1] @ transform(
        quaternion_to_matrix(rotvec_to_quaternion(torch.tensor([0.3, -0.4, 0.2], dtype=torch.float64))),
        torch.tensor([0.002, 0.001, -0.001], dtype=torch.float64),
    )
    twists = torch.randn(2, 6, generator=generator, dtype=torch.float64)
    controls = hold(engine, T, 1)
    controls[:, 7:] = torch.tensor([0.1, 0.2, -0.3])
    ours = engine.rows(engine.step(engine.start(T, twists), controls))

    builder = newton.ModelBuilder(up_axis=newton.Axis.Y, gravity=(0.0, -GRAVITY, 0.0))
    builder.validate_inertia_detailed = True
    links = [
        builder.add_link(
            mass=float(boxes.mass[i]),
            com=wp.vec3(*boxes.com[i].tolist()),
            inertia=wp.mat33(*boxes.inertia[i].flatten().tolist()),
        )
        for i in range(2)
    ]
    axes = [
        newton.ModelBuilder.JointDofConfig(
            axis=axis,
            target_ke=float(gains.target_ke[1, k]),
            target_kd=float(gains.target_kd[1, k]),
            limit_lower=-10.0,
            limit_upper=10.0,
        )
        for k, axis in enumerate((newton.Axis.X, newton.Axis.Y, newton.Axis.Z))
    ]
    free = builder.add_joint_free(child=links[0])
    turn = matrix_to_quaternion(boxes.T_parent_body[1, :3, :3] @ boxes.axes[1])
    own = matrix_to_quaternion(boxes.axes[1])
    joint = builder.add_joint_d6(
        parent=links[0],
        child=links[1],
        angular_axes=axes,
        parent_xform=wp.transform(boxes.T_parent_body[1, :3, 3].tolist(), turn[[1, 2, 3, 0]].tolist()),
        child_xform=wp.transform((0.0, 0.0, 0.0), own[[1, 2, 3, 0]].tolist()),
    )
    builder.add_articulation([free, joint])
    model = builder.finalize(device="cpu")
    solver = newton.solvers.SolverSemiImplicit(model, angular_damping=0.0, joint_attach_ke=1e4, joint_attach_kd=1e2)
    now, then, control = model.state(), model.state(), model.control()
    rows = engine.rows(engine.start(T, twists))
    now.body_q.assign(rows[:, [0, 1, 2, 4, 5, 6, 3]].numpy())
    now.body_qd.assign(rows[:, 7:].numpy())
    aims = control.joint_target_q.numpy()
    aims[7:] = controls[0, 7:].numpy()
    control.joint_target_q.assign(aims)
    solver.step(now, then, control, None, DT)
    theirs = torch.from_numpy(then.body_qd.numpy())
    torch.testing.assert_close(ours[:, 7:], theirs, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(ours[:, :3], torch.from_numpy(then.body_q.numpy()[:, :3]), atol=1e-6, rtol=0)


def test_mujoco_agrees_on_mass_inertia_and_kinematics(fox):
    from jigdoll.physics.engine_mujoco import MujocoEngine

    referee = MujocoEngine(fox, choose_gains(fox, DT))
    order = [referee.model.body(str(i)).id for i in range(len(fox))]
    assert math.isclose(float(referee.model.body_mass.sum()), fox.total_mass, rel_tol=1e-9)
    principal = torch.linalg.eigvalsh(fox.inertia).flip(-1)
    torch.testing.assert_close(torch.from_numpy(referee.model.body_inertia[order]), principal, atol=1e-9, rtol=1e-6)

    asset = zoo.make("fox")
    generator = torch.Generator().manual_seed(5)
    from jigdoll.kinematics import forward
    from jigdoll.math.rotations import compound_to_quaternion
    from jigdoll.types import Pose

    angles = 0.5 * torch.randn(len(asset.skeleton), 3, generator=generator)
    angles[[j for j in range(len(asset.skeleton)) if j not in fox.joints]] = 0
    angles[0] = 0
    pose = Pose(torch.zeros(3), compound_to_quaternion(angles, asset.skeleton.axes))
    ours = forward(asset.skeleton, pose)[list(fox.joints), :3, 3].double()
    root = torch.cat([fox.T_parent_body[0, :3, 3], matrix_to_quaternion(fox.T_parent_body[0, :3, :3])])
    theirs = referee.pose(root, angles[list(fox.joints)].double())
    torch.testing.assert_close(theirs, ours, atol=1e-5, rtol=0)


def test_a_tumbling_limp_fox_falls_as_in_mujoco(fox):
    from jigdoll.physics.engine_mujoco import MujocoEngine

    gains = limp(choose_gains(fox, DT / 2))
    T = places(fox)
    spin = torch.tensor([1.0, 0.5, -0.7], dtype=torch.float64)
    com = T[:, :3, 3] + (T[:, :3, :3] @ fox.com[..., None])[..., 0]
    middle = (fox.mass[:, None] * com).sum(0) / fox.total_mass
    twists = torch.cat([torch.linalg.cross(spin.expand_as(com), com - middle), spin.expand_as(com)], 1)
    ends = []
    for engine in (engine_of(fox, gains, ground=False), MujocoEngine(fox, gains, ground=False, drives=False)):
        state = engine.start(T, twists)
        for _ in range(10):
            state = engine.step(state, hold(engine, T, 48))
        ends.append(engine.rows(state).double())
    moved = (ends[1][:, :3] - T[:, :3, 3]).norm(dim=1)
    assert float(moved.min()) > 0.02  # 0.1 s of falling alone are 49 mm
    assert float((ends[0][:, :3] - ends[1][:, :3]).norm(dim=1).max()) < 2e-3


def test_a_held_fox_that_drops_stands_as_high_as_in_mujoco(fox):
    from jigdoll.physics.engine_mujoco import MujocoEngine

    gains = choose_gains(fox, DT)
    T = places(fox)
    T[:, 1, 3] += 0.05
    heights = []
    for engine in (engine_of(fox, gains), MujocoEngine(fox, gains)):
        state = engine.start(T, still(fox))
        for _ in range(40):
            state = engine.step(state, hold(engine, T, 48))
        heights.append(float(engine.rows(state)[0, 1]))
    assert abs(heights[0] - heights[1]) < 0.03 * fox.leg_length
    assert heights[0] > 0.85 * float(fox.T_parent_body[0, 1, 3])


# Gradients.


def gradient_check(engine, state, controls, substeps, *, h, directions=6):
    """Analytic against central differences along random directions of the target angles (fourth order)."""
    generator = torch.Generator().manual_seed(0)
    pull = torch.randn(len(engine.bodies), 3, generator=generator)

    def rollout(offsets):
        now = state
        for piece in offsets:
            rows = torch.cat([controls[:substeps, :7], controls[:substeps, 7:] + piece], 1)
            now = engine.step(now, rows)
        return (engine.rows(now)[:, :3].double() * pull).sum()

    def build(pieces):
        offsets = (0.01 * torch.randn(pieces, engine.dofs - 7, generator=generator)).requires_grad_()
        rollout(offsets).backward()
        assert offsets.grad is not None
        found, wanted = [], []
        for _ in range(directions):
            way = torch.randn(offsets.shape, generator=generator)
            way = way / way.norm()
            with torch.no_grad():
                near = float(rollout(offsets + h * way) - rollout(offsets - h * way))
                far = float(rollout(offsets + 2 * h * way) - rollout(offsets - 2 * h * way))
            wanted.append((8 * near - far) / (12 * h))
            found.append(float((offsets.grad * way).sum()))
        found, wanted = torch.tensor(found), torch.tensor(wanted)
        return float((found - wanted).norm() / wanted.norm()), float(torch.cosine_similarity(found, wanted, 0))

    return build


def test_gradients_in_the_air_are_those_of_finite_differences(fox):
    engine = engine_of(fox, ground=False)
    T = places(fox)
    error, cosine = gradient_check(engine, engine.start(T, still(fox)), hold(engine, T, 30), 30, h=0.1)(10)
    assert error < 1e-3 and cosine > 0.99999


def test_gradients_on_the_ground_are_those_of_finite_differences(fox):
    engine = engine_of(fox)
    T = places(fox)
    state = engine.start(T, still(fox))
    for _ in range(60):
        state = engine.step(state, hold(engine, T, 30))
    error, cosine = gradient_check(engine, state, hold(engine, T, 30), 30, h=0.003)(10)
    assert error < 0.02 and cosine > 0.999


def test_what_leaves_a_chunk_backwards_is_no_longer_than_allowed(boxes):
    engine = engine_of(boxes)
    T = places(boxes)
    state = engine.start(T, still(boxes)).requires_grad_()
    controls = hold(engine, T, 16).requires_grad_()
    (1e6 * engine.step(state, controls)).sum().backward()
    free = state.grad.clone()
    state.grad = None
    engine.clip = 2.0
    (1e6 * engine.step(state, controls)).sum().backward()
    assert float(free.norm()) > 1e6
    torch.testing.assert_close(state.grad, 2 * free / free.norm(), atol=1e-5, rtol=1e-3)


def test_a_captured_chunk_does_what_single_steps_do(fox):
    engine = engine_of(fox)
    T = places(fox)
    state, controls = engine.start(T, still(fox)), hold(engine, T, 12)
    controls[:, 7:] += 0.1
    whole, single = engine.step(state, controls), state
    for row in controls:
        single = engine.step(single, row[None])
    assert torch.equal(whole, single)


def test_rest_transforms_of_the_bodies_are_those_of_the_skeleton(fox):
    wanted = rest_transforms(zoo.make("fox").skeleton)[list(fox.joints)].double()
    torch.testing.assert_close(places(fox), wanted, atol=1e-6, rtol=0)
