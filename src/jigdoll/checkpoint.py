"""Work in progress in one file that a kill cannot break: plain arrays and JSON, no pickle, keyed by content.

`fingerprint` marks what the work belongs to by all that is in it (numbers of meshes and clips, settings, words), not by
names: whoever asks for something else gets no old answer.
"""

import hashlib
import io
import json
import tokenize
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jigdoll.errors import FileFormatError, JigdollError
from jigdoll.formats.files import atomic_write, read_limited

_TREE = "tree"
_DAMAGE = (
    *(OSError, EOFError, ValueError, KeyError, TypeError, IndexError, AttributeError, MemoryError, SyntaxError),
    *(zipfile.BadZipFile, tokenize.TokenError),
)
"""What numpy, zipfile and json say of files that are damaged; numpy reads headers with Python's own tokenizer."""


def fingerprint(*things: Any) -> str:
    """A mark of the content of things: tensors, dataclasses, mappings, sequences, words and numbers.

    Values that a dataclass computes and keeps beside its fields do not count.
    """
    mark = hashlib.sha256()
    _feed(mark, things)
    return mark.hexdigest()


def write_checkpoint(path: Path, content: Any, *, key: str) -> None:
    """Write the whole content (dicts, lists, tensors, numbers, words, in any depth) or nothing."""
    arrays: list[np.ndarray] = []
    tree = {"key": key, "content": _bare(content, arrays)}
    named: dict[str, Any] = {f"array_{i}": array for i, array in enumerate(arrays)}
    with atomic_write(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **{_TREE: np.frombuffer(json.dumps(tree).encode(), np.uint8)}, **named)


def read_checkpoint(path: Path, *, key: str, what: str = "run") -> Any | None:
    """The content that was written with this key, None where there is no file yet; tuples come back as lists.

    A file with another key is refused: what it holds may have taken hours.
    """
    if not path.exists():
        return None
    try:
        with np.load(io.BytesIO(read_limited(path)), allow_pickle=False) as file:
            arrays = [torch.from_numpy(file[f"array_{i}"]) for i in range(len(file.files) - 1)]
            tree = json.loads(file[_TREE].tobytes())
        found, content = tree["key"], _full(tree["content"], arrays)
    except _DAMAGE as error:
        raise FileFormatError(f"{path}: this is no {what} that can be read ({error}); remove it") from error
    if found != key:
        raise JigdollError(f"{path} belongs to another {what} (other content, settings); remove it or name another")
    return content


def _feed(mark: Any, thing: Any) -> None:
    """Add one thing to the mark; each begins with its kind and size, so that no two differ only in their borders."""
    if isinstance(thing, Tensor):
        thing = thing.detach().cpu().numpy()
    if isinstance(thing, np.ndarray):
        mark.update(f"array {thing.dtype.str} {thing.shape}".encode())
        mark.update(np.ascontiguousarray(thing).tobytes())
    elif is_dataclass(thing) and not isinstance(thing, type):
        mark.update(f"fields {type(thing).__name__}".encode())
        for entry in fields(thing):
            _feed(mark, entry.name)
            _feed(mark, getattr(thing, entry.name))
    elif isinstance(thing, Mapping):
        mark.update(f"mapping {len(thing)}".encode())
        for name in sorted(thing, key=repr):
            _feed(mark, name)
            _feed(mark, thing[name])
    elif isinstance(thing, Sequence) and not isinstance(thing, str | bytes):
        mark.update(f"sequence {len(thing)}".encode())
        for item in thing:
            _feed(mark, item)
    elif thing is None or isinstance(thing, str | bytes | bool | int | float | Path):
        text = repr(str(thing) if isinstance(thing, Path) else thing)
        mark.update(f"{type(thing).__name__} {len(text)} {text}".encode())
    else:
        raise TypeError(f"a {type(thing).__name__} has no content that could be marked")


def _bare(value: Any, arrays: list[np.ndarray]) -> Any:
    """The value as JSON can hold it; its tensors go to the list and leave their number."""
    if isinstance(value, Tensor):
        arrays.append(value.detach().cpu().numpy())
        return {"array": len(arrays) - 1}
    if isinstance(value, Mapping):
        return {"dict": [[key, _bare(item, arrays)] for key, item in value.items()]}
    if isinstance(value, list | tuple):
        return list(value) if _is_plain(value) else [_bare(item, arrays) for item in value]
    return value


def _is_plain(values: Sequence[Any]) -> bool:
    """Whether these are numbers and words only: long curves of losses are, and need no look at each value."""
    return not any(isinstance(item, Tensor | Mapping | list | tuple) for item in values)


def _full(value: Any, arrays: list[Tensor]) -> Any:
    """The inverse of `_bare`, but that tuples are lists."""
    if isinstance(value, list):
        return value if _is_plain(value) else [_full(item, arrays) for item in value]
    if isinstance(value, dict) and "array" in value:
        return arrays[value["array"]]
    if isinstance(value, dict):
        return {key: _full(item, arrays) for key, item in value["dict"]}
    return value
