"""A seeded share of the fuzzing on every test run; `python tests/fuzz.py --count 10000` runs all of it."""

from pathlib import Path

from fuzz import find_files, fuzz, make_case

CASES = 300


def test_damaged_real_files_end_in_a_readable_error_or_load(assets_dir: Path) -> None:
    by_kind: dict[str, list[Path]] = {}
    for file in find_files(assets_dir):
        by_kind.setdefault(file.suffix, []).append(file)
    files = [file for group in by_kind.values() for file in group[:2]]  # the large ones are left to the full run
    summary = fuzz(files, range(CASES))
    told = [f"{case.file} seed {case.seed} {case.mutation} {case.kind}: {case.text}" for case in summary.failures]
    assert not told, "\n\n".join(told[:5])
    assert summary.outcomes["refused"] + summary.outcomes["read"] == CASES
    assert min(summary.outcomes["refused"], summary.outcomes["read"]) > 0
    assert summary.peak < 1024**3


def test_a_case_depends_on_its_file_and_seed_alone(tmp_path: Path) -> None:
    file = tmp_path / "clip.bvh"
    file.write_text("HIERARCHY\nROOT a\n{\nOFFSET 0 0 0\nCHANNELS 3 Xrotation Yrotation Zrotation\n}\nMOTION\n" * 20)
    assert make_case(file, 5) == make_case(file, 5)
    assert len({make_case(file, seed)[0] for seed in range(30)}) > 25
