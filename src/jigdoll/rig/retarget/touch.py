"""Hands: what they touch in the source they touch on the target."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from scipy.ndimage import gaussian_filter1d

from jigdoll.kinematics import motion_to_world
from jigdoll.rig.anatomy import Anatomy, LimbParts
from jigdoll.rig.retarget.capsules import Capsules, capsules_of, nearest_places
from jigdoll.rig.retarget.feet import places, reach
from jigdoll.rig.retarget.turns import nearest_turns
from jigdoll.types import Motion

TOUCHING, AWAY = 0.01, 0.04
"""A hand touches within this distance of the skin, and does not from that one on [heights]."""
CLASPED, APART = 0.08, 0.16
"""Wrists of hands that touch each other are within this distance, and are not from that one on [heights]."""
HANGING, STRETCHED = (0.4, 0.7), (0.95, 0.88)
"""An arm hangs if it is within this angle of straight down and does not from that one on [rad], and is so straight."""
SECONDS = 0.08
"""Corrections of hands are smoothed over this time."""


@dataclass(frozen=True, eq=False)
class Touch:
    """A hand on a part of the body."""

    weight: Float[ndarray, " frames"]
    """1 while it touches, 0 while it does not."""
    along: Float[ndarray, " frames"]
    """Where on the part, 0 to 1."""
    gap: Float[ndarray, " frames"]
    """Between the wrist and the skin [lengths of the arm]."""
    out: Float[ndarray, "frames 3"]
    """The direction from the part's axis to the wrist, in the frame of the part's turn since rest."""


@dataclass(frozen=True, eq=False)
class Touches:
    """What the hands of a source touch."""

    body: Mapping[tuple[str, str], Touch]
    """By arm and part of the body."""
    hands: Float[ndarray, " frames"]
    """1 while both hands touch each other."""
    between: Float[ndarray, "frames 3"]
    """From the right wrist to the left one, in the chest's frame [lengths of the arm]."""


def touches_of(anatomy: Anatomy, motion: Motion) -> Touches | None:
    """What the hands touch; None for bodies without two arms."""
    arms = _arms(anatomy)
    if len(arms) != 2 or anatomy.kind != "person":
        return None
    world = motion_to_world(anatomy.skeleton, motion)
    G, P = nearest_turns(world[..., :3, :3]), world[..., :3, 3]
    since = G @ anatomy.T_rest[:, :3, :3].transpose(0, 2, 1)
    capsules = capsules_of(anatomy)
    found: dict[tuple[str, str], Touch] = {}
    for arm in arms:
        near = nearest_places(capsules, G, P, P[:, arm.end])
        active = 1 - _hangs(anatomy, arm, since, P)
        for part in dict.fromkeys(capsules.parts):
            own = [i for i, name in enumerate(capsules.parts) if name == part]
            best = np.array(own)[near.gap[:, own].argmin(1)]
            frames = np.arange(len(P))
            gap = near.gap[frames, best]
            weight = _smooth(active * _step(gap / anatomy.height, TOUCHING, AWAY), motion.fps)
            if weight.max() > 0.05:
                turn = since[frames, np.array(capsules.joints)[best]]
                out = np.einsum("fba,fb->fa", turn, near.out[frames, best])
                found[arm.name, part] = Touch(weight, near.along[frames, best], gap / arm.length, out)
    left, right = arms
    between = P[:, left.end] - P[:, right.end]
    hands = _smooth(_step(np.linalg.norm(between, axis=1) / anatomy.height, CLASPED, APART), motion.fps)
    between = np.einsum("fba,fb->fa", since[:, anatomy.trunk[-1]], between) / left.length
    return Touches(found, hands, between)


def _hangs(
    anatomy: Anatomy, arm: LimbParts, since: Float[ndarray, "frames joints 3 3"], P: Float[ndarray, "frames joints 3"]
) -> Float[ndarray, " frames"]:
    """1 while an arm hangs straight down beside the body: its hand is near the thigh but touches nothing."""
    way = P[:, arm.end] - P[:, arm.root]
    far = np.linalg.norm(way, axis=1)
    down = -since[:, anatomy.trunk[-1]][:, :, 1]
    angle = np.arccos(np.clip((way * down).sum(1) / np.maximum(far, 1e-9), -1, 1))
    return _step(angle, *HANGING) * _step(-far / arm.length, *(-x for x in STRETCHED))


def keep_touches(
    touches: Touches,
    anatomy: Anatomy,
    G: Float[ndarray, "frames joints 3 3"],
    root: Float[ndarray, "frames 3"],
    partners: Mapping[str, str],
) -> Float[ndarray, "frames joints 3 3"]:
    """World rotations with hands where the source's hands touch; `partners` names the source's arm of each arm."""
    arms = [arm for arm in _arms(anatomy) if arm.name in partners and arm.root != arm.middle]
    capsules = capsules_of(anatomy)
    R_rest = anatomy.T_rest[:, :3, :3]
    for arm in arms:
        P = places(anatomy, G, root)
        wanted, weight = np.zeros((len(G), 3)), np.zeros(len(G))
        for (theirs, part), touch in touches.body.items():
            if theirs != partners[arm.name] or part not in capsules.parts:
                continue
            place = _place(capsules, part, touch, arm.length, G, P, R_rest)
            wanted += touch.weight[:, None] * place
            weight += touch.weight
        if weight.max() > 0.05:
            share = np.minimum(weight, 1)[:, None]
            mean = wanted / np.maximum(weight, 1e-9)[:, None]
            target = P[:, arm.end] + share * (np.where(weight[:, None] > 1e-6, mean, P[:, arm.end]) - P[:, arm.end])
            G = reach(anatomy, G, P, arm, target)
    if len(arms) == 2 and touches.hands.max() > 0.05:
        left, right = arms
        P = places(anatomy, G, root)
        chest = G[:, anatomy.trunk[-1]] @ R_rest[anatomy.trunk[-1]].T
        way = np.einsum("fab,fb->fa", chest, touches.between) * left.length
        middle = (P[:, left.end] + P[:, right.end]) / 2
        share = touches.hands[:, None]
        for arm, sign in ((left, 0.5), (right, -0.5)):
            G = reach(anatomy, G, P, arm, (1 - share) * P[:, arm.end] + share * (middle + sign * way))
    return G


def _place(
    capsules: Capsules,
    part: str,
    touch: Touch,
    length: float,
    G: Float[ndarray, "frames joints 3 3"],
    P: Float[ndarray, "frames joints 3"],
    R_rest: Float[ndarray, "joints 3 3"],
) -> Float[ndarray, "frames 3"]:
    """Where the wrist of a hand is that touches a part of this body as it does the source's."""
    own = [i for i, name in enumerate(capsules.parts) if name == part]
    starts, stops = capsules.along[own, 0], capsules.along[own, 1]
    k = np.clip(np.searchsorted(stops, touch.along), 0, len(own) - 1)
    t = np.clip((touch.along - starts[k]) / np.maximum(stops[k] - starts[k], 1e-9), 0, 1)
    bone = np.array(own)[k]
    joint = np.array(capsules.joints)[bone]
    frames = np.arange(len(G))
    turn = G[frames, joint]
    axis = P[frames, joint] + t[:, None] * np.einsum("fab,fb->fa", turn, capsules.ends[bone, 1])
    out = np.einsum("fab,fb->fa", turn @ R_rest[joint].transpose(0, 2, 1), touch.out)
    return axis + out * (capsules.radii[bone] + touch.gap * length)[:, None]


def _arms(anatomy: Anatomy) -> list[LimbParts]:
    return [parts for parts in anatomy.parts if parts.limb.kind == "arm" and parts.limb.rank == 0]


def _step(values: Float[ndarray, " frames"], near: float, far: float) -> Float[ndarray, " frames"]:
    t = np.clip((far - values) / (far - near), 0, 1)
    return t * t * (3 - 2 * t)


def _smooth(values: Float[ndarray, " frames"], fps: float) -> Float[ndarray, " frames"]:
    return gaussian_filter1d(values, SECONDS * fps, mode="nearest")
