"""What a person would laugh at is named, and real motion is not blamed."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from jigdoll.asset.load import load
from jigdoll.judge.grade import graded
from jigdoll.judge.naturalness import Facts, Naturalness, _gait_faults, _ground_faults
from jigdoll.judge.postures import SLOTS, Postures, bank_of, nearest_poses, postures_of
from jigdoll.judge.referee import CHANNELS, Referee, RefereeConfig, name_action, open_referee, referee_values
from jigdoll.judge.verdict import judge
from jigdoll.kinematics import rest_pose
from jigdoll.language import read
from jigdoll.language.encoder import open_encoder
from jigdoll.memory.draft import Directions, draft
from jigdoll.memory.segments import open_memory
from jigdoll.rig.anatomy import Anatomy, anatomy_of
from jigdoll.rig.reparent import reparent
from jigdoll.rig.retarget.limb_motion import encode
from jigdoll.types import Motion
from jigdoll.zoo import make


def anatomy_named(name: str) -> Anatomy:
    return anatomy_of(reparent(make(name)).asset)


def real(anatomy: Anatomy, prompt: str) -> Motion:
    return draft(open_memory(), read(prompt), anatomy, open_encoder(), Directions(seconds=2.0)).motion


def look(anatomy: Anatomy, motion: Motion, prompt: str) -> Naturalness:
    verdict = graded(judge(anatomy.asset, motion), anatomy, motion, request=read(prompt))
    assert verdict.natural is not None
    return verdict.natural


def names(natural: Naturalness) -> set[str]:
    return {fault.name for fault in natural.faults}


def stilled(motion: Motion, joints: list[int]) -> Motion:
    """The motion with joints that stay at rest."""
    rotations = motion.pose.rotations.clone()
    rotations[:, joints] = torch.tensor([1.0, 0.0, 0.0, 0.0])
    return replace(motion, pose=replace(motion.pose, rotations=rotations))


def sliding(anatomy: Anatomy, *, speed: float = 0.6) -> Motion:
    """The rest pose, pushed along."""
    pose = rest_pose(anatomy.skeleton, frames=49)
    root = torch.zeros(49, 3)
    root[:, 2] = torch.arange(49) / 24 * speed * anatomy.body_length
    return Motion(replace(pose, root=root), 24.0, "slides")


@pytest.fixture(scope="module")
def human() -> Anatomy:
    return anatomy_named("human")


@pytest.fixture(scope="module")
def spider() -> Anatomy:
    return anatomy_named("spider")


@pytest.mark.parametrize(
    ("who", "prompt"), [("human", "a human walks"), ("fox", "a fox walks"), ("horse", "a horse gallops")]
)
def test_real_motion_is_graded_high_and_nothing_is_wrong_with_it(who: str, prompt: str) -> None:
    anatomy = anatomy_named(who)
    natural = look(anatomy, real(anatomy, prompt), prompt)
    assert natural.faults == () and natural.grade > 0.6


def test_a_body_that_is_pushed_along_slides_on_still_legs(human: Anatomy) -> None:
    natural = look(human, sliding(human), "a human walks")
    assert {"still legs", "slides"} <= names(natural) and natural.grade < 0.3


def test_six_frozen_legs_of_eight_are_counted(spider: Anatomy) -> None:
    walk = real(spider, "a spider walks")
    frozen = [j for leg in spider.legs[2:] for j in leg.parts.limb.joints]
    natural = look(spider, stilled(walk, frozen), "a spider walks")
    assert any(fault.message == "6 of 8 legs never move" for fault in natural.faults)
    assert look(spider, walk, "a spider walks").grade > natural.grade + 0.3


def test_wings_that_do_not_beat_are_named() -> None:
    dragon = anatomy_named("dragon")
    assert "still wings" in names(look(dragon, sliding(dragon), "a dragon flies"))
    assert "still wings" not in names(look(dragon, sliding(dragon), "a dragon walks"))


@pytest.mark.filterwarnings("ignore::jigdoll.errors.RepairWarning")
def test_arms_in_the_bind_pose_are_named(corpus_dir: Path) -> None:
    witch = anatomy_of(reparent(load(corpus_dir / "characters/quaternius/modular_women/Witch.glb")).asset)
    run = real(witch, "a woman runs")
    arms = [j for part in witch.parts if part.limb.kind == "arm" for j in (*part.before, *part.limb.joints)]
    assert "bind pose" not in names(look(witch, run, "a woman runs"))
    stiff = look(witch, stilled(run, arms), "a woman runs")
    assert {"bind pose", "still arms"} <= names(stiff) and stiff.grade < 0.4
    assert stiff.action_distance > look(witch, run, "a woman runs").action_distance + 8


def test_feet_that_step_together_do_not_walk(human: Anatomy) -> None:
    fine = Facts(0.8, 25.0, -0.9, 0.0, 0.0, 0.0)
    assert _gait_faults(human, fine, ["walk"]) == []
    assert [f.name for f in _gait_faults(human, replace(fine, alternation=0.9), ["walk"])] == ["feet together"]
    assert _gait_faults(human, replace(fine, alternation=0.9), ["hop"]) == []


def test_legs_that_slant_do_not_carry_a_body(human: Anatomy) -> None:
    walk = real(human, "a human walks")
    hips = [leg.parts.root for leg in human.legs]
    forward = torch.tensor([np.cos(0.7), -np.sin(0.7), 0.0, 0.0], dtype=torch.float32)  # 80 degrees ahead
    rotations = walk.pose.rotations.clone()
    for hip in hips:
        frame = torch.from_numpy(human.T_rest[hip, :3, :3]).float()
        axis = torch.cat([forward[:1], frame.T @ forward[1:]])
        rotations[:, hip] = axis
    slanting = replace(walk, pose=replace(walk.pose, rotations=rotations))
    assert "askew" in names(look(human, slanting, "a human walks"))
    assert "askew" not in names(look(human, slanting, "a human sits"))
    assert "askew" not in names(look(human, walk, "a human walks"))


def test_who_floats_or_sinks_is_named_but_not_who_jumps(human: Anatomy) -> None:
    up = Facts(0.8, 25.0, -0.9, 0.1, 0.0, 0.0)
    assert [f.name for f in _ground_faults(human, up, ["walk"])] == ["floats"]
    assert _ground_faults(human, up, ["jump"]) == []
    assert [f.name for f in _ground_faults(human, Facts(0.0, 0.0, 0.0, 0.0, 0.1, 0.9), ["idle"])] == ["sinks", "skates"]


def test_a_real_pose_is_no_distance_from_itself_and_a_turned_bone_counts_its_share(human: Anatomy) -> None:
    lm = encode(human, real(human, "a human walks"))
    poses = postures_of(lm)
    bank = bank_of([lm], ["walk"], ["walk"])
    assert nearest_poses(poses, bank)[0][0] == pytest.approx(0, abs=0.1)
    slot = SLOTS.index("left arm upper")
    turned = poses.directions.copy()
    turned[:, slot] *= -1
    away = nearest_poses(Postures(turned, poses.has), bank)[0]
    assert away.max() <= 180 / poses.has.sum() + 10 and away.min() > 60 / poses.has.sum()


def test_nobody_is_near_where_nothing_is_known(human: Anatomy) -> None:
    poses = postures_of(encode(human, real(human, "a human walks")))
    assert np.isnan(nearest_poses(poses, bank_of([], [], []))[0]).all()


def test_the_referee_hears_every_frame_and_only_those_that_are_there() -> None:
    referee = Referee(RefereeConfig(("walk", "run"))).eval()
    values = torch.randn(1, 20, CHANNELS, generator=torch.Generator().manual_seed(0))
    there = torch.ones(1, 20, dtype=torch.bool)
    longer = torch.cat([values, 9 * torch.ones(1, 5, CHANNELS)], 1)
    hidden = torch.cat([there, torch.zeros(1, 5, dtype=torch.bool)], 1)
    torch.testing.assert_close(referee(values, there), referee(longer, hidden))
    assert not torch.allclose(referee(values, there), referee(longer, torch.ones_like(hidden)))


@pytest.mark.parametrize(
    ("prompt", "action"), [("a human walks", "walk"), ("a human runs", "run"), ("a human jumps", "jump")]
)
def test_the_referee_names_plain_actions(human: Anatomy, prompt: str, action: str) -> None:
    lm = encode(human, real(human, prompt))
    assert referee_values(lm).shape[1] == CHANNELS
    assert next(iter(name_action(open_referee(), lm))) == action
