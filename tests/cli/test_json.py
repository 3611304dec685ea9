"""With --json every verb prints one JSON object that strict readers take, and nothing else."""

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

from jigdoll import cli
from jigdoll.cli import GROUPS, VERBS
from stand_ins import jigdoll

SWITCH = r"(?<![\w-])--[a-z][a-z-]*(?:\.[a-z-]+)?"


def answer(*words: object) -> dict[str, Any]:
    """The whole of stdout as strict JSON."""

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    run = jigdoll(*words, "--json")
    assert run.returncode == 0, run.stderr
    facts = json.loads(run.stdout, parse_constant=refuse)
    assert isinstance(facts, dict)
    for file in facts.get("files", ()):
        assert Path(file).stat().st_size > 0
    return facts


@pytest.fixture(scope="module")
def fox(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("zoo") / "fox.glb"
    facts = answer("zoo", "make", "fox", path, "--action", "walk", "--seconds", "0.5")
    assert facts == {"name": "fox", "joints": 32, "clips": ["walk"], "files": [str(path)]}
    return path


def test_inspect_convert_and_judge(fox: Path, tmp_path: Path) -> None:
    assert answer("inspect", fox)["skeleton"]["joints"] == 32
    target = tmp_path / "walk.bvh"
    assert answer("convert", fox, target) == {"clips": ["walk"], "original_kept": False, "files": [str(target)]}
    page = tmp_path / "walk.html"
    verdict = answer("judge", fox, "walk", "--html", page)
    assert verdict["name"] == "walk" and verdict["frames"] == 13 and verdict["files"] == [str(page)]


@pytest.mark.filterwarnings("ignore:ant. its 45 joints:UserWarning")
def test_rig_and_skin(tmp_path: Path) -> None:
    rigged, skinned = tmp_path / "rigged.glb", tmp_path / "skinned.glb"
    found = answer("rig", "zoo:ant", rigged)
    assert "6 legs" in found["summary"] and found["files"] == [str(rigged)] and "pelvis" in found["joints"]
    again = answer("skin", rigged, skinned, "--max-influences", "2", "--picture", tmp_path / "skin.png")
    assert again["most_influences"] == 2 and again["joints"] == len(found["joints"])
    assert answer("inspect", skinned)["weights"]["most_influences"] == 2
    assert answer("inspect", skinned)["skeleton"]["names"] == answer("inspect", rigged)["skeleton"]["names"]


def test_splat_and_render(fox: Path, tmp_path: Path) -> None:
    made = answer("splat", fox, tmp_path / "fox.ply", "--count", "300", "--iterations", "0")
    assert made["splats"] == 300 and made["likeness_db"] > 5
    drawn = answer("render", fox, tmp_path / "fox.png", "walk", "--size", "64", "48", "--frames", "2")
    assert drawn["clip"] == "walk"


def test_the_zoo_lists_what_each_character_can_do() -> None:
    rows = {row["name"]: row for row in answer("zoo", "list")["characters"]}
    assert len(rows) == 29 and "walk" in rows["fox"]["actions"] and rows["fox"]["joints"] == 32
    assert "fox" in jigdoll("zoo", "list").stdout


def test_the_zoo_sheet_shows_every_character_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from PIL import Image

    from jigdoll import zoo

    monkeypatch.setattr(zoo, "SPECIES", ("fox", "ant", "penguin"))
    answer("zoo", "sheet", tmp_path / "zoo.png", "--size", "48", "--columns", "2", "--action", "idle")
    with Image.open(tmp_path / "zoo.png") as sheet:
        assert 4 * 48 <= sheet.width < 5 * 48 and 2 * 48 <= sheet.height < 3 * 48


def test_the_prior_tells_what_it_knows() -> None:
    facts = answer("prior", "info")
    assert "walk" in facts["actions"] and facts["bytes"] > 1e6 and "wan-2.2" in facts["large"]
    assert facts["model"]["frames"] > 8 and "fox" in facts["recipe"]["held_out"]
    assert "cogvideox-5b" in jigdoll("prior", "info").stdout


def test_the_prior_samples_a_film_and_a_sheet(tmp_path: Path) -> None:
    from PIL import Image

    film, sheet = tmp_path / "dog.gif", tmp_path / "dog.png"
    options = ("--steps", "1", "--scale", "1", "--words-only")
    facts = answer("prior", "sample", "a dog walks", "--out", film, *options)
    assert facts["negative"] == "unnatural motion of a dog walking" and facts["files"] == [str(film)]
    answer("prior", "sample", "a dog walks", "--out", sheet, "--scale", "2", "--steps", "1", "--words-only")
    model = answer("prior", "info")["model"]
    with Image.open(film) as shown:
        assert shown.size == (model["width"], model["height"]) and shown.n_frames == model["frames"]
    with Image.open(sheet) as shown:
        assert shown.size == (model["width"] * -(-model["frames"] // 2), model["height"])
    assert jigdoll("prior", "sample", "a dog walks", "--steps", "0").returncode == 1


def test_doctor() -> None:
    findings = {part["part"]: part["state"] for part in answer("doctor")["parts"]}
    assert findings["jigdoll"] == findings["torch"] == findings["numba"] == "ok" and "broken" not in findings.values()


def test_every_verb_has_the_option() -> None:
    for name, verb in {**VERBS, **{k: v for group in GROUPS.values() for k, v in group.items()}}.items():
        if name not in GROUPS:
            assert "as_json" in verb.__annotations__, name


def test_read_and_retarget(fox: Path, tmp_path: Path) -> None:
    understood = answer("read", "a fox trots, then sits")
    assert understood["noun"] == "fox" and [action["name"] for action in understood["actions"]] == ["trot", "sit"]
    out = tmp_path / "dog.bvh"
    moved = answer("retarget", fox, "zoo:dog", "--out", out)
    assert moved["clip"] == "walk" and moved["files"] == [str(out)]


def test_every_switch_that_an_error_recommends_is_one_of_some_verb() -> None:
    sources = Path(cli.__file__).parents[1]
    scripts = ("train", "dataset", "videophy")  # run by themselves, with switches of their own
    recommended: dict[str, str] = {}
    for path in sorted(sources.rglob("*.py")):
        if path.stem.startswith(scripts) or path.name == "page.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Raise | ast.Call) and "Error" in ast.unparse(node)[:60]:
                words = [n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
                found = [
                    switch for word in words for switch in re.findall(SWITCH, re.sub(r"ray start [^;,)]*", "", word))
                ]
                recommended |= dict.fromkeys(found, path.name)
    assert len(recommended) > 5
    verbs = [(name,) for name in VERBS if name not in GROUPS]
    verbs += [(group, name) for group, names in GROUPS.items() for name in names]
    known = {switch for verb in verbs for switch in re.findall(SWITCH, jigdoll(*verb, "--help").stdout)}
    assert {word: at for word, at in recommended.items() if word not in known} == {}
