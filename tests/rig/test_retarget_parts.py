"""Retargeting's finer parts: cut bones, flights, hands that touch, fingers, common skeletons."""

import math
from dataclasses import replace

import pytest
import torch
from test_retarget import LIMB_BONES, body, degrees, person, wave, zoo_walk

from jigdoll.kinematics import forward, make_skeleton, rest_pose, rest_transforms
from jigdoll.math.transforms import translation
from jigdoll.rig.anatomy import anatomy_of
from jigdoll.rig.reparent import reparent, to_reparented
from jigdoll.rig.retarget import encode, retarget, retarget_with_report
from jigdoll.rig.retarget.profiles import profile_of
from jigdoll.types import Motion, Pose, Skeleton


@pytest.mark.parametrize("joints", [1, 4])
def test_bones_that_are_cut_in_pieces_move_as_before(joints: int) -> None:
    source = person()
    names, parents, places = list(source.names), list(source.parents), rest_transforms(source)[:, :3, 3].tolist()
    for joint in [source.index(n) for n in ("left_elbow", "right_knee", "left_wrist", "head")][:joints]:
        half = [(a + b) / 2 for a, b in zip(places[joint], places[parents[joint]], strict=True)]
        names.append(f"{names[joint]}_half")
        parents.append(parents[joint])
        places.append(half)
        parents[joint] = len(names) - 1
    order: list[int] = []
    while len(order) < len(names):  # parents come first
        order += [i for i, p in enumerate(parents) if i not in order and (p < 0 or p in order)]
    above = tuple(-1 if parents[i] < 0 else order.index(parents[i]) for i in order)
    P = torch.tensor([places[i] for i in order])
    offsets = torch.stack([p - (P[above[i]] if above[i] >= 0 else 0 * p) for i, p in enumerate(P)])
    target = make_skeleton(tuple(f"bone_{i}" for i in order), above, translation(offsets))
    motion = wave(source)
    moved = retarget(motion, body(source), body(target), lock=False)
    here = forward(target, moved.pose)[..., :3, 3][:, [order.index(i) for i in range(len(source))]]
    there = forward(source, motion.pose)[..., :3, 3]
    bones = [(source.parents[source.index(n)], source.index(n)) for n in LIMB_BONES]
    apart = [degrees(here[:, b] - here[:, a], there[:, b] - there[:, a]) for a, b in bones]
    assert float(torch.stack(apart).mean()) < 1.5


def test_a_body_that_beats_its_wings_is_in_the_air_and_one_that_walks_is_not() -> None:
    dragon, walk = zoo_walk("dragon")
    lm = encode(anatomy_of(reparent(dragon).asset), to_reparented(reparent(dragon), walk))
    wings = [i for i, name in enumerate(dragon.skeleton.names) if "wing" in name.lower()]
    wings = [i for i in wings if dragon.skeleton.parents[i] not in wings]
    assert lm.grounded and len(wings) == 2
    beat = walk.pose.rotations.clone()
    angle = 0.9 * torch.linspace(0, 4 * math.pi, len(walk)).sin()
    for joint in wings:
        sign = 1.0 if "left" in dragon.skeleton.names[joint] else -1.0
        beat[:, joint] = torch.stack([(angle / 2).cos(), 0 * angle, 0 * angle, sign * (angle / 2).sin()], -1)
    flight = replace(walk, pose=replace(walk.pose, rotations=beat, root=0 * walk.pose.root))
    anatomy = anatomy_of(reparent(dragon).asset)
    flown = encode(anatomy, to_reparented(reparent(dragon), flight))
    assert not flown.grounded
    moved = retarget(flight, dragon, dragon)
    assert float(forward(dragon.skeleton, moved.pose)[..., 1, 3].min()) > 0.1 * anatomy.body_length


def test_clapping_hands_meet_on_a_body_with_longer_arms_and_wider_shoulders() -> None:
    source = person(arms=0.2)
    motion = Motion(rest_pose(source, frames=12), 30.0)
    wide = source.T_parent_joint.clone()
    for side, sign in (("left", 1.0), ("right", -1.0)):
        wide[source.index(f"{side}_shoulder"), 0, 3] += sign * 0.08
    target = make_skeleton(source.names, source.parents, wide)
    rotations = motion.pose.rotations.clone()
    for side, sign in (("left", 1.0), ("right", -1.0)):
        up = torch.tensor([math.cos(0.6), -math.sin(0.6), 0.0, 0.0])  # forearms forward
        rotations[:, source.index(f"{side}_elbow")] = up
        turn = -sign * 0.33
        rotations[:, source.index(f"{side}_shoulder")] = torch.tensor([math.cos(turn), 0.0, 0.0, math.sin(turn)])
    clap = replace(motion, pose=replace(motion.pose, rotations=rotations))

    def gap(skeleton: Skeleton, pose: Pose) -> float:
        places = forward(skeleton, pose)[..., :3, 3]
        wrists = places[:, skeleton.index("left_wrist")] - places[:, skeleton.index("right_wrist")]
        return float(wrists.norm(dim=-1).mean())

    there = gap(source, clap.pose)
    assert there < 0.13, "the source claps"
    moved = retarget(clap, body(source), body(target))
    assert abs(gap(target, moved.pose) - there) < 0.02
    assert gap(target, clap.pose) > there + 0.1, "plain copying does not"


def test_common_skeletons_are_known_and_said() -> None:
    mixamo = {"hip": "UpLeg", "knee": "Leg", "ankle": "Foot", "shoulder": "Arm", "elbow": "ForeArm", "wrist": "Hand"}
    skeleton = person()
    names = []
    for name in skeleton.names:
        side, _, part = name.partition("_")
        names.append(f"mixamorig:{side.title()}{mixamo[part]}" if part in mixamo else name)
    named = replace(skeleton, names=tuple(names))
    profile = profile_of(named)
    assert profile is not None and profile.name == "Mixamo"
    assert profile_of(skeleton) is None
    _, report = retarget_with_report(wave(skeleton), body(skeleton), body(named))
    assert "the target is a skeleton of Mixamo" in report.notes


def test_fingers_follow_their_namesakes_and_are_relaxed_without_them() -> None:
    def with_fingers(skeleton: Skeleton) -> Skeleton:
        names, parents = list(skeleton.names), list(skeleton.parents)
        offsets = list(skeleton.T_parent_joint[:, :3, 3])
        for k, finger in enumerate(("index", "middle", "ring", "pinky")):
            above = skeleton.index("left_wrist")
            for i in range(3):
                names.append(f"left_{finger}_{i}")
                parents.append(above)
                offsets.append(torch.tensor([0.08 if i == 0 else 0.03, 0.0, 0.03 - 0.02 * k if i == 0 else 0.0]))
                above = len(names) - 1
        return make_skeleton(tuple(names), tuple(parents), translation(torch.stack(offsets)))

    bare, fingers = person(arms=math.pi / 2), with_fingers(person(arms=math.pi / 2))
    still = retarget(Motion(rest_pose(bare, frames=3), 30.0), body(bare), body(fingers))
    joint = fingers.index("left_index_1")
    w = float(still.pose.rotations[0, joint, 0])
    assert 2 * math.acos(min(abs(w), 1.0)) == pytest.approx(0.35, abs=0.02)
    tip = forward(fingers, still.pose)[0, fingers.index("left_index_2"), :3, 3]
    knuckle = forward(fingers, still.pose)[0, fingers.index("left_index_0"), :3, 3]
    assert float(tip[1]) < float(knuckle[1]) + 0.06
    fist = rest_pose(fingers, frames=3)
    turned = fist.rotations.clone()
    turned[:, joint] = torch.tensor([math.cos(0.5), 0.0, 0.0, -math.sin(0.5)])
    moved = retarget(Motion(replace(fist, rotations=turned), 30.0), body(fingers), body(fingers))
    torch.testing.assert_close(moved.pose.rotations[:, joint], turned[:, joint], atol=1e-4, rtol=0)
