"""Feet that stand, and the ground under clips that walk in place."""

import math

import pytest
import torch

from jigdoll.contacts import (
    Feet,
    down_phases,
    find_stances,
    ground_velocity,
    standing_levels,
    stays_in_place,
    with_travel,
)
from jigdoll.types import Motion, Pose

FPS, LENGTH = 24.0, 1.5


def treadmill(speed: float, *, frames: int = 49, eased: float = 0.0, dip: float = 0.0) -> Feet:
    """Two feet that walk on the spot, a stance of half a second each; `eased` modulates its speed, `dip` the toes."""
    time = torch.arange(frames, dtype=torch.float64) / FPS
    joints, soles = [], []
    for side, offset in ((-0.1, 0.0), (0.1, 0.5)):
        phase = (time + offset) % 1.0
        stance = phase < 0.5
        s, w = phase / 0.5, (phase - 0.5) / 0.5
        back = 0.25 * speed - 0.5 * speed * (s - eased * torch.sin(2 * math.pi * s) / (2 * math.pi))
        there = -0.25 * speed + 0.5 * speed * w
        z = torch.where(stance, back, there)
        lift = torch.where(stance, 0.0, 0.15 * torch.sin(math.pi * w.clamp(0, 1)))
        joint = torch.stack([torch.full_like(z, side), 0.1 + lift, z], -1)
        toe = torch.where(stance, 0.0, -0.1 * lift / 0.15 - dip) + lift
        heel = joint - torch.tensor([0.0, 0.1, 0.05])
        soles.append(torch.stack([heel, torch.stack([joint[:, 0], toe, joint[:, 2] + 0.1], -1)], 1))
        joints.append(joint)
    return Feet(torch.stack(joints, 1), torch.stack(soles, 1), FPS, LENGTH)


@pytest.mark.parametrize("eased", [0.0, 0.9])
@pytest.mark.parametrize("speed", [0.6, 2.0])
def test_the_ground_runs_as_fast_as_standing_feet_sweep_back_however_they_are_eased(speed: float, eased: float) -> None:
    ground = ground_velocity(treadmill(speed, eased=eased))
    torch.testing.assert_close(ground, torch.tensor([0.0, -speed], dtype=torch.float64), atol=0.06 * speed, rtol=0)


def test_toes_that_hang_through_the_floor_in_their_swing_change_neither_speed_nor_level() -> None:
    feet = treadmill(1.0, dip=0.04)
    assert float(feet.soles[..., 1].min()) < -0.02
    torch.testing.assert_close(ground_velocity(feet)[1], torch.tensor(-1.0, dtype=torch.float64), atol=0.06, rtol=0)
    torch.testing.assert_close(standing_levels(feet), torch.zeros(2, dtype=torch.float64), atol=1e-6, rtol=0)


def test_feet_that_stay_or_disagree_stand_on_ground_that_rests() -> None:
    still = treadmill(0.0)
    assert not bool(ground_velocity(still).any())
    walking = treadmill(1.0)
    joints, soles = walking.joints.clone(), walking.soles.clone()
    joints[:, 1, 2] *= -1
    soles[:, 1, :, 2] *= -1
    assert not bool(ground_velocity(Feet(joints, soles, FPS, LENGTH)).any())
    assert not bool(ground_velocity(Feet(joints[:2], soles[:2], FPS, LENGTH)).any())


def test_with_its_speed_back_a_walk_has_stances_where_its_feet_are_down() -> None:
    feet = treadmill(1.0)
    way = (torch.arange(len(feet.joints), dtype=torch.float64) / FPS)[:, None]
    joints, soles = feet.joints.clone(), feet.soles.clone()
    joints[..., 2] += way
    soles[..., 2] += way[:, :, None]
    moving = Feet(joints, soles, FPS, LENGTH)
    stands = find_stances(moving, travel=torch.tensor([0.0, 1.0], dtype=torch.float64))
    time = torch.arange(len(joints)) / FPS
    for foot, offset in enumerate((0.0, 0.5)):
        phase = (time + offset) % 1.0
        assert bool(stands[(phase > 0.05) & (phase < 0.42), foot].all())
        assert not bool(stands[(phase > 0.6) & (phase < 0.9), foot].any())
    assert bool((down_phases(moving) == down_phases(feet)).all())


def test_travel_goes_in_and_out_again() -> None:
    pose = Pose(torch.zeros(25, 3), torch.tensor([1.0, 0.0, 0.0, 0.0]).expand(25, 1, 4))
    motion = Motion(pose, FPS, "stand")
    moving = with_travel(motion, torch.tensor([0.5, -2.0]))
    torch.testing.assert_close(moving.pose.root[-1], torch.tensor([0.5, 0.0, -2.0]))
    assert stays_in_place(motion.pose.root, FPS, length=LENGTH)
    assert not stays_in_place(moving.pose.root, FPS, length=LENGTH)
    torch.testing.assert_close(with_travel(moving, torch.tensor([-0.5, 2.0])).pose.root, motion.pose.root)
