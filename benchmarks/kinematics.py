"""Forward kinematics and skinning, forward + backward, against pytorch_kinematics and dense skinning.

    python benchmarks/kinematics.py [--quick] [--json FILE] [--threads N]

Times are CPU seconds (process time), the best of a few repetitions, all in one process: compare within a run.
"""

import json as json_module
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
import tyro
from rich.console import Console
from rich.table import Table
from torch import Tensor

from jigdoll.kinematics import forward, make_skeleton, rest_transforms
from jigdoll.math.rotations import axis_angle_to_quaternion
from jigdoll.math.transforms import rigid_inverse, translation
from jigdoll.skin.deform import deform, deform_reference
from jigdoll.types import Pose, Skeleton, Weights


@dataclass(frozen=True)
class Row:
    """One measurement."""

    what: str
    frames: int
    vertices: int
    joints: int
    influences: int
    seconds: float
    """Forward + backward, CPU."""


@dataclass(frozen=True, eq=False)
class Case:
    """A character of made-up shape: a branching tree of hinges and points around it."""

    skeleton: Skeleton
    points: Tensor
    weights: Weights
    angles: Tensor
    """[frames joints], about each joint's z axis; the first joint does not turn."""
    pull: Tensor
    """[frames vertices 3], the gradient that comes back."""


def make_case(frames: int, vertices: int, joints: int, influences: int) -> Case:
    """A tree of chains of eight joints, each vertex tied to the joints nearest to it."""
    generator = torch.Generator().manual_seed(0)
    parents = (-1, *(j - 1 if j % 8 else j // 16 for j in range(1, joints)))
    offsets = 0.1 * torch.randn(joints, 3, generator=generator)
    skeleton = make_skeleton(tuple(f"joint_{j}" for j in range(joints)), parents, translation(offsets))
    places = rest_transforms(skeleton)[:, :3, 3]
    home = torch.randint(0, joints, (vertices,), generator=generator)
    points = places[home] + 0.05 * torch.randn(vertices, 3, generator=generator)
    near = torch.cat(
        [torch.cdist(part, places).topk(influences, largest=False).indices for part in points.split(20000)]
    )
    values = torch.rand(vertices, influences, generator=generator) + 0.05
    angles = 0.3 * torch.randn(frames, joints, generator=generator)
    angles[:, 0] = 0
    pull = torch.randn(frames, vertices, 3, generator=generator)
    return Case(skeleton, points, Weights(near, values / values.sum(1, keepdim=True)), angles, pull)


def pose_of(angles: Tensor) -> Pose:
    """Hinge angles as a pose."""
    z = angles.new_tensor([0.0, 0.0, 1.0])
    return Pose(angles.new_zeros(*angles.shape[:-1], 3), axis_angle_to_quaternion(z.expand(*angles.shape, 3), angles))


def peer_chain(skeleton: Skeleton):
    """The same tree for pytorch_kinematics."""
    import pytorch_kinematics

    links = "".join(f'<link name="{name}"/>' for name in skeleton.names)
    joints = ""
    for j, parent in list(enumerate(skeleton.parents))[1:]:
        x, y, z = skeleton.T_parent_joint[j, :3, 3].tolist()
        joints += (
            f'<joint name="hinge_{j}" type="continuous"><parent link="{skeleton.names[parent]}"/>'
            f'<child link="{skeleton.names[j]}"/><origin xyz="{x} {y} {z}" rpy="0 0 0"/><axis xyz="0 0 1"/></joint>'
        )
    return pytorch_kinematics.build_chain_from_urdf(f'<robot name="tree">{links}{joints}</robot>'.encode())


def peer_forward(chain, skeleton: Skeleton, angles: Tensor) -> Tensor:
    """T_world_joint by pytorch_kinematics; the first link of a URDF tree stands at the origin."""
    order = [int(name.removeprefix("hinge_")) for name in chain.get_joint_parameter_names()]
    frames = chain.forward_kinematics(angles[:, order])
    matrices = [frames[name].get_matrix().expand(len(angles), 4, 4) for name in skeleton.names]
    return skeleton.T_parent_joint[0] @ torch.stack(matrices, 1)


def dense_matmul(points: Tensor, weights: Tensor, transforms: Tensor) -> Tensor:
    """Skinning as it is usually written: blend all joints' 4x4 matrices with a dense matrix product, then apply."""
    blended = (weights @ transforms.flatten(-2)).unflatten(-1, (4, 4))
    homogeneous = torch.cat([points, torch.ones_like(points[:, :1])], 1)
    return (blended @ homogeneous[:, :, None])[..., :3, 0]


def cpu_seconds(function: Callable[[], None], repeat: int) -> float:
    """Best CPU time of a few calls after one that warms up."""
    function()
    best = float("inf")
    for _ in range(repeat):
        start = time.process_time()
        function()
        best = min(best, time.process_time() - start)
    return best


def contenders(case: Case) -> dict[str, Callable[[Tensor], Tensor]]:
    """Ways from hinge angles to moved points."""
    skeleton, joints = case.skeleton, len(case.skeleton)
    chain = peer_chain(skeleton)
    unrest = rigid_inverse(rest_transforms(skeleton))
    dense = case.weights.dense(joints)
    return {
        "jigdoll": lambda a: deform(case.points, case.weights, forward(skeleton, pose_of(a)) @ unrest),
        "pytorch_kinematics + dense matmul": lambda a: dense_matmul(
            case.points, dense, peer_forward(chain, skeleton, a) @ unrest
        ),
        "jigdoll FK + dense einsum": lambda a: deform_reference(
            case.points, case.weights, forward(skeleton, pose_of(a)) @ unrest
        ),
        "FK only: jigdoll": lambda a: forward(skeleton, pose_of(a)),
        "FK only: pytorch_kinematics": lambda a: peer_forward(chain, skeleton, a),
    }


def measure(case: Case, names: list[str], repeat: int) -> list[Row]:
    """Time each way, after checking that all move the points to the same places."""
    ways = contenders(case)
    truth = ways["jigdoll FK + dense einsum"](case.angles)
    rows = []
    for name in names:
        got = ways[name](case.angles)
        if got.shape == truth.shape:
            torch.testing.assert_close(got, truth, atol=1e-4, rtol=1e-4)

        def step(way: Callable[[Tensor], Tensor] = ways[name]) -> None:
            angles = case.angles.clone().requires_grad_()
            out = way(angles)
            out.backward(case.pull if out.shape == case.pull.shape else torch.ones_like(out))

        frames, vertices = case.pull.shape[:2]
        influences = case.weights.values.shape[1]
        seconds = cpu_seconds(step, repeat)
        rows.append(Row(name, frames, vertices, len(case.skeleton), influences, seconds))
    return rows


def growth(base: tuple[int, int, int], repeat: int) -> list[tuple[str, list[Row]]]:
    """Double frames, vertices and joints three times each, the others fixed at four times the base."""
    middle = tuple(4 * size for size in base)
    tables = []
    for axis, name in enumerate(("frames", "vertices", "joints")):
        rows: list[Row] = []
        for factor in (1, 2, 4, 8):
            frames, vertices, joints = (factor * base[i] if i == axis else middle[i] for i in range(3))
            case = make_case(frames, vertices, joints, 4)
            rows += measure(case, ["jigdoll", "pytorch_kinematics + dense matmul"], repeat)
        tables.append((name, rows))
    return tables


def main(quick: bool = False, json: Path | None = None, threads: int = 1) -> None:
    """Print the tables; --quick takes a tenth of the vertices."""
    # Idle threads of a pool spin for a while, and process time would count that as work.
    os.environ["NUMBA_NUM_THREADS"] = str(threads)
    torch.set_num_threads(threads)
    console, repeat = Console(), 2 if quick else 3
    vertices = 10_000 if quick else 100_000
    everything: list[Row] = []
    for influences in (4, 8):
        rows = measure(make_case(49, vertices, 60, influences), list(contenders(make_case(1, 8, 9, 4))), repeat)
        everything += rows
        table = Table(title=f"49 frames x {vertices:,} vertices x 60 joints, {influences} influences, fwd + bwd")
        for column in ("", "CPU s", "jigdoll is faster by"):
            table.add_column(column, justify="left" if not column else "right")
        fastest = {False: rows[0].seconds, True: rows[3].seconds}
        for row in rows:
            table.add_row(row.what, f"{row.seconds:.4f}", f"{row.seconds / fastest['FK only' in row.what]:.1f}x")
        console.print(table)
    for name, rows in growth((8, vertices // 8, 15), repeat):
        everything += rows
        table = Table(title=f"Growth with {name}")
        for column in (name, "jigdoll, CPU s", "dense, CPU s", "ratio"):
            table.add_column(column, justify="right")
        for ours, dense in zip(rows[::2], rows[1::2], strict=True):
            ratio = f"{dense.seconds / ours.seconds:.1f}x"
            table.add_row(f"{getattr(ours, name):,}", f"{ours.seconds:.4f}", f"{dense.seconds:.4f}", ratio)
        console.print(table)
    if json:
        json.write_text(json_module.dumps([asdict(row) for row in everything], indent=1))


if __name__ == "__main__":
    tyro.cli(main)
