"""The judge against truth: reference gaits pass, and broken clips are told by exactly the metrics that they break."""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
import torch

from jigdoll import zoo
from jigdoll.errors import JigdollError
from jigdoll.judge import Verdict, as_dict, judge, walk_check
from jigdoll.judge.anatomy import study
from jigdoll.kinematics import rest_pose
from jigdoll.math.rotations import compound_to_quaternion, quaternion_multiply, rotvec_to_quaternion
from jigdoll.rig.limbs import find_limbs
from jigdoll.rig.limits import compound_angles
from jigdoll.types import Motion, Pose, RiggedAsset
from jigdoll.zoo.gaits import Clip, reference_clip, reference_motion

FEW = ("fox", "turtle", "human", "kangaroo", "spider")


@lru_cache
def body(name: str) -> RiggedAsset:
    return zoo.make(name)


@lru_cache
def reference(name: str, action: str = "walk") -> tuple[Clip, Verdict]:
    clip = reference_clip(body(name), action, seconds=2.0, fps=24.0)
    return clip, judge(body(name), clip.motion)


def with_pose(motion: Motion, root: torch.Tensor, rotations: torch.Tensor) -> Motion:
    return replace(motion, pose=Pose(root, rotations))


def raised(name: str, share: float) -> Motion:
    """The reference walk, lifted by a share of the body length."""
    motion = reference(name)[0].motion
    lift = torch.tensor([0.0, share * study(body(name)).length, 0.0])
    return with_pose(motion, motion.pose.root + lift, motion.pose.rotations)


def scalars(verdict: Verdict) -> dict[str, float]:
    return {name: value for name, value in as_dict(verdict).items() if isinstance(value, float | bool)}


def moved(a: Verdict, b: Verdict) -> set[str]:
    """The metrics that differ between two verdicts by more than rounding."""
    left, right = scalars(a), scalars(b)
    return {name for name in left if left[name] != pytest.approx(right[name], rel=2e-3, abs=1e-4)}


@pytest.mark.parametrize("action", ["walk", "run", "jump"])
@pytest.mark.parametrize("species", FEW)
def test_contacts_of_reference_gaits_are_found_within_a_frame_of_the_truth(species: str, action: str) -> None:
    clip, verdict = reference(species, action)
    found = np.stack([leg.contact for leg in verdict.legs], 1)
    truth = clip.stance.numpy()
    assert [leg.name for leg in verdict.legs] == list(clip.legs)
    # Allow the frames next to a change: whether a foot touches in the frame of landing is a matter of taste.
    changes = np.pad(truth[1:] != truth[:-1], ((1, 1), (0, 0)))
    beside = changes[1:] | changes[:-1]
    assert (found == truth)[~beside].mean() > 0.95
    assert (found == truth).mean() > 0.88


@pytest.mark.parametrize("species", FEW)
def test_a_reference_walk_is_a_walk(species: str) -> None:
    clip, verdict = reference(species)
    assert walk_check(verdict, verdict).passed
    assert verdict.skate_ratio < 0.1 and verdict.penetration < 0.01 and verdict.floating < 1e-3
    assert min(leg.direction for leg in verdict.legs) > 0.75
    assert verdict.heading == pytest.approx(1.0, abs=0.01) and not verdict.in_place
    assert verdict.stride_frequency == pytest.approx(1 / clip.period, rel=0.02)
    assert verdict.travel_speed * verdict.body_length == pytest.approx(clip.speed, rel=0.03)
    assert verdict.duty == pytest.approx(float(clip.stance.float().mean()), abs=0.05)


@pytest.mark.parametrize("species", [s for s in FEW if s != "kangaroo"])
def test_legs_alternate_in_a_walk_and_go_together_in_a_jump(species: str) -> None:
    for pair in reference(species)[1].pairs:
        if pair.kind == "leg":
            assert pair.alternation < -0.5 and pair.phase == pytest.approx(0.5, abs=0.04)
    for pair in reference(species, "jump")[1].pairs:
        if pair.kind == "leg":
            assert pair.alternation > 0.95


@pytest.mark.slow
def test_every_built_in_character_walks_well_in_the_judges_eyes() -> None:
    for species in zoo.SPECIES:
        clip, verdict = reference(species)
        assert walk_check(verdict, verdict).passed, species
        assert verdict.skate_ratio < 0.1, species
        assert verdict.direction > 0.75, species
        assert verdict.stride_frequency == pytest.approx(1 / clip.period, rel=0.02), species


@pytest.mark.parametrize("species", ["fox", "human"])
def test_a_lifted_clip_floats_and_nothing_else_changes(species: str) -> None:
    verdict = judge(body(species), raised(species, 0.05))
    assert moved(verdict, reference(species)[1]) <= {"floating", "penetration"}
    assert verdict.floating == pytest.approx(0.05, abs=0.002)
    assert verdict.penetration == 0


@pytest.mark.parametrize("species", ["fox", "human"])
def test_a_sunk_clip_penetrates_and_nothing_else_changes(species: str) -> None:
    plain = reference(species)[1]
    verdict = judge(body(species), raised(species, -0.05))
    assert moved(verdict, plain) <= {"penetration", "floating"}
    assert verdict.penetration == pytest.approx(0.05 + plain.penetration, abs=1e-4)
    assert [check.name for check in walk_check(verdict, plain).failures] == ["penetration"]


@pytest.mark.parametrize("species", ["fox", "spider"])
def test_a_statue_that_glides_skates_all_the_way(species: str) -> None:
    motion = reference(species)[0].motion
    way = motion.pose.root * torch.tensor([1.0, 0.0, 1.0])
    steady = way[:1] + torch.linspace(0, 1, len(motion))[:, None] * (way[-1:] - way[:1])
    still = rest_pose(body(species).skeleton, frames=len(motion)).rotations
    verdict = judge(body(species), with_pose(motion, steady, still))
    assert verdict.skate_ratio == 1 and verdict.duty == 1
    # Without a rhythm the clip counts as one stride, in which each foot slides as far as the body goes.
    assert verdict.skate_distance == pytest.approx(verdict.travel_speed * motion.seconds, rel=0.01)
    assert verdict.motion_amount == pytest.approx(0, abs=1e-3) and verdict.direction == 0
    assert verdict.stride_frequency == 0 and {pair.alternation for pair in verdict.pairs} == {0.0}
    assert verdict.angle_jerk == 0 and verdict.position_jerk == pytest.approx(0, abs=0.5)


@pytest.mark.parametrize("species", ["fox", "spider"])
def test_a_moonwalk_is_told_by_its_direction_and_skating(species: str) -> None:
    motion, plain = reference(species)[0].motion, reference(species)[1]
    verdict = judge(body(species), with_pose(motion, motion.pose.root, motion.pose.rotations.flip(0)))
    assert max(leg.direction for leg in verdict.legs) < -0.7
    assert verdict.skate_ratio > 0.9
    assert verdict.heading == pytest.approx(1.0, abs=0.01)
    assert [p.alternation for p in verdict.pairs] == pytest.approx([p.alternation for p in plain.pairs], abs=0.01)
    assert {check.name.split()[0] for check in walk_check(verdict, plain).failures} == {"direction", "skate"}


@pytest.mark.parametrize("species", ["fox", "human"])
def test_time_reversed_only_the_heading_changes(species: str) -> None:
    motion, plain = reference(species)[0].motion, reference(species)[1]
    verdict = judge(body(species), with_pose(motion, motion.pose.root.flip(0), motion.pose.rotations.flip(0)))
    assert verdict.heading == pytest.approx(-1.0, abs=0.01)
    assert verdict.skate_ratio == 0 and verdict.direction == pytest.approx(plain.direction, abs=0.01)
    assert verdict.duty == pytest.approx(plain.duty, abs=0.02)
    assert [check.name for check in walk_check(verdict, plain).failures] == ["heading"]


@pytest.mark.parametrize("species", ["fox", "human"])
def test_legs_in_step_are_told_by_their_correlation(species: str) -> None:
    asset, (clip, plain) = body(species), reference(species)
    legs = {(leg.side, leg.rank): list(leg.joints) for leg in find_limbs(asset.skeleton) if leg.kind == "leg"}
    angles = compound_angles(asset.skeleton, clip.motion.pose).clone()
    for (side, rank), joints in legs.items():
        if side == "right":
            angles[:, joints] = angles[:, legs["left", rank]] * torch.tensor([1.0, -1.0, -1.0])
    rotations = compound_to_quaternion(angles, asset.skeleton.axes)
    verdict = judge(asset, with_pose(clip.motion, clip.motion.pose.root, rotations))
    pairs = [pair for pair in verdict.pairs if pair.kind == "leg"]
    assert min(pair.alternation for pair in pairs) > 0.98
    assert max(min(pair.phase, 1 - pair.phase) for pair in pairs) < 0.02
    assert verdict.direction == pytest.approx(plain.direction, abs=0.05)
    failed = {check.name for check in walk_check(verdict, plain).failures}
    assert {f"alternation {pair.name}" for pair in pairs} <= failed
    assert not any(name.startswith(("direction", "swing", "heading")) for name in failed)


@pytest.mark.parametrize("species", ["fox", "human"])
def test_jitter_is_told_by_jerk_and_leaves_the_rhythm(species: str) -> None:
    motion, plain = reference(species)[0].motion, reference(species)[1]
    noise = 0.03 * torch.randn(*motion.pose.rotations.shape[:-1], 3, generator=torch.Generator().manual_seed(0))
    shaken = quaternion_multiply(motion.pose.rotations, rotvec_to_quaternion(noise))
    verdict = judge(body(species), with_pose(motion, motion.pose.root, shaken))
    assert verdict.angle_jerk > 1.8 * plain.angle_jerk and verdict.position_jerk > 5 * plain.position_jerk
    assert verdict.stride_frequency == pytest.approx(plain.stride_frequency, rel=0.02)
    assert verdict.heading == pytest.approx(1.0, abs=0.01)
    assert all(
        a.alternation == pytest.approx(b.alternation, abs=0.15) for a, b in zip(verdict.pairs, plain.pairs, strict=True)
    )


@pytest.mark.parametrize("species", ["fox", "turtle", "human"])
def test_feet_that_are_slower_than_the_body_skate(species: str) -> None:
    motion, plain = reference(species)[0].motion, reference(species)[1]
    stretched = with_pose(motion, motion.pose.root * torch.tensor([1.0, 1.0, 1.5]), motion.pose.rotations)
    verdict = judge(body(species), stretched)
    assert verdict.skate_ratio > 0.95
    # While a foot stands the body outruns it by half of the old speed.
    slip = 0.5 * plain.travel_speed * plain.duty / plain.stride_frequency
    assert verdict.skate_distance == pytest.approx(slip, rel=0.15)
    assert [check.name for check in walk_check(verdict, plain).failures] == ["skate ratio"]


@pytest.mark.parametrize("species", ["fox", "human", "spider"])
def test_a_walk_on_the_spot_is_judged_as_on_a_treadmill(species: str) -> None:
    motion, plain = reference(species)[0].motion, reference(species)[1]
    verdict = judge(
        body(species), with_pose(motion, motion.pose.root * torch.tensor([1.0, 1.0, 0.0]), motion.pose.rotations)
    )
    assert verdict.in_place
    assert moved(verdict, plain) <= {"in_place", "travel_speed", "skate_distance", "foot_contact", "direction"}
    assert verdict.travel_speed == pytest.approx(plain.travel_speed, rel=0.03)
    assert verdict.direction == pytest.approx(plain.direction, abs=0.01)


@pytest.mark.parametrize("action", ["walk", "turn_left"])
def test_a_loop_closes_wherever_it_ends_and_faces(action: str) -> None:
    asset = body("fox")
    closed = judge(asset, reference_motion(asset, action, seconds=1.5, loop=True))
    assert closed.loop_error < 2e-3
    assert closed.heading > 0.99
    opened = judge(asset, reference_motion(asset, action, seconds=1.2))
    assert opened.loop_error > 0.015


def test_a_reference_is_judged_beside_the_clip() -> None:
    asset, walk = body("fox"), reference("fox")[1]
    verdict = judge(asset, reference("fox", "run")[0].motion, reference=reference("fox")[0].motion)
    assert verdict.reference is not None and moved(verdict.reference, walk) == set()
    assert verdict.stride_frequency > 1.4 * walk.stride_frequency


def test_a_verdict_survives_json() -> None:
    verdict = replace(reference("human")[1], reference=reference("human", "run")[1])
    read = json.loads(json.dumps(as_dict(verdict)))
    assert read["skate_ratio"] == verdict.skate_ratio and read["reference"]["name"] == "run"
    assert read["legs"][0]["contact"] == verdict.legs[0].contact.astype(int).tolist()
    assert [pair["name"] for pair in read["pairs"]] == ["leg_0", "arm_0"]


def changed(verdict: Verdict) -> Iterator[tuple[str, Verdict, bool]]:
    """Verdicts just inside and just outside each bound of the walk check."""
    pair, others = verdict.pairs[0], verdict.pairs[1:]
    for delta, good in ((0.24, True), (0.26, False), (-0.24, True), (-0.26, False)):
        bent = replace(pair, alternation=pair.alternation + delta)
        yield "alternation leg_0", replace(verdict, pairs=(bent, *others)), good
    for ratio, good in ((0.51, True), (0.49, False), (1.79, True), (1.81, False)):
        wider = replace(pair, amplitude=ratio * pair.amplitude)
        yield "swing leg_0", replace(verdict, pairs=(wider, *others)), good
    for value, good in ((0.149, True), (0.151, False)):
        yield "skate ratio", replace(verdict, skate_ratio=value), good
    for value, good in ((0.0099, True), (0.0101, False)):
        yield "penetration", replace(verdict, penetration=value), good
    for share, good in ((0.26, True), (0.24, False)):
        yield "standing", replace(verdict, duty=share * verdict.duty), good
    leg, rest = verdict.legs[0], verdict.legs[1:]
    for value, good in ((0.01, True), (-0.01, False)):
        yield f"direction {leg.name}", replace(verdict, legs=(replace(leg, direction=value), *rest)), good
    yield "heading", replace(verdict, heading=-1.0), False


def test_each_bound_of_the_walk_check_is_where_it_is_said_to_be() -> None:
    plain = reference("fox")[1]
    for name, verdict, good in changed(plain):
        assert [check.name for check in walk_check(verdict, plain).failures] == ([] if good else [name])


def test_the_walk_check_refuses_verdicts_of_different_bodies() -> None:
    with pytest.raises(JigdollError, match="different bodies"):
        walk_check(reference("fox")[1], reference("human")[1])


def test_arms_count_in_the_walk_check_on_request() -> None:
    plain = reference("human")[1]
    legs, arms = plain.pairs
    verdict = replace(plain, pairs=(legs, replace(arms, alternation=0.9)))
    assert walk_check(verdict, plain).passed
    assert [c.name for c in walk_check(verdict, plain, kinds=("leg", "arm")).failures] == ["alternation arm_0"]


def test_clips_that_cannot_be_judged_are_refused_with_a_reason() -> None:
    asset, motion = body("fox"), reference("fox")[0].motion
    with pytest.raises(JigdollError, match="retarget"):
        judge(body("human"), motion)
    with pytest.raises(JigdollError, match="nothing moves"):
        judge(asset, with_pose(motion, motion.pose.root[:1], motion.pose.rotations[:1]))
    with pytest.raises(JigdollError, match="NaN"):
        judge(asset, with_pose(motion, motion.pose.root * float("nan"), motion.pose.rotations))
