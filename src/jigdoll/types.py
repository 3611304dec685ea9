"""The nouns: what flows between the stages of jigdoll.

World is glTF's: right-handed, +Y up, the character faces +Z, the ground is y = 0, metres.
`T_a_b` maps coordinates of frame b to frame a. Quaternions are wxyz.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from jigdoll.errors import RigError


@dataclass(frozen=True, eq=False)
class Skeleton:
    """A tree of joints at rest: the root first, parents before their children.

    A joint moves the bones that leave it. A leaf joint that carries no weight marks the tip of its parent's bone.
    """

    names: tuple[str, ...]
    """Unique joint names."""
    parents: tuple[int, ...]
    """Parent of each joint, -1 for the root."""
    T_parent_joint: Float[Tensor, "joints 4 4"]
    """Rest transform of each joint in its parent's frame (the root's: in the world), rigid, [m]."""
    axes: Float[Tensor, "joints 3 3"]
    """Columns: the three axes of the joint's compound angles (bend, swing, twist), in the joint's rest frame."""
    limits: Float[Tensor, "joints 3 2"]
    """Lower and upper bound of each compound angle [rad]; equal bounds lock an axis."""

    def __post_init__(self) -> None:
        if not self.names:
            raise RigError("a skeleton needs at least one joint")
        if len(set(self.names)) != len(self.names):
            twice = sorted({name for name in self.names if self.names.count(name) > 1})
            raise RigError(f"joint names must be unique, these are not: {', '.join(twice[:5])}")
        if len(self.parents) != len(self.names) or self.parents[0] != -1:
            raise RigError("a skeleton needs one parent per joint, and -1 for the first joint, its only root")
        if any(not 0 <= parent < joint for joint, parent in enumerate(self.parents) if joint):
            raise RigError("each joint of a skeleton must come after its parent")

    def __len__(self) -> int:
        return len(self.names)

    def index(self, name: str) -> int:
        """The joint of that name."""
        if name not in self.names:
            raise RigError(f"no joint is called {name!r}; the joints are {', '.join(self.names)}")
        return self.names.index(name)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """The children of each joint; counted once."""
        kids: list[list[int]] = [[] for _ in self.names]
        for joint, parent in enumerate(self.parents):
            if parent >= 0:
                kids[parent].append(joint)
        return tuple(tuple(k) for k in kids)


@dataclass(frozen=True, eq=False)
class Pose:
    """How a skeleton stands: identity rotations and no displacement are the rest pose on every rig."""

    root: Float[Tensor, "*batch 3"]
    """Displacement of the root from its rest place [m], world."""
    rotations: Float[Tensor, "*batch joints 4"]
    """Local rotations (unit quaternions wxyz), applied after the rest transform: T_parent_joint @ R."""
    offsets: Float[Tensor, "*batch joints 3"] | None = None
    """Displacement of each joint in its rest frame [m]: only clips of files have it; the root's is zero."""
    scales: Float[Tensor, "*batch joints 3"] | None = None
    """Scale of each joint along its own axes, inherited by its children: only clips of files have it."""

    def __getitem__(self, index: int | slice | Tensor | None) -> "Pose":
        """Some frames of it, all fields alike: `pose[5]`, `pose[3:9]`, `pose[chosen]`; `pose[None]` is one frame."""
        offsets = None if self.offsets is None else self.offsets[index]
        scales = None if self.scales is None else self.scales[index]
        return Pose(self.root[index], self.rotations[index], offsets, scales)


@dataclass(frozen=True, eq=False)
class Motion:
    """A pose per frame at a constant rate."""

    pose: Pose
    """Batch axis = frames."""
    fps: float
    name: str = "motion"

    def __len__(self) -> int:
        return self.pose.root.shape[0]

    @property
    def seconds(self) -> float:
        """Time from the first frame to the last."""
        return max(len(self) - 1, 0) / self.fps


@dataclass(frozen=True, eq=False)
class Material:
    """How a set of faces looks."""

    name: str
    color: tuple[float, float, float, float]
    """Base colour factor, linear RGBA, multiplies the texture."""
    texture: UInt8[Tensor, "height width 4"] | None = None
    """Base colour image, sRGB; the row of v = 0 first (glTF's order)."""


@dataclass(frozen=True, eq=False)
class Mesh:
    """A triangle mesh at rest."""

    vertices: Float[Tensor, "vertices 3"]
    """[m], world, rest (bind) pose."""
    faces: Int[Tensor, "faces 3"]
    """Vertex indices, counter-clockwise from outside."""
    colors: Float[Tensor, "vertices 3"]
    """Painted or sampled base colour per vertex, sRGB in 0..1."""
    uvs: Float[Tensor, "vertices 2"] | None = None
    materials: tuple[Material, ...] = ()
    face_materials: Int[Tensor, " faces"] | None = None
    """Index into `materials` per face."""


@dataclass(frozen=True, eq=False)
class Weights:
    """Skinning weights, sparse: each point follows a few joints. Rows sum to one; unused slots have value zero."""

    joints: Int[Tensor, "points influences"]
    values: Float[Tensor, "points influences"]

    @staticmethod
    def from_dense(dense: Float[Tensor, "points joints"], *, influences: int | None = None) -> "Weights":
        """Keep the strongest influences of each row and renormalise."""
        most = int((dense > 0).sum(1).max()) if dense.shape[0] else 1
        count = max(1, min(influences or most, most))
        values, joints = dense.topk(count, dim=1)
        values = values.clamp_min(0)
        total = values.sum(1, keepdim=True)
        if bool((total <= 0).any()):
            raise RigError("some points have no weight at all; every row of weights needs a positive sum")
        values = values / total
        return Weights(torch.where(values > 0, joints, 0), values)

    def dense(self, num_joints: int) -> Float[Tensor, "points joints"]:
        """One column per joint."""
        out = self.values.new_zeros(self.values.shape[0], num_joints)
        return out.scatter_add(1, self.joints.long(), self.values)


@dataclass(frozen=True, eq=False)
class Source:
    """Where an asset came from, so that a clip can be written back into the original file."""

    path: Path
    format: Literal["gltf", "fbx", "obj", "usd", "bvh"]
    T_world_file: Float[Tensor, "4 4"]
    """Similarity from the file's own frame and unit to ours."""
    nodes: tuple[int, ...]
    """The file's node behind each joint, -1 where we added the joint."""
    T_joint_node: Float[Tensor, "joints 4 4"]
    """The file's node in our rigid joint frame (the scale that its rest holds):
    T_file_node = inverse(T_world_file) @ T_world_joint @ T_joint_node."""
    repairs: tuple[str, ...] = ()
    """What was wrong with the file and how it was mended."""


@dataclass(frozen=True, eq=False)
class RiggedAsset:
    """A character: a mesh, a skeleton, the weights that tie them. A bare mesh has a skeleton of one joint.

    Files of motion alone have an empty mesh (`has_mesh` is False); only `asset.load.load_clips` returns such assets.
    """

    name: str
    mesh: Mesh
    skeleton: Skeleton
    weights: Weights
    clips: Mapping[str, Motion] = field(default_factory=dict)
    """The clips that the file holds, by name."""
    source: Source | None = None

    def __post_init__(self) -> None:
        if self.weights.values.shape[0] != self.mesh.vertices.shape[0]:
            raise RigError(f"{self.weights.values.shape[0]} rows of weights for {self.mesh.vertices.shape[0]} vertices")
        if self.weights.joints.numel() and int(self.weights.joints.max()) >= len(self.skeleton):
            raise RigError("weights name a joint that the skeleton does not have")

    @property
    def has_mesh(self) -> bool:
        """Whether there is a body to draw, to weigh and to judge."""
        return len(self.mesh.faces) > 0

    @property
    def is_rigged(self) -> bool:
        """Whether there is anything to pose."""
        return len(self.skeleton) > 1


@dataclass(frozen=True, eq=False)
class SkinnedGaussians:
    """Splats at rest, bound to a skeleton (gsplat's field names): the only splats that can be posed."""

    means: Float[Tensor, "gaussians 3"]
    quats: Float[Tensor, "gaussians 4"]
    """wxyz."""
    scales: Float[Tensor, "gaussians 3"]
    """Standard deviations along the splat's own axes [m]."""
    opacities: Float[Tensor, " gaussians"]
    colors: Float[Tensor, "gaussians 3"] | Float[Tensor, "gaussians bands 3"]
    """RGB in 0..1, or spherical harmonics coefficients."""
    weights: Weights


@dataclass(frozen=True, eq=False)
class Gaussians:
    """Splats as a rasterizer draws them; the leading batch is frames and views."""

    means: Float[Tensor, "*batch gaussians 3"]
    covariances: Float[Tensor, "*batch gaussians 3 3"]
    """Not always a rotation of the rest one (AKD Eq. 2)."""
    opacities: Float[Tensor, "*#batch gaussians"]
    colors: Float[Tensor, "*#batch gaussians 3"] | Float[Tensor, "*#batch gaussians bands 3"]


@dataclass(frozen=True, eq=False)
class Camera:
    """A pinhole camera with OpenCV's axes: +X right, +Y down, +Z into the picture."""

    T_camera_world: Float[Tensor, "*batch 4 4"]
    K: Float[Tensor, "*#batch 3 3"]
    """[px]."""
    width: int
    height: int


@dataclass(frozen=True, eq=False)
class Rendering:
    """What a rasterizer returns."""

    rgba: Float[Tensor, "*batch height width 4"]
    """Colour premultiplied by alpha, and alpha: composite with `rgb + (1 - a) * background`."""
    depth: Float[Tensor, "*batch height width"]
    """Alpha-weighted camera-space z [m]; divide by alpha for the mean depth."""


@dataclass(frozen=True)
class Limb:
    """A chain of joints that works as one: a leg, an arm, a wing, a fin, a neck with its head, a tail."""

    kind: Literal["leg", "arm", "wing", "fin", "head", "tail", "spine"]
    side: Literal["left", "right", "middle"]
    rank: int
    """0 for the foremost of its kind on its side, counting backwards."""
    joints: tuple[int, ...]
    """From the body outwards; the last one is the end (foot, hand, head, tip)."""


Side = Literal["left", "right"]
WordKind = Literal["noun", "action", "side", "tempo", "way", "times", "style", "look", "thing", "filler", "other"]


@dataclass(frozen=True)
class KnownWord:
    """A word or phrase of a sentence whose meaning is known."""

    form: str
    """As it is written there, in lower case."""
    base: str
    """As it stands in the tables: "sat down" is "sit down"."""
    kind: WordKind
    meaning: str = ""
    """The action, species, side, tempo or style that it names."""
    tempo: float = 0.0
    """Of a verb that is slow or fast itself."""


@dataclass(frozen=True)
class RequestedAction:
    """One thing that a sentence asks for."""

    name: str
    """A row of `language.actions`."""
    word: str
    """The sentence's own word for it."""
    tempo: float = 0.0
    """-1..1, below zero for slow; zero where nothing is said."""
    side: Side | None = None
    way: Literal["backward", "sideways", "circle", "turning"] | None = None
    """Where it does not go straight ahead; turning: to the `side`, by a quarter of a turn."""
    times: int = 1


@dataclass(frozen=True)
class Request:
    """What was understood of a sentence (`language.read`)."""

    prompt: str
    words: tuple[KnownWord, ...]
    """All words that are known, in order."""
    noun: str | None
    """Who moves, in the sentence's own word, in the singular."""
    species: str | None
    """The built-in species that the noun means or comes nearest to."""
    family: str | None
    """How the body is built: quadruped, humanoid, insect ..."""
    actions: tuple[RequestedAction, ...]
    """In the order of the sentence."""
    action: RequestedAction | None
    """The one that leads where only one can be shown: who stands and waves, waves."""
    style: tuple[str, ...]
    """Moods and manners: sad, drunk, like a robot."""
    looks: tuple[str, ...]
    """Adjectives of the body."""
    unknown: tuple[str, ...]
    """Words that are not known."""

    @property
    def tempo(self) -> float:
        """Of the leading action."""
        return self.action.tempo if self.action else 0.0

    @property
    def side(self) -> Side | None:
        """The first side that is named."""
        return next((action.side for action in self.actions if action.side), None)


@dataclass(frozen=True)
class PriorDefaults:
    """What a video prior was trained to see, and how to guide with it."""

    look: Literal["clay", "motion", "color"]
    """Splats as one shaded material, coloured by how they move, or in their own colours (`render.draw.ClipStyle`)."""
    frames: int
    fps: float
    width: int
    """[px]."""
    height: int
    """[px]."""
    guidance: float
    """Scale of classifier-free guidance: null + guidance (text - null), on clean estimates."""
    levels: tuple[float, float]
    """Lowest and highest noise level worth distilling from."""
    negative_prompt: str = ""
    """What the guided text is set against."""
    form: Literal["sds", "csd", "flow"] = "sds"
    """The form of guidance that suits the prior (see `distill.guidance`)."""
    reference_image: bool = False
    """Whether `denoise` also looks at the character at rest (`render.draw.draw_reference_image`)."""
    iterations: int = 120
    """Steps that a motion from rest takes."""
    actions: frozenset[str] | None = None
    """The rows of `language.actions` that it was trained on; None where it may know any."""


JobVerb = Literal["animate", "rig", "track", "render", "retarget"]


@dataclass(frozen=True)
class Job:
    """One request that a runner carries out apart: a verb with its options, a folder of its own, what it may take."""

    name: str
    """Of the job, and of its folder."""
    verb: JobVerb
    options: Mapping[str, Any]
    """The verb's own (`jobs.verbs`), as JSON holds them."""
    folder: Path
    """Where its results go."""
    mark: str
    """Of all that is asked, the content of the files that are named included: another mark is another job."""
    cpus: float = 1.0
    gpus: float = 0.0
    limit: float | None = None
    """Longest time on the clock [s]."""
    retries: int = 1
    """How often it is started again after its process died or took too long."""


@dataclass(frozen=True)
class Outcome:
    """How a job ended."""

    state: Literal["done", "failed", "died", "late", "cancelled"]
    """Died: its process ended before it did. Late: beyond its limit. Failed: it said itself why it cannot be done."""
    reason: str = ""
    """One line for a person, where it is not done."""
    seconds: float = 0.0
    """On the clock, from its start [s]."""
    cpu_seconds: float = 0.0
    """Processor time of the job itself, where it lived to tell."""
