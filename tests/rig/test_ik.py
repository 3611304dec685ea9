"""Limbs reach their targets, fold the right way and keep their bones."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jigdoll.errors import RigError
from jigdoll.kinematics import forward, make_skeleton, rest_pose, rest_transforms
from jigdoll.math.transforms import translation
from jigdoll.rig.ik import (
    Chain,
    Solution,
    local_quaternions,
    make_chain,
    rotation_between,
    solve,
    stack_chains,
    two_bone_bend,
)
from jigdoll.types import Pose, Skeleton


def leg(*offsets: tuple[float, float, float], limits: torch.Tensor | None = None) -> Skeleton:
    names = tuple(f"joint_{i}" for i in range(len(offsets)))
    T = translation(torch.tensor(offsets, dtype=torch.float32))
    return make_skeleton(names, tuple(range(-1, len(offsets) - 1)), T, limits=limits)


# A straight human leg, a dog's hind leg (knee forward, hock back), an insect's arched leg.
HUMAN = leg((0, 1, 0), (0, -0.5, 0), (0, -0.45, 0))
DOG = leg((0, 0.6, 0), (0, -0.2, 0.1), (0, -0.2, -0.15), (0, -0.15, 0.05))
INSECT = leg((0.1, 0.2, 0), (0.15, 0.15, 0.02), (0.2, -0.1, 0.0), (0.1, -0.22, 0.01))
HINT = (1.0, 0.0, 0.0)


def ends(chain: Chain, solution: Solution) -> torch.Tensor:
    """Where every joint after the first ends up, from the start."""
    D, point, points = torch.eye(3, dtype=torch.float64), torch.zeros(3, dtype=torch.float64), []
    for i, bone in enumerate(chain.bones):
        D = D @ solution.turns[..., i, :, :]
        point = point + D @ bone
        points.append(point)
    return torch.stack(points, dim=-2)


def reachable(chain: Chain, count: int, seed: int) -> torch.Tensor:
    near, far = chain.reach
    g = torch.Generator().manual_seed(seed)
    direction = torch.nn.functional.normalize(torch.randn(count, 3, generator=g, dtype=torch.float64), dim=-1)
    return direction * (near + (far - near) * torch.rand(count, 1, generator=g, dtype=torch.float64))


@pytest.mark.parametrize("skeleton", [HUMAN, DOG, INSECT], ids=["human", "dog", "insect"])
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_end_reaches_every_target_within_reach(skeleton: Skeleton, seed: int) -> None:
    chain = make_chain(skeleton, range(len(skeleton)), hint=HINT)
    target = reachable(chain, 50, seed)
    solution = solve(chain, target)
    length = float(chain.bones.norm(dim=-1).sum())
    assert float((ends(chain, solution)[:, -1] - target).norm(dim=-1).max()) < 1e-8 * length
    assert float(solution.gap.max()) < 1e-8 * length


def test_two_bones_follow_the_law_of_cosines() -> None:
    # 3-4-5: the far ends of bones 3 and 4 are 5 apart when the bend between them is a right angle.
    distance = torch.tensor([5.0, 7.0, 8.0, 1.0], dtype=torch.float64)
    bend = two_bone_bend(0 * distance + 3, 0 * distance + 4, distance)
    assert torch.allclose(bend, torch.tensor([math.pi / 2, 0.0, 0.0, math.pi], dtype=torch.float64), atol=1e-12)


@pytest.mark.parametrize("skeleton", [HUMAN, DOG, INSECT], ids=["human", "dog", "insect"])
def test_a_target_too_far_gives_a_straight_limb_that_points_at_it(skeleton: Skeleton) -> None:
    chain = make_chain(skeleton, range(len(skeleton)), hint=HINT)
    far = chain.reach[1]
    target = torch.tensor([[0.3, -1.0, 0.2]], dtype=torch.float64)
    target = target / target.norm() * far * 1.5
    solution = solve(chain, target)
    end = ends(chain, solution)[0, -1]
    assert torch.allclose(end, target[0] / 1.5, atol=1e-9)
    assert torch.allclose(solution.gap, torch.tensor([0.5 * far], dtype=torch.float64), atol=1e-9)


def test_a_target_too_close_folds_towards_it_and_reports_the_gap() -> None:
    limits = torch.tensor([[-math.pi, math.pi]] * 3).expand(3, 3, 2).clone()
    limits[1, 0] = torch.tensor([0.0, math.pi / 2])
    chain = make_chain(leg((0, 2, 0), (0, -1, 0), (0, -1, 0), limits=limits), range(3))
    solution = solve(chain, torch.tensor([[0.0, -0.5, 0.0]], dtype=torch.float64))
    # At a right angle two bones of length 1 span sqrt(2).
    down = torch.tensor([0, -math.sqrt(2), 0], dtype=torch.float64)
    assert torch.allclose(ends(chain, solution)[0, -1], down, atol=1e-6)
    assert math.isclose(float(solution.gap[0]), math.sqrt(2) - 0.5, abs_tol=1e-6)


def test_a_straight_knee_bends_forwards_by_its_hint() -> None:
    chain = make_chain(HUMAN, range(3), hint=HINT)
    knee = ends(chain, solve(chain, torch.tensor([[0.0, -0.7, 0.0]], dtype=torch.float64)))[0, 0]
    assert knee[2] > 0.2 and abs(float(knee[0])) < 1e-9


def test_a_straight_knee_bends_to_the_wider_side_of_its_limits() -> None:
    limits = torch.tensor([[-math.pi, math.pi]] * 3).expand(3, 3, 2).clone()
    limits[1, 0] = torch.tensor([-2.0, 0.0])
    chain = make_chain(leg((0, 2, 0), (0, -1, 0), (0, -1, 0), limits=limits), range(3), hint=HINT)
    knee = ends(chain, solve(chain, torch.tensor([[0.0, -1.5, 0.0]], dtype=torch.float64)))[0, 0]
    assert knee[2] < -0.2


def test_knee_and_hock_keep_their_sides_while_the_leg_folds() -> None:
    chain = make_chain(DOG, range(4))
    near, far = chain.reach
    down = torch.linspace(near + 1e-6, far * 0.999, 60, dtype=torch.float64)
    solution = solve(chain, torch.stack([0 * down, -down, 0 * down], -1))
    points = ends(chain, solution)
    assert bool((points[:, 0, 2] > 0).all()) and bool((points[:, 1, 2] < points[:, 0, 2]).all())
    # Longer leg, straighter joints: both open together and neither jumps.
    assert bool((solution.bends.diff(dim=0) < 0).all())
    assert float(solution.bends[:-5].diff(dim=0).abs().max()) < 0.25


@pytest.mark.parametrize("skeleton", [HUMAN, DOG, INSECT], ids=["human", "dog", "insect"])
def test_a_target_at_rest_is_answered_with_the_rest_pose(skeleton: Skeleton) -> None:
    chain = make_chain(skeleton, range(len(skeleton)), hint=HINT)
    solution = solve(chain, chain.bones.sum(0))
    limit = 0.05 if skeleton is HUMAN else 1e-6  # a straight knee keeps one degree in hand
    assert float((solution.turns - torch.eye(3, dtype=torch.float64)).abs().max()) < limit


def test_preferring_a_bent_hock_bends_it_more_and_still_reaches() -> None:
    chain = make_chain(DOG, range(4))
    target = torch.tensor([[0.0, -0.45, 0.05]], dtype=torch.float64)
    plain, bent = solve(chain, target), solve(chain, target, prefer=chain.rest + torch.tensor([0.0, 0.5]))
    assert bent.bends[0, 1] > plain.bends[0, 1] + 0.1
    assert torch.allclose(ends(chain, bent)[:, -1], target, atol=1e-9)


def test_bends_stay_within_the_limits_of_the_joint() -> None:
    limits = torch.tensor([[-math.pi, math.pi]] * 3).expand(4, 3, 2).clone()
    limits[1, 0] = torch.tensor([-0.2, 0.6])
    limits[2, 0] = torch.tensor([-0.5, 0.3])
    skeleton = leg((0, 0.6, 0), (0, -0.2, 0.1), (0, -0.2, -0.15), (0, -0.15, 0.05), limits=limits)
    chain = make_chain(skeleton, range(4))
    solution = solve(chain, reachable(chain, 100, 3))
    change = solution.bends - chain.rest
    # The knee folds about +X and the hock about -X: there the limits count the other way round.
    assert float(change[:, 0].min()) >= -0.2 - 1e-6 and float(change[:, 0].max()) <= 0.6 + 1e-6
    assert float(change[:, 1].min()) >= -0.3 - 1e-6 and float(change[:, 1].max()) <= 0.5 + 1e-6
    assert float(solution.gap.max()) < 1e-9


def test_the_turns_become_a_pose_that_forward_kinematics_confirms() -> None:
    g = torch.Generator().manual_seed(1)
    turned = make_skeleton(DOG.names, DOG.parents, _with_random_frames(g))
    chain = make_chain(turned, range(4))
    target = reachable(chain, 20, 5)
    solution = solve(chain, target)
    rest = rest_transforms(turned).double()
    pose = rest_pose(turned, frames=20)
    rotations = pose.rotations.clone()
    for bone in range(3):
        rotations[:, bone] = local_quaternions(solution.turns[:, bone], rest[bone, :3, :3]).float()
    T = forward(turned, Pose(pose.root, rotations))
    assert torch.allclose(T[:, 3, :3, 3] - T[:, 0, :3, 3], target.float(), atol=1e-5)


def _with_random_frames(g: torch.Generator) -> torch.Tensor:
    """The dog's leg with joint frames that point anywhere."""
    Q = torch.linalg.qr(torch.randn(4, 3, 3, generator=g))[0]
    Q = Q * torch.linalg.det(Q)[:, None, None]
    world = rest_transforms(DOG).clone()
    world[:, :3, :3] = Q
    local = [world[0]] + [torch.linalg.inv(world[i - 1]) @ world[i] for i in range(1, 4)]
    return torch.stack(local)


def test_the_shortest_rotation_turns_any_direction_into_any_other() -> None:
    g = torch.Generator().manual_seed(0)
    a, b = torch.randn(2, 200, 3, generator=g, dtype=torch.float64)
    b[0] = -a[0]  # opposite
    b[1] = a[1]
    R = rotation_between(a, b)
    moved = (R @ a[..., None])[..., 0]
    unit = torch.nn.functional.normalize
    assert torch.allclose(unit(moved, dim=-1), unit(b, dim=-1), atol=1e-6)
    assert torch.allclose(R @ R.transpose(-1, -2), torch.eye(3, dtype=torch.float64).expand_as(R), atol=1e-6)
    assert torch.allclose(torch.linalg.det(R), torch.ones(200, dtype=torch.float64), atol=1e-6)


def test_stacked_chains_are_solved_as_each_alone() -> None:
    other = leg((0, 0.6, 0), (0, -0.25, -0.1), (0, -0.2, 0.15), (0, -0.15, -0.05))
    chains = [make_chain(skeleton, range(4)) for skeleton in (DOG, other)]
    target = torch.stack([reachable(chain, 30, 7) for chain in chains])
    together = solve(stack_chains(chains), target)
    for i, chain in enumerate(chains):
        alone = solve(chain, target[i])
        assert torch.allclose(together.turns[i], alone.turns, atol=1e-9)
        assert torch.allclose(together.bends[i], alone.bends, atol=1e-9)


def test_a_chain_of_one_joint_and_a_bone_without_length_are_refused() -> None:
    with pytest.raises(RigError, match="2 to"):
        make_chain(HUMAN, [0])
    with pytest.raises(RigError, match="no length"):
        make_chain(leg((0, 1, 0), (0, 0, 0), (0, -1, 0)), range(3))
