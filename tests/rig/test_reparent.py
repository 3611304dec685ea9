"""Rigs whose feet hang on control bones."""

import warnings
from dataclasses import replace

import pytest
import torch

from jigdoll import zoo
from jigdoll.errors import RepairWarning, RigError
from jigdoll.formats.joints import free_skeleton
from jigdoll.kinematics import forward, rest_pose, rest_transforms
from jigdoll.math.transforms import rigid_inverse
from jigdoll.rig.flesh import flesh_of
from jigdoll.rig.limbs import find_limbs
from jigdoll.rig.reparent import reparent, to_original, to_reparented
from jigdoll.skin.deform import deform_mesh
from jigdoll.types import RiggedAsset, Weights
from jigdoll.zoo.gaits import reference_clip, reference_motion


def with_stray_feet(asset: RiggedAsset) -> RiggedAsset:
    """The same body under a weightless handle on the ground, its feet hung on that handle as baked controls are."""
    old = asset.skeleton
    names = ("Armature", *(f"IK_{n}" if n.endswith("ankle") else n for n in old.names))
    world = torch.cat([torch.eye(4)[None], rest_transforms(old)])
    parents = [-1] + [
        0 if name.endswith("ankle") else parent + 1 for name, parent in zip(old.names, old.parents, strict=True)
    ]
    local = torch.stack([world[j] if p < 0 else rigid_inverse(world[p]) @ world[j] for j, p in enumerate(parents)])
    skeleton = free_skeleton(names, tuple(parents), local)
    return RiggedAsset(asset.name, asset.mesh, skeleton, Weights(asset.weights.joints + 1, asset.weights.values))


def test_a_whole_rig_is_left_alone() -> None:
    dog = zoo.make("dog")
    reparented = reparent(dog)
    assert reparented.asset is dog and reparented.repairs == ()
    motion = reference_motion(dog, "walk", seconds=0.5, fps=8.0)
    assert to_original(reparented, motion) is motion and to_reparented(reparented, motion) is motion


def test_a_working_copy_is_its_own_working_copy() -> None:
    cut = with_stray_feet(zoo.make("dog"))
    with pytest.warns(RepairWarning):
        copy = reparent(cut).asset
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = reparent(copy)
    assert again.asset is again.original is copy and again.same_tree
    assert again.joints == tuple(range(len(copy.skeleton))) and again.repairs == ()


def test_feet_return_to_the_legs_they_were_cut_from() -> None:
    dog = zoo.make("dog")
    broken = with_stray_feet(dog)
    with pytest.raises(RigError, match="end above the ground"):
        reference_clip(broken, "walk", seconds=0.5, fps=8.0)
    with pytest.warns(RepairWarning, match=r"IK_left_front_ankle hangs on left_front_knee.*Armature carried nothing"):
        reparented = reparent(broken)
    skeleton = reparented.asset.skeleton
    assert len(skeleton) == len(dog.skeleton)
    # The same tree as before the cut, whatever the order and the names of its joints.
    for joint, parent in enumerate(skeleton.parents):
        there = reparented.joints[joint] - 1
        above = -1 if parent < 0 else reparented.joints[parent] - 1
        assert dog.skeleton.parents[there] == above
    legs = [limb for limb in find_limbs(skeleton) if limb.kind == "leg"]
    assert sorted(len(leg.joints) for leg in legs) == [5, 5, 5, 5]
    torch.testing.assert_close(
        rest_transforms(skeleton), rest_transforms(broken.skeleton)[list(reparented.joints)], rtol=0, atol=1e-6
    )


def test_a_gait_of_the_copy_moves_the_original_the_same_way_and_back() -> None:
    broken = with_stray_feet(zoo.make("dog"))
    with pytest.warns(RepairWarning):
        reparented = reparent(broken)
    clip = reference_clip(reparented.asset, "walk", seconds=0.75, fps=8.0)
    assert float(clip.gap.abs().max()) < 1e-9
    motion = clip.motion
    back = to_original(reparented, motion)
    joints = forward(broken.skeleton, back.pose)[:, list(reparented.joints)]
    torch.testing.assert_close(joints, forward(reparented.asset.skeleton, motion.pose).float(), rtol=0, atol=2e-5)
    moved = deform_mesh(broken, back.pose)
    torch.testing.assert_close(moved, deform_mesh(reparented.asset, motion.pose).float(), rtol=0, atol=2e-5)
    again = to_reparented(reparented, back)
    torch.testing.assert_close(
        forward(reparented.asset.skeleton, again.pose),
        forward(reparented.asset.skeleton, motion.pose).float(),
        rtol=0,
        atol=2e-5,
    )
    # The handle on the ground travels with the body and neither rises nor tips over.
    travel = back.pose.root
    torch.testing.assert_close(travel[:, 2], motion.pose.root[:, 2].float(), rtol=0, atol=1e-6)
    assert float(travel[:, 1].abs().max()) == 0
    assert torch.allclose(back.pose.rotations[:, 0], torch.tensor([1.0, 0, 0, 0]))


def test_a_lying_rest_pose_is_replaced_by_a_clip_that_stands() -> None:
    human = zoo.make("human")
    # Fall on the back: a rest pose turned about X, and a clip whose frames turn it back up.
    turn = torch.eye(4)
    turn[1:3, 1:3] = torch.tensor([[0.0, 1.0], [-1.0, 0.0]])
    local = human.skeleton.T_parent_joint.clone()
    local[0] = turn @ local[0]
    lying = replace(
        human,
        mesh=replace(human.mesh, vertices=human.mesh.vertices @ turn[:3, :3].T),
        skeleton=free_skeleton(human.skeleton.names, human.skeleton.parents, local),
    )
    pose = rest_pose(lying.skeleton, frames=2)
    rest = local[0, :3, :3]
    upright = rest.T @ turn[:3, :3].T @ rest
    from jigdoll.math.rotations import matrix_to_quaternion
    from jigdoll.types import Motion, Pose

    rotations = pose.rotations.clone()
    rotations[:, 0] = matrix_to_quaternion(upright)
    rise = human.skeleton.T_parent_joint[0, :3, 3] - local[0, :3, 3]
    stand = Motion(Pose(rise.expand(2, 3).clone(), rotations), 30.0, "Standing")
    lying = replace(lying, clips={"Death": Motion(pose, 30.0, "Death"), "Standing": stand})
    with pytest.warns(RepairWarning, match="first frame of 'Standing'"):
        reparented = reparent(lying)
    torch.testing.assert_close(
        rest_transforms(reparented.asset.skeleton)[:, :3, 3],
        rest_transforms(human.skeleton)[list(reparented.joints), :3, 3],
        rtol=0,
        atol=1e-4,
    )
    torch.testing.assert_close(reparented.asset.mesh.vertices, human.mesh.vertices, rtol=0, atol=1e-4)


def leg_length(asset: RiggedAsset) -> float:
    """Along the bones of its shortest leg [m]."""
    points = rest_transforms(asset.skeleton)[:, :3, 3]
    legs = [limb for limb in find_limbs(asset.skeleton) if limb.kind == "leg"]
    return min(float(points[list(leg.joints)].diff(dim=0).norm(dim=-1).sum()) for leg in legs)


def test_a_leg_that_hangs_on_another_leg_gets_its_own_place_at_the_body() -> None:
    spider = zoo.make("spider")
    old = spider.skeleton
    hips = [old.index("left_3_hip"), old.index("left_4_hip")]
    # Every leg one stiff piece, the fourth hung on the third, as in the files of some games.
    stiff = [limb.joints for limb in find_limbs(old) if limb.kind == "leg"]
    first = {joint: leg[0] for leg in stiff for joint in leg}
    kept = [j for j in range(len(old)) if first.get(j, j) == j]
    place = {joint: i for i, joint in enumerate(kept)}
    above = [hips[0] if j == hips[1] else old.parents[j] for j in kept]
    world = rest_transforms(old)[kept]
    parents = tuple(-1 if p < 0 else place[first.get(p, p)] for p in above)
    local = torch.stack([world[i] if p < 0 else rigid_inverse(world[p]) @ world[i] for i, p in enumerate(parents)])
    owner = torch.tensor([place[first.get(j, j)] for j in range(len(old))])
    skeleton = free_skeleton(tuple(old.names[j] for j in kept), parents, local)
    weights = Weights(owner[spider.weights.joints.long()], spider.weights.values)
    with pytest.warns(RepairWarning, match="left_4_hip hangs on"):
        copy = reparent(replace(spider, skeleton=skeleton, weights=weights))
    assert sum(limb.kind == "leg" for limb in find_limbs(copy.asset.skeleton, flesh_of(copy.asset).outline)) == 8


@pytest.mark.parametrize("path", ["rigged/quaternius/animals_pack/Wolf.glb", "rigged/threejs/RobotExpressive.glb"])
def test_real_rigs_with_control_feet_walk(assets_dir, path, tmp_path) -> None:
    from jigdoll.asset.load import load
    from jigdoll.export import save

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RepairWarning)
        asset = load(assets_dir / path)
        reparented = reparent(asset)
        clip = reference_clip(reparented.asset, "walk", seconds=0.5, fps=8.0)
        # Standing feet are where they shall be. A swinging one may lag where a leg is straight at rest: the robot's
        # ankles lie on the ground, so that its legs have no length to spare.
        assert float(clip.gap[clip.stance].abs().max()) < 1e-9
        assert float(clip.gap.abs().max()) < 0.01 * leg_length(reparented.asset)
        back = to_original(reparented, clip.motion)
        written = save(tmp_path / "walk.glb", replace(asset, clips={}), [back])
        read = load(written, fps=8.0)
    own = [i for i, joint in enumerate(reparented.joints) if joint >= 0]
    joints = [reparented.joints[i] for i in own]
    assert len(own) < len(reparented.joints), "bones that end in flesh have tips"
    places = forward(asset.skeleton, back.pose)[:, joints, :3, 3]
    truth = forward(reparented.asset.skeleton, clip.motion.pose)[:, own, :3, 3].float()
    size = float((truth.amax((0, 1)) - truth.amin((0, 1))).max())
    torch.testing.assert_close(places, truth, rtol=0, atol=1e-5 * size)
    # The file's own joints, written and read again, stand where the copy's stood.
    name = next(n for n in read.clips if n not in asset.clips)
    order = [read.skeleton.names.index(asset.skeleton.names[j]) for j in joints]
    again = forward(read.skeleton, read.clips[name].pose)[:, order, :3, 3]
    torch.testing.assert_close(again - again[:1, :1], truth - truth[:1, :1], rtol=0, atol=1e-4 * size)
