"""The main verb: animate."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from tyro.conf import Positional

from jigdoll.cli.shared import Forward, Json, Scale, Up, answering, console, progress_bar
from jigdoll.directions import DirectionOptions
from jigdoll.distill.options import AnimateOptions, changed, options_from, paper_options
from jigdoll.errors import JigdollError

Character = Annotated[Positional[str | None], tyro.conf.arg(metavar="[CHARACTER]")]
Prompt = Annotated[Positional[str | None], tyro.conf.arg(metavar="PROMPT")]
Options = Annotated[AnimateOptions, tyro.conf.arg(name="")]
Directing = Annotated[DirectionOptions, tyro.conf.arg(name="")]


def animate(
    character: Character = None,
    prompt: Prompt = None,
    /,
    *,
    out: Path | None = None,
    resume: Path | None = None,
    draft: Literal["auto", "memory", "pose", "mixed", "none"] = "auto",
    pose_weights: Path | None = None,
    prior: str | None = None,
    device: str | None = None,
    offload: bool = False,
    vae_frames: int | None = None,
    fps: float = 24.0,
    character_seed: int = 0,
    physics: bool = False,
    anyway: bool = False,
    paper: bool = False,
    directions: Directing = DirectionOptions(),
    settings: Options = AnimateOptions(),
    up: Up = None,
    forward: Forward = None,
    scale: Scale = None,
    as_json: Json = False,
) -> None:
    """Animate a character as a sentence says: jigdoll animate fox.glb "a fox walks".

    The same command again goes on where it was stopped, and so does --resume FOLDER without the rest.

    Args:
        character: A file (.glb, .fbx, .obj ...), zoo:NAME, or left out: then the words make the character too.
        prompt: What it does.
        out: Folder for everything that is written; named after the words by default.
        resume: Go on with the run in this folder, with its own settings.
        draft: Where the motion begins: real motion found by the words (memory), motion drawn by the pose space (pose),
            both and mixtures of them, the judge chooses (mixed), the rest pose (none, with --prior), or real motion
            where it is known and the pose space where it is not (auto).
        pose_weights: Weights of the pose space of your own (`jigdoll pose train`); else those that ship.
        prior: Distil the draft: pocket (built in), weights of your own, or a large video model (cogvideox-5b, wan-2.2,
            ltx, a folder). Settings of the distillation alone mean pocket.
        device: Where the prior runs and the motion with it, such as cuda; by default the CPU for pocket, a GPU else.
        offload: Keep a large model in main memory and bring it to the GPU block by block: slower, far less GPU memory.
        vae_frames: Let each step's gradient pass through so many latent frames only (2, say): less GPU memory.
        fps: Frames per second of the clip.
        character_seed: Another one gives another individual of a built-in character.
        physics: Let simulated bodies perform the clip afterwards (minutes; needs the physics extra).
        anyway: Go on with an action that is not known: the nearest one is taken in its place.
        paper: The recipe of the AKD paper as it stands, from rest, with its constants; further options change it.
    """
    from jigdoll import pipeline
    from jigdoll.candidates import choose
    from jigdoll.judge import as_dict

    if resume is not None:
        if character is not None or prompt is not None:
            raise JigdollError("--resume takes words, character and settings from the folder; leave the others out")
        character, prompt, options = options_of(resume)
        options["anyway"] = True  # what has begun was allowed
        out = resume
    else:
        character, prompt = who_and_what(character, prompt)
        out = out or Path("animations") / pipeline.folder_name(character, prompt)
        if prior is None and (paper or settings.distils or draft == "none"):
            prior = "pocket"
        if paper:
            draft, directions = "none", replace(directions, stiff=True)
        options: dict[str, Any] = {"prior": prior, "device": device, "offload": offload, "vae_frames": vae_frames}
        options |= {"draft": draft, "pose_model": pose_weights, "directions": directions}
        options |= {"fps": fps, "character_seed": character_seed, "physics": physics, "anyway": anyway}
        options |= {"settings": changed(paper_options(), settings) if paper else settings}
        options |= {"axes": pipeline.AxisHints(up, forward, scale)}
    try:
        with progress_bar() as progress:
            made = pipeline.animate(character, prompt, out=out, progress=progress, **options)
    except KeyboardInterrupt:
        console(error=True).print(f"stopped; jigdoll animate --resume {out} goes on", highlight=False, markup=False)
        raise
    verdict, done, natural = made.verdict, made.distilled, made.verdict.natural
    with answering(as_json) as answer:
        answer.add({"prompt": prompt, **({} if done is None else {"seed": done.seed, "score": done.score})})
        answer.add({"candidates": [candidate.facts() for candidate in made.candidates]})
        answer.add({"verdict": as_dict(verdict), "named": {name: str(path) for name, path in made.files.items()}})
        for path in made.files.values():
            answer.wrote(path)
        answer.say(
            f"{verdict.travel_speed:.2f} body lengths/s, {verdict.stride_frequency:.1f} strides/s, feet slide in "
            f"{verdict.skate_ratio:.0%} of their steps"
        )
        if made.candidates and done is None:
            answer.say(f"made of: {made.candidates[choose(made.candidates)].origin}")
        if natural is not None:
            wrong = "; ".join(fault.message for fault in natural.faults)
            answer.say(f"looks natural to {natural.grade:.0%}" + (f": {wrong}" if wrong else ""))


def who_and_what(character: str | None, prompt: str | None) -> tuple[str | None, str]:
    """The two words of the command line: one alone is the prompt."""
    if character is None:
        raise JigdollError(
            'say what to animate: jigdoll animate fox.glb "a fox walks", or jigdoll animate "a fox walks"'
        )
    if prompt is not None:
        return character, prompt
    if character.startswith("zoo:") or Path(character).is_file():
        raise JigdollError(f'{character}: say what it does as well: jigdoll animate {character} "it walks"')
    return None, character


def options_of(folder: Path) -> tuple[str | None, str, dict[str, Any]]:
    """Character, prompt and options of the run that a folder holds."""
    from jigdoll.pipeline import AxisHints
    from jigdoll.runs import read_request

    request = read_request(folder)
    try:
        names = ("draft", "pose_model", "prior", "device", "offload", "vae_frames", "fps", "character_seed", "physics")
        options = {name: request[name] for name in names}
        axes = AxisHints(request["up"], request["forward"], request["scale"])
        options |= {"settings": options_from(request), "axes": axes}
        options |= {"directions": options_from(request["directions"], DirectionOptions)}
        return request["character"], request["prompt"], options
    except (KeyError, TypeError, ValueError) as error:
        raise JigdollError(f"{folder}: its config.json is not that of an animation ({error})") from error
