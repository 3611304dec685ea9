"""Postures: the poses of any body as directions of its bones, so that clips of different rigs can be held together.

Directions are seen in the frame of the body's heading and come from limb space, where a T pose and an A pose mean the
same. `PoseBank` holds the poses of real clips; how far a pose is from the nearest of them says how natural it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from jigdoll.memory.find import KIN
from jigdoll.memory.segments import Memory
from jigdoll.rig.anatomy import BodyKind
from jigdoll.rig.retarget.builds import CLEAR, fold_of
from jigdoll.rig.retarget.limb_motion import LimbMotion, LimbTrack, canonical_direction

MIDDLE = ("root up", "root ahead", "chest up", "chest ahead", "head up", "head ahead", "tail", "tail tip")
PLACES = ("arm", "wing", "fore leg", "middle leg", "hind leg")
BONES = ("upper", "lower", "end")
SIDES = ("left", "right")
SLOTS: tuple[str, ...] = (*MIDDLE, *(f"{side} {place} {bone}" for place in PLACES for side in SIDES for bone in BONES))
"""What a posture tells of: directions along the middle of the body and of the bones of its limbs."""
_UP, _AHEAD, _BACK = np.eye(3)[1], np.eye(3)[2], -np.eye(3)[2]
POSES_PER_SECOND = 5.0
"""Poses that a bank keeps of a clip; neighbours closer in time hardly differ."""


@dataclass(frozen=True, eq=False)
class Postures:
    """The poses of a clip."""

    directions: Float[ndarray, "frames slots 3"]
    """Unit vectors, zero where there is no such bone."""
    has: Bool[ndarray, " slots"]


def place_of(lm: LimbMotion, kind: str, side: str, rank: int) -> str:
    """The place of a limb in a row of its kind: arms and wings by name, legs from the fore to the hind one."""
    if kind != "leg":
        return "wing" if kind in ("wing", "fin") else "arm"
    ranks = sorted(t.limb.rank for t in lm.limbs if t.limb.kind == "leg" and t.limb.side == side)
    if rank == ranks[-1]:
        return "hind leg"
    return "fore leg" if rank == ranks[0] else "middle leg"


def postures_of(lm: LimbMotion) -> Postures:
    """The postures of a motion in limb space."""
    frames = len(lm)
    rows = np.zeros((frames, len(SLOTS), 3))
    has = np.zeros(len(SLOTS), bool)

    def put(name: str, value: Float[ndarray, "frames 3"]) -> None:
        rows[:, SLOTS.index(name)] = value
        has[SLOTS.index(name)] = True

    chest = lm.trunk[:, -1]
    head = chest if lm.neck is None else lm.neck[:, -1]
    for what, turn in (("root", lm.root), ("chest", chest), ("head", head)):
        put(f"{what} up", turn @ _UP)
        put(f"{what} ahead", turn @ _AHEAD)
    if lm.tail is not None:
        put("tail", lm.tail[:, lm.tail.shape[1] // 2] @ _BACK)
        put("tail tip", lm.tail[:, -1] @ _BACK)
    for track in lm.limbs:
        place = place_of(lm, track.limb.kind, track.limb.side, track.limb.rank)
        still = canonical_direction(track.limb)
        for station, bone in zip(_stations(lm, track), BONES, strict=True):
            if track.has[station] and track.limb.side in SIDES:
                put(f"{track.limb.side} {place} {bone}", track.turns[:, station] @ still)
    return Postures(rows, has)


def _stations(lm: LimbMotion, track: LimbTrack) -> tuple[int, int, int]:
    """The stations of thigh, shin and foot: one earlier in hind legs whose middle is the hock."""
    hind = track.limb.kind == "leg" and place_of(lm, "leg", track.limb.side, track.limb.rank) == "hind leg"
    return (0, 1, 2) if hind and track.has[0] and track.has[2] and fold_of(track) < -CLEAR else (1, 2, 3)


@dataclass(frozen=True, eq=False)
class PoseBank:
    """Poses of real clips of one kind of body."""

    directions: Float[ndarray, "poses slots 3"]
    has: Bool[ndarray, "poses slots"]
    clip: ndarray
    """The index of the clip that each pose is of."""
    texts: tuple[str, ...]
    """Of the clips."""
    actions: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.directions)


def bank_of(clips: Sequence[LimbMotion], texts: Sequence[str], actions: Sequence[str]) -> PoseBank:
    """A bank of the poses of these clips."""
    rows, has, clip = [], [], []
    for i, lm in enumerate(clips):
        poses = postures_of(lm)
        step = max(round(lm.fps / POSES_PER_SECOND), 1)
        picked = poses.directions[::step].astype(np.float32)
        rows.append(picked)
        has.append(np.tile(poses.has, (len(picked), 1)))
        clip.append(np.full(len(picked), i))
    nothing = np.zeros((0, len(SLOTS), 3), np.float32), np.zeros((0, len(SLOTS)), bool), np.zeros(0, int)
    directions, present, index = (
        np.concatenate([empty, *part]) for empty, part in zip(nothing, (rows, has, clip), strict=True)
    )
    return PoseBank(directions, present, index, tuple(texts), tuple(actions))


def memory_bank(memory: Memory, kind: BodyKind) -> PoseBank:
    """The real poses that the memory holds of a kind of body; of its nearest kin where it holds none."""
    near = sorted(KIN[kind].items(), key=lambda pair: pair[1])
    for other, _ in near:
        chosen = [i for i, words in enumerate(memory.words) if words.kind == other]
        if chosen:
            segments = [memory.segment(i, fps=POSES_PER_SECOND) for i in chosen]
            words = [segment.words for segment in segments]
            return bank_of([s.motion for s in segments], [w.text for w in words], [w.action for w in words])
    return bank_of([], [], [])


def nearest_poses(poses: Postures, bank: PoseBank) -> tuple[Float[ndarray, " frames"], ndarray]:
    """Of each pose the mean angle per bone to the nearest real one [degrees], and which that is.

    Only bones that both have count; a real pose that lacks half of the bones of the body does not count.
    """
    if not len(bank):
        return np.full(len(poses.directions), np.nan), np.zeros(len(poses.directions), int)
    ours = poses.directions.astype(np.float32)
    shared = bank.has & poses.has[None]
    count = shared.sum(1)
    enough = count >= 0.5 * poses.has.sum()
    if not enough.any():
        return np.full(len(ours), np.nan), np.zeros(len(ours), int)
    angle = np.zeros((len(ours), len(bank)), np.float32)
    for slot in np.flatnonzero(poses.has):
        cosine = np.clip(ours[:, slot] @ bank.directions[:, slot].T, -1, 1)
        angle += np.where(shared[None, :, slot], np.degrees(np.arccos(cosine)), 0)
    mean = np.where(enough[None], angle / np.maximum(count, 1)[None], np.inf)
    best = mean.argmin(1)
    return mean[np.arange(len(ours)), best].astype(float), best
