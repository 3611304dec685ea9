"""The verbs of pose on a character file, with weights of a run that was trained for a moment."""

import json
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from jigdoll.cli.pose import (
    pose_check,
    pose_draft,
    pose_inbetween,
    pose_project,
    pose_sample,
    pose_solve,
    pose_walk,
    read_handles,
)
from jigdoll.errors import FileFormatError, JigdollError
from jigdoll.export import save
from jigdoll.posespace.dataset import Dataset, creature_takes, dataset_of, draw_some, save_clips
from jigdoll.posespace.model import NetConfig
from jigdoll.posespace.own import train_on
from jigdoll.posespace.train import TrainOptions, draw_samples, start_run, train
from jigdoll.posespace.weights import export_weights, open_space
from jigdoll.posespace.windows import Units
from jigdoll.posespace.workbench import open_workbench
from jigdoll.zoo.assemble import random_creature
from jigdoll.zoo.gaits import reference_motion

TINY = NetConfig(width=64, layers=1, heads=1, hidden=64)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, data: Dataset) -> Path:
    """A run of a few updates."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "cache").mkdir()
    save_clips(folder / "cache" / "zoo.npz", data)
    train(folder / "cache", folder / "run", TINY, TrainOptions(hours=2e-4, warm=2))
    return folder / "run"


@pytest.fixture(scope="module")
def weights(run: Path) -> Path:
    return export_weights(run / "state.safetensors", run / "shipped.safetensors", log="a log")


@pytest.fixture(scope="module")
def beast(tmp_path_factory: pytest.TempPathFactory) -> str:
    asset = random_creature(torch.Generator().manual_seed(3), family="quadruped", coarse=True)
    return str(save(tmp_path_factory.mktemp("beast") / "beast.glb", asset))


def test_a_run_goes_on_where_it_was_stopped(run: Path, weights: Path) -> None:
    before = open_space(run).facts["updates"]
    train(run.parent / "cache", run, TINY, TrainOptions(hours=4e-4, warm=2))
    assert open_space(run).facts["updates"] > before > 0
    assert sum("ended" in json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()) == 2


def test_sheets_show_what_was_learned_from_and_what_was_learned(tmp_path: Path, data: Dataset, units: Units) -> None:
    draw_some(data, tmp_path)
    far = dataset_of(islice(creature_takes(1, seed=7, held_out=True), 2))
    draw_samples(tmp_path / "samples.png", start_run(TINY, TrainOptions()), units, far)
    for name in ("clips_0.png", "samples.png"):
        picture = np.asarray(Image.open(tmp_path / name))
        assert picture.shape[0] >= 220 and float((picture < 200).mean()) > 0.003


def test_weights_open_without_pickle_in_half_precision_and_tell_their_sources(run: Path, weights: Path) -> None:
    space = open_space(weights)
    assert space.facts["sources"] == ["jigdoll (own work)"] and space.facts["log"] == "a log"
    fresh = start_run(TINY, TrainOptions())
    assert weights.stat().st_size < 2.2 * sum(p.numel() for p in fresh.net.parameters()) + 60_000
    wrong = weights.with_name("wrong.safetensors")
    wrong.write_bytes(b"no weights at all")
    with pytest.raises(FileFormatError, match="no weights of a pose space"):
        open_space(wrong)


def test_every_verb_writes_its_file_and_one_json_object(
    beast: str, weights: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = {name: tmp_path / f"{name}.glb" for name in ("solve", "inbetween", "walk", "draft", "project")}
    pose_sample(beast, "a beast sits", out=tmp_path / "poses.png", count=2, weights=weights, as_json=True)
    handle = ("head=0,0.5,0.8", "left_front_foot=0.1,0.1,0.4,pinned,0.01")
    pose_solve(beast, out=out["solve"], handle=handle, weights=weights, as_json=True)
    pose_inbetween(beast, "walk", out=out["inbetween"], every=15, weights=weights, as_json=True)
    pose_walk(beast, "walk", "idle", out=out["walk"], frames=6, weights=weights, as_json=True)
    pose_draft(beast, "a beast walks", out=out["draft"], seconds=1.0, weights=weights, as_json=True)
    pose_project(beast, "walk", out=out["project"], weights=weights, as_json=True)
    pose_check(beast, "walk", weights=weights, as_json=True)
    decoder, text, objects = json.JSONDecoder(), capsys.readouterr().out.strip(), []
    while text:
        found, end = decoder.raw_decode(text)
        objects.append(found)
        text = text[end:].strip()
    assert len(objects) == 7 and all(path.stat().st_size > 1000 for path in out.values())
    assert set(objects[1]["gaps_m"]) == {"head", "left_front_foot"}
    assert len(objects[6]["score"]) == len(next(iter(objects[6]["validators"].values())))


def test_without_weights_the_plain_model_stands_in_and_says_what_it_cannot(beast: str) -> None:
    from jigdoll.asset.load import load

    bench = open_workbench(load(Path(beast)))
    if bench.space is not None:
        pytest.skip("weights ship with this installation")
    assert len(bench.sample(count=3)) == 3
    with pytest.raises(JigdollError, match="weights"):
        bench.solve(read_handles(("head=0,1,0",)))


def test_clips_of_ones_own_are_learned_from_and_start_from_known_weights(tmp_path: Path, weights: Path) -> None:
    asset = random_creature(torch.Generator().manual_seed(3), family="quadruped", coarse=True)
    (tmp_path / "mine").mkdir()
    save(tmp_path / "mine" / "beast.glb", asset, [reference_motion(asset, "walk", seconds=1.0, fps=24.0)])
    made = train_on(tmp_path / "mine", tmp_path / "out", start=str(weights), hours=1e-6)
    space = open_space(made)
    assert space.net.config == TINY and space.facts["sources"] == ["beast.glb (your own)", "jigdoll (own work)"]
    with pytest.raises(JigdollError, match="no character files"):
        train_on(tmp_path / "out", tmp_path / "other", start="fresh")
    with pytest.raises(JigdollError, match="start"):
        train_on(tmp_path / "mine", tmp_path / "other", start="nothing")


@pytest.mark.parametrize("word", ["head", "head=1,2", "head=a,b,c", "head=1,2,3,glued"])
def test_handles_that_cannot_be_read_are_refused_with_an_example(word: str) -> None:
    with pytest.raises(JigdollError, match="--handle"):
        read_handles((word,))
