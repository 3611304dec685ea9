"""The middle line of a body: the neck with the head before it, the tail behind, the spine between."""

from collections.abc import Sequence

import numpy as np

from jigdoll.rig.chains import Body
from jigdoll.rig.names import Side
from jigdoll.types import Limb

BEYOND = 0.02
"""A head or a tail goes on beyond the flesh of the root by at least this [body sizes]."""


def head_of(body: Body, sides: Sequence[Side], attached: set[int]) -> list[int]:
    """The neck with the head: from above the last joint that carries a limb on the way to the head."""
    said = body.said
    last = _head_end(body, sides)
    if last is None:
        return []
    path = body.path(last)
    neck = [i for i, j in enumerate(path) if said[j].tokens & {"neck", "cervical"}]
    carriers = [i + 1 for i, j in enumerate(path[:-1]) if j in attached]
    head = [i for i, j in enumerate(path) if said[j].kind == "head"]
    # Without a neck by name it begins where the last limb leaves; a horse's spine may run up to its head.
    first = (neck or carriers[-1:] or head or [1])[0]
    return path[min(first, _last_flesh(body, path)) :]


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
    return max(leaves, key=lambda j: float(P[j, 1] + P[j, 2]), default=None)


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
            return path
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
    hangs = len(way) > 2 and float(body.low[way, 1].min()) < float(body.low[0, 1]) - 0.1 * body.size
    # A block as wide as the body that stands on the ground is a pair of legs.
    width = float(body.high[way[0], 0] - body.low[way[0], 0])
    stands = float(body.low[way, 1].min()) < body.ground + 0.05 * body.height
    belly = float(body.low[0, 1]) > body.ground + 0.05 * body.height
    legs = len(way) == 1 and stands and belly and width > 0.9 * float(body.high[0, 0] - body.low[0, 0])
    return (behind or hangs) and not legs


def spine_of(body: Body, limbs: Sequence[Limb], head: Sequence[int]) -> list[int]:
    """From the root to where the neck or the last limb leaves."""
    parents = body.skeleton.parents
    if head:
        return body.path(parents[head[0]]) if head[0] else []
    starts = [parents[limb.joints[0]] for limb in limbs if limb.joints[0]]
    return max((body.path(joint) for joint in starts if joint >= 0), key=len, default=[])
