"""The validators by name, each with a sentence and with what real motion does."""

from collections.abc import Callable
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from jigdoll.validators.balance import balance
from jigdoll.validators.body import PosedBody, ValidatedBody
from jigdoll.validators.joints import hyperextension, limits, twist
from jigdoll.validators.skin import collapse, ground, self_contact, stretch


@dataclass(frozen=True)
class Validator:
    """One thing that may be wrong with a pose."""

    name: str
    find: Callable[[ValidatedBody, PosedBody], Float[Tensor, "frames joints"]]
    """How wrong it is at each joint in each frame: zero where nothing is, differentiable."""
    unit: str
    tolerance: float
    """What real motion does, on every body: 95 % of the frames of artists' clips stay below it (docs/validators.md)."""
    sentence: str


VALIDATORS: tuple[Validator, ...] = (
    Validator("self_contact", self_contact, "body lengths", 0.05, "Skin is inside the flesh of another part."),
    Validator("hyperextension", hyperextension, "rad", 0.05, "A knee, an elbow or a wing is folded the wrong way."),
    Validator("twist", twist, "rad", 0.5, "A bone is turned about itself further than its joint allows."),
    Validator("stretch", stretch, "log", 0.18, "Skin is drawn out."),
    Validator(
        "collapse", collapse, "share", 0.22, "Skin around a joint has fallen in, as a twisted sweet's paper does."
    ),
    Validator("ground", ground, "body lengths", 0.07, "Skin is below the ground."),
    Validator("balance", balance, "body lengths", 0.25, "The body stands and would fall over."),
    Validator("limits", limits, "rad", 1.0, "A joint is turned beyond its limits."),
)
"""To add a validator, write a function of (ValidatedBody, PosedBody) and a row here; whoever lists them shows it."""
