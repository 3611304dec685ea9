"""Joints kept within their limits: knees and elbows fold the way they are built, other joints bend and twist so far.

Limits are those of the joints' roles (`rig.limits`). Artists and actors leave them often, so a joint has some play, and
may leave them by as much as the source's joint does.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from jigdoll.kinematics import motion_to_world
from jigdoll.rig.anatomy import Anatomy, LimbParts, anatomy_of
from jigdoll.rig.limits import HINGES
from jigdoll.rig.remember import remembered
from jigdoll.rig.retarget.feet import beyond, limb_joints, places
from jigdoll.rig.retarget.limb_motion import STANDING, chain_end, limb_bones, middle_parts
from jigdoll.rig.retarget.turns import from_rotvec, shortest_turns, to_rotvec
from jigdoll.types import RiggedAsset

PLAY = 0.35
"""How far a joint may be beyond its limit, for the roles know little of single bodies [rad]."""
SOFT = 0.15
"""What goes on beyond that is pressed together into this [rad]."""
BENT = 0.1
"""A limb that is bent by more than this at rest, or by its own clips, shows which way it folds [rad]."""
ALIKE = 0.02
"""A limb that is folded by that much more than the source's to the wrong side is folded wrongly [rad]."""
SELDOM = 0.1
"""A limb that its own clips fold the other way more often than this has no right way."""
CLIPS = 6
"""So many clips of a character are asked."""
CURLED, DOWN = np.radians(100.0), 0.5
"""A neck that carries a head ahead of the body hangs down at most so far [rad from ahead]; what points down by less
than this sine looks back, and may."""
_FREE = ("root", "tip", "free")


@dataclass(frozen=True, eq=False)
class Excess:
    """How far the joints of a source are beyond their limits."""

    twist: Mapping[str, Float[ndarray, " frames"]]
    """By station of a limb or part of the middle line [rad]."""
    swing: Mapping[str, Float[ndarray, " frames"]]
    folds: Mapping[str, Float[ndarray, " frames"]]
    """How far each limb is folded, negative the wrong way [rad]."""


def excess_of(anatomy: Anatomy, G: Float[ndarray, "frames joints 3 3"], P: Float[ndarray, "frames joints 3"]) -> Excess:
    """How far the joints of a posed body are beyond their limits."""
    twist: dict[str, ndarray] = {}
    swing: dict[str, ndarray] = {}
    parents = anatomy.skeleton.parents
    for joint, name in _driven(anatomy).items():
        turned, bent, _ = _swing_and_twist(anatomy, joint, G[:, parents[joint]], G[:, joint])
        low, high, cone = _limits(anatomy, joint)
        beyond = np.maximum(turned - high, 0) + np.maximum(low - turned, 0)
        twist[name] = np.maximum(twist.get(name, 0.0), beyond)
        swing[name] = np.maximum(swing.get(name, 0.0), np.maximum(np.linalg.norm(bent, axis=1) - cone, 0))
    folds = {parts.name: fold for parts in anatomy.parts if (fold := _fold(anatomy, parts, G, P)) is not None}
    return Excess(twist, swing, folds)


def within_limits(
    anatomy: Anatomy,
    G: Float[ndarray, "frames joints 3 3"],
    partners: Mapping[str, str],
    excess: Excess | None,
) -> Float[ndarray, "frames joints 3 3"]:
    """World rotations of joints within their limits; each joint keeps its world rotation where it can.

    `partners` names the source's limb of each limb, `excess` is what the source's joints do beyond their limits.
    """
    parents, R_rest = anatomy.skeleton.parents, anatomy.T_rest[:, :3, :3]
    driven = _driven(anatomy)
    out = G.copy()
    for joint, parent in enumerate(parents):
        if parent < 0:
            continue
        if joint not in driven:
            out[:, joint] = out[:, parent] @ np.swapaxes(G[:, parent], -1, -2) @ G[:, joint]
            continue
        turned, bent, rebuilt = _swing_and_twist(anatomy, joint, out[:, parent], G[:, joint])
        low, high, cone = _limits(anatomy, joint)
        more_twist, more_swing = _play(driven[joint], partners, excess)
        size = np.linalg.norm(bent, axis=1)
        kept = _pressed(size, cone + more_swing)
        new_twist = np.sign(turned) * _pressed(np.abs(turned), np.where(turned > 0, high, -low) + more_twist)
        changed = (np.abs(kept - size) > 1e-6) | (np.abs(new_twist - turned) > 1e-6)
        if changed.any():
            local = rebuilt(bent * (kept / np.maximum(size, 1e-9))[:, None], new_twist)
            still = R_rest[parent].T @ R_rest[joint]
            out[changed, joint] = (out[:, parent] @ still @ local)[changed]
    return out


def fold_rightly(
    anatomy: Anatomy,
    G: Float[ndarray, "frames joints 3 3"],
    root: Float[ndarray, "frames 3"],
    partners: Mapping[str, str],
    excess: Excess | None,
) -> Float[ndarray, "frames joints 3 3"]:
    """World rotations with knees and elbows on the side to which they fold; the ends of limbs stay where they are."""
    for parts in anatomy.parts:
        if parts.limb.kind != "leg":
            continue  # elbows are where the source's are: how an upper arm is rolled differs from rig to rig
        P = places(anatomy, G, root)
        fold = _fold(anatomy, parts, G, P)
        if fold is None:
            continue
        theirs = np.zeros(1) if excess is None else excess.folds.get(partners.get(parts.name, ""), np.zeros(1))
        wrong = (fold < np.minimum(theirs, 0.0) - ALIKE) & (theirs > -BENT)
        if wrong.any():
            G = _reflected(anatomy, parts, G, P, wrong)
    return G


def uncurled(
    anatomy: Anatomy, G: Float[ndarray, "frames joints 3 3"], heading: Float[ndarray, "frames 3 3"]
) -> Float[ndarray, "frames joints 3 3"]:
    """World rotations with no bone of an animal's neck and head pointing back under the chest.

    Necks turn since they are carried: a head that is carried lower than the source's would go on beyond the vertical.
    """
    if anatomy.kind not in STANDING or not anatomy.neck:
        return G
    P, R = anatomy.T_rest[:, :3, 3], anatomy.T_rest[:, :3, :3]
    ends = [*anatomy.neck[1:], chain_end(anatomy, anatomy.neck)]
    upright = G[:, anatomy.pelvis, 1] @ R[anatomy.pelvis].T[:, 1] > np.cos(1.0)
    G = G.copy()
    for joint, end in zip(anatomy.neck, ends, strict=True):
        bone = P[end] - P[joint]
        size = float(np.linalg.norm(bone))
        if size < 1e-6 or bone[2] < 0:
            continue
        way = G[:, joint] @ (R[joint].T @ (bone / size))
        ahead, low = (way * heading[:, :, 2]).sum(1), -way[:, 1]
        angle = np.arctan2(low, ahead)
        over = np.where(upright & (low > DOWN) & (ahead < 0), angle - CURLED, 0.0)
        back = SOFT * np.tanh(np.maximum(over, 0) / SOFT) - np.maximum(over, 0)
        if back.any():
            mine = [j for j in beyond(anatomy, joint) if j == joint or j not in anatomy.neck]
            mine = [joint] if joint != anatomy.neck[-1] else mine
            G[:, mine] = from_rotvec(heading[:, :, 0] * back[:, None])[:, None] @ G[:, mine]
    return G


def _reflected(
    anatomy: Anatomy,
    parts: LimbParts,
    G: ndarray,
    P: Float[ndarray, "frames joints 3"],
    where: Bool[ndarray, " frames"],
) -> Float[ndarray, "frames joints 3 3"]:
    """The middle of a limb on the other side of the line from its root to its end, in the same plane."""
    line = P[:, parts.end] - P[:, parts.root]
    line = line / np.maximum(np.linalg.norm(line, axis=1, keepdims=True), 1e-9)
    upper, lower = limb_joints(anatomy, parts)
    G = G.copy()
    for joints, a, b in ((upper, parts.root, parts.middle), (lower, parts.middle, parts.end)):
        bone = P[:, b] - P[:, a]
        mirrored = 2 * (bone * line).sum(1, keepdims=True) * line - bone
        turn = np.where(where[:, None, None], shortest_turns(bone, mirrored), np.eye(3))
        G[:, joints] = turn[:, None] @ G[:, joints]
    return G


def _fold(anatomy: Anatomy, parts: LimbParts, G: ndarray, P: ndarray) -> Float[ndarray, " frames"] | None:
    """How far a limb is folded, negative the wrong way [rad]; None where the body does not show which way is right."""
    axis = _hinges(anatomy.asset).get((parts.root, parts.middle, parts.end))
    if axis is None and parts.root != parts.middle:
        axis = _hinge(anatomy, parts)
    if axis is None:
        return None
    return _angle(parts, G, P, axis)


def _angle(parts: LimbParts, G: ndarray, P: ndarray, axis: Float[ndarray, "3"]) -> Float[ndarray, " frames"]:
    before, after = P[:, parts.middle] - P[:, parts.root], P[:, parts.end] - P[:, parts.middle]
    hinge = G[:, parts.root] @ axis
    sine = (np.cross(before, after) * hinge).sum(1)
    flat = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
    return np.arcsin(np.clip(sine / np.maximum(flat, 1e-12), -1, 1))


@remembered
def _hinges(asset: RiggedAsset) -> dict[tuple[int, int, int], Float[ndarray, "3"] | None]:
    """Of each limb with two bones the axis about which it folds, in its root joint's frame."""
    anatomy = anatomy_of(asset)
    limbs = [parts for parts in anatomy.parts if parts.root != parts.middle]
    return {(parts.root, parts.middle, parts.end): _hinge(anatomy, parts) for parts in limbs}


def _hinge(anatomy: Anatomy, parts: LimbParts) -> Float[ndarray, "3"] | None:
    """The axis about which a limb folds: as its rest shows, else as its own clips do, people as people do."""
    if parts.limb.kind not in ("leg", "arm"):
        return None
    P, R = anatomy.T_rest[:, :3, 3], anatomy.T_rest[parts.root, :3, :3]
    before, after = P[parts.middle] - P[parts.root], P[parts.end] - P[parts.middle]
    normal = np.cross(before, after)
    sine = float(np.linalg.norm(normal)) / max(float(np.linalg.norm(before) * np.linalg.norm(after)), 1e-12)
    if anatomy.kind == "person" and parts.limb.kind == "leg":  # knees go ahead, however little the rest shows it
        return R.T @ np.array([1.0, 0.0, 0.0])
    shown = _shown_folds(anatomy, parts)
    if sine > BENT:
        axis = R.T @ (normal / np.linalg.norm(normal))
    else:
        mean = shown.mean(0) if len(shown) else np.zeros(3)
        if float(np.linalg.norm(mean)) < BENT:
            return None
        axis = mean / np.linalg.norm(mean)
    both_ways = len(shown) and float((shown @ axis < -BENT).mean()) > SELDOM
    return None if both_ways else axis


def _shown_folds(anatomy: Anatomy, parts: LimbParts) -> Float[ndarray, "frames 3"]:
    """The axes about which a limb is folded in the character's own clips, in its root's frame, as long as the sine."""
    ways = [np.zeros((0, 3))]
    for clip in list(anatomy.asset.clips.values())[:CLIPS]:
        T = motion_to_world(anatomy.skeleton, clip)[::3]
        P = T[..., :3, 3]
        before, after = P[:, parts.middle] - P[:, parts.root], P[:, parts.end] - P[:, parts.middle]
        size = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
        way = np.einsum("fba,fb->fa", T[:, parts.root, :3, :3], np.cross(before, after))
        ways.append(way / np.maximum(size, 1e-12)[:, None])
    return np.concatenate(ways)


def _driven(anatomy: Anatomy) -> dict[int, str]:
    """Joints that limb space speaks of and that have limits, by the name under which the source has them."""
    found: dict[int, str] = {}
    for part, chain in middle_parts(anatomy).items():
        found |= dict.fromkeys(chain, part)
    for parts in anatomy.parts:
        for station, bone in enumerate(limb_bones(parts)):
            if bone is not None:
                found[bone[0]] = f"{parts.name}|{station}"
    return {j: name for j, name in found.items() if anatomy.roles[j] not in _FREE and anatomy.skeleton.parents[j] >= 0}


def _play(
    name: str, partners: Mapping[str, str], excess: Excess | None
) -> tuple[Float[ndarray, " frames"] | float, Float[ndarray, " frames"] | float]:
    """How far a joint may be beyond its limits: in twist and in swing."""
    if excess is None:
        return PLAY, PLAY
    limb, bar, station = name.partition("|")
    theirs = f"{partners.get(limb, '')}|{station}" if bar else name
    return np.maximum(excess.twist.get(theirs, 0.0), PLAY), np.maximum(excess.swing.get(theirs, 0.0), PLAY)


def _limits(anatomy: Anatomy, joint: int) -> tuple[float, float, float]:
    """The least and the most twist, and the widest swing [rad]; hinges swing as far as they fold."""
    limits = anatomy.skeleton.limits[joint].double().numpy()
    cone = np.pi if anatomy.roles[joint] in HINGES else float(np.abs(limits[:2]).max())
    return float(limits[2, 0]), float(limits[2, 1]), cone


def _swing_and_twist(
    anatomy: Anatomy, joint: int, above: Float[ndarray, "frames 3 3"], G: Float[ndarray, "frames 3 3"]
) -> tuple[Float[ndarray, " frames"], Float[ndarray, "frames 3"], Callable[[ndarray, ndarray], ndarray]]:
    """A joint's twist about its bone [rad], its swing as axis times angle, and what puts both together again."""
    R_rest, parent = anatomy.T_rest[:, :3, :3], anatomy.skeleton.parents[joint]
    still = R_rest[parent].T @ R_rest[joint]
    local = np.swapaxes(above @ still, -1, -2) @ G
    bone = anatomy.skeleton.axes[joint, :, 2].double().numpy()
    swing = shortest_turns(np.broadcast_to(bone, (len(G), 3)), local @ bone)
    twist = to_rotvec(np.swapaxes(swing, -1, -2) @ local) @ bone

    def rebuilt(bent: Float[ndarray, "frames 3"], turned: Float[ndarray, " frames"]) -> Float[ndarray, "frames 3 3"]:
        return from_rotvec(bent) @ from_rotvec(turned[:, None] * bone)

    return twist, to_rotvec(swing), rebuilt


def _pressed(values: Float[ndarray, " frames"], limit: Float[ndarray, " frames"] | float) -> ndarray:
    """Values that hardly go on beyond their limit."""
    over = np.maximum(values - limit, 0)
    return values - over + SOFT * np.tanh(over / SOFT)
