"""Feet on the ground: the sole of a standing foot stays where it is, the body moves with it, the leg reaches it."""

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray
from scipy.ndimage import gaussian_filter1d

from jigdoll.rig.anatomy import Anatomy, Leg, LimbParts
from jigdoll.rig.limits import FLEXED
from jigdoll.rig.retarget.support import Standing, support
from jigdoll.rig.retarget.turns import from_rotvec, shortest_turns

SMOOTH_SECONDS = 0.12
"""What the feet ask of the body is smoothed over this time."""
SHORTEST = 3
"""Stances of fewer frames are no stances, and so are gaps."""
STRETCH = 0.998
"""How straight a leg may become, as a share of its bones."""
FOLDED = np.radians(180.0 - FLEXED)
"""The least angle between the bones of a limb that is folded [rad]."""
ROUNDS = 3
"""The soles of legs of one bone turn with them: places and heights are found again so many times."""


def lock_feet(
    anatomy: Anatomy,
    G: Float[ndarray, "frames joints 3 3"],
    root: Float[ndarray, "frames 3"],
    stands: Bool[ndarray, "frames legs"],
    fps: float,
) -> tuple[Float[ndarray, "frames joints 3 3"], Float[ndarray, "frames 3"]]:
    """World rotations and root places with feet that stand still while they stand, on the ground and not below it."""
    root = _travel_with_feet(anatomy, G, root, stands, fps)
    root = _rest_on_feet(anatomy, G, root, stands, fps)
    anchors = _anchors(anatomy, places(anatomy, G, root), stands)
    rounds = ROUNDS if any(_is_stiff(leg.parts) for leg in anatomy.legs) else 1
    for _ in range(rounds):
        G, root = _carried_by_legs(anatomy, G, root, stands, anchors, fps)
        P = places(anatomy, G, root)
        offsets = _offsets(anatomy, G, P, stands, anchors)
        G = G.copy()
        for i, leg in enumerate(anatomy.legs):
            G = reach(anatomy, G, P, leg.parts, P[:, leg.parts.end] + offsets[:, i])
    return G, root


def places(
    anatomy: Anatomy, G: Float[ndarray, "frames joints 3 3"], root: Float[ndarray, "frames 3"]
) -> Float[ndarray, "frames joints 3"]:
    """Where the joints are, from world rotations and the root's places."""
    P_rest, R_rest = anatomy.T_rest[:, :3, 3], anatomy.T_rest[:, :3, :3]
    P = np.empty((*G.shape[:2], 3))
    for joint, parent in enumerate(anatomy.skeleton.parents):
        if parent < 0:
            P[:, joint] = root
        else:
            bone = R_rest[parent].T @ (P_rest[joint] - P_rest[parent])
            P[:, joint] = P[:, parent] + G[:, parent] @ bone
    return P


def soles(
    leg: Leg, G: Float[ndarray, "frames joints 3 3"], P: Float[ndarray, "frames joints 3"]
) -> Float[ndarray, "frames points 3"]:
    """Where the skin of a foot that may touch the ground is."""
    turned = np.einsum("fpab,pb->fpa", G[:, leg.contact_joints], leg.contact_points)
    return turned + P[:, leg.contact_joints]


def reach(
    anatomy: Anatomy,
    G: Float[ndarray, "frames joints 3 3"],
    P: Float[ndarray, "frames joints 3"],
    parts: LimbParts,
    target: Float[ndarray, "frames 3"],
) -> Float[ndarray, "frames joints 3 3"]:
    """World rotations with the limb's end at the target: the middle joint opens or folds, then the limb turns to aim.

    The limb keeps the plane in which it bends, and what hangs on its end keeps its own rotation in the world.
    """
    G = G.copy()
    root, middle, end = P[:, parts.root], P[:, parts.middle], P[:, parts.end]
    upper_joints, lower_joints = limb_joints(anatomy, parts)
    if parts.root == parts.middle:
        turn = shortest_turns(end - root, target - root)
        G[:, upper_joints] = turn[:, None] @ G[:, upper_joints]
        return G
    a = np.linalg.norm(middle - root, axis=1)
    b = np.linalg.norm(end - middle, axis=1)
    have = np.linalg.norm(end - root, axis=1)
    want = np.clip(np.linalg.norm(target - root, axis=1), *_spans(P, parts))
    axis = np.cross(middle - root, end - middle)
    flat = np.linalg.norm(axis, axis=1) < 1e-4 * a * b
    if flat.any():  # a straight limb bends about the body's own sideways axis
        axis[flat] = G[flat, parts.root] @ _hinge_hint(anatomy, parts)
    axis /= np.maximum(np.linalg.norm(axis, axis=1, keepdims=True), 1e-12)

    def inner(distance: ndarray) -> ndarray:
        return np.arccos(np.clip((a**2 + b**2 - distance**2) / np.maximum(2 * a * b, 1e-12), -1, 1))

    fold = inner(have) - inner(want)  # the lower bone turns about the middle by this much more
    bend = from_rotvec(axis * fold[:, None])
    new_end = middle + np.einsum("fab,fb->fa", bend, end - middle)
    aim = shortest_turns(new_end - root, target - root)
    G[:, lower_joints] = (aim @ bend)[:, None] @ G[:, lower_joints]
    G[:, upper_joints] = aim[:, None] @ G[:, upper_joints]
    return G


def limb_joints(anatomy: Anatomy, parts: LimbParts) -> tuple[list[int], list[int]]:
    """The joints that turn with the upper bone and with the lower one, with all that hangs on these bones.

    What hangs on the limb's end turns with neither.
    """
    foot = set(beyond(anatomy, parts.end))
    if parts.root == parts.middle:
        return [joint for joint in beyond(anatomy, parts.root) if joint not in foot], []
    lower = [joint for joint in beyond(anatomy, parts.middle) if joint not in foot]
    rest = foot | set(lower)
    return [joint for joint in beyond(anatomy, parts.root) if joint not in rest], lower


def beyond(anatomy: Anatomy, joint: int) -> list[int]:
    """A joint and all that hangs on it."""
    found = [joint]
    for each in found:
        found += anatomy.skeleton.children[each]
    return found


def _hinge_hint(anatomy: Anatomy, parts: LimbParts) -> Float[ndarray, " 3"]:
    """In the root joint's frame the axis about which the limb folds: a knee backwards, an elbow forwards."""
    side = np.array([1.0, 0.0, 0.0]) if parts.limb.kind == "leg" else np.array([-1.0, 0.0, 0.0])
    return anatomy.T_rest[parts.root, :3, :3].T @ side


def long_runs(flags: ndarray) -> ndarray:
    """Without gaps and then without stretches that are too short."""
    kept = flags.copy()
    for wanted in (False, True):
        for first, last in runs(kept == wanted):
            if last - first < SHORTEST and first > 0 and last < len(kept):
                kept[first:last] = not wanted
    return kept


def runs(flags: ndarray) -> list[tuple[int, int]]:
    """The stretches of truth, each from its first frame to the one after its last."""
    edges = np.diff(np.concatenate([[0], flags.astype(int), [0]]))
    return list(zip(np.flatnonzero(edges == 1).tolist(), np.flatnonzero(edges == -1).tolist(), strict=True))


def _travel_with_feet(
    anatomy: Anatomy, G: ndarray, root: Float[ndarray, "frames 3"], stands: ndarray, fps: float
) -> Float[ndarray, "frames 3"]:
    """The root's way over the ground such that standing feet slip as little as may be."""
    P = places(anatomy, G, root)
    slip = np.zeros((len(root) - 1, 2))
    count = np.zeros(len(root) - 1)
    for i, leg in enumerate(anatomy.legs):
        step = np.diff(P[:, leg.pivot][:, [0, 2]], axis=0)
        both = stands[1:, i] & stands[:-1, i]
        slip[both] += step[both]
        count += both
    if not count.any():
        return root
    mean = np.where(count[:, None] > 0, slip / np.maximum(count, 1)[:, None], 0.0)
    sigma = SMOOTH_SECONDS * fps
    share = gaussian_filter1d((count > 0).astype(float), sigma, axis=0)
    trust = np.minimum(share / 0.3, 1) / np.maximum(share, 0.05)
    smooth = gaussian_filter1d(mean, sigma, axis=0) * trust[:, None]
    way = np.concatenate([np.zeros((1, 2)), np.cumsum(smooth, 0)])
    moved = root.copy()
    moved[:, [0, 2]] -= way
    return moved


def _rest_on_feet(
    anatomy: Anatomy, G: ndarray, root: Float[ndarray, "frames 3"], stands: ndarray, fps: float
) -> Float[ndarray, "frames 3"]:
    """The root raised or lowered so that standing soles are on the ground."""
    P = places(anatomy, G, root)
    low = np.stack([soles(leg, G, P)[..., 1].min(1) for leg in anatomy.legs], 1)
    count = stands.sum(1)
    need = np.where(count > 0, -(low * stands).sum(1) / np.maximum(count, 1), np.nan)
    if all(leg.parts.root == leg.parts.middle for leg in anatomy.legs):  # legs of one bone cannot bend to help
        need = np.where(count > 0, -low.min(1), np.nan)
    known = np.flatnonzero(~np.isnan(need))
    if not len(known):
        lowest = float(low.min())
        lift = np.full(len(root), -lowest if lowest < 0 else 0.0)
    else:
        lift = np.interp(np.arange(len(root)), known, need[known])
    lift = gaussian_filter1d(lift, SMOOTH_SECONDS * fps, mode="nearest")
    moved = root.copy()
    moved[:, 1] += lift
    return moved


def _anchors(
    anatomy: Anatomy, P: Float[ndarray, "frames joints 3"], stands: Bool[ndarray, "frames legs"]
) -> list[list[Float[ndarray, " 2"]]]:
    """Where on the ground each stance of each leg is, along x and z."""
    return [
        [P[first:last, leg.pivot].mean(0)[[0, 2]] for first, last in runs(stands[:, i])]
        for i, leg in enumerate(anatomy.legs)
    ]


def _offsets(
    anatomy: Anatomy,
    G: Float[ndarray, "frames joints 3 3"],
    P: Float[ndarray, "frames joints 3"],
    stands: Bool[ndarray, "frames legs"],
    anchors: list[list[Float[ndarray, " 2"]]],
) -> Float[ndarray, "frames legs 3"]:
    """How far each foot has to move: to its anchor while it stands, smoothly from one to the next while it swings."""
    out = np.zeros((len(P), len(anatomy.legs), 3))
    frames = np.arange(len(P))
    for i, leg in enumerate(anatomy.legs):
        pivot = P[:, leg.pivot]
        low = soles(leg, G, P)[..., 1].min(1)
        offset = np.full((len(P), 3), np.nan)
        for anchor, (first, last) in zip(anchors[i], runs(stands[:, i]), strict=True):
            offset[first:last, [0, 2]] = anchor - pivot[first:last][:, [0, 2]]
            offset[first:last, 1] = -low[first:last]
        known = ~np.isnan(offset[:, 0])
        if not known.any():
            offset[:] = 0.0
        else:
            offset = _eased(offset, known, frames)
        offset[:, 1] = np.maximum(offset[:, 1], -low)
        out[:, i] = offset
    return out


def _eased(offset: ndarray, known: ndarray, frames: ndarray) -> ndarray:
    """Between two stances the offset goes from one to the other along a smooth step."""
    filled = offset.copy()
    for first, last in runs(~known):
        nothing = np.zeros(3)
        before = offset[first - 1] if first > 0 else nothing
        after = offset[last] if last < len(frames) else nothing
        t = np.linspace(0, 1, last - first + 2)[1:-1][:, None]
        filled[first:last] = before + (t * t * (3 - 2 * t)) * (after - before)
    return filled


def _carried_by_legs(
    anatomy: Anatomy,
    G: Float[ndarray, "frames joints 3 3"],
    root: Float[ndarray, "frames 3"],
    stands: Bool[ndarray, "frames legs"],
    anchors: list[list[Float[ndarray, " 2"]]],
    fps: float,
) -> tuple[Float[ndarray, "frames joints 3 3"], Float[ndarray, "frames 3"]]:
    """The body where its standing legs reach their places; places that cannot be reached are moved in `anchors`."""
    P = places(anatomy, G, root)
    ends = np.stack([P[:, leg.parts.end] for leg in anatomy.legs], 1) + _offsets(anatomy, G, P, stands, anchors)
    hips = np.stack([P[:, leg.parts.root] for leg in anatomy.legs], 1)
    shortest, longest = (np.stack(x, 1) for x in zip(*(_spans(P, leg.parts) for leg in anatomy.legs), strict=True))
    stance, count = np.full(stands.shape, -1), 0
    for i in range(len(anatomy.legs)):
        for first, last in runs(stands[:, i]):
            stance[first:last, i], count = count, count + 1
    legs = Standing(hips, ends, shortest, longest, stands, stance, _stiff_soles(anatomy, G, P), P[:, anatomy.pelvis])
    tilts = any(_is_stiff(leg.parts) for leg in anatomy.legs)
    way, tilt, moved = support(legs, unit=anatomy.leg_length, smooth=SMOOTH_SECONDS * fps, tilts=tilts)
    shifts = iter(moved)
    for row in anchors:
        row[:] = [place + next(shifts) for place in row]
    centre = P[:, anatomy.pelvis]
    return tilt[:, None] @ G, centre + np.einsum("fab,fb->fa", tilt, root - centre) + way


def _is_stiff(parts: LimbParts) -> bool:
    """Whether a limb is one bone."""
    return parts.root == parts.middle


def _spans(
    P: Float[ndarray, "frames joints 3"], parts: LimbParts
) -> tuple[Float[ndarray, " frames"], Float[ndarray, " frames"]]:
    """The least and the most distance between the root of a limb and its end: as far as its middle folds and opens."""
    a = np.linalg.norm(P[:, parts.middle] - P[:, parts.root], axis=1)
    b = np.linalg.norm(P[:, parts.end] - P[:, parts.middle], axis=1)
    if _is_stiff(parts):
        return b, b
    have = np.linalg.norm(P[:, parts.end] - P[:, parts.root], axis=1)
    folded = np.sqrt(np.maximum(a**2 + b**2 - 2 * a * b * np.cos(FOLDED), 0))
    return np.minimum(folded, have), np.maximum(STRETCH * (a + b), have)


def _stiff_soles(
    anatomy: Anatomy, G: Float[ndarray, "frames joints 3 3"], P: Float[ndarray, "frames joints 3"]
) -> Float[ndarray, "frames legs 3"]:
    """The lowest skin of legs of one bone; not a number for legs that bend."""
    found = np.full((len(P), len(anatomy.legs), 3), np.nan)
    for i, leg in enumerate(anatomy.legs):
        if _is_stiff(leg.parts):
            skin = soles(leg, G, P)
            found[:, i] = skin[np.arange(len(P)), skin[..., 1].argmin(1)]
    return found
