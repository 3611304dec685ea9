"""The weights that ship: whole, small, told where they come from, and worth having."""

import numpy as np
import pytest
import torch

from jigdoll.kinematics import forward
from jigdoll.posespace.draft import DraftOptions, draft_array
from jigdoll.posespace.handles import Handle, handle_joints, reach_handles
from jigdoll.posespace.layout import EXTRA
from jigdoll.posespace.network import NetworkPoseModel, sample_poses
from jigdoll.posespace.plain import PlainPoseModel
from jigdoll.posespace.rigged import Body, natural_pose
from jigdoll.posespace.solve import solve
from jigdoll.posespace.space import PoseSpace
from jigdoll.posespace.weights import has_weights, open_space, shipped
from jigdoll.types import Pose
from jigdoll.zoo.gaits import reference_motion

pytestmark = pytest.mark.skipif(not has_weights(), reason="no weights of the pose space ship")


@pytest.fixture(scope="module")
def learned() -> PoseSpace:
    return open_space()


def test_they_are_small_and_say_where_they_come_from(learned: PoseSpace) -> None:
    assert shipped().stat().st_size < 30_000_000
    assert {"net", "options", "sources", "updates", "seconds", "log", "version"} <= set(learned.facts)
    assert len(learned.facts["sources"]) > 10 and all("(" in source for source in learned.facts["sources"])


def test_real_poses_of_a_species_that_was_kept_out_score_lower_than_random_ones(learned: PoseSpace, fox: Body) -> None:
    model = NetworkPoseModel(learned)
    walk = reference_motion(fox.anatomy.asset, "walk", seconds=1.0, fps=12.0)
    wild = PlainPoseModel(share=1.0).sample(fox.anatomy, count=12, seed=0)
    assert float(model.score(fox.anatomy, walk.pose).max()) < float(model.score(fox.anatomy, wild).median())


def test_people_sit_lower_than_they_stand_and_runs_are_faster_than_walks(learned: PoseSpace, person: Body) -> None:
    def made(words: str) -> np.ndarray:
        return draft_array(learned, person, [f"a person {words}"], DraftOptions(seconds=2.0))[0, :, EXTRA].numpy()

    assert made("sits")[:, 2].mean() < 0.85 * made("stands still")[:, 2].mean()
    assert made("runs")[:, 1].mean() > made("walks")[:, 1].mean() > 0


def test_a_person_who_reaches_out_is_nearer_to_the_truth_than_least_squares_tell(
    learned: PoseSpace, person: Body
) -> None:
    joints, skeleton = handle_joints(person), person.anatomy.skeleton
    clip = reference_motion(person.anatomy.asset, "run", seconds=1.0, fps=8.0)
    ours, plain = [], []
    for frame in range(len(clip)):
        pose = clip.pose[frame]
        P = forward(skeleton, pose)[..., :3, 3]
        handles = [Handle(name, tuple(P[joints[name]].tolist())) for name in ("left_foot", "right_hand")]
        calm = natural_pose(person).rotations
        calm[0] = pose.rotations[0]
        found = solve(learned, person, handles, base=pose)
        assert max(found.gaps.values()) < 0.005 * person.anatomy.body_length
        for errors, answer in ((ours, found.pose), (plain, reach_handles(person, Pose(pose.root, calm), handles))):
            errors.append(float((forward(skeleton, answer)[..., :3, 3] - P).norm(dim=-1).mean()))
    assert np.mean(ours) < np.mean(plain)


def test_the_same_seed_draws_the_same_poses_and_another_one_others(learned: PoseSpace, fox: Body) -> None:
    a, b, c = (sample_poses(learned, fox, words="a fox sits", count=2, seed=seed).rotations for seed in (0, 0, 1))
    assert torch.equal(a, b) and not torch.allclose(a, c, atol=1e-2)
