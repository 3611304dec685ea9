"""USD: read through OpenUSD in a process of its own, written by it in ours; usd-core is an optional library."""

from jigdoll.formats.usd.read import read
from jigdoll.formats.usd.write import joint_paths, write

__all__ = ["joint_paths", "read", "write"]
