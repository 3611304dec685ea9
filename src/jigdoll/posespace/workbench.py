"""A character on the workbench of the pose space: open once, then pose, solve, fill in, clean up, check."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.errors import JigdollError
from jigdoll.language.read import read
from jigdoll.posespace.draft import DraftOptions, draft
from jigdoll.posespace.handles import Handle, handle_joints
from jigdoll.posespace.inbetween import inbetween, walk
from jigdoll.posespace.network import NetworkPoseModel, sample_poses
from jigdoll.posespace.plain import PlainPoseModel
from jigdoll.posespace.project import project, score_motion
from jigdoll.posespace.rigged import Body, body_of
from jigdoll.posespace.solve import Solved, solve
from jigdoll.posespace.space import PoseSpace
from jigdoll.posespace.weights import has_weights, open_space
from jigdoll.protocols import PoseModel
from jigdoll.rig.anatomy import anatomy_of
from jigdoll.rig.reparent import Reparented, reparent, to_original, to_reparented
from jigdoll.types import Motion, Pose, RiggedAsset
from jigdoll.validators import check as validate


@dataclass(frozen=True, eq=False)
class PoseCheck:
    """How natural a clip is and what is wrong with it, frame by frame."""

    score: Float[Tensor, " frames"] | None
    """None without weights."""
    validators: dict[str, Float[Tensor, " frames"]]


@dataclass(frozen=True, eq=False)
class Workbench:
    """A character's working copy, and a pose space that is asked about it. Motions are the artist's own, in and out."""

    asset: RiggedAsset
    reparented: Reparented
    body: Body
    space: PoseSpace | None
    """None where no weights ship: then the plain pose model stands in where it can."""

    @cached_property
    def model(self) -> PoseModel:
        """The pose model that is there: learned, or plain."""
        return PlainPoseModel() if self.space is None else NetworkPoseModel(self.space)

    @property
    def handles(self) -> dict[str, str]:
        """The names of the body's handles, and their joints' names."""
        names = self.body.anatomy.skeleton.names
        return {name: names[joint] for name, joint in handle_joints(self.body).items()}

    def sample(self, words: str | None = None, *, count: int = 8, seed: int = 0) -> Motion:
        """Poses, one per frame at one frame per second."""
        if not 1 <= count <= 4096:
            raise JigdollError(f"{count} poses cannot be drawn; ask for 1 to 4096")
        if self.space is None:
            pose = self.model.sample(self.body.anatomy, words=words, count=count, seed=seed)
        else:
            pose = sample_poses(self.space, self.body, words=words, count=count, seed=seed)
        return self._out(Motion(pose, 1.0, "poses"))

    def solve(
        self,
        handles: Sequence[Handle],
        *,
        base: Motion | None = None,
        words: str | None = None,
        keep: bool = False,
        seed: int = 0,
    ) -> tuple[Motion, Solved]:
        """A pose with the handles where they have to be, as a clip of one frame, and how far each is off."""
        start = None if base is None else self._in(base).pose[0]
        found = solve(self._space(), self.body, handles, base=start, words=words, keep=keep, seed=seed)
        return self._out(Motion(found.pose[None], 30.0, "posed")), found

    def inbetween(self, keys: Motion, frames: Sequence[int], *, words: str | None = None, seed: int = 0) -> Motion:
        """The clip through those frames of `keys` that are named, exactly; the others are made anew."""
        inner = self._in(keys)
        wrong = [frame for frame in frames if not 0 <= frame < len(inner)]
        if wrong:
            raise JigdollError(f"frame {wrong[0]} is no key: the clip has {len(inner)} frames")
        poses = {frame: inner.pose[frame] for frame in sorted(set(frames))}
        return self._out(inbetween(self._space(), self.body, poses, fps=keys.fps, words=words, seed=seed))

    def walk(self, first: Motion, second: Motion, *, frames: int = 24, fps: float = 30.0) -> Motion:
        """From the first frame of one clip to the first frame of another through the pose space."""
        a, b = self._in(first).pose[0], self._in(second).pose[0]
        return self._out(walk(self._space(), self.body, a, b, frames=frames, fps=fps))

    def draft(self, prompt: str, options: DraftOptions = DraftOptions()) -> Motion:
        """A sentence as a clip."""
        request = read(prompt)
        if self.space is None:
            made = self.model.draft(
                request, self.body.anatomy, seconds=options.seconds, fps=options.fps, seed=options.seed
            )
        else:
            made = draft(self.space, self.body, request, options)
        return self._out(made)

    def project(self, motion: Motion, *, strength: float = 0.3, missing: Sequence[str] = (), seed: int = 0) -> Motion:
        """The nearest natural clip."""
        inner = self._in(motion)
        if self.space is None:
            return self._out(self.model.project(self.body.anatomy, inner, strength=strength, seed=seed))
        return self._out(project(self.space, self.body, inner, strength=strength, missing=missing, seed=seed))

    def check(self, motion: Motion) -> PoseCheck:
        """How natural a clip is, and what the validators say."""
        inner = self._in(motion)
        with torch.no_grad():
            score = None if self.space is None else score_motion(self.space, self.body, inner)
            return PoseCheck(score, validate(self.body.anatomy, inner))

    def _space(self) -> PoseSpace:
        if self.space is None:
            raise JigdollError("no weights of the pose space are installed; name a file with --weights or train some")
        return self.space

    def _in(self, motion: Motion) -> Motion:
        """A motion of the artist's rig on the working copy; what limb space cannot hold is left out."""
        inner = to_reparented(self.reparented, motion)
        return replace(inner, pose=Pose(inner.pose.root, inner.pose.rotations))

    def _out(self, motion: Motion) -> Motion:
        return to_original(self.reparented, motion)


def open_workbench(asset: RiggedAsset, *, weights: Path | PoseSpace | None = None) -> Workbench:
    """Put a character on the workbench; without weights the plain pose model stands in."""
    reparented = reparent(asset)
    body = body_of(anatomy_of(reparented.asset))
    if isinstance(weights, PoseSpace):
        space = weights
    else:
        space = open_space(weights) if weights is not None or has_weights() else None
    return Workbench(asset, reparented, body, space)
