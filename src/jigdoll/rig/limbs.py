"""Which joints are a leg, an arm, a wing, the head, a tail: by the names that artists give, else by where they are."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from jaxtyping import Float
from torch import Tensor

from jigdoll.kinematics import rest_transforms
from jigdoll.types import Limb, Skeleton

Kind = Literal["leg", "arm", "wing", "head", "tail", "spine"]
Side = Literal["left", "right", "middle"]

_LEFT, _RIGHT = {"left", "l", "lft", "lf"}, {"right", "r", "rgt", "rt"}
_WORDS: dict[str, set[str]] = {
    "wing": {"wing", "wings"},
    "leg": set(
        "leg legs upleg thigh calf shin knee ankle foot feet toe toes hip femur tibia hock hoof paw pastern fetlock "
        "cannon stifle metatarsal tarsal haunch trochanter coxa tarsus".split()
    ),
    "arm": set(
        "arm arms forearm upperarm shoulder clavicle collar scapula humerus elbow wrist hand hands palm radius".split()
    ),
    "tail": {"tail", "tails"},
    "head": {"head", "neck", "skull", "cervical"},
    "spine": set("root pelvis hips hip spine chest torso abdomen body back ribcage thorax waist belly center".split()),
}
_IGNORED = set(
    "ik pole target ctrl control helper roll twist hair cloth skirt sec eye eyes eyelid brow ear ears antenna jaw "
    "mouth tongue feather breast weapon prop cape ribbon trunk mane whisker horn lip cheek nose "
    "eyebrow upperlip lowerlip masseter caninus".split()
)
_FINGERS = set("thumb index middle ring pinky little finger fingers digit claw".split())


@dataclass(frozen=True)
class _Joint:
    """What a name says about a joint."""

    tokens: frozenset[str]
    side: Side | None
    kind: Kind | None
    ignored: bool
    finger: bool


def find_limbs(skeleton: Skeleton) -> tuple[Limb, ...]:
    """All limbs of a rig: sided chains that leave the middle line, the neck with the head, the tail, the spine.

    Joints that only carry ears, fingers, feathers or controls belong to no limb. A rig without any of these has none.
    """
    P = rest_transforms(skeleton)[:, :3, 3].double()
    said = [read_name(name) for name in skeleton.names]
    sides = _sides(skeleton, P, said)
    limbs = list(_sided_limbs(skeleton, P, said, sides))
    limbs = _ranked(limbs, P)
    attached = {skeleton.parents[limb.joints[0]] for limb in limbs}
    head = _head(skeleton, P, said, sides, attached)
    tail = _tail(skeleton, P, said, sides, set(head))
    spine = _spine(skeleton, limbs, head)
    middle = (Limb("spine", "middle", 0, tuple(spine)), Limb("head", "middle", 0, tuple(head)))
    middle = (*middle, Limb("tail", "middle", 0, tuple(tail)))
    return (*limbs, *(limb for limb in middle if limb.joints))


def read_name(name: str) -> _Joint:
    """What a joint's name says: its words, split at case, digits and separators, without the prefix of a tool."""
    bare = re.sub(r"^.*[:|]", "", name)
    bare = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", bare)
    words = [w for w in re.split(r"[^A-Za-z]+", bare.lower().replace("up leg", "upleg")) if w]
    tokens = frozenset(words)
    side: Side | None = "left" if tokens & _LEFT else "right" if tokens & _RIGHT else None
    if side is None:
        side = next(
            ("left" if w.startswith("left") else "right" for w in words if w.startswith(("left", "right"))), None
        )
    kinds = [kind for kind, vocabulary in _WORDS.items() if tokens & vocabulary]
    if side is None and "spine" in kinds:
        kinds = ["spine"]
    elif side is not None:
        kinds = [kind for kind in kinds if kind in ("wing", "leg", "arm", "tail")]
    kind: Kind | None = kinds[0] if kinds else None  # type: ignore[assignment]
    if "shoulder" in tokens and "wing" not in tokens and kind == "leg" and tokens & {"hip", "back"} == set():
        kind = "arm"
    return _Joint(tokens, side, kind, bool(tokens & _IGNORED), bool(tokens & _FINGERS) and not tokens & _WORDS["leg"])


def _sides(skeleton: Skeleton, P: Float[Tensor, "joints 3"], said: Sequence[_Joint]) -> list[Side]:
    """Left, right or middle for every joint: its name's word, else its parent's side, else where it is."""
    size = float((P.amax(0) - P.amin(0)).max())
    middle = float(P[0, 0])
    sides: list[Side] = []
    for joint, (parent, words) in enumerate(zip(skeleton.parents, said, strict=True)):
        off = float(P[joint, 0]) - middle
        if words.side is not None:
            sides.append(words.side)
        elif words.kind in ("spine", "head", "tail") or joint == 0:
            sides.append("middle")
        elif parent > 0 and sides[parent] != "middle":
            sides.append(sides[parent])
        else:
            sides.append("middle" if abs(off) < 0.02 * size else "left" if off > 0 else "right")
    for joint in reversed(range(1, len(sides))):
        # A clavicle begins near the middle line but carries one side only.
        below: set[Side] = {sides[child] for child in skeleton.children[joint]}
        if (
            said[joint].kind is None
            and abs(float(P[joint, 0]) - middle) > 0.002 * size
            and below in ({"left"}, {"right"})
        ):
            sides[joint] = below.pop()
    return sides


def _sided_limbs(
    skeleton: Skeleton, P: Float[Tensor, "joints 3"], said: Sequence[_Joint], sides: Sequence[Side]
) -> Iterator[Limb]:
    """Each chain that leaves the middle line, as a leg, an arm or a wing."""
    ground, top = float(P[:, 1].min()), float(P[:, 1].max())
    chains: list[tuple[Side, list[int]]] = []
    for start, parent in enumerate(skeleton.parents):
        if sides[start] == "middle" or (parent >= 0 and sides[parent] == sides[start]) or said[start].ignored:
            continue
        joints = _main_path(skeleton, P, said, start)
        if len(joints) > 1:  # a lone sided joint is a control or a decoration
            chains.append((sides[start], joints))
    low = [float(P[j[-1], 1]) < min(ground + 0.12 * (top - ground), float(P[j[0], 1])) for _, j in chains]
    for i, (side, joints) in enumerate(chains):
        votes = [said[j].kind for j in joints]
        # A hand that rests on the ground belongs to a foreleg if the one across does so too.
        stands = low[i] and low[_across(P, chains, i)]
        unnamed_ear = not any(votes) and not stands and _is_head(skeleton, sides, skeleton.parents[joints[0]])
        if unnamed_ear or any(v in ("head", "tail") for v in votes):
            continue
        if "wing" in votes:
            kind: Kind = "wing"
        elif "leg" in votes and votes.count("arm") <= votes.count("leg"):
            kind = "leg"
        else:
            kind = "leg" if stands else "arm"
        yield Limb(kind, side, 0, tuple(joints))


def _across(P: Float[Tensor, "joints 3"], chains: Sequence[tuple[Side, list[int]]], i: int) -> int:
    """The chain of the other side that begins nearest to the mirror image of where this one does; itself for none."""
    side, joints = chains[i]
    mirrored = P[joints[0]] * P.new_tensor([-1.0, 1.0, 1.0])
    others = [k for k, (other, _) in enumerate(chains) if other != side]
    return min(others, key=lambda k: float((P[chains[k][1][0]] - mirrored).norm()), default=i)


def _is_head(skeleton: Skeleton, sides: Sequence[Side], joint: int) -> bool:
    """Whether the middle line ends right after a joint."""
    middle = [child for child in skeleton.children[joint] if sides[child] == "middle"]
    return not any(sides[below] == "middle" for child in middle for below in skeleton.children[child])


def _main_path(skeleton: Skeleton, P: Float[Tensor, "joints 3"], said: Sequence[_Joint], start: int) -> list[int]:
    """From a limb's first joint along its longest way, leaving fingers, feathers and controls aside."""
    children = skeleton.children

    def length(joint: int) -> float:
        kids = [c for c in children[joint] if not (said[c].ignored or said[c].finger)]
        own = float((P[joint] - P[skeleton.parents[joint]]).norm()) if skeleton.parents[joint] >= 0 else 0.0
        return own + max((length(c) for c in kids), default=0.0)

    path = [start]
    while True:
        kids = [c for c in children[path[-1]] if not (said[c].ignored or said[c].finger)]
        if not kids:
            return path
        path.append(max(kids, key=length))


def _ranked(limbs: Sequence[Limb], P: Float[Tensor, "joints 3"]) -> list[Limb]:
    """The same limbs, numbered from front to back within their kind and side, left before right."""
    ranked: list[Limb] = []
    for kind in ("leg", "arm", "wing"):
        for side in ("left", "right"):
            row = [limb for limb in limbs if limb.kind == kind and limb.side == side]
            row.sort(key=lambda limb: -float(P[limb.joints[0], 2] + 0.5 * P[limb.joints[-1], 2]))
            ranked += [Limb(limb.kind, limb.side, rank, limb.joints) for rank, limb in enumerate(row)]
    return ranked


def _head(
    skeleton: Skeleton, P: Float[Tensor, "joints 3"], said: Sequence[_Joint], sides: Sequence[Side], attached: set[int]
) -> list[int]:
    """Neck and head: what follows the last joint that carries a limb on the way to the head."""
    named = [j for j, words in enumerate(said) if "head" in words.tokens or "skull" in words.tokens]
    necks = [j for j, words in enumerate(said) if words.kind == "head" and sides[j] == "middle" and j not in named]
    if named or necks:
        end = next((j for j in named if skeleton.names[j].lower().endswith("head")), (named or necks[-1:])[0])
        tip = [c for c in _below(skeleton, end) if sides[c] == "middle" and not said[c].ignored]
        last = max(tip, key=lambda j: float((P[j] - P[end]).norm()), default=end)
    else:
        leaves = [
            j for j in _leaves(skeleton) if sides[j] == "middle" and not said[j].ignored and said[j].kind != "tail"
        ]
        leaves = [j for j in leaves if P[j, 1] + P[j, 2] > P[0, 1] + P[0, 2] + 1e-6]
        if not leaves:
            return []
        last = max(leaves, key=lambda j: float(P[j, 1] + P[j, 2]))
    path = _path(skeleton, last)
    neck = [i for i, j in enumerate(path) if said[j].tokens & {"neck", "cervical"}]
    carriers = [i + 1 for i, j in enumerate(path) if j in attached]
    head = [i for i, j in enumerate(path) if said[j].kind == "head"]
    # Without a neck by name it begins where the last limb leaves; a horse's spine may run up to its head.
    first = (neck or carriers[-1:] or head or [1])[0]
    return path[first:]


def _tail(
    skeleton: Skeleton, P: Float[Tensor, "joints 3"], said: Sequence[_Joint], sides: Sequence[Side], head: set[int]
) -> list[int]:
    """The chain that is called tail, else the middle chain that leads furthest back."""
    named = [j for j, words in enumerate(said) if words.kind == "tail" and sides[j] == "middle"]
    if named:
        last = max(named, key=lambda j: len(_path(skeleton, j)))
        return [j for j in _path(skeleton, last) if j in named]
    size = float((P.amax(0) - P.amin(0)).max())
    for leaf in sorted(_leaves(skeleton), key=lambda j: float(P[j, 2])):
        path = [j for j in _path(skeleton, leaf) if j and j not in head]
        plain = all(sides[j] == "middle" and said[j].kind is None and not said[j].ignored for j in path)
        if path and plain and float(P[0, 2] - P[leaf, 2]) > 0.04 * size:
            return path
    return []


def _spine(skeleton: Skeleton, limbs: Iterable[Limb], head: Sequence[int]) -> list[int]:
    """From the root to where the neck or the last limb leaves."""
    if head:
        return _path(skeleton, skeleton.parents[head[0]]) if head[0] else []
    starts = [skeleton.parents[limb.joints[0]] for limb in limbs if limb.joints[0]]
    return max((_path(skeleton, joint) for joint in starts if joint >= 0), key=len, default=[])


def _path(skeleton: Skeleton, joint: int) -> list[int]:
    """From the root to a joint."""
    path = [joint]
    while skeleton.parents[path[-1]] >= 0:
        path.append(skeleton.parents[path[-1]])
    return path[::-1]


def _leaves(skeleton: Skeleton) -> list[int]:
    return [joint for joint, kids in enumerate(skeleton.children) if not kids]


def _below(skeleton: Skeleton, joint: int) -> list[int]:
    """All descendants of a joint."""
    found: list[int] = []
    for kid in skeleton.children[joint]:
        found += [kid, *_below(skeleton, kid)]
    return found
