"""Verbs on the video priors: prior info and prior sample."""

from dataclasses import asdict
from pathlib import Path

from tyro.conf import Positional

from jigdoll.cli.shared import Json, answering, console, escaped, progress_bar


def prior() -> None:
    """The video priors: prior info, prior sample."""


def prior_info(*, weights: Path | None = None, as_json: Json = False) -> None:
    """What the embedded prior is, what it was trained on and which words it knows; and the large models by name.

    Args:
        weights: Of another pocket prior than the one that ships.
    """
    from rich.table import Table

    from jigdoll.prior.pocket.prior import facts_of, weights_path
    from jigdoll.prior.pocket.vocabulary import VERBS
    from jigdoll.prior.prior_diffusers.catalogue import CATALOGUE

    facts, path = facts_of(weights), weights_path(weights)
    model, recipe = facts["model"], facts["recipe"]
    table = Table("pocket", "", title="The embedded prior", show_header=False)
    video = f"{model['frames']} frames of {model['width']} x {model['height']} at {model['fps']:g} per second"
    table.add_row("video", video)
    table.add_row("weights", f"{path.stat().st_size / 1e6:.1f} MB, {facts['steps']} steps")
    table.add_row("network", f"{model['layers']} layers of width {model['dim']}")
    table.add_row("actions", " ".join(sorted(VERBS)))
    table.add_row("never seen in training", " ".join(recipe["held_out"]))
    models = Table(
        "name", "hub id", "download", "GPU memory", title=escaped("Large models (extra: pip install 'jigdoll[video]')")
    )
    for name, entry in CATALOGUE.items():
        models.add_row(name, entry.hub_id, f"{entry.download_gb} GB", f"about {entry.vram_gb} GB")
    with answering(as_json) as answer:
        large = {name: asdict(entry) for name, entry in CATALOGUE.items()}
        answer.add({**facts, "actions": sorted(VERBS), "bytes": path.stat().st_size, "large": large})
        answer.show(table)
        answer.show(models)


def prior_sample(
    prompt: Positional[str],
    /,
    *,
    out: Path = Path("sample.mp4"),
    negative: str | None = None,
    seed: int = 0,
    count: int = 1,
    steps: int = 32,
    guidance: float = 4.0,
    scale: int = 6,
    words_only: bool = False,
    weights: Path | None = None,
    as_json: Json = False,
) -> None:
    """Sample videos of a prompt from the embedded prior, to see what it believes.

    Args:
        prompt: Who does what: "a horse gallops".
        out: The video to write (.mp4, .gif, .webp), or a .png contact sheet.
        negative: What to steer away from; by default unnatural motion of the same character. "" is the null text.
        seed: Another seed, another video.
        count: How many videos, side by side.
        steps: Denoising steps.
        guidance: How hard the prompt pulls; 1 is not at all.
        scale: Pixels of the file per pixel of the model.
        words_only: Do not show it the built-in character that fits the prompt, which it otherwise sees at rest.
        weights: Of another pocket prior than the one that ships.
    """
    from jigdoll.errors import JigdollError
    from jigdoll.formats import video
    from jigdoll.formats.table import FILMS, PICTURES, check_target, is_picture
    from jigdoll.language import explain, read
    from jigdoll.prior.pocket.prior import open_pocket
    from jigdoll.prior.sample import reference_image_of, sample, sheet
    from jigdoll.zoo.from_text import character_from_text

    check_target(out, (*FILMS, *PICTURES))
    for name, value in (("count", count), ("steps", steps), ("scale", scale)):
        if value < 1:
            raise JigdollError(f"--{name} is at least 1, not {value}")
    pocket, request = open_pocket(weights), read(prompt)
    remark = explain(request, pocket.defaults.actions)
    if remark:
        console(error=True).print(f"[yellow]note:[/] {escaped(remark)}", highlight=False, soft_wrap=True)
    against = pocket.texts(request)[1] if negative is None else negative
    named = not words_only and request.noun is not None
    reference_image = reference_image_of(character_from_text(prompt), pocket) if named else None
    with progress_bar() as progress:
        videos = sample(
            pocket,
            prompt,
            negative=against,
            reference_image=reference_image,
            seed=seed,
            count=count,
            steps=steps,
            guidance=guidance,
            progress=progress,
        )
    with answering(as_json) as answer:
        answer.add({"prompt": prompt, "negative": against, "seed": seed, "count": count})
        if is_picture(out):
            answer.wrote(video.write_picture(out, sheet(videos, every=2, scale=max(1, scale // 2))))
        else:
            big = videos.transpose(0, 1).transpose(1, 2).flatten(2, 3)
            big = big.repeat_interleave(scale, 1).repeat_interleave(scale, 2)
            answer.wrote(video.write(out, big, fps=pocket.defaults.fps))
