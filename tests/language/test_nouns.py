"""The words of language against the bodies of the zoo."""

from jigdoll.language.nouns import FAMILIES, KIN, NAMES, TYPICAL, family_of
from jigdoll.zoo.species import SPECIES, TABLE


def test_every_species_of_the_zoo_has_names_in_the_order_of_the_zoo():
    assert tuple(NAMES) == SPECIES and set(KIN) == set(SPECIES)


def test_every_species_has_the_family_of_its_body():
    assert {species.name: species.family for species in TABLE} == {name: family_of(name) for name in SPECIES}
    assert {species.family for species in TABLE} == set(FAMILIES) == set(TYPICAL)
