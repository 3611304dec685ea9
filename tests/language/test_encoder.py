"""The small sentence encoder that ships with the package."""

import json
from importlib import resources
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from jigdoll.errors import JigdollError
from jigdoll.language.encoder import (
    PAD,
    START,
    UNKNOWN,
    EncoderConfig,
    EncoderNet,
    SentenceEncoder,
    Tokenizer,
    open_encoder,
    pack,
    padded,
    unpack,
    words_of,
)
from jigdoll.protocols import TextEncoder

SHIPPED = Path(str(resources.files("jigdoll.language") / "weights" / "encoder.safetensors"))
ODD = (
    "",
    "   ",
    "🦊💃",
    "ein Hund läuft",
    "狗在跑",
    "xqzzvbrrt",
    "\x00\n\t",
    "e" * 5000,
    "a dog walks " * 500,
    "l'été à Nîmes",
)


@pytest.fixture(scope="module")
def encoder() -> SentenceEncoder:
    return open_encoder()


def test_the_encoder_fits_its_socket(encoder):
    assert isinstance(encoder, TextEncoder)
    phrases = ["a dog walks", "she sits down"]
    assert torch.equal(encoder(phrases), encoder.encode(phrases))
    assert encoder([]).shape == (0, encoder(phrases).shape[1])


def test_vectors_have_unit_length_and_come_out_the_same_again(encoder):
    phrases = ["a dog walks", "she plops into a chair", *ODD]
    vectors = encoder(phrases)
    torch.testing.assert_close(vectors.norm(dim=-1), torch.ones(len(phrases)))
    assert torch.equal(vectors, open_encoder()(phrases))


@pytest.mark.parametrize("phrase", ODD)
def test_odd_phrases_get_finite_vectors_of_unit_length(encoder, phrase):
    vector = encoder([phrase])
    assert vector.isfinite().all()
    assert vector.norm().item() == pytest.approx(1, abs=1e-5)


def test_a_phrase_means_the_same_alone_and_among_longer_ones(encoder):
    phrases = [
        f"a fox {verb} {'very ' * count}fast" for count, verb in enumerate(("runs", "jumps", "swims", "digs"))
    ] * 80
    together = encoder(phrases)
    alone = torch.cat([encoder([phrase]) for phrase in phrases[:4]])
    torch.testing.assert_close(together, alone.repeat(80, 1), atol=1e-5, rtol=0)


def test_case_accents_and_spaces_do_not_matter(encoder):
    plain, dressed = encoder(["a fox runs", "  A FÓX   Runs "])
    torch.testing.assert_close(plain, dressed)


@pytest.mark.parametrize(
    ("phrase", "alike", "unlike"),
    [
        ("she plops into a chair", "a person sits down", "a person jumps"),
        ("the boy lobs a stone", "throwing a ball", "eating an apple"),
        ("grooves to the music", "a man dances", "a man climbs a ladder"),
        ("a beetle hurries off", "running away fast", "sleeping"),
        ("staggers drunkenly", "a drunk man walks unsteadily", "a soldier marches in step"),
        ("is exhausted and drags himself along", "walking wearily", "dancing happily"),
        ("the knight swings his sword", "fighting with a blade", "swimming in the sea"),
        ("a hawk soars over the valley", "flying with wings", "lying down"),
        ("the robot waves hello", "greeting with a hand", "kicking a ball"),
        ("he bursts into tears", "crying", "laughing"),
        ("the cat naps", "sleeping", "roaring loudly"),
        ("a soldier wriggles under the wire", "crawling on the belly", "standing still"),
        ("the ice skater twirls", "spinning round and round", "sitting down"),
    ],
)
def test_paraphrases_are_nearer_than_other_actions(encoder, phrase, alike, unlike):
    this, near, far = encoder([phrase, alike, unlike])
    assert this @ near > this @ far + 0.15


def test_the_action_counts_for_more_than_who_does_it(encoder):
    dog_runs, horse_runs, dog_sleeps = encoder(["a dog runs", "a horse runs", "a dog sleeps"])
    assert dog_runs @ horse_runs > dog_runs @ dog_sleeps


def test_styles_are_heard(encoder):
    sad, alike, other = encoder(["she walks sadly", "a sad woman walks", "a happy woman walks"])
    assert sad @ alike > sad @ other


def test_a_sentence_of_two_actions_is_near_to_both(encoder):
    both, one, two, neither = encoder(["he walks up and waves", "walking", "waving a hand", "swimming"])
    assert min(both @ one, both @ two) > both @ neither + 0.1


def test_pieces_spell_a_word_and_unknown_signs_are_counted():
    tokenizer = Tokenizer([PAD, START, UNKNOWN, "jump", "##ing", "##s", "j", "##u", "##m", "##p", "!"])
    assert tokenizer("Jumps jumping!") == [1, 3, 5, 3, 4, 10]
    assert tokenizer("jum") == [1, 6, 7, 8]
    assert tokenizer("jüm狗") == [1, 6, 7, 8, 2]
    assert tokenizer("") == [1]
    assert words_of("He's  off—now") == ["he", "'", "s", "off", "—", "now"]


def test_any_english_word_is_spelled_without_unknown_pieces(encoder):
    for word in ("antidisestablishmentarianism", "zyzzyva", "qwxzj", "t", "1984", "(well!)"):
        assert 2 not in encoder.tokenizer(word)


def test_filler_is_not_read():
    torch.manual_seed(0)
    net = EncoderNet(EncoderConfig(pieces=10, width=12, layers=2, heads=2, hidden=16, vector=8, longest=6)).eval()
    torch.testing.assert_close(net(torch.tensor([[1, 4, 5]])), net(torch.tensor([[1, 4, 5, 0, 0]])))
    assert padded([[1, 2], [1, 2, 3, 4]], 3).tolist() == [[1, 2, 0], [1, 2, 3]]


def test_packing_keeps_the_weights_to_a_hundredth():
    weights = {"pieces.weight": torch.randn(50, 16), "head.weight": torch.randn(4, 16)}
    back = unpack(pack(weights))
    assert back.keys() == weights.keys()
    for name, value in weights.items():
        assert (back[name] - value).abs().max() < 0.01 * value.abs().max()


def test_the_file_is_small_and_plain_safetensors():
    assert SHIPPED.stat().st_size < 6_000_000
    data = SHIPPED.read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    assert set(header.pop("__metadata__")) == {"facts"}
    assert {entry["dtype"] for entry in header.values()} <= {"F16", "I8"}
    assert {path.suffix for path in SHIPPED.parent.iterdir()} == {".safetensors", ".json"}
    assert "Apache-2.0" in json.loads(SHIPPED.with_suffix(".json").read_text())["licence"]


def damaged(kind: str, path: Path) -> None:
    """Write the shipped file with something wrong."""
    data = SHIPPED.read_bytes()
    with safe_open(SHIPPED, "pt") as file:
        facts = json.loads(file.metadata()["facts"])
        tensors = {key: file.get_tensor(key) for key in file.keys()}
    if kind == "cut short":
        path.write_bytes(data[: len(data) // 2])
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "noise":
        path.write_bytes(bytes(range(256)) * 100)
    elif kind == "a pickle":
        torch.save(tensors, path)
    elif kind == "no facts":
        save_file(tensors, path)
    elif kind == "facts of another kind":
        save_file(tensors, path, {"facts": "[1, 2]"})
    elif kind == "a missing tensor":
        save_file({k: v for k, v in tensors.items() if k != "head.bias"}, path, {"facts": json.dumps(facts)})
    elif kind == "another shape":
        save_file(tensors | {"head.bias": torch.zeros(3)}, path, {"facts": json.dumps(facts)})
    elif kind == "not finite":
        save_file(tensors | {"head.bias": tensors["head.bias"] * torch.nan}, path, {"facts": json.dumps(facts)})
    elif kind == "fewer pieces":
        save_file(tensors, path, {"facts": json.dumps(facts | {"pieces": facts["pieces"][:-1]})})
    elif kind == "a huge network":
        save_file(tensors, path, {"facts": json.dumps(facts | {"model": facts["model"] | {"layers": 10**9}})})


@pytest.mark.parametrize(
    "kind",
    [
        *(
            "cut short",
            "empty",
            "noise",
            "a pickle",
            "no facts",
            "facts of another kind",
            "a missing tensor",
            "another shape",
        ),
        *("not finite", "fewer pieces", "a huge network"),
    ],
)
def test_a_damaged_file_is_refused_by_name(tmp_path, kind):
    path = tmp_path / "spoiled.safetensors"
    damaged(kind, path)
    with pytest.raises(JigdollError, match=r"spoiled\.safetensors"):
        open_encoder(path)


def test_a_missing_file_is_refused_by_name(tmp_path):
    with pytest.raises(JigdollError, match=r"nowhere\.safetensors"):
        open_encoder(tmp_path / "nowhere.safetensors")
