"""What the metrics say about a clip, without any model: feet, ground, gait, jerk, limits; the check of a walk."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jigdoll.judge.check import Check, WalkCheck, walk_check
    from jigdoll.judge.verdict import LegVerdict, PairVerdict, Verdict, as_dict, judge

__all__ = ["Check", "LegVerdict", "PairVerdict", "Verdict", "WalkCheck", "as_dict", "judge", "walk_check"]


def __getattr__(name: str) -> Any:
    # The room is opened with the whole house; its numerics are not.
    if name in __all__:
        from jigdoll.judge import check, verdict

        return getattr(check if name in ("Check", "WalkCheck", "walk_check") else verdict, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
