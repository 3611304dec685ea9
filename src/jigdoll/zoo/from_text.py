"""Characters from words, out of the built-in ones: "a tiny long-legged red fox", "a black and white dog"."""

import colorsys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches

import torch

from jigdoll.errors import JigdollError, RepairWarning
from jigdoll.language.looks import COLORS, LIKENESSES, OWN_COLORS, SHAPES, SIZES
from jigdoll.language.nouns import KIN, NAMES, SPECIES_OF, TYPICAL, family_of
from jigdoll.language.phrases import tokens_of
from jigdoll.language.read import read
from jigdoll.types import RiggedAsset
from jigdoll.zoo.assemble import assemble
from jigdoll.zoo.bodies.morphs import MORPHS
from jigdoll.zoo.bodies.palettes import PALETTES
from jigdoll.zoo.paint import Color, Palette
from jigdoll.zoo.species import SPECIES, species_named
from jigdoll.zoo.variation import Build, sample_build, sample_palette

_SMALLEST, _LARGEST = 0.3, 3.5

_SKIN_AND_BONE = frozenset(
    "nose nostril iris eye mouth tongue lips blush tooth tusk claw hoof horn antler nail beak lamp".split()
)
"""Regions that keep their colour in any coat."""
_SECOND = frozenset(
    "belly muzzle paw patch stripe band sock mane mane_light tuft membrane spike plume shell scute".split()
)
"""Regions that take the second colour of a coat of two."""
_CLOTHES = frozenset("shirt sleeve suit helmet metal".split())
"""What takes the colour of a dressed body."""


@dataclass(frozen=True)
class Description:
    """What a prompt says about a body."""

    species: str
    noun: str
    """The prompt's own word."""
    build: Build
    colors: tuple[str, ...]
    """Names of colours, at most two count."""


def character_from_text(prompt: str, *, seed: int = 0, coarse: bool = False) -> RiggedAsset:
    """A built-in character that fits the words of the prompt (the embedded `protocols.TextTo3D`).

    Nouns pick the species, or the nearest one with a warning; adjectives change size, proportions and coat. Words about
    motion or scene are passed over. Seed 0 is the plain species, others vary it; "a creature" is any species. A coarse
    mesh takes a fraction of the time.
    """
    described = describe(prompt, seed=seed)
    species = described.species
    if {described.noun, f"a {described.noun}"} & set(KIN[species]):
        warnings.warn(
            f"no built-in character is called {described.noun}: the {species.replace('_', ' ')} stands in for it",
            RepairWarning,
            stacklevel=2,
        )
    build, palette = described.build, PALETTES[species]
    if seed:
        generator = torch.Generator().manual_seed(seed)
        build = _combined(sample_build(generator), build)
        dyed = family_of(species) == "humanoid"
        palette = sample_palette(palette, MORPHS.get(species, ()), generator, dyed=dyed)
    palette = _dyed(palette, [COLORS[name] for name in described.colors if name not in OWN_COLORS.get(species, ())])
    return assemble(species_named(species), build, palette, seed=seed, coarse=coarse)


def describe(prompt: str, *, seed: int = 0) -> Description:
    """Who is meant, and what the adjectives say; a prompt without a body is refused with the closest names."""
    request = read(prompt)
    if request.noun is None or (request.species is None and request.family not in (None, *TYPICAL)):
        raise JigdollError(_nobody(prompt, tokens_of(prompt)))
    noun = request.noun
    likeness = LIKENESSES.get(noun, ())
    build = Build(size=_clamped([SIZES[word] for word in (*likeness, *request.looks) if word in SIZES]))
    for word in (*likeness, *request.looks):
        if word in SHAPES:
            build = _combined(build, Build(**SHAPES[word]))
    own = tuple(word for word in request.looks if word in COLORS)
    colors = own or tuple(word for word in likeness if word in COLORS)
    return Description(request.species or _species_of(noun, request.family, seed), noun, build, colors[:2])


def _species_of(noun: str, family: str | None, seed: int) -> str:
    """The species that stands for a kind of body, or any."""
    if family is not None:
        return "t_rex" if noun.startswith("dinosaur") else TYPICAL[family]
    generator = torch.Generator().manual_seed(seed)
    return SPECIES[int(torch.randint(len(SPECIES), (1,), generator=generator))]


def _nobody(prompt: str, words: Sequence[str]) -> str:
    names = [name for table in (NAMES, KIN) for nouns in table.values() for name in nouns]
    close = [name for word in words if len(word) > 3 for name in get_close_matches(word, names, n=2, cutoff=0.75)]
    hint = f"did you mean {' or '.join(dict.fromkeys(close))}? " if close else ""
    built_in = ", ".join(name.replace("_", " ") for name in SPECIES)
    return (
        f"no character that can be made is named in {prompt!r}: {hint}built in are {built_in}, and about "
        f"{len(SPECIES_OF) // 2} everyday nouns (wolf, knight, beetle ...) find the nearest of them"
    )


def _combined(one: Build, other: Build) -> Build:
    """Both builds at once: factors multiply."""
    return Build(**{f.name: getattr(one, f.name) * getattr(other, f.name) for f in fields(Build)})


def _clamped(factors: Sequence[float]) -> float:
    size = 1.0
    for factor in factors:
        size *= factor
    return min(max(size, _SMALLEST), _LARGEST)


def _dyed(palette: Palette, colors: Sequence[Color]) -> Palette:
    """The palette in other colours: of one, every part keeps its own shade of it; of two, markings take the second."""
    if not colors:
        return palette
    clothes = _CLOTHES & set(palette)
    out = dict(palette)
    main = next(iter(sorted(clothes)), "wool" if "wool" in palette else "coat")
    for region, old in palette.items():
        if region in _SKIN_AND_BONE or (clothes and region not in clothes):
            continue
        if region in _SECOND:
            # A single colour tints the markings; a second colour is for them.
            out[region] = colors[1] if len(colors) > 1 else _mixed(old, _shaded(colors[0], old, old), 0.5)
        elif region == "inner_ear":
            continue
        else:
            out[region] = _shaded(colors[0], old, palette[main])
    return out


def _shaded(color: Color, old: Color, reference: Color) -> Color:
    """The colour, darker or lighter as the old one was beside the reference."""
    ratio = (sum(old) + 0.15) / (sum(reference) + 0.15)
    hue, saturation, value = colorsys.rgb_to_hsv(*color)
    return colorsys.hsv_to_rgb(hue, saturation, min(max(value * min(max(ratio, 0.35), 1.3), 0.02), 0.97))


def _mixed(one: Color, other: Color, share: float) -> Color:
    r, g, b = ((1 - share) * x + share * y for x, y in zip(one, other, strict=True))
    return (r, g, b)
