"""Legs that are read otherwise than the source's."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from test_retarget import zoo_walk

from jigdoll import zoo
from jigdoll.kinematics import motion_to_world, skin_transforms
from jigdoll.rig.anatomy import Anatomy, anatomy_of
from jigdoll.rig.bones import parts_at
from jigdoll.rig.reparent import reparent, to_reparented
from jigdoll.rig.retarget import encode
from jigdoll.rig.retarget.builds import fold_of
from jigdoll.rig.retarget.decode import decode
from jigdoll.rig.retarget.limb_motion import chain_end
from jigdoll.rig.retarget.lying import creep
from jigdoll.rig.retarget.turns import from_rotvec
from jigdoll.skin.deform import deform
from jigdoll.types import Motion
from jigdoll.zoo.gaits import reference_motion

BONES = ("hip", "knee", "ankle", "toe")


def with_hocks(anatomy: Anatomy) -> Anatomy:
    """The same body with the hocks of its hind legs for their middles, as many rigs are read."""
    P = anatomy.T_rest[:, :3, 3]
    legs = {
        part.name: parts_at(part.limb, part.limb.joints, 1, 2, 3, P)
        for part in anatomy.parts
        if part.limb.kind == "leg" and part.limb.rank == 1
    }
    parts = tuple(legs.get(part.name, part) for part in anatomy.parts)
    feet = tuple(replace(leg, parts=legs.get(leg.parts.name, leg.parts)) for leg in anatomy.legs)
    return replace(anatomy, parts=parts, legs=feet)


def hind_bones(anatomy: Anatomy, motion: Motion) -> np.ndarray:
    """Directions of thighs, shins and metatarsi."""
    P = motion_to_world(anatomy.skeleton, motion)[..., :3, 3]
    joints = [[anatomy.skeleton.index(f"{side}_hind_{name}") for name in BONES] for side in ("left", "right")]
    ways = np.stack([P[:, b] - P[:, a] for row in joints for a, b in pairwise(row)], 1)
    return ways / np.linalg.norm(ways, axis=-1, keepdims=True)


@pytest.mark.parametrize("hocks_of", ["target", "source"])
def test_thighs_do_what_thighs_do_wherever_a_rig_has_the_middle_of_its_legs(hocks_of: str) -> None:
    horse, walk = zoo_walk("horse")
    knees = anatomy_of(reparent(horse).asset)
    hocks = with_hocks(knees)
    source, target = (knees, hocks) if hocks_of == "target" else (hocks, knees)
    motion = to_reparented(reparent(horse), walk)
    limb_motion = encode(source, motion, travel=False)
    folds = [fold_of(track) for track in limb_motion.limbs if track.limb.kind == "leg" and track.limb.rank == 1]
    assert all((fold > 0.3) if hocks_of == "target" else (fold < -0.3) for fold in folds)
    moved = decode(limb_motion, target, lock=False, apart=False)
    cosines = (hind_bones(target, moved) * hind_bones(source, motion)).sum(-1)
    off = np.degrees(np.arccos(np.clip(cosines, -1, 1))).max(0).reshape(2, 3)
    assert off[:, :2].max() < 3.0  # thighs and shins
    assert off[:, 2].max() < (20.0 if hocks_of == "target" else 3.0)  # a metatarsus may have to do as the thigh does


def test_a_trunk_is_as_steep_as_its_legs_carry_it() -> None:
    anatomy = anatomy_of(reparent(zoo.make("horse")).asset)
    short = reference_motion(anatomy.asset, "idle", seconds=1.0)
    lm = encode(anatomy, short)
    dip = np.array(
        [[1, 0, 0], [0, np.cos(0.2), -np.sin(0.2)], [0, np.sin(0.2), np.cos(0.2)]]
    )  # as if forelegs were short
    lm = replace(lm, root=dip @ lm.root, trunk=dip @ lm.trunk)
    still = motion_to_world(anatomy.skeleton, short)[:, anatomy.trunk[-1], 1, 3].mean()
    low = motion_to_world(anatomy.skeleton, decode(lm, anatomy))
    assert low[:, anatomy.trunk[-1], 1, 3].mean() > still - 0.04 * anatomy.height
    for leg in anatomy.legs:
        parts = leg.parts
        bent = np.linalg.norm(low[:, parts.end, :3, 3] - low[:, parts.root, :3, 3], axis=1) / parts.length
        rest = np.linalg.norm(anatomy.T_rest[parts.end, :3, 3] - anatomy.T_rest[parts.root, :3, 3]) / parts.length
        assert bent.min() > rest - 0.06


def test_a_head_that_is_carried_low_does_not_curl_under_the_chest() -> None:
    anatomy = anatomy_of(reparent(zoo.make("horse")).asset)
    lm = encode(anatomy, reference_motion(anatomy.asset, "idle", seconds=1.0))
    assert lm.neck is not None
    turn = 1.7  # far more than brings this head to the vertical
    down = np.array([[1, 0, 0], [0, np.cos(turn), -np.sin(turn)], [0, np.sin(turn), np.cos(turn)]])
    posed = motion_to_world(anatomy.skeleton, decode(replace(lm, neck=down @ lm.neck), anatomy))
    head = anatomy.neck[-1]
    rest = anatomy.T_rest[chain_end(anatomy, anatomy.neck), :3, 3] - anatomy.T_rest[head, :3, 3]
    way = posed[:, head, :3, :3] @ anatomy.T_rest[head, :3, :3].T @ rest / np.linalg.norm(rest)
    assert np.degrees(np.arctan2(-way[:, 1], way[:, 2])).max() < 115


def test_who_lies_lies_on_the_ground_whatever_its_build() -> None:
    anatomy = anatomy_of(reparent(zoo.make("human")).asset)
    lm = encode(anatomy, reference_motion(anatomy.asset, "idle", seconds=2.0))
    lean = np.linspace(0, np.pi / 2, len(lm) // 2)
    lean = np.concatenate([lean, np.full(len(lm) - len(lean), np.pi / 2)])
    back = from_rotvec(np.stack([-lean, 0 * lean, 0 * lean], 1))
    tracks = [replace(t, turns=back[:, None] @ t.turns, contact=t.contact & (lean < 1.0)) for t in lm.limbs]
    trunk, neck = back[:, None] @ lm.trunk, None if lm.neck is None else back[:, None] @ lm.neck
    for height in (0.3, 1.0):  # of a source with a thin and with a thick body
        place = lm.place.copy()
        place[:, 1] = np.interp(lean, [0, np.pi / 2], [1.0, height])
        fallen = replace(lm, root=back @ lm.root, trunk=trunk, neck=neck, limbs=tuple(tracks), place=place)
        moved = decode(fallen, anatomy)
        skin = deform(anatomy.asset.mesh.vertices, anatomy.asset.weights, skin_transforms(anatomy.skeleton, moved.pose))
        assert abs(float(skin[-5:, :, 1].min())) < 0.03 * anatomy.height
        assert float(skin[-1, :, 1].max()) < 0.4 * anatomy.height


def test_who_creeps_is_neither_in_the_ground_nor_above_it() -> None:
    anatomy = anatomy_of(reparent(zoo.make("human")).asset)
    motion = reference_motion(anatomy.asset, "idle", seconds=1.0)
    lm = replace(encode(anatomy, motion), kind="snake", grounded=False)
    G = motion_to_world(anatomy.skeleton, motion)
    creeper = replace(anatomy, kind="snake", legs=(), parts=())
    for off in (-0.4, 0.3):
        root = G[:, 0, :3, 3] + [0.0, off, 0.0]
        moved = creep(creeper, G[..., :3, :3], root, lm)
        np.testing.assert_allclose(moved[:, 1], G[:, 0, 1, 3], atol=0.03 * anatomy.height)
    high = replace(lm, place=lm.place + np.array([0.0, 0.5, 0.0]))  # who swims stays where it is
    root = G[:, 0, :3, 3] + [0.0, 1.0, 0.0]
    np.testing.assert_array_equal(creep(creeper, G[..., :3, :3], root, high), root)
