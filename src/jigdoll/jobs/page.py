"""One page that shows a whole batch: a picture and the judge's numbers per job, and why others are not done.

It is made from the results alone and names no times, so it is the same bytes however often the batch was interrupted.
"""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from jigdoll.formats.files import write_bytes
from jigdoll.jobs.perform import THUMBNAIL, read_result
from jigdoll.jobs.read import describe
from jigdoll.judge.page import PAGE
from jigdoll.types import Job, Outcome

NUMBERS = {
    "speed": ("travel_speed", "{:.2f}", 1.0),
    "stride [Hz]": ("stride_frequency", "{:.2f}", 1.0),
    "skate [%]": ("skate_ratio", "{:.0f}", 100.0),
    "penetration [%]": ("penetration", "{:.2f}", 100.0),
    "floating [%]": ("floating", "{:.2f}", 100.0),
    "jerk": ("angle_jerk", "{:.0f}", 1.0),
    "loop error [%]": ("loop_error", "{:.2f}", 100.0),
}
"""Columns of the page: the field of a verdict, how it is written, and times what. Lengths are in those of the body."""
STYLE = "<style>td img { width: 200px; } td.reason { white-space: normal; color: var(--bad); }</style>"


def write_page(path: Path, jobs: Sequence[Job], outcomes: Mapping[str, Outcome]) -> Path:
    """Write the page beside the folder of the jobs."""
    done = [(job, result) for job in jobs if (result := read_result(job)) is not None]
    finished = {job.name for job, _ in done}
    lost = [(job, outcomes[job.name]) for job in jobs if job.name not in finished and job.name in outcomes]
    chips = [f"<li><b>done</b> {len(done)} of {len(jobs)}</li>", f"<li><b>not done</b> {len(lost)}</li>"]
    parts = [STYLE, f"<header><h1>{len(jobs)} jobs</h1><ul class='chips'>{''.join(chips)}</ul></header>"]
    if lost:
        rows = "".join(
            f"<tr><td>{escape(job.name)}</td><td>{escape(outcome.state)}</td>"
            f"<td class='reason'>{escape(outcome.reason)}</td></tr>"
            for job, outcome in lost
        )
        head = "<thead><tr><th>job</th><th>state</th><th>reason</th></tr></thead>"
        parts.append(f"<section class='wide'><h2>Not done</h2><table>{head}<tbody>{rows}</tbody></table></section>")
    rows = "".join(_row(path.parent, job, result) for job, result in done)
    head = "".join(f"<th>{escape(name)}</th>" for name in ("", "job", *NUMBERS, "files"))
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    parts.append(f"<section class='wide'><h2>Done</h2><div class='scroll'>{table}</div></section>")
    page = PAGE.replace("{{title}}", f"{len(jobs)} jobs").replace("{{body}}", "\n".join(parts))
    return write_bytes(path, page.encode())


def _row(folder: Path, job: Job, result: Mapping[str, Any]) -> str:
    """A job with its picture, numbers and links to its files."""
    below = job.folder.relative_to(folder).as_posix() if job.folder.is_relative_to(folder) else job.folder.as_posix()
    files = [name for name in result["files"] if name != THUMBNAIL]
    shown = next((name for name in ("report.html", "film.mp4", "sheet.png") if name in files), None)
    picture = ""
    if THUMBNAIL in result["files"]:
        image = f"<img loading='lazy' src='{escape(f'{below}/{THUMBNAIL}')}' alt='{escape(job.name)}'>"
        picture = f"<a href='{escape(f'{below}/{shown}')}'>{image}</a>" if shown else image
    verdict = result["numbers"].get("verdict") or {}
    numbers = "".join(f"<td>{_number(verdict.get(key), form, times)}</td>" for key, form, times in NUMBERS.values())
    notes = "".join(f"<br><small>{escape(str(note)[:200])}</small>" for note in result["notes"][:5])
    links = " ".join(f"<a href='{escape(f'{below}/{name}')}'>{escape(name)}</a>" for name in files)
    about = f"<td><b>{escape(job.verb)}</b> {escape(describe(job))}{notes}</td>"
    return f"<tr><td>{picture}</td>{about}{numbers}<td style='white-space: normal'>{links}</td></tr>"


def _number(value: Any, form: str, times: float) -> str:
    return form.format(times * value) if isinstance(value, int | float) else ""
