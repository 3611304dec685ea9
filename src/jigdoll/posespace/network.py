"""The learned pose model: a pose space that is asked about bodies."""

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.posespace.draft import DraftOptions, draft
from jigdoll.posespace.project import project
from jigdoll.posespace.rigged import Body, body_of, pose_array, to_poses
from jigdoll.posespace.space import PoseSpace, SampleOptions
from jigdoll.rig.anatomy import Anatomy
from jigdoll.types import Motion, Pose, Request


class NetworkPoseModel:
    """Poses and clips as real bodies make them; an implementation of `protocols.PoseModel`."""

    def __init__(self, space: PoseSpace) -> None:
        self.space = space

    def sample(self, anatomy: Anatomy, *, words: str | None = None, count: int = 1, seed: int = 0) -> Pose:
        """Diverse poses, free or by words."""
        return sample_poses(self.space, body_of(anatomy), words=words, count=count, seed=seed)

    def draft(
        self, request: Request, anatomy: Anatomy, *, seconds: float | None = None, fps: float = 30.0, seed: int = 0
    ) -> Motion:
        """The sentence as a clip."""
        return draft(self.space, body_of(anatomy), request, DraftOptions(seconds=seconds, fps=fps, seed=seed))

    def project(self, anatomy: Anatomy, motion: Motion, *, strength: float = 0.3, seed: int = 0) -> Motion:
        """The nearest natural clip."""
        return project(self.space, body_of(anatomy), motion, strength=strength, seed=seed)

    def score(self, anatomy: Anatomy, pose: Pose) -> Float[Tensor, " frames"]:
        """How far each pose is from what is natural; differentiable."""
        body = body_of(anatomy)
        return self.space.score_poses(body.figure, pose_array(body, pose).transpose(0, 1), self.space.words(None))


def sample_poses(
    space: PoseSpace,
    body: Body,
    *,
    words: str | None = None,
    count: int = 1,
    seed: int = 0,
    options: SampleOptions = SampleOptions(),
) -> Pose:
    """Poses drawn from the pose space, on the joints of a body."""
    generator = torch.Generator().manual_seed(seed)
    values = space.draw([body.figure] * count, 1, space.words(words, count), generator=generator, options=options)
    return to_poses(body, values[:, :, 0].numpy())
