"""Whether words find the right motion, and how long it takes.

Sentences with the body that they are said of and the answer that was written down before the first run
(`benchmarks/data/search.tsv`): `a|b` are both right, `a/style` asks for a manner, `a>b` for two actions in order, and
`none` for being told that nothing is known. Right is what the first segment found shows. Then the CPU time of finding,
shaping and decoding a clip of two seconds, and of finding in ten times as many segments.

    python benchmarks/search.py [--quick] [--json FILE] [--corpus FOLDER] [--wrong]
"""

import csv
import json as json_module
import time
import warnings
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import tyro
from rich.console import Console

from jigdoll import zoo
from jigdoll.asset.load import load
from jigdoll.errors import JigdollError
from jigdoll.language import read
from jigdoll.language.encoder import open_encoder
from jigdoll.language.meaning import understood
from jigdoll.memory.draft import Directions, draft
from jigdoll.memory.find import find
from jigdoll.memory.segments import Memory, Words, open_memory
from jigdoll.protocols import TextEncoder
from jigdoll.rig.anatomy import Anatomy, anatomy_of
from jigdoll.rig.reparent import reparent

DATA = Path(__file__).parent / "data" / "search.tsv"


@dataclass(frozen=True)
class Case:
    """A sentence with what was found."""

    body: str
    kind: str
    sentence: str
    expected: str
    found: str
    right: bool


def matches(expected: str, words: Words | None) -> bool:
    """Whether a segment is one of the answers."""
    for answer in expected.split("|"):
        action, _, style = answer.partition("/")
        if words is None:
            if action == "none":
                return True
        elif words.action == action and (not style or style in words.style):
            return True
    return False


def answer(memory: Memory, encoder: TextEncoder, anatomy: Anatomy, body: str, sentence: str, expected: str) -> Case:
    """What is found for a sentence."""
    request, _ = understood(read(sentence), encoder)
    firsts: list[Words | None] = []
    for action in request.actions:
        found = find(memory, request, action, anatomy, encoder)
        firsts.append(found[0].words if found else None)
    wanted = expected.split(">")
    firsts = firsts or [None]
    right = len(wanted) == len(firsts) and all(matches(w, f) for w, f in zip(wanted, firsts, strict=True))
    said = " > ".join("none" if f is None else "/".join((f.action, *f.style)) + f" ({f.text})" for f in firsts)
    return Case(body, anatomy.kind, sentence, expected, said, right)


def body_of(name: str, corpus: Path) -> Anatomy | None:
    """The body of a case; none where the corpus is not there."""
    if name.startswith("zoo:"):
        return anatomy_of(reparent(zoo.make(name.removeprefix("zoo:"))).asset)
    path = corpus / name.removeprefix("corpus:")
    return anatomy_of(reparent(load(path)).asset) if path.is_file() else None


def ten_times(memory: Memory) -> Memory:
    """A memory of ten times as many segments."""
    vectors = np.concatenate([memory.vectors] * 10)
    return Memory(memory.words * 10, vectors, lambda index, fps: memory.segment(index % len(memory), fps=fps).motion)


def timings(memory: Memory, encoder: TextEncoder, *, repeats: int) -> dict[str, float]:
    """CPU seconds, the median of some runs."""
    human = anatomy_of(reparent(zoo.make("human")).asset)
    many, spent = ten_times(memory), defaultdict(list)
    sentences = ("a man walks", "she waves", "he sits down", "someone dances", "a man runs", "he kicks")[:repeats]
    draft(memory, read("a man jumps"), human, encoder, Directions(seconds=2.0))  # what is loaded on first use
    for sentence in sentences:
        request, _ = understood(read(sentence), encoder)
        start = time.process_time()
        draft(memory, request, human, encoder, Directions(seconds=2.0))
        spent["find, shape and decode 2 s"].append(time.process_time() - start)
        for name, known in (("find", memory), ("find in ten times as many", many)):
            start = time.process_time()
            find(known, request, request.actions[0], human, encoder)
            spent[name].append(time.process_time() - start)
    return {name: float(np.median(values)) for name, values in spent.items()}


def main(
    quick: bool = False,
    json: Path | None = None,
    corpus: Path = Path("../shared/corpus"),
    wrong: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
) -> None:
    """Measure and print."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    console, memory, encoder = Console(), open_memory(), open_encoder()
    with DATA.open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    bodies: dict[str, Anatomy | None] = {}
    cases: list[Case] = []
    for i, row in enumerate(rows):
        if quick and i % 4:
            continue
        if row["body"] not in bodies:
            try:
                bodies[row["body"]] = body_of(row["body"], corpus)
            except JigdollError as error:
                console.print(f"{row['body']}: {error}")
                bodies[row["body"]] = None
        anatomy = bodies[row["body"]]
        if anatomy is not None:
            cases.append(answer(memory, encoder, anatomy, row["body"], row["sentence"], row["expected"]))
    right = sum(case.right for case in cases)
    kinds = defaultdict(list)
    for case in cases:
        kinds[case.kind].append(case.right)
    console.print(f"{len(memory)} segments; first answer right: {right} of {len(cases)} ({right / len(cases):.1%})")
    console.print("; ".join(f"{kind} {sum(found)} of {len(found)}" for kind, found in kinds.items()))
    for case in cases:
        if wrong and not case.right:
            line = f"{case.body}: {case.sentence!r} expects {case.expected}, finds {case.found}"
            console.print(line, highlight=False, soft_wrap=True)
    times = timings(memory, encoder, repeats=2 if quick else 6)
    console.print("CPU s, one thread: " + ", ".join(f"{name} {seconds:.3f}" for name, seconds in times.items()))
    if json is not None:
        facts = {"segments": len(memory), "right": right, "cases": [asdict(case) for case in cases], "cpu": times}
        json.write_text(json_module.dumps(facts, indent=1))


if __name__ == "__main__":
    tyro.cli(main)
