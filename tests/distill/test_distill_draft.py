"""Distillation from a draft: a smooth residual around a motion that is there already."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from test_distill_loop import OraclePrior, PlainPrior
from torch import Tensor

from jigdoll import zoo
from jigdoll.distill import losses
from jigdoll.distill.config import DRAFT_WEIGHTS
from jigdoll.distill.loop import advance, begin, distill, evaluate
from jigdoll.distill.options import AnimateOptions, CameraOptions, CurveOptions, GuidanceOptions, LossWeights
from jigdoll.distill.scene import Scene, make_scene, sample_camera, windows
from jigdoll.distill.trajectory import curve_values, pose_of, to_motion
from jigdoll.errors import JigdollError
from jigdoll.kinematics import forward
from jigdoll.math.rotations import compound_to_quaternion, quaternion_multiply, quaternion_to_rotvec
from jigdoll.motion import close_loop, slice_motion
from jigdoll.rig.anatomy import Anatomy, anatomy_of
from jigdoll.rig.limits import compound_angles
from jigdoll.types import Motion, Pose
from jigdoll.zoo.gaits import reference_clip

FEW = AnimateOptions(iterations=3, refine_steps=2, cameras=CameraOptions(views=1, splats=150))
GAITS = ("support", "swing_height", "alternation", "symmetry", "jerk", "momentum", "leg_length", "root")


@pytest.fixture(scope="module")
def anatomy() -> Anatomy:
    return anatomy_of(zoo.make("dog"))


@pytest.fixture(scope="module")
def draft(anatomy: Anatomy) -> Motion:
    clip = reference_clip(anatomy.asset, "walk", seconds=1.5, fps=24.0)
    return replace(
        clip.motion, pose=Pose(clip.motion.pose.root.float(), clip.motion.pose.rotations.float()), name="draft"
    )


@pytest.fixture(scope="module")
def scene(anatomy: Anatomy, draft: Motion) -> Scene:
    return make_scene(anatomy, "whatever", PlainPrior(), FEW, draft=draft)


def some_theta(scene: Scene, size: float) -> Tensor:
    return size * torch.randn(scene.trajectory.shape, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("basis", ["dct", "spline", "fourier"])
def test_no_residual_is_the_draft_itself(anatomy: Anatomy, draft: Motion, basis) -> None:
    options = replace(FEW, curves=CurveOptions(basis=basis))
    trajectory = make_scene(anatomy, "whatever", PlainPrior(), options, draft=draft).trajectory
    assert trajectory.fps == 12.0 and trajectory.frames == 19, "the prior sees it at its own rate"
    same = to_motion(trajectory, torch.zeros(trajectory.shape))
    assert same.fps == 24.0 and torch.equal(same.pose.rotations, draft.pose.rotations)
    assert torch.equal(same.pose.root, draft.pose.root)
    seen = pose_of(trajectory, curve_values(trajectory, torch.zeros(trajectory.shape)))
    assert torch.equal(seen.rotations, draft.pose.rotations[::2]) and torch.equal(seen.root, draft.pose.root[::2])


def test_rotations_are_composed_and_the_root_is_added(scene: Scene) -> None:
    values = curve_values(scene.trajectory, some_theta(scene, 1.0))
    pose = pose_of(scene.trajectory, values)
    turned = compound_to_quaternion(values.turns, scene.trajectory.skeleton.axes)
    torch.testing.assert_close(pose.rotations, quaternion_multiply(values.start.rotations, turned))
    torch.testing.assert_close(pose.root, values.start.root + values.shift)
    assert float(values.turns[:, 1:].abs().max()) <= scene.plan.curves.bend_bound + 1e-6
    locked = scene.trajectory.bounds[..., 0] == scene.trajectory.bounds[..., 1]
    assert bool(locked.any()) and bool((values.turns[:, locked] == 0).all())


def test_the_draft_itself_pays_nothing_but_for_the_ground(scene: Scene) -> None:
    terms = evaluate(scene, torch.zeros(scene.trajectory.shape), 10**6, torch.Generator()).losses
    assert set(terms) == set(DRAFT_WEIGHTS)
    assert {name for name, value in terms.items() if float(value) > 1e-4} <= {"ground"}
    away = evaluate(scene, some_theta(scene, 2.0), 10**6, torch.Generator()).losses
    assert all(float(away[name]) > 1e-3 for name in ("contact", "near", "limits", "collision", "ground"))


def test_with_a_draft_no_word_and_no_gait_decides(anatomy: Anatomy, draft: Motion, scene: Scene) -> None:
    run = make_scene(anatomy, "a dog runs quickly", PlainPrior(), FEW, draft=draft)
    assert run.plan == scene.plan
    assert all(scene.plan.losses[name] == 0 for name in GAITS)
    assert all(scene.plan.losses[name] == weight for name, weight in DRAFT_WEIGHTS.items())
    rest = make_scene(anatomy, "a dog walks", PlainPrior(), AnimateOptions(cameras=FEW.cameras)).plan
    plan = make_scene(anatomy, "a dog walks", PlainPrior(), AnimateOptions(cameras=FEW.cameras), draft=draft).plan
    assert plan.iterations < rest.iterations and plan.guidance.level_high < rest.guidance.level_high
    assert plan.guidance.level_low == rest.guidance.level_low and plan.curves.start_noise == 0


def test_feet_that_stand_in_the_draft_owe_it_and_swinging_ones_do_not(anatomy: Anatomy, scene: Scene) -> None:
    clip = reference_clip(anatomy.asset, "walk", seconds=1.5, fps=24.0)
    assert scene.draft is not None
    for foot, hip in enumerate(scene.body.hips):
        leg = next(leg.parts.limb for leg in anatomy.legs if leg.parts.root == hip)
        stance = torch.as_tensor(clip.stance)[::2, clip.legs.index(f"{leg.side}_{leg.rank}")]
        assert float((scene.draft.stands[:, foot].bool() == stance).float().mean()) > 0.7
    values = curve_values(scene.trajectory, torch.zeros(scene.trajectory.shape))
    pose = pose_of(scene.trajectory, values)
    T = forward(scene.trajectory.skeleton, pose)
    for stands, pays in ((1.0, True), (0.0, False)):
        feet = replace(scene.draft, stands=torch.full_like(scene.draft.stands, stands))
        slide = T.clone()
        slide[:, :, 0, 3] += 0.1 * scene.trajectory.times()[:, None]
        # Sliding aside at 0.1 m/s: u = (0.1 / pace)^2 in every foot and step.
        u = (0.1 / scene.body.pace) ** 2
        loss = losses.contact(scene.body, losses.PosedClip(values, pose, slide, scene.trajectory.fps, feet))
        torch.testing.assert_close(loss, torch.tensor(u / (1 + u) if pays else 0.0), rtol=1e-3, atol=1e-7)


def test_a_joint_beyond_its_limit_pays_the_square_of_the_angle(scene: Scene) -> None:
    values = curve_values(scene.trajectory, torch.zeros(scene.trajectory.shape))
    skeleton = scene.trajectory.skeleton
    joint = skeleton.names.index("left_hind_knee")
    turns = values.turns.clone()
    start = compound_angles(skeleton, values.start)[:, joint, 0]
    turns[:, joint, 0] = skeleton.limits[joint, 0, 1] - start + 0.1
    # The joint is a hinge: about its bend alone the angles add up.
    start_pose = replace(values.start, rotations=values.start.rotations.clone())
    start_pose.rotations[:, joint] = compound_to_quaternion(
        torch.stack([start, 0 * start, 0 * start], -1), skeleton.axes[joint]
    )
    hinged = replace(values, turns=turns, start=start_pose)
    pose = pose_of(scene.trajectory, hinged)
    clip = losses.PosedClip(hinged, pose, forward(skeleton, pose), scene.trajectory.fps)
    torch.testing.assert_close(losses.limits(scene.body, clip), torch.tensor(0.01), rtol=0.02, atol=0)


def test_it_starts_at_the_draft_and_the_hold_weakens_with_the_noise(scene: Scene) -> None:
    state = begin(scene, 0)
    assert torch.equal(state.theta, torch.zeros(scene.trajectory.shape))
    moved, _, _ = advance(scene, state)
    assert float(moved.theta.abs().max()) > 0
    long = replace(scene, plan=replace(scene.plan, iterations=100))
    theta = some_theta(scene, 0.5)
    first, last = (float(evaluate(long, theta, step, torch.Generator()).losses["near"]) for step in (0, 99))
    guidance = long.plan.guidance
    assert last / first == pytest.approx(guidance.level_high_end / guidance.level_high, rel=1e-3)


def test_long_drafts_are_shown_window_after_window(anatomy: Anatomy) -> None:
    assert windows(6, 6) == [0] and windows(7, 6) == [0, 1] and windows(20, 6) == [0, 3, 6, 8, 11, 14]
    for frames in range(6, 60):
        starts = windows(frames, 6)
        assert starts[0] == 0 and starts[-1] == frames - 6
        assert all(0 < b - a <= 3 for a, b in pairwise(starts))
    clip = reference_clip(anatomy.asset, "walk", seconds=4.0, fps=24.0).motion
    scene = make_scene(anatomy, "whatever", PlainPrior(), FEW, draft=clip)
    generator, starts = torch.Generator().manual_seed(0), windows(scene.trajectory.frames, 6)
    shown = [sample_camera(scene, generator, step).first for step in range(2 * len(starts))]
    assert shown == starts + starts and len(distill(scene).motion) == len(clip)


def test_a_draft_shorter_than_the_window_stands_at_its_end(anatomy: Anatomy, draft: Motion) -> None:
    short = slice_motion(draft, slice(0, 7))
    scene = make_scene(anatomy, "whatever", PlainPrior(), FEW, draft=short)
    seen = curve_values(scene.trajectory, torch.zeros(scene.trajectory.shape)).start
    assert scene.trajectory.frames == 6 and torch.equal(seen.rotations[4], short.pose.rotations[6])
    assert torch.equal(seen.root[5], short.pose.root[6]) and len(distill(scene).motion) == 7


def test_the_residual_of_a_loop_closes_in_pose_and_in_speed(anatomy: Anatomy) -> None:
    period = reference_clip(anatomy.asset, "walk", seconds=1.0, fps=24.0).period
    clip = reference_clip(anatomy.asset, "walk", seconds=period, fps=24.0).motion
    closed = close_loop(clip, anatomy.skeleton)
    scene = make_scene(anatomy, "whatever", PlainPrior(), replace(FEW, loop=True), draft=closed)
    assert scene.plan.losses["loop"] == 0, "it closes by construction"
    t = torch.tensor([0.0, 1e-3, closed.seconds, closed.seconds + 1e-3])
    turns = curve_values(scene.trajectory, some_theta(scene, 1.0), at=t).turns
    torch.testing.assert_close(turns[2], turns[0], rtol=0, atol=1e-4)
    torch.testing.assert_close(turns[3] - turns[2], turns[1] - turns[0], rtol=0, atol=1e-4)
    # A window that is longer than a round sees the next one: the body walks on.
    travel = closed.pose.root[-1, 2] - closed.pose.root[0, 2]
    seen = curve_values(scene.trajectory, torch.zeros(scene.trajectory.shape)).start.root[:, 2]
    expected = travel * (scene.trajectory.frames - 1) / scene.trajectory.fps / closed.seconds
    torch.testing.assert_close(seen[-1] - seen[0], expected, rtol=0.15, atol=0.02)
    assert len(distill(scene).motion) == len(closed)


def test_a_pose_models_score_pulls_the_motion(anatomy: Anatomy, draft: Motion) -> None:
    joint = anatomy.skeleton.names.index("neck_1")

    def score(pose: Pose) -> Tensor:
        """How far a neck is from rest: say that this is natural."""
        return quaternion_to_rotvec(pose.rotations[:, joint]).square().sum(-1)

    bent = draft.pose.rotations.clone()
    bent[:, joint] = torch.tensor([math.cos(0.2), math.sin(0.2), 0.0, 0.0])
    nodding = replace(draft, pose=replace(draft.pose, rotations=bent))
    off = {name: 0.0 for name in DRAFT_WEIGHTS if name != "naturalness"}
    options = replace(FEW, iterations=0, refine_steps=40, rate=0.1, losses=LossWeights(**off, naturalness=1.0))
    scene = make_scene(anatomy, "whatever", PlainPrior(), options, draft=nodding, naturalness=score)
    after = distill(scene).motion.pose
    assert float(score(after).mean()) < 0.5 * float(score(nodding.pose).mean()) < 0.1
    others = [i for i in range(len(anatomy.skeleton)) if i != joint]
    assert torch.equal(after.rotations[:, others], bent[:, others])


def test_a_prior_that_knows_the_walk_mends_a_spoiled_draft(anatomy: Anatomy, monkeypatch) -> None:
    dog = anatomy.asset
    clip = reference_clip(dog, "walk", seconds=23 / 12, fps=12.0)
    hip = dog.skeleton.names.index("left_hind_hip")
    truth, turn = clip.motion.pose.rotations.float(), torch.zeros(len(clip.motion), 3)
    turn[:, 0] = 0.3
    spoiled = truth.clone()
    spoiled[:, hip] = quaternion_multiply(truth[:, hip], compound_to_quaternion(turn, dog.skeleton.axes[hip]))
    draft = replace(clip.motion, pose=Pose(clip.motion.pose.root.float(), spoiled))
    options = AnimateOptions(
        iterations=30,
        refine_steps=0,
        rate=0.05,
        guidance=GuidanceOptions(form="csd", scale=8.0),
        cameras=CameraOptions(views=1, splats=400),
        losses=LossWeights(near=1.0),
    )
    scene = make_scene(anatomy, "a dog walks", OraclePrior(dog, clip, monkeypatch), options, draft=draft)
    after = distill(scene).motion.pose.rotations

    def wrong(rotations: Tensor) -> float:
        inverse = truth[:, hip] * torch.tensor([1.0, -1, -1, -1])
        return float(quaternion_to_rotvec(quaternion_multiply(inverse, rotations[:, hip])).norm(dim=-1).mean())

    assert wrong(spoiled) == pytest.approx(0.3, abs=1e-3) and wrong(after) < 0.15


def test_a_run_from_another_draft_is_another_run(anatomy: Anatomy, draft: Motion, scene: Scene, tmp_path) -> None:
    path = tmp_path / "checkpoint.npz"
    first = distill(scene, checkpoint=path)
    assert torch.equal(distill(scene, checkpoint=path).theta, first.theta)
    other = replace(draft, pose=replace(draft.pose, root=draft.pose.root + 0.1))
    with pytest.raises(JigdollError, match="another distillation"):
        distill(make_scene(anatomy, "whatever", PlainPrior(), FEW, draft=other), checkpoint=path)


def test_a_draft_of_another_body_is_refused(anatomy: Anatomy, draft: Motion) -> None:
    wrong = replace(draft, pose=replace(draft.pose, rotations=draft.pose.rotations[:, :-1]))
    with pytest.raises(JigdollError, match="no motion of dog"):
        make_scene(anatomy, "whatever", PlainPrior(), FEW, draft=wrong)
