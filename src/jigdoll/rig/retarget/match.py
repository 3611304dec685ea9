"""Which limb of the source each limb of the target follows, and what becomes of those that have no partner."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from jigdoll.errors import RigError
from jigdoll.rig.anatomy import Anatomy, LimbParts
from jigdoll.rig.names import LimbKind
from jigdoll.rig.retarget.limb_motion import LimbMotion, LimbTrack, MiddlePart
from jigdoll.rig.retarget.natural import beats
from jigdoll.types import Limb

FOLLOWS = {"leg": ("leg",), "arm": ("arm", "wing"), "wing": ("wing",), "fin": ("fin", "wing")}
"""The kinds of limbs that a limb may follow, the best first."""
NATURAL = {"arm": "hangs relaxed", "wing": "is folded", "fin": "stays as at rest", "leg": "stays as at rest"}
"""What a limb does that has nobody to follow."""
_MIRROR = np.diag([-1.0, 1.0, 1.0])


@dataclass(frozen=True)
class Match:
    """Which limb of the source a limb of the target follows."""

    target: str
    source: str | None
    """None where nothing in the source fits; then the limb does what is natural."""
    note: str = ""
    """What is not plain copying, in words."""


@dataclass(frozen=True)
class Report:
    """What became of the limbs, for people to read."""

    matches: tuple[Match, ...]
    dropped: tuple[str, ...]
    """Limbs of the source that nobody follows."""
    notes: tuple[str, ...] = ()
    """What else was made natural or left out."""


@dataclass(frozen=True, eq=False)
class Follow:
    """A limb's partner as it is followed: its track, mirrored where it is of the other side."""

    track: LimbTrack
    crossed: bool = False
    """Whether the partner is of the other side: so that legs that share a partner do not step together."""


def limb_name(limb: Limb) -> str:
    """`left leg 0`: side, kind, and how many of its kind are before it."""
    return f"{limb.side} {limb.kind} {limb.rank}"


def match_limbs(
    limb_motion: LimbMotion, anatomy: Anatomy, mapping: Mapping[str, str] | None = None
) -> dict[int, Follow | None]:
    """For each limb of the target the source's limb that it follows: of its kind and side, at its place in the row.

    Where the numbers differ, legs are matched by their place from front to back, and legs that share a partner take
    turns with its twin, as walkers on many legs do; arms may follow wings. `mapping` (target's limb to source's limb,
    by name) overrules all of it.
    """
    found = {i: _partner(limb_motion, anatomy, parts) for i, parts in enumerate(anatomy.parts)}
    if not any(found.values()):  # legs that a rig without names does not show as such
        found = {i: _partner(limb_motion, anatomy, parts, "leg") for i, parts in enumerate(anatomy.parts)}
    ours = {parts.name: i for i, parts in enumerate(anatomy.parts)}
    theirs = {limb_name(track.limb): track for track in limb_motion.limbs}
    for mine, their in (mapping or {}).items():
        if mine not in ours:
            raise RigError(f"the target has no limb called {mine!r}; its limbs are {_listed(ours)}")
        if their not in theirs:
            raise RigError(f"the source has no limb called {their!r}; its limbs are {_listed(theirs)}")
        track = theirs[their]
        crossed = track.limb.side != anatomy.parts[ours[mine]].limb.side
        found[ours[mine]] = Follow(mirrored(track) if crossed else track, crossed)
    if not any(found.values()) and limb_motion.grounded:  # swimmers and snakes have their trunk in common with anyone
        raise RigError(
            f"the two rigs have no limbs in common: the source has {_listed(theirs)}, the target {_listed(ours)}; "
            "name partners with a mapping of TARGET_LIMB=SOURCE_LIMB"
        )
    return found


def report(limb_motion: LimbMotion, anatomy: Anatomy, mapping: Mapping[str, str] | None = None) -> Report:
    """Which limb took which, what had nobody to follow and what nobody follows."""
    pairs = match_limbs(limb_motion, anatomy, mapping)
    matches = []
    for i, follow in pairs.items():
        parts = anatomy.parts[i]
        if follow is None:
            beating = parts.limb.kind == "wing" and beats(limb_motion)
            matches.append(Match(parts.name, None, "beats" if beating else NATURAL[parts.limb.kind]))
        else:
            note = "mirrored" if follow.crossed else ""
            matches.append(Match(parts.name, source_name(follow), note))
    used = {match.source for match in matches}
    names = [limb_name(track.limb) for track in limb_motion.limbs]
    notes = []
    ends: tuple[tuple[MiddlePart, object, object], ...] = (
        ("neck", limb_motion.neck, anatomy.neck),
        ("tail", limb_motion.tail, anatomy.tail),
    )
    for what, theirs, ours in ends:
        wave = wave_of(limb_motion, what)
        if ours and wave not in (None, what):
            notes.append(f"the {what} swings as the source's {wave} does: the source has none")
        elif theirs is None and ours:
            notes.append(f"the {what} goes on as the trunk does: the source has none")
        if theirs is not None and not ours:
            notes.append(f"the source's {what} is left out: the target has none")
    return Report(tuple(matches), tuple(name for name in names if name not in used), tuple(notes))


def wave_of(lm: LimbMotion, part: MiddlePart) -> MiddlePart | None:
    """The part of the source's middle line that a part of the target's follows; None where it goes on as the trunk.

    What swims or creeps has one long line, whatever its ends are called: one end follows the other.
    """
    has: dict[MiddlePart, bool] = {"trunk": True, "neck": lm.neck is not None, "tail": lm.tail is not None}
    other: dict[MiddlePart, MiddlePart] = {"neck": "tail", "tail": "neck"}
    if has[part]:
        return part
    waves = lm.kind in ("fish", "snake") and part in other and has[other[part]]
    return other[part] if waves else None


def mirrored(track: LimbTrack) -> LimbTrack:
    """The track of a limb as its twin on the other side of the body would have it."""
    other = {"left": "right", "right": "left", "middle": "middle"}[track.limb.side]
    return replace(
        track,
        limb=replace(track.limb, side=other),
        turns=_MIRROR @ track.turns @ _MIRROR,
        rest=_MIRROR @ track.rest @ _MIRROR,
        end=track.end * [-1.0, 1.0, 1.0],
    )


def _partner(lm: LimbMotion, anatomy: Anatomy, parts: LimbParts, other: LimbKind | None = None) -> Follow | None:
    kind, side, rank = parts.limb.kind, parts.limb.side, parts.limb.rank
    ours = sum(p.limb.kind == kind and p.limb.side == side for p in anatomy.parts)
    for theirs in FOLLOWS[kind] if other is None else (other,):
        row = sorted((t for t in lm.limbs if (t.limb.kind, t.limb.side) == (theirs, side)), key=lambda t: t.limb.rank)
        if not row:
            continue
        # Two legs of a person are the hind ones of an animal.
        places = [round(k / max(ours - 1, 1) * (len(row) - 1)) if ours > 1 else len(row) - 1 for k in range(ours)]
        if kind == "leg" and ours > len(row) and all(_steps(t) for t in row):
            places = [len(row) - 1] * ours
        mine = min(rank, ours - 1)
        turn = places[:mine].count(places[mine])
        twin = _twin(lm, row[places[mine]])
        if kind == "leg" and turn % 2 and twin is not None:
            return Follow(mirrored(twin), crossed=True)
        return Follow(row[places[mine]])
    return None


def _steps(track: LimbTrack) -> bool:
    """Whether a leg stands and swings."""
    return bool(track.contact.any()) and not bool(track.contact.all())


def _twin(lm: LimbMotion, track: LimbTrack) -> LimbTrack | None:
    """The limb of the same kind and rank on the other side."""
    other = {"left": "right", "right": "left"}.get(track.limb.side)
    key = (track.limb.kind, other, track.limb.rank)
    return next((t for t in lm.limbs if (t.limb.kind, t.limb.side, t.limb.rank) == key), None)


def source_name(follow: Follow) -> str:
    """The name of the limb that is followed, as the source has it."""
    limb = follow.track.limb
    if follow.crossed:
        limb = replace(limb, side="right" if limb.side == "left" else "left")
    return limb_name(limb)


def _listed(names: Mapping[str, object]) -> str:
    return ", ".join(names) or "none"
