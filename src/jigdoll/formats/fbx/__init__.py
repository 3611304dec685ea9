"""FBX: read through ufbx in a process of its own."""

from jigdoll.formats.fbx.read import read

__all__ = ["read"]
