"""The pose space on bodies: arrays, stick figures, drawing, holding, inverting, scoring."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from jigdoll.errors import FileFormatError, JigdollError, RigError
from jigdoll.kinematics import forward, motion_to_world
from jigdoll.language.read import read
from jigdoll.posespace.dataset import Dataset, bare_asset, creature_takes, open_dataset
from jigdoll.posespace.draft import DraftOptions, closed_loop, draft, draft_array, smoothed
from jigdoll.posespace.figure import stack_figures, stick_places
from jigdoll.posespace.layout import EXTRA, RATE, pack, unpack
from jigdoll.posespace.network import NetworkPoseModel, sample_poses
from jigdoll.posespace.plain import PlainPoseModel
from jigdoll.posespace.project import missing_parts, project
from jigdoll.posespace.rigged import Body, body_of, pose_array, to_array
from jigdoll.posespace.space import Given, PoseSpace, SampleOptions
from jigdoll.rig.anatomy import anatomy_of
from jigdoll.rig.retarget.decode import decode
from jigdoll.rig.retarget.limb_motion import encode
from jigdoll.types import Motion
from jigdoll.zoo.gaits import reference_motion
from pose_model_conformance import check_pose_model


@pytest.fixture(scope="module")
def trot(fox: Body) -> Motion:
    return reference_motion(fox.anatomy.asset, "trot", seconds=1.0, fps=30.0, name="fox")


def test_an_array_tells_all_that_limb_space_holds(fox: Body, trot: Motion) -> None:
    motion = encode(fox.anatomy, trot)
    back = unpack(pack(motion, fox.figure), fox.figure, rate=30.0, fps=30.0)
    ours = motion_to_world(fox.anatomy.skeleton, decode(back, fox.anatomy))
    theirs = motion_to_world(fox.anatomy.skeleton, decode(motion, fox.anatomy))
    assert np.abs(ours - theirs).max() < 1e-6


def test_the_stick_figure_has_its_ends_where_the_body_has_them(fox: Body, trot: Motion) -> None:
    values = torch.from_numpy(pack(encode(fox.anatomy, trot, travel=False), fox.figure)).float()
    places = stick_places(stack_figures([fox.figure]), values[None])
    world = motion_to_world(fox.anatomy.skeleton, trot)[..., :3, 3]
    lead = len(fox.figure) - len(fox.figure.limbs)
    for i, parts in enumerate(fox.anatomy.parts):
        far = np.linalg.norm(world[:, parts.end] - world[:, fox.anatomy.pelvis], axis=1) / fox.unit
        assert np.abs(places.ends[0, lead + i].norm(dim=-1).numpy() - far).max() < 0.02


def test_poses_are_encoded_as_clips_are_and_gradients_flow(fox: Body, trot: Motion) -> None:
    values = pose_array(fox, trot.pose)
    clip = pack(encode(fox.anatomy, trot, travel=False), fox.figure)
    assert np.abs(values[1:, :, : EXTRA.start].numpy() - clip[1:, :, : EXTRA.start]).max() < 1e-3
    rotations = trot.pose.rotations.clone().requires_grad_(True)
    pose_array(fox, replace(trot.pose, rotations=rotations)).square().sum().backward()
    assert rotations.grad is not None and bool(rotations.grad.isfinite().all())


def test_a_shard_comes_back_as_it_was_written(cache: Path, data: Dataset) -> None:
    again = open_dataset(cache)
    assert len(again.clips) == len(data.clips) > 4
    for ours, theirs in zip(again.clips, data.clips, strict=True):
        assert np.array_equal(ours.values, theirs.values) and ours.texts == theirs.texts
        assert np.allclose(again.figures[ours.figure].features, data.figures[theirs.figure].features, atol=1e-6)
    with pytest.raises(FileFormatError, match="no shards"):
        open_dataset(cache / "nowhere")


def test_held_out_species_are_far_and_others_are_not() -> None:
    far = next(creature_takes(1, seed=7, held_out=True))
    near = next(creature_takes(1))
    assert far.split == "far" and near.split == "train" and near.noun not in ("fox", "horse", "child")


def test_what_is_given_is_held_exactly(space: PoseSpace, fox: Body, trot: Motion) -> None:
    values = torch.from_numpy(to_array(fox, trot)).float()
    frames = values.shape[1]
    held = torch.zeros(len(values), frames, dtype=torch.bool)
    held[:, [0, frames - 1]] = True
    drawn = space.draw(
        [fox.figure], frames, space.words("a fox trots"), generator=torch.Generator().manual_seed(0),
        given=[Given(values, held, held)], options=SampleOptions(steps=3),
    )[0]  # fmt: skip
    has = torch.from_numpy(fox.figure.has).repeat_interleave(6, -1)
    gap = (drawn - values)[:, [0, frames - 1], : EXTRA.start].abs() * has[:, None]
    assert float(gap.max()) < 1e-5
    assert float((drawn - values)[:, 1:-1].abs().max()) > 0.01


def test_inverting_and_drawing_again_gives_the_pose_back_better_with_more_steps(space: PoseSpace, fox: Body) -> None:
    clip = sample_poses(space, fox, count=1, seed=3)
    values = pose_array(fox, clip).detach()
    text = space.words(None)
    gaps = []
    for steps in (4, 40):
        noise = space.invert(fox.figure, values, text, steps=steps)
        again = space.from_noise(fox.figure, noise, text, steps=steps)[0, :, :1]
        gaps.append(float((again - values)[:, :, : EXTRA.start].abs().mean()))
    assert gaps[1] < gaps[0]


def test_drafts_have_the_length_that_is_asked_for_and_the_same_seed_gives_the_same(space: PoseSpace, fox: Body) -> None:
    request = read("a fox trots, then sits")
    options = DraftOptions(seconds=4.9, fps=24.0, seed=4, sampling=SampleOptions(steps=2))
    clip = draft(space, fox, request, options)
    assert len(clip) == 119 and clip.fps == 24.0
    again = draft(space, fox, request, options)
    assert torch.equal(clip.pose.rotations, again.pose.rotations)


def test_a_root_path_is_followed(space: PoseSpace, fox: Body) -> None:
    path = [(0.0, 0.0), (0.0, 1.0), (1.0, 1.0)]
    options = DraftOptions(seconds=2.0, path=path, sampling=SampleOptions(steps=2))
    values = draft_array(space, fox, ["a fox walks"], options)
    root = values[0, :, EXTRA].numpy()
    heading = np.concatenate([[0.0], np.cumsum(root[:-1, 3]) / RATE])
    way = np.cumsum(np.stack([np.sin(heading), np.cos(heading)], 1) * root[:, 1:2] / RATE * fox.unit, 0)
    assert np.abs(way[-1] - [1.0, 1.0]).max() < 0.25 and abs(heading[-1] - np.pi / 2) < 0.3


def test_a_loop_ends_where_it_began(space: PoseSpace, fox: Body) -> None:
    wave = torch.sin(torch.arange(60) * (2 * np.pi / 14.3))
    clip = torch.zeros(len(fox.figure), 60, EXTRA.stop) + wave[:, None]
    loop = closed_loop(clip, 30)
    assert torch.equal(loop[:, 0], loop[:, -1]) and 18 <= loop.shape[1] <= 48
    assert float(loop.diff(dim=1).abs().max()) < 1.6 * float(clip.diff(dim=1).abs().max())


def test_clean_up_keeps_the_length_and_more_strength_changes_more(space: PoseSpace, fox: Body, trot: Motion) -> None:
    gaps = []
    for strength in (0.03, 0.8):
        made = project(space, fox, trot, strength=strength, lock=False)
        assert len(made) == len(trot)
        gaps.append(float((made.pose.rotations.abs() - trot.pose.rotations.abs()).abs().mean()))
    assert gaps[0] < gaps[1]
    with pytest.raises(JigdollError, match="left leg 0"):
        missing_parts(fox, ["third arm"])


def test_wild_poses_score_worse_than_what_the_network_draws(space: PoseSpace, fox: Body) -> None:
    model = NetworkPoseModel(space)
    drawn = model.score(fox.anatomy, sample_poses(space, fox, count=2, seed=0))
    wild = model.score(fox.anatomy, PlainPoseModel(share=3.0).sample(fox.anatomy, count=2))
    assert float(drawn.max()) < float(wild.min())


def test_both_pose_models_keep_the_contract(space: PoseSpace, fox: Body) -> None:
    check_pose_model(NetworkPoseModel(space), fox.anatomy)
    check_pose_model(PlainPoseModel(), fox.anatomy)


def test_bodies_that_are_none_are_refused_by_name(fox: Body) -> None:
    skeleton = fox.anatomy.skeleton
    flat = replace(skeleton, T_parent_joint=torch.eye(4).expand(len(skeleton), 4, 4).clone())
    with pytest.raises(RigError, match="one place"):
        body_of(anatomy_of(bare_asset("dot", flat)))


def test_soles_of_sampled_poses_are_not_below_the_ground(space: PoseSpace, fox: Body) -> None:
    poses = sample_poses(space, fox, count=4, seed=5)
    P = forward(fox.anatomy.skeleton, poses)[..., :3, 3]
    feet = [joint for leg in fox.anatomy.legs for joint in leg.foot]
    assert float(P[:, feet, 1].min()) > -1e-3


def test_poses_scored_at_once_have_the_scores_of_each(space: PoseSpace, fox: Body, trot: Motion) -> None:
    values = pose_array(fox, trot.pose[:5])
    each = torch.cat([space.score(fox.figure, values[:, i : i + 1], space.words(None)) for i in range(5)])
    together = space.score_poses(fox.figure, values.transpose(0, 1), space.words(None))
    assert torch.allclose(each, together, atol=1e-5)


def test_smoothing_takes_grain_away_and_keeps_contacts_and_slow_turns() -> None:
    time = torch.linspace(0, 2 * torch.pi, 31)
    clip = torch.zeros(3, 31, 52)
    clip[..., :51] = time.sin()[None, :, None]
    grain = 0.1 * (-1.0) ** torch.arange(31)
    clip[1, :, :51] += grain[:, None]
    clip[:, :, 51] = torch.sign(time.cos())
    smooth = smoothed(clip)
    assert float((smooth[1, 3:-3, :51] - smooth[2, 3:-3, :51]).abs().max()) < 0.02
    assert float((smooth[2, 3:-3, :51] - clip[2, 3:-3, :51]).abs().max()) < 0.03
    assert torch.equal(smooth[1:, :, 51], clip[1:, :, 51])
