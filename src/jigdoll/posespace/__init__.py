"""The pose space: one learned model of how any rig poses and moves."""
