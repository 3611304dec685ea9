"""Skinning: weights, their transfer, and the deformation of points by joints."""
