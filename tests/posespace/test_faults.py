"""What is wrong with a stick figure, and how it is moved out of it."""

from dataclasses import replace

import pytest
import torch

from jigdoll.posespace.faults import corrected, fault_energy, faults_of, resting
from jigdoll.posespace.figure import stack_figures, stick_places
from jigdoll.posespace.layout import EXTRA
from jigdoll.posespace.rigged import Body
from jigdoll.posespace.space import PoseSpace, SampleOptions


def sunk(body: Body, depth: float) -> torch.Tensor:
    """The rest pose, lowered by so many leg lengths."""
    still = resting(stack_figures([body.figure])).clone()
    still[:, 0, :, EXTRA.start + 2] -= depth / body.figure.rise
    return still


@pytest.mark.parametrize("depth", [0.0, 0.1, 0.4])
def test_a_body_that_is_lowered_is_as_deep_in_the_ground_as_it_was_lowered(fox: Body, depth: float) -> None:
    sticks = stack_figures([fox.figure])
    still, low = sunk(fox, 0.0), sunk(fox, depth)
    above = -faults_of(sticks, stick_places(sticks, still), still)["ground"]
    assert bool((above == 0).all())
    found = faults_of(sticks, stick_places(sticks, low), low)["ground"][0, :, 0]
    legs = sticks.kinds[0] == 3
    ankles = stick_places(sticks, still).ends[0, legs, 0, 1] + fox.figure.hip
    assert torch.allclose(found[legs], (depth - ankles).clamp_min(0), atol=1e-5)


def test_knees_that_bend_over_are_found_and_the_right_way_is_free(fox: Body) -> None:
    sticks = stack_figures([fox.figure])
    leg = int((sticks.kinds[0] == 3).nonzero()[0, 0])
    upper, lower = sticks.bones[0, leg, 1], sticks.bones[0, leg, 2]
    axis = torch.nn.functional.normalize(torch.linalg.cross(upper, lower), dim=0)
    found = []
    for angle in (0.5, -1.8):
        K = torch.zeros(3, 3)
        K[0, 1], K[0, 2], K[1, 2] = -axis[2], axis[1], -axis[0]
        K = K - K.T
        turn = torch.linalg.matrix_exp(angle * K)
        values = resting(sticks).clone()
        values[0, leg, 0, 12:18] = torch.cat([turn[:, 0], turn[:, 1]])
        found.append(float(faults_of(sticks, stick_places(sticks, values), values)["hinge"][0, leg, 0]))
    assert found[0] == 0.0 and found[1] > 0.5


def test_an_arm_in_the_belly_is_in_flesh_only_where_there_is_flesh(person: Body) -> None:
    sticks = stack_figures([person.figure])
    values = resting(sticks)
    places = stick_places(sticks, values)
    arm = int((sticks.kinds[0] == 4).nonzero()[0, 0])
    ends = places.ends.clone()
    ends[0, arm, 0] = places.bones[0, 0, 0, 1:4].sum(0) / 2
    inside = replace(places, ends=ends)
    features = sticks.features.clone()
    features[..., 52:54] = 0.0
    bare = replace(sticks, features=features)
    features = features.clone()
    features[..., 52], features[..., 53] = 0.1, 1.0
    fleshy = replace(sticks, features=features)
    assert float(faults_of(bare, inside, values)["flesh"].max()) == 0.0
    assert float(faults_of(fleshy, inside, values)["flesh"][0, arm, 0]) > 0.1


def test_correcting_takes_most_of_the_faults_away_and_leaves_good_poses_alone(fox: Body) -> None:
    sticks = stack_figures([fox.figure])
    low, good = sunk(fox, 0.5), sunk(fox, 0.0)

    def energy(values: torch.Tensor) -> float:
        allowed = faults_of(sticks, stick_places(sticks, good), good)
        return float(fault_energy(faults_of(sticks, stick_places(sticks, values), values), allowed).sum())

    assert energy(low) > 1.0
    assert energy(corrected(sticks, low, steps=4)) < 0.2 * energy(low)
    assert torch.equal(corrected(sticks, good), good)


def test_validity_changes_what_is_drawn_only_where_something_is_wrong(space: PoseSpace, fox: Body) -> None:
    def drawn(valid: bool) -> torch.Tensor:
        return space.draw(
            [fox.figure], 12, space.words(None), generator=torch.Generator().manual_seed(3),
            options=SampleOptions(valid=valid),
        )  # fmt: skip

    sticks = stack_figures([fox.figure])
    good = resting(sticks)
    allowed = faults_of(sticks, stick_places(sticks, good), good)
    ours, plain = drawn(True), drawn(False)
    wrong = [float(fault_energy(faults_of(sticks, stick_places(sticks, v), v), allowed).mean()) for v in (ours, plain)]
    assert wrong[0] <= wrong[1]
