"""A table of jobs: one row per job, or per grid of jobs.

CSV has a column per option, JSONL an object per line. `verb` says what is done (animate where it is left out), `name`
names the folder, `cpus`, `gpus`, `limit` [s] and `retries` are what the job may take; all else are the verb's options
(`jobs.verbs`). A row is a grid where a cell holds several values: `zoo:fox | zoo:dog` in CSV, a list in JSONL, `0..4`
for whole numbers, `zoo:*` for all built-in characters, `models/*.glb` for all files of that name. Its jobs are all
combinations, the last option changing fastest.
"""

import csv
import io
import itertools
import json
import math
import re
import types
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from jigdoll.errors import FileFormatError
from jigdoll.formats.files import read_limited
from jigdoll.jobs.perform import FILES, make_job, split_file
from jigdoll.jobs.verbs import VERBS, options_of
from jigdoll.types import Job, JobVerb

MOST_BYTES = 64 * 1024**2
MOST_JOBS = 100_000
"""More than that are several batches."""
_TAKES: dict[str, Any] = {"cpus": float, "gpus": float, "limit": float | None, "retries": int}
_RANGE = re.compile(r"(-?\d{1,9})\.\.(-?\d{1,9})")


def read_jobs(path: Path, out: Path = Path("batch")) -> list[Job]:
    """The jobs of a table, each with a folder of its own below `out`; a mistake is refused with its line."""
    rows = _csv_rows(path) if path.suffix.lower() == ".csv" else _json_rows(path)
    jobs: list[Job] = []
    names: set[str] = set()
    digests: dict[Path, str] = {}
    for line, row in rows:
        where = f"{path}, line {line}"
        for cells in _grid(row, where):
            jobs.append(_job(cells, where, out, names, digests))
            if len(jobs) > MOST_JOBS:
                raise FileFormatError(f"{where}: more than {MOST_JOBS:,} jobs; split the table")
    if not jobs:
        raise FileFormatError(f"{path}: there is no job in the table; a row is for instance: animate,zoo:fox,it walks")
    return jobs


def _csv_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    reader = csv.DictReader(io.StringIO(_text(path)), skipinitialspace=True, strict=True)
    try:
        for cells in reader:
            if None in cells:
                raise FileFormatError(
                    f"{path}, line {reader.line_num}: more cells than the first line names; put words with a comma in "
                    'quotes, "it walks, then sits"'
                )
            row = {(name or "").strip(): (value or "").strip() for name, value in cells.items()}
            row = {name: [part.strip() for part in value.split("|")] for name, value in row.items() if value}
            if row:
                yield reader.line_num, {name: value[0] if len(value) == 1 else value for name, value in row.items()}
    except csv.Error as error:
        raise FileFormatError(f"{path}, line {reader.line_num}: this is no CSV ({error})") from error


def _json_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(_text(path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise FileFormatError(f"{path}, line {number}: this is no JSON object ({error})") from error
        if not isinstance(row, dict):
            raise FileFormatError(f'{path}, line {number}: a job is an object, {{"prompt": "a fox walks"}}')
        yield number, {name: value for name, value in row.items() if value is not None}


def _text(path: Path) -> str:
    if path.suffix.lower() not in (".csv", ".jsonl"):
        raise FileFormatError(f"{path}: a table of jobs is .csv or .jsonl")
    try:
        return read_limited(path, MOST_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{path}: this is no text in UTF-8 ({error})") from error


def _grid(row: Mapping[str, Any], where: str) -> Iterator[dict[str, Any]]:
    """All combinations of the values of a row."""
    axes = {name: _values(name, value, where) for name, value in row.items()}
    count = math.prod(len(values) for values in axes.values())
    if count > MOST_JOBS:
        raise FileFormatError(f"{where}: a grid of {count:,} jobs; split the table")
    for values in itertools.product(*axes.values()):
        yield dict(zip(axes, values, strict=True))


def _values(name: str, value: Any, where: str) -> list[Any]:
    if isinstance(value, list):
        found = [one for item in value for one in ([item] if isinstance(item, list) else _values(name, item, where))]
    elif isinstance(value, str) and (bounds := _RANGE.fullmatch(value)):
        low, high = int(bounds[1]), int(bounds[2])
        if high - low >= MOST_JOBS:
            raise FileFormatError(f"{where}: {value} are more than {MOST_JOBS:,} values; split the table")
        found = list(range(low, high + 1))
    elif value == "zoo:*":
        from jigdoll.zoo import SPECIES

        found = [f"zoo:{species}" for species in SPECIES]
    elif isinstance(value, str) and name in FILES and "*" in value:
        found = _files(value)
    else:
        return [value]
    if not found:
        raise FileFormatError(f"{where}: {name} has no value: {str(value)[:80]!r} gives none")
    return found


def _files(pattern: str) -> list[str]:
    whole = Path(pattern)
    try:
        return [str(path) for path in sorted(whole.parent.glob(whole.name)) if path.is_file()]
    except (ValueError, OSError, NotImplementedError):
        return []


def _job(cells: dict[str, Any], where: str, out: Path, names: set[str], digests: dict[Path, str]) -> Job:
    word = cells.pop("verb", "animate")
    verb: JobVerb | None = next((verb for verb in VERBS if verb == word), None)
    if verb is None:
        raise FileFormatError(f"{where}: no verb of a job is called {str(word)[:60]!r}; there are {', '.join(VERBS)}")
    name = cells.pop("name", None)
    takes = {key: as_type(cells.pop(key), kind, f"{where}, {key}") for key, kind in _TAKES.items() if key in cells}
    for key, value in takes.items():
        if value is not None and (not 0 <= value < 1e6 or (key in ("cpus", "limit") and value == 0)):
            raise FileFormatError(f"{where}: {key} of {value:g} makes no sense")
    options = _options(verb, cells, where)
    wanted = _slug(str(name) if name is not None else " ".join([verb, *_telling(options)]))
    unique = next(one for i in itertools.count(1) if (one := wanted if i == 1 else f"{wanted}-{i}") not in names)
    names.add(unique)
    try:
        return make_job(unique, verb, options, out / "jobs" / unique, digests=digests, **takes)
    except OSError as error:
        raise FileFormatError(f"{where}: a file that it names cannot be read ({error})") from error


def _options(verb: JobVerb, cells: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The options of a verb in their types; files by their full path, for a job may run in another folder."""
    known = options_of(verb)
    for name in cells:
        if name not in known:
            raise FileFormatError(f"{where}: {verb} has no option {name[:60]!r}; it takes {', '.join(known)}")
    options = {name: as_type(value, known[name].annotation, f"{where}, {name}") for name, value in cells.items()}
    missing = [name for name, option in known.items() if option.default is option.empty and name not in options]
    if missing:
        raise FileFormatError(f"{where}: {verb} needs {' and '.join(missing)}")
    for name in FILES:
        if (named := split_file(name, options.get(name))) is not None:
            options[name] = str(named[0].resolve()) + named[1]
    return options


def as_type(value: Any, kind: Any, where: str) -> Any:
    """A cell in the type that an option has; words of a CSV become numbers and truth values."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return as_type(value, next(one for one in inner if one is not type(None)), where)
    if origin is Literal:
        if value not in inner:
            raise FileFormatError(f"{where}: {str(value)[:60]!r} is none of {', '.join(inner)}")
        return value
    if kind is bool and str(value).lower() in ("true", "false", "yes", "no"):
        return str(value).lower() in ("true", "yes")
    if kind is str and isinstance(value, str) and value and "\0" not in value:
        return value
    if kind in (int, float) and isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            number = float(value)
            if math.isfinite(number) and abs(number) < 1e15 and (kind is float or number == int(number)):
                return kind(number)
        except (ValueError, OverflowError):
            pass
    words = {bool: "yes or no", int: "a whole number", float: "a number", str: "words"}[kind]
    raise FileFormatError(f"{where}: {str(value)[:60]!r} is not {words}")


def _telling(options: Mapping[str, Any]) -> list[str]:
    """The values that tell one job from another, in words for a folder's name."""
    words = []
    for name, value in options.items():
        named = split_file(name, value)
        text = str(value) if named is None else f"{named[0].stem} {named[1].lstrip(':')}"
        words.append(f"{name} {text}" if isinstance(value, int | float) else text.removeprefix("zoo:").strip())
    return words


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:80].strip("-") or "job"


def describe(job: Job) -> str:
    """A job in a few words, for a table."""
    return ", ".join(_telling(job.options))
