"""Legs that are read otherwise than the source's."""

from dataclasses import replace

import numpy as np
import pytest
from test_retarget import zoo_walk

from jigdoll.kinematics import motion_to_world
from jigdoll.rig.anatomy import Anatomy, anatomy_of
from jigdoll.rig.bones import parts_at
from jigdoll.rig.reparent import reparent, to_reparented
from jigdoll.rig.retarget import encode
from jigdoll.rig.retarget.builds import fold_of
from jigdoll.rig.retarget.decode import decode
from jigdoll.types import Motion

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
    ways = np.stack([P[:, b] - P[:, a] for row in joints for a, b in zip(row, row[1:], strict=False)], 1)
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
