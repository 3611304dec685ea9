"""The sockets: what can be swapped. You import the implementation that you plug in; there is no registry."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.types import (
    Camera,
    Gaussians,
    Job,
    Motion,
    Outcome,
    Pose,
    PriorDefaults,
    Rendering,
    Request,
    RiggedAsset,
)


@runtime_checkable
class Progress(Protocol):
    """The one way in which long work speaks: how much is done, 0..1, and what it is at."""

    def __call__(self, fraction: float, what: str, /) -> None:
        """Told now and then, in this order of arguments, from the thread that works; raise to stop the work."""
        ...


def quiet(fraction: float, what: str) -> None:
    """The progress that nobody watches."""


def part(progress: Progress, start: float, end: float) -> Progress:
    """The progress of a piece of the work, as a stretch of the whole."""
    return lambda fraction, what: progress(start + (end - start) * fraction, what)


@runtime_checkable
class Rasterizer(Protocol):
    """Draws splats; differentiable in every field of `Gaussians`."""

    def __call__(self, gaussians: Gaussians, camera: Camera) -> Rendering:
        """Render each scene of the batch with the camera of the same batch place."""
        ...


@runtime_checkable
class VideoPrior(Protocol):
    """A text-to-video diffusion model, spoken to through its estimate of the clean video.

    Whatever the model predicts (v, epsilon, flow), `denoise` returns clean latents, so that guidance is arithmetic on
    clean estimates. A noise level is the model's own diffusion time in 0..1, from clean to noise.
    """

    @property
    def device(self) -> torch.device:
        """Where the model is: videos, latents and texts live there, and so does the motion that is distilled."""
        ...

    @property
    def defaults(self) -> PriorDefaults:
        """What the model wants to be shown, and how hard to guide with it."""
        ...

    def texts(self, request: Request) -> tuple[str, str]:
        """What is wanted and what is not, in words that the model understands best; both go to `embed`."""
        ...

    def embed(self, prompt: str) -> Tensor:
        """Encode a prompt once; the result goes to `denoise`. The empty prompt is the null text."""
        ...

    def encode(self, video: Float[Tensor, "views frames height width 3"]) -> Float[Tensor, "views ..."]:
        """Pixels in 0..1 to the model's latents, differentiable."""
        ...

    def signal_and_noise(self, level: float) -> tuple[float, float]:
        """The factors (alpha, sigma) of the clean latents and of the noise at a level."""
        ...

    def noise(self, latents: Tensor, level: float, generator: torch.Generator) -> Tensor:
        """Latents at a noise level: alpha x0 + sigma epsilon, with unit Gaussian epsilon."""
        ...

    def denoise(
        self,
        noisy: Tensor,
        level: float,
        texts: Sequence[Tensor],
        reference_image: Float[Tensor, "views height width 3"] | None = None,
    ) -> list[Tensor]:
        """One estimate of the clean latents per text, without gradient.

        `reference_image` shows in 0..1 who moves, at rest where the video begins; a model that knows only words
        ignores it.
        """
        ...


@runtime_checkable
class PhysicsEngine(Protocol):
    """Steps articulated rigid bodies; differentiable in the state and in the controls where `clip` has a meaning.

    A state is one flat tensor that only its engine reads; `rows` gives what all engines know.
    """

    clip: float | None
    """Largest norm of a gradient that leaves a chunk backwards; none does not clip."""

    def start(self, T_world_body: Float[Tensor, "bodies 4 4"], twists: Float[Tensor, "bodies 6"]) -> Tensor:
        """The state of bodies in these places, with velocities of their centres of mass and angular velocities."""
        ...

    def rows(self, state: Tensor) -> Float[Tensor, "*batch bodies 13"]:
        """Per body: place of its frame [m], quaternion wxyz, velocity of the centre of mass, angular velocity."""
        ...

    def set_help(self, *, upright: float = 1.0, heading: float = 1.0) -> None:
        """Scale the virtual torque that keeps the first body upright, and its share about the vertical."""
        ...

    def step(self, state: Tensor, controls: Float[Tensor, "substeps dofs"]) -> Tensor:
        """Advance by a chunk of substeps: 7 numbers for the first body's wished frame, 3 angles per joint."""
        ...


@runtime_checkable
class TextTo3D(Protocol):
    """Makes a character from words."""

    def __call__(self, prompt: str, *, seed: int = 0) -> RiggedAsset:
        """The same prompt and seed give the same character."""
        ...


@runtime_checkable
class TextEncoder(Protocol):
    """Turns phrases into vectors whose dot product says how alike their meanings are; small, shipped, no download."""

    def __call__(self, phrases: Sequence[str]) -> Float[Tensor, "phrases width"]:
        """One unit vector per phrase; the same phrase gives the same vector alone or among others."""
        ...


@runtime_checkable
class PoseModel(Protocol):
    """Knows which poses and clips a body makes; `anatomy` is the `rig.anatomy.Anatomy` of a working copy."""

    def sample(self, anatomy: Any, *, words: str | None = None, count: int = 1, seed: int = 0) -> Pose:
        """So many poses, free or by words; the same seed gives the same poses."""
        ...

    def draft(
        self, request: Request, anatomy: Any, *, seconds: float | None = None, fps: float = 30.0, seed: int = 0
    ) -> Motion:
        """A clip of what is asked for."""
        ...

    def project(self, anatomy: Any, motion: Motion, *, strength: float = 0.3, seed: int = 0) -> Motion:
        """The nearest clip that the model finds natural, with as many frames; strength 0 keeps most, 1 nothing."""
        ...

    def score(self, anatomy: Any, pose: Pose) -> Float[Tensor, " frames"]:
        """How far each pose is from what is natural, 0 at best; differentiable in the rotations."""
        ...


@runtime_checkable
class JobHandle(Protocol):
    """A job that was given to a runner."""

    @property
    def job(self) -> Job:
        """What was submitted; its results are in `job.folder` once it is done."""
        ...

    def progress(self) -> tuple[float, str]:
        """The last that the job said: how much is done, 0..1, and what it is at."""
        ...

    def outcome(self, timeout: float = 0.0) -> Outcome | None:
        """How it ended, None if it has not after so many seconds."""
        ...

    def cancel(self) -> None:
        """End it, running or not; it ends as cancelled, unless it was done before."""
        ...


@runtime_checkable
class JobRunner(Protocol):
    """Carries out jobs, each in a process of its own: one that dies, hangs or eats all memory harms no other."""

    @property
    def slots(self) -> int:
        """How many jobs of one processor run at the same time."""
        ...

    def submit(self, job: Job) -> JobHandle:
        """Queue a job; one that no machine here could ever hold ends as failed and says so."""
        ...

    def close(self) -> None:
        """Cancel what is left and end all processes."""
        ...
