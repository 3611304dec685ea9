"""Skeletons: forward kinematics, limits, automatic rigging, retargeting."""
