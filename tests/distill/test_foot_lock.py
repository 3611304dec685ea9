"""Feet that stay where they stand."""

from dataclasses import replace

import pytest
import torch

from jigdoll import zoo
from jigdoll.distill.foot_lock import _long_runs, foot_lock, raised
from jigdoll.distill.tempo import tempo_of
from jigdoll.judge import judge
from jigdoll.kinematics import skin_transforms
from jigdoll.math.rotations import compound_to_quaternion, quaternion_multiply
from jigdoll.rig.limits import compound_angles
from jigdoll.skin.deform import deform
from jigdoll.types import Motion, Pose, RiggedAsset
from jigdoll.zoo.gaits import reference_clip


@pytest.fixture(scope="module")
def dog() -> RiggedAsset:
    return zoo.make("dog")


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


def test_sliding_feet_are_held_and_little_else_changes(dog: RiggedAsset) -> None:
    clip = reference_clip(dog, "walk", seconds=1.5, fps=24.0)
    tempo = replace(tempo_of("a dog walks", dog.skeleton), speed=clip.speed)
    loose = unsteady(dog, clip.motion, 0.08)
    firm = foot_lock(dog, loose, tempo)
    before, after, truth = (judge(dog, motion) for motion in (loose, firm, clip.motion))
    assert before.skate_ratio > 0.4 and after.skate_ratio < 0.05
    assert after.penetration < 0.001 and abs(after.duty - truth.duty) < 0.1
    for pair, wanted in zip(after.pairs, truth.pairs, strict=True):
        assert abs(pair.alternation - wanted.alternation) < 0.15
    moved = (compound_angles(dog.skeleton, firm.pose) - compound_angles(dog.skeleton, loose.pose))[:, 1:]
    assert float(moved.square().mean().sqrt()) < 0.06
    low, high = dog.skeleton.limits[1:].unbind(-1)
    angles = compound_angles(dog.skeleton, firm.pose)[:, 1:]
    assert bool((angles >= low - 1e-3).all()) and bool((angles <= high + 1e-3).all())
    again = foot_lock(dog, loose, tempo)
    assert torch.equal(again.pose.rotations, firm.pose.rotations)


def test_a_body_in_the_air_is_left_alone(dog: RiggedAsset) -> None:
    clip = reference_clip(dog, "walk", seconds=0.5, fps=12.0)
    pose = clip.motion.pose
    flying = replace(clip.motion, pose=Pose(pose.root.float() + torch.tensor([0.0, 2.0, 0.0]), pose.rotations.float()))
    assert foot_lock(dog, flying, tempo_of("a dog walks", dog.skeleton)) is flying


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


def test_short_gaps_are_closed_and_short_stances_dropped() -> None:
    def flags(text: str) -> torch.Tensor:
        return torch.tensor([c == "#" for c in text])

    assert torch.equal(_long_runs(flags("####.#####....#....#"), 3), flags("##########.........#"))
    assert torch.equal(_long_runs(flags(".#...####"), 3), flags(".....####"))
