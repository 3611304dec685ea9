"""Rotations, rigid transforms, curves over time, distances, facts of nature."""
