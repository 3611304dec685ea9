"""The judge asks the pose space: real gaits score low, shaken ones high, and what nobody was seen doing is said."""

import pytest
import torch

from jigdoll.judge.grade import graded, pose_score
from jigdoll.judge.naturalness import UNLIKELY
from jigdoll.judge.verdict import judge
from jigdoll.language import read
from jigdoll.posespace.weights import has_weights
from jigdoll.rig.anatomy import Anatomy, anatomy_of
from jigdoll.rig.reparent import reparent
from jigdoll.types import Motion, Pose
from jigdoll.zoo import make
from jigdoll.zoo.gaits import reference_motion

needs_weights = pytest.mark.skipif(not has_weights(), reason="no weights of the pose space ship")


@pytest.fixture(scope="module")
def fox() -> Anatomy:
    return anatomy_of(reparent(make("fox")).asset)


@pytest.fixture(scope="module")
def walk(fox: Anatomy) -> Motion:
    return reference_motion(fox.asset, "walk", seconds=1.5, fps=30.0)


@needs_weights
def test_a_gait_scores_well_below_the_same_gait_with_every_joint_shaken(fox: Anatomy, walk: Motion) -> None:
    noise = torch.randn(walk.pose.rotations.shape, generator=torch.Generator().manual_seed(0))
    turned = torch.nn.functional.normalize(walk.pose.rotations + 0.25 * noise, dim=-1)
    good, bad = pose_score(fox, walk), pose_score(fox, Motion(Pose(walk.pose.root, turned), 30.0))
    assert 0 <= good < 0.5 * UNLIKELY and bad > 3 * good


def test_what_no_real_clip_of_such_a_body_shows_is_marked_down(fox: Anatomy, walk: Motion) -> None:
    verdict = judge(fox.asset, walk)
    names = {
        prompt: {fault.name for fault in graded(verdict, fox, walk, request=read(prompt)).natural.faults}
        for prompt in ("a fox walks", "a fox claps")
    }
    assert "unproven" not in names["a fox walks"] and "unproven" in names["a fox claps"]
