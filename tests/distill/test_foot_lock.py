"""Feet that stay where they stand."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from jigdoll import zoo
from jigdoll.distill.foot_lock import foot_lock, lay_toes, raised
from jigdoll.formats.rest import motion_asset
from jigdoll.judge import judge
from jigdoll.kinematics import motion_to_world, skin_transforms
from jigdoll.math.rotations import compound_to_quaternion, quaternion_multiply
from jigdoll.motion import close_loop
from jigdoll.rig.anatomy import Anatomy, anatomy_of
from jigdoll.rig.limits import compound_angles
from jigdoll.rig.retarget.decode import stances
from jigdoll.rig.retarget.feet import runs
from jigdoll.rig.retarget.limb_motion import encode
from jigdoll.rig.retarget.standing import feet_of
from jigdoll.skin.deform import deform
from jigdoll.types import Motion, Pose, RiggedAsset
from jigdoll.zoo.gaits import reference_clip


@pytest.fixture(scope="module")
def anatomy() -> Anatomy:
    return anatomy_of(zoo.make("dog"))


@pytest.fixture(scope="module")
def dog(anatomy: Anatomy) -> RiggedAsset:
    return anatomy.asset


def unsteady(asset: RiggedAsset, motion: Motion, size: float) -> Motion:
    """The motion with hips that sway slowly in a way of their own, so that standing feet slide."""
    t = torch.linspace(0, 1, len(motion))[:, None]
    angles = torch.zeros(len(motion), len(asset.skeleton), 3)
    hips = [i for i, name in enumerate(asset.skeleton.names) if name.endswith("hip")]
    phase = torch.rand(len(hips), generator=torch.Generator().manual_seed(0))
    angles[:, hips, 0] = size * torch.sin(2 * torch.pi * (2 * t + phase))
    sway = compound_to_quaternion(angles, asset.skeleton.axes)
    pose = motion.pose
    return replace(motion, pose=Pose(pose.root.float(), quaternion_multiply(pose.rotations.float(), sway)))


def worst_drift(anatomy: Anatomy, motion: Motion) -> float:
    """How far a standing foot ever is from the middle of its stance [leg lengths]."""
    stands = stances(encode(anatomy, motion, travel=False), anatomy)
    feet = feet_of(anatomy, motion_to_world(anatomy.skeleton, motion), motion.fps).joints.numpy()[..., [0, 2]]
    places = [feet[a:b, i] for i in range(len(anatomy.legs)) for a, b in runs(stands[:, i])]
    return max(float(np.linalg.norm(p - p.mean(0), axis=1).max()) for p in places) / anatomy.leg_length


def test_sliding_feet_are_held_and_little_else_changes(anatomy: Anatomy, dog: RiggedAsset) -> None:
    clip = reference_clip(dog, "walk", seconds=1.5, fps=24.0)
    loose = unsteady(dog, clip.motion, 0.08)
    firm = foot_lock(anatomy, loose)
    before, after, truth = (judge(dog, motion) for motion in (loose, firm, clip.motion))
    assert before.skate_ratio > 0.4 and after.skate_ratio < 0.05
    assert worst_drift(anatomy, loose) > 0.02 and worst_drift(anatomy, firm) < 0.01
    assert after.penetration < 0.001 and abs(after.duty - truth.duty) < 0.1
    for pair, wanted in zip(after.pairs, truth.pairs, strict=True):
        assert abs(pair.alternation - wanted.alternation) < 0.15
    moved = (compound_angles(dog.skeleton, firm.pose) - compound_angles(dog.skeleton, loose.pose))[:, 1:]
    assert float(moved.square().mean().sqrt()) < 0.08
    # Nothing pops: no joint is thrown harder than before, by more than a little.
    thrown = [np.abs(np.diff(motion_to_world(dog.skeleton, m)[..., :3, 3], n=2, axis=0)).max() for m in (loose, firm)]
    assert thrown[1] < 1.2 * thrown[0]


def test_toes_lie_still_while_they_stand(anatomy: Anatomy, dog: RiggedAsset) -> None:
    clip = reference_clip(dog, "walk", seconds=1.5, fps=24.0).motion
    angles = torch.zeros(len(clip), len(dog.skeleton), 3)
    toes = [leg.parts.after[0] for leg in anatomy.legs]
    angles[:, toes, 0] = 0.3 * torch.sin(torch.arange(len(clip)) / 3)[:, None]
    turned = quaternion_multiply(clip.pose.rotations.float(), compound_to_quaternion(angles, dog.skeleton.axes))
    loose = replace(clip, pose=Pose(clip.pose.root.float(), turned))
    stands = stances(encode(anatomy, loose, travel=False), anatomy)
    worlds = [motion_to_world(dog.skeleton, motion) for motion in (loose, foot_lock(anatomy, loose))]
    spans = [[world[a:b, toe, :3, :3] for i, toe in enumerate(toes) for a, b in runs(stands[:, i])] for world in worlds]
    before, after = (max(np.abs(turns - turns[0]).max() for turns in each) for each in spans)
    assert before > 0.2 and after < 1e-4
    laid = lay_toes(anatomy, worlds[0][..., :3, :3], stands)
    others = [j for j in range(len(dog.skeleton)) if not any(name in dog.skeleton.names[j] for name in ("toe", "tip"))]
    assert np.array_equal(laid[:, others], worlds[0][:, others, :3, :3]), "nothing else turns"


def test_a_loop_is_locked_as_it_plays(anatomy: Anatomy, dog: RiggedAsset) -> None:
    period = reference_clip(dog, "walk", seconds=1.0, fps=24.0).period
    clip = reference_clip(dog, "walk", seconds=2 * period, fps=24.0)
    loose = close_loop(unsteady(dog, clip.motion, 0.08), dog.skeleton)
    firm = foot_lock(anatomy, loose, loop=True)
    assert len(firm) == len(loose) and worst_drift(anatomy, firm) < 0.015
    world = motion_to_world(dog.skeleton, firm)[..., :3, 3]
    body = world - world[:, :1]
    size = anatomy.leg_length
    assert np.abs(body[-1] - body[0]).max() < 1e-3 * size, "it ends in the pose that it began with"
    seam = np.abs((body[-1] - body[-2]) - (body[1] - body[0])).max()
    assert seam < 1.5 * np.abs(np.diff(body, n=2, axis=0)).max(), "and as fast"


def test_a_body_in_the_air_is_left_alone(anatomy: Anatomy, dog: RiggedAsset) -> None:
    clip = reference_clip(dog, "walk", seconds=0.5, fps=12.0)
    fall = 3 * torch.linspace(0, 1, len(clip.motion))[:, None] * torch.tensor([1.0, 1.0, 0.0])
    pose = clip.motion.pose
    flying = replace(clip.motion, pose=Pose(pose.root.float() + 2 + fall, pose.rotations.float()))
    assert foot_lock(anatomy, flying) is flying


def test_a_body_that_stands_too_deep_is_raised_smoothly(dog: RiggedAsset) -> None:
    pose = reference_clip(dog, "walk", seconds=1.0, fps=24.0).motion.pose
    dip = torch.zeros(25)
    dip[10:13] = -0.05
    sunk = Pose(pose.root.float() + dip[:, None] * torch.tensor([0.0, 1.0, 0.0]), pose.rotations.float())
    high = raised(dog, sunk)
    skin = deform(dog.mesh.vertices, dog.weights, skin_transforms(dog.skeleton, high))
    assert float(skin[..., 1].min()) > -1e-5
    lift = (high.root - sunk.root)[:, 1]
    assert float(lift.max()) < 0.06 and float(lift[:3].max()) < 0.01, "only where it is needed, and as much"
    assert float(lift.diff().abs().max()) < 0.02
    assert torch.equal(high.root[:, [0, 2]], sunk.root[:, [0, 2]])


def test_feet_of_motion_without_a_body_are_held_too(dog: RiggedAsset) -> None:
    bare = anatomy_of(motion_asset("dog", dog.skeleton, {}))
    loose = unsteady(dog, reference_clip(dog, "walk", seconds=1.5, fps=24.0).motion, 0.08)
    assert worst_drift(bare, foot_lock(bare, loose)) < 0.5 * worst_drift(bare, loose)
