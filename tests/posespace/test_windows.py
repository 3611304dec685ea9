"""Windows for training: keys, what is told, bodies that are varied."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from jigdoll.posespace.contents import page
from jigdoll.posespace.dataset import Dataset
from jigdoll.posespace.faults import resting
from jigdoll.posespace.figure import stack_figures, stick_places
from jigdoll.posespace.inbetween import inbetween, straight
from jigdoll.posespace.layout import EXTRA
from jigdoll.posespace.model import PoseNet
from jigdoll.posespace.rigged import Body, pose_array
from jigdoll.posespace.space import PoseSpace
from jigdoll.posespace.windows import (
    Units,
    Windows,
    draw_keys,
    keyed,
    known_from,
    other_rest,
    reproportioned,
    share_of_kinds,
    straight_way,
)
from jigdoll.types import Pose
from jigdoll.zoo.gaits import reference_motion


@pytest.mark.parametrize("frames", [2, 3, 12, 48])
def test_keys_hold_the_first_and_the_last_frame_and_none_twice(frames: int) -> None:
    dice = np.random.default_rng(frames)
    for _ in range(50):
        keys = draw_keys(frames, dice)
        assert keys[0] == 0 and keys[-1] == frames - 1 and bool((np.diff(keys) > 0).all())


def test_only_windows_told_by_keys_at_both_ends_are_keyed(fox: Body) -> None:
    sticks = stack_figures([fox.figure] * 4)
    clean, ends = torch.zeros(4, len(fox.figure), 12, 52), torch.zeros(4, len(fox.figure), 12, 3)
    turns = torch.zeros(4, len(fox.figure), 12, dtype=torch.bool)
    turns[0, :, [0, 5, 11]] = True  # keys
    turns[1, :, :6] = True  # a beginning
    turns[2] = True  # everything
    known = known_from(clean, ends, sticks, turns, turns, torch.zeros_like(turns))
    assert keyed(known).tolist() == [1.0, 0.0, 0.0, 0.0]


def test_bodies_of_other_proportions_stand_on_the_ground_as_before(fox: Body) -> None:
    sticks = stack_figures([fox.figure] * 32)
    values = resting(sticks)
    _, other = reproportioned(values, sticks, np.random.default_rng(0))
    assert not torch.allclose(other.bones, sticks.bones)
    legs = sticks.kinds == 3
    before, after = (s.bones.norm(dim=-1).sum(-1)[legs] for s in (sticks, other))
    assert torch.allclose(before, after, atol=1e-5)
    feet = [stick_places(s, values).ends[:, :, 0, 1] + s.hip[:, None] for s in (sticks, other)]
    heights = [(f * legs).sum(1) / legs.sum(1) for f in feet]
    assert torch.allclose(heights[0], heights[1], atol=1e-5)


def test_a_network_without_opinion_joins_keys_by_shortest_turns(fox: Body, units: Units, space: PoseSpace) -> None:
    net = PoseNet(space.net.config)  # its way out is zero before it has learned anything
    blank = PoseSpace(net.eval().requires_grad_(False), units, space.encoder, space.facts)
    clip = reference_motion(fox.anatomy.asset, "walk", seconds=1.0, fps=30.0)
    keys = {frame: clip.pose[frame] for frame in (0, 8, 16, 24)}
    made, plain = inbetween(blank, fox, keys, fps=30.0), straight(keys, fps=30.0)
    assert float((made.pose.root - plain.pose.root).abs().max()) < 0.02 * fox.anatomy.body_length
    turn = 2 * torch.arccos((made.pose.rotations * plain.pose.rotations).sum(-1).abs().clamp(max=1))
    assert float(turn.mean()) < np.radians(1.0)


def test_the_page_counts_every_clip_once_and_shares_add_up(data: Dataset, units: Units) -> None:
    shares = share_of_kinds(data)
    assert abs(sum(shares.values()) - 1) < 1e-9
    rows = [line.split("|") for line in page(data).splitlines() if line.startswith("| ") and "%" in line]
    assert sum(int(row[2]) for row in rows) == len(data.clips)
    drawn = Windows(data, units, {text: np.zeros(192, np.float32) for clip in data.clips for text in clip.texts})
    assert np.allclose(drawn.odds, [shares[kind] for kind in drawn.kinds])


def test_the_rest_that_is_told_is_the_rest_pose_and_varies_with_it(fox: Body, person: Body) -> None:
    joints = len(fox.anatomy.skeleton)
    still = Pose(torch.zeros(3), torch.tensor([1.0, 0, 0, 0]).expand(joints, 4))
    sticks = stack_figures([fox.figure] * 8)
    limbs = sticks.kinds[0] >= 3
    true = pose_array(fox, still)[limbs, 0, : EXTRA.start]
    assert torch.allclose(resting(sticks)[0, limbs, 0, : EXTRA.start], true, atol=1e-4)
    people = stack_figures([person.figure])
    hanging = resting(replace(people, rest=torch.zeros_like(people.rest)))
    assert bool(people.rest.any()) and torch.equal(resting(people), hanging)
    dice = np.random.default_rng(1)
    values = resting(sticks)
    for _ in range(8):
        values, sticks = other_rest(values, sticks, dice)
    assert not torch.allclose(sticks.rest, stack_figures([fox.figure] * 8).rest)
    assert torch.allclose(resting(sticks)[..., : EXTRA.start], values[..., : EXTRA.start], atol=1e-5)
    own = stack_figures([fox.figure] * 8)
    assert torch.allclose(stick_places(own, resting(own)).ends, stick_places(sticks, values).ends, atol=1e-4)


def test_a_root_that_goes_straight_comes_as_far_from_key_to_key() -> None:
    root = torch.randn(2, 13, 4, generator=torch.Generator().manual_seed(0))
    keys = torch.zeros(2, 13, dtype=torch.bool)
    keys[:, [0, 5, 12]] = True
    way = straight_way(root, keys)
    for first, last in ((0, 5), (5, 12)):
        stretch = slice(first, last)
        for channel in (0, 1, 3):
            assert torch.allclose(way[:, stretch, channel].sum(1), root[:, stretch, channel].sum(1), atol=1e-5)
            assert torch.allclose(way[:, stretch, channel].std(1), torch.zeros(2), atol=1e-5)
        rises = way[:, first : last + 1, 2].diff(dim=1)
        assert torch.allclose(rises, rises[:, :1].expand_as(rises), atol=1e-5)
    assert torch.allclose(way[:, [0, 5, 12], 2], root[:, [0, 5, 12], 2], atol=1e-6)
