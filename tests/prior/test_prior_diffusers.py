"""The big video models, by tiny stand-ins of the same classes: values, gradients, memory."""

import gc
import importlib.util
import os
import weakref
from typing import Any

import pytest
import torch
from torch import Tensor

from jigdoll.distill.config import resolve
from jigdoll.distill.options import AnimateOptions, GuidanceOptions
from jigdoll.errors import JigdollError, RepairWarning
from jigdoll.kinematics import make_skeleton, rest_pose
from jigdoll.language import read
from jigdoll.math.rotations import axis_angle_to_quaternion
from jigdoll.math.transforms import translation
from jigdoll.prior.prior_diffusers import DiffusersPrior, open_prior
from jigdoll.prior.prior_diffusers.schedule import Schedule
from jigdoll.render.camera import fit_orbit
from jigdoll.render.draw import ClipStyle, draw_clip
from jigdoll.render.ground import Ground
from jigdoll.render.rasterizer_reference import rasterize_reference
from jigdoll.splats.bind import bind
from jigdoll.types import Camera, Mesh, Pose, RiggedAsset, Weights
from jigdoll.zoo import make
from jigdoll.zoo.gaits.pace import pace_of
from prior_conformance import check_video_prior
from tiny_pipelines import LATENTS

os.environ["HF_HUB_OFFLINE"] = "1"
pytestmark = pytest.mark.skipif(importlib.util.find_spec("diffusers") is None, reason="the extra 'video' is missing")

SIZES = {
    "cogvideox": (9, 32, 48),
    "cogvideox-sincos": (5, 32, 48),
    "cogvideox-1.5": (9, 48, 64),
    "wan": (9, 32, 48),
    "wan-unipc": (5, 32, 32),
    "wan-2.2-14b": (5, 32, 32),
    "wan-2.2-5b": (5, 64, 64),
    "ltx": (9, 32, 64),
    "modelscope": (4, 16, 32),
    "animatediff": (4, 16, 32),
}
VAES = ("cogvideox", "wan", "wan-2.2-5b", "ltx", "modelscope")


def random(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def random_video(name: str, *, views: int = 1, frames: int | None = None) -> Tensor:
    own, height, width = SIZES[name]
    return torch.rand(views, frames or own, height, width, 3, generator=torch.Generator().manual_seed(1))


class Stub:
    """Stands in for a denoiser."""

    def __init__(self, call: Any, config: Any) -> None:
        self.call, self.config = call, config

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self.call(*arguments, **options)


def stub_denoisers(prior: DiffusersPrior, **calls: Any) -> None:
    prior._load_denoisers()
    for name, call in calls.items():
        if hasattr(prior._parts.pipe, name):
            setattr(prior._parts.pipe, name, Stub(call, getattr(prior._parts.pipe, name).config))


@pytest.mark.parametrize("name", SIZES)
def test_every_pipeline_passes_the_conformance_check_of_the_socket(tiny: Any, name: str) -> None:
    frames, height, width = SIZES[name]
    check_video_prior(open_prior(str(tiny(name))), frames=frames, height=height, width=width)


@pytest.mark.parametrize(("name", "flow"), [("cogvideox", False), ("wan", True), ("wan-2.2-5b", True), ("ltx", True)])
def test_flow_models_are_distilled_by_velocities_and_v_models_as_the_paper_says(
    tiny: Any, name: str, flow: bool
) -> None:
    defaults = DiffusersPrior(tiny(name)).defaults
    assert (defaults.form, defaults.guidance) == (("flow", 25.0) if flow else ("sds", 100.0))
    assert defaults.iterations == 10_000 and defaults.levels == (0.02, 0.98)


@pytest.mark.parametrize("name", ["cogvideox", "wan", "ltx"])
def test_a_draft_leaves_large_models_a_third_of_the_papers_steps(tiny: Any, name: str) -> None:
    defaults = DiffusersPrior(tiny(name)).defaults
    pace = pace_of(read("a man walks"), make("human").skeleton)
    rest = resolve(AnimateOptions(), defaults, pace, legs=2)
    drafted = resolve(AnimateOptions(), defaults, pace, legs=2, draft=2.0)
    assert (rest.iterations, rest.refine_steps) == (10_000, 300)
    assert (drafted.iterations, drafted.refine_steps) == (3300, 60)
    form, scales = ("sds", (100.0, 100.0)) if name == "cogvideox" else ("flow", (25.0, 12.0))
    for plan, highest in ((rest, 0.98), (drafted, 0.02 + 0.6 * 0.96)):
        asked = plan.guidance
        assert (asked.form, asked.scale, asked.scale_end, asked.annealed) == (form, *scales, form == "flow")
        assert (asked.level_low, asked.level_high) == (0.02, pytest.approx(highest))
    wish = AnimateOptions(iterations=7, guidance=GuidanceOptions(scale=30.0, scale_end=5.0))
    mine = resolve(wish, defaults, pace, legs=2, draft=2.0)
    assert (mine.iterations, mine.guidance.scale, mine.guidance.scale_end) == (7, 30.0, 5.0)


@pytest.mark.parametrize("name", [name for name in SIZES if name != "wan-unipc"])  # UniPC steps differently
def test_guided_sampling_with_clean_estimates_equals_the_pipelines_own(tiny: Any, name: str) -> None:
    # x' = alpha' x0 + sigma' eps with eps = (x - alpha x0) / sigma is DDIM for v and epsilon, Euler for flow.
    import diffusers

    frames, height, width = SIZES[name]
    frames = 13 if name == "cogvideox-1.5" else frames  # an even number of latent frames, which need no padding
    steps, guidance = 2, 4.0
    pipe = diffusers.DiffusionPipeline.from_pretrained(tiny(name))
    pipe.set_progress_bar_config(disable=True)
    prior = open_prior(str(tiny(name)), fps=25.0)
    text, null = prior.embed("a horse walks slowly"), prior.embed("blurry")
    start = random(1, LATENTS, prior.grid.latent_frames(frames), height // prior.grid.space, width // prior.grid.space)

    packed = {"cogvideox": start.transpose(1, 2), "ltx": diffusers.LTXPipeline._pack_latents(start)}
    options: dict[str, Any] = {"latents": packed.get(name.partition("-")[0], start).clone()}
    if name.startswith("cogvideox"):
        options["max_sequence_length"] = 16
    found = pipe(
        prompt="a horse walks slowly",
        negative_prompt="blurry",
        height=height,
        width=width,
        num_frames=frames,
        num_inference_steps=steps,
        guidance_scale=guidance,
        output_type="latent",
        **options,
    ).frames

    if prior.family.prediction == "flow":
        levels = [float(sigma) for sigma in pipe.scheduler.sigmas[:-1]]
    else:
        levels = [int(time) / 999 for time in pipe.scheduler.timesteps]
    x = start
    for level, after in zip(levels, [*levels[1:], None], strict=True):
        without, with_text = prior.denoise(x, level, [null, text])
        clean = without + guidance * (with_text - without)
        alpha, sigma = prior.signal_and_noise(level)
        epsilon = (x - alpha * clean) / sigma
        alpha, sigma = (1.0, 0.0) if after is None else prior.signal_and_noise(after)
        x = alpha * clean + sigma * epsilon

    if name.startswith("cogvideox"):
        found = found.transpose(1, 2)
    if name == "ltx":
        found = pipe._unpack_latents(found, *start.shape[2:])
    torch.testing.assert_close(x, found, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["cogvideox", "wan", "wan-unipc", "ltx", "modelscope", "animatediff"])
def test_a_model_that_knows_the_truth_gets_the_clean_latents_back(tiny: Any, name: str) -> None:
    import diffusers

    prior = DiffusersPrior(tiny(name), dtype=torch.float64)
    shape = (2, LATENTS, 3, 4, 6)
    clean = random(*shape, seed=2, dtype=torch.float64)

    def layout(x: Tensor) -> Tensor:
        family = name.split("-", maxsplit=1)[0]
        return {"cogvideox": x.transpose(1, 2), "ltx": diffusers.LTXPipeline._pack_latents(x)}.get(family, x)

    def oracle(hidden_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor]:
        torch.testing.assert_close(hidden_states, layout(noisy), rtol=0, atol=0)
        # v = alpha eps - sigma x0, flow = eps - x0
        truth = {"v": alpha * epsilon - sigma * clean, "flow": epsilon - clean, "epsilon": epsilon}
        return (layout(truth[prior.family.prediction]),)

    stub_denoisers(prior, transformer=oracle, unet=oracle)
    # At level 1 an epsilon model sees some signal yet only because its schedule does not end in pure noise.
    for level in (0.0, 0.02, 0.5, 0.98, 1.0):
        alpha, sigma = prior.signal_and_noise(level)
        noisy = prior.noise(clean, level, torch.Generator().manual_seed(3))
        epsilon = prior.noise(torch.zeros_like(clean), 1.0, torch.Generator().manual_seed(3))
        epsilon = epsilon / prior.signal_and_noise(1.0)[1]
        (estimate,) = prior.denoise(noisy, level, [torch.zeros(1, 32)])
        torch.testing.assert_close(estimate, clean, rtol=1e-12, atol=1e-12)


def test_the_v_estimate_is_the_appendix_form_and_not_the_main_texts() -> None:
    schedule = Schedule("v", 2, (0.64, 0.36))
    noisy, v = torch.tensor([2.0]), torch.tensor([1.0])
    assert schedule.clean(noisy, v, 1.0).item() == pytest.approx(0.6 * 2.0 - 0.8 * 1.0)


@pytest.mark.parametrize("prediction", ["v", "epsilon", "flow"])
def test_guidance_on_clean_estimates_is_guidance_on_outputs(prediction: Any) -> None:
    schedule = Schedule(prediction, 2, None if prediction == "flow" else (0.9, 0.2))
    noisy, null, text = random(3, 5, dtype=torch.float64)
    guided = schedule.clean(noisy, null + 7.5 * (text - null), 0.8)
    clean_null, clean_text = schedule.clean(noisy, null, 0.8), schedule.clean(noisy, text, 0.8)
    torch.testing.assert_close(guided, clean_null + 7.5 * (clean_text - clean_null))


def test_pure_noise_is_refused_where_it_would_be_divided_by_and_only_there() -> None:
    noisy, output = random(2, 4)
    ends_in_noise = (0.99, 0.5, 0.0)
    assert torch.equal(Schedule("v", 3, ends_in_noise).clean(noisy, output, 1.0), -output)
    assert torch.equal(Schedule("flow", 3, None).clean(noisy, output, 1.0), noisy - output)
    with pytest.raises(JigdollError, match="lower level"):
        Schedule("epsilon", 3, ends_in_noise).clean(noisy, output, 1.0)
    assert Schedule("epsilon", 3, ends_in_noise).clean(noisy, output, 0.6).isfinite().all()


@pytest.mark.parametrize("name", VAES)
def test_latents_are_the_normalised_mode_of_the_vae(tiny: Any, name: str) -> None:
    prior = DiffusersPrior(tiny(name))
    video = random_video(name, views=2)
    vae = prior._parts.pipe.vae
    pixels = video.permute(0, 4, 1, 2, 3) * 2 - 1
    with torch.no_grad():
        if name == "modelscope":
            raw = torch.stack([vae.encode(pixels[:, :, t]).latent_dist.mode() for t in range(pixels.shape[2])], 2)
        else:
            raw = vae.encode(pixels).latent_dist.mode()
        latents = prior.encode(video)
    mean, std = torch.tensor([0.1, -0.2, 0.3, 0.05]), torch.tensor([0.5, 0.8, 1.2, 0.9])
    scale = {"cogvideox": 0.7, "modelscope": 0.18215}.get(name)
    expected = raw * scale if scale else (raw - mean.reshape(-1, 1, 1, 1)) / std.reshape(-1, 1, 1, 1)
    torch.testing.assert_close(latents, expected, rtol=1e-5, atol=1e-5)


def saved_bytes(prior: DiffusersPrior, video: Tensor) -> tuple[Tensor, Tensor, int]:
    """Latents, the gradient of some scalar of them, and how much the graph keeps for it."""
    kept: dict[int, int] = {}

    def pack(x: Tensor) -> Tensor:
        kept[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
        return x

    video = video.clone().requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        latents = prior.encode(video)
    size = sum(kept.values())
    (latents * random(*latents.shape, seed=4)).sum().backward()
    assert video.grad is not None
    return latents.detach(), video.grad, size


@pytest.mark.parametrize("name", VAES)
def test_checkpointing_changes_no_value_and_keeps_less(tiny: Any, name: str) -> None:
    video = random_video(name)
    plain = saved_bytes(DiffusersPrior(tiny(name), checkpoint=False), video)
    checkpointed = saved_bytes(DiffusersPrior(tiny(name)), video)
    torch.testing.assert_close(checkpointed[0], plain[0], rtol=0, atol=1e-6)
    torch.testing.assert_close(checkpointed[1], plain[1], rtol=1e-4, atol=1e-6)
    assert checkpointed[2] < 0.7 * plain[2]


@pytest.mark.parametrize(
    ("name", "frames"), [("cogvideox", 25), ("cogvideox", 21), ("wan", 13), ("wan-2.2-5b", 9), ("modelscope", 5)]
)
def test_a_sliced_backward_keeps_the_latents_and_the_gradient_of_one_run(tiny: Any, name: str, frames: int) -> None:
    whole = DiffusersPrior(tiny(name))
    video = torch.rand(1, frames, 32, 32, 3, generator=torch.Generator().manual_seed(1))
    clean = whole.encode(video.requires_grad_())
    weight = random(*clean.shape, seed=4)
    grid = whole.grid
    runs = grid.runs(frames, 2)
    assert [runs[0][0], runs[-1][1]] == [0, frames] and len(runs) > 1
    sliced = DiffusersPrior(tiny(name), backward_latent_frames=2, seed=1)
    seen = set()
    for _ in range(4):
        video.grad = None
        latents = sliced.encode(video)
        torch.testing.assert_close(latents, clean, rtol=0, atol=1e-5)
        (latents * weight).sum().backward()
        assert video.grad is not None
        moved = (video.grad.abs().amax((0, 2, 3, 4)) > 0).nonzero()[:, 0].tolist()
        run = (moved[0], moved[-1] + 1)
        assert run in runs
        if run not in seen:
            # The gradient of that run's latents to that run's pixels, once per run of the video.
            first, last = grid.latent_frames(run[0]), grid.latent_frames(run[1])
            part = (clean * weight)[:, :, first:last].sum()
            (expected,) = torch.autograd.grad(part, video, retain_graph=True)
            expected = len(runs) * expected[:, run[0] : run[1]]
            torch.testing.assert_close(video.grad[:, run[0] : run[1]], expected, rtol=1e-3, atol=1e-5)
        seen.add(run)
    assert len(seen) > 1, "the run is drawn anew in every call"
    options: dict[str, Any] = {"checkpoint": False, "backward_latent_frames": 2, "seed": 1}
    everything = saved_bytes(DiffusersPrior(tiny(name), checkpoint=False), video.detach())[2]
    assert saved_bytes(DiffusersPrior(tiny(name), **options), video.detach())[2] < 0.8 * everything


def test_a_vae_without_steps_refuses_to_slice(tiny: Any) -> None:
    with pytest.raises(JigdollError, match="as a whole"):
        DiffusersPrior(tiny("ltx"), backward_latent_frames=2)


def test_independent_frames_get_the_full_gradient_in_the_mean_over_runs(tiny: Any) -> None:
    name = "modelscope"
    video = random_video(name).requires_grad_()
    weight = random(1, LATENTS, 4, 2, 4, seed=4)
    (full,) = torch.autograd.grad((DiffusersPrior(tiny(name)).encode(video) * weight).sum(), video)
    sliced = DiffusersPrior(tiny(name), backward_latent_frames=2)
    found: dict[int, Tensor] = {}
    for _ in range(12):
        (gradient,) = torch.autograd.grad((sliced.encode(video) * weight).sum(), video)
        found[int((gradient[0, 0] != 0).any())] = gradient
    assert len(found) == 2
    torch.testing.assert_close(torch.stack(list(found.values())).mean(0), full, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "size", "words"),
    [
        ("cogvideox", (10, 48, 64), "4k \\+ 1 frames.*10 frames of 64 x 48.*nearest: 9 frames of 64 x 48"),
        ("cogvideox", (9, 40, 64), "multiples of 16.*nearest: 9 frames of 64 x"),
        ("wan", (12, 48, 64), "4k \\+ 1 frames.*nearest: 13 frames"),
        ("wan-2.2-5b", (5, 48, 64), "multiples of 32"),
        ("ltx", (13, 64, 96), "8k \\+ 1 frames.*nearest: (9|17) frames"),
        ("ltx", (9, 72, 96), "multiples of 32.*nearest: 9 frames of 96 x 64"),
        ("modelscope", (4, 33, 48), "multiples of 8"),
        ("animatediff", (20, 32, 48), "nearest: 16 frames"),
        ("cogvideox-1.5", (9, 64, 64), "nearest: 9 frames of 64 x 48"),
    ],
)
def test_sizes_that_do_not_fit_are_refused_with_the_nearest_that_does(
    tiny: Any, name: str, size: tuple[int, int, int], words: str
) -> None:
    with pytest.raises(JigdollError, match=words):
        DiffusersPrior(tiny(name)).encode(torch.zeros(1, *size, 3))


def test_odd_latent_frames_of_cogvideox_1_5_repeat_the_first_one(tiny: Any) -> None:
    latents = DiffusersPrior(tiny("cogvideox-1.5")).encode(random_video("cogvideox-1.5"))
    assert latents.shape[2] == 4  # 9 frames make 3 latent frames, which the model takes in pairs
    assert torch.equal(latents[:, :, 0], latents[:, :, 1])
    assert not torch.allclose(latents[:, :, 1], latents[:, :, 2])


def test_a_tiled_vae_is_caught_by_the_shape_of_its_latents(tiny: Any) -> None:
    prior = DiffusersPrior(tiny("cogvideox"))
    prior._parts.pipe.vae.enable_tiling(tile_sample_min_height=32, tile_sample_min_width=32)
    with torch.no_grad(), pytest.raises(JigdollError, match="tiling"):
        prior.encode(torch.rand(1, 1, 64, 64, 3))


def test_the_text_encoder_is_freed_before_the_denoiser_comes(tiny: Any) -> None:
    prior = DiffusersPrior(tiny("cogvideox"))
    text = prior.embed("a horse walks")
    encoder = weakref.ref(prior._text.text_encoder)
    assert encoder() is not None and prior._parts.pipe.transformer is None
    noisy = random(1, LATENTS, 1, 4, 4)
    (first,) = prior.denoise(noisy, 0.5, [text])
    gc.collect()
    assert encoder() is None, "the text encoder is gone"
    assert torch.equal(prior.embed("a horse walks"), text) and prior._text is None, "known words need no encoder"
    denoiser = weakref.ref(prior._parts.pipe.transformer)
    other = prior.embed("a robot jumps")
    gc.collect()
    assert denoiser() is None, "new words bring the encoder back, and the denoiser makes room"
    assert not torch.allclose(other, text)
    assert torch.equal(prior.denoise(noisy, 0.5, [text])[0], first)


def test_wan_2_2_hands_low_noise_to_its_second_denoiser(tiny: Any) -> None:
    prior = DiffusersPrior(tiny("wan-2.2-14b"))
    called = []

    def witness(name: str) -> Any:
        return lambda hidden_states, **_: (called.append(name) or hidden_states,)

    stub_denoisers(prior, transformer=witness("high"), transformer_2=witness("low"))
    for level in (1.0, 0.88, 0.875, 0.87, 0.1):  # the boundary of the tiny pipeline is 0.875, as in the 14B model
        prior.denoise(random(1, LATENTS, 1, 4, 4), level, [torch.zeros(1, 32)])
    assert called == ["high", "high", "high", "low", "low"]


def test_the_frame_rate_reaches_ltx(tiny: Any) -> None:
    noisy = random(1, LATENTS, 3, 2, 2)
    slow, fast = (DiffusersPrior(tiny("ltx"), fps=fps) for fps in (12.0, 48.0))
    text = slow.embed("a dog runs")
    assert not torch.allclose(slow.denoise(noisy, 0.5, [text])[0], fast.denoise(noisy, 0.5, [text])[0])


@pytest.mark.parametrize("name", ["cogvideox", "wan", "ltx", "modelscope"])
def test_half_precision_stays_near_and_hands_out_full(tiny: Any, name: str) -> None:
    video = random_video(name).requires_grad_()
    full, half = DiffusersPrior(tiny(name)), DiffusersPrior(tiny(name), dtype=torch.bfloat16)
    clean, rough = full.encode(video), half.encode(video)
    assert rough.dtype == torch.float32
    assert float((rough - clean).detach().norm() / clean.detach().norm()) < 0.05
    rough.sum().backward()
    assert video.grad is not None and video.grad.dtype == torch.float32
    noisy = full.noise(clean.detach(), 0.5, torch.Generator().manual_seed(0))
    (estimate,) = half.denoise(noisy, 0.5, [half.embed("a horse walks")])
    (expected,) = full.denoise(noisy, 0.5, [full.embed("a horse walks")])
    assert estimate.dtype == torch.float32
    assert float((estimate - expected).norm() / expected.norm()) < 0.05


def test_offloading_the_denoiser_changes_no_value(tiny: Any) -> None:
    noisy = random(1, LATENTS, 3, 4, 4)
    plain, offloaded = (DiffusersPrior(tiny("cogvideox"), offload=offload) for offload in (False, True))
    text = plain.embed("a horse walks")
    torch.testing.assert_close(plain.denoise(noisy, 0.5, [text]), offloaded.denoise(noisy, 0.5, [text]))


def test_a_prompt_that_is_too_long_is_cut_with_a_warning(tiny: Any) -> None:
    prior = DiffusersPrior(tiny("cogvideox"))  # the tiny model reads 16 tokens
    with pytest.warns(RepairWarning, match=r"21 tokens and this model reads 16.*after '... slowly a horse walks'"):
        prior.embed("a horse walks slowly " * 5)


def puppet() -> RiggedAsset:
    """A body of three boxes with a hip and a knee, in float64."""
    boxes, weights = [], []
    corners = torch.tensor([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=torch.float64)
    sides = [[0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1]]
    sides += [[2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3]]
    for joint, (center, half) in enumerate(
        [((0, 0.8, 0), (0.15, 0.12, 0.3)), ((0, 0.5, 0), (0.07, 0.2, 0.07)), ((0, 0.2, 0), (0.05, 0.15, 0.05))]
    ):
        boxes.append(corners * corners.new_tensor(half) + corners.new_tensor(center))
        weights.append(torch.nn.functional.one_hot(torch.full((8,), joint), 3).double())
    vertices = torch.cat(boxes)
    faces = torch.cat([torch.tensor(sides) + 8 * box for box in range(3)])
    skeleton = make_skeleton(
        ("pelvis", "left_hip", "left_knee"),
        (-1, 0, 1),
        translation(corners.new_tensor([[0, 0.8, 0], [0, -0.1, 0], [0, -0.35, 0]])),
    )
    colors = (vertices - vertices.amin(0)) / (vertices.amax(0) - vertices.amin(0))
    return RiggedAsset("puppet", Mesh(vertices, faces, colors), skeleton, Weights.from_dense(torch.cat(weights)))


@pytest.mark.parametrize("name", ["cogvideox", "wan"])
def test_the_sds_gradient_of_a_joint_angle_matches_finite_differences(tiny: Any, name: str) -> None:
    # AKD appendix B: dL/dz = z - z_hat, a constant of the backward; so dL/d(angle) = d/d(angle) <z(angle), z - z_hat>,
    # through the VAE, the rasterizer, the skin and the kinematics.
    prior, denoiser = DiffusersPrior(tiny(name), dtype=torch.float64), DiffusersPrior(tiny(name))
    asset = puppet()
    splats = bind(asset, count=40)
    frames, height, width = 5, 16, 32
    still = fit_orbit(asset.mesh.vertices, azimuth=70.0, width=width, height=height)
    camera = Camera(still.T_camera_world.double().expand(1, frames, 4, 4), still.K.double(), width, height)
    style = ClipStyle("splats", width=width, height=height, shadow=False)
    swing = torch.sin(torch.arange(frames) * 0.7).double()
    knee, axis = asset.skeleton.index("left_knee"), torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)

    def latents(angle: Tensor) -> Tensor:
        rest = rest_pose(asset.skeleton, frames=frames)
        turn = axis_angle_to_quaternion(axis.expand(frames, 3), 0.3 + angle * swing)
        rotations = torch.cat([rest.rotations[:, :knee], turn[:, None], rest.rotations[:, knee + 1 :]], 1)
        video = draw_clip(
            asset,
            Pose(rest.root, rotations),
            style=style,
            splats=splats,
            rasterizer=rasterize_reference,
            camera=camera,
            ground=Ground(),
        )
        return prior.encode(video)

    angle = torch.tensor(0.4, dtype=torch.float64, requires_grad=True)
    z = latents(angle)
    assert z.dtype == torch.float64
    noisy = denoiser.noise(z.detach().float(), 0.6, torch.Generator().manual_seed(0))
    text, null = denoiser.denoise(noisy, 0.6, [denoiser.embed("a horse walks"), denoiser.embed("")])
    residual = z.detach() - (null + 5.0 * (text - null)).double()
    (gradient,) = torch.autograd.grad((z * residual).sum(), angle)

    step = 1e-5
    with torch.no_grad():
        ahead, behind = ((latents(angle + sign * step) * residual).sum() for sign in (1, -1))
    assert abs(float(gradient)) > 1e-4
    assert float(gradient) == pytest.approx(float(ahead - behind) / (2 * step), rel=1e-4)
