"""Automatic rigging: from a bare mesh to a skeleton whose joints have names, without a network.

Three steps, each a function whose result a person can look at and correct before the next:

1. `find_frame`: the mirror plane, up and forward (overrule with `up`, `forward`);
2. `find_curve`: the flesh as voxels, its extremities and centre lines;
3. `find_skeleton`: which extremity is what (overrule with `template`), and joints in the flesh (`joints`, `markers`).

`autorig` runs all three.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.asset.orientation import FrameGuess, guess_frame
from jigdoll.errors import RigError
from jigdoll.kinematics import make_skeleton
from jigdoll.math.transforms import rigid_inverse
from jigdoll.protocols import Progress, quiet
from jigdoll.rig.autorig.bones import PlacedJoint
from jigdoll.rig.autorig.curve import Curve, trace_curve
from jigdoll.rig.autorig.place import place_joints
from jigdoll.rig.autorig.solid import Solid, build_solid, check_mesh
from jigdoll.rig.autorig.template import BodyPlan, fit_template
from jigdoll.rig.limbs import find_limbs
from jigdoll.rig.limits import with_default_limits
from jigdoll.types import Limb, Mesh, Skeleton

Marker = Sequence[float | int] | Float[Tensor, "3"]


@dataclass(frozen=True, eq=False)
class AutoRig:
    """A skeleton for a mesh, and every step that led to it."""

    frame: FrameGuess
    solid: Solid
    curve: Curve
    plan: BodyPlan
    skeleton: Skeleton
    """In the mesh's own frame, rest rotations all the identity."""
    limbs: tuple[Limb, ...]

    @property
    def summary(self) -> str:
        """One line in words: the body plan and what was found."""
        found = [
            f"{2 * len(self.plan.legs)} legs" if self.plan.legs else "",
            "2 arms" if self.plan.arms else "",
            "2 wings" if self.plan.wings else "",
            "a head" if self.plan.head else "",
            "a tail" if self.plan.tail else "",
        ]
        return f"{self.plan.template}: {', '.join(part for part in found if part)}; {len(self.skeleton)} joints"


def autorig(
    mesh: Mesh,
    *,
    template: str = "auto",
    joints: int | None = None,
    markers: Mapping[str, Marker] | None = None,
    up: Sequence[float | int] | None = None,
    forward: Sequence[float | int] | None = None,
    progress: Progress = quiet,
) -> AutoRig:
    """Rig a bare mesh.

    `template` names the body plan where the guess is wrong, `joints` is the wished number of joints, `markers` pins
    joints (by name, in the mesh's own frame) where a hand puts them.
    """
    progress(0.0, "finding up, forward and the mirror plane")
    frame = find_frame(mesh, up=up, forward=forward)
    progress(0.2, "tracing the curve skeleton")
    solid, curve = find_curve(mesh, frame)
    progress(0.8, "fitting a body plan")
    rig = find_skeleton(frame, solid, curve, mesh=mesh, template=template, joints=joints, markers=markers)
    progress(1.0, rig.summary)
    return rig


def find_frame(
    mesh: Mesh, *, up: Sequence[float | int] | None = None, forward: Sequence[float | int] | None = None
) -> FrameGuess:
    """Step 1: how the character stands in its file."""
    check_mesh(mesh)
    return guess_frame(mesh.vertices, mesh.faces, up=up, forward=forward)


def find_curve(mesh: Mesh, frame: FrameGuess) -> tuple[Solid, Curve]:
    """Step 2: the flesh, its extremities and the centre lines that lead to them, in the rig frame."""
    solid = build_solid(mesh, frame)
    return solid, trace_curve(solid)


def find_skeleton(
    frame: FrameGuess,
    solid: Solid,
    curve: Curve,
    *,
    mesh: Mesh,
    template: str = "auto",
    joints: int | None = None,
    markers: Mapping[str, Marker] | None = None,
) -> AutoRig:
    """Step 3: name the limbs and put joints into the flesh."""
    plan = fit_template(solid, curve, template=template)
    placed = place_joints(solid, curve, plan, joints=joints)
    T_world_rig = _rig_to_world(mesh, frame)
    names = tuple(joint.name for joint in placed)
    points = torch.tensor([joint.point for joint in placed], dtype=torch.float64)
    points = points @ T_world_rig[:3, :3].T + T_world_rig[:3, 3]
    points = _pinned(names, points, markers or {}, frame)
    skeleton = _skeleton(placed, points)
    limbs = find_limbs(skeleton)
    return AutoRig(frame, solid, curve, plan, with_default_limits(skeleton, limbs), limbs)


def _rig_to_world(mesh: Mesh, frame: FrameGuess) -> Float[Tensor, "4 4"]:
    """From the rig frame (feet at y = 0) to the mesh's own frame."""
    T = frame.T_world_file.double()
    lowest = (mesh.vertices.detach().cpu().double() @ T[:3, :3].T + T[:3, 3])[:, 1].min()
    T = T.clone()
    T[1, 3] -= lowest
    return rigid_inverse(T)


def _pinned(
    names: tuple[str, ...], points: Float[Tensor, "joints 3"], markers: Mapping[str, Marker], frame: FrameGuess
) -> Float[Tensor, "joints 3"]:
    """Move joints to their markers; a marker of one side also moves the other side where the mesh is symmetric."""
    points = points.clone()
    for name, marker in markers.items():
        if name not in names:
            raise RigError(f"a marker is called {name!r}, but this rig has no such joint; it has {', '.join(names)}")
        point = torch.as_tensor(np.asarray(marker, dtype=np.float64))
        if point.shape != (3,) or not bool(torch.isfinite(point).all()):
            raise RigError(f"the marker {name!r} needs three numbers, x y z, not {marker!r}")
        points[names.index(name)] = point
        other = _other_side(name)
        if other is not None and other in names and other not in markers and frame.is_symmetric:
            left, origin = frame.left.double(), frame.origin.double()
            points[names.index(other)] = point - 2 * ((point - origin) @ left) * left
    return points


def _other_side(name: str) -> str | None:
    for mine, other in (("left_", "right_"), ("right_", "left_")):
        if name.startswith(mine):
            return other + name.removeprefix(mine)
    return None


def _skeleton(placed: tuple[PlacedJoint, ...], points: Float[Tensor, "joints 3"]) -> Skeleton:
    """Joints at points, with identity rest rotations."""
    names = tuple(joint.name for joint in placed)
    parents = tuple(-1 if joint.parent is None else names.index(joint.parent) for joint in placed)
    T_parent_joint = torch.eye(4).repeat(len(names), 1, 1)
    offsets = points.clone()
    offsets[1:] -= points[list(parents[1:])]
    T_parent_joint[:, :3, 3] = offsets.float()
    return make_skeleton(names, parents, T_parent_joint)
