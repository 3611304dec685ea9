"""What the pose space is held against: other ways to draw poses, to reach handles and to fill in between keys."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from numpy import ndarray
from scipy.interpolate import CubicSpline

from jigdoll.kinematics import forward, motion_to_world
from jigdoll.memory.segments import Memory
from jigdoll.posespace.figure import stack_figures
from jigdoll.posespace.handles import Handle, handle_joints
from jigdoll.posespace.rigged import Body, from_world, to_poses
from jigdoll.posespace.space import PoseSpace
from jigdoll.posespace.windows import channel_counts
from jigdoll.rig.retarget.decode import decode
from jigdoll.rig.retarget.turns import shortest_turns
from jigdoll.types import Motion, Pose

HERE = Path(__file__).parent


def gaussian_poses(space: PoseSpace, body: Body, count: int, seed: int) -> Pose:
    """Every number of limb space from a Gaussian of its own, with the mean and spread of the training's bodies."""
    sticks = stack_figures([body.figure] * count)
    noise = torch.randn(
        *sticks.kinds.shape, 1, space.units.mean.shape[1], generator=torch.Generator().manual_seed(seed)
    )
    values = space.units.out_of(noise * channel_counts(sticks)[:, :, None], sticks)
    return to_poses(body, values[:, :, 0].numpy())


def relatives_poses(memory: Memory, body: Body, count: int, seed: int) -> Pose:
    """Single frames of real motion of the same kind of body, retargeted."""
    dice = np.random.default_rng(seed)
    mine = [i for i, words in enumerate(memory.words) if words.kind == body.anatomy.kind]
    mine = mine or list(range(len(memory.words)))
    drawn = []
    for i in dice.choice(mine, count):
        motion = decode(memory.segment(int(i), fps=6.0).motion, body.anatomy, lock=False)
        drawn.append(motion.pose[int(dice.integers(len(motion)))])
    root = torch.stack([pose.root for pose in drawn])
    return Pose(root, torch.stack([pose.rotations for pose in drawn]))


def fabrik(body: Body, pose: Pose, handles: Sequence[Handle], rounds: int = 12) -> Pose:
    """FABRIK on the chain of each handle, from where it leaves the trunk."""
    anatomy, skeleton = body.anatomy, body.anatomy.skeleton
    world = motion_to_world(skeleton, Motion(pose[None], 30.0))[0]
    G, P = world[:, :3, :3].copy(), world[:, :3, 3].copy()
    fixed = set(anatomy.trunk)
    for handle in handles:
        joint = {**handle_joints(body)}.get(handle.name, 0)
        chain = [joint]
        while skeleton.parents[chain[-1]] >= 0 and chain[-1] not in fixed:
            chain.append(skeleton.parents[chain[-1]])
        chain = chain[::-1]
        if len(chain) < 2:
            continue
        X, target, start = P[chain].copy(), np.array(handle.target), P[chain[0]].copy()
        size = np.linalg.norm(np.diff(X, axis=0), axis=1)
        for _ in range(rounds):
            X[-1] = target
            for i in range(len(X) - 2, -1, -1):
                X[i] = X[i + 1] + (X[i] - X[i + 1]) * size[i] / max(np.linalg.norm(X[i] - X[i + 1]), 1e-9)
            X[0] = start
            for i in range(len(X) - 1):
                X[i + 1] = X[i] + (X[i + 1] - X[i]) * size[i] / max(np.linalg.norm(X[i + 1] - X[i]), 1e-9)
        turn = np.eye(3)
        for i in range(len(chain) - 1):
            bone = P[chain[i + 1]] - P[chain[i]]
            turn = shortest_turns((turn @ bone)[None], (X[i + 1] - X[i])[None])[0] @ turn
            G[chain[i]] = turn @ G[chain[i]]
        _carry(skeleton.parents, chain, world, G)
    return from_world(body, pose, G)


def _carry(parents: Sequence[int], chain: list[int], world: ndarray, G: ndarray) -> None:
    """What hangs on a chain goes with it."""
    for joint, parent in enumerate(parents):
        if parent >= 0 and joint not in chain[:-1]:
            G[joint] = G[parent] @ world[parent, :3, :3].T @ world[joint, :3, :3]


def blender_case(body: Body, pose: Pose, handles: Sequence[Handle]) -> tuple[dict, ndarray]:
    """What Blender is told: the rig at rest and the handles seen from its root; and the way back into the world."""
    skeleton, rest = body.anatomy.skeleton, body.anatomy.T_rest
    T = forward(skeleton, pose)[0].double().numpy()
    back = T @ np.linalg.inv(rest[0])
    inside = np.linalg.inv(back)
    joints = handle_joints(body)
    told = [
        {"joint": joints[h.name], "place": (inside[:3, :3] @ np.array(h.target) + inside[:3, 3]).tolist()}
        for h in handles
        if skeleton.parents[joints[h.name]] >= 0
    ]
    return {"joints": rest[:, :3, 3].tolist(), "parents": list(skeleton.parents), "handles": told}, back


def blender_places(python: Path, cases: Sequence[tuple[dict, ndarray]]) -> list[ndarray]:
    """Where Blender's IK brings the joints of each case [m], world."""
    with TemporaryDirectory() as folder:
        source, target = Path(folder) / "cases.json", Path(folder) / "answers.json"
        source.write_text(json.dumps([case for case, _ in cases]))
        subprocess.run([python, HERE / "blender_ik.py", source, target], check=True, stdout=subprocess.DEVNULL)
        answers = json.loads(target.read_text())
    return [np.array(P) @ back[:3, :3].T + back[:3, 3] for P, (_, back) in zip(answers, cases, strict=True)]


def cubic(keys: dict[int, Pose], fps: float) -> Motion:
    """Cubic curves through the keys' quaternions."""
    order = sorted(keys)
    q = torch.stack([keys[k].rotations for k in order]).double()
    for i in range(1, len(q)):
        q[i] = torch.where((q[i] * q[i - 1]).sum(-1, keepdim=True) < 0, -q[i], q[i])
    at = np.arange(order[0], order[-1] + 1)
    turns = torch.from_numpy(CubicSpline(order, q.numpy())(at)).float()
    root = torch.from_numpy(CubicSpline(order, torch.stack([keys[k].root for k in order]).numpy())(at)).float()
    return Motion(Pose(root, torch.nn.functional.normalize(turns, dim=-1)), fps)
