"""Where the joints of a body plan lie: hips and shoulders in the flesh, knees at bends, the spine along the trunk.

A limb's joints are chosen on its centre line so that straight bones follow it (knees come to lie at bends) and so that
the shares of its length are those of some kind of animal: feet flat on the ground, on the toes, on hoofs.
"""

from dataclasses import dataclass

import numpy as np

from jigdoll.errors import RigError
from jigdoll.rig.autorig.bones import MIRROR, JointTree, PlacedJoint, along, joint_at, resampled
from jigdoll.rig.autorig.curve import Branch, Curve
from jigdoll.rig.autorig.solid import Solid
from jigdoll.rig.autorig.template import BodyPlan, Pair
from jigdoll.rig.autorig.trunk import Trunk, add_head, add_tail, trunk_ends

Array = np.ndarray
# Where knee, ankle and toe lie on the way from the hip to the tip of the toes, in shares of its length.
_LEG_STYLES = {
    "flat feet": (0.40, 0.80, 0.92),
    "on the toes": (0.34, 0.70, 0.89),
    "hoofs": (0.30, 0.63, 0.90),
    "stilts": (0.19, 0.56, 0.87),
}
_ARM_STYLES = {"arm": (0.39, 0.75)}
_WING_STYLES = {"wing": (0.30, 0.60)}


def place_joints(solid: Solid, curve: Curve, plan: BodyPlan, *, joints: int | None = None) -> tuple[PlacedJoint, ...]:
    """The joints of a body plan, in the rig frame, parents first; as many as `joints` where a number is wished."""
    if plan.template == "generic":
        return _generic_joints(solid, curve, joints)
    counts = _usual_counts(solid, plan)
    placed = _plan_joints(solid, curve, plan, counts)
    if joints is None or joints == len(placed):
        return placed
    limbs = len(placed) - counts.spine - counts.neck - counts.tail
    placed = _plan_joints(solid, curve, plan, _stretched(counts, joints - limbs))
    return _thinned(placed, joints)


def _plan_joints(solid: Solid, curve: Curve, plan: BodyPlan, counts: "_Counts") -> tuple[PlacedJoint, ...]:
    """The joints of a body plan with so many on the middle line."""
    tree = JointTree()
    # Left and right chains, both as if on the left; in a symmetric body they are the same.
    both_legs = [_evened(_leg_points(pair, curve), solid) for pair in plan.legs]
    legs = [both.mean(0) for both in both_legs]
    both_arms = _evened(_arm_points(plan.arms, _arm_roots(plan, legs, solid)), solid) if plan.arms else None
    both_wings = _evened(_wing_points(plan.wings, solid), solid) if plan.wings else None
    arms = None if both_arms is None else both_arms.mean(0)
    wings = None if both_wings is None else both_wings.mean(0)
    trunk = Trunk(solid, curve, plan)

    pelvis, chest = trunk_ends(trunk, plan, legs, arms, wings, solid)
    tree.add("pelvis", None, trunk.back(pelvis))
    places = np.linspace(pelvis, chest, counts.spine + 2)[1:]
    names = [f"spine_{k + 1}" for k in range(counts.spine)] + ["chest"]
    tree.chain(names, "pelvis", np.array([trunk.back(s) for s in places]))
    add_head(tree, trunk, plan, chest, counts.neck, solid)
    if plan.tail is not None:
        add_tail(tree, trunk, plan.tail, pelvis - 0.06 * solid.length, counts.tail)

    for hand, (side, sign) in enumerate((("left", np.ones(3)), ("right", MIRROR))):
        if both_arms is not None:
            parts = ["clavicle", "shoulder", "elbow", "wrist", "hand_tip"]
            start = 0 if plan.template == "biped" and plan.tail is None else 1
            arm = both_arms[hand]
            points = np.concatenate([_clavicle(arm[0], tree.point("chest"))[None], arm])
            tree.chain([f"{side}_{part}" for part in parts[start:]], "chest", points[start:] * sign)
        if both_wings is not None:
            parts = ["wing_shoulder", "wing_elbow", "wing_wrist", "wing_tip"]
            tree.chain([f"{side}_{part}" for part in parts], "chest", both_wings[hand] * sign)
        for k, leg in enumerate(both_legs):
            parts = ["hip", "knee", "ankle", "toe", "toe_tip"]
            stem = f"{side}_{_rank(k, len(legs))}"
            tree.chain([stem + part for part in parts], _leg_parent(k, legs, tree), leg[hand] * sign)
    return tuple(tree.joints)


# ------------------------------------------------------------------------------------------------------------- limbs


def _evened(both: Array, solid: Solid) -> Array:
    """The two sides averaged where the body is symmetric, each as it stands in the middle of a step."""
    return np.broadcast_to(both.mean(0), both.shape) if solid.mirrored else both


def _leg_points(pair: Pair, curve: Curve) -> Array:
    """[2 5 3] hip, knee, ankle, toe and tip of the left leg and of the mirrored right one."""
    both = []
    for branch, sign in zip(pair.branches, (np.ones(3), MIRROR), strict=True):
        hip = _socket(branch, curve)
        tip, foot = _toe_tip(branch, hip)
        line = np.concatenate([hip[None], branch.curve[: branch.own + 1][::-1][:-1]])
        line = np.concatenate([_until_foot(line, tip, foot), tip[None]])
        both.append(along(line, _LEG_STYLES) * sign)
    return np.stack(both)


def _socket(branch: Branch, curve: Curve) -> Array:
    """The ball of a hip: above where the leg leaves the flank, towards the trunk's middle."""
    base, inner = branch.base, branch.curve[branch.own :]
    # The way inwards reaches the middle line at the height of the trunk's axis.
    there = inner[np.argmax(np.abs(inner[:, 0]) <= 0.3 * abs(base[0]))] if abs(base[0]) > 0 else inner[-1]
    across, rise = abs(there[0] - base[0]), abs(there[1] - base[1])
    sprawl = np.clip((across / (across + rise + 1e-9) - 0.4) / 0.3, 0, 1)
    hip = base + np.array([0.1 + 0.25 * sprawl, 0.8, 0.0]) * (there - base)
    # Level sets of the distance from the middle lean towards it; the leg itself does not.
    hip[2] += 0.08 * (base[2] - curve.center[2]) * (1 - sprawl)
    return hip


def _rooted(branch: Branch, solid: Solid) -> Array:
    """The root of an arm or wing that lies along the body: on from where it leaves, while the flesh stays thin."""
    own = branch.curve[: branch.own + 1]
    upper = own[len(own) // 2 :]
    thick = float(np.median(branch.radius[len(own) // 2 : branch.own + 1])) + solid.size
    arrow = upper[-1] - upper[0]
    arrow = arrow / (np.linalg.norm(arrow) + 1e-12)
    point = branch.base
    for _ in range(int(0.6 * branch.length / solid.size)):
        ahead = point + solid.size * arrow
        depth = float(solid.depth_at(ahead)[0])
        if depth <= 0.3 * solid.size or depth > 1.5 * thick or abs(ahead[0]) < 0.8 * abs(branch.base[0]):
            break
        point = ahead
    return point


def _toe_tip(branch: Branch, hip: Array) -> tuple[Array, float]:
    """The end of the toes, at half the thickness of the foot, and the height of the foot."""
    low, length = branch.voxels[:, 1].min(), np.linalg.norm(hip - branch.tip)
    foot = branch.voxels[branch.voxels[:, 1] < low + 0.08 * length]
    # Toes point ahead under a standing leg, outwards from a sprawling one.
    middle = foot.mean(0)
    out = (middle - hip) * (1, 0, 1)
    ahead = np.array([0.0, 0.0, 1.0])
    sprawl = np.clip(np.linalg.norm(out) / length - 0.5, 0, 0.5) * 2
    direction = ahead * (1 - sprawl) + sprawl * out / (np.linalg.norm(out) + 1e-9)
    reach = (foot - middle) @ direction
    front = foot[reach >= np.quantile(reach, 0.85)]
    return front.mean(0), float(0.08 * length)


def _until_foot(line: Array, tip: Array, foot: float) -> Array:
    """The centre line down to the foot: what follows would run to whichever toe is farthest."""
    gap = np.linalg.norm(line - tip, axis=1)
    keep = np.flatnonzero(gap[: int(gap.argmin()) + 1] > 1.2 * foot)
    return line[: int(keep[-1]) + 1] if len(keep) else line[:1]


def _arm_roots(plan: BodyPlan, legs: list[Array], solid: Solid) -> list[Array]:
    """The balls of both shoulders; where most of an arm lies close to the flank they are high up on it."""
    assert plan.arms is not None
    roots = [_rooted(branch, solid) for branch in plan.arms.branches]
    if plan.head is None or not legs or plan.template != "biped":
        return roots
    hip, neck = float(legs[-1][0][1]), float(plan.head.base[1])
    flesh = solid.points(np.argwhere(solid.filled))
    for k, branch in enumerate(plan.arms.branches):
        height = hip + 0.8 * (neck - hip)
        if branch.length > 0.5 * (neck - hip) or roots[k][1] > height - 0.1 * (neck - hip):
            continue
        ring = flesh[np.abs(flesh[:, 1] - height) < solid.size]
        if len(ring):
            edge = ring[(ring[:, 0] * np.sign(branch.base[0])).argmax()]
            roots[k] = np.array([0.8 * edge[0], height, 0.5 * (edge[2] + branch.base[2])])
    return roots


def _arm_points(pair: Pair, roots: list[Array]) -> Array:
    """[2 4 3] shoulder, elbow, wrist and tip of the left arm and of the mirrored right one."""
    both = []
    for branch, root, sign in zip(pair.branches, roots, (np.ones(3), MIRROR), strict=True):
        line = np.concatenate([root[None], branch.curve[: branch.own + 1][::-1]])
        both.append(along(line, _ARM_STYLES) * sign)
    return np.stack(both)


def _wing_points(pair: Pair, solid: Solid) -> Array:
    """[2 4 3] shoulder, elbow, wrist and tip of both wings: the bones run near the leading edge."""
    both = []
    for branch, sign in zip(pair.branches, (np.ones(3), MIRROR), strict=True):
        line = np.concatenate([_rooted(branch, solid)[None], _leading_edge(branch)[::-1]])
        both.append(along(line, _WING_STYLES) * sign)
    return np.stack(both)


def _leading_edge(branch: Branch) -> Array:
    """The centre line of a wing moved ahead, to where its bones are."""
    line = branch.curve[: branch.own + 1].copy()
    nearest = np.linalg.norm(branch.voxels[:, None] - line[None], axis=2).argmin(1)
    for k in range(1, len(line)):
        here = branch.voxels[nearest == k]
        if len(here) > 2:
            front = here[here[:, 2] >= np.quantile(here[:, 2], 0.8)].mean(0)
            line[k] = 0.3 * line[k] + 0.7 * front
    smooth = line.copy()
    for _ in range(6):
        smooth[1:-1] = 0.25 * smooth[:-2] + 0.5 * smooth[1:-1] + 0.25 * smooth[2:]
    return smooth


def _clavicle(shoulder: Array, chest: Array) -> Array:
    """The inner end of the collar bone, near the middle at the height of the shoulder."""
    return np.array([0.15 * shoulder[0], shoulder[1], 0.5 * (shoulder[2] + chest[2])])


@dataclass(frozen=True)
class _Counts:
    """How many joints the middle line has, without pelvis, chest, head and tips."""

    spine: int
    neck: int
    tail: int


def _usual_counts(solid: Solid, plan: BodyPlan) -> _Counts:
    """So many as the lengths of neck and tail ask for."""
    neck = plan.head.length / solid.length if plan.head is not None else 0.1
    tail = int(np.clip(round(plan.tail.length / solid.length / 0.09), 1, 6)) if plan.tail is not None else 0
    return _Counts(2, int(np.clip(round(neck / 0.16), 1, 4)), tail)


def _stretched(counts: _Counts, wished: int) -> _Counts:
    """Counts in about the same proportion that sum to the number wished, as far as each part can shrink."""
    now = [counts.spine, counts.neck, counts.tail]
    least = [0, 0, min(1, counts.tail)]
    while sum(now) != max(wished, sum(least)):
        step = 1 if sum(now) < wished else -1
        share = [n / u if u else np.inf for n, u in zip(now, (counts.spine, counts.neck, counts.tail), strict=True)]
        able = [k for k in range(3) if np.isfinite(share[k]) and now[k] + step >= least[k]]
        k = min(able, key=lambda k: step * share[k])
        now[k] += step
    return _Counts(*now)


def _thinned(placed: tuple[PlacedJoint, ...], wished: int) -> tuple[PlacedJoint, ...]:
    """Without the joints that are missed least, until the number is right: tips first, then toes, wrists, collars."""
    for pattern in ("toe_tip", "hand_tip", "clavicle", "wing_tip", "tail_tip", "head_tip", "toe", "wrist", "ankle"):
        drop = [joint for joint in placed if joint.name.endswith(pattern)]
        if len(placed) <= wished:
            break
        for joint in drop:
            placed = tuple(
                PlacedJoint(j.name, joint.parent if j.parent == joint.name else j.parent, j.point)
                for j in placed
                if j.name != joint.name
            )
    if len(placed) > wished:
        raise RigError(f"this body plan needs {len(placed)} joints at least, {wished} are too few; wish for more")
    return placed


def _generic_joints(solid: Solid, curve: Curve, joints: int | None) -> tuple[PlacedJoint, ...]:
    """A skeleton straight from the curve skeleton: one chain per branch, grown from the middle of the body."""
    branches = sorted(curve.branches, key=lambda b: -b.length)
    if not branches:
        # A blob: one bone up the middle.
        top = solid.points(np.argwhere(solid.filled))[:, 1].max()
        end = np.array([0.0, 0.5 * (top + curve.center[1]), curve.center[2]])
        return (joint_at("pelvis", None, curve.center), joint_at("limb_1_tip", "pelvis", end))
    spacing = 0.1 * solid.length
    if joints is not None:
        total = sum(np.linalg.norm(np.diff(b.curve, axis=0), axis=1).sum() for b in branches)
        spacing = total / max(1, joints - 1)
    tree = JointTree()
    tree.add("pelvis", None, curve.center)
    for k, branch in enumerate(branches):
        line = branch.curve[::-1]
        # Follow the joints that are there already as far as they lie on this line, then leave them.
        parent, start = "pelvis", 0
        for joint in tree.joints[1:]:
            gap = np.linalg.norm(line - np.array(joint.point), axis=1)
            at = int(gap.argmin())
            if gap[at] < 0.35 * spacing and at > start and not joint.name.endswith("tip"):
                parent, start = joint.name, at
        rest = line[start:]
        length = np.linalg.norm(np.diff(rest, axis=0), axis=1).sum()
        points = resampled(rest, max(2, round(length / spacing) + 1))[1:]
        names = [f"limb_{k + 1}_{i + 1}" for i in range(len(points) - 1)] + [f"limb_{k + 1}_tip"]
        tree.chain(names, parent, points)
    return tuple(tree.joints)


def _rank(k: int, count: int) -> str:
    """The words between side and part: which leg from the front."""
    if count == 1:
        return ""
    if count <= 3:
        return {2: ("front_", "hind_"), 3: ("front_", "middle_", "hind_")}[count][k]
    return f"{k + 1}_"


def _leg_parent(k: int, legs: list[Array], tree: JointTree) -> str:
    """The joint of the trunk that a leg hangs on: the last pair on the pelvis, the others on what is nearest."""
    if k == len(legs) - 1:
        return "pelvis"
    if k == 0:
        return "chest"
    trunk = [j for j in tree.joints if j.name in ("pelvis", "chest") or j.name.startswith("spine_")]
    return min(trunk, key=lambda joint: abs(joint.point[2] - legs[k][0][2])).name
