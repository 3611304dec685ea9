"""Characters from words: the species named, the proportions and the coat that adjectives ask for."""

import pytest
import torch

from jigdoll import zoo
from jigdoll.errors import JigdollError, RepairWarning
from jigdoll.language.looks import COLORS, LIKENESSES, OWN_COLORS, SHAPES, SIZES
from jigdoll.language.nouns import KIN, NAMES, SPECIES_OF, plural
from jigdoll.protocols import TextTo3D
from jigdoll.types import RiggedAsset
from jigdoll.zoo.from_text import character_from_text, describe
from jigdoll.zoo.variation import Build


def height(asset: RiggedAsset) -> float:
    return float(asset.mesh.vertices[:, 1].max())


def test_every_name_finds_its_species() -> None:
    for species in zoo.SPECIES:
        for noun in (*NAMES[species], *KIN[species]):
            assert describe(f"A {noun.title()} walks.").species == species
            assert describe(plural(noun)).species == species
        assert describe(species).species == species


def test_a_bare_name_is_the_built_in_character_itself() -> None:
    assert isinstance(character_from_text, TextTo3D)
    # A red fox is an ordinary fox.
    assert "red" in OWN_COLORS[describe("a red fox").species]
    made, built_in = character_from_text("an ant trots"), zoo.make("ant")
    torch.testing.assert_close(made.mesh.vertices, built_in.mesh.vertices, rtol=0, atol=0)
    torch.testing.assert_close(made.mesh.colors, built_in.mesh.colors, rtol=0, atol=0)


def test_the_seed_decides_and_nothing_else() -> None:
    one, again, other = (character_from_text("a cat", seed=seed, coarse=True) for seed in (3, 3, 4))
    torch.testing.assert_close(one.mesh.vertices, again.mesh.vertices, rtol=0, atol=0)
    torch.testing.assert_close(one.mesh.colors, again.mesh.colors, rtol=0, atol=0)
    assert abs(height(one) - height(other)) > 1e-4
    assert len({describe("a creature", seed=seed).species for seed in range(30)}) > 10
    assert describe("an animal", seed=5) == describe("an animal", seed=5)


def test_adjectives_change_proportions() -> None:
    assert describe("a tiny fox").build == Build(size=SIZES["tiny"])
    assert describe("a long-legged fat cow").build == Build(leg_length=1.3, girth=1.3, leg_girth=1.1)
    tiny, leggy, plain = (
        character_from_text(f"a {word} ant", coarse=True) for word in ("tiny", "long-legged", "simple")
    )
    assert height(tiny) == pytest.approx(SIZES["tiny"] * height(plain), rel=1e-3)
    assert height(leggy) > 1.05 * height(plain)


def test_adjectives_that_are_nouns_too_know_their_place() -> None:
    assert describe("a giant spider").species == "spider"
    assert describe("a giant spider").build.size == SIZES["giant"]
    assert describe("a giant").species == "human"
    assert describe("a four-legged robot").species == "robot"
    assert describe("a four-legged animal").species == "dog"
    assert describe("a bird").species == "ostrich"
    assert describe("a dinosaur").species == "t_rex"


def test_colors_reach_the_coat() -> None:
    blue = character_from_text("a blue ant", coarse=True).mesh.colors.mean(0)
    assert blue[2] > 1.5 * blue[0] and blue[2] > 1.2 * blue[1]
    penguin, white = (character_from_text(f"a {word} penguin", coarse=True) for word in ("plain", "white"))
    assert float(white.mesh.colors.mean()) > float(penguin.mesh.colors.mean()) + 0.2
    assert describe("a black and white dog").colors == ("black", "white")
    assert describe("a black wolf").colors == ("black",)
    assert describe("a wolf").colors == ("gray",)


def test_a_dressed_body_wears_the_color_and_keeps_its_skin() -> None:
    plain, red = (character_from_text(f"a man in a {word} shirt", coarse=True) for word in ("new", "red"))
    changed = (plain.mesh.colors - red.mesh.colors).abs().amax(1) > 0.05
    head = plain.mesh.vertices[:, 1] > 0.87 * height(plain)
    assert not bool(changed[head].any())
    assert 0.1 < float(changed.float().mean()) < 0.6


def test_a_stand_in_is_announced() -> None:
    with pytest.warns(RepairWarning, match="called beetle: the ant stands in for it"):
        assert character_from_text("a beetle", coarse=True).name == "ant"


@pytest.mark.parametrize("prompt", ["", "walking slowly", "a tentacle monstrosity"])
def test_a_prompt_without_a_body_is_refused_with_what_is_known(prompt: str) -> None:
    with pytest.raises(JigdollError, match=r"built in are fox, dog, .* spider"):
        character_from_text(prompt)


def test_a_misspelt_name_is_refused_with_the_closest() -> None:
    with pytest.raises(JigdollError, match="did you mean elephant"):
        character_from_text("an elefant walks")


def test_the_tables_fit_together() -> None:
    known = {*SIZES, *SHAPES, *COLORS}
    for noun, words in LIKENESSES.items():
        assert noun in SPECIES_OF and set(words) <= known, noun
    for factors in SHAPES.values():
        Build(**factors)
