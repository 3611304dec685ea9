"""Make the memory that ships from a corpus of free motion.

    python -m jigdoll.memory.build CORPUS OUT.safetensors

CORPUS has `sources.tsv`, `clips.tsv`, `characters/` and `motion/` (see its README). Only rows of the split `train` go
in. Each clip of a character is one segment; takes of mocap are cut into single actions (`cuts`). What looked wrong on
contact sheets is named in `excluded.tsv` and left out. No more than a few segments are kept for one kind of body,
action and manner, from as many sources as there are. Where no real clip of a gait is known for a kind of body, the
built-in characters' own procedural gait stands in, marked as such.
"""

import sys
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from jigdoll import zoo
from jigdoll.corpus import LEAST_FRAMES, UNNAMED, takes
from jigdoll.kinematics import motion_to_world
from jigdoll.language.encoder import open_encoder
from jigdoll.memory.codes import open_codec
from jigdoll.memory.cuts import (
    FOLDS,
    HEARD,
    Check,
    Piece,
    aligned,
    fold_of,
    frame_signs,
    learn_check,
    signature,
    single,
)
from jigdoll.memory.find import KIN, stuck
from jigdoll.memory.labels import actions_of, imitated, plain, styles_of
from jigdoll.memory.segments import Segment, Words, excluded, save_segments
from jigdoll.memory.shape import resample, speed_of
from jigdoll.protocols import TextEncoder
from jigdoll.rig.anatomy import Anatomy, BodyKind, anatomy_of
from jigdoll.rig.reparent import reparent
from jigdoll.rig.retarget.decode import decode
from jigdoll.rig.retarget.limb_motion import LimbMotion, cut, encode, yaw
from jigdoll.rig.retarget.standing import feet_of
from jigdoll.zoo import gaits

FPS = 30.0
"""Frames per second at which segments are kept, at most."""
TOLERANCE = np.radians(0.6)
"""Windows are written as near as this."""
PER_ACTION = {"person": 18}
PER_ACTION_ELSEWHERE = 24
PER_STYLE = 4
"""Segments kept for one kind of body and action, and of one manner besides."""
MOST_JUMP = 1.2
"""A root that jumps farther than this in a frame [leg lengths] is broken."""
SAME = 0.02
"""Segments whose limbs are nearer to each other than this, on the mean [limb lengths], show the same."""
RELIABLE = 0.5
"""The check throws out pieces of actions of which it hears at least this share in takes that it did not learn from."""
GRIP_BODIES: dict[BodyKind, str] = {
    "person": "human",
    "quadruped": "horse",
    "biped": "t_rex",
    "bird": "ostrich",
    "insect": "ant",
    "spider": "spider",
}
"""Built-in bodies on which the grip of gaits is measured."""
NEAR_GROUND, SLIDING = 0.05, 0.75
"""A foot lower than this [leg lengths] that is faster than this [leg lengths / s] slides."""
GAITS = (
    *("walk", "run", "trot", "gallop", "creep", "sneak", "march", "limp", "swim", "fly", "hover", "flap", "crawl"),
    *("slither", "stagger", "stomp", "hop", "climb_stairs", "skate"),
)
"""What repeats the same cycle."""
CYCLIC = (
    *(*GAITS, "dance", "idle", "climb", "talk", "work", "exercise", "swing", "jumping_jacks", "sleep", "play", "ride"),
    *("tremble", "push_up", "squat", "juggle", "type", "clap"),
)
"""What can go on for ever."""
ZOO_BODIES = ("human", "ostrich", "t_rex", "fox", "horse", "dragon", "ant", "spider")
"""The built-in characters whose procedural gaits may stand in."""


@dataclass(frozen=True, eq=False)
class Clip:
    """A clip of the corpus with what its words say."""

    text: str
    named: str
    """The action by the corpus's name."""
    noun: str
    kind: BodyKind
    source: str
    licence: str
    motion: LimbMotion

    @property
    def recorded(self) -> bool:
        """Whether it was recorded from a person rather than drawn by an artist."""
        return self.source.startswith(("cmu ", "rocketbox "))


def clips(corpus: Path) -> Iterator[Clip]:
    """All clips that may go in."""
    for take in takes(corpus, mixed=True):
        motion = take.motion if take.motion.fps <= FPS + 1 else resample(take.motion, FPS)
        if len(motion) >= LEAST_FRAMES and np.isfinite(motion.place).all():
            yield Clip(take.text, take.action, take.noun, take.anatomy.kind, take.source, take.licence, motion)


def label(clip: Clip, encoder: TextEncoder) -> tuple[str, ...]:
    """The actions of a clip in order."""
    if clip.recorded:
        actions = actions_of(clip.text, clip.named, encoder)
        if not actions and (imitated(clip.text) or styles_of(clip.text)):
            return ("walk",) if speed_of(clip.motion) > 0.3 else ("idle",)
        return actions
    told = actions_of(clip.text.split(" ", 2)[-1], clip.named, encoder)
    if clip.named in told or len(told) != 1 or (clip.named == "hit_reaction" and told[0] in ("punch", "attack")):
        return (clip.named,) if clip.named != UNNAMED else ()
    return told


def checks(rows: Sequence[tuple[Clip, tuple[str, ...]]]) -> tuple[list[Check], frozenset[str]]:
    """One check for each fifth of the recorded takes, learned from the other four, and the actions that it can tell."""
    known = [(clip, actions[0]) for clip, actions in rows if clip.recorded and len(actions) == 1]
    signs = np.stack([signature(frame_signs(clip.motion)) for clip, _ in known])
    folds = np.array([fold_of(clip.source) for clip, _ in known])
    made = []
    for fold in range(FOLDS):
        others = np.flatnonzero(folds != fold)
        made.append(learn_check(signs[others], [known[i][1] for i in others]))
    heard: dict[str, list[bool]] = defaultdict(list)
    for (_, action), row, fold in zip(known, signs, folds, strict=True):
        check = made[fold]
        if action in check.names:
            shares = check.log_shares(row[None])[0]
            heard[action].append(int((shares > shares[check.names.index(action)]).sum()) < HEARD)
    told = [ok for found in heard.values() for ok in found]
    sys.stdout.write(f"the check hears {np.mean(told):.0%} of {len(told)} takes that it did not learn from\n")
    return made, frozenset(action for action, found in heard.items() if np.mean(found) >= RELIABLE)


def pieces_of(clip: Clip, actions: tuple[str, ...], check: Check, sure: frozenset[str]) -> list[Piece]:
    """The single actions of a clip that are heard, where the check can tell."""
    if not clip.recorded:
        return single(clip.motion, actions[0], None, steady=False, most=1)
    if len(actions) == 1:
        found = single(clip.motion, actions[0], check, steady=actions[0] in GAITS)
    else:
        found = aligned(clip.motion, actions, check)
    odd = bool(styles_of(clip.text) or imitated(clip.text))  # who walks as a chicken does is not heard to walk
    trusted = len(actions) == 1 and (odd or actions[0] not in sure)
    return [piece for piece in found if trusted or piece.rank < HEARD]


def segment_of(clip: Clip, piece: Piece, alone: bool) -> Segment | None:
    """A piece with its words; none where it breaks."""
    motion = _from_origin(cut(clip.motion, piece.first, piece.last))
    if len(motion) < LEAST_FRAMES or np.abs(np.diff(motion.place, axis=0)).max(initial=0.0) > MOST_JUMP:
        return None
    spoken = piece.action.replace("_", " ")
    text = plain(clip.text) if alone else f"{spoken}, of: {plain(clip.text)}"
    if clip.recorded:
        text = f"a person: {text}"
    styles = (*styles_of(clip.text), *imitated(clip.text)) if clip.recorded else styles_of(clip.text.split(" ", 2)[-1])
    words = Words(
        text, piece.action, clip.noun, clip.kind, sum(t.limb.kind == "leg" for t in motion.limbs),
        any(t.limb.kind == "wing" for t in motion.limbs), round((len(motion) - 1) / motion.fps, 2),
        round(speed_of(motion), 3), piece.action in CYCLIC, 0.5, clip.source, clip.licence,
        tuple(dict.fromkeys(styles)), round(float(motion.heading[-1]), 2),
    )  # fmt: skip
    return Segment(words, motion)


def _from_origin(motion: LimbMotion) -> LimbMotion:
    """The motion begun at the origin, facing ahead."""
    ground = motion.place * [1.0, 0.0, 1.0]
    place = (ground - ground[0]) @ yaw(motion.heading[:1])[0]
    place[:, 1] = motion.place[:, 1]
    return replace(motion, place=place, heading=motion.heading - motion.heading[0])


def with_typical(segments: list[Segment]) -> list[Segment]:
    """Each segment with how usual it is among those of its kind of body and action: where limbs are, how they swing."""
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for i, segment in enumerate(segments):
        groups[segment.words.kind, segment.words.action].append(i)
    out = list(segments)
    for members in groups.values():
        rows = np.stack([_habit(segments[i]) for i in members])
        far = np.abs(rows - np.median(rows, 0)) / (np.median(np.abs(rows - np.median(rows, 0)), 0) + 0.05)
        order = np.clip(far, 0, 5).mean(1).argsort().argsort()
        for i, rank in zip(members, order, strict=True):
            typical = round(1 - float(rank) / max(len(members) - 1, 1), 2)
            out[i] = Segment(replace(segments[i].words, typical=typical), segments[i].motion)
    return out


def _habit(segment: Segment) -> np.ndarray:
    """A few numbers about how a segment looks."""
    by_kind = defaultdict(list)
    for track in segment.motion.limbs:
        by_kind[track.limb.kind].append(np.concatenate([np.abs(track.end.mean(0)), track.end.std(0)]))
    rows = [np.mean(by_kind[kind], 0) if by_kind[kind] else np.zeros(6) for kind in ("leg", "arm", "wing")]
    lean = segment.motion.root[:, :, 1].mean(0)
    return np.concatenate([*rows, lean, [segment.words.speed, segment.motion.place[:, 1].mean()]])


def with_grip(segments: list[Segment]) -> list[Segment]:
    """Gaits whose feet slide over the ground of a built-in body of their kind, marked as unusual."""
    bodies = {kind: anatomy_of(reparent(zoo.make(name)).asset) for kind, name in GRIP_BODIES.items()}
    out = []
    for segment in segments:
        words = segment.words
        if words.kind in bodies and words.action in GAITS and segment.motion.grounded:
            slides = slip(bodies[words.kind], segment.motion)
            words = replace(words, typical=round(words.typical * (1 - slides), 2))
        out.append(Segment(words, segment.motion))
    return out


def slip(anatomy: Anatomy, motion: LimbMotion) -> float:
    """The share of the moments in which a foot near the ground slides over it, on a body."""
    made = decode(motion, anatomy)
    feet = feet_of(anatomy, motion_to_world(anatomy.skeleton, made), made.fps)
    low = feet.soles[..., 1].amin(-1).numpy()[:-1] < NEAR_GROUND * anatomy.leg_length
    speed = np.linalg.norm(np.diff(feet.joints.numpy()[..., [0, 2]], axis=0), axis=-1) * made.fps
    return float((low & (speed > SLIDING * anatomy.leg_length)).sum() / max(int(low.sum()), 1))


def chosen(segments: Sequence[Segment]) -> list[Segment]:
    """A few segments per kind of body, action and manner, from as many sources as there are."""
    groups: dict[tuple[str, str, str], list[Segment]] = defaultdict(list)
    for segment in segments:
        words = segment.words
        groups[words.kind, words.action, words.style[0] if words.style else ""].append(segment)
    kept = []
    for (kind, _, style), group in sorted(groups.items()):
        most = PER_STYLE if style else PER_ACTION.get(kind, PER_ACTION_ELSEWHERE)
        by_source: dict[str, list[Segment]] = defaultdict(list)
        for segment in sorted(group, key=lambda s: (stuck(s.words), -s.words.typical, s.words.source)):
            by_source[segment.words.noun if kind != "person" else segment.words.source[:8]].append(segment)
        rows = list(by_source.values())
        picked = _different(row[i] for i in range(max(map(len, rows))) for row in rows if i < len(row))
        kept += sorted(picked, key=lambda segment: stuck(segment.words))[:most]
    return kept


def _different(segments: Iterable[Segment]) -> list[Segment]:
    """Without those that show the same as one before: many characters of one author share their clips."""
    kept: list[Segment] = []
    looks: list[np.ndarray] = []
    for segment in segments:
        look = _look(segment.motion)
        if not any(_same(look, other) for other in looks):
            kept.append(segment)
            looks.append(look)
    return kept


def _same(look: np.ndarray, other: np.ndarray) -> bool:
    if look.shape != other.shape:
        return False
    gap = np.abs(look - other)
    return bool(gap.mean() < SAME and gap.max() < 5 * SAME)


def _look(motion: LimbMotion) -> np.ndarray:
    """Where limbs and the middle are at a few moments, and how long it takes."""
    at = np.linspace(0, len(motion) - 1, 8).astype(int)
    rows = [motion.trunk[at, -1, :, 1], motion.root[at, :, 1], *(track.end[at] for track in motion.limbs)]
    if motion.tail is not None:
        rows.append(motion.tail[at, -1, :, 1])
    return np.concatenate([np.concatenate(rows, 1).reshape(-1), [0.1 * len(motion) / motion.fps]])


def procedural(known: Iterable[Words]) -> Iterator[Segment]:
    """The built-in characters' own gaits, for kinds of bodies that are never seen doing them."""
    have = {(words.kind, words.action) for words in known if not stuck(words)}
    for name in ZOO_BODIES:
        work = reparent(zoo.make(name))
        anatomy = anatomy_of(work.asset)
        for spoken in gaits.actions(work.asset):
            action = {"turn_left": "turn"}.get(spoken, spoken)
            if spoken == "turn_right" or (anatomy.kind, action) in have or anatomy.kind not in KIN:
                continue
            have.add((anatomy.kind, action))
            motion = _from_origin(encode(anatomy, gaits.reference_motion(work.asset, spoken, seconds=3.0, fps=FPS)))
            words = Words(
                f"a {name}: {spoken.replace('_', ' ')}", action, name, anatomy.kind, len(anatomy.legs),
                any(t.limb.kind == "wing" for t in motion.limbs), round((len(motion) - 1) / motion.fps, 2),
                round(speed_of(motion), 3), action in CYCLIC, 0.5, "zoo, procedural", "Apache-2.0",
            )  # fmt: skip
            yield Segment(words, motion)


def collect(corpus: Path, encoder: TextEncoder) -> list[Segment]:
    """Every segment that the corpus has to offer."""
    rows = [(clip, label(clip, encoder)) for clip in clips(corpus)]
    heard, sure = checks(rows)
    out_of = excluded()
    segments = []
    for clip, actions in rows:
        if not actions:
            continue
        for piece in pieces_of(clip, actions, heard[fold_of(clip.source)], sure):
            segment = segment_of(clip, piece, len(actions) == 1)
            if segment is not None and (segment.words.source, segment.words.text) not in out_of:
                segments.append(segment)
    return segments


def main(corpus: Path, out: Path) -> None:
    warnings.simplefilter("ignore")
    encoder = open_encoder()
    offered = collect(corpus, encoder)
    segments = chosen(with_grip(with_typical(offered)))
    segments += list(procedural(segment.words for segment in segments))
    vectors = encoder.encode([segment.words.text.removeprefix("a person: ") for segment in segments]).numpy()
    save_segments(out, segments, vectors, open_codec(), tolerance=TOLERANCE)
    seconds = sum(segment.words.seconds for segment in segments)
    size = out.stat().st_size / 1e6
    sys.stdout.write(f"{len(offered)} pieces, {len(segments)} segments, {seconds:.0f} s, {size:.1f} MB\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
