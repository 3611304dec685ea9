"""Limbs are found by the names that artists give, and by geometry where names say nothing."""

import warnings
from functools import lru_cache
from pathlib import Path

import pytest
import torch

from jigdoll.asset.load import load
from jigdoll.errors import RepairWarning
from jigdoll.kinematics import make_skeleton
from jigdoll.math.transforms import translation
from jigdoll.rig.limbs import find_limbs
from jigdoll.types import Skeleton
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
