"""Limbs are found by where they are; the names that artists give break ties."""

import warnings
from collections import Counter
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
import pytest
import torch

from jigdoll.asset.load import load
from jigdoll.errors import RepairWarning
from jigdoll.kinematics import make_skeleton
from jigdoll.math.transforms import translation
from jigdoll.rig.flesh import flesh_of
from jigdoll.rig.limbs import find_limbs
from jigdoll.rig.reparent import reparent
from jigdoll.types import RiggedAsset, Skeleton
from jigdoll.zoo.skeleton import build_skeleton
from jigdoll.zoo.species import SPECIES, species_named

HUMAN = build_skeleton(species_named("human"))


def parts(skeleton: Skeleton) -> dict[tuple[str, str, int], list[str]]:
    """The joint names of each limb."""
    return {(l.kind, l.side, l.rank): [skeleton.names[j] for j in l.joints] for l in find_limbs(skeleton)}


def renamed(skeleton: Skeleton, names: list[str]) -> Skeleton:
    return Skeleton(tuple(names), skeleton.parents, skeleton.T_parent_joint, skeleton.axes, skeleton.limits)


def in_the_style_of(style: dict[str, str]) -> Skeleton:
    """The built-in human with another tool's names."""
    return renamed(HUMAN, [style[name] for name in HUMAN.names])


def convention(pattern: dict[str, str], left: str, right: str) -> dict[str, str]:
    """Spell out a naming pattern with {side} for both sides."""
    style = {}
    for name in HUMAN.names:
        side, part = name.split("_", 1) if name.startswith(("left", "right")) else ("", name)
        style[name] = pattern[part].format(side={"left": left, "right": right}.get(side, ""))
    return style


_MIDDLE = ("pelvis", "spine_1", "spine_2", "chest", "neck_1", "head", "head_tip")
_SIDED = ("hip", "knee", "ankle", "toe", "toe_tip", "clavicle", "shoulder", "elbow", "wrist", "hand_tip")


def pattern(middle: str, sided: str) -> dict[str, str]:
    return dict(zip(_MIDDLE, middle.split(), strict=True)) | dict(zip(_SIDED, sided.split(), strict=True))


MIXAMO = pattern(
    "mixamorig:Hips mixamorig:Spine mixamorig:Spine1 mixamorig:Spine2 mixamorig:Neck mixamorig:Head "
    "mixamorig:HeadTop_End",
    "mixamorig:{side}UpLeg mixamorig:{side}Leg mixamorig:{side}Foot mixamorig:{side}ToeBase mixamorig:{side}Toe_End "
    "mixamorig:{side}Shoulder mixamorig:{side}Arm mixamorig:{side}ForeArm mixamorig:{side}Hand "
    "mixamorig:{side}Hand_End",
)
VRM = pattern(
    "J_Bip_C_Hips J_Bip_C_Spine J_Bip_C_Chest J_Bip_C_UpperChest J_Bip_C_Neck J_Bip_C_Head J_Bip_C_Head_end",
    "J_Bip_{side}_UpperLeg J_Bip_{side}_LowerLeg J_Bip_{side}_Foot J_Bip_{side}_ToeBase J_Bip_{side}_ToeBase_end "
    "J_Bip_{side}_Shoulder J_Bip_{side}_UpperArm J_Bip_{side}_LowerArm J_Bip_{side}_Hand J_Bip_{side}_Hand_end",
)
RIGIFY = pattern(
    "DEF-spine DEF-spine.001 DEF-spine.002 DEF-spine.003 DEF-neck DEF-head DEF-head.end",
    "DEF-thigh.{side} DEF-shin.{side} DEF-foot.{side} DEF-toe.{side} DEF-toe.{side}.001 "
    "DEF-shoulder.{side} DEF-upper_arm.{side} DEF-forearm.{side} DEF-hand.{side} DEF-hand.{side}.001",
)
BIPED = pattern(
    "Bip01 Bip01_Spine Bip01_Spine1 Bip01_Spine2 Bip01_Neck Bip01_Head Bip01_HeadNub",
    "Bip01_{side}_Thigh Bip01_{side}_Calf Bip01_{side}_Foot Bip01_{side}_Toe0 Bip01_{side}_Toe0Nub "
    "Bip01_{side}_Clavicle Bip01_{side}_UpperArm Bip01_{side}_Forearm Bip01_{side}_Hand Bip01_{side}_HandNub",
)
UNREAL = pattern(
    "pelvis spine_01 spine_02 spine_03 neck_01 head head_end",
    "thigh_{side} calf_{side} foot_{side} ball_{side} ball_end_{side} "
    "clavicle_{side} upperarm_{side} lowerarm_{side} hand_{side} hand_end_{side}",
)


@pytest.mark.parametrize(
    ("names", "left", "right"),
    [
        (MIXAMO, "Left", "Right"),
        (VRM, "L", "R"),
        (RIGIFY, "L", "R"),
        (BIPED, "L", "R"),
        (UNREAL, "l", "r"),
    ],
    ids=["mixamo", "vrm", "rigify", "3ds max biped", "unreal"],
)
def test_common_naming_conventions_give_the_limbs_of_our_own(names: dict[str, str], left: str, right: str) -> None:
    style = convention(names, left, right)
    ours = {limb: [style[name] for name in joints] for limb, joints in parts(HUMAN).items()}
    assert parts(in_the_style_of(style)) == ours


@pytest.mark.parametrize("name", SPECIES)
def test_every_built_in_skeleton_has_its_legs_in_order_and_all_their_joints(name: str) -> None:
    species = species_named(name)
    found = parts(build_skeleton(species))
    ranks = {1: [""], 2: ["front_", "hind_"], 3: ["front_", "middle_", "hind_"], 4: ["1_", "2_", "3_", "4_"]}[
        len(species.legs)
    ]
    for side in ("left", "right"):
        for number, rank in enumerate(ranks):
            joints = [f"{side}_{rank}{part}" for part in ("hip", "knee", "ankle", "toe", "toe_tip")]
            assert found[("leg", side, number)] == joints
    count = {kind: sum(key[0] == kind for key in found) for kind in ("leg", "arm", "wing", "head", "tail", "spine")}
    assert count == {
        "leg": 2 * len(ranks),
        "arm": 2 * bool(species.arms),
        "wing": 2 * bool(species.wings),
        "head": 1,
        "tail": int(bool(species.tail)),
        "spine": 1,
    }
    assert found[("spine", "middle", 0)][0] == "pelvis" and found[("spine", "middle", 0)][-1] == "chest"
    assert found[("head", "middle", 0)][0] == "neck_1" and found[("head", "middle", 0)][-1] == "head_tip"


@pytest.mark.parametrize("name", SPECIES)
def test_without_names_geometry_finds_the_same_limbs(name: str) -> None:
    skeleton = build_skeleton(species_named(name))
    bare = renamed(skeleton, [f"bone.{i:03d}" for i in range(len(skeleton))])

    # Nothing but its name tells a wing from an arm.
    def plain(s: Skeleton) -> set[tuple[str, str, tuple[int, ...]]]:
        return {("arm" if l.kind == "wing" else l.kind, l.side, l.joints) for l in find_limbs(s)}

    assert plain(bare) == plain(skeleton)


def test_hands_that_stand_on_the_ground_are_forelegs() -> None:
    names = (
        "root",
        "L_UpperArm",
        "L_ForeArm",
        "L_Hand",
        "R_UpperArm",
        "R_ForeArm",
        "R_Hand",
        "L_Leg",
        "L_Foot",
        "R_Leg",
        "R_Foot",
    )
    places = [
        (0, 1, 0),
        (0.1, 0.9, 0.5),
        (0.1, 0.5, 0.5),
        (0.1, 0, 0.5),
        (-0.1, 0.9, 0.5),
        (-0.1, 0.5, 0.5),
        (-0.1, 0, 0.5),
    ]
    places += [(0.1, 0.9, -0.5), (0.1, 0, -0.5), (-0.1, 0.9, -0.5), (-0.1, 0, -0.5)]
    parents = (-1, 0, 1, 2, 0, 4, 5, 0, 7, 0, 9)
    world = torch.tensor(places, dtype=torch.float32)
    local = torch.stack([world[i] - (world[p] if p >= 0 else 0) for i, p in enumerate(parents)])
    found = parts(make_skeleton(names, parents, translation(local)))
    assert found[("leg", "left", 0)] == ["L_UpperArm", "L_ForeArm", "L_Hand"]
    assert found[("leg", "right", 1)] == ["R_Leg", "R_Foot"]


def test_a_lone_joint_has_no_limbs() -> None:
    assert find_limbs(make_skeleton(("root",), (-1,), torch.eye(4)[None])) == ()


REAL = {
    "khronos/Fox.glb": {"leg": 4, "head": 1, "tail": 1, "spine": 1},
    "khronos/CesiumMan.glb": {"leg": 2, "arm": 2, "head": 1, "spine": 1},
    "khronos/RiggedFigure.glb": {"leg": 2, "arm": 2, "head": 1, "spine": 1},
    "mesh2motion/horse-animations.glb": {"leg": 4, "head": 1, "tail": 1, "spine": 1},
    "mesh2motion/bird-animations.glb": {"leg": 2, "wing": 2, "head": 1, "tail": 1, "spine": 1},
    "quaternius/animals_pack/Wolf.glb": {"leg": 4, "head": 1, "tail": 1, "spine": 1},
    "threejs/RobotExpressive.glb": {"leg": 2, "arm": 2, "head": 1, "spine": 1},
    "100avatars/100Avatars_021_Polydancer.vrm": {"leg": 2, "arm": 2, "head": 1, "spine": 1},
}


@lru_cache(maxsize=16)
def loaded(path: Path) -> Skeleton:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RepairWarning)
        return load(path).skeleton


@pytest.mark.parametrize("file", REAL)
def test_real_rigs_show_their_limbs(assets_dir: Path, file: str) -> None:
    found = find_limbs(loaded(assets_dir / "rigged" / file))
    kinds = [limb.kind for limb in found]
    assert {kind: kinds.count(kind) for kind in kinds} == REAL[file]


def test_the_artists_fox_and_horse_have_these_very_joints(assets_dir: Path) -> None:
    fox = parts(loaded(assets_dir / "rigged/khronos/Fox.glb"))
    assert fox[("leg", "left", 0)] == ["b_LeftUpperArm_09", "b_LeftForeArm_010", "b_LeftHand_011"]
    assert fox[("leg", "right", 1)] == [
        "b_RightLeg01_019",
        "b_RightLeg02_020",
        "b_RightFoot01_021",
        "b_RightFoot02_022",
    ]
    assert fox[("tail", "middle", 0)] == ["b_Tail01_012", "b_Tail02_013", "b_Tail03_014"]
    horse = parts(loaded(assets_dir / "rigged/mesh2motion/horse-animations.glb"))
    assert horse[("leg", "left", 0)][0] == "front_scapula_l" and horse[("leg", "left", 0)][-1] == "front_leg_leaf_l"
    assert horse[("head", "middle", 0)][:3] == ["spine_5", "spine_6", "head"]


# What was misread before


def placed(names: list[str], parents: list[int], places: list[tuple[float, float, float]]) -> Skeleton:
    """A skeleton whose joints are at these places in the world."""
    world = torch.tensor(places, dtype=torch.float32)
    local = torch.stack([world[i] - (world[p] if p >= 0 else 0) for i, p in enumerate(parents)])
    return make_skeleton(tuple(names), tuple(parents), translation(local))


def spider_on_anchors(*, names: bool, joints_per_leg: int = 4) -> Skeleton:
    """Eight legs, the four of each side hung on one anchor bone."""
    joints = ["body", "anchor.L", "anchor.R"]
    parents = [-1, 0, 0]
    places: list[tuple[float, float, float]] = [(0, 0.3, 0), (0.1, 0.3, 0), (-0.1, 0.3, 0)]
    for anchor, sign in ((1, 1), (2, -1)):
        for leg in range(4):
            z = 0.3 - 0.2 * leg
            for part in range(joints_per_leg):
                way = 3 * part / (joints_per_leg - 1)
                x, y = (float(np.interp(way, range(4), at)) for at in ((0.15, 0.5, 0.9, 1.0), (0.3, 0.6, 0.3, 0.0)))
                parents.append(len(joints) - 1 if part else anchor)
                joints.append(f"Leg{leg}_{part}.{'L' if sign > 0 else 'R'}")
                places.append((sign * x, y, z * (1 + 0.4 * way)))
    return placed(joints if names else [f"bone_{i}" for i in range(len(joints))], parents, places)


@pytest.mark.parametrize("names", [True, False], ids=["named", "without names"])
def test_the_eight_legs_of_a_spider_on_shared_anchor_bones_are_eight_legs(names: bool) -> None:
    legs = [limb for limb in find_limbs(spider_on_anchors(names=names)) if limb.kind == "leg"]
    assert Counter(leg.side for leg in legs) == {"left": 4, "right": 4}
    assert all(len(leg.joints) == 4 for leg in legs)


def test_arms_that_hang_to_the_ground_beside_the_legs_of_an_upright_body_are_arms() -> None:
    parents = [-1, 0, 1, 2, 1, 4, 5, 1, 7, 8, 0, 10, 11, 0, 13, 14]
    places: list[tuple[float, float, float]] = [(0, 0.5, 0), (0, 1.0, 0.1), (0, 1.2, 0.2), (0, 1.4, 0.3)]
    for x in (0.3, -0.3):
        places += [(x, 1.0, 0.15), (x, 0.5, 0.2), (x, 0.0, 0.25)]
    for x in (0.15, -0.15):
        places += [(x, 0.5, 0), (x, 0.25, 0.1), (x, 0.0, 0)]
    found = Counter(limb.kind for limb in find_limbs(placed([f"bone_{i}" for i in range(16)], parents, places)))
    assert (found["leg"], found["arm"]) == (2, 2)


def test_a_chain_of_1500_sided_joints_is_one_limb_and_found_without_recursion() -> None:
    count = 1500
    parents = [-1, *range(count), 0, *range(count + 1, 2 * count)]
    ends = [(0.1 + i / count, 1.0 - i / count, 0.0) for i in range(count)]
    places = [(0.0, 1.0, 0.0), *ends, *((-x, y, z) for x, y, z in ends)]
    limbs = find_limbs(placed([f"bone_{i}" for i in range(len(places))], parents, places))
    assert [(limb.kind, limb.side, len(limb.joints)) for limb in limbs if limb.side != "middle"] == [
        ("leg", "left", count),
        ("leg", "right", count),
    ]


CORPUS = {
    # Biped names: their forelegs are called arms.
    "rocketbox-horse_brown_01": {"leg": 4, "head": 1, "tail": 1},
    "rocketbox-cow_brown_01": {"leg": 4, "head": 1, "tail": 1},
    "rocketbox-camel_onehump_01": {"leg": 4, "head": 1, "tail": 1},
    # Dinosaurs on two legs, with arms of their own and with one joint for both.
    "quaternius-trex": {"leg": 2, "arm": 2, "head": 1, "tail": 1},
    "liil-carnotaurus": {"leg": 2, "head": 1, "tail": 1},
    "liil-tyrannosaurus": {"leg": 2, "head": 1, "tail": 1},
    "quaternius-frog": {"leg": 4, "head": 1},
    "quaternius-spider": {"leg": 8, "head": 1},
    "liil-spider": {"leg": 8},
    "liil-scorpion": {"leg": 6, "arm": 2, "tail": 1},
    "elceejo-jungle_wyvern": {"leg": 2, "wing": 2, "head": 1, "tail": 1},
    "gdquest-gdbot": {"leg": 2, "arm": 2, "head": 1},
    "liil-carp": {"fin": 4, "tail": 1},
    "liil-seal": {"fin": 2, "head": 1, "tail": 1},
    "liil-elephant": {"leg": 4, "head": 1, "tail": 1},
    "liil-giraffe": {"leg": 4, "head": 1, "tail": 1},
    "liil-hare": {"leg": 4, "head": 1, "tail": 1},
    "liil-parrot": {"leg": 2, "wing": 2, "head": 1, "tail": 1},
    "rocketbox-bird_chicken_brown_01": {"leg": 2, "wing": 2, "head": 1, "tail": 1},
    "talmolab-mouse": {"leg": 4, "head": 1, "tail": 1},
}
BARE = sorted(set(CORPUS) - {"talmolab-mouse", "quaternius-frog", "quaternius-spider"})
"""Rigs that need no names; a frog's rump and a spider's abdomen look like tails, a mouse in the air like a person."""


@cache
def corpus_rig(corpus_dir: Path, rig: str) -> RiggedAsset:
    """The first character of the corpus that has this rig."""
    rows = [line.split("\t") for line in (corpus_dir / "sources.tsv").read_text().splitlines()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RepairWarning)
        return load(corpus_dir / next(row[0] for row in rows if row[3] == rig))


def corpus_limbs(corpus_dir: Path, rig: str, *, names: bool) -> dict[str, int]:
    """What is found on the working copy of a rig of the corpus, the spine aside."""
    asset = corpus_rig(corpus_dir, rig)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RepairWarning)
        if not names:
            bare = [f"bone_{i}" for i in range(len(asset.skeleton))]
            asset = replace(asset, skeleton=renamed(asset.skeleton, bare))
        copy = reparent(asset).asset
    return Counter(limb.kind for limb in find_limbs(copy.skeleton, flesh_of(copy).outline) if limb.kind != "spine")


@pytest.mark.parametrize("rig", CORPUS)
def test_rigs_that_were_misread_show_what_their_pictures_show(corpus_dir: Path, rig: str) -> None:
    assert corpus_limbs(corpus_dir, rig, names=True) == CORPUS[rig]


@pytest.mark.parametrize("rig", BARE)
def test_their_names_are_not_needed_for_that(corpus_dir: Path, rig: str) -> None:
    assert corpus_limbs(corpus_dir, rig, names=False) == CORPUS[rig]
