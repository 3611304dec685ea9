"""The words of the pocket prior: captions that read back as what they were written for, and readable prompts."""

import pytest
import torch

from jigdoll.language import explain, read
from jigdoll.language.nouns import KIN, NAMES, family_of, plural
from jigdoll.language.read import turn_of
from jigdoll.prior.pocket.captions import in_plain_words, negative_of, write_caption, write_negative
from jigdoll.prior.pocket.text import (
    MOST_TOKENS,
    TextEncoder,
    by_habit,
    concepts_of,
    is_negative,
    read_caption,
    to_ids,
)
from jigdoll.prior.pocket.vocabulary import (
    ACTIONS,
    DIRECTIONS,
    HELD_OUT_SPECIES,
    NEGATIVE_KINDS,
    TEMPOS,
    TRAINED_SPECIES,
    UNNATURAL,
    VERBS,
    present_vocabulary,
)
from jigdoll.zoo.species import FAMILIES, SPECIES

BODIES = [*((name, family_of(name)) for name in SPECIES), *((None, family) for family in FAMILIES)]


VOCABULARY = present_vocabulary()
CAN = VOCABULARY.own_actions


def concepts(prompt: str) -> list[str]:
    return [concept for concept, _ in concepts_of(read_caption(prompt), VOCABULARY)]


def words(prompt: str) -> list[str]:
    return [word for _, word in concepts_of(read_caption(prompt), VOCABULARY)]


def plain(prompt: str) -> str:
    return in_plain_words(read(prompt), CAN)


def negative(prompt: str) -> str:
    return negative_of(read(prompt), CAN)


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("action", ACTIONS)
def test_every_caption_reads_back_as_what_it_was_written_for(action: str) -> None:
    draw = generator(7)
    named = 0
    deed, _, side = action.partition("_")
    for species, family in BODIES * 2:
        tempo = float(2 * torch.rand(1, generator=draw) - 1)
        caption = write_caption(draw, species=species, family=family, action=action, tempo=tempo)
        request = read_caption(caption)
        assert request.unknown == () and explain(request, VOCABULARY.actions) is None, caption
        assert [name for name in concepts(caption) if name.startswith("action:")] == [f"action:{deed}"], caption
        assert len(request.actions) == 1 and (request.side or "") == side, caption
        assert request.species in (None, species) and request.family in (None, family), caption
        assert not is_negative(caption)
        assert request.tempo == 0 or (abs(tempo) > 0.4 and request.tempo * tempo > 0), caption
        named += request.tempo != 0
    assert named == 0 if action == "idle" else named > 0.35 * len(BODIES * 2)


@pytest.mark.parametrize("kind", NEGATIVE_KINDS)
def test_every_negative_is_unnatural_motion_of_its_body(kind: str) -> None:
    draw = generator(11)
    bare = doing = specific = 0
    for action in ACTIONS[::4]:
        for species, family in BODIES:
            caption = write_negative(draw, species=species, family=family, action=action, kind=kind)
            request = read_caption(caption)
            assert UNNATURAL in caption and is_negative(caption)
            assert request.unknown == (), caption
            assert request.species in (None, species) and request.family in (None, family), caption
            told = concepts(caption)
            assert {n for n in told if n.startswith("action:")} <= {f"action:{action.partition('_')[0]}"}, caption
            wrong = {name for name in told if name.startswith("negative:")}
            assert wrong <= {"negative:unnatural", f"negative:{kind}"}, caption
            bare += caption == "unnatural motion"
            doing += bool(request.actions)
            specific += len(wrong) > 1
    total = len(ACTIONS[::4]) * len(BODIES)
    for count, share in ((bare, 0.1), (doing, 0.72), (specific, 0.225)):
        assert abs(count / total - share) < 0.1


def test_species_are_named_in_two_thirds_of_their_captions() -> None:
    draw = generator(3)
    captions = [write_caption(draw, species="dog", family="quadruped", action="walk") for _ in range(500)]
    assert 0.65 < sum(read(caption).species == "dog" for caption in captions) / 500 < 0.75
    assert len(set(captions)) > 350


def test_captions_depend_on_the_generator_alone() -> None:
    def write(seed: int) -> list[str]:
        draw = generator(seed)
        return [write_caption(draw, species="ant", family="insect", action="run", tempo=0.8) for _ in range(20)]

    assert write(5) == write(5)
    assert write(5) != write(6)


def test_the_grammar_uses_every_word_that_has_a_place() -> None:
    draw = generator(1)
    used: set[str] = set()
    cases = [(*BODIES[n % len(BODIES)], ACTIONS[n % len(ACTIONS)]) for n in range(45 * len(BODIES))]
    # Verbs that are fast or slow themselves are rarer.
    cases += 150 * [("dog", "quadruped", "run"), ("dog", "quadruped", "walk")]
    for n, (species, family, action) in enumerate(cases):
        caption = write_caption(draw, species=species, family=family, action=action, tempo=(-1.0) ** (n // 2))
        used |= set(words(caption))
    for n in range(130):
        species, family = BODIES[n % len(BODIES)]
        for kind in NEGATIVE_KINDS:
            used |= set(words(write_negative(draw, species=species, family=family, action="walk", kind=kind)))
    assert used - {""} == set(VOCABULARY.words)


def test_held_out_species_carry_only_their_family() -> None:
    for species in HELD_OUT_SPECIES:
        for noun in (*NAMES[species], *KIN[species]):
            for form in (noun, plural(noun)):
                told = concepts(f"the {form} walks")
                assert told[:-1] == [f"family:{family_of(species)}"] and words(f"the {form} walks")[0] == "", form
    assert not any(f"species:{name}" in VOCABULARY.concepts for name in HELD_OUT_SPECIES)
    draw = generator(2)
    for species in HELD_OUT_SPECIES:
        for _ in range(40):
            caption = write_caption(draw, species=species, family=family_of(species), action="walk")
            assert read(caption).species is None
            assert not set(caption.lower().split()) & set(NAMES[species])


@pytest.mark.parametrize("species", TRAINED_SPECIES)
def test_all_names_of_a_trained_species_mean_it_and_those_of_its_kin_only_its_family(species: str) -> None:
    both = [f"species:{species}", f"family:{family_of(species)}"]
    for noun in NAMES[species]:
        assert concepts(f"The {noun.title()} walks.")[:2] == concepts(f"{plural(noun)} walking")[:2] == both
    for noun in KIN[species]:
        assert concepts(f"The {noun} walks.") == [both[1], "action:walk"], noun


def test_the_negative_text_names_who_moves_and_how() -> None:
    assert negative("a fox walks slowly") == "unnatural motion of a fox walking"
    assert negative("Ants marching") == "unnatural motion of an ant marching"
    assert negative("a fly crawls") == "unnatural motion of a fly creeping"
    assert negative("a T. rex veers to the right") == "unnatural motion of a t rex turning right"
    assert negative("he walks") == "unnatural motion of a person walking"
    assert negative("walking") == "unnatural motion of a creature walking"
    assert negative("a four-legged animal walks") == "unnatural motion of a four legged animal walking"
    assert negative("a fox") == "unnatural motion of a fox"
    assert negative("") == "unnatural motion"
    for species in SPECIES:
        assert is_negative(negative(f"a {species} walks"))


def test_plain_words_say_the_same() -> None:
    assert plain("A red fox saunters, merrily!") == "a fox walks slowly"
    assert plain("the cheetah is sprinting") == "a cheetah runs quickly"
    assert plain("a T-rex veers to the left at full speed") == "a t rex turns left quickly"
    assert plain("a fox runs in a wide circle to the right") == "a fox runs in circles right"
    assert turn_of(read(plain("a fox runs in a wide circle to the right"))) == "right"
    assert plain("") == ""
    draw = generator(9)
    for n in range(200):
        species, family = BODIES[n % len(BODIES)]
        action, tempo = ACTIONS[n % len(ACTIONS)], float(2 * torch.rand(1, generator=draw) - 1)
        caption = write_caption(draw, species=species, family=family, action=action, tempo=tempo)
        assert sorted(concepts(caption)) == sorted(concepts(plain(caption))), caption
        assert read(caption).side == read(plain(caption)).side and read(caption).tempo == read(plain(caption)).tempo


def test_an_action_that_was_never_learned_gives_way_to_the_nearest() -> None:
    assert plain("a fox sits") == "a fox stands still"
    assert plain("a gymnast does a backflip") == "a gymnast jumps"
    assert plain("a dragon hovers") == "a dragon flies"
    assert negative("a knight attacks") == "unnatural motion of a knight punching"


def test_a_kangaroo_hops_where_others_walk_or_run() -> None:
    def told(prompt: str) -> list[tuple[str, str]]:
        return concepts_of(by_habit(read_caption(prompt)), VOCABULARY)

    def written(prompt: str) -> list[tuple[str, str]]:
        return concepts_of(read_caption(prompt), VOCABULARY)

    assert told("a kangaroo walks") == written("a kangaroo hops")
    assert told("the red kangaroo is running quickly") == written("the red kangaroo is hopping quickly")
    assert told(negative("a kangaroo walks")) == written("unnatural motion of a kangaroo hopping")
    for prompt in ("a kangaroo jumps", "a kangaroo turns left", "a fox walks", "A person, merrily running.", ""):
        assert told(prompt) == written(prompt)


def test_captions_are_written_with_words_that_language_reads_as_what_they_stand_for() -> None:
    for key, verbs in VERBS.items():
        action, *tempo = key.split()
        for verb in verbs:
            assert concepts(verb) == [f"action:{action}", *(f"tempo:{word}" for word in tempo)], verb
            assert words(verb)[0] == verb
    for kind, table in (("direction", DIRECTIONS), ("tempo", TEMPOS)):
        for name, written in table.items():
            assert all(concepts(word) == [f"{kind}:{name}"] and words(word) == [word] for word in written)
    assert len(set(VOCABULARY.words)) == len(VOCABULARY.words)
    assert len(set(VOCABULARY.concepts)) == len(VOCABULARY.concepts)


def test_long_prompts_are_cut() -> None:
    assert len(concepts("dog walks " * 50)) == MOST_TOKENS == to_ids(["dog walks " * 50]).shape[1]


@pytest.fixture(scope="module")
def encoder() -> TextEncoder:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return TextEncoder(32).eval()


def test_padding_does_not_matter(encoder: TextEncoder) -> None:
    prompts = ["a dog walks", "the tyrannosaurus turns to the left at full speed", ""]
    together = encoder(to_ids(prompts))
    for prompt, row in zip(prompts, together, strict=True):
        torch.testing.assert_close(encoder(to_ids([prompt]))[0], row)
    torch.testing.assert_close(together[2], encoder.null)


def test_different_meanings_give_different_vectors(encoder: TextEncoder) -> None:
    prompts = [
        "a dog turns left",
        "a dog turns right",
        "a dog walks",
        "a dog runs",
        "a dog walks slowly",
        "a cat walks",
    ]
    prompts += ["left dog turns", "a dog walks fast", "unnatural motion of a dog", ""]
    vectors = encoder(to_ids(prompts)).detach()
    distances = torch.cdist(vectors, vectors) + 9 * torch.eye(len(prompts))
    assert float(distances.min()) > 0.02


def test_looks_and_fillers_change_nothing(encoder: TextEncoder) -> None:
    bare, dressed = encoder(to_ids(["dog walks", "A big red long-legged dog is walking on the grass."]))
    torch.testing.assert_close(bare, dressed)


def test_dropped_words_leave_their_concepts(encoder: TextEncoder) -> None:
    ids = to_ids(["a puppy strolls", "a dog ambles"])
    whole = encoder(ids)
    forgot = encoder(ids, drop=1.0, generator=generator(0))
    assert float((whole[0] - whole[1]).detach().norm()) > 0.01
    torch.testing.assert_close(forgot[0], forgot[1])
    ids[..., 1] = 0
    torch.testing.assert_close(encoder(ids), forgot)
