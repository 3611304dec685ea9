"""How natural a clip is, and what a person would laugh at, by name.

Poses are held against real ones of the same kind of body (`judge.postures`), the whole clip is named by the referee
(`judge.referee`), and what only the body can tell is looked at directly: limbs that never move, arms that stay in the
bind pose, wings that do not beat, feet that step together, a body that slides or floats.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from jigdoll.judge.postures import PoseBank, nearest_poses, postures_of
from jigdoll.judge.referee import Referee, name_action
from jigdoll.kinematics import motion_to_world
from jigdoll.language.actions import ACTIONS, general_of
from jigdoll.rig.anatomy import Anatomy, LimbParts
from jigdoll.rig.retarget.limb_motion import encode
from jigdoll.types import Motion, Request

USUAL, FAR = 12.0, 40.0
"""Poses so far from real ones of the action are usual, and that much farther they are none [degrees per bone]: clips of
actors and rigs that the memory never saw are 4 to 12 away, the same with arms in a T pose 24 to 30."""
STRANGE = 21.0
"""Poses farther than this from all real ones of the action are named."""
NEVER = 3.0
"""A limb that turns less than this never moves [degrees]."""
BEAT = 12.0
"""Wings that beat turn more than this [degrees]."""
BIND = 12.0
"""Arms nearer than this to the bind pose are in it [degrees] ..."""
RAISED = 0.8
"""... where they do not hang there: the cosine of the angle from the vertical is below this."""
TOGETHER = 0.2
"""Feet of a walk or run whose swings correlate more than this step together."""
SLIDES = 0.25
"""A body that travels faster than this on legs that hardly swing slides [body lengths / s]."""
SWING = 3.0
"""Legs that swing less than this hardly swing [degrees]; those of spiders swing by 6, of others by 15 and more."""
FLOATS, SINKS = 0.03, 0.04
"""How high above the ground or below it the skin is where it is seen [body lengths]."""
SKATES, SKATES_RUNNING = 0.5, 0.9
"""The share of standing steps that slide, where it is seen; the feet of artists' gallops slide most of the time."""
ASKEW = 48.0
"""Legs that stand at a larger angle to the vertical do not carry a body [degrees]: on the average of a clip 46 is the
largest among 184 clips of artists who walk, run, eat, wave and so on."""
LOW = 0.15
"""A foot no higher than this above the lowest one of the clip may stand [leg lengths]."""
UNHEARD, SURE = 0.02, 0.7
"""The referee hears something else where the asked action gets less than the first and another more than the second:
so 9 % of real clips of unknown actors and rigs are blamed, and 47 % of wrong sentences are noticed."""
UNLIKELY = 1.0
"""A clip with a larger score than this is like nothing the pose space has seen: no real clip of 163 unknown ones but a
dying spider is."""
CALM = frozenset(
    "idle sit sleep lie die eat drink think nod hang talk fall crouch kneel look_around shake_head type".split()
)
"""Actions in which limbs may rest."""
UPRIGHT = frozenset("walk run gallop trot march limp stagger eat drink wave punch throw turn talk nod pick_up".split())
"""Actions that are done on legs that carry the body."""
STEPPING = frozenset("walk run march creep sneak limp stagger trot".split())


@dataclass(frozen=True)
class Fault:
    """Something that a person would not accept."""

    name: str
    message: str
    cost: float
    """What it takes off the grade, 0 to 1."""


@dataclass(frozen=True)
class Naturalness:
    """How natural a clip is."""

    grade: float
    """0 to 1: 1 where poses are as near to real ones as real ones are to each other, and nothing is wrong."""
    pose_distance: float
    """Median angle per bone to the nearest real pose of the same kind of body [degrees]; -1 where none is known."""
    action_distance: float
    """The same among real clips of what was asked; -1 where none is known."""
    nearest: tuple[str, ...]
    """The real clips whose poses are nearest, the most frequent first."""
    heard: tuple[tuple[str, float], ...]
    """What the referee takes it for: the three likeliest actions with their shares."""
    faults: tuple[Fault, ...]
    pose_score: float = -1.0
    """How far it is from what the pose space finds natural: about 0.03 for real clips of known rigs, up to 0.9 for 95 %
    of unknown ones; -1 where it was not asked."""


def naturalness(
    anatomy: Anatomy,
    motion: Motion,
    facts: "Facts",
    *,
    bank: PoseBank,
    referee: Referee,
    request: Request | None = None,
    pose_score: float = -1.0,
) -> Naturalness:
    """Judge a clip of a working copy; `request` is what was asked for, where anything was."""
    lm = encode(anatomy, motion)
    asked = tuple(action.name for action in request.actions) if request else ()
    poses = postures_of(lm)
    distance, which = nearest_poses(poses, bank)
    accepted = _accepted(asked)
    of_action = [i for i in range(len(bank)) if bank.actions[bank.clip[i]] in accepted]
    close = nearest_poses(poses, _only(bank, of_action))[0] if of_action else np.full(len(motion), np.nan)
    heard = name_action(referee, lm)
    wrong = [
        *_still_limbs(anatomy, motion, asked),
        *_bind_pose(anatomy, motion, asked),
        *_gait_faults(anatomy, facts, asked),
        *_askew_legs(anatomy, motion, asked),
        *_ground_faults(anatomy, facts, asked),
        *_other_action(heard, asked, accepted),
    ]
    typical = float(np.median(close)) if of_action and np.isfinite(close).all() else -1.0
    if asked and typical > STRANGE:
        wrong.append(Fault("strange", f"poses are {typical:.0f} degrees per bone from any real {asked[0]}", 0.2))
    if asked and not of_action:
        wrong.append(Fault("unproven", f"no real {asked[0]} of such a body is known to hold it against", 0.25))
    if pose_score > UNLIKELY:
        wrong.append(Fault("unlikely", f"the pose space finds it far from real motion (score {pose_score:.2f})", 0.2))
    grade = float(np.prod([1 - fault.cost for fault in wrong]))
    if typical >= 0:
        grade *= float(np.clip(1 - (typical - USUAL) / FAR, 0, 1))
    return Naturalness(
        grade=round(grade, 3),
        pose_distance=round(float(np.median(distance)), 1) if np.isfinite(distance).all() else -1.0,
        action_distance=round(typical, 1),
        nearest=_most_frequent([bank.texts[bank.clip[i]] for i in which] if len(bank) else []),
        heard=tuple((name, round(share, 3)) for name, share in list(heard.items())[:3]),
        faults=tuple(wrong),
        pose_score=round(pose_score, 3),
    )


@dataclass(frozen=True)
class Facts:
    """What the model-free metrics say, as far as it matters here."""

    travel_speed: float
    """[body lengths / s]."""
    leg_swing: float
    """[degrees]."""
    alternation: float
    """Of the hindmost pair of legs."""
    floating: float
    penetration: float
    skate_ratio: float


def _accepted(asked: Sequence[str]) -> frozenset[str]:
    """The actions that serve for what was asked: itself, what it is a way of, its ways."""
    kinds = {row.name for row in ACTIONS.values() if row.general in asked}
    return frozenset(kinds | {name for action in asked for name in general_of(action)})


def _only(bank: PoseBank, chosen: Sequence[int]) -> PoseBank:
    return PoseBank(bank.directions[chosen], bank.has[chosen], bank.clip[chosen], bank.texts, bank.actions)


def _most_frequent(texts: Sequence[str]) -> tuple[str, ...]:
    names, counts = np.unique(texts, return_counts=True) if len(texts) else (np.array([]), np.array([]))
    return tuple(str(names[i]) for i in np.argsort(-counts)[:3])


def _turning(motion: Motion, joints: Sequence[int]) -> float:
    """How far the joint of these that moves most leaves its mean [degrees]."""
    if not joints:
        return 0.0
    q = motion.pose.rotations[:, list(joints)].detach().double().numpy()
    q = q * np.sign((q * q[:1]).sum(-1, keepdims=True) + 1e-12)
    mean = q.mean(0)
    mean /= np.maximum(np.linalg.norm(mean, axis=-1, keepdims=True), 1e-9)
    return float(np.degrees(2 * np.arccos(np.clip(np.abs((q * mean).sum(-1)), 0, 1))).max())


def _limb_turning(motion: Motion, parts: LimbParts) -> float:
    return _turning(motion, sorted({*parts.before, parts.root, parts.middle}))


def _still_limbs(anatomy: Anatomy, motion: Motion, asked: Sequence[str]) -> list[Fault]:
    """Legs, wings, tails and trunks that ought to move and do not."""
    gaits = {ACTIONS[name].gait for name in asked}
    found = []
    legs = [leg.parts for leg in anatomy.legs]
    still = [parts.name for parts in legs if _limb_turning(motion, parts) < NEVER]
    if still and gaits & {"walk", "run", "jump", "dance"} and "slither" not in asked:
        count = f"{len(still)} of {len(legs)} legs never move"
        found.append(Fault("still legs", count, min(0.3 + 0.5 * len(still) / len(legs), 0.7)))
    wings = [parts for parts in anatomy.parts if parts.limb.kind == "wing"]
    if wings and {"fly", "flap", "hover", "take_off"} & set(asked):
        if max(_limb_turning(motion, parts) for parts in wings) < BEAT:
            found.append(Fault("still wings", "the wings do not beat", 0.6))
    if "swim" in asked and not legs and _turning(motion, (*anatomy.trunk[1:], *anatomy.tail)) < NEVER:
        found.append(Fault("stiff body", "the body does not bend as it swims", 0.5))
    arms = [parts for parts in anatomy.parts if parts.limb.kind == "arm"]
    if arms and asked and not set(asked) <= CALM and all(_limb_turning(motion, parts) < NEVER for parts in arms):
        found.append(Fault("still arms", "the arms never move", 0.3))
    return found


def _bind_pose(anatomy: Anatomy, motion: Motion, asked: Sequence[str]) -> list[Fault]:
    """Arms that stay where the bind pose has them, in a T or an A."""
    world = motion_to_world(anatomy.skeleton, motion)[..., :3, :3]
    chest = anatomy.trunk[-1]
    held = []
    for parts in anatomy.parts:
        if parts.limb.kind != "arm" or anatomy.kind != "person":
            continue
        end = parts.middle if parts.middle != parts.root else parts.end
        bone = anatomy.T_rest[end, :3, 3] - anatomy.T_rest[parts.root, :3, 3]
        bone = bone / max(float(np.linalg.norm(bone)), 1e-9)
        if -bone[1] > RAISED:
            continue  # it hangs at rest
        held.append(float(np.mean(_angle_to_rest(anatomy, world, parts.root, chest, bone) < BIND)) > 0.9)
    if held and all(held) and "idle" not in asked:
        return [Fault("bind pose", "the arms stay in the bind pose", 0.6)]
    return []


def _angle_to_rest(
    anatomy: Anatomy,
    world: Float[ndarray, "frames joints 3 3"],
    joint: int,
    carrier: int,
    bone: Float[ndarray, " 3"],
) -> Float[ndarray, " frames"]:
    """How far a bone is from where it rests against its carrier [degrees]."""
    rest = anatomy.T_rest[:, :3, :3]
    turn = world[:, joint] @ rest[joint].T
    base = world[:, carrier] @ rest[carrier].T
    cosine = np.einsum("fa,fa->f", turn @ bone, base @ bone)
    return np.degrees(np.arccos(np.clip(cosine, -1, 1)))


def _gait_faults(anatomy: Anatomy, facts: Facts, asked: Sequence[str]) -> list[Fault]:
    found = []
    gaits = [ACTIONS[name] for name in asked]
    if len(anatomy.legs) == 2 and STEPPING & set(asked) and facts.alternation > TOGETHER and facts.leg_swing > SWING:
        found.append(Fault("feet together", "both feet step together", 0.5))
    if anatomy.grounded and facts.travel_speed > SLIDES and facts.leg_swing < SWING:
        if not {"slide", "skate", "fly", "swim", "slither"} & set(asked):
            found.append(Fault("slides", "the body slides along on still legs", 0.6))
    if gaits and all(row.gait in ("walk", "run") and row.froude > 0.05 for row in gaits):
        if anatomy.grounded and facts.travel_speed < 0.1:
            found.append(Fault("stuck", "it steps without getting along", 0.3))
    return found


def _askew_legs(anatomy: Anatomy, motion: Motion, asked: Sequence[str]) -> list[Fault]:
    """Legs that hang down at rest and stand slanting for most of the clip."""
    if not asked or not set(asked) <= UPRIGHT or not anatomy.grounded:
        return []
    P = motion_to_world(anatomy.skeleton, motion)[..., :3, 3]
    rest = anatomy.T_rest[:, :3, 3]
    worst = 0.0
    for leg in anatomy.legs:
        hip, foot = leg.parts.root, leg.parts.end
        if _slant(rest[None, foot] - rest[None, hip])[0] > 0.5 * ASKEW:
            continue  # it reaches out as it is built
        down = P[:, foot, 1] < P[:, foot, 1].min() + LOW * anatomy.leg_length
        worst = max(worst, float(_slant(P[down, foot] - P[down, hip]).mean()))
    if worst < ASKEW:
        return []
    return [Fault("askew", f"a leg stands slanting by {worst:.0f} degrees on the average", 0.3)]


def _slant(legs: Float[ndarray, "frames 3"]) -> Float[ndarray, " frames"]:
    """The angle between legs and the vertical [degrees]."""
    return np.degrees(np.arctan2(np.linalg.norm(legs[:, [0, 2]], axis=1), -legs[:, 1]))


def _ground_faults(anatomy: Anatomy, facts: Facts, asked: Sequence[str]) -> list[Fault]:
    if not anatomy.grounded:
        return []
    found = []
    leaves = any(ACTIONS[name].gait in ("jump", "fly") or name in ("climb", "hang") for name in asked)
    if facts.floating > FLOATS and not leaves:
        found.append(Fault("floats", f"standing feet are {facts.floating:.0%} of the body above the ground", 0.3))
    if facts.penetration > SINKS:
        cost = min(0.2 + 3 * (facts.penetration - SINKS), 0.5)
        found.append(Fault("sinks", f"the skin is {facts.penetration:.0%} of the body below the ground", cost))
    runs = any(ACTIONS[name].gait == "run" for name in asked)
    if facts.skate_ratio > (SKATES_RUNNING if runs else SKATES) and not leaves:
        found.append(Fault("skates", f"feet slide in {facts.skate_ratio:.0%} of their steps", 0.2))
    return found


def _other_action(heard: dict[str, float], asked: Sequence[str], accepted: frozenset[str]) -> list[Fault]:
    """The referee hears something else."""
    known = [name for name in accepted if name in heard]
    if not asked or not known:
        return []
    top, share = next(iter(heard.items()))
    if max(heard[name] for name in known) < UNHEARD and share > SURE and top not in accepted:
        return [Fault("other action", f"it looks like {top.replace('_', ' ')}, not like {asked[0]}", 0.3)]
    return []
