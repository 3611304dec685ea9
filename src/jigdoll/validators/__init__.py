"""What is wrong with a pose, by name, differentiable, on the skin of any body."""

from jigdoll.validators.body import PosedBody, ValidatedBody, pose_body, prepare
from jigdoll.validators.check import Finding, check, faults, findings, penalty
from jigdoll.validators.table import VALIDATORS, Validator

__all__ = [
    "VALIDATORS",
    "Finding",
    "PosedBody",
    "ValidatedBody",
    "Validator",
    "check",
    "faults",
    "findings",
    "penalty",
    "pose_body",
    "prepare",
]
