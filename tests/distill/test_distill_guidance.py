"""Score distillation as arithmetic on clean estimates."""

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from jigdoll.distill.guidance import Texts, embed_texts, guide, surrogate
from jigdoll.math.diffusion import ddim_sample, guided
from jigdoll.types import PriorDefaults, Request

WANTED, UNWANTED, NULL = (torch.full((1,), float(i)) for i in (1, -1, 0))
TEXTS = Texts(WANTED, UNWANTED, NULL)


class KnownPrior:
    """A prior that believes each text means one clip, whatever it is shown: its estimates are known in closed form."""

    device = torch.device("cpu")
    defaults = PriorDefaults("clay", 2, 8.0, 4, 3, 100.0, (0.02, 0.98), "bad")

    def __init__(self, *, flow: bool = False) -> None:
        generator = torch.Generator().manual_seed(1)
        self.means = {i: torch.randn(1, 2, 3, 4, 3, generator=generator) for i in (-1, 0, 1)}
        self.flow = flow
        self.seen: list[tuple[Tensor, float]] = []

    def texts(self, request: Request) -> tuple[str, str]:
        return request.prompt, self.defaults.negative_prompt

    def embed(self, prompt: str) -> Tensor:
        return {"": NULL, "bad": UNWANTED}.get(prompt, WANTED)

    def encode(self, video: Tensor) -> Tensor:
        return 2 * video - 1

    def signal_and_noise(self, level: float) -> tuple[float, float]:
        return (1 - level, level) if self.flow else ((1 - level**2) ** 0.5, level)

    def noise(self, latents: Tensor, level: float, generator: torch.Generator) -> Tensor:
        alpha, sigma = self.signal_and_noise(level)
        return alpha * latents + sigma * torch.randn(latents.shape, generator=generator)

    def denoise(
        self, noisy: Tensor, level: float, texts: Sequence[Tensor], reference_image: Tensor | None = None
    ) -> list[Tensor]:
        self.seen.append((noisy, level))
        return [self.means[int(text)].expand_as(noisy) for text in texts]


def latents() -> Tensor:
    return torch.randn(2, 2, 3, 4, 3, generator=torch.Generator().manual_seed(2))


def random() -> torch.Generator:
    return torch.Generator().manual_seed(4)


def test_sds_is_the_latents_minus_the_guided_estimate() -> None:
    prior, z = KnownPrior(), latents()
    gradient = guide(prior, z, TEXTS, form="sds", level=0.5, scale=100.0, generator=random())
    # AKD Eq. 7 with weight 1 (Eq. 17) and classifier-free guidance against the null text.
    truth = z - (prior.means[0] + 100 * (prior.means[1] - prior.means[0]))
    torch.testing.assert_close(gradient, truth)


def test_sds_on_clean_estimates_is_the_difference_of_noises() -> None:
    prior, z, level = KnownPrior(), latents(), 0.6
    gradient = guide(prior, z, TEXTS, form="sds", level=level, scale=1.0, generator=random())
    (noisy, _), (alpha, sigma) = prior.seen[0], prior.signal_and_noise(level)
    epsilon = (noisy - alpha * z) / sigma
    epsilon_hat = (noisy - alpha * prior.means[1]) / sigma
    # z - z_hat = (sigma / alpha) (eps_hat - eps), the gradient of Eq. 4 up to its weight.
    torch.testing.assert_close(gradient, sigma / alpha * (epsilon_hat - epsilon), rtol=0, atol=1e-5)
    # and by appendix B's velocity v = alpha eps - sigma z:  z_hat = alpha z_t - sigma v
    velocity = alpha * epsilon_hat - sigma * prior.means[1]
    torch.testing.assert_close(z - (alpha * noisy - sigma * velocity), gradient, rtol=0, atol=1e-5)


def test_csd_sets_the_wanted_text_against_the_unwanted_one_alone() -> None:
    prior = KnownPrior()
    one, other = (
        guide(prior, z, TEXTS, form="csd", level=0.5, scale=8.0, generator=random()) for z in (latents(), 0 * latents())
    )
    torch.testing.assert_close(one, (8 * (prior.means[-1] - prior.means[1])).expand_as(one))
    assert torch.equal(one, other)
    # The limit of guidance: sds against the same negative, divided by a growing scale, comes ever closer.
    texts = Texts(WANTED, UNWANTED, UNWANTED)
    many = guide(prior, latents(), texts, form="sds", level=0.5, scale=1e5, generator=random()) / 1e5
    torch.testing.assert_close(many, one / 8, rtol=0, atol=1e-3)


def test_flow_is_the_difference_of_velocities() -> None:
    prior, z, level = KnownPrior(flow=True), latents(), 0.4
    gradient = guide(prior, z, TEXTS, form="flow", level=level, scale=25.0, generator=random())
    noisy, _ = prior.seen[0]
    epsilon = (noisy - (1 - level) * z) / level
    target = prior.means[-1] + 25 * (prior.means[1] - prior.means[-1])
    # v = eps - x0, for the true pair and for what the guided estimate implies of the noise.
    velocity, velocity_hat = epsilon - z, (noisy - (1 - level) * target) / level - target
    torch.testing.assert_close(gradient, velocity_hat - velocity, rtol=1e-4, atol=1e-4)


def test_sampling_ends_at_the_clip_that_the_prior_has_in_mind() -> None:
    prior, z = KnownPrior(), latents()

    def estimate(noisy: Tensor, level: float) -> Tensor:
        return guided(*prior.denoise(noisy, level, [WANTED, UNWANTED]), 2.5)

    noisy = prior.noise(z, 0.8, random())
    target = ddim_sample(noisy, [0.8, 0.6, 0.4, 0.2, 0.0], estimate=estimate, signal_and_noise=prior.signal_and_noise)
    truth = prior.means[-1] + 2.5 * (prior.means[1] - prior.means[-1])
    torch.testing.assert_close(target, truth.expand_as(z), rtol=0, atol=1e-5)
    assert [round(level, 4) for _, level in prior.seen] == [0.8, 0.6, 0.4, 0.2]
    # DDIM keeps the noise it started with: at every level z_t = alpha x0 + sigma eps for one eps.
    noises = []
    for noisy, level in prior.seen[1:]:
        alpha, sigma = prior.signal_and_noise(level)
        noises.append((noisy - alpha * truth) / sigma)
    for noise in noises[1:]:
        torch.testing.assert_close(noise, noises[0], rtol=0, atol=1e-4)


def test_the_surrogate_has_the_asked_gradient_per_view() -> None:
    z, wish = latents().requires_grad_(), latents() + 1
    (gradient,) = torch.autograd.grad(surrogate(z, wish), z)
    torch.testing.assert_close(gradient, wish / 2)


def test_without_a_negative_prompt_the_null_text_takes_its_place() -> None:
    texts = embed_texts(KnownPrior(), "a dog walks", "")
    assert torch.equal(texts.unwanted, NULL) and torch.equal(texts.null, NULL) and torch.equal(texts.wanted, WANTED)
    assert torch.equal(embed_texts(KnownPrior(), "a dog walks", "bad").unwanted, UNWANTED)


@pytest.mark.parametrize("form", ["sds", "csd", "flow"])
def test_guidance_holds_no_gradient_and_leaves_the_latents_alone(form) -> None:
    z = latents().requires_grad_()
    before = z.detach().clone()
    gradient = guide(KnownPrior(), z, TEXTS, form=form, level=0.5, scale=2.0, generator=random())
    assert not gradient.requires_grad and gradient.shape == z.shape and torch.equal(z.detach(), before)
