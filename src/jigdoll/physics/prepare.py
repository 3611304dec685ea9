"""What the tracker needs of a character: its working copy, measured, at a size that fits its tempo."""

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.contacts import ground_velocity, stays_in_place, with_travel
from jigdoll.errors import RepairWarning
from jigdoll.kinematics import forward
from jigdoll.language.read import read
from jigdoll.physics.bodies import Bodies, check_flesh, make_bodies
from jigdoll.physics.config import TrackConfig
from jigdoll.physics.reference import feet_of, in_double, nearest_rigid, pose_in_double
from jigdoll.rig.anatomy import Anatomy, anatomy_of
from jigdoll.rig.reparent import Reparented, reparent, to_original, to_reparented
from jigdoll.types import Motion, RiggedAsset, Skeleton

LONGEST_LEG = 1.2
"""Of a body as it is simulated [m]."""
FREE = {"fly", "hover", "glide", "swim"}
"""What bodies do that air or water carries."""
GIANT = 0.8
"""Bodies that would be shrunk by less than this stay as they are."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """A character as the tracker simulates it, and the way back to the file's."""

    anatomy: Anatomy
    """Of the working copy; no giant."""
    bodies: Bodies
    scale: float
    """Its size, as a share of the character's."""
    reparented: Reparented | None = None
    """The way back to the file's own joints; none where the character came as its working copy."""

    @property
    def asset(self) -> RiggedAsset:
        """The working copy: whole limbs, a rest pose that stands, limits and axes by role."""
        return self.anatomy.asset

    def config(self, config: TrackConfig, motion: Motion) -> TrackConfig:
        """The settings for a clip: what flies or swims, by its name or by its body, has no ground under it."""
        asked = read(" ".join(re.findall("[A-Za-z]+", motion.name)))
        free = self.anatomy.kind in ("fish", "flyer") or any(action.name in FREE for action in asked.actions)
        return replace(config, ground=False) if free else config

    def clip(self, motion: Motion) -> Motion:
        """A clip of the character as one of the working copy."""
        own = motion if self.reparented is None else to_reparented(self.reparented, motion)
        return _scaled_clip(own, self.scale)

    def back(self, motion: Motion) -> Motion:
        """A clip of the working copy as one of the character."""
        own = _scaled_clip(motion, 1 / self.scale)
        return own if self.reparented is None else to_original(self.reparented, own)


def prepare(asset: RiggedAsset, *, needs_legs: bool = False, keep: Sequence[str] = ()) -> Prepared:
    """The working copy of a character, measured, with its bodies."""
    reparented = reparent(check_flesh(asset))
    return replace(sized(anatomy_of(reparented.asset), needs_legs=needs_legs, keep=keep), reparented=reparented)


def sized(anatomy: Anatomy, *, needs_legs: bool = False, keep: Sequence[str] = ()) -> Prepared:
    """The bodies of a working copy that is measured already, at a size that fits the tempo of clips.

    Files have their own units, and clips are drawn at the tempo of bodies of our size: a dinosaur of thirty metres that
    takes a step a second would need many times its weight. So no leg is longer than a horse's.
    """
    scale = min(1.0, LONGEST_LEG / anatomy.leg_length)
    if scale >= GIANT:
        return Prepared(anatomy, make_bodies(anatomy, needs_legs=needs_legs, keep=keep), 1.0)
    length = anatomy.body_length
    warnings.warn(
        f"{anatomy.asset.name}: {length:.1f} m long; simulated as if it were {scale * length:.1f} m, which fits the "
        "tempo of its clips",
        RepairWarning,
        stacklevel=2,
    )
    small = anatomy_of(_scaled(anatomy.asset, scale))
    return Prepared(small, make_bodies(small, needs_legs=needs_legs, keep=keep), scale)


def _scaled(asset: RiggedAsset, scale: float) -> RiggedAsset:
    T = asset.skeleton.T_parent_joint.clone()
    T[:, :3, 3] *= scale
    clips = {name: _scaled_clip(clip, scale) for name, clip in asset.clips.items()}
    mesh = replace(asset.mesh, vertices=asset.mesh.vertices * scale)
    return replace(asset, mesh=mesh, skeleton=replace(asset.skeleton, T_parent_joint=T), clips=clips)


def _scaled_clip(motion: Motion, scale: float) -> Motion:
    if scale == 1.0:
        return motion
    pose = motion.pose
    offsets = None if pose.offsets is None else pose.offsets * scale
    return replace(motion, pose=replace(pose, root=pose.root * scale, offsets=offsets))


def running_ground(bodies: Bodies, skeleton: Skeleton, motion: Motion) -> Float[Tensor, "2"]:
    """How the ground runs under a clip that walks in place [m/s], along x and z; zero for all other clips."""
    if not bodies.feet or not stays_in_place(motion.pose.root, motion.fps, length=bodies.length):
        return torch.zeros(2, dtype=torch.float64)
    T = nearest_rigid(bodies, forward(in_double(skeleton), pose_in_double(motion.pose))[:, list(bodies.joints)])
    return ground_velocity(feet_of(bodies, T, motion.fps, bodies.feet))


def on_its_way(motion: Motion, ground: Float[Tensor, "2"]) -> Motion:
    """The clip with the ground's speed given to the body: feet that slid back under it stand."""
    return with_travel(motion, -ground) if bool(ground.any()) else motion


def on_the_spot(motion: Motion, ground: Float[Tensor, "2"]) -> Motion:
    """The inverse of `on_its_way`."""
    return with_travel(motion, ground) if bool(ground.any()) else motion
