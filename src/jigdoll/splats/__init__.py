"""Gaussian splats bound to a skeleton."""
