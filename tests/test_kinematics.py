"""Forward kinematics against closed forms, a joint-by-joint loop and finite differences."""

import math

import torch
from torch import Tensor
from torch.autograd import gradcheck

from jigdoll.kinematics import forward, make_skeleton, rest_pose, rest_transforms, skin_transforms
from jigdoll.math.rotations import axis_angle_to_quaternion, quaternion_to_matrix
from jigdoll.math.transforms import transform
from jigdoll.types import Pose, Skeleton


def chain(lengths: tuple[float, ...]) -> Skeleton:
    """Joints along +X, a length apart."""
    offsets = torch.zeros(len(lengths) + 1, 3, dtype=torch.float64)
    offsets[1:, 0] = torch.tensor(lengths, dtype=torch.float64)
    names = tuple(f"joint_{i}" for i in range(len(lengths) + 1))
    return make_skeleton(names, tuple(range(-1, len(lengths))), transform(torch.eye(3, dtype=torch.float64), offsets))


def random_tree(joints: int, *, seed: int = 0) -> Skeleton:
    generator = torch.Generator().manual_seed(seed)
    parents = (-1, *(int(torch.randint(0, j, (), generator=generator)) for j in range(1, joints)))
    q = torch.randn(joints, 4, dtype=torch.float64, generator=generator)
    offsets = torch.randn(joints, 3, dtype=torch.float64, generator=generator)
    return make_skeleton(
        tuple(f"joint_{j}" for j in range(joints)), parents, transform(quaternion_to_matrix(q), offsets)
    )


def random_pose(skeleton: Skeleton, *batch: int, seed: int = 1, extras: bool = False) -> Pose:
    generator = torch.Generator().manual_seed(seed)

    def randn(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    rotations = torch.nn.functional.normalize(randn(*batch, len(skeleton), 4), dim=-1)
    if not extras:
        return Pose(randn(*batch, 3), rotations)
    offsets, scales = randn(*batch, len(skeleton), 3), 1 + 0.2 * randn(*batch, len(skeleton), 3)
    return Pose(randn(*batch, 3), rotations, offsets, scales)


def joint_by_joint(skeleton: Skeleton, pose: Pose) -> Tensor:
    """One joint after the other, one frame: T_world_parent @ T_parent_joint @ (offset, rotation, scale)."""
    out: list[Tensor] = []
    for j, parent in enumerate(skeleton.parents):
        local = torch.eye(4, dtype=torch.float64)
        local[:3, :3] = quaternion_to_matrix(pose.rotations[j])
        if pose.offsets is not None and pose.scales is not None:
            local[:3, 3] = pose.offsets[j]
            local[:3, :3] = local[:3, :3] @ torch.diag(pose.scales[j])
        here = skeleton.T_parent_joint[j] @ local
        if parent >= 0:
            here = out[parent] @ here
        else:
            here[:3, 3] += pose.root
        out.append(here)
    return torch.stack(out)


def test_a_two_link_arm_reaches_where_trigonometry_says():
    # tip = (l1 cos a + l2 cos(a + b), l1 sin a + l2 sin(a + b), 0)
    a, b = 0.4, 1.1
    arm = chain((2.0, 0.5))
    z = torch.tensor([0.0, 0, 1], dtype=torch.float64)
    turns = axis_angle_to_quaternion(z.expand(3, 3), torch.tensor([a, b, 0.0], dtype=torch.float64))
    tip = forward(arm, Pose(torch.zeros(3, dtype=torch.float64), turns))[2, :3, 3]
    expected = [2 * math.cos(a) + 0.5 * math.cos(a + b), 2 * math.sin(a) + 0.5 * math.sin(a + b), 0]
    torch.testing.assert_close(tip, torch.tensor(expected, dtype=torch.float64))


def test_levels_agree_with_a_loop_over_the_joints():
    tree = random_tree(23)
    pose = random_pose(tree, 4)
    slow = torch.stack([joint_by_joint(tree, Pose(pose.root[f], pose.rotations[f])) for f in range(4)])
    torch.testing.assert_close(forward(tree, pose), slow)


def test_offsets_and_scales_of_clips_agree_with_a_loop_over_the_joints():
    tree = random_tree(11)
    pose = random_pose(tree, extras=True)
    torch.testing.assert_close(forward(tree, pose), joint_by_joint(tree, pose))


def test_any_leading_batch_gives_the_same_as_its_frames_one_by_one():
    tree = random_tree(9)
    pose = random_pose(tree, 2, 3)
    together = forward(tree, pose)
    assert together.shape == (2, 3, 9, 4, 4)
    torch.testing.assert_close(together[1, 2], forward(tree, Pose(pose.root[1, 2], pose.rotations[1, 2])))


def test_the_rest_pose_moves_no_point():
    tree = random_tree(15)
    identity = torch.eye(4, dtype=torch.float64).expand(3, 15, 4, 4)
    torch.testing.assert_close(skin_transforms(tree, rest_pose(tree, frames=3)), identity, atol=1e-12, rtol=0)


def test_the_root_displacement_moves_every_joint_alike():
    tree = random_tree(6)
    pose = rest_pose(tree)
    shift = torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64)
    moved = forward(tree, Pose(shift, pose.rotations))
    torch.testing.assert_close(moved[:, :3, 3] - rest_transforms(tree)[:, :3, 3], shift.expand(6, 3))


def test_bone_lengths_survive_every_pose():
    tree = random_tree(12)
    at = forward(tree, random_pose(tree, 5))[..., :3, 3]
    parents = list(tree.parents[1:])
    lengths = (at[:, 1:] - at[:, parents]).norm(dim=-1)
    torch.testing.assert_close(lengths, tree.T_parent_joint[1:, :3, 3].norm(dim=-1).expand(5, 11))


def test_default_compound_axes_are_the_worlds_at_rest():
    tree = random_tree(7)
    world = rest_transforms(tree)[:, :3, :3] @ tree.axes
    torch.testing.assert_close(world, torch.eye(3, dtype=torch.float64).expand(7, 3, 3), atol=1e-12, rtol=0)


def test_gradients_of_joint_transforms_agree_with_finite_differences():
    tree = random_tree(5)
    pose = random_pose(tree, 2, extras=True)
    assert pose.offsets is not None and pose.scales is not None
    inputs = tuple(x.detach().requires_grad_() for x in (pose.root, pose.rotations, pose.offsets, pose.scales))
    assert gradcheck(lambda root, q, offset, scale: skin_transforms(tree, Pose(root, q, offset, scale)), inputs)
