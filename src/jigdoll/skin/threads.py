"""How the compiled kernels share the machine."""

from collections.abc import Callable
from threading import Lock
from typing import Any

import numba
import torch

_one_at_a_time = Lock()


def on_torch_threads(kernel: Callable[..., Any], *arguments: Any) -> None:
    """Run a parallel kernel on as many threads as torch was told to use.

    Calls from several Python threads queue up: numba's plainest threading layer, the one that is always there, ends
    the process when two parallel kernels meet.
    """
    with _one_at_a_time:
        threads, before = torch.get_num_threads(), numba.get_num_threads()
        numba.set_num_threads(max(1, min(threads, int(numba.config.NUMBA_NUM_THREADS))))  # type: ignore[attr-defined]
        try:
            kernel(*arguments)
        finally:
            numba.set_num_threads(before)
            # Where numba runs on OpenMP, starting its pool overrules what torch was told.
            if torch.get_num_threads() != threads:
                torch.set_num_threads(threads)
