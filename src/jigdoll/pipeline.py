"""The whole story: a character and a sentence in, an animation out."""

import importlib.util
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from jigdoll.asset.axes import AxisHints
from jigdoll.character import ZOO, body_mark, open_character, rigged
from jigdoll.checkpoint import fingerprint
from jigdoll.distill.config import DistillPlan
from jigdoll.distill.foot_lock import foot_lock
from jigdoll.distill.loop import Distilled, StepReport, distill
from jigdoll.distill.options import AnimateOptions
from jigdoll.distill.scene import Scene, make_scene, render_window, sample_camera
from jigdoll.distill.trajectory import to_motion
from jigdoll.errors import MissingExtra
from jigdoll.export import save
from jigdoll.formats import video
from jigdoll.judge import Verdict, as_dict, judge
from jigdoll.judge.report import draw_film, write_report
from jigdoll.kinematics import forward
from jigdoll.language import explain, read, require_actions
from jigdoll.language.encoder import open_encoder
from jigdoll.math.devices import to_device
from jigdoll.memory.draft import draft
from jigdoll.memory.segments import open_memory
from jigdoll.motion import check_rate, close_loop, resample, slice_motion
from jigdoll.physics.prepare import Prepared, sized
from jigdoll.prior.open import open_prior
from jigdoll.protocols import Progress, TextTo3D, VideoPrior, part, quiet
from jigdoll.render.draw import contact_sheet
from jigdoll.rig.anatomy import anatomy_of
from jigdoll.rig.reparent import reparent, to_original
from jigdoll.runs import ProgressFile, Run, open_run
from jigdoll.types import Motion, Pose, RiggedAsset
from jigdoll.zoo.from_text import character_from_text

_FREE = ("tries", "fps", "physics", "checkpoint_seconds", "preview_seconds", "device", "offload", "vae_frames")
"""What may change when a run is taken up again: the distillation is the same."""
MEMORY = "memory"
"""The prior of that name is none: real motion, found by words."""
PREVIEW_SHARE = 0.02
"""How much of the work lies between two previews at least."""
PREFERENCE = 10.0
"""What the prior's preference counts beside the metrics; it is a few hundredths for a motion that fits its prompt."""


class PromptWarning(UserWarning):
    """Something in a prompt will not be obeyed."""


@dataclass(frozen=True, eq=False)
class Animation:
    """A character, how it moves, and what there is to say about it."""

    asset: RiggedAsset
    motion: Motion
    prompt: str
    verdict: Verdict
    distilled: Distilled | None
    """What the distillation did; None where the motion is real motion from the memory."""
    files: Mapping[str, Path] = field(default_factory=dict)
    """What was written: glb, bvh, mp4, sheet, report, metrics."""


def animate(
    character: str | Path | RiggedAsset | None,
    prompt: str,
    *,
    out: str | Path | None = None,
    prior: str | VideoPrior = MEMORY,
    device: str | None = None,
    offload: bool = False,
    vae_frames: int | None = None,
    seconds: float | None = None,
    fps: float = 24.0,
    loop: bool | None = None,
    seed: int | None = None,
    character_seed: int = 0,
    tries: int | None = None,
    physics: bool = False,
    anyway: bool = False,
    settings: AnimateOptions = AnimateOptions(),
    axes: AxisHints = AxisHints(),
    make_character: TextTo3D = character_from_text,
    progress: Progress = quiet,
) -> Animation:
    """Animate a character (a file, `zoo:fox`, an asset, or None to make it from the words) as a sentence says.

    A mesh without a skeleton is rigged on the way. With a folder `out` everything is written there, and the same call
    again goes on where it was stopped. By default real motion is found in the memory by the words and put on the body,
    in seconds. With a `prior` (pocket, which is built in, the name of a large video model, or yours) it is distilled.
    A large one takes a `device` such as cuda, and less memory by `offload` and `vae_frames` (`prior.open.open_prior`).
    Another `seed` gives another motion, another `character_seed` another individual of a built-in character.
    With `physics` the clip is then performed by simulated bodies (AKD 4.5), which takes minutes.
    An action that the prior never learned is refused; `anyway` takes the nearest one in its place.
    `settings` has everything about the distillation, seconds, loop, seed and tries included; those that are given here
    count. `axes` tells how a file is to be read where the guess is wrong.
    """
    if physics:
        check_physics()
    if prior == MEMORY:
        settings = replace(
            settings,
            seconds=settings.seconds if seconds is None else seconds,
            loop=settings.loop if loop is None else loop,
            seed=settings.seed if seed is None else seed,
            tries=settings.tries if tries is None else tries,
        )
        asset = open_character(character, prompt, seed=character_seed, axes=axes, make_character=make_character)
        asset = rigged(asset, progress=part(progress, 0.0, 0.3))
        request = {"character": _named(character), "body": body_mark(asset), "prompt": prompt, "prior": MEMORY}
        request |= {"fps": fps, "physics": physics, "character_seed": character_seed}
        request |= {**asdict(axes), **asdict(settings)}
        request |= {"device": device, "offload": offload, "vae_frames": vae_frames}
        with _folder(out, request) as run:
            return from_memory(
                asset, prompt, settings, fps=fps, physics=physics, run=run, progress=part(progress, 0.3, 1.0)
            )
    memory = {"device": device, "offload": offload, "vae_frames": vae_frames}
    video_prior, asked = open_prior(prior, **memory), read(prompt)
    able = video_prior.defaults.actions
    require_actions(asked, able, anyway=anyway)
    if able is not None and (note := explain(asked, able)):
        warnings.warn(f"{prompt!r}: {note}", PromptWarning, stacklevel=2)
    progress(0.0, "opening the character")
    asset = open_character(character, prompt, seed=character_seed, axes=axes, make_character=make_character)
    asset = rigged(asset, progress=part(progress, 0.0, 0.1))
    given = {"seed": seed, "tries": tries, "loop": loop, "seconds": seconds}
    options = replace(settings, **{name: value for name, value in given.items() if value is not None})
    request = {"character": _named(character), "body": body_mark(asset), "prompt": prompt, "prior": _named(prior)}
    request |= {"fps": fps, "physics": physics, "character_seed": character_seed, **memory}
    request |= asdict(axes) | asdict(options)
    words, unwanted = video_prior.texts(asked)
    if options.guidance.negative_prompt is None:
        options = replace(options, guidance=replace(options.guidance, negative_prompt=unwanted))
    reparented = reparent(asset)
    body = reparented.asset
    ready = sized(anatomy_of(body)) if physics else None  # refuses now what has no flesh
    clips: dict[int, Motion] = {}

    def shipped(made: Distilled) -> Motion:
        motion = finished(body, made, fps=fps, loop=options.loop, name=prompt)
        return at_most(motion, options.seconds, loop=options.loop)

    def score(made: Distilled) -> float:
        """Of the clip that ships."""
        clips[made.seed] = motion = shipped(made)
        return quality(judge(body, motion)) + PREFERENCE * preference(scene, motion)

    with _folder(out, request) as run:
        progress(0.1, "setting the scene")
        scene = make_scene(body, words, video_prior, options)
        distilled = distill(
            scene,
            checkpoint=run.checkpoint if run else None,
            watch=_watch(run, scene.plan, part(progress, 0.1, 0.4 if physics else 0.85)),
            score=score,
        )
        motion = clips.get(distilled.seed) or shipped(distilled)
        before = None
        if ready is not None:
            before = replace(motion, name="before physics")
            performing = part(progress, 0.4, 0.85)
            motion = performed(ready, motion, loop=options.loop, run=run, progress=performing)
        verdict = _judged(ready, body, motion, before)
        motion = to_original(reparented, motion)
        files = {}
        if run is not None:
            facts = {
                "seed": str(distilled.seed),
                "tries": str(len(distilled.scores)),
                "score": f"{distilled.score:.2f}",
            }
            files = write_results(
                run, asset, motion, verdict, facts=facts, numbers=_metrics(verdict, distilled),
                losses=distilled.history, progress=part(progress, 0.85, 1.0),
            )  # fmt: skip
    progress(1.0, "done")
    return Animation(asset, motion, prompt, verdict, distilled, files)


def from_memory(
    asset: RiggedAsset,
    prompt: str,
    options: AnimateOptions,
    *,
    fps: float,
    physics: bool,
    run: Run | None,
    progress: Progress = quiet,
) -> Animation:
    """A sentence as real motion on a body: found by words, shaped, put on its limbs, its feet on the ground."""
    check_rate(fps)
    seed, tries, loop = options.seed, options.tries, options.loop
    request, reparented = read(prompt), reparent(asset)
    anatomy, memory, encoder = anatomy_of(reparented.asset), open_memory(), open_encoder()
    if note := explain(request):
        warnings.warn(f"{prompt!r}: {note}", PromptWarning, stacklevel=3)
    progress(0.0, "finding real motion")
    drafts = [
        draft(memory, request, anatomy, encoder, seconds=options.seconds, fps=fps, loop=loop, seed=seed + i)
        for i in range(tries)
    ]
    verdicts = [judge(anatomy.asset, d.motion) for d in drafts]
    best = max(range(tries), key=lambda i: drafts[i].fit + 0.2 * quality(verdicts[i]))
    motion, verdict = replace(drafts[best].motion, name=prompt), verdicts[best]
    if physics:
        ready, before = sized(anatomy), replace(motion, name="before physics")
        motion = performed(ready, motion, loop=loop, run=run, progress=part(progress, 0.2, 0.8))
        verdict = _judged(ready, anatomy.asset, motion, before)
    motion = to_original(reparented, motion)
    facts = {f"action {i + 1}": f"{f.words.text} ({f.words.source})" for i, f in enumerate(drafts[best].found)}
    facts |= {"seed": str(seed + best), "body": anatomy.kind}
    files = {}
    if run is not None:
        numbers = {
            "verdict": as_dict(verdict),
            "found": [asdict(f.words) for f in drafts[best].found],
            "seed": seed + best,
        }
        files = write_results(
            run,
            asset,
            motion,
            verdict,
            facts=facts,
            numbers=numbers,
            progress=part(progress, 0.8 if physics else 0.2, 1.0),
        )
    progress(1.0, "done")
    return Animation(asset, motion, prompt, verdict, None, files)


def finished(body: RiggedAsset, distilled: Distilled, *, fps: float, loop: bool, name: str) -> Motion:
    """The distilled motion at the rate that is wanted, with feet that stand where they stand, closed if it loops.

    The paper's own recipe knows no standing feet, so they are put down only where the losses ask for contact.
    """
    check_rate(fps)
    if distilled.trajectory.basis == "frames":
        motion = resample(distilled.motion, fps)
    else:
        motion = to_motion(distilled.trajectory, distilled.theta, fps=fps)
    if distilled.plan.losses["contact"]:
        motion = foot_lock(body, motion, distilled.tempo)
    return replace(close_loop(motion, body.skeleton) if loop else motion, name=name)


def at_most(motion: Motion, seconds: float | None, *, loop: bool = False) -> Motion:
    """The motion cut to the length that was asked for: a prior sees its whole window at once, however short the wish.

    A loop cannot be cut; that it stays longer is said.
    """
    if seconds is None or motion.seconds <= seconds + 0.5 / motion.fps:
        return motion
    if loop:
        warnings.warn(
            f"a loop of {seconds:g} s was asked for and {motion.seconds:.2f} s are made: the prior sees that much at "
            "once, and a part of a loop is none",
            PromptWarning,
            stacklevel=3,
        )
        return motion
    return slice_motion(motion, slice(0, max(2, round(seconds * motion.fps) + 1)))


def check_physics() -> None:
    """Refuse at once what would fail after minutes of distillation."""
    if importlib.util.find_spec("newton") is None:
        raise MissingExtra("performing a clip under physics", "physics")


def _judged(ready: Prepared | None, body: RiggedAsset, motion: Motion, before: Motion | None) -> Verdict:
    """What the judge says, of a performed clip at the size at which it was simulated."""
    if ready is None or before is None:
        return judge(body, motion)
    return judge(ready.asset, ready.clip(motion), reference=ready.clip(before), bodies=ready.bodies)


def performed(ready: Prepared, motion: Motion, *, loop: bool, run: Run | None, progress: Progress) -> Motion:
    """The nearest motion that simulated bodies can perform."""
    from jigdoll.physics.engine_mujoco import MujocoEngine
    from jigdoll.physics.engine_newton import NewtonEngine, compile_kernels
    from jigdoll.physics.track import TrackConfig, track

    compile_kernels(lambda what: progress(0.0, what))
    # Named by the clip's content: of other tries another one may be the best.
    saved = run.path(f"tracking-{fingerprint(motion.pose, motion.fps)[:12]}.npz") if run else None
    own = ready.clip(motion)
    done = track(
        ready.asset,
        own,
        NewtonEngine,
        ready.config(TrackConfig(), own),
        bodies=ready.bodies,
        make_robust=MujocoEngine,
        checkpoint=saved,
        progress=progress,
    )
    made = close_loop(done.motion, ready.asset.skeleton) if loop else done.motion
    return replace(ready.back(made), name=motion.name)


def quality(verdict: Verdict) -> float:
    """One number to choose between tries by: legs cycle the right way, feet stay put, nothing goes through anything.

    No metric knows the prompt; they only tell a sound motion from a broken one.
    """
    return (
        verdict.direction
        - 2 * verdict.skate_ratio
        - 20 * (verdict.penetration + verdict.floating)
        - 5 * verdict.self_intersection
        - 2 * verdict.limit_violations
    )


@torch.no_grad()
def preference(scene: Scene, motion: Motion) -> float:
    """How much better the prior explains the motion by the prompt than by its opposite, as a share of the error.

    The difference matters and not the error itself: a motion that hardly moves is the easiest to explain, by any text.
    Every motion is asked the same questions: same cameras, same noise.
    """
    generator = torch.Generator().manual_seed(0)
    guidance, prior = scene.plan.guidance, scene.prior
    low, high = guidance.level_low, guidance.level_high
    pose = to_device(_at_frames(motion, scene.plan.frames, scene.plan.fps).pose, prior.device)
    T_world_joint = forward(scene.trajectory.skeleton, pose)
    right = wrong = 0.0
    for share in (0.2, 0.4, 0.6, 0.8):
        level = low + share * (high - low)
        seen, reference_image = render_window(scene, T_world_joint, sample_camera(scene, generator))
        clean = prior.encode(seen)
        noisy = prior.noise(clean, level, generator)
        wanted, unwanted = prior.denoise(noisy, level, [scene.texts.wanted, scene.texts.unwanted], reference_image)
        right += float((wanted - clean).square().mean())
        wrong += float((unwanted - clean).square().mean())
    return (wrong - right) / max(wrong + right, 1e-12)


def _at_frames(motion: Motion, frames: int, fps: float) -> Motion:
    """The motion at another rate with this many frames; the last one is held where the clip is too short for that."""
    again = resample(motion, fps)
    index = torch.arange(frames).clamp_max(len(again) - 1)
    return replace(again, pose=Pose(again.pose.root[index], again.pose.rotations[index]))


def write_results(
    run: Run,
    asset: RiggedAsset,
    motion: Motion,
    verdict: Verdict,
    *,
    facts: Mapping[str, str],
    numbers: Mapping[str, Any],
    losses: Mapping[str, Any] | None = None,
    progress: Progress,
) -> dict[str, Path]:
    """Everything that people open: the clip in the original character, the bare motion, a film, pictures, figures."""
    progress(0.0, "writing the character")
    files = {
        "glb": save(run.path("motion.glb"), asset, [motion]),
        "bvh": save(run.path("motion.bvh"), asset, [motion]),
        "metrics": run.write_json("metrics.json", numbers),
    }
    progress(0.2, "filming")
    film = draw_film(asset, motion)
    chosen = torch.linspace(0, len(film) - 1, min(12, len(film))).round().long()
    files["mp4"] = video.write(run.path("motion.mp4"), film, fps=motion.fps)
    files["sheet"] = video.write_picture(run.path("sheet.png"), contact_sheet(list(film[chosen].numpy()), 4))
    progress(0.8, "writing the report")
    files["report"] = write_report(
        run.path("report.html"),
        asset,
        motion,
        verdict=verdict,
        prompt=motion.name,
        facts=facts,
        losses=losses,
        film=film,
        film_file=files["mp4"],
    )
    return files


def _metrics(verdict: Verdict, distilled: Distilled) -> dict[str, Any]:
    return {
        "verdict": as_dict(verdict),
        "score": distilled.score,
        "scores": distilled.scores,
        "seed": distilled.seed,
        "settings": asdict(distilled.plan),
        "losses": distilled.history,
    }


def folder_name(character: str | Path | None, prompt: str) -> str:
    """A folder name for a run: who, and what is asked for."""
    who = "" if character is None else Path(str(character).removeprefix(ZOO)).stem
    return re.sub(r"[^a-z0-9]+", "-", f"{who} {prompt}".lower()).strip("-")[:60] or "animation"


@contextmanager
def _folder(out: str | Path | None, request: Mapping[str, Any]) -> Iterator[Run | None]:
    if out is None:
        yield None
    else:
        with open_run(out, request, free=_FREE) as run:
            yield run


def _named(thing: object) -> str | None:
    """How a character or a prior is called in a request."""
    if thing is None or isinstance(thing, str):
        return thing
    return str(thing) if isinstance(thing, Path) else f"{type(thing).__name__} {getattr(thing, 'name', '')}".strip()


def _watch(run: Run | None, plan: DistillPlan, progress: Progress) -> Callable[[StepReport], None]:
    """Tell the caller, and the run folder, what the distillation says about itself."""
    diary = ProgressFile(run) if run else None
    shown = -1.0

    def watch(now: StepReport) -> None:
        nonlocal shown
        attempt = f", try {now.attempt + 1} of {plan.tries}" if plan.tries > 1 else ""
        progress(now.fraction, f"distilling, step {now.step} of {plan.steps}{attempt}")
        if now.message:
            warnings.warn(now.message, stacklevel=2)
        if run is not None and diary is not None:
            content = {name: getattr(now, name) for name in ("fraction", "seconds_left", "step", "attempt", "losses")}
            diary.tell({**content, "message": now.message}, now=now.fraction >= 1)
            if now.picture is not None and now.fraction - shown >= PREVIEW_SHARE:
                shown = now.fraction
                video.write_picture(run.path(f"previews/try{now.attempt}-step{now.step:05d}.png"), now.picture)

    return watch
