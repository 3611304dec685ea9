"""The endless, seeded supply of training clips of the pocket prior: random creatures, gaits, views, and bad examples.

Every clip is drawn by the guidance renderer itself, so that the prior sees in training what distillation will show it.
Held-out species never appear here, not even as a variation.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from jigdoll.kinematics import skin_transforms
from jigdoll.language.nouns import HOPPERS
from jigdoll.math.rotations import compound_to_quaternion, quaternion_multiply, slerp
from jigdoll.prior.pocket.captions import HELD_OUT_SPECIES, write_caption, write_negative
from jigdoll.render.draw import ClipStyle, draw_reference_image, draw_splats
from jigdoll.render.ground import quiet_ground
from jigdoll.rig.bones import bones_of
from jigdoll.splats.bind import bind
from jigdoll.splats.pose import pose_by_transforms
from jigdoll.types import Limb, Pose, RiggedAsset, SkinnedGaussians
from jigdoll.zoo.assemble import random_creature
from jigdoll.zoo.gaits import Clip, actions, reference_clip
from jigdoll.zoo.species import species_named

_Item = TypeVar("_Item")
SPLATS = 1000
CORE = ("walk", "run", "trot", "gallop", "jump", "hop", "idle", "turn_left", "turn_right")
CYCLES = ("walk", "run", "trot", "gallop", "creep", "march", "limp", "stomp", "hop")
"""Actions that travel by a leg cycle, whose reversal, wrong phase or wrong speed is a mistake."""
ANYWHERE = ("glide", "random", "jitter", "tangled")
"""Mistakes that any action can make."""


@dataclass(frozen=True)
class Recipe:
    """What the training clips are like: saved beside the weights."""

    frames: int = 24
    fps: float = 12.0
    height: int = 40
    width: int = 56
    negatives: float = 0.4
    """Share of clips that are labelled unnatural."""
    mistakes: dict[str, float] = field(
        default_factory=lambda: {
            "reversed": 0.08, "moonwalk": 0.12, "wrong_phase": 0.32, "wrong_order": 0.12, "wrong_speed": 0.12,
            "glide": 0.11, "small": 0.03, "random": 0.05, "jitter": 0.03, "tangled": 0.02,
        }
    )  # fmt: skip
    """What is wrong with those, in which shares. A moonwalk: legs that cycle backwards under a body that goes ahead.
    In a wrong phase any half of the legs is late, in a wrong order a pair of them, in step with each other."""
    core: float = 0.8
    """Share of the core actions among the natural ones."""
    off_side: float = 65.0
    """Widest angle between the view and a plain side view [degrees]."""
    elevation: tuple[float, float] = (5.0, 28.0)
    margin: tuple[float, float] = (0.04, 0.2)
    field_of_view: tuple[float, float] = (30.0, 40.0)
    spread: float = 2.5
    """How much wider than a species' own range its proportions vary."""
    hoppers: float = 0.25
    """How often creatures that hop instead of walking may be drawn: one two-legged species in three does, and others
    that look alike must not seem to be wrong when they walk."""
    families: tuple[str | None, ...] = (
        *("quadruped", "quadruped", "humanoid", "humanoid", "biped", "biped", "biped", None, None),
    )
    """One is drawn for each creature; None is any. Whoever moves on two legs is of few species, and counts as much as
    whoever does on four."""
    late: tuple[float, float] = (0.3, 0.7)
    """By how much of a cycle legs may be out of step."""
    clips_per_creature: int = 16
    held_out: tuple[str, ...] = tuple(sorted(HELD_OUT_SPECIES))


@dataclass(frozen=True, eq=False)
class Sample:
    """One training clip."""

    video: UInt8[Tensor, "frames height width 3"]
    reference_image: UInt8[Tensor, "height width 3"]
    """Who it is, at rest."""
    caption: str
    opposite: str
    """What might be said of such a clip, and is not true of this one."""
    rival: bool
    """Whether the opposite names another action, rather than that something is wrong or right."""
    action: str
    kind: str
    """"natural", or the kind of mistake."""
    species: str


def samples(recipe: Recipe, generator: torch.Generator) -> Iterator[Sample]:
    """Clips without end; one creature after the other performs a few of them."""
    while True:
        family = pick(generator, recipe.families)
        spread = recipe.spread * between(generator, 0.2, 1.0)
        absent = (*recipe.held_out, *(() if between(generator) < recipe.hoppers else HOPPERS))
        asset = random_creature(generator, family=family, without=absent, spread=spread)
        try:
            yield from perform(asset, recipe, generator)
        except ArithmeticError:
            continue  # a body beyond what its gait can do; the next one will do


def perform(asset: RiggedAsset, recipe: Recipe, generator: torch.Generator) -> Iterator[Sample]:
    """What one creature shows: several gaits, each right from some views and wrong from others."""
    splats, legs = bind(asset, count=SPLATS), legs_of(asset)
    shown = 0
    while shown < recipe.clips_per_creature:
        action = pick_action(actions(asset), recipe, generator)
        tempo = pick(generator, (0.0, 0.0, -1.0, 1.0)) * between(generator, 0.5, 1.0)
        clip = long_clip(asset, action, recipe, tempo=tempo, seed=new_seed(generator))
        for _ in range(4):
            natural = between(generator) >= recipe.negatives
            kind = "natural" if natural else pick_negative(action, recipe, generator)
            pose = take(clip, recipe, generator) if natural else spoil(asset, clip, legs, kind, recipe, generator)
            video, reference_image = (_bytes(seen) for seen in draw(splats, asset, pose, recipe, generator))
            caption = _caption(asset.name, action, kind, tempo, generator)
            rival = _rival(asset, action, generator) if natural else None
            mistake = pick_negative(action, recipe, generator) if natural else "natural"
            opposite = _caption(asset.name, rival or action, "natural" if rival else mistake, tempo, generator)
            yield Sample(video, reference_image, caption, opposite, rival is not None, action, kind, asset.name)
            shown += 1


def _caption(species: str, action: str, kind: str, tempo: float, generator: torch.Generator) -> str:
    """What is shown, in words."""
    who = {"species": species, "family": species_named(species).family, "action": action}
    if kind == "natural":
        return write_caption(generator, **who, tempo=tempo)
    return write_negative(generator, **who, kind=_WORD.get(kind, kind))


def _rival(asset: RiggedAsset, action: str, generator: torch.Generator) -> str | None:
    """Another action to hold against this one, now and then: for a turn often the turn to the other side."""
    if action in _MIRRORED and between(generator) < 0.4:
        return _MIRRORED[action]
    others = tuple(other for other in actions(asset) if other in CORE and _DEED[other] != _DEED.get(action, action))
    return pick(generator, others) if others and between(generator) < 0.35 else None


_DEED = {action: action for action in CORE} | {"trot": "run", "gallop": "run", "hop": "jump"}
"""Core actions that go by several names."""
_MIRRORED = {"turn_left": "turn_right", "turn_right": "turn_left"}


_WORD = {"moonwalk": "reversed", "small": "glide", "wrong_order": "wrong_phase"}
"""Mistakes that are called as another one is."""


def pick_action(able: tuple[str, ...], recipe: Recipe, generator: torch.Generator) -> str:
    """A core action most of the time, walking most of all; what the body can also do otherwise."""
    core = [action for action in able if action in CORE]
    extra = [action for action in able if action not in CORE]
    if extra and between(generator) >= recipe.core:
        return pick(generator, tuple(extra))
    weights = torch.tensor([_OFTEN.get(action, 0.8) for action in core])
    return core[int(torch.multinomial(weights, 1, generator=generator))]


_OFTEN = {"walk": 4.0, "run": 1.6, "jump": 1.3, "turn_left": 2.0, "turn_right": 2.0}


def pick_negative(action: str, recipe: Recipe, generator: torch.Generator) -> str:
    """A kind of mistake that this action can make."""
    able = set(recipe.mistakes) if action in CYCLES else set(ANYWHERE)
    able -= {"glide"} if action == "idle" else set()  # who stands still may do so
    kinds = {kind: share for kind, share in recipe.mistakes.items() if kind in able}
    return list(kinds)[int(torch.multinomial(torch.tensor(list(kinds.values())), 1, generator=generator))]


def legs_of(asset: RiggedAsset) -> list[Limb]:
    return [limb for limb in bones_of(asset.skeleton).limbs if limb.kind == "leg"]


def long_clip(asset: RiggedAsset, action: str, recipe: Recipe, *, tempo: float, seed: int) -> Clip:
    """A reference clip twice as long as a training clip, quicker or slower than the body's own pace by up to 40 %."""
    fps = recipe.fps / math.exp(0.34 * tempo)
    return reference_clip(asset, action, seconds=2 * recipe.frames / fps, fps=fps, seed=seed)


def take(clip: Clip, recipe: Recipe, generator: torch.Generator) -> Pose:
    """A window of the clip that starts anywhere in it, moved back to the origin."""
    start = int(torch.randint(recipe.frames, (1,), generator=generator))
    return window(clip.motion.pose, start, recipe.frames)


def window(pose: Pose, start: int, frames: int) -> Pose:
    """Some frames of a pose sequence; the first one's displacement over the ground is taken off."""
    root = pose.root[start : start + frames]
    return Pose(root - root[:1] * root.new_tensor([1.0, 0.0, 1.0]), pose.rotations[start : start + frames])


def spoil(
    asset: RiggedAsset, clip: Clip, legs: list[Limb], kind: str, recipe: Recipe, generator: torch.Generator
) -> Pose:
    """A window of the clip with one thing wrong."""
    pose, n = take(clip, recipe, generator), recipe.frames
    root, turns = pose.root, pose.rotations
    if kind == "reversed":
        return window(Pose(root.flip(0), turns.flip(0)), 0, n)
    if kind == "moonwalk":
        return Pose(torch.stack([root[:, 0].flip(0), root[:, 1].flip(0), root[:, 2]], -1), turns.flip(0))
    if kind == "wrong_speed":
        factor = between(generator, -0.3, 0.45) if between(generator) < 0.6 else between(generator, 1.7, 2.6)
        return Pose(root * root.new_tensor([1.0, 1.0, factor]), turns)
    if kind in ("wrong_phase", "wrong_step", "wrong_order"):
        return _out_of_step(clip, legs, kind, recipe, generator)
    if kind in ("glide", "small"):
        share = 0.0 if kind == "glide" else between(generator, 0.15, 0.4)
        still = torch.zeros_like(turns[:1]) + turns.new_tensor([1.0, 0, 0, 0])
        still = turns[:1] if between(generator) < 0.4 else still
        level = root.clone()
        level[:, 1] = root[:, 1].mean() if share else root[0, 1]
        return Pose(level, slerp(still.expand_as(turns).contiguous(), turns, torch.tensor(share)))
    if kind == "random":
        angles = _smooth_noise(asset, n, between(generator, 0.05, 0.6), generator)
        still = torch.zeros_like(turns) + turns.new_tensor([1.0, 0, 0, 0])
        base = still if between(generator) < 0.7 else turns
        travel = root * root.new_tensor([1.0, 0.0, 1.0])
        return Pose(travel if between(generator) < 0.7 else root, _added(asset, base, angles))
    if kind == "jitter":
        noise = torch.randn(n, turns.shape[1], 3, generator=generator) * between(generator, 0.06, 0.2)
        return Pose(root, _added(asset, turns, noise))
    angles = torch.zeros(n, turns.shape[1], 3)  # tangled: legs bent across each other and held there
    for leg in legs:
        angles[:, leg.joints[0]] = torch.randn(3, generator=generator) * 0.5
    return Pose(root, _added(asset, turns, angles))


def _out_of_step(clip: Clip, legs: list[Limb], kind: str, recipe: Recipe, generator: torch.Generator) -> Pose:
    """Some legs, not all, run ahead by a good part of a cycle, or stand still."""
    whole, n = clip.motion.pose.rotations, recipe.frames
    shift = max(1, min(n, round(clip.period * clip.motion.fps * between(generator, *recipe.late))))
    start = int(torch.randint(len(whole) - n - shift + 1, (1,), generator=generator))
    pose, frozen = window(clip.motion.pose, start, n), between(generator) < 0.25 and kind != "wrong_order"
    turns = pose.rotations.clone()
    for leg in _erring(legs, kind, generator):
        joints = list(leg.joints)
        turns[:, joints] = turns[:1, joints] if frozen else whole[start + shift : start + shift + n, joints]
    return Pose(pose.root, turns)


def _erring(legs: list[Limb], kind: str, generator: torch.Generator) -> list[Limb]:
    """Any half of the legs; or one of each pair (a wrong step); or whole pairs (a wrong order), which two legs lack."""
    pairs = 1 + max((leg.rank for leg in legs), default=0)
    if kind == "wrong_order" and pairs > 1:
        late = torch.randperm(pairs, generator=generator)[: pairs // 2].tolist()
        return [leg for leg in legs if leg.rank in late]
    if kind == "wrong_step":
        left = (torch.rand(pairs, generator=generator) < 0.5).tolist()
        return [leg for leg in legs if left[leg.rank] == (leg.side == "left")]
    return [legs[i] for i in torch.randperm(len(legs), generator=generator)[: max(1, len(legs) // 2)].tolist()]


def _smooth_noise(
    asset: RiggedAsset, frames: int, size: float, generator: torch.Generator
) -> Float[Tensor, "frames joints 3"]:
    """Compound angles that wander smoothly, bends most."""
    terms = 2 + int(torch.randint(6, (1,), generator=generator))
    time = torch.arange(frames)[:, None] + 0.5
    basis = torch.cos(math.pi / frames * time * torch.arange(terms)) / math.sqrt(terms)
    amounts = torch.randn(terms, len(asset.skeleton.names) * 3, generator=generator)
    angles = (basis @ amounts).reshape(frames, -1, 3)
    return 2 * size * angles * torch.tensor([1.0, 0.35, 0.35])


def _added(
    asset: RiggedAsset, turns: Float[Tensor, "frames joints 4"], angles: Float[Tensor, "frames joints 3"]
) -> Float[Tensor, "frames joints 4"]:
    return quaternion_multiply(turns, compound_to_quaternion(angles.to(turns), asset.skeleton.axes.to(turns)))


def draw(
    splats: SkinnedGaussians, asset: RiggedAsset, pose: Pose, recipe: Recipe, generator: torch.Generator
) -> tuple[Float[Tensor, "frames height width 3"], Float[Tensor, "height width 3"]]:
    """The clip in the colours of motion from a random place on either side, most often low and square to it.

    And the reference_image of who is in it.
    """
    off = between(generator, -1.0, 1.0)
    side = pick(generator, (90.0, 90.0, 270.0)) + recipe.off_side * off * abs(off)
    style = ClipStyle(
        "motion",
        recipe.width,
        recipe.height,
        azimuth=(side,),
        elevation=recipe.elevation[0] + (recipe.elevation[1] - recipe.elevation[0]) * between(generator) ** 2,
        field_of_view=between(generator, *recipe.field_of_view),
        margin=between(generator, *recipe.margin),
    )
    with torch.no_grad():
        transforms = skin_transforms(asset.skeleton, Pose(pose.root.float(), pose.rotations.float()))
        if not transforms.isfinite().all():
            raise ArithmeticError("a pose is not finite")
        ground = quiet_ground(pose_by_transforms(splats, transforms).means)
        ground = replace(ground, phase=tuple(2 * ground.cell * between(generator) for _ in "xz"))
        frames, camera = draw_splats(splats, transforms, style=style, ground=ground)
        reference_image = draw_reference_image(splats, transforms, style=style, camera=camera, ground=ground)
    return frames[0], reference_image[0]


def _bytes(seen: Float[Tensor, "*shape"]) -> UInt8[Tensor, "*shape"]:
    return (seen * 255).round().clamp(0, 255).to(torch.uint8)


def between(generator: torch.Generator, low: float = 0.0, high: float = 1.0) -> float:
    return low + (high - low) * float(torch.rand((), generator=generator))


def pick(generator: torch.Generator, items: tuple[_Item, ...]) -> _Item:
    return items[int(torch.randint(len(items), (1,), generator=generator))]


def new_seed(generator: torch.Generator) -> int:
    return 1 + int(torch.randint(2**30, (1,), generator=generator))
