"""How good files are damaged: each mutation takes the bytes of a good file and gives the bytes of a bad one."""

import io
import json
import random
import re
import struct
import zipfile
from collections.abc import Callable


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


def mutate_safetensors(data: bytes, rng: random.Random) -> bytes:
    """Change the header of a file of weights: shapes, kinds, places, or the facts that are JSON inside it."""
    length = struct.unpack_from("<Q", data, 0)[0]
    header = json.loads(data[8 : 8 + length])
    notes = header.get("__metadata__", {})
    inner = [key for key, value in notes.items() if value[:1] in "[{"]
    if inner and rng.random() < 0.6:
        key = rng.choice(inner)
        notes[key] = json.dumps(mutate_json(json.loads(notes[key]), rng))
    else:
        names = rng.sample(sorted(header), min(len(header), 4))
        header |= mutate_json({name: header[name] for name in names}, rng)  # type: ignore[operator]
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data[8 + length :]


def mutate_members(data: bytes, rng: random.Random) -> bytes:
    """Unpack a zip, damage one file of it, and pack it again with right sums; npz are such files too."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [(entry.filename, archive.read(entry)) for entry in archive.infolist()]
    which = rng.randrange(len(members))
    name, content = members[which]
    damages = BINARY if name.endswith(".npy") else [*BINARY, replace_numbers, shuffle_lines]
    members[which] = (name, rng.choice(damages)(content or b"\0", rng))
    if rng.random() < 0.1:
        members.append((rng.choice(["../x.bvh", "/x.bvh", name, ""]), content))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content)
    return out.getvalue()


def mutate_checkpoint(data: bytes, rng: random.Random) -> bytes:
    """Change the JSON tree of a checkpoint; its arrays stay."""
    import numpy as np

    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    tree = json.dumps(mutate_json(json.loads(arrays["tree"].tobytes()), rng))
    arrays["tree"] = np.frombuffer(tree.encode(), np.uint8)
    out = io.BytesIO()
    np.savez(out, allow_pickle=False, **arrays)
    return out.getvalue()


def mutate_json_lines(data: bytes, rng: random.Random) -> bytes:
    """Change one object of a file with a JSON object per line."""
    lines = data.splitlines()
    which = rng.randrange(len(lines))
    lines[which] = json.dumps(mutate_json(json.loads(lines[which]), rng)).encode()
    return b"\n".join(lines)


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
    ".zip": [*BINARY, *[mutate_members] * 4],
    ".usda": [*BINARY, shuffle_lines, *[replace_numbers] * 3],
    ".usdc": [*BINARY],
    ".usdz": [*BINARY],
    ".npz": [*BINARY, mutate_members, *[mutate_checkpoint] * 5],
    ".safetensors": [*BINARY, *[mutate_safetensors] * 6],
    ".json": [*BINARY, replace_numbers, *[mutate_gltf_json] * 4],
    ".jsonl": [*BINARY, shuffle_lines, replace_numbers, *[mutate_json_lines] * 4],
    ".csv": [*BINARY, shuffle_lines, *[replace_numbers] * 2],
}
"""By suffix; what is listed several times is chosen more often."""
