"""Clean-up: the nearest natural clip or pose, and a report of how natural one is."""

from collections.abc import Collection

import torch
from jaxtyping import Float
from torch import Tensor

from jigdoll.errors import JigdollError
from jigdoll.posespace.rigged import Body, pose_array, to_array, to_motion
from jigdoll.posespace.space import LONGEST, NOISIEST, Given, PoseSpace, SampleOptions
from jigdoll.types import Motion

OVERLAP = 8
STEPS = 5


def project(
    space: PoseSpace,
    body: Body,
    motion: Motion,
    *,
    strength: float = 0.3,
    missing: Collection[str] = (),
    words: str | None = None,
    lock: bool = True,
    seed: int = 0,
) -> Motion:
    """The clip, noised a little and made clean again; limbs named in `missing` are made up from the others.

    `strength` is the noise level, 0 (nothing changes) to 1 (nothing is kept). The root's way stays.
    """
    if not 0 <= strength <= 1:
        raise JigdollError(f"a strength of {strength} is not within 0 and 1")
    values = torch.from_numpy(to_array(body, motion)).float()
    gone = missing_parts(body, missing)
    cleaned = project_array(space, body, values, strength=strength, missing=gone, words=words, seed=seed)
    made = to_motion(body, cleaned.numpy(), fps=motion.fps, name=motion.name, lock=lock)
    count = min(len(made), len(motion))
    made = Motion(made.pose[:count], motion.fps, motion.name)
    start = motion.pose.root[0] - made.pose.root[0]
    start[1] = 0.0
    made.pose.root[:] += start
    return made


def project_array(
    space: PoseSpace,
    body: Body,
    values: Float[Tensor, "parts frames channels"],
    *,
    strength: float,
    missing: list[int],
    words: str | None = None,
    seed: int = 0,
) -> Float[Tensor, "parts frames channels"]:
    """Window after window, faded into each other where they overlap."""
    out, total = torch.zeros_like(values), torch.zeros(values.shape[1])
    generator = torch.Generator().manual_seed(seed)
    frames, first = values.shape[1], 0
    while True:
        last = min(first + LONGEST, frames)
        window = values[:, first:last]
        turns = torch.zeros(window.shape[:2], dtype=torch.bool)
        extra = turns.clone()
        extra[0] = True
        if missing:
            turns[[i for i in range(len(window)) if i not in missing]] = True
            extra |= turns
        level = NOISIEST if missing else max(strength, 0.03)
        drawn = space.draw(
            [body.figure], last - first, space.words(words), generator=generator, given=[Given(window, turns, extra)],
            options=SampleOptions(steps=STEPS, start=level, spread=0.0, guidance=1.0, plain=2 if missing else 0),
            start=None if missing else window[None],
        )[0]  # fmt: skip
        fade = torch.ones(last - first)
        if first:
            fade[:OVERLAP] = torch.linspace(0, 1, OVERLAP + 2)[1:-1][: len(fade)]
        if last < frames:
            fade[-OVERLAP:] = torch.linspace(1, 0, OVERLAP + 2)[1:-1]
        out[:, first:last] += fade[:, None] * drawn
        total[first:last] += fade
        if last == frames:
            return out / total[:, None]
        first = last - OVERLAP


def missing_parts(body: Body, names: Collection[str]) -> list[int]:
    """The parts behind names such as `left arm 0`, `tail`, `neck`."""
    lead = len(body.figure) - len(body.figure.limbs)
    known = {kind: i for i, kind in enumerate(body.figure.kinds[:lead])}
    known |= {parts.name: lead + i for i, parts in enumerate(body.anatomy.parts[: len(body.figure.limbs)])}
    wrong = [name for name in names if name not in known]
    if wrong:
        raise JigdollError(f"no part is called {wrong[0]!r}; the parts are {', '.join(known)}")
    return [known[name] for name in names]


def score_motion(space: PoseSpace, body: Body, motion: Motion) -> Float[Tensor, " frames"]:
    """How far each frame is from what is natural, as part of the clip; at the clip's own rate."""
    if len(motion) == 1:
        return space.score(body.figure, pose_array(body, motion.pose), space.words(None))
    values = torch.from_numpy(to_array(body, motion)).float()
    parts = [
        space.score(body.figure, values[:, first : first + LONGEST], space.words(None))
        for first in range(0, values.shape[1], LONGEST)
    ]
    slow = torch.cat(parts)
    at = torch.linspace(0, len(slow) - 1, len(motion)).round().long()
    return slow[at]
