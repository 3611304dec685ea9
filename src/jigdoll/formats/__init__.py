"""Bytes to our types and back, one file per format, both directions together."""
