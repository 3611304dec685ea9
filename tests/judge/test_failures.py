"""The failures that a new user met once, made again by hand: each is named and marked down, and what is real passes."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import pytest
import torch
from test_naturalness import look, names, real, sliding, stilled

from jigdoll.asset.load import load
from jigdoll.kinematics import rest_pose
from jigdoll.rig.anatomy import Anatomy, anatomy_of
from jigdoll.rig.reparent import reparent
from jigdoll.types import Motion
from jigdoll.zoo import make
from jigdoll.zoo.gaits import reference_motion

ARTISTS = {"witch": "quaternius/modular_women/Witch.glb", "shark": "quaternius/fish_pack/Shark.glb"}
Spoil = Callable[[Anatomy, Motion], Motion]


@lru_cache
def body(who: str, corpus: Path) -> Anatomy:
    asset = load(corpus / "characters" / ARTISTS[who]) if who in ARTISTS else make(who)
    return anatomy_of(reparent(asset).asset)


@lru_cache
def clip(who: str, prompt: str, corpus: Path) -> Motion:
    return real(body(who, corpus), prompt)


def arms_out(anatomy: Anatomy, motion: Motion) -> Motion:
    """Arms stay in the bind pose while the rest moves."""
    arms = [part for part in anatomy.parts if part.limb.kind == "arm"]
    return stilled(motion, [j for part in arms for j in (*part.before, *part.limb.joints)])


def legs_frozen(anatomy: Anatomy, motion: Motion) -> Motion:
    """Two of the legs move."""
    return stilled(motion, [j for leg in anatomy.legs[2:] for j in leg.parts.limb.joints])


def slid(anatomy: Anatomy, motion: Motion) -> Motion:
    """Pushed along like a chess piece."""
    return sliding(anatomy)


def statue(anatomy: Anatomy, motion: Motion) -> Motion:
    return replace(motion, pose=rest_pose(anatomy.skeleton, frames=len(motion)))


def lifted(anatomy: Anatomy, motion: Motion) -> Motion:
    up = torch.tensor([0.0, 0.2 * anatomy.body_length, 0.0])
    return replace(motion, pose=replace(motion.pose, root=motion.pose.root + up))


def sunk(anatomy: Anatomy, motion: Motion) -> Motion:
    down = torch.tensor([0.0, -0.2 * anatomy.body_length, 0.0])
    return replace(motion, pose=replace(motion.pose, root=motion.pose.root + down))


def shown(action: str) -> Spoil:
    """Another action than asked, as the built-in gaits do it."""
    return lambda anatomy, motion: reference_motion(anatomy.asset, action, seconds=2.0)


FAILURES: tuple[tuple[str, str, Spoil, str], ...] = (
    ("witch", "a woman runs", arms_out, "bind pose"),
    ("witch", "a woman punches", arms_out, "bind pose"),
    ("witch", "a woman waves", arms_out, "bind pose"),
    ("witch", "a woman dances", arms_out, "bind pose"),
    ("witch", "a woman walks", slid, "slides"),
    ("human", "a man sits down", shown("walk"), "other action"),
    ("human", "a man swims", shown("run"), "other action"),
    ("human", "a man punches", statue, "still arms"),
    ("human", "a man walks", lifted, "floats"),
    ("human", "a man walks", sunk, "sinks"),
    ("dragon", "a dragon flies", slid, "still wings"),
    ("dragon", "a dragon walks", slid, "slides"),
    ("ant", "an ant walks", slid, "still legs"),
    ("spider", "a spider walks", legs_frozen, "still legs"),
    ("t_rex", "a t-rex walks", shown("hop"), "feet together"),
    ("shark", "a shark swims", statue, "stiff body"),
)


@pytest.mark.filterwarnings("ignore::jigdoll.errors.RepairWarning")
@pytest.mark.parametrize(("who", "prompt", "spoil", "fault"), FAILURES)
def test_a_failure_is_named_and_marked_down(who: str, prompt: str, spoil: Spoil, fault: str, corpus_dir: Path) -> None:
    anatomy, motion = body(who, corpus_dir), clip(who, prompt, corpus_dir)
    bad, good = look(anatomy, spoil(anatomy, motion), prompt), look(anatomy, motion, prompt)
    assert fault in names(bad) and fault not in names(good)
    assert bad.grade < good.grade - 0.15 and bad.grade < 0.75
