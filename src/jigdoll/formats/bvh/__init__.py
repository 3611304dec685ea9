"""BVH, the plain-text format of motion capture: a skeleton without rest rotations and a table of channels.

In BVH every joint's frame is parallel to the world at rest, and a joint's rotation B turns that frame. Our joints may
rest turned by W (world), so B = W R inverse(W) on writing, and R = inverse(W) B W when a clip is read onto a skeleton.
A position channel replaces the joint's OFFSET, as in Blender.
"""

from jigdoll.formats.bvh.read import guess_scale, read
from jigdoll.formats.bvh.write import write

__all__ = ["guess_scale", "read", "write"]
