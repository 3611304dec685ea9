"""Rigs and words that are no good: a clear error or a pose, never a crash."""

import pytest
import torch

from jigdoll.errors import JigdollError, RigError
from jigdoll.kinematics import make_skeleton
from jigdoll.language.read import read
from jigdoll.posespace.dataset import bare_asset
from jigdoll.posespace.draft import DraftOptions, draft
from jigdoll.posespace.network import sample_poses
from jigdoll.posespace.rigged import Body, body_of, to_array
from jigdoll.posespace.space import PoseSpace, SampleOptions
from jigdoll.rig.anatomy import Anatomy, anatomy_of
from jigdoll.types import Motion, Pose

QUICK = SampleOptions(steps=2)


def _chain(joints: int, step: tuple[float, float, float] = (0.0, 0.0, -0.1)) -> Anatomy:
    """A row of joints behind each other."""
    T = torch.eye(4).repeat(joints, 1, 1)
    T[1:, :3, 3] = torch.tensor(step)
    T[0, 1, 3] = 0.3
    names = tuple(f"bone_{i}" for i in range(joints))
    return anatomy_of(bare_asset("chain", make_skeleton(names, (-1, *range(joints - 1)), T)))


@pytest.mark.parametrize("joints", [3, 7, 500])
def test_rows_of_few_and_many_joints_are_posed(space: PoseSpace, joints: int) -> None:
    body = body_of(_chain(joints))
    poses = sample_poses(space, body, count=2, options=QUICK)
    assert poses.rotations.shape == (2, joints, 4) and bool(poses.rotations.isfinite().all())


def test_two_joints_are_no_body() -> None:
    with pytest.raises(RigError, match="joints make no body"):
        body_of(_chain(2))


def test_many_roots_under_one_are_posed(space: PoseSpace) -> None:
    T = torch.eye(4).repeat(9, 1, 1)
    T[1:, :3, 3] = torch.randn(8, 3, generator=torch.Generator().manual_seed(0))
    star = make_skeleton(tuple(f"b{i}" for i in range(9)), (-1, *[0] * 8), T)
    poses = sample_poses(space, body_of(anatomy_of(bare_asset("star", star))), count=1, options=QUICK)
    assert bool(poses.rotations.isfinite().all())


def test_clips_with_numbers_that_are_none_are_refused(fox: Body) -> None:
    joints = len(fox.anatomy.skeleton)
    rotations = torch.tensor([1.0, 0.0, 0.0, 0.0]).repeat(5, joints, 1)
    rotations[3, 2] = float("nan")
    with pytest.raises(RigError, match="not finite"):
        to_array(fox, Motion(Pose(torch.zeros(5, 3), rotations), 30.0, "broken"))
    with pytest.raises(RigError, match="joints"):
        to_array(fox, Motion(Pose(torch.zeros(5, 3), rotations[:, :4]), 30.0, "of another rig"))


def test_words_of_another_language_draw_poses_and_ask_for_an_action(space: PoseSpace, fox: Body) -> None:
    assert len(sample_poses(space, fox, words="狐狸坐下", count=1, options=QUICK).root) == 1
    with pytest.raises(JigdollError, match="no action"):
        draft(space, fox, read("狐狸坐下"), DraftOptions(seconds=1.0))


@pytest.mark.parametrize("options", [DraftOptions(seconds=-1.0), DraftOptions(seconds=1.0, path=[(0.0, 0.0)])])
def test_lengths_and_paths_that_are_none_are_refused(space: PoseSpace, fox: Body, options: DraftOptions) -> None:
    with pytest.raises(JigdollError):
        draft(space, fox, read("a fox walks"), options)
