"""Rotations, rigid transforms and curves over time."""
