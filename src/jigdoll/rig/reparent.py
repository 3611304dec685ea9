"""Rigs whose feet hang on control bones, seen as if every limb were whole.

Artists' tools pose a leg from a foot that hangs on the root, and the baked file keeps that tree: its legs end at the
shin. Here such bones are put under the limb whose end they continue, in a working copy of the character; weightless
handles above the body are left out, and a rest pose that does not stand is taken from a clip that does. World
transforms carry over exactly in both directions, so a clip of the copy is a clip of the file.
"""

import warnings
from dataclasses import dataclass, replace

import numpy as np
import torch

from jigdoll.errors import RepairWarning, RigError
from jigdoll.formats.joints import free_skeleton
from jigdoll.formats.rest import local_transforms, rigid_rest, world_to_motion
from jigdoll.kinematics import motion_to_world, rest_transforms
from jigdoll.math.transforms import apply
from jigdoll.rig.limbs import find_limbs, read_name
from jigdoll.types import Limb, Motion, RiggedAsset, Skeleton, Weights

_STANDING = 0.6
"""A leg stands where its foot is at least this share of its length below its hip."""
_CALM = ("idle", "stand", "rest", "pose", "walk")
"""Clips that are likely to begin on their feet, the likeliest first."""


@dataclass(frozen=True, eq=False)
class Reparented:
    """A working copy with whole limbs, and the way back."""

    asset: RiggedAsset
    original: RiggedAsset
    joints: tuple[int, ...]
    """The original's joint behind each joint of the copy."""
    repairs: tuple[str, ...]
    """What was done; empty where the rig was whole and the copy is the original."""


def reparent(asset: RiggedAsset) -> Reparented:
    """The character with its stray feet and hands under the limbs they belong to; each change is a RepairWarning."""
    skeleton = asset.skeleton
    weight = _carried(asset)
    changed = new_parents(skeleton, weight)
    repairs = [f"{skeleton.names[j]} hangs on {skeleton.names[p]} now" for j, p in changed.items()]
    parents = [changed.get(j, p) for j, p in enumerate(skeleton.parents)]
    handles = _handles(parents, weight) if changed else []
    if handles:
        repairs.append(f"{', '.join(skeleton.names[j] for j in handles)} carried nothing and stay outside")
    world = rest_transforms(skeleton).double().numpy()
    order = _tree_order(parents, outside=set(handles))
    whole = replace(skeleton, names=_names(skeleton, changed))
    standing = None
    if not _stands(_skeleton(whole, parents, order, world)):
        standing = _standing_clip(asset, whole, parents, order)
        if standing is not None:
            repairs.append(f"the rest pose does not stand; it is the first frame of {standing.name!r} now")
    if not repairs:
        return Reparented(asset, asset, tuple(range(len(skeleton))), ())
    warnings.warn(f"{asset.name}: {'; '.join(repairs)}", RepairWarning, stacklevel=2)
    copy = _copy(asset, whole, parents, order, standing)
    return Reparented(copy, asset, tuple(order), tuple(repairs))


def to_original(reparented: Reparented, motion: Motion) -> Motion:
    """A clip of the copy as a clip of the original; handles that were left out travel along over the ground."""
    if not reparented.repairs:
        return motion
    skeleton = reparented.original.skeleton
    rest = rest_transforms(skeleton).double().numpy()
    world = np.tile(rest, (len(motion), 1, 1, 1))
    world[:, :, [0, 2], 3] += motion.pose.root.double().numpy()[:, None, [0, 2]]
    stretch, _ = _stretch(reparented)
    world[:, list(reparented.joints)] = motion_to_world(reparented.asset.skeleton, motion) @ stretch
    return _motion(skeleton, rest, world, motion)


def to_reparented(reparented: Reparented, motion: Motion) -> Motion:
    """A clip of the original as a clip of the copy."""
    if not reparented.repairs:
        return motion
    world = motion_to_world(reparented.original.skeleton, motion)[:, list(reparented.joints)]
    _, inverse = _stretch(reparented)
    skeleton = reparented.asset.skeleton
    return _motion(skeleton, rest_transforms(skeleton).double().numpy(), world @ inverse, motion)


def new_parents(skeleton: Skeleton, weight: np.ndarray) -> dict[int, int]:
    """The joint that each stray bone continues: the end of the nearest limb on its side that ends before it.

    A stray is a sided joint that moves skin, belongs to no limb and hangs on the root or on a weightless joint.
    """
    limbs = [limb for limb in find_limbs(skeleton) if limb.kind in ("leg", "arm")]
    points = rest_transforms(skeleton)[:, :3, 3].double().numpy()
    taken = {j for limb in limbs for j in limb.joints}
    below = _subtree_weight(skeleton, weight)
    size = float(np.ptp(points, axis=0).max())
    distance: dict[tuple[int, int], float] = {}
    for joint, parent in enumerate(skeleton.parents):
        loose = parent >= 0 and (parent == 0 or weight[parent] == 0) and joint not in taken and below[joint] > 0
        side = read_name(skeleton.names[joint]).side
        if not loose or side is None or read_name(skeleton.names[parent]).side is not None:
            continue
        for index, limb in enumerate(limbs):
            hip, end = points[limb.joints[0]], points[limb.joints[-1]]
            gap = float(np.linalg.norm(points[joint] - end))
            further = np.linalg.norm(points[joint] - hip) > np.linalg.norm(end - hip)
            if limb.side == side and further and gap < 0.6 * size:
                distance[joint, index] = gap
    found: dict[int, int] = {}
    used: set[int] = set()
    for (joint, index), _ in sorted(distance.items(), key=lambda item: item[1]):
        if joint not in found and index not in used:
            found[joint] = limbs[index].joints[-1]
            used.add(index)
    return dict(sorted(found.items()))


def _names(skeleton: Skeleton, changed: dict[int, int]) -> tuple[str, ...]:
    """A stray that is called a control is named after the limb that it ends now."""
    names = list(skeleton.names)
    for joint, parent in changed.items():
        if read_name(names[joint]).ignored:
            names[joint] = f"{names[parent]}_foot"
    return tuple(names)


def _carried(asset: RiggedAsset) -> np.ndarray:
    """How much skin each joint moves."""
    return asset.weights.dense(len(asset.skeleton)).sum(0).double().numpy()


def _subtree_weight(skeleton: Skeleton, weight: np.ndarray) -> np.ndarray:
    total = weight.copy()
    for joint in reversed(range(1, len(skeleton))):
        total[skeleton.parents[joint]] += total[joint]
    return total


def _handles(parents: list[int], weight: np.ndarray) -> list[int]:
    """Weightless joints from the root down, as long as only one joint follows."""
    handles, here = [], 0
    while weight[here] == 0:
        children = [j for j, p in enumerate(parents) if p == here]
        if len(children) != 1:
            break
        handles.append(here)
        here = children[0]
    return handles


def _tree_order(parents: list[int], *, outside: set[int]) -> list[int]:
    """The joints with parents first, children in their old order."""
    order = [next(j for j in range(len(parents)) if j not in outside and (parents[j] < 0 or parents[j] in outside))]
    for joint in order:
        order.extend(j for j, p in enumerate(parents) if p == joint)
    return order


def _skeleton(skeleton: Skeleton, parents: list[int], order: list[int], world: np.ndarray) -> Skeleton:
    """The joints in a new order under new parents, each where it was."""
    place = {joint: i for i, joint in enumerate(order)}
    above = tuple(place.get(parents[joint], -1) for joint in order)
    local = torch.from_numpy(local_transforms(above, world[order]))
    return free_skeleton(tuple(skeleton.names[j] for j in order), above, local.to(skeleton.T_parent_joint.dtype))


def _stands(skeleton: Skeleton) -> bool:
    """Whether every leg reaches down; a body without legs is left as it is."""
    points = rest_transforms(skeleton)[:, :3, 3]
    legs: list[Limb] = [limb for limb in find_limbs(skeleton) if limb.kind == "leg"]
    for leg in legs:
        chain = points[list(leg.joints)]
        length = float(chain.diff(dim=0).norm(dim=-1).sum())
        # A sprawling leg reaches outwards; a lying body's does not reach down at all.
        if float(chain[0, 1] - chain[-1, 1]) < (_STANDING if len(legs) == 2 else 0.2) * length:
            return False
    return True


def _standing_clip(asset: RiggedAsset, whole: Skeleton, parents: list[int], order: list[int]) -> Motion | None:
    """The clip, calm ones first, whose first frame stands."""

    def calm(name: str) -> int:
        return next((i for i, word in enumerate(_CALM) if word in name.lower()), len(_CALM))

    for name in sorted(asset.clips, key=calm):
        first = _frame(asset.clips[name], 0)
        world, _, _ = rigid_rest(motion_to_world(asset.skeleton, first)[0])
        if _stands(_skeleton(whole, parents, order, world)):
            return replace(first, name=name)
    return None


def _frame(motion: Motion, index: int) -> Motion:
    pose = motion.pose
    cut = {name: None if value is None else value[index : index + 1] for name, value in vars(pose).items()}
    return replace(motion, pose=replace(pose, **cut))


def _copy(
    asset: RiggedAsset, whole: Skeleton, parents: list[int], order: list[int], standing: Motion | None
) -> RiggedAsset:
    """The working character: joints in a new order, skin, source and clips with them."""
    skeleton = asset.skeleton
    rest = rest_transforms(skeleton).double().numpy()
    world, stretch, mesh = rest, np.tile(np.eye(4), (len(skeleton), 1, 1)), asset.mesh
    if standing is not None:
        moved = motion_to_world(skeleton, standing)[0]
        world, stretch, _ = rigid_rest(moved)
        skin = torch.from_numpy(moved @ np.linalg.inv(rest)).float()
        blended = torch.einsum("vj,jab->vab", asset.weights.dense(len(skeleton)), skin)
        vertices = apply(blended, asset.mesh.vertices[:, None])[:, 0]
        down = float(vertices[:, 1].min())
        mesh = replace(asset.mesh, vertices=vertices - vertices.new_tensor([0.0, down, 0.0]))
        world = world.copy()
        world[:, 1, 3] -= down
    place = torch.full((len(skeleton),), 0)
    place[order] = torch.arange(len(order))
    source = asset.source
    if source is not None:
        T_joint_node = torch.from_numpy(stretch[order]).to(source.T_joint_node) @ source.T_joint_node[order]
        source = replace(source, nodes=tuple(source.nodes[j] for j in order), T_joint_node=T_joint_node)
    copy = RiggedAsset(
        name=asset.name,
        mesh=mesh,
        skeleton=_skeleton(whole, parents, order, world),
        weights=Weights(place[asset.weights.joints.long()], asset.weights.values),
        source=source,
    )
    bare = Reparented(copy, asset, tuple(order), ("copy",))
    return replace(copy, clips={name: to_reparented(bare, clip) for name, clip in asset.clips.items()})


def _stretch(reparented: Reparented) -> tuple[np.ndarray, np.ndarray]:
    """The scale that a borrowed rest pose holds at each joint, and its inverse."""
    new, old = reparented.asset.source, reparented.original.source
    if new is None or old is None:
        eye = np.tile(np.eye(4), (len(reparented.joints), 1, 1))
        return eye, eye
    stretch = new.T_joint_node.double().numpy() @ np.linalg.inv(
        old.T_joint_node.double().numpy()[list(reparented.joints)]
    )
    return stretch, np.linalg.inv(stretch)


def _motion(skeleton: Skeleton, rest: np.ndarray, world: np.ndarray, like: Motion) -> Motion:
    eye = np.tile(np.eye(4), (len(skeleton), 1, 1))
    if not np.isfinite(world).all():
        raise RigError(f"the clip {like.name!r} holds numbers that are not finite")
    return world_to_motion(skeleton.parents, rest, world, eye, fps=like.fps, name=like.name)
