"""Joint names cost nothing: what is read of a rig stays the same where every joint is called bone_0, bone_1 ..."""

import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch

from jigdoll.asset.load import read
from jigdoll.asset.normalize import normalize
from jigdoll.asset.orientation import guess_frame
from jigdoll.errors import RepairWarning
from jigdoll.kinematics import make_skeleton, rest_transforms
from jigdoll.math.transforms import translation
from jigdoll.rig.anatomy import Anatomy, anatomy_of
from jigdoll.rig.bones import bones_of
from jigdoll.rig.reparent import reparent
from jigdoll.types import RiggedAsset, Skeleton


def placed(parents: list[int], places: list[tuple[float, float, float]]) -> Skeleton:
    """A nameless skeleton whose joints are at these places in the world."""
    world = torch.tensor(places, dtype=torch.float32)
    local = torch.stack([world[i] - (world[p] if p >= 0 else 0) for i, p in enumerate(parents)])
    return make_skeleton(tuple(f"bone_{i}" for i in range(len(parents))), tuple(parents), translation(local))


def person(*, fingers: int = 0, collar: float = 0.2) -> Skeleton:
    """Spine 0-3, head 4, arms of collar bone, upper arm, forearm and hand, legs of hip, knee, ankle, toes."""
    parents = [-1, 0, 1, 2, 3]
    places = [(0.0, 1.0, 0.0), (0.0, 1.15, 0.0), (0.0, 1.3, 0.0), (0.0, 1.45, 0.0), (0.0, 1.7, 0.0)]
    for side in (1.0, -1.0):
        xs = [0.0, collar, collar + 0.28, collar + 0.46]
        for i, x in enumerate(xs):
            parents.append(len(parents) - 1 if i else 2)
            places.append((side * x, 1.35, 0.0))
        hand = len(parents) - 1
        for finger in range(fingers):
            for i in range(3):
                parents.append(len(parents) - 1 if i else hand)
                places.append((side * (xs[-1] + 0.06 + 0.03 * i), 1.35, 0.04 - 0.02 * finger))
    for side in (1.0, -1.0):
        for i, (y, z) in enumerate([(0.98, 0.0), (0.5, 0.02), (0.06, -0.02), (0.0, 0.12)]):
            parents.append(len(parents) - 1 if i else 0)
            places.append((side * 0.1, y, z))
    return placed(parents, places)


def test_a_collar_bone_that_begins_on_the_middle_line_is_no_upper_arm() -> None:
    left = next(part for part in bones_of(person(collar=0.3)).parts if part.name == "left arm 0")
    assert (left.before, left.root, left.middle, left.end) == ((5,), 6, 7, 8)


def test_an_arm_ends_at_its_hand_though_fingers_leave_it() -> None:
    left = next(part for part in bones_of(person(fingers=4)).parts if part.name == "left arm 0")
    assert (left.root, left.middle, left.end, left.after) == (6, 7, 8, ())


def test_thigh_and_shin_are_a_hind_leg_though_shin_and_foot_are_longer() -> None:
    # A goat: hip, knee ahead, hock behind, ball; the foot is longer than the thigh is high.
    parents, places = [-1, 0, 1, 2], [(0.0, 1.0, 0.0), (0.0, 1.0, 0.3), (0.0, 1.0, 0.6), (0.0, 1.2, 0.9)]
    for side in (1.0, -1.0):
        for i, (y, z) in enumerate([(0.8, 0.0), (0.6, 0.15), (0.35, -0.05), (0.05, -0.05), (0.0, 0.05)]):
            parents.append(len(parents) - 1 if i else 0)
            places.append((side * 0.12, y, z))
        for i, (y, z) in enumerate([(0.9, 0.6), (0.45, 0.6), (0.05, 0.6), (0.0, 0.7)]):
            parents.append(len(parents) - 1 if i else 2)
            places.append((side * 0.12, y, z))
    hind = next(part for part in bones_of(placed(parents, places)).parts if part.name == "left leg 1")
    assert (hind.root, hind.middle, hind.end) == (4, 5, 6)


# Real rigs


def bare(asset: RiggedAsset) -> RiggedAsset:
    """The same character with joint names that say nothing."""
    names = tuple(f"bone_{i}" for i in range(len(asset.skeleton)))
    return replace(asset, skeleton=replace(asset.skeleton, names=names))


@cache
def corpus_file(corpus_dir: Path, rig: str) -> RiggedAsset:
    """The first character of the corpus that has this rig, in its file's frame."""
    rows = [line.split("\t") for line in (corpus_dir / "sources.tsv").read_text().splitlines()]
    return read(corpus_dir / next(row[0] for row in rows if row[3] == rig))


def facing_z(asset: RiggedAsset) -> RiggedAsset:
    return normalize(asset, up="+y", faces_z=True)


def measure(asset: RiggedAsset) -> Anatomy:
    """The anatomy of the working copy."""
    return anatomy_of(reparent(asset).asset)


def summary(anatomy: Anatomy) -> dict[str, object]:
    """Where trunk, neck, tail and limbs are; joints by place, as names differ."""
    at = {
        j: tuple((1000 * p).round().int().tolist()) for j, p in enumerate(rest_transforms(anatomy.skeleton)[:, :3, 3])
    }
    told: dict[str, object] = {"kind": anatomy.kind, "grounded": anatomy.grounded}
    told |= {name: [at[j] for j in getattr(anatomy, name)] for name in ("trunk", "neck", "tail")}
    return told | {part.name: (at[part.root], at[part.middle], at[part.end]) for part in anatomy.parts}


CAUSES = {
    "quaternius-donkey": "forelegs that hang before the last joint of the chest",
    "quaternius-pug": "a rump behind the root",
    "rocketbox-female_adult_16": "collar bones that hang on the neck",
    "mobs_redo-cow": "a mouth in the head",
    "quaternius-bull": "shoulder blade and thigh of a hind leg",
    "quaternius-slime": "the tip of a hand",
    "quaternius-demonalt": "fingers half as long as the arm",
    "elceejo-fire_dragon": "the fingers of a wing",
    "quaternius-demon": "shoulders as low as the body; wings that are vanes",
    "quaternius-fish2": "fins on the face",
    "liil-vulture": "twins that are no mirror image",
}


@pytest.mark.parametrize("rig", CAUSES, ids=list(CAUSES.values()))
def test_a_rig_is_read_alike_without_names(corpus_dir: Path, rig: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RepairWarning)
        asset = facing_z(corpus_file(corpus_dir, rig))
        assert summary(measure(bare(asset))) == summary(measure(asset))


def test_flippers_beside_a_belly_are_no_legs(corpus_dir: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RepairWarning)
        asset = facing_z(corpus_file(corpus_dir, "quaternius-dolphin"))
        named, nameless = measure(asset), measure(bare(asset))
    assert nameless.kind == named.kind
    assert [part.name for part in nameless.parts] == [part.name for part in named.parts]


@pytest.mark.parametrize("rig", ["liil-elephant", "elceejo-bear", "quaternius-shark", "liil-vulture"])
def test_without_names_a_gltf_file_faces_the_way_its_standard_says(corpus_dir: Path, rig: str) -> None:
    raw = corpus_file(corpus_dir, rig)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RepairWarning)
        turns = [facing_z(asset).source for asset in (raw, bare(raw))]
    assert turns[0] is not None and turns[1] is not None
    named, nameless = (turn.T_world_file[:3, :3] for turn in turns if turn is not None)
    torch.testing.assert_close(named, nameless, atol=1e-3, rtol=0)


def test_names_of_left_and_right_do_not_turn_a_body_that_mirrors_along_the_files_axes() -> None:
    # A box whose twin joints are 20 degrees askew.
    corners = torch.tensor([(x, y, z) for x in (-1.0, 1.0) for y in (0.0, 1.0) for z in (-2.0, 2.0)])
    faces = torch.tensor(
        [(0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1), (2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4),
         (1, 5, 7), (1, 7, 3)]
    )  # fmt: skip
    places = torch.tensor([(0.94, 0.5, 0.34), (-0.94, 0.5, -0.34)])
    guess = guess_frame(corners, faces, up=[0, 1, 0], joint_names=("wing.L", "wing.R"), joint_positions=places)
    torch.testing.assert_close(guess.forward, torch.tensor([0.0, 0.0, 1.0]))
