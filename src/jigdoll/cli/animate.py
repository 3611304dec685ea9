"""The main verb: animate."""

import json
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

import tyro
from tyro.conf import Positional

from jigdoll.cli.shared import Forward, Json, Scale, Up, answering, console, progress_bar
from jigdoll.errors import JigdollError

if TYPE_CHECKING:
    from jigdoll.distill.config import DistillConfig

Character = Annotated[Positional[str | None], tyro.conf.arg(metavar="[CHARACTER]")]
Prompt = Annotated[Positional[str | None], tyro.conf.arg(metavar="PROMPT")]
Settings = Annotated[tuple[str, ...], tyro.conf.arg(name="set", metavar="NAME=VALUE")]


def animate(
    character: Character = None,
    prompt: Prompt = None,
    /,
    *,
    out: Path | None = None,
    resume: Path | None = None,
    prior: str = "pocket",
    seconds: float | None = None,
    fps: float = 24.0,
    loop: bool = False,
    seed: int = 0,
    character_seed: int = 0,
    tries: int = 1,
    physics: bool = False,
    anyway: bool = False,
    iterations: int | None = None,
    paper: bool = False,
    settings: Settings = (),
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
        prior: pocket (built in), weights of your own, or a large video model (cogvideox-5b, wan-2.2, ltx, a folder).
        seconds: Length of the clip; what the prior sees at once by default.
        fps: Frames per second of the clip.
        loop: Let it end in the pose it began with.
        seed: Another seed gives another motion.
        character_seed: Another one gives another individual of a built-in character.
        tries: Seeds to run; the best one is kept.
        physics: Let simulated bodies perform the clip afterwards (minutes; needs the physics extra).
        anyway: Go on with an action that is not known: the nearest one is taken in its place.
        iterations: Steps of the optimiser.
        paper: The recipe of the AKD paper as it stands, with its constants.
        settings: Any other setting of the distillation, such as contact=50 form=sds views=4.
    """
    from jigdoll import pipeline
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
        config = configured(settings, paper=paper, iterations=iterations)
        options: dict[str, Any] = {"prior": prior, "seconds": seconds, "fps": fps, "loop": loop, "seed": seed}
        axes = pipeline.AxisHints(up, forward, scale)
        options |= {"character_seed": character_seed, "tries": tries, "physics": physics, "anyway": anyway}
        options |= {"settings": config, "axes": axes}
    try:
        with progress_bar() as progress:
            made = pipeline.animate(character, prompt, out=out, progress=progress, **options)
    except KeyboardInterrupt:
        console(error=True).print(f"stopped; jigdoll animate --resume {out} goes on", highlight=False, markup=False)
        raise
    verdict = made.verdict
    with answering(as_json) as answer:
        answer.add({"prompt": prompt, "seed": made.distilled.seed, "score": made.distilled.score})
        answer.add({"verdict": as_dict(verdict), "named": {name: str(path) for name, path in made.files.items()}})
        for path in made.files.values():
            answer.wrote(path)
        answer.say(
            f"{verdict.travel_speed:.2f} body lengths/s, {verdict.stride_frequency:.1f} strides/s, feet slide in "
            f"{verdict.skate_ratio:.0%} of their steps; seed {made.distilled.seed}"
        )


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


def configured(settings: tuple[str, ...], *, paper: bool, iterations: int | None) -> "DistillConfig":
    """The settings of the distillation that NAME=VALUE words ask for."""
    from jigdoll.distill.config import DistillConfig, paper_config

    changes = dict(setting(word) for word in settings)
    if iterations is not None:
        changes["iterations"] = iterations
    return paper_config(**changes) if paper else DistillConfig(**changes)


def setting(word: str) -> tuple[str, Any]:
    """A setting of the distillation from a word NAME=VALUE."""
    from dataclasses import fields
    from difflib import get_close_matches
    from typing import get_type_hints

    from jigdoll.distill.config import DistillConfig

    name, equals, text = word.partition("=")
    names = [f.name for f in fields(DistillConfig)]
    if not equals or name not in names:
        close = get_close_matches(name, names, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(close)}?" if close else f"the settings are {', '.join(names)}"
        raise JigdollError(f"--set {word}: give NAME=VALUE with a setting of the distillation; {hint}")
    kind = get_type_hints(DistillConfig)[name]
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    try:
        return name, fitted(value, kind)
    except ValueError as error:
        raise JigdollError(f"--set {word}: {name} takes {error}") from error


def fitted(value: Any, kind: Any) -> Any:
    """The value as that type has it; a ValueError says what would fit."""
    if get_origin(kind) in (Union, UnionType):
        wishes = []
        for choice in get_args(kind):
            try:
                return fitted(value, choice)
            except ValueError as error:
                wishes.append(str(error))
        raise ValueError(" or ".join(wishes))
    if get_origin(kind) is Literal:
        if value in get_args(kind):
            return value
        raise ValueError(", ".join(map(str, get_args(kind))))
    if get_origin(kind) is tuple:
        parts = get_args(kind)
        if isinstance(value, list | tuple) and len(value) == len(parts):
            return tuple(fitted(item, part) for item, part in zip(value, parts, strict=True))
        raise ValueError(f"[{', '.join('...' for _ in parts)}]")
    if kind in (None, type(None)):
        if value is None:
            return None
        raise ValueError("null")
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if kind is not float and isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
        return value
    raise ValueError({float: "a number", int: "a whole number", bool: "true or false", str: "text"}[kind])


def options_of(folder: Path) -> tuple[str | None, str, dict[str, Any]]:
    """Character, prompt and options of the run that a folder holds."""
    from dataclasses import fields
    from typing import get_type_hints

    from jigdoll.distill.config import DistillConfig
    from jigdoll.pipeline import AxisHints
    from jigdoll.runs import read_request

    request = read_request(folder)
    kinds = get_type_hints(DistillConfig)
    try:
        stored = {f.name: fitted(request[f.name], kinds[f.name]) for f in fields(DistillConfig) if f.name in request}
        config = DistillConfig(**stored)
        names = ("prior", "seconds", "fps", "loop", "seed", "character_seed", "tries", "physics")
        options = {name: request[name] for name in names}
        axes = AxisHints(request["up"], request["forward"], request["scale"])
        return request["character"], request["prompt"], options | {"settings": config, "axes": axes}
    except (KeyError, TypeError, ValueError) as error:
        raise JigdollError(f"{folder}: its config.json is not that of an animation ({error})") from error
