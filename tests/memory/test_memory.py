"""The memory of real motion: what it holds, how it is found, shaped and put on bodies."""

from pathlib import Path

import numpy as np
import pytest

from jigdoll import zoo
from jigdoll.errors import FileFormatError, JigdollError
from jigdoll.judge import judge
from jigdoll.kinematics import motion_to_world
from jigdoll.language import read
from jigdoll.language.encoder import open_encoder
from jigdoll.memory.codes import open_codec
from jigdoll.memory.draft import Directions, draft
from jigdoll.memory.find import find, known_actions
from jigdoll.memory.joins import join
from jigdoll.memory.loops import loop
from jigdoll.memory.segments import Memory, excluded, open_memory, save_segments, shipped
from jigdoll.memory.shape import mirror, resample
from jigdoll.rig.anatomy import Anatomy, anatomy_of
from jigdoll.rig.reparent import reparent
from jigdoll.rig.retarget.turns import to_rotvec


@pytest.fixture(scope="module")
def memory() -> Memory:
    return open_memory()


@pytest.fixture(scope="module")
def human() -> Anatomy:
    return anatomy_of(reparent(zoo.make("human")).asset)


def test_people_know_at_least_forty_actions_and_animals_walk(memory: Memory) -> None:
    assert len(known_actions(memory, "person")) >= 40
    for kind in ("quadruped", "bird", "insect", "spider", "biped"):
        assert "walk" in known_actions(memory, kind), kind


def test_nothing_of_the_actors_and_rigs_that_are_kept_out_is_in_it(memory: Memory) -> None:
    for words in memory.words:
        assert not words.source.startswith(("cmu 02_", "cmu 16_", "cmu 111_", "cmu 113_")), words.source
        assert not any(name in words.source for name in ("CesiumMan", "khronos", "Triceratops", "Witch")), words.source
        assert words.licence


@pytest.mark.parametrize(
    ("sentence", "action"),
    [
        ("a man waves", "wave"),
        ("someone is boxing", "punch"),
        ("she runs", "run"),
        ("a guy sits down", "sit"),
        ("the dancer dances", "dance"),
        ("he crawls along", "crawl"),
        ("a gymnast does a cartwheel", "cartwheel"),
    ],
)
def test_the_first_segment_that_is_found_does_what_is_asked(
    memory: Memory, human: Anatomy, sentence: str, action: str
) -> None:
    request = read(sentence)
    found = find(memory, request, request.actions[0], human, open_encoder())
    assert found[0].words.action == action and found[0].words.kind == "person"


def test_an_action_that_no_such_body_was_seen_doing_is_refused_with_what_is_known(memory: Memory) -> None:
    horse = anatomy_of(reparent(zoo.make("horse")).asset)
    with pytest.raises(JigdollError, match=r"like this \(quadruped\) is known for 'juggles'; nearest are \w+"):
        draft(memory, read("a horse juggles"), horse, open_encoder())


def test_feet_of_a_walk_stand_still_and_on_the_ground(memory: Memory, human: Anatomy) -> None:
    made = draft(memory, read("a person walks"), human, open_encoder(), Directions(seconds=2.0))
    assert abs(made.motion.seconds - 2.0) < 1e-6
    verdict = judge(human.asset, made.motion)
    assert verdict.travel_speed > 0.2
    assert verdict.penetration < 0.005


def test_two_actions_follow_each_other_without_a_jump(memory: Memory, human: Anatomy) -> None:
    made = draft(memory, read("a person walks, then waves"), human, open_encoder())
    assert [f.words.action for f in made.found] == ["walk", "wave"]
    places = motion_to_world(human.skeleton, made.motion)[..., :3, 3]
    body = [*human.trunk, *human.neck, *(j for leg in human.legs for j in leg.parts.limb.joints)]
    step = np.linalg.norm(np.diff(places[:, body], axis=0), axis=-1).max()
    assert step < 0.12 * human.height


def test_a_mirrored_motion_mirrored_again_is_the_same(memory: Memory) -> None:
    motion = memory.segment(0).motion
    again = mirror(mirror(motion))
    np.testing.assert_allclose(again.root, motion.root, atol=1e-12)
    for one, other in zip(again.limbs, motion.limbs, strict=True):
        assert one.limb.side == other.limb.side
        np.testing.assert_allclose(one.turns, other.turns, atol=1e-12)


def test_a_closed_loop_ends_as_it_begins(memory: Memory, human: Anatomy) -> None:
    index = next(i for i, w in enumerate(memory.words) if w.kind == "person" and w.action == "walk")
    motion = resample(memory.segment(index).motion, 24.0)
    round_ = loop(motion, 2.0)
    for track in round_.limbs:
        gap = np.degrees(np.linalg.norm(to_rotvec(track.turns[0].swapaxes(-1, -2) @ track.turns[-1]), axis=-1))
        assert gap.max() < 0.1
    assert abs(round_.place[0, 1] - round_.place[-1, 1]) < 1e-6


def test_the_second_motion_begins_where_the_first_one_ends(memory: Memory) -> None:
    index = next(i for i, w in enumerate(memory.words) if w.kind == "person" and w.action == "walk")
    motion = memory.segment(index).motion
    both = join(motion, motion)
    assert np.linalg.norm(np.diff(both.place, axis=0), axis=1).max() < 0.5
    assert np.abs(np.diff(both.heading)).max() < 0.5


def test_segments_survive_their_file_to_half_a_degree(memory: Memory, tmp_path: Path) -> None:
    segment = memory.segment(3)
    save_segments(tmp_path / "m.safetensors", [segment], memory.vectors[3:4], open_codec(), tolerance=0.002)
    again = open_memory(tmp_path / "m.safetensors").segment(0)
    assert again.words == segment.words
    gap = to_rotvec(again.motion.trunk.swapaxes(-1, -2) @ segment.motion.trunk)
    assert np.degrees(np.linalg.norm(gap, axis=-1)).max() < 0.7
    for one, other in zip(again.motion.limbs, segment.motion.limbs, strict=True):
        assert np.array_equal(one.contact, other.contact)


def test_a_file_that_is_no_memory_is_refused_by_name(tmp_path: Path) -> None:
    bad = tmp_path / "bad.safetensors"
    bad.write_bytes(b"nothing of that kind")
    with pytest.raises(FileFormatError, match=r"bad\.safetensors: this is not a memory"):
        open_memory(bad)
    with pytest.raises(FileFormatError, match="no memory of motion here"):
        open_memory(tmp_path / "absent.safetensors")


def test_segments_that_looked_wrong_are_in_the_file_but_not_shown(memory: Memory, tmp_path: Path) -> None:
    whole = tmp_path / "copy.safetensors"
    whole.write_bytes(shipped().read_bytes())  # another file is shown as it is
    held = open_memory(whole)
    wrong = [i for i, words in enumerate(held.words) if (words.source, words.text) in excluded()]
    assert wrong and len(memory) == len(held) - len(wrong)
    assert not any((words.source, words.text) in excluded() for words in memory.words)
    after = wrong[0] + 1  # what comes after a gap is still itself
    here = next(i for i, words in enumerate(memory.words) if words == held.words[after])
    np.testing.assert_array_equal(memory.segment(here).motion.place, held.segment(after).motion.place)
