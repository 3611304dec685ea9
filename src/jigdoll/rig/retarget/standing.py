"""Who stands when: feet, hands on the ground, and whether a winged body is in the air."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy import ndarray

from jigdoll.contacts import (
    STILL,
    Feet,
    find_stances,
    foot_velocities,
    ground_velocity,
    standing_levels,
    stays_in_place,
    with_travel,
)
from jigdoll.kinematics import motion_to_world
from jigdoll.rig.anatomy import Anatomy, LimbParts
from jigdoll.types import Motion

LEGS_IN_BODY = 3.0
"""A body of which the feet are judged is at most so many of its legs long."""
STOCK_STILL, SLOPE = 0.12, 0.06
"""A foot that is slower than this [body lengths / s] stands, even so high above its lowest level [body lengths]."""
HELD_UP = 0.3
"""A foot whose lowest way is so much higher than that of the lowest foot is held up [leg lengths]."""
HAND_ON_GROUND = 0.06
"""A hand is on the ground below this share of the height."""
OUT_OF_REACH = 0.1
"""Hands of a standing body end at least so high, or they tell nothing about the ground [heights]."""
WING, BEAT, SPREAD = 0.3, 0.6, 0.2
"""Wings that carry reach so far [body lengths]; they beat through such an angle [rad], or glide: they are spread by so
much more of their length than when the body is calm."""
FALLEN = 0.8
"""What flies keeps its pelvis above this share of its height at rest."""
IN_THE_AIR = 0.2
"""How far above the ground the lowest joint of a body that flies is, at least [body lengths]."""


@dataclass(frozen=True, eq=False)
class Standing:
    """A posed clip, over the ground or in the air, and which limbs stand when."""

    world: Float[ndarray, "frames joints 4 4"]
    limbs: tuple[LimbParts, ...]
    stands: Bool[ndarray, "frames limbs"]
    grounded: bool

    def of(self, parts: LimbParts) -> Bool[ndarray, " frames"]:
        """When a limb stands; never where it is none of those that may."""
        if parts not in self.limbs:
            return np.zeros(len(self.world), bool)
        return self.stands[:, self.limbs.index(parts)]


def standing_of(anatomy: Anatomy, motion: Motion, *, travel: bool) -> Standing:
    """When feet and hands stand; with `travel` what walks on the spot travels, and what flies on the ground rises."""
    world = motion_to_world(anatomy.skeleton, motion)
    nobody = np.zeros((len(motion), 0), bool)
    if not anatomy.legs or len(motion) <= 2:
        return Standing(world, (), nobody, anatomy.grounded)
    if flies(anatomy, world):
        return Standing(_lifted(anatomy, world) if travel else world, (), nobody, False)
    world, feet = _with_stances(anatomy, motion, world, travel=travel)
    arms = tuple(parts for parts in anatomy.parts if parts.limb.kind == "arm" and _reaches_no_ground(anatomy, parts))
    hands = [_hand_stands(anatomy, world, parts, motion.fps) for parts in arms]
    return Standing(world, (*(leg.parts for leg in anatomy.legs), *arms), np.stack([*feet.T, *hands], 1), True)


def flies(anatomy: Anatomy, world: Float[ndarray, "frames joints 4 4"]) -> bool:
    """Whether wings that can carry the body beat or are spread as in no calm pose, and it does not fall."""
    height = world[:, anatomy.pelvis, 1, 3]
    if float(height.min()) < FALLEN * float(anatomy.T_rest[anatomy.pelvis, 1, 3]):
        return False
    wings = [part for part in anatomy.parts if part.limb.kind == "wing" and part.reach > WING * anatomy.body_length]
    if not wings:
        return False
    beats, glides = [], []
    for part in wings:
        first, tip = part.root, part.limb.joints[-1]
        way = world[:, tip, :3, 3] - world[:, first, :3, 3]
        way = way / np.maximum(np.linalg.norm(way, axis=1, keepdims=True), 1e-9)
        beats.append(float(np.ptp(np.arcsin(np.clip(way[:, 1], -1, 1)))) > BEAT)
        glides.append(float(np.abs(way[:, 0]).min()) > _calm_spread(anatomy, part) + SPREAD)
    return all(beats) or all(glides)


def _calm_spread(anatomy: Anatomy, parts: LimbParts) -> float:
    """How far a wing is spread sideways while the body is calm, as a share of its length."""
    P, R = anatomy.T_rest[:, :3, 3], anatomy.T_rest[:, :3, :3]
    chain = parts.limb.joints[parts.limb.joints.index(parts.root) :]
    way = np.zeros(3)
    for joint, after in pairwise(chain):
        way += anatomy.R_neutral[joint] @ R[joint].T @ (P[after] - P[joint])
    return abs(float(way[0])) / max(float(np.linalg.norm(way)), 1e-9)


def _lifted(anatomy: Anatomy, world: Float[ndarray, "frames joints 4 4"]) -> Float[ndarray, "frames joints 4 4"]:
    """The clip in the air."""
    lift = IN_THE_AIR * anatomy.body_length - float(world[..., 1, 3].min())
    if lift <= 0:
        return world
    moved = world.copy()
    moved[..., 1, 3] += lift
    return moved


def _reaches_no_ground(anatomy: Anatomy, parts: LimbParts) -> bool:
    """Whether the hand of an arm that hangs down would stay clear of the ground while the body stands."""
    floor = float(anatomy.T_rest[:, 1, 3].min())
    hangs = float(anatomy.T_rest[parts.root, 1, 3]) - parts.length - floor
    return hangs > OUT_OF_REACH * anatomy.height


def _hand_stands(
    anatomy: Anatomy, world: Float[ndarray, "frames joints 4 4"], parts: LimbParts, fps: float
) -> Bool[ndarray, " frames"]:
    """When a hand is on the ground and does not slide."""
    hand = world[..., :3, 3][:, [parts.end, *parts.after]]
    low = hand[..., 1].min(1) < HAND_ON_GROUND * anatomy.height
    speed = np.linalg.norm(np.diff(hand[:, 0], axis=0)[:, [0, 2]], axis=1) * fps
    slow = speed < STILL * foot_scale(anatomy)
    return low & np.append(slow, slow[-1]) & np.insert(slow, 0, slow[0])


def foot_scale(anatomy: Anatomy) -> float:
    """The size by which the speed of feet is judged [m]: long tails and necks make nobody walk faster."""
    return min(anatomy.body_length, LEGS_IN_BODY * anatomy.leg_length)


def feet_of(anatomy: Anatomy, world: Float[ndarray, "frames joints 4 4"], fps: float) -> Feet:
    """The feet of a posed body."""
    count = max(len(leg.contact_joints) for leg in anatomy.legs)
    soles = np.empty((len(world), len(anatomy.legs), count, 3))
    for i, leg in enumerate(anatomy.legs):
        T = world[:, leg.contact_joints]
        points = np.einsum("fpab,pb->fpa", T[..., :3, :3], leg.contact_points) + T[..., :3, 3]
        soles[:, i] = points[:, np.arange(count) % points.shape[1]]
    joints = np.stack([world[:, leg.pivot, :3, 3] for leg in anatomy.legs], 1)
    return Feet(torch.from_numpy(joints), torch.from_numpy(soles), fps, foot_scale(anatomy))


def _with_stances(
    anatomy: Anatomy, motion: Motion, world: Float[ndarray, "frames joints 4 4"], *, travel: bool
) -> tuple[Float[ndarray, "frames joints 4 4"], Bool[ndarray, "frames legs"]]:
    """When the feet stand; a clip that walks on the spot walks over the ground."""
    feet = feet_of(anatomy, world, motion.fps)
    root = motion.pose.root
    if travel and stays_in_place(root, motion.fps, length=foot_scale(anatomy)):
        velocity = -ground_velocity(feet)
        if float(velocity.norm()) > 0:
            motion = with_travel(motion, velocity)
            world = motion_to_world(anatomy.skeleton, motion)
            feet = feet_of(anatomy, world, motion.fps)
            stands = find_stances(feet, travel=velocity.double())
            return world, (stands & _on_ground(feet, anatomy)).numpy()
    way = (root[-1] - root[0])[[0, 2]] * motion.fps / max(len(root) - 1, 1)
    stands = find_stances(feet, travel=way.double()) | _stock_still(feet)
    return world, (stands & _on_ground(feet, anatomy)).numpy()


def _on_ground(feet: Feet, anatomy: Anatomy) -> Bool[torch.Tensor, " feet"]:
    """Which feet come down to the ground on which the others stand: who sits up holds two in the air, however still."""
    levels = standing_levels(feet)
    return levels - levels.min() <= HELD_UP * anatomy.leg_length


def _stock_still(feet: Feet) -> Bool[torch.Tensor, "frames feet"]:
    """Feet that do not move at all near the ground stand, though the floors of recordings slope by some centimetres."""
    above = feet.soles[..., 1].amin(-1) - standing_levels(feet)
    slow = foot_velocities(feet).norm(dim=-1) < STOCK_STILL * feet.length
    both = torch.cat([slow, slow[-1:]]) & torch.cat([slow[:1], slow])
    return both & (above <= SLOPE * feet.length)
