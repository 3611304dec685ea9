"""Words only: what a sentence asks for."""

from jigdoll.language.explain import explain, require_actions
from jigdoll.language.read import read, read_name

__all__ = ["explain", "read", "read_name", "require_actions"]
