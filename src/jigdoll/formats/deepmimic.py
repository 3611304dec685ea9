"""DeepMimic's motion files: JSON with one row of numbers per frame for a humanoid of fixed measures.

The humanoid faces +X with +Y up in its files; it is turned to face +Z here. A row holds the frame's duration [s], the
root's place [m] and rotation, then a quaternion (wxyz) for each ball joint and an angle about Z for each hinge.
"""

import json
import os
from pathlib import Path

import numpy as np
import torch

from jigdoll.errors import FileFormatError
from jigdoll.formats.files import read_limited
from jigdoll.formats.joints import free_skeleton
from jigdoll.math.rotations import axis_angle_to_quaternion
from jigdoll.math.transforms import translation
from jigdoll.types import Motion, Pose, Skeleton

MAX_BYTES = 64 * 1024**2

# Name, parent, place in the parent's frame [m] (x ahead, y up, z to the right), kind.
_BODY = (
    ("pelvis", -1, (0, 0, 0), "ball"),
    ("chest", 0, (0, 0.236151, 0), "ball"),
    ("neck_1", 1, (0, 0.223894, 0), "ball"),
    ("head_tip", 2, (0, 0.28, 0), "tip"),
    ("right_hip", 0, (0, 0, 0.084887), "ball"),
    ("right_knee", 4, (0, -0.421546, 0), "hinge"),
    ("right_ankle", 5, (0, -0.409870, 0), "ball"),
    ("right_toe_tip", 6, (0.1335, -0.05, 0), "tip"),
    ("right_shoulder", 1, (-0.02405, 0.24350, 0.18311), "ball"),
    ("right_elbow", 8, (0, -0.274788, 0), "hinge"),
    ("right_wrist", 9, (0, -0.258947, 0), "tip"),
    ("left_hip", 0, (0, 0, -0.084887), "ball"),
    ("left_knee", 11, (0, -0.421546, 0), "hinge"),
    ("left_ankle", 12, (0, -0.409870, 0), "ball"),
    ("left_toe_tip", 13, (0.1335, -0.05, 0), "tip"),
    ("left_shoulder", 1, (-0.02405, 0.24350, -0.18311), "ball"),
    ("left_elbow", 15, (0, -0.274788, 0), "hinge"),
    ("left_wrist", 16, (0, -0.258947, 0), "tip"),
)
_HEIGHT = 0.421546 + 0.409870 + 0.05
"""From the soles to the pelvis at rest."""
_COLUMNS = 1 + 3 + sum({"ball": 4, "hinge": 1, "tip": 0}[kind] for *_, kind in _BODY)
_TURN = torch.tensor([[0.0, 0, -1], [0, 1, 0], [1, 0, 0]])
"""From the file's axes to ours: ahead is +Z, the right hand is at -X."""


def read(path: str | os.PathLike[str]) -> tuple[Skeleton, Motion]:
    """The humanoid and its motion, facing +Z."""
    path = Path(path)
    rows = _rows(path, read_limited(path, MAX_BYTES))
    rest = torch.tensor([place for _, _, place, _ in _BODY]) @ _TURN.T
    rest[0, 1] = _HEIGHT
    skeleton = free_skeleton([name for name, *_ in _BODY], [parent for _, parent, *_ in _BODY], translation(rest))
    rotations = torch.zeros(len(rows), len(_BODY), 4)
    rotations[..., 0] = 1
    column = 4
    axis = _TURN @ torch.tensor([0.0, 0, 1])
    for joint, (*_, kind) in enumerate(_BODY):
        if kind == "ball":
            q = rows[:, column : column + 4]
            rotations[:, joint] = torch.cat([q[:, :1], q[:, 1:] @ _TURN.T], -1)
            column += 4
        elif kind == "hinge":
            rotations[:, joint] = axis_angle_to_quaternion(axis, rows[:, column])
            column += 1
    norms = rotations.norm(dim=-1, keepdim=True)
    if bool(((norms - 1).abs() > 0.05).any()):
        raise FileFormatError(f"{path}: a rotation is no unit quaternion; the file is damaged")
    root = rows[:, 1:4] @ _TURN.T - rest[0]
    step = float(rows[:-1, 0].median()) if len(rows) > 1 else 1 / 30
    if not 1e-4 < step < 10:
        raise FileFormatError(f"{path}: frames of {step:g} s cannot be played; the file is damaged")
    fps = 1 / step
    fps = float(round(fps)) if abs(fps - round(fps)) < 1e-3 * fps else fps
    return skeleton, Motion(Pose(root, rotations / norms), fps, path.stem)


def _rows(path: Path, data: bytes) -> torch.Tensor:
    """The table of frames, checked."""
    try:
        content = json.loads(data)
        rows = np.array(content["Frames"], dtype=np.float64)
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError) as error:
        raise FileFormatError(f"{path}: no DeepMimic motion ({type(error).__name__}: {error})"[:400]) from error
    if rows.ndim != 2 or rows.shape[1] != _COLUMNS or len(rows) == 0:
        raise FileFormatError(f"{path}: frames should be rows of {_COLUMNS} numbers, not {rows.shape}; check the file")
    if not (np.abs(rows) < 1e6).all():
        raise FileFormatError(f"{path}: some numbers are NaN, infinite or absurd; the file is damaged")
    return torch.from_numpy(rows).float()
