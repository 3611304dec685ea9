"""In-betweens in one look: keys are held, roots come along, smooth curves are met, and training brings something."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from jigdoll.errors import FileFormatError
from jigdoll.kinematics import motion_to_world
from jigdoll.posespace.dataset import Dataset
from jigdoll.posespace.figure import stack_figures
from jigdoll.posespace.inbetween import inbetween, straight
from jigdoll.posespace.layout import CONTACT, EXTRA
from jigdoll.posespace.rigged import Body, natural_pose
from jigdoll.posespace.space import PoseSpace
from jigdoll.posespace.train_tween import SpanSampler, TweenOptions, calmed, errors, train, tween_loss, values_at
from jigdoll.posespace.tween import (
    WAVES,
    Spans,
    Tween,
    TweenConfig,
    TweenNet,
    beside,
    open_tween,
    root_speeds,
    root_way,
    save_tween,
    seen_from,
    shipped_tween,
    straight_between,
    swings,
)
from jigdoll.posespace.weights import open_space
from jigdoll.posespace.windows import Units, Windows
from jigdoll.types import Motion
from jigdoll.zoo.gaits import reference_motion

GAITS = [("fox", "walk"), ("fox", "run"), ("person", "walk"), ("person", "run")]
TINY = TweenConfig(width=32, layers=1, heads=1, hidden=32)


def wild(units: Units) -> Tween:
    """A network with opinions of its own."""
    generator, net = torch.Generator().manual_seed(1), TweenNet(TINY)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(0.1 * torch.randn(parameter.shape, generator=generator))
    return Tween(net.requires_grad_(False), units, {})


def test_a_circle_walked_by_velocities_is_a_circle_and_gives_them_back() -> None:
    fps, frames = 400.0, 401  # one turn in a second, along a circle of a circumference of 2
    root = np.tile([0.0, 2.0, 1.0, 2 * np.pi], (frames, 1))
    way = root_way(root, fps)
    radius = 1 / np.pi
    centre = np.array([radius, 0.0])  # turning by +y leads from +z to +x
    assert np.allclose(np.linalg.norm(way[:, :2] - centre, axis=1), radius, atol=0.01)
    assert np.allclose(way[-1, :2], 0.0, atol=0.01) and np.isclose(way[-1, 3], 2 * np.pi, atol=1e-3)
    assert np.allclose(root_speeds(way.astype(float), fps)[:-1], root[:-1], atol=2e-2)


def test_a_way_seen_from_a_key_begins_there_facing_ahead() -> None:
    way = np.array([[1.0, 2.0, 1.0, np.pi / 2], [3.0, 2.0, 1.1, np.pi]])  # faces +x, goes along +x
    assert np.allclose(seen_from(way, way[0]), [[0, 0, 1.0, 0], [0, 2, 1.1, np.pi / 2]], atol=1e-9)


def test_a_curve_through_keys_meets_what_speeds_up_evenly(fox: Body, units: Units) -> None:
    """Tangents of Catmull and Rom are exact for parabolas, at uneven times too."""
    dice = np.random.default_rng(0)
    shape = (1, len(fox.figure), 1, 52)
    a, b, c = (torch.tensor(0.3 * dice.normal(size=shape), dtype=torch.float32) for _ in range(3))

    def at(time: torch.Tensor) -> torch.Tensor:
        time = time.view(1, 1, -1, 1)
        return a + b * time + c * time**2

    times = torch.tensor([0.5, 0.9, 0.2, 1.6])  # first, last, before, after
    spans = Spans(at(times), torch.tensor([[0.4, 0.3, 0.7]]), torch.zeros(1, 192))
    sticks, shares = stack_figures([fox.figure]), torch.linspace(0, 1, 9)[None]
    shapes = torch.cat([torch.zeros(1, len(fox.figure), WAVES, 52), swings(sticks, spans, units)], 2)
    made = straight_between(spans, shares) + beside(shapes, shares, sticks, units)
    true = at(0.5 + 0.4 * shares[0])
    made[:, 1:, :, CONTACT] = true[:, 1:, :, CONTACT]  # contacts are not curves
    assert torch.allclose(made, true, atol=1e-5)


def test_keys_are_held_whatever_the_network_says(space: PoseSpace, fox: Body, units: Units) -> None:
    gait = reference_motion(fox.anatomy.asset, "turn_left", seconds=1.5, fps=30.0)
    keys = {frame: gait.pose[frame] for frame in (2, 12, 20, 36)}
    made, plain = inbetween(replace(space, tween=wild(units)), fox, keys, fps=30.0), straight(keys, fps=30.0)
    assert len(made) == 35
    for frame, pose in keys.items():
        assert torch.equal(made.pose.rotations[frame - 2], pose.rotations)
        assert torch.equal(made.pose.root[frame - 2], pose.root)
    assert not torch.allclose(made.pose.rotations[6], plain.pose.rotations[6], atol=1e-3)
    assert not torch.allclose(made.pose.root[6], plain.pose.root[6], atol=1e-3)
    steps = motion_to_world(fox.anatomy.skeleton, made)[..., :3, 3]
    jumps = np.linalg.norm(np.diff(steps, axis=0), axis=-1).max(1)
    assert jumps.max() < 4 * np.median(jumps), "no jump at a key"


def test_of_bodies_that_were_hardly_seen_only_the_smooth_curve_is_believed(
    space: PoseSpace, fox: Body, units: Units
) -> None:
    gait = reference_motion(fox.anatomy.asset, "walk", seconds=1.5, fps=30.0)
    keys = {frame: gait.pose[frame] for frame in (0, 12, 24, 36)}
    tween = wild(units)
    torch.nn.init.zeros_(tween.net.swing.weight)
    torch.nn.init.zeros_(tween.net.swing.bias)
    few, many = (replace(tween, facts={"clips": {"quadruped": count}}) for count in (3, 3000))
    a, b, plain = (
        inbetween(replace(space, tween=few), fox, keys, fps=30.0),
        inbetween(replace(space, tween=many), fox, keys, fps=30.0),
        straight(keys, fps=30.0),
    )
    P, Q, S = (motion_to_world(fox.anatomy.skeleton, motion)[..., :3, 3] for motion in (a, b, plain))
    assert np.linalg.norm(P - S, axis=-1).max() < 2e-3 * fox.anatomy.body_length
    assert np.linalg.norm(Q - S, axis=-1).max() > 1e-2 * fox.anatomy.body_length


def test_a_network_that_says_nothing_leaves_the_straight_way(space: PoseSpace, fox: Body, units: Units) -> None:
    net = TweenNet(TINY)
    torch.nn.init.zeros_(net.swing.bias)
    quiet = replace(space, tween=Tween(net.requires_grad_(False), units, {}))
    gait = reference_motion(fox.anatomy.asset, "turn_left", seconds=1.2, fps=24.0)
    keys = {frame: gait.pose[frame] for frame in (0, 9, 20)}
    made, plain = inbetween(quiet, fox, keys, fps=24.0), straight(keys, fps=24.0)
    P, Q = (motion_to_world(fox.anatomy.skeleton, motion)[..., :3, 3] for motion in (made, plain))
    assert np.linalg.norm(P - Q, axis=-1).max() < 2e-3 * fox.anatomy.body_length


def test_keys_far_apart_and_variety_are_left_to_the_pose_space(space: PoseSpace, fox: Body, units: Units) -> None:
    gait = reference_motion(fox.anatomy.asset, "walk", seconds=3.0, fps=30.0)
    both = space, replace(space, tween=wild(units))
    near, far = ({frame: gait.pose[frame] for frame in frames} for frames in ((0, 20), (0, 80)))
    for keys, variety in ((far, 0.0), (near, 0.5)):
        a, b = (inbetween(each, fox, keys, fps=30.0, variety=variety) for each in both)
        assert torch.equal(a.pose.rotations, b.pose.rotations)


def test_spans_hold_what_is_in_the_clip(data: Dataset, units: Units, vectors: dict) -> None:
    clip = replace(data.clips[0], loop=True)
    last = clip.frames - 1
    frames = np.array([3.0, 7.0, 1.0, 9.5, 4.0, 3.0 + last])
    values = values_at(clip, frames)
    true = clip.values.astype(np.float32)
    assert np.allclose(values[1:, :3], true[1:, [3, 7, 1]], atol=1e-6)
    assert np.allclose(values[1:, 3], (true[1:, 9] + true[1:, 10]) / 2, atol=1e-6)
    assert np.allclose(values[1:, 5], values[1:, 0], atol=1e-6), "a loop goes on"
    root = values[0, :, EXTRA]
    assert np.allclose(root[0, [0, 1, 3]], 0.0) and np.allclose(root[[0, 1], 2], true[0, [3, 7], EXTRA.start + 2])
    way = root_way(true[0, :, EXTRA], clip.fps)
    assert np.allclose(root[1], seen_from(way, way[3])[7], atol=1e-4)
    batch = SpanSampler(Windows(data, units, vectors)).draw(6, vary=False, gap=0.3)
    assert float(errors(batch, batch.truth).max()) == 0.0
    assert bool((batch.spans.seconds[:, 0] <= 0.3 + 1e-6).all())


def test_training_learns_how_legs_swing_and_the_file_answers_alike(cache: Path, tmp_path: Path, data: Dataset) -> None:
    options = TweenOptions(hours=12 / 3600, rate=4e-3, batch=32)
    out = tmp_path / "run"
    net = train(cache, out, TINY, options)
    kept = open_tween(out / "tween.safetensors")
    assert kept is not None and {"options", "sources", "updates", "seconds", "log"} <= set(kept.facts)
    silence = {text: np.zeros(192, np.float32) for clip in data.clips for text in clip.texts}
    sampler = SpanSampler(Windows(data, kept.units, silence))
    batch = sampler.draw(64, vary=False, gap=0.35)
    with torch.no_grad():
        trained, again, fresh = (tween_loss(each, batch, kept.units)[1] for each in (net, kept.net, TweenNet(TINY)))
    assert trained < 0.9 * fresh
    assert abs(again - trained) < 2e-3
    more = TweenOptions(hours=1 / 3600, rate=1e-4, batch=8)
    train(cache, tmp_path / "more", TweenConfig(), more, start=out / "tween.safetensors")
    on = open_tween(tmp_path / "more" / "tween.safetensors")
    assert on is not None and on.net.config == TINY and on.facts["before"]["updates"] == kept.facts["updates"]


def test_weights_that_are_none_are_refused_by_name(tmp_path: Path, units: Units) -> None:
    for content in (b"", b"nonsense" * 100):
        (tmp_path / "bad.safetensors").write_bytes(content)
        with pytest.raises(FileFormatError, match=r"bad\.safetensors: these are no weights for in-betweens"):
            open_tween(tmp_path / "bad.safetensors")
    broken = TweenNet(TINY)
    torch.nn.init.constant_(broken.swing.weight, float("nan"))
    save_tween(tmp_path / "nan.safetensors", broken, units, {})
    with pytest.raises(FileFormatError, match="finite"):
        open_tween(tmp_path / "nan.safetensors")


@pytest.mark.skipif(not shipped_tween().is_file(), reason="no weights for in-betweens ship")
@pytest.mark.parametrize(
    ("species", "action"), [("fox", "walk"), ("fox", "run"), ("person", "walk"), ("person", "run")]
)
def test_what_ships_is_nearer_to_gaits_than_shortest_turns(
    request: pytest.FixtureRequest, species: str, action: str
) -> None:
    """The fox was kept out of training."""
    body: Body = request.getfixturevalue(species)
    gait = reference_motion(body.anatomy.asset, action, seconds=1.7, fps=30.0)
    keys = {frame: gait.pose[frame] for frame in range(0, 49, 12)}
    true = motion_to_world(body.anatomy.skeleton, Motion(gait.pose[:49], 30.0))[..., :3, 3]
    off = []
    for made in (inbetween(open_space(), body, keys, fps=30.0), straight(keys, fps=30.0)):
        off.append(np.linalg.norm(motion_to_world(body.anatomy.skeleton, made)[..., :3, 3] - true, axis=-1).mean())
    assert off[0] < 0.8 * off[1]


def test_who_stands_still_at_all_keys_stands_still_between(space: PoseSpace, fox: Body, units: Units) -> None:
    keys = {frame: natural_pose(fox) for frame in (0, 15, 30)}
    made = inbetween(replace(space, tween=wild(units)), fox, keys, fps=30.0)
    P = motion_to_world(fox.anatomy.skeleton, made)[..., :3, 3]
    assert np.abs(P - P[:1]).max() < 2e-3 * fox.anatomy.body_length


def test_a_calmed_motion_is_smaller_around_the_same_mean() -> None:
    raw = torch.randn(400, 2, 11, 52, generator=torch.Generator().manual_seed(0))
    made = calmed(raw, np.random.default_rng(0))
    turns = slice(0, EXTRA.start)
    assert torch.allclose(made[..., turns].mean(2), raw[..., turns].mean(2), atol=1e-5)
    sizes = (made[..., turns].std(2) / raw[..., turns].std(2)).mean((1, 2))
    ways = (made[:, 0, :, EXTRA.start] / raw[:, 0, :, EXTRA.start]).mean(1)
    assert torch.allclose(sizes, ways, atol=1e-3)
    assert float(sizes.min()) >= 0.2 - 1e-4 and 0.4 < float((sizes.sub(1).abs() < 1e-4).float().mean()) < 0.6
