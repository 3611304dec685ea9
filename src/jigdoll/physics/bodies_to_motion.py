"""What the simulated bodies did, as a clip of the skeleton."""

from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.kinematics import forward
from jigdoll.math.rotations import matrix_to_quaternion, quaternion_to_matrix, rotvec_to_quaternion
from jigdoll.physics.bodies import Bodies
from jigdoll.physics.reference import in_double
from jigdoll.types import Motion, Pose, Skeleton

REACHES = 5
"""Steps in which legs are bent to where their feet stood."""
STIFF = 1e-3
"""Damping of these steps: a straight leg does not fold for a hair."""


def to_motion(
    bodies: Bodies,
    skeleton: Skeleton,
    rows: Float[Tensor, "frames bodies 13"],
    detail: Motion,
    *,
    name: str | None = None,
    stiff_feet: bool = True,
) -> Motion:
    """The simulated bodies as a clip; joints without a body of their own keep what they do in `detail`.

    Only what is part of a foot does not bend (with `stiff_feet`): the simulation stood on it as it is at rest. Loaded
    joints give way by a hair in the simulation, which a skeleton cannot; the legs take that up, so that feet are where
    they stood.
    """
    rows = rows.double()
    turn, _ = reach(bodies, rows[..., :3], quaternion_to_matrix(rows[..., 3:7]), bodies.feet)
    rest, local = skeleton.T_parent_joint.double()[:, :3, :3], quaternion_to_matrix(detail.pose.rotations.double())
    body = {joint: i for i, joint in enumerate(bodies.joints)}
    stiff = {body for foot in bodies.feet for body in foot}
    stiff = [j for j, carrier in enumerate(bodies.carriers) if carrier in stiff and j not in body]
    if stiff_feet:
        local[:, stiff] = torch.eye(3, dtype=torch.float64)
    first = bodies.joints[0]
    chain = [first]
    while skeleton.parents[chain[0]] >= 0:
        chain.insert(0, skeleton.parents[chain[0]])
    # Joints above the first body keep their own turns; the root takes up what is left.
    below = torch.eye(3, dtype=torch.float64)
    for joint in chain[1:]:
        below = below @ rest[joint] @ local[:, joint]
    world: list[Tensor] = []
    for joint, parent in enumerate(skeleton.parents):
        if joint == 0:
            world.append(turn[:, 0] @ below.mT)
            local[:, 0] = rest[0].mT @ world[0]
        elif joint in body and joint != first:
            world.append(turn[:, body[joint]])
            local[:, joint] = (world[parent] @ rest[joint]).mT @ world[joint]
        else:
            world.append(world[parent] @ rest[joint] @ local[:, joint])
    rotations = matrix_to_quaternion(local)
    zero = rows.new_zeros(len(rows), 3)
    places = forward(in_double(skeleton), Pose(zero, rotations))[:, list(bodies.joints), :3, 3]
    root = (rows[..., :3] - places).mean(1)
    pose = Pose(root.to(detail.pose.root.dtype), rotations.to(detail.pose.rotations.dtype))
    return Motion(pose, detail.fps, detail.name if name is None else name)


def reach(
    bodies: Bodies,
    place: Float[Tensor, "frames bodies 3"],
    turn: Float[Tensor, "frames bodies 3 3"],
    feet: tuple[tuple[int, ...], ...],
    *,
    limbs_follow: bool = False,
) -> tuple[Float[Tensor, "frames bodies 3 3"], Float[Tensor, "frames bodies 3"]]:
    """The bodies' turns with the bones of each leg turned a little more, so that its foot comes to its place.

    Each step is the smallest change of the bones' directions that moves the foot there (damped least squares); the
    foot itself keeps its turn. Also where the bodies then are, joined at their joints, their mean where it was; with
    `limbs_follow` the mean of those that are no part of a reaching limb.
    """
    turn = turn.clone()
    chains = leg_bones(bodies, feet)
    busy = {body for foot, bones in chains.items() for body in (*bones, foot)}
    calm = [body for body in range(len(bodies)) if body not in busy or not limbs_follow]
    eye = torch.eye(3, dtype=turn.dtype)
    for _ in range(REACHES):
        joined = _joined(bodies, turn, place, calm)
        for foot, bones in chains.items():
            path = [*bones, foot]
            arms = torch.stack([joined[:, b] - joined[:, a] for a, b in pairwise(path)], 1)
            # A bone with the arm r that turns by t moves what follows by t x r: the sum of J J^T is |r|^2 - r r^T.
            square = arms.square().sum(-1).sum(1)[:, None, None]
            gram = square * eye - (arms[..., :, None] * arms[..., None, :]).sum(1) + STIFF * square * eye
            push = torch.linalg.solve(gram, place[:, foot] - joined[:, foot])
            extra = torch.linalg.cross(arms, push[:, None].expand_as(arms))
            turn[:, bones] = quaternion_to_matrix(rotvec_to_quaternion(extra)) @ turn[:, bones]
    return turn, _joined(bodies, turn, place, calm)


def leg_bones(bodies: Bodies, feet: tuple[tuple[int, ...], ...]) -> dict[int, list[int]]:
    """Per foot (its last body) the bodies above it, from the hip down, that carry no other leg."""
    above = {foot[-1]: _ancestors(bodies, foot[-1]) for foot in feet}
    found = {}
    for foot, bones in above.items():
        others = {bone for other, path in above.items() if other != foot for bone in (*path, other)}
        own = [bone for bone in bones if bone not in others and bone != 0]
        if own and bool((bodies.T_parent_body[[*own[1:], foot], :3, 3].norm(dim=-1) > 1e-6 * bodies.length).any()):
            found[foot] = own
    return found


def _ancestors(bodies: Bodies, body: int) -> list[int]:
    """From the first body down to the parent of this one."""
    path: list[int] = []
    while (body := bodies.parents[body]) >= 0:
        path.insert(0, body)
    return path


def _joined(
    bodies: Bodies, turn: Float[Tensor, "frames bodies 3 3"], place: Float[Tensor, "frames bodies 3"], calm: list[int]
) -> Float[Tensor, "frames bodies 3"]:
    """Where the bodies are if their joints hold together, the mean of the calm ones where their places say."""
    places = [turn.new_zeros(len(turn), 3)]
    for body in range(1, len(bodies)):
        parent = bodies.parents[body]
        places.append(places[parent] + turn[:, parent] @ bodies.T_parent_body[body, :3, 3])
    joined = torch.stack(places, 1)
    return joined + (place - joined)[:, calm].mean(1, keepdim=True)
