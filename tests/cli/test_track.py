"""The verb track tells how far the clip that it wrote is from the one that was asked for."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from jigdoll.physics import track as tracking
from jigdoll.types import Motion
from stand_ins import jigdoll

WORDS = ("track", "zoo:ant", "walk", "--iterations", "0", "--seconds", "0.15", "--substeps", "96", "--json")


@pytest.fixture(scope="module", autouse=True)
def newton() -> None:
    pytest.importorskip("newton")


@pytest.mark.parametrize("suffix", [".glb", ".bvh"])
def test_the_error_is_that_of_the_written_file(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, done = tracking.track, []
    monkeypatch.setattr(tracking, "track", lambda *args, **more: done.append(real(*args, **more)) or done[-1])
    run = jigdoll(*WORDS, "--out", tmp_path / f"ant{suffix}")
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["error"] == pytest.approx(done[0].error, abs=1e-3)


def test_a_body_that_flew_off_is_no_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = tracking.track

    def fly(*args: object, **more: object) -> tracking.Tracked:
        done = real(*args, **more)  # type: ignore[arg-type]
        up = done.motion.pose.root + done.bodies.length * torch.tensor([0.0, 11.66, 0.0])
        return replace(done, motion=Motion(replace(done.motion.pose, root=up), done.motion.fps, done.motion.name))

    monkeypatch.setattr(tracking, "track", fly)
    run = jigdoll(*WORDS, "--out", tmp_path / "ant.glb")
    assert run.returncode == 1 and "does not do the clip" in run.stderr
    facts = json.loads(run.stdout)  # what was measured is told all the same, and the file is there to be looked at
    assert facts["error"] == pytest.approx(11.66, rel=0.1) and Path(facts["files"][0]).stat().st_size > 0
