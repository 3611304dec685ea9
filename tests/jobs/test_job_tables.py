"""Tables of jobs: grids, types, names, and mistakes that are refused with their line."""

import json
from pathlib import Path

import pytest

from jigdoll.batch import _moved
from jigdoll.errors import FileFormatError
from jigdoll.jobs.perform import input_files
from jigdoll.jobs.read import read_jobs
from jigdoll.types import Job
from jigdoll.zoo import SPECIES


def table(folder: Path, text: str, suffix: str = ".csv") -> Path:
    path = folder / f"jobs{suffix}"
    path.write_text(text)
    return path


def jobs_of(folder: Path, text: str, suffix: str = ".csv") -> list[Job]:
    return read_jobs(table(folder, text, suffix), folder / "out")


def test_a_grid_is_all_combinations_with_the_last_option_fastest(tmp_path: Path) -> None:
    text = 'character,prompt,seed\nzoo:fox | zoo:dog,"it walks, then sits | it jumps",0..1\n'
    jobs = jobs_of(tmp_path, text)
    asked = [(job.options["character"], job.options["prompt"], job.options["seed"]) for job in jobs]
    assert asked == [
        (c, p, s) for c in ("zoo:fox", "zoo:dog") for p in ("it walks, then sits", "it jumps") for s in (0, 1)
    ]
    row = {"character": ["zoo:fox", "zoo:dog"], "prompt": ["it walks, then sits", "it jumps"], "seed": "0..1"}
    assert jobs_of(tmp_path, json.dumps(row), ".jsonl") == jobs
    assert {job.verb for job in jobs} == {"animate"} and len({job.folder for job in jobs}) == 8
    assert jobs[0].folder == tmp_path / "out" / "jobs" / "animate-fox-it-walks-then-sits-seed-0"


def test_the_whole_zoo_and_all_files_of_a_folder_are_one_word(tmp_path: Path) -> None:
    jobs = jobs_of(tmp_path, "character,prompt\nzoo:*,it walks | it sits | it jumps\n")
    assert len(jobs) == 29 * 3 and [job.options["character"] for job in jobs[::3]] == [f"zoo:{s}" for s in SPECIES]
    for name in ("b.glb", "a.glb", "c.obj"):
        (tmp_path / name).write_bytes(name.encode())
    jobs = jobs_of(tmp_path, f"verb,character\nrig,{tmp_path}/*.glb\n")
    assert [job.options["character"] for job in jobs] == [str(tmp_path / "a.glb"), str(tmp_path / "b.glb")]


def test_a_mark_changes_with_what_is_asked_and_with_the_content_of_files_alone(tmp_path: Path) -> None:
    (tmp_path / "a.glb").write_bytes(b"one")
    row = f"verb,character,name,limit,retries\nrig,{tmp_path}/a.glb,%s,%s,3\n"
    first, renamed = jobs_of(tmp_path, row % ("x", 5))[0], jobs_of(tmp_path, row % ("y", 9))[0]
    assert first.mark == renamed.mark and (first.limit, renamed.limit, first.retries) == (5.0, 9.0, 3)
    (tmp_path / "a.glb").write_bytes(b"two")
    assert jobs_of(tmp_path, row % ("x", 5))[0].mark != first.mark
    template = jobs_of(tmp_path, f"verb,character,template\nrig,{tmp_path}/a.glb,biped\n")[0]
    assert template.mark not in (first.mark, jobs_of(tmp_path, row % ("x", 5))[0].mark)


def test_every_file_that_directs_a_clip_counts_wherever_the_job_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("way.csv", "walk.bvh", "run.glb"):
        Path(name).write_text(f"1 2 {name}")
    text = "character,prompt,path,start,end\nzoo:fox,it walks,way.csv,walk.bvh@-1,run.glb:Run Fast@3\n"
    [before] = jobs_of(tmp_path, text)
    directed = {name: before.options[name] for name in ("path", "start", "end")}
    assert directed == {
        "path": str(tmp_path / "way.csv"),
        "start": f"{tmp_path / 'walk.bvh'}@-1",
        "end": f"{tmp_path / 'run.glb'}:Run Fast@3",
    }
    assert set(input_files(before.options)) == {tmp_path / name for name in ("way.csv", "walk.bvh", "run.glb")}
    marks = {before.mark}
    for name in ("way.csv", "walk.bvh", "run.glb"):
        Path(name).write_text("other")
        marks.add(jobs_of(tmp_path, text)[0].mark)
    assert len(marks) == 4
    [job] = jobs_of(tmp_path, "character,prompt,start,end\nzoo:fox,it walks,rest,walk@3\n")
    assert (job.options["start"], job.options["end"]) == ("rest", "walk@3") and not input_files(job.options)
    away = {str(tmp_path / "walk.bvh"): Path("/there/walk.bvh")}
    assert _moved(directed["start"], away) == "/there/walk.bvh@-1"


def test_names_are_folders_and_no_two_are_the_same(tmp_path: Path) -> None:
    rows = "name,prompt\na,it walks\na-2,it walks\na,it sits\n../../x,it sits\nü,it sits\n"
    assert [job.name for job in jobs_of(tmp_path, rows)] == ["a", "a-2", "a-3", "x", "job"]


def test_cells_have_the_types_of_the_options(tmp_path: Path) -> None:
    job = jobs_of(tmp_path, "prompt,seconds,loop,seed,cpus,gpus\nit walks,1.5,yes,7,0.5,0.25\n")[0]
    assert job.options == {"prompt": "it walks", "seconds": 1.5, "loop": True, "seed": 7}
    assert (job.cpus, job.gpus) == (0.5, 0.25)
    assert isinstance(job.options["seed"], int)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("prompt\n\n", "no job"),
        ("prompt,wings\nit flies,2\n", "line 2: animate has no option 'wings'; it takes prompt, character"),
        ("verb,prompt\nfly,up\n", "no verb of a job is called 'fly'; there are animate, rig"),
        ("verb,character\nanimate,zoo:fox\n", "animate needs prompt"),
        ("prompt,seed\nit walks,one\n", "line 2, seed: 'one' is not a whole number"),
        ("prompt,seed\nit walks,1.5\n", "is not a whole number"),
        ("prompt,loop\nit walks,perhaps\n", "is not yes or no"),
        ("prompt,cpus\nit walks,0\n", "cpus of 0 makes no sense"),
        ("prompt,retries\nit walks,-1\n", "retries of -1 makes no sense"),
        ("prompt\nit walks, then sits\n", "more cells than the first line names"),
        ("prompt,seed\nit walks,0..999999999\n", "split the table"),
        ("prompt,seed,tries\nit walks,0..999,0..999\n", "a grid of 1,000,000 jobs; split the table"),
        ("prompt,seed\nit walks,5..1\n", "has no value"),
        ("verb,character,template\nrig,zoo:ant,dragon\n", "'dragon' is none of auto, biped"),
    ],
)
def test_mistakes_are_refused_with_their_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(FileFormatError) as caught:
        jobs_of(tmp_path, text)
    assert said in str(caught.value) and "jobs.csv" in str(caught.value)


def test_other_files_are_no_tables(tmp_path: Path) -> None:
    for suffix, text in (
        (".txt", "prompt\nit walks\n"),
        (".jsonl", "[1]"),
        (".jsonl", "{"),
        (".jsonl", '{"prompt": {}}'),
    ):
        with pytest.raises(FileFormatError):
            jobs_of(tmp_path, text, suffix)
