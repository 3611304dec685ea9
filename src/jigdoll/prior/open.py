"""From the name that a person types to a video prior."""

from pathlib import Path

from jigdoll.prior.pocket.prior import open_pocket
from jigdoll.protocols import VideoPrior


def open_prior(prior: str | VideoPrior) -> VideoPrior:
    """The prior of that name: pocket, weights of your own for it, a large model or its folder; or the prior itself."""
    if not isinstance(prior, str):
        return prior
    if prior == "pocket":
        return open_pocket()
    if Path(prior).suffix == ".safetensors":
        return open_pocket(Path(prior))
    from jigdoll.prior.prior_diffusers import open_prior as open_large

    return open_large(prior)
