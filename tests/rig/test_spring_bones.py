"""Tails and ears that swing after the body."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from jigdoll.kinematics import motion_to_world, rest_pose
from jigdoll.rig.anatomy import Anatomy, anatomy_of
from jigdoll.rig.reparent import reparent
from jigdoll.rig.spring_bones import MOST, _sprung, follow_through, soft_chains
from jigdoll.types import Motion
from jigdoll.zoo import make


@pytest.fixture(scope="module")
def rabbit() -> Anatomy:
    return anatomy_of(reparent(make("rabbit")).asset)


def hopping(anatomy: Anatomy, fps: float = 24.0, seconds: float = 2.0, *, drift: float = 0.0) -> Motion:
    """The rest pose, going up and down twice a second and ahead at a steady speed."""
    frames = round(seconds * fps) + 1
    t = torch.arange(frames) / fps
    pose = rest_pose(anatomy.skeleton, frames=frames)
    root = torch.zeros(frames, 3)
    root[:, 1] = 0.1 * anatomy.body_length * (1 - torch.cos(4 * torch.pi * t))
    root[:, 2] = drift * t
    return Motion(replace(pose, root=root), fps, "hop")


def names(anatomy: Anatomy) -> set[str]:
    return {anatomy.skeleton.names[j] for chain in soft_chains(anatomy) for j in chain.joints}


def test_ears_and_tail_are_soft_and_legs_and_head_are_not(rabbit: Anatomy) -> None:
    soft = names(rabbit)
    assert {"left_ear_1", "right_ear_1", "tail_1"} <= soft
    assert not any("leg" in name or "head" in name or "spine" in name for name in soft)


def test_ears_swing_after_a_hop_and_nothing_else_moves(rabbit: Anatomy) -> None:
    clip = hopping(rabbit)
    swung = follow_through(rabbit, clip)
    moved = (swung.pose.rotations - clip.pose.rotations).abs().amax((0, 2)) > 1e-4
    soft = {j for chain in soft_chains(rabbit) for j in chain.joints}
    assert {int(j) for j in moved.nonzero()} <= soft
    ear = rabbit.skeleton.names.index("left_ear_1")
    turn = torch.rad2deg(2 * torch.acos(swung.pose.rotations[:, ear, 0].abs().clamp(max=1)))
    assert 1.0 < float(turn.max()) < MOST + 1
    assert torch.equal(swung.pose.root, clip.pose.root)


def test_a_steady_speed_drags_nothing_behind(rabbit: Anatomy) -> None:
    still = follow_through(rabbit, hopping(rabbit))
    moving = follow_through(rabbit, hopping(rabbit, drift=3.0))
    assert torch.allclose(still.pose.rotations, moving.pose.rotations, atol=2e-3)


def test_a_clip_that_moves_its_tail_keeps_it(rabbit: Anatomy) -> None:
    clip = hopping(rabbit)
    tail = rabbit.tail[0]
    rotations = clip.pose.rotations.clone()
    angle = 0.2 * torch.sin(torch.arange(len(clip)) / 3)
    rotations[:, tail] = torch.stack([torch.cos(angle), torch.sin(angle), 0 * angle, 0 * angle], -1)
    clip = replace(clip, pose=replace(clip.pose, rotations=rotations))
    assert torch.equal(follow_through(rabbit, clip).pose.rotations[:, tail], rotations[:, tail])


def test_a_loop_swings_as_it_will_swing_for_ever(rabbit: Anatomy) -> None:
    clip = hopping(rabbit, seconds=1.0)
    swung = follow_through(rabbit, clip, loop=True)
    assert torch.allclose(swung.pose.rotations[0], swung.pose.rotations[-1], atol=1e-5)
    world = motion_to_world(rabbit.skeleton, swung)[..., :3, 3]
    ear = rabbit.skeleton.names.index("left_ear_tip")
    steps = np.diff(world[:, ear] - world[:, 0], axis=0)
    seam = np.linalg.norm(steps[0] - steps[-1])
    assert seam < 2 * np.linalg.norm(np.diff(steps, axis=0), axis=1).max()


@pytest.mark.parametrize("fps", [12.0, 24.0, 120.0])
def test_the_spring_is_that_of_the_equation_at_any_rate(fps: float) -> None:
    """A place that is pushed with a = 1 for long: y settles at -a / w^2 below it."""
    t = np.arange(0, 6, 1 / fps)
    place = np.stack([0.5 * t**2, 0 * t, 0 * t], -1)
    away = _sprung(place, 0.36, fps, loop=False)
    w = 2 * np.pi * 2.0  # the longest bones swing twice a second
    middle = len(t) // 2
    assert away[middle:-2, 0] == pytest.approx(-1 / w**2, rel=0.02)


def test_no_clip_makes_it_explode(rabbit: Anatomy) -> None:
    clip = hopping(rabbit)
    noise = torch.randn(len(clip), 3, generator=torch.Generator().manual_seed(0))
    wild = replace(clip, pose=replace(clip.pose, root=100 * noise))
    swung = follow_through(rabbit, wild)
    assert torch.isfinite(swung.pose.rotations).all()
    for chain in soft_chains(rabbit):
        first = swung.pose.rotations[:, chain.joints[0], 0].abs().clamp(max=1)
        assert float(torch.rad2deg(2 * torch.acos(first)).max()) < 90
