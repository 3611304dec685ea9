"""Motions of one rig on another, and DeepMimic's motion files."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from jigdoll.errors import FileFormatError, RepairWarning, RigError
from jigdoll.formats import bvh, deepmimic
from jigdoll.kinematics import forward, make_skeleton, rest_pose, rest_transforms
from jigdoll.math.rotations import quaternion_inverse, quaternion_multiply, quaternion_to_matrix, quaternion_to_rotvec
from jigdoll.math.transforms import transform, translation
from jigdoll.rig.retarget.by_joints import leg_length, match_limbs, retarget
from jigdoll.types import Motion, Pose, Skeleton

NAMES = ("pelvis", "spine_1", "chest", "neck_1", "head", "head_tip")
SIDE = ("hip", "knee", "ankle", "toe", "toe_tip", "clavicle", "shoulder", "elbow", "wrist", "hand_tip")


def person(*, arms: float = 0.9, size: float = 1.0) -> Skeleton:
    """A person of about 1.75 m times `size`, whose arms leave the vertical by an angle [rad]."""
    names, parents, places = list(NAMES), [-1, 0, 1, 2, 3, 4], [(0.0, 0.95 + 0.15 * i, 0.0) for i in range(6)]
    for side, sign in (("left", 1.0), ("right", -1.0)):
        leg = [(0.1, 0.9, 0.0), (0.1, 0.5, 0.02), (0.1, 0.08, 0.0), (0.1, 0.02, 0.12), (0.1, 0.02, 0.18)]
        reach = (math.sin(arms), -math.cos(arms))
        arm = [(0.04, 1.42, 0.0)]
        arm += [(0.18 + r * reach[0], 1.42 + r * reach[1], 0.0) for r in (0.0, 0.28, 0.53, 0.7)]
        for start, chain in ((0, leg), (2, arm)):
            above = start
            for x, y, z in chain:
                names.append(f"{side}_{SIDE[len(names) - 6 - (10 if side == 'right' else 0)]}")
                parents.append(above)
                places.append((sign * x, y, z))
                above = len(names) - 1
    P = size * torch.tensor(places)
    offsets = torch.stack([p - (P[parents[i]] if parents[i] >= 0 else 0 * p) for i, p in enumerate(P)])
    return make_skeleton(tuple(names), tuple(parents), translation(offsets))


def dance(skeleton: Skeleton, seed: int = 0, frames: int = 6) -> Motion:
    """Random turns of all joints that move a bone, and a random way."""
    generator = torch.Generator().manual_seed(seed)
    vectors = 0.5 * torch.randn(frames, len(skeleton), 3, generator=generator)
    vectors[:, [joint for joint, kids in enumerate(skeleton.children) if not kids]] = 0
    half = vectors.norm(dim=-1, keepdim=True) / 2
    rotations = torch.cat([half.cos(), half.sin() * torch.nn.functional.normalize(vectors, dim=-1)], -1)
    way = torch.randn(frames, 3, generator=generator)
    return Motion(Pose(way - way[0], rotations), 30.0)


def directions(skeleton: Skeleton, pose: Pose) -> torch.Tensor:
    places = forward(skeleton, pose)[..., :3, 3]
    return torch.nn.functional.normalize(places[:, 1:] - places[:, list(skeleton.parents[1:])], dim=-1)


def test_a_motion_on_its_own_rig_stays_the_same() -> None:
    skeleton = person()
    motion = dance(skeleton)
    again = retarget(motion, skeleton, skeleton, ground=False)
    between = quaternion_multiply(quaternion_inverse(again.pose.rotations), motion.pose.rotations)
    assert float(quaternion_to_rotvec(between.double()).norm(dim=-1).max()) < 2e-6
    torch.testing.assert_close(again.pose.root, motion.pose.root, atol=1e-6, rtol=0)


def test_a_rig_with_other_joint_frames_moves_the_same_in_the_world() -> None:
    source = person()
    generator = torch.Generator().manual_seed(5)
    turns = torch.nn.functional.normalize(torch.randn(len(source), 4, generator=generator), dim=-1)
    world = transform(quaternion_to_matrix(turns), rest_transforms(source)[:, :3, 3])
    above = torch.stack([torch.eye(4) if p < 0 else world[p] for p in source.parents])
    target = make_skeleton(source.names, source.parents, torch.linalg.inv(above) @ world)
    motion = dance(source)
    moved = retarget(motion, source, target, ground=False)
    expected = forward(source, motion.pose)[..., :3, 3]
    torch.testing.assert_close(forward(target, moved.pose)[..., :3, 3], expected, atol=2e-5, rtol=0)


def test_a_smaller_rig_makes_smaller_steps() -> None:
    source, target = person(), person(size=0.5)
    motion = dance(source)
    moved = retarget(motion, source, target, ground=False)
    expected = 0.5 * forward(source, motion.pose)[..., :3, 3]
    torch.testing.assert_close(forward(target, moved.pose)[..., :3, 3], expected, atol=2e-5, rtol=0)


@pytest.mark.parametrize("arms", [0.1, math.pi / 2, 2.5])
def test_bones_point_where_the_sources_bones_point_whatever_the_rest_pose(arms: float) -> None:
    source, target = person(arms=arms), person(arms=0.9)
    motion = dance(source, seed=2)
    moved = retarget(motion, source, target)
    torch.testing.assert_close(directions(target, moved.pose), directions(source, motion.pose), atol=2e-5, rtol=0)


def test_feet_spine_and_head_that_are_drawn_differently_rest_while_the_source_rests() -> None:
    source = person()
    local = source.T_parent_joint.clone()
    places = {"left_toe": (0.0, -0.03, 0.15), "head_tip": (0.0, 0.1, 0.12), "spine_1": (0.0, 0.14, -0.05)}
    for name, place in places.items():
        local[source.index(name), :3, 3] = torch.tensor(place)
    target = make_skeleton(source.names, source.parents, local)
    moved = retarget(Motion(rest_pose(source, frames=2), 30.0), source, target, ground=False)
    middle = [target.index(name) for name in ("pelvis", "spine_1", "chest", "neck_1", "head", "left_ankle", "left_toe")]
    identity = torch.tensor([1.0, 0, 0, 0]).expand(2, len(middle), 4)
    torch.testing.assert_close(moved.pose.rotations[:, middle].abs(), identity, atol=1e-6, rtol=0)


def test_a_rig_that_faces_elsewhere_at_rest_ends_up_facing_the_same_way() -> None:
    source = person()
    quarter = torch.tensor([[0.0, 0, 1, 0], [0, 1, 0, 0], [-1, 0, 0, 0], [0, 0, 0, 1]])
    local = source.T_parent_joint.clone()
    local[0] = quarter @ local[0]
    target = make_skeleton(source.names, source.parents, local)
    motion = dance(source, seed=3)
    moved = retarget(motion, source, target, ground=False)
    torch.testing.assert_close(directions(target, moved.pose), directions(source, motion.pose), atol=2e-5, rtol=0)


def test_a_mapping_of_names_overrules_the_matching() -> None:
    source, target = person(), person()
    motion = dance(source)
    names = {name: name for name in source.names if not name.endswith("tip")}
    swapped = {**names, "left_elbow": "right_elbow", "left_wrist": "right_wrist"}
    moved = retarget(motion, source, target, mapping=swapped, ground=False)
    ours, theirs = directions(target, moved.pose), directions(source, motion.pose)
    left, right = target.index("left_wrist") - 1, target.index("right_wrist") - 1
    torch.testing.assert_close(ours[:, left], theirs[:, right], atol=2e-5, rtol=0)
    torch.testing.assert_close(ours[:, right], theirs[:, right], atol=2e-5, rtol=0)


def test_the_lowest_foot_stands_where_the_feet_rest() -> None:
    source, target = person(), person(size=0.7, arms=0.2)
    moved = retarget(dance(source), source, target)
    feet = [j for j, name in enumerate(target.names) if "toe" in name or "ankle" in name]
    lowest = forward(target, moved.pose)[:, feet, 1, 3].min()
    torch.testing.assert_close(lowest, rest_transforms(target)[feet, 1, 3].min(), atol=1e-5, rtol=0)


def test_rigs_without_common_limbs_are_refused() -> None:
    stick = make_skeleton(("a",), (-1,), torch.eye(4)[None])
    with pytest.raises(RigError, match="mapping"):
        retarget(Motion(rest_pose(stick, frames=2), 30.0), stick, person())


def test_cmu_joints_find_their_twins(assets_dir: Path) -> None:
    source, _ = bvh.read(assets_dir / "motion" / "cmu" / "02_01.bvh")
    target = person()
    twins = {target.names[pair.target]: source.names[pair.source] for pair in match_limbs(source, target)}
    assert {
        "pelvis": "Hips",
        "chest": "Spine1",
        "head": "Head",
        "left_hip": "LeftUpLeg",
        "left_knee": "LeftLeg",
        "left_ankle": "LeftFoot",
        "left_toe": "LeftToeBase",
        "right_clavicle": "RightShoulder",
        "right_shoulder": "RightArm",
        "right_elbow": "RightForeArm",
        "right_wrist": "RightHand",
    }.items() <= twins.items()


@pytest.mark.parametrize("name", ["02_01", "02_03", "16_05"])
def test_cmu_legs_and_arms_keep_their_directions_on_another_person(assets_dir: Path, name: str) -> None:
    source, motion = bvh.read(assets_dir / "motion" / "cmu" / f"{name}.bvh")
    motion = bvh.trim_first_pose(motion)
    target = person(size=0.6)
    moved = retarget(motion, source, target)
    ours, theirs = directions(target, moved.pose), directions(source, motion.pose)
    for mine, their in [("left_knee", "LeftLeg"), ("right_ankle", "RightFoot"), ("left_wrist", "LeftHand")]:
        a, b = ours[:, target.index(mine) - 1], theirs[:, source.index(their) - 1]
        torch.testing.assert_close(a, b, atol=1e-4, rtol=0)
    ratio = (leg_length(target) or 0) / (leg_length(source) or 1)
    way, own = moved.pose.root[-1] - moved.pose.root[0], motion.pose.root[-1] - motion.pose.root[0]
    torch.testing.assert_close(way, ratio * own, atol=1e-4, rtol=0)
    # Nobody slides: while a toe of the source stands still, the target's toe hardly moves.
    toe, twin = target.index("left_toe"), source.index("LeftToeBase")
    here, there = forward(target, moved.pose)[:, toe, :3, 3], forward(source, motion.pose)[:, twin, :3, 3]
    still = (there[1:] - there[:-1]).norm(dim=-1) * motion.fps < 0.1
    assert int(still.sum()) > 3
    assert float(((here[1:] - here[:-1]).norm(dim=-1) * motion.fps)[still].mean()) < 0.15


def test_deepmimic_walks_ahead_on_the_ground(assets_dir: Path) -> None:
    skeleton, motion = deepmimic.read(assets_dir / "motion" / "deepmimic" / "humanoid3d_walk.txt")
    assert (len(motion), motion.fps) == (39, 30.0)
    places = forward(skeleton, motion.pose)[..., :3, 3]
    assert float(places[-1, 0, 2] - places[0, 0, 2]) == pytest.approx(1.2386, abs=1e-3)  # towards +Z
    assert abs(float(places[-1, 0, 0] - places[0, 0, 0])) < 0.05
    assert -0.02 < float(places[..., 1].min()) < 0.05
    left, right = skeleton.index("left_shoulder"), skeleton.index("right_shoulder")
    assert bool((places[:, left, 0] > places[:, right, 0]).all())
    # Knees bend backwards: the ankle stays behind the line through the thigh.
    hip, knee, ankle = (places[:, skeleton.index(f"left_{name}")] for name in ("hip", "knee", "ankle"))
    bend = torch.linalg.cross(knee - hip, ankle - knee)[:, 0]
    assert float(bend.min()) > -1e-3


@pytest.mark.parametrize("text", ["", "[]", '{"Frames": []}', '{"Frames": [[1, 2]]}', '{"Frames": [["x"]]}'])
def test_damaged_deepmimic_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "broken.txt"
    path.write_text(text)
    with pytest.raises(FileFormatError, match=r"broken\.txt"):
        deepmimic.read(path)


def test_deepmimic_numbers_must_be_finite(tmp_path: Path) -> None:
    path = tmp_path / "broken.txt"
    path.write_text(json.dumps({"Frames": [[math.nan] * 44]}))
    with pytest.raises(FileFormatError, match="NaN"):
        deepmimic.read(path)
    path.write_text(json.dumps({"Frames": [[0.5] * 44]}))
    assert deepmimic.read(path)[1].pose.rotations.shape == (1, 18, 4)


def test_limits_do_not_matter_to_retargeting() -> None:
    source = person()
    locked = replace(source, limits=0 * source.limits)
    motion = dance(source)
    moved = retarget(motion, source, locked, ground=False)
    torch.testing.assert_close(moved.pose.root, motion.pose.root, atol=1e-6, rtol=0)


def test_scales_of_the_source_turn_nothing() -> None:
    from jigdoll.zoo.gaits import reference_motion
    from jigdoll.zoo.skeleton import build_skeleton
    from jigdoll.zoo.species import species_named

    skeleton = build_skeleton(species_named("human"))
    walk = reference_motion(skeleton, "walk", seconds=0.5, name="human")
    scales = torch.ones(*walk.pose.rotations.shape[:-1], 3)
    scales[:, 0], scales[:, 4, 1] = 1.3, 1.5
    scaled = replace(walk, pose=replace(walk.pose, scales=scales))
    plain = retarget(walk, skeleton, skeleton)
    with pytest.warns(RepairWarning, match=r"without what is scaled \(2 of \d+ joints\)"):
        again = retarget(scaled, skeleton, skeleton)
    torch.testing.assert_close(again.pose.rotations, plain.pose.rotations)


def test_joints_that_move_in_their_parents_are_named_when_they_are_left_out() -> None:
    from jigdoll.zoo.gaits import reference_motion
    from jigdoll.zoo.skeleton import build_skeleton
    from jigdoll.zoo.species import species_named

    skeleton = build_skeleton(species_named("human"))
    walk = reference_motion(skeleton, "walk", seconds=0.5, name="human")
    offsets = torch.zeros(*walk.pose.rotations.shape[:-1], 3)
    offsets[3, 5] = torch.tensor([0.0, 0.2, 0.0])
    moved = replace(walk, pose=replace(walk.pose, offsets=offsets))
    with pytest.warns(RepairWarning, match=rf"\(1 of \d+ joints, '{skeleton.names[5]}' by 0.2 m\)"):
        retarget(moved, skeleton, skeleton)
