"""Rotations, rigid transforms, curves over time, and the one constant of nature that motion knows."""

GRAVITY = 9.81
"""Of the earth, downwards [m/s^2]."""
