"""FBX: read through ufbx in a process of its own, written by our own code."""

from jigdoll.formats.fbx.read import read
from jigdoll.formats.fbx.write import write

__all__ = ["read", "write"]
