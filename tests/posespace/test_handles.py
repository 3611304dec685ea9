"""Handles are hit, keys are exact, ways between poses begin and end where they should."""

import numpy as np
import pytest
import torch

from jigdoll.errors import JigdollError
from jigdoll.kinematics import forward, rest_pose
from jigdoll.posespace.handles import Handle, _damped, handle_gaps, handle_joints, joint_of, reach_handles
from jigdoll.posespace.inbetween import exact_at, inbetween, straight, walk
from jigdoll.posespace.rigged import Body
from jigdoll.posespace.solve import _weighed, solve
from jigdoll.posespace.space import PoseSpace
from jigdoll.types import Motion, Pose
from jigdoll.zoo.gaits import reference_motion


@pytest.fixture(scope="module")
def gait(fox: Body) -> Motion:
    return reference_motion(fox.anatomy.asset, "walk", seconds=1.5, fps=30.0, name="fox")


def _targets(body: Body, pose: Pose, names: list[str]) -> list[Handle]:
    P = forward(body.anatomy.skeleton, pose)[..., :3, 3]
    return [Handle(name, tuple(P[joint_of(body, name)].tolist())) for name in names]


def test_handles_have_the_names_people_use(fox: Body, person: Body) -> None:
    assert {"left_front_foot", "right_hind_foot", "head", "tail", "hips"} <= set(handle_joints(fox))
    assert {"left_hand", "right_foot", "head", "chest"} <= set(handle_joints(person))
    with pytest.raises(JigdollError, match="left_hand"):
        joint_of(person, "antenna")


def test_reachable_handles_are_hit_from_rest(fox: Body, gait: Motion) -> None:
    pose = gait.pose[7]
    names = ["left_front_foot", "right_front_foot", "left_hind_foot", "head"]
    start = Pose(pose.root, rest_pose(fox.anatomy.skeleton).rotations)
    found = reach_handles(fox, start, _targets(fox, pose, names))
    assert max(handle_gaps(fox, found, _targets(fox, pose, names)).values()) < 0.005 * fox.anatomy.body_length


def test_a_solve_hits_its_handles_and_stays_where_the_base_stands(space: PoseSpace, fox: Body, gait: Motion) -> None:
    pose = gait.pose[11]
    handles = _targets(fox, pose, ["left_front_foot", "right_hind_foot"])
    found = solve(space, fox, handles, base=pose)
    assert max(found.gaps.values()) < 0.005 * fox.anatomy.body_length
    hips = forward(fox.anatomy.skeleton, found.pose)[fox.anatomy.pelvis, :3, 3]
    true = forward(fox.anatomy.skeleton, pose)[fox.anatomy.pelvis, :3, 3]
    assert float((hips - true)[[0, 2]].norm()) < 1e-3


def test_pinned_handles_win_over_active_ones_that_contradict_them(fox: Body) -> None:
    rest = rest_pose(fox.anatomy.skeleton)
    place = forward(fox.anatomy.skeleton, rest)[joint_of(fox, "head"), :3, 3]
    there, away = tuple((place + torch.tensor([0.0, 0.05, 0.0])).tolist()), tuple((place + 5.0).tolist())
    handles = [Handle("head", there, "pinned"), Handle("head", away, "active")]
    found = reach_handles(fox, rest, handles)
    gap = handle_gaps(fox, found, handles[:1])["head"]
    assert bool(found.rotations.isfinite().all()) and gap < float(torch.tensor(away).norm())


def test_free_handles_change_nothing(fox: Body) -> None:
    rest = rest_pose(fox.anatomy.skeleton)
    assert reach_handles(fox, rest, [Handle("head", (9.0, 9.0, 9.0), "free")]) is rest
    with pytest.raises(JigdollError, match="finite"):
        Handle("head", (float("nan"), 0.0, 0.0))


def test_keys_are_exact_and_the_frames_between_are_made(space: PoseSpace, fox: Body, gait: Motion) -> None:
    keys = {frame: gait.pose[frame] for frame in (0, 12, 24, 36)}
    made = inbetween(space, fox, keys, fps=30.0)
    assert len(made) == 37
    for frame, pose in keys.items():
        assert torch.equal(made.pose.rotations[frame], pose.rotations)
        assert torch.equal(made.pose.root[frame], pose.root)
    assert not torch.allclose(made.pose.rotations[6], straight(keys, fps=30.0).pose.rotations[6], atol=1e-3)


def test_what_is_missing_at_keys_is_spread_smoothly(fox: Body, gait: Motion) -> None:
    rest = rest_pose(fox.anatomy.skeleton, frames=len(gait))
    made = exact_at(Motion(rest, 30.0), gait, [0, 20, 40])
    assert torch.equal(made.pose.root[20], gait.pose.root[20])
    steps = made.pose.root[:41].diff(dim=0).norm(dim=-1)
    assert float(steps.max()) < 2.2 * float(gait.pose.root[40].sub(gait.pose.root[0]).norm()) / 40


def test_one_key_is_too_few(space: PoseSpace, fox: Body, gait: Motion) -> None:
    with pytest.raises(JigdollError, match="two or more"):
        inbetween(space, fox, {3: gait.pose[3]})


def test_a_walk_through_the_pose_space_ends_at_both_poses(space: PoseSpace, fox: Body, gait: Motion) -> None:
    made = walk(space, fox, gait.pose[0], gait.pose[15], frames=10)
    for frame, pose in ((0, gait.pose[0]), (len(made) - 1, gait.pose[15])):
        assert torch.equal(made.pose.rotations[frame], pose.rotations)
    assert np.isfinite(made.pose.root.numpy()).all() and len(made) == 10


def test_steps_stay_finite_where_nothing_can_move_the_handle() -> None:
    flat = np.zeros((6, 12))
    flat[:, 0] = 1e6  # two handles that move in one way only
    for scale in (0.0, 1e-9):
        assert np.isfinite(_damped(flat, np.ones(6), np.ones(6), scale)).all()
        assert np.isfinite(_damped(np.zeros((3, 6)), np.ones(3), np.ones(3), scale)).all()


def test_between_two_answers_the_more_natural_one_counts_more(
    space: PoseSpace, fox: Body, gait: Motion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PoseSpace, "score_poses", lambda *_: torch.tensor([1.0, 3.0]))
    one, other = gait.pose[0], gait.pose[9]
    found = _weighed(space, fox, one, other, None)
    assert torch.allclose(found.root, 0.9 * one.root + 0.1 * other.root, atol=1e-6)
    there, whole = (
        2 * torch.arccos((one.rotations * pose.rotations).sum(-1).abs().clamp(max=1)) for pose in (found, other)
    )
    far = whole > 0.1
    assert bool(far.any()) and torch.allclose(there[far], 0.1 * whole[far], atol=2e-3)
