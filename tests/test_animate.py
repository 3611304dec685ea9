"""Sentences become real motion: drafts, their choice, and what a person may direct."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from jigdoll import pipeline
from jigdoll.candidates import DRAFTS, choose
from jigdoll.directions import DirectionOptions
from jigdoll.errors import JigdollError, PromptWarning
from jigdoll.kinematics import forward, rest_pose
from jigdoll.posespace.figure import CHANNELS
from jigdoll.posespace.model import NetConfig, PoseNet
from jigdoll.protocols import PoseModel
from jigdoll.rig.anatomy import Anatomy
from jigdoll.types import Motion, Pose, Request, RiggedAsset
from jigdoll.zoo.from_text import character_from_text
from stand_ins import jigdoll, two_link_arm
from test_pipeline import QUICK, StandIn

TINY = NetConfig(width=64, layers=2, heads=1, hidden=64)


@pytest.fixture(scope="module")
def man() -> RiggedAsset:
    return character_from_text("a man", coarse=True)


@pytest.fixture(scope="module")
def walk(man: RiggedAsset, tmp_path_factory: pytest.TempPathFactory) -> pipeline.Animation:
    out = tmp_path_factory.mktemp("run") / "walk"
    return pipeline.animate(man, "a man walks", out=out, seconds=1.5, fps=12.0)


def test_by_default_real_motion_is_found_and_the_best_draft_is_shown(walk: pipeline.Animation) -> None:
    assert walk.distilled is None and len(walk.candidates) == DRAFTS
    best = walk.candidates[choose(walk.candidates)]
    assert best.score == max(each.score for each in walk.candidates)
    assert walk.motion.fps == 12.0 and len(walk.motion) == 19
    natural = walk.verdict.natural
    assert natural is not None and natural.grade > 0.6 and walk.verdict.travel_speed > 0.3


def test_candidates_and_looks_are_in_the_folder(walk: pipeline.Animation) -> None:
    assert set(walk.files) == {"glb", "bvh", "mp4", "sheet", "report", "metrics", "candidates"}
    page = walk.files["report"].read_text()
    assert "looks natural to" in page and walk.candidates[choose(walk.candidates)].origin[:20] in page
    assert "As understood" in page and "Stage by stage" in page and "<td>the draft</td>" in page
    assert page.count("<td>following through</td>") == 1 and "moves like: human" in page
    drafts = page[page.index("<h2>Drafts</h2>") : page.index("<h2>Stage by stage</h2>")]
    assert drafts.count("<tr><td>") == DRAFTS and drafts.count("✓") == 1 and "data:image/png" in drafts
    numbers = json.loads(walk.files["metrics"].read_text())
    assert all("notes" in candidate for candidate in numbers["candidates"])
    assert len(numbers["candidates"]) == DRAFTS and numbers["verdict"]["natural"]["grade"] > 0.6


def test_what_is_not_quite_met_stands_in_the_report(tmp_path: Path) -> None:
    with pytest.warns(PromptWarning, match="no legs were found"):
        made = pipeline.animate(two_link_arm(), "it jumps", out=tmp_path / "arm", fps=12.0)
    assert "no legs were found in this character" in made.files["report"].read_text()


def test_the_same_seed_gives_the_same_motion_and_another_one_another(
    walk: pipeline.Animation, man: RiggedAsset
) -> None:
    same = pipeline.animate(man, "a man walks", seconds=1.5, fps=12.0)
    assert torch.equal(same.motion.pose.rotations, walk.motion.pose.rotations)
    others = [pipeline.animate(man, "a man walks", seconds=1.5, fps=12.0, seed=seed) for seed in (1, 2)]
    assert any(not torch.equal(o.motion.pose.rotations, walk.motion.pose.rotations) for o in others)


def test_a_prior_starts_from_the_draft(man: RiggedAsset, walk: pipeline.Animation) -> None:
    quick = replace(QUICK, iterations=2, refine_steps=0)
    made = pipeline.animate(man, "a man walks", prior=StandIn(), settings=quick, seconds=1.5, fps=12.0)
    assert made.distilled is not None and made.candidates
    ours, draft = (forward(man.skeleton, a.motion.pose)[..., :3, 3] for a in (made, walk))
    apart = (ours[: len(draft)] - draft[: len(ours)]).norm(dim=-1).mean()
    rest = forward(man.skeleton, rest_pose(man.skeleton, frames=len(draft)))[..., :3, 3]
    assert float(apart) < 0.25 * float((rest - draft).norm(dim=-1).mean())


def test_a_path_is_followed(man: RiggedAsset, tmp_path: Path) -> None:
    file = tmp_path / "path.csv"
    file.write_text("0 0\n0 2\n2 4\n")
    made = pipeline.animate(man, "a man walks", directions=DirectionOptions(path=str(file)), fps=12.0)
    root = made.motion.pose.root[:, [0, 2]]
    way = root - root[0]
    assert float((way[-1] - torch.tensor([2.0, 4.0])).norm()) < 0.5
    assert float(way[:, 1].max()) > 3.0


def test_the_speed_that_is_asked_for_is_that_of_the_clip_with_locked_feet(man: RiggedAsset) -> None:
    made = pipeline.animate(man, "a man walks", directions=DirectionOptions(speed=0.8), seconds=4.0, fps=24.0)
    root = made.motion.pose.root[:, [0, 2]]
    assert float((root[-1] - root[0]).norm()) / made.motion.seconds == pytest.approx(0.8, rel=0.06)


def test_a_loop_closes_and_stays_on_the_spot(man: RiggedAsset) -> None:
    made = pipeline.animate(man, "a man walks", loop=True, directions=DirectionOptions(in_place=True), fps=24.0)
    pose = made.motion.pose
    same = (pose.rotations[0] * pose.rotations[-1]).sum(-1).abs()
    assert float(same.min()) > 0.999
    assert float((pose.root[-1] - pose.root[0])[[0, 2]].norm()) < 0.05


def test_a_clip_goes_on_from_another_one(man: RiggedAsset, walk: pipeline.Animation) -> None:
    named = replace(man, clips={"before": replace(walk.motion, name="before")})
    made = pipeline.animate(named, "a man waves", directions=DirectionOptions(start="before@10", stiff=True), fps=12.0)
    frame = walk.motion.pose.rotations[10]
    off = 2 * torch.acos((made.motion.pose.rotations[0] * frame).sum(-1).abs().clamp(max=1))
    assert float(torch.rad2deg(off).mean()) < 6
    with pytest.raises(JigdollError, match="19 frames"):
        pipeline.animate(named, "a man waves", directions=DirectionOptions(start="before@99"))


def test_nothing_to_begin_with_is_refused(man: RiggedAsset) -> None:
    with pytest.raises(JigdollError, match="name a prior"):
        pipeline.animate(man, "a man walks", draft="none")


class Frozen:
    """A pose model that stands still."""

    def sample(self, anatomy: Anatomy, *, words: str | None = None, count: int = 1, seed: int = 0) -> Pose:
        return rest_pose(anatomy.skeleton, frames=count)

    def draft(
        self, request: Request, anatomy: Anatomy, *, seconds: float | None = None, fps: float = 30.0, seed: int = 0
    ) -> Motion:
        return Motion(rest_pose(anatomy.skeleton, frames=9), fps, request.prompt)

    def project(self, anatomy: Anatomy, motion: Motion, *, strength: float = 0.3, seed: int = 0) -> Motion:
        return motion

    def score(self, anatomy: Anatomy, pose: Pose) -> torch.Tensor:
        return torch.zeros(len(pose.root))


class Nodding(Frozen):
    """A pose model whose bodies turn their second joint a little more in every frame, as far as the seed says."""

    def draft(
        self, request: Request, anatomy: Anatomy, *, seconds: float | None = None, fps: float = 30.0, seed: int = 0
    ) -> Motion:
        pose = rest_pose(anatomy.skeleton, frames=round((seconds or 1.0) * fps) + 1)
        turn = torch.linspace(0, 0.2 + 0.01 * seed, len(pose.root))
        pose.rotations[:, 1, 0], pose.rotations[:, 1, 1] = (turn / 2).cos(), (turn / 2).sin()
        return Motion(pose, fps, request.prompt)

    def project(self, anatomy: Anatomy, motion: Motion, *, strength: float = 0.3, seed: int = 0) -> Motion:
        return replace(motion, pose=motion.pose[:])


@pytest.mark.filterwarnings("ignore::jigdoll.errors.PromptWarning")
def test_a_pose_model_draws_what_such_a_body_was_never_seen_doing() -> None:
    model = Frozen()
    assert isinstance(model, PoseModel)
    ant = character_from_text("an ant", coarse=True)
    with pytest.raises(JigdollError, match="no real motion"):
        pipeline.animate(ant, "an ant claps", draft="memory", fps=12.0)
    made = pipeline.animate(ant, "an ant claps", pose_model=model, fps=12.0)
    drawn = pipeline.animate(ant, "an ant walks", draft="pose", pose_model=model, fps=12.0)
    assert all("the pose space" in each.origin for each in (*made.candidates, *drawn.candidates))
    assert np.isclose(float(drawn.motion.pose.root.abs().max()), 0, atol=1e-2)
    assert drawn.verdict.natural is not None and "still legs" in {fault.name for fault in drawn.verdict.natural.faults}
    with pytest.raises(JigdollError, match="no real motion"):
        pipeline.animate(ant, "an ant juggles", pose_model=model, fps=12.0)  # nobody in the corpus does


@pytest.mark.filterwarnings("ignore::jigdoll.errors.PromptWarning")
def test_one_action_of_a_sentence_is_found_and_the_other_one_drawn() -> None:
    ant = character_from_text("an ant", coarse=True)
    made = pipeline.animate(ant, "an ant walks, then claps", pose_model=Nodding(), fps=12.0)
    found, drawn = made.candidates[0].origin.split("; ")
    assert "the pose space" not in found and "the pose space" in drawn
    alone = pipeline.animate(ant, "an ant walks", pose_model=Nodding(), fps=12.0)
    assert len(made.motion) > len(alone.motion) and "the pose space" not in alone.candidates[0].origin


@pytest.mark.filterwarnings("ignore::jigdoll.errors.PromptWarning")
def test_mixed_drafts_are_found_drawn_cleaned_and_mixed_and_the_judge_chooses(man: RiggedAsset) -> None:
    made = pipeline.animate(man, "a man walks, then waves", draft="mixed", pose_model=Nodding(), fps=12.0)
    origins = [each.origin for each in made.candidates]
    assert len(origins) == 2 * DRAFTS + 1 + 2
    count = [origin.count("(the pose space)") for origin in origins]
    assert count[:DRAFTS] == [0] * DRAFTS and count[DRAFTS : 2 * DRAFTS] == [2] * DRAFTS and count[-2:] == [1, 1]
    assert origins[2 * DRAFTS].endswith("cleaned by the pose space")
    assert choose(made.candidates) not in range(DRAFTS, 2 * DRAFTS)  # real motion looks better than nodding
    assert made.candidates[choose(made.candidates)].score == max(each.score for each in made.candidates)


def test_what_is_drawn_can_be_directed(man: RiggedAsset) -> None:
    at_rest = DirectionOptions(end="rest", stiff=True)
    made = pipeline.animate(
        man, "a man bows", draft="pose", pose_model=Nodding(), seconds=2.0, fps=12.0, directions=at_rest
    )
    last = made.motion.pose.rotations[-1]
    assert float(2 * torch.acos(last[:, 0].abs().clamp(max=1)).max()) < 0.1
    longer = pipeline.animate(man, "a man walks", draft="pose", pose_model=Nodding(), seconds=5.0, fps=12.0)
    assert len(longer.motion) == 61


def test_weights_of_the_pose_space_are_named_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jigdoll.posespace.weights.has_weights", lambda: False)
    for source in ("pose", "mixed"):
        run = jigdoll("animate", "zoo:ant", "an ant walks", "--draft", source, "--out", tmp_path / "none")
        assert run.returncode == 1 and "--pose-weights" in run.stderr
    weights = _untrained(tmp_path / "tiny.safetensors")
    words = ("animate", "zoo:ant", "an ant walks", "--draft", "pose", "--pose-weights", weights, "--seconds", "0.5")
    run = jigdoll(*words, "--out", tmp_path / "run", "--json")
    assert run.returncode == 0, run.stderr
    answer = json.loads(run.stdout)
    assert all("the pose space" in each["origin"] for each in answer["candidates"])
    assert jigdoll("animate", "--resume", tmp_path / "run").returncode == 0
    missing = jigdoll("animate", "zoo:ant", "an ant walks", "--pose-weights", tmp_path / "x", "--out", tmp_path / "no")
    assert missing.returncode == 1 and "no such file" in missing.stderr


def _untrained(file: Path) -> Path:
    """A small network that has learned nothing, as it is stored."""
    torch.manual_seed(0)
    net = PoseNet(TINY)
    tensors = {name: value.clone() for name, value in net.state_dict().items()}
    tensors |= {"units.mean": torch.zeros(5, CHANNELS), "units.spread": torch.ones(5, CHANNELS)}
    save_file(tensors, file, metadata={"facts": json.dumps({"net": vars(TINY) | {}, "version": 1})})
    return file
