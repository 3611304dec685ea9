"""The middle line of a body: the neck with the head before it, the tail behind, the spine between."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from jigdoll.rig.chains import Body
from jigdoll.rig.names import Side
from jigdoll.types import Limb

BEYOND = 0.02
"""A head or a tail goes on beyond the flesh of the root by at least this [body sizes]."""
NECK = 0.02
"""Collar bones that begin behind the joint that carries them by more than this hang on the neck [body sizes]."""
LUMP = 2.0
"""What fills more than this many times the root's box is no tail."""
WITHIN, SMALL = 0.6, 0.35
"""A jaw or a brow lies in the head's box with more than this share of each of its sides, and fills less of it."""


def head_of(body: Body, sides: Sequence[Side], starts: set[int]) -> list[int]:
    """The neck with the head: from above the last joint that carries a limb (its first joint: `starts`) to the head."""
    said = body.said
    last = _head_end(body, sides)
    if last is None:
        return []
    path = body.path(last)
    neck = [i for i, j in enumerate(path) if said[j].tokens & {"neck", "cervical"}]
    carried = _neck_start(body, path, starts)
    head = [i for i, j in enumerate(path) if said[j].kind == "head"]
    # Without a neck by name it begins where the last limb leaves; a horse's spine may run up to its head.
    first = (neck or carried or head or [1])[0]
    return path[min(first, _last_flesh(body, path)) :]


def _neck_start(body: Body, path: Sequence[int], starts: set[int]) -> list[int]:
    """Where on a path the neck begins: where the last limb leaves, in space as well as in the tree.

    Forelegs often hang on the pelvis and the joints of the chest lie between; collar bones may hang on the neck.
    """
    parents = body.skeleton.parents
    carriers = [i for i, j in enumerate(path[:-1]) if any(parents[start] == j for start in starts)]
    if not carriers:
        return []
    last = carriers[-1]
    line = body.P[list(path)]
    way = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(line, axis=0), axis=1))])
    here = [start for start in starts if parents[start] == path[last]]
    leaves = max(_along(line, way, body.P[start]) for start in here)
    wide = [float(body.high[j, 0] - body.low[j, 0]) if body.fleshy[j] else 0.0 for j in path]
    if last > 1 and len(carriers) > 1 and leaves < way[last] - NECK * body.size and wide[last] < 0.8 * max(wide[:last]):
        return [last]
    end = _last_flesh(body, path)
    first = last + 1
    if body.skinned and all(body.below_low[start, 1] < body.ground + 0.1 * body.height for start in here):
        while first < end - 1 and _in_chest(
            float(way[first]) - leaves, wide[first] / max(1e-9, *wide[:first]), body.size
        ):
            first += 1
        if first >= end:
            return [last + 1]
    return [first]


def _in_chest(beyond: float, breadth: float, size: float) -> bool:
    """Whether a joint so far beyond the forelegs [m], of such a share of the trunk's breadth, is of the chest."""
    behind, near = beyond < -0.005 * size, -0.02 * size < beyond < 0.1 * size
    return bool((behind and 0.5 < breadth < 1.2) or (near and 1.0 <= breadth < 1.4))


def _along(line: Float[ndarray, "points 3"], way: Float[ndarray, " points"], place: Float[ndarray, " 3"]) -> float:
    """How far along a line the point is that is nearest to a place, the way aside left out [m]."""
    bones = np.diff(line, axis=0)
    share = ((place - line[:-1]) * bones).sum(1) / np.maximum((bones**2).sum(1), 1e-12)
    nearest = line[:-1] + share.clip(0, 1)[:, None] * bones
    best = int(np.linalg.norm((place - nearest)[:, 1:], axis=1).argmin())
    return float(way[best] + share.clip(0, 1)[best] * (way[best + 1] - way[best]))


def _last_flesh(body: Body, path: Sequence[int]) -> int:
    """Where on a path the last joint is that moves skin: no limb is a bare tip."""
    return max((i for i, j in enumerate(path) if body.fleshy[j]), default=len(path) - 1)


def _head_end(body: Body, sides: Sequence[Side]) -> int | None:
    """The last joint of the head."""
    skeleton, said, P = body.skeleton, body.said, body.P
    named = [j for j, words in enumerate(said) if words.tokens & {"head", "skull"}]
    necks = [j for j, words in enumerate(said) if words.kind == "head" and sides[j] == "middle" and j not in named]
    if named or necks:
        end = next((j for j in named if skeleton.names[j].lower().endswith("head")), (named or necks[-1:])[0])
        tip = [c for c in body.below(end)[1:] if sides[c] == "middle" and not said[c].ignored]
        return max(tip, key=lambda j: float(np.linalg.norm(P[j] - P[end])), default=end)
    leaves = [j for j in _middle_leaves(body, sides) if said[j].kind != "tail" and _leads_forward(body, j)]
    leaf = max(leaves, key=lambda j: float(P[j, 1] + P[j, 2]), default=None)
    return None if leaf is None else _without_face(body, leaf)


def _without_face(body: Body, leaf: int) -> int:
    """The head above a jaw, a tongue or a brow: what lies in the flesh of its parent is a part of a face."""
    path = [j for j in body.path(leaf) if body.fleshy[j]]
    while body.skinned and len(path) > 3:
        face, head = path[-1], path[-2]
        own, whole = (np.maximum(body.high[j] - body.low[j], 1e-9) for j in (face, head))
        both = np.minimum(body.high[face], body.high[head]) - np.maximum(body.low[face], body.low[head])
        if not bool((both > WITHIN * own).all()) or float((own / whole).prod()) > SMALL:
            break
        path.pop()
        leaf = head
    return leaf


def _middle_leaves(body: Body, sides: Sequence[Side]) -> list[int]:
    """The ends of the middle line."""
    found = []
    for joint in range(1, len(sides)):
        goes_on = any(sides[kid] == "middle" and not body.said[kid].ignored for kid in body.children[joint])
        if sides[joint] == "middle" and not goes_on and not body.said[joint].ignored:
            found.append(joint)
    return found


def _leads_forward(body: Body, leaf: int) -> bool:
    """Whether the way from the root to a leaf ends before or above the root's flesh and does not begin behind it."""
    P = body.P
    if not body.skinned:
        return float(P[leaf, 1] + P[leaf, 2]) > float(P[0, 1] + P[0, 2]) + 1e-6
    way = [j for j in body.path(leaf)[1:] if body.fleshy[j]]
    if not way:
        return False
    high, low = body.high[way].max(0), body.low[way]
    above, before = high[1:] > body.high[0, 1:] + BEYOND * body.size
    begins = float(low[0, 2] + body.high[way[0], 2]) / 2
    middle = float(body.low[0, 2] + body.high[0, 2]) / 2
    behind = begins < middle - 0.1 * body.size
    risen = float(high[1] - body.high[0, 1]) > 0.5 * body.size
    return bool(before) or (bool(above) and (risen or not behind))


def tail_of(body: Body, sides: Sequence[Side], attached: set[int], head: Sequence[int]) -> list[int]:
    """The chain that is called tail, else the middle chain that leads furthest back."""
    said, P = body.said, body.P
    named = [j for j, words in enumerate(said) if words.kind == "tail" and sides[j] == "middle"]
    if named:
        last = max(named, key=lambda j: len(body.path(j)))
        return [j for j in body.path(last) if j in named]
    for leaf in sorted(_middle_leaves(body, sides), key=lambda j: float(P[j, 2])):
        whole = body.path(leaf)
        carriers = [i + 1 for i, j in enumerate(whole[:-1]) if j in attached]
        first = min((carriers[-1:] or [1])[0], _last_flesh(body, whole))
        path = whole[max(first, 1) :]
        plain = all(sides[j] == "middle" and said[j].kind is None for j in path)
        if path and plain and not set(path) & set(head) and _leads_back(body, path):
            return [] if _is_lump(body, path) else path
    return []


def _leads_back(body: Body, path: Sequence[int]) -> bool:
    """Whether a chain ends behind the root's flesh."""
    if not body.skinned:
        return float(body.P[0, 2] - body.P[path[-1], 2]) > 0.04 * body.size
    way = [j for j in path if body.fleshy[j]]
    if not way:
        return False
    rear, length = float(body.low[0, 2]), float(body.high[0, 2] - body.low[0, 2])
    begins = float(body.low[way[0], 2] + body.high[way[0], 2]) / 2
    behind = float(body.low[way, 2].min()) < rear - BEYOND * body.size
    own = float(body.high[way, 2].max() - body.low[way, 2].min())
    behind = behind or begins < rear + min(0.2 * length, BEYOND * body.size + own)
    far = len(path) > 2 and float(body.P[0, 2] - body.P[path[-1], 2]) > 0.4 * body.size
    hangs = len(way) > 2 and float(body.low[way, 1].min()) < float(body.low[0, 1]) - 0.1 * body.size
    # A block as wide as the body that stands on the ground is a pair of legs.
    width = float(body.high[way[0], 0] - body.low[way[0], 0])
    stands = float(body.low[way, 1].min()) < body.ground + 0.05 * body.height
    belly = float(body.low[0, 1]) > body.ground + 0.05 * body.height
    legs = len(way) == 1 and stands and belly and width > 0.9 * float(body.high[0, 0] - body.low[0, 0])
    return (behind or hangs or far) and not legs


def _is_lump(body: Body, path: Sequence[int]) -> bool:
    """Whether a chain is one piece larger than the root's own flesh and as wide as long: a rump or an abdomen."""
    way = [j for j in path if body.fleshy[j]]
    if not body.skinned or not body.fleshy[0] or len(way) != 1:
        return False
    own, root = (np.maximum(body.high[j] - body.low[j], 1e-9) for j in (way[0], 0))
    return bool(own[0] > 0.6 * own[2]) and float((own / root).prod()) > LUMP


def spine_of(body: Body, limbs: Sequence[Limb], head: Sequence[int]) -> list[int]:
    """From the root to where the neck or the last limb leaves."""
    parents = body.skeleton.parents
    if head:
        return body.path(parents[head[0]]) if head[0] else []
    starts = [parents[limb.joints[0]] for limb in limbs if limb.joints[0]]
    return max((body.path(joint) for joint in starts if joint >= 0), key=len, default=[])
