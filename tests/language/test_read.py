"""What sentences mean: one reader for everybody who acts on words."""

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jigdoll.cli import main
from jigdoll.errors import JigdollError
from jigdoll.language import explain, read, read_name, require_actions
from jigdoll.language.actions import ACTIONS, general_of, spellings, verb_forms
from jigdoll.language.explain import nearest
from jigdoll.language.inflect import inflect
from jigdoll.language.lexicon import lexicon
from jigdoll.language.nouns import KIN, SPECIES_OF, family_of, plural
from jigdoll.language.phrases import LONGEST
from jigdoll.types import Request, RequestedAction
from jigdoll.zoo.assemble import make
from jigdoll.zoo.from_text import describe
from jigdoll.zoo.gaits.pace import TURN_PER_STRIDE, pace_of
from jigdoll.zoo.species import SPECIES

sys.path.insert(0, str(Path(__file__).parent))
from sentences import SENTENCES, STYLES

CAN = frozenset({"walk", "run", "idle", "look_around", "turn", "punch", "jump", "fly"})
SAMPLE = (
    *("fox", "wolves", "giant", "baby", "a", "the", "walks", "walk", "in", "circle", "turns", "around", "left", "to"),
    *("like", "robot", "backwards", "gliding", "flaps", "its", "wings", "fly", "at", "full", "speed", "slow", ","),
    *("stands", "still", "t", "rex", "four", "legged", "happily", "swims", "4", "goes", "for", "power", "does", "he"),
)


def spoken(action: RequestedAction) -> str:
    """An action as the table of sentences writes it."""
    tempo = "" if not action.tempo else "fast" if action.tempo > 0 else "slow"
    times = f"x{action.times}" if action.times > 1 else ""
    return " ".join(word for word in (action.name, tempo, action.side, action.way, times) if word)


@pytest.mark.parametrize(("sentence", "who", "actions"), SENTENCES)
def test_everyday_sentences_are_understood(sentence: str, who: str | None, actions: tuple[str, ...]) -> None:
    request = read(sentence)
    assert (request.species or request.family, tuple(map(spoken, request.actions))) == (who, actions)
    assert request.unknown == ()


@pytest.mark.parametrize(("sentence", "style"), STYLES)
def test_moods_and_manners_are_understood(sentence: str, style: tuple[str, ...]) -> None:
    assert read(sentence).style == style


def test_there_are_sixty_actions_and_more_and_every_one_has_its_neighbours() -> None:
    assert len(ACTIONS) > 100
    for name, row in ACTIONS.items():
        assert row.name == name and row.verbs
        assert {*row.nearest, *filter(None, [row.general])} <= set(ACTIONS)
        assert row.froude >= 0 and (row.gait == "still") <= (row.froude == 0)
        assert general_of(name)[0] == name
    learned = frozenset({"walk", "run", "jump", "hop", "idle", "turn", "creep", "limp", "dance", "punch", "kick"})
    learned |= {"wave", "fly", "flap", "march", "stomp", "trot", "gallop"}
    assert [name for name in ACTIONS if nearest(name, learned) is None] == []


@pytest.mark.parametrize("name", ACTIONS)
def test_every_form_of_every_verb_means_its_action(name: str) -> None:
    row = ACTIONS[name]
    for verb in (*row.verbs, *row.slow, *row.fast):
        for phrase in spellings(verb)[:3]:
            _, third, ing, pasts = inflect(phrase)
            for form in (f"the robot {third}", f"the robot is {ing}", f"the robot {pasts[0]}"):
                request = read(form)
                assert [action.name for action in request.actions] == [name], form
                assert request.species == "robot" and request.unknown == (), form
                tempo = (verb in row.fast) - (verb in row.slow)
                assert (request.tempo > 0) - (request.tempo < 0) == tempo, form


@pytest.mark.parametrize(
    ("verb", "forms"),
    [
        ("sit", ("sit", "sits", "sitting", "sat")),
        ("lie", ("lie", "lies", "lying", "lay", "lain")),
        ("die", ("die", "dies", "dying", "died")),
        ("fly", ("fly", "flies", "flying", "flew", "flown")),
        ("clap", ("clap", "claps", "clapping", "clapped")),
        ("dodge", ("dodge", "dodges", "dodging", "dodged")),
        ("get hit", ("get hit", "gets hit", "getting hit", "got hit")),
        ("be hit", ("be hit", "is hit", "being hit", "was hit")),
        ("backflip", ("backflip", "backflips", "backflipping", "backflipped")),
        ("shake ~ head", ("shake its head", "shakes her head", "shaking his head", "shook their head")),
    ],
)
def test_verbs_are_inflected(verb: str, forms: tuple[str, ...]) -> None:
    assert set(forms) <= {form for form, _ in verb_forms(verb)}


def test_no_phrase_is_longer_than_what_is_looked_for() -> None:
    assert max(len(form.split()) for form in lexicon()) <= LONGEST


# What used to go wrong, one by one.


def test_who_does_something_is_not_a_doe() -> None:
    assert describe("a gymnast does a backflip").species == "human"
    assert read("the does are running").species == "deer"


def test_a_stallion_is_a_horse_and_walks_like_one() -> None:
    assert read_name("stallion").species == read_name("Horse-animations").species == "horse"
    assert read_name("DeerStag_v2").species == "deer" and read_name("t_rex").species == "t_rex"
    assert read_name("this body").species is None
    assert all(read_name(species).species == species for species in SPECIES)


def test_a_dancer_who_walks_gets_along_and_a_runner_who_waves_does_not() -> None:
    human = make("human").skeleton
    assert pace_of(read("a dancer walks"), human) == pace_of(read("a human walks"), human)
    assert pace_of(read("a runner waves"), human).speed == 0
    assert pace_of(read("a man picks up a box"), human).family == "still"


@pytest.mark.parametrize("verb", ["saunters", "scampers", "prowls", "hobbles", "vaults", "soars", "waltzes", "sprints"])
def test_verbs_that_the_pace_once_took_for_standing_move(verb: str) -> None:
    assert pace_of(read(f"a human {verb}"), make("human").skeleton).family != "still"


def test_swimming_in_circles_turns_and_stays_a_swim() -> None:
    dog = make("dog").skeleton
    pace = pace_of(read("a dog swims in circles"), dog)
    assert read("a dog swims in circles").action == RequestedAction("swim", "swims", way="circle")
    assert pace.turn == pytest.approx(TURN_PER_STRIDE / pace.period)
    right = pace_of(read("a dog runs in a circle to the right, then kicks with the left leg"), dog)
    assert right.turn < 0


def test_an_adjective_that_is_also_a_noun_gives_way_to_the_noun_after_it() -> None:
    assert read("a giant spider walks").species == "spider" and read("a giant spider walks").looks == ("giant",)
    assert read("a giant walks").family == "humanoid" and read("a giant walks").looks == ()
    assert read("a baby elephant walks").species == "elephant"


def test_the_color_of_a_thing_is_not_that_of_who_holds_it() -> None:
    assert read("a brown dog catches a red ball").looks == ("brown",)


def test_everyday_nouns_know_their_family() -> None:
    assert sum(len(nouns) for nouns in KIN.values()) > 250
    for noun, species in SPECIES_OF.items():
        if noun not in ("giant", "baby"):
            assert read(noun).family == family_of(species), noun
    for noun, family in {"wolf": "quadruped", "duck": "biped", "zombie": "humanoid", "beetle": "insect"}.items():
        assert read(f"{plural(noun)} walk").family == family


# What is said about a sentence.


def test_what_was_not_understood_is_named() -> None:
    assert explain(read("a fox trots, then sits")) is None and explain(read("")) is None
    typo = explain(read("the fox wlks"))
    assert typo is not None and "'wlks'" in typo and "walks" in typo and "no action was found" in typo
    assert "'zorgle'" in (explain(read("a zorgle walks")) or "")
    assert "left is taken" in (explain(read("a dog turns")) or "")
    assert explain(read("a dog turns right")) is None


def test_what_cannot_be_done_is_named_beside_the_nearest_that_can() -> None:
    sits = explain(read("a dog sits"), CAN)
    assert sits is not None and "'sits' (sit) is not an action that it knows (nearest: idle)" in sits
    assert "one clip shows one action" in (explain(read("a dog runs and jumps"), CAN) or "")
    assert "'happily'" in (explain(read("a dog runs happily"), CAN) or "")
    assert "'backwards'" in (explain(read("a dog walks backwards"), CAN) or "")
    assert "'left'" in (explain(read("a dog runs to the left"), CAN) or "")
    assert explain(read("a dog looks around"), CAN) is None, "a way of standing"
    assert explain(read("a dog runs in circles to the left"), CAN) is None, "the way bends"


def test_a_sentence_that_asks_for_what_cannot_be_done_is_refused_unless_anyway() -> None:
    for sentence, hint in {
        "a fox sits": "nearest: idle",
        "a fox attacks": "nearest: punch",
        "a fox walks, then sits": "'sits'",
        "a fox zorgles": "no action was understood",
    }.items():
        with pytest.raises(JigdollError, match=hint):
            require_actions(read(sentence), CAN)
        require_actions(read(sentence), CAN, anyway=True)
        require_actions(read(sentence), None)
    for sentence in ("a fox walks", "a fox hovers", "a fox", "a zorgle walks", ""):
        require_actions(read(sentence), CAN)


def test_the_leading_action_is_the_one_that_shows_most() -> None:
    leads = {"stands and waves": "wave", "walks and turns left": "turn", "runs, then jumps": "run", "walks": "walk"}
    for words, lead in leads.items():
        action = read(f"a robot {words}").action
        assert action is not None and action.name == lead
    assert read("a robot").action is None


@given(st.text(max_size=60) | st.lists(st.sampled_from(SAMPLE), max_size=12).map(" ".join))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_any_text_can_be_read_and_spoken_about(text: str) -> None:
    request = read(text)
    assert isinstance(request, Request) and request == read(text)
    assert {action.name for action in request.actions} <= set(ACTIONS)
    assert (request.action is None) == (not request.actions)
    note = explain(request, CAN)
    assert note is None or all(repr(word) in note for word in request.unknown)


# The verb.


def test_read_prints_one_json_object(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["jigdoll", "read", "a wolf trots quickly, then sits zorgly", "--json"])
    main()
    told = json.loads(capsys.readouterr().out)
    assert (told["noun"], told["species"], told["family"], told["action"]) == ("wolf", "dog", "quadruped", "trot")
    assert [(a["name"], a["tempo"]) for a in told["actions"]] == [("trot", 0.7), ("sit", 0.0)]
    assert told["unknown"] == ["zorgly"] and "'zorgly' is unknown" in told["note"]


def test_read_prints_a_few_lines_for_people(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        sys, "argv", ["jigdoll", "read", "a tired wolf walks slowly, then kicks twice with its left leg"]
    )
    main()
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["who", "wolf", "(moves", "like:", "dog)"]
    assert lines[1:] == [["does", "walk", "(slow)"], ["then", "kick", "(left,", "2", "times)"], ["how", "tired"]]
