"""JSON that strict readers take: null where a number is not finite."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from jigdoll.formats.json_text import json_text
from jigdoll.runs import open_run


def strict(text: str) -> object:
    """What a reader says that refuses Infinity and NaN, as browsers and jq do."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan, np.float64("inf"), np.float32("nan")])
def test_what_is_not_finite_becomes_null_wherever_it_is(bad: float) -> None:
    content = {"a": bad, "b": [1.5, (bad, {"c": bad})], "d": np.array([[1.0, bad], [2.0, 3.0]]), "e": "Infinity"}
    assert strict(json_text(content)) == {
        "a": None,
        "b": [1.5, [None, {"c": None}]],
        "d": [[1.0, None], [2.0, 3.0]],
        "e": "Infinity",
    }


def test_finite_numbers_flags_and_paths_are_written_as_before() -> None:
    content = {"n": 3, "x": 0.1, "yes": True, "none": None, "file": Path("a/b.glb"), "f32": np.float32(0.5)}
    plain = {"n": 3, "x": 0.1, "yes": True, "none": None, "file": "a/b.glb", "f32": 0.5}
    assert json_text(content) == json.dumps(plain, indent=2)


def test_a_run_with_an_endless_setting_writes_null_and_is_known_again(tmp_path: Path) -> None:
    request = {"prompt": "a fox walks", "bound": math.inf}
    with open_run(tmp_path / "run", request) as run:
        run.write_json("metrics.json", {"transport": math.inf, "curve": [0.0, math.nan]})
    assert strict((tmp_path / "run" / "metrics.json").read_text()) == {"transport": None, "curve": [0.0, None]}
    strict((tmp_path / "run" / "config.json").read_text())
    with open_run(tmp_path / "run", request) as run:
        assert not run.fresh


def test_a_verdict_is_strict_json() -> None:
    from jigdoll import zoo
    from jigdoll.judge import as_dict, judge
    from jigdoll.zoo.gaits import reference_motion

    asset = zoo.make("human")
    verdict = judge(asset, reference_motion(asset, "walk", seconds=0.7, fps=24.0))
    found = strict(json_text(as_dict(verdict)))
    assert isinstance(found, dict) and found["frames"] == verdict.frames


def test_no_verb_or_run_writes_json_in_another_way() -> None:
    import jigdoll

    folder = Path(jigdoll.__file__).parent
    files = [*(folder / "cli").glob("*.py"), folder / "runs.py", folder / "pipeline.py"]
    loose = [
        f"{file.name}:{n}"
        for file in files
        for n, line in enumerate(file.read_text().splitlines(), 1)
        if "json.dumps(" in line and "text = json.dumps(value)" not in line
    ]
    assert not loose
