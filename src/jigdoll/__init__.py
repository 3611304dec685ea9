"""jigdoll: a 3D character and a sentence in, an animation clip out."""

__version__ = "0.1.0"
