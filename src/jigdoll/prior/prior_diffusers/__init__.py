"""The big latent video models of diffusers (CogVideoX, Wan, LTX, ModelScope, AnimateDiff) as a video prior.

`open_prior` takes a short name, a folder or a hub id. This folder is the only place that imports diffusers.
"""

from jigdoll.prior.prior_diffusers.adapter import DiffusersPrior
from jigdoll.prior.prior_diffusers.catalogue import CATALOGUE, Entry, open_prior

__all__ = ["CATALOGUE", "DiffusersPrior", "Entry", "open_prior"]
