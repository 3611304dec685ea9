"""The whole story: a character and a sentence in, an animation out."""

import importlib.util
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from jigdoll.asset.axes import AxisHints
from jigdoll.candidates import Candidate, DraftSource, Makers, Performer, choose, make_candidates
from jigdoll.character import ZOO, body_mark, open_character, rigged
from jigdoll.checkpoint import fingerprint
from jigdoll.directions import DirectionOptions
from jigdoll.distill.config import DistillPlan
from jigdoll.distill.finish import at_most, finished, preference
from jigdoll.distill.loop import Distilled, StepReport, distill
from jigdoll.distill.options import AnimateOptions
from jigdoll.distill.scene import make_scene
from jigdoll.errors import JigdollError, MissingExtra, PromptWarning
from jigdoll.formats import video
from jigdoll.judge import Verdict, as_dict, judge
from jigdoll.judge.grade import graded
from jigdoll.judge.story import Draft, Story
from jigdoll.language import explain, read, require_actions
from jigdoll.language.explain import understood_rows
from jigdoll.motion import check_rate, close_loop
from jigdoll.physics.prepare import Prepared, sized
from jigdoll.prior.open import open_prior
from jigdoll.protocols import PoseModel, Progress, TextTo3D, VideoPrior, part, quiet
from jigdoll.results import write_candidates, write_results
from jigdoll.rig.anatomy import anatomy_of
from jigdoll.rig.reparent import reparent, to_original
from jigdoll.rig.spring_bones import follow_through
from jigdoll.runs import ProgressFile, Run, open_run
from jigdoll.types import Motion, Request, RiggedAsset
from jigdoll.zoo.from_text import character_from_text

_FREE = ("tries", "fps", "physics", "checkpoint_seconds", "preview_seconds", "device", "offload", "vae_frames")
"""What may change when a run is taken up again: the distillation is the same."""
PREVIEW_SHARE = 0.02
"""How much of the work lies between two previews at least."""
PREFERENCE = 10.0
"""What the prior's preference counts beside the metrics; it is a few hundredths for a motion that fits its prompt."""


@dataclass(frozen=True, eq=False)
class Animation:
    """A character, how it moves, and what there is to say about it."""

    asset: RiggedAsset
    motion: Motion
    prompt: str
    verdict: Verdict
    candidates: tuple[Candidate, ...] = ()
    """The drafts, on the working copy of the rig."""
    distilled: Distilled | None = None
    """What the distillation did, where a prior was asked."""
    files: Mapping[str, Path] = field(default_factory=dict)
    """What was written: glb, bvh, mp4, sheet, report, metrics."""


def animate(
    character: str | Path | RiggedAsset | None,
    prompt: str,
    *,
    out: str | Path | None = None,
    draft: DraftSource = "auto",
    pose_model: str | Path | PoseModel | None = None,
    prior: str | VideoPrior | None = None,
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
    directions: DirectionOptions = DirectionOptions(),
    settings: AnimateOptions = AnimateOptions(),
    axes: AxisHints = AxisHints(),
    make_character: TextTo3D = character_from_text,
    progress: Progress = quiet,
) -> Animation:
    """Animate a character (a file, `zoo:fox`, an asset, or None to make it from the words) as a sentence says.

    A mesh without a skeleton is rigged on the way. With a folder `out` everything is written there, and the same call
    again goes on where it was stopped. Real motion is found by the words and put on the body, in seconds; the most
    natural of several drafts is kept. The pose space (its weights that ship, those of a file, or a `pose_model` of
    yours) draws what no real motion is known for; the draft "pose" asks only it, "mixed" both and mixtures. With a
    `prior` (pocket, which is built in, the name of a large video model, or yours) the draft is then distilled; with the
    draft "none" distillation begins at rest, as in the paper.
    A large prior takes a `device` such as cuda, and less memory by `offload` and `vae_frames` (`prior.open`).
    Another `seed` gives another motion, another `character_seed` another individual of a built-in character.
    With `physics` the clip is then performed by simulated bodies (AKD 4.5), which takes minutes.
    An action that nobody knows is refused; `anyway` takes the nearest one in its place.
    `directions` has speed, path, first and last pose. `settings` has everything about the distillation, seconds, loop,
    seed and tries included; those that are given here count. `axes` tells how a file is to be read where the guess is
    wrong.
    """
    check_rate(fps)
    if physics:
        check_physics()
    given = {"seed": seed, "tries": tries, "loop": loop, "seconds": seconds}
    options = replace(settings, **{name: value for name, value in given.items() if value is not None})
    if options.tries < 1:
        raise JigdollError(f"{options.tries} tries make nothing; ask for 1 or more")
    gpu = {"device": device, "offload": offload, "vae_frames": vae_frames}
    video_prior = None if prior is None else open_prior(prior, **gpu)
    makers = Makers(draft, Path(pose_model) if isinstance(pose_model, str) else pose_model, video_prior)
    makers.check()
    asked = read(prompt)
    if draft == "none":
        _refuse_unlearned(asked, video_prior, anyway=anyway)
    progress(0.0, "opening the character")
    asset = open_character(character, prompt, seed=character_seed, axes=axes, make_character=make_character)
    asset = rigged(asset, progress=part(progress, 0.0, 0.1))
    request = {"character": _named(character), "body": body_mark(asset), "prompt": prompt, "prior": _named(prior)}
    request |= {
        "draft": draft,
        "pose_model": _named(pose_model),
        "fps": fps,
        "physics": physics,
        "character_seed": character_seed,
        **gpu,
    }
    request |= asdict(axes) | asdict(options) | {"directions": asdict(directions)}
    reparented = reparent(asset)
    who = Performer(asset, reparented, anatomy_of(reparented.asset))
    ready = sized(who.anatomy) if physics else None  # refuses now what has no flesh
    with _folder(out, request) as run:
        drafting, working = part(progress, 0.1, 0.3), part(progress, 0.3, 0.4 if physics else 0.7)
        candidates = make_candidates(who, asked, options, directions, makers, fps=fps, progress=drafting)
        if draft == "auto" and not candidates:
            _refuse_unlearned(asked, video_prior, anyway=anyway)
        best = candidates[choose(candidates)] if candidates else None
        distilled = None
        if video_prior is not None:
            motion, distilled = _distilled(who, asked, best, makers, options, fps=fps, run=run, progress=working)
        else:
            assert best is not None
            motion = best.motion
        motion = replace(motion, name=prompt)
        stages = [] if best is None else [("the draft", best.verdict)]
        if distilled is not None:
            stages.append(("distillation", _judged(who, asked, motion, None, motion)))
        if not directions.stiff:
            motion = follow_through(who.anatomy, motion, loop=options.loop)
        before = motion
        if ready is not None:
            stages.append(("following through", _judged(who, asked, motion, None, motion)))
            motion = performed(ready, motion, loop=options.loop, run=run, progress=part(progress, 0.4, 0.7))
        verdict = _judged(who, asked, motion, ready, before)
        stages.append(("physics" if ready is not None else "following through", verdict))
        shown = to_original(reparented, motion)
        files: dict[str, Path] = {}
        if run is not None:
            story = _story(asked, candidates, stages)
            files = _written(run, who, shown, verdict, candidates, distilled, story, part(progress, 0.7, 1.0))
    progress(1.0, "done")
    return Animation(asset, shown, prompt, verdict, tuple(candidates), distilled, files)


def _refuse_unlearned(asked: Request, prior: VideoPrior | None, *, anyway: bool) -> None:
    """Refuse what has to be distilled from rest and was never learned; warn of words that are not obeyed."""
    able = None if prior is None else prior.defaults.actions
    require_actions(asked, able, anyway=anyway)
    if able is not None and (note := explain(asked, able)):
        warnings.warn(f"{asked.prompt!r}: {note}", PromptWarning, stacklevel=3)


def _distilled(
    who: Performer,
    asked: Request,
    best: Candidate | None,
    makers: Makers,
    options: AnimateOptions,
    *,
    fps: float,
    run: Run | None,
    progress: Progress,
) -> tuple[Motion, Distilled]:
    """What the prior makes of the draft, or of the rest pose; the pose space says how natural each pose is."""
    prior, model = makers.prior, None if best is None else makers.pose
    assert prior is not None
    natural = None if model is None else partial(model.score, who.anatomy)
    words, unwanted = prior.texts(asked)
    if options.guidance.negative_prompt is None:
        options = replace(options, guidance=replace(options.guidance, negative_prompt=unwanted))
    clips: dict[int, Motion] = {}

    def shipped(made: Distilled) -> Motion:
        motion = finished(who.anatomy, made, fps=fps, loop=options.loop, name=asked.prompt)
        return at_most(motion, options.seconds, loop=options.loop)

    def score(made: Distilled) -> float:
        """Of the clip that ships."""
        clips[made.seed] = motion = shipped(made)
        return quality(judge(who.anatomy.asset, motion)) + PREFERENCE * preference(scene, motion)

    progress(0.0, "setting the scene")
    scene = make_scene(
        who.anatomy, words, prior, options, draft=None if best is None else best.motion, naturalness=natural
    )
    made = distill(
        scene,
        checkpoint=run.checkpoint if run else None,
        watch=_watch(run, scene.plan, progress),
        score=score,
    )
    return clips.get(made.seed) or shipped(made), made


def check_physics() -> None:
    """Refuse at once what would fail after minutes of distillation."""
    if importlib.util.find_spec("newton") is None:
        raise MissingExtra("performing a clip under physics", "physics")


def _judged(who: Performer, asked: Request, motion: Motion, ready: Prepared | None, before: Motion) -> Verdict:
    """What the judge says; of a performed clip also the forces, at the size at which it was simulated."""
    if ready is None:
        verdict = judge(who.anatomy.asset, motion)
    else:
        beside = replace(ready.clip(before), name="before physics")
        verdict = judge(ready.asset, ready.clip(motion), reference=beside, bodies=ready.bodies)
    return graded(verdict, who.anatomy, motion, request=asked)


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


def _written(
    run: Run,
    who: Performer,
    motion: Motion,
    verdict: Verdict,
    candidates: Sequence[Candidate],
    distilled: Distilled | None,
    story: Story,
    progress: Progress,
) -> dict[str, Path]:
    """The results of a run in its folder."""
    facts = {"body": who.anatomy.kind}
    numbers: dict[str, Any] = {"verdict": as_dict(verdict)}
    if candidates:
        best = candidates[choose(candidates)]
        facts |= {"made of": best.origin, "seed": str(best.seed)}
        numbers |= {"seed": best.seed, "candidates": [each.facts() for each in candidates]}
    if distilled is not None:
        facts |= {"seed": str(distilled.seed), "tries": str(len(distilled.scores)), "score": f"{distilled.score:.2f}"}
        numbers |= {"score": distilled.score, "scores": distilled.scores, "seed": distilled.seed}
        numbers |= {"settings": asdict(distilled.plan), "losses": distilled.history}
    losses = None if distilled is None else distilled.history
    sheet = None
    if len(candidates) > 1:
        motions = [to_original(who.reparented, each.motion) for each in candidates]
        labels = [f"{each.natural.grade:.2f} {each.origin}" for each in candidates]
        sheet = write_candidates(run, who.asset, motions, labels, progress=part(progress, 0.0, 0.3))
    files = write_results(
        run,
        who.asset,
        motion,
        verdict,
        facts=facts,
        numbers=numbers,
        losses=losses,
        story=replace(story, sheet=sheet),
        progress=part(progress, 0.3, 1.0),
    )
    return files if sheet is None else files | {"candidates": sheet}


def _story(asked: Request, candidates: Sequence[Candidate], stages: Sequence[tuple[str, Verdict]]) -> Story:
    """How the clip came about."""
    drafts = [
        Draft(each.origin, each.fit, each.natural.grade, tuple(fault.message for fault in each.natural.faults))
        for each in candidates
    ]
    chosen = choose(candidates) if candidates else 0
    notes = [("note", note) for note in (candidates[chosen].notes if candidates else ())]
    return Story((*understood_rows(asked), *notes), tuple(drafts), chosen, tuple(stages))


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
