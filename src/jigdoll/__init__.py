"""jigdoll: a 3D character and a sentence in, an animation clip out.

    import jigdoll

    jigdoll.animate("zoo:fox", "a fox walks", out="out/fox")

`load`, `save`, `animate`, `rig`, `retarget`, `track`, `judge`, `render` and `zoo` are all that most programs need; they
are documented in `jigdoll.door`. Nothing heavy is imported before the first of them is called.
"""

import os
import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jigdoll import zoo
    from jigdoll.door import animate, judge, load, render, retarget, rig, save, track

__all__ = [
    "__version__",
    "animate",
    "judge",
    "load",
    "render",
    "retarget",
    "rig",
    "save",
    "track",
    "zoo",
]
__version__ = "0.1.0"

# torch and the compiled kernels have a pool of threads each and take turns. Threads that spin while they wait take the
# cores from those that work (a tenth of the time of a clip on two cores). It counts if set before torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

_VERBS = ("animate", "load", "retarget", "save", "track")


class _Room(ModuleType):
    """A package that is also the verb of its name: `jigdoll.rig(mesh)` works, and `jigdoll.rig.limbs` is its module."""

    @property
    def __wrapped__(self) -> Any:
        # The door is not a part of the house below it, so it is named and not imported.
        return getattr(import_module("jigdoll.door"), self.__name__.rpartition(".")[2])

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self.__wrapped__(*args, **options)


for _name in ("judge", "render", "rig"):
    sys.modules[import_module(f"jigdoll.{_name}").__name__].__class__ = _Room


def __getattr__(name: str) -> Any:
    if name == "zoo":
        return import_module("jigdoll.zoo")
    if name in _VERBS:
        return getattr(import_module("jigdoll.door"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
