"""The command line as a user meets it: tables, JSON, exit codes, one readable line for an error."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


def jigdoll(*words: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "jigdoll", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)


@pytest.fixture(scope="module")
def fox(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("zoo") / "fox.glb"
    run = jigdoll("zoo", "make", "fox", path, "--action", "walk", "--seconds", "0.5")
    assert run.returncode == 0, run.stderr
    return path


def test_inspect_tells_what_is_in_a_file_as_json(fox: Path) -> None:
    run = jigdoll("inspect", fox, "--json")
    assert run.returncode == 0, run.stderr
    facts = json.loads(run.stdout)
    assert facts["mesh"]["watertight"] is True and facts["mesh"]["components"] == 1
    assert facts["frame"] == {"metres_per_unit": pytest.approx(1.0), "up": "+y", "forward": "+z"}
    assert facts["repairs"] == []
    assert [clip["name"] for clip in facts["clips"]] == ["walk"]
    assert [limb["kind"] for limb in facts["skeleton"]["limbs"]].count("leg") == 4


def test_a_clip_goes_through_bvh_and_back(fox: Path, tmp_path: Path) -> None:
    assert jigdoll("convert", fox, tmp_path / "walk.bvh").returncode == 0
    facts = json.loads(jigdoll("inspect", tmp_path / "walk.bvh", "--json").stdout)
    original = json.loads(jigdoll("inspect", fox, "--json").stdout)
    assert facts["clips"][0]["frames"] == original["clips"][0]["frames"]
    assert facts["clips"][0]["travel_m"] == pytest.approx(original["clips"][0]["travel_m"], abs=1e-3)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("inspect", "missing.glb"), "no such file"),
        (("zoo", "make", "foxx", "a.glb"), "fox"),
        (("convert", "zoo:fox", "a.max"), "cannot write .max"),
        (("zoo", "make", "fox", "a.glb", "--action", "levitate"), "levitate"),
    ],
)
def test_a_mistake_gets_one_readable_line_and_exit_code_1(
    words: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    run = jigdoll(*words, cwd=tmp_path)
    assert run.returncode == 1
    assert run.stderr.startswith("error:") and said in run.stderr and "Traceback" not in run.stderr
    assert not list(tmp_path.iterdir())


def test_wrong_words_are_a_usage_error(tmp_path: Path) -> None:
    assert jigdoll("frobnicate").returncode == 2


def test_doctor_finds_every_required_part() -> None:
    run = jigdoll("doctor", "--json")
    assert run.returncode == 0, run.stdout
    findings = {finding["part"]: finding["state"] for finding in json.loads(run.stdout)}
    assert findings["torch"] == "ok" and "broken" not in findings.values()
