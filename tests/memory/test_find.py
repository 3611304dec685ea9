"""What words find, and what a draft makes of directions."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from jigdoll import zoo
from jigdoll.errors import JigdollError
from jigdoll.kinematics import motion_to_world
from jigdoll.language import read
from jigdoll.language.actions import ACTIONS
from jigdoll.language.encoder import SentenceEncoder, open_encoder
from jigdoll.language.meaning import meanings, nearest_meaning, understood
from jigdoll.language.nouns import SWIMMING_MAMMALS
from jigdoll.language.sizes import LEG_LENGTHS
from jigdoll.memory.contents import contents, page
from jigdoll.memory.cuts import aligned, frame_signs, learn_check, signature
from jigdoll.memory.draft import Directions, Draft, draft
from jigdoll.memory.find import find
from jigdoll.memory.labels import actions_of, imitated, plain, styles_of
from jigdoll.memory.loops import repeated
from jigdoll.memory.segments import Memory, open_memory
from jigdoll.rig.anatomy import Anatomy, anatomy_of
from jigdoll.rig.reparent import reparent
from jigdoll.rig.retarget.limb_motion import encode
from jigdoll.zoo.gaits import reference_motion
from stand_ins import two_link_arm


@cache
def memory() -> Memory:
    return open_memory()


@cache
def encoder() -> SentenceEncoder:
    return open_encoder()


@cache
def body(species: str = "human") -> Anatomy:
    return anatomy_of(reparent(zoo.make(species)).asset)


def made(sentence: str, directions: Directions = Directions(), species: str = "human") -> Draft:
    return draft(memory(), read(sentence), body(species), encoder(), directions)


def first(sentence: str, species: str = "human") -> tuple[str, tuple[str, ...]]:
    request, _ = understood(read(sentence), encoder())
    best = find(memory(), request, request.actions[0], body(species), encoder())[0].words
    return best.action, best.style


@pytest.mark.parametrize(
    ("sentence", "action"),
    [("she plops into a chair", "sit"), ("he lobs a stone", "throw"), ("she grooves to the music", "dance")],
)
def test_verbs_that_no_list_knows_are_understood(sentence: str, action: str) -> None:
    request, notes = understood(read(sentence), encoder())
    assert [a.name for a in request.actions] == [action]
    assert not request.actions or first(sentence)[0] == action
    assert all("is taken for" in note for note in notes)


def test_what_is_near_to_no_action_stays_unknown() -> None:
    request, notes = understood(read("a man walks, then frobnicates the quarterly report"), encoder())
    assert [a.name for a in request.actions] == ["walk"]
    assert "frobnicates" in request.unknown and not notes


def test_every_meaning_is_nearest_to_itself() -> None:
    for row in meanings():
        assert nearest_meaning(row.text, encoder())[0].action == row.action


def test_manners_are_found() -> None:
    assert first("a drunk man staggers") == ("walk", ("drunk",))
    assert "chicken" in first("a woman walks like a chicken")[1]
    assert "sad" in first("a man walks sadly")[1]
    assert first("a man walks") == ("walk", ())


def test_a_manner_that_nobody_shows_is_said() -> None:
    assert any("playful" in note for note in made("a horse walks playfully", species="horse").notes)


def test_a_procedural_stand_in_is_marked_and_said() -> None:
    ant = made("an ant walks", species="ant")
    assert ant.found[0].words.source == "zoo, procedural"
    assert any("procedural" in note for note in ant.notes)


def test_another_seed_takes_another_segment() -> None:
    request = read("a man waves")
    firsts = {made("a man waves", Directions(seed=seed)).found[0].index for seed in range(3)}
    assert len(request.actions) == 1 and len(firsts) > 1


def test_the_action_after_goes_on_from_the_one_before() -> None:
    two = made("a man sits down, then stands up")
    assert [f.words.action for f in two.found] == ["sit", "stand_up"]
    low = two.limb_motion.place[:, 1]
    assert low[0] > 0.8 and low.min() < 0.75 and low[-1] > 0.8


def test_times_are_counted() -> None:
    once, twice = (made(f"a man jumps{times}").motion.seconds for times in ("", " twice"))
    assert twice > 1.6 * once


def test_a_speed_and_a_path_are_met() -> None:
    root = made("a man walks", Directions(seconds=4.0, speed=1.3)).motion.pose.root
    assert float((root[-1] - root[0])[[0, 2]].norm()) / 4.0 == pytest.approx(1.3, rel=0.1)
    points = np.array([[1.0, 0.0], [1.0, 3.0], [4.0, 3.0]])
    walked = made("a man walks", Directions(path=points)).motion.pose.root.numpy()[:, [0, 2]]
    assert np.linalg.norm(walked[0] - points[0]) < 0.3
    assert np.linalg.norm(walked[-1] - points[-1]) < 0.6
    away = np.linalg.norm(walked[:, None] - points[None], axis=-1).min(0)
    assert away.max() < 0.7


def test_the_end_of_a_path_is_reached_in_the_time_that_is_given() -> None:
    points = np.array([[0.0, 0.0], [0.0, 2.0], [1.5, 3.0], [3.0, 2.0], [3.0, 0.0]])
    walked = made("a man walks", Directions(path=points, seconds=8.0)).motion
    assert walked.seconds == 8.0
    assert np.linalg.norm(walked.pose.root.numpy()[-1, [0, 2]] - points[-1]) < 0.4
    hurried = made("a man walks", Directions(path=points, seconds=1.0))
    assert any("does not get to the end of the path" in note for note in hurried.notes)


def test_the_middle_of_the_body_keeps_to_the_path_whichever_way_it_faces() -> None:
    fox = body("fox")
    points = np.array([[1.0, 1.0], [5.0, 1.0]])
    walked = made("a fox trots", Directions(path=points), species="fox").motion
    world = motion_to_world(fox.skeleton, walked)[:, fox.pelvis]
    behind = float(fox.T_rest[fox.pelvis, 2, 3])
    assert abs(behind) > 0.05  # where the pelvis rests, seen from the middle: behind it, not beside the path
    assert np.abs(world[:, 2, 3] - 1.0).max() < 0.5 * abs(behind)


@pytest.mark.parametrize(("side", "sign"), [("left", 1), ("right", -1)])
def test_who_goes_to_a_side_turns_there(side: str, sign: int) -> None:
    clip = made(f"a man walks to the {side}", Directions(seconds=4.0))
    assert 0.8 < sign * clip.limb_motion.heading[-1] < 2.0
    assert sign * clip.motion.pose.root[-1, 0] > 0.5
    assert abs(made(f"a man limps on his {side} leg", Directions(seconds=4.0)).limb_motion.heading[-1]) < 0.4


@pytest.mark.parametrize("sentence", ["a man walks", "a man waves", "a man walks, then waves"])
def test_a_loop_meets_in_pose_and_velocity_before_its_feet_are_locked(sentence: str) -> None:
    human = body()
    motion = made(sentence, Directions(loop=True)).motion
    places = motion_to_world(human.skeleton, motion)[..., :3, 3]
    places = places - places[:, :1] * [1.0, 0.0, 1.0]
    assert np.linalg.norm(places[0] - places[-1], axis=-1).max() < 1e-3 * human.height
    within = np.linalg.norm(np.diff(places, n=2, axis=0), axis=-1).max()
    across = np.linalg.norm(places[1] - places[0] - (places[-1] - places[-2]), axis=-1).max()
    assert across < within


def test_a_body_without_limbs_is_carried_as_a_whole_and_that_is_said() -> None:
    arm = anatomy_of(reparent(two_link_arm()).asset)
    clip = draft(memory(), read("it jumps"), arm, encoder(), Directions())
    height = clip.motion.pose.root[:, 1]
    assert float(height.max() - height.min()) > 0.1 * arm.height
    assert any("no legs were found" in note and "as a whole" in note for note in clip.notes)
    assert not any("no legs" in note for note in made("a man walks").notes)


def test_a_clip_begins_and_ends_in_given_poses() -> None:
    human = body()
    rest = encode(human, reference_motion(human.asset, "idle", seconds=0.5))
    clip = made("a man waves", Directions(start=rest, end=rest))
    for frame in (0, -1):
        gap = np.abs(clip.limb_motion.trunk[frame] - rest.trunk[-1 if frame == 0 else 0]).max()
        assert gap < 1e-6


def test_in_place_keeps_the_body_where_it_is() -> None:
    root = made("a man walks", Directions(seconds=3.0, in_place=True)).motion.pose.root
    assert float((root[-1] - root[0])[[0, 2]].norm()) < 0.05


def test_lengths_are_met_and_nothing_jumps() -> None:
    for seconds in (0.5, 2.0, 10.0):
        clip = made("a man walks", Directions(seconds=seconds))
        assert clip.motion.seconds == pytest.approx(seconds, abs=1e-6)
        places = motion_to_world(body().skeleton, clip.motion)[..., :3, 3]
        step = np.linalg.norm(np.diff(places, axis=0), axis=-1).max()
        assert step < 0.2 * body().height


def test_a_path_in_place_is_refused() -> None:
    with pytest.raises(JigdollError, match="leave one of them out"):
        made("a man walks", Directions(path=np.array([[0.0, 0.0], [0.0, 2.0]]), in_place=True))


@pytest.mark.parametrize(
    "bad", [Directions(seconds=0.0), Directions(seconds=1e9), Directions(speed=-1.0), Directions(path=np.zeros((3, 2)))]
)
def test_directions_that_nobody_can_follow_are_refused(bad: Directions) -> None:
    with pytest.raises(JigdollError, match=r"cannot be made|no speed|path needs"):
        made("a man walks", bad)


def test_texts_of_clips_are_read_part_by_part() -> None:
    assert actions_of("sit on high stool, stand up", "stand_up", encoder()) == ("sit", "stand_up")
    assert actions_of("AttitudeWalk8", "walk", encoder()) == ("walk",)
    assert plain("a woman: idle look_around 01") == "idle look around"
    assert imitated("chicken (human subject)") == ("chicken",)
    assert styles_of("DragBadLegWalk") == () and styles_of("Drunk Walk") == ("drunk",)


def test_a_take_of_two_actions_is_cut_between_them() -> None:
    human = body()
    walk, idle = (
        encode(human, reference_motion(human.asset, name, seconds=3.0, loop=True)) for name in ("walk", "idle")
    )
    samples = {"walk": walk, "idle": idle, "run": encode(human, reference_motion(human.asset, "run", seconds=3.0))}
    signs = [signature(frame_signs(repeated(lm, 1))) for lm in samples.values() for _ in range(3)]
    check = learn_check(np.stack(signs) + 0.01, [name for name in samples for _ in range(3)])
    from jigdoll.memory.joins import join

    pieces = aligned(join(walk, idle), ["walk", "idle"], check)
    assert [piece.action for piece in pieces] == ["walk", "idle"]
    assert pieces[0].last <= pieces[1].first + 2
    assert 1.5 * 24 < pieces[0].last - pieces[0].first < 4.5 * 24


def test_the_page_of_contents_lists_all_segments() -> None:
    rows = contents(memory())
    assert sum(sum(row.actions.values()) for row in rows) == len(memory())
    assert "| CMU mocap |" in page(memory())


def test_who_walks_neither_strolls_nor_rushes_unless_that_is_said() -> None:
    request = read("a man walks")
    usual = (ACTIONS["walk"].froude * 9.81 / LEG_LENGTHS["man"]) ** 0.5
    best = find(memory(), request, request.actions[0], body(), encoder(), count=4)
    assert all(1 / 1.6 < found.words.speed / usual < 1.6 for found in best)
    slow = read("a man walks slowly")
    scores = {
        found.words.source: found.score for found in find(memory(), slow, slow.actions[0], body(), encoder(), count=99)
    }
    plain = {f.words.source: f.score for f in find(memory(), request, request.actions[0], body(), encoder(), count=99)}
    assert scores["cmu 132_49"] > plain["cmu 132_49"] + 0.2  # a walk at a quarter of the pace


def test_fish_beat_their_tails_to_the_sides_and_whales_up_and_down() -> None:
    fish = replace(body(), kind="fish", legs=(), parts=())
    for who, mammals in (("shark", False), ("whale", True), ("dolphin", True), ("trout", False)):
        request = read(f"a {who} swims")
        best = find(memory(), request, request.actions[0], fish, encoder())[0].words
        assert (best.noun in SWIMMING_MAMMALS) == mammals


def test_a_body_without_limbs_follows_nobody_who_has_some() -> None:
    blob = replace(body(), kind="other", legs=(), parts=())
    request = read("a slime dances")
    assert all(not f.words.legs for f in find(memory(), request, request.actions[0], blob, encoder()))


def test_who_lands_comes_down_and_stands_and_who_takes_off_stood_before() -> None:
    for sentence, first_is_down in (("a bird lands", False), ("a bird takes off", True)):
        done = made(sentence, species="ostrich")
        heights = done.motion.pose.root[:, 1].numpy()
        ground, air = (heights[0], heights[-1]) if first_is_down else (heights[-1], heights[0])
        assert air - ground > 0.5 * body("ostrich").body_length
        assert "idle" in {found.words.action for found in done.found}


def test_swimmers_are_in_the_water_and_get_along() -> None:
    done = made("a man swims", Directions(seconds=3.0))
    assert not done.limb_motion.grounded
    skin = motion_to_world(body().skeleton, done.motion)[..., 1, 3]
    assert skin.min() > 0.1 * body().height
    way = np.linalg.norm(np.diff(done.motion.pose.root.numpy()[[0, -1]], axis=0)[0, [0, 2]])
    assert way > 0.5 * body().body_length
