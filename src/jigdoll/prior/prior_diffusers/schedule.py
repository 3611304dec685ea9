"""Noise levels, and the clean video behind what a model predicts: x_t = alpha x0 + sigma epsilon for every family."""

import math
from dataclasses import dataclass
from typing import Any, Literal

from jaxtyping import Float
from torch import Tensor

from jigdoll.errors import JigdollError

Prediction = Literal["v", "epsilon", "flow"]
SMALLEST_SIGNAL = 1e-3
"""Below this alpha, noise that a model predicts says nothing about the clean video: it would be divided by alpha."""


@dataclass(frozen=True)
class Schedule:
    """How much signal and noise a model sees at a level, and what it calls that level."""

    prediction: Prediction
    steps: int
    """Number of timesteps that the model was trained on."""
    alphas_squared: tuple[float, ...] | None
    """Share of the signal's variance per timestep (the paper's alpha_t); None for flow matching, a straight line."""

    def timestep(self, level: float) -> float:
        """The model's own name of a level: an index for v and epsilon, a real number for flow."""
        if not 0 <= level <= 1:
            raise JigdollError(f"a noise level lies in 0..1, from clean to noise; this one is {level:g}")
        return level * self.steps if self.alphas_squared is None else float(round(level * (self.steps - 1)))

    def signal_and_noise(self, level: float) -> tuple[float, float]:
        """The factors (alpha, sigma) of x_t = alpha x0 + sigma epsilon."""
        time = self.timestep(level)
        if self.alphas_squared is None:
            return 1 - level, level
        share = self.alphas_squared[int(time)]
        return math.sqrt(share), math.sqrt(1 - share)

    def clean(self, noisy: Float[Tensor, "*shape"], output: Float[Tensor, "*shape"], level: float) -> Tensor:
        """The clean latents that a model's output stands for.

        v (AKD appendix B; the main text drops the factor of v):   v = alpha eps - sigma x0 -> x0 = alpha x_t - sigma v
        flow:                                                      u = eps - x0             -> x0 = x_t - sigma u
        epsilon:                                                   x0 = (x_t - sigma eps) / alpha
        Only the last one divides, and it has no answer where a schedule ends in pure noise (zero terminal SNR).
        """
        alpha, sigma = self.signal_and_noise(level)
        match self.prediction:
            case "v":
                return alpha * noisy - sigma * output
            case "flow":
                return noisy - sigma * output
            case "epsilon":
                if alpha < SMALLEST_SIGNAL:
                    raise JigdollError(
                        f"at noise level {level:g} this epsilon model sees no signal (alpha = {alpha:.1e}), so that "
                        "its noise estimate says nothing about the clean video; use a lower level, such as 0.98"
                    )
                return (noisy - sigma * output) / alpha


def schedule_of(scheduler: Any, *, expected: Prediction, pipeline: str) -> Schedule:
    """Read a diffusers scheduler, and refuse one that contradicts what its model is known to predict.

    The classes' default is epsilon, so that a config which lost one line would turn a v-model's output into nonsense.
    """
    told = scheduler.config.get("prediction_type")
    flows = told == "flow_prediction" or (told is None and not hasattr(scheduler, "alphas_cumprod"))
    prediction = "flow" if flows else {"v_prediction": "v", "epsilon": "epsilon"}.get(str(told), str(told))
    if prediction != expected:
        raise JigdollError(
            f"{pipeline} predicts {expected}, but its scheduler {type(scheduler).__name__} is set to "
            f"{told or 'flow matching'}: mend prediction_type in scheduler/scheduler_config.json"
        )
    steps = int(scheduler.config.num_train_timesteps)
    if expected == "flow":
        return Schedule("flow", steps, None)
    shares = scheduler.alphas_cumprod.double().clamp(0, 1)
    return Schedule(expected, steps, tuple(shares.tolist()))
