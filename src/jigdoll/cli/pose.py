"""The verbs of pose: sample, solve, inbetween, walk, draft, project, check, train."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from tyro.conf import Positional

from jigdoll.cli.shared import Json, answering, character
from jigdoll.errors import JigdollError

if TYPE_CHECKING:
    from jigdoll.posespace.handles import Handle
    from jigdoll.posespace.workbench import Workbench
    from jigdoll.types import Motion, RiggedAsset

WeightsFile = Annotated[Path | None, tyro.conf.arg(name="weights", help="Weights of your own; else those that ship.")]
PICTURES = (".png", ".webp")


def pose() -> None:
    """The pose space: pose sample, solve, inbetween, walk, draft, project, check, train."""


def pose_sample(
    file: Positional[str],
    words: Positional[str | None] = None,
    /,
    *,
    out: Path,
    count: int = 8,
    seed: int = 0,
    weights: WeightsFile = None,
    as_json: Json = False,
) -> None:
    """Draw diverse poses of a character, free or by words, as a sheet of pictures or as a clip with one pose a second.

    Args:
        file: A character file, or zoo:NAME.
        words: What it does: "a fox sits".
        out: A picture (.png, .webp), or a character file (.glb, .bvh, .usd).
        count: How many poses.
        seed: Another seed draws other poses.
    """
    _check_target(out)
    bench = _bench(file, weights)
    poses = bench.sample(words, count=count, seed=seed)
    with answering(as_json) as answer:
        answer.add({"poses": len(poses), "learned": bench.space is not None})
        answer.wrote(_write(out, bench.asset, poses), f"{len(poses)} poses")


def pose_solve(
    file: Positional[str],
    /,
    *,
    out: Path,
    handle: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=X,Y,Z[,pinned|active|free][,TOLERANCE] ...")],
    base: str | None = None,
    keep: bool = False,
    words: str | None = None,
    seed: int = 0,
    weights: WeightsFile = None,
    as_json: Json = False,
) -> None:
    """Find the most natural pose whose handles are where they have to be.

    Args:
        file: A character file, or zoo:NAME.
        out: A picture or a character file.
        handle: Handles in world metres, as in left_hand=0.4,1.2,0.3 or head=0,1.6,0.1,pinned,0.02; joints' own names
            serve as well. A wrong name is answered with all names.
        base: The clip whose first frame says where the body stands; the rest pose without it.
        keep: Stay near the base pose where the handles allow it.
        words: What it does meanwhile.
        seed: 0 is the likeliest pose, others vary.
    """
    from jigdoll.character import open_motion

    _check_target(out)
    handles = read_handles(handle)
    bench = _bench(file, weights)
    start = None if base is None else open_motion(bench.asset, base)
    posed, found = bench.solve(handles, base=start, words=words, keep=keep, seed=seed)
    with answering(as_json) as answer:
        answer.add({"gaps_m": {name: round(gap, 5) for name, gap in found.gaps.items()}, "handles": bench.handles})
        for name, gap in found.gaps.items():
            answer.say(f"{name}: {1000 * gap:.1f} mm off")
        answer.wrote(_write(out, bench.asset, posed), "one pose")


def pose_inbetween(
    file: Positional[str],
    clip: Positional[str],
    /,
    *,
    out: Path,
    keys: tuple[int, ...] = (),
    every: int = 12,
    words: str | None = None,
    seed: int = 0,
    fps: float = 30.0,
    weights: WeightsFile = None,
    as_json: Json = False,
) -> None:
    """Make what lies between the key frames of a clip anew; the keys are kept exactly.

    Args:
        file: A character file, or zoo:NAME.
        clip: A clip of it, another FILE or FILE:CLIP, or a gait.
        out: A picture or a character file.
        keys: The frames that are kept; without them every few frames.
        every: Frames from key to key where none are named.
    """
    from jigdoll.character import open_motion

    _check_target(out)
    bench = _bench(file, weights)
    motion = open_motion(bench.asset, clip, fps=fps)
    if every < 1:
        raise JigdollError(f"--every {every}: keys are one frame apart or more")
    chosen = keys or (*range(0, len(motion) - 1, every), len(motion) - 1)
    made = bench.inbetween(motion, chosen, words=words, seed=seed)
    with answering(as_json) as answer:
        answer.add({"frames": len(made), "keys": sorted(set(chosen)), "fps": made.fps})
        answer.wrote(_write(out, bench.asset, made), f"{len(made)} frames, {len(set(chosen))} keys")


def pose_walk(
    file: Positional[str],
    first: Positional[str],
    second: Positional[str],
    /,
    *,
    out: Path,
    frames: int = 24,
    weights: WeightsFile = None,
    as_json: Json = False,
) -> None:
    """Go from the first pose of one clip to the first pose of another through the pose space.

    Args:
        file: A character file, or zoo:NAME.
        first: A clip of it, another FILE or FILE:CLIP, or a gait.
        second: Another one.
        out: A picture or a character file.
        frames: How many frames the way has.
    """
    from jigdoll.character import open_motion

    _check_target(out)
    bench = _bench(file, weights)
    made = bench.walk(open_motion(bench.asset, first), open_motion(bench.asset, second), frames=frames)
    with answering(as_json) as answer:
        answer.add({"frames": len(made)})
        answer.wrote(_write(out, bench.asset, made), f"{len(made)} frames")


def pose_draft(
    file: Positional[str],
    prompt: Positional[str],
    /,
    *,
    out: Path,
    seconds: float | None = None,
    fps: float = 30.0,
    loop: bool = False,
    path: Annotated[tuple[str, ...], tyro.conf.arg(metavar="X,Z ...")] = (),
    seed: int = 0,
    weights: WeightsFile = None,
    as_json: Json = False,
) -> None:
    """Make a clip from a sentence with the pose space alone.

    Args:
        file: A character file, or zoo:NAME.
        prompt: What it does: "a fox trots, then sits".
        out: A picture or a character file.
        seconds: How long.
        loop: End as it began.
        path: Points over the ground to go along [m].
    """
    from jigdoll.posespace.draft import DraftOptions

    _check_target(out)
    points = [_numbers(word, 2, "--path") for word in path] or None
    bench = _bench(file, weights)
    options = DraftOptions(seconds=seconds, fps=fps, loop=loop, path=points, seed=seed)  # pyright: ignore[reportArgumentType]
    made = bench.draft(prompt, options)
    with answering(as_json) as answer:
        answer.add({"frames": len(made), "seconds": round(made.seconds, 3), "learned": bench.space is not None})
        answer.wrote(_write(out, bench.asset, made), f"{len(made)} frames")


def pose_project(
    file: Positional[str],
    clip: Positional[str],
    /,
    *,
    out: Path,
    strength: float = 0.3,
    missing: tuple[str, ...] = (),
    seed: int = 0,
    fps: float = 30.0,
    weights: WeightsFile = None,
    as_json: Json = False,
) -> None:
    """Clean up a clip: the nearest one that is natural.

    Args:
        file: A character file, or zoo:NAME.
        clip: A clip of it, another FILE or FILE:CLIP, or a gait.
        out: A picture or a character file.
        strength: How much may change, 0 to 1.
        missing: Parts that the clip does not show and that are made up, as "left arm 0".
    """
    from jigdoll.character import open_motion

    _check_target(out)
    bench = _bench(file, weights)
    made = bench.project(open_motion(bench.asset, clip, fps=fps), strength=strength, missing=missing, seed=seed)
    with answering(as_json) as answer:
        answer.add({"frames": len(made), "learned": bench.space is not None})
        answer.wrote(_write(out, bench.asset, made), f"{len(made)} frames")


def pose_check(
    file: Positional[str],
    clip: Positional[str],
    /,
    *,
    fps: float = 30.0,
    weights: WeightsFile = None,
    as_json: Json = False,
) -> None:
    """Tell how natural a clip is and what the validators say, frame by frame.

    Args:
        file: A character file, or zoo:NAME.
        clip: A clip of it, another FILE or FILE:CLIP, or a gait.
    """
    from rich.table import Table

    from jigdoll.character import open_motion
    from jigdoll.validators import VALIDATORS

    bench = _bench(file, weights)
    found = bench.check(open_motion(bench.asset, clip, fps=fps))
    table = Table("what", "mean", "worst", "frame")
    rows = {} if found.score is None else {"off the pose space": found.score}
    for name, values in (rows | found.validators).items():
        table.add_row(name, f"{float(values.mean()):.4f}", f"{float(values.max()):.4f}", str(int(values.argmax())))
    with answering(as_json) as answer:
        score = None if found.score is None else [round(v, 5) for v in found.score.tolist()]
        frames = {name: [round(v, 5) for v in values.tolist()] for name, values in found.validators.items()}
        answer.add(
            {"score": score, "validators": frames, "tolerances": {row.name: row.tolerance for row in VALIDATORS}}
        )
        answer.show(table)


def pose_train(
    *, data: Path, out: Path, start: str = "shipped", hours: float = 1.0, seed: int = 0, as_json: Json = False
) -> None:
    """Train the pose space on clips of your own: characters in a folder, each with its clips.

    Args:
        data: A folder of character files (or a corpus with sources.tsv and clips.tsv).
        out: A folder for the data, the run and the weights.
        start: `shipped` goes on from the weights that ship, `fresh` begins anew, a file names others.
        hours: Of computing on one core.
    """
    from jigdoll.posespace.own import train_on

    target = train_on(data, out, start=start, hours=hours, seed=seed)
    with answering(as_json) as answer:
        answer.wrote(target, "weights")


def read_handles(words: Sequence[str]) -> "list[Handle]":
    """Handles from `NAME=X,Y,Z[,MODE][,TOLERANCE]`."""
    from jigdoll.posespace.handles import Handle

    found = []
    for word in words:
        name, sign, rest = word.partition("=")
        parts = [part.strip() for part in rest.split(",")]
        if not sign or len(parts) < 3:
            raise JigdollError(f"--handle {word!r}: write NAME=X,Y,Z, as in left_hand=0.4,1.2,0.3")
        extra: dict[str, Any] = {}
        for part in parts[3:]:
            if part in ("active", "pinned", "free"):
                extra["mode"] = part
            else:
                extra["tolerance"] = _numbers(part, 1, f"--handle {word!r}")[0]
        found.append(Handle(name.strip(), _numbers(",".join(parts[:3]), 3, f"--handle {word!r}"), **extra))  # pyright: ignore[reportArgumentType]
    if not found:
        raise JigdollError("no handle is given; write --handle left_hand=0.4,1.2,0.3")
    return found


def _numbers(word: str, count: int, what: str) -> tuple[float, ...]:
    try:
        values = tuple(float(part) for part in word.split(","))
    except ValueError as error:
        raise JigdollError(f"{what}: {word!r} holds something that is no number") from error
    if len(values) != count:
        raise JigdollError(f"{what}: {word!r} has {len(values)} numbers, not {count}")
    return values


def _bench(file: str, weights: Path | None) -> "Workbench":
    from jigdoll.posespace.workbench import open_workbench

    asset = character(file, up=None, forward=None, scale=None)
    if not asset.is_rigged:
        raise JigdollError(f"{file}: there is no skeleton, so nothing can be posed; jigdoll rig gives it one")
    return open_workbench(asset, weights=weights)


def _check_target(out: Path) -> None:
    from jigdoll.formats.table import check_target

    if out.suffix.lower() not in PICTURES:
        check_target(out)


def _write(out: Path, asset: "RiggedAsset", motion: "Motion") -> Path:
    """A character file with the clip, or a sheet of its frames."""
    from jigdoll.export import save

    if out.suffix.lower() not in PICTURES:
        return save(out, asset, [motion])
    from PIL import Image

    from jigdoll.render.draw import ClipStyle, contact_sheet, draw_clip, to_uint8

    count = min(len(motion), 16)
    chosen = [round(i * (len(motion) - 1) / max(count - 1, 1)) for i in range(count)]
    style = ClipStyle(mode="mesh", width=200, height=200)
    pictures = [to_uint8(draw_clip(asset, motion.pose[i][None], style=style)[0, 0]) for i in chosen]
    Image.fromarray(contact_sheet(pictures, min(count, 8))).save(out)
    return out
