"""A body as the pose space sees it: a stick figure of parts, measured from its Anatomy alone.

Each part (trunk, neck, tail, leg, arm, wing, fin) is a row of bones that hangs on the chest or on the pelvis. Lengths
are in leg lengths, right limbs are mirrored, and bones point where they do when all turns are the identity, so that
`stick_places` turns the numbers of limb space into places.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from torch import Tensor

from jigdoll.errors import RigError
from jigdoll.rig.anatomy import Anatomy, BodyKind, LimbParts
from jigdoll.rig.retarget.limb_motion import (
    NECK,
    TAIL,
    TRUNK,
    canonical_turn,
    chain_end,
    limb_bones,
    pelvis_height,
    trunk_of,
)
from jigdoll.rig.retarget.tokens import TokenKind
from jigdoll.types import Limb

KINDS: tuple[TokenKind, ...] = ("trunk", "neck", "tail", "leg", "arm", "wing", "fin")
BODY_KINDS: tuple[BodyKind, ...] = (
    *("person", "biped", "bird", "quadruped", "insect", "spider", "flyer", "fish", "snake", "other"),
)
STATIONS = 8
"""The most stations that a part has."""
CHANNELS = 6 * STATIONS + 4
"""Per part and frame: two columns of each station's turn; the trunk's root channels, or a limb's end and contact."""
PART_FEATURES = 56
REST_FEATURES = 6 * STATIONS
"""Of a part: how its turns at rest differ from none."""
BODY_FEATURES = len(BODY_KINDS) + 12
MOST_PARTS = 24
"""A body with more parts is simplified: its last limbs stay relaxed."""
NO_TURN = np.array([1.0, 0.0, 0.0, 0.0, 1.0, 0.0])
"""The two columns of no turn."""
MIRROR = np.diag([-1.0, 1.0, 1.0])
SHORT = 0.3
"""Columns of a turn shorter than this are taken as they are: an estimate between far turns has no direction."""


@dataclass(frozen=True, eq=False)
class Figure:
    """The parts of one body."""

    kind: BodyKind
    kinds: tuple[TokenKind, ...]
    limbs: tuple[Limb, ...]
    """Of the last parts, one each."""
    rests: Float[ndarray, "limbs 5 3 3"]
    """Of the limbs: what turns the canonical bone into the resting bone."""
    has: Bool[ndarray, "parts 8"]
    bones: Float[ndarray, "parts 8 3"]
    """The bone that each station turns [leg lengths]; zero where nothing marks its end."""
    attach: Float[ndarray, "parts 3"]
    """Where a part begins, seen from the chest or the pelvis [leg lengths]."""
    on_chest: Bool[ndarray, " parts"]
    mirrored: Bool[ndarray, " parts"]
    length: Float[ndarray, " parts"]
    """Of a limb from its root to its end [leg lengths]."""
    hip: float
    """Height of the pelvis at rest [leg lengths]."""
    rise: float
    """How much higher the pelvis is when the root's height grows by one [leg lengths]."""
    span: float
    """Length of the body [leg lengths]."""
    features: Float[ndarray, "parts features"]
    body: Float[ndarray, " body_features"]
    grounded: bool

    def __len__(self) -> int:
        return len(self.kinds)

    @cached_property
    def rest(self) -> Float[ndarray, "parts rest_features"]:
        """The turns of the limbs at rest, as columns, less those of no turn: how a body carries itself, often."""
        rows = np.zeros((len(self), STATIONS, 6))
        lead = len(self) - len(self.limbs)
        for i, turns in enumerate(self.rests, lead):
            turns = np.where(self.mirrored[i], MIRROR @ turns @ MIRROR, turns)
            last = np.eye(3)
            for station in np.flatnonzero(self.has[i, :5]):
                local = last.T @ turns[station]
                rows[i, station] = np.concatenate([local[:, 0], local[:, 1]]) - NO_TURN
                last = turns[station]
        return rows.reshape(len(self), REST_FEATURES)


def figure_of(anatomy: Anatomy) -> Figure:
    """The stick figure of a body; refused where there is nothing to speak of."""
    if len(anatomy.skeleton) < 3:
        raise RigError(f"{anatomy.asset.name}: {len(anatomy.skeleton)} joints make no body; the pose space needs three")
    P, unit = _neutral_places(anatomy), _unit(anatomy)
    parts = anatomy.parts[: MOST_PARTS - 3]
    trunk = trunk_of(anatomy)
    chains = [("trunk", trunk, TRUNK)]
    chains += [("neck", anatomy.neck, NECK)] if anatomy.neck else []
    chains += [("tail", anatomy.tail, TAIL)] if anatomy.tail else []
    chest, pelvis = P[chain_end(anatomy, trunk)], P[anatomy.pelvis]
    last = _last_ranks(parts)
    kinds = (*(kind for kind, _, _ in chains), *(part.limb.kind for part in parts))
    on_chest = [kind == "neck" for kind, _, _ in chains] + [
        p.limb.kind in ("arm", "wing") or (p.limb.kind == "leg" and p.limb.rank < last[p.limb.kind, p.limb.side])
        for p in parts
    ]
    bones, has = np.zeros((len(kinds), STATIONS, 3)), np.zeros((len(kinds), STATIONS), bool)
    attach, starts = np.zeros((len(kinds), 3)), [chain[0] for _, chain, _ in chains] + [_first(p) for p in parts]
    for i, (kind, chain, count) in enumerate(chains):
        shift = int(kind == "trunk")
        line = P[[*chain, chain_end(anatomy, chain)]]
        bones[i, shift : shift + count] = _chain_bones(line, count, kind) / unit
        has[i, : shift + count] = True
    for i, part in enumerate(parts, len(chains)):
        bones[i, :5], has[i, :5] = _limb_bones(anatomy, part)
    bones[len(chains) :] /= unit
    for i, start in enumerate(starts):
        attach[i] = (P[start] - (chest if on_chest[i] else pelvis)) / unit
    attach[0] = 0.0
    mirrored = np.array([False] * len(chains) + [p.limb.side == "right" for p in parts])
    bones[mirrored, :, 0] *= -1
    attach[mirrored, 0] *= -1
    length = np.array(
        [np.linalg.norm(b, axis=1).sum() for b in bones[: len(chains)]] + [p.length / unit for p in parts]
    )
    limbs = tuple(Limb(p.limb.kind, p.limb.side, p.limb.rank, ()) for p in parts)
    flesh = np.array(
        [_flesh(anatomy, joints) for joints in (*(c for _, c, _ in chains), *(p.limb.joints for p in parts))]
    )
    return Figure(
        kind=anatomy.kind,
        kinds=kinds,  # pyright: ignore[reportArgumentType]
        limbs=limbs,
        rests=np.array([[canonical_turn(anatomy, p, s) for s in range(5)] for p in parts]).reshape(-1, 5, 3, 3),
        has=has,
        bones=bones,
        attach=attach,
        on_chest=np.array(on_chest),
        mirrored=mirrored,
        length=length,
        hip=pelvis_height(anatomy) / unit,
        rise=pelvis_height(anatomy) / unit if anatomy.grounded else 1.0,
        span=anatomy.body_length / unit,
        features=part_features(kinds, limbs, has, bones, attach, np.array(on_chest), flesh / unit),
        body=_body_features(anatomy, bones, kinds),
        grounded=anatomy.grounded,
    )


def _unit(anatomy: Anatomy) -> float:
    """The body's own length in which limb space measures ways over the ground [m]."""
    return anatomy.leg_length if anatomy.grounded else anatomy.body_length


def _neutral_places(anatomy: Anatomy) -> Float[ndarray, "joints 3"]:
    """Joints where the body has them as it carries itself."""
    rest, R = anatomy.T_rest, anatomy.R_neutral
    P = rest[:, :3, 3].copy()
    for joint, parent in enumerate(anatomy.skeleton.parents):
        if parent >= 0:
            P[joint] = P[parent] + R[parent] @ rest[parent, :3, :3].T @ (rest[joint, :3, 3] - rest[parent, :3, 3])
    return P


def _last_ranks(parts: Sequence[LimbParts]) -> dict[tuple[str, str], int]:
    last: dict[tuple[str, str], int] = {}
    for part in parts:
        key = part.limb.kind, part.limb.side
        last[key] = max(part.limb.rank, last.get(key, 0))
    return last


def _first(part: LimbParts) -> int:
    return part.before[-1] if part.before else part.root


def _chain_bones(line: Float[ndarray, "ends 3"], count: int, kind: str) -> Float[ndarray, "stations 3"]:
    """What each station of a chain turns: the piece from half-way after the one before to half-way to the next."""
    way = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(line, axis=0), axis=1))])
    if way[-1] < 1e-9:
        way = np.linspace(0, 1, len(line))
    cuts = np.clip((np.arange(count + 1) - 0.5) / (count - 1), 0, 1) * way[-1]
    points = np.stack([np.interp(cuts, way, line[:, k]) for k in range(3)], 1)
    bones = np.diff(points, axis=0)
    if np.linalg.norm(bones[-1]) < 1e-6 and kind != "trunk":
        bones[-1] = [0.0, 0.0, 1e-3 if kind == "neck" else -1e-3]
    return bones


def _limb_bones(anatomy: Anatomy, part: LimbParts) -> tuple[Float[ndarray, "5 3"], Bool[ndarray, " 5"]]:
    """The bones of a limb when all its turns are the identity [m], and which stations there are."""
    P = anatomy.T_rest[:, :3, 3]
    bones, has = np.zeros((5, 3)), np.zeros(5, bool)
    for station, bone in enumerate(limb_bones(part)):
        if bone is None:
            continue
        has[station] = True
        if bone[1] >= 0:
            bones[station] = canonical_turn(anatomy, part, station).T @ (P[bone[1]] - P[bone[0]])
    return bones, has


def _flesh(anatomy: Anatomy, joints: Sequence[int]) -> float:
    """How far the skin of these joints lies from their bones, in the middle [m]; -1 without skin."""
    vertices = anatomy.asset.mesh.vertices.detach().double().numpy()
    if not len(vertices):
        return -1.0
    P = anatomy.T_rest[:, :3, 3]
    found = []
    for joint, child in [*pairwise(joints), (joints[-1], joints[-1])]:
        mine = vertices[anatomy.owners == joint]
        if not len(mine):
            continue
        way = P[child] - P[joint]
        along = np.clip((mine - P[joint]) @ way / max(float(way @ way), 1e-12), 0, 1)
        found.append(np.linalg.norm(mine - P[joint] - along[:, None] * way, axis=1))
    return float(np.median(np.concatenate(found))) if found else -1.0


def part_features(
    kinds: Sequence[str],
    limbs: Sequence[Limb],
    has: Bool[ndarray, "parts 8"],
    bones: Float[ndarray, "parts 8 3"],
    attach: Float[ndarray, "parts 3"],
    on_chest: Bool[ndarray, " parts"],
    flesh: Float[ndarray, " parts"],
) -> Float[ndarray, "parts features"]:
    """What the network is told of each part."""
    rows = np.zeros((len(kinds), PART_FEATURES))
    lead = len(kinds) - len(limbs)
    last = {}
    for limb in limbs:
        last[limb.kind, limb.side] = max(limb.rank, last.get((limb.kind, limb.side), 0))
    for i in range(len(kinds)):
        side, rank, most = "middle", 0, 0
        if i >= lead:
            limb = limbs[i - lead]
            side, rank, most = limb.side, limb.rank, last[limb.kind, limb.side]
        rows[i, :3] = [side == "left", side == "right", side == "middle"]
        rows[i, 3:7] = [rank / 3, most / 3, rank / max(most, 1), (most - rank) / 3]
        rows[i, 7:9] = [on_chest[i], not on_chest[i]]
    sizes = np.linalg.norm(bones, axis=-1)
    rows[:, 9:12] = attach
    rows[:, 12:20] = sizes
    rows[:, 20:44] = (bones / np.maximum(sizes, 1e-6)[..., None]).reshape(len(kinds), -1)
    rows[:, 44:52] = has
    rows[:, 52] = flesh.clip(0)
    rows[:, 53] = flesh >= 0
    rows[:, 54] = sizes.sum(1)
    rows[:, 55] = 1.0
    return rows.clip(-4, 4)


def _body_features(anatomy: Anatomy, bones: ndarray, kinds: Sequence[str]) -> Float[ndarray, " body_features"]:
    unit = _unit(anatomy)
    sizes = np.linalg.norm(bones, axis=-1).sum(1)
    count = {kind: sum(k == kind for k in kinds) / 4 for kind in KINDS[3:]}
    size_of = {kind: float(sizes[kinds.index(kind)]) if kind in kinds else 0.0 for kind in KINDS[:3]}
    numbers = [
        anatomy.grounded, anatomy.body_length / unit / 3, pelvis_height(anatomy) / unit, anatomy.height / unit / 2,
        size_of["trunk"], size_of["neck"], size_of["tail"], *(count[kind] for kind in KINDS[3:]), np.log(unit) / 2,
    ]  # fmt: skip
    hot = [float(anatomy.kind == kind) for kind in BODY_KINDS]
    return np.array([*hot, *(float(n) for n in numbers)]).clip(-4, 4)


@dataclass(frozen=True, eq=False)
class Sticks:
    """The figures of a batch, padded to the same number of parts."""

    kinds: Int[Tensor, "batch parts"]
    """Index into `KINDS`, -1 for padding."""
    has: Bool[Tensor, "batch parts 8"]
    bones: Float[Tensor, "batch parts 8 3"]
    attach: Float[Tensor, "batch parts 3"]
    on_chest: Bool[Tensor, "batch parts"]
    sign: Float[Tensor, "batch parts"]
    """-1 for mirrored parts."""
    length: Float[Tensor, "batch parts"]
    hip: Float[Tensor, " batch"]
    rise: Float[Tensor, " batch"]
    features: Float[Tensor, "batch parts features"]
    rest: Float[Tensor, "batch parts rest_features"]
    """See `Figure.rest`."""
    body: Float[Tensor, "batch body_features"]


def stack_figures(figures: Sequence[Figure]) -> Sticks:
    """Figures as one batch."""
    most = max(map(len, figures))

    def padded(rows: Sequence[ndarray], fill: float = 0.0) -> Tensor:
        out = np.full((len(rows), most, *rows[0].shape[1:]), fill, np.float32)
        for i, row in enumerate(rows):
            out[i, : len(row)] = row
        return torch.from_numpy(out)

    return Sticks(
        kinds=padded([np.array([KINDS.index(kind) for kind in f.kinds]) for f in figures], -1.0).long(),
        has=padded([f.has for f in figures]).bool(),
        bones=padded([f.bones for f in figures]),
        attach=padded([f.attach for f in figures]),
        on_chest=padded([f.on_chest for f in figures]).bool(),
        sign=1 - 2 * padded([f.mirrored for f in figures]),
        length=padded([f.length for f in figures], 1.0),
        hip=torch.tensor([f.hip for f in figures], dtype=torch.float32),
        rise=torch.tensor([f.rise for f in figures], dtype=torch.float32),
        features=padded([f.features for f in figures]),
        rest=padded([f.rest for f in figures]),
        body=torch.from_numpy(np.stack([f.body for f in figures]).astype(np.float32)),
    )


def stick_turns(values: Float[Tensor, "batch parts frames channels"]) -> Float[Tensor, "batch parts frames 8 3 3"]:
    """The turns of all stations, each seen from what carries the part."""
    columns = values[..., : 6 * STATIONS].unflatten(-1, (STATIONS, 6))
    a = torch.nn.functional.normalize(columns[..., :3], dim=-1, eps=SHORT)
    b = columns[..., 3:] - (a * columns[..., 3:]).sum(-1, keepdim=True) * a
    b = torch.nn.functional.normalize(b, dim=-1, eps=SHORT)
    local = torch.stack([a, b, torch.linalg.cross(a, b)], -1)
    turns = [local[..., 0, :, :]]
    for station in range(1, STATIONS):
        turns.append(turns[-1] @ local[..., station, :, :])
    return torch.stack(turns, -3)


def pelvis_heights(sticks: Sticks, root: Float[Tensor, " batch *frames"]) -> Float[Tensor, " batch *frames"]:
    """The pelvis' height over the ground [leg lengths] from the root's height channel."""
    shape = (-1, *[1] * (root.ndim - 1))
    return sticks.hip.view(shape) + (root - 1) * sticks.rise.view(shape)


@dataclass(frozen=True, eq=False)
class Places:
    """Where a stick figure is, seen from its pelvis in the frame of its heading [leg lengths]."""

    bones: Float[Tensor, "batch parts frames 8 3"]
    """Each bone as it points, seen from what carries the part (mirrored parts mirrored)."""
    reach: Float[Tensor, "batch parts frames 3"]
    """From a limb's root to its end, in lengths of the limb, seen from what carries it."""
    ends: Float[Tensor, "batch parts frames 3"]
    """Ankles, wrists, tips, the head, the chest."""
    mids: Float[Tensor, "batch parts frames 3"]
    """Knees and elbows of limbs."""
    turns: Float[Tensor, "batch parts frames 8 3 3"]
    """Of all stations, each seen from what carries the part."""


def stick_places(sticks: Sticks, values: Float[Tensor, "batch parts frames channels"]) -> Places:
    """Forward kinematics of the stick figure, differentiable."""
    turns = stick_turns(values)
    bones = (turns @ sticks.bones[:, :, None, :, :, None])[..., 0]
    limb = (sticks.kinds >= 3)[:, :, None, None]
    reach = bones[..., 1:3, :].sum(-2)
    own = torch.where(limb, reach + bones[..., 0, :], bones.sum(-2))
    mirror = torch.stack([sticks.sign, torch.ones_like(sticks.sign), torch.ones_like(sticks.sign)], -1)[:, :, None]
    root, chest = turns[:, :1, :, 0], turns[:, :1, :, TRUNK]
    chest_place = bones[:, :1, :, 1 : 1 + TRUNK].sum(-2)
    on_chest = sticks.on_chest[:, :, None, None]
    base = torch.where(on_chest[..., None], chest, root)
    begin = torch.where(on_chest, chest_place, torch.zeros_like(chest_place))

    def from_pelvis(own: Tensor) -> Tensor:
        return (base @ ((sticks.attach[:, :, None] + own) * mirror)[..., None])[..., 0] + begin

    trunk = (sticks.kinds == 0)[:, :, None, None]
    ends, mids = torch.where(trunk, chest_place, from_pelvis(own)), from_pelvis(bones[..., :2, :].sum(-2))
    return Places(bones, reach / sticks.length[:, :, None, None].clamp_min(1e-3), ends, mids, turns)
