"""Codes leave no grain, other rates no kinks, sizes change tempos, and what flies or swims gets along."""

from dataclasses import replace

import numpy as np
import pytest

from jigdoll.errors import JigdollError
from jigdoll.language import read
from jigdoll.language.encoder import open_encoder
from jigdoll.language.sizes import FASTEST, SLOWEST, tempo_by_size
from jigdoll.memory.draft import Directions, draft
from jigdoll.memory.flights import ABOVE, beats_per_second, through_space
from jigdoll.memory.segments import open_memory
from jigdoll.memory.shape import at_frames, resample, speed_of
from jigdoll.memory.smooth import GRAIN, resample_smooth, smoothed
from jigdoll.rig.anatomy import anatomy_of
from jigdoll.rig.reparent import reparent
from jigdoll.rig.retarget.limb_motion import LimbMotion
from jigdoll.rig.retarget.turns import from_rotvec, to_rotvec
from jigdoll.zoo import make


def segment(action: str, kind: str) -> LimbMotion:
    memory = open_memory()
    index = next(
        i for i, w in enumerate(memory.words) if w.action == action and w.kind == kind and w.cyclic and w.seconds > 0.9
    )
    return memory.segment(index).motion


def jerk(values: np.ndarray, fps: float) -> float:
    return float(np.linalg.norm(np.diff(values.reshape(len(values), -1), n=3, axis=0), axis=1).mean() * fps**3)


def nodding(frames: int, fps: float, *, hertz: float, degrees: float) -> LimbMotion:
    """A person whose trunk bends to and fro."""
    lm = at_frames(segment("idle", "person"), np.zeros(frames), fps=fps)
    angle = np.radians(degrees) * np.sin(2 * np.pi * hertz * np.arange(frames) / fps)
    turns = from_rotvec(np.stack([angle, 0 * angle, 0 * angle], -1))
    return replace(lm, trunk=np.repeat(turns[:, None], lm.trunk.shape[1], 1))


def test_grain_is_smoothed_away_and_motion_is_kept() -> None:
    clean = nodding(60, 30.0, hertz=1.0, degrees=20.0)
    dice = np.random.default_rng(0)
    noise = from_rotvec(np.radians(0.3) * dice.standard_normal((60, clean.trunk.shape[1], 3)))
    made = smoothed(replace(clean, trunk=clean.trunk @ noise))
    assert jerk(made.trunk, 30.0) < 0.15 * jerk(clean.trunk @ noise, 30.0)
    off = np.linalg.norm(to_rotvec(np.swapaxes(made.trunk, -1, -2) @ clean.trunk), axis=-1)
    assert float(np.sqrt((off**2).mean())) < GRAIN
    fast = nodding(60, 30.0, hertz=6.0, degrees=20.0)
    kept = np.linalg.norm(to_rotvec(np.swapaxes(smoothed(fast).trunk, -1, -2) @ fast.trunk), axis=-1)
    assert float(np.sqrt((kept**2).mean())) <= 1.05 * GRAIN


def test_a_clip_of_a_few_frames_is_left_as_it_is() -> None:
    short = at_frames(segment("idle", "person"), np.arange(4.0))
    assert smoothed(short) is short
    still = resample_smooth(at_frames(segment("idle", "person"), np.arange(2.0)), 24.0)
    assert len(still) >= 2 and np.isfinite(still.trunk).all()


def test_other_rates_leave_no_kinks() -> None:
    thirty, truth = nodding(61, 30.0, hertz=1.0, degrees=20.0), nodding(49, 24.0, hertz=1.0, degrees=20.0)
    plain, cubic = resample(thirty, 24.0), resample_smooth(thirty, 24.0)
    assert len(plain) == len(cubic) == 49 and cubic.fps == 24.0
    assert jerk(cubic.trunk, 24.0) == pytest.approx(jerk(truth.trunk, 24.0), rel=0.005)
    assert jerk(cubic.trunk - truth.trunk, 24.0) < 0.1 * jerk(plain.trunk - truth.trunk, 24.0)
    assert np.abs(cubic.trunk - truth.trunk).max() < 1e-4
    assert np.allclose(resample_smooth(thirty, 30.0).trunk, thirty.trunk)
    with pytest.raises(JigdollError, match="no rate"):
        resample_smooth(thirty, 0.0)


def test_a_gait_is_slower_on_longer_legs_by_the_root_of_their_lengths() -> None:
    assert tempo_by_size("dog", "horse") == pytest.approx((0.4 / 0.8) ** 0.5)
    assert tempo_by_size("horse", "dog") == pytest.approx(2**0.5)
    assert tempo_by_size("rat", "triceratops") == SLOWEST and tempo_by_size("triceratops", "rat") == FASTEST
    assert tempo_by_size("rat", "gorgon") == tempo_by_size(None, "rat") == 1.0


def test_beats_are_counted() -> None:
    lm = nodding(60, 30.0, hertz=1.5, degrees=10.0)
    still = tuple(replace(t, turns=t.turns[:1].repeat(60, 0), end=t.end[:1].repeat(60, 0)) for t in lm.limbs)
    assert beats_per_second(replace(lm, limbs=still, neck=None, tail=None)) == pytest.approx(1.5, abs=0.05)


def test_what_swims_on_the_spot_gets_a_course_and_what_hovers_none() -> None:
    fish = segment("swim", "fish")
    assert not fish.grounded and speed_of(fish) < 0.05
    swims = through_space(fish, "swim")
    assert 0.3 <= speed_of(swims) <= 4.0
    assert float(swims.place[:, 1].mean()) >= 1 + ABOVE - 1e-9  # 1 is where it rests
    assert np.allclose(swims.place[:, 0], fish.place[:, 0])
    assert through_space(fish, "hover") is fish and through_space(swims, "swim") is swims


def test_who_goes_without_legs_gets_along_on_the_ground() -> None:
    fish = segment("swim", "fish")
    creeps = through_space(fish, "crawl")
    assert speed_of(creeps) > 0.1 and np.allclose(creeps.place[:, :2], fish.place[:, :2])
    assert through_space(fish, "idle") is fish and through_space(creeps, "crawl") is creeps


@pytest.mark.parametrize("species", ["dragon", "ostrich"])
def test_flights_lead_somewhere(species: str) -> None:
    anatomy = anatomy_of(reparent(make(species)).asset)
    made = draft(open_memory(), read(f"a {species} flies"), anatomy, open_encoder(), Directions(seconds=2.0))
    assert float((made.motion.pose.root[-1] - made.motion.pose.root[0])[2]) > 0.5 * anatomy.body_length


def test_who_falls_and_dies_does_not_get_up_in_between() -> None:
    anatomy = anatomy_of(reparent(make("human")).asset)
    made = draft(open_memory(), read("a man falls down and dies"), anatomy, open_encoder(), Directions())
    assert len(made.found) == 1 and made.found[0].words.action in ("die", "fall")
