"""What is found out about a character once, and forgotten with it."""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

Thing = TypeVar("Thing")
Found = TypeVar("Found")


def remembered(find: Callable[[Thing], Found]) -> Callable[[Thing], Found]:
    """Find something out about a thing that never changes once; it is kept with the thing itself.

    So a server keeps no mesh alive: what was found goes when the character goes.
    """
    place = f"_{find.__module__}.{find.__qualname__}"

    @wraps(find)
    def once(thing: Thing) -> Found:
        known = vars(thing)
        if place not in known:
            known[place] = find(thing)
        return known[place]

    return once
