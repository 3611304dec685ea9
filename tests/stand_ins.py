"""Small characters and helpers that several rooms test with."""

import contextlib
import io
import sys
from dataclasses import dataclass

import torch

from jigdoll.cli import main
from jigdoll.kinematics import make_skeleton
from jigdoll.types import Mesh, RiggedAsset, Weights


def two_link_arm(bones: int = 3) -> RiggedAsset:
    """A strip of quads along +Y, one joint a metre."""
    T = torch.eye(4).repeat(bones, 1, 1)
    T[1:, 1, 3] = 1.0
    skeleton = make_skeleton(tuple(f"bone_{i}" for i in range(bones)), tuple(range(-1, bones - 1)), T)
    heights = torch.arange(bones + 1).float()
    vertices = torch.cat([torch.stack([torch.full_like(heights, x), heights, 0 * heights], 1) for x in (0.0, 0.5)])
    n = bones + 1
    faces = torch.tensor([f for i in range(bones) for f in ([i, n + i, i + 1], [i + 1, n + i, n + i + 1])])
    joints = torch.arange(n).clamp(max=bones - 1).repeat(2)[:, None]
    weights = Weights(joints, torch.ones(2 * n, 1))
    colors = torch.rand(2 * n, 3, generator=torch.Generator().manual_seed(0))
    return RiggedAsset("arm", Mesh(vertices, faces, colors), skeleton, weights)


@dataclass(frozen=True)
class Run:
    returncode: int
    stdout: str
    stderr: str


def jigdoll(*words: object) -> Run:
    """Run a verb in this process, as the script does."""
    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["jigdoll", *map(str, words)]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
    finally:
        sys.argv = before
    return Run(code, out.getvalue(), err.getvalue())
