"""jigdoll: a 3D character and a sentence in, an animation clip out."""

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jigdoll.pipeline import animate

__all__ = ["__version__", "animate"]
__version__ = "0.1.0"

# torch and the compiled kernels have a pool of threads each and take turns. Threads that spin while they wait take the
# cores from those that work (a tenth of the time of a clip on two cores). It counts if set before torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def __getattr__(name: str) -> Any:
    # The whole pipeline takes seconds to import; whoever only reads a file does not wait for it.
    if name == "animate":
        from jigdoll.pipeline import animate

        return animate
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
