"""Where tensors live."""

from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")


def to_device(thing: T, device: torch.device | str) -> T:
    """A tensor, or a dataclass with every tensor in it (and in its dataclasses), on a device; all else as it is."""
    return _moved(thing, torch.device(device))


def _moved(thing: Any, device: torch.device) -> Any:
    if isinstance(thing, Tensor):
        return thing.to(device)
    if not is_dataclass(thing) or isinstance(thing, type):
        return thing
    before = {f.name: getattr(thing, f.name) for f in fields(thing)}
    after = {name: _moved(value, device) for name, value in before.items()}
    return type(thing)(**after) if any(after[name] is not before[name] for name in before) else thing
