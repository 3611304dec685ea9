"""From a sentence to a clip of any length: windows that go on from each other, loops, a path over the ground."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil

import numpy as np
import torch
from jaxtyping import Float
from scipy.ndimage import gaussian_filter1d
from torch import Tensor

from jigdoll.errors import JigdollError
from jigdoll.language.actions import ACTIONS
from jigdoll.language.inflect import inflect
from jigdoll.motion import slice_motion
from jigdoll.posespace.layout import CONTACT, EXTRA, RATE
from jigdoll.posespace.rigged import Body, to_motion
from jigdoll.posespace.space import LONGEST, Given, PoseSpace, SampleOptions
from jigdoll.types import Motion, Request, RequestedAction

OVERLAP = 8
"""Frames that a window shares with the one before."""
SECONDS = 2.4
"""How long an action is shown, where nobody says."""
BLEND = 4
"""Frames over which a loop is closed."""
SMOOTH = 0.8
"""A clip is smoothed over so many frames (the width of a Gaussian): the network's grain is no motion."""
GUIDANCE = 3.5
"""How much words count in clips; chosen on trained rigs, where legs take turns better than with less."""
LEAST_LOOP = 8
"""Frames of the shortest loop."""


@dataclass(frozen=True, eq=False)
class DraftOptions:
    """How to make a clip from words."""

    seconds: float | None = None
    fps: float = 30.0
    loop: bool = False
    path: Sequence[tuple[float, float]] | None = None
    """Points (x, z) over the ground [m] that the body goes along, from the origin."""
    seed: int = 0
    sampling: SampleOptions = field(default_factory=lambda: SampleOptions(guidance=GUIDANCE))


def sentence(request: Request, action: RequestedAction) -> str:
    """Who does what and how, in the plain words that the pose space was trained with."""
    row = ACTIONS.get(action.name)
    verb = action.word if not row or action.word in " ".join((*row.verbs, *row.slow, *row.fast)) else row.verbs[0]
    third = inflect(verb)[1] if verb and not verb.endswith("s") else verb
    return " ".join([f"a {request.noun or request.species or 'creature'} {third}", *request.style])


def draft(space: PoseSpace, body: Body, request: Request, options: DraftOptions = DraftOptions()) -> Motion:
    """The sentence as a clip on this body."""
    if not request.actions:
        raise JigdollError(
            f"{request.prompt!r}: no action was found in it; say what it does, such as walks, jumps, waves"
        )
    values = draft_array(space, body, [sentence(request, action) for action in request.actions], options)
    name = "_".join(action.name for action in request.actions)
    made = to_motion(body, values.numpy(), fps=options.fps, name=name)
    if options.seconds is None or options.loop:
        return made
    return slice_motion(made, slice(0, round(options.seconds * options.fps) + 1))


def draft_array(
    space: PoseSpace, body: Body, texts: Sequence[str], options: DraftOptions = DraftOptions()
) -> Float[Tensor, "parts frames channels"]:
    """Phrases, one after the other, as one clip in limb space."""
    seconds = options.seconds or SECONDS * len(texts)
    if not 0 < seconds < 600:
        raise JigdollError(f"a clip of {seconds} s cannot be made; ask for more than 0 and less than 600")
    frames = max(ceil(seconds * RATE - 1e-6) + 1, 2)
    room = LEAST_LOOP + BLEND if options.loop else 0
    length = frames + room
    words = torch.cat([space.words(text) for text in texts])
    which = np.minimum(np.arange(length) * len(texts) // frames, len(texts) - 1)
    clip = _windows(space, body, words, which, options, None)
    if options.path is not None:
        clip = _windows(space, body, words, which, options, _along(body, clip, options.path))
    clip = smoothed(clip)
    return closed_loop(clip, frames) if options.loop else clip[:, :frames]


def smoothed(clip: Float[Tensor, "parts frames channels"]) -> Float[Tensor, "parts frames channels"]:
    """The clip without grain; contacts stay as they are."""
    values = clip.numpy().copy()
    values[..., :CONTACT] = gaussian_filter1d(values[..., :CONTACT], SMOOTH, axis=1, mode="nearest")
    trunk = clip.numpy()[0, :, CONTACT]
    values[0, :, CONTACT] = gaussian_filter1d(trunk, SMOOTH, mode="nearest")
    return torch.from_numpy(values)


def _windows(
    space: PoseSpace, body: Body, words: Tensor, which: np.ndarray, options: DraftOptions, root: Tensor | None
) -> Float[Tensor, "parts frames channels"]:
    """Window after window, each held at its beginning to the end of the one before."""
    generator = torch.Generator().manual_seed(options.seed)
    length, done = len(which), 0
    out = torch.zeros(len(body.figure), length, 6 * 8 + 4)
    while done < length:
        first = max(done - OVERLAP, 0)
        last = min(first + LONGEST, length)
        if done and which[last - 1] != which[done]:  # a new action begins with its own window
            last = max(int(np.flatnonzero(which == which[done])[-1]) + 1, done + 1)
        frames = last - first
        values = torch.zeros(len(body.figure), frames, out.shape[-1])
        values[:, : done - first] = out[:, first:done]
        turns = torch.zeros(len(body.figure), frames, dtype=torch.bool)
        turns[:, : done - first] = True
        extra = turns.clone()
        if root is not None:
            values[0, :, EXTRA] = root[first:last]
            extra[0] = True
        given = Given(values, turns, extra) if bool(extra.any()) else None
        text = words[which[min(done, length - 1)]][None]
        drawn = space.draw([body.figure], frames, text, generator=generator, given=[given], options=options.sampling)
        out[:, done:last] = drawn[0][:, done - first :]
        done = last
    return out


def _along(body: Body, clip: Tensor, path: Sequence[tuple[float, float]]) -> Float[Tensor, "frames 4"]:
    """The root's channels such that it goes along a path at the clip's own speed; its height is the clip's."""
    points = np.asarray(path, float).reshape(-1, 2)
    if len(points) < 2 or not np.isfinite(points).all():
        raise JigdollError("a path needs two points (x, z) or more, all of them finite")
    root = clip[0, :, EXTRA].clone()
    ways = np.linalg.norm(np.diff(points, axis=0), axis=1)
    along = np.concatenate([[0.0], np.cumsum(ways)])
    if along[-1] <= 0:
        raise JigdollError("all points of the path are at one place; there is nowhere to go")
    frames = len(root)
    at = np.linspace(0, along[-1], frames)
    fine = np.stack([np.interp(at, along, points[:, k]) for k in range(2)], 1)
    step = np.diff(fine, axis=0, append=fine[-1:] + (fine[-1:] - fine[-2:-1])) * RATE / body.unit
    heading = np.unwrap(np.arctan2(step[:, 0], step[:, 1]))
    width = 4
    padded = np.concatenate([np.full(width, heading[0]), heading, np.full(width, heading[-1])])
    smooth = np.convolve(padded, np.hanning(2 * width + 3)[1:-1] / np.hanning(2 * width + 3).sum(), "valid")
    root[:, 0] = 0.0
    root[:, 1] = torch.from_numpy(np.linalg.norm(step, axis=1)).float()
    root[:, 3] = torch.from_numpy(np.gradient(smooth) * RATE).float()
    return root


def closed_loop(clip: Float[Tensor, "parts frames channels"], frames: int) -> Float[Tensor, "parts looped channels"]:
    """About so many frames that end where they begin: cut where poses and velocities fit best, then blended."""
    turns = clip[..., : EXTRA.start]
    last = clip.shape[1] - BLEND
    best, cut = np.inf, (0, last - 1)
    for first in range(0, max(last - frames + LEAST_LOOP, 1)):
        for end in range(max(first + LEAST_LOOP, frames - LEAST_LOOP), last):
            gap = (turns[:, first] - turns[:, end]).square().mean()
            swing = (turns[:, first + 1] - turns[:, first] - turns[:, end + 1] + turns[:, end]).square().mean()
            cost = float(gap + 4 * swing) + 1e-3 * abs(end - first - frames + 1)
            if cost < best:
                best, cut = cost, (first, end)
    first, end = cut
    out = clip[:, first : end + 1].clone()
    for i in range(min(BLEND, clip.shape[1] - end)):
        share = (BLEND - i) / (BLEND + 1)
        out[:, i] = (1 - share) * clip[:, first + i] + share * clip[:, end + i]
    out[:, -1] = out[:, 0]
    return out
