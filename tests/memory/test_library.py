"""The user's own library: clips of their files, found before the shipped memory."""

import json
import zipfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from jigdoll import zoo
from jigdoll.errors import FileFormatError, JigdollError
from jigdoll.export import save
from jigdoll.language import read
from jigdoll.language.encoder import SentenceEncoder, open_encoder
from jigdoll.memory import library
from jigdoll.memory.find import find
from jigdoll.rig.anatomy import anatomy_of
from jigdoll.rig.reparent import reparent
from jigdoll.rig.retarget.limb_motion import encode
from jigdoll.zoo.gaits import reference_motion


@cache
def encoder() -> SentenceEncoder:
    return open_encoder()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Clips of a person and a fox, a zip, and junk."""
    place = tmp_path_factory.mktemp("clips")
    human, fox = zoo.make("human"), zoo.make("fox")
    save(place / "Silly_Walk.bvh", human, [reference_motion(human, "walk", seconds=1.0)])
    save(place / "deep" / "fox_trotting.glb", fox, [reference_motion(fox, "trot", seconds=1.0)])
    save(place / "hop.bvh", human, [reference_motion(human, "jump", seconds=1.0)])
    with zipfile.ZipFile(place / "pack.zip", "w") as archive:
        archive.write(place / "hop.bvh", "moves/big jump.bvh")
        archive.writestr("moves/readme.txt", "nothing to see")
    (place / "hop.bvh").unlink()
    (place / "broken.glb").write_bytes(b"glTF but not really")
    (place / "broken.zip").write_bytes(b"PK no archive")
    (place / "empty.bvh").write_text("")
    (place / "notes.txt").write_text("not a clip")
    return place


def test_a_folder_is_added_junk_is_named_and_clips_are_found_first(folder: Path, tmp_path: Path) -> None:
    added = library.add(folder, encoder(), folder=tmp_path)
    assert sorted(clip.words.action for clip in added.new) == ["jump", "trot", "walk"]
    assert {Path(name).name for name, _ in added.skipped} == {"broken.glb", "broken.zip", "empty.bvh"}
    assert all(problem for _, problem in added.skipped)
    assert {clip.words.kind for clip in added.new} == {"person", "quadruped"}
    memory = library.open_memories(encoder(), tmp_path)
    request = read("a man walks")
    human = anatomy_of(reparent(zoo.make("human")).asset)
    best = find(memory, request, request.actions[0], human, encoder())[0]
    assert best.words.own and best.words.text == "silly walk"
    assert len(memory.segment(best.index).motion) == 25


def test_adding_again_adds_nothing_and_removing_removes(folder: Path, tmp_path: Path) -> None:
    library.add(folder, encoder(), folder=tmp_path)
    again = library.add(folder, encoder(), folder=tmp_path)
    assert not again.new and again.known == 3
    assert [clip.words.action for clip in library.remove("fox", tmp_path)] == ["trot"]
    assert len(library.clips(tmp_path)) == 2
    assert len(library.add(folder, encoder(), folder=tmp_path).new) == 1
    assert len(library.remove("all", tmp_path)) == 3
    assert library.clips(tmp_path) == []


def test_clips_are_kept_at_full_fidelity(tmp_path: Path) -> None:
    human = zoo.make("human")
    motion = reference_motion(human, "walk", seconds=1.0, fps=30.0)
    save(tmp_path / "walk.glb", human, [motion])
    library.add(tmp_path / "walk.glb", encoder(), folder=tmp_path / "cache")
    kept = library.open_library(encoder(), tmp_path / "cache").segment(0).motion
    truth = encode(anatomy_of(reparent(human).asset), motion)
    gap = np.abs(kept.trunk[0] - truth.trunk[0]).max()
    assert gap < 1e-3
    for one, other in zip(kept.limbs, truth.limbs, strict=True):
        assert np.abs(one.turns[0] - other.turns[0]).max() < 1e-3


def test_a_table_beside_the_clips_says_what_they_are(folder: Path, tmp_path: Path) -> None:
    table = folder / library.SIDECAR
    table.write_text("file\tclip\ttext\taction\nSilly_Walk.bvh\t\ta minister crosses the street\tmarch\n")
    try:
        added = library.add(folder / "Silly_Walk.bvh", encoder(), folder=tmp_path)
        assert added.new[0].words.action == "march"
        assert added.new[0].words.text == "a minister crosses the street"
        table.write_text("name,words\n1,2\n")
        with pytest.raises(FileFormatError, match="columns file, clip, text, action"):
            library.add(folder, encoder(), folder=tmp_path)
    finally:
        table.unlink()


def test_damaged_and_foreign_files_in_the_library_are_passed_over(folder: Path, tmp_path: Path) -> None:
    library.add(folder / "Silly_Walk.bvh", encoder(), folder=tmp_path)
    place = library.library_folder(tmp_path)
    clip = library.clips(tmp_path)[0]
    (place / "other.safetensors").write_bytes(b"no clip")
    whole = (place / f"{clip.key}.safetensors").read_bytes()
    (place / "half.safetensors").write_bytes(whole[: len(whole) // 2])
    assert [c.key for c in library.clips(tmp_path)] == [clip.key]
    with pytest.raises(FileFormatError, match=r"other\.safetensors: this clip of your library is damaged"):
        library.read_motion(place / "other.safetensors")


def test_nothing_to_add_and_nothing_to_remove_are_said(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="there is no such file or folder"):
        library.add(tmp_path / "absent", encoder(), folder=tmp_path)
    with pytest.raises(FileFormatError, match="nothing to add"):
        (tmp_path / "void").mkdir()
        library.add(tmp_path / "void", encoder(), folder=tmp_path)
    with pytest.raises(JigdollError, match="say which clips"):
        library.remove(" ", tmp_path)


def test_the_cache_is_where_the_variable_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JIGDOLL_CACHE", str(tmp_path))
    assert library.library_folder() == tmp_path / "library"
    monkeypatch.delenv("JIGDOLL_CACHE")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert library.cache_folder() == tmp_path / "xdg" / "jigdoll"


def test_the_verbs_speak_json(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from jigdoll.cli.memory import library_add, library_list, library_remove, memory_find, memory_list

    library_add(folder / "Silly_Walk.bvh", cache=tmp_path, as_json=True)
    assert [clip["words"]["action"] for clip in json.loads(capsys.readouterr().out)["added"]] == ["walk"]
    library_list(cache=tmp_path, as_json=True)
    assert len(json.loads(capsys.readouterr().out)["clips"]) == 1
    memory_find("a drunk man staggers", cache=tmp_path, as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert found["body"] == "person" and found["actions"][0]["found"]
    memory_find("a man walks, then frobnicates", cache=tmp_path, as_json=True)
    assert any("frobnicates" in note for note in json.loads(capsys.readouterr().out)["notes"])
    memory_list(as_json=True)
    assert {row["kind"] for row in json.loads(capsys.readouterr().out)["bodies"]} >= {"person", "quadruped", "bird"}
    library_remove("all", cache=tmp_path, as_json=True)
    assert len(json.loads(capsys.readouterr().out)["removed"]) == 1
