"""What a motion owes to the body and to the ground."""

from dataclasses import fields, replace

import pytest
import torch

from jigdoll import zoo
from jigdoll.distill import losses
from jigdoll.distill.body import Body, body_of
from jigdoll.distill.losses import PosedClip
from jigdoll.distill.options import PAPER, LossWeights
from jigdoll.distill.trajectory import CurveValues, Trajectory, curve_values, make_trajectory, pose_of
from jigdoll.kinematics import forward, rest_transforms
from jigdoll.language import read
from jigdoll.math.transforms import apply, rigid_inverse
from jigdoll.rig.anatomy import Anatomy, anatomy_of
from jigdoll.rig.limits import compound_angles
from jigdoll.types import RiggedAsset
from jigdoll.zoo.gaits import reference_clip
from jigdoll.zoo.gaits.pace import pace_of

FPS = 24.0


@pytest.fixture(scope="module")
def dog() -> RiggedAsset:
    return zoo.make("dog")


@pytest.fixture(scope="module")
def anatomy(dog: RiggedAsset) -> Anatomy:
    return anatomy_of(dog)


@pytest.fixture(scope="module")
def trajectory(dog: RiggedAsset, anatomy: Anatomy) -> Trajectory:
    speed = reference_clip(dog, "walk", seconds=1.0, fps=FPS).speed
    options = {"stiffness": 1.0, "limited": False, "speed": speed}
    return make_trajectory(anatomy, frames=25, fps=FPS, basis="frames", **options)


@pytest.fixture(scope="module")
def body(anatomy: Anatomy, trajectory: Trajectory) -> Body:
    pace = replace(pace_of(read("a dog walks"), anatomy.skeleton), speed=trajectory.speed)
    return body_of(anatomy, trajectory.skeleton, pace)


def posed(trajectory: Trajectory, values: CurveValues) -> PosedClip:
    pose = pose_of(trajectory, values)
    return PosedClip(values, pose, forward(trajectory.skeleton, pose), trajectory.fps)


@pytest.fixture(scope="module")
def glide(trajectory: Trajectory) -> PosedClip:
    return posed(trajectory, curve_values(trajectory, torch.zeros(trajectory.shape)))


@pytest.fixture(scope="module")
def walk(dog: RiggedAsset, trajectory: Trajectory) -> PosedClip:
    motion = reference_clip(dog, "walk", seconds=1.0, fps=FPS).motion
    turns = compound_angles(trajectory.skeleton, motion.pose).float()
    start = curve_values(trajectory, torch.zeros(trajectory.shape))
    return posed(trajectory, replace(start, turns=turns, shift=motion.pose.root.float() - start.start.root))


def shifted(trajectory: Trajectory, glide: PosedClip, move: tuple[float, float, float]) -> PosedClip:
    return posed(trajectory, replace(glide.values, shift=glide.values.shift + torch.tensor(move)))


def test_the_papers_weights_are_the_papers() -> None:
    # AKD, appendix D: lambda_1 = 2e5 (smoothness), lambda_2 = 1e7 (ground); Eq. 8 has no other term.
    assert PAPER.smooth == 2e5 and PAPER.ground == 1e7
    assert all(getattr(PAPER, f.name) == 0 for f in fields(LossWeights) if f.name not in ("smooth", "ground"))


def test_smoothness_is_the_mean_absolute_second_difference(body: Body, glide: PosedClip) -> None:
    t = torch.arange(25.0)
    angles = torch.zeros_like(glide.values.turns)
    angles[:, 5, 1] = 0.01 * t**2
    values = replace(glide.values, turns=angles)
    # (i-1)^2 - 2 i^2 + (i+1)^2 = 2 in one of 3 J + 3 columns.
    loss = losses.smooth(body, replace(glide, values=values))
    torch.testing.assert_close(loss, torch.tensor(0.02 / (angles[0].numel() + 3)), rtol=1e-4, atol=1e-8)


def test_a_straight_glide_is_smooth(body: Body, glide: PosedClip) -> None:
    assert float(losses.smooth(body, glide)) < 1e-7


def test_the_ground_loss_is_the_mean_depth_of_the_cuboids_corners(
    trajectory: Trajectory, body: Body, glide: PosedClip
) -> None:
    assert float(losses.ground(body, glide)) < 1e-6, "at rest the character stands on the ground, not in it"
    # Sunk so deep that every corner is below: the loss is minus their mean height.
    deep = shifted(trajectory, glide, (0.0, -10.0, 0.0))
    T = glide.T_world_joint[0, body.cuboid_joints]
    corners = (T[:, None, :3, :3] @ body.cuboids[..., None])[..., 0] + T[:, None, :3, 3]
    torch.testing.assert_close(losses.ground(body, deep), 10 - corners[..., 1].mean(), rtol=1e-5, atol=1e-5)


def test_the_cuboids_hold_the_skin_of_their_bones_and_are_no_larger(dog: RiggedAsset, body: Body) -> None:
    inverse = rigid_inverse(rest_transforms(body.skeleton))
    owner = dog.weights.joints.gather(1, dog.weights.values.argmax(1, keepdim=True))[:, 0]
    for joint, corners in zip(body.cuboid_joints, body.cuboids, strict=True):
        skin = apply(inverse[joint], dog.mesh.vertices[owner == joint])
        low, high = corners.amin(0), corners.amax(0)
        # 2 % (and the vertex at the quantile) are left out at each of the six sides; below the ground it is cut off.
        inside = ((skin >= low - 1e-6) & (skin <= high + 1e-6)).all(-1)
        assert int((~inside).sum()) <= 6 * (0.02 * len(skin) + 1), body.skeleton.names[joint]
        assert bool((low >= skin.amin(0) - 1e-6).all() and (high <= skin.amax(0) + 1e-6).all())


def test_a_gliding_foot_pays_for_its_whole_speed(body: Body, glide: PosedClip) -> None:
    # At rest both feet of a pair are equally low, so each stands by half; it moves with the speed of travel, u = 1.
    torch.testing.assert_close(losses.contact(body, glide), torch.tensor(0.25), rtol=1e-3, atol=1e-4)


def test_a_true_walk_pays_little_for_contact_and_support(body: Body, glide: PosedClip, walk: PosedClip) -> None:
    assert float(losses.contact(body, walk)) < 0.2 * float(losses.contact(body, glide))
    assert float(losses.support(body, walk)) < 0.002
    assert float(losses.contact(replace(body, flight=True), walk)) <= float(losses.contact(body, walk))


def test_walking_backwards_on_a_body_that_goes_ahead_costs_more_than_gliding(
    trajectory: Trajectory, body: Body, glide: PosedClip, walk: PosedClip
) -> None:
    reversed_legs = posed(trajectory, replace(walk.values, turns=walk.values.turns.flip(0)))
    assert float(losses.contact(body, reversed_legs)) > 1.2 * float(losses.contact(body, glide))


def test_each_side_does_what_the_other_does_half_a_stride_later(
    dog: RiggedAsset, trajectory: Trajectory, body: Body, walk: PosedClip
) -> None:
    period = reference_clip(dog, "walk", seconds=1.0, fps=FPS).period
    even = replace(body, phase_offset=0.5 * period)
    assert float(losses.symmetry(even, walk)) < 0.004
    # The same walk is far from legs that go together, and its mirror image is as even as itself.
    assert float(losses.symmetry(replace(body, phase_offset=0.0), walk)) > 10 * float(losses.symmetry(even, walk))
    mirrored = replace(even, lefts=even.rights, rights=even.lefts)
    assert float(losses.symmetry(mirrored, walk)) < 0.004
    assert float(losses.symmetry(replace(body, phase_offset=None), walk)) == 0
    assert float(losses.symmetry(replace(body, phase_offset=10.0), walk)) == 0, (
        "the clip is too short for such an offset"
    )


def test_evenness_does_not_hang_on_the_way_a_body_faces(trajectory: Trajectory, body: Body, walk: PosedClip) -> None:
    angles = walk.values.turns.clone()
    angles[:, 0, 0] += 1.0
    turned = posed(trajectory, replace(walk.values, turns=angles, heading=walk.values.heading + 1.0))
    torch.testing.assert_close(losses.symmetry(body, turned), losses.symmetry(body, walk), rtol=1e-3, atol=1e-6)


def test_jerk_is_that_of_a_sine_in_radians_of_the_stride(trajectory: Trajectory, body: Body, glide: PosedClip) -> None:
    # x = A sin(2 pi t / T) has a mean squared jerk of A^2 / 2 per cubed radian, whatever T is.
    t = torch.arange(25.0) / FPS
    wave = 0.1 * body.leg_length * torch.sin(2 * torch.pi * t)
    bobbing = posed(trajectory, replace(glide.values, shift=glide.values.shift + wave[:, None] * torch.eye(3)[1]))
    slow = replace(body, period=1.0)
    torch.testing.assert_close(losses.jerk(slow, bobbing), torch.tensor(0.005), rtol=0.15, atol=0)
    assert float(losses.jerk(slow, glide)) < 1e-6


def test_a_body_may_turn_with_its_path(anatomy: Anatomy) -> None:
    pace = pace_of(read("a dog turns left"), anatomy.skeleton)
    trajectory = make_trajectory(anatomy, frames=25, fps=FPS, basis="frames", speed=pace.speed, turn=pace.turn)
    turning = posed(trajectory, curve_values(trajectory, torch.zeros(trajectory.shape)))
    body = body_of(anatomy, trajectory.skeleton, pace)
    assert float(losses.momentum(body, turning)) < 1e-6 and float(losses.root(body, turning)) < 1e-6
    # The same turn about itself on a straight path is a spin.
    assert (
        float(losses.momentum(body, replace(turning, values=replace(turning.values, heading=torch.zeros(25))))) > 1e-4
    )


def test_nobody_need_stand_while_the_path_flies(trajectory: Trajectory, body: Body, glide: PosedClip) -> None:
    high = shifted(trajectory, glide, (0.0, 0.3, 0.0))
    assert float(losses.support(body, high)) > 0.01
    start = high.values.start
    flying = replace(high.values, start=replace(start, root=start.root + torch.tensor([0.0, 0.3, 0.0])))
    assert float(losses.support(body, replace(high, values=flying))) == 0


def test_the_foot_that_stands_is_the_one_that_the_gait_says(dog: RiggedAsset, body: Body, walk: PosedClip) -> None:
    clip = reference_clip(dog, "walk", seconds=1.0, fps=FPS)
    weights = losses.stance_weights(body, walk)
    for foot, hip in enumerate(body.hips):
        leg = next(limb for limb in body.legs if limb.joints[0] == hip)
        stance = clip.stance[:, clip.legs.index(f"{leg.side}_{leg.rank}")]
        assert float(weights[~stance, foot].mean()) < float(weights[stance, foot].mean()) - 0.3


def test_support_is_the_squared_height_of_the_lower_foot(trajectory: Trajectory, body: Body, glide: PosedClip) -> None:
    assert float(losses.support(body, glide)) < 1e-9
    raised = shifted(trajectory, glide, (0.0, 0.3 * body.leg_length, 0.0))
    torch.testing.assert_close(losses.support(body, raised), torch.tensor(0.09), rtol=1e-4, atol=1e-6)


def test_a_standing_foot_goes_back_under_the_body_at_the_speed_of_travel(
    dog: RiggedAsset, body: Body, glide: PosedClip, walk: PosedClip
) -> None:
    assert float(losses.stride_speed(body, glide).abs().max()) < 1e-4
    clip = reference_clip(dog, "walk", seconds=1.0, fps=FPS)
    speed = losses.stride_speed(body, walk)
    for foot, hip in enumerate(body.hips):
        leg = next(limb for limb in body.legs if limb.joints[0] == hip)
        stance = clip.stance[:, clip.legs.index(f"{leg.side}_{leg.rank}")]
        inside = stance[:-2] & stance[1:-1] & stance[2:]
        middle = speed[1:-1, foot][inside]
        # The hip itself sways and bobs a little.
        torch.testing.assert_close(middle.median(), torch.tensor(-1.0), rtol=0, atol=0.15)
        assert float(speed[~stance, foot].mean()) > 0.5


def test_swing_height_and_alternation_know_a_walk(
    trajectory: Trajectory, body: Body, glide: PosedClip, walk: PosedClip
) -> None:
    assert float(losses.swing_height(body, glide)) < 1e-4 and float(losses.alternation(body, glide)) < 1e-6
    backwards = posed(trajectory, replace(walk.values, turns=walk.values.turns.flip(0)))
    assert float(losses.swing_height(body, backwards)) > 2 * float(losses.swing_height(body, walk))
    # The right leg made to do what the left one does: both swing at once.
    angles = walk.values.turns.clone()
    for leg in body.legs:
        if leg.side == "left":
            twin = next(other for other in body.legs if other.side == "right" and other.rank == leg.rank)
            angles[:, list(twin.joints), 0] = angles[:, list(leg.joints), 0]
    together = posed(trajectory, replace(walk.values, turns=angles))
    assert float(losses.alternation(body, walk)) < 0.1 * float(losses.alternation(body, together))


def test_a_spinning_body_has_the_angular_momentum_of_its_masses(
    trajectory: Trajectory, body: Body, glide: PosedClip
) -> None:
    assert float(losses.momentum(body, glide)) < 1e-9 and abs(float(body.masses.sum()) - 1) < 1e-5
    # Turn the rigid body about the vertical at w: H = w sum m r^2, r the distance from the axis through the centre.
    t, w = torch.arange(25) / FPS, 0.2
    angles = glide.values.turns.clone()
    angles[:, 0, 0] = w * t
    spun = losses.momentum(body, posed(trajectory, replace(glide.values, turns=angles)))
    points = glide.points[0]
    r = (points - (body.masses[:, None] * points).sum(0))[:, [0, 2]].norm(dim=-1)
    truth = (w * (body.masses * r.square()).sum() / (body.leg_length * body.pace)) ** 2
    torch.testing.assert_close(spun, truth, rtol=1e-3, atol=1e-9)


def test_legs_may_fold_a_little_and_not_away(
    trajectory: Trajectory, body: Body, glide: PosedClip, walk: PosedClip
) -> None:
    assert float(losses.leg_length(body, glide)) == 0 and float(losses.leg_length(body, walk)) < 1e-3
    angles = glide.values.turns.clone()
    knees = [leg.joints[1] for leg in body.legs]
    angles[:, knees, 0] = 1.8
    folded = posed(trajectory, replace(glide.values, turns=angles))
    assert float(losses.leg_length(body, folded)) > 0.005


def test_the_root_stays_near_its_path(trajectory: Trajectory, body: Body, glide: PosedClip) -> None:
    assert float(losses.root(body, glide)) == 0
    L = body.leg_length
    aside = losses.root(body, shifted(trajectory, glide, (0.2 * L, 0.0, 0.0)))
    torch.testing.assert_close(aside, torch.tensor(0.04), rtol=1e-4, atol=1e-6)
    inside = losses.root(body, shifted(trajectory, glide, (0.0, 0.9 * body.root_height * L, 0.3 * L)))
    assert float(inside) == 0


def test_near_is_the_sum_of_squared_turns_and_of_the_shift(body: Body, glide: PosedClip) -> None:
    angles = glide.values.turns.clone()
    angles[:, 4, 2] = 0.5
    shift = torch.tensor([0.0, 0.1 * body.leg_length, 0.0]).expand(25, 3)
    values = replace(glide.values, turns=angles, shift=shift)
    torch.testing.assert_close(losses.near(body, replace(glide, values=values)), torch.tensor(0.26))


def test_legs_that_cross_collide(trajectory: Trajectory, body: Body, glide: PosedClip, walk: PosedClip) -> None:
    assert len(body.pairs) and float(losses.collision(body, glide)) == 0
    assert float(losses.collision(body, walk)) < 1e-3
    angles = glide.values.turns.clone()
    for leg in body.legs:
        angles[:, leg.joints[0], 1] = 0.6 if leg.side == "left" else -0.6
    crossed = [
        float(losses.collision(body, posed(trajectory, replace(glide.values, turns=sign * angles)))) for sign in (1, -1)
    ]
    assert max(crossed) > 1e-3


def test_a_loop_pays_for_the_gap_between_its_ends(trajectory: Trajectory, body: Body, glide: PosedClip) -> None:
    assert float(losses.loop(body, glide)) < 1e-9
    angles = glide.values.turns.clone()
    angles[-1, 3, 0] += 0.2
    open_ended = replace(glide, values=replace(glide.values, turns=angles))
    # The gap itself, and the jump that makes the last step differ from the first.
    torch.testing.assert_close(losses.loop(body, open_ended), torch.tensor(2 * 0.04), rtol=1e-4, atol=1e-6)


def test_only_what_has_a_weight_is_paid_and_late_losses_wait_for_the_ramp(body: Body, walk: PosedClip) -> None:
    assert losses.losses(body, walk, {}) == {}
    weights = {"contact": 2.0, "near": 3.0}
    early, late = (losses.losses(body, walk, weights, ramp=ramp) for ramp in (0.0, 0.5))
    assert set(early) == {"near"} and set(late) == {"near", "contact"}
    torch.testing.assert_close(late["contact"], losses.contact(body, walk))
    torch.testing.assert_close(early["near"], 3 * losses.near(body, walk))
    held = losses.losses(body, walk, weights, hold=0.5)["near"]
    torch.testing.assert_close(held, 0.5 * early["near"])


def test_every_loss_has_a_finite_gradient_even_at_rest(trajectory: Trajectory, body: Body) -> None:
    theta = torch.zeros(trajectory.shape, requires_grad=True)
    everything = {f.name: 1.0 for f in fields(LossWeights)}
    terms = losses.losses(body, posed(trajectory, curve_values(trajectory, theta)), everything)
    assert set(terms) == {f.name for f in fields(LossWeights)}
    torch.stack(list(terms.values())).sum().backward()
    assert theta.grad is not None and bool(theta.grad.isfinite().all())


def test_a_body_without_legs_pays_nothing_for_feet() -> None:
    from jigdoll.kinematics import make_skeleton
    from jigdoll.types import Mesh, Weights

    T = torch.eye(4).repeat(3, 1, 1)
    T[:, 1, 3] = 0.5
    skeleton = make_skeleton(("root", "middle", "end"), (-1, 0, 1), T)
    vertices = torch.rand(30, 3, generator=torch.Generator().manual_seed(0))
    mesh = Mesh(vertices, torch.arange(30).reshape(10, 3), torch.ones(30, 3))
    worm = RiggedAsset("worm", mesh, skeleton, Weights(torch.arange(30)[:, None] % 3, torch.ones(30, 1)))
    trajectory = make_trajectory(anatomy_of(worm), frames=4, fps=8.0)
    body = body_of(anatomy_of(worm), trajectory.skeleton, pace_of(read("it waves"), skeleton))
    clip = posed(trajectory, curve_values(trajectory, torch.ones(trajectory.shape)))
    for loss in (losses.contact, losses.support, losses.swing_height, losses.leg_length):
        assert float(loss(body, clip)) == 0
