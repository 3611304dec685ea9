"""From a character to articulated rigid bodies: a cuboid per bone (AKD 4.5), small parts carried by their parents."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from jigdoll.errors import RigError
from jigdoll.math.transforms import apply, rigid_inverse, transform
from jigdoll.physics.weighing import DENSITY, inertias, masses, repairs
from jigdoll.rig.anatomy import Anatomy, anatomy_of
from jigdoll.types import Limb, RiggedAsset, Skeleton

LEAST_SHARE = 0.003
"""Leaf bones with less of the volume than this are carried by their parents, unless they stand on the ground."""
THIN = 0.004
"""Least half extent of a cuboid, as a share of the character's size."""
LEG_PARTS = 3
"""The first bones of a leg are never merged."""


@dataclass(frozen=True, eq=False)
class Bodies:
    """Rigid cuboids in a tree of three-axis joints; the first one floats freely. Frames are the joints' own."""

    names: tuple[str, ...]
    joints: tuple[int, ...]
    """The skeleton's joint whose frame each body has; parents before children."""
    parents: tuple[int, ...]
    """Body, -1 for the first."""
    carriers: tuple[int, ...]
    """The body that each joint of the skeleton moves with."""
    T_parent_body: Float[Tensor, "bodies 4 4"]
    """At rest, in the parent's frame (the first one's: in the world) [m]."""
    axes: Float[Tensor, "bodies 3 3"]
    """Columns: the axes of the compound angles, in the body's frame at rest."""
    limits: Float[Tensor, "bodies 3 2"]
    """[rad]."""
    mass: Float[Tensor, " bodies"]
    """[kg]."""
    inertia: Float[Tensor, "bodies 3 3"]
    """About the centre of mass, in the body's frame [kg m^2]."""
    T_body_box: Float[Tensor, "bodies 4 4"]
    """The cuboid's centre, which is the centre of mass, and its axes [m]."""
    half: Float[Tensor, "bodies 3"]
    """Half extents of the cuboid [m]."""
    contacts: Float[Tensor, "bodies points 3"]
    """Points that meet the ground, in the bodies' frames [m]: skin at the rim of a foot's sole and around its top, skin
    towards the cuboid's corners and sides elsewhere."""
    feet: tuple[tuple[int, ...], ...]
    """Per leg, the bodies that stand on the ground."""
    length: float
    """The character's size: the larger of its height and its length from nose to tail at rest [m]."""
    leg_length: float
    """From hip to planted toe at rest, or a half of the body's height without legs [m]."""
    slips: tuple[int, ...] = ()
    """Feet that hardly grip the ground: those of legs which cannot lift them."""
    repairs: tuple[str, ...] = ()
    """What was done to the flesh so that an integrator can hold it, in plain words."""

    def __len__(self) -> int:
        return len(self.joints)

    @property
    def com(self) -> Float[Tensor, "bodies 3"]:
        """Centres of mass in the bodies' frames [m]."""
        return self.T_body_box[:, :3, 3]

    @property
    def corners(self) -> Float[Tensor, "bodies 8 3"]:
        """The cuboids' corners in the bodies' frames [m]."""
        return _corners(self.T_body_box, self.half)

    @property
    def crowds(self) -> Float[Tensor, "bodies points"]:
        """How many contacts of its body are about where each one is, itself included: they share one stiffness."""
        near = torch.cdist(self.contacts, self.contacts) < 0.008 * self.length
        return near.sum(-1).to(self.contacts.dtype)

    @property
    def total_mass(self) -> float:
        return float(self.mass.sum())


def bodies_of(asset: RiggedAsset, **options: Any) -> Bodies:
    """The cuboids of a character whose body nobody has measured yet; options as for `make_bodies`."""
    return make_bodies(anatomy_of(check_flesh(asset)), **options)


def check_flesh(asset: RiggedAsset) -> RiggedAsset:
    """The asset, refused where no bodies can be made of it."""
    if len(asset.skeleton) < 2:
        raise RigError(f"{asset.name}: one joint makes no articulated body; rig the mesh first (jigdoll rig)")
    vertices = asset.mesh.vertices
    if not bool(torch.isfinite(vertices).all() and torch.isfinite(asset.skeleton.T_parent_joint).all()):
        raise RigError(f"{asset.name}: the mesh or the skeleton holds NaN or infinite places; repair the file")
    if not len(vertices) or not float((vertices.amax(0) - vertices.amin(0)).max()) > 0:
        raise RigError(f"{asset.name}: there is no flesh to make bodies of; the mesh has no extent")
    return asset


def make_bodies(
    anatomy: Anatomy, *, density: float = DENSITY, most: int = 26, needs_legs: bool = True, keep: Sequence[str] = ()
) -> Bodies:
    """The cuboids of a character, at most about `most`: leaf bones that are too many or too small join their parents.

    Mass is density times the mesh's volume, shared out by the cuboids' volumes. A character without legs cannot stand
    and is refused, unless `needs_legs` is off (a fish in free space). Joints whose names hold a word of `keep` have
    bodies of their own.
    """
    asset = check_flesh(anatomy.asset)
    skeleton = asset.skeleton
    if needs_legs and not anatomy.legs:
        raise RigError(
            f"{asset.name} has no legs to stand on; simulate it without a ground (jigdoll track --no-ground), "
            "or name its legs left_hip, left_knee ..."
        )
    fitter = _Fitter(
        skeleton,
        torch.from_numpy(anatomy.T_rest),
        asset.mesh.vertices.double(),
        asset.weights.dense(len(skeleton)).double(),
        _soles(anatomy),
        anatomy.body_length,
    )
    own = frozenset(j for j, name in enumerate(skeleton.names) if any(word.lower() in name.lower() for word in keep))
    carriers = _merge(anatomy, fitter, most=most, own=own)
    return _assemble(anatomy, fitter, carriers, density=density)


@dataclass(frozen=True, eq=False)
class _Fitter:
    """What a cuboid is fitted to."""

    skeleton: Skeleton
    T_world_joint: Float[Tensor, "joints 4 4"]
    vertices: Float[Tensor, "vertices 3"]
    dense: Float[Tensor, "vertices joints"]
    low: frozenset[int]
    """Joints of legs whose skin stands on the ground."""
    size: float

    def owners(self, carriers: Sequence[int]) -> Int[Tensor, " vertices"]:
        """The joint (one that carries) that moves each vertex most."""
        merged = torch.zeros_like(self.dense)
        merged.index_add_(1, torch.tensor(carriers), self.dense)
        return merged.argmax(1)

    def fit(self, joint: int, owners: Int[Tensor, " vertices"]) -> tuple[Tensor, Tensor]:
        """The cuboid of one bone in the world, and its half extents."""
        flesh = self.vertices[owners == joint]
        frame = self._frame(joint, flesh)
        place = self.T_world_joint[joint, :3, 3]
        found = len(flesh) >= 4
        points = flesh if found else torch.stack([place, self._end(joint)])
        local = points @ frame
        if found:
            # All of a foot's skin may touch the ground; elsewhere a few stray vertices do not make a body larger.
            stray = 0.005 if joint in self.low else 0.02
            low, high = torch.quantile(local, stray, dim=0), torch.quantile(local, 1 - stray, dim=0)
        else:
            low, high = local.amin(0), local.amax(0)
        if joint in self.low and found:
            low[1] = local[:, 1].min()  # the sole touches the ground exactly where the skin does
        half = (0.5 * (high - low)).clamp_min(THIN * self.size)
        centre = 0.5 * (high + low)
        if joint in self.low and found:
            centre[1] = low[1] + half[1]
        return transform(frame, frame @ centre), half

    def _end(self, joint: int) -> Tensor:
        """Where the bone ends: at the mean of the joint's children, or in the joint itself."""
        children = self.skeleton.children[joint]
        if not children:
            return self.T_world_joint[joint, :3, 3]
        return self.T_world_joint[list(children), :3, 3].mean(0)

    def _frame(self, joint: int, flesh: Tensor) -> Tensor:
        """Columns: across, up, along the bone; level for a sole."""
        way = self._end(joint) - self.T_world_joint[joint, :3, 3]
        if way.norm() < 1e-3 * self.size and len(flesh):
            way = flesh.mean(0) - self.T_world_joint[joint, :3, 3]
        if joint in self.low:
            way = way * way.new_tensor([1.0, 0.0, 1.0])
        if way.norm() < 1e-3 * self.size:
            way = way.new_tensor([0.0, 0.0, 1.0])
        along = way / way.norm()
        side = along.new_tensor([1.0, 0.0, 0.0] if abs(float(along[0])) < 0.8 else [0.0, 0.0, -1.0])
        if joint in self.low:
            side = torch.linalg.cross(along.new_tensor([0.0, 1.0, 0.0]), along)
        side = side - (side @ along) * along
        side = side / side.norm()
        return torch.stack([side, torch.linalg.cross(along, side), along], dim=1)


def _soles(anatomy: Anatomy) -> frozenset[int]:
    """The joints of legs (without the first) that carry the skin which stands on the ground, toes by their foot."""
    parents, found = anatomy.skeleton.parents, set()
    for leg in anatomy.legs:
        chain = leg.parts.limb.joints
        for joint in leg.contact_joints.tolist():
            while joint >= 0 and joint not in chain:
                joint = parents[joint]
            found.update({joint} & set(chain[1:]))
    return frozenset(found)


def _merge(anatomy: Anatomy, fitter: _Fitter, *, most: int, own: frozenset[int]) -> list[int]:
    """The joint that carries each joint: itself, or an ancestor (for joints above the first body: that body).

    Joints without flesh go first, then ends of limbs, a left one together with its right one.
    """
    skeleton, limbs = anatomy.skeleton, anatomy.limbs
    count, parents = len(skeleton), skeleton.parents
    owners = torch.from_numpy(anatomy.owners)
    fleshy = torch.bincount(owners, minlength=count) >= 4
    root = 0
    while not bool(fleshy[root]) and len(skeleton.children[root]) == 1:
        root = skeleton.children[root][0]
    carriers = list(range(count))
    for joint in range(count):
        if not _below(skeleton, joint, root):
            carriers[joint] = root
        elif joint != root and not bool(fleshy[joint]):
            carriers[joint] = carriers[parents[joint]]
    volume = [float(8 * fitter.fit(j, owners)[1].prod()) if bool(fleshy[j]) else 0.0 for j in range(count)]
    total = max(sum(volume), 1e-30)
    group = {j: (limb.kind, limb.rank, i) for limb in limbs for i, j in enumerate(limb.joints)}
    steps = {j: i for limb in limbs if limb.kind == "leg" for i, j in enumerate(limb.joints)}
    kept = {j for limb in limbs if limb.kind == "leg" for j in _down_to_sole(limb, fitter.low)} | own

    def ends() -> dict[object, list[int]]:
        alive = {j for j in range(count) if carriers[j] == j}
        busy = {carriers[parents[j]] for j in alive if j != root}
        groups: dict[object, list[int]] = {}
        for joint in sorted(alive - busy - {root}):
            groups.setdefault(group.get(joint, joint), []).append(joint)
        return groups

    def share(joints: Sequence[int]) -> float:
        standing = any(steps.get(joint, 0) >= LEG_PARTS or joint in fitter.low for joint in joints)
        return max(volume[joint] for joint in joints) / total * (4.0 if standing else 1.0)

    while True:
        loose = [js for js in ends().values() if not kept.intersection(js)]
        least = min(loose, key=share, default=None)
        bodies = sum(carriers[j] == j for j in range(count))
        if least is None and bodies > most:  # eight legs: their soles after all
            spare = [js for js in ends().values() if all(steps.get(j, 0) >= LEG_PARTS and j not in own for j in js)]
            least = min(spare, key=share, default=None)
        if least is None or (share(least) >= LEAST_SHARE and bodies <= most):
            return carriers
        for joint in least:
            into = carriers[parents[joint]]
            carriers = [into if carrier == joint else carrier for carrier in carriers]


def _down_to_sole(leg: Limb, low: frozenset[int]) -> tuple[int, ...]:
    """The joints of a leg that are never merged: the first ones, and on to the first that stands on the ground."""
    sole = next((place + 1 for place, joint in enumerate(leg.joints) if joint in low), len(leg.joints))
    return leg.joints[: max(LEG_PARTS, sole)]


def _below(skeleton: Skeleton, joint: int, ancestor: int) -> bool:
    while joint >= 0:
        if joint == ancestor:
            return True
        joint = skeleton.parents[joint]
    return False


def _assemble(anatomy: Anatomy, fitter: _Fitter, carriers: list[int], *, density: float) -> Bodies:
    """Fit the cuboids of the joints that are left, and weigh them."""
    skeleton, T = anatomy.skeleton, fitter.T_world_joint
    legs = [leg.parts.limb.joints for leg in anatomy.legs]
    joints = [j for j in range(len(skeleton)) if carriers[j] == j]
    body = {joint: i for i, joint in enumerate(joints)}
    owners = fitter.owners(carriers)
    boxes, halves = zip(*(fitter.fit(joint, owners) for joint in joints), strict=True)
    half, T_world_box = torch.stack(halves), torch.stack(boxes)
    parents = [-1 if i == 0 else body[carriers[skeleton.parents[j]]] for i, j in enumerate(joints)]
    mass, plain = masses(anatomy.asset, half, parents, density=density)
    names = tuple(skeleton.names[j] for j in joints)
    T_body = T[joints]
    T_body_box = rigid_inverse(T_body) @ T_world_box
    above = T_body[[max(p, 0) for p in parents]]
    T_parent_body = rigid_inverse(above) @ T_body
    T_parent_body[0] = T_body[0]
    feet = tuple(tuple(dict.fromkeys(body[carriers[j]] for j in leg if j in fitter.low)) for leg in legs)
    feet = tuple(foot or (body[carriers[leg[-1]]],) for foot, leg in zip(feet, legs, strict=True))
    return Bodies(
        names=names,
        joints=tuple(joints),
        parents=tuple(parents),
        carriers=tuple(body[c] for c in carriers),
        T_parent_body=T_parent_body,
        axes=skeleton.axes[joints].double(),
        limits=skeleton.limits[joints].double(),
        mass=mass,
        inertia=inertias(mass, half, T_body_box[:, :3, :3]),
        T_body_box=T_body_box,
        half=half,
        contacts=_contacts(fitter, owners, joints, T_body_box, half, {j for foot in feet for j in foot}),
        feet=feet,
        length=anatomy.body_length,
        leg_length=anatomy.leg_length,
        repairs=repairs(names, len(skeleton), mass, plain, half),
    )


def _corners(T_body_box: Float[Tensor, "bodies 4 4"], half: Float[Tensor, "bodies 3"]) -> Float[Tensor, "bodies 8 3"]:
    signs = torch.cartesian_prod(*[half.new_tensor([-1.0, 1.0])] * 3)
    return apply(T_body_box, signs * half[:, None])


def _contacts(
    fitter: _Fitter,
    owners: Int[Tensor, " vertices"],
    joints: Sequence[int],
    T_body_box: Float[Tensor, "bodies 4 4"],
    half: Float[Tensor, "bodies 3"],
    feet: set[int],
) -> Float[Tensor, "bodies points 3"]:
    """The skin's outermost points: downwards to eight sides and around the top on a foot, which may come to stand on
    its toes or fold under; towards the cuboid's corners and four of its sides elsewhere."""
    signs = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0], dtype=torch.float64)] * 3)
    sides = torch.tensor([(0.0, y, z) for y, z in ((1, 0), (-1, 0), (0, 1), (0, -1))], dtype=torch.float64)
    diagonal = torch.cat([signs, sides])
    # Along the sole's rim, and further up at toe and heel, which roll over the ground.
    rim = [(x, -1.2, z) for x in (-0.6, 0.6) for z in (-0.8, 0.8)] + [(-1.0, -1.0, 0.0), (1.0, -1.0, 0.0)]
    top = [(0.0, 1.0, 1.0), (0.0, 1.0, -1.0), (-1.0, 1.0, 0.0), (1.0, 1.0, 0.0)]
    down = torch.tensor([*rim, (0.0, -0.35, 1.0), (0.0, -0.35, -1.0), *top], dtype=torch.float64)
    corners = _corners(T_body_box, half)
    points = torch.cat([corners, apply(T_body_box, half[:, None] * sides)], 1)
    for body, joint in enumerate(joints):
        skin = fitter.vertices[owners == joint]
        if len(skin) >= 4:
            R_world_box = fitter.T_world_joint[joint, :3, :3] @ T_body_box[body, :3, :3]
            ways = down if body in feet else diagonal @ R_world_box.T
            points[body] = apply(rigid_inverse(fitter.T_world_joint[joint]), skin[(skin @ ways.T).argmax(0)])
    return points
