"""Retargeting on the ground and in the flesh: legs that reach, feet that are held up, skin out of skin."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from test_retarget import body, degrees, directions, person, zoo_walk

from jigdoll import zoo
from jigdoll.kinematics import forward, make_skeleton, motion_to_world, rest_pose, rest_transforms
from jigdoll.math.transforms import translation
from jigdoll.rig.anatomy import anatomy_of
from jigdoll.rig.reparent import reparent
from jigdoll.rig.retarget import decode, details_of, encode, retarget
from jigdoll.rig.retarget.apart import depths
from jigdoll.rig.retarget.decode import stances
from jigdoll.rig.retarget.feet import limb_joints, runs
from jigdoll.rig.retarget.standing import feet_of
from jigdoll.rig.retarget.support import REACHED, Standing, support
from jigdoll.types import Motion, Pose, Skeleton


def legs_at(hips: np.ndarray, ends: np.ndarray, *, shortest: float, longest: float) -> Standing:
    """Legs that stand all the time, in places that do not change."""
    frames = 10
    shape = (frames, len(hips))
    return Standing(
        hips=np.tile(hips, (frames, 1, 1)),
        ends=np.tile(ends, (frames, 1, 1)),
        shortest=np.full(shape, shortest),
        longest=np.full(shape, longest),
        stands=np.ones(shape, bool),
        stance=np.tile(np.arange(len(hips)), (frames, 1)),
        soles=np.full((*shape, 3), np.nan),
        centre=np.zeros((frames, 3)),
    )


def test_a_body_comes_down_to_a_foot_that_its_leg_does_not_reach() -> None:
    legs = legs_at(np.array([[0.0, 1.1, 0.0]]), np.zeros((1, 3)), shortest=0.2, longest=1.0)
    way, tilt, moved = support(legs, unit=1.0, smooth=3.0, tilts=False)
    np.testing.assert_allclose(way, np.tile([0.0, -0.1, 0.0], (10, 1)), atol=2 * REACHED)
    assert np.allclose(tilt, np.eye(3)) and np.allclose(moved, 0)


def test_feet_farther_apart_than_legs_can_come_together() -> None:
    hips, ends = np.array([[0.1, 1.0, 0.0], [-0.1, 1.0, 0.0]]), np.array([[1.2, 0.0, 0.0], [-1.2, 0.0, 0.0]])
    way, _, moved = support(legs_at(hips, ends, shortest=0.2, longest=1.0), unit=1.0, smooth=3.0, tilts=False)
    there = ends[None] + np.stack([moved[:, 0], 0 * moved[:, 0], moved[:, 1]], -1)[None]
    far = np.linalg.norm(hips[None] + way[:, None] - there, axis=-1)
    assert far.max() < 1.0 + 0.01
    assert moved[0, 0] < -0.05 and moved[1, 0] > 0.05


def test_a_body_on_legs_of_one_bone_tilts_to_stand_on_all_of_them() -> None:
    hips = np.array([[x, y, z] for x in (-0.2, 0.2) for y, z in ((1.06, 1.0), (1.0, -1.0))])
    legs = legs_at(hips, hips * [1.0, 0.0, 1.0], shortest=1.0, longest=1.0)
    way, tilt, _ = support(legs, unit=1.0, smooth=3.0, tilts=True)
    now = np.einsum("fab,lb->fla", tilt, hips) + way[:, None]
    far = np.linalg.norm(now - legs.ends, axis=-1)
    assert np.abs(far - 1).max() < 0.005
    pitch = np.arctan2(tilt[0, 1, 2], tilt[0, 2, 2])
    assert abs(abs(pitch) - 0.03) < 0.01  # 0.06 over two


def one_bone_legs(source: Skeleton) -> Skeleton:
    """The same person without knees and toes."""
    gone = [i for i, name in enumerate(source.names) if name.endswith(("knee", "toe"))]
    kept = [i for i in range(len(source)) if i not in gone]
    P = rest_transforms(source)[:, :3, 3]

    def above(joint: int) -> int:
        parent = source.parents[joint]
        while parent in gone:
            parent = source.parents[parent]
        return parent

    parents = tuple(-1 if above(j) < 0 else kept.index(above(j)) for j in kept)
    offsets = torch.stack([P[j] - (P[above(j)] if above(j) >= 0 else 0 * P[j]) for j in kept])
    return make_skeleton(tuple(source.names[j] for j in kept), parents, translation(offsets))


@pytest.mark.parametrize("knees", [True, False])
def test_standing_feet_neither_slide_nor_sink_nor_float(knees: bool) -> None:
    human, walk = zoo_walk("human", seconds=1.5)
    skeleton = person(size=0.6) if knees else one_bone_legs(person(size=0.6))
    anatomy = anatomy_of(reparent(body(skeleton)).asset)
    limb_motion = encode(anatomy_of(reparent(human).asset), walk)
    moved = decode(limb_motion, anatomy)
    feet = feet_of(anatomy, motion_to_world(anatomy.skeleton, moved), moved.fps)
    stands, low = stances(limb_motion, anatomy), feet.soles[..., 1].amin(-1).numpy()
    places = feet.joints.numpy()[..., [0, 2]]
    drifts = [
        np.linalg.norm(places[a:b, i] - places[a:b, i].mean(0), axis=1).max()
        for i in range(2)
        for a, b in runs(stands[:, i])
    ]
    assert len(drifts) >= 2
    assert max(drifts) < 0.01 * anatomy.leg_length
    assert low.min() > -0.005 * anatomy.body_length
    assert low[stands].max() < 0.01 * anatomy.leg_length


def test_paws_that_are_held_up_do_not_stand() -> None:
    dog, _ = zoo_walk("dog", seconds=0.5)
    pose = rest_pose(dog.skeleton, frames=16)
    up = math.sin(-0.8)
    for name in ("left_front_hip", "right_front_hip"):
        pose.rotations[:, dog.skeleton.index(name)] = torch.tensor([math.cos(0.8), up, 0.0, 0.0])
    lm = encode(anatomy_of(reparent(dog).asset), Motion(pose, 30.0, "begs"))
    assert {t.limb.rank: bool(t.contact.any()) for t in lm.limbs if t.limb.kind == "leg"} == {0: False, 1: True}


def test_legs_that_reach_out_keep_a_pose_far_from_their_rest_on_their_own_rig() -> None:
    ant, walk = zoo_walk("ant", seconds=0.5)
    rotations = walk.pose.rotations.clone()
    for i, name in enumerate(ant.skeleton.names):
        if name.endswith("_knee"):
            rotations[:, i] = torch.tensor([math.cos(0.5), math.sin(0.5), 0.0, 0.0])
    motion = replace(walk, pose=replace(walk.pose, rotations=rotations))
    again = retarget(motion, ant, ant, lock=False)
    apart = degrees(directions(ant.skeleton, again.pose), directions(ant.skeleton, motion.pose))
    assert float(apart.mean()) < 3.0


def test_what_hangs_on_a_bone_turns_with_it() -> None:
    source = person()
    hip, knee = source.index("left_hip"), source.index("left_knee")
    names, parents = (*source.names, "left_thigh_roll"), (*source.parents, hip)
    T = torch.cat([source.T_parent_joint, 0.5 * source.T_parent_joint[knee][None]])
    T[-1, :3, :3] = torch.eye(3)
    T[-1, 3, 3] = 1
    anatomy = anatomy_of(reparent(body(make_skeleton(names, parents, T))).asset)
    leg = next(parts for parts in anatomy.parts if parts.name == "left leg 0")
    rolls = [i for i, name in enumerate(anatomy.skeleton.names) if "roll" in name]
    assert rolls and set(rolls) <= set(limb_joints(anatomy, leg)[0])


def test_an_arm_in_the_belly_comes_out_unless_it_was_there_on_the_source() -> None:
    asset = zoo.make("human", seed=0)
    skeleton = asset.skeleton
    shoulder = skeleton.index("left_shoulder")
    rotations = rest_pose(skeleton, frames=12).rotations
    world = rest_transforms(skeleton)[shoulder, :3, :3]
    axis = world.T @ torch.tensor([0.0, 0.0, 1.0])  # about the body's long view: the arm swings through the trunk
    for half in torch.linspace(0.3, 0.9, 13):
        rotations[:, shoulder] = torch.cat([half.cos()[None], -half.sin() * axis])
        motion = Motion(Pose(torch.zeros(12, 3), rotations.clone()), 24.0, "through")
        anatomy = anatomy_of(reparent(asset).asset)
        T = motion_to_world(anatomy.skeleton, motion)
        if depths(anatomy, T[..., :3, :3], T[..., :3, 3])["left arm 0"].max() > 0.03:
            break
    bare = anatomy_of(reparent(body(skeleton, "bare")).asset)
    lm = encode(bare, motion)

    def deep(moved: Motion) -> float:
        T = motion_to_world(anatomy.skeleton, moved)
        return float(depths(anatomy, T[..., :3, :3], T[..., :3, 3])["left arm 0"].mean())

    inside = deep(decode(lm, anatomy, apart=False, details=details_of(bare, motion)))
    assert inside > 0.02
    assert deep(decode(lm, anatomy, details=details_of(bare, motion))) < 0.6 * inside
    kept = decode(encode(anatomy, motion), anatomy, details=details_of(anatomy, motion))
    turned = degrees(directions(anatomy.skeleton, kept.pose), directions(anatomy.skeleton, motion.pose))
    assert float(turned[:, shoulder].max()) < 2.0
    assert forward(anatomy.skeleton, kept.pose).isfinite().all()
