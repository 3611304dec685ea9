"""A seeded fuzzer of the file readers: damaged and hostile files may only end in a JigdollError.

    python tests/fuzz.py --count 10000            # all of them, over the real files beside the repository
    python tests/fuzz.py --seed 1234 --only Fox   # one again, with its traceback

Each case is made from (file, seed) alone, so a failure is reproduced by its seed. Cases run in worker processes under a
memory limit; a case that takes too long, grows too large or kills its worker is a failure, and the rest goes on.
"""

import argparse
import json
import multiprocessing
import os
import random
import re
import resource
import struct
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

SECONDS = 5.0
"""Processor time for one file; on the clock it may take twelve times as long, for machines that are busy."""
MEMORY = 1024**3
"""Above what the process needs before its first file."""


# Mutations: each takes the bytes of a good file and gives the bytes of a bad one.


def truncate(data: bytes, rng: random.Random) -> bytes:
    """Cut the file off."""
    return data[: rng.randrange(len(data))]


def flip_bits(data: bytes, rng: random.Random) -> bytes:
    """Flip one to sixty-four bits."""
    out = bytearray(data)
    for _ in range(2 ** rng.randrange(7)):
        out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def flip_head(data: bytes, rng: random.Random) -> bytes:
    """Flip bits where headers are."""
    out = bytearray(data)
    for _ in range(1 + rng.randrange(4)):
        out[rng.randrange(min(len(out), 256))] ^= 1 << rng.randrange(8)
    return bytes(out)


def overwrite(data: bytes, rng: random.Random) -> bytes:
    """Replace a range by zeros, ones or noise."""
    out = bytearray(data)
    start = rng.randrange(len(out))
    length = min(2 ** rng.randrange(14), len(out) - start)
    out[start : start + length] = rng.choice([b"\0" * length, b"\xff" * length, rng.randbytes(length)])
    return bytes(out)


def move_block(data: bytes, rng: random.Random) -> bytes:
    """Repeat, drop or move a range."""
    start = rng.randrange(len(data))
    block = data[start : start + 2 ** rng.randrange(12)]
    rest = data[:start] + data[start + len(block) :]
    where = rng.randrange(len(rest) + 1)
    return [rest, data[:where] + block + data[where:], rest[:where] + block + rest[where:]][rng.randrange(3)]


HOSTILE_NUMBERS = (
    "nan inf -inf 1e308 -1e308 1e39 1e-320 0 -0 -1 1 2 255 256 65535 65536 2147483647 2147483648 4294967295 4294967296 "
    "9007199254740993 9223372036854775807 9223372036854775808 99999999999999999999999999 1e999 0x10 1_0 ١ - . 1..2 true"
).split()


def replace_numbers(data: bytes, rng: random.Random) -> bytes:
    """Put hostile numbers in the place of numbers in a text."""
    found = list(re.finditer(rb"-?\d+(\.\d+)?([eE][-+]?\d+)?", data[: 1 << 18]))
    if not found:
        return flip_bits(data, rng)
    out = bytearray(data)
    chosen = rng.sample(found, min(len(found), 2 ** rng.randrange(4)))
    for match in sorted(chosen, key=lambda match: -match.start()):
        out[match.start() : match.end()] = rng.choice(HOSTILE_NUMBERS).encode()
    return bytes(out)


def shuffle_lines(data: bytes, rng: random.Random) -> bytes:
    """Swap, repeat and drop lines of a text."""
    lines = data.split(b"\n")
    for _ in range(2 ** rng.randrange(5)):
        i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
        kind = rng.randrange(3)
        if kind == 0:
            lines[i], lines[j] = lines[j], lines[i]
        elif kind == 1:
            lines.insert(i, lines[j])
        elif len(lines) > 1:
            lines.pop(i)
    return b"\n".join(lines)


def hostile_value(rng: random.Random) -> object:
    """A JSON value that a reader may not expect."""
    return rng.choice(
        [
            *(None, True, -1, 0, 1, 3, 2**31, 2**53, 10**30, 1e308, -1e308, 0.5, "", "x", "../../etc/passwd"),
            *("data:application/octet-stream;base64,AAAA", "file:///etc/passwd", "C:\\x", "\0", "%2e%2e/x"),
            *([], [0], [[]], {}, {"a": 1}, [1e300] * 16, list(range(1000)), [0, 0, 0], [0, 0, 0, 0]),
        ]
    )


def mutate_json(value: object, rng: random.Random) -> object:
    """Change, drop or repeat one field somewhere in a JSON tree."""
    places: list[tuple[object, object]] = []
    stack = [value]
    while stack:
        here = stack.pop()
        if isinstance(here, dict):
            places += [(here, key) for key in here]
            stack += list(here.values())
        elif isinstance(here, list):
            # Long lists of numbers would swallow all the mutations.
            places += [(here, index) for index in range(min(len(here), 8))]
            stack += here[:64]
    for _ in range(2 ** rng.randrange(3)):
        parent, key = rng.choice(places)
        try:
            change_field(parent, key, rng)
        except (KeyError, IndexError):
            continue
    return value


def change_field(parent: object, key: object, rng: random.Random) -> None:
    """One change of one field."""
    assert isinstance(parent, (dict, list))
    old = parent[key]  # type: ignore[index, call-overload]
    kind = rng.randrange(5)
    if kind == 0:
        del parent[key]  # type: ignore[arg-type]
    elif kind == 1 and type(old) in (int, float):
        number = old if isinstance(old, int) else 1
        new = rng.choice([number + 1, number - 1, -number, number * 2, number * 1000, number + 2**31, 0, 1e308])
        parent[key] = new  # type: ignore[index, call-overload]
    elif kind == 2 and isinstance(parent, list):
        parent.append(old)
    else:
        parent[key] = hostile_value(rng)  # type: ignore[index, call-overload]


def mutate_glb_json(data: bytes, rng: random.Random) -> bytes:
    """Change the JSON chunk of a GLB and pack it again."""
    length = struct.unpack_from("<I", data, 12)[0]
    tree = mutate_json(json.loads(data[20 : 20 + length]), rng)
    text = json.dumps(tree).encode()
    text += b" " * (-len(text) % 4)
    rest = data[20 + length :]
    total = 20 + len(text) + len(rest)
    return struct.pack("<4sIIII", b"glTF", 2, total, len(text), 0x4E4F534A) + text + rest


def mutate_gltf_json(data: bytes, rng: random.Random) -> bytes:
    """Change a .gltf file as JSON."""
    return json.dumps(mutate_json(json.loads(data), rng)).encode()


def mutate_chunks(data: bytes, rng: random.Random) -> bytes:
    """Lie about the lengths and kinds of a GLB's chunks."""
    out = bytearray(data)
    length = struct.unpack_from("<I", data, 12)[0]
    where = rng.choice([0, 4, 8, 12, 16, 20 + length, 24 + length])
    old = struct.unpack_from("<I", data, where)[0]
    choices = [0, 1, 3, old - 1, old + 1, old * 2, old // 2, 2**31, 2**32 - 1, len(data), 0x004E4942, 0x4E4F534A]
    new = rng.choice(choices)
    struct.pack_into("<I", out, where, new % 2**32)
    return bytes(out)


Mutation = Callable[[bytes, random.Random], bytes]
BINARY: list[Mutation] = [truncate, flip_bits, flip_head, overwrite, move_block]
MUTATIONS: dict[str, list[Mutation]] = {
    ".glb": [*BINARY, mutate_chunks, *[mutate_glb_json] * 6],
    ".vrm": [*BINARY, mutate_chunks, *[mutate_glb_json] * 6],
    ".gltf": [truncate, flip_bits, overwrite, replace_numbers, *[mutate_gltf_json] * 4],
    ".bvh": [*BINARY, shuffle_lines, *[replace_numbers] * 3],
    ".obj": [*BINARY, shuffle_lines, *[replace_numbers] * 3],
    ".fbx": [*BINARY],
    ".ply": [*BINARY, replace_numbers],
    ".txt": [*BINARY, replace_numbers, mutate_gltf_json],
}


def make_case(file: Path, seed: int) -> tuple[bytes, str]:
    """The damaged bytes of a case and the name of the damage."""
    rng = random.Random(f"{file.name}:{seed}")
    mutation = rng.choice(MUTATIONS[file.suffix.lower()])
    return mutation(file.read_bytes(), rng), mutation.__name__


# Running


def read_any(path: Path) -> object:
    """Read a file with the reader of its suffix."""
    suffix = path.suffix.lower()
    if suffix in (".glb", ".gltf", ".vrm"):
        from jigdoll.formats.gltf import read
    elif suffix == ".bvh":
        from jigdoll.formats.bvh import read
    elif suffix == ".obj":
        from jigdoll.formats.obj import read
    elif suffix == ".fbx":
        from jigdoll.formats.fbx import read
    elif suffix == ".ply":
        from jigdoll.formats.ply import read
    else:
        from jigdoll.formats.deepmimic import read
    return read(path)


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
        readable = 10 <= len(text) <= 2000 and path.stem in text
        return ("refused", text) if readable else ("crash", f"unreadable message: {text[:300]!r}")
    except MemoryError:
        return "memory", traceback.format_exc(limit=-3)
    except BaseException:
        return "crash", traceback.format_exc(limit=-4)


def work(pipe: Connection, memory: int, warm: list[Path]) -> None:
    """A worker: reads what it is told to, until it is told to stop. The warming files load what is loaded late."""
    import torch

    torch.set_num_threads(1)
    for file in warm:
        judge(file)
    baseline = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (baseline + memory, resource.RLIM_INFINITY))
    pipe.send("ready")
    while (path := pipe.recv()) is not None:
        started = time.process_time()
        verdict = judge(Path(path))
        pipe.send((*verdict, time.process_time() - started, most_memory()))


def most_memory() -> int:
    """The most memory this process has held [bytes]; getrusage's figure would begin with that of the parent."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


@dataclass
class Worker:
    """A process and the pipe to it."""

    process: multiprocessing.process.BaseProcess
    pipe: Connection

    @staticmethod
    def start(memory: int, warm: list[Path]) -> "Worker":
        """A worker that has imported everything and waits."""
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=work, args=(theirs, memory, warm), daemon=True)
        process.start()
        theirs.close()
        if not ours.poll(120) or ours.recv() != "ready":
            raise RuntimeError("a fuzzing worker did not start")
        return Worker(process, ours)

    def stop(self) -> None:
        """End the process, whatever it is doing."""
        self.process.kill()
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
    failures: list[Failure]
    slowest: float
    peak: int
    """Largest growth of a worker's memory above its start [bytes]."""


def fuzz(files: list[Path], seeds: range, *, seconds: float = SECONDS, memory: int = MEMORY) -> Summary:
    """Run one case per seed, over the files in turn."""
    summary = Summary(Counter(), [], 0.0, 0)
    warm = list({file.suffix: file for file in reversed(files)}.values())  # the smallest of each kind
    worker = Worker.start(memory, warm)
    start_rss = rss(worker)
    with tempfile.TemporaryDirectory(prefix="jigdoll-fuzz-") as folder:
        companions(files, Path(folder))
        for seed in seeds:
            file = files[seed % len(files)]
            data, mutation = make_case(file, seed)
            path = Path(folder) / f"case{file.suffix}"
            path.write_bytes(data)
            kind, text, spent, peak = run_case(worker, path, seconds)
            if not worker.process.is_alive() or kind == "hang":
                worker.stop()
                worker = Worker.start(memory, warm)
                start_rss = rss(worker)
            summary.outcomes[kind] += 1
            summary.slowest = max(summary.slowest, spent)
            summary.peak = max(summary.peak, peak - start_rss)
            if kind not in ("read", "refused"):
                summary.failures.append(Failure(file.name, seed, mutation, kind, text))
    worker.stop()
    return summary


def companions(files: list[Path], folder: Path) -> None:
    """Lay the buffers that .gltf files name beside the cases."""
    for file in files:
        if file.suffix == ".gltf":
            for buffer in file.parent.glob("*.bin"):
                (folder / buffer.name).write_bytes(buffer.read_bytes())


def run_case(worker: Worker, path: Path, seconds: float) -> tuple[str, str, float, int]:
    """Let the worker read a file; a hang or a dead worker is a verdict too."""
    try:
        worker.pipe.send(str(path))
        started, before = time.monotonic(), cpu_seconds(worker)
        while not worker.pipe.poll(0.25):
            if cpu_seconds(worker) - before > seconds or time.monotonic() - started > 12 * seconds:
                return "hang", f"no answer after {seconds} s of processor time", seconds, 0
        kind, text, spent, peak = worker.pipe.recv()
        return kind, text, spent, peak
    except (EOFError, ConnectionError):
        worker.process.join(5)
        return "death", f"the reader's process died with {worker.process.exitcode}", 0.0, 0


def cpu_seconds(worker: Worker) -> float:
    """Processor time that the worker has spent [s]."""
    try:
        fields = Path(f"/proc/{worker.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss(worker: Worker) -> int:
    """Resident memory of the worker [bytes]."""
    return int(Path(f"/proc/{worker.process.pid}/statm").read_text().split()[1]) * resource.getpagesize()


def find_files(folder: Path) -> list[Path]:
    """The real files of every kind that is fuzzed, smallest first."""
    kinds = (".glb", ".gltf", ".vrm", ".bvh", ".obj")
    return sorted((p for p in folder.rglob("*") if p.suffix.lower() in kinds), key=lambda p: (p.stat().st_size, p.name))


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--only", default="", help="only files whose name contains this; with --count 1, one case")
    parser.add_argument("--assets", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "assets")
    parser.add_argument("--json", type=Path, help="write the failures there")
    parser.add_argument("--keep", type=Path, help="write the failing files there")
    options = parser.parse_args()
    files = [file for file in find_files(options.assets) if options.only in file.name]
    if not files:
        raise SystemExit(f"no files to damage in {options.assets}")
    started = time.monotonic()
    summary = fuzz(files, range(options.seed, options.seed + options.count))
    print(f"{options.count} cases over {len(files)} files in {time.monotonic() - started:.0f} s")  # noqa: T201
    print(f"{dict(summary.outcomes)}, slowest {summary.slowest:.2f} s, memory +{summary.peak / 2**20:.0f} MiB")  # noqa: T201
    for failure in summary.failures:
        print(f"\n{failure.file} seed {failure.seed} ({failure.mutation}): {failure.kind}\n{failure.text}")  # noqa: T201
        if options.keep:
            options.keep.mkdir(parents=True, exist_ok=True)
            file = next(file for file in files if file.name == failure.file)
            (options.keep / f"{file.stem}-{failure.seed}{file.suffix}").write_bytes(make_case(file, failure.seed)[0])
    if options.json:
        options.json.write_text(json.dumps([vars(failure) for failure in summary.failures], indent=1))
    return 1 if summary.failures else 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
