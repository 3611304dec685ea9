"""Spring bones: tails, ears, hair and straps that a clip leaves stiff swing after the body.

The tip of each such bone hangs on a damped spring at the place where the clip would have it. What drives the spring is
the acceleration of that place alone, so a body at a steady speed drags nothing behind, and the answer is that of the
continuous spring at any frame rate: it is stepped exactly and cannot explode.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from scipy.linalg import expm

from jigdoll.kinematics import motion_to_world
from jigdoll.math.rotations import matrix_to_quaternion
from jigdoll.rig.anatomy import Anatomy
from jigdoll.rig.names import read_name
from jigdoll.rig.retarget.turns import shortest_turns
from jigdoll.types import Motion

SOFT = frozenset(
    "ear ears hair antenna antennae mane cape cloak ribbon scarf skirt cloth feather whisker feeler strap braid "
    "ponytail beard tail tails tentacle".split()
)
"""Words in the names of joints that swing; a chain of two joints or more needs no name."""
STIFF = frozenset(
    "jaw eye eyes eyelid brow mouth tongue lip cheek nose weapon prop horn horns tusk finger thumb".split()
)
"""Words in the names of joints that never swing by themselves."""
QUIET = 4.0
"""A chain whose joints turn less than this in the clip is left stiff by it [degrees]."""
LONGEST, SHORTEST = 2.0, 7.0
"""Swings per second of the longest and of the shortest bones; between, short ones swing faster, as pendulums do."""
DAMPING = 0.3
"""Of critical damping."""
MOST = 35.0
"""How far a bone may leave its place [degrees]."""


@dataclass(frozen=True)
class SoftChain:
    """A row of joints that swing, from the body outwards."""

    joints: tuple[int, ...]


def soft_chains(anatomy: Anatomy) -> tuple[SoftChain, ...]:
    """The tail, and what hangs on head and trunk without being a limb."""
    skeleton = anatomy.skeleton
    body = {0, *anatomy.trunk, *anatomy.neck}
    limbs = {joint for limb in anatomy.limbs if limb.kind not in ("head", "tail", "spine") for joint in limb.joints}
    limbs |= {j for part in anatomy.parts for j in (*part.before, part.root, part.middle, part.end, *part.after)}
    chains = [anatomy.tail] if anatomy.tail else []
    for joint, parent in enumerate(skeleton.parents):
        if joint in body | limbs or joint in anatomy.tail or parent not in body:
            continue
        chain = [joint]
        while len(skeleton.children[chain[-1]]) == 1:
            chain.append(skeleton.children[chain[-1]][0])
        words = {word for j in chain for word in read_name(skeleton.names[j]).tokens}
        if words & STIFF or limbs & set(chain) or skeleton.children[chain[-1]]:
            continue
        if words & SOFT or len(chain) > 2:  # the last joint is a mere tip
            chains.append(tuple(chain))
    return tuple(SoftChain(tuple(chain)) for chain in chains)


def follow_through(anatomy: Anatomy, motion: Motion, *, loop: bool = False) -> Motion:
    """The motion of a working copy with its stiff soft chains swinging after the body.

    A chain that moves in the clip is left as it is. With `loop` the swing is the one that the loop ends in.
    """
    chains = [chain for chain in soft_chains(anatomy) if _is_quiet(motion, chain.joints)]
    if not chains or len(motion) < 4:
        return motion
    world = motion_to_world(anatomy.skeleton, motion)
    for chain in chains:
        world = _swing(anatomy, world, chain.joints, motion.fps, loop=loop)
    return _with_rotations(anatomy, motion, world, [joint for chain in chains for joint in chain.joints])


def _is_quiet(motion: Motion, joints: Sequence[int]) -> bool:
    q = motion.pose.rotations[:, list(joints)].detach().double().numpy()
    cosine = np.abs((q * q[:1]).sum(-1))
    return float(np.degrees(2 * np.arccos(np.clip(cosine, 0, 1))).max()) < QUIET


def _swing(
    anatomy: Anatomy, world: Float[ndarray, "frames joints 4 4"], chain: Sequence[int], fps: float, *, loop: bool
) -> Float[ndarray, "frames joints 4 4"]:
    """World transforms with one chain swinging, joint by joint from the body outwards."""
    skeleton, world = anatomy.skeleton, world.copy()
    local = {j: np.linalg.inv(world[:, skeleton.parents[j]]) @ world[:, j] for j in _below(anatomy, chain[0])}
    for joint in chain:
        if joint != chain[0]:
            world[:, joint] = world[:, skeleton.parents[joint]] @ local[joint]
        children = skeleton.children[joint]
        if children:
            tip = (world[:, joint] @ local[children[0]])[:, :3, 3]
            bone = tip - world[:, joint, :3, 3]
            length = float(np.linalg.norm(bone, axis=1).mean())
            if length > 1e-6:
                away = _sprung(tip, length / anatomy.body_length, fps, loop=loop)
                most = length * np.sin(np.radians(MOST))
                far = np.linalg.norm(away, axis=1, keepdims=True)
                away = away * most * np.tanh(far / most) / np.maximum(far, 1e-9)
                world[:, joint, :3, :3] = shortest_turns(bone, bone + away) @ world[:, joint, :3, :3]
    for joint in _below(anatomy, chain[0])[1:]:
        if joint not in chain:
            world[:, joint] = world[:, skeleton.parents[joint]] @ local[joint]
    return world


def _below(anatomy: Anatomy, joint: int) -> list[int]:
    """The joint and all that hangs on it, parents first."""
    found = [joint]
    for each in found:
        found += anatomy.skeleton.children[each]
    return found


def _sprung(place: Float[ndarray, "frames 3"], length: float, fps: float, *, loop: bool) -> Float[ndarray, "frames 3"]:
    """How far a tip is from its place: y'' + 2 z w y' + w^2 y = -place'', stepped exactly for a push held per frame."""
    swings = float(np.clip(1.2 / np.sqrt(max(length, 1e-6)), LONGEST, SHORTEST))
    w = 2 * np.pi * swings
    dt = 1 / fps
    push = np.zeros_like(place)
    push[1:-1] = -(place[2:] - 2 * place[1:-1] + place[:-2]) / dt**2
    if loop and len(place) > 4:  # the seam goes on with the next round
        step, first = place[-1] - place[-2], place[1] - place[0]
        push[0] = push[-1] = -(first - step) / dt**2
    matrix = np.zeros((3, 3))
    matrix[0, 1], matrix[1] = 1.0, [-(w**2), -2 * DAMPING * w, 1.0]
    step = expm(matrix * dt)
    state = np.zeros((2, 3))
    away = np.zeros_like(place)
    rounds = 4 if loop else 1
    frames = len(place) - 1 if loop else len(place)
    for _ in range(rounds):
        for i in range(frames):
            away[i] = state[0]
            state = step[:2, :2] @ state + step[:2, 2:] * push[i]
    if loop:
        away[-1] = away[0]
    return away


def _with_rotations(
    anatomy: Anatomy, motion: Motion, world: Float[ndarray, "frames joints 4 4"], joints: Sequence[int]
) -> Motion:
    """The motion with the local rotations of some joints taken from world transforms."""
    skeleton = anatomy.skeleton
    rotations = motion.pose.rotations.clone()
    rest = skeleton.T_parent_joint.double().numpy()
    for joint in joints:
        above = world[:, skeleton.parents[joint], :3, :3] @ rest[joint, :3, :3]
        local = np.swapaxes(above, -1, -2) @ world[:, joint, :3, :3]
        rotations[:, joint] = matrix_to_quaternion(torch.from_numpy(local)).to(rotations)
    return replace(motion, pose=replace(motion.pose, rotations=rotations))
