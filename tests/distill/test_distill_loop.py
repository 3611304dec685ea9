"""The loop: recovery of known motions, checkpoints, trouble, tries, and the paper's recipe on a tiny CogVideoX."""

import json
import math
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from jigdoll import zoo
from jigdoll.distill import loop
from jigdoll.distill.config import DistillPlan, resolve
from jigdoll.distill.loop import Distilled, StepReport, choose_level, distill
from jigdoll.distill.options import (
    AnimateOptions,
    CameraOptions,
    CurveOptions,
    GuidanceOptions,
    LossWeights,
    changed,
    options_from,
    paper_options,
)
from jigdoll.distill.scene import CameraSample, Scene, make_scene, render_window, sample_camera
from jigdoll.distill.trajectory import curve_values, start_pose
from jigdoll.errors import JigdollError
from jigdoll.kinematics import forward
from jigdoll.language import read
from jigdoll.rig.anatomy import anatomy_of
from jigdoll.rig.limits import compound_angles
from jigdoll.types import Pose, PriorDefaults, Request, RiggedAsset
from jigdoll.zoo.gaits import Clip, reference_clip
from jigdoll.zoo.gaits.pace import pace_of

PROMPT = "a dog walks"
QUICK = AnimateOptions(
    iterations=6,
    refine_steps=0,
    cameras=CameraOptions(views=1, splats=200),
    curves=CurveOptions(basis="dct", coarse=0.5),
)


def run(asset: RiggedAsset, prior: object, options: AnimateOptions, prompt: str = PROMPT, **more: object) -> Distilled:
    return distill(make_scene(anatomy_of(asset), prompt, prior, options), **more)


class PlainPrior:
    """A prior whose answers are arithmetic: the wanted clip is darker, the unwanted one brighter."""

    device = torch.device("cpu")
    defaults = PriorDefaults("clay", 6, 12.0, 20, 16, 8.0, (0.3, 0.9), "unnatural motion", "csd")

    def texts(self, request: Request) -> tuple[str, str]:
        return request.prompt, self.defaults.negative_prompt

    def embed(self, prompt: str) -> Tensor:
        return torch.tensor([{"": 0.0, "unnatural motion": -1.0}.get(prompt, 1.0)])

    def encode(self, video: Tensor) -> Tensor:
        return 2 * video - 1

    def signal_and_noise(self, level: float) -> tuple[float, float]:
        return math.cos(level), math.sin(level)

    def noise(self, latents: Tensor, level: float, generator: torch.Generator) -> Tensor:
        alpha, sigma = self.signal_and_noise(level)
        return alpha * latents + sigma * torch.randn(latents.shape, generator=generator)

    def denoise(
        self, noisy: Tensor, level: float, texts: Sequence[Tensor], reference_image: Tensor | None = None
    ) -> list[Tensor]:
        return [(noisy - 0.3 * float(text)) / 2 for text in texts]


class OraclePrior(PlainPrior):
    """A prior that knows the answer: the wanted clip is the reference through the same camera.

    Without a text it has no opinion and returns what it saw; unnatural motion, it thinks, glides a little more.
    """

    defaults = replace(PlainPrior.defaults, frames=24, width=56, height=40)

    def __init__(self, asset: RiggedAsset, clip: Clip, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pose = Pose(clip.motion.pose.root.float(), clip.motion.pose.rotations.float())
        self.sample: CameraSample | None = None
        self.scene: Scene | None = None

        def watched(scene: Scene, generator: torch.Generator, step: int) -> CameraSample:
            self.scene, self.sample = scene, sample_camera(scene, generator, step)
            return self.sample

        monkeypatch.setattr(loop, "sample_camera", watched)

    def encode(self, video: Tensor) -> Tensor:
        self.seen = super().encode(video).detach()
        return super().encode(video)

    def denoise(
        self, noisy: Tensor, level: float, texts: Sequence[Tensor], reference_image: Tensor | None = None
    ) -> list[Tensor]:
        assert self.scene is not None and self.sample is not None
        skeleton = self.scene.trajectory.skeleton
        with torch.no_grad():
            poses = (self.pose, start_pose(self.scene.trajectory, self.scene.trajectory.times()))
            wanted, still = (
                2 * render_window(self.scene, forward(skeleton, pose), self.sample)[0] - 1 for pose in poses
            )
        answers = {1.0: wanted, 0.0: self.seen, -1.0: torch.lerp(self.seen, still, 0.3)}
        return [answers[float(text)] for text in texts]


@pytest.fixture(scope="module")
def dog() -> RiggedAsset:
    return zoo.make("dog")


@pytest.mark.parametrize(("form", "scale"), [("csd", 8.0), ("sds", 100.0)])
def test_a_prior_that_knows_the_walk_teaches_it(dog, form, scale, monkeypatch) -> None:
    clip = reference_clip(dog, "walk", seconds=23 / 12, fps=12.0)
    off = ("contact", "support", "swing_height", "alternation", "symmetry", "jerk", "momentum")
    config = AnimateOptions(
        iterations=60,
        refine_steps=0,
        rate=0.04,
        guidance=GuidanceOptions(form=form, scale=scale, scale_end=scale),
        cameras=CameraOptions(views=1, splats=400),
        curves=CurveOptions(basis="dct", speed=clip.speed, period=clip.period),
        losses=LossWeights(**dict.fromkeys(off, 0.0)),
    )
    result = run(dog, OraclePrior(dog, clip, monkeypatch), config)
    learned = compound_angles(dog.skeleton, result.motion.pose)[..., 0]
    truth = compound_angles(dog.skeleton, clip.motion.pose)[..., 0]
    names = dog.skeleton.names

    def correlation(a: Tensor, b: Tensor) -> float:
        return float(torch.corrcoef(torch.stack([a.float(), b.float()]))[0, 1])

    for rank in ("front", "hind"):
        left, right = (names.index(f"{side}_{rank}_hip") for side in ("left", "right"))
        for hip in (left, right):
            assert correlation(learned[:, hip], truth[:, hip]) > 0.8
            assert 0.6 < float(learned[:, hip].std() / truth[:, hip].std()) < 1.6
        # Legs alternate as those of the reference do.
        assert correlation(learned[:, left], learned[:, right]) < -0.3


@pytest.mark.parametrize("form", ["sds", "csd", "flow"])
def test_the_same_seed_gives_the_same_clip_and_another_seed_another(dog, form) -> None:
    config = replace(QUICK, iterations=4, guidance=GuidanceOptions(form=form))
    one, same, other = (run(dog, PlainPrior(), replace(config, seed=seed)) for seed in (5, 5, 6))
    assert torch.equal(one.motion.pose.rotations, same.motion.pose.rotations)
    assert torch.equal(one.motion.pose.root, same.motion.pose.root)
    assert not torch.allclose(one.motion.pose.rotations, other.motion.pose.rotations)
    assert one.history["prior"] == same.history["prior"] and len(one.history["prior"]) == 4


KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from jigdoll import zoo
from test_distill_loop import QUICK, PlainPrior, run
from dataclasses import asdict, replace
config = replace(QUICK, checkpoint_seconds=0.0, tries=2)
def die(report):
    if report.attempt == 1 and report.step == 4:
        os.kill(os.getpid(), signal.SIGKILL)
run(zoo.make("dog"), PlainPrior(), config, checkpoint=Path(sys.argv[1]), watch=die, score=lambda made: len(made.motion))
"""


RESUMED = """
import sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
import torch
from jigdoll import zoo
from test_distill_loop import QUICK, PlainPrior, run
from dataclasses import asdict, replace
dog, path, config, steps = zoo.make("dog"), Path(sys.argv[1]), replace(QUICK, tries=2), []
score = lambda made: len(made.motion)
go = dict(checkpoint=path, score=score, watch=lambda report: steps.append((report.attempt, report.step)))
resumed = run(dog, PlainPrior(), config, **go)
assert steps == [(1, 4), (1, 5), (1, 6)], steps
straight = run(dog, PlainPrior(), config, score=score)
assert torch.equal(resumed.theta, straight.theta)
assert torch.equal(resumed.motion.pose.rotations, straight.motion.pose.rotations)
assert resumed.history == straight.history and resumed.scores == straight.scores
again = run(dog, PlainPrior(), config, **go)
assert torch.equal(again.theta, straight.theta) and len(steps) == 3, "a finished run only reads its result"
"""


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_bits(dog, tmp_path) -> None:
    path = tmp_path / "run" / "checkpoint.npz"
    here = str(Path(__file__).parent)
    ended = subprocess.run([sys.executable, "-c", KILLED, str(path), here], capture_output=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
    assert path.exists() and [p.name for p in path.parent.iterdir()] == [path.name]
    # A fresh process again: what other tests have loaded may change how this one rounds.
    ended = subprocess.run([sys.executable, "-c", RESUMED, str(path), here], capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr.decode()


def test_a_checkpoint_of_another_run_or_a_broken_one_is_refused(dog, tmp_path) -> None:
    path = tmp_path / "checkpoint.npz"
    config = replace(QUICK, iterations=2)
    run(dog, PlainPrior(), config, checkpoint=path)
    with np.load(path, allow_pickle=False) as file:
        assert all(file[name].dtype != object for name in file.files)
    with pytest.raises(JigdollError, match="another distillation"):
        run(dog, PlainPrior(), config, "a dog runs", checkpoint=path)
    with pytest.raises(JigdollError, match="another distillation"):
        run(dog, PlainPrior(), replace(config, rate=0.5), checkpoint=path)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(JigdollError, match="remove it"):
        run(dog, PlainPrior(), config, checkpoint=path)


def test_the_best_of_several_seeds_is_kept(dog) -> None:
    seen: list[Tensor] = []

    def score(made: Distilled) -> float:
        seen.append(made.motion.pose.rotations)
        return [0.1, 0.7, 0.3][len(seen) - 1]

    result = run(dog, PlainPrior(), replace(QUICK, iterations=2, tries=3), score=score)
    assert result.scores == (0.1, 0.7, 0.3) and result.score == 0.7
    assert torch.equal(result.motion.pose.rotations, seen[1])
    assert not torch.allclose(seen[0], seen[1])
    alone = run(dog, PlainPrior(), replace(QUICK, iterations=2, seed=result.seed))
    assert torch.equal(alone.theta, result.theta), "the seed that is named gives the clip that was kept"


class SickPrior(PlainPrior):
    """Answers with nothing sensible at some calls."""

    def __init__(self, sick: range) -> None:
        self.calls, self.sick = 0, sick

    def denoise(
        self, noisy: Tensor, level: float, texts: Sequence[Tensor], reference_image: Tensor | None = None
    ) -> list[Tensor]:
        self.calls += 1
        factor = math.nan if self.calls in self.sick else 1.0
        return [factor * estimate for estimate in super().denoise(noisy, level, texts, reference_image)]


def test_a_gradient_that_is_no_number_is_skipped_and_said(dog) -> None:
    told: list[str] = []
    result = run(dog, SickPrior(range(3, 5)), QUICK, watch=lambda report: told.append(report.message))
    assert [bool(message) for message in told] == [False, False, True, True, False, False]
    assert "not a number" in told[2] and "half the rate" in told[2]
    assert bool(result.theta.isfinite().all())


def test_a_prior_that_is_always_sick_ends_the_run_with_advice(dog) -> None:
    with pytest.raises(JigdollError, match="another seed"):
        run(dog, SickPrior(range(0, 999)), replace(QUICK, iterations=20))


def test_a_run_that_flies_away_returns_to_where_it_was_well(dog) -> None:
    told: list[str] = []
    config = replace(QUICK, iterations=4, rate=50.0)
    result = run(dog, PlainPrior(), config, watch=lambda report: told.append(report.message))
    assert any("beyond all bounds" in message for message in told)
    assert float(result.theta.abs().max()) <= loop.MOST_CURVE


def test_progress_tells_how_far_it_is_and_shows_a_picture(dog) -> None:
    reports: list[StepReport] = []
    config = replace(QUICK, iterations=3, preview_seconds=0.0)
    run(dog, PlainPrior(), config, watch=reports.append)
    assert [report.fraction for report in reports] == pytest.approx([1 / 3, 2 / 3, 1.0])
    assert reports[-1].seconds_left == 0 and reports[0].seconds_left > 0
    assert all(report.picture is not None and report.picture.std() > 5 for report in reports)
    assert {"prior", "ground", "root", "near"} <= set(reports[0].losses)


def test_the_last_steps_do_without_the_prior(dog) -> None:
    class Counting(PlainPrior):
        asked = 0

        def denoise(
            self, noisy: Tensor, level: float, texts: Sequence[Tensor], reference_image: Tensor | None = None
        ) -> list[Tensor]:
            self.asked += 1
            return super().denoise(noisy, level, texts, reference_image)

    prior = Counting()
    result = run(dog, prior, replace(QUICK, iterations=3, refine_steps=3))
    assert prior.asked == 3
    assert [value > 0 for value in result.history["prior"]] == [True] * 3 + [False] * 3
    assert all(len(values) <= 6 for values in result.history.values())


def test_long_clips_are_shown_window_by_window(dog) -> None:
    config = replace(QUICK, seconds=1.0, iterations=2)
    scene = make_scene(anatomy_of(dog), PROMPT, PlainPrior(), config)
    assert scene.trajectory.frames == 13
    generator = torch.Generator().manual_seed(0)
    samples = [sample_camera(scene, generator) for _ in range(60)]
    assert {sample.first for sample in samples} == set(range(8))
    assert all(62 <= abs(a) <= 118 for sample in samples for a in sample.azimuth)
    assert {a > 0 for sample in samples for a in sample.azimuth} == {True, False}
    assert len(run(dog, PlainPrior(), config).motion) == 13


def test_the_film_has_a_gradient_in_every_frame(dog) -> None:
    scene = make_scene(anatomy_of(dog), PROMPT, PlainPrior(), QUICK)
    T = forward(scene.trajectory.skeleton, start_pose(scene.trajectory, scene.trajectory.times())).requires_grad_()
    video, _ = render_window(scene, T, sample_camera(scene, torch.Generator().manual_seed(0)))
    assert video.shape == (1, 6, 16, 20, 3)
    video.square().sum().backward()
    assert T.grad is not None and bool((T.grad.flatten(1).abs().amax(1) > 0).all())


@pytest.mark.parametrize("form", ["csd", "sds", "flow"])
@pytest.mark.parametrize("wanted", [True, False])
def test_a_prior_that_wants_a_portrait_gets_one_with_every_question(dog, form, wanted) -> None:
    class Curious(PlainPrior):
        defaults = replace(PlainPrior.defaults, reference_image=wanted)
        portraits: ClassVar[list[Tensor | None]] = []

        def denoise(
            self, noisy: Tensor, level: float, texts: Sequence[Tensor], reference_image: Tensor | None = None
        ) -> list[Tensor]:
            self.portraits.append(reference_image)
            return super().denoise(noisy, level, texts, reference_image)

    prior = Curious()
    run(dog, prior, replace(QUICK, iterations=2, guidance=GuidanceOptions(form=form)))
    assert len(prior.portraits) >= 2
    for reference_image in prior.portraits:
        assert (reference_image is not None) == wanted
        if reference_image is not None:
            assert reference_image.shape == (1, 16, 20, 3) and float(reference_image.std()) > 0.02


def plan_of(options: AnimateOptions) -> DistillPlan:
    return resolve(options, PlainPrior.defaults, pace_of(read(PROMPT), zoo.make("dog").skeleton), legs=4)


def test_the_noise_level_is_drawn_as_the_paper_says() -> None:
    # t ~ U[0.02, t_end], t_end from 0.98 to 0.5 linearly over the first half of the iterations (appendix D).
    plan = plan_of(paper_options())
    generator = torch.Generator().manual_seed(0)
    for step, high in ((0, 0.98), (2500, 0.74), (5000, 0.5), (9999, 0.5)):
        levels = torch.tensor([choose_level(plan, step, generator) for _ in range(2000)])
        assert 0.02 <= float(levels.min()) < 0.03 and high - 0.01 < float(levels.max()) <= high
        assert abs(float(levels.mean()) - (0.02 + high) / 2) < 0.02


def test_the_papers_constants_are_what_no_prior_changes() -> None:
    plan = plan_of(paper_options())
    guidance, curves = plan.guidance, plan.curves
    assert (guidance.form, guidance.scale, guidance.scale_end, guidance.negative_prompt) == ("sds", 100.0, 100.0, "")
    assert (guidance.level_low, guidance.level_high, guidance.level_high_end) == (0.02, 0.98, 0.5)
    assert (plan.iterations, plan.refine_steps, plan.decay, plan.cameras.views) == (10_000, 0, 0.0, 1)
    assert curves.basis == "frames" and plan.cameras.follow == "shape" and not curves.limited
    assert {name: weight for name, weight in plan.losses.items() if weight} == {"smooth": 2e5, "ground": 1e7}


def test_a_plan_leaves_nothing_open_and_keeps_what_was_asked() -> None:
    def leaves(value: object) -> list[object]:
        values = value.values() if isinstance(value, dict) else None
        return [value] if values is None else [leaf for each in values for leaf in leaves(each)]

    plan = plan_of(AnimateOptions())
    assert None not in leaves(asdict(plan)) and len(leaves(asdict(plan))) > 50
    assert (plan.iterations, plan.refine_steps, plan.cameras.views, plan.curves.basis) == (120, 300, 2, "stride")
    asked = AnimateOptions(
        iterations=7,
        seconds=2.0,
        guidance=GuidanceOptions(scale=0.0),
        cameras=CameraOptions(ground=False),
        curves=CurveOptions(speed=0.5),
        losses=LossWeights(contact=50.0, jerk=0.0),
    )
    plan = plan_of(asked)
    assert (plan.iterations, plan.frames, plan.guidance.scale, plan.guidance.scale_end) == (7, 25, 0.0, 0.0)
    assert (plan.losses["contact"], plan.losses["jerk"], plan.losses["ground"]) == (50.0, 0.0, 3000.0)
    assert not plan.cameras.ground and plan.curves.speed == 0.5


def test_options_come_back_from_json_and_what_does_not_fit_is_named() -> None:
    asked = changed(
        paper_options(),
        AnimateOptions(seed=3, cameras=CameraOptions(azimuth=(10.0, 20.0)), losses=LossWeights(contact=5.0)),
    )
    assert (asked.seed, asked.iterations, asked.guidance.scale, asked.losses.contact) == (3, 10_000, 100.0, 5.0)
    assert asked.cameras == CameraOptions(views=1, follow="shape", shadow=False, azimuth=(10.0, 20.0))
    assert options_from(json.loads(json.dumps(asdict(asked)))) == asked
    for wrong in ({"iterations": 2.5}, {"cameras": {"azimuth": [1.0]}}, {"guidance": {"form": "xyz"}}, {"loop": 1}):
        with pytest.raises(ValueError, match="cannot be"):
            options_from(wrong)


def test_flow_matching_walks_down_the_levels_and_the_guidance() -> None:
    plan = plan_of(AnimateOptions(guidance=GuidanceOptions(form="flow")))
    assert (plan.guidance.scale, plan.guidance.scale_end, plan.guidance.annealed) == (25.0, 12.0, True)
    generator = torch.Generator()
    levels = [choose_level(plan, step, generator) for step in (0, plan.iterations // 2, plan.iterations)]
    assert levels == pytest.approx([0.9, 0.6, 0.3])


def test_a_prior_that_sees_real_colours_is_shown_fitted_splats(dog) -> None:
    class Colored(PlainPrior):
        defaults = replace(PlainPrior.defaults, look="color")

    plan = resolve(AnimateOptions(), Colored.defaults, pace_of(read(PROMPT), dog.skeleton), legs=4)
    assert (plan.cameras.splats, plan.cameras.fit_steps) == (12_000, 1000)
    few = replace(QUICK, cameras=CameraOptions(splats=150, fit_steps=12))
    scene = make_scene(anatomy_of(dog), PROMPT, Colored(), few)
    bare = make_scene(anatomy_of(dog), PROMPT, Colored(), replace(few, cameras=CameraOptions(splats=150, fit_steps=0)))
    assert 100 < len(scene.splats.means) <= 150 == len(bare.splats.means)
    assert float(scene.splats.scales[:, 0].std()) > 10 * float(bare.splats.scales[:, 0].std()), "each has its own size"
    assert scene.splats.weights.joints.shape[0] == len(scene.splats.means)


def test_every_step_of_the_paper_runs_on_a_tiny_cogvideox(dog, tmp_path) -> None:
    pytest.importorskip("diffusers")
    from jigdoll.prior.prior_diffusers import DiffusersPrior
    from tiny_pipelines import save_tiny_pipeline

    prior = DiffusersPrior(save_tiny_pipeline("cogvideox", tmp_path / "cog"))
    small = CameraOptions(frames=9, width=64, height=48, splats=300, fit_steps=0)
    config = changed(paper_options(), AnimateOptions(iterations=3, cameras=small))
    result = run(dog, prior, config)
    assert set(result.history) == {"prior", "smooth", "ground"} and len(result.history["prior"]) == 3
    assert len(result.motion) == 9 and result.trajectory.terms == 9
    start = run(dog, prior, replace(config, iterations=0)).motion
    assert torch.equal(start.pose.rotations, torch.tensor([1.0, 0, 0, 0]).expand_as(start.pose.rotations))
    moved = (result.motion.pose.rotations - start.pose.rotations).abs().amax(-1)
    locked = (dog.skeleton.limits[:, :, 0] == dog.skeleton.limits[:, :, 1]).all(-1)
    assert bool((moved[:, ~locked] > 0).all()), "each joint of each frame has a gradient of its own"
    assert bool((moved[:, locked] == 0).all())


def test_a_bare_mesh_is_refused(dog) -> None:
    from jigdoll.kinematics import make_skeleton
    from jigdoll.types import Weights

    count = dog.mesh.vertices.shape[0]
    bare = replace(
        dog,
        skeleton=make_skeleton(("root",), (-1,), torch.eye(4)[None]),
        weights=Weights(torch.zeros(count, 1, dtype=torch.long), torch.ones(count, 1)),
    )
    with pytest.raises(JigdollError, match="rig it first"):
        run(bare, PlainPrior(), QUICK)


@pytest.mark.parametrize("prompt", ["a dog jumps", "a dog runs"])
def test_the_path_of_a_loop_fits_it_a_whole_number_of_times(prompt: str) -> None:
    scene = make_scene(anatomy_of(zoo.make("dog")), prompt, PlainPrior(), AnimateOptions(loop=True))
    seconds = (scene.trajectory.frames - 1) / scene.trajectory.fps
    strides = seconds / scene.trajectory.period
    assert math.isclose(strides, round(strides), abs_tol=1e-6)
    path = curve_values(scene.trajectory, torch.zeros(scene.trajectory.shape)).start.root
    assert math.isclose(float(path[0, 1]), float(path[-1, 1]), abs_tol=1e-4)
