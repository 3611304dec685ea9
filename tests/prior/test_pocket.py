"""The pocket prior: its data, its network, its trainer and its place behind the socket."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from jigdoll.errors import JigdollError
from jigdoll.kinematics import forward
from jigdoll.language import actions as rows
from jigdoll.language import nouns
from jigdoll.language.actions import Action
from jigdoll.language.lexicon import lexicon
from jigdoll.language.read import read
from jigdoll.prior.pocket import data as pocket_data
from jigdoll.prior.pocket import train as train_pocket
from jigdoll.prior.pocket import vocabulary
from jigdoll.prior.pocket.captions import HELD_OUT_SPECIES
from jigdoll.prior.pocket.data import Recipe, draw, legs_of, long_clip, samples, spoil, take, window
from jigdoll.prior.pocket.model import (
    DEVIATION,
    Finish,
    PocketConfig,
    PocketNet,
    from_patches,
    signal_and_noise,
    to_patches,
)
from jigdoll.prior.pocket.prior import PocketPrior, facts_of, open_pocket, stored, weights_path
from jigdoll.prior.pocket.text import is_negative, to_ids
from jigdoll.prior.pocket.train import State, TrainConfig, diffusion_loss, focus, orthogonal
from jigdoll.prior.sample import DECIDED, sample, sheet
from jigdoll.splats.bind import bind
from jigdoll.types import Pose
from jigdoll.zoo.assemble import make
from prior_conformance import check_video_prior

TINY = PocketConfig(frames=6, height=16, width=24, dim=32, layers=2, heads=2, head_dim=8, coarse_dim=8, fine_dim=8)
SMALL = Recipe(frames=6, height=16, width=24, clips_per_creature=4)


def lively(config: PocketConfig = TINY) -> PocketNet:
    """A network whose zero-initialised parts are not zero."""
    generator, net = torch.Generator().manual_seed(0), PocketNet(config)
    with torch.no_grad():
        for p in net.parameters():
            scale = min(0.2, p[0].numel() ** -0.5) if p.ndim > 1 else 0.2
            p.copy_(scale * torch.randn(p.shape, generator=generator))
    return net


def test_a_lively_network_of_any_size_keeps_the_socket() -> None:
    check_video_prior(PocketPrior(lively()))


def test_the_shipped_prior_keeps_the_socket() -> None:
    check_video_prior(open_pocket())


@pytest.mark.parametrize("species", ["fox", "ostrich"])
def test_the_shipped_prior_tells_a_walk_from_a_jump_of_a_species_it_never_saw(species: str) -> None:
    assert species in HELD_OUT_SPECIES
    prior, asset, recipe = open_pocket(), make(species), Recipe()
    splats, generator = bind(asset, count=1000), torch.Generator().manual_seed(5)
    prompts = [prior.embed(f"a {species} {words}") for words in ("walks", "jumps")]
    gaps = {}
    for action in ("walk", "jump"):
        pose = take(long_clip(asset, action, recipe, tempo=0.0, seed=3), recipe, generator)
        video, reference_image = draw(splats, asset, pose, recipe, generator)
        clean = prior.encode(video[None])
        walk, jump = prior.denoise(prior.noise(clean, 0.5, generator), 0.5, prompts, reference_image[None])
        gaps[action] = float((jump - clean).square().mean() - (walk - clean).square().mean())
    assert gaps["walk"] > 0 > gaps["jump"]


def test_noise_levels_follow_the_shifted_tangent() -> None:
    levels = torch.linspace(0, 0.99, 50)
    alpha, sigma = signal_and_noise(levels, shift=3.0)
    torch.testing.assert_close(alpha**2 + sigma**2, torch.ones(50))
    torch.testing.assert_close(sigma / alpha, 3 * torch.tan(torch.pi / 2 * levels), rtol=1e-4, atol=1e-6)
    pair = PocketPrior(lively()).signal_and_noise(0.6)
    torch.testing.assert_close(torch.tensor(pair), torch.stack(signal_and_noise(torch.tensor(0.6), shift=3.0)))


def test_patches_go_together_as_they_were_cut() -> None:
    video = torch.rand(2, TINY.frames, TINY.height, TINY.width, 3)
    patches = to_patches(video, TINY.patch)
    assert patches.shape == (2, 2 * 2 * 3, 3 * 3 * 8 * 8)
    torch.testing.assert_close(from_patches(patches, TINY), video, rtol=0, atol=0)
    torch.testing.assert_close(patches[0, 1].reshape(3, 8, 8, 3), video[0, :3, :8, 8:16], rtol=0, atol=0)


def test_a_fresh_network_answers_with_the_best_guess_by_scale_alone() -> None:
    # x0 = alpha s^2 / (sigma^2 + alpha^2 s^2) z is the posterior mean of N(0, s^2) data.
    noisy, level = torch.randn(2, 6, 16, 24, 3), torch.tensor([0.2, 0.7])
    net = PocketNet(TINY)
    answer = net(noisy, level, net.text(torch.zeros(2, 24, 2, dtype=torch.long)))
    alpha, sigma = signal_and_noise(level, shift=3.0)
    share = alpha * DEVIATION**2 / (sigma**2 + (DEVIATION * alpha) ** 2)
    torch.testing.assert_close(answer, share[:, None, None, None, None] * noisy)


def test_the_finish_looks_a_frame_further_with_each_of_its_three_blocks_and_never_into_another_video() -> None:
    config = replace(TINY, frames=9)
    net, tokens, condition = Finish(config).double(), torch.zeros(2, 18, 32).double(), torch.zeros(2, 32).double()
    with torch.no_grad():
        net.outlet.weight.normal_(generator=torch.Generator().manual_seed(0))
    draft = torch.rand(2, 9, 16, 24, 3, dtype=torch.float64, requires_grad=True)
    answer = net(draft, torch.zeros_like(draft), torch.zeros(2, 16, 24, 3).double(), tokens, condition)
    (touched,) = torch.autograd.grad(answer[0, 0].sum(), draft)
    assert [bool(frame.any()) for frame in touched[0]] == [True] * 4 + [False] * 5
    assert not touched[1].any()


def test_a_wrong_video_size_is_refused_with_the_right_one() -> None:
    with pytest.raises(JigdollError, match="6 frames of 24 x 16, not at 6 of 16 x 16"):
        PocketPrior(lively()).encode(torch.zeros(1, 6, 16, 16, 3))


def test_the_same_seed_gives_the_same_clips_and_no_held_out_species() -> None:
    def first(seed: int) -> list[pocket_data.Sample]:
        return list(islice(samples(SMALL, torch.Generator().manual_seed(seed)), 12))

    one, again, other = first(1), first(1), first(2)
    for a, b in zip(one, again, strict=True):
        assert torch.equal(a.video, b.video) and a.caption == b.caption
    assert any(not torch.equal(a.video, b.video) for a, b in zip(one, other, strict=True))
    for clip in one + other:
        assert clip.species not in SMALL.held_out
        assert clip.video.shape == (6, 16, 24, 3) and clip.video.float().std() > 5
        assert ("unnatural motion" in clip.caption) == (clip.kind != "natural")
    assert {clip.kind for clip in one + other} > {"natural"}


def test_creatures_that_hop_are_drawn_as_rarely_as_the_recipe_says(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = []
    monkeypatch.setattr(pocket_data, "random_creature", lambda *_, without, **__: absent.append(without))
    monkeypatch.setattr(pocket_data, "perform", lambda *_: iter([None]))
    recipe = Recipe(hoppers=0.25)
    list(islice(samples(recipe, torch.Generator().manual_seed(0)), 400))
    assert all(set(recipe.held_out) <= set(without) for without in absent)
    assert sum("kangaroo" not in without for without in absent) == pytest.approx(100, abs=25)


@pytest.fixture(scope="module")
def fox() -> tuple:
    asset = make("fox")
    clip = long_clip(asset, "walk", Recipe(), tempo=0.0, seed=1)
    return asset, clip, legs_of(asset)


@pytest.mark.parametrize("kind", sorted(Recipe().mistakes))
def test_every_mistake_differs_from_the_walk_in_what_its_name_says(kind: str, fox: tuple) -> None:
    asset, clip, legs = fox
    generator = torch.Generator().manual_seed(5)
    pose = spoil(asset, clip, legs, kind, Recipe(), generator)
    assert pose.rotations.isfinite().all() and pose.root.shape == (24, 3)
    torch.testing.assert_close(pose.rotations.norm(dim=-1), torch.ones_like(pose.rotations[..., 0]), rtol=0, atol=1e-4)
    walk, step = window(clip.motion.pose, 0, 24), clip.speed / 12
    advance = float((pose.root[-1, 2] - pose.root[0, 2]) / 23)
    change = (pose.rotations[1:] - pose.rotations[:-1]).abs().amax((1, 2))
    if kind == "reversed":
        assert advance == pytest.approx(-step, rel=0.15)
    elif kind in ("moonwalk", "glide", "small", "wrong_phase", "wrong_order", "jitter", "tangled", "random"):
        assert advance == pytest.approx(step, rel=0.15)
    else:
        assert not 0.6 < advance / step < 1.5
    if kind == "glide":
        assert float(change.max()) < 1e-5
    elif kind == "jitter":

        def unrest(turns: torch.Tensor) -> float:
            return float((turns[1:] - turns[:-1]).norm(dim=-1).median(1).values.median())

        assert unrest(pose.rotations) > 3 * unrest(walk.rotations)
    elif kind == "small":

        def swing(turns: torch.Tensor) -> float:
            return float((turns - turns.mean(0)).norm(dim=-1).amax())

        assert 0.1 < swing(pose.rotations) / swing(walk.rotations) < 0.5
    elif kind == "random":
        # Nothing of the walk is left: no joint's curve follows the walk's, and many joints move that it keeps still.
        assert float((pose.rotations[1:] - pose.rotations[:-1]).norm(dim=-1).amax(0).median()) > 0.002
        hips = [leg.joints[0] for leg in legs]
        assert _best_match(clip.motion.pose.rotations[:, hips], pose.rotations[:, hips]) > 0.1
    elif kind == "tangled":
        hips = [leg.joints[0] for leg in legs]
        others = [joint for joint in range(pose.rotations.shape[1]) if joint not in hips]
        assert _best_match(clip.motion.pose.rotations[:, others], pose.rotations[:, others]) < 1e-4
        assert _best_match(clip.motion.pose.rotations[:, hips], pose.rotations[:, hips]) > 0.1
    elif kind == "wrong_phase":
        hips = [leg.joints[0] for leg in legs]
        late = [_best_match(clip.motion.pose.rotations[:, [hip]], pose.rotations[:, [hip]]) for hip in hips]
        together = _best_match(clip.motion.pose.rotations[:, hips], pose.rotations[:, hips])
        # Each leg does what it does in some stretch of the walk, but not all of them in the same one.
        assert sorted(late)[len(late) // 2 - 1] < 1e-4 and together > 0.05


def _best_match(whole: torch.Tensor, part: torch.Tensor) -> float:
    """How far a stretch of motion is from the nearest stretch of a whole clip, at its worst frame and joint."""
    n = len(part)
    gaps = [(whole[start : start + n] - part).norm(dim=-1).amax() for start in range(len(whole) - n + 1)]
    return float(torch.stack(gaps).min())


def test_a_moonwalk_moves_its_feet_along_the_ground_where_the_walk_plants_them(fox: tuple) -> None:
    asset, clip, legs = fox
    generator = torch.Generator().manual_seed(0)

    def slowest_foot(pose: Pose) -> float:
        feet = forward(asset.skeleton, pose)[:, [leg.joints[-1] for leg in legs], 2, 3]
        return float(feet.diff(dim=0).abs().amin(1).mean())

    walk = slowest_foot(window(clip.motion.pose, 0, 24))
    assert slowest_foot(spoil(asset, clip, legs, "moonwalk", Recipe(), generator)) > 5 * walk


@pytest.mark.parametrize("kind", ["wrong_step", "wrong_order"])
def test_a_wrong_step_parts_every_pair_of_legs_and_a_wrong_order_none(kind: str, fox: tuple) -> None:
    asset, clip, legs = fox
    whole = clip.motion.pose
    for seed in range(8):
        pose = spoil(asset, clip, legs, kind, Recipe(), torch.Generator().manual_seed(seed))
        windows = [window(whole, start, 24) for start in range(24)]
        right = next(walk for walk in windows if torch.equal(walk.root, pose.root))  # only legs are late
        late = {
            (leg.rank, leg.side): not torch.equal(right.rotations[:, leg.joints[0]], pose.rotations[:, leg.joints[0]])
            for leg in legs
        }
        assert sum(late.values()) == 2
        assert all((late[pair, "left"] != late[pair, "right"]) == (kind == "wrong_step") for pair in (0, 1))


def test_newton_schulz_pushes_singular_values_to_about_one() -> None:
    m = torch.randn(48, 96, generator=torch.Generator().manual_seed(0))
    for matrix in (m, m.T):
        values = torch.linalg.svdvals(orthogonal(matrix))
        assert matrix.shape == orthogonal(matrix).shape and 0.6 < float(values.min()) <= float(values.max()) < 1.3


def test_the_loss_falls_when_the_network_learns_one_clip() -> None:
    config = TrainConfig(batch=4, model=TINY, recipe=SMALL)
    net, generator = PocketNet(TINY), torch.Generator().manual_seed(0)
    video = torch.rand(1, 6, 16, 24, 3, generator=generator).expand(4, -1, -1, -1, -1) * 2 - 1
    ids = torch.zeros(4, 24, 2, dtype=torch.long)
    optimiser = torch.optim.Adam(net.parameters(), 1e-2)
    losses = []
    for _ in range(80):
        loss, bands = diffusion_loss(net, video, video[:, 0], ids, ids, torch.ones(4), config, generator)
        assert float(bands[1].sum()) == 4
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    assert sum(losses[-10:]) < 0.5 * sum(losses[:10])


def test_words_that_are_not_true_cost_as_the_logistic_loss_of_the_gap_says(monkeypatch) -> None:
    # loss = e + c s e softplus((e - e') / (s e)); e and e' are the weighted errors by true and untrue words
    monkeypatch.setattr(train_pocket, "CONTRASTED", (0.0, 1.0))
    config = TrainConfig(batch=1, null_share=0.0, faceless_share=0.0, word_drop=0.0, model=TINY, recipe=SMALL)
    net, video = lively(), torch.rand(1, 6, 16, 24, 3, generator=torch.Generator().manual_seed(0))
    true, untrue = to_ids(["a dog walks", "unnatural motion of a dog walking"]).split(1)

    def loss(ids: torch.Tensor, others: torch.Tensor, contrasts: int) -> float:
        generator = torch.Generator().manual_seed(1)
        how = replace(config, contrasts=contrasts)
        value, _ = diffusion_loss(net, video, video[:, 0], ids, others, torch.ones(1), how, generator)
        return float(value.detach())

    right, wrong = loss(true, untrue, 0), loss(untrue, true, 0)
    scale = config.sureness * right
    assert right != wrong
    expected = right + config.contrast * scale * math.log1p(math.exp((right - wrong) / scale))
    assert loss(true, untrue, 1) == pytest.approx(expected, rel=1e-5)
    assert loss(true, true, 1) == pytest.approx(right + config.contrast * scale * math.log(2), rel=1e-5)


def test_a_pixel_counts_more_where_something_moves_and_one_on_average() -> None:
    video = torch.zeros(2, 6, 40, 56, 3)
    video[0, ::2, 30:34, 10:14] = 1.0
    moved, still = focus(video)
    torch.testing.assert_close(moved.mean(), torch.tensor(1.0))
    torch.testing.assert_close(still.mean(), torch.tensor(1.0))
    assert float(moved[32, 12]) > 5 * float(still[32, 12])
    assert float(still[23, 28]) > 1.5 * float(still[0, 0])


def test_the_opposite_of_a_turn_is_often_the_turn_to_the_other_side() -> None:
    recipe, generator = replace(SMALL, negatives=0.0, clips_per_creature=8), torch.Generator().manual_seed(0)
    turns = [clip for clip in islice(samples(recipe, generator), 120) if clip.action.startswith("turn")]
    sides = [(read(clip.caption).side, clip.opposite) for clip in turns]
    mirrored = [read(other).side != side for side, other in sides if read(other).side and not is_negative(other)]
    assert all(clip.rival == (not is_negative(clip.opposite)) for clip in turns)
    assert len(turns) > 10 and len(mirrored) > 0.2 * len(turns) and all(mirrored)


def train(out: Path, steps: int) -> None:
    """Two processes, as in earnest; a script file, because spawned processes import it."""
    words = ["--out", str(out), "--steps", str(steps), "--batch", "2", "--sheet-every", "0", "--pool", "8"]
    words += [f"--model.{k} {v}" for k, v in {"frames": 6, "height": 16, "width": 24, "dim": 32}.items()]
    words += ["--model.layers 1", "--model.heads 2", *(f"--model.{k}-dim 8" for k in ("head", "coarse", "fine"))]
    words += [f"--recipe.{k} {v}" for k, v in {"frames": 6, "height": 16, "width": 24}.items()]
    command = [sys.executable, "-m", "jigdoll.prior.pocket.train", *" ".join(words).split()]
    subprocess.run(command, check=True, capture_output=True, env=os.environ | {"OMP_NUM_THREADS": "1"}, timeout=300)


def test_training_on_two_processes_goes_on_where_it_stopped_and_exports(tmp_path: Path) -> None:
    train(tmp_path, 2)
    config = TrainConfig(out=tmp_path, model=replace(TINY, layers=1), recipe=SMALL)
    state = State(config)
    state.load()
    assert state.step == 2 and all(torch.isfinite(p).all() for p in state.net.parameters())
    assert all(float(momentum.norm()) > 0 for momentum in state.momenta)
    train(tmp_path, 4)
    later = State(config)
    later.load()
    assert later.step == 4
    assert not torch.equal(later.net.inlet.weight, state.net.inlet.weight)
    weights = tmp_path / "pocket.safetensors"
    train_pocket.export(config, weights)
    prior = open_pocket(weights)
    torch.testing.assert_close(prior.net.inlet.weight, later.average["inlet.weight"], rtol=1e-3, atol=1e-4)
    assert json.loads(weights.with_suffix(".json").read_text())["step"] == 4
    again = State(replace(config, out=tmp_path / "again", start=weights))
    again.load()
    assert again.step == 0 and torch.equal(again.net.inlet.weight, prior.net.inlet.weight)


def test_a_network_that_grew_starts_with_all_of_the_old_weights_that_fit(tmp_path: Path) -> None:
    before = tmp_path / "before.safetensors"
    train(tmp_path, 2)
    train_pocket.export(TrainConfig(out=tmp_path, model=replace(TINY, layers=1), recipe=SMALL), before)
    old = open_pocket(before).net.state_dict()
    grown = State(TrainConfig(out=tmp_path / "grown", model=replace(TINY, layers=2, head_dim=12), start=before))
    fresh = {name: p.clone() for name, p in grown.net.state_dict().items()}
    grown.load()
    for name, p in grown.net.state_dict().items():
        fits = name in old and old[name].shape == p.shape
        assert torch.equal(p, old[name] if fits else fresh[name]), name
        assert torch.equal(grown.average.get(name, p), p)
    assert torch.equal(grown.net.layers[0].up.weight, old["layers.0.up.weight"])
    assert grown.net.head.inlet.weight.shape != old["head.inlet.weight"].shape


def test_files_that_are_no_weights_are_refused(tmp_path: Path) -> None:
    junk, other = tmp_path / "junk.safetensors", tmp_path / "other.safetensors"
    junk.write_bytes(b"\xff" * 100)
    save_file({"a": torch.zeros(2)}, other)
    foreign = tmp_path / "foreign.safetensors"
    save_file({"a": torch.zeros(2)}, foreign, {"facts": json.dumps({"vocabulary": {"concepts": [1]}, "model": {}})})
    for path, words in (
        (junk, "no weights"),
        (other, "no weights"),
        (foreign, "which words they were trained with"),
        (tmp_path / "no", "there are no"),
    ):
        with pytest.raises(JigdollError, match=words):
            open_pocket(path)
        with pytest.raises(JigdollError, match=words):
            State(TrainConfig(out=tmp_path / "new", model=TINY, start=path)).load()


@pytest.mark.parametrize(
    "change", [{"layers": 200}, {"layers": 2**31}, {"frames": 10**9}, {"head_blocks": 10**4}, {"dim": 1e308}]
)
def test_a_network_that_is_larger_than_its_weights_is_refused_before_it_is_built(
    tmp_path: Path, change: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    facts, tensors = stored(weights_path(None))
    path = tmp_path / "large.safetensors"
    save_file(tensors, path, {"facts": json.dumps(facts | {"model": facts["model"] | change})})
    monkeypatch.setattr("jigdoll.prior.pocket.prior.PocketNet", None)
    with pytest.raises(JigdollError, match=r"large\.safetensors.*(impossible size|no whole number|Type-check)"):
        open_pocket(path)


@pytest.fixture
def later_tables(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The tables of a later version: an action, words and a species more, each put before the old ones."""
    added = {"zorgle": Action("zorgle", ("zorgle", "frobnicate"), nearest=("dance",))}
    changes: list[tuple[dict, dict]] = [(rows.ACTIONS, added), (vocabulary.VERBS, {"zorgle": ("zorgle", "frobnicate")})]
    changes += [(table, {"yak_o_saur": ("yakosaur",)}) for table in (nouns.NAMES, nouns.KIN)]
    for table, more in changes:
        old = dict(table)
        table.clear()
        table.update(more | old)
    monkeypatch.setitem(nouns._FAMILY_MEMBERS, "quadruped", ("yak_o_saur", *nouns._FAMILY_MEMBERS["quadruped"]))
    monkeypatch.setattr(vocabulary, "TRAINED_SPECIES", ("yak_o_saur", *vocabulary.TRAINED_SPECIES))
    monkeypatch.setattr(vocabulary, "ACTIONS", ("zorgle", *vocabulary.ACTIONS))
    lexicon.cache_clear()
    yield
    for table, more in changes:
        for key in more:
            del table[key]
    lexicon.cache_clear()


OLD_PROMPTS = ("a dog walks", "the t-rex veers left quickly", "unnatural motion of a fox jumping", "a man jogs", "")


def answers(prior: PocketPrior) -> list[torch.Tensor]:
    config = prior.net.config
    noisy = torch.randn(1, config.frames, config.height, config.width, 3, generator=torch.Generator().manual_seed(0))
    return prior.denoise(noisy, 0.5, [prior.embed(prompt) for prompt in OLD_PROMPTS])


@pytest.fixture(scope="module")
def answers_before() -> list[torch.Tensor]:
    return answers(open_pocket())


def test_actions_words_and_species_that_came_later_change_nothing_for_trained_weights(
    answers_before: list[torch.Tensor], later_tables: None
) -> None:
    present = vocabulary.present_vocabulary()
    assert present.concepts[0] == "species:yak_o_saur" and "frobnicate" in present.words
    assert read("a yakosaur frobnicates").actions[0].name == "zorgle"
    open_pocket.cache_clear()
    prior = open_pocket()
    assert prior.net.text.vocabulary != present
    for before, after in zip(answers_before, answers(prior), strict=True):
        assert torch.equal(before, after)
    # What it never met is left out of what it is told, and its kind of body is not.
    assert "zorgle" not in (prior.defaults.actions or ())
    assert torch.equal(prior.embed("a yakosaur frobnicates"), prior.embed("a fox"))
    assert prior.texts(read("a yakosaur frobnicates"))[0] == "a yakosaur dances"


def test_embeddings_of_older_weights_are_carried_over_by_name(later_tables: None) -> None:
    theirs, ours = open_pocket().net.text.vocabulary, vocabulary.present_vocabulary()
    old = {name: p.detach() for name, p in open_pocket().net.state_dict().items()}
    fresh = PocketNet(open_pocket().net.config, ours).state_dict()
    moved = train_pocket.carried_over(old, fresh, theirs, ours)
    for key, before, now in (
        ("concept", theirs.concept_ids, ours.concept_ids),
        ("word", theirs.word_ids, ours.word_ids),
    ):
        name = f"text.{key}.weight"
        assert moved[name].shape == fresh[name].shape != old[name].shape
        for word, place in now.items():
            expected = old[name][before[word]] if word in before else fresh[name][place]
            assert torch.equal(moved[name][place], expected), word


def test_the_shipped_weights_say_which_words_they_know() -> None:
    facts = facts_of()
    assert set(facts) == {"model", "recipe", "step", "steps", "vocabulary"}
    known = vocabulary.vocabulary_in(facts, source="shipped")
    assert known == vocabulary.present_vocabulary()
    can = open_pocket().defaults.actions
    assert can is not None and {"walk", "turn", "sneak", "look_around", "hover"} <= can
    assert not can & {"sit", "attack", "swim", "flip", "die"}


def test_samples_hang_on_the_seed_and_the_words() -> None:
    prior = PocketPrior(lively())
    one = sample(prior, "a dog walks", seed=1, steps=3)
    assert torch.equal(one, sample(prior, "a dog walks", seed=1, steps=3))
    assert not torch.allclose(one, sample(prior, "a dog walks", seed=2, steps=3))
    assert not torch.allclose(one, sample(prior, "a dog jumps", seed=1, steps=3))
    assert one.shape == (1, 6, 16, 24, 3) and 0 <= float(one.min()) and float(one.max()) <= 1
    assert sheet(one, every=2, scale=2).shape == (32, 3 * 48, 3)


def test_a_sample_is_held_against_no_words_while_the_action_is_open_and_then_against_the_negative(monkeypatch) -> None:
    prior, asked = PocketPrior(lively()), []
    denoise = prior.denoise

    def noted(noisy, level, texts, reference_image=None):
        asked.append((level, texts[1]))
        return denoise(noisy, level, texts, reference_image)

    monkeypatch.setattr(prior, "denoise", noted)
    sample(prior, "a dog turns left", negative="unnatural motion of a dog turning left", seed=1, steps=6)
    words = {True: prior.embed(""), False: prior.embed("unnatural motion of a dog turning left")}
    assert {level > DECIDED for level, _ in asked} == {True, False}
    assert all(torch.equal(against, words[level > DECIDED]) for level, against in asked)
