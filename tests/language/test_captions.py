"""The words of the pocket prior: captions that read back as what they were written for, and readable prompts."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jigdoll.language.lexicon import ACTIONS, CONCEPTS, LEXICON, TRAINED_SPECIES, WORDS, fingerprint, surface_forms
from jigdoll.language.nouns import KIN, NAMES, SPECIES_OF, family_of, plural
from jigdoll.language.phrases import LONGEST
from jigdoll.language.read import MOST_TOKENS, explain, read
from jigdoll.prior.pocket.captions import (
    HELD_OUT_SPECIES,
    NEGATIVE_KINDS,
    by_habit,
    in_plain_words,
    negative_of,
    write_caption,
    write_negative,
)
from jigdoll.prior.pocket.text import TextEncoder, to_ids
from jigdoll.zoo.species import FAMILIES, SPECIES

SAMPLE = (
    *("fox", "wolves", "giant", "baby", "a", "the", "walks", "walk", "in", "circle", "turns", "around", "left", "to"),
    *("unnatural", "motion", "backwards", "gliding", "flaps", "its", "wings", "fly", "at", "full", "speed", "slow"),
    *("stands", "still", "t", "rex", "four", "legged", "happily", "swims", "4", "goes", "for", "power", "stand"),
)
BODIES = [*((name, family_of(name)) for name in SPECIES), *((None, family) for family in FAMILIES)]


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("action", ACTIONS)
def test_every_caption_reads_back_as_what_it_was_written_for(action: str) -> None:
    draw = generator(7)
    named = 0
    for species, family in BODIES * 2:
        tempo = float(2 * torch.rand(1, generator=draw) - 1)
        caption = write_caption(draw, species=species, family=family, action=action, tempo=tempo)
        reading = read(caption)
        assert reading.unknown == () and explain(reading) is None, caption
        assert reading.actions == (action,), caption
        assert reading.species in (None, species), caption
        assert reading.family in (None, family), caption
        assert not reading.negative
        assert reading.tempo == 0 or (abs(tempo) > 0.4 and reading.tempo * tempo > 0), caption
        named += reading.tempo != 0
    assert named == 0 if action == "idle" else named > 0.35 * len(BODIES * 2)


@pytest.mark.parametrize("kind", NEGATIVE_KINDS)
def test_every_negative_is_unnatural_motion_of_its_body(kind: str) -> None:
    draw = generator(11)
    bare = doing = specific = 0
    for action in ACTIONS[::4]:
        for species, family in BODIES:
            caption = write_negative(draw, species=species, family=family, action=action, kind=kind)
            reading = read(caption)
            assert "unnatural motion" in caption and reading.negative
            assert reading.unknown == () and explain(reading) is None, caption
            assert reading.species in (None, species) and reading.family in (None, family), caption
            assert reading.actions in ((), (action,)), caption
            wrong = {CONCEPTS[i - 1] for i in reading.concepts if CONCEPTS[i - 1].startswith("negative:")}
            assert wrong <= {"negative:unnatural", f"negative:{kind}"}, caption
            bare += caption == "unnatural motion"
            doing += bool(reading.actions)
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
    used: set[int] = set()
    cases = [(*BODIES[n % len(BODIES)], ACTIONS[n % len(ACTIONS)]) for n in range(45 * len(BODIES))]
    # Verbs that are fast or slow themselves are rarer.
    cases += 150 * [("dog", "quadruped", "run"), ("dog", "quadruped", "walk")]
    for n, (species, family, action) in enumerate(cases):
        caption = write_caption(draw, species=species, family=family, action=action, tempo=(-1.0) ** (n // 2))
        used |= set(read(caption).words)
    for n in range(130):
        species, family = BODIES[n % len(BODIES)]
        for kind in NEGATIVE_KINDS:
            used |= set(read(write_negative(draw, species=species, family=family, action="walk", kind=kind)).words)
    assert {WORDS[i - 1] for i in used if i} == set(WORDS)


def test_held_out_species_carry_only_their_family() -> None:
    for species in HELD_OUT_SPECIES:
        for noun in (*NAMES[species], *KIN[species]):
            for form in (noun, plural(noun)):
                reading = read(f"a {form} walks".replace("a a ", "a ").replace("a the ", "the "))
                assert reading.species is None and reading.family == family_of(species), form
                nouns = [CONCEPTS[i - 1] for i in reading.concepts[:-1]]
                assert nouns == [f"family:{family_of(species)}"] and reading.words[0] == 0
    assert not any(f"species:{name}" in CONCEPTS for name in HELD_OUT_SPECIES)
    draw = generator(2)
    for species in HELD_OUT_SPECIES:
        for _ in range(40):
            caption = write_caption(draw, species=species, family=family_of(species), action="walk")
            assert read(caption).species is None
            assert not set(caption.lower().split()) & set(NAMES[species])


@pytest.mark.parametrize("species", TRAINED_SPECIES)
def test_all_names_of_a_trained_species_mean_it(species: str) -> None:
    for noun in NAMES[species]:
        assert read(f"The {noun.title()} walks.").species == species
        assert read(f"{plural(noun)} walking").species == species


def test_everyday_nouns_know_their_family() -> None:
    assert sum(len(nouns) for nouns in KIN.values()) > 150
    for noun, family in {"wolf": "quadruped", "duck": "biped", "zombie": "humanoid", "beetle": "insect"}.items():
        assert read(f"a {noun} walks").family == family
        assert read(f"{plural(noun)} walk").family == family
    for noun, species in SPECIES_OF.items():
        if noun not in ("giant", "baby"):
            assert read(noun).family == family_of(species), noun


@pytest.mark.parametrize(
    ("prompt", "action", "tempo"),
    [
        ("A T-Rex stomps at full speed!", "stomp", 0.7),
        ("a knight stands still", "idle", 0.0),
        ("the dog looks around", "idle", 0.0),
        ("fox, running", "run", 0.0),
        ("two-legged creature that hopped", "hop", 0.0),
        ("a horse is galloping very fast", "gallop", 0.7),
        ("a person walks and then turns to the right", "turn_right", 0.0),
        ("a tortoise veers left", "turn_left", 0.0),
        ("a soldier sprints", "run", 0.7),
        ("an old man strolls", "walk", -0.7),
        ("A giant spider crept slowly", "creep", -0.7),
        ("a fly crawls", "creep", 0.0),
        ("a bird flies", "fly", 0.0),
        ("an eagle beats its wings", "flap", 0.0),
        ("the cat stands and waves hello", "wave", 0.0),
        ("a slow walk cycle of a wolf", "walk", -0.7),
    ],
)
def test_prompts_are_understood(prompt: str, action: str, tempo: float) -> None:
    reading = read(prompt)
    assert reading.action == action
    assert reading.tempo == tempo
    assert reading.unknown == ()


def test_an_adjective_that_is_also_a_noun_gives_way_to_the_noun_after_it() -> None:
    assert read("a giant spider walks").family == "spider"
    assert read("a giant walks").family == "humanoid"
    assert read("a baby elephant walks").species == "elephant"


def test_what_will_not_be_obeyed_is_named() -> None:
    assert explain(read("a fox trots")) is None
    assert explain(read("")) is None
    swims = explain(read("a dog swims"))
    assert swims is not None and "'swims'" in swims and "fly, walk" in swims and "no action was found" in swims
    typo = explain(read("the fox wlks"))
    assert typo is not None and "'wlks'" in typo and "walks" in typo
    assert "'backwards'" in (explain(read("a dog walks backwards")) or "")
    assert "'zorgle'" in (explain(read("a zorgle walks")) or "")
    assert "one clip shows one action" in (explain(read("a dog runs and jumps")) or "")
    assert "'happily'" in (explain(read("a dog runs happily")) or "")
    assert "left is taken" in (explain(read("a dog turns")) or "")
    assert "'left'" in (explain(read("a dog trots to the left")) or "")


def test_the_negative_prompt_names_who_moves_and_how() -> None:
    assert negative_of("a fox walks slowly") == "unnatural motion of a fox walking"
    assert negative_of("Ants marching") == "unnatural motion of an ant marching"
    assert negative_of("a fly crawls") == "unnatural motion of a fly creeping"
    assert negative_of("a T. rex veers to the right") == "unnatural motion of a t rex turning right"
    assert negative_of("walking") == "unnatural motion of a creature walking"
    assert negative_of("a fox") == "unnatural motion of a fox"
    assert negative_of("") == "unnatural motion"
    for species in SPECIES:
        assert read(negative_of(f"a {species} walks")).negative


def test_plain_words_say_the_same() -> None:
    assert in_plain_words("A red fox saunters, merrily!") == "a red fox walks slowly"
    assert in_plain_words("the cheetah is sprinting") == "the cheetah is running quickly"
    assert in_plain_words("a T-rex veers to the left at full speed") == "a t rex turns to the left quickly"
    assert in_plain_words("") == ""
    draw = generator(9)
    for n in range(200):
        species, family = BODIES[n % len(BODIES)]
        action, tempo = ACTIONS[n % len(ACTIONS)], float(2 * torch.rand(1, generator=draw) - 1)
        caption = write_caption(draw, species=species, family=family, action=action, tempo=tempo)
        before, after = read(caption), read(in_plain_words(caption))
        assert sorted(before.concepts) == sorted(after.concepts), caption
        assert (before.actions, before.tempo, before.side) == (after.actions, after.tempo, after.side)


def test_a_kangaroo_hops_where_others_walk_or_run() -> None:
    assert by_habit("a kangaroo walks") == "a kangaroo hops"
    assert by_habit("the red kangaroo is running quickly") == "the red kangaroo is hopping quickly"
    assert by_habit(negative_of("a kangaroo walks")) == "unnatural motion of a kangaroo hopping"
    for prompt in ("a kangaroo jumps", "a kangaroo turns left", "a fox walks", "A person, merrily running.", ""):
        assert read(by_habit(prompt)).concepts == read(prompt).concepts


def test_words_and_concepts_are_as_the_weights_know_them() -> None:
    # A change here makes all trained weights of the pocket prior worthless.
    assert fingerprint() == "df6441e09d71"
    assert len(set(WORDS)) == len(WORDS) and len(set(CONCEPTS)) == len(CONCEPTS)
    assert max(len(form.split()) for word in LEXICON for form in surface_forms(word)) <= LONGEST
    assert {concept for word in LEXICON for concept in word.concepts} == set(CONCEPTS)


def test_no_form_is_read_as_another_word_of_the_same_kind_with_another_meaning() -> None:
    for word in LEXICON:
        if word.kind in ("noun", "action", "direction", "tempo") and word.base not in ("giant", "baby"):
            for form in surface_forms(word):
                concepts = tuple(CONCEPTS[i - 1] for i in read(form).concepts)
                assert concepts == word.concepts, form


def test_long_prompts_are_cut_and_never_crash() -> None:
    reading = read("dog walks " * 50)
    assert len(reading.concepts) == len(reading.words) == MOST_TOKENS
    assert read("🦊 läuft 3 ''s — ").unknown == ("läuft", "3")


@given(st.text(max_size=60) | st.lists(st.sampled_from(SAMPLE), max_size=12).map(" ".join))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_any_text_can_be_read_and_spoken_about(text: str) -> None:
    reading = read(text)
    assert len(reading.concepts) == len(reading.words) <= MOST_TOKENS
    assert all(0 < concept <= len(CONCEPTS) for concept in reading.concepts)
    assert all(0 <= word <= len(WORDS) for word in reading.words)
    note = explain(reading)
    assert note is None or all(repr(word) in note for word in reading.unknown)
    assert read(in_plain_words(text)).actions == reading.actions or len(reading.concepts) == MOST_TOKENS
    assert read(negative_of(text)).negative


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
    plain, dressed = encoder(to_ids(["dog walks", "A big red long-legged dog is walking on the grass."]))
    torch.testing.assert_close(plain, dressed)


def test_dropped_words_leave_their_concepts(encoder: TextEncoder) -> None:
    ids = to_ids(["a puppy strolls", "a dog ambles"])
    whole = encoder(ids)
    forgot = encoder(ids, drop=1.0, generator=generator(0))
    assert float((whole[0] - whole[1]).detach().norm()) > 0.01
    torch.testing.assert_close(forgot[0], forgot[1])
    ids[..., 1] = 0
    torch.testing.assert_close(encoder(ids), forgot)
