"""BVH to a skeleton and a motion."""

import os
import re
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from jigdoll.errors import FileFormatError, RepairWarning
from jigdoll.formats.files import read_limited
from jigdoll.formats.joints import free_skeleton, unique_names
from jigdoll.kinematics import world_rest
from jigdoll.math.rotations import matrix_to_quaternion, quaternion_to_matrix
from jigdoll.math.transforms import translation
from jigdoll.types import Motion, Pose, Skeleton

MAX_BYTES = 512 * 1024**2
MAX_JOINTS = 4096
MAX_DEPTH = 512
MAX_FRAMES = 1_000_000
MAX_ABSOLUTE = 1e9
"""A number beyond this is damage, not a place or an angle."""

_POSITIONS = {"xposition": 0, "yposition": 1, "zposition": 2}
_ROTATIONS = {"xrotation": 0, "yrotation": 1, "zrotation": 2}


def guess_scale(extent: float) -> float:
    """Metres per unit, guessed from the largest extent of the skeleton at rest.

    Up to 20 units are metres, up to 70 the unit of the CMU motions (1 / 0.45 inch, about 0.056 m), up to 600
    centimetres, above that millimetres. A tall dinosaur in centimetres is guessed right, a mouse in centimetres is
    not: pass `scale` when you know better.
    """
    if extent <= 20:
        return 1.0
    return 0.0254 / 0.45 if extent <= 70 else 0.01 if extent <= 600 else 0.001


def read(
    path: str | os.PathLike[str],
    *,
    scale: float | None = None,
    skeleton: Skeleton | None = None,
    data: bytes | None = None,
) -> tuple[Skeleton, Motion]:
    """The skeleton and the motion of a BVH file, in metres.

    End sites become leaf joints called `<joint>_tip`. With `skeleton`, the motion is expressed on that skeleton,
    whose joints are found by name; joints that the file does not have stay at rest. `data` are the bytes of a file
    that is not at `path`, such as one of an archive.
    """
    path = Path(path)
    lines = _text(read_limited(path, MAX_BYTES) if data is None else data).splitlines()
    start = next((i for i, line in enumerate(lines) if line.strip().upper() == "MOTION"), len(lines))
    joints = _parse_hierarchy(path, lines[:start])
    fps, table = _parse_motion(path, lines, start, sum(len(joint.channels) for joint in joints))

    offsets = np.array([joint.offset for joint in joints])
    parents = [joint.parent for joint in joints]
    if scale is None:
        places = world_rest(parents, translation(torch.from_numpy(offsets)))[:, :3, 3]
        scale = guess_scale(float((places.amax(0) - places.amin(0)).max()))
    names = unique_names([joint.name for joint in joints], where=str(path))
    rest = translation(torch.from_numpy(offsets * scale))
    own = free_skeleton(names, parents, rest)
    rotations, places = _channels_to_locals(path, joints, table)
    moved = torch.from_numpy((places - offsets) * scale)
    root = moved[:, 0].clone()
    moved[:, 0] = 0
    extra = moved.float() if bool((moved.abs() > 1e-7).any()) else None
    pose = Pose(root.float(), matrix_to_quaternion(torch.from_numpy(rotations)).float(), extra)
    motion = Motion(pose, fps, path.stem)
    return (own, motion) if skeleton is None else (skeleton, _onto(path, motion, own, skeleton))


def bvh_names(skeleton: Skeleton) -> tuple[str, ...]:
    """The joint names without what BVH uses as punctuation."""
    return unique_names([re.sub(r"[\s{}]+", "_", name) for name in skeleton.names])


@dataclass
class _Joint:
    name: str
    parent: int
    offset: list[float] = field(default_factory=list)
    channels: list[str] = field(default_factory=list)
    line: int = 0


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _bad(path: Path, line: int, what: str) -> FileFormatError:
    return FileFormatError(f"{path}, line {line}: {what}; the file is damaged or is no BVH, export it again")


def _parse_hierarchy(path: Path, lines: list[str]) -> list[_Joint]:
    """The joints in the order of the file, which is also the order of the channels; end sites as leaves."""
    joints: list[_Joint] = []
    open_joints: list[int] = []
    waiting = False  # a joint was named and its "{" has not come yet
    if not any(line.strip().upper() == "HIERARCHY" for line in lines[:50]):
        raise FileFormatError(f"{path}: no HIERARCHY at the beginning; this is no BVH file")
    tokens = ((number, token) for number, line in enumerate(lines, 1) for token in re.findall(r"[{}]|[^{}]+", line))
    for number, token in tokens:
        words = token.split()
        keyword = words[0].upper() if words else ""
        if not words or (keyword == "HIERARCHY" and not joints):
            continue
        if waiting != (keyword == "{"):
            raise _bad(path, number, f"{words[0][:40]!r} where {'{' if waiting else 'no {'} was expected")
        if keyword == "{":
            waiting = False
        elif keyword == "}":
            if not open_joints:
                raise _bad(path, number, "a } without its {")
            open_joints.pop()
        elif keyword in ("ROOT", "JOINT", "END"):
            _open_joint(path, number, keyword, " ".join(words[1:]), joints, open_joints)
            waiting = True
        elif keyword == "OFFSET" and open_joints and not joints[open_joints[-1]].offset:
            joints[open_joints[-1]].offset = _three_numbers(path, number, words[1:])
        elif keyword == "CHANNELS" and open_joints and not joints[open_joints[-1]].channels:
            joints[open_joints[-1]].channels = _channel_names(path, number, words[1:])
        else:
            raise _bad(path, number, f"{' '.join(words)[:40]!r} has no meaning here")
    if open_joints or waiting or not joints:
        raise _bad(path, len(lines), "the hierarchy ends before its last }")
    for joint in joints:
        if not joint.offset:
            raise _bad(path, joint.line, f"joint {joint.name[:40]!r} has no OFFSET")
    return _without_empty_ends(joints)


def _open_joint(path: Path, number: int, keyword: str, name: str, joints: list[_Joint], open_joints: list[int]) -> None:
    parent = open_joints[-1] if open_joints else -1
    if (keyword == "ROOT") != (parent < 0):
        raise _bad(path, number, f"a {keyword} {'inside another joint' if parent >= 0 else 'outside of any joint'}")
    if keyword == "ROOT" and joints:
        raise FileFormatError(f"{path}, line {number}: a second ROOT; split the file, one character each")
    if len(joints) >= MAX_JOINTS or len(open_joints) >= MAX_DEPTH:
        raise _bad(path, number, f"more than {MAX_JOINTS} joints or {MAX_DEPTH} levels")
    if keyword == "END":
        name = f"{joints[parent].name}_tip"
    joints.append(_Joint(name, parent, line=number))
    open_joints.append(len(joints) - 1)


def _three_numbers(path: Path, number: int, words: list[str]) -> list[float]:
    try:
        values = [float(word) for word in words]
    except ValueError:
        values = []
    if len(values) != 3 or not all(abs(value) <= MAX_ABSOLUTE for value in values):
        raise _bad(path, number, f"OFFSET needs three finite numbers, not {' '.join(words)[:60]!r}")
    return values


def _channel_names(path: Path, number: int, words: list[str]) -> list[str]:
    channels = [word.lower() for word in words[1:]]
    known = all(channel in _POSITIONS or channel in _ROTATIONS for channel in channels)
    if not words or words[0] != str(len(channels)) or not known or len(set(channels)) != len(channels):
        raise _bad(path, number, f"CHANNELS {' '.join(words)[:80]!r} is not a count and so many different names")
    return channels


def _without_empty_ends(joints: list[_Joint]) -> list[_Joint]:
    """Drop end sites of no length: they close a joint whose bone has no known end, and tell nothing."""
    has_child = {joint.parent for joint in joints}
    keep = [
        i
        for i, joint in enumerate(joints)
        if joint.channels or i in has_child or any(joint.offset) or not joint.name.endswith("_tip") or i == 0
    ]
    place = {old: new for new, old in enumerate(keep)}
    place[-1] = -1
    for i in keep:
        joints[i].parent = place[joints[i].parent]
    return [joints[i] for i in keep]


def _parse_motion(path: Path, lines: list[str], start: int, channels: int) -> tuple[float, np.ndarray]:
    """Frame rate and channel table [frames channels] of the part after MOTION."""
    header: list[tuple[int, str]] = []
    row = start + 1
    while row < len(lines) and len(header) < 2:
        if lines[row].strip():
            header.append((row + 1, lines[row]))
        row += 1
    if len(header) < 2:
        raise _bad(path, len(lines), "no MOTION part with Frames and Frame Time")
    count = _header_number(path, *header[0], r"Frames\s*:?\s*(\S+)")
    seconds = _header_number(path, *header[1], r"Frame\s+Time\s*:?\s*(\S+)")
    if not 0 <= count <= MAX_FRAMES or count != int(count):
        raise _bad(path, header[0][0], f"{header[0][1].strip()[:40]!r} is no number of frames")
    if not 1e-5 <= seconds <= 1e5:
        if seconds != 0:
            raise _bad(path, header[1][0], f"{header[1][1].strip()[:40]!r} is no time")
        warnings.warn(f"{path}: Frame Time is 0; taken as 30 frames a second", RepairWarning, stacklevel=3)
        seconds = 1 / 30
    fps = 1 / seconds
    if abs(fps - round(fps)) < 1e-4 * fps:
        fps = float(round(fps))  # files round the frame time: .0083333 s are 120 frames a second

    table = _numbers(path, lines, row, channels)
    if len(table) != count:
        warnings.warn(
            f"{path}: the header promises {int(count)} frames, {len(table)} are there; all of these are used",
            RepairWarning,
            stacklevel=3,
        )
    return fps, table


def _header_number(path: Path, number: int, line: str, pattern: str) -> float:
    match = re.fullmatch(pattern, line.strip(), re.IGNORECASE)
    try:
        return float(match.group(1)) if match else float("nan")
    except ValueError:
        raise _bad(path, number, f"{line.strip()[:40]!r} holds no number") from None


def _numbers(path: Path, lines: list[str], row: int, channels: int) -> np.ndarray:
    """The table of channels; a frame may be broken over lines, but nothing may be missing or not finite."""
    if channels == 0:
        raise FileFormatError(f"{path}: no joint has a channel, so nothing moves; export the file with its motion")
    parts: list[np.ndarray] = []
    for begin in range(row, len(lines), 1024):
        block = lines[begin : begin + 1024]
        try:
            part = np.array(" ".join(block).split(), dtype=np.float64)
        except ValueError:
            part = np.full(1, np.nan)
        if not (np.abs(part) <= MAX_ABSOLUTE).all():
            raise _bad(path, *_first_bad_line(block, begin))
        parts.append(part)
    values = np.concatenate(parts) if parts else np.zeros(0)
    if values.size % channels or values.size == 0:
        last = values.size % channels
        raise _bad(path, len(lines), f"the last frame has {last} of {channels} numbers" if last else "no frame follows")
    table = values.reshape(-1, channels)
    if len(table) > MAX_FRAMES:
        raise FileFormatError(f"{path}: {len(table):,} frames are more than {MAX_FRAMES:,}; split the file")
    return table


def _first_bad_line(block: list[str], begin: int) -> tuple[int, str]:
    for i, line in enumerate(block):
        for word in line.split():
            try:
                good = abs(float(word)) <= MAX_ABSOLUTE
            except ValueError:
                good = False
            if not good:
                return begin + i + 1, f"{word[:40]!r} is no finite number"
    return begin + 1, "a number cannot be read"


def _channels_to_locals(path: Path, joints: list[_Joint], table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Local rotation matrices [frames joints 3 3] and local places [frames joints 3] in the file's unit."""
    frames = len(table)
    rotations = np.tile(np.eye(3), (frames, len(joints), 1, 1))
    places = np.tile(np.array([joint.offset for joint in joints]), (frames, 1, 1))
    column = 0
    unused: list[str] = []
    for j, joint in enumerate(joints):
        values = table[:, column : column + len(joint.channels)]
        column += len(joint.channels)
        position = [(_POSITIONS[name], i) for i, name in enumerate(joint.channels) if name in _POSITIONS]
        if j and position and any(joint.offset) and not values[:, [i for _, i in position]].any():
            unused.append(joint.name)
            position = []
        for axis, i in position:
            places[:, j, axis] = values[:, i]
        for i, name in enumerate(joint.channels):
            if name in _ROTATIONS:
                rotations[:, j] = rotations[:, j] @ _axis_rotation(_ROTATIONS[name], np.radians(values[:, i]))
    if unused:
        warnings.warn(
            f"{path}: position channels that are always zero would pull joints into their parents "
            f"({', '.join(unused[:3])}{' ...' if len(unused) > 3 else ''}); their OFFSET is used",
            RepairWarning,
            stacklevel=3,
        )
    return rotations, places


def _axis_rotation(axis: int, angle: np.ndarray) -> np.ndarray:
    out = np.zeros((len(angle), 3, 3))
    u, v = (axis + 1) % 3, (axis + 2) % 3
    out[:, axis, axis] = 1
    out[:, u, u] = out[:, v, v] = np.cos(angle)
    out[:, v, u] = np.sin(angle)
    out[:, u, v] = -out[:, v, u]
    return out


def _onto(path: Path, motion: Motion, own: Skeleton, skeleton: Skeleton) -> Motion:
    """The motion on a skeleton with rest rotations: R = inverse(W) B W, joints found by name."""
    column = {name: joint for joint, name in enumerate(own.names)}
    found = [column.get(name, -1) for name in bvh_names(skeleton)]
    if found[0] != 0:
        raise FileFormatError(
            f"{path}: its root {own.names[0]!r} is not the skeleton's root {skeleton.names[0]!r}; use retargeting"
        )
    here = torch.tensor([joint for joint, other in enumerate(found) if other >= 0])
    there = torch.tensor([other for other in found if other >= 0])
    W = world_rest(skeleton.parents, skeleton.T_parent_joint.double())[here, :3, :3]
    pose = motion.pose
    B = quaternion_to_matrix(pose.rotations.double())[:, there]
    rotations = pose.rotations.new_zeros(len(motion), len(skeleton), 4)
    rotations[..., 0] = 1
    rotations[:, here] = matrix_to_quaternion(W.transpose(-1, -2) @ B @ W).float()
    # The root's displacement counts from the rest place of the skeleton that is asked for.
    root = pose.root + own.T_parent_joint[0, :3, 3] - skeleton.T_parent_joint[0, :3, 3]
    offsets = None
    if pose.offsets is not None:
        offsets = pose.root.new_zeros(len(motion), len(skeleton), 3)
        moved = pose.offsets[:, there].double()
        offsets[:, here] = (W.transpose(-1, -2) @ moved[..., None])[..., 0].float()
    return Motion(Pose(root, rotations, offsets), motion.fps, motion.name)
