"""What every pose model must do, whatever is behind it: one check for all implementations of the socket."""

import torch

from jigdoll.language.read import read
from jigdoll.protocols import PoseModel
from jigdoll.rig.anatomy import Anatomy
from jigdoll.types import Motion, Pose


def check_pose_model(model: PoseModel, anatomy: Anatomy) -> None:
    """Assert the whole contract of `PoseModel` on one body."""
    assert isinstance(model, PoseModel)
    joints = len(anatomy.skeleton)
    state = torch.random.get_rng_state()
    poses = model.sample(anatomy, count=3, seed=1)
    assert poses.rotations.shape == (3, joints, 4) and poses.root.shape == (3, 3)
    assert torch.allclose(poses.rotations.norm(dim=-1), torch.ones(3, joints), atol=1e-4)
    assert torch.equal(poses.rotations, model.sample(anatomy, count=3, seed=1).rotations)
    assert not torch.allclose(poses.rotations, model.sample(anatomy, count=3, seed=2).rotations)
    clip = model.draft(read("a fox walks"), anatomy, seconds=1.0, fps=30.0, seed=0)
    assert len(clip) == 31 and clip.fps == 30.0 and clip.pose.rotations.shape[1] == joints
    cleaned = model.project(anatomy, clip, strength=0.2)
    assert len(cleaned) == len(clip) and cleaned.fps == clip.fps
    assert bool(cleaned.pose.rotations.isfinite().all())
    _check_score(model, anatomy, poses, clip)
    assert torch.equal(state, torch.random.get_rng_state()), "a pose model must not touch the global dice"


def _check_score(model: PoseModel, anatomy: Anatomy, poses: Pose, clip: Motion) -> None:
    rotations = poses.rotations.clone().requires_grad_(True)
    score = model.score(anatomy, Pose(poses.root, rotations))
    assert score.shape == (3,) and bool((score >= 0).all())
    wild = Pose(clip.pose.root[:1], torch.nn.functional.normalize(_dice(len(anatomy.skeleton)), dim=-1))
    bad = Pose(wild.root, wild.rotations.clone().requires_grad_(True))
    values = model.score(anatomy, bad)
    assert float(values[0].detach()) > 0
    (gradient,) = torch.autograd.grad(values.sum(), bad.rotations)
    assert bool(gradient.isfinite().all()) and float(gradient.abs().max()) > 0


def _dice(joints: int) -> torch.Tensor:
    return torch.randn(1, joints, 4, generator=torch.Generator().manual_seed(0))
