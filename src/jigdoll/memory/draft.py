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
from jigdoll.memory.drawn import Draw, as_found
from jigdoll.memory.find import SEEDS, TURNS, Found, find, pick_after, refusal, tempo_of
from jigdoll.memory.flights import afloat, on_the_ground, through_space, to_the_ground
from jigdoll.memory.joins import features, join, lead_in, lead_out, reversed_in_time, unlikeness
from jigdoll.memory.loops import go_on, long_enough, loop
from jigdoll.memory.parts import alike
from jigdoll.memory.paths import checked_path, circle, follow, path_length, straight, up_to
from jigdoll.memory.segments import Memory
from jigdoll.memory.shape import STANDING, at_frames, at_speed, fastest, mirror, resample, speed_of
from jigdoll.memory.smooth import resample_smooth, smoothed
from jigdoll.motion import in_place
from jigdoll.protocols import TextEncoder
from jigdoll.rig.anatomy import Anatomy
from jigdoll.rig.retarget.decode import decode
from jigdoll.rig.retarget.limb_motion import LimbMotion, to_metres, to_units
from jigdoll.types import Motion, Request, RequestedAction

CYCLE_SECONDS = 2.4
"""How long an action that could go on for ever is shown, where nobody says."""
REST_SECONDS = 0.8
"""How long a pause between two actions lasts."""
MOST_SECONDS = 600.0
CIRCLE_RADIUS = 2.5
"""Of who goes in circles [leg lengths]."""
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
        raw = [afloat(piece, action, anatomy) for piece in raw]
        pieces.append([_paced(piece, action, anatomy, directions) for piece in raw])
        chosen.append(best)
    shown = _timed(request.actions, chosen, pieces, anatomy, directions)
    shown = [to_the_ground(piece, action.name) for piece, action in zip(shown, request.actions, strict=True)]
    shown = _in_same_units(shown, anatomy)
    limb_motion = shown[0]
    for piece in shown[1:]:
        limb_motion = join(limb_motion, piece)
    limb_motion, notes = _finished(limb_motion, len(shown) > 1, directions)
    notes = [*heard, *notes, *_unmet(request, chosen, shown, anatomy, directions)]
    motion = decode(limb_motion, anatomy)
    return Draft(in_place(motion) if directions.in_place else motion, limb_motion, tuple(chosen), tuple(notes))


def _check(directions: Directions) -> None:
    """Refuse directions that nobody can follow."""
    seconds, speed = directions.seconds, directions.speed
    if seconds is not None and not 0 < seconds <= MOST_SECONDS:
        raise JigdollError(f"a clip of {seconds:g} s cannot be made; more than 0 and at most {MOST_SECONDS:g} s can")
    if speed is not None and not 0 < speed < 1000:
        raise JigdollError(f"{speed:g} m/s is no speed to go at")
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


def unit_of(anatomy: Anatomy, motion: LimbMotion) -> float:
    """What places of a motion in limb space are counted in [m]."""
    return anatomy.leg_length if motion.grounded else anatomy.body_length


def _gets_along(action: RequestedAction, motion: LimbMotion) -> bool:
    """Whether an action is a way to get somewhere, in a line of its own choice."""
    row = ACTIONS.get(action.name)
    travels = row is not None and row.gait in ("walk", "run", "fly") and action.name not in TURNS
    return travels and speed_of(motion) > STANDING


def _paced(motion: LimbMotion, action: RequestedAction, anatomy: Anatomy, directions: Directions) -> LimbMotion:
    """What gets along, as fast on this body as its feet make it or as is asked, straight ahead."""
    if not _gets_along(action, motion):
        return motion
    motion = _gripping(long_enough(motion, SETTLE_SECONDS), anatomy)
    if directions.speed is not None:
        wanted = directions.speed / unit_of(anatomy, motion)
        motion = _gripping(at_speed(motion, wanted), anatomy)
        rest = wanted / max(speed_of(motion), 1e-6)
        motion = resample(motion, motion.fps, tempo=float(np.clip(rest, 0.6, max(min(1.6, fastest(motion)), 1.0))))
    return straight(motion)


def _gripping(motion: LimbMotion, anatomy: Anatomy) -> LimbMotion:
    """Settled, and once more: where feet hardly stand the first way is only half of it."""
    return settled(settled(motion, anatomy), anatomy)


def settled(motion: LimbMotion, anatomy: Anatomy) -> LimbMotion:
    """The motion with the way over the ground on which this body's feet do not slip."""
    if not (motion.grounded and anatomy.legs) or len(motion) < 3:
        return motion
    made = decode(motion, anatomy, apart=False).pose.root.double().numpy()[:, [0, 2]] / unit_of(anatomy, motion)
    place = motion.place.copy()
    place[:, [0, 2]] = made - made[0] + motion.place[0, [0, 2]]
    return replace(motion, place=place)


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
        travels, length, unit = _gets_along(action, kin[0]), share, unit_of(anatomy, kin[0])
        if goes_on and action.name == "idle" and len(pieces) > 1 and directions.seconds is None:
            length = REST_SECONDS
        if travels and path is not None and directions.seconds is None:
            length = path_length(path) / unit / max(speed_of(kin[0]), STANDING) + 0.5
        if not goes_on:
            motion = kin[0]
            for _ in range(count - 1):
                motion = join(motion, kin[0])
        else:
            closed = directions.loop and len(pieces) == 1
            motion = _going_on(kin, length, directions, closed=closed)
            for _ in range(2 if travels and directions.speed is not None else 0):
                kin = _corrected(kin, motion, anatomy, directions.speed or 0.0)
                motion = _going_on(kin, length, directions, closed=closed)
        if travels and path is not None:
            motion = follow(_fitting(motion, path / unit, directions), path / unit)
            motion, path = motion if directions.seconds else up_to(motion, path[-1] / unit), None
        elif travels:
            round_course = action.way == "circle"
            motion = follow(motion, _circle(action, motion)) if round_course else straight(motion)
        shown.append(motion)
    return shown


def _going_on(kin: Sequence[LimbMotion], seconds: float, directions: Directions, *, closed: bool) -> LimbMotion:
    return loop(kin[0], seconds) if closed else go_on(kin, seconds, seed=directions.seed)


def _corrected(kin: Sequence[LimbMotion], motion: LimbMotion, anatomy: Anatomy, speed: float) -> list[LimbMotion]:
    """Pieces at the rate that brings the whole of them to a speed [m/s], by how fast the body really gets along."""
    ratio = speed / unit_of(anatomy, motion) / max(speed_of(settled(motion, anatomy)), 1e-6)
    return [resample(p, p.fps, tempo=float(np.clip(ratio, 0.7, max(min(1.4, fastest(p)), 1.0)))) for p in kin]


def _fitting(motion: LimbMotion, path: Float[ndarray, "points 2"], directions: Directions) -> LimbMotion:
    """The motion at the speed that brings it to the end of the path in the time that is given."""
    if directions.seconds is None or directions.speed is not None:
        return motion
    seconds = (len(motion) - 1) / motion.fps
    faster = at_speed(motion, path_length(path) / seconds)
    return go_on([faster], seconds)


def _circle(action: RequestedAction, motion: LimbMotion) -> Float[ndarray, "points 2"]:
    way = speed_of(motion) * len(motion) / motion.fps
    return circle(CIRCLE_RADIUS, to_the_left=action.side != "right", rounds=way / (2 * np.pi * CIRCLE_RADIUS) + 0.5)


def _finished(motion: LimbMotion, several: bool, directions: Directions) -> tuple[LimbMotion, list[str]]:
    """The motion with its first and last pose, of the length that is asked for, and what is not met."""
    notes = []
    if directions.loop and several:
        motion = lead_out(motion, motion)
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
    going = [motion for action, motion in zip(request.actions, shown, strict=True) if _gets_along(action, motion)]
    if directions.path is not None and not going:
        notes.append("nothing in the sentence gets along, so no path is followed")
    if directions.speed is not None:
        if not going:
            notes.append("nothing in the sentence gets along, so the speed is not used")
        for motion in going:
            made = speed_of(settled(motion, anatomy)) * unit_of(anatomy, motion)
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
