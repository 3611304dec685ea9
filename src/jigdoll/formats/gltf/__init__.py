"""glTF 2.0: .glb, .gltf and .vrm, read and written."""

from jigdoll.formats.gltf.read import read
from jigdoll.formats.gltf.write import write

__all__ = ["read", "write"]
