"""The command line as a user meets it: tables, JSON, exit codes, one readable line for an error."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from stand_ins import jigdoll


@pytest.fixture(scope="module")
def fox(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("zoo") / "fox.glb"
    run = jigdoll("zoo", "make", "fox", path, "--action", "walk", "--seconds", "0.5")
    assert run.returncode == 0, run.stderr
    return path


def test_the_module_runs_as_a_program() -> None:
    run = subprocess.run([sys.executable, "-m", "jigdoll"], capture_output=True, text=True, check=False)
    assert run.returncode == 0 and "inspect" in run.stdout


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


def test_a_clip_goes_onto_another_rig_and_the_report_says_which_limb_took_which(fox: Path, tmp_path: Path) -> None:
    out = tmp_path / "spider.glb"
    run = jigdoll("retarget", fox, "zoo:spider", "--out", out, "--json")
    assert run.returncode == 0, run.stderr
    facts = json.loads(run.stdout)
    assert len(facts["matches"]) == 8 and all(match["source"] for match in facts["matches"])
    assert (facts["clip"], facts["files"]) == ("walk", [str(out)])
    assert [clip["name"] for clip in json.loads(jigdoll("inspect", out, "--json").stdout)["clips"]] == ["walk"]


def test_limbs_are_mapped_by_name_and_a_wrong_name_writes_nothing(fox: Path, tmp_path: Path) -> None:
    out = tmp_path / "dog.bvh"
    run = jigdoll("retarget", fox, "zoo:dog", "--out", out, "--map", "left leg 0=right leg 1", "--json")
    assert run.returncode == 0, run.stderr
    took = {match["target"]: match["source"] for match in json.loads(run.stdout)["matches"]}
    assert took["left leg 0"] == "right leg 1" and out.exists()
    other = tmp_path / "other.bvh"
    for wrong, hint in (("left leg 0", "TARGET_LIMB=SOURCE_LIMB"), ("left horn 0=left leg 0", "right leg 1")):
        run = jigdoll("retarget", fox, "zoo:dog", "--out", other, "--map", wrong)
        assert run.returncode == 1 and hint in run.stderr and not other.exists()


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
    words: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = jigdoll(*words)
    assert run.returncode == 1
    assert run.stderr.startswith("error:") and said in run.stderr and "Traceback" not in run.stderr
    assert not list(tmp_path.iterdir())


def test_wrong_words_are_a_usage_error() -> None:
    assert jigdoll("frobnicate").returncode == 2


def test_a_bare_mesh_is_rigged_and_its_picture_drawn(fox: Path, tmp_path: Path) -> None:
    bare, rigged = tmp_path / "bare.obj", tmp_path / "rigged.glb"
    _write_obj(bare, fox)
    run = jigdoll("rig", bare, rigged, "--picture", tmp_path / "rig.png", "--save-markers", tmp_path / "markers.json")
    assert run.returncode == 0, run.stderr
    facts = json.loads(jigdoll("inspect", rigged, "--json").stdout)
    kinds = [limb["kind"] for limb in facts["skeleton"]["limbs"]]
    assert kinds.count("leg") == 4 and "head" in kinds and "tail" in kinds
    assert facts["weights"]["most_influences"] <= 4
    markers = json.loads((tmp_path / "markers.json").read_text())
    markers["head"][1] += 0.05
    (tmp_path / "markers.json").write_text(json.dumps({"head": markers["head"]}))
    assert jigdoll("rig", bare, rigged, "--markers", tmp_path / "markers.json").returncode == 0
    from jigdoll.asset.load import load
    from jigdoll.kinematics import rest_transforms

    moved = load(rigged, forward="+z").skeleton
    assert rest_transforms(moved)[moved.index("head"), 1, 3].item() == pytest.approx(markers["head"][1], abs=0.01)


def _write_obj(path: Path, glb: Path) -> None:
    from jigdoll.asset.load import load

    mesh = load(glb).mesh
    lines = [f"v {x:.6f} {y:.6f} {z:.6f}" for x, y, z in mesh.vertices.tolist()]
    lines += [f"f {a + 1} {b + 1} {c + 1}" for a, b, c in mesh.faces.tolist()]
    path.write_text("\n".join(lines) + "\n")


def test_splats_are_written_as_ply(fox: Path, tmp_path: Path) -> None:
    run = jigdoll("splat", fox, tmp_path / "fox.ply", "--count", "500", "--iterations", "0")
    assert run.returncode == 0, run.stderr
    from jigdoll.formats import ply

    assert len(ply.read(tmp_path / "fox.ply").means) == 500


def test_a_clip_becomes_a_film_and_a_sheet(fox: Path, tmp_path: Path) -> None:
    from PIL import Image

    for name in ("walk.gif", "walk.png"):
        run = jigdoll("render", fox, tmp_path / name, "walk", "--size", "96", "72", "--fps", "12", "--frames", "4")
        assert run.returncode == 0, run.stderr
    with Image.open(tmp_path / "walk.gif") as film:
        assert (film.size, film.n_frames) == ((96, 72), 7)  # half a second, and the first frame
        frames = []
        for index in (0, 3):
            film.seek(index)
            frames.append(np.asarray(film.convert("RGB")).astype(int))
    # The fox is orange on grey, and it moves.
    orange = frames[0][..., 0] - frames[0][..., 2] > 60
    assert 0.02 < orange.mean() < 0.6 and np.abs(frames[0] - frames[1]).max() > 60
    with Image.open(tmp_path / "walk.png") as sheet:
        columns, rows = sheet.width // 96, sheet.height // 72
        assert columns * rows == 4 and sheet.width < (columns + 1) * 96
