"""Inverse kinematics by projection: the likeliest pose whose handles are where they have to be.

While the pose space denoises, every clean estimate is bent so that the ends of limbs come to the handles; then the
joints are bent a little more until the handles are hit.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.kinematics import forward
from jigdoll.math.rotations import matrix_to_quaternion, quaternion_to_matrix, slerp
from jigdoll.posespace.figure import Sticks, pelvis_heights, stack_figures, stick_places
from jigdoll.posespace.handles import CLOSE, Handle, handle_gaps, joint_of, reach_handles
from jigdoll.posespace.layout import EXTRA
from jigdoll.posespace.rigged import Body, natural_pose, pose_array, to_motion
from jigdoll.posespace.space import NOISIEST, Given, PoseSpace, Project, SampleOptions
from jigdoll.posespace.windows import Units
from jigdoll.types import Pose

SOLVE_STEPS = 3
DAMPING = 0.02
KEEP_LEVEL = 0.6
"""The noise under which a base pose is kept where it can be."""


@dataclass(frozen=True, eq=False)
class Solved:
    """A pose and how far its handles are from where they have to be."""

    pose: Pose
    gaps: dict[str, float]
    """[m]."""


def solve(
    space: PoseSpace,
    body: Body,
    handles: Sequence[Handle],
    *,
    base: Pose | None = None,
    words: str | None = None,
    keep: bool = False,
    steps: int = SOLVE_STEPS,
    seed: int = 0,
) -> Solved:
    """The pose with the handles at their targets, as natural as the pose space knows.

    `base` says where the hips are and where they face; without it they are where the rest pose has them, as high as
    suits the handles. With `keep` the result also stays near the base pose. Where handles cannot be hit otherwise, the
    whole body moves. The likeliest pose (seed 0) is held against the body as it carries itself, bent to the handles:
    the answer lies between the two, nearer to the one that the pose space finds more natural.
    """
    held = base is not None
    base = base if base is not None else _rest(body)
    start = pose_array(body, base).detach()
    pelvis, heading = _stand(body, base)
    ends, counts = _ends(body, handles, pelvis, heading)
    options = SampleOptions(
        steps=steps, guidance=1.0, start=KEEP_LEVEL if keep else NOISIEST, spread=0.0 if seed == 0 else 1.0
    )
    given = _given(body, start, ends, counts, held=held)
    sticks = stack_figures([body.figure])
    project = end_projection(space.units, sticks, ends, counts)
    clip = space.draw(
        [body.figure], 1, space.words(words), generator=torch.Generator().manual_seed(seed), given=[given],
        options=options, start=start[None] if keep else None, project=project if bool(counts.any()) else None,
    )  # fmt: skip
    pose = reach_handles(body, place_like(body, clip[0], pelvis, heading), handles)
    if seed == 0 and held and not keep:
        calm = natural_pose(body).rotations
        calm[0] = base.rotations[0]
        pose = _weighed(space, body, pose, reach_handles(body, Pose(base.root, calm), handles), words)
        pose = reach_handles(body, pose, handles)
    wanted = [handle for handle in handles if handle.mode != "free"]
    if max(handle_gaps(body, pose, wanted).values(), default=0.0) > _near(body, handles):
        pose = reach_handles(body, pose, handles, root=True)
    return Solved(pose, handle_gaps(body, pose, handles))


def _weighed(space: PoseSpace, body: Body, one: Pose, other: Pose, words: str | None) -> Pose:
    """Between two poses, nearer to the one that the pose space finds more natural: their errors differ."""
    values = torch.cat([pose_array(body, pose).detach() for pose in (one, other)], 1).transpose(0, 1)
    mine, theirs = space.score_poses(body.figure, values, space.words(words)).square().tolist()
    share = mine / max(mine + theirs, 1e-12)
    turns = slerp(one.rotations, other.rotations, torch.full((len(one.rotations),), share))
    return Pose(one.root * (1 - share) + other.root * share, turns)


def end_projection(
    units: Units, sticks: Sticks, ends: Float[Tensor, "parts 3"], counts: Tensor, *, rounds: int = 1
) -> Project:
    """Bends a clean estimate of a pose so that ends of parts come to their targets: damped least squares on numbers.

    Targets are over the ground, seen from the pelvis' place on it [leg lengths].
    """
    parts = counts.nonzero()[:, 0]
    rows = 3 * len(parts)
    which, axis = parts.repeat_interleave(3), torch.arange(3).repeat(len(parts))
    many = Sticks(**{name: value.expand(rows, *value.shape[1:]) for name, value in vars(sticks).items()})
    target = ends[which, axis]
    pick = torch.arange(rows)

    def project(estimate: Tensor) -> Tensor:
        pose = estimate[:, :, :1].detach()
        for _ in range(rounds):
            free = pose.expand(rows, -1, -1, -1).clone().requires_grad_(True)
            with torch.enable_grad():
                raw = units.out_of(free, many)
                places = stick_places(many, raw).ends[:, :, 0]
                rise = pelvis_heights(many, raw[:, 0, 0, EXTRA.start + 2])
                found = places[pick, which, axis] + torch.where(axis == 1, rise, 0.0)
                J = torch.autograd.grad(found.sum(), free)[0].flatten(1)
            A = J @ J.T
            A = A + DAMPING * torch.eye(rows) * A.diagonal().mean().clamp_min(1e-6)
            step = J.T @ torch.linalg.solve(A, target - found.detach())
            pose = pose + step.reshape(pose.shape).clamp(-2, 2)
        return pose.expand_as(estimate)

    return project


def _near(body: Body, handles: Sequence[Handle]) -> float:
    """How near is near enough [m]."""
    return CLOSE * body.anatomy.body_length + max((handle.tolerance for handle in handles), default=0.0)


def _rest(body: Body) -> Pose:
    joints = len(body.anatomy.skeleton)
    return Pose(torch.zeros(3), torch.tensor([1.0, 0.0, 0.0, 0.0]).expand(joints, 4).clone())


def _stand(body: Body, pose: Pose) -> tuple[Float[np.ndarray, " 3"], float]:
    """Where the pelvis is over the ground [m] and where it faces [rad]."""
    T = forward(body.anatomy.skeleton, pose)[body.anatomy.pelvis].double().numpy()
    ahead = (T[:3, :3] @ body.anatomy.R_neutral[body.anatomy.pelvis].T)[:, 2]
    return T[:3, 3] * [1, 0, 1], float(np.arctan2(ahead[0], ahead[2]))


def _ends(
    body: Body, handles: Sequence[Handle], pelvis: np.ndarray, heading: float
) -> tuple[Float[Tensor, "parts 3"], Tensor]:
    """The targets of those handles that are ends of parts."""
    anatomy, figure = body.anatomy, body.figure
    lead = len(figure) - len(figure.limbs)
    joints = {parts.end: lead + i for i, parts in enumerate(anatomy.parts[: len(figure.limbs)])}
    if len(anatomy.trunk) > 1:
        joints[anatomy.trunk[-1]] = 0
    ends, counts = torch.zeros(len(figure), 3), torch.zeros(len(figure), dtype=torch.bool)
    c, s = np.cos(heading), np.sin(heading)
    turn = np.array([[c, 0, -s], [0, 1, 0], [s, 0, c]])
    for handle in handles:
        joint = joint_of(body, handle.name)
        if handle.mode != "free" and joint in joints:
            way = turn @ (np.array(handle.target) - pelvis) / body.unit
            ends[joints[joint]] = torch.from_numpy(way).float()
            counts[joints[joint]] = True
    return ends, counts


def _given(body: Body, start: Tensor, ends: Tensor, counts: Tensor, *, held: bool) -> Given:
    """The handles as the network is told them, seen from the pelvis; and the height of hips that are held."""
    none = torch.zeros(len(body.figure), 1, dtype=torch.bool)
    root = none.clone()
    root[0] = held
    seen = ends.clone()
    seen[:, 1] -= body.figure.hip + (float(start[0, 0, EXTRA.start + 2]) - 1) * body.figure.rise
    return Given(start, none, root, seen[:, None], counts[:, None])


def place_like(body: Body, clip: Float[Tensor, "parts frames channels"], pelvis: np.ndarray, heading: float) -> Pose:
    """A single pose on the joints, its pelvis over this place and facing this way."""
    motion = to_motion(body, clip.numpy(), lock=False)
    pose = motion.pose[0]
    skeleton = body.anatomy.skeleton
    rest = skeleton.T_parent_joint[0].double()
    c, s = np.cos(heading), np.sin(heading)
    Y = torch.tensor([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]], dtype=torch.double)
    first = rest[:3, :3].T @ Y @ rest[:3, :3] @ quaternion_to_matrix(pose.rotations[0].double())
    rotations = pose.rotations.clone()
    rotations[0] = matrix_to_quaternion(first).to(rotations)
    turned = Pose(pose.root, rotations)
    at = forward(skeleton, turned)[body.anatomy.pelvis, :3, 3].double()
    move = torch.from_numpy(np.asarray(pelvis)) - at
    move[1] = 0.0
    before = forward(skeleton, pose)[body.anatomy.pelvis, 1, 3].double()
    move[1] = before - at[1]
    return Pose((turned.root.double() + move).to(pose.root), rotations)
