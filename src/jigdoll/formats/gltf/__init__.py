"""glTF 2.0: .glb, .gltf and .vrm, read and written."""

from jigdoll.formats.gltf.read import read

__all__ = ["read"]
