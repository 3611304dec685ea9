"""Model-free motion metrics, the check of a walk, the report."""

from jigdoll.judge.check import Check, WalkCheck, walk_check
from jigdoll.judge.verdict import LegVerdict, PairVerdict, Verdict, as_dict, judge

__all__ = ["Check", "LegVerdict", "PairVerdict", "Verdict", "WalkCheck", "as_dict", "judge", "walk_check"]
