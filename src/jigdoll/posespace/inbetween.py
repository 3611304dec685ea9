"""Clips between poses: keys held exactly (`inbetween`), and the way from pose to pose through noise (`walk`)."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from jigdoll.errors import JigdollError
from jigdoll.math.rotations import quaternion_inverse, quaternion_multiply, slerp
from jigdoll.posespace.layout import EXTRA, RATE, pack
from jigdoll.posespace.rigged import Body, pose_array, to_array, to_motion
from jigdoll.posespace.space import LONGEST, Given, PoseSpace, SampleOptions
from jigdoll.posespace.tween import LONGEST_SPAN
from jigdoll.rig.retarget.limb_motion import encode
from jigdoll.types import Motion, Pose

STEPS = 2


def straight(keys: Mapping[int, Pose], *, fps: float, name: str = "slerp") -> Motion:
    """Keys joined by straight lines and shortest turns: what the pose space has to beat."""
    order = _ordered(keys)
    frames = range(order[0], order[-1] + 1)
    roots, turns = [], []
    for frame in frames:
        left, right, share = _neighbours(order, frame)
        t = torch.tensor(share)
        roots.append(keys[left].root * (1 - share) + keys[right].root * share)
        turns.append(slerp(keys[left].rotations, keys[right].rotations, t.expand(len(keys[left].rotations))))
    return Motion(Pose(torch.stack(roots), torch.stack(turns)), fps, name)


def inbetween(
    space: PoseSpace,
    body: Body,
    keys: Mapping[int, Pose],
    *,
    fps: float = 30.0,
    words: str | None = None,
    seed: int = 0,
    variety: float = 0.0,
) -> Motion:
    """The clip from the first key to the last, through every key exactly; frames are counted at `fps`.

    `variety` 0 is the likeliest clip, 1 any that fits: the pose space draws those, and what lies between keys farther
    apart than the network for in-betweens knows. What limb space does not see (fingers, props) goes straight.
    """
    plain = straight(keys, fps=fps, name="inbetween")
    order = [frame - min(keys) for frame in _ordered(keys)]
    near = max(b - a for a, b in pairwise(order)) <= LONGEST_SPAN * fps
    if space.tween is not None and near and variety == 0:
        rate, values = fps, pack(encode(body.anatomy, plain, travel=False), body.figure)
        clip = space.tween.fill(body.figure, values, order, fps, space.words(words))
    else:
        rate, values = RATE, to_array(body, plain)
        at = [min(round(frame / fps * RATE), values.shape[1] - 1) for frame in order]
        clip = _filled(space, body, torch.from_numpy(values).float(), at, words, seed, variety).numpy()
    made, base = (_as_long(to_motion(body, v, rate=rate, fps=fps, lock=False), len(plain)) for v in (clip, values))
    return exact_at(_moved(plain, base, made), plain, order)


def _moved(motion: Motion, before: Motion, after: Motion) -> Motion:
    """A motion changed as `after` differs from `before`: what neither of them holds stays as it is."""
    change = quaternion_multiply(quaternion_inverse(before.pose.rotations), after.pose.rotations)
    rotations = quaternion_multiply(motion.pose.rotations, change)
    root = motion.pose.root + after.pose.root - before.pose.root
    return Motion(Pose(root, rotations), motion.fps, motion.name)


def _filled(
    space: PoseSpace, body: Body, values: Tensor, at: Sequence[int], words: str | None, seed: int, variety: float
) -> Float[Tensor, "parts frames channels"]:
    """Each stretch that fits into a window, keys held; long stretches go on from where the last one ended."""
    out = values.clone()
    generator = torch.Generator().manual_seed(seed)
    known = torch.zeros(values.shape[1], dtype=torch.bool)
    known[list(at)] = True
    first = 0
    while first < values.shape[1] - 1:
        last = min(first + LONGEST, values.shape[1])
        inner = [place for place in at if first < place < last]
        if last < values.shape[1] and inner:
            last = inner[-1] + 1
        window = slice(first, last)
        held = known[window].clone()
        held[0] = True
        given = _held(out[:, window], held)
        drawn = space.draw(
            [body.figure], last - first, space.words(words), generator=generator, given=[given],
            options=SampleOptions(steps=STEPS, spread=variety, guidance=1.5),
        )  # fmt: skip
        out[:, window] = drawn[0]
        first = last - 1
    return out


def _held(values: Float[Tensor, "parts frames channels"], frames: Bool[Tensor, " frames"]) -> Given:
    """These frames held: turns and ends; and the root's way, which goes straight from key to key."""
    marks = frames.expand(len(values), -1)
    extra = marks.clone()
    extra[0] = True
    return Given(values, marks, extra)


def exact_at(motion: Motion, truth: Motion, frames: Sequence[int]) -> Motion:
    """The motion with what is missing at these frames spread out between them, so that it goes through the truth."""
    pose, true = motion.pose, truth.pose
    gaps = [quaternion_multiply(quaternion_inverse(pose.rotations[f]), true.rotations[f]) for f in frames]
    moves = [true.root[f] - pose.root[f] for f in frames]
    root, rotations = pose.root.clone(), pose.rotations.clone()
    for frame in range(len(motion)):
        left, right, share = _neighbours(list(frames), frame)
        i, j = frames.index(left), frames.index(right)
        soft = share * share * (3 - 2 * share)
        gap = slerp(gaps[i], gaps[j], torch.full((len(gaps[i]),), soft))
        rotations[frame] = quaternion_multiply(pose.rotations[frame], gap)
        root[frame] = pose.root[frame] + moves[i] * (1 - soft) + moves[j] * soft
    for f in frames:
        rotations[f], root[f] = true.rotations[f], true.root[f]
    return Motion(Pose(root, rotations), motion.fps, motion.name)


def _as_long(motion: Motion, frames: int) -> Motion:
    """The motion with so many frames: a frame that is missing at the end is the last one again."""
    at = torch.arange(frames).clamp_max(len(motion) - 1)
    return Motion(motion.pose[at], motion.fps, motion.name)


def walk(
    space: PoseSpace,
    body: Body,
    first: Pose,
    second: Pose,
    *,
    frames: int = 24,
    fps: float = 30.0,
    words: str | None = None,
) -> Motion:
    """From one pose to another through the pose space: both are inverted to noise, and the noises are mixed.

    Mixing keeps the size of the noise, so that no pose on the way is pulled to the mean; both ends are exact.
    """
    if frames < 2:
        raise JigdollError(f"a way between two poses has 2 frames or more, not {frames}")
    text = space.words(words)
    arrays = [pose_array(body, pose).detach() for pose in (first, second)]
    a, b = (space.invert(body.figure, array, text) for array in arrays)
    share = torch.linspace(0, 1, frames)[:, None, None, None] * (np.pi / 2)
    noise = share.cos() * a + share.sin() * b
    clips = space.from_noise(body.figure, noise, text.expand(frames, -1))[:, :, 0]
    for end, array in ((0, arrays[0][:, 0]), (-1, arrays[1][:, 0])):
        ramp = torch.linspace(1, 0, frames) if end == 0 else torch.linspace(0, 1, frames)
        clips = clips + ramp[:, None, None] * (array - clips[end])
    values = clips.transpose(0, 1)
    values[0, :, EXTRA.start : EXTRA.start + 2] = 0.0
    values[0, :, EXTRA.start + 3] = 0.0
    made = to_motion(body, values.numpy(), fps=RATE, lock=False)
    made = Motion(made.pose, fps, "walk")
    plain = straight({0: first, len(made) - 1: second}, fps=fps)
    return exact_at(made, plain, [0, len(made) - 1])


def _ordered(keys: Mapping[int, Pose]) -> list[int]:
    order = sorted(keys)
    if len(order) < 2:
        raise JigdollError(f"{len(order)} keys leave nothing in between; give two or more")
    if len({len(pose.rotations) for pose in keys.values()}) > 1:
        raise JigdollError("the keys have different numbers of joints; they are not of one rig")
    return order


def _neighbours(order: Sequence[int], frame: int) -> tuple[int, int, float]:
    """The keys before and after a frame, and how far between them it lies."""
    left = max((key for key in order if key <= frame), default=order[0])
    right = min((key for key in order if key >= frame), default=order[-1])
    return left, right, 0.0 if left == right else (frame - left) / (right - left)
