"""Shaping motion in limb space: joins, loops, speeds and paths, on walks whose truth is known."""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from numpy import ndarray

from jigdoll import zoo
from jigdoll.errors import JigdollError
from jigdoll.memory.joins import join, joined_at, lead_in, lead_out, spring
from jigdoll.memory.loops import closed, go_on, loop
from jigdoll.memory.parts import alike, motion_of, parts_of
from jigdoll.memory.paths import checked_path, follow, path_length, straight
from jigdoll.memory.shape import at_frames, at_speed, mirror, resample, speed_of
from jigdoll.rig.anatomy import Anatomy, anatomy_of
from jigdoll.rig.reparent import reparent
from jigdoll.rig.retarget.limb_motion import LimbMotion, encode
from jigdoll.rig.retarget.turns import to_rotvec
from jigdoll.zoo.gaits import reference_motion


@cache
def body(species: str) -> Anatomy:
    return anatomy_of(reparent(zoo.make(species)).asset)


@cache
def gait(species: str = "human", action: str = "walk", seconds: float = 3.0) -> LimbMotion:
    anatomy = body(species)
    return encode(anatomy, reference_motion(anatomy.asset, action, seconds=seconds, fps=24.0))


def turning(lm: LimbMotion) -> ndarray:
    """How fast joints turn between frames, each seen from what carries it [rad/s]."""
    turns = parts_of(lm).turns
    return to_rotvec(np.swapaxes(turns[:-1], -1, -2) @ turns[1:]) * lm.fps


def test_parts_tell_the_motion_exactly() -> None:
    for species in ("human", "fox", "ant"):
        lm = gait(species)
        again = motion_of(parts_of(lm), lm)
        np.testing.assert_allclose(again.trunk, lm.trunk, atol=1e-12)
        for one, other in zip(again.limbs, lm.limbs, strict=True):
            np.testing.assert_allclose(one.turns[:, 1:], other.turns[:, 1:], atol=1e-12)


def test_a_spring_begins_with_its_place_and_velocity_and_halves_in_its_half_life() -> None:
    t = np.array([0.0, 1e-5, 0.1])
    x = spring(np.array(1.0), np.array(0.5), t, half_life=0.1)
    assert x[0] == 1.0
    assert (x[1] - x[0]) / 1e-5 == pytest.approx(0.5, abs=1e-2)
    # x'' + 2 y x' + y^2 x = 0 with y = 2 ln 2 / half life: without velocity (1 + y t) e^(-y t) is left.
    left = spring(np.array(1.0), np.array(0.0), t, half_life=0.1)[2]
    assert left == pytest.approx((1 + 2 * np.log(2)) / 4)


def test_a_join_jumps_neither_in_pose_nor_in_velocity() -> None:
    first, second = gait(action="walk"), gait(action="run")
    both = join(first, second)
    most = max(np.abs(turning(first)).max(), np.abs(turning(second)).max())
    assert np.abs(turning(both)).max() < 1.3 * most
    change = np.abs(np.diff(turning(both), axis=0)).max()
    own = max(np.abs(np.diff(turning(lm), axis=0)).max() for lm in (first, second))
    assert change < 2.0 * own
    step = np.linalg.norm(np.diff(both.place, axis=0), axis=1).max()
    assert step < 1.2 * np.linalg.norm(np.diff(second.place, axis=0), axis=1).max()


def test_a_join_keeps_what_is_far_from_it() -> None:
    first, second = alike(gait(action="walk"), gait(action="run"))
    both = joined_at(first, second, 60, 10)
    np.testing.assert_allclose(both.trunk[:20], first.trunk[:20], atol=1e-3)
    np.testing.assert_allclose(both.trunk[-15:], second.trunk[-15:], atol=1e-3)
    assert len(both) == 61 + len(second) - 11


def test_feet_that_stand_apart_in_two_motions_step_one_after_the_other() -> None:
    first, second = gait(action="walk"), gait(action="idle")
    wide = max(range(len(first)), key=lambda f: abs(first.limbs[0].end[f, 2] - first.limbs[1].end[f, 2]))
    held = at_frames(first, np.full(20, float(wide)))
    for track in held.limbs:
        track.contact[:] = track.limb.kind == "leg"
    both = joined_at(*alike(held, second), 19, 5)
    legs = [t for t in both.limbs if t.limb.kind == "leg"]
    lifted = [~t.contact for t in legs]
    assert all(up.any() for up in lifted)
    assert not (lifted[0] & lifted[1]).any() or (lifted[0] & lifted[1]).sum() < 0.5 * lifted[0].sum()


def test_a_clip_leads_in_from_a_pose_exactly_and_out_to_one() -> None:
    walk, idle = gait(action="walk"), gait(action="idle")
    led = lead_in(idle, walk)
    for one, other in zip(parts_of(led).turns[0], parts_of(idle).turns[-1], strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    np.testing.assert_allclose(led.trunk[-10:], walk.trunk[-10:], atol=1e-3)
    out = lead_out(walk, idle)
    np.testing.assert_allclose(parts_of(out).turns[-1], parts_of(idle).turns[0], atol=1e-6)
    np.testing.assert_allclose(out.place[-1, [0, 2]], walk.place[-1, [0, 2]], atol=1e-9)


@pytest.mark.parametrize("species", ["human", "fox", "ant"])
def test_a_loop_meets_itself_in_pose_and_velocity(species: str) -> None:
    round_ = loop(gait(species), 2.0)
    turns = parts_of(round_).turns
    np.testing.assert_allclose(turns[0], turns[-1], atol=1e-9)
    speeds = turning(round_)
    seam = np.abs(speeds[0] - speeds[-1]).max()
    usual = np.abs(np.diff(speeds, axis=0)).max()
    assert seam < 1.5 * usual
    assert abs((len(round_) - 1) / round_.fps - 2.0) < 0.35


def test_closing_leaves_the_way_over_the_ground_alone() -> None:
    lm = gait()
    np.testing.assert_allclose(closed(lm).place[:, [0, 2]], lm.place[:, [0, 2]])


def test_what_goes_on_for_long_goes_straight_and_repeats_no_period() -> None:
    long = straight(go_on([straight(gait())], 40.0, seed=3))
    assert abs((len(long) - 1) / long.fps - 40.0) < 0.1
    assert abs(long.place[-1, 0]) < 0.01 * long.place[-1, 2]
    assert np.abs(long.heading).max() < 0.4
    step = np.linalg.norm(np.diff(long.place[:, [0, 2]], axis=0), axis=1)
    assert step.max() < 2.0 * np.median(step)
    swing = next(t for t in long.limbs if t.limb.kind == "leg").end[:, 2]
    swing = swing - swing.mean()
    far = np.correlate(swing, swing, "full")[len(swing) - 1 :]
    # A pure repetition stays in step with itself for ever; a walk does not.
    assert far[round(15 * long.fps) : round(25 * long.fps)].max() / (len(swing) - 15 * long.fps) < 0.9 * swing.var()


def test_a_speed_is_met_by_strides_first() -> None:
    lm = straight(gait())
    now = speed_of(lm)
    a_little = at_speed(lm, 1.15 * now)
    assert len(a_little) == len(lm) and speed_of(a_little) == pytest.approx(1.15 * now, rel=0.02)
    much = at_speed(lm, 2.0 * now)
    assert len(much) < len(lm) and speed_of(much) == pytest.approx(2.0 * now, rel=0.05)


def test_a_path_is_followed_to_its_end_facing_where_it_goes() -> None:
    points = np.array([[0.0, 0.0], [0.0, 5.0], [5.0, 5.0], [5.0, 10.0]])
    lm = straight(gait())
    going = go_on([lm], path_length(points) / speed_of(lm))
    led = follow(going, points)
    assert np.linalg.norm(led.place[-1, [0, 2]] - points[-1]) < 1.0
    dense = np.concatenate([np.linspace(a, b, 60) for a, b in pairwise(points)])
    off = np.linalg.norm(led.place[:, None, [0, 2]] - dense[None], axis=-1).min(1)
    assert off.max() < 0.8 and off.mean() < 0.25
    assert np.abs(np.diff(led.heading)).max() * led.fps < 4.0
    middle = led.heading[np.argmin(np.linalg.norm(led.place[:, [0, 2]] - [2.5, 5.0], axis=1))]
    assert middle == pytest.approx(np.pi / 2, abs=0.5)


def test_paths_that_are_none_are_refused() -> None:
    for points in ([[0.0, 0.0]], [[1.0, 1.0], [1.0, 1.0]], [[0.0, np.nan], [1.0, 1.0]]):
        with pytest.raises(JigdollError, match="path"):
            checked_path(np.array(points))


def test_mirror_and_rate_commute() -> None:
    lm = gait()
    one, other = resample(mirror(lm), 15.0), mirror(resample(lm, 15.0))
    np.testing.assert_allclose(one.root, other.root, atol=1e-9)
    np.testing.assert_allclose(one.place, other.place, atol=1e-9)
