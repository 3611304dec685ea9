"""The built-in characters, made by code: species, bodies, reference gaits."""

from typing import TYPE_CHECKING, Any

from jigdoll.zoo.species import FAMILIES, SPECIES

if TYPE_CHECKING:
    from jigdoll.zoo.assemble import make, random_creature

__all__ = ["FAMILIES", "SPECIES", "make", "random_creature"]


def __getattr__(name: str) -> Any:
    # Listing the characters needs no numerics; making one does.
    if name in ("make", "random_creature"):
        from jigdoll.zoo import assemble

        return getattr(assemble, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
