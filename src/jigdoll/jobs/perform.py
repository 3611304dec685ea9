"""One job, from its options to a folder with `result.json`, which is written last and says that the rest is whole."""

import hashlib
import json
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jigdoll
from jigdoll.asset.load import split_clip
from jigdoll.checkpoint import fingerprint
from jigdoll.errors import FileFormatError
from jigdoll.formats.files import atomic_write, read_limited, write_bytes
from jigdoll.formats.json_text import json_text
from jigdoll.formats.table import MOTIONS
from jigdoll.protocols import Progress, quiet
from jigdoll.runs import wait_until_free
from jigdoll.types import Job, JobVerb

RESULT = "result.json"
THUMBNAIL = "thumbnail.webp"
THUMBNAIL_WIDTH = 320
"""Pixels; the page of a batch shows one per job."""
FILES = ("character", "clip", "prior", "path", "start", "end")
"""Options that may name a file or a folder on disk."""
LET_GO_SECONDS = 20.0
"""How long a process that was at a job and is just being ended may hold its folder."""
MOST_RESULT = 16 * 1024**2
"""Bytes of a `result.json`."""


def make_job(
    name: str,
    verb: JobVerb,
    options: Mapping[str, Any],
    folder: Path,
    *,
    cpus: float = 1.0,
    gpus: float = 0.0,
    limit: float | None = None,
    retries: int = 1,
    digests: dict[Path, str] | None = None,
) -> Job:
    """A job with its mark; `digests` keeps those of files, so that each is read once however many jobs name it."""
    known = {} if digests is None else digests
    files = input_files(options)
    known |= {file: digest(file) for file in files if file not in known}
    content = [(file.name, known[file]) for file in files]
    mark = fingerprint(jigdoll.__version__, verb, dict(options), content)[:32]
    return Job(name, verb, dict(options), folder, mark, cpus, gpus, limit, retries)


def input_files(options: Mapping[str, Any]) -> dict[Path, Path]:
    """The files that a job reads, each with the folder that it is named from; those beside it that it may name too."""
    found: dict[Path, Path] = {}
    for name in FILES:
        if (named := split_file(name, options.get(name))) is None:
            continue
        path = named[0]
        if path.is_dir():
            found |= {file: path for file in path.rglob("*") if file.is_file()}
        else:
            found |= dict.fromkeys({path, *_companions(path)}, path.parent)
    return dict(sorted(found.items()))


def split_file(option: str, value: Any) -> tuple[Path, str] | None:
    """The file (or a model's folder) that an option names, if it does, and what follows it: `:CLIP`, `@FRAME`.

    `zoo:fox`, `walk` and `a red fox` name none.
    """
    if option not in FILES or not isinstance(value, str) or not value or "\0" in value:
        return None
    whole = option in ("prior", "path")
    if not whole and not any(suffix in value.lower() for suffix in MOTIONS):
        return None
    try:
        text, frame = value, ""
        if option in ("start", "end") and (cut := re.search(r"@-?\d+$", value)):
            text, frame = value[: cut.start()], cut[0]
        path, clip = (Path(text), None) if whole else split_clip(text)
        known = value != "pocket" if whole else path.suffix.lower() in MOTIONS
        there = path.exists() if option == "prior" else path.is_file()
        return (path, ("" if clip is None else f":{clip}") + frame) if known and there else None
    except OSError:  # longer than a path may be
        return None


def digest(file: Path) -> str:
    """SHA-256 of a file's bytes."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def perform(job: Job, progress: Progress = quiet) -> dict[str, Any]:
    """Do a job and give its result, which is written as well; one that is done already is not done again."""
    from jigdoll.jobs.verbs import VERBS

    if (done := read_result(job)) is not None:
        return done
    wait_until_free(job.folder, LET_GO_SECONDS)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        files, numbers = VERBS[job.verb](job.folder, progress, **job.options)
    sheet = next((file for file in files if file.name == "sheet.png"), None)
    if sheet is not None:
        files.append(_thumbnail(job.folder / THUMBNAIL, sheet))
    notes = dict.fromkeys(str(w.message) for w in caught if issubclass(w.category, UserWarning))
    result = {
        "jigdoll": jigdoll.__version__,
        "mark": job.mark,
        "verb": job.verb,
        "options": dict(job.options),
        "files": {file.name: {"bytes": file.stat().st_size, "sha256": digest(file)} for file in sorted(files)},
        "notes": [*numbers.pop("notes", []), *notes],
        "numbers": numbers,
    }
    text = json_text(result) + "\n"
    write_bytes(job.folder / RESULT, text.encode())
    return json.loads(text)


def read_result(job: Job) -> dict[str, Any] | None:
    """What a job gave, None if it is not done: another was done here, or a file is missing or has another size."""
    path = job.folder / RESULT
    if not path.is_file():
        return None
    try:
        result = json.loads(read_limited(path, MOST_RESULT))
        whole = result["mark"] == job.mark and all(
            (job.folder / name).stat().st_size == about["bytes"] for name, about in result["files"].items()
        )
        whole = whole and isinstance(result["numbers"], dict) and isinstance(result["notes"], list)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, FileFormatError):
        return None  # damaged: it is done again
    return result if whole else None


def _companions(path: Path) -> set[Path]:
    if path.suffix.lower() not in (".gltf", ".obj", ".usd", ".usda", ".usdc"):
        return set()
    kinds = (".bin", ".mtl", ".png", ".jpg", ".jpeg", ".webp")
    return {file for file in path.parent.iterdir() if file.suffix.lower() in kinds}


def _thumbnail(target: Path, sheet: Path) -> Path:
    from PIL import Image

    with Image.open(sheet) as picture, atomic_write(target) as temporary:
        height = max(1, round(picture.height * THUMBNAIL_WIDTH / picture.width))
        picture.convert("RGB").resize((THUMBNAIL_WIDTH, height)).save(temporary, quality=70)
    return target
