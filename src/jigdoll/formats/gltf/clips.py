"""Clips: glTF samplers to evenly spaced local transforms of every node, and back."""

from typing import Any, NamedTuple

import numpy as np

from jigdoll.errors import FileFormatError
from jigdoll.formats.gltf.document import Document
from jigdoll.formats.gltf.nodes import NodeTree, check_places, compose, world_matrices

_WIDTHS = {"translation": 3, "rotation": 4, "scale": 3}
_MAX_FRAMES = 100_000


def clip_names(document: Document) -> list[str]:
    """A unique name for each clip; nameless ones are numbered."""
    names: list[str] = []
    for index, entry in enumerate(document.items("animations")):
        name = entry.get("name")
        name = name if isinstance(name, str) and name else f"clip_{index}"
        names.append(name if name not in names else f"{name}_{index}")
    return names


def sample_clip(document: Document, tree: NodeTree, index: int, fps: float) -> np.ndarray:
    """World transforms [frames nodes 4 4] of every node at an even rate, from the clip's first key on."""
    channels = _channels(document, index)
    start = min((channel.times[0] for channel in channels), default=0.0)
    end = max((channel.times[-1] for channel in channels), default=0.0)
    if (end - start) * fps >= _MAX_FRAMES:
        raise document.fail(f"clip {index} is {end - start:.0f} s long: more than {_MAX_FRAMES} frames at {fps:g} fps")
    frames = int(np.floor((end - start) * fps + 1e-4)) + 1
    document.spend(frames * len(tree.names) * 128)
    clock = start + np.arange(frames) / fps
    values = {
        "translation": np.tile(tree.translation, (frames, 1, 1)),
        "rotation": np.tile(tree.rotation, (frames, 1, 1)),
        "scale": np.tile(tree.scale, (frames, 1, 1)),
    }
    for node, path, mode, times, keys in channels:
        values[path][:, node] = interpolate(clock, times, keys, mode, rotation=path == "rotation")
    local = compose(values["translation"], values["rotation"], values["scale"])
    world = world_matrices(tree.parents, tree.order, local)
    check_places(document, world)
    return world


def moves_shapes(document: Document, index: int) -> bool:
    """Whether a clip moves morph targets (faces, mostly) besides joints, or instead of them."""
    entry = document.item("animations", index)
    for channel in entry.get("channels", []):
        if channel["target"].get("path") == "weights":
            try:
                keys = document.vectors(entry["samplers"][channel["sampler"]].get("output"), 1)
            except (FileFormatError, KeyError, IndexError, TypeError, AttributeError):
                continue  # nobody reads these keys, so their damage is no reason to refuse the file
            if len(keys) and np.ptp(keys) > 1e-3:
                return True
    return False


class _Channel(NamedTuple):
    node: int
    path: str
    mode: str
    times: np.ndarray
    keys: np.ndarray


def _channels(document: Document, index: int) -> list[_Channel]:
    entry = document.item("animations", index)
    samplers, channels = entry.get("samplers", []), entry.get("channels", [])
    if not isinstance(samplers, list) or not isinstance(channels, list):
        raise document.fail(f"animations[{index}] has no samplers or channels")
    out = []
    for channel in channels:
        target: Any = channel.get("target") if isinstance(channel, dict) else None
        if not isinstance(target, dict):
            raise document.fail(f"a channel of animations[{index}] has no target")
        path = target.get("path")
        if path not in _WIDTHS or "node" not in target:
            continue  # morph weights and extensions do not move joints
        document.item("nodes", target["node"])
        number = document.number(channel, "sampler")
        if number >= len(samplers) or not isinstance(samplers[number], dict):
            raise document.fail(f"a channel of animations[{index}] names sampler {number} of {len(samplers)}")
        sampler = samplers[number]
        mode = sampler.get("interpolation", "LINEAR")
        if mode not in ("LINEAR", "STEP", "CUBICSPLINE"):
            raise document.fail(f"animations[{index}] has an unknown interpolation {str(mode)[:20]!r}")
        times = document.vectors(sampler.get("input"), 1)[:, 0]
        keys = document.vectors(sampler.get("output"), _WIDTHS[path])
        if len(keys) != len(times) * (3 if mode == "CUBICSPLINE" else 1):
            raise document.fail(f"a channel of animations[{index}] has {len(times)} times and {len(keys)} keys")
        if len(times) == 0:
            continue
        if (np.diff(times) < 0).any():
            raise document.fail(f"a channel of animations[{index}] runs backwards in time")
        out.append(_Channel(target["node"], path, mode, times, keys))
    return out


def interpolate(clock: np.ndarray, times: np.ndarray, keys: np.ndarray, mode: str, *, rotation: bool) -> np.ndarray:
    """A channel's value at each time of the clock, held before the first key and after the last."""
    right = np.searchsorted(times, clock, side="right").clip(1, max(len(times) - 1, 1))
    left = right - 1
    if len(times) == 1:
        return np.repeat(keys[1:2] if mode == "CUBICSPLINE" else keys[:1], len(clock), 0)
    span = times[right] - times[left]
    t = np.where(span > 0, (clock - times[left]) / np.where(span > 0, span, 1), 1.0).clip(0, 1)[:, None]
    if mode == "STEP":
        return keys[np.where(clock >= times[-1], len(times) - 1, left)]
    if mode == "CUBICSPLINE":
        cubes = keys.reshape(-1, 3, keys.shape[-1])
        p0, m0 = cubes[left, 1], cubes[left, 2] * span[:, None]
        p1, m1 = cubes[right, 1], cubes[right, 0] * span[:, None]
        out = (2 * t**3 - 3 * t**2 + 1) * p0 + (t**3 - 2 * t**2 + t) * m0
        out += (-2 * t**3 + 3 * t**2) * p1 + (t**3 - t**2) * m1
        return _unit(out) if rotation else out
    if rotation:
        return _slerp(_unit(keys[left]), _unit(keys[right]), t)
    return keys[left] * (1 - t) + keys[right] * t


def _unit(q: np.ndarray) -> np.ndarray:
    norm = np.linalg.norm(q, axis=-1, keepdims=True)
    return np.where(norm > 1e-12, q / np.maximum(norm, 1e-12), np.array([0.0, 0.0, 0.0, 1.0]))


def _slerp(a: np.ndarray, b: np.ndarray, t: np.ndarray) -> np.ndarray:
    dot = (a * b).sum(-1, keepdims=True)
    b, dot = np.where(dot < 0, -b, b), np.abs(dot).clip(0, 1)
    angle = np.arccos(dot)
    small = angle < 1e-6
    sine = np.where(small, 1.0, np.sin(angle))
    wa = np.where(small, 1 - t, np.sin((1 - t) * angle) / sine)
    wb = np.where(small, t, np.sin(t * angle) / sine)
    return _unit(wa * a + wb * b)
