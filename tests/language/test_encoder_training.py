"""The grammar and the trainer behind the small sentence encoder, with a stand-in for the teacher."""

import zlib
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from jigdoll.errors import JigdollError
from jigdoll.language import train_encoder
from jigdoll.language.encoder import EncoderConfig, open_encoder, words_of
from jigdoll.language.train_encoder import Teacher, TrainConfig
from jigdoll.language.train_phrases import (
    ACTOR_LIST,
    MOVE_TABLE,
    STYLE_TABLE,
    Grammar,
    barred_words,
    gerund,
    held_out_stems,
    inflect,
    past,
    read_table,
    third_person,
)

PHRASES, PLAIN = (
    Path(__file__).parents[2] / "benchmarks/data" / f"encoder_{name}.tsv" for name in ("phrases", "plain")
)


class Parrot(Teacher):
    """A teacher whose vector of a phrase is the sum of noise drawn from its words."""

    def __init__(self) -> None:
        letters = "abcdefghijklmnopqrstuvwxyz"
        words = {word for phrase in islice(Grammar(0).phrases(), 2000) for word in words_of(phrase.text)}
        self.vocabulary = ["[PAD]", "[CLS]", "[UNK]", *letters, *(f"##{letter}" for letter in letters)]
        self.vocabulary += sorted(words - set(letters))
        self.table = torch.randn(len(self.vocabulary), 24, generator=torch.Generator().manual_seed(0))

    def __call__(self, phrases, batch=0):
        return F.normalize(torch.stack([sum(map(self.noise, words_of(phrase))) for phrase in phrases]), dim=-1)

    def noise(self, word: str) -> torch.Tensor:
        return torch.randn(24, generator=torch.Generator().manual_seed(zlib.crc32(word.encode())))


def small(out: Path) -> TrainConfig:
    model = EncoderConfig(pieces=400, width=24, layers=1, heads=2, hidden=32, vector=8)
    return TrainConfig(out=out, sentences=600, steps=6, batch=64, save_every=0.0, model=model)


@pytest.mark.parametrize(
    ("verb", "forms"),
    [
        ("walk", ("walks", "walking", "walked")),
        ("hop", ("hops", "hopping", "hopped")),
        ("dance", ("dances", "dancing", "danced")),
        ("carry", ("carries", "carrying", "carried")),
        ("lie", ("lies", "lying", "lay")),
        ("crouch", ("crouches", "crouching", "crouched")),
        ("swim", ("swims", "swimming", "swam")),
        ("be", ("is", "being", "was")),
        ("play", ("plays", "playing", "played")),
    ],
)
def test_verbs_are_inflected(verb, forms):
    assert (third_person(verb), gerund(verb), past(verb)) == forms


def test_phrases_of_a_table_fit_their_subject():
    assert inflect("drag oneself along", "s", "her") == "drags herself along"
    assert inflect("stretch one's arms", "ing", "his") == "stretching his arms"
    assert inflect("not move", "s", "its") == "does not move"


def test_the_tables_are_whole():
    assert len(MOVE_TABLE) == 100 and len(STYLE_TABLE) == 24 and len(set(ACTOR_LIST)) > 200
    for name, row in MOVE_TABLE.items():
        assert row.anchors and len(row.ways) >= 3, name
        assert row.extra or not any(" O" in f" {way}".replace(" Over", "") for way in row.ways), name


def test_the_same_seed_writes_the_same_phrases_and_another_seed_others():
    first, again, other = (list(islice(Grammar(seed).phrases(), 200)) for seed in (0, 0, 1))
    assert first == again != other


def test_held_out_verbs_are_in_no_sentence_of_the_grammar():
    rows = [row for row in read_table(PHRASES) if row["held_out"]]
    stems = held_out_stems(rows)
    barred = barred_words(stems)
    assert len(rows) >= 60 and all(barred.search(row["phrase"]) for row in rows)
    written = [phrase.text for phrase in islice(Grammar(3, held_out=stems).phrases(), 5000)]
    assert not [text for text in written if barred.search(text)]
    assert any(barred.search(phrase.text) for phrase in islice(Grammar(3).phrases(), 5000))


def test_sentences_of_the_benchmark_are_not_learned():
    secret = {row["phrase"].lower() for table in (PHRASES, PLAIN) for row in read_table(table)}
    assert len(secret) > 400
    open_book, closed_book = (TrainConfig(sentences=30000, held_out=tables) for tables in ((), (PHRASES, PLAIN)))
    assert secret & {phrase.text.lower() for phrase in train_encoder.collect(open_book, [])}
    assert not secret & {phrase.text.lower() for phrase in train_encoder.collect(closed_book, [])}


def test_training_that_was_interrupted_ends_with_the_same_weights(tmp_path, monkeypatch):
    straight, broken = small(tmp_path / "straight"), small(tmp_path / "broken")
    train_encoder.main(straight, Parrot())
    update, count = train_encoder.State.update, 0

    def failing(state, chosen):
        nonlocal count
        count += 1
        if count == 4:
            raise KeyboardInterrupt
        update(state, chosen)

    monkeypatch.setattr(train_encoder.State, "update", failing)
    with pytest.raises(KeyboardInterrupt):
        train_encoder.main(broken, Parrot())
    monkeypatch.setattr(train_encoder.State, "update", update)
    train_encoder.main(broken, Parrot())
    for config in (straight, broken):
        train_encoder.main(replace(config, export=config.out / "made.safetensors"), Parrot())
    one, other = (open_encoder(config.out / "made.safetensors") for config in (straight, broken))
    assert torch.equal(one(["a dog walks"]), other(["a dog walks"]))


def test_a_checkpoint_of_other_settings_is_refused(tmp_path):
    train_encoder.main(small(tmp_path), Parrot())
    with pytest.raises(JigdollError, match="other settings"):
        train_encoder.main(replace(small(tmp_path), seed=1), Parrot())


def test_training_lowers_the_angle_to_the_targets(tmp_path):
    config = replace(small(tmp_path), steps=300, save_every=1e9, rate=0.01)
    train_encoder.main(config, Parrot())
    lessons = train_encoder.prepare(config, train_encoder.collect(config, Parrot().vocabulary), Parrot())
    fresh, state = train_encoder.State(config, lessons), train_encoder.State(config, lessons)
    state.load()
    chosen = torch.arange(400)
    before, after = ((s.vectors(chosen) * lessons.targets[chosen]).sum(-1).mean() for s in (fresh, state))
    assert after > before + 0.2
