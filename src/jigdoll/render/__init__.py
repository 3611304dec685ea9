"""Cameras, the ground, pictures, and the rasterizers."""
