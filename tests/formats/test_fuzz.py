"""A seeded share of the fuzzing on every test run; `python tests/fuzz.py --count 20000` runs all of it."""

from pathlib import Path

import pytest

from fuzz import find_files, fuzz, kind_of, make_case
from fuzz_kinds import WEIGHTS, make_samples

CASES = 150


def run(files: list[Path], cases: int) -> None:
    summary = fuzz(files, range(cases))
    told = [f"{case.file} seed {case.seed} {case.mutation} {case.kind}: {case.text}" for case in summary.failures]
    assert not told, "\n\n".join(told[:5])
    assert summary.outcomes["refused"] + summary.outcomes["read"] == cases
    assert min(summary.outcomes["refused"], summary.outcomes["read"]) > 0
    assert summary.peak < 1024**3


@pytest.mark.slow
def test_damaged_real_files_end_in_a_readable_error_or_load(assets_dir: Path) -> None:
    by_kind: dict[str, list[Path]] = {}
    for file in find_files(assets_dir):
        by_kind.setdefault(kind_of(file), []).append(file)
    run([file for group in by_kind.values() for file in group[:2]], CASES)  # the large ones are left to the full run


@pytest.mark.slow
def test_damaged_files_of_every_other_kind_do_too(tmp_path: Path) -> None:
    samples = make_samples(tmp_path)
    kinds = {kind_of(file) for file in samples}
    assert {".usda", ".usdc", ".usdz", ".fbx", ".vrm", ".ply", ".zip", ".npz", "config.json", ".csv", ".jsonl"} <= kinds
    assert {f"{name}.safetensors" for name in WEIGHTS} <= kinds
    run(samples, CASES)


def test_a_case_depends_on_its_file_and_seed_alone(tmp_path: Path) -> None:
    file = tmp_path / "clip.bvh"
    file.write_text("HIERARCHY\nROOT a\n{\nOFFSET 0 0 0\nCHANNELS 3 Xrotation Yrotation Zrotation\n}\nMOTION\n" * 20)
    assert make_case(file, 5) == make_case(file, 5)
    assert len({make_case(file, seed)[0] for seed in range(30)}) > 25
