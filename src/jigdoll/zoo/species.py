"""The species table: all built-in characters by name."""

from difflib import get_close_matches

from jigdoll.errors import JigdollError
from jigdoll.language.nouns import FAMILIES, BodyFamily
from jigdoll.zoo.plan import Chain, Line, Species
from jigdoll.zoo.species_others import BIPEDS, HUMANOIDS, MANY_LEGGED, REPTILES
from jigdoll.zoo.species_quadrupeds import QUADRUPEDS

__all__ = ["FAMILIES", "SPECIES", "TABLE", "BodyFamily", "Chain", "Line", "Species", "species_named"]

TABLE: tuple[Species, ...] = QUADRUPEDS + REPTILES + HUMANOIDS + BIPEDS + MANY_LEGGED
"""All built-in characters. Insects and spiders are toy-sized, not life-sized: a gait at 1 cm would be all rounding."""
SPECIES: tuple[str, ...] = tuple(species.name for species in TABLE)
_BY_NAME = {species.name: species for species in TABLE}


def species_named(name: str) -> Species:
    """The species of that name; an unknown one is refused with the closest names."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    key = name.strip().lower().replace("-", "_").replace(" ", "_")
    close = get_close_matches(key, SPECIES, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(close)}?" if close else f"the species are {', '.join(SPECIES)}"
    raise JigdollError(f"no built-in character is called {name!r}; {hint}")
