"""Make the memory that ships from a corpus of free motion.

    python -m jigdoll.memory.build CORPUS OUT.safetensors

CORPUS has `sources.tsv`, `clips.tsv`, `characters/` and `motion/` (see its README). Only rows of the split `train` go
in. Each clip of a character is one segment; long takes of mocap are cut to where most happens. No more than a few
segments are kept for one kind of body and action, from as many sources as there are.
"""

import sys
import warnings
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np

from jigdoll.corpus import LEAST_FRAMES, Take, takes
from jigdoll.language.encoder import open_encoder
from jigdoll.memory.find import stuck
from jigdoll.memory.segments import FPS, Segment, Words, save_segments
from jigdoll.memory.shape import at_frames, looped, resample
from jigdoll.rig.retarget.limb_motion import LimbMotion

MOST_SECONDS = 5.0
MOST_PER_ACTION = {"person": 8}
MOST_ELSEWHERE = 12
"""Segments kept for one kind of body and action."""
GAITS = (
    *("walk", "run", "trot", "gallop", "creep", "sneak", "march", "limp", "swim", "fly", "hover", "flap", "crawl"),
    *("slither", "stagger", "stomp", "hop"),
)
"""What repeats the same cycle."""
CYCLIC = (*GAITS, "dance", "idle", "climb", "talk", "work", "exercise", "swing")
"""What can go on for ever."""


def segment_of(take: Take) -> Segment | None:
    """The take, cut to what it shows; none where it hardly moves or breaks."""
    motion = resample(take.motion, FPS)
    cyclic = take.action in CYCLIC
    if len(motion) < LEAST_FRAMES or not np.isfinite(motion.place).all():
        return None
    most = round(MOST_SECONDS * FPS)
    if len(motion) > most:
        first = _liveliest(motion, most, steady=take.action in GAITS)
        motion = at_frames(motion, np.arange(first, first + most, dtype=float))
    if take.action in GAITS and take.noun == "person" and len(motion) > 2 * LEAST_FRAMES:
        first, last = looped(motion)
        if last - first >= LEAST_FRAMES:
            motion = at_frames(motion, np.arange(first, last + 1, dtype=float))
    jump = np.abs(np.diff(motion.place, axis=0)).max(initial=0.0)
    if jump > 1.2:
        return None
    way = float(np.linalg.norm((motion.place[-1] - motion.place[0])[[0, 2]]))
    seconds = (len(motion) - 1) / FPS
    legs = sum(t.limb.kind == "leg" for t in motion.limbs)
    words = Words(
        take.text, take.action, take.noun, take.anatomy.kind, legs, any(t.limb.kind == "wing" for t in motion.limbs),
        round(seconds, 2), round(way / max(seconds, 1e-3), 3), cyclic, 0.5, take.source, take.licence,
    )  # fmt: skip
    return Segment(words, motion)


def _liveliest(motion: LimbMotion, frames: int, *, steady: bool) -> int:
    """The first frame of the stretch in which most happens; of gaits the one with the steadiest pace."""
    ends = np.concatenate([t.end for t in motion.limbs], 1) if motion.limbs else motion.place
    energy = np.linalg.norm(np.diff(ends, axis=0), axis=1)
    pace = np.linalg.norm(np.diff(motion.place[:, [0, 2]], axis=0), axis=1)
    starts = range(0, len(motion) - frames + 1, 3)
    if steady:
        return max(starts, key=lambda s: float(pace[s : s + frames].min() + 0.2 * energy[s : s + frames].mean()))
    return max(starts, key=lambda s: float(energy[s : s + frames].sum()))


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


def chosen(segments: list[Segment]) -> list[Segment]:
    """A few segments per kind of body and action, from as many sources as there are."""
    groups: dict[tuple[str, str], list[Segment]] = defaultdict(list)
    for segment in segments:
        groups[segment.words.kind, segment.words.action].append(segment)
    kept = []
    for (kind, _), group in sorted(groups.items()):
        most = MOST_PER_ACTION.get(kind, MOST_ELSEWHERE)
        by_noun: dict[str, list[Segment]] = defaultdict(list)
        for segment in sorted(group, key=lambda s: (stuck(s.words), -s.words.typical, s.words.source)):
            by_noun[segment.words.noun if kind != "person" else segment.words.source[:8]].append(segment)
        rows = list(by_noun.values())
        picked = [row[i] for i in range(max(map(len, rows))) for row in rows if i < len(row)]
        picked.sort(key=lambda segment: stuck(segment.words))
        kept += picked[:most]
    return kept


def main(corpus: Path, out: Path) -> None:
    warnings.simplefilter("ignore")
    whole = [segment_of(take) for take in takes(corpus)]
    segments = chosen(with_typical([segment for segment in whole if segment is not None]))
    vectors = open_encoder().encode([segment.words.text for segment in segments]).numpy()
    save_segments(out, segments, vectors)
    seconds = sum(segment.words.seconds for segment in segments)
    size = out.stat().st_size / 1e6
    sys.stdout.write(f"{len(whole)} takes, {len(segments)} segments, {seconds:.0f} s, {size:.1f} MB\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
