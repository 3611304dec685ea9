"""The whole story with a stand-in prior, and the run folder it happens in."""

import base64
import json
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

import jigdoll
from jigdoll import pipeline
from jigdoll.asset.load import load, load_motion
from jigdoll.cli import main
from jigdoll.cli.animate import options_of, who_and_what
from jigdoll.directions import DirectionOptions
from jigdoll.distill.finish import at_most
from jigdoll.distill.finish import preference as preference_of
from jigdoll.distill.options import AnimateOptions, CameraOptions, GuidanceOptions, LossWeights
from jigdoll.distill.scene import Scene, make_scene
from jigdoll.errors import JigdollError, MissingExtra, PromptWarning, RepairWarning
from jigdoll.formats.joints import free_skeleton
from jigdoll.judge import Verdict, judge
from jigdoll.physics import track as tracking
from jigdoll.physics.prepare import sized
from jigdoll.protocols import VideoPrior
from jigdoll.rig.anatomy import anatomy_of
from jigdoll.runs import ProgressFile, open_run, read_request
from jigdoll.types import Motion, PriorDefaults, Request, RiggedAsset, Weights
from jigdoll.zoo.from_text import character_from_text


class StandIn:
    """A prior of pixels that wants everything darker under a text than under none."""

    device = torch.device("cpu")
    defaults = PriorDefaults(
        look="clay", frames=8, fps=8.0, width=24, height=16, guidance=5.0, levels=(0.3, 0.9), negative_prompt="bad"
    )

    def texts(self, request: Request) -> tuple[str, str]:
        return request.prompt, self.defaults.negative_prompt

    def embed(self, prompt: str) -> Tensor:
        return torch.tensor([float(len(prompt))])

    def encode(self, video: Tensor) -> Tensor:
        return 2 * video - 1

    def signal_and_noise(self, level: float) -> tuple[float, float]:
        return 1 - level, level

    def noise(self, latents: Tensor, level: float, generator: torch.Generator) -> Tensor:
        return (1 - level) * latents + level * torch.randn(latents.shape, generator=generator)

    def denoise(
        self, noisy: Tensor, level: float, texts: Sequence[Tensor], reference_image: Tensor | None = None
    ) -> list[Tensor]:
        return [(noisy / (1 - level) - 0.01 * float(text.sum())).clamp(-1, 1) for text in texts]


class Trained(StandIn):
    """One that has learned a few actions only."""

    defaults = replace(StandIn.defaults, actions=frozenset({"walk", "trot", "idle", "look_around", "punch"}))

    def texts(self, request: Request) -> tuple[str, str]:
        return request.prompt, f"not {request.prompt}"


QUICK = AnimateOptions(
    iterations=6,
    refine_steps=12,
    cameras=CameraOptions(views=1, splats=150),
    checkpoint_seconds=0.0,
    preview_seconds=0.0,
)


def from_rest(*words: object, **options: object) -> pipeline.Animation:
    """Distilled without a draft, and nothing swings after the body."""
    return pipeline.animate(*words, draft="none", directions=DirectionOptions(stiff=True), **options)


@pytest.fixture(scope="module")
def ant() -> RiggedAsset:
    return character_from_text("an ant", coarse=True)


@pytest.fixture(scope="module")
def done(ant: RiggedAsset, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pipeline.Animation]:
    out = tmp_path_factory.mktemp("run") / "ant"
    return out, from_rest(ant, "an ant walks", out=out, prior=StandIn(), settings=QUICK, fps=12.0)


def test_everything_that_people_open_is_written(done: tuple[Path, pipeline.Animation], ant: RiggedAsset) -> None:
    out, made = done
    assert isinstance(StandIn(), VideoPrior)
    assert set(made.files) == {"glb", "bvh", "mp4", "sheet", "report", "metrics"}
    assert all(path.is_file() and path.parent == out for path in made.files.values())
    clip = load(made.files["glb"], fps=12.0).clips["an ant walks"]
    # 8 frames at 8 per second last 7/8 s: 10.5 intervals of a twelfth of a second, 11 frames.
    assert len(made.motion) == len(clip) == 11 and made.motion.fps == 12.0
    torch.testing.assert_close(clip.pose.root, made.motion.pose.root, rtol=0, atol=1e-4)
    skeleton, moved = load_motion(made.files["bvh"])
    assert len(moved) == 11 and set(ant.skeleton.names) <= {*skeleton.names}
    assert "an ant walks" in made.files["report"].read_text()
    metrics = json.loads(made.files["metrics"].read_text())
    assert len(metrics["losses"]["prior"]) == made.distilled.plan.steps
    assert metrics["verdict"]["frames"] == 11
    assert len(list((out / "previews").glob("try0-step*.png"))) > 0
    assert json.loads((out / "progress.json").read_text())["fraction"] == 1.0
    config = json.loads((out / "config.json").read_text())
    assert config["jigdoll"] == jigdoll.__version__ and config["request"]["prompt"] == "an ant walks"


def test_the_same_call_again_takes_what_is_there(done: tuple[Path, pipeline.Animation], ant: RiggedAsset) -> None:
    out, made = done
    told: list[str] = []
    again = from_rest(
        ant,
        "an ant walks",
        out=out,
        prior=StandIn(),
        settings=QUICK,
        fps=12.0,
        progress=lambda _, what: told.append(what),
    )
    assert not any("distilling" in what for what in told)
    torch.testing.assert_close(again.motion.pose.rotations, made.motion.pose.rotations, rtol=0, atol=0)


def test_a_run_that_was_killed_ends_in_the_same_motion(
    done: tuple[Path, pipeline.Animation], ant: RiggedAsset, tmp_path: Path
) -> None:
    class Killed(Exception):
        pass

    def kill(fraction: float, what: str) -> None:
        if "step 5" in what:
            raise Killed

    with pytest.raises(Killed):
        from_rest(ant, "an ant walks", out=tmp_path, prior=StandIn(), settings=QUICK, fps=12.0, progress=kill)
    assert (tmp_path / "checkpoint.npz").exists() and not (tmp_path / "motion.glb").exists()
    told: list[str] = []
    made = from_rest(
        ant,
        "an ant walks",
        out=tmp_path,
        prior=StandIn(),
        settings=QUICK,
        fps=12.0,
        progress=lambda _, what: told.append(what),
    )
    assert not any("step 1 " in what for what in told) and any("step 6 " in what for what in told)
    torch.testing.assert_close(made.motion.pose.rotations, done[1].motion.pose.rotations, rtol=0, atol=0)
    torch.testing.assert_close(made.motion.pose.root, done[1].motion.pose.root, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("changes", "point"),
    [
        ({"prompt": "an ant runs"}, "prompt was"),
        ({"seed": 3}, "seed was 0 and is now 3"),
        ({"loop": True}, "loop was"),
        ({"settings": replace(QUICK, losses=LossWeights(contact=5.0))}, "losses.contact was null and is now 5.0"),
    ],
)
def test_a_folder_of_another_run_is_refused(
    done: tuple[Path, pipeline.Animation], ant: RiggedAsset, changes: dict, point: str
) -> None:
    asked = {"prompt": "an ant walks", "fps": 12.0, "prior": StandIn(), "settings": QUICK, **changes}
    with pytest.raises(JigdollError, match=f"belongs to another run: {point}"):
        from_rest(ant, out=done[0], **asked)


def test_the_best_of_several_tries_is_kept_and_what_is_scored_is_what_ships(
    ant: RiggedAsset, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenes, judged = [], []

    def counted(*arguments: object, **options: object) -> Scene:
        scenes.append(make_scene(*arguments, **options))
        return scenes[-1]

    def watched(body: RiggedAsset, motion: Motion, **options: object) -> Verdict:
        judged.append(motion)
        return judge(body, motion, **options)

    monkeypatch.setattr(pipeline, "make_scene", counted)
    monkeypatch.setattr(pipeline, "judge", watched)
    quick = replace(QUICK, iterations=2)
    made = from_rest(ant, "an ant walks", prior=StandIn(), settings=quick, tries=3, fps=12.0)
    assert len(made.distilled.scores) == 3 and made.distilled.score == max(made.distilled.scores)
    assert made.files == {} and len(scenes) == 1
    best = made.distilled.scores.index(made.distilled.score)
    torch.testing.assert_close(judged[best].pose.rotations, made.motion.pose.rotations, rtol=0, atol=1e-6)
    # three tries, what was distilled, what ships
    assert len(judged) == 5 and all(motion.fps == 12.0 for motion in judged)
    expected = pipeline.quality(judge(ant, judged[best])) + pipeline.PREFERENCE * preference_of(
        scenes[0], judged[best]
    )
    assert made.distilled.score == pytest.approx(expected)


def test_the_film_is_encoded_once(
    ant: RiggedAsset, done: tuple[Path, pipeline.Animation], monkeypatch: pytest.MonkeyPatch
) -> None:
    from jigdoll.formats import video

    written: list[Path] = []
    write = video.write
    monkeypatch.setattr(
        video, "write", lambda path, *rest, **more: (written.append(path), write(path, *rest, **more))[1]
    )
    made = from_rest(ant, "an ant walks", out=done[0], prior=StandIn(), settings=QUICK, fps=12.0)
    assert written == [done[0] / "motion.mp4"]
    film = base64.b64encode(made.files["mp4"].read_bytes()).decode()
    assert film in made.files["report"].read_text()


def test_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(JigdollError, match="no device is called 'gpu'"):
        pipeline.open_prior("pocket", device="gpu")
    if not torch.cuda.is_available():
        with pytest.raises(JigdollError, match="sees no CUDA GPU"):
            pipeline.open_prior("pocket", device="cuda")
    with pytest.raises(JigdollError, match="for large video models"):
        pipeline.open_prior("pocket", offload=True)
    assert pipeline.open_prior("pocket", device="cpu").device == torch.device("cpu")


def test_the_prior_prefers_what_its_texts_say(ant: RiggedAsset, done: tuple[Path, pipeline.Animation]) -> None:
    # The stand-in is wrong by a hundredth per letter, so it explains everything better by the shorter text.
    motion = done[1].distilled.motion

    def preference(negative: str) -> float:
        options = replace(QUICK, guidance=GuidanceOptions(negative_prompt=negative))
        return preference_of(make_scene(anatomy_of(ant), "an ant walks", StandIn(), options), motion)

    assert preference("x") < 0 < preference(40 * "x")
    assert preference("y" * 12) == 0


def test_the_clip_is_added_to_the_artists_file(assets_dir: Path, tmp_path: Path) -> None:
    original = assets_dir / "rigged" / "khronos" / "Fox.glb"
    quick = replace(QUICK, iterations=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RepairWarning)  # its unit is a centimetre
        made = from_rest(original, "a fox runs", out=tmp_path / "fox", prior=StandIn(), settings=quick, fps=6.0)
        before, after = load(original), load(made.files["glb"])
    assert list(after.clips) == [*before.clips, "a fox runs"]
    assert after.skeleton.names == before.skeleton.names
    texture, kept = before.mesh.materials[0].texture, after.mesh.materials[0].texture
    assert texture is not None and kept is not None and torch.equal(texture, kept)


@pytest.fixture
def one_iteration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tracking as it is, but for the number of its iterations."""
    pytest.importorskip("newton")
    real = tracking.track
    quick = tracking.TrackConfig(iterations=1, window=6, overlap=2)
    monkeypatch.setattr(
        tracking, "track", lambda asset, motion, engine, _, **more: real(asset, motion, engine, quick, **more)
    )


def test_physics_has_the_last_word(
    ant: RiggedAsset, done: tuple[Path, pipeline.Animation], one_iteration: None
) -> None:
    told: list[tuple[float, str]] = []
    ask = {"out": done[0], "prior": StandIn(), "settings": QUICK, "fps": 12.0}
    made = from_rest(
        ant, "an ant walks", physics=True, progress=lambda share, what: told.append((share, what)), **ask
    )
    # The bodies come near to the clip, but they are not the clip; and the bar goes on while they are simulated.
    moved = (made.motion.pose.root - done[1].motion.pose.root).norm(dim=-1)
    assert len(made.motion) == len(done[1].motion) and 1e-6 < float(moved.max()) < 0.5
    shares = [share for share, what in told if "tracking" in what]
    assert len(set(shares)) >= 2 and 0.4 <= min(shares) < max(shares) <= 0.85
    before = made.verdict.reference
    assert before is not None and before.name == "before physics" and before.skate_ratio == done[1].verdict.skate_ratio
    assert made.verdict.physical is not None and before.physical is not None
    page = made.files["report"].read_text()
    assert "before physics" in page and "root force" in page


def test_another_clip_in_the_same_folder_is_performed_anew(
    ant: RiggedAsset, done: tuple[Path, pipeline.Animation], one_iteration: None, tmp_path: Path
) -> None:
    first = done[1].motion
    first = replace(first, pose=first.pose[:4])
    other = replace(first, pose=replace(first.pose, root=first.pose.root + torch.tensor([0.0, 0.0, 0.05])))
    ready = sized(anatomy_of(ant))
    with open_run(tmp_path / "run", {}) as run:
        ask = {"loop": False, "run": run, "progress": lambda share, what: None}
        one = pipeline.performed(ready, first, **ask)
        two = pipeline.performed(ready, other, **ask)  # of the same name and length, as the best of other tries is
        again = pipeline.performed(ready, first, **ask)
    assert torch.equal(one.pose.root, again.pose.root)
    torch.testing.assert_close(two.pose.root[0, 2], one.pose.root[0, 2] + 0.05, atol=0.01, rtol=0)


def test_physics_without_its_extra_is_refused_at_once(ant: RiggedAsset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="physics"):
        from_rest(ant, "an ant walks", physics=True, prior=StandIn(), settings=QUICK, fps=12.0)


def test_a_clip_is_as_short_as_it_was_asked_for(ant: RiggedAsset) -> None:
    quick = replace(QUICK, iterations=1)
    made = from_rest(ant, "an ant walks", prior=StandIn(), settings=quick, seconds=0.5, fps=12.0)
    assert len(made.motion) == 7 and made.motion.seconds == pytest.approx(0.5)
    assert made.verdict.frames == 7
    with pytest.warns(PromptWarning, match=r"a loop of 0\.5 s was asked for and 0\.83 s are made"):
        whole = at_most(replace(made.motion, fps=7.2), 0.5, loop=True)
    assert len(whole) == 7


def test_a_loop_ends_as_it_begins(ant: RiggedAsset) -> None:
    made = from_rest(
        ant, "an ant walks", prior=StandIn(), settings=replace(QUICK, iterations=2), loop=True, fps=30.0
    )
    pose = made.motion.pose
    same = (pose.rotations[0] * pose.rotations[-1]).sum(-1).abs()
    torch.testing.assert_close(same, torch.ones_like(same), rtol=0, atol=1e-5)
    assert float((pose.root[-1] - pose.root[0])[1].abs()) < 1e-5


def test_a_bare_mesh_is_rigged_on_the_way(ant: RiggedAsset) -> None:
    dog = character_from_text("a dog", coarse=True)
    bare = replace(
        dog,
        skeleton=free_skeleton(["root"], [-1], torch.eye(4)[None]),
        weights=Weights.from_dense(torch.ones(len(dog.mesh.vertices), 1)),
    )
    told: list[str] = []
    made = pipeline.rigged(bare, progress=lambda _, what: told.append(what))
    assert made.is_rigged and "rigged" in told[-1]
    assert pipeline.rigged(ant) is ant


def test_the_words_make_the_character_and_what_is_not_obeyed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "open_prior", lambda prior, **_: Trained())
    quick = replace(QUICK, iterations=1)

    def coarse(prompt: str, *, seed: int = 0) -> RiggedAsset:
        return character_from_text(prompt, seed=seed, coarse=True)

    with pytest.warns(PromptWarning, match="'swims' \\(swim\\) is not an action"):
        made = from_rest(
            None, "a spider swims and walks", prior="pocket", settings=quick, make_character=coarse, anyway=True
        )
    assert made.asset.name == "spider"
    assert made.distilled.plan.guidance.negative_prompt == "not a spider swims and walks"


@pytest.mark.parametrize("words", ["a fox sits", "a fox attacks", "a fox trots, then sits", "a fox zorgles"])
def test_an_action_that_was_never_learned_is_refused_before_any_work_is_done(
    words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "open_prior", lambda prior, **_: Trained())
    monkeypatch.setattr(pipeline, "open_character", lambda *_, **__: pytest.fail("work was begun"))
    with pytest.raises(JigdollError, match=r"--anyway \(anyway=True\)") as refused:
        from_rest("zoo:fox", words, prior="pocket")
    hint = {"a fox sits": "nearest: idle", "a fox attacks": "nearest: punch"}.get(words, "walk|idle")
    assert any(part in str(refused.value) for part in hint.split("|"))


def test_characters_are_found(tmp_path: Path, ant: RiggedAsset) -> None:
    assert pipeline.open_character(ant, "") is ant
    with pytest.raises(JigdollError, match="no built-in character is called 'fax'; did you mean fox"):
        pipeline.open_character("zoo:fax", "it walks")
    with pytest.raises(JigdollError, match="no such file"):
        pipeline.open_character(str(tmp_path / "fox.glb"), "it walks")
    assert jigdoll.animate is pipeline.animate
    assert pipeline.folder_name("zoo:fox", "A fox walks!") == "fox-a-fox-walks"
    assert pipeline.folder_name("/a/b/My Dog.glb", "runs") == "my-dog-runs"


def test_only_one_process_works_in_a_folder(tmp_path: Path) -> None:
    with (
        open_run(tmp_path / "a", {"x": 1}),
        pytest.raises(JigdollError, match=r"another process .* is at work"),
        open_run(tmp_path / "a", {"x": 1}),
    ):
        pass
    with open_run(tmp_path / "a", {"x": 1}) as run:
        assert not run.fresh


def test_a_refused_wish_leaves_nothing_and_can_be_mended(tmp_path: Path) -> None:
    folder = tmp_path / "fox"
    for bad in (0.0, 1e6):
        with pytest.raises(JigdollError, match="cannot be made"):
            pipeline.animate("zoo:fox", "a fox walks", out=folder, seconds=bad)
        assert not folder.exists()
    folder.mkdir()
    with pytest.raises(JigdollError, match="cannot be made"):
        pipeline.animate("zoo:fox", "a fox walks", out=folder, seconds=0.0)
    assert [path.name for path in folder.iterdir()] == [".lock"]
    with open_run(folder, {"seconds": 2.0}) as run:
        assert run.fresh
        run.write_json("kept.json", {})
    with pytest.raises(JigdollError, match="no more"), open_run(folder, {"seconds": 2.0}):
        raise JigdollError("no more")
    assert (folder / "config.json").exists()


def test_no_tries_are_refused() -> None:
    with pytest.raises(JigdollError, match="1 or more"):
        pipeline.animate("zoo:fox", "a fox walks", tries=0)


def test_folders_of_other_things_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("important")
    with pytest.raises(JigdollError, match=r"holds other things \(thesis.tex\)"), open_run(tmp_path, {}):
        pass
    with pytest.raises(JigdollError, match="this is a file"), open_run(tmp_path / "thesis.tex", {}):
        pass
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "config.json").write_text("{broken")
    with pytest.raises(JigdollError, match="not the configuration of a run"), open_run(tmp_path / "b", {}):
        pass
    with pytest.raises(JigdollError, match="no run was started"):
        read_request(tmp_path)


def test_free_settings_may_change(tmp_path: Path) -> None:
    with open_run(tmp_path / "a", {"x": 1, "tries": 1}, free=("tries",)) as run:
        ProgressFile(run).tell({"step": 1})
        assert json.loads(run.path("progress.json").read_text()) == {"step": 1}
    with open_run(tmp_path / "a", {"x": 1, "tries": 4}, free=("tries",)):
        assert read_request(tmp_path / "a")["tries"] == 4
    with pytest.raises(JigdollError, match="x was 1 and is now 2"), open_run(tmp_path / "a", {"x": 2}, free=("tries",)):
        pass


def test_one_word_is_the_prompt_and_two_are_character_and_prompt(tmp_path: Path) -> None:
    assert who_and_what("a fox walks", None) == (None, "a fox walks")
    assert who_and_what("fox.glb", "it walks") == ("fox.glb", "it walks")
    (tmp_path / "fox.glb").touch()
    for character in ("zoo:fox", str(tmp_path / "fox.glb")):
        with pytest.raises(JigdollError, match="say what it does"):
            who_and_what(character, None)
    with pytest.raises(JigdollError, match="say what to animate"):
        who_and_what(None, None)


def test_a_folder_knows_its_own_options(done: tuple[Path, pipeline.Animation]) -> None:
    _, prompt, options = options_of(done[0])
    assert prompt == "an ant walks"
    assert options["fps"] == 12.0 and options["settings"] == QUICK


def test_the_pocket_prior_is_a_teacher_by_name(tmp_path: Path) -> None:
    with pytest.raises(JigdollError, match="no weights of the pocket prior"):
        pipeline.open_prior(str(tmp_path / "mine.safetensors"))
    with pytest.raises(JigdollError, match="no video prior is called 'soap'"):
        pipeline.open_prior("soap")


def test_the_command_line_animates_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, ant: RiggedAsset
) -> None:
    monkeypatch.setattr(pipeline, "open_prior", lambda prior, **_: StandIn())
    monkeypatch.setattr("jigdoll.character.make", lambda name, *, seed=0: ant)
    monkeypatch.chdir(tmp_path)

    def jigdoll_animate(*words: str) -> str:
        monkeypatch.setattr("sys.argv", ["jigdoll", "animate", *words])
        main()
        return capsys.readouterr().out

    small = ("--cameras.views", "1", "--cameras.splats", "150", "--refine-steps", "4", "--losses.contact", "50")
    rest = ("--draft", "none")
    said = jigdoll_animate("zoo:ant", "an ant walks", "--iterations", "2", "--fps", "4", *rest, *small)
    out = Path("animations/ant-an-ant-walks")
    assert "motion.glb" in said and "report.html" in said and (out / "motion.mp4").stat().st_size > 0
    _, _, options = options_of(out)
    cameras, losses = CameraOptions(views=1, splats=150), LossWeights(contact=50.0)
    assert options["settings"] == AnimateOptions(iterations=2, refine_steps=4, cameras=cameras, losses=losses)
    before = (out / "motion.bvh").read_bytes()
    (out / "motion.bvh").unlink()
    facts = json.loads(jigdoll_animate("--resume", str(out), "--json"))
    assert facts["prompt"] == "an ant walks" and Path(facts["named"]["glb"]) == out / "motion.glb"
    assert (out / "motion.bvh").read_bytes() == before
    paper = jigdoll_animate(
        "zoo:ant", "an ant walks", "--paper", "--iterations", "2", "--cameras.splats", "50", "--out", "paper"
    )
    assert "motion.glb" in paper
    asked = options_of(Path("paper"))[2]["settings"]
    assert (asked.iterations, asked.guidance.scale, asked.losses.ground, asked.cameras.splats) == (2, 100.0, 1e7, 50)
    with pytest.raises(SystemExit) as stop:
        jigdoll_animate("a fox walks", "--resume", str(out))
    assert stop.value.code == 1 and "leave the others out" in capsys.readouterr().err
