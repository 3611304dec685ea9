"""What every video prior must do, whichever model is behind it: one check for all implementations of the socket."""

import math
from itertools import pairwise

import pytest
import torch

from jigdoll.errors import JigdollError
from jigdoll.language import read
from jigdoll.protocols import VideoPrior


def check_video_prior(
    prior: VideoPrior,
    *,
    frames: int | None = None,
    height: int | None = None,
    width: int | None = None,
    prompts: tuple[str, str] = ("a horse walks", "a robot jumps"),
    tolerance: float = 1e-4,
) -> None:
    """Assert the whole contract of `VideoPrior` on a random video (by default of the prior's own size)."""
    assert isinstance(prior, VideoPrior) and isinstance(prior.device, torch.device)
    size = (frames or prior.defaults.frames, height or prior.defaults.height, width or prior.defaults.width)
    generator = torch.Generator().manual_seed(0)
    video = torch.rand(2, *size, 3, generator=generator)
    before = torch.random.get_rng_state()
    _check_defaults(prior)
    texts = _check_texts(prior, prompts)
    latents = _check_encode(prior, video, tolerance)
    _check_levels(prior)
    _check_noise(prior, latents)
    _check_denoise(prior, latents, texts, tolerance)
    _check_portrait(prior, latents, texts[0], video[:, 0], tolerance)
    assert torch.equal(before, torch.random.get_rng_state()), "a prior takes no global random numbers"


def _check_defaults(prior: VideoPrior) -> None:
    defaults = prior.defaults
    assert defaults.look in ("clay", "motion", "color")
    assert min(defaults.frames, defaults.width, defaults.height) >= 1
    assert defaults.fps > 0 and defaults.guidance >= 1
    assert 0 <= defaults.levels[0] < defaults.levels[1] <= 1


def _check_texts(prior: VideoPrior, prompts: tuple[str, str]) -> list[torch.Tensor]:
    for prompt in prompts:
        wanted, unwanted = prior.texts(read(prompt))
        assert (wanted, unwanted) == prior.texts(read(prompt)), "the same request asks for the same"
        assert wanted and wanted != unwanted
        # What is wanted is the request itself, in whatever words.
        again = read(wanted)
        assert [action.name for action in again.actions] == [action.name for action in read(prompt).actions]
        assert again.species == read(prompt).species
    texts = [prior.embed(prompt) for prompt in (*prompts, "")]
    for text, again in zip(texts, [prior.embed(prompt) for prompt in (*prompts, "")], strict=True):
        assert text.isfinite().all() and not text.requires_grad and text.device == prior.device
        assert torch.equal(text, again), "the same words mean the same"
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert texts[one].shape != texts[other].shape or not torch.allclose(texts[one], texts[other])
    return texts


def _check_encode(prior: VideoPrior, video: torch.Tensor, tolerance: float) -> torch.Tensor:
    copy = video.clone().requires_grad_()
    latents = prior.encode(copy)
    assert latents.shape[0] == 2 and latents.isfinite().all() and latents.dtype == torch.float32
    assert latents.device == prior.device
    assert torch.equal(copy.detach(), video), "encoding changes nothing in the video"
    with torch.no_grad():
        assert not prior.encode(video).requires_grad
        torch.testing.assert_close(prior.encode(video), latents.detach(), rtol=0, atol=tolerance)
        torch.testing.assert_close(prior.encode(video[1:])[0], latents[1].detach(), rtol=0, atol=tolerance)
    latents[0].square().sum().backward()
    assert copy.grad is not None and copy.grad.isfinite().all()
    assert (copy.grad[0].abs().amax((-3, -2, -1)) > 0).all(), "every frame gets a gradient"
    assert (copy.grad[1] == 0).all(), "a view's latents hang on its own pixels only"
    return latents.detach()


def _check_levels(prior: VideoPrior) -> None:
    pairs = [prior.signal_and_noise(level) for level in (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)]
    assert all(0 <= alpha <= 1 and 0 <= sigma <= 1 for alpha, sigma in pairs)
    ratios = [math.inf if sigma == 0 else alpha / sigma for alpha, sigma in pairs]
    assert all(a > b for a, b in pairwise(ratios)), "the signal falls with the level"
    assert ratios[0] > 10 and ratios[-1] < 0.1, "from (almost) clean to (almost) noise"
    for level in (-0.01, 1.01, math.nan):
        with pytest.raises(JigdollError, match="level"):
            prior.signal_and_noise(level)


def _check_noise(prior: VideoPrior, latents: torch.Tensor) -> None:
    def noisy(clean: torch.Tensor, seed: int) -> torch.Tensor:
        return prior.noise(clean, 0.6, torch.Generator().manual_seed(seed))

    alpha, sigma = prior.signal_and_noise(0.6)
    assert torch.equal(noisy(latents, 3), noisy(latents, 3))
    epsilon = noisy(torch.zeros_like(latents), 3) / sigma
    assert abs(float(epsilon.mean())) < 5 / math.sqrt(epsilon.numel())
    assert abs(float(epsilon.var()) - 1) < 8 / math.sqrt(epsilon.numel())
    assert not torch.allclose(epsilon, noisy(torch.zeros_like(latents), 4) / sigma)
    torch.testing.assert_close(noisy(latents, 3), alpha * latents + sigma * epsilon)


def _check_denoise(prior: VideoPrior, latents: torch.Tensor, texts: list[torch.Tensor], tolerance: float) -> None:
    level = 0.6
    noisy = prior.noise(latents, level, torch.Generator().manual_seed(5)).requires_grad_()
    copy = noisy.detach().clone()
    estimates = prior.denoise(noisy, level, texts)
    assert len(estimates) == len(texts)
    for estimate in estimates:
        assert estimate.shape == latents.shape and estimate.dtype == latents.dtype
        assert estimate.isfinite().all() and not estimate.requires_grad
    assert torch.equal(noisy.detach(), copy)
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert not torch.allclose(estimates[one], estimates[other], rtol=0, atol=1e-6), "words make a difference"
    for estimate, again in zip(estimates, reversed(prior.denoise(copy, level, texts[::-1])), strict=True):
        torch.testing.assert_close(estimate, again, rtol=0, atol=tolerance)
    (alone,) = prior.denoise(copy[1:], level, texts[:1])
    torch.testing.assert_close(alone[0], estimates[0][1], rtol=0, atol=tolerance)
    assert prior.denoise(copy, level, []) == []
    other_level = prior.denoise(copy, 0.3, texts[:1])[0]
    assert not torch.allclose(other_level, estimates[0], rtol=0, atol=1e-4)
    with pytest.raises(JigdollError, match="level"):
        prior.denoise(copy, 1.5, texts)


def _check_portrait(
    prior: VideoPrior, latents: torch.Tensor, text: torch.Tensor, reference_image: torch.Tensor, tolerance: float
) -> None:
    noisy = prior.noise(latents, 0.6, torch.Generator().manual_seed(6))
    (without,) = prior.denoise(noisy, 0.6, [text])
    (shown,) = prior.denoise(noisy, 0.6, [text], reference_image)
    assert shown.shape == without.shape and shown.isfinite().all()
    if not prior.defaults.reference_image:
        torch.testing.assert_close(shown, without, rtol=0, atol=tolerance)
        return
    assert not torch.allclose(shown, without, rtol=0, atol=1e-6), "who moves makes a difference"
    other = torch.cat([1 - reference_image[:1], reference_image[1:]])
    (changed,) = prior.denoise(noisy, 0.6, [text], other)
    assert not torch.allclose(changed[0], shown[0], rtol=0, atol=1e-6)
    torch.testing.assert_close(changed[1], shown[1], rtol=0, atol=tolerance)
    pair = prior.denoise(noisy, 0.6, [text, text], reference_image)
    for estimate in pair:
        torch.testing.assert_close(estimate, shown, rtol=0, atol=tolerance)
