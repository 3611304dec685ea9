"""The working copy of a rig: whole limbs, a root in the body, a tip on every bone, a rest pose that stands, limits.

Artists' tools pose a leg from a foot that hangs on the root, and the baked file keeps that tree: its legs end at the
shin. Here such bones are put under the limb whose end they continue; control bones and weightless roots are left out;
a bone that ends in flesh gets a tip where the flesh ends; a rest pose that does not stand is taken from an idle clip
that does. World transforms carry over exactly in both directions, so a clip of the copy is a clip of the file.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray

from jigdoll.errors import RepairWarning, RigError
from jigdoll.formats.joints import free_skeleton
from jigdoll.formats.rest import local_transforms, rigid_rest, world_to_motion
from jigdoll.kinematics import motion_to_world, rest_transforms
from jigdoll.math.transforms import apply
from jigdoll.rig.chains import beside, measured
from jigdoll.rig.flesh import Flesh, Outline, flesh_of
from jigdoll.rig.limbs import find_limbs
from jigdoll.rig.limits import with_default_limits
from jigdoll.rig.names import read_name
from jigdoll.types import Limb, Motion, RiggedAsset, Skeleton, Weights

_STANDING = 0.6
"""A leg stands where its foot is at least this share of its length below its hip."""
_CALM = ("idle", "bind", "t-pose", "tpose", "t_pose", "a-pose", "stand", "rest", "pose", "breath", "swim", "walk")
"""Clips that are likely to begin at rest, the likeliest first; no other clip may lend its first frame."""


_COPY = "_is_a_working_copy"
_CONTROLS = {"ik", "fk", "pole", "target", "ctrl", "control", "fake"}
"""Words for joints that an artist's tool poses others with."""


@dataclass(frozen=True, eq=False)
class Reparented:
    """A working copy with whole limbs, and the way back."""

    asset: RiggedAsset
    original: RiggedAsset
    joints: tuple[int, ...]
    """The original's joint behind each joint of the copy; -1 for tips that were added."""
    repairs: tuple[str, ...]
    """What was done that an artist would want to know."""

    @property
    def same_tree(self) -> bool:
        """Whether the copy has the original's joints and rest pose, so that clips fit both as they are."""
        return self.asset.skeleton.T_parent_joint is self.original.skeleton.T_parent_joint


@dataclass(frozen=True, eq=False)
class _Tree:
    """The joints of a copy: names, parents (indices into this tree), world rest, and the original's joint of each."""

    names: tuple[str, ...]
    parents: tuple[int, ...]
    world: Float[ndarray, "joints 4 4"]
    joints: tuple[int, ...]


def reparent(asset: RiggedAsset) -> Reparented:
    """The character as all verbs work on it; each change that matters to an artist is a RepairWarning.

    A working copy is its own working copy, without a second look.
    """
    if _COPY in vars(asset):
        return Reparented(asset, asset, tuple(range(len(asset.skeleton))), ())
    made = _working_copy(asset)
    vars(made.asset)[_COPY] = True
    return made


def _working_copy(asset: RiggedAsset) -> Reparented:
    flesh = flesh_of(asset)
    tree, repairs = _whole_tree(asset.skeleton, flesh)
    standing = None
    if not _stands(tree, flesh):
        standing = _standing_clip(asset, tree, flesh)
        if standing is not None:
            repairs.append(f"the rest pose does not stand; it is the first frame of {standing.name!r} now")
    if repairs:
        warnings.warn(f"{asset.name}: {'; '.join(repairs)}", RepairWarning, stacklevel=3)
    plain = standing is None and tree.joints == tuple(range(len(asset.skeleton)))
    if plain and tree.parents == asset.skeleton.parents:
        skeleton = _with_limits(asset.skeleton, flesh.outline)
        copy = asset if skeleton is asset.skeleton else replace(asset, skeleton=skeleton)
        return Reparented(copy, asset, tree.joints, tuple(repairs))
    return _copied(asset, tree, standing, flesh, repairs)


def to_original(reparented: Reparented, motion: Motion) -> Motion:
    """A clip of the copy as a clip of the original; controls that were left out travel along over the ground."""
    if reparented.same_tree:
        return motion
    skeleton = reparented.original.skeleton
    rest = rest_transforms(skeleton).double().numpy()
    world = np.tile(rest, (len(motion), 1, 1, 1))
    world[:, :, [0, 2], 3] += motion.pose.root.double().numpy()[:, None, [0, 2]]
    stretch, _ = _stretch(reparented)
    own = [i for i, j in enumerate(reparented.joints) if j >= 0]
    moved = motion_to_world(reparented.asset.skeleton, motion)[:, own] @ stretch[own]
    world[:, [reparented.joints[i] for i in own]] = moved
    return _motion(skeleton, rest, world, motion)


def to_reparented(reparented: Reparented, motion: Motion) -> Motion:
    """A clip of the original as a clip of the copy."""
    if reparented.same_tree:
        return motion
    skeleton = reparented.asset.skeleton
    rest = rest_transforms(skeleton).double().numpy()
    _, inverse = _stretch(reparented)
    original = motion_to_world(reparented.original.skeleton, motion)
    world = np.empty((len(motion), len(skeleton), 4, 4))
    for i, (joint, parent) in enumerate(zip(reparented.joints, skeleton.parents, strict=True)):
        if joint >= 0:
            world[:, i] = original[:, joint] @ inverse[i]
        else:  # a tip moves with its bone
            world[:, i] = world[:, parent] @ np.linalg.inv(rest[parent]) @ rest[i]
    return _motion(skeleton, rest, world, motion)


# The tree


def _whole_tree(skeleton: Skeleton, flesh: Flesh) -> tuple[_Tree, list[str]]:
    """The joints of the copy, and what was changed."""
    names = list(skeleton.names)
    world = rest_transforms(skeleton).double().numpy()
    changed = beside(measured(skeleton, flesh.outline)) | new_parents(skeleton, flesh)
    repairs = [f"{names[j]} hangs on {names[p]} now" for j, p in changed.items()]
    parents = [changed.get(j, p) for j, p in enumerate(skeleton.parents)]
    for joint, parent in changed.items():
        if read_name(names[joint]).ignored:  # a control that is a foot now is called one
            names[joint] = f"{names[parent]}_foot"
    outside = _controls(skeleton, parents, flesh)
    parents, outside = _rooted(parents, outside, flesh)
    if outside:
        repairs.append(f"{', '.join(skeleton.names[j] for j in sorted(outside))} carried nothing and stay outside")
    order = _tree_order(parents, outside=outside)
    place = {joint: i for i, joint in enumerate(order)}
    above = [place.get(parents[joint], -1) for joint in order]
    rest, kept = list(world[order]), [names[j] for j in order]
    joints = list(order)
    for i, joint in enumerate(order):
        leaf = i not in above
        tip = flesh.tips.get(joint) if leaf else None
        if tip is not None:
            at = world[joint].copy()
            at[:3, 3] = tip
            rest.append(at)
            above.append(i)
            joints.append(-1)
            kept.append(_free_name(f"{names[joint]}_tip", kept))
    tree = _Tree(tuple(kept), tuple(above), np.stack(rest), tuple(joints))
    return tree, repairs


def _free_name(name: str, taken: list[str]) -> str:
    while name in taken:
        name += "_"
    return name


def new_parents(skeleton: Skeleton, flesh: Flesh) -> dict[int, int]:
    """The joint that each stray bone continues: the end of the nearest limb on its side that ends before it.

    A stray is a bone beside the middle that moves skin, hangs on the root or on weightless joints below it, and is much
    shorter than the limb that it continues.
    """
    limbs = [limb for limb in find_limbs(skeleton, flesh.outline) if limb.kind in ("leg", "arm")]
    points = rest_transforms(skeleton)[:, :3, 3].double().numpy()
    below = _subtree_weight(skeleton.parents, flesh.weight)
    size = float(np.ptp(points, axis=0).max())
    distance: dict[tuple[int, int], float] = {}
    for joint in range(1, len(skeleton)):
        above = _above(skeleton, joint)
        loose = below[joint] > 0 and not any(flesh.weight[j] > 0 for j in above[:-1])
        off = float(points[joint, 0] - points[0, 0])
        if not loose or flesh.weight[joint] == 0 or abs(off) < 0.005 * size:
            continue
        side = read_name(skeleton.names[joint]).side or ("left" if off > 0 else "right")
        reach = max(float(np.linalg.norm(points[j] - points[joint])) for j in _below(skeleton, joint))
        for index, limb in enumerate(limbs):
            if limb.side != side or joint in limb.joints or limb.joints[0] in _below(skeleton, joint):
                continue
            hip, last = points[limb.joints[0]], limb.joints[-1]
            end = flesh.tips.get(last, points[last])
            length = float(np.linalg.norm(end - hip))
            gap = min(float(np.linalg.norm(points[joint] - end)), float(np.linalg.norm(points[joint] - points[last])))
            further = float(np.linalg.norm(points[joint] - hip)) > 0.75 * length
            if further and reach < 0.6 * length and gap < max(0.6 * length, 0.05 * size):
                distance[joint, index] = gap
    found: dict[int, int] = {}
    used: set[int] = set()
    for (joint, index), _ in sorted(distance.items(), key=lambda item: item[1]):
        if joint not in found and index not in used:
            found[joint] = limbs[index].joints[-1]
            used.add(index)
    return dict(sorted(found.items()))


def _below(skeleton: Skeleton, joint: int) -> list[int]:
    """A joint and all its descendants."""
    found = [joint]
    for here in found:
        found += skeleton.children[here]
    return found


def _above(skeleton: Skeleton, joint: int) -> list[int]:
    """The joints on the way to the root."""
    above = []
    while (joint := skeleton.parents[joint]) >= 0:
        above.append(joint)
    return above


def _controls(skeleton: Skeleton, parents: list[int], flesh: Flesh) -> set[int]:
    """Joints that neither move skin nor lead to one that does, unless they mark the end of a bone."""
    if not flesh.weight.any():
        return set()
    total, outside = _subtree_weight(parents, flesh.weight), set()
    points = rest_transforms(skeleton)[:, :3, 3].double().numpy()
    size = float(np.ptp(points, axis=0).max())
    for joint in _tree_order(parents, outside=set()):
        parent = parents[joint]
        if total[joint] > 0 or parent < 0:
            continue
        short = float(np.linalg.norm(points[joint] - points[parent])) < 0.2 * size
        marks_end = parent not in outside and (flesh.near[joint] or short)
        if not marks_end or read_name(skeleton.names[joint]).tokens & _CONTROLS:
            outside.add(joint)
    return outside


def _rooted(parents: list[int], outside: set[int], flesh: Flesh) -> tuple[list[int], set[int]]:
    """The tree with its root in the body: what hung on a weightless root hangs on its main child."""
    parents, outside = list(parents), set(outside)
    root = parents.index(-1)
    total = _subtree_weight(parents, flesh.weight)
    while flesh.weight[root] == 0 and flesh.weight.any():
        kids = [j for j, p in enumerate(parents) if p == root and j not in outside]
        if not kids:
            break
        main = max(kids, key=lambda kid: float(total[kid]))
        if total[main] < 0.25 * total[root]:
            break
        for kid in kids:
            parents[kid] = main
        parents[main] = -1
        outside.add(root)
        root = main
    return parents, outside


def _subtree_weight(parents: Sequence[int], weight: Float[ndarray, " joints"]) -> Float[ndarray, " joints"]:
    """How much skin each joint and all that hang on it move."""
    total = weight.copy()
    for joint in _tree_order(parents, outside=set())[::-1]:
        if parents[joint] >= 0:
            total[parents[joint]] += total[joint]
    return total


def _tree_order(parents: Sequence[int], *, outside: set[int]) -> list[int]:
    """The joints with parents first, in their old order where that can be."""
    inside = [j for j in range(len(parents)) if j not in outside]
    if all(parents[j] < j for j in inside):
        return inside
    children: dict[int, list[int]] = {}
    for joint, parent in enumerate(parents):
        children.setdefault(parent, []).append(joint)
    order = [next(j for j in range(len(parents)) if j not in outside and (parents[j] < 0 or parents[j] in outside))]
    for joint in order:
        order.extend(kid for kid in children.get(joint, []) if kid not in outside)
    return order


# Rest poses that stand


def _skeleton(tree: _Tree, world: Float[ndarray, "joints 4 4"]) -> Skeleton:
    """A skeleton of the tree's joints, each where `world` says."""
    local = torch.from_numpy(local_transforms(tree.parents, world))
    return free_skeleton(tree.names, tree.parents, local.float())


def _with_limits(skeleton: Skeleton, outline: Outline) -> Skeleton:
    """Axes and limits by role where the skeleton came without any."""
    if bool((skeleton.limits.abs() < 3.14).any()):
        return skeleton
    limited = with_default_limits(skeleton, find_limbs(skeleton, outline))
    return replace(limited, T_parent_joint=skeleton.T_parent_joint)


def _stands(tree: _Tree, flesh: Flesh, world: Float[ndarray, "joints 4 4"] | None = None) -> bool:
    """Whether every leg reaches down; a body without legs is left as it is, but no clip may take legs away."""
    skeleton = _skeleton(tree, tree.world if world is None else world)
    points = rest_transforms(skeleton)[:, :3, 3]
    legs: list[Limb] = [limb for limb in find_limbs(skeleton, flesh.outline.of(tree.joints)) if limb.kind == "leg"]
    for leg in legs:
        chain = points[list(leg.joints)]
        length = float(chain.diff(dim=0).norm(dim=-1).sum())
        # A sprawling leg reaches outwards; a lying body's does not reach down at all.
        if float(chain[0, 1] - chain[:, 1].min()) < (_STANDING if len(legs) == 2 else 0.2) * length:
            return False
    return bool(legs) or world is None


def _standing_clip(asset: RiggedAsset, tree: _Tree, flesh: Flesh) -> Motion | None:
    """The calmest clip whose first frame stands; never a death, a blow or a hit."""

    def calm(name: str) -> int:
        return next((i for i, word in enumerate(_CALM) if word in name.lower()), len(_CALM))

    for name in sorted((name for name in asset.clips if calm(name) < len(_CALM)), key=calm):
        clip = asset.clips[name]
        first = replace(clip, pose=clip.pose[:1])
        world, _, _ = rigid_rest(motion_to_world(asset.skeleton, first)[0])
        if _stands(tree, flesh, _tree_world(tree, rest_transforms(asset.skeleton).double().numpy(), world)):
            return replace(first, name=name)
    return None


def _tree_world(
    tree: _Tree, rest: Float[ndarray, "joints 4 4"], world: Float[ndarray, "joints 4 4"]
) -> Float[ndarray, "tree 4 4"]:
    """Where the tree's joints are when the original's are at `world`."""
    out = np.empty_like(tree.world)
    for i, (joint, parent) in enumerate(zip(tree.joints, tree.parents, strict=True)):
        out[i] = world[joint] if joint >= 0 else out[parent] @ np.linalg.inv(tree.world[parent]) @ tree.world[i]
    return out


# The copy


def _copied(asset: RiggedAsset, tree: _Tree, standing: Motion | None, flesh: Flesh, repairs: list[str]) -> Reparented:
    """The working character: joints in a new order, skin, source and clips with them."""
    skeleton = asset.skeleton
    rest = rest_transforms(skeleton).double().numpy()
    world, stretch, mesh = tree.world, np.tile(np.eye(4), (len(tree.joints), 1, 1)), asset.mesh
    if standing is not None:
        moved = motion_to_world(skeleton, standing)[0]
        rigid, scale, _ = rigid_rest(moved)
        world = _tree_world(tree, rest, rigid)
        stretch = np.stack([scale[j] if j >= 0 else np.eye(4) for j in tree.joints])
        skin = torch.from_numpy(moved @ np.linalg.inv(rest)).float()
        blended = torch.einsum("vj,jab->vab", asset.weights.dense(len(skeleton)), skin)
        vertices = apply(blended, asset.mesh.vertices[:, None])[:, 0]
        down = float(vertices[:, 1].min())
        mesh = replace(asset.mesh, vertices=vertices - vertices.new_tensor([0.0, down, 0.0]))
        world[:, 1, 3] -= down
    place = torch.zeros(len(skeleton), dtype=torch.long)
    for i, joint in enumerate(tree.joints):
        if joint >= 0:
            place[joint] = i
    source = asset.source
    if source is not None:
        before = torch.stack([source.T_joint_node[j] if j >= 0 else torch.eye(4) for j in tree.joints])
        nodes = tuple(source.nodes[j] if j >= 0 else -1 for j in tree.joints)
        source = replace(source, nodes=nodes, T_joint_node=torch.from_numpy(stretch).to(before) @ before)
    made = _with_limits(_skeleton(tree, world), flesh.outline.of(tree.joints))
    copy = RiggedAsset(
        name=asset.name,
        mesh=mesh,
        skeleton=made,
        weights=Weights(place[asset.weights.joints.long()], asset.weights.values),
        source=source,
    )
    bare = Reparented(copy, asset, tree.joints, tuple(repairs))
    clips = {name: to_reparented(bare, clip) for name, clip in asset.clips.items()}
    return replace(bare, asset=replace(copy, clips=clips))


def _stretch(reparented: Reparented) -> tuple[Float[ndarray, "joints 4 4"], Float[ndarray, "joints 4 4"]]:
    """The scale that a borrowed rest pose holds at each joint, and its inverse."""
    new, old = reparented.asset.source, reparented.original.source
    stretch = np.tile(np.eye(4), (len(reparented.joints), 1, 1))
    if new is not None and old is not None:
        for i, joint in enumerate(reparented.joints):
            if joint >= 0:
                before = old.T_joint_node[joint].double().numpy()
                stretch[i] = new.T_joint_node[i].double().numpy() @ np.linalg.inv(before)
    return stretch, np.linalg.inv(stretch)


def _motion(skeleton: Skeleton, rest: Float[ndarray, "joints 4 4"], world: ndarray, like: Motion) -> Motion:
    eye = np.tile(np.eye(4), (len(skeleton), 1, 1))
    if not np.isfinite(world).all():
        raise RigError(f"the clip {like.name!r} holds numbers that are not finite")
    return world_to_motion(skeleton.parents, rest, world, eye, fps=like.fps, name=like.name)
