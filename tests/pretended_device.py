"""A device that is not there: tensors that say they live elsewhere, and refuse to meet one that lives on the host.

They hold their values on the host, so that whole programs run and give true numbers on a machine without a GPU. What a
GPU would refuse is refused here: an operation on tensors of both places (a host tensor of no dimensions is a number and
may take part, as on CUDA), and to be read by numpy without a copy.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_flatten, tree_map

ELSEWHERE = torch.device("cuda", 0)
"""What the tensors say; with it the code takes the paths of a GPU."""
_MOVES = (Tensor.to, Tensor.copy_, Tensor.type_as, torch._has_compatible_shallow_copy_type)
"""Where a copy from place to place is what is asked for."""


class HostMeetsDevice(AssertionError):
    """An operation that a GPU would refuse."""


class Elsewhere(Tensor):
    """A tensor that says it is on `ELSEWHERE`."""

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return ELSEWHERE

    @property
    def is_cuda(self) -> bool:  # type: ignore[override]
        return True

    @property
    def is_cpu(self) -> bool:  # type: ignore[override]
        return False

    def get_device(self) -> int:
        return 0

    def cpu(self, *_: Any, **__: Any) -> Tensor:
        return self.as_subclass(Tensor)

    def cuda(self, *_: Any, **__: Any) -> "Elsewhere":
        return self

    def numpy(self, *_: Any, **__: Any) -> Any:
        raise HostMeetsDevice("numpy cannot read a tensor that lives elsewhere; copy it with .cpu() first")

    def __array__(self, *_: Any, **__: Any) -> Any:
        return self.numpy()

    def __deepcopy__(self, memo: dict[int, Any]) -> "Elsewhere":
        return self.detach().clone()

    @classmethod
    def __torch_function__(cls, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is Tensor.to:
            return _to(*args, **kwargs)
        tensors = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, Tensor)]
        strangers = [x for x in tensors if not isinstance(x, Elsewhere) and x.ndim > 0]
        if strangers and func not in _MOVES:
            shapes = ", ".join(str(tuple(x.shape)) for x in strangers)
            raise HostMeetsDevice(f"{getattr(func, '__name__', func)} meets host tensors of shape {shapes}")
        device = kwargs.get("device")
        home = device is not None and torch.device(device).type == "cpu"
        if device is not None and torch.device(device) == ELSEWHERE:
            kwargs = {**kwargs, "device": "cpu"}
        with torch._C.DisableTorchFunctionSubclass():
            result = func(*args, **kwargs)
        if func in _GETTERS:
            return result
        return result if home else tree_map(_wrapped, result)


_GETTERS = {Tensor.shape.__get__, Tensor.dtype.__get__, Tensor.layout.__get__}  # type: ignore[attr-defined]


def _wrapped(value: Any) -> Any:
    return value.as_subclass(Elsewhere) if type(value) is Tensor else value


def _to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`Tensor.to` in all its forms."""
    other = next((x for x in (*args, kwargs.get("other")) if isinstance(x, Tensor)), None)
    if other is not None:
        device, dtype, copy = other.device, other.dtype, bool(kwargs.get("copy"))
    else:
        device, dtype, *_ = torch._C._nn._parse_to(*args, **{k: v for k, v in kwargs.items() if k != "copy"})
        copy = bool(kwargs.get("copy"))
    device, dtype = device or self.device, dtype or self.dtype
    with torch._C.DisableTorchFunctionSubclass():
        moved = Tensor.to(self, dtype=dtype, copy=copy)
        if device != self.device and moved is self:
            moved = moved.view_as(moved)
        if device == ELSEWHERE:
            return moved if isinstance(moved, Elsewhere) else moved.as_subclass(Elsewhere)
        return moved.as_subclass(Tensor).to(device)


class _Factories(TorchFunctionMode):
    """Makes `torch.zeros(3, device=ELSEWHERE)` and `host.to(ELSEWHERE)` work."""

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is Tensor.to:
            return _to(*args, **kwargs)
        device = kwargs.get("device")
        if device is not None and not isinstance(device, int) and torch.device(device) == ELSEWHERE:
            result = func(*args, **{**kwargs, "device": "cpu"})
            return tree_map(_wrapped, result)
        return func(*args, **kwargs)


def _apply(self: torch.nn.Module, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> torch.nn.Module:
    """What `Module.to` does to each parameter and buffer, with new parameters: the old ones cannot become others."""
    for module in self.children() if recurse else ():
        module._apply(fn)
    for name, parameter in self._parameters.items():
        if parameter is not None:
            with torch.no_grad():
                moved = fn(parameter)
            self._parameters[name] = torch.nn.Parameter(moved, requires_grad=parameter.requires_grad)
    for name, buffer in self._buffers.items():
        self._buffers[name] = None if buffer is None else fn(buffer)
    return self


@contextmanager
def pretended_device() -> Iterator[torch.device]:
    """While the block runs, `ELSEWHERE` is a device that tensors and modules can be moved to."""
    with _Factories(), mock.patch.object(torch.nn.Module, "_apply", _apply):
        yield ELSEWHERE
