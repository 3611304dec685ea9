"""The command line: one typed function per verb."""

import sys
import warnings
from collections.abc import Callable

import tyro

from jigdoll.cli.animate import animate
from jigdoll.cli.batch import batch
from jigdoll.cli.bodies import rig, skin, splat
from jigdoll.cli.files import convert, inspect, render
from jigdoll.cli.judge import judge
from jigdoll.cli.memory import (
    library,
    library_add,
    library_list,
    library_remove,
    memory,
    memory_find,
    memory_list,
)
from jigdoll.cli.pose import (
    pose,
    pose_check,
    pose_draft,
    pose_inbetween,
    pose_project,
    pose_sample,
    pose_solve,
    pose_train,
    pose_walk,
)
from jigdoll.cli.prior import prior, prior_info, prior_sample
from jigdoll.cli.read import read
from jigdoll.cli.retarget import retarget
from jigdoll.cli.shared import Json, answering, console, escaped, show_warning
from jigdoll.cli.track import track
from jigdoll.cli.zoo import zoo, zoo_list, zoo_make, zoo_sheet
from jigdoll.errors import JigdollError


def main() -> None:
    """Run a verb; errors a user can mend end with exit code 1 and one readable line."""
    warnings.showwarning = show_warning
    try:
        words = sys.argv[1:]
        group = GROUPS.get(words[0]) if words else None
        if group is None:
            tyro.extras.subcommand_cli_from_dict(VERBS, prog="jigdoll", args=words or ["--help"])
        else:
            prog = f"jigdoll {words[0]}"
            tyro.extras.subcommand_cli_from_dict(group, prog=prog, args=words[1:] or ["--help"])
    except JigdollError as error:
        console(error=True).print(f"[bold red]error:[/] {escaped(str(error))}", highlight=False, soft_wrap=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()


def doctor(*, as_json: Json = False) -> None:
    """Check the installation: versions, optional parts, and what is missing for each verb."""
    from rich.table import Table

    from jigdoll.diagnosis import diagnose, diagnose_verbs

    findings = diagnose()
    verbs = diagnose_verbs(findings, VERBS)
    table = Table("part", "state", "for")
    for finding in findings:
        color = {"ok": "green", "missing": "yellow", "broken": "red"}[finding["state"]]
        state = f"[{color}]{finding['state']}[/] {escaped(finding['detail'])}"
        table.add_row(finding["part"], state, finding["purpose"])
    works = Table("verb", "works", "without")
    for line in verbs:
        color = {"ok": "green", "partly": "yellow", "missing": "yellow", "broken": "red"}[line["state"]]
        works.add_row(line["verb"], f"[{color}]{line['state']}[/]", escaped(line["detail"]))
    with answering(as_json) as answer:
        answer.add({"parts": findings, "verbs": verbs})
        answer.show(table)
        answer.show(works)
    if any(finding["state"] == "broken" for finding in findings):
        sys.exit(1)


VERBS: dict[str, Callable[..., None]] = {
    "animate": animate,
    "read": read,
    "inspect": inspect,
    "convert": convert,
    "render": render,
    "rig": rig,
    "retarget": retarget,
    "skin": skin,
    "splat": splat,
    "judge": judge,
    "track": track,
    "batch": batch,
    "memory": memory,
    "library": library,
    "pose": pose,
    "prior": prior,
    "zoo": zoo,
    "doctor": doctor,
}
GROUPS: dict[str, dict[str, Callable[..., None]]] = {
    "pose": {
        "sample": pose_sample,
        "solve": pose_solve,
        "inbetween": pose_inbetween,
        "walk": pose_walk,
        "draft": pose_draft,
        "project": pose_project,
        "check": pose_check,
        "train": pose_train,
    },
    "memory": {"find": memory_find, "list": memory_list},
    "library": {"add": library_add, "list": library_list, "remove": library_remove},
    "prior": {"info": prior_info, "sample": prior_sample},
    "zoo": {"list": zoo_list, "make": zoo_make, "sheet": zoo_sheet},
}
