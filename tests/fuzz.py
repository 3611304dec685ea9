"""A seeded fuzzer of the file readers: damaged and hostile files may only end in a JigdollError.

    python tests/fuzz.py --count 20000            # all of them, over samples and the real files beside the repository
    python tests/fuzz.py --seed 1234 --count 1    # one again, with its traceback
    python tests/fuzz.py --count 20000 --kinds .usdc .usdz    # of all of them those of some kinds, the same cases

Each case is made from (file, seed) alone, so a failure is reproduced by its seed. Cases run in worker processes under a
memory limit; a case that takes too long, grows too large or kills its worker is a failure, and the rest goes on. What
readers start themselves (FBX, USD) counts with them, in time and in memory.
"""

import argparse
import gc
import json
import multiprocessing
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from fuzz_apart import unpack_in_forks
from fuzz_kinds import make_samples, read_any
from fuzz_mutations import MUTATIONS

SECONDS = 5.0
"""Processor time for one file; on the clock it may take twelve times as long, for machines that are busy."""
MEMORY = 1024**3
"""Above what the process needs before its first file."""
START_SECONDS = 900.0
"""How long a worker may take to import everything, on a machine that does other work as well."""
LARGEST = 1024**2
"""Real files above this are left out."""
OFTEN = {".glb": 4, ".fbx": 2, ".usdc": 2}
"""How many turns a kind of file has in each round; the others have one."""


def make_case(file: Path, seed: int) -> tuple[bytes, str]:
    """The damaged bytes of a case and the name of the damage."""
    rng = random.Random(f"{file.name}:{seed}")
    mutation = rng.choice(MUTATIONS[file.suffix.lower()])
    return mutation(file.read_bytes(), rng), mutation.__name__


# Running


def judge(path: Path) -> tuple[str, str]:
    """'read' or 'refused' if all is well, otherwise 'crash', each with a text."""
    from jigdoll.errors import JigdollError, RepairWarning

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", RepairWarning)
            read_any(path)
        return "read", ""
    except JigdollError as error:
        text = str(error)
        named = path.stem in text or str(path.parent) in text  # a run folder is named as a folder
        readable = 10 <= len(text) <= 2000 and named
        return ("refused", text) if readable else ("crash", f"unreadable message: {text[:300]!r}")
    except MemoryError:
        return "memory", traceback.format_exc(limit=-3)
    except BaseException:
        return "crash", traceback.format_exc(limit=-4)


def work(pipe: Connection, memory: int, warm: list[Path]) -> None:
    """A worker: reads what it is told to, until it is told to stop. The warming files load what is loaded late."""
    import torch

    torch.set_num_threads(1)
    unpack_in_forks()
    for file in warm:
        judge(file)
    gc.collect()
    gc.freeze()  # what is here by now is not looked at again
    baseline = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (baseline + memory, resource.RLIM_INFINITY))
    pipe.send("ready")
    while (path := pipe.recv()) is not None:
        started = time.process_time()
        verdict = judge(Path(path))
        pipe.send((*verdict, time.process_time() - started, most_memory("self")))
        gc.collect()  # what a case leaves in circles is none of the next one's


def most_memory(process: int | str) -> int:
    """The most memory that a process has held [bytes]; getrusage's figure would begin with that of the parent."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return max((int(line.split()[1]) * 1024 for line in lines if line.startswith(("VmHWM", "VmRSS"))), default=0)


@dataclass
class Worker:
    """A process and the pipe to it."""

    process: multiprocessing.process.BaseProcess
    pipe: Connection
    below: list[int]
    """What it has started to unpack files apart."""

    @staticmethod
    def start(memory: int, warm: list[Path]) -> "Worker":
        """A worker that has imported everything and waits."""
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=work, args=(theirs, memory, warm), daemon=True)
        process.start()
        theirs.close()
        if not ours.poll(START_SECONDS) or ours.recv() != "ready":
            raise RuntimeError("a fuzzing worker did not start")
        return Worker(process, ours, children(process.pid))

    def stop(self) -> None:
        """End the process and what it has started, whatever they are doing."""
        below = children(self.process.pid)
        self.process.kill()
        for child in below:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        self.process.join()
        self.pipe.close()


@dataclass(frozen=True)
class Failure:
    """A case that did not end as it should."""

    file: str
    seed: int
    mutation: str
    kind: str
    text: str


@dataclass
class Summary:
    """What happened to all the cases."""

    outcomes: Counter[str]
    kinds: dict[str, Counter[str]]
    """The outcomes of each kind of file."""
    seconds: dict[str, float]
    """Processor time of each kind, in all."""
    failures: list[Failure]
    slowest: float
    peak: int
    """Largest growth of a worker's memory above its start [bytes]."""
    apart: int = 0
    """Most memory of a process that a reader started, its libraries included, seen 20 times a second [bytes]."""


def kind_of(file: Path) -> str:
    """What a file is, as the table of results calls it: its suffix, or its name where suffixes say too little."""
    suffix = file.suffix.lower()
    return f"{file.stem}{suffix}" if suffix in (".json", ".safetensors") else suffix


def case_file(files: list[Path], seed: int) -> Path:
    """Which file a case damages: the kinds take turns, those with the most readers' code more often."""
    kinds: dict[str, list[Path]] = {}
    for file in files:
        kinds.setdefault(kind_of(file), []).append(file)
    turns = [kind for kind in kinds for _ in range(OFTEN.get(kind, 1))]
    group = kinds[turns[seed % len(turns)]]
    return group[seed // len(turns) % len(group)]


def fuzz(
    files: list[Path],
    seeds: range,
    *,
    kinds: Sequence[str] = (),
    seconds: float = SECONDS,
    memory: int = MEMORY,
    watch: Callable[[Summary], None] = lambda _: None,
) -> Summary:
    """Run one case per seed, over the kinds of files in turn, or those of some kinds; `watch` is told now and then."""
    summary = Summary(Counter(), {}, {}, [], 0.0, 0)
    warm = list({kind_of(file): file for file in reversed(files)}.values())  # the smallest of each kind
    worker = Worker.start(memory, warm)
    start_rss = rss(worker)
    with tempfile.TemporaryDirectory(prefix="jigdoll-fuzz-") as folder:
        companions(files, Path(folder))
        for seed in seeds:
            file = case_file(files, seed)
            if kinds and kind_of(file) not in kinds:
                continue
            data, mutation = make_case(file, seed)
            path = Path(folder) / file.name
            path.write_bytes(data)
            kind, text, spent, peak, apart = run_case(worker, path, seconds)
            if apart > memory:
                kind, text = "memory", f"what the reader started took {apart:,} bytes"
            path.unlink()
            if not worker.process.is_alive() or kind == "hang":
                worker.stop()
                worker = Worker.start(memory, warm)
                start_rss = rss(worker)
            summary.outcomes[kind] += 1
            summary.kinds.setdefault(kind_of(file), Counter())[kind] += 1
            summary.seconds[kind_of(file)] = summary.seconds.get(kind_of(file), 0.0) + spent
            summary.slowest = max(summary.slowest, spent)
            summary.peak = max(summary.peak, peak - start_rss)
            summary.apart = max(summary.apart, apart)
            if kind not in ("read", "refused"):
                summary.failures.append(Failure(file.name, seed, mutation, kind, text))
            if summary.outcomes.total() % 100 == 0:
                watch(summary)
    worker.stop()
    return summary


def companions(files: list[Path], folder: Path) -> None:
    """Lay the buffers that .gltf files name beside the cases."""
    for file in files:
        if file.suffix == ".gltf":
            for buffer in file.parent.glob("*.bin"):
                (folder / buffer.name).write_bytes(buffer.read_bytes())


def run_case(worker: Worker, path: Path, seconds: float) -> tuple[str, str, float, int, int]:
    """Let the worker read a file; a hang or a dead worker is a verdict too. The last is the memory of its children."""
    apart = 0
    try:
        worker.pipe.send(str(path))
        started, before = time.monotonic(), cpu_seconds([worker.process.pid, *worker.below])
        before_below = cpu_seconds(worker.below)
        while not worker.pipe.poll(0.05):
            below = children(worker.process.pid)
            apart = max([apart, *(most_memory(child) for child in below)])
            spent = cpu_seconds([worker.process.pid, *below]) - before
            if spent > seconds or time.monotonic() - started > 12 * seconds:
                return "hang", f"no answer after {seconds} s of processor time", seconds, 0, apart
        kind, text, own, peak = worker.pipe.recv()
        return kind, text, own + cpu_seconds(worker.below) - before_below, peak, apart
    except (EOFError, ConnectionError):
        worker.process.join(5)
        return "death", f"the reader's process died with {worker.process.exitcode}", 0.0, 0, apart


def children(process: int | None) -> list[int]:
    """What a process has started, what that has started, and so on, as far as it is still there."""
    found = [int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit()]
    above = {process: int(fields[1]) for process in found if (fields := _stat(process))}
    below = [process]
    for one in below:
        below += [child for child, parent in above.items() if parent == one]
    return [child for child in below[1:] if child is not None]


def cpu_seconds(processes: Sequence[int | None]) -> float:
    """Processor time that processes have spent, with what they started and what has ended [s]."""
    spent = sum(int(field) for process in processes for field in _stat(process)[11:15])
    return spent / os.sysconf("SC_CLK_TCK")


def _stat(process: int | None) -> list[str]:
    """The fields of a process after its name, none if it is gone."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return []


def rss(worker: Worker) -> int:
    """Resident memory of the worker [bytes]."""
    return int(Path(f"/proc/{worker.process.pid}/statm").read_text().split()[1]) * resource.getpagesize()


def find_files(*folders: Path) -> list[Path]:
    """The real files of every kind that is fuzzed, smallest first; the large ones would only repeat the small."""
    kinds = (".glb", ".gltf", ".vrm", ".bvh", ".obj", ".fbx", ".txt")
    found = [p for folder in folders for p in folder.rglob("*") if p.suffix.lower() in kinds]
    found = [p for p in found if p.suffix != ".txt" or p.read_bytes()[:1] == b"{"]  # DeepMimic's clips are JSON
    return sorted((p for p in found if p.stat().st_size <= LARGEST), key=lambda p: (p.stat().st_size, p.name))


def write_json(path: Path | None, summary: Summary) -> None:
    """The counts and the failures so far."""
    if path is not None:
        told = {"cases": summary.outcomes.total(), "outcomes": summary.outcomes, "kinds": summary.kinds}
        told |= {"seconds": summary.seconds, "slowest": summary.slowest, "memory": summary.peak}
        told["memory_apart"] = summary.apart
        told["failures"] = [vars(failure) for failure in summary.failures]
        path.write_text(json.dumps(told, indent=1))


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--only", default="", help="only files whose name contains this")
    parser.add_argument("--kinds", nargs="*", default=[], help="only cases of these kinds, as the table calls them")
    shared = Path(__file__).resolve().parents[2] / "shared"
    parser.add_argument("--files", type=Path, nargs="*", default=[shared / "assets", shared / "corpus"])
    parser.add_argument("--json", type=Path, help="write the counts and the failures there")
    parser.add_argument("--keep", type=Path, help="write the failing files there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="jigdoll-samples-") as folder:
        files = [f for f in (*make_samples(Path(folder)), *find_files(*options.files)) if options.only in f.name]
        if not files:
            raise SystemExit(f"no file is called {options.only}")
        started = time.monotonic()
        seeds = range(options.seed, options.seed + options.count)

        def watch(now: Summary) -> None:
            write_json(options.json, now)
            print(f"{now.outcomes.total()} cases, {dict(now.outcomes)}", file=sys.stderr, flush=True)  # noqa: T201

        summary = fuzz(files, seeds, kinds=options.kinds, watch=watch)
        took = time.monotonic() - started
        print(f"{summary.outcomes.total()} cases over {len(files)} files in {took:.0f} s")  # noqa: T201
        memory = f"memory +{summary.peak / 2**20:.0f} MiB, apart {summary.apart / 2**20:.0f} MiB"
        print(f"{dict(summary.outcomes)}, slowest {summary.slowest:.2f} s, {memory}")  # noqa: T201
        for failure in summary.failures:
            print(f"\n{failure.file} seed {failure.seed} ({failure.mutation}): {failure.kind}\n{failure.text}")  # noqa: T201
            if options.keep:
                options.keep.mkdir(parents=True, exist_ok=True)
                file = case_file(files, failure.seed)
                kept = options.keep / f"{file.stem}-{failure.seed}{file.suffix}"
                kept.write_bytes(make_case(file, failure.seed)[0])
    write_json(options.json, summary)
    return 1 if summary.failures else 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
