"""From a sentence to a draft: real motion for each of its actions, shaped and joined, on the joints of a body."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from jigdoll.errors import JigdollError
from jigdoll.language.actions import ACTIONS
from jigdoll.language.meaning import understood
from jigdoll.language.sizes import tempo_by_size
from jigdoll.memory.courses import along, gets_along, gripping, on_course, settled, unit_of
from jigdoll.memory.drawn import Draw, as_found
from jigdoll.memory.find import SEEDS, TURNS, Found, find, pick_after, refusal, tempo_of
from jigdoll.memory.flights import afloat, on_the_ground, through_space, to_the_ground
from jigdoll.memory.joins import features, join, lead_in, lead_out, reversed_in_time, unlikeness
from jigdoll.memory.loops import closed, go_on, long_enough, loop, repeated
from jigdoll.memory.parts import alike
from jigdoll.memory.paths import beyond, checked_path, path_length, straight
from jigdoll.memory.segments import Memory
from jigdoll.memory.shape import STANDING, at_frames, at_speed, fastest, mirror, resample, speed_of
from jigdoll.memory.smooth import resample_smooth, smoothed
from jigdoll.motion import close_loop, in_place, place, slice_motion
from jigdoll.protocols import TextEncoder
from jigdoll.rig.anatomy import Anatomy
from jigdoll.rig.retarget.decode import decode
from jigdoll.rig.retarget.limb_motion import LimbMotion, to_metres, to_units
from jigdoll.rig.retarget.match import match_limbs
from jigdoll.types import Motion, Request, RequestedAction

CYCLE_SECONDS = 2.4
"""How long an action that could go on for ever is shown, where nobody says."""
REST_SECONDS = 0.8
"""How long a pause between two actions lasts."""
MOST_SECONDS = 600.0
SETTLE_SECONDS = 3.0
"""A stride is looked at for so long to find how fast feet that do not slip carry a body."""
ALTERNATIVES = 4
"""What goes on for long is made of at most so many segments."""


@dataclass(frozen=True, eq=False)
class Directions:
    """How a sentence is to be shown, where it matters."""

    seconds: float | None = None
    """How long; each action takes the time that it takes where nothing is said."""
    fps: float = 24.0
    loop: bool = False
    """The end meets the beginning, in pose and velocity."""
    seed: int = 0
    """Another seed finds other segments that fit as well."""
    worse: float = SEEDS
    """How much worse than the best they may fit."""
    speed: float | None = None
    """Over the ground, of the actions that get along [m/s]."""
    pace: float = 1.0
    """The speed is aimed at so many times higher: what locking the feet takes away again."""
    path: Float[ndarray, "points 2"] | None = None
    """Points x, z on the ground to walk along [m]; the clip begins at the first one, facing the next."""
    start: LimbMotion | None = None
    """Whose last frame is the clip's first: pose, place and heading go on from it."""
    end: LimbMotion | None = None
    """Whose first frame is the pose in which the clip ends."""
    in_place: bool = False
    """On the spot, as game engines like it."""


@dataclass(frozen=True, eq=False)
class Draft:
    """A motion made of real ones, and where they came from."""

    motion: Motion
    """On the working copy."""
    limb_motion: LimbMotion
    found: tuple[Found, ...]
    """One segment per action of the sentence."""
    notes: tuple[str, ...] = ()
    """What was wished for and is not quite met, in words."""

    @property
    def fit(self) -> float:
        """How well words and body fit, the worst action counting."""
        return min(f.score for f in self.found)


def draft(
    memory: Memory,
    request: Request,
    anatomy: Anatomy,
    encoder: TextEncoder,
    directions: Directions = Directions(),
    *,
    draw: Draw | None = None,
    drawn: Collection[int] = (),
) -> Draft:
    """The sentence as real motion on this body; refused by name where the memory knows nothing like it.

    `draw` makes up what is not known; `drawn` are the numbers of the actions that it makes up whatever is known. What
    it makes is timed, joined, directed and put on the body as found motion is.
    """
    _check(directions)
    request, heard = understood(request, encoder)
    if not request.actions:
        raise JigdollError(
            f"{request.prompt!r}: no action was found in it; say what it does, such as walks, jumps, waves"
        )
    actions = [_walked(action) for action in _at_once(request.actions)]
    request = replace(request, actions=tuple(on_the_ground(actions, memory, anatomy)))
    ranked = [[] if i in drawn else find(memory, request, a, anatomy, encoder) for i, a in enumerate(request.actions)]
    chosen: list[Found] = []
    pieces: list[list[LimbMotion]] = []
    for action, found in zip(request.actions, ranked, strict=True):
        if found:
            last = pieces[-1][0] if pieces else directions.start
            gap = None if last is None else _follows(last)
            best = pick_after(memory, found, directions.seed, gap, directions.worse)
            kin = [best, *[f for f in found if _same(f, best)][: ALTERNATIVES - 1]]
            raw = [_shaped(memory.segment(f.index).motion, f, request, action, directions.fps) for f in kin]
        elif draw is not None:
            made = draw(request, action)
            best = as_found(made, request, action, anatomy)
            raw = [_shaped(made, best, request, action, directions.fps)]
        else:
            raise JigdollError(refusal(memory, request, action, anatomy, encoder))
        raw = [_in_common(afloat(piece, action, anatomy), anatomy) for piece in raw]
        pieces.append([_paced(piece, action, anatomy, directions) for piece in raw])
        chosen.append(best)
    shown = _timed(request.actions, chosen, pieces, anatomy, directions)
    shown = [to_the_ground(piece, action.name) for piece, action in zip(shown, request.actions, strict=True)]
    shown = _in_same_units(shown, anatomy)
    limb_motion = shown[0]
    for piece in shown[1:]:
        limb_motion = join(limb_motion, piece)
    goes_round = len(shown) == 1 and chosen[0].words.cyclic
    limb_motion, notes = _finished(limb_motion, goes_round, directions)
    notes = [*heard, *notes, *_not_found(request, anatomy), *_unmet(request, chosen, shown, anatomy, directions)]
    motion = _on_body(limb_motion, anatomy, loop=directions.loop)
    return Draft(in_place(motion) if directions.in_place else motion, limb_motion, tuple(chosen), tuple(notes))


def _on_body(limb_motion: LimbMotion, anatomy: Anatomy, *, loop: bool) -> Motion:
    """The motion on the joints of a body; of a loop the middle one of three rounds, so that both ends know what is
    beyond them."""
    if not loop or len(limb_motion) < 3:
        return decode(limb_motion, anatomy)
    steps = len(limb_motion) - 1
    rounds = decode(repeated(limb_motion, 3), anatomy)
    middle = slice_motion(rounds, slice(steps, 2 * steps + 1))
    return close_loop(place(middle, anatomy.skeleton, like=rounds.pose[0]), anatomy.skeleton)


def _check(directions: Directions) -> None:
    """Refuse directions that nobody can follow."""
    seconds, speed = directions.seconds, directions.speed
    if seconds is not None and not 0 < seconds <= MOST_SECONDS:
        raise JigdollError(f"a clip of {seconds:g} s cannot be made; more than 0 and at most {MOST_SECONDS:g} s can")
    if speed is not None and not 0 < speed < 1000:
        raise JigdollError(f"{speed:g} m/s is no speed to go at")
    if directions.path is not None and directions.in_place:
        raise JigdollError("a path leads away and in place stays; leave one of them out")
    if directions.loop and (directions.start is not None or directions.end is not None):
        raise JigdollError("a loop has no first and no last pose; leave out the loop, or the pose")


def _at_once(actions: Sequence[RequestedAction]) -> list[RequestedAction]:
    """Who falls down and dies, does both at once: nobody gets up in between."""
    after = [*(action.name for action in actions[1:]), ""]
    return [action for action, then in zip(actions, after, strict=True) if (action.name, then) != ("fall", "die")]


def _walked(action: RequestedAction) -> RequestedAction:
    """Who circles walks, in a circle."""
    return replace(action, name="walk", way="circle") if action.name == "circle" else action


def _follows(last: LimbMotion) -> Callable[[LimbMotion], float]:
    """How badly a motion goes on from the end of another one."""

    def gap(motion: LimbMotion) -> float:
        first, second = alike(last, motion if motion.fps == last.fps else resample(motion, last.fps))
        late = max(len(second) // 4, 1)
        ends = features(first)[-max(min(len(first) // 3, round(first.fps)), 1) :]
        return min(float(unlikeness(ends, features(second)[:late]).min()), 4.0)

    return gap


def _same(other: Found, best: Found) -> bool:
    """Whether a segment shows the same as another one, so that one can go on as the other."""
    words, like = other.words, best.words
    pace = abs(words.speed - like.speed) < 0.25 * max(like.speed, 0.2)
    return other.index != best.index and words.action == like.action and words.noun == like.noun and pace


def _shaped(motion: LimbMotion, best: Found, request: Request, action: RequestedAction, fps: float) -> LimbMotion:
    """The motion at the wanted rate, tempo, side and way."""
    tempo = tempo_of(action, () if best.style and request.style else request.style)
    if best.words.legs and ACTIONS[best.words.action].gait in ("walk", "run"):
        tempo *= tempo_by_size(best.words.noun, request.noun or request.species)
    motion = through_space(resample_smooth(smoothed(motion), fps, tempo=tempo), action.name)
    turned = float(motion.heading[-1])
    if action.side and action.name in TURNS:
        if (action.side == "left") != (turned > 0) and abs(turned) > 0.2:
            motion = mirror(motion)
    elif action.side and _busier(motion) not in (None, action.side):
        motion = mirror(motion)
    if action.way == "backward" and "back" not in best.words.text:
        motion = reversed_in_time(motion)
    return motion


def _in_common(motion: LimbMotion, anatomy: Anatomy) -> LimbMotion:
    """The motion as this body can show it: one that has none of its limbs is carried along as a whole."""
    flying = replace(motion, grounded=False)
    if not motion.grounded or any(match_limbs(flying, anatomy).values()):
        return motion
    still = np.array([0.0, 1.0, 0.0])  # as high as at rest
    return replace(flying, place=still + (motion.place - still) * anatomy.leg_length / anatomy.body_length)


def _not_found(request: Request, anatomy: Anatomy) -> list[str]:
    """What this body should have for what it is asked, as far as its rig shows."""
    steps = any(ACTIONS[a.name].gait in ("walk", "run", "jump") for a in request.actions if a.name in ACTIONS)
    if anatomy.legs or anatomy.kind in ("fish", "snake") or not (steps or anatomy.kind == "other"):
        return []
    found = sorted({f"{parts.limb.kind}s" for parts in anatomy.parts})
    beside = f"only {' and '.join(found)}" if found else "nor other limbs"
    return [f"no legs were found in this character, {beside}: it goes as a whole"]


def _busier(motion: LimbMotion) -> str | None:
    """The side whose arm or foreleg does more."""
    ways = {}
    for track in motion.limbs:
        if track.limb.kind == "arm" or (track.limb.kind == "leg" and track.limb.rank == 0):
            way = float(np.abs(np.diff(track.end, axis=0)).sum())
            ways[track.limb.side] = ways.get(track.limb.side, 0.0) + way
    if len(ways) < 2 or max(ways.values()) < 1.3 * min(ways.values()):
        return None
    return max(ways, key=lambda side: ways[side])


def _paced(motion: LimbMotion, action: RequestedAction, anatomy: Anatomy, directions: Directions) -> LimbMotion:
    """What gets along, as fast on this body as its feet make it or as is asked, straight ahead."""
    if not gets_along(action, motion):
        return motion
    motion = gripping(long_enough(motion, SETTLE_SECONDS), anatomy)
    if directions.speed is not None:
        wanted = directions.pace * directions.speed / unit_of(anatomy, motion)
        motion = gripping(at_speed(motion, wanted), anatomy)
        rest = wanted / max(speed_of(motion), 1e-6)
        motion = resample(motion, motion.fps, tempo=float(np.clip(rest, 0.6, max(min(1.6, fastest(motion)), 1.0))))
    return straight(motion)


def _in_same_units(shown: list[LimbMotion], anatomy: Anatomy) -> list[LimbMotion]:
    """Motions that can be joined: where one flies, places of all are counted as those of flights are."""
    if all(motion.grounded == shown[0].grounded for motion in shown):
        return shown
    metres = [to_metres(anatomy, motion.place, grounded=motion.grounded) for motion in shown]
    return [
        replace(motion, place=to_units(anatomy, places, grounded=False), grounded=False)
        for motion, places in zip(shown, metres, strict=True)
    ]


def _timed(
    actions: Sequence[RequestedAction],
    chosen: Sequence[Found],
    pieces: Sequence[list[LimbMotion]],
    anatomy: Anatomy,
    directions: Directions,
) -> list[LimbMotion]:
    """Each piece as long as it should be: what goes on for ever fills the time, the rest takes the time it takes."""
    cyclic = [f.words.cyclic for f in chosen]
    counts = [max(action.times, 1) for action in actions]
    fixed = sum(n * (len(p[0]) - 1) / p[0].fps for p, n, c in zip(pieces, counts, cyclic, strict=True) if not c)
    share = CYCLE_SECONDS
    if directions.seconds is not None and any(cyclic):
        share = max((directions.seconds - fixed) / sum(cyclic) + 0.3 * (len(pieces) > 1), 0.6)
    path = None if directions.path is None else checked_path(directions.path)
    shown = []
    for action, kin, goes_on, count in zip(actions, pieces, cyclic, counts, strict=True):
        travels, length, unit = gets_along(action, kin[0]), share, unit_of(anatomy, kin[0])
        if goes_on and action.name == "idle" and len(pieces) > 1 and directions.seconds is None:
            length = REST_SECONDS
        if travels and path is not None and directions.seconds is None:
            length = 1.1 * path_length(path) / unit / max(speed_of(kin[0]), STANDING) + 0.5
        if not goes_on:
            motion = kin[0]
            for _ in range(count - 1):
                motion = join(motion, kin[0])
        else:
            round_ = directions.loop and len(pieces) == 1
            motion = _going_on(kin, length, directions, closed=round_)
            for _ in range(2 if travels and directions.speed is not None else 0):
                kin = _corrected(kin, motion, anatomy, directions.pace * (directions.speed or 0.0))
                motion = _going_on(kin, length, directions, closed=round_)
        if travels and path is not None:
            motion, path = along(motion, path / unit, anatomy, seconds=directions.seconds, speed=directions.speed), None
        elif travels:
            motion = on_course(motion, action)
        shown.append(motion)
    return shown


def _going_on(kin: Sequence[LimbMotion], seconds: float, directions: Directions, *, closed: bool) -> LimbMotion:
    return loop(kin[0], seconds) if closed else go_on(kin, seconds, seed=directions.seed)


def _corrected(kin: Sequence[LimbMotion], motion: LimbMotion, anatomy: Anatomy, speed: float) -> list[LimbMotion]:
    """Pieces at the rate that brings the whole of them to a speed [m/s], by how fast the body really gets along."""
    ratio = speed / unit_of(anatomy, motion) / max(speed_of(settled(motion, anatomy)), 1e-6)
    return [resample(p, p.fps, tempo=float(np.clip(ratio, 0.7, max(min(1.4, fastest(p)), 1.0)))) for p in kin]


def _finished(motion: LimbMotion, goes_round: bool, directions: Directions) -> tuple[LimbMotion, list[str]]:
    """The motion with its first and last pose, of the length that is asked for, and what is not met."""
    notes = []
    if directions.loop and not goes_round:
        motion = closed(lead_out(motion, motion))
    if directions.start is not None:
        motion = lead_in(directions.start, motion)
    if directions.seconds is not None and not directions.loop:
        motion = _exactly(motion, directions.seconds)
    if directions.end is not None:
        motion = lead_out(motion, directions.end)
    made = (len(motion) - 1) / motion.fps
    if directions.seconds is not None and abs(made - directions.seconds) > 1.0 / motion.fps:
        notes.append(f"{directions.seconds:g} s were asked for, and the loop is {made:.2f} s long: it has whole cycles")
    return motion, notes


def _exactly(motion: LimbMotion, seconds: float) -> LimbMotion:
    """Cut to the length; what is too short is played slower, and what would be much too slow is held at its end."""
    count = max(round(seconds * motion.fps) + 1, 2)
    if len(motion) < count <= 1.35 * len(motion):
        return at_frames(motion, np.linspace(0, len(motion) - 1, count))
    return at_frames(motion, np.minimum(np.arange(count, dtype=float), len(motion) - 1))


def _unmet(
    request: Request,
    chosen: Sequence[Found],
    shown: Sequence[LimbMotion],
    anatomy: Anatomy,
    directions: Directions,
) -> list[str]:
    """What was asked for and is not quite shown."""
    notes = []
    going = [motion for action, motion in zip(request.actions, shown, strict=True) if gets_along(action, motion)]
    if directions.path is not None and not going:
        notes.append("nothing in the sentence gets along, so no path is followed")
    if directions.path is not None and directions.seconds is not None and going:
        unit, points = unit_of(anatomy, going[0]), checked_path(directions.path)
        missing = -beyond(going[0], points / unit) * unit
        if missing > max(0.1 * path_length(points), 0.5 * anatomy.leg_length):
            notes.append(
                f"in {directions.seconds:g} s it does not get to the end of the path: {missing:.1f} m are left"
            )
    if directions.speed is not None:
        if not going:
            notes.append("nothing in the sentence gets along, so the speed is not used")
        for motion in going:
            made = speed_of(settled(motion, anatomy)) * unit_of(anatomy, motion) / directions.pace
            if abs(made - directions.speed) > 0.1 * directions.speed:
                notes.append(
                    f"{directions.speed:.2f} m/s were asked for; this gait goes at {made:.2f} m/s on this body"
                )
    if request.style and not any(found.style for found in chosen):
        styles = ", ".join(request.style)
        notes.append(f"nothing in the memory is done {styles!r}: only the tempo, at most, shows it")
    for found in chosen:
        if found.words.source.startswith("zoo"):
            action = found.words.action.replace("_", " ")
            notes.append(f"no real clip of {action!r} fits such a body better than a procedural gait")
    return notes
